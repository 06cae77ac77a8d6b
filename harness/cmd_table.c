/* cmd_table.c -- memplan table: rows as a table. */
#include <errno.h>
#include <unistd.h>

#include "graphs/base/file.h"
#include "harness/command.h"
#include "harness/table.h"

#define MAIN_ROWS "results/raw/main.jsonl"

mpl_status mpl_cmd_table(mpl_ctx *ctx, mpl_options *options)
{
    mpl_status st = MPL_OK;
    const mpl_table_kind *kind = mpl_table_find(options->args.item[0]);
    mpl_rows rows = {0};
    mpl_new_file file = {0};
    char mixed[MPL_MIXED_SIZE];

    if (kind == NULL)
        MPL_FAIL(ctx, MPL_EINPUT, "no table '%s'; see memplan list tables", options->args.item[0]);
    if (options->rows.n == 0 && !kind->rowless && access(MAIN_ROWS, F_OK) != 0)
        MPL_FAIL(ctx, MPL_EINPUT, "table: no " MAIN_ROWS " here, which memplan bench writes; --rows FILE names others");
    if (options->rows.n == 0 && !kind->rowless)
        MPL_TRY(mpl_rows_read(ctx, MAIN_ROWS, &rows));
    for (uint32_t i = 0; i < options->rows.n; i++)
        MPL_TRY(mpl_rows_read(ctx, options->rows.item[i], &rows));
    MPL_TRY(mpl_rows_last(ctx, &rows));
    if (mpl_rows_mixed(&rows) < rows.n)
        fprintf(stderr, "memplan: table: this one mixes %s\n",
                mpl_shown(mpl_rows_mixed_text(&rows, mpl_rows_mixed(&rows), mixed)));
    if (options->output != NULL) {
        MPL_TRY(mpl_file_begin(ctx, options->output, &file));
        MPL_TRY(kind->print(ctx, kind, &rows, file.stream, options->tsv));
        MPL_TRY(mpl_file_commit(ctx, &file));
    } else {
        MPL_TRY(kind->print(ctx, kind, &rows, stdout, options->tsv));
    }
out:
    mpl_file_end(ctx, &file);
    mpl_rows_fini(ctx, &rows);
    return st;
}
