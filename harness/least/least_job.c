/* least_job.c -- the least memory of one GRAPH, and what each freedom saves. See least_job.h.
 *
 * Idea     A plan of few freedoms is a plan of more. So freedoms are added one by one, from a plan
 *          that shares nothing, and the lowest plan so far is what all freedoms up to there give.
 *          Freedoms that change operations are kept only where they lower it. */
#include "harness/least/least_job.h"

#include "graphs/orders/work.h"

/* The work of a step of the given order: what it shows is where bytes go, not the last of them. */
#define STEP_TICKS UINT64_C(20000000)

static bool is_late(const mpl_options *options, int64_t deadline_ns)
{
    return mpl_run_late(&(mpl_run){.watch = options->watch, .deadline_ns = deadline_ns});
}

static mpl_fall *add_fall(mpl_lowest *x, const char *step, uint64_t bytes)
{
    mpl_fall *fall = &x->fall[x->n_falls++];

    mpl_assert(x->n_falls <= MPL_MOST_FALLS);
    *fall = (mpl_fall){.bytes = bytes};
    memcpy(fall->step, step, strnlen(step, sizeof fall->step - 1)); /* the rest is 0 */
    return fall;
}

/* ---- the given order ---- */

/* A step in the given order; a quick one where the time is over. */
static mpl_status step_given(mpl_least_base *base, const mpl_options *options, int64_t deadline_ns,
                             bool concats)
{
    const char *planner = is_late(options, deadline_ns) ? "greedy_size" : "portfolio";

    return mpl_least_try_given(base, options, planner, STEP_TICKS, concats);
}

/* Nothing shared, lifetimes, in place, views and concats. */
static mpl_status fall_given(mpl_lowest *x, mpl_least_base *base, const mpl_options *options,
                             int64_t deadline_ns)
{
    mpl_options o = *options;

    o.in_place = o.views = false;
    MPL_PASS(step_given(base, &o, deadline_ns, false));
    add_fall(x, "nothing shared", x->job.naive_bytes);
    add_fall(x, "lifetimes", base->plan->peak_bytes);
    if (options->in_place) {
        o.in_place = true;
        MPL_PASS(step_given(base, &o, deadline_ns, false));
        add_fall(x, "in place", base->plan->peak_bytes);
    }
    if (options->views) {
        o.views = true;
        MPL_PASS(step_given(base, &o, deadline_ns, true));
        add_fall(x, "views and concats", base->plan->peak_bytes);
    }
    return MPL_OK;
}

/* ---- the freedoms by default ---- */

static mpl_status find_base(mpl_ctx *ctx, const mpl_options *options, const char *graph,
                            int64_t deadline_ns, mpl_lowest *x)
{
    mpl_status st = MPL_OK;
    mpl_least_base base = {.ctx = ctx};

    MPL_TRY(mpl_least_base_open(ctx, options, graph, &x->job, &base));
    MPL_TRY(fall_given(x, &base, options, deadline_ns));
    MPL_TRY(mpl_least_try_search(&base, options, deadline_ns, x));
    MPL_TRY(mpl_least_base_settle(&base, &x->plan, &x->options));
    add_fall(x, "order", x->plan->peak_bytes);
    if (x->plan->peak_bytes < x->bound_bytes)
        MPL_FAIL(ctx, MPL_EINVALID,
                 "%.200s: a verified plan has %" PRIu64 " bytes, below the %" PRIu64
                 " proved by %s: the proof is wrong",
                 graph, x->plan->peak_bytes, x->bound_bytes, x->bound_by);
out:
    mpl_least_base_fini(&base);
    return st;
}

/* ---- added freedoms ---- */

static uint64_t work_of(const mpl_graph *g)
{
    uint64_t work = 0;

    for (mpl_op op = 0; op < g->n_ops; op++)
        work = mpl_add_work(work, mpl_op_work(g, op));
    return work;
}

static uint64_t reordered(const mpl_graph *g)
{
    uint64_t bytes = 0;

    for (mpl_op op = 0; op < g->n_ops; op++)
        if (g->op_kind[op] == MPL_OP_reorder)
            bytes += g->value_bytes[mpl_op_output(g, op, 0)];
    return bytes;
}

/* What the freedom costs, once its graph is open. */
static void put_price(const mpl_job *before, const mpl_job *job, mpl_fall *fall)
{
    fall->n_ops_before = before->source.graph->n_ops;
    fall->n_ops = job->source.graph->n_ops;
    fall->work_before = work_of(before->source.graph);
    fall->work = work_of(job->source.graph);
    fall->reordered_bytes = reordered(job->source.graph);
    fall->n_again = job->recomputed.facts.n_again;
    if (job->tiled.facts.n_regions > 0) { /* what patches copy is no work of theirs */
        fall->work_before = job->tiled.facts.plain_work;
        fall->work = job->tiled.facts.work;
    }
    if (job->recomputed.n_taped > 0) { /* a loop's work is that of all its rounds */
        fall->work_before = job->recomputed.facts.all_work;
        fall->work = mpl_add_work(fall->work_before, job->recomputed.facts.extra_work);
    }
}

/* Takes over the trial's plan, its job and its options. */
static void take(mpl_lowest *x, mpl_lowest *trial)
{
    mpl_job job = x->job;
    mpl_plan *plan = x->plan;

    x->job = trial->job, trial->job = job;
    x->plan = trial->plan, trial->plan = plan;
    x->options = trial->options;
}

/* Opens GRAPH with the freedom. What fails now is the freedom's, as GRAPH was open without it. */
static mpl_status open_trial(mpl_ctx *ctx, const char *graph, const mpl_options *options,
                             mpl_fall *fall, mpl_job *job, mpl_least_base *base)
{
    mpl_status st = mpl_least_base_open(ctx, options, graph, job, base);

    if (st == MPL_EINPUT || st == MPL_EINVALID || st == MPL_ELIMIT || st == MPL_EUNAVAIL) {
        snprintf(fall->why, sizeof fall->why, "%.199s", ctx->message);
        st = MPL_OK;
    }
    return st;
}

/* Searches with the freedom; `with`: what is asked for with the freedoms kept so far, and with this
 * one if it is kept. */
static mpl_status try_freedom(mpl_ctx *ctx, const char *graph, const mpl_freedom *freedom,
                              char *text, int64_t deadline_ns, mpl_options *with, mpl_lowest *x)
{
    mpl_status st = MPL_OK;
    mpl_fall *fall = add_fall(x, freedom->text, x->plan->peak_bytes);
    mpl_least_base base = {.ctx = ctx};
    mpl_lowest trial = {0};
    mpl_options o = *with;

    fall->is_added = true;
    MPL_TRY(freedom->kind->ask(ctx, freedom, graph, deadline_ns, &o, text, fall->why));
    if (fall->why[0] == '\0')
        MPL_TRY(open_trial(ctx, graph, &o, fall, &trial.job, &base));
    if (fall->why[0] != '\0')
        goto out;
    MPL_TRY(mpl_least_try_search(&base, &o, deadline_ns, &trial));
    MPL_TRY(mpl_least_base_settle(&base, &trial.plan, &trial.options));
    x->ticks += trial.ticks;
    x->by_clock |= trial.by_clock;
    x->by_caller |= trial.by_caller;
    put_price(&x->job, &trial.job, fall);
    fall->tried_bytes = trial.plan->peak_bytes;
    fall->is_kept = trial.plan->peak_bytes < x->plan->peak_bytes;
    if (fall->is_kept) {
        take(x, &trial);
        *with = o;
        fall->bytes = x->plan->peak_bytes;
    }
out:
    mpl_least_base_fini(&base);
    mpl_lowest_fini(ctx, &trial);
    return st;
}

/* An equal share of the time that is left for each of n searches. */
static int64_t share(int64_t deadline_ns, uint32_t n)
{
    int64_t now = mpl_clock_ns();

    return deadline_ns == INT64_MAX || deadline_ns <= now ? deadline_ns
                                                          : now + (deadline_ns - now) / n;
}

/* The step of a freedom that there was no time for. */
static void skip_freedom(const mpl_options *options, const mpl_freedom *freedom, mpl_lowest *x)
{
    mpl_fall *fall = add_fall(x, freedom->text, x->plan->peak_bytes);
    bool by_caller = is_late(options, INT64_MAX);

    fall->is_added = true;
    snprintf(fall->why, sizeof fall->why, "the search ended before");
    x->by_caller |= by_caller;
    x->by_clock |= !by_caller;
}

mpl_status mpl_lowest_find(mpl_ctx *ctx, const mpl_options *options, const char *graph,
                           mpl_lowest *out)
{
    mpl_options with = *options;
    int64_t begin = mpl_clock_ns(), end = INT64_MAX;

    *out = (mpl_lowest){.options = *options};
    MPL_PASS(mpl_freedoms_parse(ctx, options, out->freedom, &out->n_freedoms));
    if (options->given[MPL_OPT_time_limit])
        end = begin + mpl_seconds_ns(options->time_limit);
    MPL_PASS(find_base(ctx, options, graph, share(end, out->n_freedoms + 1), out));
    for (uint32_t i = 0; i < out->n_freedoms; i++) {
        if (is_late(options, end))
            skip_freedom(options, &out->freedom[i], out);
        else
            MPL_PASS(try_freedom(ctx, graph, &out->freedom[i], out->text[i],
                                 share(end, out->n_freedoms - i), &with, out));
    }
    out->ns = mpl_clock_ns() - begin;
    return MPL_OK;
}

void mpl_lowest_fini(mpl_ctx *ctx, mpl_lowest *lowest)
{
    mpl_plan_free(ctx, lowest->plan);
    mpl_job_fini(ctx, &lowest->job);
    *lowest = (mpl_lowest){0};
}
