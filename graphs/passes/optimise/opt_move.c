/* opt_move.c -- removes operations that only pass elements on: copies, views, expansions,
 * reductions over axes of length 1. See optimise.h. */
#include "graphs/passes/optimise/optimise_priv.h"

mpl_status mpl_match_identity(mpl_match *match, mpl_op op, mpl_edit *edit)
{
    const mpl_graph *g = match->g;
    mpl_value mask = mpl_op_output(g, op, 1);

    if (g->op_kind[op] == MPL_OP_identity ||
        (g->op_kind[op] == MPL_OP_dropout && (mask == MPL_NONE || mpl_n_uses(g, mask) == 0)))
        mpl_edit_alias(g, op, mpl_op_input(g, op, 0), edit);
    return MPL_OK;
}

/* Whether an integer attribute is 0, 1, 2, .. */
static bool counts_up(const mpl_graph *g, mpl_op op, mpl_attr_key key)
{
    uint32_t n;
    const int64_t *item = mpl_attr_ints(g, op, key, &n);

    for (uint32_t i = 0; i < n; i++)
        if (item[i] != (int64_t)i)
            return false;
    return n > 0;
}

static bool all_positive(const mpl_graph *g, mpl_op op, mpl_attr_key key)
{
    uint32_t n;
    const int64_t *item = mpl_attr_ints(g, op, key, &n);

    for (uint32_t i = 0; i < n; i++)
        if (item[i] <= 0)
            return false;
    return true;
}

/* Whether the operation copies input 0 unchanged, provided that its output has the same form. */
static bool copies_alike(const mpl_graph *g, mpl_op op)
{
    switch (g->op_kind[op]) {
    case MPL_OP_cast:
    case MPL_OP_bit_cast:
    case MPL_OP_reshape:
    case MPL_OP_flatten:
    case MPL_OP_squeeze:
    case MPL_OP_unsqueeze:
    case MPL_OP_expand:
    case MPL_OP_tile:
        return true;
    case MPL_OP_transpose:
        return counts_up(g, op, MPL_ATTR_perm);
    case MPL_OP_slice:
        return all_positive(g, op, MPL_ATTR_steps);
    case MPL_OP_concat:
    case MPL_OP_sum:
    case MPL_OP_min:
    case MPL_OP_max:
    case MPL_OP_mean:
        return mpl_op_n_in(g, op) == 1;
    case MPL_OP_split:
        return g->op_out_begin[op + 1] - g->op_out_begin[op] == 1;
    default:
        return false;
    }
}

mpl_status mpl_match_copy(mpl_match *match, mpl_op op, mpl_edit *edit)
{
    if (copies_alike(match->g, op))
        mpl_edit_alias(match->g, op, mpl_op_input(match->g, op, 0), edit);
    return MPL_OK;
}

/* The operand of an expand, or of a tile of axes of length 1, that makes v; MPL_NONE. */
static mpl_value before_expand(const mpl_graph *g, mpl_value v)
{
    mpl_op op = v != MPL_NONE ? g->value_op[v] : MPL_NONE;
    const mpl_shape *in, *out;

    if (op == MPL_NONE || g->op_block[op] != 0 ||
        (g->op_kind[op] != MPL_OP_expand && g->op_kind[op] != MPL_OP_tile))
        return MPL_NONE;
    in = &g->value_shape[mpl_op_input(g, op, 0)];
    out = &g->value_shape[v];
    for (uint32_t i = 0; i < in->rank && g->op_kind[op] == MPL_OP_tile; i++)
        if (in->dim[i] != 1 && in->dim[i] != out->dim[i])
            return MPL_NONE;
    return mpl_op_input(g, op, 0);
}

/* Whether the operands broadcast to the dims of the output. */
static bool still_fits(mpl_ctx *ctx, const mpl_graph *g, mpl_op op, const mpl_value *in,
                       uint32_t n_in)
{
    mpl_shape shape = g->value_shape[in[0]];

    for (uint32_t i = 1; i < n_in; i++)
        if (mpl_broadcast(ctx, &shape, &g->value_shape[in[i]], &shape) != MPL_OK)
            return false;
    return mpl_shape_equal(&shape, &g->value_shape[mpl_op_output(g, op, 0)]);
}

mpl_status mpl_match_broadcast(mpl_match *match, mpl_op op, mpl_edit *edit)
{
    const mpl_graph *g = match->g;
    mpl_op_kind kind = (mpl_op_kind)g->op_kind[op];
    uint32_t n_in = mpl_op_n_in(g, op);

    if ((mpl_op_table[kind].traits & MPL_ELEMENTWISE) == 0 || kind == MPL_OP_clip || n_in < 2 ||
        n_in > MPL_EDIT_IN)
        return MPL_OK;
    for (uint32_t i = 0; i < n_in; i++)
        edit->in[i] = mpl_op_input(g, op, i);
    for (uint32_t i = kind == MPL_OP_prelu ? 1 : 0; i < n_in; i++) { /* prelu: only the slope */
        mpl_value was = edit->in[i], x = before_expand(g, was);

        if (x == MPL_NONE)
            continue;
        edit->in[i] = x;
        if (still_fits(match->ctx, g, op, edit->in, n_in))
            edit->kind = MPL_EDIT_REPLACE;
        else
            edit->in[i] = was;
    }
    edit->op_kind = kind;
    edit->from = op;
    edit->n_in = n_in;
    return MPL_OK;
}

/* A sum begins with +0, so a sum of one -0 is +0. */
mpl_status mpl_match_reduce_one(mpl_match *match, mpl_op op, mpl_edit *edit)
{
    const mpl_graph *g = match->g;
    mpl_op_kind kind = (mpl_op_kind)g->op_kind[op];
    bool sums = kind == MPL_OP_reduce_sum || kind == MPL_OP_reduce_mean;
    mpl_value in = mpl_op_input(g, op, 0), out = mpl_op_output(g, op, 0);
    const mpl_shape *shape = &g->value_shape[out];

    if ((!sums && kind != MPL_OP_reduce_max && kind != MPL_OP_reduce_min &&
         kind != MPL_OP_reduce_prod) ||
        (sums && mpl_is_float(g, in) && !match->unsafe) ||
        g->value_bytes[out] != g->value_bytes[in] || g->value_bytes[in] == 0 ||
        g->value_type[in] != g->value_type[out])
        return MPL_OK;
    edit->kind = MPL_EDIT_REPLACE;
    edit->op_kind = MPL_OP_reshape;
    edit->n_in = 1;
    edit->in[0] = in;
    edit->n_attr = 1;
    memcpy(edit->ints, shape->dim, sizeof edit->ints);
    edit->attr[0] = (mpl_attr){MPL_ATTR_shape, shape->rank, edit->ints, NULL, NULL};
    return MPL_OK;
}
