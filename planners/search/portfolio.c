/* portfolio.c -- the best of the quick planners, then as much search as the budget allows.
 *
 * Idea     Most problems are at the bound after the first placement. Otherwise each search has a
 *          short turn, since they succeed on different problems. The complete search gets the rest
 *          of the budget. It starts from the best plan and ends at the bound, the budget or the
 *          deadline.
 * Source   this project
 * Members  Placements by size, breadth, best fit, birth; exact; local_search; under parallel
 *          nnc_arena. members=a+b+c selects some. With in-place pairs, all run with the pairs and
 *          with the pairs folded.
 * Differs  Pools are judged one by one: each keeps the best plan that a member found for it.
 * Cost     The cost of its members. The complete search repeats its short turn later.
 * Limits   Without budget and deadline it ends after DEFAULT_TICKS. */
#include "graphs/problem/bounds/bounds.h"
#include "graphs/problem/fold_pairs.h"
#include "planners/planner.h"
#include "planners/verify/verify.h"

#define DEFAULT_TICKS UINT64_C(1000000000) /* a few seconds */
#define SHORT_TURN    8                    /* each takes 1 / SHORT_TURN of the budget */

extern const mpl_planner mpl_planner_greedy_size, mpl_planner_greedy_breadth, mpl_planner_best_fit,
    mpl_planner_first_fit, mpl_planner_local_search, mpl_planner_exact, mpl_planner_nnc_arena;

static const mpl_planner *const quick[] = {&mpl_planner_greedy_size, &mpl_planner_greedy_breadth,
                                           &mpl_planner_best_fit, &mpl_planner_first_fit};

static const struct turn {
    const mpl_planner *planner;
    bool last; /* starts from the best plan with the remaining budget */
} turns[] = {
    {&mpl_planner_exact, false},       {&mpl_planner_local_search, false},
    {&mpl_planner_nnc_arena, false},   {&mpl_planner_exact, true},
    {&mpl_planner_local_search, true},
};

enum { N_QUICK = sizeof quick / sizeof *quick, N_TURNS = sizeof turns / sizeof *turns };

typedef struct contest {
    mpl_run *run;
    const mpl_problem *p;
    mpl_problem *folded;  /* NULL: no pairs */
    uint32_t *into;       /* [p->n] the buffer of the folded problem */
    const char *minimise; /* value of the parameter, or NULL */
    const char *members;  /* value of the parameter, or NULL */
    uint64_t limit;       /* of ticks */
    int64_t begin_ns;
    mpl_plan *best_folded;   /* lowest plan of pool 0 of the folded problem; NULL: none */
    uint64_t *goal, *height; /* by pool; heights within the run's gap of the goal suffice [byte] */
    mpl_plan *out;
    bool proved; /* no plan fits the capacities */
} contest;

static bool is_over(contest *self)
{
    bool reached = true;

    for (uint32_t pool = 0; pool < self->p->n_pools; pool++)
        reached = reached && self->height[pool] <= self->p->pool_capacity[pool] &&
                  self->height[pool] <= mpl_run_enough(self->run, self->goal[pool]);
    if (mpl_run_late(self->run))
        self->run->stopped_by_clock = !reached;
    return reached || self->proved || self->run->stopped_by_clock ||
           self->run->ticks >= self->limit;
}

/* Takes over each pool that is lower in `plan`. */
static mpl_status judge(contest *self, const mpl_plan *plan)
{
    mpl_status st = MPL_OK;
    const mpl_problem *p = self->p;
    uint64_t *height = NULL;

    MPL_TRY(mpl_new(self->run->ctx, height, p->n_pools));
    for (mpl_buffer b = 0; b < p->n; b++)
        height[p->pool[b]] = mpl_max_u64(height[p->pool[b]], plan->offset[b] + p->bytes[b]);
    for (mpl_buffer b = 0; b < p->n; b++)
        if (height[p->pool[b]] < self->height[p->pool[b]])
            self->out->offset[b] = plan->offset[b];
    for (uint32_t pool = 0; pool < p->n_pools; pool++)
        self->height[pool] = mpl_min_u64(self->height[pool], height[pool]);
    self->out->claim = MPL_FEASIBLE;
out:
    mpl_free(self->run->ctx, height);
    return st;
}

/* The same for a plan with folded pairs (folded: a plan of the folded problem). It is verified
 * first, because a chain of pairs may not hold all of its buffers. */
static mpl_status judge_folded(contest *self, const mpl_plan *plan, bool folded)
{
    mpl_status st = MPL_OK;
    mpl_plan *whole = NULL;

    MPL_TRY(mpl_plan_new(self->run->ctx, self->p, &whole));
    whole->claim = MPL_FEASIBLE;
    for (mpl_buffer b = 0; b < self->p->n; b++)
        whole->offset[b] = plan->offset[folded ? self->into[b] : b];
    st = mpl_verify(self->run->ctx, self->p, whole);
    if (st == MPL_EINVALID)
        st = MPL_OK;
    else if (st == MPL_OK)
        MPL_TRY(judge(self, whole));
out:
    mpl_plan_free(self->run->ctx, whole);
    return st;
}

/* Takes over what a complete search proved of the problem itself; folding only restricts it. */
static void take_proof(contest *self, mpl_plan *plan)
{
    self->out->bound_bytes = mpl_max_u64(self->out->bound_bytes, plan->bound_bytes);
    self->goal[0] = mpl_max_u64(self->goal[0], plan->bound_bytes);
    self->proved = plan->claim == MPL_INFEASIBLE;
    if (self->proved)
        self->out->claim = MPL_INFEASIBLE;
    self->out->refutation.absent = plan->refutation.absent;
    if (plan->refutation.steps != NULL) {
        mpl_free(self->run->ctx, self->out->refutation.steps);
        self->out->refutation = plan->refutation;
        plan->refutation.steps = NULL;
    }
}

static uint64_t height_of(const mpl_problem *p, const mpl_plan *plan)
{
    uint64_t height = 0;

    for (mpl_buffer b = 0; b < p->n; b++)
        if (p->pool[b] == 0)
            height = mpl_max_u64(height, plan->offset[b] + p->bytes[b]);
    return height;
}

/* Evaluates a member's result; may take ownership of *plan. */
static mpl_status take_plan(contest *self, const mpl_planner *planner, bool folded, mpl_plan **plan)
{
    if (planner == &mpl_planner_exact && !folded &&
        (self->p->n_in_place == 0 || self->p->inside != NULL))
        take_proof(self, *plan);
    if ((*plan)->claim == MPL_INFEASIBLE)
        return MPL_OK;
    MPL_PASS(folded || planner == &mpl_planner_nnc_arena ? judge_folded(self, *plan, folded)
                                                         : judge(self, *plan));
    if (folded && (self->best_folded == NULL ||
                   height_of(self->folded, *plan) < height_of(self->folded, self->best_folded))) {
        mpl_plan_free(self->run->ctx, self->best_folded);
        self->best_folded = *plan;
        *plan = NULL;
    }
    return MPL_OK;
}

/* The best known plan of the problem, or NULL. */
static const uint64_t *start_of(const contest *self, bool folded)
{
    if (folded)
        return self->best_folded != NULL ? self->best_folded->offset : NULL;
    return self->out->claim == MPL_FEASIBLE ? self->out->offset : NULL;
}

static mpl_status ask(contest *self, const mpl_planner *planner, bool folded, const uint64_t *start,
                      uint64_t ticks, int64_t deadline_ns)
{
    mpl_status st = MPL_OK;
    const mpl_problem *p = folded ? self->folded : self->p;
    mpl_plan *plan = NULL;
    mpl_run run = *self->run;
    const char *key = "minimise";

    run.ticks = 0;
    run.stopped_by_clock = false;
    run.budget_ticks = ticks;
    run.deadline_ns = deadline_ns;
    run.start_offsets = start;
    run.n_params =
        self->minimise != NULL && planner->params != NULL && strstr(planner->params, key) != NULL;
    run.param_key = &key;
    run.param_value = &self->minimise;
    MPL_TRY(mpl_plan_new(self->run->ctx, p, &plan));
    st = planner->plan(&run, p, plan);
    self->run->ticks += run.ticks > 0 ? run.ticks : 1;
    if (st == MPL_ELIMIT || st == MPL_EUNAVAIL)
        st = MPL_OK; /* no plan within the capacity, or problem too large: no failure */
    else if (st == MPL_OK)
        MPL_TRY(take_plan(self, planner, folded, &plan));
out:
    mpl_plan_free(self->run->ctx, plan);
    return st;
}

/* Whether the parameter members selects the planner. */
static bool is_member(const contest *self, const mpl_planner *planner)
{
    size_t n = strlen(planner->name);

    for (const char *at = self->members; at != NULL;
         at = strchr(at, '+') != NULL ? strchr(at, '+') + 1 : NULL)
        if (strncmp(at, planner->name, n) == 0 && (at[n] == '+' || at[n] == '\0'))
            return true;
    return self->members == NULL;
}

/* Whether a search accepts this problem. */
static bool takes(const contest *self, const mpl_planner *planner, bool folded)
{
    const mpl_problem *p = folded ? self->folded : self->p;

    if (planner->plan == NULL || !is_member(self, planner) ||
        ((planner->traits & MPL_SERIAL_ONLY) != 0 && p->before != NULL))
        return false;
    if (self->p->inside != NULL) /* the others do not support families */
        return (planner == &mpl_planner_exact || planner == &mpl_planner_local_search) && !folded;
    if (planner == &mpl_planner_nnc_arena) /* it folds by itself */
        return p->before != NULL && folded == (self->folded != NULL);
    return planner == &mpl_planner_local_search || p->n_in_place == 0;
}

static mpl_status take_turn(contest *self, const struct turn *turn, bool folded)
{
    const mpl_run *run = self->run;
    uint64_t left = self->limit - run->ticks,
             ticks = turn->last ? left : mpl_min_u64(self->limit / SHORT_TURN, left);
    int64_t deadline = run->deadline_ns;

    if (deadline != INT64_MAX && !turn->last)
        deadline = mpl_clock_ns() + (deadline - self->begin_ns) / SHORT_TURN;
    return ask(self, turn->planner, folded, turn->last ? start_of(self, folded) : NULL,
               self->limit == UINT64_MAX ? UINT64_MAX : ticks,
               deadline < run->deadline_ns ? deadline : run->deadline_ns);
}

static mpl_status hold(contest *self)
{
    int n_problems = self->folded != NULL ? 2 : 1;

    for (int i = 0; i < N_QUICK * n_problems && !is_over(self); i++)
        if (is_member(self, quick[i % N_QUICK]))
            MPL_PASS(ask(self, quick[i % N_QUICK], i >= N_QUICK, NULL, UINT64_MAX,
                         self->run->deadline_ns));
    for (int i = 0; i < N_TURNS * n_problems && !is_over(self); i++)
        if (takes(self, turns[i / n_problems].planner, i % n_problems == 0 && n_problems == 2))
            MPL_PASS(
                take_turn(self, &turns[i / n_problems], i % n_problems == 0 && n_problems == 2));
    return MPL_OK;
}

static mpl_status check_members(const contest *self)
{
    const char *at = self->members;

    while (at != NULL) {
        size_t n = strcspn(at, "+");
        bool known = false;

        for (int i = 0; i < N_QUICK + N_TURNS; i++) {
            const mpl_planner *one = i < N_QUICK ? quick[i] : turns[i - N_QUICK].planner;

            known = known || (strlen(one->name) == n && strncmp(at, one->name, n) == 0);
        }
        if (!known)
            return MPL_REFUSE(
                self->run->ctx,
                "parameter members=%.60s: '%.*s' is none of greedy_size, greedy_breadth, best_fit, "
                "first_fit, "
                "exact, local_search, nnc_arena",
                self->members, (int)(n < 40 ? n : 40), at);
        at = at[n] == '+' ? at + n + 1 : NULL;
    }
    return MPL_OK;
}

static mpl_status set_goals(contest *self, bool minimise)
{
    const mpl_problem *p = self->p;

    MPL_PASS(mpl_new_each(self->run->ctx, p->n_pools, self->goal, self->height));
    for (uint32_t pool = 0; pool < p->n_pools; pool++) {
        uint64_t capacity = p->pool_capacity[pool];

        MPL_PASS(mpl_lower_bound(self->run->ctx, p, pool, &self->goal[pool], NULL));
        self->proved = self->proved || self->goal[pool] > capacity;
        if (!minimise && capacity != MPL_NO_CAPACITY && capacity > self->goal[pool])
            self->goal[pool] = capacity;
        self->height[pool] = UINT64_MAX;
    }
    if (self->proved)
        self->out->claim = MPL_INFEASIBLE;
    return MPL_OK;
}

/* Whether the plan meets the proven bound and all capacities. */
static bool is_optimal(const contest *self)
{
    bool fits = self->p->n_pools > 0 && self->height[0] <= self->out->bound_bytes;

    for (uint32_t pool = 0; pool < self->p->n_pools; pool++)
        fits = fits && self->height[pool] <= self->p->pool_capacity[pool];
    return fits;
}

static mpl_status plan(mpl_run *run, const mpl_problem *p, mpl_plan *out)
{
    mpl_status st = MPL_OK;
    contest s = {.run = run, .p = p, .out = out, .limit = run->budget_ticks};
    int64_t minimise;

    if (run->budget_ticks == UINT64_MAX && run->deadline_ns == INT64_MAX)
        s.limit = DEFAULT_TICKS;
    s.begin_ns = mpl_clock_ns();
    s.minimise = mpl_run_param(run, "minimise");
    s.members = mpl_run_param(run, "members");
    MPL_TRY(check_members(&s));
    MPL_TRY(mpl_run_param_int(run, "minimise", 0, 1, 0, &minimise));
    MPL_TRY(set_goals(&s, minimise != 0));
    if (s.proved)
        goto out;
    if (p->n_in_place > 0) {
        MPL_TRY(mpl_new(run->ctx, s.into, p->n));
        MPL_TRY(mpl_problem_fold(run->ctx, p, &s.folded, s.into));
    }
    MPL_TRY(hold(&s));
    if (out->claim == MPL_FEASIBLE && is_optimal(&s))
        out->claim = MPL_OPTIMAL;
    if (out->claim == MPL_UNKNOWN)
        MPL_FAIL(run->ctx, MPL_ELIMIT,
                 "no member of the portfolio found a plan in %" PRIu64 " ticks", run->ticks);
out:
    mpl_plan_free(run->ctx, s.best_folded);
    mpl_problem_free(run->ctx, s.folded);
    mpl_free_each(run->ctx, s.into, s.goal, s.height);
    return st;
}

const mpl_planner mpl_planner_portfolio = {
    .name = "portfolio",
    .about = "the best of the quick ones, then search",
    .source = "this project",
    .params = "minimise=0|1,members=A+B",
    .traits = MPL_RANDOM | MPL_USES_IN_PLACE | MPL_EXACT | MPL_USES_GAPS | MPL_USES_FAMILIES,
    .plan = plan,
};
