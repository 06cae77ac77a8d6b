/* ort_profile.c -- a session profile of ONNX Runtime: what each node allocated in its first run,
 * and how large the memory pattern is that the later runs use.
 *
 * Source   SessionOptions.enable_profiling of ONNX Runtime 1.32: an array of trace events, one a
 *          node (cat "Node", name .._kernel_time), whose args have the bytes requested and in use
 *          (mem_bytes_requested_in_use), by how much the node raised them
 *          (mem_requested_in_use_delta), and the shapes of inputs and outputs. Earlier versions
 *          have no such bytes. "model_run" begins and ends a run.
 * Lives    Node i of the first run is step i. What a node adds is its outputs, each a buffer where
 *          their sizes tell, else one; what is gone before the next node starts dies there. Which
 *          of the live buffers that is follows from sizes: inputs of the node first, as few as
 *          possible, of equal ones the newest. What is alive after the run, and what a second run
 *          takes beside the pattern, are the graph's outputs: left out.
 * Places   The file has none. Where a second run starts, the pattern's block is there already: its
 *          bytes are the arena. The offsets are those of the planner ort_pattern; if its arena is
 *          not as large as the block, the note says so. With one run alone, those of ort_bfc.
 * Limits   One run after the other on one thread. A node that runs graphs of its own counts as one,
 *          with what it leaves alive. */
#include <math.h>
#include <stdlib.h>

#include "planners/import/json/read_json.h"
#include "planners/planner.h"

enum { ORT_ALIGN = 256, MOST_OPERANDS = 64, MOST_TRIES = 20000 };
static const char used_key[] = "mem_bytes_requested_in_use";
static const char delta_key[] = "mem_requested_in_use_delta";

typedef struct node {
    double ts, end;
    uint64_t before, after; /* bytes requested and in use [byte] */
    const char *name;
    const json_t *args;
    size_t index; /* of the event */
} node;

typedef struct alive {
    uint64_t bytes;
    uint32_t item; /* of the list */
    bool taken;
} alive;

typedef struct reader {
    mpl_ctx *ctx;
    const char *path;
    size_t n, cap, n_inner;
    node *node;        /* of all runs, by time */
    double second_run; /* starts at that ts; HUGE_VAL: there is none */
    mpl_import_list list;
    uint32_t n_live;
    size_t live_cap;
    alive *live;
} reader;

bool mpl_import_is_ort_profile(const mpl_import_in *in)
{
    return mpl_text_first(in->text, in->size) == '[' &&
           mpl_text_has(in->text, in->size, "_kernel_time\"") &&
           mpl_text_has(in->text, in->size, "\"model_loading_");
}

/* ---- events ---- */

/* A whole number, which ONNX Runtime writes as text; it may be negative. */
static mpl_status number(reader *in, const json_t *args, const char *key, size_t index,
                         int64_t *out)
{
    const char *text = json_string_value(json_object_get(args, key)), *end = text;
    bool negative = text != NULL && *text == '-';
    uint64_t value = 0;

    if (text == NULL || (end = mpl_digits(text + negative, text + strlen(text), &value)) == NULL ||
        *end != '\0')
        return MPL_REFUSE(in->ctx,
                          "%.200s: event %zu: '%s' is missing or no number; ONNX Runtime 1.32 "
                          "writes it, earlier versions do not",
                          in->path, index, key);
    *out = negative ? -(int64_t)value : (int64_t)value;
    return MPL_OK;
}

static mpl_status read_node(reader *in, const json_t *event, const char *name, size_t index)
{
    node made = {.name = name, .args = json_object_get(event, "args"), .index = index};
    const json_t *ts = json_object_get(event, "ts"), *dur = json_object_get(event, "dur");
    int64_t used = 0, delta = 0;

    if (!json_is_number(ts) || !json_is_number(dur))
        return MPL_REFUSE(in->ctx, "%.200s: event %zu: 'ts' or 'dur' is missing or no number",
                          in->path, index);
    MPL_PASS(number(in, made.args, used_key, index, &used));
    MPL_PASS(number(in, made.args, delta_key, index, &delta));
    if (used < 0 || delta > used || (delta < 0 && used > INT64_MAX + delta))
        return MPL_REFUSE(in->ctx,
                          "%.200s: event %zu: %" PRId64 " bytes in use, %" PRId64
                          " of them by the node itself: both cannot be",
                          in->path, index, used, delta);
    made.ts = json_number_value(ts);
    made.end = made.ts + json_number_value(dur);
    made.after = (uint64_t)used;
    made.before = (uint64_t)(used - delta);
    MPL_PASS(mpl_reserve(in->ctx, in->node, in->cap, in->n + 1));
    in->node[in->n++] = made;
    return MPL_OK;
}

MPL_ORDER_BY(by_time, node, MPL_RISING(ts) MPL_RISING(index))

/* Drops the nodes that ran within another one. */
static void keep_outer(reader *in)
{
    size_t kept = 0;

    qsort(in->node, in->n, sizeof *in->node, by_time);
    for (size_t i = 0; i < in->n; i++)
        if (kept > 0 && in->node[i].ts < in->node[kept - 1].end &&
            in->node[i].end <= in->node[kept - 1].end)
            in->n_inner++;
        else
            in->node[kept++] = in->node[i];
    in->n = kept;
}

static mpl_status read_events(reader *in, const json_t *root)
{
    double first = HUGE_VAL;

    in->second_run = HUGE_VAL;
    for (size_t i = 0; i < json_array_size(root); i++) {
        const json_t *event = json_array_get(root, i);
        const char *name = json_string_value(json_object_get(event, "name"));
        const char *end = name != NULL ? strstr(name, "_kernel_time") : NULL;
        double ts = json_number_value(json_object_get(event, "ts"));

        if (end != NULL && end[strlen("_kernel_time")] == '\0')
            MPL_PASS(read_node(in, event, name, i));
        if (name == NULL || strcmp(name, "model_run") != 0)
            continue;
        in->second_run = ts < first ? first : ts < in->second_run ? ts : in->second_run;
        first = ts < first ? ts : first;
    }
    if (first == HUGE_VAL || in->n == 0 || in->n >= MPL_NONE / 4)
        return MPL_REFUSE(in->ctx,
                          "%.200s: no whole run in it: end_profiling() writes the last events",
                          in->path);
    keep_outer(in);
    return MPL_OK;
}

/* ---- sizes ---- */

static uint64_t type_bytes(const char *name)
{
    static const struct {
        const char *name;
        uint64_t bytes;
    } types[] = {{"float", 4},  {"double", 8}, {"float16", 2}, {"bfloat16", 2}, {"int64", 8},
                 {"int32", 4},  {"int16", 2},  {"int8", 1},    {"uint64", 8},   {"uint32", 4},
                 {"uint16", 2}, {"uint8", 1},  {"bool", 1}};

    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (strcmp(name, types[i].name) == 0)
            return types[i].bytes;
    return 0;
}

/* Of {"float": [1, 2]}; 0: of another type, or its bytes overflow. */
static uint64_t operand_bytes(const json_t *operand)
{
    void *at = json_object_iter((json_t *)operand);
    const json_t *dims = at != NULL ? json_object_iter_value(at) : NULL;
    uint64_t bytes = at != NULL ? type_bytes(json_object_iter_key(at)) : 0;

    for (size_t i = 0; i < json_array_size(dims); i++) {
        json_int_t dim = json_integer_value(json_array_get(dims, i));

        if (dim < 0 || !mpl_mul_bytes(bytes, (uint64_t)dim, &bytes))
            return 0;
    }
    return bytes;
}

/* The bytes of a node's operands; their number. */
static uint32_t operands(const node *at, const char *key, uint64_t bytes[MOST_OPERANDS])
{
    const json_t *list = json_object_get(at->args, key);
    size_t n = json_array_size(list);

    for (size_t i = 0; i < n && i < MOST_OPERANDS; i++)
        bytes[i] = operand_bytes(json_array_get(list, i));
    return n < MOST_OPERANDS ? (uint32_t)n : MOST_OPERANDS;
}

/* Marks at most `most` of `from` whose bytes sum to `sum`, preferring the last; false: there is no
 * such set, or none was found in time. */
static bool take_sum(alive *from, uint32_t n, uint64_t sum, uint32_t most, uint32_t *tries)
{
    for (uint32_t i = n; sum > 0 && most > 0 && i-- > 0;) {
        if (from[i].taken || from[i].bytes == 0 || from[i].bytes > sum)
            continue;
        if (++*tries > MOST_TRIES)
            return false;
        from[i].taken = true;
        if (take_sum(from, i, sum - from[i].bytes, most - 1, tries))
            return true;
        from[i].taken = false;
    }
    return sum == 0;
}

/* The same with as few as possible. */
static bool take_few(alive *from, uint32_t n, uint64_t sum)
{
    for (uint32_t most = 1; most <= MOST_OPERANDS; most++) {
        uint32_t tries = 0;

        if (take_sum(from, n, sum, most, &tries))
            return true;
    }
    return false;
}

/* ---- lives ---- */

static mpl_status add_buffer(reader *in, const node *at, uint32_t step, uint64_t bytes)
{
    const mpl_import_buffer b = {
        .bytes = bytes, .birth = step, .death = UINT32_MAX, .block = MPL_NONE, .align = ORT_ALIGN};
    int n = (int)strlen(at->name) - (int)strlen("_kernel_time");
    char name[160];

    n = snprintf(name, sizeof name, "%" PRIu32 " %.*s", in->list.n, n < 100 ? n : 100, at->name);
    in->live[in->n_live++] = (alive){bytes, in->list.n, false};
    return mpl_import_add(in->ctx, &in->list, &b, name, (size_t)n);
}

/* What the node left behind: those of its outputs that sum to it, or one buffer. */
static mpl_status allocate(reader *in, const node *at, uint32_t step, uint64_t bytes)
{
    uint64_t out[MOST_OPERANDS];
    alive made[MOST_OPERANDS];
    uint32_t n = operands(at, "output_type_shape", out);

    for (uint32_t i = 0; i < n; i++)
        made[i] = (alive){out[i], i, false};
    if (bytes == 0)
        return MPL_OK;
    MPL_PASS(mpl_reserve(in->ctx, in->live, in->live_cap, (size_t)in->n_live + MOST_OPERANDS));
    if (!take_few(made, n, bytes))
        return add_buffer(in, at, step, bytes);
    for (uint32_t i = 0; i < n; i++)
        if (made[i].taken)
            MPL_PASS(add_buffer(in, at, step, made[i].bytes));
    return MPL_OK;
}

/* How likely a buffer goes with the node: as large as an input of it, then made by an earlier one.
 */
static uint32_t rank(const reader *r, const alive *one, uint32_t step, const uint64_t *in,
                     uint32_t n_in)
{
    bool input = false;

    for (uint32_t i = 0; i < n_in; i++)
        input = input || in[i] == one->bytes;
    return 2 * input + (r->list.item[one->item].birth < step);
}

static mpl_status release(reader *r, const node *at, uint32_t step, uint64_t bytes)
{
    mpl_status st = MPL_OK;
    uint64_t in[MOST_OPERANDS];
    uint32_t n_in = operands(at, "input_type_shape", in), n = 0, kept = 0, first = 0;
    alive *sorted = NULL;

    MPL_TRY(mpl_new(r->ctx, sorted, r->n_live));
    for (uint32_t k = 0; k < 4; k++) {
        first = k == 3 ? n : first;
        for (uint32_t i = 0; i < r->n_live; i++)
            if (rank(r, &r->live[i], step, in, n_in) == k)
                sorted[n++] = r->live[i];
    }
    first = first < n ? first : 0;
    if (!take_few(sorted + first, n - first, bytes) && !take_few(sorted, n, bytes))
        MPL_FAIL(r->ctx, MPL_EINPUT,
                 "%.200s: event %zu: %" PRIu64 " bytes are gone behind it, and no buffers in use "
                 "sum to that",
                 r->path, at->index, bytes);
    for (uint32_t i = 0; i < n; i++)
        if (sorted[i].taken)
            r->list.item[sorted[i].item].death = (uint64_t)step + 1;
    for (uint32_t i = 0; i < r->n_live; i++)
        if (r->list.item[r->live[i].item].death == UINT32_MAX)
            r->live[kept++] = r->live[i];
    r->n_live = kept;
out:
    mpl_free(r->ctx, sorted);
    return st;
}

/* The first run; *end: nodes of it. */
static mpl_status read_run(reader *in, size_t *end)
{
    size_t n = 0;

    while (n < in->n && in->node[n].ts < in->second_run)
        n++;
    for (size_t i = 0; i < n; i++) {
        const node *at = &in->node[i];
        uint32_t step = (uint32_t)i;

        if (i > 0 && at->before > at[-1].after)
            return MPL_REFUSE(in->ctx,
                              "%.200s: event %zu: %" PRIu64 " bytes came between two nodes; nodes "
                              "that run at once are not read",
                              in->path, at->index, at->before - at[-1].after);
        if (i > 0 && at->before < at[-1].after)
            MPL_PASS(release(in, &at[-1], step - 1, at[-1].after - at->before));
        if (at->after < at->before)
            MPL_PASS(release(in, at, step, at->before - at->after));
        MPL_PASS(allocate(in, at, step, at->after > at->before ? at->after - at->before : 0));
    }
    *end = n;
    return MPL_OK;
}

/* Whether the node of a step takes memory of its own in the second run, too: outputs do. */
static bool takes_again(const reader *in, size_t n_steps, uint64_t step)
{
    size_t again = n_steps + (size_t)step;

    return again >= in->n || in->node[again].after > in->node[again].before;
}

/* Leaves out what is there behind the run: the graph's outputs. Others die with the last node. */
static uint32_t drop_outputs(reader *in, size_t n_steps)
{
    uint32_t kept = 0, n = in->list.n;

    for (uint32_t i = 0; i < n; i++) {
        mpl_import_buffer b = in->list.item[i];

        if (b.death == UINT32_MAX && !takes_again(in, n_steps, b.birth))
            b.death = n_steps;
        if (b.death == UINT32_MAX)
            mpl_free(in->ctx, b.name);
        else
            in->list.item[kept++] = b;
    }
    in->list.n = kept;
    return n - kept;
}

/* ---- places ---- */

static mpl_status play(reader *in, const char *planner, mpl_import *out)
{
    mpl_plan *plan = NULL;
    mpl_run run;

    mpl_run_init(&run, in->ctx);
    MPL_PASS(mpl_planner_run(mpl_planner_find(planner), &run, out->problem, &plan));
    mpl_plan_free(in->ctx, out->plan);
    out->plan = plan;
    return MPL_OK;
}

mpl_status mpl_import_read_ort_profile(mpl_ctx *ctx, const mpl_import_in *in, mpl_import *out)
{
    mpl_status st = MPL_OK;
    reader r = {.ctx = ctx, .path = in->path};
    json_t *root = NULL;
    uint32_t n_outputs;
    size_t end = 0;
    bool pattern;

    MPL_TRY(mpl_json_parse(ctx, in->path, in->text, in->size, 0, &root));
    MPL_TRY(read_events(&r, root));
    MPL_TRY(read_run(&r, &end));
    n_outputs = drop_outputs(&r, end);
    if (r.list.n == 0)
        MPL_FAIL(ctx, MPL_EINPUT,
                 "%.200s: its first run takes no memory that it gives back; the profile should "
                 "begin with the session",
                 in->path);
    pattern = end < r.n && r.node[end].before > r.node[0].before;
    MPL_TRY(mpl_import_make(ctx, in, &r.list, out));
    MPL_TRY(play(&r, pattern ? "ort_pattern" : "ort_bfc", out));
    out->granule = ORT_ALIGN;
    if (pattern)
        out->arena_bytes = r.node[end].before - r.node[0].before;
    snprintf(out->note, sizeof out->note,
             "%" PRIu32 " outputs of the run are left out, %zu nodes inside others; offsets are %s"
             " by our account",
             n_outputs, r.n_inner,
             !pattern ? "the BFC arena's"
             : mpl_align_up(out->plan->peak_bytes, ORT_ALIGN) == out->arena_bytes
                 ? "the pattern's"
                 : "the pattern's, not of its size");
out:
    mpl_import_list_fini(ctx, &r.list);
    mpl_free_each(ctx, r.node, r.live);
    json_decref(root);
    return st;
}
