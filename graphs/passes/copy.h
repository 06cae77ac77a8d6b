/* copy.h -- adds parts of a finished graph to a new one, in the order of mpl_walk; for passes.
 *
 * map[value of g] is the value of `to`, block[block of g] the block of `to`. */
#pragma once

#include "graphs/graph.h"

/* Copies `op` with names and attributes into map. Reads block only if `op` has blocks. */
mpl_status mpl_copy_op(mpl_ctx *ctx, const mpl_graph *g, mpl_op op, mpl_graph *to, mpl_value *map,
                       const uint32_t *block);

/* Replaces parts of the copied operation by others; all zero: copies it as it is. */
typedef struct mpl_copy_as {
    const char *name;            /* NULL: the operation's */
    const char *const *out_name; /* NULL: the values' names */
    uint32_t n_more;
    const mpl_value *more; /* [n_more] operands of the new graph, after the others */
    bool folded;           /* as by mpl_graph_add_folded */
    uint8_t way;           /* attribute `way`; 0: none is added */
} mpl_copy_as;
mpl_status mpl_copy_op_as(mpl_ctx *ctx, const mpl_graph *g, mpl_op op, mpl_graph *to,
                          mpl_value *map, const uint32_t *block, const mpl_copy_as *as);

/* Attributes of an operation (MPL_NONE: none), with room for one more. The caller owns *attr, but
 * not its arrays. */
mpl_status mpl_copy_attrs(mpl_ctx *ctx, const mpl_graph *g, mpl_op op, uint32_t *n,
                          mpl_attr **attr);
/* Adds attribute `way`, unless it is 0. */
void mpl_add_way(uint8_t way, uint32_t *n, mpl_attr *attr);

/* Copies an input or weight. A bound input stays an input, so that the new graph records it too.
 * Data of other constants moves; g no longer has it. */
mpl_status mpl_copy_value(mpl_ctx *ctx, mpl_graph *g, mpl_value v, mpl_graph *to, mpl_value *made);

/* Opens a block with its parameters; closes it with its results. */
mpl_status mpl_copy_open(mpl_ctx *ctx, const mpl_graph *g, uint32_t b, mpl_graph *to,
                         mpl_value *map, uint32_t *made);
mpl_status mpl_copy_close(mpl_ctx *ctx, const mpl_graph *g, uint32_t b, mpl_graph *to,
                          const mpl_value *map);

enum { MPL_REPEAT_NAME = 256 };
/* "BASESUFFIX", "BASESUFFIX2", ..: from *number (NULL: 1) on the first that is no name in either
 * graph. *number: the next one. text[MPL_REPEAT_NAME] receives and returns it. */
const char *mpl_repeat_name(const mpl_graph *g, const mpl_graph *to, const char *base,
                            const char *suffix, uint32_t *number, char *text);
