/* worker.c -- executions in separate processes. See worker.h. The worker writes its report and
 * outputs into shared memory. It sends one byte over a socket after each step, and receives one
 * byte as the request for the next run. The end of the socket tells that it died. */
#include "harness/job/worker.h"

#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "harness/cli/interrupt.h"
#include "harness/cli/isolate.h"

typedef struct report {
    mpl_status st; /* of the last step */
    char message[512];
    int64_t run_ns, other_ns;
    mpl_measured measured;
} report;

enum { REPORT_ROOM = 8192 }; /* outputs begin on the next page */
_Static_assert(sizeof(report) <= REPORT_ROOM, "a report ends before the outputs");

struct mpl_worker {
    mpl_worker_task task;
    pid_t pid; /* 0: none */
    int fd;    /* the parent's end of the socket */
    report *shared;
    size_t shared_bytes;
    const char *status; /* NULL: no failure so far */
    char reason[600];
};

/* ---- the worker ---- */

static void begin_child(void)
{
    signal(SIGINT, SIG_IGN); /* a terminal sends it to all processes; the parent decides */
    signal(SIGTERM, SIG_DFL);
}

static void say(int fd, const mpl_ctx *ctx, mpl_status st, report *out)
{
    out->st = st;
    if (st != MPL_OK)
        snprintf(out->message, sizeof out->message, "%s", ctx->message);
    if (send(fd, ".", 1, MSG_NOSIGNAL) != 1 || st != MPL_OK)
        _exit(0);
}

static mpl_status prepare(mpl_ctx *ctx, const mpl_worker_task *task, report *out, mpl_exec **exec,
                          mpl_malloced **malloced)
{
    mpl_status st = MPL_OK;
    const mpl_graph *g = task->job->source.graph;
    mpl_device_options device_options = {.n_threads = task->n_threads, .params = task->device};
    mpl_device *dev = NULL;

    MPL_TRY(task->job->backend->open(ctx, &device_options, &dev));
    out->measured.workers = task->options->n_workers;
    out->measured.before_bytes = mpl_rss_now();
    MPL_TRY(mpl_measure_new(ctx, task->job, task->plan, task->options, task->inputs, dev, exec));
    MPL_TRY(mpl_exec_run(*exec, NULL));
    MPL_TRY(mpl_outputs_get(*exec, g, (char *)out + REPORT_ROOM));
    MPL_TRY(mpl_exec_facts_get(*exec, &out->measured.facts));
    if (out->measured.facts.two_ways)
        MPL_TRY(mpl_exec_run(*exec, NULL));
    if (task->plan != NULL)
        MPL_TRY(mpl_measure_times(ctx, task->job, *exec, &out->measured));
    if (task->plan != NULL && task->command != NULL) {
        st = mpl_measure_malloced(ctx, task->command, *exec, malloced, &out->measured.malloc_bytes);
        if (st != MPL_EUNAVAIL) /* its fields stay null */
            MPL_TRY(st);
    }
    if (task->plan != NULL && task->job->backend->replay != NULL &&
        task->job->problem->before == NULL)
        MPL_TRY(mpl_allocators_play(ctx, task->job->problem, task->job->backend, dev,
                                    &out->measured.allocators));
out:
    return st;
}

/* One timed run; on a device whose runs alternate, one of each kind; under --compare, also the
 * compared one. */
static mpl_status run_once(mpl_exec *exec, mpl_malloced *malloced, uint64_t turn, report *out)
{
    MPL_PASS(mpl_measure_pair(exec, malloced, turn, &out->run_ns, &out->other_ns));
    if (out->measured.facts.two_ways)
        MPL_PASS(mpl_exec_run(exec, &out->other_ns));
    return mpl_exec_facts_get(exec, &out->measured.facts);
}

static void child(const mpl_worker_task *task, report *out, int fd)
{
    mpl_ctx ctx = mpl_ctx_default();
    mpl_exec *exec = NULL;
    mpl_malloced *malloced = NULL;
    uint64_t turn = 0;
    char byte;
    mpl_status st = prepare(&ctx, task, out, &exec, &malloced);

    out->measured.rss_bytes = mpl_rss_peak();
    say(fd, &ctx, st, out);
    while (recv(fd, &byte, 1, 0) == 1) {
        st = run_once(exec, malloced, turn++, out);
        say(fd, &ctx, st, out);
    }
    _exit(0);
}

/* ---- the parent ---- */

static void __attribute__((format(printf, 3, 4)))
failed(mpl_worker *worker, const char *status, const char *format, ...)
{
    va_list args;

    worker->status = status;
    va_start(args, format);
    vsnprintf(worker->reason, sizeof worker->reason, format, args);
    va_end(args);
}

/* Records that the process ended without an answer. */
static void bury(mpl_worker *worker)
{
    int how = mpl_reap(worker->pid);

    worker->pid = 0;
    worker->status = "crash";
    mpl_ended_text("the process that ran it", how, sizeof worker->reason, worker->reason);
}

/* Waits for the current step. */
static bool step_done(mpl_worker *worker)
{
    int64_t until = mpl_clock_ns() + worker->task.limit_ns, left;
    struct pollfd wait = {.fd = worker->fd, .events = POLLIN};
    char byte;

    if (worker->status != NULL)
        return false;
    while ((left = until - mpl_clock_ns()) > 0 && !mpl_interrupted() &&
           poll(&wait, 1, (int)(left / 1000000) + 1) <= 0)
        ;
    if (mpl_interrupted()) {
        failed(worker, "timeout", "interrupted by signal %d", mpl_interrupted());
    } else if (left <= 0) {
        failed(worker, "timeout", "it did not end within %d s",
               (int)(worker->task.limit_ns / 1000000000));
        kill(worker->pid, SIGKILL);
    } else if (recv(worker->fd, &byte, 1, 0) != 1) {
        bury(worker);
    } else if (worker->shared->st != MPL_OK) {
        failed(worker, mpl_row_status(worker->shared->st), "%s", worker->shared->message);
    }
    return worker->status == NULL;
}

mpl_status mpl_worker_start(mpl_ctx *ctx, const mpl_worker_task *task, mpl_worker **out)
{
    mpl_status st = MPL_OK;
    mpl_worker *worker = NULL;
    int pair[2] = {-1, -1};

    MPL_TRY(mpl_new(ctx, worker, 1));
    worker->task = *task;
    worker->fd = -1;
    worker->shared_bytes = REPORT_ROOM + mpl_outputs_bytes(task->job->source.graph);
    if ((worker->shared = mpl_share(worker->shared_bytes)) == NULL ||
        socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0)
        MPL_FAIL(ctx, MPL_EMEM, "no worker: %s", strerror(errno));
    MPL_TRY(mpl_fork(ctx, "no worker", &worker->pid));
    if (worker->pid == 0) {
        begin_child();
        close(pair[0]);
        child(&worker->task, worker->shared, pair[1]);
    }
    worker->fd = pair[0];
    pair[0] = -1;
    *out = worker, worker = NULL;
out:
    for (int i = 0; i < 2; i++)
        if (pair[i] >= 0)
            close(pair[i]);
    mpl_worker_free(ctx, worker);
    return st;
}

bool mpl_worker_wait(mpl_worker *worker)
{
    return step_done(worker);
}

bool mpl_worker_run(mpl_worker *worker, int64_t *ns, int64_t *other_ns)
{
    if (worker->status != NULL)
        return false;
    if (send(worker->fd, "g", 1, MSG_NOSIGNAL) != 1)
        bury(worker);
    if (!step_done(worker))
        return false;
    *ns = worker->shared->run_ns;
    *other_ns = worker->shared->other_ns;
    return true;
}

void mpl_worker_free(mpl_ctx *ctx, mpl_worker *worker)
{
    if (worker == NULL)
        return;
    if (worker->pid > 0) {
        kill(worker->pid, SIGKILL);
        mpl_reap(worker->pid);
    }
    if (worker->fd >= 0)
        close(worker->fd);
    if (worker->shared != NULL)
        munmap(worker->shared, worker->shared_bytes);
    mpl_free(ctx, worker);
}

const void *mpl_worker_outputs(const mpl_worker *worker)
{
    return (const char *)worker->shared + REPORT_ROOM;
}

const mpl_measured *mpl_worker_measured(const mpl_worker *worker)
{
    return &worker->shared->measured;
}

const char *mpl_worker_status(const mpl_worker *worker)
{
    return worker->status;
}

const char *mpl_worker_reason(const mpl_worker *worker)
{
    return worker->reason;
}

/* ---- workspaces ---- */

static void ask_child(const mpl_options *options, const mpl_backend *backend, const mpl_job *job,
                      report *out)
{
    mpl_ctx ctx = mpl_ctx_default();
    uint64_t *bytes = NULL;

    out->st = mpl_job_ask_workspaces(&ctx, options, backend, job, &bytes);
    if (out->st == MPL_OK)
        memcpy((char *)out + REPORT_ROOM, bytes, job->source.graph->n_ops * sizeof *bytes);
    else
        snprintf(out->message, sizeof out->message, "%s", ctx.message);
    _exit(0);
}

mpl_status mpl_worker_workspaces(mpl_ctx *ctx, const mpl_options *options,
                                 const mpl_backend *backend, const mpl_job *job,
                                 uint64_t **workspace_bytes)
{
    mpl_status st = MPL_OK;
    size_t n = job->source.graph != NULL ? job->source.graph->n_ops : 0,
           room = REPORT_ROOM + n * sizeof(uint64_t);
    report *shared = NULL;
    uint64_t *bytes = NULL;
    pid_t pid;
    int how;

    *workspace_bytes = NULL;
    if (backend == NULL || job->source.graph == NULL)
        goto out;
    if ((shared = mpl_share(room)) == NULL)
        MPL_FAIL(ctx, MPL_EMEM, "no worker: %s", strerror(errno));
    MPL_TRY(mpl_fork(ctx, "no worker", &pid));
    if (pid == 0) {
        begin_child();
        ask_child(options, backend, job, shared);
    }
    how = mpl_reap(pid);
    if (!WIFEXITED(how) || WEXITSTATUS(how) != 0)
        MPL_FAIL(ctx, MPL_EMEM, "backend %s crashed while it prepared %s", backend->name,
                 job->text);
    if (shared->st != MPL_OK)
        MPL_FAIL(ctx, shared->st, "%s", shared->message);
    MPL_TRY(mpl_new(ctx, bytes, n));
    memcpy(bytes, (char *)shared + REPORT_ROOM, n * sizeof *bytes);
    *workspace_bytes = bytes, bytes = NULL;
out:
    if (shared != NULL)
        munmap(shared, room);
    mpl_free(ctx, bytes);
    return st;
}
