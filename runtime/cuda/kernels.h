/* kernels.h -- our own device kernels: what each one is told, as plain data. Read by C and by nvcc.
 *
 * An operation is a list of launches on one stream. What a launch is told holds everything but the operands'
 * places, which are filled in when the operation is bound to memory. */
#ifndef MPL_CUDA_KERNELS_H
#define MPL_CUDA_KERNELS_H

#include "graphs/graph.h"

#define MPL_CUDA_MAX_IN 8 /* operands of one launch */

typedef enum mpl_cuda_kernel_id {
    MPL_CUDA_ELEMENTWISE,
    MPL_CUDA_MOVE,
    MPL_CUDA_PAD,
    MPL_CUDA_GATHER,
    MPL_CUDA_REDUCE,
    MPL_CUDA_ARG,
    MPL_CUDA_CUMSUM,
    MPL_CUDA_SOFTMAX,
    MPL_CUDA_NORM,
    MPL_CUDA_LRN,
    MPL_CUDA_CONV,
    MPL_CUDA_POOL,
    MPL_CUDA_PRODUCT
} mpl_cuda_kernel_id;

/* Dims of the output, neighbours that all operands treat alike made one, and each operand's strides along
 * them. [element] */
typedef struct mpl_cuda_elementwise {
    int32_t rank;
    int64_t dim[MPL_MAX_RANK], stride[MPL_CUDA_MAX_IN][MPL_MAX_RANK];
    double a, b;  /* parameters, or epsilon of batch_norm */
    int64_t i, j; /* of is_inf, mod, bit_shift, gelu */
} mpl_cuda_elementwise;

/* Elements of `bytes` bytes from one strided box to another. */
typedef struct mpl_cuda_move {
    int32_t rank, bytes;
    int64_t dim[MPL_MAX_RANK], to_stride[MPL_MAX_RANK], from_stride[MPL_MAX_RANK]; /* [element] */
} mpl_cuda_move;

typedef enum mpl_cuda_pad_mode {
    MPL_PAD_CONSTANT,
    MPL_PAD_EDGE,
    MPL_PAD_REFLECT,
    MPL_PAD_WRAP
} mpl_cuda_pad_mode;
typedef struct mpl_cuda_pad {
    int32_t rank, bytes, mode;
    int64_t dim[MPL_MAX_RANK], in_dim[MPL_MAX_RANK], before[MPL_MAX_RANK];
} mpl_cuda_pad;

/* out[o][j][k] = in[o][index[j]][k]; by_element: index has the output's dims, the first `rank` of them with
 * the input's strides, 0 along the axis. */
typedef struct mpl_cuda_gather {
    int32_t bytes, by_element, rank;
    int64_t axis_dim, n_index, inner;
    int64_t dim[MPL_MAX_RANK], stride[MPL_MAX_RANK], along;
} mpl_cuda_gather;

/* Output i reduces n elements: kept dims say where they begin, reduced ones where they lie from there. */
typedef struct mpl_cuda_reduce {
    int32_t n_kept, n_reduced;
    int64_t kept_dim[MPL_MAX_RANK], kept_stride[MPL_MAX_RANK];
    int64_t reduced_dim[MPL_MAX_RANK], reduced_stride[MPL_MAX_RANK];
    int64_t n;     /* elements behind each output */
    double p;      /* power of lp pools */
    int32_t whole; /* integers are reduced as integers */
} mpl_cuda_reduce;

/* Lanes of n elements, `inner` apart; arg, cumsum and softmax. */
typedef struct mpl_cuda_lanes {
    int64_t n, inner;
    int32_t last, exclusive, reverse;
} mpl_cuda_lanes;

/* Rows of n neighbours, each normalised about its mean or about 0; operand 1 scales, operand 2 shifts, by
 * their strides along the dims of the input; outputs 1 and 2, where there, take mean and inverse deviation. */
typedef struct mpl_cuda_norm {
    int64_t n;
    int32_t rank, about_mean;
    int64_t dim[MPL_MAX_RANK], stride[2][MPL_MAX_RANK];
    double epsilon;
} mpl_cuda_norm;

typedef struct mpl_cuda_lrn {
    int64_t channels, inner, below, above;
    double factor, beta, bias;
} mpl_cuda_lrn;

/* Windows over up to three spatial dims, the missing ones in front and of size 1. */
typedef struct mpl_cuda_window {
    int64_t in[3], out[3], kernel[3], stride[3], dilation[3], before[3], after[3];
    int64_t in_channels, out_channels, group; /* per group */
    int32_t transposed, padded;
    double p;
    double least, most; /* what a convolution gives; operand 3 is added before */
} mpl_cuda_window;

/* Stacks of matrices: element (i, k) of the left one is i * a_row + k * a_column from its matrix on. */
typedef struct mpl_cuda_product {
    int32_t rank; /* of the stack */
    int64_t dim[MPL_MAX_RANK], a_stack[MPL_MAX_RANK], b_stack[MPL_MAX_RANK];
    int64_t rows, columns, terms, a_row, a_column, b_row, b_column, c_row, c_column;
    double alpha, beta;
} mpl_cuda_product;

typedef struct mpl_cuda_kernel {
    int32_t id;   /* mpl_cuda_kernel_id */
    int32_t kind; /* mpl_op_kind */
    int64_t n;    /* elements of output 0, or lanes, or rows: what the threads share out */
    int32_t n_in, type[MPL_CUDA_MAX_IN], out_type;
    const void *in[MPL_CUDA_MAX_IN]; /* NULL: left out */
    void *out[3];
    uint32_t *flag; /* set to 1 by an index out of range */
    union {
        mpl_cuda_elementwise elementwise;
        mpl_cuda_move move;
        mpl_cuda_pad pad;
        mpl_cuda_gather gather;
        mpl_cuda_reduce reduce;
        mpl_cuda_lanes lanes;
        mpl_cuda_norm norm;
        mpl_cuda_lrn lrn;
        mpl_cuda_window window;
        mpl_cuda_product product;
    } as;
} mpl_cuda_kernel;

/* Puts a launch on a stream; the code of CUDA's last error, 0 when there is none. */
#ifdef __cplusplus
extern "C"
#endif
    int
    mpl_cuda_launch(const mpl_cuda_kernel *k, void *stream);

#endif
