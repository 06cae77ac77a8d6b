/* families.c -- families: their parts as lists. See problem.h. */
#include "graphs/problem/before.h"

mpl_status mpl_families_new(mpl_ctx *ctx, const mpl_problem *p, mpl_families *out)
{
    return mpl_lists_new(ctx, p->n, p->n, p->inside, NULL, &out->begin, &out->item);
}

void mpl_families_free(mpl_ctx *ctx, mpl_families *f)
{
    mpl_free(ctx, f->begin);
    mpl_free(ctx, f->item);
    *f = (mpl_families){NULL, NULL};
}
