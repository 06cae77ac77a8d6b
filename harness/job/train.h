/* train.h -- memplan run --iterations: runs a training graph repeatedly, on pictures of digits
 * where it takes such. Each run starts with the weights of the run before. */
#pragma once

#include "harness/job/measure.h"

typedef struct mpl_digits {
    uint32_t n, side; /* pictures; width and height of each [pixel] */
    float *pixel;     /* [n * side * side] 0 paper, 1 ink, unless centred */
    int64_t *label;   /* [n] 0 to 9 */
} mpl_digits;

/* Reads train-images-idx3-ubyte and train-labels-idx1-ubyte, unpacked, of a folder. MPL_EINPUT:
 * missing or malformed. */
mpl_status mpl_digits_read(mpl_ctx *ctx, const char *folder, mpl_digits *out);
void mpl_digits_fini(mpl_ctx *ctx, mpl_digits *digits);

/* Runs the job's plan options->iterations times and prints the loss of each run. A graph with two
 * inputs, labels of ten classes or more and square pictures of one channel, gets digits, from
 * options->data or drawn; others get the inputs of a plain run each time. Compares all outputs of
 * the first runs, bit for bit, with a run without memory sharing. MPL_EINPUT: no loss, no updates,
 * or other data; MPL_EINVALID: outputs differ. */
mpl_status mpl_train(mpl_ctx *ctx, const mpl_options *options, const mpl_job *job,
                     const mpl_plan *plan);
