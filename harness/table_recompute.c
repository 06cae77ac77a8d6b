/* table_recompute.c -- training graphs with and without operations that run again, a line a run. See table.h. */
#include "harness/grid.h"
#include "harness/table.h"

/* The first row of the same graph and backend: what a run's time is compared with. */
static const mpl_record *first_of(const mpl_rows *rows, const mpl_record *row)
{
    static const mpl_field same[] = {MPL_FIELD_graph, MPL_FIELD_backend};

    for (uint32_t i = 0; i < rows->n; i++) {
        bool alike = true;

        for (size_t k = 0; k < sizeof same / sizeof *same; k++) {
            const char *a = mpl_record_get_text(row, same[k]),
                       *b = mpl_record_get_text(rows->row[i], same[k]);

            alike = alike && (a == NULL) == (b == NULL) && (a == NULL || strcmp(a, b) == 0);
        }
        if (alike)
            return rows->row[i];
    }
    return row;
}

static mpl_status ratio_cell(mpl_ctx *ctx, mpl_grid *grid, bool known, double a, double b)
{
    return known && b > 0 ? mpl_grid_cell(ctx, grid, "%.3f", a / b) : mpl_grid_cell(ctx, grid, "-");
}

static mpl_status text_cell(mpl_ctx *ctx, mpl_grid *grid, const mpl_record *row, mpl_field field)
{
    const char *text = mpl_record_get_text(row, field);

    return mpl_grid_cell(ctx, grid, "%s", text != NULL ? text : "-");
}

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

    MPL_TRY(told || plain ? mpl_grid_cell(ctx, grid, "%" PRIu64, ops) : mpl_grid_cell(ctx, grid, "-"));
    MPL_TRY(plain ? mpl_grid_cell(ctx, grid, "0.000")
                  : ratio_cell(ctx, grid, told, (double)extra, (double)forward));
    MPL_TRY(plain ? mpl_grid_cell(ctx, grid, "1.000")
                  : ratio_cell(ctx, grid, told, (double)all + (double)extra, (double)all));
    MPL_TRY(ratio_cell(ctx, grid, told && proved, (double)bound, (double)forward));
    MPL_TRY(text_cell(ctx, grid, row, MPL_FIELD_recompute_claim));
out:
    return st;
}

static mpl_status row_cells(mpl_ctx *ctx, mpl_grid *grid, const mpl_record *row, const mpl_record *first)
{
    mpl_status st = MPL_OK;
    char text[200];
    const char *how = mpl_record_get_text(row, MPL_FIELD_recompute);
    uint64_t planned = 0, first_planned = 0;
    int64_t ns = 0, first_ns = 0;
    bool has_planned = mpl_record_get_int(row, MPL_FIELD_planned_bytes, &planned);
    bool both = has_planned && mpl_record_get_int(first, MPL_FIELD_planned_bytes, &first_planned);
    bool has_ns = mpl_record_median(row, MPL_FIELD_run_ns, &ns);
    bool has_first = mpl_record_median(first, MPL_FIELD_run_ns, &first_ns);

    MPL_TRY(mpl_grid_cell(ctx, grid, "%s", mpl_graph_label(row, text)));
    MPL_TRY(mpl_grid_cell(ctx, grid, "%s", how != NULL ? how : "none"));
    MPL_TRY(mpl_grid_mib(ctx, grid, has_planned, planned));
    MPL_TRY(ratio_cell(ctx, grid, both, (double)first_planned, (double)planned));
    MPL_TRY(work_cells(ctx, grid, row));
    MPL_TRY(text_cell(ctx, grid, row, MPL_FIELD_outputs));
    MPL_TRY(mpl_grid_ms(ctx, grid, has_ns, ns));
    MPL_TRY(ratio_cell(ctx, grid, has_ns && has_first, (double)ns, (double)first_ns));
out:
    return st;
}

mpl_status mpl_table_recompute(mpl_ctx *ctx, const mpl_table_kind *kind, const mpl_rows *rows, FILE *to,
                               bool tsv)
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
                                       "outputs",
                                       MPL_TIMED "run ms",
                                       MPL_TIMED "run beside first"};
    mpl_status st = MPL_OK;
    mpl_grid grid = {.n_cols = sizeof head / sizeof *head};

    for (size_t i = 0; i < grid.n_cols; i++)
        MPL_TRY(mpl_grid_cell(ctx, &grid, "%s", head[i]));
    for (uint32_t i = 0; i < rows->n; i++)
        MPL_TRY(row_cells(ctx, &grid, rows->row[i], first_of(rows, rows->row[i])));
    if (!tsv)
        fprintf(to, "%s\n\n", kind->about);
    mpl_grid_print(to, &grid, tsv);
out:
    mpl_grid_fini(ctx, &grid);
    return st;
}
