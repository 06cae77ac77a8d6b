/* train.h -- memplan run --iterations: a training graph, run after run, each with the weights that
 * the one before left. */
#ifndef MPL_TRAIN_H
#define MPL_TRAIN_H

#include "harness/job/measure.h"

/* Runs the job's plan options->iterations times on pictures of digits, from options->data or drawn,
 * and prints the loss of each run; the first runs are compared with a run that shares nothing, all
 * outputs bit for bit. MPL_EINPUT: no graph that mode=train makes, one without updates, or one for
 * other data; MPL_EINVALID: outputs differ. */
mpl_status mpl_train(mpl_ctx *ctx, const mpl_options *options, const mpl_job *job,
                     const mpl_plan *plan);

#endif
