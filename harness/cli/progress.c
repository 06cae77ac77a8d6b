/* progress.c -- progress of a long job. See progress.h. */
#include "harness/cli/progress.h"

#include <stdarg.h>
#include <unistd.h>

#include "graphs/core/text.h"

enum { BAR = 28 };

void mpl_progress_begin(mpl_progress *progress, uint32_t total, bool quiet)
{
    *progress = (mpl_progress){.quiet = quiet,
                               .terminal = isatty(STDERR_FILENO) != 0,
                               .total = total,
                               .start_ns = mpl_clock_ns()};
}

void mpl_progress_at(const mpl_progress *progress, uint32_t under_way, double share,
                     const char *what)
{
    double part = progress->total > 0 ? (progress->done + under_way * share) / progress->total : 0;
    int64_t seconds = (mpl_clock_ns() - progress->start_ns) / 1000000000;
    int filled = (int)(BAR * part);

    if (progress->quiet || !progress->terminal)
        return;
    fprintf(stderr, "\r\033[K[%.*s%.*s] %3.0f %%  ", filled, "############################",
            BAR - filled, "............................", part * 100);
    if (part > 0 && seconds > 1) {
        int64_t left = (int64_t)((double)seconds * (1 - part) / part);

        fprintf(stderr, "%" PRId64 ":%02" PRId64 " left  ", left / 60, left % 60);
    }
    fprintf(stderr, "%.44s", mpl_shown(what));
}

void mpl_progress_line(mpl_progress *progress, const char *format, ...)
{
    va_list args;
    char text[2000];

    if (progress->quiet)
        return;
    if (progress->terminal)
        fputs("\r\033[K", stderr);
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    mpl_text_clean(text);
    fprintf(stderr, "%s\n", text);
}

void mpl_progress_end(mpl_progress *progress)
{
    if (!progress->quiet && progress->terminal)
        fputs("\r\033[K", stderr);
}
