/* progress.h -- progress of a long job on stderr: a bar with the time left on a terminal, plain
 * lines otherwise. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

typedef struct mpl_progress {
    bool quiet, terminal;
    uint32_t done, total; /* runs */
    int64_t start_ns;
} mpl_progress;

void mpl_progress_begin(mpl_progress *progress, uint32_t total, bool quiet);
/* Draws the bar. A `share` (0 to 1) of `under_way` runs is added to those done; `what` names the
 * current job. */
void mpl_progress_at(const mpl_progress *progress, uint32_t under_way, double share,
                     const char *what);
/* Prints a line above the bar. */
void mpl_progress_line(mpl_progress *progress, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
void mpl_progress_end(mpl_progress *progress);
