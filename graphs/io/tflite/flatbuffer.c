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
static size_t field_at(const flat_table *table, unsigned field, unsigned n)
{
    uint64_t offset;

    if (table->at == 0 || field >= table->n_fields || table->file->fault != NULL)
        return 0;
    offset = number(table->file, table->vtable + 4 + 2 * (size_t)field, 2);
    if (offset != 0 && (offset < 4 || offset + n > table->size)) {
        fail(table->file, "a field lies outside of its table");
        return 0;
    }
    return offset == 0 ? 0 : table->at + (size_t)offset;
}

int64_t flat_int(const flat_table *table, unsigned field, unsigned bytes, bool is_signed,
                 int64_t otherwise)
{
    size_t at = field_at(table, field, bytes);
    uint64_t x = at > 0 ? number(table->file, at, bytes) : 0;

    return at == 0 ? otherwise : is_signed ? sign_extend(x, bytes) : (int64_t)x;
}

double flat_float(const flat_table *table, unsigned field, double otherwise)
{
    size_t at = field_at(table, field, 4);

    return at == 0 ? otherwise : as_float(number(table->file, at, 4));
}

flat_table flat_child(const flat_table *table, unsigned field)
{
    size_t at = field_at(table, field, 4), to = at > 0 ? follow(table->file, at) : 0;

    return to > 0 ? table_at(table->file, to) : (flat_table){.file = table->file};
}

flat_vector flat_list(const flat_table *table, unsigned field, unsigned item_bytes)
{
    size_t at = field_at(table, field, 4), to = at > 0 ? follow(table->file, at) : 0;
    flat_vector none = {table->file, 0, 0, item_bytes}, v = none;

    if (to == 0)
        return none;
    if (!has(table->file, to, 4)) {
        fail(table->file, "a vector lies outside of the file");
        return none;
    }
    v.n = (uint32_t)number(table->file, to, 4);
    v.at = to + 4;
    if (!has(table->file, v.at, (size_t)v.n * item_bytes)) {
        fail(table->file, "a vector reaches beyond the file");
        return none;
    }
    if (v.n > table->file->left) {
        fail(table->file, "its vectors overlap so often that they hold more than a file can");
        return none;
    }
    table->file->left -= v.n;
    return v;
}

flat_table flat_item(const flat_vector *vector, uint32_t i)
{
    size_t to = follow(vector->file, vector->at + 4 * (size_t)i);

    return to > 0 ? table_at(vector->file, to) : (flat_table){.file = vector->file};
}

int64_t flat_item_int(const flat_vector *vector, uint32_t i)
{
    return sign_extend(
        number(vector->file, vector->at + (size_t)i * vector->item_bytes, vector->item_bytes),
        vector->item_bytes);
}

double flat_item_float(const flat_vector *vector, uint32_t i)
{
    return as_float(number(vector->file, vector->at + (size_t)i * vector->item_bytes, 4));
}
