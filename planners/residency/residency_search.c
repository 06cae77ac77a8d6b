/* residency_search.c -- plans of less cost: near by, and all of them. See residency_priv.h.
 *
 * Idea     Near by: a few buffers alive at one step leave and come back in another order, each by
 *          its cheapest way in the room that is left. All: where the cheapest ways under prices
 *          exceed the capacity, one of them is forced into fast memory or out of it; a node whose
 *          bound is not below the best plan is closed. A plan counts only once it is placed; one
 *          that cannot be placed is branched on until it is refuted or stands alone.
 * Source   this project
 * Cost     Exponential; limited by ticks. */
#include "planners/residency/residency_priv.h"

enum { MOST_OUT = 8, NODE_ROUNDS = 40 };

/* ---- near by ---- */

typedef struct near_by {
    mpl_residency *residency;
    uint8_t *fast, *kept, *old_fast, *old_kept;
    int64_t *room; /* [n_steps] [byte] */
    const uint64_t *sum;
    mpl_rng rng;
} near_by;

/* Gives a buffer its cheapest way; the room of its uses is its own until then. */
static void put(near_by *by, mpl_buffer b, bool priced)
{
    mpl_path path = {.price = priced ? by->sum : NULL, .room = by->room};
    uint64_t cost;

    mpl_residency_load(by->residency, b, by->fast, by->kept, 1, true, false, by->room);
    (void)mpl_residency_path(by->residency, b, &path, by->fast, by->kept, &cost);
    mpl_residency_load(by->residency, b, by->fast, by->kept, -1, true, true, by->room);
}

static void take_out(near_by *by, mpl_buffer b)
{
    mpl_residency_load(by->residency, b, by->fast, by->kept, 1, false, true, by->room);
}

static mpl_status near_init(mpl_residency *residency, const mpl_prices *prices, uint64_t capacity,
                            uint8_t *fast, uint8_t *kept, near_by *by)
{
    mpl_ctx *ctx = residency->run->ctx;

    *by = (near_by){.residency = residency, .fast = fast, .kept = kept, .sum = prices->sum};
    by->rng = mpl_rng_of(residency->run->seed);
    MPL_PASS(mpl_new(ctx, by->room, residency->p->n_steps));
    MPL_PASS(mpl_new_each(ctx, residency->n_uses, by->old_fast, by->old_kept));
    for (uint32_t s = 0; s < residency->p->n_steps; s++)
        by->room[s] = (int64_t)capacity;
    for (mpl_buffer b = 0; b < residency->p->n; b++)
        mpl_residency_load(residency, b, fast, kept, -1, true, true, by->room);
    return MPL_OK;
}

static void near_fini(near_by *by)
{
    mpl_free_each(by->residency->run->ctx, by->room, by->old_fast, by->old_kept);
}

mpl_status mpl_residency_first(mpl_residency *residency, const mpl_prices *prices,
                               uint64_t capacity, uint8_t *fast, uint8_t *kept)
{
    mpl_status st = MPL_OK;
    near_by v;

    memset(kept, 0, residency->n_uses);
    /* without a price of slow memory, all uses are in fast memory, whatever is left of it */
    mpl_residency_operands(residency,
                           residency->p->slow_price == 0 ? residency->capacity : capacity, fast);
    st = near_init(residency, prices, capacity, fast, kept, &v);
    for (mpl_buffer b = 0; st == MPL_OK && b < residency->p->n; b++)
        put(&v, b, true);
    near_fini(&v);
    return st;
}

/* A few buffers with several uses that are alive at a step with a price. */
static uint32_t choose(near_by *by, mpl_buffer out[MOST_OUT])
{
    const mpl_residency_problem *p = by->residency->p;
    uint32_t step = (uint32_t)mpl_rng_below(&by->rng, p->n_steps), n = 0, seen = 0;
    uint32_t most = 2 + (uint32_t)mpl_rng_below(&by->rng, MOST_OUT - 1);

    for (uint32_t k = 0; k < p->n_steps && by->sum[step + 1] == by->sum[step]; k++)
        step = (step + 1) % p->n_steps;
    for (mpl_buffer b = 0; b < p->n; b++) {
        if (p->at[p->begin[b]] > step || p->at[p->begin[b + 1] - 1] < step ||
            (p->begin[b + 1] - p->begin[b] < 2 && p->slow_price == 0))
            continue;
        seen++;
        if (n < most)
            out[n++] = b;
        else if (mpl_rng_below(&by->rng, seen) < most)
            out[mpl_rng_below(&by->rng, most)] = b;
    }
    for (uint32_t i = n; i > 1; i--) { /* in any order */
        uint32_t k = (uint32_t)mpl_rng_below(&by->rng, i);
        mpl_buffer b = out[k];

        out[k] = out[i - 1];
        out[i - 1] = b;
    }
    return n;
}

/* Copies the ways of the chosen buffers. */
static void copy_ways(const near_by *by, uint32_t n, const mpl_buffer *b, const uint8_t *fast,
                      const uint8_t *kept, uint8_t *to_fast, uint8_t *to_kept)
{
    const uint32_t *begin = by->residency->p->begin;

    for (uint32_t k = 0; k < n; k++) {
        uint32_t uses = begin[b[k] + 1] - begin[b[k]];

        memcpy(to_fast + begin[b[k]], fast + begin[b[k]], uses);
        memcpy(to_kept + begin[b[k]], kept + begin[b[k]], uses);
    }
}

static uint64_t cost_of(const near_by *by, uint32_t n, const mpl_buffer *b)
{
    uint64_t cost = 0;

    for (uint32_t k = 0; k < n; k++)
        cost += mpl_residency_cost(by->residency->p, b[k], by->fast, by->kept, NULL, NULL);
    return cost;
}

mpl_status mpl_residency_near(mpl_residency *residency, const mpl_prices *prices, uint64_t capacity,
                              uint64_t rounds, uint64_t enough, uint8_t *fast, uint8_t *kept)
{
    mpl_status st = MPL_OK;
    near_by v;
    uint64_t cost = mpl_residency_total(residency, fast, kept);

    MPL_TRY(near_init(residency, prices, capacity, fast, kept, &v));
    for (uint64_t k = 0; k < rounds && cost > enough; k++) {
        mpl_buffer b[MOST_OUT];
        uint32_t n = choose(&v, b);
        uint64_t before = cost_of(&v, n, b), after;
        bool priced = mpl_rng_below(&v.rng, 2) == 0;

        copy_ways(&v, n, b, fast, kept, v.old_fast, v.old_kept);
        for (uint32_t i = 0; i < n; i++)
            take_out(&v, b[i]);
        for (uint32_t i = 0; i < n; i++)
            put(&v, b[i], priced);
        after = cost_of(&v, n, b);
        if (after <= before) {
            cost -= before - after;
            continue;
        }
        for (uint32_t i = 0; i < n; i++)
            mpl_residency_load(residency, b[i], fast, kept, 1, true, true, v.room);
        copy_ways(&v, n, b, v.old_fast, v.old_kept, fast, kept);
        for (uint32_t i = 0; i < n; i++)
            mpl_residency_load(residency, b[i], fast, kept, -1, true, true, v.room);
    }
out:
    near_fini(&v);
    return st;
}

/* ---- all ---- */

typedef struct search {
    mpl_residency *residency;
    mpl_residency_plan *best;
    uint64_t *place; /* [n_uses] scratch */
    uint64_t tick_limit;
    uint64_t open; /* least bound of what was left out */
} search;

/* What a node decides next: a use, or the stay after one. */
typedef struct item {
    uint32_t use;
    bool stay;
} item;

/* An undecided item in fast memory at `step` under the ways, else (any) any undecided one there:
 * the largest, then the first. False: there is none. */
static bool pick(const search *self, const uint8_t *fast, const uint8_t *kept, uint32_t step,
                 bool any, item *out)
{
    const mpl_residency *residency = self->residency;
    const mpl_residency_problem *p = residency->p;
    uint64_t most = 0;

    for (mpl_buffer b = 0; b < p->n; b++) {
        if (p->at[p->begin[b]] > step || p->at[p->begin[b + 1] - 1] < step ||
            residency->size[b] <= most)
            continue;
        for (uint32_t i = p->begin[b]; i < p->begin[b + 1] && p->at[i] <= step; i++) {
            bool used = p->at[i] == step && p->slow_price > 0 && residency->use[i] == MPL_FREE &&
                        (any || fast[i]);
            bool over = p->at[i] < step && i + 1 < p->begin[b + 1] && p->at[i + 1] > step &&
                        residency->stay[i] == MPL_FREE && (any || kept[i]);

            if (used || over) {
                *out = (item){i, over};
                most = residency->size[b];
            }
        }
    }
    return most > 0;
}

/* The step at which the ways exceed the capacity by most; MPL_NONE: none. */
static uint32_t worst_step(const search *self, const mpl_prices *prices)
{
    int64_t most = (int64_t)self->residency->capacity;
    uint32_t worst = MPL_NONE;

    for (uint32_t s = 0; s < self->residency->p->n_steps; s++)
        if (prices->load[s] > most) {
            most = prices->load[s];
            worst = s;
        }
    return worst;
}

/* A step whose rent is not all paid, with something to decide there: without any, the ways are the
 * cheapest of this node. */
static bool pick_unpaid(const search *self, const mpl_prices *prices, item *out)
{
    for (uint32_t s = 0; s < self->residency->p->n_steps; s++)
        if (prices->price[s] > 0 && prices->load[s] < (int64_t)self->residency->room[s] &&
            pick(self, prices->fast, prices->kept, s, true, out))
            return true;
    return false;
}

/* Anything undecided that the ways have in fast memory. */
static bool pick_any(const search *self, const mpl_prices *prices, item *out)
{
    const mpl_residency *residency = self->residency;

    for (uint32_t i = 0; i < residency->n_uses; i++) {
        if (prices->kept[i] && residency->stay[i] == MPL_FREE) {
            *out = (item){i, true};
            return true;
        }
        if (prices->fast[i] && residency->use[i] == MPL_FREE && residency->p->slow_price > 0) {
            *out = (item){i, false};
            return true;
        }
    }
    return false;
}

/* Places ways that are within the capacity and better than the best plan. */
static mpl_status try_ways(search *self, const mpl_prices *prices, uint64_t cost,
                           mpl_placed *placed)
{
    *placed = (mpl_placed){0};
    MPL_PASS(mpl_residency_place(self->residency, prices->fast, prices->kept, 0, NULL, self->place,
                                 placed));
    if (!placed->fits)
        return MPL_OK;
    self->best->cost = cost;
    memcpy(self->best->fast, prices->fast, self->residency->n_uses);
    memcpy(self->best->kept, prices->kept, self->residency->n_uses);
    memcpy(self->best->place, self->place, self->residency->n_uses * sizeof *self->place);
    return MPL_OK;
}

/* What to decide at a node whose ways are within the capacity. *more false: it is closed. */
static mpl_status settle(search *self, const mpl_prices *prices, item *next, bool *more)
{
    uint64_t cost = mpl_residency_total(self->residency, prices->fast, prices->kept);
    mpl_placed placed = {.fits = true};

    if (cost < self->best->cost)
        MPL_PASS(try_ways(self, prices, cost, &placed));
    if (placed.fits) {
        *more = prices->bound < self->best->cost && pick_unpaid(self, prices, next);
        return MPL_OK;
    }
    *more = pick_any(self, prices, next);
    if (!*more && !placed.never)
        self->open = mpl_min_u64(self->open, prices->bound);
    return MPL_OK;
}

static mpl_status visit(search *self, const mpl_prices *from)
{
    mpl_status st = MPL_OK;
    mpl_prices q = {0};
    item next = {0};
    uint32_t step;
    bool more = false;

    MPL_TRY(mpl_prices_init(self->residency, &q));
    memcpy(q.exact, from->exact, self->residency->p->n_steps * sizeof *q.exact);
    mpl_prices_rise(self->residency, NODE_ROUNDS, self->best->cost, &q);
    if (q.bound >= self->best->cost)
        goto out;
    if (self->residency->ticks >= self->tick_limit || mpl_run_late(self->residency->run)) {
        self->open = mpl_min_u64(self->open, q.bound);
        goto out;
    }
    step = worst_step(self, &q);
    if (step != MPL_NONE)
        more = pick(self, q.fast, q.kept, step, false, &next);
    else
        MPL_TRY(settle(self, &q, &next, &more));
    for (uint8_t way = MPL_OUT; more && way >= MPL_IN; way--) {
        uint8_t *decided =
            next.stay ? &self->residency->stay[next.use] : &self->residency->use[next.use];

        *decided = way;
        st = visit(self, &q);
        *decided = MPL_FREE;
        MPL_TRY(st);
    }
out:
    mpl_prices_fini(self->residency, &q);
    return st;
}

mpl_status mpl_residency_search(mpl_residency *residency, const mpl_prices *root,
                                uint64_t tick_limit, mpl_residency_plan *plan)
{
    mpl_status st = MPL_OK;
    search v = {.residency = residency, .best = plan, .tick_limit = tick_limit, .open = UINT64_MAX};
    uint64_t bound;

    MPL_TRY(mpl_new(residency->run->ctx, v.place, residency->n_uses));
    MPL_TRY(visit(&v, root));
    bound = mpl_min_u64(v.open, plan->cost);
    if (bound > plan->bound) {
        plan->bound = bound;
        plan->searched = true;
        plan->programmed = false;
    }
out:
    mpl_free(residency->run->ctx, v.place);
    return st;
}
