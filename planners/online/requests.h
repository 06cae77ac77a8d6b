/* requests.h -- what a program without a plan asks of an allocator, in its order. */
#pragma once

#include "graphs/problem/problem.h"
#include "planners/online/online.h"

/* One allocation or release of a buffer. */
typedef struct mpl_request {
    uint32_t id;
    uint64_t bytes; /* [byte] */
    bool gives_back;
    uint32_t align; /* [byte] */
} mpl_request;

/* The allocations and releases of one run of a problem with lifetimes, of one pool. In each step,
 * births come first in id order, then deaths. The caller frees *out, of *n items. MPL_EUNAVAIL: the
 * problem has no lifetimes. O(n log n). */
mpl_status mpl_requests_make(mpl_ctx *ctx, const mpl_problem *p, uint32_t pool, mpl_request **out,
                             uint32_t *n);

/* The same requests as a problem: a buffer for each allocation, in their order, without pairs, gaps
 * or families. A buffer that is not given back lives to the end. n > 0; ids may be used again after
 * a release. */
mpl_status mpl_requests_problem(mpl_ctx *ctx, const mpl_request *request, uint32_t n,
                                mpl_problem **out);

/* Plays them to an allocator. *ns (may be NULL): time of its calls. MPL_EINVALID: a release of what
 * is not alive, or a second allocation of what is; otherwise as mpl_online_take. */
mpl_status mpl_requests_play(mpl_ctx *ctx, const mpl_request *request, uint32_t n,
                             const mpl_allocator *kind, uint64_t capacity, mpl_online_facts *facts,
                             int64_t *ns);
