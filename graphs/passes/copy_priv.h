/* copy_priv.h -- parts of a finished graph added to a new one, in the order of mpl_walk; for passes.
 *
 * map[value of g] is the value of `to`, block[block of g] the block of `to`. */
#ifndef MPL_COPY_PRIV_H
#define MPL_COPY_PRIV_H

#include "graphs/graph.h"

/* Operation `op` with its names and attributes; map receives its outputs. */
mpl_status mpl_copy_op(mpl_ctx *ctx, const mpl_graph *g, mpl_op op, mpl_graph *to, mpl_value *map,
                       const uint32_t *block);

/* An input or weight. A bound input enters as an input again, so that the new graph notes it too; other constants' data
 * moves over, g has it no more. */
mpl_status mpl_copy_value(mpl_ctx *ctx, mpl_graph *g, mpl_value v, mpl_graph *to, mpl_value *made);

/* A block is opened, with its parameters; is closed, with its results. */
mpl_status mpl_copy_open(mpl_ctx *ctx, const mpl_graph *g, uint32_t b, mpl_graph *to, mpl_value *map,
                         uint32_t *made);
mpl_status mpl_copy_close(mpl_ctx *ctx, const mpl_graph *g, uint32_t b, mpl_graph *to, const mpl_value *map);

#endif
