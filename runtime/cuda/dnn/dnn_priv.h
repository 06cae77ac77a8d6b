/* dnn_priv.h -- shared by the files dnn*.c: how an operation is described to cuDNN and cuBLAS.
 *
 * An operator's function fills in the descriptors and `run`, and returns whether a library takes
 * the operation. Refused operations go to our own kernels; descriptors made so far are freed with
 * the mpl_cuda_dnn. */
#pragma once

#include "runtime/cuda/real_priv.h"

#define MPL_DNN_DIMS 5 /* most dims of a tensor */

typedef struct mpl_dnn_product { /* column-major: its first operand is our second */
    cublasOperation_t trans_a, trans_b;
    int rows, columns, terms, a_stride, b_stride, n;
    long long a_step, b_step, y_step;
    float alpha, beta;
    bool adds;                 /* input 2 is first copied to the output */
    uint32_t left, right, out; /* inputs and output of the row-major product */
} mpl_dnn_product;

/* Enqueues an operation on the stream of both libraries; returns a code as in real_priv.h. */
typedef int mpl_dnn_runner(mpl_cuda *c, const mpl_cuda_dnn *d, const mpl_op_call *call,
                           void *workspace);

struct mpl_cuda_dnn {
    mpl_dnn_runner *run;
    cudnnTensorDescriptor_t x, y, b; /* b: bias, parameters, or the other operand */
    cudnnFilterDescriptor_t filter;
    cudnnConvolutionDescriptor_t conv;
    cudnnConvolutionFwdAlgo_t algorithm;
    cudnnConvolutionBwdDataAlgo_t data_algorithm;
    cudnnConvolutionBwdFilterAlgo_t filter_algorithm;
    size_t workspace_bytes;                 /* of the library itself, without alignment */
    cudnnActivationDescriptor_t activation; /* of a convolution's result; NULL: none */
    uint32_t first; /* input x of a convolution; an input before it is added */
    mpl_dnn_product product[2];
    uint32_t n_products;
    cublasComputeType_t math;
    char how[64];
};

typedef struct mpl_dnn_maker {
    mpl_cuda *driver;
    const mpl_cuda_library *lib;
    const mpl_graph *g;
    mpl_op op;
    mpl_op_kind kind;
    uint32_t n_in, n_out;
    const mpl_cuda_choice *choice;
    mpl_cuda_dnn *dnn;
} mpl_dnn_maker;

static inline mpl_value mpl_dnn_in(const mpl_dnn_maker *maker, uint32_t i)
{
    return mpl_op_input(maker->g, maker->op, i);
}

static inline mpl_value mpl_dnn_out(const mpl_dnn_maker *maker, uint32_t i)
{
    return mpl_op_output(maker->g, maker->op, i);
}

static inline const mpl_shape *mpl_dnn_in_shape(const mpl_dnn_maker *maker, uint32_t i)
{
    return &maker->g->value_shape[mpl_dnn_in(maker, i)];
}

static inline const mpl_shape *mpl_dnn_out_shape(const mpl_dnn_maker *maker, uint32_t i)
{
    return &maker->g->value_shape[mpl_dnn_out(maker, i)];
}

/* Codes of both libraries in the space of real_priv.h. */
static inline int mpl_dnn_code(cudnnStatus_t code)
{
    return code == CUDNN_STATUS_SUCCESS ? 0 : MPL_CUDNN_CODE + (int)code;
}

static inline int mpl_blas_code(cublasStatus_t code)
{
    return code == CUBLAS_STATUS_SUCCESS ? 0 : MPL_CUBLAS_CODE + (int)code;
}

/* A row-major tensor of these dims, padded to at least four for cuDNN. False: more than
 * MPL_DNN_DIMS, or refused. */
bool mpl_dnn_tensor(const mpl_dnn_maker *maker, cudnnTensorDescriptor_t *t, uint32_t n,
                    const int64_t *dim);
/* n numbers of an attribute; all are `otherwise` if it is absent. */
void mpl_dnn_ints(const mpl_dnn_maker *maker, mpl_attr_key key, uint32_t n, int64_t otherwise,
                  int *out);
/* Pads. False: the two ends of a dim differ, and cuDNN has one number for both. */
bool mpl_dnn_pads(const mpl_dnn_maker *maker, uint32_t n, int *pad);

/* The math type of convolutions from --device, and whether an algorithm keeps it. */
static inline cudnnMathType_t mpl_dnn_math(const mpl_dnn_maker *maker)
{
    return maker->choice->fp16   ? CUDNN_TENSOR_OP_MATH_ALLOW_CONVERSION
           : maker->choice->tf32 ? CUDNN_DEFAULT_MATH
                                 : CUDNN_FMA_MATH;
}

static inline bool mpl_dnn_keeps_math(const mpl_dnn_maker *maker, cudnnMathType_t of)
{
    return maker->choice->fp16 || maker->choice->tf32 || of == CUDNN_FMA_MATH ||
           of == CUDNN_DEFAULT_MATH;
}

/* Describes an operator; false: the library does not take it. */
typedef bool mpl_dnn_describe(mpl_dnn_maker *m);
mpl_dnn_describe mpl_dnn_conv, mpl_dnn_conv_transpose, mpl_dnn_conv_grad; /* dnn_conv.c */
mpl_dnn_describe mpl_dnn_gemm, mpl_dnn_gemm_grad, mpl_dnn_matmul;         /* dnn_blas.c */
