/* heap_fit.c -- one arena that grows, with holes: best fit at any alignment. See heap.h. */
#include "planners/online/heap.h"

/* The hole, and how far behind its begin the block lies; MPL_NONE: no hole has room. */
static uint32_t find(const mpl_heap *h, uint64_t bytes, uint32_t align, bool last_of_all,
                     uint64_t *front)
{
    uint32_t best = MPL_NONE;

    for (uint32_t i = h->list[0]; i != MPL_NONE; i = h->cell[i].after) {
        const mpl_cell *c = &h->cell[i], *b = best != MPL_NONE ? &h->cell[best] : NULL;
        uint64_t before = mpl_align_up(c->at, align) - c->at;

        if (before > c->bytes || bytes > c->bytes - before || (last_of_all && i == h->last))
            continue;
        if (b != NULL && (c->bytes > b->bytes ||
                          (c->bytes == b->bytes && (last_of_all ? c->at < b->at : c->at > b->at))))
            continue;
        best = i;
        *front = before;
    }
    return best;
}

/* The arena's last cell, grown if need be so that the block fits. */
static mpl_status grow(mpl_heap *h, uint64_t bytes, uint32_t align, uint32_t *out, uint64_t *front)
{
    bool is_open = mpl_heap_is_free(h, h->last);
    uint64_t from = is_open ? h->cell[h->last].at : h->top, begin = mpl_align_up(from, align), end;
    uint32_t more;

    if (begin < from || !mpl_add_bytes(begin, bytes, &end))
        return MPL_ERROR(h->ctx, MPL_ELIMIT, "a request of %" PRIu64 " bytes", bytes);
    *out = h->last;
    if (end > h->top) {
        MPL_PASS(mpl_heap_grow(h, end - h->top, 0, 0, &more));
        *out = mpl_heap_merge(h, more);
    }
    *front = begin - from;
    return MPL_OK;
}

mpl_status mpl_heap_fit(mpl_heap *h, uint64_t bytes, uint32_t align, bool last_of_all,
                        uint32_t *out)
{
    uint64_t front = 0;
    uint32_t id = find(h, bytes, align, last_of_all, &front);

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

void mpl_heap_unfit(mpl_heap *h, uint32_t id)
{
    mpl_heap_put(h, id, 0);
    mpl_heap_merge(h, id);
}
