/* Graphs with repeated operations: outputs equal the graph's bit for bit, whatever repeats and
 * when; the reported work; operations that must not repeat; the least peak of chains. Fault: a
 * repeat that reads another copy, an update that does not wait, statistics updated twice,
 * miscounted work. */
#include "tests/runtime/bound_graph.h"

#include "graphs/orders/work.h"
#include "graphs/core/rng.h"
#include "planners/recompute/recompute_priv.h"

/* Segments within the budget. */
static mpl_status segments(mpl_ctx *ctx, const mpl_graph *g, const mpl_problem_options *options,
                           uint64_t budget, uint32_t *n, mpl_op **run)
{
    mpl_recompute_task task = {.ctx = ctx, .g = g, .options = options, .budget = budget};
    mpl_status st = mpl_recompute_sqrt(&task);

    *n = task.n;
    *run = task.run;
    return st;
}

static const char *const specs[] = {
    "mlp:batch=3,layers=3,input=7,hidden=6,classes=4,mode=train,update=momentum",
    "mnist_conv:batch=2,image=8,mode=train,update=adam",
    "mnist_conv:batch=2,image=8,mode=train,products=apart",
    "randwire:regime=cell,batch=2,image=32,channels=4,nodes=5,mode=train,update=sgd",
    "lstm:batch=2,layers=1,steps=3,hidden=4,mode=train,update=sgd",
};

/* All outputs of the third planned run on `ref`, concatenated. Weights carry over between runs. */
static char *outputs(mpl_ctx *ctx, const mpl_graph *g)
{
    mpl_problem_options options = mpl_problem_options_default();
    bound b;
    char *out;

    bind_device(ctx, mpl_backend_find("ref"), g, "given", &(mpl_device_options){.n_threads = 1},
                &b);
    bind_problem(&b, &options, "greedy_size");
    bind_exec(&b, &(mpl_exec_options){.weight_seed = 1, .iterate = true}, 7);
    for (int i = 0; i < 3; i++)
        assert_ok(ctx, mpl_exec_run(b.exec, NULL));
    out = outputs_of(ctx, g, b.exec);
    unbind(&b);
    return out;
}

static bool updates(const mpl_graph *g, mpl_op op)
{
    return mpl_n_updates((mpl_op_kind)g->op_kind[op]) > 0 &&
           g->op_kind[op] != MPL_OP_batch_norm_train;
}

/* The graph's operations, with earlier ones repeated among them, before the updates. */
static uint32_t random_run(const mpl_graph *g, mpl_rng *rng, mpl_op *run, uint32_t room)
{
    uint32_t n = 0;

    for (mpl_op op = 0; op < g->n_ops; op++) {
        while (op > 0 && !updates(g, op) && n + g->n_ops - op + 1 < room &&
               mpl_rng_below(rng, 2) == 0) {
            mpl_op again = (mpl_op)mpl_rng_below(rng, op);

            if (mpl_may_repeat(g, again))
                run[n++] = again;
        }
        run[n++] = op;
    }
    return n;
}

static uint64_t told_work(const mpl_graph *g, uint32_t n, const mpl_op *run)
{
    uint64_t all = 0;

    for (uint32_t i = 0; i < n; i++)
        all += mpl_op_work(g, run[i]);
    for (mpl_op op = 0; op < g->n_ops; op++)
        all -= mpl_op_work(g, op);
    return all;
}

TEST(any_run_gives_the_same_bits)
{
    for (size_t i = 0; i < sizeof specs / sizeof *specs; i++) {
        mpl_graph *g, *made = NULL;
        uint64_t peak = 0;
        char *want, *got;
        mpl_op *run;
        mpl_rng rng = mpl_rng_of(i);

        g = zoo_graph(ctx, specs[i]);
        want = outputs(ctx, g);
        run = malloc(3 * (size_t)g->n_ops * sizeof *run);
        for (int round = 0; round < 6; round++) {
            mpl_problem_options options = mpl_problem_options_default();
            mpl_rerun_facts facts;
            uint32_t n = random_run(g, &rng, run, 3 * g->n_ops), trimmed = n;

            if (round % 2 != 0) {
                assert_ok(ctx, mpl_rerun_trim(ctx, g, &trimmed, run));
                assert_true(trimmed <= n && trimmed >= g->n_ops);
            }
            assert_ok(ctx, mpl_rerun(ctx, g, trimmed, run, &made, &facts));
            assert_int_equal(made->n_ops, trimmed);
            assert_int_equal(facts.extra_work, told_work(g, trimmed, run));
            assert_ok(ctx, mpl_rerun_peak(ctx, g, trimmed, run, &options, &peak, NULL));
            assert_true(peak > 0);
            if (round % 3 == 2) { /* repeats removed, the budget kept */
                uint64_t work = facts.extra_work, before = peak;

                mpl_graph_free(ctx, made);
                assert_ok(ctx, mpl_rerun_thin(ctx, g, &options, before, &trimmed, run));
                assert_ok(ctx, mpl_rerun_peak(ctx, g, trimmed, run, &options, &peak, NULL));
                assert_ok(ctx, mpl_rerun(ctx, g, trimmed, run, &made, &facts));
                assert_true(peak <= before && facts.extra_work < work);
            }
            got = outputs(ctx, made);
            assert_int_equal(output_bytes(made), output_bytes(g));
            if (memcmp(want, got, output_bytes(g)) != 0)
                fail_msg("%s: run %d gives other outputs", specs[i], round);
            mpl_free(ctx, got);
            mpl_graph_free(ctx, made);
            made = NULL;
        }
        free(run);
        mpl_free(ctx, want);
        mpl_graph_free(ctx, g);
    }
}

/* Segments at the least peak and at budgets: within them, no operation runs three times, the same
 * bits. */
TEST(segments_give_the_same_bits)
{
    for (size_t i = 0; i < sizeof specs / sizeof *specs; i++) {
        mpl_problem_options options = mpl_problem_options_default();
        mpl_graph *g, *made = NULL;
        uint64_t before, least = UINT64_MAX;
        char *want, *got;

        g = zoo_graph(ctx, specs[i]);
        want = outputs(ctx, g);
        for (int k = 0; k < 3; k++) {
            uint32_t n, *times = calloc(g->n_ops, sizeof *times);
            owned_memory mpl_op *run = NULL;
            mpl_rerun_facts facts;
            uint64_t peak = 0, budget;

            if (k == 0) {
                run = malloc(g->n_ops * sizeof *run);
                for (n = 0; n < g->n_ops; n++)
                    run[n] = n;
                assert_ok(ctx, mpl_rerun_peak(ctx, g, n, run, &options, &before, NULL));
                free(run);
            }
            budget = k == 0 ? UINT64_MAX : least + (before - least) * (uint64_t)(k - 1) / 2;
            assert_ok(ctx, segments(ctx, g, &options, budget, &n, &run));
            for (uint32_t r = 0; r < n; r++)
                if (++times[run[r]] > 2 && mpl_op_work(g, run[r]) > 0)
                    fail_msg("%s: '%s' runs three times", specs[i], g->op_name[run[r]]);
            assert_ok(ctx, mpl_rerun_peak(ctx, g, n, run, &options, &peak, &facts));
            assert_true(peak <= budget && peak <= before && facts.extra_work <= facts.forward_work);
            least = mpl_min_u64(least, peak);
            assert_ok(ctx, mpl_rerun(ctx, g, n, run, &made, NULL));
            got = outputs(ctx, made);
            assert_int_equal(output_bytes(made), output_bytes(g));
            assert_memory_equal(want, got, output_bytes(g));
            mpl_free(ctx, got);
            free(times);
            mpl_graph_free(ctx, made);
            made = NULL;
        }
        mpl_free(ctx, want);
        mpl_graph_free(ctx, g);
    }
}

/* n hidden layers of equal size, one unit per result. With segments repeated once, B units suffice
 * for n layers if the i-th segment from the front has B - i of them: B (B + 1) / 2 in all, plus the
 * memory of the gradients. */
TEST(chains_need_the_root)
{
    enum { UNIT = 64 * 4 };

    for (uint32_t n = 4; n <= 128; n *= 2) {
        mpl_problem_options options = mpl_problem_options_default();
        owned_graph *g;
        char spec[100];
        uint64_t peak, units = 0;
        uint32_t n_run;
        owned_memory mpl_op *run = NULL;

        snprintf(spec, sizeof spec,
                 "mlp:batch=4,layers=%u,input=16,hidden=16,classes=16,mode=train", n);
        g = zoo_graph(ctx, spec);
        assert_ok(ctx, segments(ctx, g, &options, UINT64_MAX, &n_run, &run));
        assert_ok(ctx, mpl_rerun_peak(ctx, g, n_run, run, &options, &peak, NULL));
        while (units * (units + 1) / 2 < n)
            units++;
        if (peak > (units + 3) * UNIT)
            fail_msg("%u layers: %" PRIu64 " units, where %" PRIu64 " and 3 are enough", n,
                     peak / UNIT, units);
    }
}

/* Invalid runs. */
TEST(bad_runs_are_refused)
{
    mpl_graph *g, *made = NULL;
    mpl_op *run;
    uint32_t n;
    uint8_t *forward;

    g = zoo_graph(ctx, "mnist_conv:batch=2,image=8,mode=train,update=adam");
    n = g->n_ops;
    run = malloc((n + 1) * sizeof *run);
    count_up(n, run);
    /* one is missing */
    assert_status(ctx, mpl_rerun(ctx, g, n - 1, run, &made, NULL), MPL_EINPUT);
    run[0] = 1, run[1] = 0;
    /* reads a value not made yet */
    assert_status(ctx, mpl_rerun(ctx, g, n, run, &made, NULL), MPL_EINPUT);
    run[0] = 0, run[1] = 1, run[n] = n - 1;
    /* an update, twice */
    assert_status(ctx, mpl_rerun(ctx, g, n + 1, run, &made, NULL), MPL_EINPUT);
    run[n] = 0;
    /* after the update of its weight */
    assert_status(ctx, mpl_rerun(ctx, g, n + 1, run, &made, NULL), MPL_EINPUT);
    free(run);
    mpl_graph_free(ctx, g);
    g = zoo_graph(ctx, "mnist_conv:batch=2,image=8");
    forward = calloc(1, g->n_ops);
    assert_status(ctx, mpl_find_forward(ctx, g, forward), MPL_EINPUT);
    free(forward);
    mpl_graph_free(ctx, g);
}

/* Work by hand: 2 per pair of elements, bytes for operations other than products, nothing for a
 * view. */
TEST(work_is_counted)
{
    static const struct {
        const char *op;
        uint64_t work;
    } rows[] = ROW({"conv", 2 * 32 * 64 * 2 * 25},     /* each of 2*32*8*8 results: 25 pairs */
                   {"conv.relu", 2 * 4 * 2 * 32 * 64}, /* read and written */
                   {"flat", 0}, {"fc1", 2 * 2 * 1024 * 512});
    owned_graph *g = zoo_graph(ctx, "mnist_conv:batch=2,image=8");

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        mpl_value v = mpl_graph_find(g, rows[i].op);

        assert_true(v != MPL_NONE);
        assert_int_equal(mpl_op_work(g, g->value_op[v]), rows[i].work);
    }
}

/* The k-th allocation fails, for every k. */
TEST(memory_may_run_out)
{
    mpl_problem_options options = mpl_problem_options_default();
    mpl_status st = MPL_EMEM;
    owned_graph *g =
        zoo_graph(ctx, "mlp:batch=2,layers=2,input=4,hidden=4,classes=3,mode=train,update=sgd");

    for (int64_t k = 0; st == MPL_EMEM; k = k < 300 ? k + 1 : k * 2) {
        int64_t live = ctx->n_live;
        mpl_graph *made = NULL;
        mpl_op *run = NULL;
        uint32_t n;

        ctx->fail_after = ctx->n_allocs + k;
        st = segments(ctx, g, &options, UINT64_MAX, &n, &run);
        if (st == MPL_OK)
            st = mpl_rerun_thin(ctx, g, &options, UINT64_MAX, &n, run);
        if (st == MPL_OK)
            st = mpl_rerun(ctx, g, n, run, &made, NULL);
        mpl_free(ctx, run);
        mpl_graph_free(ctx, made);
        assert_int_equal(ctx->n_live, live);
    }
    ctx->fail_after = -1;
    assert_ok(ctx, st);
}

TESTS(any_run_gives_the_same_bits, segments_give_the_same_bits, chains_need_the_root,
      bad_runs_are_refused, work_is_counted, memory_may_run_out)
