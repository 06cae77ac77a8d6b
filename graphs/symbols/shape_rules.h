/* shape_rules.h -- shape inference over symbols: the dims of an operation's outputs as expressions,
 * from those of its inputs, by the rule of its operator.
 *
 * The rules are those of graphs/ops, for sizes of at least 1 and graphs whose operations are right
 * at every point of the range. Numbers of attributes that vary with the symbols, such as a
 * reshape's target that a network's builder writes, are leaves: they are fitted (fit.h). */
#pragma once

#include "graphs/symbols/fit.h"
#include "graphs/graph.h"

typedef struct mpl_rule_call {
    mpl_ctx *ctx;
    mpl_exprs *exprs;
    mpl_fit *fit;
    uint32_t n_points;
    mpl_graph *const *graph;   /* [n_points] the graph at each */
    const uint32_t *dim_begin; /* [n_values + 1] into dim, which holds the inputs' */
    const mpl_expr *dim;
    const uint8_t *done; /* [n_values] whose dims are known */
    uint32_t n_hints;
    const mpl_expr *hint; /* for attributes that vary */
    uint32_t n_leaves;    /* numbers of attributes that were fitted; counted up */
} mpl_rule_call;

/* dim[rank] of output i of an operation. *known = false: the operator has no rule here (opaque,
 * quantised and training operators), or it does not hold, as an attribute that must be the same at
 * all points is not. O(dims + points). */
mpl_status mpl_rule_dims(mpl_rule_call *call, mpl_op op, uint32_t i, mpl_expr dim[MPL_MAX_RANK],
                         uint32_t *rank, bool *known);
