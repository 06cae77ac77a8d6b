/* order.h -- orders of the operations of a graph. */
#ifndef MPL_ORDER_H
#define MPL_ORDER_H

#include "graphs/problem/derive/from_graph.h"

/* One call of an order that searches: what the caller asks, and what was found. */
typedef struct mpl_order_run {
    mpl_ctx *ctx;
    const mpl_problem_options *options; /* what counts as live; NULL: defaults */
    uint64_t seed;
    uint64_t budget_ticks; /* operations run or tried; UINT64_MAX: the order's own default */
    int64_t deadline_ns;   /* mpl_clock_ns() after which it stops; INT64_MAX: none */
    uint32_t n_params;     /* key=value pairs of the command line */
    const char *const *param_key;
    const char *const *param_value;

    /* Written. In bytes of pool 0 that are live at once, every buffer in whole multiples of the
     * alignment, an output that may overwrite an input counted with it: mpl_peak_live of the
     * order's problem, but for the rest of one last slot. */
    uint64_t live_bytes;  /* the order's peak */
    uint64_t bound_bytes; /* proved: no order has less; 0: nothing is */
    uint64_t ticks;
    bool stopped_by_clock;
    const char *method; /* what proved the bound: "cut", "search"; NULL: nothing */
} mpl_order_run;

void mpl_order_run_init(mpl_order_run *run, mpl_ctx *ctx); /* seed 1, no limits, default options */

typedef struct mpl_order_kind {
    const char *name;
    const char *about; /* one line */
    /* order[n_ops] to be written */
    mpl_status (*make)(mpl_ctx *ctx, const mpl_graph *g, mpl_op *order);
    const char *params; /* what it takes, "width=N,.."; NULL: nothing */
    /* NULL with params */
    mpl_status (*search)(mpl_order_run *run, const mpl_graph *g, mpl_op *order);
} mpl_order_kind;

/* Any order, by search where the kind searches. A graph with control flow gets an order for each
 * block, as if it stood alone (nothing is proved for the whole), the blocks of an operation right
 * before it, and exit tests as early as can be; `given` stays as it is. MPL_EINPUT: a parameter
 * that the kind has not. */
mpl_status mpl_order_make(mpl_order_run *run, const mpl_order_kind *kind, const mpl_graph *g,
                          mpl_op *order);
/* The same with nothing asked for. */
mpl_status mpl_order_of(mpl_ctx *ctx, const mpl_graph *g, const mpl_order_kind *kind,
                        mpl_op *order);

/* A topological order drawn from the seed: at each step, one of the ready operations. O(size). */
mpl_status mpl_order_random(mpl_ctx *ctx, const mpl_graph *g, uint64_t seed, mpl_op *order);
/* Draws the order of the outermost operations anew; what stands in blocks goes along with its
 * owner, in the order that it has. */
mpl_status mpl_order_shuffle(mpl_ctx *ctx, const mpl_graph *g, uint64_t seed, mpl_op *order);

extern const mpl_order_kind *const mpl_orders[];        /* NULL-terminated, made from orders.def */
const mpl_order_kind *mpl_order_find(const char *name); /* NULL: there is none */

#endif
