/* nnc_2018.c -- NNC's allocation graph as first published: most interferences first, with pairing.
 *
 * Idea     The buffers with the most interferences are candidates. Each may bring a larger buffer
 *          that it does not interfere with; both take one offset. Of all candidates the first, by
 *          size and then by interferences, that fits an edge is inserted.
 * Source   Liu Liu, "The NNC Tensor Allocation Algorithm", 27 April 2018, and libnnc of May 2018;
 *          see nnc_graph.h. rule=text: the text's step 4 takes no edge that touches the source or
 *          the sink; rule=code: the code of May 2018 takes them last.
 * Differs  Equal keys go by id (ties=id); production leaves them to its sort. They are many, and
 *          matter: ties=reversed and ties=shuffled,shuffle=N say how much. The text's step 3 orders
 *          candidates by size, then by interferences (keys=size+edges), where the idea, the most
 *          interferences first, would have them the other way round (keys=edges+size); with one key
 *          alone (keys=size, keys=edges) the rest is ties.
 * Cost     O(n) a round, and O(usable edges + larger buffers) for each buffer of most interferences
 *          whose best tuple is looked for anew. Those are few: until a block is opened fewer and
 *          fewer buffers fit an edge, so the tuple found before is a bound.
 *          n^2 / 4 bytes, and up to 64 MiB of kept edges.
 * Limits   The third member of a tuple, a loop-carry companion, needs loops. */
#include "planners/published/nnc_graph.h"

#include "graphs/core/rng.h"
#include "graphs/problem/before.h"

#include <stdlib.h>

enum { MOST_KEPT = 1 << 22 }; /* edges kept for all buffers together */

/* A tuple, with what it is ordered by. */
typedef struct candidate {
    uint64_t key[2]; /* the larger first */
    uint32_t tie_a, tie_k;
    mpl_buffer a;
    mpl_buffer k; /* MPL_NONE: a alone */
} candidate;

/* An edge that can hold a buffer alone, with the bytes that it had when last looked at. */
typedef struct kept_edge {
    uint64_t bytes;
    uint32_t id;
} kept_edge;

/* All edges below `seen` that can hold a buffer alone, the widest first, as they were after the
 * first `n_used` insertions into edges. */
typedef struct usable_edges {
    kept_edge *edge;
    size_t n, cap;
    uint32_t seen, n_used;
} usable_edges;

/* What fits, together with one buffer a, the edges of a that were added. */
typedef struct reach {
    uint64_t *later, *earlier;   /* bit set: may follow a, may precede a, on one of these edges */
    bool any_later, any_earlier; /* an edge leads to the sink, comes from the source */
    size_t n;                    /* edges added */
} reach;

/* The first tuple with buffer a, as it was in a round; a = MPL_NONE: there was none. Until a block
 * is opened there is none before it. */
typedef struct best_with {
    candidate first;
    uint32_t round; /* 0: never looked for */
} best_with;

/* What a planner of this file keeps over the rounds. */
typedef struct chooser {
    bool pairs;
    bool by_size, by_edges; /* the keys */
    bool edges_first;
    uint32_t *tie;       /* [n] equal keys go by it */
    mpl_buffer *largest; /* [n_left] buffers not yet inserted, the largest first */
    mpl_buffer *by_tie;  /* [n_by_tie] the same, ties ascending */
    mpl_buffer *of_most; /* [n_most] those with the most interferences, ties ascending */
    uint32_t n_left, n_by_tie, n_most;
    usable_edges *usable; /* [n] */
    kept_edge *used;      /* [n_used] an edge that was inserted into, as it was before */
    uint32_t n, n_used;
    best_with *fits, *all;  /* [n] of tuples that fit an edge; of all */
    uint32_t round, opened; /* now; when a block was opened last */
    size_t n_kept;
    reach reach;
    uint64_t *beside; /* bit set: open buffers that do not interfere with a */
    uint32_t *list;   /* edges of a, for the choice of the best */
    size_t cap_list;
} chooser;

MPL_ORDER_BY(widest_first, kept_edge, MPL_FALLING(bytes) MPL_RISING(id))

/* Whether candidate x comes before y; y.a = MPL_NONE: there is none yet. */
static bool is_better(const candidate *x, const candidate *y)
{
    if (y->a == MPL_NONE)
        return true;
    for (int i = 0; i < 2; i++)
        if (x->key[i] != y->key[i])
            return x->key[i] > y->key[i];
    return x->tie_a != y->tie_a ? x->tie_a < y->tie_a : x->tie_k < y->tie_k;
}

/* Removes what has been inserted; returns how many are left. */
static uint32_t keep_open(const mpl_nnc_graph *g, uint32_t n, mpl_buffer *list)
{
    uint32_t left = 0;

    for (uint32_t i = 0; i < n; i++)
        if (mpl_bit_has(g->open, list[i]))
            list[left++] = list[i];
    return left;
}

static void list_most(const mpl_nnc_graph *g, chooser *c)
{
    uint32_t most = 0;

    c->n_left = keep_open(g, c->n_left, c->largest);
    c->n_by_tie = keep_open(g, c->n_by_tie, c->by_tie);
    c->n_most = 0;
    for (uint32_t i = 0; i < c->n_by_tie; i++)
        most = g->count[c->by_tie[i]] > most ? g->count[c->by_tie[i]] : most;
    for (uint32_t i = 0; i < c->n_by_tie; i++)
        if (g->count[c->by_tie[i]] == most)
            c->of_most[c->n_most++] = c->by_tie[i];
}

/* ---- edges that hold a buffer ---- */

static void forget(const mpl_nnc_graph *g, chooser *c, mpl_buffer b)
{
    c->n_kept -= c->usable[b].n;
    mpl_free(g->ctx, c->usable[b].edge);
    c->usable[b] = (usable_edges){NULL, 0, 0, 0, 0};
}

/* Moves e, the last of n, to its place among the others. */
static void put_in_order(kept_edge *edge, size_t n)
{
    kept_edge e = edge[n - 1];

    for (n--; n > 0 && widest_first(&e, &edge[n - 1]) < 0; n--)
        edge[n] = edge[n - 1];
    edge[n] = e;
}

/* Gives each edge the bytes that it has now, drops those that have become too narrow, and restores
 * the order: few have changed. */
static void refresh(const mpl_nnc_graph *g, usable_edges *edges, uint64_t need)
{
    size_t n = 0;

    for (size_t i = 0; i < edges->n; i++) {
        kept_edge e = {g->edge[edges->edge[i].id].bytes, edges->edge[i].id};

        if (e.bytes < need)
            continue;
        edges->edge[n++] = e;
        put_in_order(edges->edge, n);
    }
    edges->n = n;
}

/* Narrows the one edge that was used, if it is among those kept. */
static void narrow(const mpl_nnc_graph *g, usable_edges *edges, const kept_edge *used,
                   uint64_t need)
{
    kept_edge *found = edges->n > 0
                           ? bsearch(used, edges->edge, edges->n, sizeof *used, widest_first)
                           : NULL,
              e;
    kept_edge *end = edges->edge + edges->n;

    if (found == NULL)
        return;
    e = (kept_edge){g->edge[used->id].bytes, used->id};
    for (; found + 1 < end && (e.bytes < need || widest_first(&found[1], &e) < 0); found++)
        found[0] = found[1];
    *found = e;
    edges->n -= e.bytes < need;
}

/* Brings the edges that can hold b alone up to date. */
static mpl_status update(mpl_nnc_graph *g, chooser *c, mpl_buffer b)
{
    usable_edges *edges = &c->usable[b];
    bool many = g->n_edges - edges->seen > 64;

    c->n_kept -= edges->n;
    g->ticks += g->n_edges - edges->seen;
    if (c->n_used - edges->n_used > 8) {
        g->ticks += edges->n;
        refresh(g, edges, g->size[b]);
        edges->n_used = c->n_used;
    }
    for (; edges->n_used < c->n_used; edges->n_used++)
        narrow(g, edges, &c->used[edges->n_used], g->size[b]);
    for (; edges->seen < g->n_edges; edges->seen++) {
        const mpl_nnc_edge *edge = &g->edge[edges->seen];

        if (edge->bytes < g->size[b] || !mpl_nnc_usable(g, edge, b, b, g->size[b]))
            continue;
        MPL_PASS(mpl_reserve(g->ctx, edges->edge, edges->cap, edges->n + 1));
        edges->edge[edges->n++] = (kept_edge){edge->bytes, edges->seen};
        if (!many)
            put_in_order(edges->edge, edges->n);
    }
    if (many && edges->n > 0)
        qsort(edges->edge, edges->n, sizeof *edges->edge, widest_first);
    c->n_kept += edges->n;
    return MPL_OK;
}

/* ---- pairs ---- */

static void join(const mpl_nnc_graph *g, uint64_t *to, const uint64_t *from)
{
    for (uint32_t w = 0; w < g->n_words; w++)
        to[w] |= from[w];
}

/* Adds edge (y, x), which holds a: what lies between a and x, or between y and a, fits it. A buffer
 * that one added before reaches over adds nothing. */
static void add_edge(mpl_nnc_graph *g, reach *r, const mpl_nnc_edge *edge)
{
    uint32_t n = g->p->n;

    if (edge->to == n + 1) {
        r->any_later = true;
    } else if (!r->any_later && !mpl_bit_has(r->later, edge->to)) {
        join(g, r->later, g->after + (size_t)edge->to * g->n_words);
        g->ticks += g->n_words / 16;
    }
    if (edge->from == n) {
        r->any_earlier = true;
    } else if (!r->any_earlier && !mpl_bit_has(r->earlier, edge->from)) {
        join(g, r->earlier, g->p->before->row + (size_t)edge->from * g->n_words);
        g->ticks += g->n_words / 16;
    }
}

/* Adds the edges of a that have as many bytes. */
static void widen(mpl_nnc_graph *g, reach *r, const usable_edges *edges, uint64_t bytes)
{
    for (; r->n < edges->n && edges->edge[r->n].bytes >= bytes; r->n++)
        add_edge(g, r, &g->edge[edges->edge[r->n].id]);
}

static bool reaches(const mpl_nnc_graph *g, const reach *r, mpl_buffer a, mpl_buffer k)
{
    return mpl_is_before(g->p->before, a, k) ? r->any_later || mpl_bit_has(r->later, k)
                                             : r->any_earlier || mpl_bit_has(r->earlier, k);
}

static candidate candidate_of(const mpl_nnc_graph *g, const chooser *c, mpl_buffer a, mpl_buffer k)
{
    uint64_t size = c->by_size ? g->size[k != MPL_NONE ? k : a] : 0;
    uint64_t count = c->by_edges && k != MPL_NONE ? g->count[k] : 0; /* beside that of a */
    uint32_t tie_k = k != MPL_NONE ? c->tie[k] : MPL_NONE;

    if (c->edges_first)
        return (candidate){{count, size}, c->tie[a], tie_k, a, k};
    return (candidate){{size, count}, c->tie[a], tie_k, a, k};
}

/* The first of largest[] with at most so many bytes. */
static uint32_t first_within(const mpl_nnc_graph *g, const chooser *c, uint64_t bytes)
{
    uint32_t low = 0, high = c->n_left;

    while (low < high) {
        uint32_t middle = low + (high - low) / 2;

        if (g->size[c->largest[middle]] > bytes)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static void start_pairs(const mpl_nnc_graph *g, chooser *c, mpl_buffer a)
{
    size_t row = (size_t)a * g->n_words;
    const uint64_t *pool = g->pool_mask + (size_t)g->p->pool[a] * g->n_words;

    for (uint32_t w = 0; w < g->n_words; w++)
        c->beside[w] = (g->p->before->row[row + w] | g->after[row + w]) & pool[w];
    memset(c->reach.later, 0, g->n_words * sizeof *c->reach.later);
    memset(c->reach.earlier, 0, g->n_words * sizeof *c->reach.earlier);
    c->reach.any_later = c->reach.any_earlier = false;
    c->reach.n = 0;
}

/* Improves *best by pairs of a and a larger buffer among largest[begin ..], of those that fit an
 * edge where `fitting`. */
static void try_pairs(mpl_nnc_graph *g, chooser *c, mpl_buffer a, bool fitting, uint32_t begin,
                      candidate *best)
{
    bool size_first = c->by_size && !c->edges_first;
    uint32_t i;

    start_pairs(g, c, a);
    for (i = begin; i < c->n_left; i++) {
        mpl_buffer k = c->largest[i];
        candidate next;

        if (g->size[k] <= g->size[a] ||
            (size_first && best->a != MPL_NONE && g->size[k] < best->key[0]))
            break;
        if (!mpl_bit_has(c->beside, k))
            continue;
        next = candidate_of(g, c, a, k);
        if (!is_better(&next, best))
            continue;
        if (fitting)
            widen(g, &c->reach, &c->usable[a], g->size[k]);
        if (!fitting || reaches(g, &c->reach, a, k))
            *best = next;
    }
    g->ticks += (i - begin) / 8;
}

/* Whether what was found holds as a bound. */
static bool is_bound(const chooser *self, const best_with *with, bool fitting)
{
    return fitting ? with->round > self->opened : with->round > 0;
}

/* Finds the first tuple with a anew. */
static mpl_status look(mpl_nnc_graph *g, chooser *c, mpl_buffer a, bool fitting, best_with *with)
{
    candidate best = {.a = MPL_NONE};
    uint64_t widest = UINT64_MAX;

    if (fitting) {
        MPL_PASS(update(g, c, a));
        widest = c->usable[a].n > 0 ? c->usable[a].edge[0].bytes : 0;
    }
    if (is_bound(c, with, fitting) && with->first.a != MPL_NONE && c->by_size && !c->edges_first)
        widest = mpl_min_u64(widest, with->first.key[0]);
    if (widest >= g->size[a]) {
        candidate alone = candidate_of(g, c, a, MPL_NONE);

        if (c->pairs)
            try_pairs(g, c, a, fitting, first_within(g, c, widest), &best);
        if (is_better(&alone, &best))
            best = alone;
    }
    *with = (best_with){best, c->round};
    return MPL_OK;
}

/* The first candidate, of those that fit an edge where `fitting`; its a is MPL_NONE if there is
 * none. Looks anew only where the bound is before the best so far, beginning with the first. */
static mpl_status choose(mpl_nnc_graph *g, chooser *c, bool fitting, candidate *best)
{
    best_with *all = fitting ? c->fits : c->all;
    candidate top = {.a = MPL_NONE};

    for (uint32_t i = 0; i < c->n_most; i++) {
        mpl_buffer a = c->of_most[i];

        if (!is_bound(c, &all[a], fitting))
            MPL_PASS(look(g, c, a, fitting, &all[a]));
        if (all[a].first.a != MPL_NONE && is_better(&all[a].first, &top))
            top = all[a].first;
    }
    best->a = MPL_NONE;
    if (top.a != MPL_NONE) {
        MPL_PASS(look(g, c, top.a, fitting, &all[top.a]));
        *best = all[top.a].first;
    }
    for (uint32_t i = 0; i < c->n_most; i++) {
        best_with *with = &all[c->of_most[i]];

        if (with->first.a == MPL_NONE || !is_better(&with->first, best))
            continue;
        if (with->round < c->round)
            MPL_PASS(look(g, c, c->of_most[i], fitting, with));
        if (with->first.a != MPL_NONE && is_better(&with->first, best))
            *best = with->first;
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

/* The best edge for a tuple, whose edges are among those of its buffer a. */
static mpl_status find_edge(mpl_nnc_graph *g, chooser *c, const mpl_nnc_tuple *tuple, mpl_buffer a,
                            uint32_t *edge)
{
    const usable_edges *edges = &c->usable[a];

    MPL_PASS(mpl_reserve(g->ctx, c->list, c->cap_list, edges->n));
    for (size_t i = 0; i < edges->n; i++)
        c->list[i] = edges->edge[i].id;
    *edge = mpl_nnc_best_edge(g, tuple, (uint32_t)edges->n, c->list);
    mpl_assert(*edge != MPL_NONE);
    return MPL_OK;
}

static mpl_status insert_next(mpl_nnc_graph *g, void *arg)
{
    chooser *c = arg;
    candidate best;
    mpl_nnc_tuple tuple;
    uint32_t edge = MPL_NONE;

    c->round++;
    list_most(g, c);
    for (mpl_buffer b = 0; b < g->p->n && c->n_kept > MOST_KEPT; b++)
        forget(g, c, b);
    MPL_PASS(choose(g, c, true, &best));
    if (best.a == MPL_NONE) {
        MPL_PASS(choose(g, c, false, &best));
        tuple = tuple_of(g, &best);
        c->opened = c->round;
    } else {
        tuple = tuple_of(g, &best);
        MPL_PASS(find_edge(g, c, &tuple, best.a, &edge));
    }
    for (uint32_t i = 0; i < tuple.n; i++)
        forget(g, c, tuple.member[i]);
    if (edge != MPL_NONE)
        c->used[c->n_used++] = (kept_edge){g->edge[edge].bytes, edge};
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
    uint32_t tie;
    mpl_buffer id;
} sized;

MPL_ORDER_BY(larger_first, sized, MPL_FALLING(size) MPL_RISING(tie))

static mpl_status sort_by_size(const mpl_nnc_graph *g, chooser *c)
{
    sized *list = NULL;

    MPL_PASS(mpl_new(g->ctx, list, g->p->n));
    for (mpl_buffer b = 0; b < g->p->n; b++)
        list[b] = (sized){g->size[b], c->tie[b], b};
    qsort(list, g->p->n, sizeof *list, larger_first);
    for (uint32_t i = 0; i < g->p->n; i++)
        c->largest[i] = list[i].id;
    mpl_free(g->ctx, list);
    return MPL_OK;
}

static void set_keys(const mpl_run *run, chooser *c)
{
    const char *keys = mpl_run_param(run, "keys");

    c->edges_first = keys != NULL && strncmp(keys, "edges", 5) == 0;
    c->by_size = keys == NULL || strcmp(keys, "edges") != 0;
    c->by_edges = keys == NULL || strcmp(keys, "size") != 0;
}

static mpl_status start(mpl_run *run, mpl_nnc_graph *g, void *arg)
{
    const char *rule = mpl_run_param(run, "rule"), *pairs = mpl_run_param(run, "pairs");
    chooser *c = arg;

    g->inner_only = rule != NULL && strcmp(rule, "text") == 0;
    c->pairs = pairs == NULL || strcmp(pairs, "on") == 0;
    c->n = c->n_left = c->n_by_tie = g->p->n;
    set_keys(run, c);
    MPL_PASS(mpl_new_each(run->ctx, c->n, c->tie, c->largest, c->by_tie, c->of_most, c->usable,
                          c->used, c->fits, c->all));
    MPL_PASS(mpl_new_each(run->ctx, g->n_words, c->reach.later, c->reach.earlier, c->beside));
    MPL_PASS(set_ties(run, c, c->n));
    for (mpl_buffer b = 0; b < c->n; b++)
        c->by_tie[c->tie[b]] = b;
    return sort_by_size(g, c);
}

static mpl_status plan(mpl_run *run, const mpl_problem *p, mpl_plan *out)
{
    chooser c = {0};
    mpl_status st = mpl_nnc_plan(run, p, out, start, insert_next, &c);

    for (uint32_t b = 0; c.usable != NULL && b < c.n; b++)
        mpl_free(run->ctx, c.usable[b].edge);
    mpl_free_each(run->ctx, c.tie, c.largest, c.by_tie, c.of_most, c.usable, c.used, c.fits, c.all,
                  c.reach.later, c.reach.earlier, c.beside, c.list);
    return st;
}

const mpl_planner mpl_planner_nnc_2018 = {
    .name = "nnc_2018",
    .about = "NNC's allocation graph, most interference first, in pairs (as published)",
    .source = "liu2018",
    .params = "rule=code|text,pairs=on|off,keys=size+edges|edges+size|size|edges,"
              "ties=id|reversed|shuffled,shuffle=N",
    .traits = MPL_BLOCKS | MPL_PARALLEL_ONLY | MPL_USES_IN_PLACE,
    .plan = plan,
};
