/* The optimum under serial safety is at most that under any streams, and that at most the one under
 * parallel safety, on random graphs of loops, branches and in-place pairs: what is right in every
 * execution is right in the serial one. Fault: a pair that only one of the problems has; a lifetime
 * that is longer in the serial problem. */
#include "graphs/orders/op_streams.h"
#include "tests/support/random_control.h"

enum { N_SAFETIES = 4, TICKS = 2000000 };

/* Streams 1 (serial), 2, 3, and one for each operation (parallel). */
static const uint32_t n_streams[N_SAFETIES] = {1, 2, 3, 1 << 20};

/* The least bytes of a plan under the safety, if they are proved; else false. */
static bool optimum(mpl_ctx *ctx, const mpl_graph *g, const mpl_op *order,
                    mpl_problem_options options, uint32_t n, uint64_t *bytes, uint32_t *n_pairs)
{
    mpl_streams *streams = NULL;
    mpl_problem *p = NULL;
    mpl_value_map *map = NULL;
    mpl_plan *plan = NULL;
    bool proved;
    mpl_run run = mpl_run_default(ctx);

    run.budget_ticks = TICKS;
    assert_ok(ctx, mpl_streams_new(ctx, g, order, n, MPL_STREAMS_critical_path, NULL, &streams));
    mpl_streams_ask(streams, &options);
    assert_ok(ctx, mpl_problem_from_graph(ctx, g, order, &options, &p, &map));
    assert_ok(ctx, mpl_planner_run(mpl_planner_find("exact"), &run, p, &plan));
    proved = plan->claim == MPL_OPTIMAL;
    *bytes = plan->peak_bytes;
    *n_pairs += p->n_in_place;
    mpl_plan_free(ctx, plan);
    mpl_problem_free(ctx, p);
    mpl_value_map_free(ctx, map);
    mpl_streams_free(ctx, streams);
    return proved;
}

/* Whether all optima are proved, and rise. */
static bool check(mpl_ctx *ctx, const char *what, const mpl_graph *g, const char *order_name,
                  const mpl_problem_options *options, bool *rises, uint32_t *n_pairs)
{
    owned_memory mpl_op *order = order_by(ctx, g, order_name);
    uint64_t bytes[N_SAFETIES];
    bool proved = true;

    for (uint32_t k = 0; k < N_SAFETIES; k++)
        proved = optimum(ctx, g, order, *options, n_streams[k], &bytes[k], n_pairs) && proved;
    for (uint32_t k = 1; k < N_SAFETIES && proved; k++)
        if (bytes[k] < bytes[0] || bytes[k] > bytes[N_SAFETIES - 1])
            fail_msg("%s, %s: serial %" PRIu64 ", %u streams %" PRIu64 ", parallel %" PRIu64, what,
                     order_name, bytes[0], n_streams[k], bytes[k], bytes[N_SAFETIES - 1]);
    *rises = bytes[0] < bytes[N_SAFETIES - 1];
    return proved;
}

static mpl_problem_options options_of(uint64_t seed)
{
    mpl_problem_options options = mpl_problem_options_default();

    options.align = 1;
    options.loop_copy = seed % 11 == 0;
    options.views = seed % 7 != 0;
    options.in_place = seed % 13 != 0;
    options.pin_inputs = seed % 3 != 0;
    options.pin_outputs = seed % 4 != 0;
    options.pin_weights = seed % 5 != 0;
    return options;
}

TEST(serial_streams_parallel)
{
    static const char *const orders[] = {"given", "dfs", "bfs"};
    uint32_t n = draws(1000), n_proved = 0, n_rises = 0, n_pairs = 0;

    for (uint64_t seed = 0; seed < n; seed++) {
        owned_graph *g = seed % 2 == 0 ? random_control(ctx, seed)
                                       : random_control_tiny(ctx, seed, 5 + (uint32_t)seed % 20);
        mpl_problem_options options = options_of(seed);
        char what[32];
        bool rises;

        snprintf(what, sizeof what, "seed %" PRIu64, seed);
        n_proved += check(ctx, what, g, orders[seed % 3], &options, &rises, &n_pairs);
        n_rises += rises;
    }
    assert_true(n_proved * 50 > n * 49 && n_rises * 2 > n && n_pairs > n);
}

/* Each once had less memory under parallel safety. */
TEST(hard_ones)
{
    static const struct {
        uint64_t seed;
        const char *order;
        bool pin_inputs, pin_outputs;
    } rows[] = {{1202, "given", true, true}, {87, "given", false, true},
                {786, "given", false, true}, {873, "given", false, true},
                {4989, "dfs", false, true},  {9693, "dfs", false, true}};
    mpl_problem_options options = mpl_problem_options_default();
    uint32_t n_pairs = 0;
    bool rises;

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        owned_graph *g = random_control(ctx, rows[i].seed);
        char what[32];

        options.align = i % 2 ? 64 : 1;
        options.pin_inputs = rows[i].pin_inputs;
        options.pin_outputs = rows[i].pin_outputs;
        snprintf(what, sizeof what, "seed %" PRIu64, rows[i].seed);
        check(ctx, what, g, rows[i].order, &options, &rises, &n_pairs);
    }
    options = mpl_problem_options_default();
    for (int i = 0; i < 2; i++) {
        owned_graph *g = zoo_graph(ctx, i == 0 ? "piecewise:mode=train" : "piecewise");

        assert_true(check(ctx, "piecewise", g, "given", &options, &rises, &n_pairs));
    }
}

TESTS(serial_streams_parallel, hard_ones)
