/* foreign_common.c -- code common to calls of external planners. See foreign.h. */
#include "harness/foreign/foreign.h"

#include <stdarg.h>

#include "harness/cli/isolate.h"

mpl_status mpl_foreign_fail(mpl_run *run, mpl_status st, const char *failure, const char *format,
                            ...)
{
    char text[400];
    va_list args;

    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    for (char *c = text; *c != '\0'; c++)
        *c = (unsigned char)*c < ' ' || *c == 127 ? ' ' : *c;
    run->failure = failure;
    return MPL_ERROR(run->ctx, st, "planner %s: %s: %s", run->planner->name, failure, text);
}

int64_t mpl_foreign_limit(const mpl_run *run)
{
    int64_t left =
        run->deadline_ns == INT64_MAX ? MPL_FOREIGN_LIMIT_NS : run->deadline_ns - mpl_clock_ns();

    return left > 0 ? left : 0;
}

mpl_status mpl_foreign_ended(mpl_run *run, const mpl_ending *ending, int64_t limit_ns)
{
    if (ending->interrupted != 0)
        return mpl_foreign_fail(run, MPL_ELIMIT, "timeout", "interrupted by signal %d",
                                ending->interrupted);
    if (ending->timed_out)
        return mpl_foreign_fail(run, MPL_ELIMIT, "timeout", "no answer within %.3g s",
                                (double)limit_ns / 1e9);
    if (ending->signal != 0)
        return mpl_foreign_fail(run, MPL_EINVALID, "crash", "ended by signal %d (%s)",
                                ending->signal, strsignal(ending->signal));
    return MPL_OK;
}
