/* before.h -- the partial order that parallel safety rests on, and what is computed from it. */
#ifndef MPL_BEFORE_H
#define MPL_BEFORE_H

#include "graphs/problem/problem.h"

static inline bool mpl_is_before(const mpl_before *o, uint32_t a, uint32_t b)
{
    return mpl_bit_has(o->row + (size_t)a * o->n_words, b);
}

/* Transitive closure and reduction of the relation with the given arcs from[i] -> to[i] over n
 * elements. MPL_EINPUT: an arc out of range, or a cycle (one element of it is named by id). O(arcs
 * * n / 64). n^2 / 8 bytes. */
mpl_status mpl_before_from_arcs(mpl_ctx *ctx, uint32_t n, size_t n_arcs, const uint32_t *from,
                                const uint32_t *to, mpl_before **out);

/* "a is before b" for buffers: every last event of a reaches every first event of b by at least one
 * edge. */
mpl_status mpl_before_from_access(mpl_ctx *ctx, uint32_t n, const mpl_access *access,
                                  mpl_before **out);

/* From a transitively closed relation: keeps *rows (n rows of (n + 63) / 64 words, bit b of row a:
 * a before b), leaves NULL behind, and adds the reduction. */
mpl_status mpl_before_from_rows_take(mpl_ctx *ctx, uint32_t n, uint64_t **rows, mpl_before **out);

/* The relation turned round: row b of *rows (n * n_words words, the caller's) has bit a set when a
 * is before b. */
mpl_status mpl_before_transpose(mpl_ctx *ctx, const mpl_before *before, uint64_t **rows);

/* Rows of the conflict relation of a parallel problem, bit b of row a: mpl_conflict(p, a, b). *rows
 * (n * n_words words) is the caller's. O(n^2 / 64 + pairs that are ordered). */
mpl_status mpl_conflict_rows(mpl_ctx *ctx, const mpl_problem *p, uint64_t **rows);

/* Heaviest set of buffers of one pool that are pairwise not before one another (an antichain of the
 * order, to which each in-place pair is added as in before out): no plan that is safe in parallel
 * needs less. Sizes count in whole slots of the pool's least alignment, less what the topmost of
 * them may leave of its last slot. member[n] (may be NULL) receives 1 for the buffers of one such
 * set, the witness; *bytes the bound. By weighted Dilworth the weight is the sum of the sizes less
 * a maximum flow over the transitive reduction (igraph). MPL_EINPUT: sizes add up to 2^53 or more,
 * where igraph's doubles would round. */
mpl_status mpl_antichain(mpl_ctx *ctx, const mpl_problem *p, uint32_t pool, uint64_t *bytes,
                         uint8_t *member);

/* Turns a serial problem into a parallel one in place: a before b when a's death <= b's birth: what
 * a buffer list under parallel takes as its order. Lifetimes are gone afterwards; gaps in them
 * count as needed, for no order tells of them. O(n^2). */
mpl_status mpl_problem_as_parallel(mpl_ctx *ctx, mpl_problem *p);

/* How the interference graph looks: for `show`. */
typedef struct mpl_interference {
    uint64_t pairs;      /* interfering pairs */
    double density;      /* of all pairs, 0..1 */
    uint32_t max_degree; /* most interferences of one buffer */
    uint32_t width; /* largest number of pairwise interfering buffers: chromatic number (the graph
                       is perfect) */
    uint64_t clique_bytes; /* heaviest clique = heaviest antichain [byte] */
} mpl_interference;
mpl_status mpl_interference_get(mpl_ctx *ctx, const mpl_problem *p, mpl_interference *out);

/* Elements by number of successors, descending, then id: a topological order of the relation.
 * rank[n] is written. */
mpl_status mpl_before_rank(mpl_ctx *ctx, const mpl_before *before, uint32_t *rank);

#endif
