/* exec_options.c -- how a job is to be executed, by its options. See measure.h. */
#include "harness/job/measure.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <unistd.h>

/* The loader goes on without a library that it does not find: a row would name what was not
 * there. */
static mpl_status check_preloaded(mpl_ctx *ctx)
{
    const char *list = getenv("LD_PRELOAD");
    mpl_status st = MPL_OK;

    for (size_t n; list != NULL && *(list += strspn(list, " :")) != '\0'; list += n) {
        char library[300];
        void *handle;

        n = strcspn(list, " :");
        snprintf(library, sizeof library, "%.*s", (int)(n < 299 ? n : 299), list);
        if ((handle = dlopen(library, RTLD_NOW | RTLD_NOLOAD)) == NULL)
            MPL_FAIL(ctx, MPL_EUNAVAIL,
                     "--compare malloc: LD_PRELOAD names '%.200s', which is not loaded", library);
        dlclose(handle);
    }
out:
    return st;
}

mpl_status mpl_measure_options(mpl_ctx *ctx, const mpl_options *options, mpl_exec_options *out)
{
    static const char prefix[] = "random:";
    mpl_status st = MPL_OK;
    mpl_pass_set passes;

    *out = (mpl_exec_options){.checked = options->checked, .weight_seed = 1};
    if (options->compare == MPL_compare_malloc)
        MPL_TRY(check_preloaded(ctx));
    if (options->weights == NULL)
        goto out;
    if (strncmp(options->weights, prefix, sizeof prefix - 1) != 0)
        MPL_FAIL(ctx, MPL_EINPUT, "--weights: '%s' is not random:SEED", options->weights);
    MPL_TRY(mpl_pass_set_parse(ctx, options->optimise, &passes));
    out->random_weights = !mpl_pass_set_reads_weights(&passes);
    MPL_TRY(mpl_parse_count(ctx, "--weights", options->weights + sizeof prefix - 1, 0, INT64_MAX,
                            &out->weight_seed));
out:
    return st;
}
