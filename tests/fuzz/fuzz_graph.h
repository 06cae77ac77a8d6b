/* fuzz_graph.h -- a graph that was read is used as `show` and `plan` do. */
#pragma once

#include "graphs/problem/bounds/bounds.h"
#include "graphs/problem/derive/from_graph.h"
#include "tests/fuzz/fuzz.h"

/* Any order, the problem, its bound. Too large a problem is refused. */
static inline void fuzz_plan(mpl_ctx *ctx, const mpl_graph *g)
{
    mpl_problem_options options = mpl_problem_options_default();
    mpl_problem *p = NULL;
    mpl_value_map *map = NULL;
    mpl_op *order = NULL;
    uint64_t peak;

    must(mpl_new(ctx, order, g->n_ops) == MPL_OK, ctx);
    for (mpl_op op = 0; op < g->n_ops; op++)
        order[op] = op;
    if (mpl_problem_from_graph(ctx, g, order, &options, &p, &map) == MPL_OK) {
        must(mpl_problem_check(ctx, p) == MPL_OK, ctx);
        (void)mpl_peak_live(ctx, p, 0, &peak, NULL, NULL);
    }
    mpl_problem_free(ctx, p);
    mpl_value_map_free(ctx, map);
    mpl_free(ctx, order);
}
