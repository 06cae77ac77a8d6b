/* model.c -- the memory model of an order. See model.h. */
#include "graphs/orders/model.h"

#include "graphs/problem/liveness.h"
#include "graphs/problem/cuts.h"

#include <stdlib.h>

static const uint64_t MOST = INT64_MAX / 4; /* the sum of three such numbers does not overflow */

/* ---- lists ---- */

typedef struct pair {
    uint32_t of, item;
} pair;

typedef struct pairs {
    size_t n, cap;
    pair *at;
} pairs;

static mpl_status add(mpl_ctx *ctx, pairs *list, uint32_t of, uint32_t item)
{
    mpl_status st = MPL_OK;

    MPL_TRY(mpl_reserve(ctx, list->at, list->cap, list->n + 1));
    list->at[list->n++] = (pair){of, item};
out:
    return st;
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
    mpl_status st = MPL_OK;
    uint32_t kept = 0;

    MPL_TRY(mpl_new(ctx, out->begin, (size_t)n + 1));
    MPL_TRY(mpl_new(ctx, out->item, list->n));
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
out:
    return st;
}

static void lists_fini(mpl_ctx *ctx, mpl_lists *l)
{
    mpl_free(ctx, l->begin);
    mpl_free(ctx, l->item);
}

/* ---- models ---- */

static mpl_status model_alloc(mpl_ctx *ctx, uint32_t n, uint32_t k, mpl_order_model **out)
{
    mpl_status st = MPL_OK;
    mpl_order_model *m = NULL;

    MPL_TRY(mpl_new(ctx, m, 1));
    m->n = n;
    m->n_buffers = k;
    MPL_TRY(mpl_new(ctx, m->op, n));
    MPL_TRY(mpl_new(ctx, m->extra, n));
    MPL_TRY(mpl_new(ctx, m->saves, n));
    MPL_TRY(mpl_new(ctx, m->bytes, k));
    MPL_TRY(mpl_new(ctx, m->from_start, k));
    MPL_TRY(mpl_new(ctx, m->kept, k));
    *out = m, m = NULL;
out:
    mpl_order_model_free(ctx, m);
    return st;
}

void mpl_order_model_free(mpl_ctx *ctx, mpl_order_model *m)
{
    if (m == NULL)
        return;
    mpl_lists *const lists[] = {&m->before, &m->after, &m->makes,     &m->reads,
                                &m->makers, &m->users, &m->overwrites};
    void *const arrays[] = {m->op, m->extra, m->saves, m->bytes, m->from_start, m->kept};

    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++)
        lists_fini(ctx, lists[i]);
    MPL_FREE_ALL(ctx, arrays);
    mpl_free(ctx, m);
}

/* Pairs from which a model's lists are built. */
typedef struct arcs {
    pairs before, makers, users, overwrites;
} arcs;

static void arcs_fini(mpl_ctx *ctx, arcs *a)
{
    mpl_free(ctx, a->before.at);
    mpl_free(ctx, a->makers.at);
    mpl_free(ctx, a->users.at);
    mpl_free(ctx, a->overwrites.at);
}

static mpl_status turn(mpl_ctx *ctx, uint32_t n, const mpl_lists *in, uint32_t n_items,
                       mpl_lists *out)
{
    return mpl_lists_turn(ctx, n_items, n, in->begin, in->item, &out->begin, &out->item);
}

/* Checks that ids are a valid order, and that buffers have one maker or exist from the start. */
static bool model_ok(const mpl_order_model *m)
{
    for (uint32_t v = 0; v < m->n; v++)
        for (uint32_t i = m->before.begin[v]; i < m->before.begin[v + 1]; i++)
            if (m->before.item[i] >= v)
                return false;
    for (uint32_t b = 0; b < m->n_buffers && !m->backward; b++)
        if (m->makers.begin[b + 1] - m->makers.begin[b] > !m->from_start[b])
            return false;
    return true;
}

/* Builds the lists of a model with its buffers; derives after, makes and reads. */
static mpl_status model_finish(mpl_ctx *ctx, mpl_order_model *m, arcs *a)
{
    mpl_status st = MPL_OK;

    MPL_TRY(make_lists(ctx, m->n, &a->before, &m->before));
    MPL_TRY(make_lists(ctx, m->n_buffers, &a->makers, &m->makers));
    MPL_TRY(make_lists(ctx, m->n_buffers, &a->users, &m->users));
    MPL_TRY(make_lists(ctx, m->n, &a->overwrites, &m->overwrites));
    MPL_TRY(turn(ctx, m->n, &m->before, m->n, &m->after));
    MPL_TRY(turn(ctx, m->n_buffers, &m->makers, m->n, &m->makes));
    MPL_TRY(turn(ctx, m->n_buffers, &m->users, m->n, &m->reads));
    mpl_assert_ok(model_ok(m));
out:
    return st;
}

typedef struct source {
    mpl_ctx *ctx;
    const mpl_graph *g;
    const mpl_problem_options *options;
    mpl_alias alias; /* with concats copied: sharing is decided for a given order */
    mpl_cuts cuts;
    uint8_t *is_read; /* [cuts.n] 1: an operation reads it; 2: it stays to the end */
    uint8_t *pinned;  /* [n_values] of a root: takes no planned memory */
    uint8_t *part;    /* [n_values] scratch */
    uint32_t *id;     /* [cuts.n] buffer of a part, or MPL_NONE */
    arcs arcs;
} source;

static uint64_t slots(const source *s, uint64_t bytes)
{
    return (bytes + s->options->align - 1) & ~(uint64_t)(s->options->align - 1);
}

/* Leaves out storage that lies in pools of its own. part[n_values]: scratch. */
static void leave_pools(source *s, uint8_t *part)
{
    const mpl_graph *g = s->g;

    mpl_graph_parts(g, part);
    for (mpl_value v = 0; v < g->n_values; v++) {
        mpl_value root = s->alias.root[v];

        if (part[v] != MPL_PART_NONE && (s->options->own_pools >> part[v] & 1) != 0 &&
            (root == v || g->value_role[root] != MPL_WEIGHT))
            s->pinned[root] = 1;
    }
}

/* The parts of storage that `op` touches through v. Of split storage, those that v lies in, or none
 * if `op` does nothing; of other storage, all parts. */
static uint32_t parts_of(const source *s, mpl_op op, mpl_value v, uint32_t *first)
{
    if (mpl_cuts_cut(&s->cuts, &s->alias, v)) {
        *first = s->cuts.first[v];
        return op != MPL_NONE && s->alias.nothing[op] ? 0 : s->cuts.count[v];
    }
    *first = s->cuts.first[s->alias.root[v]];
    return s->cuts.count[s->alias.root[v]];
}

static void mark(source *s, mpl_op op, mpl_value v, uint8_t how)
{
    uint32_t first, n = parts_of(s, op, v, &first);

    for (uint32_t k = 0; k < n; k++)
        s->is_read[first + k] = how;
}

static void mark_roots(source *s)
{
    const mpl_graph *g = s->g;
    const mpl_problem_options *o = s->options;

    for (mpl_op op = 0; op < g->n_ops; op++)
        for (uint32_t i = g->op_in_begin[op]; i < g->op_in_begin[op] + mpl_n_read(g, op); i++)
            if (g->op_in[i] != MPL_NONE)
                mark(s, op, g->op_in[i], 1);
    for (mpl_value v = 0; v < g->n_values; v++) {
        if (g->value_role[v] == MPL_WEIGHT)
            mark(s, MPL_NONE, v, 2);
        s->pinned[v] = (g->value_role[v] == MPL_INPUT && o->pin_inputs) ||
                       (g->value_role[v] == MPL_WEIGHT && o->pin_weights) || g->value_bytes[v] == 0;
    }
    for (uint32_t i = 0; i < g->n_outputs; i++) {
        mark(s, MPL_NONE, g->output[i], 2);
        s->pinned[s->alias.root[g->output[i]]] |= o->pin_outputs;
    }
}

/* A buffer that is read becomes a buffer of the model; any other adds bytes to its step. An input
 * that is neither pinned nor read would count for the first step, whichever operation that is. It
 * is left out, since bounds must hold for all orders. */
static mpl_status add_buffers(source *s, mpl_order_model *m)
{
    mpl_status st = MPL_OK;
    const mpl_graph *g = s->g;
    const uint64_t *workspace =
        s->options->plan_workspaces && g->n_blocks == 1 ? s->options->op_workspace_bytes : NULL;
    uint64_t sum = 0;

    m->n_buffers = 0;
    for (uint32_t i = 0; i < s->cuts.n; i++) {
        mpl_value v = s->cuts.root[i];
        uint64_t bytes = s->cuts.bytes[i];

        s->id[i] = MPL_NONE;
        if (s->pinned[v] || (s->is_read[i] == 0 && g->value_op[v] == MPL_NONE))
            continue;
        if (bytes > MOST || !mpl_add_bytes(sum, slots(s, bytes), &sum) || sum > MOST)
            MPL_FAIL(s->ctx, MPL_EINPUT, "the values of '%.100s' together pass 2^61 bytes",
                     g->name);
        if (s->is_read[i] == 0) {
            m->extra[g->value_op[v]] += slots(s, bytes);
            continue;
        }
        s->id[i] = m->n_buffers;
        m->bytes[m->n_buffers] = slots(s, bytes);
        m->kept[m->n_buffers] = s->is_read[i] == 2;
        m->from_start[m->n_buffers] = g->value_op[v] == MPL_NONE;
        if (!m->from_start[m->n_buffers])
            MPL_TRY(add(s->ctx, &s->arcs.makers, m->n_buffers, g->value_op[v]));
        m->n_buffers++;
    }
    for (mpl_op op = 0; workspace != NULL && op < g->n_ops; op++) {
        if (workspace[op] > MOST || !mpl_add_bytes(sum, slots(s, workspace[op]), &sum) ||
            sum > MOST)
            MPL_FAIL(s->ctx, MPL_EINPUT, "the workspaces of '%.100s' pass 2^61 bytes", g->name);
        m->extra[op] += slots(s, workspace[op]);
    }
out:
    return st;
}

/* Whether output 0 of `op` may overwrite its input i. */
static bool may_overwrite(const source *s, mpl_op op, uint32_t i)
{
    mpl_value v = s->g->op_in[s->g->op_in_begin[op] + i];

    return mpl_cuts_cut(&s->cuts, &s->alias, v)
               ? mpl_cuts_operand(s->g, &s->alias, &s->cuts, op, i)
               : mpl_in_place_operand(s->g, s->alias.root, s->alias.offset, op, i);
}

static mpl_status add_operand(source *s, mpl_order_model *m, mpl_op op, uint32_t i, bool can)
{
    mpl_status st = MPL_OK;
    const mpl_graph *g = s->g;
    mpl_value v = g->op_in[g->op_in_begin[op] + i];
    uint32_t first, n;

    if (v != MPL_NONE && g->value_op[v] != MPL_NONE)
        MPL_TRY(add(s->ctx, &s->arcs.before, op, g->value_op[v]));
    if (v == MPL_NONE || i >= mpl_n_read(g, op))
        return MPL_OK;
    n = parts_of(s, op, v, &first);
    for (uint32_t k = 0; k < n; k++) {
        uint32_t b = s->id[first + k];

        if (b == MPL_NONE)
            continue;
        MPL_TRY(add(s->ctx, &s->arcs.users, b, op));
        if (can && !m->kept[b] && may_overwrite(s, op, i))
            MPL_TRY(add(s->ctx, &s->arcs.overwrites, op, b));
    }
out:
    return st;
}

static mpl_status add_operands(source *s, mpl_order_model *m)
{
    mpl_status st = MPL_OK;
    const mpl_graph *g = s->g;

    for (mpl_op op = 0; op < g->n_ops; op++) {
        mpl_value out = g->op_out_begin[op] < g->op_out_begin[op + 1]
                            ? g->op_out[g->op_out_begin[op]]
                            : MPL_NONE;
        bool can = s->options->in_place && out != MPL_NONE && s->alias.root[out] == out &&
                   !s->pinned[out] && !mpl_cuts_cut(&s->cuts, &s->alias, out);

        m->op[op] = op;
        if (can)
            m->saves[op] = slots(s, g->value_bytes[out]);
        for (uint32_t i = 0; i < g->op_in_begin[op + 1] - g->op_in_begin[op]; i++)
            MPL_TRY(add_operand(s, m, op, i, can));
    }
out:
    return st;
}

mpl_status mpl_order_model_new(mpl_ctx *ctx, const mpl_graph *g, const mpl_problem_options *options,
                               mpl_order_model **out)
{
    mpl_status st = MPL_OK;
    mpl_problem_options o = options != NULL ? *options : mpl_problem_options_default();
    source s = {.ctx = ctx, .g = g, .options = &o};
    mpl_order_model *m = NULL;

    if (o.align == 0 || (o.align & (o.align - 1)) != 0)
        MPL_FAIL(ctx, MPL_EINPUT, "alignment %u is no power of two", o.align);
    MPL_TRY(mpl_alias_new(ctx, g,
                          &(mpl_alias_options){o.views, o.align, NULL, o.in_place && o.pin_outputs,
                                               false, o.split_copied},
                          &s.alias));
    MPL_TRY(mpl_cuts_new(ctx, g, &s.alias, o.in_place, o.align, &s.cuts));
    MPL_TRY(mpl_new(ctx, s.is_read, s.cuts.n));
    MPL_TRY(mpl_new(ctx, s.pinned, g->n_values));
    MPL_TRY(mpl_new(ctx, s.id, s.cuts.n));
    MPL_TRY(mpl_new(ctx, s.part, g->n_values));
    mark_roots(&s);
    leave_pools(&s, s.part);
    MPL_TRY(model_alloc(ctx, g->n_ops, s.cuts.n, &m));
    MPL_TRY(add_buffers(&s, m));
    MPL_TRY(add_operands(&s, m));
    MPL_TRY(model_finish(ctx, m, &s.arcs));
    *out = m, m = NULL;
out:
    mpl_order_model_free(ctx, m);
    mpl_alias_free(ctx, &s.alias);
    mpl_cuts_free(ctx, &s.cuts);
    mpl_free(ctx, s.is_read);
    mpl_free(ctx, s.pinned);
    mpl_free(ctx, s.part);
    mpl_free(ctx, s.id);
    arcs_fini(ctx, &s.arcs);
    return st;
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
    mpl_status st = MPL_OK;
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
        goto out;
    x->id[b] = x->sub->n_buffers;
    x->sub->bytes[x->sub->n_buffers] = m->bytes[b];
    x->sub->from_start[x->sub->n_buffers] = first;
    x->sub->kept[x->sub->n_buffers] = kept;
    for (uint32_t i = m->makers.begin[b]; i < m->makers.begin[b + 1]; i++)
        if (inside(x, m->makers.item[i]))
            MPL_TRY(add(x->ctx, &x->arcs.makers, x->sub->n_buffers,
                        x->place[m->makers.item[i]] - x->from));
    for (uint32_t i = m->users.begin[b]; i < m->users.begin[b + 1]; i++)
        if (inside(x, m->users.item[i]))
            MPL_TRY(add(x->ctx, &x->arcs.users, x->sub->n_buffers,
                        x->place[m->users.item[i]] - x->from));
    x->sub->n_buffers++;
out:
    return st;
}

/* Buffers outside the model's lists that live throughout are in m->base already. No operation of
 * the part may overwrite an operand that dies after the part, or one that counts as base. */
static mpl_status part_fill(part *x, const uint32_t *order)
{
    mpl_status st = MPL_OK;
    const mpl_order_model *m = x->m;
    mpl_order_model *sub = x->sub;

    sub->n_buffers = 0;
    sub->base = m->base;
    sub->backward = m->backward;
    for (uint32_t b = 0; b < m->n_buffers; b++)
        MPL_TRY(part_buffer(x, b));
    for (uint32_t i = x->from; i < x->to; i++) {
        uint32_t v = order[i], id = i - x->from;

        sub->op[id] = m->op[v];
        sub->extra[id] = m->extra[v];
        sub->saves[id] = m->saves[v];
        for (uint32_t j = m->before.begin[v]; j < m->before.begin[v + 1]; j++)
            if (inside(x, m->before.item[j]))
                MPL_TRY(add(x->ctx, &x->arcs.before, id, x->place[m->before.item[j]] - x->from));
        for (uint32_t j = m->overwrites.begin[v]; j < m->overwrites.begin[v + 1]; j++) {
            uint32_t b = x->id[m->overwrites.item[j]];

            if (b != MPL_NONE)
                MPL_TRY(add(x->ctx, &x->arcs.overwrites, id, b));
        }
    }
    MPL_TRY(model_finish(x->ctx, sub, &x->arcs));
out:
    return st;
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
    MPL_TRY(model_alloc(ctx, to - from, m->n_buffers, &x.sub));
    MPL_TRY(part_fill(&x, order));
    *out = x.sub, x.sub = NULL;
out:
    mpl_order_model_free(ctx, x.sub);
    mpl_free(ctx, x.place);
    mpl_free(ctx, x.id);
    arcs_fini(ctx, &x.arcs);
    return st;
}

mpl_status mpl_order_model_reverse(mpl_ctx *ctx, const mpl_order_model *m, mpl_order_model **out)
{
    mpl_status st = MPL_OK;
    const uint32_t last = m->n - 1;
    mpl_order_model *r = NULL;
    arcs a = {.before = {0}};

    MPL_TRY(model_alloc(ctx, m->n, m->n_buffers, &r));
    r->base = m->base;
    r->backward = !m->backward;
    for (uint32_t v = 0; v < m->n; v++) {
        r->op[last - v] = m->op[v];
        r->extra[last - v] = m->extra[v];
        r->saves[last - v] = m->saves[v];
        for (uint32_t i = m->before.begin[v]; i < m->before.begin[v + 1]; i++)
            MPL_TRY(add(ctx, &a.before, last - m->before.item[i], last - v));
        for (uint32_t i = m->overwrites.begin[v]; i < m->overwrites.begin[v + 1]; i++)
            MPL_TRY(add(ctx, &a.overwrites, last - v, m->overwrites.item[i]));
    }
    for (uint32_t b = 0; b < m->n_buffers; b++) {
        r->bytes[b] = m->bytes[b];
        r->from_start[b] = m->kept[b];
        r->kept[b] = m->from_start[b];
        for (uint32_t i = m->users.begin[b]; i < m->users.begin[b + 1]; i++)
            MPL_TRY(add(ctx, &a.makers, b, last - m->users.item[i]));
        for (uint32_t i = m->makers.begin[b]; i < m->makers.begin[b + 1]; i++)
            MPL_TRY(add(ctx, &a.users, b, last - m->makers.item[i]));
    }
    MPL_TRY(model_finish(ctx, r, &a));
    *out = r, r = NULL;
out:
    arcs_fini(ctx, &a);
    mpl_order_model_free(ctx, r);
    return st;
}

/* ---- walks ---- */

mpl_status mpl_order_walk_init(mpl_ctx *ctx, const mpl_order_model *m, mpl_order_walk *w)
{
    mpl_status st = MPL_OK;

    *w = (mpl_order_walk){.m = m};
    MPL_TRY(mpl_new(ctx, w->ready, m->n));
    MPL_TRY(mpl_new(ctx, w->waits, m->n));
    MPL_TRY(mpl_new(ctx, w->born, m->n_buffers));
    MPL_TRY(mpl_new(ctx, w->left, m->n_buffers));
    MPL_TRY(mpl_new(ctx, w->done, m->n));
    mpl_order_walk_reset(w);
out:
    if (st != MPL_OK)
        mpl_order_walk_fini(ctx, w);
    return st;
}

void mpl_order_walk_fini(mpl_ctx *ctx, mpl_order_walk *w)
{
    mpl_free(ctx, w->ready);
    mpl_free(ctx, w->waits);
    mpl_free(ctx, w->born);
    mpl_free(ctx, w->left);
    mpl_free(ctx, w->done);
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

uint64_t mpl_order_walk_cost(const mpl_order_walk *w, uint32_t v)
{
    const mpl_order_model *m = w->m;
    uint64_t cost = w->live + m->extra[v];

    for (uint32_t i = m->makes.begin[v]; i < m->makes.begin[v + 1]; i++)
        if (w->born[m->makes.item[i]] == 0)
            cost += m->bytes[m->makes.item[i]];
    /* v is the last user of what it overwrites; backwards, its first maker */
    for (uint32_t i = m->overwrites.begin[v]; i < m->overwrites.begin[v + 1]; i++)
        if (m->backward ? w->born[m->overwrites.item[i]] == 0 : w->left[m->overwrites.item[i]] == 1)
            return cost - m->saves[v];
    return cost;
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
