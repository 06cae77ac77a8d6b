/* progress.c -- progress of a long job. See progress.h. */
#include "harness/cli/progress.h"

#include <stdarg.h>
#include <unistd.h>

#include "graphs/core/text.h"

enum { BAR = 28 };

void mpl_progress_begin(mpl_progress *p, uint32_t total, bool quiet)
{
    *p = (mpl_progress){.quiet = quiet,
                        .terminal = isatty(STDERR_FILENO) != 0,
                        .total = total,
                        .start_ns = mpl_clock_ns()};
}

void mpl_progress_at(const mpl_progress *p, uint32_t under_way, double share, const char *what)
{
    double part = p->total > 0 ? (p->done + under_way * share) / p->total : 0;
    int64_t seconds = (mpl_clock_ns() - p->start_ns) / 1000000000;
    int filled = (int)(BAR * part);

    if (p->quiet || !p->terminal)
        return;
    fprintf(stderr, "\r\033[K[%.*s%.*s] %3.0f %%  ", filled, "############################",
            BAR - filled, "............................", part * 100);
    if (part > 0 && seconds > 1) {
        int64_t left = (int64_t)((double)seconds * (1 - part) / part);

        fprintf(stderr, "%" PRId64 ":%02" PRId64 " left  ", left / 60, left % 60);
    }
    fprintf(stderr, "%.44s", mpl_shown(what));
}

void mpl_progress_line(mpl_progress *p, const char *format, ...)
{
    va_list args;
    char text[2000];

    if (p->quiet)
        return;
    if (p->terminal)
        fputs("\r\033[K", stderr);
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    mpl_text_clean(text);
    fprintf(stderr, "%s\n", text);
}

void mpl_progress_end(mpl_progress *p)
{
    if (!p->quiet && p->terminal)
        fputs("\r\033[K", stderr);
}
