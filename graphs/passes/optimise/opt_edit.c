/* opt_edit.c -- queries and edits for rewriting rules. See optimise_priv.h. */
#include "graphs/passes/optimise/optimise_priv.h"

bool mpl_is_uniform(const mpl_graph *g, mpl_value v, double *x)
{
    size_t size = mpl_type_bytes((mpl_type)g->value_type[v]);
    const char *data = g->value_data[v];

    if (g->value_role[v] != MPL_WEIGHT || data == NULL || g->value_bytes[v] < size)
        return false;
    if (!g->value_splat[v] && mpl_type_bits((mpl_type)g->value_type[v]) < 8)
        return false;
    if (!g->value_splat[v] && memcmp(data, data + size, g->value_bytes[v] - size) != 0)
        return false; /* each element equals the next */
    *x = mpl_get((mpl_type)g->value_type[v], data, 0);
    return true;
}

mpl_op mpl_only_for(const mpl_graph *g, mpl_value v, mpl_op_kind kind)
{
    mpl_op op = v != MPL_NONE ? g->value_op[v] : MPL_NONE;

    if (op == MPL_NONE || g->op_kind[op] != kind || g->op_block[op] != 0 || mpl_n_uses(g, v) != 1 ||
        g->value_role[v] != MPL_TEMPORARY)
        return MPL_NONE;
    return op;
}

void mpl_edit_alias(const mpl_graph *g, mpl_op op, mpl_value x, mpl_edit *edit)
{
    if (!mpl_same_form(g, mpl_op_output(g, op, 0), x))
        return;
    edit->kind = MPL_EDIT_ALIAS;
    edit->in[0] = x;
}

mpl_status mpl_edit_fresh(mpl_ctx *ctx, mpl_type type, const mpl_shape *shape, bool splat,
                          mpl_fresh *fresh)
{
    uint64_t n = 0;

    if (!splat)
        mpl_shape_count(shape, &n);
    *fresh = (mpl_fresh){type, *shape, mpl_alloc(ctx, splat ? 1 : n, mpl_type_bytes(type)), splat};
    if (fresh->data == NULL)
        MPL_PASS(MPL_EMEM);
    return MPL_OK;
}

mpl_status mpl_edit_zeros(mpl_match *match, mpl_op op, mpl_edit *edit)
{
    mpl_value out = mpl_op_output(match->g, op, 0);

    edit->kind = MPL_EDIT_CONSTANT;
    return mpl_edit_fresh(match->ctx, (mpl_type)match->g->value_type[out],
                          &match->g->value_shape[out], true, &edit->fresh[0]);
}
