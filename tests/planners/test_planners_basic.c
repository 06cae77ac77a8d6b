/* Every registered planner: exact peaks worked out by hand; on random problems its plans are valid,
 * never below bound or optimum, deterministic, and it survives any failing allocation without a
 * leak. The offset planners against the naive placement in the same order, on problems small and
 * long enough for every data structure of free offsets. */
#include "graphs/io/lists/lists.h"
#include "graphs/problem/bounds/bounds.h"
#include "tests/support/placement_oracle.h"

#define REFUSED UINT64_MAX

enum { MAX_ROW = 6 };

typedef struct row {
    const char *what;
    uint32_t n;
    uint64_t bytes[MAX_ROW];
    uint32_t birth[MAX_ROW], death[MAX_ROW];
    uint32_t pair[2][3]; /* in, out, step; all 0: none */
    uint32_t align[MAX_ROW], pool[MAX_ROW];
    uint64_t fixed[MAX_ROW]; /* 0: not fixed */
    uint64_t none, pool_peak, owl, mxnet, greedy_size, greedy_breadth, best_fit,
        first_fit; /* REFUSED: cannot plan it */
} row;

/* clang-format off */
static const row rows[] = {
    {"touching lives share", 2, {8, 8}, {0, 1}, {1, 2}, {{0}}, {0}, {0}, {0},
     16, 8, 8, 8, 8, 8, 8, 8},
    {"lives that overlap by one step do not", 2, {8, 8}, {0, 1}, {2, 2}, {{0}}, {0}, {0}, {0},
     16, 16, 16, 16, 16, 16, 16, 16},
    {"an output may overwrite its input", 2, {8, 8}, {0, 1}, {2, 2}, {{0, 1, 1}}, {0}, {0}, {0},
     16, 8, 8, 8, 8, 8, 8, 8},
    {"a smaller output too, but MXNet wants equal sizes", 2, {8, 4}, {0, 1}, {2, 2}, {{0, 1, 1}},
        {0},
     {0}, {0},
     12, 8, 8, 12, 8, 8, 8, 8},
    {"in-place pairs chain", 3, {8, 8, 8}, {0, 1, 2}, {2, 3, 4}, {{0, 1, 1}, {1, 2, 2}}, {0}, {0},
        {0},
     24, 8, 8, 8, 8, 8, 8, 8},
    {"only one of two outputs overwrites the input", 3, {8, 8, 8}, {0, 1, 1}, {2, 3, 3}, {{0, 1, 1},
     {0, 2, 1}}, {0}, {0}, {0},
     24, 16, 16, 16, 16, 16, 16, 16},
    {"without pairs a chain takes turns", 3, {8, 8, 8}, {0, 1, 2}, {2, 3, 4}, {{0}}, {0}, {0}, {0},
     24, 16, 16, 16, 16, 16, 16, 16},
    {"a block grows, except in the pool", 2, {4, 8}, {0, 1}, {1, 2}, {{0}}, {0}, {0}, {0},
     12, 12, 8, 8, 8, 8, 8, 8},
    {"MXNet's range of 16 just reaches", 2, {1, 31}, {0, 1}, {1, 2}, {{0}}, {0}, {0}, {0},
     32, 32, 31, 31, 31, 31, 31, 31},
    {"and just does not", 2, {1, 32}, {0, 1}, {1, 2}, {{0}}, {0}, {0}, {0},
     33, 33, 32, 33, 32, 32, 32, 32},
    {"two fit into the place of one, not into its block", 3, {8, 4, 4}, {0, 1, 1}, {1, 2, 2}, {{0}},
        {0},
     {0}, {0},
     16, 12, 12, 12, 8, 8, 8, 8},
    {"the large one between two long small ones", 4, {4, 8, 4, 8}, {0, 0, 0, 2}, {4, 2, 4, 4},
        {{0}}, {0},
     {0}, {0},
     24, 16, 16, 16, 16, 16, 16, 16},
    {"best fit keeps the large gap, first fit spends it", 6, {8, 1, 4, 1, 4, 8}, {0, 1, 2, 3, 5, 6},
     {5, 9, 5, 9, 9, 9},
     {{0}}, {0}, {0}, {0},
     26, 14, 14, 14, 14, 14, 14, 22},
    {"alignment leaves a hole unless the large one is first", 2, {1, 8}, {0, 0}, {2, 2}, {{0}}, {1,
        8},
     {0}, {0},
     16, 16, 16, 9, 9, 9, 9, 9},
    {"a partner's place may be misaligned", 3, {12, 8, 8}, {0, 0, 1}, {2, 2, 2}, {{1, 2, 1}}, {1, 1,
        8},
     {0}, {0},
     32, 24, 24, 24, 32, 32, 32, 32},
    {"pools do not meet", 2, {8, 16}, {0, 0}, {2, 2}, {{0}}, {0}, {0, 1}, {0},
     8, 8, 8, 8, 8, 8, 8, 8},
    {"a fixed offset stays, others go around", 2, {8, 8}, {0, 0}, {2, 2}, {{0}}, {0}, {0}, {8},
     24, REFUSED, REFUSED, REFUSED, 16, 16, 16, 16},
    {"the fixed one need not be born yet", 2, {8, 8}, {0, 1}, {2, 3}, {{0}}, {0}, {0}, {0, 4},
     20, REFUSED, REFUSED, REFUSED, 20, 20, 20, 20},
    {"a fixed partner may be joined", 2, {8, 8}, {0, 1}, {2, 2}, {{0, 1, 1}}, {0}, {0}, {4},
     20, REFUSED, REFUSED, REFUSED, 12, 12, 12, 12},
};
/* clang-format on */

static mpl_problem *make_row(mpl_ctx *ctx, const row *r)
{
    mpl_problem *p = NULL;

    assert_ok(ctx, mpl_problem_new(ctx, r->what, r->n, &p));
    assert_ok(ctx, mpl_realloc_bytes(ctx, (void **)&p->pool_name, 1, 2, sizeof *p->pool_name));
    assert_ok(ctx,
              mpl_realloc_bytes(ctx, (void **)&p->pool_capacity, 1, 2, sizeof *p->pool_capacity));
    p->pool_name[1] = mpl_strdup(ctx, "other");
    p->pool_capacity[1] = MPL_NO_CAPACITY;
    p->n_pools = 2;
    assert_ok(ctx, mpl_new(ctx, p->in_place_in, 2));
    assert_ok(ctx, mpl_new(ctx, p->in_place_out, 2));
    assert_ok(ctx, mpl_new(ctx, p->in_place_step, 2));
    assert_ok(ctx, mpl_new(ctx, p->fixed, r->n));
    for (uint32_t i = 0; i < 2 && r->pair[i][1] != 0; i++) {
        p->in_place_in[i] = r->pair[i][0];
        p->in_place_out[i] = r->pair[i][1];
        p->in_place_step[i] = r->pair[i][2];
        p->n_in_place++;
    }
    for (mpl_buffer b = 0; b < r->n; b++) {
        p->bytes[b] = r->bytes[b];
        p->birth[b] = r->birth[b];
        p->death[b] = r->death[b];
        p->n_steps = r->death[b] > p->n_steps ? r->death[b] : p->n_steps;
        p->align[b] = r->align[b] != 0 ? r->align[b] : 1;
        p->pool[b] = r->pool[b];
        p->fixed[b] = r->fixed[b] != 0 ? r->fixed[b] : MPL_UNFIXED;
    }
    assert_ok(ctx, mpl_problem_check(ctx, p));
    return p;
}

TEST(rows_have_exact_peaks)
{
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const row *r = &rows[i];
        const struct {
            const char *planner;
            uint64_t peak;
        } want[] =
            ROW({"none", r->none}, {"pool", r->pool_peak}, {"owl", r->owl}, {"mxnet", r->mxnet},
                {"greedy_size", r->greedy_size}, {"greedy_breadth", r->greedy_breadth},
                {"best_fit", r->best_fit}, {"first_fit", r->first_fit});
        owned_problem *p = make_row(ctx, r);

        for (size_t k = 0; k < sizeof want / sizeof *want; k++) {
            const mpl_planner *planner = mpl_planner_find(want[k].planner);
            owned_plan *plan = NULL;
            mpl_run run;

            assert_non_null(planner);
            run = mpl_run_default(ctx);
            if (want[k].peak == REFUSED) {
                assert_status(ctx, mpl_planner_run(planner, &run, p, &plan), MPL_EUNAVAIL);
                continue;
            }
            assert_ok(ctx, mpl_planner_run(planner, &run, p, &plan));
            if (plan->peak_bytes != want[k].peak)
                fail_msg("%s: %s gives %" PRIu64 " bytes, not %" PRIu64, r->what, want[k].planner,
                         plan->peak_bytes, want[k].peak);
        }
    }
}

/* ---- every planner on random problems ---- */

/* Whether a planner accepts such a problem. */
static bool takes(const mpl_planner *planner, const mpl_problem *p)
{
    return planner->plan != NULL && (planner->traits & MPL_SPREADS) == 0 &&
           ((planner->traits & MPL_SERIAL_ONLY) == 0 || p->before == NULL);
}

/* Limits searches. */
static void init_run(mpl_run *run, mpl_ctx *ctx)
{
    *run = mpl_run_default(ctx);
    run->budget_ticks = 2000;
}

static void check_plan(mpl_ctx *ctx, const mpl_planner *planner, const mpl_problem *p,
                       uint64_t least)
{
    owned_plan *plan = NULL, *again = NULL;
    mpl_run run;

    init_run(&run, ctx);
    if (mpl_planner_run(planner, &run, p, &plan) != MPL_OK)
        fail_msg("%s on %u buffers, %u pairs, %s: %s", planner->name, p->n, p->n_in_place,
                 p->before != NULL ? "parallel" : "serial", ctx->message);
    for (mpl_buffer a = 0; a < p->n; a++) {
        assert_int_equal(plan->offset[a] % p->align[a], 0);
        for (mpl_buffer b = 0; b < a; b++)
            if (plain_conflict(p, plan, a, b))
                fail_msg("%s: buffers %u and %u overlap", planner->name, b, a);
    }
    assert_true(plan->peak_bytes >= plain_peak(p, plan));
    if (plan->peak_bytes < least)
        fail_msg("%s: %" PRIu64 " bytes where %" PRIu64 " are needed", planner->name,
                 plan->peak_bytes, least);
    init_run(&run, ctx);
    assert_ok(ctx, mpl_planner_run(planner, &run, p, &again));
    assert_memory_equal(plan->offset, again->offset, p->n * sizeof *plan->offset);
    assert_int_equal(plan->block != NULL, (planner->traits & MPL_BLOCKS) != 0);
}

TEST(plans_are_valid_and_repeatable)
{
    static const unsigned what[] =
        ROW(0, RANDOM_ALIGNED, RANDOM_ALIGNED | RANDOM_POOLS, RANDOM_PAIRS,
            RANDOM_PAIRS | RANDOM_ALIGNED | RANDOM_POOLS, RANDOM_PARALLEL,
            RANDOM_PARALLEL | RANDOM_PAIRS | RANDOM_ALIGNED | RANDOM_POOLS);
    mpl_rng rng = mpl_rng_of(20);

    for (int i = 0; i < 400; i++) {
        unsigned kind = what[(size_t)i % (sizeof what / sizeof *what)];
        owned_problem *p =
            random_problem(ctx, &rng, 1 + random_below(&rng, i % 2 == 0 ? 6 : 16), kind);
        uint64_t least = 0;

        if (p->before == NULL)
            assert_ok(ctx, mpl_peak_live(ctx, p, 0, &least, NULL, NULL));
        if (p->n <= 6 && p->n_in_place == 0) {
            uint64_t optimum = least_peak(ctx, p);

            assert_true(optimum >= least);
            least = optimum;
        }
        for (const mpl_planner *const *planner = mpl_planners; *planner != NULL; planner++)
            if (takes(*planner, p))
                check_plan(ctx, *planner, p, least);
    }
}

TEST(empty_problems_have_empty_plans)
{
    owned_problem *p = NULL;

    assert_ok(ctx, mpl_problem_new(ctx, "empty", 0, &p));
    for (const mpl_planner *const *planner = mpl_planners; *planner != NULL; planner++)
        if (takes(*planner, p))
            check_plan(ctx, *planner, p, 0);
}

TEST(every_allocation_may_fail)
{
    static const unsigned what[] = {RANDOM_PAIRS | RANDOM_ALIGNED | RANDOM_POOLS,
                                    RANDOM_PARALLEL | RANDOM_PAIRS | RANDOM_ALIGNED | RANDOM_POOLS};
    mpl_rng rng = mpl_rng_of(21);

    for (size_t i = 0; i < sizeof what / sizeof *what; i++) {
        owned_problem *p = random_problem(ctx, &rng, 16, what[i]);

        for (const mpl_planner *const *planner = mpl_planners; *planner != NULL; planner++) {
            if (!takes(*planner, p))
                continue;
            EACH_ALLOCATION_FAILS (ctx, st) {
                owned_plan *plan = NULL;
                mpl_run run;

                init_run(&run, ctx);
                st = mpl_planner_run(*planner, &run, p, &plan);
                assert_true((plan != NULL) == (st == MPL_OK));
            }
        }
    }
}

/* ---- the offset planners against naive placement ---- */

static const mpl_problem *sorted;      /* used by the comparators below */
static const uint64_t *sorted_by_rank; /* [n] */

static int by_size(mpl_buffer a, mpl_buffer b)
{
    uint32_t life_a = sorted->death[a] - sorted->birth[a],
             life_b = sorted->death[b] - sorted->birth[b];

    if (sorted->bytes[a] != sorted->bytes[b])
        return sorted->bytes[a] > sorted->bytes[b] ? -1 : 1;
    if (life_a != life_b)
        return life_a > life_b ? -1 : 1;
    return a < b ? -1 : 1;
}

static int compare_size(const void *a, const void *b)
{
    return by_size(*(const mpl_buffer *)a, *(const mpl_buffer *)b);
}

static int compare_rank(const void *a, const void *b)
{
    uint64_t x = sorted_by_rank[*(const mpl_buffer *)a], y = sorted_by_rank[*(const mpl_buffer *)b];

    return x != y ? (x < y ? -1 : 1) : compare_size(a, b);
}

static int compare_birth(const void *a, const void *b)
{
    mpl_buffer x = *(const mpl_buffer *)a, y = *(const mpl_buffer *)b;

    if (sorted->birth[x] != sorted->birth[y])
        return sorted->birth[x] < sorted->birth[y] ? -1 : 1;
    if (sorted->bytes[x] != sorted->bytes[y])
        return sorted->bytes[x] > sorted->bytes[y] ? -1 : 1;
    return x < y ? -1 : 1;
}

/* Visits the steps by decreasing breadth, and gives each buffer the index of the first one that
 * contains it. */
static uint64_t *rank_by_breadth(const mpl_problem *p)
{
    uint64_t *rank = calloc(p->n + 1, sizeof *rank), *live = calloc(p->n_steps + 1, sizeof *live);
    bool *done = calloc(p->n + 1, sizeof *done), *seen = calloc(p->n_steps + 1, sizeof *seen);

    for (mpl_buffer b = 0; b < p->n; b++)
        for (uint32_t step = p->birth[b]; step < p->death[b]; step++)
            live[step] += p->bytes[b];
    for (uint32_t number = 0; number < p->n_steps; number++) {
        uint32_t broadest = MPL_NONE;

        for (uint32_t step = 0; step < p->n_steps; step++)
            if (!seen[step] && (broadest == MPL_NONE || live[step] > live[broadest]))
                broadest = step;
        seen[broadest] = true;
        for (mpl_buffer b = 0; b < p->n; b++)
            if (!done[b] && p->birth[b] <= broadest && broadest < p->death[b]) {
                done[b] = true;
                rank[b] = number;
            }
    }
    free(live);
    free(done);
    free(seen);
    return rank;
}

static void expect_oracle(mpl_ctx *ctx, const mpl_problem *p)
{
    static const struct {
        const char *name;
        int (*compare)(const void *a, const void *b);
        bool best;
    } kinds[] = ROW({"greedy_size", compare_size, false}, {"greedy_breadth", compare_rank, false},
                    {"first_fit", compare_birth, false}, {"best_fit", compare_birth, true});
    mpl_buffer *order = calloc(p->n + 1, sizeof *order);
    uint64_t *rank = rank_by_breadth(p);

    sorted = p;
    sorted_by_rank = rank;
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        owned_plan *plan = NULL, *want = NULL;

        count_up(p->n, order);
        qsort(order, p->n, sizeof *order, kinds[i].compare);
        assert_ok(ctx, mpl_plan_new(ctx, p, &want));
        oracle_place(p, order, kinds[i].best, want);
        plan = planned_by(ctx, kinds[i].name, p);
        for (uint32_t k = 0; k < p->n; k++)
            if (plan->offset[order[k]] != want->offset[order[k]])
                fail_msg("%s of %u: buffer %u, placed as number %u, lies at %" PRIu64
                         ", not at %" PRIu64,
                         kinds[i].name, p->n, order[k], k, plan->offset[order[k]],
                         want->offset[order[k]]);
    }
    free(rank);
    free(order);
}

/* Fixes some buffers at a valid plan's offsets plus a little. */
static void fix_some(mpl_ctx *ctx, mpl_problem *p, mpl_rng *rng)
{
    owned_plan *plan = plain_plan(ctx, p);

    assert_ok(ctx, mpl_new(ctx, p->fixed, p->n));
    for (mpl_buffer b = 0; b < p->n; b++)
        p->fixed[b] = random_below(rng, 4) == 0 ? plan->offset[b] + 8 : MPL_UNFIXED;
}

TEST(small_problems_are_placed_plainly)
{
    mpl_rng rng = mpl_rng_of(22);

    for (int i = 0; i < 600; i++) {
        owned_problem *p =
            random_problem(ctx, &rng, 1 + random_below(&rng, 16),
                           (unsigned)i % 8 & (RANDOM_ALIGNED | RANDOM_POOLS | RANDOM_PAIRS));

        if (i % 3 == 0)
            fix_some(ctx, p, &rng);
        expect_oracle(ctx, p);
    }
}

/* Long enough for a tree of many levels: short and long lifetimes, many births at one step. */
TEST(long_lists_are_placed_plainly)
{
    static const struct {
        uint32_t n, alive, births; /* births: at one step */
        bool pairs, fixed;
    } kinds[] =
        ROW({1200, 20, 1, false, false}, {1200, 400, 1, false, false}, {1500, 60, 1, true, false},
            {1200, 100, 40, false, true}, {1000, 30, 3, true, true});
    mpl_rng rng = mpl_rng_of(23);

    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        owned_problem *p = NULL;

        assert_ok(ctx, mpl_problem_synthetic(ctx, kinds[i].n, kinds[i].alive, i, &p));
        for (mpl_buffer b = 0; b < p->n; b++) {
            p->birth[b] -= p->birth[b] % kinds[i].births;
            if (i % 2 == 0)
                p->align[b] = 1u << random_below(&rng, 8);
            if (kinds[i].pairs) /* equal sizes are frequent with in-place operations */
                p->bytes[b] = UINT64_C(256) << random_below(&rng, 4);
        }
        if (kinds[i].pairs)
            random_pairs(ctx, p, &rng);
        if (kinds[i].fixed) {
            assert_ok(ctx, mpl_new(ctx, p->fixed, p->n));
            for (mpl_buffer b = 0; b < p->n; b++) /* far apart, so that no two overlap */
                p->fixed[b] = b % 97 == 0 ? (UINT64_C(2) << 20) * (b / 97) : MPL_UNFIXED;
        }
        expect_oracle(ctx, p);
    }
}

/* first_fit and best_fit place buffers by the number of buffers before them, then larger first. */
TEST(partial_orders_are_placed_plainly)
{
    mpl_rng rng = mpl_rng_of(24);

    for (int i = 0; i < 200; i++) {
        mpl_problem *p =
            random_problem(ctx, &rng, 1 + random_below(&rng, 16),
                           RANDOM_PARALLEL | (i % 2 == 0 ? RANDOM_PAIRS | RANDOM_ALIGNED : 0));
        uint64_t n_before[16] = {0};
        mpl_buffer order[16];
        mpl_plan *plan = NULL, *want = NULL;

        for (mpl_buffer a = 0; a < p->n; a++) {
            order[a] = a;
            for (mpl_buffer b = 0; b < p->n; b++)
                n_before[a] += mpl_is_before(p->before, b, a);
        }
        sorted = p;
        sorted_by_rank = n_before;
        qsort(order, p->n, sizeof *order, compare_rank);
        for (int best = 0; best < 2; best++) {
            assert_ok(ctx, mpl_plan_new(ctx, p, &want));
            oracle_place(p, order, best != 0, want);
            plan = planned_by(ctx, best ? "best_fit" : "first_fit", p);
            assert_memory_equal(plan->offset, want->offset, p->n * sizeof *plan->offset);
            mpl_plan_free(ctx, plan);
            mpl_plan_free(ctx, want);
        }
        mpl_problem_free(ctx, p);
    }
}

/* ---- the entry check ---- */

TEST(the_door_refuses)
{
    static const struct {
        const char *planner, *key[2], *value[2];
        uint32_t n;
        mpl_status want;
        const char *message;
    } cases[] = ROW({"pool", {"level"}, {"0"}, 1, MPL_OK, ""},
                    {"pool", {"level"}, {"2"}, 1, MPL_EINPUT, "level=2"},
                    {"pool", {"lev"}, {"0"}, 1, MPL_EINPUT, "no parameter 'lev'"},
                    {"pool", {"level", "level"}, {"0", "1"}, 2, MPL_EINPUT, "twice"},
                    {"none", {"level"}, {"0"}, 1, MPL_EINPUT, "it takes: none"},
                    {"owl", {"rule"}, {"code"}, 1, MPL_OK, ""},
                    {"owl", {"rule"}, {""}, 1, MPL_EINPUT, "rule="},
                    {"mxnet", {"range"}, {"auto"}, 1, MPL_OK, ""},
                    {"mxnet", {"range"}, {"3"}, 1, MPL_EINPUT, "range=3"});
    owned_problem *p = NULL;

    assert_ok(ctx, mpl_problem_synthetic(ctx, 5, 2, 1, &p));
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        owned_plan *plan = NULL;
        mpl_run run = mpl_run_default(ctx);

        run.n_params = cases[i].n;
        run.param_key = cases[i].key;
        run.param_value = cases[i].value;
        assert_status(ctx, mpl_planner_run(mpl_planner_find(cases[i].planner), &run, p, &plan),
                      cases[i].want);
        if (cases[i].want != MPL_OK && strstr(ctx->message, cases[i].message) == NULL)
            fail_msg("case %zu: '%s' does not say '%s'", i, ctx->message, cases[i].message);
    }
    assert_null(mpl_planner_find("no_such"));
}

TEST(limits_are_statuses)
{
    mpl_rng rng = mpl_rng_of(25);
    mpl_problem *p = NULL;
    mpl_plan *plan = NULL;
    mpl_run run;

    init_run(&run, ctx);
    assert_ok(ctx, mpl_problem_synthetic(ctx, 20, 5, 1, &p));
    p->pool_capacity[0] = 64;
    assert_status(ctx, mpl_planner_run(mpl_planner_find("greedy_size"), &run, p, &plan),
                  MPL_ELIMIT);
    p->pool_capacity[0] = MPL_NO_CAPACITY;
    for (mpl_buffer b = 0; b < p->n; b++)
        p->bytes[b] = INT64_MAX / 4; /* five at a time exceed 2^63 */
    for (const mpl_planner *const *planner = mpl_planners; *planner != NULL; planner++)
        if (takes(*planner, p)) {
            mpl_status st = mpl_planner_run(*planner, &run, p, &plan);

            assert_true(st == MPL_EINPUT ||
                        (st == MPL_EINVALID && ((*planner)->traits & MPL_PARALLEL_ONLY) != 0));
        }
    mpl_problem_free(ctx, p);
    p = random_problem(ctx, &rng, 5, RANDOM_PARALLEL);
    for (const mpl_planner *const *planner = mpl_planners; *planner != NULL; planner++)
        if (((*planner)->traits & MPL_SERIAL_ONLY) != 0)
            assert_status(ctx, mpl_planner_run(*planner, &run, p, &plan), MPL_EUNAVAIL);
    mpl_problem_free(ctx, p);
}

TESTS(rows_have_exact_peaks, plans_are_valid_and_repeatable, empty_problems_have_empty_plans,
      every_allocation_may_fail, small_problems_are_placed_plainly, long_lists_are_placed_plainly,
      partial_orders_are_placed_plainly, the_door_refuses, limits_are_statuses)
