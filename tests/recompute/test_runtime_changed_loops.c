/* Second evaluations of training through loops whose updates change what the loops read: all
 * outputs and updated weights as after one evaluation with the new contents. Fault: an update that
 * runs before the loop of either evaluation has read its weight; one that runs twice. */
#include "tests/recompute/random_loops.h"
#include "tests/runtime/bound_graph.h"

#include "graphs/passes/incremental.h"
#include "planners/verify/verify.h"

/* Index of the item with that name and ending; n: none. */
static uint32_t find(const mpl_graph *g, uint32_t n, const mpl_value *item, const char *name,
                     const char *ending)
{
    char text[300];
    uint32_t i = 0;

    snprintf(text, sizeof text, "%.250s%s", name, ending);
    while (i < n && strcmp(g->value_name[item[i]], text) != 0)
        i++;
    return i;
}

/* The whole graph, unplanned, on the inputs of the graph of both evaluations. */
static void begin_whole(mpl_ctx *ctx, const mpl_graph *whole, const mpl_graph *g, uint64_t seed,
                        bound *b)
{
    bind_device(ctx, mpl_backend_find("ref"), whole, "given", &(mpl_device_options){.n_threads = 1},
                b);
    bind_exec(b, &(mpl_exec_options){.weight_seed = 1}, seed);
    for (uint32_t i = 0; i < whole->n_inputs; i++) {
        const char *name = whole->value_name[whole->input[i]];
        uint32_t k = find(g, g->n_inputs, g->input, name, MPL_CHANGED);
        owned_memory void *data = mpl_alloc(ctx, whole->value_bytes[whole->input[i]], 1);

        k = k < g->n_inputs ? k : find(g, g->n_inputs, g->input, name, "");
        assert_ok(ctx, mpl_exec_make_input(ctx, g, k, seed, data));
        assert_ok(ctx, mpl_exec_set_input(b->exec, i, data));
    }
    assert_ok(ctx, mpl_exec_run(b->exec, NULL));
}

static void compare(mpl_ctx *ctx, const char *what, const bound *w, const bound *b)
{
    const mpl_graph *whole = w->g, *g = b->g;

    for (uint32_t i = 0; i < whole->n_outputs; i++) {
        const char *name = whole->value_name[whole->output[i]];
        uint64_t bytes = whole->value_bytes[whole->output[i]];
        uint32_t k = find(g, g->n_outputs, g->output, name, MPL_AGAIN);
        owned_memory char *want = mpl_alloc(ctx, bytes, 1), *got = mpl_alloc(ctx, bytes, 1);

        k = k < g->n_outputs ? k : find(g, g->n_outputs, g->output, name, MPL_CHANGED);
        k = k < g->n_outputs ? k : find(g, g->n_outputs, g->output, name, "");
        assert_true(k < g->n_outputs);
        assert_ok(ctx, mpl_exec_output(w->exec, i, want));
        assert_ok(ctx, mpl_exec_output(b->exec, k, got));
        if (memcmp(want, got, bytes) != 0)
            fail_msg("%s: '%s' differs", what, name);
    }
}

/* Evaluates twice within plans of several planners, orders and safeties. */
static void check(mpl_ctx *ctx, const char *what, const mpl_graph *whole, const mpl_graph *g,
                  uint64_t seed)
{
    static const char *const planners[] = {"greedy_size", "best_fit", "first_fit"},
                             *const orders[] = {"given", "dfs", "bfs"};
    bound w;

    begin_whole(ctx, whole, g, seed, &w);
    for (uint32_t k = 0; k < 4; k++) {
        mpl_problem_options options = mpl_problem_options_default();
        bound b;

        options.parallel = k % 2 != 0;
        options.pin_outputs = options.pin_weights = options.pin_inputs = k < 2;
        options.loop_copy = (seed + k) % 5 == 0;
        bind_device(ctx, mpl_backend_find("ref"), g, orders[(seed + k) % 3],
                    &(mpl_device_options){.n_threads = 1}, &b);
        bind_problem(&b, &options, planners[(seed + k) % 3]);
        assert_ok(ctx, mpl_verify_places(ctx, g, b.map, b.p, b.plan));
        bind_exec(&b, &(mpl_exec_options){.weight_seed = 1, .checked = !options.parallel}, seed);
        assert_ok(ctx, mpl_exec_run(b.exec, NULL));
        compare(ctx, what, &w, &b);
        unbind(&b);
    }
    unbind(&w);
}

static mpl_status twice(mpl_ctx *ctx, const char *changed, mpl_graph **g)
{
    return mpl_graph_incremental(ctx, g, 1, &changed, NULL);
}

TEST(random_training)
{
    uint32_t n = draws(40), n_updated = 0;

    for (uint32_t seed = 0; seed < n; seed++) {
        owned_graph *whole = random_loops(ctx, seed), *g = random_loops(ctx, seed);
        const char *changed = whole->value_name[whole->input[seed % whole->n_inputs]];
        char what[60];

        snprintf(what, sizeof what, "program %u, input %.20s", seed, changed);
        assert_ok(ctx, twice(ctx, changed, &g));
        for (mpl_op op = 0; op < g->n_ops; op++)
            n_updated += mpl_n_updates((mpl_op_kind)g->op_kind[op]) > 0;
        check(ctx, what, whole, g, seed);
    }
    assert_true(n_updated > n / 4);
}

TEST(networks)
{
    static const char *const rows[][2] = {
        {"lstm:form=while,layers=2,steps=4,hidden=8,batch=2,mode=train,update=sgd", "labels"},
        {"gru:form=while,layers=1,steps=3,hidden=4,batch=2,mode=train,update=adam", "layer0.h"},
        {"nested_loop:rounds=3,depth=2,image=6,channels=2,mode=train,update=momentum", "labels"},
        {"seq2seq:steps=4,most=6,hidden=4,vocab=6,batch=2,mode=train,update=sgd", "source"},
        {"delay:rounds=5,taps=3,image=4,channels=2,mode=train,update=adagrad", "labels"},
    };

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        owned_graph *whole = zoo_graph(ctx, rows[i][0]), *g = zoo_graph(ctx, rows[i][0]);

        assert_ok(ctx, twice(ctx, rows[i][1], &g));
        check(ctx, rows[i][0], whole, g, i);
    }
}

TESTS(random_training, networks)
