/* cmd_replay.c -- memplan replay: the allocations of a trace, or of a graph in its order, played to
 * allocators that know nothing of what comes, beside the optimum of the same requests.
 *
 * `malloc` is played in a process of its own, forked before the graph is opened, whose heap has no
 * free bytes: what memplan itself holds and has freed would be part of what malloc holds. */
#include <errno.h>
#include <malloc.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "graphs/core/size.h"
#include "graphs/problem/bounds/bounds.h"
#include "harness/cli/command.h"
#include "harness/cli/isolate.h"
#include "harness/gate/gate.h"
#include "harness/report/grid.h"

/* What an allocator did. */
typedef struct outcome {
    mpl_status st;
    char message[sizeof((mpl_ctx *)0)->message];
    mpl_online_facts facts;
    int64_t ns;
} outcome;

static void play(mpl_ctx *ctx, const mpl_request *request, uint32_t n, const mpl_allocator *kind,
                 uint64_t capacity, outcome *out)
{
    out->st = mpl_requests_play(ctx, request, n, kind, capacity, &out->facts, &out->ns);
    if (out->st != MPL_OK)
        memcpy(out->message, ctx->message, sizeof out->message);
}

/* ---- malloc, apart ---- */

typedef struct apart {
    pid_t pid; /* 0: not started, or ended */
    int socket;
    outcome *shared;
} apart;

static bool receive(int from, void *data, size_t n)
{
    return recv(from, data, n, MSG_WAITALL) == (ssize_t)n;
}

static bool give(int to, const void *data, size_t n)
{
    for (size_t done = 0; done < n;) {
        ssize_t k = send(to, (const char *)data + done, n - done, MSG_NOSIGNAL);

        if (k < 0 && errno != EINTR)
            return false;
        done += k > 0 ? (size_t)k : 0;
    }
    return true;
}

/* Takes every free byte of the heap but for its last page: what was freed at the program's start
 * depends on the environment, and a few bytes there can change by half what malloc holds later.
 * mallinfo2's keepcost is what is free at the heap's end. */
static void settle_heap(void)
{
    enum { MOST_BLOCK = 64 * 1024, MOST_CACHED = 1032, PAGE = 4096, UNIT = 16 };
    size_t most = mallinfo2().fordblks + (1 << 20); /* another malloc might never come to an end */

    for (size_t size = MOST_BLOCK, taken = 0; size > UNIT / 2 && taken < most; taken += size) {
        uintptr_t end = (uintptr_t)sbrk(0) - mallinfo2().keepcost;
        void *block = malloc(size);

        /* a block of the end: nothing else has room for it */
        if (block == NULL || (uintptr_t)block >= end)
            size = size > MOST_CACHED ? size / 2 : size - UNIT;
        if (size <= MOST_CACHED && size % UNIT != UNIT / 2)
            size = MOST_CACHED;
    }
    for (size_t rest; (rest = mallinfo2().keepcost) >= PAGE + 2 * UNIT;)
        if (malloc((rest - PAGE < MOST_BLOCK ? rest - PAGE : MOST_BLOCK) - UNIT / 2) == NULL)
            break;
}

/* The process waits for the requests; its own copy of them is not from malloc. */
static void serve(int from, outcome *out)
{
    mpl_request *request;
    uint32_t n = 0;
    mpl_ctx ctx = mpl_ctx_default();

    out->st = MPL_EMEM;
    settle_heap();
    if (!receive(from, &n, sizeof n) || n == 0 ||
        (request = mpl_share(n * sizeof *request)) == NULL)
        _exit(0);
    if (receive(from, request, n * sizeof *request))
        play(&ctx, request, n, mpl_allocator_find("malloc"), UINT64_MAX, out);
    _exit(0);
}

static mpl_status apart_begin(mpl_ctx *ctx, apart *a)
{
    int end[2];

    a->shared = mpl_share(sizeof *a->shared);
    if (a->shared == NULL || socketpair(AF_UNIX, SOCK_STREAM, 0, end) != 0)
        return MPL_ERROR(ctx, MPL_EMEM, "replay: no memory or socket for a process of malloc");
    a->socket = end[0];
    if (mpl_fork(ctx, "no process", &a->pid) != MPL_OK) {
        close(end[1]);
        return MPL_EMEM;
    }
    if (a->pid == 0) {
        close(end[0]);
        serve(end[1], a->shared);
    }
    close(end[1]);
    return MPL_OK;
}

/* Closing the socket ends a process that has got no requests. */
static void apart_end(apart *self)
{
    if (self->shared == NULL)
        return;
    if (self->socket >= 0)
        close(self->socket);
    self->socket = -1;
    if (self->pid != 0)
        mpl_reap(self->pid);
    self->pid = 0;
    munmap(self->shared, sizeof *self->shared);
    self->shared = NULL;
}

static void play_apart(apart *self, const mpl_request *request, uint32_t n, outcome *out)
{
    int how;

    if (give(self->socket, &n, sizeof n))
        give(self->socket, request, n * sizeof *request);
    how = mpl_reap(self->pid);
    self->pid = 0;
    *out = *self->shared;
    if (how != 0)
        mpl_ended_text("the process of malloc", how, sizeof out->message, out->message);
    out->st = how != 0 ? MPL_EMEM : out->st;
}

/* ---- the requests and their optimum ---- */

typedef struct replay {
    mpl_ctx *ctx;
    mpl_options *options;
    mpl_strings names;
    char *store; /* of the names */
    apart apart;
    mpl_job job;
    mpl_problem *problem; /* of the requests */
    mpl_request *request;
    uint32_t n;
    uint64_t requested_bytes, live_peak_bytes;
    mpl_optimum optimum;
    mpl_grid grid;
    mpl_row_file file;
    char *json;
} replay;

/* Buffers that share a storage are one request. */
static mpl_status make_requests(replay *self)
{
    mpl_status st = MPL_OK;
    const mpl_problem *p = self->job.problem;
    mpl_problem *hull = NULL;
    uint32_t *into = NULL;

    if (p->inside != NULL) {
        MPL_TRY(mpl_new(self->ctx, into, p->n));
        MPL_TRY(mpl_problem_hull(self->ctx, p, &hull, into));
        p = hull;
    }
    MPL_TRY(mpl_requests_make(self->ctx, p, 0, &self->request, &self->n));
    if (self->n == 0)
        MPL_FAIL(self->ctx, MPL_EINPUT,
                 "%.200s: nothing is allocated; inputs and outputs are with --pin none",
                 self->job.text);
    MPL_TRY(mpl_requests_problem(self->ctx, self->request, self->n, &self->problem));
out:
    mpl_problem_free(self->ctx, hull);
    mpl_free(self->ctx, into);
    return st;
}

static mpl_status find_optimum(replay *self)
{
    mpl_job job = self->job;

    job.problem = self->problem;
    job.bound_kind = "peak_live";
    MPL_PASS(mpl_lower_bound(self->ctx, self->problem, 0, &job.bound_bytes, NULL));
    return mpl_optimum_find(self->ctx, self->options, &job, &self->optimum);
}

/* Whether it is among the first n. */
static bool is_named(const replay *self, const char *name, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        if (strcmp(self->names.item[i], name) == 0)
            return true;
    return false;
}

/* The names of --allocator, each checked; `all` stands for the list. */
static mpl_status read_names(replay *self)
{
    if (strcmp(self->options->allocator, "all") == 0) {
        uint32_t n = 0;

        while (mpl_allocators[n] != NULL)
            n++;
        MPL_PASS(mpl_new(self->ctx, self->names.item, n));
        for (; self->names.n < n; self->names.n++)
            self->names.item[self->names.n] = mpl_allocators[self->names.n]->name;
        return MPL_OK;
    }
    MPL_PASS(mpl_strings_split(self->ctx, self->options->allocator, "--allocator", &self->store,
                               &self->names));
    for (uint32_t i = 0; i < self->names.n; i++)
        if (mpl_allocator_find(self->names.item[i]) == NULL)
            return MPL_REFUSE(self->ctx,
                              "--allocator: no allocator '%.60s'; memplan list allocators "
                              "tells of them, all takes each",
                              self->names.item[i]);
        else if (is_named(self, self->names.item[i], i))
            return MPL_REFUSE(self->ctx, "--allocator: %s stands there twice", self->names.item[i]);
    return MPL_OK;
}

/* ---- rows and lines ---- */

static mpl_status make_row(replay *self, const char *name, const outcome *o, mpl_record **out)
{
    const mpl_online_facts *facts = &o->facts;
    mpl_record *row = NULL;
    char hash[17];

    MPL_PASS(mpl_job_row(self->ctx, self->options, &self->job, NULL, &row));
    snprintf(hash, sizeof hash, "%016" PRIx64, mpl_problem_hash(self->problem));
    mpl_record_text(row, MPL_FIELD_problem_hash, hash);
    mpl_record_text(row, MPL_FIELD_allocator, name);
    mpl_record_int(row, MPL_FIELD_bound_bytes, self->optimum.bound_bytes);
    mpl_record_text(row, MPL_FIELD_bound_kind, self->optimum.bound_kind);
    if (self->optimum.best_bytes != UINT64_MAX)
        mpl_record_int(row, MPL_FIELD_planned_bytes, self->optimum.best_bytes);
    if (self->optimum.proved)
        mpl_record_int(row, MPL_FIELD_optimum_bytes, self->optimum.best_bytes);
    *out = row;
    if (o->st != MPL_OK) {
        mpl_record_text(row, MPL_FIELD_status, mpl_row_status(o->st));
        mpl_record_text(row, MPL_FIELD_reason, o->message);
        return MPL_OK;
    }
    mpl_record_int(row, MPL_FIELD_reserved_bytes, facts->reserved_bytes);
    mpl_record_int(row, MPL_FIELD_requested_bytes, facts->requested_bytes);
    mpl_record_int(row, MPL_FIELD_live_peak_bytes, facts->live_peak_bytes);
    mpl_record_real(row, MPL_FIELD_fragmentation, mpl_online_fragmentation(facts));
    mpl_record_int(row, MPL_FIELD_plan_ns, (uint64_t)o->ns);
    return MPL_OK;
}

static mpl_status add_line(replay *self, const char *name, const outcome *o)
{
    uint64_t least = self->optimum.proved ? self->optimum.best_bytes : self->optimum.bound_bytes;
    char gap[32], text[MPL_CELL_TEXT];

    MPL_PASS(mpl_grid_cell(self->ctx, &self->grid, "%s", name));
    if (o->st != MPL_OK) {
        for (int i = 0; i < 4; i++)
            MPL_PASS(mpl_grid_cell(self->ctx, &self->grid, "-"));
        return mpl_grid_cell(self->ctx, &self->grid, "%s", mpl_row_status(o->st));
    }
    MPL_PASS(mpl_grid_cell(self->ctx, &self->grid, "%" PRIu64, o->facts.reserved_bytes));
    MPL_PASS(
        mpl_grid_cell(self->ctx, &self->grid, "%s", mpl_mib_text(o->facts.reserved_bytes, text)));
    MPL_PASS(mpl_grid_cell(self->ctx, &self->grid, "%s",
                           mpl_gap_text(o->facts.reserved_bytes, least, gap)));
    MPL_PASS(mpl_grid_cell(self->ctx, &self->grid, "%.1f %%",
                           100 * mpl_online_fragmentation(&o->facts)));
    return mpl_grid_cell(self->ctx, &self->grid, "%.1f", (double)o->ns / (double)self->n);
}

/* To the file, the object of --json, the lines. */
static mpl_status put(replay *self, const char *name, const outcome *o)
{
    mpl_status st = MPL_OK;
    mpl_record *row = NULL;
    char *json = NULL, *all = NULL;
    size_t size;

    MPL_TRY(make_row(self, name, o, &row));
    if (self->options->output != NULL)
        MPL_TRY(mpl_row_file_append(self->ctx, &self->file, row));
    MPL_TRY(add_line(self, name, o));
    if (!self->options->json)
        goto out;
    MPL_TRY(mpl_record_write(self->ctx, row, &json));
    size = strlen(json) + (self->json != NULL ? strlen(self->json) : 0) + 2;
    MPL_TRY(mpl_new(self->ctx, all, size));
    snprintf(all, size, "%s%s%s", self->json != NULL ? self->json : "",
             self->json != NULL ? "\n" : "", json);
    mpl_free(self->ctx, self->json);
    self->json = all;
out:
    mpl_free(self->ctx, json);
    mpl_record_free(self->ctx, row);
    return st;
}

static void print(const replay *self)
{
    const mpl_optimum *optimum = &self->optimum;
    char gap[32];

    printf("requests %s: %" PRIu32 " allocations of %" PRIu64 " bytes, at most %" PRIu64
           " bytes (%s) alive\n",
           mpl_shown(self->job.text), self->problem->n, self->requested_bytes,
           self->live_peak_bytes, mpl_sized(self->live_peak_bytes).text);
    if (optimum->proved)
        printf("optimum  %12" PRIu64 " bytes  %14s  proved by %s\n", optimum->best_bytes,
               mpl_sized(optimum->best_bytes).text, optimum->by);
    else
        printf("bound    %12" PRIu64 " bytes  %14s  %s; the best plan found has %" PRIu64
               " bytes, %s\n",
               optimum->bound_bytes, mpl_sized(optimum->bound_bytes).text, optimum->bound_kind,
               optimum->best_bytes, mpl_gap_text(optimum->best_bytes, optimum->bound_bytes, gap));
    mpl_grid_print(stdout, &self->grid, false);
    if (is_named(self, "malloc", self->names.n))
        printf("malloc   reserved is what mallinfo2 says that a process which does nothing else "
               "holds, looked at after\n         requests of 64 KiB or more and when its heap has "
               "grown\n");
}

/* Plays all; the first failure of one that was named ends as the command's. */
static mpl_status play_all(replay *self)
{
    mpl_status st = MPL_OK;
    bool all = strcmp(self->options->allocator, "all") == 0;
    char message[sizeof self->ctx->message] = "";

    for (uint32_t i = 0; i < self->names.n; i++) {
        const mpl_allocator *kind = mpl_allocator_find(self->names.item[i]);
        outcome o = {0};

        if (kind->is_real)
            play_apart(&self->apart, self->request, self->n, &o);
        else
            play(self->ctx, self->request, self->n, kind, self->options->capacity, &o);
        if (o.st == MPL_OK && o.facts.reserved_bytes > self->options->capacity) {
            o.st = MPL_ELIMIT;
            snprintf(o.message, sizeof o.message, "it held %" PRIu64 " bytes; %" PRIu64 " may be",
                     o.facts.reserved_bytes, self->options->capacity);
        }
        MPL_PASS(put(self, kind->name, &o));
        if (o.st != MPL_OK && st == MPL_OK && !(all && o.st == MPL_EUNAVAIL)) {
            st = o.st;
            snprintf(message, sizeof message, "%s: %.400s", kind->name, o.message);
        }
        if (o.st == MPL_OK) {
            self->requested_bytes = o.facts.requested_bytes;
            self->live_peak_bytes = o.facts.live_peak_bytes;
        }
    }
    memcpy(self->ctx->message, message, sizeof message);
    return st;
}

static mpl_status run(replay *self)
{
    static const char *const head[] = {"allocator",        "reserved bytes", "MiB",
                                       "over the optimum", "fragmentation",  "ns a request"};
    mpl_status st;

    MPL_PASS(read_names(self));
    if (is_named(self, "malloc", self->names.n))
        MPL_PASS(apart_begin(self->ctx, &self->apart));
    MPL_PASS(mpl_job_open(self->ctx, self->options, self->options->args.item[0], &self->job));
    MPL_PASS(mpl_job_problem_here(self->ctx, self->options, &self->job));
    MPL_PASS(make_requests(self));
    MPL_PASS(find_optimum(self));
    if (self->options->output != NULL)
        MPL_PASS(mpl_row_file_open(self->ctx, self->options->output, &self->file));
    self->grid.n_cols = 6;
    MPL_PASS(mpl_grid_head(self->ctx, &self->grid, head));
    st = play_all(self);
    if (!self->options->json && !self->options->quiet)
        print(self);
    self->options->result = self->json, self->json = NULL;
    return st;
}

mpl_status mpl_cmd_replay(mpl_ctx *ctx, mpl_options *options)
{
    replay r = {.ctx = ctx, .options = options, .apart = {.socket = -1}, .file = {.fd = -1}};
    mpl_status st;

    /* an online allocator cannot know that a buffer may be overwritten */
    options->in_place = false;
    st = run(&r);
    apart_end(&r.apart);
    if (r.file.fd >= 0)
        mpl_row_file_close(&r.file);
    mpl_grid_fini(ctx, &r.grid);
    mpl_problem_free(ctx, r.problem);
    mpl_job_fini(ctx, &r.job);
    mpl_free_each(ctx, r.request, r.names.item, r.store, r.json);
    return st;
}
