/* concats.h -- between from_graph.c, which makes problems, and concats.c, which decides of concats. Private to graphs/analysis. */
#ifndef MPL_ANALYSIS_CONCATS_H
#define MPL_ANALYSIS_CONCATS_H

#include "graphs/problem/problem.h"

/* As mpl_problem_from_graph, with the operands of the concats `shared` (all of which can share; NULL: of none) inside their
 * results. */
mpl_status mpl_problem_build(mpl_ctx *ctx, const mpl_graph *g, const mpl_op *order,
                             const mpl_problem_options *options, const uint8_t *shared, mpl_problem **problem,
                             mpl_value_map **map);

#endif
