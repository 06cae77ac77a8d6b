/* tflite_model.c -- tensors and operators of a TensorFlow Lite model's first subgraph. */
#include "graphs/io/tflite/tflite_priv.h"

#include <math.h>
#include <stdlib.h>

enum { BOOL, I8, U8, I32, U32, U64, F32, TABLE, BYTES, INTS, LONGS, FLOATS, TABLES, TEXT };

static const struct {
    uint8_t number, kind;
    int8_t otherwise;
} fields[TFL_N_FIELDS] = {
#define FIELD(table, name, number, kind, otherwise) {number, kind, otherwise},
#define TENSOR(...)
#include "graphs/io/tflite/schema.def"
#undef FIELD
#undef TENSOR
};

static const struct {
    const char *name;
    int number;
    mpl_type type;
} types[] = {
#define FIELD(...)
#define TENSOR(number, name, type) {#name, number, MPL_TYPE_##type},
#include "graphs/io/tflite/schema.def"
#undef FIELD
#undef TENSOR
};
enum { N_TYPES = sizeof types / sizeof *types, CUSTOM = 32 };

int64_t tfl_int(const flat_table *table, tfl_field field)
{
    static const uint8_t bytes[] = {
        [BOOL] = 1, [I8] = 1, [U8] = 1, [I32] = 4, [U32] = 4, [U64] = 8};
    uint8_t kind = fields[field].kind;

    return flat_int(table, fields[field].number, bytes[kind], kind == I8 || kind == I32,
                    fields[field].otherwise);
}

double tfl_float(const flat_table *table, tfl_field field)
{
    return flat_float(table, fields[field].number, (double)fields[field].otherwise);
}

flat_table tfl_table(const flat_table *table, tfl_field field)
{
    return flat_child(table, fields[field].number);
}

flat_vector tfl_list(const flat_table *table, tfl_field field)
{
    static const uint8_t bytes[] = {
        [BYTES] = 1, [INTS] = 4, [LONGS] = 8, [FLOATS] = 4, [TABLES] = 4, [TEXT] = 1};

    return flat_list(table, fields[field].number, bytes[fields[field].kind]);
}

const char *tfl_operator_name(const tfl_operator *op, char *text)
{
    static const char *const names[] = {
#define OPERATOR(code, name, ...) [code] = #name,
#include "graphs/io/tflite/operators.def"
#undef OPERATOR
    };
    bool known =
        op->code >= 0 && (size_t)op->code < sizeof names / sizeof *names && names[op->code] != NULL;

    if (op->custom != NULL)
        snprintf(text, 80, "%.*s", (int)(op->n_custom < 60 ? op->n_custom : 60), op->custom);
    else if (known)
        snprintf(text, 80, "%s", names[op->code]);
    else
        snprintf(text, 80, "operator %d", op->code);
    return text;
}

/* ---- buffers ---- */

mpl_status tfl_buffer(tfl_model *model, uint64_t i, const uint8_t **data, uint64_t *bytes)
{
    flat_table buffer;
    flat_vector inside;
    uint64_t offset;

    *data = NULL;
    *bytes = 0;
    if (i >= model->buffers.n)
        return MPL_REFUSE(model->ctx, "%.200s: buffer %" PRIu64 " of %u is used", model->path, i,
                          model->buffers.n);
    buffer = flat_item(&model->buffers, (uint32_t)i);
    inside = tfl_list(&buffer, TFL_Buffer_data);
    offset = (uint64_t)tfl_int(&buffer, TFL_Buffer_offset);
    model->file.left += inside.n; /* contents are not walked here */
    if (inside.n > 0) {
        *data = model->file.data + inside.at;
        *bytes = inside.n;
    } else if (offset > 1) { /* contents behind the tables; 0 and 1 mark the absence of such */
        *bytes = (uint64_t)tfl_int(&buffer, TFL_Buffer_size);
        if (offset > model->file.size || *bytes > model->file.size - offset)
            return MPL_REFUSE(model->ctx, "%.200s: buffer %" PRIu64 " lies outside of the file",
                              model->path, i);
        *data = model->file.data + offset;
    }
    return MPL_OK;
}

mpl_status tfl_metadata(tfl_model *model, const char *name, const uint8_t **data, uint64_t *bytes)
{
    flat_vector all = tfl_list(&model->root, TFL_Model_metadata);

    *bytes = 0;
    for (uint32_t i = 0; i < all.n; i++) {
        flat_table one = flat_item(&all, i);
        flat_vector text = tfl_list(&one, TFL_Metadata_name);

        if (text.n == strlen(name) && memcmp(model->file.data + text.at, name, text.n) == 0)
            return tfl_buffer(model, (uint64_t)tfl_int(&one, TFL_Metadata_buffer), data, bytes);
    }
    return MPL_OK;
}

/* ---- tensors ---- */

static mpl_status read_form(tfl_model *model, uint32_t i, const flat_table *table)
{
    tfl_tensor *out = &model->tensor[i];
    int64_t number = tfl_int(table, TFL_Tensor_type);
    flat_vector dims = tfl_list(table, TFL_Tensor_shape);
    uint64_t count;
    int k = 0;

    while (k < N_TYPES && types[k].number != number)
        k++;
    if (k == N_TYPES)
        return MPL_REFUSE(model->ctx,
                          "%.200s: tensor %u has type %" PRId64
                          " of TensorFlow Lite, which memplan does not have",
                          model->path, i, number);
    out->type = types[k].type;
    if (dims.n > MPL_MAX_RANK)
        return MPL_REFUSE(model->ctx, "%.200s: tensor %u has %u dims; at most %d are possible",
                          model->path, i, dims.n, MPL_MAX_RANK);
    out->shape.rank = dims.n;
    for (uint32_t d = 0; d < dims.n; d++)
        out->shape.dim[d] = flat_item_int(&dims, d);
    if (!mpl_shape_count(&out->shape, &count) || !mpl_type_size(out->type, count, &out->bytes) ||
        out->bytes > INT64_MAX / 16)
        return MPL_REFUSE(model->ctx,
                          "%.200s: tensor %u has a dim below 0, or more bytes than can be counted",
                          model->path, i);
    return MPL_OK;
}

static bool is_scale(double scale)
{
    return scale > 0 && isfinite(scale);
}

/* A float has no scales of its own, whatever the file says. */
static mpl_status read_scales(tfl_model *model, uint32_t i, const flat_table *table)
{
    tfl_tensor *out = &model->tensor[i];
    flat_table q = tfl_table(table, TFL_Tensor_quantization);
    flat_vector scale = tfl_list(&q, TFL_Quantization_scale);
    flat_vector zero = tfl_list(&q, TFL_Quantization_zero_point);
    int64_t axis = tfl_int(&q, TFL_Quantization_dimension);
    bool per_axis = scale.n > 1, is_float = out->type == MPL_TYPE_f32 || out->type == MPL_TYPE_f16;

    if (scale.n == 0 || is_float || model->file.fault != NULL)
        return MPL_OK;
    if (out->shape.rank == 1) /* converters note the filter's axis beside a bias */
        axis = 0;
    if (per_axis && (axis < 0 || axis >= out->shape.rank || out->shape.dim[axis] != scale.n))
        return MPL_REFUSE(model->ctx, "%.200s: tensor %u has %u scales, and no such dim",
                          model->path, i, scale.n);
    MPL_PASS(mpl_new(model->ctx, out->scale, scale.n));
    for (uint32_t k = 0; k < scale.n; k++)
        if (!is_scale(out->scale[k] = flat_item_float(&scale, k)))
            return MPL_REFUSE(model->ctx, "%.200s: tensor %u has a scale of %g", model->path, i,
                              out->scale[k]);
    out->n_scales = scale.n;
    out->axis = per_axis ? (uint32_t)axis : 0;
    out->zero = zero.n > 0 ? flat_item_int(&zero, 0) : 0;
    for (uint32_t k = 1; k < zero.n; k++)
        if (flat_item_int(&zero, k) != out->zero)
            return MPL_REFUSE(model->ctx, "%.200s: tensor %u has several zero points", model->path,
                              i);
    return MPL_OK;
}

static mpl_status read_tensor(tfl_model *model, uint32_t i, const flat_table *table)
{
    tfl_tensor *out = &model->tensor[i];
    flat_table sparse = tfl_table(table, TFL_Tensor_sparsity);
    uint64_t bytes;

    out->value = out->birth = out->last = MPL_NONE;
    MPL_PASS(read_form(model, i, table));
    MPL_PASS(read_scales(model, i, table));
    out->variable = tfl_int(table, TFL_Tensor_is_variable) != 0;
    if (sparse.at != 0)
        return MPL_REFUSE(model->ctx, "%.200s: tensor %u is sparse, which memplan does not read",
                          model->path, i);
    MPL_PASS(tfl_buffer(model, (uint64_t)tfl_int(table, TFL_Tensor_buffer), &out->data, &bytes));
    if (out->data != NULL && bytes != out->bytes)
        return MPL_REFUSE(model->ctx,
                          "%.200s: tensor %u has %" PRIu64 " bytes of contents; its type and dims "
                          "are %" PRIu64,
                          model->path, i, bytes, out->bytes);
    return MPL_OK;
}

/* ---- names ---- */

/* A tensor's name in the file. */
typedef struct named {
    const char *text;
    uint32_t n, id;
} named;

static int by_name(const void *left, const void *right)
{
    const named *x = left, *y = right;
    int order = memcmp(x->text, y->text, x->n < y->n ? x->n : y->n);

    return order != 0 ? order : x->n != y->n ? (x->n < y->n ? -1 : 1) : x->id < y->id ? -1 : 1;
}

static mpl_status set_name(tfl_model *model, const named *name, bool lone)
{
    enum { MOST = 400 };
    uint32_t n = name->n < MOST ? name->n : MOST;
    char **out = &model->tensor[name->id].name;

    MPL_PASS(mpl_new(model->ctx, *out, (size_t)n + 20));
    for (uint32_t i = 0; i < n; i++)
        (*out)[i] = name->text[i] < ' ' || name->text[i] == 0x7f ? '?' : name->text[i];
    if (n == 0)
        sprintf(*out, "tensor%u", name->id);
    else if (!lone || n < name->n)
        sprintf(*out + n, ":%u", name->id);
    return MPL_OK;
}

/* Tensors that share a name, and those whose name was cut, get their number appended. */
static mpl_status name_tensors(tfl_model *model, const flat_vector *tensors)
{
    mpl_status st = MPL_OK;
    named *name = NULL;

    MPL_TRY(mpl_new(model->ctx, name, model->n_tensors));
    for (uint32_t i = 0; i < model->n_tensors; i++) {
        flat_table t = flat_item(tensors, i);
        flat_vector text = tfl_list(&t, TFL_Tensor_name);

        name[i] = (named){(const char *)model->file.data + text.at, text.n, i};
    }
    qsort(name, model->n_tensors, sizeof *name, by_name);
    for (uint32_t i = 0; i < model->n_tensors; i++) {
        bool before = i > 0 && name[i].n == name[i - 1].n &&
                      memcmp(name[i].text, name[i - 1].text, name[i].n) == 0;
        bool after = i + 1 < model->n_tensors && name[i].n == name[i + 1].n &&
                     memcmp(name[i].text, name[i + 1].text, name[i].n) == 0;

        MPL_TRY(set_name(model, &name[i], !before && !after));
    }
out:
    mpl_free(model->ctx, name);
    return st;
}

/* ---- operators ---- */

/* Reads a list of tensors; `may_omit`: -1 stands for none. */
static mpl_status read_ids(tfl_model *model, const flat_table *table, tfl_field field,
                           bool may_omit, uint32_t *n, uint32_t **ids)
{
    flat_vector list = tfl_list(table, field);

    MPL_PASS(mpl_new(model->ctx, *ids, list.n));
    *n = list.n;
    for (uint32_t i = 0; i < list.n; i++) {
        int64_t id = flat_item_int(&list, i);

        if (id >= (int64_t)model->n_tensors || id < (may_omit ? -1 : 0))
            return MPL_REFUSE(model->ctx, "%.200s: tensor %" PRId64 " of %u is used", model->path,
                              id, model->n_tensors);
        (*ids)[i] = id < 0 ? MPL_NONE : (uint32_t)id;
    }
    return MPL_OK;
}

static mpl_status read_operator(tfl_model *model, uint32_t i, const flat_table *table,
                                const flat_vector *codes)
{
    tfl_operator *out = &model->op[i];
    uint64_t code = (uint64_t)tfl_int(table, TFL_Operator_code);
    flat_table kind;
    flat_vector custom;

    if (code >= codes->n)
        return MPL_REFUSE(model->ctx, "%.200s: operator %u has code %" PRIu64 " of %u", model->path,
                          i, code, codes->n);
    kind = flat_item(codes, (uint32_t)code);
    out->code = (int32_t)tfl_int(&kind, TFL_OperatorCode_code);
    if (out->code == 0) /* files of before 2020 */
        out->code = (int32_t)tfl_int(&kind, TFL_OperatorCode_deprecated_code);
    custom = tfl_list(&kind, TFL_OperatorCode_custom_code);
    if (out->code == CUSTOM) {
        out->custom = (const char *)model->file.data + custom.at;
        out->n_custom = custom.n;
    }
    out->options = tfl_table(table, TFL_Operator_options);
    out->intermediates = tfl_list(table, TFL_Operator_intermediates);
    MPL_PASS(read_ids(model, table, TFL_Operator_inputs, true, &out->n_in, &out->in));
    return read_ids(model, table, TFL_Operator_outputs, false, &out->n_out, &out->out);
}

/* Notes which operators make and use a tensor. */
static mpl_status note_uses(tfl_model *model)
{
    for (uint32_t k = 0; k < model->n_inputs; k++)
        model->tensor[model->input[k]].is_input = true;
    for (uint32_t k = 0; k < model->n_outputs; k++)
        model->tensor[model->output[k]].is_output = true;
    for (uint32_t i = 0; i < model->n_operators; i++) {
        for (uint32_t k = 0; k < model->op[i].n_in; k++)
            if (model->op[i].in[k] != MPL_NONE)
                model->tensor[model->op[i].in[k]].last = i;
        for (uint32_t k = 0; k < model->op[i].n_out; k++) {
            tfl_tensor *tensor = &model->tensor[model->op[i].out[k]];

            if (tensor->birth != MPL_NONE || tensor->data != NULL || tensor->is_input)
                return MPL_REFUSE(model->ctx, "%.200s: tensor %u ('%.100s') is made twice",
                                  model->path, model->op[i].out[k], tensor->name);
            tensor->birth = i;
        }
    }
    return MPL_OK;
}

static mpl_status check_file(const tfl_model *model)
{
    return model->file.fault == NULL
               ? MPL_OK
               : MPL_REFUSE(model->ctx, "%.200s: no sound TensorFlow Lite model: %s", model->path,
                            model->file.fault);
}

static mpl_status read_subgraph(tfl_model *model, const flat_table *graph)
{
    flat_vector tensors = tfl_list(graph, TFL_SubGraph_tensors);
    flat_vector operators = tfl_list(graph, TFL_SubGraph_operators);
    flat_vector codes = tfl_list(&model->root, TFL_Model_operator_codes);

    MPL_PASS(mpl_new(model->ctx, model->tensor, tensors.n));
    MPL_PASS(mpl_new(model->ctx, model->op, operators.n));
    model->n_tensors = tensors.n;
    model->n_operators = operators.n;
    MPL_PASS(name_tensors(model, &tensors));
    for (uint32_t i = 0; i < tensors.n && model->file.fault == NULL; i++) {
        flat_table t = flat_item(&tensors, i);

        MPL_PASS(read_tensor(model, i, &t));
    }
    for (uint32_t i = 0; i < operators.n && model->file.fault == NULL; i++) {
        flat_table t = flat_item(&operators, i);

        MPL_PASS(read_operator(model, i, &t, &codes));
    }
    MPL_PASS(read_ids(model, graph, TFL_SubGraph_inputs, false, &model->n_inputs, &model->input));
    MPL_PASS(
        read_ids(model, graph, TFL_SubGraph_outputs, false, &model->n_outputs, &model->output));
    MPL_PASS(check_file(model));
    return note_uses(model);
}

mpl_status tfl_open(mpl_ctx *ctx, const char *path, const void *data, size_t size, tfl_model *model)
{
    flat_vector graphs;
    flat_table graph;

    *model = (tfl_model){.ctx = ctx, .path = path, .file = flat_open(data, size)};
    model->root = flat_root(&model->file);
    model->buffers = tfl_list(&model->root, TFL_Model_buffers);
    graphs = tfl_list(&model->root, TFL_Model_subgraphs);
    MPL_PASS(check_file(model));
    if (tfl_int(&model->root, TFL_Model_version) != 3 || graphs.n == 0)
        return MPL_REFUSE(ctx,
                          "%.200s: schema version %" PRId64 " with %u subgraphs; version 3 with a "
                          "subgraph is read",
                          path, tfl_int(&model->root, TFL_Model_version), graphs.n);
    graph = flat_item(&graphs, 0);
    MPL_PASS(read_subgraph(model, &graph));
    return check_file(model);
}

void tfl_close(tfl_model *model)
{
    for (uint32_t i = 0; i < model->n_tensors && model->tensor != NULL; i++)
        mpl_free_each(model->ctx, model->tensor[i].name, model->tensor[i].scale);
    for (uint32_t i = 0; i < model->n_operators && model->op != NULL; i++)
        mpl_free_each(model->ctx, model->op[i].in, model->op[i].out);
    mpl_free_each(model->ctx, model->tensor, model->op, model->input, model->output, model->offset);
}
