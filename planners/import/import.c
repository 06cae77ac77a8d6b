/* import.c -- detects the format of a production allocator's plan. See import.h. */
#include "planners/import/base/import_priv.h"

#include "graphs/core/file.h"

const mpl_import_format mpl_import_formats[] = {
#define IMPORT(name, about) {#name, about, mpl_import_is_##name, mpl_import_read_##name},
#include "planners/import/imports.def"
#undef IMPORT
    {NULL, NULL, NULL, NULL},
};

/* ---- any format ---- */

static const mpl_import_format *format_of(const mpl_import_in *in)
{
    const mpl_import_format *format = mpl_import_formats;

    while (format->name != NULL && !format->is(in))
        format++;
    return format->name != NULL ? format : NULL;
}

static mpl_status fail_unknown(mpl_ctx *ctx, const char *path)
{
    static const char names[] =
#define IMPORT(name, about) " " #name
#include "planners/import/imports.def"
#undef IMPORT
        ;

    return MPL_REFUSE(ctx,
                      "%.200s: no plan that memplan knows; memplan list formats tells of%s; a CSV "
                      "needs a column 'offset'",
                      path, names);
}

mpl_status mpl_plan_import(mpl_ctx *ctx, const char *path, const mpl_problem *beside,
                           mpl_import *out)
{
    mpl_status st = MPL_OK;
    mpl_import got = {0};
    mpl_import_in in = {.path = path, .beside = beside};
    const mpl_import_format *format;
    char *text = NULL;

    MPL_TRY(mpl_file_read(ctx, path, &text, &in.size));
    in.text = text;
    if (in.size == 0)
        MPL_FAIL(ctx, MPL_EINPUT, "%.200s: the file is empty; it should hold a plan", path);
    if ((format = format_of(&in)) == NULL)
        MPL_TRY(fail_unknown(ctx, path));
    got.format = format->name;
    MPL_TRY(format->read(ctx, &in, &got));
    *out = got;
    memset(&got, 0, sizeof got);
out:
    mpl_import_fini(ctx, &got);
    mpl_free(ctx, text);
    return st;
}

const mpl_import_format *mpl_plan_format(mpl_ctx *ctx, const char *path)
{
    mpl_import_in in = {.path = path};
    const mpl_import_format *format = NULL;
    char *text = NULL;

    if (mpl_file_read(ctx, path, &text, &in.size) == MPL_OK && in.size > 0) {
        in.text = text;
        format = format_of(&in);
    }
    mpl_free(ctx, text);
    return format;
}

void mpl_import_fini(mpl_ctx *ctx, mpl_import *import)
{
    mpl_plan_free(ctx, import->plan);
    mpl_problem_free(ctx, import->problem);
    mpl_free(ctx, import->fields_json);
    memset(import, 0, sizeof *import);
}
