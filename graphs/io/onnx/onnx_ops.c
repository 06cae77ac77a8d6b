/* onnx_ops.c -- nodes to operations by the lines of graphs/ir/ops.def; element-wise rules. */
#include <stdlib.h>

#include "graphs/io/onnx/onnx_priv.h"
#include "graphs/ops/ops_priv.h"
#include "graphs/ops/user/user_ops.h"

/* ---- attributes of a node ---- */

mpl_value onnx_in(const onnx_node *node, uint32_t i)
{
    return i < node->n_in ? node->in[i] : MPL_NONE;
}

const Onnx__AttributeProto *onnx_attr(const onnx_node *node, const char *name)
{
    for (size_t i = 0; i < node->proto->n_attribute; i++)
        if (node->proto->attribute[i]->name != NULL &&
            strcmp(node->proto->attribute[i]->name, name) == 0)
            return node->proto->attribute[i];
    return NULL;
}

int64_t onnx_attr_int(const onnx_node *node, const char *name, int64_t otherwise)
{
    const Onnx__AttributeProto *a = onnx_attr(node, name);

    return a != NULL && a->has_i ? a->i : otherwise;
}

bool onnx_attr_is(const onnx_node *node, const char *name, const char *text)
{
    const Onnx__AttributeProto *a = onnx_attr(node, name);

    return a != NULL && a->has_s && a->s.len == strlen(text) &&
           memcmp(a->s.data, text, a->s.len) == 0;
}

mpl_attr *onnx_get(onnx_node *node, mpl_attr_key key)
{
    for (uint32_t i = 0; i < node->n_attr; i++)
        if (node->attr[i].key == key)
            return &node->attr[i];
    return NULL;
}

void onnx_set(onnx_node *node, mpl_attr attr)
{
    mpl_attr *at = onnx_get(node, attr.key);

    mpl_assert(at != NULL || node->n_attr < ONNX_MAX_ATTRS);
    if (at == NULL)
        at = &node->attr[node->n_attr++];
    *at = attr;
}

void onnx_drop(onnx_node *node, mpl_attr_key key)
{
    mpl_attr *at = onnx_get(node, key);

    if (at != NULL)
        memmove(at, at + 1, (size_t)(node->attr + --node->n_attr - at) * sizeof *at);
}

mpl_status onnx_set_ints(onnx_node *node, mpl_attr_key key, uint32_t count, const int64_t *ints)
{
    int64_t *copy;

    MPL_PASS(onnx_new(node->r, copy, count));
    if (count > 0)
        memcpy(copy, ints, count * sizeof *copy);
    onnx_set(node, (mpl_attr){key, count, copy, NULL, NULL});
    return MPL_OK;
}

/* ---- making operations ---- */

mpl_status onnx_finish(onnx_node *node, mpl_op_kind kind, uint32_t n_in, const mpl_value *in)
{
    return onnx_blame(node, mpl_graph_add_folded(node->r->ctx, node->r->g, kind, node->label, n_in,
                                                 in, node->n_attr, node->attr, node->n_out,
                                                 node->out_name, node->out));
}

mpl_status onnx_step(onnx_node *node, mpl_op_kind kind, const char *suffix, uint32_t n_in,
                     const mpl_value *in, uint32_t n_attr, const mpl_attr *attr, mpl_value *out)
{
    return onnx_step_named(node, kind, suffix, NULL, n_in, in, n_attr, attr, out);
}

mpl_status onnx_step_named(onnx_node *node, mpl_op_kind kind, const char *suffix, const char *name,
                           uint32_t n_in, const mpl_value *in, uint32_t n_attr,
                           const mpl_attr *attr, mpl_value *out)
{
    if (name == NULL)
        MPL_PASS(onnx_fresh_name(
            node->r, node->out_name[0] != NULL ? node->out_name[0] : node->label, suffix, &name));
    return onnx_blame(node, mpl_graph_add_folded(node->r->ctx, node->r->g, kind, node->label, n_in,
                                                 in, n_attr, attr, 1, &name, out));
}

/* ---- rules ---- */

static mpl_status onnx_lower_plain(onnx_node *node)
{
    return onnx_finish(node, node->rule->kind, node->n_in, node->in);
}

static mpl_status onnx_lower_cast(onnx_node *node)
{
    int64_t to = onnx_attr_int(node, "to", 0);
    mpl_type type;
    const char *name;

    if (!onnx_type(to < 0 || to > INT32_MAX ? -1 : (int32_t)to, &type, &name))
        return ONNX_REFUSE(node, "its result has element type %s, which memplan has not", name);
    onnx_set(node, MPL_TEXT(to, mpl_type_name(type)));
    return onnx_lower_plain(node);
}

static mpl_status onnx_lower_cast_like(onnx_node *node)
{
    if (onnx_in(node, 0) == MPL_NONE || onnx_in(node, 1) == MPL_NONE)
        return ONNX_REFUSE(node, "it needs two inputs");
    onnx_set(node, MPL_TEXT(to, mpl_type_name((mpl_type)node->r->g->value_type[node->in[1]])));
    return onnx_finish(node, MPL_OP_cast, 1, node->in);
}

static mpl_status onnx_lower_swiglu(onnx_node *node)
{
    mpl_value in[2] = {onnx_in(node, 0), onnx_in(node, 1)};
    const mpl_attr *alpha = onnx_get(node, MPL_ATTR_alpha);

    if (in[0] == MPL_NONE || in[1] == MPL_NONE)
        return ONNX_REFUSE(node, "it needs two inputs");
    MPL_PASS(onnx_step(node, MPL_OP_swish, "gate", 1, in, alpha != NULL, alpha, &in[0]));
    onnx_drop(node, MPL_ATTR_alpha);
    return onnx_finish(node, MPL_OP_mul, 2, in);
}

/* The limits are attributes in Clip-6; they are inputs from 11 on and in the IR. */
static mpl_status onnx_lower_clip_6(onnx_node *node)
{
    static const char *const limit[] = {"min", "max"};
    mpl_value in[3] = {onnx_in(node, 0), MPL_NONE, MPL_NONE};

    if (in[0] == MPL_NONE)
        return ONNX_REFUSE(node, "its input is missing");
    for (uint32_t i = 0; i < 2; i++) {
        const Onnx__AttributeProto *a = onnx_attr(node, limit[i]);

        if (a != NULL)
            MPL_PASS(onnx_scalar(node, (mpl_type)node->r->g->value_type[in[0]], (double)a->f,
                                 limit[i], &in[1 + i]));
    }
    return onnx_finish(node, MPL_OP_clip, 3, in);
}

/* From opset 12 on the exponent may have another type; the result has the type of the base. */
static mpl_status onnx_lower_pow(onnx_node *node)
{
    const mpl_graph *g = node->r->g;
    mpl_value in[2] = {onnx_in(node, 0), onnx_in(node, 1)}, power;
    mpl_type base, exponent;
    bool wider;

    if (in[0] == MPL_NONE || in[1] == MPL_NONE)
        return ONNX_REFUSE(node, "it needs two inputs");
    base = (mpl_type)g->value_type[in[0]], exponent = (mpl_type)g->value_type[in[1]];
    if (base == exponent)
        return onnx_lower_plain(node);
    wider = mpl_type_in(exponent, MPL_SET_FLOAT) &&
            !mpl_type_in(base, MPL_SET_FLOAT); /* integer base, floating exponent */
    if (!wider) {
        MPL_PASS(onnx_step(node, MPL_OP_cast, "exponent", 1, &in[1], 1,
                           &MPL_TEXT(to, mpl_type_name(base)), &in[1]));
        MPL_PASS(onnx_finish(node, MPL_OP_pow, 2, in));
    } else {
        MPL_PASS(onnx_step(node, MPL_OP_cast, "base", 1, &in[0], 1,
                           &MPL_TEXT(to, mpl_type_name(exponent)), &in[0]));
        MPL_PASS(onnx_step(node, MPL_OP_pow, "power", 2, in, 0, NULL, &power));
        onnx_set(node, MPL_TEXT(to, mpl_type_name(base)));
        MPL_PASS(onnx_finish(node, MPL_OP_cast, 1, &power));
    }
    return MPL_OK;
}

/* Running statistic `out`, 1 or 2, of the node: the old one moved towards that of the batch. */
static mpl_status running_statistic(onnx_node *node, uint32_t out, mpl_value batch)
{
    const Onnx__AttributeProto *given = onnx_attr(node, "momentum");
    double momentum = given != NULL ? (double)given->f : 0.9;
    mpl_value in[2] = {node->in[2 + out], batch};
    mpl_type type = (mpl_type)node->r->g->value_type[in[0]];

    if ((mpl_type)node->r->g->value_type[batch] != type)
        MPL_PASS(onnx_step(node, MPL_OP_cast, "batch", 1, &batch, 1,
                           &MPL_TEXT(to, mpl_type_name(type)), &in[1]));
    for (uint32_t i = 0; i < 2; i++) {
        mpl_value weight;

        MPL_PASS(onnx_scalar(node, type, i == 0 ? momentum : 1 - momentum, "weight", &weight));
        MPL_PASS(onnx_step(node, MPL_OP_mul, "weighted", 2, (mpl_value[]){in[i], weight}, 0, NULL,
                           &in[i]));
    }
    return onnx_step_named(node, MPL_OP_add, "running", node->out_name[out], 2, in, 0, NULL,
                           &node->out[out]);
}

/* The form of opset 14 on: normalised by the batch's own statistics. */
static mpl_status batch_norm_train(onnx_node *node)
{
    const char *name[3] = {node->out_name[0], NULL, NULL};
    mpl_value made[3];

    for (uint32_t i = 0; i < 5; i++)
        if (onnx_in(node, i) == MPL_NONE)
            return ONNX_REFUSE(node, "its input %u is missing", i);
    for (uint32_t i = 0; i < 3; i++)
        if (name[i] == NULL)
            MPL_PASS(onnx_fresh_name(node->r, node->label, i == 2 ? "variance" : "mean", &name[i]));
    MPL_PASS(onnx_blame(node, mpl_graph_add_op(node->r->ctx, node->r->g, MPL_OP_batch_norm_again,
                                               node->label, 3, node->in, node->n_attr, node->attr,
                                               3, name, made)));
    node->out[0] = made[0];
    for (uint32_t i = 1; i < node->n_out && i < 3; i++)
        if (node->out_name[i] != NULL)
            MPL_PASS(running_statistic(node, i, made[i]));
    return MPL_OK;
}

static mpl_status onnx_lower_batch_norm(onnx_node *node)
{
    if (onnx_attr_int(node, "training_mode", 0) != 0)
        return batch_norm_train(node);
    if (node->n_out > 1)
        return ONNX_REFUSE(node, "its outputs beside the first are for training");
    if (onnx_attr_int(node, "spatial", 1) != 1)
        return ONNX_REFUSE(node, "spatial = 0 is not supported");
    return onnx_lower_plain(node);
}

/* The mask is bool from opset 10 on. From 12 on an input selects the training form. */
static mpl_status onnx_lower_dropout(onnx_node *node)
{
    uint32_t count;
    int64_t *training;
    double *ratio;

    if (node->n_out > 1 && node->r->opset < 10)
        return ONNX_REFUSE(node, "its mask is not supported before opset 10");
    if (onnx_in(node, 2) != MPL_NONE) {
        MPL_PASS(onnx_ints(node, node->in[2], "training_mode", &count, &training));
        if (count == 1 && training[0] != 0) {
            ratio = &(double){0.5};
            if (onnx_in(node, 1) != MPL_NONE)
                MPL_PASS(onnx_floats(node, node->in[1], "ratio", &count, &ratio));
            if (count != 1 || ratio[0] != 0)
                return ONNX_REFUSE(
                    node, "its training form draws random numbers, which is not supported");
        }
    }
    return onnx_finish(node, MPL_OP_dropout, node->n_in > 0 ? 1 : 0, node->in);
}

/* Before opset 13 the input counts as a matrix whose columns are the dims from `axis` on. */
static mpl_status onnx_lower_softmax_1(onnx_node *node)
{
    mpl_value in = onnx_in(node, 0), flat, result;
    const mpl_attr *given = onnx_get(node, MPL_ATTR_axis);
    int64_t axis = given != NULL ? given->ints[0] : 1;
    uint32_t long_dims = 0;
    uint64_t count;
    mpl_shape shape;

    if (in == MPL_NONE)
        return ONNX_REFUSE(node, "its input is missing");
    shape = node->r->g->value_shape[in];
    if (axis < -(int64_t)shape.rank || axis > (int64_t)shape.rank)
        return ONNX_REFUSE(node, "axis %" PRId64 " is outside [-%u,%u]", axis, shape.rank,
                           shape.rank);
    axis += axis < 0 ? shape.rank : 0;
    for (uint32_t i = (uint32_t)axis; i < shape.rank; i++)
        long_dims += shape.dim[i] != 1;
    if (mpl_shape_count(&shape, &count) && count == 0) /* reshape cannot express a dim of 0 */
        return onnx_finish(node, MPL_OP_identity, 1, &in);
    if (axis < shape.rank && (long_dims <= 1 || axis + 1 == shape.rank)) {
        for (int64_t i = axis; i < shape.rank; i++) /* the one dim that is not 1, if any */
            axis = shape.dim[i] != 1 ? i : axis;
        MPL_PASS(onnx_set_ints(node, MPL_ATTR_axis, 1, &axis));
        MPL_PASS(onnx_finish(node, node->rule->kind, 1, &in));
    } else {
        MPL_PASS(onnx_step(node, MPL_OP_flatten, "flat", 1, &in, 1, &MPL_INT(axis, axis), &flat));
        MPL_PASS(
            onnx_step(node, node->rule->kind, "rows", 1, &flat, 1, &MPL_INT(axis, 1), &result));
        node->n_attr = 0;
        MPL_PASS(onnx_set_ints(node, MPL_ATTR_shape, shape.rank, shape.dim));
        MPL_PASS(onnx_finish(node, MPL_OP_reshape, 1, &result));
    }
    return MPL_OK;
}

/* Missing or empty axes mean all of them, or none under noop_with_empty_axes. */
static mpl_status onnx_lower_reduce(onnx_node *node)
{
    const mpl_attr *axes = onnx_get(node, MPL_ATTR_axes);
    mpl_op_kind kind = node->rule->kind;

    if (axes == NULL || axes->n == 0) {
        onnx_drop(node, MPL_ATTR_axes);
        if (onnx_attr_int(node, "noop_with_empty_axes", 0) != 0) {
            if (kind != MPL_OP_reduce_sum && kind != MPL_OP_reduce_mean &&
                kind != MPL_OP_reduce_max && kind != MPL_OP_reduce_min &&
                kind != MPL_OP_reduce_prod)
                return ONNX_REFUSE(node, "noop_with_empty_axes is not supported");
            kind = MPL_OP_identity;
            node->n_attr = 0;
        }
    }
    return onnx_finish(node, kind, node->n_in, node->in);
}

/* ---- the table ---- */

static const onnx_rule rules[] = {
#define ONNX(name, since, kind, rule, attrs)                                                       \
    {"", #name, since, MPL_OP_##kind, onnx_lower_##rule, attrs},
#define FOREIGN(domain, name, kind, rule, attrs)                                                   \
    {domain, #name, 0, MPL_OP_##kind, onnx_lower_##rule, attrs},
#include "graphs/ir/each_op.h"
};

/* The line in force at that opset, or NULL; *first: the operator's first opset, 0: none. */
static const onnx_rule *find_rule(const char *domain, const char *name, int64_t opset, int *first)
{
    const onnx_rule *found = NULL;

    *first = 0;
    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++)
        if (strcmp(rules[i].name, name) == 0 && strcmp(rules[i].domain, domain) == 0) {
            if (*first == 0)
                *first = rules[i].since;
            if (rules[i].since <= opset)
                found = &rules[i];
        }
    return found;
}

/* Whether an ONNX name is that of the kind, ignoring case and '_'. */
static bool is_named_so(const char *name, mpl_op_kind kind)
{
    const char *at = mpl_op_table[kind].name;

    for (; *name != '\0' || *at != '\0'; name++, at++) {
        at += *at == '_';
        if ((*name | 32) != *at)
            return false;
    }
    return true;
}

const onnx_rule *onnx_rule_for(mpl_op_kind kind, int64_t opset)
{
    const onnx_rule *found = NULL;

    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++)
        if (rules[i].kind == kind && rules[i].since > 0 && rules[i].since <= opset &&
            (found == NULL || strcmp(rules[i].name, found->name) == 0 ||
             is_named_so(rules[i].name, kind)))
            found = &rules[i];
    return found;
}

const char *onnx_next_item(const char *at, onnx_item *out)
{
    const char *key;
    char text[32];
    size_t n;

    at += strspn(at, " ");
    if (*at == '\0')
        return NULL;
    *out = (onnx_item){.mark = *at == '!' || *at == '@' ? *at : 0};
    out->name = at + (out->mark != 0);
    out->n_name = strcspn(out->name, " :");
    key = out->name[out->n_name] == ':' ? out->name + out->n_name + 1 : out->name;
    n = strcspn(key, " ");
    if (out->mark == '@')
        out->input = (uint32_t)(out->name[0] - '0');
    out->drop = key[0] == '-';
    if (out->mark != '!' && !out->drop) {
        mpl_assert(n < sizeof text);
        memcpy(text, key, n);
        text[n] = '\0';
        if (!mpl_attr_find(text, &out->key))
            mpl_assert(false);
    }
    return key + n;
}

static const char *type_word(mpl_attr_kind kind)
{
    static const char *const word[] = {"an integer", "integers", "a number", "numbers", "a text"};

    return word[kind];
}

/* Whether the attribute's field fits the kind. A zero may be omitted in the file. */
static bool holds(const Onnx__AttributeProto *a, mpl_attr_kind kind)
{
    static const int type[] = {
        ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INT,
        ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INTS,
        ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__FLOAT,
        ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__FLOATS,
        ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__STRING,
    };
    const bool present[] = {a->has_i != 0, a->n_ints > 0, a->has_f != 0, a->n_floats > 0,
                            a->has_s != 0};

    return a->has_type && a->type != ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__UNDEFINED
               ? (int)a->type == type[kind]
               : present[kind];
}

static mpl_status copy_floats(onnx_node *node, const Onnx__AttributeProto *a, mpl_attr *out)
{
    double *floats;
    size_t count = mpl_attr_kind_of(out->key) == MPL_ATTR_FLOAT ? 1 : a->n_floats;

    MPL_PASS(onnx_new(node->r, floats, count));
    if (mpl_attr_kind_of(out->key) == MPL_ATTR_FLOAT)
        floats[0] = (double)a->f;
    else
        for (size_t i = 0; i < count; i++)
            floats[i] = (double)a->floats[i];
    out->n = (uint32_t)count;
    out->floats = floats;
    return MPL_OK;
}

static mpl_status copy_text(onnx_node *node, const Onnx__AttributeProto *a, mpl_attr *out)
{
    char *text;

    MPL_PASS(onnx_new(node->r, text, a->s.len + 1));
    if (a->s.len > 0)
        memcpy(text, a->s.data, a->s.len);
    out->text = text;
    out->n = (uint32_t)strlen(text);
    return MPL_OK;
}

static mpl_status copy_attr(onnx_node *node, const Onnx__AttributeProto *a, mpl_attr_key key)
{
    mpl_attr_kind kind = mpl_attr_kind_of(key);
    mpl_attr attr = {.key = key, .n = 1};

    if (!holds(a, kind))
        return ONNX_REFUSE(node, "attribute '%s' is not %s", a->name, type_word(kind));
    if (a->n_ints > UINT32_MAX / 2 || a->n_floats > UINT32_MAX / 2 || a->s.len > UINT32_MAX / 2)
        return ONNX_REFUSE(node, "attribute '%s' is too long", a->name);
    if (kind == MPL_ATTR_INT)
        attr.ints = &a->i;
    else if (kind == MPL_ATTR_INTS)
        attr.n = (uint32_t)a->n_ints, attr.ints = a->ints;
    else if (kind == MPL_ATTR_TEXT)
        MPL_PASS(copy_text(node, a, &attr));
    else
        MPL_PASS(copy_floats(node, a, &attr));
    onnx_set(node, attr);
    return MPL_OK;
}

/* Translates the node's attributes. Refuses unknown ones: they could change the meaning. */
static mpl_status translate_attrs(onnx_node *node)
{
    for (size_t i = 0; i < node->proto->n_attribute; i++) {
        const Onnx__AttributeProto *a = node->proto->attribute[i];
        const char *name = onnx_text(a->name), *at = node->rule->attrs;
        bool found = false;
        onnx_item it;

        while (!found && (at = onnx_next_item(at, &it)) != NULL)
            found = it.mark != '@' && it.n_name == strlen(name) &&
                    memcmp(it.name, name, it.n_name) == 0;
        if (!found)
            return ONNX_REFUSE(node, "attribute '%.100s' is not known", name);
        if (it.mark == 0)
            MPL_PASS(copy_attr(node, a, it.key));
    }
    return MPL_OK;
}

/* ---- operators of the user's ---- */

/* Any operator of the user's: outputs and operands are as the node has them. */
static const onnx_rule user_rule = {"", "user", 0, MPL_OP_user, onnx_lower_plain, ""};

/* Writes one attribute as "NAME=VALUE", a space before it unless it is the first. */
static void put_param(FILE *to, const Onnx__AttributeProto *a)
{
    fprintf(to, "%s%s=", ftell(to) > 0 ? " " : "", a->name);
    if (holds(a, MPL_ATTR_INT))
        fprintf(to, "%" PRId64, a->i);
    else if (holds(a, MPL_ATTR_FLOAT))
        fprintf(to, "%.9g", (double)a->f);
    else if (holds(a, MPL_ATTR_TEXT)) {
        fputc('"', to);
        for (size_t i = 0; i < a->s.len; i++)
            fprintf(to,
                    a->s.data[i] > 34 && a->s.data[i] < 127 && a->s.data[i] != 92 ? "%c"
                                                                                  : "\\x%02x",
                    a->s.data[i]);
        fputc('"', to);
    } else {
        fputc('[', to);
        for (size_t i = 0; i < a->n_ints; i++)
            fprintf(to, "%s%" PRId64, i > 0 ? "," : "", a->ints[i]);
        for (size_t i = 0; i < a->n_floats; i++)
            fprintf(to, "%s%.9g", i > 0 ? "," : "", (double)a->floats[i]);
        fputc(']', to);
    }
}

/* Makes the operator's name and the node's attributes those of the operation. */
static mpl_status translate_user(onnx_node *node, const memplan_operator *user)
{
    mpl_status st = MPL_OK;
    char *text = NULL, *copy;
    size_t size = 0;
    FILE *to = open_memstream(&text, &size);

    if (to == NULL)
        return MPL_ERROR(node->r->ctx, MPL_EMEM, "out of memory");
    for (size_t i = 0; i < node->proto->n_attribute; i++) {
        const Onnx__AttributeProto *a = node->proto->attribute[i];

        if (a->name == NULL || a->name[strcspn(a->name, "= \"[]")] != '\0' ||
            (!holds(a, MPL_ATTR_INT) && !holds(a, MPL_ATTR_FLOAT) && !holds(a, MPL_ATTR_TEXT) &&
             !holds(a, MPL_ATTR_INTS) && !holds(a, MPL_ATTR_FLOATS)))
            ONNX_FAIL(node, "attribute '%.60s' is no number, list of numbers or text",
                      onnx_text(a->name));
        put_param(to, a);
    }
    if (fflush(to) != 0 || ferror(to) || size > UINT32_MAX / 2)
        MPL_FAIL(node->r->ctx, MPL_EMEM, "out of memory");
    MPL_TRY(onnx_new(node->r, copy, size + 1));
    memcpy(copy, text, size);
    onnx_set(node, MPL_TEXT(opcode, user->name));
    if (size > 0)
        onnx_set(node, MPL_TEXT(params, copy));
out:
    fclose(to);
    free(text);
    return st;
}

/* Turns one input into attribute `key`. */
static mpl_status take_input(onnx_node *node, mpl_value v, mpl_attr_key key)
{
    mpl_attr_kind kind = mpl_attr_kind_of(key);
    mpl_attr attr = {.key = key};
    int64_t *ints;
    double *floats;

    if (kind == MPL_ATTR_FLOATS) {
        MPL_PASS(onnx_floats(node, v, mpl_attr_name(key), &attr.n, &floats));
        attr.floats = floats;
    } else {
        MPL_PASS(onnx_ints(node, v, mpl_attr_name(key), &attr.n, &ints));
        attr.ints = ints;
    }
    if (kind == MPL_ATTR_INT && attr.n != 1)
        return ONNX_REFUSE(node, "its %s has %u elements; one is needed", mpl_attr_name(key),
                           attr.n);
    onnx_set(node, attr);
    return MPL_OK;
}

/* Turns inputs that decide shapes into attributes; the others move up. */
static mpl_status translate_inputs(onnx_node *node)
{
    const char *at = node->rule->attrs;
    bool *gone;
    uint32_t kept = 0;
    onnx_item it;

    MPL_PASS(onnx_new(node->r, gone, node->n_in));
    while ((at = onnx_next_item(at, &it)) != NULL) {
        if (it.mark != '@' || it.input >= node->n_in)
            continue;
        gone[it.input] = true;
        if (!it.drop && node->in[it.input] != MPL_NONE)
            MPL_PASS(take_input(node, node->in[it.input], it.key));
    }
    for (uint32_t i = 0; i < node->n_in; i++)
        if (!gone[i])
            node->in[kept++] = node->in[i];
    while (kept > 0 && node->in[kept - 1] == MPL_NONE)
        kept--;
    node->n_in = kept;
    return MPL_OK;
}

/* ---- one node ---- */

static mpl_status look_up_inputs(onnx_node *node)
{
    MPL_PASS(onnx_new(node->r, node->in, node->proto->n_input));
    node->n_in = (uint32_t)node->proto->n_input;
    for (uint32_t i = 0; i < node->n_in; i++)
        MPL_PASS(onnx_lookup(node, node->proto->input[i], &node->in[i]));
    return MPL_OK;
}

/* Names the outputs; drops optional ones that are unused. */
static mpl_status name_outputs(onnx_node *node)
{
    const mpl_op_info *info = &mpl_op_table[node->rule->kind];
    bool control = (info->traits & MPL_CONTROL) != 0;

    node->n_out = (uint32_t)node->proto->n_output;
    MPL_PASS(onnx_new(node->r, node->out_name, (size_t)node->n_out + 1));
    MPL_PASS(onnx_new(node->r, node->out, (size_t)node->n_out + 1));
    for (uint32_t i = 0; i < node->n_out; i++) {
        const char *text = onnx_text(node->proto->output[i]);
        bool optional = control || (i >= info->min_out && info->max_out != 255);

        node->out[i] = MPL_NONE;
        if (optional && (text[0] == '\0' || !onnx_is_used(node->r, text)))
            continue;
        if (text[0] != '\0')
            MPL_PASS(onnx_own_name(node->r, text, &node->out_name[i]));
        else
            MPL_PASS(onnx_fresh_name(node->r, node->label, "out", &node->out_name[i]));
    }
    while (!control && node->n_out > info->min_out && node->out_name[node->n_out - 1] == NULL)
        node->n_out--;
    if (node->n_out == 0)
        return ONNX_REFUSE(node, "it has no output");
    return MPL_OK;
}

/* The node's name, else its first named output, else its operator. */
static const char *label_of(const Onnx__NodeProto *proto, const char *type)
{
    if (proto->name != NULL && proto->name[0] != '\0')
        return proto->name;
    for (size_t i = 0; i < proto->n_output; i++)
        if (proto->output[i] != NULL && proto->output[i][0] != '\0')
            return proto->output[i];
    return type;
}

/* Whether the node is marked as returning its first input, and does so. */
static bool is_same_value(onnx_node *node)
{
    const mpl_attr *pads = onnx_get(node, MPL_ATTR_pads);
    bool same = strcmp(node->rule->name, "Identity") == 0 ||
                (node->rule->kind == MPL_OP_pad && pads != NULL);

    for (uint32_t i = 0; same && pads != NULL && i < pads->n; i++)
        same = pads->ints[i] == 0;
    return same && onnx_says_same(node->proto) && onnx_in(node, 0) != MPL_NONE &&
           node->proto->n_output == 1;
}

mpl_status onnx_read_node(onnx_reader *in, const Onnx__NodeProto *proto)
{
    onnx_node n = {.r = in, .proto = proto};
    const char *type = onnx_text(proto->op_type);
    const char *domain = onnx_text(proto->domain);
    const memplan_operator *user = mpl_user_find_onnx(domain, type);
    bool own = domain[0] == '\0' || strcmp(domain, "ai.onnx") == 0;
    mpl_value *read;
    mpl_op first_op = in->g->n_ops;
    int first = 0;
    bool made;

    n.label = label_of(proto, type);
    n.rule =
        user != NULL ? &user_rule : find_rule(own ? "" : domain, type, own ? in->opset : 1, &first);
    if (own && in->opset == 0)
        return ONNX_REFUSE(&n, "the model names no opset of ONNX; %d to %d are supported",
                           ONNX_MIN_OPSET, ONNX_MAX_OPSET);
    if (n.rule == NULL && first != 0)
        return ONNX_REFUSE(&n, "this operator is read from opset %d on", first);
    if (n.rule == NULL)
        return ONNX_REFUSE(&n, "this operator is not supported");
    if (proto->n_input > 65536 || proto->n_output > 65536)
        return ONNX_REFUSE(&n, "it has %zu inputs and %zu outputs; at most 65536 are supported",
                           proto->n_input, proto->n_output);
    MPL_PASS(look_up_inputs(&n));
    MPL_PASS(onnx_new(in, read, n.n_in));
    memcpy(read, n.in, n.n_in * sizeof *read);
    MPL_PASS(user != NULL ? translate_user(&n, user) : translate_attrs(&n));
    MPL_PASS(translate_inputs(&n));
    if (is_same_value(&n))
        return onnx_define(&n, proto->output[0], n.in[0]);
    MPL_PASS(name_outputs(&n));
    MPL_PASS(onnx_heed_lengths(&n, &made));
    if (!made)
        MPL_PASS(n.rule->lower(&n));
    MPL_PASS(onnx_follow_intervals(&n, first_op));
    if (!made)
        MPL_PASS(onnx_carry_lengths(&n, (uint32_t)proto->n_input, read));
    for (uint32_t i = 0; i < n.n_out; i++)
        if (n.out_name[i] != NULL)
            MPL_PASS(onnx_define(&n, proto->output[i], n.out[i]));
    return MPL_OK;
}
