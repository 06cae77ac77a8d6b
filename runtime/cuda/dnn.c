/* dnn.c -- the operators that cuDNN and cuBLAS compute, as they describe them: f32, plain layouts.
 *
 * Algorithms come from cuDNN's heuristics, never from timing: the first that is deterministic, keeps to the stated math
 * type and fits the workspace limit. What a library refuses while it is described goes to our own kernels. */
#include <mpl_config.h>

#if MPL_HAVE_CUDA

#include "runtime/cuda/real_priv.h"

#define WORKSPACE_ALIGN 256 /* cuBLAS asks for it; buffers of the backend are aligned to less */
#define BLAS_WORKSPACE  (UINT64_C(4) << 20)
#define MOST_DIMS       5

typedef enum dnn_what { CONV, POOL, SOFTMAX, ACTIVATION, NORM, LRN, OP_TENSOR, PRODUCT } dnn_what;

typedef struct blas_product { /* as cuBLAS, which is column-major, has it: its first operand is our second */
    cublasOperation_t trans_a, trans_b;
    int rows, columns, terms, a_stride, b_stride, n;
    long long a_step, b_step, y_step;
    float alpha, beta;
    bool adds; /* input 2 goes into the output first */
} blas_product;

struct mpl_cuda_dnn {
    dnn_what what;
    cudnnTensorDescriptor_t x, y, b; /* b: bias, parameters, or the other operand */
    cudnnFilterDescriptor_t filter;
    cudnnConvolutionDescriptor_t conv;
    cudnnConvolutionFwdAlgo_t algorithm;
    size_t workspace_bytes; /* of the library itself, without alignment */
    cudnnPoolingDescriptor_t pool;
    cudnnActivationDescriptor_t activation;
    cudnnSoftmaxAlgorithm_t softmax;
    cudnnLRNDescriptor_t lrn;
    cudnnOpTensorDescriptor_t op;
    uint32_t first; /* input of OP_TENSOR that has the output's dims */
    double epsilon;
    blas_product product;
    cublasMath_t math;
    char how[64];
};

typedef struct maker {
    mpl_cuda *c;
    const mpl_cuda_library *lib;
    const mpl_graph *g;
    mpl_op op;
    mpl_op_kind kind;
    uint32_t n_in, n_out;
    const mpl_cuda_choice *choice;
    mpl_cuda_dnn *d;
} maker;

/* ---- pieces ------------------------------------------------------------------------------------------------ */

static mpl_value in_of(const maker *m, uint32_t i)
{
    return i < m->n_in ? m->g->op_in[m->g->op_in_begin[m->op] + i] : MPL_NONE;
}

static const mpl_shape *in_shape(const maker *m, uint32_t i)
{
    return &m->g->value_shape[in_of(m, i)];
}

static const mpl_shape *out_shape(const maker *m)
{
    return &m->g->value_shape[m->g->op_out[m->g->op_out_begin[m->op]]];
}

static int64_t count(const mpl_shape *s, uint32_t from, uint32_t to)
{
    int64_t n = 1;

    for (uint32_t i = from; i < to; i++)
        n *= s->dim[i];
    return n;
}

/* Everything is f32, has elements, and at most 2^31 - 1 of them: the libraries count in int. */
static bool suits(const maker *m)
{
    const mpl_graph *g = m->g;

    for (uint32_t i = g->op_in_begin[m->op]; i < g->op_in_begin[m->op + 1]; i++) {
        mpl_value v = g->op_in[i];

        if (v != MPL_NONE && (g->value_type[v] != MPL_TYPE_f32 || g->value_bytes[v] == 0 ||
                              g->value_bytes[v] / sizeof(float) > INT32_MAX))
            return false;
    }
    for (uint32_t i = g->op_out_begin[m->op]; i < g->op_out_begin[m->op + 1]; i++) {
        mpl_value v = g->op_out[i];

        if (v != MPL_NONE && (i > g->op_out_begin[m->op] || g->value_type[v] != MPL_TYPE_f32 ||
                              g->value_bytes[v] == 0 || g->value_bytes[v] / sizeof(float) > INT32_MAX))
            return false;
    }
    return true;
}

/* A plain tensor of these dims, at least four of them: cuDNN has no fewer. */
static bool tensor(const maker *m, cudnnTensorDescriptor_t *t, uint32_t n, const int64_t *dim)
{
    int size[MOST_DIMS] = {1, 1, 1, 1, 1}, stride[MOST_DIMS], whole = 1, rank = n < 4 ? 4 : (int)n;

    if (n > MOST_DIMS)
        return false;
    for (uint32_t i = 0; i < n; i++)
        size[i] = (int)dim[i];
    for (int i = rank; i-- > 0;) {
        stride[i] = whole;
        whole *= size[i];
    }
    return m->lib->cudnnCreateTensorDescriptor(t) == CUDNN_STATUS_SUCCESS &&
           m->lib->cudnnSetTensorNdDescriptor(*t, CUDNN_DATA_FLOAT, rank, size, stride) ==
               CUDNN_STATUS_SUCCESS;
}

static bool tensor_of(const maker *m, cudnnTensorDescriptor_t *t, const mpl_shape *s)
{
    return tensor(m, t, s->rank, s->dim);
}

/* n numbers of an attribute; `otherwise` where it has none. */
static void read_ints(const maker *m, mpl_attr_key key, uint32_t n, int64_t otherwise, int *out)
{
    uint32_t given;
    const int64_t *ints = mpl_attr_ints(m->g, m->op, key, &given);

    for (uint32_t i = 0; i < n; i++)
        out[i] = (int)(given == n ? ints[i] : otherwise);
}

/* Pads, where both ends of each dim have the same; false elsewhere: cuDNN has one number for both. */
static bool read_pads(const maker *m, uint32_t n, int *pad)
{
    int both[2 * MOST_DIMS];

    read_ints(m, MPL_ATTR_pads, 2 * n, 0, both);
    for (uint32_t i = 0; i < n; i++) {
        if (both[i] != both[n + i])
            return false;
        pad[i] = both[i];
    }
    return true;
}

/* ---- convolution --------------------------------------------------------------------------------------------- */

/* The heuristics' first choice that repeats bit for bit, keeps the math type and fits the limit. */
static bool choose_algorithm(maker *m)
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
            (!m->choice->tf32 && found[i].mathType != CUDNN_FMA_MATH &&
             found[i].mathType != CUDNN_DEFAULT_MATH) ||
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

static bool conv(maker *m)
{
    const mpl_shape *in = in_shape(m, 0), *weight = in_shape(m, 1), *to = out_shape(m);
    int n = (int)in->rank - 2, pad[MOST_DIMS], stride[MOST_DIMS], dilation[MOST_DIMS], size[MOST_DIMS];
    int64_t x[4] = {in->dim[0], in->dim[1], 1, in->dim[2]}, y[4] = {to->dim[0], to->dim[1], 1, to->dim[2]};
    int64_t bias[MOST_DIMS] = {1, to->dim[1], 1, 1, 1};
    bool flat = in->rank == 3; /* one spatial dim: cuDNN wants two, the other is of size 1 */
    mpl_cuda_dnn *d = m->d;
    const mpl_cuda_library *lib = m->lib;

    if (in->rank > MOST_DIMS || !read_pads(m, (uint32_t)n, pad + flat))
        return false;
    read_ints(m, MPL_ATTR_strides, (uint32_t)n, 1, stride + flat);
    read_ints(m, MPL_ATTR_dilations, (uint32_t)n, 1, dilation + flat);
    for (uint32_t i = 0; i < weight->rank; i++)
        size[i + (flat && i > 1)] = (int)weight->dim[i];
    if (flat)
        pad[0] = 0, stride[0] = dilation[0] = size[2] = 1, n = 2;
    if (!(flat ? tensor(m, &d->x, 4, x) : tensor_of(m, &d->x, in)) ||
        !(flat ? tensor(m, &d->y, 4, y) : tensor_of(m, &d->y, to)) ||
        lib->cudnnCreateFilterDescriptor(&d->filter) != CUDNN_STATUS_SUCCESS ||
        lib->cudnnSetFilterNdDescriptor(d->filter, CUDNN_DATA_FLOAT, CUDNN_TENSOR_NCHW, n + 2, size) !=
            CUDNN_STATUS_SUCCESS ||
        lib->cudnnCreateConvolutionDescriptor(&d->conv) != CUDNN_STATUS_SUCCESS ||
        lib->cudnnSetConvolutionNdDescriptor(d->conv, n, pad, stride, dilation, CUDNN_CROSS_CORRELATION,
                                             CUDNN_DATA_FLOAT) != CUDNN_STATUS_SUCCESS ||
        lib->cudnnSetConvolutionGroupCount(d->conv, (int)mpl_attr_int(m->g, m->op, MPL_ATTR_group, 1)) !=
            CUDNN_STATUS_SUCCESS ||
        lib->cudnnSetConvolutionMathType(d->conv, m->choice->tf32 ? CUDNN_DEFAULT_MATH : CUDNN_FMA_MATH) !=
            CUDNN_STATUS_SUCCESS)
        return false;
    if (in_of(m, 2) != MPL_NONE && !tensor(m, &d->b, (uint32_t)n + 2, bias))
        return false;
    d->what = CONV;
    return choose_algorithm(m);
}

/* ---- pooling, activation, softmax ------------------------------------------------------------------------------ */

static bool pool(maker *m)
{
    const mpl_shape *in = in_shape(m, 0), *to = out_shape(m);
    uint32_t n = in->rank - 2;
    int kernel[MOST_DIMS], pad[MOST_DIMS], stride[MOST_DIMS], dilation[MOST_DIMS], got[MOST_DIMS];
    bool whole = mpl_attr_int(m->g, m->op, MPL_ATTR_count_include_pad, 0) != 0;
    cudnnPoolingMode_t mode = m->kind == MPL_OP_max_pool ? CUDNN_POOLING_MAX_DETERMINISTIC
                              : whole                    ? CUDNN_POOLING_AVERAGE_COUNT_INCLUDE_PADDING
                                                         : CUDNN_POOLING_AVERAGE_COUNT_EXCLUDE_PADDING;
    mpl_cuda_dnn *d = m->d;

    if (in->rank < 4 || in->rank > MOST_DIMS || !read_pads(m, n, pad))
        return false;
    read_ints(m, MPL_ATTR_kernel_shape, n, 1, kernel);
    read_ints(m, MPL_ATTR_strides, n, 1, stride);
    read_ints(m, MPL_ATTR_dilations, n, 1, dilation);
    for (uint32_t i = 0; i < n; i++)
        if (dilation[i] != 1 || pad[i] >= kernel[i])
            return false;
    if (!tensor_of(m, &d->x, in) || !tensor_of(m, &d->y, to) ||
        m->lib->cudnnCreatePoolingDescriptor(&d->pool) != CUDNN_STATUS_SUCCESS ||
        m->lib->cudnnSetPoolingNdDescriptor(d->pool, mode, CUDNN_PROPAGATE_NAN, (int)n, kernel, pad,
                                            stride) != CUDNN_STATUS_SUCCESS ||
        m->lib->cudnnGetPoolingNdForwardOutputDim(d->pool, d->x, (int)in->rank, got) != CUDNN_STATUS_SUCCESS)
        return false;
    for (uint32_t i = 0; i < in->rank; i++) /* it rounds down; ceil_mode may ask for more */
        if (got[i] != to->dim[i])
            return false;
    d->what = POOL;
    snprintf(d->how, sizeof d->how, "cudnn:pooling");
    return true;
}

static bool activation(maker *m)
{
    const mpl_shape *to = out_shape(m);
    int64_t n = count(to, 0, to->rank);
    cudnnActivationMode_t mode = m->kind == MPL_OP_relu      ? CUDNN_ACTIVATION_RELU
                                 : m->kind == MPL_OP_sigmoid ? CUDNN_ACTIVATION_SIGMOID
                                                             : CUDNN_ACTIVATION_TANH;
    mpl_cuda_dnn *d = m->d;

    d->what = ACTIVATION;
    snprintf(d->how, sizeof d->how, "cudnn:activation");
    return tensor(m, &d->x, 4, (const int64_t[]){1, 1, 1, n}) &&
           tensor(m, &d->y, 4, (const int64_t[]){1, 1, 1, n}) &&
           m->lib->cudnnCreateActivationDescriptor(&d->activation) == CUDNN_STATUS_SUCCESS &&
           m->lib->cudnnSetActivationDescriptor(d->activation, mode, CUDNN_PROPAGATE_NAN, 0) ==
               CUDNN_STATUS_SUCCESS;
}

static bool softmax(maker *m)
{
    const mpl_shape *in = in_shape(m, 0);
    int64_t given = mpl_attr_int(m->g, m->op, MPL_ATTR_axis, -1);
    uint32_t axis = (uint32_t)(given < 0 ? given + in->rank : given);
    int64_t dim[4] = {count(in, 0, axis), in->dim[axis], count(in, axis + 1, in->rank), 1};
    mpl_cuda_dnn *d = m->d;

    d->what = SOFTMAX;
    d->softmax = m->kind == MPL_OP_log_softmax ? CUDNN_SOFTMAX_LOG : CUDNN_SOFTMAX_ACCURATE;
    snprintf(d->how, sizeof d->how, "cudnn:softmax");
    return tensor(m, &d->x, 4, dim) && tensor(m, &d->y, 4, dim);
}

/* ---- normalisation ------------------------------------------------------------------------------------------------ */

static bool batch_norm(maker *m)
{
    const mpl_shape *in = in_shape(m, 0);
    int64_t dim[4] = {in->dim[0], in->rank > 1 ? in->dim[1] : 1, 1, 1};
    mpl_cuda_dnn *d = m->d;

    if (in->rank < 2)
        return false;
    dim[2] = count(in, 2, in->rank);
    d->what = NORM;
    d->epsilon = mpl_attr_float(m->g, m->op, MPL_ATTR_epsilon, 1e-5);
    snprintf(d->how, sizeof d->how, "cudnn:batch_norm");
    return d->epsilon >= CUDNN_BN_MIN_EPSILON && tensor(m, &d->x, 4, dim) && tensor(m, &d->y, 4, dim) &&
           tensor(m, &d->b, 4, (const int64_t[]){1, dim[1], 1, 1});
}

/* Odd sizes only: where an even one lies about its channel is not said alike. */
static bool lrn(maker *m)
{
    const mpl_shape *in = in_shape(m, 0);
    int64_t size = mpl_attr_int(m->g, m->op, MPL_ATTR_size, 1);
    int64_t dim[4] = {in->dim[0], in->dim[1], count(in, 2, in->rank), 1};
    double beta = mpl_attr_float(m->g, m->op, MPL_ATTR_beta, 0.75),
           k = mpl_attr_float(m->g, m->op, MPL_ATTR_bias, 1);
    mpl_cuda_dnn *d = m->d;

    if (size % 2 == 0 || size < CUDNN_LRN_MIN_N || size > CUDNN_LRN_MAX_N || k < CUDNN_LRN_MIN_K ||
        beta < CUDNN_LRN_MIN_BETA)
        return false;
    d->what = LRN;
    snprintf(d->how, sizeof d->how, "cudnn:lrn");
    return tensor(m, &d->x, 4, dim) && tensor(m, &d->y, 4, dim) &&
           m->lib->cudnnCreateLRNDescriptor(&d->lrn) == CUDNN_STATUS_SUCCESS &&
           m->lib->cudnnSetLRNDescriptor(d->lrn, (unsigned)size,
                                         mpl_attr_float(m->g, m->op, MPL_ATTR_alpha, 1e-4), beta,
                                         k) == CUDNN_STATUS_SUCCESS;
}

/* ---- add, mul, min, max of equal dims, or with one number for each channel ------------------------------------------- */

static bool op_tensor(maker *m)
{
    const mpl_shape *to = out_shape(m), *a, *b;
    cudnnOpTensorOp_t what = m->kind == MPL_OP_mul   ? CUDNN_OP_TENSOR_MUL
                             : m->kind == MPL_OP_min ? CUDNN_OP_TENSOR_MIN
                             : m->kind == MPL_OP_max ? CUDNN_OP_TENSOR_MAX
                                                     : CUDNN_OP_TENSOR_ADD;
    mpl_cuda_dnn *d = m->d;
    int64_t n = count(to, 0, to->rank);

    if (m->n_in != 2)
        return false;
    d->first = mpl_shape_equal(in_shape(m, 0), to) ? 0 : 1;
    a = in_shape(m, d->first), b = in_shape(m, 1 - d->first);
    if (!mpl_shape_equal(a, to) || !mpl_shape_equal(b, to)) /* our kernel broadcasts, in any way */
        return false;
    d->what = OP_TENSOR;
    snprintf(d->how, sizeof d->how, "cudnn:op_tensor");
    return tensor(m, &d->x, 4, (const int64_t[]){1, 1, 1, n}) &&
           tensor(m, &d->y, 4, (const int64_t[]){1, 1, 1, n}) &&
           tensor(m, &d->b, 4, (const int64_t[]){1, 1, 1, n}) &&
           m->lib->cudnnCreateOpTensorDescriptor(&d->op) == CUDNN_STATUS_SUCCESS &&
           m->lib->cudnnSetOpTensorDescriptor(d->op, what, CUDNN_DATA_FLOAT, CUDNN_PROPAGATE_NAN) ==
               CUDNN_STATUS_SUCCESS;
}

/* ---- products: row-major y = a b is column-major y' = b' a' ------------------------------------------------------------ */

static bool product(maker *m, bool trans_a, bool trans_b, int64_t rows, int64_t terms, int64_t columns)
{
    mpl_cuda_dnn *d = m->d;

    if (rows > INT32_MAX || terms > INT32_MAX || columns > INT32_MAX)
        return false;
    d->what = PRODUCT;
    d->product.trans_a = trans_b ? CUBLAS_OP_T : CUBLAS_OP_N;
    d->product.trans_b = trans_a ? CUBLAS_OP_T : CUBLAS_OP_N;
    d->product.rows = (int)columns;
    d->product.columns = (int)rows;
    d->product.terms = (int)terms;
    d->product.a_stride = (int)(trans_b ? terms : columns);
    d->product.b_stride = (int)(trans_a ? rows : terms);
    d->product.alpha = 1;
    d->product.n = 1;
    d->math = m->choice->tf32 ? CUBLAS_TF32_TENSOR_OP_MATH : CUBLAS_DEFAULT_MATH;
    d->workspace_bytes = (size_t)mpl_min_u64(BLAS_WORKSPACE, m->choice->workspace_limit);
    snprintf(d->how, sizeof d->how, "cublas:sgemm");
    return true;
}

/* beta c with c of the output's dims; our kernel takes the other ways to broadcast it, after the product. */
static bool gemm(maker *m)
{
    bool trans_a = mpl_attr_int(m->g, m->op, MPL_ATTR_trans_a, 0) != 0;
    bool trans_b = mpl_attr_int(m->g, m->op, MPL_ATTR_trans_b, 0) != 0;
    const int64_t *a = in_shape(m, 0)->dim, *b = in_shape(m, 1)->dim;
    const mpl_shape *to = out_shape(m), *c;

    if (!product(m, trans_a, trans_b, a[trans_a], a[!trans_a], b[!trans_b]))
        return false;
    m->d->product.alpha = (float)mpl_attr_float(m->g, m->op, MPL_ATTR_alpha, 1);
    if (in_of(m, 2) == MPL_NONE)
        return true;
    c = in_shape(m, 2);
    m->d->product.beta = (float)mpl_attr_float(m->g, m->op, MPL_ATTR_beta, 1);
    m->d->product.adds = true;
    /* the output of 1 x rows x columns takes c of [columns], [1, columns] or all of it; cudnnAddTensor spreads it */
    if (mpl_shape_equal(c, to))
        return tensor(m, &m->d->b, 4, (const int64_t[]){1, 1, to->dim[0], to->dim[1]}) &&
               tensor(m, &m->d->y, 4, (const int64_t[]){1, 1, to->dim[0], to->dim[1]});
    if (c->rank >= 1 && c->dim[c->rank - 1] == to->dim[1] && count(c, 0, c->rank) == to->dim[1])
        return tensor(m, &m->d->b, 4, (const int64_t[]){1, to->dim[1], 1, 1}) &&
               tensor(m, &m->d->y, 4, (const int64_t[]){to->dim[0], to->dim[1], 1, 1});
    return false;
}

/* Stacks whose matrices lie evenly: all dims the same on both sides, or one matrix on one side. */
static bool matmul(maker *m)
{
    mpl_shape a = *in_shape(m, 0), b = *in_shape(m, 1);
    int64_t n_a, n_b, rows;

    if (a.rank == 1)
        a = (mpl_shape){2, {1, a.dim[0]}};
    if (b.rank == 1)
        b = (mpl_shape){2, {b.dim[0], 1}};
    n_a = count(&a, 0, a.rank - 2), n_b = count(&b, 0, b.rank - 2);
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

/* ---- the entries of the table --------------------------------------------------------------------------------------------- */

static bool describe(maker *m)
{
    switch (m->kind) {
    case MPL_OP_conv:
        return conv(m);
    case MPL_OP_max_pool:
    case MPL_OP_avg_pool:
        return pool(m);
    case MPL_OP_relu:
    case MPL_OP_sigmoid:
    case MPL_OP_tanh:
        return activation(m);
    case MPL_OP_softmax:
    case MPL_OP_log_softmax:
        return softmax(m);
    case MPL_OP_batch_norm:
        return batch_norm(m);
    case MPL_OP_lrn:
        return lrn(m);
    case MPL_OP_add:
    case MPL_OP_mul:
    case MPL_OP_min:
    case MPL_OP_max:
    case MPL_OP_sum:
        return op_tensor(m);
    case MPL_OP_gemm:
        return gemm(m);
    case MPL_OP_matmul:
        return matmul(m);
    default:
        return false;
    }
}

void mpl_dnn_release(mpl_ctx *ctx, mpl_cuda *c, mpl_cuda_dnn *d)
{
    const mpl_cuda_library *lib = c->library;

    if (d == NULL)
        return;
    if (d->x != NULL)
        lib->cudnnDestroyTensorDescriptor(d->x);
    if (d->y != NULL)
        lib->cudnnDestroyTensorDescriptor(d->y);
    if (d->b != NULL)
        lib->cudnnDestroyTensorDescriptor(d->b);
    if (d->filter != NULL)
        lib->cudnnDestroyFilterDescriptor(d->filter);
    if (d->conv != NULL)
        lib->cudnnDestroyConvolutionDescriptor(d->conv);
    if (d->pool != NULL)
        lib->cudnnDestroyPoolingDescriptor(d->pool);
    if (d->activation != NULL)
        lib->cudnnDestroyActivationDescriptor(d->activation);
    if (d->lrn != NULL)
        lib->cudnnDestroyLRNDescriptor(d->lrn);
    if (d->op != NULL)
        lib->cudnnDestroyOpTensorDescriptor(d->op);
    mpl_free(ctx, d);
}

mpl_status mpl_dnn_prepare(mpl_ctx *ctx, mpl_cuda *c, const mpl_graph *g, mpl_op op,
                           const mpl_cuda_choice *choice, mpl_cuda_dnn **out, uint64_t *workspace_bytes,
                           const char **how)
{
    mpl_status st = MPL_OK;
    maker m = {
        .c = c,
        .lib = c->library,
        .g = g,
        .op = op,
        .kind = (mpl_op_kind)g->op_kind[op],
        .n_in = g->op_in_begin[op + 1] - g->op_in_begin[op],
        .n_out = g->op_out_begin[op + 1] - g->op_out_begin[op],
        .choice = choice,
    };

    *out = NULL;
    *workspace_bytes = 0;
    if (!suits(&m))
        return MPL_OK;
    MPL_TRY(mpl_new(ctx, m.d, 1));
    if (!describe(&m))
        goto out;
    if (m.d->workspace_bytes > 0)
        *workspace_bytes = m.d->workspace_bytes + WORKSPACE_ALIGN;
    *how = m.d->how;
    *out = m.d, m.d = NULL;
out:
    mpl_dnn_release(ctx, c, m.d);
    return st;
}

static const float one = 1, zero = 0;

static cudnnStatus_t run_conv(mpl_cuda *c, const mpl_cuda_dnn *d, const mpl_op_call *call, void *workspace)
{
    cudnnStatus_t code = c->library->cudnnConvolutionForward(
        c->dnn, &one, d->x, call->in[0].data, d->filter, call->in[1].data, d->conv, d->algorithm, workspace,
        d->workspace_bytes, &zero, d->y, call->out[0].data);

    if (code == CUDNN_STATUS_SUCCESS && d->b != NULL)
        code =
            c->library->cudnnAddTensor(c->dnn, &one, d->b, call->in[2].data, &one, d->y, call->out[0].data);
    return code;
}

static cudnnStatus_t run_dnn(mpl_cuda *c, const mpl_cuda_dnn *d, const mpl_op_call *call, void *workspace)
{
    const mpl_cuda_library *lib = c->library;
    const void *x = call->in[0].data;
    void *y = call->out[0].data;

    switch (d->what) {
    case CONV:
        return run_conv(c, d, call, workspace);
    case POOL:
        return lib->cudnnPoolingForward(c->dnn, d->pool, &one, d->x, x, &zero, d->y, y);
    case SOFTMAX:
        return lib->cudnnSoftmaxForward(c->dnn, d->softmax, CUDNN_SOFTMAX_MODE_CHANNEL, &one, d->x, x, &zero,
                                        d->y, y);
    case ACTIVATION:
        return lib->cudnnActivationForward(c->dnn, d->activation, &one, d->x, x, &zero, d->y, y);
    case NORM:
        return lib->cudnnBatchNormalizationForwardInference(
            c->dnn, CUDNN_BATCHNORM_SPATIAL, &one, &zero, d->x, x, d->y, y, d->b, call->in[1].data,
            call->in[2].data, call->in[3].data, call->in[4].data, d->epsilon);
    case LRN:
        return lib->cudnnLRNCrossChannelForward(c->dnn, d->lrn, CUDNN_LRN_CROSS_CHANNEL_DIM1, &one, d->x, x,
                                                &zero, d->y, y);
    default:
        return lib->cudnnOpTensor(c->dnn, d->op, &one, d->x, call->in[d->first].data, &one, d->b,
                                  call->in[1 - d->first].data, &zero, d->y, y);
    }
}

static int run_product(mpl_cuda *c, const mpl_cuda_dnn *d, const mpl_op_call *call, void *workspace,
                       cudaStream_t stream)
{
    const mpl_cuda_library *lib = c->library;
    const blas_product *p = &d->product;
    cublasStatus_t code;
    float kept = p->adds ? p->beta : 0;

    if (p->adds) { /* the output becomes c, then alpha a b + beta c */
        cudnnStatus_t put =
            lib->cudnnAddTensor(c->dnn, &one, d->b, call->in[2].data, &zero, d->y, call->out[0].data);

        if (put != CUDNN_STATUS_SUCCESS)
            return MPL_CUDNN_CODE + (int)put;
    }
    code = lib->cublasSetStream_v2(c->blas, stream);
    if (code == CUBLAS_STATUS_SUCCESS) /* after the stream, which takes the workspace away */
        code = lib->cublasSetWorkspace_v2(c->blas, workspace, d->workspace_bytes);
    if (code == CUBLAS_STATUS_SUCCESS)
        code = lib->cublasSetMathMode(c->blas, d->math);
    if (code == CUBLAS_STATUS_SUCCESS)
        code = lib->cublasSgemmStridedBatched(c->blas, p->trans_a, p->trans_b, p->rows, p->columns, p->terms,
                                              &p->alpha, call->in[1].data, p->a_stride, p->a_step,
                                              call->in[0].data, p->b_stride, p->b_step, &kept,
                                              call->out[0].data, p->rows, p->y_step, p->n);
    return code == CUBLAS_STATUS_SUCCESS ? 0 : MPL_CUBLAS_CODE + (int)code;
}

int mpl_dnn_run(mpl_cuda *c, const mpl_cuda_work *work, cudaStream_t stream)
{
    const mpl_cuda_dnn *d = work->dnn;
    uintptr_t at = (uintptr_t)work->call->workspace;
    void *workspace = (void *)((at + WORKSPACE_ALIGN - 1) & ~(uintptr_t)(WORKSPACE_ALIGN - 1));
    cudnnStatus_t code = c->library->cudnnSetStream(c->dnn, stream);

    if (code == CUDNN_STATUS_SUCCESS && d->what == PRODUCT)
        return run_product(c, d, work->call, workspace, stream);
    if (code == CUDNN_STATUS_SUCCESS)
        code = run_dnn(c, d, work->call, workspace);
    return code == CUDNN_STATUS_SUCCESS ? 0 : MPL_CUDNN_CODE + (int)code;
}

#else
typedef int mpl_no_dnn; /* a translation unit of ISO C has at least one declaration */
#endif
