/* verify_priv.h -- what the files of mpl_verify share. */
#ifndef MPL_VERIFY_PRIV_H
#define MPL_VERIFY_PRIV_H

#include "planners/verify/verify.h"

/* MPL_EINVALID unless the plan's bound, claim, witness and cost agree with the problem and with
 * each other; pool 0 ends at peak_bytes. For a plan whose buffers keep apart. */
mpl_status mpl_verify_claims(mpl_ctx *ctx, const mpl_problem *p, const mpl_plan *plan,
                             uint64_t peak_bytes);

#endif
