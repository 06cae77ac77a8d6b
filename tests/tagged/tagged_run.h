/* tagged_run.h -- runs a plan of a graph with loops and branches on tagged bytes, in all
 * executions. */
#pragma once

#include "tests/support/test.h"

typedef struct tagged_verdict {
    bool right;          /* every read in every execution finds its value's bytes */
    bool by_rules;       /* and no rule of LOOPS.md is broken, by which the verifier refuses more */
    bool too_many;       /* too many executions: no verdict */
    uint32_t executions; /* executions run, at least in part */
    char why[200];       /* the first fault */
} tagged_verdict;

tagged_verdict tagged_run(mpl_ctx *ctx, const mpl_graph *g, const mpl_value_map *map,
                          const mpl_problem *p, const mpl_plan *plan);
