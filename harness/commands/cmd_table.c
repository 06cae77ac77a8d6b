/* cmd_table.c -- memplan table: rows as a table. */
#include <stdlib.h>
#include <unistd.h>

#include "graphs/core/file.h"
#include "harness/cli/command.h"
#include "harness/report/table.h"

#define MAIN_ROWS "results/raw/main.jsonl"

/* Makes the whole table as text. MPL_EINPUT: no row has the table's field, or none makes a line. */
static mpl_status make_text(mpl_ctx *ctx, const mpl_table_kind *kind, const mpl_rows *rows,
                            bool tsv, char **text)
{
    mpl_status st = MPL_OK;
    size_t size = 0;
    FILE *to = open_memstream(text, &size);
    uint32_t i = 0, n_lines = 0;

    if (to == NULL)
        MPL_TRY(MPL_EMEM);
    while (kind->field < MPL_N_FIELDS && i < rows->n &&
           mpl_record_is_null(rows->row[i], kind->field))
        i++;
    if (i == rows->n && kind->query != NULL)
        MPL_FAIL(ctx, MPL_EINPUT, "table %s: of %" PRIu32 " rows none has %s; it shows %s",
                 kind->name, rows->n,
                 kind->field < MPL_N_FIELDS ? mpl_field_table[kind->field].name : "what it needs",
                 kind->about);
    MPL_TRY(mpl_table_print(ctx, kind, rows, to, tsv, &n_lines));
    if (n_lines == 0)
        MPL_FAIL(ctx, MPL_EINPUT, "table %s: none of %" PRIu32 " rows fits; it shows %s",
                 kind->name, rows->n, kind->about);
out:
    if (to != NULL && fclose(to) != 0 && st == MPL_OK)
        st = MPL_EMEM;
    return st;
}

static mpl_status read_rows(mpl_ctx *ctx, const mpl_options *options, mpl_rows *rows)
{
    if (options->rows.n == 0 && access(MAIN_ROWS, F_OK) != 0)
        return MPL_REFUSE(ctx, "table: no " MAIN_ROWS
                               " here, which memplan bench writes; --rows FILE names others");
    if (options->rows.n == 0)
        MPL_PASS(mpl_rows_read(ctx, MAIN_ROWS, rows));
    for (uint32_t i = 0; i < options->rows.n; i++)
        MPL_PASS(mpl_rows_read(ctx, options->rows.item[i], rows));
    return mpl_rows_last(ctx, rows);
}

mpl_status mpl_cmd_table(mpl_ctx *ctx, mpl_options *options)
{
    mpl_status st = MPL_OK;
    const mpl_table_kind *kind = mpl_table_find(options->args.item[0]);
    mpl_rows rows = {0};
    mpl_new_file file = {0};
    char mixed[MPL_MIXED_SIZE], *text = NULL;

    if (kind == NULL)
        MPL_FAIL(ctx, MPL_EINPUT, "no table '%s'; see memplan list tables", options->args.item[0]);
    if (kind->query != NULL || options->rows.n > 0)
        MPL_TRY(read_rows(ctx, options, &rows));
    MPL_TRY(make_text(ctx, kind, &rows, options->tsv, &text));
    if (mpl_rows_mixed(&rows) < rows.n)
        fprintf(stderr, "memplan: table: this one mixes %s\n",
                mpl_shown(mpl_rows_mixed_text(&rows, mpl_rows_mixed(&rows), mixed)));
    if (options->output != NULL) {
        MPL_TRY(mpl_file_begin(ctx, options->output, &file));
        fputs(text, file.stream);
        MPL_TRY(mpl_file_commit(ctx, &file));
    } else {
        fputs(text, stdout);
    }
out:
    free(text);
    mpl_file_end(ctx, &file);
    mpl_rows_fini(ctx, &rows);
    return st;
}
