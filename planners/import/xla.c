/* xla.c -- XLA's buffer assignment as --xla_dump_to writes it, with the live ranges of its values.
 *
 * Source   openxla/xla, BufferAllocation::ToString, HloValue::ToShortString,
 *          HloLiveRange::ToString:
 *            allocation 1: size 640, preallocated-temp:
 *             value: <7 dot.3 @0> (size=256,offset=128): f32[8,8]{1,0}
 *          and, after it in the file, or in NAME-live-range.txt beside NAME-buffer-assignment.txt,
 *            BufferLiveRange:
 *              dot.3{}:2-4
 *          Both ends of a range are live: [2, 5) here. Older dumps put an address before "size".
 * Planned  preallocated-temp only. Parameters, constants, outputs and thread-local allocations are
 *          left out. Several such allocations of one colour stand end to end, each a block; colours
 *          are memories that never share, the first is judged first. No allocation at all is a plan
 *          of nothing.
 * Aligned  The dump does not say: 64 bytes on a CPU, 256 on a GPU, less in older versions. Taken is
 *          the largest power of two up to 256 that all offsets keep to.
 * In place XLA lets a value take the place of another that ends where it begins (a loop's state, an
 *          overwritten operand), and does not list where it may. A pair is offered where the dump
 *          has such values at one offset.
 * Named    By the dump, and by the op_names of the HLO beside it: xla_names.c.
 * Aliases  Values of one buffer share one step at most; xla_alias.c makes one of them. */
#include "planners/import/xla_priv.h"

#include "graphs/core/file.h"

enum { MOST_ALIGNED = 256 /* [byte] */, MOST_STEPS = 1 << 22 /* kept as they are */ };

typedef struct reader {
    mpl_ctx *ctx;
    const char *path;
    mpl_names ranges, ids, indices;
    uint64_t (*range)[2]; /* [n_ranges] first and last step */
    size_t n_ranges, range_cap;

    bool planned; /* the current allocation is planned */
    uint64_t size, colour;
    uint32_t block, n_left_out;
    uint64_t left_out_bytes;
    uint32_t n_blocks;
    size_t block_cap;
    struct {
        uint64_t size;
        uint32_t pool;
    } * allocation;                 /* [n_blocks] with values */
    uint64_t top[MPL_IMPORT_POOLS]; /* end of each pool */
    mpl_import_list list;
    size_t mark_cap;
    uint32_t *mark; /* [list.n] of mpl_xla_merge */
} reader;

static bool begins(const mpl_lines *lines, const char *what)
{
    size_t n = strlen(what);

    return lines->n >= n && memcmp(lines->text, what, n) == 0;
}

static bool is_allocation(const mpl_lines *lines)
{
    return begins(lines, "allocation ") && lines->n > 11 && lines->text[11] >= '0' &&
           lines->text[11] <= '9';
}

bool mpl_import_is_xla(const mpl_import_in *in)
{
    mpl_lines lines = mpl_lines_of(in->text, in->size);

    while (mpl_lines_next(&lines))
        if (begins(&lines, "BufferAssignment:") || is_allocation(&lines))
            return true;
    return false;
}

/* ---- live ranges ---- */

/* Splits "name{1}:3-17" into the name, without an empty {}, and the two ends. False: no such. */
static bool split_range(const mpl_lines *lines, size_t *n, uint64_t range[2])
{
    const char *end = lines->text + lines->n, *colon = memrchr(lines->text, ':', lines->n), *at;

    if (colon == NULL || colon == lines->text ||
        (at = mpl_digits(colon + 1, end, &range[0])) == NULL || at == end || *at != '-' ||
        mpl_digits(at + 1, end, &range[1]) != end)
        return false;
    *n = (size_t)(colon - lines->text);
    if (*n > 2 && memcmp(colon - 2, "{}", 2) == 0)
        *n -= 2;
    return true;
}

static mpl_status read_ranges(reader *in, const char *path, const char *text, size_t size)
{
    mpl_lines lines = mpl_lines_of(text, size);
    bool inside = false;

    while (mpl_lines_next(&lines)) {
        uint64_t range[2], old;
        size_t n;

        if (begins(&lines, "BufferLiveRange:")) {
            inside = true;
            continue;
        }
        if (!inside || lines.n == 0)
            continue;
        if (!split_range(&lines, &n, range)) {
            if (begins(&lines, "Live ranges at"))
                break;
            return MPL_REFUSE(in->ctx, "%.200s:%u: no live range; it should be 'name{}:first-last'",
                              path, lines.number);
        }
        if (range[1] < range[0])
            return MPL_REFUSE(in->ctx, "%.200s:%u: the range ends before it begins", path,
                              lines.number);
        MPL_PASS(mpl_reserve(in->ctx, in->range, in->range_cap, in->n_ranges + 1));
        MPL_PASS(mpl_names_add(in->ctx, &in->ranges, lines.text, n, in->n_ranges, &old));
        if (old != UINT64_MAX)
            return MPL_REFUSE(in->ctx, "%.200s:%u: a second range of '%.*s'", path, lines.number,
                              n < 80 ? (int)n : 80, lines.text);
        memcpy(in->range[in->n_ranges++], range, sizeof range);
    }
    if (!inside)
        return MPL_REFUSE(in->ctx, "%.200s: no 'BufferLiveRange:' in it", path);
    return MPL_OK;
}

/* Reads "X-live-range.txt" beside "X-buffer-assignment.txt"; range names point into its text. */
static mpl_status read_beside(reader *in, char **text)
{
    static const char from[] = "-buffer-assignment.txt", to[] = "-live-range.txt";
    mpl_status st = MPL_OK;
    size_t n = strlen(in->path), cut = sizeof from - 1, size;
    char *path = NULL;

    if (n < cut || strcmp(in->path + n - cut, from) != 0)
        MPL_FAIL(in->ctx, MPL_EINPUT,
                 "%.200s: no live ranges; append the text of XLA's *-live-range.txt, or name a "
                 "*-buffer-assignment.txt that has it beside it",
                 in->path);
    MPL_TRY(mpl_new(in->ctx, path, n + 1));
    memcpy(path, in->path, n - cut);
    memcpy(path + n - cut, to, sizeof to);
    MPL_TRY(mpl_file_read(in->ctx, path, text, &size));
    MPL_TRY(read_ranges(in, path, *text, size));
out:
    mpl_free(in->ctx, path);
    return st;
}

/* ---- allocations ---- */

static mpl_status begin_allocation(reader *in, const mpl_lines *lines)
{
    MPL_PASS(mpl_lines_value(in->ctx, in->path, lines, "size ", &in->size));
    in->colour = 0;
    if (mpl_lines_find(lines, ", color ") != NULL)
        MPL_PASS(mpl_lines_value(in->ctx, in->path, lines, ", color ", &in->colour));
    if (lines->text[lines->n - 1] != ':')
        return MPL_REFUSE(in->ctx,
                          "%.200s:%u: the allocation's line has no ':' at its end; it was cut",
                          in->path, lines->number);
    in->planned = mpl_lines_find(lines, ", preallocated-temp") != NULL;
    in->block = MPL_NONE;
    in->n_left_out += !in->planned;
    if (!mpl_add_bytes(in->left_out_bytes, in->planned ? 0 : in->size, &in->left_out_bytes) ||
        in->left_out_bytes > INT64_MAX)
        return MPL_REFUSE(in->ctx, "%.200s:%u: the allocations pass 2^63 bytes", in->path,
                          lines->number);
    return MPL_OK;
}

/* Splits "value: <7 dot.3{1} (phi) @0>": takes the two words after the '<'. */
static mpl_status split_value(reader *in, const mpl_lines *lines, const char **id, size_t *id_n,
                              const char **name, size_t *name_n)
{
    const char *end = lines->text + lines->n, *at = mpl_lines_find(lines, "value: <"), *close;

    close = at != NULL ? memchr(at, '>', (size_t)(end - at)) : NULL;
    *name = close != NULL ? memchr(at, ' ', (size_t)(close - at)) : NULL;
    if (*name == NULL)
        return MPL_REFUSE(in->ctx,
                          "%.200s:%u: no value; it should be 'value: <id name @color> (size=.., "
                          "offset=..)'",
                          in->path, lines->number);
    *id = at, *id_n = (size_t)(*name - at);
    ++*name;
    for (*name_n = 0; *name + *name_n < close && (*name)[*name_n] != ' ';)
        ++*name_n;
    if (*name_n > 2 && memcmp(*name + *name_n - 2, "{}", 2) == 0)
        *name_n -= 2;
    return MPL_OK;
}

static mpl_status begin_block(reader *in)
{
    MPL_PASS(mpl_reserve(in->ctx, in->allocation, in->block_cap, (size_t)in->n_blocks + 1));
    in->allocation[in->n_blocks].size = in->size;
    MPL_PASS(mpl_import_pool(in->ctx, in->path, &in->list, in->colour,
                             &in->allocation[in->n_blocks].pool));
    in->block = in->n_blocks++;
    return MPL_OK;
}

/* Marks the next value: "while.6{1} (phi)" has the index "{1}", "while.6{} (phi)" none. */
static mpl_status mark_value(reader *in, const mpl_lines *lines, const char *name, size_t n)
{
    const char *index = memchr(name, '{', n);
    size_t index_n = index != NULL ? (size_t)(name + n - index) : 0;
    uint64_t old;

    MPL_PASS(mpl_reserve(in->ctx, in->mark, in->mark_cap, (size_t)in->list.n + 1));
    in->mark[in->list.n] = 0;
    if (mpl_lines_find(lines, " (phi) ") == NULL)
        return MPL_OK;
    MPL_PASS(mpl_names_add(in->ctx, &in->indices, index != NULL ? index : "", index_n,
                           in->indices.n, &old));
    in->mark[in->list.n] = 1 + (uint32_t)(old != UINT64_MAX ? old : in->indices.n - 1);
    return MPL_OK;
}

static mpl_status read_value(reader *in, const mpl_lines *lines)
{
    mpl_import_buffer b = {0};
    const char *id = NULL, *name = NULL;
    size_t id_n = 0, name_n = 0;
    uint64_t end, old, k;

    MPL_PASS(split_value(in, lines, &id, &id_n, &name, &name_n));
    MPL_PASS(mpl_lines_value(in->ctx, in->path, lines, "(size=", &b.bytes));
    MPL_PASS(mpl_lines_value(in->ctx, in->path, lines, ",offset=", &b.offset));
    if (!mpl_add_bytes(b.offset, b.bytes, &end) || end > in->size)
        return MPL_REFUSE(in->ctx,
                          "%.200s:%u: '%.*s' ends beyond its allocation of %" PRIu64 " bytes",
                          in->path, lines->number, name_n < 80 ? (int)name_n : 80, name, in->size);
    if (!in->planned || b.bytes == 0)
        return MPL_OK;
    MPL_PASS(mpl_names_add(in->ctx, &in->ids, id, id_n, lines->number, &old));
    if (old != UINT64_MAX)
        return MPL_REFUSE(in->ctx, "%.200s:%u: value %.*s stands in line %" PRIu64 " already",
                          in->path, lines->number, id_n < 20 ? (int)id_n : 20, id, old);
    if ((k = mpl_names_get(&in->ranges, name, name_n)) == UINT64_MAX)
        return MPL_REFUSE(in->ctx, "%.200s:%u: no live range of '%.*s'", in->path, lines->number,
                          name_n < 80 ? (int)name_n : 80, name);
    b.birth = in->range[k][0];
    b.death = in->range[k][1] + 1;
    if (b.death > MOST_STEPS)
        return MPL_REFUSE(in->ctx, "%.200s:%u: '%.*s' lives beyond %d steps", in->path,
                          lines->number, name_n < 80 ? (int)name_n : 80, name, MOST_STEPS);
    if (in->block == MPL_NONE)
        MPL_PASS(begin_block(in));
    b.block = in->block;
    b.pool = in->allocation[in->block].pool;
    MPL_PASS(mark_value(in, lines, name, name_n));
    return mpl_import_add(in->ctx, &in->list, &b, name, name_n);
}

static mpl_status read_allocations(reader *r, const mpl_import_in *in)
{
    mpl_lines lines = mpl_lines_of(in->text, in->size);
    bool any = false;

    while (mpl_lines_next(&lines)) {
        if (is_allocation(&lines)) {
            any = true;
            r->list.may_be_empty = false;
            MPL_PASS(begin_allocation(r, &lines));
        } else if (begins(&lines, "value:") && any) {
            r->list.may_be_empty = true; /* each allocation has a value, the last one, too */
            MPL_PASS(read_value(r, &lines));
        } else if (begins(&lines, "HloLiveRange") || begins(&lines, "Used values")) {
            break;
        }
    }
    if (r->list.n == 0 && !r->list.may_be_empty)
        return MPL_REFUSE(
            r->ctx,
            "%.200s: no value is in an allocation that is 'preallocated-temp', and the last "
            "allocation has no value: the list was cut",
            in->path);
    return MPL_OK;
}

/* Puts the allocations of each pool end to end, each at the alignment that its offsets keep to. */
static mpl_status place_allocations(reader *in)
{
    mpl_status st = MPL_OK;
    uint32_t align = mpl_import_alignment(&in->list, MOST_ALIGNED);
    uint64_t *base = NULL;

    MPL_TRY(mpl_new(in->ctx, base, in->n_blocks));
    for (uint32_t k = 0; k < in->n_blocks; k++) {
        uint64_t *top = &in->top[in->allocation[k].pool];

        if (!mpl_align_bytes(*top, align, &base[k]) ||
            !mpl_add_bytes(base[k], in->allocation[k].size, top) || *top > INT64_MAX)
            MPL_FAIL(in->ctx, MPL_EINPUT, "%.200s: the allocations pass 2^63 bytes", in->path);
    }
    for (uint32_t b = 0; b < in->list.n; b++) {
        mpl_import_buffer *buffer = &in->list.item[b];

        buffer->offset += base[buffer->block];
        buffer->align = align;
        if (in->n_blocks == in->list.n_pools)
            buffer->block = MPL_NONE;
    }
out:
    mpl_free(in->ctx, base);
    return st;
}

/* ---- the whole ---- */

mpl_status mpl_import_read_xla(mpl_ctx *ctx, const mpl_import_in *in, mpl_import *out)
{
    mpl_status st = MPL_OK;
    reader r = {.ctx = ctx, .path = in->path};
    mpl_xla_gaps gaps = {0};
    char *beside = NULL;
    uint32_t n_named;
    int n = 0;

    MPL_TRY(mpl_text_has(in->text, in->size, "BufferLiveRange:")
                ? read_ranges(&r, in->path, in->text, in->size)
                : read_beside(&r, &beside));
    MPL_TRY(read_allocations(&r, in));
    MPL_TRY(place_allocations(&r));
    MPL_TRY(mpl_xla_merge(ctx, &r.list, r.mark, &gaps));
    MPL_TRY(mpl_xla_names(ctx, in->path, &r.list, &n_named));
    MPL_TRY(mpl_import_make(ctx, in, &r.list, out));
    MPL_TRY(mpl_xla_offer_pairs(ctx, out->problem, out->plan, &gaps));
    out->arena_bytes = r.top[0];
    if (r.n_left_out > 0)
        n = snprintf(out->note, sizeof out->note,
                     "%u allocations of %" PRIu64
                     " bytes are parameters, constants, outputs or thread-local: not planned%s",
                     r.n_left_out, r.left_out_bytes, r.list.n > 0 ? "; " : "");
    if (r.list.n > 0)
        out->granule = r.list.item[0].align;
    if (r.list.n > 0)
        snprintf(out->note + n, sizeof out->note - (size_t)n,
                 "alignment %u, as all offsets keep to it%s", r.list.item[0].align,
                 n_named > 0 ? "; operations named by the HLO beside" : "");
out:
    mpl_free_each(ctx, beside, r.ranges.slot, r.ids.slot, r.indices.slot, r.range, r.allocation,
                  r.mark, gaps.item);
    mpl_import_list_fini(ctx, &r.list);
    return st;
}
