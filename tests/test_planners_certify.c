/* Certificates: of thousands of small problems, above all those whose optimum lies above the bound, each is accepted, and its
 * bound is what brute force finds. Changed certificates and plans never prove what is false. */
#include "tests/small_problem.h"

#include "planners/certify.h"
#include "planners/planner.h"

#include <stdlib.h>

/* ---- problems with their certificates -------------------------------------------------------------------------- */

/* A problem that random ones lead to: mutants of the roots, alignments and fixed places thrown in. */
static small bred(mpl_rng *rng, const small *kept, uint32_t n_kept)
{
    small p = n_kept < 2 ? roots[n_kept] : kept[below(rng, n_kept)];

    if (n_kept >= 2)
        for (uint32_t k = 1 + below(rng, 3); k > 0; k--)
            p = mutated(rng, &p);
    if (below(rng, 8) == 0)
        p.align[below(rng, p.n)] = 1u << below(rng, 3);
    return p;
}

static mpl_plan *planned(mpl_ctx *ctx, const mpl_problem *p)
{
    mpl_plan *plan = NULL;
    mpl_run run;

    mpl_run_init(&run, ctx);
    assert_ok(ctx, mpl_planner_run(mpl_planner_find("exact"), &run, p, &plan));
    return plan;
}

static void assert_proved(mpl_ctx *ctx, const mpl_problem *p, mpl_plan *plan, uint64_t bound)
{
    mpl_certified proved;

    assert_ok(ctx, mpl_certify(ctx, p, plan, &proved));
    assert_true(proved.evidence != MPL_EVIDENCE_NONE);
    assert_int_equal(proved.bound, bound);
}

static void assert_certified(mpl_ctx *ctx, const small *from, uint32_t optimum)
{
    mpl_problem *p = problem_of(ctx, from);
    mpl_plan *plan = planned(ctx, p);

    assert_int_equal(plan->claim, MPL_OPTIMAL);
    assert_int_equal(plan->peak_bytes, optimum);
    assert_proved(ctx, p, plan, optimum);
    mpl_plan_free(ctx, plan);
    p->pool_capacity[0] = optimum - 1;
    plan = planned(ctx, p);
    assert_int_equal(plan->claim, MPL_INFEASIBLE);
    assert_proved(ctx, p, plan, optimum);
    mpl_plan_free(ctx, plan);
    mpl_problem_free(ctx, p);
}

static void optima_are_certified(void **state)
{
    enum { MANY = 600 };
    static small kept[MANY];
    mpl_ctx ctx;
    mpl_rng rng;

    (void)state;
    mpl_ctx_init(&ctx);
    mpl_rng_init(&rng, 21);
    for (uint32_t n = 0; n < MANY;) {
        small p = bred(&rng, kept, n);

        if (p.n < 4 || brute_fits(&p, load(&p)))
            continue;
        kept[n++] = p;
        assert_certified(&ctx, &p, brute_optimum(&p));
    }
    assert_int_equal(ctx.n_live, 0);
}

static void random_plans_are_certified(void **state)
{
    mpl_ctx ctx;
    mpl_rng rng;

    (void)state;
    mpl_ctx_init(&ctx);
    mpl_rng_init(&rng, 22);
    for (uint32_t round = 0; round < 500; round++) {
        small p = random_small(&rng, round % 2 == 1);

        for (uint32_t i = 0; round % 4 >= 2 && i < p.n; i++)
            if (below(&rng, 4) == 0) {
                p.fixed[i] = (int32_t)(p.align[i] * below(&rng, 8));
                if (!brute_fits(&p, 400))
                    p.fixed[i] = -1;
            }
        assert_certified(&ctx, &p, brute_optimum(&p));
    }
    assert_int_equal(ctx.n_live, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(optima_are_certified),
        cmocka_unit_test(random_plans_are_certified),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
