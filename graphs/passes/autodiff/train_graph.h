/* train_graph.h -- a training step of any graph: which output is the loss, what is trained. */
#pragma once

#include "graphs/passes/autodiff/autodiff.h"

typedef struct mpl_train_options {
    const char *loss;              /* "OUTPUT[:cross_entropy|square|scalar]"; NULL: see below */
    const char *trainable;         /* "PATTERN,.."; NULL: see below */
    mpl_autodiff_options autodiff; /* own_loss and trained are set here */
} mpl_train_options;

/* Replaces *g by mpl_autodiff of its loss. A program becomes SSA first. What the loss does not need
 * goes; inputs stay.
 * Loss: without `loss`, softmax cross-entropy of the only floating output.
 *   cross_entropy  the mean over rows; new input `labels` (i64) has the output's dims without the
 *                  classes. These are along the axis of a softmax at the end (whose work the loss
 *                  then does; so of a log_softmax, and through reshapes), else along axis 1 of
 *                  images (four dims or more), else along the last.
 *   square         the mean over all elements of (output - targets)^2; new input `targets`.
 *   scalar         the output itself, of one element.
 * Trained: without `trainable`, floating weights and constants read as weight, bias or scale,
 * themselves or through moves of elements: operands of products, weights and biases of
 * convolutions, scales and biases of normalisations, tables of gather, slopes of prelu, and addends
 * and factors with more than one element, unless one is beyond 10,000 (a mask). With it, floating
 * weights that a shell pattern matches, and inputs named in full, which become weights. Statistics
 * of batch norm are never trained.
 * MPL_EINPUT: as mpl_autodiff; no such output, or several; a pattern without a match; an output
 * that the loss cannot be of. On failure *g may only be freed. */
mpl_status mpl_graph_train(mpl_ctx *ctx, mpl_graph **g, const mpl_train_options *options);
