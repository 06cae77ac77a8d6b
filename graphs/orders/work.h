/* work.h -- the work of an operation, estimated from its shapes: the cost unit of recomputation. */
#pragma once

#include "graphs/graph.h"

#define MPL_MOST_WORK (UINT64_C(1) << 62)

/* Products (convolutions, matrix products, their gradients) count multiplications and additions,
 * two for each pair of elements. Others count bytes read and written, since memory bounds their
 * speed; a view counts 0. At most MPL_MOST_WORK. O(operands). */
uint64_t mpl_op_work(const mpl_graph *g, mpl_op op);

/* How many times as much as one pass over its operands and results takes: the elements of a sliding
 * window, those that an interpolation weighs, or those that each is compared with. At least 1,
 * where no dim is 0; 1 for what mpl_op_work counts itself. */
double mpl_op_window(const mpl_graph *g, mpl_op op);

/* The work of running it, as a limit counts it: mpl_op_work times mpl_op_window, plus bytes of its
 * outputs, plus MPL_STEP_WORK. At most MPL_MOST_WORK. */
#define MPL_STEP_WORK 1024
uint64_t mpl_run_work(const mpl_graph *g, mpl_op op);

/* a + b, saturated at MPL_MOST_WORK. */
static inline uint64_t mpl_add_work(uint64_t a, uint64_t b)
{
    return mpl_min_u64(a + b, MPL_MOST_WORK);
}
