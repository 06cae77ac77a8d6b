/* fuzz.h -- shared by fuzz targets: the input as a file, and assertions that abort. */
#pragma once

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

/* Writes the bytes to an in-memory file, always the same one; returns its path. */
static inline const char *fuzz_file(const uint8_t *data, size_t size)
{
    static char path[32];
    static int fd = -1;

    if (fd < 0) {
        fd = memfd_create("fuzz", 0);
        snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    }
    /* truncate after the write, to keep the pages */
    if (fd < 0 || pwrite(fd, data, size, 0) != (ssize_t)size || ftruncate(fd, (off_t)size) != 0)
        abort();
    return path;
}
