/* cells.c -- cells from rows. See cells.h. */
#include "harness/report/cells.h"

bool mpl_rows_alike(const mpl_record *a, const mpl_record *b, uint32_t n, const mpl_field *field)
{
    for (uint32_t i = 0; i < n; i++)
        if (!mpl_record_equal(a, b, field[i]))
            return false;
    return true;
}

const mpl_record *mpl_rows_first(const mpl_rows *rows, const mpl_record *row, uint32_t n,
                                 const mpl_field *same)
{
    for (uint32_t i = 0; i < rows->n; i++)
        if (mpl_rows_alike(rows->row[i], row, n, same))
            return rows->row[i];
    return row;
}

mpl_status mpl_text_cell(mpl_ctx *ctx, mpl_grid *grid, const mpl_record *row, mpl_field field)
{
    const char *text = mpl_record_get_text(row, field);

    return mpl_grid_cell(ctx, grid, "%s", text != NULL ? text : "-");
}

mpl_status mpl_order_proof_cell(mpl_ctx *ctx, mpl_grid *grid, const mpl_record *row)
{
    const char *proof = mpl_record_get_text(row, MPL_FIELD_order_proof);

    if (proof == NULL)
        return mpl_grid_cell(ctx, grid, "-");
    return mpl_grid_cell(
        ctx, grid, "%s%s", proof,
        mpl_record_is(row, MPL_FIELD_order_scope, "all orders") ? "" : ", concats copied");
}

mpl_status mpl_count_cell(mpl_ctx *ctx, mpl_grid *grid, const mpl_record *row, mpl_field field)
{
    uint64_t n = 0;

    return mpl_record_get_int(row, field, &n) ? mpl_grid_cell(ctx, grid, "%" PRIu64, n)
                                              : mpl_grid_cell(ctx, grid, "-");
}

mpl_status mpl_mib_cell(mpl_ctx *ctx, mpl_grid *grid, const mpl_record *row, mpl_field field)
{
    uint64_t bytes = 0;
    bool known = mpl_record_get_int(row, field, &bytes);

    return mpl_grid_mib(ctx, grid, known, bytes);
}

mpl_status mpl_ratio_cell(mpl_ctx *ctx, mpl_grid *grid, bool known, double a, double b)
{
    return known && b > 0 ? mpl_grid_cell(ctx, grid, "%.3f", a / b) : mpl_grid_cell(ctx, grid, "-");
}

mpl_status mpl_beside_cell(mpl_ctx *ctx, mpl_grid *grid, const mpl_record *a, const mpl_record *b,
                           mpl_field field)
{
    uint64_t x = 0, y = 0;
    bool known = mpl_record_get_int(a, field, &x) && mpl_record_get_int(b, field, &y);

    return mpl_ratio_cell(ctx, grid, known, (double)x, (double)y);
}

mpl_status mpl_run_cells(mpl_ctx *ctx, mpl_grid *grid, const mpl_record *row,
                         const mpl_record *first)
{
    mpl_status st = MPL_OK;
    int64_t ns = 0, first_ns = 0;
    bool has_ns = mpl_record_median(row, MPL_FIELD_run_ns, &ns);
    bool has_first = mpl_record_median(first, MPL_FIELD_run_ns, &first_ns);

    MPL_TRY(mpl_text_cell(ctx, grid, row, MPL_FIELD_outputs));
    MPL_TRY(mpl_grid_ms(ctx, grid, has_ns, ns));
    MPL_TRY(mpl_ratio_cell(ctx, grid, has_ns && has_first, (double)ns, (double)first_ns));
out:
    return st;
}
