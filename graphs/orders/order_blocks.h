/* order_blocks.h -- orders of graphs with control flow. Private to graphs/. */
#pragma once

#include "graphs/graph.h"
#include "graphs/problem/problem.h"

/* Orders block `block`, as g: a graph without blocks, of its direct operations. */
typedef mpl_status mpl_block_order(mpl_ctx *ctx, const mpl_graph *g, uint32_t block, void *how,
                                   mpl_op *order);

/* Orders each block by `make`, as a graph of its own, from block 0 on or nested ones first, and
 * merges them: the blocks of an operation come right before it, exit tests as early as possible. A
 * graph without blocks goes to `make`. */
mpl_status mpl_order_by_blocks(mpl_ctx *ctx, const mpl_graph *g, bool nested_first,
                               mpl_block_order *make, void *how, mpl_op *order);

/* The same by an order that needs no more than the graph. */
typedef mpl_status mpl_plain_order(mpl_ctx *ctx, const mpl_graph *g, mpl_op *order);
mpl_status mpl_order_each_block(mpl_ctx *ctx, const mpl_graph *g, mpl_plain_order *make,
                                mpl_op *order);

/* waits[op], zero before: operands that an operation makes, counted once per read; only of
 * operations in `needed` (NULL: all). */
void mpl_count_waits(const mpl_graph *g, const uint8_t *needed, uint32_t *waits);
