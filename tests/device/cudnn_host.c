/* cudnn_host.c -- see cudnn_host.h. */
#include "tests/device/cudnn_host.h"

#include <mpl_config.h>

#if MPL_HAVE_CUDA

#include "runtime/cuda/real_priv.h"

#include <dlfcn.h>
#include <math.h>
#include <stdlib.h>

host_world host = {.built = true};

/* ---- descriptors ---- */

struct cudnnTensorStruct {
    int n, size[5], stride[5];
};
struct cudnnFilterStruct {
    int n, size[5];
};
struct cudnnConvolutionStruct {
    int n, pad[3], stride[3], dilation[3], groups;
    cudnnMathType_t math;
};
struct cudnnActivationStruct {
    cudnnActivationMode_t mode;
    cudnnNanPropagation_t nan;
    double coef;
};
static cudnnStatus_t misuse(const char *what)
{
    host.n_misused++;
    host.misuse = what;
    return CUDNN_STATUS_BAD_PARAM;
}
#define DEMAND(x)                                                                                  \
    if (!(x))                                                                                      \
    return misuse(#x)

#define DESCRIPTOR(kind, type)                                                                     \
    static cudnnStatus_t create_##kind(type *out)                                                  \
    {                                                                                              \
        *out = calloc(1, sizeof **out);                                                            \
        host.n_live++;                                                                             \
        return CUDNN_STATUS_SUCCESS;                                                               \
    }                                                                                              \
    static cudnnStatus_t destroy_##kind(type d)                                                    \
    {                                                                                              \
        free(d);                                                                                   \
        host.n_live--;                                                                             \
        return CUDNN_STATUS_SUCCESS;                                                               \
    }
DESCRIPTOR(tensor, cudnnTensorDescriptor_t)
DESCRIPTOR(filter, cudnnFilterDescriptor_t)
DESCRIPTOR(conv, cudnnConvolutionDescriptor_t)
DESCRIPTOR(activation, cudnnActivationDescriptor_t)

static cudnnStatus_t set_tensor(cudnnTensorDescriptor_t d, cudnnDataType_t type, int n,
                                const int size[], const int stride[])
{
    DEMAND(type == CUDNN_DATA_FLOAT && n >= 4 && n <= 5);
    *d = (struct cudnnTensorStruct){.n = n, .size = {1, 1, 1, 1, 1}};
    for (int i = 0; i < n; i++) {
        DEMAND(size[i] > 0 && stride[i] > 0);
        d->size[i] = size[i], d->stride[i] = stride[i];
    }
    return CUDNN_STATUS_SUCCESS;
}

static cudnnStatus_t set_filter(cudnnFilterDescriptor_t d, cudnnDataType_t type,
                                cudnnTensorFormat_t format, int n, const int size[])
{
    DEMAND(type == CUDNN_DATA_FLOAT && format == CUDNN_TENSOR_NCHW && n >= 4 && n <= 5);
    *d = (struct cudnnFilterStruct){.n = n, .size = {1, 1, 1, 1, 1}};
    memcpy(d->size, size, (size_t)n * sizeof *size);
    return CUDNN_STATUS_SUCCESS;
}

static cudnnStatus_t set_conv(cudnnConvolutionDescriptor_t d, int n, const int pad[],
                              const int stride[], const int dilation[], cudnnConvolutionMode_t mode,
                              cudnnDataType_t type)
{
    DEMAND(n >= 2 && n <= 3 && mode == CUDNN_CROSS_CORRELATION && type == CUDNN_DATA_FLOAT);
    d->n = n;
    d->groups = 1;
    for (int i = 0; i < n; i++) {
        DEMAND(pad[i] >= 0 && stride[i] > 0 && dilation[i] > 0);
        d->pad[i] = pad[i], d->stride[i] = stride[i], d->dilation[i] = dilation[i];
    }
    return CUDNN_STATUS_SUCCESS;
}

static cudnnStatus_t set_groups(cudnnConvolutionDescriptor_t d, int groups)
{
    d->groups = groups;
    return CUDNN_STATUS_SUCCESS;
}

static cudnnStatus_t set_math(cudnnConvolutionDescriptor_t d, cudnnMathType_t math)
{
    d->math = math;
    return CUDNN_STATUS_SUCCESS;
}

static cudnnStatus_t set_activation(cudnnActivationDescriptor_t d, cudnnActivationMode_t mode,
                                    cudnnNanPropagation_t nan, double coef)
{
    *d = (struct cudnnActivationStruct){mode, nan, coef};
    return CUDNN_STATUS_SUCCESS;
}

/* ---- elements ---- */

static int64_t elements(const struct cudnnTensorStruct *d)
{
    int64_t n = 1;

    for (int i = 0; i < 5; i++)
        n *= d->size[i];
    return n;
}

static bool same_dims(const struct cudnnTensorStruct *a, const struct cudnnTensorStruct *b)
{
    return memcmp(a->size, b->size, sizeof a->size) == 0;
}

/* Offset of element i, in row-major order over the dims of `of`, in a tensor of those dims, or of 1
 * where it is broadcast. */
static int64_t offset(const struct cudnnTensorStruct *of, const struct cudnnTensorStruct *d,
                      int64_t i)
{
    int64_t at = 0;

    for (int k = 5; k-- > 0; i /= of->size[k])
        at += d->size[k] == 1 ? 0 : i % of->size[k] * d->stride[k];
    return at;
}

/* to = alpha * x + beta * to; with beta 0, `to` is not read. */
static void blend(float *to, const void *alpha, double x, const void *beta)
{
    float a = *(const float *)alpha, b = *(const float *)beta;

    *to = (float)(b == 0 ? a * x : a * x + b * *to);
}

static cudnnStatus_t add_tensor(cudnnHandle_t h, const void *alpha,
                                const cudnnTensorDescriptor_t ad, const void *a, const void *beta,
                                const cudnnTensorDescriptor_t cd, void *c)
{
    (void)h;
    for (int i = 0; i < 5; i++)
        DEMAND(ad->size[i] == 1 || ad->size[i] == cd->size[i]);
    for (int64_t i = 0; i < elements(cd); i++)
        blend((float *)c + offset(cd, cd, i), alpha, ((const float *)a)[offset(cd, ad, i)], beta);
    return CUDNN_STATUS_SUCCESS;
}

/* ---- activation ---- */

static double activated(const struct cudnnActivationStruct *d, double x)
{
    switch (d->mode) {
    case CUDNN_ACTIVATION_SIGMOID:
        return 1 / (1 + exp(-x));
    case CUDNN_ACTIVATION_TANH:
        return tanh(x);
    case CUDNN_ACTIVATION_CLIPPED_RELU:
        return x < 0 ? 0 : x > d->coef ? d->coef : x;
    case CUDNN_ACTIVATION_RELU:
        return x < 0 ? 0 : x;
    default:
        return x;
    }
}

static cudnnStatus_t activation_forward(cudnnHandle_t h, cudnnActivationDescriptor_t d,
                                        const void *alpha, const cudnnTensorDescriptor_t xd,
                                        const void *x, const void *beta,
                                        const cudnnTensorDescriptor_t yd, void *y)
{
    (void)h;
    DEMAND(same_dims(xd, yd));
    for (int64_t i = 0; i < elements(xd); i++)
        blend((float *)y + offset(yd, yd, i), alpha,
              activated(d, ((const float *)x)[offset(xd, xd, i)]), beta);
    return CUDNN_STATUS_SUCCESS;
}

/* ---- convolution ---- */

typedef enum part { OF_X, OF_FILTER, OF_Y } part;

/* Value of spatial dim i of 3; `missing` for leading dims that are absent. */
static int spatial(const int *of, int n, int i, int missing)
{
    return i >= 3 - n ? of[i - (3 - n)] : missing;
}

static bool conv_fits(const struct cudnnTensorStruct *x, const struct cudnnFilterStruct *w,
                      const struct cudnnConvolutionStruct *c, const struct cudnnTensorStruct *y)
{
    bool fits = x->n == c->n + 2 && y->n == x->n && w->n == x->n && x->size[0] == y->size[0] &&
                x->size[1] == w->size[1] * c->groups && y->size[1] == w->size[0] &&
                w->size[0] % c->groups == 0;

    for (int i = 0; i < c->n; i++) {
        int room = x->size[2 + i] + 2 * c->pad[i] - (w->size[2 + i] - 1) * c->dilation[i] - 1;

        fits = fits && room >= 0 && room / c->stride[i] + 1 == y->size[2 + i];
    }
    return fits;
}

/* Adds to acc[], for one of x, filter and y, the share of each matching triple of elements. */
static void conv_walk(const struct cudnnTensorStruct *xd, const float *x,
                      const struct cudnnFilterStruct *wd, const float *w,
                      const struct cudnnConvolutionStruct *c, const struct cudnnTensorStruct *yd,
                      const float *y, part into, double *acc)
{
    int taps[3], out[3], in[3], per_group = wd->size[0] / c->groups;

    for (int i = 0; i < 3; i++) {
        taps[i] = spatial(wd->size + 2, c->n, i, 1);
        out[i] = spatial(yd->size + 2, c->n, i, 1);
        in[i] = spatial(xd->size + 2, c->n, i, 1);
    }
    for (int64_t i = 0; i < elements(yd) * wd->size[1] * taps[0] * taps[1] * taps[2]; i++) {
        int64_t rest = i, at[3], from_x, from_w, from_y;
        int t[3], o[3], channel, k;
        bool inside = true;

        for (int a = 3; a-- > 0; rest /= taps[a])
            t[a] = (int)(rest % taps[a]);
        channel = (int)(rest % wd->size[1]), rest /= wd->size[1];
        from_y = rest;
        for (int a = 3; a-- > 0; rest /= out[a])
            o[a] = (int)(rest % out[a]);
        k = (int)(rest % wd->size[0]), rest /= wd->size[0];
        for (int a = 0; a < 3; a++) {
            at[a] = (int64_t)o[a] * spatial(c->stride, c->n, a, 1) - spatial(c->pad, c->n, a, 0) +
                    t[a] * spatial(c->dilation, c->n, a, 1);
            inside = inside && at[a] >= 0 && at[a] < in[a];
        }
        if (!inside)
            continue;
        from_x = (((rest * xd->size[1] + k / per_group * wd->size[1] + channel) * in[0] + at[0]) *
                      in[1] +
                  at[1]) *
                     in[2] +
                 at[2];
        from_w =
            (((k * (int64_t)wd->size[1] + channel) * taps[0] + t[0]) * taps[1] + t[1]) * taps[2] +
            t[2];
        if (into == OF_Y)
            acc[from_y] += (double)x[from_x] * w[from_w];
        else if (into == OF_X)
            acc[from_x] += (double)y[from_y] * w[from_w];
        else
            acc[from_w] += (double)y[from_y] * x[from_x];
    }
}

/* Workspace of an algorithm; too large for one that is not usable. */
static size_t room_of(int algo)
{
    return algo == 4 ? (size_t)1 << 50 : (size_t)algo * 100;
}

/* Lists three unusable algorithms, then the usable one, which depends on the channels, so that both
 * kinds are tested. */
#define HEURISTICS(name, perf, a_type, b_type, c_type, channels, right)                            \
    static cudnnStatus_t name(cudnnHandle_t h, const a_type a, const b_type b,                     \
                              const cudnnConvolutionDescriptor_t d, const c_type c,                \
                              const int most, int *n, perf *found)                                 \
    {                                                                                              \
        (void)h, (void)a, (void)b, (void)c, (void)d;                                               \
        DEMAND(most >= 5);                                                                         \
        memset(found, 0, 5 * sizeof *found);                                                       \
        for (int i = 0; i < 5; i++) {                                                              \
            found[i].determinism = CUDNN_DETERMINISTIC;                                            \
            found[i].mathType = CUDNN_FMA_MATH;                                                    \
        }                                                                                          \
        found[0].algo = 0, found[0].determinism = CUDNN_NON_DETERMINISTIC;                         \
        found[1].algo = 4;                                                                         \
        found[2].algo = 5, found[2].mathType = CUDNN_TENSOR_OP_MATH;                               \
        found[3].algo = 3, found[3].status = CUDNN_STATUS_NOT_SUPPORTED;                           \
        found[4].algo = (channels) % 2 ? right : 1;                                                \
        *n = 5;                                                                                    \
        return CUDNN_STATUS_SUCCESS;                                                               \
    }
HEURISTICS(forward_heuristics, cudnnConvolutionFwdAlgoPerf_t, cudnnTensorDescriptor_t,
           cudnnFilterDescriptor_t, cudnnTensorDescriptor_t, a->size[1], 2)
HEURISTICS(data_heuristics, cudnnConvolutionBwdDataAlgoPerf_t, cudnnFilterDescriptor_t,
           cudnnTensorDescriptor_t, cudnnTensorDescriptor_t, c->size[1], 2)
HEURISTICS(filter_heuristics, cudnnConvolutionBwdFilterAlgoPerf_t, cudnnTensorDescriptor_t,
           cudnnTensorDescriptor_t, cudnnFilterDescriptor_t, a->size[1], 6)

#define ROOM(name, a_type, b_type, c_type, algo_type, x, w, y)                                     \
    static cudnnStatus_t name(cudnnHandle_t h, const a_type a, const b_type b,                     \
                              const cudnnConvolutionDescriptor_t d, const c_type c,                \
                              algo_type algo, size_t *bytes)                                       \
    {                                                                                              \
        (void)h;                                                                                   \
        DEMAND(conv_fits(x, w, d, y));                                                             \
        *bytes = room_of((int)algo);                                                               \
        return CUDNN_STATUS_SUCCESS;                                                               \
    }
ROOM(forward_room, cudnnTensorDescriptor_t, cudnnFilterDescriptor_t, cudnnTensorDescriptor_t,
     cudnnConvolutionFwdAlgo_t, a, b, c)
ROOM(data_room, cudnnFilterDescriptor_t, cudnnTensorDescriptor_t, cudnnTensorDescriptor_t,
     cudnnConvolutionBwdDataAlgo_t, c, a, b)
ROOM(filter_room, cudnnTensorDescriptor_t, cudnnTensorDescriptor_t, cudnnFilterDescriptor_t,
     cudnnConvolutionBwdFilterAlgo_t, a, c, b)

/* Checks the preconditions of every convolution that runs; overwrites the workspace. */
static bool may_run(int algo, const struct cudnnConvolutionStruct *c, void *workspace, size_t bytes)
{
    if (algo == 0 || algo == 3 || algo == 4 || algo == 5 || bytes < room_of(algo) ||
        c->math != CUDNN_FMA_MATH)
        return false;
    memset(workspace, 0xa5, room_of(algo));
    return true;
}

static double *sums(int64_t n)
{
    return calloc((size_t)n, sizeof(double));
}

static void put_sums(double *acc, int64_t n, const void *alpha, const void *beta, void *to)
{
    for (int64_t i = 0; i < n; i++)
        blend((float *)to + i, alpha, acc[i], beta);
    free(acc);
}

static cudnnStatus_t conv_forward(cudnnHandle_t h, const void *alpha,
                                  const cudnnTensorDescriptor_t xd, const void *x,
                                  const cudnnFilterDescriptor_t wd, const void *w,
                                  const cudnnConvolutionDescriptor_t c,
                                  cudnnConvolutionFwdAlgo_t algo, void *workspace, size_t bytes,
                                  const void *beta, const cudnnTensorDescriptor_t yd, void *y)
{
    double *acc;

    (void)h;
    DEMAND(conv_fits(xd, wd, c, yd) && may_run((int)algo, c, workspace, bytes));
    acc = sums(elements(yd));
    conv_walk(xd, x, wd, w, c, yd, NULL, OF_Y, acc);
    put_sums(acc, elements(yd), alpha, beta, y);
    return CUDNN_STATUS_SUCCESS;
}

static cudnnStatus_t conv_data(cudnnHandle_t h, const void *alpha, const cudnnFilterDescriptor_t wd,
                               const void *w, const cudnnTensorDescriptor_t yd, const void *dy,
                               const cudnnConvolutionDescriptor_t c,
                               cudnnConvolutionBwdDataAlgo_t algo, void *workspace, size_t bytes,
                               const void *beta, const cudnnTensorDescriptor_t xd, void *dx)
{
    double *acc;

    (void)h;
    DEMAND(conv_fits(xd, wd, c, yd) && may_run((int)algo, c, workspace, bytes));
    acc = sums(elements(xd));
    conv_walk(xd, NULL, wd, w, c, yd, dy, OF_X, acc);
    put_sums(acc, elements(xd), alpha, beta, dx);
    return CUDNN_STATUS_SUCCESS;
}

static cudnnStatus_t
conv_filter(cudnnHandle_t h, const void *alpha, const cudnnTensorDescriptor_t xd, const void *x,
            const cudnnTensorDescriptor_t yd, const void *dy, const cudnnConvolutionDescriptor_t c,
            cudnnConvolutionBwdFilterAlgo_t algo, void *workspace, size_t bytes, const void *beta,
            const cudnnFilterDescriptor_t wd, void *dw)
{
    int64_t n = 1;
    double *acc;

    (void)h;
    DEMAND(bytes >= room_of((int)algo) && conv_fits(xd, wd, c, yd) &&
           (algo == 6 ? may_run(1, c, workspace, bytes) : may_run((int)algo, c, workspace, bytes)));
    for (int i = 0; i < 5; i++)
        n *= wd->size[i];
    acc = sums(n);
    conv_walk(xd, x, wd, NULL, c, yd, dy, OF_FILTER, acc);
    put_sums(acc, n, alpha, beta, dw);
    return CUDNN_STATUS_SUCCESS;
}

static cudnnStatus_t conv_bias(cudnnHandle_t h, const void *alpha, const cudnnTensorDescriptor_t yd,
                               const void *dy, const void *beta, const cudnnTensorDescriptor_t bd,
                               void *db)
{
    double *acc;

    (void)h;
    DEMAND(bd->size[1] == yd->size[1] && elements(bd) == bd->size[1]);
    acc = sums(elements(bd));
    for (int64_t i = 0; i < elements(yd); i++)
        acc[offset(yd, bd, i)] += ((const float *)dy)[offset(yd, yd, i)];
    put_sums(acc, elements(bd), alpha, beta, db);
    return CUDNN_STATUS_SUCCESS;
}

/* ---- products: column-major, as in BLAS ---- */

static cublasStatus_t gemm(cublasHandle_t h, cublasOperation_t trans_a, cublasOperation_t trans_b,
                           int rows, int columns, int terms, const void *alpha, const void *a,
                           cudaDataType a_type, int a_lead, long long a_step, const void *b,
                           cudaDataType b_type, int b_lead, long long b_step, const void *beta,
                           void *c, cudaDataType c_type, int c_lead, long long c_step, int n,
                           cublasComputeType_t math, cublasGemmAlgo_t algo)
{
    bool turn_a = trans_a == CUBLAS_OP_T, turn_b = trans_b == CUBLAS_OP_T;

    (void)h, (void)algo;
    if (a_type != CUDA_R_32F || b_type != CUDA_R_32F || c_type != CUDA_R_32F ||
        math != CUBLAS_COMPUTE_32F || a_lead < (turn_a ? terms : rows) ||
        b_lead < (turn_b ? columns : terms) || c_lead < rows) {
        misuse("gemm");
        return CUBLAS_STATUS_INVALID_VALUE;
    }
    for (int64_t s = 0; s < n; s++)
        for (int64_t j = 0; j < columns; j++)
            for (int64_t i = 0; i < rows; i++) {
                double sum = 0;

                for (int64_t t = 0; t < terms; t++)
                    sum +=
                        (double)((const float *)
                                     a)[s * a_step + (turn_a ? i * a_lead + t : t * a_lead + i)] *
                        ((const float *)b)[s * b_step + (turn_b ? t * b_lead + j : j * b_lead + t)];
                blend((float *)c + s * c_step + j * c_lead + i, alpha, sum, beta);
            }
    return CUBLAS_STATUS_SUCCESS;
}

static cublasStatus_t blas_workspace(cublasHandle_t h, void *at, size_t bytes)
{
    (void)h;
    if (at == NULL || (uintptr_t)at % 256 != 0 || bytes < (UINT64_C(16) << 10)) {
        misuse("a workspace of cuBLAS");
        return CUBLAS_STATUS_INVALID_VALUE;
    }
    memset(at, 0x5a, bytes);
    return CUBLAS_STATUS_SUCCESS;
}

static cublasStatus_t blas_stream(cublasHandle_t h, cudaStream_t stream)
{
    (void)h, (void)stream;
    return CUBLAS_STATUS_SUCCESS;
}

static cudnnStatus_t dnn_stream(cudnnHandle_t h, cudaStream_t stream)
{
    (void)h, (void)stream;
    return CUDNN_STATUS_SUCCESS;
}

/* ---- the table ---- */

static int launch(const mpl_cuda_kernel *k, void *stream)
{
    return host.launch(k, stream);
}

static const mpl_cuda_library library = {
    .cudnnSetStream = dnn_stream,
    .cudnnCreateTensorDescriptor = create_tensor,
    .cudnnDestroyTensorDescriptor = destroy_tensor,
    .cudnnSetTensorNdDescriptor = set_tensor,
    .cudnnCreateFilterDescriptor = create_filter,
    .cudnnDestroyFilterDescriptor = destroy_filter,
    .cudnnSetFilterNdDescriptor = set_filter,
    .cudnnCreateConvolutionDescriptor = create_conv,
    .cudnnDestroyConvolutionDescriptor = destroy_conv,
    .cudnnSetConvolutionNdDescriptor = set_conv,
    .cudnnSetConvolutionGroupCount = set_groups,
    .cudnnSetConvolutionMathType = set_math,
    .cudnnGetConvolutionForwardAlgorithm_v7 = forward_heuristics,
    .cudnnGetConvolutionForwardWorkspaceSize = forward_room,
    .cudnnConvolutionForward = conv_forward,
    .cudnnGetConvolutionBackwardDataAlgorithm_v7 = data_heuristics,
    .cudnnGetConvolutionBackwardDataWorkspaceSize = data_room,
    .cudnnConvolutionBackwardData = conv_data,
    .cudnnGetConvolutionBackwardFilterAlgorithm_v7 = filter_heuristics,
    .cudnnGetConvolutionBackwardFilterWorkspaceSize = filter_room,
    .cudnnConvolutionBackwardFilter = conv_filter,
    .cudnnConvolutionBackwardBias = conv_bias,
    .cudnnAddTensor = add_tensor,
    .cudnnCreateActivationDescriptor = create_activation,
    .cudnnDestroyActivationDescriptor = destroy_activation,
    .cudnnSetActivationDescriptor = set_activation,
    .cudnnActivationForward = activation_forward,
    .cublasSetStream_v2 = blas_stream,
    .cublasSetWorkspace_v2 = blas_workspace,
    .cublasGemmStridedBatchedEx = gemm,
    .launch = launch,
};

static mpl_cuda driver = {.library = &library};

/* ---- descriptors of the real library ---- */

static mpl_cuda_library borrowed;
static __typeof__(cudnnGetConvolutionNdForwardOutputDim) *real_output;
static __typeof__(cudnnGetTensorNdDescriptor) *real_tensor;

/* Whether the library computes the dims of y from x and w. */
static cudnnStatus_t leaves_y(cudnnConvolutionDescriptor_t c, cudnnTensorDescriptor_t x,
                              cudnnFilterDescriptor_t w, cudnnTensorDescriptor_t y)
{
    int n = 0, want[5], got[5], stride[5];
    cudnnDataType_t type;

    DEMAND(real_tensor(y, 5, &type, &n, want, stride) == CUDNN_STATUS_SUCCESS && n >= 4 && n <= 5);
    DEMAND(real_output(c, x, w, n, got) == CUDNN_STATUS_SUCCESS);
    DEMAND(memcmp(got, want, (size_t)n * sizeof *got) == 0);
    return CUDNN_STATUS_SUCCESS;
}

/* One algorithm without a workspace. */
#define BORROWED(name, room, perf, algo_type, a_type, b_type, c_type, x, w, y)                     \
    static cudnnStatus_t name(cudnnHandle_t h, const a_type a, const b_type b,                     \
                              const cudnnConvolutionDescriptor_t d, const c_type c,                \
                              const int most, int *n, perf *found)                                 \
    {                                                                                              \
        (void)h, (void)most;                                                                       \
        memset(found, 0, sizeof *found);                                                           \
        found->algo = 1, found->determinism = CUDNN_DETERMINISTIC,                                 \
        found->mathType = CUDNN_FMA_MATH;                                                          \
        *n = 1;                                                                                    \
        return leaves_y(d, x, w, y);                                                               \
    }                                                                                              \
    static cudnnStatus_t room(cudnnHandle_t h, const a_type a, const b_type b,                     \
                              const cudnnConvolutionDescriptor_t d, const c_type c,                \
                              algo_type algo, size_t *bytes)                                       \
    {                                                                                              \
        (void)h, (void)a, (void)b, (void)d, (void)c, (void)algo;                                   \
        *bytes = 0;                                                                                \
        return CUDNN_STATUS_SUCCESS;                                                               \
    }
BORROWED(any_forward, no_forward_room, cudnnConvolutionFwdAlgoPerf_t, cudnnConvolutionFwdAlgo_t,
         cudnnTensorDescriptor_t, cudnnFilterDescriptor_t, cudnnTensorDescriptor_t, a, b, c)
BORROWED(any_data, no_data_room, cudnnConvolutionBwdDataAlgoPerf_t, cudnnConvolutionBwdDataAlgo_t,
         cudnnFilterDescriptor_t, cudnnTensorDescriptor_t, cudnnTensorDescriptor_t, c, a, b)
BORROWED(any_filter, no_filter_room, cudnnConvolutionBwdFilterAlgoPerf_t,
         cudnnConvolutionBwdFilterAlgo_t, cudnnTensorDescriptor_t, cudnnTensorDescriptor_t,
         cudnnFilterDescriptor_t, a, c, b)

bool host_borrow(void)
{
    const char *folder = getenv("MEMPLAN_CUDNN");
    char path[600];
    void *dnn, *p;

    snprintf(path, sizeof path, "%s%slibcudnn.so.%d", folder != NULL ? folder : "",
             folder != NULL ? "/" : "", CUDNN_MAJOR);
    if ((dnn = dlopen(path, RTLD_NOW | RTLD_LOCAL)) == NULL)
        return false;
#define CALL(name) p = dlsym(dnn, #name), memcpy(&borrowed.name, &p, sizeof p);
    MPL_CUDNN_CALLS(CALL)
#undef CALL
    p = dlsym(dnn, "cudnnGetConvolutionNdForwardOutputDim"), memcpy(&real_output, &p, sizeof p);
    p = dlsym(dnn, "cudnnGetTensorNdDescriptor"), memcpy(&real_tensor, &p, sizeof p);
    borrowed.cudnnGetConvolutionForwardAlgorithm_v7 = any_forward;
    borrowed.cudnnGetConvolutionForwardWorkspaceSize = no_forward_room;
    borrowed.cudnnGetConvolutionBackwardDataAlgorithm_v7 = any_data;
    borrowed.cudnnGetConvolutionBackwardDataWorkspaceSize = no_data_room;
    borrowed.cudnnGetConvolutionBackwardFilterAlgorithm_v7 = any_filter;
    borrowed.cudnnGetConvolutionBackwardFilterWorkspaceSize = no_filter_room;
    driver.library = &borrowed;
    return true;
}

void host_give_back(void)
{
    driver.library = &library;
}

mpl_status host_dnn_prepare(mpl_ctx *ctx, const mpl_graph *g, mpl_op op,
                            const mpl_cuda_choice *choice, mpl_cuda_dnn **out,
                            uint64_t *workspace_bytes, const char **how)
{
    return mpl_dnn_prepare(ctx, &driver, g, op, choice, out, workspace_bytes, how);
}

void host_dnn_release(mpl_ctx *ctx, mpl_cuda_dnn *dnn)
{
    mpl_dnn_release(ctx, &driver, dnn);
}

int host_dnn_run(const mpl_cuda_work *work)
{
    host.n_runs++;
    return mpl_dnn_run(&driver, work, NULL);
}

#else

host_world host;

mpl_status host_dnn_prepare(mpl_ctx *ctx, const mpl_graph *g, mpl_op op,
                            const mpl_cuda_choice *choice, mpl_cuda_dnn **out,
                            uint64_t *workspace_bytes, const char **how)
{
    (void)ctx, (void)g, (void)op, (void)choice, (void)how;
    *out = NULL;
    *workspace_bytes = 0;
    return MPL_OK;
}

void host_dnn_release(mpl_ctx *ctx, mpl_cuda_dnn *dnn)
{
    (void)ctx, (void)dnn;
}

int host_dnn_run(const mpl_cuda_work *work)
{
    (void)work;
    return 1;
}

bool host_borrow(void)
{
    return false;
}

void host_give_back(void)
{
}

#endif
