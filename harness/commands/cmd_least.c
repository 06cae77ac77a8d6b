/* cmd_least.c -- memplan least: one graph in the least memory, over every freedom asked for. */
#include <unistd.h>

#include "graphs/core/size.h"
#include "harness/cli/command.h"
#include "harness/cli/interrupt.h"
#include "harness/least/least_job.h"
#include "harness/report/grid.h"

/* Prints one line that the next one overwrites. */
static void show_progress(void *arg, uint64_t planned, uint64_t bound)
{
    char gap[32] = "unknown";

    (void)arg;
    if (bound > 0)
        mpl_gap_text(planned, bound, gap);
    fprintf(stderr, "\r\033[Kbest %s, bound %s, gap %s; Ctrl-C takes the best",
            mpl_sized(planned).text, bound > 0 ? mpl_sized(bound).text : "none", gap);
}

/* Searches. The first Ctrl-C ends the search with its best plan, the second ends the program. */
static mpl_status find_watched(mpl_ctx *ctx, mpl_options *options, mpl_lowest *lowest)
{
    bool shown = isatty(STDERR_FILENO) != 0 && !options->quiet && !options->json;
    mpl_watch watch = {.progress = shown ? show_progress : NULL,
                       .bind = mpl_bind_thread,
                       .stop = mpl_interrupt_soften()};
    mpl_status st;

    options->watch = &watch;
    st = mpl_lowest_find(ctx, options, options->args.item[0], lowest);
    options->watch = lowest->options.watch = NULL;
    mpl_interrupt_restore();
    if (shown)
        fputs("\r\033[K", stderr);
    return st;
}

mpl_status mpl_cmd_least(mpl_ctx *ctx, mpl_options *options)
{
    mpl_status st = MPL_OK;
    mpl_lowest lowest = {0};
    mpl_record *row = NULL;
    char *json = NULL;

    MPL_TRY(find_watched(ctx, options, &lowest));
    MPL_TRY(mpl_lowest_row(ctx, options, &lowest, &row));
    if (options->reproducible)
        mpl_row_forget_origin(row);
    MPL_TRY(mpl_record_write(ctx, row, &json));
    if (options->output != NULL && mpl_lowest_moves(&lowest))
        MPL_TRY(mpl_residency_job_write(ctx, &lowest.residency, row, options->output));
    else if (options->output != NULL)
        MPL_TRY(mpl_job_write_plan(ctx, &lowest.job, lowest.plan, json, options->output));
    if (options->json)
        options->result = json, json = NULL;
    else if (!options->quiet)
        mpl_lowest_print(options, &lowest, row);
out:
    mpl_free(ctx, json);
    mpl_record_free(ctx, row);
    mpl_lowest_fini(ctx, &lowest);
    return st;
}
