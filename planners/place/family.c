/* family.c -- places a family of buffers at decided distances. See placement.h.
 *
 * Let a part begin `at` bytes above the family's start and be k bytes long. A conflicting buffer at
 * [x, x + n) forbids the starts in (x - at - k, x + n - at). The start takes the lowest or
 * best-fitting offset outside all of these intervals. */
#include "planners/place/placement.h"

#include <stdlib.h>

/* Starts between low and high, forbidden by a placed buffer. [byte] */
typedef struct wall {
    int64_t low, high;
} wall;

MPL_ORDER_BY(by_low, wall, MPL_RISING(low) MPL_RISING(high))

static const mpl_buffer *parts_of(const mpl_placement *placement, mpl_buffer first, uint32_t *n)
{
    *n = placement->family.begin[first + 1] - placement->family.begin[first];
    return placement->family.item + placement->family.begin[first];
}

static uint32_t raise_walls(mpl_placement *placement, mpl_buffer first, wall *walls)
{
    const mpl_problem *p = placement->p;
    uint32_t n_parts, n = 0;
    const mpl_buffer *part = parts_of(placement, first, &n_parts);

    for (uint32_t i = 0; i < placement->n_members; i++) {
        mpl_buffer c = placement->member[i];

        for (uint32_t k = 0; placement->placed[c] && k < n_parts; k++) {
            int64_t at = (int64_t)p->inside_at[part[k]], lies = (int64_t)placement->offset[c];

            if (lies + (int64_t)p->bytes[c] <= at || !mpl_conflict(p, part[k], c))
                continue;
            walls[n++] =
                (wall){lies - at - (int64_t)p->bytes[part[k]], lies - at + (int64_t)p->bytes[c]};
        }
    }
    placement->run->ticks += (uint64_t)placement->n_members * n_parts;
    qsort(walls, n, sizeof *walls, by_low);
    return n;
}

static mpl_gap find_gap(const mpl_placement *placement, mpl_buffer first, const wall *walls,
                        uint32_t n)
{
    mpl_gap best = {0, UINT64_MAX};
    uint64_t at = 0;

    for (uint32_t i = 0; i < n; i++) {
        if (walls[i].low >= (int64_t)at &&
            mpl_placement_offer(placement, (mpl_gap){at, (uint64_t)walls[i].low - at}, &best))
            return best;
        if (walls[i].high > (int64_t)at)
            at = mpl_align_up((uint64_t)walls[i].high, placement->p->align[first]);
    }
    mpl_placement_offer(placement, (mpl_gap){at, UINT64_MAX - at}, &best);
    return best;
}

/* Whether the family may begin at `start`, ignoring in-place partners at the same offset. */
static bool may_begin(mpl_placement *placement, mpl_buffer first, uint64_t start)
{
    const mpl_problem *p = placement->p;
    uint32_t n_parts;
    const mpl_buffer *part = parts_of(placement, first, &n_parts);

    for (uint32_t i = 0; i < placement->n_members; i++) {
        mpl_buffer c = placement->member[i];

        for (uint32_t k = 0; placement->placed[c] && k < n_parts; k++) {
            mpl_buffer b = part[k];
            uint64_t at = start + p->inside_at[b];

            if (placement->offset[c] < at + p->bytes[b] &&
                at < placement->offset[c] + p->bytes[c] && mpl_conflict(p, b, c) &&
                (placement->offset[c] != at || !mpl_placement_partners(placement, b, c)))
                return false;
        }
    }
    placement->run->ticks += (uint64_t)placement->n_members * n_parts;
    return true;
}

/* The lowest start, not above `start`, where a part lies on a placed partner; else `start`. */
static uint64_t join(mpl_placement *placement, mpl_buffer first, uint64_t start)
{
    const mpl_problem *p = placement->p;
    uint32_t n_parts;
    const mpl_buffer *part = parts_of(placement, first, &n_parts);

    for (uint32_t k = 0; k < n_parts; k++)
        for (uint32_t i = placement->partner_begin[part[k]];
             i < placement->partner_begin[part[k] + 1]; i++) {
            mpl_buffer q = placement->partner[i];
            uint64_t at = p->inside_at[part[k]], to;

            if (!placement->placed[q] || placement->offset[q] < at)
                continue;
            to = placement->offset[q] - at;
            if (to <= start && to % p->align[first] == 0 && may_begin(placement, first, to))
                start = to;
        }
    return start;
}

mpl_status mpl_placement_family(mpl_placement *placement, mpl_buffer first)
{
    mpl_status st = MPL_OK;
    uint32_t n_parts;
    const mpl_buffer *part = parts_of(placement, first, &n_parts);
    wall *walls = NULL;
    uint64_t start;

    MPL_TRY(mpl_new(placement->run->ctx, walls, (size_t)placement->n_members * n_parts));
    start = find_gap(placement, first, walls, raise_walls(placement, first, walls)).offset;
    if (placement->partner_begin != NULL)
        start = join(placement, first, start);
    for (uint32_t k = 0; k < n_parts; k++) {
        placement->offset[part[k]] = start + placement->p->inside_at[part[k]];
        placement->placed[part[k]] = 1;
        MPL_TRY(placement->kind->insert(placement, part[k], MPL_NONE));
    }
out:
    mpl_free(placement->run->ctx, walls);
    return st;
}
