/* caching.h -- what allocators that know nothing of the future do with a graph's buffers: the
 * requests, and a model of the caching allocator that frameworks put before cudaMalloc. Pure host
 * code. */
#ifndef MPL_CACHING_H
#define MPL_CACHING_H

#include "graphs/problem/problem.h"
#include "runtime/backend.h"

/* The calls of one run of a problem with lifetimes, of one pool: step by step, first what is born
 * in id order, then what dies. *out has *n items, for the caller to free. MPL_EUNAVAIL where the
 * problem has no lifetimes. O(n log n). */
mpl_status mpl_requests_make(mpl_ctx *ctx, const mpl_problem *p, uint32_t pool, mpl_request **out,
                             uint32_t *n);

typedef struct mpl_caching_facts {
    uint64_t requested_bytes; /* peak of what was asked for [byte] */
    uint64_t allocated_bytes; /* peak of the blocks handed out, each rounded up [byte] */
    uint64_t reserved_bytes;  /* peak of what it holds of the device [byte] */
    uint32_t n_segments;      /* pieces taken from the device, in all */
    uint32_t n_splits;        /* blocks cut in two */
    uint32_t n_flushes;       /* times that it gave everything free back, to make room */
} mpl_caching_facts;

/* Plays the requests to a caching allocator with the constants of PyTorch 2
 * (c10/cuda/CUDACachingAllocator: sizes in multiples of 512; up to 1 MiB out of segments of 2 MiB,
 * below 10 MiB out of segments of 20 MiB, else segments in multiples of 2 MiB; best fit; a rest of
 * 512 bytes, or of more than 1 MiB among the large, is cut off; free neighbours are joined) before
 * a device of `capacity` bytes. MPL_ELIMIT: it does not fit. O(n * blocks). */
mpl_status mpl_caching_play(mpl_ctx *ctx, const mpl_request *request, uint32_t n, uint64_t capacity,
                            mpl_caching_facts *facts);

#endif
