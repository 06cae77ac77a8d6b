/* onnx_fused.c -- operators of ONNX Runtime (com.microsoft) that are several of ONNX's, without
 * attention: activations, products, convolutions, normalisations.
 *
 * Source   ONNX Runtime, docs/ContribOperators.md */
#include "graphs/io/onnx/onnx_priv.h"

static mpl_type type_of(const onnx_node *node, mpl_value v)
{
    return (mpl_type)node->r->g->value_type[v];
}

/* The first `count` inputs must be there. */
static mpl_status need(onnx_node *node, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        if (onnx_in(node, i) == MPL_NONE)
            return ONNX_REFUSE(node, "input %u is missing", i);
    return MPL_OK;
}

/* Makes what `lower` makes of the node a value of its own: the node goes on behind it. */
static mpl_status as_step(onnx_node *node, mpl_status (*lower)(onnx_node *node), const char *suffix,
                          mpl_value *out)
{
    onnx_node part = *node;
    const char *name;

    MPL_PASS(onnx_fresh_name(node->r, node->out_name[0], suffix, &name));
    part.n_out = 1;
    part.out_name = &name;
    part.out = out;
    return lower(&part);
}

/* The last operation of a node with attributes of its own alone. */
static mpl_status finish_with(onnx_node *node, mpl_op_kind kind, uint32_t n_in, const mpl_value *in,
                              uint32_t n_attr, const mpl_attr *attr)
{
    node->n_attr = n_attr;
    if (n_attr > 0)
        memcpy(node->attr, attr, n_attr * sizeof *attr);
    return onnx_finish(node, kind, n_in, in);
}

/* A number that stands for an attribute left out; `value` outlives the node. */
static void set_default(onnx_node *node, mpl_attr_key key, const double *value)
{
    if (onnx_get(node, key) == NULL)
        onnx_set(node, (mpl_attr){.key = key, .n = 1, .floats = value});
}

/* ---- activations ---- */

/* Gelu, QuickGelu; BiasGelu and FastGelu may add a bias before. */
mpl_status onnx_lower_gelu_ms(onnx_node *node)
{
    static const double alpha = (double)1.702f;
    mpl_value v = onnx_in(node, 0);

    if (node->n_in > 1)
        MPL_PASS(onnx_step(node, MPL_OP_add, "sum", 2, node->in, 0, NULL, &v));
    if (strcmp(node->rule->name, "FastGelu") == 0)
        onnx_set(node, MPL_TEXT(approximate, "tanh"));
    if (node->rule->kind == MPL_OP_swish)
        set_default(node, MPL_ATTR_alpha, &alpha);
    return onnx_finish(node, node->rule->kind, 1, &v);
}

/* The left half of the last axis times gelu of the right one, after a bias. */
mpl_status onnx_lower_bias_split_gelu(onnx_node *node)
{
    mpl_value sum, half[2];
    int64_t width;

    MPL_PASS(need(node, 2));
    MPL_PASS(onnx_step(node, MPL_OP_add, "sum", 2, node->in, 0, NULL, &sum));
    width = node->r->g->value_shape[sum].rank > 0
                ? node->r->g->value_shape[sum].dim[node->r->g->value_shape[sum].rank - 1]
                : 1;
    for (int64_t i = 0; i < 2; i++)
        MPL_PASS(onnx_step(node, MPL_OP_slice, i == 0 ? "left" : "right", 1, &sum, 3,
                           (mpl_attr[]){MPL_INT(axes, -1), MPL_INT(starts, i * (width / 2)),
                                        MPL_INT(ends, (i + 1) * (width / 2))},
                           &half[i]));
    MPL_PASS(onnx_step(node, MPL_OP_gelu, "gelu", 1, &half[1], 0, NULL, &half[1]));
    return onnx_finish(node, MPL_OP_mul, 2, half);
}

/* Finishes a node by its attribute `activation` with up to two parameters. */
static mpl_status activate(onnx_node *n, mpl_value v, uint32_t n_given, const double *given)
{
    static const struct {
        const char *name;
        mpl_op_kind kind;
        uint32_t n;
        mpl_attr_key key[2];
    } known[] = {
        {"Relu", MPL_OP_relu, 0, {0}},
        {"Sigmoid", MPL_OP_sigmoid, 0, {0}},
        {"Tanh", MPL_OP_tanh, 0, {0}},
        {"Elu", MPL_OP_elu, 1, {MPL_ATTR_alpha}},
        {"LeakyRelu", MPL_OP_leaky_relu, 1, {MPL_ATTR_alpha}},
        {"HardSigmoid", MPL_OP_hard_sigmoid, 2, {MPL_ATTR_alpha, MPL_ATTR_beta}},
        {"HardSwish", MPL_OP_hard_swish, 0, {0}},
        {"Softplus", MPL_OP_softplus, 0, {0}},
        {"Clip", MPL_OP_clip, 0, {0}},
    };
    mpl_attr attr[2];
    mpl_value in[3] = {v, MPL_NONE, MPL_NONE};
    size_t i = 0;

    while (i < sizeof known / sizeof *known && !onnx_attr_is(n, "activation", known[i].name))
        i++;
    if (i == sizeof known / sizeof *known)
        return ONNX_REFUSE(n, "its activation is not supported");
    for (uint32_t k = 0; k < n_given && known[i].kind == MPL_OP_clip && k < 2; k++)
        MPL_PASS(onnx_scalar(n, type_of(n, v), given[k], k == 0 ? "min" : "max", &in[1 + k]));
    for (uint32_t k = 0; k < 2; k++)
        attr[k] = (mpl_attr){.key = known[i].key[k], .n = 1, .floats = &given[k]};
    return finish_with(n, known[i].kind, known[i].kind == MPL_OP_clip ? 3 : 1, in,
                       n_given < known[i].n ? n_given : known[i].n, attr);
}

static bool has_activation(const onnx_node *node)
{
    return onnx_attr(node, "activation") != NULL && !onnx_attr_is(node, "activation", "");
}

/* ---- products, convolutions ---- */

static mpl_status plain(onnx_node *node)
{
    return onnx_finish(node, node->rule->kind, node->n_in, node->in);
}

mpl_status onnx_lower_fused_gemm(onnx_node *node)
{
    static const char *const name[] = {"activation_alpha", "activation_beta"};
    double given[2] = {0, 0};
    uint32_t n_given = 0;
    mpl_value v;

    MPL_PASS(need(node, 2));
    for (; n_given < 2 && onnx_attr(node, name[n_given]) != NULL; n_given++)
        given[n_given] = (double)onnx_attr(node, name[n_given])->f;
    if (!has_activation(node))
        return plain(node);
    MPL_PASS(as_step(node, plain, "product", &v));
    return activate(node, v, n_given, given);
}

/* Moves the first axis of a stack of matrices before the last one. */
static mpl_status turn_stack(onnx_node *node, const char *suffix, mpl_value *v)
{
    int64_t perm[MPL_MAX_RANK];
    uint32_t rank = node->r->g->value_shape[*v].rank;

    for (uint32_t i = 0; i < rank; i++)
        perm[i] = i + 1 == rank ? i : i + 2 == rank ? 0 : (int64_t)i + 1;
    return rank < 3
               ? MPL_OK
               : onnx_step(node, MPL_OP_transpose, suffix, 1, v, 1, &MPL_INTS(perm, rank, perm), v);
}

/* Matrices are a gemm; stacks of them a matmul, whose result is scaled in place. */
mpl_status onnx_lower_fused_matmul(onnx_node *node)
{
    const mpl_attr *given = onnx_get(node, MPL_ATTR_alpha);
    double alpha = given != NULL ? given->floats[0] : 1;
    const mpl_graph *g = node->r->g;
    mpl_value in[2] = {onnx_in(node, 0), onnx_in(node, 1)};

    MPL_PASS(need(node, 2));
    if (g->value_shape[in[0]].rank == 2 && g->value_shape[in[1]].rank == 2)
        return onnx_finish(node, MPL_OP_gemm, 2, in);
    onnx_drop(node, MPL_ATTR_alpha);
    if (onnx_attr_int(node, "transBatchA", 0) != 0)
        MPL_PASS(turn_stack(node, "left", &in[0]));
    if (onnx_attr_int(node, "transBatchB", 0) != 0)
        MPL_PASS(turn_stack(node, "right", &in[1]));
    if (alpha == 1)
        return onnx_finish(node, MPL_OP_matmul, 2, in);
    MPL_PASS(onnx_step(node, MPL_OP_matmul, "product", 2, in, node->n_attr, node->attr, &in[0]));
    MPL_PASS(onnx_scalar(node, type_of(node, in[0]), alpha, "alpha", &in[1]));
    return finish_with(node, MPL_OP_mul, 2, in, 0, NULL);
}

/* Moves the channels of an image from the last axis to the second, or back. */
static mpl_status turn_image(onnx_node *node, const char *suffix, bool back, mpl_value *v)
{
    int64_t perm[MPL_MAX_RANK];
    uint32_t rank = node->r->g->value_shape[*v].rank;

    for (uint32_t i = 0; i < rank; i++)
        perm[i] = i == 0 ? 0 : back ? (i + 1 == rank ? 1 : i + 1) : (i == 1 ? rank - 1 : i - 1);
    return onnx_step(node, MPL_OP_transpose, suffix, 1, v, 1, &MPL_INTS(perm, rank, perm), v);
}

/* Conv, then a sum with input 3, then an activation; channels may stand last. */
mpl_status onnx_lower_fused_conv(onnx_node *node)
{
    const Onnx__AttributeProto *a = onnx_attr(node, "activation_params");
    bool last = node->rule->name[0] == 'N'; /* NhwcConv, NhwcFusedConv */
    mpl_value add = onnx_in(node, 3), v, in[2];
    double given[2] = {0, 0};
    uint32_t n_given = 0;

    MPL_PASS(need(node, 2));
    for (; a != NULL && n_given < 2 && n_given < a->n_floats; n_given++)
        given[n_given] = (double)a->floats[n_given];
    node->n_in = node->n_in > 3 ? 3 : node->n_in;
    if (last)
        MPL_PASS(turn_image(node, "image", false, &node->in[0]));
    if (!last && add == MPL_NONE && !has_activation(node))
        return onnx_lower_conv(node);
    MPL_PASS(as_step(node, onnx_lower_conv, "conv", &v));
    node->n_attr = 0;
    if (last)
        MPL_PASS(turn_image(node, "last", true, &v));
    in[0] = v, in[1] = add;
    if (!has_activation(node))
        return onnx_finish(node, add != MPL_NONE ? MPL_OP_add : MPL_OP_identity,
                           add != MPL_NONE ? 2 : 1, in);
    if (add != MPL_NONE)
        MPL_PASS(onnx_step(node, MPL_OP_add, "sum", 2, in, 0, NULL, &v));
    return activate(node, v, n_given, given);
}

/* ---- normalisation ---- */

/* The sum of the operands that are there, as output `out` of the node if that is wanted. */
static mpl_status add_up(onnx_node *node, uint32_t n_in, const mpl_value *in, uint32_t out,
                         mpl_value *sum)
{
    const char *name = out < node->n_out ? node->out_name[out] : NULL;
    mpl_value present[3];
    uint32_t count = 0;

    for (uint32_t i = 0; i < n_in; i++)
        if (in[i] != MPL_NONE)
            present[count++] = in[i];
    if (name == NULL)
        MPL_PASS(onnx_fresh_name(node->r, node->out_name[0], "sum", &name));
    MPL_PASS(onnx_blame(node, mpl_graph_add_folded(node->r->ctx, node->r->g,
                                                   count > 2 ? MPL_OP_sum : MPL_OP_add, node->label,
                                                   count, present, 0, NULL, 1, &name, sum)));
    if (out < node->n_out)
        node->out[out] = *sum;
    return MPL_OK;
}

/* Output 0 of the node alone. */
static mpl_status finish_first(onnx_node *node, mpl_op_kind kind, uint32_t n_in,
                               const mpl_value *in)
{
    onnx_node first = *node;

    first.n_out = 1;
    return onnx_finish(&first, kind, n_in, in);
}

static const double epsilon = (double)1e-12f; /* where none is given, unlike ONNX's */

mpl_status onnx_lower_skip_norm(onnx_node *node)
{
    bool mean = node->rule->kind == MPL_OP_layer_norm;
    mpl_value sum, in[3] = {MPL_NONE, onnx_in(node, 2), mean ? onnx_in(node, 3) : MPL_NONE};

    MPL_PASS(need(node, 3));
    for (uint32_t i = 1; i < 3 && i < node->n_out; i++)
        if (node->out_name[i] != NULL)
            return ONNX_REFUSE(node, "its output %u is for training, which is not supported", i);
    MPL_PASS(add_up(node, 3, (mpl_value[]){node->in[0], node->in[1], onnx_in(node, mean ? 4 : 3)},
                    3, &sum));
    set_default(node, MPL_ATTR_epsilon, &epsilon);
    in[0] = sum;
    return finish_first(node, node->rule->kind, mean && in[2] != MPL_NONE ? 3 : 2, in);
}

/* The number of words of each sample: of its mask, or 0 without one. */
static mpl_status count_words(onnx_node *node, mpl_value mask)
{
    const mpl_value ids = node->in[0];
    onnx_node part = *node;
    mpl_value v;

    part.out_name = &node->out_name[1], part.out = &node->out[1], part.n_out = 1, part.n_attr = 0;
    if (mask == MPL_NONE)
        return onnx_blame(
            node, mpl_graph_add_const(node->r->ctx, node->r->g, node->out_name[1], MPL_TYPE_i32,
                                      &(mpl_shape){1, {node->r->g->value_shape[ids].dim[0]}},
                                      &(int32_t){0}, true, &node->out[1]));
    MPL_PASS(onnx_step(node, MPL_OP_cast, "mask", 1, &mask, 1, &MPL_TEXT(to, "i32"), &v));
    return finish_with(&part, MPL_OP_reduce_sum, 1, &v, 2,
                       (mpl_attr[]){MPL_INT(axes, 1), MPL_INT(keepdims, 0)});
}

/* Words, positions and segments looked up, added and normalised. */
mpl_status onnx_lower_embed_norm(onnx_node *node)
{
    mpl_value part[3] = {MPL_NONE, MPL_NONE, MPL_NONE}, in[3];
    const mpl_graph *g = node->r->g;

    if (onnx_in(node, 0) == MPL_NONE || onnx_in(node, 2) == MPL_NONE ||
        onnx_in(node, 3) == MPL_NONE || onnx_in(node, 5) == MPL_NONE ||
        g->value_shape[node->in[0]].rank != 2)
        return ONNX_REFUSE(node, "word ids of 2 dims, words, positions and the scale are needed");
    MPL_PASS(onnx_step(node, MPL_OP_gather, "words", 2, (mpl_value[]){node->in[2], node->in[0]}, 0,
                       NULL, &part[0]));
    if (onnx_in(node, 8) != MPL_NONE)
        MPL_PASS(onnx_step(node, MPL_OP_gather, "positions", 2,
                           (mpl_value[]){node->in[3], node->in[8]}, 0, NULL, &part[1]));
    else
        MPL_PASS(onnx_step(node, MPL_OP_slice, "positions", 1, &node->in[3], 3,
                           (mpl_attr[]){MPL_INT(axes, 0), MPL_INT(starts, 0),
                                        MPL_INT(ends, g->value_shape[node->in[0]].dim[1])},
                           &part[1]));
    if (onnx_in(node, 1) != MPL_NONE && onnx_in(node, 4) != MPL_NONE)
        MPL_PASS(onnx_step(node, MPL_OP_gather, "segments", 2,
                           (mpl_value[]){node->in[4], node->in[1]}, 0, NULL, &part[2]));
    MPL_PASS(add_up(node, 3, part, 2, &in[0]));
    if (node->n_out > 1 && node->out_name[1] != NULL)
        MPL_PASS(count_words(node, onnx_in(node, 7)));
    set_default(node, MPL_ATTR_epsilon, &epsilon);
    in[1] = node->in[5], in[2] = onnx_in(node, 6);
    return finish_first(node, MPL_OP_layer_norm, in[2] != MPL_NONE ? 3 : 2, in);
}

/* ---- positions ---- */

mpl_status onnx_count_up(onnx_node *node, uint32_t rank, const int64_t *dim, mpl_value *out)
{
    mpl_status st = MPL_OK;
    mpl_shape shape = {.rank = rank};
    uint64_t count = 0;
    int64_t *data = NULL;
    const char *name;

    memcpy(shape.dim, dim, rank * sizeof *dim);
    if (!mpl_shape_count(&shape, &count) || count > (UINT64_C(1) << 28))
        ONNX_FAIL(node, "a sequence of %" PRIu64 " steps is too long", count);
    MPL_TRY(mpl_new(node->r->ctx, data, count));
    for (uint64_t i = 0; i < count; i++)
        data[i] = (int64_t)i;
    MPL_TRY(onnx_fresh_name(node->r, node->label, "steps", &name));
    MPL_TRY(mpl_graph_add_const(node->r->ctx, node->r->g, name, MPL_TYPE_i64, &shape, data, false,
                                out));
out:
    mpl_free(node->r->ctx, data);
    return onnx_blame(node, st);
}

/* Operands in another order; one position is that of the first step. */
mpl_status onnx_lower_rotary_ms(onnx_node *node)
{
    const mpl_graph *g = node->r->g;
    mpl_value in[4] = {onnx_in(node, 0), onnx_in(node, 2), onnx_in(node, 3), onnx_in(node, 1)},
              part[2];
    const mpl_shape *x, *angles;
    int64_t steps[2];

    MPL_PASS(need(node, 4));
    x = &g->value_shape[in[0]], angles = &g->value_shape[in[1]];
    if (x->rank < 3 || x->rank > 4 || angles->rank != 2 || angles->dim[1] < 1)
        return ONNX_REFUSE(node, "its input must have 3 or 4 dims, the cosines 2");
    if (onnx_attr_int(node, "is_packed_batching", 0) != 0)
        return ONNX_REFUSE(node, "packed batches are not supported");
    if (x->rank == 3 && onnx_attr_int(node, "num_heads", 0) == 0)
        MPL_PASS(onnx_set_ints(node, MPL_ATTR_num_heads, 1,
                               &(int64_t){x->dim[2] / (2 * angles->dim[1])}));
    steps[0] = x->dim[0], steps[1] = x->dim[x->rank == 3 ? 1 : 2];
    if (g->value_shape[in[3]].rank != 2) {
        MPL_PASS(
            onnx_step(node, MPL_OP_cast, "first", 1, &in[3], 1, &MPL_TEXT(to, "i64"), &part[0]));
        MPL_PASS(onnx_count_up(node, 1, &steps[1], &part[1]));
        MPL_PASS(onnx_step(node, MPL_OP_add, "row", 2, part, 0, NULL, &in[3]));
        MPL_PASS(onnx_step(node, MPL_OP_expand, "positions", 1, &in[3], 1,
                           &MPL_INTS(shape, 2, steps), &in[3]));
    }
    return onnx_finish(node, MPL_OP_rotary_embedding, 4, in);
}
