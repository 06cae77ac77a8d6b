/* gzip.h -- unpacks files that gzip has packed. */
#pragma once

#include "graphs/core/base.h"

/* Whether the bytes begin as gzip's do. */
bool mpl_is_gzip(const void *data, size_t size);
/* Unpacks all members and appends a zero byte. Caller frees *out (mpl_free). MPL_EINPUT: damaged,
 * cut off, or more than `most` bytes come of it. O(size + *n). */
mpl_status mpl_gunzip(mpl_ctx *ctx, const char *path, const void *data, size_t size, size_t most,
                      char **out, size_t *n);
