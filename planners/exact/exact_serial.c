/* exact_serial.c -- the complete search of a serial problem without gaps, pairs and families. See
 * exact.h.
 *
 * A heuristic that meets the bound solves most problems. Otherwise each connected part of a pool is
 * first searched at the height of the bound, where there nearly always is a plan. A refutation
 * there raises the bound. The search then bisects between proved and found height. Once, and first
 * where sizes are ragged, orders of placement are searched as under a partial order (arena.c). */
#include "planners/exact/exact_general.h"

#include "graphs/problem/bounds/bounds.h"
#include "planners/place/placement.h"
#include "planners/place/sort.h"

#define DEFAULT_TICKS UINT64_C(8000000000) /* some 20 seconds */

typedef struct solver {
    mpl_run *run;
    const mpl_problem *p; /* without pairs */
    uint64_t *offset;     /* [p->n] best plan known [byte] */
    mpl_exact_part *part; /* the parts of all pools, pool by pool */
    uint32_t *pool;       /* [n_parts] */
    uint32_t n_parts;
    mpl_exact_effort effort;
    uint64_t told_height, told_bound; /* of pool 0, as last reported [byte] */
    const mpl_exact_options *options;
} solver;

static bool uses(const solver *self, mpl_exact_rule rule)
{
    return mpl_exact_uses(self->options->without, rule);
}

/* ---- parts of the pools ---- */

static mpl_status add_part(solver *self, uint32_t pool, const mpl_buffer *buffer, uint32_t n)
{
    mpl_buffer *own = NULL;

    MPL_PASS(mpl_new(self->run->ctx, own, n));
    memcpy(own, buffer, n * sizeof *own);
    self->pool[self->n_parts] = pool;
    return mpl_exact_part_init(self->run->ctx, self->p, own, n, &self->part[self->n_parts++]);
}

/* Cuts each pool where no buffer is alive across the step. */
static mpl_status make_parts(solver *self)
{
    mpl_status st = MPL_OK;
    mpl_ctx *ctx = self->run->ctx;
    const mpl_problem *p = self->p;
    mpl_buffer *order = NULL;
    uint64_t *key = NULL;
    uint32_t begin = 0, death = 0;

    MPL_TRY(mpl_new_each(ctx, p->n, order, key, self->part, self->pool));
    mpl_ids_ascending(p->n, order);
    for (mpl_buffer b = 0; b < p->n; b++)
        key[b] = (uint64_t)p->pool[b] << 32 | p->birth[b];
    MPL_TRY(mpl_sort_ids(ctx, p->n, order, key));
    for (uint32_t i = 0; i < p->n; i++) {
        mpl_buffer b = order[i];

        if (i > begin && (p->pool[b] != p->pool[order[begin]] || p->birth[b] >= death)) {
            MPL_TRY(add_part(self, p->pool[order[begin]], order + begin, i - begin));
            begin = i;
        }
        death = i == begin || p->death[b] > death ? p->death[b] : death;
    }
    if (p->n > 0)
        MPL_TRY(add_part(self, p->pool[order[begin]], order + begin, p->n - begin));
out:
    mpl_free_each(ctx, order, key);
    return st;
}

/* Takes the offsets of each part where they are lower. */
static void offer(solver *self, const uint64_t *offset)
{
    for (uint32_t k = 0; k < self->n_parts; k++) {
        mpl_exact_part *part = &self->part[k];
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

/* ---- heights ---- */

/* The proven lower bound of a pool, and its planned height. */
static uint64_t pool_bound(const solver *self, uint32_t pool)
{
    uint64_t bound = 0;

    for (uint32_t k = 0; k < self->n_parts; k++)
        if (self->pool[k] == pool)
            bound = mpl_max_u64(bound, self->part[k].bound);
    return bound;
}

static uint64_t pool_height(const solver *self, uint32_t pool)
{
    uint64_t height = 0;

    for (uint32_t k = 0; k < self->n_parts; k++)
        if (self->pool[k] == pool)
            height = mpl_max_u64(height, self->part[k].height);
    return height;
}

/* Reports an improvement to the caller. */
static void report(solver *self)
{
    const mpl_watch *watch = self->run->watch;
    uint64_t height = pool_height(self, 0), bound = pool_bound(self, 0);

    if (watch == NULL || watch->progress == NULL ||
        (height == self->told_height && bound == self->told_bound))
        return;
    self->told_height = height;
    self->told_bound = bound;
    watch->progress(watch->arg, height, bound);
}

/* The height at which the search of a pool ends. */
static uint64_t goal(const solver *self, uint32_t pool)
{
    uint64_t bound = mpl_run_enough(self->run, pool_bound(self, pool)),
             capacity = self->p->pool_capacity[pool];

    bound = mpl_min_u64(bound, mpl_max_u64(capacity, pool_bound(self, pool)));
    return !self->options->minimise && capacity != MPL_NO_CAPACITY && capacity > bound ? capacity
                                                                                       : bound;
}

static bool budget_left(const solver *self)
{
    return !self->effort.by_clock && self->effort.ticks < self->effort.tick_limit;
}

/* ---- heuristics ---- */

#define REPAIR_N        2000 /* from so many buffers on, orders of a part are repaired */
#define REPAIR_PATIENCE 50   /* successive placements without progress */

/* Orders by a key, descending; ties go to the longer live range. */
static const struct greedy {
    enum { BY_SIZE, BY_AREA, BY_LIFETIME, BY_PEAK } key;
    mpl_fit fit;
} greedies[] = {
    {BY_SIZE, MPL_FIT_LOWEST},
    {BY_AREA, MPL_FIT_LOWEST},
    {BY_LIFETIME, MPL_FIT_LOWEST},
    {BY_PEAK, MPL_FIT_BEST},
};

enum { N_GREEDIES = sizeof greedies / sizeof *greedies };

/* Scratch for successive placements. */
typedef struct greed {
    mpl_plan *plan;
    mpl_buffer *order, *next; /* [n] */
    uint64_t *key;            /* [n] */
    uint32_t *peak;           /* [n_pools] step of the peak */
} greed;

static uint64_t greedy_key(const mpl_problem *p, const greed *g, mpl_buffer b, int kind)
{
    uint64_t lifetime = p->death[b] - p->birth[b], area;
    uint32_t peak = g->peak[p->pool[b]];

    if (kind == BY_SIZE)
        return p->bytes[b];
    if (kind == BY_LIFETIME)
        return lifetime;
    if (kind == BY_PEAK)
        return p->birth[b] <= peak && peak < p->death[b];
    return mpl_mul_bytes(lifetime, p->bytes[b], &area) ? area : UINT64_MAX;
}

static bool all_done(const solver *self)
{
    bool done = true;

    for (uint32_t pool = 0; pool < self->p->n_pools; pool++)
        done = done && pool_height(self, pool) <= goal(self, pool);
    return done;
}

static mpl_status place(solver *self, greed *g, mpl_fit fit)
{
    uint32_t n = self->p->n;

    MPL_PASS(mpl_place_all(self->run, self->p, g->order, fit, g->plan));
    offer(self, g->plan->offset);
    self->effort.ticks += (uint64_t)n * (16 + n / 64);
    self->effort.by_clock = mpl_run_late(self->run);
    return MPL_OK;
}

/* Places buffers that end too high before all others the next time, until REPAIR_PATIENCE
 * placements bring no progress. */
static mpl_status repair(solver *self, greed *g, mpl_fit fit)
{
    const mpl_problem *p = self->p;
    uint64_t best = UINT64_MAX;

    for (uint32_t idle = 0; idle < REPAIR_PATIENCE && budget_left(self) && !all_done(self);
         idle++) {
        uint64_t high = 0;
        uint32_t n = 0;

        for (int late = 0; late < 2; late++)
            for (uint32_t i = 0; i < p->n; i++) {
                mpl_buffer b = g->order[i];
                uint64_t end = g->plan->offset[b] + p->bytes[b], most = goal(self, p->pool[b]);

                high = end > most ? mpl_max_u64(high, end - most) : high;
                if ((end <= most) == late)
                    g->next[n++] = b;
            }
        memcpy(g->order, g->next, p->n * sizeof *g->order);
        idle = high < best ? 0 : idle;
        best = mpl_min_u64(best, high);
        MPL_PASS(place(self, g, fit));
    }
    return MPL_OK;
}

/* Tries simple orders. With `repairs` it repairs each result, the last order first: it comes
 * closest on large problems. */
static mpl_status try_greedy(solver *self, bool repairs)
{
    mpl_status st = MPL_OK;
    mpl_ctx *ctx = self->run->ctx;
    const mpl_problem *p = self->p;
    greed g = {0};

    MPL_TRY(mpl_plan_new(ctx, p, &g.plan));
    MPL_TRY(mpl_new_each(ctx, p->n, g.order, g.next, g.key));
    MPL_TRY(mpl_new(ctx, g.peak, p->n_pools));
    for (uint32_t pool = 0; pool < p->n_pools; pool++) {
        uint64_t live;

        MPL_TRY(mpl_peak_live(ctx, p, pool, &live, NULL, &g.peak[pool]));
    }
    for (size_t i = 0; i < N_GREEDIES; i++) {
        const struct greedy *one = &greedies[repairs ? N_GREEDIES - 1 - i : i];

        mpl_ids_ascending(p->n, g.order);
        for (int second = 1; second >= 0; second--) {
            for (mpl_buffer b = 0; b < p->n; b++)
                g.key[b] = UINT64_MAX - greedy_key(p, &g, b, second ? BY_LIFETIME : (int)one->key);
            MPL_TRY(mpl_sort_ids(ctx, p->n, g.order, g.key));
        }
        MPL_TRY(place(self, &g, one->fit));
        if (repairs)
            MPL_TRY(repair(self, &g, one->fit));
        if (!budget_left(self) || all_done(self))
            break;
    }
out:
    mpl_plan_free(ctx, g.plan);
    mpl_free_each(ctx, g.order, g.next, g.key, g.peak);
    return st;
}

/* ---- search ---- */

#define MERGE_N     32    /* from so many items on, merging precedes searching */
#define FIRST_TICKS 12000 /* per item, of the run before everything else */
#define MERGE_TICKS 20000 /* of a run per item; doubled every other lap */
#define MERGE_RUNS  2     /* in lap 0; doubled each lap */
#define MERGE_LAPS  6
#define ARENA_TICKS 4000 /* of the search over orders, per item */
#define ARENA_MOST  2000 /* items of the largest part whose orders are searched */
#define BEAM_SHARE  8    /* beams at the goal may cost this multiple of the search */

static mpl_status merge(solver *self, mpl_exact_part *part, uint64_t cap, uint32_t runs,
                        uint64_t ticks, mpl_exact_verdict *verdict)
{
    uint64_t before = self->effort.ticks;

    *verdict = MPL_EXACT_STOPPED;
    if (!uses(self, MPL_RULE_merge) || self->effort.tick_limit < before ||
        self->effort.tick_limit - before < FIRST_TICKS * (uint64_t)part->n)
        return MPL_OK; /* a run must merge everything once; the rest of the budget is too small */
    MPL_PASS(mpl_exact_part_merge(part, cap, runs, ticks * part->n, &self->effort, verdict));
    part->search_ticks += self->effort.ticks - before;
    return MPL_OK;
}

static mpl_status merge_in_lap(solver *self, mpl_exact_part *part, uint64_t cap, uint32_t lap,
                               mpl_exact_verdict *verdict)
{
    uint32_t level = lap < MERGE_LAPS ? lap : MERGE_LAPS;

    return merge(self, part, cap, MERGE_RUNS << level, (uint64_t)MERGE_TICKS << level / 2, verdict);
}

/* Bisects between the goal and the height of a part. A stopped attempt counts as a failure. */
static mpl_status descend(solver *self, uint32_t pool, mpl_exact_part *part, uint32_t lap)
{
    uint64_t low = goal(self, pool), middle;

    while (budget_left(self) && low < part->height) {
        mpl_exact_verdict verdict;
        uint64_t before = self->effort.ticks;

        middle = mpl_exact_part_height_below(part, low + (part->height - low) / 2);
        if (middle <= low)
            middle = mpl_exact_part_height_above(part, low + 1);
        if (middle >= part->height)
            break;
        MPL_PASS(merge_in_lap(self, part, middle, lap, &verdict));
        if (verdict == MPL_EXACT_STOPPED && (lap % 2 != 0 || self->effort.ticks == before))
            MPL_PASS(mpl_exact_part_try(part, middle, lap, &self->effort, &verdict));
        if (verdict == MPL_EXACT_STOPPED && lap % 2 != 0)
            MPL_PASS(mpl_exact_part_beam(part, middle, lap - 1, &self->effort, &verdict));
        report(self);
        if (verdict != MPL_EXACT_FOUND)
            low = mpl_max_u64(middle, goal(self, pool));
    }
    return MPL_OK;
}

/* Runs beams at the goal while they cost no more than their share. */
static mpl_status run_beams(solver *self, uint32_t pool, mpl_exact_part *part)
{
    mpl_exact_verdict verdict = MPL_EXACT_STOPPED;

    while (verdict == MPL_EXACT_STOPPED && budget_left(self) && part->height > goal(self, pool) &&
           part->beam_ticks / BEAM_SHARE <= part->search_ticks) {
        uint64_t ticks = self->effort.ticks;

        MPL_PASS(mpl_exact_part_beam(part, goal(self, pool), part->beam_stage++, &self->effort,
                                     &verdict));
        part->beam_ticks += self->effort.ticks - ticks + 1;
        report(self);
    }
    return MPL_OK;
}

/* Searches orders briefly. It ignores time and finds plans that the searches by sections miss. */
static mpl_status try_arena(solver *self, uint32_t pool, mpl_exact_part *part,
                            mpl_exact_verdict *verdict)
{
    mpl_status st = MPL_OK;
    mpl_ctx *ctx = self->run->ctx;
    mpl_bodies *bodies = NULL;
    uint32_t *body = NULL, n = part->n, n_words = n / 64 + (n % 64 != 0);
    uint64_t *rival = NULL, limit = self->effort.tick_limit, more = (uint64_t)n * ARENA_TICKS;

    if (!uses(self, MPL_RULE_arena) || n > ARENA_MOST || self->effort.ticks >= limit ||
        limit - self->effort.ticks < more)
        return MPL_OK;
    MPL_TRY(mpl_new(ctx, body, n));
    MPL_TRY(mpl_new(ctx, rival, (size_t)n * n_words));
    mpl_ids_ascending(n, body);
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t j = 0; j < i; j++)
            if (mpl_conflict(self->p, part->buffer[i], part->buffer[j])) {
                mpl_bit_add(rival + (size_t)i * n_words, j);
                mpl_bit_add(rival + (size_t)j * n_words, i);
            }
    MPL_TRY(mpl_bodies_new_take(ctx, self->p, part->buffer, body, n, &rival, &bodies));
    self->effort.tick_limit = self->effort.ticks + more;
    self->effort.ticks += (uint64_t)n * n / 4;
    st =
        mpl_arena_search(ctx, bodies, goal(self, pool), &self->effort, part->offset, &part->height);
    self->effort.tick_limit = limit;
    if (part->height <= goal(self, pool))
        *verdict = MPL_EXACT_FOUND;
out:
    mpl_bodies_free(ctx, bodies);
    mpl_free_each(ctx, body, rival);
    return st;
}

/* Whether some sizes are no multiples of the unit. Then the choice of the topmost buffer matters,
 * which the searches by sections make last. */
static bool is_ragged(const mpl_exact_part *part)
{
    bool ragged = false;

    for (uint32_t i = 0; i < part->n; i++)
        ragged = ragged || part->item[i].bytes % part->unit != 0;
    return ragged;
}

static mpl_status search_part(solver *self, uint32_t pool, mpl_exact_part *part, uint32_t lap)
{
    uint64_t capacity = self->p->pool_capacity[pool];
    mpl_exact_verdict verdict = MPL_EXACT_STOPPED;
    bool arena_first = lap == 0 && part->n >= MERGE_N && is_ragged(part);

    if (part->height <= goal(self, pool))
        return MPL_OK;
    if (arena_first)
        MPL_PASS(try_arena(self, pool, part, &verdict));
    report(self);
    if (verdict == MPL_EXACT_FOUND)
        return MPL_OK;
    if (lap > 0)
        MPL_PASS(merge_in_lap(self, part, goal(self, pool), lap, &verdict));
    else if (part->n >= MERGE_N)
        MPL_PASS(merge(self, part, goal(self, pool), 1, FIRST_TICKS, &verdict));
    report(self);
    if (verdict == MPL_EXACT_FOUND)
        return MPL_OK;
    verdict = MPL_EXACT_FAILED;
    while (verdict == MPL_EXACT_FAILED && budget_left(self) && part->height > goal(self, pool) &&
           part->bound <= capacity) {
        MPL_PASS(mpl_exact_part_try(part, goal(self, pool), lap, &self->effort, &verdict));
        report(self);
    }
    if (verdict == MPL_EXACT_STOPPED && lap == 0)
        MPL_PASS(merge_in_lap(self, part, goal(self, pool), 0, &verdict));
    if (verdict == MPL_EXACT_STOPPED && lap == 0 && !arena_first && budget_left(self))
        MPL_PASS(try_arena(self, pool, part, &verdict));
    report(self);
    if (verdict != MPL_EXACT_STOPPED)
        return MPL_OK;
    if (uses(self, MPL_RULE_bisect) && (self->options->minimise || capacity == MPL_NO_CAPACITY))
        MPL_PASS(descend(self, pool, part, lap));
    return run_beams(self, pool, part);
}

/* Whether a part is too large for searches alone. */
static bool needs_repair(const solver *self, uint32_t pool)
{
    bool large = false;

    for (uint32_t k = 0; k < self->n_parts; k++)
        large =
            large || (self->pool[k] == pool && (self->part[k].vast || self->part[k].n >= REPAIR_N));
    return large;
}

static mpl_status search_pool(solver *self, uint32_t pool)
{
    for (uint32_t lap = 0; budget_left(self) && pool_height(self, pool) > goal(self, pool) &&
                           pool_bound(self, pool) <= self->p->pool_capacity[pool];
         lap++) {
        uint64_t ticks = self->effort.ticks;

        for (uint32_t k = 0; k < self->n_parts; k++)
            if (self->pool[k] == pool)
                MPL_PASS(search_part(self, pool, &self->part[k], lap));
        if (lap == 0 && uses(self, MPL_RULE_repair) && needs_repair(self, pool))
            MPL_PASS(try_greedy(self, true));
        else if (self->effort.ticks == ticks)
            break; /* nothing left to search */
    }
    return MPL_OK;
}

/* Derives the claim: a capacity that cannot be met, one that is not met, or success. */
static mpl_claim claim_of(const solver *self)
{
    mpl_claim claim = MPL_OPTIMAL;

    if (self->p->n_pools > 0 && pool_height(self, 0) > pool_bound(self, 0))
        claim = MPL_FEASIBLE;
    for (uint32_t pool = 0; pool < self->p->n_pools; pool++) {
        if (pool_bound(self, pool) > self->p->pool_capacity[pool])
            return MPL_INFEASIBLE;
        if (pool_height(self, pool) > self->p->pool_capacity[pool])
            claim = MPL_UNKNOWN;
    }
    return claim;
}

/* Writes the refutation for `infeasible`, or for a bound that no clique proves, if effort is
 * left. */
static mpl_status prove(solver *self, mpl_claim claim, mpl_refutation *out)
{
    mpl_status st = MPL_OK;
    const mpl_exact_part *part = NULL;
    uint64_t bound = pool_bound(self, 0), live = 0;
    mpl_proof proof = {.ctx = self->run->ctx};
    mpl_exact_verdict verdict = MPL_EXACT_STOPPED;

    if (self->n_parts == 0)
        return MPL_OK;
    MPL_TRY(mpl_lower_bound(self->run->ctx, self->p, 0, &live, NULL));
    for (uint32_t k = self->n_parts; k-- > 0;)
        if (self->part[k].vast) {
            continue;
        } else if (claim == MPL_INFEASIBLE &&
                   self->part[k].bound > self->p->pool_capacity[self->pool[k]]) {
            part = &self->part[k];
            *out = (mpl_refutation){.pool = self->pool[k],
                                    .within = self->p->pool_capacity[self->pool[k]]};
        } else if (claim != MPL_INFEASIBLE && self->pool[k] == 0 && self->part[k].bound == bound &&
                   bound > live) {
            part = &self->part[k];
            *out = (mpl_refutation){.pool = 0, .within = bound - 1};
        }
    if (part != NULL)
        out->absent = !self->options->proofs ? MPL_PROOF_NOT_ASKED : MPL_PROOF_TOO_LATE;
    if (part != NULL && self->options->proofs && budget_left(self))
        MPL_TRY(mpl_exact_part_prove(part, out->within, &self->effort, &proof, &verdict));
    if (proof.full)
        out->absent = MPL_PROOF_TOO_LONG;
    if (verdict == MPL_EXACT_FAILED)
        MPL_TRY(mpl_proof_text(&proof, &out->steps));
out:
    mpl_proof_fini(&proof);
    return st;
}

/* Solves self->p, which has no pairs: self->offset, *claim, *bound of pool 0. */
static mpl_status solve(solver *self, mpl_claim *claim, uint64_t *bound, mpl_refutation *proof)
{
    mpl_status st = MPL_OK;

    MPL_TRY(make_parts(self));
    MPL_TRY(try_greedy(self, false));
    report(self);
    if (self->run->start_offsets != NULL)
        offer(self, self->run->start_offsets);
    for (uint32_t pool = 0; pool < self->p->n_pools; pool++)
        MPL_TRY(search_pool(self, pool));
    for (uint32_t k = 0; k < self->n_parts; k++)
        for (uint32_t i = 0; i < self->part[k].n; i++)
            self->offset[self->part[k].buffer[i]] = self->part[k].offset[i];
    *claim = claim_of(self);
    *bound = pool_bound(self, 0);
    MPL_TRY(prove(self, *claim, proof));
out:
    for (uint32_t k = 0; k < self->n_parts; k++)
        mpl_exact_part_fini(&self->part[k]);
    mpl_free_each(self->run->ctx, self->part, self->pool);
    self->part = NULL;
    self->pool = NULL;
    self->n_parts = 0;
    return st;
}

mpl_exact_effort mpl_exact_begin(const mpl_run *run, const mpl_exact_options *options)
{
    return (mpl_exact_effort){.seed = run->seed,
                              .deadline_ns = run->deadline_ns,
                              .watch = run->watch,
                              .n_threads = run->n_threads,
                              .without = options->without,
                              .tick_limit =
                                  run->budget_ticks == UINT64_MAX && run->deadline_ns == INT64_MAX
                                      ? DEFAULT_TICKS
                                      : run->budget_ticks};
}

mpl_status mpl_exact_end(mpl_run *run, const mpl_exact_effort *effort, mpl_plan *out)
{
    run->ticks = effort->ticks;
    run->stopped_by_clock = effort->by_clock;
    return mpl_run_decided(run, out);
}

mpl_status mpl_exact_serial(mpl_run *run, const mpl_problem *p, const mpl_exact_options *options,
                            mpl_plan *out)
{
    solver s = {.run = run,
                .p = p,
                .offset = out->offset,
                .options = options,
                .effort = mpl_exact_begin(run, options)};

    mpl_assert(p->before == NULL && p->gap_begin == NULL && p->inside == NULL &&
               p->n_in_place == 0);
    MPL_PASS(solve(&s, &out->claim, &out->bound_bytes, &out->refutation));
    return mpl_exact_end(run, &s.effort, out);
}
