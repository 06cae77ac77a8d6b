/* heap.c -- cells by address and their lists. See heap.h. */
#include "planners/online/heap.h"

mpl_status mpl_heap_add(mpl_heap *h, uint64_t at, uint64_t bytes, uint32_t segment, uint32_t *out)
{
    uint32_t id = h->spare;

    if (id != MPL_NONE) {
        h->spare = h->cell[id].after;
    } else {
        if (h->n_cells == MPL_NONE)
            return MPL_ERROR(h->ctx, MPL_ELIMIT, "more than 2^32 - 1 blocks alive and free");
        MPL_PASS(mpl_reserve(h->ctx, h->cell, h->room, (size_t)h->n_cells + 1));
        id = h->n_cells++;
    }
    h->cell[id] = (mpl_cell){
        .at = at, .bytes = bytes, .segment = segment, .previous = MPL_NONE, .next = MPL_NONE};
    *out = id;
    return MPL_OK;
}

void mpl_heap_drop(mpl_heap *h, uint32_t id)
{
    h->cell[id] = (mpl_cell){.after = h->spare};
    h->spare = id;
}

/* ---- lists ---- */

void mpl_heap_put(mpl_heap *h, uint32_t id, uint32_t list)
{
    mpl_cell *c = &h->cell[id];

    c->is_used = false;
    c->list = list;
    c->before = MPL_NONE;
    c->after = h->list[list];
    if (c->after != MPL_NONE)
        h->cell[c->after].before = id;
    h->list[list] = id;
}

void mpl_heap_pull(mpl_heap *h, uint32_t id)
{
    const mpl_cell *c = &h->cell[id];

    if (c->before != MPL_NONE)
        h->cell[c->before].after = c->after;
    else
        h->list[c->list] = c->after;
    if (c->after != MPL_NONE)
        h->cell[c->after].before = c->before;
}

void mpl_heap_move(mpl_heap *h, uint32_t id, uint32_t list)
{
    mpl_heap_pull(h, id);
    mpl_heap_put(h, id, list);
}

uint32_t mpl_heap_best(const mpl_heap *h, uint32_t list, uint64_t bytes)
{
    uint32_t best = MPL_NONE;

    for (uint32_t i = h->list[list]; i != MPL_NONE; i = h->cell[i].after) {
        const mpl_cell *c = &h->cell[i], *b = best != MPL_NONE ? &h->cell[best] : NULL;

        if (c->bytes >= bytes &&
            (b == NULL || c->bytes < b->bytes || (c->bytes == b->bytes && c->at < b->at)))
            best = i;
    }
    return best;
}

uint32_t mpl_heap_lowest(const mpl_heap *h, uint32_t list, uint64_t bytes)
{
    uint32_t lowest = MPL_NONE;

    for (uint32_t i = h->list[list]; i != MPL_NONE; i = h->cell[i].after)
        if (h->cell[i].bytes >= bytes && (lowest == MPL_NONE || h->cell[i].at < h->cell[lowest].at))
            lowest = i;
    return lowest;
}

/* ---- cells by address ---- */

mpl_status mpl_heap_cut(mpl_heap *h, uint32_t id, uint64_t bytes, uint32_t *rest)
{
    mpl_cell *c;
    uint32_t tail = MPL_NONE;

    MPL_PASS(mpl_heap_add(h, h->cell[id].at + bytes, h->cell[id].bytes - bytes, h->cell[id].segment,
                          &tail));
    c = &h->cell[id];
    c->bytes = bytes;
    h->facts.n_splits++;
    h->cell[tail].previous = id;
    h->cell[tail].next = c->next;
    if (c->next != MPL_NONE)
        h->cell[c->next].previous = tail;
    else
        h->last = tail;
    c->next = tail;
    mpl_heap_put(h, tail, c->list);
    if (rest != NULL)
        *rest = tail;
    return MPL_OK;
}

void mpl_heap_join(mpl_heap *h, uint32_t id)
{
    mpl_cell *c = &h->cell[id];
    uint32_t next = c->next;

    c->bytes += h->cell[next].bytes;
    c->next = h->cell[next].next;
    if (c->next != MPL_NONE)
        h->cell[c->next].previous = id;
    else
        h->last = id;
    mpl_heap_pull(h, next);
    mpl_heap_drop(h, next);
}

static bool can_join(const mpl_heap *h, uint32_t a, uint32_t b)
{
    return a != MPL_NONE && b != MPL_NONE && !h->cell[a].is_used && !h->cell[b].is_used &&
           h->cell[a].list == h->cell[b].list && h->cell[a].segment == h->cell[b].segment;
}

uint32_t mpl_heap_merge(mpl_heap *h, uint32_t id)
{
    uint32_t previous = h->cell[id].previous;

    if (can_join(h, id, h->cell[id].next))
        mpl_heap_join(h, id);
    if (!can_join(h, previous, id))
        return id;
    mpl_heap_join(h, previous);
    return previous;
}

bool mpl_heap_is_segment(const mpl_heap *h, uint32_t id)
{
    const mpl_cell *c = &h->cell[id];

    return (c->previous == MPL_NONE || h->cell[c->previous].segment != c->segment) &&
           (c->next == MPL_NONE || h->cell[c->next].segment != c->segment);
}

/* ---- the system ---- */

bool mpl_heap_has_room(const mpl_heap *h, uint64_t bytes)
{
    return bytes <= h->capacity - h->top || mpl_heap_lowest(h, MPL_HEAP_HOLES, bytes) != MPL_NONE;
}

static mpl_status add_on_top(mpl_heap *h, uint64_t bytes, uint32_t segment, uint32_t *out)
{
    if (bytes > h->capacity - h->top)
        return MPL_ERROR(h->ctx, MPL_ELIMIT,
                         "the allocator holds %" PRIu64 " of %" PRIu64 " bytes and needs %" PRIu64
                         " more",
                         h->facts.held_bytes, h->capacity, bytes);
    MPL_PASS(mpl_heap_add(h, h->top, bytes, segment, out));
    h->cell[*out].previous = h->last;
    if (h->last != MPL_NONE)
        h->cell[h->last].next = *out;
    h->last = *out;
    h->top += bytes;
    return MPL_OK;
}

mpl_status mpl_heap_grow(mpl_heap *h, uint64_t bytes, uint32_t segment, uint32_t list,
                         uint32_t *out)
{
    uint32_t id = mpl_heap_lowest(h, MPL_HEAP_HOLES, bytes);

    if (id == MPL_NONE) {
        MPL_PASS(add_on_top(h, bytes, segment, &id));
    } else {
        if (h->cell[id].bytes > bytes)
            MPL_PASS(mpl_heap_cut(h, id, bytes, NULL));
        mpl_heap_pull(h, id);
        h->cell[id].segment = segment;
    }
    mpl_heap_put(h, id, list);
    h->facts.n_segments++;
    h->facts.held_bytes += bytes;
    h->facts.reserved_bytes = mpl_max_u64(h->facts.reserved_bytes, h->facts.held_bytes);
    *out = id;
    return MPL_OK;
}

void mpl_heap_release(mpl_heap *h, uint32_t id)
{
    h->facts.held_bytes -= h->cell[id].bytes;
    mpl_heap_move(h, id, MPL_HEAP_HOLES);
    h->cell[id].segment = MPL_NONE;
    id = mpl_heap_merge(h, id);
    if (h->cell[id].next != MPL_NONE)
        return;
    h->top = h->cell[id].at;
    h->last = h->cell[id].previous;
    if (h->last != MPL_NONE)
        h->cell[h->last].next = MPL_NONE;
    mpl_heap_pull(h, id);
    mpl_heap_drop(h, id);
}
