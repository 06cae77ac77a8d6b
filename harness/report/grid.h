/* grid.h -- tables as text: columns aligned, markdown or tab-separated. */
#ifndef MPL_GRID_H
#define MPL_GRID_H

#include "graphs/core/base.h"

typedef struct mpl_grid {
    uint32_t n_cols;
    uint32_t n; /* cells; the first n_cols are the head */
    size_t cap;
    char **cell;
} mpl_grid;

/* The next cell, row by row. */
mpl_status mpl_grid_cell(mpl_ctx *ctx, mpl_grid *grid, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* The head: one cell for each of its n_cols. */
mpl_status mpl_grid_head(mpl_ctx *ctx, mpl_grid *grid, const char *const *head);
/* First column to the left, the others to the right. */
void mpl_grid_print(FILE *to, const mpl_grid *grid, bool tsv);
/* The same below a title, which tsv does without. */
void mpl_grid_print_titled(FILE *to, const mpl_grid *grid, const char *title, bool tsv);
void mpl_grid_fini(mpl_ctx *ctx, mpl_grid *grid);

/* Cells of one kind of value, in one form everywhere: "12.345" MiB, "+3.21 %", "1.234 ms"; "-"
 * where known is false. */
mpl_status mpl_grid_mib(mpl_ctx *ctx, mpl_grid *grid, bool known, uint64_t bytes);
mpl_status mpl_grid_gap(mpl_ctx *ctx, mpl_grid *grid, bool known, uint64_t bytes, uint64_t bound);
mpl_status mpl_grid_ms(mpl_ctx *ctx, mpl_grid *grid, bool known, int64_t ns);
/* The text of a gap: "at the bound", "+3.21 %". text holds 32 bytes. */
const char *mpl_gap_text(uint64_t bytes, uint64_t bound, char *text);

#endif
