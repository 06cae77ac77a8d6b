/* Certificates with a partial order and in-place pairs: cheats against each rule are refused, and
 * modified problems, texts and plans never prove what brute force refutes. test_planners_general.c
 * checks that all true claims are certified. */
#include "tests/support/small_general.h"

#include "tests/support/proof_text.h"

#include "planners/verify/certify.h"

/* ---- cheats ---- */

/* Each text refutes a capacity that suffices, and is refused by one check of one rule only. Arcs
 * and pairs are two digits each. */
static const struct cheat {
    const char *what;
    uint32_t within;
    const char *steps, *arcs, *pairs;
    uint32_t n;
    struct {
        uint32_t size, align;
        int32_t fixed;
    } item[5];
} cheats[] = {
    {"c: one is before the other", 3, "c0,0 c1,0 x0,0", "01", "", 2, {{2, 1, -1}, {2, 1, -1}}},
    {"c: one is after the other", 3, "c1,0 c0,0 x0,0", "01", "", 2, {{2, 1, -1}, {2, 1, -1}}},
    {"c: a pair may share", 3, "c0,0 c1,0 x0,0", "", "01", 2, {{2, 1, -1}, {2, 1, -1}}},
    ROW("c: a pair may share, the other way", 3, "c1,0 c0,0 x0,0", "", "01", 2,
        {{2, 1, -1}, {2, 1, -1}}),
    ROW("c: a pair that shares", 3, "s0,1 c0,0 c1,0 x0,0 c0,1 c1,1 x0,1", "", "01", 2,
        {{2, 1, -1}, {2, 1, -1}}),
    {"o: along an arc", 3, "o0 z1", "01", "", 2, {{2, 1, -1}, {2, 1, -1}}},
    {"o: along a pair", 3, "o0 z1", "", "01", 2, {{2, 1, -1}, {2, 1, -1}}},
    {"s: the second child is missing", 4, "s0,1 z0", "", "01", 2, {{2, 1, 0}, {2, 1, 2}}},
    ROW("s: the first child is missing", 3, "s0,1 c0,0 c1,0 x0,0", "", "01", 2,
        {{2, 1, -1}, {2, 1, -1}}),
    ROW("s: the first child is true", 3, "s0,1 z0 c0,0 c1,0 x0,0", "", "01", 2,
        {{2, 1, -1}, {2, 1, -1}}),
    {"s: no such buffer", 3, "s0,7 z0 z0", "", "01", 2, {{2, 1, -1}, {2, 1, -1}}},
    ROW("s: another pair is not apart", 3, "s0,1 c1,0 c2,0 x0,0 c0,1 c1,1 x0,1", "02", "0112", 3,
        {{2, 1, -1}, {2, 1, -1}, {2, 1, -1}}),
    ROW("s: a set of the first child", 3, "s2,3 s0,1 z2 c0,0 c1,0 x0,0 x0,0", "02031213", "0123", 4,
        {{2, 1, -1}, {2, 1, -1}, {1, 1, 0}, {1, 1, 2}}),
    ROW("s: a set of the second child, after it", 3, "s2,3 s0,1 z2 c0,0 c1,0 x0,0 c0,0 x0,0",
        "02031213", "0123", 4, {{2, 1, -1}, {2, 1, -1}, {1, 1, 0}, {1, 1, 2}}),
    ROW("s: a state of the first child", 3, "s2,3 s0,1 z2 d2 d3 k c0,0 c1,0 x0,0 d2 d3 m0",
        "02031213", "0123", 4, {{2, 1, -1}, {2, 1, -1}, {1, 1, 0}, {1, 1, 2}}),
    ROW("s: a set that grew in a split within the first child", 3,
        "s2,3 s0,1 z2 c0,0 s2,3 z2 c1,0 z2 c1,0 x0,0", "02031213", "0123", 4,
        {{2, 1, -1}, {2, 1, -1}, {1, 1, 0}, {1, 1, 2}}),
    ROW("s: a set from before that grew within an inner second child", 3,
        "c0,0 s2,3 s0,1 z2 c1,0 z2 x0,0", "02031213", "0123", 4,
        {{2, 1, -1}, {2, 1, -1}, {1, 1, 0}, {1, 1, 2}}),
    ROW("s: apart within the first child alone", 3, "s2,3 s0,1 z2 z2 c0,0 c1,0 x0,0", "02031213",
        "0123", 4, {{2, 1, -1}, {2, 1, -1}, {1, 1, 0}, {1, 1, 2}}),
    ROW("s: too late, twins have changed places", 4,
        "c1,0 c2,0 b0,2 p2 s0,1 z1 c0,1 c1,1 x0,1 n z1", "02", "01", 3,
        {{4, 1, 0}, {2, 1, -1}, {2, 1, -1}}),
    ROW("p: not all of the body is so large", 4,
        "s0,1 c1,0 c2,0 b0,3 p0 z2 p2 z1 n z1 c0,1 c1,1 x0,1", "02", "01", 3,
        {{4, 1, -1}, {2, 1, -1}, {2, 1, -1}}),
    ROW("n: the other of the body rests on something", 3,
        "s0,1 c0,0 b0,2 p0 z2 n z0 c0,1 c1,1 x0,1", "02", "01", 3,
        {{2, 1, -1}, {2, 1, -1}, {1, 1, 0}}),
    ROW("n: so it does, by whichever name the body was placed", 3,
        "s0,1 c0,0 b0,2 p1 z2 n z0 c0,1 c1,1 x0,1", "02", "01", 3,
        {{2, 1, -1}, {2, 1, -1}, {1, 1, 0}}),
    ROW("twins: the one at work has a body", 4,
        "s0,1 d4 c1,0 c2,0 b0,2 p1 z3 n z1 c0,0 c3,0 b0,3 p0 z3 p3 c1,1 c4,1 b1,3 p1 z4 p4 c0,2 "
        "c1,2 x0,2 n z1 n z0",
        "02313224", "01", 5, {{2, 1, -1}, {2, 1, -1}, {2, 1, -1}, {2, 1, 0}, {2, 1, 0}}),
    ROW("twins: the one left out has a body", 4,
        "s0,1 d4 c1,0 c2,0 c0,1 c3,1 b0,2 p2 x0,1 n z1 c0,0 c1,0 c1,1 c4,1 c0,2 c3,2 b0,3 p0 x1,1 "
        "p1 x0,2 n z0",
        "02313224", "01", 5, {{2, 1, -1}, {2, 1, -1}, {2, 1, -1}, {2, 1, 2}, {2, 1, 2}}),
    {"z: the body fits", 2, "s0,1 z1 c0,0 c1,0 x0,0", "", "01", 2, {{2, 1, -1}, {1, 1, -1}}},
    {"k: under no split", 3, "k m0", "", "", 1, {{2, 1, -1}}},
};

static void couples(const char *from, bool matrix[MOST][MOST])
{
    for (; *from != '\0'; from += 2)
        matrix[from[0] - '0'][from[1] - '0'] = true;
}

/* Here the refuted capacities do not suffice: the first two texts say what the specification does
 * not allow, the last what it does. */
static const struct cheat lapses[] = {
    ROW("p: who fits right below is above", 4, "c1,0 c0,1 c2,1 b0,2 p1 z0 n x0,1", "12", "", 3,
        {{2, 1, 0}, {2, 1, 2}, {1, 1, 0}}),
    ROW("p: the rest of the body stays", 3,
        "s0,1 c0,0 c2,0 b0,3 p0 d1 z2 p2 z0 n z0 c0,1 c1,1 x0,1", "", "01", 3,
        {{2, 1, -1}, {2, 1, -1}, {2, 1, -1}}),
    ROW("n: one of the body is gone, and carries nobody", 4,
        "c3,0 c4,0 s0,1 d1 c0,1 c2,1 b1,3 p0 x3,0 p2 x3,0 n z2 x3,0", "030413142324", "01", 5,
        {{2, 1, -1}, {2, 1, -1}, {2, 1, -1}, {3, 1, -1}, {3, 1, -1}}),
};

/* Judges a cheat; *fits: whether its claim is false. */
static mpl_status judged(mpl_ctx *ctx, const struct cheat *cheat, bool *fits)
{
    small from = {.n = cheat->n};
    mpl_certified proved;
    owned_problem *p;
    owned_plan *plan;
    mpl_status st;

    for (uint32_t i = 0; i < from.n; i++) {
        from.size[i] = cheat->item[i].size;
        from.align[i] = cheat->item[i].align;
        from.fixed[i] = cheat->item[i].fixed;
    }
    couples(cheat->arcs, from.arc);
    couples(cheat->pairs, from.pair);
    *fits = brute_fits(&from, cheat->within);
    p = problem_of(ctx, &from);
    plan = refuted(ctx, p, cheat->within, cheat->steps);
    st = mpl_certify(ctx, p, plan, &proved);
    return st;
}

TEST(cheats_are_refused)
{
    enum { LAPSES = sizeof lapses / sizeof *lapses };
    bool fits;

    for (size_t k = 0; k < sizeof cheats / sizeof *cheats; k++) {
        if (judged(ctx, &cheats[k], &fits) != MPL_EINVALID)
            fail_msg("'%s' was accepted", cheats[k].what);
        if (!fits)
            fail_msg("'%s' is no cheat", cheats[k].what);
    }
    for (size_t k = 0; k < LAPSES; k++)
        if (judged(ctx, &lapses[k], &fits) != (k + 1 < LAPSES ? MPL_EINVALID : MPL_OK) || fits)
            fail_msg("'%s': %s", lapses[k].what, ctx->message);
}

/* Whatever the first child of a pair went through, the second begins where the pair was met: other
 * pairs still matter. */
TEST(second_children_begin_anew)
{
    small from = {.n = 4, .size = {4, 4, 4, 4}, .align = {1, 1, 1, 1}, .fixed = {-1, -1, -1, -1}};
    owned_problem *p;
    owned_plan *plan;
    mpl_certified proved;

    couples("02031213", from.arc);
    couples("0123", from.pair);
    p = problem_of(ctx, &from);
    plan = refuted(ctx, p, 3, "s0,1 c2,0 b0,2 p2 z3 n z2 s2,3 z2 z2");
    assert_ok(ctx, mpl_certify(ctx, p, plan, &proved));
    assert_int_equal(proved.n_steps, 10);
}

/* ---- no capacity is enough ---- */

/* Overlapping fixed offsets, as a pair and not, with and without a capacity. */
TEST(clashes_are_certified)
{
    for (int kind = 0; kind < 16; kind++) {
        small from = {
            .n = 3, .size = {4, 3, 2}, .align = {1, 1, 1}, .fixed = {kind / 4 % 2, 2, -1}};
        const char *name = kind < 8 ? "exact" : "ilp";
        mpl_certified proved;
        owned_problem *p = NULL;
        owned_plan *plan = NULL;

        if (mpl_planner_find(name)->plan == NULL)
            continue;
        from.pair[0][1] = kind % 2 == 1;
        p = problem_of(ctx, &from);
        p->pool_capacity[0] = kind / 2 % 2 == 1 ? 100 : MPL_NO_CAPACITY;
        plan = planned_by(ctx, name, p);
        assert_int_equal(plan->claim, MPL_INFEASIBLE);
        assert_ok(ctx, mpl_certify(ctx, p, plan, &proved));
        assert_true(proved.bound == UINT64_MAX);
        plan->refutation.within = 10; /* also refuted, but there is room above */
        assert_status(ctx, mpl_certify(ctx, p, plan, &proved), MPL_EINVALID);
    }
}

/* Too large for any given capacity; from 2^60 bytes on nothing is claimed. */
TEST(large_buffers_are_counted)
{
    small from = {.n = 1, .size = {1}, .align = {1}, .fixed = {-1}};

    for (int bits = 59; bits <= 60; bits++) {
        owned_problem *p = problem_of(ctx, &from);
        owned_plan *plan = refuted(ctx, p, 5, "z0");
        mpl_certified proved;

        p->bytes[0] = UINT64_C(1) << bits;
        assert_status(ctx, mpl_certify(ctx, p, plan, &proved), bits < 60 ? MPL_OK : MPL_EINVALID);
    }
}

/* ---- mutants ---- */

enum { BASES = 96, TEXTS_EACH = 8, HEIGHTS = 400 };

/* Interval lists keep their intervals. */
static small changed(mpl_rng *rng, const small *from)
{
    small p = from->serial ? *from : mutated(rng, from);

    if (p.serial)
        p.size[below(rng, p.n)]++;
    keep_possible_pairs(&p);
    return p;
}

static uint32_t n_pairs(const small *p)
{
    uint32_t n = 0;

    for (uint32_t k = 0; k < MOST * MOST; k++)
        n += p->pair[k / MOST][k % MOST];
    return n;
}

/* A problem with a plan: orders above their bound, orders with pairs, lists with pairs; alignments
 * and fixed offsets. */
static bool make_base(mpl_rng *rng, uint32_t k, const small *kept, small *out)
{
    small p = random_small(rng, k % 3 == 2, k % 4 == 3);

    if (k % 3 == 0) {
        p = k < 6 ? root((int)(k / 3)) : kept[3 * below(rng, k / 3)];
        for (uint32_t i = k < 6 ? 0 : 1 + below(rng, 3); i > 0; i--)
            p = mutated(rng, &p);
    } else {
        offer_pairs(rng, &p);
    }
    if (k % 8 == 5)
        p.fixed[below(rng, p.n)] = (int32_t)(8 * below(rng, 2));
    *out = p;
    if (k % 3 == 0 ? p.n > 8 || brute_fits(&p, clique(&p)) : n_pairs(&p) == 0 || n_pairs(&p) > 5)
        return false;
    return brute_fits(&p, HEIGHTS);
}

static bool sound_plan(const small *p, const mpl_plan *plan, uint64_t within)
{
    bool conflict[MOST][MOST];

    find_conflicts(p, conflict);
    for (uint32_t i = 0; i < p->n; i++) {
        if (plan->offset[i] % p->align[i] != 0 || plan->offset[i] + p->size[i] > within ||
            (p->fixed[i] >= 0 && plan->offset[i] != (uint64_t)p->fixed[i]))
            return false;
        for (uint32_t j = 0; j < i; j++)
            if (conflict[i][j] && plan->offset[i] < plan->offset[j] + p->size[j] &&
                plan->offset[j] < plan->offset[i] + p->size[i] &&
                (plan->offset[i] != plan->offset[j] || (!p->pair[i][j] && !p->pair[j][i])))
                return false;
    }
    return true;
}

static uint64_t n_true, n_false, n_accepted; /* claims; of the true ones */

/* Changes the text, the plan or the claim about p, and checks that an accepted claim is true. */
static void try_text(mpl_ctx *ctx, mpl_rng *rng, const small *p, uint32_t optimum,
                     const mpl_plan *from)
{
    uint64_t bound = below(rng, 2) == 0 ? optimum + 1 : from->refutation.within + below(rng, 3);
    owned_problem *problem = problem_of(ctx, p);
    mpl_certified proved;
    owned_plan *plan;
    mpl_status st;

    bound = bound > 0 ? bound : 1;
    plan = refuted(ctx, problem, bound - 1, changed_steps(rng, from->refutation.steps));
    if (below(rng, 2) == 0) {
        problem->pool_capacity[0] = MPL_NO_CAPACITY;
        plan->claim = below(rng, 8) == 0 ? MPL_INFEASIBLE : MPL_OPTIMAL;
        plan->bound_bytes = bound + below(rng, 2);
        for (uint32_t i = 0; i < plan->n && i < from->n; i++)
            plan->offset[i] = from->offset[i];
        if (below(rng, 2) == 0)
            plan->offset[below(rng, p->n)] += below(rng, 3);
    }
    st = mpl_certify(ctx, problem, plan, &proved);
    if (bound > optimum ||
        (plan->claim == MPL_INFEASIBLE && problem->pool_capacity[0] == MPL_NO_CAPACITY))
        n_false++;
    else
        n_true++, n_accepted += st == MPL_OK;
    if (st == MPL_OK) {
        assert_true(proved.bound <= optimum);
        assert_true(plan->claim == MPL_INFEASIBLE
                        ? problem->pool_capacity[0] < optimum
                        : plan->bound_bytes == optimum && sound_plan(p, plan, optimum));
    } else {
        assert_status(ctx, st, MPL_EINVALID);
    }
}

/* The refutation of one byte less than the optimum, with a plan of the optimum. */
static mpl_plan *make_certificate(mpl_ctx *ctx, const small *p, uint32_t optimum)
{
    owned_problem *problem = problem_of(ctx, p);
    mpl_plan *best = planned_by(ctx, "exact", problem), *none;

    problem->pool_capacity[0] = optimum - 1;
    none = planned_by(ctx, "exact", problem);
    assert_non_null(none->refutation.steps);
    memcpy(none->offset, best->offset, p->n * sizeof *best->offset);
    mpl_plan_free(ctx, best);
    return none;
}

TEST(mutants_prove_nothing_false)
{
    uint64_t n = n_mutants();
    static small kept[BASES];
    mpl_plan *plan[BASES];
    mpl_rng rng = mpl_rng_of(31);

    for (uint32_t k = 0; k < BASES;) {
        if (!make_base(&rng, k, kept, &kept[k]))
            continue;
        plan[k] = make_certificate(ctx, &kept[k], brute_optimum(&kept[k], 1));
        if (k % 3 == 0 || strchr(plan[k]->refutation.steps, 's') != NULL)
            k++;
        else /* no pair matters */
            mpl_plan_free(ctx, plan[k]);
    }
    for (uint64_t i = 0; i < n; i += TEXTS_EACH) {
        uint32_t k = below(&rng, BASES);
        small p = below(&rng, 2) == 0 ? changed(&rng, &kept[k]) : kept[k];
        uint32_t optimum;

        if (!brute_fits(&p, HEIGHTS))
            continue;
        optimum = brute_optimum(&p, 1);
        for (int each = 0; each < TEXTS_EACH; each++)
            try_text(ctx, &rng, &p, optimum, plan[k]);
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
    small hard = root(1);
    owned_problem *p;
    owned_plan *plan;
    mpl_rng rng = mpl_rng_of(24);

    offer_pairs(&rng, &hard);
    p = problem_of(ctx, &hard);
    plan = make_certificate(ctx, &hard, brute_optimum(&hard, 1));
    p->pool_capacity[0] = plan->refutation.within;
    EACH_ALLOCATION_FAILS (ctx, st) {
        mpl_certified proved;

        st = mpl_certify(ctx, p, plan, &proved);
    }
}

TESTS(cheats_are_refused, second_children_begin_anew, clashes_are_certified,
      large_buffers_are_counted, mutants_prove_nothing_false, memory_runs_out)
