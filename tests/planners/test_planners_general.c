/* The exact planner with partial orders and in-place pairs, against an independent brute force on
 * thousands of small problems, above all those whose optimum lies above the bound. */
#include "graphs/problem/bounds/bounds.h"
#include "tests/support/small_general.h"

#include "planners/verify/certify.h"
#include "planners/exact/exact_general.h"

/* ---- comparing ---- */

static mpl_plan *planned(mpl_ctx *ctx, const mpl_problem *p, uint64_t ticks)
{
    mpl_plan *plan;

    assert_ok(ctx, plan_with(ctx, "exact", NULL, NULL, ticks, p, &plan));
    return plan;
}

static void assert_certified(mpl_ctx *ctx, const mpl_problem *p, mpl_plan *plan, uint64_t bound)
{
    mpl_certified proved;

    assert_ok(ctx, mpl_certify(ctx, p, plan, &proved));
    assert_true(proved.evidence != MPL_EVIDENCE_NONE);
    assert_int_equal(proved.bound, bound);
}

/* The optimum is claimed, found and certified; it fits, one byte less is refuted; a small budget
 * proves nothing false. */
static void assert_planner(mpl_ctx *ctx, const small *from, uint32_t optimum)
{
    owned_problem *p = problem_of(ctx, from);
    mpl_plan *plan = planned(ctx, p, UINT64_MAX);

    assert_int_equal(plan->peak_bytes, optimum);
    assert_int_equal(plan->claim, MPL_OPTIMAL);
    assert_certified(ctx, p, plan, optimum);
    mpl_plan_free(ctx, plan);
    plan = planned(ctx, p, 300 + optimum % 1000);
    assert_true(plan->bound_bytes <= optimum && plan->peak_bytes >= optimum);
    mpl_plan_free(ctx, plan);
    p->pool_capacity[0] = optimum;
    plan = planned(ctx, p, UINT64_MAX);
    assert_true(plan->claim == MPL_OPTIMAL || plan->claim == MPL_FEASIBLE);
    mpl_plan_free(ctx, plan);
    p->pool_capacity[0] = optimum - 1;
    plan = planned(ctx, p, UINT64_MAX);
    assert_int_equal(plan->claim, MPL_INFEASIBLE);
    assert_certified(ctx, p, plan, optimum);
    mpl_plan_free(ctx, plan);
}

/* The search alone, on the whole relation, for every choice of cells. */
static void assert_searches(mpl_ctx *ctx, const small *from, uint32_t optimum)
{
    owned_problem *p = problem_of(ctx, from);
    mpl_bodies *b = NULL;
    mpl_cliques *q = NULL;
    mpl_graph_search *s = NULL;
    uint32_t rank[MOST];
    mpl_exact_effort effort = {.tick_limit = UINT64_MAX, .deadline_ns = INT64_MAX};

    for (uint32_t i = 0; i < from->n; i++)
        rank[i] = (i * 3 + 1) % from->n;
    assert_ok(ctx, mpl_bodies_of_pool(ctx, p, 0, &b));
    assert_ok(ctx, mpl_cliques_new(ctx, b, &effort, &q));
    assert_true(mpl_cliques_bound(b, q) <= optimum);
    for (uint32_t pick = MPL_PICK_SCORE_LOW; pick <= MPL_PICK_LOW; pick++) {
        assert_ok(ctx, mpl_graph_search_new(ctx, b, q, &s));
        s->effort = &effort;
        s->rank = rank;
        s->pick = (mpl_exact_pick)pick;
        s->node_limit = UINT64_MAX;
        mpl_graph_search_cap(s, optimum - 1);
        assert_int_equal(mpl_graph_search_run(s), MPL_EXACT_FAILED);
        mpl_graph_search_cap(s, optimum);
        assert_int_equal(mpl_graph_search_run(s), MPL_EXACT_FOUND);
        for (uint32_t i = 0; i < b->n; i++)
            for (uint32_t j = 0; j < i; j++)
                assert_true(!mpl_rivals(b, i, j) || s->est[i] >= s->est[j] + b->bytes[j] ||
                            s->est[j] >= s->est[i] + b->bytes[i]);
        assert_true(mpl_bodies_height(b, s->est) <= optimum);
        mpl_graph_search_free(s);
        s = NULL;
    }
    mpl_cliques_free(ctx, q);
    mpl_bodies_free(ctx, b);
}

/* ---- tests ---- */

/* Shows false refutations and wrong placements: optima above the bound need real proofs. */
TEST(optima_above_the_bound)
{
    enum { MOST_KEPT = 1200 };
    static small kept[MOST_KEPT];
    const uint32_t many = draws(MOST_KEPT);
    uint32_t n_kept = 0, n_general = 0;
    mpl_rng rng = mpl_rng_of(21);

    for (uint32_t round = 0; n_kept < many; round++) {
        small p = round < 2 ? root((int)round) : kept[below(&rng, n_kept)];
        uint32_t optimum;

        assert_true(round < 1000 * many);
        for (uint32_t k = round < 2 ? 0 : 1 + below(&rng, 3); k > 0; k--)
            p = mutated(&rng, &p);
        if (brute_fits(&p, clique(&p)) ||
            (n_kept > 20 && 3 * n_general < n_kept && is_interval_order(&p)))
            continue;
        kept[n_kept++] = p;
        n_general += !is_interval_order(&p);
        optimum = brute_optimum(&p, clique(&p));
        assert_searches(ctx, &p, optimum);
        assert_planner(ctx, &p, optimum);
    }
    print_message("%u relations with an optimum above the bound, %u of no interval order\n", n_kept,
                  n_general);
}

/* With and without alignments and fixed offsets. */
TEST(random_orders)
{
    mpl_rng rng = mpl_rng_of(22);

    for (uint32_t round = 0; round < draws(1200); round++) {
        small p = random_small(&rng, false, round % 2 == 1);
        uint32_t i = below(&rng, p.n), optimum = brute_optimum(&p, 1);

        assert_planner(ctx, &p, optimum);
        assert_searches(ctx, &p, optimum);
        p.fixed[i] = (int32_t)(p.align[i] * below(&rng, 8));
        optimum = brute_optimum(&p, 1);
        assert_planner(ctx, &p, optimum);
        assert_searches(ctx, &p, optimum);
    }
}

/* Pairs under either safety, used or not, whichever is best. */
TEST(pairs)
{
    uint32_t n_above = 0, n_gain = 0, n = 0;
    mpl_rng rng = mpl_rng_of(23);

    for (uint32_t round = 0; round < draws(3000); round++) {
        small p = random_small(&rng, round % 2 == 1, round % 8 >= 6), plain;
        uint32_t optimum, without, n_pairs = 0;
        mpl_problem *made;
        uint64_t bound;

        offer_pairs(&rng, &p);
        for (uint32_t k = 0; k < MOST * MOST; k++)
            n_pairs += p.pair[k / MOST][k % MOST];
        if (n_pairs == 0 || n_pairs > 8)
            continue;
        if (round % 16 == 5)
            p.fixed[below(&rng, p.n)] = (int32_t)(8 * below(&rng, 2));
        plain = p;
        memset(plain.pair, 0, sizeof plain.pair);
        optimum = brute_optimum(&p, 1);
        without = brute_optimum(&plain, optimum);
        made = problem_of(ctx, &p);
        assert_ok(ctx, mpl_lower_bound(ctx, made, 0, &bound, NULL));
        mpl_problem_free(ctx, made);
        assert_true(bound <= optimum);
        n_above += bound < optimum;
        n_gain += optimum < without;
        n++;
        assert_planner(ctx, &p, optimum);
    }
    print_message("%u problems with pairs: %u optima above the bound, %u below those without\n", n,
                  n_above, n_gain);
    assert_true(n > draws(1000) && n_gain > draws(300));
}

/* With and without pairs, above the bound: every part of the search is reached. */
TEST(memory_runs_out)
{
    mpl_rng rng = mpl_rng_of(24);

    for (int with_pairs = 0; with_pairs < 2; with_pairs++) {
        small from = root(1);
        owned_problem *p;

        if (with_pairs)
            offer_pairs(&rng, &from);
        p = problem_of(ctx, &from);
        EACH_ALLOCATION_FAILS (ctx, st) {
            owned_plan *plan = NULL;
            mpl_run run = mpl_run_default(ctx);

            st = mpl_planner_run(mpl_planner_find("exact"), &run, p, &plan);
        }
    }
}

/* Training graphs: cliques, orders and nodes are charged to the budget, and the orders of the arena
 * are tried. */
TEST(training_keeps_the_budget)
{
    static const struct {
        const char *graph;
        bool parallel, in_place, optimal;
    } rows[] = ROW({"inception_v3:batch=16,mode=train", true, false, false},
                   {"inception_v1:batch=16,mode=train", true, true, true},
                   {"mobilenet_v2:batch=16,mode=train", true, true, true},
                   {"mobilenet_v2:mode=train", false, true, true},
                   {"mobilenet_v2:mode=train", false, false, true});
    static const char *const names[] = {"exact", "portfolio"};
    const uint64_t budget = 100000000;

    for (size_t i = 0; i < 2 * (sizeof rows / sizeof *rows); i++) {
        mpl_problem_options options = mpl_problem_options_default();
        owned_problem *p = NULL;
        owned_plan *plan = NULL;
        owned_map *map = NULL;
        mpl_source source;
        owned_memory mpl_op *order;
        mpl_run run;

        options.parallel = rows[i / 2].parallel;
        options.in_place = rows[i / 2].in_place;
        assert_ok(ctx, mpl_source_open(ctx, rows[i / 2].graph, &(mpl_read_options){0}, &source));
        order = order_by(ctx, source.graph, "given");
        assert_ok(ctx, mpl_problem_from_graph(ctx, source.graph, order, &options, &p, &map));
        run = mpl_run_default(ctx);
        run.budget_ticks = budget;
        assert_ok(ctx, mpl_planner_run(mpl_planner_find(names[i % 2]), &run, p, &plan));
        if (run.ticks > budget + budget / 10 || (rows[i / 2].optimal && plan->claim != MPL_OPTIMAL))
            fail_msg("%s, %s: %" PRIu64 " ticks, %" PRIu64 " bytes, bound %" PRIu64,
                     rows[i / 2].graph, names[i % 2], run.ticks, plan->peak_bytes,
                     plan->bound_bytes);
        mpl_source_fini(ctx, &source);
    }
}

TESTS(optima_above_the_bound, random_orders, pairs, memory_runs_out, training_keeps_the_budget)
