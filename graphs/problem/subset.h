/* subset.h -- makes a problem from some buffers of another, with their fields. What else a new
 * field touches: graphs/problem/README.md. */
#pragma once

#include "graphs/problem/problem.h"

/* Members of n new buffers: item[begin[i] .. begin[i + 1]), at least one each, in time order.
 * Several members are a chain at one offset (in-place pairs taken), or a whole family. No buffer is
 * in two. */
typedef struct mpl_members {
    uint32_t n;
    const uint32_t *begin; /* [n + 1] */
    const mpl_buffer *item;
} mpl_members;

/* What to keep besides each buffer's own fields. */
enum {
    MPL_KEEP_POOLS = 1,    /* pools and names of buffers; else one pool without a capacity */
    MPL_KEEP_ORDER = 2,    /* gaps and the partial order; else lifetimes only */
    MPL_KEEP_PAIRS = 4,    /* in-place pairs between new buffers of one member */
    MPL_KEEP_FAMILIES = 8, /* offsets within families, whose lowest parts must be kept */
    MPL_KEEP_ACCESS = 16,  /* access graph: first members' first events, last members' last */
};

/* into[p->n] (may be NULL) receives each buffer's new id; MPL_NONE: left out. A plan of *out gives
 * offsets for p: each member takes its new buffer's offset, plus inside_at[] if that is a whole
 * family. */
mpl_status mpl_problem_subset(mpl_ctx *ctx, const mpl_problem *p, const mpl_members *members,
                              unsigned keep, uint32_t *into, mpl_problem **out);
