/* orders.h -- all orders of a small graph, for callers that judge by more than the peak. */
#pragma once

#include "graphs/orders/order.h"

enum { MPL_ORDER_LIST_MOST = 64 }; /* operations */

/* Tries to prove that no plan of pool 0 ends below `goal`: of no order, no choice of concats that
 * share and, with run->copy_splits, of splits that copy (serial safety). `order` is one of the
 * least live bytes in whole slots. Heeds and writes run as mpl_order_make does. */
mpl_status mpl_order_arena_holds(mpl_order_run *run, const mpl_graph *g, const mpl_op *order,
                                 uint64_t goal, bool *proved);

typedef struct mpl_order_list mpl_order_list;

/* Lists the orders of g, those near `start` (one of them) first. An order is left out if exchanging
 * operations turns it into a listed one in which no two buffers are live together that were not
 * before. So whatever can be placed in the omitted order can be placed, in no more bytes, in the
 * listed one. MPL_EINPUT: too many operations. */
mpl_status mpl_order_list_new(mpl_ctx *ctx, const mpl_graph *g, const mpl_problem_options *options,
                              const mpl_op *start, mpl_order_list **out);
/* Finds the next order whose live bytes, in whole slots, exceed `most` at no step; `most` must not
 * rise from call to call. *found false: no order is left (*ended true), or *ticks, which is
 * increased, reached `budget`. */
mpl_status mpl_order_list_next(mpl_order_list *list, uint64_t most, uint64_t budget,
                               uint64_t *ticks, mpl_op *order, bool *found, bool *ended);
void mpl_order_list_free(mpl_order_list *list);
