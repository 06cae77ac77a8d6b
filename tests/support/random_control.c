/* random_control.c -- see random_control.h. */
#include "tests/support/random_control.h"

#include "tests/support/interpret.h"

#include "runtime/exec.h"

enum { DEEPEST = 3, MOST_ROUNDS = 4, MOST_VISIBLE = 400, MOST_CARRIED = 6 };

/* Kinds of values: their type and shape. */
enum { SMALL, LINE, SQUARE, FLAT, NUMBER, TRUTH, SCALAR, INDEX, N_KINDS };

typedef struct value_kind {
    mpl_type type;
    mpl_shape shape;
} value_kind;

static const value_kind usual[N_KINDS] = {
    {MPL_TYPE_f32, {1, {4}}},  {MPL_TYPE_f32, {1, {16}}}, {MPL_TYPE_f32, {2, {8, 4}}},
    {MPL_TYPE_f32, {1, {32}}}, {MPL_TYPE_i64, {0, {0}}},  {MPL_TYPE_bool, {0, {0}}},
    {MPL_TYPE_f32, {0, {0}}},  {MPL_TYPE_i32, {0, {0}}},
};
static const value_kind tiny[N_KINDS] = {
    {MPL_TYPE_f32, {1, {1}}}, {MPL_TYPE_f32, {1, {2}}}, {MPL_TYPE_f32, {2, {2, 2}}},
    {MPL_TYPE_f32, {1, {4}}}, {MPL_TYPE_i64, {0, {0}}}, {MPL_TYPE_bool, {0, {0}}},
    {MPL_TYPE_f32, {0, {0}}}, {MPL_TYPE_i32, {0, {0}}},
};

typedef struct maker {
    mpl_ctx *ctx;
    mpl_graph *g;
    mpl_rng rng;
    const value_kind *kinds;         /* [N_KINDS] */
    mpl_value visible[MOST_VISIBLE]; /* of all open blocks */
    uint32_t n_visible, n_names, depth;
    uint32_t n_left; /* operations still to add */
} maker;

static uint32_t below(maker *m, uint32_t n)
{
    return (uint32_t)mpl_rng_below(&m->rng, n);
}

static const char *name_of(maker *m, char letter, char *text)
{
    snprintf(text, 16, "%c%u", letter, m->n_names++);
    return text;
}

static void show(maker *m, mpl_value v)
{
    if (m->n_visible < MOST_VISIBLE)
        m->visible[m->n_visible++] = v;
}

static bool is_kind(const maker *m, mpl_value v, int kind)
{
    return m->g->value_type[v] == m->kinds[kind].type &&
           mpl_shape_equal(&m->g->value_shape[v], &m->kinds[kind].shape);
}

/* A visible value of the kind, favouring the latest; MPL_NONE if there is none. */
static mpl_value pick(maker *m, int kind)
{
    mpl_value found = MPL_NONE;
    uint32_t n = 0;

    for (uint32_t i = m->n_visible; i-- > 0 && n < 12;)
        if (is_kind(m, m->visible[i], kind) && below(m, ++n) == 0)
            found = m->visible[i];
    return found;
}

/* ---- plain operations ---- */

static mpl_value add_op(maker *m, mpl_op_kind kind, uint32_t n_in, const mpl_value *in,
                        uint32_t n_attr, const mpl_attr *attr)
{
    mpl_value out;
    char name[16];
    const char *names[1] = {name_of(m, 'v', name)};

    assert_ok(m->ctx,
              mpl_graph_add_op(m->ctx, m->g, kind, name, n_in, in, n_attr, attr, 1, names, &out));
    show(m, out);
    m->n_left -= m->n_left > 0;
    return out;
}

static mpl_value add_unary(maker *m, mpl_op_kind kind, mpl_value in)
{
    return add_op(m, kind, 1, &in, 0, NULL);
}

static mpl_value add_binary(maker *m, mpl_op_kind kind, mpl_value a, mpl_value b)
{
    return add_op(m, kind, 2, (mpl_value[]){a, b}, 0, NULL);
}

static mpl_value add_weight(maker *m, int kind, double x)
{
    mpl_value out;
    char name[16];
    float f = (float)x;
    int64_t i = (int64_t)x;
    const void *data = m->kinds[kind].type == MPL_TYPE_i64 ? (const void *)&i : (const void *)&f;

    assert_ok(m->ctx, mpl_graph_add_const(m->ctx, m->g, name_of(m, 'w', name), m->kinds[kind].type,
                                          &m->kinds[kind].shape, data, true, &out));
    return out;
}

/* Compares one element of a value with a bound. */
static mpl_value make_truth(maker *m)
{
    mpl_value v = pick(m, below(m, 4)), most;

    if (below(m, 6) == 0 && pick(m, TRUTH) != MPL_NONE)
        return pick(m, TRUTH);
    v = v != MPL_NONE ? v : pick(m, LINE);
    most = add_op(m, MPL_OP_reduce_max, 1, &v, 1, (mpl_attr[]){MPL_INT(keepdims, 0)});
    return add_binary(m, below(m, 2) ? MPL_OP_less : MPL_OP_greater, most,
                      add_weight(m, SCALAR, (double)below(m, 20) / 10 - 0.2));
}

static void make_plain(maker *m)
{
    static const mpl_op_kind unary[] = {MPL_OP_neg,     MPL_OP_tanh,    MPL_OP_sin,
                                        MPL_OP_cos,     MPL_OP_tanh,    MPL_OP_cumsum,
                                        MPL_OP_softmax, MPL_OP_identity};
    static const mpl_op_kind binary[] = {MPL_OP_add, MPL_OP_sub, MPL_OP_mul, MPL_OP_min,
                                         MPL_OP_max};
    int kind = (int)below(m, 4);
    mpl_value a = pick(m, kind), b = pick(m, kind), out;

    if (a == MPL_NONE)
        return;
    if (below(m, 10) == 0 && pick(m, LINE) != MPL_NONE) { /* parts of a whole */
        add_op(m, MPL_OP_concat, 2, (mpl_value[]){pick(m, LINE), pick(m, LINE)}, 1,
               (mpl_attr[]){MPL_INT(axis, 0)});
    } else if (below(m, 10) == 0 && (out = pick(m, FLAT)) != MPL_NONE) {
        int64_t part = m->kinds[LINE].shape.dim[0], begin = part * below(m, 2), end = begin + part;

        add_op(m, MPL_OP_slice, 1, &out, 2,
               (mpl_attr[]){MPL_INTS(starts, 1, &begin), MPL_INTS(ends, 1, &end)});
    } else if (below(m, 8) == 0 && kind >= SQUARE) {
        const mpl_shape *to = &m->kinds[kind == SQUARE ? FLAT : SQUARE].shape;

        add_op(m, MPL_OP_reshape, 1, &a, 1, (mpl_attr[]){MPL_INTS(shape, to->rank, to->dim)});
    } else if (below(m, 2) == 0) {
        mpl_op_kind op = unary[below(m, 8)];

        out = op == MPL_OP_cumsum ? add_op(m, op, 1, &a, 1, (mpl_attr[]){MPL_INT(axis, 0)})
                                  : add_unary(m, op, a);
        if (op == MPL_OP_cumsum)
            add_unary(m, MPL_OP_sin, out); /* keeps sums from growing */
    } else {
        out =
            add_binary(m, binary[below(m, 5)], a, below(m, 6) == 0 ? add_weight(m, kind, 0.5) : b);
        if (below(m, 2) == 0)
            add_unary(m, MPL_OP_sin, out);
    }
}

/* ---- blocks ---- */

static void make_block(maker *m, bool in_loop);

/* A branch's or round's result: any visible value of that kind. */
static mpl_value result_of(maker *m, int kind)
{
    if (kind < NUMBER && below(m, 12) == 0)
        return add_weight(m, kind, 0.25);
    return pick(m, kind);
}

typedef struct loop {
    uint32_t n_carried, n_scans, n_rows;
    int carried[MOST_CARRIED], row[2];
    mpl_value in[2 + MOST_CARRIED + 2], param[1 + MOST_CARRIED + 2];
} loop;

/* A visible value to split into rows; they give the number of rounds. */
static mpl_value pick_stack(maker *m, int64_t rounds)
{
    mpl_value found = MPL_NONE;
    uint32_t n = 0;

    for (uint32_t i = 0; i < m->n_visible; i++) {
        const mpl_shape *shape = &m->g->value_shape[m->visible[i]];
        mpl_shape row = {shape->rank - 1, {0}};

        if (shape->rank < 2 || m->g->value_type[m->visible[i]] != MPL_TYPE_f32 ||
            shape->dim[0] > MOST_ROUNDS || (rounds >= 0 && shape->dim[0] != rounds))
            continue;
        memcpy(row.dim, shape->dim + 1, row.rank * sizeof *row.dim);
        for (int kind = 0; kind < NUMBER; kind++)
            if (mpl_shape_equal(&row, &m->kinds[kind].shape) && below(m, ++n) == 0)
                found = m->visible[i];
    }
    return found;
}

static void choose_inputs(maker *m, loop *l)
{
    int64_t rounds = -1;

    l->in[0] = below(m, 2)        ? pick(m, NUMBER)
               : below(m, 4) == 0 ? add_weight(m, NUMBER, below(m, 5))
                                  : MPL_NONE;
    l->in[1] = below(m, 5) == 0 ? make_truth(m) : MPL_NONE;
    for (uint32_t i = below(m, 5) + below(m, 3); i > 0 && l->n_carried < MOST_CARRIED; i--) {
        int kind = below(m, 10) == 0 ? NUMBER : (int)below(m, 4);
        mpl_value init = l->n_carried > 0 && below(m, 2) ? l->in[2 + below(m, l->n_carried)]
                                                         : result_of(m, kind);

        if (init == MPL_NONE)
            continue;
        for (int k = 0; k < N_KINDS; k++)
            if (is_kind(m, init, k))
                l->carried[l->n_carried] = k;
        l->in[2 + l->n_carried++] = init;
    }
    for (uint32_t i = below(m, 3); i > 0; i--) {
        mpl_value stack = pick_stack(m, rounds);

        if (stack == MPL_NONE)
            continue;
        rounds = m->g->value_shape[stack].dim[0];
        l->in[2 + l->n_carried + l->n_scans++] = stack;
    }
    l->n_rows = below(m, 3);
}

static void add_param(maker *m, mpl_type type, const mpl_shape *shape, mpl_value *out)
{
    char name[16];

    assert_ok(m->ctx, mpl_graph_add_param(m->ctx, m->g, name_of(m, 'p', name), type, shape, out));
    show(m, *out);
}

static void open_body(maker *m, loop *l)
{
    uint32_t block;
    char name[16];

    assert_ok(m->ctx, mpl_graph_open_block(m->ctx, m->g, name_of(m, 'b', name), &block));
    add_param(m, MPL_TYPE_i64, &m->kinds[NUMBER].shape, &l->param[0]);
    for (uint32_t i = 0; i < l->n_carried; i++)
        add_param(m, m->kinds[l->carried[i]].type, &m->kinds[l->carried[i]].shape,
                  &l->param[1 + i]);
    for (uint32_t i = 0; i < l->n_scans; i++) {
        mpl_shape row = m->g->value_shape[l->in[2 + l->n_carried + i]];

        memmove(row.dim, row.dim + 1, --row.rank * sizeof *row.dim);
        add_param(m, MPL_TYPE_f32, &row, &l->param[1 + l->n_carried + i]);
    }
}

/* Next value of carried value i: the latest in over a third of cases, or another parameter. */
static mpl_value carry(maker *m, const loop *l, uint32_t i)
{
    uint32_t how = below(m, 5), other = (i + 1) % l->n_carried;

    if (how == 0 && l->carried[other] == l->carried[i])
        return l->param[1 + other]; /* shifted or rotated */
    if (how == 1 && below(m, 2) == 0)
        return l->param[1 + i]; /* unchanged */
    return result_of(m, l->carried[i]);
}

static void make_while(maker *m)
{
    loop l = {0};
    mpl_value result[1 + MOST_CARRIED + 2], out[MOST_CARRIED + 2];
    uint32_t mark, body, n = 0;
    int64_t reverse[4], trips = -1, n_carried;
    mpl_attr attr[3];
    char text[MOST_CARRIED + 2][16], name[16];
    const char *names[MOST_CARRIED + 2];

    choose_inputs(m, &l);
    mark = m->n_visible;
    m->depth++;
    open_body(m, &l);
    make_block(m, true);
    result[0] = below(m, 6) == 0 ? make_truth(m) : MPL_NONE;
    for (uint32_t i = 0; i < l.n_carried; i++)
        result[1 + i] = carry(m, &l, i);
    for (uint32_t i = 0; i < l.n_rows; i++)
        do
            result[1 + l.n_carried + i] = result_of(m, (int)below(m, 5));
        while (result[1 + l.n_carried + i] == MPL_NONE);
    assert_ok(m->ctx, mpl_graph_close_block(m->ctx, m->g, 1 + l.n_carried + l.n_rows, result));
    m->n_visible = mark;
    m->depth--;
    body = m->g->n_blocks - 1;
    while (m->g->block_owner[body] != MPL_NONE)
        body--;
    for (uint32_t i = 0; i < 4; i++)
        reverse[i] = below(m, 2);
    for (uint32_t i = 0; i < l.n_carried + l.n_rows; i++)
        names[i] = below(m, 8) == 0 ? NULL : name_of(m, 'o', text[i]);
    n_carried = l.n_carried;
    if (l.n_scans == 0)
        trips = below(m, MOST_ROUNDS + 1);
    attr[n++] = (mpl_attr){MPL_ATTR_carried, 1, &n_carried, NULL, NULL};
    if (trips >= 0)
        attr[n++] = (mpl_attr){MPL_ATTR_trips, 1, &trips, NULL, NULL};
    if (l.n_scans + l.n_rows > 0)
        attr[n++] = (mpl_attr){MPL_ATTR_scan_reverse, l.n_scans + l.n_rows, reverse, NULL, NULL};
    assert_ok(m->ctx, mpl_graph_add_control(m->ctx, m->g, MPL_OP_while, name_of(m, 'l', name),
                                            2 + l.n_carried + l.n_scans, l.in, n, attr, 1, &body,
                                            l.n_carried + l.n_rows, names, out));
    for (uint32_t i = 0; i < l.n_carried + l.n_rows; i++)
        if (out[i] != MPL_NONE)
            show(m, out[i]);
}

static void make_case(maker *m)
{
    uint32_t n_branches = 1 + below(m, 3), n_out = 1 + below(m, 2), mark = m->n_visible, body[3];
    mpl_value in[3], result[2], out[2], number = pick(m, NUMBER);
    int kind[2];
    bool bypass = true;
    char text[2][16], name[16];
    const char *names[2];

    if (below(m, 3) == 0) {
        in[0] = make_truth(m);
        n_branches = 2;
        bypass = below(m, 2) == 0;
    } else if (number != MPL_NONE && below(m, 2)) { /* -1 to n_branches - 1 */
        in[0] = add_binary(m, MPL_OP_mod, number, add_weight(m, NUMBER, n_branches + 1));
        in[0] = add_binary(m, MPL_OP_sub, in[0], add_weight(m, NUMBER, 1));
    } else { /* an input is from -1 to 0 */
        in[0] = pick(m, INDEX);
    }
    for (uint32_t i = 0; i < n_out; i++) {
        do
            kind[i] = (int)below(m, 4);
        while ((in[1 + i] = pick(m, kind[i])) == MPL_NONE);
    }
    mark = m->n_visible;
    m->depth++;
    for (uint32_t k = 0; k < n_branches; k++) {
        assert_ok(m->ctx, mpl_graph_open_block(m->ctx, m->g, name_of(m, 'b', name), &body[k]));
        make_block(m, false);
        for (uint32_t i = 0; i < n_out; i++)
            result[i] = result_of(m, kind[i]);
        assert_ok(m->ctx, mpl_graph_close_block(m->ctx, m->g, n_out, result));
        m->n_visible = mark;
    }
    m->depth--;
    for (uint32_t i = 0; i < n_out; i++)
        names[i] = below(m, 10) == 0 ? NULL : name_of(m, 'o', text[i]);
    assert_ok(m->ctx, mpl_graph_add_control(m->ctx, m->g, MPL_OP_case, name_of(m, 'c', name),
                                            bypass ? 1 + n_out : 1, in, 0, NULL, n_branches, body,
                                            n_out, names, out));
    for (uint32_t i = 0; i < n_out; i++)
        if (out[i] != MPL_NONE)
            show(m, out[i]);
}

static void make_exit(maker *m)
{
    mpl_value in = make_truth(m);
    char name[16];

    assert_ok(m->ctx, mpl_graph_add_op(m->ctx, m->g, MPL_OP_exit_unless, name_of(m, 'e', name), 1,
                                       &in, 0, NULL, 0, NULL, NULL));
}

static void make_block(maker *m, bool in_loop)
{
    uint32_t outer = m->n_left > 60 ? m->n_left / 3 : 6; /* a large graph is wide */

    for (uint32_t n = m->depth == 0 ? outer : below(m, 5); n > 0 && m->n_left > 0; n--) {
        uint32_t how = below(m, 10);

        if (how < 2 && m->depth < DEEPEST)
            make_while(m);
        else if (how == 2 && m->depth < DEEPEST)
            make_case(m);
        else if (how == 3 && in_loop)
            make_exit(m);
        else
            make_plain(m);
    }
}

/* ---- the graph ---- */

static void add_input(maker *m, mpl_type type, mpl_shape shape)
{
    mpl_value v;
    char name[16];

    assert_ok(m->ctx, mpl_graph_add_value(m->ctx, m->g, name_of(m, 'x', name), MPL_INPUT, type,
                                          &shape, &v));
    show(m, v);
}

static mpl_graph *make_graph(mpl_ctx *ctx, uint64_t seed, uint32_t most_ops,
                             const value_kind *kinds)
{
    maker m = {.ctx = ctx, .n_left = most_ops, .kinds = kinds};

    m.rng = mpl_rng_of(seed);
    assert_ok(ctx, mpl_graph_new(ctx, "random", &m.g));
    for (int kind = 0; kind < N_KINDS; kind++)
        if (kind != SCALAR)
            add_input(&m, m.kinds[kind].type, m.kinds[kind].shape);
    for (int kind = 0; kind < 2; kind++) {
        mpl_shape stack = {2, {2 + below(&m, 3), m.kinds[kind].shape.dim[0]}};

        add_input(&m, MPL_TYPE_f32, stack);
    }
    make_while(&m);
    make_block(&m, false);
    for (uint32_t n = 2 + below(&m, 4), i = 0; i < n; i++) {
        mpl_value v = m.visible[m.n_visible - 1 - below(&m, m.n_visible < 12 ? m.n_visible : 12)];
        bool twice = false;

        for (uint32_t k = 0; k < m.g->n_outputs; k++)
            twice = twice || m.g->output[k] == v;
        if (!twice)
            assert_ok(ctx, mpl_graph_add_output(ctx, m.g, v));
    }
    assert_ok(ctx, mpl_graph_finish(ctx, m.g));
    return m.g;
}

mpl_graph *random_control(mpl_ctx *ctx, uint64_t seed)
{
    return make_graph(ctx, seed, 60, usual);
}

mpl_graph *random_control_of(mpl_ctx *ctx, uint64_t seed, uint32_t most_ops)
{
    return make_graph(ctx, seed, most_ops, usual);
}

mpl_graph *random_control_tiny(mpl_ctx *ctx, uint64_t seed, uint32_t most_ops)
{
    return make_graph(ctx, seed, most_ops, tiny);
}

void random_control_input(const mpl_graph *g, uint32_t i, uint64_t seed, void *data)
{
    mpl_value v = g->input[i];
    mpl_rng rng = mpl_rng_of(seed * 1000 + i);

    if (g->value_type[v] == MPL_TYPE_f32)
        for (uint64_t k = 0; k < g->value_bytes[v] / 4; k++)
            ((float *)data)[k] = 2 * mpl_rng_float(&rng) - 1;
    else if (g->value_type[v] == MPL_TYPE_i64)
        *(int64_t *)data = (int64_t)mpl_rng_below(&rng, MOST_ROUNDS + 2);
    else if (g->value_type[v] == MPL_TYPE_i32)
        *(int32_t *)data = (int32_t)mpl_rng_below(&rng, 2) - 1;
    else
        *(uint8_t *)data = (uint8_t)mpl_rng_below(&rng, 2);
}

void direct_run(mpl_ctx *ctx, const mpl_graph *g, const void *const *input, void *const *output)
{
    interpreter it = interpret_begin(ctx, g);

    for (mpl_value v = 0; v < g->n_values; v++)
        if (g->value_role[v] == MPL_WEIGHT)
            mpl_exec_make_weight(g, &(mpl_exec_options){0}, v, it.data[v]);
    for (uint32_t i = 0; i < g->n_inputs; i++)
        memcpy(it.data[g->input[i]], input[i], g->value_bytes[g->input[i]]);
    assert_ok(ctx, interpret(&it));
    for (uint32_t i = 0; i < g->n_outputs; i++)
        memcpy(output[i], it.data[g->output[i]], g->value_bytes[g->output[i]]);
    interpret_end(&it);
}
