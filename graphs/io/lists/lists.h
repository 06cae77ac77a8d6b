/* lists.h -- buffer lists: read from files, or generated. */
#pragma once

#include "graphs/problem/problem.h"

/* Generates n buffers for tests and speed measurements: one birth a step, lifetimes uniform in [1,
 * 2 * alive), so about `alive` buffers are live at a time; sizes of 64 bytes to 1 MiB, spread over
 * the powers of two. The same on every machine. n > 0, alive > 0. */
mpl_status mpl_problem_synthetic(mpl_ctx *ctx, uint32_t n, uint32_t alive, uint64_t seed,
                                 mpl_problem **out);

/* Generates n buffers that fill 1,024 steps times 1 MiB (units: KiB) without a gap: a rectangle cut
 * n - 1 times at random. The least height is 1,048,576 bytes. The same everywhere. 0 < n <=
 * 100,000; O(n^2). */
mpl_status mpl_problem_synthetic_guillotine(mpl_ctx *ctx, uint32_t n, uint64_t seed,
                                            mpl_problem **out);

/* MiniMalloc CSV: a header that names columns (columns.def; id, lower, upper and size are needed),
 * one buffer a row, lifetimes half-open. Ids become names. *offset receives an array of the file's
 * offsets, or NULL if it has none; offset may be NULL. Times past 2^22 become their ranks.
 * MPL_EINPUT with one line `FILE:LINE: ..`. Writing covers pool 0: by names if every name fits in a
 * row, else by ids. Each family becomes one buffer (mpl_problem_hull), so offsets of a plan may
 * overlap there in parts that are not needed at once.
 * A header with a column `event` and no lifetimes is that of an allocation trace (time, event, id
 * and bytes are needed): births and deaths are positions of its rows (trace_csv.c). */
mpl_status mpl_csv_read(mpl_ctx *ctx, const char *path, mpl_problem **out, uint64_t **offset);
mpl_status mpl_csv_write(mpl_ctx *ctx, const char *path, const mpl_problem *p,
                         const uint64_t *offset);
/* The header, and a row for each buffer of the pool, without gaps and families; returns how many.
 * Ids are names if `named`, else numbers. A failed write shows in ferror(f). */
uint32_t mpl_csv_write_rows(FILE *f, const mpl_problem *p, uint32_t pool, bool named,
                            const uint64_t *offset);
/* A problem with a partial order, as recorded from libnnc: NAME.tensors.csv
 * (`id,bytes[,buffer,offset]`) and NAME.before.csv (`a,b`, arcs) beside it. record (may be NULL)
 * receives the production plan: each tensor's block and offset in it. Alignment 64. */
typedef struct mpl_nnc_record {
    bool has_plan;
    uint64_t *block;
    uint64_t *offset; /* within the block [byte] */
} mpl_nnc_record;
mpl_status mpl_nnc_read(mpl_ctx *ctx, const char *path, mpl_problem **out, mpl_nnc_record *record);
void mpl_nnc_record_fini(mpl_ctx *ctx, mpl_nnc_record *record);

/* A file in memory, of one of the formats of lists.def or of none. */
typedef struct mpl_list_in {
    const char *path; /* for messages; its last part names the problem */
    const char *text;
    size_t size;
    const char *line; /* the first that is neither blank nor a comment, without its newline */
    size_t line_size;
} mpl_list_in;

bool mpl_list_is(const mpl_list_in *in);
/* offset: as of mpl_csv_read. MPL_EINPUT with one line, also where mpl_list_is does not hold. */
mpl_status mpl_list_read(mpl_ctx *ctx, const mpl_list_in *in, mpl_problem **out, uint64_t **offset);
