/* liveness.c -- see liveness.h. */
#include "graphs/problem/liveness.h"
#include "graphs/problem/steps.h"

uint32_t mpl_flow_words(const mpl_flow *flow)
{
    return flow->n_vars / 64 + 1;
}

/* Recomputes both sets of a node. Returns whether live_in grew. */
static bool flow_step(const mpl_flow *flow, uint32_t node, uint64_t *live_in, uint64_t *live_out,
                      uint64_t *next)
{
    uint32_t words = mpl_flow_words(flow);
    uint64_t *in = live_in + (size_t)node * words, *out = live_out + (size_t)node * words;
    bool grew = false;

    for (uint32_t i = flow->succ_begin[node]; i < flow->succ_begin[node + 1]; i++)
        for (uint32_t w = 0; w < words; w++)
            out[w] |= live_in[(size_t)flow->succ_item[i] * words + w];
    memcpy(next, out, words * sizeof *next);
    for (uint32_t i = flow->def_begin[node]; i < flow->def_begin[node + 1]; i++)
        mpl_bit_drop(next, flow->def_item[i]);
    for (uint32_t i = flow->use_begin[node]; i < flow->use_begin[node + 1]; i++)
        mpl_bit_add(next, flow->use_item[i]);
    for (uint32_t w = 0; w < words; w++) {
        grew = grew || (next[w] & ~in[w]) != 0;
        in[w] |= next[w];
    }
    return grew;
}

mpl_status mpl_flow_live(mpl_ctx *ctx, const mpl_flow *flow, uint64_t *live_in, uint64_t *live_out)
{
    mpl_status st = MPL_OK;
    uint32_t words = mpl_flow_words(flow), n_stack = 0;
    uint32_t *pred_begin = NULL, *pred = NULL, *stack = NULL;
    uint8_t *queued = NULL;
    uint64_t *next = NULL;

    MPL_TRY(mpl_lists_turn(ctx, flow->n_nodes, flow->n_nodes, flow->succ_begin, flow->succ_item,
                           &pred_begin, &pred));
    MPL_TRY(mpl_new_each(ctx, flow->n_nodes, stack, queued));
    MPL_TRY(mpl_new(ctx, next, words));
    memset(live_in, 0, (size_t)flow->n_nodes * words * sizeof *live_in);
    memset(live_out, 0, (size_t)flow->n_nodes * words * sizeof *live_out);
    for (uint32_t node = 0; node < flow->n_nodes; node++) /* the last node is popped first */
        stack[n_stack++] = node, queued[node] = 1;
    while (n_stack > 0) {
        uint32_t node = stack[--n_stack];

        queued[node] = 0;
        if (!flow_step(flow, node, live_in, live_out, next))
            continue;
        for (uint32_t i = pred_begin[node]; i < pred_begin[node + 1]; i++)
            if (!queued[pred[i]])
                stack[n_stack++] = pred[i], queued[pred[i]] = 1;
    }
out:
    mpl_free_each(ctx, pred_begin, pred, stack, queued, next);
    return st;
}

void mpl_value_roots(const mpl_graph *g, mpl_value *root)
{
    for (mpl_value v = 0; v < g->n_values; v++)
        root[v] = v;
    for (mpl_op op = 0; op < g->n_ops; op++) {
        mpl_value in, out;

        for (uint32_t i = g->op_out_begin[op]; i < g->op_out_begin[op + 1]; i++)
            if (g->op_out[i] != MPL_NONE && mpl_updated(g, op, i - g->op_out_begin[op]) != MPL_NONE)
                root[g->op_out[i]] = root[mpl_updated(g, op, i - g->op_out_begin[op])];
        if (!(mpl_op_table[g->op_kind[op]].traits & MPL_VIEW))
            continue;
        in = mpl_op_input(g, op, 0);
        out = mpl_op_output(g, op, 0);
        root[out] = root[in]; /* final: makers of inputs come before */
    }
}

mpl_status mpl_ranges_new(mpl_ctx *ctx, const mpl_graph *g, const mpl_op *order,
                          const mpl_alias_options *options, mpl_ranges **out)
{
    mpl_status st = MPL_OK;
    mpl_ranges *ranges = NULL;

    MPL_TRY(mpl_new(ctx, ranges, 1));
    MPL_TRY(mpl_new(ctx, ranges->step_of, g->n_ops));
    MPL_TRY(mpl_new_each(ctx, g->n_values, ranges->first, ranges->last));
    MPL_TRY(mpl_order_positions(ctx, g, order, ranges->step_of));
    MPL_TRY(mpl_alias_new(ctx, g, options, &ranges->alias));
    for (mpl_value v = 0; v < g->n_values; v++) {
        ranges->first[v] = g->value_op[v] == MPL_NONE ? 0 : ranges->step_of[g->value_op[v]];
        ranges->last[v] = ranges->first[v];
    }
    for (uint32_t step = 0; step < g->n_ops; step++)
        for (uint32_t i = g->op_in_begin[order[step]]; i < g->op_in_begin[order[step] + 1]; i++) {
            mpl_value v = g->op_in[i];

            if (v == MPL_NONE)
                continue;
            if (g->value_op[v] != MPL_NONE && ranges->first[v] >= step)
                MPL_FAIL(ctx, MPL_EINPUT,
                         "the order has operation '%.100s' at step %u, before '%.100s' is made",
                         g->op_name[order[step]], step, g->value_name[v]);
            if (i - g->op_in_begin[order[step]] < mpl_n_read(g, order[step]))
                ranges->last[ranges->alias.root[v]] = step;
        }
    for (mpl_value v = 0; v < g->n_values; v++) {
        mpl_value root = ranges->alias.root[v];

        ranges->first[root] =
            ranges->first[v] < ranges->first[root] ? ranges->first[v] : ranges->first[root];
        ranges->last[root] = ranges->last[root] == MPL_NONE || ranges->last[v] > ranges->last[root]
                                 ? ranges->last[v]
                                 : ranges->last[root];
    }
    for (mpl_value v = 0; v < g->n_values; v++)
        if (ranges->alias.root[v] != v)
            ranges->first[v] = ranges->last[v] = MPL_NONE;
    *out = ranges, ranges = NULL;
out:
    mpl_ranges_free(ctx, ranges);
    return st;
}

void mpl_ranges_free(mpl_ctx *ctx, mpl_ranges *ranges)
{
    if (ranges == NULL)
        return;
    mpl_alias_free(ctx, &ranges->alias);
    void *arrays[] = {ranges->step_of, ranges->first, ranges->last, ranges};
    MPL_FREE_ALL(ctx, arrays);
}
