/* profiler.c -- allocations in a trace of PyTorch's profiler.
 *
 * Source   pytorch/kineto, output_json.cpp: chrome's trace format, in which an instant event
 *          `[memory]` has args Addr, Bytes (negative: freed), Device Type (0: CPU), Device Id and
 *          Total Reserved. Made by torch.profiler.profile(profile_memory=True) and
 *          export_chrome_trace(path).
 * Lives    Events in rising order of `ts`, then as they stand; event i of the device is step i + 1.
 *          What was allocated before the trace lives from 0, what stays lives to the end.
 * Places   Addresses, from the lowest one up. They are those of any number of segments: no single
 *          arena, so only the bound of the live bytes holds.
 * Limits   One device: that with the most events, of equals the first. */
#include <math.h>
#include <stdlib.h>

#include "planners/import/json/read_json.h"

typedef struct event {
    double ts;
    uint64_t addr, bytes, device;
    uint32_t step; /* once sorted by time */
    bool frees;
    size_t index;
} event;

typedef struct reader {
    mpl_ctx *ctx;
    const char *path;
    size_t n, cap, n_all;
    event *event;
    uint64_t reserved, base;
    mpl_import_list list;
} reader;

bool mpl_import_is_profiler(const mpl_import_in *in)
{
    char first = mpl_text_first(in->text, in->size);

    return (first == '{' && mpl_text_has(in->text, in->size, "\"traceEvents\"")) ||
           (first == '[' && mpl_text_has(in->text, in->size, "\"ph\""));
}

static mpl_status read_event(reader *in, const json_t *one, size_t index)
{
    const json_t *args = json_object_get(one, "args"), *bytes = json_object_get(args, "Bytes");
    const json_t *ts = json_object_get(one, "ts"), *id = json_object_get(args, "Device Id");
    event e = {.ts = json_number_value(ts), .index = index};
    uint64_t type = 0, reserved = 0;

    if (!json_is_integer(bytes) || json_integer_value(bytes) == INT64_MIN || !json_is_number(ts) ||
        !isfinite(e.ts))
        return MPL_REFUSE(in->ctx, "%.200s: event %zu: 'Bytes' or 'ts' is missing or no number",
                          in->path, index);
    MPL_PASS(mpl_json_whole(in->ctx, in->path, args, "Addr", "event", index, &e.addr));
    MPL_PASS(mpl_json_whole_if(in->ctx, in->path, args, "Device Type", "event", index, &type));
    MPL_PASS(
        mpl_json_whole_if(in->ctx, in->path, args, "Total Reserved", "event", index, &reserved));
    e.frees = json_integer_value(bytes) < 0;
    e.bytes = (uint64_t)llabs(json_integer_value(bytes));
    e.device = type << 32 | (uint32_t)json_integer_value(id);
    if (e.bytes == 0)
        return MPL_OK;
    if (type != 0)
        in->reserved = mpl_max_u64(in->reserved, reserved);
    MPL_PASS(mpl_reserve(in->ctx, in->event, in->cap, in->n + 1));
    in->event[in->n++] = e;
    return MPL_OK;
}

static mpl_status read_events(reader *in, const json_t *root)
{
    const json_t *events = json_is_array(root) ? root : json_object_get(root, "traceEvents");

    for (size_t i = 0; i < json_array_size(events); i++) {
        const char *name = json_string_value(json_object_get(json_array_get(events, i), "name"));

        if (name != NULL && strcmp(name, "[memory]") == 0)
            MPL_PASS(read_event(in, json_array_get(events, i), i));
    }
    if (in->n == 0 || in->n >= MPL_NONE / 4)
        return MPL_REFUSE(in->ctx,
                          "%.200s: a trace of %zu events, %zu of them [memory]: PyTorch's profiler "
                          "writes them with profile_memory=True, ONNX Runtime's does not",
                          in->path, json_array_size(events), in->n);
    return MPL_OK;
}

MPL_ORDER_BY(by_time, event, MPL_RISING(ts) MPL_RISING(index))
MPL_ORDER_BY(by_device, event, MPL_RISING(device) MPL_RISING(ts) MPL_RISING(index))
MPL_ORDER_BY(by_place, event, MPL_RISING(addr) MPL_RISING(step))

/* Keeps the events of one device, in their order. */
static void keep_device(reader *in)
{
    size_t from = 0, most = 0;

    in->n_all = in->n;
    qsort(in->event, in->n, sizeof *in->event, by_device);
    for (size_t i = 0, k; i < in->n; i = k) {
        for (k = i + 1; k < in->n && in->event[k].device == in->event[i].device;)
            k++;
        if (k - i > most)
            from = i, most = k - i;
    }
    memmove(in->event, in->event + from, most * sizeof *in->event);
    in->n = most;
    qsort(in->event, in->n, sizeof *in->event, by_time);
    in->base = UINT64_MAX;
    for (size_t i = 0; i < in->n; i++) {
        in->event[i].step = (uint32_t)i + 1;
        in->base = mpl_min_u64(in->base, in->event[i].addr);
    }
}

static mpl_status add_buffer(reader *in, const event *e, uint32_t birth, uint32_t death)
{
    mpl_import_buffer b = {.bytes = e->bytes, .birth = birth, .death = death, .block = MPL_NONE};
    char name[64];
    int n = snprintf(name, sizeof name, "0x%" PRIx64 " %s %u", e->addr,
                     birth == 0 ? "freed at" : "of", e->step);

    b.offset = e->addr - in->base;
    return mpl_import_add(in->ctx, &in->list, &b, name, (size_t)n);
}

/* At each address allocs and frees alternate. */
static mpl_status read_lives(reader *in)
{
    const event *open = NULL;
    size_t frees = 0;

    qsort(in->event, in->n, sizeof *in->event, by_place);
    for (size_t i = 0; i < in->n; i++) {
        const event *e = &in->event[i];
        bool first = i == 0 || e[-1].addr != e->addr;

        if (first && open != NULL)
            MPL_PASS(add_buffer(in, open, open->step, (uint32_t)in->n + 1));
        open = first ? NULL : open;
        if (!first && e->frees == (open == NULL))
            return MPL_REFUSE(in->ctx, "%.200s: event %zu: 0x%" PRIx64 " is %s twice", in->path,
                              e->index, e->addr, e->frees ? "freed" : "allocated");
        if (open != NULL && open->bytes != e->bytes)
            return MPL_REFUSE(in->ctx, "%.200s: event %zu frees %" PRIu64 " bytes of %" PRIu64,
                              in->path, e->index, e->bytes, open->bytes);
        frees += e->frees;
        if (e->frees)
            MPL_PASS(
                add_buffer(in, open != NULL ? open : e, open != NULL ? open->step : 0, e->step));
        open = e->frees ? NULL : e;
    }
    if (open != NULL)
        MPL_PASS(add_buffer(in, open, open->step, (uint32_t)in->n + 1));
    return frees > 0 ? MPL_OK
                     : MPL_REFUSE(in->ctx, "%.200s: a trace in which nothing is freed", in->path);
}

mpl_status mpl_import_read_profiler(mpl_ctx *ctx, const mpl_import_in *in, mpl_import *out)
{
    mpl_status st = MPL_OK;
    reader r = {.ctx = ctx, .path = in->path};
    json_t *root = NULL;

    MPL_TRY(mpl_json_parse(ctx, in->path, in->text, in->size, 0, &root));
    MPL_TRY(read_events(&r, root));
    keep_device(&r);
    MPL_TRY(read_lives(&r));
    MPL_TRY(mpl_import_make(ctx, in, &r.list, out));
    out->arena_bytes = r.reserved;
    out->returns_memory = true;
    snprintf(out->note, sizeof out->note, "%zu allocations and frees of one device, %zu of others",
             r.n, r.n_all - r.n);
out:
    mpl_import_list_fini(ctx, &r.list);
    mpl_free(ctx, r.event);
    json_decref(root);
    return st;
}
