/* size.c -- see size.h. */
#include "graphs/core/size.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>

bool mpl_size_read(const char *text, const char **end, uint64_t *bytes)
{
    static const char unit[][4] = {"KiB", "MiB", "GiB"};
    char *behind = NULL;
    unsigned long long value;
    unsigned shift = 0;

    if (!isdigit((unsigned char)text[0]))
        return false;
    errno = 0;
    value = strtoull(text, &behind, 10);
    for (unsigned u = 0; u < 3; u++)
        if (strncmp(behind, unit[u], 3) == 0)
            shift = 10 * (u + 1);
    *end = behind + (shift > 0 ? 3 : 0);
    if (errno != 0 || value > (uint64_t)INT64_MAX >> shift)
        return false;
    *bytes = (uint64_t)value << shift;
    return true;
}

mpl_size mpl_sized(uint64_t bytes)
{
    double mib = (double)bytes / 1048576;
    mpl_size size;

    if (mib < 0.0005)
        snprintf(size.text, sizeof size.text, "%" PRIu64 " bytes", bytes);
    else
        snprintf(size.text, sizeof size.text, "%.3f MiB", mib);
    return size;
}
