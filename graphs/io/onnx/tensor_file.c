/* tensor_file.c -- tensors as files: NumPy's .npy and ONNX's TensorProto. See source.h.
 *
 * Source   NumPy, "NPY format" (numpy.lib.format): magic, version, header length, a Python dict as
 *          text, the elements.
 * Differs  Only C order and memplan's types; the header is padded to 64 bytes, as in NumPy.
 * Limits   Little-endian machines, as the files are. */
#include "graphs/core/file.h"
#include "graphs/io/onnx/onnx_priv.h"

#include <errno.h>
#include <stdlib.h>

static const struct {
    const char *descr; /* in NumPy */
    mpl_type type;
} descrs[] = {
    {"<f8", MPL_TYPE_f64}, {"<f4", MPL_TYPE_f32}, {"<f2", MPL_TYPE_f16}, {"<i8", MPL_TYPE_i64},
    {"<i4", MPL_TYPE_i32}, {"|i1", MPL_TYPE_i8},  {"|u1", MPL_TYPE_u8},  {"|b1", MPL_TYPE_bool},
    {"<i2", MPL_TYPE_i16}, {"<u2", MPL_TYPE_u16}, {"<u4", MPL_TYPE_u32}, {"<u8", MPL_TYPE_u64},
};
#define N_DESCRS (sizeof descrs / sizeof *descrs)

/* ---- .npy ---- */

/* The text after `'key':` in the header, or NULL. */
static const char *header_value(const char *header, const char *key)
{
    char quoted[32];
    const char *at;

    snprintf(quoted, sizeof quoted, "'%s'", key);
    at = strstr(header, quoted);
    if (at == NULL)
        return NULL;
    at += strlen(quoted);
    at += strspn(at, " ");
    if (*at != ':')
        return NULL;
    at++;
    return at + strspn(at, " ");
}

static mpl_status npy_type(mpl_ctx *ctx, const char *path, const char *header, mpl_type *type)
{
    const char *at = header_value(header, "descr");
    char descr[8] = "";

    if (at == NULL || sscanf(at, "'%7[^']'", descr) != 1)
        return MPL_REFUSE(ctx, "%s: the .npy header gives no simple element type", path);
    for (size_t i = 0; i < N_DESCRS; i++) {
        bool native = descr[0] == '=' || descr[0] == '<' ||
                      (descr[0] == '|' && descr[1] != '\0' && descr[2] == '1');

        if (native && strcmp(descr + 1, descrs[i].descr + 1) == 0)
            return *type = descrs[i].type, MPL_OK;
    }
    if (descr[0] == '>')
        return MPL_REFUSE(ctx, "%s: elements '%s' are big-endian; little-endian ones are needed",
                          path, descr);
    return MPL_REFUSE(ctx, "%s: element type '%s' is none that memplan has", path, descr);
}

/* Parses "(2, 3)", "(2,)" or "()". */
static mpl_status npy_shape(mpl_ctx *ctx, const char *path, const char *header, mpl_shape *shape)
{
    const char *at = header_value(header, "shape");
    char *end;

    shape->rank = 0;
    if (at == NULL || *at++ != '(')
        return MPL_REFUSE(ctx, "%s: the .npy header gives no shape", path);
    for (;;) {
        at += strspn(at, " ");
        if (*at == ')')
            break;
        errno = 0;
        if (shape->rank == MPL_MAX_RANK)
            return MPL_REFUSE(ctx, "%s: more than %d dims", path, MPL_MAX_RANK);
        if (*at < '0' || *at > '9' ||
            (shape->dim[shape->rank++] = strtoll(at, &end, 10), errno != 0))
            return MPL_REFUSE(ctx, "%s: the .npy header has a bad dim", path);
        at = end + strspn(end, " ");
        if (*at == ',')
            at++;
        else if (*at != ')')
            return MPL_REFUSE(ctx, "%s: the .npy header's shape is cut", path);
    }
    return MPL_OK;
}

static mpl_status npy_order(mpl_ctx *ctx, const char *path, const char *header)
{
    const char *order = header_value(header, "fortran_order");

    if (order == NULL || (strncmp(order, "False", 5) != 0 && strncmp(order, "True", 4) != 0))
        return MPL_REFUSE(ctx, "%s: the .npy header's fortran_order is neither True nor False",
                          path);
    if (order[0] == 'T')
        return MPL_REFUSE(
            ctx, "%s: elements in Fortran order; C order is needed (numpy.ascontiguousarray)",
            path);
    return MPL_OK;
}

/* The start and length of the header's text; false: the file is too short. */
static bool npy_header(const uint8_t *data, size_t size, size_t *begin, size_t *length)
{
    if (size < 12 || data[6] < 1 || data[6] > 3)
        return false;
    *begin = data[6] == 1 ? 10 : 12;
    *length = (size_t)data[8] | (size_t)data[9] << 8;
    if (data[6] > 1)
        *length |= (size_t)data[10] << 16 | (size_t)data[11] << 24;
    return *length <= size - *begin;
}

static mpl_status read_npy(mpl_ctx *ctx, const char *path, const uint8_t *data, size_t size,
                           mpl_tensor *tensor)
{
    mpl_status st = MPL_OK;
    mpl_tensor t = {.data = NULL};
    size_t begin, length;
    char *header = NULL, text[200];
    uint64_t count, bytes;

    if (!npy_header(data, size, &begin, &length))
        MPL_FAIL(ctx, MPL_EINPUT, "%s: its .npy header is cut, or of a version other than 1 to 3",
                 path);
    MPL_TRY(mpl_new(ctx, header, length + 1));
    memcpy(header, data + begin, length);
    MPL_TRY(npy_type(ctx, path, header, &t.type));
    MPL_TRY(npy_shape(ctx, path, header, &t.shape));
    MPL_TRY(npy_order(ctx, path, header));
    if (!mpl_shape_count(&t.shape, &count) || !mpl_type_size(t.type, count, &bytes))
        MPL_FAIL(ctx, MPL_EINPUT, "%s: its shape %s needs more than 2^63 bytes", path,
                 mpl_shape_text(&t.shape, text));
    if (bytes != size - begin - length)
        MPL_FAIL(ctx, MPL_EINPUT,
                 "%s: it has %zu bytes of elements; its shape %s needs %" PRIu64 " of %s", path,
                 size - begin - length, mpl_shape_text(&t.shape, text), bytes,
                 mpl_type_name(t.type));
    MPL_TRY((t.data = mpl_alloc(ctx, bytes, 1)) != NULL ? MPL_OK : MPL_EMEM);
    memcpy(t.data, data + begin + length, bytes);
    onnx_tidy_bools(t.type, t.data, count);
    *tensor = t;
out:
    mpl_free(ctx, header);
    return st;
}

mpl_status mpl_tensor_write(mpl_ctx *ctx, const char *path, const mpl_tensor *tensor)
{
    mpl_status st = MPL_OK;
    mpl_new_file file = {NULL, NULL, NULL};
    char text[512];
    const char *descr = NULL;
    uint64_t count;
    size_t n, size = mpl_type_bytes(tensor->type);

    for (size_t i = 0; i < N_DESCRS; i++)
        if (descrs[i].type == tensor->type)
            descr = descrs[i].descr;
    if (descr == NULL || !mpl_shape_count(&tensor->shape, &count))
        MPL_FAIL(ctx, MPL_EINPUT, "%s: .npy has no element type for %s", path,
                 mpl_type_name(tensor->type));
    n = (size_t)snprintf(text, sizeof text, "{'descr': '%s', 'fortran_order': False, 'shape': (",
                         descr);
    for (uint32_t i = 0; i < tensor->shape.rank; i++)
        n += (size_t)snprintf(text + n, sizeof text - n,
                              i + 1 < tensor->shape.rank ? "%" PRId64 ", " : "%" PRId64 ",",
                              tensor->shape.dim[i]);
    n += (size_t)snprintf(text + n, sizeof text - n, "), }");
    while ((10 + n + 1) % 64 != 0)
        text[n++] = ' ';
    text[n++] = '\n';
    MPL_TRY(mpl_file_begin(ctx, path, &file));
    if (fwrite("\x93NUMPY\x01\x00", 1, 8, file.stream) != 8 ||
        fputc((int)(n & 255), file.stream) == EOF || fputc((int)(n >> 8), file.stream) == EOF ||
        fwrite(text, 1, n, file.stream) != n ||
        fwrite(tensor->data, size, count, file.stream) != count)
        MPL_FAIL(ctx, MPL_EINPUT, "%s: %s", path, strerror(errno));
    MPL_TRY(mpl_file_commit(ctx, &file));
out:
    mpl_file_end(ctx, &file);
    return st;
}

/* ---- TensorProto ---- */

static mpl_status read_proto(mpl_ctx *ctx, const char *path, const void *data, size_t size,
                             mpl_tensor *tensor)
{
    mpl_status st = MPL_OK;
    onnx_memory memory;
    ProtobufCMessage *message = NULL;
    mpl_tensor t;
    void *owned = NULL;
    uint64_t count = 0, bytes = 0;

    MPL_TRY(onnx_unpack(&memory, ctx, path, "a .npy file or an ONNX tensor",
                        &onnx__tensor_proto__descriptor, data, size, &message));
    MPL_TRY(onnx_tensor(ctx, path, (const Onnx__TensorProto *)message, &t, &owned));
    if (owned == NULL) {
        mpl_shape_count(&t.shape, &count);
        mpl_type_size(t.type, count, &bytes);
        MPL_TRY((owned = mpl_alloc(ctx, bytes, 1)) != NULL ? MPL_OK : MPL_EMEM);
        memcpy(owned, t.data, bytes);
    }
    t.data = owned, owned = NULL;
    *tensor = t;
out:
    mpl_free(ctx, owned);
    if (message != NULL)
        protobuf_c_message_free_unpacked(message, &memory.allocator);
    return st;
}

mpl_status mpl_tensor_read(mpl_ctx *ctx, const char *path, mpl_tensor *tensor)
{
    mpl_status st = MPL_OK;
    char *data = NULL;
    size_t size;

    MPL_TRY(mpl_file_read(ctx, path, &data, &size));
    if (size >= 6 && memcmp(data, "\x93NUMPY", 6) == 0)
        MPL_TRY(read_npy(ctx, path, (const uint8_t *)data, size, tensor));
    else
        MPL_TRY(read_proto(ctx, path, data, size, tensor));
out:
    mpl_free(ctx, data);
    return st;
}
