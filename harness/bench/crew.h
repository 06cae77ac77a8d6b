/* crew.h -- units of work shared among processes, each with a core of its own; what they say comes
 * back to one place. */
#ifndef MPL_CREW_H
#define MPL_CREW_H

#include "graphs/core/base.h"

typedef struct mpl_crew {
    void *arg;
    uint32_t n_units, n_workers; /* at most as many workers as usable cores */
    /* In a worker: does unit u; each line written to `to` comes back. A failure ends the worker. */
    mpl_status (*work)(mpl_ctx *ctx, void *arg, uint32_t u, FILE *to);
    /* Here: a line of unit u, without its newline and zero-terminated. */
    mpl_status (*line)(mpl_ctx *ctx, void *arg, uint32_t u, const char *text, size_t n);
    /* Here: unit u is over; why: NULL, or one line about the worker that died in it. */
    mpl_status (*over)(mpl_ctx *ctx, void *arg, uint32_t u, const char *why);
} mpl_crew;

/* Workers take units in their order, the next as soon as one is free; one that dies is replaced.
 * Returns when all units are over, at a failure here, or after an interrupt (mpl_interrupted); no
 * worker is left then. MPL_EMEM: no process to be had. */
mpl_status mpl_crew_run(mpl_ctx *ctx, const mpl_crew *crew);

#endif
