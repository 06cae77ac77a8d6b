/* crew.h -- distributes units of work over processes, each on its own core; their output returns
 * here. */
#pragma once

#include "graphs/core/base.h"

typedef struct mpl_crew {
    void *arg;
    uint32_t n_units, n_workers; /* at most as many workers as usable cores */
    /* In a worker: does unit u. Each line written to `to` comes back. A failure ends the worker. */
    mpl_status (*work)(mpl_ctx *ctx, void *arg, uint32_t u, FILE *to);
    /* In the parent: one zero-terminated line of unit u, without its newline. */
    mpl_status (*line)(mpl_ctx *ctx, void *arg, uint32_t u, const char *text, size_t n);
    /* In the parent: unit u ended. why: NULL, or one line about the worker that died in it. */
    mpl_status (*over)(mpl_ctx *ctx, void *arg, uint32_t u, const char *why);
} mpl_crew;

/* Workers take units in order, each taking the next when it is free; a dead worker is replaced.
 * Returns after all units, at a failure in the parent, or after an interrupt (mpl_interrupted),
 * with no worker left. MPL_EMEM: no process can be started. */
mpl_status mpl_crew_run(mpl_ctx *ctx, const mpl_crew *crew);
