/* resize.h -- which elements a resize weighs, for backends with loops of their own. */
#ifndef MPL_RESIZE_H
#define MPL_RESIZE_H

#include "graphs/graph.h"

/* Along one axis, element x of the result is the sum over i < most of weight[x * most + i] times
 * element at[x * most + i] of the input. */
typedef struct mpl_resize_axis {
    int64_t n, most; /* elements of the result, and the most that one is made of */
    int64_t *at;     /* [n * most] the caller frees both */
    float *weight;   /* [n * most] 0: not read by the plain loops */
} mpl_resize_axis;

/* The axis of operation `op`, a resize. at and weight stay NULL if there are no such sums (a
 * region, no elements). MPL_EMEM, MPL_EINPUT. */
mpl_status mpl_resize_taps(mpl_ctx *ctx, const mpl_graph *g, mpl_op op, uint32_t axis,
                           mpl_resize_axis *out);

#endif
