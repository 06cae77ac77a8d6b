/* exact_families.c -- exact search for families: buffers at decided distances from each other.
 *
 * Idea     A node has decided for some conflicting buffers which one is below, or that an in-place
 *          pair lies at one offset. Each decision is a difference constraint (arc) between the
 *          starts of two families; longest paths give the lowest start of every family. If no two
 *          buffers break a rule there, the starts are a plan. Else the conflict that costs most to
 *          resolve is branched on. Complete: a plan decides every conflict, and no family in it
 *          starts below the longest paths of its decisions. Before the search: greedy orders with
 *          the buffers that end at the top moved ahead, and the plan of whole families, sunk.
 * Source   This project; arcs between what excludes each other are E. Balas's, "Machine sequencing
 *          via disjunctive graphs", 1969.
 * Bound    For each live set and each offset: that offset plus the sizes of the buffers from it on,
 *          within the cap.
 * Cost     Exponential in the conflicts; a node examines all conflicts and live sets.
 * Limits   No search of a pool with more than MAX_PAIRS conflicts. Refutations are not written. */
#include "graphs/problem/bounds/bounds.h"
#include "planners/exact/exact_general.h"
#include "planners/place/placement.h"
#include "planners/place/sort.h"

#define MAX_PAIRS       20000
#define REPAIR_PATIENCE 50 /* successive placements without progress */

extern const mpl_planner mpl_planner_greedy_size, mpl_planner_greedy_breadth, mpl_planner_best_fit,
    mpl_planner_first_fit;

/* `to` starts at least `distance` above `from`. Each family lists its arcs. */
typedef struct arc {
    uint32_t from, to, next;
    int64_t distance; /* [byte] */
} arc;

/* Two conflicting members of different families. */
typedef struct two {
    uint32_t i, j;
    bool may_join;
} two;

typedef struct search {
    mpl_ctx *ctx;
    const mpl_problem *p;
    uint32_t n; /* members */
    mpl_buffer *buffer;
    uint32_t *family; /* [n] family of a member, dense from 0 */
    int64_t *at;      /* [n] offset of a member in its family [byte] */
    uint32_t n_families;
    int64_t *align, *end, *fixed; /* [n_families] of its start; start to end; start or -1 [byte] */
    bool even;                    /* all families have the same alignment */
    int64_t grain;                /* least alignment */
    uint32_t n_pairs;
    two *pair;
    uint32_t n_cliques;
    uint32_t *clique_begin, *clique; /* members alive at one step, without in-place outputs */
    uint32_t *sorted;                /* [n] scratch */
    int64_t *start;                  /* [n_families] lowest start by the decisions [byte] */
    uint32_t *head;                  /* [n_families] first of its arcs, or MPL_NONE */
    arc *arcs;
    size_t n_arcs, arcs_room;
    mpl_trail trail; /* starts of families */
    uint32_t *queue; /* [n_families + 1] ring */
    uint8_t *queued;
    int64_t cap; /* highest end of a plan that is searched for [byte] */
    uint64_t enough;
    uint64_t *offset;       /* of the problem's buffers: the best plan */
    uint64_t height, bound; /* height of the best plan; bound on entry */
    mpl_exact_effort *effort;
    bool stopped;
} search;

/* ---- decisions ---- */

static int64_t round_up(int64_t at, int64_t align)
{
    return at >= 0 ? (at + align - 1) / align * align : -(-at / align * align);
}

/* Raises a family to `least`; *holds false: it cannot start there. */
static mpl_status lift(search *self, uint32_t family, int64_t least, bool *holds)
{
    MPL_PASS(mpl_trail_push(self->ctx, &self->trail, family, self->start[family]));
    self->start[family] = round_up(least, self->align[family]);
    if ((self->fixed[family] >= 0 && self->start[family] > self->fixed[family]) ||
        self->start[family] + self->end[family] > self->cap)
        *holds = false;
    return MPL_OK;
}

/* Propagates raised starts from the queue. `origin` is the lower end of the new arc. With equal
 * alignments it must not rise in turn: that is a cycle without end. */
static mpl_status propagate(search *self, uint32_t first, uint32_t origin, bool *holds)
{
    mpl_status st = MPL_OK;
    uint32_t head = 0, n = 1;

    self->queue[0] = first;
    self->queued[first] = 1;
    while (n > 0) {
        uint32_t family = self->queue[head];

        head = head == self->n_families ? 0 : head + 1;
        n--;
        self->queued[family] = 0;
        for (uint32_t a = self->head[family]; *holds && a != MPL_NONE; a = self->arcs[a].next) {
            uint32_t to = self->arcs[a].to;
            int64_t least = self->start[family] + self->arcs[a].distance;

            self->effort->ticks++;
            if (least <= self->start[to])
                continue;
            if (to == origin && self->even)
                *holds = false;
            self->stopped = self->stopped || self->effort->ticks >= self->effort->tick_limit;
            *holds = *holds && !self->stopped;
            MPL_TRY(lift(self, to, least, holds));
            if (*holds && !self->queued[to]) {
                self->queue[(head + n) % (self->n_families + 1)] = to;
                self->queued[to] = 1;
                n++;
            }
        }
    }
out:
    if (st != MPL_OK)
        memset(self->queued, 0, self->n_families);
    return st;
}

/* Adds the arc: `upper` starts at least `distance` above `lower`. */
static mpl_status decide(search *self, uint32_t lower, uint32_t upper, int64_t distance,
                         bool *holds)
{
    if (self->even)
        distance = round_up(distance, self->grain);
    MPL_PASS(mpl_reserve(self->ctx, self->arcs, self->arcs_room, self->n_arcs + 1));
    self->arcs[self->n_arcs] = (arc){lower, upper, self->head[lower], distance};
    self->head[lower] = (uint32_t)self->n_arcs++;
    if (*holds && self->start[lower] + distance > self->start[upper]) {
        MPL_PASS(lift(self, upper, self->start[lower] + distance, holds));
        if (*holds)
            MPL_PASS(propagate(self, upper, lower, holds));
    }
    return MPL_OK;
}

enum { I_BELOW, J_BELOW, JOINED, N_WAYS };

static int64_t distance_of(const search *self, uint32_t lower, uint32_t upper)
{
    return self->at[lower] + (int64_t)self->p->bytes[self->buffer[lower]] - self->at[upper];
}

static mpl_status take(search *self, const two *t, int way, bool *holds)
{
    uint32_t i = t->i, j = t->j;

    if (way == I_BELOW)
        return decide(self, self->family[i], self->family[j], distance_of(self, i, j), holds);
    if (way == J_BELOW)
        return decide(self, self->family[j], self->family[i], distance_of(self, j, i), holds);
    if (self->even && (self->at[i] - self->at[j]) % self->grain != 0)
        *holds = false;
    MPL_PASS(decide(self, self->family[i], self->family[j], self->at[i] - self->at[j], holds));
    return decide(self, self->family[j], self->family[i], self->at[j] - self->at[i], holds);
}

typedef struct state {
    size_t n_arcs, n_trail;
} state;

static void undo(search *self, state to)
{
    while (self->trail.n > to.n_trail) {
        const struct mpl_trail_step *step = &self->trail.step[--self->trail.n];

        self->start[step->what] = step->old;
    }
    while (self->n_arcs > to.n_arcs) { /* the newest arc is the first of its list */
        const arc *last = &self->arcs[--self->n_arcs];

        self->head[last->from] = last->next;
    }
}

/* ---- a node ---- */

static int64_t place_of(const search *self, uint32_t i)
{
    return self->start[self->family[i]] + self->at[i];
}

static int64_t bytes_of(const search *self, uint32_t i)
{
    return (int64_t)self->p->bytes[self->buffer[i]];
}

/* Least rise of the higher family in each of the ways; -1: impossible. False: no rule is broken. */
static bool weigh(const search *self, const two *t, int64_t rise[N_WAYS])
{
    uint32_t i = t->i, j = t->j, fi = self->family[i], fj = self->family[j];
    int64_t x = place_of(self, i), y = place_of(self, j);

    if (x >= y + bytes_of(self, j) || y >= x + bytes_of(self, i) || (x == y && t->may_join))
        return false;
    rise[I_BELOW] = x + bytes_of(self, i) - y;
    rise[J_BELOW] = y + bytes_of(self, j) - x;
    rise[JOINED] = !t->may_join ? -1 : x > y ? x - y : y - x;
    if (self->start[fj] + rise[I_BELOW] + self->end[fj] > self->cap)
        rise[I_BELOW] = -1;
    if (self->start[fi] + rise[J_BELOW] + self->end[fi] > self->cap)
        rise[J_BELOW] = -1;
    if (rise[JOINED] >= 0 && (x > y ? self->start[fj] + rise[JOINED] + self->end[fj]
                                    : self->start[fi] + rise[JOINED] + self->end[fi]) > self->cap)
        rise[JOINED] = -1;
    return true;
}

/* Chooses the conflict to branch on: one with at most one way out, else the one whose cheapest way
 * costs most. MPL_NONE: the starts are a plan. */
static uint32_t choose(search *self, int64_t rise[N_WAYS])
{
    uint32_t chosen = MPL_NONE, fewest = N_WAYS + 1;
    int64_t most = -1, now[N_WAYS];

    for (uint32_t k = 0; k < self->n_pairs && fewest > 1; k++) {
        int64_t least = INT64_MAX;
        uint32_t ways = 0;

        if (!weigh(self, &self->pair[k], now))
            continue;
        for (int w = 0; w < N_WAYS; w++)
            if (now[w] >= 0) {
                ways++;
                least = now[w] < least ? now[w] : least;
            }
        ways = ways > 1 ? 2 : ways;
        if (ways > fewest || (ways == fewest && least <= most))
            continue;
        fewest = ways;
        most = least;
        chosen = k;
        memcpy(rise, now, sizeof now);
    }
    self->effort->ticks += self->n_pairs;
    return chosen;
}

/* Whether some live set cannot end within the cap. */
static bool too_high(search *self)
{
    for (uint32_t c = 0; c < self->n_cliques; c++) {
        uint32_t n = 0;
        int64_t sum = 0, rest = 0;

        for (uint32_t k = self->clique_begin[c]; k < self->clique_begin[c + 1]; k++, n++) {
            uint32_t m = self->clique[k], to = n;

            for (; to > 0 && place_of(self, self->sorted[to - 1]) < place_of(self, m); to--)
                self->sorted[to] = self->sorted[to - 1];
            self->sorted[to] = m;
        }
        self->effort->ticks += n;
        for (uint32_t k = 0; k < n; k++) { /* top down */
            int64_t slots = round_up(bytes_of(self, self->sorted[k]), self->grain);

            sum += slots;
            rest = slots - bytes_of(self, self->sorted[k]) > rest
                       ? slots - bytes_of(self, self->sorted[k])
                       : rest;
            if (place_of(self, self->sorted[k]) + sum - rest > self->cap)
                return true;
        }
    }
    return false;
}

static void keep(search *self)
{
    self->height = 0;
    for (uint32_t i = 0; i < self->n; i++) {
        self->offset[self->buffer[i]] = (uint64_t)place_of(self, i);
        self->height = mpl_max_u64(self->height, (uint64_t)(place_of(self, i) + bytes_of(self, i)));
    }
    self->cap = (int64_t)self->height - 1;
}

static bool is_done(search *self)
{
    const mpl_exact_effort *effort = self->effort;

    if (self->height <= mpl_max_u64(self->bound, self->enough))
        return true;
    self->effort->by_clock = effort->by_clock || mpl_exact_late(effort->deadline_ns, effort->watch);
    self->stopped = self->stopped || effort->by_clock || effort->ticks >= effort->tick_limit;
    return self->stopped;
}

static mpl_status visit(search *self)
{
    state here = {self->n_arcs, self->trail.n};
    int64_t rise[N_WAYS];
    uint32_t k = 0;
    bool holds = true;

    for (uint32_t f = 0; f < self->n_families; f++)
        holds = holds && self->start[f] + self->end[f] <= self->cap; /* the cap may have sunk
                                                                        meanwhile */
    if (!holds || is_done(self) || too_high(self))
        return MPL_OK;
    k = choose(self, rise);
    if (k == MPL_NONE) {
        keep(self);
        return MPL_OK;
    }
    for (;;) {
        int way = -1;

        for (int w = 0; w < N_WAYS; w++)
            if (rise[w] >= 0 && (way < 0 || rise[w] < rise[way]))
                way = w;
        if (way < 0 || is_done(self))
            break;
        rise[way] = -1;
        holds = true;
        MPL_PASS(take(self, &self->pair[k], way, &holds));
        if (holds)
            MPL_PASS(visit(self));
        undo(self, here);
    }
    return MPL_OK;
}

/* ---- making ---- */

static mpl_status add_members(search *self, uint32_t pool)
{
    mpl_status st = MPL_OK;
    const mpl_problem *p = self->p;
    uint32_t *of = NULL;
    uint32_t n = 0;

    for (mpl_buffer b = 0; b < p->n; b++)
        n += p->pool[b] == pool;
    MPL_TRY(mpl_new(self->ctx, of, p->n));
    MPL_TRY(mpl_new_each(self->ctx, n, self->buffer, self->family, self->at, self->sorted,
                         self->align, self->end, self->fixed));
    for (mpl_buffer b = 0; b < p->n; b++)
        if (p->pool[b] == pool && p->inside[b] == b)
            of[b] = self->n_families++;
    for (mpl_buffer b = 0; b < p->n; b++) {
        uint32_t f = of[p->inside[b]];
        int64_t end = (int64_t)(p->inside_at[b] + p->bytes[b]);

        if (p->pool[b] != pool)
            continue;
        self->buffer[self->n] = b;
        self->at[self->n] = (int64_t)p->inside_at[b];
        self->family[self->n++] = f;
        self->end[f] = end > self->end[f] ? end : self->end[f];
        if (p->inside[b] == b) {
            self->align[f] = p->align[b];
            self->fixed[f] =
                p->fixed != NULL && p->fixed[b] != MPL_UNFIXED ? (int64_t)p->fixed[b] : -1;
        }
    }
out:
    mpl_free(self->ctx, of);
    return st;
}

static void find_grain(search *self)
{
    self->grain = INT64_C(1) << 31;
    self->even = true;
    for (uint32_t f = 0; f < self->n_families; f++)
        self->grain = self->align[f] < self->grain ? self->align[f] : self->grain;
    for (uint32_t i = 0; i < self->n; i++)
        self->grain = self->p->align[self->buffer[i]] < self->grain
                          ? (int64_t)self->p->align[self->buffer[i]]
                          : self->grain;
    for (uint32_t f = 0; f < self->n_families; f++)
        self->even = self->even && self->align[f] == self->grain && self->fixed[f] < 0;
}

/* *fits: there are at most MAX_PAIRS. */
static mpl_status add_pairs(search *self, bool *fits)
{
    size_t room = 0;

    for (uint32_t i = 0; i < self->n; i++)
        for (uint32_t j = 0; j < i; j++) {
            mpl_buffer a = self->buffer[i], b = self->buffer[j];

            if (self->family[i] == self->family[j] || !mpl_conflict(self->p, a, b))
                continue;
            if (self->n_pairs == MAX_PAIRS) {
                *fits = false;
                return MPL_OK;
            }
            MPL_PASS(mpl_reserve(self->ctx, self->pair, room, (size_t)self->n_pairs + 1));
            self->pair[self->n_pairs++] = (two){i, j, mpl_is_pair(self->p, a, b)};
        }
    *fits = true;
    return MPL_OK;
}

static bool is_alive(const mpl_problem *p, mpl_buffer b, uint32_t step)
{
    for (uint32_t i = p->gap_begin != NULL ? p->gap_begin[b] : 0;
         p->gap_begin != NULL && i < p->gap_begin[b + 1]; i++)
        if (p->gap_from[i] <= step && step < p->gap_to[i])
            return false;
    return p->birth[b] <= step && step < p->death[b];
}

/* Whether m may overwrite a buffer alive at `step`, so that it needs no room of its own there. */
static bool may_rest_on_another(const search *self, uint32_t m, uint32_t step)
{
    const mpl_problem *p = self->p;

    for (uint32_t i = 0; i < p->n_in_place; i++)
        if (p->in_place_out[i] == self->buffer[m] && is_alive(p, p->in_place_in[i], step))
            return true;
    return false;
}

/* Lists the live sets at births; a partial order has none. */
static mpl_status add_cliques(search *self)
{
    const mpl_problem *p = self->p;
    size_t room = 0;
    uint32_t n = 0;

    if (p->before != NULL)
        return MPL_OK;
    MPL_PASS(mpl_new(self->ctx, self->clique_begin, (size_t)self->n + 1));
    for (uint32_t i = 0; i < self->n; i++) {
        uint32_t step = p->birth[self->buffer[i]];
        bool seen = false;

        for (uint32_t j = 0; j < i; j++)
            seen = seen || p->birth[self->buffer[j]] == step;
        for (uint32_t m = 0; !seen && m < self->n; m++)
            if (is_alive(p, self->buffer[m], step) && !may_rest_on_another(self, m, step)) {
                MPL_PASS(mpl_reserve(self->ctx, self->clique, room, (size_t)n + 1));
                self->clique[n++] = m;
            }
        if (!seen)
            self->clique_begin[++self->n_cliques] = n;
    }
    return MPL_OK;
}

static void search_fini(search *self)
{
    mpl_free_each(self->ctx, self->buffer, self->family, self->at, self->align, self->end,
                  self->fixed, self->pair, self->sorted, self->clique_begin, self->clique,
                  self->start, self->head, self->arcs, self->trail.step, self->queue, self->queued);
}

static mpl_status search_init(search *self, uint32_t pool, bool *fits)
{
    MPL_PASS(add_members(self, pool));
    find_grain(self);
    MPL_PASS(add_pairs(self, fits));
    if (!*fits)
        return MPL_OK;
    MPL_PASS(add_cliques(self));
    MPL_PASS(mpl_new_each(self->ctx, self->n_families, self->start, self->head));
    MPL_PASS(mpl_new(self->ctx, self->queue, (size_t)self->n_families + 1));
    MPL_PASS(mpl_new(self->ctx, self->queued, self->n_families));
    for (uint32_t f = 0; f < self->n_families; f++) {
        self->head[f] = MPL_NONE;
        self->start[f] = self->fixed[f] >= 0 ? self->fixed[f] : 0;
    }
    return MPL_OK;
}

mpl_status mpl_exact_families(mpl_ctx *ctx, const mpl_problem *p, uint32_t pool, uint64_t enough,
                              uint64_t most, mpl_exact_effort *effort, uint64_t *offset,
                              uint64_t *height, uint64_t *bound)
{
    mpl_status st = MPL_OK;
    search s = {.ctx = ctx,
                .p = p,
                .enough = enough,
                .offset = offset,
                .height = *height,
                .bound = *bound,
                .effort = effort};
    bool fits = false;

    if (*height <= mpl_max_u64(*bound, enough) || *bound > most ||
        !mpl_exact_uses(effort->without, MPL_RULE_families))
        return MPL_OK;
    s.cap = (int64_t)mpl_min_u64(*height - 1, most);
    MPL_TRY(search_init(&s, pool, &fits));
    if (!fits)
        goto out;
    MPL_TRY(visit(&s));
    if (!s.stopped && s.height > mpl_max_u64(s.bound, enough))
        *bound = mpl_min_u64(s.height, (uint64_t)s.cap + 1); /* proved by search */
    *height = s.height;
out:
    search_fini(&s);
    return st;
}

/* ---- first plans ---- */

typedef struct first {
    mpl_run *run;
    const mpl_problem *p;
    mpl_exact_solver *solve; /* plans whole families */
    mpl_exact_effort *effort;
    mpl_plan *trial;
    uint64_t *offset;              /* of the best plan, pool by pool */
    uint64_t tick_limit;           /* of the current stage */
    uint64_t *height, *goal, *got; /* [n_pools] best plan, goal, current plan [byte] */
} first;

static void offer(first *self)
{
    const mpl_problem *p = self->p;

    memset(self->got, 0, p->n_pools * sizeof *self->got);
    for (mpl_buffer b = 0; b < p->n; b++)
        self->got[p->pool[b]] =
            mpl_max_u64(self->got[p->pool[b]], self->trial->offset[b] + p->bytes[b]);
    for (mpl_buffer b = 0; b < p->n; b++)
        if (self->got[p->pool[b]] < self->height[p->pool[b]])
            self->offset[b] = self->trial->offset[b];
    for (uint32_t pool = 0; pool < p->n_pools; pool++)
        self->height[pool] = mpl_min_u64(self->height[pool], self->got[pool]);
}

static bool all_good(const first *self)
{
    bool good = true;

    for (uint32_t pool = 0; pool < self->p->n_pools; pool++)
        good = good && self->height[pool] <= self->goal[pool];
    return good || self->effort->ticks >= self->tick_limit || mpl_run_late(self->run);
}

static mpl_status place_order(first *self, const mpl_buffer *order)
{
    mpl_run part = *self->run;

    part.ticks = 0;
    MPL_PASS(mpl_place_all(&part, self->p, order, MPL_FIT_LOWEST, self->trial));
    self->effort->ticks += part.ticks + self->p->n;
    offer(self);
    return MPL_OK;
}

/* Repairs the current plan: places by rising offset, then again with what ends too high first. */
static mpl_status repair(first *self)
{
    mpl_status st = MPL_OK;
    const mpl_problem *p = self->p;
    mpl_buffer *order = NULL, *next = NULL;
    uint64_t best = UINT64_MAX;

    MPL_TRY(mpl_new_each(self->run->ctx, p->n, order, next));
    mpl_ids_ascending(p->n, order);
    MPL_TRY(mpl_sort_ids(self->run->ctx, p->n, order, self->trial->offset));
    MPL_TRY(place_order(self, order));
    for (uint32_t idle = 0; idle < REPAIR_PATIENCE && !all_good(self); idle++) {
        uint64_t high = 0;
        uint32_t n = 0;

        for (int late = 0; late < 2; late++)
            for (uint32_t i = 0; i < p->n; i++) {
                uint64_t end = self->trial->offset[order[i]] + p->bytes[order[i]],
                         goal = self->goal[p->pool[order[i]]];

                high = end > goal ? mpl_max_u64(high, end - goal) : high;
                if ((end <= goal) == late)
                    next[n++] = order[i];
            }
        memcpy(order, next, p->n * sizeof *order);
        idle = high < best ? 0 : idle;
        best = mpl_min_u64(best, high);
        MPL_TRY(place_order(self, order));
    }
out:
    mpl_free_each(self->run->ctx, order, next);
    return st;
}

/* Plans whole families with a quarter of the budget, if that much is left. */
static mpl_status plan_whole(first *self)
{
    mpl_status st = MPL_OK;
    uint64_t limit = self->effort->tick_limit,
             left = limit - mpl_min_u64(self->effort->ticks, limit);
    mpl_problem *hull = NULL;
    mpl_plan *plan = NULL;
    uint32_t *into = NULL;
    mpl_run part = *self->run;
    mpl_watch quiet = {.stop = self->run->watch != NULL ? self->run->watch->stop : NULL};

    part.watch = &quiet;
    part.start_offsets = NULL;
    part.ticks = 0;
    part.budget_ticks = mpl_min_u64(limit / 4, left);
    if (part.deadline_ns != INT64_MAX)
        part.deadline_ns = mpl_clock_ns() + (part.deadline_ns - mpl_clock_ns()) / 4;
    MPL_TRY(mpl_new(part.ctx, into, self->p->n));
    MPL_TRY(mpl_problem_hull(part.ctx, self->p, &hull, into));
    MPL_TRY(mpl_plan_new(part.ctx, hull, &plan));
    st = self->solve(&part, hull, &(mpl_exact_options){.without = self->effort->without}, plan);
    self->effort->ticks += part.ticks;
    if (st == MPL_ELIMIT || (st == MPL_OK && plan->claim == MPL_INFEASIBLE)) {
        st = MPL_OK;
        goto out;
    }
    MPL_TRY(st);
    for (mpl_buffer b = 0; b < self->p->n; b++)
        self->trial->offset[b] = plan->offset[into[b]] + self->p->inside_at[b];
    offer(self);
    MPL_TRY(repair(self));
out:
    mpl_problem_free(part.ctx, hull);
    mpl_plan_free(part.ctx, plan);
    mpl_free(part.ctx, into);
    return st;
}

static mpl_status ask_quick(first *self)
{
    static const mpl_planner *const quick[] = {&mpl_planner_greedy_size,
                                               &mpl_planner_greedy_breadth, &mpl_planner_best_fit,
                                               &mpl_planner_first_fit};

    for (size_t i = 0; i < sizeof quick / sizeof *quick && !(i > 0 && all_good(self)); i++) {
        mpl_run part = *self->run;

        part.ticks = 0;
        part.n_params = 0;
        MPL_PASS(quick[i]->plan(&part, self->p, self->trial));
        self->effort->ticks += part.ticks + self->p->n;
        offer(self);
        if (!all_good(self))
            MPL_PASS(repair(self));
    }
    return MPL_OK;
}

mpl_status mpl_exact_families_first(mpl_run *run, const mpl_problem *p, mpl_exact_solver *solve,
                                    mpl_exact_effort *effort, uint64_t *offset)
{
    mpl_status st = MPL_OK;
    first f = {.run = run, .p = p, .solve = solve, .effort = effort, .offset = offset};

    MPL_TRY(mpl_plan_new(run->ctx, p, &f.trial));
    MPL_TRY(mpl_new_each(run->ctx, p->n_pools, f.height, f.goal, f.got));
    for (uint32_t pool = 0; pool < p->n_pools; pool++) {
        MPL_TRY(mpl_lower_bound(run->ctx, p, pool, &f.goal[pool], NULL));
        f.goal[pool] = mpl_run_enough(run, f.goal[pool]);
        f.height[pool] = UINT64_MAX;
    }
    if (run->start_offsets != NULL) {
        memcpy(f.trial->offset, run->start_offsets, p->n * sizeof *offset);
        offer(&f);
    }
    f.tick_limit = effort->tick_limit / 2; /* of repairs, so that ticks are left */
    MPL_TRY(ask_quick(&f));
    f.tick_limit = effort->tick_limit;
    if (!all_good(&f))
        MPL_TRY(plan_whole(&f));
out:
    mpl_plan_free(run->ctx, f.trial);
    mpl_free_each(run->ctx, f.height, f.goal, f.got);
    return st;
}
