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
 *          left out. Several such allocations stand end to end, each a block.
 * In place XLA lets a value take the place of another that ends where it begins (a loop's state, an
 *          overwritten operand), and does not list where it may. A pair is offered where the dump
 *          has such values at one offset.
 * Aliases  Values of one buffer are cut so that they share one step at most. A value cut to a
 *          single step is dropped if another of the same place and size begins at that step. */
#include "planners/import/import_priv.h"

#include <stdlib.h>

#include "graphs/core/file.h"

typedef struct reader {
    mpl_ctx *ctx;
    const char *path;
    mpl_names ranges, ids;
    uint64_t (*range)[2]; /* [n_ranges] first and last step */
    size_t n_ranges, range_cap;

    bool planned; /* the current allocation is planned */
    uint64_t size, base;
    uint32_t block, n_blocks, n_left_out;
    uint64_t left_out_bytes, arena_bytes;
    mpl_import_list list;
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

static mpl_status read_ranges(reader *r, const char *path, const char *text, size_t size)
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
            return MPL_REFUSE(r->ctx, "%.200s:%u: no live range; it should be 'name{}:first-last'",
                              path, lines.number);
        }
        if (range[1] < range[0])
            return MPL_REFUSE(r->ctx, "%.200s:%u: the range ends before it begins", path,
                              lines.number);
        MPL_PASS(mpl_reserve(r->ctx, r->range, r->range_cap, r->n_ranges + 1));
        MPL_PASS(mpl_names_add(r->ctx, &r->ranges, lines.text, n, r->n_ranges, &old));
        if (old != UINT64_MAX)
            return MPL_REFUSE(r->ctx, "%.200s:%u: a second range of '%.*s'", path, lines.number,
                              n < 80 ? (int)n : 80, lines.text);
        memcpy(r->range[r->n_ranges++], range, sizeof range);
    }
    if (!inside)
        return MPL_REFUSE(r->ctx, "%.200s: no 'BufferLiveRange:' in it", path);
    return MPL_OK;
}

/* Reads "X-live-range.txt" beside "X-buffer-assignment.txt"; range names point into its text. */
static mpl_status read_beside(reader *r, char **text)
{
    static const char from[] = "-buffer-assignment.txt", to[] = "-live-range.txt";
    mpl_status st = MPL_OK;
    size_t n = strlen(r->path), cut = sizeof from - 1, size;
    char *path = NULL;

    if (n < cut || strcmp(r->path + n - cut, from) != 0)
        MPL_FAIL(r->ctx, MPL_EINPUT,
                 "%.200s: no live ranges; append the text of XLA's *-live-range.txt, or name a "
                 "*-buffer-assignment.txt that has it beside it",
                 r->path);
    MPL_TRY(mpl_new(r->ctx, path, n + 1));
    memcpy(path, r->path, n - cut);
    memcpy(path + n - cut, to, sizeof to);
    MPL_TRY(mpl_file_read(r->ctx, path, text, &size));
    MPL_TRY(read_ranges(r, path, *text, size));
out:
    mpl_free(r->ctx, path);
    return st;
}

/* ---- allocations ---- */

static mpl_status begin_allocation(reader *r, const mpl_lines *lines)
{
    uint64_t *sum;

    MPL_PASS(mpl_lines_value(r->ctx, r->path, lines, "size ", &r->size));
    if (lines->text[lines->n - 1] != ':')
        return MPL_REFUSE(r->ctx,
                          "%.200s:%u: the allocation's line has no ':' at its end; it was cut",
                          r->path, lines->number);
    r->planned = mpl_lines_find(lines, ", preallocated-temp") != NULL;
    r->base = r->arena_bytes;
    r->block = MPL_NONE;
    r->n_left_out += !r->planned;
    sum = r->planned ? &r->arena_bytes : &r->left_out_bytes;
    if (!mpl_add_bytes(*sum, r->size, sum) || *sum > INT64_MAX)
        return MPL_REFUSE(r->ctx, "%.200s:%u: the allocations pass 2^63 bytes", r->path,
                          lines->number);
    return MPL_OK;
}

/* Splits "value: <7 dot.3{1} (phi) @0>": takes the two words after the '<'. */
static mpl_status split_value(reader *r, const mpl_lines *lines, const char **id, size_t *id_n,
                              const char **name, size_t *name_n)
{
    const char *end = lines->text + lines->n, *at = mpl_lines_find(lines, "value: <"), *close;

    close = at != NULL ? memchr(at, '>', (size_t)(end - at)) : NULL;
    *name = close != NULL ? memchr(at, ' ', (size_t)(close - at)) : NULL;
    if (*name == NULL)
        return MPL_REFUSE(r->ctx,
                          "%.200s:%u: no value; it should be 'value: <id name @color> (size=.., "
                          "offset=..)'",
                          r->path, lines->number);
    *id = at, *id_n = (size_t)(*name - at);
    ++*name;
    for (*name_n = 0; *name + *name_n < close && (*name)[*name_n] != ' ';)
        ++*name_n;
    if (*name_n > 2 && memcmp(*name + *name_n - 2, "{}", 2) == 0)
        *name_n -= 2;
    return MPL_OK;
}

static mpl_status read_value(reader *r, const mpl_lines *lines)
{
    mpl_import_buffer b = {0};
    const char *id = NULL, *name = NULL;
    size_t id_n = 0, name_n = 0;
    uint64_t end, old, k;

    MPL_PASS(split_value(r, lines, &id, &id_n, &name, &name_n));
    MPL_PASS(mpl_lines_value(r->ctx, r->path, lines, "(size=", &b.bytes));
    MPL_PASS(mpl_lines_value(r->ctx, r->path, lines, ",offset=", &b.offset));
    if (!mpl_add_bytes(b.offset, b.bytes, &end) || end > r->size)
        return MPL_REFUSE(r->ctx,
                          "%.200s:%u: '%.*s' ends beyond its allocation of %" PRIu64 " bytes",
                          r->path, lines->number, name_n < 80 ? (int)name_n : 80, name, r->size);
    if (!r->planned || b.bytes == 0)
        return MPL_OK;
    MPL_PASS(mpl_names_add(r->ctx, &r->ids, id, id_n, lines->number, &old));
    if (old != UINT64_MAX)
        return MPL_REFUSE(r->ctx, "%.200s:%u: value %.*s stands in line %" PRIu64 " already",
                          r->path, lines->number, id_n < 20 ? (int)id_n : 20, id, old);
    if ((k = mpl_names_get(&r->ranges, name, name_n)) == UINT64_MAX)
        return MPL_REFUSE(r->ctx, "%.200s:%u: no live range of '%.*s'", r->path, lines->number,
                          name_n < 80 ? (int)name_n : 80, name);
    b.birth = r->range[k][0];
    b.death = r->range[k][1] + 1;
    b.offset += r->base;
    if (r->block == MPL_NONE)
        r->block = r->n_blocks++;
    b.block = r->block;
    return mpl_import_add(r->ctx, &r->list, &b, name, name_n);
}

static mpl_status read_allocations(reader *r, const mpl_import_in *in)
{
    mpl_lines lines = mpl_lines_of(in->text, in->size);
    bool any = false;

    while (mpl_lines_next(&lines)) {
        if (is_allocation(&lines)) {
            any = true;
            MPL_PASS(begin_allocation(r, &lines));
        } else if (begins(&lines, "value:") && any) {
            MPL_PASS(read_value(r, &lines));
        } else if (begins(&lines, "HloLiveRange") || begins(&lines, "Used values")) {
            break;
        }
    }
    if (r->list.n == 0)
        return MPL_REFUSE(
            r->ctx,
            "%.200s: no allocation is 'preallocated-temp' and has values: nothing was planned",
            in->path);
    for (uint32_t b = 0; r->n_blocks == 1 && b < r->list.n; b++)
        r->list.item[b].block = MPL_NONE;
    return MPL_OK;
}

/* ---- aliases ---- */

typedef struct place {
    uint64_t offset, bytes, birth, death;
    uint32_t i; /* index in the list */
} place;

/* Sorts equal places and first steps by the longest life first. */
MPL_ORDER_BY(by_start, place,
             MPL_RISING(offset) MPL_RISING(bytes) MPL_RISING(birth) MPL_FALLING(death)
                 MPL_RISING(i))

static mpl_status drop_aliases(reader *r)
{
    mpl_status st = MPL_OK;
    mpl_import_list *list = &r->list;
    place *places = NULL;
    uint32_t n = 0;

    MPL_TRY(mpl_new(r->ctx, places, list->n));
    for (uint32_t i = 0; i < list->n; i++)
        places[i] = (place){list->item[i].offset, list->item[i].bytes, list->item[i].birth,
                            list->item[i].death, i};
    qsort(places, list->n, sizeof *places, by_start);
    for (uint32_t i = 1; i < list->n; i++) {
        const place *p = &places[i], *q = p - 1;

        if (p->offset == q->offset && p->bytes == q->bytes && p->birth == q->birth &&
            p->death == p->birth + 1) {
            mpl_free(r->ctx, list->item[p->i].name);
            list->item[p->i].name = NULL;
        }
    }
    for (uint32_t i = 0; i < list->n; i++)
        if (list->item[i].name != NULL)
            list->item[n++] = list->item[i];
    list->n = n;
out:
    mpl_free(r->ctx, places);
    return st;
}

/* ---- in place ---- */

typedef struct event {
    uint64_t offset;
    uint32_t step, ends; /* ends: the buffer's last step is `step`; else its first */
    mpl_buffer b;
} event;

typedef struct pair {
    uint32_t step;
    mpl_buffer out, in;
} pair;

MPL_ORDER_BY(by_place, event, MPL_RISING(offset) MPL_RISING(step) MPL_RISING(ends) MPL_RISING(b))

MPL_ORDER_BY(by_step, pair, MPL_RISING(step) MPL_RISING(out) MPL_RISING(in))

/* Pairs each buffer with each large enough one that ends at the place and step where it begins. */
static mpl_status find_pairs(mpl_ctx *ctx, const mpl_problem *p, const mpl_plan *plan, pair **pairs,
                             size_t *n)
{
    mpl_status st = MPL_OK;
    event *e = NULL;
    size_t cap = 0, n_events = 2 * (size_t)p->n;

    MPL_TRY(mpl_new(ctx, e, n_events));
    for (mpl_buffer b = 0; b < p->n; b++) {
        e[2 * (size_t)b] = (event){plan->offset[b], p->birth[b], 0, b};
        e[2 * (size_t)b + 1] = (event){plan->offset[b], p->death[b] - 1, 1, b};
    }
    qsort(e, n_events, sizeof *e, by_place);
    for (size_t i = 0; i < n_events; i++)
        for (size_t k = i + 1; e[i].ends == 0 && k < n_events; k++) {
            mpl_buffer out = e[i].b, in = e[k].b;

            if (e[k].offset != e[i].offset || e[k].step != e[i].step)
                break;
            if (e[k].ends == 0 || p->birth[in] >= e[i].step || p->bytes[out] > p->bytes[in])
                continue;
            MPL_TRY(mpl_reserve(ctx, *pairs, cap, *n + 1));
            (*pairs)[(*n)++] = (pair){e[i].step, out, in};
        }
    if (*n > 1)
        qsort(*pairs, *n, sizeof **pairs, by_step);
out:
    mpl_free(ctx, e);
    return st;
}

static mpl_status offer_pairs(mpl_ctx *ctx, mpl_problem *p, const mpl_plan *plan)
{
    mpl_status st = MPL_OK;
    pair *pairs = NULL;
    size_t n = 0;

    MPL_TRY(find_pairs(ctx, p, plan, &pairs, &n));
    MPL_TRY(mpl_new_each(ctx, n, p->in_place_in, p->in_place_out, p->in_place_step));
    for (size_t i = 0; i < n; i++) {
        p->in_place_in[i] = pairs[i].in;
        p->in_place_out[i] = pairs[i].out;
        p->in_place_step[i] = pairs[i].step;
    }
    p->n_in_place = (uint32_t)n;
out:
    mpl_free(ctx, pairs);
    return st;
}

mpl_status mpl_import_read_xla(mpl_ctx *ctx, const mpl_import_in *in, mpl_import *out)
{
    mpl_status st = MPL_OK;
    reader r = {.ctx = ctx, .path = in->path};
    char *beside = NULL;

    MPL_TRY(mpl_text_has(in->text, in->size, "BufferLiveRange:")
                ? read_ranges(&r, in->path, in->text, in->size)
                : read_beside(&r, &beside));
    MPL_TRY(read_allocations(&r, in));
    MPL_TRY(drop_aliases(&r));
    MPL_TRY(mpl_import_make(ctx, in, &r.list, out));
    MPL_TRY(offer_pairs(ctx, out->problem, out->plan));
    out->arena_bytes = r.arena_bytes;
    if (r.n_left_out > 0)
        snprintf(out->note, sizeof out->note,
                 "%u allocations of %" PRIu64
                 " bytes are parameters, constants, outputs or thread-local: not planned",
                 r.n_left_out, r.left_out_bytes);
out:
    mpl_free_each(ctx, beside, r.ranges.slot, r.ids.slot, r.range);
    mpl_import_list_fini(ctx, &r.list);
    return st;
}
