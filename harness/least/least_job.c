/* least_job.c -- the least memory of one GRAPH, and what each freedom saves. See least_job.h.
 *
 * Idea     A plan of few freedoms is a plan of more. So freedoms are added one by one, from a plan
 *          that shares nothing, and the lowest plan so far is what all freedoms up to there give.
 *          Freedoms that change operations are kept only where they lower it. */
#include "harness/least/least_job.h"

#include "graphs/core/size.h"
#include "graphs/orders/work.h"

/* The work of a step of the given order: what it shows is where bytes go, not the last of them. */
#define STEP_TICKS UINT64_C(20000000)

static bool is_late(const mpl_options *options, int64_t deadline_ns)
{
    return mpl_run_late(&(mpl_run){.watch = options->watch, .deadline_ns = deadline_ns});
}

static mpl_fall *add_fall(mpl_lowest *lowest, const char *step, uint64_t bytes)
{
    mpl_fall *fall = &lowest->fall[lowest->n_falls++];

    mpl_assert(lowest->n_falls <= MPL_MOST_FALLS);
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
static mpl_status fall_given(mpl_lowest *lowest, mpl_least_base *base, const mpl_options *options,
                             int64_t deadline_ns)
{
    mpl_options o = *options;

    o.in_place = o.views = false;
    MPL_PASS(step_given(base, &o, deadline_ns, false));
    add_fall(lowest, "nothing shared", lowest->job.naive_bytes);
    add_fall(lowest, "lifetimes", base->plan->peak_bytes);
    if (options->in_place) {
        o.in_place = true;
        MPL_PASS(step_given(base, &o, deadline_ns, false));
        add_fall(lowest, "in place", base->plan->peak_bytes);
    }
    if (options->views) {
        o.views = true;
        MPL_PASS(step_given(base, &o, deadline_ns, true));
        add_fall(lowest, "views and concats", base->plan->peak_bytes);
    }
    return MPL_OK;
}

/* ---- the freedoms by default ---- */

static mpl_status find_base(mpl_ctx *ctx, const mpl_options *options, const char *graph,
                            int64_t deadline_ns, mpl_lowest *lowest)
{
    mpl_status st = MPL_OK;
    mpl_least_base base = {.ctx = ctx};

    MPL_TRY(mpl_least_base_open(ctx, options, graph, &lowest->job, &base));
    MPL_TRY(fall_given(lowest, &base, options, deadline_ns));
    MPL_TRY(mpl_least_try_search(&base, options, deadline_ns, lowest));
    MPL_TRY(mpl_least_base_settle(&base, &lowest->plan, &lowest->options));
    add_fall(lowest, lowest->step = "order", lowest->plan->peak_bytes);
    if (lowest->plan->peak_bytes < lowest->bound_bytes)
        MPL_FAIL(ctx, MPL_EINVALID,
                 "%.200s: a verified plan has %" PRIu64 " bytes, below the %" PRIu64
                 " proved by %s: the proof is wrong",
                 graph, lowest->plan->peak_bytes, lowest->bound_bytes, lowest->bound_by);
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

/* Takes over the trial's plan, its job and its options. What moves between two memories may cost
 * less in the graph before. */
static void take(mpl_lowest *lowest, const char *step, mpl_lowest *trial)
{
    mpl_job job = lowest->job;
    mpl_plan *plan = lowest->plan;

    lowest->job = trial->job, trial->job = job;
    if (lowest->options.memories != NULL) {
        lowest->earlier[lowest->n_earlier++] = (mpl_on_the_way){lowest->step, lowest->options, job};
        trial->job = (mpl_job){0};
    }
    lowest->step = step;
    lowest->plan = trial->plan, trial->plan = plan;
    lowest->options = trial->options;
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
                              char *text, int64_t deadline_ns, mpl_options *with,
                              mpl_lowest *lowest)
{
    mpl_status st = MPL_OK;
    mpl_fall *fall = add_fall(lowest, freedom->text, lowest->plan->peak_bytes);
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
    lowest->ticks += trial.ticks;
    lowest->by_clock |= trial.by_clock;
    lowest->by_caller |= trial.by_caller;
    put_price(&lowest->job, &trial.job, fall);
    fall->tried_bytes = trial.plan->peak_bytes;
    fall->is_kept = trial.plan->peak_bytes < lowest->plan->peak_bytes;
    if (fall->is_kept) {
        take(lowest, freedom->text, &trial);
        *with = o;
        fall->bytes = lowest->plan->peak_bytes;
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

/* What ended the search early. */
static void note_end(const mpl_options *options, mpl_lowest *lowest)
{
    bool by_caller = is_late(options, INT64_MAX);

    lowest->by_caller |= by_caller;
    lowest->by_clock |= !by_caller;
}

/* The step of a freedom that there was no time for. */
static void skip_freedom(const mpl_options *options, const char *step, mpl_lowest *lowest)
{
    mpl_fall *fall = add_fall(lowest, step, lowest->plan->peak_bytes);

    fall->is_added = true;
    snprintf(fall->why, sizeof fall->why, "the search ended before");
    note_end(options, lowest);
}

/* ---- two memories ---- */

#define MEMORIES "residency"

/* Whether a costs less than b: in stall first, with a bandwidth. */
static bool costs_less(const mpl_residency_plan *a, const mpl_residency_plan *b)
{
    return a->stall_ns != b->stall_ns ? a->stall_ns < b->stall_ns : a->cost < b->cost;
}

/* Plans residency of a graph on the way in this order, and keeps it if it costs less than what
 * lowest has so far. */
static mpl_status try_order(mpl_run *run, const mpl_on_the_way *graph, const mpl_op *order,
                            mpl_fall *fall, mpl_lowest *lowest)
{
    mpl_residency_job trial;
    mpl_status st = mpl_residency_job_of(run, &graph->options, &graph->job, order,
                                         lowest->plan->peak_bytes, &trial);

    lowest->ticks += run->ticks;
    if (st == MPL_EINPUT || st == MPL_ELIMIT) { /* loops, what no step can use, no offsets */
        if (!mpl_lowest_moves(lowest))
            snprintf(fall->why, sizeof fall->why, "%.199s", run->ctx->message);
        st = MPL_OK;
    } else if (st == MPL_OK && (!mpl_lowest_moves(lowest) ||
                                costs_less(trial.found.plan, lowest->residency.found.plan))) {
        mpl_residency_job before = lowest->residency;

        lowest->residency = trial, trial = before;
        fall->why[0] = '\0';
        fall->of = graph->step;
    }
    mpl_residency_job_fini(run->ctx, &trial);
    return st;
}

/* The order of the graph's plan, and the given one. */
static mpl_status try_orders(mpl_run *run, const mpl_on_the_way *graph, mpl_fall *fall,
                             mpl_lowest *lowest)
{
    mpl_status st = MPL_OK;
    mpl_ctx *ctx = run->ctx;
    const mpl_graph *g = graph->job.source.graph;
    mpl_op *given = NULL;

    MPL_TRY(mpl_new(ctx, given, g->n_ops));
    MPL_TRY(mpl_order_of(ctx, g, mpl_order_find("given"), given));
    MPL_TRY(try_order(run, graph, graph->job.order, fall, lowest));
    if (memcmp(given, graph->job.order, g->n_ops * sizeof *given) != 0 && !mpl_run_late(run))
        MPL_TRY(try_order(run, graph, given, fall, lowest));
out:
    mpl_free(ctx, given);
    return st;
}

/* The graphs on the way in a fast memory of less than the lowest plan. */
static mpl_status try_memories(mpl_ctx *ctx, int64_t deadline_ns, mpl_lowest *lowest)
{
    mpl_fall *fall = add_fall(lowest, MEMORIES, lowest->plan->peak_bytes);
    const mpl_on_the_way last = {lowest->step, lowest->options, lowest->job};
    mpl_params none = {0};
    uint64_t capacity;
    mpl_run run;

    fall->is_added = true;
    MPL_PASS(mpl_residency_job_check(ctx, &lowest->options, lowest->plan->peak_bytes, &capacity));
    if (lowest->plan->peak_bytes <= capacity) {
        snprintf(fall->why, sizeof fall->why, "the plan fits in %s of fast memory as it is",
                 mpl_sized(capacity).text);
        return MPL_OK;
    }
    mpl_asked_run(ctx, &lowest->options, &none, &run);
    run.deadline_ns = deadline_ns;
    MPL_PASS(try_orders(&run, &last, fall, lowest));
    for (uint32_t i = lowest->n_earlier; i-- > 0 && !mpl_run_late(&run);)
        MPL_PASS(try_orders(&run, &lowest->earlier[i], fall, lowest));
    if (mpl_run_late(&run))
        note_end(&lowest->options, lowest);
    if (!mpl_lowest_moves(lowest))
        return MPL_OK;
    fall->moves = &lowest->residency.found;
    fall->is_kept = true;
    fall->is_elsewhere = fall->of != lowest->step;
    fall->bytes = fall->tried_bytes = fall->moves->plan->fast_bytes;
    return MPL_OK;
}

mpl_status mpl_lowest_find(mpl_ctx *ctx, const mpl_options *options, const char *graph,
                           mpl_lowest *out)
{
    mpl_options with = *options;
    int64_t begin = mpl_clock_ns(), end = INT64_MAX;
    bool moves = options->memories != NULL;
    uint64_t capacity;

    *out = (mpl_lowest){.options = *options};
    if (moves)
        MPL_PASS(mpl_residency_job_check(ctx, options, 0, &capacity));
    MPL_PASS(mpl_freedoms_parse(ctx, options, out->freedom, &out->n_freedoms));
    if (options->given[MPL_OPT_time_limit])
        end = begin + mpl_seconds_ns(options->time_limit);
    MPL_PASS(find_base(ctx, options, graph, share(end, out->n_freedoms + moves + 1), out));
    for (uint32_t i = 0; i < out->n_freedoms; i++) {
        if (is_late(options, end))
            skip_freedom(options, out->freedom[i].text, out);
        else
            MPL_PASS(try_freedom(ctx, graph, &out->freedom[i], out->text[i],
                                 share(end, out->n_freedoms + moves - i), &with, out));
    }
    if (moves && is_late(options, end))
        skip_freedom(options, MEMORIES, out);
    else if (moves)
        MPL_PASS(try_memories(ctx, end, out));
    out->ns = mpl_clock_ns() - begin;
    return MPL_OK;
}

void mpl_lowest_fini(mpl_ctx *ctx, mpl_lowest *lowest)
{
    mpl_residency_job_fini(ctx, &lowest->residency);
    for (uint32_t i = 0; i < lowest->n_earlier; i++)
        mpl_job_fini(ctx, &lowest->earlier[i].job);
    mpl_plan_free(ctx, lowest->plan);
    mpl_job_fini(ctx, &lowest->job);
    *lowest = (mpl_lowest){0};
}
