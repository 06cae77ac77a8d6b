/* before.h -- the partial order of parallel safety, and what is computed from it. */
#pragma once

#include "graphs/problem/problem.h"

static inline bool mpl_is_before(const mpl_before *before, uint32_t a, uint32_t b)
{
    return mpl_bit_has(before->row + (size_t)a * before->n_words, b);
}

/* Transitive closure and reduction of the arcs from[i] -> to[i] over n elements. MPL_EINPUT: an arc
 * is out of range, or there is a cycle (the message names one element). O(arcs * n / 64). n^2 / 8
 * bytes. */
mpl_status mpl_before_from_arcs(mpl_ctx *ctx, uint32_t n, size_t n_arcs, const uint32_t *from,
                                const uint32_t *to, mpl_before **out);

/* Order of buffers: a is before b when every last event of a reaches every first event of b by at
 * least one edge. */
mpl_status mpl_before_from_access(mpl_ctx *ctx, uint32_t n, const mpl_access *access,
                                  mpl_before **out);

/* Makes an order from a transitively closed relation and adds its reduction. Takes *rows (n rows of
 * (n + 63) / 64 words, bit b of row a: a before b) and sets it to NULL. */
mpl_status mpl_before_from_rows_take(mpl_ctx *ctx, uint32_t n, uint64_t **rows, mpl_before **out);

mpl_status mpl_before_copy(mpl_ctx *ctx, const mpl_before *from, mpl_before **out);

/* The transposed relation: row b of *rows has bit a set when a is before b. The caller owns *rows
 * (n * n_words words). */
mpl_status mpl_before_transpose(mpl_ctx *ctx, const mpl_before *before, uint64_t **rows);

/* Conflict relation of a parallel problem: bit b of row a is mpl_conflict(p, a, b). The caller owns
 * *rows (n * n_words words). O(n^2 / 64 + ordered pairs). */
mpl_status mpl_conflict_rows(mpl_ctx *ctx, const mpl_problem *p, uint64_t **rows);

/* Heaviest antichain of one pool: buffers that are pairwise not before one another, where each
 * in-place pair counts as in before out. No plan that is safe in parallel needs less. Sizes are
 * rounded up to the pool's least alignment; the largest rounding among the members is subtracted.
 * member[n] (may be NULL) receives 1 for the members of one such set, the witness; *bytes the
 * bound. By weighted Dilworth, the weight is the sum of sizes minus a maximum flow over the
 * transitive reduction (igraph). MPL_EINPUT: sizes add up to 2^53 or more, where igraph's doubles
 * would round. */
mpl_status mpl_antichain(mpl_ctx *ctx, const mpl_problem *p, uint32_t pool, uint64_t *bytes,
                         uint8_t *member);

/* Turns a serial problem into a parallel one in place: a is before b when a's death <= b's birth. A
 * buffer list gets its order this way. Drops lifetimes; gaps count as needed. O(n^2). */
mpl_status mpl_problem_as_parallel(mpl_ctx *ctx, mpl_problem *p);

/* Facts of the interference graph, for `show`. */
typedef struct mpl_interference {
    uint64_t pairs;        /* interfering pairs */
    double density;        /* pairs / all pairs, 0..1 */
    uint32_t max_degree;   /* most conflicts of one buffer */
    uint32_t width;        /* size of the largest clique: the chromatic number (perfect graph) */
    uint64_t clique_bytes; /* heaviest clique = heaviest antichain [byte] */
} mpl_interference;
mpl_status mpl_interference_get(mpl_ctx *ctx, const mpl_problem *p, mpl_interference *out);

/* Elements by number of successors, descending, then id: a topological order. Writes rank[n]. */
mpl_status mpl_before_rank(mpl_ctx *ctx, const mpl_before *before, uint32_t *rank);
