/* nnc_graph.h -- NNC's allocation graph, for nnc_2018 and nnc_2019, which differ only in the next
 * buffer to insert.
 *
 * Source   libnnc (github.com/liuliu/ccv), its tensor allocation as of May 2018 and since July
 *          2019; Liu Liu, "The NNC Tensor Allocation Algorithm", 2018.
 * Differs  Ties are broken by id; production leaves them to its sort.
 * Limits   Ranges are handed on, not offsets, so a family with its fixed distances is one
 *          buffer. */
#pragma once

#include "planners/planner.h"

/* A contiguous range that its two buffers hand on: free between the last use of `from` and the
 * first of `to`. Node n is the source, n + 1 the sink. */
typedef struct mpl_nnc_edge {
    uint32_t from, to;
    uint32_t block;
    uint64_t bytes, offset; /* within the block [byte] */
} mpl_nnc_edge;

/* Time for longest paths: the events of the problem, or else its buffers. */
typedef struct mpl_nnc_time {
    uint32_t n;
    const uint32_t *begin, *item; /* successors */
    uint32_t *rank;               /* [n] a topological order */
    uint32_t *pos;                /* [n] position of each in rank */
    uint32_t *hop;                /* [n] nodes on the longest path, during a measurement; else 0 */
    uint32_t penalty;             /* hops of an end at the source or sink: more than any path */
} mpl_nnc_time;

typedef struct mpl_nnc_graph {
    mpl_ctx *ctx;
    const mpl_problem *p; /* with `before`, without in-place pairs */
    uint32_t n_words;
    uint64_t *after;     /* rows of `before`, transposed */
    uint64_t *open;      /* bit set: not yet inserted */
    uint64_t *pool_mask; /* [n_pools rows] buffers of each pool */
    uint64_t *size;      /* [n] bytes rounded up to the widest alignment of the pool */
    uint32_t *count;     /* [n] conflicting buffers not yet inserted */
    uint32_t n_open;
    bool inner_only; /* no edge that touches the source or the sink is usable */

    uint32_t n_edges;
    mpl_nnc_edge *edge; /* only appended to; a used-up range has bytes = 0 */
    size_t cap_edges;
    uint32_t *cursor; /* [n] edges below it cannot hold the buffer alone */

    uint32_t n_blocks;
    uint64_t *block_bytes;
    uint32_t *block_pool;
    size_t cap_block_bytes, cap_block_pool;
    uint32_t *block;  /* [n] */
    uint64_t *offset; /* [n] within the block [byte] */

    mpl_nnc_time time;
    uint32_t *usable, *hops; /* [n_edges] scratch: usable edges of a tuple and their hops */
    size_t cap_usable, cap_hops;
    uint64_t ticks;
} mpl_nnc_graph;

/* At most three buffers at one offset, in time order. */
typedef struct mpl_nnc_tuple {
    uint32_t n;
    mpl_buffer member[3];
} mpl_nnc_tuple;

/* Whether the buffer alone has a usable edge. Amortised: an edge fails at most once per buffer. */
bool mpl_nnc_has_edge(mpl_nnc_graph *g, mpl_buffer b);

/* Whether edge edge can hold a tuple of that largest size [byte] that begins and ends so. O(1). */
bool mpl_nnc_usable(const mpl_nnc_graph *g, const mpl_nnc_edge *edge, mpl_buffer first,
                    mpl_buffer last, uint64_t need);

/* The usable edge of fewest hops for a tuple, ties by age, of among[n]; NULL: of all that its one
 * buffer may use after mpl_nnc_has_edge. MPL_NONE: there is none. */
uint32_t mpl_nnc_best_edge(mpl_nnc_graph *g, const mpl_nnc_tuple *tuple, uint32_t n,
                           const uint32_t *among);

/* Inserts the tuple at the front of `edge`, or into a new block of its largest size (MPL_NONE). */
mpl_status mpl_nnc_insert(mpl_nnc_graph *g, const mpl_nnc_tuple *tuple, uint32_t edge);

/* MPL_EUNAVAIL for fixed offsets and for more than 65,536 buffers. */
mpl_status mpl_nnc_check(mpl_ctx *ctx, const mpl_problem *p);

/* Runs one of the two on any problem. Folds in-place pairs first, reads a serial problem as
 * interval precedence, lays blocks end to end in their pools. `start` (or NULL) prepares `arg` for
 * the graph; `insert_next` inserts one tuple. */
mpl_status mpl_nnc_plan(mpl_run *run, const mpl_problem *p, mpl_plan *out,
                        mpl_status (*start)(mpl_run *run, mpl_nnc_graph *g, void *arg),
                        mpl_status (*insert_next)(mpl_nnc_graph *g, void *arg), void *arg);
