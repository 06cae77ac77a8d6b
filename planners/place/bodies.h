/* bodies.h -- one pool as a general conflict relation: what may share memory is no longer a matter
 * of steps. Private to planners/; made from a partial order, or from any relation with in-place
 * pairs taken up.
 *
 * A body is one or more buffers (its members) that share one offset. Two bodies that are rivals
 * must lie apart: the upper one begins at least `dist` above the lower one's offset, so far as the
 * members that conflict reach. */
#ifndef MPL_BODIES_H
#define MPL_BODIES_H

#include "planners/exact/exact_priv.h"

typedef struct mpl_bodies {
    uint32_t n, n_words;
    uint64_t *rival; /* [n * n_words] symmetric */
    uint64_t *size;  /* [n] in whole slots of the least alignment [byte] */
    uint64_t *bytes; /* [n] from its offset to its end [byte] */
    uint64_t *align; /* [n] [byte] */
    uint64_t *fixed; /* [n] or MPL_UNFIXED; NULL: none is [byte] */
    uint64_t *dist; /* [n * n] what an upper body (second) keeps from a lower one (first); NULL: its
                       size [byte] */

    uint32_t n_members, n_member_words;
    uint32_t *body;         /* [n_members] */
    mpl_buffer *buffer;     /* [n_members] of the problem */
    uint64_t *member_size;  /* [n_members] [byte] */
    uint64_t *member_bytes; /* [n_members] [byte] */
    uint64_t *member_rival; /* [n_members * n_member_words]; members of one body never are */

    uint64_t unit; /* divides every offset of a plan that is pushed down [byte] */
    bool plain;    /* nothing is fixed, no alignment matters, every body has one member */
} mpl_bodies;

static inline bool mpl_rivals(const mpl_bodies *b, uint32_t i, uint32_t j)
{
    return mpl_bit_has(b->rival + (size_t)i * b->n_words, j);
}

/* The lowest offset of `upper` above `lower` at `offset`. */
static inline uint64_t mpl_above(const mpl_bodies *b, uint32_t lower, uint64_t offset,
                                 uint32_t upper)
{
    uint64_t end =
        offset + (b->dist != NULL ? b->dist[(size_t)lower * b->n + upper] : b->size[lower]);

    return (end + b->align[upper] - 1) & ~(b->align[upper] - 1);
}

/* Bodies of buffer[n_members], where buffer[m] is a member of body[m] (dense from 0). *rival: rows
 * of n_members bits, symmetric, which it takes over. MPL_EINPUT: sums beyond what a search can
 * count. */
mpl_status mpl_bodies_new_take(mpl_ctx *ctx, const mpl_problem *p, const mpl_buffer *buffer,
                               const uint32_t *body, uint32_t n_members, uint64_t **rival,
                               mpl_bodies **out);
/* Each buffer of a pool alone, rivals by mpl_conflict. O(n^2). */
mpl_status mpl_bodies_of_pool(mpl_ctx *ctx, const mpl_problem *p, uint32_t pool, mpl_bodies **out);
/* Those of id[n], renumbered in that order. */
mpl_status mpl_bodies_subset(mpl_ctx *ctx, const mpl_problem *p, const mpl_bodies *from,
                             const uint32_t *id, uint32_t n, mpl_bodies **out);
void mpl_bodies_free(mpl_ctx *ctx, mpl_bodies *b);

uint64_t mpl_bodies_height(const mpl_bodies *b, const uint64_t *offset); /* [byte] */

/* Greedy orders and local search over them (arena.c): offset[n], the best plan so far, of height
 * *height, is improved, until it is no higher than `bound` or effort's limit is met; *height
 * UINT64_MAX: there is none yet. */
mpl_status mpl_arena_search(mpl_ctx *ctx, const mpl_bodies *b, uint64_t bound,
                            mpl_exact_effort *effort, uint64_t *offset, uint64_t *height);

/* Whether one of the two may take the other's place. O(pairs). */
bool mpl_is_pair(const mpl_problem *p, mpl_buffer a, mpl_buffer b);

#endif
