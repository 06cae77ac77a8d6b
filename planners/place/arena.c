/* arena.c -- one arena under a general conflict relation: greedy orders and local search over
 * orders.
 *
 * Idea     Each body in turn takes the lowest offset free of its rivals. The orders of a small
 *          portfolio are tried. The best is improved by moving a body that ends at the peak ahead
 *          of one that holds it up.
 * Source   this project; the move is that of hill climbing over allocation orders as in TVM's
 *          USMP.
 * Cost     O(n * placed) time an order, early exits aside; ticks are bodies examined.
 * Limits   Local search: a plan above the bound need not be optimal. */
#include "planners/place/bodies.h"

#include "graphs/core/rng.h"

#include <stdlib.h>

#define PATIENCE 400 /* moves without progress before a restart from the best order */

typedef struct search {
    const mpl_bodies *bodies;
    uint32_t n, n_fixed; /* fixed bodies come first in every order */
    uint32_t *order;     /* [n] current */
    uint32_t *trial;     /* [n] */
    uint32_t *best;      /* [n] */
    uint32_t *at;        /* [n] position of each body in trial */
    uint64_t *offset;    /* [n] of the last placement */
    uint32_t *sorted;    /* [n] placed bodies by (offset, id) */
    mpl_exact_effort *effort;
    mpl_rng rng;
} search;

static uint64_t end_of(const search *self, uint32_t i)
{
    return self->offset[i] + self->bodies->bytes[i];
}

/* Lowest offset where i fits among the n placed bodies, with distances that depend on both. */
static uint64_t lowest_apart(search *self, uint32_t i, uint32_t n)
{
    uint64_t low = 0;

    for (uint32_t k = 0; k < n; k++) {
        uint32_t c = self->sorted[k];

        self->effort->ticks++;
        if (!mpl_rivals(self->bodies, i, c) ||
            mpl_above(self->bodies, i, low, c) <= self->offset[c] ||
            mpl_above(self->bodies, c, self->offset[c], i) <= low)
            continue;
        low = mpl_above(self->bodies, c, self->offset[c], i);
        k = MPL_NONE; /* a body passed above may be in the way now */
    }
    return low;
}

static uint64_t lowest_free(search *self, uint32_t i, uint32_t n)
{
    const mpl_bodies *bodies = self->bodies;
    uint64_t low = 0;

    if (bodies->fixed != NULL && bodies->fixed[i] != MPL_UNFIXED)
        return bodies->fixed[i];
    if (bodies->dist != NULL)
        return lowest_apart(self, i, n);
    for (uint32_t k = 0; k < n; k++) {
        uint32_t c = self->sorted[k];

        self->effort->ticks++;
        if (!mpl_rivals(bodies, i, c))
            continue;
        if (self->offset[c] >= low + bodies->size[i])
            break;
        if (self->offset[c] + bodies->size[c] > low)
            low = mpl_above(bodies, c, self->offset[c], i);
    }
    return low;
}

static void insert_sorted(search *self, uint32_t i, uint32_t n)
{
    uint32_t lo = 0, hi = n;

    while (lo < hi) {
        uint32_t mid = (lo + hi) / 2, c = self->sorted[mid];

        if (self->offset[c] < self->offset[i] || (self->offset[c] == self->offset[i] && c < i))
            lo = mid + 1;
        else
            hi = mid;
    }
    memmove(self->sorted + lo + 1, self->sorted + lo, (n - lo) * sizeof *self->sorted);
    self->sorted[lo] = i;
}

/* Places trial[] from position `from` on; earlier bodies keep their offsets. The peak. [byte] */
static uint64_t place(search *self, uint32_t from)
{
    uint64_t peak = 0;
    uint32_t n_kept = 0;

    for (uint32_t i = from; i < self->n; i++)
        self->at[self->trial[i]] = i;
    for (uint32_t i = 0; from > 0 && i < self->n; i++)
        if (self->at[self->sorted[i]] < from) {
            self->sorted[n_kept++] = self->sorted[i];
            peak = mpl_max_u64(peak, end_of(self, self->sorted[n_kept - 1]));
        }
    for (uint32_t i = from; i < self->n; i++) {
        uint32_t b = self->trial[i];

        self->offset[b] = lowest_free(self, b, i);
        insert_sorted(self, b, i);
        peak = mpl_max_u64(peak, end_of(self, b));
    }
    return peak;
}

/* Position of a random movable rival ahead of trial[x], or x if there is none. */
static uint32_t pick_ahead(search *self, uint32_t x)
{
    uint32_t n_seen = 0, pick = x;

    for (uint32_t i = self->n_fixed; i < x; i++)
        if (mpl_rivals(self->bodies, self->trial[x], self->trial[i]) &&
            mpl_rng_below(&self->rng, ++n_seen) == 0)
            pick = i;
    self->effort->ticks += x;
    return pick;
}

/* Position of a random body that ends at the peak. */
static uint32_t pick_peak(search *self, uint64_t peak)
{
    uint32_t n_seen = 0, pick = 0;

    for (uint32_t i = 0; i < self->n; i++)
        if (end_of(self, self->trial[i]) == peak && mpl_rng_below(&self->rng, ++n_seen) == 0)
            pick = i;
    return pick;
}

/* Moves the body of list[] at `from` to `to` <= from. */
static void move_ahead(uint32_t *list, uint32_t from, uint32_t to)
{
    uint32_t b = list[from];

    memmove(list + to + 1, list + to, (from - to) * sizeof *list);
    list[to] = b;
}

/* Improves best[] and *best_peak until the bound, the budget or the clock ends it. */
static void improve(search *self, uint64_t bound, uint64_t *best_peak)
{
    uint64_t peak;
    uint32_t idle = 0;

    memcpy(self->trial, self->best, self->n * sizeof *self->trial);
    memcpy(self->order, self->best, self->n * sizeof *self->order);
    peak = place(self, 0);
    while (*best_peak > bound && self->effort->ticks < self->effort->tick_limit &&
           !mpl_exact_late(self->effort->deadline_ns, self->effort->watch)) {
        uint32_t x = pick_peak(self, peak), y = pick_ahead(self, x);
        uint64_t got;

        if (y == x) /* no rival ahead holds it up */
            return;
        move_ahead(self->trial, x, y);
        got = place(self, y);
        if (got <= peak || mpl_rng_below(&self->rng, 64) == 0) {
            memcpy(self->order, self->trial, self->n * sizeof *self->order);
            peak = got;
        } else {
            memcpy(self->trial, self->order, self->n * sizeof *self->trial);
            place(self, y);
        }
        idle++;
        if (got < *best_peak) {
            *best_peak = got;
            memcpy(self->best, self->trial, self->n * sizeof *self->best);
            idle = 0;
        } else if (idle > PATIENCE) {
            memcpy(self->trial, self->best, self->n * sizeof *self->trial);
            memcpy(self->order, self->best, self->n * sizeof *self->order);
            peak = place(self, 0);
            idle = 0;
        }
    }
}

/* ---- the portfolio: keys descending, then id ---- */

typedef struct keyed {
    uint64_t key, second;
    uint32_t id;
    bool fixed;
} keyed;

MPL_ORDER_BY(by_key, keyed, MPL_FALLING(fixed) MPL_FALLING(key) MPL_FALLING(second) MPL_RISING(id))

/* Sums and counts the rivals of a body. [byte] */
static void weigh_rivals(const mpl_bodies *bodies, uint32_t i, uint64_t *bytes, uint64_t *count)
{
    *bytes = *count = 0;
    for (uint32_t w = 0; w < bodies->n_words; w++)
        for (uint64_t bits = bodies->rival[(size_t)i * bodies->n_words + w]; bits != 0;
             bits &= bits - 1) {
            *bytes += bodies->size[w * 64 + (uint32_t)__builtin_ctzll(bits)];
            ++*count;
        }
}

enum { BY_OFFSET, BY_SIZE, BY_RIVAL_BYTES, BY_RIVALS, BY_SIZE_RARE, N_KEYS };

static void set_keys(const search *self, int kind, const uint64_t *start, keyed *list)
{
    for (uint32_t k = 0; k < self->n; k++) {
        uint32_t i = list[k].id;
        uint64_t bytes, count, size = self->bodies->size[i];

        weigh_rivals(self->bodies, i, &bytes, &count);
        list[k].key = kind == BY_OFFSET        ? UINT64_MAX - start[i]
                      : kind == BY_RIVAL_BYTES ? bytes + size
                      : kind == BY_RIVALS      ? count
                                               : size;
        list[k].second = kind == BY_SIZE ? count : kind == BY_SIZE_RARE ? UINT64_MAX - count : size;
    }
}

/* Tries the orders of the portfolio, beginning with the order of the given offsets. */
static mpl_status try_orders(mpl_ctx *ctx, search *s, uint64_t bound, const uint64_t *start,
                             uint64_t *best_peak)
{
    mpl_status st = MPL_OK;
    keyed *list = NULL;
    bool none = *best_peak == UINT64_MAX;

    MPL_TRY(mpl_new(ctx, list, s->n));
    for (uint32_t i = 0; i < s->n; i++) {
        list[i].id = i;
        list[i].fixed = s->bodies->fixed != NULL && s->bodies->fixed[i] != MPL_UNFIXED;
        s->n_fixed += list[i].fixed;
    }
    *best_peak = UINT64_MAX;
    for (int kind = none ? BY_SIZE : BY_OFFSET; kind<N_KEYS && * best_peak> bound; kind++) {
        uint64_t peak;

        set_keys(s, kind, start, list);
        qsort(list, s->n, sizeof *list, by_key);
        for (uint32_t i = 0; i < s->n; i++)
            s->trial[i] = list[i].id;
        peak = place(s, 0);
        if (peak < *best_peak) {
            *best_peak = peak;
            memcpy(s->best, s->trial, s->n * sizeof *s->best);
        }
    }
out:
    mpl_free(ctx, list);
    return st;
}

mpl_status mpl_arena_search(mpl_ctx *ctx, const mpl_bodies *bodies, uint64_t bound,
                            mpl_exact_effort *effort, uint64_t *offset, uint64_t *height)
{
    mpl_status st = MPL_OK;
    search s = {.bodies = bodies, .n = bodies->n, .effort = effort};
    uint64_t peak = *height;

    if (bodies->n == 0)
        return MPL_OK;
    s.rng = mpl_rng_of(effort->seed);
    MPL_TRY(mpl_new_each(ctx, bodies->n, s.order, s.trial, s.best, s.at, s.offset));
    MPL_TRY(mpl_new(ctx, s.sorted, (size_t)bodies->n + 1));
    MPL_TRY(try_orders(ctx, &s, bound, offset, &peak));
    if (peak > bound)
        improve(&s, bound, &peak);
    if (peak < *height) {
        memcpy(s.trial, s.best, bodies->n * sizeof *s.trial);
        *height = place(&s, 0);
        memcpy(offset, s.offset, bodies->n * sizeof *offset);
    }
    effort->by_clock = effort->by_clock || mpl_exact_late(effort->deadline_ns, effort->watch);
out:
    mpl_free_each(ctx, s.order, s.trial, s.best, s.at, s.offset, s.sorted);
    return st;
}
