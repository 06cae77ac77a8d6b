/* cmd_explain.c -- memplan explain: what the arena is made of at its highest point, and which
 * options would lower it. */
#include "graphs/core/file.h"
#include "harness/cli/command.h"
#include "harness/explain/explain.h"

mpl_status mpl_cmd_explain(mpl_ctx *ctx, mpl_options *options)
{
    mpl_status st = MPL_OK;
    const char *suffix = options->output != NULL ? strrchr(options->output, '.') : NULL;
    mpl_explained explained = {0};

    if (options->output != NULL && (suffix == NULL || strcmp(suffix, ".html") != 0))
        MPL_FAIL(ctx, MPL_EINPUT, "explain: -o takes FILE.html, not '%.200s'", options->output);
    MPL_TRY(mpl_explain(ctx, options, options->output != NULL, &explained));
    if (options->output != NULL)
        MPL_TRY(mpl_explained_page(ctx, &explained, options->output));
    if (options->json)
        MPL_TRY(mpl_explained_json(ctx, &explained, &options->result));
    else if (!options->quiet)
        mpl_explained_print(stdout, &explained);
out:
    mpl_explained_fini(ctx, &explained);
    return st;
}
