/* residency_solve.c -- the plan of least cost. See residency.h. */
#include "planners/residency/residency_priv.h"

#define NODE_TICKS    UINT64_C(20000)   /* of a budget, for a node of the program */
#define DEFAULT_TICKS UINT64_C(4000000) /* buffers decided: a few seconds */

enum { NEAR_ROUNDS = 40, MOST_ROUNDS = 40000, RISE_ROUNDS = 600, MOST_TRIES = 24, MOST_NODES = 50 };

static uint64_t near_rounds(const mpl_residency *residency)
{
    return mpl_min_u64((uint64_t)NEAR_ROUNDS * residency->n_uses, MOST_ROUNDS);
}

/* A plan that is placed: where offsets are not found, the searches get less than the capacity. */
static mpl_status start(mpl_residency *residency, const mpl_prices *prices,
                        mpl_residency_plan *plan)
{
    uint64_t capacity = residency->capacity;
    mpl_placed placed = {0};

    for (uint32_t k = 0; k < MOST_TRIES; k++) {
        uint64_t less;

        MPL_PASS(mpl_residency_first(residency, prices, capacity, plan->fast, plan->kept));
        MPL_PASS(mpl_residency_near(residency, prices, capacity, near_rounds(residency),
                                    prices->bound, plan->fast, plan->kept));
        MPL_PASS(
            mpl_residency_place(residency, plan->fast, plan->kept, 0, NULL, plan->place, &placed));
        if (placed.fits) {
            plan->cost = mpl_residency_total(residency, plan->fast, plan->kept);
            return MPL_OK;
        }
        less = mpl_align_up((placed.least - residency->p->capacity) / 2 + 1, residency->p->align);
        capacity -= mpl_min_u64(less, capacity / 8 + 1);
    }
    return MPL_ERROR(residency->run->ctx, MPL_ELIMIT,
                     "residency: no offsets were found within %" PRIu64 " bytes of fast memory",
                     residency->p->capacity);
}

/* The bound by prices, towards the cost of a plan whose offsets do not count. */
static mpl_status rise(mpl_residency *residency, mpl_prices *prices, mpl_residency_plan *plan)
{
    uint64_t cost;

    MPL_PASS(mpl_residency_belady(residency->run->ctx, residency->p, &cost, NULL));
    mpl_prices_rise(residency, RISE_ROUNDS, cost, prices);
    MPL_PASS(mpl_residency_first(residency, prices, residency->capacity, plan->fast, plan->kept));
    MPL_PASS(mpl_residency_near(residency, prices, residency->capacity, near_rounds(residency),
                                prices->bound, plan->fast, plan->kept));
    cost = mpl_residency_total(residency, plan->fast, plan->kept);
    if (cost > prices->bound)
        mpl_prices_rise(residency, RISE_ROUNDS, cost, prices);
    return MPL_OK;
}

/* Takes ways over that are placed and cost less. */
static mpl_status take_ways(mpl_residency *residency, const uint8_t *fast, const uint8_t *kept,
                            uint64_t *place, mpl_residency_plan *plan)
{
    uint64_t cost = mpl_residency_total(residency, fast, kept);
    mpl_placed placed = {0};

    if (cost >= plan->cost)
        return MPL_OK;
    MPL_PASS(mpl_residency_place(residency, fast, kept, 0, NULL, place, &placed));
    if (!placed.fits)
        return MPL_OK;
    plan->cost = cost;
    memcpy(plan->fast, fast, residency->n_uses);
    memcpy(plan->kept, kept, residency->n_uses);
    memcpy(plan->place, place, residency->n_uses * sizeof *place);
    return MPL_OK;
}

/* The ways of the rules, then the mixed integer program: its ways, and its bound. */
static mpl_status by_program(mpl_residency *residency, uint64_t ticks, mpl_residency_plan *plan)
{
    mpl_status st = MPL_OK;
    mpl_ctx *ctx = residency->run->ctx;
    uint8_t *fast = NULL, *kept = NULL;
    uint64_t *place = NULL, bound;
    bool found;

    MPL_TRY(mpl_new_each(ctx, residency->n_uses, fast, kept));
    MPL_TRY(mpl_new(ctx, place, residency->n_uses));
    MPL_TRY(mpl_residency_belady_ways(residency, fast, kept));
    MPL_TRY(take_ways(residency, fast, kept, place, plan));
    MPL_TRY(mpl_residency_greedy_ways(residency, fast, kept));
    MPL_TRY(take_ways(residency, fast, kept, place, plan));
    MPL_TRY(mpl_residency_program(residency, mpl_min_u64(1 + ticks / NODE_TICKS, MOST_NODES),
                                  &bound, fast, kept, &found));
    if (found)
        MPL_TRY(take_ways(residency, fast, kept, place, plan));
    bound = mpl_min_u64(bound, plan->cost);
    if (bound > plan->bound) {
        plan->bound = bound;
        plan->searched = plan->programmed = true;
    }
out:
    mpl_free_each(ctx, fast, kept, place);
    return st;
}

mpl_status mpl_residency_solve(mpl_run *run, const mpl_residency_problem *p,
                               mpl_residency_plan **out)
{
    mpl_status st = MPL_OK;
    mpl_residency r = {.run = run};
    mpl_prices prices = {0};
    mpl_timing timing = {0};
    mpl_residency_plan *plan = NULL;
    uint64_t ticks = run->budget_ticks == UINT64_MAX ? DEFAULT_TICKS : run->budget_ticks;

    MPL_TRY(mpl_residency_init(run, p, &r));
    MPL_TRY(mpl_residency_room(&r));
    MPL_TRY(mpl_prices_init(&r, &prices));
    MPL_TRY(mpl_residency_plan_new(run->ctx, p, &plan));
    MPL_TRY(rise(&r, &prices, plan));
    MPL_TRY(start(&r, &prices, plan));
    plan->bound = prices.bound;
    for (uint32_t s = 0; s < p->n_steps; s++)
        plan->step_price[s] = prices.price[s];
    if (plan->cost > plan->bound)
        MPL_TRY(mpl_residency_search(&r, &prices, r.ticks + ticks / 8, plan));
    if (plan->cost > plan->bound)
        MPL_TRY(by_program(&r, ticks, plan));
    if (plan->cost > plan->bound)
        MPL_TRY(mpl_residency_search(&r, &prices, r.ticks + ticks, plan));
    MPL_TRY(mpl_timing_init(&r, &timing));
    if (p->bandwidth > 0)
        MPL_TRY(mpl_residency_stall(&r, &prices, ticks, plan, &timing));
    else
        timing.n = mpl_residency_moves(&r, plan->fast, plan->kept, timing.move);
    MPL_TRY(mpl_residency_finish(&r, timing.n, timing.move, plan));
    run->ticks = r.ticks;
    *out = plan, plan = NULL;
out:
    mpl_residency_plan_free(run->ctx, plan);
    mpl_timing_fini(&r, &timing);
    mpl_prices_fini(&r, &prices);
    mpl_residency_fini(&r);
    return st;
}
