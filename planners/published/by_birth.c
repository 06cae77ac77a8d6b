/* by_birth.c -- places buffers in order of birth: first_fit takes the lowest gap that is large
 * enough, best_fit the gap that it fills best.
 *
 * Idea     What an allocator does at run time, without knowledge of the future.
 * Source   D. E. Knuth, "The Art of Computer Programming", volume 1, section 2.5; offline, as
 *          memory planners use it.
 * Differs  One contiguous arena has the gaps and grows at its end when nothing fits. Births at one
 *          step go larger first, then by id. In-place pairs are taken; for best_fit, an in-place
 *          partner counts as a gap of the partner's size.
 * Cost     O(n log n) and the gaps of each step, 70 n bytes of scratch. Parallel: O(n^2), in an
 *          order that respects the partial order.
 * Limits   The order ignores sizes, so late large buffers meet a fragmented arena. */
#include "planners/place/placement.h"
#include "planners/place/sort.h"

static void count_before(const mpl_problem *p, uint64_t *count)
{
    const mpl_before *before = p->before;

    for (mpl_buffer a = 0; a < p->n; a++)
        for (uint32_t word = 0; word < before->n_words; word++)
            for (uint64_t bits = before->row[(size_t)a * before->n_words + word]; bits != 0;
                 bits &= bits - 1)
                count[64 * word + (uint32_t)__builtin_ctzll(bits)]++;
}

/* Sorts all ids by birth, larger first, then by id. Under parallel, which has no births, by the
 * number of predecessors: if a is before b, b has all of a's and a itself, so this respects the
 * order. O(n log n); under parallel O(n^2). */
static mpl_status order_by_birth(mpl_ctx *ctx, const mpl_problem *p, mpl_buffer *order)
{
    mpl_status st = MPL_OK;
    uint64_t *key = NULL;

    MPL_TRY(mpl_new(ctx, key, p->n));
    mpl_ids_ascending(p->n, order);
    for (mpl_buffer b = 0; b < p->n; b++)
        key[b] = UINT64_MAX - p->bytes[b];
    MPL_TRY(mpl_sort_ids(ctx, p->n, order, key));
    for (mpl_buffer b = 0; b < p->n; b++)
        key[b] = p->before == NULL ? p->birth[b] : 0;
    if (p->before != NULL)
        count_before(p, key);
    MPL_TRY(mpl_sort_ids(ctx, p->n, order, key));
out:
    mpl_free(ctx, key);
    return st;
}

static mpl_status place_by_birth(mpl_run *run, const mpl_problem *p, mpl_fit fit, mpl_plan *out)
{
    mpl_status st = MPL_OK;
    mpl_buffer *order = NULL;

    MPL_TRY(mpl_new(run->ctx, order, p->n));
    MPL_TRY(order_by_birth(run->ctx, p, order));
    MPL_TRY(mpl_place_all(run, p, order, fit, out));
out:
    mpl_free(run->ctx, order);
    return st;
}

static mpl_status plan_first(mpl_run *run, const mpl_problem *p, mpl_plan *out)
{
    return place_by_birth(run, p, MPL_FIT_LOWEST, out);
}

static mpl_status plan_best(mpl_run *run, const mpl_problem *p, mpl_plan *out)
{
    return place_by_birth(run, p, MPL_FIT_BEST, out);
}

const mpl_planner mpl_planner_first_fit = {
    .name = "first_fit",
    .about = "by birth, lowest gap that is large enough",
    .source = "knuth",
    .traits = MPL_USES_IN_PLACE | MPL_USES_GAPS | MPL_USES_FAMILIES,
    .plan = plan_first,
};

const mpl_planner mpl_planner_best_fit = {
    .name = "best_fit",
    .about = "by birth, best-fitting gap",
    .source = "knuth",
    .traits = MPL_USES_IN_PLACE | MPL_USES_GAPS | MPL_USES_FAMILIES,
    .plan = plan_best,
};
