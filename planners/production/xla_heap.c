/* xla_heap.c -- XLA's heap of its buffer assignment: each buffer, in an order by size or by
 * lifetime, into the smallest free chunk that is large enough.
 *
 * Idea     Best fit with the whole program known: what is large, or lives long, chooses first.
 * Source   openxla/xla, xla/service/heap_simulator: GlobalDecreasingSizeBestFitHeap. spatial: size,
 *          then lifetime; temporal: lifetime, then size; both descending, then the value's id.
 *          best: ChooseBestHeapAlgorithm over the two, as buffer assignment runs it, for each color
 *          (here: pool). repack: memory_space_assignment/best_fit_repacker, temporal with ties by
 *          time, over the spatial heap: kept where it is lower.
 * Differs  Ids are those of the problem. Values that XLA makes share an offset beforehand
 *          (colocations) are one buffer here, with gaps; its lifetime is all of it, where XLA's
 *          spatial order takes that of the first value alone. In-place pairs are not taken. XLA
 *          repacks blocks of one fast memory while it fills, in slices; here all at once, whole.
 * Cost     O(n log n) and the occupied ranges met.
 * Limits   Never moves a placed buffer; no bound on the distance to the optimum. */
#include "planners/place/sort.h"
#include "planners/production/production.h"

static uint64_t by_start(const mpl_problem *p, mpl_buffer b)
{
    return (uint64_t)p->birth[b] << 32 | p->death[b];
}

/* Lifetime, size, start, id: the three keys of a repacker. */
static mpl_status repacker_order(mpl_ctx *ctx, const mpl_problem *p, mpl_buffer *order)
{
    mpl_status st = MPL_OK;
    uint64_t *key = NULL;

    MPL_TRY(mpl_new(ctx, key, p->n));
    MPL_TRY(mpl_production_order(ctx, p, mpl_key_larger, by_start, order));
    for (mpl_buffer b = 0; b < p->n; b++)
        key[b] = mpl_key_longer(p, b);
    MPL_TRY(mpl_sort_ids(ctx, p->n, order, key));
out:
    mpl_free(ctx, key);
    return st;
}

/* Places anew in the second order, and keeps what is lower, pool by pool. */
static mpl_status place_second(mpl_run *run, const mpl_problem *p, bool repack, mpl_buffer *order,
                               mpl_plan *out)
{
    mpl_status st = MPL_OK;
    mpl_plan *other = NULL;

    MPL_TRY(mpl_plan_new(run->ctx, p, &other));
    if (repack)
        MPL_TRY(repacker_order(run->ctx, p, order));
    else
        MPL_TRY(mpl_production_order(run->ctx, p, mpl_key_longer, mpl_key_larger, order));
    MPL_TRY(mpl_production_place(run, p, order, MPL_FIT_BEST, other));
    mpl_place_take_lower(p, other->offset, out->offset);
out:
    mpl_plan_free(run->ctx, other);
    return st;
}

static mpl_status plan(mpl_run *run, const mpl_problem *p, mpl_plan *out)
{
    mpl_status st = MPL_OK;
    const char *kind = mpl_run_param(run, "order");
    bool temporal = kind != NULL && strcmp(kind, "temporal") == 0;
    mpl_buffer *order = NULL;

    MPL_TRY(mpl_new(run->ctx, order, p->n));
    if (temporal)
        MPL_TRY(mpl_production_order(run->ctx, p, mpl_key_longer, mpl_key_larger, order));
    else
        MPL_TRY(mpl_production_order(run->ctx, p, mpl_key_larger, mpl_key_longer, order));
    MPL_TRY(mpl_production_place(run, p, order, MPL_FIT_BEST, out));
    if (kind == NULL || strcmp(kind, "repack") == 0)
        MPL_TRY(place_second(run, p, kind != NULL, order, out));
out:
    mpl_free(run->ctx, order);
    return st;
}

const mpl_planner mpl_planner_xla_heap = {
    .name = "xla_heap",
    .about = "XLA's heap: by size and by lifetime, smallest free chunk, the better of the two",
    .source = "openxla/xla heap_simulator",
    .params = "order=spatial|temporal|repack",
    .traits = MPL_SERIAL_ONLY | MPL_USES_GAPS | MPL_PRODUCTION,
    .plan = plan,
};
