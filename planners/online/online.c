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

double mpl_online_fragmentation(const mpl_online_facts *f)
{
    return f->reserved_bytes > f->live_peak_bytes
               ? (double)(f->reserved_bytes - f->live_peak_bytes) / (double)f->reserved_bytes
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
    mpl_online *o = NULL;

    MPL_TRY(mpl_new(ctx, o, 1));
    o->kind = kind;
    o->heap = (mpl_heap){.ctx = ctx,
                         .capacity = mpl_min_u64(capacity, INT64_MAX),
                         .spare = MPL_NONE,
                         .last = MPL_NONE};
    for (uint32_t i = 0; i < MPL_HEAP_LISTS; i++)
        o->heap.list[i] = MPL_NONE;
    if (kind->open != NULL)
        MPL_TRY(kind->open(&o->heap));
    *out = o, o = NULL;
out:
    mpl_online_free(ctx, o);
    return st;
}

void mpl_online_free(mpl_ctx *ctx, mpl_online *o)
{
    if (o == NULL)
        return;
    for (uint32_t i = 0; i < o->heap.n_cells && o->kind->is_real; i++)
        if (o->heap.cell[i].is_used)
            o->kind->give_back(&o->heap, i);
    mpl_free_each(ctx, o->heap.cell, o);
}

mpl_status mpl_online_take(mpl_online *o, uint64_t bytes, uint32_t align, uint32_t *block,
                           uint64_t *offset)
{
    mpl_online_facts *f = &o->heap.facts;
    uint64_t padded = mpl_max_u64(bytes, 1), requested;
    uint32_t id;
    mpl_cell *c;

    mpl_assert(align > 0 && (align & (align - 1)) == 0);
    if (o->kind->align > 0 && align > o->kind->align)
        padded = padded <= UINT64_MAX - align ? padded + align - o->kind->align : UINT64_MAX;
    if (padded > INT64_MAX || !mpl_add_bytes(f->requested_bytes, bytes, &requested))
        return MPL_ERROR(o->heap.ctx, MPL_ELIMIT, "a request of %" PRIu64 " bytes", bytes);
    MPL_PASS(o->kind->take(&o->heap, padded, align, &id));
    c = &o->heap.cell[id];
    c->is_used = true;
    c->asked = bytes;
    o->allocated += c->bytes;
    f->requested_bytes = requested;
    f->live_bytes += bytes;
    f->live_peak_bytes = mpl_max_u64(f->live_peak_bytes, f->live_bytes);
    f->allocated_bytes = mpl_max_u64(f->allocated_bytes, o->allocated);
    f->n_requests++;
    *block = id;
    *offset = mpl_align_up(c->at, align);
    if (!o->kind->is_real)
        f->extent_bytes = mpl_max_u64(f->extent_bytes, *offset + bytes);
    return MPL_OK;
}

mpl_status mpl_online_give_back(mpl_online *o, uint32_t block)
{
    const mpl_cell *c;

    if (block >= o->heap.n_cells || !o->heap.cell[block].is_used)
        return MPL_ERROR(o->heap.ctx, MPL_EINVALID, "block %u is given back and is not alive",
                         block);
    c = &o->heap.cell[block];
    o->allocated -= c->bytes;
    o->heap.facts.live_bytes -= c->asked;
    o->kind->give_back(&o->heap, block);
    return MPL_OK;
}

mpl_online_facts mpl_online_facts_of(const mpl_online *o)
{
    return o->heap.facts;
}
