/* resize.c -- resize: nearest, linear and cubic along each axis as in ONNX; no antialiasing, no
 * region of interest.
 *
 * An axis has `sizes` (output elements) or `scales` (output over input). With both, sizes give the
 * dims and scales the coordinates, as for "keep the aspect ratio". Both apply to `axes`, or to all
 * axes if absent. */
#include "graphs/ops/move/move_priv.h"

#include <math.h>

typedef enum resize_mode { NEAREST, LINEAR, CUBIC, N_RESIZE_MODES } resize_mode;
typedef enum resize_coordinate {
    HALF_PIXEL,
    HALF_PIXEL_SYMMETRIC,
    PYTORCH_HALF_PIXEL,
    ALIGN_CORNERS,
    ASYMMETRIC,
    TF_HALF_PIXEL,
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
    "half_pixel",    "half_pixel_symmetric", "pytorch_half_pixel",
    "align_corners", "asymmetric",           "tf_half_pixel_for_nn"};
static const char *const rounding_names[N_ROUNDINGS] = {"round_prefer_floor", "round_prefer_ceil",
                                                        "floor", "ceil"};

typedef struct resize_plan {
    uint32_t rank;
    resize_mode mode;
    resize_coordinate coordinate;
    resize_rounding rounding;
    double cubic_a;
    bool exclude_outside;
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
        want = n_sizes > 0 ? (double)sizes[i] : floor((double)plan->in[axis] * scale);
        if (plan->in[axis] == 0 && want == 0)
            scale = 1;
        if (!(scale > 0 || want == 0) || !(scale < most) || !(want >= 0 && want < most) ||
            (plan->in[axis] == 0 && want > 0))
            return MPL_REFUSE(ctx, "axis %u of %" PRId64 " elements cannot be scaled by %g to %g",
                              axis, plan->in[axis], scale, want);
        plan->scale[axis] = scale;
        plan->out[axis] = (int64_t)want;
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
    for (uint32_t i = 0; i < in->rank; i++) {
        plan->in[i] = plan->out[i] = in->dim[i];
        plan->scale[i] = 1;
    }
    mpl_strides(in, plan->stride);
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

/* Input elements and weights that make output element x along an axis; returns their number. */
static int taps(const resize_plan *plan, uint32_t axis, int64_t x, int64_t at[4], double weight[4])
{
    int64_t dim = plan->in[axis];
    double point = coordinate(plan, axis, x), low, sum = 0;

    if (plan->scale[axis] == 1 && dim == plan->out[axis])
        return at[0] = x, weight[0] = 1, 1;
    if (plan->mode == NEAREST)
        return at[0] = clamp(nearest(plan->rounding, point), dim), weight[0] = 1, 1;
    low = floor(point);
    if (plan->mode == LINEAR) {
        at[0] = clamp(low, dim), at[1] = clamp(low + 1, dim);
        weight[1] = point - low, weight[0] = 1 - weight[1];
        return 2;
    }
    mpl_cubic_weights(plan->cubic_a, point - low, weight);
    for (int i = 0; i < 4; i++) {
        double place = low - 1 + i;

        if (plan->exclude_outside && (place < 0 || place >= (double)dim))
            weight[i] = 0;
        at[i] = clamp(place, dim);
        sum += weight[i];
    }
    for (int i = 0; i < 4 && plan->exclude_outside; i++)
        weight[i] /= sum;
    return 4;
}

/* Interpolated value at output index `index`, over axes [axis, rank), starting at element
 * `base`. */
static double sample(const resize_plan *plan, const mpl_tensor *in, const int64_t *index,
                     uint32_t axis, int64_t base)
{
    int64_t at[4];
    double weight[4], sum = 0;
    int n;

    if (axis == plan->rank)
        return mpl_get(in->type, in->data, base);
    n = taps(plan, axis, index[axis], at, weight);
    if (n == 1)
        return sample(plan, in, index, axis + 1, base + at[0] * plan->stride[axis]);
    for (int i = 0; i < n; i++)
        if (weight[i] != 0)
            sum += weight[i] * sample(plan, in, index, axis + 1, base + at[i] * plan->stride[axis]);
    return sum;
}

mpl_status mpl_eval_resize(mpl_ctx *ctx, const mpl_op_call *call)
{
    const mpl_shape *to = &call->out[0].shape;
    uint32_t bytes = mpl_type_bytes(call->in[0].type);
    int64_t index[MPL_MAX_RANK] = {0}, from[4], i = 0;
    double weight[4];
    resize_plan plan;

    MPL_PASS(plan_of(ctx, call->graph, call->op, &call->in[0].shape, &plan));
    if (mpl_count(to) == 0)
        return MPL_OK;
    do {
        if (plan.mode == NEAREST) { /* any type, copied by size */
            int64_t base = 0;

            for (uint32_t axis = 0; axis < plan.rank; axis++) {
                taps(&plan, axis, index[axis], from, weight);
                base += from[0] * plan.stride[axis];
            }
            memcpy((char *)call->out[0].data + i * bytes,
                   (const char *)call->in[0].data + base * bytes, bytes);
        } else {
            mpl_put(call->out[0].type, call->out[0].data, i,
                    sample(&plan, &call->in[0], index, 0, 0));
        }
        i++;
    } while (mpl_step(to->dim, to->rank, index, 0, NULL, NULL));
    return MPL_OK;
}
