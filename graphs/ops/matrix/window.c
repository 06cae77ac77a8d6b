/* window.c -- see window_priv.h. */
#include "graphs/ops/matrix/window_priv.h"

static const int64_t most = INT64_C(1) << 30; /* products and small sums fit in 64 bits */

mpl_status mpl_window_numbers(mpl_ctx *ctx, const mpl_graph *g, mpl_op op, mpl_attr_key key,
                              uint32_t n, int64_t least, int64_t *to)
{
    mpl_attr attr;

    if (!mpl_attr_get(g, op, key, &attr))
        return MPL_OK;
    if (attr.n != n)
        return MPL_REFUSE(ctx, "%s has %u numbers; it must have %u", mpl_attr_name(key), attr.n, n);
    for (uint32_t i = 0; i < n; i++) {
        if (attr.ints[i] < least || attr.ints[i] > most)
            return MPL_REFUSE(ctx, "%s[%u] = %" PRId64 " is outside [%" PRId64 ",2^30]",
                              mpl_attr_name(key), i, attr.ints[i], least);
        to[i] = attr.ints[i];
    }
    return MPL_OK;
}

mpl_status mpl_window_read(mpl_ctx *ctx, const mpl_graph *g, mpl_op op, const mpl_shape *in,
                           const mpl_shape *weight, mpl_window *window)
{
    uint32_t n = in->rank - 2, first;
    int64_t kernel[3] = {0}, pads[6] = {0};

    if (in->rank < 3 || in->rank > 5 || (weight != NULL && weight->rank != in->rank))
        return MPL_REFUSE(
            ctx, "the input has %u dims%s; there must be 1 to 3 spatial ones behind two others",
            in->rank, weight != NULL ? ", the kernel another number or as many" : "");
    *window = (mpl_window){n, {1, 1, 1}, {1, 1, 1}, {1, 1, 1}, {1, 1, 1}, {1, 1, 1}, {0}, {0}};
    first = 3 - n;
    for (uint32_t i = 0; i < n; i++) {
        kernel[i] = weight != NULL ? weight->dim[2 + i] : 0;
        window->in[first + i] = in->dim[2 + i];
        if (in->dim[2 + i] > most)
            return MPL_REFUSE(ctx, "spatial dim %u of %" PRId64 " elements is more than 2^30", i,
                              in->dim[2 + i]);
    }
    MPL_PASS(mpl_window_numbers(ctx, g, op, MPL_ATTR_kernel_shape, n, 1, kernel));
    MPL_PASS(mpl_window_numbers(ctx, g, op, MPL_ATTR_strides, n, 1, window->stride + first));
    MPL_PASS(mpl_window_numbers(ctx, g, op, MPL_ATTR_dilations, n, 1, window->dilation + first));
    MPL_PASS(mpl_window_numbers(ctx, g, op, MPL_ATTR_pads, 2 * n, 0, pads));
    for (uint32_t i = 0; i < n; i++) {
        if (kernel[i] < 1 || kernel[i] > most ||
            (weight != NULL && kernel[i] != weight->dim[2 + i]))
            return MPL_REFUSE(
                ctx, "kernel dim %u is %" PRId64 ": missing, not the weight's, or outside [1,2^30]",
                i, kernel[i]);
        window->kernel[first + i] = kernel[i];
        window->before[first + i] = pads[i];
        window->after[first + i] = pads[n + i];
    }
    return MPL_OK;
}

mpl_status mpl_window_slide(mpl_ctx *ctx, const mpl_graph *g, mpl_op op, mpl_window *window)
{
    bool up = mpl_attr_int(g, op, MPL_ATTR_ceil_mode, 0) != 0;

    for (int i = 0; i < 3; i++) {
        int64_t span = (window->kernel[i] - 1) * window->dilation[i] + 1;
        int64_t room = window->in[i] + window->before[i] + window->after[i] - span +
                       (up ? window->stride[i] - 1 : 0);

        window->out[i] = room < 0 ? 0 : room / window->stride[i] + 1;
        if (up && window->out[i] > 0 &&
            (window->out[i] - 1) * window->stride[i] >= window->in[i] + window->before[i])
            window->out[i]--;
        if (window->out[i] == 0 && window->in[i] > 0)
            return MPL_REFUSE(
                ctx, "a window of %" PRId64 " elements is larger than the padded input of %" PRId64,
                span, window->in[i] + window->before[i] + window->after[i]);
    }
    return MPL_OK;
}

mpl_status mpl_window_pool(mpl_ctx *ctx, const mpl_graph *g, mpl_op op, const mpl_shape *in,
                           mpl_window *window)
{
    MPL_PASS(mpl_window_read(ctx, g, op, in, NULL, window));
    return mpl_window_slide(ctx, g, op, window);
}

void mpl_window_shape(const mpl_window *window, int64_t batch, int64_t channels, mpl_shape *out)
{
    out->rank = 2 + window->n;
    out->dim[0] = batch;
    out->dim[1] = channels;
    for (uint32_t i = 0; i < window->n; i++)
        out->dim[2 + i] = window->out[3 - window->n + i];
}

int64_t mpl_window_padded_count(const mpl_window *window, const int64_t o[3])
{
    int64_t count = 1;

    for (int i = 0; i < 3; i++) {
        int64_t left =
            window->in[i] + window->before[i] + window->after[i] - o[i] * window->stride[i];
        int64_t most_left = left <= 0 ? 0 : (left - 1) / window->dilation[i] + 1;

        count *= most_left < window->kernel[i] ? most_left : window->kernel[i];
    }
    return count;
}
