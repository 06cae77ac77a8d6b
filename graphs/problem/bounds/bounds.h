/* bounds.h -- what no plan of a problem can do without. */
#ifndef MPL_BOUNDS_H
#define MPL_BOUNDS_H

#include "graphs/problem/problem.h"

/* Peak live bytes of one pool of a serial problem: max over steps of the live bytes, where an
 * output counts together with at most one input that it may overwrite at that step, at the largest
 * saving. Sizes are rounded up to the pool's least alignment, less the largest rest among the live
 * ones, since a plan ends where its topmost buffer ends. No valid plan needs less. live[n_steps]
 * (may be NULL) receives each step's figure, *peak_step (may be NULL) the first step that reaches
 * the peak. MPL_EINPUT: a sum passes 2^63, or the problem has a partial order. O(n log n +
 * n_steps). */
mpl_status mpl_peak_live(mpl_ctx *ctx, const mpl_problem *p, uint32_t pool, uint64_t *peak,
                         uint64_t *live, uint32_t *peak_step);

/* The bound of either safety: peak live bytes, or the heaviest antichain, raised to the next end
 * that alignments allow: a pool ends where one of its buffers does, and that begins at a multiple
 * of its alignment. member[n] (may be NULL) receives 1 for a set of pairwise conflicting buffers
 * whose sizes add up to it before it is raised, the witness: sizes in whole slots of the pool's
 * least alignment, less the largest rest of a last slot among them. All 0 where one operation may
 * overwrite fewer inputs than it has outputs to put there: then pairs remain among the live, and
 * the bound stands without a witness. */
mpl_status mpl_lower_bound(mpl_ctx *ctx, const mpl_problem *p, uint32_t pool, uint64_t *bytes,
                           uint8_t *member);

/* The same before it is raised. */
mpl_status mpl_witness_bound(mpl_ctx *ctx, const mpl_problem *p, uint32_t pool, uint64_t *bytes,
                             uint8_t *member);

/* The least alignment of a pool: every offset is a multiple of it. */
uint64_t mpl_pool_grain(const mpl_problem *p, uint32_t pool);

/* Sum of all buffers of one pool, each rounded up to its alignment: nothing shared. [byte] */
mpl_status mpl_naive_bytes(mpl_ctx *ctx, const mpl_problem *p, uint32_t pool, uint64_t *bytes);

#endif
