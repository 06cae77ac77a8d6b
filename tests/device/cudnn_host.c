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
struct cudnnPoolingStruct {
    cudnnPoolingMode_t mode;
    int n, window[3], pad[3], stride[3];
};
struct cudnnActivationStruct {
    cudnnActivationMode_t mode;
    cudnnNanPropagation_t nan;
    double coef;
};
struct cudnnLRNStruct {
    unsigned n;
    double alpha, beta, k;
};
struct cudnnOpTensorStruct {
    cudnnOpTensorOp_t op;
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
DESCRIPTOR(pooling, cudnnPoolingDescriptor_t)
DESCRIPTOR(activation, cudnnActivationDescriptor_t)
DESCRIPTOR(lrn, cudnnLRNDescriptor_t)
DESCRIPTOR(op_tensor, cudnnOpTensorDescriptor_t)

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

static cudnnStatus_t set_pooling(cudnnPoolingDescriptor_t d, const cudnnPoolingMode_t mode,
                                 const cudnnNanPropagation_t nan, int n, const int window[],
                                 const int pad[], const int stride[])
{
    DEMAND(n >= 2 && n <= 3 && mode != CUDNN_POOLING_MAX && nan == CUDNN_PROPAGATE_NAN);
    d->mode = mode;
    d->n = n;
    for (int i = 0; i < n; i++) {
        DEMAND(window[i] > 0 && pad[i] >= 0 && pad[i] < window[i] && stride[i] > 0);
        d->window[i] = window[i], d->pad[i] = pad[i], d->stride[i] = stride[i];
    }
    return CUDNN_STATUS_SUCCESS;
}

static cudnnStatus_t pooling_dims(const cudnnPoolingDescriptor_t d, const cudnnTensorDescriptor_t x,
                                  int n, int out[])
{
    DEMAND(n == d->n + 2 && x->n == n);
    for (int i = 0; i < n; i++)
        out[i] = i < 2 ? x->size[i]
                       : 1 + (x->size[i] + 2 * d->pad[i - 2] - d->window[i - 2]) / d->stride[i - 2];
    return CUDNN_STATUS_SUCCESS;
}

static cudnnStatus_t set_activation(cudnnActivationDescriptor_t d, cudnnActivationMode_t mode,
                                    cudnnNanPropagation_t nan, double coef)
{
    *d = (struct cudnnActivationStruct){mode, nan, coef};
    return CUDNN_STATUS_SUCCESS;
}

static cudnnStatus_t set_lrn(cudnnLRNDescriptor_t d, unsigned n, double alpha, double beta,
                             double k)
{
    *d = (struct cudnnLRNStruct){n, alpha, beta, k};
    return CUDNN_STATUS_SUCCESS;
}

static cudnnStatus_t set_op(cudnnOpTensorDescriptor_t d, cudnnOpTensorOp_t op, cudnnDataType_t type,
                            cudnnNanPropagation_t nan)
{
    DEMAND(type == CUDNN_DATA_FLOAT && nan == CUDNN_PROPAGATE_NAN);
    d->op = op;
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

/* Where element i, counted row by row over the dims of `of`, lies in a tensor of those dims, or of
 * 1 where it is repeated. */
static int64_t offset(const struct cudnnTensorStruct *of, const struct cudnnTensorStruct *d,
                      int64_t i)
{
    int64_t at = 0;

    for (int k = 5; k-- > 0; i /= of->size[k])
        at += d->size[k] == 1 ? 0 : i % of->size[k] * d->stride[k];
    return at;
}

/* to = alpha * x + beta * to; with beta 0 what is there is not read. */
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

static cudnnStatus_t op_tensor(cudnnHandle_t h, const cudnnOpTensorDescriptor_t op,
                               const void *alpha1, const cudnnTensorDescriptor_t ad, const void *a,
                               const void *alpha2, const cudnnTensorDescriptor_t bd, const void *b,
                               const void *beta, const cudnnTensorDescriptor_t cd, void *c)
{
    const float one = 1;

    (void)h;
    DEMAND(same_dims(ad, cd) && (b != c || a == c));
    for (int64_t i = 0; i < elements(cd); i++) {
        float x = *(const float *)alpha1 * ((const float *)a)[offset(cd, ad, i)];
        float z = *(const float *)alpha2 * ((const float *)b)[offset(cd, bd, i)];

        blend((float *)c + offset(cd, cd, i), &one,
              op->op == CUDNN_OP_TENSOR_MUL   ? x * z
              : op->op == CUDNN_OP_TENSOR_MIN ? (x < z || x != x ? x : z)
              : op->op == CUDNN_OP_TENSOR_MAX ? (x > z || x != x ? x : z)
                                              : x + z,
              beta);
    }
    return CUDNN_STATUS_SUCCESS;
}

/* ---- activation, softmax ---- */

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
    DEMAND(same_dims(xd, yd) && d->mode != CUDNN_ACTIVATION_IDENTITY);
    for (int64_t i = 0; i < elements(xd); i++)
        blend((float *)y + offset(yd, yd, i), alpha,
              activated(d, ((const float *)x)[offset(xd, xd, i)]), beta);
    return CUDNN_STATUS_SUCCESS;
}

static cudnnStatus_t activation_backward(cudnnHandle_t h, cudnnActivationDescriptor_t d,
                                         const void *alpha, const cudnnTensorDescriptor_t yd,
                                         const void *y, const cudnnTensorDescriptor_t dyd,
                                         const void *dy, const cudnnTensorDescriptor_t xd,
                                         const void *x, const void *beta,
                                         const cudnnTensorDescriptor_t dxd, void *dx)
{
    (void)h, (void)y;
    DEMAND(d->mode == CUDNN_ACTIVATION_RELU && same_dims(yd, dyd) && same_dims(xd, dxd) &&
           same_dims(xd, yd));
    for (int64_t i = 0; i < elements(xd); i++)
        blend((float *)dx + offset(dxd, dxd, i), alpha,
              ((const float *)x)[offset(xd, xd, i)] > 0 ? ((const float *)dy)[offset(dyd, dyd, i)]
                                                        : 0,
              beta);
    return CUDNN_STATUS_SUCCESS;
}

/* Element 0 of lane i along the channels, and how far apart its elements are. */
static int64_t lane(const struct cudnnTensorStruct *d, int64_t i)
{
    struct cudnnTensorStruct one_channel = *d;

    one_channel.size[1] = 1;
    return offset(&one_channel, &one_channel, i);
}

static cudnnStatus_t softmax_forward(cudnnHandle_t h, cudnnSoftmaxAlgorithm_t how,
                                     cudnnSoftmaxMode_t mode, const void *alpha,
                                     const cudnnTensorDescriptor_t xd, const void *x,
                                     const void *beta, const cudnnTensorDescriptor_t yd, void *y)
{
    int64_t step = xd->stride[1];

    (void)h;
    DEMAND(mode == CUDNN_SOFTMAX_MODE_CHANNEL && how != CUDNN_SOFTMAX_FAST && same_dims(xd, yd));
    for (int64_t i = 0; i < elements(xd) / xd->size[1]; i++) {
        const float *from = (const float *)x + lane(xd, i);
        double most = -INFINITY, sum = 0;

        for (int c = 0; c < xd->size[1]; c++)
            most = fmax(most, from[c * step]);
        for (int c = 0; c < xd->size[1]; c++)
            sum += exp(from[c * step] - most);
        for (int c = 0; c < xd->size[1]; c++)
            blend((float *)y + lane(yd, i) + c * yd->stride[1], alpha,
                  how == CUDNN_SOFTMAX_LOG ? from[c * step] - most - log(sum)
                                           : exp(from[c * step] - most) / sum,
                  beta);
    }
    return CUDNN_STATUS_SUCCESS;
}

static cudnnStatus_t softmax_backward(cudnnHandle_t h, cudnnSoftmaxAlgorithm_t how,
                                      cudnnSoftmaxMode_t mode, const void *alpha,
                                      const cudnnTensorDescriptor_t yd, const void *y,
                                      const cudnnTensorDescriptor_t dyd, const void *dy,
                                      const void *beta, const cudnnTensorDescriptor_t dxd, void *dx)
{
    (void)h;
    DEMAND(mode == CUDNN_SOFTMAX_MODE_CHANNEL && how == CUDNN_SOFTMAX_ACCURATE &&
           same_dims(yd, dyd) && same_dims(yd, dxd));
    for (int64_t i = 0; i < elements(yd) / yd->size[1]; i++) {
        const float *of = (const float *)y + lane(yd, i), *from = (const float *)dy + lane(dyd, i);
        double sum = 0;

        for (int c = 0; c < yd->size[1]; c++)
            sum += of[c * yd->stride[1]] * from[c * dyd->stride[1]];
        for (int c = 0; c < yd->size[1]; c++)
            blend((float *)dx + lane(dxd, i) + c * dxd->stride[1], alpha,
                  of[c * yd->stride[1]] * (from[c * dyd->stride[1]] - sum), beta);
    }
    return CUDNN_STATUS_SUCCESS;
}

/* ---- convolution ---- */

typedef enum part { OF_X, OF_FILTER, OF_Y } part;

/* Spatial dim i of 3, those that are missing in front. */
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

/* Adds to acc[] what every triple of elements of x, filter and y that belong together contributes
 * to one of the three. */
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

/* The workspace that an algorithm asks for; what is one too many. */
static size_t room_of(int algo)
{
    return algo == 4 ? (size_t)1 << 50 : (size_t)algo * 100;
}

/* Three that must not be taken, then the one that may; which one depends on the channels, so that
 * both kinds are met. */
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

/* What must hold of every convolution that runs; the workspace is written over. */
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

static cudnnStatus_t
conv_bias_activation(cudnnHandle_t h, const void *alpha1, const cudnnTensorDescriptor_t xd,
                     const void *x, const cudnnFilterDescriptor_t wd, const void *w,
                     const cudnnConvolutionDescriptor_t c, cudnnConvolutionFwdAlgo_t algo,
                     void *workspace, size_t bytes, const void *alpha2,
                     const cudnnTensorDescriptor_t zd, const void *z,
                     const cudnnTensorDescriptor_t bd, const void *bias,
                     const cudnnActivationDescriptor_t a, const cudnnTensorDescriptor_t yd, void *y)
{
    const float one = 1, zero = 0;
    double *acc;

    (void)h;
    if (xd->size[0] == 3) /* as a version that cannot */
        return CUDNN_STATUS_NOT_SUPPORTED;
    DEMAND(conv_fits(xd, wd, c, yd) && may_run((int)algo, c, workspace, bytes) &&
           same_dims(zd, yd));
    DEMAND(bias != NULL && bd->size[0] == 1 && bd->size[1] == yd->size[1] && bd->size[2] == 1 &&
           bd->size[3] == 1);
    DEMAND(a->nan == CUDNN_NOT_PROPAGATE_NAN && z != NULL && x != y);
    DEMAND(a->mode == CUDNN_ACTIVATION_RELU ||
           (a->mode == CUDNN_ACTIVATION_IDENTITY &&
            algo == CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM));
    acc = sums(elements(yd));
    conv_walk(xd, x, wd, w, c, yd, NULL, OF_Y, acc);
    for (int64_t i = 0; i < elements(yd); i++) {
        double sum = *(const float *)alpha1 * acc[i] + ((const float *)bias)[offset(yd, bd, i)];

        if (*(const float *)alpha2 != 0)
            sum += *(const float *)alpha2 * ((const float *)z)[offset(zd, zd, i)];
        acc[i] = activated(a, sum);
    }
    put_sums(acc, elements(yd), &one, &zero, y);
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

/* ---- pooling ---- */

/* Calls one for every element of x in the window of every element of y, with how many the mean is
 * taken over. */
typedef void pooled(void *into, int64_t x, int64_t y, double count);

static void pool_walk(const struct cudnnPoolingStruct *p, const struct cudnnTensorStruct *xd,
                      const struct cudnnTensorStruct *yd, pooled *one, void *into)
{
    for (int64_t i = 0; i < elements(yd); i++) {
        int64_t rest = i, from[3] = {0}, to[3] = {1, 1, 1}, in[3] = {1, 1, 1}, count = 1,
                inside = 1;

        for (int a = 3; a-- > 3 - p->n;) {
            int k = a - (3 - p->n);
            int64_t o = rest % yd->size[2 + k];

            rest /= yd->size[2 + k];
            in[a] = xd->size[2 + k];
            from[a] = o * p->stride[k] - p->pad[k];
            to[a] = from[a] + p->window[k];
            count *= (to[a] < in[a] + p->pad[k] ? to[a] : in[a] + p->pad[k]) - from[a];
            from[a] = from[a] < 0 ? 0 : from[a];
            to[a] = to[a] > in[a] ? in[a] : to[a];
            inside *= to[a] - from[a];
        }
        for (int64_t z = from[0]; z < to[0]; z++)
            for (int64_t y = from[1]; y < to[1]; y++)
                for (int64_t x = from[2]; x < to[2]; x++)
                    one(into, ((rest * in[0] + z) * in[1] + y) * in[2] + x, i,
                        p->mode == CUDNN_POOLING_AVERAGE_COUNT_INCLUDE_PADDING ? (double)count
                                                                               : (double)inside);
    }
}

typedef struct pool_sums {
    const struct cudnnPoolingStruct *p;
    const float *from;
    double *acc;
    bool *any;
} pool_sums;

static void pool_into(void *into, int64_t x, int64_t y, double count)
{
    pool_sums *s = into;

    if (s->p->mode != CUDNN_POOLING_MAX_DETERMINISTIC)
        s->acc[y] += s->from[x] / count;
    else if (!s->any[y] || s->from[x] > s->acc[y] ||
             s->from[x] != s->from[x]) /* CUDNN_PROPAGATE_NAN
                                        */
        s->acc[y] = s->from[x], s->any[y] = true;
}

static void pool_out_of(void *into, int64_t x, int64_t y, double count)
{
    pool_sums *s = into;

    s->acc[x] += s->from[y] / count;
}

static cudnnStatus_t pooling_forward(cudnnHandle_t h, const cudnnPoolingDescriptor_t p,
                                     const void *alpha, const cudnnTensorDescriptor_t xd,
                                     const void *x, const void *beta,
                                     const cudnnTensorDescriptor_t yd, void *y)
{
    pool_sums s = {p, x, sums(elements(yd)), calloc((size_t)elements(yd), sizeof(bool))};

    (void)h;
    pool_walk(p, xd, yd, pool_into, &s);
    put_sums(s.acc, elements(yd), alpha, beta, y);
    free(s.any);
    return CUDNN_STATUS_SUCCESS;
}

static cudnnStatus_t pooling_backward(cudnnHandle_t h, const cudnnPoolingDescriptor_t p,
                                      const void *alpha, const cudnnTensorDescriptor_t yd,
                                      const void *y, const cudnnTensorDescriptor_t dyd,
                                      const void *dy, const cudnnTensorDescriptor_t xd,
                                      const void *x, const void *beta,
                                      const cudnnTensorDescriptor_t dxd, void *dx)
{
    pool_sums s = {p, dy, NULL, NULL};

    (void)h;
    DEMAND(p->mode != CUDNN_POOLING_MAX_DETERMINISTIC && y != NULL && x != NULL &&
           same_dims(yd, dyd) && same_dims(xd, dxd));
    s.acc = sums(elements(dxd));
    pool_walk(p, dxd, dyd, pool_out_of, &s);
    put_sums(s.acc, elements(dxd), alpha, beta, dx);
    return CUDNN_STATUS_SUCCESS;
}

/* ---- normalisation ---- */

static double lrn_scale(const struct cudnnLRNStruct *d, const struct cudnnTensorStruct *xd,
                        const float *x, int c)
{
    int below = (int)(d->n - 1) / 2;
    double squares = 0;

    for (int k = c - below; k <= c - below + (int)d->n - 1; k++)
        if (k >= 0 && k < xd->size[1])
            squares += (double)x[k * xd->stride[1]] * x[k * xd->stride[1]];
    return d->k + d->alpha / d->n * squares;
}

static cudnnStatus_t lrn_forward(cudnnHandle_t h, cudnnLRNDescriptor_t d, cudnnLRNMode_t mode,
                                 const void *alpha, const cudnnTensorDescriptor_t xd, const void *x,
                                 const void *beta, const cudnnTensorDescriptor_t yd, void *y)
{
    (void)h;
    DEMAND(mode == CUDNN_LRN_CROSS_CHANNEL_DIM1 && same_dims(xd, yd));
    for (int64_t i = 0; i < elements(xd) / xd->size[1]; i++)
        for (int c = 0; c < xd->size[1]; c++) {
            const float *from = (const float *)x + lane(xd, i);

            blend((float *)y + lane(yd, i) + c * yd->stride[1], alpha,
                  from[c * xd->stride[1]] * pow(lrn_scale(d, xd, from, c), -d->beta), beta);
        }
    return CUDNN_STATUS_SUCCESS;
}

static cudnnStatus_t lrn_backward(cudnnHandle_t h, cudnnLRNDescriptor_t d, cudnnLRNMode_t mode,
                                  const void *alpha, const cudnnTensorDescriptor_t yd,
                                  const void *y, const cudnnTensorDescriptor_t dyd, const void *dy,
                                  const cudnnTensorDescriptor_t xd, const void *x, const void *beta,
                                  const cudnnTensorDescriptor_t dxd, void *dx)
{
    int below = (int)(d->n - 1) / 2;

    (void)h;
    DEMAND(mode == CUDNN_LRN_CROSS_CHANNEL_DIM1 && same_dims(xd, yd) && same_dims(xd, dyd) &&
           same_dims(xd, dxd));
    for (int64_t i = 0; i < elements(xd) / xd->size[1]; i++)
        for (int c = 0; c < xd->size[1]; c++) {
            const float *of_x = (const float *)x + lane(xd, i),
                        *of_y = (const float *)y + lane(yd, i);
            const float *of_dy = (const float *)dy + lane(dyd, i);
            double sum = 0;

            for (int k = c - (int)d->n + 1 + below; k <= c + below; k++)
                if (k >= 0 && k < xd->size[1])
                    sum += (double)of_dy[k * dyd->stride[1]] * of_y[k * yd->stride[1]] /
                           lrn_scale(d, xd, of_x, k);
            blend((float *)dx + lane(dxd, i) + c * dxd->stride[1], alpha,
                  of_dy[c * dyd->stride[1]] * pow(lrn_scale(d, xd, of_x, c), -d->beta) -
                      2 * d->alpha / d->n * d->beta * of_x[c * xd->stride[1]] * sum,
                  beta);
        }
    return CUDNN_STATUS_SUCCESS;
}

static bool channels_fit(const struct cudnnTensorStruct *x, const struct cudnnTensorStruct *b)
{
    return b->size[0] == 1 && b->size[1] == x->size[1] && b->size[2] == 1 && b->size[3] == 1;
}

static int64_t channel_of(const struct cudnnTensorStruct *xd, int64_t i)
{
    return i / (elements(xd) / xd->size[0] / xd->size[1]) % xd->size[1];
}

static cudnnStatus_t norm_inference(cudnnHandle_t h, cudnnBatchNormMode_t mode, const void *alpha,
                                    const void *beta, const cudnnTensorDescriptor_t xd,
                                    const void *x, const cudnnTensorDescriptor_t yd, void *y,
                                    const cudnnTensorDescriptor_t bd, const void *scale,
                                    const void *bias, const void *mean, const void *variance,
                                    double epsilon)
{
    (void)h;
    DEMAND(mode == CUDNN_BATCHNORM_SPATIAL && same_dims(xd, yd) && channels_fit(xd, bd));
    for (int64_t i = 0; i < elements(xd); i++) {
        int64_t c = channel_of(xd, i);
        double inverse = 1 / sqrt(((const float *)variance)[c] + epsilon);

        blend((float *)y + offset(yd, yd, i), alpha,
              ((const float *)scale)[c] *
                      (((const float *)x)[offset(xd, xd, i)] - ((const float *)mean)[c]) * inverse +
                  ((const float *)bias)[c],
              beta);
    }
    return CUDNN_STATUS_SUCCESS;
}

static cudnnStatus_t norm_training(cudnnHandle_t h, cudnnBatchNormMode_t mode, const void *alpha,
                                   const void *beta, const cudnnTensorDescriptor_t xd,
                                   const void *x, const cudnnTensorDescriptor_t yd, void *y,
                                   const cudnnTensorDescriptor_t bd, const void *scale,
                                   const void *bias, double factor, void *running_mean,
                                   void *running_variance, double epsilon, void *saved_mean,
                                   void *saved_inverse)
{
    double n = (double)(elements(xd) / xd->size[1]);

    (void)h, (void)factor;
    DEMAND(mode == CUDNN_BATCHNORM_SPATIAL && same_dims(xd, yd) && channels_fit(xd, bd));
    DEMAND(running_mean == NULL && running_variance == NULL && saved_mean != NULL &&
           saved_inverse != NULL);
    for (int64_t c = 0; c < xd->size[1]; c++) {
        double mean = 0, squares = 0, inverse;

        for (int64_t i = 0; i < elements(xd); i++)
            mean += channel_of(xd, i) == c ? ((const float *)x)[offset(xd, xd, i)] : 0;
        mean /= n;
        for (int64_t i = 0; i < elements(xd); i++)
            squares +=
                channel_of(xd, i) == c ? pow(((const float *)x)[offset(xd, xd, i)] - mean, 2) : 0;
        inverse = 1 / sqrt(squares / n + epsilon);
        for (int64_t i = 0; i < elements(xd); i++)
            if (channel_of(xd, i) == c)
                blend((float *)y + offset(yd, yd, i), alpha,
                      ((const float *)scale)[c] * (((const float *)x)[offset(xd, xd, i)] - mean) *
                              inverse +
                          ((const float *)bias)[c],
                      beta);
        ((float *)saved_mean)[c] = (float)mean;
        ((float *)saved_inverse)[c] = (float)inverse;
    }
    return CUDNN_STATUS_SUCCESS;
}

static cudnnStatus_t norm_backward(cudnnHandle_t h, cudnnBatchNormMode_t mode, const void *alpha,
                                   const void *beta, const void *alpha_of, const void *beta_of,
                                   const cudnnTensorDescriptor_t xd, const void *x,
                                   const cudnnTensorDescriptor_t dyd, const void *dy,
                                   const cudnnTensorDescriptor_t dxd, void *dx,
                                   const cudnnTensorDescriptor_t bd, const void *scale,
                                   void *dscale, void *dbias, double epsilon,
                                   const void *saved_mean, const void *saved_inverse)
{
    double n = (double)(elements(xd) / xd->size[1]);

    (void)h, (void)epsilon;
    DEMAND(mode == CUDNN_BATCHNORM_SPATIAL && same_dims(xd, dyd) && same_dims(xd, dxd) &&
           channels_fit(xd, bd));
    DEMAND(saved_mean != NULL && saved_inverse != NULL);
    for (int64_t c = 0; c < xd->size[1]; c++) {
        double mean = ((const float *)saved_mean)[c], inverse = ((const float *)saved_inverse)[c],
               sum = 0, dot = 0;

        for (int64_t i = 0; i < elements(xd); i++)
            if (channel_of(xd, i) == c) {
                sum += ((const float *)dy)[i];
                dot += ((const float *)dy)[i] * (((const float *)x)[i] - mean) * inverse;
            }
        for (int64_t i = 0; i < elements(xd); i++)
            if (channel_of(xd, i) == c)
                blend((float *)dx + i, alpha,
                      ((const float *)scale)[c] * inverse *
                          (((const float *)dy)[i] -
                           (sum + (((const float *)x)[i] - mean) * inverse * dot) / n),
                      beta);
        blend((float *)dscale + c, alpha_of, dot, beta_of);
        blend((float *)dbias + c, alpha_of, sum, beta_of);
    }
    return CUDNN_STATUS_SUCCESS;
}

/* ---- products: as BLAS has them, column-major ---- */

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
    .cudnnConvolutionBiasActivationForward = conv_bias_activation,
    .cudnnGetConvolutionBackwardDataAlgorithm_v7 = data_heuristics,
    .cudnnGetConvolutionBackwardDataWorkspaceSize = data_room,
    .cudnnConvolutionBackwardData = conv_data,
    .cudnnGetConvolutionBackwardFilterAlgorithm_v7 = filter_heuristics,
    .cudnnGetConvolutionBackwardFilterWorkspaceSize = filter_room,
    .cudnnConvolutionBackwardFilter = conv_filter,
    .cudnnConvolutionBackwardBias = conv_bias,
    .cudnnAddTensor = add_tensor,
    .cudnnCreatePoolingDescriptor = create_pooling,
    .cudnnDestroyPoolingDescriptor = destroy_pooling,
    .cudnnSetPoolingNdDescriptor = set_pooling,
    .cudnnGetPoolingNdForwardOutputDim = pooling_dims,
    .cudnnPoolingForward = pooling_forward,
    .cudnnPoolingBackward = pooling_backward,
    .cudnnCreateActivationDescriptor = create_activation,
    .cudnnDestroyActivationDescriptor = destroy_activation,
    .cudnnSetActivationDescriptor = set_activation,
    .cudnnActivationForward = activation_forward,
    .cudnnActivationBackward = activation_backward,
    .cudnnSoftmaxForward = softmax_forward,
    .cudnnSoftmaxBackward = softmax_backward,
    .cudnnCreateLRNDescriptor = create_lrn,
    .cudnnDestroyLRNDescriptor = destroy_lrn,
    .cudnnSetLRNDescriptor = set_lrn,
    .cudnnLRNCrossChannelForward = lrn_forward,
    .cudnnLRNCrossChannelBackward = lrn_backward,
    .cudnnBatchNormalizationForwardInference = norm_inference,
    .cudnnBatchNormalizationForwardTraining = norm_training,
    .cudnnBatchNormalizationBackward = norm_backward,
    .cudnnCreateOpTensorDescriptor = create_op_tensor,
    .cudnnDestroyOpTensorDescriptor = destroy_op_tensor,
    .cudnnSetOpTensorDescriptor = set_op,
    .cudnnOpTensor = op_tensor,
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

/* Whether the library leaves of x and w what y is. */
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

/* One algorithm, that needs nothing. */
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
