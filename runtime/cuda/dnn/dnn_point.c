/* dnn_point.c -- element-wise operators as cuDNN describes them. See dnn_priv.h. */
#include <mpl_config.h>

#if MPL_HAVE_CUDA

#include "runtime/cuda/dnn/dnn_priv.h"

static const float one = 1, zero = 0;

static int run_activation(mpl_cuda *c, const mpl_cuda_dnn *d, const mpl_op_call *call,
                          void *workspace)
{
    (void)workspace;
    return mpl_dnn_code(c->library->cudnnActivationForward(
        c->dnn, d->activation, &one, d->x, call->in[0].data, &zero, d->y, call->out[0].data));
}

/* From dy and y. Of relu alone, as x is not at hand: y is above 0 where x was. */
static int run_relu_grad(mpl_cuda *c, const mpl_cuda_dnn *d, const mpl_op_call *call,
                         void *workspace)
{
    const void *dy = call->in[0].data, *y = call->in[1].data;

    (void)workspace;
    return mpl_dnn_code(c->library->cudnnActivationBackward(
        c->dnn, d->activation, &one, d->y, y, d->y, dy, d->x, y, &zero, d->x, call->out[0].data));
}

bool mpl_dnn_activation(mpl_dnn_maker *m)
{
    const mpl_shape *to = mpl_dnn_out_shape(m, 0);
    int64_t n = mpl_count_dims(to, 0, to->rank);
    cudnnActivationMode_t mode = m->kind == MPL_OP_relu || m->kind == MPL_OP_relu_grad
                                     ? CUDNN_ACTIVATION_RELU
                                 : m->kind == MPL_OP_sigmoid ? CUDNN_ACTIVATION_SIGMOID
                                                             : CUDNN_ACTIVATION_TANH;
    mpl_cuda_dnn *d = m->d;

    d->run = m->kind == MPL_OP_relu_grad ? run_relu_grad : run_activation;
    snprintf(d->how, sizeof d->how, "cudnn:activation");
    return mpl_dnn_tensor(m, &d->x, 4, (const int64_t[]){1, 1, 1, n}) &&
           mpl_dnn_tensor(m, &d->y, 4, (const int64_t[]){1, 1, 1, n}) &&
           m->lib->cudnnCreateActivationDescriptor(&d->activation) == CUDNN_STATUS_SUCCESS &&
           m->lib->cudnnSetActivationDescriptor(d->activation, mode, CUDNN_PROPAGATE_NAN, 0) ==
               CUDNN_STATUS_SUCCESS;
}

/* The second operand may lie where the output does only if the first one does too: they change
 * places then. */
static int run_op_tensor(mpl_cuda *c, const mpl_cuda_dnn *d, const mpl_op_call *call,
                         void *workspace)
{
    void *y = call->out[0].data;
    int first = call->in[1].data == y ? 1 : 0;

    (void)workspace;
    return mpl_dnn_code(c->library->cudnnOpTensor(c->dnn, d->op, &one, d->x, call->in[first].data,
                                                  &one, d->x, call->in[1 - first].data, &zero, d->x,
                                                  y));
}

/* add, mul, min, max, sum of equal dims. */
bool mpl_dnn_op_tensor(mpl_dnn_maker *m)
{
    const mpl_shape *to = mpl_dnn_out_shape(m, 0);
    cudnnOpTensorOp_t what = m->kind == MPL_OP_mul   ? CUDNN_OP_TENSOR_MUL
                             : m->kind == MPL_OP_min ? CUDNN_OP_TENSOR_MIN
                             : m->kind == MPL_OP_max ? CUDNN_OP_TENSOR_MAX
                                                     : CUDNN_OP_TENSOR_ADD;
    mpl_cuda_dnn *d = m->d;
    int64_t n = mpl_count_dims(to, 0, to->rank);

    if (m->n_in != 2 || !mpl_shape_equal(mpl_dnn_in_shape(m, 0), to) ||
        !mpl_shape_equal(mpl_dnn_in_shape(m, 1), to)) /* our kernel broadcasts, in any way */
        return false;
    d->run = run_op_tensor;
    snprintf(d->how, sizeof d->how, "cudnn:op_tensor");
    return mpl_dnn_tensor(m, &d->x, 4, (const int64_t[]){1, 1, 1, n}) &&
           m->lib->cudnnCreateOpTensorDescriptor(&d->op) == CUDNN_STATUS_SUCCESS &&
           m->lib->cudnnSetOpTensorDescriptor(d->op, what, CUDNN_DATA_FLOAT, CUDNN_PROPAGATE_NAN) ==
               CUDNN_STATUS_SUCCESS;
}

#else
typedef int mpl_no_dnn; /* a translation unit of ISO C has at least one declaration */
#endif
