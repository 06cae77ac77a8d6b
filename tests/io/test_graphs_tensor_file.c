/* Tensor files, .npy and TensorProto: every type in every storage form, byte by byte; every error
 * with its line; writing and reading back. */
#include "tests/support/onnx_message.h"
#include "tests/support/folder.h"

#include <sys/stat.h>

/* The file must hold exactly these n elements and dims ("[3]"). */
static void assert_holds(const char *what, const message *m, mpl_type type, const char *dims,
                         const void *bytes, size_t n)
{
    mpl_ctx ctx = mpl_ctx_default();
    mpl_tensor t = {.data = NULL};
    char text[200];

    if (mpl_tensor_read(&ctx, folder_put("good", m->data, m->n), &t) != MPL_OK)
        fail_msg("%s, %s: %s", what, mpl_type_name(type), ctx.message);
    assert_string_equal(mpl_type_name(t.type), mpl_type_name(type));
    assert_string_equal(mpl_shape_text(&t.shape, text), dims);
    if (memcmp(t.data, bytes, n * mpl_type_bytes(type)) != 0)
        fail_msg("%s, %s: other elements than were put in", what, mpl_type_name(type));
    mpl_free(&ctx, t.data);
    assert_int_equal(ctx.n_live, 0);
}

/* The file must be refused with one line: its path, then `line` (NULL: any). */
static void assert_wrong(const char *what, const void *data, size_t n, const char *line)
{
    mpl_ctx ctx = mpl_ctx_default();
    mpl_tensor t = {.data = NULL};
    const char *path = folder_put("wrong", data, n);
    size_t skip = strlen(path) + 2;

    if (mpl_tensor_read(&ctx, path, &t) != MPL_EINPUT)
        fail_msg("%s: not refused", what);
    assert_null(t.data);
    if (strncmp(ctx.message, path, skip - 2) != 0 ||
        strncmp(ctx.message + skip - 2, ": ", 2) != 0 || strchr(ctx.message, '\n') != NULL)
        fail_msg("%s: not one line that begins with the path: %s", what, ctx.message);
    if (line != NULL && strcmp(ctx.message + skip, line) != 0)
        fail_msg("%s: '%s', not '%s'", what, ctx.message + skip, line);
    assert_int_equal(ctx.n_live, 0);
}

/* ---- TensorProto: types and forms ---- */

#define N                3 /* elements of each row */
#define BYTES(type, ...) ((const void *)(const type[N]){__VA_ARGS__})

enum { FIXED32 = 5, FIXED64 = 1, VARINT = 0 };

static const struct sample {
    int number; /* of the type in onnx.proto */
    mpl_type type;
    unsigned field, wire; /* its typed list in onnx.proto */
    int64_t list[N];      /* stored numbers */
    const void *bytes;    /* their meaning */
    const char *descr;    /* in .npy */
} samples[] = {
    ROW(FLOAT, MPL_TYPE_f32, 4, FIXED32, {0x3f800000, 0xc0200000, 1},
        BYTES(float, 1, -2.5f, 0x1p-149f), "<f4"),
    ROW(DOUBLE, MPL_TYPE_f64, 10, FIXED64, {0x3ff0000000000000, 0x7ff0000000000000, 1},
        BYTES(double, 1, (double)__builtin_inff(), 0x1p-1074), "<f8"),
    ROW(INT64, MPL_TYPE_i64, 7, VARINT, {-1, INT64_MIN, 1099511627777},
        BYTES(int64_t, -1, INT64_MIN, 1099511627777), "<i8"),
    ROW(INT32, MPL_TYPE_i32, 5, VARINT, {-1, INT32_MIN, 1065353216},
        BYTES(int32_t, -1, INT32_MIN, 1065353216), "<i4"),
    {INT8, MPL_TYPE_i8, 5, VARINT, {-1, -128, 127}, BYTES(int8_t, -1, -128, 127), "|i1"},
    {UINT8, MPL_TYPE_u8, 5, VARINT, {0, 255, 128}, BYTES(uint8_t, 0, 255, 128), "|u1"},
    {BOOL, MPL_TYPE_bool, 5, VARINT, {1, 0, 256}, BYTES(uint8_t, 1, 0, 1), "|b1"},
    ROW(FLOAT16, MPL_TYPE_f16, 5, VARINT, {0x3c00, 0xc000, 1}, BYTES(uint16_t, 0x3c00, 0xc000, 1),
        "<f2"),
    ROW(BFLOAT16, MPL_TYPE_bf16, 5, VARINT, {0x3f80, 0xc040, 0xff80},
        BYTES(uint16_t, 0x3f80, 0xc040, 0xff80), NULL),
    {INT16, MPL_TYPE_i16, 5, VARINT, {-1, -32768, 258}, BYTES(int16_t, -1, -32768, 258), "<i2"},
    {UINT16, MPL_TYPE_u16, 5, VARINT, {0, 65535, 258}, BYTES(uint16_t, 0, 65535, 258), "<u2"},
    {UINT32,
     MPL_TYPE_u32,
     11,
     VARINT,
     {0, 4294967295, 258},
     BYTES(uint32_t, 0, 4294967295, 258),
     "<u4"},
    {UINT64, MPL_TYPE_u64, 11, VARINT, {0, -1, 258}, BYTES(uint64_t, 0, UINT64_MAX, 258), "<u8"},
    {FLOAT8E5M2, MPL_TYPE_f8e5m2, 5, VARINT, {0, 128, 126}, BYTES(uint8_t, 0, 128, 126), NULL},
};
#define N_SAMPLES (sizeof samples / sizeof *samples)

static void put_item(message *m, unsigned wire, int64_t x)
{
    if (wire == VARINT)
        put_varint(m, (uint64_t)x);
    else
        for (unsigned i = 0; i < (wire == FIXED32 ? 4 : 8); i++)
            put_byte(m, (unsigned)((uint64_t)x >> 8 * i) & 255);
}

/* Writes the first n elements as a typed list; if not packed, with a tag before each. */
static void put_list(message *m, const struct sample *s, size_t n, bool packed)
{
    message list = {.n = 0};

    for (size_t i = 0; i < n; i++) {
        if (!packed)
            put_varint(m, s->field << 3 | s->wire);
        put_item(packed ? &list : m, s->wire, s->list[i]);
    }
    if (packed)
        put_message(m, s->field, &list);
}

static void put_entry(message *m, const char *key, const char *value)
{
    message entry = {.n = 0};

    put_text(&entry, 1, key);
    put_text(&entry, 2, value);
    put_message(m, 13, &entry);
}

static message external(const struct sample *s, const char *offset)
{
    message m = tensor("w", s->number, 1, (int64_t[]){N}, NULL, 0);

    put_entry(&m, "location", "weights");
    put_entry(&m, "offset", offset);
    put_int(&m, 14, 1);
    return m;
}

TEST(proto_types)
{
    for (size_t i = 0; i < N_SAMPLES; i++) {
        const struct sample *s = &samples[i];
        size_t n = N * mpl_type_bytes(s->type);
        message raw = tensor("w", s->number, 1, (int64_t[]){N}, s->bytes, n);
        message packed = tensor("w", s->number, 1, (int64_t[]){N}, NULL, 0), loose = packed;
        message outside = external(s, "5");
        uint8_t weights[5 + 8 * N] = {1, 2, 3, 4, 5};

        put_list(&packed, s, N, true);
        put_list(&loose, s, N, false);
        memcpy(weights + 5, s->bytes, n);
        folder_put("weights", weights, 5 + n);
        assert_holds("raw", &raw, s->type, "[3]", s->bytes, N);
        assert_holds("packed list", &packed, s->type, "[3]", s->bytes, N);
        assert_holds("list", &loose, s->type, "[3]", s->bytes, N);
        assert_holds("external", &outside, s->type, "[3]", s->bytes, N);
    }
}

/* External data is relative to the tensor file's folder; the error names the file that is too
 * short. */
TEST(external_too_short)
{
    message m = external(&samples[0], "6");
    mpl_tensor t = {.data = NULL};

    folder_put("weights", (uint8_t[17]){0}, 17);
    assert_status(ctx, mpl_tensor_read(ctx, folder_put("wrong", m.data, m.n), &t), MPL_EINPUT);
    assert_non_null(
        strstr(ctx->message, "/weights: tensor 'w' needs 12 bytes at 6; the file has 17"));
    assert_null(t.data);
}

static const struct {
    const char *text;
    unsigned rank;
    int64_t dims[9];
    size_t n;
} shapes[] = {
    {"[]", 0, {0}, 1},
    {"[1]", 1, {1}, 1},
    {"[1,3,1]", 3, {1, 3, 1}, 3},
    {"[2,0,7]", 3, {2, 0, 7}, 0},
    {"[0,4611686018427387904]", 2, {0, INT64_C(1) << 62}, 0},
    {"[1,1,1,1,1,1,1,2]", 8, {1, 1, 1, 1, 1, 1, 1, 2}, 2},
};

TEST(proto_shapes)
{
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
        for (int form = 0; form < 3; form++) {
            const struct sample *s = &samples[0];
            message m = tensor("w", FLOAT, shapes[i].rank, shapes[i].dims,
                               form == 0 ? s->bytes : NULL, form == 0 ? shapes[i].n * 4 : 0);

            if (form > 0)
                put_list(&m, s, shapes[i].n, form == 1);
            assert_holds(shapes[i].text, &m, MPL_TYPE_f32, shapes[i].text, s->bytes, shapes[i].n);
        }
}

/* ---- TensorProto: wrong ones ---- */

#define NOTHING SIZE_MAX
#define DIMS(...)                                                                                  \
    sizeof((int64_t[]){__VA_ARGS__}) / 8,                                                          \
    {                                                                                              \
        __VA_ARGS__                                                                                \
    }
#define TOO_LARGE "tensor 'w' has a negative dim, or more than 2^63 bytes"

static const struct {
    const char *what, *name;
    int number;
    unsigned rank;
    int64_t dims[9];
    size_t n_raw;          /* bytes of raw data */
    size_t sample, n_list; /* elements of that sample's typed list */
    const char *line;
} wrong[] = {
    {"raw data too short", "w", FLOAT, DIMS(3), 11, 0, NOTHING,
     "tensor 'w' has 11 bytes of data; its dims need 12"},
    {"raw data too long", "w", FLOAT, DIMS(3), 13, 0, NOTHING,
     "tensor 'w' has 13 bytes of data; its dims need 12"},
    {"raw data for no element", "w", FLOAT, DIMS(0), 4, 0, NOTHING,
     "tensor 'w' has 4 bytes of data; its dims need 0"},
    {"empty raw data", "w", FLOAT, DIMS(3), 0, 0, NOTHING,
     "tensor 'w' has 0 bytes of data; its dims need 12"},
    {"no data", "w", FLOAT, DIMS(3), NOTHING, 0, NOTHING,
     "tensor 'w' has 0 elements; its dims need 3"},
    {"no data for 2^40", "w", FLOAT, DIMS(1 << 20, 1 << 20), NOTHING, 0, NOTHING,
     "tensor 'w' has 0 elements; its dims need 1099511627776"},
    {"list too short", "w", FLOAT, DIMS(3), NOTHING, 0, 2,
     "tensor 'w' has 2 elements; its dims need 3"},
    {"list too long", "w", FLOAT, DIMS(2), NOTHING, 0, 3,
     "tensor 'w' has 3 elements; its dims need 2"},
    ROW("list too long for a scalar", "w", FLOAT, 0, {0}, NOTHING, 0, 3,
        "tensor 'w' has 3 elements; its dims need 1"),
    {"floats in the list of int64", "w", FLOAT, DIMS(3), NOTHING, 2, 3,
     "tensor 'w' has 0 elements; its dims need 3"},
    {"int64 in the list of int32", "w", INT64, DIMS(3), NOTHING, 3, 3,
     "tensor 'w' has 0 elements; its dims need 3"},
    {"halves in the list of floats", "w", FLOAT16, DIMS(3), NOTHING, 0, 3,
     "tensor 'w' has 0 elements; its dims need 3"},
    {"negative dim", "w", FLOAT, DIMS(-1), 4, 0, NOTHING, TOO_LARGE},
    {"negative dims, positive product", "w", FLOAT, DIMS(-1, -3), 12, 0, NOTHING, TOO_LARGE},
    {"negative beside zero", "w", FLOAT, DIMS(0, -3), NOTHING, 0, NOTHING, TOO_LARGE},
    {"elements pass 2^64", "w", UINT8, DIMS(INT64_C(1) << 40, INT64_C(1) << 40), 0, 0, NOTHING,
     TOO_LARGE},
    {"elements wrap to 3", "w", UINT8, DIMS(3, INT64_MAX, 2), 3, 0, NOTHING, TOO_LARGE},
    {"bytes pass 2^64", "w", DOUBLE, DIMS(INT64_C(1) << 61), 0, 0, NOTHING, TOO_LARGE},
    {"bytes pass 2^63", "w", DOUBLE, DIMS(INT64_C(1) << 60), 0, 0, NOTHING, TOO_LARGE},
    {"nine dims", "w", FLOAT, DIMS(1, 1, 1, 1, 1, 1, 1, 1, 1), 4, 0, NOTHING,
     "tensor 'w' has 9 dims; at most 8 are supported"},
    {"complex64", "w", COMPLEX64, DIMS(1), 8, 0, NOTHING,
     "tensor 'w' has element type complex64, which memplan has not"},
    {"text", "w", STRING, DIMS(1), 2, 0, NOTHING,
     "tensor 'w' has element type string, which memplan has not"},
    {"no type", "w", 0, DIMS(1), 4, 0, NOTHING,
     "tensor 'w' has element type undefined, which memplan has not"},
    {"unknown type", "w", 99, DIMS(1), 4, 0, NOTHING,
     "tensor 'w' has element type of an unknown number, which memplan has not"},
    {"negative type", "w", -1, DIMS(1), 4, 0, NOTHING,
     "tensor 'w' has element type of an unknown number, which memplan has not"},
    {"no name", "", UINT8, DIMS(2), 1, 0, NOTHING,
     "tensor '(without a name)' has 1 bytes of data; its dims need 2"},
    {"name of two lines", "w\nv", UINT8, DIMS(2), 1, 0, NOTHING,
     "tensor 'w?v' has 1 bytes of data; its dims need 2"},
};

TEST(proto_wrong)
{
    message m = tensor("w", FLOAT, 1, (int64_t[]){1}, "\0\0\0", 4), segment = {.n = 0};

    put_int(&segment, 1, 0);
    put_message(&m, 3, &segment);
    assert_wrong("segment", m.data, m.n,
                 "tensor 'w' is stored in segments, which memplan cannot read");
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        static const uint8_t zeros[64];

        m = tensor(wrong[i].name, wrong[i].number, wrong[i].rank, wrong[i].dims,
                   wrong[i].n_raw != NOTHING ? zeros : NULL, wrong[i].n_raw);
        if (wrong[i].n_list != NOTHING)
            put_list(&m, &samples[wrong[i].sample], wrong[i].n_list, true);
        assert_wrong(wrong[i].what, m.data, m.n, wrong[i].line);
    }
}

/* ---- .npy ---- */

/* A file of that version; the header is padded with spaces and a newline as NumPy does. */
static message npy(unsigned version, const char *header, const void *data, size_t n)
{
    message m = {.n = 0};
    size_t begin = version == 1 ? 10 : 12,
           length = (begin + strlen(header) + 1 + 63) / 64 * 64 - begin;

    for (const char *at = "\x93NUMPY"; *at != '\0'; at++)
        put_byte(&m, (uint8_t)*at);
    put_byte(&m, version);
    put_byte(&m, 0);
    for (unsigned i = 0; i < begin - 8; i++)
        put_byte(&m, (unsigned)(length >> 8 * i) & 255);
    for (size_t i = 0; i < length; i++)
        put_byte(&m, i < strlen(header) ? (uint8_t)header[i] : i + 1 < length ? ' ' : '\n');
    for (size_t i = 0; i < n; i++)
        put_byte(&m, ((const uint8_t *)data)[i]);
    return m;
}

TEST(npy_types)
{
    for (size_t i = 0; i < N_SAMPLES; i++)
        for (unsigned version = 1; version <= 3 && samples[i].descr != NULL; version++) {
            const struct sample *s = &samples[i];
            char header[100];
            message m;

            snprintf(header, sizeof header,
                     "{'descr': '%s', 'fortran_order': False, 'shape': (3,), }", s->descr);
            m = npy(version, header, s->bytes, N * mpl_type_bytes(s->type));
            assert_holds("npy", &m, s->type, "[3]", s->bytes, N);
        }
}

/* Any non-zero byte is true, from any source. */
TEST(odd_bools)
{
    static const struct sample number = {BOOL, MPL_TYPE_bool, 0, 0, {0}, NULL, NULL};
    message m = tensor("w", BOOL, 1, (int64_t[]){N}, "\x02\x00\xff", N);

    assert_holds("raw", &m, MPL_TYPE_bool, "[3]", "\1\0\1", N);
    folder_put("weights", "\x02\x00\xff", N);
    m = external(&number, "0");
    assert_holds("external", &m, MPL_TYPE_bool, "[3]", "\1\0\1", N);
    m = npy(1, "{'descr': '|b1', 'fortran_order': False, 'shape': (3,), }", "\x02\x00\xff", N);
    assert_holds("npy", &m, MPL_TYPE_bool, "[3]", "\1\0\1", N);
}

/* Headers of version 2 may be longer than 65535 bytes. */
TEST(npy_long_header)
{
    static const char *const header = "{'descr': '|u1', 'fortran_order': False, 'shape': (3,), }";
    static uint8_t file[12 + 0x14034 + N];
    const char *path;
    mpl_tensor t = {.data = NULL};

    memset(file, ' ', sizeof file - N);
    memcpy(file, "\x93NUMPY\x02\x00\x34\x40\x01\x00", 12);
    memcpy(file + 12, header, strlen(header));
    memcpy(file + sizeof file - N, "abc", N);
    path = folder_put("good", file, sizeof file);
    assert_ok(ctx, mpl_tensor_read(ctx, path, &t));
    assert_memory_equal(t.data, "abc", N);
    mpl_free(ctx, t.data);
}

static const struct {
    const char *header, *dims;
    size_t n; /* floats */
} npy_good[] = {
    {"{'descr': '<f4', 'fortran_order': False, 'shape': (), }", "[]", 1},
    {"{'descr': '<f4', 'fortran_order': False, 'shape': (1, 3), }", "[1,3]", 3},
    {"{'descr':'<f4','fortran_order':False,'shape':(3,1)}", "[3,1]", 3},
    {"{ 'shape' : ( 1 , 1 , 3 , ) , 'fortran_order' : False , 'descr' : '<f4' }", "[1,1,3]", 3},
    {"{'descr': '=f4', 'fortran_order': False, 'shape': (2, 0), }", "[2,0]", 0},
    {"{'descr': '<f4', 'fortran_order': False, 'shape': (1, 1, 1, 1, 1, 1, 1, 2), }",
     "[1,1,1,1,1,1,1,2]", 2},
};

#define HEADER(descr, order, shape)                                                                \
    "{'descr': " descr ", 'fortran_order': " order ", 'shape': " shape ", }"

static const struct {
    const char *header;
    size_t n; /* bytes of elements */
    const char *line;
} npy_wrong[] = {
    {HEADER("'<f4'", "False", "(3,)"), 11,
     "it has 11 bytes of elements; its shape [3] needs 12 of f32"},
    {HEADER("'<f4'", "False", "(3,)"), 13,
     "it has 13 bytes of elements; its shape [3] needs 12 of f32"},
    {HEADER("'<f4'", "False", "()"), 0, "it has 0 bytes of elements; its shape [] needs 4 of f32"},
    {HEADER("'>f4'", "False", "(3,)"), 12,
     "elements '>f4' are big-endian; little-endian ones are needed"},
    {HEADER("'<f4'", "True", "(1, 3)"), 12,
     "elements in Fortran order; C order is needed (numpy.ascontiguousarray)"},
    {HEADER("'<f4'", "maybe", "(3,)"), 12,
     "the .npy header's fortran_order is neither True nor False"},
    {"{'descr': '<f4', 'shape': (3,), }", 12,
     "the .npy header's fortran_order is neither True nor False"},
    {"{'fortran_order': False, 'shape': (3,), }", 12,
     "the .npy header gives no simple element type"},
    {HEADER("[('a', '<f4')]", "False", "(3,)"), 12, "the .npy header gives no simple element type"},
    {HEADER("'<c8'", "False", "(3,)"), 24, "element type '<c8' is none that memplan has"},
    {HEADER("'|f4'", "False", "(3,)"), 12, "element type '|f4' is none that memplan has"},
    {HEADER("'|O'", "False", "(3,)"), 12, "element type '|O' is none that memplan has"},
    {HEADER("'\n'", "False", "(3,)"), 12, "element type '?' is none that memplan has"},
    {"{'descr': '<f4', 'fortran_order': False, }", 12, "the .npy header gives no shape"},
    {HEADER("'<f4'", "False", "3"), 12, "the .npy header gives no shape"},
    {HEADER("'<f4'", "False", "(-3,)"), 12, "the .npy header has a bad dim"},
    {HEADER("'<f4'", "False", "(x,)"), 12, "the .npy header has a bad dim"},
    {HEADER("'<f4'", "False", "(3,,1)"), 12, "the .npy header has a bad dim"},
    {HEADER("'<f4'", "False", "(9223372036854775808,)"), 12, "the .npy header has a bad dim"},
    {HEADER("'<f4'", "False", "(3 1)"), 12, "the .npy header's shape is cut"},
    {"{'descr': '<f4', 'fortran_order': False, 'shape': (3", 12, "the .npy header's shape is cut"},
    {HEADER("'<f4'", "False", "(1, 1, 1, 1, 1, 1, 1, 1, 3)"), 12, "more than 8 dims"},
    {HEADER("'|u1'", "False", "(4294967296, 4294967296)"), 0,
     "its shape [4294967296,4294967296] needs more than 2^63 bytes"},
    {HEADER("'<f8'", "False", "(2305843009213693952,)"), 0,
     "its shape [2305843009213693952] needs more than 2^63 bytes"},
    {HEADER("'<f8'", "False", "(1152921504606846976,)"), 0,
     "it has 0 bytes of elements; its shape [1152921504606846976] needs 9223372036854775808 of "
     "f64"},
};

TEST(npy_headers)
{
    static const char *const versions = "its .npy header is cut, or of a version other than 1 to 3";
    static const uint8_t zeros[64];
    message m;

    for (size_t i = 0; i < sizeof npy_good / sizeof *npy_good; i++) {
        m = npy(1, npy_good[i].header, samples[0].bytes, npy_good[i].n * 4);
        assert_holds(npy_good[i].header, &m, MPL_TYPE_f32, npy_good[i].dims, samples[0].bytes,
                     npy_good[i].n);
    }
    for (size_t i = 0; i < sizeof npy_wrong / sizeof *npy_wrong; i++) {
        m = npy(1, npy_wrong[i].header, zeros, npy_wrong[i].n);
        assert_wrong(npy_wrong[i].header, m.data, m.n, npy_wrong[i].line);
    }
    m = npy(1, npy_good[0].header, zeros, 4);
    for (unsigned i = 0; i < 2; i++) {
        m.data[6] = i == 0 ? 0 : 4;
        assert_wrong("version", m.data, m.n, versions);
    }
    m.data[6] = 1, m.data[9] = 255;
    assert_wrong("header longer than the file", m.data, m.n, versions);
    m.data[5] = 'X'; /* then it is neither .npy nor a valid message */
    assert_wrong("magic", m.data, m.n, "not a .npy file or an ONNX tensor, or cut");
}

/* ---- damage ---- */

/* Valid files of all forms: file k, or an empty message after the last. */
static message good_file(size_t k)
{
    const struct sample *s = &samples[k / 4 % N_SAMPLES];
    size_t n = N * mpl_type_bytes(s->type);
    message m =
        tensor("w", s->number, 1, (int64_t[]){N}, k % 4 == 0 ? s->bytes : NULL, k % 4 == 0 ? n : 0);
    char header[100];

    if (k >= 4 * N_SAMPLES)
        m.n = 0;
    else if (k % 4 == 3 && s->descr != NULL) {
        snprintf(header, sizeof header, HEADER("'%s'", "False", "(3,)"), s->descr);
        m = npy(1, header, s->bytes, n);
    } else if (k % 4 != 0)
        put_list(&m, s, N, k % 4 == 1);
    return m;
}

TEST(cut_anywhere)
{
    message m;

    assert_wrong("empty", "", 0, "the file is empty; a .npy file or an ONNX tensor was expected");
    assert_wrong("text", "hello, world\n", 13, "not a .npy file or an ONNX tensor, or cut");
    for (size_t k = 0; (m = good_file(k)).n > 0; k++) {
        for (size_t cut = 0; cut < m.n; cut++)
            assert_wrong("cut", m.data, cut, NULL);
        put_byte(&m, 0);
        assert_wrong("one byte more", m.data, m.n, NULL);
    }
}

/* A flipped bit gives another tensor or one error line, without a leak. */
TEST(any_bit_flipped)
{
    message m;

    for (size_t k = 0; (m = good_file(k)).n > 0; k++)
        for (size_t bit = 0; bit < 8 * m.n; bit++) {
            mpl_tensor t = {.data = NULL};
            mpl_status st;

            m.data[bit / 8] ^= (uint8_t)(1u << bit % 8);
            st = mpl_tensor_read(ctx, folder_put("flipped", m.data, m.n), &t);
            m.data[bit / 8] ^= (uint8_t)(1u << bit % 8);
            if (st != MPL_OK && (st != MPL_EINPUT || strchr(ctx->message, '\n') != NULL))
                fail_msg("file %zu, bit %zu: status '%s': %s", k, bit, mpl_status_name(st),
                         ctx->message);
            mpl_free(ctx, t.data);
        }
}

TEST(no_such_file)
{
    mpl_tensor t = {.data = NULL};

    assert_status(ctx, mpl_tensor_read(ctx, "tests/no_such.npy", &t), MPL_EINPUT);
    assert_string_equal(ctx->message, "tests/no_such.npy: No such file or directory");
    assert_status(ctx, mpl_tensor_read(ctx, folder, &t), MPL_EINPUT);
    assert_non_null(strstr(ctx->message, "directory"));
    assert_null(t.data);
}

/* ---- writing ---- */

static mpl_tensor sample_tensor(const struct sample *s)
{
    return (mpl_tensor){s->type, {3, {1, N, 1}}, (void *)s->bytes};
}

TEST(written_and_read)
{
    for (size_t i = 0; i < N_SAMPLES; i++) {
        const struct sample *s = &samples[i];
        const char *path = in_folder("written.npy");
        mpl_tensor t = sample_tensor(s), again = {.data = NULL};
        struct stat facts;

        if (s->descr == NULL) {
            assert_status(ctx, mpl_tensor_write(ctx, path, &t), MPL_EINPUT);
            assert_non_null(strstr(ctx->message, "written.npy: .npy has no element type for "));
            continue;
        }
        assert_ok(ctx, mpl_tensor_write(ctx, path, &t));
        assert_int_equal(stat(path, &facts), 0);
        assert_int_equal(facts.st_size, 128 + N * mpl_type_bytes(s->type));
        assert_ok(ctx, mpl_tensor_read(ctx, path, &again));
        assert_int_equal(again.type, s->type);
        assert_true(mpl_shape_equal(&again.shape, &t.shape));
        assert_memory_equal(again.data, s->bytes, N * mpl_type_bytes(s->type));
        mpl_free(ctx, again.data);
    }
}

/* The file follows the format, not only what our reader accepts. */
TEST(written_bytes)
{
    static const char *const header =
        "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 1,), }";
    mpl_tensor t = {MPL_TYPE_f32, {2, {2, 1}}, (float[]){1, -2.5f}};
    message m = npy(1, header, t.data, 8);
    char got[200];
    FILE *f;

    assert_ok(ctx, mpl_tensor_write(ctx, in_folder("bytes.npy"), &t));
    f = fopen(in_folder("bytes.npy"), "rb");
    assert_non_null(f);
    assert_int_equal(fread(got, 1, sizeof got, f), m.n);
    assert_memory_equal(got, m.data, m.n);
    fclose(f);
}

TEST(not_written)
{
    mpl_tensor t = sample_tensor(&samples[0]);

    assert_status(ctx, mpl_tensor_write(ctx, in_folder("none/x.npy"), &t), MPL_EINPUT);
    assert_non_null(
        strstr(ctx->message, "none/x.npy: cannot be written: No such file or directory"));
    assert_status(ctx, mpl_tensor_write(ctx, "/dev/full", &t), MPL_EINPUT);
    assert_non_null(strstr(ctx->message, "/dev/full: "));
    assert_non_null(strstr(ctx->message, "No space left"));
}

/* ---- memory ---- */

/* Reads valid file k, or writes if k is past the last; allocation number `fails` fails. */
static mpl_status once(mpl_ctx *ctx, size_t k, int64_t fails)
{
    message m = good_file(k);
    mpl_tensor t = sample_tensor(&samples[0]);
    mpl_status st;

    ctx->fail_after = ctx->n_allocs + fails;
    if (m.n == 0)
        return mpl_tensor_write(ctx, in_folder("failing.npy"), &t);
    t.data = NULL;
    st = mpl_tensor_read(ctx, folder_put("failing", m.data, m.n), &t);
    assert_true(st == MPL_OK || t.data == NULL);
    mpl_free(ctx, t.data);
    return st;
}

TEST(failing_allocations)
{
    for (size_t k = 0; k <= 4 * N_SAMPLES; k++) {
        mpl_status st = MPL_EMEM;

        for (int64_t fails = 0; st == MPL_EMEM; fails++) {
            st = once(ctx, k, fails);
            assert_int_equal(ctx->n_live, 0);
            assert_true(st != MPL_OK || fails >= 2);
        }
        assert_ok(ctx, st);
    }
}

static int make_folder(void)
{
    return folder_make("tensor");
}

TESTS_WITHIN(make_folder, folder_remove, proto_types, external_too_short, odd_bools, proto_shapes,
             proto_wrong, npy_types, npy_headers, npy_long_header, cut_anywhere, any_bit_flipped,
             no_such_file, written_and_read, written_bytes, not_written, failing_allocations)
