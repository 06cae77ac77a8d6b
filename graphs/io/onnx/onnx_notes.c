/* onnx_notes.c -- metadata_props of ONNX models, and messages field by field. See source.h.
 *
 * A model is copied byte by byte, so unknown fields and other encodings stay as they are.
 * Source   Protocol Buffers, "Encoding"; onnx.proto for the numbers of the fields */
#include <sys/stat.h>

#include "graphs/core/file.h"
#include "graphs/io/onnx/onnx_priv.h"

/* ---- fields ---- */

static bool read_varint(const uint8_t **at, const uint8_t *end, uint64_t *out)
{
    *out = 0;
    for (unsigned shift = 0; *at < end && shift < 64; shift += 7) {
        uint8_t byte = *(*at)++;

        *out |= (uint64_t)(byte & 127) << shift;
        if (byte < 128)
            return true;
    }
    return false;
}

bool onnx_next_field(const uint8_t **at, const uint8_t *end, onnx_field *out)
{
    uint64_t tag, length = 0, number;
    onnx_field f = {.all = *at};

    if (*at >= end || !read_varint(at, end, &tag))
        return false;
    switch (tag & 7) {
    case 0:
        if (!read_varint(at, end, &number))
            return false;
        break;
    case 1:
        length = 8;
        break;
    case 2:
        if (!read_varint(at, end, &length))
            return false;
        f.data = *at;
        break;
    case 5:
        length = 4;
        break;
    default:
        return false;
    }
    if (length > (uint64_t)(end - *at))
        return false;
    *at += length;
    f.end = *at;
    f.number = (unsigned)(tag >> 3);
    f.size = (size_t)length;
    *out = f;
    return true;
}

static void put_bytes(onnx_sink *to, const void *data, size_t n)
{
    to->bytes += n;
    if (to->stream != NULL && n > 0)
        fwrite(data, 1, n, to->stream);
}

static void put_varint(onnx_sink *to, uint64_t x)
{
    uint8_t byte[10];
    size_t n = 0;

    for (; x > 127; x >>= 7)
        byte[n++] = (uint8_t)(x | 128);
    byte[n++] = (uint8_t)x;
    put_bytes(to, byte, n);
}

void onnx_put_tag(onnx_sink *to, unsigned number, uint64_t size)
{
    put_varint(to, (uint64_t)number << 3 | 2);
    put_varint(to, size);
}

void onnx_put_text(onnx_sink *to, unsigned number, const char *text)
{
    onnx_put_tag(to, number, strlen(text));
    put_bytes(to, text, strlen(text));
}

void onnx_put_number(onnx_sink *to, unsigned number, uint64_t x)
{
    put_varint(to, (uint64_t)number << 3);
    put_varint(to, x);
}

typedef struct stream_buffer {
    ProtobufCBuffer base;
    FILE *stream;
} stream_buffer;

static void append(ProtobufCBuffer *buffer, size_t n, const uint8_t *data)
{
    fwrite(data, 1, n, ((stream_buffer *)buffer)->stream);
}

void onnx_put_message(onnx_sink *to, unsigned number, const ProtobufCMessage *message)
{
    size_t size = protobuf_c_message_get_packed_size(message);
    stream_buffer buffer = {{append}, to->stream};

    onnx_put_tag(to, number, size);
    to->bytes += size;
    if (to->stream != NULL)
        protobuf_c_message_pack_to_buffer(message, &buffer.base);
}

/* ---- notes ---- */

Onnx__StringStringEntryProto onnx_note_message(const mpl_onnx_note *note)
{
    Onnx__StringStringEntryProto m = ONNX__STRING_STRING_ENTRY_PROTO__INIT;

    m.key = (char *)note->key;
    m.value = (char *)note->value;
    return m;
}

/* Field `number` of the message in a field, as text. */
static bool text_of_field(const onnx_field *message, unsigned number, onnx_field *out)
{
    const uint8_t *at = message->data, *end = message->data + message->size;

    while (onnx_next_field(&at, end, out))
        if (out->number == number && out->data != NULL)
            return true;
    return false;
}

const char *mpl_onnx_note_find(const void *data, size_t size, const char *key, size_t *n)
{
    const uint8_t *at = data, *end = at + size;
    onnx_field f, text;

    while (onnx_next_field(&at, end, &f))
        if (f.number == ONNX_MODEL_NOTE && f.data != NULL && text_of_field(&f, 1, &text) &&
            text.size == strlen(key) && memcmp(text.data, key, text.size) == 0 &&
            text_of_field(&f, 2, &text)) {
            *n = text.size;
            return (const char *)text.data;
        }
    return NULL;
}

static bool is_message(const onnx_field *field, unsigned number)
{
    return field->number == number && field->data != NULL;
}

/* Whether an initialiser of the model lies in another file. */
static bool has_external_data(const uint8_t *data, size_t size)
{
    enum { INITIALISER = 5, EXTERNAL = 13 };
    const uint8_t *at = data, *in_graph, *in_tensor;
    onnx_field f, g, t;

    while (onnx_next_field(&at, data + size, &f))
        for (in_graph = f.data;
             is_message(&f, ONNX_MODEL_GRAPH) && onnx_next_field(&in_graph, f.end, &g);)
            for (in_tensor = g.data;
                 is_message(&g, INITIALISER) && onnx_next_field(&in_tensor, g.end, &t);)
                if (t.number == EXTERNAL)
                    return true;
    return false;
}

static bool same_folder(const char *a, const char *b)
{
    const char *const path[] = {a, b};
    struct stat facts[2];

    for (int i = 0; i < 2; i++) {
        const char *slash = strrchr(path[i], '/');
        char folder[4096];

        snprintf(folder, sizeof folder, "%.*s", slash != NULL ? (int)(slash - path[i]) + 1 : 1,
                 slash != NULL ? path[i] : ".");
        if (stat(folder, &facts[i]) != 0)
            return false;
    }
    return facts[0].st_dev == facts[1].st_dev && facts[0].st_ino == facts[1].st_ino;
}

/* Copies the model's fields except notes with the prefix. False: the last field is truncated. */
static bool copy_fields(const uint8_t *data, size_t size, const char *prefix, onnx_sink *to)
{
    const uint8_t *at = data, *end = data + size;
    onnx_field f, key;

    while (onnx_next_field(&at, end, &f)) {
        bool ours = f.number == ONNX_MODEL_NOTE && f.data != NULL && text_of_field(&f, 1, &key) &&
                    key.size >= strlen(prefix) && memcmp(key.data, prefix, strlen(prefix)) == 0;

        if (!ours)
            put_bytes(to, f.all, (size_t)(f.end - f.all));
    }
    return at == end;
}

mpl_status mpl_onnx_annotate(mpl_ctx *ctx, const char *from, const char *to, const char *prefix,
                             uint32_t n_notes, const mpl_onnx_note *notes)
{
    mpl_status st = MPL_OK;
    char *data = NULL;
    size_t size;
    onnx_memory memory;
    ProtobufCMessage *model = NULL;
    mpl_new_file file = {0};
    onnx_sink sink = {0};

    MPL_TRY(mpl_file_read(ctx, from, &data, &size));
    MPL_TRY(onnx_unpack(&memory, ctx, from, "an ONNX model", &onnx__model_proto__descriptor, data,
                        size, &model));
    if (has_external_data((const uint8_t *)data, size) && !same_folder(from, to))
        MPL_FAIL(ctx, MPL_EINPUT,
                 "%.200s: weights of %.200s lie in files beside it; write the copy there", to,
                 from);
    MPL_TRY(mpl_file_begin(ctx, to, &file));
    sink.stream = file.stream;
    if (!copy_fields((const uint8_t *)data, size, prefix, &sink))
        MPL_FAIL(ctx, MPL_EINPUT, "%s: not an ONNX model, or cut", from);
    for (uint32_t i = 0; i < n_notes; i++) {
        Onnx__StringStringEntryProto note = onnx_note_message(&notes[i]);

        onnx_put_message(&sink, ONNX_MODEL_NOTE, &note.base);
    }
    MPL_TRY(mpl_file_commit(ctx, &file));
out:
    mpl_file_end(ctx, &file);
    if (model != NULL)
        protobuf_c_message_free_unpacked(model, &memory.allocator);
    mpl_free(ctx, data);
    return st;
}
