/* test_planners_ends.c -- bounds raised to the next end that alignments allow, against the least
 * plan by brute force. */
#include "graphs/problem/bounds/bounds.h"
#include "tests/support/placement_oracle.h"

#include "planners/verify/verify.h"

/* What the set alone proves: whole slots, minus the largest rounding. */
static uint64_t set_sum(const mpl_problem *p, const uint8_t *member)
{
    uint64_t grain = UINT64_MAX, sum = 0, rest = 0;

    for (mpl_buffer b = 0; b < p->n; b++)
        grain = p->pool[b] == 0 && p->align[b] < grain ? p->align[b] : grain;
    for (mpl_buffer b = 0; b < p->n; b++)
        if (member[b]) {
            uint64_t slots = round_up(p->bytes[b], grain);

            sum += slots;
            rest = slots - p->bytes[b] > rest ? slots - p->bytes[b] : rest;
        }
    return sum - rest;
}

/* The verifier accepts every bound from `sum` to `bound`, and none above it. */
static void check_verdicts(mpl_ctx *ctx, const mpl_problem *p, uint64_t sum, uint64_t bound)
{
    owned_plan *plan = planned_by(ctx, "none", p);

    assert_int_equal(plan->bound_bytes, bound);
    assert_true(plan->n_witness > 0);
    plan->claim = MPL_FEASIBLE;
    for (uint64_t at = sum > 0 ? sum - 1 : 0; at <= plan->peak_bytes; at++) {
        plan->bound_bytes = at;
        assert_status(ctx, mpl_verify(ctx, p, plan),
                      at >= sum && at <= bound ? MPL_OK : MPL_EINVALID);
    }
}

/* Fault: a bound raised above the optimum, or not up to the next end; a search that goes on when
 * nothing is left. */
TEST(bounds_are_ends)
{
    uint32_t n_raised = 0, n_met = 0;
    mpl_rng rng = mpl_rng_of(11);

    for (uint32_t round = 0; round < draws(3000); round++) {
        unsigned what = RANDOM_ALIGNED | (round % 2 ? RANDOM_PARALLEL : RANDOM_GAPS) |
                        (round % 3 ? 0 : RANDOM_POOLS);
        owned_problem *p = random_problem(ctx, &rng, 2 + round % 5, what);
        uint8_t member[8];
        uint64_t bound, again, sum, least;

        for (mpl_buffer b = 0; b < p->n; b++)
            p->align[b] *= 2;
        p->pool[0] = 0;
        assert_ok(ctx, mpl_lower_bound(ctx, p, 0, &bound, member));
        assert_ok(ctx, mpl_lower_bound(ctx, p, 0, &again, NULL));
        assert_int_equal(bound, again);
        sum = set_sum(p, member), least = least_peak(ctx, p);
        assert_true(sum <= bound && bound <= least);
        for (uint64_t end = sum; end < bound; end++) /* no buffer can end there */
            for (mpl_buffer b = 0; b < p->n; b++)
                assert_false(p->pool[b] == 0 && end >= p->bytes[b] &&
                             (end - p->bytes[b]) % p->align[b] == 0);
        check_verdicts(ctx, p, sum, bound);
        n_raised += bound > sum;
        n_met += bound > sum && bound == least;
    }
    print_message("%u of %u raised, %u of them to the optimum\n", n_raised, draws(3000), n_met);
    assert_true(often(n_raised > 100 && n_met > 100));
}

TESTS(bounds_are_ends)
