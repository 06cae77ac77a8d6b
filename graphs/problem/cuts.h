/* cuts.h -- storage cut where what lies in it begins and ends, so that each part can be there for
 * as long as somebody needs it. Private to graphs/. */
#ifndef MPL_CUTS_H
#define MPL_CUTS_H

#include "graphs/problem/alias.h"

/* The storage of each root that has bytes is one part or several, which follow one another in it.
 * Who needs a part: the operations that write or read a value with bytes in it, those that have
 * nothing to do aside (mpl_alias). */
typedef struct mpl_cuts {
    uint32_t n;
    mpl_value *root; /* [n] ascending */
    uint64_t *at;    /* [n] behind the root's start, ascending for each root [byte] */
    uint64_t *bytes; /* [n] */
    uint32_t *first; /* [n_values] the part where a value begins; of one without bytes: MPL_NONE */
    uint32_t *count; /* [n_values] in how many parts it lies */
} mpl_cuts;

/* Parts begin at multiples of `align`. Cut are roots that some operation makes, none of whose
 * values that lie in several parts might be overwritten in place as a whole (looked at with
 * in_place only): those would lose that. O(size log size). */
mpl_status mpl_cuts_new(mpl_ctx *ctx, const mpl_graph *g, const mpl_alias *alias, bool in_place,
                        uint32_t align, mpl_cuts *out);
void mpl_cuts_free(mpl_ctx *ctx, mpl_cuts *parts);

/* Whether the storage that v lies in is cut. */
static inline bool mpl_cuts_cut(const mpl_cuts *parts, const mpl_alias *alias, mpl_value v)
{
    return parts->count[alias->root[v]] > 1;
}

/* Whether output 0 of `op`, which it must have, may be written over its input i, a value in one
 * part of storage that is cut. */
bool mpl_cuts_operand(const mpl_graph *g, const mpl_alias *alias, const mpl_cuts *parts, mpl_op op,
                      uint32_t i);

#endif
