/* grad_conv.c -- gradients of convolutions and matrix products with respect to operands.
 *
 * Each element is one sum in double, rounded once. Order: dx over taps in row-major order, then
 * output channels; dw over the batch, then output elements in row-major order. */
#include "graphs/ops/grad/grad_priv.h"
#include "graphs/ops/matrix/window_priv.h"

/* Shapes of y = conv(x, w); one of them may come from attribute `sizes`. */
typedef struct conv_dims {
    mpl_shape x, w, y;
    int64_t group, in_channels, out_channels; /* channels of one group */
    mpl_window window;
} conv_dims;

mpl_status mpl_sizes_of(mpl_ctx *ctx, const mpl_graph *g, mpl_op op, mpl_shape *out)
{
    uint32_t n;
    const int64_t *sizes = mpl_attr_ints(g, op, MPL_ATTR_sizes, &n);
    uint64_t count;

    if (sizes == NULL || n > MPL_MAX_RANK)
        return MPL_REFUSE(ctx, "attribute 'sizes' is missing or has more than %d dims",
                          MPL_MAX_RANK);
    out->rank = n;
    memcpy(out->dim, sizes, n * sizeof *sizes);
    if (!mpl_shape_count(out, &count))
        return MPL_REFUSE(
            ctx, "attribute 'sizes': a dim is negative, or there are more than 2^63 elements");
    return MPL_OK;
}

/* Computes y and the window from x and w. */
static mpl_status finish_dims(mpl_ctx *ctx, const mpl_graph *g, mpl_op op, conv_dims *dims)
{
    if (dims->x.rank < 3 || dims->x.rank > 5 || dims->w.rank != dims->x.rank)
        return MPL_REFUSE(ctx,
                          "input and kernel have %u and %u dims; they must have the same 3 to 5",
                          dims->x.rank, dims->w.rank);
    dims->group = mpl_attr_int(g, op, MPL_ATTR_group, 1);
    if (dims->group < 1 || dims->w.dim[0] % dims->group != 0 || dims->x.dim[1] % dims->group != 0 ||
        dims->x.dim[1] / dims->group != dims->w.dim[1])
        return MPL_REFUSE(ctx,
                          "%" PRId64 " input channels, weights for %" PRId64 " to %" PRId64
                          " and %" PRId64 " groups do not go together",
                          dims->x.dim[1], dims->w.dim[1], dims->w.dim[0], dims->group);
    dims->in_channels = dims->w.dim[1];
    dims->out_channels = dims->w.dim[0] / dims->group;
    MPL_PASS(mpl_window_read(ctx, g, op, &dims->x, &dims->w, &dims->window));
    MPL_PASS(mpl_window_slide(ctx, g, op, &dims->window));
    mpl_window_shape(&dims->window, dims->x.dim[0], dims->w.dim[0], &dims->y);
    return MPL_OK;
}

static mpl_status dims_of(mpl_ctx *ctx, const mpl_graph *g, mpl_op op, const mpl_shape *second,
                          const mpl_shape *third, conv_dims *dims)
{
    if (g->op_kind[op] == MPL_OP_conv_grad) {
        dims->x = *second;
        dims->w = *third;
    } else if (g->op_kind[op] == MPL_OP_conv_grad_weight) {
        dims->x = *second;
        MPL_PASS(mpl_sizes_of(ctx, g, op, &dims->w));
    } else {
        dims->w = *second;
        MPL_PASS(mpl_sizes_of(ctx, g, op, &dims->x));
    }
    return finish_dims(ctx, g, op, dims);
}

static mpl_status check_dims(mpl_ctx *ctx, const mpl_shape_call *call, conv_dims *dims)
{
    char want[200], got[200];

    MPL_PASS(mpl_check_type(ctx, call, 0, MPL_SET_FLOAT));
    for (uint32_t i = 1; i < call->n_in; i++)
        MPL_PASS(mpl_check_same_type(ctx, call, i, 0));
    MPL_PASS(dims_of(ctx, call->graph, call->op, call->in_shape[1],
                     call->n_in > 2 ? call->in_shape[2] : NULL, dims));
    if (!mpl_shape_equal(&dims->y, call->in_shape[0]))
        return MPL_REFUSE(ctx, "the gradient has dims %s; the convolution's output has %s",
                          mpl_shape_text(call->in_shape[0], got), mpl_shape_text(&dims->y, want));
    for (uint32_t i = 0; i < call->n_out; i++)
        call->out_type[i] = call->in_type[0];
    return MPL_OK;
}

/* Outputs: dx; or dw; or dw, gradient of the bias, and dx. */
mpl_status mpl_shape_conv_grad(mpl_ctx *ctx, const mpl_shape_call *call)
{
    conv_dims d;

    MPL_PASS(check_dims(ctx, call, &d));
    call->out_shape[0] = call->graph->op_kind[call->op] == MPL_OP_conv_grad_input ? d.x : d.w;
    if (call->n_out > 1)
        call->out_shape[1] = (mpl_shape){1, {d.w.dim[0]}};
    if (call->n_out > 2)
        call->out_shape[2] = d.x;
    return MPL_OK;
}

/* Output element along axis i that reads input element `at` through tap k; -1: none. */
static inline int64_t seer(const mpl_window *window, int i, int64_t at, int64_t k)
{
    int64_t o = at + window->before[i] - k * window->dilation[i];

    if (o < 0 || o % window->stride[i] != 0 || o / window->stride[i] >= window->out[i])
        return -1;
    return o / window->stride[i];
}

/* dx at position `at` of channel c in group `g` of item `n`. */
MPL_INLINE double input_one(mpl_type type, const conv_dims *dims, const void *dy,
                            const void *weight, int64_t n, int64_t g, int64_t c,
                            const int64_t at[3])
{
    const mpl_window *window = &dims->window;
    int64_t taps = window->kernel[0] * window->kernel[1] * window->kernel[2],
            plane = window->out[0] * window->out[1] * window->out[2];
    double sum = 0;

    for (int64_t t = 0; t < taps; t++) {
        int64_t z = seer(window, 0, at[0], t / window->kernel[2] / window->kernel[1]);
        int64_t y = seer(window, 1, at[1], t / window->kernel[2] % window->kernel[1]);
        int64_t x = seer(window, 2, at[2], t % window->kernel[2]);
        int64_t first = g * dims->out_channels;

        if (z < 0 || y < 0 || x < 0)
            continue;
        for (int64_t m = first; m < first + dims->out_channels; m++)
            sum += mpl_get(type, dy,
                           (n * dims->w.dim[0] + m) * plane +
                               (z * window->out[1] + y) * window->out[2] + x) *
                   mpl_get(type, weight, (m * dims->in_channels + c) * taps + t);
    }
    return sum;
}

MPL_INLINE void input_all(mpl_type type, const conv_dims *dims, const void *dy, const void *weight,
                          void *dx)
{
    const int64_t *in = dims->window.in;
    int64_t at = 0;

    for (int64_t i = 0; i < dims->x.dim[0] * dims->x.dim[1]; i++) {
        int64_t n = i / dims->x.dim[1], channel = i % dims->x.dim[1];

        for (int64_t z = 0; z < in[0]; z++)
            for (int64_t y = 0; y < in[1]; y++)
                for (int64_t x = 0; x < in[2]; x++)
                    mpl_put(type, dx, at++,
                            input_one(type, dims, dy, weight, n, channel / dims->in_channels,
                                      channel % dims->in_channels, (int64_t[]){z, y, x}));
    }
}

static int64_t largest(int64_t a, int64_t b)
{
    return a > b ? a : b;
}
static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* Outputs [*from, *to) along axis i whose tap k is inside the input. */
static void seeing(const mpl_window *window, int i, int64_t k, int64_t *from, int64_t *to)
{
    int64_t shift = k * window->dilation[i] - window->before[i]; /* output o reads o * stride +
                                                                    shift */

    *from = shift >= 0 ? 0 : (-shift + window->stride[i] - 1) / window->stride[i];
    *to = largest(*from,
                  least(window->out[i], window->in[i] > shift
                                            ? (window->in[i] - shift - 1) / window->stride[i] + 1
                                            : 0));
}

/* dw of output channel m, input channel c of its group, tap t. */
MPL_INLINE double weight_one(mpl_type type, const conv_dims *dims, const void *dy, const void *x,
                             int64_t m, int64_t c, int64_t t)
{
    const mpl_window *window = &dims->window;
    int64_t k[3] = {t / window->kernel[2] / window->kernel[1],
                    t / window->kernel[2] % window->kernel[1], t % window->kernel[2]};
    int64_t in_plane = window->in[0] * window->in[1] * window->in[2],
            out_plane = window->out[0] * window->out[1] * window->out[2];
    int64_t channel = m / dims->out_channels * dims->in_channels + c, from[3], to[3], shift[3];
    double sum = 0;

    for (int i = 0; i < 3; i++) {
        seeing(window, i, k[i], &from[i], &to[i]);
        shift[i] = k[i] * window->dilation[i] - window->before[i];
    }
    for (int64_t n = 0; n < dims->x.dim[0]; n++)
        for (int64_t oz = from[0]; oz < to[0]; oz++)
            for (int64_t oy = from[1]; oy < to[1]; oy++) {
                int64_t out = (n * dims->w.dim[0] + m) * out_plane +
                              (oz * window->out[1] + oy) * window->out[2];
                int64_t row = (oz * window->stride[0] + shift[0]) * window->in[1] +
                              oy * window->stride[1] + shift[1];
                int64_t in =
                    (n * dims->x.dim[1] + channel) * in_plane + row * window->in[2] + shift[2];

                for (int64_t ox = from[2]; ox < to[2]; ox++)
                    sum +=
                        mpl_get(type, dy, out + ox) * mpl_get(type, x, in + ox * window->stride[2]);
            }
    return sum;
}

MPL_INLINE void weight_all(mpl_type type, const conv_dims *dims, const void *dy, const void *x,
                           void *dw)
{
    int64_t taps = dims->window.kernel[0] * dims->window.kernel[1] * dims->window.kernel[2];

    for (int64_t i = 0; i < dims->w.dim[0] * dims->in_channels * taps; i++)
        mpl_put(type, dw, i,
                weight_one(type, dims, dy, x, i / taps / dims->in_channels,
                           i / taps % dims->in_channels, i % taps));
}

/* factor times the sum of dy over all axes but the channels (axis 1). */
MPL_INLINE void channel_sums(mpl_type type, const mpl_shape *shape, const void *dy, double factor,
                             void *db)
{
    int64_t plane = mpl_count_dims(shape, 2, shape->rank);

    for (int64_t c = 0; c < shape->dim[1]; c++) {
        double sum = 0;

        for (int64_t n = 0; n < shape->dim[0]; n++)
            for (int64_t i = 0; i < plane; i++)
                sum += mpl_get(type, dy, (n * shape->dim[1] + c) * plane + i);
        mpl_put(type, db, c, factor * sum);
    }
}

mpl_status mpl_eval_conv_grad_input(mpl_ctx *ctx, const mpl_op_call *call)
{
    conv_dims d;

    MPL_PASS(dims_of(ctx, call->graph, call->op, &call->in[1].shape, NULL, &d));
    MPL_FOR_FLOAT(call->in[0].type, input_all, &d, call->in[0].data, call->in[1].data,
                  call->out[0].data)
    return MPL_OK;
}

mpl_status mpl_eval_conv_grad_weight(mpl_ctx *ctx, const mpl_op_call *call)
{
    conv_dims d;

    MPL_PASS(dims_of(ctx, call->graph, call->op, &call->in[1].shape, NULL, &d));
    MPL_FOR_FLOAT(call->in[0].type, weight_all, &d, call->in[0].data, call->in[1].data,
                  call->out[0].data)
    return MPL_OK;
}

mpl_status mpl_eval_conv_grad(mpl_ctx *ctx, const mpl_op_call *call)
{
    mpl_type type = call->in[0].type;
    const void *dy = call->in[0].data;
    conv_dims d;

    MPL_PASS(dims_of(ctx, call->graph, call->op, &call->in[1].shape, &call->in[2].shape, &d));
    MPL_FOR_FLOAT(type, weight_all, &d, dy, call->in[1].data, call->out[0].data)
    if (call->n_out > 1 && call->out[1].data != NULL)
        MPL_FOR_FLOAT(type, channel_sums, &d.y, dy, 1, call->out[1].data)
    if (call->n_out > 2 && call->out[2].data != NULL)
        MPL_FOR_FLOAT(type, input_all, &d, dy, call->in[2].data, call->out[2].data)
    return MPL_OK;
}

/* ---- gemm: y = alpha op(a) op(b) + beta c ---- */

mpl_status mpl_shape_gemm_grad(mpl_ctx *ctx, const mpl_shape_call *call)
{
    const mpl_shape *dy = call->in_shape[0], *a = call->in_shape[1], *b = call->in_shape[2];
    bool trans_a = mpl_attr_int(call->graph, call->op, MPL_ATTR_trans_a, 0) != 0;
    bool trans_b = mpl_attr_int(call->graph, call->op, MPL_ATTR_trans_b, 0) != 0;
    char text[200];

    MPL_PASS(mpl_check_type(ctx, call, 0, MPL_SET_FLOAT));
    for (uint32_t i = 0; i < 3; i++) {
        MPL_PASS(mpl_check_rank(ctx, call, i, 2, 2));
        MPL_PASS(mpl_check_same_type(ctx, call, i, 0));
    }
    if (a->dim[trans_a] != dy->dim[0] || b->dim[!trans_b] != dy->dim[1] ||
        a->dim[!trans_a] != b->dim[trans_b])
        return MPL_REFUSE(ctx, "the gradient has dims %s, which no product of these operands has",
                          mpl_shape_text(dy, text));
    for (uint32_t i = 0; i < call->n_out; i++) {
        call->out_shape[i] = i == 0 ? *b : i == 1 ? (mpl_shape){1, {dy->dim[1]}} : *a;
        call->out_type[i] = call->in_type[0];
    }
    return MPL_OK;
}

/* out[i * row + j * column] = factor * sum over k of left[i, k] right[k, j]. Strides along i or j,
 * and along k. */
typedef struct product_map {
    int64_t rows, columns, depth;
    int64_t left_row, left_depth, right_depth, right_column, out_row, out_column;
    double factor;
} product_map;

MPL_INLINE void product_all(mpl_type type, const product_map *map, const void *left,
                            const void *right, void *out)
{
    for (int64_t i = 0; i < map->rows; i++)
        for (int64_t j = 0; j < map->columns; j++) {
            double sum = 0;

            for (int64_t k = 0; k < map->depth; k++)
                sum += mpl_get(type, left, i * map->left_row + k * map->left_depth) *
                       mpl_get(type, right, k * map->right_depth + j * map->right_column);
            mpl_put(type, out, i * map->out_row + j * map->out_column, map->factor * sum);
        }
}

mpl_status mpl_eval_gemm_grad(mpl_ctx *ctx, const mpl_op_call *call)
{
    const mpl_tensor *dy = &call->in[0], *a = &call->in[1], *b = &call->in[2];
    bool trans_a = mpl_attr_int(call->graph, call->op, MPL_ATTR_trans_a, 0) != 0;
    bool trans_b = mpl_attr_int(call->graph, call->op, MPL_ATTR_trans_b, 0) != 0;
    int64_t m = dy->shape.dim[0], n = dy->shape.dim[1], depth = a->shape.dim[!trans_a];
    int64_t a_row = trans_a ? 1 : depth, a_column = trans_a ? m : 1; /* of op(a) */
    int64_t b_row = trans_b ? 1 : n, b_column = trans_b ? depth : 1; /* of op(b) */
    double alpha = mpl_attr_float(call->graph, call->op, MPL_ATTR_alpha, 1);
    double beta = mpl_attr_float(call->graph, call->op, MPL_ATTR_beta, 1);
    product_map for_b = {depth, n, m, a_column, a_row, n, 1, b_row, b_column, alpha};
    product_map for_a = {m, depth, n, n, 1, b_column, b_row, a_row, a_column, alpha};

    (void)ctx;
    MPL_FOR_FLOAT(dy->type, product_all, &for_b, a->data, dy->data, call->out[0].data)
    if (call->n_out > 1 && call->out[1].data != NULL)
        MPL_FOR_FLOAT(dy->type, channel_sums, &dy->shape, dy->data, beta, call->out[1].data)
    if (call->n_out > 2 && call->out[2].data != NULL)
        MPL_FOR_FLOAT(dy->type, product_all, &for_a, dy->data, b->data, call->out[2].data)
    return MPL_OK;
}
