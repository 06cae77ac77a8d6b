/* rows.h -- files of rows: read whole, appended a row at a time. */
#ifndef MPL_ROWS_H
#define MPL_ROWS_H

#include "harness/rows/record.h"

typedef struct mpl_rows {
    uint32_t n;
    size_t cap;
    mpl_record **row;
} mpl_rows;

/* Appends the rows of a file, blank lines apart. MPL_EINPUT: no such file, a line that is no row
 * (with its number). */
mpl_status mpl_rows_read(mpl_ctx *ctx, const char *path, mpl_rows *rows);
mpl_status mpl_rows_take(mpl_ctx *ctx, mpl_rows *rows, mpl_record **row);
void mpl_rows_fini(mpl_ctx *ctx, mpl_rows *rows);

/* By suite, graph, safety, order, backend, planner (in the order of planners.def, those from
 * outside last), then key: the same rows in the same order, wherever they came from. */
mpl_status mpl_rows_sort(mpl_ctx *ctx, mpl_rows *rows);

/* What made a row, in one line: the build, and the machine but for its name; empty where the row
 * does not say. text holds MPL_ORIGIN_SIZE bytes. Rows of different origins should not be compared
 * by time, those of different builds not at all. */
#define MPL_ORIGIN_SIZE 500
const char *mpl_row_origin(const mpl_record *row, char *text);
/* Index of the first row whose origin differs from that of the first row that has one; rows->n:
 * there is none. */
uint32_t mpl_rows_mixed(const mpl_rows *rows);
/* "rows of A and rows of B", what differs at row `i` that mpl_rows_mixed has found. text holds
 * MPL_MIXED_SIZE bytes. */
#define MPL_MIXED_SIZE 340
const char *mpl_rows_mixed_text(const mpl_rows *rows, uint32_t i, char *text);

/* mkdir -p of the folder that holds `path`. MPL_EINPUT. */
mpl_status mpl_folders_make(mpl_ctx *ctx, const char *path);

typedef struct mpl_row_file {
    int fd; /* -1: closed */
    const char *path;
    uint64_t dropped_bytes; /* length of a last line without its end that was there, and was cut off
                               [byte] */
} mpl_row_file;

/* Opens for appending, making folders and file where they lack; holds a lock until closed. A last
 * line without its end, left by a writer that was killed, is cut off. MPL_EINPUT: cannot be
 * written, another bench writes to it (for 2 s). */
mpl_status mpl_row_file_open(mpl_ctx *ctx, const char *path, mpl_row_file *file);
/* One row, whole and on the disk, or not at all: one write, then fsync; a short write is undone.
 * MPL_EINPUT: disk full. */
mpl_status mpl_row_file_append(mpl_ctx *ctx, mpl_row_file *file, const mpl_record *row);
void mpl_row_file_close(mpl_row_file *file);

/* Whether both rows have the same in each of n fields; what both leave out is the same. */
bool mpl_rows_alike(const mpl_record *a, const mpl_record *b, uint32_t n, const mpl_field *field);
/* Whether rows that differ in this field are of different problems, or executed differently, under
 * whatever planner. */
bool mpl_field_of_problem(mpl_field field);
/* Index of the first row that is of row i's problem and executed alike. */
uint32_t mpl_rows_problem(const mpl_rows *rows, uint32_t i);

/* "pool:level=0", "exec:minimalloc": a row's planner with its parameters; text holds
 * MPL_PLANNER_LABEL bytes. */
enum { MPL_PLANNER_LABEL = 120 };
const char *mpl_planner_label(const mpl_record *row, char *text);

/* Drops all but the last row of each key, keeping the order of first appearance. */
mpl_status mpl_rows_last(mpl_ctx *ctx, mpl_rows *rows);

#endif
