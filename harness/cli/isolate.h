/* isolate.h -- a function in a process of its own, with a limit: what it does to itself ends
 * there. */
#ifndef MPL_ISOLATE_H
#define MPL_ISOLATE_H

#include "graphs/core/base.h"

/* How the process ended. */
typedef struct mpl_ending {
    int64_t wall_ns; /* from the end of the fork to its own [ns] */
    bool timed_out;  /* killed at the deadline */
    int interrupted; /* killed because of this signal to memplan; 0: no */
    int signal;      /* that ended it; 0: it exited */
    int exit_status;
} mpl_ending;

/* Forks; body(arg) runs in the child, in a process group of its own, with default signals, standard
 * input from /dev/null, standard output joined to standard error, no other file open; returning is
 * exit status 0. What is left of the group when the child ends, or at deadline_ns (of
 * mpl_clock_ns), is killed. SIGINT and SIGTERM to memplan end the child and are kept
 * (mpl_interrupted). MPL_EMEM: no process to be had. */
mpl_status mpl_isolate(mpl_ctx *ctx, void (*body)(void *arg), void *arg, int64_t deadline_ns,
                       mpl_ending *ending);

/* Memory that survives fork as one and the same, zeroed; NULL: there is none. Given back by
 * munmap. */
void *mpl_share(size_t bytes);

#endif
