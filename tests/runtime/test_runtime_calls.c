/* test_runtime_calls.c -- what a run asks of a backend: `ref` behind a table that counts the calls.
 *
 * Fault: a run that ends before the device has finished, a backend asked to prepare an operation of
 * control flow, bytes moved but not counted, or counted but not moved. */
#include "tests/support/test.h"

#include "runtime/exec.h"

#define MOST_OPS 64

static struct {
    uint32_t n_prepared, n_control, n_run, n_waits;
    bool finished; /* nothing has run since the last wait */
} calls;

static mpl_status prepare(mpl_device *dev, const mpl_graph *g, mpl_op op, mpl_prepared **out,
                          uint64_t *workspace_bytes, const char **how)
{
    calls.n_prepared++;
    calls.n_control += (mpl_op_table[g->op_kind[op]].traits & MPL_CONTROL) != 0;
    return mpl_backend_find("ref")->prepare(dev, g, op, out, workspace_bytes, how);
}

static mpl_status run_op(mpl_device *dev, mpl_prepared *prepared, const mpl_op_call *call)
{
    calls.n_run++;
    calls.finished = false;
    return mpl_backend_find("ref")->run_op(dev, prepared, call);
}

static mpl_status wait(mpl_device *dev)
{
    calls.n_waits++;
    calls.finished = true;
    return mpl_backend_find("ref")->wait(dev);
}

static mpl_backend counting(void)
{
    mpl_backend b = *mpl_backend_find("ref");

    b.name = "counting";
    b.prepare = prepare;
    b.run_op = run_op;
    b.wait = wait;
    memset(&calls, 0, sizeof calls);
    return b;
}

/* Runs a graph without sharing, on zeros. */
static void run_graph(mpl_ctx *ctx, const mpl_graph *g, mpl_exec_facts *facts)
{
    const mpl_backend b = counting();
    mpl_device *dev;
    mpl_exec *exec;
    mpl_op order[MOST_OPS];
    uint64_t workspace[MOST_OPS];

    assert_true(g->n_ops <= MOST_OPS);
    count_up(g->n_ops, order);
    assert_ok(ctx, b.open(ctx, &(mpl_device_options){0}, &dev));
    assert_ok(ctx, mpl_exec_workspaces(ctx, &b, dev, g, workspace));
    assert_ok(
        ctx, mpl_exec_new(ctx, &b, dev, g, order, NULL, NULL, NULL, &(mpl_exec_options){0}, &exec));
    assert_ok(ctx, mpl_exec_run(exec, NULL));
    assert_ok(ctx, mpl_exec_facts_get(exec, facts));
    mpl_exec_free(ctx, exec);
    b.close(dev);
}

static void run(mpl_ctx *ctx, const char *text, mpl_exec_facts *facts)
{
    owned_graph *g = text_graph(ctx, text);

    run_graph(ctx, g, facts);
}

static const struct {
    const char *text;
    uint32_t n_prepared, n_run; /* operations that the backend prepares, and calls of run_op */
    uint64_t copied_bytes, reordered_bytes;
} rows[] = {
    {"graph t\ninput x f32 [4,6]\ny = relu(x)\nz = tanh(y)\noutput z\n", 2, 2, 0, 0},
    /* the value that is not overwritten is copied, then the box */
    {"graph t\ninput x f32 [4,6]\ninput v f32 [2,6]\ny = assign(x, v) index=\"0:2,:\"\noutput y\n",
     1, 1, 4 * (4 * 6 + 2 * 6), 0},
    /* only the box, if it is the whole */
    {"graph t\ninput x f32 [4,6]\ny = access(x) index=\"0:2,:\"\noutput y\n", 1, 1, 4 * 2 * 6, 0},
    {"graph t\ninput x f32 [4,6]\ninput z f32 [2,6]\ny = concat(x, z) axis=0\noutput y\n", 1, 1,
     4 * 6 * 6, 0},
    {"graph t\ninput x f32 [1,3,4,4]\nr = reorder(x) mode=channels_last\n"
     "y = reorder(r) mode=plain\noutput y\n",
     2, 2, 0, 2 * 4 * 3 * 4 * 4},
};

TEST(runs_ask_for_what_they_count)
{
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        mpl_exec_facts facts;

        run(ctx, rows[i].text, &facts);
        if (facts.copied_bytes != rows[i].copied_bytes ||
            facts.reordered_bytes != rows[i].reordered_bytes)
            fail_msg("row %zu: %" PRIu64 " bytes copied, %" PRIu64 " reordered", i,
                     facts.copied_bytes, facts.reordered_bytes);
        assert_int_equal(calls.n_prepared, 2 * rows[i].n_prepared); /* once for the workspaces */
        assert_int_equal(calls.n_run, rows[i].n_run);
        assert_int_equal(calls.n_control, 0);
    }
}

TEST(runs_end_when_the_device_has_finished)
{
    mpl_exec_facts facts;

    run(ctx, rows[0].text, &facts);
    assert_true(calls.finished);
    assert_int_equal(calls.n_waits, 1);
}

/* The executor runs loops: the backend never gets their operations. */
TEST(control_flow_is_not_prepared)
{
    mpl_exec_facts facts;
    uint32_t n_control = 0;
    owned_graph *g = zoo_graph(ctx, "pingpong");

    for (mpl_op op = 0; op < g->n_ops; op++)
        n_control += (mpl_op_table[g->op_kind[op]].traits & MPL_CONTROL) != 0;
    assert_true(n_control > 0);
    run_graph(ctx, g, &facts);
    assert_true(calls.n_prepared > 0 && calls.n_run > 0);
    assert_int_equal(calls.n_control, 0);
}

TESTS(runs_ask_for_what_they_count, runs_end_when_the_device_has_finished,
      control_flow_is_not_prepared)
