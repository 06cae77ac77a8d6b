/* panels.h -- products of f32 by a constant matrix, which is packed once into panels of 16 columns
 * and read from them in order. oneDNN 2 packs it anew in each call, which takes longer than the
 * product where that has few rows. */
#ifndef MPL_PANELS_H
#define MPL_PANELS_H

#include "graphs/graph.h"

typedef struct mpl_panels mpl_panels;

/* Prepares gemm (gemm_act, gemm_sum) or matmul by a constant matrix, with five rows or more, on a
 * processor with AVX2. *out is NULL for others. Within rounding of the plain
 * loops. MPL_EMEM. */
mpl_status mpl_panels_new(mpl_ctx *ctx, const mpl_graph *g, mpl_op op, mpl_panels **out,
                          const char **how);
void mpl_panels_free(mpl_ctx *ctx, mpl_panels *panels); /* NULL is allowed */
void mpl_panels_run(mpl_panels *p, const mpl_op_call *call, uint32_t n_threads);
/* Bytes of the packed matrix. */
uint64_t mpl_panels_packed_bytes(const mpl_panels *panels);

#endif
