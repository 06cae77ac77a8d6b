/* grad_unary.c -- gradients of element-wise operators, from dy and results y; training dropout. */
#include "graphs/core/rng.h"
#include "graphs/ops/elementwise_priv.h"

#include <math.h>

mpl_status mpl_shape_grad_alike(mpl_ctx *ctx, const mpl_shape_call *call)
{
    char text[200], other[200];

    MPL_PASS(mpl_check_type(ctx, call, 0, MPL_SET_FLOAT));
    MPL_PASS(mpl_check_same_type(ctx, call, 1, 0));
    if (!mpl_shape_equal(call->in_shape[0], call->in_shape[1]))
        return MPL_REFUSE(ctx, "the gradient has dims %s, what it belongs to %s",
                          mpl_shape_text(call->in_shape[0], text),
                          mpl_shape_text(call->in_shape[1], other));
    return mpl_like_input(call, 0, call->in_type[0]);
}

mpl_status mpl_shape_clip_grad(mpl_ctx *ctx, const mpl_shape_call *call)
{
    MPL_PASS(mpl_shape_grad_alike(ctx, call));
    return mpl_check_clip_bounds(ctx, call, 2);
}

/* x is dy, z is y. */
MPL_KERNEL_2(relu_float, float, real, z > 0 ? x : 0)
MPL_KERNEL_2(relu_double, double, real, z > 0 ? x : 0)
MPL_KERNEL_2(sigmoid_float, float, real, x *z *(1 - z))
MPL_KERNEL_2(sigmoid_double, double, real, x *z *(1 - z))
MPL_KERNEL_2(tanh_float, float, real, x *(1 - z * z))
MPL_KERNEL_2(tanh_double, double, real, x *(1 - z * z))
MPL_KERNEL_2(clip_float, float, real, (double)z > s->a && (double)z < s->b ? x : 0)
MPL_KERNEL_2(clip_double, double, real, z > s->a && z < s->b ? x : 0)

static mpl_status pairs(const mpl_op_call *call, const mpl_kernel kernel[MPL_N_ARITH],
                        const mpl_scalars *scalars)
{
    mpl_elementwise(call, 2, mpl_arith_of(call->in[0].type), kernel, false, scalars);
    return MPL_OK;
}

mpl_status mpl_eval_relu_grad(mpl_ctx *ctx, const mpl_op_call *call)
{
    (void)ctx;
    return pairs(call, (const mpl_kernel[MPL_N_ARITH]){relu_float, relu_double, NULL},
                 &(mpl_scalars){0});
}

mpl_status mpl_eval_sigmoid_grad(mpl_ctx *ctx, const mpl_op_call *call)
{
    (void)ctx;
    return pairs(call, (const mpl_kernel[MPL_N_ARITH]){sigmoid_float, sigmoid_double, NULL},
                 &(mpl_scalars){0});
}

mpl_status mpl_eval_tanh_grad(mpl_ctx *ctx, const mpl_op_call *call)
{
    (void)ctx;
    return pairs(call, (const mpl_kernel[MPL_N_ARITH]){tanh_float, tanh_double, NULL},
                 &(mpl_scalars){0});
}

mpl_status mpl_eval_clip_grad(mpl_ctx *ctx, const mpl_op_call *call)
{
    mpl_scalars s = {.a = -INFINITY, .b = INFINITY};

    (void)ctx;
    if (call->n_in > 2 && call->in[2].data != NULL)
        s.a = mpl_get(call->in[2].type, call->in[2].data, 0);
    if (call->n_in > 3 && call->in[3].data != NULL)
        s.b = mpl_get(call->in[3].type, call->in[3].data, 0);
    return pairs(call, (const mpl_kernel[MPL_N_ARITH]){clip_float, clip_double, NULL}, &s);
}

/* ---- dropout: kept values are divided by the kept fraction, to preserve the expected sum ---- */

static mpl_status read_ratio(mpl_ctx *ctx, const mpl_graph *g, mpl_op op, double *ratio)
{
    *ratio = mpl_attr_float(g, op, MPL_ATTR_ratio, 0.5);
    if (!(*ratio >= 0 && *ratio < 1))
        return MPL_REFUSE(ctx, "ratio %g is outside [0,1)", *ratio);
    return MPL_OK;
}

mpl_status mpl_shape_dropout_train(mpl_ctx *ctx, const mpl_shape_call *call)
{
    double ratio;

    MPL_PASS(mpl_check_type(ctx, call, 0, MPL_SET_FLOAT));
    MPL_PASS(read_ratio(ctx, call->graph, call->op, &ratio));
    if (call->n_in > 1 && call->in_shape[1] != NULL) {
        MPL_PASS(mpl_check_type(ctx, call, 1, MPL_SET(i64)));
        if (mpl_count(call->in_shape[1]) != 1)
            return MPL_REFUSE(ctx, "the number of the run is one element");
    }
    mpl_like_input(call, 0, call->in_type[0]);
    return mpl_like_input(call, 1, MPL_TYPE_bool);
}

mpl_status mpl_shape_dropout_grad(mpl_ctx *ctx, const mpl_shape_call *call)
{
    double ratio;

    MPL_PASS(mpl_check_type(ctx, call, 0, MPL_SET_FLOAT));
    MPL_PASS(mpl_check_type(ctx, call, 1, MPL_SET(bool)));
    MPL_PASS(read_ratio(ctx, call->graph, call->op, &ratio));
    if (!mpl_shape_equal(call->in_shape[0], call->in_shape[1]))
        return MPL_REFUSE(ctx, "gradient and mask must have the same dims");
    return mpl_like_input(call, 0, call->in_type[0]);
}

MPL_INLINE void drop(mpl_type type, int64_t n, double ratio, const void *x, const uint8_t *mask,
                     void *y)
{
    for (int64_t i = 0; i < n; i++)
        mpl_put(type, y, i, mask[i] ? mpl_get(type, x, i) / (1 - ratio) : 0);
}

/* The mask depends only on seed, run and index, so it is the same for each order and backend. */
mpl_status mpl_eval_dropout_train(mpl_ctx *ctx, const mpl_op_call *call)
{
    int64_t n = mpl_count(&call->in[0].shape);
    uint64_t run =
        call->n_in > 1 && call->in[1].data != NULL ? *(const uint64_t *)call->in[1].data : 0;
    uint8_t *mask = call->out[1].data;
    double ratio;
    mpl_rng rng;

    MPL_PASS(read_ratio(ctx, call->graph, call->op, &ratio));
    rng = mpl_rng_of((uint64_t)mpl_attr_int(call->graph, call->op, MPL_ATTR_seed, 0));
    rng = mpl_rng_of(mpl_rng_next(&rng) ^ run);
    rng = mpl_rng_of(mpl_rng_next(&rng));
    for (int64_t i = 0; i < n; i++)
        mask[i] = (double)mpl_rng_float(&rng) >= ratio;
    MPL_FOR_FLOAT(call->in[0].type, drop, n, ratio, call->in[0].data, mask, call->out[0].data)
    return MPL_OK;
}

mpl_status mpl_eval_dropout_grad(mpl_ctx *ctx, const mpl_op_call *call)
{
    double ratio;

    MPL_PASS(read_ratio(ctx, call->graph, call->op, &ratio));
    MPL_FOR_FLOAT(call->in[0].type, drop, mpl_count(&call->in[0].shape), ratio, call->in[0].data,
                  call->in[1].data, call->out[0].data)
    return MPL_OK;
}
