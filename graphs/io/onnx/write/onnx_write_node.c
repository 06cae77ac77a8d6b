/* onnx_write_node.c -- writes one node of a model. See onnx_write_priv.h. */
#include "graphs/io/onnx/write/onnx_write_priv.h"
#include "graphs/ops/matrix/conv.h"
#include "graphs/ops/user/user_ops.h"

#define MOST_INPUTS 8 /* of an operator whose inputs become attributes */

uint32_t onnx_count_attrs(const mpl_graph *g, mpl_op op)
{
    return g->op_attr_begin[op + 1] - g->op_attr_begin[op];
}

bool onnx_is_stacked(const mpl_graph *g, mpl_op op)
{
    mpl_op_kind kind = (mpl_op_kind)g->op_kind[op];

    return mpl_is_gemm(kind) && g->value_shape[mpl_op_input(g, op, mpl_fused_first(kind))].rank > 2;
}

const onnx_rule *onnx_write_rule(const mpl_graph *g, mpl_op op, int64_t opset)
{
    mpl_op_kind kind = (mpl_op_kind)g->op_kind[op];

    if (kind == MPL_OP_qconv || kind == MPL_OP_qmatmul)
        return NULL; /* only read: their operands stand in another order */
    return onnx_rule_for(mpl_is_conv(kind)        ? MPL_OP_conv
                         : onnx_is_stacked(g, op) ? MPL_OP_matmul
                         : mpl_is_gemm(kind)      ? MPL_OP_gemm
                                                  : kind,
                         opset);
}

bool onnx_find_item(const onnx_rule *rule, mpl_attr_key key, onnx_item *out)
{
    const char *at = rule->attrs;

    while ((at = onnx_next_item(at, out)) != NULL)
        if (out->mark != '!' && !out->drop && out->key == key)
            return true;
    return false;
}

void *onnx_part(writer *out, size_t n, size_t size)
{
    void *p;

    if (mpl_reserve(out->ctx, out->part, out->cap_parts, out->n_parts + 1) != MPL_OK)
        return NULL;
    p = mpl_alloc(out->ctx, n, size);
    if (p != NULL)
        out->part[out->n_parts++] = p;
    return p;
}

mpl_status onnx_name_constant(writer *w, mpl_op op, mpl_attr_key key, char **out)
{
    const mpl_graph *g = w->g;
    const char *base = g->value_name[g->op_out[g->op_out_begin[op]]], *end = mpl_attr_name(key);
    size_t size = strlen(base) + strlen(end) + 24;

    MPL_PASS(part_new(w, *out, size));
    snprintf(*out, size, "%s/%s", base, end);
    for (unsigned i = 2; mpl_graph_find(g, *out) != MPL_NONE; i++)
        snprintf(*out, size, "%s/%s~%u", base, end, i);
    return MPL_OK;
}

mpl_status onnx_narrow(writer *w, const mpl_attr *attr, float **out)
{
    MPL_PASS(part_new(w, *out, attr->n));
    for (uint32_t i = 0; i < attr->n; i++)
        (*out)[i] = (float)attr->floats[i];
    return MPL_OK;
}

mpl_status onnx_add_attr(writer *out, Onnx__NodeProto *node, const char *name, size_t n_name,
                         const mpl_attr *from)
{
    static const Onnx__AttributeProto__AttributeType type[] = {
        ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INT,
        ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INTS,
        ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__FLOAT,
        ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__FLOATS,
        ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__STRING,
    };
    mpl_attr_kind kind = mpl_attr_kind_of(from->key);
    Onnx__AttributeProto *a;
    float *floats = NULL;
    int64_t *ints;

    MPL_PASS(part_new(out, a, 1));
    onnx__attribute_proto__init(a);
    MPL_PASS(part_new(out, a->name, n_name + 1));
    memcpy(a->name, name, n_name);
    a->has_type = true;
    a->type = type[kind];
    if (from->floats != NULL)
        MPL_PASS(onnx_narrow(out, from, &floats));
    MPL_PASS(part_new(out, ints, from->n));
    if (from->ints != NULL)
        memcpy(ints, from->ints, from->n * sizeof *ints);
    if (kind == MPL_ATTR_INT)
        a->has_i = true, a->i = from->ints[0];
    else if (kind == MPL_ATTR_INTS)
        a->n_ints = from->n, a->ints = ints;
    else if (kind == MPL_ATTR_FLOAT)
        a->has_f = true, a->f = floats[0];
    else if (kind == MPL_ATTR_FLOATS)
        a->n_floats = from->n, a->floats = floats;
    else
        a->has_s = true, a->s = (ProtobufCBinaryData){from->n, (uint8_t *)from->text};
    node->attribute[node->n_attribute++] = a;
    return MPL_OK;
}

/* Writes attributes in order; constant[] gets names for those that are inputs in ONNX. */
static mpl_status add_attrs(writer *out, mpl_op op, const onnx_rule *rule, Onnx__NodeProto *node,
                            char **constant)
{
    bool is_cast = out->g->op_kind[op] == MPL_OP_cast || out->g->op_kind[op] == MPL_OP_bit_cast;
    onnx_item it;
    mpl_type type;

    MPL_PASS(part_new(out, node->attribute, onnx_count_attrs(out->g, op)));
    for (uint32_t i = 0; i < onnx_count_attrs(out->g, op); i++) {
        mpl_attr attr = mpl_attr_at(out->g, out->g->op_attr_begin[op] + i);

        if (attr.key == MPL_ATTR_to) { /* named here, numbered in ONNX */
            int64_t number = mpl_type_find(attr.text, &type) ? onnx_type_number(type) : 0;

            MPL_PASS(is_cast
                         ? onnx_add_attr(out, node, "to", 2, &MPL_INT(axis, number))
                         : onnx_add_attr(out, node, "output_dtype", 12, &MPL_INT(axis, number)));
        } else if (!onnx_find_item(rule, attr.key, &it)) {
            continue; /* nodes of their own: an activation, transposed operands of MatMul */
        } else if (it.mark == '@')
            MPL_PASS(onnx_name_constant(out, op, attr.key, &constant[it.input]));
        else
            MPL_PASS(onnx_add_attr(out, node, it.name, it.n_name, &attr));
    }
    return MPL_OK;
}

/* Writes operands where the rule leaves inputs, and constants between; trims omitted ones. */
static mpl_status add_inputs(writer *out, mpl_op op, const onnx_rule *rule, Onnx__NodeProto *node,
                             char *const *constant)
{
    const mpl_graph *g = out->g;
    uint32_t at = g->op_in_begin[op] + mpl_fused_first((mpl_op_kind)g->op_kind[op]);
    uint32_t end = g->op_in_begin[op + 1];
    bool taken[MOST_INPUTS] = {false};
    const char *item = rule->attrs;
    onnx_item it;

    while ((item = onnx_next_item(item, &it)) != NULL)
        if (it.mark == '@')
            taken[it.input] = true;
    MPL_PASS(part_new(out, node->input, end - at + MOST_INPUTS));
    for (size_t i = 0; i < MOST_INPUTS || at < end; i++) {
        const char *name = "";

        if (i < MOST_INPUTS && taken[i])
            name = onnx_text(constant[i]);
        else if (at < end) {
            name = g->op_in[at] != MPL_NONE ? g->value_name[g->op_in[at]] : "";
            at++;
        }
        node->input[i] = (char *)name;
        if (name[0] != '\0')
            node->n_input = i + 1;
    }
    return MPL_OK;
}

void onnx_name_node(const writer *out, mpl_op op, Onnx__NodeProto *node)
{
    if (out->named[op])
        node->name = out->g->op_name[op];
}

/* Makes one attribute of a user's operator; its name and value in the writer's memory. */
static mpl_status add_param(writer *out, Onnx__NodeProto *node, const mpl_user_param *param)
{
    static const struct {
        char kind;
        mpl_attr_key like; /* a key of that kind */
    } keys[] = {{'i', MPL_ATTR_axis},
                {'I', MPL_ATTR_axes},
                {'r', MPL_ATTR_alpha},
                {'R', MPL_ATTR_scales},
                {'t', MPL_ATTR_mode}};
    mpl_attr attr = {0};
    int64_t *ints;
    double *reals;
    char *text;

    for (size_t k = 0; k < sizeof keys / sizeof *keys; k++)
        if (keys[k].kind == param->kind)
            attr.key = keys[k].like;
    MPL_PASS(part_new(out, ints, param->n_value));
    MPL_PASS(part_new(out, reals, param->n_value));
    MPL_PASS(part_new(out, text, param->n_value + 1));
    if (param->kind == 't') {
        attr.n = (uint32_t)mpl_user_param_text(param, text, param->n_value + 1);
        attr.text = text;
    } else if (param->kind == 'i' || param->kind == 'I') {
        for (attr.ints = ints; mpl_user_param_int(param, attr.n, &ints[attr.n]);)
            attr.n++;
    } else {
        for (attr.floats = reals; mpl_user_param_real(param, attr.n, &reals[attr.n]);)
            attr.n++;
    }
    return onnx_add_attr(out, node, param->name, param->n_name, &attr);
}

/* Names the node by its domain and type, and adds its attributes and inputs. */
static mpl_status add_user(writer *out, mpl_op op, Onnx__NodeProto *node)
{
    const memplan_operator *u = mpl_user_of(out->g, op);
    const char *at = mpl_attr_text(out->g, op, MPL_ATTR_params, "");
    size_t n_domain = strcspn(u->onnx, ":");
    const mpl_value *in = out->g->op_in + out->g->op_in_begin[op];
    mpl_user_param p;

    MPL_PASS(part_new(out, node->domain, n_domain + 1));
    memcpy(node->domain, u->onnx, n_domain);
    node->op_type = (char *)u->onnx + n_domain + 1;
    MPL_PASS(part_new(out, node->attribute, strlen(at)));
    while (mpl_user_next_param(u, &at, &p))
        MPL_PASS(add_param(out, node, &p));
    node->n_input = mpl_op_n_in(out->g, op);
    MPL_PASS(part_new(out, node->input, node->n_input));
    for (size_t i = 0; i < node->n_input; i++)
        node->input[i] = in[i] != MPL_NONE ? out->g->value_name[in[i]] : (char *)"";
    return MPL_OK;
}

mpl_status onnx_make_node(writer *w, mpl_op op, Onnx__NodeProto **out)
{
    const mpl_graph *g = w->g;
    const onnx_rule *rule = onnx_write_rule(g, op, w->opset);
    const mpl_value *made = g->op_out + g->op_out_begin[op];
    Onnx__NodeProto *node;
    char *constant[MOST_INPUTS] = {NULL};

    MPL_PASS(part_new(w, node, 1));
    onnx__node_proto__init(node);
    onnx_name_node(w, op, node);
    if (g->op_kind[op] == MPL_OP_user) {
        MPL_PASS(add_user(w, op, node));
    } else {
        node->op_type = (char *)rule->name;
        MPL_PASS(add_attrs(w, op, rule, node, constant));
        MPL_PASS(add_inputs(w, op, rule, node, constant));
    }
    node->n_output = g->op_out_begin[op + 1] - g->op_out_begin[op];
    MPL_PASS(part_new(w, node->output, node->n_output));
    for (size_t i = 0; i < node->n_output; i++)
        node->output[i] = made[i] != MPL_NONE ? g->value_name[made[i]] : (char *)"";
    *out = node;
    return MPL_OK;
}
