/* online_slab.c -- size classes, each with slabs of equal objects.
 *
 * Source   Bonwick 1994, for slabs; Evans 2006 (jemalloc) for classes of which four lie between a
 *          power of two and the next: 64, 128, 192, 256, 320, 384, 448, 512, 640, ..
 * Differs  A slab has 8 objects where they come to at most 64 KiB, else as many as do, at least
 *          one. The lowest free object of the class is taken. An empty slab goes back to the
 *          system at once; its addresses serve the next slab that fits, of any class.
 * Cost     O(free objects of the class + holes) a request.
 */
#include "planners/online/heap.h"

#define UNIT      UINT64_C(64)
#define MOST_SLAB (UINT64_C(64) << 10)
enum { MOST_OBJECTS = 8 };

/* Rounds up to a class; *list is its number. */
static uint64_t class_of(uint64_t bytes, uint32_t *list)
{
    uint32_t power = 63 - (uint32_t)__builtin_clzll(mpl_max_u64(bytes - 1, 1));
    uint64_t step = power < 8 ? UNIT : (UINT64_C(1) << power) / 4, size = mpl_align_up(bytes, step);

    *list = power < 8 ? (uint32_t)(size / UNIT) - 1
                      : 4 * (power - 7) + (uint32_t)(((size - 1) - (UINT64_C(1) << power)) / step);
    return size;
}

static mpl_status take(mpl_heap *heap, uint64_t asked, uint32_t align, uint32_t *out)
{
    uint32_t list, id;
    uint64_t bytes = class_of(asked, &list), n = MOST_SLAB / bytes;

    (void)align; /* at most UNIT here */
    n = mpl_max_u64(mpl_min_u64(n, MOST_OBJECTS), 1);
    id = mpl_heap_lowest(heap, list, bytes);
    if (id == MPL_NONE)
        MPL_PASS(mpl_heap_grow(heap, n * bytes, heap->facts.n_segments, list, &id));
    if (heap->cell[id].bytes > bytes)
        MPL_PASS(mpl_heap_cut(heap, id, bytes, NULL));
    mpl_heap_pull(heap, id);
    *out = id;
    return MPL_OK;
}

static void give_back(mpl_heap *heap, uint32_t id)
{
    mpl_heap_put(heap, id, heap->cell[id].list);
    id = mpl_heap_merge(heap, id);
    if (mpl_heap_is_segment(heap, id))
        mpl_heap_release(heap, id);
}

const mpl_allocator mpl_allocator_slab = {
    .name = "slab",
    .about = "size classes, four to a doubling, in slabs that go back when they are empty",
    .source = "Bonwick 1994",
    .align = UNIT,
    .take = take,
    .give_back = give_back,
};
