/* verify_priv.h -- what the files of mpl_verify share. */
#ifndef MPL_VERIFY_PRIV_H
#define MPL_VERIFY_PRIV_H

#include "planners/verify/verify.h"

/* Gaps of b: how many. Whether b is needed at the step, a gap being none. */
uint32_t mpl_verify_gaps(const mpl_problem *p, mpl_buffer b);
bool mpl_verify_needed(const mpl_problem *p, mpl_buffer b, uint32_t step);
/* Whether every use of a precedes every use of b, as the partial order says. */
bool mpl_verify_before(const mpl_before *before, mpl_buffer a, mpl_buffer b);

/* MPL_EINVALID unless the plan's bound, claim, witness and cost agree with the problem and with
 * each other; pool 0 ends at peak_bytes. For a plan whose buffers keep apart. */
mpl_status mpl_verify_claims(mpl_ctx *ctx, const mpl_problem *p, const mpl_plan *plan,
                             uint64_t peak_bytes);

#endif
