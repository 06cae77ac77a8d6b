/* device.c -- the backend `cuda`: arenas, copies, operations and whole runs over a table of calls
 * (api.h).
 *
 * A pool is one allocation of the planned size. Nothing is allocated during a run; allocations are
 * counted. Safety serial uses one stream, parallel several, with an event for each edge of the
 * graph between two streams (streams.c). A run can be captured once and replayed as a CUDA graph.
 * Its time is that between two events. */
#include "runtime/cuda/device.h"

#include <stdlib.h>

#include "graphs/core/size.h"

#define MOST_ARENAS       64
#define DEFAULT_STREAMS   4
#define N_NUMBERS         4096
#define NUMBERS_AT        16 /* after the flag [byte] */
#define DEFAULT_WORKSPACE (UINT64_C(256) << 20)
#define GRANULARITY       (UINT64_C(2) << 20) /* unit of cudaMalloc [byte] */
#define TOLERANCE         1e-4 /* of outputs against `ref`, for mpl_compare: sums differ in order */
/* Operands of products have 11 bits, an error of 2^-11 each; over some tens of layers. */
#define ROUNDED_TOLERANCE 2e-2

typedef struct arena {
    void *base;
    uint64_t bytes; /* requested [byte] */
    uint64_t taken; /* decrease of the device's free memory [byte] */
} arena;

struct mpl_device {
    mpl_ctx *ctx;
    const mpl_cuda_api *api;
    mpl_cuda *driver;
    mpl_cuda_choice choice;
    uint64_t workspace_limit; /* of operations prepared next, besides that of `choice` [byte] */
    enum {
        AS_STREAMS,
        AS_GRAPH,
        AS_BOTH
    } way; /* of runs: enqueued on streams, or captured once and replayed */
    uint32_t n_streams;
    void *stream[MPL_CUDA_MOST_STREAMS];
    uint32_t *flag;   /* device memory, 1: an index was out of range */
    int64_t *numbers; /* device memory after the flag: 0 .. N_NUMBERS - 1, for round counters */
    bool flag_in_use; /* an operation that may raise it was prepared */
    mpl_cuda_host_failure host_failure;
    uint32_t n_arenas;
    arena arena[MOST_ARENAS];
    mpl_device_facts facts;
    char about[400];
};

struct mpl_prepared {
    mpl_cuda_part *part;
    uint32_t n_parts;
    mpl_cuda_kernel *kernel; /* [n_parts] launches with operands filled in */
    mpl_cuda_dnn *dnn;
    mpl_cuda_host_op *host; /* if neither kernels nor dnn compute it */
    uint64_t workspace_bytes;
};

struct mpl_sequence {
    mpl_sequence_spec spec;
    mpl_cuda_streams *streams;
    uint32_t n_events;
    void **event;      /* [n_events] the assignment's, a start event, each stream's end event */
    void *begin, *end; /* timed events */
    void *graph;       /* NULL: each run enqueues its operations again */
    uint64_t n_runs;
};

/* ---- errors and options ---- */

static mpl_status check(mpl_device *dev, int code, const char *what, const char *name)
{
    if (code == 0)
        return MPL_OK;
    return MPL_ERROR(dev->ctx, code == MPL_CUDA_OUT_OF_MEMORY ? MPL_EMEM : MPL_EUNAVAIL,
                     "CUDA: %s %s: %s", what, name, dev->api->text(code));
}

static mpl_status read_bytes(mpl_ctx *ctx, const char *key, const char *text, uint64_t *out)
{
    const char *end;

    if (mpl_size_read(text, &end, out) && *end == '\0')
        return MPL_OK;
    return MPL_REFUSE(ctx, "cuda: %s=%s is no number of bytes (KiB, MiB or GiB may follow)", key,
                      text);
}

static mpl_status read_switch(mpl_ctx *ctx, const char *key, const char *text, bool *out)
{
    if (strcmp(text, "on") != 0 && strcmp(text, "off") != 0)
        return MPL_REFUSE(ctx, "cuda: %s=%s; it must be on or off%s", key, text,
                          strcmp(key, "graph") == 0 ? ", or both" : "");
    *out = strcmp(text, "on") == 0;
    return MPL_OK;
}

static mpl_status read_way(mpl_device *dev, const char *text)
{
    bool on = false;

    if (strcmp(text, "both") == 0) {
        dev->way = AS_BOTH;
        return MPL_OK;
    }
    MPL_PASS(read_switch(dev->ctx, "graph", text, &on));
    dev->way = on ? AS_GRAPH : AS_STREAMS;
    return MPL_OK;
}

static mpl_status read_param(mpl_device *dev, const char *key, const char *value, uint64_t *number)
{
    if (strcmp(key, "tf32") == 0)
        return read_switch(dev->ctx, key, value, &dev->choice.tf32);
    if (strcmp(key, "fp16") == 0)
        return read_switch(dev->ctx, key, value, &dev->choice.fp16);
    if (strcmp(key, "graph") == 0)
        return read_way(dev, value);
    if (strcmp(key, "workspace") == 0)
        return read_bytes(dev->ctx, key, value, &dev->choice.workspace_limit);
    if (strcmp(key, "device") == 0) {
        MPL_PASS(read_bytes(dev->ctx, key, value, number));
        if (*number > 1023)
            return MPL_REFUSE(dev->ctx, "cuda: device=%s; it must be below 1024", value);
        return MPL_OK;
    }
    return MPL_REFUSE(
        dev->ctx,
        "cuda: no parameter '%s'; there are tf32=on|off, fp16=on|off, graph=on|off|both, "
        "workspace=BYTES, device=N",
        key);
}

static mpl_status read_params(mpl_device *dev, const char *params, uint64_t *number)
{
    char text[256], *save = NULL;

    if (params == NULL)
        return MPL_OK;
    if (strlen(params) >= sizeof text)
        return MPL_REFUSE(dev->ctx, "cuda: more than %zu characters of parameters",
                          sizeof text - 1);
    snprintf(text, sizeof text, "%s", params);
    for (char *word = strtok_r(text, ",", &save); word != NULL; word = strtok_r(NULL, ",", &save)) {
        char *value = strchr(word, '=');

        if (value == NULL)
            return MPL_REFUSE(dev->ctx, "cuda: parameter '%s' has no value", word);
        *value++ = '\0';
        MPL_PASS(read_param(dev, word, value, number));
    }
    return MPL_OK;
}

/* ---- memory ---- */

static uint64_t memory_used(mpl_device *dev)
{
    size_t available = 0, total = 0;

    return dev->api->memory_info(dev->driver, &available, &total) == 0 ? total - available : 0;
}

static mpl_status take_memory(mpl_device *dev, void **out, uint64_t bytes)
{
    char text[40];

    snprintf(text, sizeof text, "of %" PRIu64 " bytes", bytes);
    if (bytes > SIZE_MAX)
        return check(dev, MPL_CUDA_OUT_OF_MEMORY, "memory", text);
    dev->facts.n_allocations++;
    return check(dev, dev->api->memory_new(dev->driver, out, (size_t)bytes), "memory", text);
}

static mpl_status arena_new(mpl_device *dev, uint64_t bytes, void **base)
{
    uint64_t before = memory_used(dev), after;
    arena a = {.bytes = mpl_max_u64(bytes, 1)};

    if (dev->n_arenas == MOST_ARENAS)
        return MPL_ERROR(dev->ctx, MPL_ELIMIT, "more than %d pools on one device", MOST_ARENAS);
    MPL_PASS(take_memory(dev, &a.base, a.bytes));
    after = memory_used(dev);
    a.taken = after > before ? after - before : 0;
    dev->arena[dev->n_arenas++] = a;
    *base = a.base;
    return MPL_OK;
}

static void arena_free(mpl_device *dev, void *base, uint64_t bytes)
{
    (void)bytes;
    for (uint32_t i = 0; base != NULL && i < dev->n_arenas; i++)
        if (dev->arena[i].base == base) {
            dev->api->memory_free(dev->driver, base);
            dev->arena[i] = dev->arena[--dev->n_arenas];
            return;
        }
}

static mpl_status copy(mpl_device *dev, void *to, const void *from, uint64_t bytes,
                       mpl_cuda_way way)
{
    const char *what = way == MPL_CUDA_TO_DEVICE ? "copying" : "reading";

    if (bytes == 0)
        return MPL_OK;
    MPL_PASS(check(dev, dev->api->copy(dev->driver, to, from, (size_t)bytes, way, dev->stream[0]),
                   what, "data"));
    return check(dev, dev->api->stream_finish(dev->driver, dev->stream[0]), what, "data");
}

static mpl_status upload(mpl_device *dev, void *to, const void *from, uint64_t bytes)
{
    return copy(dev, to, from, bytes, MPL_CUDA_TO_DEVICE);
}

static mpl_status download(mpl_device *dev, void *to, const void *from, uint64_t bytes)
{
    return copy(dev, to, from, bytes, MPL_CUDA_TO_HOST);
}

static mpl_status fill(mpl_device *dev, void *at, uint8_t byte, uint64_t bytes)
{
    if (bytes == 0)
        return MPL_OK;
    return check(dev, dev->api->fill(dev->driver, at, byte, (size_t)bytes, dev->stream[0]),
                 "filling", "memory");
}

static mpl_status copy_within(mpl_device *dev, void *to, const void *from, uint64_t bytes)
{
    return bytes == 0 ? MPL_OK
                      : check(dev,
                              dev->api->copy(dev->driver, to, from, (size_t)bytes, MPL_CUDA_WITHIN,
                                             dev->stream[0]),
                              "copying", "data");
}

static mpl_status put_number(mpl_device *dev, void *to, int64_t number)
{
    if (number < 0 || number >= N_NUMBERS)
        return upload(dev, to, &number, sizeof number);
    return copy_within(dev, to, dev->numbers + number, sizeof number);
}

/* Decrease of the device's free memory by the arena of `base`; `bytes` if unknown. */
static mpl_status resident(mpl_device *dev, const void *base, uint64_t bytes, uint64_t *out)
{
    *out = bytes;
    for (uint32_t i = 0; i < dev->n_arenas; i++) {
        const char *begin = dev->arena[i].base, *at = base;

        if (at >= begin && at < begin + dev->arena[i].bytes)
            *out = dev->arena[i].taken > 0 ? dev->arena[i].taken : bytes;
    }
    return MPL_OK;
}

/* ---- opening ---- */

static void close_device(mpl_device *dev)
{
    if (dev == NULL)
        return;
    if (dev->driver != NULL) {
        for (uint32_t i = 0; i < MPL_CUDA_MOST_STREAMS; i++)
            if (dev->stream[i] != NULL)
                dev->api->stream_free(dev->driver, dev->stream[i]);
        if (dev->flag != NULL)
            dev->api->memory_free(dev->driver, dev->flag);
        dev->api->close(dev->ctx, dev->driver);
    }
    mpl_free(dev->ctx, dev);
}

static mpl_status make_flag(mpl_device *dev)
{
    mpl_status st = MPL_OK;
    void *flag = NULL;
    int64_t *numbers = NULL;

    MPL_TRY(mpl_new(dev->ctx, numbers, N_NUMBERS));
    for (int64_t i = 0; i < N_NUMBERS; i++)
        numbers[i] = i;
    MPL_TRY(take_memory(dev, &flag, NUMBERS_AT + N_NUMBERS * sizeof *numbers));
    dev->flag = flag;
    dev->numbers = (int64_t *)(void *)((char *)flag + NUMBERS_AT);
    MPL_TRY(fill(dev, flag, 0, sizeof *dev->flag));
    MPL_TRY(upload(dev, dev->numbers, numbers, N_NUMBERS * sizeof *numbers));
out:
    mpl_free(dev->ctx, numbers);
    return st;
}

mpl_status mpl_cuda_open(mpl_ctx *ctx, const mpl_cuda_api *api, const mpl_device_options *options,
                         mpl_device **out)
{
    mpl_status st = MPL_OK;
    mpl_device *dev = NULL;
    const char *about = "";
    uint64_t number = 0;

    MPL_TRY(mpl_new(ctx, dev, 1));
    dev->ctx = ctx;
    dev->api = api;
    dev->choice.workspace_limit = DEFAULT_WORKSPACE;
    dev->workspace_limit = UINT64_MAX;
    MPL_TRY(read_params(dev, options->params, &number));
    dev->n_streams = options->n_threads == 0                      ? DEFAULT_STREAMS
                     : options->n_threads < MPL_CUDA_MOST_STREAMS ? options->n_threads
                                                                  : MPL_CUDA_MOST_STREAMS;
    MPL_TRY(api->open(ctx, (int)number, &dev->driver, &about));
    for (uint32_t i = 0; i < dev->n_streams; i++)
        MPL_TRY(check(dev, api->stream_new(dev->driver, &dev->stream[i]), "opening", "a stream"));
    MPL_TRY(make_flag(dev));
    dev->facts.math = dev->choice.fp16 ? "f16" : dev->choice.tf32 ? "tf32" : "f32";
    dev->facts.tolerance = dev->choice.fp16 || dev->choice.tf32 ? ROUNDED_TOLERANCE : TOLERANCE;
    snprintf(dev->about, sizeof dev->about,
             "%s; products of %s; workspaces up to %" PRIu64 " bytes; %s", about, dev->facts.math,
             dev->choice.workspace_limit,
             dev->way == AS_GRAPH  ? "CUDA graph"
             : dev->way == AS_BOTH ? "streams and CUDA graph in turns"
                                   : "streams");
    dev->facts.granularity = GRANULARITY;
    dev->facts.two_ways = dev->way == AS_BOTH;
    dev->facts.about = dev->about;
    *out = dev, dev = NULL;
out:
    close_device(dev);
    return st;
}

static void facts(mpl_device *dev, mpl_device_facts *out)
{
    *out = dev->facts;
    for (uint32_t i = 0; i < dev->n_arenas; i++)
        out->taken += dev->arena[i].taken;
}

/* ---- operations ---- */

static void release(mpl_device *dev, mpl_prepared *prepared)
{
    if (prepared == NULL)
        return;
    if (prepared->dnn != NULL)
        dev->api->dnn_release(dev->ctx, dev->driver, prepared->dnn);
    mpl_cuda_host_free(dev->ctx, dev->api, dev->driver, prepared->host);
    mpl_free_each(dev->ctx, prepared->part, prepared->kernel, prepared);
}

static mpl_status prepare(mpl_device *dev, const mpl_graph *g, mpl_op op, mpl_prepared **out,
                          uint64_t *workspace_bytes, const char **how)
{
    mpl_status st = MPL_OK;
    mpl_prepared *prepared = NULL;
    const char *name =
        (mpl_op_table[g->op_kind[op]].traits & MPL_VIEW) != 0 ? MPL_HOW_COPY : "kernel";
    mpl_cuda_choice choice = dev->choice;

    choice.workspace_limit = mpl_min_u64(choice.workspace_limit, dev->workspace_limit);
    MPL_TRY(mpl_new(dev->ctx, prepared, 1));
    MPL_TRY(dev->api->dnn_prepare(dev->ctx, dev->driver, g, op, &choice, &prepared->dnn,
                                  &prepared->workspace_bytes, &name));
    if (prepared->dnn == NULL) {
        MPL_TRY(mpl_cuda_describe(dev->ctx, g, op, &prepared->part, &prepared->n_parts));
        MPL_TRY(mpl_new(dev->ctx, prepared->kernel, prepared->n_parts));
    }
    if (prepared->dnn == NULL && prepared->part == NULL) {
        name = MPL_HOW_LOOPS;
        MPL_TRY(mpl_cuda_host_new(dev->ctx, dev->api, dev->driver, g, op, &dev->host_failure,
                                  &prepared->host));
    }
    for (uint32_t i = 0; i < prepared->n_parts; i++) {
        dev->flag_in_use |= prepared->part[i].checks;
        prepared->workspace_bytes =
            mpl_max_u64(prepared->workspace_bytes, prepared->part[i].workspace_bytes);
    }
    if (prepared->workspace_bytes > dev->workspace_limit)
        MPL_FAIL(dev->ctx, MPL_EUNAVAIL,
                 "graph '%s': operation '%s' needs %" PRIu64 " bytes of workspace on cuda; %" PRIu64
                 " are allowed",
                 g->name, g->op_name[op], prepared->workspace_bytes, dev->workspace_limit);
    *workspace_bytes = prepared->workspace_bytes;
    if (how != NULL)
        *how = name;
    *out = prepared, prepared = NULL;
out:
    release(dev, prepared);
    return st;
}

static void limit_workspace(mpl_device *dev, uint64_t bytes)
{
    dev->workspace_limit = bytes;
}

/* Fills in a launch with the operands of this call. */
static void fill_in(mpl_device *dev, const mpl_cuda_part *part, const mpl_op_call *call,
                    mpl_cuda_kernel *kernel)
{
    *kernel = part->kernel;
    kernel->flag = dev->flag;
    kernel->work = call->workspace;
    for (uint32_t i = 0; i < MPL_CUDA_MAX_IN; i++)
        kernel->in[i] = part->in[i] == MPL_NONE             ? NULL
                        : part->in[i] == MPL_CUDA_WORKSPACE ? call->workspace
                                                            : call->in[part->in[i]].data;
    if (kernel->in[0] != NULL)
        kernel->in[0] = (const char *)kernel->in[0] + part->in_byte;
    for (uint32_t i = 0; i < MPL_CUDA_MAX_OUT && i < call->n_out && part->all_outputs; i++)
        kernel->out[i] = call->out[i].data;
    if (part->out == MPL_CUDA_WORKSPACE)
        kernel->out[0] = call->workspace;
    else if (!part->all_outputs)
        kernel->out[0] = (char *)call->out[part->out].data + part->out_byte;
}

static mpl_status put_op(mpl_device *dev, mpl_prepared *prepared, const mpl_op_call *call,
                         void *stream)
{
    mpl_cuda_work work = {call, prepared->workspace_bytes, prepared->n_parts, prepared->kernel,
                          prepared->dnn};
    int code;

    for (uint32_t i = 0; i < prepared->n_parts; i++)
        fill_in(dev, &prepared->part[i], call, &prepared->kernel[i]);
    code = prepared->host != NULL
               ? mpl_cuda_host_put(dev->api, dev->driver, prepared->host, call, stream)
               : dev->api->run(dev->driver, &work, stream);
    return check(dev, code, "running", call->graph->op_name[call->op]);
}

static mpl_status run_op(mpl_device *dev, mpl_prepared *prepared, const mpl_op_call *call)
{
    return put_op(dev, prepared, call, dev->stream[0]);
}

/* Fails if an index was out of range, or a host operation failed, since the last call. */
static mpl_status ask_flag(mpl_device *dev)
{
    mpl_status st = dev->host_failure.status;
    uint32_t raised = 0;

    dev->host_failure.status = MPL_OK;
    if (st != MPL_OK)
        MPL_FAIL(dev->ctx, st, "%s", dev->host_failure.message);
    if (!dev->flag_in_use)
        return MPL_OK;
    MPL_TRY(download(dev, &raised, dev->flag, sizeof raised));
    if (raised == 0)
        return MPL_OK;
    MPL_TRY(fill(dev, dev->flag, 0, sizeof raised));
    MPL_FAIL(
        dev->ctx, MPL_EINPUT,
        "an operation on the device found an index, a label or a number of runs outside of its "
        "range");
out:
    return st;
}

static mpl_status wait(mpl_device *dev)
{
    MPL_PASS(check(dev, dev->api->stream_finish(dev->driver, dev->stream[0]), "waiting for",
                   "the device"));
    return ask_flag(dev);
}

/* ---- whole runs ---- */

static void *event_start(const mpl_sequence *sequence)
{
    return sequence->event[sequence->streams->n_events];
}

static void *event_last(const mpl_sequence *sequence, uint32_t stream)
{
    return sequence->event[sequence->streams->n_events + stream];
}

/* Enqueues the whole run. The other streams wait for the start of stream 0; stream 0 ends after
 * their ends. */
static mpl_status put_all(mpl_device *dev, mpl_sequence *sequence)
{
    const mpl_cuda_api *api = dev->api;
    const mpl_cuda_streams *to = sequence->streams;

    if (to->n_streams > 1)
        MPL_PASS(check(dev, api->event_record(dev->driver, event_start(sequence), dev->stream[0]),
                       "putting", "an event"));
    for (uint32_t k = 1; k < to->n_streams; k++)
        MPL_PASS(check(dev, api->stream_wait(dev->driver, dev->stream[k], event_start(sequence)),
                       "putting", "a wait"));
    for (uint32_t step = 0; step < to->n_ops; step++) {
        mpl_op op = sequence->spec.order[step];
        void *stream;

        if (to->stream[op] == MPL_NONE)
            continue;
        stream = dev->stream[to->stream[op]];
        for (uint32_t i = to->wait_begin[step]; i < to->wait_begin[step + 1]; i++)
            MPL_PASS(check(dev, api->stream_wait(dev->driver, stream, sequence->event[to->wait[i]]),
                           "putting", "a wait"));
        MPL_PASS(put_op(dev, sequence->spec.prepared[op], &sequence->spec.call[op], stream));
        if (to->event[op] != MPL_NONE)
            MPL_PASS(check(dev,
                           api->event_record(dev->driver, sequence->event[to->event[op]], stream),
                           "putting", "an event"));
    }
    for (uint32_t k = 1; k < to->n_streams; k++) {
        MPL_PASS(check(dev, api->event_record(dev->driver, event_last(sequence, k), dev->stream[k]),
                       "putting", "an event"));
        MPL_PASS(check(dev, api->stream_wait(dev->driver, dev->stream[0], event_last(sequence, k)),
                       "putting", "a wait"));
    }
    return MPL_OK;
}

static void sequence_free(mpl_device *dev, mpl_sequence *sequence)
{
    if (sequence == NULL)
        return;
    if (sequence->graph != NULL)
        dev->api->graph_free(dev->driver, sequence->graph);
    for (uint32_t i = 0; sequence->event != NULL && i < sequence->n_events; i++)
        if (sequence->event[i] != NULL)
            dev->api->event_free(dev->driver, sequence->event[i]);
    if (sequence->begin != NULL)
        dev->api->event_free(dev->driver, sequence->begin);
    if (sequence->end != NULL)
        dev->api->event_free(dev->driver, sequence->end);
    mpl_free(dev->ctx, sequence->event);
    mpl_cuda_streams_free(dev->ctx, sequence->streams);
    mpl_free(dev->ctx, sequence);
}

/* A capture that fails must still be ended, or the stream stays in capture mode. */
static mpl_status capture(mpl_device *dev, mpl_sequence *sequence)
{
    mpl_status st = MPL_OK, put;
    void *graph = NULL;
    int code;

    MPL_TRY(
        check(dev, dev->api->capture_begin(dev->driver, dev->stream[0]), "beginning", "a capture"));
    put = put_all(dev, sequence);
    code = dev->api->capture_end(dev->driver, dev->stream[0], &graph);
    sequence->graph = graph;
    MPL_TRY(put);
    MPL_TRY(check(dev, code, "ending", "a capture"));
out:
    return st;
}

/* Runs once, on whatever memory holds, before it captures: code that is loaded at its first use
 * must not be loaded during a capture. */
static mpl_status run_and_capture(mpl_device *dev, mpl_sequence *sequence)
{
    MPL_PASS(put_all(dev, sequence));
    MPL_PASS(fill(dev, dev->flag, 0, sizeof *dev->flag));
    MPL_PASS(
        check(dev, dev->api->stream_finish(dev->driver, dev->stream[0]), "waiting for", "a run"));
    dev->host_failure.status = MPL_OK;
    return capture(dev, sequence);
}

static mpl_status sequence_new(mpl_device *dev, const mpl_sequence_spec *spec, mpl_sequence **out)
{
    mpl_status st = MPL_OK;
    mpl_sequence *sequence = NULL;
    uint32_t lanes = spec->most_lanes;

    if (lanes == 0 || lanes > dev->n_streams)
        lanes = dev->n_streams;
    MPL_TRY(mpl_new(dev->ctx, sequence, 1));
    sequence->spec = *spec;
    MPL_TRY(mpl_cuda_streams_new(dev->ctx, spec->g, spec->order, spec->skipped, lanes,
                                 &sequence->streams));
    sequence->n_events = sequence->streams->n_events + sequence->streams->n_streams;
    MPL_TRY(mpl_new(dev->ctx, sequence->event, sequence->n_events));
    for (uint32_t i = 0; i < sequence->n_events; i++)
        MPL_TRY(check(dev, dev->api->event_new(dev->driver, &sequence->event[i], false), "making",
                      "an event"));
    MPL_TRY(
        check(dev, dev->api->event_new(dev->driver, &sequence->begin, true), "making", "an event"));
    MPL_TRY(
        check(dev, dev->api->event_new(dev->driver, &sequence->end, true), "making", "an event"));
    if (spec->as_it_stands)
        MPL_TRY(capture(dev, sequence));
    else if (dev->way != AS_STREAMS)
        MPL_TRY(run_and_capture(dev, sequence));
    *out = sequence, sequence = NULL;
out:
    sequence_free(dev, sequence);
    return st;
}

static bool captures(const mpl_device *dev)
{
    return dev->way != AS_STREAMS;
}

static mpl_status sequence_put(mpl_device *dev, mpl_sequence *sequence)
{
    return check(dev, dev->api->graph_launch(dev->driver, sequence->graph, dev->stream[0]),
                 "launching", "a graph");
}

static mpl_status sequence_run(mpl_device *dev, mpl_sequence *sequence, int64_t *ns)
{
    const mpl_cuda_api *api = dev->api;
    uint64_t n_before = dev->facts.n_allocations;
    float ms = 0;

    dev->facts.used_before = memory_used(dev);
    MPL_PASS(check(dev, api->event_record(dev->driver, sequence->begin, dev->stream[0]), "putting",
                   "an event"));
    if (sequence->graph != NULL && (dev->way == AS_GRAPH || sequence->n_runs % 2 == 1))
        MPL_PASS(check(dev, api->graph_launch(dev->driver, sequence->graph, dev->stream[0]),
                       "launching", "a graph"));
    else
        MPL_PASS(put_all(dev, sequence));
    MPL_PASS(check(dev, api->event_record(dev->driver, sequence->end, dev->stream[0]), "putting",
                   "an event"));
    MPL_PASS(check(dev, api->stream_finish(dev->driver, dev->stream[0]), "waiting for", "a run"));
    MPL_PASS(check(dev, api->event_time(dev->driver, &ms, sequence->begin, sequence->end), "timing",
                   "a run"));
    sequence->n_runs++;
    dev->facts.used_after = memory_used(dev);
    dev->facts.clocks = (mpl_device_clocks){0};
    dev->facts.clocks.known = api->clocks(dev->driver, &dev->facts.clocks) == 0;
    dev->facts.n_while_running += dev->facts.n_allocations - n_before;
    MPL_PASS(ask_flag(dev));
    if (ns != NULL)
        *ns = (int64_t)((double)ms * 1e6);
    return MPL_OK;
}

static mpl_status replay(mpl_device *dev, const mpl_request *request, uint32_t n,
                         mpl_replay_mode mode, mpl_replay_facts *out)
{
    return mpl_cuda_replay(dev->ctx, dev->api, dev->driver, dev->stream[0], request, n, mode, out);
}

/* ---- the backend ---- */

static const char *missing(void)
{
    const char *absent = NULL;
    const mpl_cuda_api *api = mpl_cuda_real(&absent);

    return api != NULL ? api->absent() : absent;
}

static mpl_status open_device(mpl_ctx *ctx, const mpl_device_options *options, mpl_device **out)
{
    const char *absent = NULL;
    const mpl_cuda_api *api = mpl_cuda_real(&absent);

    if (api == NULL)
        return MPL_ERROR(ctx, MPL_EUNAVAIL, "backend cuda: %s", absent);
    return mpl_cuda_open(ctx, api, options, out);
}

const mpl_backend mpl_backend_cuda = {
    .name = "cuda",
    .about = "NVIDIA GPUs through CUDA, cuDNN, cuBLAS and kernels of our own",
    .align = 128,
    .takes_params = true,
    .missing = missing,
    .open = open_device,
    .close = close_device,
    .arena_new = arena_new,
    .arena_free = arena_free,
    .upload = upload,
    .download = download,
    .fill = fill,
    .copy = copy_within,
    .resident = resident,
    .prepare = prepare,
    .release = release,
    .limit_workspace = limit_workspace,
    .run_op = run_op,
    .wait = wait,
    .sequence_new = sequence_new,
    .sequence_free = sequence_free,
    .sequence_run = sequence_run,
    .captures = captures,
    .sequence_put = sequence_put,
    .put_number = put_number,
    .facts = facts,
    .replay = replay,
};
