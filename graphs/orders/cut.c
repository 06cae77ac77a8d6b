/* cut.c -- minimum cuts: bounds for every order, and better orders. See orders_priv.h and
 * ORDERS.md, "Bounds by cuts".
 *
 * Source   live bytes as a cut, and mending: this project; maximum flow: E. A. Dinic, 1970.
 * Cost     One or a few maximum flows for each operation whose cost in the current order exceeds
 *          the proved bound. */
#include "graphs/orders/orders_priv.h"

#include <stdlib.h>

typedef struct network {
    uint32_t n_nodes, n_arcs;  /* arc i ^ 1 is the reverse of arc i */
    uint32_t *begin, *arc;     /* [n_nodes + 1] into arc: outgoing arcs of a node */
    uint32_t *from, *to;       /* [n_arcs] */
    uint64_t *capacity, *left; /* [n_arcs] capacity; what the flow leaves of it */
    uint32_t *level, *queue, *next, *path;
} network;

static const uint64_t INFINITE = INT64_MAX;

typedef struct cutter {
    mpl_ctx *ctx;
    const mpl_order_model *model;
    mpl_effort *effort;
    network net;
    uint32_t source, sink;
    uint32_t *live_arc;  /* [n_buffers] arc that carries a buffer's bytes */
    uint32_t *users_arc; /* [n_buffers] arc to the first user of a buffer that is not kept */
    uint8_t *side;       /* [n] 1: done, 2: not done, 0: open */
    uint8_t *best;       /* [n] 1: done in the cheapest set for the operation queried last */
    uint32_t *stack;
    uint32_t *group; /* [n_group] operations, none of which is done yet */
    uint32_t n_group;
} cutter;

static void set_arc(network *self, uint32_t i, uint32_t from, uint32_t to, uint64_t capacity)
{
    self->from[i] = self->to[i + 1] = from;
    self->to[i] = self->from[i + 1] = to;
    self->capacity[i] = capacity;
    self->capacity[i + 1] = 0;
}

/* Arcs 4 v and 4 v + 2 connect operation v to source and sink; each query sets them. */
static mpl_status make_network(cutter *self)
{
    const mpl_order_model *model = self->model;
    network *g = &self->net;
    uint32_t n = 0, at = 4 * model->n, extra;

    self->source = model->n + model->n_buffers;
    self->sink = self->source + 1;
    extra = self->sink + 1; /* a node for "one of its makers is done" */
    n = 2 * model->n + model->before.begin[model->n] + model->n_buffers +
        model->users.begin[model->n_buffers] + model->makers.begin[model->n_buffers];
    MPL_PASS(mpl_new_each(self->ctx, model->n_buffers, self->live_arc, self->users_arc));
    MPL_PASS(mpl_new_each(self->ctx, (size_t)n * 2, g->from, g->to, g->capacity, g->left));
    for (uint32_t v = 0; v < model->n; v++) {
        set_arc(g, 4 * v, self->source, v, 0);
        set_arc(g, 4 * v + 2, v, self->sink, 0);
        for (uint32_t i = model->before.begin[v]; i < model->before.begin[v + 1]; i++, at += 2)
            set_arc(g, at, v, model->before.item[i], INFINITE);
    }
    for (uint32_t b = 0; b < model->n_buffers; b++) {
        uint32_t maker =
            model->from_start[b] ? self->source : model->makers.item[model->makers.begin[b]];

        if (!model->from_start[b] && model->makers.begin[b + 1] - model->makers.begin[b] > 1) {
            maker = extra++;
            for (uint32_t i = model->makers.begin[b]; i < model->makers.begin[b + 1]; i++, at += 2)
                set_arc(g, at, model->makers.item[i], maker, INFINITE);
        }
        set_arc(g, at, maker, model->kept[b] ? self->sink : model->n + b, model->bytes[b]);
        self->live_arc[b] = at;
        at += 2;
        self->users_arc[b] = at;
        for (uint32_t i = model->users.begin[b]; !model->kept[b] && i < model->users.begin[b + 1];
             i++, at += 2)
            set_arc(g, at, model->n + b, model->users.item[i], INFINITE);
    }
    g->n_arcs = at;
    g->n_nodes = extra;
    MPL_PASS(mpl_lists_new(self->ctx, g->n_nodes, g->n_arcs, g->from, NULL, &g->begin, &g->arc));
    MPL_PASS(mpl_new_each(self->ctx, g->n_nodes, g->level, g->queue, g->next));
    return mpl_new(self->ctx, g->path, g->n_nodes);
}

/* Distances from the source over arcs with residual capacity; false: the sink is unreachable. */
static bool set_levels(network *self, uint32_t source, uint32_t sink, uint64_t *ticks)
{
    uint32_t n = 0;

    memset(self->level, 0xff, self->n_nodes * sizeof *self->level);
    self->level[source] = 0;
    self->queue[n++] = source;
    for (uint32_t head = 0; head < n && self->level[sink] == MPL_NONE; head++) {
        uint32_t u = self->queue[head];

        for (uint32_t i = self->begin[u]; i < self->begin[u + 1]; i++) {
            uint32_t a = self->arc[i];

            if (self->left[a] == 0 || self->level[self->to[a]] != MPL_NONE)
                continue;
            self->level[self->to[a]] = self->level[u] + 1;
            self->queue[n++] = self->to[a];
        }
    }
    *ticks += n + 1;
    return self->level[sink] != MPL_NONE;
}

/* Sends flow along one path of ascending levels; returns its amount, 0: no path is left. */
static uint64_t send_path(network *self, uint32_t source, uint32_t sink)
{
    uint32_t depth = 0, u = source;
    uint64_t room = INFINITE;

    while (u != sink) {
        uint32_t a = MPL_NONE;

        for (; self->next[u] < self->begin[u + 1] && a == MPL_NONE; self->next[u]++) {
            uint32_t i = self->arc[self->next[u]];

            if (self->left[i] > 0 && self->level[self->to[i]] == self->level[u] + 1)
                a = i;
        }
        if (a == MPL_NONE) { /* dead end: back up, try the next arc */
            if (depth == 0)
                return 0;
            self->level[u] = MPL_NONE;
            u = self->from[self->path[--depth]];
            continue;
        }
        self->next[u]--; /* it may have capacity for the next path */
        self->path[depth++] = a;
        u = self->to[a];
    }
    for (uint32_t i = 0; i < depth; i++)
        room = mpl_min_u64(room, self->left[self->path[i]]);
    for (uint32_t i = 0; i < depth; i++) {
        self->left[self->path[i]] -= room;
        self->left[self->path[i] ^ 1] += room;
    }
    return room;
}

/* The maximum flow from source to sink, cut off at `enough`. */
static uint64_t max_flow(cutter *self, uint64_t enough)
{
    network *g = &self->net;
    uint64_t sum = 0, sent;

    for (uint32_t v = 0; v < self->model->n; v++) {
        g->capacity[4 * v] = self->side[v] == 1 ? INFINITE : 0;
        g->capacity[4 * v + 2] = self->side[v] == 2 ? INFINITE : 0;
    }
    memcpy(g->left, g->capacity, g->n_arcs * sizeof *g->left);
    self->effort->ticks += g->n_arcs / 4;
    while (sum < enough && set_levels(g, self->source, self->sink, &self->effort->ticks)) {
        memcpy(g->next, g->begin, g->n_nodes * sizeof *g->next);
        while (sum < enough && (sent = send_path(g, self->source, self->sink)) > 0) {
            sum += sent;
            self->effort->ticks++;
        }
    }
    return sum;
}

/* Marks v and all it reaches over `lists` as `side`; false: one is on the other side already. */
static bool mark(cutter *self, uint32_t v, const mpl_lists *lists, uint8_t side)
{
    uint32_t n = 0;

    if (self->side[v] != 0)
        return self->side[v] == side;
    self->side[v] = side;
    self->stack[n++] = v;
    while (n > 0) {
        uint32_t u = self->stack[--n];

        for (uint32_t i = lists->begin[u]; i < lists->begin[u + 1]; i++) {
            uint32_t w = lists->item[i];

            if (self->side[w] != 0 && self->side[w] != side)
                return false;
            if (self->side[w] == 0)
                self->side[w] = side, self->stack[n++] = w;
        }
    }
    return true;
}

/* Query: v's ancestors are done, neither v nor an operation of the group is; false: impossible. */
static bool pose(cutter *self, uint32_t v)
{
    const mpl_order_model *model = self->model;
    bool possible;

    memset(self->side, 0, model->n);
    possible = mark(self, v, &model->after, 2);
    for (uint32_t i = 0; possible && i < self->n_group; i++)
        possible = mark(self, self->group[i], &model->after, 2);
    for (uint32_t i = model->before.begin[v]; possible && i < model->before.begin[v + 1]; i++)
        possible = mark(self, model->before.item[i], &model->before, 1);
    return possible;
}

/* Sets the capacities of the arcs from the buffers of a way to v. v is not done, so each of these
 * buffers counts in every cut, with or without its other users. With `saves` it counts less if all
 * others are done: not at all, or, of a single buffer, as far as it is larger than what is saved.
 */
static void set_way(cutter *self, uint32_t v, uint32_t way, bool saves)
{
    const mpl_order_model *model = self->model;
    uint32_t n = model->under.begin[way + 1] - model->under.begin[way];

    for (uint32_t i = model->under.begin[way]; i < model->under.begin[way + 1]; i++) {
        uint32_t b = model->under.item[i], at = self->users_arc[b];
        uint64_t rest =
            n == 1 && model->bytes[b] > model->saves[v] ? model->bytes[b] - model->saves[v] : 0;

        if (model->kept[b])
            continue;
        for (uint32_t k = model->users.begin[b]; model->users.item[k] != v; k++)
            at += 2;
        self->net.capacity[at] = saves ? rest : INFINITE;
    }
}

/* Reads a minimum cut into best[]: what the source reaches, or all that does not reach the sink. */
static void read_cut(cutter *self, bool largest)
{
    network *g = &self->net;
    uint32_t n = 0;

    if (!largest) { /* levels of the last path search */
        for (uint32_t v = 0; v < self->model->n; v++)
            self->best[v] = g->level[v] != MPL_NONE;
        return;
    }
    memset(g->level, 0xff, g->n_nodes * sizeof *g->level);
    g->level[self->sink] = 0;
    g->queue[n++] = self->sink;
    for (uint32_t head = 0; head < n; head++)
        for (uint32_t i = g->begin[g->queue[head]]; i < g->begin[g->queue[head] + 1]; i++) {
            uint32_t from = g->to[g->arc[i]];

            if (g->left[g->arc[i] ^ 1] == 0 || g->level[from] != MPL_NONE)
                continue;
            g->level[from] = 0;
            g->queue[n++] = from;
        }
    self->effort->ticks += n / 4 + 1;
    for (uint32_t v = 0; v < self->model->n; v++)
        self->best[v] = g->level[v] == MPL_NONE;
}

typedef enum wanted { COST, SMALLEST, LARGEST } wanted;

/* Sets whether cuts count what v makes together with other operations. While v runs it is there in
 * any case, so it counts with v. */
static void count_made(cutter *self, uint32_t v, bool counted)
{
    const mpl_order_model *model = self->model;

    for (uint32_t i = model->makes.begin[v]; i < model->makes.begin[v + 1]; i++) {
        uint32_t b = model->makes.item[i];

        self->net.capacity[self->live_arc[b]] = counted ? model->bytes[b] : 0;
    }
}

/* least_cost, without what is common to all ways to run v. */
static uint64_t least_of_ways(cutter *self, uint32_t v, uint64_t own, uint64_t enough, wanted what)
{
    const mpl_order_model *model = self->model;
    uint64_t least = own + max_flow(self, enough);

    if (what != COST)
        read_cut(self, what == LARGEST);
    for (uint32_t i = model->ways.begin[v]; i < model->ways.begin[v + 1]; i++) {
        uint64_t cost;

        set_way(self, v, model->ways.item[i], true);
        cost = own + max_flow(self, enough);
        set_way(self, v, model->ways.item[i], false);
        if (cost >= least)
            continue;
        least = cost;
        if (what != COST)
            read_cut(self, what == LARGEST);
    }
    return least;
}

/* The least cost of v in any order where no operation of the group precedes it, cut off at
 * `enough`; UINT64_MAX: no such order. best[]: its set, if wanted and below `enough`. */
static uint64_t least_cost(cutter *self, uint32_t v, uint64_t enough, wanted what)
{
    const mpl_order_model *model = self->model;
    uint64_t own = model->base + model->extra[v], least;

    for (uint32_t i = model->makes.begin[v]; i < model->makes.begin[v + 1]; i++)
        own += model->bytes[model->makes.item[i]];
    if (!pose(self, v))
        return UINT64_MAX;
    count_made(self, v, false);
    least = least_of_ways(self, v, own, enough, what);
    count_made(self, v, true);
    return least;
}

typedef struct costly {
    uint64_t cost;
    uint32_t v;
} costly;

static int by_cost(const void *a, const void *b)
{
    const costly *x = a, *y = b;

    if (x->cost != y->cost)
        return x->cost < y->cost ? 1 : -1;
    return (x->v > y->v) - (x->v < y->v);
}

static mpl_status cutter_init(cutter *self)
{
    mpl_assert(!self->model->backward);
    MPL_PASS(mpl_new_each(self->ctx, self->model->n, self->side, self->best, self->stack));
    return make_network(self);
}

static void cutter_fini(cutter *self)
{
    network *g = &self->net;
    void *const arrays[] = {g->begin,   g->arc,     g->from,     g->to,          g->capacity,
                            g->left,    g->level,   g->queue,    g->next,        g->path,
                            self->side, self->best, self->stack, self->live_arc, self->users_arc};

    MPL_FREE_ALL(self->ctx, arrays);
}

/* The cost of each operation in `order`, highest first. The caller frees *out. */
static mpl_status costs_of(mpl_ctx *ctx, const mpl_order_model *model, const uint32_t *order,
                           costly **out)
{
    mpl_status st = MPL_OK;
    mpl_order_walk walk = {0};
    costly *at = NULL;

    MPL_TRY(mpl_order_walk_init(ctx, model, &walk));
    MPL_TRY(mpl_new(ctx, at, model->n));
    for (uint32_t i = 0; i < model->n; i++) {
        at[i] = (costly){mpl_order_walk_cost(&walk, order[i]), order[i]};
        mpl_order_walk_run(&walk, order[i]);
    }
    qsort(at, model->n, sizeof *at, by_cost);
    *out = at, at = NULL;
out:
    mpl_order_walk_fini(ctx, &walk);
    mpl_free(ctx, at);
    return st;
}

mpl_status mpl_order_cut_bound(mpl_ctx *ctx, const mpl_order_model *model, const uint32_t *order,
                               uint64_t known, mpl_effort *effort, uint64_t *bound)
{
    mpl_status st = MPL_OK;
    cutter c = {.ctx = ctx, .model = model, .effort = effort};
    costly *at = NULL;

    *bound = known;
    MPL_TRY(cutter_init(&c));
    MPL_TRY(costs_of(ctx, model, order, &at));
    for (uint32_t i = 0; i < model->n && at[i].cost > *bound && !mpl_effort_spent(effort); i++)
        *bound = mpl_max_u64(*bound, least_cost(&c, at[i].v, at[i].cost, COST));
out:
    cutter_fini(&c);
    mpl_free(ctx, at);
    return st;
}

/* ---- arenas ---- */

enum { MOST_TESTED = 16 }; /* operations that are tried to prove an arena */

/* Whether b, which has one maker at most, may be live while an operation runs whose ancestors are
 * done (self->side). Marks what must be done for it. */
static bool make_live(cutter *self, uint32_t b)
{
    const mpl_order_model *model = self->model;
    bool open = model->kept[b];

    for (uint32_t i = model->users.begin[b]; i < model->users.begin[b + 1]; i++)
        open = open || self->side[model->users.item[i]] != 1;
    return open && (model->from_start[b] ||
                    mark(self, model->makers.item[model->makers.begin[b]], &model->before, 1));
}

/* Whether b is one of the buffers that v makes, or may write over. */
static bool is_at(const mpl_order_model *model, uint32_t v, uint32_t b)
{
    for (uint32_t i = model->makes.begin[v]; i < model->makes.begin[v + 1]; i++)
        if (model->makes.item[i] == b)
            return true;
    for (uint32_t i = model->ways.begin[v]; i < model->ways.begin[v + 1]; i++)
        for (uint32_t k = model->under.begin[model->ways.item[i]];
             k < model->under.begin[model->ways.item[i] + 1]; k++)
            if (model->under.item[k] == b)
                return true;
    return false;
}

/* Whether an arena with b on top at v's step is never below `goal`; `least` is v's least cost. */
static bool holds_under(cutter *self, uint32_t v, uint32_t b, uint64_t least, uint64_t goal)
{
    const mpl_order_model *model = self->model;
    uint64_t own = model->base + model->extra[v] + model->bytes[b], cost;

    if (least - mpl_min_u64(least, model->rest[b]) >= goal)
        return true;
    if (is_at(model, v, b) || model->makers.begin[b + 1] - model->makers.begin[b] > 1)
        return false;
    if (!pose(self, v) || !make_live(self, b))
        return true;
    for (uint32_t i = model->makes.begin[v]; i < model->makes.begin[v + 1]; i++)
        own += model->bytes[model->makes.item[i]];
    self->net.capacity[self->live_arc[b]] = 0; /* it is live, so it counts in `own` */
    count_made(self, v, false);
    cost = least_of_ways(self, v, own, UINT64_MAX, COST);
    count_made(self, v, true);
    self->net.capacity[self->live_arc[b]] = model->bytes[b];
    return cost - model->rest[b] >= goal;
}

/* Whether no arena is below `goal` at v's step, whichever buffer is on top then. */
static bool holds_at(cutter *self, uint32_t v, uint64_t goal)
{
    const mpl_order_model *model = self->model;
    uint64_t least = least_cost(self, v, UINT64_MAX, COST);

    if (least < goal || least - mpl_min_u64(least, model->extra_rest[v]) < goal)
        return false;
    for (uint32_t b = 0; b < model->n_buffers; b++)
        if (model->rest[b] > 0 &&
            (mpl_effort_spent(self->effort) || !holds_under(self, v, b, least, goal)))
            return false;
    return true;
}

mpl_status mpl_order_arena_bound(mpl_ctx *ctx, const mpl_order_model *model, const uint32_t *order,
                                 uint64_t goal, mpl_effort *effort, bool *proved)
{
    mpl_status st = MPL_OK;
    cutter c = {.ctx = ctx, .model = model, .effort = effort};
    costly *at = NULL;

    *proved = false;
    MPL_TRY(cutter_init(&c));
    MPL_TRY(costs_of(ctx, model, order, &at));
    for (uint32_t i = 0; i < model->n && i < MOST_TESTED && at[i].cost >= goal && !*proved; i++)
        *proved = holds_at(&c, at[i].v, goal);
out:
    cutter_fini(&c);
    mpl_free(ctx, at);
    return st;
}

/* ---- mending ---- */

/* Reorders: operations in best[] first, then v, then the others; otherwise stable. */
static void mend_at(const cutter *self, uint32_t v, uint32_t *order, uint32_t *scratch)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < self->model->n; i++)
        if (self->best[order[i]])
            scratch[n++] = order[i];
    scratch[n++] = v;
    for (uint32_t i = 0; i < self->model->n; i++)
        if (!self->best[order[i]] && order[i] != v)
            scratch[n++] = order[i];
    memcpy(order, scratch, n * sizeof *order);
}

/* The first operation of the highest cost. */
static uint32_t costliest(mpl_order_walk *walk, const uint32_t *order, uint64_t *most)
{
    uint32_t found = order[0];

    *most = 0;
    mpl_order_walk_reset(walk);
    for (uint32_t i = 0; i < walk->model->n; i++) {
        uint64_t cost = mpl_order_walk_cost(walk, order[i]);

        if (cost > *most) {
            *most = cost;
            found = order[i];
        }
        mpl_order_walk_run(walk, order[i]);
    }
    return found;
}

enum { MOST_TURNS = 4 }; /* most times that one operation is moved */

mpl_status mpl_order_mend(mpl_ctx *ctx, const mpl_order_model *model, uint64_t floor, bool largest,
                          mpl_effort *effort, uint32_t *order, uint64_t *peak)
{
    mpl_status st = MPL_OK;
    cutter c = {.ctx = ctx, .model = model, .effort = effort};
    mpl_order_walk walk = {0};
    uint32_t *now = NULL, *scratch = NULL, v;
    uint8_t *turns = NULL;
    uint64_t most;

    if (model->n == 0 || *peak <= floor)
        return MPL_OK;
    MPL_TRY(cutter_init(&c));
    MPL_TRY(mpl_order_walk_init(ctx, model, &walk));
    MPL_TRY(mpl_new_each(ctx, model->n, now, scratch, turns));
    memcpy(now, order, model->n * sizeof *now);
    v = costliest(&walk, now, &most);
    while (most > floor && turns[v] < MOST_TURNS && !mpl_effort_spent(effort)) {
        turns[v]++;
        least_cost(&c, v, UINT64_MAX, largest ? LARGEST : SMALLEST);
        mend_at(&c, v, now, scratch);
        v = costliest(&walk, now, &most);
        effort->ticks += model->n;
        if (most >= *peak)
            continue;
        *peak = most;
        memcpy(order, now, model->n * sizeof *order);
        memset(turns, 0, model->n);
    }
out:
    cutter_fini(&c);
    mpl_order_walk_fini(ctx, &walk);
    mpl_free_each(ctx, now, scratch, turns);
    return st;
}

/* ---- group bounds ---- */

enum { MOST_GROUP = 64 };

/* The operation of the group that costs least as the first of them. */
static uint32_t cheapest(cutter *self, uint64_t *least)
{
    uint32_t found = self->group[0];

    *least = UINT64_MAX;
    for (uint32_t i = 0; i < self->n_group; i++) {
        uint64_t cost = least_cost(self, self->group[i], *least, COST);

        if (cost < *least) {
            *least = cost;
            found = self->group[i];
        }
    }
    return found;
}

/* Mends the first n entries of `order` in place until their peak is below `peak`. *found: the
 * costliest operation of this prefix; MPL_NONE: the prefix stays below. */
static mpl_status mend_way(cutter *self, uint32_t *order, uint32_t n, uint64_t peak,
                           uint32_t *found)
{
    mpl_status st = MPL_OK;
    mpl_order_model *way = NULL;
    mpl_order_walk walk = {0};
    uint32_t *ids = NULL, *old = NULL, at;
    uint64_t most;

    MPL_TRY(mpl_order_model_part(self->ctx, self->model, order, 0, n, &way));
    MPL_TRY(mpl_order_walk_init(self->ctx, way, &walk));
    MPL_TRY(mpl_new_each(self->ctx, n, ids, old));
    for (uint32_t i = 0; i < n; i++) {
        ids[i] = i;
        old[i] = order[i];
    }
    most = mpl_order_model_peak(&walk, ids);
    for (int largest = 0; largest < 2; largest++)
        MPL_TRY(mpl_order_mend(self->ctx, way, peak - 1, largest, self->effort, ids, &most));
    at = costliest(&walk, ids, &most);
    for (uint32_t i = 0; i < n; i++)
        order[i] = old[ids[i]];
    *found = most < peak ? MPL_NONE : old[at];
out:
    mpl_order_model_free(self->ctx, way);
    mpl_order_walk_fini(self->ctx, &walk);
    mpl_free_each(self->ctx, ids, old);
    return st;
}

/* Writes to `now` an order whose prefix leads to the cheapest set for v, an operation of the group.
 * *found: the costliest operation of that prefix; MPL_NONE: the prefix stays below `peak`. */
static mpl_status go_round(cutter *self, uint32_t v, const uint32_t *order, uint64_t peak,
                           uint32_t *now, uint32_t *scratch, uint32_t *found)
{
    uint32_t n = 1;

    least_cost(self, v, UINT64_MAX, SMALLEST);
    memcpy(now, order, self->model->n * sizeof *now);
    mend_at(self, v, now, scratch);
    while (now[n - 1] != v)
        n++;
    return mend_way(self, now, n, peak, found);
}

mpl_status mpl_order_group_bound(mpl_ctx *ctx, const mpl_order_model *model, uint64_t known,
                                 mpl_effort *effort, uint32_t *order, uint64_t *peak,
                                 uint64_t *bound)
{
    mpl_status st = MPL_OK;
    cutter c = {.ctx = ctx, .model = model, .effort = effort};
    mpl_order_walk walk = {0};
    uint32_t *now = NULL, *scratch = NULL, v;
    uint64_t least;

    *bound = known;
    if (model->n == 0)
        return MPL_OK;
    MPL_TRY(cutter_init(&c));
    MPL_TRY(mpl_new(ctx, c.group, MOST_GROUP));
    MPL_TRY(mpl_order_walk_init(ctx, model, &walk));
    MPL_TRY(mpl_new_each(ctx, model->n, now, scratch));
    v = costliest(&walk, order, peak);
    while (c.n_group < MOST_GROUP && *bound < *peak && !mpl_effort_spent(effort)) {
        c.group[c.n_group++] = v;
        v = cheapest(&c, &least);
        *bound = mpl_max_u64(*bound, mpl_min_u64(least, *peak));
        if (least >= *peak)
            break;
        MPL_TRY(go_round(&c, v, order, *peak, now, scratch, &v));
        if (v != MPL_NONE)
            continue;
        /* Nothing is proved, but the operations after the prefix may become as cheap. */
        least = mpl_order_model_peak(&walk, now);
        for (int largest = 0; largest < 2; largest++)
            MPL_TRY(mpl_order_mend(ctx, model, *bound, largest, effort, now, &least));
        if (least >= *peak)
            break;
        *peak = least;
        memcpy(order, now, model->n * sizeof *order);
        v = costliest(&walk, order, peak);
        c.n_group = 0;
    }
out:
    cutter_fini(&c);
    mpl_free(ctx, c.group);
    mpl_order_walk_fini(ctx, &walk);
    mpl_free_each(ctx, now, scratch);
    return st;
}
