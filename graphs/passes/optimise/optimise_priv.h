/* optimise_priv.h -- what the passes of the optimiser share. See optimise.h. */
#ifndef MPL_OPTIMISE_PRIV_H
#define MPL_OPTIMISE_PRIV_H

#include "graphs/ops/ops_priv.h"
#include "graphs/passes/optimise/optimise.h"

enum { MPL_EDIT_IN = 8, MPL_EDIT_ATTRS = 4, MPL_EDIT_FRESH = 2 };

/* Operand of an edit: its new constant number k. */
#define MPL_FRESH(k) (MPL_NONE - 1 - (k))

typedef enum mpl_edit_kind {
    MPL_EDIT_NONE,
    MPL_EDIT_ALIAS,    /* output 0 is in[0]; not of an output of the graph */
    MPL_EDIT_TWIN,     /* outputs are those of `from`, an earlier operation */
    MPL_EDIT_REPLACE,  /* output 0 is made by another kind, with `attr` added */
    MPL_EDIT_CONSTANT, /* output 0 is fresh[0] */
    MPL_EDIT_FOLD,     /* the operation is computed, where that is cheap */
} mpl_edit_kind;

typedef struct mpl_fresh {
    mpl_type type;
    mpl_shape shape;
    void *data; /* owned */
    bool splat;
} mpl_fresh;

/* What becomes of one operation. Values are those of the graph as the pass finds it. */
typedef struct mpl_edit {
    mpl_edit_kind kind;
    mpl_op_kind op_kind;
    mpl_op from; /* MPL_NONE: no attributes are taken over */
    uint32_t n_in, n_attr;
    mpl_value in[MPL_EDIT_IN];
    mpl_attr attr[MPL_EDIT_ATTRS]; /* may point to ints and number, the edit stays where it is */
    int64_t ints[MPL_MAX_RANK];
    double number;
    mpl_fresh fresh[MPL_EDIT_FRESH];
} mpl_edit;

/* A pass at work on a finished graph. */
typedef struct mpl_match {
    mpl_ctx *ctx;
    const mpl_graph *g;
    bool unsafe;
    const mpl_weight_source *weights; /* NULL: none */
    mpl_op *slot;      /* [n_slots] of cse: operations by hash, all MPL_NONE at first */
    uint32_t n_slots;  /* a power of two, more than twice the operations */
    mpl_value *number; /* [n_values] of cse: the first value that is the same */
} mpl_match;

/* Looks at operation `op` of block 0, in order, and may fill the edit, which is zero. */
#define PASS(name, tolerance, about)                                                               \
    mpl_status mpl_match_##name(mpl_match *m, mpl_op op, mpl_edit *edit);
#include "graphs/passes/passes.def"
#undef PASS

/* ---- questions about a graph ---- */

static inline uint32_t mpl_n_uses(const mpl_graph *g, mpl_value v)
{
    return g->value_use_begin[v + 1] - g->value_use_begin[v];
}

/* v is a constant all of whose elements are the same; *x: that. */
bool mpl_is_uniform(const mpl_graph *g, mpl_value v, double *x);

/* The operation of that kind that makes v for one reader only, no output; MPL_NONE. */
mpl_op mpl_only_for(const mpl_graph *g, mpl_value v, mpl_op_kind kind);

/* The output of `op` is x, if x is of its form; else nothing is noted. */
void mpl_edit_alias(const mpl_graph *g, mpl_op op, mpl_value x, mpl_edit *edit);

/* All elements of the output of `op` are 0. */
mpl_status mpl_edit_zeros(mpl_match *m, mpl_op op, mpl_edit *edit);

/* edit->fresh[k], without contents: `data` is zero. MPL_EMEM. */
mpl_status mpl_edit_fresh(mpl_ctx *ctx, mpl_type type, const mpl_shape *shape, bool splat,
                          mpl_fresh *fresh);

#endif
