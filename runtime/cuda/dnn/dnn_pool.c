/* dnn_pool.c -- pooling as cuDNN describes it. See dnn_priv.h. */
#include <mpl_config.h>

#if MPL_HAVE_CUDA

#include "runtime/cuda/dnn/dnn_priv.h"

static const float one = 1, zero = 0;

static int run_pool(mpl_cuda *c, const mpl_cuda_dnn *d, const mpl_op_call *call, void *workspace)
{
    (void)workspace;
    return mpl_dnn_code(c->library->cudnnPoolingForward(
        c->dnn, d->pool, &one, d->x, call->in[0].data, &zero, d->y, call->out[0].data));
}

/* The pool from `in` to `to`. */
static bool describe_pool(mpl_dnn_maker *m, const mpl_shape *in, const mpl_shape *to)
{
    uint32_t n = in->rank - 2;
    int kernel[MPL_DNN_DIMS], pad[MPL_DNN_DIMS], stride[MPL_DNN_DIMS], dilation[MPL_DNN_DIMS],
        got[MPL_DNN_DIMS];
    bool whole = mpl_attr_int(m->g, m->op, MPL_ATTR_count_include_pad, 0) != 0;
    cudnnPoolingMode_t mode = m->kind == MPL_OP_max_pool ? CUDNN_POOLING_MAX_DETERMINISTIC
                              : whole ? CUDNN_POOLING_AVERAGE_COUNT_INCLUDE_PADDING
                                      : CUDNN_POOLING_AVERAGE_COUNT_EXCLUDE_PADDING;
    mpl_cuda_dnn *d = m->d;

    if (in->rank < 4 || in->rank > MPL_DNN_DIMS || !mpl_dnn_pads(m, n, pad))
        return false;
    mpl_dnn_ints(m, MPL_ATTR_kernel_shape, n, 1, kernel);
    mpl_dnn_ints(m, MPL_ATTR_strides, n, 1, stride);
    mpl_dnn_ints(m, MPL_ATTR_dilations, n, 1, dilation);
    for (uint32_t i = 0; i < n; i++)
        if (dilation[i] != 1 || pad[i] >= kernel[i])
            return false;
    if (!mpl_dnn_tensor(m, &d->x, in->rank, in->dim) ||
        !mpl_dnn_tensor(m, &d->y, to->rank, to->dim) ||
        m->lib->cudnnCreatePoolingDescriptor(&d->pool) != CUDNN_STATUS_SUCCESS ||
        m->lib->cudnnSetPoolingNdDescriptor(d->pool, mode, CUDNN_PROPAGATE_NAN, (int)n, kernel, pad,
                                            stride) != CUDNN_STATUS_SUCCESS ||
        m->lib->cudnnGetPoolingNdForwardOutputDim(d->pool, d->x, (int)in->rank, got) !=
            CUDNN_STATUS_SUCCESS)
        return false;
    for (uint32_t i = 0; i < in->rank; i++) /* it rounds down; ceil_mode may ask for more */
        if (got[i] != to->dim[i])
            return false;
    snprintf(d->how, sizeof d->how, "cudnn:pooling");
    return true;
}

bool mpl_dnn_pool(mpl_dnn_maker *m)
{
    m->d->run = run_pool;
    return describe_pool(m, mpl_dnn_in_shape(m, 0), mpl_dnn_out_shape(m, 0));
}

/* Of averages, whose gradient needs neither x nor y: dx and dy stand in for them. That of the
 * largest stays with our own kernel: which of several equal elements cuDNN takes is not said, and
 * after a relu many are equal. */
static int run_pool_grad(mpl_cuda *c, const mpl_cuda_dnn *d, const mpl_op_call *call,
                         void *workspace)
{
    const void *dy = call->in[0].data;
    void *dx = call->out[0].data;

    (void)workspace;
    return mpl_dnn_code(c->library->cudnnPoolingBackward(c->dnn, d->pool, &one, d->y, dy, d->y, dy,
                                                         d->x, dx, &zero, d->x, dx));
}

bool mpl_dnn_pool_grad(mpl_dnn_maker *m)
{
    m->d->run = run_pool_grad;
    return describe_pool(m, mpl_dnn_out_shape(m, 0), mpl_dnn_in_shape(m, 0));
}

#else
typedef int mpl_no_dnn; /* a translation unit of ISO C has at least one declaration */
#endif
