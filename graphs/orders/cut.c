/* cut.c -- a bound of every order: each operation has to run at some set of operations done. See orders_priv.h.
 *
 * Idea     When v runs, a closed set is done that has all of v's ancestors and none of its descendants. The fewest live bytes of
 *          such a set are a minimum cut: operations done on the source's side, with them a node for each buffer that is
 *          freed, which needs all of its users; a buffer that is made and not freed pays its bytes on the arc between.
 *          An operation may save the bytes of its output where one operand's other users are done: tried for each operand.
 * Source   live bytes as a cut: this project; Dinic's algorithm: E. A. Dinic, 1970.
 * Cost     One or a few maximum flows for each operation that costs more in the order at hand than is proved. */
#include "graphs/orders/orders_priv.h"

#include <stdlib.h>

typedef struct network {
    uint32_t n_nodes, n_arcs;  /* arc i ^ 1 is arc i turned round */
    uint32_t *begin, *arc;     /* [n_nodes + 1] into arc: those that leave a node */
    uint32_t *from, *to;       /* [n_arcs] */
    uint64_t *capacity, *left; /* [n_arcs] as made; as the flow leaves it */
    uint32_t *level, *queue, *next, *path;
} network;

static const uint64_t INFINITE = INT64_MAX;

typedef struct cutter {
    mpl_ctx *ctx;
    const mpl_order_model *m;
    mpl_effort *effort;
    network net;
    uint32_t source, sink;
    uint8_t *side; /* [n] 1: done, 2: not done, 0: open */
    uint32_t *stack;
} cutter;

static void set_arc(network *g, uint32_t i, uint32_t from, uint32_t to, uint64_t capacity)
{
    g->from[i] = g->to[i + 1] = from;
    g->to[i] = g->from[i + 1] = to;
    g->capacity[i] = capacity;
    g->capacity[i + 1] = 0;
}

static mpl_status index_arcs(mpl_ctx *ctx, network *g)
{
    mpl_status st = MPL_OK;

    MPL_TRY(mpl_new(ctx, g->begin, (size_t)g->n_nodes + 2));
    MPL_TRY(mpl_new(ctx, g->arc, g->n_arcs));
    for (uint32_t i = 0; i < g->n_arcs; i++)
        g->begin[g->from[i] + 2]++;
    for (uint32_t i = 0; i < g->n_nodes; i++)
        g->begin[i + 2] += g->begin[i + 1];
    for (uint32_t i = 0; i < g->n_arcs; i++)
        g->arc[g->begin[g->from[i] + 1]++] = i;
out:
    return st;
}

/* Arcs 4 v and 4 v + 2 tie operation v to the source and to the sink: they are set for each question. */
static mpl_status make_network(cutter *c)
{
    mpl_status st = MPL_OK;
    const mpl_order_model *m = c->m;
    network *g = &c->net;
    uint32_t n = 0, at = 4 * m->n;

    c->source = m->n + m->k;
    c->sink = c->source + 1;
    g->n_nodes = c->sink + 1;
    n = 2 * m->n + m->before.begin[m->n] + m->k + m->users.begin[m->k];
    MPL_TRY(mpl_new(c->ctx, g->from, (size_t)n * 2));
    MPL_TRY(mpl_new(c->ctx, g->to, (size_t)n * 2));
    MPL_TRY(mpl_new(c->ctx, g->capacity, (size_t)n * 2));
    MPL_TRY(mpl_new(c->ctx, g->left, (size_t)n * 2));
    for (uint32_t v = 0; v < m->n; v++) {
        set_arc(g, 4 * v, c->source, v, 0);
        set_arc(g, 4 * v + 2, v, c->sink, 0);
        for (uint32_t i = m->before.begin[v]; i < m->before.begin[v + 1]; i++, at += 2)
            set_arc(g, at, v, m->before.item[i], INFINITE);
    }
    for (uint32_t b = 0; b < m->k; b++) {
        uint32_t maker = m->first[b] ? c->source : m->makers.item[m->makers.begin[b]];

        set_arc(g, at, maker, m->kept[b] ? c->sink : m->n + b, m->bytes[b]);
        at += 2;
        for (uint32_t i = m->users.begin[b]; !m->kept[b] && i < m->users.begin[b + 1]; i++, at += 2)
            set_arc(g, at, m->n + b, m->users.item[i], INFINITE);
    }
    g->n_arcs = at;
    MPL_TRY(index_arcs(c->ctx, g));
    MPL_TRY(mpl_new(c->ctx, g->level, g->n_nodes));
    MPL_TRY(mpl_new(c->ctx, g->queue, g->n_nodes));
    MPL_TRY(mpl_new(c->ctx, g->next, g->n_nodes));
    MPL_TRY(mpl_new(c->ctx, g->path, g->n_nodes));
out:
    return st;
}

/* Distances from the source over arcs with room; false where the sink has none. */
static bool set_levels(network *g, uint32_t source, uint32_t sink, uint64_t *ticks)
{
    uint32_t n = 0;

    memset(g->level, 0xff, g->n_nodes * sizeof *g->level);
    g->level[source] = 0;
    g->queue[n++] = source;
    for (uint32_t head = 0; head < n && g->level[sink] == MPL_NONE; head++) {
        uint32_t u = g->queue[head];

        for (uint32_t i = g->begin[u]; i < g->begin[u + 1]; i++) {
            uint32_t a = g->arc[i];

            if (g->left[a] == 0 || g->level[g->to[a]] != MPL_NONE)
                continue;
            g->level[g->to[a]] = g->level[u] + 1;
            g->queue[n++] = g->to[a];
        }
    }
    *ticks += n / 4 + 1;
    return g->level[sink] != MPL_NONE;
}

/* Sends what one path of ascending levels can take; 0: there is none left. */
static uint64_t send_path(network *g, uint32_t source, uint32_t sink)
{
    uint32_t depth = 0, u = source;
    uint64_t room = INFINITE;

    while (u != sink) {
        uint32_t a = MPL_NONE;

        for (; g->next[u] < g->begin[u + 1] && a == MPL_NONE; g->next[u]++) {
            uint32_t i = g->arc[g->next[u]];

            if (g->left[i] > 0 && g->level[g->to[i]] == g->level[u] + 1)
                a = i;
        }
        if (a == MPL_NONE) { /* a dead end: back, to the next arc */
            if (depth == 0)
                return 0;
            g->level[u] = MPL_NONE;
            u = g->from[g->path[--depth]];
            continue;
        }
        g->next[u]--; /* it may have room left for the next path */
        g->path[depth++] = a;
        u = g->to[a];
    }
    for (uint32_t i = 0; i < depth; i++)
        room = mpl_min_u64(room, g->left[g->path[i]]);
    for (uint32_t i = 0; i < depth; i++) {
        g->left[g->path[i]] -= room;
        g->left[g->path[i] ^ 1] += room;
    }
    return room;
}

/* The flow from the source to the sink, as far as `enough`. */
static uint64_t max_flow(cutter *c, uint64_t enough)
{
    network *g = &c->net;
    uint64_t sum = 0, sent;

    for (uint32_t v = 0; v < c->m->n; v++) {
        g->capacity[4 * v] = c->side[v] == 1 ? INFINITE : 0;
        g->capacity[4 * v + 2] = c->side[v] == 2 ? INFINITE : 0;
    }
    memcpy(g->left, g->capacity, g->n_arcs * sizeof *g->left);
    while (sum < enough && set_levels(g, c->source, c->sink, &c->effort->ticks)) {
        memcpy(g->next, g->begin, g->n_nodes * sizeof *g->next);
        while (sum < enough && (sent = send_path(g, c->source, c->sink)) > 0) {
            sum += sent;
            c->effort->ticks++;
        }
    }
    return sum;
}

/* Marks v and all that it reaches over `lists`, where they are open; false where one is on the other side. */
static bool mark(cutter *c, uint32_t v, const mpl_lists *lists, uint8_t side)
{
    uint32_t n = 0;

    if (c->side[v] != 0)
        return c->side[v] == side;
    c->side[v] = side;
    c->stack[n++] = v;
    while (n > 0) {
        uint32_t u = c->stack[--n];

        for (uint32_t i = lists->begin[u]; i < lists->begin[u + 1]; i++) {
            uint32_t w = lists->item[i];

            if (c->side[w] != 0 && c->side[w] != side)
                return false;
            if (c->side[w] == 0)
                c->side[w] = side, c->stack[n++] = w;
        }
    }
    return true;
}

/* Done is what v needs, and the other users of buffer b (MPL_NONE: of none); false: that cannot be. */
static bool pose(cutter *c, uint32_t v, uint32_t b)
{
    const mpl_order_model *m = c->m;
    bool possible;

    memset(c->side, 0, m->n);
    possible = mark(c, v, &m->after, 2);
    for (uint32_t i = m->before.begin[v]; possible && i < m->before.begin[v + 1]; i++)
        possible = mark(c, m->before.item[i], &m->before, 1);
    for (uint32_t i = b == MPL_NONE ? 0 : m->users.begin[b];
         b != MPL_NONE && possible && i < m->users.begin[b + 1]; i++)
        possible = m->users.item[i] == v || mark(c, m->users.item[i], &m->before, 1);
    return possible && (b == MPL_NONE || !m->kept[b]);
}

/* The least cost of v in any order, as far as `enough`. */
static uint64_t least_cost(cutter *c, uint32_t v, uint64_t enough)
{
    const mpl_order_model *m = c->m;
    uint64_t own = m->base + m->extra[v], least;

    for (uint32_t i = m->makes.begin[v]; i < m->makes.begin[v + 1]; i++)
        own += m->bytes[m->makes.item[i]];
    pose(c, v, MPL_NONE);
    least = own + max_flow(c, enough);
    for (uint32_t i = m->over.begin[v]; i < m->over.begin[v + 1]; i++)
        if (pose(c, v, m->over.item[i]))
            least = mpl_min_u64(least, own - m->saves[v] + max_flow(c, enough));
    return least;
}

typedef struct costly {
    uint64_t cost;
    uint32_t v;
} costly;

static int by_cost(const void *a, const void *b)
{
    const costly *x = a, *y = b;

    if (x->cost != y->cost)
        return x->cost < y->cost ? 1 : -1;
    return (x->v > y->v) - (x->v < y->v);
}

static void cutter_fini(cutter *c)
{
    network *g = &c->net;
    void *const arrays[] = {g->begin, g->arc,   g->from, g->to,   g->capacity, g->left,
                            g->level, g->queue, g->next, g->path, c->side,     c->stack};

    for (size_t i = 0; i < sizeof arrays / sizeof *arrays; i++)
        mpl_free(c->ctx, arrays[i]);
}

mpl_status mpl_order_cut_bound(mpl_ctx *ctx, const mpl_order_model *m, const uint32_t *order, uint64_t known,
                               mpl_effort *effort, uint64_t *bound)
{
    mpl_status st = MPL_OK;
    cutter c = {.ctx = ctx, .m = m, .effort = effort};
    mpl_order_walk walk = {0};
    costly *at = NULL;

    mpl_assert(!m->backward);
    *bound = known;
    MPL_TRY(mpl_order_walk_init(ctx, m, &walk));
    MPL_TRY(mpl_new(ctx, at, m->n));
    MPL_TRY(mpl_new(ctx, c.side, m->n));
    MPL_TRY(mpl_new(ctx, c.stack, m->n));
    for (uint32_t i = 0; i < m->n; i++) {
        at[i] = (costly){mpl_order_walk_cost(&walk, order[i]), order[i]};
        mpl_order_walk_run(&walk, order[i]);
    }
    qsort(at, m->n, sizeof *at, by_cost);
    MPL_TRY(make_network(&c));
    for (uint32_t i = 0; i < m->n && at[i].cost > *bound && !mpl_effort_spent(effort); i++)
        *bound = mpl_max_u64(*bound, least_cost(&c, at[i].v, at[i].cost));
out:
    cutter_fini(&c);
    mpl_order_walk_fini(ctx, &walk);
    mpl_free(ctx, at);
    return st;
}
