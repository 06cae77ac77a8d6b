/* table_switches.c -- a line a run with the options that change its problem, beside the first run
 * of its graph. See table.h. */
#include "harness/report/cells.h"
#include "harness/report/table.h"

/* What a line is compared with: the first row that is alike in these. */
static const mpl_field same[] = {MPL_FIELD_graph, MPL_FIELD_safety, MPL_FIELD_planner,
                                 MPL_FIELD_backend};

/* The arena, and what is kept for a second evaluation where outputs are pinned, and so is that. */
static bool in_all(const mpl_record *row, uint64_t *bytes)
{
    uint64_t kept = 0;

    if (!mpl_record_get_int(row, MPL_FIELD_planned_bytes, bytes))
        return false;
    if (mpl_record_has_item(row, MPL_FIELD_pinned, "outputs") &&
        mpl_record_get_int(row, MPL_FIELD_kept_bytes, &kept))
        *bytes += kept;
    return true;
}

static mpl_status row_cells(mpl_ctx *ctx, const mpl_rows *rows, const mpl_record *row,
                            mpl_grid *grid)
{
    mpl_status st = MPL_OK;
    const mpl_record *first = mpl_rows_first(rows, row, sizeof same / sizeof *same, same);
    char text[200];
    uint64_t planned = 0, bound = 0, all = 0, first_all = 0;
    bool has_gap = mpl_record_get_int(row, MPL_FIELD_planned_bytes, &planned) &&
                   mpl_record_get_int(row, MPL_FIELD_bound_bytes, &bound);
    bool has_all = in_all(row, &all), has_first_all = in_all(first, &first_all);

    MPL_TRY(mpl_grid_cell(ctx, grid, "%s", mpl_graph_label(row, text)));
    MPL_TRY(mpl_text_cell(ctx, grid, row, MPL_FIELD_safety));
    MPL_TRY(mpl_text_cell(ctx, grid, row, MPL_FIELD_order));
    MPL_TRY(mpl_text_cell(ctx, grid, row, MPL_FIELD_concat));
    MPL_TRY(mpl_text_cell(ctx, grid, row, MPL_FIELD_loop));
    MPL_TRY(mpl_text_cell(ctx, grid, row, MPL_FIELD_changed));
    MPL_TRY(mpl_count_cell(ctx, grid, row, MPL_FIELD_changed_ops));
    MPL_TRY(mpl_count_cell(ctx, grid, row, MPL_FIELD_all_ops));
    MPL_TRY(mpl_mib_cell(ctx, grid, row, MPL_FIELD_kept_bytes));
    MPL_TRY(mpl_grid_mib(ctx, grid, has_all, all));
    MPL_TRY(mpl_ratio_cell(ctx, grid, has_all && has_first_all, (double)all, (double)first_all));
    MPL_TRY(mpl_grid_cell(ctx, grid, "%s", mpl_planner_label(row, text)));
    MPL_TRY(mpl_mib_cell(ctx, grid, first, MPL_FIELD_planned_bytes));
    MPL_TRY(mpl_mib_cell(ctx, grid, row, MPL_FIELD_planned_bytes));
    MPL_TRY(mpl_mib_cell(ctx, grid, row, MPL_FIELD_bound_bytes));
    MPL_TRY(mpl_grid_gap(ctx, grid, has_gap, planned, bound));
    MPL_TRY(mpl_text_cell(ctx, grid, row, MPL_FIELD_claim));
    MPL_TRY(mpl_beside_cell(ctx, grid, row, first, MPL_FIELD_planned_bytes));
    MPL_TRY(mpl_beside_cell(ctx, grid, first, row, MPL_FIELD_planned_bytes));
    MPL_TRY(mpl_mib_cell(ctx, grid, row, MPL_FIELD_order_bound_bytes));
    MPL_TRY(mpl_order_proof_cell(ctx, grid, row));
    MPL_TRY(mpl_mib_cell(ctx, grid, row, MPL_FIELD_copied_bytes));
    MPL_TRY(mpl_beside_cell(ctx, grid, row, first, MPL_FIELD_copied_bytes));
    MPL_TRY(mpl_mib_cell(ctx, grid, row, MPL_FIELD_loop_carry_bytes));
    MPL_TRY(mpl_run_cells(ctx, grid, row, first));
out:
    return st;
}

mpl_status mpl_table_switches(mpl_ctx *ctx, const mpl_table_kind *kind, const mpl_rows *rows,
                              FILE *to, bool tsv)
{
    static const char *const head[] = {"graph",
                                       "safety",
                                       "order",
                                       "concat",
                                       "loop",
                                       "changed",
                                       "again",
                                       "of",
                                       "kept MiB",
                                       "in all MiB",
                                       "in all beside first",
                                       "planner",
                                       "first MiB",
                                       "planned MiB",
                                       "bound MiB",
                                       "above bound",
                                       "claim",
                                       "beside first",
                                       "times less",
                                       "least MiB",
                                       "least by",
                                       "copied MiB",
                                       "copied beside first",
                                       "carried MiB",
                                       "outputs",
                                       MPL_TIMED "run ms",
                                       MPL_TIMED "run beside first"};

    return mpl_table_lines(ctx, kind, rows, to, tsv, sizeof head / sizeof *head, head, row_cells);
}
