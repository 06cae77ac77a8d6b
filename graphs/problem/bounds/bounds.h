/* bounds.h -- lower bounds on the bytes of any plan of a problem. */
#pragma once

#include "graphs/problem/problem.h"

/* Peak live bytes of one pool of a serial problem: the maximum over steps. An output may overwrite
 * at most one input at its step; the largest possible saving is subtracted. Sizes are rounded up to
 * the pool's least alignment, minus the largest rounding among the live buffers, since a plan ends
 * where its topmost buffer ends. No valid plan needs less. live[n_steps] (may be NULL) receives the
 * bytes of each step, *peak_step (may be NULL) the first step at the peak. MPL_EINPUT: a sum
 * exceeds 2^63, or the problem has a partial order. O(n log n + n_steps). */
mpl_status mpl_peak_live(mpl_ctx *ctx, const mpl_problem *p, uint32_t pool, uint64_t *peak,
                         uint64_t *live, uint32_t *peak_step);

/* Lower bound under either safety: peak live bytes, or the heaviest antichain, raised to the next
 * possible end of a pool. A pool ends where one of its buffers does, and buffers begin at multiples
 * of their alignment. member[n] (may be NULL) receives 1 for the witness: pairwise conflicting
 * buffers whose sizes add up to the bound before it is raised. Sizes are rounded as in
 * mpl_peak_live. The witness is empty (all 0) where one operation has more outputs than inputs to
 * overwrite: then the live set still contains in-place pairs, and the bound holds without a
 * witness. */
mpl_status mpl_lower_bound(mpl_ctx *ctx, const mpl_problem *p, uint32_t pool, uint64_t *bytes,
                           uint8_t *member);

/* The same bound before it is raised. */
mpl_status mpl_witness_bound(mpl_ctx *ctx, const mpl_problem *p, uint32_t pool, uint64_t *bytes,
                             uint8_t *member);

/* Least alignment of a pool; it divides every offset. [byte] */
uint64_t mpl_pool_grain(const mpl_problem *p, uint32_t pool);

/* Bytes without sharing: the sum of one pool's buffers, each rounded up to its alignment. [byte] */
mpl_status mpl_naive_bytes(mpl_ctx *ctx, const mpl_problem *p, uint32_t pool, uint64_t *bytes);
