/* Order and placement together: the least arena over every order of small graphs, each placed by the exact planner. */
#include "tests/random_graph.h"

#include "graphs/orders/orders.h"
#include "planners/joint.h"

extern const mpl_planner mpl_planner_exact;

static uint64_t placed(mpl_ctx *ctx, const mpl_graph *g, const mpl_op *order, const mpl_problem_options *o)
{
    mpl_problem *p = NULL;
    mpl_value_map *map = NULL;
    mpl_plan *plan = NULL;
    mpl_run run;
    uint64_t bytes;

    assert_ok(ctx, mpl_problem_from_graph(ctx, g, order, o, &p, &map));
    mpl_run_init(&run, ctx);
    assert_ok(ctx, mpl_planner_run(&mpl_planner_exact, &run, p, &plan));
    assert_int_equal(plan->claim, MPL_OPTIMAL);
    bytes = plan->peak_bytes;
    mpl_plan_free(ctx, plan);
    mpl_problem_free(ctx, p);
    mpl_value_map_free(ctx, map);
    return bytes;
}

typedef struct brute {
    mpl_ctx *ctx;
    const mpl_graph *g;
    const mpl_problem_options *o;
    mpl_op order[16];
    bool done[16];
    uint64_t arena, live, n; /* the least of either; orders */
} brute;

static void try_all(brute *b, uint32_t n)
{
    const mpl_graph *g = b->g;

    if (n == g->n_ops) {
        b->live = mpl_min_u64(b->live, live_peak(b->ctx, g, b->order, b->o));
        b->arena = mpl_min_u64(b->arena, placed(b->ctx, g, b->order, b->o));
        b->n++;
        return;
    }
    for (mpl_op op = 0; op < g->n_ops; op++) {
        bool ready = !b->done[op];

        for (uint32_t i = g->op_in_begin[op]; i < g->op_in_begin[op + 1]; i++)
            ready = ready && (g->value_op[g->op_in[i]] == MPL_NONE || b->done[g->value_op[g->op_in[i]]]);
        if (!ready)
            continue;
        b->done[op] = true;
        b->order[n] = op;
        try_all(b, n + 1);
        b->done[op] = false;
    }
}

static void least_arena_of_all(void **state)
{
    const char *text = getenv("MPL_ORDERS");
    uint64_t n_graphs = text != NULL ? strtoull(text, NULL, 10) : 400, apart = 0, listed = 0;
    mpl_ctx ctx;

    (void)state;
    mpl_ctx_init(&ctx);
    for (uint64_t seed = 0; seed < n_graphs; seed++) {
        mpl_graph *g = random_graph(&ctx, seed, 3 + (uint32_t)(seed % 5), 3 + (uint32_t)(seed / 5 % 4));
        mpl_problem_options o = random_options(seed);
        brute all = {.ctx = &ctx, .g = g, .o = &o, .arena = UINT64_MAX, .live = UINT64_MAX};
        mpl_order_run run;
        mpl_op order[16];

        o.pin_inputs = true;
        try_all(&all, 0);
        mpl_order_run_init(&run, &ctx);
        run.options = &o;
        assert_ok(&ctx, mpl_order_make(&run, &mpl_order_joint, g, order));
        assert_int_equal(run.live_bytes, all.arena);
        assert_int_equal(run.bound_bytes, all.arena);
        assert_int_equal(placed(&ctx, g, order, &o), all.arena);
        apart += all.arena > all.live;
        listed += run.method != NULL && strcmp(run.method, "orders") == 0;
        mpl_graph_free(&ctx, g);
    }
    print_message("%" PRIu64 " graphs: %" PRIu64 " need more than the least peak, %" PRIu64
                  " took all orders\n",
                  n_graphs, apart, listed);
    assert_true(listed > 0);
    assert_int_equal(ctx.n_live, 0);
}

/* Every order is listed, or one in which no more is alive at once is: the least arena among the listed is that of all. */
static void listed_orders_suffice(void **state)
{
    uint64_t listed = 0, there_are = 0;
    mpl_ctx ctx;

    (void)state;
    mpl_ctx_init(&ctx);
    for (uint64_t seed = 0; seed < 300; seed++) {
        mpl_graph *g = random_graph(&ctx, seed, 3 + (uint32_t)(seed % 5), 3 + (uint32_t)(seed / 5 % 4));
        mpl_problem_options o = random_options(seed);
        brute all = {.ctx = &ctx, .g = g, .o = &o, .arena = UINT64_MAX, .live = UINT64_MAX};
        mpl_order_list *list = NULL;
        mpl_op order[16];
        uint64_t arena = UINT64_MAX, ticks = 0;
        bool found = true, ended = false;

        o.pin_inputs = true;
        try_all(&all, 0);
        for (mpl_op op = 0; op < g->n_ops; op++)
            order[op] = op;
        assert_ok(&ctx, mpl_order_list_new(&ctx, g, &o, order, &list));
        while (found) {
            assert_ok(&ctx,
                      mpl_order_list_next(list, UINT64_MAX / 4, UINT64_MAX, &ticks, order, &found, &ended));
            if (found)
                arena = mpl_min_u64(arena, placed(&ctx, g, order, &o));
            listed += found;
        }
        assert_true(ended);
        assert_int_equal(arena, all.arena);
        there_are += all.n;
        mpl_order_list_free(list);
        mpl_graph_free(&ctx, g);
    }
    print_message("%" PRIu64 " of %" PRIu64 " orders were listed\n", listed, there_are);
    assert_true(listed < there_are);
    assert_int_equal(ctx.n_live, 0);
}

static void survive_lost_memory(void **state)
{
    mpl_ctx ctx;
    mpl_graph *g;
    mpl_status st = MPL_EMEM;

    (void)state;
    mpl_ctx_init(&ctx);
    g = random_graph(&ctx, 3, 6, 4);
    for (int64_t k = 0, live = ctx.n_live; st == MPL_EMEM; k++) {
        mpl_op order[16];

        ctx.n_allocs = 0, ctx.fail_after = k;
        st = mpl_order_joint.make(&ctx, g, order);
        assert_int_equal(ctx.n_live, live);
    }
    assert_ok(&ctx, st);
    mpl_graph_free(&ctx, g);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(least_arena_of_all),
        cmocka_unit_test(listed_orders_suffice),
        cmocka_unit_test(survive_lost_memory),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
