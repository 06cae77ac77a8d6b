/* conv.c -- convolution and transposed convolution over 1 to 3 spatial dims.
 *
 * Accumulation order: an output element starts as its bias (or 0), conv_sum adds input 0, then come
 * products by input channel and kernel element in row-major order. f32 convolution adds them in
 * tiles (product_priv.h), with padding as zeros. All other cases skip padding, add one by one in
 * double and round once. */
#include "graphs/ops/matrix/conv.h"
#include "graphs/ops/matrix/product_priv.h"
#include "graphs/ops/matrix/window_priv.h"

/* Checks common to conv and conv_transpose; *group is the number of groups. */
static mpl_status check_conv(mpl_ctx *ctx, const mpl_shape_call *call, int64_t *group)
{
    bool biased = call->n_in > 2 && call->in_shape[2] != NULL;

    MPL_PASS(mpl_check_type(ctx, call, 0, MPL_SET_FLOAT));
    MPL_PASS(mpl_check_same_type(ctx, call, 1, 0));
    MPL_PASS(mpl_check_rank(ctx, call, 0, 3, 5));
    MPL_PASS(mpl_check_rank(ctx, call, 1, 3, 5));
    if (biased) {
        MPL_PASS(mpl_check_same_type(ctx, call, 2, 0));
        MPL_PASS(mpl_check_rank(ctx, call, 2, 1, 1));
    }
    *group = mpl_attr_int(call->graph, call->op, MPL_ATTR_group, 1);
    if (*group < 1)
        return MPL_REFUSE(ctx, "group %" PRId64 " is not positive", *group);
    return MPL_OK;
}

static mpl_status check_bias(mpl_ctx *ctx, const mpl_shape_call *call, int64_t channels)
{
    if (call->n_in > 2 && call->in_shape[2] != NULL && call->in_shape[2]->dim[0] != channels)
        return MPL_REFUSE(ctx, "the bias has %" PRId64 " elements for %" PRId64 " output channels",
                          call->in_shape[2]->dim[0], channels);
    return MPL_OK;
}

mpl_status mpl_shape_conv(mpl_ctx *ctx, const mpl_shape_call *call)
{
    const mpl_shape *shape = call->in_shape[0], *weight = call->in_shape[1];
    int64_t group, channels;
    mpl_window w;

    MPL_PASS(check_conv(ctx, call, &group));
    channels = weight->dim[0];
    if (shape->dim[1] % group != 0 || shape->dim[1] / group != weight->dim[1] ||
        channels % group != 0)
        return MPL_REFUSE(ctx,
                          "%" PRId64 " input channels, weights for %" PRId64 " to %" PRId64
                          " and %" PRId64 " groups do not go together",
                          shape->dim[1], weight->dim[1], channels, group);
    MPL_PASS(check_bias(ctx, call, channels));
    MPL_PASS(mpl_window_read(ctx, call->graph, call->op, shape, weight, &w));
    MPL_PASS(mpl_window_slide(ctx, call->graph, call->op, &w));
    mpl_window_shape(&w, shape->dim[0], channels, &call->out_shape[0]);
    call->out_type[0] = call->in_type[0];
    return MPL_OK;
}

/* ---- additions of conv_act and conv_sum ---- */

static const char *const activation_name[MPL_N_ACTIVATIONS] = {"none", "relu", "relu6"};

const char *mpl_activation_name(mpl_activation a)
{
    return activation_name[a];
}

mpl_activation mpl_activation_of(const mpl_graph *g, mpl_op op)
{
    return (mpl_activation)mpl_choice_of(g, op, MPL_ATTR_activation, activation_name,
                                         MPL_N_ACTIVATIONS);
}

mpl_status mpl_check_activation(mpl_ctx *ctx, const mpl_graph *g, mpl_op op)
{
    if (mpl_activation_of(g, op) == MPL_N_ACTIVATIONS)
        return MPL_REFUSE(ctx, "activation '%.40s' is none of none, relu, relu6",
                          mpl_attr_text(g, op, MPL_ATTR_activation, ""));
    return MPL_OK;
}

mpl_status mpl_shape_conv_act(mpl_ctx *ctx, const mpl_shape_call *call)
{
    MPL_PASS(mpl_check_activation(ctx, call->graph, call->op));
    return mpl_shape_conv(ctx, call);
}

mpl_status mpl_shape_conv_sum(mpl_ctx *ctx, const mpl_shape_call *call)
{
    MPL_PASS(mpl_shape_added_to(ctx, call, mpl_shape_conv_act));
    if (!mpl_shape_equal(call->in_shape[0], &call->out_shape[0]))
        return MPL_REFUSE(ctx, "what is added has other dims than the convolution's result");
    return MPL_OK;
}

/* Operands in the order of plain conv. */
typedef struct conv_form {
    const mpl_tensor *in;
    uint32_t n_in;
    const void *sum; /* addend of the whole output, may alias it; NULL: none */
    mpl_activation activation;
} conv_form;

static conv_form form_of(const mpl_op_call *call)
{
    uint32_t first = mpl_fused_first((mpl_op_kind)call->graph->op_kind[call->op]);

    return (conv_form){call->in + first, call->n_in - first, first > 0 ? call->in[0].data : NULL,
                       mpl_activation_of(call->graph, call->op)};
}

/* ---- f32 convolution: kernel matrix times the matrix of each output's input elements ---- */

/* One group of one item of the batch. */
typedef struct conv_part {
    const mpl_window *window;
    const float *x, *weight; /* [in_channels][in plane], [out_channels][in_channels][kernel] */
    int64_t in_channels, out_channels, in_plane, out_plane, kernel;
    float *y; /* [out_channels][out_plane] */
} conv_part;

/* Start positions of the windows of outputs [first, first + n) in a plane; remaining columns get
 * positions outside the input. */
static void place_windows(const mpl_window *window, int64_t first, int64_t n,
                          int64_t at[3][MPL_TILE_N])
{
    for (int64_t j = 0; j < MPL_TILE_N; j++) {
        int64_t o[3] = {(first + j) / window->out[2] / window->out[1],
                        (first + j) / window->out[2] % window->out[1],
                        (first + j) % window->out[2]};

        for (int i = 0; i < 3; i++)
            at[i][j] = j < n ? o[i] * window->stride[i] - window->before[i] : INT64_MIN / 2;
    }
}

/* Packs rows [k0, k0 + n_k) of the matrix for the columns whose windows start at `at`. */
static void pack_windows(const conv_part *part, int64_t at[3][MPL_TILE_N], int64_t n, int64_t k0,
                         int64_t n_k, mpl_tile *tile)
{
    const mpl_window *window = part->window;

    for (int64_t k = 0; k < n_k; k++) {
        int64_t tap = (k0 + k) % part->kernel;
        const float *x = part->x + (k0 + k) / part->kernel * part->in_plane;
        int64_t dz = tap / window->kernel[2] / window->kernel[1] * window->dilation[0];
        int64_t dy = tap / window->kernel[2] % window->kernel[1] * window->dilation[1],
                dx = tap % window->kernel[2] * window->dilation[2];

        for (int64_t j = 0; j < n; j += MPL_TILE_LANES)
            for (int64_t lane = 0; lane < MPL_TILE_LANES; lane++) {
                int64_t iz = at[0][j + lane] + dz, iy = at[1][j + lane] + dy,
                        ix = at[2][j + lane] + dx;
                bool seen = mpl_is_inside(iz, window->in[0]) && mpl_is_inside(iy, window->in[1]) &&
                            mpl_is_inside(ix, window->in[2]);

                tile->b[j / MPL_TILE_LANES][k][lane] =
                    seen ? x[(iz * window->in[1] + iy) * window->in[2] + ix] : 0;
            }
    }
}

static void conv_tiles(const conv_part *part)
{
    int64_t at[3][MPL_TILE_N], n_terms = part->in_channels * part->kernel;
    mpl_tile tile;

    for (int64_t j = 0; j < part->out_plane; j += MPL_TILE_N) {
        int64_t n = part->out_plane - j < MPL_TILE_N ? part->out_plane - j : MPL_TILE_N;

        place_windows(part->window, j, n, at);
        for (int64_t k = 0; k < n_terms; k += MPL_TILE_K) {
            int64_t n_k = n_terms - k < MPL_TILE_K ? n_terms - k : MPL_TILE_K;

            pack_windows(part, at, n, k, n_k, &tile);
            mpl_tile_product(part->weight + k, n_terms, 1, part->out_channels, n_k, &tile, n,
                             part->y + j, part->out_plane);
        }
    }
}

static void conv_f32(const mpl_op_call *call, const conv_form *form, const mpl_window *window,
                     int64_t group)
{
    const mpl_shape *shape = &form->in[0].shape, *y = &call->out[0].shape,
                    *weight = &form->in[1].shape;
    const float *bias = form->n_in > 2 ? form->in[2].data : NULL, *sum = form->sum;
    conv_part part = {
        .window = window, .in_channels = weight->dim[1], .out_channels = y->dim[1] / group};
    int64_t n;

    part.in_plane = mpl_count_dims(shape, 2, shape->rank);
    part.out_plane = mpl_count_dims(y, 2, y->rank);
    part.kernel = mpl_count_dims(weight, 2, weight->rank);
    n = part.out_channels * part.out_plane;
    for (int64_t i = 0; i < y->dim[0] * group; i++) {
        int64_t first = i % group * part.out_channels; /* output channel */

        part.x = (const float *)form->in[0].data + i * part.in_channels * part.in_plane;
        part.weight = (const float *)form->in[1].data + first * part.in_channels * part.kernel;
        part.y = (float *)call->out[0].data + i * n;
        for (int64_t j = 0; j < n; j++) {
            float begin = bias != NULL ? bias[first + j / part.out_plane] : 0;

            part.y[j] = sum != NULL ? begin + sum[i * n + j] : begin;
        }
        conv_tiles(&part);
        for (int64_t j = 0; j < n && form->activation != MPL_ACT_NONE; j++)
            part.y[j] = (float)mpl_activate(form->activation, (double)part.y[j]);
    }
}

/* ---- other cases: one output element at a time, in double ---- */

/* Common to all output elements. The weight of output channel c, input channel i of the group and
 * kernel element t has index c * out_step + i * in_step + t. */
typedef struct conv_sum {
    const mpl_window *window;
    const void *x, *weight;
    int64_t in_channels, in_plane, kernel, in_step;
    bool transposed;
} conv_sum;

/* Input element along axis i that kernel element k of output o reads; -1: none. */
static inline int64_t seen_by(const conv_sum *sum, int i, int64_t o, int64_t k)
{
    const mpl_window *window = sum->window;
    int64_t at;

    if (!sum->transposed) {
        at = o * window->stride[i] - window->before[i] + k * window->dilation[i];
    } else {
        at = o + window->before[i] - k * window->dilation[i];
        if (at % window->stride[i] != 0)
            return -1;
        at /= window->stride[i];
    }
    return mpl_is_inside(at, window->in[i]) ? at : -1;
}

/* Adds the products of output element o to `sum`; x0 and weight0 are first indices. */
MPL_INLINE double sum_of(mpl_type type, const conv_sum *s, int64_t x0, int64_t weight0,
                         const int64_t o[3], double sum)
{
    const mpl_window *window = s->window;

    for (int64_t c = 0; c < s->in_channels; c++)
        for (int64_t k = 0; k < s->kernel; k++) {
            int64_t z = seen_by(s, 0, o[0], k / window->kernel[2] / window->kernel[1]);
            int64_t y = seen_by(s, 1, o[1], k / window->kernel[2] % window->kernel[1]);
            int64_t x = seen_by(s, 2, o[2], k % window->kernel[2]);

            if (z >= 0 && y >= 0 && x >= 0)
                sum += mpl_get(type, s->x,
                               x0 + c * s->in_plane + (z * window->in[1] + y) * window->in[2] + x) *
                       mpl_get(type, s->weight, weight0 + c * s->in_step + k);
        }
    return sum;
}

/* Computes the whole output; out_step as in conv_sum. Weights of group k begin at k *
 * group_step. */
MPL_INLINE void conv_plain(mpl_type type, const mpl_op_call *call, const conv_form *form,
                           const conv_sum *sum, int64_t group, int64_t group_step, int64_t out_step)
{
    const void *bias = form->n_in > 2 ? form->in[2].data : NULL;
    int64_t channels = call->out[0].shape.dim[1] / group, at = 0;
    const int64_t *out = sum->window->out;

    for (int64_t i = 0; i < call->out[0].shape.dim[0] * group * channels; i++) {
        int64_t part = i / channels, c = i % channels, whole = part % group * channels + c;
        double first = bias != NULL ? mpl_get(type, bias, whole) : 0;

        for (int64_t j = 0; j < out[0] * out[1] * out[2]; j++) {
            int64_t o[3] = {j / out[2] / out[1], j / out[2] % out[1], j % out[2]};
            double begin = first + (form->sum != NULL ? mpl_get(type, form->sum, at) : 0);

            mpl_put(type, call->out[0].data, at++,
                    mpl_activate(form->activation,
                                 sum_of(type, sum, part * sum->in_channels * sum->in_plane,
                                        part % group * group_step + c * out_step, o, begin)));
        }
    }
}

mpl_status mpl_eval_conv(mpl_ctx *ctx, const mpl_op_call *call)
{
    const conv_form f = form_of(call);
    const mpl_shape *shape = &f.in[0].shape, *weight = &f.in[1].shape;
    int64_t group = mpl_attr_int(call->graph, call->op, MPL_ATTR_group, 1), out_step;
    conv_sum s = {.x = f.in[0].data, .weight = f.in[1].data};
    mpl_window w;

    MPL_PASS(mpl_window_read(ctx, call->graph, call->op, shape, weight, &w));
    MPL_PASS(mpl_window_slide(ctx, call->graph, call->op, &w));
    if (mpl_count(&call->out[0].shape) == 0)
        return MPL_OK;
    if (f.in[0].type == MPL_TYPE_f32) {
        conv_f32(call, &f, &w, group);
        return MPL_OK;
    }
    s.window = &w;
    s.in_channels = weight->dim[1];
    s.in_plane = mpl_count_dims(shape, 2, shape->rank);
    s.kernel = s.in_step = mpl_count_dims(weight, 2, weight->rank);
    out_step = s.in_channels * s.kernel;
    MPL_FOR_FLOAT(f.in[0].type, conv_plain, call, &f, &s, group, weight->dim[0] / group * out_step,
                  out_step);
    return MPL_OK;
}

/* ---- conv_transpose ---- */

/* Window of a transposed convolution; its outputs are the inputs of the convolution it reverses.
 * output_shape (spatial dims) without pads determines the pads, the larger half first; with pads it
 * only gives the dims. */
static mpl_status transposed_window(mpl_ctx *ctx, const mpl_graph *g, mpl_op op,
                                    const mpl_shape *shape, const mpl_shape *weight,
                                    mpl_window *window)
{
    mpl_attr attr;
    int64_t extra[3] = {0}, want[3] = {0};
    uint32_t first;

    MPL_PASS(mpl_window_read(ctx, g, op, shape, weight, window));
    first = 3 - window->n;
    MPL_PASS(mpl_window_numbers(ctx, g, op, MPL_ATTR_output_padding, window->n, 0, extra + first));
    MPL_PASS(mpl_window_numbers(ctx, g, op, MPL_ATTR_output_shape, window->n, 0, want + first));
    for (uint32_t i = 0; i < 3; i++) {
        int64_t whole = window->in[i] == 0
                            ? 0
                            : (window->in[i] - 1) * window->stride[i] +
                                  (window->kernel[i] - 1) * window->dilation[i] + 1 + extra[i];
        int64_t cut = whole - want[i];

        window->out[i] = whole - window->before[i] - window->after[i];
        if (i >= first && mpl_attr_get(g, op, MPL_ATTR_output_shape, &attr)) {
            window->out[i] = want[i];
            if (!mpl_attr_get(g, op, MPL_ATTR_pads, &attr))
                window->before[i] = cut > 0 ? cut - cut / 2 : 0;
        }
        if (window->out[i] < 0 || window->out[i] > INT64_C(1) << 61)
            return MPL_REFUSE(ctx,
                              "the output would have %" PRId64 " elements along spatial dim %u",
                              window->out[i], i - first);
    }
    return MPL_OK;
}

mpl_status mpl_shape_conv_transpose(mpl_ctx *ctx, const mpl_shape_call *call)
{
    const mpl_shape *shape = call->in_shape[0], *weight = call->in_shape[1];
    int64_t group;
    mpl_window w;

    MPL_PASS(check_conv(ctx, call, &group));
    if (shape->dim[1] != weight->dim[0] || shape->dim[1] % group != 0 ||
        weight->dim[1] > INT64_MAX / group)
        return MPL_REFUSE(ctx,
                          "%" PRId64 " input channels, weights for %" PRId64 " and %" PRId64
                          " groups do not go together",
                          shape->dim[1], weight->dim[0], group);
    MPL_PASS(check_bias(ctx, call, weight->dim[1] * group));
    MPL_PASS(transposed_window(ctx, call->graph, call->op, shape, weight, &w));
    mpl_window_shape(&w, shape->dim[0], weight->dim[1] * group, &call->out_shape[0]);
    call->out_type[0] = call->in_type[0];
    return MPL_OK;
}

mpl_status mpl_eval_conv_transpose(mpl_ctx *ctx, const mpl_op_call *call)
{
    const mpl_shape *shape = &call->in[0].shape, *weight = &call->in[1].shape;
    int64_t group = mpl_attr_int(call->graph, call->op, MPL_ATTR_group, 1);
    conv_sum s = {.x = call->in[0].data, .weight = call->in[1].data, .transposed = true};
    const conv_form f = form_of(call);
    mpl_window w;

    MPL_PASS(transposed_window(ctx, call->graph, call->op, shape, weight, &w));
    if (mpl_count(&call->out[0].shape) == 0)
        return MPL_OK;
    s.window = &w;
    s.in_channels = shape->dim[1] / group;
    s.in_plane = mpl_count_dims(shape, 2, shape->rank);
    s.kernel = mpl_count_dims(weight, 2, weight->rank);
    s.in_step = weight->dim[1] * s.kernel;
    MPL_FOR_FLOAT(call->in[0].type, conv_plain, call, &f, &s, group, s.in_channels * s.in_step,
                  s.kernel);
    return MPL_OK;
}
