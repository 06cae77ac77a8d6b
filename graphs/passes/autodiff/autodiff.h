/* autodiff.h -- training graphs: forward, loss, backward, updates. */
#pragma once

#include "graphs/graph.h"

typedef enum mpl_optimiser {
    MPL_OPTIMISER_NONE,
    MPL_OPTIMISER_SGD,
    MPL_OPTIMISER_MOMENTUM,
    MPL_OPTIMISER_ADAGRAD,
    MPL_OPTIMISER_ADAM,
    MPL_OPTIMISER_ADAMW /* Adam with decay=0.01 */
} mpl_optimiser;

/* Where the gradients of weights go. */
typedef enum mpl_gradients {
    MPL_GRADIENTS_BY_UPDATE, /* outputs if no update reads them; else temporaries */
    MPL_GRADIENTS_PINNED,    /* outputs */
    MPL_GRADIENTS_PLANNED    /* temporaries; an update must read each */
} mpl_gradients;

typedef struct mpl_autodiff_options {
    const char *name; /* of the new graph; NULL: that of g */
    mpl_optimiser update;
    mpl_gradients gradients;
    bool chained;           /* add parts of a gradient one by one; false: by one sum */
    bool apart;             /* products: one gradient operation per operand; false: one for all */
    double rate;            /* of the updates; 0: the operator's default */
    bool own_loss;          /* the one output is the loss, a single number */
    double dropout;         /* fraction of values that dropout drops; 0: one half */
    bool frozen;            /* batch norm keeps its statistics, and dropout drops nothing */
    const uint8_t *trained; /* [n_values of g] weights to train; NULL: the rule below */
} mpl_autodiff_options;

/* Makes the graph of one training step of g. Forward: the operations of g in their order; batch
 * norm uses the batch's moments, and dropout drops, unless frozen.
 * Loss: with own_loss, the output of g. Else softmax cross-entropy of the logits against a new
 * input `labels` (i64, one a row). The logits are the output of g or, if that is a softmax, its
 * input.
 * Backward: reverse mode, for all floating weights that the loss depends on. Only what depends on
 * such weights is differentiated. Without own_loss, a weight with data is trained if it has more
 * than one element; with own_loss, it is not. `trained` overrules both. No gradient goes through an
 * `identity` with stop=1. Loops: a loop that the loss depends on keeps a tape, with one row a round
 * of each carried value as the round began. A backward loop recomputes each round's values from
 * there. A branch's values are recomputed in its backward branch. A loop that may end early has as
 * many rows as it can have rounds, and counts its rounds. Running statistics of a batch norm inside
 * a block are carried through rounds and branches and set afterwards: each forward run moves them,
 * recomputed rounds do not. Outputs: the loss; pinned gradients in the order of the weights; what
 * updates leave: weights, optimiser state (weights that begin as zeros), running statistics.
 * MPL_EINPUT: a loop without a limit of its rounds (trips=N); a loop that may end early and whose
 * scans are trained; more than one output; an operator without a gradient in ir/ops.def; no weight
 * to train; gradients that would not be read. O(weights * size). */
mpl_status mpl_autodiff(mpl_ctx *ctx, const mpl_graph *g, const mpl_autodiff_options *options,
                        mpl_graph **out);
