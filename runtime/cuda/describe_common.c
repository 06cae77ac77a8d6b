/* describe_common.c -- what descriptions of our own kernels share. See describe_priv.h. */
#include "graphs/ops/matrix/conv.h"
#include "runtime/cuda/describe_priv.h"

#include <math.h>

/* A launch over n things that takes all inputs and output 0; the caller fills in the rest. */
mpl_status mpl_maker_add(mpl_maker *m, mpl_cuda_kernel_id id, int64_t n, mpl_cuda_part **out)
{
    mpl_status st = MPL_OK;
    mpl_cuda_part *p;

    MPL_TRY(mpl_reserve(m->ctx, m->part, m->room, (size_t)m->n + 1));
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
out:
    return st;
}

void mpl_maker_lone(mpl_maker *m, mpl_cuda_part *p, uint32_t in)
{
    for (uint32_t i = 0; i < MPL_CUDA_MAX_IN; i++)
        p->in[i] = i == 0 ? in : MPL_NONE;
    p->kernel.n_in = 1;
    p->kernel.type[0] = (int32_t)type_of(m, in_of(m, in));
}

uint32_t mpl_maker_reduced_axes(const mpl_maker *m, uint32_t rank)
{
    uint32_t n, set = 0;
    const int64_t *axes = mpl_attr_ints(m->g, m->op, MPL_ATTR_axes, &n);

    if (m->kind == MPL_OP_global_avg_pool || m->kind == MPL_OP_global_max_pool ||
        m->kind == MPL_OP_global_lp_pool)
        return ((1u << rank) - 1) & ~3u;
    if (axes == NULL)
        return (1u << rank) - 1;
    for (uint32_t i = 0; i < n; i++)
        set |= 1u << axis_of(axes[i], rank);
    return set;
}

void mpl_maker_put_dim(int32_t *n, int64_t *dim, int64_t *stride, int64_t size, int64_t step)
{
    if (size == 1)
        return;
    if (*n > 0 && stride[*n - 1] == size * step) {
        dim[*n - 1] *= size;
        stride[*n - 1] = step;
    } else {
        dim[*n] = size;
        stride[(*n)++] = step;
    }
}

void mpl_maker_split_dims(mpl_cuda_reduce *r, const mpl_shape *in, uint32_t set)
{
    int64_t stride[MPL_MAX_RANK];

    strides_of(in, stride);
    r->n = 1;
    r->factor = 1;
    for (uint32_t i = 0; i < in->rank; i++)
        if ((set >> i & 1) != 0) {
            r->n = (int64_t)((uint64_t)r->n * (uint64_t)in->dim[i]);
            mpl_maker_put_dim(&r->n_reduced, r->reduced_dim, r->reduced_stride, in->dim[i],
                              stride[i]);
        } else {
            mpl_maker_put_dim(&r->n_kept, r->kept_dim, r->kept_stride, in->dim[i], stride[i]);
        }
}

mpl_status mpl_maker_sum(mpl_maker *m, uint32_t in, uint32_t out, uint32_t kept, double factor)
{
    mpl_status st = MPL_OK;
    const mpl_shape *shape = in_shape(m, in);
    mpl_cuda_part *p;

    MPL_TRY(mpl_maker_add(m, MPL_CUDA_REDUCE, shape->dim[kept], &p));
    mpl_maker_lone(m, p, in);
    p->out = out;
    p->kernel.out_type = (int32_t)type_of(m, out_of(m, out));
    mpl_maker_split_dims(&p->kernel.as.reduce, shape, ((1u << shape->rank) - 1) & ~(1u << kept));
    p->kernel.as.reduce.factor = factor;
out:
    return st;
}

mpl_status mpl_maker_reduce(mpl_maker *m)
{
    mpl_status st = MPL_OK;
    const mpl_shape *in = in_shape(m, 0);
    uint32_t set = mpl_maker_reduced_axes(m, in->rank);
    mpl_cuda_part *p;
    mpl_cuda_reduce *r;

    MPL_TRY(mpl_maker_add(m, MPL_CUDA_REDUCE, mpl_count(out_shape(m, 0)), &p));
    r = &p->kernel.as.reduce;
    mpl_maker_split_dims(r, in, set);
    r->p = (double)attr_int(m, MPL_ATTR_p, 2);
    r->whole = type_of(m, in_of(m, 0)) > MPL_TYPE_bf16 && m->kind != MPL_OP_reduce_l2 &&
               m->kind != MPL_OP_reduce_log_sum && m->kind != MPL_OP_reduce_log_sum_exp;
out:
    return st;
}

mpl_status mpl_maker_lrn(mpl_maker *m, mpl_cuda_kernel_id id)
{
    mpl_status st = MPL_OK;
    const mpl_shape *in = in_shape(m, 0);
    int64_t size = attr_int(m, MPL_ATTR_size, 1);
    mpl_cuda_part *p;

    MPL_TRY(mpl_maker_add(m, id, mpl_count(in), &p));
    p->kernel.as.lrn = (mpl_cuda_lrn){
        .channels = in->dim[1],
        .inner = mpl_count_dims(in, 2, in->rank),
        .below = (size - 1) / 2,
        .above = size / 2,
        .factor = attr_float(m, MPL_ATTR_alpha, 1e-4) / (double)size,
        .beta = attr_float(m, MPL_ATTR_beta, 0.75),
        .bias = attr_float(m, MPL_ATTR_bias, 1),
    };
out:
    return st;
}

mpl_status mpl_maker_lrn_of(mpl_maker *m)
{
    return mpl_maker_lrn(m, MPL_CUDA_LRN);
}

/* The last n of three numbers; as they are where the attribute is missing. */
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
    mpl_status st = MPL_OK;
    uint32_t n = in->rank - 2, n_pads;
    const int64_t *pads = mpl_attr_ints(m->g, m->op, MPL_ATTR_pads, &n_pads);
    mpl_cuda_part *p;
    mpl_cuda_window *w;

    MPL_TRY(mpl_maker_add(m, id, mpl_count(out_shape(m, 0)), &p));
    w = &p->kernel.as.window;
    *w = (mpl_cuda_window){.in = {1, 1, 1},
                           .out = {1, 1, 1},
                           .kernel = {1, 1, 1},
                           .stride = {1, 1, 1},
                           .dilation = {1, 1, 1},
                           .group = 1,
                           .batch = in->dim[0],
                           .least = -INFINITY,
                           .most = INFINITY};
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
    *out = w;
out:
    return st;
}
