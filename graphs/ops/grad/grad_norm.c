/* grad_norm.c -- training batch norm and its gradient; gradients of lrn and softmax.
 *
 * Batch norm: S. Ioffe, C. Szegedy, "Batch Normalization", 2015, algorithm 1 and the equations of
 * section 3. The variance is the batch's, divided by n as in ONNX, also in the running variance.
 * Sums are in double, over the batch, then over the positions of a channel. */
#include "graphs/ops/lanes_priv.h"

#include <math.h>

/* ---- batch norm ---- */

/* Checks for at least two dims, and one element a channel in the inputs from `first` on. */
static mpl_status check_channels(mpl_ctx *ctx, const mpl_shape_call *call, uint32_t first)
{
    MPL_PASS(mpl_check_type(ctx, call, 0, MPL_SET_FLOAT));
    MPL_PASS(mpl_check_rank(ctx, call, 0, 2, MPL_MAX_RANK));
    return mpl_check_channels(ctx, call, first);
}

/* Checks common to both forms of training batch norm. */
static mpl_status check_batch(mpl_ctx *ctx, const mpl_shape_call *call)
{
    MPL_PASS(check_channels(ctx, call, 1));
    if (mpl_count(call->in_shape[0]) == 0)
        return MPL_REFUSE(ctx, "a batch without elements has no mean");
    return mpl_like_input(call, 0, call->in_type[0]);
}

mpl_status mpl_shape_batch_norm_train(mpl_ctx *ctx, const mpl_shape_call *call)
{
    MPL_PASS(check_batch(ctx, call));
    for (uint32_t i = 1; i < 5; i++) {
        call->out_shape[i] = *call->in_shape[i];
        call->out_type[i] = call->in_type[i < 3 ? i + 2 : i];
    }
    return MPL_OK;
}

mpl_status mpl_shape_batch_norm_again(mpl_ctx *ctx, const mpl_shape_call *call)
{
    MPL_PASS(check_batch(ctx, call));
    for (uint32_t i = 1; i < 3; i++) {
        call->out_shape[i] = *call->in_shape[1];
        call->out_type[i] = call->in_type[1];
    }
    return MPL_OK;
}

mpl_status mpl_shape_batch_norm_grad(mpl_ctx *ctx, const mpl_shape_call *call)
{
    MPL_PASS(check_channels(ctx, call, 2));
    MPL_PASS(mpl_check_same_type(ctx, call, 1, 0));
    if (!mpl_shape_equal(call->in_shape[0], call->in_shape[1]))
        return MPL_REFUSE(ctx, "gradient and input must have the same dims");
    mpl_like_input(call, 0, call->in_type[0]);
    for (uint32_t i = 1; i < 3; i++) {
        call->out_shape[i] = *call->in_shape[2];
        call->out_type[i] = call->in_type[2];
    }
    return MPL_OK;
}

/* Channel c of [batch, channels, inner]. */
typedef struct channel {
    int64_t batch, channels, inner, c;
} channel;

static channel channel_of(const mpl_shape *shape, int64_t c)
{
    return (channel){shape->dim[0], shape->dim[1], mpl_count_dims(shape, 2, shape->rank), c};
}

#define EACH_OF_CHANNEL(k, at)                                                                     \
    for (int64_t n_ = 0; n_ < (k).batch; n_++)                                                     \
        for (int64_t at = (n_ * (k).channels + (k).c) * (k).inner, end_ = at + (k).inner;          \
             at < end_; at++)

MPL_INLINE void channel_moments(mpl_type type, channel k, const void *x, double *mean,
                                double *variance)
{
    double sum = 0, squares = 0, n = (double)(k.batch * k.inner);

    EACH_OF_CHANNEL(k, at)
    sum += mpl_get(type, x, at);
    *mean = sum / n;
    EACH_OF_CHANNEL(k, at)
    {
        double distance = mpl_get(type, x, at) - *mean;

        squares += distance * distance;
    }
    *variance = squares / n;
}

MPL_INLINE void channel_affine(mpl_type type, channel k, const void *x, void *y, double mean,
                               double factor, double bias)
{
    EACH_OF_CHANNEL(k, at)
    mpl_put(type, y, at, (mpl_get(type, x, at) - mean) * factor + bias);
}

static double element(const mpl_tensor *tensor, int64_t i)
{
    return mpl_get(tensor->type, tensor->data, i);
}
static void set(const mpl_tensor *tensor, int64_t i, double x)
{
    mpl_put(tensor->type, tensor->data, i, x);
}

/* Normalises channel c into output 0; also returns its batch mean and variance. */
static void normalise_channel(const mpl_op_call *call, int64_t c, double moment[2])
{
    const mpl_tensor *in = call->in;
    double epsilon = mpl_attr_float(call->graph, call->op, MPL_ATTR_epsilon, 1e-5);
    channel k = channel_of(&in[0].shape, c);

    MPL_FOR_FLOAT(in[0].type, channel_moments, k, in[0].data, &moment[0], &moment[1])
    MPL_FOR_FLOAT(in[0].type, channel_affine, k, in[0].data, call->out[0].data, moment[0],
                  element(&in[1], c) / sqrt(moment[1] + epsilon), element(&in[2], c))
    for (uint32_t i = 0; i < 2; i++)
        set(&call->out[1 + i], c, moment[i]);
}

mpl_status mpl_eval_batch_norm_train(mpl_ctx *ctx, const mpl_op_call *call)
{
    const mpl_tensor *in = call->in, *out = call->out;
    double momentum = mpl_attr_float(call->graph, call->op, MPL_ATTR_momentum, 0.9);

    (void)ctx;
    for (int64_t c = 0; c < in[0].shape.dim[1]; c++) {
        double moment[2] = {0};

        normalise_channel(call, c, moment);
        for (uint32_t i = 0; i < 2; i++)
            set(&out[3 + i], c, momentum * element(&in[3 + i], c) + (1 - momentum) * moment[i]);
    }
    return MPL_OK;
}

mpl_status mpl_eval_batch_norm_again(mpl_ctx *ctx, const mpl_op_call *call)
{
    (void)ctx;
    for (int64_t c = 0; c < call->in[0].shape.dim[1]; c++) {
        double moment[2] = {0};

        normalise_channel(call, c, moment);
    }
    return MPL_OK;
}

/* Channel sums of dy, and of dy times the normalised x. */
MPL_INLINE void channel_sums(mpl_type type, channel k, const void *dy, const void *x, double mean,
                             double inverse, double sum[2])
{
    EACH_OF_CHANNEL(k, at)
    {
        sum[0] += mpl_get(type, dy, at);
        sum[1] += mpl_get(type, dy, at) * (mpl_get(type, x, at) - mean) * inverse;
    }
}

MPL_INLINE void channel_gradient(mpl_type type, channel k, const void *dy, const void *x, void *dx,
                                 double mean, double inverse, double scale, const double sum[2])
{
    double n = (double)(k.batch * k.inner);

    EACH_OF_CHANNEL(k, at)
    {
        double normal = (mpl_get(type, x, at) - mean) * inverse;

        mpl_put(type, dx, at,
                scale * inverse * (mpl_get(type, dy, at) - (sum[0] + normal * sum[1]) / n));
    }
}

mpl_status mpl_eval_batch_norm_grad(mpl_ctx *ctx, const mpl_op_call *call)
{
    const mpl_tensor *in = call->in, *out = call->out;
    double epsilon = mpl_attr_float(call->graph, call->op, MPL_ATTR_epsilon, 1e-5);

    (void)ctx;
    for (int64_t c = 0; c < in[0].shape.dim[1]; c++) {
        channel k = channel_of(&in[0].shape, c);
        double mean = element(&in[3], c), inverse = 1 / sqrt(element(&in[4], c) + epsilon),
               sum[2] = {0};

        MPL_FOR_FLOAT(in[0].type, channel_sums, k, in[0].data, in[1].data, mean, inverse, sum)
        MPL_FOR_FLOAT(in[0].type, channel_gradient, k, in[0].data, in[1].data, out[0].data, mean,
                      inverse, element(&in[2], c), sum)
        set(&out[1], c, sum[1]);
        set(&out[2], c, sum[0]);
    }
    return MPL_OK;
}

/* ---- lrn: y[i] = x[i] / s[i]^beta, s[i] = bias + factor * sum of squares around i ---- */

mpl_status mpl_shape_lrn_grad(mpl_ctx *ctx, const mpl_shape_call *call)
{
    MPL_PASS(mpl_check_type(ctx, call, 0, MPL_SET_FLOAT));
    MPL_PASS(mpl_check_rank(ctx, call, 0, 2, MPL_MAX_RANK));
    MPL_PASS(mpl_check_same_type(ctx, call, 1, 0));
    if (!mpl_shape_equal(call->in_shape[0], call->in_shape[1]))
        return MPL_REFUSE(ctx, "gradient and input must have the same dims");
    if (mpl_attr_int(call->graph, call->op, MPL_ATTR_size, 0) < 1)
        return MPL_REFUSE(ctx, "attribute 'size' must be at least 1");
    return mpl_like_input(call, 0, call->in_type[0]);
}

static int64_t from(int64_t c, int64_t below)
{
    return c > below ? c - below : 0;
}
static int64_t to(int64_t c, int64_t above, int64_t n)
{
    return n - c > above ? c + above + 1 : n;
}

/* s of channel i at a position; `base` is that position in channel 0. */
MPL_INLINE double lrn_sum(mpl_type type, const void *x, int64_t base, mpl_lanes l, int64_t i,
                          const mpl_lrn *how)
{
    double squares = 0;

    for (int64_t k = from(i, how->below); k < to(i, how->above, l.n); k++) {
        double v = mpl_get(type, x, base + k * l.inner);

        squares += v * v;
    }
    return how->bias + how->factor * squares;
}

MPL_INLINE void lrn_place(mpl_type type, const mpl_op_call *call, int64_t base, mpl_lanes l,
                          const mpl_lrn *how)
{
    const void *dy = call->in[0].data, *x = call->in[1].data;

    for (int64_t c = 0; c < l.n; c++) {
        int64_t at = base + c * l.inner;
        double sum = 0;

        /* channels whose sums include c */
        for (int64_t i = from(c, how->above); i < to(c, how->below, l.n); i++) {
            int64_t other = base + i * l.inner;

            sum += mpl_get(type, dy, other) * mpl_get(type, x, other) *
                   pow(lrn_sum(type, x, base, l, i, how), -how->beta - 1);
        }
        mpl_put(type, call->out[0].data, at,
                mpl_get(type, dy, at) * pow(lrn_sum(type, x, base, l, c, how), -how->beta) -
                    2 * how->beta * how->factor * mpl_get(type, x, at) * sum);
    }
}

mpl_status mpl_eval_lrn_grad(mpl_ctx *ctx, const mpl_op_call *call)
{
    mpl_lanes l = mpl_lanes_of(&call->in[0].shape, 1);
    mpl_lrn how = mpl_lrn_of(call->graph, call->op);

    (void)ctx;
    for (int64_t o = 0; o < l.outer * l.inner; o++)
        MPL_FOR_FLOAT(call->in[0].type, lrn_place, call, o / l.inner * l.n * l.inner + o % l.inner,
                      l, &how)
    return MPL_OK;
}

/* ---- softmax: dx = y (dy - sum of dy y), also in place ---- */

mpl_status mpl_shape_softmax_grad(mpl_ctx *ctx, const mpl_shape_call *call)
{
    uint32_t axis;

    MPL_PASS(mpl_check_type(ctx, call, 0, MPL_SET_FLOAT));
    MPL_PASS(mpl_check_same_type(ctx, call, 1, 0));
    MPL_PASS(mpl_axis_attr(ctx, call, -1, call->in_shape[0]->rank, &axis));
    if (!mpl_shape_equal(call->in_shape[0], call->in_shape[1]))
        return MPL_REFUSE(ctx, "gradient and result must have the same dims");
    return mpl_like_input(call, 0, call->in_type[0]);
}

MPL_INLINE void softmax_lane(mpl_type type, const mpl_op_call *call, int64_t base, mpl_lanes l)
{
    const void *dy = call->in[0].data, *y = call->in[1].data;
    double sum = 0;

    for (int64_t i = 0; i < l.n; i++)
        sum += mpl_get(type, dy, base + i * l.inner) * mpl_get(type, y, base + i * l.inner);
    for (int64_t i = 0; i < l.n; i++) {
        int64_t at = base + i * l.inner;

        mpl_put(type, call->out[0].data, at, mpl_get(type, y, at) * (mpl_get(type, dy, at) - sum));
    }
}

mpl_status mpl_eval_softmax_grad(mpl_ctx *ctx, const mpl_op_call *call)
{
    const mpl_shape *shape = &call->in[0].shape;
    mpl_lanes l = mpl_lanes_of(shape, mpl_axis_of(call, -1, shape->rank));

    (void)ctx;
    if (mpl_count(shape) == 0)
        return MPL_OK;
    for (int64_t o = 0; o < l.outer * l.inner; o++)
        MPL_FOR_FLOAT(call->in[0].type, softmax_lane, call,
                      o / l.inner * l.n * l.inner + o % l.inner, l)
    return MPL_OK;
}
