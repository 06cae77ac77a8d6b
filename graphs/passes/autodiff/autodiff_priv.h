/* autodiff_priv.h -- shared by autodiff.c, autodiff_blocks.c and autodiff_back.c. */
#pragma once

#include "graphs/build/graph_priv.h"
#include "graphs/passes/autodiff/gradients_priv.h"

enum { MPL_GRAD_NAME = 256 };

/* ---- autodiff.c */

/* Makes a new name: `base`, `suffix`, `number` unless MPL_NONE. text[MPL_GRAD_NAME]. */
const char *mpl_grad_fresh(const mpl_grad *grad, char *text, const char *base, const char *suffix,
                           uint32_t number);
/* Whether a batch norm reads v as mean or variance: it is kept, not trained. */
bool mpl_grad_is_statistic(const mpl_graph *g, mpl_value v);
/* Name of a copy; the first copy keeps the name. */
const char *mpl_grad_copy_name(const mpl_grad *grad, char *text, const char *base);
/* Adds a part of the gradient of v, a value of the old graph; sums all parts once they exist. */
void mpl_grad_part(mpl_grad *grad, mpl_value v, mpl_value part);
mpl_status mpl_grad_complete(mpl_grad *grad, mpl_value v);
/* Copies an operation without blocks, forward; differentiates any operation, backward. */
mpl_status mpl_grad_copy(mpl_grad *grad, mpl_op op);
mpl_status mpl_grad_back(mpl_grad *grad, mpl_op op);

/* ---- grad_common.c */

/* Recomputes v, of the current block or an enclosing one, if it does not exist yet. */
mpl_status mpl_grad_now(mpl_grad *grad, mpl_value v);

/* ---- autodiff_blocks.c */

/* Outside values that the blocks of `op` read, ascending; varying: only those that vary. */
mpl_status mpl_grad_captured(mpl_grad *grad, mpl_op op, bool varying, uint32_t *n,
                             mpl_value **list);
/* Marks what varies in and after a loop or case; returns whether anything is new. */
bool mpl_grad_vary_control(mpl_grad *grad, mpl_op op);
/* Counts the operand slots of leading operations in block b, and finds further leading
 * operations. */
mpl_status mpl_grad_count_slots(mpl_grad *grad, uint32_t b);
/* Copies a loop or case. tape: a loop also returns what each round began with, as rows. */
mpl_status mpl_grad_copy_control(mpl_grad *grad, mpl_op op, bool tape);

/* What the backward pass adds to the new graph; as in gradients_priv.h, a failure stays in d->st.
 */

typedef struct mpl_grad_list { /* of values, flags or blocks */
    mpl_value *item;
    uint32_t n;
    size_t room;
} mpl_grad_list;
void mpl_grad_push(mpl_grad *grad, mpl_grad_list *list, mpl_value v);

/* A new name of a block. text[MPL_GRAD_NAME]. */
const char *mpl_grad_fresh_block(const mpl_grad *grad, char *text, const char *base,
                                 const char *suffix);
/* A scalar i64. */
mpl_value mpl_grad_whole_number(mpl_grad *grad, int64_t n);
mpl_value mpl_grad_add_two(mpl_grad *grad, mpl_op_kind kind, const char *base, const char *suffix,
                           mpl_value a, mpl_value b, uint32_t n_attr, const mpl_attr *attr);
/* Parameters of the open block; suffix "": the copy of one of the old graph. */
mpl_value mpl_grad_add_param(mpl_grad *grad, const char *base, const char *suffix, mpl_type type,
                             const mpl_shape *shape);
mpl_value mpl_grad_param_like(mpl_grad *grad, const char *suffix, mpl_value v);

static inline bool mpl_grad_varies(const mpl_grad *grad, mpl_value v)
{
    return v != MPL_NONE && grad->varies[v];
}

static inline bool mpl_grad_is_read(const mpl_graph *g, mpl_value v)
{
    return g->value_use_begin[v] < g->value_use_begin[v + 1] && g->value_bytes[v] > 0;
}

/* ---- autodiff_back.c */

/* Adds the backward loop or case. */
mpl_status mpl_grad_back_control(mpl_grad *grad, mpl_op op);
