/* table_switches.c -- a line a run with the options that change its problem, beside the first run of its graph. See table.h. */
#include "harness/grid.h"
#include "harness/table.h"

/* The first row of the same graph, safety, planner and backend: what a line is compared with. */
static const mpl_record *first_of(const mpl_rows *rows, const mpl_record *row)
{
    static const mpl_field same[] = {MPL_FIELD_graph, MPL_FIELD_safety, MPL_FIELD_planner, MPL_FIELD_backend};

    for (uint32_t i = 0; i < rows->n; i++) {
        size_t k = 0;

        while (k < sizeof same / sizeof *same) {
            const char *a = mpl_record_get_text(row, same[k]),
                       *b = mpl_record_get_text(rows->row[i], same[k]);

            if ((a == NULL) != (b == NULL) || (a != NULL && strcmp(a, b) != 0))
                break;
            k++;
        }
        if (k == sizeof same / sizeof *same)
            return rows->row[i];
    }
    return row;
}

static mpl_status text_cell(mpl_ctx *ctx, mpl_grid *grid, const mpl_record *row, mpl_field field)
{
    const char *text = mpl_record_get_text(row, field);

    return mpl_grid_cell(ctx, grid, "%s", text != NULL ? text : "-");
}

static mpl_status count_cell(mpl_ctx *ctx, mpl_grid *grid, const mpl_record *row, mpl_field field)
{
    uint64_t n = 0;

    return mpl_record_get_int(row, field, &n) ? mpl_grid_cell(ctx, grid, "%" PRIu64, n)
                                              : mpl_grid_cell(ctx, grid, "-");
}

static mpl_status mib_cell(mpl_ctx *ctx, mpl_grid *grid, const mpl_record *row, mpl_field field)
{
    uint64_t bytes = 0;
    bool known = mpl_record_get_int(row, field, &bytes);

    return mpl_grid_mib(ctx, grid, known, bytes);
}

/* "0.571": a over b; a dash where one of them is unknown, or b is nothing. */
static mpl_status ratio_cell(mpl_ctx *ctx, mpl_grid *grid, bool known, double a, double b)
{
    return known && b > 0 ? mpl_grid_cell(ctx, grid, "%.3f", a / b) : mpl_grid_cell(ctx, grid, "-");
}

/* Bytes beside those of the first run, and the other way round. */
static mpl_status ratios(mpl_ctx *ctx, mpl_grid *grid, const mpl_record *row, const mpl_record *first,
                         mpl_field field, bool both)
{
    mpl_status st = MPL_OK;
    uint64_t its = 0, firsts = 0;
    bool known = mpl_record_get_int(row, field, &its) && mpl_record_get_int(first, field, &firsts);

    MPL_TRY(ratio_cell(ctx, grid, known, (double)its, (double)firsts));
    if (both)
        MPL_TRY(ratio_cell(ctx, grid, known, (double)firsts, (double)its));
out:
    return st;
}

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

static mpl_status run_cells(mpl_ctx *ctx, mpl_grid *grid, const mpl_record *row, const mpl_record *first)
{
    mpl_status st = MPL_OK;
    char text[200];
    uint64_t planned = 0, bound = 0, all = 0, first_all = 0;
    int64_t ns = 0, first_ns = 0;
    bool has_ns = mpl_record_median(row, MPL_FIELD_run_ns, &ns);
    bool has_first = mpl_record_median(first, MPL_FIELD_run_ns, &first_ns);
    bool has_gap = mpl_record_get_int(row, MPL_FIELD_planned_bytes, &planned) &&
                   mpl_record_get_int(row, MPL_FIELD_bound_bytes, &bound);
    bool has_all = in_all(row, &all), has_first_all = in_all(first, &first_all);

    MPL_TRY(mpl_grid_cell(ctx, grid, "%s", mpl_graph_label(row, text)));
    MPL_TRY(text_cell(ctx, grid, row, MPL_FIELD_safety));
    MPL_TRY(text_cell(ctx, grid, row, MPL_FIELD_order));
    MPL_TRY(text_cell(ctx, grid, row, MPL_FIELD_concat));
    MPL_TRY(text_cell(ctx, grid, row, MPL_FIELD_loop));
    MPL_TRY(text_cell(ctx, grid, row, MPL_FIELD_changed));
    MPL_TRY(count_cell(ctx, grid, row, MPL_FIELD_changed_ops));
    MPL_TRY(count_cell(ctx, grid, row, MPL_FIELD_all_ops));
    MPL_TRY(mib_cell(ctx, grid, row, MPL_FIELD_kept_bytes));
    MPL_TRY(mpl_grid_mib(ctx, grid, has_all, all));
    MPL_TRY(ratio_cell(ctx, grid, has_all && has_first_all, (double)all, (double)first_all));
    MPL_TRY(mpl_grid_cell(ctx, grid, "%s", mpl_planner_label(row, text)));
    MPL_TRY(mib_cell(ctx, grid, first, MPL_FIELD_planned_bytes));
    MPL_TRY(mib_cell(ctx, grid, row, MPL_FIELD_planned_bytes));
    MPL_TRY(mib_cell(ctx, grid, row, MPL_FIELD_bound_bytes));
    MPL_TRY(mpl_grid_gap(ctx, grid, has_gap, planned, bound));
    MPL_TRY(ratios(ctx, grid, row, first, MPL_FIELD_planned_bytes, true));
    MPL_TRY(mib_cell(ctx, grid, row, MPL_FIELD_order_bound_bytes));
    MPL_TRY(text_cell(ctx, grid, row, MPL_FIELD_order_proof));
    MPL_TRY(mib_cell(ctx, grid, row, MPL_FIELD_copied_bytes));
    MPL_TRY(ratios(ctx, grid, row, first, MPL_FIELD_copied_bytes, false));
    MPL_TRY(mib_cell(ctx, grid, row, MPL_FIELD_loop_carry_bytes));
    MPL_TRY(text_cell(ctx, grid, row, MPL_FIELD_outputs));
    MPL_TRY(mpl_grid_ms(ctx, grid, has_ns, ns));
    MPL_TRY(ratio_cell(ctx, grid, has_ns && has_first, (double)ns, (double)first_ns));
out:
    return st;
}

mpl_status mpl_table_switches(mpl_ctx *ctx, const mpl_table_kind *kind, const mpl_rows *rows, FILE *to,
                              bool tsv)
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
    mpl_status st = MPL_OK;
    mpl_grid grid = {.n_cols = sizeof head / sizeof *head};

    for (size_t i = 0; i < grid.n_cols; i++)
        MPL_TRY(mpl_grid_cell(ctx, &grid, "%s", head[i]));
    for (uint32_t i = 0; i < rows->n; i++)
        MPL_TRY(run_cells(ctx, &grid, rows->row[i], first_of(rows, rows->row[i])));
    if (!tsv)
        fprintf(to, "%s\n\n", kind->about);
    mpl_grid_print(to, &grid, tsv);
out:
    mpl_grid_fini(ctx, &grid);
    return st;
}
