/* move_strided_priv.h -- boxes of elements in attributes, for access, assign, view, fused and
 * graphs/build/views.c. */
#pragma once

#include "graphs/ir/strided.h"
#include "graphs/ops/move/move_priv.h"

/* Whether the box is given by `index`. */
bool mpl_has_index(const mpl_graph *g, mpl_op op);
/* The box of elements of `in` given by `index`, or by dims, strides and offset. MPL_EINPUT: no box,
 * or it exceeds `in`. */
mpl_status mpl_strided_of(mpl_ctx *ctx, const mpl_graph *g, mpl_op op, const mpl_shape *in,
                          mpl_strided *out);
/* MPL_EINPUT if the box exceeds `in`; `what` is its name in the message. */
mpl_status mpl_strided_check(mpl_ctx *ctx, const char *what, const mpl_strided *box,
                             const mpl_shape *in);
