/* The search planners on small random problems, other projects' lists and the zoo: valid, never
 * worse than their start, within their budgets, deterministic, never worse with more ticks; and out
 * of memory. */
#include "graphs/io/lists/lists.h"
#include "graphs/problem/bounds/bounds.h"
#include "tests/support/placement_oracle.h"

#include "planners/place/packing.h"
#include "planners/place/placement.h"
#include "planners/verify/verify.h"

extern const mpl_planner mpl_planner_greedy_size;

static const char *const searches[] = {"hill_climb", "local_search", "beam", "portfolio"};

enum { N_SEARCHES = sizeof searches / sizeof *searches };
enum {
    BEAM_LEVEL = 400
}; /* ticks per conflict between two checks of the budget: 16 states and their children */

static const char *const lists[] = {
    "minimalloc/A.1048576.csv", "minimalloc/C.1048576.csv",    "minimalloc/D.1048576.csv",
    "minimalloc/E.1048576.csv", "minimalloc/G.1048576.csv",    "minimalloc/I.1048576.csv",
    "minimalloc/J.1048576.csv", "minimalloc/K.1048576.csv",    "minimalloc/input.12.csv",
    "idealloc/G_1.csv",         "idealloc/somas_resnet50.csv", "idealloc/S_1.csv",
};

static const char *const nets[] = {"mlp", "lstm:layers=1,steps=4,hidden=32,batch=2",
                                   "resnet18:image=64", "densenet121:image=64", "inception_v3"};

static bool takes(const char *name, const mpl_problem *p)
{
    return p->before == NULL || (mpl_planner_find(name)->traits & MPL_SERIAL_ONLY) == 0;
}

/* A verified plan within a budget. */
static mpl_plan *plan_by(mpl_ctx *ctx, const mpl_problem *p, const char *name, uint64_t ticks,
                         uint64_t seed, uint64_t *used)
{
    mpl_plan *plan = NULL;
    mpl_run run = mpl_run_default(ctx);

    run.budget_ticks = ticks;
    run.seed = seed;
    if (mpl_planner_run(mpl_planner_find(name), &run, p, &plan) != MPL_OK)
        fail_msg("%s, %" PRIu64 " ticks, seed %" PRIu64 ": %s", name, ticks, seed, ctx->message);
    if (used != NULL)
        *used = run.ticks;
    return plan;
}

static uint64_t peak_by(mpl_ctx *ctx, const mpl_problem *p, const char *name, uint64_t ticks,
                        uint64_t *used)
{
    owned_plan *plan = plan_by(ctx, p, name, ticks, 1, used);
    uint64_t peak = plan->peak_bytes;

    return peak;
}

/* What holds for every problem. A step is one placement of all buffers, or a scan of a buffer's
 * conflicting buffers and theirs. */
static void check_searches(mpl_ctx *ctx, const mpl_problem *p, const char *what)
{
    static const uint64_t budgets[] = {1000, 100000, 2000000};
    uint64_t step = 0, start = peak_by(ctx, p, "greedy_size", UINT64_MAX, &step);
    uint64_t pairs = 0, climb = 0;

    for (mpl_buffer a = 0; p->n <= 2000 && a < p->n; a++)
        for (mpl_buffer b = 0; b < a; b++)
            pairs += mpl_conflict(p, a, b);
    for (mpl_buffer a = 0; p->n <= 2000 && a < p->n; a++) { /* first sort of the lists */
        uint64_t degree = 0;

        for (mpl_buffer b = 0; b < p->n; b++)
            degree += a != b && mpl_conflict(p, a, b);
        climb += degree * degree;
    }
    for (int i = 0; i < N_SEARCHES; i++) {
        uint64_t last = start;

        if (!takes(searches[i], p))
            continue;
        for (size_t k = 0; k < sizeof budgets / sizeof *budgets; k++) {
            uint64_t used, peak = peak_by(ctx, p, searches[i], budgets[k], &used);

            if (peak > last)
                fail_msg("%s: %s needs %" PRIu64 " bytes after %" PRIu64 " ticks, %" PRIu64
                         " before",
                         what, searches[i], peak, budgets[k], last);
            uint64_t level = strcmp(searches[i], "beam") == 0 ? BEAM_LEVEL * pairs : 0;

            if (p->n <= 2000 &&
                used > budgets[k] + 4 * step + 1000 * (uint64_t)p->n + 20 * pairs + climb + level)
                fail_msg("%s: %s used %" PRIu64 " ticks of %" PRIu64, what, searches[i], used,
                         budgets[k]);
            last = peak;
        }
    }
}

TEST(lists_are_searched)
{
    skip_without(MPL_SHARED "/minimalloc/A.1048576.csv");
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++) {
        owned_problem *p = NULL;
        char path[200];

        snprintf(path, sizeof path, MPL_SHARED "/%s", lists[i]);
        assert_ok(ctx, mpl_csv_read(ctx, path, &p, NULL));
        check_searches(ctx, p, lists[i]);
    }
}

static mpl_problem *net_problem(mpl_ctx *ctx, const char *net, bool parallel)
{
    mpl_problem_options options = mpl_problem_options_default();
    mpl_problem *p = NULL;
    owned_map *map = NULL;
    owned_graph *g = NULL;
    owned_memory mpl_op *order = NULL;

    options.parallel = parallel;
    assert_ok(ctx, mpl_zoo_build(ctx, net, &g));
    order = order_by(ctx, g, "given");
    assert_ok(ctx, mpl_problem_from_graph(ctx, g, order, &options, &p, &map));
    return p;
}

TEST(nets_are_searched_under_both_safeties)
{
    for (size_t i = 0; i < 2 * sizeof nets / sizeof *nets; i++) {
        owned_problem *p = net_problem(ctx, nets[i / 2], i % 2 == 1);

        check_searches(ctx, p, nets[i / 2]);
    }
}

TEST(small_problems_are_solved)
{
    mpl_rng rng = mpl_rng_of(7);

    for (uint32_t round = 0; round < draws(160); round++) {
        unsigned what = round % 16;
        owned_problem *p = random_problem(ctx, &rng, 2 + round % 5, what);
        uint64_t least = least_peak(ctx, p);

        for (int i = 0; i < N_SEARCHES; i++) {
            uint64_t peak;

            if (!takes(searches[i], p))
                continue;
            peak = peak_by(ctx, p, searches[i], 100000, NULL);
            if (i > 0 && strcmp(searches[i], "beam") != 0 && peak > least)
                fail_msg("round %u: %s needs %" PRIu64 " bytes, %" PRIu64 " are enough", round,
                         searches[i], peak, least);
            if ((what & RANDOM_PAIRS) == 0)
                assert_true(peak >= least);
        }
    }
}

/* Fixed offsets, and a capacity that a placement by size exceeds. */
TEST(fixed_places_and_capacities_are_kept)
{
    mpl_rng rng = mpl_rng_of(11);

    for (uint32_t round = 0; round < 60; round += in_short() ? 5 : 1) {
        owned_problem *p =
            random_problem(ctx, &rng, 4 + round % 12, round % 16 & ~(unsigned)RANDOM_PAIRS);
        owned_plan *plain = plain_plan(ctx, p);
        uint64_t best;

        assert_ok(ctx, mpl_verify(ctx, p, plain));
        assert_ok(ctx, mpl_new(ctx, p->fixed, p->n));
        for (mpl_buffer b = 0; b < p->n; b++)
            p->fixed[b] = random_below(&rng, 3) == 0 ? plain->offset[b] : MPL_UNFIXED;
        best = peak_by(ctx, p, "local_search", 200000, NULL);
        p->pool_capacity[0] = best;
        for (int i = 1; i < N_SEARCHES; i++)
            if (strcmp(searches[i], "beam") != 0)
                assert_true(peak_by(ctx, p, searches[i], 200000, NULL) <= best);
    }
}

/* Reaching a capacity ends the search; one below the bound is refuted or missed. */
TEST(capacities_decide)
{
    owned_problem *p = NULL;
    mpl_run run;
    mpl_plan *plan = NULL;
    uint64_t bound;

    assert_ok(ctx, mpl_problem_synthetic(ctx, 60, 20, 3, &p));
    assert_ok(ctx, mpl_lower_bound(ctx, p, 0, &bound, NULL));
    p->pool_capacity[0] = bound - 1;
    for (int i = 0; i < N_SEARCHES; i++) {
        run = mpl_run_default(ctx);
        run.budget_ticks = 1000000;
        if (i < N_SEARCHES - 1) {
            assert_status(ctx, mpl_planner_run(mpl_planner_find(searches[i]), &run, p, &plan),
                          MPL_ELIMIT);
            continue;
        }
        assert_ok(ctx, mpl_planner_run(mpl_planner_find(searches[i]), &run, p, &plan));
        assert_int_equal(plan->claim, MPL_INFEASIBLE);
        mpl_plan_free(ctx, plan);
        plan = NULL;
    }
}

TEST(same_seed_same_plan)
{
    for (int i = 0; i < N_SEARCHES; i++)
        for (uint64_t seed = 1; seed < 4; seed++) {
            owned_problem *p = NULL;
            owned_plan *one, *two;
            uint64_t ticks_one, ticks_two;

            assert_ok(ctx, mpl_problem_synthetic(ctx, 200, 40, seed, &p));
            one = plan_by(ctx, p, searches[i], 3000000, seed, &ticks_one);
            two = plan_by(ctx, p, searches[i], 3000000, seed, &ticks_two);
            assert_memory_equal(one->offset, two->offset, p->n * sizeof *one->offset);
            assert_int_equal(ticks_one, ticks_two);
        }
}

/* The purpose of our own local search: on hard lists it finds plans that swaps along the order do
 * not. */
TEST(local_search_beats_hill_climb)
{
    uint64_t ours = 0, theirs = 0;

    for (uint64_t seed = 1; seed < 5; seed++) {
        owned_problem *p = NULL;
        owned_plan *climb = NULL;
        const char *key = "attempts", *value = "1000000";
        mpl_run run;

        assert_ok(ctx, mpl_problem_synthetic(ctx, 300, 100, seed, &p));
        run = mpl_run_default(ctx);
        run.budget_ticks = 10000000;
        run.n_params = 1;
        run.param_key = &key;
        run.param_value = &value;
        assert_ok(ctx, mpl_planner_run(mpl_planner_find("hill_climb"), &run, p, &climb));
        ours += peak_by(ctx, p, "local_search", 10000000, NULL);
        theirs += climb->peak_bytes;
    }
    assert_true(ours < theirs);
}

static uint32_t n_compared; /* by compare_placements */

/* Compares, for a random order, the search's placement with that of the quick planners. Twice, the
 * second time from the middle. */
static mpl_status compare_placements(mpl_packing *q)
{
    mpl_ctx *ctx = q->run->ctx;
    uint32_t *order = NULL, n = 0;
    mpl_buffer *all = NULL;
    mpl_plan *plan = NULL;
    uint64_t height;
    mpl_rng rng = mpl_rng_of(q->run->seed);

    assert_ok(ctx, mpl_new(ctx, order, q->n));
    assert_ok(ctx, mpl_new(ctx, all, q->p->n));
    assert_ok(ctx, mpl_plan_new(ctx, q->p, &plan));
    assert_ok(ctx, mpl_packing_order(q, MPL_KEY_AREA, order));
    for (int pass = 0; pass < 2; pass++) {
        uint32_t from = pass == 0 ? 0 : q->n / 2;

        for (uint32_t i = q->n; i > from + 1; i--) {
            uint32_t k = from + random_below(&rng, i - from), other = order[k];

            order[k] = order[i - 1];
            order[i - 1] = other;
        }
        assert_true(mpl_packing_place(q, order, from, UINT64_MAX, &height));
        n = 0;
        for (uint32_t i = 0; i < q->n; i++)
            all[n++] = q->buffer[order[i]];
        for (mpl_buffer b = 0; b < q->p->n; b++)
            if (q->p->pool[b] != q->p->pool[q->buffer[0]])
                all[n++] = b;
        assert_ok(ctx, mpl_place_all(q->run, q->p, all, MPL_FIT_LOWEST, plan));
        for (uint32_t a = 0; a < q->n; a++) {
            assert_int_equal(q->offset[a], plan->offset[q->buffer[a]]);
            assert_true(q->offset[a] + q->bytes[a] <= height);
        }
        n_compared++;
    }
    mpl_plan_free(ctx, plan);
    mpl_free_each(ctx, all, order);
    return MPL_OK;
}

/* Fault: a placement in a search is valid but higher than necessary. */
TEST(placements_are_the_lowest)
{
    mpl_rng rng = mpl_rng_of(13);

    n_compared = 0;
    for (uint32_t round = 0; round < draws(320); round++) {
        owned_problem *p = random_problem(ctx, &rng, 12 + round % 30, round % 16);
        owned_plan *plan = NULL;
        mpl_run run = mpl_run_default(ctx);

        run.seed = round;
        assert_ok(ctx, mpl_plan_new(ctx, p, &plan));
        assert_ok(ctx, mpl_packing_run(&run, p, &mpl_planner_greedy_size, 1000000,
                                       compare_placements, plan));
    }
    assert_true(often(n_compared >= 200));
}

/* Fault: a starting plan is lost, or taken for a limit. */
TEST(plans_to_begin_from_are_kept)
{
    static const char *const heed[] = {"exact", "local_search", "hill_climb"};
    mpl_rng rng = mpl_rng_of(17);

    for (uint32_t round = 0; round < 64; round += in_short() ? 5 : 1) {
        owned_problem *p =
            random_problem(ctx, &rng, 20 + round % 20, round % 16 & ~(unsigned)RANDOM_PAIRS);
        owned_plan *start = plan_by(ctx, p, "local_search", 2000000, 1, NULL),
                   *poor = plain_plan(ctx, p);

        assert_ok(ctx, mpl_verify(ctx, p, poor));
        for (size_t i = 0; i < 2 * (sizeof heed / sizeof *heed); i++) {
            owned_plan *plan = NULL;
            mpl_run run = mpl_run_default(ctx);

            run.budget_ticks = 1;
            run.start_offsets = i % 2 == 0 ? start->offset : poor->offset;
            assert_ok(ctx, mpl_planner_run(mpl_planner_find(heed[i / 2]), &run, p, &plan));
            for (uint32_t k = 0; k < p->n_pools; k++)
                assert_true(plan->pool_bytes[k] <= (i % 2 == 0 ? start : poor)->pool_bytes[k]);
        }
    }
}

/* Fault: what the complete search proved above the load, or its refutation, is lost. */
TEST(proofs_are_taken_over)
{
    static const uint32_t birth[] = {3, 2, 4, 5, 1, 3, 2, 1}, death[] = {5, 4, 7, 7, 2, 4, 5, 3};
    static const uint64_t bytes[] = {1, 3, 4, 4, 4, 1, 2, 3};
    owned_problem *p = NULL;
    owned_plan *plan;

    assert_ok(ctx, mpl_problem_new(ctx, "above its load", 8, &p));
    p->n_steps = 7;
    memcpy(p->birth, birth, sizeof birth);
    memcpy(p->death, death, sizeof death);
    memcpy(p->bytes, bytes, sizeof bytes);
    plan = plan_by(ctx, p, "portfolio", 1000000, 1, NULL);
    assert_int_equal(plan->claim, MPL_OPTIMAL);
    assert_int_equal(plan->bound_bytes, 9);
    assert_int_equal(plan->refutation.within, 8);
    assert_non_null(plan->refutation.steps);
}

static const struct {
    const char *members;
    mpl_status st;
    const char *like; /* the planner that does the same alone, or NULL */
} members[] = {
    {"best_fit", MPL_OK, "best_fit"}, {"greedy_breadth", MPL_OK, "greedy_breadth"},
    {"exact", MPL_OK, "exact"},       {"nnc_arena+exact", MPL_OK, "exact"},
    {"nnc_arena", MPL_ELIMIT, NULL}, /* serial: no member is left */
    {"exact+", MPL_EINPUT, NULL},     {"exact+exac", MPL_EINPUT, NULL},
    {"", MPL_EINPUT, NULL},
};

TEST(portfolios_have_members)
{
    owned_problem *p = NULL;
    const char *key = "members";
    mpl_run run;

    assert_ok(ctx, mpl_problem_synthetic(ctx, 60, 20, 3, &p));
    for (size_t i = 0; i < sizeof members / sizeof *members; i++) {
        owned_plan *plan = NULL;

        run = mpl_run_default(ctx);
        run.budget_ticks = 8000000;
        run.n_params = 1;
        run.param_key = &key;
        run.param_value = &members[i].members;
        assert_status(ctx, mpl_planner_run(mpl_planner_find("portfolio"), &run, p, &plan),
                      members[i].st);
        if (members[i].like != NULL)
            assert_int_equal(plan->peak_bytes, peak_by(ctx, p, members[i].like, 8000000, NULL));
    }
}

/* Fault: a search that ends before its budget. Unless the plan is proved optimal, the whole budget
 * is used, and a larger one is no worse. */
TEST(budgets_are_used)
{
    static const char *const use[] = {"portfolio", "exact"};
    uint32_t n_open = 0;
    mpl_problem *p = NULL;

    for (uint32_t round = 0; round < 4; round++) {
        assert_ok(ctx, mpl_problem_synthetic(ctx, 150, 40, 7 + round / 2, &p));
        if (round % 2 == 1)
            assert_ok(ctx, mpl_problem_as_parallel(ctx, p));
        for (size_t i = 0; i < sizeof use / sizeof *use; i++) {
            uint64_t last = UINT64_MAX;

            for (uint64_t ticks = 1000000; ticks <= (in_short() ? 4000000 : 16000000); ticks *= 4) {
                owned_plan *plan = NULL;
                mpl_run run = mpl_run_default(ctx);

                run.budget_ticks = ticks;
                assert_ok(ctx, mpl_planner_run(mpl_planner_find(use[i]), &run, p, &plan));
                if (plan->claim != MPL_OPTIMAL && run.ticks < ticks)
                    fail_msg("%s, problem %u: %" PRIu64 " of %" PRIu64 " ticks", use[i], round,
                             run.ticks, ticks);
                assert_true(plan->peak_bytes <= last);
                last = plan->peak_bytes;
                n_open += plan->claim != MPL_OPTIMAL;
            }
        }
        mpl_problem_free(ctx, p);
    }
    assert_true(n_open > 4);
}

/* Control flow has no parallel safety, and its carried values need not fit within the bound. */
static bool has_blocks(mpl_ctx *ctx, const char *network)
{
    owned_graph *g = zoo_graph(ctx, network);
    bool blocks = g->n_blocks > 1;

    return blocks;
}

/* Every zoo network for inference, under both safeties: planned at its bound. Random layers, a
 * network for orders, are only under serial safety. */
TEST(zoo_is_planned_at_its_bound)
{
    for (uint32_t i = 0; mpl_zoo[i] != NULL; i++)
        for (int parallel = 0; parallel < 2 && !has_blocks(ctx, mpl_zoo[i]->name); parallel++) {
            if (parallel && strcmp(mpl_zoo[i]->name, "layered") == 0)
                continue;
            owned_problem *p = net_problem(ctx, mpl_zoo[i]->name, parallel != 0);
            owned_plan *plan = plan_by(ctx, p, "portfolio", 100000000, 1, NULL);

            if (plan->claim != MPL_OPTIMAL)
                fail_msg("%s, %s: %" PRIu64 " bytes, bound %" PRIu64, mpl_zoo[i]->name,
                         parallel ? "parallel" : "serial", plan->peak_bytes, plan->bound_bytes);
        }
}

/* Lists cut from a full rectangle, or with a known least height: what a few ticks reach. The last
 * takes most of them: not in short. */
static const struct {
    const char *list;
    uint64_t ticks, most;
} planted[] = {
    {"planted/N0.672.csv", 1000000, 672},   {"planted/N3.1342.csv", 1000000, 1342},
    {"planted/Q0.1000.csv", 1000000, 1000}, {"planted/Q4.1000.csv", 2000000, 1000},
    {"planted/T1.921.csv", 1000000, 921},   {"planted/T4.2078.csv", 20000000, 2078},
};

TEST(planted_lists_are_solved)
{
    skip_without(MPL_SHARED "/planted/N0.672.csv");
    for (size_t i = 0; i < sizeof planted / sizeof *planted - in_short(); i++)
        for (int reversed = 0; reversed < 2; reversed++) {
            mpl_source source;
            char text[200];
            uint64_t peak;

            snprintf(text, sizeof text, MPL_SHARED "/%s%s", planted[i].list,
                     reversed ? ":twin=reversed" : "");
            assert_ok(ctx, mpl_source_open(ctx, text, &(mpl_read_options){0}, &source));
            peak = peak_by(ctx, source.problem, "portfolio", 8 * planted[i].ticks, NULL);
            if (peak > planted[i].most)
                fail_msg("%s: %" PRIu64 " bytes, %" PRIu64 " are enough", text, peak,
                         planted[i].most);
            mpl_source_fini(ctx, &source);
        }
}

TESTS(small_problems_are_solved, fixed_places_and_capacities_are_kept, capacities_decide,
      lists_are_searched, nets_are_searched_under_both_safeties, same_seed_same_plan,
      local_search_beats_hill_climb, placements_are_the_lowest, plans_to_begin_from_are_kept,
      proofs_are_taken_over, portfolios_have_members, budgets_are_used, zoo_is_planned_at_its_bound,
      planted_lists_are_solved)
