/* sharing_graph.h -- small random graphs in which values can lie in others: concats of runs and of
 * boxes, nested or with common operands, their results viewed or split again; splits and slices;
 * operations in place, with several readers or none. */
#pragma once

#include "graphs/core/rng.h"
#include "tests/support/test.h"

/* Values have few slots of the alignment, so that every placement can be tried. */
enum { SHARING_MOST_OPS = 8, SHARING_MOST_UNITS = 12 };

typedef struct sharing_maker {
    mpl_ctx *ctx;
    mpl_graph *g;
    mpl_rng rng;
    int64_t unit; /* numbers in a column of a value */
    uint32_t n_names;
} sharing_maker;

static inline uint32_t sharing_below(sharing_maker *m, uint32_t n)
{
    return (uint32_t)mpl_rng_below(&m->rng, n);
}

static inline int64_t sharing_units(const sharing_maker *m, const mpl_shape *shape)
{
    return mpl_count(shape) / m->unit;
}

/* One row of up to three columns in five of eight cases; rarely none. */
static inline mpl_shape sharing_shape(sharing_maker *m)
{
    int64_t rows = sharing_below(m, 8) < 5 ? 1 : 2, columns = 1 + sharing_below(m, 3);

    if (sharing_below(m, 40) == 0)
        rows = 0;
    if (sharing_below(m, 6) == 0)
        return (mpl_shape){1, {rows * columns * m->unit}};
    return (mpl_shape){2, {rows, columns * m->unit}};
}

static inline bool sharing_is_read(const mpl_graph *g, mpl_value v)
{
    for (uint32_t i = 0; i < g->op_in_begin[g->n_ops]; i++)
        if (g->op_in[i] == v)
            return true;
    return false;
}

/* A value of floats, more often one that an operation makes and that nothing reads yet. */
static inline mpl_value sharing_pick(sharing_maker *m)
{
    const mpl_graph *g = m->g;
    mpl_value v = 0;

    for (uint32_t tries = 0; tries < 4; tries++) {
        v = sharing_below(m, g->n_values);
        if (g->value_type[v] == MPL_TYPE_f32 && g->value_op[v] != MPL_NONE &&
            !sharing_is_read(g, v))
            return v;
    }
    while (g->value_type[v] != MPL_TYPE_f32)
        v = sharing_below(m, g->n_values);
    return v;
}

/* Adds an operation if the operands suit it. */
static inline bool sharing_add(sharing_maker *m, mpl_op_kind kind, uint32_t n_in,
                               const mpl_value *in, uint32_t n_attr, const mpl_attr *attr,
                               uint32_t n_out)
{
    char text[3][16];
    const char *name[3] = {text[0], text[1], text[2]};

    for (uint32_t i = 0; i < 3; i++)
        snprintf(text[i], sizeof text[i], "v%u", m->n_names++);
    return mpl_graph_add_op(m->ctx, m->g, kind, text[0], n_in, in, n_attr, attr, n_out, name,
                            NULL) == MPL_OK;
}

/* Whether a and b have the same dims but for that of `axis`. */
static inline bool sharing_fit(const mpl_shape *a, const mpl_shape *b, uint32_t axis)
{
    mpl_shape other = *b;

    if (a->rank != b->rank)
        return false;
    other.dim[axis] = a->dim[axis];
    return mpl_shape_equal(a, &other);
}

/* Concatenates two or three values. They are distinct nearly always. */
static inline bool sharing_concat(sharing_maker *m)
{
    const mpl_graph *g = m->g;
    mpl_value in[3] = {sharing_pick(m)};
    const mpl_shape *shape = &g->value_shape[in[0]];
    uint32_t n = 1, most = 2 + sharing_below(m, 2);
    uint32_t axis = shape->rank > 0 ? sharing_below(m, shape->rank) : 0;
    int64_t units = sharing_units(m, shape), negative = (int64_t)axis - shape->rank;

    for (uint32_t tries = 0; tries < 12 && n < most && shape->rank > 0; tries++) {
        mpl_value v = sharing_pick(m);
        bool twice = v == in[0] || (n > 1 && v == in[1]);

        if (!sharing_fit(shape, &g->value_shape[v], axis) || (twice && sharing_below(m, 12) > 0) ||
            units + sharing_units(m, &g->value_shape[v]) > SHARING_MOST_UNITS)
            continue;
        units += sharing_units(m, &g->value_shape[v]);
        in[n++] = v;
    }
    if (n < 2)
        return false;
    return sharing_add(m, MPL_OP_concat, n, in, 1,
                       (mpl_attr[]){MPL_INT(axis, sharing_below(m, 4) ? (int64_t)axis : negative)},
                       1);
}

/* Splits a value in two, or takes some rows, columns or every second one of it. */
static inline bool sharing_split(sharing_maker *m, bool slice)
{
    mpl_value in = sharing_pick(m);
    const mpl_shape *shape = &m->g->value_shape[in];
    int64_t axis = shape->rank > 0 ? sharing_below(m, shape->rank) : 0, size, grain, begin, end;
    int64_t step = sharing_below(m, 6) == 0 ? 2 : 1;

    if (shape->rank == 0)
        return false;
    size = shape->dim[axis];
    grain = size % m->unit == 0 && sharing_below(m, 8) > 0 ? m->unit : 1;
    if (size / grain < 2)
        return false;
    begin = grain * sharing_below(m, (uint32_t)(size / grain));
    end = begin + grain * (1 + sharing_below(m, (uint32_t)((size - begin) / grain)));
    if (slice)
        return sharing_add(m, MPL_OP_slice, 1, &in, 4,
                           (mpl_attr[]){MPL_INTS(starts, 1, &begin), MPL_INTS(ends, 1, &end),
                                        MPL_INTS(axes, 1, &axis), MPL_INTS(steps, 1, &step)},
                           1);
    if (begin == 0)
        begin = grain;
    return sharing_add(
        m, MPL_OP_split, 1, &in, 2,
        (mpl_attr[]){MPL_INT(axis, axis), MPL_INTS(split, 2, ((int64_t[]){begin, size - begin}))},
        2);
}

/* Other dims: one line, one row, or single columns. */
static inline bool sharing_reshape(sharing_maker *m)
{
    mpl_value in = sharing_pick(m);
    int64_t count = mpl_count(&m->g->value_shape[in]), dim[2] = {1, count};

    switch (sharing_below(m, 4)) {
    case 0:
        return sharing_add(m, MPL_OP_reshape, 1, &in, 1, (mpl_attr[]){MPL_INTS(shape, 1, &count)},
                           1);
    case 1:
        return sharing_add(m, MPL_OP_identity, 1, &in, 0, NULL, 1);
    case 2:
        dim[0] = count / m->unit, dim[1] = m->unit;
        break;
    default:
        break;
    }
    return dim[0] * dim[1] == count && count > 0 &&
           sharing_add(m, MPL_OP_reshape, 1, &in, 1, (mpl_attr[]){MPL_INTS(shape, 2, dim)}, 1);
}

/* A product with a new weight: any number of columns, never in place. */
static inline bool sharing_matmul(sharing_maker *m)
{
    mpl_value in[2] = {sharing_pick(m)};
    const mpl_shape *shape = &m->g->value_shape[in[0]];
    mpl_shape weight = {2, {shape->dim[1], (1 + sharing_below(m, 3)) * m->unit}};
    char name[16];

    if (shape->rank != 2 || shape->dim[0] * weight.dim[1] > SHARING_MOST_UNITS * m->unit ||
        weight.dim[0] > 2 * m->unit || weight.dim[0] == 0)
        return false;
    snprintf(name, sizeof name, "w%u", m->n_names++);
    assert_ok(m->ctx,
              mpl_graph_add_value(m->ctx, m->g, name, MPL_WEIGHT, MPL_TYPE_f32, &weight, &in[1]));
    return sharing_add(m, MPL_OP_matmul, 2, in, 0, NULL, 1);
}

/* An operation on each element; of two values where another one has the same dims. */
static inline bool sharing_elementwise(sharing_maker *m)
{
    mpl_value in[2] = {sharing_pick(m), sharing_pick(m)};
    bool equal = mpl_shape_equal(&m->g->value_shape[in[0]], &m->g->value_shape[in[1]]);

    if (equal && (in[0] != in[1] || sharing_below(m, 3) == 0))
        return sharing_add(m, MPL_OP_add, 2, in, 0, NULL, 1);
    return sharing_add(m, sharing_below(m, 2) ? MPL_OP_relu : MPL_OP_neg, 1, in, 0, NULL, 1);
}

static inline bool sharing_add_any(sharing_maker *m)
{
    static const uint8_t weight[] = {7, 8, 2, 2, 2, 2, 1, 1, 3};
    uint32_t at = sharing_below(m, 28), kind = 0;
    mpl_value in = sharing_pick(m);

    while (at >= weight[kind])
        at -= weight[kind++];
    switch (kind) {
    case 0:
        return sharing_elementwise(m);
    case 1:
        return sharing_concat(m) || sharing_concat(m) || sharing_concat(m) || sharing_concat(m);
    case 2:
        return sharing_split(m, false);
    case 3:
        return sharing_split(m, true);
    case 4:
        return sharing_reshape(m);
    case 5:
        return sharing_matmul(m);
    case 6: /* two outputs, the second of another type */
        return sharing_add(m, MPL_OP_dropout, 1, &in, 0, NULL,
                           1 + sharing_below(m, 2) * (m->unit % 4 == 0));
    case 7: /* not in place */
        return sharing_add(m, MPL_OP_transpose, 1, &in, 0, NULL, 1);
    default: /* small */
        return sharing_add(m, MPL_OP_reduce_sum, 1, &in, 0, NULL, 1);
    }
}

/* Results that nothing reads are outputs, most of them; so is a value here and there. */
static inline void sharing_outputs(sharing_maker *m)
{
    mpl_graph *g = m->g;
    bool few = sharing_below(m, 2);

    for (mpl_value v = 0; v < g->n_values; v++)
        if (g->value_op[v] != MPL_NONE && g->value_type[v] == MPL_TYPE_f32 &&
            sharing_below(m, 20) < (sharing_is_read(g, v) ? 1
                                    : few                 ? 4
                                                          : 16))
            assert_ok(m->ctx, mpl_graph_add_output(m->ctx, g, v));
    if (g->n_outputs == 0)
        assert_ok(m->ctx, mpl_graph_add_output(m->ctx, g, sharing_pick(m)));
}

/* Options for a graph of such units. A unit is one slot, some, or a part of one. */
static inline mpl_problem_options sharing_options(sharing_maker *m)
{
    static const struct {
        uint32_t align;
        int64_t unit;
    } sizes[] = {{64, 16}, {64, 16}, {64, 8}, {64, 12}, {64, 10}, {4, 1}, {1, 1}, {16, 3}, {8, 3}};
    uint32_t how = sharing_below(m, sizeof sizes / sizeof *sizes), concat = sharing_below(m, 12);
    mpl_problem_options o = mpl_problem_options_default();

    m->unit = sizes[how].unit;
    o.align = sizes[how].align;
    o.in_place = sharing_below(m, 6) > 0;
    o.views = sharing_below(m, 12) > 0;
    o.boxes = sharing_below(m, 4) > 0;
    o.pin_inputs = sharing_below(m, 4) > 0;
    o.pin_weights = sharing_below(m, 8) > 0;
    o.pin_outputs = sharing_below(m, 2) > 0;
    o.concat = concat == 0 ? MPL_CONCAT_SHARE : concat == 1 ? MPL_CONCAT_COPY : MPL_CONCAT_AUTO;
    return o;
}

/* The same seed gives the same graph and options. */
static inline mpl_graph *sharing_graph(mpl_ctx *ctx, uint64_t seed, uint32_t n_ops,
                                       mpl_problem_options *options)
{
    sharing_maker m = {.ctx = ctx};
    mpl_value v;

    m.rng = mpl_rng_of(seed);
    *options = sharing_options(&m);
    assert_ok(ctx, mpl_graph_new(ctx, "sharing", &m.g));
    for (uint32_t i = 1 + sharing_below(&m, 2); i > 0; i--) {
        mpl_shape shape = sharing_shape(&m);
        char name[16];

        snprintf(name, sizeof name, "x%u", m.n_names++);
        assert_ok(ctx,
                  mpl_graph_add_value(ctx, m.g, name, sharing_below(&m, 6) ? MPL_INPUT : MPL_WEIGHT,
                                      MPL_TYPE_f32, &shape, &v));
    }
    while (m.g->n_ops < n_ops)
        sharing_add_any(&m);
    sharing_outputs(&m);
    assert_ok(ctx, mpl_graph_finish(ctx, m.g));
    return m.g;
}
