/* layout.h -- which values are stored with channels last.
 *
 * `reorder` changes the memory layout of a value, not its contents; attribute mode is
 * "channels_last" or "plain". If input 0 of a layout-preserving operator has channels last, so have
 * its result and its other images of 4 dims (mpl_n_images), except weights. Filters are always
 * row-major. Only backends that choose layouts use this; for others a reorder is a copy. Shapes and
 * bytes are equal in both layouts. */
#pragma once

#include "graphs/ir/strided.h"

/* Output 0 has the layout of input 0. Other operators take and make plain values only. */
bool mpl_keeps_layout(mpl_op_kind kind);
/* Number of leading operands of such an operation that are images. The rest are filters, factors or
 * scalars. */
uint32_t mpl_n_images(const mpl_graph *g, mpl_op op);
/* O(operations before it). */
bool mpl_channels_last(const mpl_graph *g, mpl_value v);
/* Converts `box`, which addresses elements of `root` in row-major order, to root's memory layout:
 * same elements and order of dims, with the layout's strides and offset. */
mpl_strided mpl_box_laid(const mpl_graph *g, mpl_value root, const mpl_strided *box, bool last);
/* Permutes the dims into channels-last order. */
void mpl_box_turn(mpl_strided *laid);
/* Whether the elements are contiguous in that layout. */
bool mpl_box_is_run(const mpl_strided *laid, bool last);
