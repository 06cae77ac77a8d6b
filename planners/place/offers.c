/* offers.c -- shared by the structures that know the free bytes. See placement.h. */
#include "planners/place/placement.h"

uint64_t mpl_placement_end(const mpl_placement *placement, mpl_buffer b, uint64_t offset)
{
    return mpl_align_up(offset + placement->p->bytes[b], placement->grain);
}

bool mpl_placement_partners(const mpl_placement *placement, mpl_buffer a, mpl_buffer b)
{
    for (uint32_t i = placement->partner_begin[a]; i < placement->partner_begin[a + 1]; i++)
        if (placement->partner[i] == b)
            return true;
    return false;
}

bool mpl_placement_offer(const mpl_placement *placement, mpl_gap gap, mpl_gap *best)
{
    if (placement->fit == MPL_FIT_LOWEST) {
        *best = gap;
        return true;
    }
    if (gap.spare < best->spare)
        *best = gap;
    return best->spare == 0;
}
