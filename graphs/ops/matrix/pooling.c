/* pooling.c -- max, average and Lp pooling, sliding and global. Sums are in double, in row-major
 * window order, rounded once. A window of padding only has maximum -infinity (integers: the least)
 * at index -1, and average 0. With NaNs the maximum is the first NaN. */
#include "graphs/ops/matrix/window_priv.h"

#include <math.h>

typedef enum pool_kind { MAX_POOL, AVG_POOL, LP_POOL } pool_kind;

/* Accumulator of one window. */
typedef struct pool_window {
    double value;     /* maximum, sum, or sum of powers */
    int64_t count;    /* elements seen */
    int64_t place[3]; /* of the first maximum */
} pool_window;

static mpl_status check_power(mpl_ctx *ctx, const mpl_shape_call *call)
{
    int64_t p = mpl_attr_int(call->graph, call->op, MPL_ATTR_p, 2);

    if (p < 1 || p > 1024)
        return MPL_REFUSE(ctx, "p = %" PRId64 " is outside [1,1024]", p);
    return MPL_OK;
}

static mpl_status shape_pool(mpl_ctx *ctx, const mpl_shape_call *call, mpl_types types)
{
    mpl_window w;

    MPL_PASS(mpl_check_type(ctx, call, 0, types));
    MPL_PASS(mpl_check_rank(ctx, call, 0, 3, 5));
    MPL_PASS(mpl_window_pool(ctx, call->graph, call->op, call->in_shape[0], &w));
    mpl_window_shape(&w, call->in_shape[0]->dim[0], call->in_shape[0]->dim[1], &call->out_shape[0]);
    call->out_type[0] = call->in_type[0];
    return MPL_OK;
}

mpl_status mpl_shape_max_pool(mpl_ctx *ctx, const mpl_shape_call *call)
{
    MPL_PASS(shape_pool(ctx, call, MPL_SET_FLOAT | MPL_SET(i8) | MPL_SET(u8)));
    if (call->n_out > 1) {
        call->out_shape[1] = call->out_shape[0];
        call->out_type[1] = MPL_TYPE_i64;
    }
    return MPL_OK;
}

mpl_status mpl_shape_avg_pool(mpl_ctx *ctx, const mpl_shape_call *call)
{
    return shape_pool(ctx, call, MPL_SET_FLOAT);
}

mpl_status mpl_shape_lp_pool(mpl_ctx *ctx, const mpl_shape_call *call)
{
    MPL_PASS(check_power(ctx, call));
    return shape_pool(ctx, call, MPL_SET_FLOAT);
}

/* Adds element v, at `place`, to a window. */
MPL_INLINE void pool_take(pool_kind kind, double p, double v, int64_t z, int64_t y, int64_t x,
                          pool_window *got)
{
    got->count++;
    if (kind == AVG_POOL)
        got->value += v;
    else if (kind == LP_POOL)
        got->value += pow(fabs(v), p);
    else if (v > got->value || (v != v && got->value == got->value) || got->count == 1)
        got->value = v, got->place[0] = z, got->place[1] = y, got->place[2] = x;
}

/* The window of output element o in the plane starting at element `plane`. */
MPL_INLINE pool_window pool_one(mpl_type type, pool_kind kind, const mpl_window *window, double p,
                                const void *data, int64_t plane, const int64_t o[3])
{
    pool_window got = {0, 0, {-1, -1, -1}};
    int64_t z0 = o[0] * window->stride[0] - window->before[0],
            y0 = o[1] * window->stride[1] - window->before[1];
    int64_t x0 = o[2] * window->stride[2] - window->before[2];

    for (int64_t i = 0; i < window->kernel[0]; i++)
        for (int64_t j = 0; j < window->kernel[1]; j++)
            for (int64_t k = 0; k < window->kernel[2]; k++) {
                int64_t z = z0 + i * window->dilation[0], y = y0 + j * window->dilation[1],
                        x = x0 + k * window->dilation[2];

                if (mpl_is_inside(z, window->in[0]) && mpl_is_inside(y, window->in[1]) &&
                    mpl_is_inside(x, window->in[2]))
                    pool_take(
                        kind, p,
                        mpl_get(type, data, plane + (z * window->in[1] + y) * window->in[2] + x), z,
                        y, x, &got);
            }
    return got;
}

/* Final value of a window, by kind. */
MPL_INLINE double pool_result(mpl_type type, pool_kind kind, double p, const pool_window *got,
                              int64_t divisor)
{
    if (kind == AVG_POOL)
        return divisor > 0 ? got->value / (double)divisor : 0;
    if (kind == LP_POOL)
        return p == 2 ? sqrt(got->value) : p == 1 ? got->value : pow(got->value, 1 / p);
    if (got->count == 0)
        return mpl_type_in(type, MPL_SET_FLOAT) ? -INFINITY : type == MPL_TYPE_i8 ? INT8_MIN : 0;
    return got->value;
}

/* Tensor index of the window's maximum; row-major (order 0) or column-major within the plane. */
static int64_t index_of(const mpl_window *window, int64_t plane, int64_t order,
                        const pool_window *got)
{
    const int64_t *at = got->place;

    if (got->count == 0)
        return -1;
    return plane + (order == 0 ? (at[0] * window->in[1] + at[1]) * window->in[2] + at[2]
                               : (at[2] * window->in[1] + at[1]) * window->in[0] + at[0]);
}

MPL_INLINE void pool_all(mpl_type type, pool_kind kind, const mpl_op_call *call,
                         const mpl_window *window)
{
    double p = (double)mpl_attr_int(call->graph, call->op, MPL_ATTR_p, 2);
    bool padded = mpl_attr_int(call->graph, call->op, MPL_ATTR_count_include_pad, 0) != 0;
    int64_t order = mpl_attr_int(call->graph, call->op, MPL_ATTR_storage_order, 0);
    int64_t n = mpl_count(&call->out[0].shape), o[3] = {0}, plane = 0;
    int64_t *index = call->n_out > 1 ? call->out[1].data : NULL;

    for (int64_t at = 0; at < n; at++) {
        pool_window got = pool_one(type, kind, window, p, call->in[0].data, plane, o);

        mpl_put(type, call->out[0].data, at,
                pool_result(type, kind, p, &got,
                            padded ? mpl_window_padded_count(window, o) : got.count));
        if (index != NULL)
            index[at] = index_of(window, plane, order, &got);
        if (mpl_window_next(window, o))
            plane += window->in[0] * window->in[1] * window->in[2];
    }
}

static mpl_status eval_pool(mpl_ctx *ctx, const mpl_op_call *call, pool_kind kind)
{
    mpl_type type = call->in[0].type;
    mpl_window w;

    MPL_PASS(mpl_window_pool(ctx, call->graph, call->op, &call->in[0].shape, &w));
    if (mpl_type_in(type, MPL_SET_INT)) /* only max pooling has integers */
        MPL_FOR_INT(type, pool_all, MAX_POOL, call, &w)
    else if (kind == MAX_POOL)
        MPL_FOR_FLOAT(type, pool_all, MAX_POOL, call, &w)
    else if (kind == AVG_POOL)
        MPL_FOR_FLOAT(type, pool_all, AVG_POOL, call, &w)
    else
        MPL_FOR_FLOAT(type, pool_all, LP_POOL, call, &w)
    return MPL_OK;
}

mpl_status mpl_eval_max_pool(mpl_ctx *ctx, const mpl_op_call *call)
{
    return eval_pool(ctx, call, MAX_POOL);
}

mpl_status mpl_eval_avg_pool(mpl_ctx *ctx, const mpl_op_call *call)
{
    return eval_pool(ctx, call, AVG_POOL);
}

mpl_status mpl_eval_lp_pool(mpl_ctx *ctx, const mpl_op_call *call)
{
    return eval_pool(ctx, call, LP_POOL);
}

/* ---- global pooling: one window over the whole plane ---- */

mpl_status mpl_shape_global_pool(mpl_ctx *ctx, const mpl_shape_call *call)
{
    MPL_PASS(check_power(ctx, call));
    MPL_PASS(mpl_check_type(ctx, call, 0, MPL_SET_FLOAT));
    MPL_PASS(mpl_check_rank(ctx, call, 0, 2, MPL_MAX_RANK));
    mpl_like_input(call, 0, call->in_type[0]);
    for (uint32_t i = 2; i < call->out_shape[0].rank; i++)
        call->out_shape[0].dim[i] = 1;
    return MPL_OK;
}

MPL_INLINE void pool_planes(mpl_type type, pool_kind kind, const mpl_op_call *call)
{
    const mpl_shape *in = &call->in[0].shape;
    double p = (double)mpl_attr_int(call->graph, call->op, MPL_ATTR_p, 2);
    int64_t plane = mpl_count_dims(in, 2, in->rank);

    for (int64_t c = 0; c < mpl_count_dims(in, 0, 2); c++) {
        pool_window got = {0, 0, {0}};

        for (int64_t i = 0; i < plane; i++)
            pool_take(kind, p, mpl_get(type, call->in[0].data, c * plane + i), 0, 0, i, &got);
        mpl_put(type, call->out[0].data, c, pool_result(type, kind, p, &got, got.count));
    }
}

mpl_status mpl_eval_global_avg_pool(mpl_ctx *ctx, const mpl_op_call *call)
{
    (void)ctx;
    MPL_FOR_FLOAT(call->in[0].type, pool_planes, AVG_POOL, call)
    return MPL_OK;
}

mpl_status mpl_eval_global_max_pool(mpl_ctx *ctx, const mpl_op_call *call)
{
    (void)ctx;
    MPL_FOR_FLOAT(call->in[0].type, pool_planes, MAX_POOL, call)
    return MPL_OK;
}

mpl_status mpl_eval_global_lp_pool(mpl_ctx *ctx, const mpl_op_call *call)
{
    (void)ctx;
    MPL_FOR_FLOAT(call->in[0].type, pool_planes, LP_POOL, call)
    return MPL_OK;
}
