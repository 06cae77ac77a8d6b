/* tflite.c -- a TensorFlow Lite model as a graph: a value for each tensor, an operation for each
 * operator, in the file's order. */
#include "graphs/io/tflite/tflite_priv.h"

enum { NO = TFL_NO_ACTIVATION };
static const tfl_rule rules[] = {
#define OPERATOR(code, name, kind, rule, moves, activation)                                        \
    {code, MPL_OP_##kind, tfl_lower_##rule, moves, activation},
#include "graphs/io/tflite/operators.def"
#undef OPERATOR
};

static const tfl_rule *rule_of(const tfl_operator *op)
{
    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++)
        if (rules[i].code == op->code && op->custom == NULL)
            return &rules[i];
    return NULL;
}

/* ---- operators without a rule ---- */

/* What an opaque operation makes: its outputs, and memory of its own. */
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

/* ---- the graph ---- */

/* The rules take it that an operator has its first operand and result. */
static mpl_status lower(tfl_node *n)
{
    if (n->rule == NULL)
        return tfl_opaque(n);
    if (tfl_in(n, 0) == NULL || n->op->n_out == 0)
        return MPL_REFUSE(n->m->ctx, "it has no input, or no output");
    return n->rule->lower(n);
}

static mpl_status add_operator(tfl_model *m, mpl_graph *g, uint32_t i)
{
    char kind[80], label[120], why[sizeof m->ctx->message];
    tfl_node n = {.m = m, .g = g, .op = &m->op[i], .rule = rule_of(&m->op[i])};
    mpl_status st;

    n.kind = tfl_operator_name(n.op, kind);
    snprintf(label, sizeof label, "%s:%u", kind, i);
    n.label = label;
    st = lower(&n);
    if (st != MPL_EINPUT)
        return st;
    memcpy(why, m->ctx->message, sizeof why);
    return MPL_REFUSE(m->ctx, "%.150s: operator %u (%s): %.280s", m->path, i, kind, why);
}

/* An operation whose outputs nothing reads and the file does not name keeps its memory. */
static mpl_status add_outputs(tfl_model *m, mpl_graph *g)
{
    for (uint32_t k = 0; k < m->n_outputs; k++) {
        tfl_tensor *t = &m->tensor[m->output[k]];

        if (t->value == MPL_NONE)
            return MPL_REFUSE(m->ctx, "%.200s: output '%.100s' is made by no operator", m->path,
                              t->name);
        MPL_PASS(mpl_graph_add_output(m->ctx, g, t->value));
    }
    return MPL_OK;
}

static mpl_status fill(tfl_model *m, mpl_graph *g)
{
    for (uint32_t k = 0; k < m->n_inputs; k++) {
        tfl_tensor *t = &m->tensor[m->input[k]];

        if (t->value != MPL_NONE || t->data != NULL)
            return MPL_REFUSE(m->ctx, "%.200s: input '%.100s' is named twice, or a constant",
                              m->path, t->name);
        MPL_PASS(mpl_graph_add_value(m->ctx, g, t->name, MPL_INPUT, t->type, &t->shape, &t->value));
    }
    for (uint32_t i = 0; i < m->n_operators; i++)
        MPL_PASS(add_operator(m, g, i));
    MPL_PASS(add_outputs(m, g));
    MPL_PASS(mpl_graph_finish(m->ctx, g));
    return mpl_graph_check_updates(m->ctx, g);
}

static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash != NULL ? slash + 1 : path;
}

mpl_status mpl_tflite_read_memory(mpl_ctx *ctx, const char *path, const void *data, size_t size,
                                  mpl_graph **out)
{
    mpl_status st = MPL_OK;
    tfl_model m;
    mpl_graph *g = NULL;
    char name[200], why[sizeof ctx->message];

    snprintf(name, sizeof name, "%s", base_name(path));
    if (strrchr(name, '.') > name)
        *strrchr(name, '.') = '\0';
    MPL_TRY(tfl_open(ctx, path, data, size, &m));
    MPL_TRY(tfl_offsets(&m, &m.offset));
    MPL_TRY(mpl_graph_new(ctx, name, &g));
    MPL_TRY(fill(&m, g));
    *out = g, g = NULL;
out:
    if (st == MPL_EINPUT && strstr(ctx->message, path) == NULL) {
        memcpy(why, ctx->message, sizeof why);
        st = MPL_REFUSE(ctx, "%.200s: %.280s", path, why);
    }
    mpl_graph_free(ctx, g);
    tfl_close(&m);
    return st;
}
