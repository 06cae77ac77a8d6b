/* cmd_eager.c -- memplan eager: a graph run as an eager program runs it, beside the plans of its
 * traces. */
#include "harness/cli/command.h"
#include "harness/eager/eager_job.h"
#include "harness/rows/rows.h"

/* Appends a line to the result of --json. */
static mpl_status add_json(mpl_ctx *ctx, const mpl_record *row, mpl_options *options)
{
    mpl_status st = MPL_OK;
    char *json = NULL, *all = NULL;
    size_t size;

    MPL_TRY(mpl_record_write(ctx, row, &json));
    size = strlen(json) + (options->result != NULL ? strlen(options->result) : 0) + 2;
    MPL_TRY(mpl_new(ctx, all, size));
    if (options->result != NULL)
        snprintf(all, size, "%s\n%s", options->result, json);
    else
        snprintf(all, size, "%s", json);
    mpl_free(ctx, options->result);
    options->result = all;
out:
    mpl_free(ctx, json);
    return st;
}

static mpl_status run_under(mpl_ctx *ctx, mpl_options *options, const char *allocator,
                            mpl_row_file *file)
{
    mpl_status st = MPL_OK;
    mpl_eager e = {.allocator = allocator};
    mpl_record *row = NULL;

    MPL_TRY(mpl_eager_run(ctx, options, &e));
    MPL_TRY(mpl_eager_row(ctx, options, &e, &row));
    if (file->fd >= 0)
        MPL_TRY(mpl_row_file_append(ctx, file, row));
    if (options->json)
        MPL_TRY(add_json(ctx, row, options));
    else if (!options->quiet)
        mpl_eager_print(options, row, &e);
out:
    mpl_record_free(ctx, row);
    mpl_eager_fini(ctx, &e);
    return st;
}

mpl_status mpl_cmd_eager(mpl_ctx *ctx, mpl_options *options)
{
    mpl_status st = MPL_OK;
    const char *asked = options->given[MPL_OPT_allocator] ? options->allocator : "caching";
    mpl_row_file file = {.fd = -1};
    mpl_strings names = {0};
    char *store = NULL;

    if (options->output != NULL)
        MPL_TRY(mpl_row_file_open(ctx, options->output, &file));
    if (strcmp(asked, "all") != 0)
        MPL_TRY(mpl_strings_split(ctx, asked, "--allocator", &store, &names));
    for (uint32_t i = 0; i < names.n; i++)
        MPL_TRY(run_under(ctx, options, names.item[i], &file));
    for (uint32_t i = 0; names.n == 0 && mpl_allocators[i] != NULL; i++)
        if ((st = run_under(ctx, options, mpl_allocators[i]->name, &file)) == MPL_EUNAVAIL)
            fprintf(stderr, "skip: %s: %s\n", mpl_allocators[i]->name, ctx->message);
        else
            MPL_TRY(st);
    st = MPL_OK;
out:
    mpl_row_file_close(&file);
    mpl_free_each(ctx, names.item, store);
    return st;
}
