/* words.h -- exact products of 8-bit integers that were widened to words of 16 bits: two products
 * and their sum take one instruction, and a sum of 32 bits holds MPL_WORDS_TERMS of them. Weights
 * may stay bytes, half as many to read, which are widened as they are read. */
#ifndef MPL_WORDS_H
#define MPL_WORDS_H

#include <stdbool.h>
#include <stdint.h>

enum {
    MPL_WORDS_PANEL = 16,   /* filters that are computed at once */
    MPL_WORDS_PIXELS = 48,  /* pixels at once, at most */
    MPL_WORDS_SLACK = 32,   /* words that may be read after the last pixel's */
    MPL_WORDS_TERMS = 33025 /* 2^31 / 255^2 */
};

/* The sums of n pixels for n_panels * MPL_WORDS_PANEL filters. A pixel's terms are n_taps runs of
 * `run` words, an even number; each run begins `tap` words after at[i]. */
typedef struct mpl_word_tile {
    const int16_t *const *at;
    int64_t n, n_panels, n_taps, run;
    const int64_t *tap;
    /* [panel][tap][run / 2][MPL_WORDS_PANEL][2]; of channels on their own: [panel][taps, in
     * pairs][MPL_WORDS_PANEL][2], a term a tap. */
    const int16_t *filter;
    const int8_t *narrow; /* of products: the filter as bytes, in place of it; or NULL */
    int32_t *sum;         /* rows of pixels */
    int64_t apart;
} mpl_word_tile;

typedef struct mpl_word_loops {
    const char *how;
    void (*products)(const mpl_word_tile *t);
    /* Each filter reads a channel of its own, panel after panel: depthwise. */
    void (*channels)(const mpl_word_tile *t);
    /* y = x - zero */
    void (*widen)(int16_t *y, const uint8_t *x, bool is_signed, int16_t zero, int64_t n);
} mpl_word_loops;

/* Those of the widest vectors on this processor; `plain`: those of any. */
const mpl_word_loops *mpl_word_loops_here(bool plain);

#endif
