/* export_offline.c -- only a plan's offsets, as TFLite Micro's OfflineMemoryAllocation.
 * planners/import/offline.c has the format and its source. */
#include "graphs/core/file.h"
#include "harness/export/export.h"

enum { A_LINE = 16 };

mpl_status mpl_export_offline(mpl_ctx *ctx, const mpl_export *what, const char *path)
{
    mpl_status st = MPL_OK;
    const mpl_plan *plan = what->plan;
    mpl_new_file file = {0};

    if (what->job->problem->n_pools > 1 || plan->spread.n > 0)
        MPL_FAIL(ctx, MPL_EINPUT,
                 "export offline: the plan has several arenas, and the format one");
    for (mpl_buffer b = 0; b < plan->n; b++)
        if (plan->offset[b] > INT32_MAX)
            MPL_FAIL(ctx, MPL_EINPUT,
                     "export offline: buffer %" PRIu32 " lies at %" PRIu64
                     "; the format ends at 2^31 - 1",
                     b, plan->offset[b]);
    MPL_TRY(mpl_file_begin(ctx, path, &file));
    fprintf(file.stream, "{\"OfflineMemoryAllocation\": [1, 0, %" PRIu32, plan->n);
    for (mpl_buffer b = 0; b < plan->n; b++)
        fprintf(file.stream, "%s%" PRIu64, b % A_LINE == 0 ? ",\n" : ", ", plan->offset[b]);
    fprintf(file.stream, "]}\n");
    MPL_TRY(mpl_file_commit(ctx, &file));
out:
    mpl_file_end(ctx, &file);
    return st;
}
