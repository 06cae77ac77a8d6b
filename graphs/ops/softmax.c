/* softmax.c -- softmax, log_softmax and hardmax along one axis, also in place. */
#include "graphs/ops/lanes_priv.h"

#include <math.h>

mpl_status mpl_shape_softmax(mpl_ctx *ctx, const mpl_shape_call *call)
{
    uint32_t axis;

    MPL_PASS(mpl_check_type(ctx, call, 0, MPL_SET_FLOAT));
    MPL_PASS(mpl_axis_attr(ctx, call, -1, call->in_shape[0]->rank, &axis));
    return mpl_like_input(call, 0, call->in_type[0]);
}

/* m adjacent lanes; the first begins at `base`. */
typedef struct block {
    int64_t base, n, inner, m;
} block;

/* Largest element of each lane and its first position; NaN counts as largest. */
MPL_INLINE void find_largest(mpl_type type, const void *x, block b, double *most, int64_t *where)
{
    for (int64_t j = 0; j < b.m; j++) {
        most[j] = mpl_get(type, x, b.base + j);
        where[j] = 0;
    }
    for (int64_t i = 1; i < b.n; i++)
        for (int64_t j = 0; j < b.m; j++) {
            double v = mpl_get(type, x, b.base + i * b.inner + j);

            if (v > most[j] || (v != v && most[j] == most[j])) {
                most[j] = v;
                where[j] = i;
            }
        }
}

MPL_INLINE void softmax_block(mpl_type type, const void *x, void *y, block b)
{
    /* A 16-bit output cannot hold intermediate exponentials; they are recomputed. */
    bool wide = type == MPL_TYPE_f32 || type == MPL_TYPE_f64;
    double most[MPL_BLOCK], sum[MPL_BLOCK] = {0};
    int64_t where[MPL_BLOCK];

    find_largest(type, x, b, most, where);
    for (int64_t i = 0; i < b.n; i++)
        for (int64_t j = 0; j < b.m; j++) {
            int64_t at = b.base + i * b.inner + j;
            double e = exp(mpl_get(type, x, at) - most[j]);

            sum[j] += e;
            if (wide)
                mpl_put(type, y, at, e);
        }
    for (int64_t i = 0; i < b.n; i++)
        for (int64_t j = 0; j < b.m; j++) {
            int64_t at = b.base + i * b.inner + j;
            double e = wide ? mpl_get(type, y, at) : exp(mpl_get(type, x, at) - most[j]);

            mpl_put(type, y, at, e / sum[j]);
        }
}

MPL_INLINE void log_softmax_block(mpl_type type, const void *x, void *y, block b)
{
    double most[MPL_BLOCK], sum[MPL_BLOCK] = {0};
    int64_t where[MPL_BLOCK];

    find_largest(type, x, b, most, where);
    for (int64_t i = 0; i < b.n; i++)
        for (int64_t j = 0; j < b.m; j++)
            sum[j] += exp(mpl_get(type, x, b.base + i * b.inner + j) - most[j]);
    for (int64_t j = 0; j < b.m; j++)
        sum[j] = log(sum[j]);
    for (int64_t i = 0; i < b.n; i++)
        for (int64_t j = 0; j < b.m; j++) {
            int64_t at = b.base + i * b.inner + j;

            mpl_put(type, y, at, mpl_get(type, x, at) - most[j] - sum[j]);
        }
}

MPL_INLINE void hardmax_block(mpl_type type, const void *x, void *y, block b)
{
    double most[MPL_BLOCK];
    int64_t where[MPL_BLOCK];

    find_largest(type, x, b, most, where);
    for (int64_t i = 0; i < b.n; i++)
        for (int64_t j = 0; j < b.m; j++)
            mpl_put(type, y, b.base + i * b.inner + j, i == where[j] ? 1 : 0);
}

static void softmax_of(mpl_type type, const void *x, void *y, block b)
{
    MPL_FOR_FLOAT(type, softmax_block, x, y, b)
}

static void log_softmax_of(mpl_type type, const void *x, void *y, block b)
{
    MPL_FOR_FLOAT(type, log_softmax_block, x, y, b)
}

static void hardmax_of(mpl_type type, const void *x, void *y, block b)
{
    MPL_FOR_FLOAT(type, hardmax_block, x, y, b)
}

static mpl_status along_axis(const mpl_op_call *call,
                             void (*run)(mpl_type type, const void *x, void *y, block b))
{
    const mpl_tensor *in = &call->in[0];
    mpl_lanes lanes = mpl_lanes_of(&in->shape, mpl_axis_of(call, -1, in->shape.rank));

    if (mpl_count(&in->shape) == 0)
        return MPL_OK;
    for (int64_t o = 0; o < lanes.outer; o++)
        for (int64_t j = 0; j < lanes.inner; j += MPL_BLOCK) {
            int64_t m = lanes.inner - j < MPL_BLOCK ? lanes.inner - j : MPL_BLOCK;

            run(in->type, in->data, call->out[0].data,
                (block){.base = o * lanes.n * lanes.inner + j,
                        .n = lanes.n,
                        .inner = lanes.inner,
                        .m = m});
        }
    return MPL_OK;
}

mpl_status mpl_eval_softmax(mpl_ctx *ctx, const mpl_op_call *call)
{
    (void)ctx;
    return along_axis(call, softmax_of);
}

mpl_status mpl_eval_log_softmax(mpl_ctx *ctx, const mpl_op_call *call)
{
    (void)ctx;
    return along_axis(call, log_softmax_of);
}

mpl_status mpl_eval_hardmax(mpl_ctx *ctx, const mpl_op_call *call)
{
    (void)ctx;
    return along_axis(call, hardmax_of);
}
