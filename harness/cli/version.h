/* version.h -- identifies the build, for --version and for the `memplan` field of rows. */
#pragma once

#include <stdbool.h>
#include <stdio.h>

typedef struct mpl_build {
    const char *version;
    const char *commit; /* NULL: not built from a git checkout */
    bool dirty;         /* sources differed from the commit */
    const char *compiler;
    const char *flags;
} mpl_build;

extern const mpl_build mpl_this_build;

void mpl_version_print(FILE *to);
