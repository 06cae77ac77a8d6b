/* gzip.c -- see gzip.h. Source: RFC 1952; zlib does the work, with our memory. */
#include "graphs/core/gzip.h"

#define ZLIB_CONST
#include <zlib.h>

bool mpl_is_gzip(const void *data, size_t size)
{
    return size >= 2 && memcmp(data, "\x1f\x8b", 2) == 0;
}

static void *take(void *ctx, unsigned n, unsigned size)
{
    return mpl_alloc(ctx, n, size);
}

static void give(void *ctx, void *p)
{
    mpl_free(ctx, p);
}

/* Inflates until the input or a member ends; grows *out. */
static mpl_status inflate_more(mpl_ctx *ctx, const char *path, z_stream *stream, size_t most,
                               char **out, size_t *cap, size_t *n, int *code)
{
    size_t room;

    MPL_PASS(mpl_reserve(ctx, *out, *cap, *n + 65536));
    room = *cap - *n - 1 < UINT32_MAX ? *cap - *n - 1 : UINT32_MAX;
    stream->next_out = (unsigned char *)*out + *n;
    stream->avail_out = (unsigned)room;
    *code = inflate(stream, Z_NO_FLUSH);
    *n += room - stream->avail_out;
    if (*code == Z_MEM_ERROR)
        return MPL_ERROR(ctx, MPL_EMEM, "%s: out of memory", path);
    if (*code != Z_OK && *code != Z_STREAM_END)
        return MPL_REFUSE(ctx, "%s: packed by gzip, and damaged or cut off (%s)", path,
                          stream->msg != NULL ? stream->msg : "the data end early");
    if (*n > most)
        return MPL_REFUSE(ctx, "%s: unpacked it has more than %zu bytes", path, most);
    return MPL_OK;
}

mpl_status mpl_gunzip(mpl_ctx *ctx, const char *path, const void *data, size_t size, size_t most,
                      char **out, size_t *n)
{
    mpl_status st = MPL_OK;
    z_stream z = {.zalloc = take, .zfree = give, .opaque = ctx};
    char *text = NULL;
    size_t cap = 0, got = 0;
    int code = Z_OK;
    bool open = false;

    if (size > UINT32_MAX)
        MPL_FAIL(ctx, MPL_EINPUT, "%s: more than 4 GiB packed by gzip", path);
    if (inflateInit2(&z, 15 + 16) != Z_OK) /* the largest window, with gzip's header */
        MPL_FAIL(ctx, MPL_EMEM, "%s: out of memory", path);
    open = true;
    z.next_in = data;
    z.avail_in = (unsigned)size;
    while (code != Z_STREAM_END || z.avail_in > 0) {
        if (code == Z_STREAM_END)
            inflateReset(&z);
        MPL_TRY(inflate_more(ctx, path, &z, most, &text, &cap, &got, &code));
    }
    text[got] = '\0';
    *out = text, text = NULL;
    *n = got;
out:
    if (open)
        inflateEnd(&z);
    mpl_free(ctx, text);
    return st;
}
