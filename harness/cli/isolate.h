/* isolate.h -- runs a function in a separate process with a time limit; what processes share. */
#pragma once

#include "graphs/core/base.h"

#include <sys/types.h>

typedef struct mpl_ending {
    int64_t wall_ns; /* from the end of the fork to the end of the process [ns] */
    bool timed_out;  /* killed at the deadline */
    int interrupted; /* the signal to memplan that caused the kill; 0: none */
    int signal;      /* the signal that ended it; 0: it exited */
    int exit_status;
} mpl_ending;

/* Forks and runs body(arg) in the child. The child has its own process group, default signals,
 * standard input from /dev/null, standard output joined to standard error, and no other open file.
 * Returning from body is exit status 0. When the child ends, or at deadline_ns (of mpl_clock_ns),
 * the rest of its group is killed. SIGINT and SIGTERM to memplan end the child and are kept
 * (mpl_interrupted). MPL_EMEM: no process can be started. */
mpl_status mpl_isolate(mpl_ctx *ctx, void (*body)(void *arg), void *arg, int64_t deadline_ns,
                       mpl_ending *ending);

/* Forks; *pid is 0 in the child, which is killed when memplan ends. MPL_EMEM, with *pid = 0: no
 * process can be started; the message begins with `what`. */
mpl_status mpl_fork(mpl_ctx *ctx, const char *what, pid_t *pid);
/* Waits for the end of the process; its status, as of waitpid. */
int mpl_reap(pid_t pid);
/* Says how `who` ended, in text[n]: "WHO ended by signal 9 (Killed)". */
void mpl_ended_text(const char *who, int how, size_t n, char *text);

/* Zeroed memory that stays shared across fork, freed by munmap; NULL: none available. */
void *mpl_share(size_t bytes);
