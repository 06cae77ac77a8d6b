/* orders_priv.h -- the searches over orders that graphs/orders shares among its files and tests. */
#ifndef MPL_ORDERS_PRIV_H
#define MPL_ORDERS_PRIV_H

#include "graphs/core/rng.h"
#include "graphs/orders/model.h"
#include "graphs/orders/order.h"

/* The engines and rules of the searches (order_rules.def). */
typedef enum mpl_order_rule {
#define RULE(name, about) MPL_ORDER_RULE_##name,
#include "graphs/orders/order_rules.def"
#undef RULE
    MPL_N_ORDER_RULES
} mpl_order_rule;

/* Work: operations run or tried. */
typedef struct mpl_effort {
    uint64_t ticks, budget;
    int64_t deadline_ns; /* INT64_MAX: none */
    bool late;           /* the clock ended it */
    uint32_t without;    /* bits of mpl_order_rule: what the search does without */
} mpl_effort;

static inline bool mpl_order_uses(const mpl_effort *effort, mpl_order_rule rule)
{
    return (effort->without >> rule & 1) == 0;
}

/* Whether to stop; looks at the clock now and then. */
bool mpl_effort_spent(mpl_effort *effort);

/* cut.c: no order of m has a lower peak than *bound: for every operation the least live bytes of
 * any set of operations that it can follow. order (of m) and its costs say where to look first;
 * bounds up to `known` are not looked for. Each operation is a minimum cut: O(n * flow) at most.
 * Forward models alone. */
mpl_status mpl_order_cut_bound(mpl_ctx *ctx, const mpl_order_model *m, const uint32_t *order,
                               uint64_t known, mpl_effort *effort, uint64_t *bound);

/* cut.c: the operation that costs most goes to where it costs least, and so on, as long as that may
 * help; of the sets where it does, the smallest or the largest. Replaces order and *peak by better
 * ones only. Forward models alone. */
mpl_status mpl_order_mend(mpl_ctx *ctx, const mpl_order_model *m, uint64_t floor, bool largest,
                          mpl_effort *effort, uint32_t *order, uint64_t *peak);

/* cut.c: another bound: of some operations one is the first to run, and none of them is done then.
 * Which ones, the order tells that is to be proved: it starts with the one that costs most, and
 * takes in what costs as much on the way to where others are cheap. A way on which nothing does
 * becomes the beginning of another order, which replaces order and *peak if it is better. On entry
 * *peak is that of `order`; `known` is a bound. */
mpl_status mpl_order_group_bound(mpl_ctx *ctx, const mpl_order_model *m, uint64_t known,
                                 mpl_effort *effort, uint32_t *order, uint64_t *peak,
                                 uint64_t *bound);

/* search.c: best-first over sets of operations closed under "before", each with the least peak that
 * reaches it. An order that peaks at `floor` or less is as good as any. On entry *peak is that of
 * `order`; both are replaced by better ones only. *bound: no order has less (or than floor,
 * whichever is more). *done: *bound is *peak, or floor. At most max_states sets are kept. */
mpl_status mpl_order_best_first(mpl_ctx *ctx, const mpl_order_model *m, uint64_t floor,
                                size_t max_states, mpl_effort *effort, uint32_t *order,
                                uint64_t *peak, uint64_t *bound, bool *done);

/* order_beam.c: the `width` best sets after each choice. An order that peaks at `floor` ends it.
 * Replaces order and *peak by better ones only. */
mpl_status mpl_order_beam(mpl_ctx *ctx, const mpl_order_model *m, uint64_t floor, uint32_t width,
                          mpl_effort *effort, uint32_t *order, uint64_t *peak);

/* anneal.c: `rounds` moves of one operation to another place; likewise. */
mpl_status mpl_order_anneal(mpl_ctx *ctx, const mpl_order_model *m, uint64_t floor, uint64_t seed,
                            uint64_t rounds, mpl_effort *effort, uint32_t *order, uint64_t *peak);

/* Runs what may be run without loss (closure.c): an operation that keeps within `peak` and leaves
 * no more bytes alive than there were; or one with some of those that it makes ready, if together
 * they do. Writes what it ran to ran[n]; returns how many. Live bytes are submodular on closed
 * sets: whatever an order does later, it does at no more bytes. */
uint32_t mpl_order_close(mpl_order_walk *walk, uint64_t peak, uint32_t *ran, mpl_effort *effort);

/* The orders of orders.def that search. */
mpl_status mpl_order_search_least_peak(mpl_order_run *run, const mpl_graph *g, mpl_op *order);
mpl_status mpl_order_search_beam(mpl_order_run *run, const mpl_graph *g, mpl_op *order);
mpl_status mpl_order_search_anneal(mpl_order_run *run, const mpl_graph *g, mpl_op *order);
/* Those that do not. */
mpl_status mpl_order_given(mpl_ctx *ctx, const mpl_graph *g, mpl_op *order);
mpl_status mpl_order_dfs(mpl_ctx *ctx, const mpl_graph *g, mpl_op *order);
mpl_status mpl_order_bfs(mpl_ctx *ctx, const mpl_graph *g, mpl_op *order);
mpl_status mpl_order_greedy(mpl_ctx *ctx, const mpl_graph *g, mpl_op *order);

#endif
