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

static const onnx_length *find_length(const onnx_reader *r, mpl_value v)
{
    for (size_t i = 0; i < r->n_lengths; i++)
        if (r->length[i].value == v)
            return &r->length[i];
    return NULL;
}

static mpl_status keep_length(onnx_node *n, mpl_value v, uint32_t axis, mpl_value length)
{
    onnx_reader *r = n->r;

    if (find_length(r, v) != NULL)
        return ONNX_REFUSE(n, "two axes of its result have a length that depends on data");
    MPL_PASS(mpl_reserve(r->ctx, r->length, r->cap_lengths, r->n_lengths + 1));
    r->length[r->n_lengths++] = (onnx_length){v, axis, length};
    return MPL_OK;
}

/* ---- operators that make a length ---- */

enum { MOST_OUTPUTS = 5 };

static bool are_constants(const onnx_node *n, uint32_t n_in, const mpl_value *in)
{
    for (uint32_t i = 0; i < n_in; i++)
        if (in[i] != MPL_NONE && !onnx_is_constant(n, in[i]))
            return false;
    return true;
}

/* Output i of a node of constants, cut to its length, under the name that it has in the file. */
static mpl_status cut(onnx_node *n, uint32_t i, mpl_value all, mpl_value length, int64_t axis)
{
    const int64_t zero = 0, *end = n->r->g->value_data[length];
    const mpl_attr attr[] = {MPL_INTS(starts, 1, &zero), MPL_INTS(ends, 1, end),
                             MPL_INTS(axes, 1, &axis)};

    return onnx_step_named(n, MPL_OP_slice, "cut", n->out_name[i], 1, &all, 3, attr, &n->out[i]);
}

/* Adds the operation: the node's outputs come first, the length last. Output i, bit i of `bounded`,
 * is as long as it says, along `axis`. */
static mpl_status finish_bounded(onnx_node *n, uint32_t n_in, const mpl_value *in, uint32_t n_out,
                                 unsigned bounded, uint32_t axis)
{
    onnx_reader *r = n->r;
    const char *name[MOST_OUTPUTS];
    mpl_value out[MOST_OUTPUTS], length;
    bool folds = are_constants(n, n_in, in);

    for (uint32_t i = 0; i < n_out; i++) {
        name[i] = i < n->n_out && !(folds && (bounded >> i & 1) != 0) ? n->out_name[i] : NULL;
        if (name[i] == NULL)
            MPL_PASS(onnx_fresh_name(r, n->label, i + 1 < n_out ? "unused" : "length", &name[i]));
    }
    MPL_PASS(onnx_blame(n, mpl_graph_add_folded(r->ctx, r->g, n->rule->kind, n->label, n_in, in,
                                                n->n_attr, n->attr, n_out, name, out)));
    length = out[n_out - 1];
    for (uint32_t i = 0; i < n->n_out; i++) {
        n->out[i] = out[i];
        if ((bounded >> i & 1) == 0)
            continue;
        if (onnx_is_constant(n, length)) {
            MPL_PASS(cut(n, i, out[i], length, i == 0 ? axis : 0));
            continue;
        }
        if (folds) /* they would, were they not too large */
            MPL_PASS(onnx_step_named(n, MPL_OP_identity, "all", n->out_name[i], 1, &out[i], 0, NULL,
                                     &n->out[i]));
        MPL_PASS(keep_length(n, n->out[i], i == 0 ? axis : 0, length));
    }
    return MPL_OK;
}

mpl_status onnx_lower_non_zero(onnx_node *n)
{
    return finish_bounded(n, n->n_in, n->in, 2, 1, 1);
}

mpl_status onnx_lower_nms(onnx_node *n)
{
    return finish_bounded(n, n->n_in, n->in, 2, 1, 0);
}

/* Without an axis the elements count, in row-major order. */
static mpl_status slices_along(onnx_node *n, mpl_value *in, uint32_t *axis)
{
    const mpl_attr *given = onnx_get(n, MPL_ATTR_axis);

    if (onnx_in(n, 0) == MPL_NONE)
        return ONNX_REFUSE(n, "its input is missing");
    *in = n->in[0], *axis = 0;
    if (given != NULL)
        return onnx_axis(n, given->ints[0], n->r->g->value_shape[*in].rank, axis);
    MPL_PASS(
        onnx_step(n, MPL_OP_reshape, "flat", 1, in, 1, &MPL_INTS(shape, 1, ((int64_t[]){-1})), in));
    return onnx_set_ints(n, MPL_ATTR_axis, 1, (int64_t[]){0});
}

mpl_status onnx_lower_compress(onnx_node *n)
{
    mpl_value in[2] = {MPL_NONE, onnx_in(n, 1)};
    uint32_t axis;

    MPL_PASS(slices_along(n, &in[0], &axis));
    return finish_bounded(n, 2, in, 2, 1, axis);
}

mpl_status onnx_lower_unique(onnx_node *n)
{
    mpl_value in;
    uint32_t axis;

    MPL_PASS(slices_along(n, &in, &axis));
    return finish_bounded(n, 1, &in, 5, 1 | 2 | 8, axis);
}

/* ---- operators behind it ---- */

/* The axis of `to` that has axis `from` of a reshaped value; false: it is split or merged. */
static bool reshaped_axis(const mpl_shape *in, uint32_t from, const mpl_shape *to, uint32_t *axis)
{
    int64_t before = mpl_count_dims(in, 0, from);

    for (uint32_t i = 0; i < to->rank; i++)
        if (to->dim[i] == in->dim[from] && mpl_count_dims(to, 0, i) == before)
            return *axis = i, before != 0 && in->dim[from] > 1;
    return false;
}

/* Whether each operand that is not 1 along the axis of an element-wise result has that length. */
static bool lengths_agree(const onnx_node *n, uint32_t n_in, const mpl_value *in,
                          const mpl_shape *out, uint32_t axis, mpl_value length)
{
    for (uint32_t i = 0; i < n_in; i++) {
        const mpl_shape *s = in[i] != MPL_NONE ? &n->r->g->value_shape[in[i]] : NULL;
        const onnx_length *l = in[i] != MPL_NONE ? find_length(n->r, in[i]) : NULL;
        uint32_t lead = s != NULL ? out->rank - s->rank : 0;

        if (s == NULL || axis < lead || (l == NULL && s->dim[axis - lead] == 1))
            continue;
        if (l == NULL || l->length != length || l->axis + lead != axis)
            return false;
    }
    return true;
}

static bool names_axis(onnx_node *n, int64_t otherwise, uint32_t rank, uint32_t axis)
{
    const mpl_attr *one = onnx_get(n, MPL_ATTR_axis), *axes = onnx_get(n, MPL_ATTR_axes);
    uint32_t count = axes != NULL ? axes->n : 1;
    const int64_t *named = axes != NULL ? axes->ints : one != NULL ? one->ints : &otherwise;

    for (uint32_t i = 0; i < count; i++)
        if (named[i] == (int64_t)axis || named[i] + (int64_t)rank == (int64_t)axis)
            return true;
    return false;
}

/* The axis of the outputs along which the length of input k counts. False: the operator would mix
 * the slices behind it with others, or nothing is known of it. */
static bool length_after(onnx_node *n, uint32_t n_in, const mpl_value *in, uint32_t k,
                         const mpl_shape *to, uint32_t *axis)
{
    const mpl_graph *g = n->r->g;
    const onnx_length *l = find_length(n->r, in[k]);
    const mpl_shape *shape = &g->value_shape[in[k]];
    const mpl_attr *perm;

    *axis = l->axis;
    if (n->proto->domain != NULL && n->proto->domain[0] != '\0')
        return false;
    if ((mpl_op_table[n->rule->kind].traits & MPL_ELEMENTWISE) != 0) {
        *axis += to->rank - shape->rank;
        return lengths_agree(n, n_in, in, to, *axis, l->length);
    }
    switch (n->rule->kind) {
    case MPL_OP_identity:
        return strcmp(n->rule->name, "Identity") == 0;
    case MPL_OP_reshape:
    case MPL_OP_flatten:
    case MPL_OP_squeeze:
    case MPL_OP_unsqueeze:
        return reshaped_axis(shape, l->axis, to, axis);
    case MPL_OP_transpose:
        perm = onnx_get(n, MPL_ATTR_perm);
        for (uint32_t i = 0; i < to->rank; i++)
            if ((perm != NULL ? perm->ints[i] : (int64_t)(to->rank - 1 - i)) == (int64_t)l->axis)
                *axis = i;
        return true;
    case MPL_OP_gather: {
        const mpl_shape *data = &g->value_shape[in[0]];
        const mpl_attr *given = onnx_get(n, MPL_ATTR_axis);
        int64_t at = given != NULL ? given->ints[0] : 0;

        at += at < 0 ? data->rank : 0;
        if (k == 0 && at == (int64_t)l->axis)
            return false;
        if (k == 1)
            *axis = (uint32_t)at + l->axis;
        else if (at < (int64_t)l->axis)
            *axis = l->axis + g->value_shape[in[1]].rank - 1;
        return true;
    }
    case MPL_OP_gather_nd:
        return k == 1 && l->axis + 1 < shape->rank;
    case MPL_OP_concat:
        return !names_axis(n, 0, shape->rank, l->axis) &&
               lengths_agree(n, n_in, in, to, l->axis, l->length);
    case MPL_OP_softmax:
    case MPL_OP_log_softmax:
        return n->r->opset >= 13 && to->rank == shape->rank &&
               !names_axis(n, -1, shape->rank, l->axis);
    case MPL_OP_split:
    case MPL_OP_top_k:
        return !names_axis(n, n->rule->kind == MPL_OP_split ? 0 : -1, shape->rank, l->axis);
    case MPL_OP_slice:
        return onnx_get(n, MPL_ATTR_axes) != NULL && !names_axis(n, 0, shape->rank, l->axis);
    case MPL_OP_matmul:
        return strcmp(n->rule->name, "MatMul") == 0 && k == 0 && shape->rank > 1 &&
               l->axis == shape->rank - 2 && to->rank == shape->rank;
    case MPL_OP_gemm:
        return k == 0 && l->axis == 0 && onnx_get(n, MPL_ATTR_trans_a) == NULL;
    default:
        return false;
    }
}

/* Reductions drop axes before the one that counts, unless they keep them as 1. */
static bool reduced_axis(onnx_node *n, uint32_t rank, const mpl_shape *to, uint32_t *axis)
{
    const mpl_attr *axes = onnx_get(n, MPL_ATTR_axes);
    bool arg = n->rule->kind == MPL_OP_arg_max || n->rule->kind == MPL_OP_arg_min;
    uint32_t from = *axis;

    if ((axes == NULL && !arg) || names_axis(n, 0, rank, from))
        return false;
    for (uint32_t i = 0; i < from && to->rank < rank; i++)
        *axis -= names_axis(n, 0, rank, i);
    return true;
}

static bool is_reduction(mpl_op_kind kind)
{
    return (kind >= MPL_OP_reduce_sum && kind <= MPL_OP_arg_min);
}

mpl_status onnx_carry_lengths(onnx_node *n, uint32_t n_in, const mpl_value *in)
{
    for (uint32_t k = 0; k < n_in && n->r->n_lengths > 0; k++) {
        const onnx_length *found = in[k] != MPL_NONE ? find_length(n->r, in[k]) : NULL;
        onnx_length l;

        if (found == NULL || strcmp(n->rule->name, "Shape") == 0)
            continue;
        l = *found;
        for (uint32_t i = 0; i < n->n_out; i++) {
            const mpl_shape *to = n->out[i] != MPL_NONE ? &n->r->g->value_shape[n->out[i]] : NULL;
            uint32_t axis = l.axis, rank = n->r->g->value_shape[in[k]].rank;

            if (to == NULL || n->out[i] == in[k])
                continue;
            if (is_reduction(n->rule->kind) ? !reduced_axis(n, rank, to, &axis)
                                            : !length_after(n, n_in, in, k, to, &axis))
                return ONNX_REFUSE(n,
                                   "the length of axis %u of its input %u depends on data, "
                                   "which this operator is not planned for",
                                   l.axis, k);
            found = find_length(n->r, n->out[i]);
            if (found == NULL || found->axis != axis || found->length != l.length)
                MPL_PASS(keep_length(n, n->out[i], axis, l.length));
        }
    }
    return MPL_OK;
}

mpl_status onnx_shape_of(onnx_node *n, int64_t start, int64_t end, bool *made)
{
    const onnx_length *l = onnx_in(n, 0) != MPL_NONE ? find_length(n->r, n->in[0]) : NULL;
    const mpl_shape *in;
    mpl_value *part;

    *made = l != NULL && (int64_t)l->axis >= start && (int64_t)l->axis < end;
    if (!*made)
        return MPL_OK;
    in = &n->r->g->value_shape[n->in[0]];
    MPL_PASS(onnx_new(n->r, part, (size_t)in->rank));
    for (int64_t i = start; i < end; i++) {
        mpl_value dim = l->length;

        if (i != (int64_t)l->axis)
            MPL_PASS(onnx_scalar(n, MPL_TYPE_i64, (double)in->dim[i], "dim", &dim));
        MPL_PASS(onnx_step(n, MPL_OP_unsqueeze, "dim", 1, &dim, 1,
                           &MPL_INTS(axes, 1, ((int64_t[]){0})), &part[i - start]));
    }
    onnx_set(n, MPL_INT(axis, 0));
    return onnx_finish(n, MPL_OP_concat, (uint32_t)(end - start), part);
}

/* ---- outputs of the graph ---- */

static bool is_output(const mpl_graph *g, mpl_value v)
{
    for (uint32_t i = 0; i < g->n_outputs; i++)
        if (g->output[i] == v)
            return true;
    return false;
}

/* The `first` takes the value's name, under which it is known outside. */
mpl_status onnx_bound_output(onnx_reader *r, mpl_value *v)
{
    const onnx_length *l = find_length(r, *v);
    const char *name, *label = r->g->value_name[*v];
    mpl_value first;
    char *text;

    if (l == NULL)
        return MPL_OK;
    MPL_PASS(onnx_fresh_name(r, label, "all", &name));
    MPL_PASS(mpl_graph_add_op(r->ctx, r->g, MPL_OP_first, label, 2, (mpl_value[]){*v, l->length}, 1,
                              &MPL_INT(axis, l->axis), 1, &name, &first));
    text = r->g->value_name[*v];
    r->g->value_name[*v] = r->g->value_name[first];
    r->g->value_name[first] = text;
    *v = first;
    return MPL_OK;
}

mpl_status onnx_add_lengths(onnx_reader *r)
{
    uint32_t n = r->g->n_outputs, axis;

    for (uint32_t i = 0; i < n; i++) {
        mpl_value length = mpl_length_of(r->g, r->g->output[i], &axis);

        if (length != MPL_NONE && !is_output(r->g, length))
            MPL_PASS(mpl_graph_add_output(r->ctx, r->g, length));
    }
    return MPL_OK;
}
