/* eager_job.c -- the steps of memplan eager. See eager_job.h. */
#include "harness/eager/eager_job.h"

#include <stdlib.h>

#include "graphs/core/size.h"
#include "harness/cli/quote.h"

enum { STEPS = 3, MOST_SHAPES = 10000, MOST_PLANS = 100000 };

/* ---- what is asked for ---- */

/* "NAME=N,N,..". */
static mpl_status parse_shapes(mpl_ctx *ctx, const char *text, mpl_eager *e)
{
    const char *at = text != NULL ? strchr(text, '=') : NULL;

    if (text == NULL)
        return MPL_OK;
    if (at == NULL || at == text)
        return MPL_REFUSE(ctx, "--shapes: '%.100s' is not NAME=N,N,..", text);
    MPL_PASS(mpl_copy_text(ctx, e->shape_name, text));
    e->shape_name[at - text] = '\0';
    MPL_PASS(mpl_new(ctx, e->shape, strlen(at)));
    do {
        char number[24];
        uint64_t value;

        snprintf(number, sizeof number, "%.*s", (int)strcspn(at + 1, ","), at + 1);
        MPL_PASS(mpl_parse_count(ctx, "--shapes", number, 0, INT32_MAX, &value));
        if (e->n_shapes == MOST_SHAPES)
            return MPL_REFUSE(ctx, "--shapes: more than %d sizes", MOST_SHAPES);
        e->shape[e->n_shapes++] = (int64_t)value;
        at += 1 + strcspn(at + 1, ",");
    } while (*at == ',');
    return MPL_OK;
}

static mpl_status choose_planner(mpl_ctx *ctx, const mpl_options *options, mpl_eager *e)
{
    const char *name = options->planner != NULL ? options->planner : "exact";

    e->planner = mpl_planner_find(name);
    if (e->planner == NULL)
        return MPL_REFUSE(ctx,
                          "eager: '%.100s' is no planner of memplan list planners; parameters are "
                          "not taken here",
                          name);
    return MPL_OK;
}

static mpl_status open_tape(mpl_ctx *ctx, const mpl_options *options, mpl_eager *e)
{
    mpl_device_options device = {.n_threads = (uint32_t)options->threads};
    mpl_tape_options o = {
        .planner = e->planner, .n_plans = (uint32_t)options->plans, .checked = options->checked};

    if ((o.allocator = mpl_allocator_find(e->allocator)) == NULL)
        return MPL_REFUSE(ctx,
                          "--allocator: no allocator '%.60s'; memplan list allocators tells of "
                          "them, all takes each",
                          e->allocator);
    if (options->given[MPL_OPT_budget])
        o.budget_ticks = options->budget;
    MPL_PASS(mpl_backend_by_option(
        ctx, options->backend != NULL ? options->backend : mpl_backend_default()->name,
        &o.backend));
    MPL_PASS(o.backend->open(ctx, &device, &e->dev));
    o.dev = e->dev;
    e->backend = o.backend;
    for (uint32_t i = 0; i < e->n_programs; i++)
        e->program[i].job.backend = o.backend;
    return mpl_tape_new(ctx, &o, &e->tape);
}

/* ---- programs ---- */

static mpl_status open_program(mpl_ctx *ctx, const mpl_options *options, const mpl_eager *e,
                               const int64_t *size, mpl_eager_program *p)
{
    const char *name = e->shape_name;

    MPL_PASS(mpl_one_shape_make(ctx, options, options->args.item[0], size != NULL, &name, size,
                                &p->shape));
    MPL_PASS(mpl_job_open(ctx, &p->shape.options, p->shape.graph, &p->job));
    if (p->job.source.graph == NULL)
        return MPL_REFUSE(ctx, "eager: %s is a list of buffers: there is nothing to run",
                          options->args.item[0]);
    MPL_PASS(mpl_measure_options(ctx, options, &p->exec_options));
    p->exec_options.work_limit = p->job.work_limit;
    return mpl_inputs_make(ctx, options, &p->job, &p->inputs);
}

/* Each size has one program, whose steps use the same weights. */
static mpl_status open_programs(mpl_ctx *ctx, const mpl_options *options, mpl_eager *e)
{
    uint32_t n = e->n_shapes > 0 ? e->n_shapes : 1;

    e->n_steps = options->given[MPL_OPT_iterations] ? (uint32_t)options->iterations
                 : e->n_shapes > 0                  ? e->n_shapes
                                                    : STEPS;
    if (options->iterations > INT32_MAX || e->n_steps == 0)
        return MPL_REFUSE(ctx, "eager: --iterations is a number from 1 on");
    MPL_PASS(mpl_new(ctx, e->program, n));
    MPL_PASS(mpl_new(ctx, e->step, e->n_steps));
    for (uint32_t i = 0; i < n; i++) {
        uint32_t same = 0;

        while (same < i && e->shape[same] != e->shape[i])
            same++;
        for (uint32_t s = i; s < e->n_steps; s += n)
            e->step[s] = same < i ? e->step[same] : e->n_programs;
        if (same == i && i < e->n_steps) {
            e->n_programs++;
            MPL_PASS(open_program(ctx, options, e, e->n_shapes > 0 ? &e->shape[i] : NULL,
                                  &e->program[e->n_programs - 1]));
        }
    }
    return MPL_OK;
}

/* The run that shares nothing. */
static mpl_status run_plainly(mpl_ctx *ctx, const mpl_eager *e, mpl_eager_program *p)
{
    mpl_status st = MPL_OK;
    const mpl_graph *g = p->job.source.graph;
    mpl_exec *exec = NULL;
    uint64_t bytes = mpl_outputs_bytes(g);

    if ((p->want = mpl_alloc(ctx, bytes, 1)) == NULL ||
        (p->got = mpl_alloc(ctx, bytes, 1)) == NULL ||
        (p->first = mpl_alloc(ctx, bytes, 1)) == NULL)
        MPL_TRY(MPL_EMEM);
    MPL_TRY(mpl_measure_new(ctx, &p->job, NULL, &p->exec_options, &p->inputs, e->dev, &exec));
    MPL_TRY(mpl_exec_run(exec, NULL));
    MPL_TRY(mpl_outputs_get(exec, g, p->want));
    MPL_TRY(mpl_walker_new(ctx, e->tape, g, p->job.order, &p->exec_options, &p->walker));
out:
    mpl_exec_free(ctx, exec);
    return st;
}

/* ---- steps ---- */

static void *output_at(void *arg, uint32_t i)
{
    const mpl_eager_program *p = arg;

    return (void *)(uintptr_t)mpl_outputs_at(p->job.source.graph, p->got, i);
}

/* One step, compared. */
static mpl_status take_step(mpl_ctx *ctx, mpl_eager *e, mpl_eager_program *p, int64_t *ns)
{
    const mpl_graph *g = p->job.source.graph;
    int64_t begin;
    double error;

    MPL_PASS(mpl_walker_renew(p->walker));
    begin = mpl_clock_ns();
    MPL_PASS(mpl_walker_step(p->walker, p->inputs.data, output_at, p));
    *ns = mpl_clock_ns() - begin;
    error = mpl_outputs_error(g, p->got, p->want);
    e->error = error > e->error ? error : e->error;
    if (!p->ran)
        memcpy(p->first, p->got, mpl_outputs_bytes(g));
    p->ran = true;
    if (mpl_outputs_error(g, p->got, p->first) != 0)
        return MPL_ERROR(ctx, MPL_EINVALID,
                         "%s: a step gives other bits than the first one of the same shapes",
                         p->job.text);
    if (e->error > MPL_REL_TOLERANCE)
        return MPL_ERROR(ctx, MPL_EINVALID,
                         "%s: outputs differ from the run that shares nothing: relative error %.3g",
                         p->job.text, e->error);
    return MPL_OK;
}

/* The largest plan so far. */
static void note_plans(mpl_eager *e)
{
    mpl_trace_facts t;

    for (uint32_t i = 0; mpl_tape_trace(e->tape, i, &t); i++)
        if (!e->planned || t.plan_bytes > e->plan_bytes) {
            e->planned = true;
            e->plan_bytes = t.plan_bytes;
            e->bound_bytes = t.bound_bytes;
            e->claim = t.claim;
        }
}

/* Relations between the byte counts that hold for every run. malloc serves the whole process and
 * takes no new memory for blocks that were free in its heap, so its figure may be below the live
 * bytes. */
static mpl_status check_bytes(mpl_ctx *ctx, const mpl_eager *e)
{
    const mpl_online_facts *f = &e->facts.online;
    bool is_real = mpl_allocator_find(e->allocator)->is_real;

    if ((is_real || f->reserved_bytes >= f->live_peak_bytes) &&
        f->live_peak_bytes >= e->bound_bytes &&
        (e->facts.arena_bytes == e->plan_bytes ||
         (e->facts.n_evictions > 0 && e->facts.arena_bytes < e->plan_bytes)))
        return MPL_OK;
    return MPL_ERROR(ctx, MPL_EINVALID,
                     "eager: %" PRIu64 " bytes reserved, %" PRIu64 " alive, %" PRIu64
                     " that must be alive; %" PRIu64 " planned in %" PRIu64 ": out of order",
                     f->reserved_bytes, f->live_peak_bytes, e->bound_bytes, e->plan_bytes,
                     e->facts.arena_bytes);
}

/* All steps once more, all of them eagerly, from an allocator that holds nothing, with operations
 * that are prepared: what the allocator takes is then its own choice alone. */
static mpl_status watch_allocator(mpl_ctx *ctx, mpl_eager *e)
{
    int64_t ns;

    MPL_PASS(mpl_tape_reopen(e->tape));
    mpl_tape_forgo(e->tape, true);
    for (uint32_t s = 0; s < e->n_steps; s++)
        MPL_PASS(take_step(ctx, e, &e->program[e->step[s]], &ns));
    mpl_tape_forgo(e->tape, false);
    e->facts.online = mpl_tape_facts_of(e->tape).online;
    return MPL_OK;
}

/* Eagerly and by the plan in turns; what follows no plan is not timed as if it did. */
static mpl_status time_steps(mpl_ctx *ctx, const mpl_options *options, mpl_eager *e)
{
    mpl_eager_program *p = &e->program[e->step[e->n_steps - 1]];
    uint64_t n_hits;

    MPL_PASS(mpl_new_each(ctx, options->repeat, e->eager_ns, e->memoised_ns));
    for (uint64_t i = 0; i < options->repeat; i++) {
        mpl_tape_forgo(e->tape, true);
        MPL_PASS(take_step(ctx, e, p, &e->eager_ns[i]));
        mpl_tape_forgo(e->tape, false);
        n_hits = mpl_tape_facts_of(e->tape).n_hits;
        if (options->plans > 0)
            MPL_PASS(take_step(ctx, e, p, &e->memoised_ns[i]));
        if (mpl_tape_facts_of(e->tape).n_hits == n_hits)
            e->memoised_ns[i] = -1;
        e->n_timed++;
    }
    return MPL_OK;
}

mpl_status mpl_eager_run(mpl_ctx *ctx, const mpl_options *options, mpl_eager *e)
{
    int64_t ns;

    MPL_PASS(choose_planner(ctx, options, e));
    MPL_PASS(parse_shapes(ctx, options->shapes, e));
    if (options->plans > MOST_PLANS)
        return MPL_REFUSE(ctx, "--plans: at most %d are kept", MOST_PLANS);
    MPL_PASS(open_programs(ctx, options, e));
    MPL_PASS(open_tape(ctx, options, e));
    for (uint32_t i = 0; i < e->n_programs; i++)
        MPL_PASS(run_plainly(ctx, e, &e->program[i]));
    for (uint32_t s = 0; s < e->n_steps; s++) {
        MPL_PASS(take_step(ctx, e, &e->program[e->step[s]], &ns));
        note_plans(e);
    }
    e->facts = mpl_tape_facts_of(e->tape);
    MPL_PASS(watch_allocator(ctx, e));
    MPL_PASS(check_bytes(ctx, e));
    return time_steps(ctx, options, e);
}

void mpl_eager_fini(mpl_ctx *ctx, mpl_eager *e)
{
    for (uint32_t i = 0; e->program != NULL && i < e->n_programs; i++) {
        mpl_eager_program *p = &e->program[i];

        mpl_walker_free(ctx, p->walker);
        mpl_inputs_fini(ctx, &p->inputs);
        mpl_job_fini(ctx, &p->job);
        mpl_one_shape_fini(ctx, &p->shape);
        mpl_free_each(ctx, p->want, p->got, p->first);
    }
    mpl_tape_free(ctx, e->tape);
    if (e->dev != NULL)
        e->backend->close(e->dev);
    mpl_free_each(ctx, e->program, e->shape, e->shape_name, e->step, e->eager_ns, e->memoised_ns);
}
