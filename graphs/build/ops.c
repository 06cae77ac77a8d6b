/* ops.c -- shape rule and reference loop of each operator, from ops.def. */
#include "graphs/graph.h"
#include "graphs/ir/counts.h"

#define OP(name, min_in, max_in, min_out, max_out, traits, shape, eval)                            \
    mpl_status mpl_shape_##shape(mpl_ctx *ctx, const mpl_shape_call *call);                        \
    mpl_status mpl_eval_##eval(mpl_ctx *ctx, const mpl_op_call *call);
#include "graphs/ir/each_op.h"

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

mpl_status mpl_shape_of(mpl_ctx *ctx, const mpl_shape_call *call)
{
    mpl_status st;
    static mpl_status (*const rule[MPL_N_OPS])(mpl_ctx *, const mpl_shape_call *) = {
#define OP(name, min_in, max_in, min_out, max_out, traits, shape, eval) mpl_shape_##shape,
#include "graphs/ir/each_op.h"
    };

    st = rule[call->graph->op_kind[call->op]](ctx, call);
    mpl_assert_ok(st != MPL_OK || outputs_ok(call));
    return st;
}

mpl_status mpl_eval(mpl_ctx *ctx, const mpl_op_call *call)
{
    static mpl_status (*const loops[MPL_N_OPS])(mpl_ctx *, const mpl_op_call *) = {
#define OP(name, min_in, max_in, min_out, max_out, traits, shape, eval) mpl_eval_##eval,
#include "graphs/ir/each_op.h"
    };

    return loops[call->graph->op_kind[call->op]](ctx, call);
}
