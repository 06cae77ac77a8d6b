/* heap.h -- what the allocators share: a range of addresses that cells tile, and lists of the free
 * ones. Private to this folder. */
#pragma once

#include "planners/online/online.h"

enum {
    MPL_HEAP_HOLES = 255, /* the list of cells that the system has back */
    MPL_HEAP_LISTS = 256  /* the others are the allocator's own */
};

typedef struct mpl_cell {
    uint64_t at, bytes;      /* [byte] */
    uint64_t asked;          /* in use: what the caller asked for [byte] */
    uint32_t previous, next; /* neighbours by address; MPL_NONE at the ends */
    uint32_t segment;        /* taken from the system at once; cells join within it */
    uint32_t list;           /* that it is in while it is free */
    uint32_t before, after;  /* neighbours in the list; after a spare id, the next spare one */
    bool is_used;
} mpl_cell;

typedef struct mpl_heap {
    mpl_ctx *ctx;
    mpl_cell *cell;
    size_t room;
    uint32_t n_cells, spare; /* ids so far; the first spare id */
    uint32_t last;           /* the cell that ends at `top` */
    uint32_t list[MPL_HEAP_LISTS];
    uint64_t top, capacity; /* [byte] */
    uint64_t state;         /* the allocator's own, 0 at first */
    mpl_online_facts facts;
} mpl_heap;

/* A new cell in no list, with no neighbours. */
mpl_status mpl_heap_add(mpl_heap *heap, uint64_t at, uint64_t bytes, uint32_t segment,
                        uint32_t *out);
/* Makes the id spare. */
void mpl_heap_drop(mpl_heap *heap, uint32_t id);

void mpl_heap_put(mpl_heap *heap, uint32_t id, uint32_t list);  /* into a list, as a free cell */
void mpl_heap_pull(mpl_heap *heap, uint32_t id);                /* out of its list */
void mpl_heap_move(mpl_heap *heap, uint32_t id, uint32_t list); /* the two */

/* The smallest cell of a list with room for `bytes`, the lowest among equals; MPL_NONE: none. */
uint32_t mpl_heap_best(const mpl_heap *heap, uint32_t list, uint64_t bytes);
/* The lowest of them. */
uint32_t mpl_heap_lowest(const mpl_heap *heap, uint32_t list, uint64_t bytes);

/* Takes `bytes` from the system as a free cell of `list`: the lowest hole with room, else above the
 * top. MPL_ELIMIT: neither is within the capacity. */
mpl_status mpl_heap_grow(mpl_heap *heap, uint64_t bytes, uint32_t segment, uint32_t list,
                         uint32_t *out);
/* Whether it would succeed, but for memory of the host. */
bool mpl_heap_has_room(const mpl_heap *heap, uint64_t bytes);
/* The system has a free cell back. */
void mpl_heap_release(mpl_heap *heap, uint32_t id);
/* One arena in list 0 that grows at its end: a cell of `bytes` at a multiple of `align` in the
 * smallest hole with room, the lowest of equals; last_of_all: the highest of equals, and what is
 * free at the arena's end only if there is no other. mpl_heap_unfit gives it back. */
mpl_status mpl_heap_fit(mpl_heap *heap, uint64_t bytes, uint32_t align, bool last_of_all,
                        uint32_t *out);
void mpl_heap_unfit(mpl_heap *heap, uint32_t id);
/* Splits a free cell behind its first `bytes`; *rest, if it is not NULL, is the new one, in the
 * same list. */
mpl_status mpl_heap_cut(mpl_heap *heap, uint32_t id, uint64_t bytes, uint32_t *rest);
/* Joins a cell and the next one, which is free and no longer exists. */
void mpl_heap_join(mpl_heap *heap, uint32_t id);
/* Joins a free cell with its free neighbours of the same segment and list; returns what it is
 * now. */
uint32_t mpl_heap_merge(mpl_heap *heap, uint32_t id);

/* Whether a cell is all of its segment. */
bool mpl_heap_is_segment(const mpl_heap *heap, uint32_t id);
static inline bool mpl_heap_is_free(const mpl_heap *heap, uint32_t id)
{
    return id != MPL_NONE && !heap->cell[id].is_used && heap->cell[id].list != MPL_HEAP_HOLES;
}
