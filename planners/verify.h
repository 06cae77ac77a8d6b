/* verify.h -- the independent verifier: the plainest check of a plan, sharing no helper with any planner. */
#ifndef MPL_VERIFY_H
#define MPL_VERIFY_H

#include "planners/plan.h"

/* Checks `plan` against `p`: one aligned offset per buffer, fixed places kept, ends inside the capacity and below 2^63, no
 * two conflicting buffers of a pool overlap unless they are an in-place pair at the same offset. On success writes pool_bytes
 * and peak_bytes into the plan and checks its bound and claim against them (a plan below its own bound is refused).
 * A plan that claims neither feasible nor optimal has nothing to check and is refused; blocks must not overlap each other.
 * MPL_EINVALID with one line that names the two buffers, the step and the byte range of the first conflict in
 * (step, lower id, higher id) order. MPL_EINPUT: the problem itself is broken. Serial: O(n log n) sweep.
 */
mpl_status mpl_verify(mpl_ctx *ctx, const mpl_problem *p, mpl_plan *plan);

#endif
