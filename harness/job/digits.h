/* digits.h -- pictures of digits to train with: MNIST's files, or drawn ones. */
#ifndef MPL_DIGITS_H
#define MPL_DIGITS_H

#include "graphs/core/base.h"

typedef struct mpl_digits {
    uint32_t n, side; /* pictures; width and height of each [pixel] */
    float *pixel;     /* [n * side * side] 0 paper, 1 ink, unless they are centred */
    int64_t *label;   /* [n] 0 to 9 */
} mpl_digits;

/* train-images-idx3-ubyte and train-labels-idx1-ubyte of a folder, unpacked. MPL_EINPUT: missing,
 * or no such files. */
mpl_status mpl_digits_read(mpl_ctx *ctx, const char *folder, mpl_digits *out);
/* n digits as a pocket calculator shows them, about the middle, of varying ink, with noise; by the
 * seed alone. side >= 8. */
mpl_status mpl_digits_draw(mpl_ctx *ctx, uint32_t n, uint32_t side, uint64_t seed, mpl_digits *out);
void mpl_digits_fini(mpl_ctx *ctx, mpl_digits *digits);

/* Shifts and scales all pixels alike, so that their mean is 0 and their variance 1: networks learn
 * faster from such inputs. */
void mpl_digits_centre(mpl_digits *digits);

#endif
