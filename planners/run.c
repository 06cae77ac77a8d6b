/* run.c -- the entry to all planners: parameters, traits, the call, the verifier. See planner.h. */
#include "planners/constrain.h"
#include "planners/place/placement.h"
#include "planners/verify/verify.h"

/* Splits "a<separator>b..": the next item and its length; false at the end. */
static bool next_item(const char **rest, char separator, const char **item, size_t *length)
{
    const char *end;

    if (*rest == NULL)
        return false;
    end = strchr(*rest, separator);
    *item = *rest;
    *length = end != NULL ? (size_t)(end - *rest) : strlen(*rest);
    *rest = end != NULL ? end + 1 : NULL;
    return true;
}

/* Whether a value is one of the alternatives "0|1|auto". An alternative in capitals ("N") accepts
 * anything; the planner checks it. */
static bool value_allowed(const char *alternatives, size_t n, const char *value)
{
    size_t at = 0;

    while (at <= n) {
        size_t end = at;

        while (end < n && alternatives[end] != '|')
            end++;
        if (end > at && alternatives[at] >= 'A' && alternatives[at] <= 'Z')
            return true;
        if (end - at == strlen(value) && memcmp(alternatives + at, value, end - at) == 0)
            return true;
        at = end + 1;
    }
    return false;
}

/* Whether planner->params declares key=value: 0 no such key, 1 no such value, 2 yes. */
static int declared(const mpl_planner *planner, const char *key, const char *value)
{
    const char *rest = planner->params, *item;
    size_t length, key_length = strlen(key);

    while (next_item(&rest, ',', &item, &length))
        if (length > key_length && item[key_length] == '=' && memcmp(item, key, key_length) == 0)
            return value_allowed(item + key_length + 1, length - key_length - 1, value) ? 2 : 1;
    return 0;
}

static mpl_status check_params(const mpl_planner *planner, const mpl_run *run)
{
    const char *takes = planner->params != NULL ? planner->params : "none";

    for (uint32_t i = 0; i < run->n_params; i++) {
        const char *key = run->param_key[i], *value = run->param_value[i];
        int found = (planner->traits & MPL_FOREIGN) != 0 ? 2 : declared(planner, key, value);

        if (found == 0)
            return MPL_REFUSE(run->ctx, "planner %s has no parameter '%.50s'; it takes: %s",
                              planner->name, key, takes);
        if (found == 1)
            return MPL_REFUSE(run->ctx, "planner %s: %s=%.50s is not possible; it takes: %s",
                              planner->name, key, value, takes);
        if (mpl_run_param(run, key) != value)
            return MPL_REFUSE(run->ctx, "planner %s: parameter '%s' is given twice", planner->name,
                              key);
    }
    return MPL_OK;
}

static mpl_status check_traits(const mpl_planner *planner, const mpl_run *run, const mpl_problem *p)
{
    char text[24];
    bool moves = (planner->traits & (MPL_BLOCKS | MPL_UNFIXED_ONLY)) != 0;

    if (planner->plan == NULL)
        return MPL_ERROR(run->ctx, MPL_EUNAVAIL, "planner %s is not in this build", planner->name);
    if ((planner->traits & MPL_SERIAL_ONLY) != 0 && p->before != NULL)
        return MPL_ERROR(run->ctx, MPL_EUNAVAIL,
                         "planner %s needs an order of steps: it cannot plan under parallel",
                         planner->name);
    for (mpl_buffer b = 0; p->fixed != NULL && moves && b < p->n; b++)
        if (p->fixed[b] != MPL_UNFIXED)
            return MPL_ERROR(
                run->ctx, MPL_EUNAVAIL,
                "planner %s decides all offsets: it cannot keep buffer '%.100s' at offset %" PRIu64,
                planner->name, mpl_buffer_label(p, b, text), p->fixed[b]);
    return MPL_OK;
}

/* A heuristic plan above the capacity proves nothing: report a limit, not an invalid plan. */
static mpl_status check_capacity(const mpl_planner *planner, const mpl_run *run,
                                 const mpl_problem *p, const mpl_plan *plan)
{
    char text[24];

    for (mpl_buffer b = 0; plan->claim == MPL_FEASIBLE && b < p->n; b++) {
        uint64_t capacity = p->pool_capacity[p->pool[b]], end;

        if (capacity != MPL_NO_CAPACITY && mpl_add_bytes(plan->offset[b], p->bytes[b], &end) &&
            end > capacity)
            return MPL_ERROR(run->ctx, MPL_ELIMIT,
                             "planner %s found no plan within %" PRIu64
                             " bytes (buffer '%.100s' would end at %" PRIu64 "); there may be one",
                             planner->name, capacity, mpl_buffer_label(p, b, text), end);
    }
    return MPL_OK;
}

static bool has_gaps(const mpl_problem *p)
{
    return p->gap_begin != NULL && p->gap_begin[p->n] > 0;
}

static bool loses_gaps(const mpl_planner *planner, const mpl_problem *p)
{
    return has_gaps(p) && (planner->traits & MPL_USES_GAPS) == 0;
}

/* Without gaps, parts of a family may overlap at one step; it must be placed as a whole. */
static bool loses_families(const mpl_planner *planner, const mpl_problem *p)
{
    return p->inside != NULL &&
           ((planner->traits & MPL_USES_FAMILIES) == 0 || loses_gaps(planner, p));
}

bool mpl_planner_sees_hull(const mpl_planner *planner, const mpl_problem *p)
{
    return loses_gaps(planner, p) || loses_families(planner, p);
}

/* Such a plan is valid for the problem, but its optimum and bound are not the problem's. */
static mpl_status lower_claims(const mpl_planner *planner, mpl_run *run, mpl_plan *plan)
{
    if (plan->claim == MPL_INFEASIBLE)
        return MPL_ERROR(
            run->ctx, MPL_ELIMIT,
            "planner %s proved that no plan fits if lifetimes had no gaps and families were "
            "whole; as they "
            "are, there may be one",
            planner->name);
    if (plan->claim == MPL_OPTIMAL)
        plan->claim = MPL_FEASIBLE;
    plan->bound_bytes = plan->spread.cost_bound = 0;
    plan->n_witness = 0;
    mpl_free_each(run->ctx, plan->witness, plan->refutation.steps);
    plan->witness = NULL;
    plan->refutation = (mpl_refutation){0};
    return MPL_OK;
}

/* Calls the planner on the problem that it is shown. */
static mpl_status call_on(const mpl_planner *planner, mpl_run *run, const mpl_problem *p,
                          mpl_plan *plan)
{
    mpl_status st = MPL_OK;
    mpl_problem hull = *p; /* a shallow copy: it owns nothing */
    const uint64_t *start = run->start_offsets;

    hull.gap_begin = hull.gap_from = hull.gap_to = NULL;
    if (loses_gaps(planner, p))
        run->start_offsets = NULL; /* without gaps, buffers have more conflicts */
    mpl_assert_ok(mpl_problem_ok(p));
    st = planner->plan(run, loses_gaps(planner, p) ? &hull : p, plan);
    if (st == MPL_OK && (planner->traits & MPL_FOREIGN) == 0)
        mpl_assert_ok(mpl_plan_ok(p, plan));
    run->start_offsets = start;
    return st;
}

/* Turns a plan of whole families into a plan of their parts. */
static mpl_status take_parts(mpl_run *run, const mpl_problem *p, const uint32_t *into,
                             mpl_plan *whole, mpl_plan *plan)
{
    mpl_spread *to = &plan->spread, *from = &whole->spread;

    plan->claim = whole->claim;
    if (whole->block != NULL)
        MPL_PASS(mpl_new(run->ctx, plan->block, p->n));
    if (from->n > 0)
        MPL_PASS(mpl_plan_spread(run->ctx, plan, from->n));
    for (uint32_t k = 0; k < from->n; k++) {
        to->capacity[k] = from->capacity[k];
        to->price[k] = from->price[k];
    }
    for (mpl_buffer b = 0; b < p->n; b++) {
        plan->offset[b] = whole->offset[into[b]] + p->inside_at[b];
        if (whole->block != NULL)
            plan->block[b] = whole->block[into[b]];
        if (from->n > 0) {
            to->memory[b] = from->memory[into[b]];
            to->cost += p->pool[b] == 0 ? p->bytes[b] * to->price[to->memory[b]]
                                        : 0; /* blocks: the verifier's sum */
        }
    }
    return MPL_OK;
}

static mpl_status call_on_whole(const mpl_planner *planner, mpl_run *run, const mpl_problem *p,
                                mpl_plan *plan)
{
    mpl_status st = MPL_OK;
    mpl_problem *hull = NULL;
    mpl_plan *whole = NULL;
    uint32_t *into = NULL;
    const uint64_t *start = run->start_offsets;

    MPL_TRY(mpl_new(run->ctx, into, p->n));
    MPL_TRY(mpl_problem_hull(run->ctx, p, &hull, into));
    MPL_TRY(mpl_plan_new(run->ctx, hull, &whole));
    run->start_offsets = NULL;
    st = call_on(planner, run, hull, whole);
    run->start_offsets = start;
    MPL_TRY(st);
    MPL_TRY(take_parts(run, p, into, whole, plan));
    if (plan->block == NULL && plan->spread.n == 0 && plan->claim != MPL_INFEASIBLE &&
        (planner->traits & (MPL_NO_REUSE | MPL_FOREIGN)) == 0)
        MPL_TRY(mpl_place_sink(run, p, plan->offset));
out:
    mpl_problem_free(run->ctx, hull);
    mpl_plan_free(run->ctx, whole);
    mpl_free(run->ctx, into);
    return st;
}

/* Runs the planner without the checks around it. */
static mpl_status call(const mpl_planner *planner, mpl_run *run, const mpl_problem *p,
                       mpl_plan *plan)
{
    int64_t begin = mpl_clock_ns();

    MPL_PASS(loses_families(planner, p) ? call_on_whole(planner, run, p, plan)
                                        : call_on(planner, run, p, plan));
    if ((planner->traits & MPL_FOREIGN) == 0)
        run->plan_ns = mpl_clock_ns() - begin;
    if (mpl_planner_sees_hull(planner, p))
        MPL_PASS(lower_claims(planner, run, plan));
    return MPL_OK;
}

mpl_status mpl_planner_run(const mpl_planner *planner, mpl_run *run, const mpl_problem *p,
                           mpl_plan **out)
{
    mpl_status st = MPL_OK;
    mpl_plan *plan = NULL;

    MPL_TRY(check_params(planner, run));
    MPL_TRY(check_traits(planner, run, p));
    if (p->constraints == NULL)
        MPL_TRY(mpl_plan_new(run->ctx, p, &plan));
    run->planner = planner;
    run->ticks = 0;
    run->plan_ns = run->self_ns = 0;
    run->failure = NULL;
    run->stopped_by_clock = run->solver_gave_up = false;
    MPL_TRY(p->constraints != NULL ? mpl_constrained_plan(planner, run, p, mpl_planner_run, &plan)
                                   : call(planner, run, p, plan));
    if (plan->claim != MPL_INFEASIBLE || (planner->traits & MPL_EXACT) == 0) {
        MPL_TRY(check_capacity(planner, run, p, plan));
        MPL_TRY(mpl_verify(run->ctx, p, plan));
        if ((planner->traits & MPL_FOREIGN) != 0)
            plan->bound_bytes = 0; /* a foreign bound is not trusted */
        MPL_TRY(mpl_plan_bound(run->ctx, p, plan));
        /* includes the certificate */
        mpl_assert_slow(mpl_verify(run->ctx, p, plan) != MPL_EINVALID);
    }
    *out = plan, plan = NULL;
out:
    mpl_plan_free(run->ctx, plan);
    return st;
}
