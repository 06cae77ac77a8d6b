/* tflite_emit.c -- operands, attributes and operations of one operator. */
#include "graphs/io/tflite/tflite_priv.h"

#include <float.h>

/* ---- attributes ---- */

void tfl_set(tfl_node *n, mpl_attr attr)
{
    mpl_assert(n->n_attr < TFL_MAX_ATTRS);
    n->attr[n->n_attr++] = attr;
}

void tfl_set_ints(tfl_node *n, mpl_attr_key key, uint32_t count, const int64_t *value)
{
    int64_t *to = n->ints + n->n_ints;

    mpl_assert(n->n_ints + count <= TFL_MAX_INTS);
    for (uint32_t i = 0; i < count; i++)
        to[i] = value[i];
    n->n_ints += count;
    tfl_set(n, (mpl_attr){key, count, to, NULL, NULL});
}

void tfl_set_int(tfl_node *n, mpl_attr_key key, int64_t value)
{
    tfl_set_ints(n, key, 1, &value);
}

void tfl_set_float(tfl_node *n, mpl_attr_key key, double value)
{
    double *to = &n->real[n->n_reals++];

    *to = value;
    tfl_set(n, (mpl_attr){key, 1, NULL, to, NULL});
}

int64_t tfl_activation_number(const tfl_node *n)
{
    return n->rule->activation == TFL_NO_ACTIVATION
               ? 0
               : flat_int(&n->op->options, n->rule->activation, 1, true, 0);
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

const tfl_tensor *tfl_in(const tfl_node *n, uint32_t k)
{
    return k < n->op->n_in && n->op->in[k] != MPL_NONE ? &n->m->tensor[n->op->in[k]] : NULL;
}

const tfl_tensor *tfl_out(const tfl_node *n, uint32_t k)
{
    return &n->m->tensor[n->op->out[k]];
}

bool tfl_ints(const tfl_node *n, uint32_t k, uint32_t most, int64_t *to, uint32_t *count)
{
    const tfl_tensor *t = tfl_in(n, k);
    uint64_t items;

    if (t == NULL || t->data == NULL || (t->type != MPL_TYPE_i32 && t->type != MPL_TYPE_i64) ||
        !mpl_shape_count(&t->shape, &items) || items > most)
        return false;
    for (uint64_t i = 0; i < items; i++) {
        int32_t word;

        if (t->type == MPL_TYPE_i64) {
            memcpy(&to[i], t->data + 8 * i, 8);
            if (to[i] < INT32_MIN || to[i] > INT32_MAX)
                return false;
            continue;
        }
        memcpy(&word, t->data + 4 * i, 4);
        to[i] = word;
    }
    *count = (uint32_t)items;
    return true;
}

/* The value of a tensor: a constant and a state are added at their first use. */
static mpl_status value_of(tfl_node *n, uint32_t id, mpl_value *out)
{
    mpl_status st = MPL_OK;
    mpl_ctx *ctx = n->m->ctx;
    tfl_tensor *t = &n->m->tensor[id];
    int64_t zero = t->zero;
    void *copy = NULL;

    if (t->value == MPL_NONE && t->data != NULL) {
        MPL_TRY((copy = mpl_alloc(ctx, t->bytes, 1)) != NULL ? MPL_OK : MPL_EMEM);
        memcpy(copy, t->data, t->bytes);
        for (uint64_t i = 0; i < t->bytes && t->type == MPL_TYPE_bool; i++)
            ((uint8_t *)copy)[i] = ((uint8_t *)copy)[i] != 0;
        MPL_TRY(
            mpl_graph_add_const(ctx, n->g, t->name, t->type, &t->shape, copy, false, &t->value));
    } else if (t->value == MPL_NONE && t->variable) {
        MPL_TRY(
            mpl_graph_add_const(ctx, n->g, t->name, t->type, &t->shape, &zero, true, &t->value));
    } else if (t->value == MPL_NONE) {
        MPL_FAIL(ctx, MPL_EINPUT, "tensor %u ('%.100s') is read, and nothing has made it", id,
                 t->name);
    }
    *out = t->value;
out:
    mpl_free(ctx, copy);
    return st;
}

mpl_status tfl_operand_of(tfl_node *n, uint32_t k, uint32_t order, tfl_operand *out)
{
    const tfl_tensor *t = tfl_in(n, k);

    *out = (tfl_operand){.v = MPL_NONE};
    if (t == NULL)
        return MPL_OK;
    *out = (tfl_operand){MPL_NONE, order, t->n_scales, t->axis, t->zero, t->scale};
    return value_of(n, n->op->in[k], &out->v);
}

mpl_status tfl_scalar(tfl_node *n, mpl_type type, double x, const char *suffix, mpl_value *out)
{
    char name[480];
    int64_t whole = (int64_t)x;
    float real = (float)x;
    bool is_float = type == MPL_TYPE_f32;

    snprintf(name, sizeof name, "%s:%s", tfl_out(n, 0)->name, suffix);
    return mpl_graph_add_const(n->m->ctx, n->g, name, type, &(mpl_shape){0},
                               is_float ? (const void *)&real : (const void *)&whole, true, out);
}

/* ---- operations ---- */

/* Records v as result k of the operation, if its type and dims are those in the file. */
mpl_status tfl_define(tfl_node *n, uint32_t k, mpl_value v)
{
    tfl_tensor *t = &n->m->tensor[n->op->out[k]];
    char ours[200], theirs[200];

    if (n->g->value_type[v] != t->type || !mpl_shape_equal(&n->g->value_shape[v], &t->shape))
        return MPL_REFUSE(n->m->ctx, "its result '%.100s' is %s %s, and the file says %s %s",
                          t->name, mpl_type_name((mpl_type)n->g->value_type[v]),
                          mpl_shape_text(&n->g->value_shape[v], ours), mpl_type_name(t->type),
                          mpl_shape_text(&t->shape, theirs));
    t->value = v;
    return MPL_OK;
}

mpl_status tfl_add_all(tfl_node *n, mpl_op_kind kind, uint32_t n_in, const mpl_value *in,
                       uint32_t n_out, const char *const *out_name, mpl_value *out)
{
    return mpl_graph_add_op(n->m->ctx, n->g, kind, n->label, n_in, in, n->n_attr, n->attr, n_out,
                            out_name, out);
}

mpl_status tfl_add_view(tfl_node *n, mpl_value v, const mpl_shape *shape, const char *base,
                        const char *suffix, mpl_value *out)
{
    char name[480];
    mpl_attr dims = {MPL_ATTR_shape, shape->rank, shape->dim, NULL, NULL};

    snprintf(name, sizeof name, "%s%s", base, suffix);
    return mpl_graph_add_op(n->m->ctx, n->g, MPL_OP_reshape, n->label, 1, &v, 1, &dims, 1,
                            (const char *const[]){name}, out);
}

/* Appends how an operand is meant to the attributes of as_real. */
static void put_form(const tfl_operand *o, int64_t **form, double **factor)
{
    const int64_t numbers[4] = {o->order, o->axis, o->zero, o->n_scales};

    memcpy(*form, numbers, sizeof numbers);
    *form += 4;
    for (uint32_t i = 0; i < o->n_scales; i++)
        *(*factor)++ = o->scale[i];
}

/* Adds as_real of the operator: operands, then the result, each with a form. */
static mpl_status add_as_real(tfl_node *n, mpl_op_kind kind, uint32_t n_in, const tfl_operand *in,
                              const tfl_operand *result, const mpl_value *v, const double *range)
{
    mpl_status st = MPL_OK;
    mpl_ctx *ctx = n->m->ctx;
    const tfl_tensor *to = tfl_out(n, 0);
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
    tfl_set(n, MPL_TEXT(kernel, mpl_op_table[kind].name));
    tfl_set(n, MPL_TEXT(to, mpl_type_name(to->type)));
    tfl_set(n, MPL_INTS(dims, to->shape.rank, to->shape.dim));
    tfl_set(n, MPL_INTS(forms, 4 * (n_in + 1), forms));
    tfl_set(n, MPL_FLOATS(factors, n_factors, factors));
    if (range != NULL)
        tfl_set(n, MPL_FLOATS(clamp, 2, range));
    MPL_TRY(tfl_add_all(n, MPL_OP_as_real, n_in, v, 1, (const char *const[]){to->name}, &out));
    MPL_TRY(tfl_define(n, 0, out));
out:
    mpl_free_each(ctx, forms, factors);
    return st;
}

/* Whether the operand means its numbers as the result does. */
static bool means_the_same(const tfl_operand *a, const tfl_operand *result)
{
    return a->n_scales == 0 || (a->n_scales == 1 && result->n_scales == 1 &&
                                a->zero == result->zero && a->scale[0] == result->scale[0]);
}

/* Whether the operator can work on the numbers as they lie there. */
static bool is_direct(const tfl_node *n, uint32_t n_in, const tfl_operand *in,
                      const tfl_operand *result)
{
    bool direct = result->order == TFL_PLAIN && !n->converts, quantised = result->n_scales > 0;
    const tfl_operand *like = result->n_scales > 0 ? result : &in[0];

    for (uint32_t i = 0; i < n_in; i++) {
        quantised = quantised || in[i].n_scales > 0;
        direct = direct && in[i].order == TFL_PLAIN &&
                 (in[i].n_scales == 0 || (n->rule->moves && means_the_same(&in[i], like)));
    }
    return direct && (!quantised || n->rule->moves);
}

mpl_status tfl_add(tfl_node *n, mpl_op_kind kind, uint32_t n_in, const tfl_operand *in,
                   uint32_t out_order)
{
    mpl_status st = MPL_OK;
    const tfl_tensor *to = tfl_out(n, 0);
    tfl_operand result = {MPL_NONE, out_order, to->n_scales, to->axis, to->zero, to->scale};
    double range[2];
    bool clamps = tfl_activation(tfl_activation_number(n), range);
    mpl_value *v = NULL, out;

    if (tfl_activation_number(n) != 0 && !clamps)
        return tfl_opaque(n);
    MPL_TRY(mpl_new(n->m->ctx, v, n_in));
    for (uint32_t i = 0; i < n_in; i++)
        if ((v[i] = in[i].v) == MPL_NONE)
            MPL_FAIL(n->m->ctx, MPL_EINPUT, "input %u is missing", i);
    if (clamps || !is_direct(n, n_in, in, &result)) {
        MPL_TRY(add_as_real(n, kind, n_in, in, &result, v, clamps ? range : NULL));
    } else {
        MPL_TRY(tfl_add_all(n, kind, n_in, v, 1, (const char *const[]){to->name}, &out));
        MPL_TRY(tfl_define(n, 0, out));
    }
out:
    mpl_free(n->m->ctx, v);
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

static void put_made(const tfl_model *m, uint32_t tensor, made *out)
{
    const tfl_tensor *t = &m->tensor[tensor];

    out->tensor[out->n] = tensor;
    out->name[out->n++] = t->name;
    sprintf(out->types + strlen(out->types), "%s ", mpl_type_name(t->type));
    out->dims[out->n_dims++] = t->shape.rank;
    for (uint32_t d = 0; d < t->shape.rank; d++)
        out->dims[out->n_dims++] = t->shape.dim[d];
}

/* Whether tensor k of the operator's inputs is memory that it works in: nothing makes it. */
static bool is_scratch(const tfl_node *n, uint32_t k)
{
    const tfl_tensor *t = tfl_in(n, k);

    return t != NULL && t->value == MPL_NONE && t->data == NULL && !t->variable &&
           t->birth == MPL_NONE;
}

/* Whether the file itself puts this scratch memory into an earlier one of the operator. */
static bool is_inside(const tfl_node *n, uint32_t k)
{
    const int64_t *offset = n->m->offset;
    uint32_t id = n->op->in[k];

    for (uint32_t i = 0; i < k && i < TFL_SCRATCH_INPUTS && offset != NULL && offset[id] >= 0;
         i++) {
        uint32_t other = n->op->in[i];

        if (is_scratch(n, i) && offset[other] >= 0 && offset[other] <= offset[id] &&
            (uint64_t)(offset[id] - offset[other]) + n->m->tensor[id].bytes <=
                n->m->tensor[other].bytes)
            return true;
    }
    return false;
}

static mpl_status add_opaque(tfl_node *n, made *out)
{
    mpl_status st = MPL_OK;
    const tfl_operator *op = n->op;
    mpl_value *in = NULL;
    uint32_t n_in = 0;
    tfl_operand operand;

    MPL_TRY(mpl_new(n->m->ctx, in, op->n_in));
    for (uint32_t k = 0; k < op->n_in; k++) {
        if (tfl_in(n, k) == NULL)
            continue;
        if (is_scratch(n, k)) {
            if (!is_inside(n, k))
                put_made(n->m, op->in[k], out);
            continue;
        }
        MPL_TRY(tfl_operand_of(n, k, TFL_PLAIN, &operand));
        in[n_in++] = operand.v;
    }
    n->n_attr = 0;
    tfl_set(n, MPL_TEXT(to, out->types));
    tfl_set(n, MPL_INTS(shape, out->n_dims, out->dims));
    tfl_set(n, MPL_TEXT(opcode, n->kind));
    MPL_TRY(tfl_add_all(n, MPL_OP_opaque, n_in, in, out->n, out->name, out->value));
    for (uint32_t i = 0; i < out->n; i++)
        n->m->tensor[out->tensor[i]].value = out->value[i];
out:
    mpl_free(n->m->ctx, in);
    return st;
}

mpl_status tfl_opaque(tfl_node *n)
{
    mpl_status st = MPL_OK;
    mpl_ctx *ctx = n->m->ctx;
    size_t most = (size_t)n->op->n_in + n->op->n_out;
    made out = {0};

    MPL_TRY(mpl_new_each(ctx, most, out.tensor, out.name, out.value));
    MPL_TRY(mpl_new(ctx, out.dims, most * (MPL_MAX_RANK + 1)));
    MPL_TRY(mpl_new(ctx, out.types, most * 16 + 1));
    for (uint32_t k = 0; k < n->op->n_out; k++)
        put_made(n->m, n->op->out[k], &out);
    MPL_TRY(add_opaque(n, &out));
out:
    mpl_free_each(ctx, out.tensor, out.name, out.value, out.dims, out.types);
    return st;
}
