/* least_base.c -- plans of one graph under several options; the lowest is kept. See least_job.h. */
#include "harness/least/least_job.h"

#include "planners/search/least.h"

/* The streams are those of the given order, whatever the search finds. */
static mpl_status assign_streams(mpl_ctx *ctx, mpl_job *job)
{
    mpl_status st = MPL_OK;
    mpl_op *order = NULL;

    MPL_TRY(mpl_new(ctx, order, job->source.graph->n_ops));
    MPL_TRY(mpl_order_of(ctx, job->source.graph, mpl_order_find("given"), order));
    job->order = order;
    st = mpl_job_streams(ctx, job);
    job->order = NULL;
out:
    mpl_free(ctx, order);
    return st;
}

mpl_status mpl_least_base_open(mpl_ctx *ctx, const mpl_options *options, const char *graph,
                               mpl_job *job, mpl_least_base *out)
{
    *out = (mpl_least_base){.ctx = ctx, .job = job};
    MPL_PASS(mpl_job_read(ctx, options, graph, job));
    if (job->source.graph == NULL)
        return MPL_REFUSE(
            ctx,
            "least: %.200s is a list of buffers; it has no operations to order; memplan plan "
            "places it",
            graph);
    MPL_PASS(mpl_job_passes(ctx, options, job));
    MPL_PASS(assign_streams(ctx, job));
    MPL_PASS(mpl_backend_by_option(ctx, options->backend, &out->backend));
    return mpl_job_ask_workspaces(ctx, options, out->backend, job, &out->workspace_bytes);
}

void mpl_least_base_fini(mpl_least_base *base)
{
    mpl_free(base->ctx, base->workspace_bytes);
    mpl_plan_choices_fini(base->ctx, &base->choices);
    mpl_plan_free(base->ctx, base->plan);
    *base = (mpl_least_base){0};
}

static mpl_status copy_choices(mpl_ctx *ctx, uint32_t n_ops, const mpl_plan_choices *from,
                               mpl_plan_choices *to)
{
    mpl_status st = MPL_OK;
    mpl_plan_choices made = {0};

    MPL_TRY(mpl_new_each(ctx, n_ops, made.order, made.shared, made.copied));
    memcpy(made.order, from->order, n_ops * sizeof *made.order);
    memcpy(made.shared, from->shared, n_ops);
    memcpy(made.copied, from->copied, n_ops);
    *to = made;
    made = (mpl_plan_choices){0};
out:
    mpl_plan_choices_fini(ctx, &made);
    return st;
}

/* Gives the job the choices, and makes its problem anew. */
static mpl_status choose(mpl_least_base *base, const mpl_options *options, mpl_plan_choices *taken)
{
    mpl_job *job = base->job;

    job->order = NULL; /* the choices own it */
    mpl_plan_choices_fini(base->ctx, &job->choices);
    mpl_job_order_chosen(taken, job);
    return mpl_job_problem(base->ctx, options, base->backend, base->workspace_bytes, job);
}

/* Verifies a plan of the job's problem, and keeps it if none so far is lower: of two equal plans
 * the later one copies less. */
static mpl_status judge(mpl_least_base *base, const mpl_options *options, mpl_plan **plan)
{
    mpl_job *job = base->job;

    MPL_PASS(mpl_verify_all(base->ctx, job->source.graph, job->map, job->problem, *plan));
    if (base->plan != NULL && base->plan->peak_bytes < (*plan)->peak_bytes)
        return MPL_OK;
    mpl_plan_choices_fini(base->ctx, &base->choices);
    MPL_PASS(copy_choices(base->ctx, job->source.graph->n_ops, &job->choices, &base->choices));
    mpl_plan_free(base->ctx, base->plan);
    base->plan = *plan, *plan = NULL;
    base->options = *options;
    return MPL_OK;
}

/* The given order, with concats decided for it or copied, and splits that share. */
static mpl_status choose_given(mpl_least_base *base, const mpl_options *options, bool concats,
                               mpl_plan_choices *out)
{
    const mpl_graph *g = base->job->source.graph;
    mpl_problem_options po;
    mpl_concat_found found;

    MPL_PASS(mpl_job_problem_options(base->ctx, options, base->backend, base->job, &po));
    po.op_workspace_bytes = base->workspace_bytes;
    MPL_PASS(mpl_new_each(base->ctx, g->n_ops, out->order, out->shared, out->copied));
    MPL_PASS(mpl_order_of(base->ctx, g, mpl_order_find("given"), out->order));
    if (concats && po.concat == MPL_CONCAT_AUTO)
        MPL_PASS(mpl_concat_decide(base->ctx, g, out->order, &po, out->shared, &found));
    return MPL_OK;
}

mpl_status mpl_least_try_given(mpl_least_base *base, const mpl_options *options,
                               const char *planner, uint64_t ticks, bool concats)
{
    mpl_status st = MPL_OK;
    mpl_plan_choices choices = {0};
    mpl_plan *plan = NULL;
    mpl_run run;

    MPL_TRY(choose_given(base, options, concats, &choices));
    MPL_TRY(choose(base, options, &choices));
    run = mpl_run_default(base->ctx);
    run.seed = options->seed;
    run.budget_ticks = mpl_min_u64(ticks, options->budget);
    MPL_TRY(mpl_planner_run(mpl_planner_find(planner), &run, base->job->problem, &plan));
    MPL_TRY(judge(base, options, &plan));
out:
    mpl_plan_choices_fini(base->ctx, &choices);
    mpl_plan_free(base->ctx, plan);
    return st;
}

/* Hands progress on; whether to go on. */
static bool hear(void *arg, uint64_t planned, uint64_t bound)
{
    const mpl_watch *watch = arg;

    if (watch->progress != NULL && planned != UINT64_MAX)
        watch->progress(watch->arg, planned, bound);
    return watch->stop == NULL || *watch->stop == 0;
}

mpl_status mpl_least_try_search(mpl_least_base *base, const mpl_options *options,
                                int64_t deadline_ns, mpl_lowest *facts)
{
    mpl_status st = MPL_OK;
    mpl_least *least = NULL;
    mpl_plan_choices choices;
    mpl_problem_options po;
    mpl_order_run run;

    MPL_TRY(mpl_job_problem_options(base->ctx, options, base->backend, base->job, &po));
    po.op_workspace_bytes = base->workspace_bytes;
    run = mpl_order_run_default(base->ctx);
    run.options = &po;
    run.seed = options->seed;
    run.budget_ticks = options->budget;
    run.deadline_ns = deadline_ns;
    run.stop = options->watch != NULL ? options->watch->stop : NULL;
    MPL_TRY(mpl_least_new(&run, base->job->source.graph, options->watch != NULL ? hear : NULL,
                          (void *)options->watch, &least));
    facts->bound_bytes = least->bound_bytes;
    facts->bound_by = least->method;
    facts->ticks += least->ticks;
    facts->by_clock |= least->stopped_by_clock;
    facts->by_caller |= least->stopped_by_caller;
    choices = (mpl_plan_choices){least->order, least->shared, least->copied};
    least->order = NULL, least->shared = least->copied = NULL;
    MPL_TRY(choose(base, options, &choices));
    if (mpl_problem_hash(base->job->problem) != mpl_problem_hash(least->problem))
        MPL_FAIL(base->ctx, MPL_EINVALID,
                 "%.200s: the choices of the search make another problem than the one it planned",
                 base->job->text);
    MPL_TRY(judge(base, options, &least->plan));
out:
    mpl_least_free(base->ctx, least);
    return st;
}

mpl_status mpl_least_base_settle(mpl_least_base *base, mpl_plan **plan, mpl_options *options)
{
    mpl_status st = choose(base, &base->options, &base->choices);

    if (st == MPL_OK) {
        *options = base->options;
        *plan = base->plan, base->plan = NULL;
    }
    return st;
}
