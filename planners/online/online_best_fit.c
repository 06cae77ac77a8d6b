/* online_best_fit.c -- one arena that grows: the smallest hole that is large enough.
 *
 * Source   Knuth, The Art of Computer Programming, volume 1, section 2.5: best fit, with free
 *          neighbours joined at once.
 * Differs  The arena has no end: where no hole is large enough it grows by what is missing above
 *          its last free bytes. It never shrinks. The lowest hole among equals.
 * Cost     O(holes) a request.
 */
#include "planners/online/heap.h"

/* The hole, and how far behind its begin the block lies; MPL_NONE: no hole has room. */
static uint32_t find(const mpl_heap *h, uint64_t bytes, uint32_t align, uint64_t *front)
{
    uint32_t best = MPL_NONE;

    for (uint32_t i = h->list[0]; i != MPL_NONE; i = h->cell[i].after) {
        const mpl_cell *c = &h->cell[i], *b = best != MPL_NONE ? &h->cell[best] : NULL;
        uint64_t before = mpl_align_up(c->at, align) - c->at;

        if (before > c->bytes || bytes > c->bytes - before ||
            (b != NULL && (c->bytes > b->bytes || (c->bytes == b->bytes && c->at > b->at))))
            continue;
        best = i;
        *front = before;
    }
    return best;
}

/* The arena's last cell, grown so that the block fits. */
static mpl_status grow(mpl_heap *h, uint64_t bytes, uint32_t align, uint32_t *out, uint64_t *front)
{
    bool is_open = mpl_heap_is_free(h, h->last);
    uint64_t from = is_open ? h->cell[h->last].at : h->top, begin = mpl_align_up(from, align), end;
    uint32_t more;

    if (begin < from || !mpl_add_bytes(begin, bytes, &end))
        return MPL_ERROR(h->ctx, MPL_ELIMIT, "a request of %" PRIu64 " bytes", bytes);
    MPL_PASS(mpl_heap_grow(h, end - h->top, 0, 0, &more));
    *out = mpl_heap_merge(h, more);
    *front = begin - from;
    return MPL_OK;
}

static mpl_status take(mpl_heap *h, uint64_t bytes, uint32_t align, uint32_t *out)
{
    uint64_t front = 0;
    uint32_t id = find(h, bytes, align, &front);

    if (id == MPL_NONE)
        MPL_PASS(grow(h, bytes, align, &id, &front));
    if (front > 0)
        MPL_PASS(mpl_heap_cut(h, id, front, &id));
    if (h->cell[id].bytes > bytes)
        MPL_PASS(mpl_heap_cut(h, id, bytes, NULL));
    mpl_heap_pull(h, id);
    *out = id;
    return MPL_OK;
}

static void give_back(mpl_heap *h, uint32_t id)
{
    mpl_heap_put(h, id, 0);
    mpl_heap_merge(h, id);
}

const mpl_allocator mpl_allocator_best_fit = {
    .name = "best_fit",
    .about = "one growing arena: the smallest hole that is large enough, free neighbours joined",
    .source = "Knuth 1997, 2.5",
    .take = take,
    .give_back = give_back,
};
