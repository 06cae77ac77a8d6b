/* Parallel safety in execution: plans verified from the graph, then run in random topological
 * orders and with concurrent independent operations; outputs must equal, bit for bit, those of a
 * run without sharing. */
#include "tests/runtime/bound_graph.h"

#include "planners/verify/verify.h"

enum { N_ORDERS = 20, N_CONCURRENT = 5 };

static const struct {
    const char *name;
    mpl_concat concat;
    bool families; /* storage that is needed part by part */
} graphs[] = {
    {"resnet18:image=64", MPL_CONCAT_AUTO, false},
    {"densenet121:image=32", MPL_CONCAT_SHARE, true},
    {"inception_v1:image=64", MPL_CONCAT_AUTO, true},
    {"shufflenet_v2:image=64", MPL_CONCAT_SHARE, true},
    {"mobilenet_v2:image=64", MPL_CONCAT_AUTO, false},
    {"lstm:layers=2,steps=4,hidden=32,batch=2", MPL_CONCAT_AUTO, false},
};

static const char *const planners[] = {"greedy_size", "nnc_2018", "nnc_2019", "nnc_arena",
                                       "local_search"};

/* One graph on one backend, with what all plans share. */
typedef struct bench {
    mpl_ctx ctx;
    const mpl_backend *backend;
    mpl_device *dev;
    mpl_graph *g;
    mpl_op *order;
    mpl_problem *p;
    mpl_value_map *map;
    uint64_t *workspace;
    void *input, *want, *got;
    uint64_t output_bytes;
} bench;

static void open_bench(bench *b, const char *graph, mpl_concat concat, const char *backend)
{
    mpl_problem_options options = mpl_problem_options_default();
    mpl_exec *exec = NULL;

    memset(b, 0, sizeof *b);
    b->ctx = mpl_ctx_default();
    b->backend = mpl_backend_find(backend);
    assert_non_null(b->backend);
    /* one thread per operation: here the operations themselves run concurrently */
    assert_ok(&b->ctx, b->backend->open(&b->ctx, &(mpl_device_options){.n_threads = 1}, &b->dev));
    assert_ok(&b->ctx, mpl_zoo_build(&b->ctx, graph, &b->g));
    b->order = mpl_alloc(&b->ctx, b->g->n_ops, sizeof *b->order);
    b->workspace = mpl_alloc(&b->ctx, b->g->n_ops, sizeof *b->workspace);
    assert_ok(&b->ctx, mpl_order_of(&b->ctx, b->g, mpl_order_find("given"), b->order));
    assert_ok(&b->ctx, mpl_exec_workspaces(&b->ctx, b->backend, b->dev, b->g, b->workspace));
    options.parallel = true;
    options.concat = concat;
    options.op_workspace_bytes = b->workspace;
    assert_ok(&b->ctx, mpl_problem_from_graph(&b->ctx, b->g, b->order, &options, &b->p, &b->map));

    b->input = mpl_alloc(&b->ctx, b->g->value_bytes[b->g->input[0]], 1);
    b->output_bytes = b->g->value_bytes[b->g->output[0]];
    b->want = mpl_alloc(&b->ctx, b->output_bytes, 1);
    b->got = mpl_alloc(&b->ctx, b->output_bytes, 1);
    assert_ok(&b->ctx, mpl_exec_make_input(&b->ctx, b->g, 0, 1, b->input));
    assert_ok(&b->ctx, mpl_exec_new(&b->ctx, b->backend, b->dev, b->g, b->order, NULL, NULL, NULL,
                                    &(mpl_exec_options){.weight_seed = 1}, &exec));
    assert_ok(&b->ctx, mpl_exec_set_input(exec, 0, b->input));
    assert_ok(&b->ctx, mpl_exec_run(exec, NULL));
    assert_ok(&b->ctx, mpl_exec_output(exec, 0, b->want));
    mpl_exec_free(&b->ctx, exec);
}

static void close_bench(bench *b)
{
    mpl_free_each(&b->ctx, b->order, b->workspace, b->input, b->want, b->got);
    mpl_problem_free(&b->ctx, b->p);
    mpl_value_map_free(&b->ctx, b->map);
    mpl_graph_free(&b->ctx, b->g);
    b->backend->close(b->dev);
    assert_int_equal(b->ctx.n_live, 0);
}

static mpl_plan *make_plan(bench *b, const char *planner)
{
    mpl_run run = mpl_run_default(&b->ctx);
    mpl_plan *plan = NULL;

    run.budget_ticks = 2000000;
    assert_ok(&b->ctx, mpl_planner_run(mpl_planner_find(planner), &run, b->p, &plan));
    assert_ok(&b->ctx, mpl_verify_graph(&b->ctx, b->g, b->map, b->p, plan));
    return plan;
}

/* A fresh output each time, so that a stale one cannot pass. */
static void compare(bench *b, mpl_exec *exec)
{
    memset(b->got, 0xa5, b->output_bytes);
    assert_ok(&b->ctx, mpl_exec_output(exec, 0, b->got));
    assert_memory_equal(b->got, b->want, b->output_bytes);
}

static void run_everyhow(bench *b, const mpl_plan *plan)
{
    mpl_exec *exec = NULL;

    assert_ok(&b->ctx, mpl_exec_new(&b->ctx, b->backend, b->dev, b->g, b->order, b->p, b->map, plan,
                                    &(mpl_exec_options){.weight_seed = 1}, &exec));
    assert_ok(&b->ctx, mpl_exec_set_input(exec, 0, b->input));
    for (uint64_t seed = 1; seed <= N_ORDERS; seed++) {
        assert_ok(&b->ctx, mpl_order_random(&b->ctx, b->g, seed, b->order));
        assert_ok(&b->ctx, mpl_exec_set_order(exec, b->order));
        assert_ok(&b->ctx, mpl_exec_run(exec, NULL));
        compare(b, exec);
    }
    for (int i = 0; i < N_CONCURRENT; i++) {
        assert_ok(&b->ctx, run_by(exec, 4));
        compare(b, exec);
    }
    mpl_exec_free(&b->ctx, exec);
    assert_ok(&b->ctx, mpl_order_of(&b->ctx, b->g, mpl_order_find("given"), b->order));
}

TEST(any_order_and_at_once)
{
    for (size_t i = 0; i < sizeof graphs / sizeof *graphs; i++) {
        bench b;

        open_bench(&b, graphs[i].name, graphs[i].concat, "cpu");
        if ((b.p->inside != NULL) != graphs[i].families)
            fail_msg("%s: families %s", graphs[i].name,
                     b.p->inside != NULL ? "that were not expected" : "are missing");
        for (size_t k = 0; k < sizeof planners / sizeof *planners; k++) {
            mpl_plan *plan = make_plan(&b, planners[k]);

            run_everyhow(&b, plan);
            mpl_plan_free(&b.ctx, plan);
        }
        close_bench(&b);
    }
}

/* What serial safety allows and parallel does not: the verifier must find it in the graph. */
TEST(serial_plans_are_refused)
{
    bench b;
    mpl_problem *serial = NULL;
    mpl_value_map *map = NULL;
    mpl_plan *plan = NULL;
    mpl_run run;
    mpl_problem_options options = mpl_problem_options_default();

    open_bench(&b, "inception_v1:image=64", MPL_CONCAT_AUTO, "cpu");
    options.op_workspace_bytes = b.workspace;
    assert_ok(&b.ctx, mpl_problem_from_graph(&b.ctx, b.g, b.order, &options, &serial, &map));
    run = mpl_run_default(&b.ctx);
    assert_ok(&b.ctx, mpl_planner_run(mpl_planner_find("greedy_size"), &run, serial, &plan));
    assert_status(&b.ctx, mpl_verify_graph(&b.ctx, b.g, map, serial, plan), MPL_EINVALID);
    assert_non_null(strstr(b.ctx.message, "need not run before"));
    mpl_plan_free(&b.ctx, plan);
    mpl_problem_free(&b.ctx, serial);
    mpl_value_map_free(&b.ctx, map);
    close_bench(&b);
}

/* Every plan with one buffer moved onto another: refused exactly when the problem's relation says
 * so. */
TEST(both_verifiers_agree)
{
    bench b;
    mpl_plan *plan;
    uint32_t n_refused = 0;

    open_bench(&b, "lstm:layers=2,steps=4,hidden=32,batch=2", MPL_CONCAT_AUTO, "cpu");
    plan = make_plan(&b, "nnc_arena");
    plan->n_witness = 0; /* of the original plan */
    plan->bound_bytes = 0;
    plan->claim = MPL_FEASIBLE;
    for (mpl_buffer a = 0; a < b.p->n; a++)
        for (mpl_buffer c = 0; c < b.p->n; c++) {
            uint64_t home = plan->offset[a];
            mpl_status by_relation, by_graph;

            if (b.p->pool[a] != b.p->pool[c])
                continue;
            plan->offset[a] = plan->offset[c];
            by_relation = mpl_verify(&b.ctx, b.p, plan);
            by_graph = mpl_verify_graph(&b.ctx, b.g, b.map, b.p, plan);
            assert_int_equal(by_relation, by_graph);
            n_refused += by_graph == MPL_EINVALID;
            plan->offset[a] = home;
        }
    assert_true(n_refused > 100);
    mpl_plan_free(&b.ctx, plan);
    close_bench(&b);
}

TESTS(any_order_and_at_once, serial_plans_are_refused, both_verifiers_agree)
