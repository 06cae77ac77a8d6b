/* window_priv.h -- sliding windows of convolution and pooling over 1 to 3 spatial dims. */
#pragma once

#include "graphs/ops/ops_priv.h"

/* Always three spatial dims; missing ones come first and are 1. Output element o reads input
 * elements o * stride - before + k * dilation, k = 0 .. kernel - 1; those outside [0, in) are
 * padding. */
typedef struct mpl_window {
    uint32_t n; /* spatial dims of the tensor */
    int64_t in[3], out[3], kernel[3], stride[3], dilation[3];
    int64_t before[3], after[3]; /* padding [element] */
} mpl_window;

/* Reads kernel_shape, strides, dilations and pads for an input [batch, channels, spatial..]. The
 * kernel is taken from `weight` unless NULL. Leaves `out` to the next two functions. MPL_EINPUT:
 * wrong lengths, numbers outside [1, 2^30] (pads: [0, 2^30]), or not 1 to 3 spatial dims. */
mpl_status mpl_window_read(mpl_ctx *ctx, const mpl_graph *g, mpl_op op, const mpl_shape *in,
                           const mpl_shape *weight, mpl_window *window);

/* Computes `out` for a window sliding over the padded input: rounded down, or up (ceil_mode)
 * without windows that start after the input. MPL_EINPUT: the window is larger than the padded
 * input. */
mpl_status mpl_window_slide(mpl_ctx *ctx, const mpl_graph *g, mpl_op op, mpl_window *window);

/* Both, for a pool. */
mpl_status mpl_window_pool(mpl_ctx *ctx, const mpl_graph *g, mpl_op op, const mpl_shape *in,
                           mpl_window *window);

/* Reads n numbers of an attribute; *to is unchanged if absent. MPL_EINPUT: outside [least,
 * 2^30]. */
mpl_status mpl_window_numbers(mpl_ctx *ctx, const mpl_graph *g, mpl_op op, mpl_attr_key key,
                              uint32_t n, int64_t least, int64_t *to);

/* Elements of output o's window inside the input or its padding, without what ceil_mode adds after
 * it. */
int64_t mpl_window_padded_count(const mpl_window *window, const int64_t o[3]);

static inline bool mpl_is_inside(int64_t i, int64_t n)
{
    return (uint64_t)i < (uint64_t)n;
}

/* Advances o in row-major order; at the end of a plane returns true, with o at its first output. */
static inline bool mpl_window_next(const mpl_window *window, int64_t o[3])
{
    if (++o[2] < window->out[2])
        return false;
    o[2] = 0;
    if (++o[1] < window->out[1])
        return false;
    o[1] = 0;
    if (++o[0] < window->out[0])
        return false;
    o[0] = 0;
    return true;
}

/* Dims of an output with that many channels. */
void mpl_window_shape(const mpl_window *window, int64_t batch, int64_t channels, mpl_shape *out);
