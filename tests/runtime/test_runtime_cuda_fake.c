/* test_runtime_cuda_fake.c -- the cuda backend on a fake device: arenas, streams, events, CUDA
 * graphs, accounting, errors.
 *
 * Fault: an edge of the graph that neither a stream nor an event enforces (a race, even if the
 * outputs are right), outputs that depend on the plan, memory allocated while running or not freed,
 * out-of-bounds accesses, failing calls that leak, hang or pass as success. */

#include "planners/verify/verify.h"
#include "tests/device/cuda_fake.h"
#include "tests/runtime/bound_graph.h"

typedef struct bench {
    mpl_ctx ctx;
    const mpl_backend *backend;
    mpl_device *dev;
    mpl_graph *g;
    mpl_op *order;
    mpl_problem *p;
    mpl_value_map *map;
    mpl_plan *plan;
    mpl_exec *exec;
} bench;

typedef struct how {
    const char *graph;
    bool parallel, library, checked, pin_inputs;
    const char *params;
} how;

static mpl_status set_inputs(bench *b)
{
    mpl_status st = MPL_OK;
    void *input = NULL;

    for (uint32_t i = 0; i < b->g->n_inputs; i++) {
        if ((input = mpl_alloc(&b->ctx, b->g->value_bytes[b->g->input[i]], 1)) == NULL)
            return MPL_EMEM;
        MPL_TRY(mpl_exec_make_input(&b->ctx, b->g, i, 1, input));
        MPL_TRY(mpl_exec_set_input(b->exec, i, input));
        mpl_free(&b->ctx, input);
        input = NULL;
    }
out:
    mpl_free(&b->ctx, input);
    return st;
}

/* Makes device, problem, plan and exec; on failure *b holds what was made. */
static mpl_status make(bench *b, const how *h)
{
    mpl_status st = MPL_OK;
    mpl_problem_options options = mpl_problem_options_default();
    uint64_t *workspace = NULL;
    mpl_run run;

    MPL_TRY(b->backend->open(&b->ctx, &(mpl_device_options){.n_threads = 4, .params = h->params},
                             &b->dev));
    MPL_TRY(mpl_new_each(&b->ctx, b->g->n_ops, b->order, workspace));
    MPL_TRY(mpl_order_of(&b->ctx, b->g, mpl_order_find("given"), b->order));
    MPL_TRY(mpl_exec_workspaces(&b->ctx, b->backend, b->dev, b->g, workspace));
    options.parallel = h->parallel;
    options.op_workspace_bytes = workspace;
    options.align = b->backend->align;
    options.boxes = b->backend->strided;
    options.pin_inputs = h->pin_inputs;
    MPL_TRY(mpl_problem_from_graph(&b->ctx, b->g, b->order, &options, &b->p, &b->map));
    run = mpl_run_default(&b->ctx);
    MPL_TRY(mpl_planner_run(mpl_planner_find("greedy_size"), &run, b->p, &b->plan));
    MPL_TRY(mpl_exec_new(&b->ctx, b->backend, b->dev, b->g, b->order, b->p, b->map, b->plan,
                         &(mpl_exec_options){.checked = h->checked, .weight_seed = 1}, &b->exec));
    MPL_TRY(set_inputs(b));
out:
    mpl_free(&b->ctx, workspace);
    return st;
}

static void unmake(bench *b)
{
    mpl_exec_free(&b->ctx, b->exec);
    mpl_plan_free(&b->ctx, b->plan);
    mpl_value_map_free(&b->ctx, b->map);
    mpl_problem_free(&b->ctx, b->p);
    mpl_free(&b->ctx, b->order);
    b->backend->close(b->dev);
    b->exec = NULL, b->plan = NULL, b->map = NULL, b->p = NULL, b->order = NULL, b->dev = NULL;
}

static void begin(bench *b, const how *h)
{
    *b = (bench){.backend = fake_backend()};
    b->ctx = mpl_ctx_default();
    fake_reset();
    fake.library = h->library;
    fake.workspace_bytes = 1000;
    assert_ok(&b->ctx, mpl_zoo_build(&b->ctx, h->graph, &b->g));
}

static void end(bench *b)
{
    unmake(b);
    mpl_graph_free(&b->ctx, b->g);
    assert_int_equal(b->ctx.n_live, 0);
    assert_int_equal(fake.n_live, 0);
    assert_int_equal(fake.live_bytes, 0);
}

static void *output_of(bench *b, mpl_exec *exec)
{
    void *out = mpl_alloc(&b->ctx, b->g->value_bytes[b->g->output[0]], 1);

    assert_non_null(out);
    assert_ok(&b->ctx, mpl_exec_output(exec, 0, out));
    return out;
}

/* Outputs of the same device without sharing. */
static void *unshared(bench *b)
{
    mpl_exec *planned = b->exec;
    void *out;

    b->exec = NULL;
    assert_ok(&b->ctx, mpl_exec_new(&b->ctx, b->backend, b->dev, b->g, b->order, NULL, NULL, NULL,
                                    &(mpl_exec_options){.weight_seed = 1}, &b->exec));
    assert_ok(&b->ctx, set_inputs(b));
    assert_ok(&b->ctx, mpl_exec_run(b->exec, NULL));
    out = output_of(b, b->exec);
    mpl_exec_free(&b->ctx, b->exec);
    b->exec = planned;
    return out;
}

/* ---- runs ---- */

#define SMALL_LSTM      "lstm:layers=2,steps=3,hidden=8,batch=2"
#define SMALL_INCEPTION "inception_v1:image=63"

static const how runs[] = {
    {"mlp", false, false, true, true, NULL},
    {"mnist_conv:batch=2", false, false, true, true, NULL},
    {"mnist_conv:batch=2", false, true, false, true, NULL},
    {"mnist_conv:batch=2", false, true, true, false, NULL},
    {"mnist_conv:batch=2", false, true, false, false, NULL},
    {"mnist_conv:batch=2", false, true, false, true, "graph=on"},
    {SMALL_LSTM, false, false, false, true, NULL},
    {SMALL_LSTM, false, true, true, true, NULL},
    {SMALL_LSTM, true, true, false, true, NULL},
    {SMALL_LSTM, true, false, false, true, "graph=on,tf32=on"},
    {SMALL_LSTM, true, true, false, false, NULL},
    {SMALL_INCEPTION, false, true, false, true, NULL},
    {SMALL_INCEPTION, true, true, false, true, NULL},
    {SMALL_INCEPTION, true, true, false, true, "graph=on"},
};

static void check_facts(bench *b, const how *h)
{
    mpl_exec_facts facts;
    mpl_device_facts device;

    assert_ok(&b->ctx, mpl_exec_facts_get(b->exec, &facts));
    assert_true(facts.device_asked >= facts.arena_bytes + facts.workspace_bytes +
                                          facts.weight_bytes + facts.pinned_bytes);
    b->backend->facts(b->dev, &device);
    assert_int_equal(facts.arena_bytes, b->plan->pool_bytes[0]);
    assert_int_equal(device.n_while_running, 0);
    if (!h->checked && (h->parallel || h->pin_inputs)) { /* a whole run as one graph */
        assert_int_equal(facts.measured_bytes, facts.arena_bytes);
        assert_int_equal(device.used_before, device.used_after);
        assert_true(device.used_after >= facts.arena_bytes + facts.weight_bytes);
        assert_true(h->params == NULL || strstr(h->params, "graph=on") == NULL ||
                    fake.n_graph_launches > 0);
    }
    if (h->library && b->p->n_pools > 1)
        assert_true(facts.workspace_bytes >= 1000);
    assert_true((fake.n_streams_used > 1) == h->parallel);
    assert_true((fake.n_waits > 0) == h->parallel);
}

TEST(shared_equals_unshared)
{
    for (size_t i = 0; i < sizeof runs / sizeof *runs; i++) {
        bench b;
        void *want, *got;

        begin(&b, &runs[i]);
        assert_ok(&b.ctx, make(&b, &runs[i]));
        want = unshared(&b);
        for (int repeat = 0; repeat < 2; repeat++) {
            int64_t ns = -1;

            assert_ok(&b.ctx, mpl_exec_run(b.exec, &ns));
            assert_true(ns >= 0);
            got = output_of(&b, b.exec);
            if (memcmp(got, want, b.g->value_bytes[b.g->output[0]]) != 0)
                fail_msg("row %zu, %s: outputs differ from those of the unshared run", i,
                         runs[i].graph);
            mpl_free(&b.ctx, got);
        }
        if (fake.n_races > 0)
            fail_msg("row %zu, %s: %s", i, runs[i].graph, fake.race);
        assert_int_equal(fake.n_wild, 0);
        assert_int_equal(fake.n_misused, 0);
        check_facts(&b, &runs[i]);
        mpl_free(&b.ctx, want);
        end(&b);
    }
}

/* Other orders and any number of streams, for plans with parallel safety. */
TEST(any_order_any_streams)
{
    const how h = {SMALL_INCEPTION, true, true, false, true, NULL};
    bench b;
    void *want, *got;

    begin(&b, &h);
    assert_ok(&b.ctx, make(&b, &h));
    want = unshared(&b);
    for (uint64_t seed = 1; seed <= 4; seed++) {
        assert_ok(&b.ctx, mpl_order_random(&b.ctx, b.g, seed, b.order));
        assert_ok(&b.ctx, mpl_exec_set_order(b.exec, b.order));
        assert_ok(&b.ctx, run_by(b.exec, (uint32_t)seed));
        got = output_of(&b, b.exec);
        assert_memory_equal(got, want, b.g->value_bytes[b.g->output[0]]);
        mpl_free(&b.ctx, got);
    }
    if (fake.n_races > 0)
        fail_msg("%s", fake.race);
    mpl_free(&b.ctx, want);
    end(&b);
}

/* Two independent outputs: each ends on its own stream, and both are complete when the run ends. */
TEST(every_stream_ends_with_the_run)
{
    static const char *const params[] = {NULL, "graph=on"};

    for (int i = 0; i < 2; i++) {
        bench b = {.backend = fake_backend()};
        float x[] = {1, -2, 3, -4}, got[4];
        const char *names[] = {"negative", "absolute"};
        mpl_value in, out[2];

        b.ctx = mpl_ctx_default();
        fake_reset();
        assert_ok(&b.ctx, mpl_graph_new(&b.ctx, "g", &b.g));
        assert_ok(&b.ctx, mpl_graph_add_value(&b.ctx, b.g, "x", MPL_INPUT, MPL_TYPE_f32,
                                              &(mpl_shape){1, {4}}, &in));
        for (int k = 0; k < 2; k++) {
            assert_ok(&b.ctx, mpl_graph_add_op(&b.ctx, b.g, k == 0 ? MPL_OP_neg : MPL_OP_abs,
                                               names[k], 1, &in, 0, NULL, 1, &names[k], &out[k]));
            assert_ok(&b.ctx, mpl_graph_add_output(&b.ctx, b.g, out[k]));
        }
        assert_ok(&b.ctx, mpl_graph_finish(&b.ctx, b.g));
        assert_ok(&b.ctx, make(&b, &(how){"", true, false, false, true, params[i]}));
        assert_ok(&b.ctx, mpl_exec_set_input(b.exec, 0, x));
        assert_ok(&b.ctx, mpl_exec_run(b.exec, NULL));
        for (uint32_t k = 0; k < 2; k++) {
            assert_ok(&b.ctx, mpl_exec_output(b.exec, k, got));
            for (int j = 0; j < 4; j++)
                assert_true(got[j] == (k == 0 || x[j] < 0 ? -x[j] : x[j]));
        }
        assert_int_equal(fake.n_streams_used, 2);
        assert_int_equal(fake.n_misused, 0);
        if (fake.n_races > 0)
            fail_msg("%s", fake.race);
        end(&b);
    }
}

/* The fake must detect streams that do not wait. */
TEST(missing_waits_are_races)
{
    const how h = {SMALL_INCEPTION, true, true, false, true, NULL};
    bench b;

    begin(&b, &h);
    assert_ok(&b.ctx, make(&b, &h));
    fake.blind_waits = true;
    assert_ok(&b.ctx, mpl_exec_run(b.exec, NULL));
    assert_true(fake.n_races > 0);
    print_message("seen: %s\n", fake.race);
    end(&b);
}

/* ---- failures ---- */

static const how small = {"mnist_conv", false, true, false, true, "graph=on"};
static const how small_streams = {SMALL_LSTM, true, false, false, true, NULL};

/* Every allocation fails in turn; each failure is reported as out of memory, without a leak. */
TEST(out_of_memory_at_every_allocation)
{
    mpl_status st = MPL_EMEM;

    for (uint64_t k = 0; st == MPL_EMEM; k++) {
        bench b;

        begin(&b, &small);
        fake.oom_at = k;
        st = make(&b, &small);
        assert_true(st == MPL_OK || st == MPL_EMEM);
        assert_true(st == MPL_OK || strstr(b.ctx.message, "out of memory") != NULL);
        assert_true(st != MPL_OK || k >= 4);
        end(&b);
    }
}

TEST(launch_failure_at_every_operation)
{
    const how *const hows[] = {&small, &small_streams};

    for (int i = 0; i < 2; i++) {
        mpl_status st = MPL_EUNAVAIL;

        for (uint64_t k = 0; st == MPL_EUNAVAIL; k++) {
            bench b;

            begin(&b, hows[i]);
            fake.launch_at = k;
            st = make(&b, hows[i]);
            if (st == MPL_OK)
                st = mpl_exec_run(b.exec, NULL);
            if (st != MPL_OK) {
                assert_status(&b.ctx, st, MPL_EUNAVAIL);
                assert_non_null(strstr(b.ctx.message, "unspecified launch failure"));
                if (b.exec != NULL) /* it stays failed */
                    assert_int_not_equal(mpl_exec_run(b.exec, NULL), MPL_OK);
            } else
                assert_true(k >= 3);
            if (b.exec == NULL)
                assert_true(i == 0); /* failed in the capture, before there was anything to run */
            end(&b);
        }
    }
}

TEST(device_lost_at_many_calls)
{
    const how *const hows[] = {&small, &small_streams};

    for (int i = 0; i < 2; i++) {
        bool lost = true;

        for (uint64_t k = 0; lost; k += k < 60 ? 1 : 37) {
            bench b;
            mpl_status st;
            float out[1024] = {0};

            begin(&b, hows[i]);
            fake.lost_at = k;
            st = make(&b, hows[i]);
            if (st == MPL_OK)
                st = mpl_exec_run(b.exec, NULL);
            if (st == MPL_OK)
                st = mpl_exec_output(b.exec, 0, out);
            lost = fake.n_calls > k;
            if (st != MPL_OK)
                assert_non_null(strstr(b.ctx.message, "device lost"));
            else if (lost && b.exec != NULL) /* only if the call asked for the amount of memory */
                assert_true(k < fake.n_calls);
            end(&b);
        }
    }
}

TEST(host_memory_fails_at_every_allocation)
{
    mpl_status st = MPL_EMEM;

    for (int64_t k = 0; st == MPL_EMEM; k = next_place(k)) {
        bench b;

        begin(&b, &small_streams);
        b.ctx.fail_after = b.ctx.n_allocs + k;
        st = make(&b, &small_streams);
        if (st == MPL_OK)
            st = mpl_exec_run(b.exec, NULL);
        assert_true(st == MPL_OK || st == MPL_EMEM);
        b.ctx.fail_after = -1;
        end(&b);
    }
}

/* --checked names the operation that made an out-of-bounds write, whichever it is. */
TEST(checks_see_every_stray_write)
{
    const how h = {"mnist_conv:batch=2", false, true, true, true, NULL};
    bool strayed = true;

    for (uint64_t k = 0; strayed; k++) {
        bench b;
        mpl_status st;

        begin(&b, &h);
        assert_ok(&b.ctx, make(&b, &h));
        fake.stray_at = k;
        st = mpl_exec_run(b.exec, NULL);
        strayed = fake.n_runs > k && st != MPL_OK;
        if (st != MPL_OK)
            assert_status(&b.ctx, st, MPL_EINVALID);
        else
            assert_true(k == fake.n_runs && k >= 6); /* all were detected */
        fake.stray_at = FAKE_NEVER;
        end(&b);
    }
}

/* ---- parameters, refusals ---- */

TEST(parameters_are_checked)
{
    static const struct {
        const char *params, *message; /* NULL: good */
    } rows[] =
        ROW({"tf32=on,graph=off,workspace=64MiB,device=0", NULL}, {"fp16=on,graph=both", NULL},
            {"fp16=half", "must be on or off"}, {"graph=twice", "on or off, or both"},
            {"workspace=0", NULL}, {"", NULL}, {"tf32=yes", "must be on or off"},
            {"tf32", "has no value"}, {"colour=red", "no parameter 'colour'"},
            {"workspace=64MB", "no number of bytes"}, {"workspace=", "no number of bytes"},
            {"workspace=99999999999999999999", "no number of bytes"},
            {"device=1", "opening the device"}, {"device=1024", "below 1024"});

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        mpl_device *dev = NULL;
        mpl_status st;

        fake_reset();
        st = fake_backend()->open(ctx, &(mpl_device_options){.params = rows[i].params}, &dev);
        assert_true((st == MPL_OK) == (rows[i].message == NULL));
        if (st == MPL_OK)
            fake_backend()->close(dev);
        else if (strstr(ctx->message, rows[i].message) == NULL)
            fail_msg("'%s': %s", rows[i].params, ctx->message);
        assert_int_equal(ctx->n_live, 0);
        assert_int_equal(fake.n_live, 0);
    }
}

TEST(the_workspace_limit_is_kept)
{
    const how h = {"mnist_conv", false, true, false, true, "workspace=100"};
    bench b;
    uint64_t workspace[64] = {0};

    begin(&b, &h);
    assert_ok(&b.ctx, make(&b, &h));
    assert_true(b.g->n_ops <= 64);
    assert_ok(&b.ctx, mpl_exec_workspaces(&b.ctx, b.backend, b.dev, b.g, workspace));
    for (mpl_op op = 0; op < b.g->n_ops; op++)
        assert_true(workspace[op] <= 100);
    end(&b);
}

/* An index out of range fails that run only: in a kernel, or in an operator that the host computes;
 * call by call, and replayed. */
static void wild_index(mpl_op_kind kind, const char *params)
{
    bench b = {.backend = fake_backend()};
    int64_t index[] = {1, -3, 3};
    float data[] = {1, 2, 3};
    static const mpl_op order[] = {0};
    const char *name = "picked";
    mpl_value v[2], out;

    b.ctx = mpl_ctx_default();
    fake_reset();
    assert_ok(&b.ctx, mpl_graph_new(&b.ctx, "g", &b.g));
    assert_ok(&b.ctx, mpl_graph_add_value(&b.ctx, b.g, "data", MPL_INPUT, MPL_TYPE_f32,
                                          &(mpl_shape){1, {3}}, &v[0]));
    assert_ok(&b.ctx, mpl_graph_add_value(&b.ctx, b.g, "index", MPL_INPUT, MPL_TYPE_i64,
                                          &(mpl_shape){1, {3}}, &v[1]));
    assert_ok(&b.ctx, mpl_graph_add_op(&b.ctx, b.g, kind, "pick", 2, v, 0, NULL, 1, &name, &out));
    assert_ok(&b.ctx, mpl_graph_add_output(&b.ctx, b.g, out));
    assert_ok(&b.ctx, mpl_graph_finish(&b.ctx, b.g));
    assert_ok(&b.ctx, b.backend->open(&b.ctx, &(mpl_device_options){.params = params}, &b.dev));
    assert_ok(&b.ctx, mpl_exec_new(&b.ctx, b.backend, b.dev, b.g, order, NULL, NULL, NULL,
                                   &(mpl_exec_options){0}, &b.exec));
    assert_ok(&b.ctx, mpl_exec_set_input(b.exec, 0, data));
    assert_ok(&b.ctx, mpl_exec_set_input(b.exec, 1, index));
    assert_status(&b.ctx, mpl_exec_run(b.exec, NULL), MPL_EINPUT);
    index[2] = 2;
    assert_ok(&b.ctx, mpl_exec_set_input(b.exec, 1, index));
    assert_ok(&b.ctx, mpl_exec_run(b.exec, NULL));
    assert_ok(&b.ctx, mpl_exec_output(b.exec, 0, data));
    assert_true(data[0] == 2 && data[1] == 1 && data[2] == 3);
    assert_int_equal(strcmp(mpl_exec_how(b.exec, 0), MPL_HOW_LOOPS) == 0, kind != MPL_OP_gather);
    assert_int_equal(fake.n_graph_launches, params != NULL ? 2 : 0);
    assert_int_equal(fake.n_races + fake.n_wild + fake.n_misused, 0);
    end(&b);
}

TEST(a_wild_index_is_refused)
{
    wild_index(MPL_OP_gather, NULL);
    wild_index(MPL_OP_gather, "graph=on");
    wild_index(MPL_OP_gather_elements, NULL);
    wild_index(MPL_OP_gather_elements, "graph=on");
}

/* A capture first runs the graph once; what that run changed is restored, so that the first run is
 * the first update. Fault: a captured graph updates weights twice. */
TEST(a_capture_changes_no_weight)
{
    static const char text[] = "graph t\ninput g f32 [2]\nweight w f32 [2]\n"
                               "w1 = sgd_update(g, w) rate=0.5\noutput w1\n";
    static const mpl_op order[] = {0};
    const mpl_exec_options options = {.weight_seed = 1, .iterate = true};
    const float gradient[2] = {1, -2};
    bench b = {.backend = fake_backend()};
    float first[2], got[2];

    b.ctx = mpl_ctx_default();
    fake_reset();
    assert_ok(&b.ctx, mpl_text_read_memory(&b.ctx, "t", text, strlen(text), &b.g));
    mpl_exec_make_weight(b.g, &options, mpl_graph_find(b.g, "w"), first);
    assert_ok(&b.ctx, b.backend->open(&b.ctx, &(mpl_device_options){.params = "graph=on"}, &b.dev));
    assert_ok(&b.ctx, mpl_exec_new(&b.ctx, b.backend, b.dev, b.g, order, NULL, NULL, NULL, &options,
                                   &b.exec));
    assert_ok(&b.ctx, mpl_exec_set_input(b.exec, 0, gradient));
    for (int round = 1; round <= 2; round++) {
        assert_ok(&b.ctx, mpl_exec_run(b.exec, NULL));
        assert_ok(&b.ctx, mpl_exec_output(b.exec, 0, got));
        for (int i = 0; i < 2; i++)
            assert_true(got[i] == first[i] - (float)round * 0.5f * gradient[i]);
    }
    assert_true(fake.n_graph_launches == 2);
    end(&b);
}

/* ---- replay ---- */

TEST(requests_are_played)
{
    static const mpl_request good[] = {{0, 100, false, 1}, {2, 50, false, 1}, {0, 100, true, 1},
                                       {1, 70, false, 1},  {1, 70, true, 1},  {2, 50, true, 1}};
    static const mpl_request twice[] = {{0, 100, false, 1}, {0, 100, false, 1}},
                             unasked[] = {{3, 1, true, 1}};
    mpl_device *dev = NULL;
    mpl_replay_facts f = {0};

    for (int mode = MPL_REPLAY_PLAIN; mode <= MPL_REPLAY_POOL; mode++) {
        const mpl_backend *b = fake_backend();

        fake_reset();
        assert_ok(ctx, b->open(ctx, &(mpl_device_options){0}, &dev));
        assert_ok(ctx, b->replay(dev, good, 6, (mpl_replay_mode)mode, &f));
        assert_int_equal(f.peak_bytes, 150);
        assert_true(f.ns >= 0);
        assert_status(ctx, b->replay(dev, twice, 2, (mpl_replay_mode)mode, &f), MPL_EINVALID);
        assert_status(ctx, b->replay(dev, unasked, 1, (mpl_replay_mode)mode, &f), MPL_EINVALID);
        fake.oom_at = fake.n_allocations + 2;
        assert_status(ctx, b->replay(dev, good, 6, (mpl_replay_mode)mode, &f), MPL_EMEM);
        b->close(dev);
        assert_int_equal(fake.n_live, 0);
    }
}

/* ---- streams ---- */

/* Operations are letters, each with the earlier ones it reads; capitals are views (no code). */
static const struct {
    const char *name, *ops;
    uint32_t most, n_streams, n_waits;
} shapes[] = {
    {"a chain needs one stream", "a b:a c:b d:c", 4, 1, 0},
    {"a diamond: one wait", "a b:a c:a d:bc", 4, 2, 2},
    {"a view hands on what it waits for", "a B:a c:a d:B e:cd", 4, 2, 2},
    {"a view of the end of a stream", "a B:a c:B", 4, 1, 0},
    {"no more streams than allowed", "a b c d e", 2, 2, 0},
    {"one stream waits for nothing", "a b c d:abc", 1, 1, 0},
    {"a wait is not repeated", "a b c:ab d:cb", 4, 2, 1},
    {"known once is known", "a b c:ab d:ab", 2, 2, 2},
};

static mpl_graph *graph_of(mpl_ctx *ctx, const char *text, uint8_t *skipped)
{
    mpl_graph *g;
    mpl_value made[128], x;

    assert_ok(ctx, mpl_graph_new(ctx, "g", &g));
    assert_ok(ctx,
              mpl_graph_add_value(ctx, g, "x", MPL_INPUT, MPL_TYPE_f32, &(mpl_shape){1, {4}}, &x));
    for (uint32_t op = 0; *text != '\0'; op++) {
        mpl_value in[8] = {x};
        uint32_t n = 0;
        char name[2] = {*text++, 0};
        const char *names[1] = {name};

        for (text += *text == ':'; *text != ' ' && *text != '\0'; text++)
            in[n++] = made[(int)*text];
        text += *text == ' ';
        skipped[op] = name[0] < 'a';
        assert_ok(ctx, mpl_graph_add_op(ctx, g, MPL_OP_sum, name, n > 0 ? n : 1, in, 0, NULL, 1,
                                        names, &made[(int)name[0]]));
    }
    assert_ok(ctx, mpl_graph_add_output(ctx, g, g->op_out[g->n_ops - 1]));
    assert_ok(ctx, mpl_graph_finish(ctx, g));
    return g;
}

/* reach[i][j]: j has finished when i begins, by streams and events alone; a naive closure. */
static void check_covered(const mpl_graph *g, const mpl_op *order, const uint8_t *skipped,
                          const mpl_cuda_streams *s)
{
    static bool reach[64][64];
    uint32_t step_of[64];

    memset(reach, 0, sizeof reach);
    assert_true(g->n_ops <= 64);
    for (uint32_t i = 0; i < g->n_ops; i++) {
        mpl_op op = order[i];

        step_of[op] = i;
        for (uint32_t j = 0; j < i && !skipped[op]; j++) {
            bool before = !skipped[order[j]] && s->stream[order[j]] == s->stream[op];

            for (uint32_t k = s->wait_begin[i]; k < s->wait_begin[i + 1]; k++)
                before |= s->event[order[j]] == s->wait[k];
            for (uint32_t k = 0; k < i && before; k++)
                reach[i][k] |= k == j || reach[j][k];
        }
        for (uint32_t j = g->op_in_begin[op]; j < g->op_in_begin[op + 1]; j++) {
            mpl_op from = g->value_op[g->op_in[j]];

            if (from == MPL_NONE)
                continue;
            if (skipped[op] || skipped[from]) /* a view: its readers must wait for what it reads */
                for (uint32_t k = 0; k < g->n_ops && skipped[op]; k++)
                    reach[i][k] |= k == step_of[from] || reach[step_of[from]][k];
            if (!skipped[op] && !skipped[from] && !reach[i][step_of[from]])
                fail_msg("'%s' may begin before '%s' has ended", g->op_name[op], g->op_name[from]);
            for (uint32_t k = 0; k < i && !skipped[op] && skipped[from]; k++)
                if (reach[step_of[from]][k] && !skipped[order[k]] && !reach[i][k])
                    fail_msg("'%s' may begin before '%s' has ended", g->op_name[op],
                             g->op_name[order[k]]);
        }
    }
}

TEST(streams_keep_every_edge)
{
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        uint8_t skipped[64] = {0};
        mpl_op order[64];
        owned_graph *g = graph_of(ctx, shapes[i].ops, skipped);
        mpl_cuda_streams *s = NULL;

        count_up(g->n_ops, order);
        assert_ok(ctx, mpl_cuda_streams_new(ctx, g, order, skipped, shapes[i].most, &s));
        check_covered(g, order, skipped, s);
        if (s->n_streams != shapes[i].n_streams || s->wait_begin[g->n_ops] != shapes[i].n_waits)
            fail_msg("%s: %u streams, %u waits", shapes[i].name, s->n_streams,
                     s->wait_begin[g->n_ops]);
        mpl_cuda_streams_free(ctx, s);
    }
}

TEST(streams_keep_every_edge_of_random_graphs)
{
    uint64_t seed = 7;

    for (uint32_t round = 0; round < draws(300); round++) {
        char text[1024], *at = text;
        uint8_t skipped[64] = {0};
        mpl_op order[64];
        owned_graph *g;
        mpl_cuda_streams *s = NULL;
        char made[32];
        int n = 20;

        for (int i = 0; i < n; i++) {
            seed = seed * UINT64_C(6364136223846793005) + 1442695040888963407u;
            made[i] = (char)((i > 0 && seed >> 60 == 0 ? 'A' : 'a') + i);
            at += sprintf(at, "%s%c", i > 0 ? " " : "", made[i]);
            for (int k = 0; k < 3 && i > 0; k++) {
                uint32_t r = (uint32_t)(seed >> (16 + 12 * k)) % 4096;

                if (r % 2 == 0 || made[i] < 'a')
                    at += sprintf(at, "%s%c", at[-1] == made[i] && at[-2] != ':' ? ":" : "",
                                  made[r / 2 % (uint32_t)i]);
            }
        }
        g = graph_of(ctx, text, skipped);
        count_up(g->n_ops, order);
        assert_ok(ctx, mpl_order_random(ctx, g, seed, order));
        assert_ok(ctx,
                  mpl_cuda_streams_new(ctx, g, order, skipped, 1 + (uint32_t)(seed >> 40) % 6, &s));
        check_covered(g, order, skipped, s);
        mpl_cuda_streams_free(ctx, s);
    }
}

TESTS(shared_equals_unshared, any_order_any_streams, every_stream_ends_with_the_run,
      missing_waits_are_races, out_of_memory_at_every_allocation, launch_failure_at_every_operation,
      device_lost_at_many_calls, host_memory_fails_at_every_allocation,
      checks_see_every_stray_write, parameters_are_checked, the_workspace_limit_is_kept,
      a_wild_index_is_refused, a_capture_changes_no_weight, requests_are_played,
      streams_keep_every_edge, streams_keep_every_edge_of_random_graphs)
