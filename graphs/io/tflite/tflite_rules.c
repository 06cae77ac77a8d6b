/* tflite_rules.c -- rules of operators.def that move elements or work on one after the other. What
 * TensorFlow Lite allows and memplan cannot compute becomes an opaque operation. Source of
 * meanings: TensorFlow, tensorflow/lite/kernels/. */
#include "graphs/io/tflite/tflite_priv.h"

/* All inputs in their order. */
static mpl_status add_inputs(tfl_node *node, mpl_op_kind kind, uint32_t n_in)
{
    mpl_status st = MPL_OK;
    tfl_operand *in = NULL;

    MPL_TRY(mpl_new(node->model->ctx, in, n_in));
    for (uint32_t i = 0; i < n_in; i++)
        MPL_TRY(tfl_operand_of(node, i, TFL_PLAIN, &in[i]));
    MPL_TRY(tfl_add(node, kind, n_in, in, TFL_PLAIN));
out:
    mpl_free(node->model->ctx, in);
    return st;
}

mpl_status tfl_lower_plain(tfl_node *node)
{
    return add_inputs(node, node->rule->kind, node->op->n_in);
}

/* The first input alone; others have become attributes. */
static mpl_status add_first(tfl_node *node)
{
    return add_inputs(node, node->rule->kind, 1);
}

mpl_status tfl_lower_quantize(tfl_node *node)
{
    mpl_type from = tfl_in(node, 0)->type, to = tfl_out(node, 0)->type;

    if (tfl_in(node, 0)->n_scales > 0 || tfl_out(node, 0)->n_scales > 0)
        return add_first(node);
    tfl_set(node, MPL_TEXT(to, mpl_type_name(to)));
    return from == to ? tfl_opaque(node) : add_inputs(node, MPL_OP_cast, 1); /* of 16-bit weights */
}

mpl_status tfl_lower_cast(tfl_node *node)
{
    tfl_set(node, MPL_TEXT(to, mpl_type_name(tfl_out(node, 0)->type)));
    return tfl_in(node, 0)->n_scales > 0 || tfl_out(node, 0)->n_scales > 0 ? tfl_opaque(node)
                                                                           : add_first(node);
}

mpl_status tfl_lower_clip(tfl_node *node)
{
    enum { RELU_N1_TO_1 = 20 };
    tfl_operand in[3];

    MPL_PASS(tfl_operand_of(node, 0, TFL_PLAIN, &in[0]));
    in[1] = in[2] = (tfl_operand){.order = TFL_PLAIN};
    MPL_PASS(tfl_scalar(node, MPL_TYPE_f32, node->rule->code == RELU_N1_TO_1 ? -1 : 0, "least",
                        &in[1].v));
    MPL_PASS(
        tfl_scalar(node, MPL_TYPE_f32, node->rule->code == RELU_N1_TO_1 ? 1 : 6, "most", &in[2].v));
    return tfl_add(node, MPL_OP_clip, 3, in, TFL_PLAIN);
}

mpl_status tfl_lower_leaky_relu(tfl_node *node)
{
    tfl_set_float(node, MPL_ATTR_alpha, tfl_float(&node->op->options, TFL_LeakyRelu_alpha));
    return add_first(node);
}

mpl_status tfl_lower_gelu(tfl_node *node)
{
    if (tfl_int(&node->op->options, TFL_Gelu_approximate) != 0)
        tfl_set(node, MPL_TEXT(approximate, "tanh"));
    return add_first(node);
}

mpl_status tfl_lower_square(tfl_node *node)
{
    tfl_operand in[2];

    MPL_PASS(tfl_operand_of(node, 0, TFL_PLAIN, &in[0]));
    in[1] = in[0];
    return tfl_add(node, MPL_OP_mul, 2, in, TFL_PLAIN);
}

mpl_status tfl_lower_rsqrt(tfl_node *node)
{
    tfl_operand in[2];

    MPL_PASS(tfl_operand_of(node, 0, TFL_PLAIN, &in[0]));
    in[1] = (tfl_operand){.order = TFL_PLAIN};
    MPL_PASS(tfl_scalar(node, MPL_TYPE_f32, -0.5, "power", &in[1].v));
    return tfl_add(node, MPL_OP_pow, 2, in, TFL_PLAIN);
}

/* Softmax and log-softmax are along the last axis. */
mpl_status tfl_lower_softmax(tfl_node *node)
{
    double beta =
        node->rule->kind == MPL_OP_softmax ? tfl_float(&node->op->options, TFL_Softmax_beta) : 1.0;

    tfl_set_int(node, MPL_ATTR_axis, -1);
    return beta == 1.0 ? add_first(node) : tfl_opaque(node);
}

mpl_status tfl_lower_l2_norm(tfl_node *node)
{
    tfl_set_int(node, MPL_ATTR_axis, -1);
    tfl_set_int(node, MPL_ATTR_p, 2);
    return add_first(node);
}

/* ---- reductions ---- */

mpl_status tfl_lower_reduce(tfl_node *node)
{
    int64_t axis[MPL_MAX_RANK];
    uint32_t count;

    if (!tfl_ints(node, 1, MPL_MAX_RANK, axis, &count) || count == 0)
        return tfl_opaque(node);
    tfl_set_ints(node, MPL_ATTR_axes, count, axis);
    tfl_set_int(node, MPL_ATTR_keepdims, tfl_int(&node->op->options, TFL_Reducer_keep_dims) != 0);
    return add_first(node);
}

mpl_status tfl_lower_arg(tfl_node *node)
{
    int64_t axis;
    uint32_t count;

    if (!tfl_ints(node, 1, 1, &axis, &count) || count != 1)
        return tfl_opaque(node);
    tfl_set_int(node, MPL_ATTR_axis, axis);
    tfl_set_int(node, MPL_ATTR_keepdims, 0);
    node->converts = tfl_out(node, 0)->type != MPL_TYPE_i64;
    return add_first(node);
}

mpl_status tfl_lower_cumsum(tfl_node *node)
{
    int64_t axis;
    uint32_t count;

    if (!tfl_ints(node, 1, 1, &axis, &count) || count != 1)
        return tfl_opaque(node);
    tfl_set_int(node, MPL_ATTR_axis, axis);
    tfl_set_int(node, MPL_ATTR_exclusive, tfl_int(&node->op->options, TFL_Cumsum_exclusive));
    tfl_set_int(node, MPL_ATTR_reverse, tfl_int(&node->op->options, TFL_Cumsum_reverse));
    return add_first(node);
}

/* ---- moves ---- */

/* The dims are those of the file, whatever said so to the operator. */
mpl_status tfl_lower_view(tfl_node *node)
{
    tfl_set_ints(node, MPL_ATTR_shape, tfl_out(node, 0)->shape.rank, tfl_out(node, 0)->shape.dim);
    return add_first(node);
}

mpl_status tfl_lower_fill(tfl_node *node)
{
    enum { FILL = 94 };
    tfl_operand in;

    tfl_set_ints(node, MPL_ATTR_shape, tfl_out(node, 0)->shape.rank, tfl_out(node, 0)->shape.dim);
    MPL_PASS(tfl_operand_of(node, node->rule->code == FILL ? 1 : 0, TFL_PLAIN, &in));
    return tfl_add(node, MPL_OP_expand, 1, &in, TFL_PLAIN);
}

/* Dims are known, so the result is a constant. */
mpl_status tfl_lower_shape(tfl_node *node)
{
    const tfl_tensor *from = tfl_in(node, 0), *to = tfl_out(node, 0);
    int32_t dim[MPL_MAX_RANK];
    mpl_value v;

    if (to->is_output)
        return tfl_opaque(node);
    for (uint32_t i = 0; i < from->shape.rank; i++)
        dim[i] = (int32_t)from->shape.dim[i];
    MPL_PASS(mpl_graph_add_const(
        node->model->ctx, node->g, to->name, to->type, &(mpl_shape){1, {from->shape.rank}},
        to->type == MPL_TYPE_i64 ? (const void *)from->shape.dim : (const void *)dim, false, &v));
    return tfl_define(node, 0, v);
}

mpl_status tfl_lower_transpose(tfl_node *node)
{
    int64_t perm[MPL_MAX_RANK];
    uint32_t count;

    if (!tfl_ints(node, 1, MPL_MAX_RANK, perm, &count))
        return tfl_opaque(node);
    tfl_set_ints(node, MPL_ATTR_perm, count, perm);
    return add_first(node);
}

mpl_status tfl_lower_tile(tfl_node *node)
{
    int64_t repeats[MPL_MAX_RANK];
    uint32_t count;

    if (!tfl_ints(node, 1, MPL_MAX_RANK, repeats, &count))
        return tfl_opaque(node);
    tfl_set_ints(node, MPL_ATTR_repeats, count, repeats);
    return add_first(node);
}

mpl_status tfl_lower_gather(tfl_node *node)
{
    if (tfl_int(&node->op->options, TFL_Gather_batch_dims) != 0)
        return tfl_opaque(node);
    tfl_set_int(node, MPL_ATTR_axis, tfl_int(&node->op->options, TFL_Gather_axis));
    return add_inputs(node, MPL_OP_gather, 2);
}

mpl_status tfl_lower_concat(tfl_node *node)
{
    tfl_set_int(node, MPL_ATTR_axis, tfl_int(&node->op->options, TFL_Concatenation_axis));
    return tfl_lower_plain(node);
}

/* Each input with a dim more, then all along it. */
mpl_status tfl_lower_pack(tfl_node *node)
{
    mpl_status st = MPL_OK;
    tfl_operand *in = NULL;
    int64_t axis = tfl_int(&node->op->options, TFL_Pack_axis);
    mpl_shape shape = tfl_out(node, 0)->shape;
    char suffix[24];

    if (axis < -(int64_t)shape.rank || axis >= (int64_t)shape.rank)
        return MPL_REFUSE(node->model->ctx, "its axis is %" PRId64, axis);
    axis += axis < 0 ? shape.rank : 0;
    shape.dim[axis] = 1;
    MPL_TRY(mpl_new(node->model->ctx, in, node->op->n_in));
    for (uint32_t i = 0; i < node->op->n_in; i++) {
        MPL_TRY(tfl_operand_of(node, i, TFL_PLAIN, &in[i]));
        snprintf(suffix, sizeof suffix, ":in%u", i);
        MPL_TRY(tfl_add_view(node, in[i].v, &shape, tfl_out(node, 0)->name, suffix, &in[i].v));
    }
    tfl_set_int(node, MPL_ATTR_axis, axis);
    MPL_TRY(tfl_add(node, MPL_OP_concat, node->op->n_in, in, TFL_PLAIN));
out:
    mpl_free(node->model->ctx, in);
    return st;
}

/* Splits along an axis into the outputs; `unpack`: parts of one element, without that axis. */
static mpl_status split(tfl_node *node, uint32_t data, int64_t axis, bool unpack)
{
    mpl_status st = MPL_OK;
    mpl_ctx *ctx = node->model->ctx;
    uint32_t n_out = node->op->n_out;
    int64_t *size = NULL;
    const char **name = NULL;
    char(*parts)[480] = NULL;
    mpl_value *out = NULL;
    tfl_operand in;

    MPL_TRY(mpl_new_each(ctx, n_out, size, name, parts, out));
    for (uint32_t i = 0; i < n_out; i++) {
        const tfl_tensor *tensor = tfl_out(node, i);

        snprintf(parts[i], sizeof parts[i], "%s:part", tensor->name);
        name[i] = unpack ? parts[i] : tensor->name;
        if (!unpack && axis >= (int64_t)tensor->shape.rank)
            MPL_FAIL(ctx, MPL_EINPUT, "its axis is %" PRId64, axis);
        size[i] = unpack ? 1 : tensor->shape.dim[axis];
    }
    MPL_TRY(tfl_operand_of(node, data, TFL_PLAIN, &in));
    tfl_set_int(node, MPL_ATTR_axis, axis);
    tfl_set(node, MPL_INTS(split, n_out, size));
    MPL_TRY(tfl_add_all(node, MPL_OP_split, 1, &in.v, n_out, name, out));
    for (uint32_t i = 0; i < n_out; i++) {
        if (unpack)
            MPL_TRY(tfl_add_view(node, out[i], &tfl_out(node, i)->shape, tfl_out(node, i)->name, "",
                                 &out[i]));
        MPL_TRY(tfl_define(node, i, out[i]));
    }
out:
    mpl_free_each(ctx, size, name, parts, out);
    return st;
}

mpl_status tfl_lower_split(tfl_node *node)
{
    enum { SPLIT = 49 };
    bool even = node->rule->code == SPLIT; /* its axis comes first */
    uint32_t data = even ? 1 : 0, count;
    int64_t axis;

    if (tfl_in(node, data) == NULL || !tfl_ints(node, even ? 0 : 2, 1, &axis, &count) || count != 1)
        return tfl_opaque(node);
    axis += axis < 0 ? tfl_in(node, data)->shape.rank : 0;
    if (axis < 0)
        return MPL_REFUSE(node->model->ctx, "its axis is %" PRId64, axis);
    return split(node, data, axis, false);
}

mpl_status tfl_lower_unpack(tfl_node *node)
{
    return split(node, 0, tfl_int(&node->op->options, TFL_Pack_axis), true);
}

mpl_status tfl_lower_slice(tfl_node *node)
{
    const mpl_shape *in = &tfl_in(node, 0)->shape;
    int64_t begin[MPL_MAX_RANK], size[MPL_MAX_RANK];
    uint32_t n_begin, n_size;

    if (!tfl_ints(node, 1, MPL_MAX_RANK, begin, &n_begin) ||
        !tfl_ints(node, 2, MPL_MAX_RANK, size, &n_size) || n_begin != in->rank ||
        n_size != in->rank)
        return tfl_opaque(node);
    for (uint32_t i = 0; i < in->rank; i++) {
        if (begin[i] < 0 || begin[i] > in->dim[i] || size[i] < -1 ||
            size[i] > in->dim[i] - begin[i])
            return MPL_REFUSE(node->model->ctx,
                              "it takes %" PRId64 " elements from %" PRId64
                              " on of dim %u, which has %" PRId64,
                              size[i], begin[i], i, in->dim[i]);
        size[i] = size[i] < 0 ? in->dim[i] : begin[i] + size[i]; /* where it ends */
    }
    tfl_set_ints(node, MPL_ATTR_starts, in->rank, begin);
    tfl_set_ints(node, MPL_ATTR_ends, in->rank, size);
    return add_first(node);
}

/* Ranges that begin or end at the border become so; a dim that shrinks is a range of one. */
static bool mask_ranges(const tfl_node *node, uint32_t count, int64_t *begin, int64_t *end,
                        int64_t *step, int64_t shrinks)
{
    const flat_table *table = &node->op->options;
    int64_t begins = tfl_int(table, TFL_StridedSlice_begin_mask);
    int64_t ends = tfl_int(table, TFL_StridedSlice_end_mask);

    for (uint32_t i = 0; i < count; i++) {
        if (step[i] == 0 || ((shrinks >> i & 1) != 0 && step[i] < 0))
            return false;
        if ((begins >> i & 1) != 0)
            begin[i] = step[i] > 0 ? 0 : INT32_MAX;
        if ((ends >> i & 1) != 0)
            end[i] = step[i] > 0 ? INT32_MAX : INT64_MIN / 2;
        if ((shrinks >> i & 1) != 0)
            end[i] = begin[i] == -1 ? INT32_MAX : begin[i] + 1;
    }
    return true;
}

mpl_status tfl_lower_strided_slice(tfl_node *node)
{
    const flat_table *table = &node->op->options;
    int64_t range[3][MPL_MAX_RANK], shrinks = tfl_int(table, TFL_StridedSlice_shrink_axis_mask);
    uint32_t count[3];
    char name[480];
    mpl_value v;
    tfl_operand in;

    for (uint32_t i = 0; i < 3; i++)
        if (!tfl_ints(node, 1 + i, MPL_MAX_RANK, range[i], &count[i]) || count[i] != count[0])
            return tfl_opaque(node);
    if (tfl_int(table, TFL_StridedSlice_ellipsis_mask) != 0 ||
        tfl_int(table, TFL_StridedSlice_new_axis_mask) != 0 ||
        tfl_int(table, TFL_StridedSlice_offset) != 0 ||
        !mask_ranges(node, count[0], range[0], range[1], range[2], shrinks))
        return tfl_opaque(node);
    tfl_set_ints(node, MPL_ATTR_starts, count[0], range[0]);
    tfl_set_ints(node, MPL_ATTR_ends, count[0], range[1]);
    tfl_set_ints(node, MPL_ATTR_steps, count[0], range[2]);
    if (shrinks == 0)
        return add_first(node);
    snprintf(name, sizeof name, "%s:part", tfl_out(node, 0)->name);
    MPL_PASS(tfl_operand_of(node, 0, TFL_PLAIN, &in));
    MPL_PASS(tfl_add_all(node, MPL_OP_slice, 1, &in.v, 1, (const char *const[]){name}, &v));
    MPL_PASS(tfl_add_view(node, v, &tfl_out(node, 0)->shape, tfl_out(node, 0)->name, "", &v));
    return tfl_define(node, 0, v);
}

/* Pairs of numbers, one before and one after each dim: the IR has all of the first kind first. */
static bool read_pads(const tfl_node *node, int64_t pads[2 * MPL_MAX_RANK])
{
    int64_t pair[2 * MPL_MAX_RANK];
    uint32_t count, rank = tfl_in(node, 0)->shape.rank;

    if (!tfl_ints(node, 1, 2 * MPL_MAX_RANK, pair, &count) || count != 2 * rank)
        return false;
    for (uint32_t i = 0; i < rank; i++) {
        pads[i] = pair[2 * i];
        pads[rank + i] = pair[2 * i + 1];
    }
    return true;
}

mpl_status tfl_lower_pad(tfl_node *node)
{
    enum { PADV2 = 60 };
    int64_t pads[2 * MPL_MAX_RANK];
    const tfl_tensor *tensor = tfl_in(node, 0);
    tfl_operand in[2];

    if (!read_pads(node, pads))
        return tfl_opaque(node);
    tfl_set_ints(node, MPL_ATTR_pads, 2 * tensor->shape.rank, pads);
    MPL_PASS(tfl_operand_of(node, 0, TFL_PLAIN, &in[0]));
    if (node->rule->code == PADV2) {
        MPL_PASS(tfl_operand_of(node, 2, TFL_PLAIN, &in[1]));
        return tfl_add(node, MPL_OP_pad, 2, in, TFL_PLAIN);
    }
    if (tensor->n_scales == 0)
        return tfl_add(node, MPL_OP_pad, 1, in, TFL_PLAIN);
    in[1] = in[0]; /* the number 0, with the scales of the input */
    MPL_PASS(tfl_scalar(node, tensor->type, (double)tensor->zero, "fill", &in[1].v));
    return tfl_add(node, MPL_OP_pad, 2, in, TFL_PLAIN);
}

mpl_status tfl_lower_mirror_pad(tfl_node *node)
{
    int64_t pads[2 * MPL_MAX_RANK];

    if (!read_pads(node, pads) || tfl_int(&node->op->options, TFL_MirrorPad_mode) != 0)
        return tfl_opaque(node);
    tfl_set_ints(node, MPL_ATTR_pads, 2 * tfl_in(node, 0)->shape.rank, pads);
    tfl_set(node, MPL_TEXT(mode, "reflect"));
    return add_first(node);
}
