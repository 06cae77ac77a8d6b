/* pebble.h -- the pebble game on small graphs, solved exactly: how much time less space costs.
 *
 * A move places a pebble on a vertex all of whose predecessors have one; or, where sliding is
 * allowed, moves the pebble of one of those predecessors there (a result in place); or removes a
 * pebble. The game is won when every vertex without successors has had a pebble. Space is the most
 * pebbles at once, time the placements, slides included. */
#ifndef MPL_PEBBLE_H
#define MPL_PEBBLE_H

#include "graphs/core/base.h"

enum { MPL_PEBBLE_MOST = 16 }; /* vertices */

typedef struct mpl_dag {
    uint32_t n;
    uint32_t before[MPL_PEBBLE_MOST]; /* bit u of before[v]: an edge u -> v; u < v */
} mpl_dag;

typedef struct mpl_pebble_point {
    uint32_t space, time;
} mpl_pebble_point;

/* The least time within `space` pebbles, vertices pebbled as often as need be; MPL_NONE: it cannot
 * be won. By breadth-first search over all sets of pebbles: MPL_ELIMIT where vertices and sinks
 * together are more than 22. */
mpl_status mpl_pebble_time(mpl_ctx *ctx, const mpl_dag *dag, uint32_t space, bool sliding,
                           uint32_t *time);

/* All (space, time) of which neither can be less without the other being more, by ascending space,
 * into point[n]; their number. MPL_ELIMIT as above. */
mpl_status mpl_pebble_frontier(mpl_ctx *ctx, const mpl_dag *dag, bool sliding,
                               mpl_pebble_point *point, uint32_t *n_points);

/* The connected graphs of n vertices, each once whatever its names: codes from `after` + 1 on, the
 * next one into *dag; false: there is none. A code has a bit for each u < v, in the order (0,1),
 * (0,2), (1,2), (0,3), ..; the least of all names that ascend along edges is the graph's. n <= 6;
 * *after = -1 begins. */
bool mpl_dag_next(uint32_t n, int64_t *after, mpl_dag *dag);

#endif
