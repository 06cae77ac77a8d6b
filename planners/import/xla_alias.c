/* xla_alias.c -- values of XLA that are one buffer, and values that may take each other's place.
 *
 * Loops    The state of a loop is one buffer of several values: what it begins with, what the
 *          condition and the body take, what a round leaves, what comes out. XLA keeps them at one
 *          address ("(phi)" marks those that join others), so that they are one buffer here, with
 *          gaps. Values of one place and size that share a step are a chain; chains with a mark are
 *          merged, and so are those with the same index in their tuples. Two loops may become
 *          one buffer by this, which is then held to one place: the optimum is never below XLA's.
 * Left     A value cut to one step is dropped if another of its place and size begins there. A
 * value that hands its place to one of another size before it ends is cut by that step. */
#include "planners/import/xla_priv.h"

#include <stdlib.h>

/* ---- values of one buffer ---- */

typedef struct value {
    uint64_t offset, bytes, birth, death;
    uint32_t pool, i; /* i: index in the list */
    uint32_t chain;   /* index in the sorted values of the chain's first one */
} value;

/* Sorts equal places and first steps by the longest life first. */
MPL_ORDER_BY(by_start, value,
             MPL_RISING(pool) MPL_RISING(offset) MPL_RISING(bytes) MPL_RISING(birth)
                 MPL_FALLING(death) MPL_RISING(i))

static bool same_place(const value *a, const value *b)
{
    return a->pool == b->pool && a->offset == b->offset && a->bytes == b->bytes;
}

static uint32_t root_of(value *self, uint32_t k)
{
    while (self[k].chain != k)
        k = self[k].chain = self[self[k].chain].chain;
    return k;
}

static void join(value *self, uint32_t a, uint32_t b)
{
    a = root_of(self, a), b = root_of(self, b);
    self[a < b ? b : a].chain = a < b ? a : b;
}

/* Joins values [from, to), all of one place, that share a step; then chains that have a mark in
 * common. first[mark]: the first value with it, + 1 + `from`; smaller: none here. */
static void join_place(value *self, uint32_t from, uint32_t to, const uint32_t *mark,
                       uint32_t *first)
{
    uint64_t reach = 0;

    for (uint32_t k = from; k < to; k++) {
        uint32_t m = mark[self[k].i];

        if (k > from && self[k].birth < reach)
            join(self, k, k - 1);
        reach = mpl_max_u64(reach, self[k].death);
        if (m > 0 && first[m] > from)
            join(self, k, first[m] - 1);
        else if (m > 0)
            first[m] = k + 1;
    }
}

static void drop(mpl_ctx *ctx, mpl_import_list *list, uint32_t i)
{
    mpl_free(ctx, list->item[i].name);
    list->item[i].name = NULL;
}

/* Merges value k into its chain's first one, whose death is the furthest so far. */
static mpl_status merge(mpl_ctx *ctx, mpl_import_list *list, const value *v, uint32_t k,
                        mpl_xla_gaps *gaps)
{
    mpl_import_buffer *into = &list->item[v[v[k].chain].i];

    if (v[k].birth > into->death) {
        MPL_PASS(mpl_reserve(ctx, gaps->item, gaps->cap, (size_t)gaps->n + 1));
        gaps->item[gaps->n++] =
            (mpl_xla_gap){v[v[k].chain].i, (uint32_t)into->death, (uint32_t)v[k].birth};
    }
    into->death = mpl_max_u64(into->death, v[k].death);
    drop(ctx, list, v[k].i);
    return MPL_OK;
}

/* Moves the buffers that are left together; gaps follow them, sorted. */
static mpl_status compact(mpl_ctx *ctx, mpl_import_list *list, mpl_xla_gaps *gaps)
{
    mpl_status st = MPL_OK;
    uint32_t *now = NULL, n = 0;

    MPL_TRY(mpl_new(ctx, now, list->n));
    for (uint32_t i = 0; i < list->n; i++)
        if (list->item[i].name != NULL)
            now[i] = n, list->item[n++] = list->item[i];
    list->n = n;
    for (uint32_t k = 0; k < gaps->n; k++)
        gaps->item[k].b = now[gaps->item[k].b];
out:
    mpl_free(ctx, now);
    return st;
}

static mpl_status merge_chains(mpl_ctx *ctx, mpl_import_list *list, value *v, const uint32_t *mark,
                               mpl_xla_gaps *gaps)
{
    mpl_status st = MPL_OK;
    uint8_t *looped = NULL;

    MPL_TRY(mpl_new(ctx, looped, list->n));
    for (uint32_t k = 0; k < list->n; k++) {
        v[k].chain = root_of(v, k);
        looped[v[k].chain] |= mark[v[k].i] > 0;
    }
    for (uint32_t k = 1; k < list->n; k++) {
        const value *a = &v[k], *b = a - 1;

        if (a->chain != k && looped[a->chain])
            MPL_TRY(merge(ctx, list, v, k, gaps));
        else if (same_place(a, b) && a->birth == b->birth && a->death == a->birth + 1)
            drop(ctx, list, a->i);
    }
out:
    mpl_free(ctx, looped);
    return st;
}

mpl_status mpl_xla_merge(mpl_ctx *ctx, mpl_import_list *list, const uint32_t *mark,
                         mpl_xla_gaps *gaps)
{
    mpl_status st = MPL_OK;
    value *v = NULL;
    uint32_t *first = NULL, n_marks = 1;

    for (uint32_t i = 0; i < list->n; i++)
        n_marks = mark[i] >= n_marks ? mark[i] + 1 : n_marks;
    MPL_TRY(mpl_new(ctx, v, list->n));
    MPL_TRY(mpl_new(ctx, first, n_marks));
    for (uint32_t i = 0; i < list->n; i++) {
        const mpl_import_buffer *buffer = &list->item[i];

        v[i] = (value){
            buffer->offset, buffer->bytes, buffer->birth, buffer->death, buffer->pool, i, 0};
    }
    if (list->n > 1)
        qsort(v, list->n, sizeof *v, by_start);
    for (uint32_t k = 0; k < list->n; k++)
        v[k].chain = k;
    for (uint32_t from = 0, to; from < list->n; from = to) {
        for (to = from + 1; to < list->n && same_place(&v[from], &v[to]);)
            to++;
        join_place(v, from, to, mark, first);
    }
    MPL_TRY(merge_chains(ctx, list, v, mark, gaps));
    MPL_TRY(compact(ctx, list, gaps));
out:
    mpl_free_each(ctx, v, first);
    return st;
}

MPL_ORDER_BY(by_buffer, mpl_xla_gap, MPL_RISING(b) MPL_RISING(from) MPL_RISING(to))

static mpl_status set_gaps(mpl_ctx *ctx, mpl_problem *p, const mpl_xla_gaps *gaps)
{
    if (gaps->n == 0)
        return MPL_OK;
    qsort(gaps->item, gaps->n, sizeof *gaps->item, by_buffer);
    MPL_PASS(mpl_new(ctx, p->gap_begin, p->n + (size_t)1));
    MPL_PASS(mpl_new_each(ctx, gaps->n, p->gap_from, p->gap_to));
    for (uint32_t k = 0; k < gaps->n; k++) {
        p->gap_begin[gaps->item[k].b + 1]++;
        p->gap_from[k] = gaps->item[k].from;
        p->gap_to[k] = gaps->item[k].to;
    }
    for (mpl_buffer b = 0; b < p->n; b++)
        p->gap_begin[b + 1] += p->gap_begin[b];
    return MPL_OK;
}

/* ---- in place ---- */

typedef struct event {
    uint64_t offset;
    uint32_t pool, step, ends; /* ends: the buffer's last step is `step`; else its first */
    mpl_buffer b;
} event;

typedef struct pair {
    uint32_t step;
    mpl_buffer out, in;
} pair;

MPL_ORDER_BY(by_place, event,
             MPL_RISING(pool) MPL_RISING(offset) MPL_RISING(step) MPL_RISING(ends) MPL_RISING(b))

MPL_ORDER_BY(by_step, pair, MPL_RISING(step) MPL_RISING(out) MPL_RISING(in))

/* Pairs each buffer with each large enough one that ends at the place and step where it begins. */
static mpl_status find_pairs(mpl_ctx *ctx, const mpl_problem *p, const mpl_plan *plan, pair **pairs,
                             size_t *n)
{
    mpl_status st = MPL_OK;
    event *e = NULL;
    size_t cap = 0, n_events = 2 * (size_t)p->n;

    MPL_TRY(mpl_new(ctx, e, n_events));
    for (mpl_buffer b = 0; b < p->n; b++) {
        e[2 * (size_t)b] = (event){plan->offset[b], p->pool[b], p->birth[b], 0, b};
        e[2 * (size_t)b + 1] = (event){plan->offset[b], p->pool[b], p->death[b] - 1, 1, b};
    }
    qsort(e, n_events, sizeof *e, by_place);
    for (size_t i = 0; i < n_events; i++)
        for (size_t k = i + 1; e[i].ends == 0 && k < n_events; k++) {
            mpl_buffer out = e[i].b, in = e[k].b;

            if (e[k].pool != e[i].pool || e[k].offset != e[i].offset || e[k].step != e[i].step)
                break;
            if (e[k].ends == 0 || p->birth[in] >= e[i].step || p->bytes[out] > p->bytes[in])
                continue;
            MPL_TRY(mpl_reserve(ctx, *pairs, cap, *n + 1));
            (*pairs)[(*n)++] = (pair){e[i].step, out, in};
        }
    if (*n > 1)
        qsort(*pairs, *n, sizeof **pairs, by_step);
out:
    mpl_free(ctx, e);
    return st;
}

mpl_status mpl_xla_offer_pairs(mpl_ctx *ctx, mpl_problem *p, const mpl_plan *plan,
                               const mpl_xla_gaps *gaps)
{
    mpl_status st = MPL_OK;
    pair *pairs = NULL;
    size_t n = 0;

    MPL_TRY(set_gaps(ctx, p, gaps));
    MPL_TRY(find_pairs(ctx, p, plan, &pairs, &n));
    MPL_TRY(mpl_new_each(ctx, n, p->in_place_in, p->in_place_out, p->in_place_step));
    for (size_t i = 0; i < n; i++) {
        p->in_place_in[i] = pairs[i].in;
        p->in_place_out[i] = pairs[i].out;
        p->in_place_step[i] = pairs[i].step;
    }
    p->n_in_place = (uint32_t)n;
out:
    mpl_free(ctx, pairs);
    return st;
}
