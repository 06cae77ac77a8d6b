/* dnn_conv.c -- convolution as cuDNN describes it. See dnn_priv.h.
 *
 * Algorithms come from cuDNN's heuristics, never from timing: the first that is deterministic, keeps to the stated math
 * type and fits the workspace limit. */
#include <mpl_config.h>

#if MPL_HAVE_CUDA

#include "runtime/cuda/dnn_priv.h"

static const float one = 1, zero = 0;

/* The heuristics' first choice that repeats bit for bit, keeps the math type and fits the limit. */
static bool choose_algorithm(mpl_dnn_maker *m)
{
    static const char *const names[] = {
        "implicit_gemm", "implicit_precomp_gemm", "gemm", "direct", "fft", "fft_tiling",
        "winograd",      "winograd_nonfused"};
    cudnnConvolutionFwdAlgoPerf_t found[CUDNN_CONVOLUTION_FWD_ALGO_COUNT];
    mpl_cuda_dnn *d = m->d;
    int n = 0;

    if (m->lib->cudnnGetConvolutionForwardAlgorithm_v7(m->c->dnn, d->x, d->filter, d->conv, d->y,
                                                       CUDNN_CONVOLUTION_FWD_ALGO_COUNT, &n,
                                                       found) != CUDNN_STATUS_SUCCESS)
        return false;
    for (int i = 0; i < n; i++) {
        size_t bytes = 0;

        if (found[i].status != CUDNN_STATUS_SUCCESS || found[i].determinism != CUDNN_DETERMINISTIC ||
            !mpl_dnn_keeps_math(m, found[i].mathType) ||
            m->lib->cudnnGetConvolutionForwardWorkspaceSize(m->c->dnn, d->x, d->filter, d->conv, d->y,
                                                            found[i].algo, &bytes) != CUDNN_STATUS_SUCCESS ||
            bytes > m->choice->workspace_limit)
            continue;
        d->algorithm = found[i].algo;
        d->workspace_bytes = bytes;
        snprintf(d->how, sizeof d->how, "cudnn:%s",
                 (size_t)d->algorithm < sizeof names / sizeof *names ? names[d->algorithm] : "conv");
        return true;
    }
    return false;
}

static int run_conv(mpl_cuda *c, const mpl_cuda_dnn *d, const mpl_op_call *call, void *workspace)
{
    cudnnStatus_t code = c->library->cudnnConvolutionForward(
        c->dnn, &one, d->x, call->in[0].data, d->filter, call->in[1].data, d->conv, d->algorithm, workspace,
        d->workspace_bytes, &zero, d->y, call->out[0].data);

    if (code == CUDNN_STATUS_SUCCESS && d->b != NULL)
        code =
            c->library->cudnnAddTensor(c->dnn, &one, d->b, call->in[2].data, &one, d->y, call->out[0].data);
    return mpl_dnn_code(code);
}

bool mpl_dnn_conv(mpl_dnn_maker *m)
{
    const mpl_shape *in = mpl_dnn_in_shape(m, 0), *weight = mpl_dnn_in_shape(m, 1),
                    *to = mpl_dnn_out_shape(m, 0);
    int n = (int)in->rank - 2, pad[MPL_DNN_DIMS], stride[MPL_DNN_DIMS], dilation[MPL_DNN_DIMS],
        size[MPL_DNN_DIMS];
    int64_t x[4] = {in->dim[0], in->dim[1], 1, in->dim[2]}, y[4] = {to->dim[0], to->dim[1], 1, to->dim[2]};
    int64_t bias[MPL_DNN_DIMS] = {1, to->dim[1], 1, 1, 1};
    bool flat = in->rank == 3; /* one spatial dim: cuDNN wants two, the other is of size 1 */
    mpl_cuda_dnn *d = m->d;
    const mpl_cuda_library *lib = m->lib;

    if (in->rank > MPL_DNN_DIMS || !mpl_dnn_pads(m, (uint32_t)n, pad + flat))
        return false;
    mpl_dnn_ints(m, MPL_ATTR_strides, (uint32_t)n, 1, stride + flat);
    mpl_dnn_ints(m, MPL_ATTR_dilations, (uint32_t)n, 1, dilation + flat);
    for (uint32_t i = 0; i < weight->rank; i++)
        size[i + (flat && i > 1)] = (int)weight->dim[i];
    if (flat)
        pad[0] = 0, stride[0] = dilation[0] = size[2] = 1, n = 2;
    if (!(flat ? mpl_dnn_tensor(m, &d->x, 4, x) : mpl_dnn_tensor(m, &d->x, in->rank, in->dim)) ||
        !(flat ? mpl_dnn_tensor(m, &d->y, 4, y) : mpl_dnn_tensor(m, &d->y, to->rank, to->dim)) ||
        lib->cudnnCreateFilterDescriptor(&d->filter) != CUDNN_STATUS_SUCCESS ||
        lib->cudnnSetFilterNdDescriptor(d->filter, CUDNN_DATA_FLOAT, CUDNN_TENSOR_NCHW, n + 2, size) !=
            CUDNN_STATUS_SUCCESS ||
        lib->cudnnCreateConvolutionDescriptor(&d->conv) != CUDNN_STATUS_SUCCESS ||
        lib->cudnnSetConvolutionNdDescriptor(d->conv, n, pad, stride, dilation, CUDNN_CROSS_CORRELATION,
                                             CUDNN_DATA_FLOAT) != CUDNN_STATUS_SUCCESS ||
        lib->cudnnSetConvolutionGroupCount(d->conv, (int)mpl_attr_int(m->g, m->op, MPL_ATTR_group, 1)) !=
            CUDNN_STATUS_SUCCESS ||
        lib->cudnnSetConvolutionMathType(d->conv, mpl_dnn_math(m)) != CUDNN_STATUS_SUCCESS)
        return false;
    if (mpl_dnn_in(m, 2) != MPL_NONE && !mpl_dnn_tensor(m, &d->b, (uint32_t)n + 2, bias))
        return false;
    d->run = run_conv;
    return choose_algorithm(m);
}

#else
typedef int mpl_no_dnn; /* a translation unit of ISO C has at least one declaration */
#endif
