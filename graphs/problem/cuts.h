/* cuts.h -- splits storage where the values in it begin and end, so that each part has its own live
 * range. Private to graphs/. */
#pragma once

#include "graphs/problem/alias.h"

/* The storage of each root with bytes is one part or several consecutive ones. A part is needed by
 * the operations that write or read a value with bytes in it, except those with nothing to do
 * (mpl_alias). */
typedef struct mpl_cuts {
    uint32_t n;
    mpl_value *root; /* [n] ascending */
    uint64_t *at;    /* [n] offset in the root, ascending for each root [byte] */
    uint64_t *bytes; /* [n] [byte] */
    uint32_t *first; /* [n_values] the part where a value begins; MPL_NONE: no bytes */
    uint32_t *count; /* [n_values] number of parts that it spans */
} mpl_cuts;

/* Splits only storage without boxes that an operation produces. Does not split it if a value
 * spanning several parts may be overwritten in place, since that pair would be lost. */
typedef enum mpl_cuts_what { MPL_CUT_ALL, MPL_CUT_MADE, MPL_CUT_NOT_WRITTEN } mpl_cuts_what;

/* Parts begin at multiples of `align`. A graph with control flow is not split. O(size log size). */
mpl_status mpl_cuts_new(mpl_ctx *ctx, const mpl_graph *g, const mpl_alias *alias,
                        mpl_cuts_what what, uint32_t align, mpl_cuts *out);
void mpl_cuts_free(mpl_ctx *ctx, mpl_cuts *parts);

/* Whether the storage that v lies in is split. */
static inline bool mpl_cuts_cut(const mpl_cuts *parts, const mpl_alias *alias, mpl_value v)
{
    return parts->count[alias->root[v]] > 1;
}

/* Whether output 0 of `op`, which must exist, may overwrite its input i, a value in one part of
 * split storage. */
bool mpl_cuts_operand(const mpl_graph *g, const mpl_alias *alias, const mpl_cuts *parts, mpl_op op,
                      uint32_t i);
