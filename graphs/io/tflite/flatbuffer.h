/* flatbuffer.h -- reads a FlatBuffers file that may hold anything.
 *
 * Every offset is checked where it is followed. A reader need not test each step: the first fault
 * stays in file->fault, and from then on everything is absent or empty. Since several offsets may
 * lead to one vector, the items of all vectors that were read are counted against file->left, so
 * that the work is linear in the file's size.
 *
 * Source   FlatBuffers, "FlatBuffer Internals": a table is a signed offset back to its vtable,
 * which has its own size, the table's size, and an offset for each field (0: absent). Vectors and
 *          texts are an offset forward to a count and the items. All numbers are little endian. */
#pragma once

#include "graphs/core/base.h"

typedef struct flat_file {
    const uint8_t *data;
    size_t size;
    const char *fault; /* the first thing that was wrong; NULL: nothing so far */
    uint64_t left;     /* items that vectors may still have, all together */
} flat_file;

typedef struct flat_table {
    flat_file *file;
    size_t at, vtable; /* 0: the table is absent, and all of its fields with it */
    uint32_t n_fields, size;
} flat_table;

typedef struct flat_vector {
    flat_file *file;
    size_t at; /* of the first item */
    uint32_t n, item_bytes;
} flat_vector;

flat_file flat_open(const void *data, size_t size);
/* Whether the file has that identifier (4 characters). */
bool flat_is(const void *data, size_t size, const char *identifier);
flat_table flat_root(flat_file *file);

/* Fields; what is absent is the default, a table at 0, or a vector of no items. */
int64_t flat_int(const flat_table *table, unsigned field, unsigned bytes, bool is_signed,
                 int64_t otherwise);
double flat_float(const flat_table *table, unsigned field, double otherwise);
flat_table flat_child(const flat_table *table, unsigned field);
flat_vector flat_list(const flat_table *table, unsigned field, unsigned item_bytes);

/* Item i of a vector, i < n. */
flat_table flat_item(const flat_vector *vector, uint32_t i);
int64_t flat_item_int(const flat_vector *vector, uint32_t i);
double flat_item_float(const flat_vector *vector, uint32_t i);
