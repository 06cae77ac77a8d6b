/* order_beam.c -- beam search over closed sets of operations. See orders_priv.h.
 *
 * Idea     Each round extends every set by each ready operation, then by what may follow without
 *          loss (closure.c). The best `width` resulting sets continue: lowest peak first, then
 *          fewest live bytes, then most operations done.
 * Source   beam search: B. Lowerre, "The Harpy Speech Recognition System", 1976.
 * Cost     O(rounds * width * (ready * what follows + n)) time; of one set O(rounds * ready * what
 *          follows). width * 5 n + paths bytes. */
#include "graphs/orders/orders_priv.h"

#include <stdlib.h>

/* A candidate set for the next round: a set of the last round and an operation. */
typedef struct child {
    uint64_t peak, live, hash;
    uint32_t n_done, parent, choice;
} child;

typedef struct beam {
    mpl_ctx *ctx;
    const mpl_order_model *m;
    mpl_effort *effort;
    uint32_t width, n;
    mpl_order_walk *now, *next; /* [width] */
    uint64_t *now_peak, *next_peak;
    uint32_t *now_order, *next_order; /* [width * m->n] */
    mpl_order_walk trial;
    uint64_t *key; /* [m->n] random words; the hash of a set is their sum */
    uint64_t *now_hash, *next_hash;
    uint32_t *ran, *ready; /* [m->n] scratch */
    child *children;
    size_t n_children, child_cap;
} beam;

static int better(const void *a, const void *b)
{
    const child *x = a, *y = b;

    if (x->peak != y->peak)
        return x->peak > y->peak ? 1 : -1;
    if (x->live != y->live)
        return x->live > y->live ? 1 : -1;
    if (x->n_done != y->n_done)
        return x->n_done < y->n_done ? 1 : -1;
    if (x->hash != y->hash)
        return x->hash > y->hash ? 1 : -1;
    if (x->parent != y->parent)
        return x->parent > y->parent ? 1 : -1;
    return (x->choice > y->choice) - (x->choice < y->choice);
}

/* Runs v and what follows without loss. Writes both to ran[]; returns how many. */
static uint32_t advance(beam *x, mpl_order_walk *w, uint64_t *peak, uint32_t v)
{
    uint32_t n;

    *peak = mpl_max_u64(*peak, mpl_order_walk_cost(w, v));
    mpl_order_walk_run(w, v);
    x->ran[0] = v;
    n = 1 + mpl_order_close(w, *peak, x->ran + 1, x->effort);
    x->effort->ticks += n;
    return n;
}

/* Undoes the last n operations run, those in ran[]. */
static void undo(beam *x, mpl_order_walk *w, uint32_t n, uint64_t live, uint32_t n_ready)
{
    while (n > 0)
        mpl_order_walk_undo(w, x->ran[--n], live, n_ready);
    memcpy(w->ready, x->ready, n_ready * sizeof *w->ready);
}

/* Tries v next in set i, and leaves the set as it was. */
static child try_child(beam *x, uint32_t i, uint32_t v)
{
    mpl_order_walk *w = &x->now[i];
    uint64_t live = w->live;
    uint32_t n, n_ready = w->n_ready;
    child c = {.peak = x->now_peak[i], .hash = x->now_hash[i], .parent = i, .choice = v};

    n = advance(x, w, &c.peak, v);
    c.live = w->live;
    c.n_done = w->n_done;
    for (uint32_t k = 0; k < n; k++)
        c.hash += x->key[x->ran[k]];
    undo(x, w, n, live, n_ready);
    return c;
}

static mpl_status grow(beam *x, uint64_t limit)
{
    x->n_children = 0;
    for (uint32_t i = 0; i < x->n; i++) {
        mpl_order_walk *w = &x->now[i];
        uint32_t n_ready = w->n_ready;

        memcpy(x->ready, w->ready, n_ready * sizeof *x->ready);
        for (uint32_t j = 0; j < n_ready; j++) {
            if (w->done[x->ready[j]] || mpl_order_walk_cost(w, x->ready[j]) >= limit)
                continue;
            MPL_PASS(mpl_reserve(x->ctx, x->children, x->child_cap, x->n_children + 1));
            x->children[x->n_children++] = try_child(x, i, x->ready[j]);
        }
    }
    if (x->n_children > 0)
        qsort(x->children, x->n_children, sizeof *x->children, better);
    return MPL_OK;
}

/* Makes child c set n of the next round. */
static void follow(beam *x, const child *c, uint32_t n)
{
    const mpl_order_walk *from = &x->now[c->parent];
    uint32_t *order = x->next_order + (size_t)n * x->m->n, n_ran;

    mpl_order_walk_copy(&x->next[n], from);
    memcpy(order, x->now_order + (size_t)c->parent * x->m->n, from->n_done * sizeof *order);
    x->next_peak[n] = x->now_peak[c->parent];
    x->next_hash[n] = c->hash;
    n_ran = advance(x, &x->next[n], &x->next_peak[n], c->choice);
    memcpy(order + from->n_done, x->ran, n_ran * sizeof *order);
    x->effort->ticks += x->m->n / 16;
}

/* As choose, for one set, in place. */
static void go_on(beam *x)
{
    const child *c = &x->children[0];
    uint32_t n = x->now[0].n_done, n_ran;

    if (x->n_children == 0) {
        x->n = 0;
        return;
    }
    n_ran = advance(x, &x->now[0], &x->now_peak[0], c->choice);
    memcpy(x->now_order + n, x->ran, n_ran * sizeof *x->now_order);
    x->now_hash[0] = c->hash;
}

/* The best distinct children become the sets of the next round. */
static void choose(beam *x)
{
    mpl_order_walk *walks = x->now;
    uint64_t *peaks = x->now_peak, *hashes = x->now_hash;
    uint32_t *orders = x->now_order, n = 0;

    for (size_t i = 0; i < x->n_children && n < x->width; i++) {
        const child *c = &x->children[i];

        if (i == 0 || c->hash != c[-1].hash || c->n_done != c[-1].n_done)
            follow(x, c, n++);
    }
    x->now = x->next, x->next = walks;
    x->now_peak = x->next_peak, x->next_peak = peaks;
    x->now_hash = x->next_hash, x->next_hash = hashes;
    x->now_order = x->next_order, x->next_order = orders;
    x->n = n;
}

static mpl_status beam_init(beam *x, uint64_t floor)
{
    mpl_rng rng = mpl_rng_of(1);

    MPL_PASS(mpl_new_each(x->ctx, x->width, x->now, x->next));
    for (uint32_t i = 0; i < x->width; i++) {
        MPL_PASS(mpl_order_walk_init(x->ctx, x->m, &x->now[i]));
        MPL_PASS(mpl_order_walk_init(x->ctx, x->m, &x->next[i]));
    }
    MPL_PASS(mpl_order_walk_init(x->ctx, x->m, &x->trial));
    MPL_PASS(mpl_new_each(x->ctx, x->width, x->now_peak, x->next_peak, x->now_hash, x->next_hash));
    MPL_PASS(mpl_new(x->ctx, x->ready, x->m->n));
    MPL_PASS(mpl_new_each(x->ctx, (size_t)x->width * x->m->n, x->now_order, x->next_order));
    MPL_PASS(mpl_new_each(x->ctx, x->m->n, x->ran, x->key));
    for (uint32_t v = 0; v < x->m->n; v++)
        x->key[v] = mpl_rng_next(&rng);
    x->n = 1;
    x->now_peak[0] = floor;
    /* The start's own hash stays zero: all sets contain it. */
    memcpy(x->now_order, x->ran,
           mpl_order_close(&x->now[0], floor, x->ran, x->effort) * sizeof *x->now_order);
    return MPL_OK;
}

static void beam_fini(beam *x)
{
    void *const arrays[] = {x->now, x->next, x->now_peak, x->next_peak, x->now_order, x->next_order,
                            x->ran, x->key,  x->children, x->now_hash,  x->next_hash, x->ready};

    for (uint32_t i = 0; i < x->width; i++) {
        if (x->now != NULL)
            mpl_order_walk_fini(x->ctx, &x->now[i]);
        if (x->next != NULL)
            mpl_order_walk_fini(x->ctx, &x->next[i]);
    }
    mpl_order_walk_fini(x->ctx, &x->trial);
    MPL_FREE_ALL(x->ctx, arrays);
}

mpl_status mpl_order_beam(mpl_ctx *ctx, const mpl_order_model *m, uint64_t floor, uint32_t width,
                          mpl_effort *effort, uint32_t *order, uint64_t *peak)
{
    mpl_status st = MPL_OK;
    beam x = {.ctx = ctx, .m = m, .effort = effort, .width = width};

    if (*peak <= floor)
        return MPL_OK;
    MPL_TRY(beam_init(&x, floor));
    while (x.n > 0 && !mpl_effort_spent(effort)) {
        if (x.now[0].n_done == m->n) { /* the first to finish has the lowest peak */
            uint64_t found = mpl_order_model_peak(&x.trial, x.now_order);

            if (found < *peak) {
                memcpy(order, x.now_order, m->n * sizeof *order);
                *peak = found;
            }
            break;
        }
        MPL_TRY(grow(&x, *peak));
        if (width == 1)
            go_on(&x);
        else
            choose(&x);
    }
out:
    beam_fini(&x);
    return st;
}
