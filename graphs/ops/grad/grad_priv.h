/* grad_priv.h -- shared by the gradients' shape rules. */
#pragma once

#include "graphs/ops/ops_priv.h"

/* The dims in attribute `sizes`. MPL_EINPUT: missing or invalid. */
mpl_status mpl_sizes_of(mpl_ctx *ctx, const mpl_graph *g, mpl_op op, mpl_shape *out);
