/* shape_plan.c -- plans of single shapes, and their layouts. See template_priv.h. */
#include "planners/template/template_priv.h"

#define PLAN_TICKS UINT64_C(20000000) /* of a plan of one shape */

mpl_status mpl_plan_shape(mpl_run *run, const mpl_problem *p, mpl_plan **out)
{
    mpl_run one;
    mpl_status st;

    mpl_run_init(&one, run->ctx);
    one.seed = run->seed;
    one.deadline_ns = run->deadline_ns;
    one.budget_ticks = mpl_min_u64(PLAN_TICKS, run->budget_ticks);
    st = mpl_planner_run(mpl_planner_find("portfolio"), &one, p, out);
    run->ticks += one.ticks;
    run->stopped_by_clock = run->stopped_by_clock || one.stopped_by_clock;
    return st;
}

mpl_status mpl_template_replan(mpl_run *run, const mpl_sym_problem *sp, const int64_t *value,
                               uint64_t *bytes)
{
    mpl_status st = MPL_OK;
    mpl_problem *p = NULL;
    mpl_plan *plan = NULL;

    MPL_TRY(mpl_sym_problem_at(run->ctx, sp, value, &p));
    MPL_TRY(mpl_plan_shape(run, p, &plan));
    *bytes = plan->peak_bytes;
out:
    mpl_problem_free(run->ctx, p);
    mpl_plan_free(run->ctx, plan);
    return st;
}

/* The layout of the plan of a scene. */
mpl_status mpl_layout_at(mpl_draft *draft, const mpl_scene *scene, mpl_layout *layout)
{
    mpl_status st = MPL_OK;
    mpl_problem *p = NULL;
    mpl_plan *plan = NULL;

    MPL_TRY(mpl_sym_problem_at(draft->ctx, draft->sp, scene->value, &p));
    MPL_TRY(mpl_plan_shape(draft->run, p, &plan));
    MPL_TRY(mpl_layout_of_plan(draft, scene, plan->offset, layout));
out:
    mpl_problem_free(draft->ctx, p);
    mpl_plan_free(draft->ctx, plan);
    return st;
}
