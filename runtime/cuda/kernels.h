/* kernels.h -- the parameters of our own device kernels as plain data. Read by C and by nvcc.
 *
 * An operation is a list of launches on one stream. Launch parameters hold everything but the
 * operands' addresses, which are filled in when the operation is bound to memory. */
#pragma once

#include "graphs/graph.h"

#define MPL_CUDA_MAX_IN    12 /* operands of one launch */
#define MPL_CUDA_MAX_OUT   5
#define MPL_CUDA_MAX_STEPS 32 /* of a fused chain; its stack holds MPL_CUDA_MAX_STACK values */
#define MPL_CUDA_MAX_STACK 8

typedef enum mpl_cuda_kernel_id {
    MPL_CUDA_ELEMENTWISE,
    MPL_CUDA_MOVE,
    MPL_CUDA_FILL,
    MPL_CUDA_GATHER,
    MPL_CUDA_REDUCE,
    MPL_CUDA_SOFTMAX,
    MPL_CUDA_NORM,
    MPL_CUDA_LRN,
    MPL_CUDA_POOL,
    MPL_CUDA_PRODUCT,
    MPL_CUDA_FUSED,
    /* kernels_train.cu */
    MPL_CUDA_POOL_GRAD,
    MPL_CUDA_PLANE_GRAD,
    MPL_CUDA_LRN_GRAD,
    MPL_CUDA_SOFTMAX_GRAD,
    MPL_CUDA_BATCH,
    MPL_CUDA_DROP,
    MPL_CUDA_LOSS,
    MPL_CUDA_LOSS_MEAN,
    MPL_CUDA_LOSS_GRAD,
    MPL_CUDA_UPDATE
} mpl_cuda_kernel_id;

/* Dims of the output, merged where all operands treat neighbours alike, and each operand's strides
 * along them [element]. */
typedef struct mpl_cuda_elementwise {
    int32_t rank;
    int64_t dim[MPL_MAX_RANK], stride[MPL_CUDA_MAX_IN][MPL_MAX_RANK];
    double alpha, beta;       /* the operator's parameters; batch_norm: alpha is epsilon */
    int64_t flag, other_flag; /* of is_inf, mod, bit_shift, gelu; mean: number of operands */
} mpl_cuda_elementwise;

/* A chain of element-wise operations over a box, for a stack machine. Loads are operands. */
typedef struct mpl_cuda_fused {
    int32_t rank, n_loads, n_steps;
    int64_t dim[MPL_MAX_RANK], to_stride[MPL_MAX_RANK], to_offset; /* [element] */
    int64_t stride[MPL_CUDA_MAX_IN][MPL_MAX_RANK], offset[MPL_CUDA_MAX_IN];
    int16_t step[MPL_CUDA_MAX_STEPS]; /* mpl_op_kind; -1 - i: load i */
} mpl_cuda_fused;

#define MPL_CUDA_BOX_RANK (2 * MPL_MAX_RANK) /* tile repeats and walks each dim */

/* Copies elements of `bytes` bytes between two strided boxes. */
typedef struct mpl_cuda_move {
    int32_t rank, bytes;
    int64_t dim[MPL_CUDA_BOX_RANK], to_stride[MPL_CUDA_BOX_RANK],
        from_stride[MPL_CUDA_BOX_RANK]; /* [element] */
} mpl_cuda_move;

/* Rows of `inner` elements: row j of a batch is row index[j] of its `axis_dim` input rows. */
typedef struct mpl_cuda_gather {
    int32_t bytes; /* of an element */
    int64_t axis_dim, n_index, inner;
} mpl_cuda_gather;

/* Output i reduces n elements: kept dims give their base, reduced dims their offsets from it. */
typedef struct mpl_cuda_reduce {
    int32_t n_kept, n_reduced;
    int64_t kept_dim[MPL_MAX_RANK], kept_stride[MPL_MAX_RANK];
    int64_t reduced_dim[MPL_MAX_RANK], reduced_stride[MPL_MAX_RANK];
    int64_t n;     /* elements that each output reduces */
    double factor; /* of a plain sum */
} mpl_cuda_reduce;

/* Lanes of n elements, `inner` apart: softmax and the loss. */
typedef struct mpl_cuda_lanes {
    int64_t n, inner;
} mpl_cuda_lanes;

/* Rows of n contiguous elements, each normalised about its mean or about 0. Operand 1 scales and
 * operand 2 shifts, by their strides along the dims of the input. Outputs 1 and 2, if present,
 * receive mean and inverse deviation. */
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

/* Windows of pools over up to three spatial dims; missing dims come first and have size 1. */
typedef struct mpl_cuda_window {
    int64_t in[3], out[3], kernel[3], stride[3], dilation[3], before[3], after[3];
    int32_t counts_pads;  /* averages count the padding */
    int32_t column_major; /* index order of max_pool */
} mpl_cuda_window;

/* Stacks of matrices: element (i, k) of a left matrix is at i * a_row + k * a_column. */
typedef struct mpl_cuda_product {
    int32_t rank; /* of the stack */
    int64_t dim[MPL_MAX_RANK], a_stack[MPL_MAX_RANK], b_stack[MPL_MAX_RANK];
    int64_t rows, columns, terms, a_row, a_column, b_row, b_column, c_row, c_column;
    double alpha, beta;
    double least, most; /* the result is clipped to them */
} mpl_cuda_product;

/* Batch norm in training: each channel of [batch, channels, inner]. */
typedef struct mpl_cuda_batch {
    int64_t batch, channels, inner;
    double epsilon, momentum;
} mpl_cuda_batch;

typedef struct mpl_cuda_drop {
    double ratio;
    uint64_t seed;
} mpl_cuda_drop;

typedef struct mpl_cuda_update {
    double rate, momentum, epsilon, beta1, beta2, decay;
} mpl_cuda_update;

typedef struct mpl_cuda_kernel {
    int32_t id;   /* mpl_cuda_kernel_id */
    int32_t kind; /* mpl_op_kind */
    int64_t n;    /* work items for the threads: elements of output 0, lanes, or rows */
    int32_t n_in, type[MPL_CUDA_MAX_IN], out_type;
    const void *in[MPL_CUDA_MAX_IN]; /* NULL: left out */
    void *out[MPL_CUDA_MAX_OUT];
    void *work;     /* the operation's workspace */
    uint32_t *flag; /* set to 1 by an index, a label or a run number out of range */
    union {
        mpl_cuda_elementwise elementwise;
        mpl_cuda_move move;
        mpl_cuda_gather gather;
        mpl_cuda_reduce reduce;
        mpl_cuda_lanes lanes;
        mpl_cuda_norm norm;
        mpl_cuda_lrn lrn;
        mpl_cuda_window window;
        mpl_cuda_product product;
        mpl_cuda_fused fused;
        mpl_cuda_batch batch;
        mpl_cuda_drop drop;
        mpl_cuda_update update;
        int32_t byte; /* fill */
    } as;
} mpl_cuda_kernel;

/* Enqueues a launch. Returns the code of CUDA's last error, 0 if there is none. */
#ifdef __cplusplus
extern "C" {
#endif
int mpl_cuda_launch(const mpl_cuda_kernel *k, void *stream);
/* Launches those of kernels_train.cu; called only by mpl_cuda_launch. */
void mpl_cuda_launch_train(const mpl_cuda_kernel *k, void *stream);
#ifdef __cplusplus
}
#endif
