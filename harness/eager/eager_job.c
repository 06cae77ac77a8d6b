/* eager_job.c -- the steps of memplan eager. See eager_job.h. */
#include "harness/eager/eager_job.h"

#include <stdlib.h>

#include "graphs/core/size.h"
#include "harness/cli/quote.h"

enum { STEPS = 3, MOST_SHAPES = 10000, MOST_PLANS = 100000 };

/* ---- what is asked for ---- */

/* "NAME=N,N,..". */
static mpl_status parse_shapes(mpl_ctx *ctx, const char *text, mpl_eager *eager)
{
    const char *at = text != NULL ? strchr(text, '=') : NULL;

    if (text == NULL)
        return MPL_OK;
    if (at == NULL || at == text)
        return MPL_REFUSE(ctx, "--shapes: '%.100s' is not NAME=N,N,..", text);
    MPL_PASS(mpl_copy_text(ctx, eager->shape_name, text));
    eager->shape_name[at - text] = '\0';
    MPL_PASS(mpl_new(ctx, eager->shape, strlen(at)));
    do {
        char number[24];
        uint64_t value;

        snprintf(number, sizeof number, "%.*s", (int)strcspn(at + 1, ","), at + 1);
        MPL_PASS(mpl_parse_count(ctx, "--shapes", number, 0, INT32_MAX, &value));
        if (eager->n_shapes == MOST_SHAPES)
            return MPL_REFUSE(ctx, "--shapes: more than %d sizes", MOST_SHAPES);
        eager->shape[eager->n_shapes++] = (int64_t)value;
        at += 1 + strcspn(at + 1, ",");
    } while (*at == ',');
    return MPL_OK;
}

static mpl_status choose_planner(mpl_ctx *ctx, const mpl_options *options, mpl_eager *eager)
{
    const char *name = options->planner != NULL ? options->planner : "exact";

    eager->planner = mpl_planner_find(name);
    if (eager->planner == NULL)
        return MPL_REFUSE(ctx,
                          "eager: '%.100s' is no planner of memplan list planners; parameters are "
                          "not taken here",
                          name);
    return MPL_OK;
}

static mpl_status open_tape(mpl_ctx *ctx, const mpl_options *options, mpl_eager *eager)
{
    mpl_device_options device = {.n_threads = (uint32_t)options->threads};
    mpl_tape_options o = {.planner = eager->planner,
                          .n_plans = (uint32_t)options->plans,
                          .checked = options->checked};

    if ((o.allocator = mpl_allocator_find(eager->allocator)) == NULL)
        return MPL_REFUSE(ctx,
                          "--allocator: no allocator '%.60s'; memplan list allocators tells of "
                          "them, all takes each",
                          eager->allocator);
    if (options->given[MPL_OPT_budget])
        o.budget_ticks = options->budget;
    MPL_PASS(mpl_backend_by_option(
        ctx, options->backend != NULL ? options->backend : mpl_backend_default()->name,
        &o.backend));
    MPL_PASS(o.backend->open(ctx, &device, &eager->dev));
    o.dev = eager->dev;
    eager->backend = o.backend;
    for (uint32_t i = 0; i < eager->n_programs; i++)
        eager->program[i].job.backend = o.backend;
    return mpl_tape_new(ctx, &o, &eager->tape);
}

/* ---- programs ---- */

static mpl_status open_program(mpl_ctx *ctx, const mpl_options *options, const mpl_eager *eager,
                               const int64_t *size, mpl_eager_program *program)
{
    const char *name = eager->shape_name;

    MPL_PASS(mpl_one_shape_make(ctx, options, options->args.item[0], size != NULL, &name, size,
                                &program->shape));
    MPL_PASS(mpl_job_open(ctx, &program->shape.options, program->shape.graph, &program->job));
    if (program->job.source.graph == NULL)
        return MPL_REFUSE(ctx, "eager: %s is a list of buffers: there is nothing to run",
                          options->args.item[0]);
    MPL_PASS(mpl_measure_options(ctx, options, &program->exec_options));
    program->exec_options.work_limit = program->job.work_limit;
    return mpl_inputs_make(ctx, options, &program->job, &program->inputs);
}

/* Each size has one program, whose steps use the same weights. */
static mpl_status open_programs(mpl_ctx *ctx, const mpl_options *options, mpl_eager *eager)
{
    uint32_t n = eager->n_shapes > 0 ? eager->n_shapes : 1;

    eager->n_steps = options->given[MPL_OPT_iterations] ? (uint32_t)options->iterations
                     : eager->n_shapes > 0              ? eager->n_shapes
                                                        : STEPS;
    if (options->iterations > INT32_MAX || eager->n_steps == 0)
        return MPL_REFUSE(ctx, "eager: --iterations is a number from 1 on");
    MPL_PASS(mpl_new(ctx, eager->program, n));
    MPL_PASS(mpl_new(ctx, eager->step, eager->n_steps));
    for (uint32_t i = 0; i < n; i++) {
        uint32_t same = 0;

        while (same < i && eager->shape[same] != eager->shape[i])
            same++;
        for (uint32_t s = i; s < eager->n_steps; s += n)
            eager->step[s] = same < i ? eager->step[same] : eager->n_programs;
        if (same == i && i < eager->n_steps) {
            eager->n_programs++;
            MPL_PASS(open_program(ctx, options, eager,
                                  eager->n_shapes > 0 ? &eager->shape[i] : NULL,
                                  &eager->program[eager->n_programs - 1]));
        }
    }
    return MPL_OK;
}

/* The run that shares nothing. */
static mpl_status run_plainly(mpl_ctx *ctx, const mpl_eager *eager, mpl_eager_program *program)
{
    mpl_status st = MPL_OK;
    const mpl_graph *g = program->job.source.graph;
    mpl_exec *exec = NULL;
    uint64_t bytes = mpl_outputs_bytes(g);

    if ((program->want = mpl_alloc(ctx, bytes, 1)) == NULL ||
        (program->got = mpl_alloc(ctx, bytes, 1)) == NULL ||
        (program->first = mpl_alloc(ctx, bytes, 1)) == NULL)
        MPL_TRY(MPL_EMEM);
    MPL_TRY(mpl_measure_new(ctx, &program->job, NULL, &program->exec_options, &program->inputs,
                            eager->dev, &exec));
    MPL_TRY(mpl_exec_run(exec, NULL));
    MPL_TRY(mpl_outputs_get(exec, g, program->want));
    MPL_TRY(mpl_walker_new(ctx, eager->tape, g, program->job.order, &program->exec_options,
                           &program->walker));
out:
    mpl_exec_free(ctx, exec);
    return st;
}

/* ---- steps ---- */

static void *output_at(void *arg, uint32_t i)
{
    const mpl_eager_program *program = arg;

    return (void *)(uintptr_t)mpl_outputs_at(program->job.source.graph, program->got, i);
}

/* One step, compared. */
static mpl_status take_step(mpl_ctx *ctx, mpl_eager *eager, mpl_eager_program *program, int64_t *ns)
{
    const mpl_graph *g = program->job.source.graph;
    int64_t begin;
    double error;

    MPL_PASS(mpl_walker_renew(program->walker));
    begin = mpl_clock_ns();
    MPL_PASS(mpl_walker_step(program->walker, program->inputs.data, output_at, program));
    *ns = mpl_clock_ns() - begin;
    error = mpl_outputs_error(g, program->got, program->want);
    eager->error = error > eager->error ? error : eager->error;
    if (!program->ran)
        memcpy(program->first, program->got, mpl_outputs_bytes(g));
    program->ran = true;
    if (mpl_outputs_error(g, program->got, program->first) != 0)
        return MPL_ERROR(ctx, MPL_EINVALID,
                         "%s: a step gives other bits than the first one of the same shapes",
                         program->job.text);
    if (eager->error > MPL_REL_TOLERANCE)
        return MPL_ERROR(ctx, MPL_EINVALID,
                         "%s: outputs differ from the run that shares nothing: relative error %.3g",
                         program->job.text, eager->error);
    return MPL_OK;
}

/* The largest plan so far. */
static void note_plans(mpl_eager *eager)
{
    mpl_trace_facts t;

    for (uint32_t i = 0; mpl_tape_trace(eager->tape, i, &t); i++)
        if (!eager->planned || t.plan_bytes > eager->plan_bytes) {
            eager->planned = true;
            eager->plan_bytes = t.plan_bytes;
            eager->bound_bytes = t.bound_bytes;
            eager->claim = t.claim;
        }
}

/* Relations between the byte counts that hold for every run. malloc serves the whole process and
 * takes no new memory for blocks that were free in its heap, so its figure may be below the live
 * bytes. */
static mpl_status check_bytes(mpl_ctx *ctx, const mpl_eager *eager)
{
    const mpl_online_facts *facts = &eager->facts.online;
    bool is_real = mpl_allocator_find(eager->allocator)->is_real;

    if ((is_real || facts->reserved_bytes >= facts->live_peak_bytes) &&
        facts->live_peak_bytes >= eager->bound_bytes &&
        (eager->facts.arena_bytes == eager->plan_bytes ||
         (eager->facts.n_evictions > 0 && eager->facts.arena_bytes < eager->plan_bytes)))
        return MPL_OK;
    return MPL_ERROR(ctx, MPL_EINVALID,
                     "eager: %" PRIu64 " bytes reserved, %" PRIu64 " alive, %" PRIu64
                     " that must be alive; %" PRIu64 " planned in %" PRIu64 ": out of order",
                     facts->reserved_bytes, facts->live_peak_bytes, eager->bound_bytes,
                     eager->plan_bytes, eager->facts.arena_bytes);
}

/* All steps once more, all of them eagerly, from an allocator that holds nothing, with operations
 * that are prepared: what the allocator takes is then its own choice alone. */
static mpl_status watch_allocator(mpl_ctx *ctx, mpl_eager *eager)
{
    int64_t ns;

    MPL_PASS(mpl_tape_reopen(eager->tape));
    mpl_tape_forgo(eager->tape, true);
    for (uint32_t s = 0; s < eager->n_steps; s++)
        MPL_PASS(take_step(ctx, eager, &eager->program[eager->step[s]], &ns));
    mpl_tape_forgo(eager->tape, false);
    eager->facts.online = mpl_tape_facts_of(eager->tape).online;
    return MPL_OK;
}

/* Eagerly and by the plan in turns; what follows no plan is not timed as if it did. */
static mpl_status time_steps(mpl_ctx *ctx, const mpl_options *options, mpl_eager *eager)
{
    mpl_eager_program *program = &eager->program[eager->step[eager->n_steps - 1]];
    uint64_t n_hits;

    MPL_PASS(mpl_new_each(ctx, options->repeat, eager->eager_ns, eager->memoised_ns));
    for (uint64_t i = 0; i < options->repeat; i++) {
        mpl_tape_forgo(eager->tape, true);
        MPL_PASS(take_step(ctx, eager, program, &eager->eager_ns[i]));
        mpl_tape_forgo(eager->tape, false);
        n_hits = mpl_tape_facts_of(eager->tape).n_hits;
        if (options->plans > 0)
            MPL_PASS(take_step(ctx, eager, program, &eager->memoised_ns[i]));
        if (mpl_tape_facts_of(eager->tape).n_hits == n_hits)
            eager->memoised_ns[i] = -1;
        eager->n_timed++;
    }
    return MPL_OK;
}

mpl_status mpl_eager_run(mpl_ctx *ctx, const mpl_options *options, mpl_eager *eager)
{
    int64_t ns;

    MPL_PASS(choose_planner(ctx, options, eager));
    MPL_PASS(parse_shapes(ctx, options->shapes, eager));
    if (options->plans > MOST_PLANS)
        return MPL_REFUSE(ctx, "--plans: at most %d are kept", MOST_PLANS);
    MPL_PASS(open_programs(ctx, options, eager));
    MPL_PASS(open_tape(ctx, options, eager));
    for (uint32_t i = 0; i < eager->n_programs; i++)
        MPL_PASS(run_plainly(ctx, eager, &eager->program[i]));
    for (uint32_t s = 0; s < eager->n_steps; s++) {
        MPL_PASS(take_step(ctx, eager, &eager->program[eager->step[s]], &ns));
        note_plans(eager);
    }
    eager->facts = mpl_tape_facts_of(eager->tape);
    MPL_PASS(watch_allocator(ctx, eager));
    MPL_PASS(check_bytes(ctx, eager));
    return time_steps(ctx, options, eager);
}

void mpl_eager_fini(mpl_ctx *ctx, mpl_eager *eager)
{
    for (uint32_t i = 0; eager->program != NULL && i < eager->n_programs; i++) {
        mpl_eager_program *program = &eager->program[i];

        mpl_walker_free(ctx, program->walker);
        mpl_inputs_fini(ctx, &program->inputs);
        mpl_job_fini(ctx, &program->job);
        mpl_one_shape_fini(ctx, &program->shape);
        mpl_free_each(ctx, program->want, program->got, program->first);
    }
    mpl_tape_free(ctx, eager->tape);
    if (eager->dev != NULL)
        eager->backend->close(eager->dev);
    mpl_free_each(ctx, eager->program, eager->shape, eager->shape_name, eager->step,
                  eager->eager_ns, eager->memoised_ns);
}
