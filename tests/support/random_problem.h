/* random_problem.h -- small random problems with pairs, pools, alignments and orders, and a naive
 * valid plan. For tests of code that reads problems and plans. */
#pragma once

#include "tests/support/test.h"

#include "graphs/problem/before.h"
#include "graphs/core/rng.h"

/* Gaps apply to serial problems only; under parallel the flag has no effect. */
enum {
    RANDOM_ALIGNED = 1,
    RANDOM_POOLS = 2,
    RANDOM_PAIRS = 4,
    RANDOM_PARALLEL = 8,
    RANDOM_GAPS = 16
};

static inline uint32_t random_below(mpl_rng *rng, uint32_t n)
{
    return (uint32_t)mpl_rng_below(rng, n);
}

/* Adds each pair that lifetimes (under parallel: incomparability) and sizes allow, with probability
 * 1/2. Under parallel most such sets are impossible (drop_impossible_pairs). */
static inline void random_pairs(mpl_ctx *ctx, mpl_problem *p, mpl_rng *rng)
{
    size_t room = (size_t)p->n * p->n;

    assert_ok(ctx, mpl_new(ctx, p->in_place_in, room));
    assert_ok(ctx, mpl_new(ctx, p->in_place_out, room));
    assert_ok(ctx, mpl_new(ctx, p->in_place_step, room));
    for (uint32_t step = 0; step < (p->before != NULL ? 1 : p->n_steps); step++)
        for (mpl_buffer out = 0; out < p->n; out++)
            for (mpl_buffer in = 0; in < p->n; in++) {
                bool meet =
                    p->before != NULL
                        ? !mpl_is_before(p->before, in, out) && !mpl_is_before(p->before, out, in)
                        : p->birth[out] == step && p->death[in] == step + 1 && p->birth[in] < step;

                if (in == out || !meet || p->pool[in] != p->pool[out] ||
                    p->bytes[out] > p->bytes[in] || random_below(rng, 2) == 0)
                    continue;
                p->in_place_in[p->n_in_place] = in;
                p->in_place_out[p->n_in_place] = out;
                p->in_place_step[p->n_in_place++] = step;
            }
}

/* Whether pair i may come from a graph, given the n_kept first ones: `in` is read last by the
 * operation that writes `out`. So what follows `out` follows `in`, what precedes `in` precedes
 * `out`, and `in` is dead long before `out` is overwritten. */
static inline bool is_honest(const mpl_problem *p, uint32_t n_kept, uint32_t i)
{
    mpl_buffer in = p->in_place_in[i], out = p->in_place_out[i];

    for (mpl_buffer c = 0; c < p->n; c++)
        if ((mpl_is_before(p->before, out, c) && !mpl_is_before(p->before, in, c)) ||
            (mpl_is_before(p->before, c, in) && !mpl_is_before(p->before, c, out)))
            return false;
    for (uint32_t k = 0; k < n_kept; k++)
        if ((p->in_place_in[k] == out && !mpl_is_before(p->before, in, p->in_place_out[k])) ||
            (p->in_place_out[k] == in && !mpl_is_before(p->before, p->in_place_in[k], out)))
            return false;
    return true;
}

static inline void drop_impossible_pairs(mpl_problem *p)
{
    uint32_t n_kept = 0;

    if (p->before == NULL)
        return;
    for (uint32_t i = 0; i < p->n_in_place; i++)
        if (is_honest(p, n_kept, i)) {
            p->in_place_in[n_kept] = p->in_place_in[i];
            p->in_place_out[n_kept] = p->in_place_out[i];
            p->in_place_step[n_kept++] = p->in_place_step[i];
        }
    p->n_in_place = n_kept;
}

static inline void random_order(mpl_ctx *ctx, mpl_problem *p, mpl_rng *rng)
{
    uint32_t from[256], to[256], n = 0;
    mpl_before *before = NULL;

    for (mpl_buffer a = 0; a < p->n; a++)
        for (mpl_buffer b = a + 1; b < p->n; b++)
            if (random_below(rng, 4) == 0 && n < 256)
                from[n] = a, to[n++] = b;
    assert_ok(ctx, mpl_before_from_arcs(ctx, p->n, n, from, to, &before));
    p->before = before;
    p->n_steps = 0;
    memset(p->birth, 0, p->n * sizeof *p->birth);
    memset(p->death, 0, p->n * sizeof *p->death);
}

/* Draws for each inner step of a lifetime whether the buffer is needed there. */
static inline void random_gaps(mpl_ctx *ctx, mpl_problem *p, mpl_rng *rng)
{
    uint32_t n = 0;

    assert_ok(ctx, mpl_new(ctx, p->gap_begin, p->n + (size_t)1));
    assert_ok(ctx, mpl_new(ctx, p->gap_from, (size_t)p->n * p->n_steps));
    assert_ok(ctx, mpl_new(ctx, p->gap_to, (size_t)p->n * p->n_steps));
    for (mpl_buffer b = 0; b < p->n; b++) {
        for (uint32_t step = p->birth[b] + 1; step + 1 < p->death[b]; step++) {
            if (random_below(rng, 2) == 0)
                continue;
            if (n > p->gap_begin[b] && p->gap_to[n - 1] == step) {
                p->gap_to[n - 1]++;
            } else {
                p->gap_from[n] = step;
                p->gap_to[n++] = step + 1;
            }
        }
        p->gap_begin[b + 1] = n;
    }
}

/* Whether b is needed at `step`. */
static inline bool plain_needed(const mpl_problem *p, mpl_buffer b, uint32_t step)
{
    for (uint32_t i = p->gap_begin != NULL ? p->gap_begin[b] : 0;
         p->gap_begin != NULL && i < p->gap_begin[b + 1]; i++)
        if (p->gap_from[i] <= step && step < p->gap_to[i])
            return false;
    return p->birth[b] <= step && step < p->death[b];
}

/* The first step that needs both buffers; n_steps if there is none. */
static inline uint32_t plain_meeting(const mpl_problem *p, mpl_buffer a, mpl_buffer b)
{
    uint32_t step = p->birth[a] > p->birth[b] ? p->birth[a] : p->birth[b];

    while (step < p->death[a] && step < p->death[b] &&
           !(plain_needed(p, a, step) && plain_needed(p, b, step)))
        step++;
    return step < p->death[a] && step < p->death[b] ? step : p->n_steps;
}

/* n <= 16 buffers. */
static inline mpl_problem *random_problem(mpl_ctx *ctx, mpl_rng *rng, uint32_t n, unsigned what)
{
    mpl_problem *p = NULL;

    assert_ok(ctx, mpl_problem_new(ctx, "random", n, &p));
    p->n_steps = 2 + random_below(rng, n);
    if (what & RANDOM_POOLS) {
        assert_ok(ctx, mpl_realloc_bytes(ctx, (void **)&p->pool_name, 1, 2, sizeof *p->pool_name));
        assert_ok(ctx, mpl_realloc_bytes(ctx, (void **)&p->pool_capacity, 1, 2,
                                         sizeof *p->pool_capacity));
        p->pool_name[1] = mpl_strdup(ctx, "workspace");
        p->pool_capacity[1] = MPL_NO_CAPACITY;
        p->n_pools = 2;
    }
    for (mpl_buffer b = 0; b < n; b++) {
        p->bytes[b] = 1 + random_below(rng, 20);
        p->align[b] = what & RANDOM_ALIGNED ? 1u << random_below(rng, 4) : 1;
        p->pool[b] = what & RANDOM_POOLS ? random_below(rng, 4) == 0 : 0;
        p->birth[b] = random_below(rng, p->n_steps);
        p->death[b] = p->birth[b] + 1 + random_below(rng, p->n_steps - p->birth[b]);
    }
    if (what & RANDOM_PARALLEL)
        random_order(ctx, p, rng);
    if (what & RANDOM_PAIRS) {
        random_pairs(ctx, p, rng);
        drop_impossible_pairs(p);
    }
    if ((what & RANDOM_GAPS) && !(what & RANDOM_PARALLEL))
        random_gaps(ctx, p, rng);
    assert_ok(ctx, mpl_problem_check(ctx, p));
    return p;
}

/* Conflict by definition: the same pool, both needed at once (or unordered), overlapping bytes, and
 * no in-place pair at the same offset. */
static inline bool plain_conflict(const mpl_problem *p, const mpl_plan *plan, mpl_buffer a,
                                  mpl_buffer b)
{
    if (p->pool[a] != p->pool[b] || plan->offset[a] >= plan->offset[b] + p->bytes[b] ||
        plan->offset[b] >= plan->offset[a] + p->bytes[a])
        return false;
    for (uint32_t i = 0; i < p->n_in_place; i++)
        if (plan->offset[a] == plan->offset[b] &&
            ((p->in_place_in[i] == a && p->in_place_out[i] == b) ||
             (p->in_place_in[i] == b && p->in_place_out[i] == a)))
            return false;
    return p->before != NULL ? !mpl_is_before(p->before, a, b) && !mpl_is_before(p->before, b, a)
                             : plain_meeting(p, a, b) < p->n_steps;
}

/* Places each buffer in turn at the lowest aligned offset without a plain conflict with earlier
 * ones. */
static inline mpl_plan *plain_plan(mpl_ctx *ctx, const mpl_problem *p)
{
    mpl_plan *plan = NULL;

    assert_ok(ctx, mpl_plan_new(ctx, p, &plan));
    plan->claim = MPL_FEASIBLE;
    for (mpl_buffer b = 0; b < p->n; b++)
        for (mpl_buffer a = 0; a < b; a++)
            if (plain_conflict(p, plan, a, b)) {
                plan->offset[b] += p->align[b];
                a = MPL_NONE; /* restart */
            }
    return plan;
}

/* A planner's plan, checked by definition: parts of families at their distances, no conflict. NULL
 * if the planner cannot plan the problem or needs parameters. */
static inline mpl_plan *plainly_planned(mpl_ctx *ctx, const mpl_planner *planner,
                                        const mpl_problem *p, uint64_t ticks)
{
    mpl_run run;
    mpl_plan *plan = NULL;
    mpl_status st;

    if ((planner->traits & MPL_SPREADS) != 0)
        return NULL;
    run = mpl_run_default(ctx);
    run.budget_ticks = ticks;
    st = mpl_planner_run(planner, &run, p, &plan);
    if (st == MPL_EUNAVAIL)
        return NULL;
    if (st != MPL_OK)
        fail_msg("%s: %s", planner->name, ctx->message);
    for (mpl_buffer b = 0; b < p->n; b++) {
        if (p->inside != NULL)
            assert_int_equal(plan->offset[b], plan->offset[p->inside[b]] + p->inside_at[b]);
        for (mpl_buffer a = 0; a < b; a++)
            assert_false(plain_conflict(p, plan, a, b));
    }
    return plan;
}
