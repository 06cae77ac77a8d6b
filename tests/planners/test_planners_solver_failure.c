/* test_planners_solver_failure.c -- internal errors of GLPK: this file wraps GLPK's branch and
 * bound and makes a chosen number of calls fail. */
#include "tests/support/random_problem.h"

#include <dlfcn.h>

#include "planners/ilp/ilp.h"

static uint32_t n_failing, n_calls;

int glp_intopt(void *program, const void *parameters);

/* Replaces GLPK's: the linker prefers the program's own. */
int glp_intopt(void *program, const void *parameters)
{
    union {
        void *symbol;
        void (*assertion)(const char *text, const char *file, int line);
        int (*call)(void *program, const void *parameters);
    } real;

    n_calls++;
    real.symbol = dlsym(RTLD_NEXT, n_failing > 0 ? "glp_assert_" : "glp_intopt");
    assert_non_null(real.symbol);
    if (n_failing > 0) {
        n_failing--;
        real.assertion("injected", "nowhere.c", 1);
    }
    return real.call(program, parameters);
}

/* Plans p with ilp while that many calls fail. */
static mpl_plan *plan_failing(mpl_ctx *ctx, const mpl_problem *p, uint32_t failing, mpl_run *run)
{
    mpl_plan *plan = NULL;

    *run = mpl_run_default(ctx);
    n_failing = failing;
    n_calls = 0;
    assert_ok(ctx, mpl_planner_run(mpl_planner_find("ilp"), run, p, &plan));
    n_failing = 0;
    return plan;
}

static void drawn(mpl_ctx *ctx, mpl_rng *rng, mpl_problem **p)
{
    assert_ok(ctx, mpl_problem_new(ctx, "drawn", 20, p));
    (*p)->n_steps = 12;
    for (mpl_buffer b = 0; b < (*p)->n; b++) {
        (*p)->bytes[b] = 1 + random_below(rng, 30);
        (*p)->birth[b] = random_below(rng, 11);
        (*p)->death[b] = (*p)->birth[b] + 1 + random_below(rng, 12 - (*p)->birth[b]);
    }
}

/* Fault: "wrong input" when a solver fails; a claim based on a failure; a retry that loses what the
 * first call would find. */
TEST(the_start_stands)
{
    uint32_t n_gave_up = 0, n_feasible = 0, n_again = 0;
    mpl_rng rng;

    if (mpl_planner_find("ilp")->plan == NULL)
        skip();
    rng = mpl_rng_of(7);
    for (int i = 0; i < 400; i++) {
        owned_problem *p = NULL;
        mpl_run run;
        mpl_plan *whole, *plan;

        drawn(ctx, &rng, &p);
        whole = plan_failing(ctx, p, 0, &run);
        assert_int_equal(whole->claim, MPL_OPTIMAL);
        assert_false(run.solver_gave_up);
        for (uint32_t failing = 1; n_calls > 0 && failing <= 2; failing++) {
            plan = plan_failing(ctx, p, failing, &run);
            assert_int_equal(plan->peak_bytes, whole->peak_bytes);
            assert_int_equal(plan->claim, MPL_OPTIMAL);
            assert_false(run.solver_gave_up);
            n_again += n_calls > failing;
            mpl_plan_free(ctx, plan);
        }
        plan = plan_failing(ctx, p, UINT32_MAX, &run);
        assert_true(plan->peak_bytes >= whole->peak_bytes &&
                    plan->bound_bytes <= whole->peak_bytes);
        assert_true(plan->claim == MPL_OPTIMAL || plan->claim == MPL_FEASIBLE);
        assert_int_equal(run.solver_gave_up, n_calls > 0);
        n_gave_up += run.solver_gave_up;
        n_feasible += plan->claim == MPL_FEASIBLE;
        mpl_plan_free(ctx, plan);
        mpl_plan_free(ctx, whole);
    }
    assert_int_equal(ctx->n_live, 0);
    print_message("GLPK gave up in %u of 400, %u of them not proved; %u calls again\n", n_gave_up,
                  n_feasible, n_again);
    assert_true(n_gave_up >= 10 && n_feasible >= 5 && n_again >= 10);
}

/* The network whose program failed GLPK's assertion. */
TEST(no_network_is_wrong_input)
{
    const char *program = getenv("MEMPLAN") != NULL ? getenv("MEMPLAN") : "build/debug/memplan";
    char command[600];

    if (mpl_planner_find("ilp")->plan == NULL)
        skip();
    snprintf(command, sizeof command,
             "%s plan densenet121:batch=16,mode=train -p ilp --json | "
             "grep -q '\"status\":\"ok\".*\"claim\":\"\\(optimal\\|feasible\\)\"'",
             program);
    assert_int_equal(system(command), 0);
}

TESTS(the_start_stands, no_network_is_wrong_input)
