/* plan_ok.c -- the invariants of a plan that our own planner made. See mpl_plan_ok in plan.h. */
#include "planners/plan/plan.h"

static bool offset_ok(const mpl_problem *p, const mpl_plan *plan, mpl_buffer b)
{
    if (plan->offset[b] % p->align[b] != 0)
        return mpl_broken("buffer %u lies at %" PRIu64 ", which is no multiple of %u", b,
                          plan->offset[b], p->align[b]);
    if (p->fixed != NULL && p->fixed[b] != MPL_UNFIXED && plan->offset[b] != p->fixed[b])
        return mpl_broken("buffer %u lies at %" PRIu64 ", and is fixed at %" PRIu64, b,
                          plan->offset[b], p->fixed[b]);
    if (p->inside != NULL && plan->offset[b] != plan->offset[p->inside[b]] + p->inside_at[b])
        return mpl_broken("buffer %u lies at %" PRIu64 ", not %" PRIu64 " bytes behind buffer %u",
                          b, plan->offset[b], p->inside_at[b], p->inside[b]);
    if (plan->block != NULL && plan->block[b] >= p->n)
        return mpl_broken("buffer %u is in block %u of %u at most", b, plan->block[b], p->n);
    if (plan->spread.n > 0 && plan->spread.memory[b] >= plan->spread.n)
        return mpl_broken("buffer %u is in memory %u of %u", b, plan->spread.memory[b],
                          plan->spread.n);
    return true;
}

bool mpl_plan_ok(const mpl_problem *p, const mpl_plan *plan)
{
    bool placed = plan->claim == MPL_FEASIBLE || plan->claim == MPL_OPTIMAL;

    if (plan->n != p->n || plan->n_pools != p->n_pools)
        return mpl_broken("the plan has %u buffers in %u pools, the problem %u in %u", plan->n,
                          plan->n_pools, p->n, p->n_pools);
    if (plan->claim > MPL_INFEASIBLE)
        return mpl_broken("the plan claims %d, which is nothing", (int)plan->claim);
    for (uint32_t i = 0; i < plan->n_witness; i++)
        if (plan->witness[i] >= p->n || (i > 0 && plan->witness[i] <= plan->witness[i - 1]))
            return mpl_broken("the certificate names buffer %u of %u, or out of order",
                              plan->witness[i], p->n);
    if (plan->refutation.steps != NULL && plan->refutation.pool >= p->n_pools)
        return mpl_broken("the refutation speaks of pool %u of %u", plan->refutation.pool,
                          p->n_pools);
    for (mpl_buffer b = 0; placed && b < p->n; b++)
        if (!offset_ok(p, plan, b))
            return false;
    return true;
}
