/* text_write.c -- writes a graph as .graph text. text_read.c describes the format. */
#include "graphs/core/file.h"
#include "graphs/core/text.h"
#include "graphs/io/text/text_priv.h"
#include "graphs/ops/user/user_ops.h"
#include "graphs/source.h"

/* Growing text; ignores additions after a failure. */
typedef struct writer {
    mpl_ctx *ctx;
    mpl_status st;
    char *text;
    size_t n, cap;
} writer;

static void put_bytes(writer *out, const char *bytes, size_t n)
{
    if (out->st == MPL_OK)
        out->st = mpl_reserve(out->ctx, out->text, out->cap, out->n + n + 1);
    if (out->st != MPL_OK)
        return;
    memcpy(out->text + out->n, bytes, n);
    out->n += n;
    out->text[out->n] = '\0';
}

static void put(writer *out, const char *text)
{
    put_bytes(out, text, strlen(text));
}

static void put_hex(writer *out, const unsigned char *bytes, size_t n)
{
    static const char digits[] = "0123456789abcdef";

    for (size_t i = 0; i < n; i++)
        put_bytes(out, (const char[]){digits[bytes[i] >> 4], digits[bytes[i] & 15]}, 2);
}

static void put_quoted(writer *out, const char *text, size_t n)
{
    put(out, "\"");
    for (size_t i = 0; i < n; i++) {
        unsigned char c = (unsigned char)text[i];
        uint32_t seen = mpl_text_seen(text + i);

        if (c == '"' || c == '\\') {
            put_bytes(out, (const char[]){'\\', (char)c}, 2);
        } else if (seen == 0 || seen > n - i) {
            put(out, "\\x");
            put_hex(out, &c, 1);
        } else {
            put_bytes(out, text + i, seen);
            i += seen - 1;
        }
    }
    put(out, "\"");
}

/* A bare word if possible, else a quoted string. */
static void put_name(writer *out, const char *name, size_t n)
{
    bool word = n > 0 && !mpl_text_reserved(name, n);

    for (size_t i = 0; i < n && word; i++)
        word = mpl_text_word_char(name[i]);
    if (word)
        put_bytes(out, name, n);
    else
        put_quoted(out, name, n);
}

static void put_value(writer *out, const mpl_graph *g, mpl_value v)
{
    if (v == MPL_NONE)
        put(out, "_");
    else
        put_name(out, g->value_name[v], strlen(g->value_name[v]));
}

static void put_type(writer *out, const mpl_graph *g, mpl_value v)
{
    char text[200];

    put(out, mpl_type_name((mpl_type)g->value_type[v]));
    put(out, " ");
    put(out, mpl_shape_text(&g->value_shape[v], text));
}

static void put_constant(writer *out, const mpl_graph *g, mpl_value v)
{
    mpl_type type = (mpl_type)g->value_type[v];
    uint64_t n = (uint64_t)mpl_count(&g->value_shape[v]);
    char text[MPL_TEXT_NUMBER];

    if (g->value_splat[v]) {
        put(out, " = splat ");
        put(out, mpl_text_format(type, g->value_data[v], 0, text));
    } else if (n > MPL_TEXT_MAX_DATA || !mpl_text_has_words(type)) {
        put(out, " = bytes ");
        put_hex(out, g->value_data[v], g->value_bytes[v]);
    } else {
        put(out, " = data");
        for (uint64_t i = 0; i < n; i++) {
            put(out, " ");
            put(out, mpl_text_format(type, g->value_data[v], (int64_t)i, text));
        }
    }
}

static void put_declaration(writer *out, const mpl_graph *g, mpl_value v)
{
    put(out, g->value_role[v] == MPL_INPUT ? "input " : mpl_is_bound(g, v) ? "bound " : "weight ");
    put_value(out, g, v);
    put(out, " ");
    put_type(out, g, v);
    if (g->value_data[v] != NULL)
        put_constant(out, g, v);
    put(out, "\n");
}

static void put_attr(writer *out, const mpl_attr *attr)
{
    mpl_attr_kind kind = mpl_attr_kind_of(attr->key);
    bool list = kind == MPL_ATTR_INTS || kind == MPL_ATTR_FLOATS;
    char text[MPL_TEXT_NUMBER];

    put(out, " ");
    put(out, mpl_attr_name(attr->key));
    put(out, "=");
    if (kind == MPL_ATTR_TEXT) {
        put_name(out, attr->text, attr->n);
        return;
    }
    put(out, list ? "[" : "");
    for (uint32_t i = 0; i < attr->n; i++) {
        put(out, i > 0 ? "," : "");
        put(out, attr->ints != NULL ? mpl_text_format(MPL_TYPE_i64, attr->ints, i, text)
                                    : mpl_text_format(MPL_TYPE_f64, attr->floats, i, text));
    }
    put(out, list ? "]" : "");
}

static void put_bodies(writer *out, const mpl_graph *g, mpl_op op)
{
    for (uint32_t i = g->op_body_begin[op]; i < g->op_body_begin[op + 1]; i++) {
        const char *name = g->block_name[g->op_body[i]];

        put(out, i > g->op_body_begin[op] ? ", " : " ");
        put_name(out, name, strlen(name));
    }
}

static void put_op(writer *out, const mpl_graph *g, mpl_op op)
{
    uint32_t first = g->op_out_begin[op], end = g->op_out_begin[op + 1];
    mpl_value named = first < end ? g->op_out[first] : MPL_NONE;
    bool user = mpl_user_of(g, op) != NULL; /* its attributes stand as they were read */
    const char *kind = user ? mpl_op_called(g, op) : mpl_op_table[g->op_kind[op]].name;

    for (uint32_t i = first; i < end; i++) {
        put(out, i > first ? ", " : "");
        put_value(out, g, g->op_out[i]);
    }
    put(out, first < end ? " = " : "");
    put(out, kind);
    put_bodies(out, g, op);
    put(out, "(");
    for (uint32_t i = g->op_in_begin[op]; i < g->op_in_begin[op + 1]; i++) {
        put(out, i > g->op_in_begin[op] ? ", " : "");
        put_value(out, g, g->op_in[i]);
    }
    put(out, ")");
    for (uint32_t i = g->op_attr_begin[op]; i < g->op_attr_begin[op + 1]; i++) {
        mpl_attr attr = mpl_attr_at(g, i);

        if (!user)
            put_attr(out, &attr);
        else if (attr.key == MPL_ATTR_params)
            put(out, " "), put(out, attr.text);
    }
    for (uint32_t i = first; i < end; i++) {
        put(out, i > first ? ", " : " : ");
        if (g->op_out[i] == MPL_NONE)
            put(out, "_");
        else
            put_type(out, g, g->op_out[i]);
    }
    if (strcmp(g->op_name[op], named != MPL_NONE ? g->value_name[named] : kind) != 0) {
        put(out, " @");
        put_name(out, g->op_name[op], strlen(g->op_name[op]));
    }
    put(out, "\n");
}

static void indent(writer *out, uint32_t depth)
{
    for (uint32_t i = 0; i < depth; i++)
        put(out, "  ");
}

static void put_open(writer *out, const mpl_graph *g, uint32_t b, uint32_t depth)
{
    put(out, "block ");
    put_name(out, g->block_name[b], strlen(g->block_name[b]));
    put(out, "\n");
    for (uint32_t i = 0; i < g->block_n_params[b]; i++) {
        mpl_value v = g->block_param[g->block_param_begin[b] + i];

        indent(out, depth + 1);
        put(out, "param ");
        put_value(out, g, v);
        put(out, " ");
        put_type(out, g, v);
        put(out, "\n");
    }
}

static void put_close(writer *out, const mpl_graph *g, uint32_t b)
{
    put(out, "yield");
    for (uint32_t i = 0; i < g->block_n_results[b]; i++) {
        put(out, i > 0 ? ", " : " ");
        put_value(out, g, g->block_result[g->block_result_begin[b] + i]);
    }
    put(out, "\n");
}

mpl_status mpl_text_write_memory(mpl_ctx *ctx, const mpl_graph *g, char **text, size_t *size)
{
    mpl_status st = MPL_OK;
    writer w = {.ctx = ctx};
    mpl_walk walk = mpl_walk_begin();
    mpl_item item;
    uint32_t depth = 0;

    put(&w, g->program ? "program " : "graph ");
    put_name(&w, g->name, strlen(g->name));
    put(&w, "\n");
    while ((item = mpl_walk_next(g, &walk)) != MPL_ITEM_END) {
        if (item == MPL_ITEM_CLOSE)
            depth--;
        indent(&w, depth);
        if (item == MPL_ITEM_VALUE)
            put_declaration(&w, g, walk.value);
        else if (item == MPL_ITEM_OP)
            put_op(&w, g, walk.op);
        else if (item == MPL_ITEM_OPEN)
            put_open(&w, g, walk.block, depth++);
        else
            put_close(&w, g, walk.block);
    }
    for (uint32_t i = 0; i < g->n_outputs; i++) {
        put(&w, "output ");
        put_value(&w, g, g->output[i]);
        put(&w, "\n");
    }
    MPL_TRY(w.st);
    *text = w.text, w.text = NULL;
    *size = w.n;
out:
    mpl_free(ctx, w.text);
    return st;
}

mpl_status mpl_text_write(mpl_ctx *ctx, const char *path, const mpl_graph *g)
{
    mpl_status st = MPL_OK;
    mpl_new_file file = {0};
    char *text = NULL;
    size_t size;

    MPL_TRY(mpl_text_write_memory(ctx, g, &text, &size));
    MPL_TRY(mpl_file_begin(ctx, path, &file));
    fwrite(text, 1, size, file.stream);
    MPL_TRY(mpl_file_commit(ctx, &file));
out:
    mpl_file_end(ctx, &file);
    mpl_free(ctx, text);
    return st;
}
