/* least.h -- the least arena in which a graph can run: its order, what concats and splits share,
 * in-place pairs and placement are chosen together. */
#pragma once

#include "graphs/orders/order.h"
#include "planners/plan/plan.h"

/* A plan together with the choices that made its problem. */
typedef struct mpl_least {
    mpl_op *order;        /* [n_ops] */
    uint8_t *shared;      /* [n_ops] concats: 1: the operands lie in the result */
    uint8_t *copied;      /* [n_ops] splits: 1: the pieces are copies */
    mpl_problem *problem; /* mpl_problem_from_graph with these three */
    mpl_value_map *map;
    mpl_plan *plan; /* of problem; its claim and bound are about this problem alone */
    /* Proved: no order, no choice of sharing, no in-place pairs and no placement give a pool 0 of
     * fewer bytes. The plan is optimal over all of them if it is as low. [byte] */
    uint64_t bound_bytes;
    const char *method; /* how the bound was proved: "cut", "search", "orders", "antichain" */
    const char *scope;  /* over what: "all orders and shared concats", .. (order.h) */
    bool stopped_by_clock;
    bool stopped_by_caller; /* the progress callback said so */
    uint64_t ticks;
} mpl_least;

/* Told now and then, often enough for Ctrl-C: the best plan so far (UINT64_MAX: none) and the bound
 * (0: none). Returns whether to go on; if not, the search ends with the best plan that it has, as
 * at the deadline. */
typedef bool mpl_least_progress(void *arg, uint64_t planned_bytes, uint64_t bound_bytes);

/* Searches under run->options (NULL: defaults; concat_shared and split_copied are ignored; concat,
 * views and in_place say what is free), run->seed, run->budget_ticks, run->deadline_ns. With
 * `parallel`, the order is free, as every order is safe; with `op_stream`, that within the streams
 * is, and every operation stays on its stream. The plan is never above that of the given order with
 * its concats decided by mpl_concat_decide. With control flow the bound is over all orders of every
 * block; concats and splits are copies. `progress` may be NULL. */
mpl_status mpl_least_new(mpl_order_run *run, const mpl_graph *g, mpl_least_progress *progress,
                         void *arg, mpl_least **out);
/* The same; splits and slices copy only if copy_splits. The run's parameters ticks and rounds (of
 * moves, where not all orders are listed) limit it. */
mpl_status mpl_least_search(mpl_order_run *run, const mpl_graph *g, bool copy_splits,
                            mpl_least_progress *progress, void *arg, mpl_least **out);
void mpl_least_free(mpl_ctx *ctx, mpl_least *least);
