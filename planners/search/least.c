/* least.c -- the least arena of a graph over orders, sharing and placement. See least.h.
 *
 * Idea     No plan is below the least peak of the relaxed model, over all orders and all choices of
 *          concats and splits. An order of that peak is given its concats and placed; mostly that
 *          meets the bound. If not, other orders and choices are tried. Of a small graph every
 *          choice, and every order that may still lead lower, is placed within one byte less than
 *          the best plan; if none is left, the best plan is the least. Of a larger graph operations
 *          are moved and the result placed, in turns.
 * Source   this project; the model: graphs/orders/ORDERS.md; listed orders: list.c
 * Cost     A search for the least peak and a few placements; then what the budget allows.
 * Limits   The peak counts whole slots, while an arena ends in the last buffer's slot. The most of
 *          it that can be unused is subtracted from the bound. The peak in bytes, without slots, is
 *          a bound as well. If both are below the plan, only a complete list can close the gap. */
#include "planners/search/least.h"

#include "graphs/core/rng.h"
#include "graphs/orders/orders.h"
#include "graphs/problem/bounds/bounds.h"
#include "planners/search/concat.h"

#include <errno.h>
#include <stdlib.h>

/* in all; of one placement, unless more is left */
static const uint64_t DEFAULT_TICKS = 2000000000, TURN = 20000000;
enum {
    MOST_CHOICES = 10
}; /* concats and splits of a small graph, all choices of which are tried */

extern const mpl_planner mpl_planner_exact, mpl_planner_portfolio, mpl_planner_greedy_size;

/* What an order and a choice of sharing give. */
typedef struct trial {
    const mpl_op *order;
    const uint8_t *shared, *copied; /* [n_ops] */
    uint64_t capacity;              /* a plan within it is wanted; or MPL_NO_CAPACITY [byte] */
    const mpl_planner *planner;
    uint64_t arena; /* of the plan found; UINT64_MAX: none [byte] */
    bool decided;   /* it is the least of this problem, or there is none within the capacity */
} trial;

typedef struct searcher {
    mpl_order_run *run;
    mpl_ctx *ctx;
    const mpl_graph *g;
    mpl_problem_options options;
    mpl_least_progress *progress;
    void *arg;
    mpl_watch watch;
    uint64_t ticks, budget, bound, rest;
    const char *method, *scope;
    bool copy_splits;            /* splits and slices may copy */
    bool late, stopped, is_open; /* is_open: an order or choice was neither placed nor excluded */
    mpl_op *split, *concat;      /* splits that may copy, concats that may share */
    uint32_t n_splits, n_concats;
    mpl_op *order;            /* [n_ops] of the trial under way */
    uint8_t *shared, *copied; /* [n_ops] of the trial under way */
    mpl_least *best;
} searcher;

void mpl_least_free(mpl_ctx *ctx, mpl_least *least)
{
    if (least == NULL)
        return;
    mpl_free_each(ctx, least->order, least->shared, least->copied);
    mpl_problem_free(ctx, least->problem);
    mpl_value_map_free(ctx, least->map);
    mpl_plan_free(ctx, least->plan);
    mpl_free(ctx, least);
}

static uint64_t best_arena(const searcher *self)
{
    return self->best != NULL ? self->best->plan->peak_bytes : UINT64_MAX;
}

/* Whether to end: the bound is met, the budget or the time is spent, or the caller says so. */
static bool is_over(searcher *self)
{
    if (best_arena(self) <= self->bound)
        return true;
    if (!self->stopped && self->progress != NULL &&
        !self->progress(self->arg, best_arena(self), self->bound))
        self->stopped = true;
    if (self->run->stop != NULL && *self->run->stop != 0)
        self->stopped = true;
    if (self->run->deadline_ns != INT64_MAX && mpl_clock_ns() >= self->run->deadline_ns)
        self->late = true;
    return self->stopped || self->late || self->ticks >= self->budget;
}

static void raise_bound(searcher *self, uint64_t bound, const char *method)
{
    if (bound <= self->bound)
        return;
    self->bound = bound;
    self->method = method;
}

/* ---- one trial ---- */

static mpl_status copy_bytes(mpl_ctx *ctx, uint8_t **out, const uint8_t *from, uint32_t n)
{
    MPL_PASS(mpl_new(ctx, *out, n));
    if (n > 0)
        memcpy(*out, from, n);
    return MPL_OK;
}

/* Keeps a trial's plan as the best. Takes problem, map and plan over. */
static mpl_status keep(searcher *self, const trial *t, mpl_problem **p, mpl_value_map **map,
                       mpl_plan **plan)
{
    mpl_status st = MPL_OK;
    mpl_least *one = NULL;
    uint32_t n = self->g->n_ops;

    MPL_TRY(mpl_new(self->ctx, one, 1));
    MPL_TRY(mpl_new(self->ctx, one->order, n));
    if (n > 0)
        memcpy(one->order, t->order, n * sizeof *one->order);
    MPL_TRY(copy_bytes(self->ctx, &one->shared, t->shared, n));
    MPL_TRY(copy_bytes(self->ctx, &one->copied, t->copied, n));
    one->problem = *p, *p = NULL;
    one->problem->pool_capacity[0] = MPL_NO_CAPACITY;
    one->map = *map, *map = NULL;
    one->plan = *plan, *plan = NULL;
    mpl_least_free(self->ctx, self->best);
    self->best = one, one = NULL;
out:
    mpl_least_free(self->ctx, one);
    return st;
}

/* The first placement, of an order of the least peak, gets half of the budget. */
static void run_init(const searcher *self, mpl_run *run)
{
    uint64_t left = self->budget > self->ticks ? self->budget - self->ticks : 0;

    *run = mpl_run_default(self->ctx);
    run->budget_ticks =
        mpl_max_u64(left / (self->best == NULL ? 2 : 16) + 1, mpl_min_u64(TURN, left));
    run->seed = self->run->seed;
    run->deadline_ns = self->run->deadline_ns;
    run->watch = &self->watch;
}

/* Places a trial whose peak may be below the best plan; keeps the plan if it is lower. */
static mpl_status place(searcher *self, trial *t)
{
    mpl_status st = MPL_OK;
    mpl_problem_options o = self->options;
    mpl_problem *p = NULL;
    mpl_value_map *map = NULL;
    mpl_plan *plan = NULL;
    mpl_run run;
    uint64_t bound;

    t->arena = UINT64_MAX;
    t->decided = true;
    o.concat = MPL_CONCAT_AUTO;
    o.concat_shared = t->shared;
    o.split_copied = t->copied;
    o.capacity = t->capacity;
    MPL_TRY(mpl_problem_from_graph(self->ctx, self->g, t->order, &o, &p, &map));
    MPL_TRY(mpl_lower_bound(self->ctx, p, 0, &bound, NULL));
    self->ticks += p->n;
    if (bound >= best_arena(self))
        goto out;
    run_init(self, &run);
    st = mpl_planner_run(t->planner, &run, p, &plan);
    self->ticks += run.ticks;
    if (st == MPL_ELIMIT) { /* nothing found, nothing refuted */
        t->decided = false;
        st = MPL_OK;
        goto out;
    }
    MPL_TRY(st);
    t->decided = plan->claim == MPL_OPTIMAL || plan->claim == MPL_INFEASIBLE;
    if (plan->claim == MPL_INFEASIBLE)
        goto out;
    t->arena = plan->peak_bytes;
    if (t->arena < best_arena(self))
        MPL_TRY(keep(self, t, &p, &map, &plan));
out:
    mpl_plan_free(self->ctx, plan);
    mpl_problem_free(self->ctx, p);
    mpl_value_map_free(self->ctx, map);
    return st;
}

/* Places `order` with its concats as `how` says. */
static mpl_status place_order(searcher *self, const mpl_op *order, mpl_concat how,
                              const mpl_planner *planner)
{
    mpl_status st = MPL_OK;
    mpl_problem_options o = self->options;
    mpl_concats *concats = NULL;
    mpl_concat_found found;
    trial t = {order, self->shared, self->copied, MPL_NO_CAPACITY, planner, 0, false};

    o.concat = how;
    memset(self->copied, 0, self->g->n_ops);
    if (how == MPL_CONCAT_AUTO) {
        MPL_TRY(mpl_concat_decide(self->ctx, self->g, order, &o, self->shared, &found));
        self->ticks += found.ticks;
    } else {
        MPL_TRY(mpl_concats_new(self->ctx, self->g, order, &o, &concats));
        memcpy(self->shared, concats->shared, self->g->n_ops);
    }
    MPL_TRY(place(self, &t));
out:
    mpl_concats_free(self->ctx, concats);
    return st;
}

/* ---- choices ---- */

static bool is_split(const searcher *self, mpl_op op)
{
    mpl_op_kind kind = (mpl_op_kind)self->g->op_kind[op];

    return self->copy_splits && self->options.views && self->g->n_blocks == 1 &&
           (kind == MPL_OP_split || kind == MPL_OP_slice);
}

/* The concats that can share while the splits in self->copied copy: concat[n_concats]. With
 * --concat share they are not free: all of them share. */
static mpl_status find_concats(searcher *self)
{
    mpl_status st = MPL_OK;
    mpl_problem_options o = self->options;
    mpl_concats *concats = NULL;

    o.concat = self->options.concat == MPL_CONCAT_COPY ? MPL_CONCAT_COPY : MPL_CONCAT_SHARE;
    o.split_copied = self->copied;
    MPL_TRY(mpl_concats_new(self->ctx, self->g, NULL, &o, &concats));
    self->n_concats = 0;
    for (mpl_op op = 0; op < self->g->n_ops; op++) {
        self->shared[op] = concats->shared[op];
        if (concats->shared[op] && self->options.concat == MPL_CONCAT_AUTO)
            self->concat[self->n_concats++] = op;
    }
out:
    mpl_concats_free(self->ctx, concats);
    return st;
}

static mpl_status find_choices(searcher *self)
{
    MPL_PASS(mpl_new_each(self->ctx, self->g->n_ops, self->concat, self->split));
    for (mpl_op op = 0; op < self->g->n_ops; op++)
        if (is_split(self, op))
            self->split[self->n_splits++] = op;
    return find_concats(self);
}

static void choose(uint8_t *flag, const mpl_op *op, uint32_t n, uint32_t set)
{
    for (uint32_t i = 0; i < n; i++)
        flag[op[i]] = set >> i & 1;
}

typedef mpl_status visit(searcher *s);

/* Visits every choice: self->shared and self->copied. Choices that are too many stay open. */
static mpl_status visit_choices(searcher *self, visit *each)
{
    self->is_open = self->is_open || self->n_splits > MOST_CHOICES;
    for (uint32_t copied = 0; !self->is_open && copied >> self->n_splits == 0; copied++) {
        choose(self->copied, self->split, self->n_splits, copied);
        MPL_PASS(find_concats(self));
        self->is_open = self->is_open || self->n_concats > MOST_CHOICES;
        for (uint32_t shared = 0; !self->is_open && shared >> self->n_concats == 0; shared++) {
            choose(self->shared, self->concat, self->n_concats, shared);
            MPL_PASS(each(self));
            if (is_over(self))
                self->is_open = true;
        }
    }
    return MPL_OK;
}

/* Places every order under the choice in self->shared and self->copied that may need less. */
static mpl_status list_orders(searcher *self)
{
    mpl_status st = MPL_OK;
    mpl_problem_options o = self->options;
    mpl_order_list *list = NULL;
    bool found = true, ended = false;

    o.concat = MPL_CONCAT_AUTO;
    o.concat_shared = self->shared;
    o.split_copied = self->copied;
    MPL_TRY(mpl_order_list_new(self->ctx, self->g, &o, self->best->order, &list));
    while (found && !is_over(self)) {
        trial t = {self->order, self->shared, self->copied, 0, &mpl_planner_exact, 0, false};

        MPL_TRY(mpl_order_list_next(list, best_arena(self) - 1 + self->rest, self->budget,
                                    &self->ticks, self->order, &found, &ended));
        /* A plan within the capacity ends the search, but the order may have a better one. */
        for (t.arena = 0; found && t.arena != UINT64_MAX && !is_over(self);) {
            t.capacity = best_arena(self) - 1;
            MPL_TRY(place(self, &t));
            self->is_open = self->is_open || (!t.decided && t.arena == UINT64_MAX);
        }
    }
    self->is_open = self->is_open || !ended;
out:
    mpl_order_list_free(list);
    return st;
}

/* Moves `op`, which has no predecessor, to the front. */
static void move_to_front(mpl_op *order, mpl_op op)
{
    uint32_t at = 0;

    while (order[at] != op)
        at++;
    memmove(order + 1, order, at * sizeof *order);
    order[0] = op;
}

static bool is_first(const mpl_graph *g, mpl_op op)
{
    for (uint32_t i = g->op_in_begin[op]; i < g->op_in_begin[op + 1]; i++)
        if (g->op_in[i] != MPL_NONE && g->value_op[g->op_in[i]] != MPL_NONE)
            return false;
    return true;
}

/* Parallel safety: every order is safe. What the first operation reads is born with its output, so
 * it may not be overwritten: each that can be the first is tried, where inputs are planned. */
static mpl_status place_choice(searcher *self)
{
    trial t = {self->order, self->shared, self->copied, MPL_NO_CAPACITY, &mpl_planner_exact,
               0,           false};
    bool all = self->options.in_place && !(self->options.pin_inputs && self->options.pin_weights);

    for (mpl_op op = 0; op < self->g->n_ops; op++) {
        if (all ? !is_first(self->g, op) : op > 0)
            continue;
        if (all)
            move_to_front(self->order, op);
        MPL_PASS(place(self, &t));
        self->is_open = self->is_open || !t.decided;
        if (is_over(self))
            break;
    }
    return MPL_OK;
}

/* Tries every choice, with every order where orders matter. */
static mpl_status list_all(searcher *self)
{
    memcpy(self->order, self->best->order, self->g->n_ops * sizeof *self->order);
    MPL_PASS(visit_choices(self, self->options.parallel ? place_choice : list_orders));
    if (!self->is_open)
        raise_bound(self, best_arena(self), "orders");
    return MPL_OK;
}

/* ---- larger graphs ---- */

/* An operation with those of its blocks, which come right before it by id and in every order. */
static uint32_t size_of(const mpl_graph *g, mpl_op op)
{
    return g->op_body_begin[op] < g->op_body_begin[op + 1]
               ? op + 1 - g->block_op_begin[g->op_body[g->op_body_begin[op]]]
               : 1;
}

/* Raises *low to after the maker of v, if that is in block b. */
static void go_behind(const mpl_graph *g, uint32_t b, mpl_value v, const uint32_t *place_of,
                      uint32_t *low)
{
    mpl_op maker = v == MPL_NONE ? MPL_NONE : g->value_op[v];

    if (maker != MPL_NONE && g->op_block[maker] == b && place_of[maker] + 1 > *low)
        *low = place_of[maker] + 1;
}

/* Positions [*low, *high) after all makers of values that `op` and its blocks read, and before all
 * readers of `op`. */
static void find_room(const mpl_graph *g, mpl_op op, const uint32_t *place_of, uint32_t *low,
                      uint32_t *high)
{
    uint32_t b = g->op_block[op];
    mpl_op first = op + 1 - size_of(g, op);

    *low = g->n_ops, *high = 0;
    for (mpl_op at = g->block_op_begin[b]; at < g->block_op_end[b]; at++)
        if (g->op_block[at] == b) {
            *low = (uint32_t)mpl_min_u64(*low, place_of[at] + 1 - size_of(g, at));
            *high = (uint32_t)mpl_max_u64(*high, place_of[at] + 1);
        }
    for (uint32_t i = g->op_in_begin[first]; i < g->op_in_begin[op + 1]; i++)
        go_behind(g, b, g->op_in[i], place_of, low);
    for (uint32_t k = b + 1; k < g->n_blocks; k++)
        for (uint32_t i = 0;
             g->block_owner[k] >= first && g->block_owner[k] <= op && i < g->block_n_results[k];
             i++)
            go_behind(g, b, mpl_result(g, k, i), place_of, low);
    for (uint32_t i = g->op_out_begin[op]; i < g->op_out_begin[op + 1]; i++)
        for (uint32_t k = g->op_out[i] == MPL_NONE ? 0 : g->value_use_begin[g->op_out[i]];
             g->op_out[i] != MPL_NONE && k < g->value_use_begin[g->op_out[i] + 1]; k++) {
            mpl_op user = g->value_use[k];

            while (g->op_block[user] != b && g->op_block[user] != 0)
                user = g->block_owner[g->op_block[user]];
            if (g->op_block[user] == b)
                *high = (uint32_t)mpl_min_u64(*high, place_of[user] + 1 - size_of(g, user));
        }
}

/* Moves one operation, with its blocks, to another position in its block, between its predecessors
 * and its successors. */
static void shake(const mpl_graph *g, mpl_rng *rng, mpl_op *order, uint32_t *place_of)
{
    mpl_op op = (mpl_op)mpl_rng_below(rng, g->n_ops);
    uint32_t b = g->op_block[op], n = size_of(g, op), low, high, from, others = 0, to;
    uint64_t before;

    for (uint32_t i = 0; i < g->n_ops; i++)
        place_of[order[i]] = i;
    find_room(g, op, place_of, &low, &high);
    for (uint32_t i = low; i < high; i++)
        others += g->op_block[order[i]] == b && order[i] != op;
    before = mpl_rng_below(rng, others + 1);
    from = place_of[op] + 1 - n;
    for (to = low; before > 0; to++)
        before -= g->op_block[order[to]] == b && order[to] != op;
    for (; n > 0; n--) {
        mpl_op one = order[from];

        if (from < to) {
            memmove(order + from, order + from + 1, (to - 1 - from) * sizeof *order);
            order[to - 1] = one;
        } else {
            memmove(order + to + 1, order + to, (from - to) * sizeof *order);
            order[to++] = one, from++;
        }
    }
}

/* Moves operations or changes choices, and places the result, in turns. */
static mpl_status alternate(searcher *self, uint64_t rounds)
{
    mpl_status st = MPL_OK;
    uint32_t *place_of = NULL;
    mpl_rng rng = mpl_rng_of(self->run->seed);

    MPL_TRY(mpl_new(self->ctx, place_of, self->g->n_ops));
    for (uint64_t i = 0; i < rounds && !is_over(self); i++) {
        trial t = {
            self->order, self->shared, self->copied, MPL_NO_CAPACITY, &mpl_planner_portfolio, 0, 0};

        memcpy(self->order, self->best->order, self->g->n_ops * sizeof *self->order);
        memcpy(self->shared, self->best->shared, self->g->n_ops);
        memcpy(self->copied, self->best->copied, self->g->n_ops);
        if (self->n_splits + self->n_concats > 0 && mpl_rng_below(&rng, 2) == 0) {
            uint32_t which = (uint32_t)mpl_rng_below(&rng, self->n_splits + self->n_concats);

            if (which < self->n_splits)
                self->copied[self->split[which]] ^= 1;
            else
                self->shared[self->concat[which - self->n_splits]] ^= 1;
        } else {
            for (uint64_t moves = 1 + mpl_rng_below(&rng, 3); moves > 0; moves--)
                shake(self->g, &rng, self->order, place_of);
        }
        MPL_TRY(place(self, &t));
    }
out:
    mpl_free(self->ctx, place_of);
    return st;
}

/* ---- bounds ---- */

/* Most bytes of its last slot that a buffer may leave unused. */
static uint64_t most_rest(const searcher *self)
{
    uint64_t mask = self->options.align - 1, most = 0;

    for (mpl_value v = 0; v < self->g->n_values; v++)
        most = mpl_max_u64(most, -self->g->value_bytes[v] & mask);
    for (mpl_op op = 0; op < self->g->n_ops && self->options.op_workspace_bytes != NULL; op++)
        most = mpl_max_u64(most, -self->options.op_workspace_bytes[op] & mask);
    return most;
}

/* Tries to prove the best plan the least, where only the last slot's unused bytes are in question.
 */
static mpl_status prove_rest(searcher *self, const mpl_op *order, uint64_t slots)
{
    mpl_order_run run = *self->run;
    bool proved;

    if (self->best == NULL || best_arena(self) > slots || is_over(self))
        return MPL_OK;
    run.options = &self->options;
    run.budget_ticks = self->budget / 32 + 1;
    run.copy_splits = self->copy_splits;
    MPL_PASS(mpl_order_arena_holds(&run, self->g, order, best_arena(self), &proved));
    self->ticks += run.ticks;
    if (proved)
        raise_bound(self, best_arena(self), "cut");
    return MPL_OK;
}

/* Searches for the least peak of the relaxed model, where values take whole multiples of `align`.
 * order[n_ops]: of that peak, or the best found. *slots: its bound, in multiples of `align`. */
static mpl_status least_peak(searcher *self, uint32_t align, uint64_t budget, mpl_op *order,
                             uint64_t *slots)
{
    mpl_order_run peak = *self->run;
    mpl_problem_options o = self->options;
    uint64_t rest = align > 1 ? self->rest : 0;

    o.align = align;
    peak.options = &o;
    peak.budget_ticks = budget;
    peak.n_params = 0;
    peak.copy_splits = self->copy_splits;
    MPL_PASS(mpl_order_make(&peak, mpl_order_find("least_peak"), self->g, order));
    self->ticks += peak.ticks;
    self->late = self->late || peak.stopped_by_clock;
    self->scope = peak.scope;
    raise_bound(self, peak.bound_bytes > rest ? peak.bound_bytes - rest : 0, peak.method);
    *slots = peak.bound_bytes;
    return MPL_OK;
}

/* ---- all of it ---- */

/* The plans that fix one freedom or another: none of them is to be below the result. */
static mpl_status place_plain(searcher *self)
{
    mpl_status st = MPL_OK;
    static const char *const orders[] = {"given", "greedy", "dfs"};
    mpl_op *order = NULL;

    MPL_TRY(mpl_new(self->ctx, order, self->g->n_ops));
    for (size_t i = 0; i < sizeof orders / sizeof *orders && !is_over(self); i++) {
        MPL_TRY(mpl_order_of(self->ctx, self->g, mpl_order_find(orders[i]), order));
        MPL_TRY(place_order(self, order, self->options.concat, &mpl_planner_portfolio));
        if (self->options.concat == MPL_CONCAT_AUTO && self->n_concats > 0)
            MPL_TRY(place_order(self, order, MPL_CONCAT_COPY, &mpl_planner_portfolio));
        if (self->options.parallel && self->options.op_stream == NULL && self->g->n_blocks == 1)
            break;
    }
out:
    mpl_free(self->ctx, order);
    return st;
}

/* Where the time was over before the first plan. */
static mpl_status place_given(searcher *self)
{
    MPL_PASS(mpl_order_of(self->ctx, self->g, mpl_order_find("given"), self->order));
    return place_order(self, self->order,
                       self->options.concat == MPL_CONCAT_SHARE ? MPL_CONCAT_SHARE
                                                                : MPL_CONCAT_COPY,
                       &mpl_planner_greedy_size);
}

static mpl_status search_serial(searcher *self, uint64_t rounds)
{
    mpl_status st = MPL_OK;
    mpl_op *order = NULL;

    uint64_t slots, bytes;

    MPL_TRY(mpl_new(self->ctx, order, self->g->n_ops));
    MPL_TRY(least_peak(self, self->options.align, self->budget / 2 + 1, order, &slots));
    MPL_TRY(place_order(self, order, self->options.concat, &mpl_planner_portfolio));
    if (self->g->n_blocks == 1)
        MPL_TRY(prove_rest(self, order, slots));
    if (!is_over(self) && self->rest > 0)
        MPL_TRY(least_peak(self, 1, self->budget / 4 + 1, order, &bytes));
    if (!is_over(self))
        MPL_TRY(place_plain(self));
    if (is_over(self))
        goto out;
    if (self->g->n_ops > MPL_ORDER_LIST_MOST || self->g->n_blocks > 1)
        self->is_open = true;
    else
        MPL_TRY(list_all(self));
    if (self->is_open)
        MPL_TRY(alternate(self, rounds));
out:
    mpl_free(self->ctx, order);
    return st;
}

/* Under streams, each operation stays on its stream, and the order within them is free. Nothing is
 * below the least arena of the serial problem: what holds for streams holds for their order. */
static mpl_status search_parallel(searcher *self, uint64_t rounds)
{
    mpl_status st = MPL_OK;
    mpl_op *order = NULL;
    uint64_t slots, bytes;
    bool differ;

    MPL_TRY(place_plain(self));
    if (self->options.op_stream == NULL && self->n_splits + self->n_concats == 0 &&
        (self->options.pin_inputs || !self->options.in_place) && self->g->n_blocks == 1)
        raise_bound(self, self->best->plan->bound_bytes, "antichain");
    if (is_over(self))
        goto out;
    MPL_TRY(mpl_new(self->ctx, order, self->g->n_ops));
    self->options.parallel = false; /* a plan for all executions is one for each order */
    MPL_TRY(least_peak(self, self->options.align, self->budget / 2 + 1, order, &slots));
    if (self->g->n_blocks > 1 && self->rest > 0)
        MPL_TRY(least_peak(self, 1, self->budget / 4 + 1, order, &bytes));
    self->options.parallel = true;
    differ = self->options.op_stream != NULL || self->g->n_blocks > 1; /* orders, for all that */
    if (!differ && !is_over(self))
        MPL_TRY(list_all(self));
    if (differ && !is_over(self))
        MPL_TRY(place_order(self, order, self->options.concat, &mpl_planner_portfolio));
    if (differ && !is_over(self))
        MPL_TRY(alternate(self, rounds));
out:
    mpl_free(self->ctx, order);
    return st;
}

/* A parameter of the run, or `otherwise`. MPL_EINPUT. */
static mpl_status read_param(const mpl_order_run *run, const char *key, uint64_t otherwise,
                             uint64_t *out)
{
    *out = otherwise;
    for (uint32_t i = 0; i < run->n_params; i++) {
        const char *text = run->param_value[i];
        char *end = NULL;

        if (strcmp(run->param_key[i], key) != 0)
            continue;
        errno = 0;
        *out = strtoull(text, &end, 10);
        if (text[0] < '0' || text[0] > '9' || *end != '\0' || errno != 0)
            return MPL_REFUSE(run->ctx, "order joint: %s=%.50s is no whole number", key, text);
    }
    return MPL_OK;
}

mpl_status mpl_least_search(mpl_order_run *run, const mpl_graph *g, bool copy_splits,
                            mpl_least_progress *progress, void *arg, mpl_least **out)
{
    mpl_status st = MPL_OK;
    searcher s = {.run = run, .ctx = run->ctx, .g = g, .progress = progress, .arg = arg};
    uint64_t rounds;

    s.options = run->options != NULL ? *run->options : mpl_problem_options_default();
    s.options.concat_shared = s.options.split_copied = NULL;
    s.options.capacity = MPL_NO_CAPACITY;
    s.copy_splits = copy_splits;
    s.scope = "all orders";
    MPL_TRY(read_param(run, "ticks",
                       run->budget_ticks < UINT64_MAX ? run->budget_ticks : DEFAULT_TICKS,
                       &s.budget));
    MPL_TRY(read_param(run, "rounds", 100, &rounds));
    s.watch.stop = run->stop;
    s.rest = most_rest(&s);
    MPL_TRY(mpl_new_each(s.ctx, g->n_ops, s.order, s.shared, s.copied));
    MPL_TRY(find_choices(&s));
    MPL_TRY(s.options.parallel ? search_parallel(&s, rounds) : search_serial(&s, rounds));
    if (s.best == NULL)
        MPL_TRY(place_given(&s));
    if (s.best == NULL)
        MPL_FAIL(s.ctx, MPL_ELIMIT, "no plan of '%.100s' was found within the limits", g->name);
    s.best->bound_bytes = s.bound;
    s.best->method = s.method;
    s.best->scope = s.scope;
    s.best->stopped_by_clock = s.late;
    s.best->stopped_by_caller = s.stopped;
    s.best->ticks = s.ticks;
    *out = s.best, s.best = NULL;
out:
    mpl_free_each(s.ctx, s.split, s.concat, s.order, s.shared, s.copied);
    mpl_least_free(s.ctx, s.best);
    return st;
}

mpl_status mpl_least_new(mpl_order_run *run, const mpl_graph *g, mpl_least_progress *progress,
                         void *arg, mpl_least **out)
{
    return mpl_least_search(run, g, true, progress, arg, out);
}
