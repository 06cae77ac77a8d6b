/* cpu_priv.h -- how the cpu backend asks oneDNN for an operation; shared by cpu.c and cpu_ops.c. */
#ifndef MPL_CPU_PRIV_H
#define MPL_CPU_PRIV_H

#include "graphs/graph.h"
#include "graphs/ops/matrix/conv.h"

#include <dnnl.h>

typedef enum mpl_cpu_from {
    MPL_FROM_IN,
    MPL_FROM_OUT,
    MPL_FROM_WORKSPACE,
    MPL_FROM_PACKED
} mpl_cpu_from;

/* One argument of a primitive: oneDNN's name for it, how it reads the bytes, and whose they are. */
typedef struct mpl_cpu_arg {
    int name; /* DNNL_ARG_* */
    dnnl_memory_desc_t md;
    mpl_cpu_from from;
    uint32_t index; /* of the input or output */
} mpl_cpu_arg;

/* An operation on its way to a primitive. */
typedef struct mpl_cpu_recipe {
    const mpl_graph *g;
    mpl_op op;
    uint32_t n_in, n_out;
    const mpl_shape **in;         /* [n_in] NULL: left out */
    const mpl_shape **out;        /* [n_out] */
    const int64_t *const *stride; /* [n_in + n_out] as prepare_strided has it; NULL: all lie in one
                                     piece */
    mpl_shape *image; /* [n_in + n_out] dims of one image, where the batch is done one by one; else
                         NULL */
    dnnl_engine_t engine;
    dnnl_primitive_attr_t attr; /* scratchpads are the caller's */
    dnnl_primitive_desc_t pd;   /* NULL: oneDNN has nothing better than its own reference loops */
    uint32_t stage; /* of an operation that takes several primitives, one after another: from 0 */
    bool last;      /* images have their channels last (graphs/ir/layout.h) */
    dnnl_memory_desc_t packed_from; /* of the operand MPL_FROM_PACKED, as it lies in the weights;
                                       reordered once */
    bool more;                      /* another stage follows */
    void (*begin)(const mpl_op_call *call);  /* what there is to do before the primitive; NULL:
                                                nothing */
    void (*finish)(const mpl_op_call *call); /* what is left to do after the primitive; NULL:
                                                nothing */
    bool drops_nan; /* the primitive loses what is a NaN, or makes one, in input 0, its only one:
                       our loops do not */
    mpl_activation activation; /* what is done to output 0 after the primitive; see
                                  mpl_chain_activate */
    uint32_t n_args;
    mpl_cpu_arg *arg;        /* [n_in + n_out + 2] */
    dnnl_memory_desc_t *mds; /* [n_in] scratch of descriptors for operations of many inputs */
} mpl_cpu_recipe;

/* Fills pd and args where oneDNN computes the operation, or its next stage, on plain layouts; all
 * operands are f32 and have elements. */
typedef void mpl_cpu_describer(mpl_cpu_recipe *r);
/* cpu_ops.c: what describes an operator; NULL: none here does. */
mpl_cpu_describer *mpl_cpu_forward(mpl_op_kind kind);
/* cpu_grad.c: the same for gradients and batch norm in training. */
mpl_cpu_describer *mpl_cpu_gradient(mpl_op_kind kind);

/* ---- cpu_ops.c, for cpu_grad.c ---- */

/* Windows of convolutions and pools. */
typedef struct mpl_cpu_window {
    uint32_t n;                                               /* spatial dims */
    dnnl_dims_t kernel, stride, dilation, pad_begin, pad_end; /* dilation counts the skipped: 0 is
                                                                 dense */
} mpl_cpu_window;

/* row-major f32; no dims: one element */
dnnl_memory_desc_t mpl_cpu_plain(uint32_t rank, const int64_t *dim);
dnnl_memory_desc_t mpl_cpu_plain_shape(const mpl_shape *s);
dnnl_memory_desc_t mpl_cpu_matrix(const mpl_shape *s, bool turned);
/* Filters with their groups apart. */
dnnl_memory_desc_t mpl_cpu_filter(const mpl_cpu_recipe *r, const mpl_shape *s);
void mpl_cpu_read_window(const mpl_cpu_recipe *r, const int64_t *kernel, mpl_cpu_window *w);
/* Sets the end pads to what a pool's last window reaches. False where oneDNN would count other
 * elements. */
bool mpl_cpu_fit_pool(const mpl_cpu_recipe *r, const mpl_shape *x, const mpl_shape *y,
                      mpl_cpu_window *w);
void mpl_cpu_arg_add(mpl_cpu_recipe *r, int name, const dnnl_memory_desc_t *md, mpl_cpu_from from,
                     uint32_t index);
/* The first implementation that is not a reference one; hint: the forward primitive of a backward
 * one, or NULL. */
void mpl_cpu_choose(mpl_cpu_recipe *r, const_dnnl_op_desc_t desc, const_dnnl_primitive_desc_t hint);
void mpl_cpu_product(mpl_cpu_recipe *r, const dnnl_memory_desc_t *a, uint32_t a_in,
                     const dnnl_memory_desc_t *b, uint32_t b_in, const dnnl_memory_desc_t *y,
                     uint32_t y_out);

#endif
