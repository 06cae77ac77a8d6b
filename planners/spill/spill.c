/* spill.c -- assigns pool 0 to several memories (fast and expensive to slow and cheap) at least
 * cost.
 *
 * Idea     Each buffer lies in one memory and pays its price for each byte; the buffers of one
 *          memory must be packed within its capacity. Buffers not connected by conflicts form
 *          separate parts that share only the prices. Each part gets a bound from the bytes alive
 *          at once, a complete search over assignments that keeps every node packable (the exact
 *          planner decides), and, alternating with it, a local search.
 * Source   this project; the register allocator's spilling is the same question with buffers of one
 *          size
 * Cost     Exponential; limited by the budget. Without budget and deadline the search ends after
 *          DEFAULT_TICKS.
 * Limits   A buffer stays in one memory for its whole life. A part has at most 4,096 buffers.
 *          greedy_size places the buffers of other pools. Pool 0 must have no fixed buffers. */
#include "planners/spill/spill_priv.h"

#include "graphs/core/size.h"
#include "planners/place/sort.h"

#include <stdlib.h>

#define DEFAULT_TICKS UINT64_C(1000000000) /* about 5 seconds */
#define LAP_TICKS     UINT64_C(1000000)    /* of the first search of a part; doubles each lap */

enum { CALL_SHARE = 4 }; /* fraction of a search that one call of the exact planner may take */

extern const mpl_planner mpl_planner_greedy_size;

typedef struct solver {
    mpl_spill s;
    mpl_spill_part *part;
    uint32_t n_parts, n_ready;
    mpl_buffer *order; /* [p->n] scratch */
} solver;

/* ---- parameters ---- */

/* Parses "a/b/c" as numbers; '-' is MPL_NO_CAPACITY where `open` allows it. */
static mpl_status parse_list(mpl_run *run, const char *key, bool open, uint64_t *value, uint32_t *n)
{
    const char *at = mpl_run_param(run, key);

    for (*n = 0; at != NULL; (*n)++) {
        const char *end = at;

        if (*n == MPL_SPILL_MEMORIES)
            return MPL_REFUSE(run->ctx, "planner spill: %s=: more than %d memories", key,
                              MPL_SPILL_MEMORIES);
        if (open && at[0] == '-' && (at[1] == '\0' || at[1] == '/')) {
            value[*n] = MPL_NO_CAPACITY;
            at++;
        } else {
            if (!mpl_size_read(at, &end, &value[*n]) || (*end != '\0' && *end != '/'))
                return MPL_REFUSE(
                    run->ctx,
                    "planner spill: %s=: '%.30s' is no whole number below 2^63 (KiB, MiB or "
                    "GiB may follow)",
                    key, at);
            at = end;
        }
        at = *at == '/' ? at + 1 : NULL;
    }
    return MPL_OK;
}

static mpl_status parse_memories(mpl_run *run, mpl_spill *spill)
{
    uint32_t n_prices;

    MPL_PASS(parse_list(run, "capacities", true, spill->capacity, &spill->n));
    MPL_PASS(parse_list(run, "cost", false, spill->price, &n_prices));
    if (spill->n == 0)
        return MPL_REFUSE(
            run->ctx,
            "planner spill: which memories? capacities=64KiB/1MiB/- and cost=1/4/16, near "
            "ones first; "
            "'-': the last has no limit");
    if (mpl_run_param(run, "cost") == NULL)
        for (; n_prices < spill->n; n_prices++)
            spill->price[n_prices] = n_prices;
    if (n_prices != spill->n)
        return MPL_REFUSE(run->ctx, "planner spill: %u capacities and %u costs", spill->n,
                          n_prices);
    for (uint32_t k = 0; k + 1 < spill->n; k++) {
        if (spill->price[k] > spill->price[k + 1])
            return MPL_REFUSE(run->ctx,
                              "planner spill: cost=: memory %u is cheaper than memory %u before it",
                              k + 1, k);
        if (spill->capacity[k] == MPL_NO_CAPACITY)
            return MPL_REFUSE(run->ctx,
                              "planner spill: capacities=: only the last memory can be unlimited");
    }
    return MPL_OK;
}

/* Rejects what this planner cannot handle, and sums that would overflow. */
static mpl_status check(mpl_run *run, const mpl_problem *p, const mpl_spill *spill)
{
    uint64_t sum = 0, cost;
    char text[24];

    if (p->pool_capacity[0] != MPL_NO_CAPACITY)
        return MPL_REFUSE(run->ctx,
                          "planner spill: a capacity for all of it, beside those of the memories");
    for (mpl_buffer b = 0; b < p->n; b++) {
        if (p->pool[b] != 0)
            continue;
        if (p->fixed != NULL && p->fixed[b] != MPL_UNFIXED)
            return MPL_ERROR(run->ctx, MPL_EUNAVAIL,
                             "planner spill cannot keep buffer '%.100s' at offset %" PRIu64
                             ": in which memory?",
                             mpl_buffer_label(p, b, text), p->fixed[b]);
        if (!mpl_add_bytes(sum, p->bytes[b], &sum))
            sum = UINT64_MAX;
    }
    if (sum > INT64_MAX || !mpl_mul_bytes(sum, spill->price[spill->n - 1], &cost) ||
        cost > INT64_MAX)
        return MPL_REFUSE(run->ctx, "planner spill: the cost of all buffers passes 2^63");
    return MPL_OK;
}

/* ---- parts ---- */

static uint32_t root(uint32_t *up, uint32_t i)
{
    while (up[i] != i)
        i = up[i] = up[up[i]];
    return i;
}

static int by_birth(const void *a, const void *b, void *arg)
{
    const mpl_problem *p = arg;
    mpl_buffer x = *(const mpl_buffer *)a, y = *(const mpl_buffer *)b;

    if (p->birth[x] != p->birth[y])
        return p->birth[x] > p->birth[y] ? 1 : -1;
    return (x > y) - (x < y);
}

/* Union-find over conflicts: up[] leads from a buffer of pool 0 to its part's representative. */
static void connect(const mpl_problem *p, mpl_buffer *order, uint32_t n, uint32_t *up)
{
    uint32_t last = 0; /* serial: the earlier buffer that dies last */

    qsort_r(order, n, sizeof *order, by_birth, (void *)(uintptr_t)p);
    for (uint32_t i = 0; i < n; i++) {
        up[order[i]] = order[i];
        for (uint32_t j = 0; p->before != NULL && j < i; j++)
            if (mpl_conflict(p, order[j], order[i]))
                up[root(up, order[j])] = order[i];
        if (p->before == NULL && i > 0 && mpl_conflict(p, order[last], order[i]))
            up[order[i]] = root(up, order[last]);
        if (p->death[order[i]] > p->death[order[last]])
            last = i;
    }
}

static mpl_status make_parts(solver *self)
{
    mpl_status st = MPL_OK;
    const mpl_problem *p = self->s.p;
    mpl_ctx *ctx = self->s.run->ctx;
    uint32_t *up = NULL, n = 0;
    uint64_t *key = NULL;

    MPL_TRY(mpl_new_each(ctx, p->n, up, key, self->order));
    for (mpl_buffer b = 0; b < p->n; b++)
        if (p->pool[b] == 0)
            self->order[n++] = b;
    connect(p, self->order, n, up);
    for (uint32_t i = 0; i < n; i++) {
        key[self->order[i]] = root(up, self->order[i]);
        self->n_parts += up[self->order[i]] == self->order[i];
    }
    MPL_TRY(mpl_sort_ids(ctx, n, self->order, key));
    MPL_TRY(mpl_new(ctx, self->part, self->n_parts));
    for (uint32_t begin = 0, end; begin < n; begin = end) {
        mpl_buffer *own = NULL;

        for (end = begin + 1; end < n && key[self->order[end]] == key[self->order[begin]];)
            end++;
        MPL_TRY(mpl_new(ctx, own, end - begin));
        memcpy(own, self->order + begin, (end - begin) * sizeof *own);
        MPL_TRY(mpl_spill_part_init(&self->s, own, end - begin, &self->part[self->n_ready++]));
    }
out:
    mpl_free_each(ctx, up, key);
    return st;
}

/* ---- the planner ---- */

static mpl_status solve(solver *self)
{
    bool open = true, never = false;

    for (uint32_t k = 0; k < self->n_parts; k++) {
        MPL_PASS(mpl_spill_start(&self->part[k]));
        never |= self->part[k].finished && !self->part[k].found;
    }
    for (uint32_t lap = 0; open && !never && !mpl_spill_over(&self->s); lap++) {
        uint64_t ticks = LAP_TICKS << (lap < 40 ? lap : 40);

        self->s.call_limit = ticks / CALL_SHARE;
        open = false;
        for (uint32_t k = 0; k < self->n_parts && !mpl_spill_over(&self->s); k++) {
            mpl_spill_part *part = &self->part[k];

            if (!part->finished)
                MPL_PASS(mpl_spill_search(part, ticks));
            MPL_PASS(mpl_spill_improve(part, ticks));
            open |= !part->finished;
            never |= part->finished && !part->found;
        }
    }
    return MPL_OK;
}

/* Offsets in the memory without a capacity: greedy by size. */
static mpl_status place_rest(solver *self, mpl_plan *out)
{
    mpl_status st = MPL_OK;
    mpl_ctx *ctx = self->s.run->ctx;
    uint32_t n = 0, k = self->s.n - 1;
    mpl_problem *q = NULL;
    mpl_plan *rest = NULL;

    for (mpl_buffer b = 0; b < out->n; b++)
        if (self->s.p->pool[b] == 0 && out->spread.memory[b] == k &&
            self->s.capacity[k] == MPL_NO_CAPACITY)
            self->order[n++] = b;
    if (n == 0)
        return MPL_OK;
    MPL_TRY(mpl_spill_problem(ctx, self->s.p, self->order, n, MPL_NO_CAPACITY, &q));
    MPL_TRY(mpl_plan_new(ctx, q, &rest));
    MPL_TRY(mpl_planner_greedy_size.plan(self->s.run, q, rest));
    for (uint32_t i = 0; i < n; i++)
        out->offset[self->order[i]] = rest->offset[i];
out:
    mpl_problem_free(ctx, q);
    mpl_plan_free(ctx, rest);
    return st;
}

static mpl_status take_over(solver *self, mpl_plan *out)
{
    bool unknown = false;

    out->claim = MPL_OPTIMAL;
    for (uint32_t k = 0; k < self->n_parts; k++) {
        const mpl_spill_part *part = &self->part[k];

        if (part->finished && !part->found)
            out->claim = MPL_INFEASIBLE;
        unknown |= !part->found;
        for (uint32_t i = 0; i < part->n && part->found; i++) {
            out->offset[part->buffer[i]] = part->best_offset[i];
            out->spread.memory[part->buffer[i]] = part->best_memory[i];
        }
        out->spread.cost += part->found ? part->cost : 0;
        out->spread.cost_bound += part->found ? part->bound : 0;
    }
    if (out->claim == MPL_INFEASIBLE)
        return MPL_OK;
    if (unknown)
        return MPL_ERROR(
            self->s.run->ctx, MPL_ELIMIT,
            "planner spill: no plan within the capacities was found, and none was refuted, in "
            "%" PRIu64 " ticks",
            self->s.ticks);
    if (out->spread.cost > out->spread.cost_bound)
        out->claim = MPL_FEASIBLE;
    return place_rest(self, out);
}

static mpl_status plan(mpl_run *run, const mpl_problem *p, mpl_plan *out)
{
    mpl_status st = MPL_OK;
    solver v = {.s = {.run = run, .p = p}};

    v.s.tick_limit = run->budget_ticks == UINT64_MAX && run->deadline_ns == INT64_MAX
                         ? DEFAULT_TICKS
                         : run->budget_ticks;
    MPL_TRY(parse_memories(run, &v.s));
    MPL_TRY(check(run, p, &v.s));
    MPL_TRY(mpl_planner_greedy_size.plan(run, p, out)); /* for the other pools */
    MPL_TRY(mpl_plan_spread(run->ctx, out, v.s.n));
    memcpy(out->spread.capacity, v.s.capacity, v.s.n * sizeof *v.s.capacity);
    memcpy(out->spread.price, v.s.price, v.s.n * sizeof *v.s.price);
    MPL_TRY(make_parts(&v));
    MPL_TRY(solve(&v));
    run->ticks = v.s.ticks;
    run->stopped_by_clock = v.s.by_clock;
    MPL_TRY(take_over(&v, out));
out:
    for (uint32_t k = 0; k < v.n_ready; k++)
        mpl_spill_part_fini(&v.part[k]);
    mpl_free_each(run->ctx, v.part, v.order);
    return st;
}

const mpl_planner mpl_planner_spill = {
    .name = "spill",
    .about = "pool 0 over several memories at the least cost",
    .source = "this project",
    .params = "capacities=BYTES/BYTES/..,cost=PRICE/PRICE/..",
    .traits = MPL_EXACT | MPL_RANDOM | MPL_USES_IN_PLACE | MPL_SPREADS,
    .plan = plan,
};
