/* roi.c -- regions of images, each pooled to one size: roi_align (means or maxima of interpolated
 * points), max_roi_pool (maxima of elements).
 *
 * Attributes: sizes, the [height, width] of a result; scales, one factor for the regions'
 * coordinates; roi_align: size, points along a side of a cell (0: as many as it covers elements).
 * Source: ONNX, RoiAlign and MaxRoiPool; K. He et al., Mask R-CNN, 2017. */
#include "graphs/ops/move/roi.h"
#include "graphs/ops/ops_priv.h"

#include <math.h>

static const char *const mode_names[] = {"avg", "max"};
static const char *const coordinate_names[] = {"half_pixel", "output_half_pixel"};

static mpl_status shape_rois(mpl_ctx *ctx, const mpl_shape_call *call, int64_t columns)
{
    const mpl_shape *in = call->in_shape[0], *rois = call->in_shape[1];
    uint32_t n = 0;
    const int64_t *size = mpl_attr_ints(call->graph, call->op, MPL_ATTR_sizes, &n);
    mpl_attr scale = {.n = 0};

    mpl_attr_get(call->graph, call->op, MPL_ATTR_scales, &scale);
    MPL_PASS(mpl_check_type(ctx, call, 0, MPL_SET_FLOAT));
    MPL_PASS(mpl_check_type(ctx, call, 1, MPL_SET_FLOAT));
    MPL_PASS(mpl_check_rank(ctx, call, 0, 4, 4));
    MPL_PASS(mpl_check_rank(ctx, call, 1, 2, 2));
    if (rois->dim[1] != columns)
        return MPL_REFUSE(ctx, "regions have %" PRId64 " numbers each; %" PRId64 " are needed",
                          rois->dim[1], columns);
    if (n != 2 || size[0] < 1 || size[1] < 1 || scale.n != 1)
        return MPL_REFUSE(ctx,
                          "sizes must be a height and a width of at least 1, scales one number");
    call->out_shape[0] = (mpl_shape){4, {rois->dim[0], in->dim[1], size[0], size[1]}};
    call->out_type[0] = call->in_type[0];
    return MPL_OK;
}

mpl_status mpl_shape_roi_align(mpl_ctx *ctx, const mpl_shape_call *call)
{
    MPL_PASS(mpl_check_type(ctx, call, 2, MPL_SET_INDEX));
    MPL_PASS(mpl_check_rank(ctx, call, 2, 1, 1));
    if (call->in_shape[2]->dim[0] != call->in_shape[1]->dim[0])
        return MPL_REFUSE(ctx, "%" PRId64 " images are named for %" PRId64 " regions",
                          call->in_shape[2]->dim[0], call->in_shape[1]->dim[0]);
    if (mpl_choice_of(call->graph, call->op, MPL_ATTR_mode, mode_names, 2) == 2 ||
        mpl_choice_of(call->graph, call->op, MPL_ATTR_coordinate_mode, coordinate_names, 2) == 2 ||
        mpl_attr_int(call->graph, call->op, MPL_ATTR_size, 0) < 0)
        return MPL_REFUSE(ctx, "mode, coordinate_mode or size is not supported");
    return shape_rois(ctx, call, 4);
}

mpl_status mpl_shape_max_roi_pool(mpl_ctx *ctx, const mpl_shape_call *call)
{
    return shape_rois(ctx, call, 5);
}

/* Elements and weights around coordinate x of an axis; false: it lies outside. */
static bool around(int64_t dim, double x, int64_t at[2], double weight[2])
{
    if (!(x >= -1 && x <= (double)dim))
        return false;
    x = x > 0 ? x : 0;
    at[0] = (int64_t)x;
    if (at[0] >= dim - 1)
        x = (double)(at[0] = dim - 1);
    at[1] = at[0] + (at[0] < dim - 1);
    weight[1] = x - (double)at[0];
    weight[0] = 1 - weight[1];
    return true;
}

bool mpl_region_around(const mpl_region *self, int k, int64_t dim, int64_t cell, int64_t point,
                       int64_t at[2], double weight[2])
{
    return around(dim,
                  self->start[k] + (double)cell * self->cell[k] +
                      ((double)point + 0.5) * self->cell[k] / (double)self->points[k],
                  at, weight);
}

/* One region of a plane. */
typedef struct region {
    mpl_region at;
    const mpl_tensor *in;
    int64_t plane; /* its first element */
    bool max;
} region;

/* The four elements around point i of a cell in a plane, and their weights; false: it lies outside.
 */
static bool around_point(const region *self, const int64_t cell[2], int64_t i, int64_t offset[4],
                         double factor[4])
{
    const int64_t *dim = self->in->shape.dim + 2;
    const int64_t point[2] = {i / self->at.points[1], i % self->at.points[1]};
    int64_t at[2][2];
    double weight[2][2];

    for (int k = 0; k < 2; k++)
        if (!mpl_region_around(&self->at, k, dim[k], cell[k], point[k], at[k], weight[k]))
            return false;
    for (int k = 0; k < 4; k++) {
        offset[k] = at[0][k / 2] * dim[1] + at[1][k % 2];
        factor[k] = weight[0][k / 2] * weight[1][k % 2];
    }
    return true;
}

enum { TOGETHER = 32 }; /* channels that are pooled at once: a point is placed once for them */

/* Adds what is around a point to the sums of n channels; at: of the first one. */
MPL_INLINE void add_point(mpl_type type, const void *data, int64_t at, int64_t plane, int64_t n,
                          const int64_t offset[4], const double factor[4], double *sum)
{
    for (int64_t c = 0; c < n; c++, at += plane)
        for (int k = 0; k < 4; k++)
            sum[c] += factor[k] * mpl_get(type, data, at + offset[k]);
}

/* The same for the largest weighted element; of none, 0. */
MPL_INLINE void raise_point(mpl_type type, const void *data, int64_t at, int64_t plane, int64_t n,
                            const int64_t offset[4], const double factor[4], bool inside,
                            double *most)
{
    for (int64_t c = 0; c < n; c++, at += plane)
        for (int k = 0; k < 4; k++) {
            double v = inside ? factor[k] * mpl_get(type, data, at + offset[k]) : 0;

            most[c] = v > most[c] ? v : most[c];
        }
}

/* A cell of n channels from the region's plane on: the means, or the largest weighted elements,
 * around its points. Results lie `apart` elements from one another. */
MPL_INLINE void pool_cell(mpl_type type, const region *r, const int64_t cell[2], int64_t n,
                          void *out, int64_t to, int64_t apart)
{
    int64_t plane = r->in->shape.dim[2] * r->in->shape.dim[3],
            points = r->at.points[0] * r->at.points[1];
    double pooled[TOGETHER];

    for (int64_t c = 0; c < n; c++)
        pooled[c] = r->max && points > 0 ? -(double)INFINITY : 0;
    for (int64_t i = 0; i < points; i++) {
        int64_t offset[4] = {0};
        double factor[4] = {0};
        bool inside = around_point(r, cell, i, offset, factor);

        if (r->max)
            raise_point(type, r->in->data, r->plane, plane, n, offset, factor, inside, pooled);
        else if (inside)
            add_point(type, r->in->data, r->plane, plane, n, offset, factor, pooled);
    }
    for (int64_t c = 0; c < n; c++)
        mpl_put(type, out, to + c * apart,
                r->max ? pooled[c] : pooled[c] / (double)(points > 1 ? points : 1));
}

void mpl_region_of(const mpl_op_call *call, int64_t i, mpl_region *r)
{
    const mpl_graph *g = call->graph;
    const mpl_tensor *rois = &call->in[1];
    mpl_attr scale = {.n = 0};
    bool half = mpl_choice_of(g, call->op, MPL_ATTR_coordinate_mode, coordinate_names, 2) == 0;
    int64_t points = mpl_attr_int(g, call->op, MPL_ATTR_size, 0);

    mpl_attr_get(g, call->op, MPL_ATTR_scales, &scale);
    for (int k = 0; k < 2; k++) {
        double from = mpl_get(rois->type, rois->data, 4 * i + 1 - k) * scale.floats[0],
               to = mpl_get(rois->type, rois->data, 4 * i + 3 - k) * scale.floats[0], length;

        length = to - from;
        if (!half && !(length > 1))
            length = 1;
        r->start[k] = from - (half ? 0.5 : 0);
        r->cell[k] = length / (double)call->out[0].shape.dim[2 + k];
        r->points[k] = points > 0                       ? points
                       : !(r->cell[k] > 0)              ? 0
                       : r->cell[k] < (double)(1 << 20) ? (int64_t)ceil(r->cell[k])
                                                        : 1 << 20;
    }
}

mpl_status mpl_region_image(mpl_ctx *ctx, const mpl_op_call *call, int64_t i, int64_t *image)
{
    int64_t n = call->in[0].shape.dim[0];

    *image = mpl_get_int(call->in[2].type, call->in[2].data, i);
    if (*image < 0 || *image >= n)
        return MPL_REFUSE(ctx, "region %" PRId64 " names image %" PRId64 " of %" PRId64, i, *image,
                          n);
    return MPL_OK;
}

bool mpl_region_takes_maxima(const mpl_graph *g, mpl_op op)
{
    return mpl_choice_of(g, op, MPL_ATTR_mode, mode_names, 2) == 1;
}

mpl_status mpl_eval_roi_align(mpl_ctx *ctx, const mpl_op_call *call)
{
    const mpl_shape *in = &call->in[0].shape, *to = &call->out[0].shape;
    region r = {.in = &call->in[0], .max = mpl_region_takes_maxima(call->graph, call->op)};
    mpl_type in_type = call->in[0].type;
    int64_t cells = to->dim[2] * to->dim[3], image = 0;

    for (int64_t i = 0; i < to->dim[0]; i++) {
        MPL_PASS(mpl_region_image(ctx, call, i, &image));
        mpl_region_of(call, i, &r.at);
        for (int64_t c = 0; c < to->dim[1]; c += TOGETHER) {
            int64_t n = to->dim[1] - c < TOGETHER ? to->dim[1] - c : TOGETHER;

            r.plane = (image * in->dim[1] + c) * in->dim[2] * in->dim[3];
            for (int64_t cell = 0; cell < cells; cell++) {
                const int64_t at[2] = {cell / to->dim[3], cell % to->dim[3]};

                MPL_FOR_FLOAT(in_type, pool_cell, &r, at, n, call->out[0].data,
                              (i * to->dim[1] + c) * cells + cell, cells)
            }
        }
    }
    return MPL_OK;
}

/* First and one past the last element of cell k along an axis. */
static void cell_range(double from, double to, int64_t k, int64_t cells, int64_t dim,
                       int64_t range[2])
{
    double length = to - from + 1 > 1 ? to - from + 1 : 1, cell = length / (double)cells;
    double end[2] = {floor((double)k * cell) + from, ceil((double)(k + 1) * cell) + from};

    for (int i = 0; i < 2; i++)
        range[i] = !(end[i] > 0) ? 0 : end[i] > (double)dim ? dim : (int64_t)end[i];
}

mpl_status mpl_eval_max_roi_pool(mpl_ctx *ctx, const mpl_op_call *call)
{
    const mpl_tensor *in = &call->in[0], *rois = &call->in[1];
    const int64_t *dim = in->shape.dim, *to = call->out[0].shape.dim;
    mpl_attr scale = {.n = 0};
    int64_t out = 0;

    mpl_attr_get(call->graph, call->op, MPL_ATTR_scales, &scale);
    for (int64_t i = 0; i < to[0] * to[1] * to[2] * to[3]; i++) {
        int64_t cell[2] = {i / to[3] % to[2], i % to[3]}, channel = i / to[3] / to[2] % to[1];
        int64_t roi = i / to[3] / to[2] / to[1], range[2][2];
        double image = mpl_get(rois->type, rois->data, 5 * roi), most = 0;
        bool any = false;

        if (!(image >= 0 && image < (double)dim[0]))
            return MPL_REFUSE(ctx, "region %" PRId64 " names image %g of %" PRId64, roi, image,
                              dim[0]);
        for (int k = 0; k < 2; k++)
            cell_range(round(mpl_get(rois->type, rois->data, 5 * roi + 2 - k) * scale.floats[0]),
                       round(mpl_get(rois->type, rois->data, 5 * roi + 4 - k) * scale.floats[0]),
                       cell[k], to[2 + k], dim[2 + k], range[k]);
        for (int64_t y = range[0][0]; y < range[0][1]; y++)
            for (int64_t x = range[1][0]; x < range[1][1]; x++) {
                double v = mpl_get(in->type, in->data,
                                   (((int64_t)image * dim[1] + channel) * dim[2] + y) * dim[3] + x);

                most = !any || v > most ? v : most;
                any = true;
            }
        mpl_put(in->type, call->out[0].data, out++, most);
    }
    return MPL_OK;
}
