/* roi.h -- where the regions of a roi_align lie, for backends with loops of their own. */
#ifndef MPL_ROI_H
#define MPL_ROI_H

#include "graphs/graph.h"

/* One region, along y and x. [element, fractional] */
typedef struct mpl_region {
    double start[2], cell[2];
    int64_t points[2]; /* in a cell */
} mpl_region;

void mpl_region_of(const mpl_op_call *call, int64_t i, mpl_region *r);

/* The image that region i names. MPL_EINPUT: there is none. */
mpl_status mpl_region_image(mpl_ctx *ctx, const mpl_op_call *call, int64_t i, int64_t *image);

/* Elements and weights around a point of a cell along axis k, 0: y, 1: x, of `dim` elements; false:
 * it lies outside. */
bool mpl_region_around(const mpl_region *self, int k, int64_t dim, int64_t cell, int64_t point,
                       int64_t at[2], double weight[2]);

/* Whether a roi_align takes maxima; else means. */
bool mpl_region_takes_maxima(const mpl_graph *g, mpl_op op);

#endif
