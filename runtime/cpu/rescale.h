/* rescale.h -- operators of the backend `cpu` that change between floats and 8-bit integers, or
 * work on 8-bit integers element by element. */
#ifndef MPL_RESCALE_H
#define MPL_RESCALE_H

#include "graphs/graph.h"

/* Runs one operation, with the results of its plain loops bit for bit; allocates nothing. */
typedef mpl_status mpl_rescale(mpl_ctx *ctx, const mpl_op_call *call);

/* The function for an operation, or NULL: quantize and dequantize with one scale,
 * dynamic_quantize, qelementwise of bytes, cast from i32 to f32. *how names it. */
mpl_rescale *mpl_rescale_of(const mpl_graph *g, mpl_op op, const char **how);

#endif
