/* effort.c -- counts the work of an order search against its limits. See orders_priv.h. */
#include "graphs/orders/orders_priv.h"

bool mpl_effort_spent(mpl_effort *effort)
{
    if ((effort->stop != NULL && *effort->stop != 0) ||
        (!effort->late && effort->deadline_ns != INT64_MAX &&
         mpl_clock_ns() >= effort->deadline_ns))
        effort->late = true;
    return effort->late || effort->ticks >= effort->budget;
}
