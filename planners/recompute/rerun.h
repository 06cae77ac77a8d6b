/* rerun.h -- graphs in which operations run again instead of keeping their results. A run lists the
 * outermost operations of a graph, each at least once; a loop or branch comes with its blocks. Its
 * graph has a copy of the operation for each entry, in that order; each reader gets the latest copy
 * of a value. A repeat thus makes bit for bit what the first run made. */
#pragma once

#include "graphs/passes/copy.h"
#include "graphs/problem/derive/from_graph.h"
#include "graphs/problem/steps.h"

/* Whether `op` may stand twice, with its blocks. Not: updates, values pinned by a program's writes.
 * Batch norm in training may: its repeat (batch_norm_again) leaves the running statistics
 * unchanged. Dropout in training may: its repeat applies the mask drawn before. Neither may inside
 * of a block. */
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
 * stands twice and must not; a repeat follows the update of a weight that it reads;
 * a block updates a weight while anything runs again. O(size of the result). */
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

/* Live bytes of each step of that program. The caller owns both, after a failure, too. */
mpl_status mpl_given_live(mpl_ctx *ctx, const mpl_graph *g, const mpl_problem_options *options,
                          mpl_program **program, uint64_t **live);

/* Removes repeats, most work first, while peak live bytes stay within the budget. Leaves a run
 * beyond the budget unchanged. Never adds work. O(size * repeats). */
mpl_status mpl_rerun_thin(mpl_ctx *ctx, const mpl_graph *g, const mpl_problem_options *options,
                          uint64_t budget, uint32_t *n, mpl_op *run);

/* is_forward[n_ops]: 1: a loss needs it, or what owns it. MPL_EINPUT: no loss, or no operation
 * after it. */
mpl_status mpl_find_forward(mpl_ctx *ctx, const mpl_graph *g, uint8_t *is_forward);

/* Copies an input or weight; bare: without a constant's data. */
mpl_status mpl_repeat_source(mpl_ctx *ctx, const mpl_graph *g, mpl_value v, bool bare,
                             mpl_graph *to, mpl_value *made);

/* Copies op with its blocks under new names; map[value of g] and block[block of g] as in copy.h. */
mpl_status mpl_repeat_op(mpl_ctx *ctx, const mpl_graph *g, mpl_op op, mpl_graph *to, mpl_value *map,
                         uint32_t *block);
/* The same under the old names. */
mpl_status mpl_copy_unit(mpl_ctx *ctx, const mpl_graph *g, mpl_op op, mpl_graph *to, mpl_value *map,
                         uint32_t *block);

/* ---- units: outermost operations with their blocks ---- */

/* What each outermost operation and its blocks read from outside: operands, then captures, which
 * may be listed more than once. Nested operations have empty lists. */
typedef struct mpl_unit_reads {
    uint32_t *begin; /* [n_ops + 1] into value */
    mpl_value *value;
} mpl_unit_reads;
mpl_status mpl_unit_reads_new(mpl_ctx *ctx, const mpl_graph *g, mpl_unit_reads *out);
void mpl_unit_reads_fini(mpl_ctx *ctx, mpl_unit_reads *reads);

/* The first operation of an outermost operation's blocks, or itself; they end with itself. */
mpl_op mpl_unit_begin(const mpl_graph *g, mpl_op op);
/* Work of an outermost operation: of a loop, that of its rounds. */
uint64_t mpl_unit_work(const mpl_graph *g, mpl_op op);
/* Whether the operation or its blocks update the weight; MPL_NONE: any. */
bool mpl_unit_updates(const mpl_graph *g, mpl_op op, mpl_value weight);

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
    mpl_unit_reads reads;
    mpl_value *chain; /* scratch */
    size_t chain_cap;
} mpl_run_list;

/* Whether the outermost operation's one result is its input under other dims, where views take no
 * memory. */
static inline bool mpl_shows_input(const mpl_graph *g, const mpl_problem_options *options,
                                   mpl_op op)
{
    uint32_t n = 0;

    for (uint32_t i = g->op_out_begin[op]; i < g->op_out_begin[op + 1]; i++)
        n += g->op_out[i] != MPL_NONE;
    return options->views && g->op_block[op] == 0 &&
           (mpl_op_table[g->op_kind[op]].traits & MPL_VIEW) != 0 && n == 1;
}

/* The number of inputs that a repeat reads. Dropout's also reads the mask, never made again. */
uint32_t mpl_n_repeat_reads(const mpl_graph *g, mpl_op op);

mpl_status mpl_run_list_init(mpl_ctx *ctx, const mpl_graph *g, const mpl_problem_options *options,
                             mpl_run_list *list);
void mpl_run_list_fini(mpl_run_list *list);
/* Appends op, outermost, preceded by the views it reads whose root was made again. */
mpl_status mpl_run_list_add(mpl_run_list *list, mpl_op op);
