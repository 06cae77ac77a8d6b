/* cmd_bench.c -- memplan bench: graphs x planners x backends, one row a run (bench_group.c). */
#include <errno.h>
#include <unistd.h>

#include "harness/bench/bench.h"
#include "harness/cli/command.h"
#include "harness/bench/crew.h"
#include "harness/cli/interrupt.h"
#include "harness/foreign/foreign.h"
#include "harness/report/table.h"

/* ---- what to run ---- */

static mpl_status add_planner(mpl_bench *b, const char *text, bool peer)
{
    mpl_status st = MPL_OK;
    mpl_planner_spec spec = {0};

    if (peer)
        MPL_TRY(mpl_planner_spec_peer(b->ctx, text, &spec));
    else
        MPL_TRY(mpl_planner_spec_parse(b->ctx, text, &spec));
    for (uint32_t i = 0; spec.foreign != NULL && i < b->n_specs; i++)
        if (b->spec[i].foreign != NULL &&
            strcmp(b->spec[i].planner->name, spec.planner->name) == 0 &&
            b->spec[i].params.key.n + spec.params.key.n == 0)
            MPL_FAIL(b->ctx, MPL_EINPUT, "bench: two planners are named %s; %s", spec.planner->name,
                     strcmp(spec.foreign->kind, "exec") == 0
                         ? "name them: exec:NAME=COMMAND"
                         : "their files need names of their own");
    MPL_TRY(mpl_reserve(b->ctx, b->spec, b->spec_cap, (size_t)b->n_specs + 1));
    b->spec[b->n_specs++] = spec;
    b->n_peers += peer;
    memset(&spec, 0, sizeof spec);
out:
    mpl_planner_spec_fini(b->ctx, &spec);
    return st;
}

static mpl_status add_own(void *arg, const char *text)
{
    return add_planner(arg, text, false);
}

static mpl_status parse_planners(mpl_bench *b)
{
    for (uint32_t i = 0; i < b->options->planners.n; i++)
        MPL_PASS(mpl_planner_list(b->ctx, b->options->planners.item[i], add_own, b));
    for (uint32_t i = 0; b->options->planners.n == 0 && mpl_planners[i] != NULL; i++)
        if ((mpl_planners[i]->traits & (MPL_SPREADS | MPL_PRODUCTION)) == 0)
            MPL_PASS(add_planner(b, mpl_planners[i]->name, false));
    for (uint32_t i = 0; i < b->options->peer.n; i++)
        MPL_PASS(add_planner(b, b->options->peer.item[i], true));
    return MPL_OK;
}

static mpl_status parse_backends(mpl_bench *b)
{
    mpl_ctx *ctx = b->ctx;
    mpl_status st = MPL_OK;
    mpl_strings parts = {0};
    char *store = NULL;
    bool takes_params = false;

    MPL_TRY(mpl_strings_split(
        ctx, b->options->backends != NULL ? b->options->backends : mpl_backend_default()->name,
        "--backends", &store, &parts));
    MPL_TRY(mpl_new(ctx, b->backend, parts.n));
    for (; b->n_backends < parts.n; b->n_backends++) {
        const char *name = parts.item[b->n_backends];

        if (strcmp(name, "none") == 0)
            continue;
        if ((b->backend[b->n_backends] = mpl_backend_find(name)) == NULL)
            MPL_FAIL(ctx, MPL_EINPUT, "--backends: no backend '%s'; see memplan list backends",
                     name);
        takes_params |= b->backend[b->n_backends]->takes_params;
    }
    if (b->options->device != NULL && !takes_params)
        MPL_FAIL(ctx, MPL_EINPUT, "--device: none of these backends takes it");
out:
    mpl_free_each(ctx, parts.item, store);
    return st;
}

static mpl_status parse_safeties(mpl_bench *b)
{
    if (b->options->safeties == NULL)
        return mpl_strings_add(b->ctx, &b->safeties, NULL);
    if (b->options->given[MPL_OPT_safety])
        return MPL_REFUSE(b->ctx, "bench: one of --safety and --safeties, not both");
    return mpl_strings_split(b->ctx, b->options->safeties, "--safeties", &b->safety_store,
                             &b->safeties);
}

/* Workers share the machine, so runs on all cores and interleaved peers cannot be timed. */
static mpl_status check_jobs(mpl_bench *b)
{
    mpl_options *o = b->options;
    mpl_machine machine;

    if (o->turns < 1 || o->turns > 1000)
        return MPL_REFUSE(b->ctx, "--turns: %" PRIu64 " is not from 1 to 1000", o->turns);
    b->repeat = (uint32_t)o->repeat;
    b->turns = o->turns > 1 ? (uint32_t)o->turns * b->safeties.n : 1;
    if (o->jobs <= 1)
        return MPL_OK;
    MPL_PASS(mpl_machine_get(b->ctx, &machine));
    if (o->jobs > machine.n_cores ||
        mpl_max_u64(o->threads, o->workers) > machine.n_cores / o->jobs)
        return MPL_REFUSE(b->ctx,
                          "--jobs: %" PRIu64
                          " workers need a core for each of their threads; there are %" PRIu32,
                          o->jobs, machine.n_cores);
    if (o->peer.n > 0)
        return MPL_REFUSE(b->ctx, "--jobs: with --peer, plans are timed in turns: one worker");
    b->repeat = 0;
    return MPL_OK;
}

uint32_t mpl_bench_units(const mpl_bench *b)
{
    return b->suite.graph.n * b->safeties.n;
}

/* ---- several workers ---- */

static mpl_status worker_unit(mpl_ctx *ctx, void *arg, uint32_t unit, FILE *to)
{
    mpl_bench *b = arg;

    b->ctx = ctx;
    b->crew = to;
    b->progress.quiet = true;
    mpl_row_file_close(&b->file); /* so that the lock ends when the parent closes the file */
    return mpl_bench_group(b, unit, 1);
}

static mpl_status take_line(mpl_ctx *ctx, void *arg, uint32_t unit, const char *text, size_t n)
{
    mpl_status st = MPL_OK;
    mpl_bench *b = arg;
    mpl_record *row = NULL;
    uint32_t k = 0, p = 0;
    int old = 0, at = 0;

    if (strncmp(text, "skip: ", 6) == 0) {
        mpl_progress_line(&b->progress, "%s", text);
        goto out;
    }
    if (sscanf(text, "%" SCNu32 " %" SCNu32 " %d %n", &k, &p, &old, &at) != 3 ||
        k >= b->n_backends || p >= b->n_specs)
        MPL_FAIL(ctx, MPL_EINPUT, "a worker said '%.100s'", text);
    MPL_TRY(mpl_record_read(ctx, "a worker's row", text + at, n - (size_t)at, &row));
    b->seen[((size_t)unit * b->n_backends + k) * b->n_specs + p] = true;
    if (old)
        MPL_TRY(mpl_rows_take(ctx, &b->rows, &row));
    else
        MPL_TRY(mpl_bench_keep_row(b, &row));
out:
    mpl_record_free(ctx, row);
    return st;
}

/* Makes rows for the unfinished runs of a worker that died. */
static mpl_status unit_over(mpl_ctx *ctx, void *arg, uint32_t unit, const char *why)
{
    mpl_status st = MPL_OK;
    mpl_bench *b = arg;
    const char *graph = mpl_suite_graph_name(b->suite.graph.item[unit / b->safeties.n]);
    mpl_options own;
    mpl_job job = {0};
    mpl_record *row = NULL;

    MPL_TRY(mpl_bench_unit_options(b, unit, &own));
    job.text = graph;
    MPL_TRY(mpl_machine_get(ctx, &job.machine));
    for (uint32_t i = 0; why != NULL && i < b->n_backends * b->n_specs; i++) {
        uint32_t k = i / b->n_specs, p = i % b->n_specs;

        if (!mpl_bench_is_mine(b, unit, k, p) ||
            b->seen[(size_t)unit * b->n_backends * b->n_specs + i])
            continue;
        job.backend = b->backend[k];
        job.safety = own.safety;
        MPL_TRY(mpl_job_row(ctx, &own, &job, &b->spec[p], &row));
        mpl_record_text(row, MPL_FIELD_suite, b->suite.name);
        mpl_row_fail(row, "crash", why);
        MPL_TRY(mpl_bench_keep_row(b, &row));
    }
    b->progress.done += mpl_bench_count_mine(b, unit);
    if (!b->progress.terminal)
        mpl_progress_line(&b->progress, "%" PRIu32 "/%" PRIu32 "  %s", b->progress.done,
                          b->progress.total, graph);
    mpl_progress_at(&b->progress, 0, 0, graph);
out:
    mpl_record_free(ctx, row);
    return st;
}

static mpl_status bench_units(mpl_bench *b)
{
    mpl_crew crew = {.arg = b,
                     .n_units = mpl_bench_units(b),
                     .n_workers = (uint32_t)b->options->jobs,
                     .work = worker_unit,
                     .line = take_line,
                     .over = unit_over};

    if (b->options->jobs <= 1) {
        for (uint32_t i = 0; i < crew.n_units && !mpl_interrupted(); i += b->turns)
            MPL_PASS(
                mpl_bench_group(b, i, b->turns < crew.n_units - i ? b->turns : crew.n_units - i));
        return MPL_OK;
    }
    MPL_PASS(mpl_new(b->ctx, b->seen, (size_t)crew.n_units * b->n_backends * b->n_specs));
    MPL_PASS(mpl_crew_run(b->ctx, &crew));
    return mpl_rows_sort(b->ctx, &b->rows); /* workers finished in any order */
}

/* ---- the whole ---- */

static mpl_status open_rows(mpl_bench *b)
{
    static const char form[] = "results/raw/%s.jsonl";
    const char *path = b->options->output;

    if (path == NULL) {
        if ((b->path = mpl_alloc(b->ctx, sizeof form + strlen(b->suite.name), 1)) == NULL)
            MPL_PASS(MPL_EMEM);
        sprintf(b->path, form, b->suite.name);
        path = b->path;
    }
    MPL_PASS(mpl_row_file_open(b->ctx, path, &b->file));
    if (b->file.dropped_bytes > 0)
        mpl_progress_line(&b->progress,
                          "memplan: %s: cut off a torn last line of %" PRIu64 " bytes", path,
                          b->file.dropped_bytes);
    if (b->options->resume)
        MPL_PASS(mpl_bench_read_done(b));
    return MPL_OK;
}

static void bench_fini(mpl_bench *b)
{
    mpl_row_file_close(&b->file);
    for (uint32_t i = 0; i < b->n_specs; i++)
        mpl_planner_spec_fini(b->ctx, &b->spec[i]);
    for (uint32_t i = 0; i < b->n_done; i++)
        mpl_free(b->ctx, b->done[i]);
    mpl_free_each(b->ctx, b->spec, b->backend, b->done, b->path, b->skipped, b->seen,
                  b->safeties.item, b->safety_store);
    mpl_rows_fini(b->ctx, &b->rows);
    mpl_rows_fini(b->ctx, &b->old);
    mpl_suite_fini(b->ctx, &b->suite);
}

/* The rows are already in their file, so a build without tables says so and succeeds. */
static mpl_status print_tables(mpl_bench *b)
{
    bool tsv = b->options->tsv;
    uint32_t n_lines;
    mpl_status st =
        mpl_table_print(b->ctx, mpl_table_find("runs"), &b->rows, stdout, tsv, &n_lines);

    if (st == MPL_EUNAVAIL) {
        fprintf(stderr, "memplan: bench: %s\n", b->ctx->message);
        return MPL_OK;
    }
    MPL_TRY(st);
    if (b->n_peers > 0 && !tsv)
        fputc('\n', stdout);
    if (b->n_peers > 0)
        MPL_TRY(mpl_table_print(b->ctx, mpl_table_find("peers"), &b->rows, stdout, tsv, &n_lines));
out:
    return st;
}

mpl_status mpl_cmd_bench(mpl_ctx *ctx, mpl_options *options)
{
    mpl_status st = MPL_OK;
    mpl_bench b = {.ctx = ctx, .options = options, .file = {.fd = -1}, .n_shards = 1};
    mpl_options own;
    uint32_t total = 0;

    MPL_TRY(mpl_suite_open(ctx, options->args.n > 0 ? options->args.item[0] : "main", options,
                           &b.suite));
    MPL_TRY(mpl_job_check_options(ctx, options));
    if (options->data != NULL && access(options->data, X_OK) != 0)
        MPL_FAIL(ctx, MPL_EINPUT, "--data: %s: %s; a folder is needed", options->data,
                 strerror(errno));
    MPL_TRY(parse_planners(&b));
    MPL_TRY(parse_backends(&b));
    MPL_TRY(parse_safeties(&b));
    MPL_TRY(check_jobs(&b));
    /* Check all options of lines before the first run. */
    for (uint32_t i = 0; i < mpl_bench_units(&b); i++)
        MPL_TRY(mpl_bench_unit_options(&b, i, &own));
    if (options->shard != NULL)
        MPL_TRY(mpl_shard_parse(ctx, options->shard, &b.shard, &b.n_shards));
    for (uint32_t i = 0; i < mpl_bench_units(&b); i++)
        total += mpl_bench_count_mine(&b, i);
    mpl_progress_begin(&b.progress, total, options->quiet || options->json);
    MPL_TRY(open_rows(&b));
    mpl_interrupt_catch();
    MPL_TRY(bench_units(&b));
    mpl_progress_end(&b.progress);
    if (!options->quiet && !options->json)
        MPL_TRY(print_tables(&b));
    if (mpl_interrupted())
        MPL_FAIL(ctx, MPL_ELIMIT,
                 "interrupted: %" PRIu32 " rows in %s are whole, --resume goes on from them",
                 b.rows.n, mpl_shown(b.file.path));
    if (!options->quiet && !options->json)
        printf("\n%" PRIu32 " rows in %s\n", b.rows.n, mpl_shown(b.file.path));
    if (b.bad)
        MPL_FAIL(ctx, MPL_EINVALID, "bench: some rows are not ok; their reason stands in %s",
                 b.file.path);
out:
    bench_fini(&b);
    return st;
}
