/* Lifetimes with gaps: conflicts, bounds, changes of a problem and all planners against a naive
 * step-by-step recount. */
#include "graphs/problem/bounds/bounds.h"
#include "tests/support/random_problem.h"

#include "graphs/problem/fold_pairs.h"
#include "planners/verify/certify.h"

enum { ROUNDS = 400 };

static uint64_t in_slots(const mpl_problem *p, mpl_buffer b, uint64_t grain)
{
    return (p->bytes[b] + grain - 1) / grain * grain;
}

/* Bytes of the buffers needed at `step`, with an output and its in-place input counted once, as the
 * contract says. */
static uint64_t plain_live(const mpl_problem *p, uint32_t pool, uint32_t step)
{
    uint64_t grain = UINT64_MAX, sum = 0, rest = 0;

    for (mpl_buffer b = 0; b < p->n; b++)
        if (p->pool[b] == pool && p->align[b] < grain)
            grain = p->align[b];
    for (mpl_buffer b = 0; b < p->n; b++)
        if (p->pool[b] == pool && plain_needed(p, b, step)) {
            sum += in_slots(p, b, grain);
            rest = mpl_max_u64(rest, in_slots(p, b, grain) - p->bytes[b]);
        }
    return sum - rest;
}

/* Conflicts, peak and witness of problems without pairs (test_graphs_problem covers pairs). */
TEST(count_steps)
{
    mpl_rng rng = mpl_rng_of(3);
    uint32_t n_apart = 0;

    for (uint32_t round = 0; round < draws(ROUNDS); round++) {
        owned_problem *p = random_problem(ctx, &rng, 12, RANDOM_GAPS | round % 4);
        uint64_t live[16], peak = 0, bound = 0, most = 0;
        uint32_t where = 0;
        uint8_t member[12];

        for (mpl_buffer a = 0; a < p->n; a++)
            for (mpl_buffer b = 0; b < p->n; b++) {
                bool want =
                    a != b && p->pool[a] == p->pool[b] && plain_meeting(p, a, b) < p->n_steps;

                assert_int_equal(mpl_conflict(p, a, b), want);
                n_apart += p->birth[a] < p->death[b] && p->birth[b] < p->death[a] && !want;
            }
        assert_ok(ctx, mpl_peak_live(ctx, p, 0, &peak, live, &where));
        for (uint32_t step = 0; step < p->n_steps; step++) {
            assert_int_equal(live[step], plain_live(p, 0, step));
            most = mpl_max_u64(most, live[step]);
        }
        assert_int_equal(peak, most);
        assert_int_equal(live[where], peak);
        assert_ok(ctx, mpl_witness_bound(ctx, p, 0, &bound, member));
        assert_int_equal(bound, peak);
        for (mpl_buffer b = 0; b < p->n; b++)
            assert_int_equal(member[b], p->pool[b] == 0 && plain_needed(p, b, where));
    }
    assert_true(n_apart > draws(ROUNDS)); /* gaps did separate buffers */
}

/* Invalid gaps of a buffer that lives in [1, 9), beside a buffer without gaps. */
static const struct wrong {
    const char *what;
    uint32_t n, from[2], to[2];
    bool right;
} wrongs[] = {
    {"none", 0, {0}, {0}, true},
    {"one", 1, {3}, {5}, true},
    {"two", 2, {2, 5}, {4, 8}, true},
    {"at birth", 1, {1}, {3}, false},
    {"until death", 1, {5}, {9}, false},
    {"empty", 1, {5}, {5}, false},
    {"backwards", 1, {5}, {4}, false},
    {"outside", 1, {0}, {4}, false},
    {"touching", 2, {2, 4}, {4, 6}, false},
    {"crossing", 2, {2, 3}, {4, 6}, false},
    {"descending", 2, {5, 2}, {7, 4}, false},
};

static mpl_problem *two_with_gaps(mpl_ctx *ctx, const struct wrong *w)
{
    mpl_problem *p = NULL;

    assert_ok(ctx, mpl_problem_new(ctx, "two", 2, &p));
    p->n_steps = 9;
    p->bytes[0] = p->bytes[1] = 8;
    p->birth[0] = 1, p->death[0] = 9;
    p->birth[1] = 3, p->death[1] = 5;
    assert_ok(ctx, mpl_new(ctx, p->gap_begin, 3));
    assert_ok(ctx, mpl_new(ctx, p->gap_from, 2));
    assert_ok(ctx, mpl_new(ctx, p->gap_to, 2));
    p->gap_begin[1] = p->gap_begin[2] = w->n;
    memcpy(p->gap_from, w->from, sizeof w->from);
    memcpy(p->gap_to, w->to, sizeof w->to);
    return p;
}

/* Each set of gaps has its own hash; empty gaps hash like a problem without gaps. */
TEST(refuse_wrong)
{
    uint64_t hash[sizeof wrongs / sizeof *wrongs];

    for (size_t i = 0; i < sizeof wrongs / sizeof *wrongs; i++) {
        owned_problem *p = two_with_gaps(ctx, &wrongs[i]);
        mpl_problem bare = *p;

        if ((mpl_problem_check(ctx, p) == MPL_OK) != wrongs[i].right)
            fail_msg("%s: %s", wrongs[i].what, wrongs[i].right ? ctx->message : "accepted");
        hash[i] = mpl_problem_hash(p);
        for (size_t k = 0; k < i; k++)
            assert_true(hash[k] != hash[i]);
        bare.gap_begin = NULL;
        assert_int_equal(mpl_problem_hash(&bare) == hash[i], wrongs[i].n == 0);
    }
}

/* Pairs found by a double loop; reversing time or shuffling rows must not change their number. */
static uint32_t n_conflicts(const mpl_problem *p)
{
    uint32_t n = 0;

    for (mpl_buffer a = 0; a < p->n; a++)
        for (mpl_buffer b = 0; b < a; b++)
            n += p->pool[a] == p->pool[b] && plain_meeting(p, a, b) < p->n_steps;
    return n;
}

TEST(have_twins)
{
    mpl_rng rng = mpl_rng_of(5);

    for (uint32_t round = 0; round < draws(ROUNDS); round++) {
        owned_problem *p = random_problem(ctx, &rng, 12, RANDOM_GAPS | round % 4);
        owned_plan *plan = plain_plan(ctx, p);
        uint64_t hash = mpl_problem_hash(p);
        uint32_t n = n_conflicts(p);

        assert_ok(ctx, mpl_verify(ctx, p, plan));
        assert_ok(ctx, mpl_problem_reverse(ctx, p));
        assert_int_equal(n_conflicts(p), n);
        assert_ok(ctx, mpl_verify(ctx, p, plan));
        assert_ok(ctx, mpl_problem_reverse(ctx, p));
        assert_int_equal(mpl_problem_hash(p), hash);
        assert_ok(ctx, mpl_problem_shuffle(ctx, p, round + 1, plan->offset));
        assert_int_equal(n_conflicts(p), n);
        assert_ok(ctx, mpl_verify(ctx, p, plan));
    }
}

/* A folded buffer is needed whenever one of its members is. */
TEST(fold_gaps)
{
    mpl_rng rng = mpl_rng_of(6);
    uint32_t n_folded = 0;

    for (uint32_t round = 0; round < draws(ROUNDS); round++) {
        owned_problem *p = random_problem(ctx, &rng, 14, RANDOM_GAPS | RANDOM_PAIRS | round % 4),
                      *folded = NULL;
        uint32_t into[14];

        assert_ok(ctx, mpl_problem_fold(ctx, p, &folded, into));
        assert_ok(ctx, mpl_problem_check(ctx, folded));
        n_folded += p->n - folded->n;
        for (uint32_t step = 0; step < p->n_steps; step++)
            for (mpl_buffer f = 0; f < folded->n; f++) {
                bool needed = false;

                for (mpl_buffer b = 0; b < p->n; b++)
                    needed = needed || (into[b] == f && plain_needed(p, b, step));
                assert_int_equal(plain_needed(folded, f, step), needed);
            }
    }
    assert_true(n_folded > draws(ROUNDS) / 4);
}

/* ---- planners ---- */

/* The least height: some order of "next buffer at its lowest free offset" reaches it. No pairs, one
 * pool. */
static uint64_t least_height(const mpl_problem *p, uint64_t *offset, uint32_t placed,
                             uint64_t height, uint64_t best)
{
    for (mpl_buffer b = 0; b < p->n; b++) {
        uint64_t at = 0, top;

        if (placed >> b & 1)
            continue;
        for (mpl_buffer a = 0; a < p->n; a++)
            if ((placed >> a & 1) && plain_meeting(p, a, b) < p->n_steps &&
                offset[a] < at + p->bytes[b] && at < offset[a] + p->bytes[a]) {
                at = (offset[a] + p->bytes[a] + p->align[b] - 1) / p->align[b] * p->align[b];
                a = MPL_NONE;
            }
        offset[b] = at;
        top = mpl_max_u64(height, at + p->bytes[b]);
        if (top < best)
            best = (placed | 1u << b) == (1u << p->n) - 1
                       ? top
                       : least_height(p, offset, placed | 1u << b, top, best);
    }
    return best;
}

static mpl_plan *run_planner(mpl_ctx *ctx, const mpl_planner *planner, const mpl_problem *p)
{
    mpl_plan *plan = plainly_planned(ctx, planner, p, 1000000);

    if (plan != NULL)
        assert_ok(ctx, mpl_verify(ctx, p, plan)); /* including claims and witness */
    return plan;
}

/* Every planner, the exact one against brute force; no planner claims a false optimum. */
TEST(plan_all)
{
    mpl_rng rng = mpl_rng_of(8);
    uint32_t n_gained = 0, n_refuted = 0;
    uint64_t offset[16];

    for (uint32_t round = 0; round < draws(ROUNDS / 4); round++) {
        owned_problem *p = random_problem(ctx, &rng, 7, RANDOM_GAPS | round % 2);
        mpl_problem hull = *p;
        uint64_t least = least_height(p, offset, 0, 0, UINT64_MAX), least_hull;

        hull.gap_begin = NULL;
        least_hull = least_height(&hull, offset, 0, 0, UINT64_MAX);
        n_gained += least < least_hull;
        for (int i = 0; mpl_planners[i] != NULL; i++) {
            const mpl_planner *planner = mpl_planners[i];
            owned_plan *plan = run_planner(ctx, planner, p);

            if (plan == NULL)
                continue;
            assert_true(plan->peak_bytes >= least && plan->bound_bytes <= least);
            if (plan->claim == MPL_OPTIMAL)
                assert_int_equal(plan->peak_bytes, least);
            if (strcmp(planner->name, "exact") == 0) {
                mpl_certified proved;

                assert_int_equal(plan->claim, MPL_OPTIMAL);
                assert_ok(ctx, mpl_certify(ctx, p, plan, &proved));
                assert_int_equal(proved.bound, least);
                n_refuted += proved.evidence == MPL_EVIDENCE_REFUTATION;
            }
            if ((planner->traits & MPL_USES_GAPS) == 0)
                assert_true(plan->peak_bytes >= least_hull);
        }
    }
    print_message("gaps lower the optimum of %u problems in %d; %u optima are above the bound, and "
                  "refuted below\n",
                  n_gained, draws(ROUNDS / 4), n_refuted);
    assert_true(n_gained > draws(10) && n_refuted > draws(10));
}

/* Larger problems with pairs and pools: each planner's plan verifies and is deterministic. */
TEST(plan_pairs)
{
    mpl_rng rng = mpl_rng_of(9);

    for (uint32_t round = 0; round < 40; round += in_short() ? 5 : 1) {
        owned_problem *p = random_problem(ctx, &rng, 16, RANDOM_GAPS | RANDOM_PAIRS | round % 4);

        for (int i = 0; mpl_planners[i] != NULL; i++) {
            const mpl_planner *planner = mpl_planners[i];
            owned_plan *one = run_planner(ctx, planner, p);
            mpl_plan *two;

            if (one == NULL)
                continue;
            two = run_planner(ctx, planner, p);
            assert_memory_equal(one->offset, two->offset, p->n * sizeof *one->offset);
            mpl_plan_free(ctx, two);
        }
    }
}

/* A capacity that only a plan with gaps meets proves nothing for planners that ignore gaps. */
TEST(keep_quiet)
{
    const struct wrong gap = {"", 1, {3, 0}, {5, 0}, true};
    const char *ilp[] = {"exact", "ilp"};

    for (int i = 0; i < 2; i++) {
        const mpl_planner *planner = mpl_planner_find(ilp[i]);
        owned_problem *p = two_with_gaps(ctx, &gap);
        owned_plan *plan = NULL;
        mpl_run run;

        p->pool_capacity[0] = 8;
        run = mpl_run_default(ctx);
        if (planner->plan != NULL)
            assert_status(ctx, mpl_planner_run(planner, &run, p, &plan),
                          i == 0 ? MPL_OK : MPL_ELIMIT);
    }
}

/* Code with allocations: folding, twins, the entry check. */
TEST(survive_lost_memory)
{
    mpl_rng rng = mpl_rng_of(11);
    owned_problem *p = random_problem(ctx, &rng, 12, RANDOM_GAPS);

    for (int what = 0; what < 4; what++) {
        EACH_ALLOCATION_FAILS (ctx, st) {
            owned_problem *folded = NULL;
            owned_plan *plan = NULL;
            uint32_t into[12];
            uint8_t member[12];
            uint64_t bound;
            mpl_run run = mpl_run_default(ctx);

            st = what == 0   ? mpl_problem_fold(ctx, p, &folded, into)
                 : what == 1 ? mpl_problem_shuffle(ctx, p, 2, NULL)
                 : what == 2 ? mpl_lower_bound(ctx, p, 0, &bound, member)
                             : mpl_planner_run(mpl_planner_find("pool"), &run, p, &plan);
        }
    }
}

TESTS(count_steps, refuse_wrong, have_twins, fold_gaps, plan_all, plan_pairs, keep_quiet,
      survive_lost_memory)
