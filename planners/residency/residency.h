/* residency.h -- plans residency in time: what lies in fast memory while which steps run
 * (planners/plan/residency.h). */
#pragma once

#include "planners/plan/residency.h"
#include "planners/planner.h"

/* Furthest next use: before a step, what is used last of all leaves until its operands fit.
 * *cost: that of this rule where fragments of fast memory count as free. *stall_ns, unless NULL, of
 * a problem with a bandwidth: likewise, with moves as early as there is room. The sizes are rounded
 * up to the alignment, as in all functions here. */
mpl_status mpl_residency_belady(mpl_ctx *ctx, const mpl_residency_problem *p, uint64_t *cost,
                                uint64_t *stall_ns);
/* As XLA assigns memory spaces: buffers with most uses for their bytes and steps first; each gets
 * fast memory for its whole life, else between uses where there is room. *cost as above. */
mpl_status mpl_residency_greedy(mpl_ctx *ctx, const mpl_residency_problem *p, uint64_t *cost,
                                uint64_t *stall_ns);

/* The plan of least cost: bounded by prices of fast memory at each step, improved by search near
 * by, proved by a complete search or a mixed integer program as far as the run's budget lasts, and
 * placed within the capacity. With a bandwidth then the plan of least stall: proved by prices, and
 * on small problems by trying all.
 * run->ticks: buffers decided. MPL_ELIMIT: no plan was found that fits. */
mpl_status mpl_residency_solve(mpl_run *run, const mpl_residency_problem *p,
                               mpl_residency_plan **out);
