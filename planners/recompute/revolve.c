/* revolve.c -- which states of a loop are kept, and which rounds run again. See revolve.h.
 *
 * Idea     From the state of round p, with free slots left, advance to a round q, keep its state,
 *          go back through the rounds from q on with one slot less, then through those before q.
 *          Without a free slot, each round is reached from p anew.
 * Source   A. Griewank, A. Walther, "Algorithm 799: revolve", ACM TOMS 26(1), 2000: t(l, c) = r l -
 *          C(c + r, c + 1) rounds are the least, and any q with C(c + r - 2, c) <= q - p <= C(c + r
 *          - 1, c) and C(c + r - 2, c - 1) <= l - (q - p) <= C(c + r - 1, c - 1) has them. sqrt:
 *          Chen and others, "Training Deep Nets with Sublinear Memory Cost", 2016.
 * Differs  The smallest such q. A list of actions, made at once instead of on request.
 * Cost     O(actions * r). */
#include "planners/recompute/revolve.h"

#include "graphs/orders/work.h"

/* C(c + r, c), saturated; 0 for r < 0. */
static uint64_t reach(uint64_t c, int64_t r)
{
    uint64_t n = r < 0 ? 0 : 1;

    for (int64_t i = 1; i <= r && n < MPL_MOST_WORK / (c + (uint64_t)r + 1); i++)
        n = n * (c + (uint64_t)i) / (uint64_t)i;
    return n;
}

/* The least r with l <= C(c + r, c). */
static int64_t repeats(uint64_t l, uint64_t c)
{
    int64_t r = 0;

    for (uint64_t n = 1; n < l; r++)
        n = n * (c + (uint64_t)r + 1) / ((uint64_t)r + 1);
    return r;
}

uint64_t mpl_revolve_rounds(uint32_t n_rounds, uint32_t slots)
{
    int64_t r = repeats(n_rounds, slots);

    return (uint64_t)r * n_rounds - reach((uint64_t)slots + 1, r - 1);
}

/* Rounds from the state at hand to the next one kept; l > 1 rounds in c > 1 slots. */
static uint32_t split(uint32_t l, uint32_t c)
{
    int64_t r = repeats(l, c);
    uint64_t least = reach(c, r - 2), rest = reach((uint64_t)c - 1, r);

    return (uint32_t)mpl_max_u64(1, mpl_max_u64(least, l > rest ? l - rest : 0));
}

static mpl_status add(mpl_ctx *ctx, mpl_schedule *schedule, mpl_schedule_action action)
{
    MPL_PASS(mpl_reserve(ctx, schedule->action, schedule->room, (size_t)schedule->n_actions + 1));
    schedule->action[schedule->n_actions++] = action;
    if (action.step == MPL_ADVANCE)
        schedule->n_forward += action.to - action.from;
    return MPL_OK;
}

static mpl_status advance(mpl_ctx *ctx, mpl_schedule *schedule, uint32_t row, uint32_t from,
                          uint32_t to, uint32_t store)
{
    return add(ctx, schedule, (mpl_schedule_action){MPL_ADVANCE, row, from, to, store});
}

static mpl_status reverse(mpl_ctx *ctx, mpl_schedule *schedule, uint32_t row, uint32_t round)
{
    return add(ctx, schedule, (mpl_schedule_action){MPL_REVERSE, row, round, round + 1, row});
}

static mpl_status check(mpl_ctx *ctx, uint64_t n_forward, uint32_t n_rounds, uint32_t slots)
{
    if (n_forward > MPL_MOST_FORWARD)
        return MPL_ERROR(ctx, MPL_ELIMIT,
                         "a loop of %" PRIu32 " rounds would run %" PRIu64
                         " rounds forward in %" PRIu32 " slots, more than the %d that a table "
                         "may have; more slots take fewer",
                         n_rounds, n_forward, slots, MPL_MOST_FORWARD);
    return MPL_OK;
}

mpl_status mpl_schedule_revolve(mpl_ctx *ctx, uint32_t n_rounds, uint32_t slots, mpl_schedule *out)
{
    mpl_status st = MPL_OK;
    mpl_schedule s = {.n_rounds = n_rounds};
    uint32_t *from = NULL, *end = NULL, top = 0; /* slot k: the state of from[k], until end[k] */
    uint32_t current;

    while (slots == 0 && (UINT64_C(1) << s.n_rows) < n_rounds)
        s.n_rows++;
    slots = slots == 0 ? s.n_rows : slots;
    slots = slots == 0 ? 1 : slots < n_rounds ? slots : n_rounds;
    current = slots;
    s.n_rows = slots + 1;
    MPL_TRY(check(ctx, n_rounds - 1, n_rounds, slots)); /* at least; keeps the next line short */
    MPL_TRY(check(ctx, mpl_revolve_rounds(n_rounds, slots), n_rounds, slots));
    MPL_TRY(mpl_new_each(ctx, slots, from, end));
    end[0] = n_rounds;
    for (;;) {
        uint32_t p = from[top], l = end[top] - p, left = slots - 1 - top;

        if (l == 1) {
            MPL_TRY(reverse(ctx, &s, top, p));
            if (top == 0)
                break;
            end[--top] = p;
        } else if (left == 0) {
            MPL_TRY(advance(ctx, &s, top, p, p + l - 1, current));
            MPL_TRY(reverse(ctx, &s, current, p + l - 1));
            end[top]--;
        } else {
            from[top + 1] = p + split(l, left + 1);
            end[top + 1] = end[top];
            MPL_TRY(advance(ctx, &s, top, p, from[top + 1], top + 1));
            top++;
        }
    }
    *out = s;
    s = (mpl_schedule){0};
out:
    mpl_schedule_fini(ctx, &s);
    mpl_free_each(ctx, from, end);
    return st;
}

mpl_status mpl_schedule_sqrt(mpl_ctx *ctx, uint32_t n_rounds, uint32_t slots, mpl_schedule *out)
{
    mpl_status st = MPL_OK;
    mpl_schedule s = {.n_rounds = n_rounds};
    uint32_t m = 1, n;

    (void)slots;
    MPL_TRY(check(ctx, n_rounds - 1, n_rounds, 0));
    while ((uint64_t)m * m < n_rounds)
        m++;
    n = (n_rounds - 1) / m + 1;
    s.n_rows = n + m - 1;
    MPL_TRY(check(ctx, n_rounds - 1 + (uint64_t)(n - 1) * (m - 1), n_rounds, s.n_rows));
    for (uint32_t k = 0; k + 1 < n; k++)
        MPL_TRY(advance(ctx, &s, k, k * m, (k + 1) * m, k + 1));
    for (uint32_t k = n; k-- > 0;) {
        uint32_t begin = k * m, length = n_rounds - begin < m ? n_rounds - begin : m;

        for (uint32_t i = 1; i < length; i++)
            MPL_TRY(advance(ctx, &s, i == 1 ? k : n + i - 2, begin + i - 1, begin + i, n + i - 1));
        for (uint32_t i = length; i-- > 0;)
            MPL_TRY(reverse(ctx, &s, i == 0 ? k : n + i - 1, begin + i));
    }
    *out = s;
    s = (mpl_schedule){0};
out:
    mpl_schedule_fini(ctx, &s);
    return st;
}

void mpl_schedule_fini(mpl_ctx *ctx, mpl_schedule *schedule)
{
    mpl_free(ctx, schedule->action);
    *schedule = (mpl_schedule){0};
}
