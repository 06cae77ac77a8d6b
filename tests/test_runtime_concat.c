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

static result run(mpl_ctx *ctx, const mpl_graph *g, const char *planner, const mpl_problem_options *options,
                  bool checked)
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
        assert_ok(ctx, mpl_planner_run(mpl_planner_find(planner), &call, p, &plan));
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

static void shared_operands_keep_the_outputs(void **state)
{
    static const char *const planners[] = {"greedy_size", "nnc_2019", "exact", "owl", "mxnet", "pool"};
    uint32_t n_saved = 0, n_copied = 0;
    mpl_ctx ctx;

    (void)state;
    mpl_ctx_init(&ctx);
    for (uint64_t seed = 0; seed < 400; seed++) {
        mpl_graph *g = random_rows(&ctx, seed);
        result alone = run(&ctx, g, NULL, NULL, false), by[3] = {{0}};

        for (int concat = MPL_CONCAT_AUTO; concat <= MPL_CONCAT_COPY; concat++) {
            mpl_problem_options o = mpl_problem_options_default();

            o.concat = (mpl_concat)concat;
            o.pin_outputs = seed % 4 != 1;
            o.parallel = seed % 5 == 2 && seed % 6 < 3;
            by[concat] = run(&ctx, g, planners[seed % 6], &o, seed % 2 == 0 && !o.parallel);
            if (by[concat].hash != alone.hash)
                fail_msg("seed %" PRIu64 ", concat %d, %s: outputs differ", seed, concat, planners[seed % 6]);
        }
        assert_true(seed % 5 == 2 || by[MPL_CONCAT_AUTO].bound <= by[MPL_CONCAT_COPY].bound);
        assert_true(by[MPL_CONCAT_AUTO].copied <= by[MPL_CONCAT_COPY].copied);
        assert_true(by[MPL_CONCAT_SHARE].copied <= by[MPL_CONCAT_AUTO].copied);
        n_saved += by[MPL_CONCAT_AUTO].copied < by[MPL_CONCAT_COPY].copied;
        n_copied += by[MPL_CONCAT_COPY].copied > 0;
        mpl_graph_free(&ctx, g);
    }
    assert_true(n_saved > 100 && n_copied > n_saved);
    assert_int_equal(ctx.n_live, 0);
}

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
        cmocka_unit_test(zoo_copies_little),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
