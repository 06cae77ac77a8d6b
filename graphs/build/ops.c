/* ops.c -- shape rule and reference loop of each operator, from ops.def. */
#include "graphs/ir/counts.h"
#include "graphs/ops/lite/as_real.h"
#include "graphs/ops/ops_priv.h"
#include "graphs/ops/user/user_ops.h"

#define OP(name, min_in, max_in, min_out, max_out, traits, shape, eval)                            \
    mpl_status mpl_shape_##shape(mpl_ctx *ctx, const mpl_shape_call *call);                        \
    mpl_status mpl_eval_##eval(mpl_ctx *ctx, const mpl_op_call *call);
#include "graphs/ir/each_op.h"

mpl_status mpl_shape_as_real(mpl_ctx *ctx, const mpl_shape_call *call)
{
    return mpl_real_shape(ctx, call, mpl_shape_as);
}

mpl_status mpl_eval_as_real(mpl_ctx *ctx, const mpl_op_call *call)
{
    return mpl_real_eval(ctx, call, mpl_shape_as, mpl_eval_as);
}

uint64_t mpl_eval_workspace(const mpl_graph *g, mpl_op op)
{
    switch (g->op_kind[op]) {
    case MPL_OP_as_real:
        return mpl_real_workspace(g, op);
    case MPL_OP_nms:
        return mpl_nms_workspace(g, op);
    case MPL_OP_user:
        return mpl_user_workspace(g, op);
    default:
        return 0;
    }
}

/* Checks what a successful shape rule has written. */
static bool outputs_ok(const mpl_shape_call *call)
{
    uint64_t count;

    for (uint32_t i = 0; i < call->n_out; i++)
        if (call->out_type[i] >= MPL_N_TYPES || call->out_shape[i].rank > MPL_MAX_RANK ||
            (mpl_shape_count(&call->out_shape[i], &count) && count > INT64_MAX))
            return false;
    return true;
}

/* MPL_EINPUT: an operand whose elements are less than a byte, where loops step by bytes. */
static mpl_status check_packed(mpl_ctx *ctx, const mpl_shape_call *call)
{
    unsigned traits = mpl_op_table[call->graph->op_kind[call->op]].traits;

    for (uint32_t i = 0; i < call->n_in && (traits & (MPL_PACKED | MPL_CONTROL)) == 0; i++)
        if (call->in_shape[i] != NULL && mpl_type_bits(call->in_type[i]) < 8)
            return MPL_REFUSE(ctx,
                              "input %u has type %s, which only a cast turns into one that "
                              "this operator takes",
                              i, mpl_type_name(call->in_type[i]));
    return MPL_OK;
}

mpl_status mpl_shape_of(mpl_ctx *ctx, const mpl_shape_call *call)
{
    return mpl_shape_as(ctx, (mpl_op_kind)call->graph->op_kind[call->op], call);
}

mpl_status mpl_shape_as(mpl_ctx *ctx, mpl_op_kind kind, const mpl_shape_call *call)
{
    mpl_status st;
    static mpl_status (*const rule[MPL_N_OPS])(mpl_ctx *, const mpl_shape_call *) = {
#define OP(name, min_in, max_in, min_out, max_out, traits, shape, eval) mpl_shape_##shape,
#include "graphs/ir/each_op.h"
    };

    MPL_PASS(check_packed(ctx, call));
    st = rule[kind](ctx, call);
    mpl_assert_ok(st != MPL_OK || outputs_ok(call));
    return st;
}

mpl_status mpl_eval(mpl_ctx *ctx, const mpl_op_call *call)
{
    return mpl_eval_as(ctx, (mpl_op_kind)call->graph->op_kind[call->op], call);
}

mpl_status mpl_eval_as(mpl_ctx *ctx, mpl_op_kind kind, const mpl_op_call *call)
{
    static mpl_status (*const loops[MPL_N_OPS])(mpl_ctx *, const mpl_op_call *) = {
#define OP(name, min_in, max_in, min_out, max_out, traits, shape, eval) mpl_eval_##eval,
#include "graphs/ir/each_op.h"
    };

    return loops[kind](ctx, call);
}

static bool is_listed(const mpl_graph *g, mpl_op op, uint32_t i)
{
    uint32_t n;
    const int64_t *over = mpl_attr_ints(g, op, MPL_ATTR_over, &n);

    for (uint32_t k = 0; k < n; k++)
        if (over[k] == i)
            return true;
    return false;
}

bool mpl_op_overwrites(const mpl_graph *g, mpl_op op, uint32_t i)
{
    unsigned traits = mpl_op_table[g->op_kind[op]].traits;

    if (g->op_kind[op] == MPL_OP_user)
        return mpl_user_in_place(g, op, i) != MEMPLAN_APART;
    return (traits & MPL_IN_PLACE_ANY) != 0 || ((traits & MPL_IN_PLACE_0) != 0 && i == 0) ||
           (g->op_kind[op] == MPL_OP_opaque && is_listed(g, op, i));
}

bool mpl_op_reads_along(const mpl_graph *g, mpl_op op, uint32_t i)
{
    if (g->op_kind[op] == MPL_OP_user)
        return mpl_user_in_place(g, op, i) == MEMPLAN_ALONG;
    return (mpl_op_table[g->op_kind[op]].traits & MPL_ELEMENTWISE) != 0 ||
           (g->op_kind[op] == MPL_OP_opaque && is_listed(g, op, i));
}
