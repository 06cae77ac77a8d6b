/* random_edges.h -- small graphs of rare cases: values that are both inputs or weights and outputs,
 * that are outputs twice, have no bytes or are never read; graphs without operations; loops and
 * branches that only pass values through. */
#pragma once

#include "tests/support/test.h"

#include "graphs/core/rng.h"

enum {
    EDGE_LINE,
    EDGE_WIDE,
    EDGE_ONE,
    EDGE_SQUARE,
    EDGE_NONE,
    EDGE_NO_ROWS,
    EDGE_KINDS,
    EDGE_MOST = 64
};

static const mpl_shape edge_shape[EDGE_KINDS] = {
    {1, {3}}, {1, {40}}, {0, {0}}, {2, {4, 4}}, {1, {0}}, {2, {2, 0}},
};

typedef struct edge_maker {
    mpl_ctx *ctx;
    mpl_graph *g;
    mpl_rng rng;
    uint32_t n_names, n_visible;
    mpl_value visible[EDGE_MOST];
} edge_maker;

static inline uint32_t edge_below(edge_maker *m, uint32_t n)
{
    return (uint32_t)mpl_rng_below(&m->rng, n);
}

static inline const char *edge_name(edge_maker *m, char letter, char text[16])
{
    snprintf(text, 16, "%c%u", letter, m->n_names++);
    return text;
}

static inline void edge_show(edge_maker *m, mpl_value v)
{
    if (v != MPL_NONE && m->n_visible < EDGE_MOST)
        m->visible[m->n_visible++] = v;
}

/* Any visible value of that shape; MPL_NONE if there is none. */
static inline mpl_value edge_pick(edge_maker *m, const mpl_shape *shape)
{
    mpl_value found = MPL_NONE;
    uint32_t n = 0;

    for (uint32_t i = 0; i < m->n_visible; i++)
        if (mpl_shape_equal(&m->g->value_shape[m->visible[i]], shape) && edge_below(m, ++n) == 0)
            found = m->visible[i];
    return found;
}

/* Adds an input or a weight: from the seed, of one number, or with data of its own. */
static inline mpl_value edge_add_outside(edge_maker *m)
{
    const mpl_shape *shape = &edge_shape[edge_below(m, EDGE_KINDS)];
    uint32_t how = edge_below(m, 6);
    float data[40];
    char name[16];
    mpl_value v;

    for (int i = 0; i < 40; i++)
        data[i] = (float)i / 8 - 2;
    edge_name(m, how < 3 ? 'x' : 'w', name);
    if (how < 4)
        assert_ok(m->ctx, mpl_graph_add_value(m->ctx, m->g, name, how < 3 ? MPL_INPUT : MPL_WEIGHT,
                                              MPL_TYPE_f32, shape, &v));
    else
        assert_ok(m->ctx,
                  mpl_graph_add_const(m->ctx, m->g, name, MPL_TYPE_f32, shape, data, how == 4, &v));
    edge_show(m, v);
    return v;
}

/* Adds an operation on random values if it accepts them; the second output may be omitted. */
static inline void edge_add(edge_maker *m, mpl_op_kind kind, uint32_t n_in, const mpl_value *in,
                            uint32_t n_attr, const mpl_attr *attr, uint32_t n_out)
{
    char text[3][16];
    const char *name[2] = {edge_name(m, 'v', text[0]),
                           edge_below(m, 2) ? edge_name(m, 'v', text[1]) : NULL};
    mpl_value out[2] = {MPL_NONE, MPL_NONE};

    if (mpl_graph_add_op(m->ctx, m->g, kind, edge_name(m, 'o', text[2]), n_in, in, n_attr, attr,
                         n_out, name, out) != MPL_OK)
        return;
    for (uint32_t i = 0; i < n_out; i++)
        if (m->g->value_type[out[i] != MPL_NONE ? out[i] : 0] == MPL_TYPE_f32)
            edge_show(m, out[i]);
}

static inline void edge_add_plain(edge_maker *m)
{
    static const mpl_op_kind unary[] = {MPL_OP_relu, MPL_OP_tanh, MPL_OP_identity, MPL_OP_neg};
    mpl_value a = m->visible[edge_below(m, m->n_visible)], b = edge_pick(m, &m->g->value_shape[a]),
              in[3] = {a, b, a};
    int64_t flat = -1, whole[2] = {4, 4}, begin = edge_below(m, 3),
            end = begin + edge_below(m, 3) - 1;

    switch (edge_below(m, 9)) {
    case 0:
        edge_add(m, MPL_OP_add, 2, in, 0, NULL, 1);
        break;
    case 1:
        edge_add(m, MPL_OP_dropout, 1, in, 0, NULL, 2);
        break;
    case 2: /* includes values without rows, and one value several times */
        in[1] = m->visible[edge_below(m, m->n_visible)];
        edge_add(m, MPL_OP_concat, 2 + edge_below(m, 2), in, 1, (mpl_attr[]){MPL_INT(axis, 0)}, 1);
        break;
    case 3:
        edge_add(m, MPL_OP_split, 1, in, 1, (mpl_attr[]){MPL_INT(axis, 0)}, 2);
        break;
    case 4:
        edge_add(m, MPL_OP_slice, 1, in, 2,
                 (mpl_attr[]){MPL_INTS(starts, 1, &begin), MPL_INTS(ends, 1, &end)}, 1);
        break;
    case 5:
        end = edge_below(m, 2);
        edge_add(m, MPL_OP_reshape, 1, in, 1,
                 (mpl_attr[]){MPL_INTS(shape, end == 0 ? 1 : 2, end == 0 ? &flat : whole)}, 1);
        break;
    default:
        edge_add(m, unary[edge_below(m, 4)], 1, in, 0, NULL, 1);
    }
}

static inline void edge_add_plains(edge_maker *m, uint32_t n)
{
    while (n-- > 0 && m->n_visible > 0)
        edge_add_plain(m);
}

/* A loop of up to three rounds with carried values and rows. Its body may be empty: its results are
 * then parameters, also permuted, or captures. */
static inline void edge_add_while(edge_maker *m)
{
    uint32_t mark = m->n_visible, n_rows = edge_below(m, 2), body;
    int64_t n = 1 + edge_below(m, 3), trips = edge_below(m, 4);
    mpl_value in[5] = {MPL_NONE, MPL_NONE}, result[6] = {MPL_NONE}, out[4];
    const char *name[4];
    char text[5][16];

    for (int64_t i = 0; i < n; i++)
        in[2 + i] = m->visible[edge_below(m, m->n_visible)];
    assert_ok(m->ctx, mpl_graph_open_block(m->ctx, m->g, edge_name(m, 'b', text[0]), &body));
    for (int64_t i = 0; i <= n; i++) {
        mpl_shape shape = i == 0 ? edge_shape[EDGE_ONE] : m->g->value_shape[in[1 + i]];
        mpl_value param;

        assert_ok(m->ctx,
                  mpl_graph_add_param(m->ctx, m->g, edge_name(m, 'p', text[0]),
                                      i == 0 ? MPL_TYPE_i64 : MPL_TYPE_f32, &shape, &param));
        if (i > 0)
            edge_show(m, param);
    }
    edge_add_plains(m, edge_below(m, 3));
    for (int64_t i = 0; i < n; i++)
        result[1 + i] = edge_pick(m, &m->g->value_shape[in[2 + i]]);
    result[1 + n] = m->visible[edge_below(m, m->n_visible)];
    assert_ok(m->ctx, mpl_graph_close_block(m->ctx, m->g, 1 + (uint32_t)n + n_rows, result));
    m->n_visible = mark;
    for (int64_t i = 0; i < n + n_rows; i++)
        name[i] = edge_below(m, 4) == 0 ? NULL : edge_name(m, 'v', text[i]);
    assert_ok(m->ctx, mpl_graph_add_control(
                          m->ctx, m->g, MPL_OP_while, edge_name(m, 'o', text[4]), 2 + (uint32_t)n,
                          in, 2, (mpl_attr[]){MPL_INT(carried, n), MPL_INT(trips, trips)}, 1, &body,
                          (uint32_t)n + n_rows, name, out));
    for (int64_t i = 0; i < n + n_rows; i++)
        edge_show(m, out[i]);
}

/* Branches that may only return captures; the index is an input from -1 to 1. */
static inline void edge_add_case(edge_maker *m)
{
    uint32_t mark = m->n_visible, n = 1 + edge_below(m, 2), body[2];
    mpl_value in[3], result[2], out[2];
    const char *name[2];
    char text[4][16];

    assert_ok(m->ctx, mpl_graph_add_value(m->ctx, m->g, edge_name(m, 'x', text[0]), MPL_INPUT,
                                          MPL_TYPE_i32, &edge_shape[EDGE_ONE], &in[0]));
    for (uint32_t i = 0; i < n; i++)
        in[1 + i] = m->visible[edge_below(m, m->n_visible)];
    for (uint32_t k = 0; k < 2; k++) {
        assert_ok(m->ctx, mpl_graph_open_block(m->ctx, m->g, edge_name(m, 'b', text[0]), &body[k]));
        edge_add_plains(m, edge_below(m, 2));
        for (uint32_t i = 0; i < n; i++)
            result[i] = edge_pick(m, &m->g->value_shape[in[1 + i]]);
        assert_ok(m->ctx, mpl_graph_close_block(m->ctx, m->g, n, result));
        m->n_visible = mark;
    }
    for (uint32_t i = 0; i < n; i++)
        name[i] = edge_below(m, 4) == 0 ? NULL : edge_name(m, 'v', text[i]);
    assert_ok(m->ctx, mpl_graph_add_control(m->ctx, m->g, MPL_OP_case, edge_name(m, 'o', text[3]),
                                            1 + n, in, 0, NULL, 2, body, n, name, out));
    for (uint32_t i = 0; i < n; i++)
        edge_show(m, out[i]);
}

/* The same seed gives the same graph. One in five has no operations, one in three has loops or
 * branches. */
static inline mpl_graph *random_edges(mpl_ctx *ctx, uint64_t seed)
{
    edge_maker m = {.ctx = ctx};

    m.rng = mpl_rng_of(seed);
    assert_ok(ctx, mpl_graph_new(ctx, "edges", &m.g));
    for (uint32_t i = 1 + edge_below(&m, 4); i > 0; i--)
        edge_add_outside(&m);
    for (uint32_t i = seed % 5 == 0 ? 0 : 1 + edge_below(&m, 5); i > 0; i--) {
        uint32_t how = edge_below(&m, seed % 3 == 1 ? 4 : 100);

        if (how == 0 && seed % 3 == 1)
            edge_add_while(&m);
        else if (how == 1 && seed % 3 == 1)
            edge_add_case(&m);
        else
            edge_add_plain(&m);
        if (edge_below(&m, 6) == 0)
            edge_add_outside(&m);
    }
    for (uint32_t i = 1 + edge_below(&m, 4); i > 0; i--)
        assert_ok(ctx, mpl_graph_add_output(ctx, m.g, m.visible[edge_below(&m, m.n_visible)]));
    assert_ok(ctx, mpl_graph_finish(ctx, m.g));
    return m.g;
}
