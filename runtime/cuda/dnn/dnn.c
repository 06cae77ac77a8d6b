/* dnn.c -- operators of cuDNN and cuBLAS (f32, row-major), and their calls of api.h. */
#include <mpl_config.h>

#if MPL_HAVE_CUDA

#include "runtime/cuda/dnn/dnn_priv.h"

#define WORKSPACE_ALIGN 256 /* required by cuBLAS; the backend aligns buffers to less */

/* ---- pieces ---- */

static bool suits_value(const mpl_graph *g, mpl_value v)
{
    return v == MPL_NONE || (g->value_type[v] == MPL_TYPE_f32 && g->value_bytes[v] > 0 &&
                             g->value_bytes[v] / sizeof(float) <= INT32_MAX);
}

/* Everything is f32 and has 1 to 2^31 - 1 elements: the libraries count in int. */
static bool suits(const mpl_dnn_maker *maker)
{
    const mpl_graph *g = maker->g;

    for (uint32_t i = g->op_in_begin[maker->op]; i < g->op_in_begin[maker->op + 1]; i++)
        if (!suits_value(g, g->op_in[i]))
            return false;
    for (uint32_t i = g->op_out_begin[maker->op]; i < g->op_out_begin[maker->op + 1]; i++)
        if (!suits_value(g, g->op_out[i]))
            return false;
    return true;
}

/* ---- the entries of the table ---- */

static bool describe(mpl_dnn_maker *maker)
{
    switch (maker->kind) {
    case MPL_OP_conv:
    case MPL_OP_conv_act:
    case MPL_OP_conv_sum:
        return mpl_dnn_conv(maker);
    case MPL_OP_conv_transpose:
        return mpl_dnn_conv_transpose(maker);
    case MPL_OP_conv_grad:
    case MPL_OP_conv_grad_input:
    case MPL_OP_conv_grad_weight:
        return mpl_dnn_conv_grad(maker);
    case MPL_OP_gemm:
        return mpl_dnn_gemm(maker);
    case MPL_OP_gemm_grad:
        return mpl_dnn_gemm_grad(maker);
    case MPL_OP_matmul:
        return mpl_dnn_matmul(maker);
    default:
        return false;
    }
}

void mpl_dnn_release(mpl_ctx *ctx, mpl_cuda *cuda, mpl_cuda_dnn *dnn)
{
    const mpl_cuda_library *lib = cuda->library;

    if (dnn == NULL)
        return;
    if (dnn->x != NULL)
        lib->cudnnDestroyTensorDescriptor(dnn->x);
    if (dnn->y != NULL)
        lib->cudnnDestroyTensorDescriptor(dnn->y);
    if (dnn->b != NULL)
        lib->cudnnDestroyTensorDescriptor(dnn->b);
    if (dnn->filter != NULL)
        lib->cudnnDestroyFilterDescriptor(dnn->filter);
    if (dnn->conv != NULL)
        lib->cudnnDestroyConvolutionDescriptor(dnn->conv);
    if (dnn->activation != NULL)
        lib->cudnnDestroyActivationDescriptor(dnn->activation);
    mpl_free(ctx, dnn);
}

mpl_status mpl_dnn_prepare(mpl_ctx *ctx, mpl_cuda *cuda, const mpl_graph *g, mpl_op op,
                           const mpl_cuda_choice *choice, mpl_cuda_dnn **out,
                           uint64_t *workspace_bytes, const char **how)
{
    mpl_status st = MPL_OK;
    mpl_cuda_choice within = *choice; /* of the library itself, without alignment */
    mpl_dnn_maker m = {
        .driver = cuda,
        .lib = cuda->library,
        .g = g,
        .op = op,
        .kind = (mpl_op_kind)g->op_kind[op],
        .n_in = g->op_in_begin[op + 1] - g->op_in_begin[op],
        .n_out = g->op_out_begin[op + 1] - g->op_out_begin[op],
        .choice = &within,
    };

    *out = NULL;
    *workspace_bytes = 0;
    within.workspace_limit -= mpl_min_u64(within.workspace_limit, WORKSPACE_ALIGN);
    if (!suits(&m))
        return MPL_OK;
    MPL_TRY(mpl_new(ctx, m.dnn, 1));
    if (!describe(&m))
        goto out;
    if (m.dnn->workspace_bytes > 0)
        *workspace_bytes = m.dnn->workspace_bytes + WORKSPACE_ALIGN;
    *how = m.dnn->how;
    *out = m.dnn, m.dnn = NULL;
out:
    mpl_dnn_release(ctx, cuda, m.dnn);
    return st;
}

int mpl_dnn_run(mpl_cuda *cuda, const mpl_cuda_work *work, cudaStream_t stream)
{
    const mpl_cuda_dnn *dnn = work->dnn;
    uintptr_t at = (uintptr_t)work->call->workspace;
    void *workspace = (void *)((at + WORKSPACE_ALIGN - 1) & ~(uintptr_t)(WORKSPACE_ALIGN - 1));
    int code = mpl_dnn_code(cuda->library->cudnnSetStream(cuda->dnn, stream));

    if (code == 0) /* resets cuBLAS's workspace; products set it again */
        code = mpl_blas_code(cuda->library->cublasSetStream_v2(cuda->blas, stream));
    cuda->stream = stream;
    return code != 0 ? code : dnn->run(cuda, dnn, work->call, workspace);
}

#else
typedef int mpl_no_dnn; /* a translation unit of ISO C has at least one declaration */
#endif
