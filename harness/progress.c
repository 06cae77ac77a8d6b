/* progress.c -- how far a long job is. See progress.h. */
#include "harness/progress.h"

#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

#include "graphs/base/base.h"

enum { BAR = 28 };

void mpl_progress_begin(mpl_progress *p, uint32_t total, bool quiet)
{
    *p = (mpl_progress){
        .quiet = quiet, .terminal = isatty(STDERR_FILENO) != 0, .total = total, .start_ns = mpl_clock_ns()};
}

void mpl_progress_step(mpl_progress *p, uint32_t done, const char *what)
{
    int64_t seconds, left;
    int filled;

    p->done += done;
    if (p->quiet || !p->terminal || p->total == 0)
        return;
    seconds = (mpl_clock_ns() - p->start_ns) / 1000000000;
    left = p->done > 0 ? seconds * (p->total - p->done) / p->done : -1;
    filled = (int)((uint64_t)BAR * p->done / p->total);
    fprintf(stderr, "\r\033[K[%.*s%.*s] %" PRIu32 "/%" PRIu32 "  ", filled, "############################",
            BAR - filled, "............................", p->done, p->total);
    if (left >= 0)
        fprintf(stderr, "%" PRId64 ":%02" PRId64 " left  ", left / 60, left % 60);
    fprintf(stderr, "%.40s", what);
}

void mpl_progress_line(mpl_progress *p, const char *format, ...)
{
    va_list args;

    if (p->quiet)
        return;
    if (p->terminal)
        fputs("\r\033[K", stderr);
    va_start(args, format);
    vfprintf(stderr, format, args);
    va_end(args);
    fputc('\n', stderr);
}

void mpl_progress_end(mpl_progress *p)
{
    if (!p->quiet && p->terminal)
        fputs("\r\033[K", stderr);
}
