/* sink.c -- buffers of a plan moved down as far as they go. See placement.h. */
#include "planners/place/placement.h"
#include "planners/place/sort.h"

mpl_status mpl_place_sink(mpl_run *run, const mpl_problem *p, uint64_t *offset)
{
    mpl_status st = MPL_OK;
    mpl_plan *sunk = NULL;
    mpl_buffer *order = NULL;
    uint64_t *height = NULL, *got;

    MPL_TRY(mpl_plan_new(run->ctx, p, &sunk));
    MPL_TRY(mpl_new(run->ctx, order, p->n));
    MPL_TRY(mpl_new(run->ctx, height, 2 * (size_t)p->n_pools));
    got = height + p->n_pools;
    mpl_ids_ascending(p->n, order);
    MPL_TRY(mpl_sort_ids(run->ctx, p->n, order, offset));
    MPL_TRY(mpl_place_all(run, p, order, MPL_FIT_LOWEST, sunk));
    for (mpl_buffer b = 0; b < p->n; b++) {
        height[p->pool[b]] = mpl_max_u64(height[p->pool[b]], offset[b] + p->bytes[b]);
        got[p->pool[b]] = mpl_max_u64(got[p->pool[b]], sunk->offset[b] + p->bytes[b]);
    }
    for (mpl_buffer b = 0; b < p->n; b++)
        if (got[p->pool[b]] < height[p->pool[b]])
            offset[b] = sunk->offset[b];
out:
    mpl_plan_free(run->ctx, sunk);
    mpl_free(run->ctx, order);
    mpl_free(run->ctx, height);
    return st;
}
