/* all_runs.h -- every way in which outermost operations of a small graph may run again before a
 * later one runs first. */
#pragma once

#include "tests/support/test.h"

#include "planners/recompute/rerun.h"

enum { MOST_AGAIN = 5, MOST_RUNS = 1 << (MOST_AGAIN * (MOST_AGAIN - 1) / 2) };

typedef struct listed {
    uint32_t n;
    uint64_t peak[MOST_RUNS], work[MOST_RUNS];
} listed;

/* Before each first run, every choice of earlier operations. */
static inline void list_runs(mpl_ctx *ctx, const mpl_graph *g, const mpl_problem_options *options,
                             listed *l)
{
    mpl_op unit[MOST_AGAIN], run[MOST_AGAIN * MOST_AGAIN];
    uint32_t n_units = 0;

    assert_true(count_units(g) <= MOST_AGAIN);
    for (mpl_op op = 0; op < g->n_ops; op++)
        if (g->op_block[op] == 0)
            unit[n_units++] = op;
    for (l->n = 0; l->n < 1u << n_units * (n_units - 1) / 2; l->n++) {
        mpl_rerun_facts facts;
        uint32_t n = 0, bit = 0;

        for (uint32_t t = 0; t < n_units; t++) {
            for (uint32_t i = 0; i < t; i++, bit++)
                if (l->n >> bit & 1)
                    run[n++] = unit[i];
            run[n++] = unit[t];
        }
        assert_ok(ctx, mpl_rerun_peak(ctx, g, n, run, options, &l->peak[l->n], &facts));
        l->work[l->n] = facts.extra_work;
    }
}

/* UINT64_MAX: no run within the budget. */
static inline uint64_t least_work(const listed *l, uint64_t budget)
{
    uint64_t least = UINT64_MAX;

    for (uint32_t i = 0; i < l->n; i++)
        if (l->peak[i] <= budget)
            least = mpl_min_u64(least, l->work[i]);
    return least;
}
