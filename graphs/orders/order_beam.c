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
    const mpl_order_model *model;
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
static uint32_t advance(beam *self, mpl_order_walk *walk, uint64_t *peak, uint32_t v)
{
    uint32_t n;

    *peak = mpl_max_u64(*peak, mpl_order_walk_cost(walk, v));
    mpl_order_walk_run(walk, v);
    self->ran[0] = v;
    n = 1 + mpl_order_close(walk, *peak, self->ran + 1, self->effort);
    self->effort->ticks += n;
    return n;
}

/* Undoes the last n operations run, those in ran[]. */
static void undo(beam *self, mpl_order_walk *walk, uint32_t n, uint64_t live, uint32_t n_ready)
{
    while (n > 0)
        mpl_order_walk_undo(walk, self->ran[--n], live, n_ready);
    memcpy(walk->ready, self->ready, n_ready * sizeof *walk->ready);
}

/* Tries v next in set i, and leaves the set as it was. */
static child try_child(beam *self, uint32_t i, uint32_t v)
{
    mpl_order_walk *walk = &self->now[i];
    uint64_t live = walk->live;
    uint32_t n, n_ready = walk->n_ready;
    child c = {.peak = self->now_peak[i], .hash = self->now_hash[i], .parent = i, .choice = v};

    n = advance(self, walk, &c.peak, v);
    c.live = walk->live;
    c.n_done = walk->n_done;
    for (uint32_t k = 0; k < n; k++)
        c.hash += self->key[self->ran[k]];
    undo(self, walk, n, live, n_ready);
    return c;
}

static mpl_status grow(beam *self, uint64_t limit)
{
    self->n_children = 0;
    for (uint32_t i = 0; i < self->n; i++) {
        mpl_order_walk *walk = &self->now[i];
        uint32_t n_ready = walk->n_ready;

        memcpy(self->ready, walk->ready, n_ready * sizeof *self->ready);
        for (uint32_t j = 0; j < n_ready; j++) {
            if (walk->done[self->ready[j]] || mpl_order_walk_cost(walk, self->ready[j]) >= limit)
                continue;
            MPL_PASS(mpl_reserve(self->ctx, self->children, self->child_cap, self->n_children + 1));
            self->children[self->n_children++] = try_child(self, i, self->ready[j]);
        }
    }
    if (self->n_children > 0)
        qsort(self->children, self->n_children, sizeof *self->children, better);
    return MPL_OK;
}

/* Makes child c set n of the next round. */
static void follow(beam *self, const child *c, uint32_t n)
{
    const mpl_order_walk *from = &self->now[c->parent];
    uint32_t *order = self->next_order + (size_t)n * self->model->n, n_ran;

    mpl_order_walk_copy(&self->next[n], from);
    memcpy(order, self->now_order + (size_t)c->parent * self->model->n,
           from->n_done * sizeof *order);
    self->next_peak[n] = self->now_peak[c->parent];
    self->next_hash[n] = c->hash;
    n_ran = advance(self, &self->next[n], &self->next_peak[n], c->choice);
    memcpy(order + from->n_done, self->ran, n_ran * sizeof *order);
    self->effort->ticks += self->model->n / 16;
}

/* As choose, for one set, in place. */
static void go_on(beam *self)
{
    const child *c = &self->children[0];
    uint32_t n = self->now[0].n_done, n_ran;

    if (self->n_children == 0) {
        self->n = 0;
        return;
    }
    n_ran = advance(self, &self->now[0], &self->now_peak[0], c->choice);
    memcpy(self->now_order + n, self->ran, n_ran * sizeof *self->now_order);
    self->now_hash[0] = c->hash;
}

/* The best distinct children become the sets of the next round. */
static void choose(beam *self)
{
    mpl_order_walk *walks = self->now;
    uint64_t *peaks = self->now_peak, *hashes = self->now_hash;
    uint32_t *orders = self->now_order, n = 0;

    for (size_t i = 0; i < self->n_children && n < self->width; i++) {
        const child *c = &self->children[i];

        if (i == 0 || c->hash != c[-1].hash || c->n_done != c[-1].n_done)
            follow(self, c, n++);
    }
    self->now = self->next, self->next = walks;
    self->now_peak = self->next_peak, self->next_peak = peaks;
    self->now_hash = self->next_hash, self->next_hash = hashes;
    self->now_order = self->next_order, self->next_order = orders;
    self->n = n;
}

static mpl_status beam_init(beam *self, uint64_t floor)
{
    mpl_rng rng = mpl_rng_of(1);

    MPL_PASS(mpl_new_each(self->ctx, self->width, self->now, self->next));
    for (uint32_t i = 0; i < self->width; i++) {
        MPL_PASS(mpl_order_walk_init(self->ctx, self->model, &self->now[i]));
        MPL_PASS(mpl_order_walk_init(self->ctx, self->model, &self->next[i]));
    }
    MPL_PASS(mpl_order_walk_init(self->ctx, self->model, &self->trial));
    MPL_PASS(mpl_new_each(self->ctx, self->width, self->now_peak, self->next_peak, self->now_hash,
                          self->next_hash));
    MPL_PASS(mpl_new(self->ctx, self->ready, self->model->n));
    MPL_PASS(mpl_new_each(self->ctx, (size_t)self->width * self->model->n, self->now_order,
                          self->next_order));
    MPL_PASS(mpl_new_each(self->ctx, self->model->n, self->ran, self->key));
    for (uint32_t v = 0; v < self->model->n; v++)
        self->key[v] = mpl_rng_next(&rng);
    self->n = 1;
    self->now_peak[0] = floor;
    /* The start's own hash stays zero: all sets contain it. */
    memcpy(self->now_order, self->ran,
           mpl_order_close(&self->now[0], floor, self->ran, self->effort) *
               sizeof *self->now_order);
    return MPL_OK;
}

static void beam_fini(beam *self)
{
    void *const arrays[] = {self->now,       self->next,       self->now_peak,  self->next_peak,
                            self->now_order, self->next_order, self->ran,       self->key,
                            self->children,  self->now_hash,   self->next_hash, self->ready};

    for (uint32_t i = 0; i < self->width; i++) {
        if (self->now != NULL)
            mpl_order_walk_fini(self->ctx, &self->now[i]);
        if (self->next != NULL)
            mpl_order_walk_fini(self->ctx, &self->next[i]);
    }
    mpl_order_walk_fini(self->ctx, &self->trial);
    MPL_FREE_ALL(self->ctx, arrays);
}

mpl_status mpl_order_beam(mpl_ctx *ctx, const mpl_order_model *model, uint64_t floor,
                          uint32_t width, mpl_effort *effort, uint32_t *order, uint64_t *peak)
{
    mpl_status st = MPL_OK;
    beam x = {.ctx = ctx, .model = model, .effort = effort, .width = width};

    if (*peak <= floor)
        return MPL_OK;
    MPL_TRY(beam_init(&x, floor));
    while (x.n > 0 && !mpl_effort_spent(effort)) {
        if (x.now[0].n_done == model->n) { /* the first to finish has the lowest peak */
            uint64_t found = mpl_order_model_peak(&x.trial, x.now_order);

            if (found < *peak) {
                memcpy(order, x.now_order, model->n * sizeof *order);
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
