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

/* ---- a run as it is written down: views made anew where what they show was ---- */

typedef struct mpl_run_list {
    mpl_ctx *ctx;
    const mpl_graph *g;
    uint32_t n;
    size_t cap;
    mpl_op *run;       /* [n] */
    mpl_value *root;   /* [n_values] what it is a view of, or itself */
    uint32_t *version; /* [n_values] of a root: how often it was made */
    uint32_t *shown;   /* [n_values] of a view: the version that it was made of */
    uint8_t *ran;      /* [n_ops] */
    mpl_value *chain;  /* scratch */
    size_t chain_cap;
} mpl_run_list;

/* An operation whose one result is its input under other dims, where views take no memory. */
static inline bool mpl_shows_input(const mpl_graph *g, const mpl_problem_options *options,
                                   mpl_op op)
{
    uint32_t n = 0;

    for (uint32_t i = g->op_out_begin[op]; i < g->op_out_begin[op + 1]; i++)
        n += g->op_out[i] != MPL_NONE;
    return options->views && (mpl_op_table[g->op_kind[op]].traits & MPL_VIEW) != 0 && n == 1;
}

/* How many of its inputs a repeat reads; dropout's reads the mask, too, which no repeat makes. */
uint32_t mpl_n_repeat_reads(const mpl_graph *g, mpl_op op);

mpl_status mpl_run_list_init(mpl_ctx *ctx, const mpl_graph *g, const mpl_problem_options *options,
                             mpl_run_list *list);
void mpl_run_list_fini(mpl_run_list *list);
/* Appends op, and before it the views that it reads, where what they show was made again. */
mpl_status mpl_run_list_add(mpl_run_list *list, mpl_op op);

#endif
