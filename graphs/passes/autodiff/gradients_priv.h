/* gradients_priv.h -- the interface of gradient rules. See autodiff.h.
 *
 * A rule looks at operation d->op of the old graph, adds operations to the new one, and gives each
 * input that it `wants` its part of the gradient, once. A failure stays in d->st; then every
 * function here does nothing and returns MPL_NONE. */
#pragma once

#include "graphs/ir/strided.h"
#include "graphs/passes/autodiff/autodiff.h"

/* Elements start, start + step, .. of each axis, as many as shape says. */
typedef struct mpl_grad_box {
    mpl_shape shape;
    int64_t start[MPL_MAX_RANK], step[MPL_MAX_RANK];
} mpl_grad_box;

typedef struct mpl_grad_piece {
    mpl_value of, part; /* of the old graph; of the new one */
    mpl_grad_box box;
} mpl_grad_piece;

typedef struct mpl_grad {
    mpl_ctx *ctx;
    const mpl_graph *g; /* the graph to differentiate */
    const mpl_autodiff_options *options;
    mpl_graph *to;
    mpl_status st;
    mpl_op op;         /* the current operation */
    uint32_t n_helper; /* values that the rule made as intermediate results */
    mpl_value *now;    /* [n_values] the value in `to` of a value of g */
    mpl_op *op_now;    /* [n_ops] likewise */
    uint8_t *varies;   /* [n_values] it depends on a trained weight */
    uint8_t *leads;    /* [n_ops] the loss depends on it */
    uint32_t *slots;   /* [n_values] uses as operand of leading operations, if it varies */
    uint32_t *waits;   /* [n_values] those of them that have given no part yet */
    uint32_t *n_parts; /* [n_values] parts given */
    uint32_t *last;    /* [n_values] the last part: into part_*; MPL_NONE */
    mpl_value *whole;  /* [n_values] the complete gradient */
    uint32_t n_all_parts;
    size_t value_cap, prev_cap;
    mpl_value *part_value;
    uint32_t *part_prev;
    uint32_t n_pieces; /* given and not yet in a complete gradient */
    size_t piece_cap;
    mpl_grad_piece *piece;
    uint32_t block;            /* the current block of g */
    mpl_value *tape;           /* [n_values] rows of a carried parameter, one a round */
    mpl_value *moved;          /* [n_values] running statistics, as moved so far */
    mpl_value *count;          /* [n_ops] number of rounds of a loop that may end early; MPL_NONE */
    mpl_value step, step_next; /* number of the run; MPL_NONE: not needed */
} mpl_grad;

typedef void mpl_grad_rule(mpl_grad *d);
extern mpl_grad_rule *const mpl_grad_rules[]; /* NULL: none */

/* gradients.c, grad_index.c, grad_layers.c, grad_words.c: mpl_grad_of_<rule>. */
#define GRADIENT(op, rule) mpl_grad_rule mpl_grad_of_##rule;
#include "graphs/ir/each_op.h"

mpl_grad_rule mpl_grad_of_words; /* of SLOPE */
mpl_grad_rule mpl_grad_of_normal;

bool mpl_grad_wants(const mpl_grad *grad, uint32_t i); /* input i varies and gets a part */
mpl_value mpl_grad_in(mpl_grad *grad, uint32_t i);     /* in the new graph; MPL_NONE: left out */
mpl_value mpl_grad_out(mpl_grad *grad, uint32_t i);    /* in the new graph */
mpl_value mpl_grad_dy(mpl_grad *grad, uint32_t i); /* zeros where the loss does not depend on it */
/* Shapes in the old graph; the pointers stay valid. */
const mpl_shape *mpl_grad_in_shape(const mpl_grad *grad, uint32_t i);
const mpl_shape *mpl_grad_out_shape(const mpl_grad *grad, uint32_t i);

/* Adds an operation with one output, an intermediate result of the rule. */
mpl_value mpl_grad_helper(mpl_grad *grad, mpl_op_kind kind, uint32_t n_in, const mpl_value *in,
                          uint32_t n_attr, const mpl_attr *attr);
mpl_value mpl_grad_two(mpl_grad *grad, mpl_op_kind kind, mpl_value a, mpl_value b);
/* v with other dims, if they are other. */
mpl_value mpl_grad_with_dims(mpl_grad *grad, mpl_value v, const mpl_shape *s);
/* Copies all attributes of the current operation into attr[MPL_GRAD_ATTRS], with room for two
 * more; returns their number. */
enum { MPL_GRAD_ATTRS = 24 };
uint32_t mpl_grad_attrs(const mpl_grad *grad, mpl_attr *attr);
/* Dims of input 0 of a reduction, with 1 for reduced ones. */
mpl_shape mpl_grad_kept_dims(const mpl_grad *grad);
/* As mpl_grad_helper; gives the output to input i. */
void mpl_grad_make(mpl_grad *grad, uint32_t i, mpl_op_kind kind, uint32_t n_in, const mpl_value *in,
                   uint32_t n_attr, const mpl_attr *attr);
/* The same with n outputs for inputs target[]. An output for MPL_NONE is left out or, if its bit is
 * in `needed`, made and dropped. */
void mpl_grad_make_all(mpl_grad *grad, mpl_op_kind kind, uint32_t n_in, const mpl_value *in,
                       uint32_t n_attr, const mpl_attr *attr, uint32_t n, const uint32_t *target,
                       uint32_t needed);
void mpl_grad_give(mpl_grad *grad, uint32_t i, mpl_value part);
/* The same, summed over the axes along which input i was broadcast. */
void mpl_grad_give_summed(mpl_grad *grad, uint32_t i, mpl_value part);
/* Gives a part for the elements of a box. Elements in no part are 0. */
void mpl_grad_give_piece(mpl_grad *grad, uint32_t i, mpl_value part, const mpl_grad_box *box);
/* The gradient of v of the old graph: the sum of its whole parts (or MPL_NONE) joined with its
 * pieces. */
mpl_value mpl_grad_join(mpl_grad *grad, mpl_value v, mpl_value whole);
/* Adds an operation with one output, an intermediate result of the gradient of v. */
mpl_value mpl_grad_step(mpl_grad *grad, mpl_value v, mpl_op_kind kind, uint32_t n_in,
                        const mpl_value *in, uint32_t n_attr, const mpl_attr *attr);
mpl_value mpl_grad_zero(mpl_grad *grad, mpl_type type); /* a scalar */
/* scalar */
mpl_value mpl_grad_number(mpl_grad *grad, double number);
void mpl_grad_fail(mpl_grad *grad, const char *why);
/* A constant of the new graph with all elements equal to `number`. */
mpl_value mpl_grad_constant(mpl_grad *grad, const char *base, mpl_type type, const mpl_shape *shape,
                            double number);
mpl_value mpl_grad_zeros(mpl_grad *grad, mpl_value like); /* as a value of the old graph */
/* "v.grad", with a number appended where several parts will be summed. */
const char *mpl_grad_part_name(const mpl_grad *grad, mpl_value v, char *text);
bool mpl_grad_owns(const mpl_graph *g, mpl_op op);
