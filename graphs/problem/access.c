/* access.c -- see access.h. */
#include "graphs/problem/access.h"

typedef struct tracer {
    mpl_ctx *ctx;
    const mpl_graph *g;
    mpl_access *access;
    const mpl_touches *by;
    uint32_t *event_of;            /* [n_ops] of streams; NULL: operations are their own events */
    uint32_t *pred_begin, *pred;   /* reversed edges */
    uint32_t *touch_begin, *touch; /* [n + 1] events of each buffer, ascending, distinct */
    uint32_t *seen;                /* [n_events] the last search that reached it */
    uint32_t *target;              /* [n_events] the last buffer that had it as an event */
    uint32_t *stack;               /* [n_edges + 1] */
    uint32_t search;
} tracer;

/* Sorts each list and removes duplicates. */
static void tidy(uint32_t n, uint32_t *begin, uint32_t *item)
{
    uint32_t kept = 0, from = 0;

    for (uint32_t i = 0; i < n; i++) {
        uint32_t to = begin[i + 1], first = kept;

        mpl_sort_u32(item + from, to - from);
        for (uint32_t j = from; j < to; j++)
            if (kept == first || item[j] != item[kept - 1])
                item[kept++] = item[j];
        begin[i] = first;
        from = to;
    }
    begin[n] = kept;
}

static uint32_t event(const tracer *self, mpl_op op)
{
    return self->event_of != NULL ? self->event_of[op] : op;
}

static mpl_status number_events(tracer *self)
{
    MPL_PASS(mpl_new(self->ctx, self->event_of, self->g->n_ops));
    for (uint32_t e = 0; e < self->g->n_ops; e++)
        self->event_of[self->by->order[e]] = e;
    return MPL_OK;
}

static mpl_status make_edges(tracer *self)
{
    mpl_status st = MPL_OK;
    const mpl_graph *g = self->g;
    const uint32_t *stream = self->by->op_stream;
    uint32_t n_edges = 0, *last = NULL;

    MPL_TRY(mpl_new(self->ctx, self->pred_begin, (size_t)g->n_ops + 1));
    MPL_TRY(mpl_new(self->ctx, self->pred, (size_t)g->op_in_begin[g->n_ops] + g->n_ops));
    MPL_TRY(mpl_new(self->ctx, last, g->n_ops)); /* of each stream: its last event so far, plus one
                                                  */
    for (uint32_t e = 0; e < g->n_ops; e++) {
        mpl_op op = stream != NULL ? self->by->order[e] : e;

        self->pred_begin[e] = n_edges;
        for (uint32_t i = g->op_in_begin[op]; i < g->op_in_begin[op + 1]; i++)
            if (g->op_in[i] != MPL_NONE && g->value_op[g->op_in[i]] != MPL_NONE)
                self->pred[n_edges++] = event(self, g->value_op[g->op_in[i]]);
        if (stream != NULL && last[stream[op]] > 0)
            self->pred[n_edges++] = last[stream[op]] - 1;
        if (stream != NULL)
            last[stream[op]] = e + 1;
    }
    self->pred_begin[g->n_ops] = n_edges;
    tidy(g->n_ops, self->pred_begin, self->pred);
    MPL_TRY(mpl_lists_turn(self->ctx, g->n_ops, g->n_ops, self->pred_begin, self->pred,
                           &self->access->edge_begin, &self->access->edge_item));
out:
    mpl_free(self->ctx, last);
    return st;
}

/* Records that an operation touches n buffers from b on: counts while touch[] is NULL, else
 * enters. */
static void touch_buffers(tracer *self, mpl_op op, mpl_buffer b, uint32_t n)
{
    for (uint32_t k = 0; b != MPL_NONE && k < n; k++)
        if (self->touch == NULL)
            self->touch_begin[b + k + 2]++;
        else
            self->touch[self->touch_begin[b + k + 1]++] = event(self, op);
}

static void visit(tracer *self)
{
    const mpl_graph *g = self->g;
    const mpl_touches *by = self->by;

    for (mpl_op op = 0; op < g->n_ops; op++) {
        const uint32_t begin[] = {g->op_in_begin[op], g->op_out_begin[op]},
                       end[] = {g->op_in_begin[op] + mpl_n_read(g, op), g->op_out_begin[op + 1]};
        const mpl_value *item[] = {g->op_in, g->op_out};

        for (int side = 0; side < 2 && (by->nothing == NULL || !by->nothing[op]); side++)
            for (uint32_t i = begin[side]; i < end[side]; i++) {
                mpl_value v = item[side][i];

                if (v != MPL_NONE)
                    touch_buffers(self, op, by->value_buffer[v],
                                  by->value_buffers != NULL ? by->value_buffers[v] : 1);
            }
        touch_buffers(self, op, by->op_workspace[op], 1);
    }
}

/* Collects the events of each buffer: operations that make or read its values. */
static mpl_status collect(tracer *self, uint32_t n)
{
    MPL_PASS(mpl_new(self->ctx, self->touch_begin, (size_t)n + 2));
    visit(self);
    mpl_lists_begin(self->touch_begin, n);
    MPL_PASS(mpl_new(self->ctx, self->touch, self->touch_begin[n + 1]));
    visit(self);
    tidy(n, self->touch_begin, self->touch);
    return MPL_OK;
}

/* Whether another event of buffer b can be reached from event e along `begin`, `item`, within [low,
 * high]. Tries the far end first: a path that exists is mostly short. */
static bool reaches(tracer *self, uint32_t b, uint32_t e, const uint32_t *begin,
                    const uint32_t *item, uint32_t low, uint32_t high)
{
    bool up = begin == self->access->edge_begin;
    uint32_t n = 0;

    self->search++;
    self->stack[n++] = e;
    while (n > 0) {
        uint32_t at = self->stack[--n];

        if (at != e && self->target[at] == b + 1)
            return true;
        for (uint32_t k = begin[at]; k < begin[at + 1]; k++) {
            /* The last one pushed is visited first: the highest successor, the lowest
             * predecessor. */
            uint32_t next = up ? item[k] : item[begin[at] + begin[at + 1] - 1 - k];

            if (next < low || next > high || self->seen[next] == self->search)
                continue;
            self->seen[next] = self->search;
            self->stack[n++] = next;
        }
    }
    return false;
}

/* Events of each buffer from which no other event of the buffer can be reached. */
static mpl_status extremes(tracer *self, uint32_t n, const uint32_t *begin, const uint32_t *item,
                           uint32_t **out_begin, uint32_t **out_item)
{
    uint32_t count = 0;

    MPL_PASS(mpl_new(self->ctx, *out_begin, (size_t)n + 1));
    MPL_PASS(mpl_new(self->ctx, *out_item, self->touch_begin[n]));
    for (uint32_t b = 0; b < n; b++) {
        const uint32_t *touch = self->touch + self->touch_begin[b];
        uint32_t n_touch = self->touch_begin[b + 1] - self->touch_begin[b];

        (*out_begin)[b] = count;
        for (uint32_t i = 0; i < n_touch; i++)
            self->target[touch[i]] = b + 1;
        for (uint32_t i = 0; i < n_touch; i++)
            if (!reaches(self, b, touch[i], begin, item, touch[0], touch[n_touch - 1]))
                (*out_item)[count++] = touch[i];
    }
    (*out_begin)[n] = count;
    return MPL_OK;
}

mpl_status mpl_access_new(mpl_ctx *ctx, const mpl_graph *g, uint32_t n, const mpl_touches *touches,
                          mpl_access **out)
{
    mpl_status st = MPL_OK;
    tracer t = {.ctx = ctx, .g = g, .by = touches};

    MPL_TRY(mpl_new(ctx, t.access, 1));
    t.access->n_events = g->n_ops;
    if (touches->op_stream != NULL)
        MPL_TRY(number_events(&t));
    MPL_TRY(make_edges(&t));
    MPL_TRY(collect(&t, n));
    MPL_TRY(mpl_new_each(ctx, g->n_ops, t.seen, t.target));
    MPL_TRY(mpl_new(ctx, t.stack, (size_t)g->n_ops + 1));
    MPL_TRY(extremes(&t, n, t.pred_begin, t.pred, &t.access->first_begin, &t.access->first_item));
    memset(t.target, 0, g->n_ops * sizeof *t.target);
    MPL_TRY(extremes(&t, n, t.access->edge_begin, t.access->edge_item, &t.access->last_begin,
                     &t.access->last_item));
    *out = t.access, t.access = NULL;
out:
    mpl_access_free(ctx, t.access);
    void *arrays[] = {t.event_of, t.pred_begin, t.pred,   t.touch_begin,
                      t.touch,    t.seen,       t.target, t.stack};
    MPL_FREE_ALL(ctx, arrays);
    return st;
}
