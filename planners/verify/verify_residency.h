/* verify_residency.h -- checks plans of residency in time without any planner. */
#pragma once

#include "planners/plan/residency.h"

/* Follows every byte of both memories through the steps. Moves run in the order of the plan, those
 * before a step first: each copies the newest contents of its buffer, all of them, from where they
 * are, from when it may begin until the step that waits for it, and its place is its own meanwhile.
 * A step finds the newest contents of each operand whole at the stated place, operands do not
 * overlap, and none is in slow memory where that has no price. All offsets are aligned, fast memory
 * ends within the capacity, and bytes and cost are what was counted. With a bandwidth
 * the run is timed anew: the beginning of each move and the stall are as stated. Then the bound:
 * unless it is of a complete search, the prices of the steps prove it, by the cheapest way of each
 * buffer alone. MPL_EINVALID: one line that names the step and the buffer. MPL_EINPUT: the problem
 * itself. O(uses * pieces + steps). */
mpl_status mpl_verify_residency(mpl_ctx *ctx, const mpl_residency_problem *p,
                                const mpl_residency_plan *plan);
