/* Loops with bodies of several copies: they compute what the loops did, by a direct interpreter and
 * executed on each backend; no value takes turns any more; bytes counted by hand. Faults: rounds,
 * slices, rows or remainders of another copy; too few copies. */
#include "tests/support/random_control.h"

#include "graphs/passes/unroll_loops.h"
#include "planners/verify/verify.h"
#include "runtime/backend.h"
#include "runtime/exec.h"

enum { MOST_PORTS = 16 };

/* Runs g on the inputs, under a plan of greedy_size, or sharing nothing. */
static void run_graph(mpl_ctx *ctx, const mpl_backend *backend, const mpl_graph *g, bool share,
                      void *const *input, void *const *output)
{
    mpl_problem_options options = mpl_problem_options_default();
    owned_memory mpl_op *order = order_by(ctx, g, "given");
    owned_problem *p = NULL;
    owned_map *map = NULL;
    owned_plan *plan = NULL;
    mpl_device *dev = NULL;
    mpl_exec *exec = NULL;

    assert_ok(ctx, mpl_problem_from_graph(ctx, g, order, &options, &p, &map));
    plan = planned_by(ctx, "greedy_size", p);
    assert_ok(ctx, backend->open(ctx, &(mpl_device_options){.n_threads = 1}, &dev));
    assert_ok(ctx, mpl_exec_new(ctx, backend, dev, g, order, share ? p : NULL, share ? map : NULL,
                                share ? plan : NULL, &(mpl_exec_options){.checked = share}, &exec));
    for (uint32_t i = 0; i < g->n_inputs; i++)
        assert_ok(ctx, mpl_exec_set_input(exec, i, input[i]));
    assert_ok(ctx, mpl_exec_run(exec, NULL));
    for (uint32_t i = 0; i < g->n_outputs; i++)
        assert_ok(ctx, mpl_exec_output(exec, i, output[i]));
    mpl_exec_free(ctx, exec);
    backend->close(dev);
}

/* Contents of the inputs and outputs of g. */
typedef struct ports {
    void *input[MOST_PORTS], *want[MOST_PORTS], *got[MOST_PORTS];
} ports;

static void fill_ports(mpl_ctx *ctx, const mpl_graph *g, uint64_t seed, ports *io)
{
    for (uint32_t i = 0; i < g->n_inputs; i++) {
        io->input[i] = mpl_alloc(ctx, g->value_bytes[g->input[i]], 1);
        random_control_input(g, i, seed, io->input[i]);
    }
    for (uint32_t i = 0; i < g->n_outputs; i++) {
        io->want[i] = mpl_alloc(ctx, g->value_bytes[g->output[i]] + 1, 1);
        io->got[i] = mpl_alloc(ctx, g->value_bytes[g->output[i]] + 1, 1);
    }
}

static void free_ports(mpl_ctx *ctx, const mpl_graph *g, ports *io)
{
    for (uint32_t i = 0; i < g->n_inputs; i++)
        mpl_free(ctx, io->input[i]);
    for (uint32_t i = 0; i < g->n_outputs; i++) {
        mpl_free(ctx, io->want[i]);
        mpl_free(ctx, io->got[i]);
    }
}

static void assert_same(const mpl_graph *g, const ports *io)
{
    for (uint32_t i = 0; i < g->n_outputs; i++)
        assert_memory_equal(io->got[i], io->want[i], g->value_bytes[g->output[i]]);
}

/* Whether the graph of a seed has a loop that was unrolled; then both compute the same. */
static bool same_results(mpl_ctx *ctx, uint64_t seed, uint32_t copies)
{
    static const char *const backends[] = {"ref", "cpu"};
    mpl_problem_options options = mpl_problem_options_default();
    owned_graph *g = random_control(ctx, seed), *unrolled = random_control(ctx, seed);
    ports io = {{NULL}, {NULL}, {NULL}};
    mpl_unrolled_loops facts = {0, 0};
    mpl_status st = mpl_graph_unroll(ctx, &unrolled, copies, &options, &facts);

    if (st != MPL_OK) {
        assert_status(ctx, st, MPL_EINPUT);
        assert_non_null(strstr(ctx->message, "nothing can be unrolled"));
        return false;
    }
    for (uint32_t i = 0; i < g->n_inputs; i++)
        assert_string_equal(unrolled->value_name[unrolled->input[i]], g->value_name[g->input[i]]);
    fill_ports(ctx, g, seed, &io);
    direct_run(ctx, g, (const void *const *)io.input, io.want);
    direct_run(ctx, unrolled, (const void *const *)io.input, io.got);
    assert_same(g, &io);
    for (int k = 0; k < 2; k++) {
        const mpl_backend *backend = mpl_backend_find(backends[k]);

        if (backend == NULL || backend->open == NULL)
            continue;
        run_graph(ctx, backend, g, false, io.input, io.want);
        run_graph(ctx, backend, unrolled, true, io.input, io.got);
        assert_same(g, &io);
    }
    free_ports(ctx, g, &io);
    return facts.n > 0;
}

TEST(results_stay)
{
    uint32_t n = 0;

    for (uint64_t seed = 0; seed < draws(400); seed++)
        n += same_results(ctx, seed, (uint32_t[]){0, 2, 3, 5}[seed % 4]);
    assert_true(n > draws(400) / 4);
}

/* A loop that stacks its rounds, and adds them or does not look at them: round r of seven leaves
 * 0 + 1 + .. + r, or 0. */
static void count_rounds(mpl_ctx *ctx, uint32_t copies, bool adds)
{
    static const int64_t rounds[] = {0, 1, 2, 3, 4, 5, 6}, sums[] = {21, 15, 10, 6, 3, 1, 0};
    mpl_problem_options options = mpl_problem_options_default();
    mpl_unrolled_loops facts = {0, 0};
    int64_t first = 0, last, got_rounds[7], got_sums[7];
    char text[400];

    snprintf(text, sizeof text,
             "graph t\ninput s i64 []\nblock body\n  param round i64 []\n  param x i64 []\n"
             "  y = add(x, %s)\nyield _, y, round, y\n"
             "last, rounds, sums = while body(_, _, s) carried=1 trips=7 scan_reverse=[0,1]\n"
             "output last\noutput rounds\noutput sums\n",
             adds ? "round" : "x");
    owned_graph *g = text_graph(ctx, text);
    assert_ok(ctx, mpl_graph_unroll(ctx, &g, copies, &options, &facts));
    assert_int_equal(facts.n, 1);
    assert_int_equal(facts.bodies, copies < 7 ? copies : 7);
    for (uint32_t i = 0; i < 3; i++)
        assert_string_equal(g->value_name[g->output[i]],
                            ((const char *[]){"last", "rounds", "sums"})[i]);
    direct_run(ctx, g, (const void *const[]){&first}, (void *const[]){&last, got_rounds, got_sums});
    assert_memory_equal(got_rounds, rounds, sizeof rounds);
    for (uint32_t i = 0; i < 7; i++)
        assert_int_equal(got_sums[i], adds ? sums[i] : 0);
    assert_int_equal(last, adds ? 21 : 0);
}

TEST(rounds_are_counted)
{
    for (uint32_t copies = 2; copies < 9; copies++) {
        count_rounds(ctx, copies, true);
        count_rounds(ctx, copies, false);
    }
}

/* Units of 1,024 bytes; of lstm_cell 65,536. The least is what is alive at once: the carried values
 * and the one that is made. A register of n taps hands its last over in place: its instances wait n
 * rounds. Chains that hand over one to the next (chained_n) need a unit less than where the body
 * stands once, for a sum may lie in another place in each copy. Seven rounds are no multiple of 2,
 * 3, 4: the remainder is copies after the loop, which need no more. */
static const struct {
    const char *file;
    uint32_t bodies;
    uint64_t unit, least;
} rows[] = {
    {"pingpong", 2, 1024, 2},  {"lstm_cell", 1, 65536, 9},     {"shift_2", 2, 1024, 3},
    {"shift_3", 3, 1024, 4},   {"shift_4", 4, 1024, 5},        {"shift_6", 6, 1024, 7},
    {"chained_1", 2, 1024, 2}, {"chained_2", 2, 1024, 3},      {"chained_3", 2, 1024, 4},
    {"chained_6", 2, 1024, 7}, {"independent_3", 1, 1024, 11},
};

TEST(nothing_takes_turns)
{
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        mpl_problem_options options = mpl_problem_options_default();
        char path[100];
        owned_graph *g = NULL;
        owned_problem *p = NULL;
        owned_map *map = NULL;
        owned_plan *plan = NULL;
        mpl_unrolled_loops facts = {0, 0};

        snprintf(path, sizeof path, "tests/data/loops/%s.graph", rows[i].file);
        assert_ok(ctx, mpl_text_read(ctx, path, &g));
        assert_ok(ctx, mpl_graph_unroll(ctx, &g, 0, &options, &facts));
        assert_int_equal(facts.bodies, rows[i].bodies);
        owned_memory mpl_op *order = order_by(ctx, g, "given");
        assert_ok(ctx, mpl_problem_from_graph(ctx, g, order, &options, &p, &map));
        for (uint32_t k = 0; k < map->places->n; k++)
            if (map->places->place[k].kind == MPL_PLACE_CYCLE)
                assert_int_equal(map->places->place[k].n - map->places->place[k].n_first, 1);
        for (uint32_t k = 0; k < g->n_blocks; k++)
            for (uint32_t r = 0; r < g->block_n_results[k]; r++)
                assert_false(map->places->result_copied[g->block_result_begin[k] + r]);
        plan = planned_by(ctx, "exact", p);
        assert_int_equal(plan->peak_bytes, rows[i].least * rows[i].unit);
    }
}

TEST(refusals)
{
    static const struct {
        const char *graph, *about;
        uint32_t copies;
    } cases[] = {
        {"graph t\ninput x f32 [4]\ny = relu(x)\noutput y\n", "nothing can be unrolled", 2},
        {"graph t\ninput x f32 [4]\nblock b\n  param r i64 []\n  param a f32 [4]\n  y = relu(a)\n"
         "yield _, y\nz = while b(_, _, x) carried=1 trips=1\noutput z\n",
         "nothing can be unrolled", 2},
        {"graph t\ninput x f32 [4]\ninput n i64 []\nblock b\n  param r i64 []\n  param a f32 [4]\n"
         "  y = relu(a)\nyield _, y\nz = while b(n, _, x) carried=1 trips=9\noutput z\n",
         "nothing can be unrolled", 0},
        {"graph t\ninput x f32 [4]\nblock b\n  param r i64 []\n  param a f32 [4]\n  y = relu(a)\n"
         "yield _, y\nz = while b(_, _, x) carried=1 trips=999\noutput z\n",
         "the most is 255", 256},
    };

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        mpl_problem_options options = mpl_problem_options_default();
        owned_graph *g = text_graph(ctx, cases[i].graph);
        mpl_unrolled_loops facts = {7, 7};

        assert_status(ctx, mpl_graph_unroll(ctx, &g, cases[i].copies, &options, &facts),
                      MPL_EINPUT);
        assert_non_null(strstr(ctx->message, cases[i].about));
        assert_int_equal(facts.n, 7);
    }
}

/* Any failing allocation gives a clean status and no leak. */
TEST(allocation_failures)
{
    EACH_ALLOCATION_FAILS (ctx, st) {
        mpl_problem_options options = mpl_problem_options_default();
        mpl_unrolled_loops facts;
        owned_graph *g = NULL;

        st = mpl_text_read(ctx, "tests/data/loops/shift_3.graph", &g);
        if (st == MPL_OK)
            st = mpl_graph_unroll(ctx, &g, 0, &options, &facts);
    }
}

TESTS(results_stay, rounds_are_counted, nothing_takes_turns, refusals, allocation_failures)
