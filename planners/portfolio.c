/* portfolio.c -- the best of the quick planners, then as much search as the budget allows.
 *
 * Idea     Most problems are at the bound after the first placement. Where one is not, the searches take turns, each with twice the
 *          ticks of the time before, until the bound, the budget or the clock ends it.
 * Source   this project
 * Members  Placements by size, breadth, best fit, birth; exact; local_search, with another seed each turn; under parallel
 *          nnc_arena. Where pairs are offered, all are asked with the pairs and with the pairs folded.
 * Differs  Pools are judged one by one: each keeps the best that any member found for it.
 * Cost     That of its members. A search begins afresh each turn, which costs at most what the last one does.
 * Limits   Without budget and deadline it ends after DEFAULT_TICKS. */
#include "graphs/analysis/fold.h"
#include "planners/planner.h"
#include "planners/verify.h"

#define DEFAULT_TICKS UINT64_C(1000000000) /* a few seconds */
#define FIRST_TURN    UINT64_C(2000000)

extern const mpl_planner mpl_planner_greedy_size, mpl_planner_greedy_breadth, mpl_planner_best_fit,
    mpl_planner_first_fit, mpl_planner_local_search, mpl_planner_exact, mpl_planner_nnc_arena;

static const mpl_planner *const quick[] = {&mpl_planner_greedy_size, &mpl_planner_greedy_breadth,
                                           &mpl_planner_best_fit, &mpl_planner_first_fit};
static const mpl_planner *const searches[] = {&mpl_planner_exact, &mpl_planner_local_search,
                                              &mpl_planner_nnc_arena};

enum { N_QUICK = sizeof quick / sizeof *quick, N_SEARCHES = sizeof searches / sizeof *searches };

typedef struct contest {
    mpl_run *run;
    const mpl_problem *p;
    mpl_problem *folded;     /* NULL: there are no pairs */
    uint32_t *into;          /* [p->n] the buffer of the folded problem */
    const char *minimise;    /* its value as given, or NULL */
    uint64_t limit;          /* of ticks */
    uint64_t *goal, *height; /* by pool [byte] */
    mpl_plan *out;
    bool proved; /* that no plan fits the capacities */
} contest;

static bool is_over(contest *s)
{
    bool reached = true;

    for (uint32_t pool = 0; pool < s->p->n_pools; pool++)
        reached = reached && s->height[pool] <= s->goal[pool];
    if (mpl_run_late(s->run))
        s->run->stopped_by_clock = !reached;
    return reached || s->proved || s->run->stopped_by_clock || s->run->ticks >= s->limit;
}

/* Takes over each pool that is lower in `plan`. */
static mpl_status judge(contest *s, const mpl_plan *plan)
{
    mpl_status st = MPL_OK;
    const mpl_problem *p = s->p;
    uint64_t *height = NULL;

    MPL_TRY(mpl_new(s->run->ctx, height, p->n_pools));
    for (mpl_buffer b = 0; b < p->n; b++)
        height[p->pool[b]] = mpl_max_u64(height[p->pool[b]], plan->offset[b] + p->bytes[b]);
    for (mpl_buffer b = 0; b < p->n; b++)
        if (height[p->pool[b]] < s->height[p->pool[b]])
            s->out->offset[b] = plan->offset[b];
    for (uint32_t pool = 0; pool < p->n_pools; pool++)
        s->height[pool] = mpl_min_u64(s->height[pool], height[pool]);
    s->out->claim = MPL_FEASIBLE;
out:
    mpl_free(s->run->ctx, height);
    return st;
}

/* The same for a plan where pairs are folded (folded: one of the folded problem). Pairs may be such that a chain of them is
 * no place for all of its buffers, so it has to show that it holds. */
static mpl_status judge_folded(contest *s, const mpl_plan *plan, bool folded)
{
    mpl_status st = MPL_OK;
    mpl_plan *whole = NULL;

    MPL_TRY(mpl_plan_new(s->run->ctx, s->p, &whole));
    whole->claim = MPL_FEASIBLE;
    for (mpl_buffer b = 0; b < s->p->n; b++)
        whole->offset[b] = plan->offset[folded ? s->into[b] : b];
    st = mpl_verify(s->run->ctx, s->p, whole);
    if (st == MPL_EINVALID)
        st = MPL_OK;
    else if (st == MPL_OK)
        MPL_TRY(judge(s, whole));
out:
    mpl_plan_free(s->run->ctx, whole);
    return st;
}

/* What a complete search proved of the problem itself; folding is only one way to take pairs up. */
static void take_proof(contest *s, const mpl_plan *plan)
{
    s->out->bound_bytes = mpl_max_u64(s->out->bound_bytes, plan->bound_bytes);
    s->goal[0] = mpl_max_u64(s->goal[0], plan->bound_bytes);
    s->proved = plan->claim == MPL_INFEASIBLE;
    if (s->proved)
        s->out->claim = MPL_INFEASIBLE;
}

static mpl_status ask(contest *s, const mpl_planner *planner, bool folded, uint64_t seed, uint64_t ticks)
{
    mpl_status st = MPL_OK;
    const mpl_problem *p = folded ? s->folded : s->p;
    mpl_plan *plan = NULL;
    mpl_run run = *s->run;
    const char *key = "minimise";
    bool exact = planner == &mpl_planner_exact;

    run.ticks = 0;
    run.seed = seed;
    run.budget_ticks = ticks;
    run.n_params = s->minimise != NULL && planner->params != NULL && strstr(planner->params, key) != NULL;
    run.param_key = &key;
    run.param_value = &s->minimise;
    MPL_TRY(mpl_plan_new(s->run->ctx, p, &plan));
    st = planner->plan(&run, p, plan);
    s->run->ticks += run.ticks > 0 ? run.ticks : 1;
    if (st == MPL_ELIMIT ||
        st == MPL_EUNAVAIL) { /* nothing within the capacity, or too large for it: no failure */
        st = MPL_OK;
        goto out;
    }
    if (st != MPL_OK)
        goto out;
    if (exact && p->n_in_place == 0 && !folded)
        take_proof(s, plan);
    if (plan->claim != MPL_INFEASIBLE)
        MPL_TRY(folded || planner == &mpl_planner_nnc_arena ? judge_folded(s, plan, folded) : judge(s, plan));
out:
    mpl_plan_free(s->run->ctx, plan);
    return st;
}

/* Whether a search takes this problem. */
static bool takes(const contest *s, const mpl_planner *planner, bool folded)
{
    const mpl_problem *p = folded ? s->folded : s->p;

    if (planner->plan == NULL || ((planner->traits & MPL_SERIAL_ONLY) != 0 && p->before != NULL))
        return false;
    if (planner == &mpl_planner_nnc_arena) /* it folds by itself */
        return p->before != NULL && folded == (s->folded != NULL);
    return planner == &mpl_planner_local_search || p->n_in_place == 0;
}

static mpl_status hold(contest *s)
{
    mpl_status st = MPL_OK;
    int n_problems = s->folded != NULL ? 2 : 1;
    uint64_t turn = FIRST_TURN;

    for (int i = 0; i < N_QUICK * n_problems && (i == 0 || !is_over(s)); i++)
        MPL_TRY(ask(s, quick[i % N_QUICK], i >= N_QUICK, s->run->seed, UINT64_MAX));
    for (uint64_t lap = 0; !is_over(s); lap++, turn *= 2)
        for (int i = 0; i < N_SEARCHES * n_problems && !is_over(s); i++)
            if (takes(s, searches[i % N_SEARCHES], i >= N_SEARCHES))
                MPL_TRY(ask(s, searches[i % N_SEARCHES], i >= N_SEARCHES, s->run->seed + lap,
                            mpl_min_u64(turn, s->limit - s->run->ticks)));
out:
    return st;
}

static mpl_status set_goals(contest *s, bool minimise)
{
    mpl_status st = MPL_OK;
    const mpl_problem *p = s->p;

    MPL_TRY(mpl_new(s->run->ctx, s->goal, p->n_pools));
    MPL_TRY(mpl_new(s->run->ctx, s->height, p->n_pools));
    for (uint32_t pool = 0; pool < p->n_pools; pool++) {
        uint64_t capacity = p->pool_capacity[pool];

        MPL_TRY(mpl_lower_bound(s->run->ctx, p, pool, &s->goal[pool], NULL));
        s->proved = s->proved || s->goal[pool] > capacity;
        if (!minimise && capacity != MPL_NO_CAPACITY && capacity > s->goal[pool])
            s->goal[pool] = capacity;
        s->height[pool] = UINT64_MAX;
    }
    if (s->proved)
        s->out->claim = MPL_INFEASIBLE;
out:
    return st;
}

static mpl_status plan(mpl_run *run, const mpl_problem *p, mpl_plan *out)
{
    mpl_status st = MPL_OK;
    contest s = {.run = run, .p = p, .out = out, .limit = run->budget_ticks};
    int64_t minimise;

    if (run->budget_ticks == UINT64_MAX && run->deadline_ns == INT64_MAX)
        s.limit = DEFAULT_TICKS;
    s.minimise = mpl_run_param(run, "minimise");
    MPL_TRY(mpl_run_param_int(run, "minimise", 0, 1, 0, &minimise));
    MPL_TRY(set_goals(&s, minimise != 0));
    if (s.proved)
        goto out;
    if (p->n_in_place > 0) {
        MPL_TRY(mpl_new(run->ctx, s.into, p->n));
        MPL_TRY(mpl_problem_fold(run->ctx, p, &s.folded, s.into));
    }
    MPL_TRY(hold(&s));
out:
    mpl_problem_free(run->ctx, s.folded);
    mpl_free(run->ctx, s.into);
    mpl_free(run->ctx, s.goal);
    mpl_free(run->ctx, s.height);
    return st;
}

const mpl_planner mpl_planner_portfolio = {
    .name = "portfolio",
    .about = "the best of the quick ones, then search",
    .source = "this project",
    .params = "minimise=0|1",
    .traits = MPL_RANDOM | MPL_USES_IN_PLACE | MPL_EXACT,
    .plan = plan,
};
