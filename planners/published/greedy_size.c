/* greedy_size.c -- places the largest buffer first, each at the lowest offset free for its live
 * range.
 *
 * Idea     Large buffers have few offsets to choose from, so they go first; small ones fill the
 *          holes.
 * Source   Y. Pisarchyk, J. Lee, "Efficient Memory Management for Deep Neural Net Inference", 2020,
 *          "Greedy by Size for Offset Calculation".
 * Differs  Takes the lowest gap that is large enough; the source takes the smallest. Ties go to the
 *          longer live range (under parallel: the more conflicts), then to the id; the source
 *          leaves them open. In-place pairs are taken. A family counts with its whole size and goes
 *          where its parts fit.
 * Cost     Serial: O(n log n) and the occupied ranges met, 100 to 250 n bytes of scratch. Parallel:
 *          O(n^2).
 * Limits   Never moves a placed buffer; no bound on the distance to the optimum. */
#include "planners/place/placement.h"
#include "planners/place/sort.h"

static uint64_t lifetime(const mpl_problem *p, mpl_buffer b)
{
    uint64_t n_conflicts = 0;

    if (p->before == NULL)
        return p->death[b] - p->birth[b];
    for (mpl_buffer c = 0; c < p->n; c++)
        n_conflicts += mpl_conflict(p, b, c);
    return n_conflicts;
}

/* A family counts with all its bytes, whichever part is asked for. */
static void keys_by_size(const mpl_problem *p, uint64_t *key)
{
    for (mpl_buffer b = 0; b < p->n; b++)
        key[b] = UINT64_MAX - p->bytes[b];
    for (mpl_buffer b = 0; p->inside != NULL && b < p->n; b++)
        key[p->inside[b]] =
            mpl_min_u64(key[p->inside[b]], UINT64_MAX - p->inside_at[b] - p->bytes[b]);
    for (mpl_buffer b = 0; p->inside != NULL && b < p->n; b++)
        key[b] = key[p->inside[b]];
}

static mpl_status plan(mpl_run *run, const mpl_problem *p, mpl_plan *out)
{
    mpl_status st = MPL_OK;
    mpl_buffer *order = NULL;
    uint64_t *key = NULL;

    MPL_TRY(mpl_new_each(run->ctx, p->n, order, key));
    mpl_ids_ascending(p->n, order);
    for (mpl_buffer b = 0; b < p->n; b++)
        key[b] = UINT64_MAX - lifetime(p, b);
    MPL_TRY(mpl_sort_ids(run->ctx, p->n, order, key));
    keys_by_size(p, key);
    MPL_TRY(mpl_sort_ids(run->ctx, p->n, order, key));
    MPL_TRY(mpl_place_all(run, p, order, MPL_FIT_LOWEST, out));
out:
    mpl_free_each(run->ctx, order, key);
    return st;
}

const mpl_planner mpl_planner_greedy_size = {
    .name = "greedy_size",
    .about = "largest first, lowest free offset",
    .source = "pisarchyk2020",
    .traits = MPL_USES_IN_PLACE | MPL_USES_GAPS | MPL_USES_FAMILIES,
    .plan = plan,
};
