/* size.h -- numbers of bytes as people write and read them: one way in, one way out. */
#ifndef MPL_SIZE_H
#define MPL_SIZE_H

#include "graphs/core/base.h"

/* Digits, then nothing, KiB, MiB or GiB: the text that is read ends at *end. False, *bytes
 * untouched: no digits, or 2^63 bytes or more. */
bool mpl_size_read(const char *text, const char **end, uint64_t *bytes);

/* "7.656 MiB"; "512 bytes" where that would read 0.000. To be printed at once: printf("%s",
 * mpl_sized(bytes).text). */
typedef struct mpl_size {
    char text[32];
} mpl_size;
mpl_size mpl_sized(uint64_t bytes);

#endif
