/* online_caching.c -- the caching allocator that frameworks use on top of cudaMalloc.
 *
 * Source   PyTorch 2, c10/cuda/CUDACachingAllocator: sizes are multiples of 512. Requests up to
 *          1 MiB come from segments of 2 MiB, those below 10 MiB from segments of 20 MiB, larger
 *          ones from segments in multiples of 2 MiB. Best fit, the lowest address among equals; a
 *          rest of at least 512 bytes, or of more than 1 MiB for large requests, is split off; free
 *          neighbours of a segment join. Where the system has no more, all segments that are
 *          unused go back to it first.
 * Differs  One stream; no max_split_size and no garbage collection, as by default. Addresses are
 *          reused lowest first.
 * Cost     O(free blocks) a request.
 */
#include "planners/online/heap.h"

#define UNIT        UINT64_C(512)
#define SMALL_SIZE  (UINT64_C(1) << 20)  /* largest small request */
#define SMALL_PIECE (UINT64_C(2) << 20)  /* segment of small requests */
#define LARGE_PIECE (UINT64_C(20) << 20) /* segment of requests below ALONE_SIZE */
#define ALONE_SIZE  (UINT64_C(10) << 20) /* from here on a request has its own segment */
#define ALONE_UNIT  (UINT64_C(2) << 20)

enum { LARGE, SMALL, N_LISTS };

/* Releases every segment that is one free block. */
static void flush(mpl_heap *heap)
{
    for (uint32_t list = 0; list < N_LISTS; list++)
        for (uint32_t id = heap->list[list], next; id != MPL_NONE; id = next) {
            next = heap->cell[id].after;
            if (mpl_heap_is_segment(heap, id))
                mpl_heap_release(heap, id);
        }
    heap->facts.n_flushes++;
}

static mpl_status add_segment(mpl_heap *heap, uint64_t bytes, uint32_t list, uint32_t *out)
{
    uint64_t piece = list == SMALL ? SMALL_PIECE : LARGE_PIECE;

    if (bytes >= ALONE_SIZE)
        piece = mpl_align_up(bytes, ALONE_UNIT);
    if (!mpl_heap_has_room(heap, piece))
        flush(heap);
    return mpl_heap_grow(heap, piece, heap->facts.n_segments, list, out);
}

static mpl_status take(mpl_heap *heap, uint64_t asked, uint32_t align, uint32_t *out)
{
    uint64_t bytes = mpl_align_up(asked, UNIT), rest;
    uint32_t list = bytes <= SMALL_SIZE ? SMALL : LARGE, id = mpl_heap_best(heap, list, bytes);

    (void)align; /* at most UNIT here */
    if (id == MPL_NONE)
        MPL_PASS(add_segment(heap, bytes, list, &id));
    rest = heap->cell[id].bytes - bytes;
    if (list == SMALL ? rest >= UNIT : rest > SMALL_SIZE)
        MPL_PASS(mpl_heap_cut(heap, id, bytes, NULL));
    mpl_heap_pull(heap, id);
    *out = id;
    return MPL_OK;
}

static void give_back(mpl_heap *heap, uint32_t id)
{
    mpl_heap_put(heap, id, heap->cell[id].list);
    mpl_heap_merge(heap, id);
}

const mpl_allocator mpl_allocator_caching = {
    .name = "caching",
    .about = "as PyTorch's CUDA allocator: cached segments of 2 and 20 MiB, best fit within them",
    .source = "PyTorch 2, CUDACachingAllocator",
    .align = UNIT,
    .take = take,
    .give_back = give_back,
};
