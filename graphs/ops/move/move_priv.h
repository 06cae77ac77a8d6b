/* move_priv.h -- copies between strided boxes, for operators that move elements. */
#pragma once

#include "graphs/ops/ops_priv.h"

/* A box of elements with strides on both sides; strides may be 0 or negative. [element] */
typedef struct mpl_box {
    uint32_t rank;
    int64_t dim[MPL_MAX_RANK], to_stride[MPL_MAX_RANK], from_stride[MPL_MAX_RANK];
} mpl_box;

/* Copies each element of the box, `bytes` each; `from` and `to` must not overlap. O(elements). */
void mpl_move(const mpl_box *box, uint32_t bytes, void *to, const void *from);

/* Dims, first indices and steps of a slice along each axis of `in`. */
mpl_status mpl_slice_of(mpl_ctx *ctx, const mpl_graph *g, mpl_op op, const mpl_shape *in,
                        mpl_shape *to, int64_t start[MPL_MAX_RANK], int64_t step[MPL_MAX_RANK]);
/* Input axis of axis i of a transpose's output. */
uint32_t mpl_axis_from(const mpl_graph *g, mpl_op op, uint32_t rank, uint32_t i);
/* Weights of the four elements around a point at distance t after the second. */
void mpl_cubic_weights(double a, double t, double weight[4]);
