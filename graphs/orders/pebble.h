/* pebble.h -- the pebble game on small graphs, solved exactly: how much time less space costs.
 *
 * A move places a pebble on a vertex whose predecessors all have one; or, where sliding is allowed,
 * moves a predecessor's pebble there (a result in place); or removes a pebble. The game is won once
 * every sink has had one. Space is the most pebbles at once; time counts placements and slides. */
#pragma once

#include "graphs/core/base.h"

enum { MPL_PEBBLE_MOST = 16 }; /* vertices */

typedef struct mpl_dag {
    uint32_t n;
    uint32_t before[MPL_PEBBLE_MOST]; /* bit u of before[v]: an edge u -> v; u < v */
} mpl_dag;

typedef struct mpl_pebble_point {
    uint32_t space, time;
} mpl_pebble_point;

/* The least time within `space` pebbles; vertices may be pebbled repeatedly. MPL_NONE: it cannot be
 * won. Breadth-first search over all sets of pebbles. MPL_ELIMIT: vertices plus sinks exceed 22. */
mpl_status mpl_pebble_time(mpl_ctx *ctx, const mpl_dag *dag, uint32_t space, bool sliding,
                           uint32_t *time);

/* Writes the Pareto-optimal pairs to point[n], by space; returns their number. MPL_ELIMIT. */
mpl_status mpl_pebble_frontier(mpl_ctx *ctx, const mpl_dag *dag, bool sliding,
                               mpl_pebble_point *point, uint32_t *n_points);

/* Enumerates the connected graphs of n <= 6 vertices, each once up to renaming, by codes from
 * `after` + 1 on; *after = -1 begins. Writes the next one to *dag; false: none is left. A code has
 * a bit for each u < v, in the order (0,1), (0,2), (1,2), (0,3), ..; a graph has the least code of
 * all names that ascend along edges. */
bool mpl_dag_next(uint32_t n, int64_t *after, mpl_dag *dag);
