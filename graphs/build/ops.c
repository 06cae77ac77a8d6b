/* ops.c -- the shape rule and the reference loop of every operator, by ops.def. */
#include "graphs/graph.h"
#include "graphs/ir/counts.h"

#define OP(name, min_in, max_in, min_out, max_out, traits, shape, eval)                            \
    mpl_status mpl_shape_##shape(mpl_ctx *ctx, const mpl_shape_call *call);                        \
    mpl_status mpl_eval_##eval(mpl_ctx *ctx, const mpl_op_call *call);
#include "graphs/ir/each_op.h"

mpl_status mpl_shape_of(mpl_ctx *ctx, const mpl_shape_call *call)
{
    static mpl_status (*const rule[MPL_N_OPS])(mpl_ctx *, const mpl_shape_call *) = {
#define OP(name, min_in, max_in, min_out, max_out, traits, shape, eval) mpl_shape_##shape,
#include "graphs/ir/each_op.h"
    };

    return rule[call->graph->op_kind[call->op]](ctx, call);
}

mpl_status mpl_eval(mpl_ctx *ctx, const mpl_op_call *call)
{
    static mpl_status (*const loops[MPL_N_OPS])(mpl_ctx *, const mpl_op_call *) = {
#define OP(name, min_in, max_in, min_out, max_out, traits, shape, eval) mpl_eval_##eval,
#include "graphs/ir/each_op.h"
    };

    return loops[call->graph->op_kind[call->op]](ctx, call);
}
