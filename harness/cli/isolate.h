/* isolate.h -- runs a function in a separate process with a time limit. */
#ifndef MPL_ISOLATE_H
#define MPL_ISOLATE_H

#include "graphs/core/base.h"

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

/* Zeroed memory that stays shared across fork, freed by munmap; NULL: none available. */
void *mpl_share(size_t bytes);

#endif
