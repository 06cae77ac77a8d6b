/* onnx_write.c -- writes a graph as an ONNX model. See source.h.
 *
 * Idea     Each operation becomes the node from which the reader's rule (ir/ops.def) makes it:
 *          attributes by their ONNX names, or as constant inputs where the rule turns inputs into
 *          attributes. The graph's fields are visited twice: first to count, since a message begins
 *          with its length, then to write, with one weight at a time in memory.
 * Source   ONNX, onnx.proto, docs/IR.md, docs/Operators.md; https://github.com/onnx/onnx */
#include "graphs/core/file.h"
#include "graphs/io/onnx/write/onnx_write_priv.h"
#include "graphs/ops/user/user_ops.h"

/* oldest written: the first with all inputs that rules turn into attributes */
#define OLDEST_OPSET 18
#define MOST_BYTES   INT32_MAX /* limit of a protobuf message */
/* Fields of GraphProto. */
enum { NODE = 1, NAME = 2, INITIALISER = 5, INPUT = 11, OUTPUT = 12, VALUE_INFO = 13 };

/* ---- opset ---- */

/* Whether outputs of our own follow those of ONNX: a length, a matrix to work in. */
static bool has_more_outputs(mpl_op_kind kind)
{
    return kind == MPL_OP_non_zero || kind == MPL_OP_compress || kind == MPL_OP_nms ||
           kind == MPL_OP_unique || kind == MPL_OP_det;
}

static bool is_said_by(const onnx_rule *rule, const mpl_graph *g, mpl_op op)
{
    onnx_item it;

    /* scale and bias have another shape there */
    if (rule == NULL || rule->lower == onnx_lower_group_norm_18 || has_more_outputs(rule->kind))
        return false;
    for (uint32_t i = 0; i < onnx_count_attrs(g, op); i++) {
        mpl_attr_key key = mpl_attr_at(g, g->op_attr_begin[op] + i).key;

        bool node = key == MPL_ATTR_activation ||
                    ((g->op_kind[op] == MPL_OP_matmul || onnx_is_stacked(g, op)) &&
                     (key == MPL_ATTR_trans_a || key == MPL_ATTR_trans_b)); /* of its own */

        if (key != MPL_ATTR_to && !node && !onnx_find_item(rule, key, &it))
            return false;
    }
    return true;
}

/* The oldest opset that can express all operations. */
static mpl_status find_opset(mpl_ctx *ctx, const mpl_graph *g, int64_t *opset)
{
    *opset = OLDEST_OPSET;
    for (mpl_op op = 0; op < g->n_ops; op++) {
        mpl_op_kind kind = (mpl_op_kind)g->op_kind[op];
        const memplan_operator *user = kind == MPL_OP_user ? mpl_user_of(g, op) : NULL;

        if (user != NULL && user->onnx != NULL)
            continue;
        while (*opset <= ONNX_MAX_OPSET && (mpl_op_table[kind].traits & MPL_CONTROL) == 0 &&
               !is_said_by(onnx_write_rule(g, op, *opset), g, op))
            ++*opset;
        if (*opset > ONNX_MAX_OPSET)
            return MPL_REFUSE(ctx, "operation '%.100s' (%s): no opset of ONNX up to %d says it",
                              g->op_name[op], mpl_op_called(g, op), ONNX_MAX_OPSET);
    }
    return MPL_OK;
}

/* The format version that came with an opset (docs/Versioning.md). */
static int64_t ir_version(int64_t opset)
{
    return opset <= 18   ? 8
           : opset <= 20 ? 9
           : opset <= 22 ? 10
           : opset == 23 ? 11
           : opset == 24 ? 12
                         : 13;
}

/* ---- scratch memory, names ---- */

static void free_parts(writer *out)
{
    while (out->n_parts > 0)
        mpl_free(out->ctx, out->part[--out->n_parts]);
}

/* ---- nodes ---- */

/* Marks the first operation of each name; an empty graph serves as the set of names. */
static mpl_status find_named(writer *w)
{
    mpl_status st = MPL_OK;
    const mpl_shape scalar = {0};
    mpl_graph *seen = NULL;
    mpl_value v;

    MPL_TRY(mpl_new(w->ctx, w->named, w->g->n_ops));
    MPL_TRY(mpl_graph_new(w->ctx, "", &seen));
    for (mpl_op op = 0; op < w->g->n_ops; op++) {
        w->named[op] = mpl_graph_find(seen, w->g->op_name[op]) == MPL_NONE;
        if (w->named[op])
            MPL_TRY(mpl_graph_add_value(w->ctx, seen, w->g->op_name[op], MPL_WEIGHT, MPL_TYPE_u8,
                                        &scalar, &v));
    }
out:
    mpl_graph_free(w->ctx, seen);
    return st;
}

/* Writes the nodes of an operation of the whole graph. */
static mpl_status put_nodes(writer *w, mpl_op op)
{
    mpl_status st = MPL_OK;
    onnx_nodes nodes = {0};

    MPL_TRY(onnx_add_nodes(w, op, &nodes));
    for (size_t i = 0; i < nodes.n; i++)
        onnx_put_message(w->to, NODE, &nodes.item[i]->base);
out:
    free_parts(w);
    return st;
}

/* ---- constants and weights ---- */

static mpl_status put_constant(writer *w, mpl_op op, const mpl_attr *attr)
{
    mpl_status st = MPL_OK;
    Onnx__TensorProto t = ONNX__TENSOR_PROTO__INIT;
    int64_t count = attr->n;

    MPL_TRY(onnx_name_constant(w, op, attr->key, &t.name));
    t.n_dims =
        mpl_attr_kind_of(attr->key) == MPL_ATTR_INT && w->g->op_kind[op] != MPL_OP_top_k ? 0 : 1;
    t.dims = &count;
    t.has_data_type = true;
    if (attr->floats != NULL) {
        t.data_type = onnx_type_number(MPL_TYPE_f32);
        t.n_float_data = attr->n;
        MPL_TRY(onnx_narrow(w, attr, &t.float_data));
    } else {
        t.data_type = onnx_type_number(MPL_TYPE_i64);
        t.n_int64_data = attr->n, t.int64_data = (int64_t *)attr->ints;
    }
    onnx_put_message(w->to, INITIALISER, &t.base);
out:
    free_parts(w);
    return st;
}

static mpl_status put_constants(writer *out, mpl_op op)
{
    const onnx_rule *rule = onnx_write_rule(out->g, op, out->opset);
    onnx_item it;

    for (uint32_t i = 0; i < onnx_count_attrs(out->g, op); i++) {
        mpl_attr attr = mpl_attr_at(out->g, out->g->op_attr_begin[op] + i);

        if (onnx_find_item(rule, attr.key, &it) && it.mark == '@')
            MPL_PASS(put_constant(out, op, &attr));
    }
    return MPL_OK;
}

/* While fields are counted only the weight's length matters. */
static mpl_status put_weight(writer *w, mpl_value v)
{
    mpl_status st = MPL_OK;
    const mpl_graph *g = w->g;
    Onnx__TensorProto t = ONNX__TENSOR_PROTO__INIT;

    t.name = g->value_name[v];
    t.n_dims = g->value_shape[v].rank;
    t.dims = g->value_shape[v].dim;
    t.has_data_type = true;
    t.data_type = onnx_type_number((mpl_type)g->value_type[v]);
    t.has_raw_data = true;
    t.raw_data.len = (size_t)g->value_bytes[v];
    if (w->to->stream != NULL) {
        MPL_TRY(part_new(w, t.raw_data.data, t.raw_data.len));
        MPL_TRY(w->weights->fill(w->weights->arg, v, t.raw_data.data));
    }
    onnx_put_message(w->to, INITIALISER, &t.base);
out:
    free_parts(w);
    return st;
}

/* ---- values ---- */

static mpl_status put_value(writer *w, unsigned field, mpl_value v)
{
    mpl_status st = MPL_OK;
    Onnx__ValueInfoProto *info;

    MPL_TRY(onnx_describe(w, w->g->value_name[v], (mpl_type)w->g->value_type[v],
                          &w->g->value_shape[v], &info));
    onnx_put_message(w->to, field, &info->base);
out:
    free_parts(w);
    return st;
}

/* ---- the model ---- */

static mpl_status put_graph(writer *out, onnx_sink *to)
{
    const mpl_graph *g = out->g;

    out->to = to;
    onnx_put_text(to, NAME, g->name);
    out->n_names = 0;
    for (mpl_op op = 0; op < g->n_ops; op++)
        if (g->op_block[op] == 0)
            MPL_PASS(put_nodes(out, op));
    for (uint32_t i = 0; i < g->n_inputs; i++)
        MPL_PASS(put_value(out, INPUT, g->input[i]));
    for (uint32_t i = 0; i < g->n_outputs; i++)
        MPL_PASS(put_value(out, OUTPUT, g->output[i]));
    for (mpl_value v = 0; v < g->n_values; v++)
        if (g->value_role[v] == MPL_TEMPORARY && g->value_block[v] == 0)
            MPL_PASS(put_value(out, VALUE_INFO, v));
    for (mpl_op op = 0; op < g->n_ops; op++)
        if ((mpl_op_table[g->op_kind[op]].traits & MPL_CONTROL) == 0 &&
            g->op_kind[op] != MPL_OP_user)
            MPL_PASS(put_constants(out, op));
    for (mpl_value v = 0; v < g->n_values; v++)
        if (g->value_role[v] == MPL_WEIGHT)
            MPL_PASS(put_weight(out, v));
    return MPL_OK;
}

/* The domains of the user's operators, each once: those before `op` name none again. */
static void put_domains(const writer *out, onnx_sink *to, unsigned field)
{
    Onnx__OperatorSetIdProto opset = ONNX__OPERATOR_SET_ID_PROTO__INIT;
    const memplan_operator *u;
    char domain[256];

    opset.domain = domain;
    opset.has_version = true;
    opset.version = 1;
    for (uint32_t i = 0; (u = mpl_user_at(i)) != NULL; i++) {
        bool used = false, named = false;

        for (mpl_op op = 0; op < out->g->n_ops; op++)
            used |= out->g->op_kind[op] == MPL_OP_user && mpl_user_of(out->g, op) == u;
        if (!used)
            continue;
        snprintf(domain, sizeof domain, "%.*s:", (int)strcspn(u->onnx, ":"), u->onnx);
        for (uint32_t k = 0; k < i && !named; k++)
            named = mpl_user_at(k)->onnx != NULL &&
                    strncmp(mpl_user_at(k)->onnx, domain, strlen(domain)) == 0;
        domain[strlen(domain) - 1] = '\0';
        if (!named)
            onnx_put_message(to, field, &opset.base);
    }
}

/* All fields except the graph. */
static void put_head(const writer *out, uint32_t n_notes, const mpl_onnx_note *notes, onnx_sink *to)
{
    enum { IR_VERSION = 1, PRODUCER = 2, OPSET = 8 };
    Onnx__OperatorSetIdProto opset = ONNX__OPERATOR_SET_ID_PROTO__INIT;

    onnx_put_number(to, IR_VERSION, (uint64_t)ir_version(out->opset));
    onnx_put_text(to, PRODUCER, ONNX_PRODUCER);
    opset.domain = (char *)"";
    opset.has_version = true;
    opset.version = out->opset;
    onnx_put_message(to, OPSET, &opset.base);
    put_domains(out, to, OPSET);
    for (uint32_t i = 0; i < n_notes; i++) {
        Onnx__StringStringEntryProto note = onnx_note_message(&notes[i]);

        onnx_put_message(to, ONNX_MODEL_NOTE, &note.base);
    }
}

mpl_status mpl_onnx_write(mpl_ctx *ctx, const char *path, const mpl_graph *g,
                          const mpl_onnx_weights *weights, uint32_t n_notes,
                          const mpl_onnx_note *notes)
{
    mpl_status st = MPL_OK;
    writer w = {.ctx = ctx, .g = g, .weights = weights};
    onnx_sink graph = {0}, head = {0}, to = {0};
    mpl_new_file file = {0};

    MPL_TRY(find_opset(ctx, g, &w.opset));
    MPL_TRY(find_named(&w));
    MPL_TRY(put_graph(&w, &graph));
    put_head(&w, n_notes, notes, &head);
    if (graph.bytes > MOST_BYTES || head.bytes + 16 > MOST_BYTES - graph.bytes)
        MPL_FAIL(ctx, MPL_EINPUT,
                 "%.200s: the model would have %" PRIu64
                 " bytes, weights included; an ONNX file holds at most 2 GiB",
                 path, graph.bytes + head.bytes);
    MPL_TRY(mpl_file_begin(ctx, path, &file));
    to.stream = file.stream;
    put_head(&w, n_notes, notes, &to);
    onnx_put_tag(&to, ONNX_MODEL_GRAPH, graph.bytes);
    MPL_TRY(put_graph(&w, &to));
    MPL_TRY(mpl_file_commit(ctx, &file));
out:
    mpl_file_end(ctx, &file);
    free_parts(&w);
    mpl_free_each(ctx, w.part, w.named);
    return st;
}
