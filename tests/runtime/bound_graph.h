/* bound_graph.h -- a graph on a device: its order, problem, plan and executor, made one after the
 * other. What is not made stays NULL; unbind() frees what was. */
#pragma once

#include "tests/support/test.h"

#include "runtime/exec.h"

/* One run by several workers; later ones are by one again. */
static inline mpl_status run_by(mpl_exec *exec, uint32_t n_workers)
{
    MPL_PASS(mpl_exec_set_workers(exec, n_workers));
    MPL_PASS(mpl_exec_run(exec, NULL));
    return mpl_exec_set_workers(exec, 1);
}

typedef struct bound {
    mpl_ctx *ctx;
    const mpl_backend *backend;
    const mpl_graph *g;
    mpl_device *dev;
    mpl_op *order;
    mpl_problem *p;
    mpl_value_map *map;
    mpl_plan *plan;
    mpl_exec *exec;
} bound;

static inline void bind_device(mpl_ctx *ctx, const mpl_backend *backend, const mpl_graph *g,
                               const char *order, const mpl_device_options *options, bound *b)
{
    *b = (bound){.ctx = ctx, .backend = backend, .g = g};
    assert_ok(ctx, backend->open(ctx, options, &b->dev));
    b->order = order_by(ctx, g, order);
}

static inline void bind_problem(bound *b, const mpl_problem_options *options, const char *planner)
{
    assert_ok(b->ctx, mpl_problem_from_graph(b->ctx, b->g, b->order, options, &b->p, &b->map));
    b->plan = planned_by(b->ctx, planner, b->p);
}

/* Contents of all inputs by a seed. */
static inline void give_inputs(mpl_ctx *ctx, const mpl_graph *g, mpl_exec *exec, uint64_t seed)
{
    for (uint32_t i = 0; i < g->n_inputs; i++) {
        void *data = mpl_alloc(ctx, g->value_bytes[g->input[i]], 1);

        assert_non_null(data);
        assert_ok(ctx, mpl_exec_make_input(ctx, g, i, seed, data));
        assert_ok(ctx, mpl_exec_set_input(exec, i, data));
        mpl_free(ctx, data);
    }
}

static inline void bind_exec(bound *b, const mpl_exec_options *options, uint64_t seed)
{
    assert_ok(b->ctx, mpl_exec_new(b->ctx, b->backend, b->dev, b->g, b->order, b->p, b->map,
                                   b->plan, options, &b->exec));
    give_inputs(b->ctx, b->g, b->exec, seed);
}

static inline void unbind(bound *b)
{
    mpl_exec_free(b->ctx, b->exec);
    mpl_plan_free(b->ctx, b->plan);
    mpl_value_map_free(b->ctx, b->map);
    mpl_problem_free(b->ctx, b->p);
    mpl_free(b->ctx, b->order);
    b->backend->close(b->dev);
}

static inline uint64_t output_bytes(const mpl_graph *g)
{
    uint64_t bytes = 0;

    for (uint32_t i = 0; i < g->n_outputs; i++)
        bytes += g->value_bytes[g->output[i]];
    return bytes;
}

/* All outputs, one behind the other. The caller frees them (mpl_free). */
static inline char *outputs_of(mpl_ctx *ctx, const mpl_graph *g, mpl_exec *exec)
{
    char *all = mpl_alloc(ctx, output_bytes(g), 1), *at = all;

    assert_non_null(all);
    for (uint32_t i = 0; i < g->n_outputs; i++) {
        assert_ok(ctx, mpl_exec_output(exec, i, at));
        at += g->value_bytes[g->output[i]];
    }
    return all;
}
