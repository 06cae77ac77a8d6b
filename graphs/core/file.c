/* file.c -- reads and writes whole files. See file.h. */
#include "graphs/core/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

enum { ENDLESS = 1 << 26 }; /* most bytes read from a device */

mpl_status mpl_file_read(mpl_ctx *ctx, const char *path, char **data, size_t *size)
{
    mpl_status st = MPL_OK;
    FILE *f = fopen(path, "rb");
    char *text = NULL;
    size_t cap = 0, n = 0, got;
    struct stat facts;

    if (f == NULL)
        MPL_FAIL(ctx, MPL_EINPUT, "%s: %s", path, strerror(errno));
    do {
        MPL_TRY(mpl_reserve(ctx, text, cap, n + 4096));
        got = fread(text + n, 1, cap - n - 1, f);
        n += got;
        if (n > ENDLESS && fstat(fileno(f), &facts) == 0 && S_ISCHR(facts.st_mode))
            MPL_FAIL(ctx, MPL_EINPUT, "%s: no file, and it does not end", path);
    } while (got > 0);
    if (ferror(f))
        MPL_FAIL(ctx, MPL_EINPUT, "%s: cannot be read: %s", path, strerror(errno));
    text[n] = '\0';
    *data = text, text = NULL;
    *size = n;
out:
    mpl_free(ctx, text);
    if (f != NULL)
        fclose(f);
    return st;
}

static bool is_special(const char *path)
{
    struct stat facts;

    if (strncmp(path, "/dev/", 5) == 0 || strncmp(path, "/proc/", 6) == 0)
        return true; /* /dev/stdout may be a file, and must not be replaced by renaming */
    return stat(path, &facts) == 0 && !S_ISREG(facts.st_mode) && !S_ISDIR(facts.st_mode);
}

const char *mpl_temporary_folder(void)
{
    static const char plain[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789/._-";
    const char *folder = getenv("TMPDIR");

    if (folder == NULL || folder[0] != '/' || folder[strspn(folder, plain)] != '\0' ||
        strlen(folder) > 200 || access(folder, W_OK | X_OK) != 0)
        return P_tmpdir;
    return folder;
}

mpl_status mpl_file_begin(mpl_ctx *ctx, const char *path, mpl_new_file *file)
{
    mpl_status st = MPL_OK;
    mpl_new_file fresh = {0};
    size_t room = strlen(path) + 32;
    int fd;

    MPL_TRY(mpl_copy_text(ctx, fresh.path, path));
    if (!is_special(path)) {
        MPL_TRY(mpl_new(ctx, fresh.temporary, room));
        snprintf(fresh.temporary, room, "%s.%ld.tmp", path, (long)getpid());
    }
    fd = fresh.temporary != NULL
             ? open(fresh.temporary, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0666)
         : strcmp(path, "/dev/stdout") == 0 ? dup(STDOUT_FILENO) /* keep its offset */
                                            : open(path, O_WRONLY | O_CLOEXEC);
    if (fd < 0 || (fresh.stream = fdopen(fd, "wb")) == NULL) {
        int why = errno;

        if (fd >= 0)
            close(fd);
        MPL_FAIL(ctx, MPL_EINPUT, "%s: cannot be written: %s", path, strerror(why));
    }
    *file = fresh, memset(&fresh, 0, sizeof fresh);
out:
    mpl_file_end(ctx, &fresh);
    return st;
}

mpl_status mpl_file_commit(mpl_ctx *ctx, mpl_new_file *file)
{
    bool good = fflush(file->stream) == 0 && !ferror(file->stream);

    if (good && file->temporary != NULL)
        good = fsync(fileno(file->stream)) == 0;
    if (fclose(file->stream) != 0)
        good = false;
    file->stream = NULL;
    if (good && file->temporary != NULL)
        good = rename(file->temporary, file->path) == 0;
    if (!good)
        return MPL_REFUSE(ctx, "%s: cannot be written: %s", file->path, strerror(errno));
    mpl_free(ctx, file->temporary);
    file->temporary = NULL;
    return MPL_OK;
}

void mpl_file_end(mpl_ctx *ctx, mpl_new_file *file)
{
    if (file->stream != NULL)
        fclose(file->stream);
    if (file->temporary != NULL)
        unlink(file->temporary);
    mpl_free_each(ctx, file->temporary, file->path);
    memset(file, 0, sizeof *file);
}
