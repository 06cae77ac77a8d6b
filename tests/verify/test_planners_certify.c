/* Certificates of thousands of small problems, above all those whose optimum lies above the bound:
 * each is accepted, and its bound equals brute force. Modified certificates and plans never prove a
 * false claim. */
#include "tests/support/small_problem.h"

#include "tests/support/proof_text.h"

#include "graphs/problem/before.h"
#include "planners/verify/certify.h"

/* ---- problems with their certificates ---- */

/* A root, or a mutant of a kept problem, at times with another alignment. */
static small bred(mpl_rng *rng, const small *kept, uint32_t n_kept)
{
    small p = n_kept < 2 ? roots[n_kept] : kept[below(rng, n_kept)];

    if (n_kept >= 2)
        for (uint32_t k = 1 + below(rng, 3); k > 0; k--)
            p = mutated(rng, &p);
    if (below(rng, 8) == 0)
        p.align[below(rng, p.n)] = 1u << below(rng, 3);
    return p;
}

static void assert_proved(mpl_ctx *ctx, const mpl_problem *p, mpl_plan *plan, uint64_t bound)
{
    mpl_certified proved;

    assert_ok(ctx, mpl_certify(ctx, p, plan, &proved));
    assert_true(proved.evidence != MPL_EVIDENCE_NONE);
    assert_int_equal(proved.bound, bound);
}

static void assert_certified(mpl_ctx *ctx, const small *from, uint32_t optimum)
{
    owned_problem *p = problem_of(ctx, from);
    mpl_plan *plan = planned_by(ctx, "exact", p);

    assert_int_equal(plan->claim, MPL_OPTIMAL);
    assert_int_equal(plan->peak_bytes, optimum);
    assert_proved(ctx, p, plan, optimum);
    mpl_plan_free(ctx, plan);
    p->pool_capacity[0] = optimum - 1;
    plan = planned_by(ctx, "exact", p);
    assert_int_equal(plan->claim, MPL_INFEASIBLE);
    assert_proved(ctx, p, plan, optimum);
    mpl_plan_free(ctx, plan);
}

TEST(optima_are_certified)
{
    enum { MANY = 600 };
    static small kept[MANY];
    mpl_rng rng = mpl_rng_of(21);

    for (uint32_t n = 0; n < MANY;) {
        small p = bred(&rng, kept, n);

        if (p.n < 4 || brute_fits(&p, load(&p)))
            continue;
        kept[n++] = p;
        assert_certified(ctx, &p, brute_optimum(&p));
    }
}

/* The integer program, which knows no cells, finds the certified optima. */
TEST(the_ilp_agrees)
{
    enum { MANY = 60 };
    const mpl_planner *ilp = mpl_planner_find("ilp");
    static small kept[MANY];
    mpl_rng rng;

    if (ilp == NULL || ilp->plan == NULL) {
        print_message("skip: no ilp in this build\n");
        skip();
    }
    rng = mpl_rng_of(24);
    for (uint32_t n = 0; n < MANY;) {
        small p = bred(&rng, kept, n);
        mpl_problem *problem;
        mpl_plan *plan, *other = NULL;
        mpl_certified proved;
        mpl_run run;

        if (p.n < 4 || brute_fits(&p, load(&p)))
            continue;
        kept[n++] = p;
        problem = problem_of(ctx, &p);
        plan = planned_by(ctx, "exact", problem);
        assert_ok(ctx, mpl_certify(ctx, problem, plan, &proved));
        run = mpl_run_default(ctx);
        assert_ok(ctx, mpl_planner_run(ilp, &run, problem, &other));
        assert_int_equal(other->claim, MPL_OPTIMAL);
        assert_int_equal(other->peak_bytes, proved.bound);
        mpl_plan_free(ctx, plan);
        mpl_plan_free(ctx, other);
        mpl_problem_free(ctx, problem);
    }
}

TEST(random_plans_are_certified)
{
    mpl_rng rng = mpl_rng_of(22);

    for (uint32_t round = 0; round < draws(500); round++) {
        small p = random_small(&rng, round % 2 == 1);

        for (uint32_t i = 0; round % 4 >= 2 && i < p.n; i++)
            if (below(&rng, 4) == 0) {
                p.fixed[i] = (int32_t)(p.align[i] * below(&rng, 8));
                if (!brute_fits(&p, 400))
                    p.fixed[i] = -1;
            }
        assert_certified(ctx, &p, brute_optimum(&p));
    }
}

/* ---- cheats ---- */

/* Each text refutes a capacity that suffices, and is refused by one check of one rule only. */
static const struct cheat {
    const char *what;
    uint32_t within;
    const char *steps;
    uint32_t n;
    struct {
        uint32_t birth, death, size, align;
        int32_t fixed;
    } item[6];
} cheats[] = {
    {"no text", 5, "", 1, {{0, 1, 1, 1, -1}}},
    {"no such record", 5, "y", 1, {{0, 1, 1, 1, -1}}},
    {"a number is missing", 5, "x0", 1, {{0, 1, 1, 1, -1}}},
    {"a number is no number", 5, "z-1", 1, {{0, 1, 1, 1, -1}}},
    {"records without a blank", 5, "b0,1x0,0", 1, {{0, 1, 1, 1, -1}}},
    {"no such buffer", 5, "z7", 1, {{0, 1, 1, 1, -1}}},
    {"ends within a split", 5, "c0,0 c1,0 b0,2", 2, {{0, 1, 2, 1, -1}, {0, 1, 3, 1, -1}}},
    {"a child of no split", 5, "p0", 2, {{0, 1, 2, 1, -1}, {0, 1, 3, 1, -1}}},
    {"no child after a split", 5, "c0,0 c1,0 b0,1 x0,0", 2, {{0, 1, 2, 1, -1}, {0, 1, 3, 1, -1}}},
    {"a split without children", 4, "c0,0 b0,0 p0 z1", 2, {{0, 2, 2, 1, -1}, {1, 2, 1, 1, 1}}},
    {"x: there is room", 5, "c0,0 c1,0 x0,0", 2, {{0, 2, 2, 1, -1}, {0, 2, 3, 1, -1}}},
    {"x: nobody is there", 5, "x0,0", 2, {{0, 2, 2, 1, -1}, {0, 2, 3, 1, -1}}},
    {"x: lower ones count too", 5, "c0,0 c1,0 x0,0", 2, {{0, 1, 1, 1, 2}, {0, 1, 2, 1, -1}}},
    {"z: there is room", 5, "z0", 1, {{0, 2, 2, 1, -1}}},
    ROW("a candidate is left out", 5, "c0,0 c1,0 c1,1 c2,1 b0,2 p0 x1,1 n z0", 3,
        {{0, 1, 2, 1, -1}, {0, 2, 3, 1, -1}, {1, 2, 2, 1, 3}}),
    ROW("refuted in the split above only", 5, "c0,0 c1,0 c1,1 c2,1 b0,3 p0 x1,1 n z0 p1 b0,1 n z0",
        3, {{0, 1, 2, 1, -1}, {0, 2, 3, 1, -1}, {1, 2, 2, 1, 3}}),
    {"nobody is left out", 4, "c0,0 b0,1 p0 z1", 2, {{0, 2, 2, 1, -1}, {1, 2, 1, 1, 1}}},
    ROW("twins differ in alignment", 5, "c0,0 c1,0 c2,0 b0,2 p0 b0,3 p1 z2 p2 z1 n z1 n z1", 3,
        {{0, 1, 2, 1, -1}, {0, 1, 2, 2, -1}, {0, 1, 1, 1, 2}}),
    ROW("twins differ in size", 10, "c0,0 c1,0 c2,0 u3 b0,2 p1 b0,2 p0 z2 n z0 n x0,0", 4,
        {{0, 1, 2, 1, 0}, {0, 1, 3, 1, -1}, {0, 1, 2, 2, 2}, {0, 1, 2, 1, 7}}),
    {"twins differ in top", 4, "c0,0 c1,0 b0,2 p1 z0 n z0", 2, {{0, 1, 2, 1, 0}, {0, 1, 2, 1, -1}}},
    ROW("twins differ in neighbours", 4, "c0,0 c1,0 b0,2 p1 z2 n z0", 3,
        {{0, 1, 2, 1, -1}, {0, 2, 2, 1, -1}, {1, 2, 1, 1, 0}}),
    ROW("twins differ in est", 4, "c0,0 c2,0 c1,1 c2,1 b0,3 p0 b1,2 p2 z1 n z1 p2 z0 n z0", 3,
        {{0, 1, 1, 1, 0}, {1, 2, 2, 1, -1}, {0, 2, 2, 1, -1}}),
    ROW("p: raises who does not meet it", 3, "c0,0 b0,2 p0 z1 n z0", 2,
        {{0, 1, 3, 1, -1}, {1, 2, 3, 1, -1}}),
    ROW("p: raises who fits below", 4, "c0,0 c1,0 b0,3 p0 b0,2 p1 z2 n z1 p1 z2 n z0", 3,
        {{0, 1, 2, 1, -1}, {0, 2, 2, 1, -1}, {1, 2, 2, 1, 0}}),
    ROW("n: forgets who lives outside", 3, "c0,0 b0,2 p0 z1 n z0", 2,
        {{0, 2, 2, 1, -1}, {1, 2, 1, 1, 0}}),
    ROW("n: forgets who lies higher", 4, "c0,0 c1,0 b0,2 p0 z1 n z0", 2,
        {{0, 2, 2, 1, -1}, {0, 1, 1, 1, 1}}),
    {"r: a sum fills it", 5, "c0,0 c1,0 r1,0,3 z1", 2, {{0, 1, 2, 1, -1}, {0, 1, 3, 1, -1}}},
    ROW("r: waste is allowed", 4, "c1,0 c2,0 c0,1 c1,1 b0,3 p2 r1,1,4 z1 p1 z2 n z2", 3,
        {{0, 1, 1, 1, 0}, {0, 2, 2, 2, -1}, {1, 2, 1, 1, 0}}),
    ROW("r: a sum fills it from some offset on", 5,
        "c1,0 c2,0 c0,1 c1,1 b0,3 p2 r1,1,3 z1 p1 z2 n z2", 3,
        {{0, 1, 2, 1, -1}, {0, 2, 3, 1, -1}, {1, 2, 1, 1, 0}}),
    {"r: at a step where it is not", 5, "c0,0 r1,0,4 z1", 2, {{0, 1, 2, 1, -1}, {0, 1, 3, 1, -1}}},
    ROW("r: a later one ends lower", 5, "c0,0 c1,0 c2,0 r1,0,6 z1", 3,
        {{0, 1, 3, 1, 2}, {0, 1, 1, 1, 1}, {0, 1, 1, 1, -1}}),
    {"r: it is not of the set", 5, "c0,0 r1,0,2 z1", 2, {{0, 1, 2, 1, 0}, {1, 2, 1, 1, 1}}},
    {"u: who does not meet it is dropped", 3, "u0 z1", 2, {{0, 1, 2, 1, -1}, {1, 2, 3, 1, -1}}},
    {"u: another has a higher est", 3, "u0 z1", 2, {{0, 1, 2, 1, -1}, {0, 1, 1, 1, 2}}},
    ROW("u: alignments break", 3, "c0,0 c1,0 c2,0 u0 b0,2 p1 z2 n z1", 3,
        {{0, 1, 1, 1, -1}, {0, 1, 1, 2, -1}, {0, 1, 1, 2, -1}}),
    {"u: who lies below does not move", 3, "u0 z1", 2, {{0, 1, 2, 1, -1}, {0, 1, 1, 1, 0}}},
    ROW("u: it is not there", 6, "c1,0 c2,0 d0 u0 u0 x1,0", 3,
        {{0, 2, 2, 1, -1}, {1, 3, 2, 1, -1}, {1, 3, 2, 1, -1}}),
    ROW("o: another alignment is finer", 2, "c0,0 c1,0 o1 x0,0", 2,
        {{0, 1, 1, 1, -1}, {0, 1, 1, 2, -1}}),
    {"o: who is not connected is left out", 4, "o0 z1", 2, {{0, 1, 2, 1, -1}, {1, 2, 2, 1, -1}}},
    {"c: no rivals", 3, "c0,0 c1,0 x0,0", 2, {{0, 1, 2, 1, -1}, {1, 2, 2, 1, -1}}},
    ROW("c: no rival of one", 5, "c0,0 c1,0 c2,0 x0,0", 3,
        {{0, 2, 2, 1, -1}, {0, 1, 2, 1, -1}, {1, 2, 2, 1, -1}}),
    {"c: out of turn", 5, "c0,1 x0,1", 1, {{0, 1, 2, 1, -1}}},
    {"d: it counts no longer", 4, "c0,0 c1,0 d1 x0,0", 2, {{0, 1, 2, 1, -1}, {0, 1, 2, 1, -1}}},
    {"m: no such state", 2, "m0", 1, {{0, 1, 1, 1, -1}}},
    {"m: not refuted yet", 2, "k m0", 1, {{0, 1, 1, 1, -1}}},
    ROW("m: a buffer is gone", 5, "c0,0 c1,0 c1,1 c2,1 b0,3 p0 k x1,1 p1 m0 n z0", 3,
        {{0, 1, 2, 1, -1}, {0, 2, 3, 1, -1}, {1, 2, 2, 1, 3}}),
    ROW("m: a buffer is at the top, and gone", 7,
        "c0,0 c1,1 c2,1 c3,1 c4,1 c3,2 c4,2 b0,2 p0 b1,3 p1 u5 k b2,2 p3 z4 n z3 p2 u3 m0 n x3,1 n "
        "z0",
        6,
        ROW({0, 1, 1, 1, 0}, {1, 3, 1, 1, -1}, {1, 2, 2, 1, -1}, {0, 3, 2, 1, -1}, {0, 3, 2, 2, -1},
            {2, 3, 2, 2, -1})),
    ROW("m: a buffer lies lower", 3, "c0,0 c1,0 b0,3 p0 d1 k z2 p1 d0 m0 n z1", 3,
        {{0, 2, 2, 1, -1}, {0, 1, 1, 1, -1}, {1, 2, 1, 1, 0}}),
    ROW("m: a buffer may lie higher", 4, "c0,0 c1,0 b0,3 p0 d1 u2 k z3 p1 d0 m0 n z1", 4,
        {{0, 2, 2, 1, -1}, {0, 1, 2, 1, -1}, {1, 3, 2, 1, -1}, {2, 3, 1, 1, 2}}),
};

TEST(cheats_are_refused)
{
    for (size_t k = 0; k < sizeof cheats / sizeof *cheats; k++) {
        const struct cheat *cheat = &cheats[k];
        small from = {.n = cheat->n};
        mpl_certified proved;
        owned_problem *p;
        owned_plan *plan;

        for (uint32_t i = 0; i < from.n; i++) {
            from.birth[i] = cheat->item[i].birth;
            from.death[i] = cheat->item[i].death;
            from.size[i] = cheat->item[i].size;
            from.align[i] = cheat->item[i].align;
            from.fixed[i] = cheat->item[i].fixed;
        }
        if (!brute_fits(&from, cheat->within))
            fail_msg("'%s' is no cheat", cheat->what);
        p = problem_of(ctx, &from);
        plan = refuted(ctx, p, cheat->within, cheat->steps);
        if (mpl_certify(ctx, p, plan, &proved) != MPL_EINVALID)
            fail_msg("'%s' was accepted", cheat->what);
    }
}

/* Even for a true claim, a text is read to the letter. */
TEST(loose_texts_are_refused)
{
    static const char *const texts[] = ROW("z0 z0", "z0z0", "z0  ", " z0", "k0 z0", "b0,1 z0", "z",
                                           "z0,", "z0,0", "c0,0 r0,0,730000000000000000 z0"),
                             *const right[] = {"z0", "c0,0 r0,0,719999999999999999 z0"};
    small from = {.n = 1, .death = {1}, .size = {2}, .align = {1}, .fixed = {-1}};
    owned_problem *p = problem_of(ctx, &from);

    for (size_t k = 0; k < sizeof texts / sizeof *texts; k++) {
        owned_plan *plan = refuted(ctx, p, 1, texts[k]);
        mpl_certified proved;

        if (mpl_certify(ctx, p, plan, &proved) != MPL_EINVALID)
            fail_msg("'%s' was accepted", texts[k]);
        mpl_free(ctx, plan->refutation.steps);
        /* 2^56 and a digit */
        assert_non_null(plan->refutation.steps = mpl_strdup(ctx, right[k % 2]));
        assert_ok(ctx, mpl_certify(ctx, p, plan, &proved));
    }
}

/* Nothing may stand between a split and its children, however valid. */
TEST(splits_and_children_are_neighbours)
{
    small hard = roots[0];
    mpl_certified proved;
    char *steps, *first;
    owned_problem *p = problem_of(ctx, &hard);
    owned_plan *plan = planned_by(ctx, "exact", p);

    assert_non_null(first = strchr(plan->refutation.steps, 'b'));
    assert_non_null(first = strchr(first, ' '));
    assert_ok(ctx, mpl_new(ctx, steps, strlen(plan->refutation.steps) + 4));
    sprintf(steps, "%.*s o0%s", (int)(first - plan->refutation.steps), plan->refutation.steps,
            first);
    assert_ok(ctx, mpl_certify(ctx, p, plan, &proved));
    mpl_free(ctx, plan->refutation.steps);
    plan->refutation.steps = steps;
    assert_status(ctx, mpl_certify(ctx, p, plan, &proved), MPL_EINVALID);
}

/* ---- claims ---- */

/* Two conflicting buffers of 2 and 3 bytes in pool 0; a third of 6 in pool 1. */
static mpl_problem *two_pools(mpl_ctx *ctx)
{
    mpl_problem *p = NULL;

    assert_ok(ctx, mpl_problem_new(ctx, "pools", 3, &p));
    assert_ok(ctx, mpl_realloc_bytes(ctx, (void **)&p->pool_name, 1, 2, sizeof *p->pool_name));
    assert_ok(ctx,
              mpl_realloc_bytes(ctx, (void **)&p->pool_capacity, 1, 2, sizeof *p->pool_capacity));
    assert_non_null(p->pool_name[1] = mpl_strdup(ctx, "other"));
    p->n_pools = 2;
    p->n_steps = 3;
    p->pool_capacity[1] = MPL_NO_CAPACITY;
    for (mpl_buffer b = 0; b < 3; b++)
        p->bytes[b] = b < 2 ? 2 + b : 6, p->death[b] = 2, p->pool[b] = b == 2;
    return p;
}

/* A claim, its certificate, and whether they match. */
static const struct claimed {
    const char *what;
    mpl_claim claim;
    uint64_t capacity, bound, above; /* offset of the second buffer */
    uint32_t pool;
    uint64_t within;
    const char *steps;
    mpl_status st;
} claims[] = {
    {"optimal", MPL_OPTIMAL, MPL_NO_CAPACITY, 5, 2, 0, 4, "c0,0 c1,0 x0,0", MPL_OK},
    {"optimal, without a certificate", MPL_OPTIMAL, MPL_NO_CAPACITY, 5, 2, 0, 4, NULL,
     MPL_EINVALID},
    {"optimal, less is refuted", MPL_OPTIMAL, MPL_NO_CAPACITY, 5, 2, 0, 3, "c0,0 c1,0 x0,0",
     MPL_EINVALID},
    {"optimal, and a byte is wasted", MPL_OPTIMAL, MPL_NO_CAPACITY, 6, 3, 0, 4, "c0,0 c1,0 x0,0",
     MPL_EINVALID},
    {"optimal, another pool is refuted", MPL_OPTIMAL, MPL_NO_CAPACITY, 6, 3, 1, 5, "z2",
     MPL_EINVALID},
    {"optimal, and buffers overlap", MPL_OPTIMAL, MPL_NO_CAPACITY, 4, 1, 0, 3, "c0,0 c1,0 x0,0",
     MPL_EINVALID},
    {"feasible, a bound is refuted", MPL_FEASIBLE, MPL_NO_CAPACITY, 5, 3, 0, 4, "c0,0 c1,0 x0,0",
     MPL_OK},
    {"feasible, less is refuted", MPL_FEASIBLE, MPL_NO_CAPACITY, 6, 3, 0, 4, "c0,0 c1,0 x0,0",
     MPL_EINVALID},
    {"feasible, without a certificate", MPL_FEASIBLE, MPL_NO_CAPACITY, 5, 3, 0, 4, NULL, MPL_OK},
    {"infeasible", MPL_INFEASIBLE, 4, 0, 0, 0, 4, "c0,0 c1,0 x0,0", MPL_OK},
    {"infeasible, less is refuted", MPL_INFEASIBLE, 4, 0, 0, 0, 3, "c0,0 c1,0 x0,0", MPL_EINVALID},
    {"infeasible, without a certificate", MPL_INFEASIBLE, 4, 0, 0, 0, 4, NULL, MPL_EINVALID},
    {"infeasible, without a capacity", MPL_INFEASIBLE, MPL_NO_CAPACITY, 0, 0, 0, 4,
     "c0,0 c1,0 x0,0", MPL_EINVALID},
    {"infeasible, in a pool that has none", MPL_INFEASIBLE, 4, 0, 0, 1, 3, "z2", MPL_EINVALID},
    {"infeasible, another pool's buffer is too large", MPL_INFEASIBLE, 5, 0, 0, 0, 5, "z2",
     MPL_EINVALID},
    {"infeasible, proved of a pool that has room", MPL_INFEASIBLE, 5, 0, 0, 1, 5, "z2",
     MPL_EINVALID},
    {"infeasible, no such pool", MPL_INFEASIBLE, 4, 0, 0, 2, 4, "z2", MPL_EINVALID},
    {"infeasible, another pool's buffer", MPL_INFEASIBLE, 5, 0, 0, 0, 5, "c0,0 c1,0 x2,0",
     MPL_EINVALID},
    {"infeasible, beyond what can be counted", MPL_INFEASIBLE, INT64_MAX, 0, 0, 0, INT64_MAX,
     "c0,0 c1,0 x0,0", MPL_EINVALID},
    {"unknown", MPL_UNKNOWN, MPL_NO_CAPACITY, 0, 0, 0, 0, NULL, MPL_OK},
};

TEST(claims_need_their_certificates)
{
    for (size_t k = 0; k < sizeof claims / sizeof *claims; k++) {
        owned_problem *p = two_pools(ctx);
        owned_plan *plan = NULL;
        mpl_certified proved;

        p->pool_capacity[0] = claims[k].capacity;
        assert_ok(ctx, mpl_plan_new(ctx, p, &plan));
        plan->claim = claims[k].claim;
        plan->bound_bytes = claims[k].bound;
        plan->offset[1] = claims[k].above;
        plan->refutation = (mpl_refutation){.pool = claims[k].pool, .within = claims[k].within};
        if (claims[k].steps != NULL)
            assert_non_null(plan->refutation.steps = mpl_strdup(ctx, claims[k].steps));
        if (mpl_certify(ctx, p, plan, &proved) != claims[k].st)
            fail_msg("%s: %s", claims[k].what, ctx->message);
    }
}

/* Two bytes at multiples of 4 need 5: that 3 are too few says nothing about 100. */
TEST(no_capacity_is_enough_beyond_ample)
{
    small from = {.n = 2, .death = {1, 1}, .size = {1, 1}, .align = {4, 4}, .fixed = {-1, -1}};

    for (uint32_t within = 3; within <= 5; within++) {
        owned_problem *p = problem_of(ctx, &from);
        owned_plan *plan = refuted(ctx, p, within, "c0,0 c1,0 o0 x0,0");
        mpl_certified proved;

        assert_status(ctx, mpl_certify(ctx, p, plan, &proved), within < 5 ? MPL_OK : MPL_EINVALID);
        p->pool_capacity[0] = 100;
        assert_status(ctx, mpl_certify(ctx, p, plan, &proved), MPL_EINVALID);
    }
}

/* A witness proves what its buffers need of pool 0, and nothing else. */
TEST(witnesses_are_of_pool_0)
{
    static const struct {
        const char *what;
        uint32_t n;
        mpl_buffer witness[3];
        uint64_t bound, death; /* of the second buffer */
        mpl_status st;
    } rows[] =
        ROW({"both", 2, {0, 1}, 5, 2, MPL_OK}, {"of another pool", 1, {2}, 6, 2, MPL_EINVALID},
            {"of another pool, beside", 2, {0, 2}, 8, 2, MPL_EINVALID},
            {"two that do not meet", 2, {0, 1}, 5, 1, MPL_EINVALID},
            {"one twice", 2, {1, 1}, 6, 2, MPL_EINVALID},
            {"less than is claimed", 1, {0}, 5, 2, MPL_EINVALID});

    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
        owned_problem *p = two_pools(ctx);
        owned_plan *plan = NULL;
        mpl_certified proved;

        p->birth[0] = rows[k].death == 1 ? 1 : 0;
        p->death[1] = (uint32_t)rows[k].death;
        assert_ok(ctx, mpl_plan_new(ctx, p, &plan));
        plan->claim = MPL_OPTIMAL;
        plan->bound_bytes = rows[k].bound;
        plan->offset[1] = rows[k].bound - 3; /* as high as the bound says */
        assert_ok(ctx, mpl_new(ctx, plan->witness, 3));
        memcpy(plan->witness, rows[k].witness, sizeof rows[k].witness);
        plan->n_witness = rows[k].n;
        if (mpl_certify(ctx, p, plan, &proved) != rows[k].st)
            fail_msg("%s: %s", rows[k].what, ctx->message);
    }
}

/* Pool 0 over two memories: a refutation applies to one, and a cost is proved by prices alone. */
TEST(memories_are_not_the_pool)
{
    static const struct {
        const char *what;
        mpl_claim claim;
        const char *steps;
        uint64_t capacity[2], price[2], cost, cost_bound;
        uint32_t memory;
        mpl_status st;
    } rows[] = ROW(
        {"infeasible", MPL_INFEASIBLE, "c0,0 c1,0 x0,0", {4, 4}, {1, 1}, 5, 5, 0, MPL_EINVALID},
        ROW("infeasible, one memory as large", MPL_INFEASIBLE, "c0,0 c1,0 x0,0", {4, 9}, {1, 1}, 5,
            5, 0, MPL_EINVALID),
        {"optimal: all in the cheapest", MPL_OPTIMAL, NULL, {9, 9}, {1, 2}, 5, 5, 0, MPL_OK},
        {"optimal: free", MPL_OPTIMAL, NULL, {9, 9}, {0, 2}, 0, 0, 0, MPL_OK},
        {"optimal: all in the dearest", MPL_OPTIMAL, NULL, {9, 9}, {1, 2}, 10, 10, 1, MPL_EINVALID},
        ROW("optimal: a free one has room", MPL_OPTIMAL, NULL, {9, 9}, {0, 9}, 45, 45, 1,
            MPL_EINVALID),
        ROW("optimal: the cheap one has no room", MPL_OPTIMAL, NULL, {1, 9}, {1, 2}, 10, 10, 1,
            MPL_OK),
        {"feasible: all in the dearest", MPL_FEASIBLE, NULL, {9, 9}, {1, 2}, 10, 10, 1, MPL_OK});

    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
        owned_problem *p = two_pools(ctx);
        owned_plan *plan = NULL;
        mpl_certified proved;

        assert_ok(ctx, mpl_plan_new(ctx, p, &plan));
        assert_ok(ctx, mpl_plan_spread(ctx, plan, 2));
        plan->claim = rows[k].claim;
        plan->offset[1] = 2;
        plan->spread.memory[0] = plan->spread.memory[1] = rows[k].memory;
        for (int m = 0; m < 2; m++)
            plan->spread.capacity[m] = rows[k].capacity[m],
            plan->spread.price[m] = rows[k].price[m];
        plan->spread.cost = rows[k].cost, plan->spread.cost_bound = rows[k].cost_bound;
        plan->refutation.within = p->pool_capacity[0] = 4;
        if (rows[k].steps != NULL)
            assert_non_null(plan->refutation.steps = mpl_strdup(ctx, rows[k].steps));
        else
            p->pool_capacity[0] = MPL_NO_CAPACITY;
        if (mpl_certify(ctx, p, plan, &proved) != rows[k].st)
            fail_msg("%s: %s", rows[k].what, ctx->message);
    }
}

/* The work that a text demands is bounded by its size. */
TEST(work_is_bounded)
{
    enum { MANY = 150, RECORDS = 6000 };
    owned_memory char *steps;
    size_t n = 0;
    owned_problem *p = NULL;
    owned_plan *plan;
    mpl_certified proved;

    assert_ok(ctx, mpl_problem_new(ctx, "many", MANY, &p));
    p->n_steps = 1;
    for (mpl_buffer b = 0; b < MANY; b++)
        p->bytes[b] = b + 1, p->death[b] = 1;
    assert_ok(ctx, mpl_new(ctx, steps, 16 * (MANY + RECORDS)));
    for (uint32_t b = 0; b < MANY; b++)
        n += (size_t)sprintf(steps + n, "c%u,0 ", b);
    for (uint32_t k = 0; k < RECORDS; k++) /* each is valid, and compares every pair */
        n += (size_t)sprintf(steps + n, "o0 ");
    sprintf(steps + n, "x0,0");
    plan = refuted(ctx, p, 160, steps);
    assert_status(ctx, mpl_certify(ctx, p, plan, &proved), MPL_EINVALID);
    assert_non_null(strstr(ctx->message, "more work than its size allows"));
}

/* Conflicts follow the problem: lifetimes or an order, except between the two of a pair. */
TEST(other_problems)
{
    for (int kind = 0; kind < 5; kind++) {
        owned_problem *p = two_pools(ctx);
        owned_plan *plan = refuted(ctx, p, 3, "c0,0 c1,0 x0,0");
        mpl_certified proved;
        mpl_status st = kind < 2 ? MPL_OK : kind < 4 ? MPL_EINVALID : MPL_EINPUT;

        p->birth[1] = 1, p->death[1] = 3, p->bytes[1] = 2; /* 4 bytes, or 2 in place */
        if (kind == 3)
            p->birth[1] = 2;
        if (kind == 1 || kind == 3)
            assert_ok(ctx, mpl_problem_as_parallel(ctx, p));
        if (kind == 2) {
            p->n_in_place = 1;
            assert_ok(ctx, mpl_new(ctx, p->in_place_in, 1));
            assert_ok(ctx, mpl_new(ctx, p->in_place_out, 1));
            assert_ok(ctx, mpl_new(ctx, p->in_place_step, 1));
            p->in_place_out[0] = p->in_place_step[0] = 1;
        }
        if (kind == 4)
            p->align[0] = 3;
        assert_status(ctx, mpl_certify(ctx, p, plan, &proved), st);
    }
}

/* ---- mutants ---- */

enum { BASES = 64 };

static bool sound_plan(const small *p, const mpl_plan *plan, uint64_t within)
{
    for (uint32_t i = 0; i < p->n; i++) {
        if (plan->offset[i] % p->align[i] != 0 || plan->offset[i] + p->size[i] > within)
            return false;
        for (uint32_t j = 0; j < i; j++)
            if (overlap(p, i, j) && plan->offset[i] < plan->offset[j] + p->size[j] &&
                plan->offset[j] < plan->offset[i] + p->size[i])
                return false;
    }
    return true;
}

static uint64_t n_true, n_false, n_accepted; /* claims; of the true ones */

/* Changes problem, text, plan or claim, and checks that an accepted claim is true. */
static void try_mutant(mpl_ctx *ctx, mpl_rng *rng, const small *base, const mpl_plan *from)
{
    small p = below(rng, 2) == 0 ? mutated(rng, base) : *base;
    uint32_t optimum = brute_optimum(&p);
    uint64_t bound = below(rng, 2) == 0 ? optimum + 1 : from->refutation.within + below(rng, 3);
    owned_problem *problem = problem_of(ctx, &p);
    mpl_certified proved;
    owned_plan *plan;
    mpl_status st;

    bound = bound > 0 ? bound : 1;
    plan = refuted(ctx, problem, bound - 1, changed_steps(rng, from->refutation.steps));
    if (below(rng, 2) == 0) {
        problem->pool_capacity[0] = MPL_NO_CAPACITY;
        plan->claim = MPL_OPTIMAL;
        plan->bound_bytes = bound + below(rng, 2);
        for (uint32_t i = 0; i < p.n; i++)
            plan->offset[i] = i < base->n ? from->offset[i] : 0;
        if (below(rng, 2) == 0)
            plan->offset[below(rng, p.n)] += below(rng, 3);
    }
    st = mpl_certify(ctx, problem, plan, &proved);
    if (bound > optimum)
        n_false++;
    else
        n_true++, n_accepted += st == MPL_OK;
    if (st == MPL_OK) {
        assert_true(proved.bound <= optimum);
        assert_true(plan->claim == MPL_INFEASIBLE ||
                    (plan->bound_bytes == optimum && sound_plan(&p, plan, optimum)));
    } else {
        assert_status(ctx, st, MPL_EINVALID);
    }
}

TEST(mutants_prove_nothing_false)
{
    uint64_t n = n_mutants();
    static small kept[BASES];
    mpl_plan *plan[BASES];
    mpl_rng rng = mpl_rng_of(23);

    for (uint32_t k = 0; k < BASES;) {
        small p = bred(&rng, kept, k);
        owned_problem *problem = NULL;

        if (p.n < 4 || brute_fits(&p, load(&p)))
            continue;
        problem = problem_of(ctx, &p);
        kept[k] = p;
        plan[k++] = planned_by(ctx, "exact", problem);
    }
    for (uint64_t i = 0; i < n; i++) {
        uint32_t k = below(&rng, BASES);

        if (plan[k]->refutation.steps != NULL)
            try_mutant(ctx, &rng, &kept[k], plan[k]);
    }
    print_message("mutants: %" PRIu64 " of false claims, none accepted; %" PRIu64
                  " of true claims, %" PRIu64 " accepted\n",
                  n_false, n_true, n_accepted);
    for (uint32_t k = 0; k < BASES; k++)
        mpl_plan_free(ctx, plan[k]);
    assert_true(n_accepted > n / 100);
}

TEST(memory_runs_out)
{
    small hard = roots[1];
    owned_problem *p = problem_of(ctx, &hard);
    owned_plan *plan = planned_by(ctx, "exact", p);

    EACH_ALLOCATION_FAILS (ctx, st) {
        mpl_certified proved;

        st = mpl_certify(ctx, p, plan, &proved);
    }
}

TESTS(optima_are_certified, the_ilp_agrees, random_plans_are_certified, cheats_are_refused,
      loose_texts_are_refused, splits_and_children_are_neighbours, claims_need_their_certificates,
      no_capacity_is_enough_beyond_ample, witnesses_are_of_pool_0, memories_are_not_the_pool,
      work_is_bounded, other_problems, mutants_prove_nothing_false, memory_runs_out)
