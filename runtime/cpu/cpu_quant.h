/* cpu_quant.h -- convolutions and products of integers on the backend `cpu`.
 *
 * With VNNI, oneDNN makes exact sums of u8 or i8 by i8, as i32, in the workspace; our loops scale
 * and round them (sums.h). Without it oneDNN's sums saturate, and what remains runs by cpu_words.h.
 * Results are those of the plain loops of graphs/ops/quant bit for bit. */
#ifndef MPL_CPU_QUANT_H
#define MPL_CPU_QUANT_H

#include "graphs/graph.h"

#include <dnnl.h>

typedef struct mpl_cpu_quant mpl_cpu_quant;

/* Prepares qconv or qmatmul of 8-bit integers. *out is NULL for others, and where sums of 32 bits
 * might overflow. *how: valid until mpl_cpu_quant_free. MPL_EMEM. */
mpl_status mpl_cpu_quant_new(mpl_ctx *ctx, dnnl_engine_t engine, const mpl_graph *g, mpl_op op,
                             mpl_cpu_quant **out, uint64_t *workspace_bytes, const char **how);
void mpl_cpu_quant_free(mpl_ctx *ctx, mpl_cpu_quant *quant); /* NULL is allowed */
/* MPL_EUNAVAIL: oneDNN fails. */
mpl_status mpl_cpu_quant_run(mpl_ctx *ctx, dnnl_stream_t stream, mpl_cpu_quant *quant,
                             const mpl_op_call *call, uint32_t n_threads);
/* Bytes of weights in another layout, kept after the first run. */
uint64_t mpl_cpu_quant_packed_bytes(const mpl_cpu_quant *quant);

#endif
