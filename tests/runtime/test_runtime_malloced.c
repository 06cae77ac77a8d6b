/* test_runtime_malloced.c -- a run with one malloc per buffer: the outputs of the planned run, in
 * other memory, all of which is freed. Under MODE=asan a lifetime a step too short is a use after
 * free. */
#include "graphs/problem/bounds/bounds.h"
#include "tests/support/test.h"

#include <stdlib.h>

#include "graphs/passes/passes.h"
#include "runtime/exec/exec_priv.h"
#include "runtime/exec/malloced.h"

static const struct {
    const char *graph, *planner;
    bool views;
    mpl_concat concat;
} rows[] = {
    {"mlp", "greedy_size", true, MPL_CONCAT_AUTO},
    {"mnist_conv:batch=2", "exact", true, MPL_CONCAT_AUTO},
    {"lstm:layers=2,steps=4,batch=2,hidden=32", "nnc_2019", true, MPL_CONCAT_AUTO},
    {"lstm:layers=2,steps=4,batch=2,hidden=32", "best_fit", false, MPL_CONCAT_COPY},
    {"resnet18:image=32", "portfolio", true, MPL_CONCAT_AUTO},
    {"densenet121:image=32", "nnc_arena", true, MPL_CONCAT_SHARE},
    {"densenet121:image=32", "pool", true, MPL_CONCAT_COPY},
    {"inception_v1:image=64", "greedy_breadth", true, MPL_CONCAT_SHARE},
    {"inception_v1:image=64", "none", true, MPL_CONCAT_AUTO},
    {"mnist_conv:batch=4,mode=train", "greedy_size", true, MPL_CONCAT_AUTO},
};

static void *outputs_of(mpl_ctx *ctx, mpl_exec *exec, uint64_t *bytes)
{
    const mpl_graph *g = exec->g;
    char *all, *at;

    *bytes = 0;
    for (uint32_t i = 0; i < g->n_outputs; i++)
        *bytes += g->value_bytes[g->output[i]];
    all = at = mpl_alloc(ctx, *bytes, 1);
    assert_non_null(all);
    for (uint32_t i = 0; i < g->n_outputs; at += g->value_bytes[g->output[i]], i++)
        assert_ok(ctx, mpl_exec_output(exec, i, at));
    return all;
}

/* Runs it three times, with the planned arenas overwritten. */
static void check(mpl_ctx *ctx, const char *what, mpl_exec *exec, uint64_t peak_live)
{
    uint64_t bytes, peak;
    uint32_t n_calls;
    mpl_malloced *m = NULL;
    void *want, *got;
    int64_t ns = 0;

    assert_ok(ctx, mpl_exec_run(exec, NULL));
    want = outputs_of(ctx, exec, &bytes);
    assert_ok(ctx, mpl_malloced_new(ctx, exec, &m));
    for (int repeat = 0; repeat < 3; repeat++) {
        for (uint32_t i = 0; i < exec->n_memories; i++)
            memset(exec->slab[i].base, 0xa5 + repeat, exec->slab[i].bytes);
        assert_ok(ctx, mpl_malloced_run(m, &ns));
        for (uint32_t i = 0; i < exec->n_memories; i++)
            for (uint64_t k = 0; k < exec->slab[i].bytes; k++)
                if ((uint8_t)exec->slab[i].base[k] != 0xa5 + repeat)
                    fail_msg("%s: byte %" PRIu64 " of the arena was written", what, k);
        got = outputs_of(ctx, exec, &bytes);
        if (memcmp(got, want, bytes) != 0)
            fail_msg("%s: outputs differ from those of the planned run", what);
        mpl_free(ctx, got);
        assert_true(ns > 0);
    }
    mpl_malloced_facts(m, &n_calls, &peak);
    if (n_calls == 0 || peak < peak_live)
        fail_msg("%s: %u calls, %" PRIu64 " bytes at once; %" PRIu64 " are alive", what, n_calls,
                 peak, peak_live);
    assert_ok(ctx, mpl_exec_run(exec, NULL)); /* its pointers are restored */
    got = outputs_of(ctx, exec, &bytes);
    assert_memory_equal(got, want, bytes);
    mpl_free(ctx, got);
    mpl_free(ctx, want);
    mpl_malloced_free(ctx, m);
}

/* `checked`: only checks the refusal. */
static void try_row(mpl_ctx *ctx, size_t row, const mpl_backend *backend, bool checked)
{
    mpl_problem_options options = mpl_problem_options_default();
    mpl_exec_options how = {.weight_seed = 3, .checked = checked};
    mpl_source source = {0};
    const mpl_graph *g;
    mpl_device *dev = NULL;
    mpl_problem *p = NULL;
    mpl_value_map *map = NULL;
    mpl_plan *plan = NULL;
    mpl_exec *exec = NULL;
    mpl_malloced *m = NULL;
    mpl_op *order;
    uint64_t live;
    char what[200];

    snprintf(what, sizeof what, "%s, %s, %s", rows[row].graph, rows[row].planner, backend->name);
    assert_ok(ctx, mpl_source_open(ctx, rows[row].graph, NULL, &source));
    g = source.graph;
    options.views = rows[row].views;
    options.concat = rows[row].concat;
    options.align = backend->align;
    order = order_by(ctx, g, "given");
    assert_ok(ctx, backend->open(ctx, &(mpl_device_options){.n_threads = 1}, &dev));
    assert_ok(ctx, mpl_problem_from_graph(ctx, g, order, &options, &p, &map));
    plan = planned_by(ctx, rows[row].planner, p);
    assert_ok(ctx, mpl_lower_bound(ctx, p, 0, &live, NULL));
    assert_ok(ctx, mpl_exec_new(ctx, backend, dev, g, order, p, map, plan, &how, &exec));
    for (uint32_t i = 0; i < g->n_inputs; i++) {
        owned_memory void *data = mpl_alloc(ctx, g->value_bytes[g->input[i]], 1);

        assert_ok(ctx, mpl_exec_make_input(ctx, g, i, 1, data));
        assert_ok(ctx, mpl_exec_set_input(exec, i, data));
    }
    if (checked)
        assert_status(ctx, mpl_malloced_new(ctx, exec, &m), MPL_EUNAVAIL);
    else
        check(ctx, what, exec, live);
    mpl_exec_free(ctx, exec);
    mpl_plan_free(ctx, plan);
    mpl_value_map_free(ctx, map);
    mpl_problem_free(ctx, p);
    mpl_free(ctx, order);
    backend->close(dev);
    mpl_source_fini(ctx, &source);
}

TEST(outputs_are_the_same)
{
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        for (int k = 0; k < 2; k++) {
            const mpl_backend *backend = mpl_backend_find(k == 0 ? "cpu" : "ref");

            if (mpl_backend_absent(backend) == NULL && (k == 0 || i < 3))
                try_row(ctx, i, backend, false);
        }
    try_row(ctx, 0, mpl_backend_find("ref"), true);
}

/* Weights are reordered in the first run only: later runs do not read the plain ones, which are
 * overwritten here. */
TEST(weights_are_reordered_once)
{
    static const struct {
        const char *graph;
        bool some;
    } nets[] = {{"resnet18:image=32", true}, {"mlp", false}};
    const mpl_backend *backend = mpl_backend_find("cpu");

    if (mpl_backend_absent(backend) != NULL) {
        print_message("skip: %s\n", mpl_backend_absent(backend));
        skip();
    }
    for (size_t i = 0; i < sizeof nets / sizeof *nets; i++) {
        mpl_source source = {0};
        mpl_device *dev = NULL;
        mpl_exec *exec = NULL;
        mpl_exec_facts facts;
        uint64_t bytes, packed = 0;
        mpl_op *order;
        char *want, *got;

        assert_ok(ctx, mpl_source_open(ctx, nets[i].graph, NULL, &source));
        assert_ok(ctx, mpl_graph_channels_last(ctx, &source.graph));
        order = order_by(ctx, source.graph, "given");
        assert_ok(ctx, backend->open(ctx, &(mpl_device_options){.n_threads = 1}, &dev));
        assert_ok(ctx, mpl_exec_new(ctx, backend, dev, source.graph, order, NULL, NULL, NULL,
                                    &(mpl_exec_options){.weight_seed = 3}, &exec));
        assert_ok(ctx, mpl_exec_run(exec, NULL));
        want = outputs_of(ctx, exec, &bytes);
        assert_ok(ctx, mpl_exec_facts_get(exec, &facts));
        assert_true(facts.packed_bytes <= 2 * facts.weight_bytes);
        assert_int_equal(facts.packed_bytes > 0, nets[i].some);
        for (mpl_op op = 0; op < source.graph->n_ops; op++) {
            mpl_value w = source.graph->op_in_begin[op] + 1 < source.graph->op_in_begin[op + 1]
                              ? source.graph->op_in[source.graph->op_in_begin[op] + 1]
                              : MPL_NONE;
            uint64_t own =
                exec->op_prepared[op] != NULL ? backend->packed_bytes(exec->op_prepared[op]) : 0;

            packed += own;
            if (own > 0)
                memset(mpl_exec_value_at(exec, w), 0x7f, source.graph->value_bytes[w]);
        }
        assert_int_equal(facts.packed_bytes, packed);
        assert_ok(ctx, mpl_exec_run(exec, NULL));
        got = outputs_of(ctx, exec, &bytes);
        assert_memory_equal(got, want, bytes);
        mpl_free(ctx, got);
        mpl_free(ctx, want);
        mpl_exec_free(ctx, exec);
        mpl_free(ctx, order);
        backend->close(dev);
        mpl_source_fini(ctx, &source);
    }
}

TESTS(outputs_are_the_same, weights_are_reordered_once)
