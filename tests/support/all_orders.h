/* all_orders.h -- enumerates every order of a small graph without blocks. */
#pragma once

#include "tests/support/random_graph.h"

typedef struct all_orders {
    mpl_ctx *ctx;
    const mpl_graph *g;
    const mpl_problem_options *o;
    void (*each)(struct all_orders *all); /* called with each order */
    void *arg;                            /* argument of each() */
    uint64_t most;                        /* limit on orders; 0: none */
    uint64_t n, least;                    /* orders enumerated; result of least_live_peak */
    mpl_op order[32];
    bool done[32];
} all_orders;

static inline void visit_orders_from(all_orders *all, uint32_t n)
{
    const mpl_graph *g = all->g;

    if (n == g->n_ops) {
        all->n++;
        all->each(all);
        return;
    }
    for (mpl_op op = 0; op < g->n_ops && (all->most == 0 || all->n < all->most); op++) {
        bool ready = !all->done[op];

        for (uint32_t i = g->op_in_begin[op]; i < g->op_in_begin[op + 1]; i++)
            ready = ready &&
                    (g->value_op[g->op_in[i]] == MPL_NONE || all->done[g->value_op[g->op_in[i]]]);
        if (!ready)
            continue;
        all->done[op] = true;
        all->order[n] = op;
        visit_orders_from(all, n + 1);
        all->done[op] = false;
    }
}

static inline void visit_orders(all_orders *all)
{
    assert_true(all->g->n_ops <= sizeof all->order / sizeof *all->order);
    visit_orders_from(all, 0);
}

static inline void keep_least_peak(all_orders *all)
{
    all->least = mpl_min_u64(all->least, live_peak(all->ctx, all->g, all->order, all->o));
}

/* Returns the least peak over at most `most` orders (0: all); *n is the number enumerated. */
static inline uint64_t least_live_peak(mpl_ctx *ctx, const mpl_graph *g,
                                       const mpl_problem_options *o, uint64_t most, uint64_t *n)
{
    all_orders all = {
        .ctx = ctx, .g = g, .o = o, .each = keep_least_peak, .most = most, .least = UINT64_MAX};

    visit_orders(&all);
    *n = all.n;
    return all.least;
}
