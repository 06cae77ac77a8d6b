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

static void lists_fini(mpl_ctx *ctx, mpl_lists *l)
{
    mpl_free_each(ctx, l->begin, l->item);
}

/* ---- models ---- */

mpl_status mpl_order_model_alloc(mpl_ctx *ctx, uint32_t n, uint32_t k, mpl_order_model **out)
{
    mpl_status st = MPL_OK;
    mpl_order_model *m = NULL;

    MPL_TRY(mpl_new(ctx, m, 1));
    m->n = n;
    m->n_buffers = k;
    MPL_TRY(mpl_new_each(ctx, n, m->op, m->extra, m->saves, m->extra_rest));
    MPL_TRY(mpl_new_each(ctx, k, m->rest, m->bytes, m->from_start, m->kept));
    *out = m, m = NULL;
out:
    mpl_order_model_free(ctx, m);
    return st;
}

void mpl_order_model_free(mpl_ctx *ctx, mpl_order_model *m)
{
    if (m == NULL)
        return;
    mpl_lists *const lists[] = {&m->before, &m->after, &m->makes, &m->reads,
                                &m->makers, &m->users, &m->ways,  &m->under};
    void *const arrays[] = {m->op,    m->extra, m->rest,       m->extra_rest,
                            m->saves, m->bytes, m->from_start, m->kept};

    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++)
        lists_fini(ctx, lists[i]);
    MPL_FREE_ALL(ctx, arrays);
    mpl_free(ctx, m);
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
static bool model_ok(const mpl_order_model *m)
{
    for (uint32_t v = 0; v < m->n; v++)
        for (uint32_t i = m->before.begin[v]; i < m->before.begin[v + 1]; i++)
            if (m->before.item[i] >= v)
                return false;
    for (uint32_t b = 0; b < m->n_buffers && !m->backward; b++)
        if ((m->makers.begin[b + 1] > m->makers.begin[b]) == m->from_start[b])
            return false;
    return true;
}

mpl_status mpl_order_model_finish(mpl_ctx *ctx, mpl_order_model *m, arcs *a)
{
    MPL_PASS(make_lists(ctx, m->n, &a->before, &m->before));
    MPL_PASS(make_lists(ctx, m->n_buffers, &a->makers, &m->makers));
    MPL_PASS(make_lists(ctx, m->n_buffers, &a->users, &m->users));
    MPL_PASS(make_lists(ctx, m->n, &a->ways, &m->ways));
    MPL_PASS(make_lists(ctx, m->n_ways, &a->under, &m->under));
    MPL_PASS(turn(ctx, m->n, &m->before, m->n, &m->after));
    MPL_PASS(turn(ctx, m->n_buffers, &m->makers, m->n, &m->makes));
    MPL_PASS(turn(ctx, m->n_buffers, &m->users, m->n, &m->reads));
    mpl_assert_ok(model_ok(m));
    return MPL_OK;
}

/* A part of a model under construction: its operations and buffers. */
typedef struct part {
    mpl_ctx *ctx;
    const mpl_order_model *m;
    mpl_order_model *sub;
    uint32_t *place; /* [m->n] position in the order */
    uint32_t *id;    /* [m->n_buffers] buffer of the part, or MPL_NONE */
    uint32_t from, to;
    arcs arcs;
} part;

static bool inside(const part *x, uint32_t v)
{
    return x->place[v] >= x->from && x->place[v] < x->to;
}

/* Buffer b in the part: absent, live throughout, or made or freed by the part's operations. */
static mpl_status part_buffer(part *x, uint32_t b)
{
    const mpl_order_model *m = x->m;
    bool first = m->from_start[b], kept = m->kept[b], touched = false;

    for (uint32_t i = m->makers.begin[b]; i < m->makers.begin[b + 1]; i++) {
        first = first || x->place[m->makers.item[i]] < x->from;
        touched = touched || inside(x, m->makers.item[i]);
    }
    for (uint32_t i = m->users.begin[b]; i < m->users.begin[b + 1]; i++) {
        kept = kept || x->place[m->users.item[i]] >= x->to;
        touched = touched || inside(x, m->users.item[i]);
    }
    if (first && kept)
        x->sub->base += m->bytes[b];
    if (!touched || (first && kept))
        return MPL_OK;
    x->id[b] = x->sub->n_buffers;
    x->sub->bytes[x->sub->n_buffers] = m->bytes[b];
    x->sub->from_start[x->sub->n_buffers] = first;
    x->sub->kept[x->sub->n_buffers] = kept;
    for (uint32_t i = m->makers.begin[b]; !first && i < m->makers.begin[b + 1]; i++)
        if (inside(x, m->makers.item[i]))
            MPL_PASS(mpl_order_add(x->ctx, &x->arcs.makers, x->sub->n_buffers,
                                   x->place[m->makers.item[i]] - x->from));
    for (uint32_t i = m->users.begin[b]; i < m->users.begin[b + 1]; i++)
        if (inside(x, m->users.item[i]))
            MPL_PASS(mpl_order_add(x->ctx, &x->arcs.users, x->sub->n_buffers,
                                   x->place[m->users.item[i]] - x->from));
    x->sub->n_buffers++;
    return MPL_OK;
}

/* Adds way `way` of operation `id` of the part, with those of its buffers that the part has. */
static mpl_status part_way(part *x, uint32_t id, uint32_t way)
{
    const mpl_order_model *m = x->m;
    uint32_t mine = x->sub->n_ways;

    for (uint32_t i = m->under.begin[way]; i < m->under.begin[way + 1]; i++)
        if (x->id[m->under.item[i]] != MPL_NONE) {
            MPL_PASS(mpl_order_add(x->ctx, &x->arcs.under, mine, x->id[m->under.item[i]]));
            x->sub->n_ways = mine + 1;
        }
    if (x->sub->n_ways > mine)
        MPL_PASS(mpl_order_add(x->ctx, &x->arcs.ways, id, mine));
    return MPL_OK;
}

/* Buffers outside the model's lists that live throughout are in m->base already. No operation of
 * the part may overwrite an operand that dies after the part, or one that counts as base. */
static mpl_status part_fill(part *x, const uint32_t *order)
{
    const mpl_order_model *m = x->m;
    mpl_order_model *sub = x->sub;

    sub->n_buffers = 0;
    sub->base = m->base;
    sub->backward = m->backward;
    for (uint32_t b = 0; b < m->n_buffers; b++)
        MPL_PASS(part_buffer(x, b));
    for (uint32_t i = x->from; i < x->to; i++) {
        uint32_t v = order[i], id = i - x->from;

        sub->op[id] = m->op[v];
        sub->extra[id] = m->extra[v];
        sub->saves[id] = m->saves[v];
        for (uint32_t j = m->before.begin[v]; j < m->before.begin[v + 1]; j++)
            if (inside(x, m->before.item[j]))
                MPL_PASS(mpl_order_add(x->ctx, &x->arcs.before, id,
                                       x->place[m->before.item[j]] - x->from));
        for (uint32_t j = m->ways.begin[v]; j < m->ways.begin[v + 1]; j++)
            MPL_PASS(part_way(x, id, m->ways.item[j]));
    }
    return mpl_order_model_finish(x->ctx, sub, &x->arcs);
}

mpl_status mpl_order_model_part(mpl_ctx *ctx, const mpl_order_model *m, const uint32_t *order,
                                uint32_t from, uint32_t to, mpl_order_model **out)
{
    mpl_status st = MPL_OK;
    part x = {.ctx = ctx, .m = m, .from = from, .to = to};

    MPL_TRY(mpl_new(ctx, x.place, m->n));
    MPL_TRY(mpl_new(ctx, x.id, m->n_buffers));
    memset(x.id, 0xff, m->n_buffers * sizeof *x.id);
    for (uint32_t i = 0; i < m->n; i++)
        x.place[order[i]] = i;
    MPL_TRY(mpl_order_model_alloc(ctx, to - from, m->n_buffers, &x.sub));
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

mpl_status mpl_order_walk_init(mpl_ctx *ctx, const mpl_order_model *m, mpl_order_walk *w)
{
    mpl_status st = MPL_OK;

    *w = (mpl_order_walk){.m = m};
    MPL_TRY(mpl_new_each(ctx, m->n, w->ready, w->waits));
    MPL_TRY(mpl_new_each(ctx, m->n_buffers, w->born, w->left));
    MPL_TRY(mpl_new(ctx, w->done, m->n));
    mpl_order_walk_reset(w);
out:
    if (st != MPL_OK)
        mpl_order_walk_fini(ctx, w);
    return st;
}

void mpl_order_walk_fini(mpl_ctx *ctx, mpl_order_walk *w)
{
    mpl_free_each(ctx, w->ready, w->waits, w->born, w->left, w->done);
    memset(w, 0, sizeof *w);
}

void mpl_order_walk_reset(mpl_order_walk *w)
{
    const mpl_order_model *m = w->m;

    w->live = m->base;
    w->n_done = w->n_ready = 0;
    for (uint32_t v = 0; v < m->n; v++) {
        w->waits[v] = m->before.begin[v + 1] - m->before.begin[v];
        w->done[v] = 0;
        if (w->waits[v] == 0)
            w->ready[w->n_ready++] = v;
    }
    for (uint32_t b = 0; b < m->n_buffers; b++) {
        w->born[b] = m->from_start[b];
        w->left[b] = m->users.begin[b + 1] - m->users.begin[b] + m->kept[b];
        if (m->from_start[b])
            w->live += m->bytes[b];
    }
}

void mpl_order_walk_copy(mpl_order_walk *to, const mpl_order_walk *from)
{
    const mpl_order_model *m = to->m;

    to->live = from->live;
    to->n_done = from->n_done;
    to->n_ready = from->n_ready;
    if (m->n == 0)
        return;
    memcpy(to->ready, from->ready, from->n_ready * sizeof *to->ready);
    memcpy(to->waits, from->waits, m->n * sizeof *to->waits);
    memcpy(to->done, from->done, m->n);
    if (m->n_buffers > 0) {
        memcpy(to->born, from->born, m->n_buffers * sizeof *to->born);
        memcpy(to->left, from->left, m->n_buffers * sizeof *to->left);
    }
}

/* Bytes of a way that end with the next step; backwards, that begin with it. */
static uint64_t saving(const mpl_order_walk *w, uint32_t way)
{
    const mpl_order_model *m = w->m;
    uint64_t sum = 0;

    for (uint32_t i = m->under.begin[way]; i < m->under.begin[way + 1]; i++) {
        uint32_t b = m->under.item[i];

        if (m->backward ? w->born[b] == 0 : w->left[b] == 1)
            sum += m->bytes[b];
    }
    return sum;
}

uint64_t mpl_order_walk_cost(const mpl_order_walk *w, uint32_t v)
{
    const mpl_order_model *m = w->m;
    uint64_t cost = w->live + m->extra[v], most = 0;

    for (uint32_t i = m->makes.begin[v]; i < m->makes.begin[v + 1]; i++)
        if (w->born[m->makes.item[i]] == 0)
            cost += m->bytes[m->makes.item[i]];
    for (uint32_t i = m->ways.begin[v]; i < m->ways.begin[v + 1]; i++)
        most = mpl_max_u64(most, saving(w, m->ways.item[i]));
    return cost - mpl_min_u64(most, m->saves[v]);
}

uint64_t mpl_order_walk_after(const mpl_order_walk *w, uint32_t v)
{
    const mpl_order_model *m = w->m;
    uint64_t live = w->live;

    for (uint32_t i = m->makes.begin[v]; i < m->makes.begin[v + 1]; i++)
        if (w->born[m->makes.item[i]] == 0)
            live += m->bytes[m->makes.item[i]];
    for (uint32_t i = m->reads.begin[v]; i < m->reads.begin[v + 1]; i++)
        if (w->left[m->reads.item[i]] == 1)
            live -= m->bytes[m->reads.item[i]];
    return live;
}

void mpl_order_walk_run(mpl_order_walk *w, uint32_t v)
{
    const mpl_order_model *m = w->m;

    mpl_assert(w->waits[v] == 0 && !w->done[v]);
    w->done[v] = 1;
    w->n_done++;
    for (uint32_t i = m->makes.begin[v]; i < m->makes.begin[v + 1]; i++)
        if (w->born[m->makes.item[i]]++ == 0)
            w->live += m->bytes[m->makes.item[i]];
    for (uint32_t i = m->reads.begin[v]; i < m->reads.begin[v + 1]; i++)
        if (--w->left[m->reads.item[i]] == 0)
            w->live -= m->bytes[m->reads.item[i]];
    for (uint32_t i = m->after.begin[v]; i < m->after.begin[v + 1]; i++)
        if (--w->waits[m->after.item[i]] == 0)
            w->ready[w->n_ready++] = m->after.item[i];
}

void mpl_order_walk_undo(mpl_order_walk *w, uint32_t v, uint64_t live, uint32_t n_ready)
{
    const mpl_order_model *m = w->m;

    w->done[v] = 0;
    w->n_done--;
    for (uint32_t i = m->makes.begin[v]; i < m->makes.begin[v + 1]; i++)
        w->born[m->makes.item[i]]--;
    for (uint32_t i = m->reads.begin[v]; i < m->reads.begin[v + 1]; i++)
        w->left[m->reads.item[i]]++;
    for (uint32_t i = m->after.begin[v]; i < m->after.begin[v + 1]; i++)
        w->waits[m->after.item[i]]++;
    w->live = live;
    w->n_ready = n_ready;
}

uint64_t mpl_order_model_peak(mpl_order_walk *w, const uint32_t *order)
{
    uint64_t peak = 0;

    mpl_order_walk_reset(w);
    for (uint32_t i = 0; i < w->m->n; i++) {
        peak = mpl_max_u64(peak, mpl_order_walk_cost(w, order[i]));
        mpl_order_walk_run(w, order[i]);
    }
    return peak;
}
