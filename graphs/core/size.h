/* size.h -- reads and writes byte counts as people do ("7.656 MiB"). */
#pragma once

#include "graphs/core/base.h"

/* Reads digits, then nothing, KiB, MiB or GiB; *end is where reading stopped. False, with *bytes
 * unchanged, without digits or from 2^63 bytes on. */
bool mpl_size_read(const char *text, const char **end, uint64_t *bytes);

/* "7.656 MiB", or "512 bytes" where that would print 0.000. Print at once: printf("%s",
 * mpl_sized(bytes).text). */
typedef struct mpl_size {
    char text[32];
} mpl_size;
mpl_size mpl_sized(uint64_t bytes);
