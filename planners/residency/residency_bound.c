/* residency_bound.c -- a lower bound on the cost by prices of fast memory. See residency_priv.h.
 *
 * Idea     Each byte of fast memory has a price at each step, and the capacity is rented out, or
 *          what of it whole buffers can fill. What the cheapest ways of all buffers cost then,
 *          minus the rent, no plan can go below: one within the capacity pays at most the rent. The
 * best prices give the bound of the linear relaxation, as each buffer alone is a shortest path.
 * Source   Lagrangian relaxation (Held, Wolfe, Crowder, Validation of subgradient optimization,
 *          Mathematical Programming 6, 1974: step (1)), with smoothed directions
 * Differs  Prices are rounded to parts, and the bound is computed in whole numbers from them. */
#include "planners/residency/residency_priv.h"

enum { PATIENCE = 12 };

mpl_status mpl_prices_init(mpl_residency *residency, mpl_prices *out)
{
    mpl_ctx *ctx = residency->run->ctx;
    uint32_t n = residency->p->n_steps;

    MPL_PASS(mpl_new_each(ctx, n, out->exact, out->price, out->load, out->slope, out->trial));
    MPL_PASS(mpl_new_each(ctx, residency->n_uses, out->fast, out->kept));
    return mpl_new(ctx, out->sum, (size_t)n + 1);
}

void mpl_prices_fini(mpl_residency *residency, mpl_prices *prices)
{
    mpl_free_each(residency->run->ctx, prices->exact, prices->price, prices->sum, prices->fast,
                  prices->kept, prices->load, prices->slope, prices->trial);
}

/* The bound that these prices prove, as a cost; false: some buffer has no way. */
static bool evaluate(mpl_residency *residency, const double *exact, mpl_prices *prices,
                     uint64_t *bound)
{
    const mpl_residency_problem *p = residency->p;
    uint64_t cost = 0, own;
    mpl_path path = {.price = prices->sum};

    for (uint32_t s = 0; s < p->n_steps; s++) {
        prices->price[s] = (uint64_t)(exact[s] + 0.5);
        prices->sum[s + 1] = prices->sum[s] + prices->price[s];
        prices->load[s] = 0;
    }
    for (mpl_buffer b = 0; b < p->n; b++) {
        if (!mpl_residency_path(residency, b, &path, prices->fast, prices->kept, &own))
            return false;
        cost += own;
        mpl_residency_load(residency, b, prices->fast, prices->kept, 1, true, true, prices->load);
    }
    own = 0;
    for (uint32_t s = 0; s < p->n_steps; s++)
        own += prices->price[s] * residency->room[s];
    *bound = cost <= own ? 0 : (cost - own + MPL_PRICE_PARTS - 1) / MPL_PRICE_PARTS;
    return true;
}

/* One step along the smoothed direction, of a length that would reach `goal` if all were linear. */
static void step(const mpl_residency *residency, double share, uint64_t goal, uint64_t bound,
                 mpl_prices *prices)
{
    double most =
        (double)(residency->p->slow_price > residency->p->move_price ? residency->p->slow_price
                                                                     : residency->p->move_price) *
        4 * MPL_PRICE_PARTS;
    double norm = 0, length;

    for (uint32_t s = 0; s < residency->p->n_steps; s++) {
        double over = (double)prices->load[s] - (double)residency->room[s],
               old = 0.7 * prices->slope[s];
        double now = 0.3 * over, square;

        prices->slope[s] = now + old;
        if (prices->slope[s] < 0 && prices->trial[s] <= 0)
            prices->slope[s] = 0;
        square = prices->slope[s] * prices->slope[s];
        norm += square;
    }
    if (norm <= 0)
        return;
    length = share * (double)(goal - bound) * MPL_PRICE_PARTS / norm;
    for (uint32_t s = 0; s < residency->p->n_steps; s++) {
        double by = length * prices->slope[s];

        prices->trial[s] += by;
        prices->trial[s] = prices->trial[s] < 0      ? 0
                           : prices->trial[s] > most ? most
                                                     : prices->trial[s];
    }
}

void mpl_prices_rise(mpl_residency *residency, uint32_t rounds, uint64_t goal, mpl_prices *prices)
{
    uint32_t n = residency->p->n_steps, idle = 0;
    double share = 1;
    uint64_t bound = 0;
    size_t size = n * sizeof *prices->exact;

    prices->bound = 0;
    memcpy(prices->trial, prices->exact, size);
    memset(prices->slope, 0, size);
    for (uint32_t k = 0; k < rounds && prices->bound < goal; k++) {
        if (!evaluate(residency, prices->trial, prices, &bound)) {
            prices->bound = UINT64_MAX;
            return;
        }
        if (k == 0 || bound > prices->bound) {
            prices->bound = bound;
            memcpy(prices->exact, prices->trial, size);
            idle = 0;
        } else if (++idle == PATIENCE) {
            share /= 2;
            idle = 0;
            memcpy(prices->trial, prices->exact, size);
            memset(prices->slope, 0, size);
            if (!evaluate(residency, prices->trial, prices, &bound))
                return;
        }
        step(residency, share, goal > bound ? goal : bound + 1, bound, prices);
    }
    (void)evaluate(residency, prices->exact, prices, &bound); /* leaves the ways of the best prices
                                                               */
}
