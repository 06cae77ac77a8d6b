/* library_priv.h -- the types of memplan.h, for library.c and library_task.c. They need graphs,
 * planners, and only rows and options of the harness, so that the library links no backend. */
#pragma once

#include "graphs/orders/order.h"
#include "harness/job/asked.h"
#include "harness/lib/memplan.h"

struct memplan_ctx {
    mpl_ctx ctx;
    mpl_options set; /* of memplan_set; texts of `dim` are owned */
};

/* Pairs of buffers, as the caller named them. */
typedef struct library_pairs {
    size_t n, a_cap, b_cap;
    uint32_t *a, *b;
} library_pairs;

struct memplan_task {
    memplan_ctx *owner;
    mpl_options set; /* copied when it was loaded, without `dim` */
    char *text;      /* GRAPH; NULL: built */
    mpl_problem *problem;
    mpl_graph *graph;   /* NULL: a list, built, or from a plan file */
    mpl_value_map *map; /* of the graph */
    bool kept_given;    /* the given order was better than the one searched for */

    /* While building: capacities of the problem's arrays, and its future order and pairs. */
    bool complete;
    size_t cap[7];
    library_pairs arcs;     /* a before b */
    library_pairs in_place; /* b may overwrite a in place */
};

struct memplan_plan {
    memplan_task *task;
    mpl_plan *plan;
    char *planner; /* as asked for; NULL: an external plan */
    char *text;    /* of memplan_text; NULL: not yet asked for */
};
