/* plan.h -- what a planner makes: one offset a buffer, a claim, a bound; and plans as files. */
#ifndef MPL_PLAN_H
#define MPL_PLAN_H

#include "graphs/problem/problem.h"

typedef enum mpl_claim { MPL_UNKNOWN, MPL_FEASIBLE, MPL_OPTIMAL, MPL_INFEASIBLE } mpl_claim;

/* Why no plan of pool `pool` ends within `within` bytes. */
typedef struct mpl_refutation {
    uint32_t pool;
    uint64_t within;    /* [byte] */
    char *steps;        /* the text (CERTIFICATES.md); NULL: there is none. Owned. */
    const char *absent; /* why not, where the claim would need it: a few words, static; NULL: nobody
                           tried */
} mpl_refutation;

/* The buffers of pool 0 spread over several memories, near ones first (planners/spill/spill.c).
 * Then their offsets count from the base of their memory, `optimal` speaks of the cost, and
 * bound_bytes is 0. */
typedef struct mpl_spread {
    uint32_t n;          /* memories; 0: pool 0 is one, and the rest is not there */
    uint64_t *capacity;  /* [n] or MPL_NO_CAPACITY. Owned, like those below. [byte] */
    uint64_t *price;     /* [n] of a byte that lies there */
    uint32_t *memory;    /* [plan's n] where each buffer lies; 0 for those of other pools */
    uint64_t cost;       /* bytes * price, over the buffers of pool 0 */
    uint64_t cost_bound; /* proved by the planner: nobody pays less */
    uint64_t *bytes; /* [n] written by mpl_verify alone: highest end of a buffer in each [byte] */
} mpl_spread;

typedef struct mpl_plan {
    uint32_t n;
    uint64_t *offset; /* [n] from the base of the buffer's pool. [byte] */
    uint32_t *block;  /* [n] block of each buffer, ids dense from 0, for planners whose total is a
                       * sum of blocks; blocks  stand end to end in the arena; NULL: one arena.
                       * Owned.
                       */
    mpl_claim claim;
    uint64_t bound_bytes; /* lower bound that the planner proved for pool 0, 0 if none [byte] */

    /* Certificate of the bound: pairwise conflicting buffers of pool 0 whose sizes prove
     * bound_bytes (mpl_lower_bound); NULL: none. Owned. */
    uint32_t n_witness;
    mpl_buffer *witness; /* [n_witness] ascending */

    /* Certificate where a search proved more than any such set: of bound_bytes (pool 0, one byte
     * less), or of `infeasible`. */
    mpl_refutation refutation;

    mpl_spread spread;

    /* Written by mpl_verify alone, the same way for every planner. */
    uint32_t n_pools;
    uint64_t *pool_bytes; /* [n_pools] highest end of a buffer in each pool;
                           * pool 0 spread: the sum over its memories [byte] */
    uint64_t peak_bytes;  /* pool_bytes[0]: a row's planned_bytes [byte] */
} mpl_plan;

/* Raises the plan's bound to what the problem itself proves, with its witness; a plan that meets it
 * is optimal, whoever made it. peak_bytes must be known. Nothing for a plan whose pool 0 is spread:
 * it claims nothing of bytes. */
mpl_status mpl_plan_bound(mpl_ctx *ctx, const mpl_problem *p, mpl_plan *plan);

/* all offsets 0, one arena */
mpl_status mpl_plan_new(mpl_ctx *ctx, const mpl_problem *p, mpl_plan **out);
/* Makes room for n > 0 memories in a new plan: all of them with capacity and price 0, all buffers
 * in the first. */
mpl_status mpl_plan_spread(mpl_ctx *ctx, mpl_plan *plan, uint32_t n);
/* Which arena a buffer lies in, of mpl_plan_n_arenas: the memories of pool 0, then the other
 * pools. */
static inline uint32_t mpl_plan_arena(const mpl_problem *p, const mpl_plan *plan, mpl_buffer b)
{
    return plan->spread.n == 0 ? p->pool[b]
           : p->pool[b] == 0   ? plan->spread.memory[b]
                               : plan->spread.n - 1 + p->pool[b];
}
static inline uint32_t mpl_plan_n_arenas(const mpl_plan *plan)
{
    return plan->n_pools + (plan->spread.n > 0 ? plan->spread.n - 1 : 0);
}
void mpl_plan_free(mpl_ctx *ctx, mpl_plan *plan);
/* mpl_assert_ok's predicate of a plan that a planner of ours made: everything is in range, offsets
 * are aligned, where they are fixed or at their family's distances. Whether buffers overlap is the
 * verifier's question. */
bool mpl_plan_ok(const mpl_problem *p, const mpl_plan *plan);
const char *mpl_claim_name(mpl_claim claim);

/* The bytes one arena needs when each block of a block plan is placed as a whole (largest first,
 * over the time from its first birth to its last death): a row's packed_bytes; peak_bytes for a
 * plan without blocks. Only for verified plans. Serial: O(n log n + pairs of blocks that live at
 * once). */
mpl_status mpl_plan_packed(mpl_ctx *ctx, const mpl_problem *p, const mpl_plan *plan,
                           uint64_t *bytes);

/* Facts that a plan file carries and the planner does not know: the row's fields, as a JSON
 * object's text (NULL: none). */
typedef struct mpl_plan_file {
    char *fields_json;
    mpl_problem *problem;
    mpl_plan *plan;
} mpl_plan_file;

/* One JSON object that stands alone (this folder's page). Writing goes to a temporary file beside
 * `path`, then renames: a full disk loses nothing. Same plan, same bytes. */
mpl_status mpl_plan_write(mpl_ctx *ctx, const char *path, const mpl_problem *p,
                          const mpl_plan *plan, const char *fields_json);
/* The same as text, without an end of line; the caller's (mpl_free). */
mpl_status mpl_plan_text(mpl_ctx *ctx, const mpl_problem *p, const mpl_plan *plan,
                         const char *fields_json, char **text);
/* the entry of an ONNX model's metadata that holds such a text */
#define MPL_PLAN_NOTE "memplan.plan"
/* Reads a plan file, or the plan in an ONNX model. MPL_EINPUT with one line for anything that is
 * not a whole, consistent plan file (the embedded hash included). The plan is not verified yet. */
mpl_status mpl_plan_read(mpl_ctx *ctx, const char *path, mpl_plan_file *out);
void mpl_plan_file_fini(mpl_ctx *ctx, mpl_plan_file *file);

/* Where the buffers of a pool end, by offset[n]. [byte] */
uint64_t mpl_pool_height(const mpl_problem *p, uint32_t pool, const uint64_t *offset);

#endif
