/* Runs by several workers: random graphs with random delays, bit for bit the run by one worker that
 * shares nothing. Faults: a wait that is left out (plans that hold only with it are caught),
 * operations and allocations that fail on a worker. WORKERS_ORACLE=N: that many graphs (make
 * workers-oracle). */
#include "graphs/orders/op_streams.h"
#include "runtime/cpu/host_priv.h"
#include "tests/runtime/bound_graph.h"
#include "tests/support/random_training.h"

#include <pthread.h>
#include <time.h>

/* The backend `ref` with operations that take their time, or fail. */
static struct {
    mpl_backend backend;
    uint64_t seed;      /* of delays; 0: none */
    int64_t most_ns;    /* longest delay */
    mpl_op slow, fails; /* the one operation that is delayed, if any; one that fails */
    pthread_mutex_t lock;
    unsigned inside;
    int64_t since, several_ns; /* with two or more inside */
} slow = {.lock = PTHREAD_MUTEX_INITIALIZER};

static const mpl_backend *ref;

static void wait_ns(int64_t ns)
{
    nanosleep(&(struct timespec){0, ns}, NULL);
}

static void step_in(int by)
{
    int64_t now;

    pthread_mutex_lock(&slow.lock);
    now = mpl_clock_ns();
    slow.several_ns += slow.inside >= 2 ? now - slow.since : 0;
    slow.since = now;
    slow.inside += (unsigned)by;
    pthread_mutex_unlock(&slow.lock);
}

static mpl_status run_slowly(mpl_device *dev, mpl_prepared *prepared, const mpl_op_call *call)
{
    uint64_t key[2] = {slow.seed, call->op};
    uint64_t draw = mpl_hash(MPL_HASH_SEED, key, sizeof key);
    mpl_status st;

    step_in(1);
    if (slow.slow != MPL_NONE ? call->op == slow.slow : slow.seed != 0 && draw % 3 == 0)
        wait_ns(slow.slow != MPL_NONE ? slow.most_ns : (int64_t)(draw >> 8) % slow.most_ns);
    if (call->op == slow.fails)
        st = MPL_ERROR(dev->ctx, MPL_EUNAVAIL, "planted");
    else
        st = ref->run_op(dev, prepared, call);
    step_in(-1);
    return st;
}

static const mpl_backend *slow_backend(uint64_t seed, int64_t most_ns)
{
    ref = mpl_backend_find("ref");
    slow.backend = *ref;
    slow.backend.name = "slow";
    slow.backend.run_op = run_slowly;
    slow.seed = seed;
    slow.most_ns = most_ns;
    slow.slow = slow.fails = MPL_NONE;
    return &slow.backend;
}

static void bind_graph(mpl_ctx *ctx, const mpl_backend *backend, const mpl_graph *g,
                       const mpl_problem_options *options, const char *planner, bound *b)
{
    bind_device(ctx, backend, g, "given", &(mpl_device_options){.n_threads = 1}, b);
    if (options != NULL)
        bind_problem(b, options, planner);
}

/* ---- random graphs ---- */

static char *unshared(mpl_ctx *ctx, const mpl_graph *g, uint64_t seed)
{
    bound b;
    char *outputs;

    bind_graph(ctx, mpl_backend_find("ref"), g, NULL, NULL, &b);
    bind_exec(&b, &(mpl_exec_options){.weight_seed = seed}, seed);
    assert_ok(ctx, mpl_exec_run(b.exec, NULL));
    outputs = outputs_of(ctx, g, b.exec);
    unbind(&b);
    return outputs;
}

static void try_graph(mpl_ctx *ctx, uint64_t seed, uint64_t *n_at_once)
{
    static const char *const planners[] = {"greedy_size", "nnc_2019", "nnc_arena", "nnc_2018"};
    static const char *const backends[] = {"slow", "slow", "ref", "cpu"};
    const char *name = backends[seed / 2 % 4], *planner = planners[seed % 4];
    mpl_problem_options options = random_options(seed);
    mpl_exec_options how = {.weight_seed = seed, .checked = seed % 3 == 0};
    mpl_graph *g = seed % 9 == 8 ? random_training(ctx, seed, 2 + (uint32_t)seed % 3)
                                 : random_graph(ctx, seed, 10 + (uint32_t)seed % 40, 4);
    const mpl_backend *backend = slow_backend(seed, 40000);
    char *want = unshared(ctx, g, seed), *got = NULL;
    mpl_streams *streams = NULL;
    bound b;

    if (strcmp(name, "cpu") == 0 && mpl_backend_absent(mpl_backend_find("cpu")) != NULL)
        name = "ref";
    options.parallel = true;
    how.n_workers = 2 + (uint32_t)seed % 3;
    bind_graph(ctx, strcmp(name, "slow") == 0 ? backend : mpl_backend_find(name), g, NULL, NULL,
               &b);
    if (seed % 5 < 3) { /* with as many streams as workers, or more */
        assert_ok(ctx, mpl_streams_new(ctx, g, b.order, how.n_workers + (uint32_t)seed % 4,
                                       (mpl_stream_rule)(seed / 5 % MPL_N_STREAM_RULES), NULL,
                                       &streams));
        mpl_streams_ask(streams, &options);
    }
    bind_problem(&b, &options, planner);
    bind_exec(&b, &how, seed);
    for (int run = 0; run < 3; run++) {
        mpl_status st = mpl_exec_run(b.exec, NULL);

        if (st != MPL_OK)
            fail_msg("seed %" PRIu64 ", %s, %s: %s", seed, name, planner, ctx->message);
        got = outputs_of(ctx, g, b.exec);
        if (strcmp(name, "cpu") != 0 && memcmp(got, want, output_bytes(g)) != 0)
            fail_msg("seed %" PRIu64 ", %s, %s, run %d: outputs differ", seed, name, planner, run);
        mpl_free(ctx, got);
        *n_at_once += mpl_exec_concurrent_ns(b.exec) > 0;
    }
    mpl_free(ctx, want);
    unbind(&b);
    mpl_streams_free(ctx, streams);
    mpl_graph_free(ctx, g);
}

TEST(random_graphs_at_once)
{
    uint64_t n = number_asked("WORKERS_ORACLE", draws(100)),
             first = number_asked("WORKERS_SEED", 1), at_once = 0;

    for (uint64_t seed = first; seed < first + n; seed++)
        try_graph(ctx, seed, &at_once);
    assert_true(at_once > n); /* of 3 n runs */
}

/* ---- a wait that is left out ---- */

/* Lets the executor take a serial problem for one of safety parallel. */
static void feign_parallel(mpl_ctx *ctx, mpl_problem *p)
{
    mpl_before *before = NULL;

    assert_ok(ctx, mpl_new(ctx, before, 1));
    before->n = p->n;
    assert_ok(ctx, mpl_new(ctx, before->row, 1));
    assert_ok(ctx, mpl_new(ctx, before->red_begin, 1));
    assert_ok(ctx, mpl_new(ctx, before->red_item, 1));
    p->before = before;
}

/* Whether a run of a serial plan by three workers shows that it is wrong: 0 no, 1 in the outputs,
 * 2 in a check. */
static int shows(mpl_ctx *ctx, const mpl_graph *g, uint64_t seed, mpl_op late, bool checked)
{
    mpl_problem_options options = random_options(seed);
    char *want = unshared(ctx, g, seed), *got;
    mpl_status st;
    bound b;
    int how;

    options.pin_inputs = options.pin_weights = true;
    bind_graph(ctx, slow_backend(1, 300000), g, &options, "greedy_size", &b);
    slow.slow = late;
    feign_parallel(ctx, b.p);
    bind_exec(&b, &(mpl_exec_options){.weight_seed = seed, .n_workers = 3, .checked = checked},
              seed);
    st = mpl_exec_run(b.exec, NULL);
    got = outputs_of(ctx, g, b.exec);
    how = st != MPL_OK ? 2 : memcmp(got, want, output_bytes(g)) != 0 ? 1 : 0;
    if (st != MPL_OK)
        assert_int_equal(st, MPL_EINVALID);
    mpl_free_each(ctx, want, got);
    unbind(&b);
    return how;
}

TEST(plans_that_need_more_waits_are_caught)
{
    enum { N_GRAPHS = 40 };
    uint32_t seen[2][3] = {{0}};

#if defined(__SANITIZE_THREAD__)
    return; /* what it runs are races */
#endif
    for (uint64_t seed = 1; seed <= N_GRAPHS; seed++) {
        owned_graph *g = random_graph(ctx, seed, 20, 6);

        for (mpl_op late = (mpl_op)seed % 3; late < g->n_ops; late += 3)
            for (int checked = 0; checked < 2; checked++)
                seen[checked][shows(ctx, g, seed, late, checked != 0)]++;
    }
    assert_true(seen[0][1] > N_GRAPHS && seen[1][2] > seen[0][1]);
    assert_true(seen[1][1] * 4 < seen[1][2]); /* checks see nearly all that outputs show */
}

/* ---- failures ---- */

/* Fails one operation after the other, with its message; the run after that is right. */
TEST(failing_operations_end_the_run)
{
    owned_graph *g = random_graph(ctx, 5, 24, 6);
    mpl_problem_options options = random_options(5);
    char *want = unshared(ctx, g, 5), *got;
    bound b;

    options.parallel = true;
    bind_graph(ctx, slow_backend(7, 20000), g, &options, "greedy_size", &b);
    bind_exec(&b, &(mpl_exec_options){.weight_seed = 5, .n_workers = 4}, 5);
    for (mpl_op op = 0; op < g->n_ops; op++) {
        bool runs = strncmp(mpl_exec_how(b.exec, op), "nothing", 7) != 0;

        slow.fails = op;
        assert_status(ctx, mpl_exec_run(b.exec, NULL), runs ? MPL_EUNAVAIL : MPL_OK);
        assert_true(!runs || strcmp(ctx->message, "planted") == 0);
        slow.fails = MPL_NONE;
        assert_ok(ctx, mpl_exec_run(b.exec, NULL));
        got = outputs_of(ctx, g, b.exec);
        assert_memory_equal(got, want, output_bytes(g));
        mpl_free(ctx, got);
    }
    mpl_free(ctx, want);
    unbind(&b);
}

/* Every allocation fails once: of the team's making, and inside the operations of a run. */
TEST(failing_allocations_leave_nothing)
{
    owned_graph *g = random_graph(ctx, 9, 16, 6);
    mpl_problem_options options = random_options(9);
    mpl_status st = MPL_EMEM;
    bound b;

    options.parallel = true;
    bind_graph(ctx, mpl_backend_find("ref"), g, &options, "greedy_size", &b);
    for (int64_t at = 0; st == MPL_EMEM; at++) {
        int64_t live = ctx->n_live;

        ctx->fail_after = ctx->n_allocs + at;
        st = mpl_exec_new(ctx, b.backend, b.dev, g, b.order, b.p, b.map, b.plan,
                          &(mpl_exec_options){.n_workers = 3, .checked = at % 2 != 0}, &b.exec);
        if (st == MPL_OK)
            st = mpl_exec_run(b.exec, NULL);
        ctx->fail_after = -1;
        assert_true(st == MPL_OK || st == MPL_EMEM);
        mpl_exec_free(ctx, b.exec);
        b.exec = NULL;
        assert_int_equal(ctx->n_live, live);
        assert_true(at < 10000);
    }
    unbind(&b);
}

static const char two_chains[] = "graph two\n"
                                 "input x f32[64]\ninput y f32[64]\n"
                                 "a = relu(x)\nb = relu(y)\nc = relu(a)\nd = relu(b)\n"
                                 "e = add(c, d)\noutput e\n";

TEST(what_cannot_be_is_refused)
{
    owned_graph *g = text_graph(ctx, two_chains);
    mpl_problem_options options = mpl_problem_options_default();
    bound b;

    bind_graph(ctx, slow_backend(0, 1), g, &options, "greedy_size", &b);
    bind_exec(&b, &(mpl_exec_options){.weight_seed = 1}, 1);
    assert_status(ctx, mpl_exec_set_workers(b.exec, 0), MPL_EINPUT);
    assert_status(ctx, mpl_exec_set_workers(b.exec, MPL_MOST_WORKERS + 1), MPL_EINPUT);
    assert_status(ctx, mpl_exec_set_workers(b.exec, 2), MPL_EINPUT); /* the plan is serial */
    assert_ok(ctx, mpl_exec_set_workers(b.exec, 1));
    unbind(&b);
    options.parallel = true;
    bind_graph(ctx, slow_backend(0, 1), g, &options, "greedy_size", &b);
    bind_exec(&b, &(mpl_exec_options){.weight_seed = 1}, 1);
    slow.backend.share = NULL;
    assert_status(ctx, mpl_exec_set_workers(b.exec, 2), MPL_EUNAVAIL);
    slow.backend.share = ref->share;
    assert_ok(ctx, mpl_exec_set_workers(b.exec, MPL_MOST_WORKERS));
    assert_ok(ctx, mpl_exec_run(b.exec, NULL));
    unbind(&b);
}

/* ---- times ---- */

/* Two chains, one with an operation of 20 ms: the other runs meanwhile. */
TEST(times_are_told)
{
    enum { MS = 1000000 };
    owned_graph *g = text_graph(ctx, two_chains);
    mpl_problem_options options = mpl_problem_options_default();
    uint64_t each[5];
    int64_t several;
    bool agreed = false;
    bound b;

    options.parallel = true;
    options.in_place = false;
    bind_graph(ctx, slow_backend(0, 20 * MS), g, &options, "greedy_size", &b);
    slow.slow = 1; /* b waits; a does not */
    bind_exec(&b, &(mpl_exec_options){.weight_seed = 1}, 1);
    assert_ok(ctx, mpl_exec_op_times(b.exec, 2, each));
    assert_true(each[1] >= 20 * MS && each[0] < each[1]);
    assert_ok(ctx, mpl_exec_run(b.exec, NULL));
    assert_int_equal(mpl_exec_concurrent_ns(b.exec), 0);
    assert_ok(ctx, mpl_exec_set_workers(b.exec, 2));
    for (int run = 0; run < 20 && !agreed; run++) { /* as seen from inside, but for preemptions */
        slow.several_ns = 0;
        assert_ok(ctx, mpl_exec_run(b.exec, NULL));
        several = mpl_exec_concurrent_ns(b.exec);
        assert_true(several >= slow.several_ns);
        agreed = slow.several_ns > 0 && several - slow.several_ns < 5 * MS;
    }
    assert_true(agreed);
    unbind(&b);
}

TESTS(random_graphs_at_once, plans_that_need_more_waits_are_caught, failing_operations_end_the_run,
      failing_allocations_leave_nothing, what_cannot_be_is_refused, times_are_told)
