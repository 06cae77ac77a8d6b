/* resize.c -- resize: nearest, linear and cubic along each axis as in ONNX.
 *
 * An axis has `sizes` (output elements) or `scales` (output over input). With both, sizes give the
 * dims and scales the coordinates, as for "keep the aspect ratio". Both apply to `axes`, or to all
 * axes if absent. antialias: what shrinks, by 1 / scale, is weighed over so many times as many
 * elements. tf_crop_and_resize: `roi` has the first place of each axis, then the last, as shares of
 * its length; where that is outside, the result is extrapolation_value.
 *
 * Source  ONNX, docs/Operators.md, Resize. */
#include "graphs/ops/move/move_priv.h"
#include "graphs/ops/move/resize.h"

#include <math.h>

typedef enum resize_mode { NEAREST, LINEAR, CUBIC, N_RESIZE_MODES } resize_mode;
typedef enum resize_coordinate {
    HALF_PIXEL,
    HALF_PIXEL_SYMMETRIC,
    PYTORCH_HALF_PIXEL,
    ALIGN_CORNERS,
    ASYMMETRIC,
    TF_HALF_PIXEL,
    CROP,
    N_COORDINATES
} resize_coordinate;
typedef enum resize_rounding {
    PREFER_FLOOR,
    PREFER_CEIL,
    FLOOR,
    CEIL,
    N_ROUNDINGS
} resize_rounding;

static const char *const mode_names[N_RESIZE_MODES] = {"nearest", "linear", "cubic"};
static const char *const coordinate_names[N_COORDINATES] = {
    "half_pixel", "half_pixel_symmetric", "pytorch_half_pixel", "align_corners",
    "asymmetric", "tf_half_pixel_for_nn", "tf_crop_and_resize"};
static const char *const rounding_names[N_ROUNDINGS] = {"round_prefer_floor", "round_prefer_ceil",
                                                        "floor", "ceil"};

typedef struct resize_plan {
    uint32_t rank;
    resize_mode mode;
    resize_coordinate coordinate;
    resize_rounding rounding;
    double cubic_a;
    bool exclude_outside, antialias;
    double outside;                                 /* what stands outside of a region */
    double first[MPL_MAX_RANK], last[MPL_MAX_RANK]; /* of the region, as shares of a length */
    int64_t in[MPL_MAX_RANK], out[MPL_MAX_RANK], stride[MPL_MAX_RANK];
    double scale[MPL_MAX_RANK];
} resize_plan;

/* Index of the attribute's text among n names; 0 if absent. */
static mpl_status choose(mpl_ctx *ctx, const mpl_graph *g, mpl_op op, mpl_attr_key key,
                         const char *const *names, int n, int *choice)
{
    *choice = mpl_choice_of(g, op, key, names, n);
    if (*choice == n)
        return MPL_REFUSE(ctx, "%s '%.60s' is not supported", mpl_attr_name(key),
                          mpl_attr_text(g, op, key, ""));
    return MPL_OK;
}

/* Dims and scales from the attributes. */
static mpl_status extents(mpl_ctx *ctx, const mpl_graph *g, mpl_op op, resize_plan *plan)
{
    uint32_t n_axes, n_sizes, set, axis;
    const int64_t *axes = mpl_attr_ints(g, op, MPL_ATTR_axes, &n_axes);
    const int64_t *sizes = mpl_attr_ints(g, op, MPL_ATTR_sizes, &n_sizes);
    mpl_attr scales = {.n = 0};

    mpl_attr_get(g, op, MPL_ATTR_scales, &scales);
    if (axes == NULL)
        n_axes = plan->rank;
    else
        MPL_PASS(mpl_axis_set(ctx, axes, n_axes, plan->rank, &set));
    if (n_sizes == 0 && scales.n == 0 && n_axes > 0)
        return MPL_REFUSE(ctx, "neither 'sizes' nor 'scales' is given");
    if ((n_sizes > 0 && n_sizes != n_axes) || (scales.n > 0 && scales.n != n_axes))
        return MPL_REFUSE(ctx, "sizes has %u and scales %u items for %u axes", n_sizes, scales.n,
                          n_axes);
    for (uint32_t i = 0; i < n_axes; i++) {
        double most = 0x1p53, scale, want;

        MPL_PASS(mpl_axis(ctx, axes != NULL ? axes[i] : (int64_t)i, plan->rank, &axis));
        scale = scales.n > 0 ? scales.floats[i] : (double)sizes[i] / (double)plan->in[axis];
        want = n_sizes > 0
                   ? (double)sizes[i]
                   : floor((double)plan->in[axis] * scale * (plan->last[axis] - plan->first[axis]));
        if (plan->in[axis] == 0 && want == 0)
            scale = 1;
        if (!(scale > 0 || want == 0) || !(scale < most) || !(want >= 0 && want < most) ||
            (plan->in[axis] == 0 && want > 0) ||
            (plan->antialias && want > 0 && scale * (double)plan->in[axis] < 1))
            return MPL_REFUSE(ctx, "axis %u of %" PRId64 " elements cannot be scaled by %g to %g",
                              axis, plan->in[axis], scale, want);
        plan->scale[axis] = scale;
        plan->out[axis] = (int64_t)want;
    }
    return MPL_OK;
}

/* Where the region begins and ends along each axis; without one, all of it. */
static mpl_status region(mpl_ctx *ctx, const mpl_graph *g, mpl_op op, resize_plan *plan)
{
    mpl_attr roi = {.n = 0};

    for (uint32_t i = 0; i < plan->rank; i++)
        plan->first[i] = 0, plan->last[i] = 1;
    if (plan->coordinate != CROP)
        return MPL_OK;
    if (!mpl_attr_get(g, op, MPL_ATTR_roi, &roi) || roi.n != 2 * plan->rank)
        return MPL_REFUSE(ctx, "roi has %u numbers; it must have two for each of %u axes", roi.n,
                          plan->rank);
    for (uint32_t i = 0; i < plan->rank; i++) {
        plan->first[i] = roi.floats[i], plan->last[i] = roi.floats[plan->rank + i];
        if (!(fabs(plan->first[i]) < 0x1p30) || !(fabs(plan->last[i]) < 0x1p30))
            return MPL_REFUSE(ctx, "roi of axis %u is from %g to %g", i, plan->first[i],
                              plan->last[i]);
    }
    return MPL_OK;
}

static mpl_status plan_of(mpl_ctx *ctx, const mpl_graph *g, mpl_op op, const mpl_shape *in,
                          resize_plan *plan)
{
    int choice[3];

    MPL_PASS(choose(ctx, g, op, MPL_ATTR_mode, mode_names, N_RESIZE_MODES, &choice[0]));
    MPL_PASS(
        choose(ctx, g, op, MPL_ATTR_coordinate_mode, coordinate_names, N_COORDINATES, &choice[1]));
    MPL_PASS(choose(ctx, g, op, MPL_ATTR_nearest_mode, rounding_names, N_ROUNDINGS, &choice[2]));
    plan->rank = in->rank;
    plan->mode = (resize_mode)choice[0];
    plan->coordinate = (resize_coordinate)choice[1];
    plan->rounding = (resize_rounding)choice[2];
    plan->cubic_a = mpl_attr_float(g, op, MPL_ATTR_cubic_coeff_a, -0.75);
    plan->exclude_outside = mpl_attr_int(g, op, MPL_ATTR_exclude_outside, 0) != 0;
    plan->antialias = plan->mode != NEAREST && mpl_attr_int(g, op, MPL_ATTR_antialias, 0) != 0;
    plan->outside = mpl_attr_float(g, op, MPL_ATTR_extrapolation_value, 0);
    for (uint32_t i = 0; i < in->rank; i++) {
        plan->in[i] = plan->out[i] = in->dim[i];
        plan->scale[i] = 1;
    }
    mpl_strides(in, plan->stride);
    MPL_PASS(region(ctx, g, op, plan));
    return extents(ctx, g, op, plan);
}

mpl_status mpl_shape_resize(mpl_ctx *ctx, const mpl_shape_call *call)
{
    resize_plan plan;

    MPL_PASS(plan_of(ctx, call->graph, call->op, call->in_shape[0], &plan));
    if (plan.mode != NEAREST)
        MPL_PASS(mpl_check_type(ctx, call, 0, MPL_SET_NUMBER));
    call->out_shape[0].rank = plan.rank;
    memcpy(call->out_shape[0].dim, plan.out, plan.rank * sizeof *plan.out);
    call->out_type[0] = call->in_type[0];
    return MPL_OK;
}

/* Input coordinate of output element x along an axis. [element, fractional] */
static double coordinate(const resize_plan *plan, uint32_t axis, int64_t x)
{
    double scale = plan->scale[axis], in = (double)plan->in[axis], length = in * scale,
           at = (double)x;

    switch (plan->coordinate) {
    case HALF_PIXEL_SYMMETRIC: /* keeps the centre fixed despite rounding of the size */
        return in / 2 * (1 - (double)plan->out[axis] / length) + (at + 0.5) / scale - 0.5;
    case PYTORCH_HALF_PIXEL:
        return plan->out[axis] > 1 ? (at + 0.5) / scale - 0.5 : 0;
    case ALIGN_CORNERS:
        return plan->out[axis] > 1 ? at * (in - 1) / (length - 1) : 0;
    case ASYMMETRIC:
        return at / scale;
    case TF_HALF_PIXEL:
        return (at + 0.5) / scale;
    case CROP:
        return plan->out[axis] > 1
                   ? (in - 1) * (plan->first[axis] + at * (plan->last[axis] - plan->first[axis]) /
                                                         ((double)plan->out[axis] - 1))
                   : (in - 1) * (plan->first[axis] + plan->last[axis]) / 2;
    default:
        return (at + 0.5) / scale - 0.5;
    }
}

static int64_t clamp(double x, int64_t dim)
{
    return !(x >= 0) ? 0 : x > (double)(dim - 1) ? dim - 1 : (int64_t)x; /* NaN goes to 0 */
}

static double nearest(resize_rounding rounding, double x)
{
    switch (rounding) {
    case PREFER_FLOOR:
        return ceil(x - 0.5);
    case PREFER_CEIL:
        return floor(x + 0.5);
    case FLOOR:
        return floor(x);
    default:
        return ceil(x);
    }
}

/* Weights of the four elements around a point at distance t after the second. */
void mpl_cubic_weights(double a, double t, double weight[4])
{
    weight[0] = ((a * (t + 1) - 5 * a) * (t + 1) + 8 * a) * (t + 1) - 4 * a;
    weight[1] = ((a + 2) * t - (a + 3)) * t * t + 1;
    weight[2] = ((a + 2) * (1 - t) - (a + 3)) * (1 - t) * (1 - t) + 1;
    weight[3] = ((a * (2 - t) - 5 * a) * (2 - t) + 8 * a) * (2 - t) - 4 * a;
}

/* Input elements, next to each other, that make one output element along an axis. */
typedef struct taps {
    int64_t n;
    double low, point;   /* place of the first, and the place that is asked for */
    double near, shrink; /* antialias: weights are divided by `near`, distances are multiplied */
    double weight[4];    /* without antialias */
    bool is_outside;     /* of the region */
} taps;

/* How much an element at distance x weighs. */
static double kernel(const resize_plan *plan, double x)
{
    double weight[4], far = fabs(x);

    if (plan->mode == LINEAR)
        return far < 1 ? 1 - far : 0;
    if (far >= 2)
        return 0;
    mpl_cubic_weights(plan->cubic_a, far - floor(far), weight);
    return weight[far < 1 ? 1 : 0];
}

static bool is_left_out(const resize_plan *plan, uint32_t axis, double place)
{
    return plan->exclude_outside && (place < 0 || place >= (double)plan->in[axis]);
}

static double weight_at(const resize_plan *plan, uint32_t axis, const taps *t, int64_t i)
{
    double place = t->low + (double)i;

    if (t->n == 1 || !plan->antialias)
        return t->n == 1 ? 1 : t->weight[i];
    return is_left_out(plan, axis, place) ? 0
                                          : kernel(plan, (place - t->point) * t->shrink) / t->near;
}

/* Four around the point, or two, or the nearest. */
static void few_taps(const resize_plan *plan, uint32_t axis, taps *t)
{
    double sum = 0;

    t->n = plan->mode == LINEAR ? 2 : 4;
    t->low = floor(t->point);
    if (plan->mode == LINEAR) {
        t->weight[1] = t->point - t->low, t->weight[0] = 1 - t->weight[1];
        return;
    }
    mpl_cubic_weights(plan->cubic_a, t->point - t->low, t->weight);
    t->low--;
    for (int64_t i = 0; i < 4; i++) {
        if (is_left_out(plan, axis, t->low + (double)i))
            t->weight[i] = 0;
        sum += t->weight[i];
    }
    for (int64_t i = 0; i < 4 && plan->exclude_outside; i++)
        t->weight[i] /= sum;
}

/* All within reach of the kernel, which is 1 / scale as wide where the image shrinks. */
static void many_taps(const resize_plan *plan, uint32_t axis, taps *t)
{
    double reach = plan->mode == LINEAR ? 1 : 2, sum = 0;

    t->shrink = plan->scale[axis] < 1 ? plan->scale[axis] : 1;
    t->low = ceil(t->point) - 1 + floor(-reach / t->shrink) + 1;
    t->n = (int64_t)(2 - 2 * (floor(-reach / t->shrink) + 1));
    t->near = 1;
    for (int64_t i = 0; i < t->n; i++)
        sum += weight_at(plan, axis, t, i);
    t->near = sum;
}

static void taps_of(const resize_plan *plan, uint32_t axis, int64_t x, taps *t)
{
    t->point = coordinate(plan, axis, x);
    t->is_outside =
        plan->coordinate == CROP && !(t->point >= 0 && t->point <= (double)(plan->in[axis] - 1));
    if (plan->scale[axis] == 1 && plan->in[axis] == plan->out[axis] && plan->first[axis] == 0 &&
        plan->last[axis] == 1)
        t->n = 1, t->low = (double)x, t->is_outside = false;
    else if (plan->mode == NEAREST)
        t->n = 1, t->low = nearest(plan->rounding, t->point);
    else if (plan->antialias)
        many_taps(plan, axis, t);
    else
        few_taps(plan, axis, t);
}

/* Interpolated value at output index `index`, over axes [axis, rank), starting at element
 * `base`. */
static double sample(const resize_plan *plan, const mpl_tensor *in, const int64_t *index,
                     uint32_t axis, int64_t base)
{
    double sum = 0;
    taps t;

    if (axis == plan->rank)
        return mpl_get(in->type, in->data, base);
    taps_of(plan, axis, index[axis], &t);
    if (t.is_outside)
        return plan->outside;
    for (int64_t i = 0; i < t.n; i++) {
        double weight = weight_at(plan, axis, &t, i);
        int64_t at = clamp(t.low + (double)i, plan->in[axis]);

        if (t.n == 1)
            return sample(plan, in, index, axis + 1, base + at * plan->stride[axis]);
        if (weight != 0)
            sum += weight * sample(plan, in, index, axis + 1, base + at * plan->stride[axis]);
    }
    return sum;
}

/* The nearest element, of any type, copied by size. */
static void copy_nearest(const resize_plan *plan, const mpl_op_call *call, const int64_t *index,
                         int64_t i)
{
    uint32_t bytes = mpl_type_bytes(call->in[0].type);
    bool is_outside = false;
    int64_t base = 0;
    taps t;

    for (uint32_t axis = 0; axis < plan->rank; axis++) {
        taps_of(plan, axis, index[axis], &t);
        is_outside = is_outside || t.is_outside;
        base += clamp(t.low, plan->in[axis]) * plan->stride[axis];
    }
    if (is_outside)
        mpl_put(call->out[0].type, call->out[0].data, i, plan->outside);
    else
        memcpy((char *)call->out[0].data + i * bytes, (const char *)call->in[0].data + base * bytes,
               bytes);
}

mpl_status mpl_eval_resize(mpl_ctx *ctx, const mpl_op_call *call)
{
    const mpl_shape *to = &call->out[0].shape;
    int64_t index[MPL_MAX_RANK] = {0}, i = 0;
    resize_plan plan;

    MPL_PASS(plan_of(ctx, call->graph, call->op, &call->in[0].shape, &plan));
    if (mpl_count(to) == 0)
        return MPL_OK;
    do {
        if (plan.mode == NEAREST)
            copy_nearest(&plan, call, index, i);
        else
            mpl_put(call->out[0].type, call->out[0].data, i,
                    sample(&plan, &call->in[0], index, 0, 0));
        i++;
    } while (mpl_step(to->dim, to->rank, index, 0, NULL, NULL));
    return MPL_OK;
}

/* ---- for backends ---- */

mpl_status mpl_resize_taps(mpl_ctx *ctx, const mpl_graph *g, mpl_op op, uint32_t axis,
                           mpl_resize_axis *out)
{
    mpl_resize_axis a = {.most = 1};
    resize_plan plan;
    taps t;

    MPL_PASS(plan_of(ctx, g, op, &g->value_shape[mpl_op_input(g, op, 0)], &plan));
    if (plan.coordinate == CROP)
        return MPL_OK;
    a.n = plan.out[axis];
    for (int64_t x = 0; x < a.n; x++) {
        taps_of(&plan, axis, x, &t);
        a.most = t.n > a.most ? t.n : a.most;
    }
    if (a.n == 0 || a.most > INT32_MAX / a.n)
        return MPL_OK;
    MPL_PASS(mpl_new(ctx, a.at, (size_t)(a.n * a.most)));
    if (mpl_new(ctx, a.weight, (size_t)(a.n * a.most)) != MPL_OK) {
        mpl_free(ctx, a.at);
        return MPL_EMEM;
    }
    for (int64_t x = 0; x < a.n; x++) {
        taps_of(&plan, axis, x, &t);
        for (int64_t i = 0; i < a.most; i++) {
            a.at[x * a.most + i] = clamp(t.low + (double)(i < t.n ? i : 0), plan.in[axis]);
            a.weight[x * a.most + i] = i < t.n ? (float)weight_at(&plan, axis, &t, i) : 0;
        }
    }
    *out = a;
    return MPL_OK;
}
