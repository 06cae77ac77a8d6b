/* residency_room.c -- how much of fast memory whole buffers can fill at a step. See
 * residency_priv.h.
 *
 * Idea     A bound by prices rents the capacity out as if buffers could be divided. The largest sum
 *          of whole ones that is within it is all that a plan can use, and so all it pays for.
 * Cost     O(buffers there * MPL_ROOM_UNITS / 64) a step. */
#include "planners/residency/residency_priv.h"

/* Adds `units` to each sum that is reachable; one bit a sum. */
static void add_each(uint64_t *bit, uint32_t n_words, uint64_t units)
{
    uint32_t by = (uint32_t)(units / 64), shift = (uint32_t)(units % 64);

    for (uint32_t w = n_words; w-- > by;) {
        bit[w] |= bit[w - by] << shift;
        if (shift > 0 && w > by)
            bit[w] |= bit[w - by - 1] >> (64 - shift);
    }
}

/* The largest sum of some of the sizes that is at most `capacity`, or a little more: sizes count in
 * whole units, and what is left of all of them is added. */
static uint64_t largest_sum(uint32_t n, const uint64_t *size, uint64_t capacity, uint64_t *bit)
{
    uint64_t unit = 1, left = 0, most;

    while (capacity / unit > MPL_ROOM_UNITS)
        unit *= 2;
    most = capacity / unit;
    memset(bit, 0, (MPL_ROOM_UNITS / 64 + 1) * sizeof *bit);
    bit[0] = 1;
    for (uint32_t i = 0; i < n; i++) {
        left += size[i] % unit;
        if (size[i] / unit > 0 && size[i] / unit <= most)
            add_each(bit, (uint32_t)(most / 64 + 1), size[i] / unit);
    }
    while ((bit[most / 64] >> (most % 64) & 1) == 0)
        most--;
    return mpl_min_u64(capacity, most * unit + left);
}

mpl_status mpl_residency_room(mpl_residency *residency)
{
    mpl_status st = MPL_OK;
    const mpl_residency_problem *p = residency->p;
    uint64_t *size = NULL, *bit = NULL;

    MPL_TRY(mpl_new(residency->run->ctx, residency->room, p->n_steps));
    MPL_TRY(mpl_new(residency->run->ctx, size, p->n));
    MPL_TRY(mpl_new(residency->run->ctx, bit, MPL_ROOM_UNITS / 64 + 1));
    for (uint32_t s = 0; s < p->n_steps; s++) {
        uint64_t needed = 0;
        uint32_t n = 0;

        for (mpl_buffer b = 0; b < p->n; b++)
            if (p->at[p->begin[b]] <= s && s <= p->at[p->begin[b + 1] - 1])
                size[n++] = residency->size[b];
        for (uint32_t k = residency->step_begin[s];
             p->slow_price == 0 && k < residency->step_begin[s + 1]; k++) {
            uint64_t own = residency->size[residency->owner[residency->step_use[k]]];

            needed += own;
            for (uint32_t i = 0; i < n; i++)
                if (size[i] == own) { /* it is there in any case */
                    size[i] = size[--n];
                    break;
                }
        }
        residency->room[s] = needed + largest_sum(n, size, residency->capacity - needed, bit);
    }
out:
    mpl_free_each(residency->run->ctx, size, bit);
    return st;
}

mpl_status mpl_residency_fit(mpl_residency *residency, uint64_t **most)
{
    mpl_status st = MPL_OK;
    uint64_t *size = NULL, *bit = NULL, *fit = NULL;

    MPL_TRY(mpl_new(residency->run->ctx, fit, residency->p->n_steps));
    MPL_TRY(mpl_new(residency->run->ctx, size, residency->p->n));
    MPL_TRY(mpl_new(residency->run->ctx, bit, MPL_ROOM_UNITS / 64 + 1));
    for (uint32_t s = 0; s < residency->p->n_steps; s++) {
        uint32_t n = 0;

        for (uint32_t k = residency->step_begin[s]; k < residency->step_begin[s + 1]; k++)
            size[n++] = residency->size[residency->owner[residency->step_use[k]]];
        fit[s] = largest_sum(n, size, residency->capacity, bit);
    }
    *most = fit, fit = NULL;
out:
    mpl_free_each(residency->run->ctx, fit, size, bit);
    return st;
}
