/* fold_pairs.h -- in-place folding: pairs taken up before planning, so that any planner gains from
 * them. */
#ifndef MPL_FOLD_H
#define MPL_FOLD_H

#include "graphs/problem/problem.h"

/* Takes in-place pairs greedily in the order of the problem (step, out, in): an output joins its
 * input's group unless it has joined another, or another output has joined that input. A group
 * becomes one buffer, as large as its first member, born with the first and dead with the last.
 * Parts of families join no group. What is left has no pairs. into[n] receives each buffer's new
 * id; new ids ascend with the first member. A plan of the folded problem is a plan of this one when
 * every buffer takes the offset of into[] (mpl_fold_expand). */
mpl_status mpl_problem_fold(mpl_ctx *ctx, const mpl_problem *p, mpl_problem **out, uint32_t *into);

#endif
