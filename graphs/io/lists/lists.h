/* lists.h -- buffer lists: files, and those made by rule. */
#ifndef MPL_LISTS_H
#define MPL_LISTS_H

#include "graphs/problem/problem.h"

/* A buffer list of n buffers for tests and measurements of speed: one birth a step, lifetimes
 * uniform in [1, 2 * alive), so that about `alive` buffers are alive at a time, sizes of 64 bytes
 * to 1 MiB spread over the powers of two. The same on every machine. n > 0, alive > 0. */
mpl_status mpl_problem_synthetic(mpl_ctx *ctx, uint32_t n, uint32_t alive, uint64_t seed,
                                 mpl_problem **out);

/* n buffers that fill 1,024 steps times 1 MiB (in units of 1 KiB) without a gap: a rectangle cut n
 * - 1 times at random. Their least height is 1,048,576 bytes. The same on every machine. 0 < n <=
 * 100,000; O(n^2). */
mpl_status mpl_problem_synthetic_guillotine(mpl_ctx *ctx, uint32_t n, uint64_t seed,
                                            mpl_problem **out);

/* MiniMalloc CSV: a header that names columns (id, lower or begin, upper or end, size, and
 * alignment, offset if there), one buffer a row, lifetimes half-open. The ids become names. offset
 * (may be NULL): *offset receives an array of the offsets where the file has them, else NULL. Times
 * past 2^22 are renumbered to their ranks. MPL_EINPUT with one line `FILE:LINE: ..`. Writing gives
 * the buffers of pool 0, by name where every name can stand in a row, else by id, and each family
 * as one buffer (mpl_problem_hull): a plan with offsets may overlap there in parts that are not
 * needed at once. */
mpl_status mpl_csv_read(mpl_ctx *ctx, const char *path, mpl_problem **out, uint64_t **offset);
/* A recorded problem with a partial order: NAME.tensors.csv (`id,bytes[,buffer,offset]`) with
 * NAME.before.csv (`a,b`, arcs) beside it, as libnnc's were recorded. record (may be NULL) receives
 * the production plan: block and offset within it per tensor. Alignment 64, as libnnc's on CPU. */
typedef struct mpl_nnc_record {
    bool has_plan;
    uint64_t *block;
    uint64_t *offset; /* within the block [byte] */
} mpl_nnc_record;
mpl_status mpl_nnc_read(mpl_ctx *ctx, const char *path, mpl_problem **out, mpl_nnc_record *record);
void mpl_nnc_record_fini(mpl_ctx *ctx, mpl_nnc_record *record);
mpl_status mpl_csv_write(mpl_ctx *ctx, const char *path, const mpl_problem *p,
                         const uint64_t *offset);

#endif
