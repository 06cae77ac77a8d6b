/* move_strided_priv.h -- boxes of elements as attributes: what access, assign, view and fused share
 * with ir/views.c. */
#ifndef MPL_OPS_STRIDED_PRIV_H
#define MPL_OPS_STRIDED_PRIV_H

#include "graphs/ir/strided.h"
#include "graphs/ops/move/move_priv.h"

/* Whether a box is given by `index`. */
bool mpl_has_index(const mpl_graph *g, mpl_op op);
/* The box that `index`, or dims, strides and offset take of the elements of `in`. MPL_EINPUT: none,
 * or it reaches outside. */
mpl_status mpl_strided_of(mpl_ctx *ctx, const mpl_graph *g, mpl_op op, const mpl_shape *in,
                          mpl_strided *out);
/* MPL_EINPUT when a box reaches outside of `in`; `what` names it. */
mpl_status mpl_strided_check(mpl_ctx *ctx, const char *what, const mpl_strided *box,
                             const mpl_shape *in);

#endif
