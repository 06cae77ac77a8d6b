/* version.c -- facts of the build, from a header that make writes. */
#include "harness/cli/version.h"

#include "version_gen.h"

const mpl_build mpl_this_build = {
    .version = MPL_GEN_VERSION,
    .commit = sizeof MPL_GEN_COMMIT > 1 ? MPL_GEN_COMMIT : NULL,
    .dirty = MPL_GEN_DIRTY,
    .compiler = MPL_GEN_COMPILER,
    .flags = MPL_GEN_FLAGS,
};

void mpl_version_print(FILE *to)
{
    const mpl_build *build = &mpl_this_build;

    fprintf(to, "memplan %s (%s%s)\n%s, %s\n", build->version,
            build->commit ? build->commit : "no commit", build->dirty ? ", changed" : "",
            build->compiler, build->flags);
}
