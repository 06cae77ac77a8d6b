/* grad_pool.c -- gradients of pooling. Overlapping windows accumulate in the element's type, in
 * row-major window order; everything else is rounded once. */
#include "graphs/ops/grad/grad_priv.h"
#include "graphs/ops/matrix/window_priv.h"

/* Checks that dy has the shape of the pool over shape; the output is like shape. */
static mpl_status shape_of(mpl_ctx *ctx, const mpl_shape_call *call, const mpl_shape *shape)
{
    char want[200], got[200];
    mpl_shape y;
    mpl_window w;

    MPL_PASS(mpl_check_type(ctx, call, 0, MPL_SET_FLOAT));
    MPL_PASS(mpl_window_pool(ctx, call->graph, call->op, shape, &w));
    mpl_window_shape(&w, shape->dim[0], shape->dim[1], &y);
    if (!mpl_shape_equal(&y, call->in_shape[0]))
        return MPL_REFUSE(ctx, "the gradient has dims %s; the pool's output has %s",
                          mpl_shape_text(call->in_shape[0], got), mpl_shape_text(&y, want));
    call->out_shape[0] = *shape;
    call->out_type[0] = call->in_type[0];
    return MPL_OK;
}

mpl_status mpl_shape_max_pool_grad(mpl_ctx *ctx, const mpl_shape_call *call)
{
    MPL_PASS(mpl_check_same_type(ctx, call, 1, 0));
    MPL_PASS(mpl_check_rank(ctx, call, 1, 3, 5));
    return shape_of(ctx, call, call->in_shape[1]);
}

mpl_status mpl_shape_avg_pool_grad(mpl_ctx *ctx, const mpl_shape_call *call)
{
    mpl_shape x;

    MPL_PASS(mpl_sizes_of(ctx, call->graph, call->op, &x));
    return shape_of(ctx, call, &x);
}

/* Taps [*from, *to) of output element o along axis i that are inside the input. */
static void taps_inside(const mpl_window *window, int i, int64_t o, int64_t *from, int64_t *to)
{
    int64_t first = o * window->stride[i] - window->before[i];

    *from = first >= 0 ? 0 : (-first + window->dilation[i] - 1) / window->dilation[i];
    *to = first >= window->in[i] ? 0 : (window->in[i] - first - 1) / window->dilation[i] + 1;
    if (*to > window->kernel[i])
        *to = window->kernel[i];
}

/* One window: adds dy to its first largest element (x != NULL), or equal parts of it to all
 * elements. */
MPL_INLINE void spread_one(mpl_type type, const mpl_window *window, bool padded, const int64_t o[3],
                           double dy, const void *x, void *dx, int64_t plane)
{
    int64_t from[3], to[3], best = -1, count = 1;
    double most = 0;

    for (int i = 0; i < 3; i++) {
        taps_inside(window, i, o[i], &from[i], &to[i]);
        count *= to[i] > from[i] ? to[i] - from[i] : 0;
    }
    if (padded)
        count = mpl_window_padded_count(window, o);
    for (int64_t i = from[0]; i < to[0]; i++)
        for (int64_t j = from[1]; j < to[1]; j++)
            for (int64_t k = from[2]; k < to[2]; k++) {
                int64_t z = o[0] * window->stride[0] - window->before[0] + i * window->dilation[0];
                int64_t row = z * window->in[1] + o[1] * window->stride[1] - window->before[1] +
                              j * window->dilation[1];
                int64_t at = plane + row * window->in[2] + o[2] * window->stride[2] -
                             window->before[2] + k * window->dilation[2];
                double v = x != NULL ? mpl_get(type, x, at) : 0;

                if (x == NULL)
                    mpl_put(type, dx, at, mpl_get(type, dx, at) + dy / (double)count);
                else if (best < 0 || v > most)
                    best = at, most = v;
            }
    if (best >= 0)
        mpl_put(type, dx, best, mpl_get(type, dx, best) + dy);
}

MPL_INLINE void spread_all(mpl_type type, const mpl_op_call *call, const mpl_window *window,
                           const void *x)
{
    bool padded = mpl_attr_int(call->graph, call->op, MPL_ATTR_count_include_pad, 0) != 0;
    int64_t n = mpl_count(&call->in[0].shape), o[3] = {0}, plane = 0;

    for (int64_t i = 0; i < mpl_count(&call->out[0].shape); i++)
        mpl_put(type, call->out[0].data, i, 0);
    for (int64_t at = 0; at < n; at++) {
        spread_one(type, window, padded, o, mpl_get(type, call->in[0].data, at), x,
                   call->out[0].data, plane);
        if (mpl_window_next(window, o))
            plane += window->in[0] * window->in[1] * window->in[2];
    }
}

mpl_status mpl_eval_max_pool_grad(mpl_ctx *ctx, const mpl_op_call *call)
{
    mpl_window w;

    MPL_PASS(mpl_window_pool(ctx, call->graph, call->op, &call->in[1].shape, &w));
    if (mpl_count(&call->out[0].shape) > 0)
        MPL_FOR_FLOAT(call->in[0].type, spread_all, call, &w, call->in[1].data)
    return MPL_OK;
}

mpl_status mpl_eval_avg_pool_grad(mpl_ctx *ctx, const mpl_op_call *call)
{
    mpl_window w;

    MPL_PASS(mpl_window_pool(ctx, call->graph, call->op, &call->out[0].shape, &w));
    if (mpl_count(&call->out[0].shape) > 0)
        MPL_FOR_FLOAT(call->in[0].type, spread_all, call, &w, NULL)
    return MPL_OK;
}

mpl_status mpl_shape_global_avg_pool_grad(mpl_ctx *ctx, const mpl_shape_call *call)
{
    const mpl_shape *dy = call->in_shape[0];
    mpl_shape x;
    bool fits;

    MPL_PASS(mpl_check_type(ctx, call, 0, MPL_SET_FLOAT));
    MPL_PASS(mpl_sizes_of(ctx, call->graph, call->op, &x));
    fits = x.rank >= 2 && dy->rank == x.rank;
    for (uint32_t i = 0; fits && i < x.rank; i++)
        fits = dy->dim[i] == (i < 2 ? x.dim[i] : 1);
    if (!fits)
        return MPL_REFUSE(ctx, "attribute 'sizes' does not go with the gradient's dims");
    call->out_shape[0] = x;
    call->out_type[0] = call->in_type[0];
    return MPL_OK;
}

MPL_INLINE void planes_all(mpl_type type, const mpl_op_call *call)
{
    const mpl_shape *shape = &call->out[0].shape;
    int64_t plane = mpl_count_dims(shape, 2, shape->rank);

    for (int64_t i = 0; i < mpl_count(shape); i++)
        mpl_put(type, call->out[0].data, i,
                mpl_get(type, call->in[0].data, i / plane) / (double)plane);
}

mpl_status mpl_eval_global_avg_pool_grad(mpl_ctx *ctx, const mpl_op_call *call)
{
    (void)ctx;
    MPL_FOR_FLOAT(call->in[0].type, planes_all, call)
    return MPL_OK;
}
