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

static const mpl_buffer *parts_of(const mpl_placement *s, mpl_buffer first, uint32_t *n)
{
    *n = s->family.begin[first + 1] - s->family.begin[first];
    return s->family.item + s->family.begin[first];
}

static uint32_t raise_walls(mpl_placement *s, mpl_buffer first, wall *walls)
{
    const mpl_problem *p = s->p;
    uint32_t n_parts, n = 0;
    const mpl_buffer *part = parts_of(s, first, &n_parts);

    for (uint32_t i = 0; i < s->n_members; i++) {
        mpl_buffer c = s->member[i];

        for (uint32_t k = 0; s->placed[c] && k < n_parts; k++) {
            int64_t at = (int64_t)p->inside_at[part[k]], lies = (int64_t)s->offset[c];

            if (lies + (int64_t)p->bytes[c] <= at || !mpl_conflict(p, part[k], c))
                continue;
            walls[n++] =
                (wall){lies - at - (int64_t)p->bytes[part[k]], lies - at + (int64_t)p->bytes[c]};
        }
    }
    s->run->ticks += (uint64_t)s->n_members * n_parts;
    qsort(walls, n, sizeof *walls, by_low);
    return n;
}

static mpl_gap find_gap(const mpl_placement *s, mpl_buffer first, const wall *walls, uint32_t n)
{
    mpl_gap best = {0, UINT64_MAX};
    uint64_t at = 0;

    for (uint32_t i = 0; i < n; i++) {
        if (walls[i].low >= (int64_t)at &&
            mpl_placement_offer(s, (mpl_gap){at, (uint64_t)walls[i].low - at}, &best))
            return best;
        if (walls[i].high > (int64_t)at)
            at = mpl_align_up((uint64_t)walls[i].high, s->p->align[first]);
    }
    mpl_placement_offer(s, (mpl_gap){at, UINT64_MAX - at}, &best);
    return best;
}

/* Whether the family may begin at `start`, ignoring in-place partners at the same offset. */
static bool may_begin(mpl_placement *s, mpl_buffer first, uint64_t start)
{
    const mpl_problem *p = s->p;
    uint32_t n_parts;
    const mpl_buffer *part = parts_of(s, first, &n_parts);

    for (uint32_t i = 0; i < s->n_members; i++) {
        mpl_buffer c = s->member[i];

        for (uint32_t k = 0; s->placed[c] && k < n_parts; k++) {
            mpl_buffer b = part[k];
            uint64_t at = start + p->inside_at[b];

            if (s->offset[c] < at + p->bytes[b] && at < s->offset[c] + p->bytes[c] &&
                mpl_conflict(p, b, c) && (s->offset[c] != at || !mpl_placement_partners(s, b, c)))
                return false;
        }
    }
    s->run->ticks += (uint64_t)s->n_members * n_parts;
    return true;
}

/* The lowest start, not above `start`, where a part lies on a placed partner; else `start`. */
static uint64_t join(mpl_placement *s, mpl_buffer first, uint64_t start)
{
    const mpl_problem *p = s->p;
    uint32_t n_parts;
    const mpl_buffer *part = parts_of(s, first, &n_parts);

    for (uint32_t k = 0; k < n_parts; k++)
        for (uint32_t i = s->partner_begin[part[k]]; i < s->partner_begin[part[k] + 1]; i++) {
            mpl_buffer q = s->partner[i];
            uint64_t at = p->inside_at[part[k]], to;

            if (!s->placed[q] || s->offset[q] < at)
                continue;
            to = s->offset[q] - at;
            if (to <= start && to % p->align[first] == 0 && may_begin(s, first, to))
                start = to;
        }
    return start;
}

mpl_status mpl_placement_family(mpl_placement *s, mpl_buffer first)
{
    mpl_status st = MPL_OK;
    uint32_t n_parts;
    const mpl_buffer *part = parts_of(s, first, &n_parts);
    wall *walls = NULL;
    uint64_t start;

    MPL_TRY(mpl_new(s->run->ctx, walls, (size_t)s->n_members * n_parts));
    start = find_gap(s, first, walls, raise_walls(s, first, walls)).offset;
    if (s->partner_begin != NULL)
        start = join(s, first, start);
    for (uint32_t k = 0; k < n_parts; k++) {
        s->offset[part[k]] = start + s->p->inside_at[part[k]];
        s->placed[part[k]] = 1;
        MPL_TRY(s->kind->insert(s, part[k], MPL_NONE));
    }
out:
    mpl_free(s->run->ctx, walls);
    return st;
}
