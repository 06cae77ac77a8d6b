/* dnn_norm.c -- batch norm, lrn and softmax, and their gradients, as cuDNN describes them. See
 * dnn_priv.h. */
#include <mpl_config.h>

#if MPL_HAVE_CUDA

#include "runtime/cuda/dnn/dnn_priv.h"

/* The items of a batch that its kernels are launched for: what others found out, and keep to. */
#define MOST_ITEMS       65535
#define MOST_TRAIN_ITEMS 880801

static const float one = 1, zero = 0;

static int run_batch_norm(mpl_cuda *c, const mpl_cuda_dnn *d, const mpl_op_call *call,
                          void *workspace)
{
    (void)workspace;
    return mpl_dnn_code(c->library->cudnnBatchNormalizationForwardInference(
        c->dnn, CUDNN_BATCHNORM_SPATIAL, &one, &zero, d->x, call->in[0].data, d->y,
        call->out[0].data, d->b, call->in[1].data, call->in[2].data, call->in[3].data,
        call->in[4].data, d->epsilon));
}

bool mpl_dnn_batch_norm(mpl_dnn_maker *m)
{
    const mpl_shape *in = mpl_dnn_in_shape(m, 0);
    int64_t dim[4] = {in->dim[0], in->rank > 1 ? in->dim[1] : 1, 1, 1};
    mpl_cuda_dnn *d = m->d;

    if (in->rank < 2 || in->dim[0] > MOST_ITEMS)
        return false;
    dim[2] = mpl_count_dims(in, 2, in->rank);
    d->run = run_batch_norm;
    d->epsilon = mpl_attr_float(m->g, m->op, MPL_ATTR_epsilon, 1e-5);
    snprintf(d->how, sizeof d->how, "cudnn:batch_norm");
    return d->epsilon >= CUDNN_BN_MIN_EPSILON && mpl_dnn_tensor(m, &d->x, 4, dim) &&
           mpl_dnn_tensor(m, &d->y, 4, dim) &&
           mpl_dnn_tensor(m, &d->b, 4, (const int64_t[]){1, dim[1], 1, 1});
}

/* ---- batch norm in training: cuDNN keeps 1 / sqrt(variance + epsilon) where our operators keep
 * the variance, and its running variance is another one; a small kernel of ours on either side
 * turns one into the other. */

static bool describe_channels(mpl_dnn_maker *m)
{
    const mpl_shape *in = mpl_dnn_in_shape(m, 0);
    int64_t channels = in->rank > 1 ? in->dim[1] : 1;
    mpl_cuda_dnn *d = m->d;

    d->workspace_bytes = (size_t)channels * sizeof(float);
    d->epsilon = mpl_attr_float(m->g, m->op, MPL_ATTR_epsilon, 1e-5);
    snprintf(d->how, sizeof d->how, "cudnn:batch_norm_training");
    return in->rank > 1 && in->dim[0] <= MOST_TRAIN_ITEMS && d->epsilon > 0 &&
           d->epsilon >= CUDNN_BN_MIN_EPSILON && d->workspace_bytes <= m->choice->workspace_limit &&
           mpl_dnn_tensor(
               m, &d->x, 4,
               (const int64_t[]){in->dim[0], channels, mpl_count_dims(in, 2, in->rank), 1}) &&
           mpl_dnn_tensor(m, &d->b, 4, (const int64_t[]){1, channels, 1, 1});
}

/* What our kernel is told: channels, epsilon, momentum; its operands are the caller's to fill
 * in. */
static mpl_cuda_kernel moments(const mpl_cuda_dnn *d, const mpl_op_call *call)
{
    mpl_cuda_kernel k = {.id = MPL_CUDA_MOMENTS,
                         .kind = (int32_t)call->graph->op_kind[call->op],
                         .n = (int64_t)(d->workspace_bytes / sizeof(float)),
                         .out_type = MPL_TYPE_f32};

    for (int i = 0; i < MPL_CUDA_MAX_IN; i++)
        k.type[i] = MPL_TYPE_f32;
    k.as.batch.epsilon = d->epsilon;
    k.as.batch.momentum = mpl_attr_float(call->graph, call->op, MPL_ATTR_momentum, 0.9);
    return k;
}

static int run_batch_train(mpl_cuda *c, const mpl_cuda_dnn *d, const mpl_op_call *call,
                           void *workspace)
{
    const mpl_tensor *in = call->in, *out = call->out;
    mpl_cuda_kernel k = moments(d, call);
    cudnnStatus_t code = c->library->cudnnBatchNormalizationForwardTraining(
        c->dnn, CUDNN_BATCHNORM_SPATIAL, &one, &zero, d->x, in[0].data, d->x, out[0].data, d->b,
        in[1].data, in[2].data, 1, NULL, NULL, d->epsilon, out[1].data, workspace);

    if (code != CUDNN_STATUS_SUCCESS)
        return mpl_dnn_code(code);
    k.in[0] = workspace;
    k.in[1] = out[1].data;
    k.out[2] = out[2].data;
    for (int i = 3; i < 5 && k.kind == MPL_OP_batch_norm_train; i++) {
        k.in[i] = in[i].data;
        k.out[i] = out[i].data;
    }
    return c->library->launch(&k, c->stream);
}

bool mpl_dnn_batch_train(mpl_dnn_maker *m)
{
    m->d->run = run_batch_train;
    return describe_channels(m);
}

static int run_batch_grad(mpl_cuda *c, const mpl_cuda_dnn *d, const mpl_op_call *call,
                          void *workspace)
{
    const mpl_tensor *in = call->in, *out = call->out;
    mpl_cuda_kernel k = moments(d, call);
    int code;

    k.in[4] = in[4].data;
    k.out[0] = workspace;
    code = c->library->launch(&k, c->stream);
    if (code != 0)
        return code;
    return mpl_dnn_code(c->library->cudnnBatchNormalizationBackward(
        c->dnn, CUDNN_BATCHNORM_SPATIAL, &one, &zero, &one, &zero, d->x, in[1].data, d->x,
        in[0].data, d->x, out[0].data, d->b, in[2].data, out[1].data, out[2].data, d->epsilon,
        in[3].data, workspace));
}

bool mpl_dnn_batch_grad(mpl_dnn_maker *m)
{
    m->d->run = run_batch_grad;
    return describe_channels(m);
}

/* ---- lrn, softmax ---- */

static int run_lrn(mpl_cuda *c, const mpl_cuda_dnn *d, const mpl_op_call *call, void *workspace)
{
    (void)workspace;
    return mpl_dnn_code(c->library->cudnnLRNCrossChannelForward(
        c->dnn, d->lrn, CUDNN_LRN_CROSS_CHANNEL_DIM1, &one, d->x, call->in[0].data, &zero, d->y,
        call->out[0].data));
}

/* Odd sizes only: where an even one lies about its channel is not said alike. */
/* From dy and x; y, which it asks for too, is made once more. */
static int run_lrn_grad(mpl_cuda *c, const mpl_cuda_dnn *d, const mpl_op_call *call,
                        void *workspace)
{
    const void *dy = call->in[0].data, *x = call->in[1].data;
    cudnnStatus_t code = c->library->cudnnLRNCrossChannelForward(
        c->dnn, d->lrn, CUDNN_LRN_CROSS_CHANNEL_DIM1, &one, d->x, x, &zero, d->y, workspace);

    if (code == CUDNN_STATUS_SUCCESS)
        code = c->library->cudnnLRNCrossChannelBackward(
            c->dnn, d->lrn, CUDNN_LRN_CROSS_CHANNEL_DIM1, &one, d->y, workspace, d->y, dy, d->x, x,
            &zero, d->x, call->out[0].data);
    return mpl_dnn_code(code);
}

bool mpl_dnn_lrn(mpl_dnn_maker *m)
{
    const mpl_shape *in = mpl_dnn_in_shape(m, 0);
    int64_t size = mpl_attr_int(m->g, m->op, MPL_ATTR_size, 1);
    int64_t dim[4] = {in->dim[0], in->dim[1], mpl_count_dims(in, 2, in->rank), 1};
    double beta = mpl_attr_float(m->g, m->op, MPL_ATTR_beta, 0.75),
           k = mpl_attr_float(m->g, m->op, MPL_ATTR_bias, 1);
    mpl_cuda_dnn *d = m->d;

    if (size % 2 == 0 || size < CUDNN_LRN_MIN_N || size > CUDNN_LRN_MAX_N || k < CUDNN_LRN_MIN_K ||
        beta < CUDNN_LRN_MIN_BETA)
        return false;
    d->run = m->kind == MPL_OP_lrn ? run_lrn : run_lrn_grad;
    if (m->kind == MPL_OP_lrn_grad)
        d->workspace_bytes = (size_t)mpl_count_dims(in, 0, in->rank) * sizeof(float);
    if (d->workspace_bytes > m->choice->workspace_limit)
        return false;
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
    return mpl_dnn_code(
        c->library->cudnnSoftmaxForward(c->dnn, d->softmax, CUDNN_SOFTMAX_MODE_CHANNEL, &one, d->x,
                                        call->in[0].data, &zero, d->y, call->out[0].data));
}

/* From dy, which the result may lie over, and y. */
static int run_softmax_grad(mpl_cuda *c, const mpl_cuda_dnn *d, const mpl_op_call *call,
                            void *workspace)
{
    (void)workspace;
    return mpl_dnn_code(c->library->cudnnSoftmaxBackward(
        c->dnn, d->softmax, CUDNN_SOFTMAX_MODE_CHANNEL, &one, d->y, call->in[1].data, d->x,
        call->in[0].data, &zero, d->x, call->out[0].data));
}

bool mpl_dnn_softmax(mpl_dnn_maker *m)
{
    const mpl_shape *in = mpl_dnn_in_shape(m, 0);
    int64_t given = mpl_attr_int(m->g, m->op, MPL_ATTR_axis, -1);
    uint32_t axis = (uint32_t)(given < 0 ? given + in->rank : given);
    int64_t dim[4] = {mpl_count_dims(in, 0, axis), in->dim[axis],
                      mpl_count_dims(in, axis + 1, in->rank), 1};
    mpl_cuda_dnn *d = m->d;

    d->run = m->kind == MPL_OP_softmax_grad ? run_softmax_grad : run_softmax;
    d->softmax = m->kind == MPL_OP_log_softmax ? CUDNN_SOFTMAX_LOG : CUDNN_SOFTMAX_ACCURATE;
    snprintf(d->how, sizeof d->how, "cudnn:softmax");
    return mpl_dnn_tensor(m, &d->x, 4, dim) && mpl_dnn_tensor(m, &d->y, 4, dim);
}

#else
typedef int mpl_no_dnn; /* a translation unit of ISO C has at least one declaration */
#endif
