/* copy.h -- parts of a finished graph added to a new one, in the order of mpl_walk; for
 * passes.
 *
 * map[value of g] is the value of `to`, block[block of g] the block of `to`. */
#ifndef MPL_COPY_H
#define MPL_COPY_H

#include "graphs/graph.h"

/* Copies `op` with names and attributes into map; block: read only if it has blocks. */
mpl_status mpl_copy_op(mpl_ctx *ctx, const mpl_graph *g, mpl_op op, mpl_graph *to, mpl_value *map,
                       const uint32_t *block);

/* What a copy does not have from the operation; all zero: nothing. */
typedef struct mpl_copy_as {
    const char *name;            /* of the copy; NULL: the operation's */
    const char *const *out_name; /* of its outputs; NULL: the values' */
    uint32_t n_more;
    const mpl_value *more; /* [n_more] operands of the new graph, behind the others */
    bool folded;           /* as by mpl_graph_add_folded */
} mpl_copy_as;
mpl_status mpl_copy_op_as(mpl_ctx *ctx, const mpl_graph *g, mpl_op op, mpl_graph *to,
                          mpl_value *map, const uint32_t *block, const mpl_copy_as *as);

/* The attributes of an operation (MPL_NONE: none); *attr is the caller's, not its arrays. */
mpl_status mpl_copy_attrs(mpl_ctx *ctx, const mpl_graph *g, mpl_op op, uint32_t *n,
                          mpl_attr **attr);

/* An input or weight. A bound input enters as an input again, so that the new graph notes it too;
 * other constants' data moves over, g has it no more. */
mpl_status mpl_copy_value(mpl_ctx *ctx, mpl_graph *g, mpl_value v, mpl_graph *to, mpl_value *made);

/* A block is opened, with its parameters; is closed, with its results. */
mpl_status mpl_copy_open(mpl_ctx *ctx, const mpl_graph *g, uint32_t b, mpl_graph *to,
                         mpl_value *map, uint32_t *made);
mpl_status mpl_copy_close(mpl_ctx *ctx, const mpl_graph *g, uint32_t b, mpl_graph *to,
                          const mpl_value *map);

#endif
