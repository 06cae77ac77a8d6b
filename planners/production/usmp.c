/* usmp.c -- TVM's greedy planners of its Unified Static Memory Planner: each buffer above all that
 * it conflicts with.
 *
 * Idea     An order by size, or by the number of conflicts, and no search for gaps.
 * Source   apache/tvm, src/tir/usmp/algo/greedy.cc (1.0 and before). order=size: greedy_by_size:
 *          bytes, then conflicts; order=conflicts: greedy_by_conflicts: conflicts, then bytes; all
 *          descending. Its third, hill_climb, is the planner of that name.
 * Differs  Ties end in the id, ascending; TVM's in the name, descending. One pool a buffer: TVM
 *          tries the next candidate pool where one is full.
 * Cost     O(n log n) with lifetimes; under parallel O(n^2).
 * Limits   Gaps below a placed buffer are never used: the most wasteful planner of its kind. */
#include <stdlib.h>

#include "graphs/problem/before.h"
#include "planners/place/sort.h"
#include "planners/production/production.h"

/* The highest end over ranges of steps: most[] of a subtree, whole[] of what covers it. */
typedef struct skyline {
    size_t n; /* leaves */
    uint64_t *most, *whole;
} skyline;

static void raise_to(skyline *self, size_t node, size_t size, size_t from, size_t to, uint64_t end)
{
    self->most[node] = mpl_max_u64(self->most[node], end);
    if (from == 0 && to == size) {
        self->whole[node] = mpl_max_u64(self->whole[node], end);
        return;
    }
    size /= 2;
    if (from < size)
        raise_to(self, 2 * node, size, from, to < size ? to : size, end);
    if (to > size)
        raise_to(self, 2 * node + 1, size, from > size ? from - size : 0, to - size, end);
}

static uint64_t highest(const skyline *self, size_t node, size_t size, size_t from, size_t to)
{
    uint64_t end = self->whole[node];

    if (from == 0 && to == size)
        return self->most[node];
    size /= 2;
    if (from < size)
        end = mpl_max_u64(end, highest(self, 2 * node, size, from, to < size ? to : size));
    if (to > size)
        end = mpl_max_u64(
            end, highest(self, 2 * node + 1, size, from > size ? from - size : 0, to - size));
    return end;
}

/* ---- conflicts, counted ---- */

static int compare_steps(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

    return (x > y) - (x < y);
}

/* How many of the sorted steps are at most `step`. */
static uint32_t count_up_to(const uint32_t *steps, uint32_t n, uint32_t step)
{
    uint32_t low = 0, high = n;

    while (low < high) {
        uint32_t middle = low + (high - low) / 2;

        if (steps[middle] <= step)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* Without pools: TVM knows which pool a buffer goes to only when it is placed. */
static mpl_status count_conflicts(mpl_ctx *ctx, const mpl_problem *p, uint64_t *count)
{
    mpl_status st = MPL_OK;
    uint32_t *birth = NULL, *death = NULL;

    MPL_TRY(mpl_new_each(ctx, p->n, birth, death));
    for (mpl_buffer b = 0; p->before != NULL && b < p->n; b++)
        for (mpl_buffer c = 0; c < b; c++)
            if (!mpl_is_before(p->before, b, c) && !mpl_is_before(p->before, c, b)) {
                count[b]++;
                count[c]++;
            }
    if (p->before != NULL || p->n == 0)
        goto out;
    memcpy(birth, p->birth, p->n * sizeof *birth);
    memcpy(death, p->death, p->n * sizeof *death);
    qsort(birth, p->n, sizeof *birth, compare_steps);
    qsort(death, p->n, sizeof *death, compare_steps);
    for (mpl_buffer b = 0; b < p->n; b++)
        count[b] =
            count_up_to(birth, p->n, p->death[b] - 1) - count_up_to(death, p->n, p->birth[b]) - 1;
out:
    mpl_free_each(ctx, birth, death);
    return st;
}

/* ---- placement ---- */

static void place(const mpl_problem *p, const mpl_buffer *order, uint32_t i, skyline *sky,
                  uint64_t *offset)
{
    mpl_buffer b = order[i];
    uint64_t at = 0;

    if (p->before == NULL)
        at = highest(&sky[p->pool[b]], 1, sky->n, p->birth[b], p->death[b]);
    for (uint32_t k = 0; p->before != NULL && k < i; k++)
        if (mpl_conflict(p, b, order[k]))
            at = mpl_max_u64(at, offset[order[k]] + p->bytes[order[k]]);
    offset[b] = mpl_align_up(at, p->align[b]);
    if (p->before == NULL)
        raise_to(&sky[p->pool[b]], 1, sky->n, p->birth[b], p->death[b], offset[b] + p->bytes[b]);
}

static mpl_status place_all(mpl_run *run, const mpl_problem *p, const mpl_buffer *order,
                            mpl_plan *out)
{
    mpl_status st = MPL_OK;
    skyline *sky = NULL;
    size_t n = 1;

    while (p->before == NULL && n < p->n_steps)
        n *= 2;
    MPL_TRY(mpl_new(run->ctx, sky, p->n_pools));
    for (uint32_t pool = 0; pool < p->n_pools; pool++) {
        sky[pool].n = n;
        MPL_TRY(mpl_new_each(run->ctx, 2 * n, sky[pool].most, sky[pool].whole));
    }
    for (uint32_t i = 0; i < p->n; i++)
        place(p, order, i, sky, out->offset);
    run->ticks += p->n;
    out->claim = MPL_FEASIBLE;
out:
    for (uint32_t pool = 0; sky != NULL && pool < p->n_pools; pool++)
        mpl_free_each(run->ctx, sky[pool].most, sky[pool].whole);
    mpl_free(run->ctx, sky);
    return st;
}

static mpl_status plan(mpl_run *run, const mpl_problem *p, mpl_plan *out)
{
    mpl_status st = MPL_OK;
    const char *by = mpl_run_param(run, "order");
    bool by_size = by == NULL || strcmp(by, "size") == 0;
    uint64_t *count = NULL, *size = NULL, *unit = NULL;
    mpl_buffer *order = NULL;

    MPL_TRY(mpl_new(run->ctx, unit, p->n_pools));
    MPL_TRY(mpl_new_each(run->ctx, p->n, count, size, order));
    MPL_TRY(mpl_production_units(run->ctx, p, unit));
    MPL_TRY(count_conflicts(run->ctx, p, count));
    for (mpl_buffer b = 0; b < p->n; b++) {
        count[b] = UINT64_MAX - count[b];
        size[b] = UINT64_MAX - p->bytes[b];
    }
    mpl_ids_ascending(p->n, order);
    MPL_TRY(mpl_sort_ids(run->ctx, p->n, order, by_size ? count : size));
    MPL_TRY(mpl_sort_ids(run->ctx, p->n, order, by_size ? size : count));
    MPL_TRY(place_all(run, p, order, out));
out:
    mpl_free_each(run->ctx, count, size, unit, order);
    return st;
}

const mpl_planner mpl_planner_usmp = {
    .name = "usmp",
    .about = "TVM USMP's greedy planners: by size or by conflicts, above all that conflicts",
    .source = "tvm_usmp",
    .params = "order=size|conflicts",
    .traits = MPL_UNFIXED_ONLY | MPL_PRODUCTION,
    .plan = plan,
};
