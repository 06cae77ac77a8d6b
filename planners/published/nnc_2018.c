/* nnc_2018.c -- NNC's allocation graph as first published: most interferences first, with pairing.
 *
 * Idea     The buffer with the most interferences goes first. It may bring a larger buffer that it
 *          does not interfere with; both take one offset.
 * Source   Liu Liu, "The NNC Tensor Allocation Algorithm", 27 April 2018, and libnnc of May 2018;
 *          see nnc_graph.h.
 * Differs  Equal keys go by id; production leaves them to its sort. They are many, and matter: with
 *          ids reversed in either key the recorded DenseNet-121 takes 11.87 to 14.93 MiB,
 *          Inception-v3 10.55 to 15.90, VGG-16 training 931 to 980, around the 13.40, 13.26 and 980
 *          of libnnc.
 * Cost     O(n) candidates a round, sorted: O(n^2 log n + n (n + arcs)); n^2 / 4 bytes.
 * Limits   The third member of a tuple, a loop-carry companion, needs loops. */
#include "planners/published/nnc_graph.h"

#include "graphs/problem/before.h"

#include <stdlib.h>

typedef struct candidate {
    uint64_t size;  /* largest of the tuple [byte] */
    uint64_t count; /* interferences of all members */
    mpl_buffer a;
    mpl_buffer k; /* MPL_NONE: a alone */
} candidate;

MPL_ORDER_BY(better_first, candidate,
             MPL_FALLING(size) MPL_FALLING(count) MPL_RISING(a) MPL_RISING(k))

static bool is_open(const mpl_nnc_graph *g, mpl_buffer b)
{
    return mpl_bit_has(g->open, b);
}

static uint32_t most_interferences(const mpl_nnc_graph *g)
{
    uint32_t most = 0;

    for (mpl_buffer b = 0; b < g->p->n; b++)
        if (is_open(g, b) && g->count[b] > most)
            most = g->count[b];
    return most;
}

/* Lists this round's tuples: a alone, and a with each larger k of its pool without interference. */
static mpl_status gather(const mpl_nnc_graph *g, candidate **list, size_t *n)
{
    uint32_t most = most_interferences(g);
    size_t cap = 0;

    *n = 0;
    for (mpl_buffer a = 0; a < g->p->n; a++) {
        if (!is_open(g, a) || g->count[a] != most)
            continue;
        MPL_PASS(mpl_reserve(g->ctx, *list, cap, *n + g->p->n));
        (*list)[(*n)++] = (candidate){g->size[a], g->count[a], a, MPL_NONE};
        for (mpl_buffer k = 0; k < g->p->n; k++)
            if (k != a && is_open(g, k) && g->size[k] > g->size[a] &&
                g->p->pool[k] == g->p->pool[a] && !mpl_conflict(g->p, a, k))
                (*list)[(*n)++] =
                    (candidate){g->size[k], (uint64_t)g->count[a] + g->count[k], a, k};
    }
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

static mpl_status insert_next(mpl_nnc_graph *g)
{
    mpl_status st = MPL_OK;
    candidate *list = NULL;
    size_t n;
    uint32_t edge = MPL_NONE;
    mpl_nnc_tuple tuple;

    MPL_TRY(gather(g, &list, &n));
    qsort(list, n, sizeof *list, better_first);
    for (size_t i = 0; i < n && edge == MPL_NONE; i++) {
        tuple = tuple_of(g, &list[i]);
        edge = mpl_nnc_best_edge(g, &tuple);
    }
    if (edge == MPL_NONE)
        tuple = tuple_of(g, &list[0]);
    MPL_TRY(mpl_nnc_insert(g, &tuple, edge));
out:
    mpl_free(g->ctx, list);
    return st;
}

static mpl_status plan(mpl_run *run, const mpl_problem *p, mpl_plan *out)
{
    return mpl_nnc_plan(run, p, out, insert_next);
}

const mpl_planner mpl_planner_nnc_2018 = {
    .name = "nnc_2018",
    .about = "NNC's allocation graph, most interference first, in pairs (as published)",
    .source = "liu2018",
    .traits = MPL_BLOCKS | MPL_PARALLEL_ONLY | MPL_USES_IN_PLACE,
    .plan = plan,
};
