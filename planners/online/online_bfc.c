/* online_bfc.c -- ONNX Runtime's arena: best fit with coalescing, in regions that double.
 *
 * Source   microsoft/onnxruntime, core/framework/bfc_arena.cc, with its defaults: sizes are
 *          multiples of 256; the smallest free chunk with room, the lowest of equals (bins of
 *          doubling size are searched upwards); a chunk is split if it has twice the bytes, or 128
 *          MiB to spare. Regions begin at 1 MiB: one is doubled until it holds the request, and a
 *          request that fits the next size as it is doubles the size after it
 *          (arena_extend_strategy kNextPowerOfTwo).
 * Differs  One stream; regions lie end to end and never shrink.
 * Cost     O(free chunks) a request.
 */
#include "planners/online/heap.h"

#define UNIT  UINT64_C(256)
#define FIRST (UINT64_C(1) << 20)
#define DEAD  (UINT64_C(128) << 20) /* spare bytes that are split off in any case */

/* Bytes of the next region. It follows from the regions so far, which all stay. */
static uint64_t next_region(mpl_heap *heap, uint64_t bytes)
{
    uint64_t next = heap->facts.n_segments == 0 ? FIRST : heap->state;
    bool doubled = false;

    while (next < bytes && next <= INT64_MAX / 2) {
        next *= 2;
        doubled = true;
    }
    heap->state = doubled || next > INT64_MAX / 2 ? next : 2 * next;
    return mpl_max_u64(next, bytes);
}

static mpl_status take(mpl_heap *heap, uint64_t asked, uint32_t align, uint32_t *out)
{
    uint64_t bytes = mpl_align_up(asked, UNIT), spare, state = heap->state;
    uint32_t id = mpl_heap_best(heap, 0, bytes);
    mpl_status st;

    (void)align; /* at most UNIT here */
    if (id == MPL_NONE) {
        st = mpl_heap_grow(heap, next_region(heap, bytes), heap->facts.n_segments, 0, &id);
        if (st != MPL_OK) {
            heap->state = state;
            return st;
        }
    }
    spare = heap->cell[id].bytes - bytes;
    if (spare >= bytes || heap->cell[id].bytes - asked >= DEAD)
        MPL_PASS(mpl_heap_cut(heap, id, bytes, NULL));
    mpl_heap_pull(heap, id);
    *out = id;
    return MPL_OK;
}

const mpl_allocator mpl_allocator_bfc = {
    .name = "bfc",
    .about =
        "as ONNX Runtime's arena: regions from 1 MiB that double, best fit, free chunks joined",
    .source = "microsoft/onnxruntime, bfc_arena.cc",
    .align = UNIT,
    .take = take,
    .give_back = mpl_heap_unfit,
};
