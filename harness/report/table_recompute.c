/* table_recompute.c -- training graphs with and without operations that run again, a line a run.
 * See table.h. */
#include "harness/report/cells.h"
#include "harness/report/table.h"

/* What a run's time is compared with: the first row that is alike in these. */
static const mpl_field same[] = {MPL_FIELD_graph, MPL_FIELD_backend};

/* Where nothing was asked for, nothing runs again: no work is told, and none is more. */
static mpl_status work_cells(mpl_ctx *ctx, mpl_grid *grid, const mpl_record *row)
{
    mpl_status st = MPL_OK;
    uint64_t ops = 0, forward = 0, all = 0, extra = 0, bound = 0;
    bool plain = mpl_record_get_text(row, MPL_FIELD_recompute) == NULL;
    bool told = mpl_record_get_int(row, MPL_FIELD_forward_work, &forward) &&
                mpl_record_get_int(row, MPL_FIELD_all_work, &all) &&
                mpl_record_get_int(row, MPL_FIELD_extra_work, &extra) &&
                mpl_record_get_int(row, MPL_FIELD_recompute_ops, &ops);
    bool proved = mpl_record_get_int(row, MPL_FIELD_extra_work_bound, &bound);

    MPL_TRY(told || plain ? mpl_grid_cell(ctx, grid, "%" PRIu64, ops)
                          : mpl_grid_cell(ctx, grid, "-"));
    MPL_TRY(plain ? mpl_grid_cell(ctx, grid, "0.000")
                  : mpl_ratio_cell(ctx, grid, told, (double)extra, (double)forward));
    MPL_TRY(plain ? mpl_grid_cell(ctx, grid, "1.000")
                  : mpl_ratio_cell(ctx, grid, told, (double)all + (double)extra, (double)all));
    MPL_TRY(mpl_ratio_cell(ctx, grid, told && proved, (double)bound, (double)forward));
    MPL_TRY(mpl_text_cell(ctx, grid, row, MPL_FIELD_recompute_claim));
out:
    return st;
}

static mpl_status row_cells(mpl_ctx *ctx, const mpl_rows *rows, const mpl_record *row,
                            mpl_grid *grid)
{
    mpl_status st = MPL_OK;
    const mpl_record *first = mpl_rows_first(rows, row, sizeof same / sizeof *same, same);
    char text[200];
    const char *how = mpl_record_get_text(row, MPL_FIELD_recompute);
    uint64_t ns = 0;
    bool has_ns = mpl_record_get_int(row, MPL_FIELD_recompute_ns, &ns);

    MPL_TRY(mpl_grid_cell(ctx, grid, "%s", mpl_graph_label(row, text)));
    MPL_TRY(mpl_grid_cell(ctx, grid, "%s", how != NULL ? how : "none"));
    MPL_TRY(mpl_mib_cell(ctx, grid, row, MPL_FIELD_planned_bytes));
    MPL_TRY(mpl_beside_cell(ctx, grid, first, row, MPL_FIELD_planned_bytes));
    MPL_TRY(work_cells(ctx, grid, row));
    MPL_TRY(mpl_grid_ms(ctx, grid, has_ns, (int64_t)ns));
    MPL_TRY(mpl_run_cells(ctx, grid, row, first));
out:
    return st;
}

mpl_status mpl_table_recompute(mpl_ctx *ctx, const mpl_table_kind *kind, const mpl_rows *rows,
                               FILE *to, bool tsv)
{
    static const char *const head[] = {"graph",
                                       "recompute",
                                       "planned MiB",
                                       "times less",
                                       "again",
                                       "more forward",
                                       "work",
                                       "least more",
                                       "claim",
                                       MPL_TIMED "choose ms",
                                       "outputs",
                                       MPL_TIMED "run ms",
                                       MPL_TIMED "run beside first"};

    return mpl_table_lines(ctx, kind, rows, to, tsv, sizeof head / sizeof *head, head, row_cells);
}
