/* gnuplot.c -- draws pictures with gnuplot. See gnuplot.h. */
#include "harness/view/gnuplot.h"

#include <errno.h>
#include <spawn.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "graphs/core/file.h"

extern char **environ;

enum { STAMP = 56 }; /* "<!-- made from 16 digits, 16 digits -->\n" with its zero */

mpl_status mpl_gnuplot(mpl_ctx *ctx, const char *settings, const char *script)
{
    char program[] = "gnuplot", option[] = "-e";
    char *all[] = {program, option, (char *)(uintptr_t)settings, (char *)(uintptr_t)script, NULL};
    char *alone[] = {program, (char *)(uintptr_t)script, NULL};
    pid_t pid;
    int how = 0,
        why = posix_spawnp(&pid, program, NULL, NULL, settings != NULL ? all : alone, environ);

    if (why != 0)
        return MPL_ERROR(ctx, MPL_EUNAVAIL, "pictures need gnuplot: %s; install gnuplot-nox",
                         strerror(why));
    while (waitpid(pid, &how, 0) < 0 && errno == EINTR)
        ;
    if (!WIFEXITED(how) || WEXITSTATUS(how) != 0)
        return MPL_ERROR(ctx, MPL_EUNAVAIL, "gnuplot failed with status %d; see its message above",
                         WEXITSTATUS(how));
    return MPL_OK;
}

mpl_status mpl_picture_begin(mpl_ctx *ctx, mpl_picture *picture)
{
    mpl_status st = MPL_OK;
    int fd;

    snprintf(picture->script_path, sizeof picture->script_path, "%s/memplan-XXXXXX.gp",
             mpl_temporary_folder());
    fd = mkstemps(picture->script_path, 3);
    picture->script = fd >= 0 ? fdopen(fd, "w") : NULL;
    if (picture->script == NULL)
        MPL_FAIL(ctx, MPL_EINPUT, "%s: %s", picture->script_path, strerror(errno));
    snprintf(picture->path, sizeof picture->path, "%s.out", picture->script_path);
out:
    if (st != MPL_OK && fd >= 0) {
        close(fd);
        unlink(picture->script_path);
    }
    return st;
}

mpl_status mpl_picture_draw(mpl_ctx *ctx, mpl_picture *picture, char **data, size_t *size)
{
    if (fflush(picture->script) != 0 || ferror(picture->script))
        return MPL_REFUSE(ctx, "%s: %s", picture->script_path, strerror(errno));
    MPL_PASS(mpl_gnuplot(ctx, NULL, picture->script_path));
    return mpl_file_read(ctx, picture->path, data, size);
}

void mpl_picture_end(mpl_picture *picture)
{
    if (picture->script == NULL)
        return;
    fclose(picture->script);
    unlink(picture->script_path);
    unlink(picture->path);
    *picture = (mpl_picture){0};
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
    size_t n = (size_t)stamp(svg, 0, inputs, text); /* its length never varies */

    if (size < n)
        return false;
    stamp(svg, size - n, inputs, text);
    return memcmp(svg + size - n, text, n) == 0;
}
