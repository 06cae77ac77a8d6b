/* onnx_message.h -- an encoder of ONNX messages, independent of the reader. */
#pragma once

#include "tests/support/test.h"

typedef struct message {
    uint8_t data[1 << 13];
    size_t n;
} message;

static inline void put_byte(message *m, unsigned byte)
{
    assert_true(m->n < sizeof m->data);
    m->data[m->n++] = (uint8_t)byte;
}

static inline void put_varint(message *m, uint64_t x)
{
    for (; x > 127; x >>= 7)
        put_byte(m, (unsigned)(x & 127) | 128);
    put_byte(m, (unsigned)x);
}

static inline void put_int(message *m, unsigned field, int64_t x)
{
    put_varint(m, field << 3);
    put_varint(m, (uint64_t)x);
}

static inline void put_bytes(message *m, unsigned field, const void *data, size_t n)
{
    put_varint(m, field << 3 | 2);
    put_varint(m, n);
    for (size_t i = 0; i < n; i++)
        put_byte(m, ((const uint8_t *)data)[i]);
}

static inline void put_text(message *m, unsigned field, const char *text)
{
    put_bytes(m, field, text, strlen(text));
}

static inline void put_message(message *m, unsigned field, const message *inner)
{
    put_bytes(m, field, inner->data, inner->n);
}

/* Element types of onnx.proto. */
enum {
    FLOAT = 1,
    UINT8 = 2,
    INT8 = 3,
    UINT16 = 4,
    INT16 = 5,
    INT32 = 6,
    INT64 = 7,
    STRING = 8,
    BOOL = 9,
    FLOAT16 = 10,
    DOUBLE = 11,
    UINT32 = 12,
    UINT64 = 13,
    COMPLEX64 = 14,
    BFLOAT16 = 16,
    FLOAT8E5M2 = 19
};

/* A TensorProto with raw data. */
static inline message tensor(const char *name, int type, unsigned rank, const int64_t *dims,
                             const void *data, size_t n)
{
    message m = {.n = 0};

    for (unsigned i = 0; i < rank; i++)
        put_int(&m, 1, dims[i]);
    put_int(&m, 2, type);
    put_text(&m, 8, name);
    if (data != NULL)
        put_bytes(&m, 9, data, n);
    return m;
}
