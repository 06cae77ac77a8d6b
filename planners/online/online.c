/* online.c -- the table of allocators, and what is the same for all: checks and counts. */
#include "planners/online/heap.h"

#define ALLOCATOR(name) extern const mpl_allocator mpl_allocator_##name;
#include "planners/online/allocators.def"
#undef ALLOCATOR

const mpl_allocator *const mpl_allocators[] = {
#define ALLOCATOR(name) &mpl_allocator_##name,
#include "planners/online/allocators.def"
#undef ALLOCATOR
    NULL,
};

const mpl_allocator *mpl_allocator_find(const char *name)
{
    for (const mpl_allocator *const *a = mpl_allocators; *a != NULL; a++)
        if (strcmp((*a)->name, name) == 0)
            return *a;
    return NULL;
}

double mpl_online_fragmentation(const mpl_online_facts *facts)
{
    return facts->reserved_bytes > facts->live_peak_bytes
               ? (double)(facts->reserved_bytes - facts->live_peak_bytes) /
                     (double)facts->reserved_bytes
               : 0;
}

struct mpl_online {
    const mpl_allocator *kind;
    uint64_t allocated; /* in blocks now [byte] */
    mpl_heap heap;
};

mpl_status mpl_online_new(mpl_ctx *ctx, const mpl_allocator *kind, uint64_t capacity,
                          mpl_online **out)
{
    mpl_status st = MPL_OK;
    mpl_online *online = NULL;

    MPL_TRY(mpl_new(ctx, online, 1));
    online->kind = kind;
    online->heap = (mpl_heap){.ctx = ctx,
                              .capacity = mpl_min_u64(capacity, INT64_MAX),
                              .spare = MPL_NONE,
                              .last = MPL_NONE};
    for (uint32_t i = 0; i < MPL_HEAP_LISTS; i++)
        online->heap.list[i] = MPL_NONE;
    if (kind->open != NULL)
        MPL_TRY(kind->open(&online->heap));
    *out = online, online = NULL;
out:
    mpl_online_free(ctx, online);
    return st;
}

void mpl_online_free(mpl_ctx *ctx, mpl_online *online)
{
    if (online == NULL)
        return;
    for (uint32_t i = 0; i < online->heap.n_cells && online->kind->is_real; i++)
        if (online->heap.cell[i].is_used)
            online->kind->give_back(&online->heap, i);
    mpl_free_each(ctx, online->heap.cell, online);
}

mpl_status mpl_online_take(mpl_online *online, uint64_t bytes, uint32_t align, uint32_t *block,
                           uint64_t *offset)
{
    mpl_online_facts *facts = &online->heap.facts;
    uint64_t padded = mpl_max_u64(bytes, 1), requested;
    uint32_t id;
    mpl_cell *cell;

    mpl_assert(align > 0 && (align & (align - 1)) == 0);
    if (online->kind->align > 0 && align > online->kind->align)
        padded = padded <= UINT64_MAX - align ? padded + align - online->kind->align : UINT64_MAX;
    if (padded > INT64_MAX || !mpl_add_bytes(facts->requested_bytes, bytes, &requested))
        return MPL_ERROR(online->heap.ctx, MPL_ELIMIT, "a request of %" PRIu64 " bytes", bytes);
    MPL_PASS(online->kind->take(&online->heap, padded, align, &id));
    cell = &online->heap.cell[id];
    cell->is_used = true;
    cell->asked = bytes;
    online->allocated += cell->bytes;
    facts->requested_bytes = requested;
    facts->live_bytes += bytes;
    facts->live_peak_bytes = mpl_max_u64(facts->live_peak_bytes, facts->live_bytes);
    facts->allocated_bytes = mpl_max_u64(facts->allocated_bytes, online->allocated);
    facts->n_requests++;
    *block = id;
    *offset = mpl_align_up(cell->at, align);
    if (!online->kind->is_real)
        facts->extent_bytes = mpl_max_u64(facts->extent_bytes, *offset + bytes);
    return MPL_OK;
}

mpl_status mpl_online_give_back(mpl_online *online, uint32_t block)
{
    const mpl_cell *cell;

    if (block >= online->heap.n_cells || !online->heap.cell[block].is_used)
        return MPL_ERROR(online->heap.ctx, MPL_EINVALID, "block %u is given back and is not alive",
                         block);
    cell = &online->heap.cell[block];
    online->allocated -= cell->bytes;
    online->heap.facts.live_bytes -= cell->asked;
    online->kind->give_back(&online->heap, block);
    return MPL_OK;
}

mpl_online_facts mpl_online_facts_of(const mpl_online *online)
{
    return online->heap.facts;
}
