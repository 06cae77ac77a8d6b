/* tflite_emit.c -- operands, attributes and operations of one operator. */
#include "graphs/io/tflite/tflite_priv.h"

#include <float.h>

/* ---- attributes ---- */

void tfl_set(tfl_node *node, mpl_attr attr)
{
    mpl_assert(node->n_attr < TFL_MAX_ATTRS);
    node->attr[node->n_attr++] = attr;
}

void tfl_set_ints(tfl_node *node, mpl_attr_key key, uint32_t count, const int64_t *value)
{
    int64_t *to = node->ints + node->n_ints;

    mpl_assert(node->n_ints + count <= TFL_MAX_INTS);
    for (uint32_t i = 0; i < count; i++)
        to[i] = value[i];
    node->n_ints += count;
    tfl_set(node, (mpl_attr){key, count, to, NULL, NULL});
}

void tfl_set_int(tfl_node *node, mpl_attr_key key, int64_t value)
{
    tfl_set_ints(node, key, 1, &value);
}

void tfl_set_float(tfl_node *node, mpl_attr_key key, double value)
{
    double *to = &node->real[node->n_reals++];

    *to = value;
    tfl_set(node, (mpl_attr){key, 1, NULL, to, NULL});
}

int64_t tfl_activation_number(const tfl_node *node)
{
    return node->rule->activation == TFL_NO_ACTIVATION
               ? 0
               : flat_int(&node->op->options, node->rule->activation, 1, true, 0);
}

bool tfl_activation(int64_t number, double range[2])
{
    static const double ranges[][2] = {{0, 0}, {0, FLT_MAX}, {-1, 1}, {0, 6}};

    if (number < 1 || number > 3)
        return false;
    memcpy(range, ranges[number], sizeof ranges[number]);
    return true;
}

/* ---- operands ---- */

const tfl_tensor *tfl_in(const tfl_node *node, uint32_t k)
{
    return k < node->op->n_in && node->op->in[k] != MPL_NONE ? &node->model->tensor[node->op->in[k]]
                                                             : NULL;
}

const tfl_tensor *tfl_out(const tfl_node *node, uint32_t k)
{
    return &node->model->tensor[node->op->out[k]];
}

bool tfl_ints(const tfl_node *node, uint32_t k, uint32_t most, int64_t *to, uint32_t *count)
{
    const tfl_tensor *tensor = tfl_in(node, k);
    uint64_t items;

    if (tensor == NULL || tensor->data == NULL ||
        (tensor->type != MPL_TYPE_i32 && tensor->type != MPL_TYPE_i64) ||
        !mpl_shape_count(&tensor->shape, &items) || items > most)
        return false;
    for (uint64_t i = 0; i < items; i++) {
        int32_t word;

        if (tensor->type == MPL_TYPE_i64) {
            memcpy(&to[i], tensor->data + 8 * i, 8);
            if (to[i] < INT32_MIN || to[i] > INT32_MAX)
                return false;
            continue;
        }
        memcpy(&word, tensor->data + 4 * i, 4);
        to[i] = word;
    }
    *count = (uint32_t)items;
    return true;
}

/* The value of a tensor: a constant and a state are added at their first use. */
static mpl_status value_of(tfl_node *node, uint32_t id, mpl_value *out)
{
    mpl_status st = MPL_OK;
    mpl_ctx *ctx = node->model->ctx;
    tfl_tensor *tensor = &node->model->tensor[id];
    int64_t zero = tensor->zero;
    void *copy = NULL;

    if (tensor->value == MPL_NONE && tensor->data != NULL) {
        MPL_TRY((copy = mpl_alloc(ctx, tensor->bytes, 1)) != NULL ? MPL_OK : MPL_EMEM);
        memcpy(copy, tensor->data, tensor->bytes);
        for (uint64_t i = 0; i < tensor->bytes && tensor->type == MPL_TYPE_bool; i++)
            ((uint8_t *)copy)[i] = ((uint8_t *)copy)[i] != 0;
        MPL_TRY(mpl_graph_add_const(ctx, node->g, tensor->name, tensor->type, &tensor->shape, copy,
                                    false, &tensor->value));
    } else if (tensor->value == MPL_NONE && tensor->variable) {
        MPL_TRY(mpl_graph_add_const(ctx, node->g, tensor->name, tensor->type, &tensor->shape, &zero,
                                    true, &tensor->value));
    } else if (tensor->value == MPL_NONE) {
        MPL_FAIL(ctx, MPL_EINPUT, "tensor %u ('%.100s') is read, and nothing has made it", id,
                 tensor->name);
    }
    *out = tensor->value;
out:
    mpl_free(ctx, copy);
    return st;
}

mpl_status tfl_operand_of(tfl_node *node, uint32_t k, uint32_t order, tfl_operand *out)
{
    const tfl_tensor *tensor = tfl_in(node, k);

    *out = (tfl_operand){.v = MPL_NONE};
    if (tensor == NULL)
        return MPL_OK;
    *out =
        (tfl_operand){MPL_NONE, order, tensor->n_scales, tensor->axis, tensor->zero, tensor->scale};
    return value_of(node, node->op->in[k], &out->v);
}

mpl_status tfl_scalar(tfl_node *node, mpl_type type, double x, const char *suffix, mpl_value *out)
{
    char name[480];
    int64_t whole = (int64_t)x;
    float real = (float)x;
    bool is_float = type == MPL_TYPE_f32;

    snprintf(name, sizeof name, "%s:%s", tfl_out(node, 0)->name, suffix);
    return mpl_graph_add_const(node->model->ctx, node->g, name, type, &(mpl_shape){0},
                               is_float ? (const void *)&real : (const void *)&whole, true, out);
}

/* ---- operations ---- */

/* Records v as result k of the operation, if its type and dims are those in the file. */
mpl_status tfl_define(tfl_node *node, uint32_t k, mpl_value v)
{
    tfl_tensor *tensor = &node->model->tensor[node->op->out[k]];
    char ours[200], theirs[200];

    if (node->g->value_type[v] != tensor->type ||
        !mpl_shape_equal(&node->g->value_shape[v], &tensor->shape))
        return MPL_REFUSE(node->model->ctx, "its result '%.100s' is %s %s, and the file says %s %s",
                          tensor->name, mpl_type_name((mpl_type)node->g->value_type[v]),
                          mpl_shape_text(&node->g->value_shape[v], ours),
                          mpl_type_name(tensor->type), mpl_shape_text(&tensor->shape, theirs));
    tensor->value = v;
    return MPL_OK;
}

mpl_status tfl_add_all(tfl_node *node, mpl_op_kind kind, uint32_t n_in, const mpl_value *in,
                       uint32_t n_out, const char *const *out_name, mpl_value *out)
{
    return mpl_graph_add_op(node->model->ctx, node->g, kind, node->label, n_in, in, node->n_attr,
                            node->attr, n_out, out_name, out);
}

mpl_status tfl_add_view(tfl_node *node, mpl_value v, const mpl_shape *shape, const char *base,
                        const char *suffix, mpl_value *out)
{
    char name[480];
    mpl_attr dims = {MPL_ATTR_shape, shape->rank, shape->dim, NULL, NULL};

    snprintf(name, sizeof name, "%s%s", base, suffix);
    return mpl_graph_add_op(node->model->ctx, node->g, MPL_OP_reshape, node->label, 1, &v, 1, &dims,
                            1, (const char *const[]){name}, out);
}

/* Appends how an operand is meant to the attributes of as_real. */
static void put_form(const tfl_operand *operand, int64_t **form, double **factor)
{
    const int64_t numbers[4] = {operand->order, operand->axis, operand->zero, operand->n_scales};

    memcpy(*form, numbers, sizeof numbers);
    *form += 4;
    for (uint32_t i = 0; i < operand->n_scales; i++)
        *(*factor)++ = operand->scale[i];
}

/* Adds as_real of the operator: operands, then the result, each with a form. */
static mpl_status add_as_real(tfl_node *node, mpl_op_kind kind, uint32_t n_in,
                              const tfl_operand *in, const tfl_operand *result, const mpl_value *v,
                              const double *range)
{
    mpl_status st = MPL_OK;
    mpl_ctx *ctx = node->model->ctx;
    const tfl_tensor *to = tfl_out(node, 0);
    uint32_t n_factors = result->n_scales;
    int64_t *forms = NULL, *form;
    double *factors = NULL, *factor;
    mpl_value out;

    for (uint32_t i = 0; i < n_in; i++)
        n_factors += in[i].n_scales;
    MPL_TRY(mpl_new(ctx, forms, 4 * (size_t)(n_in + 1)));
    MPL_TRY(mpl_new(ctx, factors, n_factors));
    form = forms, factor = factors;
    for (uint32_t i = 0; i < n_in; i++)
        put_form(&in[i], &form, &factor);
    put_form(result, &form, &factor);
    tfl_set(node, MPL_TEXT(kernel, mpl_op_table[kind].name));
    tfl_set(node, MPL_TEXT(to, mpl_type_name(to->type)));
    tfl_set(node, MPL_INTS(dims, to->shape.rank, to->shape.dim));
    tfl_set(node, MPL_INTS(forms, 4 * (n_in + 1), forms));
    tfl_set(node, MPL_FLOATS(factors, n_factors, factors));
    if (range != NULL)
        tfl_set(node, MPL_FLOATS(clamp, 2, range));
    MPL_TRY(tfl_add_all(node, MPL_OP_as_real, n_in, v, 1, (const char *const[]){to->name}, &out));
    MPL_TRY(tfl_define(node, 0, out));
out:
    mpl_free_each(ctx, forms, factors);
    return st;
}

/* Whether the operand means its numbers as the result does. */
static bool means_the_same(const tfl_operand *operand, const tfl_operand *result)
{
    return operand->n_scales == 0 ||
           (operand->n_scales == 1 && result->n_scales == 1 && operand->zero == result->zero &&
            operand->scale[0] == result->scale[0]);
}

/* Whether the operator can work on the numbers as they lie there. */
static bool is_direct(const tfl_node *node, uint32_t n_in, const tfl_operand *in,
                      const tfl_operand *result)
{
    bool direct = result->order == TFL_PLAIN && !node->converts, quantised = result->n_scales > 0;
    const tfl_operand *like = result->n_scales > 0 ? result : &in[0];

    for (uint32_t i = 0; i < n_in; i++) {
        quantised = quantised || in[i].n_scales > 0;
        direct = direct && in[i].order == TFL_PLAIN &&
                 (in[i].n_scales == 0 || (node->rule->moves && means_the_same(&in[i], like)));
    }
    return direct && (!quantised || node->rule->moves);
}

mpl_status tfl_add(tfl_node *node, mpl_op_kind kind, uint32_t n_in, const tfl_operand *in,
                   uint32_t out_order)
{
    mpl_status st = MPL_OK;
    const tfl_tensor *to = tfl_out(node, 0);
    tfl_operand result = {MPL_NONE, out_order, to->n_scales, to->axis, to->zero, to->scale};
    double range[2];
    bool clamps = tfl_activation(tfl_activation_number(node), range);
    mpl_value *v = NULL, out;

    if (tfl_activation_number(node) != 0 && !clamps)
        return tfl_opaque(node);
    MPL_TRY(mpl_new(node->model->ctx, v, n_in));
    for (uint32_t i = 0; i < n_in; i++)
        if ((v[i] = in[i].v) == MPL_NONE)
            MPL_FAIL(node->model->ctx, MPL_EINPUT, "input %u is missing", i);
    if (clamps || !is_direct(node, n_in, in, &result)) {
        MPL_TRY(add_as_real(node, kind, n_in, in, &result, v, clamps ? range : NULL));
    } else {
        MPL_TRY(tfl_add_all(node, kind, n_in, v, 1, (const char *const[]){to->name}, &out));
        MPL_TRY(tfl_define(node, 0, out));
    }
out:
    mpl_free(node->model->ctx, v);
    return st;
}

/* ---- operators without a rule ---- */

/* The values that an opaque operation makes: its outputs, and its own scratch memory. */
typedef struct made {
    uint32_t n, *tensor;
    const char **name;
    mpl_value *value;
    int64_t *dims; /* of each, rank and dims */
    uint32_t n_dims;
    char *types; /* parted by blanks */
} made;

static void put_made(const tfl_model *model, uint32_t tensor, made *out)
{
    const tfl_tensor *t = &model->tensor[tensor];

    out->tensor[out->n] = tensor;
    out->name[out->n++] = t->name;
    sprintf(out->types + strlen(out->types), "%s ", mpl_type_name(t->type));
    out->dims[out->n_dims++] = t->shape.rank;
    for (uint32_t d = 0; d < t->shape.rank; d++)
        out->dims[out->n_dims++] = t->shape.dim[d];
}

/* Whether tensor k of the operator's inputs is memory that it works in: nothing makes it. */
static bool is_scratch(const tfl_node *node, uint32_t k)
{
    const tfl_tensor *tensor = tfl_in(node, k);

    return tensor != NULL && tensor->value == MPL_NONE && tensor->data == NULL &&
           !tensor->variable && tensor->birth == MPL_NONE;
}

/* Whether the file itself puts this scratch memory into an earlier one of the operator. */
static bool is_inside(const tfl_node *node, uint32_t k)
{
    const int64_t *offset = node->model->offset;
    uint32_t id = node->op->in[k];

    for (uint32_t i = 0; i < k && i < TFL_SCRATCH_INPUTS && offset != NULL && offset[id] >= 0;
         i++) {
        uint32_t other = node->op->in[i];

        if (is_scratch(node, i) && offset[other] >= 0 && offset[other] <= offset[id] &&
            (uint64_t)(offset[id] - offset[other]) + node->model->tensor[id].bytes <=
                node->model->tensor[other].bytes)
            return true;
    }
    return false;
}

static mpl_status add_opaque(tfl_node *node, made *out)
{
    mpl_status st = MPL_OK;
    const tfl_operator *op = node->op;
    mpl_value *in = NULL;
    uint32_t n_in = 0;
    tfl_operand operand;

    MPL_TRY(mpl_new(node->model->ctx, in, op->n_in));
    for (uint32_t k = 0; k < op->n_in; k++) {
        if (tfl_in(node, k) == NULL)
            continue;
        if (is_scratch(node, k)) {
            if (!is_inside(node, k))
                put_made(node->model, op->in[k], out);
            continue;
        }
        MPL_TRY(tfl_operand_of(node, k, TFL_PLAIN, &operand));
        in[n_in++] = operand.v;
    }
    node->n_attr = 0;
    tfl_set(node, MPL_TEXT(to, out->types));
    tfl_set(node, MPL_INTS(shape, out->n_dims, out->dims));
    tfl_set(node, MPL_TEXT(opcode, node->kind));
    MPL_TRY(tfl_add_all(node, MPL_OP_opaque, n_in, in, out->n, out->name, out->value));
    for (uint32_t i = 0; i < out->n; i++)
        node->model->tensor[out->tensor[i]].value = out->value[i];
out:
    mpl_free(node->model->ctx, in);
    return st;
}

mpl_status tfl_opaque(tfl_node *node)
{
    mpl_status st = MPL_OK;
    mpl_ctx *ctx = node->model->ctx;
    size_t most = (size_t)node->op->n_in + node->op->n_out;
    made out = {0};

    MPL_TRY(mpl_new_each(ctx, most, out.tensor, out.name, out.value));
    MPL_TRY(mpl_new(ctx, out.dims, most * (MPL_MAX_RANK + 1)));
    MPL_TRY(mpl_new(ctx, out.types, most * 16 + 1));
    for (uint32_t k = 0; k < node->op->n_out; k++)
        put_made(node->model, node->op->out[k], &out);
    MPL_TRY(add_opaque(node, &out));
out:
    mpl_free_each(ctx, out.tensor, out.name, out.value, out.dims, out.types);
    return st;
}
