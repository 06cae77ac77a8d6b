/* grid_sample.c -- values of images at places that data name, nearest, linear or cubic along each
 * axis; any number of spatial dims.
 *
 * x is [batch, channels, spatial..], grid [batch, places.., spatial dims], whose last axis names
 * the last spatial axis first. coordinate_mode: `normalised` (-1 to 1 spans the image, between the
 * middles of the outermost elements under align_corners, else between their outer edges) or
 * `pixels`. Places outside are 0, those of the border, or mirrored at it (padding_mode).
 *
 * Source: ONNX, GridSample; cubic weights: R. Keys, 1981. */
#include "graphs/ops/move/move_priv.h"

#include <math.h>

typedef enum grid_padding { ZEROS, BORDER, REFLECTION, N_PADDINGS } grid_padding;

static const char *const mode_names[] = {"linear", "nearest", "cubic"};
static const int n_taps[] = {2, 1, 4};
static const char *const padding_names[N_PADDINGS] = {"zeros", "border", "reflection"};
static const char *const coordinate_names[] = {"normalised", "pixels"};

typedef struct grid_plan {
    uint32_t n; /* spatial dims */
    int mode, padding;
    bool align, pixels;
    int64_t dim[MPL_MAX_RANK], stride[MPL_MAX_RANK];
    int64_t at[MPL_MAX_RANK][4]; /* elements along each axis; -1: outside */
    double weight[MPL_MAX_RANK][4];
} grid_plan;

mpl_status mpl_shape_grid_sample(mpl_ctx *ctx, const mpl_shape_call *call)
{
    const mpl_shape *in = call->in_shape[0], *grid = call->in_shape[1];
    const struct {
        mpl_attr_key key;
        const char *const *names;
        int n;
    } choice[] = {{MPL_ATTR_mode, mode_names, 3},
                  {MPL_ATTR_padding_mode, padding_names, N_PADDINGS},
                  {MPL_ATTR_coordinate_mode, coordinate_names, 2}};
    char text[2][200];

    MPL_PASS(mpl_check_type(ctx, call, 0, MPL_SET_FLOAT));
    MPL_PASS(mpl_check_type(ctx, call, 1, MPL_SET_FLOAT));
    MPL_PASS(mpl_check_rank(ctx, call, 0, 3, MPL_MAX_RANK));
    if (grid->rank != in->rank || grid->dim[0] != in->dim[0] ||
        grid->dim[grid->rank - 1] != in->rank - 2)
        return MPL_REFUSE(ctx, "a grid of dims %s names no places of an input of dims %s",
                          mpl_shape_text(grid, text[0]), mpl_shape_text(in, text[1]));
    for (int i = 0; i < 3; i++)
        if (mpl_choice_of(call->graph, call->op, choice[i].key, choice[i].names, choice[i].n) ==
            choice[i].n)
            return MPL_REFUSE(ctx, "%s '%.60s' is not supported", mpl_attr_name(choice[i].key),
                              mpl_attr_text(call->graph, call->op, choice[i].key, ""));
    call->out_shape[0] = *in;
    for (uint32_t i = 2; i < in->rank; i++) {
        if (in->dim[i] == 0)
            return MPL_REFUSE(ctx, "axis %u has no elements to choose from", i);
        call->out_shape[0].dim[i] = grid->dim[i - 1];
    }
    call->out_type[0] = call->in_type[0];
    return MPL_OK;
}

/* Mirrors x at both ends until it lies between them. */
static double reflect(double x, double low, double high)
{
    double range = high - low, over;

    if (range <= 0)
        return low;
    over = fmod(fabs(x - low), 2 * range);
    return low + (over > range ? 2 * range - over : over);
}

/* Element i of an axis, i whole; -1: outside. */
static int64_t element(const grid_plan *plan, uint32_t axis, double i)
{
    double last = (double)(plan->dim[axis] - 1), edge = plan->align ? 0 : 0.5;

    if (plan->padding == REFLECTION && !(i >= 0 && i <= last))
        i = reflect(i, -edge, last + edge);
    if (plan->padding == ZEROS && !(i >= 0 && i <= last))
        return -1;
    return !(i > 0) ? 0 : i > last ? plan->dim[axis] - 1 : (int64_t)i;
}

/* Elements and weights for coordinate x of an axis. */
static void find_taps(grid_plan *plan, uint32_t axis, double x)
{
    double last = (double)(plan->dim[axis] - 1), edge = plan->align ? 0 : 0.5, low;
    double *weight = plan->weight[axis];

    if (!plan->pixels)
        x = plan->align ? (x + 1) / 2 * last : ((x + 1) * (last + 1) - 1) / 2;
    if (n_taps[plan->mode] == 1)
        x = rint(x);
    if (plan->padding == BORDER && !(x >= -edge && x <= last + edge))
        x = x > 0 ? last : 0;
    if (plan->padding == REFLECTION && !(x >= -edge && x <= last + edge))
        x = reflect(x, -edge, last + edge);
    low = floor(x);
    weight[0] = 1;
    if (n_taps[plan->mode] == 2)
        weight[1] = x - low, weight[0] = 1 - weight[1];
    if (n_taps[plan->mode] == 4)
        mpl_cubic_weights(-0.75, x - low, weight);
    for (int i = 0; i < n_taps[plan->mode]; i++)
        plan->at[axis][i] = element(plan, axis, n_taps[plan->mode] == 4 ? low - 1 + i : low + i);
}

/* The value over axes [axis, n), from element `base` on. */
static double sample(const grid_plan *plan, const mpl_tensor *in, uint32_t axis, int64_t base)
{
    double sum = 0;

    if (axis >= plan->n || axis >= MPL_MAX_RANK) /* the second for compilers */
        return mpl_get(in->type, in->data, base);
    for (int i = 0; i < n_taps[plan->mode]; i++)
        if (plan->at[axis][i] >= 0 && plan->weight[axis][i] != 0)
            sum += plan->weight[axis][i] *
                   sample(plan, in, axis + 1, base + plan->at[axis][i] * plan->stride[axis]);
    return sum;
}

mpl_status mpl_eval_grid_sample(mpl_ctx *ctx, const mpl_op_call *call)
{
    const mpl_tensor *in = &call->in[0], *grid = &call->in[1];
    const mpl_shape *to = &call->out[0].shape;
    const mpl_graph *g = call->graph;
    grid_plan plan = {.n = in->shape.rank - 2};
    int64_t all[MPL_MAX_RANK], places = mpl_count_dims(to, 2, to->rank), channels = to->dim[1];

    (void)ctx;
    plan.mode = mpl_choice_of(g, call->op, MPL_ATTR_mode, mode_names, 3);
    plan.padding = mpl_choice_of(g, call->op, MPL_ATTR_padding_mode, padding_names, N_PADDINGS);
    plan.pixels = mpl_choice_of(g, call->op, MPL_ATTR_coordinate_mode, coordinate_names, 2) == 1;
    plan.align = mpl_attr_int(g, call->op, MPL_ATTR_align_corners, 0) != 0;
    mpl_strides(&in->shape, all);
    memcpy(plan.dim, in->shape.dim + 2, plan.n * sizeof *plan.dim);
    memcpy(plan.stride, all + 2, plan.n * sizeof *plan.stride);
    for (int64_t b = 0; b < to->dim[0]; b++)
        for (int64_t p = 0; p < places; p++) {
            for (uint32_t k = 0; k < plan.n; k++)
                find_taps(&plan, plan.n - 1 - k,
                          mpl_get(grid->type, grid->data, (b * places + p) * plan.n + k));
            for (int64_t c = 0; c < channels; c++)
                mpl_put(in->type, call->out[0].data, (b * channels + c) * places + p,
                        sample(&plan, in, 0, b * all[0] + c * all[1]));
        }
    return MPL_OK;
}
