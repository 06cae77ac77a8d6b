/* live_sets.h -- which values and buffers are needed at the same time: sets around each operation,
 * and the interference graph. */
#pragma once

#include "harness/job/job.h"

/* Prints, for each outermost operation of the job's order, the values that are live before it and
 * after it: live-in = uses + (live-out - definitions), live-out = the live-in of what follows, as
 * data flow analysis has it (the sets of PaddlePaddle's memory optimisation transpiler). A loop or
 * branch is one operation, which uses what its blocks capture. Weights are live throughout and
 * not listed; outputs are live to the end. O(operations * values). */
mpl_status mpl_live_sets_show(mpl_ctx *ctx, const mpl_graph *g, const mpl_op *order);

/* Writes the interference graph: a node a buffer, an edge two buffers that conflict. As DOT if the
 * path ends in .dot or .gv, else as CSV: a line `a,b,a_bytes,b_bytes` an edge. O(n^2). */
mpl_status mpl_interference_write(mpl_ctx *ctx, const mpl_problem *p, const char *path);
