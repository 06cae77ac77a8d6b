/* lanes_priv.h -- iteration along some axes of a tensor. */
#pragma once

#include "graphs/ops/ops_priv.h"

/* A tensor as [outer, n, inner], n being one axis. Element i of lane (o, j) is (o * n + i) * inner
 * + j. */
typedef struct mpl_lanes {
    int64_t outer, n, inner;
} mpl_lanes;

mpl_lanes mpl_lanes_of(const mpl_shape *shape, uint32_t axis);

/* Local response normalisation: x / (bias + factor * sum of squares)^beta, over channels nearby. */
typedef struct mpl_lrn {
    double factor, beta, bias;
    int64_t below, above; /* channels included on either side */
} mpl_lrn;

mpl_lrn mpl_lrn_of(const mpl_graph *g, mpl_op op);

enum { MPL_BLOCK = 256 }; /* adjacent lanes processed together, to read memory in order */

/* Either the kept or the reduced dims. Adjacent dims of one kind are merged and dims of 1 dropped.
 * Strides count elements of the whole tensor. */
typedef struct mpl_dims {
    uint32_t rank;
    int64_t dim[MPL_MAX_RANK], stride[MPL_MAX_RANK];
} mpl_dims;

/* Bit i of set: axis i is reduced. */
void mpl_split_dims(const mpl_shape *shape, uint32_t set, mpl_dims *kept, mpl_dims *reduced);

int64_t mpl_dims_count(const mpl_dims *dims);

/* Axes in attribute `axes` as a bit set; `otherwise` if absent; an empty list gives 0. */
mpl_status mpl_axes_of(mpl_ctx *ctx, const mpl_graph *g, mpl_op op, uint32_t rank,
                       uint32_t otherwise, uint32_t *set);
