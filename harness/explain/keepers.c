/* keepers.c -- what each buffer holds, and which operation keeps it alive. See explain.h. */
#include "harness/explain/explain.h"

/* The last reader of any value in each buffer; later in the order is later. */
static void find_readers(const mpl_job *job, mpl_keeper *keeper)
{
    const mpl_graph *g = job->source.graph;
    const uint32_t *step = job->map->step_of;

    for (mpl_value v = 0; v < g->n_values; v++) {
        mpl_buffer b = job->map->value_buffer[job->map->value_root[v]];

        for (uint32_t k = g->value_use_begin[v]; b != MPL_NONE && k < g->value_use_begin[v + 1];
             k++)
            if (keeper[b].kept_by == MPL_NONE || step[g->value_use[k]] > step[keeper[b].kept_by])
                keeper[b].kept_by = g->value_use[k];
    }
}

/* Names the value in each buffer, and the operation that makes it. */
static void find_values(const mpl_job *job, mpl_keeper *keeper)
{
    const mpl_graph *g = job->source.graph;
    const mpl_value_map *map = job->map;

    for (mpl_value v = g->n_values; v-- > 0;) {
        uint32_t n = map->value_buffers != NULL ? map->value_buffers[v] : 1;

        for (uint32_t k = 0; map->value_buffer[v] != MPL_NONE && map->value_root[v] == v && k < n;
             k++)
            keeper[map->value_buffer[v] + k] = (mpl_keeper){v, g->value_op[v], MPL_NONE};
    }
    for (mpl_op op = 0; op < g->n_ops; op++)
        if (map->op_workspace[op] != MPL_NONE)
            keeper[map->op_workspace[op]] = (mpl_keeper){MPL_NONE, op, op};
}

/* Under serial the first and last step of a live range say it exactly, for parts of storage too. */
static mpl_status find_steps(mpl_ctx *ctx, const mpl_job *job, mpl_keeper *keeper)
{
    mpl_status st = MPL_OK;
    const mpl_problem *p = job->problem;
    mpl_op *at = NULL;

    MPL_TRY(mpl_new(ctx, at, p->n_steps));
    for (uint32_t k = 0; k < p->n_steps; k++)
        at[k] = MPL_NONE;
    for (mpl_op op = 0; op < job->source.graph->n_ops; op++)
        at[job->map->step_of[op]] = op;
    for (mpl_buffer b = 0; b < p->n; b++) {
        mpl_op first = at[p->birth[b]], last = at[p->death[b] - 1];
        bool given = keeper[b].value != MPL_NONE && keeper[b].made_by == MPL_NONE;

        keeper[b].made_by = first != MPL_NONE && !given ? first : keeper[b].made_by;
        keeper[b].kept_by = last != MPL_NONE ? last : keeper[b].kept_by;
    }
out:
    mpl_free(ctx, at);
    return st;
}

mpl_status mpl_keepers_new(mpl_ctx *ctx, const mpl_job *job, mpl_keeper **keeper)
{
    mpl_status st = MPL_OK;
    mpl_keeper *k = NULL;

    MPL_TRY(mpl_new(ctx, k, job->problem->n));
    for (mpl_buffer b = 0; b < job->problem->n; b++)
        k[b] = (mpl_keeper){MPL_NONE, MPL_NONE, MPL_NONE};
    if (job->source.graph != NULL && job->map != NULL) {
        find_values(job, k);
        find_readers(job, k);
        if (job->problem->before == NULL)
            MPL_TRY(find_steps(ctx, job, k));
    }
    *keeper = k, k = NULL;
out:
    mpl_free(ctx, k);
    return st;
}
