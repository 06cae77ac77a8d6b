/* describe_common.c -- shared by the descriptions of our own kernels. See describe_priv.h. */
#include "runtime/cuda/describe_priv.h"

#include <math.h>

mpl_status mpl_maker_add(mpl_maker *maker, mpl_cuda_kernel_id id, int64_t n, mpl_cuda_part **out)
{
    mpl_cuda_part *part;

    MPL_PASS(mpl_reserve(maker->ctx, maker->part, maker->room, (size_t)maker->n + 1));
    part = &maker->part[maker->n++];
    *part = (mpl_cuda_part){.kernel = {.id = id, .kind = (int32_t)maker->kind, .n = n}};
    part->kernel.n_in = (int32_t)(maker->n_in < MPL_CUDA_MAX_IN ? maker->n_in : MPL_CUDA_MAX_IN);
    part->kernel.out_type = (int32_t)type_of(maker, out_of(maker, 0));
    if (id == MPL_CUDA_PRODUCT)
        part->kernel.as.product.least = -INFINITY, part->kernel.as.product.most = INFINITY;
    for (uint32_t i = 0; i < MPL_CUDA_MAX_IN; i++) {
        part->in[i] = in_of(maker, i) != MPL_NONE ? i : MPL_NONE;
        part->kernel.type[i] =
            in_of(maker, i) != MPL_NONE ? (int32_t)type_of(maker, in_of(maker, i)) : 0;
    }
    *out = part;
    return MPL_OK;
}

mpl_status mpl_maker_refuse(mpl_maker *maker)
{
    maker->refused = true;
    return MPL_OK;
}

/* Reads the last n of three numbers; leaves them unchanged if the attribute is missing. */
static void read_last(const mpl_maker *maker, mpl_attr_key key, uint32_t n, int64_t *to)
{
    uint32_t given;
    const int64_t *ints = mpl_attr_ints(maker->g, maker->op, key, &given);

    for (uint32_t i = 0; i < n && given == n; i++)
        to[3 - n + i] = ints[i];
}

mpl_status mpl_maker_window(mpl_maker *maker, mpl_cuda_kernel_id id, const mpl_shape *in,
                            const mpl_shape *to, mpl_cuda_window **out)
{
    uint32_t n = in->rank - 2, n_pads;
    const int64_t *pads = mpl_attr_ints(maker->g, maker->op, MPL_ATTR_pads, &n_pads);
    mpl_cuda_part *part;
    mpl_cuda_window *window;

    MPL_PASS(mpl_maker_add(maker, id, mpl_count(out_shape(maker, 0)), &part));
    window = &part->kernel.as.window;
    *window = (mpl_cuda_window){.in = {1, 1, 1},
                                .out = {1, 1, 1},
                                .kernel = {1, 1, 1},
                                .stride = {1, 1, 1},
                                .dilation = {1, 1, 1},
                                .counts_pads = attr_int(maker, MPL_ATTR_count_include_pad, 0) != 0};
    for (uint32_t i = 0; i < n; i++) {
        window->in[3 - n + i] = in->dim[2 + i];
        window->out[3 - n + i] = to->dim[2 + i];
        if (n_pads == 2 * n) {
            window->before[3 - n + i] = pads[i];
            window->after[3 - n + i] = pads[n + i];
        }
    }
    read_last(maker, MPL_ATTR_kernel_shape, n, window->kernel);
    read_last(maker, MPL_ATTR_strides, n, window->stride);
    read_last(maker, MPL_ATTR_dilations, n, window->dilation);
    if (out != NULL)
        *out = window;
    return MPL_OK;
}
