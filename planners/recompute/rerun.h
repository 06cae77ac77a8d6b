/* rerun.h -- graphs in which operations run again instead of keeping their results. A run lists the
 * operations of a graph, each at least once. Its graph has a copy of the operation for each entry,
 * in that order; each reader gets the latest copy of a value. A repeat thus makes bit for bit what
 * the first run made. */
#ifndef MPL_RERUN_H
#define MPL_RERUN_H

#include "graphs/problem/derive/from_graph.h"
#include "graphs/problem/problem.h"

/* Whether `op` may stand twice. Not: control flow, updates, values pinned by a program's writes.
 * Batch norm in training may: its repeat (batch_norm_again) leaves the running statistics
 * unchanged. Dropout in training may: its repeat applies the mask drawn before. */
bool mpl_may_repeat(const mpl_graph *g, mpl_op op);
/* Whether a repeat makes output i again. */
bool mpl_repeat_makes(const mpl_graph *g, mpl_op op, uint32_t i);

/* The cost of a run (graphs/orders/work.h). */
typedef struct mpl_rerun_facts {
    uint32_t n_again;      /* repeats, views excluded */
    uint64_t forward_work; /* operations that the loss needs, once each */
    uint64_t all_work;     /* all operations, once each */
    uint64_t extra_work;   /* of the repeats */
} mpl_rerun_facts;

/* Makes the graph of run[n]. Outputs are the first copies, which keep their names; repeats are
 * called NAME.again, .again2, ... An update also waits for the repeats that read what it changes.
 * facts may be NULL. MPL_EINPUT: an operation is missing, stands before the maker of its input, or
 * stands twice and must not; a repeat follows the update of a weight that it reads; g has blocks.
 * O(size of the result). */
mpl_status mpl_rerun(mpl_ctx *ctx, const mpl_graph *g, uint32_t n, const mpl_op *run,
                     mpl_graph **out, mpl_rerun_facts *facts);
/* Removes repeats whose results are not read. O(size). */
mpl_status mpl_rerun_trim(mpl_ctx *ctx, const mpl_graph *g, uint32_t *n, mpl_op *run);
/* Peak live bytes of a run under the options, read as serial. [byte] */
mpl_status mpl_rerun_peak(mpl_ctx *ctx, const mpl_graph *g, uint32_t n, const mpl_op *run,
                          const mpl_problem_options *options, uint64_t *peak,
                          mpl_rerun_facts *facts);
/* Peak live bytes of g in its own order under the options, read as serial. [byte] */
mpl_status mpl_given_peak(mpl_ctx *ctx, const mpl_graph *g, const mpl_problem_options *options,
                          uint64_t *peak);

/* Removes repeats, most work first, while peak live bytes stay within the budget. Leaves a run
 * beyond the budget unchanged. Never adds work. O(size * repeats). */
mpl_status mpl_rerun_thin(mpl_ctx *ctx, const mpl_graph *g, const mpl_problem_options *options,
                          uint64_t budget, uint32_t *n, mpl_op *run);

/* is_forward[n_ops]: 1: a loss needs it, or what owns it. MPL_EINPUT: no loss, or no operation
 * after it. */
mpl_status mpl_find_forward(mpl_ctx *ctx, const mpl_graph *g, uint8_t *is_forward);

enum { MPL_REPEAT_NAME = 256 };
/* "BASESUFFIX", "BASESUFFIX2", ..: from *number (NULL: 1) on the first that is no name in either
 * graph. *number: the next one. text[MPL_REPEAT_NAME] receives and returns it. */
const char *mpl_repeat_name(const mpl_graph *g, const mpl_graph *to, const char *base,
                            const char *suffix, uint32_t *number, char *text);
/* Copies an input or weight; bare: without a constant's data. */
mpl_status mpl_repeat_source(mpl_ctx *ctx, const mpl_graph *g, mpl_value v, bool bare,
                             mpl_graph *to, mpl_value *made);

/* ---- a run under construction: views are made again after what they show ---- */

typedef struct mpl_run_list {
    mpl_ctx *ctx;
    const mpl_graph *g;
    uint32_t n;
    size_t cap;
    mpl_op *run;       /* [n] */
    mpl_value *root;   /* [n_values] the value it is a view of, or itself */
    uint32_t *version; /* [n_values] of a root: times made */
    uint32_t *shown;   /* [n_values] of a view: version of the root it shows */
    uint8_t *ran;      /* [n_ops] */
    mpl_value *chain;  /* scratch */
    size_t chain_cap;
} mpl_run_list;

/* Whether the operation's one result is its input under other dims, where views take no memory. */
static inline bool mpl_shows_input(const mpl_graph *g, const mpl_problem_options *options,
                                   mpl_op op)
{
    uint32_t n = 0;

    for (uint32_t i = g->op_out_begin[op]; i < g->op_out_begin[op + 1]; i++)
        n += g->op_out[i] != MPL_NONE;
    return options->views && (mpl_op_table[g->op_kind[op]].traits & MPL_VIEW) != 0 && n == 1;
}

/* The number of inputs that a repeat reads. Dropout's also reads the mask, never made again. */
uint32_t mpl_n_repeat_reads(const mpl_graph *g, mpl_op op);

mpl_status mpl_run_list_init(mpl_ctx *ctx, const mpl_graph *g, const mpl_problem_options *options,
                             mpl_run_list *list);
void mpl_run_list_fini(mpl_run_list *list);
/* Appends op, preceded by the views it reads whose root was made again. */
mpl_status mpl_run_list_add(mpl_run_list *list, mpl_op op);

#endif
