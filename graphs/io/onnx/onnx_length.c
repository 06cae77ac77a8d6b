/* onnx_length.c -- results whose length depends on data: NonZero, NonMaxSuppression, Compress,
 * Unique, and what reads them.
 *
 * Idea     Such a result is planned at its maximum. Its operation makes its length, too, a scalar,
 *          which the reader keeps beside the value, with the axis that it counts along. An operator
 *          behind it passes the length on (length_after), or is refused: it would take the slices
 *          behind the length for data. Its Shape is data. A graph output of such a
 *          value ends in a `first`, whose length is one more output of the graph.
 *          Where the length is known, for all operands are constants, the value is cut to it. */
#include "graphs/io/onnx/onnx_priv.h"
#include "graphs/ops/ops_priv.h"
#include "graphs/passes/copy.h"

#include <math.h>

/* ---- intervals of numbers that depend on lengths ---- */

mpl_value onnx_bound(const onnx_node *node, mpl_value v, bool most)
{
    const onnx_reader *in = node->r;

    if (v == MPL_NONE || onnx_is_constant(node, v))
        return v;
    for (size_t i = in->n_intervals; i-- > 0;)
        if (in->interval[i].value == v)
            return in->interval[i].end[most];
    return MPL_NONE;
}

static mpl_status keep_interval(onnx_node *node, mpl_value v, const mpl_value end[2])
{
    onnx_reader *in = node->r;

    MPL_PASS(mpl_reserve(in->ctx, in->interval, in->cap_intervals, in->n_intervals + 1));
    in->interval[in->n_intervals++] = (onnx_interval){v, {end[0], end[1]}};
    return MPL_OK;
}

/* Operators that are monotone in each operand. Bit i of `down`: the result falls where operand i
 * grows. `from[i]`: operand i is not below that where the operator is monotone. */
static const struct {
    uint16_t kind;
    uint8_t down;
    double from[2];
} monotone[] = {
    {MPL_OP_identity, 0, {-INFINITY, -INFINITY}},
    {MPL_OP_concat, 0, {-INFINITY, -INFINITY}},
    {MPL_OP_gather, 0, {-INFINITY, -INFINITY}},
    {MPL_OP_unsqueeze, 0, {-INFINITY, -INFINITY}},
    {MPL_OP_squeeze, 0, {-INFINITY, -INFINITY}},
    {MPL_OP_reshape, 0, {-INFINITY, -INFINITY}},
    {MPL_OP_slice, 0, {-INFINITY, -INFINITY}},
    {MPL_OP_expand, 0, {-INFINITY, -INFINITY}},
    {MPL_OP_cast, 0, {-INFINITY, -INFINITY}},
    {MPL_OP_reduce_min, 0, {-INFINITY, -INFINITY}},
    {MPL_OP_reduce_max, 0, {-INFINITY, -INFINITY}},
    {MPL_OP_reduce_prod, 0, {0, 0}},
    {MPL_OP_min, 0, {-INFINITY, -INFINITY}},
    {MPL_OP_max, 0, {-INFINITY, -INFINITY}},
    {MPL_OP_add, 0, {-INFINITY, -INFINITY}},
    {MPL_OP_sub, 2, {-INFINITY, -INFINITY}},
    {MPL_OP_mul, 0, {0, 0}},
    {MPL_OP_div, 2, {0, 1}},
    {MPL_OP_less, 1, {-INFINITY, -INFINITY}},
    {MPL_OP_less_equal, 1, {-INFINITY, -INFINITY}},
    {MPL_OP_greater, 2, {-INFINITY, -INFINITY}},
    {MPL_OP_greater_equal, 2, {-INFINITY, -INFINITY}},
    {MPL_OP_not, 1, {-INFINITY, -INFINITY}},
    {MPL_OP_and, 0, {-INFINITY, -INFINITY}},
    {MPL_OP_or, 0, {-INFINITY, -INFINITY}},
    {MPL_OP_where, 0, {-INFINITY, -INFINITY}}, /* if the condition is constant */
};

/* Whether no element of a constant is below `limit`. */
static bool is_at_least(const mpl_graph *g, mpl_value v, double limit)
{
    uint64_t count = 0;

    mpl_shape_count(&g->value_shape[v], &count);
    for (uint64_t i = 0; i < (g->value_splat[v] && count > 0 ? 1 : count); i++)
        if (!(mpl_get((mpl_type)g->value_type[v], g->value_data[v], (int64_t)i) >= limit))
            return false;
    return true;
}

bool onnx_not_negative(const onnx_node *node, mpl_value v)
{
    mpl_value least = onnx_bound(node, v, false);

    return least != MPL_NONE && is_at_least(node->r->g, least, 0);
}

/* Whether each element of a is at most that of b, and `same`, whether they are equal. An interval
 * whose ends are not ordered comes from a product that overflowed. */
static bool are_ordered(const mpl_graph *g, mpl_value a, mpl_value b, bool *same)
{
    uint64_t count = 0;

    *same = true;
    mpl_shape_count(&g->value_shape[a], &count);
    for (uint64_t i = 0; i < count; i++) {
        double x = mpl_get((mpl_type)g->value_type[a], g->value_data[a],
                           g->value_splat[a] ? 0 : (int64_t)i);
        double y = mpl_get((mpl_type)g->value_type[b], g->value_data[b],
                           g->value_splat[b] ? 0 : (int64_t)i);

        if (!(x <= y))
            return false;
        *same = *same && x == y;
    }
    return true;
}

/* What an operation of these constants, with the attributes of `like`, comes to. */
static mpl_status fold_again(onnx_node *node, mpl_op_kind kind, mpl_op like, uint32_t n_in,
                             const mpl_value *in, mpl_value *out)
{
    mpl_status st = MPL_OK;
    mpl_attr *attr = NULL;
    uint32_t n_attr;

    MPL_TRY(mpl_copy_attrs(node->r->ctx, node->r->g, like, &n_attr, &attr));
    MPL_TRY(onnx_step(node, kind, "bound", n_in, in, n_attr, attr, out));
out:
    mpl_free(node->r->ctx, attr);
    return st;
}

/* Whether a and b are certainly equal, for both intervals are one point, and whether they may be,
 * for the intervals meet. */
static mpl_status equal_ends(onnx_node *node, mpl_value *const in[2], mpl_value end[2])
{
    for (int most = 0; most < 2; most++) {
        mpl_value side[2];

        for (int i = 0; i < 2; i++)
            MPL_PASS(fold_again(node, MPL_OP_less_equal, MPL_NONE, 2,
                                (mpl_value[]){in[!most][i], in[most][1 - i]}, &side[i]));
        MPL_PASS(fold_again(node, MPL_OP_and, MPL_NONE, 2, side, &end[most]));
    }
    return MPL_OK;
}

/* The interval of an operation's result from those of its operands; end[0] MPL_NONE: not known. */
static mpl_status interval_of(onnx_node *node, mpl_op op, uint32_t n_in, mpl_value *const in[2],
                              mpl_value end[2])
{
    const mpl_graph *g = node->r->g;
    mpl_op_kind kind = (mpl_op_kind)g->op_kind[op];
    mpl_value *ordered[2];
    size_t m = 0;

    end[0] = MPL_NONE;
    if (kind == MPL_OP_equal)
        return equal_ends(node, in, end);
    while (m < sizeof monotone / sizeof *monotone && monotone[m].kind != kind)
        m++;
    if (m == sizeof monotone / sizeof *monotone || (kind == MPL_OP_where && in[0][0] != in[1][0]))
        return MPL_OK;
    MPL_PASS(onnx_new(node->r, ordered[0], n_in));
    MPL_PASS(onnx_new(node->r, ordered[1], n_in));
    for (uint32_t i = 0; i < n_in; i++) {
        bool down = i < 2 && (monotone[m].down >> i & 1) != 0;

        if (in[0][i] != MPL_NONE && !is_at_least(g, in[0][i], monotone[m].from[i > 0]))
            return MPL_OK;
        ordered[0][i] = in[down][i], ordered[1][i] = in[!down][i];
    }
    for (int most = 0; most < 2; most++)
        MPL_PASS(fold_again(node, kind, op, n_in, ordered[most], &end[most]));
    return MPL_OK;
}

/* Whether the operands of an operation are bounded; in[2][n_in] receives by what. */
static bool operands_bounded(const onnx_node *node, mpl_op op, uint32_t n_in,
                             mpl_value *const in[2])
{
    const mpl_graph *g = node->r->g;
    bool constant = true;

    for (uint32_t i = 0; i < n_in; i++) {
        mpl_value v = g->op_in[g->op_in_begin[op] + i];

        for (int most = 0; most < 2; most++) {
            in[most][i] = onnx_bound(node, v, most != 0);
            if (v != MPL_NONE && in[most][i] == MPL_NONE)
                return false;
        }
        constant = constant && in[0][i] == v;
    }
    return n_in > 0 && !constant;
}

static bool names_output(const onnx_reader *in, const char *name)
{
    for (size_t i = 0; i < in->proto->n_output; i++)
        if (in->proto->output[i]->name != NULL && strcmp(in->proto->output[i]->name, name) == 0)
            return true;
    return false;
}

mpl_status onnx_follow_intervals(onnx_node *node, mpl_op first)
{
    const mpl_graph *g = node->r->g;

    for (mpl_op op = first, last = g->n_ops; op < last && node->r->n_intervals > 0; op++) {
        uint32_t n_in = mpl_op_n_in(g, op);
        mpl_value made = g->op_out[g->op_out_begin[op]], *in[2], end[2];
        bool same;

        MPL_PASS(onnx_new(node->r, in[0], n_in));
        MPL_PASS(onnx_new(node->r, in[1], n_in));
        if (mpl_op_n_out(g, op) != 1 || made == MPL_NONE || !operands_bounded(node, op, n_in, in) ||
            onnx_bound(node, made, true) != MPL_NONE)
            continue;
        MPL_PASS(interval_of(node, op, n_in, in, end));
        if (end[0] == MPL_NONE || !onnx_is_constant(node, end[0]) ||
            !onnx_is_constant(node, end[1]) || !are_ordered(g, end[0], end[1], &same))
            continue;
        MPL_PASS(keep_interval(node, made, end));
        for (uint32_t i = 0; i < node->n_out; i++)
            if (node->out[i] == made && same && !names_output(node->r, g->value_name[made]))
                node->out[i] = end[0];
    }
    return MPL_OK;
}

/* Operands that decide a dim, and may depend on a length: the dim is planned at its maximum. */
mpl_value onnx_most_for(const onnx_node *node, mpl_value v, const char *what)
{
    static const char *const at[][2] = {{"TopK", "k"},
                                        {"Reshape", "shape"},
                                        {"Expand", "shape"},
                                        {"ConstantOfShape", "shape"},
                                        {"Slice", "ends"}};

    for (size_t i = 0; i < sizeof at / sizeof *at; i++)
        if (strcmp(node->rule->name, at[i][0]) == 0 && strcmp(what, at[i][1]) == 0)
            return onnx_bound(node, v, true);
    return MPL_NONE;
}

/* ---- values and their lengths ---- */

const onnx_length *onnx_length_of(const onnx_reader *in, mpl_value v)
{
    for (size_t i = 0; i < in->n_lengths; i++)
        if (in->length[i].value == v)
            return &in->length[i];
    return NULL;
}

mpl_status onnx_keep_length(onnx_node *node, mpl_value v, uint32_t axis, mpl_value length)
{
    onnx_reader *in = node->r;
    mpl_value end[2];

    if (onnx_length_of(in, v) != NULL)
        return ONNX_REFUSE(node, "two axes of its result have a length that depends on data");
    MPL_PASS(mpl_reserve(in->ctx, in->length, in->cap_lengths, in->n_lengths + 1));
    in->length[in->n_lengths++] = (onnx_length){v, axis, length};
    if (onnx_bound(node, length, true) != MPL_NONE)
        return MPL_OK;
    MPL_PASS(onnx_scalar(node, MPL_TYPE_i64, 0, "least", &end[0]));
    MPL_PASS(
        onnx_scalar(node, MPL_TYPE_i64, (double)in->g->value_shape[v].dim[axis], "most", &end[1]));
    return keep_interval(node, length, end);
}

/* ---- operators that make a length ---- */

enum { MOST_OUTPUTS = 5 };

static bool are_constants(const onnx_node *node, uint32_t n_in, const mpl_value *in)
{
    for (uint32_t i = 0; i < n_in; i++)
        if (in[i] != MPL_NONE && !onnx_is_constant(node, in[i]))
            return false;
    return true;
}

/* Output i of a node of constants, cut to its length, under the name that it has in the file. */
static mpl_status cut(onnx_node *node, uint32_t i, mpl_value all, mpl_value length, int64_t axis)
{
    const int64_t zero = 0, *end = node->r->g->value_data[length];
    const mpl_attr attr[] = {MPL_INTS(starts, 1, &zero), MPL_INTS(ends, 1, end),
                             MPL_INTS(axes, 1, &axis)};

    return onnx_step_named(node, MPL_OP_slice, "cut", node->out_name[i], 1, &all, 3, attr,
                           &node->out[i]);
}

/* Adds the operation: the node's outputs come first, the length last. Output i, bit i of `bounded`,
 * is as long as it says, along `axis`. */
static mpl_status finish_bounded(onnx_node *node, uint32_t n_in, const mpl_value *in,
                                 uint32_t n_out, unsigned bounded, uint32_t axis)
{
    static const char *const unused[MOST_OUTPUTS] = {"unused", "unused1", "unused2", "unused3"};
    onnx_reader *r = node->r;
    const char *name[MOST_OUTPUTS];
    mpl_value out[MOST_OUTPUTS], length;
    bool folds = are_constants(node, n_in, in);

    for (uint32_t i = 0; i < n_out; i++) {
        name[i] = i < node->n_out && !(folds && (bounded >> i & 1) != 0) ? node->out_name[i] : NULL;
        if (name[i] == NULL)
            MPL_PASS(
                onnx_fresh_name(r, node->label, i + 1 < n_out ? unused[i] : "length", &name[i]));
    }
    MPL_PASS(
        onnx_blame(node, mpl_graph_add_folded(r->ctx, r->g, node->rule->kind, node->label, n_in, in,
                                              node->n_attr, node->attr, n_out, name, out)));
    length = out[n_out - 1];
    for (uint32_t i = 0; i < node->n_out; i++) {
        node->out[i] = out[i];
        if ((bounded >> i & 1) == 0)
            continue;
        if (onnx_is_constant(node, length)) {
            MPL_PASS(cut(node, i, out[i], length, i == 0 ? axis : 0));
            continue;
        }
        if (folds) /* they would, were they not too large */
            MPL_PASS(onnx_step_named(node, MPL_OP_identity, "all", node->out_name[i], 1, &out[i], 0,
                                     NULL, &node->out[i]));
        MPL_PASS(onnx_keep_length(node, node->out[i], i == 0 ? axis : 0, length));
    }
    return MPL_OK;
}

mpl_status onnx_lower_non_zero(onnx_node *node)
{
    return finish_bounded(node, node->n_in, node->in, 2, 1, 1);
}

mpl_status onnx_lower_nms(onnx_node *node)
{
    return finish_bounded(node, node->n_in, node->in, 2, 1, 0);
}

/* Without an axis the elements count, in row-major order. */
static mpl_status slices_along(onnx_node *node, mpl_value *in, uint32_t *axis)
{
    const mpl_attr *given = onnx_get(node, MPL_ATTR_axis);

    if (onnx_in(node, 0) == MPL_NONE)
        return ONNX_REFUSE(node, "its input is missing");
    *in = node->in[0], *axis = 0;
    if (given != NULL)
        return onnx_axis(node, given->ints[0], node->r->g->value_shape[*in].rank, axis);
    MPL_PASS(onnx_step(node, MPL_OP_reshape, "flat", 1, in, 1,
                       &MPL_INTS(shape, 1, ((int64_t[]){-1})), in));
    return onnx_set_ints(node, MPL_ATTR_axis, 1, (int64_t[]){0});
}

mpl_status onnx_lower_compress(onnx_node *node)
{
    mpl_value in[2] = {MPL_NONE, onnx_in(node, 1)};
    uint32_t axis;

    MPL_PASS(slices_along(node, &in[0], &axis));
    return finish_bounded(node, 2, in, 2, 1, axis);
}

mpl_status onnx_lower_unique(onnx_node *node)
{
    mpl_value in;
    uint32_t axis;

    MPL_PASS(slices_along(node, &in, &axis));
    return finish_bounded(node, 1, &in, 5, 1 | 2 | 8, axis);
}

/* ---- Shape, and outputs of the graph ---- */

mpl_status onnx_shape_of(onnx_node *node, int64_t start, int64_t end, bool *made)
{
    const onnx_length *known =
        onnx_in(node, 0) != MPL_NONE ? onnx_length_of(node->r, node->in[0]) : NULL;
    onnx_length length;
    mpl_shape in; /* copies of both: what follows adds values */
    mpl_value *part;

    *made = known != NULL && (int64_t)known->axis >= start && (int64_t)known->axis < end;
    if (!*made)
        return MPL_OK;
    length = *known, in = node->r->g->value_shape[node->in[0]];
    MPL_PASS(onnx_new(node->r, part, (size_t)in.rank));
    for (int64_t i = start; i < end; i++) {
        mpl_value dim = length.length;

        if (i != (int64_t)length.axis)
            MPL_PASS(onnx_scalar(node, MPL_TYPE_i64, (double)in.dim[i], "dim", &dim));
        MPL_PASS(onnx_step(node, MPL_OP_unsqueeze, "dim", 1, &dim, 1,
                           &MPL_INTS(axes, 1, ((int64_t[]){0})), &part[i - start]));
    }
    onnx_set(node, MPL_INT(axis, 0));
    return onnx_finish(node, MPL_OP_concat, (uint32_t)(end - start), part);
}

static bool is_output(const mpl_graph *g, mpl_value v)
{
    for (uint32_t i = 0; i < g->n_outputs; i++)
        if (g->output[i] == v)
            return true;
    return false;
}

/* The `first` takes the value's name, under which it is known outside. */
mpl_status onnx_bound_output(onnx_reader *in, mpl_value *v)
{
    const onnx_length *length = onnx_length_of(in, *v);
    const char *name, *label = in->g->value_name[*v];
    mpl_value first;
    char *text;

    if (length == NULL)
        return MPL_OK;
    MPL_PASS(onnx_fresh_name(in, label, "all", &name));
    MPL_PASS(mpl_graph_add_op(in->ctx, in->g, MPL_OP_first, label, 2,
                              (mpl_value[]){*v, length->length}, 1, &MPL_INT(axis, length->axis), 1,
                              &name, &first));
    text = in->g->value_name[*v];
    in->g->value_name[*v] = in->g->value_name[first];
    in->g->value_name[first] = text;
    *v = first;
    return MPL_OK;
}

mpl_status onnx_add_lengths(onnx_reader *in)
{
    uint32_t n = in->g->n_outputs, axis;

    for (uint32_t i = 0; i < n; i++) {
        mpl_value length = mpl_length_of(in->g, in->g->output[i], &axis);

        if (length != MPL_NONE && !is_output(in->g, length))
            MPL_PASS(mpl_graph_add_output(in->ctx, in->g, length));
    }
    return MPL_OK;
}
