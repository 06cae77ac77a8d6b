/* verify_priv.h -- shared by the files of mpl_verify. */
#pragma once

#include "planners/verify/verify.h"

/* Number of gaps of b; and whether b is needed at a step, which a gap is not. */
uint32_t mpl_verify_gaps(const mpl_problem *p, mpl_buffer b);
bool mpl_verify_needed(const mpl_problem *p, mpl_buffer b, uint32_t step);
/* Whether the partial order puts every use of a before every use of b. */
bool mpl_verify_before(const mpl_before *before, mpl_buffer a, mpl_buffer b);

/* MPL_EINVALID unless the plan's bound, claim, witness and cost agree with the problem and each
 * other. Pool 0 ends at peak_bytes. For a plan without overlaps. */
mpl_status mpl_verify_claims(mpl_ctx *ctx, const mpl_problem *p, const mpl_plan *plan,
                             uint64_t peak_bytes);
/* MPL_EINVALID unless the plan keeps the problem's constraints, which must be there. *height, where
 * pool 0 ends, is raised to the end of what is reserved. O(n * reserved * steps). [byte] */
mpl_status mpl_verify_constraints(mpl_ctx *ctx, const mpl_problem *p, const mpl_plan *plan,
                                  uint64_t *height);
