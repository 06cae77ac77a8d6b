/* online.h -- allocators that know nothing of the future: requests come one by one. A new one is a
 * file and a line in allocators.def. They see no graph and, but for `malloc`, touch no memory: they
 * give out offsets from the base of one range of addresses. */
#pragma once

#include "graphs/core/base.h"

struct mpl_heap;

typedef struct mpl_allocator {
    const char *name;   /* key in the command line, results and paper */
    const char *about;  /* one line of help */
    const char *source; /* where the policy is described */
    /* Every block begins at a multiple of it; a request of a larger alignment gets a larger block.
     * 0: take() honours any alignment itself. [byte] */
    uint32_t align;
    bool is_real; /* its offsets are addresses of this process, from a base of NULL */
    mpl_status (*open)(struct mpl_heap *heap); /* NULL: nothing to do; MPL_EUNAVAIL */
    /* Takes out of the lists a cell of at least `bytes` > 0. MPL_ELIMIT: beyond the heap's
     * capacity; then nothing is given out. */
    mpl_status (*take)(struct mpl_heap *heap, uint64_t bytes, uint32_t align, uint32_t *cell);
    void (*give_back)(struct mpl_heap *heap, uint32_t cell);
} mpl_allocator;

/* NULL-terminated, in the order of allocators.def and of every report */
extern const mpl_allocator *const mpl_allocators[];
const mpl_allocator *mpl_allocator_find(const char *name); /* or NULL */

typedef struct mpl_online_facts {
    uint64_t reserved_bytes;  /* most that it held from the system at once [byte] */
    uint64_t held_bytes;      /* that it holds now [byte] */
    uint64_t requested_bytes; /* of all requests so far, added up [byte] */
    uint64_t live_peak_bytes; /* most bytes asked for and alive at once [byte] */
    uint64_t live_bytes;      /* alive now [byte] */
    uint64_t allocated_bytes; /* most in blocks given out at once, rounded up as they are [byte] */
    uint64_t extent_bytes;    /* no block ever ended beyond this offset; 0: real [byte] */
    uint32_t n_requests;      /* blocks given out so far */
    uint32_t n_segments;      /* times that it took memory from the system */
    uint32_t n_splits;        /* times that free bytes were split */
    uint32_t n_flushes;       /* times that it released unused segments to make room */
} mpl_online_facts;

/* The part of the reserved bytes that was not needed when the most was alive. */
double mpl_online_fragmentation(const mpl_online_facts *facts);

/* An allocator at work. */
typedef struct mpl_online mpl_online;

/* No block ends beyond `capacity` (which `malloc` does not heed). MPL_EUNAVAIL: `malloc` where the
 * process's malloc does not tell what it holds (sanitizers, a preloaded library). */
mpl_status mpl_online_new(mpl_ctx *ctx, const mpl_allocator *kind, uint64_t capacity,
                          mpl_online **out);
void mpl_online_free(mpl_ctx *ctx, mpl_online *online); /* NULL is allowed; ends what is alive */

/* Gives out `bytes` at *offset, a multiple of align (a power of two). *block names it until it is
 * given back; ids are dense and used again. Zero bytes take a block of one byte. MPL_ELIMIT: no
 * room, or sizes beyond 2^63; MPL_EMEM. Then nothing has changed but what is held. O(free
 * blocks). */
mpl_status mpl_online_take(mpl_online *online, uint64_t bytes, uint32_t align, uint32_t *block,
                           uint64_t *offset);
/* MPL_EINVALID: no such block is alive. */
mpl_status mpl_online_give_back(mpl_online *online, uint32_t block);
mpl_online_facts mpl_online_facts_of(const mpl_online *online);
