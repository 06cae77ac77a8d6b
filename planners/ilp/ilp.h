/* ilp.h -- placement as an integer program, written for other solvers. */
#pragma once

#include "planners/plan/plan.h"

/* Writes, in CPLEX LP format, the program of all plans of pool 0 at most as high as `known`. The
 * objective is the height [byte]. x<buffer> is an offset, in multiples of the larger of the
 * buffer's alignment and the unit that the problem's name tells. y<a>_<b> is 1 if a lies below b.
 * MPL_EINPUT: no buffer or too many, or the file cannot be written; MPL_EUNAVAIL: GLPK is not in
 * this build. O(n^2) bytes. */
mpl_status mpl_ilp_write(mpl_ctx *ctx, const mpl_problem *p, const mpl_plan *known,
                         const char *path);
