/* move_priv.h -- elements copied from one strided box to another; what "moved" operators are made of. */
#ifndef MPL_MOVE_PRIV_H
#define MPL_MOVE_PRIV_H

#include "graphs/ops/ops_priv.h"

/* A box of elements and its strides on both sides; strides may be 0 or negative. [element] */
typedef struct mpl_box {
    uint32_t rank;
    int64_t dim[MPL_MAX_RANK], to_stride[MPL_MAX_RANK], from_stride[MPL_MAX_RANK];
} mpl_box;

/* Copies every element of the box, `bytes` each, from `from` to `to`, which do not overlap. O(elements). */
void mpl_move(const mpl_box *box, uint32_t bytes, void *to, const void *from);

#endif
