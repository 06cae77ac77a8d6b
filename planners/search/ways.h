/* ways.h -- implementations of an operation that trade time for workspace. A way is a number of
 * workspace bytes and a cost; its library and name do not matter here. */
#pragma once

#include "graphs/problem/derive/from_graph.h"
#include "planners/planner.h"

/* Ways of operation i: begin[i] .. begin[i + 1], at least one, the cheapest first, each with fewer
 * bytes than the one before. */
typedef struct mpl_ways {
    uint32_t n_ops;
    uint32_t *begin; /* [n_ops + 1] */
    uint64_t *bytes; /* [begin[n_ops]] of workspace [byte] */
    uint64_t *cost;  /* rising; any additive unit */
    char (*name)[64];
} mpl_ways;

void mpl_ways_free(mpl_ctx *ctx, mpl_ways *ways);

/* One choice of ways for all operations. */
typedef struct mpl_ways_point {
    uint64_t bound_bytes;   /* lower bound of pool 0 [byte] */
    uint64_t planned_bytes; /* by the planner; 0: no planner [byte] */
    uint64_t cost;          /* of all operations */
    uint32_t n_slower;      /* operations without their cheapest way */
} mpl_ways_point;

/* The input of a choice. options: workspaces among the values; ignores op_workspace_bytes,
 * capacity. */
typedef struct mpl_ways_task {
    const mpl_graph *g;
    const mpl_op *order;
    const mpl_problem_options *options;
    const mpl_ways *ways;
    const mpl_planner *planner; /* its plans must keep the limit; NULL: the bound must */
} mpl_ways_task;

/* Chooses way[n_ops], from 0, so that pool 0 takes at most `limit` bytes at a low cost. It starts
 * from the cheapest ways. Until the limit holds, the operation with the cheapest step per byte
 * steps down, among those whose workspace is in the witness of the bound. Then, where there was a
 * choice, each operation tries to step up again. Without a planner and under serial there is no
 * choice (a step has one workspace), and the cost is minimal; elsewhere no operation can step up
 * alone. MPL_EINVALID: the bound proves that nothing keeps the limit; MPL_ELIMIT: no choice was
 * found. Deterministic. O(all ways) problems made and planned. */
mpl_status mpl_ways_choose(mpl_ctx *ctx, const mpl_ways_task *task, uint64_t limit, uint32_t *way,
                           mpl_ways_point *found);

/* The same for the lowest limit that the least workspaces keep. */
mpl_status mpl_ways_least(mpl_ctx *ctx, const mpl_ways_task *task, uint32_t *way,
                          mpl_ways_point *found);

/* Bytes against cost: from the cheapest ways down, a point wherever the bound falls. *point is the
 * caller's (mpl_free). */
mpl_status mpl_ways_curve(mpl_ctx *ctx, const mpl_ways_task *task, mpl_ways_point **point,
                          uint32_t *n);
