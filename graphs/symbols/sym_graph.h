/* sym_graph.h -- a graph over a range: read at several points, its dims as expressions.
 *
 * The graph is read at random points and at the corners of the range. Its operators and operands
 * must be the same at all of them. Then each dim of each value, in the order of the operations, is
 * what the operator's rule makes of its inputs' (shape_rules.h). What has no rule, inputs and
 * parameters of blocks are expressed by fit.h from the readings: in the symbols, or in the dims of
 * the operation's own inputs. Dimensions that depend on data have their bound in the IR, so their
 * expressions are those of the bound. */
#pragma once

#include "graphs/symbols/shape_rules.h"
#include "graphs/symbols/symbols.h"

typedef struct mpl_sym_graph {
    mpl_exprs *exprs;    /* borrowed */
    uint32_t n;          /* points; 0 is the one that others are compared with, drawn from all */
    int64_t *value;      /* [n * symbols] */
    mpl_graph **graph;   /* [n] */
    mpl_fit *fit;        /* over these points; knows all dims, and bytes of all values */
    uint32_t *dim_begin; /* [n_values + 1] into dim */
    mpl_expr *dim;
    mpl_expr *bytes;    /* [n_values] [byte] */
    uint32_t n_bounded; /* dims that no expression was found for: a constant, the most at any point
                         */
    char *bounded;      /* the first of these, named; NULL: none */
    uint32_t n_ruled;   /* results of operations whose dims follow by rules */
    uint32_t n_fitted;  /* those whose dims were fitted */
    uint32_t n_leaves;  /* numbers of attributes that vary with the symbols, fitted */
    char *fitted;       /* the first of n_fitted, named with its operation; NULL: none */
} mpl_sym_graph;

/* Reads and infers. `bounded`: a dim without expression becomes its most at all points; else
 * MPL_EINPUT names its operation. `also` (may be NULL): value[symbols] of one more point.
 * MPL_EINPUT: the reader's, or the graph has other operations at some point; the first that differs
 * is named. O(points * size). */
mpl_status mpl_sym_graph_new(mpl_ctx *ctx, mpl_exprs *exprs, const mpl_sym_reader *reader,
                             const int64_t *also, bool bounded, mpl_sym_graph **out);
void mpl_sym_graph_free(mpl_ctx *ctx, mpl_sym_graph *graph);
/* Hash of operators, operands, types and attributes other than integers: equal for the readings of
 * one graph at any point of a range, as a rule different for different graphs. */
uint64_t mpl_sym_structure(const mpl_graph *g);
/* MPL_EINPUT: h has other operations than g; `where` says of what. */
mpl_status mpl_sym_compare(mpl_ctx *ctx, const mpl_graph *g, const mpl_graph *h, const char *where);
