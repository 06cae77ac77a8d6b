/* plan.h -- the result of a planner: offsets, a claim, a bound; and plan files. */
#pragma once

#include "graphs/problem/problem.h"

typedef enum mpl_claim { MPL_UNKNOWN, MPL_FEASIBLE, MPL_OPTIMAL, MPL_INFEASIBLE } mpl_claim;

/* A proof that no plan of `pool` ends within `within` bytes. */
typedef struct mpl_refutation {
    uint32_t pool;
    uint64_t within;    /* [byte] */
    char *steps;        /* the text (CERTIFICATES.md), owned; or NULL */
    const char *absent; /* why a needed proof is missing, static text; NULL: not tried */
} mpl_refutation;

/* Buffers of pool 0 spread over several memories, fast ones first (planners/spill/spill.c). Their
 * offsets count from the base of their memory, `optimal` refers to the cost, and bound_bytes is
 * 0. */
typedef struct mpl_spread {
    uint32_t n; /* memories; 0: pool 0 is not spread, the rest is unset */
    /* [n] or MPL_NO_CAPACITY [byte]. The plan owns this and the arrays below. */
    uint64_t *capacity;
    uint64_t *price;     /* [n] cost of one byte there */
    uint32_t *memory;    /* [plan's n] memory of each buffer; 0 in other pools */
    uint64_t cost;       /* sum of bytes * price over pool 0 */
    uint64_t cost_bound; /* lower bound of the cost, proved by the planner */
    uint64_t *bytes; /* [n] highest end of a buffer in each, written only by mpl_verify [byte] */
} mpl_spread;

typedef struct mpl_plan {
    uint32_t n;
    uint64_t *offset; /* [n] from the base of the buffer's pool [byte] */
    /* [n] block of each buffer, for planners whose total is a sum of blocks: ids dense from 0,
     * blocks end to end in the arena. NULL: one arena. Owned. */
    uint32_t *block;
    mpl_claim claim;
    uint64_t bound_bytes; /* lower bound of pool 0 proved by the planner; 0: none [byte] */

    /* Certificate of the bound: pairwise conflicting buffers of pool 0 whose sizes prove
     * bound_bytes (mpl_lower_bound). NULL: none. Owned. */
    uint32_t n_witness;
    mpl_buffer *witness; /* [n_witness] ascending */

    /* Certificate of a search that proved more than such a set can: of bound_bytes (pool 0, one
     * byte less) or of `infeasible`. */
    mpl_refutation refutation;

    mpl_spread spread;

    /* Written only by mpl_verify. */
    uint32_t n_pools;
    /* [n_pools] highest end of a buffer; for a spread pool 0, the sum over its memories [byte] */
    uint64_t *pool_bytes;
    uint64_t peak_bytes; /* pool_bytes[0], planned_bytes of a row [byte] */
} mpl_plan;

/* Raises the plan's bound to what the problem itself proves, with its witness. A plan that meets it
 * is optimal. Needs peak_bytes. Does nothing for a spread pool 0, which has no bound in bytes. */
mpl_status mpl_plan_bound(mpl_ctx *ctx, const mpl_problem *p, mpl_plan *plan);

/* all offsets 0, one arena */
mpl_status mpl_plan_new(mpl_ctx *ctx, const mpl_problem *p, mpl_plan **out);
/* Makes room for n > 0 memories in a new plan: capacity and price 0, all buffers in the first. */
mpl_status mpl_plan_spread(mpl_ctx *ctx, mpl_plan *plan, uint32_t n);
/* A buffer's arena, below mpl_plan_n_arenas: the memories of pool 0, then the other pools. */
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
/* Predicate of mpl_assert_ok for our own planners' plans: values in range; offsets aligned, and
 * fixed or at their family's distances where required. Overlaps are left to the verifier. */
bool mpl_plan_ok(const mpl_problem *p, const mpl_plan *plan);
const char *mpl_claim_name(mpl_claim claim);

/* Bytes of one arena in which each block of a block plan is placed as a whole, largest first, over
 * its time from first birth to last death: packed_bytes of a row. peak_bytes for a plan without
 * blocks. Only for verified plans. Serial: O(n log n + pairs of blocks alive at once). */
mpl_status mpl_plan_packed(mpl_ctx *ctx, const mpl_problem *p, const mpl_plan *plan,
                           uint64_t *bytes);

/* Fields of a plan file unknown to the planner: the row's, as a JSON object's text, or NULL. */
typedef struct mpl_plan_file {
    char *fields_json;
    mpl_problem *problem;
    mpl_plan *plan;
} mpl_plan_file;

/* Writes one self-contained JSON object (format: this folder's README). Writes a temporary file
 * beside `path`, then renames it, so that a full disk loses nothing. Equal plans give equal
 * bytes. */
mpl_status mpl_plan_write(mpl_ctx *ctx, const char *path, const mpl_problem *p,
                          const mpl_plan *plan, const char *fields_json);
/* The same as text, without a newline; the caller frees it (mpl_free). */
mpl_status mpl_plan_text(mpl_ctx *ctx, const mpl_problem *p, const mpl_plan *plan,
                         const char *fields_json, char **text);
/* metadata entry of an ONNX model that holds the text */
#define MPL_PLAN_NOTE "memplan.plan"
/* Reads a plan file, or the plan in an ONNX model. MPL_EINPUT with one line unless the file is
 * complete and consistent, its hash included. Does not verify the plan. */
mpl_status mpl_plan_read(mpl_ctx *ctx, const char *path, mpl_plan_file *out);
void mpl_plan_file_fini(mpl_ctx *ctx, mpl_plan_file *file);

/* Highest end of a buffer in a pool, from offset[n] [byte]. */
uint64_t mpl_pool_height(const mpl_problem *p, uint32_t pool, const uint64_t *offset);
