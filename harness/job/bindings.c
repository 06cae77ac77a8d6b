/* bindings.c -- what --input and --expect name. See job.h. */
#include "harness/job/measure.h"

#include <math.h>
#include <stdlib.h>

#include <unistd.h>

/* One number that is not below 0, and what follows it; NULL: none. */
static char *read_allowed(const char *text, double *out)
{
    char *end;

    *out = strtod(text, &end);
    return end > text && isfinite(*out) && *out >= 0 ? end : NULL;
}

/* Cuts ":REL[,ABS]" off a file's name, unless there is a file of the whole name. */
static void take_allowed(char *file, mpl_binding *binding)
{
    char *colon = strrchr(file, ':'), *end;
    double relative, absolute;

    if (colon == NULL || access(file, F_OK) == 0 ||
        (end = read_allowed(colon + 1, &relative)) == NULL)
        return;
    absolute = relative * (MPL_ABS_TOLERANCE / MPL_REL_TOLERANCE);
    if (*end == ',')
        end = read_allowed(end + 1, &absolute);
    if (end == NULL || *end != '\0')
        return;
    *colon = '\0';
    binding->relative = relative, binding->absolute = absolute;
}

/* Fills one binding. A text with '=' that names an existing file is that file. */
static mpl_status read_one(mpl_ctx *ctx, const char *what, const char *text, mpl_binding *binding)
{
    mpl_status st = MPL_OK;
    char *file = NULL;
    const char *cut = strchr(text, '=');
    uint64_t index = 0;

    if (cut != NULL && access(text, F_OK) != 0) {
        MPL_TRY(mpl_copy_text(ctx, binding->name, text));
        binding->name[cut - text] = '\0';
        index = MPL_NONE;
        if (binding->name[0] != '\0' &&
            strspn(binding->name, "0123456789") == strlen(binding->name))
            MPL_TRY(mpl_parse_count(ctx, what, binding->name, 0, UINT32_MAX - 1, &index));
    }
    binding->index = (uint32_t)index;
    binding->relative = MPL_REL_TOLERANCE, binding->absolute = MPL_ABS_TOLERANCE;
    MPL_TRY(mpl_copy_text(ctx, file, binding->name != NULL ? cut + 1 : text));
    if (*file == '\0' || (binding->name != NULL && binding->name[0] == '\0'))
        MPL_FAIL(ctx, MPL_EINPUT, "%s %s: it takes [NAME|INDEX=]FILE", what, text);
    binding->ramp = strcmp(file, "ramp") == 0;
    if (strcmp(what, "--expect") == 0)
        take_allowed(file, binding);
    if (!binding->ramp)
        MPL_TRY(mpl_tensor_read(ctx, file, &binding->tensor));
out:
    mpl_free(ctx, file);
    return st;
}

mpl_status mpl_bindings_read(mpl_ctx *ctx, const char *what, const mpl_strings *texts,
                             mpl_bindings *out)
{
    mpl_status st = MPL_OK;
    mpl_bindings list = {0};

    MPL_TRY(mpl_new(ctx, list.item, texts->n));
    for (; list.n < texts->n; list.n++)
        if ((st = read_one(ctx, what, texts->item[list.n], &list.item[list.n])) != MPL_OK) {
            list.n++;
            goto out;
        }
    *out = list;
    memset(&list, 0, sizeof list);
out:
    mpl_bindings_fini(ctx, &list);
    return st;
}

void mpl_bindings_fini(mpl_ctx *ctx, mpl_bindings *bindings)
{
    for (uint32_t i = 0; i < bindings->n; i++)
        mpl_free_each(ctx, bindings->item[i].name, bindings->item[i].tensor.data);
    mpl_free(ctx, bindings->item);
    memset(bindings, 0, sizeof *bindings);
}
