/* test_runtime_malloced.c -- a run with one malloc per buffer: the outputs of the planned run, in
 * other memory, all of which is freed. Under MODE=asan a lifetime a step too short is a use after
 * free. */
#include "graphs/problem/bounds/bounds.h"
#include "tests/runtime/bound_graph.h"

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

/* Runs it three times, with the planned arenas overwritten. */
static void check(mpl_ctx *ctx, const char *what, mpl_exec *exec, uint64_t peak_live)
{
    uint64_t bytes = output_bytes(exec->g), peak;
    uint32_t n_calls;
    mpl_malloced *m = NULL;
    void *want, *got;
    int64_t ns = 0;

    assert_ok(ctx, mpl_exec_run(exec, NULL));
    want = outputs_of(ctx, exec->g, exec);
    assert_ok(ctx, mpl_malloced_new(ctx, exec, &m));
    for (int repeat = 0; repeat < 3; repeat++) {
        for (uint32_t i = 0; i < exec->n_memories; i++)
            memset(exec->slab[i].base, 0xa5 + repeat, exec->slab[i].bytes);
        assert_ok(ctx, mpl_malloced_run(m, &ns));
        for (uint32_t i = 0; i < exec->n_memories; i++)
            for (uint64_t k = 0; k < exec->slab[i].bytes; k++)
                if ((uint8_t)exec->slab[i].base[k] != 0xa5 + repeat)
                    fail_msg("%s: byte %" PRIu64 " of the arena was written", what, k);
        got = outputs_of(ctx, exec->g, exec);
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
    got = outputs_of(ctx, exec->g, exec);
    assert_memory_equal(got, want, bytes);
    mpl_free_each(ctx, got, want);
    mpl_malloced_free(ctx, m);
}

/* `checked`: only checks the refusal. */
static void try_row(mpl_ctx *ctx, size_t row, const mpl_backend *backend, bool checked)
{
    mpl_problem_options options = mpl_problem_options_default();
    mpl_source source = {0};
    mpl_malloced *m = NULL;
    uint64_t live;
    char what[200];
    bound b;

    snprintf(what, sizeof what, "%s, %s, %s", rows[row].graph, rows[row].planner, backend->name);
    assert_ok(ctx, mpl_source_open(ctx, rows[row].graph, NULL, &source));
    options.views = rows[row].views;
    options.concat = rows[row].concat;
    options.align = backend->align;
    bind_device(ctx, backend, source.graph, "given", &(mpl_device_options){.n_threads = 1}, &b);
    bind_problem(&b, &options, rows[row].planner);
    assert_ok(ctx, mpl_lower_bound(ctx, b.p, 0, &live, NULL));
    bind_exec(&b, &(mpl_exec_options){.weight_seed = 3, .checked = checked}, 1);
    if (checked)
        assert_status(ctx, mpl_malloced_new(ctx, b.exec, &m), MPL_EUNAVAIL);
    else
        check(ctx, what, b.exec, live);
    unbind(&b);
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
        mpl_exec_facts facts;
        uint64_t packed = 0;
        owned_memory char *want, *got;
        bound b;

        assert_ok(ctx, mpl_source_open(ctx, nets[i].graph, NULL, &source));
        assert_ok(ctx, mpl_graph_channels_last(ctx, &source.graph));
        bind_device(ctx, backend, source.graph, "given", &(mpl_device_options){.n_threads = 1}, &b);
        bind_exec(&b, &(mpl_exec_options){.weight_seed = 3}, 1);
        assert_ok(ctx, mpl_exec_run(b.exec, NULL));
        want = outputs_of(ctx, source.graph, b.exec);
        assert_ok(ctx, mpl_exec_facts_get(b.exec, &facts));
        assert_true(facts.packed_bytes <= 2 * facts.weight_bytes);
        assert_int_equal(facts.packed_bytes > 0, nets[i].some);
        for (mpl_op op = 0; op < source.graph->n_ops; op++) {
            mpl_value w = source.graph->op_in_begin[op] + 1 < source.graph->op_in_begin[op + 1]
                              ? source.graph->op_in[source.graph->op_in_begin[op] + 1]
                              : MPL_NONE;
            uint64_t own = b.exec->op_prepared[op] != NULL
                               ? backend->packed_bytes(b.exec->op_prepared[op])
                               : 0;

            packed += own;
            if (own > 0)
                memset(mpl_exec_value_at(b.exec, w), 0x7f, source.graph->value_bytes[w]);
        }
        assert_int_equal(facts.packed_bytes, packed);
        assert_ok(ctx, mpl_exec_run(b.exec, NULL));
        got = outputs_of(ctx, source.graph, b.exec);
        assert_memory_equal(got, want, output_bytes(source.graph));
        unbind(&b);
        mpl_source_fini(ctx, &source);
    }
}

TESTS(outputs_are_the_same, weights_are_reordered_once)
