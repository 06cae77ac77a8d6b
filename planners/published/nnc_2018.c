/* nnc_2018.c -- NNC's allocation graph as first published: most interferences first, with pairing.
 *
 * Idea     The buffer with the most interferences goes first. It may bring a larger buffer that it
 *          does not interfere with; both take one offset.
 * Source   Liu Liu, "The NNC Tensor Allocation Algorithm", 27 April 2018, and libnnc of May 2018;
 *          see nnc_graph.h. rule=text: the text's step 4 takes no edge that touches the source or
 *          the sink; rule=code: the code of May 2018 takes them last.
 * Differs  Equal keys go by id (ties=id); production leaves them to its sort. They are many, and
 *          matter: ties=reversed and ties=shuffled,shuffle=N say how much.
 * Cost     O(n) candidates a round, of which only those that fit an edge alone are looked at
 * closely: O(n (n + arcs)) where most do; n^2 / 4 bytes. Limits   The third member of a tuple, a
 * loop-carry companion, needs loops. */
#include "planners/published/nnc_graph.h"

#include "graphs/core/rng.h"
#include "graphs/problem/before.h"

#include <stdlib.h>

typedef struct candidate {
    uint64_t size;  /* largest of the tuple [byte] */
    uint64_t count; /* interferences of all members */
    uint32_t tie_a, tie_k;
    mpl_buffer a;
    mpl_buffer k; /* MPL_NONE: a alone */
} candidate;

/* What a planner of this file keeps over the rounds. */
typedef struct chooser {
    bool pairs;
    uint32_t *tie;       /* [n] equal keys go by it */
    mpl_buffer *by_size; /* [n_left] buffers not yet inserted, the largest first */
    uint32_t n_left;
    uint64_t *most;      /* bit set: open, with the most interferences of all */
    mpl_buffer *by_tie;  /* [n_by_tie] buffers, those not yet inserted among them, ties ascending */
    mpl_buffer *of_most; /* [n_most] of `most`, ties ascending */
    uint32_t n_by_tie, n_most;
    candidate *list; /* [n] */
    size_t n, cap;
    candidate *ring; /* [n_ring] largest members of one size, the most interferences first */
    size_t n_ring, cap_ring;
} chooser;

MPL_ORDER_BY(better_first, candidate,
             MPL_FALLING(size) MPL_FALLING(count) MPL_RISING(tie_a) MPL_RISING(tie_k))

static bool is_open(const mpl_nnc_graph *g, mpl_buffer b)
{
    return mpl_bit_has(g->open, b);
}

static void mark_most(const mpl_nnc_graph *g, chooser *c)
{
    uint32_t most = 0, left = 0;

    for (uint32_t i = 0; i < c->n_left; i++)
        if (is_open(g, c->by_size[i])) {
            c->by_size[left] = c->by_size[i];
            most = g->count[c->by_size[left]] > most ? g->count[c->by_size[left]] : most;
            left++;
        }
    c->n_left = left;
    memset(c->most, 0, g->n_words * sizeof *c->most);
    c->n_most = 0;
    left = 0;
    for (uint32_t i = 0; i < c->n_by_tie; i++) {
        mpl_buffer b = c->by_tie[i];

        if (!is_open(g, b))
            continue;
        c->by_tie[left++] = b;
        if (g->count[b] == most) {
            mpl_bit_add(c->most, b);
            c->of_most[c->n_most++] = b;
        }
    }
    c->n_by_tie = left;
}

static mpl_status add(const mpl_nnc_graph *g, chooser *c, mpl_buffer a, mpl_buffer k)
{
    candidate next = {g->size[a], g->count[a], c->tie[a], MPL_NONE, a, k};

    if (k != MPL_NONE) {
        next.size = g->size[k];
        next.count += g->count[k];
        next.tie_k = c->tie[k];
    }
    MPL_PASS(mpl_reserve(g->ctx, c->list, c->cap, c->n + 1));
    c->list[c->n++] = next;
    return MPL_OK;
}

/* Whether a, of the most interferences, may bring the larger k. */
static bool is_pair(const mpl_nnc_graph *g, mpl_buffer a, mpl_buffer k)
{
    return g->size[a] < g->size[k] && g->p->pool[a] == g->p->pool[k] && !mpl_conflict(g->p, a, k);
}

/* Lists the tuples of k whose count is that of the most alone: k by itself if it is of those, and
 * pairs if k interferes with nothing. */
static mpl_status list_last(const mpl_nnc_graph *g, chooser *c, mpl_buffer k)
{
    if (mpl_bit_has(c->most, k))
        MPL_PASS(add(g, c, k, MPL_NONE));
    for (uint32_t i = 0; c->pairs && g->count[k] == 0 && i < c->n_most; i++)
        if (is_pair(g, c->of_most[i], k))
            MPL_PASS(add(g, c, c->of_most[i], k));
    return MPL_OK;
}

static mpl_nnc_tuple tuple_of(const mpl_nnc_graph *g, const candidate *c)
{
    if (c->k == MPL_NONE)
        return (mpl_nnc_tuple){1, {c->a}};
    if (mpl_is_before(g->p->before, c->a, c->k))
        return (mpl_nnc_tuple){2, {c->a, c->k}};
    return (mpl_nnc_tuple){2, {c->k, c->a}};
}

/* Whether the tuple is the one sought; its edge where `fitting`. */
static bool takes(mpl_nnc_graph *g, const candidate *of, bool fitting, mpl_nnc_tuple *tuple,
                  uint32_t *edge)
{
    *tuple = tuple_of(g, of);
    if (!fitting)
        return true;
    g->ticks++;
    if (mpl_nnc_any_edge(g, tuple))
        *edge = mpl_nnc_best_edge(g, tuple);
    return *edge != MPL_NONE;
}

/* The first pair with a larger member of ring[begin .. end), which have one count: all pairs of
 * these have one, too, so ties alone decide. */
static bool first_pair(mpl_nnc_graph *g, chooser *c, bool fitting, size_t begin, size_t end,
                       mpl_nnc_tuple *tuple, uint32_t *edge)
{
    for (uint32_t i = 0; i < c->n_most; i++)
        for (size_t j = begin; j < end; j++) {
            candidate pair = {.a = c->of_most[i], .k = c->ring[j].a};

            if (is_pair(g, pair.a, pair.k) && takes(g, &pair, fitting, tuple, edge))
                return true;
        }
    return false;
}

/* Lists the buffers of by_size[*at ..] that have one size, the most interferences first. */
static mpl_status list_ring(mpl_nnc_graph *g, chooser *c, bool fitting, uint32_t *at)
{
    uint64_t size = g->size[c->by_size[*at]];

    c->n_ring = 0;
    for (; *at < c->n_left && g->size[c->by_size[*at]] == size; ++*at) {
        mpl_buffer k = c->by_size[*at];

        if (fitting && !mpl_nnc_has_edge(g, k))
            continue;
        MPL_PASS(mpl_reserve(g->ctx, c->ring, c->cap_ring, c->n_ring + 1));
        c->ring[c->n_ring++] = (candidate){size, g->count[k], c->tie[k], MPL_NONE, k, MPL_NONE};
    }
    if (c->n_ring > 0)
        qsort(c->ring, c->n_ring, sizeof *c->ring, better_first);
    if (fitting && c->n_ring > 0)
        mpl_nnc_mark_wide(g, size);
    return MPL_OK;
}

/* The first tuple, in the order of all, of those whose largest member has one size; those without
 * an edge are passed over where `fitting`. An edge that holds a tuple holds its largest member
 * alone, so members without one are left out then. *at: the first of the next size. */
static mpl_status best_of_size(mpl_nnc_graph *g, chooser *c, bool fitting, uint32_t *at,
                               mpl_nnc_tuple *tuple, uint32_t *edge)
{
    MPL_PASS(list_ring(g, c, fitting, at));
    for (size_t begin = 0, end; c->pairs && begin < c->n_ring; begin = end) {
        for (end = begin; end < c->n_ring && c->ring[end].count == c->ring[begin].count; end++)
            ;
        if (c->ring[begin].count > 0 && first_pair(g, c, fitting, begin, end, tuple, edge))
            return MPL_OK;
    }
    c->n = 0;
    tuple->n = 0;
    for (size_t i = 0; i < c->n_ring; i++)
        MPL_PASS(list_last(g, c, c->ring[i].a));
    if (c->n > 0)
        qsort(c->list, c->n, sizeof *c->list, better_first);
    for (size_t i = 0; i < c->n; i++)
        if (takes(g, &c->list[i], fitting, tuple, edge))
            return MPL_OK;
    tuple->n = 0;
    return MPL_OK;
}

static mpl_status insert_next(mpl_nnc_graph *g, void *arg)
{
    chooser *c = arg;
    uint32_t edge = MPL_NONE;
    mpl_nnc_tuple tuple = {0, {0}};

    mark_most(g, c);
    for (uint32_t at = 0; at < c->n_left && edge == MPL_NONE;)
        MPL_PASS(best_of_size(g, c, true, &at, &tuple, &edge));
    if (edge == MPL_NONE) {
        tuple.n = 0;
        for (uint32_t at = 0; at < c->n_left && tuple.n == 0;)
            MPL_PASS(best_of_size(g, c, false, &at, &tuple, &edge));
    }
    return mpl_nnc_insert(g, &tuple, edge);
}

static mpl_status set_ties(const mpl_run *run, chooser *c, uint32_t n)
{
    const char *ties = mpl_run_param(run, "ties");
    int64_t seed;
    mpl_rng rng;

    MPL_PASS(mpl_run_param_int(run, "shuffle", 0, INT64_MAX, 1, &seed));
    for (uint32_t b = 0; b < n; b++)
        c->tie[b] = ties != NULL && strcmp(ties, "reversed") == 0 ? n - 1 - b : b;
    rng = mpl_rng_of((uint64_t)seed);
    for (uint32_t i = n; ties != NULL && strcmp(ties, "shuffled") == 0 && i > 1; i--) {
        uint32_t k = (uint32_t)mpl_rng_below(&rng, i), held = c->tie[i - 1];

        c->tie[i - 1] = c->tie[k];
        c->tie[k] = held;
    }
    return MPL_OK;
}

typedef struct sized {
    uint64_t size;
    mpl_buffer id;
} sized;

MPL_ORDER_BY(larger_first, sized, MPL_FALLING(size) MPL_RISING(id))

static mpl_status sort_by_size(const mpl_nnc_graph *g, chooser *c)
{
    sized *list = NULL;

    MPL_PASS(mpl_new(g->ctx, list, g->p->n));
    for (mpl_buffer b = 0; b < g->p->n; b++)
        list[b] = (sized){g->size[b], b};
    qsort(list, g->p->n, sizeof *list, larger_first);
    for (uint32_t i = 0; i < g->p->n; i++)
        c->by_size[i] = list[i].id;
    c->n_left = g->p->n;
    mpl_free(g->ctx, list);
    return MPL_OK;
}

static mpl_status start(mpl_run *run, mpl_nnc_graph *g, void *arg)
{
    const char *rule = mpl_run_param(run, "rule"), *pairs = mpl_run_param(run, "pairs");
    chooser *c = arg;

    g->inner_only = rule != NULL && strcmp(rule, "text") == 0;
    c->pairs = pairs == NULL || strcmp(pairs, "on") == 0;
    MPL_PASS(mpl_new_each(run->ctx, g->p->n, c->tie, c->by_size, c->by_tie, c->of_most));
    MPL_PASS(mpl_new(run->ctx, c->most, g->n_words));
    MPL_PASS(set_ties(run, c, g->p->n));
    for (mpl_buffer b = 0; b < g->p->n; b++)
        c->by_tie[c->tie[b]] = b;
    c->n_by_tie = g->p->n;
    return sort_by_size(g, c);
}

static mpl_status plan(mpl_run *run, const mpl_problem *p, mpl_plan *out)
{
    chooser c = {0};
    mpl_status st = mpl_nnc_plan(run, p, out, start, insert_next, &c);

    mpl_free_each(run->ctx, c.tie, c.by_size, c.by_tie, c.most, c.of_most, c.list, c.ring);
    return st;
}

const mpl_planner mpl_planner_nnc_2018 = {
    .name = "nnc_2018",
    .about = "NNC's allocation graph, most interference first, in pairs (as published)",
    .source = "liu2018",
    .params = "rule=code|text,pairs=on|off,ties=id|reversed|shuffled,shuffle=N",
    .traits = MPL_BLOCKS | MPL_PARALLEL_ONLY | MPL_USES_IN_PLACE,
    .plan = plan,
};
