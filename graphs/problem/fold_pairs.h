/* fold_pairs.h -- resolves in-place pairs before planning, so that any planner gains from them. */
#pragma once

#include "graphs/problem/problem.h"

/* Takes in-place pairs greedily in the order of the problem (step, out, in). An output joins its
 * input's group unless it has joined another, or another output has joined that input. A group
 * becomes one buffer of its first member's size, from the first member's birth to the last one's
 * death. Parts of families join no group. The folded problem has no pairs. into[n] receives each
 * buffer's new id; new ids ascend with the first member. A plan of the folded problem becomes a
 * plan of p if every buffer takes the offset of into[] (mpl_fold_expand). */
mpl_status mpl_problem_fold(mpl_ctx *ctx, const mpl_problem *p, mpl_problem **out, uint32_t *into);
