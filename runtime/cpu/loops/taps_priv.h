/* taps_priv.h -- the tile that taps.c and winograd.c sum in registers. Of AVX2. */
#ifndef MPL_TAPS_PRIV_H
#define MPL_TAPS_PRIV_H

#include "runtime/cpu/images.h"

enum {
    MPL_TAP_LANES = 8,
    MPL_TAP_PANEL = 16, /* channels of the result */
    MPL_TAP_BLOCK = 96, /* pixels */
};

/* A tile's share of a slice. */
typedef struct mpl_tap_part {
    const float *const *x;      /* [taps][MPL_TAP_BLOCK] pixels */
    int64_t offset;             /* of the first channel in them */
    int64_t taps, terms, apart; /* from term to term [element] */
    const float *filter;        /* [taps][terms][vectors * MPL_TAP_LANES] */
    const float *bias, *sum;    /* at the first channel, and pixel; or NULL */
    float *y;
    int64_t sum_apart, y_apart; /* [element] from pixel to pixel */
    bool begins, ends;          /* the first slice, the last */
    float low, high;
} mpl_tap_part;

/* Adds the part of so many pixels (at most 6, or 8 by one vector) by one or two vectors of
 * channels, in one group. */
void mpl_taps_add(const mpl_tap_part *p, int64_t rows, int64_t vectors);
/* n floats that are read soon. */
void mpl_taps_prefetch(const float *panel, int64_t n);

#endif
