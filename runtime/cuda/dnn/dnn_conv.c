/* dnn_conv.c -- convolution and its gradients as cuDNN describes them. See dnn_priv.h.
 *
 * The algorithm is the first of cuDNN's heuristics, never of timing, that is deterministic, keeps
 * the stated math type and fits the workspace limit. A transposed convolution is the gradient of a
 * convolution with respect to its input. */
#include <mpl_config.h>

#if MPL_HAVE_CUDA

#include "graphs/ops/matrix/conv.h"
#include "runtime/cuda/dnn/dnn_priv.h"

static const float one = 1, zero = 0;

/* ---- descriptors ---- */

/* A shape for cuDNN: at least two spatial dims; a single one gets a dim of size 1 before it. */
static mpl_shape with_planes(const mpl_shape *shape)
{
    mpl_shape planes = *shape;

    if (shape->rank == 3)
        planes = (mpl_shape){4, {shape->dim[0], shape->dim[1], 1, shape->dim[2]}};
    return planes;
}

/* Whether a convolution of x by w gives exactly y in cuDNN, which rounds down. */
static bool leaves(const mpl_shape *x, const mpl_shape *w, const mpl_shape *y, const int *pad,
                   const int *stride, const int *dilation)
{
    for (uint32_t i = 2; i < x->rank; i++) {
        int64_t room = x->dim[i] + 2 * pad[i - 2] - (w->dim[i] - 1) * dilation[i - 2] - 1;

        if (room < 0 || room / stride[i - 2] + 1 != y->dim[i])
            return false;
    }
    return true;
}

/* The convolution of x by w that gives y; the operation may make any of the three. */
static bool describe_conv(mpl_dnn_maker *m, const mpl_shape *x_given, const mpl_shape *w_given,
                          const mpl_shape *y_given)
{
    const mpl_cuda_library *lib = m->lib;
    mpl_shape x = with_planes(x_given), w = with_planes(w_given), y = with_planes(y_given);
    int n = (int)x.rank - 2, pad[MPL_DNN_DIMS] = {0}, stride[MPL_DNN_DIMS] = {1},
        dilation[MPL_DNN_DIMS] = {1};
    int size[MPL_DNN_DIMS];
    uint32_t flat = x_given->rank == 3, given = x_given->rank - 2;
    mpl_cuda_dnn *d = m->dnn;

    if (x_given->rank < 3 || x_given->rank > MPL_DNN_DIMS || !mpl_dnn_pads(m, given, pad + flat))
        return false;
    mpl_dnn_ints(m, MPL_ATTR_strides, given, 1, stride + flat);
    mpl_dnn_ints(m, MPL_ATTR_dilations, given, 1, dilation + flat);
    if (!leaves(&x, &w, &y, pad, stride, dilation))
        return false;
    for (uint32_t i = 0; i < w.rank; i++)
        size[i] = (int)w.dim[i];
    return mpl_dnn_tensor(m, &d->x, x.rank, x.dim) && mpl_dnn_tensor(m, &d->y, y.rank, y.dim) &&
           lib->cudnnCreateFilterDescriptor(&d->filter) == CUDNN_STATUS_SUCCESS &&
           lib->cudnnSetFilterNdDescriptor(d->filter, CUDNN_DATA_FLOAT, CUDNN_TENSOR_NCHW, n + 2,
                                           size) == CUDNN_STATUS_SUCCESS &&
           lib->cudnnCreateConvolutionDescriptor(&d->conv) == CUDNN_STATUS_SUCCESS &&
           lib->cudnnSetConvolutionNdDescriptor(d->conv, n, pad, stride, dilation,
                                                CUDNN_CROSS_CORRELATION,
                                                CUDNN_DATA_FLOAT) == CUDNN_STATUS_SUCCESS &&
           lib->cudnnSetConvolutionGroupCount(d->conv,
                                              (int)mpl_attr_int(m->g, m->op, MPL_ATTR_group, 1)) ==
               CUDNN_STATUS_SUCCESS &&
           lib->cudnnSetConvolutionMathType(d->conv, mpl_dnn_math(m)) == CUDNN_STATUS_SUCCESS;
}

/* One number for each channel of a shape that has at least four dims in cuDNN. */
static bool describe_bias(mpl_dnn_maker *m, const mpl_shape *shape)
{
    return mpl_dnn_tensor(m, &m->dnn->b, shape->rank,
                          (const int64_t[MPL_DNN_DIMS]){1, shape->dim[1], 1, 1, 1});
}

/* ---- algorithms ---- */

/* The heuristics' first choice that repeats bit for bit, keeps the math type and fits the limit.
 * Grows the workspace to its need and appends its name to `how`. */
#define CHOOSE(name, perf, most, get, size, first, second, third, algorithm)                       \
    static bool name(mpl_dnn_maker *m, const char *const *names, int n_names)                      \
    {                                                                                              \
        mpl_cuda_dnn *d = m->dnn;                                                                  \
        perf found[most];                                                                          \
        int n = 0;                                                                                 \
                                                                                                   \
        if (m->lib->get(m->driver->dnn, first, second, d->conv, third, most, &n, found) !=         \
            CUDNN_STATUS_SUCCESS)                                                                  \
            return false;                                                                          \
        for (int i = 0; i < n; i++) {                                                              \
            size_t bytes = 0, length = strlen(d->how);                                             \
            int algo = (int)found[i].algo;                                                         \
                                                                                                   \
            if (found[i].status != CUDNN_STATUS_SUCCESS ||                                         \
                found[i].determinism != CUDNN_DETERMINISTIC ||                                     \
                !mpl_dnn_keeps_math(m, found[i].mathType) ||                                       \
                m->lib->size(m->driver->dnn, first, second, d->conv, third, found[i].algo,         \
                             &bytes) != CUDNN_STATUS_SUCCESS ||                                    \
                bytes > m->choice->workspace_limit)                                                \
                continue;                                                                          \
            d->algorithm = found[i].algo;                                                          \
            d->workspace_bytes = bytes > d->workspace_bytes ? bytes : d->workspace_bytes;          \
            snprintf(d->how + length, sizeof d->how - length, "%s%s", length > 0 ? "+" : "cudnn:", \
                     algo >= 0 && algo < n_names ? names[algo] : "conv");                          \
            return true;                                                                           \
        }                                                                                          \
        return false;                                                                              \
    }
CHOOSE(choose_forward_of, cudnnConvolutionFwdAlgoPerf_t, CUDNN_CONVOLUTION_FWD_ALGO_COUNT,
       cudnnGetConvolutionForwardAlgorithm_v7, cudnnGetConvolutionForwardWorkspaceSize, d->x,
       d->filter, d->y, algorithm)
CHOOSE(choose_data_of, cudnnConvolutionBwdDataAlgoPerf_t, CUDNN_CONVOLUTION_BWD_DATA_ALGO_COUNT,
       cudnnGetConvolutionBackwardDataAlgorithm_v7, cudnnGetConvolutionBackwardDataWorkspaceSize,
       d->filter, d->y, d->x, data_algorithm)
CHOOSE(choose_filter_of, cudnnConvolutionBwdFilterAlgoPerf_t,
       CUDNN_CONVOLUTION_BWD_FILTER_ALGO_COUNT, cudnnGetConvolutionBackwardFilterAlgorithm_v7,
       cudnnGetConvolutionBackwardFilterWorkspaceSize, d->x, d->y, d->filter, filter_algorithm)

#define COUNT(names) (int)(sizeof names / sizeof *names)

static bool choose_forward(mpl_dnn_maker *m)
{
    static const char *const names[] = {
        "implicit_gemm", "implicit_precomp_gemm", "gemm", "direct", "fft", "fft_tiling",
        "winograd",      "winograd_nonfused"};

    return choose_forward_of(m, names, COUNT(names));
}

static bool choose_data(mpl_dnn_maker *m)
{
    static const char *const names[] = {"data_0",        "data_1",
                                        "data_fft",      "data_fft_tiling",
                                        "data_winograd", "data_winograd_nonfused"};

    return choose_data_of(m, names, COUNT(names));
}

static bool choose_filter(mpl_dnn_maker *m)
{
    static const char *const names[] = {"filter_0",         "filter_1",
                                        "filter_fft",       "filter_3",
                                        "filter_winograd",  "filter_winograd_nonfused",
                                        "filter_fft_tiling"};

    return choose_filter_of(m, names, COUNT(names));
}

/* ---- forward: y = activation(conv(x, w) + bias + z) ---- */

static int run_conv(mpl_cuda *cuda, const mpl_cuda_dnn *d, const mpl_op_call *call, void *workspace)
{
    const mpl_cuda_library *lib = cuda->library;
    const mpl_tensor *in = call->in + d->first;
    void *y = call->out[0].data;
    bool adds = d->first > 0;
    cudnnStatus_t code = CUDNN_STATUS_SUCCESS;

    if (adds && call->in[0].data != y)
        code = lib->cudnnAddTensor(cuda->dnn, &one, d->y, call->in[0].data, &zero, d->y, y);
    if (code == CUDNN_STATUS_SUCCESS)
        code = lib->cudnnConvolutionForward(cuda->dnn, &one, d->x, in[0].data, d->filter,
                                            in[1].data, d->conv, d->algorithm, workspace,
                                            d->workspace_bytes, adds ? &one : &zero, d->y, y);
    if (code == CUDNN_STATUS_SUCCESS && d->b != NULL)
        code = lib->cudnnAddTensor(cuda->dnn, &one, d->b, in[2].data, &one, d->y, y);
    if (code == CUDNN_STATUS_SUCCESS && d->activation != NULL)
        code = lib->cudnnActivationForward(cuda->dnn, d->activation, &one, d->y, y, &zero, d->y, y);
    return mpl_dnn_code(code);
}

bool mpl_dnn_conv(mpl_dnn_maker *m)
{
    const uint32_t first = mpl_fused_first(m->kind);
    mpl_shape y = with_planes(mpl_dnn_out_shape(m, 0));
    mpl_activation activation = mpl_activation_of(m->g, m->op);
    bool clips = activation == MPL_ACT_RELU6;
    mpl_cuda_dnn *d = m->dnn;

    d->first = first;
    d->run = run_conv;
    if (!describe_conv(m, mpl_dnn_in_shape(m, first), mpl_dnn_in_shape(m, first + 1),
                       mpl_dnn_out_shape(m, 0)) ||
        (mpl_dnn_in(m, first + 2) != MPL_NONE && !describe_bias(m, &y)) || !choose_forward(m))
        return false;
    return activation == MPL_ACT_NONE ||
           (m->lib->cudnnCreateActivationDescriptor(&d->activation) == CUDNN_STATUS_SUCCESS &&
            m->lib->cudnnSetActivationDescriptor(
                d->activation, clips ? CUDNN_ACTIVATION_CLIPPED_RELU : CUDNN_ACTIVATION_RELU,
                CUDNN_PROPAGATE_NAN, clips ? 6 : 0) == CUDNN_STATUS_SUCCESS);
}

/* ---- backward ---- */

static cudnnStatus_t run_data(mpl_cuda *cuda, const mpl_cuda_dnn *d, const mpl_tensor *tensor,
                              const mpl_tensor *dy, const mpl_tensor *dx, void *workspace)
{
    return cuda->library->cudnnConvolutionBackwardData(
        cuda->dnn, &one, d->filter, tensor->data, d->y, dy->data, d->conv, d->data_algorithm,
        workspace, d->workspace_bytes, &zero, d->x, dx->data);
}

static int run_transpose(mpl_cuda *cuda, const mpl_cuda_dnn *d, const mpl_op_call *call,
                         void *workspace)
{
    cudnnStatus_t code = run_data(cuda, d, &call->in[1], &call->in[0], &call->out[0], workspace);

    if (code == CUDNN_STATUS_SUCCESS && d->b != NULL)
        code = cuda->library->cudnnAddTensor(cuda->dnn, &one, d->b, call->in[2].data, &one, d->x,
                                             call->out[0].data);
    return mpl_dnn_code(code);
}

bool mpl_dnn_conv_transpose(mpl_dnn_maker *m)
{
    mpl_shape y = with_planes(mpl_dnn_out_shape(m, 0));
    mpl_attr attr;

    if (mpl_attr_get(m->g, m->op, MPL_ATTR_output_shape, &attr) &&
        !mpl_attr_get(m->g, m->op, MPL_ATTR_pads, &attr))
        return false; /* it computes the pads, which may differ on both sides */
    m->dnn->run = run_transpose;
    return describe_conv(m, mpl_dnn_out_shape(m, 0), mpl_dnn_in_shape(m, 1),
                         mpl_dnn_in_shape(m, 0)) &&
           (mpl_dnn_in(m, 2) == MPL_NONE || describe_bias(m, &y)) && choose_data(m);
}

static int run_grad_input(mpl_cuda *cuda, const mpl_cuda_dnn *d, const mpl_op_call *call,
                          void *workspace)
{
    return mpl_dnn_code(run_data(cuda, d, &call->in[1], &call->in[0], &call->out[0], workspace));
}

/* dw, and db and dx if wanted. */
static int run_grad(mpl_cuda *cuda, const mpl_cuda_dnn *d, const mpl_op_call *call, void *workspace)
{
    const mpl_cuda_library *lib = cuda->library;
    const void *dy = call->in[0].data;
    cudnnStatus_t code = lib->cudnnConvolutionBackwardFilter(
        cuda->dnn, &one, d->x, call->in[1].data, d->y, dy, d->conv, d->filter_algorithm, workspace,
        d->workspace_bytes, &zero, d->filter, call->out[0].data);

    if (code == CUDNN_STATUS_SUCCESS && call->n_out > 1 && call->out[1].data != NULL)
        code = lib->cudnnConvolutionBackwardBias(cuda->dnn, &one, d->y, dy, &zero, d->b,
                                                 call->out[1].data);
    if (code == CUDNN_STATUS_SUCCESS && call->n_out > 2 && call->out[2].data != NULL)
        code = run_data(cuda, d, &call->in[2], &call->in[0], &call->out[2], workspace);
    return mpl_dnn_code(code);
}

bool mpl_dnn_conv_grad(mpl_dnn_maker *m)
{
    mpl_shape y = with_planes(mpl_dnn_in_shape(m, 0));
    bool input = m->kind == MPL_OP_conv_grad_input, all = m->kind == MPL_OP_conv_grad;
    const mpl_shape *x = input ? mpl_dnn_out_shape(m, 0) : mpl_dnn_in_shape(m, 1);
    const mpl_shape *w = input ? mpl_dnn_in_shape(m, 1) : mpl_dnn_out_shape(m, 0);

    m->dnn->run = input ? run_grad_input : run_grad;
    return describe_conv(m, x, w, mpl_dnn_in_shape(m, 0)) && (!all || describe_bias(m, &y)) &&
           (input || choose_filter(m)) &&
           ((!input && mpl_dnn_out(m, 2) == MPL_NONE) || choose_data(m));
}

#else
typedef int mpl_no_dnn; /* a translation unit of ISO C has at least one declaration */
#endif
