/* layout.h -- how the elements of values lie in memory.
 *
 * `reorder` changes the memory layout of a value, not its contents; attribute mode names it. If
 * input 0 of a layout-preserving operator has its channels last or in blocks, so have its result
 * and its other images of 4 dims (mpl_n_images), except weights. Filters are always row-major. Only
 * backends that choose layouts use this; for others a reorder is a copy. Shapes and bytes are equal
 * in all layouts: channels lie in blocks only where their number is a multiple of a block's, so
 * nothing is padded, and a run of whole blocks takes the same bytes as in the plain layout. */
#pragma once

#include "graphs/ir/strided.h"

typedef enum mpl_layout {
    MPL_PLAIN,   /* row-major */
    MPL_LAST,    /* "channels_last": (n, high, wide, channels) */
    MPL_BLOCKED, /* "blocked8": (n, channels / 8, high, wide, 8), for vectors of 8 floats */
    MPL_N_LAYOUTS
} mpl_layout;

enum { MPL_BLOCK = 8 }; /* channels of a block */

/* The mode of reorders to a layout; mpl_layout_named: the layout of a mode, or MPL_N_LAYOUTS. */
const char *mpl_layout_name(mpl_layout layout);
mpl_layout mpl_layout_named(const char *mode);
/* Whether an image of that shape can lie so. */
bool mpl_layout_takes(mpl_layout layout, const mpl_shape *image);
/* Output 0 has the layout of input 0, unless the operation turns it. Other operators take and make
 * plain values only. */
bool mpl_keeps_layout(mpl_op_kind kind);
/* Whether op is a convolution that reads a plain image and makes one with its channels last:
 * attribute mode names its result's layout, as it names a reorder's. */
bool mpl_turns_layout(const mpl_graph *g, mpl_op op);
/* Number of leading operands of such an operation that are images. The rest are filters, factors or
 * scalars. */
uint32_t mpl_n_images(const mpl_graph *g, mpl_op op);
/* O(operations before it). */
mpl_layout mpl_layout_of(const mpl_graph *g, mpl_value v);
bool mpl_channels_last(const mpl_graph *g, mpl_value v);
/* Converts `box`, which addresses elements of `root` in row-major order, to root's memory layout:
 * same elements and order of dims, with the layout's strides and offset. */
mpl_strided mpl_box_laid(const mpl_graph *g, mpl_value root, const mpl_strided *box, bool last);
/* Permutes the dims into channels-last order. */
void mpl_box_turn(mpl_strided *laid);
/* Whether the elements are contiguous in that layout. */
bool mpl_box_is_run(const mpl_strided *laid, bool last);
