/* walk.h -- a graph as an eager program would call it: operation by operation on a tape, loops
 * round by round, one branch of each case. */
#pragma once

#include "runtime/exec.h"
#include "runtime/tape/tape.h"

typedef struct mpl_walker mpl_walker;

/* A program for `g`, in `order`. Makes the weights, with the contents that options say. tape, g and
 * options outlive it. MPL_EINPUT: blocks nest too deeply. */
mpl_status mpl_walker_new(mpl_ctx *ctx, mpl_tape *tape, const mpl_graph *g, const mpl_op *order,
                          const mpl_exec_options *options, mpl_walker **out);
/* Releases what is left, the weights included. Before the tape is freed. */
void mpl_walker_free(mpl_ctx *ctx, mpl_walker *walker);

/* Gives updated weights their initial contents. */
mpl_status mpl_walker_renew(mpl_walker *walker);
/* One step: calls all operations, reads each output i into at(arg, i), releases everything, ends
 * the step. Data of input i: input[i]. MPL_ELIMIT: it exceeded options->work_limit. */
mpl_status mpl_walker_step(mpl_walker *walker, void *const *input,
                           void *(*at)(void *arg, uint32_t i), void *arg);
