/* nnc_arena.c -- the allocation graph without its structural losses: one arena, ranges may be
 * joined, and the order of selection is searched.
 *
 * Idea     NNC loses memory in three ways: a buffer takes a prefix of one edge, never a union of
 *          neighbouring ranges; blocks keep their first size; the order of selection is fixed. Here
 *          each buffer takes the lowest range of one arena that no interfering buffer holds (any
 *          union of ranges handed on). The orders of a small portfolio are tried. The best is
 *          improved by moving a buffer that ends at the peak ahead of one that holds it up
 *          (arena.c). The antichain bound ends the search. Where the portfolio misses it, the plan
 *          of nnc_2019 is also a start and an incumbent, so the result is never above it.
 * Source   this project; the move is that of hill climbing over allocation orders as in TVM's
 *          USMP.
 * Cost     O(n^2 / 64) bytes and O(n * placed) time an order, early exits aside; ticks are ranges
 *          examined.
 * Limits   Local search: a plan above the bound need not be optimal. A family is one buffer during
 *          the search; then its parts sink. */
#include "graphs/problem/bounds/bounds.h"
#include "planners/place/bodies.h"
#include "planners/published/nnc_graph.h"

#include "graphs/problem/before.h"
#include "graphs/problem/fold_pairs.h"

#define DEFAULT_TICKS UINT64_C(300000000) /* about a second */

extern const mpl_planner mpl_planner_nnc_2019;

/* Plans one pool of the folded problem: offset[] of its buffers, *height. *first is the plan of
 * nnc_2019, made on first use. */
static mpl_status plan_pool(mpl_run *run, const mpl_problem *p, uint32_t pool,
                            mpl_exact_effort *effort, mpl_plan **first, uint64_t *offset,
                            uint64_t *height)
{
    mpl_status st = MPL_OK;
    mpl_bodies *bodies = NULL;
    uint64_t *place = NULL, *other = NULL, bound, limit = effort->tick_limit, height_first;

    MPL_TRY(mpl_antichain(run->ctx, p, pool, &bound, NULL));
    MPL_TRY(mpl_bodies_of_pool(run->ctx, p, pool, &bodies));
    MPL_TRY(mpl_new(run->ctx, place, bodies->n));
    *height = bodies->n > 0 ? UINT64_MAX : 0;
    effort->tick_limit = 0; /* greedy orders only */
    MPL_TRY(mpl_arena_search(run->ctx, bodies, bound, effort, place, height));
    effort->tick_limit = limit;
    if (*height > bound) {
        if (*first == NULL) {
            MPL_TRY(mpl_plan_new(run->ctx, p, first));
            MPL_TRY(mpl_planner_nnc_2019.plan(run, p, *first));
        }
        MPL_TRY(mpl_new(run->ctx, other, bodies->n));
        for (uint32_t i = 0; i < bodies->n; i++)
            other[i] = (*first)->offset[bodies->buffer[i]];
        height_first = mpl_bodies_height(bodies, other);
        MPL_TRY(mpl_arena_search(run->ctx, bodies, bound, effort, other, &height_first));
        if (height_first <= *height) {
            *height = height_first;
            memcpy(place, other, bodies->n * sizeof *place);
        }
    }
    mpl_assert(*height >= bound);
    for (uint32_t i = 0; i < bodies->n; i++)
        offset[bodies->buffer[i]] = place[i];
out:
    mpl_bodies_free(run->ctx, bodies);
    mpl_free_each(run->ctx, place, other);
    return st;
}

static mpl_status plan(mpl_run *run, const mpl_problem *p, mpl_plan *out)
{
    mpl_status st = MPL_OK;
    mpl_problem *folded = NULL;
    mpl_plan *first = NULL;
    uint32_t *into = NULL;
    uint64_t *offset = NULL, height = 0, peak = 0;
    mpl_exact_effort effort = {.seed = run->seed, .deadline_ns = run->deadline_ns};

    effort.tick_limit = run->budget_ticks != UINT64_MAX ? run->budget_ticks : DEFAULT_TICKS;
    MPL_TRY(mpl_nnc_check(run->ctx, p));
    MPL_TRY(mpl_new(run->ctx, into, p->n));
    MPL_TRY(mpl_problem_fold(run->ctx, p, &folded, into));
    if (folded->before == NULL)
        MPL_TRY(mpl_problem_as_parallel(run->ctx, folded));
    MPL_TRY(mpl_new(run->ctx, offset, folded->n));
    for (uint32_t pool = 0; pool < folded->n_pools; pool++) {
        MPL_TRY(plan_pool(run, folded, pool, &effort, &first, offset, &height));
        peak = pool == 0 ? height : peak;
    }
    for (mpl_buffer b = 0; b < p->n; b++)
        out->offset[b] = offset[into[b]];
    /* The bound holds for each choice of the pairs; folding is one of them. */
    MPL_TRY(p->before != NULL ? mpl_antichain(run->ctx, p, 0, &out->bound_bytes, NULL)
                              : mpl_peak_live(run->ctx, p, 0, &out->bound_bytes, NULL, NULL));
    out->claim = peak == out->bound_bytes ? MPL_OPTIMAL : MPL_FEASIBLE;
    run->ticks += effort.ticks;
    run->stopped_by_clock = mpl_clock_ns() >= run->deadline_ns;
out:
    mpl_plan_free(run->ctx, first);
    mpl_problem_free(run->ctx, folded);
    mpl_free_each(run->ctx, offset, into);
    return st;
}

const mpl_planner mpl_planner_nnc_arena = {
    .name = "nnc_arena",
    .about = "one arena over the partial order, order of selection searched, never above nnc_2019",
    .source = "this project",
    .traits = MPL_RANDOM | MPL_PARALLEL_ONLY | MPL_USES_IN_PLACE | MPL_EXACT,
    .plan = plan,
};
