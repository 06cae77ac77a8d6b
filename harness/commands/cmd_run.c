/* cmd_run.c -- memplan run: executes a plan, compares it with a run without memory sharing, and
 * measures. */
#include "graphs/core/size.h"
#include "harness/cli/command.h"
#include "harness/entries/entries.h"
#include "harness/job/execute.h"
#include "harness/job/train.h"
#include "harness/residency/residency_job.h"
#include "harness/shapes/template_job.h"

static void print_device(const mpl_measured *measured)
{
    const mpl_exec_facts *facts = &measured->facts;

    printf("device    %12" PRIu64 " bytes asked of it, %" PRIu64
           " taken; products of %s, within %.0e of ref\n",
           facts->device_asked, facts->device_taken, facts->math, facts->tolerance);
    for (uint32_t i = 0; i < facts->n_hows; i++)
        printf("%s%" PRIu32 " %s", i == 0 ? "computes  " : ", ", facts->how[i].n,
               facts->how[i].name);
    printf("\n");
    if (measured->allocators.on_device)
        printf("requests  %s at once; cudaMalloc %s, cudaMallocAsync %s, a caching "
               "allocator %s\n",
               mpl_sized(measured->allocators.model.live_peak_bytes).text,
               mpl_sized(measured->allocators.own[MPL_REPLAY_PLAIN].peak_bytes).text,
               mpl_sized(measured->allocators.own[MPL_REPLAY_POOL].peak_bytes).text,
               mpl_sized(measured->allocators.model.reserved_bytes).text);
}

static void print_workers(const mpl_job *job, const mpl_record *row, uint32_t workers)
{
    int64_t several = 0;

    mpl_record_median(row, MPL_FIELD_concurrent_ns, &several);
    printf("executed  by %u workers%s; two or more operations at once for %.3f ms\n", workers,
           workers > job->machine.n_cores ? ", which share cores" : ", each on cores of its own",
           (double)several / 1e6);
}

static void print_outcome(const mpl_job *job, const mpl_record *row, const mpl_executed *executed)
{
    int64_t median = 0;
    uint64_t repeat = 0;

    mpl_record_median(row, MPL_FIELD_run_ns, &median);
    mpl_record_get_int(row, MPL_FIELD_repeat, &repeat);
    printf("graph     %s on %s (%s%s)\n", mpl_shown(job->text), job->backend->name,
           job->backend->about,
           strcmp(job->backend->name, "ref") == 0 && mpl_backend_default() == job->backend
               ? "; this build has no faster one"
               : "");
    if (executed->measured.workers > 1)
        print_workers(job, row, executed->measured.workers);
    else if (job->problem->before != NULL)
        printf("executed  in order, one operation after the other; that the plan holds in parallel "
               "too is "
               "verified, "
               "not run\n");
    printf("outputs:  %s to the run that shares nothing", mpl_outputs_word(executed->error));
    if (executed->error > 0)
        printf(" (largest relative error %.3g)", executed->error);
    printf("\n");
    if (executed->expected)
        printf("expected: %s %.3g (largest relative error %.3g)\n",
               executed->expect_share <= 1 ? "within" : "not within", executed->expect_allowed,
               executed->expect_error);
    if (executed->early.text != NULL && executed->early.text[0] != '\0')
        printf("early     %s\n", executed->early.text);
    if (job->twice.n_ops > 0)
        printf("again     %u of %u operations, equal to a whole evaluation, bit for bit; %s kept "
               "for it\n",
               job->twice.n_again, job->twice.n_ops, mpl_sized(job->twice.kept_bytes).text);
    printf("planned   %12" PRIu64 " bytes  %14s\n", executed->measured.facts.arena_bytes,
           mpl_sized(executed->measured.facts.arena_bytes).text);
    printf("measured  %12" PRIu64 " bytes  %14s resident in the arena\n",
           executed->measured.facts.measured_bytes,
           mpl_sized(executed->measured.facts.measured_bytes).text);
    printf("workspace %12" PRIu64 " bytes\nweights   %12" PRIu64 " bytes, %" PRIu64
           " more reordered\n",
           executed->measured.facts.workspace_bytes, executed->measured.facts.weight_bytes,
           executed->measured.facts.packed_bytes);
    printf("copied    %12" PRIu64 " bytes in a run", executed->measured.facts.copied_bytes);
    if (executed->measured.facts.copied_bytes > 0)
        printf(", of them %" PRIu64 " carried from round to round",
               executed->measured.facts.loop_carry_bytes);
    printf("\n");
    printf("process   %12" PRIu64 " bytes  %14s at most, %s before the run was prepared\n",
           executed->measured.rss_bytes, mpl_sized(executed->measured.rss_bytes).text,
           mpl_sized(executed->measured.before_bytes).text);
    printf("time      %.3f ms (median of %" PRIu64 ")\n", (double)median / 1e6, repeat);
    if (mpl_record_median(row, MPL_FIELD_replay_ns, &median))
        printf("replayed  %.3f ms as a CUDA graph\n", (double)median / 1e6);
    if (mpl_record_median(row, MPL_FIELD_malloc_ns, &median))
        printf("malloc    %.3f ms with one malloc a buffer, %s at once\n", (double)median / 1e6,
               mpl_sized(executed->measured.malloc_bytes).text);
    if (executed->measured.facts.math[0] != '\0')
        print_device(&executed->measured);
}

/* By a template: one shape, or several that are drawn. */
static mpl_status run_template(mpl_ctx *ctx, mpl_options *options)
{
    mpl_status st = MPL_OK;
    mpl_shapes_run run;

    MPL_TRY(mpl_shapes_execute(ctx, options, options->args.item[0], &run));
    if (options->json)
        MPL_TRY(mpl_record_write(ctx, run.row, &options->result));
    else if (!options->quiet && options->shapes == NULL)
        print_outcome(&run.at.job, run.row, &run.executed);
    else if (!options->quiet)
        mpl_shapes_print(options, &run);
out:
    mpl_shapes_run_fini(ctx, &run);
    return st;
}

/* In two memories, between which values move. */
static mpl_status run_residency(mpl_ctx *ctx, mpl_options *options)
{
    mpl_status st = MPL_OK;
    mpl_residency_job job;

    if (options->backend == NULL && options->plan == NULL)
        options->backend = mpl_backend_default()->name;
    MPL_TRY(mpl_residency_job_plan(ctx, options, &job));
    MPL_TRY(mpl_residency_job_run(ctx, options, &job));
    if (options->json)
        MPL_TRY(mpl_record_write(ctx, job.made.row, &options->result));
    else if (!options->quiet)
        mpl_residency_job_print(&job);
out:
    mpl_residency_job_fini(ctx, &job);
    return st;
}

mpl_status mpl_cmd_run(mpl_ctx *ctx, mpl_options *options)
{
    mpl_status st = MPL_OK;
    mpl_made made = {0};
    mpl_entries *entries = NULL;
    const char *graph = options->args.item[0];
    bool train = options->given[MPL_OPT_iterations], resides;

    MPL_TRY(mpl_residency_asked(ctx, options, &resides));
    if (resides)
        return run_residency(ctx, options);
    if (options->plan != NULL && options->args.n == 1 && mpl_template_named(ctx, options->plan))
        return run_template(ctx, options);
    if (options->shapes != NULL)
        MPL_FAIL(ctx, MPL_EINPUT,
                 "run: --shapes is for a template: --plan FILE of plan over ranges");
    if (options->backend == NULL && options->plan == NULL)
        options->backend = mpl_backend_default()->name;
    if (options->plan == NULL)
        MPL_TRY(mpl_job_default_safety(ctx, MPL_CMD_run, options));
    if (options->data != NULL && !train)
        MPL_FAIL(ctx, MPL_EINPUT, "run: --data is for --iterations");
    MPL_TRY(mpl_entries_start(ctx, options, options->args.n, &graph, &entries));
    if (options->calls != NULL && entries == NULL)
        MPL_FAIL(ctx, MPL_EINPUT, "--calls: %s is one graph; several, or --shared, make entries",
                 graph);
    MPL_TRY(
        mpl_make(ctx, options, graph, train || entries != NULL ? MPL_TO_PLAN : MPL_TO_RUN, &made));
    if (entries != NULL) {
        MPL_TRY(mpl_entries_finish(ctx, options, entries, &made));
        MPL_TRY(mpl_calls_make(ctx, options, entries, &made));
    }
    if (train) {
        MPL_TRY(mpl_execute_check(ctx, &made.job));
        MPL_TRY(mpl_train(ctx, options, &made.job, made.plan));
        goto out;
    }
    if (options->json)
        MPL_TRY(mpl_record_write(ctx, made.row, &options->result));
    else if (!options->quiet)
        print_outcome(&made.job, made.row, made.executed);
    if (entries != NULL && !options->json && !options->quiet)
        mpl_entries_print(entries);
    MPL_TRY(mpl_executed_judge(ctx, made.job.text, made.executed));
out:
    mpl_made_fini(ctx, &made);
    mpl_entries_free(ctx, entries);
    return st;
}
