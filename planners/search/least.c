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

static uint64_t best_arena(const searcher *s)
{
    return s->best != NULL ? s->best->plan->peak_bytes : UINT64_MAX;
}

/* Whether to end: the bound is met, the budget or the time is spent, or the caller says so. */
static bool is_over(searcher *s)
{
    if (best_arena(s) <= s->bound)
        return true;
    if (!s->stopped && s->progress != NULL && !s->progress(s->arg, best_arena(s), s->bound))
        s->stopped = true;
    if (s->run->stop != NULL && *s->run->stop != 0)
        s->stopped = true;
    if (s->run->deadline_ns != INT64_MAX && mpl_clock_ns() >= s->run->deadline_ns)
        s->late = true;
    return s->stopped || s->late || s->ticks >= s->budget;
}

static void raise_bound(searcher *s, uint64_t bound, const char *method)
{
    if (bound <= s->bound)
        return;
    s->bound = bound;
    s->method = method;
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
static mpl_status keep(searcher *s, const trial *t, mpl_problem **p, mpl_value_map **map,
                       mpl_plan **plan)
{
    mpl_status st = MPL_OK;
    mpl_least *one = NULL;
    uint32_t n = s->g->n_ops;

    MPL_TRY(mpl_new(s->ctx, one, 1));
    MPL_TRY(mpl_new(s->ctx, one->order, n));
    if (n > 0)
        memcpy(one->order, t->order, n * sizeof *one->order);
    MPL_TRY(copy_bytes(s->ctx, &one->shared, t->shared, n));
    MPL_TRY(copy_bytes(s->ctx, &one->copied, t->copied, n));
    one->problem = *p, *p = NULL;
    one->problem->pool_capacity[0] = MPL_NO_CAPACITY;
    one->map = *map, *map = NULL;
    one->plan = *plan, *plan = NULL;
    mpl_least_free(s->ctx, s->best);
    s->best = one, one = NULL;
out:
    mpl_least_free(s->ctx, one);
    return st;
}

/* The first placement, of an order of the least peak, gets half of the budget. */
static void run_init(const searcher *s, mpl_run *run)
{
    uint64_t left = s->budget > s->ticks ? s->budget - s->ticks : 0;

    *run = mpl_run_default(s->ctx);
    run->budget_ticks = mpl_max_u64(left / (s->best == NULL ? 2 : 16) + 1, mpl_min_u64(TURN, left));
    run->seed = s->run->seed;
    run->deadline_ns = s->run->deadline_ns;
    run->watch = &s->watch;
}

/* Places a trial whose peak may be below the best plan; keeps the plan if it is lower. */
static mpl_status place(searcher *s, trial *t)
{
    mpl_status st = MPL_OK;
    mpl_problem_options o = s->options;
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
    MPL_TRY(mpl_problem_from_graph(s->ctx, s->g, t->order, &o, &p, &map));
    MPL_TRY(mpl_lower_bound(s->ctx, p, 0, &bound, NULL));
    s->ticks += p->n;
    if (bound >= best_arena(s))
        goto out;
    run_init(s, &run);
    st = mpl_planner_run(t->planner, &run, p, &plan);
    s->ticks += run.ticks;
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
    if (t->arena < best_arena(s))
        MPL_TRY(keep(s, t, &p, &map, &plan));
out:
    mpl_plan_free(s->ctx, plan);
    mpl_problem_free(s->ctx, p);
    mpl_value_map_free(s->ctx, map);
    return st;
}

/* Places `order` with its concats as `how` says. */
static mpl_status place_order(searcher *s, const mpl_op *order, mpl_concat how,
                              const mpl_planner *planner)
{
    mpl_status st = MPL_OK;
    mpl_problem_options o = s->options;
    mpl_concats *concats = NULL;
    mpl_concat_found found;
    trial t = {order, s->shared, s->copied, MPL_NO_CAPACITY, planner, 0, false};

    o.concat = how;
    memset(s->copied, 0, s->g->n_ops);
    if (how == MPL_CONCAT_AUTO) {
        MPL_TRY(mpl_concat_decide(s->ctx, s->g, order, &o, s->shared, &found));
        s->ticks += found.ticks;
    } else {
        MPL_TRY(mpl_concats_new(s->ctx, s->g, order, &o, &concats));
        memcpy(s->shared, concats->shared, s->g->n_ops);
    }
    MPL_TRY(place(s, &t));
out:
    mpl_concats_free(s->ctx, concats);
    return st;
}

/* ---- choices ---- */

static bool is_split(const searcher *s, mpl_op op)
{
    mpl_op_kind kind = (mpl_op_kind)s->g->op_kind[op];

    return s->copy_splits && s->options.views && s->g->n_blocks == 1 &&
           (kind == MPL_OP_split || kind == MPL_OP_slice);
}

/* The concats that can share while the splits in s->copied copy: concat[n_concats]. With --concat
 * share they are not free: all of them share. */
static mpl_status find_concats(searcher *s)
{
    mpl_status st = MPL_OK;
    mpl_problem_options o = s->options;
    mpl_concats *concats = NULL;

    o.concat = s->options.concat == MPL_CONCAT_COPY ? MPL_CONCAT_COPY : MPL_CONCAT_SHARE;
    o.split_copied = s->copied;
    MPL_TRY(mpl_concats_new(s->ctx, s->g, NULL, &o, &concats));
    s->n_concats = 0;
    for (mpl_op op = 0; op < s->g->n_ops; op++) {
        s->shared[op] = concats->shared[op];
        if (concats->shared[op] && s->options.concat == MPL_CONCAT_AUTO)
            s->concat[s->n_concats++] = op;
    }
out:
    mpl_concats_free(s->ctx, concats);
    return st;
}

static mpl_status find_choices(searcher *s)
{
    MPL_PASS(mpl_new_each(s->ctx, s->g->n_ops, s->concat, s->split));
    for (mpl_op op = 0; op < s->g->n_ops; op++)
        if (is_split(s, op))
            s->split[s->n_splits++] = op;
    return find_concats(s);
}

static void choose(uint8_t *flag, const mpl_op *op, uint32_t n, uint32_t set)
{
    for (uint32_t i = 0; i < n; i++)
        flag[op[i]] = set >> i & 1;
}

typedef mpl_status visit(searcher *s);

/* Visits every choice: s->shared and s->copied. Choices that are too many stay open. */
static mpl_status visit_choices(searcher *s, visit *each)
{
    s->is_open = s->is_open || s->n_splits > MOST_CHOICES;
    for (uint32_t copied = 0; !s->is_open && copied >> s->n_splits == 0; copied++) {
        choose(s->copied, s->split, s->n_splits, copied);
        MPL_PASS(find_concats(s));
        s->is_open = s->is_open || s->n_concats > MOST_CHOICES;
        for (uint32_t shared = 0; !s->is_open && shared >> s->n_concats == 0; shared++) {
            choose(s->shared, s->concat, s->n_concats, shared);
            MPL_PASS(each(s));
            if (is_over(s))
                s->is_open = true;
        }
    }
    return MPL_OK;
}

/* Places every order under the choice in s->shared and s->copied that may need less. */
static mpl_status list_orders(searcher *s)
{
    mpl_status st = MPL_OK;
    mpl_problem_options o = s->options;
    mpl_order_list *list = NULL;
    bool found = true, ended = false;

    o.concat = MPL_CONCAT_AUTO;
    o.concat_shared = s->shared;
    o.split_copied = s->copied;
    MPL_TRY(mpl_order_list_new(s->ctx, s->g, &o, s->best->order, &list));
    while (found && !is_over(s)) {
        trial t = {s->order, s->shared, s->copied, 0, &mpl_planner_exact, 0, false};

        MPL_TRY(mpl_order_list_next(list, best_arena(s) - 1 + s->rest, s->budget, &s->ticks,
                                    s->order, &found, &ended));
        /* A plan within the capacity ends the search, but the order may have a better one. */
        for (t.arena = 0; found && t.arena != UINT64_MAX && !is_over(s);) {
            t.capacity = best_arena(s) - 1;
            MPL_TRY(place(s, &t));
            s->is_open = s->is_open || (!t.decided && t.arena == UINT64_MAX);
        }
    }
    s->is_open = s->is_open || !ended;
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
static mpl_status place_choice(searcher *s)
{
    trial t = {s->order, s->shared, s->copied, MPL_NO_CAPACITY, &mpl_planner_exact, 0, false};
    bool all = s->options.in_place && !(s->options.pin_inputs && s->options.pin_weights);

    for (mpl_op op = 0; op < s->g->n_ops; op++) {
        if (all ? !is_first(s->g, op) : op > 0)
            continue;
        if (all)
            move_to_front(s->order, op);
        MPL_PASS(place(s, &t));
        s->is_open = s->is_open || !t.decided;
        if (is_over(s))
            break;
    }
    return MPL_OK;
}

/* Tries every choice, with every order where orders matter. */
static mpl_status list_all(searcher *s)
{
    memcpy(s->order, s->best->order, s->g->n_ops * sizeof *s->order);
    MPL_PASS(visit_choices(s, s->options.parallel ? place_choice : list_orders));
    if (!s->is_open)
        raise_bound(s, best_arena(s), "orders");
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
static mpl_status alternate(searcher *s, uint64_t rounds)
{
    mpl_status st = MPL_OK;
    uint32_t *place_of = NULL;
    mpl_rng rng = mpl_rng_of(s->run->seed);

    MPL_TRY(mpl_new(s->ctx, place_of, s->g->n_ops));
    for (uint64_t i = 0; i < rounds && !is_over(s); i++) {
        trial t = {s->order, s->shared, s->copied, MPL_NO_CAPACITY, &mpl_planner_portfolio, 0, 0};

        memcpy(s->order, s->best->order, s->g->n_ops * sizeof *s->order);
        memcpy(s->shared, s->best->shared, s->g->n_ops);
        memcpy(s->copied, s->best->copied, s->g->n_ops);
        if (s->n_splits + s->n_concats > 0 && mpl_rng_below(&rng, 2) == 0) {
            uint32_t which = (uint32_t)mpl_rng_below(&rng, s->n_splits + s->n_concats);

            if (which < s->n_splits)
                s->copied[s->split[which]] ^= 1;
            else
                s->shared[s->concat[which - s->n_splits]] ^= 1;
        } else {
            for (uint64_t moves = 1 + mpl_rng_below(&rng, 3); moves > 0; moves--)
                shake(s->g, &rng, s->order, place_of);
        }
        MPL_TRY(place(s, &t));
    }
out:
    mpl_free(s->ctx, place_of);
    return st;
}

/* ---- bounds ---- */

/* Most bytes of its last slot that a buffer may leave unused. */
static uint64_t most_rest(const searcher *s)
{
    uint64_t mask = s->options.align - 1, most = 0;

    for (mpl_value v = 0; v < s->g->n_values; v++)
        most = mpl_max_u64(most, -s->g->value_bytes[v] & mask);
    for (mpl_op op = 0; op < s->g->n_ops && s->options.op_workspace_bytes != NULL; op++)
        most = mpl_max_u64(most, -s->options.op_workspace_bytes[op] & mask);
    return most;
}

/* Tries to prove the best plan the least, where only the last slot's unused bytes are in question.
 */
static mpl_status prove_rest(searcher *s, const mpl_op *order, uint64_t slots)
{
    mpl_order_run run = *s->run;
    bool proved;

    if (s->best == NULL || best_arena(s) > slots || is_over(s))
        return MPL_OK;
    run.options = &s->options;
    run.budget_ticks = s->budget / 32 + 1;
    run.copy_splits = s->copy_splits;
    MPL_PASS(mpl_order_arena_holds(&run, s->g, order, best_arena(s), &proved));
    s->ticks += run.ticks;
    if (proved)
        raise_bound(s, best_arena(s), "cut");
    return MPL_OK;
}

/* Searches for the least peak of the relaxed model, where values take whole multiples of `align`.
 * order[n_ops]: of that peak, or the best found. *slots: its bound, in multiples of `align`. */
static mpl_status least_peak(searcher *s, uint32_t align, uint64_t budget, mpl_op *order,
                             uint64_t *slots)
{
    mpl_order_run peak = *s->run;
    mpl_problem_options o = s->options;
    uint64_t rest = align > 1 ? s->rest : 0;

    o.align = align;
    peak.options = &o;
    peak.budget_ticks = budget;
    peak.n_params = 0;
    peak.copy_splits = s->copy_splits;
    MPL_PASS(mpl_order_make(&peak, mpl_order_find("least_peak"), s->g, order));
    s->ticks += peak.ticks;
    s->late = s->late || peak.stopped_by_clock;
    s->scope = peak.scope;
    raise_bound(s, peak.bound_bytes > rest ? peak.bound_bytes - rest : 0, peak.method);
    *slots = peak.bound_bytes;
    return MPL_OK;
}

/* ---- all of it ---- */

/* The plans that fix one freedom or another: none of them is to be below the result. */
static mpl_status place_plain(searcher *s)
{
    mpl_status st = MPL_OK;
    static const char *const orders[] = {"given", "greedy", "dfs"};
    mpl_op *order = NULL;

    MPL_TRY(mpl_new(s->ctx, order, s->g->n_ops));
    for (size_t i = 0; i < sizeof orders / sizeof *orders && !is_over(s); i++) {
        MPL_TRY(mpl_order_of(s->ctx, s->g, mpl_order_find(orders[i]), order));
        MPL_TRY(place_order(s, order, s->options.concat, &mpl_planner_portfolio));
        if (s->options.concat == MPL_CONCAT_AUTO && s->n_concats > 0)
            MPL_TRY(place_order(s, order, MPL_CONCAT_COPY, &mpl_planner_portfolio));
        if (s->options.parallel && s->options.op_stream == NULL && s->g->n_blocks == 1)
            break;
    }
out:
    mpl_free(s->ctx, order);
    return st;
}

/* Where the time was over before the first plan. */
static mpl_status place_given(searcher *s)
{
    MPL_PASS(mpl_order_of(s->ctx, s->g, mpl_order_find("given"), s->order));
    return place_order(s, s->order,
                       s->options.concat == MPL_CONCAT_SHARE ? MPL_CONCAT_SHARE : MPL_CONCAT_COPY,
                       &mpl_planner_greedy_size);
}

static mpl_status search_serial(searcher *s, uint64_t rounds)
{
    mpl_status st = MPL_OK;
    mpl_op *order = NULL;

    uint64_t slots, bytes;

    MPL_TRY(mpl_new(s->ctx, order, s->g->n_ops));
    MPL_TRY(least_peak(s, s->options.align, s->budget / 2 + 1, order, &slots));
    MPL_TRY(place_order(s, order, s->options.concat, &mpl_planner_portfolio));
    if (s->g->n_blocks == 1)
        MPL_TRY(prove_rest(s, order, slots));
    if (!is_over(s) && s->rest > 0)
        MPL_TRY(least_peak(s, 1, s->budget / 4 + 1, order, &bytes));
    if (!is_over(s))
        MPL_TRY(place_plain(s));
    if (is_over(s))
        goto out;
    if (s->g->n_ops > MPL_ORDER_LIST_MOST || s->g->n_blocks > 1)
        s->is_open = true;
    else
        MPL_TRY(list_all(s));
    if (s->is_open)
        MPL_TRY(alternate(s, rounds));
out:
    mpl_free(s->ctx, order);
    return st;
}

/* Under streams, each operation stays on its stream, and the order within them is free. Nothing is
 * below the least arena of the serial problem: what holds for streams holds for their order. */
static mpl_status search_parallel(searcher *s, uint64_t rounds)
{
    mpl_status st = MPL_OK;
    mpl_op *order = NULL;
    uint64_t slots, bytes;
    bool differ;

    MPL_TRY(place_plain(s));
    if (s->options.op_stream == NULL && s->n_splits + s->n_concats == 0 &&
        (s->options.pin_inputs || !s->options.in_place) && s->g->n_blocks == 1)
        raise_bound(s, s->best->plan->bound_bytes, "antichain");
    if (is_over(s))
        goto out;
    MPL_TRY(mpl_new(s->ctx, order, s->g->n_ops));
    s->options.parallel = false; /* a plan for all executions is one for each order */
    MPL_TRY(least_peak(s, s->options.align, s->budget / 2 + 1, order, &slots));
    if (s->g->n_blocks > 1 && s->rest > 0)
        MPL_TRY(least_peak(s, 1, s->budget / 4 + 1, order, &bytes));
    s->options.parallel = true;
    differ = s->options.op_stream != NULL || s->g->n_blocks > 1; /* orders, for all that */
    if (!differ && !is_over(s))
        MPL_TRY(list_all(s));
    if (differ && !is_over(s))
        MPL_TRY(place_order(s, order, s->options.concat, &mpl_planner_portfolio));
    if (differ && !is_over(s))
        MPL_TRY(alternate(s, rounds));
out:
    mpl_free(s->ctx, order);
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
