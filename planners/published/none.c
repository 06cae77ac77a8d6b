/* none.c -- shares nothing: lays the buffers end to end.
 *
 * Idea     The reference for all sharing: the memory of a program that frees nothing.
 * Source   this project
 * Differs  -
 * Cost     O(n) time, 8 bytes a buffer and a pool of scratch.
 * Limits   Buffers with a fixed offset stay there; the others begin above the last of them. */
#include "planners/planner.h"

/* Bytes from b to the end of its family if b begins it, else 0. */
static mpl_status measure(mpl_ctx *ctx, const mpl_problem *p, uint64_t **span)
{
    MPL_PASS(mpl_new(ctx, *span, p->n));
    for (mpl_buffer b = 0; b < p->n; b++) {
        mpl_buffer first = p->inside != NULL ? p->inside[b] : b;
        uint64_t at = p->inside != NULL ? p->inside_at[b] : 0;

        (*span)[first] = mpl_max_u64((*span)[first], at + p->bytes[b]);
    }
    return MPL_OK;
}

static mpl_status plan(mpl_run *run, const mpl_problem *p, mpl_plan *out)
{
    mpl_status st = MPL_OK;
    uint64_t *end = NULL, *span = NULL;

    MPL_TRY(mpl_new(run->ctx, end, p->n_pools));
    MPL_TRY(measure(run->ctx, p, &span));
    for (mpl_buffer b = 0; p->fixed != NULL && b < p->n; b++)
        if (p->fixed[b] != MPL_UNFIXED) {
            uint64_t fixed_end = 0;

            if (!mpl_add_bytes(p->fixed[b], p->bytes[b], &fixed_end))
                MPL_FAIL(run->ctx, MPL_EINPUT, "buffer %u, fixed at %" PRIu64 ", ends beyond 2^64",
                         b, p->fixed[b]);
            end[p->pool[b]] = mpl_max_u64(end[p->pool[b]], fixed_end);
        }
    for (mpl_buffer b = 0; b < p->n; b++) {
        uint64_t *top = &end[p->pool[b]];

        if (p->fixed != NULL && p->fixed[b] != MPL_UNFIXED) {
            out->offset[b] = p->fixed[b];
            continue;
        }
        if (span[b] > 0 && (!mpl_align_bytes(*top, p->align[b], &out->offset[b]) ||
                            !mpl_add_bytes(out->offset[b], span[b], top)))
            MPL_FAIL(run->ctx, MPL_EINPUT, "the buffers together have more than 2^64 bytes");
    }
    for (mpl_buffer b = 0; p->inside != NULL && b < p->n; b++)
        if (p->inside[b] != b)
            out->offset[b] = out->offset[p->inside[b]] + p->inside_at[b];
    run->ticks = p->n;
    out->claim = MPL_FEASIBLE;
out:
    mpl_free_each(run->ctx, end, span);
    return st;
}

const mpl_planner mpl_planner_none = {
    .name = "none",
    .about = "nothing shared: the buffers end to end",
    .source = "this project",
    .traits = MPL_NO_REUSE | MPL_USES_GAPS | MPL_USES_FAMILIES,
    .plan = plan,
};
