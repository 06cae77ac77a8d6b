/* host_priv.h -- shared by the backends that compute in the host's memory. */
#ifndef MPL_HOST_PRIV_H
#define MPL_HOST_PRIV_H

#include "runtime/backend.h"

struct mpl_device {
    mpl_ctx *ctx;
    uint32_t n_threads;
    uint64_t most_workspace;     /* of operations prepared from now on; UINT64_MAX: any [byte] */
    struct mpl_library *library; /* private to the backend; NULL: none */
};

/* The entries of mpl_backend of the same name: pages of the local node, plain copies. */
mpl_status mpl_host_arena_new(mpl_device *dev, uint64_t bytes, void **base);
void mpl_host_arena_free(mpl_device *dev, void *base, uint64_t bytes);
mpl_status mpl_host_upload(mpl_device *dev, void *to, const void *from, uint64_t bytes);
mpl_status mpl_host_download(mpl_device *dev, void *to, const void *from, uint64_t bytes);
mpl_status mpl_host_copy(mpl_device *dev, void *to, const void *from, uint64_t bytes);
mpl_status mpl_host_fill(mpl_device *dev, void *at, uint8_t byte, uint64_t bytes);
mpl_status mpl_host_resident(mpl_device *dev, const void *base, uint64_t bytes, uint64_t *resident);
mpl_status mpl_host_wait(mpl_device *dev);

/* All entries for memory in the table of a backend. */
#define MPL_HOST_MEMORY                                                                            \
    .arena_new = mpl_host_arena_new, .arena_free = mpl_host_arena_free, .upload = mpl_host_upload, \
    .download = mpl_host_download, .fill = mpl_host_fill, .copy = mpl_host_copy,                   \
    .resident = mpl_host_resident

#endif
