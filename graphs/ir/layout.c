/* layout.c -- see layout.h. */
#include "graphs/ir/layout.h"

bool mpl_keeps_layout(mpl_op_kind kind)
{
    switch (kind) {
    case MPL_OP_conv:
    case MPL_OP_conv_act:
    case MPL_OP_conv_sum:
    case MPL_OP_max_pool:
    case MPL_OP_avg_pool:
    case MPL_OP_global_max_pool:
    case MPL_OP_global_avg_pool:
    case MPL_OP_batch_norm:
    case MPL_OP_concat:
    case MPL_OP_sum:
    case MPL_OP_identity:
    case MPL_OP_dropout:
        return true;
    default:
        return (mpl_op_table[kind].traits & MPL_ELEMENTWISE) != 0;
    }
}

bool mpl_channels_last(const mpl_graph *g, mpl_value v)
{
    while (v != MPL_NONE && g->value_op[v] != MPL_NONE) {
        mpl_op op = g->value_op[v];
        mpl_op_kind kind = (mpl_op_kind)g->op_kind[op];

        if (kind == MPL_OP_reorder)
            return strcmp(mpl_attr_text(g, op, MPL_ATTR_mode, ""), "channels_last") == 0;
        if (!mpl_keeps_layout(kind) || g->op_in_begin[op] == g->op_in_begin[op + 1])
            return false;
        v = g->op_in[g->op_in_begin[op]];
    }
    return false;
}
