/* fuzz.h -- what fuzz targets share: an input as a file, and claims that end the program where they
 * do not hold. */
#ifndef MPL_FUZZ_H
#define MPL_FUZZ_H

#include "graphs/core/base.h"

#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static inline void must(bool holds, const mpl_ctx *ctx)
{
    if (holds)
        return;
    fprintf(stderr, "memplan: %s\n", ctx->message);
    abort();
}

/* Puts the bytes into a file in memory, the same one each time; its path. */
static inline const char *fuzz_file(const uint8_t *data, size_t size)
{
    static char path[32];
    static int fd = -1;

    if (fd < 0) {
        fd = memfd_create("fuzz", 0);
        snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    }
    /* cut after the write, not before: the pages stay */
    if (fd < 0 || pwrite(fd, data, size, 0) != (ssize_t)size || ftruncate(fd, (off_t)size) != 0)
        abort();
    return path;
}

#endif
