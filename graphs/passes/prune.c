/* prune.c -- removes what no output depends on. See passes.h. */
#include "graphs/passes/copy.h"
#include "graphs/passes/passes.h"

/* Marks what a live operation's blocks need: results and, of a loop's body, exit tests. */
static void mark_bodies(const mpl_graph *g, mpl_op op, bool *live_op, bool *live_value)
{
    for (uint32_t k = g->op_body_begin[op]; k < g->op_body_begin[op + 1]; k++) {
        uint32_t b = g->op_body[k];

        for (uint32_t i = 0; i < g->block_n_results[b]; i++)
            if (g->block_result[g->block_result_begin[b] + i] != MPL_NONE)
                live_value[g->block_result[g->block_result_begin[b] + i]] = true;
        for (mpl_op test = g->block_op_begin[b]; test < g->block_op_end[b]; test++)
            live_op[test] =
                live_op[test] || (g->op_kind[test] == MPL_OP_exit_unless && g->op_block[test] == b);
    }
}

/* Marks what the outputs depend on. Operations follow those that they need, and the blocks that
 * they own, so one backward pass is enough. */
static void mark_live(const mpl_graph *g, bool *live_op, bool *live_value)
{
    for (uint32_t i = 0; i < g->n_outputs; i++)
        live_value[g->output[i]] = true;
    for (mpl_op op = g->n_ops; op-- > 0;) {
        for (uint32_t i = g->op_out_begin[op]; i < g->op_out_begin[op + 1]; i++)
            live_op[op] = live_op[op] || (g->op_out[i] != MPL_NONE && live_value[g->op_out[i]]);
        for (uint32_t i = g->op_in_begin[op]; i < g->op_in_begin[op + 1] && live_op[op]; i++)
            if (g->op_in[i] != MPL_NONE)
                live_value[g->op_in[i]] = true;
        if (live_op[op])
            mark_bodies(g, op, live_op, live_value);
    }
}

mpl_status mpl_graph_prune(mpl_ctx *ctx, mpl_graph **graph)
{
    mpl_status st = MPL_OK;
    mpl_graph *g = *graph, *to = NULL;
    bool *live_op = NULL, *live_value = NULL;
    mpl_value *map = NULL;
    uint32_t *block = NULL;
    mpl_walk walk = mpl_walk_begin();
    mpl_item item;

    MPL_TRY(mpl_new(ctx, live_op, g->n_ops));
    MPL_TRY(mpl_new_each(ctx, g->n_values, live_value, map));
    MPL_TRY(mpl_new(ctx, block, g->n_blocks));
    MPL_TRY(mpl_graph_new(ctx, g->name, &to));
    mark_live(g, live_op, live_value);
    while ((item = mpl_walk_next(g, &walk)) != MPL_ITEM_END) {
        mpl_value v = walk.value;

        if (item == MPL_ITEM_OP && live_op[walk.op])
            MPL_TRY(mpl_copy_op(ctx, g, walk.op, to, map, block));
        else if (item == MPL_ITEM_VALUE &&
                 (live_value[v] || g->value_role[v] == MPL_INPUT || mpl_is_bound(g, v)))
            MPL_TRY(mpl_copy_value(ctx, g, v, to, &map[v]));
        else if (item == MPL_ITEM_OPEN && live_op[g->block_owner[walk.block]])
            MPL_TRY(mpl_copy_open(ctx, g, walk.block, to, map, &block[walk.block]));
        else if (item == MPL_ITEM_CLOSE && live_op[g->block_owner[walk.block]])
            MPL_TRY(mpl_copy_close(ctx, g, walk.block, to, map));
    }
    for (uint32_t i = 0; i < g->n_outputs; i++)
        MPL_TRY(mpl_graph_add_output(ctx, to, map[g->output[i]]));
    MPL_TRY(mpl_graph_finish(ctx, to));
    mpl_graph_free(ctx, g);
    *graph = to, to = NULL;
out:
    mpl_graph_free(ctx, to);
    mpl_free_each(ctx, live_op, live_value, map, block);
    return st;
}
