/* nnc_2019.c -- NNC's allocation graph, largest buffer first: libnnc's production allocator since
 * July 2019.
 *
 * Idea     Largest size first, then most interferences. It goes into the tightest range in time
 *          that the allocation graph offers, else into a new block.
 * Source   libnnc's tensor allocation in production; see nnc_graph.h.
 * Differs  Equal keys go by id.
 * Cost     O(n (n + arcs)) time, n^2 / 4 bytes. */
#include "planners/published/nnc_graph.h"

/* The largest size of a buffer not yet inserted. */
static uint64_t largest_left(const mpl_nnc_graph *g)
{
    uint64_t most = 0;

    for (uint32_t w = 0; w < g->n_words; w++)
        for (uint64_t bits = g->open[w]; bits != 0; bits &= bits - 1)
            most = mpl_max_u64(most, g->size[w * 64 + (uint32_t)__builtin_ctzll(bits)]);
    return most;
}

/* Inserts, of the buffers of that size, the one with most interferences that has a usable edge;
 * else the one with most interferences. */
static mpl_status insert_next(mpl_nnc_graph *g, void *arg)
{
    uint64_t size = largest_left(g);
    mpl_buffer top = MPL_NONE, fits = MPL_NONE;
    mpl_nnc_tuple lone = {1, {0}};

    (void)arg;
    for (uint32_t w = 0; w < g->n_words; w++)
        for (uint64_t bits = g->open[w]; bits != 0; bits &= bits - 1) {
            mpl_buffer b = w * 64 + (uint32_t)__builtin_ctzll(bits);

            if (g->size[b] != size)
                continue;
            if (top == MPL_NONE || g->count[b] > g->count[top])
                top = b;
            if ((fits == MPL_NONE || g->count[b] > g->count[fits]) && mpl_nnc_has_edge(g, b))
                fits = b;
        }
    lone.member[0] = fits != MPL_NONE ? fits : top;
    return mpl_nnc_insert(g, &lone,
                          fits != MPL_NONE ? mpl_nnc_best_edge(g, &lone, 0, NULL) : MPL_NONE);
}

static mpl_status plan(mpl_run *run, const mpl_problem *p, mpl_plan *out)
{
    return mpl_nnc_plan(run, p, out, NULL, insert_next, NULL);
}

const mpl_planner mpl_planner_nnc_2019 = {
    .name = "nnc_2019",
    .about = "NNC's allocation graph, largest first (libnnc's production allocator)",
    .source = "libnnc",
    .traits = MPL_BLOCKS | MPL_PARALLEL_ONLY | MPL_USES_IN_PLACE,
    .plan = plan,
};
