/* subset.h -- a problem made of some buffers of another: the one place that copies its fields. */
#ifndef MPL_SUBSET_H
#define MPL_SUBSET_H

#include "graphs/problem/problem.h"

/* The buffers that each of n new ones stands for: item[begin[i] .. begin[i + 1]), one at least, in
 * the order of time. Several are those that lie at one offset one after the other (in-place pairs
 * taken up), or a whole family. None is in two of them. */
typedef struct mpl_members {
    uint32_t n;
    const uint32_t *begin; /* [n + 1] */
    const mpl_buffer *item;
} mpl_members;

/* What is kept beside what each buffer is by itself. */
enum {
    MPL_KEEP_POOLS = 1,    /* pools with names and capacities, and buffers' names; else all are in
                              one pool without a capacity */
    MPL_KEEP_ORDER = 2,    /* gaps, and the partial order; else lifetimes alone */
    MPL_KEEP_PAIRS = 4,    /* in-place pairs of two that stand for one buffer each */
    MPL_KEEP_FAMILIES = 8, /* distances within families, whose lowest parts must be there */
    MPL_KEEP_ACCESS = 16,  /* the access graph: first events of first members, last ones of last */
};

/* into[p->n] (NULL: not asked for) receives the new buffer of each, MPL_NONE: it was left out. A
 * plan of *out is one of these buffers of p, members at the offset of what they became a part of,
 * plus inside_at[] where that is a whole family. */
mpl_status mpl_problem_subset(mpl_ctx *ctx, const mpl_problem *p, const mpl_members *members,
                              unsigned keep, uint32_t *into, mpl_problem **out);

#endif
