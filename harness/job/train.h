/* train.h -- memplan run --iterations: a training graph, run after run, each with the weights that
 * the one before left, on pictures of digits. */
#ifndef MPL_TRAIN_H
#define MPL_TRAIN_H

#include "harness/job/measure.h"

typedef struct mpl_digits {
    uint32_t n, side; /* pictures; width and height of each [pixel] */
    float *pixel;     /* [n * side * side] 0 paper, 1 ink, unless they are centred */
    int64_t *label;   /* [n] 0 to 9 */
} mpl_digits;

/* train-images-idx3-ubyte and train-labels-idx1-ubyte of a folder, unpacked. MPL_EINPUT: missing,
 * or no such files. */
mpl_status mpl_digits_read(mpl_ctx *ctx, const char *folder, mpl_digits *out);
void mpl_digits_fini(mpl_ctx *ctx, mpl_digits *digits);

/* Runs the job's plan options->iterations times on digits, from options->data or drawn, and prints
 * the loss of each run; compares all outputs of the first runs, bit for bit, with a run that shares
 * nothing. MPL_EINPUT: no graph that mode=train makes, one without updates, or one for other data;
 * MPL_EINVALID: outputs differ. */
mpl_status mpl_train(mpl_ctx *ctx, const mpl_options *options, const mpl_job *job,
                     const mpl_plan *plan);

#endif
