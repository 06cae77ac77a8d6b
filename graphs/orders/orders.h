/* orders.h -- all orders of a small graph, one after the other, for those who judge orders by more
 * than their peak. */
#ifndef MPL_ORDERS_H
#define MPL_ORDERS_H

#include "graphs/problem/derive/from_graph.h"
#include "graphs/problem/problem.h"

enum { MPL_ORDER_LIST_MOST = 64 }; /* operations */

typedef struct mpl_order_list mpl_order_list;

/* The orders of g, those near `start` (one of them) first. Left out are orders that differ from one
 * that is listed by operations that change places, such that no two buffers live at once in the
 * latter which do not in the former: whatever can be placed in an order that is left out can be
 * placed, with no more bytes, in one that is listed. MPL_EINPUT: too many operations. */
mpl_status mpl_order_list_new(mpl_ctx *ctx, const mpl_graph *g, const mpl_problem_options *options,
                              const mpl_op *start, mpl_order_list **out);
/* The next order whose live bytes, in whole slots, are `most` at no step passed; `most` must not
 * rise from call to call. *found false: there is none, or *ticks, which is added to, reached
 * `budget`; *ended tells the two apart. */
mpl_status mpl_order_list_next(mpl_order_list *list, uint64_t most, uint64_t budget,
                               uint64_t *ticks, mpl_op *order, bool *found, bool *ended);
void mpl_order_list_free(mpl_order_list *list);

#endif
