/* layout.h -- which values lie with their channels last.
 *
 * `reorder` changes how a value lies in memory, not what it is: attribute mode is "channels_last"
 * or "plain". Where input 0 of an operator that keeps layouts has its channels last, so have its
 * other images (mpl_n_images) of 4 dims, but for weights, and its result; filters are row-major,
 * whatever makes them. Only backends that choose layouts look at it; to the others a reorder is a
 * copy. Shapes and bytes are the same in either layout. */
#ifndef MPL_LAYOUT_H
#define MPL_LAYOUT_H

#include "graphs/ir/strided.h"

/* Output 0 lies as input 0 does; the other operators take and make plain values only. */
bool mpl_keeps_layout(mpl_op_kind kind);
/* How many operands of such an operation, from input 0 on, are images; the others are filters,
 * factors or numbers. */
uint32_t mpl_n_images(const mpl_graph *g, mpl_op op);
/* O(operations before it). */
bool mpl_channels_last(const mpl_graph *g, mpl_value v);
/* `box`, of the elements of `root` in row-major order (what concats along its axes take), as it
 * lies in memory: the same elements with the strides and offset of root's layout. The order of its
 * dims stays. */
mpl_strided mpl_box_laid(const mpl_graph *g, mpl_value root, const mpl_strided *box, bool last);
/* Its dims in the order in which an image with its channels last has them. */
void mpl_box_turn(mpl_strided *laid);
/* Whether its elements lie one after another in that layout. */
bool mpl_box_is_run(const mpl_strided *laid, bool last);

#endif
