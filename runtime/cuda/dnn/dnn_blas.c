/* dnn_blas.c -- cuBLAS products: row-major y = a b is column-major y' = b' a'. See dnn_priv.h. */
#include <mpl_config.h>

#if MPL_HAVE_CUDA

#include "runtime/cuda/dnn/dnn_priv.h"

#define BLAS_WORKSPACE (UINT64_C(4) << 20)
/* from its manual: with less, routines may fail for lack of memory */
#define LEAST_WORKSPACE (UINT64_C(16) << 10)

static const float one = 1, zero = 0;

static cublasStatus_t multiply(mpl_cuda *cuda, const mpl_cuda_dnn *dnn,
                               const mpl_dnn_product *product, const mpl_op_call *call)
{
    float kept = product->adds ? product->beta : 0;

    return cuda->library->cublasGemmStridedBatchedEx(
        cuda->blas, product->trans_a, product->trans_b, product->rows, product->columns,
        product->terms, &product->alpha, call->in[product->right].data, CUDA_R_32F,
        product->a_stride, product->a_step, call->in[product->left].data, CUDA_R_32F,
        product->b_stride, product->b_step, &kept, call->out[product->out].data, CUDA_R_32F,
        product->rows, product->y_step, product->n, dnn->math, CUBLAS_GEMM_DEFAULT);
}

static int run_products(mpl_cuda *cuda, const mpl_cuda_dnn *dnn, const mpl_op_call *call,
                        void *workspace)
{
    const mpl_cuda_library *lib = cuda->library;
    cublasStatus_t code;

    if (dnn->product[0].adds) { /* copies c to the output, then computes alpha a b + beta c */
        cudnnStatus_t put = lib->cudnnAddTensor(cuda->dnn, &one, dnn->b, call->in[2].data, &zero,
                                                dnn->y, call->out[0].data);

        if (put != CUDNN_STATUS_SUCCESS)
            return mpl_dnn_code(put);
    }
    code = lib->cublasSetWorkspace_v2(cuda->blas, workspace, dnn->workspace_bytes);
    for (uint32_t i = 0; i < dnn->n_products && code == CUBLAS_STATUS_SUCCESS; i++)
        code = multiply(cuda, dnn, &dnn->product[i], call);
    return mpl_blas_code(code);
}

/* Adds a product: output 0 [rows, columns] of inputs 0 [rows, terms] and 1 [terms, columns], each
 * as it is or transposed. NULL: too large, or too little room for a workspace. */
static mpl_dnn_product *product(mpl_dnn_maker *maker, bool trans_left, bool trans_right,
                                int64_t rows, int64_t terms, int64_t columns)
{
    mpl_cuda_dnn *dnn = maker->dnn;
    mpl_dnn_product *p = &dnn->product[dnn->n_products++];

    if (rows > INT32_MAX || terms > INT32_MAX || columns > INT32_MAX ||
        maker->choice->workspace_limit < LEAST_WORKSPACE)
        return NULL;
    dnn->run = run_products;
    *p = (mpl_dnn_product){.trans_a = trans_right ? CUBLAS_OP_T : CUBLAS_OP_N,
                           .trans_b = trans_left ? CUBLAS_OP_T : CUBLAS_OP_N,
                           .rows = (int)columns,
                           .columns = (int)rows,
                           .terms = (int)terms,
                           .a_stride = (int)(trans_right ? terms : columns),
                           .b_stride = (int)(trans_left ? rows : terms),
                           .n = 1,
                           .alpha = 1,
                           .right = 1};
    dnn->math = maker->choice->fp16   ? CUBLAS_COMPUTE_32F_FAST_16F
                : maker->choice->tf32 ? CUBLAS_COMPUTE_32F_FAST_TF32
                                      : CUBLAS_COMPUTE_32F;
    dnn->workspace_bytes =
        maker->choice->workspace_limit >= BLAS_WORKSPACE ? BLAS_WORKSPACE : LEAST_WORKSPACE;
    snprintf(dnn->how, sizeof dnn->how, "cublas:gemm%s",
             dnn->workspace_bytes == BLAS_WORKSPACE ? "" : " in little workspace");
    return p;
}

/* alpha a b + beta c: c, of any dims that broadcast, is first expanded into the output. */
bool mpl_dnn_gemm(mpl_dnn_maker *maker)
{
    bool trans_a = mpl_attr_int(maker->g, maker->op, MPL_ATTR_trans_a, 0) != 0;
    bool trans_b = mpl_attr_int(maker->g, maker->op, MPL_ATTR_trans_b, 0) != 0;
    const int64_t *a = mpl_dnn_in_shape(maker, 0)->dim, *b = mpl_dnn_in_shape(maker, 1)->dim;
    const mpl_shape *to = mpl_dnn_out_shape(maker, 0), *c;
    mpl_dnn_product *p = product(maker, trans_a, trans_b, a[trans_a], a[!trans_a], b[!trans_b]);
    int64_t spread[4] = {1, 1, 1, 1};

    if (p == NULL)
        return false;
    p->alpha = (float)mpl_attr_float(maker->g, maker->op, MPL_ATTR_alpha, 1);
    if (mpl_dnn_in(maker, 2) == MPL_NONE)
        return true;
    c = mpl_dnn_in_shape(maker, 2);
    p->beta = (float)mpl_attr_float(maker->g, maker->op, MPL_ATTR_beta, 1);
    p->adds = true;
    for (uint32_t i = 0; i < c->rank; i++)
        spread[4 - c->rank + i] = c->dim[i];
    if (spread[2] == 1 && spread[3] == to->dim[1]) /* as biases of channels */
        return mpl_dnn_tensor(maker, &maker->dnn->b, 4, (const int64_t[]){1, to->dim[1], 1, 1}) &&
               mpl_dnn_tensor(maker, &maker->dnn->y, 4,
                              (const int64_t[]){to->dim[0], to->dim[1], 1, 1});
    return mpl_dnn_tensor(maker, &maker->dnn->b, 4, spread) &&
           mpl_dnn_tensor(maker, &maker->dnn->y, 4,
                          (const int64_t[]){1, 1, to->dim[0], to->dim[1]});
}

/* ---- gradients: y = op(a) op(b) gives op(a)' = dy op(b)T and op(b)' = op(a)T dy; that of a
 * transposed operand is computed transposed ---- */

static int run_gemm_grad(mpl_cuda *cuda, const mpl_cuda_dnn *dnn, const mpl_op_call *call,
                         void *workspace)
{
    const mpl_shape *dy = &call->in[0].shape;
    mpl_cuda_kernel k = {.id = MPL_CUDA_REDUCE,
                         .kind = MPL_OP_gemm_grad,
                         .n = dy->dim[1],
                         .n_in = 1,
                         .type = {MPL_TYPE_f32},
                         .out_type = MPL_TYPE_f32,
                         .in = {call->in[0].data}};
    int code = run_products(cuda, dnn, call, workspace);

    if (code != 0 || call->n_out < 2 || call->out[1].data == NULL)
        return code;
    k.out[0] = call->out[1].data; /* beta times the sums of columns */
    k.as.reduce =
        (mpl_cuda_reduce){.n_kept = 1,
                          .n_reduced = 1,
                          .kept_dim = {dy->dim[1]},
                          .kept_stride = {1},
                          .reduced_dim = {dy->dim[0]},
                          .reduced_stride = {dy->dim[1]},
                          .n = dy->dim[0],
                          .factor = mpl_attr_float(call->graph, call->op, MPL_ATTR_beta, 1)};
    return cuda->library->launch(&k, cuda->stream);
}

/* Sets the operands (dy and another, in either order) and the output of a gradient's product. */
static bool place(mpl_dnn_maker *maker, mpl_dnn_product *product, uint32_t left, uint32_t right,
                  uint32_t out)
{
    if (product == NULL)
        return false;
    product->alpha = (float)mpl_attr_float(maker->g, maker->op, MPL_ATTR_alpha, 1);
    product->left = left;
    product->right = right;
    product->out = out;
    return true;
}

bool mpl_dnn_gemm_grad(mpl_dnn_maker *maker)
{
    bool trans_a = mpl_attr_int(maker->g, maker->op, MPL_ATTR_trans_a, 0) != 0;
    bool trans_b = mpl_attr_int(maker->g, maker->op, MPL_ATTR_trans_b, 0) != 0;
    const int64_t *dy = mpl_dnn_in_shape(maker, 0)->dim, *a = mpl_dnn_in_shape(maker, 1)->dim;
    int64_t rows = dy[0], columns = dy[1], depth = a[!trans_a];
    bool done;

    if (trans_b)
        done = place(maker, product(maker, true, trans_a, columns, rows, depth), 0, 1, 0);
    else
        done = place(maker, product(maker, !trans_a, false, depth, rows, columns), 1, 0, 0);
    if (done && mpl_dnn_out(maker, 2) != MPL_NONE) {
        if (trans_a)
            done = place(maker, product(maker, trans_b, true, depth, columns, rows), 2, 0, 2);
        else
            done = place(maker, product(maker, false, !trans_b, rows, columns, depth), 0, 2, 2);
    }
    maker->dnn->run = run_gemm_grad;
    return done;
}

/* Stacks of matrices: all dims equal on both sides, or a single matrix on one side. */
bool mpl_dnn_matmul(mpl_dnn_maker *maker)
{
    mpl_shape a = *mpl_dnn_in_shape(maker, 0), b = *mpl_dnn_in_shape(maker, 1);
    int64_t n_a, n_b, rows, terms, columns;
    bool trans_a = a.rank > 1 && mpl_attr_int(maker->g, maker->op, MPL_ATTR_trans_a, 0) != 0;
    bool trans_b = b.rank > 1 && mpl_attr_int(maker->g, maker->op, MPL_ATTR_trans_b, 0) != 0;
    mpl_dnn_product *p;

    if (a.rank == 1)
        a = (mpl_shape){2, {1, a.dim[0]}};
    if (b.rank == 1)
        b = (mpl_shape){2, {b.dim[0], 1}};
    n_a = mpl_count_dims(&a, 0, a.rank - 2), n_b = mpl_count_dims(&b, 0, b.rank - 2);
    rows = a.dim[a.rank - (trans_a ? 1 : 2)], terms = a.dim[a.rank - (trans_a ? 2 : 1)];
    columns = b.dim[b.rank - (trans_b ? 2 : 1)];
    if (n_b == 1 && !trans_a) /* a single right matrix: the left ones form one tall matrix */
        return product(maker, false, trans_b, n_a * rows, terms, columns) != NULL;
    for (uint32_t i = 0; i + 2 < a.rank && n_a != 1; i++)
        if (a.rank != b.rank || a.dim[i] != b.dim[i])
            return false;
    if (n_b == 1 && n_a != 1) /* of transposed left ones */
        return false;
    p = product(maker, trans_a, trans_b, rows, terms, columns);
    if (n_b > INT32_MAX || p == NULL)
        return false;
    p->n = (int)n_b;
    p->a_step = terms * columns;
    p->b_step = n_a != 1 ? rows * terms : 0;
    p->y_step = rows * columns;
    return true;
}

#else
typedef int mpl_no_dnn; /* a translation unit of ISO C has at least one declaration */
#endif
