/* handover.h -- a plan as NNC's allocation graph: the bytes that each buffer hands to the next. */
#pragma once

#include "planners/plan/plan.h"

/* A range of memory that `to` takes over from `from`. MPL_NONE: the source or the sink. */
typedef struct mpl_handover {
    mpl_buffer from, to;
    uint32_t pool;
    uint64_t offset, bytes; /* in the pool's arena [byte] */
} mpl_handover;

/* Lists all handovers of a verified plan, by (pool, offset, time); *list is the caller's. The
 * ranges that a buffer receives tile it, as do those that it hands on. Time is birth (serial) or
 * the partial order (parallel). O(n log n + sum over ranges of the buffers there). */
mpl_status mpl_handovers(mpl_ctx *ctx, const mpl_problem *p, const mpl_plan *plan,
                         mpl_handover **list, size_t *n);
