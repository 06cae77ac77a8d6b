/* residency.c -- problems and plans of residency in time. See residency.h. */
#include "planners/plan/residency.h"

#define MOST (UINT64_C(1) << 61)

mpl_status mpl_residency_problem_new(mpl_ctx *ctx, const char *name, uint32_t n, uint32_t n_uses,
                                     mpl_residency_problem **out)
{
    mpl_status st = MPL_OK;
    mpl_residency_problem *p = NULL;

    MPL_TRY(mpl_new(ctx, p, 1));
    p->n = n;
    p->move_price = 1;
    p->align = 1;
    MPL_TRY(mpl_copy_text(ctx, p->name, name));
    MPL_TRY(mpl_new_each(ctx, n, p->buffer_name, p->bytes));
    MPL_TRY(mpl_new(ctx, p->begin, (size_t)n + 1));
    MPL_TRY(mpl_new_each(ctx, n_uses, p->at, p->writes));
    *out = p, p = NULL;
out:
    mpl_residency_problem_free(ctx, p);
    return st;
}

void mpl_residency_problem_free(mpl_ctx *ctx, mpl_residency_problem *p)
{
    if (p == NULL)
        return;
    for (mpl_buffer b = 0; p->buffer_name != NULL && b < p->n; b++)
        mpl_free(ctx, p->buffer_name[b]);
    mpl_free_each(ctx, p->name, p->buffer_name, p->bytes, p->begin, p->at, p->writes, p->step_ns,
                  p);
}

mpl_status mpl_residency_plan_new(mpl_ctx *ctx, const mpl_residency_problem *p,
                                  mpl_residency_plan **out)
{
    mpl_status st = MPL_OK;
    mpl_residency_plan *plan = NULL;

    MPL_TRY(mpl_new(ctx, plan, 1));
    plan->n = p->n;
    plan->n_uses = p->begin[p->n];
    MPL_TRY(mpl_new_each(ctx, plan->n_uses, plan->fast, plan->kept, plan->place));
    MPL_TRY(mpl_new(ctx, plan->step_price, p->n_steps));
    *out = plan, plan = NULL;
out:
    mpl_residency_plan_free(ctx, plan);
    return st;
}

void mpl_residency_plan_free(mpl_ctx *ctx, mpl_residency_plan *plan)
{
    if (plan != NULL)
        mpl_free_each(ctx, plan->fast, plan->kept, plan->place, plan->move, plan->step_price, plan);
}

uint64_t mpl_residency_ns(const mpl_residency_problem *p, uint64_t bytes)
{
    __extension__ typedef unsigned __int128 wide;

    return (uint64_t)(((wide)bytes * 1000000000 + p->bandwidth - 1) / p->bandwidth);
}

/* ---- checks ---- */

static const char *label(const mpl_residency_problem *p, mpl_buffer b)
{
    return p->buffer_name[b] != NULL ? p->buffer_name[b] : "(no name)";
}

static mpl_status check_buffer(mpl_ctx *ctx, const mpl_residency_problem *p, mpl_buffer b)
{
    if (p->begin[b] >= p->begin[b + 1] || p->bytes[b] == 0)
        return MPL_REFUSE(ctx, "residency: buffer %" PRIu32 " '%.100s' has no %s", b, label(p, b),
                          p->bytes[b] == 0 ? "bytes" : "uses");
    for (uint32_t i = p->begin[b]; i < p->begin[b + 1]; i++)
        if (p->at[i] >= p->n_steps || (i > p->begin[b] && p->at[i] <= p->at[i - 1]) ||
            (i == p->begin[b] && !p->writes[i]))
            return MPL_REFUSE(ctx,
                              "residency: buffer %" PRIu32 " '%.100s' has a use at step %" PRIu32
                              ": uses ascend below step %" PRIu32 ", and the first one writes",
                              b, label(p, b), p->at[i], p->n_steps);
    return MPL_OK;
}

static mpl_status check_steps(mpl_ctx *ctx, const mpl_residency_problem *p)
{
    mpl_status st = MPL_OK;
    uint64_t *need = NULL;

    MPL_TRY(mpl_new(ctx, need, p->n_steps));
    for (mpl_buffer b = 0; b < p->n; b++)
        for (uint32_t i = p->begin[b]; i < p->begin[b + 1]; i++)
            need[p->at[i]] += mpl_align_up(p->bytes[b], p->align);
    for (uint32_t s = 0; p->slow_price == 0 && s < p->n_steps; s++)
        if (need[s] > mpl_align_up(p->capacity, p->align))
            MPL_FAIL(ctx, MPL_EINPUT,
                     "residency: the operands of step %" PRIu32 " take %" PRIu64
                     " bytes, fast memory has %" PRIu64
                     "; with a price of slow memory (slow:inf:8) a step may use some there",
                     s, need[s], p->capacity);
out:
    mpl_free(ctx, need);
    return st;
}

/* `bytes`: more than all that can move. */
static mpl_status check_times(mpl_ctx *ctx, const mpl_residency_problem *p, uint64_t bytes)
{
    uint64_t sum = 0;

    if ((p->bandwidth > 0) != (p->step_ns != NULL))
        return MPL_REFUSE(ctx, "residency: a bandwidth comes with durations of all steps");
    for (uint32_t s = 0; p->bandwidth > 0 && s < p->n_steps; s++)
        if (!mpl_add_bytes(sum, p->step_ns[s], &sum) || sum > MOST)
            return MPL_REFUSE(ctx, "residency: durations of steps pass 2^61 ns");
    if (p->bandwidth > 0 && bytes / p->bandwidth > MOST / 4000000000)
        return MPL_REFUSE(ctx, "residency: at %" PRIu64 " bytes a second moves pass 2^61 ns",
                          p->bandwidth);
    return check_steps(ctx, p);
}

mpl_status mpl_residency_check(mpl_ctx *ctx, const mpl_residency_problem *p)
{
    uint64_t most = mpl_max_u64(p->move_price, p->slow_price), sum = p->capacity, all;

    if (p->move_price == 0 || p->align == 0 || (p->align & (p->align - 1)) != 0)
        return MPL_REFUSE(ctx, "residency: a byte that moves has a price of at least 1, and the "
                               "alignment is a power of two");
    for (mpl_buffer b = 0; b < p->n; b++) {
        MPL_PASS(check_buffer(ctx, p, b));
        if (p->bytes[b] > MOST ||
            !mpl_mul_bytes(p->bytes[b] + p->align, p->begin[b + 1] - p->begin[b], &all) ||
            !mpl_add_bytes(sum, all, &sum))
            sum = UINT64_MAX / 2;
    }
    /* the prices of steps reach 4 times the highest price; every sum of costs stays below 2^62 */
    if (!mpl_mul_bytes(sum, most, &all) || !mpl_mul_bytes(all, 8 * MPL_PRICE_PARTS, &all) ||
        !mpl_mul_bytes(all, (uint64_t)p->n_steps + 1, &all) || all > MOST)
        return MPL_REFUSE(ctx, "residency: bytes times prices times steps pass 2^48");
    return check_times(ctx, p, sum);
}
