/* recompute_common.c -- answers without a search. See recompute_priv.h. */
#include "planners/recompute/recompute_priv.h"

#include "mpl_config.h"

mpl_status mpl_recompute_as_it_is(mpl_ctx *ctx, const mpl_graph *g, uint32_t *n, mpl_op **run,
                                  mpl_recompute_found *found)
{
    mpl_status st = MPL_OK;

    MPL_TRY(mpl_new(ctx, *run, g->n_ops));
    for (*n = 0; *n < g->n_ops; ++*n)
        (*run)[*n] = *n;
    found->has_bound = true;
    found->claim = MPL_RECOMPUTE_OPTIMAL;
out:
    return st;
}

mpl_status mpl_recompute_refuse(mpl_ctx *ctx, const mpl_graph *g, uint64_t budget, bool proved)
{
    if (proved)
        return mpl_fail(ctx, MPL_EINVALID, __FILE__, __LINE__,
                        "graph '%s' in its order needs more than %" PRIu64
                        " bytes, whatever runs again (proved); a larger budget would be right",
                        g->name, budget);
    return mpl_fail(ctx, MPL_ELIMIT, __FILE__, __LINE__,
                    "graph '%s': nothing was found that needs at most %" PRIu64
                    " bytes, and that there is nothing is not proved",
                    g->name, budget);
}
