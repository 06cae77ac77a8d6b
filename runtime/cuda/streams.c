/* streams.c -- assigns operations to streams, and events to edges between two streams. See
 * device.h.
 *
 * In the order of the run, an operation follows an input that is last on its stream (it needs no
 * event then). Otherwise it goes to a new stream, or to the one with the fewest operations if there
 * is none left. A vector clock keeps the last operation of each stream that is known to be
 * finished, so no wait is repeated. */
#include "runtime/cuda/device.h"

typedef struct maker {
    const mpl_graph *g;
    mpl_cuda_streams *made;
    uint32_t most;
    uint32_t *clock; /* [n_ops][most] operations of each stream that finish before it does */
    uint32_t *place; /* [n_ops] position on its stream, from 1 */
    uint32_t tail[MPL_CUDA_MOST_STREAMS]; /* operations on each stream so far */
    size_t wait_room;
    uint32_t n_waits;
} maker;

static uint32_t *clock_of(const maker *self, mpl_op op)
{
    return self->clock + (size_t)op * self->most;
}

/* Sets the clock of `op` to what is finished when all its inputs are. Also for views, which run
 * nothing. */
static void join_inputs(const maker *self, mpl_op op)
{
    const mpl_graph *g = self->g;
    uint32_t *clock = clock_of(self, op);

    for (uint32_t i = g->op_in_begin[op]; i < g->op_in_begin[op + 1]; i++) {
        mpl_op from = g->op_in[i] != MPL_NONE ? g->value_op[g->op_in[i]] : MPL_NONE;

        for (uint32_t k = 0; from != MPL_NONE && k < self->most; k++)
            if (clock_of(self, from)[k] > clock[k])
                clock[k] = clock_of(self, from)[k];
    }
}

static uint32_t choose(const maker *self, const uint32_t *clock)
{
    uint32_t best = 0;

    for (uint32_t k = 0; k < self->made->n_streams; k++) /* an input is last on it */
        if (clock[k] > 0 && clock[k] == self->tail[k])
            return k;
    if (self->made->n_streams < self->most)
        return self->made->n_streams;
    for (uint32_t k = 1; k < self->made->n_streams; k++)
        if (self->tail[k] < self->tail[best])
            best = k;
    return best;
}

static mpl_op op_at(const maker *self, uint32_t n, const mpl_op *order, uint32_t stream,
                    uint32_t place)
{
    for (uint32_t s = n; s-- > 0;)
        if (self->made->stream[order[s]] == stream && self->place[order[s]] == place)
            return order[s];
    return MPL_NONE;
}

/* Waits that the clock demands of other streams and that the stream has not made yet. */
static mpl_status add_waits(mpl_ctx *ctx, maker *m, const mpl_op *order, uint32_t step,
                            uint32_t stream, const uint32_t *known)
{
    mpl_cuda_streams *streams = m->made;
    const uint32_t *clock = clock_of(m, order[step]);
    mpl_op from[MPL_CUDA_MOST_STREAMS];

    for (uint32_t k = 0; k < streams->n_streams; k++)
        from[k] =
            k != stream && clock[k] > known[k] ? op_at(m, step, order, k, clock[k]) : MPL_NONE;
    for (uint32_t k = 0; k < streams->n_streams; k++) {
        bool implied = false; /* by a wait for another operation, which waited for it */

        for (uint32_t j = 0; j < streams->n_streams && from[k] != MPL_NONE; j++)
            implied |= j != k && from[j] != MPL_NONE && clock_of(m, from[j])[k] >= clock[k];
        if (from[k] == MPL_NONE || implied)
            continue;
        if (streams->event[from[k]] == MPL_NONE)
            streams->event[from[k]] = streams->n_events++;
        MPL_PASS(mpl_reserve(ctx, streams->wait, m->wait_room, (size_t)m->n_waits + 1));
        streams->wait[m->n_waits++] = streams->event[from[k]];
    }
    return MPL_OK;
}

static mpl_status assign(mpl_ctx *ctx, maker *m, const mpl_op *order, const uint8_t *skipped)
{
    mpl_cuda_streams *streams = m->made;
    /* clock at the end of each stream */
    uint32_t known[MPL_CUDA_MOST_STREAMS][MPL_CUDA_MOST_STREAMS] = {{0}};
    uint32_t *begin = streams->wait_begin; /* by step, not by id */

    for (uint32_t step = 0; step < streams->n_ops; step++) {
        mpl_op op = order[step];
        uint32_t *clock = clock_of(m, op), stream;

        begin[step] = m->n_waits;
        join_inputs(m, op);
        if (skipped[op])
            continue;
        stream = choose(m, clock);
        if (stream == streams->n_streams)
            streams->n_streams++;
        MPL_PASS(add_waits(ctx, m, order, step, stream, known[stream]));
        for (uint32_t k = 0; k < m->most; k++)
            clock[k] = known[stream][k] = clock[k] > known[stream][k] ? clock[k] : known[stream][k];
        streams->stream[op] = stream;
        clock[stream] = known[stream][stream] = m->place[op] = ++m->tail[stream];
        streams->last[stream] = op;
    }
    begin[streams->n_ops] = m->n_waits;
    return MPL_OK;
}

mpl_status mpl_cuda_streams_new(mpl_ctx *ctx, const mpl_graph *g, const mpl_op *order,
                                const uint8_t *skipped, uint32_t most, mpl_cuda_streams **out)
{
    mpl_status st = MPL_OK;
    mpl_cuda_streams *streams = NULL;
    maker m = {.g = g, .most = most};

    mpl_assert(most >= 1 && most <= MPL_CUDA_MOST_STREAMS);
    MPL_TRY(mpl_new(ctx, streams, 1));
    m.made = streams;
    streams->n_ops = g->n_ops;
    MPL_TRY(mpl_new_each(ctx, g->n_ops, streams->stream, streams->event));
    MPL_TRY(mpl_new(ctx, streams->wait_begin, (size_t)g->n_ops + 1));
    MPL_TRY(mpl_new(ctx, streams->last, most));
    MPL_TRY(mpl_new(ctx, m.clock, (size_t)g->n_ops * most));
    MPL_TRY(mpl_new(ctx, m.place, g->n_ops));
    for (mpl_op op = 0; op < g->n_ops; op++)
        streams->stream[op] = streams->event[op] = MPL_NONE;
    MPL_TRY(assign(ctx, &m, order, skipped));
    *out = streams, streams = NULL;
out:
    mpl_free_each(ctx, m.clock, m.place);
    mpl_cuda_streams_free(ctx, streams);
    return st;
}

void mpl_cuda_streams_free(mpl_ctx *ctx, mpl_cuda_streams *streams)
{
    if (streams == NULL)
        return;
    mpl_free_each(ctx, streams->stream, streams->event, streams->wait_begin, streams->wait,
                  streams->last, streams);
}
