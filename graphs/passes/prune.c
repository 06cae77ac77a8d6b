/* prune.c -- the graph without what no output depends on. See passes.h. */
#include "graphs/passes/passes.h"

/* What a live operation that owns blocks needs of them: their results and, of a loop's body, its exit tests. */
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

/* Marks what the outputs depend on. Operations stand after those they need, and after the blocks they own, so one pass
 * backwards is enough. */
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

/* Adds operation `op` of g to `to`; map receives its outputs, block has the new ids of its blocks. */
static mpl_status copy_op(mpl_ctx *ctx, const mpl_graph *g, mpl_op op, mpl_graph *to, mpl_value *map,
                          const uint32_t *block)
{
    mpl_status st = MPL_OK;
    uint32_t n_in = g->op_in_begin[op + 1] - g->op_in_begin[op];
    uint32_t n_out = g->op_out_begin[op + 1] - g->op_out_begin[op];
    uint32_t n_attr = g->op_attr_begin[op + 1] - g->op_attr_begin[op];
    const mpl_value *from_in = g->op_in + g->op_in_begin[op], *from_out = g->op_out + g->op_out_begin[op];
    mpl_value *in = NULL, *out = NULL;
    uint32_t n_bodies = g->op_body_begin[op + 1] - g->op_body_begin[op], *body = NULL;
    const char **name = NULL;
    mpl_attr *attr = NULL;

    MPL_TRY(mpl_new(ctx, in, n_in));
    MPL_TRY(mpl_new(ctx, out, n_out));
    MPL_TRY(mpl_new(ctx, name, n_out));
    MPL_TRY(mpl_new(ctx, attr, n_attr));
    MPL_TRY(mpl_new(ctx, body, n_bodies));
    for (uint32_t i = 0; i < n_in; i++)
        in[i] = from_in[i] != MPL_NONE ? map[from_in[i]] : MPL_NONE;
    for (uint32_t i = 0; i < n_out; i++)
        name[i] = from_out[i] != MPL_NONE ? g->value_name[from_out[i]] : NULL;
    for (uint32_t i = 0; i < n_attr; i++)
        attr[i] = mpl_attr_at(g, g->op_attr_begin[op] + i);
    for (uint32_t i = 0; i < n_bodies; i++)
        body[i] = block[g->op_body[g->op_body_begin[op] + i]];
    MPL_TRY(mpl_graph_add_control(ctx, to, (mpl_op_kind)g->op_kind[op], g->op_name[op], n_in, in, n_attr,
                                  attr, n_bodies, body, n_out, name, out));
    for (uint32_t i = 0; i < n_out; i++)
        if (from_out[i] != MPL_NONE)
            map[from_out[i]] = out[i];
out:
    mpl_free(ctx, in);
    mpl_free(ctx, out);
    mpl_free(ctx, name);
    mpl_free(ctx, attr);
    mpl_free(ctx, body);
    return st;
}

static bool is_bound(const mpl_graph *g, mpl_value v)
{
    for (uint32_t i = 0; i < g->n_bound; i++)
        if (strcmp(g->bound_input[i], g->value_name[v]) == 0)
            return true;
    return false;
}

/* A bound input enters as an input again, so that the new graph notes it too; other constants move over. */
static mpl_status copy_value(mpl_ctx *ctx, mpl_graph *g, mpl_value v, mpl_graph *to, mpl_value *made)
{
    mpl_status st = MPL_OK;
    bool bound = g->value_role[v] == MPL_WEIGHT && is_bound(g, v);

    MPL_TRY(mpl_graph_add_value(ctx, to, g->value_name[v], bound ? MPL_INPUT : (mpl_role)g->value_role[v],
                                (mpl_type)g->value_type[v], &g->value_shape[v], made));
    if (bound)
        MPL_TRY(mpl_graph_bind_input(ctx, to, *made, g->value_data[v]));
    else {
        to->value_data[*made] = g->value_data[v], g->value_data[v] = NULL;
        to->value_splat[*made] = g->value_splat[v];
    }
out:
    return st;
}

static mpl_status copy_open(mpl_ctx *ctx, const mpl_graph *g, uint32_t b, mpl_graph *to, mpl_value *map,
                            uint32_t *made)
{
    mpl_status st = MPL_OK;

    MPL_TRY(mpl_graph_open_block(ctx, to, g->block_name[b], made));
    for (uint32_t i = 0; i < g->block_n_params[b]; i++) {
        mpl_value v = g->block_param[g->block_param_begin[b] + i];

        MPL_TRY(mpl_graph_add_param(ctx, to, g->value_name[v], (mpl_type)g->value_type[v], &g->value_shape[v],
                                    &map[v]));
    }
out:
    return st;
}

static mpl_status copy_close(mpl_ctx *ctx, const mpl_graph *g, uint32_t b, mpl_graph *to,
                             const mpl_value *map)
{
    mpl_status st = MPL_OK;
    mpl_value *result = NULL;

    MPL_TRY(mpl_new(ctx, result, g->block_n_results[b]));
    for (uint32_t i = 0; i < g->block_n_results[b]; i++) {
        mpl_value v = g->block_result[g->block_result_begin[b] + i];

        result[i] = v == MPL_NONE ? MPL_NONE : map[v];
    }
    MPL_TRY(mpl_graph_close_block(ctx, to, g->block_n_results[b], result));
out:
    mpl_free(ctx, result);
    return st;
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
    MPL_TRY(mpl_new(ctx, live_value, g->n_values));
    MPL_TRY(mpl_new(ctx, map, g->n_values));
    MPL_TRY(mpl_new(ctx, block, g->n_blocks));
    MPL_TRY(mpl_graph_new(ctx, g->name, &to));
    mark_live(g, live_op, live_value);
    while ((item = mpl_walk_next(g, &walk)) != MPL_ITEM_END) {
        mpl_value v = walk.value;

        if (item == MPL_ITEM_OP && live_op[walk.op])
            MPL_TRY(copy_op(ctx, g, walk.op, to, map, block));
        else if (item == MPL_ITEM_VALUE && (live_value[v] || g->value_role[v] == MPL_INPUT || is_bound(g, v)))
            MPL_TRY(copy_value(ctx, g, v, to, &map[v]));
        else if (item == MPL_ITEM_OPEN && live_op[g->block_owner[walk.block]])
            MPL_TRY(copy_open(ctx, g, walk.block, to, map, &block[walk.block]));
        else if (item == MPL_ITEM_CLOSE && live_op[g->block_owner[walk.block]])
            MPL_TRY(copy_close(ctx, g, walk.block, to, map));
    }
    for (uint32_t i = 0; i < g->n_outputs; i++)
        MPL_TRY(mpl_graph_add_output(ctx, to, map[g->output[i]]));
    MPL_TRY(mpl_graph_finish(ctx, to));
    mpl_graph_free(ctx, g);
    *graph = to, to = NULL;
out:
    mpl_graph_free(ctx, to);
    mpl_free(ctx, live_op);
    mpl_free(ctx, live_value);
    mpl_free(ctx, map);
    mpl_free(ctx, block);
    return st;
}
