/* Recomputation of graphs with loops and branches, each one operation to the methods: within the
 * budget, the same bits, the work that brute force over all staged runs finds. Fault: a capture
 * that a repeat does not read again; bytes of a loop counted twice or not at all; work of its
 * rounds left out; a budget exceeded. */
#include "tests/runtime/bound_graph.h"
#include "tests/recompute/random_loops.h"
#include "tests/recompute/all_runs.h"

#include "graphs/orders/work.h"
#include "planners/recompute/recompute.h"
#include "planners/verify/verify.h"

static mpl_status recompute(mpl_ctx *ctx, const mpl_graph *g, const mpl_problem_options *options,
                            const char *method, const char *loops, uint64_t budget,
                            mpl_graph **made, mpl_recompute_found *found)
{
    mpl_recompute_task task = {.ctx = ctx, .g = g, .options = options, .budget = budget};
    mpl_status st;

    task.loops = loops != NULL ? mpl_recompute_find(loops) : NULL;
    st = mpl_recompute(mpl_recompute_find(method), &task, made);
    *found = task.found;
    return st;
}

/* Adds up the work of what runs. */
static const mpl_backend *counted;
static uint64_t work_done;

static mpl_status count_op(mpl_device *dev, mpl_prepared *prepared, const mpl_op_call *call)
{
    work_done += mpl_op_work(call->graph, call->op);
    return counted->run_op(dev, prepared, call);
}

/* Outputs of the second of two planned runs. */
static char *outputs(mpl_ctx *ctx, const mpl_graph *g, bool parallel)
{
    mpl_problem_options options = mpl_problem_options_default();
    mpl_backend counting = *(counted = mpl_backend_find("ref"));
    bound b;
    char *out;

    counting.run_op = count_op;
    work_done = 0;
    options.parallel = parallel;
    bind_device(ctx, &counting, g, "given", &(mpl_device_options){.n_threads = 1}, &b);
    bind_problem(&b, &options, "greedy_size");
    assert_ok(ctx, mpl_verify_places(ctx, g, b.map, b.p, b.plan));
    bind_exec(&b, &(mpl_exec_options){.weight_seed = 1, .iterate = true, .checked = !parallel}, 7);
    for (int i = 0; i < 2; i++)
        assert_ok(ctx, mpl_exec_run(b.exec, NULL));
    out = outputs_of(ctx, g, b.exec);
    unbind(&b);
    return out;
}

/* *more: work that the new graph does besides. */
static void check_bits(mpl_ctx *ctx, const char *what, const mpl_graph *g, const mpl_graph *made,
                       uint64_t *more)
{
    for (int parallel = 0; parallel < 2; parallel++) {
        char *want = outputs(ctx, g, parallel != 0), *got;
        uint64_t before = work_done;

        got = outputs(ctx, made, parallel != 0);
        *more = (work_done - before) / 2;
        if (memcmp(want, got, output_bytes(g)) != 0)
            fail_msg("%s: outputs differ", what);
        mpl_free_each(ctx, want, got);
    }
}

/* ---- against all staged runs ---- */

enum { UNITS = 5 };

/* UNITS operations over earlier values, a loop or a branch in the middle, which captures one; the
 * output reads the first value, so that it is long alive. */
static mpl_graph *small_graph(mpl_ctx *ctx, uint64_t seed)
{
    static const char *const lone[] = {"tanh", "sigmoid", "exp"};
    maker m = {.n = 0};
    mpl_graph *g = NULL;
    uint32_t last = 0;

    m.rng = mpl_rng_of(seed);
    say(&m, "graph g\ninput v0 f32 [16]\nweight index i64 [] = splat 1\n");
    for (uint32_t i = 1; i < UNITS; i++) {
        uint32_t a = below(&m, i), b = below(&m, i);

        if (i == 2 && seed % 2 == 0)
            say(&m,
                "block b\nparam r i64 []\nparam h f32 [16]\nt = mul(h, v%u)\ny = %s(t)\n"
                "yield _, y\nv%u = while b(_, _, v%u) carried=1 trips=%u\n",
                b, lone[below(&m, 2)], i, a, 2 + below(&m, 4));
        else if (i == 2)
            say(&m,
                "block b\nt = mul(v%u, v%u)\ny = tanh(t)\nyield y\nblock c\nz = sigmoid(v%u)\n"
                "yield z\nv%u = case b, c(index, v0)\n",
                a, b, b, i);
        else if (below(&m, 2))
            say(&m, "v%u = add(v%u, v%u)\n", i, a, b);
        else
            say(&m, "v%u = %s(v%u)\n", i, lone[below(&m, 2)], a);
        last = i;
    }
    say(&m, "out = mul(v%u, v1)\noutput out\n", last);
    assert_ok(ctx, mpl_text_read_memory(ctx, "net", m.text, m.n, &g));
    return g;
}

static uint32_t n_asked, n_found, n_least;

static void check_small(mpl_ctx *ctx, uint64_t seed)
{
    static listed l;
    owned_graph *g = small_graph(ctx, seed);
    mpl_problem_options options = mpl_problem_options_default();
    uint64_t lowest = UINT64_MAX;

    options.in_place = seed % 3 == 0;
    options.pin_inputs = seed % 4 != 0;
    options.pin_outputs = seed % 5 != 0;
    list_runs(ctx, g, &options, &l);
    for (uint32_t i = 0; i < l.n; i++)
        lowest = mpl_min_u64(lowest, l.peak[i]);
    for (uint64_t budget = lowest > 64 ? lowest - 64 : 0; budget <= l.peak[0]; budget += 64) {
        mpl_recompute_found found;
        owned_graph *made = NULL;
        uint64_t want = least_work(&l, budget), peak, more;
        mpl_status st = recompute(ctx, g, &options, "budget", NULL, budget, &made, &found);
        char what[60];

        snprintf(what, sizeof what, "seed %" PRIu64 ", %" PRIu64 " bytes", seed, budget);
        n_asked += want != UINT64_MAX;
        if (st == MPL_ELIMIT)
            continue;
        assert_ok(ctx, st);
        if (found.peak_bytes > budget || found.facts.extra_work < want)
            fail_msg("%s: %" PRIu64 " bytes, work %" PRIu64 ", least %" PRIu64, what,
                     found.peak_bytes, found.facts.extra_work, want);
        assert_ok(ctx, mpl_given_peak(ctx, made, &options, &peak));
        assert_int_equal(peak, found.peak_bytes);
        n_found++;
        n_least += found.facts.extra_work == want;
        if (found.facts.n_again > 0) {
            check_bits(ctx, what, g, made, &more);
            if (seed % 2 == 0) /* of a branch, the work of all is counted */
                assert_int_equal(found.facts.extra_work, more);
        }
    }
}

TEST(no_run_does_less)
{
    for (uint64_t seed = 0; seed < draws(60); seed++)
        check_small(ctx, seed);
    assert_true((n_asked - n_found) * 20 <= n_asked + 20); /* all but a few, one of few */
    assert_true((n_found - n_least) * 20 <= n_found + 20);
}

/* ---- training ---- */

static uint32_t n_within, n_both;

static void check_training(mpl_ctx *ctx, uint32_t seed)
{
    static const char *const methods[] = {"budget", "round", "pebble"}, *const loops[] = {NULL,
                                                                                          "revolve",
                                                                                          "sqrt"};
    mpl_problem_options options = mpl_problem_options_default();
    owned_graph *g = random_loops(ctx, seed);
    mpl_graph *made = NULL;
    const char *method = methods[seed % 3], *tape = loops[seed / 3 % 3];
    mpl_recompute_found found;
    uint64_t before, budget, more;
    char what[60];
    mpl_status st;

    assert_ok(ctx, mpl_given_peak(ctx, g, &options, &before));
    budget = before - before * (1 + seed % 4) / 16;
    snprintf(what, sizeof what, "program %u by %s and %s", seed, method,
             tape != NULL ? tape : "no schedule");
    st = recompute(ctx, g, &options, method, tape, budget, &made, &found);
    if (st == MPL_EINPUT) /* no loss needs a loop */
        assert_true(tape != NULL && strstr(ctx->message, "no loop of it has a tape") != NULL);
    else if (st != MPL_ELIMIT) {
        assert_ok(ctx, st);
        assert_true(found.peak_bytes <= budget && found.facts.n_again > 0);
        assert_true(found.claim == MPL_RECOMPUTE_FEASIBLE && !found.has_bound);
        check_bits(ctx, what, g, made, &more);
        n_within++;
        n_both += found.n_loops > 0;
    }
    mpl_graph_free(ctx, made);
}

TEST(training_within_a_budget)
{
    uint32_t n = draws(20);

    for (uint32_t seed = 0; seed < n; seed++)
        check_training(ctx, seed);
    assert_true(often(n_within * 6 > n && (n_both > 0 || n < 20)));
}

TEST(memory_may_run_out)
{
    mpl_graph *g = small_graph(ctx, 2);
    mpl_problem_options options = mpl_problem_options_default();

    options.in_place = false;
    EACH_ALLOCATION_FAILS (ctx, st) {
        mpl_recompute_found found;
        mpl_graph *made = NULL;

        st = recompute(ctx, g, &options, "budget", NULL, 128, &made, &found);
        mpl_graph_free(ctx, made);
    }
    mpl_graph_free(ctx, g);
}

TESTS(no_run_does_less, training_within_a_budget, memory_may_run_out)
