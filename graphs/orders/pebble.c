/* pebble.c -- solves the pebble game exactly. See pebble.h.
 *
 * Source   R. Sethi, "Complete register allocation problems", 1975; Owl's paper ("Functional Design
 *          of Computation Graph", section 3) for sliding as a result in place.
 * Cost     For each number of pebbles: sets of pebbles times sets of sinks that have had one. */
#include "graphs/orders/pebble.h"

enum { MOST_BITS = 22 };

typedef struct game {
    mpl_ctx *ctx;
    const mpl_dag *dag;
    bool sliding;
    uint32_t space, sinks; /* bit set */
    uint32_t *time;        /* [2^bits] of each state; MPL_NONE: not reached */
    uint32_t *now, *next;  /* states of this time and of the next */
    size_t n_now, n_next, now_cap, next_cap;
} game;

static uint32_t sinks_of(const mpl_dag *dag)
{
    uint32_t sinks = (UINT32_C(1) << dag->n) - 1;

    for (uint32_t v = 0; v < dag->n; v++)
        sinks &= ~dag->before[v];
    return sinks;
}

/* The upper bits of a state: which sinks, ascending, have had a pebble. */
static uint32_t with_pebble(const game *self, uint32_t state, uint32_t pebbles, uint32_t v)
{
    uint32_t had = state >> self->dag->n;

    if (self->sinks >> v & 1)
        had |= UINT32_C(1) << __builtin_popcount(self->sinks & ((UINT32_C(1) << v) - 1));
    return had << self->dag->n | pebbles;
}

static mpl_status reach(game *self, uint32_t state, uint32_t time, bool later)
{
    if (self->time[state] <= time)
        return MPL_OK;
    self->time[state] = time;
    if (later) {
        MPL_PASS(mpl_reserve(self->ctx, self->next, self->next_cap, self->n_next + 1));
        self->next[self->n_next++] = state;
    } else {
        MPL_PASS(mpl_reserve(self->ctx, self->now, self->now_cap, self->n_now + 1));
        self->now[self->n_now++] = state;
    }
    return MPL_OK;
}

static mpl_status move(game *self, uint32_t state, uint32_t time)
{
    uint32_t n = self->dag->n, pebbles = state & ((UINT32_C(1) << n) - 1);

    for (uint32_t v = 0; v < n; v++) {
        uint32_t bit = UINT32_C(1) << v, before = self->dag->before[v];

        if (pebbles & bit) {
            MPL_PASS(reach(self, state & ~bit, time, false));
            continue;
        }
        if ((before & ~pebbles) != 0)
            continue;
        if ((uint32_t)__builtin_popcount(pebbles) < self->space)
            MPL_PASS(reach(self, with_pebble(self, state, pebbles | bit, v), time + 1, true));
        for (uint32_t u = 0; self->sliding && u < v; u++)
            if (before >> u & 1)
                MPL_PASS(reach(self,
                               with_pebble(self, state, (pebbles & ~(UINT32_C(1) << u)) | bit, v),
                               time + 1, true));
    }
    return MPL_OK;
}

mpl_status mpl_pebble_time(mpl_ctx *ctx, const mpl_dag *dag, uint32_t space, bool sliding,
                           uint32_t *time)
{
    mpl_status st = MPL_OK;
    game g = {.ctx = ctx, .dag = dag, .sliding = sliding, .space = space, .sinks = sinks_of(dag)};
    uint32_t n_sinks = (uint32_t)__builtin_popcount(g.sinks), found = MPL_NONE;

    if (dag->n + n_sinks > MOST_BITS)
        MPL_FAIL(ctx, MPL_ELIMIT, "pebbles: %u vertices and %u sinks are too many", dag->n,
                 n_sinks);
    MPL_TRY(mpl_new(ctx, g.time, (size_t)1 << (dag->n + n_sinks)));
    memset(g.time, 0xff, ((size_t)1 << (dag->n + n_sinks)) * sizeof *g.time);
    MPL_TRY(reach(&g, 0, 0, false));
    for (uint32_t now = 0; g.n_now > 0 && found == MPL_NONE; now++) {
        for (size_t i = 0; i < g.n_now; i++) {
            if (g.time[g.now[i]] < now)
                continue;
            if (g.now[i] >> dag->n == (UINT32_C(1) << n_sinks) - 1)
                found = now;
            MPL_TRY(move(&g, g.now[i], now));
        }
        uint32_t *list = g.now;
        size_t cap = g.now_cap;

        g.now = g.next, g.next = list;
        g.now_cap = g.next_cap, g.next_cap = cap;
        g.n_now = g.n_next, g.n_next = 0;
    }
    *time = found;
out:
    mpl_free_each(ctx, g.time, g.now, g.next);
    return st;
}

mpl_status mpl_pebble_frontier(mpl_ctx *ctx, const mpl_dag *dag, bool sliding,
                               mpl_pebble_point *point, uint32_t *n_points)
{
    uint32_t n = 0, best = MPL_NONE;

    /* Each vertex must get a pebble, since each leads to a sink; n pebbles always suffice. */
    for (uint32_t space = 1; space <= dag->n && best != dag->n; space++) {
        uint32_t time;

        MPL_PASS(mpl_pebble_time(ctx, dag, space, sliding, &time));
        if (time < best) /* MPL_NONE exceeds any time */
            point[n++] = (mpl_pebble_point){space, best = time};
    }
    *n_points = n;
    return MPL_OK;
}

/* ---- all small graphs ---- */

static void decode(uint32_t n, uint32_t code, mpl_dag *dag)
{
    *dag = (mpl_dag){.n = n};
    for (uint32_t v = 1; v < n; v++) {
        dag->before[v] = code & ((UINT32_C(1) << v) - 1);
        code >>= v;
    }
}

static bool is_connected(const mpl_dag *dag)
{
    uint32_t reached = 1, last = 0;

    while (reached != last) {
        last = reached;
        for (uint32_t v = 0; v < dag->n; v++)
            if ((reached >> v & 1) || (dag->before[v] & reached) != 0)
                reached |= UINT32_C(1) << v | ((reached >> v & 1) ? dag->before[v] : 0);
    }
    return reached == (UINT32_C(1) << dag->n) - 1;
}

/* Whether other names that ascend along edges give a lower code. Recurses over all permutations.
 * name[v] is the new name; vertices are named by ascending new name, in topological order. */
static bool has_lower(const mpl_dag *dag, uint32_t code, uint32_t *name, uint32_t named,
                      uint32_t set)
{
    uint32_t other = 0, shift = 0;
    uint32_t at[MPL_PEBBLE_MOST];

    for (uint32_t v = 0; v < dag->n && named < dag->n; v++) {
        if ((set >> v & 1) || (dag->before[v] & ~set) != 0)
            continue;
        name[v] = named;
        if (has_lower(dag, code, name, named + 1, set | UINT32_C(1) << v))
            return true;
    }
    if (named < dag->n)
        return false;
    for (uint32_t v = 0; v < dag->n; v++)
        at[name[v]] = v;
    for (uint32_t v = 1; v < dag->n; shift += v, v++)
        for (uint32_t u = 0; u < v; u++)
            other |= (dag->before[at[v]] >> at[u] & 1) << (shift + u);
    return other < code;
}

bool mpl_dag_next(uint32_t n, int64_t *after, mpl_dag *dag)
{
    uint32_t name[MPL_PEBBLE_MOST];

    mpl_assert(n >= 1 && n <= 6);
    for (int64_t code = *after + 1; code < INT64_C(1) << (n * (n - 1) / 2); code++) {
        decode(n, (uint32_t)code, dag);
        if (!is_connected(dag) || has_lower(dag, (uint32_t)code, name, 0, 0))
            continue;
        *after = code;
        return true;
    }
    return false;
}
