/* cuda_fake_run.c -- tasks of the fake device: what they access, and when they run. See
 * cuda_fake.h. */
#include "tests/device/cuda_fake_priv.h"

#include "tests/device/cudnn_host.h"

#include "graphs/ops/ops_priv.h"

#include <assert.h>
#include <stdlib.h>

struct fake_device gpu;

/* ---- memory accesses of a task ---- */

static bool inside_one(const char *at, uint64_t bytes)
{
    for (const allocation *a = gpu.allocations; a != NULL; a = a->next)
        if (at >= a->at && bytes <= a->bytes && (uint64_t)(at - a->at) <= a->bytes - bytes)
            return true;
    return bytes == 0;
}

static void touch(const task *t, const void *where, uint64_t bytes, bool writes, const char *name)
{
    const char *at = where;

    if (bytes == 0)
        return;
    if (!inside_one(at, bytes))
        fake.n_wild++;
    for (size_t i = 0; i < gpu.n_history; i++) {
        const access_range *a = &gpu.history[i];

        if (at < a->at + a->bytes && a->at < at + bytes && (writes || a->writes) &&
            t->clock[a->stream] < a->index) {
            if (fake.n_races++ == 0)
                snprintf(fake.race, sizeof fake.race,
                         "'%s' on stream %u %s what '%s' on stream %u %s", name, t->stream,
                         writes ? "writes" : "reads", a->name, a->stream,
                         a->writes ? "writes" : "reads");
        }
    }
    if (gpu.n_history == gpu.room_history) {
        gpu.room_history = gpu.room_history * 2 + 64;
        gpu.history = realloc(gpu.history, gpu.room_history * sizeof *gpu.history);
    }
    gpu.history[gpu.n_history] =
        (access_range){at, bytes, writes, t->stream, t->clock[t->stream], {0}};
    snprintf(gpu.history[gpu.n_history++].name, sizeof gpu.history->name, "%.39s", name);
}

static uint64_t tensor_bytes(const mpl_tensor *t)
{
    return t->data != NULL ? (uint64_t)mpl_count(&t->shape) * mpl_type_bytes(t->type) : 0;
}

static void touch_operands(const task *t)
{
    const mpl_op_call *c = &t->call;
    const char *name = c->graph->op_name[c->op];
    mpl_op_kind kind = (mpl_op_kind)c->graph->op_kind[c->op];
    uint32_t n_read = mpl_n_updates(kind) > 0 ? mpl_op_table[kind].min_in
                                              : c->n_in; /* others only order the operation */

    for (uint32_t i = 0; i < n_read; i++) {
        bool in_place = false;

        for (uint32_t k = 0; k < c->n_out; k++)
            in_place |= c->in[i].data == c->out[k].data;
        if (!in_place)
            touch(t, c->in[i].data, tensor_bytes(&c->in[i]), false, name);
    }
    for (uint32_t i = 0; i < c->n_out; i++)
        touch(t, c->out[i].data, tensor_bytes(&c->out[i]), true, name);
    touch(t, c->workspace, t->workspace_bytes, true, name);
}

/* ---- running ---- */

void fake_free_task(task *t)
{
    free(t->operand);
    free(t->kernel);
    free(t);
}

static void perform(const task *t)
{
    if (t->strays)
        ((char *)t->call.out[0].data)[tensor_bytes(&t->call.out[0])] ^= 0x55;
    if (t->kind == COPY)
        memcpy(t->to, t->from, t->bytes);
    else if (t->kind == FILL)
        memset(t->to, t->byte, t->bytes);
    else if (t->kind == CALL_HOST)
        t->function(t->to);
    else if (t->dnn != NULL)
        fake.n_misused += host_dnn_run(&(mpl_cuda_work){.call = &t->call, .dnn = t->dnn}) != 0;
    else if (t->kernel == NULL)
        mpl_eval(gpu.world_ctx, &t->call);
    else
        for (uint32_t i = 0; i < t->n_kernels; i++)
            emulated_launch(&t->kernel[i], NULL);
}

static bool may_run(uint32_t s)
{
    const task *t = gpu.streams[s].first;

    for (uint32_t k = 0; t != NULL && k < MOST_STREAMS; k++)
        if (k != s && gpu.streams[k].done < t->clock[k])
            return false;
    return t != NULL;
}

bool fake_reached(const uint64_t *clock)
{
    for (uint32_t k = 0; k < MOST_STREAMS; k++)
        if (gpu.streams[k].done < clock[k])
            return false;
    return true;
}

void fake_run_until(const uint64_t *clock)
{
    while (!fake_reached(clock)) {
        uint32_t s = MOST_STREAMS;
        task *t;

        while (s-- > 0 && !may_run(s))
            ;
        assert(s < MOST_STREAMS);
        t = gpu.streams[s].first;
        gpu.streams[s].first = t->next;
        if (gpu.streams[s].first == NULL)
            gpu.streams[s].end = &gpu.streams[s].first;
        perform(t);
        gpu.streams[s].done++;
        fake_free_task(t);
    }
}

void fake_enqueue(task *t)
{
    stream *s = &gpu.streams[t->stream];

    join(s->clock, gpu.host_clock);
    s->clock[t->stream]++;
    memcpy(t->clock, s->clock, sizeof t->clock);
    if (t->kind == COPY || t->kind == FILL) {
        if (inside_one(t->to, t->bytes))
            touch(t, t->to, t->bytes, true, "a copy");
        if (t->kind == COPY && inside_one(t->from, t->bytes))
            touch(t, t->from, t->bytes, false, "a copy");
    } else if (t->kind == RUN) {
        touch_operands(t);
    }
    t->next = NULL;
    *s->end = t;
    s->end = &t->next;
}

/* Whether an event was recorded in the capture so far. */
static bool recorded_there(const graph *g, uint32_t which)
{
    for (const task *t = g->first; t != NULL; t = t->next)
        if (t->kind == RECORD && t->event == which)
            return true;
    return false;
}

int fake_put_or_capture(task *t)
{
    if (gpu.capturing == NULL) {
        fake_enqueue(t);
        return 0;
    }
    if (t->kind == WAIT && recorded_there(gpu.capturing, t->event))
        gpu.capturing->joined[t->stream] = true;
    if (!gpu.capturing->joined[t->stream]) { /* on a real device it would run now */
        fake.n_misused++;
        fake_free_task(t);
        return NOT_IN_CAPTURE;
    }
    t->next = NULL;
    *gpu.capturing->end = t;
    gpu.capturing->end = &t->next;
    return 0;
}
