/* exact_general.c -- the exact planner for a partial order, gaps, in-place pairs or families.
 *
 * Idea     For each pool: the bound of the problem, greedy plans and local search, and the complete
 *          search between the two. With pairs, the first plan is that of the folded problem, found
 *          in the same way.
 * Source   this project; exact_core.c, exact_pairs.c */
#include "planners/exact/exact_general.h"

#include "graphs/problem/bounds/bounds.h"
#include "graphs/problem/fold_pairs.h"

static bool has_pairs(const mpl_problem *p, uint32_t pool)
{
    for (uint32_t i = 0; i < p->n_in_place; i++)
        if (p->pool[p->in_place_in[i]] == pool)
            return true;
    return false;
}

static bool has_families(const mpl_problem *p, uint32_t pool)
{
    for (mpl_buffer b = 0; p->inside != NULL && b < p->n; b++)
        if (p->pool[b] == pool && p->inside[b] != b)
            return true;
    return false;
}

/* Finds two buffers whose fixed offsets break the rules, the lower first. Then no plan exists. */
static bool fixed_clash(const mpl_problem *p, mpl_buffer two[2])
{
    for (mpl_buffer a = 0; p->fixed != NULL && a < p->n; a++)
        for (mpl_buffer b = 0; p->fixed[a] != MPL_UNFIXED && b < a; b++)
            if (p->fixed[b] != MPL_UNFIXED && p->fixed[a] < p->fixed[b] + p->bytes[b] &&
                p->fixed[b] < p->fixed[a] + p->bytes[a] && mpl_conflict(p, a, b) &&
                (p->fixed[a] != p->fixed[b] || !mpl_is_pair(p, a, b))) {
                two[0] = p->fixed[a] < p->fixed[b] ? a : b;
                two[1] = two[0] == a ? b : a;
                return true;
            }
    return false;
}

/* Whether a plan breaks no conflict. Folding assumes the pairs that graphs produce. In other
 * partial orders two buffers that overwrite a third, one after the other, may conflict. */
static bool is_valid(const mpl_problem *p, const uint64_t *offset)
{
    for (mpl_buffer a = 0; a < p->n; a++)
        for (mpl_buffer b = 0; b < a; b++)
            if (offset[a] < offset[b] + p->bytes[b] && offset[b] < offset[a] + p->bytes[a] &&
                mpl_conflict(p, a, b) && (offset[a] != offset[b] || !mpl_is_pair(p, a, b)))
                return false;
    return true;
}

/* Whether the first plan is the whole work: one pool, too large for the search of pairs. */
static bool first_is_all(const mpl_problem *p)
{
    return p->n_pools == 1 && p->n > MPL_EXACT_PAIRS_MOST;
}

/* Plans `easier`, a problem without pairs; into[] maps the buffers of p to it. Uses a quarter of
 * the budget if more work follows. */
static mpl_status plan_easier(mpl_run *run, const mpl_problem *p, const mpl_problem *easier,
                              const uint32_t *into, mpl_exact_effort *effort, mpl_plan *out)
{
    mpl_status st = MPL_OK;
    mpl_plan *plan = NULL;
    mpl_run part = *run;
    /* its bound is not that of p */
    mpl_watch quiet = {.stop = run->watch != NULL ? run->watch->stop : NULL};
    uint64_t share = into != NULL && first_is_all(p) ? 1 : 4;

    part.watch = &quiet;
    part.start_offsets = NULL; /* a plan of another problem */
    MPL_TRY(mpl_plan_new(run->ctx, easier, &plan));
    part.budget_ticks = effort->tick_limit / share;
    if (run->deadline_ns != INT64_MAX)
        part.deadline_ns = mpl_clock_ns() + (run->deadline_ns - mpl_clock_ns()) / (int64_t)share;
    st = mpl_exact_plan(&part, easier, &(mpl_exact_options){.without = effort->without}, plan);
    effort->ticks += part.ticks;
    if (st != MPL_ELIMIT)
        MPL_TRY(st);
    st = MPL_OK;
    for (mpl_buffer b = 0; b < p->n; b++)
        out->offset[b] = plan->offset[into != NULL ? into[b] : b];
out:
    mpl_plan_free(run->ctx, plan);
    return st;
}

/* Makes a first plan with all pairs taken where possible, else with none. */
static mpl_status plan_first(mpl_run *run, const mpl_problem *p, mpl_exact_effort *effort,
                             mpl_plan *out)
{
    mpl_status st = MPL_OK;
    mpl_problem *folded = NULL, without = *p;
    uint32_t *into = NULL;

    MPL_TRY(mpl_new(run->ctx, into, p->n));
    MPL_TRY(mpl_problem_fold(run->ctx, p, &folded, into));
    MPL_TRY(plan_easier(run, p, folded, into, effort, out));
    without.n_in_place = 0;
    if (!is_valid(p, out->offset))
        MPL_TRY(plan_easier(run, p, &without, NULL, effort, out));
out:
    mpl_problem_free(run->ctx, folded);
    mpl_free(run->ctx, into);
    return st;
}

/* Solves one pool without pairs. */
static mpl_status solve_pool(const mpl_run *run, const mpl_problem *p, uint32_t pool,
                             uint64_t enough, uint64_t most, mpl_exact_effort *effort,
                             uint64_t *offset, uint64_t *height, uint64_t *bound)
{
    mpl_status st = MPL_OK;
    mpl_ctx *ctx = run->ctx;
    mpl_bodies *bodies = NULL;
    uint64_t *place = NULL;

    *height = UINT64_MAX;
    MPL_TRY(mpl_bodies_of_pool(ctx, p, pool, &bodies));
    MPL_TRY(mpl_new(ctx, place, bodies->n));
    for (uint32_t i = 0; run->start_offsets != NULL && i < bodies->n; i++)
        place[i] = run->start_offsets[bodies->buffer[i]];
    if (run->start_offsets != NULL && bodies->n > 0)
        *height = mpl_bodies_height(bodies, place);
    MPL_TRY(mpl_general_solve(ctx, p, bodies, enough, most, effort, place, height, bound));
    for (uint32_t i = 0; i < bodies->n; i++)
        offset[bodies->buffer[i]] = place[i];
out:
    mpl_bodies_free(ctx, bodies);
    mpl_free(ctx, place);
    return st;
}

static mpl_status plan_pool(mpl_run *run, const mpl_problem *p, uint32_t pool, bool minimise,
                            mpl_exact_effort *effort, mpl_plan *out)
{
    uint64_t most = p->pool_capacity[pool], bound, height;
    uint64_t enough = minimise || most == MPL_NO_CAPACITY ? 0 : most;

    MPL_PASS(mpl_lower_bound(run->ctx, p, pool, &bound, NULL));
    if (run->gap_parts > 0)
        enough = mpl_max_u64(enough, mpl_min_u64(most, mpl_run_enough(run, bound)));
    if (has_families(p, pool)) {
        height = mpl_pool_height(p, pool, out->offset);
        MPL_PASS(mpl_exact_families(run->ctx, p, pool, enough, most, effort, out->offset, &height,
                                    &bound));
    } else if (has_pairs(p, pool)) {
        height = mpl_pool_height(p, pool, out->offset);
        MPL_PASS(
            mpl_exact_pairs(run->ctx, p, pool, enough, most, effort, out->offset, &height, &bound));
    } else {
        MPL_PASS(solve_pool(run, p, pool, enough, most, effort, out->offset, &height, &bound));
    }
    if (bound > most)
        out->claim = MPL_INFEASIBLE;
    else if (height > most && out->claim != MPL_INFEASIBLE)
        out->claim = MPL_UNKNOWN;
    else if (pool == 0 && height > bound && out->claim == MPL_OPTIMAL)
        out->claim = MPL_FEASIBLE;
    if (pool == 0)
        out->bound_bytes = bound;
    return MPL_OK;
}

/* ---- refutations ---- */

static uint64_t fixed_at(const mpl_problem *p, mpl_buffer b)
{
    return p->fixed != NULL && p->fixed[b] != MPL_UNFIXED ? p->fixed[b] : 0;
}

/* Every feasible pool has a plan below this height. */
static uint64_t ample(const mpl_problem *p)
{
    uint64_t sum = 0;

    for (mpl_buffer b = 0; b < p->n; b++)
        if ((!mpl_add_bytes(sum, p->bytes[b] + p->align[b], &sum) ||
             !mpl_add_bytes(sum, fixed_at(p, b), &sum)))
            return UINT64_MAX;
    return sum;
}

/* Proves that the two can lie neither at one offset nor apart. */
static mpl_status prove_clash(mpl_ctx *ctx, const mpl_problem *p, const mpl_buffer two[2],
                              mpl_refutation *out)
{
    mpl_status st = MPL_OK;
    mpl_proof proof = {.ctx = ctx};
    uint32_t pool = p->pool[two[0]], set;

    *out = (mpl_refutation){.pool = pool, .within = p->pool_capacity[pool]};
    if (out->within == MPL_NO_CAPACITY)
        out->within = ample(p);
    if (mpl_is_pair(p, two[0], two[1])) {
        mpl_proof_add(&proof, 's', two[0], two[1], 0);
        mpl_proof_add(&proof, 'z', two[0], 0, 0);
    }
    set = (uint32_t)proof.n;
    mpl_proof_add(&proof, 'c', two[0], set, 0);
    mpl_proof_add(&proof, 'c', two[1], set, 0);
    mpl_proof_add(&proof, 'x', two[0], set, 0);
    if (proof.failed)
        MPL_TRY(MPL_EMEM);
    MPL_TRY(mpl_proof_text(&proof, &out->steps));
out:
    mpl_proof_fini(&proof);
    return st;
}

mpl_status mpl_exact_clash(mpl_ctx *ctx, const mpl_problem *p, mpl_plan *out, bool *clash)
{
    mpl_buffer two[2];

    *clash = fixed_clash(p, two);
    if (!*clash)
        return MPL_OK;
    out->claim = MPL_INFEASIBLE;
    return prove_clash(ctx, p, two, &out->refutation);
}

/* Writes a clique that needs more than `within` bytes, if there is one. */
static mpl_status write_witness(const mpl_problem *p, uint32_t pool, uint64_t within,
                                mpl_proof *proof, bool *done)
{
    mpl_status st = MPL_OK;
    uint8_t *member = NULL;
    uint64_t live;
    mpl_buffer lowest = MPL_NONE;
    uint32_t set = (uint32_t)proof->n + 1;

    *done = false;
    MPL_TRY(mpl_new(proof->ctx, member, p->n));
    MPL_TRY(mpl_witness_bound(proof->ctx, p, pool, &live, member));
    for (mpl_buffer b = 0; b < p->n; b++)
        if (member[b] && (lowest == MPL_NONE || fixed_at(p, b) < fixed_at(p, lowest)))
            lowest = b;
    if (live <= within || lowest == MPL_NONE)
        goto out;
    mpl_proof_add(proof, 'o', lowest, 0, 0);
    for (mpl_buffer b = 0; b < p->n; b++)
        if (member[b])
            mpl_proof_add(proof, 'c', b, set, 0);
    mpl_proof_add(proof, 'x', lowest, set, 0);
    *done = true;
out:
    mpl_free(proof->ctx, member);
    return st;
}

/* Writes a refutation found by search. */
static mpl_status write_refutation(const mpl_problem *p, const mpl_refutation *refutation,
                                   const uint64_t *offset, mpl_exact_effort *effort,
                                   mpl_proof *proof, bool *done)
{
    mpl_status st = MPL_OK;
    mpl_ctx *ctx = proof->ctx;
    mpl_bodies *bodies = NULL;
    uint64_t *place = NULL;
    mpl_exact_verdict verdict;

    if (has_pairs(p, refutation->pool)) {
        MPL_TRY(mpl_exact_pairs_refute(ctx, p, refutation->pool, refutation->within, effort, proof,
                                       &verdict));
    } else {
        MPL_TRY(mpl_bodies_of_pool(ctx, p, refutation->pool, &bodies));
        MPL_TRY(mpl_new(ctx, place, bodies->n));
        for (uint32_t i = 0; i < bodies->n; i++)
            place[i] = offset[bodies->buffer[i]];
        MPL_TRY(
            mpl_general_refute(ctx, p, bodies, refutation->within, place, effort, proof, &verdict));
    }
    *done = verdict == MPL_EXACT_FAILED;
out:
    mpl_bodies_free(ctx, bodies);
    mpl_free(ctx, place);
    return st;
}

/* Proves that the pool has no plan within out->within. */
static mpl_status prove_pool(mpl_ctx *ctx, const mpl_problem *p, const uint64_t *offset,
                             mpl_exact_effort *effort, mpl_refutation *out)
{
    mpl_status st = MPL_OK;
    mpl_proof proof = {.ctx = ctx};
    bool done;

    out->absent = MPL_PROOF_TOO_LATE;
    MPL_TRY(write_witness(p, out->pool, out->within, &proof, &done));
    if (!done && !effort->by_clock && effort->ticks < effort->tick_limit)
        MPL_TRY(write_refutation(p, out, offset, effort, &proof, &done));
    if (proof.failed && !proof.full)
        MPL_TRY(MPL_EMEM);
    if (proof.full)
        out->absent = MPL_PROOF_TOO_LONG;
    else if (done)
        MPL_TRY(mpl_proof_text(&proof, &out->steps));
out:
    mpl_proof_fini(&proof);
    return st;
}

/* Whether the plan claims more than a clique proves. */
static mpl_status needs_proof(mpl_ctx *ctx, const mpl_problem *p, const mpl_plan *plan, bool *needs)
{
    mpl_status st = MPL_OK;
    uint8_t *member = NULL;
    uint64_t live = 0, sum = 0;

    MPL_TRY(mpl_new(ctx, member, p->n));
    MPL_TRY(mpl_lower_bound(ctx, p, 0, &live, member));
    for (mpl_buffer b = 0; b < p->n; b++)
        sum += member[b];
    *needs = plan->bound_bytes > (sum > 0 ? live : 0);
out:
    mpl_free(ctx, member);
    return st;
}

static mpl_status prove(mpl_ctx *ctx, const mpl_problem *p, uint32_t failed, bool proofs,
                        mpl_exact_effort *effort, mpl_plan *out)
{
    bool needs = true;

    if (out->claim != MPL_INFEASIBLE)
        MPL_PASS(needs_proof(ctx, p, out, &needs));
    if (!needs)
        return MPL_OK;
    out->refutation = (mpl_refutation){.pool = failed, .within = p->pool_capacity[failed]};
    if (out->claim != MPL_INFEASIBLE)
        out->refutation = (mpl_refutation){.within = out->bound_bytes - 1};
    out->refutation.absent = MPL_PROOF_NOT_ASKED;
    if (has_families(p, failed))
        out->refutation.absent = MPL_PROOF_FAMILIES;
    else if (proofs)
        MPL_PASS(prove_pool(ctx, p, out->offset, effort, &out->refutation));
    return MPL_OK;
}

/* Plans a problem with a partial order, gaps, in-place pairs or families. */
static mpl_status plan_general(mpl_run *run, const mpl_problem *p, const mpl_exact_options *options,
                               mpl_exact_effort *effort, mpl_plan *out)
{
    uint32_t failed = 0;
    bool clash;

    MPL_PASS(mpl_exact_clash(run->ctx, p, out, &clash));
    if (clash)
        return MPL_OK;
    out->claim = MPL_OPTIMAL;
    if (p->inside != NULL)
        MPL_PASS(mpl_exact_families_first(run, p, mpl_exact_plan, effort, out->offset));
    else if (p->n_in_place > 0)
        MPL_PASS(plan_first(run, p, effort, out));
    for (uint32_t pool = 0; pool < p->n_pools; pool++) {
        bool fits = out->claim != MPL_INFEASIBLE;

        MPL_PASS(plan_pool(run, p, pool, options->minimise, effort, out));
        failed = fits && out->claim == MPL_INFEASIBLE ? pool : failed;
    }
    return prove(run->ctx, p, failed, options->proofs, effort, out);
}

mpl_status mpl_exact_plan(mpl_run *run, const mpl_problem *p, const mpl_exact_options *options,
                          mpl_plan *out)
{
    mpl_exact_effort effort = mpl_exact_begin(run, options);

    if (p->before == NULL && p->gap_begin == NULL && p->inside == NULL && p->n_in_place == 0)
        return mpl_exact_serial(run, p, options, out);
    MPL_PASS(plan_general(run, p, options, &effort, out));
    return mpl_exact_end(run, &effort, out);
}
