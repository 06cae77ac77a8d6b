/* ways.h -- operations that can be computed in several ways: less workspace for more time.
 *
 * A way is a number of workspace bytes and a cost; which library it is of, and what it is called,
 * is no matter here. */
#ifndef MPL_WAYS_H
#define MPL_WAYS_H

#include "graphs/problem/derive/from_graph.h"
#include "planners/planner.h"

/* Ways of operation i: begin[i] .. begin[i + 1], at least one, the cheapest first, each with fewer
 * bytes than the one before. */
typedef struct mpl_ways {
    uint32_t n_ops;
    uint32_t *begin; /* [n_ops + 1] */
    uint64_t *bytes; /* [begin[n_ops]] of workspace [byte] */
    uint64_t *cost;  /* rising; any unit that adds up */
    char (*name)[64];
} mpl_ways;

void mpl_ways_free(mpl_ctx *ctx, mpl_ways *ways);

/* One choice for all operations. */
typedef struct mpl_ways_point {
    uint64_t bound_bytes;   /* of pool 0: no plan has less [byte] */
    uint64_t planned_bytes; /* by the planner; 0: none was asked [byte] */
    uint64_t cost;          /* of all operations */
    uint32_t n_slower;      /* operations that do not have their cheapest way */
} mpl_ways_point;

/* What is to be chosen for. options: workspaces among the values; its op_workspace_bytes and
 * capacity are not looked at. */
typedef struct mpl_ways_task {
    const mpl_graph *g;
    const mpl_op *order;
    const mpl_problem_options *options;
    const mpl_ways *ways;
    const mpl_planner *planner; /* whose plans have to keep the limit; NULL: the bound has to */
} mpl_ways_task;

/* way[n_ops]: which way of each operation, from 0, so that pool 0 takes at most `limit` bytes at a
 * low cost. Beginning with the cheapest ways, the operation that costs least per byte steps down
 * among those whose workspace is in the witness of the bound, until the limit holds; then, where
 * there was a choice, each tries to step up again. Without a planner and under serial there is none
 * (a step has one workspace), and the cost is the least there is; elsewhere nothing can step up
 * alone. MPL_EINVALID: nothing keeps the limit, as the bound proves; MPL_ELIMIT: nothing was found
 * that does. Deterministic. O(all ways) problems made and planned. */
mpl_status mpl_ways_choose(mpl_ctx *ctx, const mpl_ways_task *task, uint64_t limit, uint32_t *way,
                           mpl_ways_point *found);

/* The same for the lowest limit that the least workspaces keep. */
mpl_status mpl_ways_least(mpl_ctx *ctx, const mpl_ways_task *task, uint32_t *way,
                          mpl_ways_point *found);

/* Bytes against cost: from the cheapest ways down, a point wherever the bound falls; *point is the
 * caller's (mpl_free). */
mpl_status mpl_ways_curve(mpl_ctx *ctx, const mpl_ways_task *task, mpl_ways_point **point,
                          uint32_t *n);

#endif
