/* joint.h -- order and placement chosen together; and all orders by name, this one too. */
#ifndef MPL_JOINT_H
#define MPL_JOINT_H

#include "graphs/orders/order.h"
#include "planners/planner.h"

/* An order for the least arena. mpl_order_run's live_bytes is the arena of the plan that was found
 * with it, bound_bytes what no order and placement needs less than: equal, they prove it. Under
 * parallel safety orders mean nothing: read as serial. */
extern const mpl_order_kind mpl_order_joint;

/* mpl_order_find, and "joint". */
const mpl_order_kind *mpl_any_order_find(const char *name);

#endif
