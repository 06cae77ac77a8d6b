/* onnx_quant.c -- quantised operators, ONNX's and ONNX Runtime's: their operands in the order of
 * ours (graphs/ops/quant/README.md).
 *
 * Source   ONNX, docs/Operators.md; ONNX Runtime, docs/ContribOperators.md */
#include "graphs/io/onnx/onnx_priv.h"
#include "graphs/ops/ops_priv.h"

enum { X, W, X_SCALE, X_ZERO, W_SCALE, W_ZERO, Y_SCALE, Y_ZERO, BIAS, N_OPERANDS };

/* Sets the node's inputs: operand i is input from[i] of the file; -1: none. */
static mpl_status reorder(onnx_node *node, uint32_t count, const int *from)
{
    mpl_value *in;

    MPL_PASS(onnx_new(node->r, in, N_OPERANDS));
    for (uint32_t i = 0; i < count; i++)
        in[i] = from[i] < 0 ? MPL_NONE : onnx_in(node, (uint32_t)from[i]);
    while (count > 0 && in[count - 1] == MPL_NONE)
        count--;
    node->in = in, node->n_in = count;
    return MPL_OK;
}

static mpl_type type_of(const onnx_node *node, mpl_value v)
{
    return (mpl_type)node->r->g->value_type[v];
}

static const mpl_shape *shape_of(const onnx_node *node, mpl_value v)
{
    return &node->r->g->value_shape[v];
}

/* ---- QuantizeLinear, DequantizeLinear ---- */

/* The type that output_dtype names; `type` stays if it names none. */
static mpl_status named_type(onnx_node *node, mpl_type *type)
{
    int64_t number = onnx_attr_int(node, "output_dtype", 0);
    const char *name;

    if (number != 0 &&
        !onnx_type(number < 0 || number > INT32_MAX ? -1 : (int32_t)number, type, &name))
        return ONNX_REFUSE(node, "its output_dtype is %s, which memplan has not", name);
    return MPL_OK;
}

mpl_status onnx_lower_quantize(onnx_node *node)
{
    mpl_value in[3] = {onnx_in(node, 0), onnx_in(node, 1), onnx_in(node, 2)};
    mpl_type type = MPL_TYPE_u8;
    const char *name;

    if (in[0] == MPL_NONE || in[1] == MPL_NONE)
        return ONNX_REFUSE(node, "it needs a tensor and its scale");
    MPL_PASS(named_type(node, &type));
    if (in[2] == MPL_NONE && type != MPL_TYPE_u8) { /* a zero of the type, as many as scales */
        MPL_PASS(onnx_fresh_name(node->r, node->label, "zero", &name));
        MPL_PASS(onnx_blame(node, mpl_graph_add_const(node->r->ctx, node->r->g, name, type,
                                                      shape_of(node, in[1]), &(uint64_t){0}, true,
                                                      &in[2])));
    }
    return onnx_finish(node, MPL_OP_quantize, in[2] != MPL_NONE ? 3 : 2, in);
}

mpl_status onnx_lower_dequantize(onnx_node *node)
{
    mpl_type type = MPL_N_TYPES;

    MPL_PASS(named_type(node, &type));
    if (type != MPL_N_TYPES)
        onnx_set(node, MPL_TEXT(to, mpl_type_name(type)));
    return onnx_finish(node, MPL_OP_dequantize, node->n_in, node->in);
}

/* ---- convolutions ---- */

mpl_status onnx_lower_qlinear_conv(onnx_node *node)
{
    const mpl_attr *last = onnx_get(node, MPL_ATTR_channels_last);

    if (last != NULL && last->ints[0] != 0)
        return ONNX_REFUSE(node, "channels_last = 1 is not supported");
    onnx_drop(node, MPL_ATTR_channels_last);
    MPL_PASS(reorder(node, N_OPERANDS, (const int[]){0, 3, 1, 2, 4, 5, 6, 7, 8}));
    return onnx_lower_conv(node);
}

mpl_status onnx_lower_conv_integer(onnx_node *node)
{
    MPL_PASS(reorder(node, N_OPERANDS, (const int[]){0, 1, -1, 2, -1, 3, -1, -1, -1}));
    return onnx_lower_conv(node);
}

/* ---- products ---- */

static mpl_status multiply(onnx_node *node)
{
    node->n_attr = 0;
    return onnx_finish(node, MPL_OP_qmatmul, node->n_in, node->in);
}

mpl_status onnx_lower_qlinear_matmul(onnx_node *node)
{
    MPL_PASS(reorder(node, N_OPERANDS, (const int[]){0, 3, 1, 2, 4, 5, 6, 7, -1}));
    return multiply(node);
}

mpl_status onnx_lower_matmul_integer(onnx_node *node)
{
    MPL_PASS(reorder(node, N_OPERANDS, (const int[]){0, 1, -1, 2, -1, 3, -1, -1, -1}));
    return multiply(node);
}

mpl_status onnx_lower_matmul_integer_float(onnx_node *node)
{
    MPL_PASS(reorder(node, N_OPERANDS, (const int[]){0, 1, 2, 4, 3, 5, -1, -1, 6}));
    return multiply(node);
}

/* A bias in units of both scales, where the result is a float. */
static mpl_status real_bias(onnx_node *node)
{
    if (onnx_in(node, BIAS) == MPL_NONE || node->in[Y_SCALE] != MPL_NONE ||
        type_of(node, node->in[BIAS]) != MPL_TYPE_i32)
        return MPL_OK;
    MPL_PASS(onnx_step(node, MPL_OP_cast, "bias", 1, &node->in[BIAS], 1, &MPL_TEXT(to, "f32"),
                       &node->in[BIAS]));
    for (uint32_t i = X_SCALE; i <= W_SCALE; i += W_SCALE - X_SCALE)
        MPL_PASS(onnx_step(node, MPL_OP_mul, "bias", 2, (mpl_value[]){node->in[BIAS], node->in[i]},
                           0, NULL, &node->in[BIAS]));
    return MPL_OK;
}

mpl_status onnx_lower_qgemm(onnx_node *node)
{
    const Onnx__AttributeProto *alpha = onnx_attr(node, "alpha");
    bool trans_a = onnx_attr_int(node, "transA", 0) != 0,
         trans_b = onnx_attr_int(node, "transB", 0) != 0;
    mpl_value by;

    MPL_PASS(reorder(node, N_OPERANDS, (const int[]){0, 3, 1, 2, 4, 5, 7, 8, 6}));
    if (node->n_in <= W_SCALE || onnx_in(node, X_SCALE) == MPL_NONE)
        return ONNX_REFUSE(node, "it needs two matrices with their scales");
    node->n_attr = 0;
    if (alpha != NULL && alpha->f != 1) {
        MPL_PASS(onnx_scalar(node, MPL_TYPE_f32, (double)alpha->f, "alpha", &by));
        MPL_PASS(onnx_step(node, MPL_OP_mul, "scale", 2, (mpl_value[]){node->in[X_SCALE], by}, 0,
                           NULL, &node->in[X_SCALE]));
    }
    MPL_PASS(real_bias(node));
    if (trans_a)
        MPL_PASS(
            onnx_step(node, MPL_OP_transpose, "turned", 1, &node->in[X], 0, NULL, &node->in[X]));
    if (trans_b)
        MPL_PASS(onnx_set_ints(node, MPL_ATTR_trans_b, 1, (int64_t[]){1}));
    return onnx_finish(node, MPL_OP_qmatmul, node->n_in, node->in);
}

mpl_status onnx_quantize_all(onnx_node *node, mpl_value x, mpl_value out[3])
{
    static const char *const suffix[] = {"steps", "scale", "zero"};
    const char *name[3];

    for (uint32_t i = 0; i < 3; i++)
        MPL_PASS(onnx_fresh_name(node->r, node->label, suffix[i], &name[i]));
    return onnx_blame(node, mpl_graph_add_folded(node->r->ctx, node->r->g, MPL_OP_dynamic_quantize,
                                                 node->label, 1, &x, 0, NULL, 3, name, out));
}

mpl_status onnx_lower_dynamic_matmul(onnx_node *node)
{
    mpl_value x[3];

    if (node->n_in < 3 || node->in[0] == MPL_NONE)
        return ONNX_REFUSE(node, "it needs two matrices and a scale");
    MPL_PASS(onnx_quantize_all(node, node->in[0], x));
    MPL_PASS(reorder(node, N_OPERANDS, (const int[]){0, 1, -1, -1, 2, 3, -1, -1, 4}));
    node->in[X] = x[0], node->in[X_SCALE] = x[1], node->in[X_ZERO] = x[2];
    return multiply(node);
}

/* Makes bytes of constant v a constant of packed elements in `rows` rows. */
static mpl_status unpacked(onnx_node *node, mpl_value v, const char *what, mpl_type type,
                           int64_t rows, mpl_value *out)
{
    const mpl_graph *g = node->r->g;
    int64_t each = 8 / (int64_t)mpl_type_bits(type), columns;
    mpl_status st = MPL_OK;
    const char *name;
    uint8_t *bytes = NULL;

    MPL_PASS(onnx_need_constant(node, v, what));
    if (type_of(node, v) != MPL_TYPE_u8 || rows < 1 || mpl_count(shape_of(node, v)) % rows != 0)
        return ONNX_REFUSE(node, "its %s is not of bytes in %" PRId64 " rows", what, rows);
    columns = mpl_count(shape_of(node, v)) / rows * each;
    MPL_PASS(onnx_fresh_name(node->r, node->label, what, &name));
    MPL_PASS((bytes = mpl_alloc(node->r->ctx, g->value_bytes[v], 1)) != NULL ? MPL_OK : MPL_EMEM);
    if (g->value_splat[v])
        mpl_type_repeat(MPL_TYPE_u8, g->value_bytes[v], g->value_data[v], bytes);
    else
        memcpy(bytes, g->value_data[v], g->value_bytes[v]);
    st = mpl_graph_add_const(node->r->ctx, node->r->g, name, type, &(mpl_shape){2, {rows, columns}},
                             bytes, false, out);
    mpl_free(node->r->ctx, bytes);
    return onnx_blame(node, st);
}

mpl_status onnx_lower_matmul_nbits(onnx_node *node)
{
    int64_t bits = onnx_attr_int(node, "bits", 4), rows = onnx_attr_int(node, "N", 0);
    mpl_type type = bits == 2 ? MPL_TYPE_u2 : bits == 8 ? MPL_TYPE_u8 : MPL_TYPE_u4;
    mpl_value in[4] = {onnx_in(node, 0), onnx_in(node, 1), onnx_in(node, 2), onnx_in(node, 3)}, y;
    mpl_value bias = onnx_in(node, 5);
    const mpl_attr *block = onnx_get(node, MPL_ATTR_block_size);
    uint32_t n_in = in[3] != MPL_NONE ? 4 : 3;

    if (in[0] == MPL_NONE || in[1] == MPL_NONE || in[2] == MPL_NONE || block == NULL)
        return ONNX_REFUSE(node, "it needs a, b, scales and block_size");
    if ((bits != 2 && bits != 4 && bits != 8) || onnx_in(node, 4) != MPL_NONE)
        return ONNX_REFUSE(node, "%" PRId64 " bits%s; 2, 4 and 8 in order are supported", bits,
                           onnx_in(node, 4) != MPL_NONE ? " and g_idx" : "");
    MPL_PASS(unpacked(node, in[1], "b", type, rows, &in[1]));
    if (in[3] != MPL_NONE && type_of(node, in[3]) == MPL_TYPE_u8)
        MPL_PASS(unpacked(node, in[3], "zeros", type, rows, &in[3]));
    else if (in[3] != MPL_NONE && rows > 0)
        MPL_PASS(onnx_step(node, MPL_OP_reshape, "zeros", 1, &in[3], 1,
                           &MPL_INTS(shape, 2, ((const int64_t[]){rows, -1})), &in[3]));
    if (bias == MPL_NONE)
        return onnx_finish(node, MPL_OP_matmul_blocked, n_in, in);
    MPL_PASS(
        onnx_step(node, MPL_OP_matmul_blocked, "product", n_in, in, node->n_attr, node->attr, &y));
    node->n_attr = 0;
    return onnx_finish(node, MPL_OP_add, 2, (mpl_value[]){y, bias});
}

/* ---- element-wise, pools ---- */

mpl_status onnx_lower_qlinear_two(onnx_node *node)
{
    const char *of = strcmp(node->rule->name, "QLinearAdd") == 0 ? "add" : "mul";

    MPL_PASS(reorder(node, 8, (const int[]){0, 1, 6, 2, 7, 3, 4, 5}));
    onnx_set(node, MPL_TEXT(of, of));
    return onnx_finish(node, MPL_OP_qelementwise, node->n_in, node->in);
}

mpl_status onnx_lower_qlinear_one(onnx_node *node)
{
    const char *of = strcmp(node->rule->name, "QLinearSigmoid") == 0 ? "sigmoid" : "leaky_relu";

    MPL_PASS(reorder(node, 5, (const int[]){0, 1, 3, 2, 4}));
    onnx_set(node, MPL_TEXT(of, of));
    return onnx_finish(node, MPL_OP_qelementwise, node->n_in, node->in);
}

mpl_status onnx_lower_qlinear_concat(onnx_node *node)
{
    uint32_t parts = node->n_in >= 2 ? (node->n_in - 2) / 3 : 0;
    mpl_value *part;

    if (parts == 0 || node->n_in != 2 + 3 * parts)
        return ONNX_REFUSE(node, "it has %u inputs; a scale, a zero and three a part are needed",
                           node->n_in);
    MPL_PASS(onnx_new(node->r, part, parts));
    for (uint32_t i = 0; i < parts; i++) {
        mpl_value in[5] = {node->in[2 + 3 * i], node->in[3 + 3 * i], node->in[0],
                           node->in[4 + 3 * i], node->in[1]};

        MPL_PASS(onnx_step(node, MPL_OP_qelementwise, "part", 5, in, 1, &MPL_TEXT(of, "identity"),
                           &part[i]));
    }
    return onnx_finish(node, MPL_OP_concat, parts, part);
}

mpl_status onnx_lower_qlinear_pool(onnx_node *node)
{
    const mpl_attr *last = onnx_get(node, MPL_ATTR_channels_last);

    if (last != NULL && last->ints[0] != 0)
        return ONNX_REFUSE(node, "channels_last = 1 is not supported");
    MPL_PASS(reorder(node, 5, (const int[]){0, 1, 3, 2, 4}));
    return onnx_lower_pool(node);
}

mpl_status onnx_lower_qlinear_global_pool(onnx_node *node)
{
    const mpl_attr *last = onnx_get(node, MPL_ATTR_channels_last);
    bool behind = last != NULL && last->ints[0] != 0;
    const mpl_shape *shape;

    MPL_PASS(reorder(node, 5, (const int[]){0, 1, 3, 2, 4}));
    if (onnx_in(node, 0) == MPL_NONE || shape_of(node, node->in[0])->rank < 3)
        return ONNX_REFUSE(node, "it needs batch, channels and at least one dim more");
    shape = shape_of(node, node->in[0]);
    MPL_PASS(
        onnx_set_ints(node, MPL_ATTR_kernel_shape, shape->rank - 2, shape->dim + (behind ? 1 : 2)));
    return onnx_finish(node, MPL_OP_qavg_pool, node->n_in, node->in);
}

/* ---- DynamicQuantizeLSTM: an LSTM whose products are of integers ---- */

/* Weights [dirs, terms, gates] with scale and zero [dirs] or [dirs, gates], as [dirs, gates, terms]
 * of floats. */
static mpl_status real_weights(onnx_node *node, uint32_t weights, uint32_t scale, uint32_t zero,
                               mpl_value *out)
{
    mpl_value part[3] = {onnx_in(node, weights), onnx_in(node, zero), onnx_in(node, scale)};
    const mpl_attr to = MPL_TEXT(to, "f32");

    if (part[0] == MPL_NONE || part[1] == MPL_NONE || part[2] == MPL_NONE ||
        shape_of(node, part[0])->rank != 3)
        return ONNX_REFUSE(node, "its weights, their scales and zeros must be there");
    for (uint32_t i = 0; i < 3; i++) {
        int64_t dirs = shape_of(node, part[0])->dim[0];

        if (i < 2)
            MPL_PASS(onnx_step(node, MPL_OP_cast, "real", 1, &part[i], 1, &to, &part[i]));
        if (i > 0)
            MPL_PASS(onnx_step(node, MPL_OP_reshape, "rows", 1, &part[i], 1,
                               &MPL_INTS(shape, 3, ((const int64_t[]){dirs, 1, -1})), &part[i]));
    }
    MPL_PASS(onnx_step(node, MPL_OP_sub, "moved", 2, part, 0, NULL, &part[0]));
    part[1] = part[2];
    MPL_PASS(onnx_step(node, MPL_OP_mul, "scaled", 2, part, 0, NULL, &part[0]));
    return onnx_step(node, MPL_OP_transpose, "turned", 1, part, 1,
                     &MPL_INTS(perm, 3, ((const int64_t[]){0, 2, 1})), out);
}

/* The dims of an LSTM are checked by weights of floats, which nothing reads. */
mpl_status onnx_lower_dynamic_lstm(onnx_node *node)
{
    const mpl_value quantised[] = {onnx_in(node, 1), onnx_in(node, 8),  onnx_in(node, 9),
                                   onnx_in(node, 2), onnx_in(node, 10), onnx_in(node, 11)};
    mpl_value w, r;

    MPL_PASS(real_weights(node, 1, 8, 9, &w));
    MPL_PASS(real_weights(node, 2, 10, 11, &r));
    node->in[1] = w, node->in[2] = r;
    node->n_in = 8;
    while (node->n_in > 3 && node->in[node->n_in - 1] == MPL_NONE)
        node->n_in--;
    return onnx_lower_lstm_of(node, quantised);
}
