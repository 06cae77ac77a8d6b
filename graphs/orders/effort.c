/* effort.c -- counts the work of an order search against its limits. See orders_priv.h. */
#include "graphs/orders/orders_priv.h"

bool mpl_effort_spent(mpl_effort *e)
{
    if ((e->stop != NULL && *e->stop != 0) ||
        (!e->late && e->deadline_ns != INT64_MAX && mpl_clock_ns() >= e->deadline_ns))
        e->late = true;
    return e->late || e->ticks >= e->budget;
}
