/* gnuplot.c -- pictures through gnuplot. See gnuplot.h. */
#include "harness/gnuplot.h"

#include <errno.h>
#include <spawn.h>
#include <sys/wait.h>

extern char **environ;

enum { STAMP = 56 }; /* "<!-- made from 16 digits, 16 digits -->\n" and its zero */

mpl_status mpl_gnuplot(mpl_ctx *ctx, const char *settings, const char *script)
{
    mpl_status st = MPL_OK;
    char program[] = "gnuplot", option[] = "-e";
    char *all[] = {program, option, (char *)(uintptr_t)settings, (char *)(uintptr_t)script, NULL};
    char *alone[] = {program, (char *)(uintptr_t)script, NULL};
    pid_t pid;
    int how = 0, why = posix_spawnp(&pid, program, NULL, NULL, settings != NULL ? all : alone, environ);

    if (why != 0)
        MPL_FAIL(ctx, MPL_EUNAVAIL, "pictures need gnuplot: %s; install gnuplot-nox", strerror(why));
    while (waitpid(pid, &how, 0) < 0 && errno == EINTR)
        ;
    if (!WIFEXITED(how) || WEXITSTATUS(how) != 0)
        MPL_FAIL(ctx, MPL_EUNAVAIL, "gnuplot failed with status %d; see its message above", WEXITSTATUS(how));
out:
    return st;
}

static int stamp(const char *svg, size_t size, uint64_t inputs, char text[STAMP])
{
    return snprintf(text, STAMP, "<!-- made from %016" PRIx64 ", %016" PRIx64 " -->\n", inputs,
                    mpl_hash(MPL_HASH_SEED, svg, size));
}

void mpl_svg_put(FILE *to, const char *svg, size_t size, uint64_t inputs)
{
    char text[STAMP];

    stamp(svg, size, inputs, text);
    fwrite(svg, 1, size, to);
    fputs(text, to);
}

bool mpl_svg_fresh(const char *svg, size_t size, uint64_t inputs)
{
    char text[STAMP];
    size_t n = (size_t)stamp(svg, 0, inputs, text); /* its length is always the same */

    if (size < n)
        return false;
    stamp(svg, size - n, inputs, text);
    return memcmp(svg + size - n, text, n) == 0;
}
