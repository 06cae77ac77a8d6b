/* progress.h -- how far a long job is: a bar with the time left on a terminal, plain lines
 * otherwise; on stderr. */
#ifndef MPL_PROGRESS_H
#define MPL_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

typedef struct mpl_progress {
    bool quiet, terminal;
    uint32_t done, total; /* runs */
    int64_t start_ns;
} mpl_progress;

void mpl_progress_begin(mpl_progress *p, uint32_t total, bool quiet);
/* Draws the bar: besides what is done, a share of `under_way` runs is (0 to 1); `what` is at
 * hand. */
void mpl_progress_at(const mpl_progress *p, uint32_t under_way, double share, const char *what);
/* A line of its own, above the bar. */
void mpl_progress_line(mpl_progress *p, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
void mpl_progress_end(mpl_progress *p);

#endif
