/* Orders: permutations that respect the graph, each compared with a naive implementation of its
 * definition. */
#include "tests/support/test.h"

#include "graphs/core/rng.h"

static const mpl_shape shapes[] = {{1, {1}}, {1, {10}}, {1, {100}}, {2, {7, 3}}};

/* One of the last `window` values; for a mask, the value it belongs to. */
static mpl_value any_floats(const mpl_graph *g, mpl_rng *rng, uint32_t window)
{
    mpl_value v = g->n_values - 1 - (mpl_value)mpl_rng_below(rng, window);

    return g->value_type[v] == MPL_TYPE_f32 ? v : v - 1;
}

/* Operations of 1 to 3 operands, near or far; some are dead ends. */
static mpl_graph *random_graph(mpl_ctx *ctx, uint64_t seed, uint32_t n_ops)
{
    mpl_graph *g = NULL;
    mpl_rng rng = mpl_rng_of(seed);
    mpl_value v;

    assert_ok(ctx, mpl_graph_new(ctx, "random", &g));
    for (int i = 0; i < 4; i++) {
        char name[16];

        snprintf(name, sizeof name, "in%d", i);
        assert_ok(ctx, mpl_graph_add_value(ctx, g, name, MPL_INPUT, MPL_TYPE_f32, &shapes[i], &v));
    }
    for (uint32_t i = 0; i < n_ops; i++) {
        uint32_t window = mpl_rng_below(&rng, 2) ? g->n_values : 4;
        mpl_value in[3];
        char name[16];
        const char *names[] = {name};
        uint32_t n = 0;

        snprintf(name, sizeof name, "v%u", i);
        in[n++] = any_floats(g, &rng, window);
        for (uint32_t k = 0; k < 2; k++) {
            v = any_floats(g, &rng, window);
            if (mpl_shape_equal(&g->value_shape[v], &g->value_shape[in[0]]))
                in[n++] = v;
        }
        if (n == 1 && mpl_rng_below(&rng, 3) == 0) {
            const mpl_value pair[] = {in[0], in[0]};

            assert_ok(ctx, mpl_graph_add_op(ctx, g, MPL_OP_concat, name, 2, pair, 1,
                                            &MPL_INT(axis, 0), 1, names, &v));
        } else {
            mpl_op_kind kind = n > 1 ? MPL_OP_max : MPL_OP_relu;
            char mask[16];
            mpl_value out[2];

            if (n == 1 && mpl_rng_below(&rng, 4) == 0)
                kind = MPL_OP_dropout; /* a view with an unread mask */
            snprintf(mask, sizeof mask, "m%u", i);
            assert_ok(ctx, mpl_graph_add_op(ctx, g, kind, name, n, in, 0, NULL,
                                            kind == MPL_OP_dropout ? 2 : 1,
                                            (const char *[]){name, mask}, out));
        }
    }
    for (uint32_t i = 0; i < 3; i++)
        assert_ok(ctx, mpl_graph_add_output(ctx, g, (mpl_value)mpl_rng_below(&rng, g->n_values)));
    assert_ok(ctx, mpl_graph_finish(ctx, g));
    return g;
}

static bool is_order(const mpl_graph *g, const mpl_op *order)
{
    uint8_t *done = calloc(g->n_ops + 1, 1);
    bool good = true;

    assert_non_null(done);
    for (uint32_t s = 0; s < g->n_ops && good; s++) {
        good = order[s] < g->n_ops && !done[order[s]];
        for (uint32_t i = good ? g->op_in_begin[order[s]] : 0;
             good && i < g->op_in_begin[order[s] + 1]; i++)
            good = g->op_in[i] == MPL_NONE || g->value_op[g->op_in[i]] == MPL_NONE ||
                   done[g->value_op[g->op_in[i]]];
        if (good)
            done[order[s]] = 1;
    }
    free(done);
    return good;
}

/* ---- naive implementations of the orders ---- */

typedef struct teller {
    const mpl_graph *g;
    mpl_op order[64];
    bool done[64], needed[64];
    uint32_t n;
} teller;

static void need(teller *t, mpl_value v)
{
    mpl_op op = t->g->value_op[v];

    if (op == MPL_NONE || t->needed[op])
        return;
    t->needed[op] = true;
    for (uint32_t i = t->g->op_in_begin[op]; i < t->g->op_in_begin[op + 1]; i++)
        need(t, t->g->op_in[i]);
}

static void visit(teller *t, mpl_value v)
{
    mpl_op op = t->g->value_op[v];

    if (op == MPL_NONE || t->done[op])
        return;
    t->done[op] = true;
    for (uint32_t i = t->g->op_in_begin[op]; i < t->g->op_in_begin[op + 1]; i++)
        visit(t, t->g->op_in[i]);
    t->order[t->n++] = op;
}

static bool is_ready(const teller *t, mpl_op op)
{
    if (t->done[op] || !t->needed[op])
        return false;
    for (uint32_t i = t->g->op_in_begin[op]; i < t->g->op_in_begin[op + 1]; i++)
        if (t->g->value_op[t->g->op_in[i]] != MPL_NONE && !t->done[t->g->value_op[t->g->op_in[i]]])
            return false;
    return true;
}

static void tell_given(teller *t)
{
    for (mpl_op op = 0; op < t->g->n_ops; op++)
        t->order[t->n++] = op, t->done[op] = true;
}

static void tell_dfs(teller *t)
{
    for (uint32_t i = 0; i < t->g->n_outputs; i++)
        visit(t, t->g->output[i]);
}

/* The queue, with each operation's newly ready successors recomputed. */
static void tell_bfs(teller *t)
{
    mpl_op queue[64];
    bool queued[64] = {false};
    uint32_t n = 0;

    for (uint32_t round = 0; round <= t->n; round++) {
        if (round > 0)
            t->done[t->order[round - 1]] = true;
        for (mpl_op op = 0; op < t->g->n_ops; op++)
            if (!queued[op] && is_ready(t, op))
                queue[n++] = op, queued[op] = true;
        if (t->n < n)
            t->order[t->n] = queue[t->n], t->n++;
    }
}

/* Output 0 of a view operation lies in its input. */
static mpl_value root_of(const mpl_graph *g, mpl_value v)
{
    for (mpl_op op = g->value_op[v]; op != MPL_NONE && g->op_out[g->op_out_begin[op]] == v;
         op = g->value_op[v]) {
        if (!(mpl_op_table[g->op_kind[op]].traits & MPL_VIEW))
            break;
        v = g->op_in[g->op_in_begin[op]];
    }
    return v;
}

/* Bytes of temporaries that needed operations have still to read (or that `op` just made), after
 * `op`. */
static uint64_t live_after(const teller *t, mpl_op op, bool with_dying)
{
    const mpl_graph *g = t->g;
    uint64_t sum = 0;

    for (mpl_value v = 0; v < g->n_values; v++) {
        bool made = g->value_op[v] != MPL_NONE && (t->done[g->value_op[v]] || g->value_op[v] == op),
             wanted = false;

        if (!made || root_of(g, v) != v)
            continue;
        for (uint32_t i = 0; i < g->n_outputs; i++)
            made = made && root_of(g, g->output[i]) != v;
        for (mpl_op user = 0; user < g->n_ops; user++)
            for (uint32_t i = g->op_in_begin[user]; i < g->op_in_begin[user + 1]; i++)
                wanted = wanted || (root_of(g, g->op_in[i]) == v && t->needed[user] &&
                                    !t->done[user] && (user != op || with_dying));
        if (made && (wanted || (with_dying && g->value_op[v] == op)))
            sum += g->value_bytes[v];
    }
    return sum;
}

static void tell_greedy(teller *t)
{
    uint64_t peak = 0;

    for (;;) {
        mpl_op best = MPL_NONE;
        uint64_t best_peak = 0, best_left = 0;

        for (mpl_op op = 0; op < t->g->n_ops; op++) {
            uint64_t high, left;

            if (!is_ready(t, op))
                continue;
            high = mpl_max_u64(peak, live_after(t, op, true));
            left = live_after(t, op, false);
            if (best == MPL_NONE || high < best_peak || (high == best_peak && left < best_left))
                best = op, best_peak = high, best_left = left;
        }
        if (best == MPL_NONE)
            return;
        peak = best_peak;
        t->order[t->n++] = best;
        t->done[best] = true;
    }
}

static const struct {
    const char *name;
    void (*tell)(teller *t);
} orders[] = {{"given", tell_given}, {"dfs", tell_dfs}, {"bfs", tell_bfs}, {"greedy", tell_greedy}};

TEST(orders_as_told)
{
    for (uint64_t seed = 0; seed < draws(600); seed++) {
        owned_graph *g = random_graph(ctx, seed, 1 + (uint32_t)seed % 40);

        for (size_t i = 0; i < sizeof orders / sizeof *orders; i++) {
            const mpl_order_kind *kind = mpl_order_find(orders[i].name);
            teller t = {.g = g};
            mpl_op order[64];

            assert_non_null(kind);
            assert_ok(ctx, mpl_order_of(ctx, g, kind, order));
            assert_true(is_order(g, order));
            for (uint32_t k = 0; k < g->n_outputs; k++)
                need(&t, g->output[k]);
            orders[i].tell(&t);
            for (mpl_op op = 0; op < g->n_ops; op++) /* unneeded operations come last, as given */
                if (!t.needed[op] && orders[i].tell != tell_given)
                    t.order[t.n++] = op;
            assert_int_equal(t.n, g->n_ops);
            assert_memory_equal(t.order, order, g->n_ops * sizeof *order);
        }
    }
}

TEST(names)
{
    size_t n = 0;

    /* the search orders: see test_graphs_least_peak */
    while (mpl_orders[n] != NULL && mpl_orders[n]->search == NULL)
        n++;
    assert_int_equal(n, sizeof orders / sizeof *orders);
    assert_null(mpl_order_find("no such order"));
}

/* A chain (deep: no recursion) and a fan (wide: no look at all pairs). */
static mpl_graph *large(mpl_ctx *ctx, uint32_t n_ops, bool deep)
{
    mpl_graph *g = NULL;
    mpl_value v, in;

    assert_ok(ctx, mpl_graph_new(ctx, "large", &g));
    assert_ok(ctx, mpl_graph_add_value(ctx, g, "x", MPL_INPUT, MPL_TYPE_f32, &shapes[1], &in));
    v = in;
    for (uint32_t i = 0; i < n_ops; i++) {
        char name[16];

        snprintf(name, sizeof name, "v%u", i);
        assert_ok(ctx, mpl_graph_add_op(ctx, g, MPL_OP_relu, name, 1, deep ? &v : &in, 0, NULL, 1,
                                        (const char *[]){name}, &v));
        if (!deep)
            assert_ok(ctx, mpl_graph_add_output(ctx, g, v));
    }
    if (deep)
        assert_ok(ctx, mpl_graph_add_output(ctx, g, v));
    assert_ok(ctx, mpl_graph_finish(ctx, g));
    return g;
}

TEST(deep_and_wide)
{
    enum { N = 100000 };

    for (int deep = 0; deep < 2; deep++) {
        owned_graph *g = large(ctx, N, deep);
        mpl_op *order = calloc(N, sizeof *order);
        mpl_problem_options o = mpl_problem_options_default();

        assert_non_null(order);
        o.pin_outputs = false;
        for (size_t i = 0; mpl_orders[i] != NULL; i++) {
            owned_problem *p = NULL;
            owned_map *map = NULL;
            int64_t start = mpl_clock_ns();

            assert_ok(ctx, mpl_order_of(ctx, g, mpl_orders[i], order));
            assert_true(is_order(g, order));
            assert_ok(ctx, mpl_problem_from_graph(ctx, g, order, &o, &p, &map));
            assert_true(mpl_clock_ns() - start < INT64_C(10000000000));
        }
        free(order);
    }
}

/* ---- blocks ---- */

/* Whether each operation follows all it reads, captures of its blocks included, and each block
 * directly precedes its owner. */
static bool respects_blocks(const mpl_graph *g, const mpl_op *order)
{
    uint32_t step_of[64], first[64], n_seen[64] = {0};

    for (uint32_t step = 0; step < g->n_ops; step++)
        step_of[order[step]] = step;
    for (uint32_t step = 0; step < g->n_ops; step++)
        for (uint32_t b = g->op_block[order[step]]; b != 0; b = g->block_parent[b])
            if (n_seen[b]++ == 0)
                first[b] = step;
    for (mpl_op op = 0; op < g->n_ops; op++) {
        uint32_t end = step_of[op];

        for (uint32_t i = g->op_in_begin[op]; i < g->op_in_begin[op + 1]; i++)
            if (g->op_in[i] != MPL_NONE && g->value_op[g->op_in[i]] != MPL_NONE &&
                step_of[g->value_op[g->op_in[i]]] >= step_of[op])
                return false;
        for (uint32_t k = g->op_body_begin[op + 1]; k-- > g->op_body_begin[op];) {
            uint32_t b = g->op_body[k];

            if (n_seen[b] > 0 && first[b] + n_seen[b] != end)
                return false;
            end -= n_seen[b];
        }
    }
    return true;
}

TEST(blocks_stay_whole)
{
    owned_graph *g = NULL;
    mpl_op order[64];
    uint64_t distinct = 0;

    assert_ok(ctx, mpl_text_read(ctx, "tests/data/control.graph", &g));
    for (size_t i = 0; mpl_orders[i] != NULL; i++) {
        assert_ok(ctx, mpl_order_of(ctx, g, mpl_orders[i], order));
        assert_true(is_order(g, order));
        assert_true(respects_blocks(g, order));
    }
    for (uint64_t seed = 0; seed < draws(200); seed++) {
        assert_ok(ctx, mpl_order_random(ctx, g, seed, order));
        assert_true(is_order(g, order));
        assert_true(respects_blocks(g, order));
        distinct |= UINT64_C(1) << (mpl_hash(MPL_HASH_SEED, order, g->n_ops * sizeof *order) % 64);
    }
    assert_true(distinct != 0 && (distinct & (distinct - 1)) != 0);
}

/* An order that takes an operation out of its block, or interleaves two branches, is refused. */
TEST(torn_blocks_are_refused)
{
    static const char text[] =
        "graph g\ninput x f32 [2]\ninput i i64 []\na = relu(x)\nblock b\nc = relu(x)\nd = relu(x)\n"
        "yield c\nblock e\nf = relu(x)\nyield f\ny = case b, e(i)\noutput y\n"; /* 0 a, 1 c, 2 d, 3
                                                                                   f, 4 y */
    static const mpl_op orders_of[][5] = {{0, 1, 2, 3, 4}, {0, 2, 1, 3, 4}, {1, 2, 3, 4, 0},
                                          {1, 0, 2, 3, 4}, {0, 1, 3, 2, 4}, {0, 3, 1, 2, 4},
                                          {1, 2, 3, 0, 4}, {0, 1, 2, 4, 3}};
    mpl_problem_options o = mpl_problem_options_default();
    owned_graph *g = NULL;

    assert_ok(ctx, mpl_text_read_memory(ctx, "torn", text, strlen(text), &g));
    for (size_t i = 0; i < sizeof orders_of / sizeof *orders_of; i++) {
        owned_problem *p = NULL;
        owned_map *map = NULL;

        assert_int_equal(mpl_problem_from_graph(ctx, g, orders_of[i], &o, &p, &map),
                         i < 3 ? MPL_OK : MPL_EINPUT);
        assert_int_equal(respects_blocks(g, orders_of[i]), i < 3);
    }
}

TEST(survive_lost_memory)
{
    owned_graph *g = NULL;

    assert_ok(ctx, mpl_text_read(ctx, "tests/data/control.graph", &g));
    for (size_t i = 0; mpl_orders[i] != NULL; i++) {
        mpl_op order[64];

        EACH_ALLOCATION_FAILS (ctx, st) {
            st = mpl_order_of(ctx, g, mpl_orders[i], order);
        }
    }
}

TESTS(orders_as_told, names, deep_and_wide, blocks_stay_whole, torn_blocks_are_refused,
      survive_lost_memory)
