/* onnx_const.c -- constants of ONNX models: tensors in or beside the file, constant nodes. */
#include "graphs/io/onnx/onnx_priv.h"
#include "graphs/ops/ops_priv.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define MAX_ITEMS 65536 /* of a constant that becomes an attribute */

static const struct {
    const char *name;
    int type; /* mpl_type, or -1 */
} types[] = {
    {"undefined", -1},
    {"float", MPL_TYPE_f32},
    {"uint8", MPL_TYPE_u8},
    {"int8", MPL_TYPE_i8},
    {"uint16", MPL_TYPE_u16},
    {"int16", MPL_TYPE_i16},
    {"int32", MPL_TYPE_i32},
    {"int64", MPL_TYPE_i64},
    {"string", -1},
    {"bool", MPL_TYPE_bool},
    {"float16", MPL_TYPE_f16},
    {"double", MPL_TYPE_f64},
    {"uint32", MPL_TYPE_u32},
    {"uint64", MPL_TYPE_u64},
    {"complex64", -1},
    {"complex128", -1},
    {"bfloat16", MPL_TYPE_bf16},
    {"float8e4m3fn", MPL_TYPE_f8e4m3fn},
    {"float8e4m3fnuz", MPL_TYPE_f8e4m3fnuz},
    {"float8e5m2", MPL_TYPE_f8e5m2},
    {"float8e5m2fnuz", MPL_TYPE_f8e5m2fnuz},
    {"uint4", MPL_TYPE_u4},
    {"int4", MPL_TYPE_i4},
    {"float4e2m1", MPL_TYPE_f4e2m1},
    {"float8e8m0", MPL_TYPE_f8e8m0},
    {"uint2", MPL_TYPE_u2},
    {"int2", MPL_TYPE_i2},
};

bool onnx_type(int32_t number, mpl_type *type, const char **name)
{
    if (number < 0 || (size_t)number >= sizeof types / sizeof *types)
        return *name = "of an unknown number", false;
    *name = types[number].name;
    if (types[number].type < 0)
        return false;
    *type = (mpl_type)types[number].type;
    return true;
}

int32_t onnx_type_number(mpl_type type)
{
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (types[i].type == (int)type)
            return (int32_t)i;
    return 0;
}

static const char *tensor_name(const Onnx__TensorProto *proto)
{
    return proto->name != NULL && proto->name[0] != '\0' ? proto->name : "(without a name)";
}

/* ---- external data ---- */

/* Whether a path stays below the model's folder. */
static bool is_inside(const char *location)
{
    if (location[0] == '/' || location[0] == '\0')
        return false;
    for (const char *at = location; at != NULL; at = strchr(at, '/')) {
        at += *at == '/';
        if (at[0] == '.' && at[1] == '.' && (at[2] == '/' || at[2] == '\0'))
            return false;
    }
    return true;
}

static bool read_number(const char *text, uint64_t *out)
{
    char *end;

    if (text == NULL || text[0] < '0' || text[0] > '9')
        return false;
    errno = 0;
    *out = strtoull(text, &end, 10);
    return errno == 0 && *end == '\0' && *out <= INT64_MAX;
}

/* Opens a file below a folder, one path component at a time, so that no link can be inserted in
 * between. -1: errno tells why; ELOOP: a component is a link. */
static int open_below(const char *folder, const char *location)
{
    int at = open(folder, O_PATH | O_DIRECTORY | O_CLOEXEC), next, why;
    char part[NAME_MAX + 1];
    struct stat facts;

    while (at >= 0) {
        size_t n = strcspn(location, "/"), gap = strspn(location + n, "/");
        bool last = location[n + gap] == '\0';

        snprintf(part, sizeof part, "%.*s", n < sizeof part ? (int)n : 0, location);
        next =
            openat(at, part,
                   O_NOFOLLOW | O_CLOEXEC | (last ? O_RDONLY | O_NONBLOCK : O_PATH | O_DIRECTORY));
        if (next < 0 && fstatat(at, part, &facts, AT_SYMLINK_NOFOLLOW) == 0 &&
            S_ISLNK(facts.st_mode))
            errno = ELOOP;
        why = errno;
        close(at);
        errno = why;
        if (last)
            return next;
        at = next;
        location += n + gap;
    }
    return -1;
}

static mpl_status read_at(mpl_ctx *ctx, const char *folder, const char *location,
                          const char *tensor, uint64_t offset, uint64_t bytes, void **data)
{
    mpl_status st = MPL_OK;
    struct stat facts;
    int fd = open_below(folder, location);
    FILE *f = fd >= 0 ? fdopen(fd, "rb") : NULL;

    if (f == NULL)
        MPL_FAIL(ctx, MPL_EINPUT, "%s/%s: %s; it holds the data of tensor '%s'", folder, location,
                 errno == ELOOP ? "a symbolic link; external data is a file of the model's folder"
                                : strerror(errno),
                 tensor);
    if (fstat(fd, &facts) != 0 || !S_ISREG(facts.st_mode))
        MPL_FAIL(ctx, MPL_EINPUT, "%s/%s: not a regular file; it holds the data of tensor '%s'",
                 folder, location, tensor);
    if (offset > (uint64_t)facts.st_size || bytes > (uint64_t)facts.st_size - offset)
        MPL_FAIL(ctx, MPL_EINPUT,
                 "%s/%s: tensor '%s' needs %" PRIu64 " bytes at %" PRIu64 "; the file has %" PRIu64,
                 folder, location, tensor, bytes, offset, (uint64_t)facts.st_size);
    MPL_TRY((*data = mpl_alloc(ctx, bytes, 1)) != NULL ? MPL_OK : MPL_EMEM);
    if (fseek(f, (long)offset, SEEK_SET) != 0 || fread(*data, 1, bytes, f) != bytes)
        MPL_FAIL(ctx, MPL_EINPUT, "%s/%s: %s", folder, location,
                 ferror(f) ? strerror(errno) : "it shrank while it was read");
out:
    if (f != NULL)
        fclose(f);
    else if (fd >= 0)
        close(fd);
    return st;
}

/* Keys location, offset and length of ONNX's ExternalData; others (a checksum) are ignored. */
static mpl_status external_data(mpl_ctx *ctx, const char *path, const Onnx__TensorProto *proto,
                                uint64_t bytes, void **data)
{
    mpl_status st = MPL_OK;
    const char *location = NULL, *slash = strrchr(path, '/');
    uint64_t offset = 0, length = bytes;
    char *folder = NULL;

    for (size_t i = 0; i < proto->n_external_data; i++) {
        const char *key = proto->external_data[i]->key, *value = proto->external_data[i]->value;
        uint64_t *number = key == NULL                  ? NULL
                           : strcmp(key, "offset") == 0 ? &offset
                           : strcmp(key, "length") == 0 ? &length
                                                        : NULL;

        if (number != NULL && !read_number(value, number))
            MPL_FAIL(ctx, MPL_EINPUT,
                     "%s: tensor '%s': %s of its external data is no number of bytes", path,
                     tensor_name(proto), key);
        if (key != NULL && strcmp(key, "location") == 0)
            location = value;
    }
    if (location == NULL || !is_inside(location))
        MPL_FAIL(ctx, MPL_EINPUT,
                 "%s: tensor '%s': external data at '%s'; a relative path without '..' is allowed",
                 path, tensor_name(proto), onnx_text(location));
    if (length != bytes)
        MPL_FAIL(ctx, MPL_EINPUT,
                 "%s: tensor '%s' has %" PRIu64 " bytes of external data; its dims need %" PRIu64,
                 path, tensor_name(proto), length, bytes);
    MPL_TRY(mpl_copy_text(ctx, folder, slash != NULL ? path : "."));
    if (slash != NULL)
        folder[slash == path ? 1 : slash - path] = '\0';
    MPL_TRY(read_at(ctx, folder, location, tensor_name(proto), offset, bytes, data));
out:
    mpl_free(ctx, folder);
    return st;
}

/* ---- tensors ---- */

/* Stores item i of the list that holds elements of `type` in fewer bytes: an int32 holds an element
 * of a small type, or a byte of packed ones; a uint64 one of u32. */
static void put_small(mpl_type type, void *data, size_t i, const void *list)
{
    if (type == MPL_TYPE_u32)
        ((uint32_t *)data)[i] = (uint32_t)((const uint64_t *)list)[i];
    else if (mpl_type_bytes(type) == 2)
        ((uint16_t *)data)[i] = (uint16_t)((const int32_t *)list)[i];
    else if (type == MPL_TYPE_bool)
        ((uint8_t *)data)[i] = ((const int32_t *)list)[i] != 0;
    else
        ((uint8_t *)data)[i] = (uint8_t)((const int32_t *)list)[i];
}

/* The list that holds elements of `type`, its length, and whether elements map one to one. */
static const void *typed_list(const Onnx__TensorProto *proto, mpl_type type, size_t *n, bool *same)
{
    *same = true;
    switch (type) {
    case MPL_TYPE_f64:
        return *n = proto->n_double_data, proto->double_data;
    case MPL_TYPE_f32:
        return *n = proto->n_float_data, proto->float_data;
    case MPL_TYPE_i64:
        return *n = proto->n_int64_data, proto->int64_data;
    case MPL_TYPE_i32:
        return *n = proto->n_int32_data, proto->int32_data;
    case MPL_TYPE_u64:
        return *n = proto->n_uint64_data, proto->uint64_data;
    case MPL_TYPE_u32:
        *same = false;
        return *n = proto->n_uint64_data, proto->uint64_data;
    default:
        *same = false;
        return *n = proto->n_int32_data, proto->int32_data;
    }
}

static mpl_status list_data(mpl_ctx *ctx, const char *path, const Onnx__TensorProto *proto,
                            uint64_t count, mpl_tensor *out, void **owned)
{
    size_t n;
    bool same;
    const void *list = typed_list(proto, out->type, &n, &same);

    if (mpl_type_bits(out->type) < 8) /* packed: an item is a byte */
        mpl_type_size(out->type, count, &count);
    if (n != count)
        return MPL_REFUSE(ctx, "%s: tensor '%s' has %zu elements; its dims need %" PRIu64, path,
                          tensor_name(proto), n, count);
    if (same) {
        out->data = (void *)list;
    } else {
        MPL_PASS((*owned = mpl_alloc(ctx, n, mpl_type_bytes(out->type))) != NULL ? MPL_OK
                                                                                 : MPL_EMEM);
        for (size_t i = 0; i < n; i++)
            put_small(out->type, *owned, i, list);
        out->data = *owned;
    }
    if (out->data == NULL) { /* no elements: any address will do */
        MPL_PASS((*owned = mpl_alloc(ctx, 1, 1)) != NULL ? MPL_OK : MPL_EMEM);
        out->data = *owned;
    }
    return MPL_OK;
}

void onnx_tidy_bools(mpl_type type, void *data, uint64_t count)
{
    for (uint64_t i = 0; i < count && type == MPL_TYPE_bool; i++)
        ((uint8_t *)data)[i] = ((uint8_t *)data)[i] != 0;
}

mpl_status onnx_tensor(mpl_ctx *ctx, const char *path, const Onnx__TensorProto *proto,
                       mpl_tensor *out, void **owned)
{
    mpl_status st = MPL_OK;
    mpl_tensor t = {.shape.rank = (uint32_t)proto->n_dims};
    uint64_t count, bytes;
    const char *type;

    *owned = NULL;
    if (!onnx_type(proto->data_type, &t.type, &type))
        MPL_FAIL(ctx, MPL_EINPUT, "%s: tensor '%s' has element type %s, which memplan has not",
                 path, tensor_name(proto), type);
    if (proto->n_dims > MPL_MAX_RANK)
        MPL_FAIL(ctx, MPL_EINPUT, "%s: tensor '%s' has %zu dims; at most %d are supported", path,
                 tensor_name(proto), proto->n_dims, MPL_MAX_RANK);
    if (proto->segment != NULL)
        MPL_FAIL(ctx, MPL_EINPUT,
                 "%s: tensor '%s' is stored in segments, which memplan cannot read", path,
                 tensor_name(proto));
    for (uint32_t i = 0; i < t.shape.rank; i++)
        t.shape.dim[i] = proto->dims[i];
    if (!mpl_shape_count(&t.shape, &count) || !mpl_type_size(t.type, count, &bytes) ||
        bytes > INT64_MAX)
        MPL_FAIL(ctx, MPL_EINPUT, "%s: tensor '%s' has a negative dim, or more than 2^63 bytes",
                 path, tensor_name(proto));
    if (proto->data_location == ONNX__TENSOR_PROTO__DATA_LOCATION__EXTERNAL) {
        MPL_TRY(external_data(ctx, path, proto, bytes, owned));
        t.data = *owned;
    } else if (proto->has_raw_data && (bytes > 0 || proto->raw_data.len > 0)) {
        if (proto->raw_data.len != bytes)
            MPL_FAIL(ctx, MPL_EINPUT,
                     "%s: tensor '%s' has %zu bytes of data; its dims need %" PRIu64, path,
                     tensor_name(proto), proto->raw_data.len, bytes);
        t.data = proto->raw_data.data;
    } else
        MPL_TRY(list_data(ctx, path, proto, count, &t, owned));
    onnx_tidy_bools(t.type, t.data, count);
    *out = t;
out:
    if (st != MPL_OK) {
        mpl_free(ctx, *owned);
        *owned = NULL;
    }
    return st;
}

/* ---- constants as numbers ---- */

static int64_t to_int(double x)
{
    return x >= 0x1p62 ? INT64_MAX : x <= -0x1p62 ? INT64_MIN : x == x ? (int64_t)x : 0;
}

/* Element i of a constant; false: ONNX does not allow its type for such operands. */
static bool element(const mpl_graph *g, mpl_value v, uint64_t i, int64_t *as_int, double *as_double)
{
    const void *data = g->value_data[v];
    size_t at = g->value_splat[v] ? 0 : (size_t)i;

    switch ((mpl_type)g->value_type[v]) {
    case MPL_TYPE_i64:
        *as_double = (double)(*as_int = ((const int64_t *)data)[at]);
        return true;
    case MPL_TYPE_i32:
        *as_double = (double)(*as_int = ((const int32_t *)data)[at]);
        return true;
    case MPL_TYPE_i8:
        *as_double = (double)(*as_int = ((const int8_t *)data)[at]);
        return true;
    case MPL_TYPE_u8:
    case MPL_TYPE_bool:
        *as_double = (double)(*as_int = ((const uint8_t *)data)[at]);
        return true;
    case MPL_TYPE_f32:
        *as_int = to_int(*as_double = (double)((const float *)data)[at]);
        return true;
    case MPL_TYPE_f64:
        *as_int = to_int(*as_double = ((const double *)data)[at]);
        return true;
    case MPL_TYPE_f16:
    case MPL_TYPE_bf16:
    case MPL_TYPE_i16:
    case MPL_TYPE_u16:
    case MPL_TYPE_u32:
    case MPL_TYPE_u64:
        *as_int = to_int(*as_double = mpl_get((mpl_type)g->value_type[v], data, (int64_t)at));
        return true;
    default:
        return false;
    }
}

static mpl_status numbers(onnx_node *node, mpl_value v, const char *what, uint32_t *count,
                          int64_t **ints, double **floats)
{
    const mpl_graph *g = node->r->g;
    uint64_t items = 0;

    if (!onnx_is_constant(node, v) && onnx_most_for(node, v, what) != MPL_NONE)
        v = onnx_most_for(node, v, what);
    MPL_PASS(onnx_need_constant(node, v, what));
    mpl_shape_count(&g->value_shape[v], &items);
    if (items > MAX_ITEMS)
        return ONNX_REFUSE(node, "its %s has %" PRIu64 " elements; at most %d are supported", what,
                           items, MAX_ITEMS);
    MPL_PASS(onnx_new(node->r, *ints, items));
    MPL_PASS(onnx_new(node->r, *floats, items));
    for (uint64_t i = 0; i < items; i++)
        if (!element(g, v, i, *ints + i, *floats + i))
            return ONNX_REFUSE(node, "its %s has element type %s; a whole number is needed", what,
                               mpl_type_name((mpl_type)g->value_type[v]));
    *count = (uint32_t)items;
    return MPL_OK;
}

mpl_status onnx_ints(onnx_node *node, mpl_value v, const char *what, uint32_t *count,
                     int64_t **ints)
{
    double *floats;

    return numbers(node, v, what, count, ints, &floats);
}

mpl_status onnx_floats(onnx_node *node, mpl_value v, const char *what, uint32_t *count,
                       double **floats)
{
    int64_t *ints;

    return numbers(node, v, what, count, &ints, floats);
}

mpl_status onnx_scalar(onnx_node *node, mpl_type type, double x, const char *suffix, mpl_value *out)
{
    const char *name;
    mpl_value v;

    MPL_PASS(onnx_fresh_name(node->r, node->label, suffix, &name));
    MPL_PASS(mpl_graph_add_const(node->r->ctx, node->r->g, name, MPL_TYPE_f64,
                                 &(mpl_shape){.rank = 0}, &x, false, &v));
    return onnx_step(node, MPL_OP_cast, suffix, 1, &v, 1, &MPL_TEXT(to, mpl_type_name(type)), out);
}

mpl_status onnx_constant(onnx_node *node, mpl_type type, const mpl_shape *shape, const double *data,
                         const char *suffix, mpl_value *out)
{
    const char *name;
    mpl_value v;

    MPL_PASS(onnx_fresh_name(node->r, node->label, suffix, &name));
    MPL_PASS(onnx_blame(node, mpl_graph_add_const(node->r->ctx, node->r->g, name, MPL_TYPE_f64,
                                                  shape, data, false, &v)));
    return onnx_step(node, MPL_OP_cast, suffix, 1, &v, 1, &MPL_TEXT(to, mpl_type_name(type)), out);
}

/* ---- constant nodes ---- */

/* Makes the node's only output a constant. */
static mpl_status make(onnx_node *node, mpl_type type, const mpl_shape *shape, const void *data,
                       bool splat)
{
    mpl_status st = MPL_OK;

    MPL_TRY(mpl_graph_add_const(node->r->ctx, node->r->g, node->out_name[0], type, shape, data,
                                splat, &node->out[0]));
out:
    return onnx_blame(node, st);
}

/* Shape-15 has start and end: negative ones count from the end, and both are clamped. */
static int64_t clamp_axis(int64_t axis, int64_t rank)
{
    if (axis < 0)
        axis = axis < -rank ? 0 : axis + rank;
    return axis > rank ? rank : axis;
}

mpl_status onnx_lower_shape(onnx_node *node)
{
    mpl_shape in;
    int64_t start, end;
    bool made;

    if (onnx_in(node, 0) == MPL_NONE)
        return ONNX_REFUSE(node, "its input is missing");
    in = node->r->g->value_shape[node->in[0]];
    start = clamp_axis(onnx_attr_int(node, "start", 0), in.rank);
    end = clamp_axis(onnx_attr_int(node, "end", in.rank), in.rank);
    MPL_PASS(onnx_shape_of(node, start, end, &made));
    if (made)
        return MPL_OK;
    return make(node, MPL_TYPE_i64, &(mpl_shape){1, {end > start ? end - start : 0}},
                in.dim + start, false);
}

mpl_status onnx_lower_size(onnx_node *node)
{
    uint64_t count = 0;

    if (onnx_in(node, 0) == MPL_NONE)
        return ONNX_REFUSE(node, "its input is missing");
    mpl_shape_count(&node->r->g->value_shape[node->in[0]], &count);
    return make(node, MPL_TYPE_i64, &(mpl_shape){.rank = 0}, &(int64_t){(int64_t)count}, false);
}

static mpl_status make_tensor(onnx_node *node, const Onnx__TensorProto *proto)
{
    mpl_status st = MPL_OK;
    mpl_tensor t;
    void *owned = NULL;
    const char *type;
    mpl_type known;

    if (!onnx_type(proto->data_type, &known, &type))
        ONNX_FAIL(node, "its value has element type %s, which memplan has not", type);
    MPL_TRY(onnx_tensor(node->r->ctx, node->r->path, proto, &t, &owned));
    MPL_TRY(make(node, t.type, &t.shape, t.data, false));
out:
    mpl_free(node->r->ctx, owned);
    return st;
}

mpl_status onnx_lower_constant(onnx_node *node)
{
    const Onnx__AttributeProto *a;

    if (node->proto->n_attribute != 1)
        return ONNX_REFUSE(node, "it has %zu attributes; exactly one gives the value",
                           node->proto->n_attribute);
    a = node->proto->attribute[0];
    if (onnx_attr(node, "value") != NULL && a->t != NULL)
        MPL_PASS(make_tensor(node, a->t));
    else if (onnx_attr(node, "value_float") != NULL)
        MPL_PASS(make(node, MPL_TYPE_f32, &(mpl_shape){.rank = 0}, &a->f, false));
    else if (onnx_attr(node, "value_int") != NULL)
        MPL_PASS(make(node, MPL_TYPE_i64, &(mpl_shape){.rank = 0}, &a->i, false));
    else if (onnx_attr(node, "value_floats") != NULL)
        MPL_PASS(
            make(node, MPL_TYPE_f32, &(mpl_shape){1, {(int64_t)a->n_floats}}, a->floats, false));
    else if (onnx_attr(node, "value_ints") != NULL)
        MPL_PASS(make(node, MPL_TYPE_i64, &(mpl_shape){1, {(int64_t)a->n_ints}}, a->ints, false));
    else
        return ONNX_REFUSE(node, "attribute '%s' gives a value that memplan cannot hold",
                           onnx_text(a->name));
    return MPL_OK;
}

/* The dims given by the elements of a constant. */
static mpl_status shape_from(onnx_node *node, mpl_value v, mpl_shape *shape)
{
    uint32_t rank;
    int64_t *dim;

    if (v == MPL_NONE)
        return ONNX_REFUSE(node, "its input is missing");
    MPL_PASS(onnx_ints(node, v, "shape", &rank, &dim));
    if (rank > MPL_MAX_RANK)
        return ONNX_REFUSE(node, "its result has %u dims; at most %d are supported", rank,
                           MPL_MAX_RANK);
    shape->rank = rank;
    for (uint32_t i = 0; i < rank; i++)
        shape->dim[i] = dim[i];
    return MPL_OK;
}

mpl_status onnx_lower_constant_of_shape(onnx_node *node)
{
    mpl_status st = MPL_OK;
    const Onnx__AttributeProto *a = onnx_attr(node, "value");
    mpl_shape shape;
    mpl_tensor t = {MPL_TYPE_f32, {.rank = 0}, &(float){0}};
    void *owned = NULL;
    uint64_t count = 1;
    const char *type;

    if (a != NULL && a->t != NULL) {
        if (!onnx_type(a->t->data_type, &t.type, &type))
            ONNX_FAIL(node, "its value has element type %s, which memplan has not", type);
        MPL_TRY(onnx_tensor(node->r->ctx, node->r->path, a->t, &t, &owned));
        mpl_shape_count(&t.shape, &count);
    }
    if (count != 1)
        ONNX_FAIL(node, "its value has %" PRIu64 " elements; one is needed", count);
    MPL_TRY(shape_from(node, onnx_in(node, 0), &shape));
    MPL_TRY(make(node, t.type, &shape, t.data, true));
out:
    mpl_free(node->r->ctx, owned);
    return st;
}

#define MAX_RANGE ((UINT64_C(256) << 20) / 8) /* elements */

/* Elements of a range; above MAX_RANGE if it does not end. */
static uint64_t range_count(mpl_type type, const int64_t whole[3], const double real[3])
{
    bool up = real[2] > 0;
    uint64_t span =
        up ? (uint64_t)whole[1] - (uint64_t)whole[0] : (uint64_t)whole[0] - (uint64_t)whole[1];
    uint64_t step = up ? (uint64_t)whole[2] : 0 - (uint64_t)whole[2];
    double count = ceil((real[1] - real[0]) / real[2]);

    if (type == MPL_TYPE_i64 || type == MPL_TYPE_i32)
        return step == 0                                            ? UINT64_MAX
               : (up ? whole[1] <= whole[0] : whole[1] >= whole[0]) ? 0
                                                                    : (span - 1) / step + 1;
    return count <= 0 ? 0 : count <= (double)MAX_RANGE ? (uint64_t)count : UINT64_MAX;
}

static mpl_status fill_range(onnx_node *node, mpl_type type, const int64_t whole[3],
                             const double real[3], uint64_t count)
{
    mpl_status st = MPL_OK;
    void *data = NULL;

    MPL_TRY((data = mpl_alloc(node->r->ctx, count, mpl_type_bytes(type))) != NULL ? MPL_OK
                                                                                  : MPL_EMEM);
    for (uint64_t i = 0; i < count; i++) {
        int64_t x = (int64_t)((uint64_t)whole[0] + i * (uint64_t)whole[2]);
        double y = real[0] + (double)i * real[2];

        if (type == MPL_TYPE_i64)
            ((int64_t *)data)[i] = x;
        else if (type == MPL_TYPE_i32)
            ((int32_t *)data)[i] = (int32_t)x;
        else if (type == MPL_TYPE_f32)
            ((float *)data)[i] = (float)y;
        else
            ((double *)data)[i] = y;
    }
    MPL_TRY(make(node, type, &(mpl_shape){1, {(int64_t)count}}, data, false));
out:
    mpl_free(node->r->ctx, data);
    return st;
}

/* Of 16 bits: counted in 32, as stash_type has it, and rounded at the end. */
static mpl_status fill_half_range(onnx_node *node, mpl_type type, const double real[3],
                                  uint64_t count)
{
    double *data;
    mpl_value v;

    MPL_PASS(onnx_new(node->r, data, (size_t)count));
    for (uint64_t i = 0; i < count; i++)
        data[i] = (double)(float)(real[0] + (double)i * real[2]);
    MPL_PASS(onnx_constant(node, type, &(mpl_shape){1, {(int64_t)count}}, data, "range", &v));
    return onnx_finish(node, MPL_OP_identity, 1, &v);
}

mpl_status onnx_lower_range(onnx_node *node)
{
    static const char *const what[] = {"start", "limit", "delta"};
    int64_t whole[3], *ints;
    double real[3], *floats;
    uint32_t items;
    uint64_t count;
    mpl_type type = MPL_TYPE_i64;

    for (uint32_t i = 0; i < 3; i++) {
        if (onnx_in(node, i) == MPL_NONE)
            return ONNX_REFUSE(node, "its %s is missing", what[i]);
        type = (mpl_type)node->r->g->value_type[node->in[i]];
        if (type > MPL_TYPE_i32)
            return ONNX_REFUSE(node, "its %s has element type %s; a float, i64 or i32 is needed",
                               what[i], mpl_type_name(type));
        if (type != (mpl_type)node->r->g->value_type[node->in[0]])
            return ONNX_REFUSE(node, "start, limit and delta have different types");
        MPL_PASS(numbers(node, node->in[i], what[i], &items, &ints, &floats));
        if (items != 1)
            return ONNX_REFUSE(node, "its %s has %u elements; one is needed", what[i], items);
        whole[i] = ints[0], real[i] = floats[0];
    }
    count = range_count(type, whole, real);
    if (count > MAX_RANGE)
        return ONNX_REFUSE(
            node, "it runs from %g to %g by %g; at most %" PRIu64 " elements are supported",
            real[0], real[1], real[2], MAX_RANGE);
    return type == MPL_TYPE_f16 || type == MPL_TYPE_bf16
               ? fill_half_range(node, type, real, count)
               : fill_range(node, type, whole, real, count);
}

mpl_status onnx_lower_eye_like(onnx_node *node)
{
    mpl_status st = MPL_OK;
    const mpl_graph *g = node->r->g;
    const mpl_shape *shape;
    int64_t k = onnx_attr_int(node, "k", 0);
    uint64_t count = 0;
    uint8_t *data = NULL;
    const char *name, *refused;
    mpl_type type;
    mpl_value v;

    if (onnx_in(node, 0) == MPL_NONE)
        ONNX_FAIL(node, "its input is missing");
    shape = &g->value_shape[node->in[0]];
    type = (mpl_type)g->value_type[node->in[0]];
    if (onnx_attr(node, "dtype") != NULL &&
        !onnx_type((int32_t)onnx_attr_int(node, "dtype", 0), &type, &refused))
        ONNX_FAIL(node, "its result has element type %s, which memplan has not", refused);
    if (shape->rank != 2 || !mpl_shape_count(shape, &count) || count > MAX_RANGE)
        ONNX_FAIL(node,
                  "its input has %u dims and %" PRIu64 " elements; 2 dims, at most %" PRIu64
                  " elements are supported",
                  shape->rank, count, MAX_RANGE);
    MPL_TRY(mpl_new(node->r->ctx, data, count));
    for (int64_t i = 0; i < shape->dim[0]; i++)
        if (k > -shape->dim[0] && k < shape->dim[1] && i + k >= 0 && i + k < shape->dim[1])
            data[i * shape->dim[1] + i + k] = 1;
    MPL_TRY(onnx_fresh_name(node->r, node->label, "eye", &name));
    MPL_TRY(
        mpl_graph_add_const(node->r->ctx, node->r->g, name, MPL_TYPE_u8, shape, data, false, &v));
    onnx_set(node, MPL_TEXT(to, mpl_type_name(type)));
    MPL_TRY(onnx_finish(node, MPL_OP_cast, 1, &v));
out:
    mpl_free(node->r->ctx, data);
    return st;
}
