/* ilp.c -- placement as a mixed integer program, solved by GLPK: an oracle that shares no search
 * code with other planners.
 *
 * Idea     A real offset for each buffer and a binary for each conflicting pair. The height is
 *          minimised between the bound and the best heuristic, since only a lower plan is worth
 *          finding. Plain big-M proves up to about 50 pairs in a minute. Bounds on the height, rows
 *          for whole cliques, an order among identical buffers, and smaller programs (below) make
 *          it usable.
 * Source   Big-M placement is folklore (Sekiyama et al., "Profile-guided memory optimization for
 *          deep neural networks", 2018, give it for memory plans); rows and reductions are this
 *          project's.
 * Smaller  A buffer that conflicts with all others of its component goes to the bottom. A buffer
 *          that always finds a place below the bound (each other buffer forbids at most as many
 *          starts as both sizes together) is put back last, like a node of low degree in graph
 *          colouring. Components are solved separately. A part whose heuristic reaches the bound
 *          needs no program.
 * Capacity If the pool has one, a plan within it ends the search, and the programs search no
 *          higher; minimise=1 continues.
 * Families A pool with families is one part, since no buffer moves alone. Two rows fix each
 *          distance.
 * Cold     start=cold keeps the heuristics' plans from the programs; they remain for parts that no
 *          program solves.
 * Cost     Exponential; stops after 2e10 ticks if nothing else ends it. ticks: pivots of the
 *          simplex method, each weighted by the program's rows and columns, plus those of the
 *          heuristics. Limits are checked between nodes and in the first relaxation.
 * Limits   GLPK works in doubles: its offsets are rounded and checked, heights beyond 2^21 of the
 *          finest unit prove nothing, and parts of more than max_pairs pairs keep the heuristic's
 *          plan. */
#include "planners/ilp/ilp.h"

#include "graphs/problem/bounds/bounds.h"
#include "mpl_config.h"
#include "planners/exact/exact_general.h"
#include "planners/ilp/ilp_priv.h"
#include "planners/verify/verify.h"

#define MAX_BUFFERS 4096               /* of a pool; larger pools get only the heuristics */
#define MAX_PAIRS   4000               /* of a part, unless the parameter says otherwise */
#define MAX_NODES   1000000            /* of all parts */
#define ARENA_TICKS UINT64_C(20000000) /* at most, of the heuristic search at the start */

extern const mpl_planner mpl_planner_none, mpl_planner_greedy_size, mpl_planner_best_fit,
    mpl_planner_nnc_arena;

/* ---- the pool in units ---- */

/* Offsets of a pushed-down packing are sums of aligned slots, from 0 or a fixed offset. */
static void find_unit(mpl_ilp *ilp, uint64_t *finest)
{
    const mpl_problem *p = ilp->p;
    uint64_t grain = UINT64_C(1) << 31, unit = 0, fine = 0;

    for (uint32_t i = 0; i < ilp->n; i++)
        grain = mpl_min_u64(grain, p->align[ilp->id[i]]);
    for (uint32_t i = 0; i < ilp->n; i++) {
        unit = mpl_divisor(unit, mpl_ilp_round_up(p->bytes[ilp->id[i]], grain));
        fine = mpl_divisor(fine, p->bytes[ilp->id[i]]);
        if (mpl_ilp_fixed(ilp, i))
            unit = mpl_divisor(unit, p->fixed[ilp->id[i]]);
        if (p->inside != NULL)
            unit = mpl_divisor(unit, p->inside_at[ilp->id[i]]);
    }
    ilp->unit = unit;
    /* an alignment that does not divide the unit caps it at a power of two */
    for (uint32_t i = 0; i < ilp->n; i++)
        if (unit % p->align[ilp->id[i]] != 0)
            ilp->unit = mpl_divisor(ilp->unit, p->align[ilp->id[i]]);
    for (uint32_t i = 0; i < ilp->n; i++) {
        ilp->size[i] = mpl_ilp_round_up(p->bytes[ilp->id[i]], grain) / ilp->unit;
        ilp->step[i] = p->align[ilp->id[i]] > ilp->unit ? p->align[ilp->id[i]] / ilp->unit : 1;
    }
    *finest = mpl_divisor(ilp->unit, fine);
}

static mpl_status mark_joins(mpl_ilp *ilp, const uint32_t *index)
{
    const mpl_problem *p = ilp->p;

    if (p->n_in_place == 0)
        return MPL_OK;
    MPL_PASS(mpl_new(ilp->ctx, ilp->joins, (size_t)ilp->n * ilp->n_words));
    for (uint32_t k = 0; k < p->n_in_place; k++) {
        uint32_t i = index[p->in_place_in[k]], j = index[p->in_place_out[k]];

        if (i == MPL_NONE || !mpl_conflict(p, ilp->id[i], ilp->id[j]))
            continue;
        mpl_bit_add(ilp->joins + (size_t)i * ilp->n_words, j);
        mpl_bit_add(ilp->joins + (size_t)j * ilp->n_words, i);
    }
    return MPL_OK;
}

/* Fills lowest[] and apart[] if some family has two parts. Needs the unit. */
static mpl_status link_families(mpl_ilp *ilp, const uint32_t *index)
{
    const mpl_problem *p = ilp->p;
    bool any = false;

    for (uint32_t i = 0; p->inside != NULL && i < ilp->n; i++)
        any = any || p->inside[ilp->id[i]] != ilp->id[i];
    if (!any)
        return MPL_OK;
    MPL_PASS(mpl_new_each(ilp->ctx, ilp->n, ilp->lowest, ilp->apart));
    for (uint32_t i = 0; i < ilp->n; i++) {
        ilp->lowest[i] = index[p->inside[ilp->id[i]]];
        ilp->apart[i] = p->inside_at[ilp->id[i]] / ilp->unit;
    }
    return MPL_OK;
}

static mpl_status open_pool(mpl_ilp_driver *driver, uint32_t pool)
{
    mpl_status st = MPL_OK;
    mpl_ilp *ilp = &driver->s;
    const mpl_problem *p = ilp->p;
    uint32_t *index = NULL;

    MPL_TRY(mpl_new_each(ilp->ctx, p->n, ilp->id, index));
    for (mpl_buffer b = 0; b < p->n; b++) {
        index[b] = p->pool[b] == pool ? ilp->n : MPL_NONE;
        if (p->pool[b] == pool)
            ilp->id[ilp->n++] = b;
    }
    if (ilp->n > MAX_BUFFERS || ilp->n == 0)
        goto out;
    ilp->n_words = (ilp->n + 63) / 64;
    MPL_TRY(mpl_new_each(ilp->ctx, ilp->n, ilp->size, ilp->step, ilp->at));
    MPL_TRY(mpl_new(ilp->ctx, ilp->row, (size_t)ilp->n * ilp->n_words));
    MPL_TRY(mpl_new(ilp->ctx, driver->placed, ilp->n_words));
    MPL_TRY(mpl_new_each(ilp->ctx, ilp->n, driver->stack, driver->by_at));
    for (uint32_t i = 0; i < ilp->n; i++)
        for (uint32_t j = 0; j < i; j++)
            if (mpl_conflict(p, ilp->id[i], ilp->id[j])) {
                mpl_bit_add(ilp->row + (size_t)i * ilp->n_words, j);
                mpl_bit_add(ilp->row + (size_t)j * ilp->n_words, i);
            }
    find_unit(ilp, &driver->finest);
    MPL_TRY(mark_joins(ilp, index));
    MPL_TRY(link_families(ilp, index));
out:
    mpl_free(ilp->ctx, index);
    return st;
}

static void close_pool(mpl_ilp_driver *driver)
{
    mpl_ilp *ilp = &driver->s;

    mpl_free_each(ilp->ctx, ilp->id, ilp->size, ilp->step, ilp->row, ilp->joins, ilp->at,
                  ilp->lowest, ilp->apart, driver->placed, driver->stack, driver->by_at);
}

/* ---- one pool ---- */

/* The problem's bound, rounded up to a possible height, and fixed ends. Needs open_pool. */
static mpl_status first_bound(mpl_ilp_driver *driver, uint32_t pool)
{
    const mpl_ilp *ilp = &driver->s;

    MPL_PASS(mpl_lower_bound(ilp->ctx, ilp->p, pool, &driver->proved_bytes, NULL));
    if (ilp->row == NULL)
        return MPL_OK;
    driver->proved_bytes = mpl_ilp_round_up(driver->proved_bytes, driver->finest);
    for (uint32_t i = 0; i < ilp->n; i++)
        if (mpl_ilp_fixed(ilp, i))
            driver->proved_bytes = mpl_max_u64(driver->proved_bytes,
                                               ilp->p->fixed[ilp->id[i]] + mpl_ilp_bytes(ilp, i));
    return MPL_OK;
}

/* Solves the whole pool as one part, starting from the given plan; the reductions move buffers one
 * by one and do not apply. */
static mpl_status pack_families(mpl_ilp_driver *driver, const uint64_t *plan)
{
    mpl_status st = MPL_OK;
    mpl_ilp *ilp = &driver->s;
    mpl_ilp_part part = {.n = ilp->n};
    uint64_t height = driver->cold ? UINT64_MAX : driver->best_bytes;

    MPL_TRY(mpl_new(ilp->ctx, part.member, ilp->n));
    for (uint32_t i = 0; i < ilp->n; i++) {
        part.member[i] = i;
        ilp->at[i] = plan[ilp->id[i]] / ilp->unit;
    }
    if (mpl_ilp_is_valid(ilp, &part) && mpl_ilp_height_of(ilp, &part) <= driver->best_bytes &&
        mpl_ilp_range_of(driver, &part, height))
        MPL_TRY(mpl_ilp_solve_part(driver, &part, &height));
out:
    mpl_free(ilp->ctx, part.member);
    return st;
}

/* Improves the plan in offset[], or leaves it. driver->proved_bytes: lower bound of the pool. */
static mpl_status solve_pool(mpl_ilp_driver *driver, uint32_t pool, uint64_t *offset)
{
    mpl_status st = MPL_OK;
    mpl_ilp *ilp = &driver->s;
    uint64_t *all = NULL, height = 0;

    driver->best_bytes = mpl_pool_height(ilp->p, pool, offset);
    MPL_TRY(open_pool(driver, pool));
    MPL_TRY(first_bound(driver, pool));
    if (ilp->row == NULL || (!driver->cold && driver->best_bytes <= mpl_ilp_goal(driver)))
        goto out;
    MPL_TRY(mpl_new(ilp->ctx, all, ilp->n_words));
    for (uint32_t i = 0; i < ilp->n; i++)
        mpl_bit_add(all, i);
    MPL_TRY(ilp->lowest != NULL ? pack_families(driver, offset)
                                : mpl_ilp_pack(driver, all, 0, offset));
    while (driver->n_stack > 0)
        mpl_ilp_place_lowest(driver, driver->stack[--driver->n_stack], 0);
    for (uint32_t i = 0; i < ilp->n; i++)
        height = mpl_max_u64(height, mpl_ilp_end_bytes(ilp, i));
    for (uint32_t i = 0; height < driver->best_bytes && i < ilp->n; i++)
        offset[ilp->id[i]] = ilp->at[i] * ilp->unit;
    driver->best_bytes = mpl_min_u64(driver->best_bytes, height);
out:
    mpl_free(ilp->ctx, all);
    close_pool(driver);
    return st;
}

/* ---- the planner ---- */

/* Runs one heuristic on p without capacities; out[] takes each pool in which it is lower. */
static mpl_status try_planner(mpl_run *run, const mpl_problem *p, const mpl_planner *planner,
                              bool first, uint64_t *out)
{
    mpl_status st = MPL_OK;
    mpl_plan *plan = NULL;
    mpl_run part = {
        .ctx = run->ctx, .seed = run->seed, .deadline_ns = run->deadline_ns, .n_threads = 1};

    part.budget_ticks =
        mpl_min_u64(mpl_min_u64(run->budget_ticks / 4, ARENA_TICKS), 200 * (uint64_t)p->n * p->n);
    MPL_TRY(mpl_plan_new(run->ctx, p, &plan));
    MPL_TRY(planner->plan(&part, p, plan));
    run->ticks += part.ticks;
    plan->claim = MPL_FEASIBLE;
    st = mpl_verify(run->ctx, p, plan);
    /* a chain of in-place pairs that no operator makes may fold into an invalid plan */
    if (st == MPL_EINVALID && !first) {
        st = MPL_OK;
        goto out;
    }
    MPL_TRY(st);
    for (uint32_t pool = 0; pool < p->n_pools; pool++)
        if (first || mpl_pool_height(p, pool, plan->offset) < mpl_pool_height(p, pool, out))
            for (mpl_buffer b = 0; b < p->n; b++)
                if (p->pool[b] == pool)
                    out[b] = plan->offset[b];
out:
    mpl_plan_free(run->ctx, plan);
    return st;
}

/* The best heuristic plan of each pool; cold: a plan without sharing. */
static mpl_status start(mpl_run *run, const mpl_problem *p, bool cold, uint64_t *offset)
{
    static const mpl_planner *const warm_planners[] = {
        &mpl_planner_greedy_size, &mpl_planner_best_fit, &mpl_planner_nnc_arena};
    mpl_status st = MPL_OK;
    mpl_problem roomy = *p;

    roomy.pool_capacity = NULL;
    MPL_TRY(mpl_new(run->ctx, roomy.pool_capacity, p->n_pools));
    for (uint32_t pool = 0; pool < p->n_pools; pool++)
        roomy.pool_capacity[pool] = MPL_NO_CAPACITY;
    if (cold)
        MPL_TRY(try_planner(run, &roomy, &mpl_planner_none, true, offset));
    for (size_t i = 0; !cold && i < sizeof warm_planners / sizeof *warm_planners; i++)
        if (warm_planners[i] != &mpl_planner_nnc_arena ||
            (p->fixed == NULL && p->inside == NULL && p->n <= MAX_BUFFERS))
            MPL_TRY(try_planner(run, &roomy, warm_planners[i], i == 0, offset));
out:
    mpl_free(run->ctx, roomy.pool_capacity);
    return st;
}

/* Updates *claim, which holds the result of the earlier pools. */
static void claim_pool(const mpl_ilp_driver *driver, uint32_t pool, mpl_claim *claim)
{
    if (*claim == MPL_INFEASIBLE || driver->proved_bytes > driver->capacity_bytes)
        *claim = MPL_INFEASIBLE;
    else if (driver->best_bytes > driver->capacity_bytes)
        *claim = MPL_UNKNOWN;
    else if (pool == 0 && driver->best_bytes > driver->proved_bytes)
        *claim = MPL_FEASIBLE;
}

static mpl_status plan(mpl_run *run, const mpl_problem *p, mpl_plan *out)
{
    const char *start_text = mpl_run_param(run, "start");
    bool cold = start_text != NULL && strcmp(start_text, "cold") == 0;
    int64_t max_pairs, max_nodes, minimise;
    bool clash;

    MPL_PASS(mpl_run_param_int(run, "pairs", 0, 1000000, MAX_PAIRS, &max_pairs));
    MPL_PASS(mpl_run_param_int(run, "nodes", 0, INT64_MAX, MAX_NODES, &max_nodes));
    MPL_PASS(mpl_run_param_int(run, "minimise", 0, 1, 0, &minimise));
    MPL_PASS(mpl_exact_clash(run->ctx, p, out, &clash));
    if (clash)
        return MPL_OK;
    MPL_PASS(start(run, p, cold, out->offset));
    out->claim = MPL_OPTIMAL;
    for (uint32_t pool = 0; pool < p->n_pools; pool++) {
        uint64_t capacity = p->pool_capacity[pool];
        mpl_ilp_driver d = {
            .s = {.ctx = run->ctx, .p = p}, .run = run, .max_pairs = max_pairs, .cold = cold};

        d.nodes_left = (uint64_t)max_nodes;
        d.capacity_bytes = capacity;
        d.enough_bytes = minimise == 0 && capacity != MPL_NO_CAPACITY ? capacity : 0;
        MPL_PASS(solve_pool(&d, pool, out->offset));
        claim_pool(&d, pool, &out->claim);
        if (pool == 0)
            out->bound_bytes = d.proved_bytes;
    }
    return mpl_run_decided(run, out);
}

const mpl_planner mpl_planner_ilp = {
    .name = "ilp",
    .about = "integer program by GLPK, part by part",
    .source = "sekiyama2018",
    .params = "start=warm|cold,minimise=0|1,nodes=N,pairs=N",
    .traits = MPL_EXACT | MPL_USES_IN_PLACE | MPL_ROUNDED | MPL_USES_FAMILIES,
    .plan = MPL_HAVE_GLPK ? plan : NULL,
};

/* ---- writing a file ---- */

mpl_status mpl_ilp_write(mpl_ctx *ctx, const mpl_problem *p, const mpl_plan *known,
                         const char *path)
{
    mpl_status st = MPL_OK;
    mpl_ilp_driver d = {.s = {.ctx = ctx, .p = p}};
    mpl_ilp_part part = {.high_bytes = mpl_pool_height(p, 0, known->offset)};
    mpl_lp *lp = NULL;

    MPL_TRY(open_pool(&d, 0));
    if (d.s.row == NULL)
        MPL_FAIL(ctx, MPL_EINPUT, "%s: a program can have 1 to %d buffers, not %" PRIu32, path,
                 MAX_BUFFERS, d.s.n);
    MPL_TRY(first_bound(&d, 0));
    part.low_bytes = d.proved_bytes;
    MPL_TRY(mpl_new(ctx, part.member, d.s.n));
    for (; part.n < d.s.n; part.n++)
        part.member[part.n] = part.n;
    MPL_TRY(mpl_ilp_program(&d.s, &part, (double)d.s.unit, MPL_ILP_MAX_ENTRIES, &lp));
    MPL_TRY(mpl_lp_write(lp, MPL_ILP_MAX_MIB, path));
out:
    mpl_lp_free(ctx, lp);
    mpl_free(ctx, part.member);
    close_pool(&d);
    return st;
}
