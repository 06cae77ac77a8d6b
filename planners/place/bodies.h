/* bodies.h -- one pool as a general conflict relation, without steps. Private to planners/. Made
 * from a partial order, or from any relation with in-place pairs taken.
 *
 * A body is one or more buffers (its members) at one offset. Two bodies that conflict are rivals:
 * the upper begins at least `dist` above the lower's offset, by their conflicting members. */
#pragma once

#include "planners/exact/exact_priv.h"

typedef struct mpl_bodies {
    uint32_t n, n_words;
    uint64_t *rival; /* [n * n_words] symmetric */
    uint64_t *size;  /* [n] a multiple of the least alignment [byte] */
    uint64_t *bytes; /* [n] from offset to end [byte] */
    uint64_t *align; /* [n] [byte] */
    uint64_t *fixed; /* [n] or MPL_UNFIXED; NULL: none [byte] */
    uint64_t *dist;  /* [n * n] least distance, lower body first; NULL: its size [byte] */

    uint32_t n_members, n_member_words;
    uint32_t *body;         /* [n_members] */
    mpl_buffer *buffer;     /* [n_members] of the problem */
    uint64_t *member_size;  /* [n_members] [byte] */
    uint64_t *member_bytes; /* [n_members] [byte] */
    uint64_t *member_rival; /* [n_members * n_member_words]; never within one body */

    uint64_t unit; /* divides every offset of a pushed-down plan [byte] */
    bool plain;    /* nothing fixed, no alignment matters, one member a body */
} mpl_bodies;

static inline bool mpl_rivals(const mpl_bodies *bodies, uint32_t i, uint32_t j)
{
    return mpl_bit_has(bodies->rival + (size_t)i * bodies->n_words, j);
}

/* The lowest offset of `upper` above `lower` at `offset`. */
static inline uint64_t mpl_above(const mpl_bodies *bodies, uint32_t lower, uint64_t offset,
                                 uint32_t upper)
{
    uint64_t end = offset + (bodies->dist != NULL ? bodies->dist[(size_t)lower * bodies->n + upper]
                                                  : bodies->size[lower]);

    return (end + bodies->align[upper] - 1) & ~(bodies->align[upper] - 1);
}

/* Makes bodies of buffer[n_members]; buffer[m] is a member of body[m] (dense from 0). Takes over
 * *rival: symmetric rows of n_members bits. MPL_EINPUT: sums are too large for a search. */
mpl_status mpl_bodies_new_take(mpl_ctx *ctx, const mpl_problem *p, const mpl_buffer *buffer,
                               const uint32_t *body, uint32_t n_members, uint64_t **rival,
                               mpl_bodies **out);
/* One body for each buffer of a pool, rivals by mpl_conflict. O(n^2). */
mpl_status mpl_bodies_of_pool(mpl_ctx *ctx, const mpl_problem *p, uint32_t pool, mpl_bodies **out);
/* The bodies id[n], renumbered in that order. */
mpl_status mpl_bodies_subset(mpl_ctx *ctx, const mpl_problem *p, const mpl_bodies *from,
                             const uint32_t *id, uint32_t n, mpl_bodies **out);
void mpl_bodies_free(mpl_ctx *ctx, mpl_bodies *bodies);

uint64_t mpl_bodies_height(const mpl_bodies *bodies, const uint64_t *offset); /* [byte] */

/* Improves a plan by greedy orders and local search over them (arena.c): offset[n] of *height
 * (UINT64_MAX: no plan yet). Stops at a height of at most `bound` or at the effort's limit. */
mpl_status mpl_arena_search(mpl_ctx *ctx, const mpl_bodies *bodies, uint64_t bound,
                            mpl_exact_effort *effort, uint64_t *offset, uint64_t *height);

/* Whether a and b are an in-place pair. O(pairs). */
bool mpl_is_pair(const mpl_problem *p, mpl_buffer a, mpl_buffer b);
