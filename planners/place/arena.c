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
    const mpl_bodies *b;
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

static uint64_t end_of(const search *s, uint32_t i)
{
    return s->offset[i] + s->b->bytes[i];
}

/* Lowest offset where i fits among the n placed bodies, with distances that depend on both. */
static uint64_t lowest_apart(search *s, uint32_t i, uint32_t n)
{
    uint64_t low = 0;

    for (uint32_t k = 0; k < n; k++) {
        uint32_t c = s->sorted[k];

        s->effort->ticks++;
        if (!mpl_rivals(s->b, i, c) || mpl_above(s->b, i, low, c) <= s->offset[c] ||
            mpl_above(s->b, c, s->offset[c], i) <= low)
            continue;
        low = mpl_above(s->b, c, s->offset[c], i);
        k = MPL_NONE; /* a body passed above may be in the way now */
    }
    return low;
}

static uint64_t lowest_free(search *s, uint32_t i, uint32_t n)
{
    const mpl_bodies *b = s->b;
    uint64_t low = 0;

    if (b->fixed != NULL && b->fixed[i] != MPL_UNFIXED)
        return b->fixed[i];
    if (b->dist != NULL)
        return lowest_apart(s, i, n);
    for (uint32_t k = 0; k < n; k++) {
        uint32_t c = s->sorted[k];

        s->effort->ticks++;
        if (!mpl_rivals(b, i, c))
            continue;
        if (s->offset[c] >= low + b->size[i])
            break;
        if (s->offset[c] + b->size[c] > low)
            low = mpl_above(b, c, s->offset[c], i);
    }
    return low;
}

static void insert_sorted(search *s, uint32_t i, uint32_t n)
{
    uint32_t lo = 0, hi = n;

    while (lo < hi) {
        uint32_t mid = (lo + hi) / 2, c = s->sorted[mid];

        if (s->offset[c] < s->offset[i] || (s->offset[c] == s->offset[i] && c < i))
            lo = mid + 1;
        else
            hi = mid;
    }
    memmove(s->sorted + lo + 1, s->sorted + lo, (n - lo) * sizeof *s->sorted);
    s->sorted[lo] = i;
}

/* Places trial[] from position `from` on; earlier bodies keep their offsets. The peak. [byte] */
static uint64_t place(search *s, uint32_t from)
{
    uint64_t peak = 0;
    uint32_t n_kept = 0;

    for (uint32_t i = from; i < s->n; i++)
        s->at[s->trial[i]] = i;
    for (uint32_t i = 0; from > 0 && i < s->n; i++)
        if (s->at[s->sorted[i]] < from) {
            s->sorted[n_kept++] = s->sorted[i];
            peak = mpl_max_u64(peak, end_of(s, s->sorted[n_kept - 1]));
        }
    for (uint32_t i = from; i < s->n; i++) {
        uint32_t b = s->trial[i];

        s->offset[b] = lowest_free(s, b, i);
        insert_sorted(s, b, i);
        peak = mpl_max_u64(peak, end_of(s, b));
    }
    return peak;
}

/* Position of a random movable rival ahead of trial[x], or x if there is none. */
static uint32_t pick_ahead(search *s, uint32_t x)
{
    uint32_t n_seen = 0, pick = x;

    for (uint32_t i = s->n_fixed; i < x; i++)
        if (mpl_rivals(s->b, s->trial[x], s->trial[i]) && mpl_rng_below(&s->rng, ++n_seen) == 0)
            pick = i;
    s->effort->ticks += x;
    return pick;
}

/* Position of a random body that ends at the peak. */
static uint32_t pick_peak(search *s, uint64_t peak)
{
    uint32_t n_seen = 0, pick = 0;

    for (uint32_t i = 0; i < s->n; i++)
        if (end_of(s, s->trial[i]) == peak && mpl_rng_below(&s->rng, ++n_seen) == 0)
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
static void improve(search *s, uint64_t bound, uint64_t *best_peak)
{
    uint64_t peak;
    uint32_t idle = 0;

    memcpy(s->trial, s->best, s->n * sizeof *s->trial);
    memcpy(s->order, s->best, s->n * sizeof *s->order);
    peak = place(s, 0);
    while (*best_peak > bound && s->effort->ticks < s->effort->tick_limit &&
           !mpl_exact_late(s->effort->deadline_ns, s->effort->watch)) {
        uint32_t x = pick_peak(s, peak), y = pick_ahead(s, x);
        uint64_t got;

        if (y == x) /* no rival ahead holds it up */
            return;
        move_ahead(s->trial, x, y);
        got = place(s, y);
        if (got <= peak || mpl_rng_below(&s->rng, 64) == 0) {
            memcpy(s->order, s->trial, s->n * sizeof *s->order);
            peak = got;
        } else {
            memcpy(s->trial, s->order, s->n * sizeof *s->trial);
            place(s, y);
        }
        idle++;
        if (got < *best_peak) {
            *best_peak = got;
            memcpy(s->best, s->trial, s->n * sizeof *s->best);
            idle = 0;
        } else if (idle > PATIENCE) {
            memcpy(s->trial, s->best, s->n * sizeof *s->trial);
            memcpy(s->order, s->best, s->n * sizeof *s->order);
            peak = place(s, 0);
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
static void weigh_rivals(const mpl_bodies *b, uint32_t i, uint64_t *bytes, uint64_t *count)
{
    *bytes = *count = 0;
    for (uint32_t w = 0; w < b->n_words; w++)
        for (uint64_t bits = b->rival[(size_t)i * b->n_words + w]; bits != 0; bits &= bits - 1) {
            *bytes += b->size[w * 64 + (uint32_t)__builtin_ctzll(bits)];
            ++*count;
        }
}

enum { BY_OFFSET, BY_SIZE, BY_RIVAL_BYTES, BY_RIVALS, BY_SIZE_RARE, N_KEYS };

static void set_keys(const search *s, int kind, const uint64_t *start, keyed *list)
{
    for (uint32_t k = 0; k < s->n; k++) {
        uint32_t i = list[k].id;
        uint64_t bytes, count, size = s->b->size[i];

        weigh_rivals(s->b, i, &bytes, &count);
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
        list[i].fixed = s->b->fixed != NULL && s->b->fixed[i] != MPL_UNFIXED;
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

mpl_status mpl_arena_search(mpl_ctx *ctx, const mpl_bodies *b, uint64_t bound,
                            mpl_exact_effort *effort, uint64_t *offset, uint64_t *height)
{
    mpl_status st = MPL_OK;
    search s = {.b = b, .n = b->n, .effort = effort};
    uint64_t peak = *height;

    if (b->n == 0)
        return MPL_OK;
    s.rng = mpl_rng_of(effort->seed);
    MPL_TRY(mpl_new_each(ctx, b->n, s.order, s.trial, s.best, s.at, s.offset));
    MPL_TRY(mpl_new(ctx, s.sorted, (size_t)b->n + 1));
    MPL_TRY(try_orders(ctx, &s, bound, offset, &peak));
    if (peak > bound)
        improve(&s, bound, &peak);
    if (peak < *height) {
        memcpy(s.trial, s.best, b->n * sizeof *s.trial);
        *height = place(&s, 0);
        memcpy(offset, s.offset, b->n * sizeof *offset);
    }
    effort->by_clock = effort->by_clock || mpl_exact_late(effort->deadline_ns, effort->watch);
out:
    mpl_free_each(ctx, s.order, s.trial, s.best, s.at, s.offset, s.sorted);
    return st;
}
