/* alias.h -- which values are part of another's storage: views, pieces of a split or slice,
 * operands inside a concat's result. Private to graphs/. */
#ifndef MPL_ALIAS_H
#define MPL_ALIAS_H

#include "graphs/ir/strided.h"
#include "graphs/problem/problem.h"

/* Value v lies in the storage of root[v], offset[v] bytes behind its start; a root in its own, at
 * 0. Most are one run of bytes; an operand of a concat along an inner axis is a box of its root,
 * its elements between those of others. */
typedef struct mpl_alias {
    mpl_value *root;  /* [n_values] */
    uint64_t *offset; /* [n_values] [byte] */
    mpl_strided *box; /* [n_values] of the root's elements, row-major; no dims: one run of bytes.
                         NULL: all are */
    uint8_t *nothing; /* [n_ops] 1: there is nothing to do, the outputs lie where the operation
                         would put them */
} mpl_alias;

typedef struct mpl_alias_options {
    bool views;
    uint32_t align;        /* what lies inside another value begins at multiples of it. [byte] */
    const uint8_t *shared; /* [n_ops] concats whose operands lie inside their results; NULL: none */
    bool into_outputs;     /* what is written into to make an output lies where the output does */
    bool boxes;            /* operands of concats may be boxes of the results */
} mpl_alias_options;

/* Views at their bytes; contiguous pieces of splits, slices and accesses, where the alignment
 * allows; operands of the concats named, all of which must be sharable (mpl_concat_sharable); with
 * into_outputs, for pinned outputs, the bases of the assigns and fused operations that make them,
 * where all else that reads a base comes before in any order. A graph with control flow has views
 * alone. O(size). */
mpl_status mpl_alias_new(mpl_ctx *ctx, const mpl_graph *g, const mpl_alias_options *options,
                         mpl_alias *out);
void mpl_alias_free(mpl_ctx *ctx, mpl_alias *alias);

/* Whether v is one run of bytes in its root's storage no longer. */
static inline bool mpl_alias_strided(const mpl_alias *alias, mpl_value v)
{
    return alias->box != NULL && alias->box[v].shape.rank > 0;
}

/* Concats whose operands can all lie inside the result: their bytes follow one another there,
 * aligned, or they are boxes of it, and all views of them have their dims; each is made by an
 * operation, has storage of its own otherwise, and is an operand of no other concat taken before
 * (in the order of operations, later ones first). pinned(arg, v) tells what cannot move.
 * taken[n_values] is scratch, all 0; sharable[n_ops] is written; their number is returned. */
uint32_t mpl_concat_sharable(const mpl_graph *g, const mpl_alias_options *options,
                             const mpl_alias *alias, bool (*pinned)(const void *arg, mpl_value v),
                             const void *arg, uint8_t *taken, uint8_t *sharable);

#endif
