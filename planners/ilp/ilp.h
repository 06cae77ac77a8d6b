/* ilp.h -- placement as an integer program, for other solvers. */
#ifndef MPL_ILP_H
#define MPL_ILP_H

#include "planners/plan/plan.h"

/* Writes the program whose solutions are plans of pool 0 no higher than `known`, the lowest among
 * them, in CPLEX LP format. The objective is the height in bytes; x<buffer> counts what is larger
 * of the buffer's alignment and the unit that the problem's name tells; y<a>_<b> is 1 where a lies
 * below b. MPL_EINPUT: no buffer or too many, or the file cannot be written; MPL_EUNAVAIL: GLPK is
 * not in this build. O(n^2) bytes. */
mpl_status mpl_ilp_write(mpl_ctx *ctx, const mpl_problem *p, const mpl_plan *known,
                         const char *path);

#endif
