/* series.c -- the least peak of series-parallel graphs, in polynomial time. See orders_priv.h.
 *
 * Idea     Where each buffer has one last user, a step's cost and what it leaves depend on the
 *          steps before it only through their sum. A series-parallel order of operations falls into
 *          parts that follow each other, or that have nothing to do with each other. Of the latter,
 *          each best sequence is cut into segments: up to its lowest point, segments that leave
 *          less than there was, each with a higher climb than the one before; from there on the
 *          same, seen from the end. All segments that fall are run by ascending climb, then those
 *          that rise, by descending climb from their end. The result is as good as any, and stands
 *          for the whole in the next larger part.
 * Source   J. Liu, "An application of generalized tree pebbling to sparse matrix factorization",
 *          1987; H. Abdel-Wahab, T. Kameda, "Scheduling to minimize maximum cumulative cost subject
 *          to series-parallel precedence constraints", 1978; E. Kayaaslan, T. Lambert, L. Marchal,
 *          B. Ucar, "Scheduling series-parallel task graphs to minimize peak memory", 2018.
 * Differs  Parts are found by connected components of "comparable" and of "not comparable", not by
 *          an SP tree given.
 * Cost     O(depth * n^2 / 64 + depth * n log n); 2 n^2 / 8 bytes. */
#include "graphs/orders/orders_priv.h"

#include <stdlib.h>

enum { LARGEST = 2048 }; /* operations; larger graphs are left to the others */

typedef struct segment {
    int64_t climb; /* highest cost over where it starts; over where it ends, for those that rise */
    uint32_t part, at;   /* of which sequence; place in it */
    uint32_t begin, end; /* operations [begin, end) of the sequence */
} segment;

typedef struct series {
    mpl_ctx *ctx;
    const mpl_order_model *m;
    uint32_t n_words;
    uint64_t *related;     /* [n * n_words] who is before or after it */
    int64_t *cost, *net;   /* [n] bytes during and after it, over those before it */
    int64_t *level, *high; /* [n + 1] scratch: bytes at and between the points of a sequence */
    segment *fall, *rise;  /* [n] scratch */
    uint32_t *scratch;     /* [n] */
    uint8_t *seen;         /* [n] */
    bool failed;           /* not series-parallel */
} series;

static bool is_related(const series *s, uint32_t u, uint32_t v)
{
    return mpl_bit_has(s->related + (size_t)u * s->n_words, v);
}

static mpl_status make_related(series *s)
{
    mpl_status st = MPL_OK;
    const mpl_order_model *m = s->m;

    s->n_words = (m->n + 63) / 64;
    MPL_TRY(mpl_new(s->ctx, s->related, (size_t)m->n * s->n_words));
    for (uint32_t v = 0; v < m->n; v++) { /* ids are a valid order: rows of those before are whole
                                           */
        uint64_t *row = s->related + (size_t)v * s->n_words;

        for (uint32_t i = m->before.begin[v]; i < m->before.begin[v + 1]; i++) {
            uint32_t u = m->before.item[i];

            for (uint32_t w = 0; w < s->n_words; w++)
                row[w] |= s->related[(size_t)u * s->n_words + w];
            mpl_bit_add(row, u);
        }
    }
    for (uint32_t v = 0; v < m->n; v++)
        for (uint32_t u = 0; u < v; u++)
            if (is_related(s, v, u))
                mpl_bit_add(s->related + (size_t)u * s->n_words, v);
out:
    return st;
}

/* The user of b that is the last in `place`; *sure: it is the last in every order. */
static uint32_t last_user(const series *s, uint32_t b, const uint32_t *place, bool *sure)
{
    const mpl_order_model *m = s->m;
    uint32_t last = MPL_NONE;

    *sure = true;
    if (m->kept[b])
        return MPL_NONE;
    for (uint32_t i = m->users.begin[b]; i < m->users.begin[b + 1]; i++)
        if (last == MPL_NONE || place[m->users.item[i]] > place[last])
            last = m->users.item[i];
    for (uint32_t i = m->users.begin[b]; i < m->users.begin[b + 1]; i++)
        *sure = *sure && (m->users.item[i] == last || is_related(s, m->users.item[i], last));
    return last;
}

/* Costs that do not depend on the order; false: those of an easier problem. */
static mpl_status make_costs(series *s, const uint32_t *order, bool *exact)
{
    mpl_status st = MPL_OK;
    const mpl_order_model *m = s->m;
    uint32_t *place = NULL, *last = NULL;

    *exact = true;
    MPL_TRY(mpl_new(s->ctx, place, m->n));
    MPL_TRY(mpl_new(s->ctx, last, m->k));
    for (uint32_t i = 0; i < m->n; i++)
        place[order[i]] = i;
    for (uint32_t b = 0; b < m->k; b++) {
        bool sure;

        last[b] = last_user(s, b, place, &sure);
        *exact = *exact && sure;
        if (last[b] != MPL_NONE)
            s->net[last[b]] -= (int64_t)m->bytes[b];
    }
    for (uint32_t v = 0; v < m->n; v++) {
        bool saves = false;

        s->cost[v] = (int64_t)m->extra[v];
        for (uint32_t i = m->makes.begin[v]; i < m->makes.begin[v + 1]; i++) {
            s->cost[v] += (int64_t)m->bytes[m->makes.item[i]];
            s->net[v] += (int64_t)m->bytes[m->makes.item[i]];
        }
        for (uint32_t i = m->over.begin[v]; i < m->over.begin[v + 1]; i++)
            saves = saves || last[m->over.item[i]] == v;
        if (saves)
            s->cost[v] -= (int64_t)m->saves[v];
    }
out:
    mpl_free(s->ctx, place);
    mpl_free(s->ctx, last);
    return st;
}

/* ---- parts ---- */

/* Sorts item[n] into connected components of "related" (or of its opposite): their ends into end[],
 * their number. The first members ascend, and so do the members of each. */
static uint32_t components(series *s, uint32_t *item, uint32_t n, bool related, uint32_t *end)
{
    uint32_t n_parts = 0, at = 0;
    uint32_t *sorted = s->scratch;

    for (uint32_t i = 0; i < n; i++)
        s->seen[item[i]] = 0;
    for (uint32_t i = 0; i < n; i++) {
        uint32_t head = at;

        if (s->seen[item[i]])
            continue;
        s->seen[item[i]] = 1;
        sorted[at++] = item[i];
        for (; head < at; head++)
            for (uint32_t j = 0; j < n; j++)
                if (!s->seen[item[j]] && is_related(s, sorted[head], item[j]) == related) {
                    s->seen[item[j]] = 1;
                    sorted[at++] = item[j];
                }
        end[n_parts++] = at;
    }
    memcpy(item, sorted, n * sizeof *item);
    return n_parts;
}

static int by_climb(const void *a, const void *b)
{
    const segment *x = a, *y = b;

    if (x->climb != y->climb)
        return x->climb > y->climb ? 1 : -1;
    if (x->part != y->part)
        return x->part > y->part ? 1 : -1;
    return (x->at > y->at) - (x->at < y->at);
}

static int by_climb_down(const void *a, const void *b)
{
    const segment *x = a, *y = b;

    if (x->climb != y->climb)
        return x->climb < y->climb ? 1 : -1;
    if (x->part != y->part)
        return x->part > y->part ? 1 : -1;
    return (x->at < y->at) - (x->at > y->at); /* counted from the end */
}

/* A segment that joins those before it of its sequence where it climbs no higher than they. */
static void add_segment(segment *list, uint32_t *n, uint32_t first, segment x, bool from_end)
{
    if (*n > first && x.climb <= list[*n - 1].climb) {
        if (from_end)
            list[*n - 1].begin = x.begin;
        else
            list[*n - 1].end = x.end;
        return;
    }
    x.at = *n - first;
    list[(*n)++] = x;
}

/* Cuts sequence `part`, operations op[begin..end), into segments that fall and segments that
 * rise. */
static void cut(series *s, const uint32_t *op, uint32_t part, uint32_t begin, uint32_t end,
                uint32_t *n_fall, uint32_t *n_rise)
{
    uint32_t n = end - begin, lowest = 0, first = *n_fall, first_rise = *n_rise;

    s->level[0] = 0;
    for (uint32_t i = 0; i < n; i++) {
        s->high[i] = s->level[i] + s->cost[op[begin + i]];
        s->level[i + 1] = s->level[i] + s->net[op[begin + i]];
        if (s->level[i + 1] <= s->level[lowest])
            lowest = i + 1;
    }
    for (uint32_t from = 0, to; from < lowest; from = to) {
        int64_t climb = s->high[from] - s->level[from];

        for (to = from + 1; s->level[to] > s->level[from]; to++)
            climb = s->high[to] - s->level[from] > climb ? s->high[to] - s->level[from] : climb;
        add_segment(s->fall, n_fall, first, (segment){climb, part, 0, begin + from, begin + to},
                    false);
    }
    for (uint32_t to = n, from; to > lowest; to = from) {
        int64_t climb = s->high[to - 1] - s->level[to];

        for (from = to - 1; s->level[from] > s->level[to]; from--)
            climb =
                s->high[from - 1] - s->level[to] > climb ? s->high[from - 1] - s->level[to] : climb;
        add_segment(s->rise, n_rise, first_rise,
                    (segment){climb, part, 0, begin + from, begin + to}, true);
    }
}

/* Sequences that have nothing to do with each other become one: op[0..n), sequence i ending at
 * end[i]. */
static void merge(series *s, uint32_t *op, uint32_t n_parts, const uint32_t *end)
{
    uint32_t n_fall = 0, n_rise = 0, at = 0, n = end[n_parts - 1];

    for (uint32_t i = 0; i < n_parts; i++)
        cut(s, op, i, i == 0 ? 0 : end[i - 1], end[i], &n_fall, &n_rise);
    qsort(s->fall, n_fall, sizeof *s->fall, by_climb);
    qsort(s->rise, n_rise, sizeof *s->rise, by_climb_down);
    for (uint32_t i = 0; i < n_fall + n_rise; i++) {
        const segment *x = i < n_fall ? &s->fall[i] : &s->rise[i - n_fall];

        memcpy(s->scratch + at, op + x->begin, (x->end - x->begin) * sizeof *op);
        at += x->end - x->begin;
    }
    mpl_assert(at == n);
    memcpy(op, s->scratch, n * sizeof *op);
}

/* Turns op[n], ascending, into a best sequence. Recursion: each level has fewer operations, of at
 * most LARGEST. */
static mpl_status solve(series *s, uint32_t *op, uint32_t n)
{
    mpl_status st = MPL_OK;
    uint32_t *end = NULL, n_parts;
    bool parallel = true;

    if (n < 2)
        return MPL_OK;
    MPL_TRY(mpl_new(s->ctx, end, n));
    n_parts = components(s, op, n, true, end);
    if (n_parts == 1) {
        parallel = false;
        mpl_sort_u32(op, n);
        n_parts = components(s, op, n, false, end);
    }
    if (n_parts == 1) {
        s->failed = true;
        goto out;
    }
    for (uint32_t i = 0; i < n_parts && !s->failed; i++) {
        uint32_t begin = i == 0 ? 0 : end[i - 1];

        mpl_sort_u32(op + begin, end[i] - begin);
        MPL_TRY(solve(s, op + begin, end[i] - begin));
    }
    if (parallel && !s->failed)
        merge(s, op, n_parts, end);
out:
    mpl_free(s->ctx, end);
    return st;
}

mpl_status mpl_order_series(mpl_ctx *ctx, const mpl_order_model *m, const uint32_t *order,
                            uint32_t *result, uint64_t *bound, bool *exact, bool *found)
{
    mpl_status st = MPL_OK;
    series s = {.ctx = ctx, .m = m};
    int64_t level = (int64_t)m->base, most = level;

    mpl_assert(!m->backward);
    *found = false;
    if (m->n > LARGEST)
        return MPL_OK;
    MPL_TRY(make_related(&s));
    MPL_TRY(mpl_new(ctx, s.cost, m->n));
    MPL_TRY(mpl_new(ctx, s.net, m->n));
    MPL_TRY(mpl_new(ctx, s.level, (size_t)m->n + 1));
    MPL_TRY(mpl_new(ctx, s.high, (size_t)m->n + 1));
    MPL_TRY(mpl_new(ctx, s.fall, m->n));
    MPL_TRY(mpl_new(ctx, s.rise, m->n));
    MPL_TRY(mpl_new(ctx, s.scratch, m->n));
    MPL_TRY(mpl_new(ctx, s.seen, m->n));
    MPL_TRY(make_costs(&s, order, exact));
    for (uint32_t v = 0; v < m->n; v++)
        result[v] = v;
    MPL_TRY(solve(&s, result, m->n));
    for (uint32_t b = 0; b < m->k; b++)
        level += m->first[b] ? (int64_t)m->bytes[b] : 0;
    for (uint32_t i = 0; i < m->n && !s.failed; i++) {
        most = level + s.cost[result[i]] > most ? level + s.cost[result[i]] : most;
        level += s.net[result[i]];
    }
    *found = !s.failed;
    *bound = (uint64_t)most;
out:;
    void *const arrays[] = {s.related, s.cost, s.net,     s.level, s.high,
                            s.fall,    s.rise, s.scratch, s.seen};
    MPL_FREE_ALL(ctx, arrays);
    return st;
}
