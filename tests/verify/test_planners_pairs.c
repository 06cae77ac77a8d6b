/* In-place pairs under any partial order: mpl_problem_check refuses exactly those that brute force
 * shows to be no order once used; the others fold to an order, and every planner's plan is valid.
 * test_planners_pairs [PROBLEMS] */
#include "graphs/problem/bounds/bounds.h"
#include "tests/support/random_problem.h"

#include "graphs/problem/fold_pairs.h"
#include "planners/verify/verify.h"

enum { MOST = 6, MOST_PAIRS = 7 };

static uint32_t n_problems;

/* ---- brute force over the pairs used ---- */

typedef struct taken {
    uint32_t n;
    bool less[MOST][MOST];
    uint32_t next[MOST], last_of[MOST]; /* its overwriter; the chain's last, for first members */
    uint32_t chain[MOST];               /* first member of its chain */
} taken;

/* Chains of the pairs in `set`; false if a buffer overwrites two or is overwritten twice (then not
 * all can be used). */
static bool link_pairs(const mpl_problem *p, uint32_t set, taken *t)
{
    uint32_t n_over[MOST] = {0}, n_under[MOST] = {0};

    memset(t->next, 0xff, sizeof t->next);
    for (uint32_t i = 0; i < p->n_in_place; i++)
        if ((set >> i & 1) != 0) {
            if (n_over[p->in_place_out[i]]++ > 0 || n_under[p->in_place_in[i]]++ > 0)
                return false;
            t->next[p->in_place_in[i]] = p->in_place_out[i];
        }
    memset(t->chain, 0xff, sizeof t->chain);
    for (uint32_t b = 0; b < t->n; b++)
        for (uint32_t m = b; n_over[b] == 0 && m != MPL_NONE; m = t->next[m])
            t->chain[m] = b, t->last_of[b] = m;
    return true;
}

/* Whether the chains' ends are ordered as their members, and the members of each chain, too, except
 * neighbours. */
static bool is_an_order(const taken *t)
{
    bool less[MOST][MOST] = {{false}};

    for (uint32_t a = 0; a < t->n; a++)
        for (uint32_t b = 0; b < t->n; b++) {
            uint32_t x = t->chain[a], y = t->chain[b];

            if (x == MPL_NONE) /* a cycle */
                return false;
            if (a != b && x == y && t->next[a] != b && t->next[b] != a && !t->less[a][b] &&
                !t->less[b][a])
                return false;
            if (t->next[a] == b && (t->less[a][b] || t->less[b][a]))
                return false;
            if (y == MPL_NONE || !t->less[t->last_of[x]][y])
                continue;
            if (x == y || !t->less[a][b])
                return false;
            less[x][y] = true;
        }
    for (uint32_t i = 0; i < MOST * MOST * MOST; i++)
        if (less[i % MOST][i / MOST % MOST] && less[i / MOST % MOST][i / MOST / MOST] &&
            !less[i % MOST][i / MOST / MOST])
            return false;
    return true;
}

static bool every_choice_is_an_order(const mpl_problem *p)
{
    taken t = {.n = p->n};

    for (uint32_t a = 0; a < p->n; a++)
        for (uint32_t b = 0; b < p->n; b++)
            t.less[a][b] = mpl_is_before(p->before, a, b);
    for (uint32_t set = 0; set < UINT32_C(1) << p->n_in_place; set++)
        if (link_pairs(p, set, &t) && !is_an_order(&t))
            return false;
    return true;
}

/* ---- problems ---- */

/* Arcs between random ids, so that ids do not follow the order. */
static void any_order(mpl_ctx *ctx, mpl_problem *p, mpl_rng *rng)
{
    uint32_t from[MOST * MOST], to[MOST * MOST], id[MOST], n = 0,
                                                           density = 2 + random_below(rng, 4);
    mpl_before *before = NULL;

    for (uint32_t a = 0; a < p->n; a++) {
        uint32_t k = random_below(rng, a + 1);

        id[a] = id[k];
        id[k] = a;
    }
    for (uint32_t a = 0; a < p->n; a++)
        for (uint32_t b = a + 1; b < p->n; b++)
            if (random_below(rng, density) == 0)
                from[n] = id[a], to[n++] = id[b];
    assert_ok(ctx, mpl_before_from_arcs(ctx, p->n, n, from, to, &before));
    p->before = before;
}

static int by_step(const void *a, const void *b)
{
    const uint32_t *x = a, *y = b;

    for (int i = 0; i < 3; i++)
        if (x[i] != y[i])
            return x[i] < y[i] ? -1 : 1;
    return 0;
}

/* Any pairs of buffers at any steps; one may occur twice. */
static void any_pairs(mpl_ctx *ctx, mpl_problem *p, mpl_rng *rng)
{
    uint32_t pair[MOST_PAIRS][3], n = 1 + random_below(rng, MOST_PAIRS),
                                  steps = 1 + random_below(rng, 3), k = 0;

    for (uint32_t i = 0; i < n; i++)
        for (uint32_t j = 0; j < 3; j++)
            pair[i][j] = random_below(rng, j == 0 ? steps : p->n);
    qsort(pair, n, sizeof *pair, by_step);
    assert_ok(ctx, mpl_new(ctx, p->in_place_in, n));
    assert_ok(ctx, mpl_new(ctx, p->in_place_out, n));
    assert_ok(ctx, mpl_new(ctx, p->in_place_step, n));
    for (uint32_t i = 0; i < n; i++) {
        if (pair[i][1] == pair[i][2] || p->bytes[pair[i][1]] > p->bytes[pair[i][2]] ||
            (i > 0 && by_step(pair[i], pair[i - 1]) == 0))
            continue;
        p->in_place_step[k] = pair[i][0];
        p->in_place_out[k] = pair[i][1];
        p->in_place_in[k++] = pair[i][2];
    }
    p->n_in_place = k;
}

static mpl_problem *any_problem(mpl_ctx *ctx, mpl_rng *rng)
{
    mpl_problem *p = NULL;
    bool aligned = random_below(rng, 2) == 0;

    assert_ok(ctx, mpl_problem_new(ctx, "any", 2 + random_below(rng, MOST - 1), &p));
    for (mpl_buffer b = 0; b < p->n; b++) {
        p->bytes[b] = 4 + random_below(rng, 3);
        p->align[b] = aligned ? 1u << random_below(rng, 4) : 1;
    }
    any_order(ctx, p, rng);
    any_pairs(ctx, p, rng);
    return p;
}

/* ---- the tests ---- */

static void expect_fold(mpl_ctx *ctx, const mpl_problem *p)
{
    owned_problem *folded = NULL;
    uint32_t into[MOST];

    assert_ok(ctx, mpl_problem_fold(ctx, p, &folded, into));
    assert_ok(ctx, mpl_problem_check(ctx, folded));
    for (mpl_buffer a = 0; a < p->n; a++)
        for (mpl_buffer b = 0; b < p->n; b++) {
            if (into[a] != into[b] && !mpl_conflict(folded, into[a], into[b]))
                assert_false(mpl_conflict(p, a, b));
            if (mpl_is_before(folded->before, into[a], into[b]))
                assert_false(mpl_is_before(folded->before, into[b], into[a]));
        }
}

static void expect_plans(mpl_ctx *ctx, const mpl_problem *p)
{
    uint64_t bound;

    assert_ok(ctx, mpl_lower_bound(ctx, p, 0, &bound, NULL));
    for (int i = 0; mpl_planners[i] != NULL; i++) {
        owned_plan *plan = plainly_planned(ctx, mpl_planners[i], p, 20000000);

        if (plan != NULL)
            assert_true(plan->peak_bytes >= bound && plan->peak_bytes >= plan->bound_bytes);
    }
}

TEST(only_orders_are_accepted)
{
    uint32_t n_right = 0, n_planned = 0;
    mpl_rng rng = mpl_rng_of(28);

    for (uint32_t round = 0; round < n_problems; round++) {
        owned_problem *p = any_problem(ctx, &rng);
        mpl_status st = mpl_problem_check(ctx, p);
        bool right = every_choice_is_an_order(p);

        if (st != (right ? MPL_OK : MPL_EINPUT))
            fail_msg("problem %u: %s, and brute force says %s (%s)", round, mpl_status_name(st),
                     right ? "right" : "wrong", ctx->message);
        if (right && p->n_in_place > 0) {
            expect_fold(ctx, p);
            if (++n_right % 10 == 0) {
                expect_plans(ctx, p);
                n_planned++;
            }
        }
    }
    print_message("%u problems, %u of them right, %u planned by all\n", n_problems, n_right,
                  n_planned);
    assert_true(n_right > n_problems / 20);
}

/* The pairs of a serial problem are possible under the order of its lifetimes. */
TEST(lifetimes_give_possible_pairs)
{
    uint32_t n = 0;
    mpl_rng rng = mpl_rng_of(29);

    for (uint32_t round = 0; round < draws(2000); round++) {
        owned_problem *p =
            random_problem(ctx, &rng, 2 + random_below(&rng, 14), RANDOM_PAIRS | RANDOM_GAPS);

        n += p->n_in_place;
        assert_ok(ctx, mpl_problem_as_parallel(ctx, p));
        assert_ok(ctx, mpl_problem_check(ctx, p));
    }
    assert_true(often(n > 1000));
}

/* Its pairs form a chain whose last buffer is before its first: folded, a buffer before itself. */
TEST(a_ring_is_refused_where_it_is_read)
{
    mpl_plan_file file = {0};

    assert_status(ctx, mpl_plan_read(ctx, "tests/data/impossible.plan.json", &file), MPL_EINPUT);
    assert_non_null(
        strstr(ctx->message, "what follows or overwrites buffer 0 must come after buffer 1"));
}

TEST(a_check_may_run_out_of_memory)
{
    mpl_rng rng = mpl_rng_of(30);
    mpl_problem *p = NULL;

    do {
        mpl_problem_free(ctx, p);
        p = random_problem(ctx, &rng, 8, RANDOM_PAIRS | RANDOM_PARALLEL);
    } while (p->n_in_place < 2);
    EACH_ALLOCATION_FAILS (ctx, st) {
        st = mpl_problem_check(ctx, p);
    }
    mpl_problem_free(ctx, p);
}

int main(int argc, char **argv)
{
    n_problems = argc > 1 ? (uint32_t)strtoul(argv[1], NULL, 10) : draws(10000);
    return RUN_TESTS(NULL, NULL, only_orders_are_accepted, lifetimes_give_possible_pairs,
                     a_ring_is_refused_where_it_is_read, a_check_may_run_out_of_memory);
}
