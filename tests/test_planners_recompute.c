/* The programs of recomputation against all runs by stages of small graphs; rounding against the integer program. Catches: a budget
 * that is not kept, repeats that are not needed, a bound above what there is, work miscounted. */
#include "tests/random_graph.h"

#include "graphs/analysis/work.h"
#include "graphs/source.h"
#include "planners/recompute_priv.h"

enum { MOST_RUNS = 1 << 10 };

typedef struct listed { /* every choice of earlier operations in every stage */
    uint32_t n;
    uint64_t peak[MOST_RUNS], work[MOST_RUNS];
} listed;

static void list_all(mpl_ctx *ctx, const mpl_graph *g, const mpl_problem_options *options, listed *l)
{
    uint32_t bits = g->n_ops * (g->n_ops - 1) / 2;

    assert_true(1u << bits <= MOST_RUNS);
    l->n = 0;
    for (uint32_t set = 0; set < 1u << bits; set++) {
        mpl_op run[32];
        uint32_t n = 0, bit = 0;
        mpl_rerun_facts facts;

        for (mpl_op t = 0; t < g->n_ops; t++) {
            for (mpl_op i = 0; i < t; i++, bit++)
                if (set >> bit & 1)
                    run[n++] = i;
            run[n++] = t;
        }
        assert_ok(ctx, mpl_rerun_peak(ctx, g, n, run, options, &l->peak[l->n], &facts));
        l->work[l->n++] = facts.extra_work;
    }
}

static uint64_t least_work(const listed *l, uint64_t budget)
{
    uint64_t least = UINT64_MAX;

    for (uint32_t i = 0; i < l->n; i++)
        if (l->peak[i] <= budget)
            least = mpl_min_u64(least, l->work[i]);
    return least;
}

static uint32_t n_tight; /* bounds that tell the whole */

static void check_bound(mpl_ctx *ctx, const mpl_graph *g, const mpl_problem_options *options, const listed *l,
                        uint64_t budget, uint64_t seed)
{
    uint64_t want = least_work(l, budget), bound;
    bool has_bound, fits;

    assert_ok(ctx, mpl_recompute_bound(ctx, g, options, budget, &has_bound, &bound, &fits));
    if (has_bound && (bound > want || (!fits && want != UINT64_MAX)))
        fail_msg("seed %" PRIu64 ", %" PRIu64 " bytes: no less work than %" PRIu64
                 " is proved, the least is %" PRIu64,
                 seed, budget, bound, want);
    n_tight += has_bound && want > 0 && (fits ? bound == want : want == UINT64_MAX);
}

static void check_budget(mpl_ctx *ctx, const mpl_graph *g, const mpl_problem_options *options,
                         const listed *l, uint64_t budget, uint64_t seed)
{
    const mpl_recompute_method *method = mpl_recompute_find("budget");
    mpl_recompute_found found;
    mpl_graph *made = NULL;
    uint64_t want = least_work(l, budget);
    mpl_status st;

    check_bound(ctx, g, options, l, budget, seed);
    if (options->in_place) /* there the program counts bytes that need not be there */
        return;
    st = mpl_recompute(ctx, method, g, options, budget, &made, &found);
    if (want == UINT64_MAX) {
        if (st != MPL_EINVALID)
            fail_msg("seed %" PRIu64 ", %" PRIu64 " bytes: '%s' where nothing fits", seed, budget,
                     mpl_status_name(st));
        return;
    }
    assert_ok(ctx, st);
    assert_int_equal(found.claim, MPL_RECOMPUTE_OPTIMAL);
    assert_true(found.peak_bytes <= budget);
    if (found.facts.extra_work != want || found.bound_work > want)
        fail_msg("seed %" PRIu64 ", %" PRIu64 " bytes: %" PRIu64 " more work (bound %" PRIu64
                 "), the least is %" PRIu64,
                 seed, budget, found.facts.extra_work, found.bound_work, want);
    mpl_graph_free(ctx, made);
}

/* Two operations, one behind the other, whose result is read last, behind something wide: both run again, or nothing does. */
static mpl_graph *detour(mpl_ctx *ctx)
{
    const mpl_shape shape = {1, {64}};
    const mpl_attr axis = MPL_INT(axis, 0);
    mpl_graph *g = NULL;
    mpl_value x, y, a, b, w, s, e;

    assert_ok(ctx, mpl_graph_new(ctx, "detour", &g));
    assert_ok(ctx, mpl_graph_add_value(ctx, g, "x", MPL_INPUT, MPL_TYPE_f32, &shape, &x));
    assert_ok(ctx, mpl_graph_add_value(ctx, g, "y", MPL_INPUT, MPL_TYPE_f32, &shape, &y));
    assert_ok(ctx, mpl_graph_add_op(ctx, g, MPL_OP_relu, "a", 1, &x, 0, NULL, 1, (const char *[]){"a"}, &a));
    assert_ok(ctx, mpl_graph_add_op(ctx, g, MPL_OP_tanh, "b", 1, &a, 0, NULL, 1, (const char *[]){"b"}, &b));
    assert_ok(ctx, mpl_graph_add_op(ctx, g, MPL_OP_concat, "w", 4, (mpl_value[]){y, y, y, y}, 1, &axis, 1,
                                    (const char *[]){"w"}, &w));
    assert_ok(ctx,
              mpl_graph_add_op(ctx, g, MPL_OP_reduce_sum, "s", 1, &w, 0, NULL, 1, (const char *[]){"s"}, &s));
    assert_ok(ctx, mpl_graph_add_op(ctx, g, MPL_OP_add, "e", 2, (mpl_value[]){b, s}, 0, NULL, 1,
                                    (const char *[]){"e"}, &e));
    assert_ok(ctx, mpl_graph_add_output(ctx, g, e));
    assert_ok(ctx, mpl_graph_finish(ctx, g));
    return g;
}

static void programs_find_the_least_work(void **state)
{
    static listed l;
    uint32_t n_checked = 0;

    (void)state;
    if (mpl_recompute_find("budget")->choose == NULL) {
        print_message("skip: %s: GLPK is not in this build\n", __func__);
        skip();
    }
    for (uint64_t seed = 0; seed <= 120; seed++) { /* 0 .. 60, then the same with results in place */
        mpl_problem_options options = mpl_problem_options_default();
        mpl_ctx ctx;
        mpl_graph *g;
        bool plain = true;
        uint64_t before;

        mpl_ctx_init(&ctx);
        options.in_place = seed > 60;
        options.concat = MPL_CONCAT_COPY;
        options.align = 4; /* no rests of slots */
        g = seed == 0 ? detour(&ctx) : random_graph(&ctx, seed > 60 ? seed - 60 : seed, 5, 3);
        for (mpl_op op = 0; op < g->n_ops; op++) /* a view with a mask is more than the program counts */
            plain = plain && g->op_kind[op] != MPL_OP_dropout;
        if (plain) {
            list_all(&ctx, g, &options, &l);
            before = l.peak[0];
            for (uint32_t i = 0; i < l.n;
                 i++) /* each peak that there is below the first, and one byte less */
                if (l.peak[i] < before) {
                    before = l.peak[i];
                    check_budget(&ctx, g, &options, &l, before, seed);
                    check_budget(&ctx, g, &options, &l, before - 1, seed);
                    n_checked++;
                }
            check_budget(&ctx, g, &options, &l, l.peak[0], seed);
        }
        mpl_graph_free(&ctx, g);
        assert_int_equal(ctx.n_live, 0);
    }
    assert_true(n_checked >= 5 && n_tight >= n_checked / 2);
}

/* Networks: rounding never does more than segments, and never less than its bound, which tells of segments, too. */
static void rounding_is_the_better(void **state)
{
    static const char *const spec[] = {
        "mlp:batch=32,layers=6,input=64,hidden=64,classes=8,mode=train",
        "resnet18:batch=1,image=32,mode=train",
        "randwire:regime=cell,batch=1,image=32,channels=8,nodes=8,mode=train",
        "vgg16:batch=1,image=32,mode=train",
    };
    uint32_t n_better = 0, n_bounds = 0;

    (void)state;
    if (mpl_recompute_find("round")->choose == NULL) {
        print_message("skip: %s: GLPK is not in this build\n", __func__);
        skip();
    }
    for (size_t i = 0; i < sizeof spec / sizeof *spec; i++)
        for (uint32_t part = 9; part >= 5; part--) {
            mpl_problem_options options = mpl_problem_options_default();
            mpl_recompute_found found[2];
            uint64_t before, budget;
            mpl_ctx ctx;
            mpl_graph *g = NULL, *made;
            mpl_status st[2];

            mpl_ctx_init(&ctx);
            assert_ok(&ctx, mpl_zoo_build(&ctx, spec[i], &g));
            assert_ok(&ctx, mpl_recompute_before(&ctx, g, &options, &before));
            budget = before / 10 * part;
            for (int m = 0; m < 2; m++) {
                made = NULL;
                st[m] = mpl_recompute(&ctx, mpl_recompute_find(m == 0 ? "sqrt" : "round"), g, &options,
                                      budget, &made, &found[m]);
                mpl_graph_free(&ctx, made);
                assert_true(st[m] == MPL_OK || st[m] == MPL_ELIMIT || st[m] == MPL_EINVALID);
                if (st[m] == MPL_OK)
                    assert_true(found[m].peak_bytes <= budget);
            }
            if (st[0] == MPL_OK) {
                assert_ok(&ctx, st[1]);
                if (found[1].facts.extra_work > found[0].facts.extra_work)
                    fail_msg("%s at %u0 %%: rounding does more than segments", spec[i], part);
                n_better += found[1].facts.extra_work < found[0].facts.extra_work;
            }
            if (st[1] == MPL_OK && found[1].has_bound) {
                assert_true(found[1].bound_work <= found[1].facts.extra_work);
                n_bounds += found[1].bound_work > 0;
            }
            mpl_graph_free(&ctx, g);
            assert_int_equal(ctx.n_live, 0);
        }
    print_message("less than segments %u times; %u bounds above 0\n", n_better, n_bounds);
    assert_true(n_better >= 3 && n_bounds >= 8);
}

/* Chains: rounding and segments are no better than the program, and its bound no higher than what they find. */
static void methods_agree(void **state)
{
    static const double part[] = {0.95, 0.8, 0.6};

    (void)state;
    for (size_t i = 0; i < sizeof part / sizeof *part; i++) {
        mpl_problem_options options = mpl_problem_options_default();
        mpl_recompute_found found[3];
        uint64_t before, budget;
        mpl_ctx ctx;
        mpl_graph *g = NULL, *made;
        mpl_status st[3];

        mpl_ctx_init(&ctx);
        assert_ok(&ctx,
                  mpl_zoo_build(&ctx, "mlp:batch=8,layers=4,input=16,hidden=16,classes=16,mode=train", &g));
        assert_ok(&ctx, mpl_recompute_before(&ctx, g, &options, &before));
        budget = (uint64_t)((double)before * part[i]);
        for (int m = 0; m < 3; m++) {
            made = NULL;
            st[m] =
                mpl_recompute(&ctx, mpl_recompute_find((const char *const[]){"budget", "round", "sqrt"}[m]),
                              g, &options, budget, &made, &found[m]);
            if (st[m] == MPL_OK && found[m].peak_bytes > budget)
                fail_msg("method %d: %" PRIu64 " bytes within %" PRIu64, m, found[m].peak_bytes, budget);
            mpl_graph_free(&ctx, made);
        }
        for (int m = 1; m < 3 && st[0] != MPL_EUNAVAIL; m++) {
            assert_true(st[0] == MPL_OK || st[m] != MPL_OK);
            if (st[m] == MPL_OK && found[0].claim == MPL_RECOMPUTE_OPTIMAL)
                assert_true(found[m].facts.extra_work >= found[0].facts.extra_work);
        }
        if (st[0] == MPL_OK && st[1] == MPL_OK && found[1].has_bound)
            assert_true(found[1].bound_work <= found[0].facts.extra_work);
        mpl_graph_free(&ctx, g);
        assert_int_equal(ctx.n_live, 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(programs_find_the_least_work),
        cmocka_unit_test(rounding_is_the_better),
        cmocka_unit_test(methods_agree),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
