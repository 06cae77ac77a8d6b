/* tflite_rules.c -- rules of operators.def that move elements or work on one after the other. What
 * TensorFlow Lite allows and memplan cannot compute becomes an opaque operation. Source of
 * meanings: TensorFlow, tensorflow/lite/kernels/. */
#include "graphs/io/tflite/tflite_priv.h"

/* All inputs in their order. */
static mpl_status add_inputs(tfl_node *n, mpl_op_kind kind, uint32_t n_in)
{
    mpl_status st = MPL_OK;
    tfl_operand *in = NULL;

    MPL_TRY(mpl_new(n->m->ctx, in, n_in));
    for (uint32_t i = 0; i < n_in; i++)
        MPL_TRY(tfl_operand_of(n, i, TFL_PLAIN, &in[i]));
    MPL_TRY(tfl_add(n, kind, n_in, in, TFL_PLAIN));
out:
    mpl_free(n->m->ctx, in);
    return st;
}

mpl_status tfl_lower_plain(tfl_node *n)
{
    return add_inputs(n, n->rule->kind, n->op->n_in);
}

/* The first input alone; others have become attributes. */
static mpl_status add_first(tfl_node *n)
{
    return add_inputs(n, n->rule->kind, 1);
}

mpl_status tfl_lower_quantize(tfl_node *n)
{
    mpl_type from = tfl_in(n, 0)->type, to = tfl_out(n, 0)->type;

    if (tfl_in(n, 0)->n_scales > 0 || tfl_out(n, 0)->n_scales > 0)
        return add_first(n);
    tfl_set(n, MPL_TEXT(to, mpl_type_name(to)));
    return from == to ? tfl_opaque(n) : add_inputs(n, MPL_OP_cast, 1); /* of 16-bit weights */
}

mpl_status tfl_lower_cast(tfl_node *n)
{
    tfl_set(n, MPL_TEXT(to, mpl_type_name(tfl_out(n, 0)->type)));
    return tfl_in(n, 0)->n_scales > 0 || tfl_out(n, 0)->n_scales > 0 ? tfl_opaque(n) : add_first(n);
}

mpl_status tfl_lower_clip(tfl_node *n)
{
    enum { RELU_N1_TO_1 = 20 };
    tfl_operand in[3];

    MPL_PASS(tfl_operand_of(n, 0, TFL_PLAIN, &in[0]));
    in[1] = in[2] = (tfl_operand){.order = TFL_PLAIN};
    MPL_PASS(
        tfl_scalar(n, MPL_TYPE_f32, n->rule->code == RELU_N1_TO_1 ? -1 : 0, "least", &in[1].v));
    MPL_PASS(tfl_scalar(n, MPL_TYPE_f32, n->rule->code == RELU_N1_TO_1 ? 1 : 6, "most", &in[2].v));
    return tfl_add(n, MPL_OP_clip, 3, in, TFL_PLAIN);
}

mpl_status tfl_lower_leaky_relu(tfl_node *n)
{
    tfl_set_float(n, MPL_ATTR_alpha, tfl_float(&n->op->options, TFL_LeakyRelu_alpha));
    return add_first(n);
}

mpl_status tfl_lower_gelu(tfl_node *n)
{
    if (tfl_int(&n->op->options, TFL_Gelu_approximate) != 0)
        tfl_set(n, MPL_TEXT(approximate, "tanh"));
    return add_first(n);
}

mpl_status tfl_lower_square(tfl_node *n)
{
    tfl_operand in[2];

    MPL_PASS(tfl_operand_of(n, 0, TFL_PLAIN, &in[0]));
    in[1] = in[0];
    return tfl_add(n, MPL_OP_mul, 2, in, TFL_PLAIN);
}

mpl_status tfl_lower_rsqrt(tfl_node *n)
{
    tfl_operand in[2];

    MPL_PASS(tfl_operand_of(n, 0, TFL_PLAIN, &in[0]));
    in[1] = (tfl_operand){.order = TFL_PLAIN};
    MPL_PASS(tfl_scalar(n, MPL_TYPE_f32, -0.5, "power", &in[1].v));
    return tfl_add(n, MPL_OP_pow, 2, in, TFL_PLAIN);
}

/* Softmax and log-softmax are along the last axis. */
mpl_status tfl_lower_softmax(tfl_node *n)
{
    double beta =
        n->rule->kind == MPL_OP_softmax ? tfl_float(&n->op->options, TFL_Softmax_beta) : 1.0;

    tfl_set_int(n, MPL_ATTR_axis, -1);
    return beta == 1.0 ? add_first(n) : tfl_opaque(n);
}

mpl_status tfl_lower_l2_norm(tfl_node *n)
{
    tfl_set_int(n, MPL_ATTR_axis, -1);
    tfl_set_int(n, MPL_ATTR_p, 2);
    return add_first(n);
}

/* ---- reductions ---- */

mpl_status tfl_lower_reduce(tfl_node *n)
{
    int64_t axis[MPL_MAX_RANK];
    uint32_t count;

    if (!tfl_ints(n, 1, MPL_MAX_RANK, axis, &count) || count == 0)
        return tfl_opaque(n);
    tfl_set_ints(n, MPL_ATTR_axes, count, axis);
    tfl_set_int(n, MPL_ATTR_keepdims, tfl_int(&n->op->options, TFL_Reducer_keep_dims) != 0);
    return add_first(n);
}

mpl_status tfl_lower_arg(tfl_node *n)
{
    int64_t axis;
    uint32_t count;

    if (!tfl_ints(n, 1, 1, &axis, &count) || count != 1)
        return tfl_opaque(n);
    tfl_set_int(n, MPL_ATTR_axis, axis);
    tfl_set_int(n, MPL_ATTR_keepdims, 0);
    n->converts = tfl_out(n, 0)->type != MPL_TYPE_i64;
    return add_first(n);
}

mpl_status tfl_lower_cumsum(tfl_node *n)
{
    int64_t axis;
    uint32_t count;

    if (!tfl_ints(n, 1, 1, &axis, &count) || count != 1)
        return tfl_opaque(n);
    tfl_set_int(n, MPL_ATTR_axis, axis);
    tfl_set_int(n, MPL_ATTR_exclusive, tfl_int(&n->op->options, TFL_Cumsum_exclusive));
    tfl_set_int(n, MPL_ATTR_reverse, tfl_int(&n->op->options, TFL_Cumsum_reverse));
    return add_first(n);
}

/* ---- moves ---- */

/* The dims are those of the file, whatever said so to the operator. */
mpl_status tfl_lower_view(tfl_node *n)
{
    tfl_set_ints(n, MPL_ATTR_shape, tfl_out(n, 0)->shape.rank, tfl_out(n, 0)->shape.dim);
    return add_first(n);
}

mpl_status tfl_lower_fill(tfl_node *n)
{
    enum { FILL = 94 };
    tfl_operand in;

    tfl_set_ints(n, MPL_ATTR_shape, tfl_out(n, 0)->shape.rank, tfl_out(n, 0)->shape.dim);
    MPL_PASS(tfl_operand_of(n, n->rule->code == FILL ? 1 : 0, TFL_PLAIN, &in));
    return tfl_add(n, MPL_OP_expand, 1, &in, TFL_PLAIN);
}

/* Dims are known, so the result is a constant. */
mpl_status tfl_lower_shape(tfl_node *n)
{
    const tfl_tensor *from = tfl_in(n, 0), *to = tfl_out(n, 0);
    int32_t dim[MPL_MAX_RANK];
    mpl_value v;

    if (to->is_output)
        return tfl_opaque(n);
    for (uint32_t i = 0; i < from->shape.rank; i++)
        dim[i] = (int32_t)from->shape.dim[i];
    MPL_PASS(mpl_graph_add_const(
        n->m->ctx, n->g, to->name, to->type, &(mpl_shape){1, {from->shape.rank}},
        to->type == MPL_TYPE_i64 ? (const void *)from->shape.dim : (const void *)dim, false, &v));
    return tfl_define(n, 0, v);
}

mpl_status tfl_lower_transpose(tfl_node *n)
{
    int64_t perm[MPL_MAX_RANK];
    uint32_t count;

    if (!tfl_ints(n, 1, MPL_MAX_RANK, perm, &count))
        return tfl_opaque(n);
    tfl_set_ints(n, MPL_ATTR_perm, count, perm);
    return add_first(n);
}

mpl_status tfl_lower_tile(tfl_node *n)
{
    int64_t repeats[MPL_MAX_RANK];
    uint32_t count;

    if (!tfl_ints(n, 1, MPL_MAX_RANK, repeats, &count))
        return tfl_opaque(n);
    tfl_set_ints(n, MPL_ATTR_repeats, count, repeats);
    return add_first(n);
}

mpl_status tfl_lower_gather(tfl_node *n)
{
    if (tfl_int(&n->op->options, TFL_Gather_batch_dims) != 0)
        return tfl_opaque(n);
    tfl_set_int(n, MPL_ATTR_axis, tfl_int(&n->op->options, TFL_Gather_axis));
    return add_inputs(n, MPL_OP_gather, 2);
}

mpl_status tfl_lower_concat(tfl_node *n)
{
    tfl_set_int(n, MPL_ATTR_axis, tfl_int(&n->op->options, TFL_Concatenation_axis));
    return tfl_lower_plain(n);
}

/* Each input with a dim more, then all along it. */
mpl_status tfl_lower_pack(tfl_node *n)
{
    mpl_status st = MPL_OK;
    tfl_operand *in = NULL;
    int64_t axis = tfl_int(&n->op->options, TFL_Pack_axis);
    mpl_shape shape = tfl_out(n, 0)->shape;
    char suffix[24];

    if (axis < -(int64_t)shape.rank || axis >= (int64_t)shape.rank)
        return MPL_REFUSE(n->m->ctx, "its axis is %" PRId64, axis);
    axis += axis < 0 ? shape.rank : 0;
    shape.dim[axis] = 1;
    MPL_TRY(mpl_new(n->m->ctx, in, n->op->n_in));
    for (uint32_t i = 0; i < n->op->n_in; i++) {
        MPL_TRY(tfl_operand_of(n, i, TFL_PLAIN, &in[i]));
        snprintf(suffix, sizeof suffix, ":in%u", i);
        MPL_TRY(tfl_add_view(n, in[i].v, &shape, tfl_out(n, 0)->name, suffix, &in[i].v));
    }
    tfl_set_int(n, MPL_ATTR_axis, axis);
    MPL_TRY(tfl_add(n, MPL_OP_concat, n->op->n_in, in, TFL_PLAIN));
out:
    mpl_free(n->m->ctx, in);
    return st;
}

/* Splits along an axis into the outputs; `unpack`: parts of one element, without that axis. */
static mpl_status split(tfl_node *n, uint32_t data, int64_t axis, bool unpack)
{
    mpl_status st = MPL_OK;
    mpl_ctx *ctx = n->m->ctx;
    uint32_t n_out = n->op->n_out;
    int64_t *size = NULL;
    const char **name = NULL;
    char(*parts)[480] = NULL;
    mpl_value *out = NULL;
    tfl_operand in;

    MPL_TRY(mpl_new_each(ctx, n_out, size, name, parts, out));
    for (uint32_t i = 0; i < n_out; i++) {
        const tfl_tensor *t = tfl_out(n, i);

        snprintf(parts[i], sizeof parts[i], "%s:part", t->name);
        name[i] = unpack ? parts[i] : t->name;
        if (!unpack && axis >= (int64_t)t->shape.rank)
            MPL_FAIL(ctx, MPL_EINPUT, "its axis is %" PRId64, axis);
        size[i] = unpack ? 1 : t->shape.dim[axis];
    }
    MPL_TRY(tfl_operand_of(n, data, TFL_PLAIN, &in));
    tfl_set_int(n, MPL_ATTR_axis, axis);
    tfl_set(n, MPL_INTS(split, n_out, size));
    MPL_TRY(tfl_add_all(n, MPL_OP_split, 1, &in.v, n_out, name, out));
    for (uint32_t i = 0; i < n_out; i++) {
        if (unpack)
            MPL_TRY(
                tfl_add_view(n, out[i], &tfl_out(n, i)->shape, tfl_out(n, i)->name, "", &out[i]));
        MPL_TRY(tfl_define(n, i, out[i]));
    }
out:
    mpl_free_each(ctx, size, name, parts, out);
    return st;
}

mpl_status tfl_lower_split(tfl_node *n)
{
    enum { SPLIT = 49 };
    bool even = n->rule->code == SPLIT; /* its axis comes first */
    uint32_t data = even ? 1 : 0, count;
    int64_t axis;

    if (tfl_in(n, data) == NULL || !tfl_ints(n, even ? 0 : 2, 1, &axis, &count) || count != 1)
        return tfl_opaque(n);
    axis += axis < 0 ? tfl_in(n, data)->shape.rank : 0;
    if (axis < 0)
        return MPL_REFUSE(n->m->ctx, "its axis is %" PRId64, axis);
    return split(n, data, axis, false);
}

mpl_status tfl_lower_unpack(tfl_node *n)
{
    return split(n, 0, tfl_int(&n->op->options, TFL_Pack_axis), true);
}

mpl_status tfl_lower_slice(tfl_node *n)
{
    const mpl_shape *in = &tfl_in(n, 0)->shape;
    int64_t begin[MPL_MAX_RANK], size[MPL_MAX_RANK];
    uint32_t n_begin, n_size;

    if (!tfl_ints(n, 1, MPL_MAX_RANK, begin, &n_begin) ||
        !tfl_ints(n, 2, MPL_MAX_RANK, size, &n_size) || n_begin != in->rank || n_size != in->rank)
        return tfl_opaque(n);
    for (uint32_t i = 0; i < in->rank; i++) {
        if (begin[i] < 0 || begin[i] > in->dim[i] || size[i] < -1 ||
            size[i] > in->dim[i] - begin[i])
            return MPL_REFUSE(n->m->ctx,
                              "it takes %" PRId64 " elements from %" PRId64
                              " on of dim %u, which has %" PRId64,
                              size[i], begin[i], i, in->dim[i]);
        size[i] = size[i] < 0 ? in->dim[i] : begin[i] + size[i]; /* where it ends */
    }
    tfl_set_ints(n, MPL_ATTR_starts, in->rank, begin);
    tfl_set_ints(n, MPL_ATTR_ends, in->rank, size);
    return add_first(n);
}

/* Ranges that begin or end at the border become so; a dim that shrinks is a range of one. */
static bool mask_ranges(const tfl_node *n, uint32_t count, int64_t *begin, int64_t *end,
                        int64_t *step, int64_t shrinks)
{
    const flat_table *o = &n->op->options;
    int64_t begins = tfl_int(o, TFL_StridedSlice_begin_mask);
    int64_t ends = tfl_int(o, TFL_StridedSlice_end_mask);

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

mpl_status tfl_lower_strided_slice(tfl_node *n)
{
    const flat_table *o = &n->op->options;
    int64_t range[3][MPL_MAX_RANK], shrinks = tfl_int(o, TFL_StridedSlice_shrink_axis_mask);
    uint32_t count[3];
    char name[480];
    mpl_value v;
    tfl_operand in;

    for (uint32_t i = 0; i < 3; i++)
        if (!tfl_ints(n, 1 + i, MPL_MAX_RANK, range[i], &count[i]) || count[i] != count[0])
            return tfl_opaque(n);
    if (tfl_int(o, TFL_StridedSlice_ellipsis_mask) != 0 ||
        tfl_int(o, TFL_StridedSlice_new_axis_mask) != 0 ||
        tfl_int(o, TFL_StridedSlice_offset) != 0 ||
        !mask_ranges(n, count[0], range[0], range[1], range[2], shrinks))
        return tfl_opaque(n);
    tfl_set_ints(n, MPL_ATTR_starts, count[0], range[0]);
    tfl_set_ints(n, MPL_ATTR_ends, count[0], range[1]);
    tfl_set_ints(n, MPL_ATTR_steps, count[0], range[2]);
    if (shrinks == 0)
        return add_first(n);
    snprintf(name, sizeof name, "%s:part", tfl_out(n, 0)->name);
    MPL_PASS(tfl_operand_of(n, 0, TFL_PLAIN, &in));
    MPL_PASS(tfl_add_all(n, MPL_OP_slice, 1, &in.v, 1, (const char *const[]){name}, &v));
    MPL_PASS(tfl_add_view(n, v, &tfl_out(n, 0)->shape, tfl_out(n, 0)->name, "", &v));
    return tfl_define(n, 0, v);
}

/* Pairs of numbers, one before and one after each dim: the IR has all of the first kind first. */
static bool read_pads(const tfl_node *n, int64_t pads[2 * MPL_MAX_RANK])
{
    int64_t pair[2 * MPL_MAX_RANK];
    uint32_t count, rank = tfl_in(n, 0)->shape.rank;

    if (!tfl_ints(n, 1, 2 * MPL_MAX_RANK, pair, &count) || count != 2 * rank)
        return false;
    for (uint32_t i = 0; i < rank; i++) {
        pads[i] = pair[2 * i];
        pads[rank + i] = pair[2 * i + 1];
    }
    return true;
}

mpl_status tfl_lower_pad(tfl_node *n)
{
    enum { PADV2 = 60 };
    int64_t pads[2 * MPL_MAX_RANK];
    const tfl_tensor *t = tfl_in(n, 0);
    tfl_operand in[2];

    if (!read_pads(n, pads))
        return tfl_opaque(n);
    tfl_set_ints(n, MPL_ATTR_pads, 2 * t->shape.rank, pads);
    MPL_PASS(tfl_operand_of(n, 0, TFL_PLAIN, &in[0]));
    if (n->rule->code == PADV2) {
        MPL_PASS(tfl_operand_of(n, 2, TFL_PLAIN, &in[1]));
        return tfl_add(n, MPL_OP_pad, 2, in, TFL_PLAIN);
    }
    if (t->n_scales == 0)
        return tfl_add(n, MPL_OP_pad, 1, in, TFL_PLAIN);
    in[1] = in[0]; /* the number 0, with the scales of the input */
    MPL_PASS(tfl_scalar(n, t->type, (double)t->zero, "fill", &in[1].v));
    return tfl_add(n, MPL_OP_pad, 2, in, TFL_PLAIN);
}

mpl_status tfl_lower_mirror_pad(tfl_node *n)
{
    int64_t pads[2 * MPL_MAX_RANK];

    if (!read_pads(n, pads) || tfl_int(&n->op->options, TFL_MirrorPad_mode) != 0)
        return tfl_opaque(n);
    tfl_set_ints(n, MPL_ATTR_pads, 2 * tfl_in(n, 0)->shape.rank, pads);
    tfl_set(n, MPL_TEXT(mode, "reflect"));
    return add_first(n);
}
