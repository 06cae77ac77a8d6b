/* first_fit.c -- in order of birth, each buffer in the lowest gap that is large enough.
 *
 * Idea     What a running program's allocator would do, keeping to low addresses.
 * Source   D. E. Knuth, "The Art of Computer Programming", volume 1, section 2.5; offline, as
 *          memory planners use it.
 * Differs  Gaps are those of one contiguous arena, which grows at its end when nothing fits. Births
 *          at one step go larger first, then by id. In-place pairs are taken up.
 * Cost     O(n log n) and the gaps of each moment, 70 n bytes of scratch. Parallel: O(n^2), in an
 *          order that respects the partial order.
 * Limits   Sizes play no part in the order, so late large buffers meet a broken-up arena.
 */
#include "planners/published/by_birth.h"

static mpl_status plan(mpl_run *run, const mpl_problem *p, mpl_plan *out)
{
    return mpl_place_by_birth(run, p, MPL_FIT_LOWEST, out);
}

const mpl_planner mpl_planner_first_fit = {
    .name = "first_fit",
    .about = "by birth, lowest gap that is large enough",
    .source = "knuth",
    .traits = MPL_USES_IN_PLACE | MPL_USES_GAPS | MPL_USES_FAMILIES,
    .plan = plan,
};
