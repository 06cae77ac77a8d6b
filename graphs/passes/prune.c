/* prune.c -- the graph without what no output depends on. See passes.h. */
#include "graphs/passes/passes.h"

/* Marks what the outputs depend on. Operations stand after those they need, so one pass backwards is enough. */
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
    }
}

/* Adds operation `op` of g to `to`; map receives its outputs. */
static mpl_status copy_op(mpl_ctx *ctx, const mpl_graph *g, mpl_op op, mpl_graph *to, mpl_value *map)
{
    mpl_status st = MPL_OK;
    uint32_t n_in = g->op_in_begin[op + 1] - g->op_in_begin[op];
    uint32_t n_out = g->op_out_begin[op + 1] - g->op_out_begin[op];
    uint32_t n_attr = g->op_attr_begin[op + 1] - g->op_attr_begin[op];
    const mpl_value *from_in = g->op_in + g->op_in_begin[op], *from_out = g->op_out + g->op_out_begin[op];
    mpl_value *in = NULL, *out = NULL;
    const char **name = NULL;
    mpl_attr *attr = NULL;

    MPL_TRY(mpl_new(ctx, in, n_in));
    MPL_TRY(mpl_new(ctx, out, n_out));
    MPL_TRY(mpl_new(ctx, name, n_out));
    MPL_TRY(mpl_new(ctx, attr, n_attr));
    for (uint32_t i = 0; i < n_in; i++)
        in[i] = from_in[i] != MPL_NONE ? map[from_in[i]] : MPL_NONE;
    for (uint32_t i = 0; i < n_out; i++)
        name[i] = from_out[i] != MPL_NONE ? g->value_name[from_out[i]] : NULL;
    for (uint32_t i = 0; i < n_attr; i++)
        attr[i] = mpl_attr_at(g, g->op_attr_begin[op] + i);
    MPL_TRY(mpl_graph_add_op(ctx, to, (mpl_op_kind)g->op_kind[op], g->op_name[op], n_in, in, n_attr, attr,
                             n_out, name, out));
    for (uint32_t i = 0; i < n_out; i++)
        if (from_out[i] != MPL_NONE)
            map[from_out[i]] = out[i];
out:
    mpl_free(ctx, in);
    mpl_free(ctx, out);
    mpl_free(ctx, name);
    mpl_free(ctx, attr);
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

mpl_status mpl_graph_prune(mpl_ctx *ctx, mpl_graph **graph)
{
    mpl_status st = MPL_OK;
    mpl_graph *g = *graph, *to = NULL;
    bool *live_op = NULL, *live_value = NULL;
    mpl_value *map = NULL;

    MPL_TRY(mpl_new(ctx, live_op, g->n_ops));
    MPL_TRY(mpl_new(ctx, live_value, g->n_values));
    MPL_TRY(mpl_new(ctx, map, g->n_values));
    MPL_TRY(mpl_graph_new(ctx, g->name, &to));
    mark_live(g, live_op, live_value);
    for (mpl_value v = 0; v < g->n_values; v++) {
        mpl_op op = g->value_op[v];

        /* The outputs of an operation follow one another: the first brings the operation with it. */
        if (op != MPL_NONE) {
            if (live_op[op] && v == g->op_out[g->op_out_begin[op]])
                MPL_TRY(copy_op(ctx, g, op, to, map));
        } else if (live_value[v] || g->value_role[v] == MPL_INPUT || is_bound(g, v))
            MPL_TRY(copy_value(ctx, g, v, to, &map[v]));
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
    return st;
}
