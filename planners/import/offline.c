/* offline.c -- the offline plan of TFLite Micro: only offsets, for the tensors of a given GRAPH.
 *
 * Source   tflite-micro, docs/memory_management.md: the buffer of the metadata
 *          "OfflineMemoryAllocation" is a list of 32-bit integers: format version, subgraph, n,
 *          then n offsets, -1 for "at run time". Version 0 or 1, subgraph 0 here.
 * Accepted the buffer's bytes (little endian); the same numbers as text, with or without commas and
 *          brackets; or {"OfflineMemoryAllocation": [..]}.
 * Tensors  If all buffers of the given list are named by whole numbers, these are tensor numbers,
 *          and every tensor with an offset must be in the list. Otherwise tensor i is buffer i. */
#include "planners/import/base/import_priv.h"

enum { HEAD = 3 }; /* version, subgraph, n */
static const char key[] = "\"OfflineMemoryAllocation\"";

static uint32_t word(const char *text, size_t i)
{
    const unsigned char *at = (const unsigned char *)text + 4 * i;

    return at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 | (uint32_t)at[3] << 24;
}

static bool is_binary(const mpl_import_in *in)
{
    return in->size >= 4 * HEAD && word(in->text, 0) <= 1 &&
           memchr(in->text, '\0', 4 * HEAD) != NULL;
}

/* Whether the text holds only numbers and separators. */
static bool is_numbers(const mpl_import_in *in)
{
    return strspn(in->text, "0123456789-+,;[](){} \t\r\n") == in->size;
}

bool mpl_import_is_offline(const mpl_import_in *in)
{
    return is_binary(in) || is_numbers(in) ||
           (mpl_text_first(in->text, in->size) == '{' && in->size < (UINT64_C(1) << 26) &&
            mpl_text_has(in->text, in->size < 100 ? in->size : 100, key));
}

typedef struct numbers {
    size_t n, cap;
    int64_t *item;
} numbers;

static mpl_status read_binary(mpl_ctx *ctx, const mpl_import_in *in, numbers *list)
{
    if (in->size % 4 != 0)
        return MPL_REFUSE(ctx,
                          "%.200s: %zu bytes are no whole number of 32-bit integers; it was cut",
                          in->path, in->size);
    list->n = in->size / 4;
    MPL_PASS(mpl_new(ctx, list->item, list->n));
    for (size_t i = 0; i < list->n; i++)
        list->item[i] = (int32_t)word(in->text, i);
    return MPL_OK;
}

static mpl_status read_text(mpl_ctx *ctx, const mpl_import_in *in, numbers *list)
{
    const char *named = memmem(in->text, in->size, key, sizeof key - 1), *end = in->text + in->size;
    const char *at = named != NULL ? named + sizeof key - 1 : in->text;

    while (at < end) {
        bool negative = *at == '-';
        uint64_t value;

        if (!negative && (*at < '0' || *at > '9')) {
            if (strchr(":,;[](){}+ \t\r\n", *at) == NULL)
                return MPL_REFUSE(ctx, "%.200s: something other than a number after %zu numbers",
                                  in->path, list->n);
            at++;
            continue;
        }
        if ((at = mpl_digits(at + negative, end, &value)) == NULL || value > INT32_MAX)
            return MPL_REFUSE(ctx, "%.200s: number %zu is no 32-bit integer", in->path,
                              list->n + 1);
        MPL_PASS(mpl_reserve(ctx, list->item, list->cap, list->n + 1));
        list->item[list->n++] = negative ? -(int64_t)value : (int64_t)value;
    }
    if (named != NULL && memrchr(named, '}', (size_t)(end - named)) == NULL)
        return MPL_REFUSE(ctx, "%.200s: the object has no end; it was cut", in->path);
    return MPL_OK;
}

static mpl_status check(mpl_ctx *ctx, const mpl_import_in *in, const numbers *list)
{
    if (list->n < HEAD || list->item[0] < 0 || list->item[0] > 1 || list->item[1] != 0)
        return MPL_REFUSE(
            ctx,
            "%.200s: it should begin with the version (0 or 1), the subgraph (0) and the "
            "number of offsets",
            in->path);
    if (list->item[2] < 0 || (uint64_t)list->item[2] != list->n - HEAD)
        return MPL_REFUSE(ctx, "%.200s: %" PRId64 " offsets are announced, and %zu are there",
                          in->path, list->item[2], list->n - HEAD);
    for (size_t i = HEAD; i < list->n; i++)
        if (list->item[i] < -1)
            return MPL_REFUSE(
                ctx, "%.200s: the offset of tensor %zu is %" PRId64 "; -1 or more is possible",
                in->path, i - HEAD, list->item[i]);
    if (in->beside == NULL)
        return MPL_REFUSE(
            ctx,
            "%.200s: offsets alone; name the list of the tensors (id,lower,upper,size) as GRAPH",
            in->path);
    return MPL_OK;
}

/* Parses a buffer's whole name as a number; false: it is no number. */
static bool number_of(const mpl_problem *p, mpl_buffer b, uint64_t *number)
{
    const char *name = p->buffer_name != NULL ? p->buffer_name[b] : NULL, *end;

    return name != NULL && (end = mpl_digits(name, name + strlen(name), number)) != NULL &&
           *end == '\0';
}

static mpl_status place(mpl_ctx *ctx, const mpl_import_in *in, const numbers *list, mpl_plan *plan)
{
    mpl_status st = MPL_OK;
    const mpl_problem *p = in->beside;
    size_t n = list->n - HEAD;
    bool numbered = true;
    uint8_t *seen = NULL;
    uint64_t tensor = 0;

    MPL_TRY(mpl_new(ctx, seen, n));
    for (mpl_buffer b = 0; b < p->n; b++)
        numbered = numbered && number_of(p, b, &tensor);
    if (!numbered && n != p->n)
        MPL_FAIL(ctx, MPL_EINPUT, "%.200s: %zu offsets, and %.200s has %u buffers", in->path, n,
                 p->name, p->n);
    for (mpl_buffer b = 0; b < p->n; b++) {
        tensor = b;
        if (numbered)
            number_of(p, b, &tensor);
        if (tensor >= n)
            MPL_FAIL(ctx, MPL_EINPUT,
                     "%.200s: buffer %" PRIu64 " of %.200s is beyond the %zu offsets", in->path,
                     tensor, p->name, n);
        if (list->item[HEAD + tensor] < 0)
            MPL_FAIL(ctx, MPL_EINPUT,
                     "%.200s: tensor %" PRIu64 " has -1, a place at run time: nothing to check",
                     in->path, tensor);
        plan->offset[b] = (uint64_t)list->item[HEAD + tensor];
        seen[tensor] = 1;
    }
    for (size_t i = 0; i < n; i++)
        if (!seen[i] && list->item[HEAD + i] >= 0)
            MPL_FAIL(ctx, MPL_EINPUT,
                     "%.200s: tensor %zu has an offset, and %.200s has no buffer %zu", in->path, i,
                     p->name, i);
out:
    mpl_free(ctx, seen);
    return st;
}

mpl_status mpl_import_read_offline(mpl_ctx *ctx, const mpl_import_in *in, mpl_import *out)
{
    mpl_status st = MPL_OK;
    numbers list = {0};

    MPL_TRY(is_binary(in) ? read_binary(ctx, in, &list) : read_text(ctx, in, &list));
    MPL_TRY(check(ctx, in, &list));
    MPL_TRY(mpl_plan_new(ctx, in->beside, &out->plan));
    MPL_TRY(place(ctx, in, &list, out->plan));
    out->plan->claim = MPL_FEASIBLE;
out:
    mpl_free(ctx, list.item);
    return st;
}
