/* order_beam.c -- beam search over closed sets of operations. See orders_priv.h.
 *
 * Idea     Each round extends every set by each ready operation, then by what may follow without
 *          loss (closure.c). The best `width` resulting sets continue: lowest peak first, then
 *          fewest live bytes, then most operations done.
 * Source   beam search: B. Lowerre, "The Harpy Speech Recognition System", 1976.
 * Cost     O(rounds * width * ready * n) time, width * 5 n + paths bytes. */
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
    uint32_t *ran;
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

static uint64_t hash_of(const beam *x, const mpl_order_walk *w)
{
    uint64_t h = 0;

    for (uint32_t v = 0; v < x->m->n; v++)
        h += w->done[v] ? x->key[v] : 0;
    return h;
}

/* Runs v and what follows without loss, appends them to order (may be NULL); returns the peak. */
static uint64_t advance(beam *x, mpl_order_walk *w, uint64_t peak, uint32_t v, uint32_t *order)
{
    uint32_t at = w->n_done, n;

    peak = mpl_max_u64(peak, mpl_order_walk_cost(w, v));
    mpl_order_walk_run(w, v);
    n = mpl_order_close(w, peak, x->ran, x->effort);
    x->effort->ticks += x->m->n / 16 + 1;
    if (order != NULL) {
        order[at] = v;
        memcpy(order + at + 1, x->ran, n * sizeof *order);
    }
    return peak;
}

static mpl_status grow(beam *x, uint64_t limit)
{
    mpl_status st = MPL_OK;

    x->n_children = 0;
    for (uint32_t i = 0; i < x->n; i++) {
        const mpl_order_walk *w = &x->now[i];

        for (uint32_t j = 0; j < w->n_ready; j++) {
            uint64_t peak;

            if (w->done[w->ready[j]] || mpl_order_walk_cost(w, w->ready[j]) >= limit)
                continue;
            mpl_order_walk_copy(&x->trial, w);
            peak = advance(x, &x->trial, x->now_peak[i], w->ready[j], NULL);
            MPL_TRY(mpl_reserve(x->ctx, x->children, x->child_cap, x->n_children + 1));
            x->children[x->n_children++] = (child){.peak = peak,
                                                   .live = x->trial.live,
                                                   .hash = hash_of(x, &x->trial),
                                                   .n_done = x->trial.n_done,
                                                   .parent = i,
                                                   .choice = w->ready[j]};
        }
    }
    if (x->n_children > 0)
        qsort(x->children, x->n_children, sizeof *x->children, better);
out:
    return st;
}

/* The best distinct children become the sets of the next round. */
static void choose(beam *x)
{
    mpl_order_walk *walks = x->now;
    uint64_t *peaks = x->now_peak;
    uint32_t *orders = x->now_order, n = 0;

    for (size_t i = 0; i < x->n_children && n < x->width; i++) {
        const child *c = &x->children[i];
        uint32_t *order = x->next_order + (size_t)n * x->m->n;

        if (i > 0 && c->hash == c[-1].hash && c->n_done == c[-1].n_done)
            continue;
        mpl_order_walk_copy(&x->next[n], &x->now[c->parent]);
        memcpy(order, x->now_order + (size_t)c->parent * x->m->n,
               x->now[c->parent].n_done * sizeof *order);
        x->next_peak[n] = advance(x, &x->next[n], x->now_peak[c->parent], c->choice, order);
        n++;
    }
    x->now = x->next, x->next = walks;
    x->now_peak = x->next_peak, x->next_peak = peaks;
    x->now_order = x->next_order, x->next_order = orders;
    x->n = n;
}

static mpl_status beam_init(beam *x, uint64_t floor)
{
    mpl_status st = MPL_OK;
    mpl_rng rng;

    mpl_rng_init(&rng, 1);
    MPL_TRY(mpl_new(x->ctx, x->now, x->width));
    MPL_TRY(mpl_new(x->ctx, x->next, x->width));
    for (uint32_t i = 0; i < x->width; i++) {
        MPL_TRY(mpl_order_walk_init(x->ctx, x->m, &x->now[i]));
        MPL_TRY(mpl_order_walk_init(x->ctx, x->m, &x->next[i]));
    }
    MPL_TRY(mpl_order_walk_init(x->ctx, x->m, &x->trial));
    MPL_TRY(mpl_new(x->ctx, x->now_peak, x->width));
    MPL_TRY(mpl_new(x->ctx, x->next_peak, x->width));
    MPL_TRY(mpl_new(x->ctx, x->now_order, (size_t)x->width * x->m->n));
    MPL_TRY(mpl_new(x->ctx, x->next_order, (size_t)x->width * x->m->n));
    MPL_TRY(mpl_new(x->ctx, x->ran, x->m->n));
    MPL_TRY(mpl_new(x->ctx, x->key, x->m->n));
    for (uint32_t v = 0; v < x->m->n; v++)
        x->key[v] = mpl_rng_next(&rng);
    x->n = 1;
    x->now_peak[0] = floor;
    memcpy(x->now_order, x->ran,
           mpl_order_close(&x->now[0], floor, x->ran, x->effort) * sizeof *x->now_order);
out:
    return st;
}

static void beam_fini(beam *x)
{
    void *const arrays[] = {x->now,        x->next, x->now_peak, x->next_peak, x->now_order,
                            x->next_order, x->ran,  x->key,      x->children};

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
        choose(&x);
    }
out:
    beam_fini(&x);
    return st;
}
