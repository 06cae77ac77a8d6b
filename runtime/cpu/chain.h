/* chain.h -- element-wise work of the backend `cpu`: chains of operations over strided boxes of
 * f32, a piece at a time.
 *
 * `fused`, `access` and `assign` are chains, and so is any one element-wise operation that oneDNN
 * lacks, or loses a NaN in. A piece of at most 512 elements of each operand lies in the nearest
 * cache while all operations are done to it; one that lies in a row in memory is read and written
 * where it is. The pieces are dealt out to the threads in equal runs. Elements do not depend on
 * each other, so neither pieces nor threads change a result. */
#ifndef MPL_CHAIN_H
#define MPL_CHAIN_H

#include "graphs/graph.h"
#include "graphs/ops/matrix/conv.h"

typedef struct mpl_chain mpl_chain;

/* Makes an operation ready; stride as prepare_strided of backend.h has it, or NULL; last: images
 * have their channels last. *out is NULL where it is no chain, or not of f32 (access and assign: of
 * another size of elements); else *how (may be NULL) says what computes it. MPL_EMEM. */
mpl_status mpl_chain_new(mpl_ctx *ctx, const mpl_graph *g, mpl_op op, const int64_t *const *stride,
                         bool last, mpl_chain **out, const char **how);
void mpl_chain_free(mpl_ctx *ctx, mpl_chain *chain); /* NULL is allowed */

/* Runs it on at most so many threads, those of oneDNN; takes no memory. */
void mpl_chain_run(const mpl_chain *chain, const mpl_op_call *call, uint32_t n_threads);

/* n elements of y within what the activation lets through, a NaN as it is: oneDNN would make a
 * number of it. */
void mpl_chain_activate(mpl_activation activation, float *y, int64_t n, uint32_t n_threads);

#endif
