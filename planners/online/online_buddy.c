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
static void merge(mpl_heap *h, uint32_t id)
{
    for (;;) {
        const mpl_cell *c = &h->cell[id];
        bool is_upper = (c->at & c->bytes) != 0;
        uint32_t buddy = is_upper ? c->previous : c->next;

        if (!mpl_heap_is_free(h, buddy) || h->cell[buddy].bytes != c->bytes)
            return;
        id = is_upper ? buddy : id;
        mpl_heap_join(h, id);
        mpl_heap_move(h, id, order_of(h->cell[id].bytes));
    }
}

/* The lowest of the smallest free blocks that have `bytes`, a power of two. */
static uint32_t find(const mpl_heap *h, uint64_t bytes)
{
    for (uint32_t order = order_of(bytes); order < 64; order++)
        if (h->list[order] != MPL_NONE)
            return mpl_heap_lowest(h, order, bytes);
    return MPL_NONE;
}

static mpl_status take(mpl_heap *h, uint64_t asked, uint32_t align, uint32_t *out)
{
    uint64_t least = mpl_max_u64(mpl_max_u64(asked, align), LEAST), bytes = LEAST;
    uint32_t id;

    while (bytes < least)
        bytes *= 2;
    while ((id = find(h, bytes)) == MPL_NONE) {
        uint64_t more = h->top % bytes == 0 ? bytes : h->top & -h->top;

        MPL_PASS(mpl_heap_grow(h, more, 0, order_of(more), &id));
        merge(h, id);
    }
    while (h->cell[id].bytes > bytes) {
        uint32_t upper, order = order_of(h->cell[id].bytes) - 1;

        MPL_PASS(mpl_heap_cut(h, id, h->cell[id].bytes / 2, &upper));
        mpl_heap_move(h, upper, order);
        mpl_heap_move(h, id, order);
    }
    mpl_heap_pull(h, id);
    *out = id;
    return MPL_OK;
}

static void give_back(mpl_heap *h, uint32_t id)
{
    mpl_heap_put(h, id, order_of(h->cell[id].bytes));
    merge(h, id);
}

const mpl_allocator mpl_allocator_buddy = {
    .name = "buddy",
    .about = "one growing arena of binary buddies: sizes and places are powers of two",
    .source = "Knowlton 1965",
    .take = take,
    .give_back = give_back,
};
