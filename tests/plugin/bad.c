/* bad.c -- a planner that misbehaves as its parameter `do` says; `do=well` is correct. */
#define _POSIX_C_SOURCE 200809L
#include <memplan/plugin.h>

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static volatile char *volatile nothing;

/* Places buffers without sharing, pool by pool. */
static void stack_up(const memplan_problem *p, uint64_t *offset)
{
    for (uint32_t pool = 0; pool < p->n_pools; pool++) {
        uint64_t at = 0;

        for (uint32_t b = 0; b < p->n; b++) {
            if (p->pool[b] != pool)
                continue;
            at = (at + p->align[b] - 1) / p->align[b] * p->align[b];
            offset[b] = at;
            at += p->bytes[b];
        }
    }
}

/* Ends the process, or hangs for a long time. */
static void end_by(const char *what)
{
    if (strcmp(what, "segv") == 0)
        nothing[0] = 1;
    if (strcmp(what, "abort") == 0)
        abort();
    if (strcmp(what, "kill") == 0)
        kill(getpid(), SIGKILL);
    if (strcmp(what, "exit0") == 0)
        exit(0);
    if (strcmp(what, "exit7") == 0)
        _exit(7);
    if (strcmp(what, "hang") == 0)
        for (;;)
            pause();
    if (strcmp(what, "spin") == 0)
        for (;;)
            nothing = NULL;
    if (strcmp(what, "stop") == 0)
        kill(getpid(), SIGSTOP);
    if (strcmp(what, "huge") == 0) {
        nothing = malloc((size_t)1 << 60);
        nothing[0] = 1;
    }
    if (strcmp(what, "close") == 0)
        for (int fd = 0; fd < 1024; fd++)
            close(fd);
    if (strcmp(what, "fork") == 0 && fork() == 0)
        for (;;)
            pause();
}

static int answer(const char *what, const memplan_problem *p, memplan_result *result)
{
    if (strcmp(what, "nothing") == 0)
        memset(result->offset, 0xff, p->n * sizeof *result->offset);
    if (strcmp(what, "partial") == 0)
        result->offset[p->n - 1] = UINT64_MAX;
    if (strcmp(what, "wild") == 0)
        result->offset[0] = UINT64_MAX - 3;
    if (strcmp(what, "overlap") == 0)
        memset(result->offset, 0, p->n * sizeof *result->offset);
    if (strcmp(what, "misaligned") == 0)
        for (uint32_t b = 0; b < p->n; b++)
            result->offset[b] += 3;
    if (strcmp(what, "claim") == 0)
        result->claim = 77;
    if (strcmp(what, "optimal") == 0)
        result->claim = MEMPLAN_OPTIMAL;
    if (strcmp(what, "bound") == 0)
        result->bound_bytes = UINT64_C(1) << 60;
    if (strcmp(what, "liar") == 0) {
        result->claim = MEMPLAN_OPTIMAL;
        for (uint32_t b = 0; b < p->n; b++)
            result->bound_bytes += p->bytes[b];
    }
    if (strcmp(what, "files") == 0)
        for (int fd = 3; fd < 1024; fd++)
            if (fcntl(fd, F_GETFD) >= 0)
                return 4712; /* a file of memplan's that is still open */
    if (strcmp(what, "infeasible") == 0)
        result->claim = MEMPLAN_INFEASIBLE;
    if (strcmp(what, "code") == 0)
        return 4711;
    if (strcmp(what, "unable") == 0) {
        snprintf(result->message, result->message_size, "not\non a Sunday");
        return MEMPLAN_UNAVAILABLE;
    }
    if (strcmp(what, "long") == 0) {
        memset(result->message, 'x', result->message_size);
        return MEMPLAN_GAVE_UP;
    }
    return MEMPLAN_DONE;
}

static int plan(const memplan_problem *problem, const memplan_request *request,
                memplan_result *result)
{
    if (request->n_params != 1 || strcmp(request->key[0], "do") != 0) {
        snprintf(result->message, result->message_size, "it takes do=WHAT");
        return MEMPLAN_BAD_PARAMETER;
    }
    puts("a plug-in prints"); /* must not appear among the rows */
    stack_up(problem, result->offset);
    end_by(request->value[0]);
    return answer(request->value[0], problem, result);
}

const memplan_plugin memplan_plugin_main = {
    .version = MEMPLAN_PLUGIN_VERSION,
    .size = sizeof(memplan_plugin),
    .about = "goes wrong",
    .plan = plan,
};
