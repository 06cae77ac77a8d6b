/* model.c -- the memory model of an order: its parts, its reverse, walks. See model.h. */
#include "graphs/orders/model/model_priv.h"

#include <stdlib.h>

/* ---- lists ---- */

typedef mpl_order_pair pair;
typedef mpl_order_pairs pairs;
typedef mpl_order_arcs arcs;

mpl_status mpl_order_add(mpl_ctx *ctx, pairs *list, uint32_t of, uint32_t item)
{
    MPL_PASS(mpl_reserve(ctx, list->at, list->cap, list->n + 1));
    list->at[list->n++] = (pair){of, item};
    return MPL_OK;
}

static int by_both(const void *a, const void *b)
{
    const pair *x = a, *y = b;

    if (x->of != y->of)
        return x->of > y->of ? 1 : -1;
    return (x->item > y->item) - (x->item < y->item);
}

/* Distinct pairs as n lists, each ascending. */
static mpl_status make_lists(mpl_ctx *ctx, uint32_t n, pairs *list, mpl_lists *out)
{
    uint32_t kept = 0;

    MPL_PASS(mpl_new(ctx, out->begin, (size_t)n + 1));
    MPL_PASS(mpl_new(ctx, out->item, list->n));
    if (list->n > 0)
        qsort(list->at, list->n, sizeof *list->at, by_both);
    for (size_t i = 0; i < list->n; i++) {
        if (i > 0 && by_both(&list->at[i - 1], &list->at[i]) == 0)
            continue;
        out->item[kept++] = list->at[i].item;
        out->begin[list->at[i].of + 1] = kept;
    }
    for (uint32_t i = 0; i < n; i++)
        if (out->begin[i + 1] < out->begin[i])
            out->begin[i + 1] = out->begin[i];
    return MPL_OK;
}

static void lists_fini(mpl_ctx *ctx, mpl_lists *lists)
{
    mpl_free_each(ctx, lists->begin, lists->item);
}

/* ---- models ---- */

mpl_status mpl_order_model_alloc(mpl_ctx *ctx, uint32_t n, uint32_t k, mpl_order_model **out)
{
    mpl_status st = MPL_OK;
    mpl_order_model *model = NULL;

    MPL_TRY(mpl_new(ctx, model, 1));
    model->n = n;
    model->n_buffers = k;
    MPL_TRY(mpl_new_each(ctx, n, model->op, model->extra, model->saves, model->extra_rest));
    MPL_TRY(mpl_new_each(ctx, k, model->rest, model->bytes, model->from_start, model->kept));
    *out = model, model = NULL;
out:
    mpl_order_model_free(ctx, model);
    return st;
}

void mpl_order_model_free(mpl_ctx *ctx, mpl_order_model *model)
{
    if (model == NULL)
        return;
    mpl_lists *const lists[] = {&model->before, &model->after, &model->makes, &model->reads,
                                &model->makers, &model->users, &model->ways,  &model->under};
    void *const arrays[] = {model->op,    model->extra, model->rest,       model->extra_rest,
                            model->saves, model->bytes, model->from_start, model->kept};

    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++)
        lists_fini(ctx, lists[i]);
    MPL_FREE_ALL(ctx, arrays);
    mpl_free(ctx, model);
}

void mpl_order_arcs_fini(mpl_ctx *ctx, arcs *a)
{
    mpl_free_each(ctx, a->before.at, a->makers.at, a->users.at, a->ways.at, a->under.at);
}

static mpl_status turn(mpl_ctx *ctx, uint32_t n, const mpl_lists *in, uint32_t n_items,
                       mpl_lists *out)
{
    return mpl_lists_turn(ctx, n_items, n, in->begin, in->item, &out->begin, &out->item);
}

/* Checks that ids are a valid order, and that a buffer has makers or exists from the start. */
static bool model_ok(const mpl_order_model *model)
{
    for (uint32_t v = 0; v < model->n; v++)
        for (uint32_t i = model->before.begin[v]; i < model->before.begin[v + 1]; i++)
            if (model->before.item[i] >= v)
                return false;
    for (uint32_t b = 0; b < model->n_buffers && !model->backward; b++)
        if ((model->makers.begin[b + 1] > model->makers.begin[b]) == model->from_start[b])
            return false;
    return true;
}

mpl_status mpl_order_model_finish(mpl_ctx *ctx, mpl_order_model *model, arcs *a)
{
    MPL_PASS(make_lists(ctx, model->n, &a->before, &model->before));
    MPL_PASS(make_lists(ctx, model->n_buffers, &a->makers, &model->makers));
    MPL_PASS(make_lists(ctx, model->n_buffers, &a->users, &model->users));
    MPL_PASS(make_lists(ctx, model->n, &a->ways, &model->ways));
    MPL_PASS(make_lists(ctx, model->n_ways, &a->under, &model->under));
    MPL_PASS(turn(ctx, model->n, &model->before, model->n, &model->after));
    MPL_PASS(turn(ctx, model->n_buffers, &model->makers, model->n, &model->makes));
    MPL_PASS(turn(ctx, model->n_buffers, &model->users, model->n, &model->reads));
    mpl_assert_ok(model_ok(model));
    return MPL_OK;
}

/* A part of a model under construction: its operations and buffers. */
typedef struct part {
    mpl_ctx *ctx;
    const mpl_order_model *model;
    mpl_order_model *sub;
    uint32_t *place; /* [m->n] position in the order */
    uint32_t *id;    /* [m->n_buffers] buffer of the part, or MPL_NONE */
    uint32_t from, to;
    arcs arcs;
} part;

static bool inside(const part *self, uint32_t v)
{
    return self->place[v] >= self->from && self->place[v] < self->to;
}

/* Buffer b in the part: absent, live throughout, or made or freed by the part's operations. */
static mpl_status part_buffer(part *self, uint32_t b)
{
    const mpl_order_model *model = self->model;
    bool first = model->from_start[b], kept = model->kept[b], touched = false;

    for (uint32_t i = model->makers.begin[b]; i < model->makers.begin[b + 1]; i++) {
        first = first || self->place[model->makers.item[i]] < self->from;
        touched = touched || inside(self, model->makers.item[i]);
    }
    for (uint32_t i = model->users.begin[b]; i < model->users.begin[b + 1]; i++) {
        kept = kept || self->place[model->users.item[i]] >= self->to;
        touched = touched || inside(self, model->users.item[i]);
    }
    if (first && kept)
        self->sub->base += model->bytes[b];
    if (!touched || (first && kept))
        return MPL_OK;
    self->id[b] = self->sub->n_buffers;
    self->sub->bytes[self->sub->n_buffers] = model->bytes[b];
    self->sub->from_start[self->sub->n_buffers] = first;
    self->sub->kept[self->sub->n_buffers] = kept;
    for (uint32_t i = model->makers.begin[b]; !first && i < model->makers.begin[b + 1]; i++)
        if (inside(self, model->makers.item[i]))
            MPL_PASS(mpl_order_add(self->ctx, &self->arcs.makers, self->sub->n_buffers,
                                   self->place[model->makers.item[i]] - self->from));
    for (uint32_t i = model->users.begin[b]; i < model->users.begin[b + 1]; i++)
        if (inside(self, model->users.item[i]))
            MPL_PASS(mpl_order_add(self->ctx, &self->arcs.users, self->sub->n_buffers,
                                   self->place[model->users.item[i]] - self->from));
    self->sub->n_buffers++;
    return MPL_OK;
}

/* Adds way `way` of operation `id` of the part, with those of its buffers that the part has. */
static mpl_status part_way(part *self, uint32_t id, uint32_t way)
{
    const mpl_order_model *model = self->model;
    uint32_t mine = self->sub->n_ways;

    for (uint32_t i = model->under.begin[way]; i < model->under.begin[way + 1]; i++)
        if (self->id[model->under.item[i]] != MPL_NONE) {
            MPL_PASS(
                mpl_order_add(self->ctx, &self->arcs.under, mine, self->id[model->under.item[i]]));
            self->sub->n_ways = mine + 1;
        }
    if (self->sub->n_ways > mine)
        MPL_PASS(mpl_order_add(self->ctx, &self->arcs.ways, id, mine));
    return MPL_OK;
}

/* Buffers outside the model's lists that live throughout are in model->base already. No operation
 * of the part may overwrite an operand that dies after the part, or one that counts as base. */
static mpl_status part_fill(part *self, const uint32_t *order)
{
    const mpl_order_model *model = self->model;
    mpl_order_model *sub = self->sub;

    sub->n_buffers = 0;
    sub->base = model->base;
    sub->backward = model->backward;
    for (uint32_t b = 0; b < model->n_buffers; b++)
        MPL_PASS(part_buffer(self, b));
    for (uint32_t i = self->from; i < self->to; i++) {
        uint32_t v = order[i], id = i - self->from;

        sub->op[id] = model->op[v];
        sub->extra[id] = model->extra[v];
        sub->saves[id] = model->saves[v];
        for (uint32_t j = model->before.begin[v]; j < model->before.begin[v + 1]; j++)
            if (inside(self, model->before.item[j]))
                MPL_PASS(mpl_order_add(self->ctx, &self->arcs.before, id,
                                       self->place[model->before.item[j]] - self->from));
        for (uint32_t j = model->ways.begin[v]; j < model->ways.begin[v + 1]; j++)
            MPL_PASS(part_way(self, id, model->ways.item[j]));
    }
    return mpl_order_model_finish(self->ctx, sub, &self->arcs);
}

mpl_status mpl_order_model_part(mpl_ctx *ctx, const mpl_order_model *model, const uint32_t *order,
                                uint32_t from, uint32_t to, mpl_order_model **out)
{
    mpl_status st = MPL_OK;
    part x = {.ctx = ctx, .model = model, .from = from, .to = to};

    MPL_TRY(mpl_new(ctx, x.place, model->n));
    MPL_TRY(mpl_new(ctx, x.id, model->n_buffers));
    memset(x.id, 0xff, model->n_buffers * sizeof *x.id);
    for (uint32_t i = 0; i < model->n; i++)
        x.place[order[i]] = i;
    MPL_TRY(mpl_order_model_alloc(ctx, to - from, model->n_buffers, &x.sub));
    MPL_TRY(part_fill(&x, order));
    *out = x.sub, x.sub = NULL;
out:
    mpl_order_model_free(ctx, x.sub);
    mpl_free_each(ctx, x.place, x.id);
    mpl_order_arcs_fini(ctx, &x.arcs);
    return st;
}

mpl_status mpl_order_model_reverse(mpl_ctx *ctx, const mpl_order_model *m, mpl_order_model **out)
{
    mpl_status st = MPL_OK;
    const uint32_t last = m->n - 1;
    mpl_order_model *r = NULL;
    arcs a = {.before = {0}};

    MPL_TRY(mpl_order_model_alloc(ctx, m->n, m->n_buffers, &r));
    r->base = m->base;
    r->backward = !m->backward;
    for (uint32_t v = 0; v < m->n; v++) {
        r->op[last - v] = m->op[v];
        r->extra[last - v] = m->extra[v];
        r->saves[last - v] = m->saves[v];
        for (uint32_t i = m->before.begin[v]; i < m->before.begin[v + 1]; i++)
            MPL_TRY(mpl_order_add(ctx, &a.before, last - m->before.item[i], last - v));
        for (uint32_t i = m->ways.begin[v]; i < m->ways.begin[v + 1]; i++)
            MPL_TRY(mpl_order_add(ctx, &a.ways, last - v, m->ways.item[i]));
    }
    r->n_ways = m->n_ways;
    for (uint32_t way = 0; way < m->n_ways; way++)
        for (uint32_t i = m->under.begin[way]; i < m->under.begin[way + 1]; i++)
            MPL_TRY(mpl_order_add(ctx, &a.under, way, m->under.item[i]));
    for (uint32_t b = 0; b < m->n_buffers; b++) {
        r->bytes[b] = m->bytes[b];
        r->from_start[b] = m->kept[b];
        r->kept[b] = m->from_start[b];
        for (uint32_t i = m->users.begin[b]; i < m->users.begin[b + 1]; i++)
            MPL_TRY(mpl_order_add(ctx, &a.makers, b, last - m->users.item[i]));
        for (uint32_t i = m->makers.begin[b]; i < m->makers.begin[b + 1]; i++)
            MPL_TRY(mpl_order_add(ctx, &a.users, b, last - m->makers.item[i]));
    }
    MPL_TRY(mpl_order_model_finish(ctx, r, &a));
    *out = r, r = NULL;
out:
    mpl_order_arcs_fini(ctx, &a);
    mpl_order_model_free(ctx, r);
    return st;
}

/* ---- walks ---- */

mpl_status mpl_order_walk_init(mpl_ctx *ctx, const mpl_order_model *model, mpl_order_walk *walk)
{
    mpl_status st = MPL_OK;

    *walk = (mpl_order_walk){.model = model};
    MPL_TRY(mpl_new_each(ctx, model->n, walk->ready, walk->waits));
    MPL_TRY(mpl_new_each(ctx, model->n_buffers, walk->born, walk->left));
    MPL_TRY(mpl_new(ctx, walk->done, model->n));
    mpl_order_walk_reset(walk);
out:
    if (st != MPL_OK)
        mpl_order_walk_fini(ctx, walk);
    return st;
}

void mpl_order_walk_fini(mpl_ctx *ctx, mpl_order_walk *w)
{
    mpl_free_each(ctx, w->ready, w->waits, w->born, w->left, w->done);
    memset(w, 0, sizeof *w);
}

void mpl_order_walk_reset(mpl_order_walk *walk)
{
    const mpl_order_model *model = walk->model;

    walk->live = model->base;
    walk->n_done = walk->n_ready = 0;
    for (uint32_t v = 0; v < model->n; v++) {
        walk->waits[v] = model->before.begin[v + 1] - model->before.begin[v];
        walk->done[v] = 0;
        if (walk->waits[v] == 0)
            walk->ready[walk->n_ready++] = v;
    }
    for (uint32_t b = 0; b < model->n_buffers; b++) {
        walk->born[b] = model->from_start[b];
        walk->left[b] = model->users.begin[b + 1] - model->users.begin[b] + model->kept[b];
        if (model->from_start[b])
            walk->live += model->bytes[b];
    }
}

void mpl_order_walk_copy(mpl_order_walk *to, const mpl_order_walk *from)
{
    const mpl_order_model *model = to->model;

    to->live = from->live;
    to->n_done = from->n_done;
    to->n_ready = from->n_ready;
    if (model->n == 0)
        return;
    memcpy(to->ready, from->ready, from->n_ready * sizeof *to->ready);
    memcpy(to->waits, from->waits, model->n * sizeof *to->waits);
    memcpy(to->done, from->done, model->n);
    if (model->n_buffers > 0) {
        memcpy(to->born, from->born, model->n_buffers * sizeof *to->born);
        memcpy(to->left, from->left, model->n_buffers * sizeof *to->left);
    }
}

/* Bytes of a way that end with the next step; backwards, that begin with it. */
static uint64_t saving(const mpl_order_walk *walk, uint32_t way)
{
    const mpl_order_model *model = walk->model;
    uint64_t sum = 0;

    for (uint32_t i = model->under.begin[way]; i < model->under.begin[way + 1]; i++) {
        uint32_t b = model->under.item[i];

        if (model->backward ? walk->born[b] == 0 : walk->left[b] == 1)
            sum += model->bytes[b];
    }
    return sum;
}

uint64_t mpl_order_walk_cost(const mpl_order_walk *walk, uint32_t v)
{
    const mpl_order_model *model = walk->model;
    uint64_t cost = walk->live + model->extra[v], most = 0;

    for (uint32_t i = model->makes.begin[v]; i < model->makes.begin[v + 1]; i++)
        if (walk->born[model->makes.item[i]] == 0)
            cost += model->bytes[model->makes.item[i]];
    for (uint32_t i = model->ways.begin[v]; i < model->ways.begin[v + 1]; i++)
        most = mpl_max_u64(most, saving(walk, model->ways.item[i]));
    return cost - mpl_min_u64(most, model->saves[v]);
}

uint64_t mpl_order_walk_after(const mpl_order_walk *walk, uint32_t v)
{
    const mpl_order_model *model = walk->model;
    uint64_t live = walk->live;

    for (uint32_t i = model->makes.begin[v]; i < model->makes.begin[v + 1]; i++)
        if (walk->born[model->makes.item[i]] == 0)
            live += model->bytes[model->makes.item[i]];
    for (uint32_t i = model->reads.begin[v]; i < model->reads.begin[v + 1]; i++)
        if (walk->left[model->reads.item[i]] == 1)
            live -= model->bytes[model->reads.item[i]];
    return live;
}

void mpl_order_walk_run(mpl_order_walk *walk, uint32_t v)
{
    const mpl_order_model *model = walk->model;

    mpl_assert(walk->waits[v] == 0 && !walk->done[v]);
    walk->done[v] = 1;
    walk->n_done++;
    for (uint32_t i = model->makes.begin[v]; i < model->makes.begin[v + 1]; i++)
        if (walk->born[model->makes.item[i]]++ == 0)
            walk->live += model->bytes[model->makes.item[i]];
    for (uint32_t i = model->reads.begin[v]; i < model->reads.begin[v + 1]; i++)
        if (--walk->left[model->reads.item[i]] == 0)
            walk->live -= model->bytes[model->reads.item[i]];
    for (uint32_t i = model->after.begin[v]; i < model->after.begin[v + 1]; i++)
        if (--walk->waits[model->after.item[i]] == 0)
            walk->ready[walk->n_ready++] = model->after.item[i];
}

void mpl_order_walk_undo(mpl_order_walk *walk, uint32_t v, uint64_t live, uint32_t n_ready)
{
    const mpl_order_model *model = walk->model;

    walk->done[v] = 0;
    walk->n_done--;
    for (uint32_t i = model->makes.begin[v]; i < model->makes.begin[v + 1]; i++)
        walk->born[model->makes.item[i]]--;
    for (uint32_t i = model->reads.begin[v]; i < model->reads.begin[v + 1]; i++)
        walk->left[model->reads.item[i]]++;
    for (uint32_t i = model->after.begin[v]; i < model->after.begin[v + 1]; i++)
        walk->waits[model->after.item[i]]++;
    walk->live = live;
    walk->n_ready = n_ready;
}

uint64_t mpl_order_model_peak(mpl_order_walk *walk, const uint32_t *order)
{
    uint64_t peak = 0;

    mpl_order_walk_reset(walk);
    for (uint32_t i = 0; i < walk->model->n; i++) {
        peak = mpl_max_u64(peak, mpl_order_walk_cost(walk, order[i]));
        mpl_order_walk_run(walk, order[i]);
    }
    return peak;
}
