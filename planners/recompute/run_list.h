/* run_list.h -- a run as it is written down, views made anew where what they show was. See
 * rerun.h. */
#ifndef MPL_RUN_LIST_H
#define MPL_RUN_LIST_H

#include "planners/recompute/rerun.h"

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
