/* library_priv.h -- what stands behind the types of memplan.h: library.c, library_task.c. Needs
 * rooms graphs and planners, and of this one only rows, so that who links the library links no
 * backend. */
#ifndef MPL_LIBRARY_PRIV_H
#define MPL_LIBRARY_PRIV_H

#include "graphs/orders/order.h"
#include "graphs/source.h"
#include "harness/lib/memplan.h"
#include "planners/planner.h"

enum { MPL_PIN_WEIGHTS = 1, MPL_PIN_INPUTS = 2, MPL_PIN_OUTPUTS = 4 };

/* memplan_set, read. */
typedef struct library_settings {
    bool parallel, parallel_given, in_place, views;
    unsigned pin;
    unsigned pools;
    const mpl_order_kind *order;
    uint64_t capacity, budget, seed;
    double time_limit; /* [s]; 0: none */
    uint32_t n_threads;
} library_settings;

struct memplan_ctx {
    mpl_ctx ctx;
    library_settings set;
    uint32_t n_dims;
    size_t name_cap, value_cap;
    char **dim_name;
    int64_t *dim_value;
};

/* Two buffers each, as the caller named them. */
typedef struct library_pairs {
    size_t n, a_cap, b_cap;
    uint32_t *a, *b;
} library_pairs;

struct memplan_task {
    memplan_ctx *owner;
    library_settings set; /* as they were when it was loaded */
    char *text;           /* GRAPH; NULL: built */
    mpl_problem *problem;
    mpl_graph *graph;   /* NULL: a list, built, or of a plan file */
    mpl_value_map *map; /* of the graph */
    bool kept_given;    /* an order was searched for, and the one given is better */

    /* While it is built: rooms of the problem's arrays, and what becomes its order and its
     * pairs. */
    bool complete;
    size_t cap[7];
    library_pairs arcs;     /* a before b */
    library_pairs in_place; /* b may lie in the place of a */
};

struct memplan_plan {
    memplan_task *task;
    mpl_plan *plan;
    char *planner; /* as it was asked for; NULL: somebody else's */
};

void library_settings_init(library_settings *set);

#endif
