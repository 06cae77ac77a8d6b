/* joint.c -- chooses order and placement together. See joint.h.
 *
 * Idea     The least peak is a bound of every plan of every order. An order of that peak is placed;
 *          if its plan ends at the peak, it is optimal. Else, in graphs of up to 64 operations, all
 *          orders that may lead lower are placed, each within one byte less than the best plan. The
 *          result is exact if each of them is decided. In larger graphs, operations of the best
 *          order are moved and the result is placed, in turns.
 * Source   this project.
 * Cost     Placements times the cost of `exact`, within the budget.
 * Limits   Graphs with control flow get the least peak of each block. If sizes are no multiples of
 *          the alignment, a plan may end within the last slot of its topmost buffer. Then the least
 *          peak minus the largest such rest is a bound, and so is the least peak in bytes, without
 *          slots. If both are below the plan, only listing all orders can close the gap. */
#include "planners/search/joint.h"

#include "graphs/core/rng.h"
#include "graphs/orders/orders.h"

#include <errno.h>
#include <stdlib.h>

/* in total; of one placement, unless more is left */
static const uint64_t DEFAULT_TICKS = 2000000000, TURN = 20000000;

extern const mpl_planner mpl_planner_exact, mpl_planner_portfolio;

typedef struct joint {
    mpl_order_run *run;
    mpl_ctx *ctx;
    const mpl_graph *g;
    mpl_problem_options options;
    uint64_t ticks, budget;
    mpl_op *order;        /* [n_ops] of the best plan */
    uint64_t arena;       /* of the best plan [byte] */
    uint64_t bound, rest; /* of every plan; most unused bytes of a last slot [byte] */
    uint64_t undecided;   /* orders whose placement is undecided */
} joint;

/* Places `order`; *arena UINT64_MAX: not within options.capacity. *decided: the plan is the best of
 * this order, or there is none. */
static mpl_status place(joint *j, const mpl_planner *planner, const mpl_op *order, uint64_t *arena,
                        bool *decided)
{
    mpl_status st = MPL_OK;
    mpl_problem *p = NULL;
    mpl_value_map *map = NULL;
    mpl_plan *plan = NULL;
    uint64_t left = j->budget > j->ticks ? j->budget - j->ticks : 0;
    mpl_run run;

    *arena = UINT64_MAX;
    *decided = false;
    MPL_TRY(mpl_problem_from_graph(j->ctx, j->g, order, &j->options, &p, &map));
    for (mpl_buffer b = 0; b < p->n; b++)
        j->rest = mpl_max_u64(j->rest, p->pool[b] == 0 ? -p->bytes[b] & (p->align[b] - 1) : 0);
    mpl_run_init(&run, j->ctx);
    run.budget_ticks = mpl_max_u64(left / 8 + 1, mpl_min_u64(TURN, left));
    run.seed = j->run->seed;
    st = mpl_planner_run(planner, &run, p, &plan);
    j->ticks += run.ticks + p->n;
    if (st == MPL_ELIMIT) { /* nothing found, nothing refuted */
        st = MPL_OK;
        goto out;
    }
    MPL_TRY(st);
    *decided = plan->claim == MPL_OPTIMAL || plan->claim == MPL_INFEASIBLE;
    if (plan->claim != MPL_INFEASIBLE)
        *arena = plan->peak_bytes;
out:
    mpl_plan_free(j->ctx, plan);
    mpl_problem_free(j->ctx, p);
    mpl_value_map_free(j->ctx, map);
    return st;
}

static void take(joint *j, const mpl_op *order, uint64_t arena)
{
    if (arena >= j->arena)
        return;
    j->arena = arena;
    memcpy(j->order, order, j->g->n_ops * sizeof *order);
}

/* Places every order that may need less, within one byte less than the best plan. */
static mpl_status list_all(joint *j)
{
    mpl_status st = MPL_OK;
    mpl_order_list *list = NULL;
    mpl_op *order = NULL;
    bool found = true, ended = false, decided;
    uint64_t arena;

    MPL_TRY(mpl_new(j->ctx, order, j->g->n_ops));
    MPL_TRY(mpl_order_list_new(j->ctx, j->g, &j->options, j->order, &list));
    while (j->arena > j->bound) {
        MPL_TRY(mpl_order_list_next(list, j->arena - 1 + j->rest, j->budget, &j->ticks, order,
                                    &found, &ended));
        if (!found)
            break;
        j->options.capacity = j->arena - 1;
        MPL_TRY(place(j, &mpl_planner_exact, order, &arena, &decided));
        /* A plan within the capacity ends the search, but the order may have a better one. */
        while (arena < j->arena && arena > j->bound) {
            take(j, order, arena);
            j->options.capacity = j->arena - 1;
            MPL_TRY(place(j, &mpl_planner_exact, order, &arena, &decided));
        }
        take(j, order, arena);
        j->undecided += !decided && arena == UINT64_MAX;
    }
    if (ended && j->undecided == 0)
        j->bound = j->arena;
out:
    mpl_order_list_free(list);
    mpl_free(j->ctx, order);
    return st;
}

/* Moves one operation to another position between its predecessors and its successors. */
static void shake(const joint *j, mpl_rng *rng, mpl_op *order, uint32_t *place_of)
{
    const mpl_graph *g = j->g;
    mpl_op op = (mpl_op)mpl_rng_below(rng, g->n_ops);
    uint32_t low = 0, high = g->n_ops - 1, from, to;

    for (uint32_t i = 0; i < g->n_ops; i++)
        place_of[order[i]] = i;
    for (uint32_t i = g->op_in_begin[op]; i < g->op_in_begin[op + 1]; i++) {
        mpl_op maker = g->op_in[i] == MPL_NONE ? MPL_NONE : g->value_op[g->op_in[i]];

        if (maker != MPL_NONE && place_of[maker] + 1 > low)
            low = place_of[maker] + 1;
    }
    for (uint32_t i = g->op_out_begin[op]; i < g->op_out_begin[op + 1]; i++)
        for (uint32_t k = g->op_out[i] == MPL_NONE ? 0 : g->value_use_begin[g->op_out[i]];
             g->op_out[i] != MPL_NONE && k < g->value_use_begin[g->op_out[i] + 1]; k++)
            if (place_of[g->value_use[k]] - 1 < high)
                high = place_of[g->value_use[k]] - 1;
    from = place_of[op];
    to = low + (uint32_t)mpl_rng_below(rng, high - low + 1);
    if (from < to)
        memmove(order + from, order + from + 1, (to - from) * sizeof *order);
    else
        memmove(order + to + 1, order + to, (from - to) * sizeof *order);
    order[to] = op;
}

/* Moves operations and places the result, in turns; continues from orders that need no more. */
static mpl_status alternate(joint *j, uint64_t rounds)
{
    mpl_status st = MPL_OK;
    mpl_op *now = NULL, *next = NULL;
    uint32_t *place_of = NULL;
    uint64_t arena, now_arena = j->arena;
    bool decided;
    mpl_rng rng;

    mpl_rng_init(&rng, j->run->seed);
    MPL_TRY(mpl_new(j->ctx, now, j->g->n_ops));
    MPL_TRY(mpl_new(j->ctx, next, j->g->n_ops));
    MPL_TRY(mpl_new(j->ctx, place_of, j->g->n_ops));
    memcpy(now, j->order, j->g->n_ops * sizeof *now);
    for (uint64_t i = 0; i < rounds && j->arena > j->bound && j->ticks < j->budget; i++) {
        memcpy(next, now, j->g->n_ops * sizeof *now);
        for (uint64_t moves = 1 + mpl_rng_below(&rng, 3); moves > 0; moves--)
            shake(j, &rng, next, place_of);
        MPL_TRY(place(j, &mpl_planner_portfolio, next, &arena, &decided));
        if (arena > now_arena)
            continue;
        memcpy(now, next, j->g->n_ops * sizeof *now);
        now_arena = arena;
        take(j, now, arena);
    }
out:
    mpl_free(j->ctx, now);
    mpl_free(j->ctx, next);
    mpl_free(j->ctx, place_of);
    return st;
}

/* Reads a parameter. The search for the least peak does not get it: "ticks" limits the sum. */
static mpl_status read_param(const mpl_order_run *run, const char *key, uint64_t otherwise,
                             uint64_t *out)
{
    mpl_status st = MPL_OK;

    *out = otherwise;
    for (uint32_t i = 0; i < run->n_params; i++) {
        const char *text = run->param_value[i];
        char *end = NULL;

        if (strcmp(run->param_key[i], key) != 0)
            continue;
        errno = 0;
        *out = strtoull(text, &end, 10);
        if (text[0] < '0' || text[0] > '9' || *end != '\0' || errno != 0)
            MPL_FAIL(run->ctx, MPL_EINPUT, "order joint: %s=%.50s is no whole number", key, text);
    }
out:
    return st;
}

/* Derives a bound for all orders and placements from the least peak. */
static mpl_status bound_all(joint *j, const mpl_order_run *peak)
{
    mpl_status st = MPL_OK;
    mpl_order_run exact_bytes;
    mpl_problem_options options = j->options;
    mpl_op *order = NULL;

    j->bound = peak->bound_bytes > j->rest ? peak->bound_bytes - j->rest : 0;
    if (j->arena <= j->bound || j->rest == 0)
        goto out;
    options.align = 1;
    mpl_order_run_init(&exact_bytes, j->ctx);
    exact_bytes.options = &options;
    exact_bytes.budget_ticks = j->budget / 4 + 1;
    MPL_TRY(mpl_new(j->ctx, order, j->g->n_ops));
    MPL_TRY(mpl_order_make(&exact_bytes, mpl_order_find("least_peak"), j->g, order));
    j->ticks += exact_bytes.ticks;
    j->bound = mpl_max_u64(j->bound, exact_bytes.bound_bytes);
out:
    mpl_free(j->ctx, order);
    return st;
}

static mpl_status search(mpl_order_run *run, const mpl_graph *g, mpl_op *order)
{
    mpl_status st = MPL_OK;
    joint j = {.run = run, .ctx = run->ctx, .g = g, .order = order, .arena = UINT64_MAX};
    mpl_order_run peak;
    uint64_t rounds, arena, least;
    bool decided;
    mpl_op *first = NULL;

    if (g->n_blocks != 1) /* one block of a graph with control flow is not placed alone */
        return mpl_order_find("least_peak")->search(run, g, order);
    j.options = run->options != NULL ? *run->options : mpl_problem_options_default();
    j.options.concat = MPL_CONCAT_COPY; /* as in the orders' objective */
    j.options.parallel = false;
    j.options.capacity = MPL_NO_CAPACITY;
    MPL_TRY(read_param(run, "ticks",
                       run->budget_ticks < UINT64_MAX ? run->budget_ticks : DEFAULT_TICKS,
                       &j.budget));
    MPL_TRY(read_param(run, "rounds", 100, &rounds));
    MPL_TRY(mpl_new(j.ctx, first, g->n_ops));
    mpl_order_run_init(&peak, j.ctx);
    peak.options = &j.options;
    peak.seed = run->seed;
    peak.budget_ticks = j.budget / 2 + 1;
    MPL_TRY(mpl_order_make(&peak, mpl_order_find("least_peak"), g, first));
    j.ticks = peak.ticks;
    memcpy(order, first, g->n_ops * sizeof *order);
    MPL_TRY(place(&j, &mpl_planner_portfolio, first, &arena, &decided));
    take(&j, first, arena);
    MPL_TRY(bound_all(&j, &peak));
    least = j.bound;
    if (j.arena > j.bound && g->n_ops <= MPL_ORDER_LIST_MOST)
        MPL_TRY(list_all(&j));
    else if (j.arena > j.bound)
        MPL_TRY(alternate(&j, rounds));
    run->live_bytes = j.arena;
    run->bound_bytes = j.bound;
    run->ticks = j.ticks;
    run->stopped_by_clock = peak.stopped_by_clock;
    run->method = j.bound > least ? "orders" : peak.method;
    run->scope = peak.scope;
out:
    mpl_free(j.ctx, first);
    return st;
}

static mpl_status make(mpl_ctx *ctx, const mpl_graph *g, mpl_op *order)
{
    mpl_order_run run;

    mpl_order_run_init(&run, ctx);
    return search(&run, g, order);
}

const mpl_order_kind mpl_order_joint = {
    .name = "joint",
    .about = "the least arena, order and placement together: exact for up to 64 operations, in "
             "turns beyond",
    .make = make,
    .params = "ticks=N,rounds=N",
    .search = search,
};

const mpl_order_kind *mpl_any_order_find(const char *name)
{
    return strcmp(name, mpl_order_joint.name) == 0 ? &mpl_order_joint : mpl_order_find(name);
}
