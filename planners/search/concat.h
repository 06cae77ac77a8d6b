/* concat.h -- --concat=auto by exact plans, where there are few choices and they are small. */
#ifndef MPL_CONCAT_H
#define MPL_CONCAT_H

#include "graphs/problem/derive/concats.h"
#include "planners/planner.h"

/* How it went. */
typedef struct mpl_concat_found {
    mpl_concat_by by;
    uint32_t n, n_shared; /* concats that can share, and that do */
    uint32_t n_planned;   /* choices that were planned */
    uint64_t ticks;
} mpl_concat_found;

/* Which concats share under `options`, whose concat is MPL_CONCAT_AUTO: shared[n_ops], for
 * options->concat_shared. The choice whose best plan needs the fewest bytes of pool 0, whatever its
 * capacity; of as many, the one that copies least. Choices are planned by `exact` in the order of
 * their bounds, until no bound is below the best plan. Where that is more work than SMALL and TICKS
 * of concat.c allow, the bounds decide as in mpl_problem_from_graph. The same on every machine. */
mpl_status mpl_concat_decide(mpl_ctx *ctx, const mpl_graph *g, const mpl_op *order,
                             const mpl_problem_options *options, uint8_t *shared,
                             mpl_concat_found *found);

#endif
