/* The exact planner against a naive search on thousands of small problems, above all those whose
 * optimum lies above the bound; known optima of hard lists; claims, budgets, determinism, out of
 * memory. A number as its argument runs only that many comparisons with the naive search (make
 * exact-oracle). */
#include <stdatomic.h>

#include "graphs/io/lists/lists.h"
#include "graphs/problem/bounds/bounds.h"
#include "tests/support/small_problem.h"

#include "planners/verify/certify.h"
#include "planners/exact/exact_priv.h"

static mpl_plan *planned(mpl_ctx *ctx, const mpl_problem *p, uint64_t ticks, uint64_t seed,
                         mpl_run *run)
{
    mpl_plan *plan = NULL;

    *run = mpl_run_default(ctx);
    run->budget_ticks = ticks;
    run->seed = seed;
    assert_ok(ctx, mpl_planner_run(mpl_planner_find("exact"), run, p, &plan));
    return plan;
}

enum { SMALL_TICKS = 2000000 }; /* more than any search of about 8 buffers takes */

/* ---- the search alone, in all its variants ---- */

/* No two buffers may overlap, and all end below cap. */
static void assert_packed(const small *p, const mpl_exact_state *x, uint32_t cap)
{
    uint32_t offset[MOST];

    for (int32_t i = 0; i < x->exact_case->n; i++)
        offset[x->exact_case->item[i]] = (uint32_t)x->est[i];
    for (uint32_t i = 0; i < p->n; i++) {
        assert_true(offset[i] + p->size[i] <= cap);
        assert_int_equal(offset[i] % p->align[i], 0);
        for (uint32_t j = 0; j < i; j++)
            assert_true(!overlap(p, i, j) || offset[i] >= offset[j] + p->size[j] ||
                        offset[j] >= offset[i] + p->size[i]);
    }
}

static void assert_searches(mpl_ctx *ctx, const small *p, uint32_t optimum)
{
    static const mpl_len slacks[] = {-1, 2, 1000};
    mpl_exact_item item[MOST];
    uint32_t rank[MOST];
    mpl_exact_memo memo = {.ctx = ctx}; /* shared by both directions and caps: keyed by room, too */

    alarm(120); /* for loops that count no ticks */
    for (uint32_t i = 0; i < p->n; i++) {
        rank[i] = (i * 5 + 3) % p->n;
        item[i] = (mpl_exact_item){p->birth[i], p->death[i], p->size[i], p->align[i],
                                   0,           p->size[i],  false,      0};
    }
    for (int mirrored = 0; mirrored < 2; mirrored++) {
        mpl_exact_case *c = NULL;
        mpl_exact_state *x = NULL;
        mpl_exact_search q;

        assert_ok(ctx, mpl_exact_case_new(ctx, item, p->n, mirrored, &c));
        assert_ok(ctx, mpl_exact_state_new(ctx, c, &x));
        assert_ok(ctx, mpl_exact_search_init(&q, x));
        q.rank = rank;
        for (uint32_t cap = optimum - 1; cap <= optimum; cap++) {
            mpl_exact_case_limit(c, item, 1, cap);
            for (uint32_t pick = MPL_PICK_SCORE_LOW; pick <= MPL_PICK_LOW; pick++)
                for (size_t k = 0; k < 3; k++) {
                    mpl_exact_verdict verdict;

                    q.pick = (mpl_exact_pick)pick;
                    q.memo = k == 0 || pick % 2 == 0 ? NULL : &memo;
                    x->filter_slack = slacks[k];
                    mpl_exact_state_reset(x);
                    q.tick_limit = x->ticks + SMALL_TICKS; /* a runaway search: no verdict */
                    verdict = mpl_exact_search_run(&q);
                    assert_int_equal(verdict, cap < optimum ? MPL_EXACT_FAILED : MPL_EXACT_FOUND);
                    if (verdict == MPL_EXACT_FOUND)
                        assert_packed(p, x, cap);
                }
        }
        mpl_exact_search_fini(&q);
        mpl_exact_state_free(ctx, x);
        mpl_exact_case_free(ctx, c);
    }
    mpl_exact_memo_fini(&memo);
    alarm(0);
}

/* A beam keeps all states of so small a problem, so it finds a plan if there is one; it never
 * refutes. */
static void assert_beam(mpl_ctx *ctx, const small *p, uint32_t optimum)
{
    mpl_exact_item item[MOST];
    uint32_t rank[MOST];
    const uint32_t *ranks[MPL_EXACT_ORDERS] = {rank, rank, rank, rank};
    mpl_len est[MOST], first[MOST];

    for (uint32_t i = 0; i < p->n; i++) {
        rank[i] = (i * 5 + 3) % p->n;
        item[i] = (mpl_exact_item){p->birth[i], p->death[i], p->size[i], p->align[i],
                                   0,           p->size[i],  false,      0};
    }
    for (uint32_t cap = optimum - 1; cap <= optimum; cap++)
        for (uint32_t k = 0; k < 8; k++) {
            mpl_exact_beam o = {
                .width = 256, .probes = 8 * (k & 1), .weighted = (k & 2) != 0, .rank = ranks};
            mpl_exact_beam_result r = {.est = est};
            mpl_exact_state x = {.est = est};
            mpl_exact_case *c = NULL;

            o.filter_slack = (k & 2) != 0 ? -1 : 1000;
            o.tick_limit = UINT64_MAX;
            o.deadline_ns = INT64_MAX;
            o.n_threads = 1 + k / 4;
            assert_ok(ctx, mpl_exact_case_new(ctx, item, p->n, (k & 1) != 0, &c));
            mpl_exact_case_limit(c, item, 1, cap);
            assert_ok(ctx, mpl_exact_beam_run(ctx, c, &o, &r));
            assert_int_equal(r.verdict, cap < optimum ? MPL_EXACT_STOPPED : MPL_EXACT_FOUND);
            x.exact_case = c;
            if (r.verdict == MPL_EXACT_FOUND)
                assert_packed(p, &x, cap);
            if (k < 4 && cap == optimum) { /* more threads, the same plan */
                memcpy(first, est, sizeof first);
                o.n_threads = 3;
                assert_ok(ctx, mpl_exact_beam_run(ctx, c, &o, &r));
                assert_memory_equal(first, est, p->n * sizeof *est);
            }
            mpl_exact_case_free(ctx, c);
        }
}

/* ---- the planner against brute force ---- */

static uint32_t n_oracle; /* comparisons, a third above the bound; 0: a few */

static struct {
    uint32_t problems, above; /* compared; with an optimum above the load */
    uint32_t proofs, cliques; /* certificates accepted by the checker: refutations and witnesses */
    small last;               /* compared */
} tally;

/* The planner's plan, with its certificate accepted. */
static mpl_plan *certified(mpl_ctx *ctx, const mpl_problem *p)
{
    mpl_certified proved = {0};
    mpl_run run;
    mpl_plan *plan = planned(ctx, p, 50 * SMALL_TICKS, 1, &run);

    assert_ok(ctx, mpl_certify(ctx, p, plan, &proved));
    tally.proofs += proved.evidence == MPL_EVIDENCE_REFUTATION;
    tally.cliques += proved.evidence == MPL_EVIDENCE_CLIQUE;
    return plan;
}

static void assert_planner(mpl_ctx *ctx, const small *from, uint32_t optimum)
{
    owned_problem *p = problem_of(ctx, from);
    mpl_plan *plan;

    tally.last = *from;
    plan = certified(ctx, p);
    assert_int_equal(plan->claim, MPL_OPTIMAL);
    assert_int_equal(plan->peak_bytes, optimum);
    mpl_plan_free(ctx, plan);
    p->pool_capacity[0] = optimum;
    plan = certified(ctx, p);
    assert_true(plan->claim == MPL_OPTIMAL || plan->claim == MPL_FEASIBLE);
    assert_true(plan->peak_bytes <= optimum);
    mpl_plan_free(ctx, plan);
    p->pool_capacity[0] = optimum - 1;
    plan = certified(ctx, p);
    assert_int_equal(plan->claim, MPL_INFEASIBLE);
    mpl_plan_free(ctx, plan);
    tally.above += optimum > load(from);
    tally.problems++;
    if (n_oracle > 0 && tally.problems % 5000 == 0) {
        print_message("%u of %u problems, %u above the bound\n", tally.problems, n_oracle,
                      tally.above);
        fflush(stdout);
    }
}

/* The same problem with every step filled up to the load. One unit above it each section may waste
 * one unit, which the rules on full floors must allow. n == 0: it would take too many buffers. */
static small filled(const small *from)
{
    small p = *from;
    uint32_t steps = 0, gap = 0;

    for (uint32_t i = 0; i < p.n; i++)
        steps = p.death[i] > steps ? p.death[i] : steps;
    for (uint32_t t = 0; t < steps && p.n > 0; t++) {
        uint32_t before = gap;

        gap = load(from);
        for (uint32_t i = 0; i < from->n; i++)
            gap -= p.birth[i] <= t && t < p.death[i] ? p.size[i] : 0;
        if (gap > 0 && t > 0 && gap == before) {
            p.death[p.n - 1]++;
        } else if (gap > 0) {
            p.birth[p.n] = t, p.death[p.n] = t + 1, p.size[p.n] = gap, p.align[p.n] = 1,
            p.fixed[p.n] = -1;
            p.n = p.n + 1 < MOST ? p.n + 1 : 0;
        }
    }
    return p;
}

/* Shows false refutations and wrong placements: optima above the bound need real proofs. */
TEST(optima_above_the_bound)
{
    enum { PARENTS = 1000, FEW = 1000 };
    static small kept[PARENTS];
    uint32_t n_kept = 0, many = n_oracle > 0 ? (n_oracle + 2) / 3 : draws(FEW);
    mpl_rng rng = mpl_rng_of(11);

    for (uint32_t round = 0; n_kept < many; round++) {
        small p = roots[round % 2], full;
        uint32_t optimum;

        assert_true(round < 1000 * many);
        if (round >= 2)
            p = kept[below(&rng, n_kept < PARENTS ? n_kept : PARENTS)];
        for (uint32_t k = round < 2 ? 0 : 1 + below(&rng, 3); k > 0; k--)
            p = mutated(&rng, &p);
        if (p.n < 4 || p.n > 8 || brute_fits(&p, load(&p)))
            continue;
        kept[n_kept++ % PARENTS] = p;
        optimum = brute_optimum(&p);
        assert_searches(ctx, &p, optimum);
        if (n_kept % 16 == 0)
            assert_beam(ctx, &p, optimum);
        if (n_kept % 4 == 0 || n_oracle > 0)
            assert_planner(ctx, &p, optimum);
        full = filled(&p);
        if (full.n > 0 && brute_fits(&full, optimum)) /* it is the optimum of both */
            assert_searches(ctx, &full, optimum);
    }
}

/* Fixes some buffers at a plan's offsets, or one alignment step off. Returns false if none could be
 * fixed. */
static bool fix_some(mpl_rng *rng, small *p)
{
    bool any = false;

    for (uint32_t k = 0; k < 2; k++) {
        brute f = {.p = p, .cap = brute_optimum(p) + below(rng, 3)};
        uint32_t i = below(rng, p->n);

        assert_true(brute_place(&f, 0, 0));
        p->fixed[i] = (int32_t)(f.offset[i] + p->align[i] * below(rng, 2));
        if (!brute_fits(p, 400)) {
            p->fixed[i] = -1;
            break;
        }
        any = true;
    }
    return any;
}

TEST(random_problems)
{
    enum { FEW = 900 };
    uint32_t many = tally.problems + (n_oracle > 0 ? n_oracle - (n_oracle + 2) / 3 : draws(FEW));
    mpl_rng rng = mpl_rng_of(12);

    for (uint32_t round = 0; tally.problems < many; round++) {
        small p = random_small(&rng, round % 2 == 1);
        uint32_t optimum = brute_optimum(&p);

        assert_planner(ctx, &p, optimum);
        if (round % 4 == 0)
            assert_searches(ctx, &p, optimum);
        if (below(&rng, 2) == 0 && tally.problems < many && fix_some(&rng, &p))
            assert_planner(ctx, &p, brute_optimum(&p));
    }
}

/* ---- lists ---- */

static const struct {
    const char *path;
    uint64_t capacity; /* 0: asks for the least height */
    uint64_t optimum;  /* 0: not checked */
} lists[] = {
    {"/minimalloc/A.1048576.csv", 0, 1048576}, {"/minimalloc/C.1048576.csv", 0, 1039360},
    {"/minimalloc/E.1048576.csv", 0, 1048576}, {"/minimalloc/G.1048576.csv", 0, 1048576},
    {"/minimalloc/I.1048576.csv", 0, 1048576}, {"/minimalloc/K.1048576.csv", 0, 1048576},
    {"/minimalloc/D.1048576.csv", 1048576, 0}, {"/minimalloc/J.1048576.csv", 1048576, 0},
    {"/minimalloc/A.1048576.csv", 1048575, 0}, {"/planted/N0.672.csv", 672, 0},
    {"/planted/N3.1342.csv", 1342, 0},         {"/planted/T1.921.csv", 921, 0},
    {"/planted/T4.2078.csv", 2078, 0},         {"/planted/Q0.1000.csv", 1000, 1000},
    {"/planted/Q4.1000.csv", 1000, 1000},
};

static void reverse(mpl_problem *p)
{
    for (mpl_buffer b = 0; b < p->n; b++) {
        uint32_t birth = p->birth[b];

        p->birth[b] = p->n_steps - p->death[b];
        p->death[b] = p->n_steps - birth;
    }
}

TEST(known_optima)
{
    skip_without(MPL_SHARED "/minimalloc");
    skip_without(MPL_SHARED "/planted");
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++)
        for (int backwards = 0; backwards < 2 && !left_out(i); backwards++) {
            char path[200];
            owned_problem *p = NULL;
            owned_plan *plan, *again;
            mpl_run run;

            snprintf(path, sizeof path, MPL_SHARED "%s", lists[i].path);
            assert_ok(ctx, mpl_csv_read(ctx, path, &p, NULL));
            if (backwards)
                reverse(p);
            if (lists[i].capacity != 0)
                p->pool_capacity[0] = lists[i].capacity;
            plan = planned(ctx, p, UINT64_MAX, 1, &run);
            if (lists[i].optimum != 0) {
                assert_int_equal(plan->claim, MPL_OPTIMAL);
                assert_int_equal(plan->peak_bytes, lists[i].optimum);
            } else {
                assert_int_equal(plan->claim == MPL_INFEASIBLE, lists[i].capacity == 1048575);
            }
            again = planned(ctx, p, UINT64_MAX, 1, &run);
            assert_memory_equal(plan->offset, again->offset, p->n * sizeof *plan->offset);
        }
}

/* The cut rectangles fill every step, so the plan wastes nothing either. */
TEST(cut_rectangles)
{
    static const struct {
        const char *source;
        uint32_t n;
    } rows[] = ROW({"guillotine:n=1", 1}, {"guillotine:n=20,seed=7", 20}, {"guillotine:n=150", 150},
                   {"guillotine:n=300,seed=3", 300}, {"guillotine:n=1000,seed=7", 1000});
    mpl_read_options options = {0};
    mpl_source source;

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        uint64_t area = 0;
        owned_plan *plan;
        mpl_run run;

        assert_ok(ctx, mpl_source_open(ctx, rows[i].source, &options, &source));
        assert_int_equal(source.problem->n, rows[i].n);
        for (mpl_buffer b = 0; b < rows[i].n; b++)
            area +=
                source.problem->bytes[b] * (source.problem->death[b] - source.problem->birth[b]);
        assert_int_equal(area, UINT64_C(1048576) * source.problem->n_steps);
        plan = planned(ctx, source.problem, UINT64_MAX, 1, &run);
        assert_int_equal(plan->peak_bytes, 1048576);
        mpl_source_fini(ctx, &source);
    }
    assert_int_equal(mpl_source_open(ctx, "guillotine:n=0", &options, &source), MPL_EINPUT);
    assert_int_equal(mpl_source_open(ctx, "guillotine:n=5,seed=1x", &options, &source), MPL_EINPUT);
    assert_int_equal(mpl_source_open(ctx, "guillotine:", &options, &source), MPL_EINPUT);
}

/* Few ticks suffice to reassemble any cut: repair undoes wrong guesses. */
TEST(cut_rectangles_are_quick)
{
    mpl_read_options options = {0};

    for (uint32_t n = 100; n <= 1000; n += 150)
        for (uint32_t seed = 1; seed <= draws(10); seed++) {
            char text[60];
            mpl_source source;
            owned_plan *plan;
            mpl_run run;

            snprintf(text, sizeof text, "guillotine:n=%u,seed=%u", n, seed);
            assert_ok(ctx, mpl_source_open(ctx, text, &options, &source));
            plan = planned(ctx, source.problem, 20000000, 1, &run);
            assert_int_equal(plan->peak_bytes, 1048576);
            mpl_source_fini(ctx, &source);
        }
}

typedef struct rectangle {
    uint32_t x, y, dx, dy;
} rectangle;

/* Cuts r[*n - 1] or another in two, or into a pinwheel, which no full cut separates. */
static void cut_some(mpl_rng *rng, rectangle *r, uint32_t *n)
{
    uint32_t i = (uint32_t)mpl_rng_below(rng, *n);
    rectangle a = r[i];

    if (mpl_rng_below(rng, 8) == 0 && a.dx >= 6 && a.dy >= 6) {
        uint32_t x = a.dx / 3, y = a.dy / 3, dx = a.dx - x, dy = a.dy - y;

        r[i] = (rectangle){a.x, a.y, dx, y};
        r[(*n)++] = (rectangle){a.x + dx, a.y, x, dy};
        r[(*n)++] = (rectangle){a.x + x, a.y + dy, dx, y};
        r[(*n)++] = (rectangle){a.x, a.y + y, x, dy};
        r[(*n)++] = (rectangle){a.x + x, a.y + y, dx - x, dy - y};
    } else if (mpl_rng_below(rng, 2) == 0 && a.dx > 1) {
        r[i].dx = 1 + (uint32_t)mpl_rng_below(rng, a.dx - 1);
        r[(*n)++] = (rectangle){a.x + r[i].dx, a.y, a.dx - r[i].dx, a.dy};
    } else if (a.dy > 1) {
        r[i].dy = 1 + (uint32_t)mpl_rng_below(rng, a.dy - 1);
        r[(*n)++] = (rectangle){a.x, a.y + r[i].dy, a.dx, a.dy - r[i].dy};
    }
}

enum { WIDTH = 700, HEIGHT = 900 };

/* About n rectangles cut from a full one; one in `one_in` (0: none) loses some of its height. */
static mpl_problem *cut_up(mpl_ctx *ctx, uint64_t seed, uint32_t least, uint32_t one_in)
{
    rectangle r[400] = {{0, 0, WIDTH, HEIGHT}};
    uint32_t n = 1;
    mpl_problem *p = NULL;
    mpl_rng rng = mpl_rng_of(seed);

    while (n < least)
        cut_some(&rng, r, &n);
    assert_ok(ctx, mpl_problem_new(ctx, "cut up", n, &p));
    for (uint32_t i = 0; i < n; i++) {
        p->birth[i] = r[i].x;
        p->death[i] = r[i].x + r[i].dx;
        p->bytes[i] = r[i].dy;
        if (one_in > 0 && r[i].dy > 8 && mpl_rng_below(&rng, one_in) == 0)
            p->bytes[i] -= 1 + mpl_rng_below(&rng, 8);
    }
    p->n_steps = WIDTH;
    return p;
}

/* Pinwheels, with and without waste, are reassembled in few ticks. */
TEST(pinwheels)
{
    static const struct {
        uint32_t n, one_in;
        uint64_t ticks;
    } rows[] = {{120, 0, 50000000}, {60, 8, 10000000}, {200, 4, 100000000}};

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        for (uint64_t seed = 1; seed <= draws(8); seed++) {
            owned_problem *p = cut_up(ctx, seed, rows[i].n, rows[i].one_in);
            owned_plan *plan;
            mpl_run run;

            p->pool_capacity[0] = HEIGHT;
            plan = planned(ctx, p, rows[i].ticks, 1, &run);
            assert_true(plan->peak_bytes <= HEIGHT);
        }
}

static atomic_uint most_bound;

static void note_bound(uint32_t index)
{
    unsigned most = atomic_load(&most_bound);

    while (index > most && !atomic_compare_exchange_weak(&most_bound, &most, index))
        ;
}

/* Concurrent runs, beams of many states, probes: plan and work do not depend on the threads. In
 * short every other row. */
TEST(threads_change_nothing)
{
    static const struct {
        const char *planner, *list;
        uint64_t ticks;
        bool is_long;    /* needs more than one run, so threads are used */
        uint64_t height; /* at most */
    } rows[] = {{"exact", "minimalloc/D.1048576.csv", 60000000, true, 986112},
                {"exact", "minimalloc/J.1048576.csv", 120000000, true, UINT64_MAX},
                {"exact", "planted/Q6.1000.csv", 10000000, false, 1000},
                {"portfolio", "planted/Q2.1000.csv", 60000000, false, UINT64_MAX},
                {"beam", "minimalloc/D.1048576.csv", 20000000, true, UINT64_MAX}};

    skip_without(MPL_SHARED "/minimalloc");
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i += 1 + in_short()) {
        owned_problem *p = NULL;
        mpl_plan *plan[3] = {NULL};
        mpl_watch watch = {.bind = note_bound};
        uint64_t ticks = 0;
        char path[200];

        snprintf(path, sizeof path, "%s/%s", MPL_SHARED, rows[i].list);
        assert_ok(ctx, mpl_csv_read(ctx, path, &p, NULL));
        for (uint32_t k = 0; k < 3; k++) {
            mpl_run run = mpl_run_default(ctx);

            run.n_threads = 1 + k;
            run.budget_ticks = rows[i].ticks;
            run.watch = &watch;
            atomic_store(&most_bound, 0);
            assert_ok(ctx, mpl_planner_run(mpl_planner_find(rows[i].planner), &run, p, &plan[k]));
            assert_memory_equal(plan[0]->offset, plan[k]->offset, p->n * sizeof *plan[k]->offset);
            assert_true(k == 0 || run.ticks == ticks);
            assert_true(plan[k]->peak_bytes <= rows[i].height);
            assert_in_range(atomic_load(&most_bound), k > 0 && rows[i].is_long, k);
            ticks = run.ticks;
        }
        for (uint32_t k = 0; k < 3; k++)
            mpl_plan_free(ctx, plan[k]);
    }
}

/* Lifetimes in more sections than a search can hold: placements and their repair alone, within the
 * budget. */
TEST(too_many_to_search)
{
    enum { MANY = 9000, TICKS = 60000000 };
    owned_problem *p = NULL;
    owned_plan *plan, *first;
    uint64_t live;
    mpl_run run;
    mpl_rng rng = mpl_rng_of(5);

    assert_ok(ctx, mpl_problem_new(ctx, "many", MANY, &p));
    p->n_steps = 2 * MANY;
    for (mpl_buffer b = 0; b < MANY; b++) {
        p->birth[b] = below(&rng, MANY);
        p->death[b] = p->birth[b] + 1 + below(&rng, MANY);
        p->bytes[b] = 1 + below(&rng, 1u << below(&rng, 20));
    }
    assert_ok(ctx, mpl_peak_live(ctx, p, 0, &live, NULL, NULL));
    first = planned(ctx, p, 1, 1, &run);
    plan = planned(ctx, p, TICKS, 1, &run);
    assert_true(plan->peak_bytes < first->peak_bytes);
    assert_int_equal(plan->bound_bytes, live);
    assert_true(plan->peak_bytes < live + live / 10);
    assert_true(run.ticks < 2 * TICKS);
}

/* ---- claims and budgets ---- */

/* An exhausted budget gives feasible, or a limit if a capacity was to be decided: never optimal or
 * infeasible. */
TEST(budgets_prove_nothing)
{
    small hard = roots[1];
    uint32_t optimum = brute_optimum(&hard);
    owned_problem *p = problem_of(ctx, &hard);

    for (uint64_t ticks = 1; ticks < 2000; ticks += 1 + ticks / 8) {
        mpl_run run;
        mpl_plan *plan;
        mpl_status st;

        p->pool_capacity[0] = MPL_NO_CAPACITY;
        plan = planned(ctx, p, ticks, 1, &run);
        assert_true(plan->bound_bytes <= optimum && plan->peak_bytes >= optimum);
        assert_int_equal(plan->claim == MPL_OPTIMAL, plan->bound_bytes == plan->peak_bytes);
        mpl_plan_free(ctx, plan);
        plan = NULL;
        p->pool_capacity[0] = optimum - 1;
        run = mpl_run_default(ctx);
        run.budget_ticks = ticks;
        st = mpl_planner_run(mpl_planner_find("exact"), &run, p, &plan);
        if (st == MPL_OK)
            assert_int_equal(plan->claim, MPL_INFEASIBLE);
        else
            assert_status(ctx, st, MPL_ELIMIT);
        mpl_plan_free(ctx, plan);
    }
}

/* Two pools with a capacity each: a decision for each. */
TEST(pools_are_apart)
{
    owned_problem *p = NULL;
    mpl_run run;
    mpl_plan *plan;

    assert_ok(ctx, mpl_problem_new(ctx, "pools", 4, &p));
    assert_ok(ctx, mpl_realloc_bytes(ctx, (void **)&p->pool_name, 1, 2, sizeof *p->pool_name));
    assert_ok(ctx,
              mpl_realloc_bytes(ctx, (void **)&p->pool_capacity, 1, 2, sizeof *p->pool_capacity));
    p->pool_name[1] = mpl_strdup(ctx, "other");
    p->n_pools = 2;
    p->n_steps = 2;
    p->pool_capacity[1] = 7;
    for (mpl_buffer b = 0; b < 4; b++)
        p->bytes[b] = 3 + b, p->pool[b] = b % 2, p->death[b] = 2;
    plan = NULL;
    run = mpl_run_default(ctx);
    assert_ok(ctx, mpl_planner_run(mpl_planner_find("exact"), &run, p, &plan));
    assert_int_equal(plan->claim, MPL_INFEASIBLE); /* 4 + 6 > 7 */
    mpl_plan_free(ctx, plan);
    p->pool_capacity[1] = 10;
    plan = planned(ctx, p, UINT64_MAX, 1, &run);
    assert_int_equal(plan->claim, MPL_OPTIMAL);
    assert_int_equal(plan->pool_bytes[0], 8);
    assert_int_equal(plan->pool_bytes[1], 10);
    mpl_plan_free(ctx, plan);
}

static void assert_memory_may_run_out(mpl_ctx *ctx, const mpl_problem *p)
{
    EACH_ALLOCATION_FAILS (ctx, st) {
        owned_plan *plan = NULL;
        mpl_run run = mpl_run_default(ctx);

        st = mpl_planner_run(mpl_planner_find("exact"), &run, p, &plan);
    }
}

TEST(memory_runs_out)
{
    small hard = roots[1];
    mpl_problem *p = problem_of(ctx, &hard);

    assert_memory_may_run_out(ctx, p);
    mpl_problem_free(ctx, p);
    assert_ok(ctx, mpl_problem_synthetic_guillotine(ctx, 200, 7, &p));
    assert_memory_may_run_out(ctx, p);
    mpl_problem_free(ctx, p);
    p = cut_up(ctx, 1, 40, 4);
    assert_memory_may_run_out(ctx, p);
    mpl_problem_free(ctx, p);
}

static int compare_with_brute_force(void)
{
    int failed = RUN_TESTS(NULL, NULL, optima_above_the_bound, random_problems);
    const small *p = &tally.last;

    for (uint32_t i = 0; failed != 0 && i < p->n; i++)
        print_message("buffer %u: steps [%u, %u), %u bytes, aligned to %u, fixed at %d\n", i,
                      p->birth[i], p->death[i], p->size[i], p->align[i], p->fixed[i]);
    print_message(
        "exact = brute force on %u of %u problems, %u above the bound; certificates accepted: %u "
        "refutations, %u cliques; %s\n",
        tally.problems, n_oracle, tally.above, tally.proofs, tally.cliques,
        failed == 0 ? "no disagreement" : "then a DISAGREEMENT");
    return failed != 0;
}

int main(int argc, char **argv)
{
    if (argc > 1) {
        n_oracle = (uint32_t)strtoul(argv[1], NULL, 10);
        return compare_with_brute_force();
    }
    return RUN_TESTS(NULL, NULL, optima_above_the_bound, random_problems, known_optima,
                     budgets_prove_nothing, cut_rectangles, cut_rectangles_are_quick, pinwheels,
                     threads_change_nothing, pools_are_apart, memory_runs_out, too_many_to_search);
}
