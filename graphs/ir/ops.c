/* ops.c -- the tables of types, attributes and operators, made from the .def files beside it. */
#include "graphs/graph.h"

#define OP(name, min_in, max_in, min_out, max_out, traits, shape, eval)                                      \
    mpl_status mpl_shape_##shape(mpl_ctx *ctx, const mpl_shape_call *call);                                  \
    mpl_status mpl_eval_##eval(mpl_ctx *ctx, const mpl_op_call *call);
#include "graphs/ir/ops.def"
#undef OP

const mpl_op_info mpl_op_table[MPL_N_OPS] = {
#define OP(name, min_in, max_in, min_out, max_out, traits, shape, eval)                                      \
    {#name, min_in, max_in, min_out, max_out, traits, mpl_shape_##shape, mpl_eval_##eval},
#include "graphs/ir/ops.def"
#undef OP
};

bool mpl_op_find(const char *name, mpl_op_kind *kind)
{
    for (int i = 0; i < MPL_N_OPS; i++)
        if (strcmp(mpl_op_table[i].name, name) == 0)
            return *kind = (mpl_op_kind)i, true;
    return false;
}

mpl_status mpl_eval(mpl_ctx *ctx, const mpl_op_call *call)
{
    return mpl_op_table[call->graph->op_kind[call->op]].eval(ctx, call);
}
