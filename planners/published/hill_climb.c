/* hill_climb.c -- improves an order of placement by swaps among the buffers that hold up the
 * highest one.
 *
 * Idea     The buffer at the peak lies there because of buffers placed before it. Swap two of its
 *          earlier rivals, or of their earlier rivals, and keep the order if the peak falls.
 * Source   Apache TVM, Unified Static Memory Planner, src/tir/usmp/algo/hill_climb.cc (1.0 and
 *          before): the start by size, then number of conflicts; 500 attempts; one of the buffers
 *          at the peak; the first of the two swapped from the first level, the other from the
 *          second (three times of four) or the first; an order that is worse is kept with a
 *          probability that falls with the attempts.
 * Differs  Keeps the best plan; the source keeps the last one accepted. An attempt without a swap
 *          leaves the order; the source repeats the previous swap. Ties end in the id, not in the
 *          name. Another random generator. Each pool has its own attempts. Never worse than
 *          greedy_size.
 * Families Each is placed as one, where its parts fit. At first, a quarter of the budget goes to
 *          whole buffers, which then sink.
 * Cost     O(conflicts) an attempt, 8 bytes a conflict. Without a budget the attempts end it.
 * Limits   Swaps far from the peak are never tried; no bound on the distance to the optimum. */
#include "graphs/core/rng.h"
#include "planners/place/packing.h"

#define ATTEMPTS 500

typedef struct climb {
    mpl_packing *packing;
    uint32_t *order; /* [n] */
    uint64_t *kept;  /* [n] offsets before the last swap */
    mpl_rng rng;
} climb;

static bool stands_ahead(const mpl_packing *packing, uint32_t c, uint32_t a)
{
    return packing->at[c] < packing->at[a] && packing->fixed[c] == MPL_UNFIXED;
}

/* Number of a's rivals that come before it in the order. */
static uint32_t count_ahead(mpl_packing *packing, uint32_t a)
{
    uint32_t n = 0;

    for (uint32_t i = packing->begin[a]; i < packing->begin[a + 1]; i++)
        n += stands_ahead(packing, packing->rival[i], a);
    packing->ticks += packing->begin[a + 1] - packing->begin[a];
    return n;
}

/* The k-th of them, from 0. */
static uint32_t nth_ahead(const mpl_packing *packing, uint32_t a, uint64_t k)
{
    uint32_t i = packing->begin[a];

    while (!stands_ahead(packing, packing->rival[i], a) || k-- > 0)
        i++;
    return packing->rival[i];
}

static uint32_t pick_peak(climb *self, uint64_t height)
{
    mpl_packing *packing = self->packing;
    uint32_t n_seen = 0, pick = 0;

    for (uint32_t a = 0; a < packing->n; a++)
        if (packing->offset[a] + packing->bytes[a] == height &&
            mpl_rng_below(&self->rng, ++n_seen) == 0)
            pick = a;
    return pick;
}

/* Picks from the second level, with repetitions: a rival of a rival of `a`, placed before that. */
static uint32_t pick_second(climb *self, uint32_t a, uint64_t n_second)
{
    mpl_packing *packing = self->packing;
    uint64_t k = mpl_rng_below(&self->rng, n_second);
    uint32_t i = packing->begin[a];

    for (uint32_t n; k >= (n = count_ahead(packing, packing->rival[i])); i++)
        k -= n;
    return nth_ahead(packing, packing->rival[i], k);
}

/* Picks the two members to swap; false: there is no choice. */
static bool pick_swap(climb *self, uint64_t height, uint32_t *x, uint32_t *y)
{
    mpl_packing *packing = self->packing;
    uint32_t a = pick_peak(self, height), n_first = count_ahead(packing, a);
    uint64_t n_second = 0;

    for (uint32_t i = packing->begin[a]; i < packing->begin[a + 1]; i++)
        n_second += count_ahead(packing, packing->rival[i]);
    if (n_first == 0 || n_second > UINT32_MAX)
        return false;
    *x = nth_ahead(packing, a, mpl_rng_below(&self->rng, n_first));
    for (int tries = 0; tries < 8; tries++) {
        bool second = n_second > 0 && mpl_rng_below(&self->rng, 100) > 25;

        *y = second ? pick_second(self, a, n_second)
                    : nth_ahead(packing, a, mpl_rng_below(&self->rng, n_first));
        if (*y != *x)
            return true;
    }
    return false;
}

static void swap(climb *self, uint32_t x, uint32_t y)
{
    uint32_t at_x = self->packing->at[x], at_y = self->packing->at[y];

    self->order[at_x] = y;
    self->order[at_y] = x;
    self->packing->at[x] = at_y;
    self->packing->at[y] = at_x;
}

/* Whether an order of height `got` replaces one of height `height`. */
static bool accepts(climb *self, uint64_t height, uint64_t got, int64_t attempt)
{
    uint64_t above, percent;

    if (got <= height)
        return got < height;
    above = got - height;
    percent = (above < UINT64_MAX / 50 ? 50 * above / got : 49) / (uint64_t)attempt;
    return mpl_rng_below(&self->rng, 100) < percent;
}

static mpl_status climb_run(climb *self, int64_t attempts)
{
    mpl_packing *packing = self->packing;
    uint64_t height, got;
    uint32_t x, y;

    MPL_PASS(mpl_packing_order(packing, MPL_KEY_SIZE, self->order));
    mpl_packing_place(packing, self->order, 0, UINT64_MAX, &height);
    mpl_packing_offer(packing, height);
    for (int64_t attempt = 1; attempt < attempts && !mpl_packing_done(packing); attempt++) {
        if (!pick_swap(self, height, &x, &y))
            continue;
        memcpy(self->kept, packing->offset, packing->n * sizeof *self->kept);
        swap(self, x, y);
        mpl_packing_place(packing, self->order,
                          packing->at[x] < packing->at[y] ? packing->at[x] : packing->at[y],
                          UINT64_MAX, &got);
        mpl_packing_offer(packing, got);
        if (accepts(self, height, got, attempt)) {
            height = got;
        } else {
            swap(self, x, y);
            memcpy(packing->offset, self->kept, packing->n * sizeof *self->kept);
        }
    }
    return MPL_OK;
}

static mpl_status search(mpl_packing *packing)
{
    mpl_status st = MPL_OK;
    climb s = {.packing = packing};
    int64_t attempts;

    s.rng = mpl_rng_of(packing->run->seed);
    MPL_TRY(mpl_run_param_int(packing->run, "attempts", 1, INT32_MAX, ATTEMPTS, &attempts));
    MPL_TRY(mpl_new_each(packing->run->ctx, packing->n, s.order, s.kept));
    MPL_TRY(climb_run(&s, attempts));
out:
    mpl_free_each(packing->run->ctx, s.order, s.kept);
    return st;
}

extern const mpl_planner mpl_planner_greedy_size;

static mpl_status plan(mpl_run *run, const mpl_problem *p, mpl_plan *out)
{
    return mpl_packing_run(run, p, &mpl_planner_greedy_size, UINT64_MAX, search, out);
}

const mpl_planner mpl_planner_hill_climb = {
    .name = "hill_climb",
    .about = "an order by size, improved by swaps below the peak",
    .source = "tvm_usmp",
    .params = "attempts=N,minimise=0|1",
    .traits = MPL_RANDOM | MPL_USES_IN_PLACE | MPL_USES_GAPS | MPL_USES_FAMILIES,
    .plan = plan,
};
