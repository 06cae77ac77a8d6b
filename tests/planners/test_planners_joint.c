/* Joint order and placement: the least arena over every order of small graphs, each placed by the
 * exact planner. */
#include "tests/support/all_orders.h"
#include "tests/support/random_training.h"

#include "graphs/orders/orders.h"
#include "planners/search/joint.h"

extern const mpl_planner mpl_planner_exact;

static uint64_t placed(mpl_ctx *ctx, const mpl_graph *g, const mpl_op *order,
                       const mpl_problem_options *o)
{
    owned_problem *p = NULL;
    owned_map *map = NULL;
    owned_plan *plan = NULL;
    mpl_run run;
    uint64_t bytes;

    assert_ok(ctx, mpl_problem_from_graph(ctx, g, order, o, &p, &map));
    run = mpl_run_default(ctx);
    assert_ok(ctx, mpl_planner_run(&mpl_planner_exact, &run, p, &plan));
    assert_int_equal(plan->claim, MPL_OPTIMAL);
    bytes = plan->peak_bytes;
    return bytes;
}

/* The least of each over all orders. */
typedef struct leasts {
    uint64_t arena, live;
} leasts;

static void judge(all_orders *all)
{
    leasts *least = all->arg;

    least->live = mpl_min_u64(least->live, live_peak(all->ctx, all->g, all->order, all->o));
    least->arena = mpl_min_u64(least->arena, placed(all->ctx, all->g, all->order, all->o));
}

/* Compares joint with all orders of g; false if there are too many. */
static bool check_joint(mpl_ctx *ctx, const mpl_graph *g, const mpl_problem_options *o,
                        uint64_t most, uint64_t *apart, uint64_t *listed)
{
    leasts least = {UINT64_MAX, UINT64_MAX};
    all_orders all = {.ctx = ctx, .g = g, .o = o, .each = judge, .arg = &least, .most = most};
    mpl_order_run run;
    mpl_op order[16];

    assert_true(g->n_ops <= 16);
    visit_orders(&all);
    if (all.n == most)
        return false;
    run = mpl_order_run_default(ctx);
    run.options = o;
    assert_ok(ctx, mpl_order_make(&run, &mpl_order_joint, g, order));
    assert_int_equal(run.live_bytes, least.arena);
    assert_int_equal(run.bound_bytes, least.arena);
    assert_int_equal(placed(ctx, g, order, o), least.arena);
    *apart += least.arena > least.live;
    *listed += run.method != NULL && strcmp(run.method, "orders") == 0;
    return true;
}

TEST(least_arena_of_all)
{
    uint64_t n_graphs = number_asked("MPL_ORDERS", 400), apart = 0, listed = 0;

    for (uint64_t seed = 0; seed < n_graphs; seed++) {
        owned_graph *g =
            random_graph(ctx, seed, 3 + (uint32_t)(seed % 5), 3 + (uint32_t)(seed / 5 % 4));
        mpl_problem_options o = random_options(seed);

        o.pin_inputs = true;
        assert_true(check_joint(ctx, g, &o, UINT64_MAX, &apart, &listed));
    }
    print_message("%" PRIu64 " graphs: %" PRIu64 " need more than the least peak, %" PRIu64
                  " took all orders\n",
                  n_graphs, apart, listed);
    assert_true(listed > 0);
}

/* Graphs that update weights: small ones against all orders, and training graphs of small networks,
 * with proofs. */
TEST(training_graphs)
{
    static const char *const zoo[] =
        ROW("mlp:mode=train,update=sgd", "mlp:batch=3,mode=train,update=adam",
            "mnist_conv:mode=train,update=sgd",
            "lstm:layers=1,steps=1,hidden=16,mode=train,update=sgd");
    uint64_t apart = 0, listed = 0, n = 0;

    for (uint64_t seed = 0; seed < draws(200); seed++) {
        owned_graph *g = seed % 3 == 2 ? random_training(ctx, seed, 1 + (uint32_t)(seed % 2))
                                       : random_update_graph(ctx, seed, 2 + (uint32_t)(seed % 4));
        mpl_problem_options o = random_options(seed);

        o.pin_inputs = true;
        n += check_joint(ctx, g, &o, 400, &apart, &listed);
    }
    print_message("%" PRIu64 " graphs with updates: %" PRIu64
                  " need more than the least peak, %" PRIu64 " took all orders\n",
                  n, apart, listed);
    assert_true(often(n > 150));
    for (size_t i = 0; i < sizeof zoo / sizeof *zoo; i++) {
        mpl_problem_options o = mpl_problem_options_default();
        owned_graph *g = NULL;
        mpl_order_run run;
        mpl_op order[MPL_ORDER_LIST_MOST];

        o.concat = MPL_CONCAT_COPY;
        assert_ok(ctx, mpl_zoo_build(ctx, zoo[i], &g));
        assert_in_range(g->n_ops, 10, MPL_ORDER_LIST_MOST);
        run = mpl_order_run_default(ctx);
        run.options = &o;
        assert_ok(ctx, mpl_order_make(&run, &mpl_order_joint, g, order));
        assert_int_equal(run.bound_bytes, run.live_bytes);
        assert_int_equal(placed(ctx, g, order, &o), run.live_bytes);
    }
}

enum { MOST_ORDERS = 6000, PAIR_WORDS = 16 };

/* Bit set of pairs of buffers that are alive at once and may not overlap; buffer ids are equal in
 * every order. */
static void conflicts_of(mpl_ctx *ctx, const mpl_graph *g, const mpl_op *order,
                         const mpl_problem_options *o, uint64_t *set)
{
    owned_problem *p = NULL;
    owned_map *map = NULL;

    memset(set, 0, PAIR_WORDS * sizeof *set);
    assert_ok(ctx, mpl_problem_from_graph(ctx, g, order, o, &p, &map));
    assert_true(p->n * p->n <= 64 * PAIR_WORDS);
    for (mpl_buffer a = 0; a < p->n; a++)
        for (mpl_buffer b = 0; b < p->n; b++) {
            bool apart = a == b || !mpl_conflict(p, a, b);

            for (uint32_t i = 0; i < p->n_in_place; i++)
                apart = apart || (p->in_place_in[i] == a && p->in_place_out[i] == b) ||
                        (p->in_place_in[i] == b && p->in_place_out[i] == a);
            if (!apart)
                set[(a * p->n + b) / 64] |= UINT64_C(1) << ((a * p->n + b) % 64);
        }
}

static bool within(const uint64_t *a, const uint64_t *b)
{
    for (int w = 0; w < PAIR_WORDS; w++)
        if ((a[w] & ~b[w]) != 0)
            return false;
    return true;
}

/* Pairs alive at once in each listed order. */
typedef struct listing {
    uint64_t (*set)[PAIR_WORDS];
    uint32_t n;
} listing;

/* Checks that the pairs alive at once in any order are those of a listed order or a superset of
 * one. */
static void is_listed(all_orders *all)
{
    const listing *listed = all->arg;
    uint64_t set[PAIR_WORDS];
    bool found = false;

    conflicts_of(all->ctx, all->g, all->order, all->o, set);
    for (uint32_t i = 0; i < listed->n && !found; i++)
        found = within(listed->set[i], set);
    assert_true(found);
}

TEST(listed_orders_suffice)
{
    uint64_t n_listed = 0, there_are = 0,
             (*listed)[PAIR_WORDS] = calloc(MOST_ORDERS, sizeof *listed);

    assert_non_null(listed);
    for (uint64_t seed = 0; seed < draws(600); seed++) {
        owned_graph *g =
            random_graph(ctx, seed, 3 + (uint32_t)(seed % 5), 3 + (uint32_t)(seed / 5 % 4));
        mpl_problem_options o = random_options(seed);
        listing those = {.set = listed};
        all_orders all = {.ctx = ctx, .g = g, .o = &o, .each = is_listed, .arg = &those};
        mpl_order_list *list = NULL;
        mpl_op order[16];
        uint64_t ticks = 0;
        uint32_t n = 0;
        bool found = true, ended = false;

        o.pin_inputs = true;
        count_up(g->n_ops, order);
        assert_ok(ctx, mpl_order_list_new(ctx, g, &o, order, &list));
        while (found) {
            assert_ok(ctx, mpl_order_list_next(list, UINT64_MAX / 4, UINT64_MAX, &ticks, order,
                                               &found, &ended));
            assert_true(n < MOST_ORDERS);
            if (found)
                conflicts_of(ctx, g, order, &o, listed[n++]);
        }
        assert_true(ended);
        those.n = n;
        visit_orders(&all);
        n_listed += n;
        there_are += all.n;
        mpl_order_list_free(list);
    }
    print_message("%" PRIu64 " of %" PRIu64 " orders were listed\n", n_listed, there_are);
    assert_true(n_listed * 2 < there_are);
    free(listed);
}

/* Events of a list whose least height is above its peak of 8 units (roots[0] of small_problem.h): a
 * positive size is born; -i - 1: the i-th one dies. */
static const int above_the_peak[] = {4, 3, -1, 3, 2, -2, 1, 1, -3, -6, 4, -5, -4, 4, -7, -8};

enum { N_EVENTS = sizeof above_the_peak / sizeof *above_the_peak, UNIT = 256 };

static mpl_value product(mpl_ctx *ctx, mpl_graph *g, uint32_t event, mpl_value a, int64_t rows,
                         int64_t columns, mpl_value plus)
{
    static uint32_t count;
    char name[2][32];
    mpl_shape shape = {2, {rows, columns}};
    mpl_value in[3] = {a, MPL_NONE, plus}, out;

    snprintf(name[0], sizeof name[0], "w%u", count);
    snprintf(name[1], sizeof name[1], "event%u.%u", event, count++);
    assert_ok(ctx, mpl_graph_add_value(ctx, g, name[0], MPL_WEIGHT, MPL_TYPE_f32, &shape, &in[1]));
    assert_ok(ctx, mpl_graph_add_op(ctx, g, plus == MPL_NONE ? MPL_OP_matmul : MPL_OP_gemm, name[1],
                                    plus == MPL_NONE ? 2 : 3, in, 0, NULL, 1,
                                    (const char *[]){name[1]}, &out));
    return out;
}

/* A token of no bytes links the events, so that there is only one order; a gemm reads the dying
 * buffer and the token. */
static mpl_graph *graph_of_events(mpl_ctx *ctx)
{
    mpl_shape nothing = {2, {1, 0}};
    mpl_graph *g = NULL;
    mpl_value token, born[N_EVENTS];
    int64_t size[N_EVENTS];
    uint32_t n = 0;

    assert_ok(ctx, mpl_graph_new(ctx, "events", &g));
    assert_ok(ctx, mpl_graph_add_value(ctx, g, "token", MPL_INPUT, MPL_TYPE_f32, &nothing, &token));
    for (uint32_t i = 0; i < N_EVENTS; i++) {
        int e = above_the_peak[i];
        uint32_t which = e > 0 ? n : (uint32_t)(-e - 1);

        if (e > 0) {
            size[n] = e * UNIT;
            born[n] = product(ctx, g, i, token, 0, size[n], MPL_NONE);
            n++;
        }
        token = product(ctx, g, i, born[which], size[which], 0, token);
    }
    assert_ok(ctx, mpl_graph_add_output(ctx, g, token));
    assert_ok(ctx, mpl_graph_finish(ctx, g));
    return g;
}

TEST(above_the_least_peak)
{
    owned_graph *g;
    mpl_problem_options o = mpl_problem_options_default();
    mpl_order_run run;
    mpl_op order[64];
    uint64_t peak;

    o.align = 4;
    g = graph_of_events(ctx);
    run = mpl_order_run_default(ctx);
    run.options = &o;
    assert_ok(ctx, mpl_order_make(&run, mpl_order_find("least_peak"), g, order));
    peak = run.live_bytes;
    assert_int_equal(run.bound_bytes, peak);
    assert_int_equal(peak / (4 * UNIT), 8);
    assert_ok(ctx, mpl_order_make(&run, &mpl_order_joint, g, order));
    assert_int_equal(run.live_bytes, run.bound_bytes);
    assert_int_equal(run.live_bytes, placed(ctx, g, order, &o));
    assert_true(run.live_bytes > peak);
    assert_string_equal(run.method, "orders");
}

TEST(survive_lost_memory)
{
    owned_graph *g = random_graph(ctx, 3, 6, 4);

    EACH_ALLOCATION_FAILS (ctx, st) {
        mpl_op order[16];

        st = mpl_order_joint.make(ctx, g, order);
    }
}

TESTS(least_arena_of_all, training_graphs, listed_orders_suffice, above_the_least_peak,
      survive_lost_memory)
