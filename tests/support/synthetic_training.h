/* synthetic_training.h -- problems shaped like network training, for benchmarks of parallel safety.
 *
 * Layer i has a forward event f(i) that makes activation a(i), and a backward event b(i) that reads
 * a(i) and makes gradient g(i), which b(i - 1) reads. One layer in four also feeds a layer two to
 * five further on (a shortcut), whose backward event then feeds it. One layer in eight has a side
 * branch: a buffer made by f(i) and read by f(i + 1), on which nothing else depends. Sizes fall
 * with depth as in a network that halves its images. */
#pragma once

#include "graphs/problem/before.h"
#include "graphs/core/rng.h"

#include <stdlib.h>

typedef struct layers {
    uint32_t n;     /* layers */
    uint32_t *jump; /* [n] layer that a shortcut from i reaches, or i */
    uint8_t *side;  /* [n] 1: has a side branch */
} layers;

typedef struct arc {
    uint32_t from, to;
} arc;

static int by_arc(const void *left, const void *right)
{
    const arc *x = left, *y = right;

    if (x->from != y->from)
        return x->from < y->from ? -1 : 1;
    return (x->to > y->to) - (x->to < y->to);
}

static uint32_t forward(uint32_t i)
{
    return i;
}

static uint32_t backward(const layers *l, uint32_t i)
{
    return 2 * l->n - 1 - i;
}

static mpl_status draw_layers(mpl_ctx *ctx, uint32_t n_buffers, mpl_rng *rng, layers *l,
                              uint32_t *n_made)
{
    MPL_PASS(mpl_new_each(ctx, n_buffers, l->jump, l->side));
    for (*n_made = 0; *n_made < n_buffers; l->n++) {
        uint32_t left = n_buffers - *n_made;

        l->side[l->n] = left > 2 && mpl_rng_below(rng, 8) == 0;
        l->jump[l->n] = l->n;
        if (mpl_rng_below(rng, 4) == 0)
            l->jump[l->n] += 2 + (uint32_t)mpl_rng_below(rng, 4);
        *n_made += 2u + l->side[l->n];
    }
    for (uint32_t i = 0; i < l->n; i++)
        if (l->jump[i] >= l->n)
            l->jump[i] = i;
    return MPL_OK;
}

/* Edges between events: f(i) -> f(i + 1), b(i + 1) -> b(i), f(i) -> b(i), and the shortcuts both
 * ways. */
static mpl_status make_edges(mpl_ctx *ctx, const layers *l, mpl_access *a)
{
    mpl_status st = MPL_OK;
    arc *list = NULL;
    uint32_t n = 0;

    a->n_events = 2 * l->n;
    MPL_TRY(mpl_new(ctx, list, 5 * (size_t)l->n));
    for (uint32_t i = 0; i < l->n; i++) {
        list[n++] = (arc){forward(i), backward(l, i)};
        if (i + 1 < l->n) {
            list[n++] = (arc){forward(i), forward(i + 1)};
            list[n++] = (arc){backward(l, i + 1), backward(l, i)};
        }
        if (l->jump[i] > i + 1) {
            list[n++] = (arc){forward(i), forward(l->jump[i])};
            list[n++] = (arc){backward(l, l->jump[i]), backward(l, i)};
        }
    }
    qsort(list, n, sizeof *list, by_arc);
    MPL_TRY(mpl_new(ctx, a->edge_begin, (size_t)a->n_events + 1));
    MPL_TRY(mpl_new(ctx, a->edge_item, n));
    for (uint32_t i = 0; i < n; i++) {
        a->edge_begin[list[i].from + 1] = i + 1;
        a->edge_item[i] = list[i].to;
    }
    for (uint32_t e = 0; e < a->n_events; e++)
        if (a->edge_begin[e + 1] < a->edge_begin[e])
            a->edge_begin[e + 1] = a->edge_begin[e];
out:
    mpl_free(ctx, list);
    return st;
}

static void add_buffer(mpl_problem *p, mpl_access *a, uint32_t *n, uint64_t bytes, uint32_t first,
                       uint32_t last)
{
    p->bytes[*n] = bytes;
    p->align[*n] = 64;
    a->first_item[*n] = first;
    a->last_item[*n] = last;
    a->first_begin[*n + 1] = a->last_begin[*n + 1] = *n + 1;
    ++*n;
}

static void fill_buffers(const layers *l, mpl_rng *rng, mpl_problem *p, mpl_access *a)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < l->n; i++) {
        uint64_t bytes =
            (UINT64_C(1) << (22 - 8 * (uint64_t)i / l->n)) * (1 + mpl_rng_below(rng, 4));

        add_buffer(p, a, &n, bytes, forward(i), backward(l, i));
        if (l->side[i])
            add_buffer(p, a, &n, bytes / 2, forward(i),
                       i + 1 < l->n ? forward(i + 1) : backward(l, i));
        add_buffer(p, a, &n, bytes, backward(l, i), i > 0 ? backward(l, i - 1) : backward(l, 0));
    }
}

/* A parallel problem of n to n + 2 buffers, determined by the seed. */
static mpl_status synthetic_training(mpl_ctx *ctx, uint32_t n, uint64_t seed, mpl_problem **out)
{
    mpl_status st = MPL_OK;
    layers l = {0};
    mpl_rng rng = mpl_rng_of(seed);
    mpl_problem *p = NULL;
    mpl_access *a = NULL;
    mpl_before *before = NULL;
    uint32_t n_made;

    MPL_TRY(draw_layers(ctx, n, &rng, &l, &n_made));
    MPL_TRY(mpl_problem_new(ctx, "synthetic_training", n_made, &p));
    MPL_TRY(mpl_new(ctx, a, 1));
    p->access = a;
    MPL_TRY(mpl_new_each(ctx, (size_t)n_made + 1, a->first_begin, a->last_begin));
    MPL_TRY(mpl_new_each(ctx, n_made, a->first_item, a->last_item));
    MPL_TRY(make_edges(ctx, &l, a));
    fill_buffers(&l, &rng, p, a);
    MPL_TRY(mpl_before_from_access(ctx, n_made, a, &before));
    p->before = before;
    *out = p, p = NULL;
out:
    mpl_free_each(ctx, l.jump, l.side);
    mpl_problem_free(ctx, p);
    return st;
}
