/* optimise_priv.h -- shared by the passes of the optimiser. See optimise.h. */
#pragma once

#include "graphs/ops/ops_priv.h"
#include "graphs/passes/optimise/optimise.h"

enum { MPL_EDIT_IN = 9, MPL_EDIT_ATTRS = 5, MPL_EDIT_FRESH = 2 };

/* Operand of an edit: its new constant number k. */
#define MPL_FRESH(k) (MPL_NONE - 1 - (k))

typedef enum mpl_edit_kind {
    MPL_EDIT_NONE,
    MPL_EDIT_ALIAS,    /* output 0 is in[0]; not for an output of the graph */
    MPL_EDIT_TWIN,     /* outputs are those of `from`, an earlier operation */
    MPL_EDIT_REPLACE,  /* another kind makes output 0, with `attr` added */
    MPL_EDIT_CONSTANT, /* output 0 is fresh[0] */
    MPL_EDIT_FOLD,     /* the operation is computed, if that is cheap */
} mpl_edit_kind;

typedef struct mpl_fresh {
    mpl_type type;
    mpl_shape shape;
    void *data; /* owned */
    bool splat;
} mpl_fresh;

/* The edit of one operation. Values are those of the graph that the pass sees. */
typedef struct mpl_edit {
    mpl_edit_kind kind;
    mpl_op_kind op_kind;
    mpl_op from; /* takes over its attributes; MPL_NONE: none */
    uint32_t n_in, n_attr;
    mpl_value in[MPL_EDIT_IN];
    mpl_attr attr[MPL_EDIT_ATTRS]; /* may point to ints and number, since the edit never moves */
    int64_t ints[MPL_MAX_RANK];
    double number;
    mpl_fresh fresh[MPL_EDIT_FRESH];
} mpl_edit;

/* A pass running on a finished graph. */
typedef struct mpl_match {
    mpl_ctx *ctx;
    const mpl_graph *g;
    bool unsafe;
    const mpl_weight_source *weights; /* NULL: none */
    mpl_op *slot;                     /* [n_slots] cse: operations by hash, initially MPL_NONE */
    uint32_t n_slots;                 /* a power of two, more than twice the operations */
    mpl_value *number;                /* [n_values] cse: the first equal value */
} mpl_match;

/* Looks at operation `op` of block 0, in order, and may fill the edit, which is zero. */
#define PASS(name, tolerance, about)                                                               \
    mpl_status mpl_match_##name(mpl_match *m, mpl_op op, mpl_edit *edit);
#include "graphs/passes/passes.def"
#undef PASS

/* ---- queries ---- */

static inline uint32_t mpl_n_uses(const mpl_graph *g, mpl_value v)
{
    return g->value_use_begin[v + 1] - g->value_use_begin[v];
}

/* Whether v is a constant with equal elements; *x: their value. */
bool mpl_is_uniform(const mpl_graph *g, mpl_value v, double *x);

/* The operation of that kind that makes v, if v has one reader and is no graph output; else
 * MPL_NONE. */
mpl_op mpl_only_for(const mpl_graph *g, mpl_value v, mpl_op_kind kind);

/* Whether the operation is a mean of all spatial dims, which stay as ones. */
bool mpl_is_spatial_mean(const mpl_graph *g, mpl_op op);

/* Makes x the output of `op` if x has its form; else notes nothing. */
void mpl_edit_alias(const mpl_graph *g, mpl_op op, mpl_value x, mpl_edit *edit);

/* Makes all elements of the output of `op` 0. */
mpl_status mpl_edit_zeros(mpl_match *match, mpl_op op, mpl_edit *edit);

/* Sets up edit->fresh[k] with zero `data`. MPL_EMEM. */
mpl_status mpl_edit_fresh(mpl_ctx *ctx, mpl_type type, const mpl_shape *shape, bool splat,
                          mpl_fresh *fresh);
