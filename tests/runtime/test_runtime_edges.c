/* test_runtime_edges.c -- graphs with values that are inputs, weights and outputs at once, have no
 * bytes, or are never read: planned by every planner under all options, verified and executed.
 * Outputs must equal those of a run without sharing and of a direct interpreter. Fault: false
 * alarms as well as missed ones: contents that never arrive, checks of values that do not exist.
 * EDGES_ORACLE=N: that many graphs, each under every combination of options (make edges-oracle),
 * from seed EDGES_SEED on. */
#include "tests/support/interpret.h"
#include "tests/device/cuda_fake.h"
#include "tests/support/random_edges.h"
#include "tests/runtime/bound_graph.h"

#include "planners/verify/verify.h"
#include "runtime/exec/malloced.h"

enum { N_BACKENDS = 3, MOST_PORTS = 16, TICKS = 300, N_WORKERS = 3 };

/* One combination of options; each option is a digit of its number. */
typedef struct combination {
    uint32_t pin, safety, concat, loop, views, checked, backend;
} combination;

enum { N_COMBINATIONS = 8 * 2 * 3 * 2 * 2 * 2 * N_BACKENDS };

static combination combination_of(uint32_t i)
{
    static const uint32_t base[] = {8, 2, 3, 2, 2, 2, N_BACKENDS};
    combination c;
    uint32_t *digit[] = {&c.pin, &c.safety, &c.concat, &c.loop, &c.views, &c.checked, &c.backend};

    for (int k = 0; k < 7; i /= base[k++])
        *digit[k] = i % base[k];
    return c;
}

typedef struct bench {
    mpl_ctx ctx;
    const mpl_backend *backend[N_BACKENDS];
    mpl_device *dev[N_BACKENDS];
    uint64_t seed, n_plans, n_runs;
    combination c;
    mpl_graph *g;
    mpl_op *order;
    mpl_problem *p;
    mpl_value_map *map;
    void *input[MOST_PORTS], *want[MOST_PORTS];
} bench;

static bench opened; /* its device is open as long as tests run */

static void fail_with(bench *b, const char *who, const char *what)
{
    fail_msg(
        "seed %" PRIu64
        ", %s, pin %u, safety %u, concat %u, loop %u, views %u, checked %u, backend %u: %s: %s",
        b->seed, who, b->c.pin, b->c.safety, b->c.concat, b->c.loop, b->c.views, b->c.checked,
        b->c.backend, what, b->ctx.message);
}

/* ---- the graph's outputs ---- */

static void make_inputs(bench *b)
{
    for (uint32_t i = 0; i < b->g->n_inputs; i++) {
        mpl_value v = b->g->input[i];

        b->input[i] = mpl_alloc(&b->ctx, b->g->value_bytes[v] + 1, 1);
        if (b->g->value_type[v] == MPL_TYPE_i32)
            *(int32_t *)b->input[i] = (int32_t)((b->seed + i) % 3) - 1;
        else
            assert_ok(&b->ctx, mpl_exec_make_input(&b->ctx, b->g, i, b->seed, b->input[i]));
    }
}

static void find_wanted(bench *b)
{
    const mpl_graph *g = b->g;
    interpreter it = interpret_begin(&b->ctx, g);

    for (uint32_t i = 0; i < g->n_inputs; i++)
        memcpy(it.data[g->input[i]], b->input[i], g->value_bytes[g->input[i]]);
    for (mpl_value v = 0; v < g->n_values; v++)
        if (g->value_role[v] == MPL_WEIGHT)
            mpl_exec_make_weight(g, &(mpl_exec_options){.weight_seed = b->seed}, v, it.data[v]);
    assert_ok(&b->ctx, interpret(&it));
    for (uint32_t i = 0; i < g->n_outputs; i++) {
        uint64_t bytes = g->value_bytes[g->output[i]];

        b->want[i] = mpl_alloc(&b->ctx, bytes + 1, 1);
        memcpy(b->want[i], it.data[g->output[i]], bytes);
    }
    interpret_end(&it);
}

/* ---- one plan ---- */

/* Exact, except on oneDNN. */
static bool is_near(mpl_type type, uint64_t bytes, const void *got, const void *want)
{
    const float *a = got, *b = want;

    if (memcmp(got, want, bytes) == 0)
        return true;
    for (uint64_t i = 0; type == MPL_TYPE_f32 && i < bytes / sizeof *a; i++)
        if (!(a[i] - b[i] < 1e-5F && b[i] - a[i] < 1e-5F))
            return false;
    return type == MPL_TYPE_f32;
}

static void compare_outputs(bench *b, mpl_exec *exec, const char *who)
{
    const mpl_graph *g = b->g;
    char name[100];

    for (uint32_t i = 0; i < g->n_outputs; i++) {
        uint64_t bytes = g->value_bytes[g->output[i]];
        char *got = mpl_alloc(&b->ctx, bytes + 1, 1);

        memset(got, 0xa5, bytes + 1);
        assert_ok(&b->ctx, mpl_exec_output(exec, i, got));
        snprintf(name, sizeof name, "output %u, '%.60s', differs", i, g->value_name[g->output[i]]);
        if (!is_near((mpl_type)g->value_type[g->output[i]], bytes, got, b->want[i]) ||
            (unsigned char)got[bytes] != 0xa5)
            fail_with(b, who, name);
        mpl_free(&b->ctx, got);
    }
    if (fake.n_races + fake.n_wild + fake.n_misused > 0)
        fail_with(b, who, fake.race);
    b->n_runs++;
}

static void run_malloced(bench *b, mpl_exec *exec, const char *who)
{
    mpl_malloced *m = NULL;
    mpl_status st = mpl_malloced_new(&b->ctx, exec, &m);

    if (st != MPL_EUNAVAIL && (st != MPL_OK || mpl_malloced_run(m, NULL) != MPL_OK))
        fail_with(b, who, "with one malloc a buffer");
    mpl_malloced_free(&b->ctx, m);
}

/* Runs twice, so that the second run finds the first's leftovers; under parallel also in another
 * order and with several workers. plan NULL: nothing shared. */
static void run_plan(bench *b, const mpl_plan *plan, const char *who)
{
    mpl_exec_options options = {.checked = b->c.checked != 0, .weight_seed = b->seed};
    mpl_exec *exec = NULL;

    if (mpl_exec_new(&b->ctx, b->backend[b->c.backend], b->dev[b->c.backend], b->g, b->order,
                     plan != NULL ? b->p : NULL, plan != NULL ? b->map : NULL, plan, &options,
                     &exec) != MPL_OK)
        fail_with(b, who, "not bound");
    for (uint32_t i = 0; i < b->g->n_inputs; i++)
        assert_ok(&b->ctx, mpl_exec_set_input(exec, i, b->input[i]));
    for (int round = 0; round < 2; round++) {
        if (mpl_exec_run(exec, NULL) != MPL_OK)
            fail_with(b, who, "not run");
        compare_outputs(b, exec, who);
    }
    run_malloced(b, exec, who);
    if (plan != NULL && b->c.safety != 0 && !options.checked) {
        mpl_op *order = mpl_alloc(&b->ctx, b->g->n_ops + 1, sizeof *order);

        if (b->g->n_ops > 0)
            memcpy(order, b->order, b->g->n_ops * sizeof *order);
        assert_ok(&b->ctx, mpl_order_shuffle(&b->ctx, b->g, b->seed, order));
        assert_ok(&b->ctx, mpl_exec_set_order(exec, order));
        if (mpl_exec_run(exec, NULL) != MPL_OK)
            fail_with(b, who, "not run in another order");
        compare_outputs(b, exec, who);
        if (run_by(exec, N_WORKERS) != MPL_OK)
            fail_with(b, who, "not run by several workers");
        compare_outputs(b, exec, who);
        mpl_free(&b->ctx, order);
    }
    mpl_exec_free(&b->ctx, exec);
}

static void run_planner(bench *b, const mpl_planner *planner)
{
    mpl_plan *plan = NULL;
    mpl_run run = mpl_run_default(&b->ctx);
    mpl_status st;

    run.budget_ticks = TICKS;
    st = mpl_planner_run(planner, &run, b->p, &plan);
    if (st == MPL_EUNAVAIL)
        return;
    if (st != MPL_OK)
        fail_with(b, planner->name, "not planned");
    if (mpl_verify(&b->ctx, b->p, plan) != MPL_OK ||
        (b->map->places != NULL && mpl_verify_places(&b->ctx, b->g, b->map, b->p, plan) != MPL_OK))
        fail_with(b, planner->name, "refused");
    run_plan(b, plan, planner->name);
    b->n_plans++;
    mpl_plan_free(&b->ctx, plan);
}

/* ---- one graph ---- */

static void graph_open(bench *b, uint64_t seed)
{
    b->seed = seed;
    b->g = random_edges(&b->ctx, seed);
    assert_true(b->g->n_inputs <= MOST_PORTS && b->g->n_outputs <= MOST_PORTS);
    b->order = order_by(&b->ctx, b->g, seed % 2 ? "given" : "dfs");
    make_inputs(b);
    find_wanted(b);
}

static void graph_close(bench *b)
{
    for (uint32_t i = 0; i < b->g->n_inputs; i++)
        mpl_free(&b->ctx, b->input[i]);
    for (uint32_t i = 0; i < b->g->n_outputs; i++)
        mpl_free(&b->ctx, b->want[i]);
    mpl_free(&b->ctx, b->order);
    mpl_graph_free(&b->ctx, b->g);
}

static void run_combination(bench *b, uint32_t i)
{
    mpl_problem_options options = mpl_problem_options_default();

    b->c = combination_of(i);
    options.pin_weights = (b->c.pin & 1) != 0;
    options.pin_inputs = (b->c.pin & 2) != 0;
    options.pin_outputs = (b->c.pin & 4) != 0;
    options.parallel = b->c.safety != 0;
    options.concat = (mpl_concat)b->c.concat;
    options.loop_copy = b->c.loop != 0;
    options.views = b->c.views == 0;
    options.in_place = b->seed % 4 != 0;
    options.align = (uint32_t)b->backend[b->c.backend]->align;
    if (mpl_problem_from_graph(&b->ctx, b->g, b->order, &options, &b->p, &b->map) != MPL_OK)
        fail_with(b, "no planner", "no problem");
    run_plan(b, NULL, "nothing shared");
    for (int k = 0; mpl_planners[k] != NULL; k++)
        if ((mpl_planners[k]->traits & MPL_SPREADS) == 0)
            run_planner(b, mpl_planners[k]);
    mpl_value_map_free(&b->ctx, b->map);
    mpl_problem_free(&b->ctx, b->p);
}

/* In the short form each graph gets one combination in turn; in the long form each gets all. */
TEST(every_planner)
{
    bench *b = &opened;
    const char *asked = getenv("EDGES_ORACLE"), *from = getenv("EDGES_SEED");
    uint64_t n = asked != NULL ? strtoull(asked, NULL, 10) : draws(2 * N_COMBINATIONS);
    uint64_t first = from != NULL ? strtoull(from, NULL, 10) : 1;

    for (uint64_t seed = first; seed < first + n; seed++) {
        graph_open(b, seed);
        for (uint32_t i = 0; i < (asked != NULL ? N_COMBINATIONS : 1); i++)
            run_combination(b, (uint32_t)((seed + i) % N_COMBINATIONS));
        graph_close(b);
    }
    print_message("%" PRIu64 " graphs, %" PRIu64 " plans, %" PRIu64 " runs\n", n, b->n_plans,
                  b->n_runs);
}

static int open_devices(void)
{
    opened.ctx = mpl_ctx_default();
    fake_reset();
    opened.backend[0] = mpl_backend_find("ref");
    opened.backend[1] = mpl_backend_find("cpu");
    opened.backend[2] = fake_backend();
    for (int i = 0; i < N_BACKENDS; i++)
        assert_ok(&opened.ctx,
                  opened.backend[i]->open(&opened.ctx, &(mpl_device_options){.n_threads = 1},
                                          &opened.dev[i]));
    return 0;
}

static int close_devices(void)
{
    for (int i = 0; i < N_BACKENDS; i++)
        opened.backend[i]->close(opened.dev[i]);
    return opened.ctx.n_live == 0 ? 0 : -1;
}

TESTS_WITHIN(open_devices, close_devices, every_planner)
