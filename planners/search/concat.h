/* concat.h -- --concat=auto by exact plans, where the choices are few and small. */
#pragma once

#include "graphs/problem/derive/concats.h"
#include "planners/planner.h"

/* The result of a decision. */
typedef struct mpl_concat_found {
    mpl_concat_by by;
    uint32_t n, n_shared; /* concats that can share, and that do */
    uint32_t n_planned;   /* choices planned */
    uint64_t ticks;
} mpl_concat_found;

/* Chooses which concats share under `options`, whose concat is MPL_CONCAT_AUTO: shared[n_ops], for
 * options->concat_shared. The choice has the least best plan of pool 0, whatever its capacity; ties
 * copy least. `exact` plans choices in the order of their bounds until no bound is below the best
 * plan. Above the limits SMALL and TICKS of concat.c, the bounds decide as in
 * mpl_problem_from_graph. Deterministic on every machine. */
mpl_status mpl_concat_decide(mpl_ctx *ctx, const mpl_graph *g, const mpl_op *order,
                             const mpl_problem_options *options, uint8_t *shared,
                             mpl_concat_found *found);
