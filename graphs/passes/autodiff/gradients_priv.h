/* gradients_priv.h -- what a gradient rule is given, and what it may do. See autodiff.h.
 *
 * A rule looks at operation d->op of the old graph, adds operations to the new one, and gives each
 * input that it `wants` its part of the gradient, once. Failures stick in d->st; afterwards every
 * function here does nothing and returns MPL_NONE. */
#ifndef MPL_GRADIENTS_PRIV_H
#define MPL_GRADIENTS_PRIV_H

#include "graphs/ir/strided.h"
#include "graphs/passes/autodiff/autodiff.h"

/* Elements start, start + step, .. of each axis, as many as shape says. */
typedef struct mpl_grad_box {
    mpl_shape shape;
    int64_t start[MPL_MAX_RANK], step[MPL_MAX_RANK];
} mpl_grad_box;

typedef struct mpl_grad_piece {
    mpl_value of, part; /* of the old graph, of the new one */
    mpl_grad_box box;
} mpl_grad_piece;

typedef struct mpl_grad {
    mpl_ctx *ctx;
    const mpl_graph *g; /* what is differentiated */
    const mpl_autodiff_options *options;
    mpl_graph *to;
    mpl_status st;
    mpl_op op;         /* at hand */
    uint32_t n_helper; /* values that the rule made for its own use */
    mpl_value *now;    /* [n_values] what a value of g is in `to` */
    mpl_op *op_now;    /* [n_ops] likewise */
    uint8_t *varies;   /* [n_values] it depends on a weight that is trained */
    uint8_t *leads;    /* [n_ops] the loss depends on it */
    uint32_t *slots;   /* [n_values] operands of leading operations that it is, if it varies */
    uint32_t *waits;   /* [n_values] those of them that have not given their part of the gradient */
    uint32_t *n_parts; /* [n_values] parts given */
    uint32_t *last;    /* [n_values] the last part: into part_*; MPL_NONE */
    mpl_value *whole;  /* [n_values] the gradient, once it is whole */
    uint32_t n_all_parts;
    size_t value_cap, prev_cap;
    mpl_value *part_value;
    uint32_t *part_prev;
    uint32_t n_pieces; /* given and not yet part of a whole gradient */
    size_t piece_cap;
    mpl_grad_piece *piece;
    uint32_t block;   /* the block of g at hand */
    mpl_value *tape;  /* [n_values] a carried parameter's rows, one a round */
    mpl_value *moved; /* [n_values] running statistics as moved so far */
    mpl_value *count; /* [n_ops] of a loop that may end early: how many rounds it had; MPL_NONE */
    mpl_value step, step_next; /* the number of the run; MPL_NONE: nobody asks for it */
} mpl_grad;

typedef void mpl_grad_rule(mpl_grad *d);
extern mpl_grad_rule *const mpl_grad_rules[]; /* NULL: none */

/* gradients.c, grad_index.c: mpl_grad_of_<rule>. */
#define GRADIENT(op, rule) mpl_grad_rule mpl_grad_of_##rule;
#include "graphs/ir/each_op.h"

bool mpl_grad_wants(const mpl_grad *d, uint32_t i); /* input i gets a part */
mpl_value mpl_grad_in(mpl_grad *d, uint32_t i);     /* in the new graph; MPL_NONE: left out */
mpl_value mpl_grad_out(mpl_grad *d, uint32_t i);    /* in the new graph */
mpl_value mpl_grad_dy(mpl_grad *d, uint32_t i);     /* zeros where the loss does not depend on it */
/* of the old graph: it stays where it is */
const mpl_shape *mpl_grad_in_shape(const mpl_grad *d, uint32_t i);
const mpl_shape *mpl_grad_out_shape(const mpl_grad *d, uint32_t i); /* likewise */

/* One output, for the rule's own use. */
mpl_value mpl_grad_helper(mpl_grad *d, mpl_op_kind kind, uint32_t n_in, const mpl_value *in,
                          uint32_t n_attr, const mpl_attr *attr);
/* One output, given to input i. */
void mpl_grad_make(mpl_grad *d, uint32_t i, mpl_op_kind kind, uint32_t n_in, const mpl_value *in,
                   uint32_t n_attr, const mpl_attr *attr);
/* n outputs for inputs target[]; MPL_NONE: left out, or dropped if its bit is `needed`. */
void mpl_grad_make_all(mpl_grad *d, mpl_op_kind kind, uint32_t n_in, const mpl_value *in,
                       uint32_t n_attr, const mpl_attr *attr, uint32_t n, const uint32_t *target,
                       uint32_t needed);
void mpl_grad_give(mpl_grad *d, uint32_t i, mpl_value part);
/* The same, summed over the axes along which input i was repeated. */
void mpl_grad_give_summed(mpl_grad *d, uint32_t i, mpl_value part);
/* A part for the elements of a box alone; what is not in any part is 0. */
void mpl_grad_give_piece(mpl_grad *d, uint32_t i, mpl_value part, const mpl_grad_box *box);
/* The gradient of v of the old graph: its whole parts' sum (or MPL_NONE) and its pieces. */
mpl_value mpl_grad_join(mpl_grad *d, mpl_value v, mpl_value whole);
/* One output, on the way to the gradient of v. */
mpl_value mpl_grad_step(mpl_grad *d, mpl_value v, mpl_op_kind kind, uint32_t n_in,
                        const mpl_value *in, uint32_t n_attr, const mpl_attr *attr);
mpl_value mpl_grad_zero(mpl_grad *d, mpl_type type); /* of no dims */
/* A constant of input 0's type. */
mpl_value mpl_grad_number(mpl_grad *d, double number);
void mpl_grad_fail(mpl_grad *d, const char *why);
/* v of the old graph as it is in the new one; within blocks it is made there and then. */
mpl_value mpl_grad_new_value(mpl_grad *d, mpl_value v);
/* A constant of the new graph, all of whose elements are `number`. */
mpl_value mpl_grad_constant(mpl_grad *d, const char *base, mpl_type type, const mpl_shape *shape,
                            double number);
/* An operation of the new graph with n outputs of these names, out[n]. */
void mpl_grad_add_op(mpl_grad *d, mpl_op_kind kind, uint32_t n_in, const mpl_value *in,
                     uint32_t n_attr, const mpl_attr *attr, uint32_t n, const char *const *name,
                     mpl_value *out);
/* "v.grad", with a number behind it where several parts will be summed. */
const char *mpl_grad_part_name(const mpl_grad *d, mpl_value v, char *text);
/* Whether the operation has blocks. */
bool mpl_grad_owns(const mpl_graph *g, mpl_op op);

#endif
