/* The exact planner where a partial order decides, and where there are in-place pairs: against a brute force that shares
 * nothing with it, on thousands of small problems, above all those whose optimum lies above the bound. */
#include "tests/test.h"

#include "graphs/analysis/before.h"
#include "graphs/base/rng.h"
#include "planners/exact_general.h"
#include "planners/planner.h"

enum { MOST = 10 };

/* A problem as plain matrices. Serial ones have lifetimes beside. */
typedef struct small {
    uint32_t n;
    bool serial;
    uint32_t birth[MOST], death[MOST];
    bool arc[MOST][MOST];  /* a < b only; its closure is the order */
    bool pair[MOST][MOST]; /* [in][out] offered */
    uint32_t size[MOST], align[MOST];
    int32_t fixed[MOST]; /* -1: free */
} small;

/* ---- brute force --------------------------------------------------------------------------------------------- */

typedef struct brute {
    const small *p;
    bool conflict[MOST][MOST]; /* less those of the pairs that are taken */
    uint32_t body[MOST];       /* of each buffer: the lowest buffer at its offset */
    uint32_t cap;
    uint32_t offset[MOST];
    bool placed[MOST];
} brute;

static void find_conflicts(const small *p, bool conflict[MOST][MOST])
{
    bool reach[MOST][MOST];

    memcpy(reach, p->arc, sizeof reach);
    for (uint32_t k = 0; k < p->n; k++)
        for (uint32_t i = 0; i < p->n; i++)
            for (uint32_t j = 0; j < p->n; j++)
                reach[i][j] = reach[i][j] || (reach[i][k] && reach[k][j]);
    for (uint32_t i = 0; i < p->n; i++)
        for (uint32_t j = 0; j < p->n; j++)
            conflict[i][j] = i != j && (p->serial ? p->birth[i] < p->death[j] && p->birth[j] < p->death[i]
                                                  : !reach[i][j] && !reach[j][i]);
}

/* Bodies in the order of their offsets, each at its lowest place. */
static bool brute_place(brute *f, uint32_t last)
{
    const small *p = f->p;
    bool all = true;

    for (uint32_t b = 0; b < p->n; b++) {
        uint32_t at = 0, align = 1, end = 0;
        int32_t fixed = -1;

        if (f->body[b] != b || f->placed[b])
            continue;
        all = false;
        for (uint32_t i = 0; i < p->n; i++) {
            if (f->body[i] != b)
                continue;
            align = p->align[i] > align ? p->align[i] : align;
            end = p->size[i] > end ? p->size[i] : end;
            fixed = p->fixed[i] >= 0 ? p->fixed[i] : fixed;
            for (uint32_t j = 0; j < p->n; j++)
                if (f->conflict[i][j] && f->placed[f->body[j]] && f->offset[f->body[j]] + p->size[j] > at)
                    at = f->offset[f->body[j]] + p->size[j];
        }
        at = (at + align - 1) / align * align;
        if (fixed >= 0 && at > (uint32_t)fixed)
            return false;
        at = fixed >= 0 ? (uint32_t)fixed : at;
        if (at < last || at + end > f->cap)
            continue;
        f->placed[b] = true;
        f->offset[b] = at;
        if (brute_place(f, at))
            return true;
        f->placed[b] = false;
    }
    return all;
}

/* Takes the pairs (k, ..) up or not, in every way. */
static bool brute_pairs(const small *p, uint32_t k, brute *f)
{
    brute g;

    for (; k < p->n * p->n; k++)
        if (p->pair[k / p->n][k % p->n] && f->conflict[k / p->n][k % p->n])
            break;
    if (k < p->n * p->n) {
        uint32_t in = f->body[k / p->n], out = f->body[k % p->n];

        if (brute_pairs(p, k + 1, f))
            return true;
        g = *f;
        g.conflict[k / p->n][k % p->n] = g.conflict[k % p->n][k / p->n] = false;
        for (uint32_t i = 0; i < p->n; i++)
            if (g.body[i] == in || g.body[i] == out)
                g.body[i] = in < out ? in : out;
        return brute_pairs(p, k + 1, &g);
    }
    for (uint32_t i = 0; i < p->n; i++)
        for (uint32_t j = 0; j < p->n; j++)
            if (f->body[i] == f->body[j] &&
                (f->conflict[i][j] || (p->fixed[i] >= 0 && p->fixed[j] >= 0 && p->fixed[i] != p->fixed[j]) ||
                 (p->fixed[i] >= 0 && (uint32_t)p->fixed[i] % p->align[j] != 0)))
                return false;
    g = *f;
    return brute_place(&g, 0);
}

static bool brute_fits(const small *p, uint32_t cap)
{
    brute f = {.p = p, .cap = cap};

    find_conflicts(p, f.conflict);
    for (uint32_t i = 0; i < p->n; i++)
        f.body[i] = i;
    return brute_pairs(p, 0, &f);
}

/* Heaviest set of pairwise conflicting buffers. */
static uint32_t clique(const small *p)
{
    bool conflict[MOST][MOST];
    uint32_t most = 0;

    find_conflicts(p, conflict);
    for (uint32_t set = 0; set < 1u << p->n; set++) {
        uint32_t sum = 0;

        for (uint32_t i = 0; i < p->n && sum != UINT32_MAX; i++)
            for (uint32_t j = 0; (set >> i & 1) != 0 && j <= i; j++)
                if (j == i)
                    sum += p->size[i];
                else if ((set >> j & 1) != 0 && !conflict[i][j]) {
                    sum = UINT32_MAX;
                    break;
                }
        most = sum != UINT32_MAX && sum > most ? sum : most;
    }
    return most;
}

static uint32_t brute_optimum(const small *p, uint32_t from)
{
    while (!brute_fits(p, from))
        from++;
    return from;
}

/* ---- problems ------------------------------------------------------------------------------------------------ */

static uint32_t below(mpl_rng *rng, uint32_t n)
{
    return (uint32_t)mpl_rng_below(rng, n);
}

static small random_small(mpl_rng *rng, bool serial, bool aligned)
{
    small p = {.n = 4 + below(rng, 5), .serial = serial};
    uint32_t steps = 3 + below(rng, 5), density = 2 + below(rng, 4), largest = 2 + below(rng, 8);

    for (uint32_t i = 0; i < p.n; i++) {
        p.birth[i] = below(rng, steps);
        p.death[i] = p.birth[i] + 1 + below(rng, steps - p.birth[i] < 4 ? steps - p.birth[i] : 4);
        p.size[i] = 1 + below(rng, largest);
        p.align[i] = aligned ? 1u << below(rng, 3) : 1;
        p.fixed[i] = -1;
        for (uint32_t j = 0; j < i; j++)
            p.arc[j][i] = below(rng, density) == 0;
    }
    return p;
}

/* Pairs that lifetimes (or the order) and sizes allow, some of them. */
static void offer_pairs(mpl_rng *rng, small *p)
{
    bool conflict[MOST][MOST];

    find_conflicts(p, conflict);
    memset(p->pair, 0, sizeof p->pair);
    for (uint32_t in = 0; in < p->n; in++)
        for (uint32_t out = 0; out < p->n; out++)
            p->pair[in][out] =
                conflict[in][out] && p->size[out] <= p->size[in] && !p->pair[out][in] && below(rng, 2) == 0 &&
                (!p->serial || (p->death[in] == p->birth[out] + 1 && p->birth[in] < p->birth[out]));
}

static small mutated(mpl_rng *rng, const small *from)
{
    small p = *from;
    uint32_t i = below(rng, p.n), j = below(rng, p.n);

    switch (below(rng, 5)) {
    case 0:
        p.size[i]++;
        break;
    case 1:
        p.size[i] -= p.size[i] > 1;
        break;
    case 2:
    case 3:
        if (i != j)
            p.arc[i < j ? i : j][i < j ? j : i] ^= true;
        break;
    default:
        if (p.n < MOST && below(rng, 2) == 0) {
            for (uint32_t k = 0; k < p.n; k++)
                p.arc[k][p.n] = p.arc[k][i];
            p.size[p.n] = 1 + below(rng, 3), p.align[p.n] = 1, p.fixed[p.n++] = -1;
        } else if (p.n > 4) { /* the last one goes: ids stay topological */
            p.n--;
        }
    }
    return p;
}

static void fill_order(mpl_ctx *ctx, const small *from, mpl_problem *p)
{
    uint32_t arc_from[MOST * MOST], arc_to[MOST * MOST];
    size_t n_arcs = 0;
    mpl_before *before = NULL;

    for (uint32_t i = 0; i < from->n; i++)
        for (uint32_t j = i + 1; j < from->n; j++)
            if (from->arc[i][j])
                arc_from[n_arcs] = i, arc_to[n_arcs++] = j;
    assert_ok(ctx, mpl_before_from_arcs(ctx, from->n, n_arcs, arc_from, arc_to, &before));
    p->before = before;
}

static mpl_problem *problem_of(mpl_ctx *ctx, const small *from)
{
    mpl_problem *p = NULL;

    assert_ok(ctx, mpl_problem_new(ctx, "small", from->n, &p));
    assert_ok(ctx, mpl_new(ctx, p->fixed, from->n));
    assert_ok(ctx, mpl_new(ctx, p->in_place_in, MOST * MOST));
    assert_ok(ctx, mpl_new(ctx, p->in_place_out, MOST * MOST));
    assert_ok(ctx, mpl_new(ctx, p->in_place_step, MOST * MOST));
    for (uint32_t i = 0; i < from->n; i++) {
        p->bytes[i] = from->size[i];
        p->align[i] = from->align[i];
        p->fixed[i] = from->fixed[i] < 0 ? MPL_UNFIXED : (uint64_t)from->fixed[i];
        if (from->serial) {
            p->birth[i] = from->birth[i];
            p->death[i] = from->death[i];
            p->n_steps = p->death[i] > p->n_steps ? p->death[i] : p->n_steps;
        }
    }
    if (!from->serial)
        fill_order(ctx, from, p);
    for (uint32_t step = 0; step < (from->serial ? p->n_steps : 1); step++)
        for (uint32_t out = 0; out < from->n; out++)
            for (uint32_t in = 0; in < from->n; in++)
                if (from->pair[in][out] && (!from->serial || from->birth[out] == step)) {
                    p->in_place_in[p->n_in_place] = in;
                    p->in_place_out[p->n_in_place] = out;
                    p->in_place_step[p->n_in_place++] = step;
                }
    assert_ok(ctx, mpl_problem_check(ctx, p));
    return p;
}

/* ---- comparing ------------------------------------------------------------------------------------------------- */

static mpl_plan *planned(mpl_ctx *ctx, const mpl_problem *p, uint64_t ticks)
{
    mpl_plan *plan = NULL;
    mpl_run run;

    mpl_run_init(&run, ctx);
    run.budget_ticks = ticks;
    assert_ok(ctx, mpl_planner_run(mpl_planner_find("exact"), &run, p, &plan));
    return plan;
}

/* The optimum is claimed and found; it fits, one byte less is refuted; a small budget proves nothing false. */
static void assert_planner(mpl_ctx *ctx, const small *from, uint32_t optimum)
{
    mpl_problem *p = problem_of(ctx, from);
    mpl_plan *plan = planned(ctx, p, UINT64_MAX);

    assert_int_equal(plan->peak_bytes, optimum);
    assert_int_equal(plan->claim, MPL_OPTIMAL);
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
    mpl_plan_free(ctx, plan);
    mpl_problem_free(ctx, p);
}

/* The search alone, on the whole relation, however it chooses its cells. */
static void assert_searches(mpl_ctx *ctx, const small *from, uint32_t optimum)
{
    mpl_problem *p = problem_of(ctx, from);
    mpl_bodies *b = NULL;
    mpl_cliques *q = NULL;
    mpl_graph_search *s = NULL;
    uint32_t rank[MOST];
    mpl_exact_effort effort = {.tick_limit = UINT64_MAX, .deadline_ns = INT64_MAX};

    for (uint32_t i = 0; i < from->n; i++)
        rank[i] = (i * 3 + 1) % from->n;
    assert_ok(ctx, mpl_bodies_of_pool(ctx, p, 0, &b));
    assert_ok(ctx, mpl_cliques_new(ctx, b, &q));
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
    mpl_problem_free(ctx, p);
}

/* ---- tests ------------------------------------------------------------------------------------------------------- */

/* Two lists of intervals whose optimum is above the bound, as orders: their mutants are of any order. */
static small root(int which)
{
    static const uint32_t birth[2][8] = {{3, 2, 4, 5, 1, 3, 2, 1}, {2, 5, 0, 4, 0, 1, 3, 1}};
    static const uint32_t death[2][8] = {{5, 4, 7, 7, 2, 4, 5, 3}, {5, 6, 2, 6, 1, 4, 6, 3}};
    static const uint32_t size[2][8] = {{1, 3, 4, 4, 4, 1, 2, 3}, {3, 5, 5, 1, 5, 4, 3, 1}};
    small p = {.n = 8};
    uint32_t from[8], n = 0;

    for (uint32_t step = 0; step < 8; step++)
        for (uint32_t i = 0; i < 8; i++)
            if (birth[which][i] == step)
                from[n++] = i;
    for (uint32_t i = 0; i < 8; i++) {
        p.size[i] = size[which][from[i]], p.align[i] = 1, p.fixed[i] = -1;
        for (uint32_t j = i + 1; j < 8; j++)
            p.arc[i][j] = death[which][from[i]] <= birth[which][from[j]];
    }
    return p;
}

static bool is_interval_order(const small *p)
{
    bool conflict[MOST][MOST];

    find_conflicts(p, conflict); /* no two chains a < b, c < d without a relation between them */
    for (uint32_t k = 0; k < p->n * p->n * p->n * p->n; k++) {
        uint32_t a = k % p->n, b = k / p->n % p->n, c = k / p->n / p->n % p->n, d = k / p->n / p->n / p->n;

        if (a < b && c < d && !conflict[a][b] && !conflict[c][d] && conflict[a][c] && conflict[a][d] &&
            conflict[b][c] && conflict[b][d])
            return false;
    }
    return true;
}

/* A false refutation and a wrong placement both show here: optima above the bound need real proofs. */
static void optima_above_the_bound(void **state)
{
    enum { MANY = 1200 };
    static small kept[MANY];
    uint32_t n_kept = 0, n_general = 0;
    mpl_ctx ctx;
    mpl_rng rng;

    (void)state;
    mpl_ctx_init(&ctx);
    mpl_rng_init(&rng, 21);
    for (uint32_t round = 0; n_kept < MANY; round++) {
        small p = round < 2 ? root((int)round) : kept[below(&rng, n_kept)];
        uint32_t optimum;

        assert_true(round < 1000 * MANY);
        for (uint32_t k = round < 2 ? 0 : 1 + below(&rng, 3); k > 0; k--)
            p = mutated(&rng, &p);
        if (brute_fits(&p, clique(&p)) || (n_kept > 20 && 3 * n_general < n_kept && is_interval_order(&p)))
            continue;
        kept[n_kept++] = p;
        n_general += !is_interval_order(&p);
        optimum = brute_optimum(&p, clique(&p));
        assert_searches(&ctx, &p, optimum);
        assert_planner(&ctx, &p, optimum);
    }
    print_message("%u relations with an optimum above the bound, %u of no interval order\n", n_kept,
                  n_general);
    assert_int_equal(ctx.n_live, 0);
}

/* Alignments and fixed places, with and without. */
static void random_orders(void **state)
{
    mpl_ctx ctx;
    mpl_rng rng;

    (void)state;
    mpl_ctx_init(&ctx);
    mpl_rng_init(&rng, 22);
    for (uint32_t round = 0; round < 1200; round++) {
        small p = random_small(&rng, false, round % 2 == 1);
        uint32_t i = below(&rng, p.n), optimum = brute_optimum(&p, 1);

        assert_planner(&ctx, &p, optimum);
        assert_searches(&ctx, &p, optimum);
        p.fixed[i] = (int32_t)(p.align[i] * below(&rng, 8));
        optimum = brute_optimum(&p, 1);
        assert_planner(&ctx, &p, optimum);
        assert_searches(&ctx, &p, optimum);
    }
    assert_int_equal(ctx.n_live, 0);
}

/* Pairs under either safety, taken up or not as is best. */
static void pairs(void **state)
{
    uint32_t n_above = 0, n_gain = 0, n = 0;
    mpl_ctx ctx;
    mpl_rng rng;

    (void)state;
    mpl_ctx_init(&ctx);
    mpl_rng_init(&rng, 23);
    for (uint32_t round = 0; round < 3000; round++) {
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
        made = problem_of(&ctx, &p);
        assert_ok(&ctx, mpl_lower_bound(&ctx, made, 0, &bound, NULL));
        mpl_problem_free(&ctx, made);
        assert_true(bound <= optimum);
        n_above += bound < optimum;
        n_gain += optimum < without;
        n++;
        assert_planner(&ctx, &p, optimum);
    }
    print_message("%u problems with pairs: %u optima above the bound, %u below those without\n", n, n_above,
                  n_gain);
    assert_true(n > 1000 && n_gain > 300);
    assert_int_equal(ctx.n_live, 0);
}

/* With pairs and without, above the bound: every part of the search is reached. */
static void memory_runs_out(void **state)
{
    mpl_ctx ctx;
    mpl_rng rng;

    (void)state;
    mpl_ctx_init(&ctx);
    mpl_rng_init(&rng, 24);
    for (int with_pairs = 0; with_pairs < 2; with_pairs++) {
        small from = root(1);
        mpl_problem *p;
        mpl_status st = MPL_EMEM;

        if (with_pairs)
            offer_pairs(&rng, &from);
        p = problem_of(&ctx, &from);
        for (int64_t k = 0; st == MPL_EMEM; k++) {
            int64_t live = ctx.n_live;
            mpl_plan *plan = NULL;
            mpl_run run;

            mpl_run_init(&run, &ctx);
            ctx.fail_after = ctx.n_allocs + k;
            st = mpl_planner_run(mpl_planner_find("exact"), &run, p, &plan);
            ctx.fail_after = -1;
            if (st != MPL_EMEM)
                assert_ok(&ctx, st);
            mpl_plan_free(&ctx, plan);
            assert_int_equal(ctx.n_live, live);
            assert_true(k < 20000);
        }
        mpl_problem_free(&ctx, p);
    }
    assert_int_equal(ctx.n_live, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(optima_above_the_bound),
        cmocka_unit_test(random_orders),
        cmocka_unit_test(pairs),
        cmocka_unit_test(memory_runs_out),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
