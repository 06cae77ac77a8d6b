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

/* ---- the graph ---- */

/* The rules take it that an operator has its first operand and result. */
static mpl_status lower(tfl_node *node)
{
    if (node->rule == NULL)
        return tfl_opaque(node);
    if (tfl_in(node, 0) == NULL || node->op->n_out == 0)
        return MPL_REFUSE(node->model->ctx, "it has no input, or no output");
    return node->rule->lower(node);
}

static mpl_status add_operator(tfl_model *model, mpl_graph *g, uint32_t i)
{
    char kind[80], label[120];
    tfl_node n = {.model = model, .g = g, .op = &model->op[i], .rule = rule_of(&model->op[i])};
    mpl_status st;

    n.kind = tfl_operator_name(n.op, kind);
    snprintf(label, sizeof label, "%s:%u", kind, i);
    n.label = label;
    st = lower(&n);
    if (st != MPL_EINPUT)
        return st;
    return MPL_REFUSE(model->ctx, "%.150s: operator %u (%s): %s", model->path, i, kind,
                      model->ctx->message);
}

/* An operation whose outputs nothing reads and the file does not name keeps its memory. */
static mpl_status add_outputs(tfl_model *model, mpl_graph *g)
{
    for (uint32_t k = 0; k < model->n_outputs; k++) {
        tfl_tensor *tensor = &model->tensor[model->output[k]];

        if (tensor->value == MPL_NONE)
            return MPL_REFUSE(model->ctx, "%.200s: output '%.100s' is made by no operator",
                              model->path, tensor->name);
        MPL_PASS(mpl_graph_add_output(model->ctx, g, tensor->value));
    }
    return MPL_OK;
}

static mpl_status fill(tfl_model *model, mpl_graph *g)
{
    for (uint32_t k = 0; k < model->n_inputs; k++) {
        tfl_tensor *tensor = &model->tensor[model->input[k]];

        if (tensor->value != MPL_NONE || tensor->data != NULL)
            return MPL_REFUSE(model->ctx, "%.200s: input '%.100s' is named twice, or a constant",
                              model->path, tensor->name);
        MPL_PASS(mpl_graph_add_value(model->ctx, g, tensor->name, MPL_INPUT, tensor->type,
                                     &tensor->shape, &tensor->value));
    }
    for (uint32_t i = 0; i < model->n_operators; i++)
        MPL_PASS(add_operator(model, g, i));
    MPL_PASS(add_outputs(model, g));
    MPL_PASS(mpl_graph_finish(model->ctx, g));
    return mpl_graph_check_updates(model->ctx, g);
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
    char name[200];

    snprintf(name, sizeof name, "%s", base_name(path));
    if (strrchr(name, '.') > name)
        *strrchr(name, '.') = '\0';
    MPL_TRY(tfl_open(ctx, path, data, size, &m));
    MPL_TRY(tfl_offsets(&m, &m.offset));
    MPL_TRY(mpl_graph_new(ctx, name, &g));
    MPL_TRY(fill(&m, g));
    *out = g, g = NULL;
out:
    if (st == MPL_EINPUT && strstr(ctx->message, path) == NULL)
        st = MPL_REFUSE(ctx, "%.200s: %s", path, ctx->message);
    mpl_graph_free(ctx, g);
    tfl_close(&m);
    return st;
}
