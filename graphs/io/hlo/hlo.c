/* hlo.c -- reads a module of HLO text. See source.h. */
#include "graphs/io/hlo/hlo_priv.h"
#include "graphs/source.h"

mpl_status mpl_hlo_read_memory(mpl_ctx *ctx, const char *path, const char *data, size_t size,
                               mpl_graph **out)
{
    mpl_status st = MPL_OK;
    hlo_module m = {.ctx = ctx, .path = path, .begin = data, .end = data + size};
    mpl_graph *g = NULL;

    MPL_TRY(hlo_parse(&m));
    MPL_TRY(hlo_build(&m, &g));
    *out = g;
out:
    hlo_module_fini(&m);
    if (st == MPL_EINPUT && strncmp(ctx->message, path, strlen(path)) != 0)
        return MPL_REFUSE(ctx, "%s: %s", path, ctx->message); /* of a value or operation */
    return st;
}
