/* tflite_states.c -- rules of the layers that keep a state: SVDF, UNIDIRECTIONAL_SEQUENCE_LSTM.
 * Their variable tensors are weights that the operation updates. Source of the inputs' order:
 * TensorFlow, tensorflow/lite/kernels/. */
#include "graphs/io/tflite/tflite_priv.h"

enum { MOST_OPERANDS = 15, MOST_STATES = 2 };

/* Appends form and factor of an operand; each has at most one factor here. */
static void put_form(const tfl_operand *operand, uint32_t i, int64_t *forms, double *factors,
                     uint32_t *n_factors)
{
    const int64_t form[4] = {TFL_PLAIN, 0, operand->zero, operand->n_scales};

    memcpy(forms + 4 * (size_t)i, form, sizeof form);
    if (operand->n_scales > 0)
        factors[(*n_factors)++] = operand->scale[0];
}

/* Adds the operation: output 0, then the new states, which are the last inputs. */
static mpl_status add_layer(tfl_node *node, uint32_t n_in, const tfl_operand *in, uint32_t n_states)
{
    const tfl_tensor *tensor = tfl_out(node, 0);
    const tfl_operand result = {MPL_NONE,     TFL_PLAIN,    tensor->n_scales,
                                tensor->axis, tensor->zero, tensor->scale};
    int64_t forms[4 * (MOST_OPERANDS + 1)];
    double factors[MOST_OPERANDS + 1];
    uint32_t n_factors = 0;
    mpl_value v[MOST_OPERANDS], out[1 + MOST_STATES];
    char next[MOST_STATES][480];
    const char *name[1 + MOST_STATES] = {tensor->name};

    for (uint32_t i = 0; i < n_in; i++) {
        v[i] = in[i].v;
        put_form(&in[i], i, forms, factors, &n_factors);
    }
    put_form(&result, n_in, forms, factors, &n_factors);
    for (uint32_t i = 0; i < n_states; i++) {
        snprintf(next[i], sizeof next[i], "%s:next", node->g->value_name[v[n_in - n_states + i]]);
        name[1 + i] = next[i];
    }
    tfl_set(node, MPL_TEXT(to, mpl_type_name(tensor->type)));
    tfl_set(node, MPL_INTS(forms, 4 * (n_in + 1), forms));
    tfl_set(node, MPL_FLOATS(factors, n_factors, factors));
    MPL_PASS(tfl_add_all(node, node->rule->kind, n_in, v, 1 + n_states, name, out));
    return tfl_define(node, 0, out[0]);
}

/* Whether the inputs that are listed are there, one scale each at most, and those of states are
 * variables. */
static bool has_inputs(const tfl_node *node, uint32_t count, const uint8_t *which,
                       uint32_t n_states)
{
    for (uint32_t i = 0; i < count; i++) {
        const tfl_tensor *tensor = tfl_in(node, which[i]);

        if (tensor == NULL || tensor->n_scales > 1 || (i >= count - n_states && !tensor->variable))
            return false;
    }
    return tfl_out(node, 0)->n_scales <= 1;
}

/* A bias counts products of operand and a filter. */
static void scale_bias(const tfl_operand *operand, const tfl_operand *weight, tfl_operand *bias,
                       double *scale)
{
    if (operand->n_scales == 0 || weight->n_scales == 0)
        return;
    *scale = operand->scale[0] * weight->scale[0];
    *bias = (tfl_operand){bias->v, TFL_PLAIN, 1, 0, 0, scale};
}

mpl_status tfl_lower_svdf(tfl_node *node)
{
    static const uint8_t which[] = {0, 1, 2, 3, 4};
    enum { N = 5, OVER_TIME = 2, BIAS = 3, STATE = 4 };
    tfl_operand in[N];
    double scale, range[2];
    int64_t activation = tfl_activation_number(node);

    if (!has_inputs(node, N, which, 1) || (activation != 0 && !tfl_activation(activation, range)))
        return tfl_opaque(node);
    for (uint32_t i = 0; i < N; i++)
        MPL_PASS(tfl_operand_of(node, i, TFL_PLAIN, &in[i]));
    scale_bias(&in[STATE], &in[OVER_TIME], &in[BIAS], &scale);
    tfl_set_int(node, MPL_ATTR_k, tfl_int(&node->op->options, TFL_Svdf_rank));
    if (activation != 0)
        tfl_set(node, MPL_FLOATS(clamp, 2, range));
    return add_layer(node, N, in, 1);
}

/* Without peepholes, projection and normalisation, and with all four gates. */
mpl_status tfl_lower_lstm(tfl_node *node)
{
    static const uint8_t which[] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 12, 13, 14, 15, 18, 19};
    static const uint8_t absent[] = {9, 10, 11, 16, 17, 20, 21, 22, 23};
    enum { N = sizeof which, WEIGHT = 1, BIAS = 9, GATES = 4, TANH = 4 };
    const flat_table *table = &node->op->options;
    double scale[GATES], clip = tfl_float(table, TFL_Lstm_cell_clip);
    const double range[2] = {-clip, clip};
    tfl_operand in[N];

    for (size_t i = 0; i < sizeof absent; i++)
        if (tfl_in(node, absent[i]) != NULL)
            return tfl_opaque(node);
    if (!has_inputs(node, N, which, 2) || tfl_int(table, TFL_Lstm_activation) != TANH ||
        tfl_float(table, TFL_Lstm_projection_clip) != 0)
        return tfl_opaque(node);
    for (uint32_t i = 0; i < N; i++)
        MPL_PASS(tfl_operand_of(node, which[i], TFL_PLAIN, &in[i]));
    for (uint32_t i = 0; i < GATES; i++)
        scale_bias(&in[0], &in[WEIGHT + i], &in[BIAS + i], &scale[i]);
    tfl_set_int(node, MPL_ATTR_time_axis, tfl_int(table, TFL_Lstm_time_major) != 0 ? 0 : 1);
    if (clip > 0)
        tfl_set(node, MPL_FLOATS(clamp, 2, range));
    return add_layer(node, N, in, 2);
}
