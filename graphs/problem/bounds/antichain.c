/* antichain.c -- the bound of parallel safety with its witness; facts of the interference graph.
 *
 * Idea     Buffers that may be live at once in some execution are pairwise not before one another.
 *          The heaviest such set is the heaviest clique of the interference graph, a perfect graph.
 * Source   R. P. Dilworth, "A decomposition theorem for partially ordered sets", 1950, in its
 *          weighted form; D. R. Fulkerson, "Note on Dilworth's decomposition theorem", 1956, for
 *          the reduction to a flow.
 * Network  source -> L(a) of capacity w(a), R(b) -> sink of capacity w(b). Without limit:
 *          L(a) -> R(b) where b covers a, and R(b) -> L(b), so that a path may continue through b.
 *          The answer is the sum of weights minus the maximum flow. The antichain comes from a
 *          minimum cut: L(v) on the source's side and R(v) not.
 * Cost     One maximum flow over 2n + 2 nodes and 3n + |reduction| arcs. */
#include "graphs/problem/before.h"

#include "graphs/problem/bounds/bounds.h"
#include "graphs/problem/bounds/igraph.h"

typedef struct network {
    size_t n_arcs;
    uint32_t *from, *to;
    uint64_t *capacity;
} network;

static void push_arc(network *net, uint32_t from, uint32_t to, uint64_t capacity)
{
    net->from[net->n_arcs] = from;
    net->to[net->n_arcs] = to;
    net->capacity[net->n_arcs++] = capacity;
}

/* Nodes: L(v) is v, R(v) is n + v, then source and sink. Each in-place pair adds one arc. */
static mpl_status build_network(mpl_ctx *ctx, const mpl_problem *p, const uint64_t *weight,
                                uint64_t no_limit, network *net)
{
    const mpl_before *before = p->before;
    uint32_t n = p->n;
    size_t most = 3 * (size_t)n + before->red_begin[n] + p->n_in_place;

    MPL_PASS(mpl_new_each(ctx, most, net->from, net->to, net->capacity));
    for (uint32_t v = 0; v < n; v++) {
        push_arc(net, 2 * n, v, weight[v]);
        push_arc(net, n + v, 2 * n + 1, weight[v]);
        push_arc(net, n + v, v, no_limit);
        for (uint32_t i = before->red_begin[v]; i < before->red_begin[v + 1]; i++)
            push_arc(net, v, n + before->red_item[i], no_limit);
    }
    for (uint32_t i = 0; i < p->n_in_place; i++)
        push_arc(net, p->in_place_in[i], n + p->in_place_out[i], no_limit);
    return MPL_OK;
}

static mpl_status weigh(mpl_ctx *ctx, const mpl_problem *p, uint32_t pool, uint64_t grain,
                        uint64_t *weight, uint64_t *sum)
{
    char label[24];

    *sum = 0;
    for (uint32_t v = 0; v < p->n; v++) {
        if (p->pool[v] != pool)
            continue;
        weight[v] = mpl_align_up(p->bytes[v], grain); /* bytes that no other buffer can use */
        if (!mpl_add_bytes(*sum, weight[v], sum) || *sum >= UINT64_C(1) << 53)
            return MPL_REFUSE(
                ctx,
                "the sizes up to buffer '%s' add up to 2^53 bytes or more: too much for a flow",
                mpl_buffer_label(p, v, label));
    }
    return MPL_OK;
}

mpl_status mpl_antichain(mpl_ctx *ctx, const mpl_problem *p, uint32_t pool, uint64_t *bytes,
                         uint8_t *member)
{
    mpl_status st = MPL_OK;
    network net = {0};
    uint64_t *weight = NULL, sum, flow, found = 0, rest = 0, grain = mpl_pool_grain(p, pool);
    uint8_t *side = NULL;

    mpl_assert(p->before != NULL);
    MPL_TRY(mpl_new(ctx, weight, p->n));
    MPL_TRY(mpl_new(ctx, side, 2 * (size_t)p->n + 2));
    MPL_TRY(weigh(ctx, p, pool, grain, weight, &sum));
    MPL_TRY(build_network(ctx, p, weight, sum + 1, &net));
    MPL_TRY(mpl_max_flow(ctx, 2 * p->n + 2, net.n_arcs, net.from, net.to, net.capacity, 2 * p->n,
                         2 * p->n + 1, &flow, side));
    for (uint32_t v = 0; v < p->n; v++) {
        bool in = weight[v] > 0 && side[v] && !side[p->n + v];

        found += in ? weight[v] : 0;
        rest = in ? mpl_max_u64(rest, weight[v] - p->bytes[v]) : rest;
        if (member != NULL)
            member[v] = in;
    }
    mpl_assert(found == sum - flow);
    *bytes = found - rest; /* the topmost buffer need not fill its last slot */
out:
    mpl_free_each(ctx, weight, side, net.from, net.to, net.capacity);
    return st;
}

/* Size of the largest antichain: the same problem with one byte a buffer and no pairs. Borrows all
 * arrays. */
static mpl_status widest(mpl_ctx *ctx, const mpl_problem *p, uint32_t *width)
{
    mpl_status st = MPL_OK;
    mpl_problem unit = *p;
    uint64_t *bytes = NULL, found;
    uint32_t *align = NULL;

    MPL_TRY(mpl_new_each(ctx, p->n, bytes, align));
    for (uint32_t v = 0; v < p->n; v++)
        bytes[v] = align[v] = 1;
    unit.bytes = bytes;
    unit.align = align;
    unit.n_in_place = 0;
    MPL_TRY(mpl_antichain(ctx, &unit, 0, &found, NULL));
    *width = (uint32_t)found;
out:
    mpl_free_each(ctx, bytes, align);
    return st;
}

mpl_status mpl_interference_get(mpl_ctx *ctx, const mpl_problem *p, mpl_interference *out)
{
    mpl_status st = MPL_OK;
    uint32_t *degree = NULL, n_pool = 0;
    mpl_interference facts = {0};

    MPL_TRY(mpl_new(ctx, degree, p->n));
    for (uint32_t a = 0; a < p->n; a++) {
        n_pool += p->pool[a] == 0;
        for (uint32_t b = a + 1; b < p->n && p->pool[a] == 0; b++)
            if (mpl_conflict(p, a, b)) {
                facts.pairs++;
                degree[a]++;
                degree[b]++;
            }
    }
    for (uint32_t a = 0; a < p->n; a++)
        if (degree[a] > facts.max_degree)
            facts.max_degree = degree[a];
    if (n_pool > 1)
        facts.density = (double)facts.pairs / ((double)n_pool * (n_pool - 1) / 2);
    MPL_TRY(mpl_antichain(ctx, p, 0, &facts.clique_bytes, NULL));
    MPL_TRY(widest(ctx, p, &facts.width));
    *out = facts;
out:
    mpl_free(ctx, degree);
    return st;
}
