/* dnn_blas.c -- matrix products as cuBLAS has them: row-major y = a b is column-major y' = b' a'. See dnn_priv.h. */
#include <mpl_config.h>

#if MPL_HAVE_CUDA

#include "runtime/cuda/dnn_priv.h"

#define BLAS_WORKSPACE (UINT64_C(4) << 20)

static const float one = 1, zero = 0;

static int run_product(mpl_cuda *c, const mpl_cuda_dnn *d, const mpl_op_call *call, void *workspace)
{
    const mpl_cuda_library *lib = c->library;
    const mpl_dnn_product *p = &d->product;
    cublasStatus_t code;
    float kept = p->adds ? p->beta : 0;

    if (p->adds) { /* the output becomes c, then alpha a b + beta c */
        cudnnStatus_t put =
            lib->cudnnAddTensor(c->dnn, &one, d->b, call->in[2].data, &zero, d->y, call->out[0].data);

        if (put != CUDNN_STATUS_SUCCESS)
            return mpl_dnn_code(put);
    }
    code = lib->cublasSetWorkspace_v2(c->blas, workspace, d->workspace_bytes);
    if (code == CUBLAS_STATUS_SUCCESS)
        code = lib->cublasGemmStridedBatchedEx(
            c->blas, p->trans_a, p->trans_b, p->rows, p->columns, p->terms, &p->alpha, call->in[1].data,
            CUDA_R_32F, p->a_stride, p->a_step, call->in[0].data, CUDA_R_32F, p->b_stride, p->b_step, &kept,
            call->out[0].data, CUDA_R_32F, p->rows, p->y_step, p->n, d->math, CUBLAS_GEMM_DEFAULT);
    return mpl_blas_code(code);
}

static bool product(mpl_dnn_maker *m, bool trans_a, bool trans_b, int64_t rows, int64_t terms,
                    int64_t columns)
{
    mpl_cuda_dnn *d = m->d;

    if (rows > INT32_MAX || terms > INT32_MAX || columns > INT32_MAX)
        return false;
    d->run = run_product;
    d->product.trans_a = trans_b ? CUBLAS_OP_T : CUBLAS_OP_N;
    d->product.trans_b = trans_a ? CUBLAS_OP_T : CUBLAS_OP_N;
    d->product.rows = (int)columns;
    d->product.columns = (int)rows;
    d->product.terms = (int)terms;
    d->product.a_stride = (int)(trans_b ? terms : columns);
    d->product.b_stride = (int)(trans_a ? rows : terms);
    d->product.alpha = 1;
    d->product.n = 1;
    d->math = m->choice->fp16   ? CUBLAS_COMPUTE_32F_FAST_16F
              : m->choice->tf32 ? CUBLAS_COMPUTE_32F_FAST_TF32
                                : CUBLAS_COMPUTE_32F;
    d->workspace_bytes = m->choice->workspace_limit >= BLAS_WORKSPACE ? BLAS_WORKSPACE : 0; /* all, or none */
    snprintf(d->how, sizeof d->how, d->workspace_bytes > 0 ? "cublas:gemm" : "cublas:gemm without workspace");
    return true;
}

/* beta c with c of the output's dims; our kernel takes the other ways to broadcast it, after the product. */
bool mpl_dnn_gemm(mpl_dnn_maker *m)
{
    bool trans_a = mpl_attr_int(m->g, m->op, MPL_ATTR_trans_a, 0) != 0;
    bool trans_b = mpl_attr_int(m->g, m->op, MPL_ATTR_trans_b, 0) != 0;
    const int64_t *a = mpl_dnn_in_shape(m, 0)->dim, *b = mpl_dnn_in_shape(m, 1)->dim;
    const mpl_shape *to = mpl_dnn_out_shape(m, 0), *c;

    if (!product(m, trans_a, trans_b, a[trans_a], a[!trans_a], b[!trans_b]))
        return false;
    m->d->product.alpha = (float)mpl_attr_float(m->g, m->op, MPL_ATTR_alpha, 1);
    if (mpl_dnn_in(m, 2) == MPL_NONE)
        return true;
    c = mpl_dnn_in_shape(m, 2);
    m->d->product.beta = (float)mpl_attr_float(m->g, m->op, MPL_ATTR_beta, 1);
    m->d->product.adds = true;
    /* the output of 1 x rows x columns takes c of [columns], [1, columns] or all of it; cudnnAddTensor spreads it */
    if (mpl_shape_equal(c, to))
        return mpl_dnn_tensor(m, &m->d->b, 4, (const int64_t[]){1, 1, to->dim[0], to->dim[1]}) &&
               mpl_dnn_tensor(m, &m->d->y, 4, (const int64_t[]){1, 1, to->dim[0], to->dim[1]});
    if (c->rank >= 1 && c->dim[c->rank - 1] == to->dim[1] && mpl_dnn_count(c, 0, c->rank) == to->dim[1])
        return mpl_dnn_tensor(m, &m->d->b, 4, (const int64_t[]){1, to->dim[1], 1, 1}) &&
               mpl_dnn_tensor(m, &m->d->y, 4, (const int64_t[]){to->dim[0], to->dim[1], 1, 1});
    return false;
}

/* Stacks whose matrices lie evenly: all dims the same on both sides, or one matrix on one side. */
bool mpl_dnn_matmul(mpl_dnn_maker *m)
{
    mpl_shape a = *mpl_dnn_in_shape(m, 0), b = *mpl_dnn_in_shape(m, 1);
    int64_t n_a, n_b, rows;

    if (a.rank == 1)
        a = (mpl_shape){2, {1, a.dim[0]}};
    if (b.rank == 1)
        b = (mpl_shape){2, {b.dim[0], 1}};
    n_a = mpl_dnn_count(&a, 0, a.rank - 2), n_b = mpl_dnn_count(&b, 0, b.rank - 2);
    rows = a.dim[a.rank - 2];
    if (n_b == 1) /* one matrix: the left ones are one tall one */
        return product(m, false, false, n_a * rows, a.dim[a.rank - 1], b.dim[b.rank - 1]);
    for (uint32_t i = 0; i + 2 < a.rank && n_a != 1; i++)
        if (a.rank != b.rank || a.dim[i] != b.dim[i])
            return false;
    if (n_b > INT32_MAX || !product(m, false, false, rows, a.dim[a.rank - 1], b.dim[b.rank - 1]))
        return false;
    m->d->product.n = (int)n_b;
    m->d->product.a_step = b.dim[b.rank - 2] * b.dim[b.rank - 1];
    m->d->product.b_step = n_a != 1 ? rows * a.dim[a.rank - 1] : 0;
    m->d->product.y_step = rows * b.dim[b.rank - 1];
    return true;
}

#else
typedef int mpl_no_dnn; /* a translation unit of ISO C has at least one declaration */
#endif
