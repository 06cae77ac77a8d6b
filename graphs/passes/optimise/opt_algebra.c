/* opt_algebra.c -- passes for sums, products and quotients with 0 and 1. See optimise.h. */
#include "graphs/passes/optimise/optimise_priv.h"

#include <math.h>

/* Whether input i of `op` is a constant with all elements x. */
static bool is_all(const mpl_graph *g, mpl_op op, uint32_t i, double x)
{
    double all;

    return mpl_is_uniform(g, mpl_op_input(g, op, i), &all) && all == x;
}

/* Whether v has one element. */
static bool is_scalar(const mpl_graph *g, mpl_value v)
{
    uint64_t n;

    return mpl_shape_count(&g->value_shape[v], &n) && n == 1;
}

/* For floats, x + 0 is 0 where x is -0; x + -0 and x - 0 are x for every x. */
mpl_status mpl_match_add_zero(mpl_match *match, mpl_op op, mpl_edit *edit)
{
    const mpl_graph *g = match->g;
    bool sum = g->op_kind[op] == MPL_OP_add;

    if (!sum && g->op_kind[op] != MPL_OP_sub)
        return MPL_OK;
    for (uint32_t i = sum ? 0 : 1; i < 2; i++) {
        double zero;

        if (edit->kind != MPL_EDIT_NONE || !is_all(g, op, i, 0))
            continue;
        mpl_is_uniform(g, mpl_op_input(g, op, i), &zero);
        if (match->unsafe || !mpl_is_float(g, mpl_op_input(g, op, i)) ||
            (signbit(zero) != 0) == sum)
            mpl_edit_alias(g, op, mpl_op_input(g, op, 1 - i), edit);
    }
    return MPL_OK;
}

mpl_status mpl_match_mul_one(mpl_match *match, mpl_op op, mpl_edit *edit)
{
    for (uint32_t i = 0;
         i < 2 && match->g->op_kind[op] == MPL_OP_mul && edit->kind == MPL_EDIT_NONE; i++)
        if (is_all(match->g, op, i, 1))
            mpl_edit_alias(match->g, op, mpl_op_input(match->g, op, 1 - i), edit);
    return MPL_OK;
}

mpl_status mpl_match_div_one(mpl_match *match, mpl_op op, mpl_edit *edit)
{
    if (match->g->op_kind[op] == MPL_OP_div && is_all(match->g, op, 1, 1))
        mpl_edit_alias(match->g, op, mpl_op_input(match->g, op, 0), edit);
    return MPL_OK;
}

/* Whether a product or quotient of this operation may become 0. */
static bool may_be_zero(const mpl_match *match, mpl_op op)
{
    return match->unsafe || !mpl_is_float(match->g, mpl_op_output(match->g, op, 0));
}

mpl_status mpl_match_mul_zero(mpl_match *match, mpl_op op, mpl_edit *edit)
{
    if (match->g->op_kind[op] == MPL_OP_mul && may_be_zero(match, op) &&
        (is_all(match->g, op, 0, 0) || is_all(match->g, op, 1, 0)))
        return mpl_edit_zeros(match, op, edit);
    return MPL_OK;
}

/* For integers, 0 / 0 is 0 here. */
mpl_status mpl_match_zero_div(mpl_match *match, mpl_op op, mpl_edit *edit)
{
    if (match->g->op_kind[op] == MPL_OP_div && may_be_zero(match, op) && is_all(match->g, op, 0, 0))
        return mpl_edit_zeros(match, op, edit);
    return MPL_OK;
}

/* Index of a one-element input of a product whose other input is a tensor of x only; MPL_NONE. */
static uint32_t scalar_beside(const mpl_graph *g, mpl_op op, double x)
{
    for (uint32_t i = 0; i < 2 && g->op_kind[op] == MPL_OP_mul; i++)
        if (is_scalar(g, mpl_op_input(g, op, i)) && !is_scalar(g, mpl_op_input(g, op, 1 - i)) &&
            is_all(g, op, 1 - i, x))
            return i;
    return MPL_NONE;
}

mpl_status mpl_match_scalar_zeros(mpl_match *match, mpl_op op, mpl_edit *edit)
{
    if (may_be_zero(match, op) && scalar_beside(match->g, op, 0) != MPL_NONE)
        return mpl_edit_zeros(match, op, edit);
    return MPL_OK;
}

mpl_status mpl_match_scalar_ones(mpl_match *match, mpl_op op, mpl_edit *edit)
{
    const mpl_shape *out = &match->g->value_shape[mpl_op_output(match->g, op, 0)];
    uint32_t i = scalar_beside(match->g, op, 1);

    if (i == MPL_NONE)
        return MPL_OK;
    *edit = (mpl_edit){.kind = MPL_EDIT_REPLACE,
                       .op_kind = MPL_OP_expand,
                       .from = MPL_NONE,
                       .n_in = 1,
                       .in = {mpl_op_input(match->g, op, i)},
                       .n_attr = 1};
    memcpy(edit->ints, out->dim, sizeof edit->ints);
    edit->attr[0] = MPL_INTS(shape, out->rank, edit->ints);
    return MPL_OK;
}
