/* exact.c -- the lowest plan there is, or whether one fits: bounds, heuristics, and a complete search between them.
 *
 * Idea     Most problems are solved by a heuristic that meets the bound. Else each part of a pool that time connects
 *          is searched at the height of the bound first, which nearly always has a plan; where it has none, that is proved
 *          and the bound rises. Between proved and found height the search goes on, halving what is left.
 * Source   this project; exact_search.c
 * Cost     Exponential. Without budget and deadline the search ends after DEFAULT_TICKS.
 * Limits   A partial order and in-place pairs go to exact_general.c. */
#include "planners/exact_general.h"

#include "planners/placement.h"
#include "planners/sort.h"

#define DEFAULT_TICKS UINT64_C(8000000000) /* some 20 seconds */

typedef struct solver {
    mpl_run *run;
    const mpl_problem *p; /* without pairs */
    uint64_t *offset;     /* [p->n] best plan known [byte] */
    mpl_exact_part *part; /* all pools' parts, pool by pool */
    uint32_t *pool;       /* [n_parts] */
    uint32_t n_parts;
    mpl_exact_effort effort;
    uint64_t told_height, told_bound; /* of pool 0, as the caller knows them [byte] */
    bool minimise;                    /* go on below a capacity */
    bool proofs;                      /* write refutations down: then solve takes a place for one */
} solver;

/* ---- parts of the pools ---------------------------------------------------------------------------------------- */

static mpl_status add_part(solver *s, uint32_t pool, const mpl_buffer *buffer, uint32_t n)
{
    mpl_status st = MPL_OK;
    mpl_buffer *own = NULL;

    MPL_TRY(mpl_new(s->run->ctx, own, n));
    memcpy(own, buffer, n * sizeof *own);
    s->pool[s->n_parts] = pool;
    st = mpl_exact_part_init(s->run->ctx, s->p, own, n, &s->part[s->n_parts++]);
out:
    return st;
}

/* Cuts each pool where no buffer lives on. */
static mpl_status make_parts(solver *s)
{
    mpl_status st = MPL_OK;
    mpl_ctx *ctx = s->run->ctx;
    const mpl_problem *p = s->p;
    mpl_buffer *order = NULL;
    uint64_t *key = NULL;
    uint32_t begin = 0, death = 0;

    MPL_TRY(mpl_new(ctx, order, p->n));
    MPL_TRY(mpl_new(ctx, key, p->n));
    MPL_TRY(mpl_new(ctx, s->part, p->n));
    MPL_TRY(mpl_new(ctx, s->pool, p->n));
    mpl_ids_ascending(p->n, order);
    for (mpl_buffer b = 0; b < p->n; b++)
        key[b] = (uint64_t)p->pool[b] << 32 | p->birth[b];
    MPL_TRY(mpl_sort_ids(ctx, p->n, order, key));
    for (uint32_t i = 0; i < p->n; i++) {
        mpl_buffer b = order[i];

        if (i > begin && (p->pool[b] != p->pool[order[begin]] || p->birth[b] >= death)) {
            MPL_TRY(add_part(s, p->pool[order[begin]], order + begin, i - begin));
            begin = i;
        }
        death = i == begin || p->death[b] > death ? p->death[b] : death;
    }
    if (p->n > 0)
        MPL_TRY(add_part(s, p->pool[order[begin]], order + begin, p->n - begin));
out:
    mpl_free(ctx, order);
    mpl_free(ctx, key);
    return st;
}

/* Takes over what is better than what each part has. */
static void offer(solver *s, const uint64_t *offset)
{
    for (uint32_t k = 0; k < s->n_parts; k++) {
        mpl_exact_part *part = &s->part[k];
        uint64_t height = 0;

        for (uint32_t i = 0; i < part->n; i++)
            height = mpl_max_u64(height, offset[part->buffer[i]] + part->item[i].bytes);
        if (part->height != 0 && height >= part->height)
            continue;
        part->height = height;
        for (uint32_t i = 0; i < part->n; i++)
            part->offset[i] = offset[part->buffer[i]];
    }
}

/* ---- heights --------------------------------------------------------------------------------------------------- */

/* What a pool needs at least, as proved; what it needs as planned. */
static uint64_t pool_bound(const solver *s, uint32_t pool)
{
    uint64_t bound = 0;

    for (uint32_t k = 0; k < s->n_parts; k++)
        if (s->pool[k] == pool)
            bound = mpl_max_u64(bound, s->part[k].bound);
    return bound;
}

static uint64_t pool_height(const solver *s, uint32_t pool)
{
    uint64_t height = 0;

    for (uint32_t k = 0; k < s->n_parts; k++)
        if (s->pool[k] == pool)
            height = mpl_max_u64(height, s->part[k].height);
    return height;
}

/* Tells the caller of what has become better. */
static void report(solver *s)
{
    const mpl_watch *watch = s->run->watch;
    uint64_t height = pool_height(s, 0), bound = pool_bound(s, 0);

    if (watch == NULL || watch->progress == NULL || (height == s->told_height && bound == s->told_bound))
        return;
    s->told_height = height;
    s->told_bound = bound;
    watch->progress(watch->arg, height, bound);
}

/* The height at which nothing more is to be gained. */
static uint64_t goal(const solver *s, uint32_t pool)
{
    uint64_t bound = pool_bound(s, pool), capacity = s->p->pool_capacity[pool];

    return !s->minimise && capacity != MPL_NO_CAPACITY && capacity > bound ? capacity : bound;
}

static bool budget_left(const solver *s)
{
    return !s->effort.by_clock && s->effort.ticks < s->effort.tick_limit;
}

/* ---- heuristics ------------------------------------------------------------------------------------------------ */

enum { BY_SIZE, BY_AREA, BY_LIFETIME, N_GREEDY };

static uint64_t greedy_key(const mpl_problem *p, mpl_buffer b, int kind)
{
    uint64_t lifetime = p->death[b] - p->birth[b], area;

    if (kind == BY_SIZE)
        return p->bytes[b];
    if (kind == BY_LIFETIME)
        return lifetime;
    return mpl_mul_bytes(lifetime, p->bytes[b], &area) ? area : UINT64_MAX;
}

static mpl_status try_greedy(solver *s)
{
    mpl_status st = MPL_OK;
    mpl_ctx *ctx = s->run->ctx;
    const mpl_problem *p = s->p;
    mpl_plan *plan = NULL;
    mpl_buffer *order = NULL;
    uint64_t *key = NULL;

    MPL_TRY(mpl_plan_new(ctx, p, &plan));
    MPL_TRY(mpl_new(ctx, order, p->n));
    MPL_TRY(mpl_new(ctx, key, p->n));
    for (int kind = 0; kind < N_GREEDY; kind++) {
        bool done = true;

        mpl_ids_ascending(p->n, order);
        for (int second = 1; second >= 0; second--) { /* ties go to the longer lifetime */
            for (mpl_buffer b = 0; b < p->n; b++)
                key[b] = UINT64_MAX - greedy_key(p, b, second ? BY_LIFETIME : kind);
            MPL_TRY(mpl_sort_ids(ctx, p->n, order, key));
        }
        MPL_TRY(mpl_place_all(s->run, p, order, MPL_FIT_LOWEST, plan));
        offer(s, plan->offset);
        s->effort.ticks += p->n;
        for (uint32_t pool = 0; pool < p->n_pools; pool++)
            done = done && pool_height(s, pool) <= goal(s, pool);
        if (done)
            break;
    }
out:
    mpl_plan_free(ctx, plan);
    mpl_free(ctx, order);
    mpl_free(ctx, key);
    return st;
}

/* ---- search ------------------------------------------------------------------------------------------------------ */

#define BEAM_SHARE 4 /* what beams at the goal may cost, in costs of searches */

/* Between the goal and the height of a part: bisection, where an attempt that is stopped counts as a failure. */
static mpl_status descend(solver *s, uint32_t pool, mpl_exact_part *part, uint32_t lap)
{
    mpl_status st = MPL_OK;
    uint64_t low = goal(s, pool), middle;

    while (budget_left(s) && low < part->height) {
        mpl_exact_verdict verdict;

        middle = mpl_exact_part_height_below(part, low + (part->height - low) / 2);
        if (middle <= low)
            middle = mpl_exact_part_height_above(part, low + 1);
        if (middle >= part->height)
            break;
        MPL_TRY(mpl_exact_part_try(part, middle, lap, &s->effort, &verdict));
        if (verdict == MPL_EXACT_STOPPED && lap > 0)
            MPL_TRY(mpl_exact_part_beam(part, middle, lap - 1, &s->effort, &verdict));
        report(s);
        if (verdict != MPL_EXACT_FOUND)
            low = mpl_max_u64(middle, goal(s, pool));
    }
out:
    return st;
}

static mpl_status search_part(solver *s, uint32_t pool, mpl_exact_part *part, uint32_t lap)
{
    mpl_status st = MPL_OK;
    uint64_t capacity = s->p->pool_capacity[pool];
    mpl_exact_verdict verdict = MPL_EXACT_FAILED;

    while (verdict == MPL_EXACT_FAILED && budget_left(s) && part->height > goal(s, pool) &&
           part->bound <= capacity) {
        MPL_TRY(mpl_exact_part_try(part, goal(s, pool), lap, &s->effort, &verdict));
        report(s);
    }
    if (verdict == MPL_EXACT_STOPPED && (s->minimise || capacity == MPL_NO_CAPACITY))
        MPL_TRY(descend(s, pool, part, lap));
    while (verdict == MPL_EXACT_STOPPED && budget_left(s) && part->height > goal(s, pool) &&
           part->beam_ticks / BEAM_SHARE <= part->search_ticks) {
        uint64_t ticks = s->effort.ticks;

        MPL_TRY(mpl_exact_part_beam(part, goal(s, pool), part->beam_stage++, &s->effort, &verdict));
        part->beam_ticks += s->effort.ticks - ticks + 1;
        report(s);
    }
out:
    return st;
}

static mpl_status search_pool(solver *s, uint32_t pool)
{
    mpl_status st = MPL_OK;

    for (uint32_t lap = 0; budget_left(s) && pool_height(s, pool) > goal(s, pool) &&
                           pool_bound(s, pool) <= s->p->pool_capacity[pool];
         lap++)
        for (uint32_t k = 0; k < s->n_parts; k++)
            if (s->pool[k] == pool)
                MPL_TRY(search_part(s, pool, &s->part[k], lap));
out:
    return st;
}

/* What has been shown of the pools: a capacity that cannot be met, that is not met, or that all is well. */
static mpl_claim claim_of(const solver *s)
{
    mpl_claim claim = MPL_OPTIMAL;

    if (s->p->n_pools > 0 && pool_height(s, 0) > pool_bound(s, 0))
        claim = MPL_FEASIBLE;
    for (uint32_t pool = 0; pool < s->p->n_pools; pool++) {
        if (pool_bound(s, pool) > s->p->pool_capacity[pool])
            return MPL_INFEASIBLE;
        if (pool_height(s, pool) > s->p->pool_capacity[pool])
            claim = MPL_UNKNOWN;
    }
    return claim;
}

/* The refutation behind `infeasible`, or behind a bound that no set of buffers proves, if it can be written down with what
 * is left of the effort. */
static mpl_status prove(solver *s, mpl_claim claim, mpl_refutation *out)
{
    mpl_status st = MPL_OK;
    const mpl_exact_part *part = NULL;
    uint64_t bound = pool_bound(s, 0), live = 0;

    if (!s->proofs || !budget_left(s) || s->n_parts == 0)
        return MPL_OK;
    MPL_TRY(mpl_lower_bound(s->run->ctx, s->p, 0, &live, NULL));
    for (uint32_t k = s->n_parts; k-- > 0;)
        if (claim == MPL_INFEASIBLE && s->part[k].bound > s->p->pool_capacity[s->pool[k]]) {
            part = &s->part[k];
            *out = (mpl_refutation){.pool = s->pool[k], .within = s->p->pool_capacity[s->pool[k]]};
        } else if (claim != MPL_INFEASIBLE && s->pool[k] == 0 && s->part[k].bound == bound && bound > live) {
            part = &s->part[k];
            *out = (mpl_refutation){.pool = 0, .within = bound - 1};
        }
    if (part != NULL)
        MPL_TRY(mpl_exact_part_prove(s->p, part, out->within, &s->effort, &out->steps));
out:
    return st;
}

/* Solves s->p, which has no pairs: s->offset, *claim, *bound of pool 0. */
static mpl_status solve(solver *s, mpl_claim *claim, uint64_t *bound, mpl_refutation *proof)
{
    mpl_status st = MPL_OK;

    MPL_TRY(make_parts(s));
    MPL_TRY(try_greedy(s));
    report(s);
    if (s->run->start_offsets != NULL)
        offer(s, s->run->start_offsets);
    for (uint32_t pool = 0; pool < s->p->n_pools; pool++)
        MPL_TRY(search_pool(s, pool));
    for (uint32_t k = 0; k < s->n_parts; k++)
        for (uint32_t i = 0; i < s->part[k].n; i++)
            s->offset[s->part[k].buffer[i]] = s->part[k].offset[i];
    *claim = claim_of(s);
    *bound = pool_bound(s, 0);
    MPL_TRY(prove(s, *claim, proof));
out:
    for (uint32_t k = 0; k < s->n_parts; k++)
        mpl_exact_part_fini(&s->part[k]);
    mpl_free(s->run->ctx, s->part);
    mpl_free(s->run->ctx, s->pool);
    s->part = NULL;
    s->pool = NULL;
    s->n_parts = 0;
    return st;
}

static mpl_status plan(mpl_run *run, const mpl_problem *p, mpl_plan *out)
{
    mpl_status st = MPL_OK;
    solver s = {.run = run, .p = p, .offset = out->offset};
    int64_t minimise, proofs;

    s.effort = (mpl_exact_effort){
        .seed = run->seed, .deadline_ns = run->deadline_ns, .watch = run->watch, .n_threads = run->n_threads};
    s.effort.tick_limit =
        run->budget_ticks == UINT64_MAX && run->deadline_ns == INT64_MAX ? DEFAULT_TICKS : run->budget_ticks;
    MPL_TRY(mpl_run_param_int(run, "minimise", 0, 1, 0, &minimise));
    MPL_TRY(mpl_run_param_int(run, "proof", 0, 1, 1, &proofs));
    s.minimise = minimise != 0;
    s.proofs = proofs != 0;
    if (p->before != NULL || p->n_in_place > 0)
        MPL_TRY(mpl_exact_general(run, p, s.minimise, &s.effort, out));
    else
        MPL_TRY(solve(&s, &out->claim, &out->bound_bytes, &out->refutation));
    run->ticks = s.effort.ticks;
    run->stopped_by_clock = s.effort.by_clock;
    if (out->claim == MPL_UNKNOWN)
        MPL_FAIL(run->ctx, MPL_ELIMIT,
                 "no plan within the capacity was found, and none was refuted, in %" PRIu64 " ticks",
                 run->ticks);
out:
    return st;
}

const mpl_planner mpl_planner_exact = {
    .name = "exact",
    .about = "complete search from the bound up",
    .source = "this project",
    .params = "minimise=0|1,proof=0|1",
    .traits = MPL_EXACT | MPL_RANDOM | MPL_USES_IN_PLACE,
    .plan = plan,
};
