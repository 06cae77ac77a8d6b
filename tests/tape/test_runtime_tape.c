/* test_runtime_tape.c -- operations called on a tape: eagerly, by the plan of their trace, and
 * where the two part.
 *
 * Fault: a value freed too early or never, a plan followed for other calls than its own, values
 * left in the arena that the next step overwrites, a trace that misses what decides it, an eviction
 * out of order, counts and bytes that are not those of what ran. MPL_TAPES=N: that many random
 * graphs, from MPL_TAPE_SEED on. */
#include "harness/eager/walk.h"
#include "tests/support/random_control.h"

enum { N_RUNS = 3, MOST_PORTS = 16, N_PLANS = 2, N_GRAPHS = 60 };

typedef struct bench {
    mpl_ctx *ctx;
    const mpl_backend *backend;
    mpl_device *dev;
    mpl_tape *tape;
} bench;

static mpl_status open_tape(mpl_ctx *ctx, const char *allocator, uint32_t n_plans, bench *b)
{
    mpl_tape_options options = {.backend = mpl_backend_find("ref"),
                                .allocator = mpl_allocator_find(allocator),
                                .budget_ticks = 2000,
                                .checked = true,
                                .n_plans = n_plans};

    *b = (bench){.ctx = ctx, .backend = options.backend};
    MPL_PASS(b->backend->open(ctx, &(mpl_device_options){0}, &b->dev));
    options.dev = b->dev;
    return mpl_tape_new(ctx, &options, &b->tape);
}

static void close_tape(bench *b)
{
    mpl_tape_free(b->ctx, b->tape);
    b->backend->close(b->dev);
}

/* ---- random graphs, walked ---- */

typedef struct ports {
    mpl_graph *g;
    void *input[N_RUNS][MOST_PORTS], *want[N_RUNS][MOST_PORTS], *got[MOST_PORTS];
} ports;

static void *got_at(void *arg, uint32_t i)
{
    return ((ports *)arg)->got[i];
}

static void make_ports(mpl_ctx *ctx, uint64_t seed, ports *p)
{
    p->g = random_control(ctx, seed);
    assert_true(p->g->n_inputs <= MOST_PORTS && p->g->n_outputs <= MOST_PORTS);
    for (uint32_t i = 0; i < p->g->n_outputs; i++)
        p->got[i] = mpl_alloc(ctx, p->g->value_bytes[p->g->output[i]], 1);
    for (uint32_t r = 0; r < N_RUNS; r++) {
        for (uint32_t i = 0; i < p->g->n_inputs; i++) {
            p->input[r][i] = mpl_alloc(ctx, p->g->value_bytes[p->g->input[i]], 1);
            random_control_input(p->g, i, seed * N_RUNS + r, p->input[r][i]);
        }
        for (uint32_t i = 0; i < p->g->n_outputs; i++)
            p->want[r][i] = mpl_alloc(ctx, p->g->value_bytes[p->g->output[i]], 1);
        direct_run(ctx, p->g, (const void *const *)p->input[r], p->want[r]);
    }
}

static void free_ports(mpl_ctx *ctx, ports *p)
{
    for (uint32_t i = 0; i < MOST_PORTS; i++) {
        mpl_free(ctx, p->got[i]);
        for (uint32_t r = 0; r < N_RUNS; r++)
            mpl_free_each(ctx, p->input[r][i], p->want[r][i]);
    }
    mpl_graph_free(ctx, p->g);
}

static void assert_outputs(const ports *p, uint32_t r, uint64_t seed, const char *allocator)
{
    for (uint32_t i = 0; i < p->g->n_outputs; i++)
        if (memcmp(p->got[i], p->want[r][i], p->g->value_bytes[p->g->output[i]]) != 0)
            fail_msg("seed %" PRIu64 ", %s, run %u: output '%s' differs", seed, allocator, r,
                     p->g->value_name[p->g->output[i]]);
}

/* What must hold between the bytes at any time. */
static void assert_bytes(const bench *b, uint64_t seed)
{
    mpl_tape_facts f = mpl_tape_facts_of(b->tape);
    mpl_trace_facts t;
    uint64_t most = 0;

    for (uint32_t i = 0; mpl_tape_trace(b->tape, i, &t); i++) {
        most = mpl_max_u64(most, t.plan_bytes);
        assert_true(t.bound_bytes <= t.plan_bound && t.plan_bound <= t.plan_bytes);
        if (f.online.live_peak_bytes < t.bound_bytes)
            fail_msg("seed %" PRIu64 ": %" PRIu64 " alive, at least %" PRIu64 " must be", seed,
                     f.online.live_peak_bytes, t.bound_bytes);
        assert_true(mpl_graph_ok(t.graph));
    }
    assert_int_equal(f.arena_bytes, most);
    assert_true(f.online.reserved_bytes >= f.online.live_peak_bytes);
    assert_true(f.n_plans <= N_PLANS);
    assert_int_equal(f.n_plans + f.n_evictions, f.n_traces);
}

/* Runs of different inputs, whose control may take other ways; the same again must follow a plan.
 */
static void walk_graph(mpl_ctx *ctx, uint64_t seed, const char *allocator, uint64_t *n_diverged)
{
    static const uint32_t runs[] = {0, 0, 1, 1, 2, 2, 0, 0, 1, 0, 2};
    const mpl_exec_options options = {.checked = false};
    ports p = {0};
    bench b;
    mpl_walker *walker = NULL;
    mpl_op *order;

    assert_ok(ctx, open_tape(ctx, allocator, N_PLANS, &b));
    make_ports(ctx, seed, &p);
    order = order_by(ctx, p.g, seed % 2 ? "given" : "dfs");
    assert_ok(ctx, mpl_walker_new(ctx, b.tape, p.g, order, &options, &walker));
    for (size_t i = 0; i < sizeof runs / sizeof *runs; i++) {
        mpl_tape_facts before = mpl_tape_facts_of(b.tape), after;

        assert_ok(ctx, mpl_walker_renew(walker));
        mpl_tape_forgo(b.tape, i == 5);
        assert_ok(ctx, mpl_walker_step(walker, p.input[runs[i]], got_at, &p));
        assert_outputs(&p, runs[i], seed, allocator);
        assert_bytes(&b, seed);
        after = mpl_tape_facts_of(b.tape);
        if (i > 0 && runs[i] == runs[i - 1] && i != 5 && before.n_traces > 0)
            assert_int_equal(after.n_hits, before.n_hits + 1);
        assert_int_equal(after.online.live_bytes, 0);
        if (after.n_hits > before.n_hits)
            assert_int_equal(after.online.n_requests, before.online.n_requests);
    }
    *n_diverged += mpl_tape_facts_of(b.tape).n_diverged;
    mpl_walker_free(ctx, walker);
    mpl_free(ctx, order);
    free_ports(ctx, &p);
    close_tape(&b);
}

TEST(random_graphs)
{
    uint64_t first = number_asked("MPL_TAPE_SEED", 1), n = number_asked("MPL_TAPES", N_GRAPHS),
             n_diverged = 0;
    mpl_online *probe;

    for (uint64_t seed = first; seed < first + n; seed++)
        for (uint32_t i = 0; mpl_allocators[i] != NULL; i++) {
            if (mpl_online_new(ctx, mpl_allocators[i], 1 << 20, &probe) != MPL_OK)
                continue; /* malloc, under a sanitizer */
            mpl_online_free(ctx, probe);
            walk_graph(ctx, seed, mpl_allocators[i]->name, &n_diverged);
        }
    assert_true(n_diverged > 0 || n < N_GRAPHS);
}

static mpl_status walk_twice(mpl_ctx *ctx, const ports *p, const mpl_op *order)
{
    static const mpl_exec_options options = {.checked = false};
    mpl_status st = MPL_OK;
    mpl_walker *walker = NULL;
    bench b = {0};

    MPL_TRY(open_tape(ctx, "best_fit", N_PLANS, &b));
    MPL_TRY(mpl_walker_new(ctx, b.tape, p->g, order, &options, &walker));
    for (uint32_t r = 0; r < N_RUNS; r++) {
        MPL_TRY(mpl_walker_renew(walker));
        MPL_TRY(mpl_walker_step(walker, p->input[r / 2], got_at, (void *)(uintptr_t)p));
    }
out:
    mpl_walker_free(ctx, walker);
    close_tape(&b);
    return st;
}

TEST(lost_memory)
{
    for (uint64_t seed = 1; seed <= 3; seed++) {
        ports p = {0};
        mpl_op *order;
        mpl_status st = MPL_EMEM;

        make_ports(ctx, seed, &p);
        order = order_by(ctx, p.g, "given");
        for (int64_t k = 0; st == MPL_EMEM; k += 1 + k / 64) {
            int64_t live = ctx->n_live;

            ctx->fail_after = ctx->n_allocs + k;
            st = walk_twice(ctx, &p, order);
            ctx->fail_after = -1;
            assert_int_equal(ctx->n_live, live);
        }
        assert_ok(ctx, st);
        mpl_free(ctx, order);
        free_ports(ctx, &p);
    }
}

TESTS(random_graphs, lost_memory)
