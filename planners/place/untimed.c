/* untimed.c -- the free bytes if only mpl_conflict is known: scans placed buffers in address order.
 * O(placed) a buffer. */
#include "planners/place/placement.h"

struct mpl_space {
    mpl_buffer *by_offset; /* [n] placed buffers by (offset, id) */
    uint32_t n;
};

static void rows_close(mpl_placement *placement)
{
    if (placement->space == NULL)
        return;
    mpl_free_each(placement->run->ctx, placement->space->by_offset, placement->space);
    placement->space = NULL;
}

static mpl_status rows_open(mpl_placement *placement)
{
    MPL_PASS(mpl_new(placement->run->ctx, placement->space, 1));
    return mpl_new(placement->run->ctx, placement->space->by_offset, placement->n_members);
}

static mpl_status rows_find(mpl_placement *placement, mpl_buffer b, mpl_gap *gap)
{
    const mpl_problem *p = placement->p;
    uint64_t at = 0;

    for (uint32_t i = 0; i < placement->space->n; i++) {
        mpl_buffer c = placement->space->by_offset[i];

        placement->run->ticks++;
        if (!mpl_conflict(p, b, c))
            continue;
        if (at + p->bytes[b] <= placement->offset[c] &&
            mpl_placement_offer(placement, (mpl_gap){at, placement->offset[c] - at - p->bytes[b]},
                                gap))
            return MPL_OK;
        at = mpl_max_u64(at, mpl_align_up(placement->offset[c] + p->bytes[c], p->align[b]));
    }
    mpl_placement_offer(placement, (mpl_gap){at, UINT64_MAX - at - p->bytes[b]}, gap);
    return MPL_OK;
}

static bool rows_may_join(mpl_placement *placement, mpl_buffer b, mpl_buffer partner)
{
    const mpl_problem *p = placement->p;
    uint64_t at = placement->offset[partner];

    for (uint32_t i = 0; i < placement->space->n; i++) {
        mpl_buffer c = placement->space->by_offset[i];
        bool meet =
            placement->offset[c] < at + p->bytes[b] && at < placement->offset[c] + p->bytes[c];

        placement->run->ticks++;
        if (meet && mpl_conflict(p, b, c) &&
            (placement->offset[c] != at || !mpl_placement_partners(placement, b, c)))
            return false;
    }
    return true;
}

static mpl_status rows_insert(mpl_placement *placement, mpl_buffer b, mpl_buffer partner)
{
    mpl_buffer *by_offset = placement->space->by_offset;
    uint32_t at = placement->space->n++;

    (void)partner;
    for (; at > 0; at--) {
        mpl_buffer c = by_offset[at - 1];

        if (placement->offset[c] < placement->offset[b] ||
            (placement->offset[c] == placement->offset[b] && c < b))
            break;
        by_offset[at] = c;
    }
    by_offset[at] = b;
    return MPL_OK;
}

const mpl_space_kind mpl_space_rows = {
    .open = rows_open,
    .close = rows_close,
    .find = rows_find,
    .may_join = rows_may_join,
    .insert = rows_insert,
};
