/* describe_common.c -- shared by the descriptions of our own kernels. See describe_priv.h. */
#include "runtime/cuda/describe_priv.h"

#include <math.h>

mpl_status mpl_maker_add(mpl_maker *m, mpl_cuda_kernel_id id, int64_t n, mpl_cuda_part **out)
{
    mpl_cuda_part *p;

    MPL_PASS(mpl_reserve(m->ctx, m->part, m->room, (size_t)m->n + 1));
    p = &m->part[m->n++];
    *p = (mpl_cuda_part){.kernel = {.id = id, .kind = (int32_t)m->kind, .n = n}};
    p->kernel.n_in = (int32_t)(m->n_in < MPL_CUDA_MAX_IN ? m->n_in : MPL_CUDA_MAX_IN);
    p->kernel.out_type = (int32_t)type_of(m, out_of(m, 0));
    if (id == MPL_CUDA_PRODUCT)
        p->kernel.as.product.least = -INFINITY, p->kernel.as.product.most = INFINITY;
    for (uint32_t i = 0; i < MPL_CUDA_MAX_IN; i++) {
        p->in[i] = in_of(m, i) != MPL_NONE ? i : MPL_NONE;
        p->kernel.type[i] = in_of(m, i) != MPL_NONE ? (int32_t)type_of(m, in_of(m, i)) : 0;
    }
    *out = p;
    return MPL_OK;
}

mpl_status mpl_maker_refuse(mpl_maker *m)
{
    m->refused = true;
    return MPL_OK;
}

/* Reads the last n of three numbers; leaves them unchanged if the attribute is missing. */
static void read_last(const mpl_maker *m, mpl_attr_key key, uint32_t n, int64_t *to)
{
    uint32_t given;
    const int64_t *ints = mpl_attr_ints(m->g, m->op, key, &given);

    for (uint32_t i = 0; i < n && given == n; i++)
        to[3 - n + i] = ints[i];
}

mpl_status mpl_maker_window(mpl_maker *m, mpl_cuda_kernel_id id, const mpl_shape *in,
                            const mpl_shape *to, mpl_cuda_window **out)
{
    uint32_t n = in->rank - 2, n_pads;
    const int64_t *pads = mpl_attr_ints(m->g, m->op, MPL_ATTR_pads, &n_pads);
    mpl_cuda_part *p;
    mpl_cuda_window *w;

    MPL_PASS(mpl_maker_add(m, id, mpl_count(out_shape(m, 0)), &p));
    w = &p->kernel.as.window;
    *w = (mpl_cuda_window){.in = {1, 1, 1},
                           .out = {1, 1, 1},
                           .kernel = {1, 1, 1},
                           .stride = {1, 1, 1},
                           .dilation = {1, 1, 1},
                           .counts_pads = attr_int(m, MPL_ATTR_count_include_pad, 0) != 0};
    for (uint32_t i = 0; i < n; i++) {
        w->in[3 - n + i] = in->dim[2 + i];
        w->out[3 - n + i] = to->dim[2 + i];
        if (n_pads == 2 * n) {
            w->before[3 - n + i] = pads[i];
            w->after[3 - n + i] = pads[n + i];
        }
    }
    read_last(m, MPL_ATTR_kernel_shape, n, w->kernel);
    read_last(m, MPL_ATTR_strides, n, w->stride);
    read_last(m, MPL_ATTR_dilations, n, w->dilation);
    if (out != NULL)
        *out = w;
    return MPL_OK;
}
