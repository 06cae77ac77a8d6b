/* flatbuffer.c -- see flatbuffer.h. */
#include "graphs/io/tflite/flatbuffer.h"

enum { IDENTIFIER = 4, IDENTIFIER_BYTES = 4, ITEMS_PER_BYTE = 16 };

flat_file flat_open(const void *data, size_t size)
{
    return (flat_file){data, size, NULL, (uint64_t)size * ITEMS_PER_BYTE};
}

bool flat_is(const void *data, size_t size, const char *identifier)
{
    return size >= IDENTIFIER + IDENTIFIER_BYTES &&
           memcmp((const char *)data + IDENTIFIER, identifier, IDENTIFIER_BYTES) == 0;
}

static void fail(flat_file *file, const char *fault)
{
    if (file->fault == NULL)
        file->fault = fault;
}

/* Whether n bytes at `at` lie in the file, which has no fault yet. */
static bool has(const flat_file *file, size_t at, size_t n)
{
    return file->fault == NULL && at <= file->size && n <= file->size - at;
}

/* The little-endian number of n bytes there, which lie in the file. */
static uint64_t number(const flat_file *file, size_t at, unsigned n)
{
    uint64_t x = 0;

    for (unsigned i = n; i-- > 0;)
        x = x << 8 | file->data[at + i];
    return x;
}

static int64_t sign_extend(uint64_t x, unsigned bytes)
{
    unsigned spare = 64 - 8 * bytes;

    return (int64_t)(x << spare) >> spare;
}

static double as_float(uint64_t bits)
{
    uint32_t low = (uint32_t)bits;
    float x;

    memcpy(&x, &low, sizeof x);
    return (double)x;
}

static flat_table table_at(flat_file *file, size_t at)
{
    flat_table t = {.file = file};
    int64_t vtable;

    if (!has(file, at, 4)) {
        fail(file, "a table lies outside of the file");
        return t;
    }
    vtable = (int64_t)at - sign_extend(number(file, at, 4), 4);
    if (vtable < 0 || !has(file, (size_t)vtable, 4)) {
        fail(file, "a table's list of fields lies outside of the file");
        return t;
    }
    t.n_fields = (uint32_t)number(file, (size_t)vtable, 2);
    t.size = (uint32_t)number(file, (size_t)vtable + 2, 2);
    if (t.n_fields < 4 || t.n_fields % 2 != 0 || !has(file, (size_t)vtable, t.n_fields) ||
        t.size < 4 || !has(file, at, t.size)) {
        fail(file, "a table or its list of fields reaches beyond the file");
        return t;
    }
    t.n_fields = t.n_fields / 2 - 2;
    t.at = at;
    t.vtable = (size_t)vtable;
    return t;
}

/* The position that the offset at `at` leads to; 0: outside of the file. */
static size_t follow(flat_file *file, size_t at)
{
    uint64_t step = has(file, at, 4) ? number(file, at, 4) : 0;

    if (step == 0 || !has(file, at, (size_t)step)) {
        fail(file, "an offset leads outside of the file");
        return 0;
    }
    return at + (size_t)step;
}

flat_table flat_root(flat_file *file)
{
    size_t at = follow(file, 0);

    return at > 0 ? table_at(file, at) : (flat_table){.file = file};
}

/* The position of a field of n bytes; 0: it is absent. */
static size_t field_at(const flat_table *t, unsigned field, unsigned n)
{
    uint64_t offset;

    if (t->at == 0 || field >= t->n_fields || t->file->fault != NULL)
        return 0;
    offset = number(t->file, t->vtable + 4 + 2 * (size_t)field, 2);
    if (offset != 0 && (offset < 4 || offset + n > t->size)) {
        fail(t->file, "a field lies outside of its table");
        return 0;
    }
    return offset == 0 ? 0 : t->at + (size_t)offset;
}

int64_t flat_int(const flat_table *t, unsigned field, unsigned bytes, bool is_signed,
                 int64_t otherwise)
{
    size_t at = field_at(t, field, bytes);
    uint64_t x = at > 0 ? number(t->file, at, bytes) : 0;

    return at == 0 ? otherwise : is_signed ? sign_extend(x, bytes) : (int64_t)x;
}

double flat_float(const flat_table *t, unsigned field, double otherwise)
{
    size_t at = field_at(t, field, 4);

    return at == 0 ? otherwise : as_float(number(t->file, at, 4));
}

flat_table flat_child(const flat_table *t, unsigned field)
{
    size_t at = field_at(t, field, 4), to = at > 0 ? follow(t->file, at) : 0;

    return to > 0 ? table_at(t->file, to) : (flat_table){.file = t->file};
}

flat_vector flat_list(const flat_table *t, unsigned field, unsigned item_bytes)
{
    size_t at = field_at(t, field, 4), to = at > 0 ? follow(t->file, at) : 0;
    flat_vector none = {t->file, 0, 0, item_bytes}, v = none;

    if (to == 0)
        return none;
    if (!has(t->file, to, 4)) {
        fail(t->file, "a vector lies outside of the file");
        return none;
    }
    v.n = (uint32_t)number(t->file, to, 4);
    v.at = to + 4;
    if (!has(t->file, v.at, (size_t)v.n * item_bytes)) {
        fail(t->file, "a vector reaches beyond the file");
        return none;
    }
    if (v.n > t->file->left) {
        fail(t->file, "its vectors overlap so often that they hold more than a file can");
        return none;
    }
    t->file->left -= v.n;
    return v;
}

flat_table flat_item(const flat_vector *v, uint32_t i)
{
    size_t to = follow(v->file, v->at + 4 * (size_t)i);

    return to > 0 ? table_at(v->file, to) : (flat_table){.file = v->file};
}

int64_t flat_item_int(const flat_vector *v, uint32_t i)
{
    return sign_extend(number(v->file, v->at + (size_t)i * v->item_bytes, v->item_bytes),
                       v->item_bytes);
}

double flat_item_float(const flat_vector *v, uint32_t i)
{
    return as_float(number(v->file, v->at + (size_t)i * v->item_bytes, 4));
}
