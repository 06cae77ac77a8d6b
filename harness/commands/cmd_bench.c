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

static mpl_status add_planner(mpl_bench *bench, const char *text, bool peer)
{
    mpl_status st = MPL_OK;
    mpl_planner_spec spec = {0};

    if (peer)
        MPL_TRY(mpl_planner_spec_peer(bench->ctx, text, &spec));
    else
        MPL_TRY(mpl_planner_spec_parse(bench->ctx, text, &spec));
    for (uint32_t i = 0; spec.foreign != NULL && i < bench->n_specs; i++)
        if (bench->spec[i].foreign != NULL &&
            strcmp(bench->spec[i].planner->name, spec.planner->name) == 0 &&
            bench->spec[i].params.key.n + spec.params.key.n == 0)
            MPL_FAIL(
                bench->ctx, MPL_EINPUT, "bench: two planners are named %s; %s", spec.planner->name,
                strcmp(spec.foreign->kind, "exec") == 0 ? "name them: exec:NAME=COMMAND"
                                                        : "their files need names of their own");
    MPL_TRY(mpl_reserve(bench->ctx, bench->spec, bench->spec_cap, (size_t)bench->n_specs + 1));
    bench->spec[bench->n_specs++] = spec;
    bench->n_peers += peer;
    memset(&spec, 0, sizeof spec);
out:
    mpl_planner_spec_fini(bench->ctx, &spec);
    return st;
}

static mpl_status add_own(void *arg, const char *text)
{
    return add_planner(arg, text, false);
}

static mpl_status parse_planners(mpl_bench *bench)
{
    for (uint32_t i = 0; i < bench->options->planners.n; i++)
        MPL_PASS(mpl_planner_list(bench->ctx, bench->options->planners.item[i], add_own, bench));
    for (uint32_t i = 0; bench->options->planners.n == 0 && mpl_planners[i] != NULL; i++)
        if ((mpl_planners[i]->traits & (MPL_SPREADS | MPL_PRODUCTION)) == 0)
            MPL_PASS(add_planner(bench, mpl_planners[i]->name, false));
    for (uint32_t i = 0; i < bench->options->peer.n; i++)
        MPL_PASS(add_planner(bench, bench->options->peer.item[i], true));
    return MPL_OK;
}

static mpl_status parse_backends(mpl_bench *bench)
{
    mpl_ctx *ctx = bench->ctx;
    mpl_status st = MPL_OK;
    mpl_strings parts = {0};
    char *store = NULL;
    bool takes_params = false;

    MPL_TRY(mpl_strings_split(ctx,
                              bench->options->backends != NULL ? bench->options->backends
                                                               : mpl_backend_default()->name,
                              "--backends", &store, &parts));
    MPL_TRY(mpl_new(ctx, bench->backend, parts.n));
    for (; bench->n_backends < parts.n; bench->n_backends++) {
        const char *name = parts.item[bench->n_backends];

        if (strcmp(name, "none") == 0)
            continue;
        if ((bench->backend[bench->n_backends] = mpl_backend_find(name)) == NULL)
            MPL_FAIL(ctx, MPL_EINPUT, "--backends: no backend '%s'; see memplan list backends",
                     name);
        takes_params |= bench->backend[bench->n_backends]->takes_params;
    }
    if (bench->options->device != NULL && !takes_params)
        MPL_FAIL(ctx, MPL_EINPUT, "--device: none of these backends takes it");
out:
    mpl_free_each(ctx, parts.item, store);
    return st;
}

static mpl_status parse_safeties(mpl_bench *bench)
{
    if (bench->options->safeties == NULL)
        return mpl_strings_add(bench->ctx, &bench->safeties, NULL);
    if (bench->options->given[MPL_OPT_safety])
        return MPL_REFUSE(bench->ctx, "bench: one of --safety and --safeties, not both");
    return mpl_strings_split(bench->ctx, bench->options->safeties, "--safeties",
                             &bench->safety_store, &bench->safeties);
}

/* Workers share the machine, so runs on all cores and interleaved peers cannot be timed. */
static mpl_status check_jobs(mpl_bench *bench)
{
    mpl_options *options = bench->options;
    mpl_machine machine;

    if (options->turns < 1 || options->turns > 1000)
        return MPL_REFUSE(bench->ctx, "--turns: %" PRIu64 " is not from 1 to 1000", options->turns);
    bench->repeat = (uint32_t)options->repeat;
    bench->turns = options->turns > 1 ? (uint32_t)options->turns * bench->safeties.n : 1;
    if (options->jobs <= 1)
        return MPL_OK;
    MPL_PASS(mpl_machine_get(bench->ctx, &machine));
    if (options->jobs > machine.n_cores ||
        mpl_max_u64(options->threads, options->workers) > machine.n_cores / options->jobs)
        return MPL_REFUSE(bench->ctx,
                          "--jobs: %" PRIu64
                          " workers need a core for each of their threads; there are %" PRIu32,
                          options->jobs, machine.n_cores);
    if (options->peer.n > 0)
        return MPL_REFUSE(bench->ctx, "--jobs: with --peer, plans are timed in turns: one worker");
    bench->repeat = 0;
    return MPL_OK;
}

uint32_t mpl_bench_units(const mpl_bench *bench)
{
    return bench->suite.graph.n * bench->safeties.n;
}

/* ---- several workers ---- */

static mpl_status worker_unit(mpl_ctx *ctx, void *arg, uint32_t unit, FILE *to)
{
    mpl_bench *bench = arg;

    bench->ctx = ctx;
    bench->crew = to;
    bench->progress.quiet = true;
    mpl_row_file_close(&bench->file); /* so that the lock ends when the parent closes the file */
    return mpl_bench_group(bench, unit, 1);
}

static mpl_status take_line(mpl_ctx *ctx, void *arg, uint32_t unit, const char *text, size_t n)
{
    mpl_status st = MPL_OK;
    mpl_bench *bench = arg;
    mpl_record *row = NULL;
    uint32_t k = 0, p = 0;
    int old = 0, at = 0;

    if (strncmp(text, "skip: ", 6) == 0) {
        mpl_progress_line(&bench->progress, "%s", text);
        goto out;
    }
    if (sscanf(text, "%" SCNu32 " %" SCNu32 " %d %n", &k, &p, &old, &at) != 3 ||
        k >= bench->n_backends || p >= bench->n_specs)
        MPL_FAIL(ctx, MPL_EINPUT, "a worker said '%.100s'", text);
    MPL_TRY(mpl_record_read(ctx, "a worker's row", text + at, n - (size_t)at, &row));
    bench->seen[((size_t)unit * bench->n_backends + k) * bench->n_specs + p] = true;
    if (old)
        MPL_TRY(mpl_rows_take(ctx, &bench->rows, &row));
    else
        MPL_TRY(mpl_bench_keep_row(bench, &row));
out:
    mpl_record_free(ctx, row);
    return st;
}

/* Makes rows for the unfinished runs of a worker that died. */
static mpl_status unit_over(mpl_ctx *ctx, void *arg, uint32_t unit, const char *why)
{
    mpl_status st = MPL_OK;
    mpl_bench *bench = arg;
    const char *graph = mpl_suite_graph_name(bench->suite.graph.item[unit / bench->safeties.n]);
    mpl_options own;
    mpl_job job = {0};
    mpl_record *row = NULL;

    MPL_TRY(mpl_bench_unit_options(bench, unit, &own));
    job.text = graph;
    MPL_TRY(mpl_machine_get(ctx, &job.machine));
    for (uint32_t i = 0; why != NULL && i < bench->n_backends * bench->n_specs; i++) {
        uint32_t k = i / bench->n_specs, p = i % bench->n_specs;

        if (!mpl_bench_is_mine(bench, unit, k, p) ||
            bench->seen[(size_t)unit * bench->n_backends * bench->n_specs + i])
            continue;
        job.backend = bench->backend[k];
        job.safety = own.safety;
        MPL_TRY(mpl_job_row(ctx, &own, &job, &bench->spec[p], &row));
        mpl_record_text(row, MPL_FIELD_suite, bench->suite.name);
        mpl_row_fail(row, "crash", why);
        MPL_TRY(mpl_bench_keep_row(bench, &row));
    }
    bench->progress.done += mpl_bench_count_mine(bench, unit);
    if (!bench->progress.terminal)
        mpl_progress_line(&bench->progress, "%" PRIu32 "/%" PRIu32 "  %s", bench->progress.done,
                          bench->progress.total, graph);
    mpl_progress_at(&bench->progress, 0, 0, graph);
out:
    mpl_record_free(ctx, row);
    return st;
}

static mpl_status bench_units(mpl_bench *bench)
{
    mpl_crew crew = {.arg = bench,
                     .n_units = mpl_bench_units(bench),
                     .n_workers = (uint32_t)bench->options->jobs,
                     .work = worker_unit,
                     .line = take_line,
                     .over = unit_over};

    if (bench->options->jobs <= 1) {
        for (uint32_t i = 0; i < crew.n_units && !mpl_interrupted(); i += bench->turns)
            MPL_PASS(mpl_bench_group(
                bench, i, bench->turns < crew.n_units - i ? bench->turns : crew.n_units - i));
        return MPL_OK;
    }
    MPL_PASS(mpl_new(bench->ctx, bench->seen,
                     (size_t)crew.n_units * bench->n_backends * bench->n_specs));
    MPL_PASS(mpl_crew_run(bench->ctx, &crew));
    return mpl_rows_sort(bench->ctx, &bench->rows); /* workers finished in any order */
}

/* ---- the whole ---- */

static mpl_status open_rows(mpl_bench *bench)
{
    static const char form[] = "results/raw/%s.jsonl";
    const char *path = bench->options->output;

    if (path == NULL) {
        if ((bench->path = mpl_alloc(bench->ctx, sizeof form + strlen(bench->suite.name), 1)) ==
            NULL)
            MPL_PASS(MPL_EMEM);
        sprintf(bench->path, form, bench->suite.name);
        path = bench->path;
    }
    MPL_PASS(mpl_row_file_open(bench->ctx, path, &bench->file));
    if (bench->file.dropped_bytes > 0)
        mpl_progress_line(&bench->progress,
                          "memplan: %s: cut off a torn last line of %" PRIu64 " bytes", path,
                          bench->file.dropped_bytes);
    if (bench->options->resume)
        MPL_PASS(mpl_bench_read_done(bench));
    return MPL_OK;
}

static void bench_fini(mpl_bench *bench)
{
    mpl_row_file_close(&bench->file);
    for (uint32_t i = 0; i < bench->n_specs; i++)
        mpl_planner_spec_fini(bench->ctx, &bench->spec[i]);
    for (uint32_t i = 0; i < bench->n_done; i++)
        mpl_free(bench->ctx, bench->done[i]);
    mpl_free_each(bench->ctx, bench->spec, bench->backend, bench->done, bench->path, bench->skipped,
                  bench->seen, bench->safeties.item, bench->safety_store);
    mpl_rows_fini(bench->ctx, &bench->rows);
    mpl_rows_fini(bench->ctx, &bench->old);
    mpl_suite_fini(bench->ctx, &bench->suite);
}

/* The rows are already in their file, so a build without tables says so and succeeds. */
static mpl_status print_tables(mpl_bench *bench)
{
    bool tsv = bench->options->tsv;
    uint32_t n_lines;
    mpl_status st =
        mpl_table_print(bench->ctx, mpl_table_find("runs"), &bench->rows, stdout, tsv, &n_lines);

    if (st == MPL_EUNAVAIL) {
        fprintf(stderr, "memplan: bench: %s\n", bench->ctx->message);
        return MPL_OK;
    }
    MPL_TRY(st);
    if (bench->n_peers > 0 && !tsv)
        fputc('\n', stdout);
    if (bench->n_peers > 0)
        MPL_TRY(mpl_table_print(bench->ctx, mpl_table_find("peers"), &bench->rows, stdout, tsv,
                                &n_lines));
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
