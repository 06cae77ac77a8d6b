/* exact.c -- finds the lowest plan, or decides whether one fits: bounds, heuristics, and a complete
 * search between them.
 *
 * Idea     exact_serial.c; for a partial order, gaps, pairs or families exact_general.c.
 * Source   this project; exact_search.c
 * Cost     Exponential. Without budget and deadline it ends after some 20 seconds of ticks. */
#include "planners/exact/exact.h"

#include "graphs/core/names.h"

static const char *const rule_names[MPL_N_RULES] = {
#define RULE(name) #name,
#include "planners/exact/rules.def"
#undef RULE
};

static mpl_status plan(mpl_run *run, const mpl_problem *p, mpl_plan *out)
{
    mpl_exact_options options;
    const char *without = mpl_run_param(run, "without");
    int64_t minimise, proofs;

    MPL_PASS(mpl_run_param_int(run, "minimise", 0, 1, 0, &minimise));
    MPL_PASS(mpl_run_param_int(run, "proof", 0, 1, 1, &proofs));
    options = (mpl_exact_options){.minimise = minimise != 0, .proofs = proofs != 0};
    if (without != NULL)
        MPL_PASS(mpl_names_to_bits(run->ctx, "planner exact: without", without, MPL_N_RULES,
                                   rule_names, &options.without));
    return mpl_exact_plan(run, p, &options, out);
}

const mpl_planner mpl_planner_exact = {
    .name = "exact",
    .about = "complete search from the bound up",
    .source = "this project",
    .params = "minimise=0|1,proof=0|1,without=A+B",
    .traits = MPL_EXACT | MPL_RANDOM | MPL_USES_IN_PLACE | MPL_USES_GAPS | MPL_USES_FAMILIES,
    .plan = plan,
};
