/* executorch_program.c -- the memory plan inside an ExecuTorch program (.pte).
 *
 * Source   executorch, schema/program.fbs (identifier ET12): a method has values, of which tensors
 *          may have allocation_info (memory, offset), and chains of instructions, whose arguments
 *          are values; non_const_buffer_sizes[m] is the size of memory m. exir/memory_planning.py:
 *          sizes and offsets are multiples of the alignment, 16 unless it is set.
 * Lives    Instruction i is step i + 1. A tensor lives from the first instruction that has it as an
 *          argument to the last; inputs live from 0, outputs to the end, and state (tensors with a
 *          name or contents of their own, and a place) always.
 * Views    The result of et_view lies where its argument lies: one buffer. So does what is read and
 *          never written: the exporter removes et_view where all dims are numbers.
 * Aligned  The largest power of two up to 16 that all offsets keep to.
 * Limits   The first method. Jumps back (loops over a submodule) are refused: what lives across a
 *          round cannot be told. Delegates plan their own memory, which the file does not show. */
#include "graphs/io/tflite/flatbuffer.h"
#include "planners/import/base/import_priv.h"

#include <ctype.h>

enum { PLAN_VALUES = 2, PLAN_INPUTS, PLAN_OUTPUTS, PLAN_CHAINS, PLAN_OPERATORS, PLAN_SIZES = 8 };
enum { TENSOR_TYPE = 0, TENSOR_DIMS = 2, TENSOR_DATA = 5, TENSOR_PLACE = 6, TENSOR_EXTRA = 9 };
enum { VALUE_TENSOR = 5, VALUE_TENSORS = 10, VALUE_OPTIONAL_TENSORS = 11 }; /* of KernelTypes */
enum { CALL_KERNEL = 1, CALL_DELEGATE, CALL_MOVE, CALL_JUMP };
enum { MOST_ALIGNED = 16 };

typedef struct reader {
    mpl_ctx *ctx;
    const char *path;
    flat_file file;
    flat_table plan;
    flat_vector values, operators;
    uint32_t *buffer; /* [values.n] in the list; MPL_NONE: no planned tensor */
    uint64_t step;
    mpl_import_list list;
    uint32_t n_delegates;
} reader;

bool mpl_import_is_executorch_program(const mpl_import_in *in)
{
    return in->size >= 8 && in->text[4] == 'E' && in->text[5] == 'T' &&
           isdigit((unsigned char)in->text[6]) && isdigit((unsigned char)in->text[7]);
}

static mpl_status check_file(const reader *in)
{
    if (in->file.fault != NULL)
        return MPL_REFUSE(in->ctx, "%.200s: no ExecuTorch program: %s", in->path, in->file.fault);
    return MPL_OK;
}

/* Bytes of an element of each ScalarType; 0: unknown. */
static uint64_t element_bytes(int64_t type)
{
    static const uint8_t bytes[] = {1, 1, 2, 4, 8, 2, 4, 8, 4, 8, 16, 1,
                                    1, 1, 4, 2, 1, 1, 1, 1, 1, 1, 2};

    if (type > 22) /* BITS16 is followed by float8 types, then by wider unsigned integers */
        return type <= 26 ? 1 : type == 27 ? 2 : type == 28 ? 4 : type == 29 ? 8 : 0;
    return type >= 0 ? bytes[type] : 0;
}

static mpl_status tensor_bytes(reader *in, const flat_table *table, uint32_t value, uint64_t *bytes)
{
    flat_vector dims = flat_list(table, TENSOR_DIMS, 4);
    int64_t type = flat_int(table, TENSOR_TYPE, 1, false, 0);

    *bytes = element_bytes(type);
    if (*bytes == 0)
        return MPL_REFUSE(in->ctx, "%.200s: value %u has the type %" PRId64 ", unknown here",
                          in->path, value, type);
    for (uint32_t i = 0; i < dims.n; i++) {
        int64_t dim = flat_item_int(&dims, i);

        if (dim < 0 || !mpl_mul_bytes(*bytes, (uint64_t)dim, bytes) || *bytes > INT64_MAX)
            return MPL_REFUSE(in->ctx, "%.200s: value %u has a dim of %" PRId64 ", or is too large",
                              in->path, value, dim);
    }
    return MPL_OK;
}

static mpl_status read_tensor(reader *in, uint32_t value, const flat_table *table)
{
    flat_table place = flat_child(table, TENSOR_PLACE), extra = flat_child(table, TENSOR_EXTRA);
    flat_vector sizes = flat_list(&in->plan, PLAN_SIZES, 8);
    mpl_import_buffer b = {.birth = UINT64_MAX, .block = MPL_NONE};
    int64_t memory = flat_int(&place, 0, 4, false, 0);
    uint64_t end;
    char name[24];

    if (place.at == 0)
        return MPL_OK;
    MPL_PASS(tensor_bytes(in, table, value, &b.bytes));
    MPL_PASS(check_file(in));
    if (b.bytes == 0)
        return MPL_OK;
    b.offset = (uint64_t)flat_int(&place, 1, 4, false, 0) |
               (uint64_t)flat_int(&place, 2, 4, false, 0) << 32;
    if (memory >= sizes.n || !mpl_add_bytes(b.offset, b.bytes, &end) ||
        end > (uint64_t)flat_item_int(&sizes, (uint32_t)memory))
        return MPL_REFUSE(in->ctx, "%.200s: value %u ends beyond its memory %" PRId64, in->path,
                          value, memory);
    MPL_PASS(mpl_import_pool(in->ctx, in->path, &in->list, (uint64_t)memory, &b.pool));
    if (extra.at != 0 || flat_int(table, TENSOR_DATA, 4, false, 0) > 0)
        b.birth = 0, b.death = UINT64_MAX;
    in->buffer[value] = in->list.n;
    return mpl_import_add(in->ctx, &in->list, &b, name,
                          (size_t)snprintf(name, sizeof name, "%u", value));
}

static mpl_status read_values(reader *in)
{
    MPL_PASS(mpl_new(in->ctx, in->buffer, in->values.n));
    for (uint32_t v = 0; v < in->values.n; v++) {
        flat_table value = flat_item(&in->values, v), tensor = flat_child(&value, 1);

        in->buffer[v] = MPL_NONE;
        if (flat_int(&value, 0, 1, false, 0) == VALUE_TENSOR)
            MPL_PASS(read_tensor(in, v, &tensor));
        MPL_PASS(check_file(in));
    }
    return MPL_OK;
}

/* Lets value `view` be buffer `of`, where both have one place. */
static void join_view(reader *in, uint32_t of, int64_t view)
{
    mpl_import_buffer *buffer, *b;

    if (of == MPL_NONE || view < 0 || view >= in->values.n || in->buffer[view] == MPL_NONE)
        return;
    buffer = &in->list.item[of], b = &in->list.item[in->buffer[view]];
    if (buffer == b || buffer->pool != b->pool || buffer->offset != b->offset ||
        b->birth != UINT64_MAX)
        return;
    buffer->bytes = mpl_max_u64(buffer->bytes, b->bytes);
    mpl_free(in->ctx, b->name);
    b->name = NULL;
    in->buffer[view] = of;
}

/* The buffer that was needed first, most lately, among those at the place of another. */
static uint32_t latest_at(const reader *in, const mpl_import_buffer *place)
{
    uint32_t found = MPL_NONE;

    for (uint32_t b = 0; b < in->list.n; b++) {
        const mpl_import_buffer *item = &in->list.item[b];

        if (item->name != NULL && item->birth != UINT64_MAX && item->offset == place->offset &&
            item->pool == place->pool &&
            (found == MPL_NONE || item->birth >= in->list.item[found].birth))
            found = b;
    }
    return found;
}

/* The current step needs a tensor. One that is read but that nothing has written is what is left
 * of a view that the exporter removed: it lies where the tensor is that it views. */
static void need_tensor(reader *in, int64_t v, bool written)
{
    mpl_import_buffer *buffer;

    if (v < 0 || v >= in->values.n || in->buffer[v] == MPL_NONE)
        return;
    buffer = &in->list.item[in->buffer[v]];
    if (!written && buffer->birth == UINT64_MAX)
        join_view(in, latest_at(in, buffer), v);
    buffer = &in->list.item[in->buffer[v]];
    buffer->birth = mpl_min_u64(buffer->birth, in->step);
    buffer->death = mpl_max_u64(buffer->death, in->step + 1);
}

/* The current step needs a value, or the tensors of a list. */
static void need(reader *in, int64_t v, bool written)
{
    flat_table value, items;
    int64_t type;

    if (v < 0 || v >= in->values.n)
        return;
    need_tensor(in, v, written);
    value = flat_item(&in->values, (uint32_t)v);
    type = flat_int(&value, 0, 1, false, 0);
    if (type != VALUE_TENSORS && type != VALUE_OPTIONAL_TENSORS)
        return;
    items = flat_child(&value, 1);
    for (flat_vector list = flat_list(&items, 0, 4); list.n > 0; list.n--)
        need_tensor(in, flat_item_int(&list, list.n - 1), written);
}

static bool is_view(reader *in, const flat_table *call)
{
    static const char view[] = "executorch_prim::et_view";
    int64_t op = flat_int(call, 0, 4, true, 0);
    flat_table operator;
    flat_vector name;

    if (op < 0 || op >= in->operators.n)
        return false;
    operator= flat_item(&in->operators, (uint32_t)op);
    name = flat_list(&operator, 0, 1);
    return name.n == sizeof view - 1 && in->file.fault == NULL &&
           memcmp(in->file.data + name.at, view, name.n) == 0;
}

/* A kernel's last argument is its result, or the list of its results. */
static void read_call(reader *in, const flat_table *call, const flat_vector *args)
{
    int64_t from;

    if (args->n > 1 && is_view(in, call)) {
        from = flat_item_int(args, 0);
        if (from >= 0 && from < in->values.n)
            join_view(in, in->buffer[from], flat_item_int(args, args->n - 1));
    }
    if (args->n > 0)
        need(in, flat_item_int(args, args->n - 1), true);
    for (uint32_t i = 0; i + 1 < args->n; i++)
        need(in, flat_item_int(args, i), false);
}

static mpl_status read_instruction(reader *in, const flat_table *instruction, uint32_t at)
{
    int64_t type = flat_int(instruction, 0, 1, false, 0);
    flat_table call = flat_child(instruction, 1);
    flat_vector args;

    in->step++;
    if (type == CALL_JUMP && flat_int(&call, 1, 4, true, 0) <= at)
        return MPL_REFUSE(in->ctx, "%.200s: instruction %u jumps back: lives in loops are not read",
                          in->path, at);
    if (type == CALL_MOVE)
        need(in, flat_int(&call, 1, 4, true, 0), true);
    if (type == CALL_MOVE || type == CALL_JUMP)
        need(in, flat_int(&call, 0, 4, true, 0), false);
    if (type != CALL_KERNEL && type != CALL_DELEGATE)
        return MPL_OK;
    args = flat_list(&call, 1, 4);
    if (type == CALL_KERNEL)
        read_call(in, &call, &args);
    for (uint32_t i = 0; type == CALL_DELEGATE && i < args.n; i++)
        need(in, flat_item_int(&args, i), true);
    in->n_delegates += type == CALL_DELEGATE;
    return MPL_OK;
}

static void need_all(reader *in, unsigned field, bool written)
{
    flat_vector list = flat_list(&in->plan, field, 4);

    for (uint32_t i = 0; i < list.n; i++)
        need(in, flat_item_int(&list, i), written);
}

static mpl_status read_method(reader *in)
{
    flat_vector chains = flat_list(&in->plan, PLAN_CHAINS, 4);

    in->values = flat_list(&in->plan, PLAN_VALUES, 4);
    in->operators = flat_list(&in->plan, PLAN_OPERATORS, 4);
    MPL_PASS(check_file(in));
    MPL_PASS(read_values(in));
    need_all(in, PLAN_INPUTS, true);
    for (uint32_t c = 0; c < chains.n; c++) {
        flat_table chain = flat_item(&chains, c);
        flat_vector list = flat_list(&chain, 2, 4);

        for (uint32_t i = 0; i < list.n; i++) {
            flat_table instruction = flat_item(&list, i);

            MPL_PASS(read_instruction(in, &instruction, i));
            MPL_PASS(check_file(in));
        }
    }
    need_all(in, PLAN_OUTPUTS, false);
    in->step++;
    return check_file(in);
}

/* Drops what became part of another buffer; what nothing needs is alone at a step of its own. */
static void finish_list(reader *in)
{
    uint32_t n = 0, align;

    for (uint32_t b = 0; b < in->list.n; b++)
        if (in->list.item[b].name != NULL)
            in->list.item[n++] = in->list.item[b];
    in->list.n = n;
    align = mpl_import_alignment(&in->list, MOST_ALIGNED);
    for (uint32_t b = 0; b < n; b++) {
        mpl_import_buffer *buffer = &in->list.item[b];

        buffer->align = align;
        if (buffer->birth == UINT64_MAX)
            buffer->birth = in->step + b, buffer->death = in->step + b + 1;
    }
    for (uint32_t b = 0; b < n; b++)
        if (in->list.item[b].death == UINT64_MAX)
            in->list.item[b].death = in->step + n;
}

mpl_status mpl_import_read_executorch_program(mpl_ctx *ctx, const mpl_import_in *in,
                                              mpl_import *out)
{
    mpl_status st = MPL_OK;
    reader r = {.ctx = ctx, .path = in->path, .file = flat_open(in->text, in->size)};
    flat_table program = flat_root(&r.file);
    flat_vector plans = flat_list(&program, 1, 4), sizes;

    if (!flat_is(in->text, in->size, "ET12"))
        MPL_FAIL(ctx, MPL_EINPUT, "%.200s: an ExecuTorch program of format %.4s; ET12 is read",
                 in->path, in->text + 4);
    MPL_TRY(check_file(&r));
    if (plans.n == 0)
        MPL_FAIL(ctx, MPL_EINPUT, "%.200s: it has no method", in->path);
    r.plan = flat_item(&plans, 0);
    MPL_TRY(read_method(&r));
    finish_list(&r);
    r.list.may_be_empty = true;
    MPL_TRY(mpl_import_make(ctx, in, &r.list, out));
    sizes = flat_list(&r.plan, PLAN_SIZES, 8);
    if (r.list.n_pools > 0)
        out->arena_bytes = (uint64_t)flat_item_int(&sizes, (uint32_t)r.list.pool_label[0]);
    out->granule = r.list.n > 0 ? r.list.item[0].align : 0;
    snprintf(out->note, sizeof out->note, "%u memories; %u calls of delegates, %u more methods",
             r.list.n_pools, r.n_delegates, plans.n - 1);
out:
    mpl_free(ctx, r.buffer);
    mpl_import_list_fini(ctx, &r.list);
    return st;
}
