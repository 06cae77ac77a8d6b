/* rerun.h -- graphs in which operations run again where their results are needed, instead
 * of these being kept.
 *
 * A run is a list of operations of a graph in which each stands once or more often. The graph that
 * is made of it has a copy of the operation for each time, in that order; whoever reads a value
 * gets its latest copy. So what a repeat makes is, bit for bit, what the first time made, and what
 * nobody reads until the repeat dies. */
#ifndef MPL_RERUN_H
#define MPL_RERUN_H

#include "graphs/problem/derive/from_graph.h"
#include "graphs/problem/problem.h"

/* Whether `op` may stand twice. Not: control flow, updates, what is pinned by a program's writes.
 * Batch norm in training may: the repeat (batch_norm_again) leaves the running statistics alone. So
 * may dropout in training: the repeat applies the mask that was drawn, and draws none. */
bool mpl_may_repeat(const mpl_graph *g, mpl_op op);
/* Whether a repeat makes output i again. */
bool mpl_repeat_makes(const mpl_graph *g, mpl_op op, uint32_t i);

/* What a run costs (graphs/orders/work.h). */
typedef struct mpl_rerun_facts {
    uint32_t n_again;      /* repeats, but for views */
    uint64_t forward_work; /* of the operations that the loss needs, once */
    uint64_t all_work;     /* of all operations, once */
    uint64_t extra_work;   /* of the repeats */
} mpl_rerun_facts;

/* The graph of run[n]. Outputs are the first copies, whose names stay; repeats are called
 * NAME.again, .again2, ... An update waits for the repeats that read what it changes, too. facts
 * may be NULL. MPL_EINPUT: an operation that is missing, stands before one that makes what it
 * reads, or twice and must not; a repeat behind the update of a weight that it reads; g has blocks.
 * O(size of the result). */
mpl_status mpl_rerun(mpl_ctx *ctx, const mpl_graph *g, uint32_t n, const mpl_op *run,
                     mpl_graph **out, mpl_rerun_facts *facts);
/* Takes out repeats of which nobody reads anything. O(size). */
mpl_status mpl_rerun_trim(mpl_ctx *ctx, const mpl_graph *g, uint32_t *n, mpl_op *run);
/* Peak live bytes of a run under the options, read as serial. [byte] */
mpl_status mpl_rerun_peak(mpl_ctx *ctx, const mpl_graph *g, uint32_t n, const mpl_op *run,
                          const mpl_problem_options *options, uint64_t *peak,
                          mpl_rerun_facts *facts);

/* Takes out repeats, those of the most work first, as long as peak live bytes stay within the
 * budget; a run that is beyond it stays as it is. Never adds work. O(size * repeats). */
mpl_status mpl_rerun_thin(mpl_ctx *ctx, const mpl_graph *g, const mpl_problem_options *options,
                          uint64_t budget, uint32_t *n, mpl_op *run);

/* is_forward[n_ops]: 1: a loss needs it. MPL_EINPUT: no loss, or nothing behind it. */
mpl_status mpl_find_forward(mpl_ctx *ctx, const mpl_graph *g, uint8_t *is_forward);

#endif
