/* bounds.c -- peak live bytes, and bytes without sharing. See bounds.h.
 *
 * Every offset is a multiple of g, the pool's least alignment, so each buffer fills whole slots of
 * g bytes, in-place pairs aside. The arena ends where its topmost buffer ends, perhaps inside a
 * slot: the largest unused rest among the live buffers is subtracted. */
#include "graphs/problem/bounds/bounds.h"

#include <stdlib.h>

typedef struct event {
    uint32_t step;
    uint32_t id; /* index of the piece */
} event;

/* A buffer between two gaps. */
typedef struct piece {
    mpl_buffer b;
    uint32_t from, to; /* [step] */
} piece;

typedef struct sweep {
    mpl_ctx *ctx;
    const mpl_problem *p;
    uint32_t pool;
    uint64_t grain;       /* least alignment of the pool */
    uint32_t n;           /* pieces of buffers in the pool */
    piece *piece;         /* [n] */
    event *birth, *death; /* [n] sorted */
    uint32_t *rest_heap;  /* [n] heap by largest rest; live pieces, and dead ones not yet removed */
    uint32_t n_heap;
    uint64_t *saved;    /* [n] scratch: sizes of outputs that may overwrite an input at one step */
    mpl_buffer *source; /* [n_in_place] scratch: inputs that may be overwritten at one step */
} sweep;

static int by_step(const void *a, const void *b)
{
    const event *x = a, *y = b;

    if (x->step != y->step)
        return x->step > y->step ? 1 : -1;
    return (x->id > y->id) - (x->id < y->id);
}

static int by_size_down(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

    return (x < y) - (x > y); /* order of equal keys does not matter */
}

/* Bytes in whole slots; cannot overflow, since sizes are below 2^63. */
static uint64_t slots(const sweep *self, mpl_buffer b)
{
    return mpl_align_up(self->p->bytes[b], self->grain);
}

static uint64_t rest(const sweep *self, uint32_t id)
{
    mpl_buffer b = self->piece[id].b;

    return slots(self, b) - self->p->bytes[b];
}

static void heap_push(sweep *self, uint32_t id)
{
    uint32_t at = self->n_heap++;

    for (; at > 0 && rest(self, self->rest_heap[(at - 1) / 2]) < rest(self, id); at = (at - 1) / 2)
        self->rest_heap[at] = self->rest_heap[(at - 1) / 2];
    self->rest_heap[at] = id;
}

static void heap_pop(sweep *self)
{
    uint32_t moved = self->rest_heap[--self->n_heap];
    uint32_t at = 0;

    for (uint32_t child = 1; child < self->n_heap; child = 2 * at + 1) {
        if (child + 1 < self->n_heap &&
            rest(self, self->rest_heap[child]) < rest(self, self->rest_heap[child + 1]))
            child++;
        if (rest(self, moved) >= rest(self, self->rest_heap[child]))
            break;
        self->rest_heap[at] = self->rest_heap[child];
        at = child;
    }
    self->rest_heap[at] = moved;
}

/* Largest rest of a buffer live at `step`. */
static uint64_t live_rest(sweep *self, uint32_t step)
{
    while (self->n_heap > 0 && self->piece[self->rest_heap[0]].to <= step)
        heap_pop(self);
    return self->n_heap > 0 ? rest(self, self->rest_heap[0]) : 0;
}

/* Upper bound on what the in-place pairs [*at, ..) of `step` can save; moves *at past them. Each
 * output lies on one input, each input under one output. If an operation has several of both,
 * counts the largest outputs, as many as there are inputs. */
static uint64_t saving(sweep *self, uint32_t *at, uint32_t step)
{
    const mpl_problem *p = self->p;
    uint32_t n_out = 0, n_pairs = 0, n_in = 0;
    mpl_buffer last = MPL_NONE;
    uint64_t sum = 0;

    for (; *at < p->n_in_place && p->in_place_step[*at] <= step; ++*at) {
        mpl_buffer out = p->in_place_out[*at];

        if (p->pool[out] != self->pool) /* other pools' pairs may be of earlier steps */
            continue;
        if (out != last)
            self->saved[n_out++] = slots(self, out);
        last = out;
        self->source[n_pairs++] = p->in_place_in[*at];
    }
    qsort(self->saved, n_out, sizeof *self->saved, by_size_down);
    mpl_sort_u32(self->source, n_pairs);
    for (uint32_t i = 0; i < n_pairs; i++)
        n_in += i == 0 || self->source[i] != self->source[i - 1];
    for (uint32_t i = 0; i < n_out && i < n_in; i++)
        sum += self->saved[i];
    return sum;
}

static void cut_lifetimes(sweep *self)
{
    const mpl_problem *p = self->p;

    self->n = 0;
    for (mpl_buffer b = 0; b < p->n; b++) {
        uint32_t from = p->birth[b];

        if (p->pool[b] != self->pool)
            continue;
        for (uint32_t i = p->gap_begin != NULL ? p->gap_begin[b] : 0;
             p->gap_begin != NULL && i < p->gap_begin[b + 1]; i++) {
            self->piece[self->n++] = (piece){b, from, p->gap_from[i]};
            from = p->gap_to[i];
        }
        self->piece[self->n++] = (piece){b, from, p->death[b]};
    }
}

static mpl_status sweep_init(sweep *self)
{
    const mpl_problem *p = self->p;

    self->grain = mpl_pool_grain(p, self->pool);
    for (mpl_buffer b = 0; b < p->n; b++)
        if (p->pool[b] == self->pool)
            self->n += 1 + (p->gap_begin != NULL ? p->gap_begin[b + 1] - p->gap_begin[b] : 0);
    MPL_PASS(mpl_new_each(self->ctx, self->n, self->piece, self->birth, self->death,
                          self->rest_heap, self->saved));
    MPL_PASS(mpl_new(self->ctx, self->source, p->n_in_place));
    cut_lifetimes(self);
    for (uint32_t i = 0; i < self->n; i++) {
        self->birth[i] = (event){self->piece[i].from, i};
        self->death[i] = (event){self->piece[i].to, i};
    }
    qsort(self->birth, self->n, sizeof *self->birth, by_step);
    qsort(self->death, self->n, sizeof *self->death, by_step);
    return MPL_OK;
}

/* Visits the steps at which the live set changes, in order. */
static mpl_status sweep_run(sweep *self, uint64_t *peak, uint64_t *live, uint32_t *peak_step)
{
    uint32_t n_born = 0, n_dead = 0, at_pair = 0, filled = 0;
    uint64_t sum = 0, now = 0, saved;

    *peak = 0, *peak_step = 0;
    while (n_dead < self->n) {
        uint32_t step = self->death[n_dead].step;

        if (n_born < self->n && self->birth[n_born].step < step)
            step = self->birth[n_born].step;
        for (; live != NULL && filled < step; filled++)
            live[filled] = now;
        for (; n_dead < self->n && self->death[n_dead].step == step; n_dead++)
            sum -= slots(self, self->piece[self->death[n_dead].id].b);
        for (; n_born < self->n && self->birth[n_born].step == step; n_born++) {
            if (!mpl_add_bytes(sum, slots(self, self->piece[self->birth[n_born].id].b), &sum) ||
                sum > INT64_MAX)
                return MPL_REFUSE(self->ctx, "live bytes pass 2^63 at step %u", step);
            heap_push(self, self->birth[n_born].id);
        }
        now = sum - live_rest(self, step);
        saved = saving(self, &at_pair, step);
        if (live != NULL && step < self->p->n_steps)
            live[filled++] = now - saved;
        if (now - saved > *peak)
            *peak = now - saved, *peak_step = step;
    }
    for (; live != NULL && filled < self->p->n_steps; filled++)
        live[filled] = 0;
    return MPL_OK;
}

mpl_status mpl_peak_live(mpl_ctx *ctx, const mpl_problem *p, uint32_t pool, uint64_t *peak,
                         uint64_t *live, uint32_t *peak_step)
{
    mpl_status st = MPL_OK;
    sweep s = {.ctx = ctx, .p = p, .pool = pool};
    uint64_t highest;
    uint32_t where;

    if (p->before != NULL)
        MPL_FAIL(ctx, MPL_EINPUT,
                 "peak live bytes need steps; '%.100s' has a partial order instead", p->name);
    MPL_TRY(sweep_init(&s));
    MPL_TRY(sweep_run(&s, &highest, live, &where));
    *peak = highest;
    if (peak_step != NULL)
        *peak_step = where;
out:
    mpl_free_each(ctx, s.piece, s.birth, s.death, s.rest_heap, s.saved, s.source);
    return st;
}

uint64_t mpl_pool_grain(const mpl_problem *p, uint32_t pool)
{
    uint64_t grain = UINT64_C(1) << 31;

    for (mpl_buffer b = 0; b < p->n; b++)
        if (p->pool[b] == pool)
            grain = mpl_min_u64(grain, p->align[b]);
    return grain;
}

mpl_status mpl_naive_bytes(mpl_ctx *ctx, const mpl_problem *p, uint32_t pool, uint64_t *bytes)
{
    uint64_t sum = 0, one;

    for (mpl_buffer b = 0; b < p->n; b++) {
        if (p->pool[b] != pool)
            continue;
        if (!mpl_align_bytes(p->bytes[b], p->align[b], &one) || !mpl_add_bytes(sum, one, &sum) ||
            sum > INT64_MAX)
            return MPL_REFUSE(ctx, "the buffers of '%.100s' together pass 2^63 bytes", p->name);
    }
    *bytes = sum;
    return MPL_OK;
}
