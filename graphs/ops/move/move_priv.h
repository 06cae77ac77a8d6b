/* move_priv.h -- elements copied from one strided box to another; what "moved" operators are made
 * of. */
#ifndef MPL_MOVE_PRIV_H
#define MPL_MOVE_PRIV_H

#include "graphs/ops/ops_priv.h"

/* A box of elements and its strides on both sides; strides may be 0 or negative. [element] */
typedef struct mpl_box {
    uint32_t rank;
    int64_t dim[MPL_MAX_RANK], to_stride[MPL_MAX_RANK], from_stride[MPL_MAX_RANK];
} mpl_box;

/* Copies every element of the box, `bytes` each, from `from` to `to`, which do not overlap.
 * O(elements). */
void mpl_move(const mpl_box *box, uint32_t bytes, void *to, const void *from);

/* What a slice takes of each axis of `in`: dims, first indices and steps. */
mpl_status mpl_slice_of(mpl_ctx *ctx, const mpl_graph *g, mpl_op op, const mpl_shape *in,
                        mpl_shape *to, int64_t start[MPL_MAX_RANK], int64_t step[MPL_MAX_RANK]);
/* Where axis i of a transpose's output comes from. */
uint32_t mpl_axis_from(const mpl_graph *g, mpl_op op, uint32_t rank, uint32_t i);

#endif
