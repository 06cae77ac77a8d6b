/* one_shape.c -- GRAPH at one shape. See one_shape.h. */
#include "harness/shapes/one_shape.h"

#include "graphs/source.h"

/* "NAME=SIZE" after `before` and `cut`, which is 0 where there is nothing before. */
static mpl_status sized_text(mpl_ctx *ctx, const char *before, char cut, const char *name,
                             int64_t size, char **out)
{
    size_t room = strlen(before) + strlen(name) + 24;
    char *text;

    MPL_PASS(mpl_new(ctx, text, room));
    snprintf(text, room, "%s%.*s%s=%" PRId64, before, cut != 0, &cut, name, size);
    *out = text;
    return MPL_OK;
}

mpl_status mpl_one_shape_make(mpl_ctx *ctx, const mpl_options *options, const char *graph,
                              uint32_t n, const char *const *name, const int64_t *size,
                              mpl_one_shape *out)
{
    mpl_status st = MPL_OK;
    char *text = NULL;
    bool zoo = mpl_zoo_find(graph, strcspn(graph, ":")) != NULL;

    memset(out, 0, sizeof *out);
    out->options = *options;
    MPL_TRY(mpl_copy_text(ctx, out->graph, graph));
    for (uint32_t i = 0; i < options->dim.n; i++)
        MPL_TRY(mpl_strings_add(ctx, &out->dim, options->dim.item[i]));
    for (uint32_t i = 0; i < n; i++) {
        if (zoo) {
            char cut = strchr(out->graph, ':') == NULL ? ':' : ',';

            MPL_TRY(sized_text(ctx, out->graph, cut, name[i], size[i], &text));
            mpl_free(ctx, out->graph);
            out->graph = text, text = NULL;
            continue;
        }
        MPL_TRY(sized_text(ctx, "", 0, name[i], size[i], &text));
        MPL_TRY(mpl_strings_add(ctx, &out->dim, text));
        out->n_sized++, text = NULL;
    }
    out->options.dim = out->dim;
out:
    mpl_free(ctx, text);
    return st;
}

void mpl_one_shape_fini(mpl_ctx *ctx, mpl_one_shape *shape)
{
    for (uint32_t i = shape->dim.n - shape->n_sized; i < shape->dim.n; i++)
        mpl_free(ctx, (char *)(uintptr_t)shape->dim.item[i]);
    mpl_free_each(ctx, shape->graph, shape->dim.item);
    memset(shape, 0, sizeof *shape);
}
