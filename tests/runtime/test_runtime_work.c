/* test_runtime_work.c -- limits of work: of runs, to the last unit, and of computing while building
 * a graph. Fault: rounds or branches not counted, or counted again in the next run; memory
 * allocated before a refusal. */
#include "tests/support/test.h"

#include "graphs/orders/work.h"
#include "graphs/passes/passes.h"
#include "runtime/exec.h"

/* A run's work, for each value of the one input, a number. */
static const struct {
    const char *text;
    uint64_t rounds[3]; /* blocks begun for 0, 1, 2 */
    uint64_t ops[3];    /* relus of 8 numbers, 32 bytes read, written and made each */
} limits[] = {
    {"graph t\ninput n i64 []\ninput x f32 [8]\na = relu(x)\nb = relu(a)\noutput b\n",
     {0, 0, 0},
     {2, 2, 2}},
    ROW("graph t\ninput n i64 []\ninput x f32 [8]\nblock b\nparam i i64 []\nparam p f32 [8]\n"
        "q = relu(p)\nyield _, q\ny = while b(n, _, x) carried=1\noutput y\n",
        {0, 1, 2}, {0, 1, 2}),
    ROW("graph t\ninput n i64 []\ninput x f32 [8]\nblock b\nyield x\nblock c\nq = relu(x)\n"
        "r = relu(q)\nyield r\nblock d\ns = relu(x)\nyield s\ny = case b, c, d(n)\noutput y\n",
        {1, 1, 1}, {0, 2, 1}),
    ROW("graph t\ninput n i64 []\ninput x f32 [8]\nblock b\nparam i i64 []\nparam p f32 [8]\n"
        "block c\nparam j i64 []\nparam q f32 [8]\nr = relu(q)\nyield _, r\n"
        "s = while c(n, _, p) carried=1\nyield _, s\ny = while b(n, _, x) carried=1\noutput y\n",
        {0, 2, 6}, {0, 1, 4}),
};

/* Work of the loops and cases themselves, each time their block begins. */
static uint64_t control_work(const mpl_graph *g, uint64_t outermost)
{
    uint64_t work = 0;

    for (mpl_op op = 0; op < g->n_ops; op++)
        if ((mpl_op_table[g->op_kind[op]].traits & MPL_CONTROL) != 0)
            work += mpl_run_work(g, op) * (g->op_block[op] == 0 ? 1 : outermost);
    return work;
}

/* Twice, since the work of one run must not count in the next. */
static mpl_status run_within(mpl_ctx *ctx, const mpl_graph *g, mpl_device *dev, int64_t n,
                             uint64_t limit)
{
    mpl_op order[8];
    float x[8] = {1, 2, 3};
    mpl_exec *exec = NULL;
    mpl_status st;

    assert_ok(ctx, mpl_order_of(ctx, g, mpl_order_find("given"), order));
    st = mpl_exec_new(ctx, mpl_backend_find("ref"), dev, g, order, NULL, NULL, NULL,
                      &(mpl_exec_options){.work_limit = limit}, &exec);
    if (st == MPL_OK) {
        assert_ok(ctx, mpl_exec_set_input(exec, 0, &n));
        assert_ok(ctx, mpl_exec_set_input(exec, 1, x));
        st = mpl_exec_run(exec, NULL);
        st = st == MPL_OK ? mpl_exec_run(exec, NULL) : st;
    }
    mpl_exec_free(ctx, exec);
    return st;
}

TEST(runs_keep_to_the_unit)
{
    for (size_t i = 0; i < sizeof limits / sizeof *limits; i++)
        for (int64_t n = 0; n < 3; n++) {
            owned_graph *g;
            mpl_device *dev;
            uint64_t work;

            assert_ok(
                ctx, mpl_text_read_memory(ctx, "test", limits[i].text, strlen(limits[i].text), &g));
            assert_ok(ctx, mpl_backend_find("ref")->open(ctx, &(mpl_device_options){.n_threads = 1},
                                                         &dev));
            work = control_work(g, (uint64_t)n) + limits[i].rounds[n] * MPL_STEP_WORK +
                   limits[i].ops[n] * (3 * 32 + MPL_STEP_WORK);
            assert_status(ctx, run_within(ctx, g, dev, n, work), MPL_OK);
            assert_status(ctx, run_within(ctx, g, dev, n, 0), MPL_OK);
            if (work > 1)
                assert_status(ctx, run_within(ctx, g, dev, n, work - 1), MPL_ELIMIT);
            mpl_backend_find("ref")->close(dev);
        }
}

/* A sliding window costs what it reads, not what it makes. */
TEST(windows_count)
{
    static const char text[] =
        "graph t\ninput x f32 [1,1,64,64]\na = max_pool(x) kernel_shape=[60,60]\n"
        "b = relu(x)\noutput a\noutput b\n";
    owned_graph *g = text_graph(ctx, text);

    assert_true(mpl_run_work(g, 0) > 1000 * mpl_run_work(g, 1));
}

/* Constants are folded up to a limit per graph; further operations remain. */
TEST(folding_ends)
{
    const float data[16] = {1, 2, 3};
    const mpl_shape shape = {1, {16}};
    mpl_attr axis[1] = {MPL_INT(axis, 0)};
    owned_graph *g;
    mpl_value w, out;

    assert_ok(ctx, mpl_graph_new(ctx, "t", &g));
    assert_ok(ctx, mpl_graph_add_const(ctx, g, "w", MPL_TYPE_f32, &shape, data, false, &w));
    for (int i = 0; i < 3; i++) {
        char name[8];

        snprintf(name, sizeof name, "v%d", i);
        assert_ok(ctx, mpl_graph_add_folded(ctx, g, MPL_OP_cumsum, name, 1, &w, 1, axis, 1,
                                            (const char *[]){name}, &out));
        assert_int_equal(g->n_ops, i == 2);
        assert_int_equal(g->folded, i == 0 ? 128 : UINT64_C(1) << 31);
        g->folded = (UINT64_C(1) << 31) - (i == 0 ? 128 : 0);
    }
}

/* What reads or compares its elements many times, with few elements and with many. */
static const struct {
    mpl_op_kind kind;
    uint32_t n_in, n_out, n_attr;
    mpl_shape few[2], many[2];
    mpl_attr attr[2];
} repeated[] = {
    ROW(MPL_OP_det, 1, 2, 0, {{2, {8, 8}}}, {{2, {4000, 4000}}}, {{0}}),
    ROW(MPL_OP_unique, 1, 5, 0, {{1, {64}}}, {{1, {1 << 20}}}, {{0}}),
    ROW(MPL_OP_nms, 2, 2, 1, {{3, {1, 8, 4}}, {3, {1, 1, 8}}},
        {{3, {1, 1 << 20, 4}}, {3, {1, 1, 1 << 20}}}, {MPL_INT(k, 4)}),
    ROW(MPL_OP_grid_sample, 2, 1, 0, {{4, {1, 1, 4, 4}}, {4, {1, 4, 4, 2}}},
        {{4, {1, 1, 4, 4}}, {4, {1, 4000, 4000, 2}}}, {{0}}),
    ROW(MPL_OP_resize, 1, 1, 2, {{2, {4, 4}}}, {{2, {2000, 2000}}},
        {{MPL_ATTR_mode, 5, NULL, NULL, "cubic"}, MPL_FLOATS(scales, 2, ((const double[]){2, 2}))}),
};

/* Constants of millions of elements are one element in a file, so that a short file could cost
 * hours if these were folded, too. */
TEST(repeated_reads_are_not_folded)
{
    static const float element = 0.5;
    const char *const name[] = {"a", "b", "c", "d", "e"};

    for (size_t i = 0; i < 2 * sizeof repeated / sizeof *repeated; i++) {
        bool many = i % 2 != 0;
        const mpl_shape *shape = many ? repeated[i / 2].many : repeated[i / 2].few;
        owned_graph *g;
        mpl_value in[2], out[5];

        assert_ok(ctx, mpl_graph_new(ctx, "t", &g));
        for (uint32_t k = 0; k < repeated[i / 2].n_in; k++)
            assert_ok(ctx, mpl_graph_add_const(ctx, g, k == 0 ? "x" : "y", MPL_TYPE_f32, &shape[k],
                                               &element, true, &in[k]));
        assert_ok(ctx,
                  mpl_graph_add_folded(ctx, g, repeated[i / 2].kind, "op", repeated[i / 2].n_in, in,
                                       repeated[i / 2].n_attr, repeated[i / 2].attr,
                                       repeated[i / 2].n_out, name, out));
        assert_int_equal(g->n_ops, many);
    }
}

TESTS(runs_keep_to_the_unit, windows_count, folding_ends, repeated_reads_are_not_folded)
