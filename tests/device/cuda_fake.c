/* cuda_fake.c -- the call table of the fake device. See cuda_fake.h. */
#include "tests/device/cuda_fake_priv.h"

#include "tests/device/cudnn_host.h"

#include <assert.h>
#include <stdlib.h>

#define LAUNCH_FAILED 719
#define DEVICE_LOST   46

fake_world fake;

typedef struct event {
    bool timed;
    bool recorded;
    uint64_t clock[MOST_STREAMS];
    uint64_t n_graph_launches;
} event;

static event **events; /* numbered from 1 */
static size_t n_events;
static allocation *host_memory; /* page-locked */
static int stuck;               /* the code that every call returns from now on */

void fake_reset(void)
{
    assert(fake.n_live == 0);
    free(gpu.history);
    gpu.history = NULL, gpu.n_history = gpu.room_history = 0;
    for (size_t i = 0; i < n_events; i++)
        free(events[i]);
    free(events);
    events = NULL, n_events = 0;
    memset(gpu.streams, 0, sizeof gpu.streams);
    memset(gpu.host_clock, 0, sizeof gpu.host_clock);
    stuck = 0, gpu.capturing = NULL;
    host.launch = emulated_launch;
    fake = (fake_world){.oom_at = FAKE_NEVER,
                        .launch_at = FAKE_NEVER,
                        .stray_at = FAKE_NEVER,
                        .lost_at = FAKE_NEVER,
                        .total_bytes = UINT64_C(1) << 40};
}

/* Called first by every call of the table. */
static int enter(bool in_capture_too)
{
    if (fake.n_calls++ == fake.lost_at && stuck == 0)
        stuck = DEVICE_LOST;
    if (stuck == 0 && gpu.capturing != NULL && !in_capture_too) {
        fake.n_misused++;
        return NOT_IN_CAPTURE;
    }
    return stuck;
}

static stream *stream_of(void *handle, uint32_t *index)
{
    uintptr_t i = (uintptr_t)handle;

    if (i < 1 || i > MOST_STREAMS || !gpu.streams[i - 1].live) {
        fake.n_misused++;
        return NULL;
    }
    *index = (uint32_t)(i - 1);
    return &gpu.streams[i - 1];
}

static event *event_of(void *handle)
{
    uintptr_t i = (uintptr_t)handle;

    if (i < 1 || i > n_events || events[i - 1] == NULL) {
        fake.n_misused++;
        return NULL;
    }
    return events[i - 1];
}

/* ---- the table ---- */

static const char *absent(void)
{
    return NULL;
}

static mpl_status open_fake(mpl_ctx *ctx, int device, mpl_cuda **out, const char **about)
{
    MPL_PASS(mpl_new(ctx, *out, 1));
    if (device != 0) {
        mpl_free(ctx, *out);
        *out = NULL;
        return MPL_ERROR(ctx, MPL_EUNAVAIL, "CUDA: opening the device: there is one only");
    }
    (*out)->ctx = gpu.world_ctx = ctx;
    *about = "a fake device";
    fake.n_live++;
    return MPL_OK;
}

static void close_fake(mpl_ctx *ctx, mpl_cuda *c)
{
    fake.n_live--;
    for (uint32_t s = 0; s < MOST_STREAMS; s++)
        /* a failure may leave work queued */
        for (task *t = gpu.streams[s].first, *next; t != NULL; t = next) {
            next = t->next;
            fake_free_task(t);
            gpu.streams[s].first = NULL;
        }
    emulated_end();
    mpl_free(ctx, c);
}

static const char *text(int code)
{
    return code == MPL_CUDA_OUT_OF_MEMORY ? "out of memory"
           : code == LAUNCH_FAILED        ? "unspecified launch failure"
           : code == DEVICE_LOST          ? "device lost"
                                          : "not permitted while a stream is captured";
}

static int allocate(void **out, size_t bytes)
{
    allocation *a;

    if (fake.n_allocations++ == fake.oom_at || fake.live_bytes + bytes > fake.total_bytes)
        return MPL_CUDA_OUT_OF_MEMORY;
    a = malloc(sizeof *a);
    if (posix_memalign((void **)&a->at, 256, bytes) != 0)
        abort();
    memset(a->at, 0xee, bytes);
    a->bytes = bytes;
    a->next = gpu.allocations;
    gpu.allocations = a;
    fake.n_live++;
    fake.live_bytes += bytes;
    fake.peak_bytes = mpl_max_u64(fake.peak_bytes, fake.live_bytes);
    *out = a->at;
    return 0;
}

static int memory_new(mpl_cuda *c, void **out, size_t bytes)
{
    int code = enter(false);

    (void)c;
    return code != 0 ? code : allocate(out, bytes);
}

/* Takes what begins at p out of a list; *bytes: its size. */
static bool release(allocation **list, const void *p, uint64_t *bytes)
{
    for (; *list != NULL; list = &(*list)->next)
        if ((*list)->at == p) {
            allocation *gone = *list;

            *bytes = gone->bytes;
            *list = gone->next;
            free(gone->at);
            free(gone);
            fake.n_live--;
            return true;
        }
    fake.n_misused++;
    return false;
}

/* Like cudaFree, first waits for all work. */
static int memory_free(mpl_cuda *c, void *p)
{
    int code = enter(false);
    uint64_t all[MOST_STREAMS], bytes;

    (void)c;
    for (uint32_t s = 0; s < MOST_STREAMS; s++)
        all[s] = gpu.streams[s].clock[s];
    if (code == 0) {
        fake_run_until(all);
        join(gpu.host_clock, all);
        gpu.n_history = 0;
    }
    if (release(&gpu.allocations, p, &bytes)) /* a lost device has lost its memory */
        fake.live_bytes -= bytes;
    return code;
}

/* Allocates host memory, which does not count for the device. */
static int host_new(mpl_cuda *c, void **out, size_t bytes)
{
    int code = enter(false);
    allocation *a;

    (void)c;
    if (code != 0)
        return code;
    a = malloc(sizeof *a);
    *a = (allocation){malloc(bytes), bytes, host_memory};
    host_memory = a;
    fake.n_live++;
    *out = a->at;
    return 0;
}

static int host_free(mpl_cuda *c, void *p)
{
    uint64_t bytes;

    (void)c;
    return release(&host_memory, p, &bytes) ? enter(false) : 1;
}

static bool is_locked(const char *at)
{
    for (const allocation *a = host_memory; a != NULL; a = a->next)
        if (at >= a->at && at < a->at + a->bytes)
            return true;
    return false;
}

static int pool_new(mpl_cuda *c, void **out, size_t bytes, void *handle)
{
    uint32_t s;

    return stream_of(handle, &s) != NULL ? memory_new(c, out, bytes) : 1;
}

static int pool_free(mpl_cuda *c, void *p, void *handle)
{
    uint32_t s;

    return stream_of(handle, &s) != NULL ? memory_free(c, p) : 1;
}

/* Device memory in use, each allocation rounded up to the granularity. */
static uint64_t taken_bytes(void)
{
    uint64_t sum = 0, piece = fake.granularity > 0 ? fake.granularity : 1;

    for (const allocation *a = gpu.allocations; a != NULL; a = a->next)
        sum += (a->bytes + piece - 1) / piece * piece;
    return sum;
}

static int memory_info(mpl_cuda *c, size_t *available, size_t *total)
{
    int code = enter(true);

    (void)c;
    *total = fake.total_bytes;
    *available = fake.total_bytes - fake.others_bytes - taken_bytes();
    return code;
}

static int clocks(mpl_cuda *c, mpl_device_clocks *out)
{
    int code = enter(true);

    (void)c;
    if (code != 0 || fake.no_clocks)
        return 1;
    *out = (mpl_device_clocks){.core_mhz = 1410,
                               .core_most_mhz = 1980,
                               .memory_mhz = 2619,
                               .memory_most_mhz = 2619,
                               .power_mw = 123456,
                               .power_most_mw = 700000,
                               .celsius = 41,
                               .state = 2,
                               .throttled = 4};
    return 0;
}

/* A copy with operands and kernels of its own. */
static task *task_copy(const task *t)
{
    task *twin = malloc(sizeof *twin);
    uint32_t n_in = t->call.n_in, n_out = t->call.n_out;

    *twin = *t;
    if (t->kind == RUN) {
        twin->operand = malloc((n_in + n_out + 1) * sizeof *twin->operand);
        memcpy(twin->operand, t->call.in, n_in * sizeof *twin->operand);
        memcpy(twin->operand + n_in, t->call.out, n_out * sizeof *twin->operand);
        twin->call.in = twin->operand;
        twin->call.out = twin->operand + n_in;
    }
    if (t->kernel != NULL) {
        twin->kernel = malloc((t->n_kernels + 1) * sizeof *twin->kernel);
        memcpy(twin->kernel, t->kernel, t->n_kernels * sizeof *twin->kernel);
    }
    return twin;
}

/* Puts a copy of the task on a stream; `code`: what entering the call gave. */
static int put_on(int code, void *handle, task t)
{
    if (code != 0 || stream_of(handle, &t.stream) == NULL)
        return code != 0 ? code : 1;
    return fake_put_or_capture(task_copy(&t));
}

static int copy(mpl_cuda *c, void *to, const void *from, size_t bytes, mpl_cuda_way way,
                void *handle)
{
    /* a capture accepts no copy of pageable memory */
    int code = enter(way != MPL_CUDA_WITHIN && is_locked(way == MPL_CUDA_TO_HOST ? to : from));

    (void)c;
    return put_on(code, handle, (task){.kind = COPY, .to = to, .from = from, .bytes = bytes});
}

static int fill(mpl_cuda *c, void *at, int byte, size_t bytes, void *handle)
{
    (void)c;
    return put_on(enter(true), handle,
                  (task){.kind = FILL, .to = at, .byte = byte, .bytes = bytes});
}

static int host_call(mpl_cuda *c, void (*function)(void *data), void *data, void *handle)
{
    (void)c;
    return put_on(enter(true), handle, (task){.kind = CALL_HOST, .function = function, .to = data});
}

static int stream_new(mpl_cuda *c, void **out)
{
    int code = enter(false);

    (void)c;
    for (uintptr_t i = 0; i < MOST_STREAMS && code == 0; i++)
        if (!gpu.streams[i].live) {
            gpu.streams[i].live = true;
            gpu.streams[i].end = &gpu.streams[i].first;
            fake.n_live++;
            *out = (void *)(i + 1);
            return 0;
        }
    return code != 0 ? code : 1;
}

static int stream_free(mpl_cuda *c, void *handle)
{
    uint32_t s;
    int code = enter(false);

    (void)c;
    if (stream_of(handle, &s) != NULL) {
        gpu.streams[s].live = false;
        fake.n_live--;
    }
    return code;
}

static int stream_wait(mpl_cuda *c, void *handle, void *what)
{
    int code = enter(true);
    uint32_t s = 0;
    stream *own = stream_of(handle, &s);
    event *e = event_of(what);

    (void)c;
    if (code != 0 || own == NULL || e == NULL)
        return code != 0 ? code : 1;
    fake.n_waits++;
    if (gpu.capturing != NULL)
        return put_on(0, handle, (task){.kind = WAIT, .event = (uint32_t)(uintptr_t)what});
    if (!e->recorded)
        fake.n_misused++; /* CUDA accepts it as a no-op; here it is a bug */
    if (!fake.blind_waits)
        join(own->clock, e->clock);
    return 0;
}

static int stream_finish(mpl_cuda *c, void *handle)
{
    int code = enter(false);
    uint32_t s;
    stream *own = stream_of(handle, &s);
    size_t kept = 0;

    (void)c;
    fake.n_host_waits++;
    if (code != 0 || own == NULL)
        return code != 0 ? code : 1;
    fake_run_until(own->clock);
    join(gpu.host_clock, own->clock);
    for (size_t i = 0; i < gpu.n_history; i++) /* what the host waited for precedes later work */
        if (gpu.history[i].index > gpu.host_clock[gpu.history[i].stream])
            gpu.history[kept++] = gpu.history[i];
    gpu.n_history = kept;
    return 0;
}

static int event_new(mpl_cuda *c, void **out, bool timed)
{
    int code = enter(true);

    (void)c;
    if (code != 0)
        return code;
    events = realloc(events, (n_events + 1) * sizeof *events);
    events[n_events] = calloc(1, sizeof **events);
    events[n_events++]->timed = timed;
    fake.n_live++;
    *out = (void *)(uintptr_t)n_events;
    return 0;
}

static int event_free(mpl_cuda *c, void *handle)
{
    event *e = event_of(handle);
    int code = enter(true);

    (void)c;
    if (e != NULL) {
        events[(uintptr_t)handle - 1] = NULL;
        free(e);
        fake.n_live--;
    }
    return code;
}

static int event_record(mpl_cuda *c, void *what, void *handle)
{
    int code = enter(true);
    uint32_t s = 0;
    stream *own = stream_of(handle, &s);
    event *e = event_of(what);

    (void)c;
    if (code != 0 || own == NULL || e == NULL)
        return code != 0 ? code : 1;
    if (gpu.capturing != NULL)
        return put_on(0, handle, (task){.kind = RECORD, .event = (uint32_t)(uintptr_t)what});
    e->recorded = true;
    e->n_graph_launches = fake.n_graph_launches;
    join(own->clock, gpu.host_clock);
    memcpy(e->clock, own->clock, sizeof e->clock);
    return 0;
}

static int event_time(mpl_cuda *c, float *ms, void *begin, void *end)
{
    int code = enter(true);
    event *a = event_of(begin), *b = event_of(end);

    (void)c;
    if (code != 0)
        return code;
    if (a == NULL || b == NULL || !a->timed || !b->timed || !a->recorded || !b->recorded ||
        !fake_reached(b->clock)) {
        fake.n_misused++;
        return 1;
    }
    /* makes ways of running distinguishable */
    *ms = 1 + (float)(b->n_graph_launches - a->n_graph_launches);
    return 0;
}

static int capture_begin(mpl_cuda *c, void *handle)
{
    int code = enter(false);
    uint32_t s;

    (void)c;
    if (code != 0 || stream_of(handle, &s) == NULL)
        return code != 0 ? code : 1;
    gpu.capturing = calloc(1, sizeof *gpu.capturing);
    gpu.capturing->end = &gpu.capturing->first;
    gpu.capturing->origin = s;
    gpu.capturing->joined[s] = true;
    return 0;
}

static void free_graph(graph *g)
{
    for (task *t = g != NULL ? g->first : NULL, *next; t != NULL; t = next) {
        next = t->next;
        fake_free_task(t);
    }
    free(g);
}

/* Whether the work of every other stream ends in an event that a stream waits for. */
static bool all_come_back(const graph *g)
{
    for (uint32_t s = 0; s < MOST_STREAMS; s++) {
        const task *last = NULL;
        bool waited = s == g->origin;

        for (const task *t = g->first; t != NULL; t = t->next)
            if (t->stream == s)
                last = t;
        for (const task *t = last; t != NULL && last->kind == RECORD; t = t->next)
            waited |= t->kind == WAIT && t->event == last->event;
        if (last != NULL && !waited)
            return false;
    }
    return true;
}

static int capture_end(mpl_cuda *c, void *handle, void **out)
{
    int code = enter(true);
    graph *g = gpu.capturing;

    (void)c, (void)handle;
    gpu.capturing = NULL;
    *out = NULL;
    if (code == 0 && g != NULL && !all_come_back(g)) {
        fake.n_misused++;
        code = NOT_IN_CAPTURE;
    }
    if (code != 0 || g == NULL) {
        free_graph(g);
        return code != 0 ? code : 1;
    }
    fake.n_live++;
    *out = g;
    return 0;
}

/* Replays what was captured. */
static int graph_launch(mpl_cuda *c, void *what, void *handle)
{
    int code = enter(false);
    const graph *g = what;
    uint32_t s;

    (void)c;
    if (code != 0 || stream_of(handle, &s) == NULL)
        return code != 0 ? code : 1;
    fake.n_graph_launches++;
    for (const task *t = g->first; t != NULL && code == 0; t = t->next) {
        void *on = (void *)((uintptr_t)t->stream + 1);

        if (t->kind == RECORD)
            code = event_record(c, (void *)(uintptr_t)t->event, on);
        else if (t->kind == WAIT)
            code = stream_wait(c, on, (void *)(uintptr_t)t->event);
        else
            fake_enqueue(task_copy(t));
    }
    return code;
}

static int graph_free(mpl_cuda *c, void *what)
{
    int code = enter(false);

    (void)c;
    free_graph(what);
    fake.n_live--;
    return code;
}

static const char *const way_names[] = {"fake library", "fake:second", "fake:third", "fake:fourth"};

/* Like dnn.c, with an independent check of the types that cuDNN and cuBLAS accept. */
static mpl_status dnn_prepare(mpl_ctx *ctx, mpl_cuda *c, const mpl_graph *g, mpl_op op,
                              const mpl_cuda_choice *choice, mpl_cuda_dnn **out,
                              uint64_t *workspace_bytes, const char **how)
{
    mpl_op_kind kind = (mpl_op_kind)g->op_kind[op];
    bool heavy = kind == MPL_OP_conv || kind == MPL_OP_gemm || kind == MPL_OP_matmul;

    uint64_t bytes = mpl_min_u64(fake.workspace_bytes, choice->workspace_limit);
    uint32_t way = 0;

    (void)c;
    if (fake.cudnn)
        return host_dnn_prepare(ctx, g, op, choice, out, workspace_bytes, how);
    *out = NULL;
    *workspace_bytes = 0;
    if (!fake.library || !(heavy || kind == MPL_OP_max_pool || kind == MPL_OP_avg_pool))
        return MPL_OK;
    if (heavy && fake.n_ways > 0) {
        while (way < fake.n_ways && fake.way_bytes[way] > choice->workspace_limit)
            way++;
        if (way == fake.n_ways)
            return MPL_OK; /* our kernels need none */
        bytes = fake.way_bytes[way];
    }
    MPL_PASS(mpl_new(ctx, *out, 1));
    *workspace_bytes = heavy ? bytes : 0;
    *how = way_names[heavy ? way : 0];
    fake.n_live++;
    return MPL_OK;
}

static void dnn_release(mpl_ctx *ctx, mpl_cuda *c, mpl_cuda_dnn *dnn)
{
    (void)c;
    if (fake.cudnn) {
        host_dnn_release(ctx, dnn);
        return;
    }
    fake.n_live--;
    mpl_free(ctx, dnn);
}

static int run(mpl_cuda *c, const mpl_cuda_work *work, void *handle)
{
    int code = enter(true);
    task t = {.kind = RUN, .call = *work->call, .workspace_bytes = work->workspace_bytes};

    (void)c;
    if (code == 0 && fake.n_runs++ == fake.launch_at)
        code = stuck = LAUNCH_FAILED;
    t.strays = fake.n_runs == fake.stray_at + 1;
    t.dnn = fake.cudnn ? work->dnn : NULL;
    if (work->dnn == NULL) {
        t.n_kernels = work->n_kernels;
        t.kernel = (mpl_cuda_kernel *)work->kernel; /* copied with the task */
    }
    if (code == 0)
        fake.n_streams_used = mpl_max_u64(fake.n_streams_used, (uintptr_t)handle);
    return put_on(code, handle, t);
}

const mpl_cuda_api fake_api = {
    .absent = absent,
    .open = open_fake,
    .close = close_fake,
    .text = text,
    .memory_new = memory_new,
    .memory_free = memory_free,
    .pool_new = pool_new,
    .pool_free = pool_free,
    .host_new = host_new,
    .host_free = host_free,
    .host_call = host_call,
    .memory_info = memory_info,
    .clocks = clocks,
    .copy = copy,
    .fill = fill,
    .stream_new = stream_new,
    .stream_free = stream_free,
    .stream_wait = stream_wait,
    .stream_finish = stream_finish,
    .event_new = event_new,
    .event_free = event_free,
    .event_record = event_record,
    .event_time = event_time,
    .capture_begin = capture_begin,
    .capture_end = capture_end,
    .graph_launch = graph_launch,
    .graph_free = graph_free,
    .dnn_prepare = dnn_prepare,
    .dnn_release = dnn_release,
    .run = run,
};

static mpl_status open_device(mpl_ctx *ctx, const mpl_device_options *options, mpl_device **out)
{
    return mpl_cuda_open(ctx, &fake_api, options, out);
}

const mpl_backend *fake_backend(void)
{
    static mpl_backend b;

    b = *mpl_backend_find("cuda");
    b.name = "fake cuda";
    b.missing = NULL;
    b.open = open_device;
    return &b;
}
