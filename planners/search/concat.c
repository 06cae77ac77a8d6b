/* concat.c -- chooses the concats that share, by exact search. See concat.h.
 *
 * Idea     No plan of a choice is lower than its bound. Choices are planned by rising bound until
 *          the next bound is not below the best plan.
 * Source   this project
 * Limits   Plans of up to SMALL buffers, in TICKS each and MOST_TICKS in all; beyond them nothing
 *          is decided. */
#include "planners/search/concat.h"

#include <stdlib.h>

enum { SMALL = 300 };
#define TICKS      UINT64_C(3000000)
#define MOST_TICKS UINT64_C(30000000)

extern const mpl_planner mpl_planner_exact;

static int by_bound(const void *left, const void *right)
{
    const mpl_concat_choice *choice = left, *y = right;

    return mpl_concat_better(y, choice) - mpl_concat_better(choice, y);
}

static void take(const mpl_concats *concats, uint32_t set, uint8_t *shared)
{
    for (uint32_t i = 0; i < concats->n; i++)
        shared[concats->op[i]] = set >> i & 1;
}

/* Finds the least bytes of the choice `shared`. *decided false: the search ended early, and *bytes
 * is a lower bound. */
static mpl_status plan_choice(mpl_ctx *ctx, const mpl_graph *g, const mpl_op *order,
                              const mpl_problem_options *options, const uint8_t *shared,
                              uint64_t *ticks, uint64_t *bytes, bool *decided)
{
    static const char *const key = "proof", *const no = "0";
    mpl_status st = MPL_OK;
    mpl_problem_options o = *options;
    mpl_problem *p = NULL;
    mpl_value_map *map = NULL;
    mpl_plan *plan = NULL;
    mpl_run run;

    o.concat_shared = shared;
    o.capacity = MPL_NO_CAPACITY;
    MPL_TRY(mpl_problem_from_graph(ctx, g, order, &o, &p, &map));
    *decided = false;
    if (p->n > SMALL) {
        *bytes = 0;
        goto out;
    }
    run = mpl_run_default(ctx);
    run.budget_ticks = TICKS;
    run.n_params = 1;
    run.param_key = &key;
    run.param_value = &no;
    MPL_TRY(mpl_planner_run(&mpl_planner_exact, &run, p, &plan));
    *ticks += run.ticks;
    *decided = plan->claim == MPL_OPTIMAL;
    *bytes = *decided ? plan->pool_bytes[0] : plan->bound_bytes;
out:
    mpl_plan_free(ctx, plan);
    mpl_value_map_free(ctx, map);
    mpl_problem_free(ctx, p);
    return st;
}

/* Finds the choice of the least plan. Where that is too much work, found->by stays. */
static mpl_status plan_choices(mpl_ctx *ctx, const mpl_graph *g, const mpl_op *order,
                               const mpl_problem_options *options, const mpl_concats *concats,
                               uint8_t *shared, mpl_concat_found *found)
{
    mpl_concat_choice *list = concats->choice, best = {UINT64_MAX, 0, 0};
    bool decided = true;

    qsort(list, concats->n_choices, sizeof *list, by_bound);
    for (uint32_t i = 0; i < concats->n_choices && decided; i++) {
        mpl_concat_choice one = list[i];

        if (!mpl_concat_better(&one, &best))
            continue;
        decided = found->ticks < MOST_TICKS;
        if (!decided)
            break;
        take(concats, one.set, shared);
        MPL_PASS(plan_choice(ctx, g, order, options, shared, &found->ticks, &one.bytes, &decided));
        found->n_planned++;
        if (decided && mpl_concat_better(&one, &best))
            best = one;
        decided = decided || !mpl_concat_better(&one, &best);
    }
    if (decided) {
        found->by = MPL_CONCAT_BY_EXACT;
        take(concats, best.set, shared);
    } else {
        memcpy(shared, concats->shared, g->n_ops);
    }
    return MPL_OK;
}

mpl_status mpl_concat_decide(mpl_ctx *ctx, const mpl_graph *g, const mpl_op *order,
                             const mpl_problem_options *options, uint8_t *shared,
                             mpl_concat_found *found)
{
    mpl_status st = MPL_OK;
    mpl_concats *concats = NULL;

    *found = (mpl_concat_found){.by = MPL_CONCAT_BY_NOTHING};
    MPL_TRY(mpl_concats_new(ctx, g, order, options, &concats));
    memcpy(shared, concats->shared, g->n_ops);
    found->by = concats->by;
    found->n = concats->n;
    if (concats->n_choices > 0)
        MPL_TRY(plan_choices(ctx, g, order, options, concats, shared, found));
    for (mpl_op op = 0; op < g->n_ops; op++)
        found->n_shared += shared[op];
out:
    mpl_concats_free(ctx, concats);
    return st;
}
