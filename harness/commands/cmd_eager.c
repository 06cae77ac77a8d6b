/* cmd_eager.c -- memplan eager: a graph run as an eager program runs it, beside the plans of its
 * traces. */
#include "harness/cli/command.h"
#include "harness/eager/eager_job.h"
#include "harness/rows/rows.h"

mpl_status mpl_cmd_eager(mpl_ctx *ctx, mpl_options *options)
{
    mpl_status st = MPL_OK;
    mpl_eager e = {0};
    mpl_record *row = NULL;
    mpl_row_file file = {.fd = -1};

    if (options->output != NULL)
        MPL_TRY(mpl_row_file_open(ctx, options->output, &file));
    MPL_TRY(mpl_eager_run(ctx, options, &e));
    MPL_TRY(mpl_eager_row(ctx, options, &e, &row));
    if (options->output != NULL)
        MPL_TRY(mpl_row_file_append(ctx, &file, row));
    if (options->json)
        MPL_TRY(mpl_record_write(ctx, row, &options->result));
    else if (!options->quiet)
        mpl_eager_print(options, row, &e);
out:
    if (options->output != NULL)
        mpl_row_file_close(&file);
    mpl_record_free(ctx, row);
    mpl_eager_fini(ctx, &e);
    return st;
}
