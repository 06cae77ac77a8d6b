/* bindings.c -- --input and --expect: "[NAME|INDEX=]FILE|ramp". See job.h. */
#include "harness/job/job.h"

#include <unistd.h>

/* Fills one binding. A text with '=' that names an existing file is that file. */
static mpl_status read_one(mpl_ctx *ctx, const char *what, const char *text, mpl_binding *b)
{
    const char *file = text, *cut = strchr(text, '=');
    uint64_t index = 0;

    if (cut != NULL && access(text, F_OK) != 0) {
        file = cut + 1;
        if ((b->name = mpl_strdup(ctx, text)) == NULL)
            MPL_PASS(MPL_EMEM);
        b->name[cut - text] = '\0';
        if (b->name[0] != '\0' && strspn(b->name, "0123456789") == strlen(b->name)) {
            MPL_PASS(mpl_parse_count(ctx, what, b->name, 0, UINT32_MAX - 1, &index));
            mpl_free(ctx, b->name);
            b->name = NULL;
        }
    }
    b->index = (uint32_t)index;
    if (*file == '\0' || (b->name != NULL && b->name[0] == '\0'))
        return MPL_REFUSE(ctx, "%s %s: it takes [NAME|INDEX=]FILE", what, text);
    b->ramp = strcmp(file, "ramp") == 0;
    if (!b->ramp)
        MPL_PASS(mpl_tensor_read(ctx, file, &b->tensor));
    return MPL_OK;
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
