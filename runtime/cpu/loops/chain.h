/* chain.h -- element-wise work of the backend `cpu`: chains of operations over strided boxes of
 * f32, one piece at a time.
 *
 * `fused`, `access` and `assign` are chains, and so is any single element-wise operation that
 * oneDNN lacks or in which it loses NaNs. A piece of at most 512 elements of each operand stays in
 * the nearest cache while all operations run on it; a contiguous one is read and written in place.
 * Threads receive equal runs of pieces. Elements do not depend on each other, so neither pieces nor
 * threads change a result. */
#ifndef MPL_CHAIN_H
#define MPL_CHAIN_H

#include "graphs/graph.h"
#include "graphs/ops/matrix/conv.h"

typedef struct mpl_chain mpl_chain;

/* Prepares an operation. stride: as in prepare_strided of backend.h, or NULL. last: images are
 * channels-last. *out is NULL if it is no chain, or not of f32 (access and assign: of another
 * element size). Otherwise *how (may be NULL) names the implementation. MPL_EMEM. */
mpl_status mpl_chain_new(mpl_ctx *ctx, const mpl_graph *g, mpl_op op, const int64_t *const *stride,
                         bool last, mpl_chain **out, const char **how);
void mpl_chain_free(mpl_ctx *ctx, mpl_chain *chain); /* NULL is allowed */

/* Runs it on at most n_threads of oneDNN's threads; allocates nothing. */
void mpl_chain_run(const mpl_chain *chain, const mpl_op_call *call, uint32_t n_threads);

/* Clips n elements of y to the activation's range. Keeps NaNs; oneDNN does not. */
void mpl_chain_activate(mpl_activation activation, float *y, int64_t n, uint32_t n_threads);

#endif
