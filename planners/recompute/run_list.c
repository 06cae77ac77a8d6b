/* run_list.c -- builds lists of runs. See rerun.h. */
#include "planners/recompute/rerun.h"

mpl_status mpl_run_list_init(mpl_ctx *ctx, const mpl_graph *g, const mpl_problem_options *options,
                             mpl_run_list *list)
{
    mpl_status st = MPL_OK;

    *list = (mpl_run_list){.ctx = ctx, .g = g};
    MPL_TRY(mpl_reserve(ctx, list->run, list->cap, g->n_ops));
    MPL_TRY(mpl_new_each(ctx, g->n_values, list->root, list->version, list->shown));
    MPL_TRY(mpl_new(ctx, list->ran, g->n_ops));
    MPL_TRY(mpl_unit_reads_new(ctx, g, &list->reads));
    for (mpl_value v = 0; v < g->n_values; v++)
        list->root[v] = v;
    for (mpl_op op = 0; op < g->n_ops; op++)
        if (mpl_shows_input(g, options, op) && g->op_out[g->op_out_begin[op]] != MPL_NONE)
            list->root[g->op_out[g->op_out_begin[op]]] = list->root[g->op_in[g->op_in_begin[op]]];
out:
    if (st != MPL_OK)
        mpl_run_list_fini(list);
    return st;
}

void mpl_run_list_fini(mpl_run_list *list)
{
    if (list->ctx != NULL) {
        mpl_unit_reads_fini(list->ctx, &list->reads);
        mpl_free_each(list->ctx, list->run, list->root, list->version, list->shown, list->ran,
                      list->chain);
    }
    *list = (mpl_run_list){0};
}

static mpl_status append(mpl_run_list *list, mpl_op op)
{
    MPL_PASS(mpl_reserve(list->ctx, list->run, list->cap, (size_t)list->n + 1));
    list->run[list->n++] = op;
    list->ran[op] = 1;
    for (uint32_t i = list->g->op_out_begin[op]; i < list->g->op_out_begin[op + 1]; i++) {
        mpl_value v = list->g->op_out[i];

        if (v != MPL_NONE && list->root[v] == v)
            list->version[v]++;
        else if (v != MPL_NONE)
            list->shown[v] = list->version[list->root[v]];
    }
    return MPL_OK;
}

/* Appends the views from the root to v that show an older copy, outermost first. */
static mpl_status refresh(mpl_run_list *list, mpl_value v)
{
    const mpl_graph *g = list->g;
    mpl_value root = list->root[v];
    uint32_t n = 0;

    for (; v != root && list->shown[v] != list->version[root];
         v = g->op_in[g->op_in_begin[g->value_op[v]]]) {
        MPL_PASS(mpl_reserve(list->ctx, list->chain, list->chain_cap, (size_t)n + 1));
        list->chain[n++] = v;
    }
    while (n > 0)
        MPL_PASS(append(list, g->value_op[list->chain[--n]]));
    return MPL_OK;
}

mpl_status mpl_run_list_add(mpl_run_list *list, mpl_op op)
{
    for (uint32_t i = list->reads.begin[op]; i < list->reads.begin[op + 1]; i++)
        if (list->root[list->reads.value[i]] != list->reads.value[i])
            MPL_PASS(refresh(list, list->reads.value[i]));
    return append(list, op);
}
