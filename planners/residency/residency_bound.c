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

mpl_status mpl_prices_init(mpl_residency *r, mpl_prices *out)
{
    mpl_ctx *ctx = r->run->ctx;
    uint32_t n = r->p->n_steps;

    MPL_PASS(mpl_new_each(ctx, n, out->exact, out->price, out->load, out->slope, out->trial));
    MPL_PASS(mpl_new_each(ctx, r->n_uses, out->fast, out->kept));
    return mpl_new(ctx, out->sum, (size_t)n + 1);
}

void mpl_prices_fini(mpl_residency *r, mpl_prices *prices)
{
    mpl_free_each(r->run->ctx, prices->exact, prices->price, prices->sum, prices->fast,
                  prices->kept, prices->load, prices->slope, prices->trial);
}

/* The bound that these prices prove, as a cost; false: some buffer has no way. */
static bool evaluate(mpl_residency *r, const double *exact, mpl_prices *q, uint64_t *bound)
{
    const mpl_residency_problem *p = r->p;
    uint64_t cost = 0, own;
    mpl_path path = {.price = q->sum};

    for (uint32_t s = 0; s < p->n_steps; s++) {
        q->price[s] = (uint64_t)(exact[s] + 0.5);
        q->sum[s + 1] = q->sum[s] + q->price[s];
        q->load[s] = 0;
    }
    for (mpl_buffer b = 0; b < p->n; b++) {
        if (!mpl_residency_path(r, b, &path, q->fast, q->kept, &own))
            return false;
        cost += own;
        mpl_residency_load(r, b, q->fast, q->kept, 1, true, true, q->load);
    }
    own = 0;
    for (uint32_t s = 0; s < p->n_steps; s++)
        own += q->price[s] * r->room[s];
    *bound = cost <= own ? 0 : (cost - own + MPL_PRICE_PARTS - 1) / MPL_PRICE_PARTS;
    return true;
}

/* One step along the smoothed direction, of a length that would reach `goal` if all were linear. */
static void step(const mpl_residency *r, double share, uint64_t goal, uint64_t bound, mpl_prices *q)
{
    double most =
        (double)(r->p->slow_price > r->p->move_price ? r->p->slow_price : r->p->move_price) * 4 *
        MPL_PRICE_PARTS;
    double norm = 0, length;

    for (uint32_t s = 0; s < r->p->n_steps; s++) {
        double over = (double)q->load[s] - (double)r->room[s], old = 0.7 * q->slope[s];
        double now = 0.3 * over, square;

        q->slope[s] = now + old;
        if (q->slope[s] < 0 && q->trial[s] <= 0)
            q->slope[s] = 0;
        square = q->slope[s] * q->slope[s];
        norm += square;
    }
    if (norm <= 0)
        return;
    length = share * (double)(goal - bound) * MPL_PRICE_PARTS / norm;
    for (uint32_t s = 0; s < r->p->n_steps; s++) {
        double by = length * q->slope[s];

        q->trial[s] += by;
        q->trial[s] = q->trial[s] < 0 ? 0 : q->trial[s] > most ? most : q->trial[s];
    }
}

void mpl_prices_rise(mpl_residency *r, uint32_t rounds, uint64_t goal, mpl_prices *q)
{
    uint32_t n = r->p->n_steps, idle = 0;
    double share = 1;
    uint64_t bound = 0;
    size_t size = n * sizeof *q->exact;

    q->bound = 0;
    memcpy(q->trial, q->exact, size);
    memset(q->slope, 0, size);
    for (uint32_t k = 0; k < rounds && q->bound < goal; k++) {
        if (!evaluate(r, q->trial, q, &bound)) {
            q->bound = UINT64_MAX;
            return;
        }
        if (k == 0 || bound > q->bound) {
            q->bound = bound;
            memcpy(q->exact, q->trial, size);
            idle = 0;
        } else if (++idle == PATIENCE) {
            share /= 2;
            idle = 0;
            memcpy(q->trial, q->exact, size);
            memset(q->slope, 0, size);
            if (!evaluate(r, q->trial, q, &bound))
                return;
        }
        step(r, share, goal > bound ? goal : bound + 1, bound, q);
    }
    (void)evaluate(r, q->exact, q, &bound); /* leaves the ways of the best prices */
}
