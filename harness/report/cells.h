/* cells.h -- cells of a grid from the fields of rows; "-" where a row does not say. */
#ifndef MPL_CELLS_H
#define MPL_CELLS_H

#include "harness/report/grid.h"
#include "harness/rows/rows.h"

/* Whether both rows have the same in each of n fields; what both leave out is the same. */
bool mpl_rows_alike(const mpl_record *a, const mpl_record *b, uint32_t n, const mpl_field *field);
/* The first of the rows that is alike: `row` itself where it is that, or none of them. */
const mpl_record *mpl_rows_first(const mpl_rows *rows, const mpl_record *row, uint32_t n,
                                 const mpl_field *same);

mpl_status mpl_text_cell(mpl_ctx *ctx, mpl_grid *grid, const mpl_record *row, mpl_field field);
mpl_status mpl_count_cell(mpl_ctx *ctx, mpl_grid *grid, const mpl_record *row, mpl_field field);
mpl_status mpl_mib_cell(mpl_ctx *ctx, mpl_grid *grid, const mpl_record *row, mpl_field field);
/* What proved an order to be the least, and that concats copied wherever it was not proved over all
 * orders. */
mpl_status mpl_order_proof_cell(mpl_ctx *ctx, mpl_grid *grid, const mpl_record *row);
/* "0.571": a over b; a dash where one of them is unknown, or b is nothing. */
mpl_status mpl_ratio_cell(mpl_ctx *ctx, mpl_grid *grid, bool known, double a, double b);
/* One field of two rows: the first's over the second's. */
mpl_status mpl_beside_cell(mpl_ctx *ctx, mpl_grid *grid, const mpl_record *a, const mpl_record *b,
                           mpl_field field);
/* What a run gave: outputs, its median time, that time beside the other row's. */
mpl_status mpl_run_cells(mpl_ctx *ctx, mpl_grid *grid, const mpl_record *row,
                         const mpl_record *first);

#endif
