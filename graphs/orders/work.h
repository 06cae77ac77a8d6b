/* work.h -- what an operation costs, as far as its shapes tell: the currency of recomputation. */
#ifndef MPL_WORK_H
#define MPL_WORK_H

#include "graphs/graph.h"

#define MPL_MOST_WORK (UINT64_C(1) << 62)

/* Multiplications and additions of products (convolutions, matrix products, their gradients: two
 * for each pair of elements), and bytes read and written of all others, which memory paces; 0 of a
 * view. At most MPL_MOST_WORK. O(operands). */
uint64_t mpl_op_work(const mpl_graph *g, mpl_op op);

/* What running it takes, as a limit counts it: mpl_op_work, times the window of what slides one,
 * bytes of its outputs, and so many for the step. At most MPL_MOST_WORK. */
#define MPL_STEP_WORK 1024
uint64_t mpl_run_work(const mpl_graph *g, mpl_op op);

/* Their sum, which stops at MPL_MOST_WORK. */
static inline uint64_t mpl_add_work(uint64_t a, uint64_t b)
{
    return mpl_min_u64(a + b, MPL_MOST_WORK);
}

#endif
