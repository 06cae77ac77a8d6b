/* Templates: every method's is valid at every shape; regret holds from both sides. */
#include "tests/template/random_template.h"

#include "planners/verify/verify.h"

/* The regret of the template at every point of a small range, against what it states. */
static void assert_regret(mpl_ctx *ctx, const mpl_template *t)
{
    int64_t value[MPL_MAX_SYMBOLS] = {-1};
    uint64_t most = 0, worst[64] = {0};

    while (next_point(t->problem->x, value)) {
        uint64_t arena = assert_valid_at(ctx, t, value), bound = 0, parts;
        uint32_t k = 0;

        assert_ok(ctx, mpl_template_bound(ctx, t->problem, value, &bound));
        assert_ok(ctx, mpl_template_find(ctx, t, value, &k));
        parts = (arena * MPL_REGRET_ONE + bound - 1) / bound;
        assert_true(parts <= t->cell[k].regret.most);
        worst[k] = parts > worst[k] ? parts : worst[k];
        most = parts > most ? parts : most;
    }
    for (uint32_t k = 0; k < t->n_cells; k++) {
        const mpl_regret *r = &t->cell[k].regret;

        if (r->bound > 0)
            assert_true((r->arena * MPL_REGRET_ONE + r->bound - 1) / r->bound <= worst[k]);
    }
    (void)most;
}

TEST(every_method_is_valid_at_every_shape)
{
    for (uint32_t seed = 0; seed < draws(120); seed++)
        for (mpl_template_method method = 0; method < MPL_TEMPLATE_METHODS; method++) {
            mpl_rng rng;
            mpl_sym_problem *sp;
            mpl_template *t = NULL;
            mpl_run run;
            mpl_template_ask ask = {.method = method, .cells = 1 + seed % 3};

            mpl_rng_init(&rng, seed);
            sp = random_sym(ctx, &rng, 3 + drawn(&rng, 4), 1 + drawn(&rng, 3),
                            seed % 32 & ~SYM_WIDE);
            mpl_run_init(&run, ctx);
            run.budget_ticks = 200000;
            if (method == MPL_TEMPLATE_EXACT)
                run.budget_ticks = 20000000;
            assert_ok(ctx, mpl_template_plan(&run, sp, &ask, &t));
            assert_regret(ctx, t);
            mpl_template_free(ctx, t);
            free_sym(ctx, sp);
        }
}

TESTS(every_method_is_valid_at_every_shape)
