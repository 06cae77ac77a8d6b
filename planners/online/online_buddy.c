/* online_buddy.c -- the binary buddy system: blocks of powers of two, at multiples of their size.
 *
 * Source   Knowlton 1965; Knuth, The Art of Computer Programming, volume 1, section 2.5.
 * Differs  The arena has no end and never shrinks: where no free block is large enough, it grows
 *          by the smallest block that its top is aligned for, until one is. Of the smallest free
 *          blocks that are large enough the lowest is taken. The least block has 64 bytes.
 * Cost     O(free blocks) a request.
 */
#include "planners/online/heap.h"

#define LEAST UINT64_C(64)

static uint32_t order_of(uint64_t bytes)
{
    return 63 - (uint32_t)__builtin_clzll(bytes);
}

/* Joins a free block with its buddy, and the two with theirs, as long as these are free. */
static void merge(mpl_heap *heap, uint32_t id)
{
    for (;;) {
        const mpl_cell *cell = &heap->cell[id];
        bool is_upper = (cell->at & cell->bytes) != 0;
        uint32_t buddy = is_upper ? cell->previous : cell->next;

        if (!mpl_heap_is_free(heap, buddy) || heap->cell[buddy].bytes != cell->bytes)
            return;
        id = is_upper ? buddy : id;
        mpl_heap_join(heap, id);
        mpl_heap_move(heap, id, order_of(heap->cell[id].bytes));
    }
}

/* The lowest of the smallest free blocks that have `bytes`, a power of two. */
static uint32_t find(const mpl_heap *heap, uint64_t bytes)
{
    for (uint32_t order = order_of(bytes); order < 64; order++)
        if (heap->list[order] != MPL_NONE)
            return mpl_heap_lowest(heap, order, bytes);
    return MPL_NONE;
}

static mpl_status take(mpl_heap *heap, uint64_t asked, uint32_t align, uint32_t *out)
{
    uint64_t least = mpl_max_u64(mpl_max_u64(asked, align), LEAST), bytes = LEAST;
    uint32_t id;

    while (bytes < least)
        bytes *= 2;
    while ((id = find(heap, bytes)) == MPL_NONE) {
        uint64_t more = heap->top % bytes == 0 ? bytes : heap->top & -heap->top;

        MPL_PASS(mpl_heap_grow(heap, more, 0, order_of(more), &id));
        merge(heap, id);
    }
    while (heap->cell[id].bytes > bytes) {
        uint32_t upper, order = order_of(heap->cell[id].bytes) - 1;

        MPL_PASS(mpl_heap_cut(heap, id, heap->cell[id].bytes / 2, &upper));
        mpl_heap_move(heap, upper, order);
        mpl_heap_move(heap, id, order);
    }
    mpl_heap_pull(heap, id);
    *out = id;
    return MPL_OK;
}

static void give_back(mpl_heap *heap, uint32_t id)
{
    mpl_heap_put(heap, id, order_of(heap->cell[id].bytes));
    merge(heap, id);
}

const mpl_allocator mpl_allocator_buddy = {
    .name = "buddy",
    .about = "one growing arena of binary buddies: sizes and places are powers of two",
    .source = "Knowlton 1965",
    .take = take,
    .give_back = give_back,
};
