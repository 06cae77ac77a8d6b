/* replay.c -- what the device's own allocators do with a graph's buffers, for comparison: one
 * cudaMalloc and cudaFree for each buffer, or the driver's pool. See backend.h. */
#include "runtime/cuda/device.h"

typedef struct player {
    mpl_ctx *ctx;
    const mpl_cuda_api *api;
    mpl_cuda *driver;
    void *stream;
    mpl_replay_mode mode;
    void **at; /* [n_ids] NULL: not allocated */
    uint32_t n_ids;
    uint64_t start;
    mpl_replay_facts facts;
} player;

static mpl_status check(player *self, int code)
{
    if (code == 0)
        return MPL_OK;
    return MPL_ERROR(self->ctx, code == MPL_CUDA_OUT_OF_MEMORY ? MPL_EMEM : MPL_EUNAVAIL,
                     "CUDA: playing requests: %s", self->api->text(code));
}

static mpl_status used(player *self, uint64_t *bytes)
{
    size_t available = 0, total = 0;

    MPL_PASS(check(self, self->api->memory_info(self->driver, &available, &total)));
    *bytes = total - available;
    return MPL_OK;
}

static mpl_status give_back(player *self, uint32_t id)
{
    void *at = self->at[id];

    self->at[id] = NULL;
    return check(self, self->mode == MPL_REPLAY_PLAIN
                           ? self->api->memory_free(self->driver, at)
                           : self->api->pool_free(self->driver, at, self->stream));
}

static mpl_status take(player *self, uint32_t id, uint64_t bytes)
{
    return check(
        self, self->mode == MPL_REPLAY_PLAIN
                  ? self->api->memory_new(self->driver, &self->at[id], (size_t)bytes)
                  : self->api->pool_new(self->driver, &self->at[id], (size_t)bytes, self->stream));
}

/* Memory in use is sampled outside the timed calls. */
static mpl_status play(player *self, const mpl_request *request)
{
    int64_t begin = mpl_clock_ns();
    uint64_t now = 0;

    if (request->gives_back != (self->at[request->id] != NULL))
        return MPL_ERROR(self->ctx, MPL_EINVALID, "buffer %u is %s twice", request->id,
                         request->gives_back ? "given back" : "asked for");
    MPL_PASS(request->gives_back ? give_back(self, request->id)
                                 : take(self, request->id, request->bytes));
    self->facts.ns += mpl_clock_ns() - begin;
    MPL_PASS(used(self, &now));
    if (now > self->start)
        self->facts.peak_bytes = mpl_max_u64(self->facts.peak_bytes, now - self->start);
    return MPL_OK;
}

mpl_status mpl_cuda_replay(mpl_ctx *ctx, const mpl_cuda_api *api, mpl_cuda *cuda, void *stream,
                           const mpl_request *request, uint32_t n, mpl_replay_mode mode,
                           mpl_replay_facts *facts)
{
    mpl_status st = MPL_OK;
    player p = {.ctx = ctx, .api = api, .driver = cuda, .stream = stream, .mode = mode};

    for (uint32_t i = 0; i < n; i++)
        p.n_ids = request[i].id >= p.n_ids ? request[i].id + 1 : p.n_ids;
    MPL_TRY(mpl_new(ctx, p.at, p.n_ids));
    MPL_TRY(used(&p, &p.start));
    for (uint32_t i = 0; i < n; i++)
        MPL_TRY(play(&p, &request[i]));
    MPL_TRY(check(&p, api->stream_finish(cuda, stream)));
    *facts = p.facts;
out:
    for (uint32_t id = 0; p.at != NULL && id < p.n_ids; id++)
        if (p.at[id] != NULL)
            (void)give_back(&p, id); /* the first failure is the one reported */
    mpl_free(ctx, p.at);
    return st;
}
