/* The integer program against brute force and the exact search, above all where the optimum lies
 * above the bound and needs a proof; what ends a search, GLPK's memory, the file. Two numbers as
 * arguments: only that many problems and refutations against the exact search (make ilp-oracle). */
#include "graphs/problem/bounds/bounds.h"
#include "tests/support/random_problem.h"
#include "tests/support/root_problems.h"

#include "planners/verify/certify.h"
#include "planners/ilp/ilp.h"
#include "planners/ilp/lp.h"

enum { MOST = 20, KEPT = 200 };
enum { ALIGNED = 1, FIXED = 2, PAIRS = 4, PARALLEL = 8 };

static bool long_form;                        /* prints progress */
static uint32_t n_equal = 30, n_refuted = 40; /* comparisons of optima and of refutations */

/* Parameters of a problem that are easy to mutate. */
typedef struct shape {
    uint32_t n;
    uint32_t birth[MOST], death[MOST], bytes[MOST], align[MOST];
    int32_t fixed[MOST]; /* -1: free */
    uint32_t seed; /* of pairs, and of the arcs omitted from a parallel problem's lifetime order */
} shape;

static const shape roots[] = {ROOT_PROBLEMS(bytes)};

static void add_buffer(shape *p, mpl_rng *rng)
{
    uint32_t i = random_below(rng, p->n), j = random_below(rng, p->n), b = p->n++;

    p->birth[b] = p->birth[i];
    p->death[b] = p->death[j] > p->birth[b] ? p->death[j] : p->birth[b] + 1;
    p->bytes[b] = 1 + random_below(rng, 3);
    p->align[b] = 1;
    p->fixed[b] = -1;
}

static void drop_buffer(shape *p, uint32_t b)
{
    p->n--;
    p->birth[b] = p->birth[p->n], p->death[b] = p->death[p->n], p->bytes[b] = p->bytes[p->n];
    p->align[b] = p->align[p->n], p->fixed[b] = p->fixed[p->n];
}

/* Makes one change. */
static void mutate(shape *p, mpl_rng *rng, unsigned what, uint32_t n_max)
{
    uint32_t b = random_below(rng, p->n);

    p->seed = random_below(rng, UINT32_MAX);
    switch (random_below(rng, 9)) {
    case 0:
        p->bytes[b] += 1 + random_below(rng, 2);
        break;
    case 1:
        p->bytes[b] -= p->bytes[b] > 1;
        break;
    case 2:
        p->death[b]++;
        break;
    case 3:
        p->death[b] -= p->death[b] > p->birth[b] + 1;
        break;
    case 4:
        p->birth[b] -= p->birth[b] > 0;
        break;
    case 5:
        if (p->n > 4)
            drop_buffer(p, b);
        break;
    case 6:
        p->align[b] = what & ALIGNED ? 1u << random_below(rng, 3) : 1;
        p->fixed[b] = -1;
        break;
    case 7:
        p->fixed[b] = what & FIXED && random_below(rng, 2) == 0
                          ? (int32_t)(p->align[b] * random_below(rng, 8))
                          : -1;
        break;
    default:
        if (p->n < n_max)
            add_buffer(p, rng);
    }
}

/* The lifetimes as a partial order, with one in 8 of the arcs that others do not imply omitted. */
static void relax_order(mpl_ctx *ctx, mpl_problem *p, uint32_t seed)
{
    uint32_t from[MOST * MOST], to[MOST * MOST], n = 0;
    mpl_before *before = NULL;
    mpl_rng rng = mpl_rng_of(seed);

    for (mpl_buffer a = 0; a < p->n; a++)
        for (mpl_buffer b = 0; b < p->n; b++)
            if (p->death[a] <= p->birth[b] && random_below(&rng, 8) > 0)
                from[n] = a, to[n++] = b;
    assert_ok(ctx, mpl_before_from_arcs(ctx, p->n, n, from, to, &before));
    p->before = before;
    p->n_steps = 0;
    memset(p->birth, 0, p->n * sizeof *p->birth);
    memset(p->death, 0, p->n * sizeof *p->death);
}

static mpl_problem *problem_of(mpl_ctx *ctx, const shape *from, unsigned what)
{
    mpl_problem *p = NULL;
    mpl_rng rng;

    assert_ok(ctx, mpl_problem_new(ctx, "small", from->n, &p));
    if (what & FIXED)
        assert_ok(ctx, mpl_new(ctx, p->fixed, from->n));
    for (mpl_buffer b = 0; b < from->n; b++) {
        p->birth[b] = from->birth[b];
        p->death[b] = from->death[b];
        p->bytes[b] = from->bytes[b];
        p->align[b] = from->align[b];
        p->n_steps = p->death[b] > p->n_steps ? p->death[b] : p->n_steps;
        if (what & FIXED)
            p->fixed[b] = from->fixed[b] < 0 ? MPL_UNFIXED : (uint64_t)from->fixed[b];
    }
    if (what & PARALLEL)
        relax_order(ctx, p, from->seed);
    if (what & PAIRS) {
        rng = mpl_rng_of(from->seed);
        random_pairs(ctx, p, &rng);
        drop_impossible_pairs(p);
    }
    assert_ok(ctx, mpl_problem_check(ctx, p));
    return p;
}

/* ---- brute force: buffers in the order of their offsets ---- */

typedef struct brute {
    const mpl_problem *p;
    mpl_plan *plan;
    bool placed[MOST];
    uint64_t cap, nodes;
} brute;

static bool descend(brute *f, uint32_t n_placed, uint64_t last, mpl_buffer last_id);

static bool put_at(brute *f, mpl_buffer x, uint64_t at, uint32_t n_placed, uint64_t last,
                   mpl_buffer last_id)
{
    bool fits;

    if (at < last || (at == last && x < last_id && n_placed > 0) || at + f->p->bytes[x] > f->cap)
        return false;
    f->plan->offset[x] = at;
    for (mpl_buffer y = 0; y < f->p->n; y++)
        if (f->placed[y] && plain_conflict(f->p, f->plan, x, y))
            return false;
    f->placed[x] = true;
    fits = descend(f, n_placed + 1, at, x);
    f->placed[x] = false;
    return fits;
}

static uint64_t aligned(uint64_t at, uint64_t align)
{
    return (at + align - 1) / align * align;
}

/* In a packing pushed down, each buffer, or some member of a chain of pairs at one offset, rests on
 * something. */
static bool put_somewhere(brute *f, mpl_buffer x, uint32_t n_placed, uint64_t last,
                          mpl_buffer last_id)
{
    const mpl_problem *p = f->p;
    uint64_t lowest = 0;

    if (p->fixed != NULL && p->fixed[x] != MPL_UNFIXED)
        return put_at(f, x, p->fixed[x], n_placed, last, last_id);
    for (mpl_buffer y = 0; y < p->n; y++)
        if (f->placed[y] && mpl_conflict(p, x, y) && f->plan->offset[y] + p->bytes[y] > lowest)
            lowest = f->plan->offset[y] + p->bytes[y];
    if (p->n_in_place == 0)
        return put_at(f, x, aligned(lowest, p->align[x]), n_placed, last, last_id);
    for (uint64_t at = aligned(last, p->align[x]); at + p->bytes[x] <= f->cap; at += p->align[x])
        if (put_at(f, x, at, n_placed, last, last_id))
            return true;
    return false;
}

/* Serial without pairs: the buffers live at a birth fit above those placed there. */
static bool load_fits(const brute *f)
{
    const mpl_problem *p = f->p;

    for (mpl_buffer i = 0; p->before == NULL && p->n_in_place == 0 && p->fixed == NULL && i < p->n;
         i++) {
        uint64_t top = 0, rest = 0;

        for (mpl_buffer j = 0; j < p->n; j++)
            if (p->birth[j] <= p->birth[i] && p->birth[i] < p->death[j]) {
                if (!f->placed[j])
                    rest += p->bytes[j];
                else
                    top = mpl_max_u64(top, f->plan->offset[j] + p->bytes[j]);
            }
        if (top + rest > f->cap)
            return false;
    }
    return true;
}

static bool descend(brute *f, uint32_t n_placed, uint64_t last, mpl_buffer last_id)
{
    if (n_placed == f->p->n)
        return true;
    if (f->nodes > 100000 || !load_fits(f))
        return false;
    f->nodes++;
    for (mpl_buffer x = 0; x < f->p->n; x++)
        if (!f->placed[x] && put_somewhere(f, x, n_placed, last, last_id))
            return true;
    return false;
}

/* The least height; 0: no plan, or too slow. *bound: what the problem itself proves. */
static uint64_t optimum(mpl_ctx *ctx, const mpl_problem *p, uint64_t *bound)
{
    brute f = {.p = p};
    uint64_t best = 0;

    assert_ok(ctx, mpl_lower_bound(ctx, p, 0, bound, NULL));
    for (mpl_buffer b = 0; p->fixed != NULL && b < p->n; b++)
        if (p->fixed[b] != MPL_UNFIXED)
            *bound = mpl_max_u64(*bound, p->fixed[b] + p->bytes[b]);
    assert_ok(ctx, mpl_plan_new(ctx, p, &f.plan));
    for (f.cap = *bound; best == 0 && f.cap < *bound + 60 && f.nodes <= 100000; f.cap++)
        best = descend(&f, 0, 0, 0) ? f.cap : 0;
    mpl_plan_free(ctx, f.plan);
    return best;
}

/* ---- comparisons ---- */

/* The planner's height, which must be proved. */
static uint64_t solved(mpl_ctx *ctx, const char *planner, const mpl_problem *p, const char *key,
                       const char *value)
{
    owned_plan *plan;
    uint64_t bytes;

    assert_ok(ctx, plan_with(ctx, planner, key, value, UINT64_MAX, p, &plan));
    bytes = plan->peak_bytes;
    assert_int_equal(plan->claim, MPL_OPTIMAL);
    assert_int_equal(plan->bound_bytes, bytes);
    return bytes;
}

static mpl_claim claimed(mpl_ctx *ctx, const mpl_problem *p, uint64_t *peak)
{
    owned_plan *plan;
    mpl_claim claim;

    assert_ok(ctx, plan_with(ctx, "ilp", NULL, NULL, UINT64_MAX, p, &plan));
    claim = plan->claim;
    *peak = plan->peak_bytes;
    return claim;
}

/* The bound that GLPK has proved when it stops is never above any plan: it is a double, and may be
 * rounded up only to the next possible height. */
static void expect_bounds(mpl_ctx *ctx, const mpl_problem *p, uint64_t best)
{
    static const char *const key[] = {"nodes", "start"}, *const nodes[] = {"1", "2", "5"};

    for (size_t k = 0; k < sizeof nodes / sizeof *nodes; k++) {
        const char *const value[] = {nodes[k], "cold"};
        owned_plan *plan = NULL;
        mpl_run run = mpl_run_default(ctx);

        run.n_params = 2;
        run.param_key = key;
        run.param_value = value;
        assert_ok(ctx, mpl_planner_run(mpl_planner_find("ilp"), &run, p, &plan));
        assert_true(plan->bound_bytes <= best && best <= plan->peak_bytes);
    }
}

/* Tries every kind of question to ilp. */
static void expect_optimum(mpl_ctx *ctx, mpl_problem *p, uint64_t best)
{
    uint64_t peak;

    expect_bounds(ctx, p, best);
    assert_int_equal(solved(ctx, "ilp", p, NULL, NULL), best);
    assert_int_equal(solved(ctx, "ilp", p, "start", "cold"), best);
    p->pool_capacity[0] = best;
    assert_int_not_equal(claimed(ctx, p, &peak), MPL_INFEASIBLE);
    assert_true(peak <= best);
    assert_int_equal(solved(ctx, "ilp", p, "minimise", "1"), best);
    p->pool_capacity[0] = best - 1;
    assert_int_equal(claimed(ctx, p, &peak), MPL_INFEASIBLE);
    p->pool_capacity[0] = MPL_NO_CAPACITY;
}

/* A mutant of a kept problem or of a root. */
static shape next_shape(mpl_rng *rng, const shape *kept, uint32_t n_kept, unsigned what,
                        uint32_t n_max)
{
    shape p = n_kept > 0 && random_below(rng, 4) > 0 ? kept[random_below(rng, n_kept)]
                                                     : roots[random_below(rng, 2)];

    for (uint32_t k = 1 + random_below(rng, 3); k > 0; k--)
        mutate(&p, rng, what, n_max);
    return p;
}

static const struct {
    const char *name;
    unsigned what;
    uint32_t n_max, above, below; /* problems above their bound, and others */
} kinds[] = {
    {"serial", 0, 10, 60, 30},
    {"aligned", ALIGNED, 9, 60, 30},
    {"fixed", FIXED | ALIGNED, 8, 60, 30},
    {"pairs", PAIRS, 8, 60, 30},
    {"pairs, aligned, fixed", PAIRS | ALIGNED | FIXED, 8, 40, 20},
    {"parallel", PARALLEL, 8, 60, 30},
    {"parallel, pairs, aligned", PARALLEL | PAIRS | ALIGNED, 8, 40, 20},
};

/* A false refutation, a row that cuts off an optimum, or overlapping buffers each give another
 * height. */
TEST(is_brute_force)
{
    mpl_rng rng = mpl_rng_of(11);

    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
        static shape kept[KEPT];
        uint32_t above = 0, below = 0, tried = 0;

        for (; above < kinds[k].above || below < kinds[k].below; tried++) {
            shape from = next_shape(&rng, kept, above, kinds[k].what, kinds[k].n_max);
            owned_problem *p = problem_of(ctx, &from, kinds[k].what);
            uint64_t bound, best = optimum(ctx, p, &bound);
            bool higher = best > bound;

            assert_true(tried < 100000);
            if (best > 0 && (higher ? above < kinds[k].above : below < kinds[k].below)) {
                expect_optimum(ctx, p, best);
                if (higher)
                    kept[above++] = from;
                else
                    below++;
            }
        }
        print_message("%s: %u above the bound, %u not, of %u\n", kinds[k].name, above, below,
                      tried);
    }
}

/* ---- against the exact search ---- */

enum { EXACT_TICKS = 20000000, ILP_TICKS = 20000000 }; /* per question: about half a second */

static struct {
    uint32_t total, above, unfinished, exact_unfinished; /* optima */
    uint32_t refuted, refuted_unfinished;                /* refutations */
    shape last;                                          /* compared */
} tally;

static void tell(uint32_t n, uint32_t of, const char *what)
{
    if (long_form && n % 100 == 0) {
        print_message("%u of %u %s\n", n, of, what);
        fflush(stdout);
    }
}

/* ilp with a limited budget; NULL: it ended without a verdict. */
static mpl_plan *limited(mpl_ctx *ctx, const mpl_problem *p, bool cold)
{
    static const char *const key[] = {"nodes", "start"}, *const value[] = {"4000", "cold"};
    mpl_plan *plan = NULL;
    mpl_status st;
    mpl_run run = mpl_run_default(ctx);

    run.n_params = 1 + cold;
    run.param_key = key;
    run.param_value = value;
    run.budget_ticks = ILP_TICKS;
    st = mpl_planner_run(mpl_planner_find("ilp"), &run, p, &plan);
    if (st != MPL_ELIMIT)
        assert_ok(ctx, st);
    return plan;
}

/* Whether ilp finishes; its answer must agree with the optimum in any case. */
static bool confirms(mpl_ctx *ctx, const mpl_problem *p, uint64_t best, bool cold)
{
    owned_plan *plan = limited(ctx, p, cold);
    bool finished = plan->claim == MPL_OPTIMAL;

    assert_true(plan->bound_bytes <= best && best <= plan->peak_bytes);
    assert_int_equal(finished, plan->bound_bytes == plan->peak_bytes);
    return finished;
}

/* The optimum proved by exact; 0: it did not finish. */
static uint64_t exact_optimum(mpl_ctx *ctx, const mpl_problem *p)
{
    owned_plan *plan;
    uint64_t best;

    assert_ok(ctx, plan_with(ctx, "exact", NULL, NULL, EXACT_TICKS, p, &plan));
    best = plan->claim == MPL_OPTIMAL ? plan->peak_bytes : 0;
    return best;
}

/* Problems of 10 to 20 buffers, a third above their bound: two provers with independent searches
 * must agree. A problem that either does not finish is replaced by another. */
TEST(agrees_with_exact)
{
    static shape kept[KEPT];
    uint32_t n_kept = 0;
    mpl_rng rng = mpl_rng_of(12);

    for (uint32_t tried = 0; tally.total < n_equal; tried++) {
        unsigned what = tried % 2 == 0 ? 0 : ALIGNED;
        shape from = next_shape(&rng, kept, n_kept, what, MOST);
        uint64_t bound, best;
        owned_problem *p;

        while (from.n < 10 + tried % 11)
            mutate(&from, &rng, what, MOST);
        tally.last = from;
        p = problem_of(ctx, &from, what);
        assert_ok(ctx, mpl_lower_bound(ctx, p, 0, &bound, NULL));
        best = exact_optimum(ctx, p);
        tally.exact_unfinished += best == 0;
        /* there are plenty of others */
        if (best > 0 && (best > bound || 3 * tally.above >= tally.total)) {
            if (!confirms(ctx, p, best, tally.total % 4 == 0)) {
                tally.unfinished++;
            } else {
                tally.above += best > bound;
                tell(++tally.total, n_equal, "optima");
                if (best > bound) /* children of a problem that is too hard are too hard as well */
                    kept[n_kept < KEPT ? n_kept++ : random_below(&rng, KEPT)] = from;
            }
        }
    }
    print_message(
        "%u problems, %u above the bound; %u more were not finished by ilp, %u by exact\n",
        tally.total, tally.above, tally.unfinished, tally.exact_unfinished);
    assert_true(3 * tally.above + 3 > tally.total && 3 * tally.unfinished <= tally.total);
}

/* Whether exact refutes the capacity with a certificate that the checker accepts. */
static bool refutes(mpl_ctx *ctx, const mpl_problem *p)
{
    mpl_certified proved = {0};
    mpl_plan *plan;
    bool refuted;

    if (plan_with(ctx, "exact", NULL, NULL, EXACT_TICKS, p, &plan) == MPL_ELIMIT)
        return false;
    refuted = plan->claim == MPL_INFEASIBLE;
    if (refuted) {
        assert_ok(ctx, mpl_certify(ctx, p, plan, &proved));
        assert_int_equal(proved.evidence, MPL_EVIDENCE_REFUTATION);
    }
    mpl_plan_free(ctx, plan);
    return refuted;
}

/* Whether two fixed buffers overlap: then no capacity is enough. */
static bool hopeless(const shape *p)
{
    bool collide = false;

    for (uint32_t i = 0; i < p->n; i++)
        for (uint32_t j = 0; j < i; j++)
            collide |= p->fixed[i] >= 0 && p->fixed[j] >= 0 && p->birth[i] < p->death[j] &&
                       p->birth[j] < p->death[i] &&
                       (uint32_t)p->fixed[i] < (uint32_t)p->fixed[j] + p->bytes[j] &&
                       (uint32_t)p->fixed[j] < (uint32_t)p->fixed[i] + p->bytes[i];
    return collide;
}

/* If exact refutes a capacity that the live bytes would fit, GLPK must refute it as well. */
TEST(refutations_are_confirmed)
{
    static shape kept[KEPT];
    uint32_t n_kept = 0;
    mpl_rng rng = mpl_rng_of(13);

    for (uint32_t tried = 0; tally.refuted < n_refuted; tried++) {
        unsigned what = tally.refuted % 4 == 0   ? ALIGNED
                        : tally.refuted % 4 == 1 ? FIXED | ALIGNED
                                                 : 0;
        shape from = next_shape(&rng, kept, n_kept, what, 16);
        mpl_problem *p = problem_of(ctx, &from, what);
        mpl_plan *plan;

        if (what & FIXED && hopeless(&from)) {
            mpl_problem_free(ctx, p);
            continue;
        }
        tally.last = from;
        assert_true(tried < 1000 * n_refuted);
        assert_ok(ctx, mpl_lower_bound(ctx, p, 0, &p->pool_capacity[0], NULL));
        for (mpl_buffer b = 0; p->fixed != NULL && b < p->n; b++)
            if (p->fixed[b] != MPL_UNFIXED)
                p->pool_capacity[0] = mpl_max_u64(p->pool_capacity[0], p->fixed[b] + p->bytes[b]);
        for (bool more = true; more && refutes(ctx, p); p->pool_capacity[0]++) {
            plan = limited(ctx, p, tried % 2 == 0);
            if (plan == NULL)
                tally.refuted_unfinished++;
            else
                tell(++tally.refuted, n_refuted, "refutations");
            if (plan != NULL)
                assert_int_equal(plan->claim, MPL_INFEASIBLE);
            mpl_plan_free(ctx, plan);
            kept[n_kept < KEPT ? n_kept++ : random_below(&rng, KEPT)] = from;
            more = tally.refuted < n_refuted && p->pool_capacity[0] < UINT32_MAX;
        }
        mpl_problem_free(ctx, p);
    }
    print_message("%u refutations confirmed, %u not finished\n", tally.refuted,
                  tally.refuted_unfinished);
    assert_true(10 * tally.refuted_unfinished <= tally.refuted);
}

/* ---- limits, claims, memory, the file ---- */

/* An exhausted budget gives feasible, or a limit if a capacity was to be decided: never optimal or
 * infeasible. Deterministic. */
TEST(budgets_prove_nothing)
{
    uint64_t best, bound;
    owned_problem *p = problem_of(ctx, &roots[1], 0);

    best = optimum(ctx, p, &bound);
    assert_true(best > bound);
    for (uint64_t ticks = 0; ticks < 2000; ticks += 1 + ticks / 2) {
        mpl_plan *plan, *again;
        mpl_status st;

        p->pool_capacity[0] = MPL_NO_CAPACITY;
        assert_ok(ctx, plan_with(ctx, "ilp", NULL, NULL, ticks, p, &plan));
        assert_ok(ctx, plan_with(ctx, "ilp", NULL, NULL, ticks, p, &again));
        assert_true(plan->bound_bytes <= best && plan->peak_bytes >= best);
        assert_int_equal(plan->claim == MPL_OPTIMAL, plan->bound_bytes == plan->peak_bytes);
        assert_memory_equal(plan->offset, again->offset, p->n * sizeof *plan->offset);
        mpl_plan_free(ctx, plan);
        mpl_plan_free(ctx, again);
        p->pool_capacity[0] = best - 1;
        st = plan_with(ctx, "ilp", NULL, NULL, ticks, p, &plan);
        if (st != MPL_OK)
            assert_status(ctx, st, MPL_ELIMIT);
        else
            assert_int_equal(plan->claim, MPL_INFEASIBLE);
        mpl_plan_free(ctx, plan);
    }
}

/* Each pool has its own capacity, and the second also decides. */
TEST(pools_are_apart)
{
    owned_problem *p = NULL;
    owned_plan *plan;
    uint64_t peak;

    assert_ok(ctx, mpl_problem_new(ctx, "pools", 4, &p));
    assert_ok(ctx, mpl_realloc_bytes(ctx, (void **)&p->pool_name, 1, 2, sizeof *p->pool_name));
    assert_ok(ctx,
              mpl_realloc_bytes(ctx, (void **)&p->pool_capacity, 1, 2, sizeof *p->pool_capacity));
    p->pool_name[1] = mpl_strdup(ctx, "other");
    p->n_pools = 2;
    p->n_steps = 2;
    p->pool_capacity[1] = 9;
    for (mpl_buffer b = 0; b < 4; b++)
        p->bytes[b] = 3 + b, p->pool[b] = b % 2, p->death[b] = 2;
    assert_int_equal(claimed(ctx, p, &peak), MPL_INFEASIBLE); /* 4 + 6 > 9 */
    p->pool_capacity[1] = 10;
    assert_ok(ctx, plan_with(ctx, "ilp", "start", "cold", UINT64_MAX, p, &plan));
    assert_int_equal(plan->claim, MPL_OPTIMAL);
    assert_int_equal(plan->pool_bytes[0], 8);
    assert_int_equal(plan->pool_bytes[1], 10);
}

/* A knapsack-like program of n columns and rows. */
static mpl_lp *some_program(mpl_ctx *ctx, uint32_t n)
{
    mpl_lp *lp = NULL;
    uint32_t column[2], id;
    double value[2] = {3, 5};

    assert_ok(ctx, mpl_lp_new(ctx, "some", &lp));
    for (uint32_t i = 0; i < n; i++)
        assert_ok(ctx, mpl_lp_add_column(lp, true, 0, 9, 2 + i % 3, 'x', i, MPL_NONE, &id));
    for (uint32_t i = 0; i < n; i++) {
        column[0] = i, column[1] = (i + 1) % n;
        assert_ok(ctx, mpl_lp_add_row(lp, 7, 2, column, value));
    }
    return lp;
}

/* GLPK exits the process when memory runs out, unless prevented. */
TEST(glpk_may_run_out_of_memory)
{
    mpl_lp_answer answer;
    double *x = calloc(20000, sizeof *x);
    mpl_lp_limits limits = ROW(.max_nodes = 10, .max_pivots = 1000000, .max_mib = 1,
                               .deadline_ns = INT64_MAX, .enough = -1);
    mpl_lp *lp = some_program(ctx, 20000);

    assert_status(ctx, mpl_lp_solve(lp, &limits, &answer, x), MPL_EMEM);
    assert_status(ctx, mpl_lp_write(lp, 1, "build/ilp-test.lp"), MPL_EMEM);
    assert_int_not_equal(access("build/ilp-test.lp", F_OK), 0);
    mpl_lp_free(ctx, lp);
    lp = some_program(ctx, 3);
    limits.max_mib = 64;
    assert_ok(ctx, mpl_lp_solve(lp, &limits, &answer, x));
    assert_int_equal(answer.state, MPL_LP_OPTIMAL);
    assert_true(answer.objective > 8.9 && answer.objective < 9.1); /* one of each: 2 + 3 + 4 */
    mpl_lp_free(ctx, lp);
    free(x);
}

TEST(our_memory_runs_out)
{
    owned_problem *p = problem_of(ctx, &roots[1], PAIRS);

    EACH_ALLOCATION_FAILS (ctx, st) {
        owned_plan *plan = NULL;

        st = plan_with(ctx, "ilp", NULL, NULL, UINT64_MAX, p, &plan);
    }
}

static void read_text(const char *path, char *text, size_t room)
{
    FILE *f = fopen(path, "r");

    assert_non_null(f);
    text[fread(text, 1, room - 1, f)] = '\0';
    fclose(f);
}

/* Two conflicting buffers, one aligned to 16 bytes, beside an unconstrained one. */
TEST(a_file_holds_the_program)
{
    static const char *const lines[] =
        ROW("plain in units of 8 bytes", " obj: + 8 H0\n", " 4 <= H0 <= 5\n", /* bound and plan */
            "x0 + H0 >= 3\n",   /* ends of the first and .. */
            "2 x1 + H0 >= 1\n", /* .. of the second, in steps of 16 bytes */
            " 0 <= x1 <= 2\n", " y0_1\n");
    const char *path = "build/ilp-test.lp";
    char text[4000];
    owned_problem *p = NULL;
    owned_plan *plan = NULL;

    assert_ok(ctx, mpl_problem_new(ctx, "plain", 3, &p));
    p->n_steps = 3;
    p->bytes[0] = 24, p->bytes[1] = 8, p->bytes[2] = 8;
    p->align[0] = 8, p->align[1] = 16, p->align[2] = 8;
    p->death[0] = p->death[1] = 2;
    p->birth[2] = 2, p->death[2] = 3;
    assert_ok(ctx, mpl_plan_new(ctx, p, &plan));
    plan->offset[1] = 32;
    assert_ok(ctx, mpl_ilp_write(ctx, p, plan, path));
    read_text(path, text, sizeof text);
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++)
        if (strstr(text, lines[i]) == NULL)
            fail_msg("no '%s' in:\n%s", lines[i], text);
    remove(path);
    assert_status(ctx, mpl_ilp_write(ctx, p, plan, "no/such/folder.lp"), MPL_EINPUT);
}

/* A large network by the program alone: decomposition and bounds make it small enough. */
TEST(a_network_is_solved)
{
    static const char *const starts[] = {"warm", "cold"};
    mpl_read_options read = {0};
    mpl_source source = {0};
    mpl_problem_options options = mpl_problem_options_default();
    mpl_problem *p = NULL;
    mpl_value_map *map = NULL;
    owned_memory mpl_op *order = NULL;

    assert_ok(ctx, mpl_source_open(ctx, "densenet121", &read, &source));
    order = order_by(ctx, source.graph, "given");
    for (int i = 0; i < 2; i++) { /* families are not decomposed: too large without a start */
        options.concat = i == 0 ? MPL_CONCAT_AUTO : MPL_CONCAT_COPY;
        assert_ok(ctx, mpl_problem_from_graph(ctx, source.graph, order, &options, &p, &map));
        assert_int_equal(solved(ctx, "ilp", p, "start", starts[i]), 7225344);
        mpl_problem_free(ctx, p);
        mpl_value_map_free(ctx, map);
    }
    mpl_source_fini(ctx, &source);
}

static int compare_with_exact(char **argv)
{
    const shape *p = &tally.last;
    int failed;

    long_form = true;
    n_equal = (uint32_t)strtoul(argv[1], NULL, 10);
    n_refuted = argv[2] != NULL ? (uint32_t)strtoul(argv[2], NULL, 10) : 0;
    failed = RUN_TESTS(NULL, NULL, agrees_with_exact, refutations_are_confirmed);
    for (uint32_t i = 0; failed != 0 && i < p->n; i++)
        print_message("buffer %u: steps [%u, %u), %u bytes, aligned to %u, fixed at %d\n", i,
                      p->birth[i], p->death[i], p->bytes[i], p->align[i], p->fixed[i]);
    print_message("exact = ilp on %u of %u problems, %u above the bound (%u more not finished by "
                  "ilp, %u by exact); %u of %u refutations confirmed (%u more not finished); %s\n",
                  tally.total, n_equal, tally.above, tally.unfinished, tally.exact_unfinished,
                  tally.refuted, n_refuted, tally.refuted_unfinished,
                  failed == 0 ? "no disagreement" : "then a DISAGREEMENT");
    return failed != 0;
}

int main(int argc, char **argv)
{
    if (mpl_planner_find("ilp")->plan == NULL) {
        print_message("skip: GLPK is not in this build\n");
        return 0;
    }
    if (argc > 1)
        return compare_with_exact(argv);
    return RUN_TESTS(NULL, NULL, is_brute_force, agrees_with_exact, refutations_are_confirmed,
                     budgets_prove_nothing, pools_are_apart, glpk_may_run_out_of_memory,
                     our_memory_runs_out, a_file_holds_the_program, a_network_is_solved);
}
