/* norm.c -- normalisation over the batch, channels, trailing dims, channel groups, or one axis.
 *
 * Means and variances are in double, in two passes; each output is rounded once. */
#include "graphs/ops/elementwise_priv.h"
#include "graphs/ops/lanes_priv.h"

#include <math.h>

/* ---- shape rules ---- */

static double epsilon_of(const mpl_op_call *call)
{
    return mpl_attr_float(call->graph, call->op, MPL_ATTR_epsilon, 1e-5);
}

/* Checks for at least `least` dims and for the per-channel operands. */
static mpl_status shape_channels(mpl_ctx *ctx, const mpl_shape_call *call, uint32_t least)
{
    MPL_PASS(mpl_check_type(ctx, call, 0, MPL_SET_FLOAT));
    MPL_PASS(mpl_check_rank(ctx, call, 0, least, MPL_MAX_RANK));
    MPL_PASS(mpl_check_channels(ctx, call, 1));
    return mpl_like_input(call, 0, call->in_type[0]);
}

mpl_status mpl_shape_batch_norm(mpl_ctx *ctx, const mpl_shape_call *call)
{
    return shape_channels(ctx, call, 1);
}

mpl_status mpl_shape_lrn(mpl_ctx *ctx, const mpl_shape_call *call)
{
    int64_t size = mpl_attr_int(call->graph, call->op, MPL_ATTR_size, 0);

    MPL_PASS(mpl_check_type(ctx, call, 0, MPL_SET_FLOAT));
    MPL_PASS(mpl_check_rank(ctx, call, 0, 2, MPL_MAX_RANK));
    if (size < 1)
        return MPL_REFUSE(ctx, "attribute 'size' is %" PRId64 "; it must be at least 1", size);
    return mpl_like_input(call, 0, call->in_type[0]);
}

/* Scale and bias broadcast to the input; optional outputs mean and inverse deviation are f32, one
 * per row. */
mpl_status mpl_shape_norm_rows(mpl_ctx *ctx, const mpl_shape_call *call)
{
    const mpl_shape *in = call->in_shape[0];
    uint32_t axis = 0;

    MPL_PASS(mpl_check_type(ctx, call, 0, MPL_SET_FLOAT));
    MPL_PASS(mpl_axis_attr(ctx, call, -1, in->rank, &axis));
    for (uint32_t i = 1; i < call->n_in; i++)
        if (call->in_shape[i] != NULL) {
            MPL_PASS(mpl_check_type(ctx, call, i, MPL_SET_FLOAT));
            MPL_PASS(mpl_check_broadcast_to(ctx, i == 1 ? "the scale" : "the bias",
                                            call->in_shape[i], in));
        }
    for (uint32_t i = 0; i < call->n_out; i++) {
        mpl_like_input(call, i, i == 0 ? call->in_type[0] : MPL_TYPE_f32);
        for (uint32_t k = axis; k < in->rank && i > 0; k++)
            call->out_shape[i].dim[k] = 1;
    }
    return MPL_OK;
}

mpl_status mpl_shape_instance_norm(mpl_ctx *ctx, const mpl_shape_call *call)
{
    return shape_channels(ctx, call, 3);
}

mpl_status mpl_shape_group_norm(mpl_ctx *ctx, const mpl_shape_call *call)
{
    int64_t groups = mpl_attr_int(call->graph, call->op, MPL_ATTR_num_groups, 0);

    MPL_PASS(mpl_check_type(ctx, call, 0, MPL_SET_FLOAT));
    MPL_PASS(mpl_check_rank(ctx, call, 0, 2, MPL_MAX_RANK));
    if (groups < 1 || call->in_shape[0]->dim[1] % groups != 0)
        return MPL_REFUSE(
            ctx, "attribute 'num_groups' is %" PRId64 "; it must divide the %" PRId64 " channels",
            groups, call->in_shape[0]->dim[1]);
    MPL_PASS(mpl_check_channels(ctx, call, 1));
    return mpl_like_input(call, 0, call->in_type[0]);
}

mpl_status mpl_shape_lp_norm(mpl_ctx *ctx, const mpl_shape_call *call)
{
    int64_t p = mpl_attr_int(call->graph, call->op, MPL_ATTR_p, 2);
    uint32_t axis;

    MPL_PASS(mpl_check_type(ctx, call, 0, MPL_SET_FLOAT));
    MPL_PASS(mpl_axis_attr(ctx, call, -1, call->in_shape[0]->rank, &axis));
    if (p != 1 && p != 2)
        return MPL_REFUSE(ctx, "attribute 'p' is %" PRId64 "; it must be 1 or 2", p);
    return mpl_like_input(call, 0, call->in_type[0]);
}

/* Default: all axes but the channels of an image; a tensor of fewer dims must name its axes. */
static mpl_status mean_variance_axes(mpl_ctx *ctx, const mpl_graph *g, mpl_op op, uint32_t rank,
                                     uint32_t *set)
{
    *set = 0;
    MPL_PASS(mpl_axes_of(ctx, g, op, rank, 1u << 0 | 1u << 2 | 1u << 3, set));
    if (*set >> rank != 0)
        return MPL_REFUSE(
            ctx, "attribute 'axes' is missing; its default, 0, 2 and 3, needs 4 dims, not %u",
            rank);
    return MPL_OK;
}

mpl_status mpl_shape_mean_variance_norm(mpl_ctx *ctx, const mpl_shape_call *call)
{
    uint32_t set;

    MPL_PASS(mpl_check_type(ctx, call, 0, MPL_SET_FLOAT));
    MPL_PASS(mean_variance_axes(ctx, call->graph, call->op, call->in_shape[0]->rank, &set));
    return mpl_like_input(call, 0, call->in_type[0]);
}

/* ---- affine maps of contiguous runs ---- */

/* y = (x - mean) * factor + bias for n adjacent elements. */
MPL_INLINE void affine_run(mpl_type type, const void *x, void *y, int64_t at, int64_t n,
                           double mean, double factor, double bias)
{
    for (int64_t k = at; k < at + n; k++)
        mpl_put(type, y, k, (mpl_get(type, x, k) - mean) * factor + bias);
}

static void affine(const mpl_tensor *in, const mpl_tensor *out, int64_t at, int64_t n, double mean,
                   double factor, double bias){
    MPL_FOR_FLOAT(in->type, affine_run, in->data, out->data, at, n, mean, factor, bias)}

/* out[0] = mean, out[1] = mean squared distance from `centre` (NULL: from the mean). */
MPL_INLINE void moments_run(mpl_type type, const void *x, int64_t at, int64_t n,
                            const double *centre, double *mean, double *variance)
{
    double sum = 0, squares = 0, middle;

    for (int64_t k = at; k < at + n && centre == NULL; k++)
        sum += mpl_get(type, x, k);
    middle = centre != NULL ? *centre : sum / (double)n;
    for (int64_t k = at; k < at + n; k++) {
        double distance = mpl_get(type, x, k) - middle;

        squares += distance * distance;
    }
    *mean = middle;
    *variance = squares / (double)n;
}

static void moments(const mpl_tensor *in, int64_t at, int64_t n, const double *centre, double *mean,
                    double *variance){
    MPL_FOR_FLOAT(in->type, moments_run, in->data, at, n, centre, mean, variance)}

/* ---- batch_norm, instance_norm, group_norm ---- */

mpl_status mpl_eval_batch_norm(mpl_ctx *ctx, const mpl_op_call *call)
{
    const mpl_tensor *in = call->in;
    const mpl_shape *shape = &in[0].shape;
    int64_t batch = shape->dim[0], channels = shape->rank == 1 ? 1 : shape->dim[1];
    int64_t inner = mpl_count_dims(shape, 2, shape->rank);

    (void)ctx;
    for (int64_t i = 0, at = 0; i < batch; i++)
        for (int64_t c = 0; c < channels; c++, at += inner) {
            double factor = mpl_get(in[1].type, in[1].data, c) /
                            sqrt(mpl_get(in[4].type, in[4].data, c) + epsilon_of(call));

            affine(&in[0], &call->out[0], at, inner, mpl_get(in[3].type, in[3].data, c), factor,
                   mpl_get(in[2].type, in[2].data, c));
        }
    return MPL_OK;
}

/* Each of `groups` groups of adjacent channels has its own mean and variance, each channel its own
 * scale and bias. */
static mpl_status normalise_groups(const mpl_op_call *call, int64_t groups)
{
    const mpl_tensor *in = call->in;
    const mpl_shape *shape = &in[0].shape;
    int64_t inner = mpl_count_dims(shape, 2, shape->rank), width;

    if (mpl_count(shape) == 0)
        return MPL_OK;
    width = shape->dim[1] / groups;
    for (int64_t i = 0, at = 0; i < shape->dim[0]; i++)
        for (int64_t g = 0; g < groups; g++) {
            double mean = 0, variance = 0;

            moments(&in[0], at, width * inner, NULL, &mean, &variance);
            for (int64_t c = g * width; c < (g + 1) * width; c++, at += inner)
                affine(&in[0], &call->out[0], at, inner, mean,
                       mpl_get(in[1].type, in[1].data, c) / sqrt(variance + epsilon_of(call)),
                       mpl_get(in[2].type, in[2].data, c));
        }
    return MPL_OK;
}

mpl_status mpl_eval_instance_norm(mpl_ctx *ctx, const mpl_op_call *call)
{
    (void)ctx;
    return normalise_groups(call, call->in[0].shape.dim[1]);
}

mpl_status mpl_eval_group_norm(mpl_ctx *ctx, const mpl_op_call *call)
{
    (void)ctx;
    return normalise_groups(call, mpl_attr_int(call->graph, call->op, MPL_ATTR_num_groups, 1));
}

/* ---- layer_norm, rms_norm ---- */

/* Scale or bias along the input rows; a missing operand is the constant `otherwise`. */
typedef struct operand {
    const mpl_tensor *tensor; /* NULL: missing */
    bool repeated;            /* along the run */
    double otherwise;
} operand;

static double operand_at(const operand *self, int64_t at)
{
    return self->tensor == NULL ? self->otherwise
                                : mpl_get(self->tensor->type, self->tensor->data, at);
}

/* One run: y = (x - mean) * inverse * scale + bias. */
MPL_INLINE void scaled_run(mpl_type type, const mpl_op_call *call, int64_t at, int64_t n,
                           double mean, double inverse, const operand *o, const int64_t *offset)
{
    for (int64_t k = 0; k < n; k++) {
        double scale = operand_at(&o[0], offset[0] + (o[0].repeated ? 0 : k));
        double bias = operand_at(&o[1], offset[1] + (o[1].repeated ? 0 : k));

        mpl_put(type, call->out[0].data, at + k,
                (mpl_get(type, call->in[0].data, at + k) - mean) * inverse * scale + bias);
    }
}

/* Normalises each row, dims [axis, rank), about its mean or about 0. Within a run, scale and bias
 * are contiguous or repeated. */
static mpl_status normalise_rows(const mpl_op_call *call, bool about_mean)
{
    const mpl_tensor *in = call->in, *out = call->out;
    const mpl_shape *shape = &in[0].shape;
    const double zero = 0, epsilon = epsilon_of(call);
    uint32_t axis = mpl_axis_of(call, -1, shape->rank), begin = axis;
    int64_t index[MPL_MAX_RANK] = {0}, stride[2][MPL_MAX_RANK] = {{0}}, offset[2] = {0};
    int64_t rows = mpl_count_dims(shape, 0, axis), row = mpl_count_dims(shape, axis, shape->rank),
            run;
    operand o[2] = {{.otherwise = 1}, {.otherwise = 0}};

    for (uint32_t i = 1; i <= 2 && i < call->n_in; i++)
        if (in[i].data != NULL) {
            uint32_t own = mpl_row_begin(&in[i].shape, shape);

            begin = own > begin ? own : begin;
            o[i - 1].tensor = &in[i];
            mpl_broadcast_strides(&in[i].shape, shape, stride[i - 1]);
        }
    for (uint32_t i = 0; i < 2; i++)
        o[i].repeated = o[i].tensor != NULL && mpl_row_repeated(&o[i].tensor->shape, shape, begin);
    run = mpl_count_dims(shape, begin, shape->rank);
    for (int64_t r = 0; r < rows; r++) {
        double mean = 0, variance = 0, inverse;

        moments(&in[0], r * row, row, about_mean ? NULL : &zero, &mean, &variance);
        inverse = 1 / sqrt(variance + epsilon);
        for (uint32_t i = 1; i < call->n_out; i++)
            if (out[i].data != NULL)
                mpl_put(out[i].type, out[i].data, r, i == 1 ? mean : inverse);
        for (int64_t at = r * row; at < (r + 1) * row; at += run) {
            MPL_FOR_FLOAT(in[0].type, scaled_run, call, at, run, mean, inverse, o, offset)
            mpl_step(shape->dim, begin, index, 2, (const int64_t(*)[MPL_MAX_RANK])stride, offset);
        }
    }
    return MPL_OK;
}

mpl_status mpl_eval_layer_norm(mpl_ctx *ctx, const mpl_op_call *call)
{
    (void)ctx;
    return normalise_rows(call, true);
}

mpl_status mpl_eval_rms_norm(mpl_ctx *ctx, const mpl_op_call *call)
{
    (void)ctx;
    return normalise_rows(call, false);
}

/* ---- lrn, lp_norm ---- */

mpl_lrn mpl_lrn_of(const mpl_graph *g, mpl_op op)
{
    int64_t size = mpl_attr_int(g, op, MPL_ATTR_size, 1);

    return (mpl_lrn){.factor = mpl_attr_float(g, op, MPL_ATTR_alpha, 1e-4) / (double)size,
                     .beta = mpl_attr_float(g, op, MPL_ATTR_beta, 0.75),
                     .bias = mpl_attr_float(g, op, MPL_ATTR_bias, 1),
                     .below = (size - 1) / 2,
                     .above = size / 2};
}

/* sqrt instead of pow for beta = 3/4, the value in all published networks: pow is ten times
 * slower. */
static double lrn_power(double x, double beta)
{
    double root = sqrt(x);

    return beta == 0.75 ? root * sqrt(root) : pow(x, beta);
}

/* Channel c of m adjacent positions; the first lies at `base` in channel 0. */
MPL_INLINE void lrn_block(mpl_type type, const void *x, void *y, int64_t base, mpl_lanes lanes,
                          int64_t m, int64_t c, const mpl_lrn *how)
{
    int64_t first = c > how->below ? c - how->below : 0;
    int64_t end = lanes.n - c > how->above ? c + how->above + 1 : lanes.n;
    double squares[MPL_BLOCK] = {0};

    for (int64_t i = first; i < end; i++)
        for (int64_t j = 0; j < m; j++) {
            double v = mpl_get(type, x, base + i * lanes.inner + j);

            squares[j] += v * v;
        }
    for (int64_t j = 0; j < m; j++) {
        int64_t at = base + c * lanes.inner + j;

        mpl_put(type, y, at,
                mpl_get(type, x, at) / lrn_power(how->bias + how->factor * squares[j], how->beta));
    }
}

mpl_status mpl_eval_lrn(mpl_ctx *ctx, const mpl_op_call *call)
{
    const mpl_tensor *in = &call->in[0];
    mpl_lanes lanes = mpl_lanes_of(&in->shape, 1);
    mpl_lrn how = mpl_lrn_of(call->graph, call->op);
    void *y = call->out[0].data;

    (void)ctx;
    if (mpl_count(&in->shape) == 0)
        return MPL_OK;
    for (int64_t o = 0; o < lanes.outer; o++)
        for (int64_t j = 0; j < lanes.inner; j += MPL_BLOCK)
            for (int64_t c = 0; c < lanes.n; c++) {
                int64_t base = o * lanes.n * lanes.inner + j;
                int64_t m = lanes.inner - j < MPL_BLOCK ? lanes.inner - j : MPL_BLOCK;

                MPL_FOR_FLOAT(in->type, lrn_block, in->data, y, base, lanes, m, c, &how)
            }
    return MPL_OK;
}

/* m adjacent lanes. A zero lane stays zero. */
MPL_INLINE void lp_norm_block(mpl_type type, const void *x, void *y, int64_t base, mpl_lanes lanes,
                              int64_t m, bool squares)
{
    double norm[MPL_BLOCK] = {0};

    for (int64_t i = 0; i < lanes.n; i++)
        for (int64_t j = 0; j < m; j++) {
            double v = mpl_get(type, x, base + i * lanes.inner + j);

            norm[j] += squares ? v * v : fabs(v);
        }
    for (int64_t j = 0; j < m; j++)
        norm[j] = norm[j] == 0 ? 1 : squares ? sqrt(norm[j]) : norm[j];
    for (int64_t i = 0; i < lanes.n; i++)
        for (int64_t j = 0; j < m; j++) {
            int64_t at = base + i * lanes.inner + j;

            mpl_put(type, y, at, mpl_get(type, x, at) / norm[j]);
        }
}

mpl_status mpl_eval_lp_norm(mpl_ctx *ctx, const mpl_op_call *call)
{
    const mpl_tensor *in = &call->in[0];
    mpl_lanes lanes = mpl_lanes_of(&in->shape, mpl_axis_of(call, -1, in->shape.rank));
    bool squares = mpl_attr_int(call->graph, call->op, MPL_ATTR_p, 2) == 2;

    (void)ctx;
    if (mpl_count(&in->shape) == 0)
        return MPL_OK;
    for (int64_t o = 0; o < lanes.outer; o++)
        for (int64_t j = 0; j < lanes.inner; j += MPL_BLOCK) {
            int64_t base = o * lanes.n * lanes.inner + j;
            int64_t m = lanes.inner - j < MPL_BLOCK ? lanes.inner - j : MPL_BLOCK;

            MPL_FOR_FLOAT(in->type, lp_norm_block, in->data, call->out[0].data, base, lanes, m,
                          squares)
        }
    return MPL_OK;
}

/* ---- mean_variance_norm ---- */

/* The set of elements normalised together with element `base`. */
MPL_INLINE void mean_variance_set(mpl_type type, const void *x, void *y, int64_t base,
                                  const mpl_dims *reduced)
{
    int64_t index[MPL_MAX_RANK] = {0}, offset = base, n = mpl_dims_count(reduced);
    double sum = 0, squares = 0, deviation;

    do {
        sum += mpl_get(type, x, offset);
    } while (mpl_step(reduced->dim, reduced->rank, index, 1, &reduced->stride, &offset));
    sum /= (double)n;
    do {
        double distance = mpl_get(type, x, offset) - sum;

        squares += distance * distance;
    } while (mpl_step(reduced->dim, reduced->rank, index, 1, &reduced->stride, &offset));
    deviation = sqrt(squares / (double)n) + 1e-9;
    do {
        mpl_put(type, y, offset, (mpl_get(type, x, offset) - sum) / deviation);
    } while (mpl_step(reduced->dim, reduced->rank, index, 1, &reduced->stride, &offset));
}

mpl_status mpl_eval_mean_variance_norm(mpl_ctx *ctx, const mpl_op_call *call)
{
    const mpl_tensor *in = &call->in[0];
    mpl_dims kept, reduced;
    int64_t index[MPL_MAX_RANK] = {0}, base = 0;
    uint32_t set = 0;

    MPL_PASS(mean_variance_axes(ctx, call->graph, call->op, in->shape.rank, &set));
    if (mpl_count(&in->shape) == 0)
        return MPL_OK;
    mpl_split_dims(&in->shape, set, &kept, &reduced);
    do {
        MPL_FOR_FLOAT(in->type, mean_variance_set, in->data, call->out[0].data, base, &reduced)
    } while (mpl_step(kept.dim, kept.rank, index, 1, (const int64_t(*)[MPL_MAX_RANK]) & kept.stride,
                      &base));
    return MPL_OK;
}
