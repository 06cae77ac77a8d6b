/* residency_stall.c -- the plan of least stall where moves take time. See residency_priv.h.
 *
 * Idea     Plans of few bytes moved, found with the whole capacity and with less, so that room is
 *          left for moves that overlap; each is timed, the least stall is kept. Small problems are
 *          tried whole. The bound: prices prove bytes that must pass the channel between two steps,
 *          for each two; what the steps between them do not cover is stall, and intervals add up.
 * Source   this project
 * Cost     O(steps * uses) for the bound. */
#include "planners/residency/residency_priv.h"

#define MOST_WORK UINT64_C(1000000000)

enum { N_SHARES = 5, RISE_ROUNDS = 400, MOST_TRIED_USES = 16 };

/* Times the ways of *t, with room for longer windows where offsets are found; keeps the best. */
static mpl_status try_ways(mpl_residency *residency, mpl_timing *timing, mpl_timing *best)
{
    for (uint64_t k = 0; k <= N_SHARES; k++) { /* at last without windows */
        mpl_placed placed = {0};

        timing->n = mpl_residency_moves(residency, timing->fast, timing->kept, timing->move);
        MPL_PASS(mpl_residency_issue(
            residency, timing->fast, timing->kept,
            k < N_SHARES ? residency->capacity - residency->capacity / 16 * k : 0, timing->n,
            timing->move));
        timing->stall_ns = mpl_residency_time(residency, timing->fast, timing->n, timing->move);
        if (timing->stall_ns >= best->stall_ns)
            return MPL_OK;
        MPL_PASS(mpl_residency_place(residency, timing->fast, timing->kept, timing->n, timing->move,
                                     timing->place, &placed));
        if (placed.fits) {
            mpl_timing_copy(residency, timing, best);
            return MPL_OK;
        }
    }
    return MPL_OK;
}

/* The ways of the rules, and those found within less and less of the capacity. */
static mpl_status try_capacities(mpl_residency *residency, const mpl_prices *prices, uint64_t bound,
                                 mpl_timing *best)
{
    mpl_status st = MPL_OK;
    mpl_timing t = {0};

    MPL_TRY(mpl_timing_init(residency, &t));
    MPL_TRY(mpl_residency_belady_ways(residency, t.fast, t.kept));
    MPL_TRY(try_ways(residency, &t, best));
    MPL_TRY(mpl_residency_greedy_ways(residency, t.fast, t.kept));
    MPL_TRY(try_ways(residency, &t, best));
    for (uint64_t k = 0; k < N_SHARES && best->stall_ns > bound; k++) {
        uint64_t capacity = residency->capacity - residency->capacity / 8 * k;

        MPL_TRY(mpl_residency_first(residency, prices, capacity, t.fast, t.kept));
        MPL_TRY(mpl_residency_near(residency, prices, capacity, 4 * (uint64_t)residency->n_uses, 0,
                                   t.fast, t.kept));
        MPL_TRY(try_ways(residency, &t, best));
    }
out:
    mpl_timing_fini(residency, &t);
    return st;
}

/* ---- the bound ---- */

static int64_t least_of(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* The least bytes, in parts and with rent from step a on, that pass the channel for one buffer
 * between steps a and b, added to passing[] at the steps b from which on they do. */
static void pass_behind(const mpl_residency_problem *p, mpl_buffer b, uint32_t a, uint64_t size,
                        const uint64_t *sum, int64_t *passing)
{
    const int64_t none = INT64_MAX / 4, bytes = (int64_t)p->bytes[b] * MPL_PRICE_PARTS;
    int64_t here = (int64_t)(size * (sum[a + 1] - sum[a]));
    int64_t alone = none, both = none, away = none, spent = 0;
    uint32_t last = a;

    for (uint32_t i = p->begin[b]; i < p->begin[b + 1]; i++) {
        uint32_t s = p->at[i];
        bool first = i == p->begin[b];
        int64_t rent = (int64_t)(size * (sum[s + 1] - sum[s])), least;
        int64_t stay = s > last + 1 ? (int64_t)(size * (sum[s] - sum[last + 1])) : 0;
        int64_t written = least_of(least_of(both, away), alone + bytes), in_both;

        if (s <= a) { /* wherever it is then, nothing of it has passed */
            alone = p->writes[i] && s == a ? here : none;
            both = p->writes[i] && s == a ? none : here;
            away = s < a || p->slow_price > 0 ? 0 : none;
            spent = s == a && p->slow_price == 0 ? here : 0;
            continue;
        }
        in_both = first ? none : least_of(both + stay, written + bytes);
        alone = first ? 0 : alone + stay;
        alone = (p->writes[i] ? least_of(alone, in_both) : alone) + rent;
        both = p->writes[i] ? none : in_both + rent;
        away = p->slow_price > 0 ? (first ? 0 : written) + bytes : none;
        alone = least_of(alone, none), both = least_of(both, none);
        last = s;
        least = least_of(least_of(alone, both), away);
        passing[s] += least - spent;
        spent = least;
    }
}

/* Bytes that must pass between each two steps, as prices prove it. */
typedef struct intervals {
    mpl_residency *residency;
    uint64_t *price;   /* [n_steps] in parts */
    uint64_t *sum;     /* [n_steps + 1] */
    int64_t *passing;  /* [n_steps] scratch */
    uint64_t *between; /* [n_steps * n_steps] [byte] */
} intervals;

/* Raises what is proved of the intervals that begin at steps up to `last`. */
static void prove(intervals *self, uint32_t last)
{
    const mpl_residency_problem *p = self->residency->p;
    uint32_t n = p->n_steps;

    for (uint32_t s = 0; s < n; s++)
        self->sum[s + 1] = self->sum[s] + self->price[s];
    for (uint32_t a = 0; a <= last; a++) {
        int64_t parts = -(int64_t)(self->price[a] * self->residency->room[a]);

        for (uint32_t k = self->residency->step_begin[a];
             p->slow_price == 0 && k < self->residency->step_begin[a + 1]; k++) /* they are there */
            parts += (int64_t)(self->price[a] *
                               self->residency
                                   ->size[self->residency->owner[self->residency->step_use[k]]]);
        memset(self->passing, 0, n * sizeof *self->passing);
        for (mpl_buffer b = 0; b < p->n; b++)
            pass_behind(p, b, a, self->residency->size[b], self->sum, self->passing);
        for (uint32_t b = a + 1; b < n; b++) {
            uint64_t *proved = &self->between[(size_t)a * n + b];

            parts += self->passing[b] - (int64_t)(self->price[b] * self->residency->room[b]);
            if (parts > 0)
                *proved = mpl_max_u64(*proved, (uint64_t)parts / MPL_PRICE_PARTS);
        }
    }
}

/* What steps cannot have in fast memory passes right before them, and nothing covers that. */
static mpl_status prove_operands(intervals *self)
{
    mpl_residency *residency = self->residency;
    uint64_t *fits = NULL;

    MPL_PASS(mpl_residency_fit(residency, &fits));
    for (uint32_t s = 1; s < residency->p->n_steps; s++) {
        uint64_t *proved = &self->between[(size_t)(s - 1) * residency->p->n_steps + s], need = 0,
                 size = 0;

        for (uint32_t k = residency->step_begin[s]; k < residency->step_begin[s + 1]; k++) {
            need += residency->p->bytes[residency->owner[residency->step_use[k]]];
            size += residency->size[residency->owner[residency->step_use[k]]];
        }
        if (size > fits[s] && need > fits[s])
            *proved = mpl_max_u64(*proved, need - fits[s]);
    }
    mpl_free(residency->run->ctx, fits);
    return MPL_OK;
}

/* Intervals one behind the other whose uncovered times add up to most. */
static mpl_status add_intervals(const intervals *self, uint64_t *bound)
{
    mpl_status st = MPL_OK;
    const mpl_residency_problem *p = self->residency->p;
    uint32_t n = p->n_steps;
    uint64_t *best = NULL;

    MPL_TRY(mpl_new(self->residency->run->ctx, best, n));
    for (uint32_t a = 0; a + 1 < n; a++) {
        uint64_t covered = 0;

        for (uint32_t b = a + 1; b < n; b++) {
            uint64_t ns = mpl_residency_ns(p, self->between[(size_t)a * n + b]);

            best[b] = mpl_max_u64(best[b], best[b - 1]);
            if (ns > covered)
                best[b] = mpl_max_u64(best[b], best[a] + ns - covered);
            covered += p->step_ns[b];
        }
    }
    *bound = n > 0 ? best[n - 1] : 0;
out:
    mpl_free(self->residency->run->ctx, best);
    return st;
}

/* By the prices given, then, where that takes no long time, by one price at one step after another:
 * of a byte that passes once, or goes and comes. */
static mpl_status bound_by_intervals(mpl_residency *residency, const mpl_prices *prices,
                                     uint64_t *bound)
{
    mpl_status st = MPL_OK;
    mpl_ctx *ctx = residency->run->ctx;
    uint32_t n = residency->p->n_steps;
    intervals v = {.residency = residency};

    MPL_TRY(mpl_new_each(ctx, n, v.price, v.passing));
    MPL_TRY(mpl_new(ctx, v.sum, (size_t)n + 1));
    MPL_TRY(mpl_new(ctx, v.between, (size_t)n * n));
    memcpy(v.price, prices->price, n * sizeof *v.price);
    prove(&v, n - 1);
    memset(v.price, 0, n * sizeof *v.price);
    for (uint32_t s = 0; (uint64_t)n * n * residency->n_uses < MOST_WORK && s < n; s++)
        for (uint32_t k = 1; k <= 2; k++) {
            v.price[s] = k * MPL_PRICE_PARTS;
            prove(&v, s);
            v.price[s] = 0;
        }
    MPL_TRY(prove_operands(&v));
    MPL_TRY(add_intervals(&v, bound));
out:
    mpl_free_each(ctx, v.price, v.passing, v.sum, v.between);
    return st;
}

/* Prices of bytes that pass the channel: moved, or used in slow memory. */
static mpl_status bound_stall(mpl_residency *residency, uint64_t *bound)
{
    mpl_status st = MPL_OK;
    mpl_residency_problem bytes = *residency->p;
    mpl_residency own = *residency;
    mpl_prices prices = {0};
    uint64_t cost;

    bytes.move_price = 1;
    bytes.slow_price = residency->p->slow_price > 0;
    own.p = &bytes;
    *bound = 0;
    MPL_TRY(mpl_prices_init(&own, &prices));
    MPL_TRY(mpl_residency_belady(residency->run->ctx, &bytes, &cost, NULL));
    mpl_prices_rise(&own, RISE_ROUNDS, cost, &prices);
    if (prices.bound < UINT64_MAX)
        MPL_TRY(bound_by_intervals(&own, &prices, bound));
    residency->ticks = own.ticks;
out:
    mpl_prices_fini(&own, &prices);
    return st;
}

/* ---- all ---- */

static void take(mpl_residency *residency, const mpl_timing *timing, mpl_residency_plan *plan)
{
    memcpy(plan->fast, timing->fast, residency->n_uses);
    memcpy(plan->kept, timing->kept, residency->n_uses);
    memcpy(plan->place, timing->place, residency->n_uses * sizeof *plan->place);
    plan->stall_ns = timing->stall_ns;
}

mpl_status mpl_residency_stall(mpl_residency *residency, const mpl_prices *prices, uint64_t ticks,
                               mpl_residency_plan *plan, mpl_timing *best)
{
    mpl_timing given = {.fast = plan->fast, .kept = plan->kept, .place = plan->place};
    mpl_status st = MPL_OK;

    MPL_TRY(mpl_new(residency->run->ctx, residency->slow_ns, residency->p->n_steps));
    MPL_TRY(mpl_new(residency->run->ctx, given.move, 2 * (size_t)residency->n_uses));
    best->stall_ns = UINT64_MAX;
    MPL_TRY(bound_stall(residency, &plan->stall_bound));
    MPL_TRY(try_ways(residency, &given, best));
    MPL_TRY(try_capacities(residency, prices, plan->stall_bound, best));
    if (best->stall_ns > plan->stall_bound && residency->n_uses <= MOST_TRIED_USES) {
        uint64_t bound;

        MPL_TRY(mpl_residency_try_all(residency, residency->ticks + ticks, best, &bound));
        plan->stall_searched = bound > plan->stall_bound;
        plan->stall_bound = mpl_max_u64(bound, plan->stall_bound);
    }
    take(residency, best, plan);
out:
    mpl_free(residency->run->ctx, given.move);
    return st;
}
