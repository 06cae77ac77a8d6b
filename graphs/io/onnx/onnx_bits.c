/* onnx_bits.c -- what newer versions of an operator add and others express: BitShift of signed
 * integers, Mod of floats with the divisor's sign, SpaceToDepth by columns; CausalConvWithState. */
#include "graphs/io/onnx/onnx_priv.h"

static mpl_status cast_to(onnx_node *node, mpl_value v, mpl_type type, mpl_value *out)
{
    return onnx_step(node, MPL_OP_cast, "cast", 1, &v, 1, &MPL_TEXT(to, mpl_type_name(type)), out);
}

static mpl_status two_steps(onnx_node *node, mpl_op_kind kind, mpl_value a, mpl_value b,
                            mpl_value *out)
{
    return onnx_step(node, kind, mpl_op_table[kind].name, 2, (mpl_value[]){a, b}, 0, NULL, out);
}

/* Where `flag` is set, the complement of v. */
static mpl_status flip(onnx_node *node, mpl_value flag, mpl_value v, mpl_value *out)
{
    mpl_value not ;

    MPL_PASS(onnx_step(node, MPL_OP_bitwise_not, "not", 1, &v, 0, NULL, &not ));
    return onnx_step(node, MPL_OP_where, "flipped", 3, (mpl_value[]){flag, not, v}, 0, NULL, out);
}

/* A signed number moves as the unsigned one of its bits; to the right its sign comes after it: the
 * complement of a negative one has none. */
mpl_status onnx_lower_bit_shift(onnx_node *node)
{
    static const mpl_type unsigned_of[MPL_N_TYPES] = {[MPL_TYPE_i64] = MPL_TYPE_u64,
                                                      [MPL_TYPE_i32] = MPL_TYPE_u32,
                                                      [MPL_TYPE_i16] = MPL_TYPE_u16,
                                                      [MPL_TYPE_i8] = MPL_TYPE_u8};
    bool right = onnx_attr_is(node, "direction", "RIGHT");
    mpl_value in[2] = {onnx_in(node, 0), onnx_in(node, 1)}, zero, negative, shifted;
    mpl_type type = in[0] != MPL_NONE ? (mpl_type)node->r->g->value_type[in[0]] : MPL_TYPE_u8;

    if (unsigned_of[type] == 0 || in[1] == MPL_NONE)
        return onnx_finish(node, MPL_OP_bit_shift, node->n_in, node->in);
    MPL_PASS(onnx_scalar(node, type, 0, "zero", &zero));
    MPL_PASS(two_steps(node, MPL_OP_less, in[0], zero, &negative));
    if (right)
        MPL_PASS(flip(node, negative, in[0], &in[0]));
    for (int i = 0; i < 2; i++)
        MPL_PASS(cast_to(node, in[i], unsigned_of[type], &in[i]));
    MPL_PASS(
        onnx_step(node, MPL_OP_bit_shift, "shifted", 2, in, node->n_attr, node->attr, &shifted));
    node->n_attr = 0;
    if (!right) {
        onnx_set(node, MPL_TEXT(to, mpl_type_name(type)));
        return onnx_finish(node, MPL_OP_cast, 1, &shifted);
    }
    MPL_PASS(cast_to(node, shifted, type, &shifted));
    MPL_PASS(onnx_step(node, MPL_OP_bitwise_not, "not", 1, &shifted, 0, NULL, &zero));
    return onnx_finish(node, MPL_OP_where, 3, (mpl_value[]){negative, zero, shifted});
}

/* Floats without fmod: C's remainder, plus the divisor where their signs differ. */
mpl_status onnx_lower_mod(onnx_node *node)
{
    mpl_value in[2] = {onnx_in(node, 0), onnx_in(node, 1)}, rest, zero, below[2], other, none;

    if (in[0] == MPL_NONE || in[1] == MPL_NONE || onnx_attr_int(node, "fmod", 0) != 0 ||
        node->r->g->value_type[in[0]] > MPL_TYPE_bf16)
        return onnx_finish(node, MPL_OP_mod, node->n_in, node->in);
    MPL_PASS(onnx_step(node, MPL_OP_mod, "rest", 2, in, 1, &MPL_INT(fmod, 1), &rest));
    MPL_PASS(onnx_scalar(node, (mpl_type)node->r->g->value_type[in[0]], 0, "zero", &zero));
    MPL_PASS(two_steps(node, MPL_OP_less, rest, zero, &below[0]));
    MPL_PASS(two_steps(node, MPL_OP_less, in[1], zero, &below[1]));
    MPL_PASS(two_steps(node, MPL_OP_equal, below[0], below[1], &other));
    MPL_PASS(two_steps(node, MPL_OP_equal, rest, zero, &none));
    MPL_PASS(two_steps(node, MPL_OP_or, other, none, &none));
    MPL_PASS(two_steps(node, MPL_OP_add, rest, in[1], &other));
    node->n_attr = 0;
    return onnx_finish(node, MPL_OP_where, 3, (mpl_value[]){none, rest, other});
}

/* CRD: the channel counts before row and column in the block. */
mpl_status onnx_lower_space_to_depth(onnx_node *node)
{
    int64_t b = onnx_attr_int(node, "blocksize", 0);
    mpl_value v = onnx_in(node, 0);
    const int64_t *x;
    int64_t dim[4];

    if (!onnx_attr_is(node, "mode", "CRD") || v == MPL_NONE)
        return onnx_finish(node, MPL_OP_space_to_depth, node->n_in, node->in);
    if (node->r->g->value_shape[v].rank != 4 || b < 1 || b > 1 << 15)
        return ONNX_REFUSE(node, "its input has no 4 dims, or its blocksize is none");
    x = node->r->g->value_shape[v].dim;
    if (x[2] % b != 0 || x[3] % b != 0 || x[1] > INT64_MAX / (b * b))
        return ONNX_REFUSE(node, "its rows and columns do not divide by %" PRId64, b);
    dim[0] = x[0], dim[1] = x[1] * b * b, dim[2] = x[2] / b, dim[3] = x[3] / b;
    MPL_PASS(onnx_reshape(node, v, 6, (int64_t[]){x[0], x[1], dim[2], b, dim[3], b}, &v));
    MPL_PASS(onnx_transpose(node, v, (int64_t[]){0, 1, 3, 5, 2, 4}, &v));
    node->n_attr = 0;
    MPL_PASS(onnx_set_ints(node, MPL_ATTR_shape, 4, dim));
    return onnx_finish(node, MPL_OP_reshape, 1, &v);
}

/* The past, else zeros, before the input; a convolution of each channel; its end is the state. */
mpl_status onnx_lower_causal_conv(onnx_node *node)
{
    mpl_value x = onnx_in(node, 0), w = onnx_in(node, 1), past = onnx_in(node, 3), y;
    const mpl_value in[3] = {MPL_NONE, w, onnx_in(node, 2)};
    bool swish =
        onnx_attr_is(node, "activation", "silu") || onnx_attr_is(node, "activation", "swish");
    mpl_value conv[3], state;
    int64_t kept, length, channels;
    uint32_t n_out = node->n_out;

    if (x == MPL_NONE || w == MPL_NONE || node->r->g->value_shape[x].rank != 3 ||
        node->r->g->value_shape[w].rank != 3)
        return ONNX_REFUSE(node, "it needs an input and weights of 3 dims");
    if (!swish && onnx_attr(node, "activation") != NULL &&
        !onnx_attr_is(node, "activation", "none"))
        return ONNX_REFUSE(node, "its activation is none of none, silu, swish");
    channels = node->r->g->value_shape[x].dim[1], length = node->r->g->value_shape[x].dim[2];
    kept = node->r->g->value_shape[w].dim[2] - 1;
    memcpy(conv, in, sizeof conv);
    if (past != MPL_NONE)
        MPL_PASS(onnx_step(node, MPL_OP_concat, "whole", 2, (mpl_value[]){past, x}, 1,
                           &MPL_INT(axis, 2), &conv[0]));
    else
        MPL_PASS(onnx_step(node, MPL_OP_pad, "whole", 1, &x, 1,
                           &MPL_INTS(pads, 6, ((int64_t[]){0, 0, kept, 0, 0, 0})), &conv[0]));
    const mpl_attr cut[] = {MPL_INTS(axes, 1, ((int64_t[]){2})), MPL_INTS(starts, 1, &length),
                            MPL_INTS(ends, 1, ((int64_t[]){INT64_MAX}))};

    MPL_PASS(onnx_step_named(node, MPL_OP_slice, "state", n_out > 1 ? node->out_name[1] : NULL, 1,
                             conv, 3, cut, &state));
    node->n_out = 1;
    node->n_attr = 0;
    onnx_set(node, MPL_INT(group, channels));
    if (swish) {
        MPL_PASS(onnx_step(node, MPL_OP_conv, "conv", conv[2] != MPL_NONE ? 3 : 2, conv,
                           node->n_attr, node->attr, &y));
        node->n_attr = 0;
        MPL_PASS(onnx_finish(node, MPL_OP_swish, 1, &y));
    } else
        MPL_PASS(onnx_finish(node, MPL_OP_conv, conv[2] != MPL_NONE ? 3 : 2, conv));
    node->n_out = n_out;
    if (n_out > 1)
        node->out[1] = state;
    return MPL_OK;
}
