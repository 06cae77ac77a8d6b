/* by_birth.h -- the order that best_fit and first_fit share. Private to planners/. */
#ifndef MPL_BY_BIRTH_H
#define MPL_BY_BIRTH_H

#include "planners/place/placement.h"

/* Places all by birth, the larger first among equals, each where `fit` says. Errors and cost:
 * mpl_place_all. */
mpl_status mpl_place_by_birth(mpl_run *run, const mpl_problem *p, mpl_fit fit, mpl_plan *out);

#endif
