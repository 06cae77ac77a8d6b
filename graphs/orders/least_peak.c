/* least_peak.c -- orders of the least peak, with a bound. The graph is cut into pieces at
 * operations that have the same step in every order; the piece with the highest peak is improved
 * first. The best order and bound remain when the budget ends. See ORDERS.md. */
#include "graphs/orders/orders.h"
#include "graphs/orders/orders_priv.h"

#include "graphs/core/names.h"
#include "graphs/orders/model/regions.h"
#include "graphs/problem/bounds/bounds.h"
#include "graphs/problem/derive/concats.h"

#include <errno.h>
#include <stdlib.h>

static const uint64_t DEFAULT_TICKS = 2000000000;
static const uint64_t LARGE_TICKS = 800000000; /* of a graph of LARGE_GRAPH operations and more */
enum { LARGE_GRAPH = 5000 };
static const uint64_t MOST_SEARCH_BYTES = UINT64_C(1) << 29; /* of the sets of a search */

static const char *const rule_names[MPL_N_ORDER_RULES] = {
#define RULE(name, about) #name,
#include "graphs/orders/order_rules.def"
#undef RULE
};

typedef struct piece {
    uint32_t from, to; /* operations [from, to) */
    uint64_t peak;     /* of its operations in the current order */
} piece;

typedef struct planner {
    mpl_order_run *run;
    mpl_ctx *ctx;
    const mpl_order_model *m;
    mpl_problem_options options;
    uint64_t width, states, rounds;
    mpl_effort effort;
    uint32_t *order; /* [n] */
    piece *pieces;
    uint32_t n_pieces;
    uint64_t peak, bound;
    const char *method;
} planner;

static bool uses(const planner *x, mpl_order_rule rule)
{
    return mpl_order_uses(&x->effort, rule);
}

mpl_order_run mpl_order_run_default(mpl_ctx *ctx)
{
    return (mpl_order_run){
        .ctx = ctx, .seed = 1, .budget_ticks = UINT64_MAX, .deadline_ns = INT64_MAX};
}

/* A whole parameter in [min, max], or `otherwise` if absent. MPL_EINPUT. */
static mpl_status read_param(const mpl_order_run *run, const char *key, uint64_t min, uint64_t max,
                             uint64_t otherwise, uint64_t *out)
{
    *out = otherwise;
    for (uint32_t i = 0; i < run->n_params; i++) {
        const char *text = run->param_value[i];
        char *end = NULL;
        unsigned long long value;

        if (strcmp(run->param_key[i], key) != 0)
            continue;
        errno = 0;
        value = strtoull(text, &end, 10);
        if (text[0] < '0' || text[0] > '9' || *end != '\0' || errno != 0 || value < min ||
            value > max)
            return MPL_REFUSE(run->ctx,
                              "order parameter %s=%.50s: a whole number from %" PRIu64
                              " to %" PRIu64 " is needed",
                              key, text, min, max);
        *out = value;
    }
    return MPL_OK;
}

static mpl_status read_without(const mpl_order_run *run, uint32_t *without)
{
    for (uint32_t i = 0; i < run->n_params; i++)
        if (strcmp(run->param_key[i], "without") == 0)
            MPL_PASS(mpl_names_to_bits(run->ctx, "order parameter without", run->param_value[i],
                                       MPL_N_ORDER_RULES, rule_names, without));
    return MPL_OK;
}

/* ---- pieces ---- */

/* Ends a piece at each v that all others are before or after: the only one of [0, v] without a
 * successor there, and the only one of [v, n) without a predecessor there. */
static mpl_status find_pieces(planner *x)
{
    mpl_status st = MPL_OK;
    const mpl_order_model *m = x->m;
    int32_t *last = NULL, *first = NULL; /* differences of the counts */
    int64_t n_last = 0, n_first = 0;
    uint32_t from = 0;

    MPL_TRY(mpl_new_each(x->ctx, (size_t)m->n + 1, last, first, x->pieces));
    for (uint32_t v = 0; v < m->n; v++) {
        last[v]++;
        last[m->after.begin[v] < m->after.begin[v + 1] ? m->after.item[m->after.begin[v]] : m->n]--;
        first[m->before.begin[v] < m->before.begin[v + 1]
                  ? m->before.item[m->before.begin[v + 1] - 1] + 1
                  : 0]++;
        first[v + 1]--;
    }
    for (uint32_t v = 0; v < m->n && uses(x, MPL_ORDER_RULE_pieces); v++) {
        n_last += last[v];
        n_first += first[v];
        if (n_last != 1 || n_first != 1)
            continue;
        x->pieces[x->n_pieces++] = (piece){from, v + 1, 0};
        from = v + 1;
    }
    if (from < m->n)
        x->pieces[x->n_pieces++] = (piece){from, m->n, 0};
out:
    mpl_free_each(x->ctx, last, first);
    return st;
}

/* Starts each piece from the plain order in which it peaks least. */
static mpl_status begin_orders(planner *x, const mpl_graph *g)
{
    static mpl_status (*const plain[])(mpl_ctx *, const mpl_graph *, mpl_op *) = {
        mpl_order_given, mpl_order_dfs, mpl_order_greedy};
    mpl_status st = MPL_OK;
    mpl_order_walk walk = {0};
    mpl_op *order = NULL;
    uint32_t *piece_of = NULL, *at = NULL;
    uint64_t *peak = NULL;

    MPL_TRY(mpl_order_walk_init(x->ctx, x->m, &walk));
    MPL_TRY(mpl_new_each(x->ctx, x->m->n, order, piece_of));
    MPL_TRY(mpl_new_each(x->ctx, x->n_pieces, peak, at));
    for (uint32_t i = 0; i < x->n_pieces; i++) {
        x->pieces[i].peak = UINT64_MAX;
        for (uint32_t v = x->pieces[i].from; v < x->pieces[i].to; v++)
            piece_of[v] = i;
    }
    for (size_t k = 0; k < (uses(x, MPL_ORDER_RULE_plain) ? sizeof plain / sizeof *plain : 1);
         k++) {
        MPL_TRY(plain[k](x->ctx, g, order));
        memset(peak, 0, x->n_pieces * sizeof *peak);
        mpl_order_walk_reset(&walk);
        for (uint32_t i = 0; i < x->m->n; i++) {
            uint64_t *p = &peak[piece_of[order[i]]];

            *p = mpl_max_u64(*p, mpl_order_walk_cost(&walk, order[i]));
            mpl_order_walk_run(&walk, order[i]);
        }
        for (uint32_t i = 0; i < x->n_pieces; i++)
            at[i] = x->pieces[i].from;
        for (uint32_t i = 0; i < x->m->n; i++)
            if (peak[piece_of[order[i]]] < x->pieces[piece_of[order[i]]].peak)
                x->order[at[piece_of[order[i]]]++] = order[i];
        for (uint32_t i = 0; i < x->n_pieces; i++)
            x->pieces[i].peak = mpl_min_u64(x->pieces[i].peak, peak[i]);
    }
out:
    mpl_order_walk_fini(x->ctx, &walk);
    mpl_free_each(x->ctx, order, piece_of, peak, at);
    return st;
}

/* ---- one piece ---- */

static void raise_bound(planner *x, uint64_t bound, const char *method)
{
    if (bound > x->bound) {
        x->bound = bound;
        x->method = method;
    }
}

static void turn_round(uint32_t *order, uint32_t n)
{
    for (uint32_t i = 0; i < (n + 1) / 2; i++) {
        uint32_t v = order[i];

        order[i] = n - 1 - order[n - 1 - i];
        order[n - 1 - i] = n - 1 - v;
    }
}

enum { FEW_STATES = 10000 }; /* of a first search */

/* Searches forwards and backwards in turns, each time with more states, until one search ends. */
static mpl_status try_search(planner *x, const mpl_order_model *m, uint64_t most_states,
                             uint32_t *order, uint64_t *peak)
{
    mpl_status st = MPL_OK;
    mpl_order_model *reverse = NULL;
    uint64_t bound;
    bool done = false;

    most_states = mpl_min_u64(most_states, MOST_SEARCH_BYTES / (m->n / 8 + 64));
    MPL_TRY(mpl_order_model_reverse(x->ctx, m, &reverse));
    for (uint64_t states = FEW_STATES; !done && !mpl_effort_spent(&x->effort); states *= 8) {
        states = mpl_min_u64(states, most_states);
        MPL_TRY(mpl_order_best_first(x->ctx, m, x->bound, states, &x->effort, order, peak, &bound,
                                     &done));
        raise_bound(x, bound, "search");
        if (done || mpl_effort_spent(&x->effort))
            break;
        if (!uses(x, MPL_ORDER_RULE_backward))
            goto next;
        turn_round(order, m->n);
        st = mpl_order_best_first(x->ctx, reverse, x->bound, states, &x->effort, order, peak,
                                  &bound, &done);
        turn_round(order, m->n);
        MPL_TRY(st);
        raise_bound(x, bound, "search");
    next:
        if (states >= most_states)
            break;
    }
out:
    mpl_order_model_free(x->ctx, reverse);
    return st;
}

enum { LARGE = 1000 }; /* operations from which on each engine gets a share of the budget */

/* Leaves an engine `percent` of the remaining budget, if the model is large; returns the budget. */
static uint64_t lend(planner *x, const mpl_order_model *m, uint64_t percent)
{
    uint64_t all = x->effort.budget, left = all - mpl_min_u64(all, x->effort.ticks);

    if (m->n >= LARGE)
        x->effort.budget = x->effort.ticks + left / 100 * percent;
    return all;
}

/* Cuts: a bound, then orders mended by them. */
static mpl_status try_cuts(planner *x, const mpl_order_model *m, uint32_t *order, uint64_t *peak)
{
    mpl_status st = MPL_OK;
    uint64_t bound, budget = lend(x, m, 35);

    if (uses(x, MPL_ORDER_RULE_cut)) {
        MPL_TRY(mpl_order_cut_bound(x->ctx, m, order, x->bound, &x->effort, &bound));
        raise_bound(x, bound, "cut");
    }
    x->effort.budget = budget;
    lend(x, m, 5);
    for (int largest = 0; largest < 2 && uses(x, MPL_ORDER_RULE_mend); largest++)
        MPL_TRY(mpl_order_mend(x->ctx, m, x->bound, largest, &x->effort, order, peak));
    x->effort.budget = budget;
    lend(x, m, 10);
    if (uses(x, MPL_ORDER_RULE_group)) {
        MPL_TRY(mpl_order_group_bound(x->ctx, m, x->bound, &x->effort, order, peak, &bound));
        raise_bound(x, bound, "cut");
    }
out:
    x->effort.budget = budget;
    return st;
}

/* Some large graphs are narrow: a search through few sets proves more than cuts, in less time. */
static mpl_status try_brief_search(planner *x, const mpl_order_model *m, uint32_t *order,
                                   uint64_t *peak)
{
    mpl_status st = MPL_OK;
    uint64_t budget = lend(x, m, 60);

    MPL_TRY(try_search(x, m, mpl_min_u64(x->states, FEW_STATES), order, peak));
out:
    x->effort.budget = budget;
    return st;
}

/* A beam; of a large model first a narrow one, which gets to the end in any case. */
static mpl_status try_beam(planner *x, const mpl_order_model *m, uint32_t *order, uint64_t *peak)
{
    mpl_status st = MPL_OK;
    uint64_t room = 4000000 / (m->n + 1) + 1, most = mpl_min_u64(x->width, room),
             budget = lend(x, m, 50);

    for (uint64_t width = m->n < LARGE ? most : mpl_min_u64(4, most);; width *= 4) {
        width = mpl_min_u64(width, most);
        MPL_TRY(mpl_order_beam(x->ctx, m, x->bound, (uint32_t)width, &x->effort, order, peak));
        if (width == most || *peak <= x->bound || mpl_effort_spent(&x->effort))
            break;
    }
out:
    x->effort.budget = budget;
    return st;
}

/* Runs all engines on a model; improves order[m->n] and *peak. */
static mpl_status improve(planner *x, const mpl_order_model *m, uint32_t *order, uint64_t *peak)
{
    MPL_PASS(mpl_order_beam(x->ctx, m, x->bound, 1, &x->effort, order, peak));
    if (*peak > x->bound && m->n >= LARGE && uses(x, MPL_ORDER_RULE_search))
        MPL_PASS(try_brief_search(x, m, order, peak));
    if (*peak > x->bound)
        MPL_PASS(try_cuts(x, m, order, peak));
    if (*peak > x->bound && uses(x, MPL_ORDER_RULE_beam))
        MPL_PASS(try_beam(x, m, order, peak));
    if (*peak > x->bound && uses(x, MPL_ORDER_RULE_anneal))
        MPL_PASS(mpl_order_anneal(x->ctx, m, x->bound, x->run->seed, x->rounds, &x->effort, order,
                                  peak));
    if (*peak > x->bound && uses(x, MPL_ORDER_RULE_search))
        MPL_PASS(try_search(x, m, x->states, order, peak));
    return MPL_OK;
}

/* Writes the order of a reduced model to order[m->n], if it is better, with its *peak under m. */
static mpl_status unfold(planner *x, const mpl_order_model *m, const mpl_order_reduced *r,
                         const uint32_t *runs, uint32_t *order, uint64_t *peak)
{
    mpl_status st = MPL_OK;
    mpl_order_walk walk = {0};
    uint32_t *now = NULL, n = 0;
    uint64_t found;

    MPL_TRY(mpl_order_walk_init(x->ctx, m, &walk));
    MPL_TRY(mpl_new(x->ctx, now, m->n));
    for (uint32_t i = 0; i < r->model->n; i++)
        for (uint32_t k = r->begin[runs[i]]; k < r->begin[runs[i] + 1]; k++)
            now[n++] = r->item[k];
    found = mpl_order_model_peak(&walk, now);
    if (found < *peak) {
        *peak = found;
        memcpy(order, now, m->n * sizeof *order);
    }
out:
    mpl_order_walk_fini(x->ctx, &walk);
    mpl_free(x->ctx, now);
    return st;
}

typedef struct placed {
    uint32_t place, run;
} placed;

static int by_place(const void *a, const void *b)
{
    const placed *x = a, *y = b;

    if (x->place != y->place)
        return x->place > y->place ? 1 : -1;
    return (x->run > y->run) - (x->run < y->run);
}

/* The runs of a reduced model about as `order` has them: by the last place of what a run and those
 * before it contain. */
static mpl_status runs_of(planner *x, const mpl_order_reduced *r, const uint32_t *order, uint32_t n,
                          uint32_t *runs)
{
    mpl_status st = MPL_OK;
    const mpl_lists *before = &r->model->before;
    uint32_t *place = NULL;
    placed *at = NULL;

    MPL_TRY(mpl_new(x->ctx, place, n));
    MPL_TRY(mpl_new(x->ctx, at, r->model->n));
    for (uint32_t i = 0; i < n; i++)
        place[order[i]] = i;
    for (uint32_t i = 0; i < r->model->n; i++) { /* ids are a valid order */
        at[i].run = i;
        for (uint32_t k = r->begin[i]; k < r->begin[i + 1]; k++)
            at[i].place = at[i].place > place[r->item[k]] ? at[i].place : place[r->item[k]];
        for (uint32_t k = before->begin[i]; k < before->begin[i + 1]; k++)
            if (at[i].place < at[before->item[k]].place)
                at[i].place = at[before->item[k]].place;
    }
    qsort(at, r->model->n, sizeof *at, by_place);
    for (uint32_t i = 0; i < r->model->n; i++)
        runs[i] = at[i].run;
out:
    mpl_free_each(x->ctx, place, at);
    return st;
}

/* Improves order[m->n] and *peak by orders of the model with its regions ordered. */
static mpl_status improve_reduced(planner *x, const mpl_order_model *m, uint32_t *order,
                                  uint64_t *peak)
{
    mpl_status st = MPL_OK;
    mpl_order_reduced r = {0};
    mpl_order_walk walk = {0};
    uint32_t *runs = NULL;
    uint64_t found;

    MPL_TRY(mpl_order_reduce(x->ctx, m, &x->effort.ticks, &r));
    MPL_TRY(mpl_new(x->ctx, runs, r.model->n));
    MPL_TRY(runs_of(x, &r, order, m->n, runs));
    MPL_TRY(mpl_order_walk_init(x->ctx, r.model, &walk));
    found = mpl_order_model_peak(&walk, runs);
    MPL_TRY(improve(x, r.model, runs, &found));
    MPL_TRY(unfold(x, m, &r, runs, order, peak));
out:
    mpl_order_reduced_fini(x->ctx, &r);
    mpl_order_walk_fini(x->ctx, &walk);
    mpl_free(x->ctx, runs);
    return st;
}

static mpl_status improve_piece(planner *x, piece *p)
{
    mpl_status st = MPL_OK;
    uint32_t n = p->to - p->from;
    mpl_order_model *part = NULL;
    uint32_t *order = NULL, *ids = NULL;

    MPL_TRY(mpl_new(x->ctx, order, n));
    MPL_TRY(mpl_new(x->ctx, ids, x->m->n));
    for (uint32_t v = 0; v < x->m->n; v++)
        ids[v] = v;
    MPL_TRY(mpl_order_model_part(x->ctx, x->m, ids, p->from, p->to, &part));
    for (uint32_t i = 0; i < n; i++)
        order[i] = x->order[p->from + i] - p->from;
    if (uses(x, MPL_ORDER_RULE_regions)) {
        MPL_TRY(mpl_order_beam(x->ctx, part, x->bound, 1, &x->effort, order, &p->peak));
        MPL_TRY(improve_reduced(x, part, order, &p->peak));
    } else {
        MPL_TRY(improve(x, part, order, &p->peak));
    }
    for (uint32_t i = 0; i < n; i++)
        x->order[p->from + i] = order[i] + p->from;
out:
    mpl_order_model_free(x->ctx, part);
    mpl_free_each(x->ctx, order, ids);
    return st;
}

static int by_peak(const void *a, const void *b)
{
    const piece *x = a, *y = b;

    if (x->peak != y->peak)
        return x->peak < y->peak ? 1 : -1;
    return (x->from > y->from) - (x->from < y->from);
}

/* The cost of a piece with one operation is fixed: it gives a bound and needs no search. */
static mpl_status improve_all(planner *x)
{
    qsort(x->pieces, x->n_pieces, sizeof *x->pieces, by_peak);
    for (uint32_t i = 0; i < x->n_pieces; i++)
        if (x->pieces[i].to - x->pieces[i].from == 1)
            raise_bound(x, x->pieces[i].peak, "cut");
    for (uint32_t i = 0; i < x->n_pieces && x->pieces[i].peak > x->bound; i++)
        MPL_PASS(improve_piece(x, &x->pieces[i]));
    return MPL_OK;
}

/* Searches for an order of m, which is made of g, with the least peak. */
static mpl_status search_model(planner *x, const mpl_order_model *m, const mpl_graph *g)
{
    mpl_status st = MPL_OK;

    x->m = m;
    MPL_TRY(find_pieces(x));
    MPL_TRY(begin_orders(x, g));
    MPL_TRY(improve_all(x));
    x->peak = 0;
    for (uint32_t i = 0; i < x->n_pieces; i++)
        x->peak = mpl_max_u64(x->peak, x->pieces[i].peak);
out:
    mpl_free(x->ctx, x->pieces);
    x->pieces = NULL;
    x->n_pieces = 0;
    return st;
}

/* ---- concats that may share ---- */

mpl_status mpl_order_live(mpl_ctx *ctx, const mpl_graph *g, const mpl_problem_options *options,
                          const mpl_op *order, uint8_t *shared, uint64_t *live)
{
    mpl_status st = MPL_OK;
    mpl_problem_options o = *options;
    mpl_concats *concats = NULL;
    mpl_problem *p = NULL;
    mpl_value_map *map = NULL;

    o.parallel = false;
    o.capacity = MPL_NO_CAPACITY;
    MPL_TRY(mpl_concats_new(ctx, g, order, &o, &concats));
    MPL_TRY(mpl_problem_build(ctx, g, order, &o, concats->shared, &p, &map));
    MPL_TRY(mpl_peak_live(ctx, p, 0, live, NULL, NULL));
    *live = mpl_align_up(*live, o.align);
    memcpy(shared, concats->shared, g->n_ops);
out:
    mpl_concats_free(ctx, concats);
    mpl_problem_free(ctx, p);
    mpl_value_map_free(ctx, map);
    return st;
}

/* Searches again under one decision on concats; keeps the order if its peak is lower. */
static mpl_status try_decided(planner *x, const mpl_graph *g, const mpl_problem_options *o,
                              uint8_t *shared)
{
    mpl_status st = MPL_OK;
    planner y = *x;
    mpl_order_model *m = NULL;
    uint64_t live;

    y.order = NULL;
    MPL_TRY(mpl_new(x->ctx, y.order, g->n_ops));
    MPL_TRY(mpl_order_model_new(x->ctx, g, o, &m));
    MPL_TRY(search_model(&y, m, g));
    x->effort.ticks = y.effort.ticks;
    x->effort.late = y.effort.late;
    if (y.peak >= x->peak)
        goto out;
    MPL_TRY(mpl_order_live(x->ctx, g, &x->options, y.order, shared, &live));
    if (live >= x->peak)
        goto out;
    x->peak = live;
    memcpy(x->order, y.order, g->n_ops * sizeof *y.order);
out:
    mpl_order_model_free(x->ctx, m);
    mpl_free(x->ctx, y.order);
    return st;
}

/* The peak of a relaxed model may be out of reach. If it is, orders of the least peak under the
 * decision on concats that goes with the order, and with all concats copied, may be lower. */
static mpl_status decide_concats(planner *x, const mpl_graph *g)
{
    mpl_status st = MPL_OK;
    mpl_problem_options o = x->options;
    uint8_t *shared = NULL;

    MPL_TRY(mpl_new(x->ctx, shared, g->n_ops));
    MPL_TRY(mpl_order_live(x->ctx, g, &x->options, x->order, shared, &x->peak));
    o.concat_shared = shared;
    if (x->peak > x->bound)
        MPL_TRY(try_decided(x, g, &o, shared));
    o.concat = MPL_CONCAT_COPY;
    if (x->peak > x->bound)
        MPL_TRY(try_decided(x, g, &o, shared));
out:
    mpl_free(x->ctx, shared);
    return st;
}

static const char *scope_of(const planner *x, const mpl_graph *g)
{
    if (x->m->relaxed)
        return x->run->copy_splits ? "all orders, shared concats and splits"
                                   : "all orders and shared concats";
    for (mpl_op op = 0; op < g->n_ops; op++)
        if (g->op_kind[op] == MPL_OP_concat)
            return x->options.concat == MPL_CONCAT_SHARE ? "all orders with concats shared"
                                                         : "all orders with concats copied";
    return "all orders";
}

/* left_out: bits of rules to leave out, besides those that the caller names. */
static mpl_status begin_search(mpl_order_run *run, uint32_t left_out, uint32_t n_ops, mpl_op *order,
                               planner *x)
{
    *x = (planner){.run = run, .ctx = run->ctx, .order = order};
    x->options = run->options != NULL ? *run->options : mpl_problem_options_default();
    MPL_PASS(read_without(run, &x->effort.without));
    x->effort.without |= left_out;
    MPL_PASS(read_param(run, "ticks", 1, UINT64_MAX,
                        run->budget_ticks < UINT64_MAX ? run->budget_ticks
                        : n_ops < LARGE_GRAPH          ? DEFAULT_TICKS
                                                       : LARGE_TICKS,
                        &x->effort.budget));
    MPL_PASS(read_param(run, "width", 1, 100000, 64, &x->width));
    MPL_PASS(read_param(run, "states", 1, 100000000, 2000000, &x->states));
    MPL_PASS(read_param(run, "rounds", 1, UINT64_MAX, 200000, &x->rounds));
    x->effort.deadline_ns = run->deadline_ns;
    x->effort.stop = run->stop;
    return MPL_OK;
}

static void end_search(const planner *x)
{
    x->run->live_bytes = x->peak;
    x->run->bound_bytes = x->bound;
    x->run->method = x->method;
    x->run->ticks = x->effort.ticks;
    x->run->stopped_by_clock = x->effort.late;
}

mpl_status mpl_order_search_model(mpl_order_run *run, uint32_t left_out, const mpl_order_model *m,
                                  const mpl_graph *g, mpl_op *order)
{
    planner x;

    MPL_PASS(begin_search(run, left_out, m->n, order, &x));
    MPL_PASS(search_model(&x, m, g));
    end_search(&x);
    return MPL_OK;
}

mpl_status mpl_order_search_flat(mpl_order_run *run, const mpl_graph *g, uint32_t left_out,
                                 mpl_op *order)
{
    mpl_status st = MPL_OK;
    mpl_order_model *m = NULL;
    planner x;

    MPL_TRY(begin_search(run, left_out, g->n_ops, order, &x));
    MPL_TRY(run->copy_splits ? mpl_order_model_relaxed(run->ctx, g, run->options, &m)
                             : mpl_order_model_new(run->ctx, g, run->options, &m));
    MPL_TRY(search_model(&x, m, g));
    if (m->relaxed)
        MPL_TRY(decide_concats(&x, g));
    end_search(&x);
    run->scope = scope_of(&x, g);
out:
    mpl_order_model_free(run->ctx, m);
    return st;
}

mpl_status mpl_order_arena_holds(mpl_order_run *run, const mpl_graph *g, const mpl_op *order,
                                 uint64_t goal, bool *proved)
{
    mpl_status st = MPL_OK;
    mpl_order_model *m = NULL;
    mpl_effort effort = {
        .budget = run->budget_ticks, .deadline_ns = run->deadline_ns, .stop = run->stop};

    MPL_TRY(run->copy_splits ? mpl_order_model_relaxed(run->ctx, g, run->options, &m)
                             : mpl_order_model_new(run->ctx, g, run->options, &m));
    MPL_TRY(mpl_order_arena_bound(run->ctx, m, order, goal, &effort, proved));
    run->ticks = effort.ticks;
    run->stopped_by_clock = effort.late;
out:
    mpl_order_model_free(run->ctx, m);
    return st;
}
