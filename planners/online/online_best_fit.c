/* online_best_fit.c -- one arena that grows: the smallest hole that is large enough.
 *
 * Source   Knuth, The Art of Computer Programming, volume 1, section 2.5: best fit, with free
 *          neighbours joined at once.
 * Differs  The arena has no end: where no hole is large enough it grows by what is missing above
 *          its last free bytes. It never shrinks. The lowest hole among equals.
 * Cost     O(holes) a request.
 */
#include "planners/online/heap.h"

static mpl_status take(mpl_heap *heap, uint64_t bytes, uint32_t align, uint32_t *out)
{
    return mpl_heap_fit(heap, bytes, align, false, out);
}

const mpl_allocator mpl_allocator_best_fit = {
    .name = "best_fit",
    .about = "one growing arena: the smallest hole that is large enough, free neighbours joined",
    .source = "Knuth 1997, 2.5",
    .take = take,
    .give_back = mpl_heap_unfit,
};
