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
    const mpl_order_model *model;
    mpl_problem_options options;
    uint64_t width, states, rounds;
    mpl_effort effort;
    uint32_t *order; /* [n] */
    piece *pieces;
    uint32_t n_pieces;
    uint64_t peak, bound;
    const char *method;
} planner;

static bool uses(const planner *self, mpl_order_rule rule)
{
    return mpl_order_uses(&self->effort, rule);
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
static mpl_status find_pieces(planner *self)
{
    mpl_status st = MPL_OK;
    const mpl_order_model *model = self->model;
    int32_t *last = NULL, *first = NULL; /* differences of the counts */
    int64_t n_last = 0, n_first = 0;
    uint32_t from = 0;

    MPL_TRY(mpl_new_each(self->ctx, (size_t)model->n + 1, last, first, self->pieces));
    for (uint32_t v = 0; v < model->n; v++) {
        last[v]++;
        last[model->after.begin[v] < model->after.begin[v + 1]
                 ? model->after.item[model->after.begin[v]]
                 : model->n]--;
        first[model->before.begin[v] < model->before.begin[v + 1]
                  ? model->before.item[model->before.begin[v + 1] - 1] + 1
                  : 0]++;
        first[v + 1]--;
    }
    for (uint32_t v = 0; v < model->n && uses(self, MPL_ORDER_RULE_pieces); v++) {
        n_last += last[v];
        n_first += first[v];
        if (n_last != 1 || n_first != 1)
            continue;
        self->pieces[self->n_pieces++] = (piece){from, v + 1, 0};
        from = v + 1;
    }
    if (from < model->n)
        self->pieces[self->n_pieces++] = (piece){from, model->n, 0};
out:
    mpl_free_each(self->ctx, last, first);
    return st;
}

/* Starts each piece from the plain order in which it peaks least. */
static mpl_status begin_orders(planner *self, const mpl_graph *g)
{
    static mpl_status (*const plain[])(mpl_ctx *, const mpl_graph *, mpl_op *) = {
        mpl_order_given, mpl_order_dfs, mpl_order_greedy};
    mpl_status st = MPL_OK;
    mpl_order_walk walk = {0};
    mpl_op *order = NULL;
    uint32_t *piece_of = NULL, *at = NULL;
    uint64_t *peak = NULL;

    MPL_TRY(mpl_order_walk_init(self->ctx, self->model, &walk));
    MPL_TRY(mpl_new_each(self->ctx, self->model->n, order, piece_of));
    MPL_TRY(mpl_new_each(self->ctx, self->n_pieces, peak, at));
    for (uint32_t i = 0; i < self->n_pieces; i++) {
        self->pieces[i].peak = UINT64_MAX;
        for (uint32_t v = self->pieces[i].from; v < self->pieces[i].to; v++)
            piece_of[v] = i;
    }
    for (size_t k = 0; k < (uses(self, MPL_ORDER_RULE_plain) ? sizeof plain / sizeof *plain : 1);
         k++) {
        MPL_TRY(plain[k](self->ctx, g, order));
        memset(peak, 0, self->n_pieces * sizeof *peak);
        mpl_order_walk_reset(&walk);
        for (uint32_t i = 0; i < self->model->n; i++) {
            uint64_t *p = &peak[piece_of[order[i]]];

            *p = mpl_max_u64(*p, mpl_order_walk_cost(&walk, order[i]));
            mpl_order_walk_run(&walk, order[i]);
        }
        for (uint32_t i = 0; i < self->n_pieces; i++)
            at[i] = self->pieces[i].from;
        for (uint32_t i = 0; i < self->model->n; i++)
            if (peak[piece_of[order[i]]] < self->pieces[piece_of[order[i]]].peak)
                self->order[at[piece_of[order[i]]]++] = order[i];
        for (uint32_t i = 0; i < self->n_pieces; i++)
            self->pieces[i].peak = mpl_min_u64(self->pieces[i].peak, peak[i]);
    }
out:
    mpl_order_walk_fini(self->ctx, &walk);
    mpl_free_each(self->ctx, order, piece_of, peak, at);
    return st;
}

/* ---- one piece ---- */

static void raise_bound(planner *self, uint64_t bound, const char *method)
{
    if (bound > self->bound) {
        self->bound = bound;
        self->method = method;
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
static mpl_status try_search(planner *self, const mpl_order_model *model, uint64_t most_states,
                             uint32_t *order, uint64_t *peak)
{
    mpl_status st = MPL_OK;
    mpl_order_model *reverse = NULL;
    uint64_t bound;
    bool done = false;

    most_states = mpl_min_u64(most_states, MOST_SEARCH_BYTES / (model->n / 8 + 64));
    MPL_TRY(mpl_order_model_reverse(self->ctx, model, &reverse));
    for (uint64_t states = FEW_STATES; !done && !mpl_effort_spent(&self->effort); states *= 8) {
        states = mpl_min_u64(states, most_states);
        MPL_TRY(mpl_order_best_first(self->ctx, model, self->bound, states, &self->effort, order,
                                     peak, &bound, &done));
        raise_bound(self, bound, "search");
        if (done || mpl_effort_spent(&self->effort))
            break;
        if (!uses(self, MPL_ORDER_RULE_backward))
            goto next;
        turn_round(order, model->n);
        st = mpl_order_best_first(self->ctx, reverse, self->bound, states, &self->effort, order,
                                  peak, &bound, &done);
        turn_round(order, model->n);
        MPL_TRY(st);
        raise_bound(self, bound, "search");
    next:
        if (states >= most_states)
            break;
    }
out:
    mpl_order_model_free(self->ctx, reverse);
    return st;
}

enum { LARGE = 1000 }; /* operations from which on each engine gets a share of the budget */

/* Leaves an engine `percent` of the remaining budget, if the model is large; returns the budget. */
static uint64_t lend(planner *self, const mpl_order_model *model, uint64_t percent)
{
    uint64_t all = self->effort.budget, left = all - mpl_min_u64(all, self->effort.ticks);

    if (model->n >= LARGE)
        self->effort.budget = self->effort.ticks + left / 100 * percent;
    return all;
}

/* Cuts: a bound, then orders mended by them. */
static mpl_status try_cuts(planner *self, const mpl_order_model *model, uint32_t *order,
                           uint64_t *peak)
{
    mpl_status st = MPL_OK;
    uint64_t bound, budget = lend(self, model, 35);

    if (uses(self, MPL_ORDER_RULE_cut)) {
        MPL_TRY(mpl_order_cut_bound(self->ctx, model, order, self->bound, &self->effort, &bound));
        raise_bound(self, bound, "cut");
    }
    self->effort.budget = budget;
    lend(self, model, 5);
    for (int largest = 0; largest < 2 && uses(self, MPL_ORDER_RULE_mend); largest++)
        MPL_TRY(mpl_order_mend(self->ctx, model, self->bound, largest, &self->effort, order, peak));
    self->effort.budget = budget;
    lend(self, model, 10);
    if (uses(self, MPL_ORDER_RULE_group)) {
        MPL_TRY(mpl_order_group_bound(self->ctx, model, self->bound, &self->effort, order, peak,
                                      &bound));
        raise_bound(self, bound, "cut");
    }
out:
    self->effort.budget = budget;
    return st;
}

/* Some large graphs are narrow: a search through few sets proves more than cuts, in less time. */
static mpl_status try_brief_search(planner *self, const mpl_order_model *model, uint32_t *order,
                                   uint64_t *peak)
{
    mpl_status st = MPL_OK;
    uint64_t budget = lend(self, model, 60);

    MPL_TRY(try_search(self, model, mpl_min_u64(self->states, FEW_STATES), order, peak));
out:
    self->effort.budget = budget;
    return st;
}

/* A beam; of a large model first a narrow one, which gets to the end in any case. */
static mpl_status try_beam(planner *self, const mpl_order_model *model, uint32_t *order,
                           uint64_t *peak)
{
    mpl_status st = MPL_OK;
    uint64_t room = 4000000 / (model->n + 1) + 1, most = mpl_min_u64(self->width, room),
             budget = lend(self, model, 50);

    for (uint64_t width = model->n < LARGE ? most : mpl_min_u64(4, most);; width *= 4) {
        width = mpl_min_u64(width, most);
        MPL_TRY(mpl_order_beam(self->ctx, model, self->bound, (uint32_t)width, &self->effort, order,
                               peak));
        if (width == most || *peak <= self->bound || mpl_effort_spent(&self->effort))
            break;
    }
out:
    self->effort.budget = budget;
    return st;
}

/* Runs all engines on a model; improves order[model->n] and *peak. */
static mpl_status improve(planner *self, const mpl_order_model *model, uint32_t *order,
                          uint64_t *peak)
{
    MPL_PASS(mpl_order_beam(self->ctx, model, self->bound, 1, &self->effort, order, peak));
    if (*peak > self->bound && model->n >= LARGE && uses(self, MPL_ORDER_RULE_search))
        MPL_PASS(try_brief_search(self, model, order, peak));
    if (*peak > self->bound)
        MPL_PASS(try_cuts(self, model, order, peak));
    if (*peak > self->bound && uses(self, MPL_ORDER_RULE_beam))
        MPL_PASS(try_beam(self, model, order, peak));
    if (*peak > self->bound && uses(self, MPL_ORDER_RULE_anneal))
        MPL_PASS(mpl_order_anneal(self->ctx, model, self->bound, self->run->seed, self->rounds,
                                  &self->effort, order, peak));
    if (*peak > self->bound && uses(self, MPL_ORDER_RULE_search))
        MPL_PASS(try_search(self, model, self->states, order, peak));
    return MPL_OK;
}

/* Writes the order of a reduced model to order[model->n], if it is better, with its *peak under
 * model. */
static mpl_status unfold(planner *self, const mpl_order_model *model,
                         const mpl_order_reduced *reduced, const uint32_t *runs, uint32_t *order,
                         uint64_t *peak)
{
    mpl_status st = MPL_OK;
    mpl_order_walk walk = {0};
    uint32_t *now = NULL, n = 0;
    uint64_t found;

    MPL_TRY(mpl_order_walk_init(self->ctx, model, &walk));
    MPL_TRY(mpl_new(self->ctx, now, model->n));
    for (uint32_t i = 0; i < reduced->model->n; i++)
        for (uint32_t k = reduced->begin[runs[i]]; k < reduced->begin[runs[i] + 1]; k++)
            now[n++] = reduced->item[k];
    found = mpl_order_model_peak(&walk, now);
    if (found < *peak) {
        *peak = found;
        memcpy(order, now, model->n * sizeof *order);
    }
out:
    mpl_order_walk_fini(self->ctx, &walk);
    mpl_free(self->ctx, now);
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
static mpl_status runs_of(planner *self, const mpl_order_reduced *reduced, const uint32_t *order,
                          uint32_t n, uint32_t *runs)
{
    mpl_status st = MPL_OK;
    const mpl_lists *before = &reduced->model->before;
    uint32_t *place = NULL;
    placed *at = NULL;

    MPL_TRY(mpl_new(self->ctx, place, n));
    MPL_TRY(mpl_new(self->ctx, at, reduced->model->n));
    for (uint32_t i = 0; i < n; i++)
        place[order[i]] = i;
    for (uint32_t i = 0; i < reduced->model->n; i++) { /* ids are a valid order */
        at[i].run = i;
        for (uint32_t k = reduced->begin[i]; k < reduced->begin[i + 1]; k++)
            at[i].place =
                at[i].place > place[reduced->item[k]] ? at[i].place : place[reduced->item[k]];
        for (uint32_t k = before->begin[i]; k < before->begin[i + 1]; k++)
            if (at[i].place < at[before->item[k]].place)
                at[i].place = at[before->item[k]].place;
    }
    qsort(at, reduced->model->n, sizeof *at, by_place);
    for (uint32_t i = 0; i < reduced->model->n; i++)
        runs[i] = at[i].run;
out:
    mpl_free_each(self->ctx, place, at);
    return st;
}

/* Improves order[model->n] and *peak by orders of the model with its regions ordered. */
static mpl_status improve_reduced(planner *self, const mpl_order_model *model, uint32_t *order,
                                  uint64_t *peak)
{
    mpl_status st = MPL_OK;
    mpl_order_reduced r = {0};
    mpl_order_walk walk = {0};
    uint32_t *runs = NULL;
    uint64_t found;

    MPL_TRY(mpl_order_reduce(self->ctx, model, &self->effort.ticks, &r));
    MPL_TRY(mpl_new(self->ctx, runs, r.model->n));
    MPL_TRY(runs_of(self, &r, order, model->n, runs));
    MPL_TRY(mpl_order_walk_init(self->ctx, r.model, &walk));
    found = mpl_order_model_peak(&walk, runs);
    MPL_TRY(improve(self, r.model, runs, &found));
    MPL_TRY(unfold(self, model, &r, runs, order, peak));
out:
    mpl_order_reduced_fini(self->ctx, &r);
    mpl_order_walk_fini(self->ctx, &walk);
    mpl_free(self->ctx, runs);
    return st;
}

static mpl_status improve_piece(planner *self, piece *p)
{
    mpl_status st = MPL_OK;
    uint32_t n = p->to - p->from;
    mpl_order_model *part = NULL;
    uint32_t *order = NULL, *ids = NULL;

    MPL_TRY(mpl_new(self->ctx, order, n));
    MPL_TRY(mpl_new(self->ctx, ids, self->model->n));
    for (uint32_t v = 0; v < self->model->n; v++)
        ids[v] = v;
    MPL_TRY(mpl_order_model_part(self->ctx, self->model, ids, p->from, p->to, &part));
    for (uint32_t i = 0; i < n; i++)
        order[i] = self->order[p->from + i] - p->from;
    if (uses(self, MPL_ORDER_RULE_regions)) {
        MPL_TRY(mpl_order_beam(self->ctx, part, self->bound, 1, &self->effort, order, &p->peak));
        MPL_TRY(improve_reduced(self, part, order, &p->peak));
    } else {
        MPL_TRY(improve(self, part, order, &p->peak));
    }
    for (uint32_t i = 0; i < n; i++)
        self->order[p->from + i] = order[i] + p->from;
out:
    mpl_order_model_free(self->ctx, part);
    mpl_free_each(self->ctx, order, ids);
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
static mpl_status improve_all(planner *self)
{
    qsort(self->pieces, self->n_pieces, sizeof *self->pieces, by_peak);
    for (uint32_t i = 0; i < self->n_pieces; i++)
        if (self->pieces[i].to - self->pieces[i].from == 1)
            raise_bound(self, self->pieces[i].peak, "cut");
    for (uint32_t i = 0; i < self->n_pieces && self->pieces[i].peak > self->bound; i++)
        MPL_PASS(improve_piece(self, &self->pieces[i]));
    return MPL_OK;
}

/* Searches for an order of model, which is made of g, with the least peak. */
static mpl_status search_model(planner *self, const mpl_order_model *model, const mpl_graph *g)
{
    mpl_status st = MPL_OK;

    self->model = model;
    MPL_TRY(find_pieces(self));
    MPL_TRY(begin_orders(self, g));
    MPL_TRY(improve_all(self));
    self->peak = 0;
    for (uint32_t i = 0; i < self->n_pieces; i++)
        self->peak = mpl_max_u64(self->peak, self->pieces[i].peak);
out:
    mpl_free(self->ctx, self->pieces);
    self->pieces = NULL;
    self->n_pieces = 0;
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
static mpl_status try_decided(planner *self, const mpl_graph *g, const mpl_problem_options *options,
                              uint8_t *shared)
{
    mpl_status st = MPL_OK;
    planner y = *self;
    mpl_order_model *model = NULL;
    uint64_t live;

    y.order = NULL;
    MPL_TRY(mpl_new(self->ctx, y.order, g->n_ops));
    MPL_TRY(mpl_order_model_new(self->ctx, g, options, &model));
    MPL_TRY(search_model(&y, model, g));
    self->effort.ticks = y.effort.ticks;
    self->effort.late = y.effort.late;
    if (y.peak >= self->peak)
        goto out;
    MPL_TRY(mpl_order_live(self->ctx, g, &self->options, y.order, shared, &live));
    if (live >= self->peak)
        goto out;
    self->peak = live;
    memcpy(self->order, y.order, g->n_ops * sizeof *y.order);
out:
    mpl_order_model_free(self->ctx, model);
    mpl_free(self->ctx, y.order);
    return st;
}

/* The peak of a relaxed model may be out of reach. If it is, orders of the least peak under the
 * decision on concats that goes with the order, and with all concats copied, may be lower. */
static mpl_status decide_concats(planner *self, const mpl_graph *g)
{
    mpl_status st = MPL_OK;
    mpl_problem_options o = self->options;
    uint8_t *shared = NULL;

    MPL_TRY(mpl_new(self->ctx, shared, g->n_ops));
    MPL_TRY(mpl_order_live(self->ctx, g, &self->options, self->order, shared, &self->peak));
    o.concat_shared = shared;
    if (self->peak > self->bound)
        MPL_TRY(try_decided(self, g, &o, shared));
    o.concat = MPL_CONCAT_COPY;
    if (self->peak > self->bound)
        MPL_TRY(try_decided(self, g, &o, shared));
out:
    mpl_free(self->ctx, shared);
    return st;
}

static const char *scope_of(const planner *self, const mpl_graph *g)
{
    if (self->model->relaxed)
        return self->run->copy_splits ? "all orders, shared concats and splits"
                                      : "all orders and shared concats";
    for (mpl_op op = 0; op < g->n_ops; op++)
        if (g->op_kind[op] == MPL_OP_concat)
            return self->options.concat == MPL_CONCAT_SHARE ? "all orders with concats shared"
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

static void end_search(const planner *self)
{
    self->run->live_bytes = self->peak;
    self->run->bound_bytes = self->bound;
    self->run->method = self->method;
    self->run->ticks = self->effort.ticks;
    self->run->stopped_by_clock = self->effort.late;
}

mpl_status mpl_order_search_model(mpl_order_run *run, uint32_t left_out,
                                  const mpl_order_model *model, const mpl_graph *g, mpl_op *order)
{
    planner x;

    MPL_PASS(begin_search(run, left_out, model->n, order, &x));
    MPL_PASS(search_model(&x, model, g));
    end_search(&x);
    return MPL_OK;
}

mpl_status mpl_order_search_flat(mpl_order_run *run, const mpl_graph *g, uint32_t left_out,
                                 mpl_op *order)
{
    mpl_status st = MPL_OK;
    mpl_order_model *model = NULL;
    planner x;

    MPL_TRY(begin_search(run, left_out, g->n_ops, order, &x));
    MPL_TRY(run->copy_splits ? mpl_order_model_relaxed(run->ctx, g, run->options, &model)
                             : mpl_order_model_new(run->ctx, g, run->options, &model));
    MPL_TRY(search_model(&x, model, g));
    if (model->relaxed)
        MPL_TRY(decide_concats(&x, g));
    end_search(&x);
    run->scope = scope_of(&x, g);
out:
    mpl_order_model_free(run->ctx, model);
    return st;
}

mpl_status mpl_order_arena_holds(mpl_order_run *run, const mpl_graph *g, const mpl_op *order,
                                 uint64_t goal, bool *proved)
{
    mpl_status st = MPL_OK;
    mpl_order_model *model = NULL;
    mpl_effort effort = {
        .budget = run->budget_ticks, .deadline_ns = run->deadline_ns, .stop = run->stop};

    MPL_TRY(run->copy_splits ? mpl_order_model_relaxed(run->ctx, g, run->options, &model)
                             : mpl_order_model_new(run->ctx, g, run->options, &model));
    MPL_TRY(mpl_order_arena_bound(run->ctx, model, order, goal, &effort, proved));
    run->ticks = effort.ticks;
    run->stopped_by_clock = effort.late;
out:
    mpl_order_model_free(run->ctx, model);
    return st;
}
