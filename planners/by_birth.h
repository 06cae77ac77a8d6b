/* by_birth.h -- the order that best_fit and first_fit share. Private to planners/. */
#ifndef MPL_BY_BIRTH_H
#define MPL_BY_BIRTH_H

#include "planners/placement.h"

/* All ids by birth, the larger first among equals, then by id. Under parallel, where there are no births,
 * by the number of buffers that are before: if a is before b, then b has all of a's and a itself, so this
 * respects the order. O(n log n); under parallel O(n^2). */
mpl_status mpl_order_by_birth(mpl_ctx *ctx, const mpl_problem *p, mpl_buffer *order);

/* Places all in that order, each where `fit` says. Errors and cost: mpl_place_all. */
mpl_status mpl_place_by_birth(mpl_run *run, const mpl_problem *p, mpl_fit fit, mpl_plan *out);

#endif
