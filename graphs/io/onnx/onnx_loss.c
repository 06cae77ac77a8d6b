/* onnx_loss.c -- NegativeLogLikelihoodLoss and SoftmaxCrossEntropyLoss, forward, by gathers and
 * sums. Source: ONNX, docs/Operators.md. */
#include "graphs/io/onnx/onnx_priv.h"

/* Labels with those to be ignored as class 0; *ignored marks them, MPL_NONE: no class is. */
static mpl_status known_labels(onnx_node *node, mpl_value label, mpl_value *known,
                               mpl_value *ignored)
{
    mpl_type type = (mpl_type)node->r->g->value_type[label];
    mpl_value zero, ignore;

    *known = label, *ignored = MPL_NONE;
    if (onnx_attr(node, "ignore_index") == NULL)
        return MPL_OK;
    MPL_PASS(onnx_scalar(node, type, 0, "none", &zero));
    MPL_PASS(
        onnx_scalar(node, type, (double)onnx_attr_int(node, "ignore_index", 0), "ignore", &ignore));
    MPL_PASS(onnx_step(node, MPL_OP_equal, "ignored", 2, (mpl_value[]){label, ignore}, 0, NULL,
                       ignored));
    return onnx_step(node, MPL_OP_where, "known", 3, (mpl_value[]){*ignored, zero, label}, 0, NULL,
                     known);
}

/* The weight of each label; MPL_NONE: all are 1. */
static mpl_status label_weights(onnx_node *node, mpl_value logs, mpl_value known, mpl_value ignored,
                                mpl_value *out)
{
    mpl_type type = (mpl_type)node->r->g->value_type[logs];
    mpl_value zero, one;

    *out = MPL_NONE;
    if (onnx_in(node, 2) != MPL_NONE)
        MPL_PASS(onnx_step(node, MPL_OP_gather, "weight", 2, (mpl_value[]){node->in[2], known}, 1,
                           &MPL_INT(axis, 0), out));
    if (ignored == MPL_NONE)
        return MPL_OK;
    MPL_PASS(onnx_scalar(node, type, 0, "nothing", &zero));
    one = *out;
    if (one == MPL_NONE)
        MPL_PASS(onnx_scalar(node, type, 1, "one", &one));
    return onnx_step(node, MPL_OP_where, "weight", 3, (mpl_value[]){ignored, zero, one}, 0, NULL,
                     out);
}

/* Output 0 from the losses of all labels, weighted already. */
static mpl_status reduce_losses(onnx_node *node, mpl_value loss, mpl_value weight)
{
    const mpl_attr drop = MPL_INT(keepdims, 0);
    mpl_value sums[2];
    mpl_op_kind kind = onnx_attr_is(node, "reduction", "none")  ? MPL_OP_identity
                       : onnx_attr_is(node, "reduction", "sum") ? MPL_OP_reduce_sum
                                                                : MPL_OP_reduce_mean;

    if (onnx_attr(node, "reduction") != NULL && kind == MPL_OP_reduce_mean &&
        !onnx_attr_is(node, "reduction", "mean"))
        return ONNX_REFUSE(node, "reduction is none of none, sum, mean");
    node->n_out = 1; /* the second output is made */
    if (kind == MPL_OP_reduce_mean && weight != MPL_NONE) {
        MPL_PASS(onnx_step(node, MPL_OP_reduce_sum, "sum", 1, &loss, 1, &drop, &sums[0]));
        MPL_PASS(onnx_step(node, MPL_OP_reduce_sum, "weights", 1, &weight, 1, &drop, &sums[1]));
        return onnx_finish(node, MPL_OP_div, 2, sums);
    }
    if (kind != MPL_OP_identity)
        onnx_set(node, drop);
    return onnx_finish(node, kind, 1, &loss);
}

static mpl_status lower_likelihood(onnx_node *node, mpl_value logs)
{
    const mpl_graph *g = node->r->g;
    mpl_value label = onnx_in(node, 1), known, ignored, weight, picked, loss;

    if (g->value_shape[logs].rank != g->value_shape[label].rank + 1 ||
        g->value_shape[logs].rank < 2)
        return ONNX_REFUSE(node, "it has scores of %u dims for labels of %u; one more is needed",
                           g->value_shape[logs].rank, g->value_shape[label].rank);
    MPL_PASS(known_labels(node, label, &known, &ignored));
    MPL_PASS(label_weights(node, logs, known, ignored, &weight));
    MPL_PASS(onnx_step(node, MPL_OP_unsqueeze, "column", 1, &known, 1,
                       &MPL_INTS(axes, 1, ((int64_t[]){1})), &picked));
    MPL_PASS(onnx_step(node, MPL_OP_gather_elements, "picked", 2, (mpl_value[]){logs, picked}, 1,
                       &MPL_INT(axis, 1), &picked));
    MPL_PASS(onnx_step(node, MPL_OP_squeeze, "row", 1, &picked, 1,
                       &MPL_INTS(axes, 1, ((int64_t[]){1})), &picked));
    MPL_PASS(onnx_step(node, MPL_OP_neg, "loss", 1, &picked, 0, NULL, &loss));
    if (weight != MPL_NONE)
        MPL_PASS(onnx_step(node, MPL_OP_mul, "weighted", 2, (mpl_value[]){loss, weight}, 0, NULL,
                           &loss));
    return reduce_losses(node, loss, weight);
}

mpl_status onnx_lower_likelihood(onnx_node *node)
{
    if (onnx_in(node, 0) == MPL_NONE || onnx_in(node, 1) == MPL_NONE)
        return ONNX_REFUSE(node, "it needs scores and labels");
    return lower_likelihood(node, node->in[0]);
}

/* Output 1, if wanted, is the logarithm of the probabilities. */
mpl_status onnx_lower_cross_entropy(onnx_node *node)
{
    uint32_t n_out = node->n_out;
    mpl_value logs;

    if (onnx_in(node, 0) == MPL_NONE || onnx_in(node, 1) == MPL_NONE)
        return ONNX_REFUSE(node, "it needs scores and labels");
    if (n_out > 2)
        return ONNX_REFUSE(node, "it has %u outputs; at most 2 are defined", n_out);
    MPL_PASS(onnx_step_named(node, MPL_OP_log_softmax, "logs", n_out > 1 ? node->out_name[1] : NULL,
                             1, node->in, 1, &MPL_INT(axis, 1), &logs));
    MPL_PASS(lower_likelihood(node, logs));
    node->n_out = n_out;
    if (n_out > 1)
        node->out[1] = logs;
    return MPL_OK;
}
