/* plan.h -- what a planner makes: one offset a buffer, a claim, a bound; and plans as files. */
#ifndef MPL_PLAN_H
#define MPL_PLAN_H

#include "graphs/problem.h"

typedef enum mpl_claim { MPL_UNKNOWN, MPL_FEASIBLE, MPL_OPTIMAL, MPL_INFEASIBLE } mpl_claim;

/* Why no plan of pool `pool` ends within `within` bytes. */
typedef struct mpl_refutation {
    uint32_t pool;
    uint64_t within; /* [byte] */
    char *steps;     /* the text (proof.h); NULL: there is none. Owned. */
} mpl_refutation;

typedef struct mpl_plan {
    uint32_t n;
    uint64_t *offset; /* [n] from the base of the buffer's pool. [byte] */
    uint32_t *
        block; /* [n] block of each buffer, ids dense from 0, for planners whose total is a sum of blocks; blocks
                           * stand end to end in the arena; NULL: one arena. Owned. */
    mpl_claim claim;
    uint64_t bound_bytes; /* lower bound that the planner proved for pool 0, 0 if none [byte] */

    /* Certificate of the bound: pairwise conflicting buffers of pool 0 whose sizes prove bound_bytes (mpl_lower_bound);
     * NULL: none. Owned. */
    uint32_t n_witness;
    mpl_buffer *witness; /* [n_witness] ascending */

    /* Certificate where a search proved more than any such set: of bound_bytes (pool 0, one byte less), or of `infeasible`. */
    mpl_refutation refutation;

    /* Written by mpl_verify alone, the same way for every planner. */
    uint32_t n_pools;
    uint64_t *pool_bytes; /* [n_pools] highest end of a buffer in each pool [byte] */
    uint64_t peak_bytes;  /* pool_bytes[0]: DESIGN's planned_bytes [byte] */
} mpl_plan;

/* Raises the plan's bound to what the problem itself proves, with its witness; a plan that meets it is optimal,
 * whoever made it. peak_bytes must be known. */
mpl_status mpl_plan_bound(mpl_ctx *ctx, const mpl_problem *p, mpl_plan *plan);

mpl_status mpl_plan_new(mpl_ctx *ctx, const mpl_problem *p, mpl_plan **out); /* all offsets 0, one arena */
void mpl_plan_free(mpl_ctx *ctx, mpl_plan *plan);
const char *mpl_claim_name(mpl_claim claim);

/* The bytes one arena needs when each block of a block plan is placed as a whole (largest first, over the
 * time from its first birth to its last death): DESIGN's packed_bytes. peak_bytes for a plan without blocks. Only for
 * verified plans. Serial: O(n log n + pairs of blocks that live at once). */
mpl_status mpl_plan_packed(mpl_ctx *ctx, const mpl_problem *p, const mpl_plan *plan, uint64_t *bytes);

/* Facts that a plan file carries and the planner does not know: the row's fields, as a JSON object's text (NULL: none). */
typedef struct mpl_plan_file {
    char *fields_json;
    mpl_problem *problem;
    mpl_plan *plan;
} mpl_plan_file;

/* One JSON object that stands alone (DESIGN "A plan file is"). Writing goes to a temporary file beside `path`, then
 * renames: a full disk loses nothing. Same plan, same bytes. */
mpl_status mpl_plan_write(mpl_ctx *ctx, const char *path, const mpl_problem *p, const mpl_plan *plan,
                          const char *fields_json);
/* MPL_EINPUT with one line for anything that is not a whole, consistent plan file (the embedded hash included). The
 * plan is not verified yet. */
mpl_status mpl_plan_read(mpl_ctx *ctx, const char *path, mpl_plan_file *out);
void mpl_plan_file_fini(mpl_ctx *ctx, mpl_plan_file *file);

#endif
