/* hull.c -- each family as one buffer, for planners without families. See problem.h. */
#include "graphs/problem/subset.h"

mpl_status mpl_problem_hull(mpl_ctx *ctx, const mpl_problem *p, mpl_problem **out, uint32_t *into)
{
    mpl_status st = MPL_OK;
    uint32_t *begin = NULL, *item = NULL, n = 0;

    for (mpl_buffer b = 0; b < p->n; b++)
        if (p->inside[b] == b)
            into[b] = n++;
    for (mpl_buffer b = 0; b < p->n; b++)
        into[b] = into[p->inside[b]];
    MPL_TRY(mpl_lists_new(ctx, n, p->n, into, NULL, &begin, &item));
    MPL_TRY(mpl_problem_subset(ctx, p, &(mpl_members){n, begin, item},
                               MPL_KEEP_POOLS | MPL_KEEP_ORDER | MPL_KEEP_PAIRS, NULL, out));
out:
    mpl_free_each(ctx, begin, item);
    return st;
}
