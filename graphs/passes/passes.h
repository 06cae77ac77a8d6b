/* passes.h -- what makes a graph from a graph, and folding, which readers use while they build one. */
#ifndef MPL_PASSES_H
#define MPL_PASSES_H

#include "graphs/graph.h"

/* mpl_graph_add_op, but that an operation of constants alone is computed at once, and its results become constants.
 * A constant that is one element for all stays so through element-wise operations and those that only move elements.
 * Kept as an operation: what has MPL_NO_FOLD, needs more than 256 MiB for operands and results, or takes too
 * long (products of large matrices). MPL_EINPUT as mpl_graph_add_op, or where the loops refuse an index; the
 * graph may hold a part of the results then. */
mpl_status mpl_graph_add_folded(mpl_ctx *ctx, mpl_graph *g, mpl_op_kind kind, const char *name, uint32_t n_in,
                                const mpl_value *in, uint32_t n_attr, const mpl_attr *attr, uint32_t n_out,
                                const char *const *out_name, mpl_value *out);

/* Replaces *g (outputs named, not finished) by a finished graph without the operations and constants that no output
 * depends on. Inputs stay, bound ones too. Order, names and constants' data are kept; the data moves over, it
 * is not copied. *g is left whole on failure, but for constants that moved: free it. O(size). */
mpl_status mpl_graph_prune(mpl_ctx *ctx, mpl_graph **g);

#endif
