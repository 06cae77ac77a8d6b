/* cmd_bench.c -- memplan bench: graphs x planners x backends, one row a run.
 *
 * Per graph and backend: workspaces asked, problem made, every planner planned and verified, then the plans executed in
 * processes of their own, repeats going round over the planners, against one run that shares nothing. */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include "harness/command.h"
#include "harness/crew.h"
#include "harness/foreign.h"
#include "harness/progress.h"
#include "harness/suite.h"
#include "harness/table.h"
#include "harness/worker.h"

static const int64_t STEP_LIMIT_NS =
    INT64_C(300) * 1000000000; /* of preparing or one run, without --time-limit */
enum { SETTLE_US = 2000 };     /* idle threads of the worker before stop spinning */

/* One run of the matrix. */
typedef struct cell {
    const mpl_planner_spec *spec;
    mpl_record *row;
    mpl_plan *plan;
    mpl_worker *worker;
    int64_t *run_ns;
    int64_t *other_ns;          /* on a device whose runs alternate, or under --compare */
    int64_t *plan_ns, *self_ns; /* [repeat] with peers: of each plan in turn */
    bool skip;                  /* the file has it already, or it is another shard's */
    bool elsewhere;             /* it is another shard's */
} cell;

typedef struct bench {
    mpl_ctx *ctx;
    mpl_options *options;
    mpl_suite suite;
    uint32_t n_specs, n_peers, n_backends;
    mpl_planner_spec *spec; /* peers last */
    size_t spec_cap;
    const mpl_backend **backend; /* NULL entry: plan only */
    mpl_strings safeties;        /* a NULL item: each graph's own */
    char *safety_store;
    uint32_t shard, n_shards;
    uint32_t repeat;           /* timed runs; 0 among other workers */
    uint32_t unit, backend_at; /* at hand: graph and safety, backend */
    FILE *crew;                /* in a worker of several: rows go there; NULL: to the file */
    bool *seen;                /* [n_units * n_backends * n_specs] with workers: rows that came back */
    char **done;               /* sorted keys that the file has with status ok */
    uint32_t n_done;
    mpl_rows rows; /* of this bench, those found in the file included */
    mpl_rows old;  /* of the file */
    mpl_row_file file;
    char *path;    /* owned; NULL: --output names it */
    char *skipped; /* owned: the last graph that was not there */
    mpl_progress progress;
    bool bad; /* a row is neither ok nor unavailable */
} bench;

/* ---- what to run ---- */

/* One planner more; the array grows. */
static mpl_status add_planner(bench *b, const char *text, bool peer)
{
    mpl_status st = MPL_OK;
    mpl_planner_spec spec = {0};

    if (peer)
        MPL_TRY(mpl_planner_spec_peer(b->ctx, text, &spec));
    else
        MPL_TRY(mpl_planner_spec_parse(b->ctx, text, &spec));
    for (uint32_t i = 0; spec.foreign != NULL && i < b->n_specs; i++)
        if (b->spec[i].foreign != NULL && strcmp(b->spec[i].planner->name, spec.planner->name) == 0 &&
            b->spec[i].key.n + spec.key.n == 0)
            MPL_FAIL(b->ctx, MPL_EINPUT, "bench: two planners are named %s; %s", spec.planner->name,
                     strcmp(spec.foreign->kind, "exec") == 0 ? "name them: exec:NAME=COMMAND"
                                                             : "their files need names of their own");
    MPL_TRY(mpl_reserve(b->ctx, b->spec, b->spec_cap, (size_t)b->n_specs + 1));
    b->spec[b->n_specs++] = spec;
    b->n_peers += peer;
    memset(&spec, 0, sizeof spec);
out:
    mpl_planner_spec_fini(b->ctx, &spec);
    return st;
}

/* "a,b:x=1,y=2,c" cut into planners: a part with '=' and no ':' belongs to the planner before; exec: takes the rest. */
static mpl_status add_planners(bench *b, const char *text)
{
    mpl_ctx *ctx = b->ctx;
    mpl_status st = MPL_OK;
    const char *exec = strncmp(text, "exec:", 5) == 0 ? text : strstr(text, ",exec:");
    mpl_strings parts = {0};
    char *list = NULL, *store = NULL, one[4400];

    MPL_TRY(mpl_new(ctx, list, strlen(text) + 1));
    memcpy(list, text, exec != NULL ? (size_t)(exec - text) : strlen(text));
    if (exec != text)
        MPL_TRY(mpl_strings_split(ctx, list, "--planners", &store, &parts));
    for (uint32_t i = 0; i < parts.n;) {
        int length = snprintf(one, sizeof one, "%s", parts.item[i++]);

        while (i < parts.n && strchr(parts.item[i], '=') != NULL && strchr(parts.item[i], ':') == NULL &&
               length < (int)sizeof one)
            length += snprintf(one + length, sizeof one - (size_t)length, ",%s", parts.item[i++]);
        MPL_TRY(add_planner(b, one, false));
    }
    if (exec != NULL)
        MPL_TRY(add_planner(b, exec + (exec[0] == ','), false));
out:
    mpl_free(ctx, parts.item);
    mpl_free(ctx, store);
    mpl_free(ctx, list);
    return st;
}

static mpl_status parse_planners(bench *b)
{
    mpl_status st = MPL_OK;

    for (uint32_t i = 0; i < b->options->planners.n; i++)
        MPL_TRY(add_planners(b, b->options->planners.item[i]));
    for (uint32_t i = 0; b->options->planners.n == 0 && mpl_planners[i] != NULL; i++)
        if ((mpl_planners[i]->traits & MPL_SPREADS) == 0)
            MPL_TRY(add_planner(b, mpl_planners[i]->name, false));
    for (uint32_t i = 0; i < b->options->peer.n; i++)
        MPL_TRY(add_planner(b, b->options->peer.item[i], true));
out:
    return st;
}

static mpl_status parse_backends(bench *b)
{
    mpl_ctx *ctx = b->ctx;
    mpl_status st = MPL_OK;
    mpl_strings parts = {0};
    char *store = NULL;

    MPL_TRY(mpl_strings_split(ctx, b->options->backends != NULL ? b->options->backends : "cpu", "--backends",
                              &store, &parts));
    MPL_TRY(mpl_new(ctx, b->backend, parts.n));
    for (; b->n_backends < parts.n; b->n_backends++) {
        const char *name = parts.item[b->n_backends];

        if (strcmp(name, "none") == 0)
            continue;
        if ((b->backend[b->n_backends] = mpl_backend_find(name)) == NULL)
            MPL_FAIL(ctx, MPL_EINPUT, "--backends: no backend '%s'; see memplan list backends", name);
    }
out:
    mpl_free(ctx, parts.item);
    mpl_free(ctx, store);
    return st;
}

static mpl_status parse_safeties(bench *b)
{
    mpl_status st = MPL_OK;

    if (b->options->safeties == NULL)
        return mpl_strings_add(b->ctx, &b->safeties, b->options->safety);
    if (b->options->safety != NULL)
        MPL_FAIL(b->ctx, MPL_EINPUT, "bench: one of --safety and --safeties, not both");
    MPL_TRY(mpl_strings_split(b->ctx, b->options->safeties, "--safeties", &b->safety_store, &b->safeties));
    for (uint32_t i = 0; i < b->safeties.n; i++) {
        b->options->safety = b->safeties.item[i];
        MPL_TRY(mpl_job_check_options(b->ctx, b->options));
    }
out:
    return st;
}

/* Workers share the machine, so that runs on all cores and peers in turns cannot be timed. */
static mpl_status check_jobs(bench *b)
{
    mpl_status st = MPL_OK;
    mpl_options *o = b->options;
    mpl_machine machine;

    b->repeat = (uint32_t)o->repeat;
    if (o->jobs <= 1)
        goto out;
    MPL_TRY(mpl_machine_get(b->ctx, &machine));
    if (o->jobs > machine.n_cores || o->threads > machine.n_cores / o->jobs)
        MPL_FAIL(b->ctx, MPL_EINPUT,
                 "--jobs: %" PRIu64 " workers need a core for each of their threads; there are %" PRIu32,
                 o->jobs, machine.n_cores);
    if (o->peer.n > 0)
        MPL_FAIL(b->ctx, MPL_EINPUT, "--jobs: with --peer, plans are timed in turns: one worker");
    b->repeat = 0;
out:
    return st;
}

static uint32_t n_units(const bench *b)
{
    return b->suite.graph.n * b->safeties.n;
}

/* Whether run p of a unit on a backend is this shard's; what is compared with a peer stays together. */
static bool is_mine(const bench *b, uint32_t unit, uint32_t backend, uint32_t p)
{
    uint64_t group = (uint64_t)unit * b->n_backends + backend;

    return mpl_shard_of(b->n_peers > 0 ? group : group * b->n_specs + p, b->n_shards) == b->shard;
}

static uint32_t count_mine(const bench *b, uint32_t unit)
{
    uint32_t n = 0;

    for (uint32_t k = 0; k < b->n_backends; k++)
        for (uint32_t p = 0; p < b->n_specs; p++)
            n += is_mine(b, unit, k, p);
    return n;
}

/* ---- --resume ---- */

static int by_text(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static bool is_ok(const mpl_record *row)
{
    const char *status = mpl_record_get_text(row, MPL_FIELD_status);

    return status != NULL && strcmp(status, "ok") == 0;
}

/* Whether a row of the file will do: one that was executed among other workers has no times. */
static bool will_do(const bench *b, const mpl_record *row)
{
    return is_ok(row) && (b->options->jobs > 1 || mpl_record_is_null(row, MPL_FIELD_outputs) ||
                          !mpl_record_is_null(row, MPL_FIELD_run_ns));
}

static mpl_status read_done(bench *b)
{
    mpl_status st = MPL_OK;

    MPL_TRY(mpl_rows_read(b->ctx, b->file.path, &b->old));
    MPL_TRY(mpl_rows_last(b->ctx, &b->old));
    MPL_TRY(mpl_new(b->ctx, b->done, b->old.n));
    for (uint32_t i = 0; i < b->old.n; i++)
        if (will_do(b, b->old.row[i])) {
            MPL_TRY(mpl_record_key(b->ctx, b->old.row[i], &b->done[b->n_done]));
            b->n_done++;
        }
    qsort(b->done, b->n_done, sizeof *b->done, by_text);
out:
    return st;
}

/* Whether the file has the run of `row` already. */
static mpl_status is_done(bench *b, const mpl_record *row, bool *found)
{
    mpl_status st = MPL_OK;
    char *key = NULL;

    *found = false;
    if (b->n_done == 0)
        goto out;
    MPL_TRY(mpl_record_key(b->ctx, row, &key));
    *found = bsearch(&key, b->done, b->n_done, sizeof *b->done, by_text) != NULL;
out:
    mpl_free(b->ctx, key);
    return st;
}

/* A worker's row, on its way to the file: "BACKEND PLANNER OLD {row}". */
static mpl_status tell(bench *b, uint32_t p, bool old, const mpl_record *row)
{
    mpl_status st = MPL_OK;
    char *json = NULL;

    MPL_TRY(mpl_record_write(b->ctx, row, &json));
    fprintf(b->crew, "%" PRIu32 " %" PRIu32 " %d %s\n", b->backend_at, p, old, json);
    if (fflush(b->crew) != 0)
        MPL_FAIL(b->ctx, MPL_EMEM, "a row could not be handed on: %s", strerror(errno));
out:
    mpl_free(b->ctx, json);
    return st;
}

/* The row of the file that has the run of `row`, by planner p, joins those of this bench. */
static mpl_status take_done(bench *b, uint32_t p, const mpl_record *row)
{
    mpl_status st = MPL_OK;
    char *key = NULL, *other = NULL;
    mpl_record *copy = NULL;
    bool found = false;

    MPL_TRY(mpl_record_key(b->ctx, row, &key));
    for (uint32_t i = 0; !found && i < b->old.n; i++) {
        mpl_free(b->ctx, other);
        other = NULL;
        MPL_TRY(mpl_record_key(b->ctx, b->old.row[i], &other));
        found = strcmp(other, key) == 0;
        if (!found)
            continue;
        MPL_TRY(mpl_record_copy(b->ctx, b->old.row[i], &copy));
        if (b->crew != NULL)
            MPL_TRY(tell(b, p, true, copy));
        MPL_TRY(mpl_rows_take(b->ctx, &b->rows, &copy));
    }
out:
    mpl_record_free(b->ctx, copy);
    mpl_free(b->ctx, key);
    mpl_free(b->ctx, other);
    return st;
}

/* ---- one graph on one backend ---- */

/* The row is finished: on the disk, to stdout if asked for, among those of this bench. */
static mpl_status keep_row(bench *b, mpl_record **row)
{
    mpl_status st = MPL_OK;
    const char *status = mpl_record_get_text(*row, MPL_FIELD_status);
    const char *reason = mpl_record_get_text(*row, MPL_FIELD_reason);
    char *json = NULL;

    MPL_TRY(mpl_row_file_append(b->ctx, &b->file, *row));
    if (strcmp(status, "ok") != 0)
        mpl_progress_line(&b->progress, "memplan: %s, %s: %s: %s", mpl_record_get_text(*row, MPL_FIELD_graph),
                          mpl_record_get_text(*row, MPL_FIELD_planner), status, reason != NULL ? reason : "");
    b->bad |= strcmp(status, "ok") != 0 && strcmp(status, "unavailable") != 0;
    if (b->options->json) {
        MPL_TRY(mpl_record_write(b->ctx, *row, &json));
        printf("%s\n", json);
    }
    MPL_TRY(mpl_rows_take(b->ctx, &b->rows, row));
out:
    mpl_free(b->ctx, json);
    return st;
}

static mpl_status finish_row(bench *b, cell *c)
{
    if (b->crew != NULL)
        return tell(b, (uint32_t)(c->spec - b->spec), false, c->row);
    return keep_row(b, &c->row);
}

/* Shares of the time of one graph at which planning and preparing end, about. */
static const double PLANNING = 0.1, PREPARING = 0.6;

static void at(const bench *b, double share, const mpl_job *job, const char *what)
{
    char text[80];

    snprintf(text, sizeof text, "%.24s: %s", job->text, what);
    mpl_progress_at(&b->progress, b->n_specs, share, text);
}

/* A row for each planner, and which of them the file has. What is compared with a peer is measured beside it: there, all or
 * none is taken from the file. */
static mpl_status make_rows(bench *b, const mpl_job *job, cell *cells)
{
    mpl_status st = MPL_OK;
    uint32_t n_skip = 0;

    for (uint32_t i = 0; i < b->n_specs; i++) {
        cell *c = &cells[i];

        c->spec = &b->spec[i];
        c->elsewhere = c->skip = !is_mine(b, b->unit, b->backend_at, i);
        if (c->elsewhere)
            continue;
        MPL_TRY(mpl_job_row(b->ctx, b->options, job, c->spec, &c->row));
        mpl_record_text(c->row, MPL_FIELD_suite, b->suite.name);
        MPL_TRY(is_done(b, c->row, &c->skip));
        n_skip += c->skip;
    }
    for (uint32_t i = 0; i < b->n_specs; i++) {
        if (cells[i].elsewhere)
            continue;
        cells[i].skip &= b->n_peers == 0 || n_skip == b->n_specs;
        if (cells[i].skip)
            MPL_TRY(take_done(b, i, cells[i].row));
    }
out:
    return st;
}

/* Rows and plans of all planners. What fails is a row; only memory, the disk and interrupts end the bench. */
static mpl_status plan_cells(bench *b, const mpl_job *job, cell *cells)
{
    mpl_status st = MPL_OK;

    MPL_TRY(make_rows(b, job, cells));
    for (uint32_t i = 0; i < b->n_specs && !mpl_interrupted(); i++) {
        cell *c = &cells[i];

        if (c->skip)
            continue;
        at(b, PLANNING * i / b->n_specs, job, c->spec->planner->name);
        mpl_job_plan(b->ctx, b->options, job, c->spec, c->row, &c->plan);
    }
out:
    return st;
}

/* Beside a peer, plans are timed anew, and in turns: what else the machine does meets all of them alike. */
static mpl_status time_in_turns(bench *b, const mpl_job *job, cell *cells)
{
    mpl_status st = MPL_OK;
    uint32_t repeat = b->repeat;
    int64_t median = 0;

    for (uint32_t i = 0; i < b->n_specs; i++) {
        MPL_TRY(mpl_new(b->ctx, cells[i].plan_ns, repeat));
        MPL_TRY(mpl_new(b->ctx, cells[i].self_ns, repeat));
    }
    for (uint32_t r = 0; r < repeat; r++)
        for (uint32_t i = 0; i < b->n_specs && !mpl_interrupted(); i++) {
            cell *c = &cells[i];

            if (c->skip || c->plan == NULL || !is_ok(c->row))
                continue;
            at(b, PLANNING * (r + (double)i / b->n_specs) / repeat, job, c->spec->planner->name);
            mpl_job_plan_again(b->ctx, b->options, job, c->spec, c->row, &c->plan_ns[r], &c->self_ns[r]);
        }
    for (uint32_t i = 0; i < b->n_specs; i++) {
        cell *c = &cells[i];

        if (c->skip || c->plan == NULL || !is_ok(c->row))
            continue;
        mpl_record_ints(c->row, MPL_FIELD_plan_each_ns, repeat, c->plan_ns);
        if (mpl_record_median(c->row, MPL_FIELD_plan_each_ns, &median))
            mpl_record_int(c->row, MPL_FIELD_plan_ns, (uint64_t)median);
        if (c->self_ns[0] > 0)
            mpl_record_ints(c->row, MPL_FIELD_self_ns, repeat, c->self_ns);
    }
out:
    return st;
}

static bool wants_run(const cell *c)
{
    return !c->skip && c->plan != NULL && is_ok(c->row);
}

/* One run that shares nothing; outputs receives what it gave. A failure is every run's failure. */
static mpl_status run_reference(bench *b, const mpl_worker_task *task, cell *cells, void *outputs)
{
    mpl_status st = MPL_OK;
    mpl_worker_task unshared = *task;
    mpl_worker *worker = NULL;

    unshared.plan = NULL;
    MPL_TRY(mpl_worker_start(b->ctx, &unshared, &worker));
    if (mpl_worker_wait(worker)) {
        memcpy(outputs, mpl_worker_outputs(worker), mpl_outputs_bytes(task->job->source.graph));
        goto out;
    }
    for (uint32_t i = 0; i < b->n_specs; i++)
        if (wants_run(&cells[i]))
            mpl_row_fail(cells[i].row, mpl_worker_status(worker), mpl_worker_reason(worker));
out:
    mpl_worker_free(b->ctx, worker);
    return st;
}

/* What a prepared worker gave, into its row. */
static void finish_run(bench *b, const mpl_job *job, cell *c, uint32_t n_runs, const void *reference)
{
    double error;

    if (mpl_worker_status(c->worker) != NULL) {
        mpl_row_fail(c->row, mpl_worker_status(c->worker), mpl_worker_reason(c->worker));
        return;
    }
    error = mpl_outputs_error(job->source.graph, mpl_worker_outputs(c->worker), reference);
    if (error > MPL_REL_TOLERANCE) {
        mpl_row_fail(c->row, "refused", "outputs differ from those of the run that shares nothing");
    } else if (mpl_measure_check(b->ctx, mpl_worker_measured(c->worker)) != MPL_OK) {
        mpl_row_fail(c->row, "refused", b->ctx->message);
    } else {
        mpl_measure_fields(mpl_worker_measured(c->worker), c->row);
        if (n_runs > 0)
            mpl_record_ints(c->row, MPL_FIELD_run_ns, n_runs, c->run_ns);
        if (n_runs > 0 && mpl_worker_measured(c->worker)->facts.two_ways)
            mpl_record_ints(c->row, MPL_FIELD_replay_ns, n_runs, c->other_ns);
        if (n_runs > 0 && mpl_worker_measured(c->worker)->malloc_bytes > 0)
            mpl_record_ints(c->row, MPL_FIELD_malloc_ns, n_runs, c->other_ns);
    }
    mpl_record_int(c->row, MPL_FIELD_repeat, b->repeat);
    mpl_record_text(c->row, MPL_FIELD_outputs, mpl_outputs_word(error));
    mpl_record_real(c->row, MPL_FIELD_max_rel_error, error);
}

/* Executes cells[first..end): all prepared one after the other, then the repeats go round. */
static mpl_status run_group(bench *b, const mpl_worker_task *task, cell *cells, uint32_t first, uint32_t end,
                            const void *reference)
{
    mpl_status st = MPL_OK;
    uint32_t repeat = b->repeat;

    for (uint32_t i = first; i < end; i++) {
        mpl_worker_task one = *task;

        if (!wants_run(&cells[i]))
            continue;
        one.plan = cells[i].plan;
        MPL_TRY(mpl_new(b->ctx, cells[i].run_ns, repeat));
        MPL_TRY(mpl_new(b->ctx, cells[i].other_ns, repeat));
        at(b, PLANNING + (PREPARING - PLANNING) * i / b->n_specs, task->job, cells[i].spec->planner->name);
        MPL_TRY(mpl_worker_start(b->ctx, &one, &cells[i].worker));
        mpl_worker_wait(cells[i].worker);
    }
    for (uint32_t r = 0; r < repeat && !mpl_interrupted(); r++) {
        at(b, PREPARING + (1 - PREPARING) * r / repeat, task->job, "timed runs");
        for (uint32_t i = first; i < end; i++)
            if (cells[i].worker != NULL && mpl_worker_status(cells[i].worker) == NULL) {
                usleep(SETTLE_US);
                mpl_worker_run(cells[i].worker, &cells[i].run_ns[r], &cells[i].other_ns[r]);
            }
    }
    for (uint32_t i = first; i < end && !mpl_interrupted(); i++)
        if (cells[i].worker != NULL)
            finish_run(b, task->job, &cells[i], repeat, reference);
out:
    for (uint32_t i = first; i < end; i++) {
        mpl_worker_free(b->ctx, cells[i].worker);
        cells[i].worker = NULL;
    }
    return st;
}

/* Groups of workers that fit half of the memory at once: weights, twice for what a library makes of them, and the arena. */
static uint32_t group_end(const bench *b, const mpl_job *job, const cell *cells, uint32_t first)
{
    const mpl_graph *g = job->source.graph;
    uint64_t weights = job->map->pinned_bytes, room = job->machine.memory_bytes / 2, used = 0;
    uint32_t i = first;

    for (mpl_value v = 0; v < g->n_values; v++)
        weights += g->value_role[v] == MPL_WEIGHT ? g->value_bytes[v] : 0;
    for (; i < b->n_specs; i++) {
        if (!wants_run(&cells[i]))
            continue;
        used += 2 * weights + cells[i].plan->peak_bytes;
        if (used > room && i > first)
            break;
    }
    return i;
}

static mpl_status run_cells(bench *b, const mpl_job *job, cell *cells)
{
    mpl_status st = MPL_OK;
    mpl_exec_options exec_options;
    mpl_inputs inputs = {0};
    mpl_worker_task task = {.job = job,
                            .options = &exec_options,
                            .command = b->options,
                            .inputs = &inputs,
                            .n_threads = (uint32_t)b->options->threads,
                            .device = b->options->device,
                            .limit_ns = STEP_LIMIT_NS};
    void *reference = NULL;

    if (b->options->given[MPL_OPT_time_limit])
        task.limit_ns = (int64_t)((b->options->time_limit < 3e7 ? b->options->time_limit : 3e7) * 1e9);
    MPL_TRY(mpl_measure_options(b->ctx, b->options, &exec_options));
    MPL_TRY(mpl_inputs_make(b->ctx, job, &inputs));
    if ((reference = mpl_alloc(b->ctx, mpl_outputs_bytes(job->source.graph), 1)) == NULL)
        MPL_TRY(MPL_EMEM);
    at(b, PLANNING, job, "nothing shared");
    MPL_TRY(run_reference(b, &task, cells, reference));
    for (uint32_t i = 0, end; i < b->n_specs && !mpl_interrupted(); i = end) {
        end = group_end(b, job, cells, i);
        MPL_TRY(run_group(b, &task, cells, i, end, reference));
    }
out:
    mpl_inputs_fini(b->ctx, &inputs);
    mpl_free(b->ctx, reference);
    return st;
}

static mpl_status bench_problem(bench *b, mpl_job *job)
{
    mpl_status st = MPL_OK;
    cell *cells = NULL;
    uint32_t left = 0, ok = 0, there = 0, mine = 0;

    MPL_TRY(mpl_new(b->ctx, cells, b->n_specs));
    MPL_TRY(plan_cells(b, job, cells));
    if (b->n_peers > 0 && !mpl_interrupted())
        MPL_TRY(time_in_turns(b, job, cells));
    for (uint32_t i = 0; i < b->n_specs; i++)
        left += wants_run(&cells[i]);
    if (left > 0 && job->backend != NULL && job->source.graph != NULL && !mpl_interrupted())
        MPL_TRY(run_cells(b, job, cells));
    for (uint32_t i = 0; i < b->n_specs && !mpl_interrupted(); i++) {
        there += cells[i].skip && !cells[i].elsewhere;
        mine += !cells[i].elsewhere;
        if (cells[i].skip)
            continue;
        ok += is_ok(cells[i].row);
        MPL_TRY(finish_row(b, &cells[i]));
    }
    if (!mpl_interrupted() && !b->progress.terminal)
        mpl_progress_line(&b->progress,
                          "%" PRIu32 "/%" PRIu32 "  %s, %s: %" PRIu32 " rows ok, %" PRIu32 " there already",
                          b->progress.done + mine, b->progress.total, job->text,
                          job->backend != NULL ? job->backend->name : "planned only", ok, there);
out:
    for (uint32_t i = 0; cells != NULL && i < b->n_specs; i++) {
        mpl_record_free(b->ctx, cells[i].row);
        mpl_plan_free(b->ctx, cells[i].plan);
        mpl_free(b->ctx, cells[i].run_ns);
        mpl_free(b->ctx, cells[i].other_ns);
        mpl_free(b->ctx, cells[i].plan_ns);
        mpl_free(b->ctx, cells[i].self_ns);
    }
    mpl_free(b->ctx, cells);
    return st;
}

/* A graph or backend that fails as a whole: a row for each planner. */
static mpl_status fail_all(bench *b, mpl_job *job, const mpl_backend *backend, mpl_status why,
                           const char *reason)
{
    mpl_status st = MPL_OK;
    cell c = {0};

    job->backend = backend;
    for (uint32_t i = 0; i < b->n_specs; i++) {
        if (!is_mine(b, b->unit, b->backend_at, i))
            continue;
        mpl_record_free(b->ctx, c.row);
        c.row = NULL;
        c.spec = &b->spec[i];
        MPL_TRY(mpl_job_row(b->ctx, b->options, job, c.spec, &c.row));
        mpl_record_text(c.row, MPL_FIELD_suite, b->suite.name);
        mpl_row_fail(c.row, mpl_row_status(why), reason);
        MPL_TRY(finish_row(b, &c));
    }
out:
    mpl_record_free(b->ctx, c.row);
    return st;
}

/* The job's problem for one backend, its workspaces asked in a process of its own. */
static mpl_status prepare_problem(bench *b, const mpl_backend *backend, mpl_job *job)
{
    mpl_ctx *ctx = b->ctx;
    mpl_status st = MPL_OK;
    uint64_t *workspaces = NULL;

    if (backend != NULL && mpl_backend_absent(backend) != NULL)
        MPL_FAIL(ctx, MPL_EUNAVAIL, "backend %s: %s", backend->name, mpl_backend_absent(backend));
    MPL_TRY(mpl_worker_workspaces(ctx, b->options, backend, job, &workspaces));
    MPL_TRY(mpl_job_problem(ctx, b->options, backend, workspaces, job));
out:
    mpl_free(ctx, workspaces);
    return st;
}

static const char data_mark[] = "{data}/";

/* *path: owned, the file that a graph of the suite lies in below --data, twins and all; NULL: the graph is none of these.
 * *name: what rows call it, the same on every machine. */
static mpl_status find_data(bench *b, const char *graph, char **path, const char **name)
{
    mpl_status st = MPL_OK;
    const char *folder = b->options->data != NULL ? b->options->data : getenv("MEMPLAN_DATA");

    *path = NULL;
    *name = graph;
    if (strncmp(graph, data_mark, sizeof data_mark - 1) != 0)
        goto out;
    if (folder == NULL || folder[0] == '\0')
        folder = "../shared/data";
    *name = graph + sizeof data_mark - 1;
    MPL_TRY(mpl_new(b->ctx, *path, strlen(folder) + strlen(*name) + 2));
    sprintf(*path, "%s/%s", folder, *name);
out:
    return st;
}

/* Bytes of a path up to the ':' that says what becomes of the file. */
static size_t file_length(const char *path)
{
    const char *name = strrchr(path, '/');

    return (size_t)(name - path) + strcspn(name, ":");
}

/* A worker's word goes by the one who hears all. */
static void tell_skip(bench *b, const char *file)
{
    if (b->crew != NULL)
        fprintf(b->crew, "skip: no %s here; --data names the folder\n", file);
    else
        mpl_progress_line(&b->progress, "skip: no %s here; --data names the folder", file);
}

/* Whether the file of `path` is absent: that is told once, for its twins too. Takes the path over if so. */
static mpl_status skip_absent(bench *b, uint32_t unit, char **path, bool *skipped)
{
    mpl_status st = MPL_OK;
    char *file = NULL;
    size_t n = file_length(*path);

    MPL_TRY(mpl_new(b->ctx, file, n + 1));
    memcpy(file, *path, n);
    *skipped = access(file, R_OK) != 0;
    if (!*skipped)
        goto out;
    if (b->skipped == NULL || file_length(b->skipped) != n || strncmp(b->skipped, file, n) != 0)
        tell_skip(b, file);
    mpl_free(b->ctx, b->skipped);
    b->skipped = *path;
    *path = NULL;
    b->progress.done += count_mine(b, unit);
out:
    mpl_free(b->ctx, file);
    return st;
}

/* The options of one unit: those of the bench, the safety, what the graph's line of the suite has. */
static mpl_status unit_options(bench *b, uint32_t unit, mpl_options *own)
{
    mpl_status st = MPL_OK;

    *own = *b->options;
    own->safety = b->safeties.item[unit % b->safeties.n];
    MPL_TRY(mpl_suite_own(b->ctx, &b->suite, unit / b->safeties.n, own));
    MPL_TRY(mpl_job_check_options(b->ctx, own));
out:
    return st;
}

/* A graph under one safety, on every backend. */
static mpl_status bench_unit(bench *b, uint32_t unit)
{
    mpl_ctx *ctx = b->ctx;
    mpl_status st = MPL_OK, opened, how;
    const char *graph = b->suite.graph.item[unit / b->safeties.n];
    mpl_options *all = b->options, own = *all;
    mpl_job job = {0};
    char why[sizeof ctx->message], *path = NULL;
    bool skipped = false;

    if (count_mine(b, unit) == 0)
        goto out;
    MPL_TRY(find_data(b, graph, &path, &graph));
    if (path != NULL)
        MPL_TRY(skip_absent(b, unit, &path, &skipped));
    if (skipped)
        goto out;
    MPL_TRY(unit_options(b, unit, &own));
    b->options = &own;
    b->unit = unit;
    opened = mpl_job_open(ctx, b->options, path != NULL ? path : graph, &job);
    job.text = graph; /* for the rows of one that could not be opened */
    snprintf(why, sizeof why, "%s", ctx->message);
    if (opened != MPL_OK)
        MPL_TRY(mpl_machine_get(ctx, &job.machine));
    for (uint32_t k = 0; k < b->n_backends && !mpl_interrupted(); k++) {
        bool list = job.source.problem != NULL; /* cannot be executed: planned, and once is enough */

        b->backend_at = k;
        mpl_progress_at(&b->progress, 0, 0, graph);
        how = opened;
        if (opened == MPL_OK && !(list && k > 0)) {
            how = prepare_problem(b, list ? NULL : b->backend[k], &job);
            snprintf(why, sizeof why, "%s", ctx->message);
        }
        if (how != MPL_OK)
            MPL_TRY(fail_all(b, &job, b->backend[k], how, why));
        else if (!(list && k > 0))
            MPL_TRY(bench_problem(b, &job));
        for (uint32_t p = 0; p < b->n_specs; p++)
            b->progress.done += is_mine(b, unit, k, p);
    }
out:
    b->options = all;
    mpl_job_fini(ctx, &job);
    mpl_free(ctx, path);
    return st;
}

/* ---- several workers ---- */

static mpl_status worker_unit(mpl_ctx *ctx, void *arg, uint32_t unit, FILE *to)
{
    bench *b = arg;

    b->ctx = ctx;
    b->crew = to;
    b->progress.quiet = true;
    mpl_row_file_close(&b->file); /* its lock ends with the one who writes */
    return bench_unit(b, unit);
}

static mpl_status take_line(mpl_ctx *ctx, void *arg, uint32_t unit, const char *text, size_t n)
{
    mpl_status st = MPL_OK;
    bench *b = arg;
    mpl_record *row = NULL;
    uint32_t k = 0, p = 0;
    int old = 0, at = 0;

    if (strncmp(text, "skip: ", 6) == 0) {
        mpl_progress_line(&b->progress, "%s", text);
        goto out;
    }
    if (sscanf(text, "%" SCNu32 " %" SCNu32 " %d %n", &k, &p, &old, &at) != 3 || k >= b->n_backends ||
        p >= b->n_specs)
        MPL_FAIL(ctx, MPL_EINPUT, "a worker said '%.100s'", text);
    MPL_TRY(mpl_record_read(ctx, "a worker's row", text + at, n - (size_t)at, &row));
    b->seen[((size_t)unit * b->n_backends + k) * b->n_specs + p] = true;
    if (old)
        MPL_TRY(mpl_rows_take(ctx, &b->rows, &row));
    else
        MPL_TRY(keep_row(b, &row));
out:
    mpl_record_free(ctx, row);
    return st;
}

/* Rows that a worker owed when it died say so. */
static mpl_status unit_over(mpl_ctx *ctx, void *arg, uint32_t unit, const char *why)
{
    mpl_status st = MPL_OK;
    bench *b = arg;
    const char *graph = b->suite.graph.item[unit / b->safeties.n];
    mpl_options own;
    mpl_job job = {0};
    mpl_record *row = NULL;

    MPL_TRY(unit_options(b, unit, &own));
    if (strncmp(graph, data_mark, sizeof data_mark - 1) == 0)
        graph += sizeof data_mark - 1;
    job.text = graph;
    MPL_TRY(mpl_machine_get(ctx, &job.machine));
    for (uint32_t i = 0; why != NULL && i < b->n_backends * b->n_specs; i++) {
        uint32_t k = i / b->n_specs, p = i % b->n_specs;

        if (!is_mine(b, unit, k, p) || b->seen[(size_t)unit * b->n_backends * b->n_specs + i])
            continue;
        job.backend = b->backend[k];
        job.safety = b->safeties.item[unit % b->safeties.n] != NULL &&
                             strcmp(b->safeties.item[unit % b->safeties.n], "parallel") == 0
                         ? MPL_PARALLEL
                         : MPL_SERIAL;
        MPL_TRY(mpl_job_row(ctx, &own, &job, &b->spec[p], &row));
        mpl_record_text(row, MPL_FIELD_suite, b->suite.name);
        mpl_row_fail(row, "crash", why);
        MPL_TRY(keep_row(b, &row));
    }
    b->progress.done += count_mine(b, unit);
    if (!b->progress.terminal)
        mpl_progress_line(&b->progress, "%" PRIu32 "/%" PRIu32 "  %s", b->progress.done, b->progress.total,
                          graph);
    mpl_progress_at(&b->progress, 0, 0, graph);
out:
    mpl_record_free(ctx, row);
    return st;
}

static mpl_status bench_units(bench *b)
{
    mpl_status st = MPL_OK;
    mpl_crew crew = {.arg = b,
                     .n_units = n_units(b),
                     .n_workers = (uint32_t)b->options->jobs,
                     .work = worker_unit,
                     .line = take_line,
                     .over = unit_over};

    if (b->options->jobs <= 1) {
        for (uint32_t i = 0; i < n_units(b) && !mpl_interrupted(); i++)
            MPL_TRY(bench_unit(b, i));
        goto out;
    }
    MPL_TRY(mpl_new(b->ctx, b->seen, (size_t)crew.n_units * b->n_backends * b->n_specs));
    MPL_TRY(mpl_crew_run(b->ctx, &crew));
    MPL_TRY(mpl_rows_sort(b->ctx, &b->rows)); /* they came as workers were done */
out:
    return st;
}

/* ---- the whole ---- */

static mpl_status open_rows(bench *b)
{
    mpl_status st = MPL_OK;
    static const char form[] = "results/raw/%s.jsonl";
    const char *path = b->options->output;

    if (path == NULL) {
        if ((b->path = mpl_alloc(b->ctx, sizeof form + strlen(b->suite.name), 1)) == NULL)
            MPL_TRY(MPL_EMEM);
        sprintf(b->path, form, b->suite.name);
        path = b->path;
    }
    MPL_TRY(mpl_row_file_open(b->ctx, path, &b->file));
    if (b->file.dropped_bytes > 0)
        mpl_progress_line(&b->progress, "memplan: %s: cut off a torn last line of %" PRIu64 " bytes", path,
                          b->file.dropped_bytes);
    if (b->options->resume)
        MPL_TRY(read_done(b));
out:
    return st;
}

static void bench_fini(bench *b)
{
    mpl_row_file_close(&b->file);
    for (uint32_t i = 0; i < b->n_specs; i++)
        mpl_planner_spec_fini(b->ctx, &b->spec[i]);
    for (uint32_t i = 0; i < b->n_done; i++)
        mpl_free(b->ctx, b->done[i]);
    mpl_free(b->ctx, b->spec);
    mpl_free(b->ctx, b->backend);
    mpl_free(b->ctx, b->done);
    mpl_free(b->ctx, b->path);
    mpl_free(b->ctx, b->skipped);
    mpl_free(b->ctx, b->seen);
    mpl_free(b->ctx, b->safeties.item);
    mpl_free(b->ctx, b->safety_store);
    mpl_rows_fini(b->ctx, &b->rows);
    mpl_rows_fini(b->ctx, &b->old);
    mpl_suite_fini(b->ctx, &b->suite);
}

mpl_status mpl_cmd_bench(mpl_ctx *ctx, mpl_options *options)
{
    mpl_status st = MPL_OK;
    bench b = {.ctx = ctx, .options = options, .file = {.fd = -1}, .n_shards = 1};
    const mpl_table_kind *runs = mpl_table_find("runs"), *peers = mpl_table_find("peers");
    mpl_options own;
    uint32_t total = 0;

    MPL_TRY(mpl_suite_open(ctx, options->args.n > 0 ? options->args.item[0] : "main", options, &b.suite));
    MPL_TRY(mpl_job_check_options(ctx, options));
    if (options->data != NULL && access(options->data, X_OK) != 0)
        MPL_FAIL(ctx, MPL_EINPUT, "--data: %s: %s; a folder is needed", options->data, strerror(errno));
    MPL_TRY(parse_planners(&b));
    MPL_TRY(parse_backends(&b));
    MPL_TRY(parse_safeties(&b));
    MPL_TRY(check_jobs(&b));
    for (uint32_t i = 0; i < n_units(&b); i++) /* what a line asks for, before the first of them runs */
        MPL_TRY(unit_options(&b, i, &own));
    if (options->shard != NULL)
        MPL_TRY(mpl_shard_parse(ctx, options->shard, &b.shard, &b.n_shards));
    for (uint32_t i = 0; i < n_units(&b); i++)
        total += count_mine(&b, i);
    mpl_progress_begin(&b.progress, total, options->quiet || options->json);
    MPL_TRY(open_rows(&b));
    mpl_interrupt_catch();
    MPL_TRY(bench_units(&b));
    mpl_progress_end(&b.progress);
    if (!options->quiet && !options->json)
        MPL_TRY(runs->print(ctx, runs, &b.rows, stdout, options->tsv));
    if (!options->quiet && !options->json && b.n_peers > 0)
        MPL_TRY(peers->print(ctx, peers, &b.rows, stdout, options->tsv));
    if (mpl_interrupted())
        MPL_FAIL(ctx, MPL_ELIMIT, "interrupted: %" PRIu32 " rows in %s are whole, --resume goes on from them",
                 b.rows.n, b.file.path);
    if (!options->quiet && !options->json)
        printf("\n%" PRIu32 " rows in %s\n", b.rows.n, b.file.path);
    if (b.bad)
        MPL_FAIL(ctx, MPL_EINVALID, "bench: some rows are not ok; their reason stands in %s", b.file.path);
out:
    bench_fini(&b);
    return st;
}
