/* access.c -- see access.h. */
#include "graphs/problem/access.h"

typedef struct tracer {
    mpl_ctx *ctx;
    const mpl_graph *g;
    mpl_access *a;
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

static uint32_t event(const tracer *t, mpl_op op)
{
    return t->event_of != NULL ? t->event_of[op] : op;
}

static mpl_status number_events(tracer *t)
{
    MPL_PASS(mpl_new(t->ctx, t->event_of, t->g->n_ops));
    for (uint32_t e = 0; e < t->g->n_ops; e++)
        t->event_of[t->by->order[e]] = e;
    return MPL_OK;
}

static mpl_status make_edges(tracer *t)
{
    mpl_status st = MPL_OK;
    const mpl_graph *g = t->g;
    const uint32_t *stream = t->by->op_stream;
    uint32_t n_edges = 0, *last = NULL;

    MPL_TRY(mpl_new(t->ctx, t->pred_begin, (size_t)g->n_ops + 1));
    MPL_TRY(mpl_new(t->ctx, t->pred, (size_t)g->op_in_begin[g->n_ops] + g->n_ops));
    MPL_TRY(mpl_new(t->ctx, last, g->n_ops)); /* of each stream: its last event so far, plus one */
    for (uint32_t e = 0; e < g->n_ops; e++) {
        mpl_op op = stream != NULL ? t->by->order[e] : e;

        t->pred_begin[e] = n_edges;
        for (uint32_t i = g->op_in_begin[op]; i < g->op_in_begin[op + 1]; i++)
            if (g->op_in[i] != MPL_NONE && g->value_op[g->op_in[i]] != MPL_NONE)
                t->pred[n_edges++] = event(t, g->value_op[g->op_in[i]]);
        if (stream != NULL && last[stream[op]] > 0)
            t->pred[n_edges++] = last[stream[op]] - 1;
        if (stream != NULL)
            last[stream[op]] = e + 1;
    }
    t->pred_begin[g->n_ops] = n_edges;
    tidy(g->n_ops, t->pred_begin, t->pred);
    MPL_TRY(mpl_lists_turn(t->ctx, g->n_ops, g->n_ops, t->pred_begin, t->pred, &t->a->edge_begin,
                           &t->a->edge_item));
out:
    mpl_free(t->ctx, last);
    return st;
}

/* Records that an operation touches n buffers from b on: counts while touch[] is NULL, else
 * enters. */
static void touch_buffers(tracer *t, mpl_op op, mpl_buffer b, uint32_t n)
{
    for (uint32_t k = 0; b != MPL_NONE && k < n; k++)
        if (t->touch == NULL)
            t->touch_begin[b + k + 2]++;
        else
            t->touch[t->touch_begin[b + k + 1]++] = event(t, op);
}

static void visit(tracer *t)
{
    const mpl_graph *g = t->g;
    const mpl_touches *by = t->by;

    for (mpl_op op = 0; op < g->n_ops; op++) {
        const uint32_t begin[] = {g->op_in_begin[op], g->op_out_begin[op]},
                       end[] = {g->op_in_begin[op] + mpl_n_read(g, op), g->op_out_begin[op + 1]};
        const mpl_value *item[] = {g->op_in, g->op_out};

        for (int side = 0; side < 2 && (by->nothing == NULL || !by->nothing[op]); side++)
            for (uint32_t i = begin[side]; i < end[side]; i++) {
                mpl_value v = item[side][i];

                if (v != MPL_NONE)
                    touch_buffers(t, op, by->value_buffer[v],
                                  by->value_buffers != NULL ? by->value_buffers[v] : 1);
            }
        touch_buffers(t, op, by->op_workspace[op], 1);
    }
}

/* Collects the events of each buffer: operations that make or read its values. */
static mpl_status collect(tracer *t, uint32_t n)
{
    MPL_PASS(mpl_new(t->ctx, t->touch_begin, (size_t)n + 2));
    visit(t);
    mpl_lists_begin(t->touch_begin, n);
    MPL_PASS(mpl_new(t->ctx, t->touch, t->touch_begin[n + 1]));
    visit(t);
    tidy(n, t->touch_begin, t->touch);
    return MPL_OK;
}

/* Whether another event of buffer b can be reached from event e along `begin`, `item`, within [low,
 * high]. Tries the far end first: a path that exists is mostly short. */
static bool reaches(tracer *t, uint32_t b, uint32_t e, const uint32_t *begin, const uint32_t *item,
                    uint32_t low, uint32_t high)
{
    bool up = begin == t->a->edge_begin;
    uint32_t n = 0;

    t->search++;
    t->stack[n++] = e;
    while (n > 0) {
        uint32_t at = t->stack[--n];

        if (at != e && t->target[at] == b + 1)
            return true;
        for (uint32_t k = begin[at]; k < begin[at + 1]; k++) {
            /* The last one pushed is visited first: the highest successor, the lowest
             * predecessor. */
            uint32_t next = up ? item[k] : item[begin[at] + begin[at + 1] - 1 - k];

            if (next < low || next > high || t->seen[next] == t->search)
                continue;
            t->seen[next] = t->search;
            t->stack[n++] = next;
        }
    }
    return false;
}

/* Events of each buffer from which no other event of the buffer can be reached. */
static mpl_status extremes(tracer *t, uint32_t n, const uint32_t *begin, const uint32_t *item,
                           uint32_t **out_begin, uint32_t **out_item)
{
    uint32_t count = 0;

    MPL_PASS(mpl_new(t->ctx, *out_begin, (size_t)n + 1));
    MPL_PASS(mpl_new(t->ctx, *out_item, t->touch_begin[n]));
    for (uint32_t b = 0; b < n; b++) {
        const uint32_t *touch = t->touch + t->touch_begin[b];
        uint32_t n_touch = t->touch_begin[b + 1] - t->touch_begin[b];

        (*out_begin)[b] = count;
        for (uint32_t i = 0; i < n_touch; i++)
            t->target[touch[i]] = b + 1;
        for (uint32_t i = 0; i < n_touch; i++)
            if (!reaches(t, b, touch[i], begin, item, touch[0], touch[n_touch - 1]))
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

    MPL_TRY(mpl_new(ctx, t.a, 1));
    t.a->n_events = g->n_ops;
    if (touches->op_stream != NULL)
        MPL_TRY(number_events(&t));
    MPL_TRY(make_edges(&t));
    MPL_TRY(collect(&t, n));
    MPL_TRY(mpl_new_each(ctx, g->n_ops, t.seen, t.target));
    MPL_TRY(mpl_new(ctx, t.stack, (size_t)g->n_ops + 1));
    MPL_TRY(extremes(&t, n, t.pred_begin, t.pred, &t.a->first_begin, &t.a->first_item));
    memset(t.target, 0, g->n_ops * sizeof *t.target);
    MPL_TRY(extremes(&t, n, t.a->edge_begin, t.a->edge_item, &t.a->last_begin, &t.a->last_item));
    *out = t.a, t.a = NULL;
out:
    mpl_access_free(ctx, t.a);
    void *arrays[] = {t.event_of, t.pred_begin, t.pred,   t.touch_begin,
                      t.touch,    t.seen,       t.target, t.stack};
    MPL_FREE_ALL(ctx, arrays);
    return st;
}
