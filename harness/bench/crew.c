/* crew.c -- see crew.h. A worker writes "@U" before unit U, "=U" after it, and "!MESSAGE" before it
 * fails; other lines are its unit's. Workers take units from a shared counter, so each unit is done
 * once and no worker waits for a slow one. */
#include "harness/bench/crew.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "harness/cli/interrupt.h"
#include "harness/cli/isolate.h"
#include "harness/cli/scratch.h"
#include "runtime/machine.h"

typedef struct member {
    pid_t pid; /* 0: none */
    int fd;    /* -1: none */
    uint32_t unit;
    char *text; /* incomplete line received so far */
    size_t n, cap;
    char why[600];
    char *scratch; /* [MPL_SCRATCH_ROOM] shared with the worker: path of its folder; "": none */
} member;

typedef struct state {
    mpl_ctx *ctx;
    const mpl_crew *crew;
    atomic_uint *next; /* shared counter of units; the workers' scratch paths follow it */
    member *member;
} state;

/* ---- a worker ---- */

static void work(const state *self, uint32_t index, int fd)
{
    mpl_ctx ctx = mpl_ctx_default();
    mpl_status st = MPL_OK;
    FILE *to = fdopen(fd, "w");
    unsigned u;

    if (to == NULL)
        _exit(1);
    mpl_scratch_tell(self->member[index].scratch);
    mpl_bind_cores(index, self->crew->n_workers);
    while (st == MPL_OK && !mpl_interrupted() &&
           (u = atomic_fetch_add(self->next, 1)) < self->crew->n_units) {
        fprintf(to, "@%u\n", u);
        fflush(to);
        st = self->crew->work(&ctx, self->crew->arg, u, to);
        if (st == MPL_OK && !mpl_interrupted())
            fprintf(to, "=%u\n", u);
    }
    if (st != MPL_OK)
        fprintf(to, "!%s\n", ctx.message);
    _exit(fflush(to) != 0);
}

/* ---- the parent ---- */

static mpl_status hire(state *self, uint32_t index)
{
    member *m = &self->member[index];
    mpl_status st;
    int ends[2];

    if (pipe(ends) != 0)
        return MPL_ERROR(self->ctx, MPL_EMEM, "no worker: %s", strerror(errno));
    if ((st = mpl_fork(self->ctx, "no worker", &m->pid)) != MPL_OK) {
        close(ends[0]);
        close(ends[1]);
        return st;
    }
    if (m->pid == 0) {
        close(ends[0]);
        work(self, index, ends[1]);
    }
    close(ends[1]);
    m->fd = ends[0];
    m->unit = MPL_NONE;
    m->n = 0;
    m->why[0] = '\0';
    return MPL_OK;
}

static mpl_status take_line(state *self, member *m, char *text, size_t n)
{
    if (text[0] == '@') {
        m->unit = (uint32_t)strtoul(text + 1, NULL, 10);
    } else if (text[0] == '!') {
        snprintf(m->why, sizeof m->why, "%s", text + 1);
    } else if (text[0] == '=') {
        MPL_PASS(self->crew->over(self->ctx, self->crew->arg, m->unit, NULL));
        m->unit = MPL_NONE;
    } else if (m->unit != MPL_NONE) {
        MPL_PASS(self->crew->line(self->ctx, self->crew->arg, m->unit, text, n));
    }
    return MPL_OK;
}

/* Reads available text and passes on whole lines; *ended: the worker closed its end. */
static mpl_status listen_to(state *self, member *m, bool *ended)
{
    char *line, *newline;
    ssize_t got;

    *ended = false;
    MPL_PASS(mpl_reserve(self->ctx, m->text, m->cap, m->n + 65536));
    got = read(m->fd, m->text + m->n, m->cap - m->n);
    if (got <= 0) {
        *ended = got == 0 || errno != EINTR;
        return MPL_OK;
    }
    m->n += (size_t)got;
    for (line = m->text; (newline = memchr(line, '\n', m->n - (size_t)(line - m->text))) != NULL;
         line = newline + 1) {
        *newline = '\0';
        MPL_PASS(take_line(self, m, line, (size_t)(newline - line)));
    }
    m->n -= (size_t)(line - m->text);
    memmove(m->text, line, m->n);
    return MPL_OK;
}

/* Reaps a worker that ended or is about to, and removes its folder; returns waitpid's status. */
static int reap(member *self)
{
    int how = mpl_reap(self->pid);

    self->pid = 0;
    mpl_scratch_remove(self->scratch);
    return how;
}

/* Handles the end of a worker; the unit under way ends with it. */
static mpl_status bury(state *self, member *m)
{
    int how;

    close(m->fd);
    m->fd = -1;
    how = reap(m);
    if (m->unit == MPL_NONE || mpl_interrupted())
        return MPL_OK;
    if (m->why[0] == '\0')
        mpl_ended_text("the worker", how, sizeof m->why, m->why);
    MPL_PASS(self->crew->over(self->ctx, self->crew->arg, m->unit, m->why));
    m->unit = MPL_NONE;
    return MPL_OK;
}

/* Waits for output of any worker; *left: workers still running. */
static mpl_status attend(state *self, struct pollfd *wait, uint32_t *left)
{
    uint32_t n = self->crew->n_workers;
    bool ended;

    for (uint32_t i = 0; i < n; i++)
        wait[i] = (struct pollfd){.fd = self->member[i].fd, .events = POLLIN};
    if (poll(wait, n, -1) < 0)
        return MPL_OK;
    for (uint32_t i = 0; i < n; i++) {
        if (wait[i].fd < 0 || wait[i].revents == 0)
            continue;
        MPL_PASS(listen_to(self, &self->member[i], &ended));
        if (!ended)
            continue;
        MPL_PASS(bury(self, &self->member[i]));
        if (atomic_load(self->next) < self->crew->n_units && !mpl_interrupted())
            MPL_PASS(hire(self, i));
        else
            --*left;
    }
    return MPL_OK;
}

mpl_status mpl_crew_run(mpl_ctx *ctx, const mpl_crew *crew)
{
    mpl_status st = MPL_OK;
    state s = {.ctx = ctx, .crew = crew};
    struct pollfd *wait = NULL;
    uint32_t left = crew->n_workers;
    size_t shared = sizeof *s.next + (size_t)crew->n_workers * MPL_SCRATCH_ROOM;

    MPL_TRY(mpl_new(ctx, s.member, crew->n_workers));
    for (uint32_t i = 0; i < crew->n_workers; i++)
        s.member[i].fd = -1;
    MPL_TRY(mpl_new(ctx, wait, crew->n_workers));
    if ((s.next = mpl_share(shared)) == NULL)
        MPL_FAIL(ctx, MPL_EMEM, "no worker: %s", strerror(errno));
    for (uint32_t i = 0; i < crew->n_workers; i++)
        s.member[i].scratch = (char *)(s.next + 1) + (size_t)i * MPL_SCRATCH_ROOM;
    for (uint32_t i = 0; i < crew->n_workers; i++)
        MPL_TRY(hire(&s, i));
    while (left > 0 && !mpl_interrupted())
        MPL_TRY(attend(&s, wait, &left));
out:
    for (uint32_t i = 0; s.member != NULL && i < crew->n_workers; i++) {
        if (s.member[i].pid > 0) {
            kill(s.member[i].pid, SIGKILL);
            reap(&s.member[i]);
        }
        if (s.member[i].fd >= 0)
            close(s.member[i].fd);
        mpl_free(ctx, s.member[i].text);
    }
    if (s.next != NULL)
        munmap(s.next, shared);
    mpl_free_each(ctx, wait, s.member);
    return st;
}
