/* cpu_priv.h -- how the cpu backend asks oneDNN for an operation; shared by cpu.c and cpu_ops.c. */
#ifndef MPL_CPU_PRIV_H
#define MPL_CPU_PRIV_H

#include "graphs/graph.h"

#include <dnnl.h>

typedef enum mpl_cpu_from { MPL_FROM_IN, MPL_FROM_OUT, MPL_FROM_WORKSPACE } mpl_cpu_from;

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
    const mpl_shape **in;  /* [n_in] NULL: left out */
    const mpl_shape **out; /* [n_out] */
    dnnl_engine_t engine;
    dnnl_primitive_attr_t attr; /* scratchpads are the caller's */
    dnnl_primitive_desc_t pd;   /* NULL: oneDNN has nothing better than its own reference loops */
    uint32_t n_args;
    mpl_cpu_arg *arg;        /* [n_in + n_out + 1] */
    dnnl_memory_desc_t *mds; /* [n_in] scratch of descriptors for operations of many inputs */
} mpl_cpu_recipe;

/* Fills pd and args where oneDNN computes the operation, on plain layouts; all operands are f32 and have
 * elements. */
void mpl_cpu_describe(mpl_cpu_recipe *r);

#endif
