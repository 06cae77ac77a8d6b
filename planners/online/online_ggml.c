/* online_ggml.c -- ggml's allocator of a graph's tensors, of llama.cpp and whisper.cpp.
 *
 * Source   ggml-org/llama.cpp, ggml/src/ggml-alloc.c, ggml_dyn_tallocr_alloc: the smallest free
 *          block that is large enough, the last of equals by address, and the block at the arena's
 *          end only where there is no other.
 * Differs  One buffer without end; a request is rounded up to its own alignment.
 * Cost     O(holes) a request.
 */
#include "planners/online/heap.h"

static mpl_status take(mpl_heap *heap, uint64_t bytes, uint32_t align, uint32_t *out)
{
    return mpl_heap_fit(heap, mpl_align_up(bytes, align), align, true, out);
}

const mpl_allocator mpl_allocator_ggml = {
    .name = "ggml",
    .about = "ggml's graph allocator: the smallest hole, the highest of equals, the end last",
    .source = "ggml-org/llama.cpp, ggml-alloc.c",
    .take = take,
    .give_back = mpl_heap_unfit,
};
