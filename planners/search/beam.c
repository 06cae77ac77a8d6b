/* beam.c -- beam search: each level adds one buffer to many partial plans and keeps the least
 * wasteful.
 *
 * Idea     The beams of exact_beam.c search each connected part of a pool. A few times they try the
 *          middle between the best height and the last failure, then the goal. Each lap doubles the
 *          width, until it is large for the number of buffers.
 * Source   this project; exact_beam.c
 * Differs  From `exact`: no complete search, so nothing is refuted. In-place pairs are folded
 *          first.
 * Cost     Doubles with the width. Without budget and deadline it ends after DEFAULT_TICKS.
 * Limits   A family is one buffer during the search; then its parts sink. Serial problems; parts of
 *          at most 5000 buffers. Never above the plan of greedy_size. */
#include "graphs/problem/fold_pairs.h"
#include "planners/exact/exact_priv.h"
#include "planners/place/placement.h"
#include "planners/place/sort.h"

#define DEFAULT_TICKS  UINT64_C(1000000000) /* a few seconds */
#define FIRST_TURN     UINT64_C(1000000000)
#define FIRST_STEPS    6    /* between the goal and the best height; one more each lap */
#define LARGEST_N      5000 /* as in exact_part.c */
#define FIRST_WIDTH    16   /* as in exact_part.c */
#define WIDTH_PER_ITEM 8    /* at most */
#define MOST_NUMBERS   (UINT64_C(1) << 24) /* highest width * n */

extern const mpl_planner mpl_planner_greedy_size;

typedef struct beams {
    mpl_run *run;
    const mpl_problem *p; /* without pairs */
    mpl_plan *plan;       /* of p */
    mpl_exact_effort effort;
    uint64_t limit; /* of ticks in total */
    bool minimise;
} beams;

static bool is_over(beams *self)
{
    self->effort.by_clock = self->effort.by_clock || mpl_run_late(self->run);
    return self->effort.by_clock || self->effort.ticks >= self->limit;
}

/* Runs one beam of each kind at one height, in the lap's ticks. */
static mpl_status try_height(beams *self, mpl_exact_part *part, uint64_t cap, uint32_t lap)
{
    uint64_t set_up = MPL_EXACT_BEAMS * (uint64_t)part->n * (FIRST_WIDTH << lap);
    uint64_t turn = FIRST_TURN << lap;
    mpl_exact_verdict verdict;

    self->effort.ticks += set_up; /* the rows are made in any case */
    if (is_over(self))
        return MPL_OK;
    self->effort.tick_limit =
        mpl_min_u64(turn, self->limit - self->effort.ticks) + self->effort.ticks;
    return mpl_exact_part_beam(part, cap, lap, &self->effort, &verdict);
}

static bool is_wide(const mpl_exact_part *part, uint32_t lap)
{
    uint64_t width = (uint64_t)FIRST_WIDTH << lap;

    return lap > 0 &&
           (width > (uint64_t)WIDTH_PER_ITEM * part->n || width * part->n > MOST_NUMBERS);
}

static mpl_status search_part(beams *self, mpl_exact_part *part, uint64_t floor, uint64_t capacity)
{
    uint64_t goal = mpl_max_u64(part->bound, floor);

    if (!self->minimise && capacity != MPL_NO_CAPACITY)
        goal = mpl_max_u64(goal, capacity);
    for (uint32_t lap = 0; part->height > goal && !is_wide(part, lap) && !is_over(self); lap++) {
        uint64_t low = goal;

        for (uint32_t step = 0; step < FIRST_STEPS + lap && low < part->height && !is_over(self);
             step++) {
            uint64_t cap = mpl_exact_part_height_below(part, low + (part->height - low) / 2);
            uint64_t before = part->height;

            if (cap <= low || cap >= part->height)
                break;
            MPL_PASS(try_height(self, part, cap, lap));
            low = part->height == before ? cap : low;
        }
        if (part->height > goal && !is_over(self))
            MPL_PASS(try_height(self, part, goal, lap));
    }
    return MPL_OK;
}

/* Improves a connected part, buffer[n], of a pool. *floor: a height that the pool has anyway. */
static mpl_status improve(beams *self, uint32_t pool, const mpl_buffer *buffer, uint32_t n,
                          uint64_t *floor)
{
    mpl_status st = MPL_OK;
    mpl_ctx *ctx = self->run->ctx;
    mpl_exact_part part = {0};
    mpl_buffer *own = NULL;

    MPL_TRY(mpl_new(ctx, own, n));
    memcpy(own, buffer, n * sizeof *own);
    part.ctx = ctx;
    MPL_TRY(mpl_exact_part_init(ctx, self->p, own, n, &part));
    for (uint32_t i = 0; i < n; i++) {
        part.offset[i] = self->plan->offset[part.buffer[i]];
        part.height = mpl_max_u64(part.height, part.offset[i] + part.item[i].bytes);
    }
    MPL_TRY(search_part(self, &part, *floor, self->p->pool_capacity[pool]));
    *floor = mpl_max_u64(*floor, part.height);
    for (uint32_t i = 0; i < n; i++)
        self->plan->offset[part.buffer[i]] = part.offset[i];
out:
    mpl_exact_part_fini(&part);
    return st;
}

/* Improves all pools, cut where no buffer is alive across the step. */
static mpl_status improve_all(beams *self)
{
    mpl_status st = MPL_OK;
    mpl_ctx *ctx = self->run->ctx;
    const mpl_problem *p = self->p;
    mpl_buffer *order = NULL;
    uint64_t *key = NULL, floor = 0;
    uint32_t death = 0;

    MPL_TRY(mpl_new_each(ctx, p->n, order, key));
    mpl_ids_ascending(p->n, order);
    for (mpl_buffer b = 0; b < p->n; b++)
        key[b] = (uint64_t)p->pool[b] << 32 | p->birth[b];
    MPL_TRY(mpl_sort_ids(ctx, p->n, order, key));
    for (uint32_t begin = 0, i; begin < p->n && !is_over(self); begin = i) {
        uint32_t pool = p->pool[order[begin]];

        death = p->death[order[begin]];
        for (i = begin + 1; i < p->n && p->pool[order[i]] == pool && p->birth[order[i]] < death;
             i++)
            death = p->death[order[i]] > death ? p->death[order[i]] : death;
        if (begin == 0 || p->pool[order[begin - 1]] != pool)
            floor = 0;
        if (i - begin <= LARGEST_N)
            MPL_TRY(improve(self, pool, order + begin, i - begin, &floor));
    }
out:
    mpl_free_each(ctx, order, key);
    return st;
}

static mpl_status plan(mpl_run *run, const mpl_problem *p, mpl_plan *out)
{
    mpl_status st = MPL_OK;
    mpl_problem *folded = NULL;
    uint32_t *into = NULL;
    uint64_t *found = NULL;
    beams s = {.run = run, .limit = run->budget_ticks};
    int64_t minimise;

    if (run->budget_ticks == UINT64_MAX && run->deadline_ns == INT64_MAX)
        s.limit = DEFAULT_TICKS;
    MPL_TRY(mpl_run_param_int(run, "minimise", 0, 1, 0, &minimise));
    s.minimise = minimise != 0;
    MPL_TRY(mpl_new_each(run->ctx, p->n, into, found));
    MPL_TRY(mpl_problem_fold(run->ctx, p, &folded, into));
    MPL_TRY(mpl_plan_new(run->ctx, folded, &s.plan));
    MPL_TRY(mpl_planner_greedy_size.plan(run, p, out));
    MPL_TRY(mpl_planner_greedy_size.plan(run, folded, s.plan));
    s.p = folded;
    s.effort = (mpl_exact_effort){.seed = run->seed,
                                  .deadline_ns = run->deadline_ns,
                                  .watch = run->watch,
                                  .n_threads = run->n_threads,
                                  .ticks = run->ticks};
    MPL_TRY(improve_all(&s));
    for (mpl_buffer b = 0; b < p->n; b++)
        found[b] = s.plan->offset[into[b]];
    mpl_place_take_lower(p, found, out->offset);
    run->ticks = s.effort.ticks;
    run->stopped_by_clock = s.effort.by_clock;
out:
    mpl_plan_free(run->ctx, s.plan);
    mpl_problem_free(run->ctx, folded);
    mpl_free_each(run->ctx, into, found);
    return st;
}

const mpl_planner mpl_planner_beam = {
    .name = "beam",
    .about = "many unfinished plans side by side, the least wasteful kept",
    .source = "this project",
    .params = "minimise=0|1",
    .traits = MPL_RANDOM | MPL_USES_IN_PLACE | MPL_SERIAL_ONLY,
    .plan = plan,
};
