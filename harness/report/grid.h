/* grid.h -- tables as text: columns aligned, markdown or tab-separated. */
#pragma once

#include "graphs/core/base.h"

typedef struct mpl_grid {
    uint32_t n_cols;
    uint32_t n; /* cells; the first n_cols are the head */
    size_t cap;
    char **cell;
} mpl_grid;

/* Appends a cell, row by row. */
mpl_status mpl_grid_cell(mpl_ctx *ctx, mpl_grid *grid, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* Appends the head: n_cols cells. */
mpl_status mpl_grid_head(mpl_ctx *ctx, mpl_grid *grid, const char *const *head);
/* Number of lines with the head, and the text of one cell. */
uint32_t mpl_grid_lines(const mpl_grid *grid);
const char *mpl_grid_at(const mpl_grid *grid, uint32_t line, uint32_t column);
/* The column with this head; an underscore in the name may stand for a blank. n_cols: none. */
uint32_t mpl_grid_column(const mpl_grid *grid, const char *name);
/* The line's cell in a column given by name; NULL: no such column. */
const char *mpl_grid_in(const mpl_grid *grid, uint32_t line, const char *name);
/* Prints it with the first column left-aligned and the others right-aligned. */
void mpl_grid_print(FILE *to, const mpl_grid *grid, bool tsv);
void mpl_grid_fini(mpl_ctx *ctx, mpl_grid *grid);

/* Numbers in one form everywhere; text holds MPL_CELL_TEXT bytes. */
enum { MPL_CELL_TEXT = 360 };
const char *mpl_fixed_text(double value, int digits, char *text);
/* "12.345" MiB; "512 bytes" if that would read 0.000. */
const char *mpl_mib_text(uint64_t bytes, char *text);
/* "+3.21 %", "0" at the bound, "-" without a bound. */
const char *mpl_gap_text(uint64_t bytes, uint64_t bound, char *text);
