/* pytorch.c -- a memory snapshot of PyTorch's caching allocator, as its pickle or as JSON.
 *
 * Source   pytorch, torch/cuda/memory.py and docs/source/torch_cuda_memory.md: `segments` (address,
 *          total_size, device, blocks with size, state and, in newer versions, address) and
 *          `device_traces` (one list a device of events with action, addr, size). Made by
 *          torch.cuda.memory._dump_snapshot(path), or json.dump(torch.cuda.memory._snapshot(),
 *          file), after torch.cuda.memory._record_memory_history().
 * Lives    Event i is step i + 1. A block lives from its alloc to its free_completed, when it may
 *          be reused. Blocks older than the history live from 0; blocks left at its end live to the
 *          end.
 * Sizes    As requested, as in events; for blocks requested_size, if present.
 * Places   Addresses within the segments, which stand end to end by address; aligned to 512 bytes,
 *          the allocator's rounding, if all are.
 * Arena    The most bytes that the segments took at once: from the snapshot, and the history of
 *          segments backwards. If segments were returned or unmapped, addresses are no offsets in
 *          one arena; the note says so.
 * Limits   One device, the first with events. Streams are not distinguished: a block may have been
 *          unavailable to a stream. */
#include "planners/import/json/pickle.h"
#include "planners/import/json/read_json.h"

#include <stdlib.h>

enum { ROUND = 512 };             /* rounding of the allocator [byte] */
enum kind { ALLOC, FREE, STAYS }; /* STAYS: in use in the snapshot */

typedef struct event {
    uint64_t addr, size;
    uint32_t step;
    enum kind kind;
} event;

typedef struct range {
    uint64_t addr, end, base; /* base: begin in the arena */
} range;

typedef struct reader {
    mpl_ctx *ctx;
    const char *path;
    const json_t *trace, *segments;
    uint32_t device, n_devices; /* n_devices: devices with events */
    size_t n, cap;
    event *event;
    size_t n_ranges, range_cap;
    range *range;
    uint64_t reserved; /* total of the snapshot's segments */
    uint64_t peak;
    size_t text_size;
    bool returns, frees;
    mpl_import_list list;
} reader;

#define REFUSE(r, ...) MPL_REFUSE((r)->ctx, __VA_ARGS__)

bool mpl_import_is_pytorch(const mpl_import_in *in)
{
    if (mpl_pickle_is(in->text, in->size))
        return true;
    return mpl_text_first(in->text, in->size) == '{' &&
           (mpl_text_has(in->text, in->size, "\"device_traces\"") ||
            mpl_text_has(in->text, in->size, "\"segments\""));
}

static mpl_status number(const reader *in, const json_t *object, const char *key, const char *what,
                         size_t i, uint64_t *out)
{
    return mpl_json_whole(in->ctx, in->path, object, key, what, i, out);
}

/* A pickle may hold the same blocks many times over, and still be small. */
static mpl_status add_event(reader *in, uint64_t addr, uint64_t size, size_t step, enum kind kind)
{
    if (size == 0)
        return MPL_OK;
    if (in->n >= in->text_size)
        return REFUSE(in, "%.200s: more blocks than the file has bytes", in->path);
    MPL_PASS(mpl_reserve(in->ctx, in->event, in->cap, in->n + 1));
    in->event[in->n++] = (event){addr, size, (uint32_t)step, kind};
    return MPL_OK;
}

static mpl_status add_range(reader *in, uint64_t addr, uint64_t size)
{
    MPL_PASS(mpl_reserve(in->ctx, in->range, in->range_cap, in->n_ranges + 1));
    in->range[in->n_ranges++] = (range){addr, addr + size, 0};
    return MPL_OK;
}

static mpl_status find_trace(reader *in, const json_t *root)
{
    const json_t *traces = json_object_get(root, "device_traces");

    in->segments = json_object_get(root, "segments");
    if (!json_is_array(in->segments) || !json_is_array(traces))
        return REFUSE(in, "%.200s: 'segments' and 'device_traces' should be lists", in->path);
    for (size_t i = 0; i < json_array_size(traces); i++) {
        const json_t *one = json_array_get(traces, i);

        if (json_array_size(one) == 0)
            continue;
        if (in->n_devices++ == 0)
            in->trace = one, in->device = (uint32_t)i;
    }
    if (in->trace == NULL)
        return REFUSE(
            in,
            "%.200s: no history: call torch.cuda.memory._record_memory_history() before what "
            "should be seen",
            in->path);
    if (json_array_size(in->trace) >= MPL_NONE / 4)
        return REFUSE(in, "%.200s: more than 2^30 events", in->path);
    return MPL_OK;
}

static mpl_status read_blocks(reader *in, const json_t *segment, size_t index, uint64_t address)
{
    const json_t *blocks = json_object_get(segment, "blocks");

    for (size_t i = 0; i < json_array_size(blocks); i++) {
        const json_t *block = json_array_get(blocks, i);
        const char *state = json_string_value(json_object_get(block, "state"));
        uint64_t size = 0, asked = 0;

        if (state == NULL)
            return REFUSE(in, "%.200s: segment %zu: block %zu has no 'state'", in->path, index, i);
        MPL_PASS(number(in, block, "size", "block", i, &size));
        if (json_object_get(block, "address") != NULL)
            MPL_PASS(number(in, block, "address", "block", i, &address));
        asked = size;
        if (json_object_get(block, "requested_size") != NULL)
            MPL_PASS(number(in, block, "requested_size", "block", i, &asked));
        if (asked > size)
            return REFUSE(in, "%.200s: segment %zu: block %zu is smaller than what was asked for",
                          in->path, index, i);
        if (strncmp(state, "active", 6) == 0)
            MPL_PASS(add_event(in, address, asked, json_array_size(in->trace) + 1, STAYS));
        if (!mpl_add_bytes(address, size, &address))
            return REFUSE(in, "%.200s: segment %zu: block %zu ends beyond 2^64", in->path, index,
                          i);
    }
    return MPL_OK;
}

static mpl_status read_segments(reader *in)
{
    for (size_t i = 0; i < json_array_size(in->segments); i++) {
        const json_t *segment = json_array_get(in->segments, i);
        uint64_t address = 0, size = 0, device = 0;

        if (json_object_get(segment, "device") != NULL)
            MPL_PASS(number(in, segment, "device", "segment", i, &device));
        if (device != in->device)
            continue;
        MPL_PASS(number(in, segment, "address", "segment", i, &address));
        MPL_PASS(number(in, segment, "total_size", "segment", i, &size));
        if (!mpl_add_bytes(in->reserved, size, &in->reserved) || in->reserved > INT64_MAX)
            return REFUSE(in, "%.200s: segment %zu: the segments pass 2^63 bytes", in->path, i);
        MPL_PASS(add_range(in, address, size));
        MPL_PASS(read_blocks(in, segment, i, address));
    }
    return MPL_OK;
}

static bool one_of(const char *text, const char *a, const char *b)
{
    return strcmp(text, a) == 0 || strcmp(text, b) == 0;
}

/* Reads backwards, since the bytes reserved at each event follow from those at the end. */
static mpl_status read_trace(reader *in)
{
    uint64_t now = in->reserved;

    in->peak = now;
    for (size_t i = json_array_size(in->trace); i-- > 0;) {
        const json_t *one = json_array_get(in->trace, i);
        const char *action = json_string_value(json_object_get(one, "action"));
        bool takes, gives;
        uint64_t addr = 0, size = 0;

        if (action == NULL)
            return REFUSE(in, "%.200s: event %zu has no 'action'", in->path, i);
        takes = one_of(action, "segment_alloc", "segment_map");
        gives = one_of(action, "segment_free", "segment_unmap");
        if (!takes && !gives && !one_of(action, "alloc", "free_completed"))
            continue;
        MPL_PASS(number(in, one, "addr", "event", i, &addr));
        MPL_PASS(number(in, one, "size", "event", i, &size));
        in->frees = in->frees || action[0] == 'f';
        if (!takes && !gives)
            MPL_PASS(add_event(in, addr, size, i + 1, action[0] == 'a' ? ALLOC : FREE));
        else
            MPL_PASS(add_range(in, addr, size));
        if (takes && size > now)
            return REFUSE(in,
                          "%.200s: event %zu: a segment of %" PRIu64 " bytes where %" PRIu64
                          " are reserved after it",
                          in->path, i, size, now);
        if (gives && (!mpl_add_bytes(now, size, &now) || now > INT64_MAX))
            return REFUSE(in, "%.200s: event %zu: the segments pass 2^63 bytes", in->path, i);
        now -= takes ? size : 0;
        in->peak = mpl_max_u64(in->peak, now);
        in->returns = in->returns || gives;
    }
    if (!in->frees)
        return REFUSE(
            in,
            "%.200s: a history of %zu events in which nothing is freed; record until what "
            "should be seen was freed",
            in->path, json_array_size(in->trace));
    return MPL_OK;
}

MPL_ORDER_BY(by_addr, range, MPL_RISING(addr) MPL_RISING(end))

/* Merges ranges that touch or overlap, then computes their begins in the arena. */
static void merge_ranges(reader *in)
{
    size_t n = 0;
    uint64_t base = 0;

    if (in->n_ranges > 1)
        qsort(in->range, in->n_ranges, sizeof *in->range, by_addr);
    for (size_t i = 0; i < in->n_ranges; i++)
        if (n > 0 && in->range[i].addr <= in->range[n - 1].end)
            in->range[n - 1].end = mpl_max_u64(in->range[n - 1].end, in->range[i].end);
        else
            in->range[n++] = in->range[i];
    in->n_ranges = n;
    for (size_t i = 0; i < n; i++) {
        in->range[i].base = base;
        base += in->range[i].end - in->range[i].addr;
    }
}

/* Adds the buffer of an event, alive in [birth, death). */
static mpl_status add_buffer(reader *in, const event *e, uint32_t birth, uint32_t death)
{
    mpl_import_buffer b = {.bytes = e->size, .birth = birth, .death = death, .block = MPL_NONE};
    size_t low = 0, high = in->n_ranges;
    char name[64];
    int n;

    while (low < high) {
        size_t mid = low + (high - low) / 2;

        if (in->range[mid].end <= e->addr)
            low = mid + 1;
        else
            high = mid;
    }
    if (low == in->n_ranges || e->addr < in->range[low].addr ||
        e->size > in->range[low].end - e->addr)
        return REFUSE(in,
                      "%.200s: the block of %" PRIu64 " bytes at 0x%" PRIx64 " lies in no segment",
                      in->path, e->size, e->addr);
    b.offset = in->range[low].base + (e->addr - in->range[low].addr);
    n = birth == 0 ? snprintf(name, sizeof name, "0x%" PRIx64 " from before", e->addr)
                   : snprintf(name, sizeof name, "0x%" PRIx64 " of event %u", e->addr, birth - 1);
    return mpl_import_add(in->ctx, &in->list, &b, name, (size_t)n);
}

static int by_addr_and_step(const void *a, const void *b)
{
    const event *x = a, *y = b;

    if (x->addr != y->addr)
        return x->addr > y->addr ? 1 : -1;
    if (x->step != y->step)
        return x->step > y->step ? 1 : -1;
    /* a block twice in the snapshot: rejected below */
    return (x->size > y->size) - (x->size < y->size);
}

/* Reads the events of one address in order: allocs and frees must alternate. */
static mpl_status read_address(reader *in, const event *e, size_t n, uint32_t end)
{
    const event *open = NULL;

    for (size_t i = 0; i < n; i++) {
        if (e[i].kind == ALLOC && open != NULL)
            return REFUSE(
                in, "%.200s: event %u allocates 0x%" PRIx64 ", which event %u did and none freed",
                in->path, e[i].step - 1, e[i].addr, open->step - 1);
        if (e[i].kind != ALLOC && open == NULL && i > 0)
            return REFUSE(in, "%.200s: 0x%" PRIx64 " is %s, and it was free before", in->path,
                          e[i].addr, e[i].kind == FREE ? "freed" : "in use in the snapshot");
        if (e[i].kind == FREE)
            MPL_PASS(add_buffer(in, open != NULL ? open : &e[i], open != NULL ? open->step : 0,
                                e[i].step));
        else if (e[i].kind == STAYS && open == NULL)
            MPL_PASS(add_buffer(in, &e[i], 0, end));
        else if (e[i].kind == STAYS)
            MPL_PASS(add_buffer(in, open, open->step, end));
        open = e[i].kind == ALLOC ? &e[i] : NULL;
    }
    if (open != NULL)
        MPL_PASS(add_buffer(in, open, open->step, end));
    return MPL_OK;
}

static mpl_status read_lives(reader *in)
{
    uint32_t end = (uint32_t)json_array_size(in->trace) + 1;

    if (in->n > 1)
        qsort(in->event, in->n, sizeof *in->event, by_addr_and_step);
    for (size_t i = 0, k; i < in->n; i = k) {
        for (k = i + 1; k < in->n && in->event[k].addr == in->event[i].addr;)
            k++;
        MPL_PASS(read_address(in, &in->event[i], k - i, end));
    }
    return MPL_OK;
}

static void set_alignment(const mpl_plan *plan, mpl_problem *p)
{
    uint64_t bits = 0;

    for (mpl_buffer b = 0; b < p->n; b++)
        bits |= plan->offset[b];
    for (mpl_buffer b = 0; b < p->n && bits % ROUND == 0; b++)
        p->align[b] = ROUND;
}

static void write_note(const reader *in, mpl_import *out)
{
    size_t n = (size_t)snprintf(out->note, sizeof out->note,
                                "device %u, %zu events, %" PRIu64 " bytes in segments", in->device,
                                json_array_size(in->trace), in->reserved);

    if (in->returns)
        n += (size_t)snprintf(out->note + n, sizeof out->note - n,
                              "; segments were given back: no single arena");
    if (in->n_devices > 1)
        snprintf(out->note + n, sizeof out->note - n, "; %u more devices were not looked at",
                 in->n_devices - 1);
}

mpl_status mpl_import_read_pytorch(mpl_ctx *ctx, const mpl_import_in *in, mpl_import *out)
{
    mpl_status st = MPL_OK;
    reader r = {.ctx = ctx, .path = in->path, .text_size = in->size};
    json_t *root = NULL;

    if (mpl_pickle_is(in->text, in->size))
        MPL_TRY(mpl_pickle_read(ctx, in->path, in->text, in->size, &root));
    else
        MPL_TRY(mpl_json_parse(ctx, in->path, in->text, in->size, 0, &root));
    MPL_TRY(find_trace(&r, root));
    MPL_TRY(read_segments(&r));
    MPL_TRY(read_trace(&r));
    merge_ranges(&r);
    MPL_TRY(read_lives(&r));
    MPL_TRY(mpl_import_make(ctx, in, &r.list, out));
    set_alignment(out->plan, out->problem);
    out->arena_bytes = r.peak;
    out->returns_memory = r.returns;
    write_note(&r, out);
out:
    mpl_import_list_fini(ctx, &r.list);
    mpl_free_each(ctx, r.event, r.range);
    json_decref(root);
    return st;
}
