/* library_priv.h -- what the types of memplan.h hold, for library.c and library_task.c. It needs
 * rooms graphs and planners, and of this one only rows and options: who links the library links no
 * backend. */
#ifndef MPL_LIBRARY_PRIV_H
#define MPL_LIBRARY_PRIV_H

#include "graphs/orders/order.h"
#include "harness/job/asked.h"
#include "harness/lib/memplan.h"

struct memplan_ctx {
    mpl_ctx ctx;
    mpl_options set; /* memplan_set; texts of `dim` are owned */
};

/* Two buffers each, as the caller named them. */
typedef struct library_pairs {
    size_t n, a_cap, b_cap;
    uint32_t *a, *b;
} library_pairs;

struct memplan_task {
    memplan_ctx *owner;
    mpl_options set; /* as they were when it was loaded, but for `dim` */
    char *text;      /* GRAPH; NULL: built */
    mpl_problem *problem;
    mpl_graph *graph;   /* NULL: a list, built, or of a plan file */
    mpl_value_map *map; /* of the graph */
    bool kept_given;    /* an order was searched for, and the one given is better */

    /* While it is built: capacities of the problem's arrays, and what becomes its order and pairs.
     */
    bool complete;
    size_t cap[7];
    library_pairs arcs;     /* a before b */
    library_pairs in_place; /* b may lie in the place of a */
};

struct memplan_plan {
    memplan_task *task;
    mpl_plan *plan;
    char *planner; /* as it was asked for; NULL: the plan came from outside */
};

#endif
