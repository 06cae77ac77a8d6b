/* Liveness and the problem of a graph: data-flow solution against the closed form; every buffer,
 * lifetime and in-place pair of random graphs against a step-by-step replay. */
#include "graphs/problem/bounds/bounds.h"
#include "tests/support/test.h"

#include "graphs/problem/liveness.h"
#include "graphs/core/rng.h"

/* ---- data flow ---- */

/* The example of Paddle's "Memory Optimization" design: a = op1(b, c); d = op2(a); e = op3(d,
 * f). */
enum { A, B, C, D, E, F };
#define SET(...) set_of((const int[]){__VA_ARGS__, -1})

static uint64_t set_of(const int *var)
{
    uint64_t set = 0;

    for (; *var >= 0; var++)
        set |= UINT64_C(1) << *var;
    return set;
}

TEST(flow_of_paddle_example)
{
    const mpl_flow flow =
        ROW(.n_nodes = 3, .n_vars = 6, .succ_begin = (const uint32_t[]){0, 1, 2, 2},
            .succ_item = (const uint32_t[]){1, 2}, .use_begin = (const uint32_t[]){0, 2, 3, 5},
            .use_item = (const uint32_t[]){B, C, A, D, F},
            .def_begin = (const uint32_t[]){0, 1, 2, 3}, .def_item = (const uint32_t[]){A, D, E});
    const uint64_t want_in[] = {SET(B, C, F), SET(A, F), SET(D, F)},
                   want_out[] = {SET(A, F), SET(D, F), 0};
    uint64_t in[3], out[3];

    assert_int_equal(mpl_flow_words(&flow), 1);
    assert_ok(ctx, mpl_flow_live(ctx, &flow, in, out));
    assert_memory_equal(in, want_in, sizeof in);
    assert_memory_equal(out, want_out, sizeof out);
}

/* 0: i = ; 1: s = ; 2: s = s + i (loops to itself); 3: use s. Values read in the loop are live
 * throughout it. */
TEST(flow_round_a_loop)
{
    const mpl_flow flow =
        ROW(.n_nodes = 4, .n_vars = 2, .succ_begin = (const uint32_t[]){0, 1, 2, 4, 4},
            .succ_item = (const uint32_t[]){1, 2, 2, 3},
            .use_begin = (const uint32_t[]){0, 0, 0, 2, 3}, .use_item = (const uint32_t[]){0, 1, 1},
            .def_begin = (const uint32_t[]){0, 1, 2, 3, 3},
            .def_item = (const uint32_t[]){0, 1, 1});
    const uint64_t want_in[] = {0, SET(0), SET(0, 1), SET(1)},
                   want_out[] = {SET(0), SET(0, 1), SET(0, 1), 0};
    uint64_t in[4], out[4];

    assert_ok(ctx, mpl_flow_live(ctx, &flow, in, out));
    assert_memory_equal(in, want_in, sizeof in);
    assert_memory_equal(out, want_out, sizeof out);
}

/* ---- random graphs ---- */

static const mpl_shape shapes[] = {{2, {2, 3}}, {2, {3, 2}}, {1, {6}}, {1, {0}}, {0, {0}}};
enum { N_SHAPES = 5, MAX_OPS = 14, MAX_VALUES = 3 + 2 * MAX_OPS };

typedef struct maker {
    mpl_ctx *ctx;
    mpl_graph *g;
    mpl_rng rng;
} maker;

static uint32_t below(maker *m, uint32_t n)
{
    return (uint32_t)mpl_rng_below(&m->rng, n);
}

static mpl_value add(maker *m, mpl_op_kind kind, uint32_t n_in, const mpl_value *in,
                     uint32_t n_attr, const mpl_attr *attr)
{
    char name[16];
    const char *names[] = {name};
    mpl_value out = MPL_NONE;

    snprintf(name, sizeof name, "v%u", m->g->n_values);
    assert_ok(m->ctx,
              mpl_graph_add_op(m->ctx, m->g, kind, name, n_in, in, n_attr, attr, 1, names, &out));
    return out;
}

static mpl_value any_like(maker *m, mpl_value like)
{
    mpl_value v;

    do
        v = below(m, m->g->n_values);
    while (!mpl_shape_equal(&m->g->value_shape[v], &m->g->value_shape[like]));
    return v;
}

/* Values of 6, 1 or 0 elements; relu, softmax, add (also x + x), reshape of reshape of .., random
 * outputs. */
static mpl_graph *random_graph(mpl_ctx *ctx, uint64_t seed)
{
    maker m = {.ctx = ctx};
    uint32_t n_ops;
    mpl_value v;

    m.rng = mpl_rng_of(seed);
    assert_ok(ctx, mpl_graph_new(ctx, "random", &m.g));
    assert_ok(ctx, mpl_graph_add_value(ctx, m.g, "x", MPL_INPUT, MPL_TYPE_f32, &shapes[0], &v));
    assert_ok(ctx, mpl_graph_add_value(ctx, m.g, "y", MPL_INPUT, MPL_TYPE_f32,
                                       &shapes[1 + below(&m, 4)], &v));
    assert_ok(ctx, mpl_graph_add_value(ctx, m.g, "w", MPL_WEIGHT, MPL_TYPE_f32,
                                       &shapes[below(&m, 3)], &v));
    n_ops = 1 + below(&m, MAX_OPS);
    for (uint32_t i = 0; i < n_ops; i++) {
        mpl_value in[2] = {below(&m, m.g->n_values)};
        uint64_t count = 0;

        mpl_shape_count(&m.g->value_shape[in[0]], &count);
        in[1] = any_like(&m, in[0]);
        switch (below(&m, 4)) {
        case 0:
            add(&m, MPL_OP_relu, 1, in, 0, NULL);
            break;
        case 1:
            add(&m, MPL_OP_transpose, 1, in, 0, NULL);
            break;
        case 2:
            add(&m, MPL_OP_add, 2, in, 0, NULL);
            break;
        default:
            if (count == 6) {
                const mpl_shape *to = &shapes[below(&m, 3)];

                add(&m, MPL_OP_reshape, 1, in, 1, &MPL_INTS(shape, to->rank, to->dim));
            } else {
                add(&m, MPL_OP_identity, 1, in, 0, NULL);
            }
        }
    }
    for (uint32_t i = 0, n = 1 + below(&m, 3); i < n; i++)
        assert_ok(ctx, mpl_graph_add_output(ctx, m.g,
                                            i == 0 ? m.g->n_values - 1 : below(&m, m.g->n_values)));
    assert_ok(ctx, mpl_graph_finish(ctx, m.g));
    return m.g;
}

/* The closed form over an order is the data-flow solution of straight-line code: a root is live out
 * of a step iff it is live into a later one. */
TEST(ranges_are_the_flow)
{
    for (uint64_t seed = 0; seed < draws(500); seed++) {
        owned_graph *g = random_graph(ctx, seed);
        mpl_op order[MAX_OPS];
        mpl_ranges *r = NULL;
        uint32_t succ_begin[MAX_OPS + 1], succ[MAX_OPS], begin[MAX_OPS + 1] = {0},
                                                                         def_begin[MAX_OPS + 1];
        uint32_t use[2 * MAX_OPS], def[MAX_OPS], n_use = 0;
        uint64_t in[MAX_OPS], out[MAX_OPS];

        assert_ok(ctx, mpl_order_random(ctx, g, seed, order));
        assert_ok(ctx, mpl_ranges_new(
                           ctx, g, order,
                           &(mpl_alias_options){seed % 2 == 0, 64, NULL, false, true, NULL}, &r));
        for (uint32_t s = 0; s < g->n_ops; s++) {
            succ_begin[s] = s, succ[s] = s + 1;
            begin[s] = n_use, def_begin[s] = s;
            def[s] = g->op_out[g->op_out_begin[order[s]]];
            for (uint32_t i = g->op_in_begin[order[s]]; i < g->op_in_begin[order[s] + 1]; i++)
                use[n_use++] = r->alias.root[g->op_in[i]];
        }
        succ_begin[g->n_ops] = g->n_ops - 1;
        begin[g->n_ops] = n_use, def_begin[g->n_ops] = g->n_ops;
        assert_ok(ctx, mpl_flow_live(ctx,
                                     &(mpl_flow){g->n_ops, g->n_values, succ_begin, succ, begin,
                                                 use, def_begin, def},
                                     in, out));
        for (mpl_value v = 0; v < g->n_values; v++)
            for (uint32_t s = 0; s < g->n_ops; s++) {
                bool is_root = r->alias.root[v] == v, made = g->value_op[v] != MPL_NONE;

                assert_int_equal(out[s] >> v & 1,
                                 is_root && (made ? r->first[v] <= s : true) && s < r->last[v]);
                assert_int_equal(r->step_of[order[s]], s);
            }
        mpl_ranges_free(ctx, r);
    }
}

/* ---- the problem of a graph ---- */

static mpl_value root_of(const mpl_graph *g, bool views, mpl_value v)
{
    while (views && g->value_op[v] != MPL_NONE &&
           (mpl_op_table[g->op_kind[g->value_op[v]]].traits & MPL_VIEW))
        v = g->op_in[g->op_in_begin[g->value_op[v]]];
    return v;
}

static bool holds_output(const mpl_graph *g, bool views, mpl_value root)
{
    for (uint32_t i = 0; i < g->n_outputs; i++)
        if (root_of(g, views, g->output[i]) == root)
            return true;
    return false;
}

static bool plain_pinned(const mpl_graph *g, const mpl_problem_options *o, mpl_value root)
{
    return (o->pin_outputs && holds_output(g, o->views, root)) ||
           (o->pin_inputs && g->value_role[root] == MPL_INPUT) ||
           (o->pin_weights && g->value_role[root] == MPL_WEIGHT);
}

/* Whether the storage of `root` is read at `step` or later, by an operation, the caller or the next
 * run. */
static bool wanted_from(const mpl_graph *g, const mpl_op *order, bool views, mpl_value root,
                        uint32_t step)
{
    if (holds_output(g, views, root) || g->value_role[root] == MPL_WEIGHT)
        return true;
    for (uint32_t s = step; s < g->n_ops; s++)
        for (uint32_t i = g->op_in_begin[order[s]]; i < g->op_in_begin[order[s] + 1]; i++)
            if (root_of(g, views, g->op_in[i]) == root)
                return true;
    return false;
}

static void check_lives(const mpl_graph *g, const mpl_op *order, const mpl_problem_options *o,
                        const mpl_problem *p, const mpl_value_map *map)
{
    uint32_t n = 0;
    uint64_t pinned = 0;

    for (mpl_value v = 0; v < g->n_values; v++) {
        mpl_value root = root_of(g, o->views, v);
        mpl_buffer b = map->value_buffer[v];
        bool alive = g->value_op[root] == MPL_NONE;

        assert_int_equal(map->value_root[v], root);
        assert_int_equal(b == MPL_NONE, plain_pinned(g, o, root) || g->value_bytes[root] == 0);
        if (v == root && plain_pinned(g, o, root))
            pinned += (g->value_bytes[root] + o->align - 1) / o->align * o->align;
        if (b == MPL_NONE)
            continue;
        n += v == root;
        assert_int_equal(p->bytes[b], g->value_bytes[root]);
        assert_int_equal(p->type_id[b], g->value_type[root]);
        assert_int_equal(p->no_reuse[b], g->value_bytes[root] == 4);
        assert_string_equal(p->buffer_name[b], g->value_name[root]);
        for (uint32_t s = 0; s < g->n_ops; s++) {
            bool made_now = g->value_op[root] == order[s], here;

            alive = alive || made_now;
            here = alive && (wanted_from(g, order, o->views, root, s) || made_now ||
                             /* an unread input */
                             (s == 0 && g->value_op[root] == MPL_NONE));
            assert_int_equal(p->birth[b] <= s && s < p->death[b], here);
        }
    }
    assert_int_equal(n, p->n);
    assert_int_equal(map->pinned_bytes, pinned);
    for (mpl_value v = 0; v < g->n_values; v++)
        for (mpl_value w = 0; w < v; w++)
            if (map->value_buffer[v] != MPL_NONE && map->value_buffer[w] != MPL_NONE &&
                map->value_root[v] == v && map->value_root[w] == w)
                assert_int_equal(p->shape_id[map->value_buffer[v]] ==
                                     p->shape_id[map->value_buffer[w]],
                                 mpl_shape_equal(&g->value_shape[v], &g->value_shape[w]));
}

/* Whether output 0 of the operation at `step` may overwrite its i-th input: the operator allows it,
 * and the old contents are not needed any more. */
static bool plain_pair(const mpl_graph *g, const mpl_op *order, const mpl_problem_options *o,
                       const mpl_value_map *map, uint32_t step, uint32_t i)
{
    mpl_op op = order[step];
    unsigned traits = mpl_op_table[g->op_kind[op]].traits;
    mpl_value in = g->op_in[g->op_in_begin[op] + i], out = g->op_out[g->op_out_begin[op]];
    mpl_value root = root_of(g, o->views, in);
    bool view = (traits & MPL_VIEW) != 0;

    if (map->value_buffer[in] == MPL_NONE || map->value_buffer[out] == MPL_NONE ||
        (view && o->views) ||
        !(traits & MPL_IN_PLACE_ANY || ((traits & MPL_IN_PLACE_0) && i == 0)) ||
        (step == 0 && g->value_op[root] == MPL_NONE))
        return false;
    if (!view && !mpl_shape_equal(&g->value_shape[in], &g->value_shape[out]))
        return false;
    return !wanted_from(g, order, o->views, root, step + 1);
}

static void check_pairs(const mpl_graph *g, const mpl_op *order, const mpl_problem_options *o,
                        const mpl_problem *p, const mpl_value_map *map, uint32_t *n_pairs)
{
    uint32_t n = 0;

    for (uint32_t step = 0; o->in_place && step < g->n_ops; step++) {
        mpl_op op = order[step];
        mpl_buffer seen[2] = {MPL_NONE, MPL_NONE};

        for (uint32_t i = 0; i < g->op_in_begin[op + 1] - g->op_in_begin[op]; i++) {
            mpl_buffer in = map->value_buffer[g->op_in[g->op_in_begin[op] + i]], out;
            bool found = false;

            if (!plain_pair(g, order, o, map, step, i) || in == seen[0])
                continue;
            seen[i] = in;
            out = map->value_buffer[g->op_out[g->op_out_begin[op]]];
            for (uint32_t k = 0; k < p->n_in_place; k++)
                found = found || (p->in_place_in[k] == in && p->in_place_out[k] == out &&
                                  p->in_place_step[k] == step);
            assert_true(found);
            n++;
        }
    }
    assert_int_equal(n, p->n_in_place);
    *n_pairs += n;
}

static bool path(const mpl_graph *g, mpl_op from, mpl_op to)
{
    if (from == to)
        return true;
    for (uint32_t i = g->op_in_begin[to]; i < g->op_in_begin[to + 1]; i++)
        if (g->value_op[g->op_in[i]] != MPL_NONE && path(g, from, g->value_op[g->op_in[i]]))
            return true;
    return false;
}

static bool touches(const mpl_graph *g, const mpl_value_map *map, mpl_buffer b, mpl_op op)
{
    for (uint32_t i = g->op_in_begin[op]; i < g->op_in_begin[op + 1]; i++)
        if (map->value_buffer[g->op_in[i]] == b)
            return true;
    return map->value_buffer[g->op_out[g->op_out_begin[op]]] == b;
}

static void check_access(const mpl_graph *g, const mpl_problem *p, const mpl_value_map *map)
{
    const mpl_access *a = p->access;

    assert_int_equal(a->n_events, g->n_ops);
    for (mpl_op op = 0; op < g->n_ops; op++)
        for (mpl_op next = 0; next < g->n_ops; next++) {
            bool edge = false, want = false;

            for (uint32_t i = a->edge_begin[op]; i < a->edge_begin[op + 1]; i++)
                edge = edge || a->edge_item[i] == next;
            for (uint32_t i = g->op_in_begin[next]; i < g->op_in_begin[next + 1]; i++)
                want = want || g->value_op[g->op_in[i]] == op;
            assert_int_equal(edge, want);
        }
    for (mpl_buffer b = 0; b < p->n; b++)
        for (mpl_op op = 0; op < g->n_ops; op++) {
            bool first = false, last = false, want_first = touches(g, map, b, op),
                 want_last = want_first;

            for (mpl_op other = 0; other < g->n_ops; other++)
                if (other != op && touches(g, map, b, other)) {
                    want_first = want_first && !path(g, other, op);
                    want_last = want_last && !path(g, op, other);
                }
            for (uint32_t i = a->first_begin[b]; i < a->first_begin[b + 1]; i++)
                first = first || a->first_item[i] == op;
            for (uint32_t i = a->last_begin[b]; i < a->last_begin[b + 1]; i++)
                last = last || a->last_item[i] == op;
            assert_int_equal(first, want_first);
            assert_int_equal(last, want_last);
        }
}

static mpl_problem_options options_of(uint64_t seed)
{
    mpl_problem_options o = mpl_problem_options_default();

    o.in_place = seed & 1;
    o.views = seed & 2;
    o.pin_inputs = seed & 4;
    o.pin_outputs = seed & 8;
    o.pin_weights = seed & 16;
    o.align = 1u << (seed % 7);
    return o;
}

TEST(problems_of_random_graphs)
{
    uint32_t n_pairs = 0;

    for (uint64_t seed = 0; seed < draws(3000); seed++) {
        owned_graph *g = random_graph(ctx, seed);
        mpl_problem_options o = options_of(seed);
        mpl_op order[MAX_OPS];
        owned_problem *p = NULL;
        owned_map *map = NULL;

        assert_ok(ctx, mpl_order_random(ctx, g, seed, order));
        assert_ok(ctx, mpl_problem_from_graph(ctx, g, order, &o, &p, &map));
        assert_ok(ctx, mpl_problem_check(ctx, p));
        assert_int_equal(p->n_pools, 1);
        check_lives(g, order, &o, p, map);
        check_pairs(g, order, &o, p, map, &n_pairs);
        check_access(g, p, map);
    }
    print_message("%u in-place pairs\n", n_pairs);
    assert_true(often(n_pairs > 1000));
}

/* Which operand an operator may overwrite if it reads the same storage twice. d, e, w: relus of
 * inputs, last used here, w with one more dim; v: a view of d. */
static const struct {
    const char *what;
    mpl_op_kind kind;
    const char *in[3];
    bool views;
    const char *want; /* names of overwritable operands */
} twice[] = {
    {"one after the other", MPL_OP_add, {"d", "e"}, true, "de"},
    {"the same twice", MPL_OP_add, {"d", "d"}, true, "d"},
    {"a view of the same", MPL_OP_add, {"d", "v"}, true, "d"},
    {"a copy of the same", MPL_OP_add, {"d", "v"}, false, "dv"},
    {"of other dims", MPL_OP_add, {"d", "w"}, true, "w"},
    {"scattered into another", MPL_OP_scatter_elements, {"d", "i", "e"}, true, "d"},
    {"scattered into itself", MPL_OP_scatter_elements, {"d", "i", "d"}, true, ""},
    {"scattered into itself through a view", MPL_OP_scatter_elements, {"d", "i", "v"}, true, ""},
};

TEST(operands_read_twice)
{
    const mpl_shape shape = {2, {2, 3}};

    for (size_t k = 0; k < sizeof twice / sizeof *twice; k++) {
        owned_graph *g = NULL;
        mpl_problem_options o = mpl_problem_options_default();
        owned_problem *p = NULL;
        owned_map *map = NULL;
        mpl_op order[6] = {0, 1, 2, 3, 4, 5};
        mpl_value x, i, wide, in[3], v;
        uint32_t n_in = 0;
        char found[8] = "";

        assert_ok(ctx, mpl_graph_new(ctx, twice[k].what, &g));
        assert_ok(ctx, mpl_graph_add_value(ctx, g, "x", MPL_INPUT, MPL_TYPE_f32, &shape, &x));
        assert_ok(ctx, mpl_graph_add_value(ctx, g, "i", MPL_INPUT, MPL_TYPE_i64, &shape, &i));
        assert_ok(ctx, mpl_graph_add_value(ctx, g, "wide", MPL_INPUT, MPL_TYPE_f32,
                                           &(mpl_shape){3, {1, 2, 3}}, &wide));
        for (int name = 0; name < 4; name++) {
            const char *made[] = {"d", "e", "w", "v"};
            const mpl_value from = name < 2 ? x : name == 2 ? wide : mpl_graph_find(g, "d");

            assert_ok(ctx, mpl_graph_add_op(ctx, g, name < 3 ? MPL_OP_relu : MPL_OP_identity,
                                            made[name], 1, &from, 0, NULL, 1, &made[name], &v));
        }
        for (; n_in < 3 && twice[k].in[n_in] != NULL; n_in++)
            in[n_in] = mpl_graph_find(g, twice[k].in[n_in]);
        assert_ok(ctx, mpl_graph_add_op(ctx, g, twice[k].kind, "y", n_in, in, 0, NULL, 1,
                                        (const char *[]){"y"}, &v));
        assert_ok(ctx, mpl_graph_add_op(ctx, g, MPL_OP_relu, "z", 1, &v, 0, NULL, 1,
                                        (const char *[]){"z"}, &v));
        assert_ok(ctx, mpl_graph_add_output(ctx, g, v));
        assert_ok(ctx, mpl_graph_finish(ctx, g));
        o.views = twice[k].views;
        assert_ok(ctx, mpl_problem_from_graph(ctx, g, order, &o, &p, &map));
        for (uint32_t n = 0; n < p->n_in_place; n++)
            if (p->in_place_step[n] == 4)
                strcat(found, p->buffer_name[p->in_place_in[n]]);
        if (strcmp(found, twice[k].want) != 0)
            fail_msg("%s: '%s' instead of '%s'", twice[k].what, found, twice[k].want);
    }
}

/* Where a value lies, followed through views. */
static mpl_value lies_in(const mpl_graph *g, mpl_value v)
{
    mpl_op op = g->value_op[v];
    mpl_value weight = MPL_NONE;

    for (uint32_t i = 0; op != MPL_NONE && i < g->op_out_begin[op + 1] - g->op_out_begin[op]; i++)
        if (g->op_out[g->op_out_begin[op] + i] == v)
            weight = mpl_updated(g, op, i);
    if (weight != MPL_NONE)
        return lies_in(g, weight);
    if (op != MPL_NONE && (mpl_op_table[g->op_kind[op]].traits & MPL_VIEW) != 0)
        return lies_in(g, g->op_in[g->op_in_begin[op]]);
    return v;
}

TEST(roots_of_views_and_updates)
{
    static const char *const graphs[] = {"mlp:mode=train,update=adam",
                                         "mnist_conv:batch=2,mode=train", "shufflenet_v2:image=32"};
    uint32_t n_views = 0, n_updates = 0;

    for (size_t k = 0; k < sizeof graphs / sizeof *graphs; k++) {
        owned_memory mpl_value *root = NULL;
        owned_graph *g = zoo_graph(ctx, graphs[k]);

        assert_ok(ctx, mpl_new(ctx, root, g->n_values));
        mpl_value_roots(g, root);
        for (mpl_value v = 0; v < g->n_values; v++) {
            assert_int_equal(root[v], lies_in(g, v));
            n_updates += root[v] != v && g->value_role[root[v]] == MPL_WEIGHT;
            n_views += root[v] != v && g->value_role[root[v]] != MPL_WEIGHT;
        }
    }
    assert_true(often(n_views > 20 && n_updates > 10));
}

TEST(workspaces_and_bad_orders)
{
    mpl_op order[MAX_OPS];
    uint64_t bytes[MAX_OPS];
    mpl_problem_options o = mpl_problem_options_default();
    mpl_problem *p = NULL;
    mpl_value_map *map = NULL;
    owned_graph *g = random_graph(ctx, 4);

    assert_true(g->n_ops > 3);
    for (uint32_t i = 0; i < g->n_ops; i++)
        order[i] = i, bytes[i] = i % 2 * (i + 1);
    o.op_workspace_bytes = bytes;
    for (int together = 0; together < 2; together++) {
        o.plan_workspaces = together;
        assert_ok(ctx, mpl_problem_from_graph(ctx, g, order, &o, &p, &map));
        assert_int_equal(p->n_pools, 2 - together);
        for (mpl_op op = 0; op < g->n_ops; op++) {
            mpl_buffer b = map->op_workspace[op];

            assert_int_equal(b != MPL_NONE, op % 2);
            if (b == MPL_NONE)
                continue;
            assert_int_equal(p->bytes[b], op + 1);
            assert_int_equal(p->pool[b], 1 - together);
            assert_int_equal(p->birth[b], op);
            assert_int_equal(p->death[b], op + 1);
        }
        mpl_problem_free(ctx, p);
        mpl_value_map_free(ctx, map);
    }
    order[1] = order[0];
    assert_status(ctx, mpl_problem_from_graph(ctx, g, order, &o, &p, &map), MPL_EINPUT);
    order[1] = g->n_ops;
    assert_status(ctx, mpl_problem_from_graph(ctx, g, order, &o, &p, &map), MPL_EINPUT);
    for (uint32_t i = 0; i < g->n_ops; i++)
        order[i] = g->n_ops - 1 - i;
    assert_status(ctx, mpl_problem_from_graph(ctx, g, order, &o, &p, &map), MPL_EINPUT);
    o.align = 48;
    assert_status(ctx, mpl_problem_from_graph(ctx, g, order, &o, &p, &map), MPL_EINPUT);
}

TEST(survive_lost_memory)
{
    mpl_op order[MAX_OPS];
    uint64_t bytes[MAX_OPS];
    mpl_problem_options o = mpl_problem_options_default();
    owned_graph *g = random_graph(ctx, 4);

    for (uint32_t i = 0; i < g->n_ops; i++)
        order[i] = i, bytes[i] = i;
    o.op_workspace_bytes = bytes;
    EACH_ALLOCATION_FAILS (ctx, st) {
        owned_problem *p = NULL;
        owned_map *map = NULL;

        st = mpl_problem_from_graph(ctx, g, order, &o, &p, &map);
    }
}

/* Peak live bytes of the five light models in file order, inputs and weights pinned, no merging or
 * in-place pairs. Pinning outputs changes nothing, since no output is live at the peak. */
static const struct {
    const char *path;
    uint64_t peak;
} models[] = {
    {MPL_SHARED "/onnx-light/light_bvlc_alexnet.onnx", 2239488},
    {MPL_SHARED "/onnx-light/light_vgg19.onnx", 25690112},
    {MPL_SHARED "/onnx-light/light_inception_v1.onnx", 6422528},
    {MPL_SHARED "/onnx-light/light_resnet50.onnx", 9633792},
    {MPL_SHARED "/onnx-light/light_densenet121.onnx", 8429568},
};

TEST(know_published_peaks)
{
    skip_without(MPL_SHARED "/onnx-light");
    for (size_t i = 0; i < sizeof models / sizeof *models; i++) {
        owned_graph *g = NULL;
        owned_memory mpl_op *order = NULL;

        assert_ok(ctx, mpl_onnx_read(ctx, models[i].path, &(mpl_read_options){0}, &g));
        order = order_by(ctx, g, "given");
        for (int pin = 0; pin < 2; pin++) {
            mpl_problem_options o = mpl_problem_options_default();
            owned_problem *p = NULL;
            owned_map *map = NULL;
            uint64_t peak = 0;

            o.in_place = o.views = false;
            o.pin_outputs = pin;
            assert_ok(ctx, mpl_problem_from_graph(ctx, g, order, &o, &p, &map));
            assert_ok(ctx, mpl_peak_live(ctx, p, 0, &peak, NULL, NULL));
            assert_int_equal(peak, models[i].peak);
        }
    }
}

/* Which operands an output may overwrite: not a part that does not begin at its storage's start,
 * nor one whose storage is also read through another part. */
TEST(pieces_are_not_written_over)
{
    static const char text[] =
        "graph g\ninput x f32 [1,48]\na, b, c = split(x) axis=1 split=[16,16,16]\np = relu(a)\n"
        "q = relu(b)\nr = add(a, b)\ns = add(a, a)\noutput p\noutput q\noutput r\noutput s\n";
    static const struct {
        const char *op;
        uint32_t i;
        bool may;
    } rows[] = {{"p", 0, true}, {"q", 0, false}, {"r", 0, false}, {"r", 1, false}, {"s", 0, true}};
    mpl_alias_options o = {true, 64, NULL, false, true, NULL};
    mpl_alias alias;
    owned_graph *g = NULL;

    assert_ok(ctx, mpl_text_read_memory(ctx, "pieces", text, strlen(text), &g));
    assert_ok(ctx, mpl_alias_new(ctx, g, &o, &alias));
    assert_int_equal(alias.offset[mpl_graph_find(g, "c")], 128);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        assert_int_equal(mpl_in_place_operand(g, alias.root, alias.offset,
                                              g->value_op[mpl_graph_find(g, rows[i].op)],
                                              rows[i].i),
                         rows[i].may);
    mpl_alias_free(ctx, &alias);
}

TESTS(flow_of_paddle_example, flow_round_a_loop, pieces_are_not_written_over, ranges_are_the_flow,
      problems_of_random_graphs, operands_read_twice, roots_of_views_and_updates,
      workspaces_and_bad_orders, survive_lost_memory, know_published_peaks)
