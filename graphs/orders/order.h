/* order.h -- orders of the operations of a graph. */
#pragma once

#include "graphs/problem/derive/from_graph.h"

/* One call of an order that searches: its inputs and results. */
typedef struct mpl_order_run {
    mpl_ctx *ctx;
    const mpl_problem_options *options; /* what counts as live; NULL: defaults */
    uint64_t seed;
    uint64_t budget_ticks; /* operations run or tried; UINT64_MAX: the order's own default */
    int64_t deadline_ns;   /* mpl_clock_ns() at which it stops; INT64_MAX: none */
    uint32_t n_params;     /* key=value pairs of the command line */
    const char *const *param_key;
    const char *const *param_value;
    bool copy_splits; /* the bound holds for every choice of splits and slices that copy, too */
    const _Atomic int *stop; /* nonzero: stop as at the deadline; or NULL */

    /* Results, in live bytes of pool 0. Each buffer counts as whole multiples of the alignment; an
     * output that may overwrite an input counts with it. Equals mpl_peak_live of the order's
     * problem, but for the padding of one last slot. */
    uint64_t live_bytes;  /* the order's peak, with concats as mpl_problem_from_graph decides */
    uint64_t bound_bytes; /* proved: nothing of `scope` has less; 0: nothing proved */
    const char *scope;    /* "all orders", "all orders of every block", ..; NULL: no bound */
    uint64_t ticks;
    bool stopped_by_clock;
    const char *method; /* how the bound was proved: "cut", "search"; NULL: none */
} mpl_order_run;

mpl_order_run mpl_order_run_default(mpl_ctx *ctx); /* seed 1, no limits, default options */

typedef struct mpl_order_kind {
    const char *name;
    const char *about; /* one line */
    /* Writes order[n_ops]. */
    mpl_status (*make)(mpl_ctx *ctx, const mpl_graph *g, mpl_op *order);
    const char *params; /* its parameters, "width=N,.."; NULL: none */
    /* NULL if and only if params is NULL. */
    mpl_status (*search)(mpl_order_run *run, const mpl_graph *g, mpl_op *order);
} mpl_order_kind;

/* Makes an order, by search where the kind searches. With control flow each block is ordered by
 * itself; a search proves its bound over all orders of every block. Blocks come right before their
 * owner, exit tests as early as possible; `given` is unchanged. MPL_EINPUT: a parameter that the
 * kind does not have. */
mpl_status mpl_order_make(mpl_order_run *run, const mpl_order_kind *kind, const mpl_graph *g,
                          mpl_op *order);
/* As mpl_order_make, with default arguments. */
mpl_status mpl_order_of(mpl_ctx *ctx, const mpl_graph *g, const mpl_order_kind *kind,
                        mpl_op *order);

/* A random topological order: each step draws one of the ready operations. O(size). */
mpl_status mpl_order_random(mpl_ctx *ctx, const mpl_graph *g, uint64_t seed, mpl_op *order);
/* Reorders the outermost operations at random; blocks move with their owner, unchanged. */
mpl_status mpl_order_shuffle(mpl_ctx *ctx, const mpl_graph *g, uint64_t seed, mpl_op *order);

extern const mpl_order_kind *const mpl_orders[];        /* NULL-terminated, made from orders.def */
const mpl_order_kind *mpl_order_find(const char *name); /* NULL: there is none */
