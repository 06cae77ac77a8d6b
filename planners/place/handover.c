/* handover.c -- the allocation graph of a plan. See handover.h.
 *
 * Memory between two neighbouring ends of buffers is one piece. Its owners follow each other in
 * time, and each hands it to the next. Neighbouring pieces with the same two owners are one
 * range. */
#include "planners/place/handover.h"

#include "graphs/problem/before.h"

#include <stdlib.h>

typedef struct place {
    uint32_t pool;
    uint64_t offset;
} place;

/* A buffer that covers the current piece. */
typedef struct owner {
    uint32_t time;
    mpl_buffer b;
} owner;

typedef struct tracer {
    mpl_ctx *ctx;
    const mpl_problem *p;
    const mpl_plan *plan;
    uint32_t *time; /* [n] rises with time */
    owner *live;    /* [n] owners of the current piece, by (time, id) */
    uint32_t n_live;
    mpl_buffer *by_place; /* [n] by (pool, offset, id) */
    mpl_handover *list;
    size_t n, cap;
    uint32_t *last; /* [n + 1] index + 1 of the latest handover from each buffer or the source */
} tracer;

static int by_place(const void *left, const void *right)
{
    const place *x = left, *y = right;

    if (x->pool != y->pool)
        return x->pool < y->pool ? -1 : 1;
    return (x->offset > y->offset) - (x->offset < y->offset); /* equal keys are one cut */
}

static mpl_status set_times(tracer *self)
{
    mpl_status st = MPL_OK;
    uint32_t *rank = NULL;

    if (self->p->before == NULL) {
        memcpy(self->time, self->p->birth, self->p->n * sizeof *self->time);
        return MPL_OK;
    }
    MPL_TRY(mpl_new(self->ctx, rank, self->p->n));
    MPL_TRY(mpl_before_rank(self->ctx, self->p->before, rank));
    for (uint32_t i = 0; i < self->p->n; i++)
        self->time[rank[i]] = i;
out:
    mpl_free(self->ctx, rank);
    return st;
}

/* Distinct begins and ends of buffers, sorted. */
static mpl_status cut(const tracer *self, place **cuts, size_t *n_cuts)
{
    size_t n = 0;

    MPL_PASS(mpl_new(self->ctx, *cuts, 2 * (size_t)self->p->n));
    for (mpl_buffer b = 0; b < self->p->n; b++) {
        (*cuts)[2 * b] = (place){self->p->pool[b], self->plan->offset[b]};
        (*cuts)[2 * b + 1] = (place){self->p->pool[b], self->plan->offset[b] + self->p->bytes[b]};
    }
    qsort(*cuts, 2 * (size_t)self->p->n, sizeof **cuts, by_place);
    for (size_t i = 0; i < 2 * (size_t)self->p->n; i++)
        if (n == 0 || by_place(&(*cuts)[i], &(*cuts)[n - 1]) != 0)
            (*cuts)[n++] = (*cuts)[i];
    *n_cuts = n;
    return MPL_OK;
}

MPL_ORDER_BY(by_time, owner, MPL_RISING(time) MPL_RISING(b))

/* Extends the latest range of `from` if it continues to the same `to`, else begins one. */
static mpl_status hand(tracer *self, mpl_buffer from, mpl_buffer to, uint32_t pool, uint64_t offset,
                       uint64_t bytes)
{
    uint32_t *last = &self->last[from == MPL_NONE ? self->p->n : from];

    if (*last > 0) {
        mpl_handover *handover = &self->list[*last - 1];

        if (handover->to == to && handover->pool == pool &&
            handover->offset + handover->bytes == offset) {
            handover->bytes += bytes;
            return MPL_OK;
        }
    }
    MPL_PASS(mpl_reserve(self->ctx, self->list, self->cap, self->n + 1));
    self->list[self->n++] = (mpl_handover){from, to, pool, offset, bytes};
    *last = (uint32_t)self->n;
    return MPL_OK;
}

static mpl_status trace_piece(tracer *self, const place *begin, uint64_t end)
{
    mpl_buffer from = MPL_NONE;

    for (uint32_t i = 0; i < self->n_live; i++) {
        MPL_PASS(
            hand(self, from, self->live[i].b, begin->pool, begin->offset, end - begin->offset));
        from = self->live[i].b;
    }
    if (from != MPL_NONE)
        MPL_PASS(hand(self, from, MPL_NONE, begin->pool, begin->offset, end - begin->offset));
    return MPL_OK;
}

/* Removes owners that end at `at` or lie in another pool. */
static void leave_at(tracer *self, const place *at)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < self->n_live; i++) {
        mpl_buffer b = self->live[i].b;

        if (self->p->pool[b] == at->pool && self->plan->offset[b] + self->p->bytes[b] > at->offset)
            self->live[n++] = self->live[i];
    }
    self->n_live = n;
}

static int by_start(const void *left, const void *right, void *argument)
{
    const tracer *t = argument;
    mpl_buffer x = *(const mpl_buffer *)left, y = *(const mpl_buffer *)right;
    place px = {t->p->pool[x], t->plan->offset[x]}, py = {t->p->pool[y], t->plan->offset[y]};
    int order = by_place(&px, &py);

    return order != 0 ? order : (x > y) - (x < y);
}

static mpl_status trace(tracer *self, const place *cuts, size_t n_cuts)
{
    uint32_t next = 0;

    for (size_t i = 0; i + 1 < n_cuts; i++) {
        leave_at(self, &cuts[i]);
        for (; next < self->p->n && self->p->pool[self->by_place[next]] == cuts[i].pool &&
               self->plan->offset[self->by_place[next]] == cuts[i].offset;
             next++)
            self->live[self->n_live++] =
                (owner){self->time[self->by_place[next]], self->by_place[next]};
        qsort(self->live, self->n_live, sizeof *self->live, by_time);
        if (cuts[i + 1].pool == cuts[i].pool)
            MPL_PASS(trace_piece(self, &cuts[i], cuts[i + 1].offset));
    }
    return MPL_OK;
}

mpl_status mpl_handovers(mpl_ctx *ctx, const mpl_problem *p, const mpl_plan *plan,
                         mpl_handover **list, size_t *n)
{
    mpl_status st = MPL_OK;
    tracer t = {.ctx = ctx, .p = p, .plan = plan};
    place *cuts = NULL;
    size_t n_cuts;

    MPL_TRY(mpl_new_each(ctx, p->n, t.time, t.live, t.by_place));
    MPL_TRY(mpl_new(ctx, t.last, (size_t)p->n + 1));
    MPL_TRY(set_times(&t));
    MPL_TRY(cut(&t, &cuts, &n_cuts));
    for (mpl_buffer b = 0; b < p->n; b++)
        t.by_place[b] = b;
    qsort_r(t.by_place, p->n, sizeof *t.by_place, by_start, &t);
    MPL_TRY(trace(&t, cuts, n_cuts));
    *list = t.list, t.list = NULL;
    *n = t.n;
out:
    mpl_free_each(ctx, t.time, t.live, t.by_place, t.last, t.list, cuts);
    return st;
}
