/* sums.h -- sums of products of 8-bit integers become the elements of qconv's or qmatmul's output,
 * as graphs/ops/quant makes them, bit for bit. */
#ifndef MPL_SUMS_H
#define MPL_SUMS_H

#include "graphs/ops/quant/quant_priv.h"
#include "runtime/cpu/loops/byte_loops.h"

enum { MPL_SUMS_TILE = 64 }; /* most channels and most pixels at once */

/* An operation that runs. Pixels of an image and its channels: of a product, rows and columns. */
typedef struct mpl_sums {
    const mpl_op_call *call;
    int64_t pixels, channels;
    bool turned; /* the output has its channels before its pixels */
    mpl_requant how;
    mpl_byte_range range;
    bool even; /* one scale and zero point for all rows, and a type that has fast loops */
    float x_scale, w_scale, y_scale; /* of the first row and channel */
    bool many_scales, has_bias;      /* by channels */
} mpl_sums;

/* What the sums of up to MPL_SUMS_TILE channels are scaled by. */
typedef struct mpl_sums_scales {
    int64_t channel, n;
    float scale[MPL_SUMS_TILE];
    double bias[MPL_SUMS_TILE];
} mpl_sums_scales;

mpl_sums mpl_sums_of(const mpl_op_call *call, int64_t pixels, int64_t channels, bool turned);
/* Of channels [channel, channel + n). *t: of other channels before, or with n 0. */
void mpl_sums_scales_get(const mpl_sums *sums, int64_t channel, int64_t n, mpl_sums_scales *scales);
/* Stores the sums of those channels for pixels [from, from + n), whose rows begin `apart` elements
 * after each other. image: first element of the image or product in the output. */
void mpl_sums_put(const mpl_sums *sums, const mpl_sums_scales *scales, const int32_t *sum,
                  int64_t apart, int64_t image, int64_t from, int64_t n);

static inline int64_t mpl_least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}
static inline int64_t mpl_most(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

#endif
