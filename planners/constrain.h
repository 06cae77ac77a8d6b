/* constrain.h -- plans under constraints, by planners that know none. See constrain.c. */
#pragma once

#include "planners/planner.h"

/* As mpl_planner_run. */
typedef mpl_status mpl_plan_by(const mpl_planner *planner, mpl_run *run, const mpl_problem *p,
                               mpl_plan **out);

/* The same for a problem with constraints, whose problems without them `plain` plans: *out is a
 * plan of p, not yet verified. MPL_EUNAVAIL: the planner cannot keep them; MPL_ELIMIT: too many
 * chunks. */
mpl_status mpl_constrained_plan(const mpl_planner *planner, mpl_run *run, const mpl_problem *p,
                                mpl_plan_by *plain, mpl_plan **out);
