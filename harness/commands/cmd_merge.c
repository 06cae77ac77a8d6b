/* cmd_merge.c -- memplan merge: merges files of rows. Keeps the last row of each key, in a fixed
 * order. */
#include "graphs/core/file.h"
#include "harness/cli/command.h"
#include "harness/rows/rows.h"

static mpl_status write_rows(mpl_ctx *ctx, const mpl_rows *rows, FILE *to)
{
    mpl_status st = MPL_OK;
    char *text = NULL;

    for (uint32_t i = 0; i < rows->n; i++) {
        mpl_free(ctx, text);
        text = NULL;
        MPL_TRY(mpl_record_write(ctx, rows->row[i], &text));
        fprintf(to, "%s\n", text);
    }
out:
    mpl_free(ctx, text);
    return st;
}

static uint32_t count_failed(const mpl_rows *rows)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < rows->n; i++)
        n += !mpl_record_is(rows->row[i], MPL_FIELD_status, "ok") &&
             !mpl_record_is(rows->row[i], MPL_FIELD_status, "unavailable");
    return n;
}

mpl_status mpl_cmd_merge(mpl_ctx *ctx, mpl_options *options)
{
    mpl_status st = MPL_OK;
    mpl_rows rows = {0};
    mpl_new_file file = {0};
    uint32_t n_read, mixed;
    char text[MPL_MIXED_SIZE];

    for (uint32_t i = 0; i < options->args.n; i++)
        MPL_TRY(mpl_rows_read(ctx, options->args.item[i], &rows));
    n_read = rows.n;
    MPL_TRY(mpl_rows_last(ctx, &rows));
    MPL_TRY(mpl_rows_sort(ctx, &rows));
    mixed = mpl_rows_mixed(&rows);
    if (mixed < rows.n && !options->mixed)
        MPL_FAIL(ctx, MPL_EINVALID, "merge: %s; --mixed merges them all the same",
                 mpl_shown(mpl_rows_mixed_text(&rows, mixed, text)));
    if (mixed < rows.n)
        fprintf(stderr, "memplan: merge: mixed: %s\n",
                mpl_shown(mpl_rows_mixed_text(&rows, mixed, text)));
    if (options->output != NULL) {
        MPL_TRY(mpl_file_begin(ctx, options->output, &file));
        MPL_TRY(write_rows(ctx, &rows, file.stream));
        MPL_TRY(mpl_file_commit(ctx, &file));
        if (!options->quiet)
            printf("%s: %" PRIu32 " rows of %" PRIu32 " in %" PRIu32 " files, %" PRIu32 " not ok\n",
                   mpl_shown(options->output), rows.n, n_read, options->args.n,
                   count_failed(&rows));
    } else {
        MPL_TRY(write_rows(ctx, &rows, stdout));
    }
out:
    mpl_file_end(ctx, &file);
    mpl_rows_fini(ctx, &rows);
    return st;
}
