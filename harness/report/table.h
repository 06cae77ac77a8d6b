/* table.h -- tables made from rows: by the queries of tables.sql, or computed. */
#pragma once

#include "harness/report/grid.h"
#include "harness/rows/rows.h"

typedef struct mpl_table_kind {
    const char *name;
    const char *about;
    mpl_field field;   /* some row must have it; MPL_N_FIELDS: any row will do */
    const char *query; /* NULL: computed without rows */
    mpl_status (*compute)(mpl_ctx *ctx, mpl_grid *grid);
} mpl_table_kind;

extern const mpl_table_kind mpl_tables[]; /* ends with name NULL */
const mpl_table_kind *mpl_table_find(const char *name);

/* The table as one grid; of several sections the last. MPL_EINPUT: the rows make none;
 * MPL_EUNAVAIL: built without SQLite. */
mpl_status mpl_table_make(mpl_ctx *ctx, const mpl_table_kind *kind, const mpl_rows *rows,
                          mpl_grid *grid);
/* *n_lines: lines without heads. */
mpl_status mpl_table_print(mpl_ctx *ctx, const mpl_table_kind *kind, const mpl_rows *rows, FILE *to,
                           bool tsv, uint32_t *n_lines);

/* Prefix of the head of a column of times, which differ from run to run. */
#define MPL_TIMED "~"

/* table_pebble.c: all connected graphs of up to 6 vertices by their cost in the pebble game, with
 * results in place or not. */
mpl_status mpl_table_pebble(mpl_ctx *ctx, mpl_grid *grid);
mpl_status mpl_table_pebble_still(mpl_ctx *ctx, mpl_grid *grid);
