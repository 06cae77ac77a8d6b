/* plan_choices.h -- the order of a plan's graph, what its concats and splits share, and its
 * streams, in a plan file: what was chosen and no option names. */
#pragma once

#include "graphs/orders/op_streams.h"

/* Fields as in mpl_least. All three are NULL, or none is. Owned. */
typedef struct mpl_plan_choices {
    mpl_op *order;   /* [n_ops] */
    uint8_t *shared; /* [n_ops] concats: 1: the operands lie in the result; MPL_SHARE_BOXES: as
                      * boxes of it */
    uint8_t *copied; /* [n_ops] splits and slices: 1: the pieces are copies */
} mpl_plan_choices;

/* Adds `op_order`, `shared`, `boxes` (those of `shared` that are, if any) and `copied` to the
 * fields of a plan file. Replaces *fields_json, the text of an object. Does nothing without
 * choices. */
mpl_status mpl_plan_add_choices(mpl_ctx *ctx, uint32_t n_ops, const mpl_plan_choices *choices,
                                char **fields_json);
/* Reads them from the fields of plan file `path` (or NULL) for a graph of n_ops operations; all
 * NULL if the file has none. MPL_EINPUT: no permutation, an id out of range or out of turn. Whether
 * the graph allows the order is left to mpl_problem_from_graph. */
mpl_status mpl_plan_read_choices(mpl_ctx *ctx, const char *path, const char *fields_json,
                                 uint32_t n_ops, mpl_plan_choices *out);
/* Adds `streams` (NULL: none): how many there are, the rule, and the stream of each operation. */
mpl_status mpl_plan_add_streams(mpl_ctx *ctx, const mpl_streams *streams, char **fields_json);
/* Reads them for a graph; *out = NULL if the file has none. MPL_EINPUT: they do not cover the
 * operations, there is no such rule or stream, or a block is apart from its owner. */
mpl_status mpl_plan_read_streams(mpl_ctx *ctx, const char *path, const char *fields_json,
                                 const mpl_graph *g, mpl_streams **out);
void mpl_plan_choices_fini(mpl_ctx *ctx, mpl_plan_choices *choices);
