/* orders_priv.h -- the searches over orders, shared by the files and tests of graphs/orders. */
#pragma once

#include "graphs/core/rng.h"
#include "graphs/orders/model/model.h"
#include "graphs/orders/order.h"

/* Engines and rules of the searches (order_rules.def). */
typedef enum mpl_order_rule {
#define RULE(name, about) MPL_ORDER_RULE_##name,
#include "graphs/orders/order_rules.def"
#undef RULE
    MPL_N_ORDER_RULES
} mpl_order_rule;

/* Work: operations run or tried. */
typedef struct mpl_effort {
    uint64_t ticks, budget;
    int64_t deadline_ns;     /* INT64_MAX: none */
    const _Atomic int *stop; /* nonzero: stop; or NULL */
    bool late;               /* the deadline has passed */
    uint32_t without;        /* bits of mpl_order_rule to leave out */
} mpl_effort;

static inline bool mpl_order_uses(const mpl_effort *effort, mpl_order_rule rule)
{
    return (effort->without >> rule & 1) == 0;
}

/* Whether to stop; reads the clock now and then. */
bool mpl_effort_spent(mpl_effort *effort);

/* cut.c: a bound: no order of model has a peak below *bound. For each operation a minimum cut gives
 * the least live bytes of any set that it can follow. `order` (of model) and its costs decide which
 * operations come first; bounds up to `known` are skipped. O(n * flow). Forward models only. */
mpl_status mpl_order_cut_bound(mpl_ctx *ctx, const mpl_order_model *model, const uint32_t *order,
                               uint64_t known, mpl_effort *effort, uint64_t *bound);

/* cut.c: tries to prove that no plan of any order ends below `goal` (m: of a graph). Live bytes
 * count whole slots, while an arena ends where the buffer on top ends: it is proved for each buffer
 * that may be on top while an operation costs that much. O(operations tried * buffers * flow). */
mpl_status mpl_order_arena_bound(mpl_ctx *ctx, const mpl_order_model *model, const uint32_t *order,
                                 uint64_t goal, mpl_effort *effort, bool *proved);

/* cut.c: repeatedly moves the costliest operation to a set where it costs least (the smallest or
 * largest such set), while that may help. Only improves order and *peak. Forward models only. */
mpl_status mpl_order_mend(mpl_ctx *ctx, const mpl_order_model *model, uint64_t floor, bool largest,
                          mpl_effort *effort, uint32_t *order, uint64_t *peak);

/* cut.c: a bound from a group of operations: one of them runs first, and none of the group is done
 * then. The group starts with the costliest operation of `order`. It then takes in operations that
 * cost as much on the way to sets where members are cheap. If no operation on such a way costs as
 * much, the way becomes the prefix of another order; it replaces order and *peak if it is better.
 * On entry *peak is that of `order`; `known` is a bound. */
mpl_status mpl_order_group_bound(mpl_ctx *ctx, const mpl_order_model *model, uint64_t known,
                                 mpl_effort *effort, uint32_t *order, uint64_t *peak,
                                 uint64_t *bound);

/* search.c: best-first search over closed sets of operations, each with the least peak that reaches
 * it. A peak of at most `floor` ends the search. On entry *peak is that of `order`; only improves
 * both. *bound is at least floor; above floor it is proved that no order has a lower peak. *done:
 * *peak equals *bound or is at most floor. At most max_states sets. */
mpl_status mpl_order_best_first(mpl_ctx *ctx, const mpl_order_model *model, uint64_t floor,
                                size_t max_states, mpl_effort *effort, uint32_t *order,
                                uint64_t *peak, uint64_t *bound, bool *done);

/* order_beam.c: keeps the `width` best sets after each choice. A peak at `floor` ends it. Only
 * improves order and *peak. */
mpl_status mpl_order_beam(mpl_ctx *ctx, const mpl_order_model *model, uint64_t floor,
                          uint32_t width, mpl_effort *effort, uint32_t *order, uint64_t *peak);

/* anneal.c: `rounds` moves of one operation. Only improves order and *peak. */
mpl_status mpl_order_anneal(mpl_ctx *ctx, const mpl_order_model *model, uint64_t floor,
                            uint64_t seed, uint64_t rounds, mpl_effort *effort, uint32_t *order,
                            uint64_t *peak);

/* closure.c: runs what may run without loss: an operation that keeps within `peak` and leaves no
 * more live bytes than before, alone or with some of those that it makes ready. Writes what it ran
 * to ran[n]; returns the number. No later step costs more, since live bytes are submodular. */
uint32_t mpl_order_close(mpl_order_walk *walk, uint64_t peak, uint32_t *ran, mpl_effort *effort);

/* least_peak.c: the peak of an order's problem, in whole slots, with its concats decided by bounds:
 * shared[n_ops]. */
mpl_status mpl_order_live(mpl_ctx *ctx, const mpl_graph *g, const mpl_problem_options *options,
                          const mpl_op *order, uint8_t *shared, uint64_t *live);

/* least_peak.c: searches for an order of model, made of g, with the least peak; writes the run but
 * for its scope. left_out: bits of mpl_order_rule. */
mpl_status mpl_order_search_model(mpl_order_run *run, uint32_t left_out,
                                  const mpl_order_model *model, const mpl_graph *g, mpl_op *order);

/* The same for a graph without control flow; writes all of the run. */
mpl_status mpl_order_search_flat(mpl_order_run *run, const mpl_graph *g, uint32_t left_out,
                                 mpl_op *order);

/* Orders of orders.def that search. */
mpl_status mpl_order_search_least_peak(mpl_order_run *run, const mpl_graph *g, mpl_op *order);
mpl_status mpl_order_search_beam(mpl_order_run *run, const mpl_graph *g, mpl_op *order);
mpl_status mpl_order_search_anneal(mpl_order_run *run, const mpl_graph *g, mpl_op *order);
/* Orders of orders.def without a search. */
mpl_status mpl_order_given(mpl_ctx *ctx, const mpl_graph *g, mpl_op *order);
mpl_status mpl_order_dfs(mpl_ctx *ctx, const mpl_graph *g, mpl_op *order);
mpl_status mpl_order_bfs(mpl_ctx *ctx, const mpl_graph *g, mpl_op *order);
mpl_status mpl_order_greedy(mpl_ctx *ctx, const mpl_graph *g, mpl_op *order);
