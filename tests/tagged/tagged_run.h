/* tagged_run.h -- what a plan of a graph with loops and branches does to bytes that carry tags, in
 * all executions. */
#ifndef MPL_TAGGED_RUN_H
#define MPL_TAGGED_RUN_H

#include "graphs/problem/places.h"
#include "tests/support/test.h"

#include "planners/plan/plan.h"

typedef struct tagged_verdict {
    bool right;    /* every read of every execution finds the bytes of its value */
    bool by_rules; /* and no rule of LOOPS.md is broken, under which the verifier refuses more */
    bool too_many; /* executions: nothing is known */
    uint32_t executions; /* that were looked at, in part */
    char why[200];       /* the first that is wrong */
} tagged_verdict;

tagged_verdict tagged_run(mpl_ctx *ctx, const mpl_graph *g, const mpl_value_map *map,
                          const mpl_problem *p, const mpl_plan *plan);

#endif
