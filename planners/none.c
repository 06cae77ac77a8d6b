/* none.c -- nothing shared: the buffers end to end.
 *
 * Idea     The measure of all sharing: what a program needs that frees nothing.
 * Source   this project
 * Differs  -
 * Cost     O(n) time, 8 bytes a pool of scratch.
 * Limits   Buffers with a fixed offset stay there; the others begin behind the last of them.
 */
#include "planners/planner.h"

static mpl_status plan(mpl_run *run, const mpl_problem *p, mpl_plan *out)
{
    mpl_status st = MPL_OK;
    uint64_t *end = NULL;

    MPL_TRY(mpl_new(run->ctx, end, p->n_pools));
    for (mpl_buffer b = 0; p->fixed != NULL && b < p->n; b++)
        if (p->fixed[b] != MPL_UNFIXED) {
            uint64_t fixed_end = 0;

            if (!mpl_add_bytes(p->fixed[b], p->bytes[b], &fixed_end))
                MPL_FAIL(run->ctx, MPL_EINPUT, "buffer %u, fixed at %" PRIu64 ", ends beyond 2^64", b,
                         p->fixed[b]);
            end[p->pool[b]] = mpl_max_u64(end[p->pool[b]], fixed_end);
        }
    for (mpl_buffer b = 0; b < p->n; b++) {
        uint64_t *top = &end[p->pool[b]];

        if (p->fixed != NULL && p->fixed[b] != MPL_UNFIXED) {
            out->offset[b] = p->fixed[b];
            continue;
        }
        if (!mpl_align_bytes(*top, p->align[b], &out->offset[b]) ||
            !mpl_add_bytes(out->offset[b], p->bytes[b], top))
            MPL_FAIL(run->ctx, MPL_EINPUT, "the buffers together have more than 2^64 bytes");
    }
    run->ticks = p->n;
    out->claim = MPL_FEASIBLE;
out:
    mpl_free(run->ctx, end);
    return st;
}

const mpl_planner mpl_planner_none = {
    .name = "none",
    .about = "nothing shared: the buffers end to end",
    .source = "this project",
    .traits = MPL_NO_REUSE | MPL_USES_GAPS,
    .plan = plan,
};
