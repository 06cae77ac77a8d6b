/* heap_fit.c -- one arena that grows, with holes: best fit at any alignment. See heap.h. */
#include "planners/online/heap.h"

/* The hole, and how far behind its begin the block lies; MPL_NONE: no hole has room. */
static uint32_t find(const mpl_heap *heap, uint64_t bytes, uint32_t align, bool last_of_all,
                     uint64_t *front)
{
    uint32_t best = MPL_NONE;

    for (uint32_t i = heap->list[0]; i != MPL_NONE; i = heap->cell[i].after) {
        const mpl_cell *cell = &heap->cell[i], *b = best != MPL_NONE ? &heap->cell[best] : NULL;
        uint64_t before = mpl_align_up(cell->at, align) - cell->at;

        if (before > cell->bytes || bytes > cell->bytes - before ||
            (last_of_all && i == heap->last))
            continue;
        if (b != NULL &&
            (cell->bytes > b->bytes ||
             (cell->bytes == b->bytes && (last_of_all ? cell->at < b->at : cell->at > b->at))))
            continue;
        best = i;
        *front = before;
    }
    return best;
}

/* The arena's last cell, grown if need be so that the block fits. */
static mpl_status grow(mpl_heap *heap, uint64_t bytes, uint32_t align, uint32_t *out,
                       uint64_t *front)
{
    bool is_open = mpl_heap_is_free(heap, heap->last);
    uint64_t from = is_open ? heap->cell[heap->last].at : heap->top,
             begin = mpl_align_up(from, align), end;
    uint32_t more;

    if (begin < from || !mpl_add_bytes(begin, bytes, &end))
        return MPL_ERROR(heap->ctx, MPL_ELIMIT, "a request of %" PRIu64 " bytes", bytes);
    *out = heap->last;
    if (end > heap->top) {
        MPL_PASS(mpl_heap_grow(heap, end - heap->top, 0, 0, &more));
        *out = mpl_heap_merge(heap, more);
    }
    *front = begin - from;
    return MPL_OK;
}

mpl_status mpl_heap_fit(mpl_heap *heap, uint64_t bytes, uint32_t align, bool last_of_all,
                        uint32_t *out)
{
    uint64_t front = 0;
    uint32_t id = find(heap, bytes, align, last_of_all, &front);

    if (id == MPL_NONE)
        MPL_PASS(grow(heap, bytes, align, &id, &front));
    if (front > 0)
        MPL_PASS(mpl_heap_cut(heap, id, front, &id));
    if (heap->cell[id].bytes > bytes)
        MPL_PASS(mpl_heap_cut(heap, id, bytes, NULL));
    mpl_heap_pull(heap, id);
    *out = id;
    return MPL_OK;
}

void mpl_heap_unfit(mpl_heap *heap, uint32_t id)
{
    mpl_heap_put(heap, id, 0);
    mpl_heap_merge(heap, id);
}
