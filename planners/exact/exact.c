/* exact.c -- the lowest plan there is, or whether one fits: bounds, heuristics, and a complete
 * search between them.
 *
 * Idea     exact_serial.c; under a partial order, with gaps, pairs or families: exact_general.c.
 * Source   this project; exact_search.c
 * Cost     Exponential. Without budget and deadline the search ends after some 20 seconds of
 *          ticks. */
#include "planners/exact/exact.h"

static const char *const rule_names[MPL_N_RULES] = {
#define RULE(name) #name,
#include "planners/exact/rules.def"
#undef RULE
};

static const char rule_list[] =
#define RULE(name) " " #name
#include "planners/exact/rules.def"
#undef RULE
    ;

/* The rules of "A+B+.." as bits. */
static mpl_status parse_without(const mpl_run *run, uint32_t *without)
{
    mpl_status st = MPL_OK;
    const char *at = mpl_run_param(run, "without");

    for (*without = 0; at != NULL && *at != '\0'; at += *at == '+') {
        size_t n = strcspn(at, "+");
        uint32_t rule = 0;

        while (rule < MPL_N_RULES &&
               (strncmp(rule_names[rule], at, n) != 0 || rule_names[rule][n] != '\0'))
            rule++;
        if (rule == MPL_N_RULES)
            MPL_FAIL(run->ctx, MPL_EINPUT,
                     "planner exact: without=%.*s is not possible; there are:%s", (int)n, at,
                     rule_list);
        *without |= UINT32_C(1) << rule;
        at += n;
    }
out:
    return st;
}

static mpl_status plan(mpl_run *run, const mpl_problem *p, mpl_plan *out)
{
    mpl_status st = MPL_OK;
    mpl_exact_options options;
    int64_t minimise, proofs;

    MPL_TRY(mpl_run_param_int(run, "minimise", 0, 1, 0, &minimise));
    MPL_TRY(mpl_run_param_int(run, "proof", 0, 1, 1, &proofs));
    options = (mpl_exact_options){.minimise = minimise != 0, .proofs = proofs != 0};
    MPL_TRY(parse_without(run, &options.without));
    MPL_TRY(mpl_exact_plan(run, p, &options, out));
out:
    return st;
}

const mpl_planner mpl_planner_exact = {
    .name = "exact",
    .about = "complete search from the bound up",
    .source = "this project",
    .params = "minimise=0|1,proof=0|1,without=A+B",
    .traits = MPL_EXACT | MPL_RANDOM | MPL_USES_IN_PLACE | MPL_USES_GAPS | MPL_USES_FAMILIES,
    .plan = plan,
};
