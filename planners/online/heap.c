/* heap.c -- cells by address and their lists. See heap.h. */
#include "planners/online/heap.h"

mpl_status mpl_heap_add(mpl_heap *heap, uint64_t at, uint64_t bytes, uint32_t segment,
                        uint32_t *out)
{
    uint32_t id = heap->spare;

    if (id != MPL_NONE) {
        heap->spare = heap->cell[id].after;
    } else {
        if (heap->n_cells == MPL_NONE)
            return MPL_ERROR(heap->ctx, MPL_ELIMIT, "more than 2^32 - 1 blocks alive and free");
        MPL_PASS(mpl_reserve(heap->ctx, heap->cell, heap->room, (size_t)heap->n_cells + 1));
        id = heap->n_cells++;
    }
    heap->cell[id] = (mpl_cell){
        .at = at, .bytes = bytes, .segment = segment, .previous = MPL_NONE, .next = MPL_NONE};
    *out = id;
    return MPL_OK;
}

void mpl_heap_drop(mpl_heap *heap, uint32_t id)
{
    heap->cell[id] = (mpl_cell){.after = heap->spare};
    heap->spare = id;
}

/* ---- lists ---- */

void mpl_heap_put(mpl_heap *heap, uint32_t id, uint32_t list)
{
    mpl_cell *cell = &heap->cell[id];

    cell->is_used = false;
    cell->list = list;
    cell->before = MPL_NONE;
    cell->after = heap->list[list];
    if (cell->after != MPL_NONE)
        heap->cell[cell->after].before = id;
    heap->list[list] = id;
}

void mpl_heap_pull(mpl_heap *heap, uint32_t id)
{
    const mpl_cell *cell = &heap->cell[id];

    if (cell->before != MPL_NONE)
        heap->cell[cell->before].after = cell->after;
    else
        heap->list[cell->list] = cell->after;
    if (cell->after != MPL_NONE)
        heap->cell[cell->after].before = cell->before;
}

void mpl_heap_move(mpl_heap *heap, uint32_t id, uint32_t list)
{
    mpl_heap_pull(heap, id);
    mpl_heap_put(heap, id, list);
}

uint32_t mpl_heap_best(const mpl_heap *heap, uint32_t list, uint64_t bytes)
{
    uint32_t best = MPL_NONE;

    for (uint32_t i = heap->list[list]; i != MPL_NONE; i = heap->cell[i].after) {
        const mpl_cell *cell = &heap->cell[i], *b = best != MPL_NONE ? &heap->cell[best] : NULL;

        if (cell->bytes >= bytes &&
            (b == NULL || cell->bytes < b->bytes || (cell->bytes == b->bytes && cell->at < b->at)))
            best = i;
    }
    return best;
}

uint32_t mpl_heap_lowest(const mpl_heap *heap, uint32_t list, uint64_t bytes)
{
    uint32_t lowest = MPL_NONE;

    for (uint32_t i = heap->list[list]; i != MPL_NONE; i = heap->cell[i].after)
        if (heap->cell[i].bytes >= bytes &&
            (lowest == MPL_NONE || heap->cell[i].at < heap->cell[lowest].at))
            lowest = i;
    return lowest;
}

/* ---- cells by address ---- */

mpl_status mpl_heap_cut(mpl_heap *heap, uint32_t id, uint64_t bytes, uint32_t *rest)
{
    mpl_cell *cell;
    uint32_t tail = MPL_NONE;

    MPL_PASS(mpl_heap_add(heap, heap->cell[id].at + bytes, heap->cell[id].bytes - bytes,
                          heap->cell[id].segment, &tail));
    cell = &heap->cell[id];
    cell->bytes = bytes;
    heap->facts.n_splits++;
    heap->cell[tail].previous = id;
    heap->cell[tail].next = cell->next;
    if (cell->next != MPL_NONE)
        heap->cell[cell->next].previous = tail;
    else
        heap->last = tail;
    cell->next = tail;
    mpl_heap_put(heap, tail, cell->list);
    if (rest != NULL)
        *rest = tail;
    return MPL_OK;
}

void mpl_heap_join(mpl_heap *heap, uint32_t id)
{
    mpl_cell *cell = &heap->cell[id];
    uint32_t next = cell->next;

    cell->bytes += heap->cell[next].bytes;
    cell->next = heap->cell[next].next;
    if (cell->next != MPL_NONE)
        heap->cell[cell->next].previous = id;
    else
        heap->last = id;
    mpl_heap_pull(heap, next);
    mpl_heap_drop(heap, next);
}

static bool can_join(const mpl_heap *heap, uint32_t a, uint32_t b)
{
    return a != MPL_NONE && b != MPL_NONE && !heap->cell[a].is_used && !heap->cell[b].is_used &&
           heap->cell[a].list == heap->cell[b].list &&
           heap->cell[a].segment == heap->cell[b].segment;
}

uint32_t mpl_heap_merge(mpl_heap *heap, uint32_t id)
{
    uint32_t previous = heap->cell[id].previous;

    if (can_join(heap, id, heap->cell[id].next))
        mpl_heap_join(heap, id);
    if (!can_join(heap, previous, id))
        return id;
    mpl_heap_join(heap, previous);
    return previous;
}

bool mpl_heap_is_segment(const mpl_heap *heap, uint32_t id)
{
    const mpl_cell *cell = &heap->cell[id];

    return (cell->previous == MPL_NONE || heap->cell[cell->previous].segment != cell->segment) &&
           (cell->next == MPL_NONE || heap->cell[cell->next].segment != cell->segment);
}

/* ---- the system ---- */

bool mpl_heap_has_room(const mpl_heap *heap, uint64_t bytes)
{
    return bytes <= heap->capacity - heap->top ||
           mpl_heap_lowest(heap, MPL_HEAP_HOLES, bytes) != MPL_NONE;
}

static mpl_status add_on_top(mpl_heap *heap, uint64_t bytes, uint32_t segment, uint32_t *out)
{
    if (bytes > heap->capacity - heap->top)
        return MPL_ERROR(heap->ctx, MPL_ELIMIT,
                         "the allocator holds %" PRIu64 " of %" PRIu64 " bytes and needs %" PRIu64
                         " more",
                         heap->facts.held_bytes, heap->capacity, bytes);
    MPL_PASS(mpl_heap_add(heap, heap->top, bytes, segment, out));
    heap->cell[*out].previous = heap->last;
    if (heap->last != MPL_NONE)
        heap->cell[heap->last].next = *out;
    heap->last = *out;
    heap->top += bytes;
    return MPL_OK;
}

mpl_status mpl_heap_grow(mpl_heap *heap, uint64_t bytes, uint32_t segment, uint32_t list,
                         uint32_t *out)
{
    uint32_t id = mpl_heap_lowest(heap, MPL_HEAP_HOLES, bytes);

    if (id == MPL_NONE) {
        MPL_PASS(add_on_top(heap, bytes, segment, &id));
    } else {
        if (heap->cell[id].bytes > bytes)
            MPL_PASS(mpl_heap_cut(heap, id, bytes, NULL));
        mpl_heap_pull(heap, id);
        heap->cell[id].segment = segment;
    }
    mpl_heap_put(heap, id, list);
    heap->facts.n_segments++;
    heap->facts.held_bytes += bytes;
    heap->facts.reserved_bytes = mpl_max_u64(heap->facts.reserved_bytes, heap->facts.held_bytes);
    *out = id;
    return MPL_OK;
}

void mpl_heap_release(mpl_heap *heap, uint32_t id)
{
    heap->facts.held_bytes -= heap->cell[id].bytes;
    mpl_heap_move(heap, id, MPL_HEAP_HOLES);
    heap->cell[id].segment = MPL_NONE;
    id = mpl_heap_merge(heap, id);
    if (heap->cell[id].next != MPL_NONE)
        return;
    heap->top = heap->cell[id].at;
    heap->last = heap->cell[id].previous;
    if (heap->last != MPL_NONE)
        heap->cell[heap->last].next = MPL_NONE;
    mpl_heap_pull(heap, id);
    mpl_heap_drop(heap, id);
}
