/* import_script.c -- see import_script.h. */
#include "planners/import/base/import_script.h"

static bool is_name(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

static size_t name_length(const char *at, const char *end)
{
    size_t n = 0;

    while (at + n < end && is_name(at[n]))
        n++;
    return n;
}

const char *mpl_script_assigned(const mpl_script *script, size_t *n, const char **rest)
{
    const char *text = script->lines.text, *end = text + script->lines.n;
    const char *equals = mpl_script_after(text, end, " = ");

    *n = name_length(text, end);
    if (*n == 0 || equals == NULL || (text[*n] != ' ' && text[*n] != ':'))
        return NULL;
    *rest = equals;
    return text;
}

const char *mpl_script_after(const char *at, const char *end, const char *key)
{
    const char *found = memmem(at, (size_t)(end - at), key, strlen(key));

    return found != NULL ? found + strlen(key) : NULL;
}

/* Bytes of an element: the first number in the name of its type, in bits; a byte for bool. */
static uint64_t element_bytes(const char *at, const char *end)
{
    const char *type = mpl_script_after(at, end, "torch.");
    const char *quoted = mpl_script_after(at, end, "dtype(\"");
    uint64_t bits = 0;
    size_t n;

    type = type != NULL ? type : quoted;
    if (type == NULL)
        return 0;
    n = name_length(type, end);
    if (n == 4 && memcmp(type, "bool", 4) == 0)
        return 1;
    while (n > 0 && (*type < '0' || *type > '9'))
        type++, n--;
    return mpl_digits(type, type + n, &bits) != NULL && bits <= 1024 ? (bits + 7) / 8 : 0;
}

mpl_status mpl_script_tensor_bytes(const mpl_script *script, const char *at, char open, char close,
                                   uint64_t *bytes)
{
    const char *end = script->lines.text + script->lines.n, *from = at, *stop;
    uint64_t dim, product = element_bytes(at, end);

    at = memchr(at, open, (size_t)(end - at));
    stop = at != NULL ? memchr(at, close, (size_t)(end - at)) : NULL;
    if (product == 0 || stop == NULL)
        return MPL_REFUSE(script->ctx, "%.200s:%u: no type and dims of a tensor in '%.*s'",
                          script->path, script->lines.number,
                          end - from < 80 ? (int)(end - from) : 80, from);
    for (at++; at < stop; at++) {
        if (*at == ' ' || *at == ',')
            continue;
        if ((at = mpl_digits(at, stop, &dim)) == NULL || !mpl_mul_bytes(product, dim, &product) ||
            product > INT64_MAX)
            return MPL_REFUSE(script->ctx,
                              "%.200s:%u: a dim of a tensor is no number, or too large",
                              script->path, script->lines.number);
        at--;
    }
    *bytes = product;
    return MPL_OK;
}

mpl_status mpl_script_pool(mpl_script *script, const char *name, size_t n, uint64_t bytes)
{
    uint64_t old;

    MPL_PASS(mpl_names_add(script->ctx, &script->pools, name, n, script->n_blocks, &old));
    if (old != UINT64_MAX)
        return MPL_REFUSE(script->ctx, "%.200s:%u: a second '%.*s'", script->path,
                          script->lines.number, (int)n, name);
    MPL_PASS(mpl_reserve(script->ctx, script->block_bytes, script->block_cap,
                         (size_t)script->n_blocks + 1));
    script->block_bytes[script->n_blocks++] = bytes;
    return MPL_OK;
}

mpl_status mpl_script_alias(mpl_script *script, const char *name, size_t n, uint64_t buffer)
{
    uint64_t old;

    if (buffer == UINT64_MAX)
        return MPL_OK;
    MPL_PASS(mpl_names_add(script->ctx, &script->names, name, n, buffer, &old));
    if (old != UINT64_MAX && old != buffer)
        return MPL_REFUSE(script->ctx, "%.200s:%u: a second '%.*s'", script->path,
                          script->lines.number, (int)n, name);
    return MPL_OK;
}

mpl_status mpl_script_buffer(mpl_script *script, const char *name, size_t n, uint32_t block,
                             uint64_t offset, uint64_t bytes)
{
    mpl_import_buffer b = {.bytes = bytes, .offset = offset, .birth = UINT64_MAX, .block = block};
    uint64_t end;

    if (!mpl_add_bytes(offset, bytes, &end) || end > script->block_bytes[block])
        return MPL_REFUSE(script->ctx,
                          "%.200s:%u: '%.*s' ends beyond its pool of %" PRIu64 " bytes",
                          script->path, script->lines.number, n < 80 ? (int)n : 80, name,
                          script->block_bytes[block]);
    if (bytes == 0)
        return MPL_OK;
    MPL_PASS(mpl_script_alias(script, name, n, script->list.n));
    return mpl_import_add(script->ctx, &script->list, &b, name, n);
}

uint64_t mpl_script_first(const mpl_script *script, const char *at, const char *end)
{
    return mpl_names_get(&script->names, at, name_length(at, end));
}

mpl_status mpl_script_tuple(mpl_script *script, const char *name, size_t n, const char *items)
{
    uint64_t old;

    return mpl_names_add(script->ctx, &script->tuples, name, n,
                         (uint64_t)(script->lines.end - items), &old);
}

/* The text of a tuple's items; NULL: no such tuple. */
static const char *items_of(const mpl_script *script, const char *name, size_t n, const char **end)
{
    uint64_t back = n > 0 ? mpl_names_get(&script->tuples, name, n) : UINT64_MAX;
    const char *items;

    if (back == UINT64_MAX)
        return NULL;
    items = script->lines.end - back;
    *end = memchr(items, '\n', back);
    if (*end == NULL)
        *end = script->lines.end;
    return items;
}

uint64_t mpl_script_item(const mpl_script *script, const char *tuple, size_t n, uint64_t k)
{
    const char *end, *at = items_of(script, tuple, n, &end);

    for (; at != NULL && k > 0; k--)
        at = mpl_script_after(at, end, ", ");
    return at != NULL ? mpl_script_first(script, at, end) : UINT64_MAX;
}

static void need_buffer(mpl_script *script, uint64_t b)
{
    mpl_import_buffer *buffer = &script->list.item[b];

    buffer->birth = mpl_min_u64(buffer->birth, script->step);
    buffer->death = script->step + 1;
}

/* inside: in a tuple's items; tuples of tuples have no buffers in the programs that are read. */
static void need_names(mpl_script *script, const char *at, const char *end, bool inside)
{
    while (at < end) {
        size_t n = name_length(at, end);
        uint64_t b = n > 0 ? mpl_names_get(&script->names, at, n) : UINT64_MAX;
        const char *stop = NULL, *items = b == UINT64_MAX ? items_of(script, at, n, &stop) : NULL;

        if (b != UINT64_MAX)
            need_buffer(script, b);
        if (items != NULL && !inside)
            need_names(script, items, stop, true);
        at += n > 0 ? n : 1;
    }
}

void mpl_script_needs(mpl_script *script, const char *at, const char *end)
{
    need_names(script, at, end, false);
}

mpl_status mpl_script_make(mpl_script *script, const mpl_import_in *in, uint32_t align,
                           mpl_import *out)
{
    mpl_status st = MPL_OK;
    uint64_t *base = NULL, top = 0;

    MPL_TRY(mpl_new(script->ctx, base, script->n_blocks));
    for (uint32_t k = 0; k < script->n_blocks; k++)
        if (!mpl_align_bytes(top, align, &base[k]) ||
            !mpl_add_bytes(base[k], script->block_bytes[k], &top) || top > INT64_MAX)
            MPL_FAIL(script->ctx, MPL_EINPUT, "%.200s: the pools pass 2^63 bytes", script->path);
    for (uint32_t b = 0; b < script->list.n; b++) {
        mpl_import_buffer *buffer = &script->list.item[b];

        if (buffer->birth == UINT64_MAX) /* nothing needs it: it is nowhere in the way */
            buffer->birth = script->step + 1 + b, buffer->death = script->step + 2 + b;
        buffer->offset += base[buffer->block];
        buffer->align = align;
        if (script->n_blocks == 1)
            buffer->block = MPL_NONE;
    }
    MPL_TRY(mpl_import_make(script->ctx, in, &script->list, out));
    out->arena_bytes = top;
    out->granule = align;
out:
    mpl_free(script->ctx, base);
    return st;
}

void mpl_script_fini(mpl_script *script)
{
    mpl_import_list_fini(script->ctx, &script->list);
    mpl_free_each(script->ctx, script->names.slot, script->tuples.slot, script->pools.slot,
                  script->block_bytes);
}
