/* Operands of concats inside their results, pieces inside what they are pieces of: the same outputs as with nothing shared,
 * fewer bytes moved, and no more memory than copying needs. */
#include "tests/test.h"

#include "graphs/base/rng.h"
#include "graphs/source.h"
#include "planners/planner.h"
#include "planners/verify.h"
#include "runtime/exec.h"

static const mpl_shape row = {2, {1, 16}};

/* Values of [1, 16 k] floats: made element by element, put together, taken apart along axis 1. */
static mpl_graph *random_rows(mpl_ctx *ctx, uint64_t seed)
{
    mpl_graph *g = NULL;
    mpl_value v[64];
    uint32_t n = 0;
    mpl_rng rng;
    char name[3][16];

    mpl_rng_init(&rng, seed);
    assert_ok(ctx, mpl_graph_new(ctx, "rows", &g));
    assert_ok(ctx, mpl_graph_add_value(ctx, g, "x", MPL_INPUT, MPL_TYPE_f32, &row, &v[n++]));
    for (uint32_t i = 0; i < 6 + seed % 14; i++) {
        uint32_t what = (uint32_t)mpl_rng_below(&rng, 6), a = (uint32_t)mpl_rng_below(&rng, n),
                 b = (uint32_t)mpl_rng_below(&rng, n), c = (uint32_t)mpl_rng_below(&rng, n);
        int64_t width = g->value_shape[v[a]].dim[1];
        const char *out[] = {name[0], name[1]};

        for (int k = 0; k < 2; k++)
            snprintf(name[k], sizeof name[k], "v%u_%d", i, k);
        if (what < 2 && width + g->value_shape[v[b]].dim[1] + g->value_shape[v[c]].dim[1] <= 512) {
            assert_ok(ctx, mpl_graph_add_op(ctx, g, MPL_OP_concat, name[0], 2 + what,
                                            (mpl_value[]){v[a], v[b], v[c]}, 1,
                                            (mpl_attr[]){MPL_INT(axis, 1)}, 1, out, &v[n]));
            n++;
        } else if (what == 2 && width > 16) {
            const int64_t cut = 16 * (1 + (int64_t)mpl_rng_below(&rng, (uint64_t)width / 16 - 1));
            const int64_t sizes[] = {cut, width - cut};

            assert_ok(ctx, mpl_graph_add_op(ctx, g, MPL_OP_split, name[0], 1, &v[a], 2,
                                            (mpl_attr[]){MPL_INT(axis, 1), MPL_INTS(split, 2, sizes)}, 2, out,
                                            &v[n]));
            n += 2;
        } else if (what == 3) {
            const int64_t from = 8 * (int64_t)mpl_rng_below(&rng, (uint64_t)width / 8 - 1), to = from + 16;
            const int64_t one = 1;

            assert_ok(ctx, mpl_graph_add_op(ctx, g, MPL_OP_slice, name[0], 1, &v[a], 3,
                                            (mpl_attr[]){MPL_INTS(starts, 1, &from), MPL_INTS(ends, 1, &to),
                                                         MPL_INTS(axes, 1, &one)},
                                            1, out, &v[n]));
            n++;
        } else if (what == 4 && width == g->value_shape[v[b]].dim[1]) {
            assert_ok(ctx, mpl_graph_add_op(ctx, g, MPL_OP_add, name[0], 2, (mpl_value[]){v[a], v[b]}, 0,
                                            NULL, 1, out, &v[n]));
            n++;
        } else {
            assert_ok(ctx, mpl_graph_add_op(ctx, g, what % 2 == 0 ? MPL_OP_tanh : MPL_OP_softplus, name[0], 1,
                                            &v[a], 0, NULL, 1, out, &v[n]));
            n++;
        }
    }
    assert_ok(ctx, mpl_graph_add_output(ctx, g, v[n - 1]));
    if (seed % 3 == 0 && n > 4)
        assert_ok(ctx, mpl_graph_add_output(ctx, g, v[n / 2]));
    assert_ok(ctx, mpl_graph_finish(ctx, g));
    return g;
}

typedef struct result {
    uint64_t hash, copied, bound, planned;
} result;

static result run(mpl_ctx *ctx, const mpl_graph *g, const mpl_planner *planner,
                  const mpl_problem_options *options, bool checked)
{
    const mpl_backend *backend = mpl_backend_find("ref");
    result r = {.hash = MPL_HASH_SEED};
    mpl_exec_options how = {.checked = checked, .weight_seed = 5};
    mpl_device *dev = NULL;
    mpl_problem *p = NULL;
    mpl_value_map *map = NULL;
    mpl_plan *plan = NULL;
    mpl_exec *exec = NULL;
    mpl_exec_facts facts;
    mpl_run call;
    mpl_op order[64];
    float data[512];

    assert_ok(ctx, backend->open(ctx, &(mpl_device_options){.n_threads = 1}, &dev));
    assert_ok(ctx, mpl_order_of(ctx, g, mpl_order_find("given"), order));
    if (planner != NULL) {
        assert_ok(ctx, mpl_problem_from_graph(ctx, g, order, options, &p, &map));
        mpl_run_init(&call, ctx);
        call.budget_ticks = 2000000;
        assert_ok(ctx, mpl_planner_run(planner, &call, p, &plan));
        assert_ok(ctx, mpl_lower_bound(ctx, p, 0, &r.bound, NULL));
        if (options->parallel)
            assert_ok(ctx, mpl_verify_graph(ctx, g, map, p, plan));
        r.planned = plan->pool_bytes[0];
    }
    assert_ok(ctx, mpl_exec_new(ctx, backend, dev, g, order, p, map, plan, &how, &exec));
    assert_ok(ctx, mpl_exec_make_input(ctx, g, 0, 3, data));
    assert_ok(ctx, mpl_exec_set_input(exec, 0, data));
    for (uint32_t round = 0; round < (options != NULL && options->parallel ? 6u : 2u); round++) {
        if (options != NULL && options->parallel && round > 1) {
            assert_ok(ctx, mpl_order_random(ctx, g, round, order));
            assert_ok(ctx, mpl_exec_set_order(exec, order));
        }
        assert_ok(ctx, mpl_exec_run(exec, NULL));
        for (uint32_t i = 0; i < g->n_outputs; i++) {
            assert_ok(ctx, mpl_exec_output(exec, i, data));
            if (round == 0)
                r.hash = mpl_hash(r.hash, data, g->value_bytes[g->output[i]]);
        }
    }
    assert_ok(ctx, mpl_exec_facts_get(exec, &facts));
    r.copied = facts.copied_bytes;
    mpl_exec_free(ctx, exec);
    mpl_plan_free(ctx, plan);
    mpl_value_map_free(ctx, map);
    mpl_problem_free(ctx, p);
    backend->close(dev);
    return r;
}

/* The planners take turns. */
static const mpl_planner *planner_of(uint64_t seed, bool parallel)
{
    uint32_t n = 0;

    while (mpl_planners[n] != NULL)
        n++;
    for (uint64_t i = seed % n;; i = (i + 1) % n) {
        const mpl_planner *one = mpl_planners[i];

        if (one->plan != NULL && (one->traits & MPL_SPREADS) == 0 &&
            (!parallel || (one->traits & MPL_SERIAL_ONLY) == 0))
            return one;
    }
}

static void shared_operands_keep_the_outputs(void **state)
{
    uint32_t n_saved = 0, n_copied = 0, n_lower = 0;
    mpl_ctx ctx;

    (void)state;
    mpl_ctx_init(&ctx);
    for (uint64_t seed = 0; seed < 400; seed++) {
        mpl_graph *g = random_rows(&ctx, seed);
        bool parallel = seed % 5 == 2 && seed % 6 < 3;
        const mpl_planner *planner = planner_of(seed / 3, parallel);
        result alone = run(&ctx, g, NULL, NULL, false), by[3] = {{0}};

        for (int concat = MPL_CONCAT_AUTO; concat <= MPL_CONCAT_COPY; concat++) {
            mpl_problem_options o = mpl_problem_options_default();

            o.concat = (mpl_concat)concat;
            o.pin_outputs = seed % 4 != 1;
            o.in_place = seed % 7 != 3;
            o.parallel = parallel;
            by[concat] = run(&ctx, g, planner, &o, seed % 2 == 0 && !parallel);
            if (by[concat].hash != alone.hash)
                fail_msg("seed %" PRIu64 ", concat %d, %s: outputs differ", seed, concat, planner->name);
        }
        assert_true(parallel || (by[MPL_CONCAT_AUTO].bound <= by[MPL_CONCAT_COPY].bound &&
                                 by[MPL_CONCAT_AUTO].bound <= by[MPL_CONCAT_SHARE].bound));
        assert_true(by[MPL_CONCAT_AUTO].copied <= by[MPL_CONCAT_COPY].copied);
        assert_true(by[MPL_CONCAT_SHARE].copied <= by[MPL_CONCAT_AUTO].copied);
        n_saved += by[MPL_CONCAT_AUTO].copied < by[MPL_CONCAT_COPY].copied;
        n_copied += by[MPL_CONCAT_COPY].copied > 0;
        n_lower += by[MPL_CONCAT_AUTO].bound < by[MPL_CONCAT_COPY].bound;
        mpl_graph_free(&ctx, g);
    }
    print_message("fewer bytes are copied in %u, less memory is needed in %u of %u graphs that copy\n",
                  n_saved, n_lower, n_copied);
    assert_true(n_saved > 100 && n_copied > n_saved && n_lower > 30);
    assert_int_equal(ctx.n_live, 0);
}

/* ---- parts that come and go ------------------------------------------------------------------------------------------ */

static const struct {
    const char *what, *text;
    uint64_t parts, whole; /* least bytes, without in-place pairs */
} texts[] = {
    {"a piece that nobody needs any more makes room",
     "graph g\ninput x f32 [1,64]\na = softplus(x)\np, q = split(a) axis=1 split=[32,32]\nr = softplus(p)\n"
     "t = softplus(r)\nu = add(t, q)\noutput u\n",
     384, 512},
    {"where the last operand will be there is room until then",
     "graph g\ninput x f32 [1,32]\ny = softplus(x)\nw = softplus(y)\nv = softplus(w)\nz = softplus(v)\n"
     "c = concat(y, z) axis=1\nu = softplus(c)\noutput u\n",
     384, 512},
    {"what lies behind a slice ends at once",
     "graph g\ninput x f32 [1,64]\na = softplus(x)\ns = slice(a) starts=[0] ends=[16] axes=[1]\n"
     "b = softplus(x)\nd = reduce_sum(b) axes=[1] keepdims=1\nu = add(s, d)\noutput u\n",
     324, 516},
};

/* Exact figures of parts, and of wholes: what planners see that know no families. */
static void parts_make_room(void **state)
{
    mpl_ctx ctx;

    (void)state;
    mpl_ctx_init(&ctx);
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        mpl_problem_options o = mpl_problem_options_default();
        mpl_graph *g = NULL;
        result alone, exact, greedy, pool;

        o.in_place = false;
        o.concat = MPL_CONCAT_SHARE;
        assert_ok(&ctx, mpl_text_read_memory(&ctx, "parts", texts[i].text, strlen(texts[i].text), &g));
        alone = run(&ctx, g, NULL, NULL, false);
        exact = run(&ctx, g, mpl_planner_find("exact"), &o, true);
        greedy = run(&ctx, g, mpl_planner_find("greedy_size"), &o, true);
        pool = run(&ctx, g, mpl_planner_find("mxnet"), &o, true);
        if (exact.planned != texts[i].parts || greedy.planned != texts[i].parts ||
            pool.planned < texts[i].whole || exact.bound != texts[i].parts)
            fail_msg("%s: exact %" PRIu64 ", greedy_size %" PRIu64 ", bound %" PRIu64 ", mxnet %" PRIu64,
                     texts[i].what, exact.planned, greedy.planned, exact.bound, pool.planned);
        assert_int_equal(exact.hash, alone.hash);
        assert_int_equal(greedy.hash, alone.hash);
        assert_int_equal(pool.hash, alone.hash);
        assert_int_equal(exact.copied, 0);
        mpl_graph_free(&ctx, g);
    }
    assert_int_equal(ctx.n_live, 0);
}

/* One run under --checked of a plan for a problem that may be wrong: how it ends, and whether the outputs are `hash`. */
static mpl_status run_checked(mpl_ctx *ctx, const mpl_graph *g, const mpl_op *order, const mpl_problem *p,
                              const mpl_value_map *map, const mpl_plan *plan, uint64_t hash, bool *equal)
{
    const mpl_backend *backend = mpl_backend_find("ref");
    mpl_exec_options how = {.checked = true, .weight_seed = 5};
    uint64_t got = MPL_HASH_SEED;
    mpl_device *dev = NULL;
    mpl_exec *exec = NULL;
    float data[512];
    mpl_status st;

    assert_ok(ctx, backend->open(ctx, &(mpl_device_options){.n_threads = 1}, &dev));
    assert_ok(ctx, mpl_exec_new(ctx, backend, dev, g, order, p, map, plan, &how, &exec));
    assert_ok(ctx, mpl_exec_make_input(ctx, g, 0, 3, data));
    assert_ok(ctx, mpl_exec_set_input(exec, 0, data));
    st = mpl_exec_run(exec, NULL);
    for (uint32_t i = 0; st == MPL_OK && i < g->n_outputs; i++) {
        assert_ok(ctx, mpl_exec_output(exec, i, data));
        got = mpl_hash(got, data, g->value_bytes[g->output[i]]);
    }
    *equal = got == hash;
    mpl_exec_free(ctx, exec);
    backend->close(dev);
    return st;
}

/* A part that is said to end a step too early: where its bytes are then given to others, the run says so. */
static void short_lives_are_caught(void **state)
{
    mpl_problem_options o = mpl_problem_options_default();
    uint32_t n_caught = 0, n_tried = 0;
    mpl_ctx ctx;

    (void)state;
    mpl_ctx_init(&ctx);
    o.concat = MPL_CONCAT_SHARE;
    o.in_place = false;
    for (uint64_t seed = 0; seed < 120; seed++) {
        mpl_graph *g = random_rows(&ctx, seed);
        uint64_t hash = run(&ctx, g, NULL, NULL, false).hash;
        mpl_value_map *map = NULL;
        mpl_problem *p = NULL;
        mpl_op order[64];

        assert_ok(&ctx, mpl_order_of(&ctx, g, mpl_order_find("given"), order));
        assert_ok(&ctx, mpl_problem_from_graph(&ctx, g, order, &o, &p, &map));
        for (mpl_buffer b = 0; p->inside != NULL && b < p->n; b++) {
            mpl_plan *plan = NULL;
            bool equal = false;
            mpl_run call;
            mpl_status st;

            if (p->death[b] - p->birth[b] < 2)
                continue;
            p->death[b]--;
            mpl_run_init(&call, &ctx);
            assert_ok(&ctx, mpl_planner_run(mpl_planner_find("greedy_size"), &call, p, &plan));
            st = run_checked(&ctx, g, order, p, map, plan, hash, &equal);
            assert_true(st == MPL_EINVALID || (st == MPL_OK && equal));
            n_caught += st == MPL_EINVALID;
            n_tried++;
            p->death[b]++;
            mpl_plan_free(&ctx, plan);
        }
        mpl_value_map_free(&ctx, map);
        mpl_problem_free(&ctx, p);
        mpl_graph_free(&ctx, g);
    }
    print_message("%u of %u lives that are too short let others in, which is seen\n", n_caught, n_tried);
    assert_true(n_caught > 50);
    assert_int_equal(ctx.n_live, 0);
}

/* What orders that are searched for count is what planners are given, part by part; and no order has less than what is proved. */
static void orders_count_parts(void **state)
{
    uint32_t n_families = 0, n_proved = 0;
    mpl_ctx ctx;

    (void)state;
    mpl_ctx_init(&ctx);
    for (uint64_t seed = 0; seed < 200; seed++) {
        mpl_problem_options o = mpl_problem_options_default();
        mpl_graph *g = random_rows(&ctx, seed);
        mpl_value_map *map = NULL;
        mpl_problem *p = NULL;
        mpl_order_run found;
        mpl_op order[64];
        uint64_t peak;

        o.concat = MPL_CONCAT_COPY;
        o.in_place = seed % 2 == 0;
        o.pin_outputs = seed % 3 != 0;
        mpl_order_run_init(&found, &ctx);
        found.options = &o;
        assert_ok(&ctx, mpl_order_make(&found, mpl_order_find("least_peak"), g, order));
        for (uint64_t other = 0; other < 5; other++) {
            assert_ok(&ctx, mpl_problem_from_graph(&ctx, g, order, &o, &p, &map));
            assert_ok(&ctx, mpl_peak_live(&ctx, p, 0, &peak, NULL, NULL));
            if (other == 0)
                assert_int_equal(found.live_bytes, peak);
            assert_true(found.bound_bytes <= peak);
            n_families += p->inside != NULL;
            mpl_value_map_free(&ctx, map), map = NULL;
            mpl_problem_free(&ctx, p), p = NULL;
            assert_ok(&ctx, mpl_order_random(&ctx, g, other, order));
        }
        n_proved += found.bound_bytes == found.live_bytes;
        mpl_graph_free(&ctx, g);
    }
    assert_true(n_families > 100 && n_proved > 100);
    assert_int_equal(ctx.n_live, 0);
}

/* ---- the zoo ----------------------------------------------------------------------------------------------------------- */

/* Bytes that concats copy, and the bound, of a zoo network. */
static void look(mpl_ctx *ctx, const char *name, mpl_concat concat, uint64_t *copied, uint64_t *bound)
{
    mpl_problem_options o = mpl_problem_options_default();
    mpl_graph *g = NULL;
    mpl_problem *p = NULL;
    mpl_value_map *map = NULL;
    mpl_op *order = NULL;

    o.concat = concat;
    assert_ok(ctx, mpl_zoo_build(ctx, name, &g));
    assert_ok(ctx, mpl_new(ctx, order, g->n_ops));
    assert_ok(ctx, mpl_order_of(ctx, g, mpl_order_find("given"), order));
    assert_ok(ctx, mpl_problem_from_graph(ctx, g, order, &o, &p, &map));
    assert_ok(ctx, mpl_lower_bound(ctx, p, 0, bound, NULL));
    *copied = 0;
    for (mpl_op op = 0; op < g->n_ops; op++)
        if (g->op_kind[op] == MPL_OP_concat && !map->op_nothing[op])
            *copied += g->value_bytes[g->op_out[g->op_out_begin[op]]];
    mpl_value_map_free(ctx, map);
    mpl_problem_free(ctx, p);
    mpl_free(ctx, order);
    mpl_graph_free(ctx, g);
}

/* Where concats are what a network is made of, hardly one needs to copy, and the peak stays that of copying. */
static void zoo_copies_little(void **state)
{
    static const char *const names[] = {"densenet121", "densenet201", "inception_v3", "inception_v4"};
    mpl_ctx ctx;

    (void)state;
    mpl_ctx_init(&ctx);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        uint64_t copied[3], bound[3];

        for (int c = MPL_CONCAT_AUTO; c <= MPL_CONCAT_COPY; c++)
            look(&ctx, names[i], (mpl_concat)c, &copied[c], &bound[c]);
        if (bound[MPL_CONCAT_AUTO] > bound[MPL_CONCAT_COPY] || copied[MPL_CONCAT_SHARE] != 0 ||
            bound[MPL_CONCAT_SHARE] > bound[MPL_CONCAT_COPY] || /* operands are there part by part */
            copied[MPL_CONCAT_AUTO] * 100 > copied[MPL_CONCAT_COPY] * 15)
            fail_msg("%s: auto copies %" PRIu64 " of %" PRIu64 " bytes, bound %" PRIu64 " of %" PRIu64,
                     names[i], copied[MPL_CONCAT_AUTO], copied[MPL_CONCAT_COPY], bound[MPL_CONCAT_AUTO],
                     bound[MPL_CONCAT_COPY]);
    }
    assert_int_equal(ctx.n_live, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(shared_operands_keep_the_outputs),
        cmocka_unit_test(parts_make_room),
        cmocka_unit_test(short_lives_are_caught),
        cmocka_unit_test(orders_count_parts),
        cmocka_unit_test(zoo_copies_little),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
