/* online_malloc.c -- the process's own malloc, really called.
 *
 * Source   glibc: malloc(3), posix_memalign(3), mallinfo2(3).
 * Differs  What it holds is what mallinfo2 says of all arenas and mapped blocks, less what was in
 *          use before the first request and our table of blocks: free bytes that were there
 *          already count as held, and so does what else the process asks for meanwhile. Looked at
 *          after each request of 64 KiB or more (which may be mapped), and whenever the heap's end
 *          has moved.
 * Cost     malloc's.
 */
#include <malloc.h>
#include <stdlib.h>
#include <unistd.h>

#include "planners/online/heap.h"

enum { LOOK_FROM = 64 * 1024, ALIGNED = 16, BLOCKS = 4096 };

static uint64_t in_use(void)
{
    struct mallinfo2 m = mallinfo2();

    return m.uordblks + m.hblkhd;
}

/* heap->capacity: bytes in use before, but for the table; heap->top: where the heap ended. */
static void look(mpl_heap *heap)
{
    struct mallinfo2 m = mallinfo2();
    uint64_t held = m.arena + m.hblkhd, ours = malloc_usable_size(heap->cell);

    heap->top = (uintptr_t)sbrk(0);
    heap->facts.held_bytes = held > heap->capacity + ours ? held - heap->capacity - ours : 0;
    heap->facts.reserved_bytes = mpl_max_u64(heap->facts.reserved_bytes, heap->facts.held_bytes);
}

static mpl_status open_malloc(mpl_heap *heap)
{
    void *probe;
    bool tells;

    /* the table lies apart from the blocks, as long as there are no more */
    MPL_PASS(mpl_reserve(heap->ctx, heap->cell, heap->room, BLOCKS));
    heap->capacity = in_use();
    probe = malloc(LOOK_FROM);
    tells = probe != NULL && in_use() >= heap->capacity + LOOK_FROM;
    free(probe);
    heap->capacity -= malloc_usable_size(heap->cell);
    if (!tells)
        return MPL_ERROR(heap->ctx, MPL_EUNAVAIL,
                         "this process's malloc does not tell what it holds (mallinfo2 of glibc "
                         "does)");
    look(heap);
    return MPL_OK;
}

static mpl_status take(mpl_heap *heap, uint64_t bytes, uint32_t align, uint32_t *out)
{
    void *at = NULL;

    MPL_PASS(mpl_heap_add(heap, 0, 0, 0, out));
    if (align > ALIGNED ? posix_memalign(&at, align, bytes) != 0 : (at = malloc(bytes)) == NULL) {
        mpl_heap_drop(heap, *out);
        return MPL_ERROR(heap->ctx, MPL_EMEM, "out of memory: a request of %" PRIu64 " bytes",
                         bytes);
    }
    heap->cell[*out].at = (uintptr_t)at;
    heap->cell[*out].bytes = malloc_usable_size(at);
    if (bytes >= LOOK_FROM || heap->top != (uintptr_t)sbrk(0))
        look(heap);
    return MPL_OK;
}

static void give_back(mpl_heap *heap, uint32_t id)
{
    free((void *)(uintptr_t)heap->cell[id].at);
    mpl_heap_drop(heap, id);
}

const mpl_allocator mpl_allocator_malloc = {
    .name = "malloc",
    .about = "the process's own malloc, really called; reserved is what mallinfo2 says it held",
    .source = "glibc, mallinfo2(3)",
    .is_real = true,
    .open = open_malloc,
    .take = take,
    .give_back = give_back,
};
