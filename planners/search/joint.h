/* joint.h -- chooses order and placement together; finds every order by name. */
#pragma once

#include "graphs/orders/order.h"
#include "planners/planner.h"

/* An order for the least arena. mpl_order_run's live_bytes is the arena of its plan; bound_bytes is
 * a lower bound over all orders and placements. If they are equal, the plan is optimal. Parallel
 * safety ignores orders, so it is read as serial. */
extern const mpl_order_kind mpl_order_joint;

/* Finds "joint" and the orders of mpl_order_find. */
const mpl_order_kind *mpl_any_order_find(const char *name);
