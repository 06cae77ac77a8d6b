/* caching.h -- what allocators without knowledge of the future do with a graph's buffers: the
 * requests, and a model of the caching allocator that frameworks use on top of cudaMalloc. Pure
 * host code. */
#ifndef MPL_CACHING_H
#define MPL_CACHING_H

#include "graphs/problem/problem.h"
#include "runtime/backend.h"

/* The allocations and releases of one run of a problem with lifetimes, of one pool. In each step,
 * births come first in id order, then deaths. The caller frees *out, of *n items. MPL_EUNAVAIL: the
 * problem has no lifetimes. O(n log n). */
mpl_status mpl_requests_make(mpl_ctx *ctx, const mpl_problem *p, uint32_t pool, mpl_request **out,
                             uint32_t *n);

typedef struct mpl_caching_facts {
    uint64_t requested_bytes; /* peak of requested bytes [byte] */
    uint64_t allocated_bytes; /* peak of allocated blocks, each rounded up [byte] */
    uint64_t reserved_bytes;  /* peak of memory held from the device [byte] */
    uint32_t n_segments;      /* segments taken from the device, in all */
    uint32_t n_splits;        /* blocks split */
    uint32_t n_flushes;       /* times that it released all free segments to make room */
} mpl_caching_facts;

/* Plays the requests to a caching allocator on a device of `capacity` bytes, with the constants of
 * PyTorch 2 (c10/cuda/CUDACachingAllocator). Sizes are multiples of 512. Requests up to 1 MiB come
 * from segments of 2 MiB, those below 10 MiB from segments of 20 MiB, larger ones from segments in
 * multiples of 2 MiB. Best fit; a remainder of at least 512 bytes, or of more than 1 MiB for large
 * requests, is split off; free neighbours merge. MPL_ELIMIT: it does not fit. O(n * blocks). */
mpl_status mpl_caching_play(mpl_ctx *ctx, const mpl_request *request, uint32_t n, uint64_t capacity,
                            mpl_caching_facts *facts);

#endif
