/* alias.h -- values that lie in another value's storage: views, pieces of a split or slice,
 * operands inside a concat's result. Private to graphs/. */
#pragma once

#include "graphs/ir/strided.h"
#include "graphs/problem/problem.h"

/* Value v lies in the storage of root[v], at offset[v]. A root is its own root, at 0. Most values
 * are one run of bytes. An operand of a concat along an inner axis is a box of its root. */
typedef struct mpl_alias {
    mpl_value *root;  /* [n_values] */
    uint64_t *offset; /* [n_values] [byte] */
    mpl_strided *box; /* [n_values] of the root, row-major; no dims: a run. NULL: no boxes */
    uint8_t *nothing; /* [n_ops] 1: nothing to run, the outputs already lie in place */
} mpl_alias;

/* In `shared`, beside 0 and 1: operands are boxes, even where they are runs. So the storage is one
 * part at all sizes of a graph, where at some a dim of 1 makes runs of boxes. */
enum { MPL_SHARE_BOXES = 2 };

typedef struct mpl_alias_options {
    bool views;
    uint32_t align;        /* alignment of values inside another value, power of two [byte] */
    const uint8_t *shared; /* [n_ops] concats with operands inside their results; NULL: none */
    bool into_outputs;     /* lay the base of a write into the graph output that results */
    bool boxes;            /* allow operands of concats to be boxes */
    const uint8_t *copied; /* [n_ops] splits and slices whose pieces are copies; NULL: none */
} mpl_alias_options;

/* Aliases views, and contiguous pieces of splits, slices and accesses where the alignment allows.
 * Aliases the operands of the concats in `shared`, all of which must be sharable
 * (mpl_concat_sharable). With into_outputs, also the bases of assigns and fused operations that
 * make pinned outputs, if every other reader of the base comes before in any order. A graph with
 * control flow gets views only. O(size). */
mpl_status mpl_alias_new(mpl_ctx *ctx, const mpl_graph *g, const mpl_alias_options *options,
                         mpl_alias *out);
void mpl_alias_free(mpl_ctx *ctx, mpl_alias *alias);

/* Whether v is a strided box rather than one run of bytes. */
static inline bool mpl_alias_strided(const mpl_alias *alias, mpl_value v)
{
    return alias->box != NULL && alias->box[v].shape.rank > 0;
}

/* Finds concats whose operands can all lie inside the result. The operands must be aligned runs or
 * boxes of the result, and views of boxes must have the same dims. Each operand must be made by an
 * operation, be a root, and belong to no concat taken before (later operations choose first).
 * pinned(arg, v) tells which roots cannot move. taken[n_values] is scratch, all 0. Writes
 * sharable[n_ops] and returns their number. */
uint32_t mpl_concat_sharable(const mpl_graph *g, const mpl_alias_options *options,
                             const mpl_alias *alias, bool (*pinned)(const void *arg, mpl_value v),
                             const void *arg, uint8_t *taken, uint8_t *sharable);
