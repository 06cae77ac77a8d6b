/* rows.h -- files of rows: read whole, appended one row at a time. */
#pragma once

#include "harness/rows/record.h"

typedef struct mpl_rows {
    uint32_t n;
    size_t cap;
    mpl_record **row;
} mpl_rows;

/* Appends the rows of a file, ignoring blank lines. MPL_EINPUT: no such file, a line that is no row
 * (with its number). */
mpl_status mpl_rows_read(mpl_ctx *ctx, const char *path, mpl_rows *rows);
mpl_status mpl_rows_take(mpl_ctx *ctx, mpl_rows *rows, mpl_record **row);
/* Hands over one row after the other, with its line from 1; a row that is not taken (left NULL
 * behind) is freed. Errors as of mpl_rows_read, and what `take` returns. */
typedef mpl_status mpl_row_take(void *arg, uint32_t line, mpl_record **row);
mpl_status mpl_rows_each(mpl_ctx *ctx, const char *path, mpl_row_take *take, void *arg);
void mpl_rows_fini(mpl_ctx *ctx, mpl_rows *rows);

/* Sorts by suite, graph, safety, order, backend, planner (as in planners.def, external ones last),
 * then key. The result does not depend on the input order. */
mpl_status mpl_rows_sort(mpl_ctx *ctx, mpl_rows *rows);

/* One line about a row's origin: the build, and the machine without its name; empty if the row has
 * none. text holds MPL_ORIGIN_SIZE bytes. Do not compare times of rows of different origins, nor
 * anything of rows of different builds. */
#define MPL_ORIGIN_SIZE 500
const char *mpl_row_origin(const mpl_record *row, char *text);
/* Index of the first row whose origin differs from that of the first row with an origin; rows->n:
 * none. */
uint32_t mpl_rows_mixed(const mpl_rows *rows);
/* "rows of A and rows of B": the difference at row `i` found by mpl_rows_mixed. text holds
 * MPL_MIXED_SIZE bytes. */
#define MPL_MIXED_SIZE 340
const char *mpl_rows_mixed_text(const mpl_rows *rows, uint32_t i, char *text);

/* mkdir -p of the folder that contains `path`. MPL_EINPUT. */
mpl_status mpl_folders_make(mpl_ctx *ctx, const char *path);

typedef struct mpl_row_file {
    int fd; /* -1: closed */
    const char *path;
    uint64_t dropped_bytes; /* length of an incomplete last line that was cut off [byte] */
} mpl_row_file;

/* Opens a file for appending, makes absent folders and the file, and locks it until closed. Cuts
 * off an incomplete last line, left by a killed writer. MPL_EINPUT: not writable, or another bench
 * writes to it (after waiting 2 s). */
mpl_status mpl_row_file_open(mpl_ctx *ctx, const char *path, mpl_row_file *file);
/* Appends one whole row to disk, or nothing: one write, then fsync; a short write is undone.
 * MPL_EINPUT: disk full. */
mpl_status mpl_row_file_append(mpl_ctx *ctx, mpl_row_file *file, const mpl_record *row);
void mpl_row_file_close(mpl_row_file *file);

/* Whether two rows agree in each of n fields; two nulls agree. */
bool mpl_rows_alike(const mpl_record *a, const mpl_record *b, uint32_t n, const mpl_field *field);
/* Whether a difference in this field means another problem, or another execution, under any
 * planner. */
bool mpl_field_of_problem(mpl_field field);
/* Index of the first row with the problem and the execution of row i. */
uint32_t mpl_rows_problem(const mpl_rows *rows, uint32_t i);

/* A row's planner with its parameters, "pool:level=0" or "exec:minimalloc"; text holds
 * MPL_PLANNER_LABEL bytes. */
enum { MPL_PLANNER_LABEL = 120 };
const char *mpl_planner_label(const mpl_record *row, char *text);

/* Keeps the last row of each key, in the order of first appearance. */
mpl_status mpl_rows_last(mpl_ctx *ctx, mpl_rows *rows);
