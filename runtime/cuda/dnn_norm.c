/* dnn_norm.c -- batch norm, lrn and softmax as cuDNN describes them. See dnn_priv.h. */
#include <mpl_config.h>

#if MPL_HAVE_CUDA

#include "runtime/cuda/dnn_priv.h"

static const float one = 1, zero = 0;

static int run_batch_norm(mpl_cuda *c, const mpl_cuda_dnn *d, const mpl_op_call *call, void *workspace)
{
    (void)workspace;
    return mpl_dnn_code(c->library->cudnnBatchNormalizationForwardInference(
        c->dnn, CUDNN_BATCHNORM_SPATIAL, &one, &zero, d->x, call->in[0].data, d->y, call->out[0].data, d->b,
        call->in[1].data, call->in[2].data, call->in[3].data, call->in[4].data, d->epsilon));
}

bool mpl_dnn_batch_norm(mpl_dnn_maker *m)
{
    const mpl_shape *in = mpl_dnn_in_shape(m, 0);
    int64_t dim[4] = {in->dim[0], in->rank > 1 ? in->dim[1] : 1, 1, 1};
    mpl_cuda_dnn *d = m->d;

    if (in->rank < 2)
        return false;
    dim[2] = mpl_dnn_count(in, 2, in->rank);
    d->run = run_batch_norm;
    d->epsilon = mpl_attr_float(m->g, m->op, MPL_ATTR_epsilon, 1e-5);
    snprintf(d->how, sizeof d->how, "cudnn:batch_norm");
    return d->epsilon >= CUDNN_BN_MIN_EPSILON && mpl_dnn_tensor(m, &d->x, 4, dim) &&
           mpl_dnn_tensor(m, &d->y, 4, dim) &&
           mpl_dnn_tensor(m, &d->b, 4, (const int64_t[]){1, dim[1], 1, 1});
}

static int run_lrn(mpl_cuda *c, const mpl_cuda_dnn *d, const mpl_op_call *call, void *workspace)
{
    (void)workspace;
    return mpl_dnn_code(c->library->cudnnLRNCrossChannelForward(c->dnn, d->lrn, CUDNN_LRN_CROSS_CHANNEL_DIM1,
                                                                &one, d->x, call->in[0].data, &zero, d->y,
                                                                call->out[0].data));
}

/* Odd sizes only: where an even one lies about its channel is not said alike. */
bool mpl_dnn_lrn(mpl_dnn_maker *m)
{
    const mpl_shape *in = mpl_dnn_in_shape(m, 0);
    int64_t size = mpl_attr_int(m->g, m->op, MPL_ATTR_size, 1);
    int64_t dim[4] = {in->dim[0], in->dim[1], mpl_dnn_count(in, 2, in->rank), 1};
    double beta = mpl_attr_float(m->g, m->op, MPL_ATTR_beta, 0.75),
           k = mpl_attr_float(m->g, m->op, MPL_ATTR_bias, 1);
    mpl_cuda_dnn *d = m->d;

    if (size % 2 == 0 || size < CUDNN_LRN_MIN_N || size > CUDNN_LRN_MAX_N || k < CUDNN_LRN_MIN_K ||
        beta < CUDNN_LRN_MIN_BETA)
        return false;
    d->run = run_lrn;
    snprintf(d->how, sizeof d->how, "cudnn:lrn");
    return mpl_dnn_tensor(m, &d->x, 4, dim) && mpl_dnn_tensor(m, &d->y, 4, dim) &&
           m->lib->cudnnCreateLRNDescriptor(&d->lrn) == CUDNN_STATUS_SUCCESS &&
           m->lib->cudnnSetLRNDescriptor(d->lrn, (unsigned)size,
                                         mpl_attr_float(m->g, m->op, MPL_ATTR_alpha, 1e-4), beta,
                                         k) == CUDNN_STATUS_SUCCESS;
}

static int run_softmax(mpl_cuda *c, const mpl_cuda_dnn *d, const mpl_op_call *call, void *workspace)
{
    (void)workspace;
    return mpl_dnn_code(c->library->cudnnSoftmaxForward(c->dnn, d->softmax, CUDNN_SOFTMAX_MODE_CHANNEL, &one,
                                                        d->x, call->in[0].data, &zero, d->y,
                                                        call->out[0].data));
}

bool mpl_dnn_softmax(mpl_dnn_maker *m)
{
    const mpl_shape *in = mpl_dnn_in_shape(m, 0);
    int64_t given = mpl_attr_int(m->g, m->op, MPL_ATTR_axis, -1);
    uint32_t axis = (uint32_t)(given < 0 ? given + in->rank : given);
    int64_t dim[4] = {mpl_dnn_count(in, 0, axis), in->dim[axis], mpl_dnn_count(in, axis + 1, in->rank), 1};
    mpl_cuda_dnn *d = m->d;

    d->run = run_softmax;
    d->softmax = m->kind == MPL_OP_log_softmax ? CUDNN_SOFTMAX_LOG : CUDNN_SOFTMAX_ACCURATE;
    snprintf(d->how, sizeof d->how, "cudnn:softmax");
    return mpl_dnn_tensor(m, &d->x, 4, dim) && mpl_dnn_tensor(m, &d->y, 4, dim);
}

#else
typedef int mpl_no_dnn; /* a translation unit of ISO C has at least one declaration */
#endif
