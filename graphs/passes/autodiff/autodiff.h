/* autodiff.h -- training graphs: forward, loss, backward, updates. */
#ifndef MPL_AUTODIFF_H
#define MPL_AUTODIFF_H

#include "graphs/graph.h"

typedef enum mpl_optimiser {
    MPL_OPTIMISER_NONE,
    MPL_OPTIMISER_SGD,
    MPL_OPTIMISER_MOMENTUM,
    MPL_OPTIMISER_ADAGRAD,
    MPL_OPTIMISER_ADAM
} mpl_optimiser;

/* Where the gradients of weights go. */
typedef enum mpl_gradients {
    MPL_GRADIENTS_BY_UPDATE, /* outputs, where no update reads them; else temporaries */
    MPL_GRADIENTS_PINNED,    /* outputs */
    MPL_GRADIENTS_PLANNED    /* temporaries, which an update must read */
} mpl_gradients;

typedef struct mpl_autodiff_options {
    const char *name; /* of the new graph; NULL: the old one's */
    mpl_optimiser update;
    mpl_gradients gradients;
    bool chained;   /* parts of a gradient are added one by one; false: by one sum */
    bool apart;     /* products: one gradient operation an operand; false: one for all */
    double rate;    /* of the updates; 0: the operator's default */
    bool own_loss;  /* the one output is the loss, a single number */
    double dropout; /* part of the values that dropout drops; 0: one half */
} mpl_autodiff_options;

/* The graph that trains g once: its operations in their order, but that batch norm takes the
 * batch's moments and dropout drops; unless own_loss, softmax cross-entropy of the logits, which
 * are the output of g or, where that is a softmax, what it reads, against a new input `labels`
 * (i64, one a row); the gradients of all floating weights that the loss depends on, by reverse
 * mode, only what depends on such weights being differentiated; the updates at the end. A weight
 * that has data is trained when it has more than one element, and not own_loss. No gradient goes
 * through an `identity` with stop=1. A loop that the loss depends on keeps on a tape what each
 * round began with, one row a round of each carried value, and is gone through backwards by a loop
 * that makes each round's values again from there; a branch's are made again in its backward
 * branch. A loop that may end early, whose tape has as many rows as there can be rounds, counts its
 * rounds. Running statistics of a batch norm inside a block are carried from round to round and out
 * of the branch that ran, and set when that is done: they move with each time that it runs, in the
 * order of the runs, while rounds that are made again leave them alone. Outputs: the loss,
 * gradients that are pinned, in the order of the weights, and what updates leave: weights, state of
 * the optimiser (weights that begin as zeros), running statistics. MPL_EINPUT: a loop without a
 * limit of its rounds (trips=N), or that may end early and whose scans are trained; more than one
 * output, an operator without a gradient in ir/ops.def, no weight to train, gradients that nobody
 * would read. O(weights * size). */
mpl_status mpl_autodiff(mpl_ctx *ctx, const mpl_graph *g, const mpl_autodiff_options *options,
                        mpl_graph **out);

#endif
