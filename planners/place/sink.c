/* sink.c -- moves the buffers of a plan down. See placement.h. */
#include "planners/place/placement.h"
#include "planners/place/sort.h"

void mpl_place_take_lower(const mpl_problem *p, const uint64_t *other, uint64_t *offset)
{
    for (uint32_t pool = 0; pool < p->n_pools; pool++)
        if (mpl_pool_height(p, pool, other) < mpl_pool_height(p, pool, offset))
            for (mpl_buffer b = 0; b < p->n; b++)
                if (p->pool[b] == pool)
                    offset[b] = other[b];
}

mpl_status mpl_place_sink(mpl_run *run, const mpl_problem *p, uint64_t *offset)
{
    mpl_status st = MPL_OK;
    mpl_plan *sunk = NULL;
    mpl_buffer *order = NULL;

    MPL_TRY(mpl_plan_new(run->ctx, p, &sunk));
    MPL_TRY(mpl_new(run->ctx, order, p->n));
    mpl_ids_ascending(p->n, order);
    MPL_TRY(mpl_sort_ids(run->ctx, p->n, order, offset));
    MPL_TRY(mpl_place_all(run, p, order, MPL_FIT_LOWEST, sunk));
    mpl_place_take_lower(p, sunk->offset, offset);
out:
    mpl_plan_free(run->ctx, sunk);
    mpl_free(run->ctx, order);
    return st;
}
