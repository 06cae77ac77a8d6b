/* handover.h -- a plan as NNC's allocation graph: which buffer hands which bytes to which. */
#ifndef MPL_HANDOVER_H
#define MPL_HANDOVER_H

#include "planners/plan/plan.h"

/* A range of memory that `to` takes when `from` is done with it. MPL_NONE: the source, the sink. */
typedef struct mpl_handover {
    mpl_buffer from, to;
    uint32_t pool;
    uint64_t offset, bytes; /* in the pool's arena [byte] */
} mpl_handover;

/* All of them for a verified plan of any planner, by (pool, offset, time); into *list, the
 * caller's. The ranges that a buffer takes tile it, and so do those that it hands on. Serial: in
 * order of birth; parallel: in the partial order. O(n log n + sum over ranges of the buffers that
 * lie there). */
mpl_status mpl_handovers(mpl_ctx *ctx, const mpl_problem *p, const mpl_plan *plan,
                         mpl_handover **list, size_t *n);

#endif
