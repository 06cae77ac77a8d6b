/* igraph.h -- interface to the igraph library. Replaces its error handler and maps its codes to
 * statuses. */
#pragma once

#include "graphs/core/base.h"

/* Maximum flow from node `source` to node `sink` over arcs from[i] -> to[i]. Capacities are
 * integral and sum to less than 2^53. side[n_nodes] receives 1 for nodes on the source's side of
 * one minimum cut. */
mpl_status mpl_max_flow(mpl_ctx *ctx, uint32_t n_nodes, size_t n_arcs, const uint32_t *from,
                        const uint32_t *to, const uint64_t *capacity, uint32_t source,
                        uint32_t sink, uint64_t *flow, uint8_t *side);
