/* least.c -- the least arena of a graph over orders, sharing and placement. See least.h. */
#include "planners/search/least.h"

#include "planners/planner.h"
#include "planners/search/concat.h"

extern const mpl_planner mpl_planner_portfolio;

typedef struct searcher {
    mpl_order_run *run;
    mpl_ctx *ctx;
    const mpl_graph *g;
    mpl_problem_options options;
    mpl_least *best;
} searcher;

void mpl_least_free(mpl_ctx *ctx, mpl_least *least)
{
    if (least == NULL)
        return;
    mpl_free(ctx, least->order);
    mpl_free(ctx, least->shared);
    mpl_free(ctx, least->copied);
    mpl_problem_free(ctx, least->problem);
    mpl_value_map_free(ctx, least->map);
    mpl_plan_free(ctx, least->plan);
    mpl_free(ctx, least);
}

/* Places `order` with concats decided for it, and keeps the plan if it is the least so far. */
static mpl_status try_order(searcher *s, const mpl_op *order)
{
    mpl_status st = MPL_OK;
    mpl_least *one = NULL;
    mpl_problem_options o = s->options;
    mpl_concat_found found;
    mpl_run run;

    MPL_TRY(mpl_new(s->ctx, one, 1));
    MPL_TRY(mpl_new(s->ctx, one->order, s->g->n_ops));
    MPL_TRY(mpl_new(s->ctx, one->shared, s->g->n_ops));
    MPL_TRY(mpl_new(s->ctx, one->copied, s->g->n_ops));
    memcpy(one->order, order, s->g->n_ops * sizeof *order);
    if (o.concat == MPL_CONCAT_AUTO)
        MPL_TRY(mpl_concat_decide(s->ctx, s->g, order, &o, one->shared, &found));
    o.concat_shared = one->shared;
    MPL_TRY(mpl_problem_from_graph(s->ctx, s->g, order, &o, &one->problem, &one->map));
    mpl_run_init(&run, s->ctx);
    run.seed = s->run->seed;
    MPL_TRY(mpl_planner_run(&mpl_planner_portfolio, &run, one->problem, &one->plan));
    if (s->best == NULL || one->plan->peak_bytes < s->best->plan->peak_bytes) {
        mpl_least_free(s->ctx, s->best);
        s->best = one, one = NULL;
    }
out:
    mpl_least_free(s->ctx, one);
    return st;
}

mpl_status mpl_least_new(mpl_order_run *run, const mpl_graph *g, mpl_least_progress *progress,
                         void *arg, mpl_least **out)
{
    mpl_status st = MPL_OK;
    searcher s = {.run = run, .ctx = run->ctx, .g = g};
    mpl_op *order = NULL;

    s.options = run->options != NULL ? *run->options : mpl_problem_options_default();
    s.options.concat_shared = s.options.split_copied = NULL;
    MPL_TRY(mpl_new(s.ctx, order, g->n_ops));
    MPL_TRY(mpl_order_of(s.ctx, g, mpl_order_find("given"), order));
    MPL_TRY(try_order(&s, order));
    MPL_TRY(mpl_order_make(run, mpl_order_find("least_peak"), g, order));
    MPL_TRY(try_order(&s, order));
    if (progress != NULL)
        s.best->stopped_by_caller = !progress(arg, s.best->plan->peak_bytes, 0);
    s.best->ticks = run->ticks;
    s.best->stopped_by_clock = run->stopped_by_clock;
    *out = s.best, s.best = NULL;
out:
    mpl_free(s.ctx, order);
    mpl_least_free(s.ctx, s.best);
    return st;
}
