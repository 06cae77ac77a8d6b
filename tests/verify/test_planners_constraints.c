/* test_planners_constraints.c -- reserved ranges, chunks, fixed offsets, buffers apart and
 * together: optima by all offsets tried, the verifier against the definition, every planner's
 * plans. Faults: a wall that is too low, an apart pair that meets at no step, a chain in the wrong
 * order. */
#include "planners/verify/verify.h"
#include "tests/support/folder.h"
#include "tests/support/random_problem.h"

enum { STEPS = 5, HIGHEST = 18 };

static uint32_t below(mpl_rng *rng, uint32_t n)
{
    return (uint32_t)mpl_rng_below(rng, n);
}

static mpl_constraints *draw_constraints(mpl_ctx *ctx, mpl_problem *p, mpl_rng *rng)
{
    mpl_constraints *c = NULL;
    mpl_buffer a = below(rng, p->n), b = (a + 1 + below(rng, p->n - 1)) % p->n;

    assert_ok(ctx, mpl_new(ctx, c, 1));
    assert_ok(ctx, mpl_new(ctx, c->reserved, 2));
    assert_ok(ctx, mpl_new(ctx, c->apart, 1));
    assert_ok(ctx, mpl_new(ctx, c->together, 2));
    c->n_reserved = below(rng, 3);
    for (uint32_t i = 0; i < c->n_reserved; i++) {
        mpl_reserved *r = &c->reserved[i];

        r->from = i * 5 + below(rng, 4);
        r->to = r->from + 1 + below(rng, 2);
        r->death = UINT32_MAX;
        if (p->before == NULL && below(rng, 2) == 0) {
            r->birth = below(rng, STEPS);
            r->death = r->birth + 1 + below(rng, 3);
        }
    }
    if (p->before == NULL && below(rng, 2) == 0)
        c->n_apart = 1, c->apart[0][0] = a, c->apart[0][1] = b;
    a = below(rng, p->n), b = (a + 1 + below(rng, p->n - 1)) % p->n;
    if (below(rng, 2) == 0)
        c->n_together = 1, c->together[0][0] = a, c->together[0][1] = b;
    if (c->n_together > 0 && p->n > 2 && below(rng, 2) == 0) {
        c->n_together = 2, c->together[1][0] = b;
        for (c->together[1][1] = 0; c->together[1][1] == a || c->together[1][1] == b;)
            c->together[1][1]++;
    }
    c->chunk_bytes = below(rng, 2) * (4 + 2 * below(rng, 3));
    return c;
}

static mpl_problem *draw(mpl_ctx *ctx, mpl_rng *rng, bool parallel)
{
    mpl_problem *p = NULL;
    uint32_t n = 2 + below(rng, 3), align = 1 + below(rng, 2);

    assert_ok(ctx, mpl_problem_new(ctx, "constrained", n, &p));
    p->n_steps = STEPS;
    for (mpl_buffer b = 0; b < n; b++) {
        p->birth[b] = below(rng, STEPS);
        p->death[b] = p->birth[b] + 1 + below(rng, STEPS - p->birth[b]);
        p->bytes[b] = 1 + below(rng, 4);
        p->align[b] = below(rng, 8) == 0 ? 2 : align;
    }
    if (parallel)
        assert_ok(ctx, mpl_problem_as_parallel(ctx, p));
    if (below(rng, 4) == 0) {
        assert_ok(ctx, mpl_new(ctx, p->fixed, n));
        for (mpl_buffer b = 0; b < n; b++)
            p->fixed[b] = b == 0 ? 2 * below(rng, 4) : MPL_UNFIXED;
    }
    p->constraints = draw_constraints(ctx, p, rng);
    return p;
}

/* ---- the definition ---- */

static bool share(const mpl_problem *p, const uint64_t *at, mpl_buffer a, mpl_buffer b)
{
    return at[a] < at[b] + p->bytes[b] && at[b] < at[a] + p->bytes[a];
}

static bool alone_allowed(const mpl_problem *p, const uint64_t *at, mpl_buffer b)
{
    const mpl_constraints *c = p->constraints;
    uint64_t end = at[b] + p->bytes[b];

    if (at[b] % p->align[b] != 0 ||
        (p->fixed != NULL && p->fixed[b] != MPL_UNFIXED && p->fixed[b] != at[b]) ||
        (c->chunk_bytes > 0 && at[b] / c->chunk_bytes != (end - 1) / c->chunk_bytes))
        return false;
    for (uint32_t i = 0; i < c->n_reserved; i++) {
        const mpl_reserved *r = &c->reserved[i];

        if (at[b] < r->to && r->from < end &&
            (p->before != NULL || (p->birth[b] < r->death && r->birth < p->death[b])))
            return false;
    }
    return true;
}

static bool all_allowed(const mpl_problem *p, const uint64_t *at)
{
    const mpl_constraints *c = p->constraints;

    for (mpl_buffer b = 0; b < p->n; b++) {
        if (!alone_allowed(p, at, b))
            return false;
        for (mpl_buffer a = 0; a < b; a++)
            if (mpl_conflict(p, a, b) && share(p, at, a, b))
                return false;
    }
    if (c->n_apart > 0 && share(p, at, c->apart[0][0], c->apart[0][1]))
        return false;
    for (uint32_t i = 0; i < c->n_together; i++) {
        mpl_buffer a = c->together[i][0], b = c->together[i][1];
        uint64_t begin = at[a] + p->bytes[a];

        begin += begin % p->align[b]; /* 1 or 2 */
        if (at[b] != begin ||
            (c->chunk_bytes > 0 &&
             at[a] / c->chunk_bytes != (begin + p->bytes[b] - 1) / c->chunk_bytes))
            return false;
    }
    if (c->n_together == 2 && c->chunk_bytes > 0) /* the whole chain in one chunk */
        return at[c->together[0][0]] / c->chunk_bytes == at[c->together[1][1]] / c->chunk_bytes;
    return true;
}

static uint64_t height(const mpl_problem *p, const uint64_t *at)
{
    uint64_t top = 0;

    for (mpl_buffer b = 0; b < p->n; b++)
        top = mpl_max_u64(top, at[b] + p->bytes[b]);
    for (uint32_t i = 0; i < p->constraints->n_reserved; i++)
        top = mpl_max_u64(top, p->constraints->reserved[i].to);
    return top;
}

static void try_all(const mpl_problem *p, uint64_t *at, mpl_buffer b, uint64_t *least)
{
    if (b == p->n) {
        if (all_allowed(p, at))
            *least = mpl_min_u64(*least, height(p, at));
        return;
    }
    for (at[b] = 0; at[b] + p->bytes[b] <= HIGHEST && at[b] + p->bytes[b] < *least; at[b]++) {
        bool allowed = alone_allowed(p, at, b);

        for (mpl_buffer a = 0; a < b && allowed; a++)
            allowed = !mpl_conflict(p, a, b) || !share(p, at, a, b);
        if (allowed)
            try_all(p, at, b + 1, least);
    }
}

/* ---- the tests ---- */

TEST(optimal_where_small)
{
    mpl_rng rng;
    uint32_t compared = 0, impossible = 0, n = draws(400);

    mpl_rng_init(&rng, 11);
    for (uint32_t round = 0; round < n; round++) {
        owned_problem *p = draw(ctx, &rng, round % 4 == 3);
        owned_plan *plan = NULL;
        uint64_t at[4] = {0}, least = UINT64_MAX;

        if (mpl_problem_check(ctx, p) != MPL_OK) {
            impossible++;
            continue;
        }
        try_all(p, at, 0, &least);
        if (least > HIGHEST - 4) /* a lower one could be hidden, or none be possible */
            continue;
        assert_ok(ctx, plan_with(ctx, "exact", NULL, NULL, 0, p, &plan));
        assert_true(all_allowed(p, plan->offset));
        assert_int_equal(plan->peak_bytes, least);
        assert_int_equal(plan->claim, MPL_OPTIMAL);
        assert_int_equal(plan->bound_bytes, least);
        compared++;
    }
    assert_true(compared > n / 4 && impossible > n / 50);
}

TEST(every_planner_keeps_them_or_refuses)
{
    mpl_rng rng;
    uint32_t kept = 0, refused = 0;

    mpl_rng_init(&rng, 12);
    for (uint32_t round = 0; round < draws(60); round++) {
        owned_problem *p = draw(ctx, &rng, round % 4 == 3);

        if (mpl_problem_check(ctx, p) != MPL_OK)
            continue;
        for (uint32_t i = 0; mpl_planners[i] != NULL; i++) {
            owned_plan *plan = NULL;
            mpl_status st;

            st = plan_with(ctx, mpl_planners[i]->name, NULL, NULL, 0, p, &plan);

            if (st == MPL_OK && plan->claim != MPL_INFEASIBLE) {
                assert_true(all_allowed(p, plan->offset));
                kept++;
            } else {
                assert_true(st == MPL_EUNAVAIL || st == MPL_EINPUT || st == MPL_ELIMIT ||
                            st == MPL_EINVALID || plan->claim == MPL_INFEASIBLE);
                refused++;
            }
        }
    }
    assert_true(kept > refused / 2);
}

/* Every placement of one problem: the verifier accepts what the definition allows. */
TEST(verifier_agrees_with_the_definition)
{
    mpl_rng rng;
    uint32_t good = 0, bad = 0;

    mpl_rng_init(&rng, 13);
    for (uint32_t round = 0; round < draws(40); round++) {
        owned_problem *p = draw(ctx, &rng, round % 4 == 3);
        owned_plan *plan = NULL;

        if (mpl_problem_check(ctx, p) != MPL_OK)
            continue;
        assert_ok(ctx, mpl_plan_new(ctx, p, &plan));
        plan->claim = MPL_FEASIBLE;
        for (uint32_t k = 0; k < 200; k++) {
            mpl_status st;

            for (mpl_buffer b = 0; b < p->n; b++) {
                mpl_buffer first = b > 0 ? below(&rng, b) : 0;

                plan->offset[b] = below(&rng, 10);
                if (b > 0 && below(&rng, 2) == 0) /* often right behind another */
                    plan->offset[b] = plan->offset[first] + p->bytes[first];
            }
            st = mpl_verify(ctx, p, plan);
            assert_int_equal(st, all_allowed(p, plan->offset) ? MPL_OK : MPL_EINVALID);
            good += st == MPL_OK;
            bad += st != MPL_OK;
            if (st == MPL_OK)
                assert_int_equal(plan->peak_bytes, height(p, plan->offset));
        }
    }
    assert_true(often(good > 20 && bad > good));
}

TEST(plan_files_hold_them)
{
    mpl_rng rng;

    mpl_rng_init(&rng, 14);
    for (uint32_t round = 0; round < draws(40); round++) {
        owned_problem *p = draw(ctx, &rng, round % 4 == 3);
        owned_plan *plan = NULL;
        mpl_plan_file file = {0};

        if (mpl_problem_check(ctx, p) != MPL_OK ||
            plan_with(ctx, "portfolio", NULL, NULL, 0, p, &plan) != MPL_OK ||
            plan->claim == MPL_INFEASIBLE)
            continue;
        assert_ok(ctx, mpl_plan_write(ctx, in_folder("a.json"), p, plan, NULL));
        assert_ok(ctx, mpl_plan_read(ctx, in_folder("a.json"), &file));
        assert_int_equal(mpl_problem_hash(file.problem), mpl_problem_hash(p));
        assert_memory_equal(file.plan->offset, plan->offset, p->n * sizeof *plan->offset);
        file.problem->constraints->chunk_bytes += 64;
        assert_int_not_equal(mpl_problem_hash(file.problem), mpl_problem_hash(p));
        mpl_plan_file_fini(ctx, &file);
    }
}

TEST(memory_may_run_out)
{
    mpl_rng rng;
    owned_problem *p = NULL;

    mpl_rng_init(&rng, 21);
    while (p == NULL || p->constraints->n_apart == 0 || p->constraints->n_together == 0 ||
           p->constraints->chunk_bytes == 0 || p->fixed != NULL ||
           mpl_problem_check(ctx, p) != MPL_OK) {
        mpl_problem_free(ctx, p);
        p = draw(ctx, &rng, false);
    }
    EACH_ALLOCATION_FAILS (ctx, st) {
        mpl_plan *plan = NULL;

        st = plan_with(ctx, "greedy_size", NULL, NULL, 0, p, &plan);
        mpl_plan_free(ctx, plan);
    }
}

static int begin(void)
{
    return folder_make("constraints");
}

TESTS_WITHIN(begin, folder_remove, optimal_where_small, every_planner_keeps_them_or_refuses,
             verifier_agrees_with_the_definition, plan_files_hold_them, memory_may_run_out)
