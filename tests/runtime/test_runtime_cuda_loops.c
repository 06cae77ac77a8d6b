/* test_runtime_cuda_loops.c -- loops and branches on the fake device, call by call and with
 * replayed rounds.
 *
 * Fault: rounds replayed with another round's operands, values bound too early, work not ordered
 * after what it reads, a host wait in each round, memory of graphs not freed. */
#include "tests/support/random_control.h"

#include "harness/job/measure.h"
#include "tests/device/cuda_fake.h"

enum { MOST_PORTS = 16, N_RUNS = 3 };

typedef struct bench {
    mpl_ctx ctx;
    mpl_device *dev;
    mpl_graph *g;
    mpl_op *order;
    mpl_problem *p;
    mpl_value_map *map;
    mpl_plan *plan;
    mpl_exec *exec;
} bench;

/* Makes problem, plan and executor for an existing graph. */
static mpl_status make(bench *b, const char *params, bool parallel, bool checked)
{
    mpl_problem_options options = mpl_problem_options_default();
    const mpl_backend *backend = fake_backend();
    mpl_run run;

    options.align = backend->align;
    options.parallel = parallel;
    MPL_PASS(
        backend->open(&b->ctx, &(mpl_device_options){.n_threads = 3, .params = params}, &b->dev));
    MPL_PASS(mpl_new(&b->ctx, b->order, b->g->n_ops));
    MPL_PASS(mpl_order_of(&b->ctx, b->g, mpl_order_find("given"), b->order));
    MPL_PASS(mpl_problem_from_graph(&b->ctx, b->g, b->order, &options, &b->p, &b->map));
    run = mpl_run_default(&b->ctx);
    MPL_PASS(mpl_planner_run(mpl_planner_find("greedy_size"), &run, b->p, &b->plan));
    return mpl_exec_new(&b->ctx, backend, b->dev, b->g, b->order, b->p, b->map, b->plan,
                        &(mpl_exec_options){.checked = checked, .weight_seed = 1}, &b->exec);
}

static void unmake(bench *b)
{
    mpl_exec_free(&b->ctx, b->exec);
    mpl_plan_free(&b->ctx, b->plan);
    mpl_value_map_free(&b->ctx, b->map);
    mpl_problem_free(&b->ctx, b->p);
    mpl_free(&b->ctx, b->order);
    fake_backend()->close(b->dev);
    mpl_graph_free(&b->ctx, b->g);
    assert_int_equal(b->ctx.n_live, 0);
    assert_int_equal(fake.n_live, 0);
}

/* ---- random graphs ---- */

static mpl_status run_all(bench *b, size_t row, uint64_t seed)
{
    mpl_status st = MPL_OK;

    for (uint32_t r = 0; r < N_RUNS; r++) {
        void *input[MOST_PORTS], *want[MOST_PORTS];

        for (uint32_t i = 0; i < b->g->n_inputs; i++) {
            input[i] = mpl_alloc(&b->ctx, b->g->value_bytes[b->g->input[i]], 1);
            random_control_input(b->g, i, seed * N_RUNS + r, input[i]);
            assert_ok(&b->ctx, mpl_exec_set_input(b->exec, i, input[i]));
        }
        for (uint32_t i = 0; i < b->g->n_outputs; i++)
            want[i] = mpl_alloc(&b->ctx, b->g->value_bytes[b->g->output[i]], 1);
        direct_run(&b->ctx, b->g, (const void *const *)input, want);
        st = mpl_exec_run(b->exec, NULL);
        for (uint32_t i = 0; i < b->g->n_outputs; i++) {
            uint64_t bytes = b->g->value_bytes[b->g->output[i]], n = 0;
            char *got = mpl_alloc(&b->ctx, bytes + 1, 1);

            if (st == MPL_OK)
                assert_ok(&b->ctx, mpl_exec_output(b->exec, i, got));
            mpl_shape_count(&b->g->value_shape[b->g->output[i]], &n);
            if (st == MPL_OK &&
                mpl_compare(b->g->value_type[b->g->output[i]], n, got, want[i]) > MPL_REL_TOLERANCE)
                fail_msg("row %zu, seed %" PRIu64 ", run %u: output '%s' differs", row, seed, r,
                         b->g->value_name[b->g->output[i]]);
            mpl_free_each(&b->ctx, got, want[i]);
        }
        for (uint32_t i = 0; i < b->g->n_inputs; i++)
            mpl_free(&b->ctx, input[i]);
        if (st != MPL_OK)
            return st;
    }
    return st;
}

TEST(equal_to_the_interpreter)
{
    static const struct {
        const char *params;
        bool parallel, checked;
    } rows[] = ROW({NULL, false, false}, {"graph=on", false, false}, {"graph=on", true, false},
                   {"graph=both", false, false}, {"graph=on", false, true});
    uint64_t n =
        getenv("CONTROL_ORACLE") != NULL ? strtoull(getenv("CONTROL_ORACLE"), NULL, 10) : 150;

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        uint64_t n_lacking = 0, n_replayed = 0;

        for (uint64_t seed = 1; seed <= n; seed++) {
            bench b = {0};
            mpl_status st;

            b.ctx = mpl_ctx_default();
            fake_reset();
            b.g = random_control(&b.ctx, seed);
            assert_true(b.g->n_inputs <= MOST_PORTS && b.g->n_outputs <= MOST_PORTS);
            st = make(&b, rows[i].params, rows[i].parallel, rows[i].checked);
            if (st == MPL_EUNAVAIL)
                n_lacking++;
            else if (st != MPL_OK || (st = run_all(&b, i, seed)) != MPL_OK)
                fail_msg("row %zu, seed %" PRIu64 ": %s", i, seed, b.ctx.message);
            if (fake.n_races + fake.n_wild + fake.n_misused > 0)
                fail_msg("row %zu, seed %" PRIu64 ": %s, %" PRIu64 " wild, %" PRIu64 " misused", i,
                         seed, fake.race, fake.n_wild, fake.n_misused);
            n_replayed += fake.n_graph_launches > 0;
            unmake(&b);
        }
        assert_int_equal(n_lacking, 0);
        assert_true((n_replayed > n / 4) == (rows[i].params != NULL && !rows[i].checked));
    }
}

/* ---- the zoo's loops ---- */

/* A zoo graph, or "counting:N": x + 0 + .. + N - 1, which reads its round number. */
static mpl_graph *graph_named(mpl_ctx *ctx, const char *name)
{
    char text[300];
    int rounds;
    mpl_graph *g = NULL;

    if (sscanf(name, "counting:%d", &rounds) != 1) {
        assert_ok(ctx, mpl_zoo_build(ctx, name, &g));
        return g;
    }
    snprintf(text, sizeof text,
             "graph counting\ninput x f32 []\nblock b\nparam r i64 []\nparam p f32 []\n"
             "f = cast(r) to=\"f32\"\nq = add(p, f)\nyield _, q\n"
             "y = while b(_, _, x) carried=1 trips=%d\noutput y\n",
             rounds);
    assert_ok(ctx, mpl_text_read_memory(ctx, name, text, strlen(text), &g));
    return g;
}

static void set_inputs(bench *b, uint64_t seed)
{
    for (uint32_t i = 0; i < b->g->n_inputs; i++) {
        void *data = mpl_alloc(&b->ctx, b->g->value_bytes[b->g->input[i]], 1);

        assert_ok(&b->ctx, mpl_exec_make_input(&b->ctx, b->g, i, seed, data));
        assert_ok(&b->ctx, mpl_exec_set_input(b->exec, i, data));
        mpl_free(&b->ctx, data);
    }
}

/* All outputs of N_RUNS runs with different inputs, concatenated. */
static char *outputs_of(const char *graph, const char *params, uint64_t *bytes,
                        uint64_t *n_launches)
{
    bench b = {0};
    char *out, *at;

    b.ctx = mpl_ctx_default();
    fake_reset();
    b.g = graph_named(&b.ctx, graph);
    assert_ok(&b.ctx, make(&b, params, false, false));
    *bytes = 0;
    for (uint32_t i = 0; i < b.g->n_outputs; i++)
        *bytes += N_RUNS * b.g->value_bytes[b.g->output[i]];
    out = at = malloc(*bytes);
    for (uint64_t r = 0; r < N_RUNS; r++) {
        set_inputs(&b, r + 1);
        assert_ok(&b.ctx, mpl_exec_run(b.exec, NULL));
        for (uint32_t i = 0; i < b.g->n_outputs; at += b.g->value_bytes[b.g->output[i]], i++)
            assert_ok(&b.ctx, mpl_exec_output(b.exec, i, at));
    }
    *n_launches = fake.n_graph_launches;
    assert_int_equal(fake.n_races + fake.n_wild + fake.n_misused, 0);
    unmake(&b);
    return out;
}

TEST(replays_equal_calls)
{
    static const char *const graphs[] =
        ROW("pingpong:image=8,channels=2,rounds=7", "delay:image=8,channels=2,taps=3,rounds=11",
            "nested_loop", "counting:9", "lstm:layers=2,steps=5,hidden=8,batch=2,form=while",
            "gru:layers=1,steps=4,hidden=8,form=while");

    for (size_t i = 0; i < sizeof graphs / sizeof *graphs; i++) {
        uint64_t bytes, again, n_calls, n_replays;
        char *want = outputs_of(graphs[i], NULL, &bytes, &n_calls);
        char *got = outputs_of(graphs[i], "graph=on", &again, &n_replays);

        assert_int_equal(bytes, again);
        assert_int_equal(n_calls, 0);
        assert_true(n_replays > N_RUNS);
        if (memcmp(want, got, bytes) != 0)
            fail_msg("%s: rounds that are replayed give something else", graphs[i]);
        free(want);
        free(got);
    }
}

/* ---- rounds without work by the host ---- */

typedef struct cost {
    uint64_t waits, runs, launches;
} cost;

/* What the second run of a loop costs. */
static cost second_run(const char *graph, const char *params)
{
    bench b = {0};
    cost c;

    b.ctx = mpl_ctx_default();
    fake_reset();
    fake.library = true; /* convolutions on the host would not be counted */
    b.g = graph_named(&b.ctx, graph);
    assert_ok(&b.ctx, make(&b, params, false, false));
    set_inputs(&b, 1);
    assert_ok(&b.ctx, mpl_exec_run(b.exec, NULL));
    c = (cost){fake.n_host_waits, fake.n_runs, fake.n_graph_launches};
    assert_ok(&b.ctx, mpl_exec_run(b.exec, NULL));
    c = (cost){fake.n_host_waits - c.waits, fake.n_runs - c.runs,
               fake.n_graph_launches - c.launches};
    assert_int_equal(fake.n_races + fake.n_wild + fake.n_misused, 0);
    unmake(&b);
    return c;
}

TEST(rounds_cost_no_round_trip)
{
    static const struct {
        const char *few, *many;
        uint32_t n_many, n_rounds; /* operations and rounds of the second run */
    } rows[] = ROW(
        {"pingpong:image=8,channels=2,rounds=5", "pingpong:image=8,channels=2,rounds=23", 23, 23},
        {"counting:3", "counting:12", 24, 12},
        {"delay:image=8,channels=2,taps=4,rounds=7", "delay:image=8,channels=2,taps=4,rounds=31",
         31, 31});

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        cost few = second_run(rows[i].few, NULL), many = second_run(rows[i].many, NULL);

        assert_int_equal(few.waits, many.waits);
        assert_int_equal(many.runs, rows[i].n_many);
        assert_int_equal(many.launches, 0);
        many = second_run(rows[i].many, "graph=on");
        assert_int_equal(few.waits, many.waits);
        assert_int_equal(many.runs, 0); /* every residue was captured in the first run */
        assert_int_equal(many.launches, rows[i].n_rounds);
    }
}

/* ---- failures ---- */

TEST(failures_leave_nothing)
{
    enum { MEMORY, LAUNCH, LOST, HOST, N_FAILURES };

    for (int what = 0; what < N_FAILURES; what++) {
        bool failed = true;

        for (uint64_t k = 0; failed; k = (uint64_t)next_place((int64_t)k)) {
            bench b = {0};
            mpl_status st;

            b.ctx = mpl_ctx_default();
            fake_reset();
            fake.library = true;
            assert_ok(&b.ctx, mpl_zoo_build(&b.ctx, "pingpong:image=8,channels=2,rounds=4", &b.g));
            fake.oom_at = what == MEMORY ? k : FAKE_NEVER;
            fake.launch_at = what == LAUNCH ? k : FAKE_NEVER;
            fake.lost_at = what == LOST ? k : FAKE_NEVER;
            b.ctx.fail_after = what == HOST ? b.ctx.n_allocs + (int64_t)k : -1;
            st = make(&b, "graph=on", false, false);
            for (int r = 0; r < 2 && st == MPL_OK; r++)
                st = mpl_exec_run(b.exec, NULL);
            b.ctx.fail_after = -1;
            failed = what == LOST ? fake.n_calls > k : st != MPL_OK;
            if (what == HOST || what == MEMORY)
                assert_true(st == MPL_OK || st == MPL_EMEM);
            else
                assert_true(st == MPL_OK || st == MPL_EUNAVAIL);
            assert_true(failed || k > 3);
            if (b.dev != NULL)
                unmake(&b);
            else
                mpl_graph_free(&b.ctx, b.g);
            assert_int_equal(b.ctx.n_live, 0);
            assert_int_equal(fake.n_live, 0);
        }
    }
}

TESTS(equal_to_the_interpreter, replays_equal_calls, rounds_cost_no_round_trip,
      failures_leave_nothing)
