/* untimed.c -- the free bytes if only mpl_conflict is known: scans placed buffers in address order.
 * O(placed) a buffer. */
#include "planners/place/placement.h"

struct mpl_space {
    mpl_buffer *by_offset; /* [n] placed buffers by (offset, id) */
    uint32_t n;
};

static void rows_close(mpl_placement *s)
{
    if (s->space == NULL)
        return;
    mpl_free_each(s->run->ctx, s->space->by_offset, s->space);
    s->space = NULL;
}

static mpl_status rows_open(mpl_placement *s)
{
    MPL_PASS(mpl_new(s->run->ctx, s->space, 1));
    return mpl_new(s->run->ctx, s->space->by_offset, s->n_members);
}

static mpl_status rows_find(mpl_placement *s, mpl_buffer b, mpl_gap *gap)
{
    const mpl_problem *p = s->p;
    uint64_t at = 0;

    for (uint32_t i = 0; i < s->space->n; i++) {
        mpl_buffer c = s->space->by_offset[i];

        s->run->ticks++;
        if (!mpl_conflict(p, b, c))
            continue;
        if (at + p->bytes[b] <= s->offset[c] &&
            mpl_placement_offer(s, (mpl_gap){at, s->offset[c] - at - p->bytes[b]}, gap))
            return MPL_OK;
        at = mpl_max_u64(at, mpl_align_up(s->offset[c] + p->bytes[c], p->align[b]));
    }
    mpl_placement_offer(s, (mpl_gap){at, UINT64_MAX - at - p->bytes[b]}, gap);
    return MPL_OK;
}

static bool rows_may_join(mpl_placement *s, mpl_buffer b, mpl_buffer partner)
{
    const mpl_problem *p = s->p;
    uint64_t at = s->offset[partner];

    for (uint32_t i = 0; i < s->space->n; i++) {
        mpl_buffer c = s->space->by_offset[i];
        bool meet = s->offset[c] < at + p->bytes[b] && at < s->offset[c] + p->bytes[c];

        s->run->ticks++;
        if (meet && mpl_conflict(p, b, c) &&
            (s->offset[c] != at || !mpl_placement_partners(s, b, c)))
            return false;
    }
    return true;
}

static mpl_status rows_insert(mpl_placement *s, mpl_buffer b, mpl_buffer partner)
{
    mpl_buffer *by_offset = s->space->by_offset;
    uint32_t at = s->space->n++;

    (void)partner;
    for (; at > 0; at--) {
        mpl_buffer c = by_offset[at - 1];

        if (s->offset[c] < s->offset[b] || (s->offset[c] == s->offset[b] && c < b))
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
