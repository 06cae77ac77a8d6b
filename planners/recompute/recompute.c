/* recompute.c -- methods of recomputation by name. See recompute.h. */
#include "planners/recompute/recompute_priv.h"

#include "mpl_config.h"

static mpl_status choose_sqrt(mpl_ctx *ctx, const mpl_graph *g, const mpl_problem_options *options,
                              uint64_t budget, uint32_t *n, mpl_op **run,
                              mpl_recompute_found *found)
{
    (void)found;
    return mpl_recompute_sqrt(ctx, g, options, budget, n, run);
}

/* The search goes through the program's very runs, and mostly ends where the program's search does
 * not. */
static mpl_status choose_budget(mpl_ctx *ctx, const mpl_graph *g,
                                const mpl_problem_options *options, uint64_t budget, uint32_t *n,
                                mpl_op **run, mpl_recompute_found *found)
{
    mpl_status st = MPL_OK;
    mpl_recompute_found searched = *found;

    st = mpl_recompute_game(ctx, g, options, MPL_GAME_STAGES, budget, n, run, &searched);
    if (st == MPL_EINVALID || (st == MPL_OK && searched.claim == MPL_RECOMPUTE_OPTIMAL)) {
        *found = searched;
        return st;
    }
    if (st == MPL_OK)
        mpl_free(ctx, *run);
    MPL_TRY(st == MPL_EINPUT || st == MPL_ELIMIT ? MPL_OK : st);
    MPL_TRY(mpl_recompute_exact(ctx, g, options, mpl_recompute_round, budget, n, run, found));
    if (searched.has_bound && found->claim != MPL_RECOMPUTE_OPTIMAL) {
        found->bound_work = mpl_max_u64(found->bound_work, searched.bound_work);
        found->has_bound = true;
    }
out:
    return st;
}

static mpl_status choose_pebble(mpl_ctx *ctx, const mpl_graph *g,
                                const mpl_problem_options *options, uint64_t budget, uint32_t *n,
                                mpl_op **run, mpl_recompute_found *found)
{
    return mpl_recompute_game(ctx, g, options, MPL_GAME_FREE, budget, n, run, found);
}

const mpl_recompute_method mpl_recompute_methods[] = {
    {"sqrt", "segments of the forward part, kept or run again once (Chen and others, 2016)", false,
     choose_sqrt},
    {"budget",
     "the least work within the budget over all operations, by search or an integer program (Jain "
     "and "
     "others, 2020)",
     true, MPL_HAVE_GLPK ? choose_budget : NULL},
    {"round", "its relaxation over groups of operations, rounded, or sqrt; the better, thinned out",
     true, MPL_HAVE_GLPK ? mpl_recompute_round : NULL},
    {"pebble",
     "the pebble game: of all runs in any order, the least work within the budget, or the least "
     "peak; up to "
     "64 operations",
     false, choose_pebble},
    {NULL, NULL, false, NULL},
};

const mpl_recompute_method *mpl_recompute_find(const char *name)
{
    const mpl_recompute_method *m = mpl_recompute_methods;

    while (m->name != NULL && strcmp(m->name, name) != 0)
        m++;
    return m->name != NULL ? m : NULL;
}

mpl_status mpl_recompute_before(mpl_ctx *ctx, const mpl_graph *g,
                                const mpl_problem_options *options, uint64_t *peak)
{
    mpl_status st = MPL_OK;
    mpl_op *run = NULL;

    MPL_TRY(mpl_new(ctx, run, g->n_ops));
    for (mpl_op op = 0; op < g->n_ops; op++)
        run[op] = op;
    MPL_TRY(mpl_rerun_peak(ctx, g, g->n_ops, run, options, peak, NULL));
out:
    mpl_free(ctx, run);
    return st;
}

mpl_status mpl_recompute(mpl_ctx *ctx, const mpl_recompute_method *method, const mpl_graph *g,
                         const mpl_problem_options *options, uint64_t budget, mpl_graph **out,
                         mpl_recompute_found *found)
{
    mpl_status st = MPL_OK;
    mpl_op *run = NULL;
    uint32_t n = 0;

    *found = (mpl_recompute_found){0};
    if (method->choose == NULL)
        MPL_FAIL(ctx, MPL_EUNAVAIL, "recomputation by '%s' needs GLPK, which is not in this build",
                 method->name);
    if (method->needs_budget && budget == MPL_LEAST_PEAK)
        MPL_FAIL(ctx, MPL_EINPUT,
                 "recomputation by '%s' needs a budget, as in %s:512MiB or %s:50%%", method->name,
                 method->name, method->name);
    if (g->n_blocks > 1 || g->program)
        MPL_FAIL(ctx, MPL_EINPUT, "graph '%s' %s: nothing of it can run again", g->name,
                 g->program ? "is a program" : "has control flow");
    MPL_TRY(mpl_recompute_before(ctx, g, options, &found->before_bytes));
    MPL_TRY(method->choose(ctx, g, options, budget, &n, &run, found));
    MPL_TRY(mpl_rerun_peak(ctx, g, n, run, options, &found->peak_bytes, NULL));
    if (budget != MPL_LEAST_PEAK && found->peak_bytes > budget) /* what the method does not count */
        MPL_FAIL(ctx, MPL_ELIMIT,
                 "graph '%s': what method '%s' found needs %" PRIu64 " bytes, more than %" PRIu64,
                 g->name, method->name, found->peak_bytes, budget);
    MPL_TRY(mpl_rerun(ctx, g, n, run, out, &found->facts));
out:
    mpl_free(ctx, run);
    return st;
}
