/* grad_priv.h -- what the gradients' shape rules share. */
#ifndef MPL_GRAD_PRIV_H
#define MPL_GRAD_PRIV_H

#include "graphs/ops/ops_priv.h"

/* The dims in the attribute `sizes`. MPL_EINPUT: missing, or no dims. */
mpl_status mpl_sizes_of(mpl_ctx *ctx, const mpl_graph *g, mpl_op op, mpl_shape *out);

#endif
