/* graph_ok.c -- invariants of a finished graph. See mpl_graph_ok in graph.h. */
#include "graphs/ir/counts.h"
#include "graphs/build/graph_priv.h"

static bool op_ok(const mpl_graph *g, mpl_op op)
{
    const mpl_op_info *info;

    if (g->op_kind[op] >= MPL_N_OPS || g->op_in_begin[op] > g->op_in_begin[op + 1] ||
        g->op_out_begin[op] > g->op_out_begin[op + 1])
        return mpl_broken("operation %u has no kind, or lists that end before they begin", op);
    info = &mpl_op_table[g->op_kind[op]];
    if (!mpl_count_fits(mpl_op_n_in(g, op), info->min_in, info->max_in) ||
        !mpl_count_fits(mpl_op_n_out(g, op), info->min_out, info->max_out))
        return mpl_broken("operation %u (%s) has %u inputs and %u outputs", op, info->name,
                          mpl_op_n_in(g, op), mpl_op_n_out(g, op));
    for (uint32_t i = g->op_in_begin[op]; i < g->op_in_begin[op + 1]; i++) {
        mpl_value v = g->op_in[i];

        if (v != MPL_NONE &&
            (v >= g->n_values || (g->value_op[v] != MPL_NONE && g->value_op[v] >= op) ||
             !mpl_block_within(g, g->op_block[op], g->value_block[v])))
            return mpl_broken("operation %u reads value %u, which is not there yet", op, v);
    }
    for (uint32_t i = g->op_out_begin[op]; i < g->op_out_begin[op + 1]; i++)
        if (g->op_out[i] != MPL_NONE &&
            (g->op_out[i] >= g->n_values || g->value_op[g->op_out[i]] != op))
            return mpl_broken("value %u is an output of operation %u and does not say so",
                              g->op_out[i], op);
    return true;
}

static bool value_ok(const mpl_graph *g, mpl_value v)
{
    bool made = g->value_op[v] != MPL_NONE;
    uint64_t count, bytes;

    if (made != (g->value_role[v] == MPL_TEMPORARY || g->value_role[v] == MPL_OUTPUT))
        return mpl_broken("value %u has role %u, and %s makes it", v, g->value_role[v],
                          made ? "an operation" : "no operation");
    if (g->value_type[v] >= MPL_N_TYPES || !mpl_shape_count(&g->value_shape[v], &count) ||
        !mpl_type_size((mpl_type)g->value_type[v], count, &bytes) || g->value_bytes[v] != bytes)
        return mpl_broken("value %u has %" PRIu64 " bytes, which its type and dims do not give", v,
                          g->value_bytes[v]);
    return true;
}

/* Slow: checks that the use list of v matches the operations that read it. */
static bool uses_ok(const mpl_graph *g, mpl_value v)
{
    uint32_t n = g->value_use_begin[v + 1] - g->value_use_begin[v];

    for (mpl_op op = 0; op < g->n_ops; op++) {
        for (uint32_t i = 0; i < mpl_op_n_in(g, op); i++)
            n -= mpl_op_input(g, op, i) == v;
        for (uint32_t k = g->op_body_begin[op]; k < g->op_body_begin[op + 1]; k++)
            for (uint32_t i = 0; i < g->block_n_results[g->op_body[k]]; i++)
                n -= mpl_result(g, g->op_body[k], i) == v;
    }
    return n == 0 || mpl_broken("the list of the operations that read value %u is wrong", v);
}

bool mpl_graph_ok(const mpl_graph *g)
{
    for (mpl_op op = 0; op < g->n_ops; op++)
        if (!op_ok(g, op))
            return false;
    for (mpl_value v = 0; v < g->n_values; v++)
        if (!value_ok(g, v) || (MPL_CHECK >= 3 && g->n_values <= MPL_CHECK_SMALL && !uses_ok(g, v)))
            return false;
    for (uint32_t i = 0; i < g->n_outputs; i++)
        if (g->output[i] >= g->n_values || g->value_block[g->output[i]] != 0)
            return mpl_broken("output %u is value %u, which the graph does not have", i,
                              g->output[i]);
    return mpl_graph_blocks_ok(g);
}
