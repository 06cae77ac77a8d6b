/* cmd_verify.c -- memplan verify: runs only the independent verifier. */
#include "harness/cli/command.h"
#include "harness/entries/entries.h"

mpl_status mpl_cmd_verify(mpl_ctx *ctx, mpl_options *options)
{
    mpl_status st = MPL_OK;
    const char *graph = options->args.item[0], *path = options->args.item[options->args.n - 1];
    mpl_plan_file file = {0};
    mpl_record *row = NULL;
    mpl_job job = {0};
    mpl_entries *entries = NULL;

    MPL_TRY(mpl_entries_start(ctx, options, options->args.n - 1, &graph, &entries));
    MPL_TRY(mpl_job_open_plan(ctx, options, graph, path, &file, &row, &job));
    st = mpl_job_verify_file(ctx, &job, file.plan);
    if (st == MPL_OK && entries != NULL)
        st = mpl_entries_verify(ctx, entries, file.plan);
    if (st == MPL_OK)
        MPL_TRY(mpl_job_plan_fields(ctx, &job, file.plan, row));
    else if (st == MPL_EINVALID)
        mpl_row_fail(row, "refused", ctx->message);
    else
        goto out;
    if (options->json) {
        mpl_status refused = st;

        MPL_TRY(mpl_record_write(ctx, row, &options->result));
        st = refused;
    } else if (st == MPL_OK && !options->quiet) {
        printf("%s: verified: %" PRIu32 " buffers in %" PRIu64 " bytes, bound %" PRIu64 "\n", path,
               job.problem->n, file.plan->peak_bytes, job.bound_bytes);
    }
out:
    mpl_plan_file_fini(ctx, &file);
    mpl_record_free(ctx, row);
    mpl_job_fini(ctx, &job);
    mpl_entries_free(ctx, entries);
    return st;
}
