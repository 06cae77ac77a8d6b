/* hlo_case.h -- a module of HLO with its problem and plan, for tests. */
#pragma once

#include "planners/verify/verify.h"
#include "tests/support/test.h"

typedef struct hlo_case {
    mpl_source source;
    const mpl_graph *g;
    mpl_problem *p;
    mpl_value_map *map;
} hlo_case;

static inline mpl_graph *hlo_graph(mpl_ctx *ctx, const char *text)
{
    mpl_graph *g = NULL;

    assert_ok(ctx, mpl_hlo_read_memory(ctx, "m", text, strlen(text), &g));
    return g;
}

/* Opens a file and derives its problem in the order of the text. */
static inline hlo_case hlo_open(mpl_ctx *ctx, const char *path)
{
    mpl_problem_options o = mpl_problem_options_default();
    owned_memory mpl_op *order = NULL;
    hlo_case c = {{0}, NULL, NULL, NULL};

    assert_ok(ctx, mpl_source_open(ctx, path, NULL, &c.source));
    c.g = c.source.graph;
    assert_non_null(c.g);
    assert_ok(ctx, mpl_new(ctx, order, (size_t)c.g->n_ops + 1));
    count_up(c.g->n_ops, order);
    assert_ok(ctx, mpl_problem_from_graph(ctx, c.g, order, &o, &c.p, &c.map));
    return c;
}

/* Plans; both verifiers must accept. Returns the bytes. */
static inline uint64_t hlo_plan(mpl_ctx *ctx, const hlo_case *c, const char *planner)
{
    mpl_run run = mpl_run_default(ctx);
    owned_plan *plan = NULL;

    assert_ok(ctx, mpl_planner_run(mpl_planner_find(planner), &run, c->p, &plan));
    if (c->map->places != NULL)
        assert_ok(ctx, mpl_verify_places(ctx, c->g, c->map, c->p, plan));
    return plan->peak_bytes;
}

static inline void hlo_close(mpl_ctx *ctx, hlo_case *c)
{
    mpl_source_fini(ctx, &c->source);
    mpl_problem_free(ctx, c->p);
    mpl_value_map_free(ctx, c->map);
}
