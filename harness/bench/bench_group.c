/* bench_group.c -- measures units of a bench, one alone or several interleaved. See bench.h. */
#include <unistd.h>

#include "harness/bench/bench.h"
#include "harness/cli/interrupt.h"
#include "harness/job/worker.h"

static const int64_t STEP_LIMIT_NS = INT64_C(300) * 1000000000; /* of preparing or one run, without
                                                                   --time-limit */
enum { SETTLE_US = 2000 }; /* until idle threads of the worker stop spinning */

/* One run: a unit under one planner on one backend. */
typedef struct cell {
    const mpl_planner_spec *spec;
    mpl_record *row;
    mpl_plan *plan;
    const mpl_job *job; /* of the plan: the unit's job, or the job with the given order */
    mpl_worker *worker;
    int64_t *run_ns;
    int64_t *other_ns; /* on a device whose runs alternate, or under --compare; with --workers the
                          time of several operations at once */
    int64_t *plan_ns, *self_ns; /* [repeat] with peers: times of repeated planning */
    bool skip;                  /* already in the file, or in another shard */
    bool elsewhere;             /* in another shard */
} cell;

typedef struct unit {
    uint32_t number;
    mpl_options options;
    const char *graph; /* name in rows */
    char *path;        /* owned; NULL: graph names it */
    bool absent;       /* its file is absent, or the whole unit is in another shard */
    mpl_job job;
    mpl_status opened; /* status of opening it */
    char why[sizeof((mpl_ctx *)0)->message];
    cell *cells; /* [n_specs] on the current backend; NULL: the unit failed there, or has no rows */
    mpl_exec_options exec;
    mpl_inputs inputs;
    void *reference; /* outputs of the run without memory sharing */
    mpl_worker_task task;
} unit;

typedef struct group {
    mpl_bench *bench;
    uint32_t n, backend; /* current */
    unit *unit;          /* [n] */
} group;

/* Approximate shares of a group's time at which planning and preparing end. */
static const double PLANNING = 0.1, PREPARING = 0.6;

/* Reports progress: `share` of the way from `from` to `to`, for unit u of the group. */
static void at(const group *self, const unit *u, double from, double to, double share,
               const char *what)
{
    char text[80];
    double whole = ((double)(u - self->unit) + share) / self->n;

    snprintf(text, sizeof text, "%.24s: %s", u->graph, what);
    mpl_progress_at(&self->bench->progress, self->n * self->bench->n_specs,
                    from + (to - from) * whole, text);
}

static mpl_bench_run run_of(const group *self, uint32_t planner)
{
    return (mpl_bench_run){self->backend, planner};
}

/* ---- rows and plans ---- */

/* Makes a row for each planner of a unit and finds those in the file; *missing: one is not. */
static mpl_status make_rows(const group *self, unit *u, bool *missing)
{
    mpl_bench *bench = self->bench;

    MPL_PASS(mpl_new(bench->ctx, u->cells, bench->n_specs));
    for (uint32_t i = 0; i < bench->n_specs; i++) {
        cell *c = &u->cells[i];

        c->spec = &bench->spec[i];
        c->elsewhere = c->skip = !mpl_bench_is_mine(bench, u->number, self->backend, i);
        if (c->elsewhere)
            continue;
        MPL_PASS(mpl_job_row(bench->ctx, &u->options, &u->job, c->spec, &c->row));
        mpl_record_text(c->row, MPL_FIELD_suite, bench->suite.name);
        MPL_PASS(mpl_bench_is_done(bench, c->row, &c->skip));
        *missing |= !c->skip;
    }
    return MPL_OK;
}

/* Runs that are compared with a peer, or interleaved, must be measured together. There all rows are
 * taken from the file, or none. */
static mpl_status take_rows(const group *self, unit *u, bool missing)
{
    mpl_bench *bench = self->bench;

    for (uint32_t i = 0; i < bench->n_specs; i++) {
        cell *c = &u->cells[i];

        c->skip &= c->elsewhere || !missing || (bench->n_peers == 0 && bench->turns == 1);
        if (c->skip && !c->elsewhere)
            MPL_PASS(mpl_bench_take_done(bench, run_of(self, i), c->row));
    }
    return MPL_OK;
}

/* Plans with all planners and makes their rows. A failed planner is a row; only memory, the disk
 * and interrupts end the bench. */
static void plan_cells(const group *self, unit *u)
{
    const mpl_bench *bench = self->bench;

    for (uint32_t i = 0; i < bench->n_specs && !mpl_interrupted(); i++) {
        cell *c = &u->cells[i];

        if (c->skip)
            continue;
        at(self, u, 0, PLANNING, (double)i / bench->n_specs, c->spec->planner->name);
        mpl_job_plan(bench->ctx, &u->options, &u->job, c->spec, &c->row, &c->plan, &c->job);
    }
}

static bool wants_run(const cell *self)
{
    return !self->skip && self->plan != NULL && mpl_record_is(self->row, MPL_FIELD_status, "ok");
}

/* Next to a peer, times planning again with all planners interleaved, so that background load
 * affects them equally. */
static mpl_status plan_in_turns(const group *self, unit *u)
{
    const mpl_bench *bench = self->bench;
    uint32_t repeat = bench->repeat;
    int64_t median = 0;

    for (uint32_t i = 0; i < bench->n_specs; i++)
        MPL_PASS(mpl_new_each(bench->ctx, repeat, u->cells[i].plan_ns, u->cells[i].self_ns));
    for (uint32_t r = 0; r < repeat; r++)
        for (uint32_t i = 0; i < bench->n_specs && !mpl_interrupted(); i++) {
            cell *c = &u->cells[i];

            if (!wants_run(c))
                continue;
            at(self, u, 0, PLANNING, (r + (double)i / bench->n_specs) / repeat,
               c->spec->planner->name);
            mpl_job_plan_again(bench->ctx, &u->options, c->job, c->spec, c->row, &c->plan_ns[r],
                               &c->self_ns[r]);
        }
    for (uint32_t i = 0; i < bench->n_specs; i++) {
        cell *c = &u->cells[i];

        if (!wants_run(c))
            continue;
        mpl_record_ints(c->row, MPL_FIELD_plan_each_ns, repeat, c->plan_ns);
        if (mpl_record_median(c->row, MPL_FIELD_plan_each_ns, &median))
            mpl_record_int(c->row, MPL_FIELD_plan_ns, (uint64_t)median);
        if (c->self_ns[0] > 0)
            mpl_record_ints(c->row, MPL_FIELD_self_ns, repeat, c->self_ns);
    }
    return MPL_OK;
}

/* ---- executions ---- */

/* Maps an index over all cells, unit by unit, to its unit. */
static unit *unit_at(const group *self, uint32_t i)
{
    return &self->unit[i / self->bench->n_specs];
}

/* The cell if it is to be executed; otherwise NULL. */
static cell *to_run(const group *self, uint32_t i)
{
    const unit *u = unit_at(self, i);
    cell *c = u->cells != NULL ? &u->cells[i % self->bench->n_specs] : NULL;

    return c != NULL && u->job.backend != NULL && u->job.source.graph != NULL && wants_run(c)
               ? c
               : NULL;
}

/* Runs a unit once without memory sharing. If that fails, all its runs fail. */
static mpl_status run_reference(const group *self, unit *u)
{
    mpl_status st = MPL_OK;
    mpl_ctx *ctx = self->bench->ctx;
    mpl_worker_task unshared = u->task;
    mpl_worker *worker = NULL;

    unshared.plan = NULL;
    MPL_TRY(mpl_worker_start(ctx, &unshared, &worker));
    if (mpl_worker_wait(worker)) {
        memcpy(u->reference, mpl_worker_outputs(worker), mpl_outputs_bytes(u->job.source.graph));
        goto out;
    }
    for (uint32_t i = 0; i < self->bench->n_specs; i++)
        if (wants_run(&u->cells[i]))
            mpl_row_fail(u->cells[i].row, mpl_worker_status(worker), mpl_worker_reason(worker));
out:
    mpl_worker_free(ctx, worker);
    return st;
}

/* Makes the inputs and the reference outputs. */
static mpl_status prepare_runs(const group *self, unit *u)
{
    mpl_ctx *ctx = self->bench->ctx;
    const mpl_options *options = &u->options;

    u->task = (mpl_worker_task){.job = &u->job,
                                .options = &u->exec,
                                .command = options,
                                .inputs = &u->inputs,
                                .n_threads = mpl_job_threads(options, &u->job.machine),
                                .device = options->device,
                                .limit_ns = options->given[MPL_OPT_time_limit]
                                                ? mpl_seconds_ns(options->time_limit)
                                                : STEP_LIMIT_NS};
    MPL_PASS(mpl_measure_options(ctx, options, &u->exec));
    MPL_PASS(mpl_inputs_make(ctx, options, &u->job, &u->inputs));
    if ((u->reference = mpl_alloc(ctx, mpl_outputs_bytes(u->job.source.graph), 1)) == NULL)
        MPL_PASS(MPL_EMEM);
    at(self, u, PLANNING, PREPARING, 0, "nothing shared");
    return run_reference(self, u);
}

/* Writes a worker's results into the cell's row. */
static void finish_run(const group *self, const unit *u, cell *c, uint32_t turns)
{
    mpl_bench *bench = self->bench;
    const mpl_measured *measured = mpl_worker_measured(c->worker);
    double error;

    if (mpl_worker_status(c->worker) != NULL) {
        mpl_row_fail(c->row, mpl_worker_status(c->worker), mpl_worker_reason(c->worker));
        return;
    }
    error = mpl_outputs_error(u->job.source.graph, mpl_worker_outputs(c->worker), u->reference);
    if (error > MPL_REL_TOLERANCE) {
        mpl_row_fail(c->row, "refused", "outputs differ from those of the run that shares nothing");
    } else if (mpl_measure_check(bench->ctx, measured) != MPL_OK) {
        mpl_row_fail(c->row, "refused", bench->ctx->message);
    } else {
        mpl_measure_fields(measured, c->row);
        if (bench->repeat > 0)
            mpl_record_ints(c->row, MPL_FIELD_run_ns, bench->repeat, c->run_ns);
        if (bench->repeat > 0)
            mpl_record_int(c->row, MPL_FIELD_turns, turns);
        if (bench->repeat > 0 && u->options.workers > 1)
            mpl_record_ints(c->row, MPL_FIELD_concurrent_ns, bench->repeat, c->other_ns);
        if (bench->repeat > 0 && measured->facts.two_ways)
            mpl_record_ints(c->row, MPL_FIELD_replay_ns, bench->repeat, c->other_ns);
        if (bench->repeat > 0 && measured->malloc_bytes > 0)
            mpl_record_ints(c->row, MPL_FIELD_malloc_ns, bench->repeat, c->other_ns);
    }
    mpl_record_int(c->row, MPL_FIELD_repeat, bench->repeat);
    mpl_record_text(c->row, MPL_FIELD_outputs, mpl_outputs_word(error));
    mpl_record_real(c->row, MPL_FIELD_max_rel_error, error);
}

static mpl_status start_worker(const group *self, unit *u, cell *c)
{
    mpl_ctx *ctx = self->bench->ctx;
    mpl_worker_task task = u->task;

    task.plan = c->plan;
    task.job = c->job;
    MPL_PASS(mpl_new_each(ctx, self->bench->repeat, c->run_ns, c->other_ns));
    at(self, u, PLANNING, PREPARING, (double)(c - u->cells) / self->bench->n_specs,
       c->spec->planner->name);
    MPL_PASS(mpl_worker_start(ctx, &task, &c->worker));
    mpl_worker_wait(c->worker);
    return MPL_OK;
}

/* Executes cells first .. end - 1: prepares them in sequence, then interleaves the repeats. */
static mpl_status run_cells(const group *self, uint32_t first, uint32_t end)
{
    mpl_status st = MPL_OK;
    uint32_t repeat = self->bench->repeat, turns = 0;
    cell *c;

    for (uint32_t i = first; i < end && !mpl_interrupted(); i++) {
        if ((c = to_run(self, i)) == NULL)
            continue;
        MPL_TRY(start_worker(self, unit_at(self, i), c));
        turns += mpl_worker_status(c->worker) == NULL;
    }
    for (uint32_t r = 0; r < repeat && !mpl_interrupted(); r++) {
        at(self, self->unit, PREPARING, PREPARING + (1 - PREPARING) * self->n, (double)r / repeat,
           "timed runs");
        for (uint32_t i = first; i < end; i++)
            if ((c = to_run(self, i)) != NULL && c->worker != NULL &&
                mpl_worker_status(c->worker) == NULL) {
                usleep(SETTLE_US);
                mpl_worker_run(c->worker, &c->run_ns[r], &c->other_ns[r]);
            }
    }
    for (uint32_t i = first; i < end && !mpl_interrupted(); i++)
        if ((c = to_run(self, i)) != NULL && c->worker != NULL)
            finish_run(self, unit_at(self, i), c, turns);
out:
    for (uint32_t i = first; i < end; i++) {
        unit *u = unit_at(self, i);

        if (u->cells == NULL)
            continue;
        c = &u->cells[i % self->bench->n_specs];
        mpl_worker_free(self->bench->ctx, c->worker);
        c->worker = NULL;
    }
    return st;
}

/* Memory of a worker: weights, counted twice for the library's own copies, and the arena. [byte] */
static uint64_t worker_bytes(const unit *self, const cell *c)
{
    const mpl_graph *g = self->job.source.graph;
    uint64_t weights = self->job.map->pinned_bytes;

    for (mpl_value v = 0; v < g->n_values; v++)
        weights += g->value_role[v] == MPL_WEIGHT ? g->value_bytes[v] : 0;
    return 2 * weights + c->plan->peak_bytes;
}

/* End of the range of workers from `first` that together fit half of the memory. */
static uint32_t fitting(const group *self, uint32_t first)
{
    uint64_t used = 0;
    uint32_t i = first;

    for (; i < self->n * self->bench->n_specs; i++) {
        const unit *u = unit_at(self, i);
        const cell *c = to_run(self, i);

        if (c == NULL)
            continue;
        used += worker_bytes(u, c);
        if (used > u->job.machine.memory_bytes / 2 && i > first)
            break;
    }
    return i;
}

static mpl_status run_units(const group *self)
{
    uint32_t n = self->n * self->bench->n_specs;
    const unit *last = NULL;

    for (uint32_t i = 0; i < n && !mpl_interrupted(); i++) {
        if (to_run(self, i) == NULL || unit_at(self, i) == last)
            continue;
        last = unit_at(self, i);
        MPL_PASS(prepare_runs(self, unit_at(self, i)));
    }
    for (uint32_t i = 0, end; i < n && !mpl_interrupted(); i = end) {
        end = fitting(self, i);
        if (end < n && self->n > 1)
            mpl_progress_line(&self->bench->progress,
                              "%s: not by turns with all: their workers need too much memory",
                              unit_at(self, end)->graph);
        MPL_PASS(run_cells(self, i, end));
    }
    return MPL_OK;
}

/* ---- units ---- */

/* Makes a failure row for each planner of a unit that failed as a whole on this backend. */
static mpl_status fail_all(const group *self, unit *u, mpl_status how)
{
    mpl_status st = MPL_OK;
    mpl_bench *bench = self->bench;
    mpl_record *row = NULL;

    u->job.backend = bench->backend[self->backend];
    for (uint32_t i = 0; i < bench->n_specs; i++) {
        if (!mpl_bench_is_mine(bench, u->number, self->backend, i))
            continue;
        MPL_TRY(mpl_job_row(bench->ctx, &u->options, &u->job, &bench->spec[i], &row));
        mpl_record_text(row, MPL_FIELD_suite, bench->suite.name);
        /* no planner ran yet, so the file or the options are wrong */
        mpl_row_fail(row, how == MPL_EINPUT ? "input" : mpl_row_status(how), u->why);
        MPL_TRY(mpl_bench_finish_row(bench, run_of(self, i), &row));
        mpl_record_free(bench->ctx, row);
        row = NULL;
    }
out:
    mpl_record_free(bench->ctx, row);
    return st;
}

/* Makes the unit's problem for this backend. A separate process asks for workspaces. */
static mpl_status prepare_problem(const group *self, unit *u)
{
    mpl_ctx *ctx = self->bench->ctx;
    mpl_status st = MPL_OK;
    const mpl_backend *backend =
        u->job.source.problem != NULL ? NULL : self->bench->backend[self->backend];
    uint64_t *workspaces = NULL;

    if (backend != NULL && mpl_backend_absent(backend) != NULL)
        MPL_FAIL(ctx, MPL_EUNAVAIL, "backend %s: %s", backend->name, mpl_backend_absent(backend));
    MPL_TRY(mpl_worker_workspaces(ctx, &u->options, backend, &u->job, &workspaces));
    MPL_TRY(mpl_job_problem(ctx, &u->options, backend, workspaces, &u->job));
out:
    mpl_free(ctx, workspaces);
    return st;
}

/* Finishes the rows of a unit that was measured or taken from the file. */
static mpl_status finish_unit(const group *self, unit *u)
{
    mpl_bench *bench = self->bench;
    uint32_t ok = 0, there = 0, mine = 0;

    for (uint32_t i = 0; i < bench->n_specs && !mpl_interrupted(); i++) {
        cell *c = &u->cells[i];

        there += c->skip && !c->elsewhere;
        mine += !c->elsewhere;
        if (c->skip)
            continue;
        ok += mpl_record_is(c->row, MPL_FIELD_status, "ok");
        MPL_PASS(mpl_bench_finish_row(bench, run_of(self, i), &c->row));
    }
    if (!mpl_interrupted() && !bench->progress.terminal)
        mpl_progress_line(
            &bench->progress,
            "%" PRIu32 "/%" PRIu32 "  %s, %s: %" PRIu32 " rows ok, %" PRIu32 " there already",
            bench->progress.done + mine, bench->progress.total, u->graph,
            u->job.backend != NULL ? u->job.backend->name : "planned only", ok, there);
    return MPL_OK;
}

static void cells_fini(const group *self, unit *u)
{
    mpl_ctx *ctx = self->bench->ctx;

    for (uint32_t i = 0; u->cells != NULL && i < self->bench->n_specs; i++) {
        cell *c = &u->cells[i];

        mpl_record_free(ctx, c->row);
        mpl_plan_free(ctx, c->plan);
        mpl_free_each(ctx, c->run_ns, c->other_ns, c->plan_ns, c->self_ns);
    }
    mpl_free(ctx, u->cells);
    u->cells = NULL;
    mpl_inputs_fini(ctx, &u->inputs);
    mpl_free(ctx, u->reference);
    u->reference = NULL;
}

/* Makes the rows of every unit on the current backend, or takes them from the file. */
static mpl_status begin_units(const group *self)
{
    bool missing = false;

    for (uint32_t i = 0; i < self->n && !mpl_interrupted(); i++) {
        unit *u = &self->unit[i];
        bool list = u->job.source.problem != NULL; /* a list is only planned, and only once */
        mpl_status how = u->opened;

        if (u->absent || (list && self->backend > 0))
            continue;
        mpl_progress_at(&self->bench->progress, 0, 0, u->graph);
        if (how == MPL_OK && (how = prepare_problem(self, u)) != MPL_OK)
            snprintf(u->why, sizeof u->why, "%s", self->bench->ctx->message);
        if (how == MPL_OK)
            MPL_PASS(make_rows(self, u, &missing));
        else
            MPL_PASS(fail_all(self, u, how));
    }
    for (uint32_t i = 0; i < self->n; i++)
        if (self->unit[i].cells != NULL)
            MPL_PASS(take_rows(self, &self->unit[i], missing));
    return MPL_OK;
}

/* Measures all units on the current backend. */
static mpl_status bench_units(const group *self)
{
    mpl_status st = MPL_OK;
    mpl_bench *bench = self->bench;

    MPL_TRY(begin_units(self));
    for (uint32_t i = 0; i < self->n && !mpl_interrupted(); i++) {
        if (self->unit[i].cells == NULL)
            continue;
        plan_cells(self, &self->unit[i]);
        if (bench->n_peers > 0 && !mpl_interrupted())
            MPL_TRY(plan_in_turns(self, &self->unit[i]));
    }
    MPL_TRY(run_units(self));
    for (uint32_t i = 0; i < self->n && !mpl_interrupted(); i++) {
        if (self->unit[i].cells != NULL)
            MPL_TRY(finish_unit(self, &self->unit[i]));
        for (uint32_t p = 0; p < bench->n_specs && !self->unit[i].absent; p++)
            bench->progress.done +=
                mpl_bench_is_mine(bench, self->unit[i].number, self->backend, p);
    }
out:
    for (uint32_t i = 0; i < self->n; i++)
        cells_fini(self, &self->unit[i]);
    return st;
}

/* Reports a skipped file; a worker tells its parent. */
static void tell_skip(mpl_bench *bench, const char *file)
{
    if (bench->crew != NULL)
        fprintf(bench->crew,
                "skip: no %s here; --data names the folder, scripts/data.sh brings it\n", file);
    else
        mpl_progress_line(&bench->progress,
                          "skip: no %s here; --data names the folder, scripts/data.sh brings it",
                          file);
}

/* Whether the unit's file is absent; reports it once for consecutive units of the file. If absent,
 * takes the path over. */
static mpl_status skip_absent(mpl_bench *bench, unit *u)
{
    mpl_status st = MPL_OK;
    char *file = NULL;
    size_t n = mpl_suite_file_length(u->path);

    MPL_TRY(mpl_new(bench->ctx, file, n + 1));
    memcpy(file, u->path, n);
    u->absent = access(file, R_OK) != 0;
    if (!u->absent)
        goto out;
    if (bench->skipped == NULL || mpl_suite_file_length(bench->skipped) != n ||
        strncmp(bench->skipped, file, n) != 0)
        tell_skip(bench, file);
    mpl_free(bench->ctx, bench->skipped);
    bench->skipped = u->path;
    u->path = NULL;
    bench->progress.done += mpl_bench_count_mine(bench, u->number);
out:
    mpl_free(bench->ctx, file);
    return st;
}

uint32_t mpl_bench_count_mine(const mpl_bench *bench, uint32_t number)
{
    uint32_t n = 0;

    for (uint32_t k = 0; k < bench->n_backends; k++)
        for (uint32_t p = 0; p < bench->n_specs; p++)
            n += mpl_bench_is_mine(bench, number, k, p);
    return n;
}

static mpl_status open_unit(mpl_bench *bench, uint32_t number, unit *u)
{
    mpl_ctx *ctx = bench->ctx;
    const char *graph = bench->suite.graph.item[number / bench->safeties.n];

    *u = (unit){.number = number, .graph = mpl_suite_graph_name(graph)};
    u->absent = mpl_bench_count_mine(bench, number) == 0;
    if (!u->absent)
        MPL_PASS(mpl_suite_graph_path(bench->ctx, bench->options, graph, &u->path));
    if (u->path != NULL)
        MPL_PASS(skip_absent(bench, u));
    if (u->absent)
        return MPL_OK;
    MPL_PASS(mpl_bench_unit_options(bench, number, &u->options));
    u->opened = mpl_job_open(ctx, &u->options, u->path != NULL ? u->path : u->graph, &u->job);
    u->job.text = u->graph; /* for the rows of a failed unit */
    snprintf(u->why, sizeof u->why, "%s", ctx->message);
    if (u->opened != MPL_OK)
        MPL_PASS(mpl_machine_get(ctx, &u->job.machine));
    return MPL_OK;
}

mpl_status mpl_bench_group(mpl_bench *bench, uint32_t first, uint32_t n)
{
    mpl_status st = MPL_OK;
    group g = {.bench = bench, .n = n};

    MPL_TRY(mpl_new(bench->ctx, g.unit, n));
    for (uint32_t i = 0; i < n && !mpl_interrupted(); i++)
        MPL_TRY(open_unit(bench, first + i, &g.unit[i]));
    for (; g.backend < bench->n_backends && !mpl_interrupted(); g.backend++)
        MPL_TRY(bench_units(&g));
out:
    for (uint32_t i = 0; g.unit != NULL && i < n; i++) {
        mpl_job_fini(bench->ctx, &g.unit[i].job);
        mpl_free(bench->ctx, g.unit[i].path);
    }
    mpl_free(bench->ctx, g.unit);
    return st;
}
