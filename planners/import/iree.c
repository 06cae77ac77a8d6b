/* iree.c -- slices of IREE's transient memory, before and after its pass LayoutSlices.
 *
 * Source   iree-org/iree, compiler/src/iree/compiler/Dialect/Stream: StreamOps.td
 *          (stream.resource.pack), Transforms/LayoutSlices.cpp; printed by
 *          iree-compile --mlir-print-ir-before=iree-stream-layout-slices (and -after=)
 *          --mlir-disable-threading:
 *            %3:4 = stream.resource.pack on(..) slices({
 *              [0, 1] = %c131072,
 *          Both ends of an interval are live. %3#0 is the total, %3#k the offset of slice k.
 * Places   The dump after the pass has the same operations with numbers: the n-th operand behind
 *          '[' or '{' there is the n-th before it.
 * Arena    Packs are of executions that follow each other: each begins when the one before has
 *          ended, so that the arena is the largest of them.
 * Aligned  The largest power of two up to 64 that all offsets keep to.
 * Limits   A slice whose offset no operand tells by itself is left out, and counted. Sizes are
 *          numbers. */
#include "planners/import/base/import_priv.h"

enum { MOST_ALIGNED = 64 };

typedef struct word {
    const char *text;
    size_t n;
} word;

typedef struct words {
    size_t n, cap;
    word *item;
} words;

typedef struct pack {
    uint32_t first, n; /* its slices in the list */
} pack;

typedef struct reader {
    mpl_ctx *ctx;
    const char *path;
    uint64_t step; /* from which the next pack's intervals count */
    mpl_import_list list;
    mpl_names packs; /* of the current function: "%3" */
    size_t n_packs, pack_cap;
    pack *pack;
    uint64_t arena_bytes;
    uint32_t n_lost;
} reader;

static const char before[] = "IR Dump Before LayoutSlices", after[] = "IR Dump After LayoutSlices";

bool mpl_import_is_iree(const mpl_import_in *in)
{
    return mpl_text_has(in->text, in->size, before);
}

static bool is_name(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '%' || c == '#';
}

/* "%c64 = arith.constant 64 : index" */
static mpl_status read_constant(reader *in, const mpl_lines *line, mpl_names *constants)
{
    const char *at = mpl_lines_find(line, " = arith.constant "), *end = line->text + line->n;
    uint64_t value, old;
    size_t n = 0;

    if (at == NULL || mpl_digits(at, end, &value) == NULL)
        return MPL_OK;
    while (n < line->n && is_name(line->text[n]))
        n++;
    return mpl_names_add(in->ctx, constants, line->text, n, value, &old);
}

/* Operands behind '[' or '{'. */
static mpl_status read_operands(reader *in, const mpl_lines *line, words *operands)
{
    const char *end = line->text + line->n;

    for (const char *at = line->text; at + 1 < end; at++) {
        size_t n = 0;

        if ((*at != '[' && *at != '{') || at[1] != '%')
            continue;
        while (at + 1 + n < end && is_name(at[1 + n]))
            n++;
        MPL_PASS(mpl_reserve(in->ctx, operands->item, operands->cap, operands->n + 1));
        operands->item[operands->n++] = (word){at + 1, n};
    }
    return MPL_OK;
}

/* "[0, 1] = %c131072," */
static mpl_status read_slice(reader *in, const mpl_lines *line, const mpl_names *constants)
{
    mpl_import_buffer b = {.offset = UINT64_MAX, .block = MPL_NONE};
    const char *end = line->text + line->n, *at = line->text, *size = mpl_lines_find(line, "] = ");
    pack *p = &in->pack[in->n_packs - 1];
    uint64_t first, last;
    size_t n = 0;
    char name[48];

    if (size == NULL || *at != '[' || (at = mpl_digits(at + 1, end, &first)) == NULL ||
        end - at < 3 || mpl_digits(at + 2, end, &last) == NULL || last < first || last > UINT32_MAX)
        return MPL_REFUSE(in->ctx, "%.200s:%u: no slice; it should be '[first, last] = %%size'",
                          in->path, line->number);
    while (size + n < end && is_name(size[n]))
        n++;
    b.bytes = mpl_names_get(constants, size, n);
    if (b.bytes == UINT64_MAX)
        return MPL_REFUSE(in->ctx, "%.200s:%u: the size '%.*s' is no number", in->path,
                          line->number, n < 40 ? (int)n : 40, size);
    b.birth = in->step + first;
    b.death = in->step + last + 1;
    p->n++;
    return mpl_import_add(in->ctx, &in->list, &b, name,
                          (size_t)snprintf(name, sizeof name, "%zu.%u", in->n_packs - 1, p->n));
}

/* "%3:4 = stream.resource.pack on(..) slices({" */
static mpl_status begin_pack(reader *in, const mpl_lines *line)
{
    const char *colon = memchr(line->text, ':', line->n);
    uint64_t old;

    if (colon == NULL)
        return MPL_REFUSE(in->ctx, "%.200s:%u: the pack has no results", in->path, line->number);
    for (uint32_t b = 0; b < in->list.n; b++)
        in->step = mpl_max_u64(in->step, in->list.item[b].death);
    MPL_PASS(mpl_reserve(in->ctx, in->pack, in->pack_cap, in->n_packs + 1));
    in->pack[in->n_packs] = (pack){.first = in->list.n};
    return mpl_names_add(in->ctx, &in->packs, line->text, (size_t)(colon - line->text),
                         in->n_packs++, &old);
}

/* Reads a function up to the next dump. */
static mpl_status read_function(reader *in, mpl_lines *lines, bool packed, mpl_names *constants,
                                words *operands)
{
    bool inside = false;

    while (mpl_lines_next(lines)) {
        MPL_PASS(read_constant(in, lines, constants));
        MPL_PASS(read_operands(in, lines, operands));
        if (!packed && mpl_lines_find(lines, " = stream.resource.pack ") != NULL) {
            inside = true;
            MPL_PASS(begin_pack(in, lines));
        } else if (inside && lines->n > 0 && lines->text[0] == '}') {
            inside = false;
        } else if (inside) {
            MPL_PASS(read_slice(in, lines, constants));
        }
        if (lines->at < lines->end && lines->end - lines->at > 2 &&
            memcmp(lines->at, "// ", 3) == 0)
            break;
    }
    return MPL_OK;
}

/* Takes what the operand after the pass says of the one before it: "%3#1" is "%c64". */
static mpl_status match(reader *in, word was, word is, const mpl_names *constants)
{
    const char *mark = memchr(was.text, '#', was.n);
    uint64_t p, k, value = mpl_names_get(constants, is.text, is.n);
    pack *found;

    if (mark == NULL || mpl_digits(mark + 1, was.text + was.n, &k) == NULL ||
        (p = mpl_names_get(&in->packs, was.text, (size_t)(mark - was.text))) == UINT64_MAX)
        return MPL_OK;
    found = &in->pack[p];
    if (value == UINT64_MAX || k > found->n)
        return MPL_REFUSE(in->ctx, "%.200s: '%.*s' is no number after the pass", in->path,
                          was.n < 40 ? (int)was.n : 40, was.text);
    if (k == 0)
        in->arena_bytes = mpl_max_u64(in->arena_bytes, value);
    else
        in->list.item[found->first + k - 1].offset = value;
    return MPL_OK;
}

static mpl_status read_pair(reader *in, mpl_lines *lines)
{
    mpl_status st = MPL_OK;
    mpl_names first = {0}, second = {0};
    words was = {0}, is = {0};
    size_t n_before = in->n_packs;

    MPL_TRY(read_function(in, lines, false, &first, &was));
    if (in->n_packs == n_before)
        goto out;
    if (!mpl_lines_next(lines) || mpl_lines_find(lines, after) == NULL)
        MPL_FAIL(in->ctx, MPL_EINPUT, "%.200s:%u: no '%s' follows; print before and after the pass",
                 in->path, lines->number, after);
    MPL_TRY(read_function(in, lines, true, &second, &is));
    if (was.n != is.n)
        MPL_FAIL(in->ctx, MPL_EINPUT,
                 "%.200s:%u: %zu operands before the pass and %zu after it; it was cut", in->path,
                 lines->number, was.n, is.n);
    for (size_t i = 0; i < was.n; i++)
        MPL_TRY(match(in, was.item[i], is.item[i], &second));
out:
    mpl_free_each(in->ctx, first.slot, second.slot, was.item, is.item, in->packs.slot);
    memset(&in->packs, 0, sizeof in->packs);
    return st;
}

/* Leaves out slices without an offset, and those of no bytes. */
static void finish_list(reader *in)
{
    uint32_t n = 0, align;

    for (uint32_t b = 0; b < in->list.n; b++) {
        mpl_import_buffer *buffer = &in->list.item[b];

        if (buffer->offset != UINT64_MAX && buffer->bytes > 0) {
            in->list.item[n++] = *buffer;
            continue;
        }
        in->n_lost += buffer->bytes > 0;
        mpl_free(in->ctx, buffer->name);
    }
    in->list.n = n;
    align = mpl_import_alignment(&in->list, MOST_ALIGNED);
    for (uint32_t b = 0; b < n; b++)
        in->list.item[b].align = align;
}

mpl_status mpl_import_read_iree(mpl_ctx *ctx, const mpl_import_in *in, mpl_import *out)
{
    mpl_status st = MPL_OK;
    reader r = {.ctx = ctx, .path = in->path};
    mpl_lines lines = mpl_lines_of(in->text, in->size);

    while (mpl_lines_next(&lines))
        if (mpl_lines_find(&lines, before) != NULL)
            MPL_TRY(read_pair(&r, &lines));
    finish_list(&r);
    r.list.may_be_empty = r.n_packs == 0;
    MPL_TRY(mpl_import_make(ctx, in, &r.list, out));
    out->arena_bytes = r.arena_bytes;
    out->granule = r.list.n > 0 ? r.list.item[0].align : 0;
    snprintf(out->note, sizeof out->note,
             "%zu packs, one after the other; %u slices whose offset is not told are left out",
             r.n_packs, r.n_lost);
out:
    mpl_free_each(ctx, r.pack, r.packs.slot);
    mpl_import_list_fini(ctx, &r.list);
    return st;
}
