/* cpu_priv.h -- how the cpu backend asks oneDNN for an operation; shared by the files cpu*.c. */
#ifndef MPL_CPU_PRIV_H
#define MPL_CPU_PRIV_H

#include "graphs/ir/layout.h"
#include "graphs/ops/matrix/conv.h"
#include "runtime/backend.h"

#include <dnnl.h>

typedef enum mpl_cpu_from {
    MPL_FROM_IN,
    MPL_FROM_OUT,
    MPL_FROM_WORKSPACE,
    MPL_FROM_PACKED
} mpl_cpu_from;

/* One argument of a primitive: oneDNN's name for it, its layout, and where its bytes lie. */
typedef struct mpl_cpu_arg {
    int name; /* DNNL_ARG_* */
    dnnl_memory_desc_t md;
    mpl_cpu_from from;
    uint32_t index; /* of the input or output */
} mpl_cpu_arg;

/* An operation that is becoming a primitive. */
typedef struct mpl_cpu_recipe {
    const mpl_graph *g;
    mpl_op op;
    uint32_t n_in, n_out;
    const mpl_shape **in;         /* [n_in] NULL: left out */
    const mpl_shape **out;        /* [n_out] */
    const int64_t *const *stride; /* [n_in + n_out] of prepare_strided; NULL: all contiguous */
    mpl_shape *image; /* [n_in + n_out] dims of one image if run image by image; else NULL */
    dnnl_engine_t engine;
    dnnl_primitive_attr_t attr; /* scratchpads are the caller's */
    uint64_t most_workspace;    /* larger scratchpads are not taken [byte] */
    dnnl_primitive_desc_t pd;   /* NULL: oneDNN has only its own reference loops */
    uint32_t stage; /* number of the primitive, if the operation takes several in turn */
    mpl_layout layout;
    bool last;                               /* images are channels-last (graphs/ir/layout.h) */
    bool blocked;                            /* or lie in blocks of channels */
    dnnl_memory_desc_t packed_from;          /* original layout of operand MPL_FROM_PACKED */
    bool more;                               /* another stage follows */
    void (*begin)(const mpl_op_call *call);  /* runs before the primitive, or NULL */
    void (*finish)(const mpl_op_call *call); /* runs after the primitive, or NULL */
    bool drops_nan;            /* loses or makes NaNs of input 0, its only one; our loops do not */
    bool drops_infinity;       /* and makes its negative infinities finite */
    mpl_activation activation; /* applied to output 0 after the primitive; see mpl_chain_activate */
    uint32_t n_args;
    mpl_cpu_arg *arg;        /* [n_in + n_out + 2] */
    dnnl_memory_desc_t *mds; /* [n_in] scratch descriptors for operations of many inputs */
} mpl_cpu_recipe;

/* Fills in pd and args if oneDNN computes the operation, or its next stage, on plain layouts. All
 * operands are f32 and have elements. */
typedef void mpl_cpu_describer(mpl_cpu_recipe *r);
/* cpu_ops.c: the describer of an operator; NULL: none here. */
mpl_cpu_describer *mpl_cpu_forward(mpl_op_kind kind);
/* cpu_grad.c: the same for gradients and batch norm in training. */
mpl_cpu_describer *mpl_cpu_gradient(mpl_op_kind kind);

/* ---- cpu_primitive.c ---- */

/* The primitives of an operation, which run in turn. */
typedef struct mpl_cpu_primitive mpl_cpu_primitive;

/* oneDNN's codes as ours; what: "preparing", .. */
mpl_status mpl_cpu_status(mpl_device *dev, dnnl_status_t code, const char *what, const char *name);
/* All primitives of an operation. If oneDNN lacks one, none is made and *out is unchanged. */
mpl_status mpl_cpu_primitives_new(mpl_device *dev, mpl_cpu_recipe *recipe, mpl_cpu_primitive **out,
                                  uint64_t *workspace_bytes, const char **how);
void mpl_cpu_primitives_free(mpl_device *dev, mpl_cpu_primitive *first);
/* Bytes of reordered weights. */
uint64_t mpl_cpu_primitives_packed_bytes(const mpl_cpu_primitive *first);
mpl_status mpl_cpu_primitives_run(mpl_device *dev, dnnl_stream_t stream, mpl_cpu_primitive *first,
                                  const mpl_op_call *call);

/* The layout of the operation's images from now on. */
void mpl_cpu_lay(mpl_cpu_recipe *self, mpl_layout layout);

/* ---- cpu_pieces.c, and of cpu_ops.c the matrices ---- */

/* Windows of convolutions and pools. */
typedef struct mpl_cpu_window {
    uint32_t n;                                               /* spatial dims */
    dnnl_dims_t kernel, stride, dilation, pad_begin, pad_end; /* dilation 0 is dense */
} mpl_cpu_window;

/* Row-major f32; no dims: one element. */
dnnl_memory_desc_t mpl_cpu_plain(uint32_t rank, const int64_t *dim);
dnnl_memory_desc_t mpl_cpu_plain_shape(const mpl_shape *shape);
dnnl_memory_desc_t mpl_cpu_matrix(const mpl_shape *shape, bool turned);
dnnl_memory_desc_t mpl_cpu_strided(uint32_t rank, const int64_t *dim, const int64_t *stride);
/* An image with its channels in blocks; in the operation's layout. */
dnnl_memory_desc_t mpl_cpu_in_blocks(const int64_t *dim);
dnnl_memory_desc_t mpl_cpu_image(const mpl_cpu_recipe *self, const mpl_shape *shape);
int64_t mpl_cpu_int(const mpl_cpu_recipe *self, mpl_attr_key key, int64_t otherwise);
/* Filters with a separate dim for groups. */
dnnl_memory_desc_t mpl_cpu_filter(const mpl_cpu_recipe *self, const mpl_shape *shape);
void mpl_cpu_read_window(const mpl_cpu_recipe *self, const int64_t *kernel, mpl_cpu_window *w);
/* Sets the end pads to the reach of a pool's last window. False: oneDNN would count others. */
bool mpl_cpu_fit_pool(const mpl_cpu_recipe *self, const mpl_shape *x, const mpl_shape *y,
                      mpl_cpu_window *w);
void mpl_cpu_arg_add(mpl_cpu_recipe *self, int name, const dnnl_memory_desc_t *md,
                     mpl_cpu_from from, uint32_t index);
/* The first non-reference implementation, or the one that attribute `way` asks for, whose
 * scratchpad is within most_workspace. hint: forward primitive of a backward one, or NULL. */
void mpl_cpu_choose(mpl_cpu_recipe *self, const_dnnl_op_desc_t desc,
                    const_dnnl_primitive_desc_t hint);
/* Describes an operation from its first input to its first output. */
void mpl_cpu_choose_one_to_one(mpl_cpu_recipe *self, const_dnnl_op_desc_t desc,
                               const dnnl_memory_desc_t *src, const dnnl_memory_desc_t *dst);
/* A convolution or product with its addend and activation. oneDNN's own activations lose NaNs, so
 * ours run after it. */
void mpl_cpu_choose_fused(mpl_cpu_recipe *self, const_dnnl_op_desc_t desc);
/* first: index of the source input; weights and bias (or NULL) follow it. */
void mpl_cpu_weighted_args(mpl_cpu_recipe *self, uint32_t first, const dnnl_memory_desc_t *src,
                           const dnnl_memory_desc_t *weights, const dnnl_memory_desc_t *bias,
                           const dnnl_memory_desc_t *dst);
void mpl_cpu_product(mpl_cpu_recipe *self, const dnnl_memory_desc_t *a, uint32_t a_in,
                     const dnnl_memory_desc_t *b, uint32_t b_in, const dnnl_memory_desc_t *y,
                     uint32_t y_out);

/* ---- cpu_windows.c, for cpu_ops.c's table ---- */

mpl_cpu_describer mpl_cpu_conv, mpl_cpu_conv_transpose, mpl_cpu_pool, mpl_cpu_global_pool;

#endif
