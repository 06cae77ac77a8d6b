/* regions.c -- parts of a model that one operation opens and another closes. See regions.h.
 *
 * Idea     The operations between a and b are a region if every path to them passes a, every path
 *          from them passes b, and operations elsewhere use their buffers only before a or after b.
 *          Other operations may run beside a region but share no buffer with it. So a region has a
 *          best order of its own, whatever runs beside it: legs from valley to valley (valleys.c).
 *          Inner regions are ordered first. An ordered region counts as a chain of legs, each of
 *          them one operation with one buffer of the bytes live after it. A sequence of operations
 *          that follow each other directly is a region, too.
 * Source   regions by dominators: R. Johnson, D. Pearson, K. Pingali, "The program structure tree",
 *          1994; the rest: see valleys.c. */
#include "graphs/orders/model/regions.h"

#include "graphs/orders/model/dominators.h"
#include "graphs/orders/model/model_priv.h"
#include "graphs/orders/model/valleys.h"

#include <stdlib.h>

enum { MOST_SETS = 10000, MOST_NODES = 400 }; /* of a region that is searched */

/* A part with its order decided: legs[first .. first + n). */
typedef struct chain {
    uint32_t head; /* its first operation: what is before it is before all of the chain */
    uint32_t first, n;
    uint64_t level; /* live bytes before the first leg, of what it touches */
} chain;

/* The operations that every path to an operation passes, and every path from it. */
typedef struct trees {
    const mpl_order_model *model;
    mpl_dominators entries, exits;
} trees;

/* A model, and its parts that have an order so far. */
typedef struct frame {
    mpl_ctx *ctx;
    const mpl_order_model *model;
    trees trees;
    uint32_t *chain_of;      /* [n] or MPL_NONE */
    uint32_t *birth, *death; /* [n_buffers] chain in which it becomes live, ceases; or MPL_NONE */
    chain *chains;
    mpl_leg *legs; /* into ops */
    uint32_t *ops;
    uint32_t n_chains;
    size_t n_legs, n_ops, chain_cap, leg_cap, op_cap;
    /* scratch, MPL_NONE but while a local model is built */
    uint32_t *node;   /* [n] its node; of a chain's operations, the last leg */
    uint32_t *opened; /* [n] by head: the first leg of a chain */
    uint32_t *mark;   /* [n] of a run's operations: 0 */
    uint32_t *id;     /* [n_buffers] in the local model */
} frame;

/* The operations after `entry` and before `exit`; or a run from entry to exit. An operation outside
 * that precedes one of them precedes all of them; the same holds for successors. */
typedef struct range {
    uint32_t entry, exit;
} range;

/* A local model: nodes are operations of a frame, or legs. */
typedef struct local {
    mpl_order_model *model;
    uint32_t *op;  /* [m->n] an operation of the frame; of a leg, MPL_NONE */
    uint32_t *leg; /* [m->n] into frame->legs */
    uint32_t *way; /* [m->n] the way in which a leg replaces the level before it, or MPL_NONE */
    mpl_order_arcs arcs;
} local;

static mpl_status trees_init(mpl_ctx *ctx, const mpl_order_model *model, trees *t)
{
    t->model = model;
    MPL_PASS(mpl_dominators_new(ctx, model, false, &t->entries));
    return mpl_dominators_new(ctx, model, true, &t->exits);
}

static void trees_fini(mpl_ctx *ctx, trees *t)
{
    mpl_dominators_fini(ctx, &t->entries);
    mpl_dominators_fini(ctx, &t->exits);
}

static void frame_fini(frame *self)
{
    void *const arrays[] = {self->chain_of, self->birth, self->death,  self->chains, self->legs,
                            self->ops,      self->node,  self->opened, self->id,     self->mark};

    trees_fini(self->ctx, &self->trees);
    MPL_FREE_ALL(self->ctx, arrays);
}

static mpl_status filled(mpl_ctx *ctx, uint32_t n, uint32_t **out)
{
    MPL_PASS(mpl_new(ctx, *out, n));
    if (n > 0)
        memset(*out, 0xff, n * sizeof **out);
    return MPL_OK;
}

static mpl_status frame_init(mpl_ctx *ctx, const mpl_order_model *model, frame *f)
{
    *f = (frame){.ctx = ctx, .model = model};
    MPL_PASS(trees_init(ctx, model, &f->trees));
    MPL_PASS(filled(ctx, model->n, &f->chain_of));
    MPL_PASS(filled(ctx, model->n_buffers, &f->birth));
    MPL_PASS(filled(ctx, model->n_buffers, &f->death));
    MPL_PASS(filled(ctx, model->n, &f->node));
    MPL_PASS(filled(ctx, model->n, &f->opened));
    MPL_PASS(filled(ctx, model->n, &f->mark));
    return filled(ctx, model->n_buffers, &f->id);
}

static bool before_range(const trees *self, range r, uint32_t u)
{
    return r.entry != self->model->n &&
           (u == r.entry || mpl_dominates(&self->entries, u, r.entry) ||
            mpl_dominates(&self->exits, r.entry, u));
}

static bool after_range(const trees *self, range r, uint32_t u)
{
    return r.exit != self->model->n && (u == r.exit || mpl_dominates(&self->exits, u, r.exit) ||
                                        mpl_dominates(&self->entries, r.exit, u));
}

/* How operations outside a range use buffer b, which operations inside it touch. */
typedef struct shared {
    bool first;  /* live before the range begins */
    bool kept;   /* needed after the range ends */
    bool beside; /* operations beside the range may make or free it */
} shared;

/* of[v] == inside: v is inside. */
static shared shared_outside(const trees *self, range r, uint32_t b, const uint32_t *of,
                             uint32_t inside, bool equal)
{
    const mpl_order_model *model = self->model;
    uint32_t n_makers = model->makers.begin[b + 1] - model->makers.begin[b];
    shared s = {.first = model->from_start[b], .kept = model->kept[b]};
    bool made_inside = false;

    for (uint32_t i = model->makers.begin[b]; i < model->makers.begin[b + 1]; i++) {
        uint32_t u = model->makers.item[i];

        if ((of[u] == inside) == equal)
            made_inside = n_makers == 1;
        else if (n_makers == 1 || before_range(self, r, u))
            s.first = true;
        else
            s.beside = s.beside || !after_range(self, r, u);
    }
    for (uint32_t i = model->users.begin[b]; i < model->users.begin[b + 1]; i++) {
        uint32_t u = model->users.item[i];

        if ((of[u] == inside) == equal)
            continue;
        if (made_inside || after_range(self, r, u))
            s.kept = true;
        else
            s.beside = s.beside || !before_range(self, r, u);
    }
    return s;
}

/* ---- local models ---- */

static void local_fini(mpl_ctx *ctx, local *l)
{
    mpl_order_model_free(ctx, l->model);
    mpl_order_arcs_fini(ctx, &l->arcs);
    mpl_free_each(ctx, l->op, l->leg, l->way);
    memset(l, 0, sizeof *l);
}

/* Numbers the nodes: operations in ascending order, a chain where its first operation stands. */
static mpl_status number_nodes(frame *self, const uint32_t *ops, uint32_t n, local *l)
{
    uint32_t n_nodes = 0, n_buffers = 0;

    MPL_PASS(mpl_new_each(self->ctx, n, l->op, l->leg));
    for (uint32_t i = 0; i < n; i++) {
        uint32_t v = ops[i], c = self->chain_of[v];
        const chain *x = c != MPL_NONE ? &self->chains[c] : NULL;

        n_buffers += self->model->makes.begin[v + 1] - self->model->makes.begin[v] +
                     self->model->reads.begin[v + 1] - self->model->reads.begin[v];
        if (x == NULL) {
            l->op[n_nodes] = v;
            self->node[v] = n_nodes++;
            continue;
        }
        for (uint32_t k = 0; self->opened[x->head] == MPL_NONE && k < x->n; k++) {
            l->op[n_nodes + k] = MPL_NONE;
            l->leg[n_nodes + k] = x->first + k;
        }
        if (self->opened[x->head] == MPL_NONE) {
            self->opened[x->head] = n_nodes;
            n_nodes += x->n;
        }
        self->node[v] = self->opened[x->head] + x->n - 1;
    }
    MPL_PASS(filled(self->ctx, n_nodes, &l->way));
    MPL_PASS(mpl_order_model_alloc(self->ctx, n_nodes, n_buffers + n_nodes, &l->model));
    l->model->n_buffers = 0;
    l->model->base = self->model->base;
    return MPL_OK;
}

/* Adds buffer b, if the range makes or frees it. */
static mpl_status add_buffer(frame *self, range r, local *l, uint32_t b)
{
    const mpl_order_model *model = self->model;
    uint32_t born = self->birth[b], dies = self->death[b], id = l->model->n_buffers;
    shared s = shared_outside(&self->trees, r, b, self->node, MPL_NONE, false);

    if (s.first && s.kept)
        l->model->base += model->bytes[b];
    if ((s.first && s.kept) || (born != MPL_NONE && born == dies))
        return MPL_OK;
    self->id[b] = id;
    l->model->bytes[id] = model->bytes[b];
    l->model->from_start[id] = s.first;
    l->model->kept[id] = s.kept;
    l->model->n_buffers++;
    for (uint32_t i = model->makers.begin[b]; !s.first && i < model->makers.begin[b + 1]; i++) {
        uint32_t u = model->makers.item[i];

        if (self->node[u] != MPL_NONE && self->chain_of[u] == born)
            MPL_PASS(mpl_order_add(self->ctx, &l->arcs.makers, id, self->node[u]));
    }
    for (uint32_t i = model->users.begin[b]; i < model->users.begin[b + 1]; i++) {
        uint32_t u = model->users.item[i];

        if (self->node[u] == MPL_NONE || self->chain_of[u] != dies)
            continue;
        if (dies != MPL_NONE)
            u = self->opened[self->chains[dies].head];
        else
            u = self->node[u];
        MPL_PASS(mpl_order_add(self->ctx, &l->arcs.users, id, u));
        if (l->way[u] != MPL_NONE)
            MPL_PASS(mpl_order_add(self->ctx, &l->arcs.under, l->way[u], id));
    }
    return MPL_OK;
}

static mpl_status add_buffers(frame *self, const uint32_t *ops, uint32_t n, range r, local *l)
{
    const mpl_order_model *model = self->model;

    for (uint32_t i = 0; i < n; i++)
        for (int k = 0; k < 2; k++) {
            const mpl_lists *list = k == 0 ? &model->makes : &model->reads;

            for (uint32_t j = list->begin[ops[i]]; j < list->begin[ops[i] + 1]; j++) {
                uint32_t b = list->item[j];

                if (self->id[b] != MPL_NONE)
                    continue;
                self->id[b] = MPL_NONE - 1; /* seen */
                MPL_PASS(add_buffer(self, r, l, b));
            }
        }
    return MPL_OK;
}

/* Adds a way to write in place, as far as its buffers end at single operations. */
static mpl_status add_way(frame *self, local *l, uint32_t node, uint32_t way)
{
    const mpl_order_model *model = self->model;
    uint32_t mine = l->model->n_ways;

    for (uint32_t i = model->under.begin[way]; i < model->under.begin[way + 1]; i++) {
        uint32_t b = model->under.item[i];

        if (self->id[b] >= MPL_NONE - 1 || self->death[b] != MPL_NONE)
            continue;
        MPL_PASS(mpl_order_add(self->ctx, &l->arcs.under, mine, self->id[b]));
        l->model->n_ways = mine + 1;
    }
    if (l->model->n_ways > mine)
        MPL_PASS(mpl_order_add(self->ctx, &l->arcs.ways, node, mine));
    return MPL_OK;
}

static mpl_status add_before(frame *self, local *l, uint32_t node, uint32_t v)
{
    for (uint32_t i = self->model->before.begin[v]; i < self->model->before.begin[v + 1]; i++)
        if (self->node[self->model->before.item[i]] != MPL_NONE)
            MPL_PASS(mpl_order_add(self->ctx, &l->arcs.before, node,
                                   self->node[self->model->before.item[i]]));
    return MPL_OK;
}

/* Adds the legs of a chain. Each leg frees the bytes live before it and makes those live after it.
 * The first leg frees, and the last makes, buffers that other operations use. */
static mpl_status add_chain(frame *self, local *l, const chain *c)
{
    uint32_t first = self->opened[c->head], last_buffer = MPL_NONE;
    uint64_t before = c->level;

    MPL_PASS(add_before(self, l, first, c->head));
    for (uint32_t k = 0; k < c->n; k++) {
        const mpl_leg *leg = &self->legs[c->first + k];
        uint64_t both = before + leg->level;

        if (k > 0) {
            MPL_PASS(mpl_order_add(self->ctx, &l->arcs.before, first + k, first + k - 1));
            MPL_PASS(mpl_order_add(self->ctx, &l->arcs.users, last_buffer, first + k));
        }
        l->model->extra[first + k] = leg->hill > both ? leg->hill - both : 0;
        l->model->saves[first + k] = leg->hill < both ? both - leg->hill : 0;
        if (leg->hill < both) {
            l->way[first + k] = l->model->n_ways++;
            MPL_PASS(mpl_order_add(self->ctx, &l->arcs.ways, first + k, l->way[first + k]));
            if (k > 0)
                MPL_PASS(mpl_order_add(self->ctx, &l->arcs.under, l->way[first + k], last_buffer));
        }
        before = leg->level;
        if (k + 1 == c->n)
            break;
        last_buffer = l->model->n_buffers++;
        l->model->bytes[last_buffer] = leg->level;
        MPL_PASS(mpl_order_add(self->ctx, &l->arcs.makers, last_buffer, first + k));
    }
    return MPL_OK;
}

/* The model of `ops`, ascending: all operations of the range. */
static mpl_status local_new(frame *self, const uint32_t *ops, uint32_t n, range r, local *l)
{
    mpl_status st = MPL_OK;
    const mpl_order_model *model = self->model;

    MPL_TRY(number_nodes(self, ops, n, l));
    for (uint32_t i = 0; i < n; i++)
        if (self->chain_of[ops[i]] != MPL_NONE &&
            self->chains[self->chain_of[ops[i]]].head == ops[i])
            MPL_TRY(add_chain(self, l, &self->chains[self->chain_of[ops[i]]]));
    MPL_TRY(add_buffers(self, ops, n, r, l));
    for (uint32_t i = 0; i < n; i++) {
        uint32_t v = ops[i], node = self->node[v];

        if (self->chain_of[v] != MPL_NONE)
            continue;
        l->model->extra[node] = model->extra[v];
        l->model->saves[node] = model->saves[v];
        MPL_TRY(add_before(self, l, node, v));
        for (uint32_t k = model->ways.begin[v]; k < model->ways.begin[v + 1]; k++)
            MPL_TRY(add_way(self, l, node, model->ways.item[k]));
    }
    MPL_TRY(mpl_order_model_finish(self->ctx, l->model, &l->arcs));
out:
    for (uint32_t i = 0; i < n; i++) {
        self->node[ops[i]] = self->opened[ops[i]] = MPL_NONE;
        for (uint32_t k = model->makes.begin[ops[i]]; k < model->makes.begin[ops[i] + 1]; k++)
            self->id[model->makes.item[k]] = MPL_NONE;
        for (uint32_t k = model->reads.begin[ops[i]]; k < model->reads.begin[ops[i] + 1]; k++)
            self->id[model->reads.item[k]] = MPL_NONE;
    }
    return st;
}

/* Appends the operations of a node; returns their number. */
static uint32_t unfold(const frame *self, const local *l, uint32_t node, uint32_t *ops)
{
    const mpl_leg *leg;

    if (l->op[node] != MPL_NONE) {
        ops[0] = l->op[node];
        return 1;
    }
    leg = &self->legs[l->leg[node]];
    memcpy(ops, self->ops + leg->begin, leg->n * sizeof *ops);
    return leg->n;
}

/* ---- chains ---- */

/* The buffers that each operation makes (k = 0) or uses (k = 1). */
static const mpl_lists *touched(const mpl_order_model *model, int k)
{
    return k == 0 ? &model->makes : &model->reads;
}

/* Whether no operation beside the range touches a buffer of its operations. of[v] == inside: v is
 * in the range. */
static bool stands_alone(const trees *self, const uint32_t *ops, uint32_t n, range r,
                         const uint32_t *of, uint32_t inside)
{
    for (uint32_t i = 0; i < n; i++)
        for (int k = 0; k < 2; k++) {
            const mpl_lists *lists = touched(self->model, k);

            for (uint32_t j = lists->begin[ops[i]]; j < lists->begin[ops[i] + 1]; j++)
                if (shared_outside(self, r, lists->item[j], of, inside, true).beside)
                    return false;
        }
    return true;
}

/* Records `ops`, ascending, as a chain of these legs; their operations are in self->ops. */
static mpl_status add_chain_of(frame *self, const uint32_t *ops, uint32_t n, range r,
                               uint64_t level, const mpl_leg *legs, uint32_t n_legs)
{
    uint32_t id = self->n_chains;

    MPL_PASS(mpl_reserve(self->ctx, self->chains, self->chain_cap, (size_t)id + 1));
    MPL_PASS(mpl_reserve(self->ctx, self->legs, self->leg_cap, self->n_legs + n_legs));
    self->chains[self->n_chains++] = (chain){ops[0], (uint32_t)self->n_legs, n_legs, level};
    memcpy(self->legs + self->n_legs, legs, n_legs * sizeof *legs);
    self->n_legs += n_legs;
    for (uint32_t i = 0; i < n; i++)
        self->chain_of[ops[i]] = id;
    for (uint32_t i = 0; i < n; i++)
        for (int k = 0; k < 2; k++) {
            const mpl_lists *lists = touched(self->model, k);

            for (uint32_t j = lists->begin[ops[i]]; j < lists->begin[ops[i] + 1]; j++) {
                uint32_t b = lists->item[j];
                shared s = shared_outside(&self->trees, r, b, self->chain_of, id, true);

                if (!s.first)
                    self->birth[b] = id;
                if (!s.kept)
                    self->death[b] = id;
            }
        }
    return MPL_OK;
}

/* Orders a local model along its sets. If that order is exact, its operations become a chain of the
 * frame. ops: the operations of the frame, ascending. */
static mpl_status order_local(frame *self, const local *l, const mpl_sets *sets,
                              const uint32_t *ops, uint32_t n, range r, bool *exact)
{
    mpl_status st = MPL_OK;
    mpl_leg *legs = NULL;
    uint32_t *nodes = NULL, n_legs;
    size_t from = self->n_ops;

    MPL_TRY(mpl_new_each(self->ctx, l->model->n, legs, nodes));
    MPL_TRY(mpl_valleys(self->ctx, sets, l->model->n, legs, nodes, &n_legs, exact));
    if (!*exact)
        goto out;
    MPL_TRY(mpl_reserve(self->ctx, self->ops, self->op_cap, self->n_ops + n));
    for (uint32_t i = 0; i < n_legs; i++) {
        uint32_t begin = (uint32_t)from;

        for (uint32_t k = legs[i].begin; k < legs[i].begin + legs[i].n; k++)
            from += unfold(self, l, nodes[k], self->ops + from);
        legs[i].begin = begin;
        legs[i].n = (uint32_t)from - begin;
    }
    mpl_assert(from == self->n_ops + n);
    self->n_ops = from;
    MPL_TRY(add_chain_of(self, ops, n, r, sets->live[0], legs, n_legs));
out:
    mpl_free_each(self->ctx, legs, nodes);
    return st;
}

static int by_id(const void *a, const void *b)
{
    const uint32_t *x = a, *y = b;

    return (*x > *y) - (*x < *y);
}

/* ---- runs ---- */

static void mark_all(frame *self, const uint32_t *ops, uint32_t n, uint32_t mark)
{
    for (uint32_t i = 0; i < n; i++)
        self->mark[ops[i]] = mark;
}

/* The operations of nodes of a local model; returns their number. */
static uint32_t unfold_all(const frame *self, const local *l, const uint32_t *nodes, uint32_t n,
                           uint32_t *ops)
{
    uint32_t n_ops = 0;

    for (uint32_t i = 0; i < n; i++)
        n_ops += unfold(self, l, nodes[i], ops + n_ops);
    return n_ops;
}

/* Makes a chain of run[0 .. n), consecutive nodes of a local model, if no operation beside them
 * touches their buffers. scratch[n_ops]. */
static mpl_status order_run(frame *self, const local *of, const uint32_t *run, uint32_t n,
                            uint32_t *scratch)
{
    mpl_status st = MPL_OK;
    uint32_t n_ops = unfold_all(self, of, run, n, scratch);
    range r = {scratch[0], scratch[n_ops - 1]};
    local l = {0};
    mpl_sets sets = {0};
    bool exact, alone;

    mark_all(self, scratch, n_ops, 0);
    alone = stands_alone(&self->trees, scratch, n_ops, r, self->mark, 0);
    mark_all(self, scratch, n_ops, MPL_NONE);
    if (!alone)
        return MPL_OK;
    qsort(scratch, n_ops, sizeof *scratch, by_id);
    MPL_TRY(local_new(self, scratch, n_ops, r, &l));
    MPL_TRY(mpl_sets_along(self->ctx, l.model, &sets));
    MPL_TRY(order_local(self, &l, &sets, scratch, n_ops, r, &exact));
out:
    local_fini(self->ctx, &l);
    mpl_sets_fini(self->ctx, &sets);
    return st;
}

/* The operation that directly follows v in every order but for independent ones; or MPL_NONE. */
static uint32_t follower(const trees *self, uint32_t v)
{
    uint32_t w = self->exits.parent[v];

    return w != self->model->n && self->entries.parent[w] == v &&
                   self->entries.size[v] == self->entries.size[w] + 1
               ? w
               : MPL_NONE;
}

/* Cuts the run [0, n) at each node that shares a buffer with an operation beside the run, and
 * orders the pieces. scratch, all: [n_ops]. alone[l->m->n]: result of the check for each node. */
static mpl_status order_pieces(frame *self, const local *l, const uint32_t *run, uint32_t n,
                               uint32_t *scratch, uint32_t *all, uint8_t *alone)
{
    uint32_t n_all = unfold_all(self, l, run, n, all), from = 0;
    range r = {all[0], all[n_all - 1]};

    mark_all(self, all, n_all, 0);
    for (uint32_t i = 0; i < n; i++) {
        uint32_t n_ops = unfold(self, l, run[i], scratch);

        alone[run[i]] = stands_alone(&self->trees, scratch, n_ops, r, self->mark, 0);
    }
    mark_all(self, all, n_all, MPL_NONE);
    for (uint32_t i = 0; i <= n; i++) {
        if (i < n && alone[run[i]])
            continue;
        if (i - from > 1)
            MPL_PASS(order_run(self, l, run + from, i - from, scratch));
        from = i + 1;
    }
    return MPL_OK;
}

/* Makes chains of the runs of a local model of n_ops operations. */
static mpl_status order_runs(frame *self, const local *l, uint32_t n_ops)
{
    mpl_status st = MPL_OK;
    trees t = {0};
    uint32_t *run = NULL, *scratch = NULL, *all = NULL;
    uint8_t *seen = NULL, *alone = NULL;

    MPL_TRY(trees_init(self->ctx, l->model, &t));
    MPL_TRY(mpl_new(self->ctx, run, l->model->n));
    MPL_TRY(mpl_new_each(self->ctx, n_ops, scratch, all));
    MPL_TRY(mpl_new_each(self->ctx, l->model->n, seen, alone));
    for (uint32_t v = 0; v < l->model->n; v++) {
        uint32_t n = 0;

        for (uint32_t at = v; at != MPL_NONE && !seen[at]; at = follower(&t, at)) {
            seen[at] = 1;
            run[n++] = at;
        }
        if (n > 1)
            MPL_TRY(order_pieces(self, l, run, n, scratch, all, alone));
    }
out:
    trees_fini(self->ctx, &t);
    mpl_free_each(self->ctx, run, scratch, all, seen, alone);
    return st;
}

/* ---- regions ---- */

/* The local model of `ops`, in which each run has become a chain. */
static mpl_status fold(frame *self, const uint32_t *ops, uint32_t n, range r, local *out)
{
    mpl_status st = MPL_OK;
    local plain = {0};

    MPL_TRY(local_new(self, ops, n, r, &plain));
    MPL_TRY(order_runs(self, &plain, n));
    MPL_TRY(local_new(self, ops, n, r, out));
out:
    local_fini(self->ctx, &plain);
    return st;
}

/* Makes a chain of a region if no operation beside it touches its buffers and it has few closed
 * sets. *small false: too many sets. */
static mpl_status order_region(frame *self, const uint32_t *ops, uint32_t n, range r,
                               uint64_t *ticks, bool *small)
{
    mpl_status st = MPL_OK;
    local l = {0};
    mpl_sets sets = {0};
    bool exact;

    MPL_TRY(fold(self, ops, n, r, &l));
    *ticks += n;
    *small = l.model->n <= MOST_NODES;
    if (*small)
        MPL_TRY(mpl_sets_of(self->ctx, l.model, MOST_SETS, ticks, &sets, small));
    if (*small)
        MPL_TRY(order_local(self, &l, &sets, ops, n, r, &exact));
out:
    local_fini(self->ctx, &l);
    mpl_sets_fini(self->ctx, &sets);
    return st;
}

/* A region: the operations between `entry` and `exit`, the next operation that every path
 * passes. */
typedef struct region {
    uint32_t n, entry, exit;
} region;

static int by_size(const void *a, const void *b)
{
    const region *x = a, *y = b;

    if (x->n != y->n)
        return x->n > y->n ? 1 : -1;
    return (x->exit > y->exit) - (x->exit < y->exit);
}

static uint32_t find_regions(const trees *self, region *out)
{
    uint32_t n = self->model->n, n_regions = 0;

    for (uint32_t exit = 0; exit < n; exit++) {
        uint32_t entry = self->entries.parent[exit],
                 size = self->entries.size[entry] - 1 - self->entries.size[exit];

        if (size > 0 && self->exits.parent[entry] == exit)
            out[n_regions++] = (region){size, entry, exit};
    }
    if (n_regions > 0)
        qsort(out, n_regions, sizeof *out, by_size);
    return n_regions;
}

/* The operations of a region, ascending. */
static void gather(const trees *self, region x, uint32_t *ops)
{
    const mpl_dominators *dominators = &self->entries;
    uint32_t n = 0;

    for (uint32_t at = dominators->place[x.entry] + 1;
         at < dominators->place[x.entry] + dominators->size[x.entry]; at++)
        if (at < dominators->place[x.exit] ||
            at >= dominators->place[x.exit] + dominators->size[x.exit])
            ops[n++] = dominators->at[at];
    mpl_assert(n == x.n);
    qsort(ops, n, sizeof *ops, by_id);
}

/* Orders the regions, the smallest first. A region that contains one with too many sets has too
 * many itself. */
static mpl_status order_regions(frame *self, uint64_t *ticks)
{
    mpl_status st = MPL_OK;
    region *regions = NULL;
    uint32_t *ops = NULL, *of = NULL, n;
    uint8_t *large = NULL;

    MPL_TRY(mpl_new_each(self->ctx, self->model->n, regions, ops, large));
    MPL_TRY(filled(self->ctx, self->model->n, &of));
    n = find_regions(&self->trees, regions);
    for (uint32_t i = 0; i < n; i++) {
        range r = {regions[i].entry, regions[i].exit};
        bool small = true;

        gather(&self->trees, regions[i], ops);
        for (uint32_t k = 0; k < regions[i].n; k++) {
            of[ops[k]] = i;
            small = small && !large[ops[k]];
        }
        if (small && stands_alone(&self->trees, ops, regions[i].n, r, of, i))
            MPL_TRY(order_region(self, ops, regions[i].n, r, ticks, &small));
        for (uint32_t k = 0; !small && k < regions[i].n; k++)
            large[ops[k]] = 1;
    }
out:
    mpl_free_each(self->ctx, regions, ops, large, of);
    return st;
}

mpl_status mpl_order_reduce(mpl_ctx *ctx, const mpl_order_model *model, uint64_t *ticks,
                            mpl_order_reduced *out)
{
    mpl_status st = MPL_OK;
    mpl_order_reduced x = {0};
    frame f = {0};
    local l = {0};
    uint32_t *all = NULL;
    bool small;

    mpl_assert(!model->backward);
    MPL_TRY(frame_init(ctx, model, &f));
    MPL_TRY(order_regions(&f, ticks));
    MPL_TRY(mpl_new(ctx, all, model->n));
    for (uint32_t v = 0; v < model->n; v++)
        all[v] = v;
    MPL_TRY(order_region(&f, all, model->n, (range){model->n, model->n}, ticks, &small));
    MPL_TRY(local_new(&f, all, model->n, (range){model->n, model->n}, &l));
    MPL_TRY(mpl_new(ctx, x.begin, (size_t)l.model->n + 1));
    MPL_TRY(mpl_new(ctx, x.item, model->n));
    for (uint32_t i = 0; i < l.model->n; i++)
        x.begin[i + 1] = x.begin[i] + unfold(&f, &l, i, x.item + x.begin[i]);
    mpl_assert(x.begin[l.model->n] == model->n);
    for (uint32_t b = 0; b < model->n_buffers; b++) /* buffers that no operation touches */
        if (model->from_start[b] && model->users.begin[b + 1] == model->users.begin[b] &&
            model->makers.begin[b + 1] == model->makers.begin[b])
            l.model->base += model->bytes[b];
    x.model = l.model, l.model = NULL;
    *out = x, x = (mpl_order_reduced){0};
out:
    mpl_order_reduced_fini(ctx, &x);
    frame_fini(&f);
    local_fini(ctx, &l);
    mpl_free(ctx, all);
    return st;
}

void mpl_order_reduced_fini(mpl_ctx *ctx, mpl_order_reduced *r)
{
    mpl_order_model_free(ctx, r->model);
    mpl_free_each(ctx, r->begin, r->item);
    memset(r, 0, sizeof *r);
}
