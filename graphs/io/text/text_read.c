/* text_read.c -- graphs from .graph text.
 *
 * One statement a line; '#' starts a comment; a value is made above the lines that use it.
 *
 *   graph NAME                                   first; `program NAME` allows writes in place
 *   input NAME TYPE [D,D,..]                     given by the caller
 *   weight NAME TYPE [D,D,..]                    filled from a seed
 *   weight NAME TYPE [D,D,..] = splat NUMBER     one number for all elements
 *   weight NAME TYPE [D,D,..] = data NUMBER ..   all elements, row-major
 *   weight NAME TYPE [D,D,..] = bytes HEX        all elements as bytes in memory (little-endian)
 *   bound NAME TYPE [D,D,..] = data|bytes ..     an input that decided shapes and became a constant
 *   OUT, .. = OPERATOR(IN, ..) KEY=VALUE .. : TYPE [D,..], .. @NAME
 *   OUT, .. = while BODY(IN, ..) ..              an operation that owns blocks names them
 *   exit_unless(C)                               an operation without outputs
 *   block NAME                                   opens a block, which ends at its `yield`
 *   param NAME TYPE [D,..]                       a parameter, at the start of its block
 *   yield A, ..                                  closes the block with its results
 *   output NAME                                  any number of them
 *
 * `_` is an omitted optional operand. Types and dims of outputs are inferred, and checked if given.
 * @NAME names the operation; by default it has the name of its first output. Operators are those of
 * ir/ops.def. Attributes are those of ir/attrs.def: whole numbers, numbers, words or strings, and
 * lists in brackets. Names are words of letters, digits and _ . / + - or strings in quotes with \\
 * \" \xHH. An operation owns the blocks right above it. Braces are reserved. A whole file costs
 * O(size). For control flow see mpl_graph_add_control. */
#include "graphs/core/file.h"
#include "graphs/io/text/text_priv.h"
#include "graphs/source.h"

typedef enum token_kind { WORD, STRING, MARK, END } token_kind;

typedef struct token {
    token_kind kind;
    const char *start; /* STRING: between the quotes, still escaped */
    size_t n;
} token;

typedef struct attr_item {
    mpl_attr_key key;
    size_t begin, n; /* in ints, floats or text, by the kind of the key */
} attr_item;

typedef struct type_item {
    bool given;
    mpl_type type;
    mpl_shape shape;
} type_item;

/* A list that is reused for every line. */
#define LIST(type)                                                                                 \
    struct {                                                                                       \
        type *item;                                                                                \
        size_t n, cap;                                                                             \
    }
#define APPEND(r, list, value)                                                                     \
    MPL_TRY(mpl_reserve((r)->ctx, (list).item, (list).cap, (list).n + 1));                         \
    (list).item[(list).n++] = (value)

enum {
    LEFT_OUT = 0
}; /* offset in text of an operand `_`; text starts with a byte that no name uses */

typedef struct reader {
    mpl_ctx *ctx;
    const char *path;
    const char *at, *end; /* unread rest of the text */
    uint32_t line;        /* of `next` */
    token next;
    mpl_graph *g;
    LIST(char) text;      /* names and strings of this line, unescaped, zero-terminated */
    LIST(size_t) out, in; /* names in text, or LEFT_OUT */
    LIST(size_t) bodies;  /* names of blocks in text */
    LIST(uint32_t) body;
    LIST(attr_item) attr;
    LIST(int64_t) ints;
    LIST(double) floats;
    LIST(type_item) types;
    LIST(unsigned char) raw; /* a constant's elements */
    LIST(mpl_value) in_value;
    LIST(const char *) out_name;
    LIST(mpl_value) out_value;
    LIST(mpl_attr) attr_value;
} reader;

#define FAIL_AT(r, ...)                                                                            \
    do {                                                                                           \
        char why_[400];                                                                            \
        snprintf(why_, sizeof why_, __VA_ARGS__);                                                  \
        MPL_FAIL((r)->ctx, MPL_EINPUT, "%s:%u: %s", (r)->path, (r)->line, why_);                   \
    } while (0)

/* ---- tokens ---- */

/* Moves to the next token of this line; stops at END. */
static mpl_status advance(reader *r)
{
    mpl_status st = MPL_OK;
    const char *at = r->at;

    while (at < r->end && (*at == ' ' || *at == '\t' || *at == '\r'))
        at++;
    r->next = (token){END, at, 0};
    if (at == r->end || *at == '\n' || *at == '#') {
        r->at = at;
        return MPL_OK;
    }
    if (*at == '"') {
        r->next = (token){STRING, ++at, 0};
        while (at < r->end && *at != '"' && *at != '\n')
            at += *at == '\\' && at + 1 < r->end && at[1] != '\n' ? 2 : 1;
        if (at == r->end || *at != '"')
            FAIL_AT(r, "a string without its closing quote");
        r->next.n = (size_t)(at++ - r->next.start);
    } else if (mpl_text_word_char(*at)) {
        while (at < r->end && mpl_text_word_char(*at))
            at++;
        r->next = (token){WORD, r->next.start, (size_t)(at - r->next.start)};
    } else if (*at != '\0' && strchr("=()[],:@{}", *at) != NULL) {
        r->next = (token){MARK, at++, 1};
    } else {
        FAIL_AT(r, "character 0x%02x has no place outside of a quoted name", (unsigned char)*at);
    }
    r->at = at;
out:
    return st;
}

/* Moves to the first token of the next line that is not empty; false: end of text. */
static mpl_status next_line(reader *r, bool *more)
{
    mpl_status st = MPL_OK;

    do {
        const char *newline = r->at < r->end ? memchr(r->at, '\n', (size_t)(r->end - r->at)) : NULL;

        if (newline == NULL)
            return *more = false, MPL_OK;
        r->at = newline + 1;
        r->line++;
        MPL_TRY(advance(r));
    } while (r->next.kind == END);
    *more = true;
out:
    return st;
}

static bool is_mark(const reader *r, char mark)
{
    return r->next.kind == MARK && *r->next.start == mark;
}

static bool is_word(const reader *r, const char *word)
{
    return r->next.kind == WORD && r->next.n == strlen(word) &&
           memcmp(r->next.start, word, r->next.n) == 0;
}

/* A token for a message: at most 40 characters, unprintable ones as '?'. */
static const char *show(const token *t, char text[48])
{
    size_t n = t->n < 40 ? t->n : 40;

    if (t->kind == END)
        return "the end of the line";
    text[0] = '\'';
    for (size_t i = 0; i < n; i++)
        text[i + 1] = t->start[i] >= ' ' && t->start[i] < 0x7f ? t->start[i] : '?';
    memcpy(text + n + 1, t->n > n ? "..'" : "'", t->n > n ? 4 : 2);
    return text;
}

static mpl_status expect_mark(reader *r, char mark, const char *where)
{
    mpl_status st = MPL_OK;
    char text[48];

    if (!is_mark(r, mark))
        FAIL_AT(r, "%s where '%c' should stand %s", show(&r->next, text), mark, where);
    MPL_TRY(advance(r));
out:
    return st;
}

static mpl_status expect_end(reader *r)
{
    mpl_status st = MPL_OK;
    char text[48];

    if (r->next.kind != END)
        FAIL_AT(r, "%s where the line should end", show(&r->next, text));
out:
    return st;
}

/* Copies a word or string, unescaped, into text with a zero; *begin: its offset, *n: its length. */
static mpl_status keep(reader *r, const token *t, size_t *begin, size_t *n)
{
    mpl_status st = MPL_OK;
    const char *at = t->start, *end = at + t->n;

    *begin = r->text.n;
    while (at < end) {
        char c = *at++;

        if (t->kind == STRING && c == '\\') {
            if (at < end && (*at == '\\' || *at == '"')) {
                c = *at++;
            } else if (end - at >= 3 && *at == 'x' && mpl_text_hex(at[1]) >= 0 &&
                       mpl_text_hex(at[2]) >= 0) {
                c = (char)(mpl_text_hex(at[1]) << 4 | mpl_text_hex(at[2]));
                at += 3;
            } else {
                FAIL_AT(r, "a backslash in a string is followed by \\, \" or xHH (two hexadecimal "
                           "digits)");
            }
        }
        APPEND(r, r->text, c);
    }
    *n = r->text.n - *begin;
    APPEND(r, r->text, '\0');
out:
    return st;
}

/* Reads a name: a word, or a string without zero bytes. `what`: its kind, for messages. */
static mpl_status take_name(reader *r, const char *what, size_t *begin)
{
    mpl_status st = MPL_OK;
    char text[48];
    size_t n;

    if (r->next.kind != WORD && r->next.kind != STRING)
        FAIL_AT(r, "%s where the name of %s should stand", show(&r->next, text), what);
    MPL_TRY(keep(r, &r->next, begin, &n));
    if (strlen(r->text.item + *begin) != n)
        FAIL_AT(r, "the name of %s holds a zero byte", what);
    MPL_TRY(advance(r));
out:
    return st;
}

/* ---- types, dims, numbers ---- */

static mpl_status take_int(reader *r, const char *what, int64_t *out)
{
    mpl_status st = MPL_OK;
    char text[48];

    if (r->next.kind != WORD || !mpl_text_parse_int(r->next.start, r->next.n, out))
        FAIL_AT(r, "%s where %s should be a whole number of 64 bits", show(&r->next, text), what);
    MPL_TRY(advance(r));
out:
    return st;
}

static mpl_status take_shape(reader *r, mpl_shape *shape)
{
    mpl_status st = MPL_OK;

    *shape = (mpl_shape){0};
    MPL_TRY(expect_mark(r, '[', "to open the dims"));
    while (!is_mark(r, ']')) {
        if (shape->rank == MPL_MAX_RANK)
            FAIL_AT(r, "more than %d dims", MPL_MAX_RANK);
        if (shape->rank > 0)
            MPL_TRY(expect_mark(r, ',', "between dims"));
        MPL_TRY(take_int(r, "a dim", &shape->dim[shape->rank]));
        if (shape->dim[shape->rank] < 0)
            FAIL_AT(r, "dim %" PRId64 " is negative", shape->dim[shape->rank]);
        shape->rank++;
    }
    MPL_TRY(advance(r));
out:
    return st;
}

static mpl_status take_type(reader *r, mpl_type *type, mpl_shape *shape)
{
    mpl_status st = MPL_OK;
    char text[48], word[8] = "";

    if (r->next.kind == WORD && r->next.n < sizeof word)
        memcpy(word, r->next.start, r->next.n);
    if (!mpl_type_find(word, type))
        FAIL_AT(r, "%s is no type; there are f64 f32 f16 bf16 i64 i32 i8 u8 bool",
                show(&r->next, text));
    MPL_TRY(advance(r));
    MPL_TRY(take_shape(r, shape));
out:
    return st;
}

/* Appends the next token, a number, to raw. */
static mpl_status take_element(reader *r, mpl_type type)
{
    mpl_status st = MPL_OK;
    uint32_t size = mpl_type_bytes(type);
    char text[48];

    MPL_TRY(mpl_reserve(r->ctx, r->raw.item, r->raw.cap, r->raw.n + size));
    if (r->next.kind != WORD ||
        !mpl_text_parse(type, r->next.start, r->next.n, r->raw.item, (int64_t)(r->raw.n / size)))
        FAIL_AT(r, "%s where a number that %s can hold should stand", show(&r->next, text),
                mpl_type_name(type));
    r->raw.n += size;
    MPL_TRY(advance(r));
out:
    return st;
}

static mpl_status take_hex(reader *r, uint64_t bytes)
{
    mpl_status st = MPL_OK;
    const char *digits = r->next.start;
    char text[48];

    if (r->next.kind != WORD || r->next.n % 2 != 0)
        FAIL_AT(r, "%s where two hexadecimal digits a byte should stand", show(&r->next, text));
    if (r->next.n / 2 != bytes)
        FAIL_AT(r, "%zu bytes where type and dims need %" PRIu64, r->next.n / 2, bytes);
    MPL_TRY(mpl_reserve(r->ctx, r->raw.item, r->raw.cap, r->next.n / 2));
    for (size_t i = 0; i < r->next.n; i += 2) {
        int high = mpl_text_hex(digits[i]), low = mpl_text_hex(digits[i + 1]);

        if (high < 0 || low < 0)
            FAIL_AT(r, "'%.2s' where two hexadecimal digits should stand", &digits[i]);
        r->raw.item[r->raw.n++] = (unsigned char)(high << 4 | low);
    }
    MPL_TRY(advance(r));
out:
    return st;
}

/* Reads the constant after '=' into raw. */
static mpl_status take_constant(reader *r, mpl_type type, const mpl_shape *shape, bool *splat)
{
    mpl_status st = MPL_OK;
    uint64_t count, bytes;
    char text[48];

    if (!mpl_shape_count(shape, &count) || !mpl_mul_bytes(count, mpl_type_bytes(type), &bytes))
        FAIL_AT(r, "dims of more than 2^63 bytes");
    *splat = is_word(r, "splat");
    if (!*splat && !is_word(r, "data") && !is_word(r, "bytes"))
        FAIL_AT(r, "%s where 'splat', 'data' or 'bytes' should stand", show(&r->next, text));
    if (is_word(r, "bytes")) {
        MPL_TRY(advance(r));
        MPL_TRY(take_hex(r, bytes));
        return MPL_OK;
    }
    MPL_TRY(advance(r));
    while (*splat ? r->raw.n == 0 : r->next.kind != END)
        MPL_TRY(take_element(r, type));
    if (!*splat && r->raw.n != bytes)
        FAIL_AT(r, "%zu numbers where the dims need %" PRIu64, r->raw.n / mpl_type_bytes(type),
                count);
    MPL_TRY(mpl_reserve(r->ctx, r->raw.item, r->raw.cap, 1)); /* an address even if empty */
out:
    return st;
}

/* ---- lines ---- */

/* Adds the place in the file to a failure inside the graph. */
static mpl_status located(reader *r, mpl_status st)
{
    char why[sizeof r->ctx->message];

    if (st != MPL_EINPUT)
        return st;
    memcpy(why, r->ctx->message, sizeof why);
    return mpl_fail(r->ctx, st, r->ctx->file, r->ctx->line, "%s:%u: %.400s", r->path, r->line, why);
}

/* Reads an input, weight or bound; the next token is this keyword. */
static mpl_status read_declaration(reader *r)
{
    mpl_status st = MPL_OK;
    bool bound = is_word(r, "bound"), input = is_word(r, "input"), constant, splat = false;
    mpl_type type;
    mpl_shape shape;
    mpl_value v;
    size_t name;

    MPL_TRY(advance(r));
    MPL_TRY(take_name(r, "a value", &name));
    MPL_TRY(take_type(r, &type, &shape));
    constant = is_mark(r, '=');
    if (constant) {
        MPL_TRY(advance(r));
        MPL_TRY(take_constant(r, type, &shape, &splat));
    }
    MPL_TRY(expect_end(r));
    if (input && constant)
        FAIL_AT(r, "an input has no data; write 'weight' for a constant");
    if (bound && (!constant || splat))
        FAIL_AT(r, "a bound input needs all its elements: '= data ..' or '= bytes ..'");
    if (constant && !bound) {
        MPL_TRY(located(r, mpl_graph_add_const(r->ctx, r->g, r->text.item + name, type, &shape,
                                               r->raw.item, splat, &v)));
        return MPL_OK;
    }
    MPL_TRY(
        located(r, mpl_graph_add_value(r->ctx, r->g, r->text.item + name,
                                       input || bound ? MPL_INPUT : MPL_WEIGHT, type, &shape, &v)));
    if (bound)
        MPL_TRY(mpl_graph_bind_input(r->ctx, r->g, v, r->raw.item));
out:
    return st;
}

static mpl_status read_block(reader *r)
{
    mpl_status st = MPL_OK;
    size_t name;
    uint32_t block;

    MPL_TRY(advance(r));
    MPL_TRY(take_name(r, "a block", &name));
    MPL_TRY(expect_end(r));
    MPL_TRY(located(r, mpl_graph_open_block(r->ctx, r->g, r->text.item + name, &block)));
out:
    return st;
}

static mpl_status read_param(reader *r)
{
    mpl_status st = MPL_OK;
    mpl_type type;
    mpl_shape shape;
    mpl_value v;
    size_t name;

    MPL_TRY(advance(r));
    MPL_TRY(take_name(r, "a parameter", &name));
    MPL_TRY(take_type(r, &type, &shape));
    MPL_TRY(expect_end(r));
    MPL_TRY(located(r, mpl_graph_add_param(r->ctx, r->g, r->text.item + name, type, &shape, &v)));
out:
    return st;
}

static mpl_status read_output(reader *r)
{
    mpl_status st = MPL_OK;
    mpl_value v;
    token name;
    char text[48];
    size_t begin;

    MPL_TRY(advance(r));
    name = r->next;
    MPL_TRY(take_name(r, "an output", &begin));
    MPL_TRY(expect_end(r));
    v = mpl_graph_find(r->g, r->text.item + begin);
    if (v == MPL_NONE)
        FAIL_AT(r, "output %s is made by no line above", show(&name, text));
    MPL_TRY(located(r, mpl_graph_add_output(r->ctx, r->g, v)));
out:
    return st;
}

/* One operand: a name, or `_`. */
static mpl_status take_operand(reader *r, const char *what, size_t *begin)
{
    if (!is_word(r, "_"))
        return take_name(r, what, begin);
    *begin = LEFT_OUT;
    return advance(r);
}

/* Reads "NAME, .." after an operator that owns blocks into bodies. */
static mpl_status take_bodies(reader *r)
{
    mpl_status st = MPL_OK;
    size_t begin;

    for (;;) {
        MPL_TRY(take_name(r, "a block", &begin));
        APPEND(r, r->bodies, begin);
        if (!is_mark(r, ','))
            break;
        MPL_TRY(advance(r));
    }
out:
    return st;
}

/* Reads "OUT, .. = ", which may be absent, and the operator, into out and op. */
static mpl_status take_outputs(reader *r, token *op)
{
    mpl_status st = MPL_OK;
    char text[48];
    size_t begin;

    for (;;) {
        *op = r->next;
        MPL_TRY(take_operand(r, "a value", &begin));
        if (r->out.n == 0 && is_mark(r, '(') && op->kind == WORD)
            return MPL_OK;
        APPEND(r, r->out, begin);
        if (!is_mark(r, ','))
            break;
        MPL_TRY(advance(r));
    }
    MPL_TRY(expect_mark(r, '=', "between the outputs and their operator"));
    *op = r->next;
    if (op->kind != WORD)
        FAIL_AT(r, "%s where an operator should stand", show(op, text));
    MPL_TRY(advance(r));
out:
    return st;
}

/* Reads "OUT, .. = OPERATOR BLOCK, .. (IN, ..)" into out, op, bodies and in. */
static mpl_status take_call(reader *r, token *op)
{
    mpl_status st = MPL_OK;
    size_t begin;

    MPL_TRY(take_outputs(r, op));
    if (r->next.kind == WORD || r->next.kind == STRING)
        MPL_TRY(take_bodies(r));
    MPL_TRY(expect_mark(r, '(', "to open the inputs"));
    while (!is_mark(r, ')')) {
        if (r->in.n > 0)
            MPL_TRY(expect_mark(r, ',', "between inputs"));
        MPL_TRY(take_operand(r, "an input", &begin));
        APPEND(r, r->in, begin);
    }
    MPL_TRY(advance(r));
out:
    return st;
}

static mpl_status take_number(reader *r, mpl_attr_kind kind)
{
    mpl_status st = MPL_OK;
    char text[48];
    int64_t whole;
    double number;

    if (kind == MPL_ATTR_INT || kind == MPL_ATTR_INTS) {
        MPL_TRY(take_int(r, "the attribute", &whole));
        APPEND(r, r->ints, whole);
        return MPL_OK;
    }
    if (r->next.kind != WORD || !mpl_text_parse(MPL_TYPE_f64, r->next.start, r->next.n, &number, 0))
        FAIL_AT(r, "%s where the attribute should be a number", show(&r->next, text));
    APPEND(r, r->floats, number);
    MPL_TRY(advance(r));
out:
    return st;
}

/* Reads "[NUMBER, ..]". */
static mpl_status take_list(reader *r, mpl_attr_kind kind)
{
    mpl_status st = MPL_OK;
    bool first = true;

    MPL_TRY(expect_mark(r, '[', "to open the list"));
    while (!is_mark(r, ']')) {
        if (!first)
            MPL_TRY(expect_mark(r, ',', "between items of a list"));
        MPL_TRY(take_number(r, kind));
        first = false;
    }
    MPL_TRY(advance(r));
out:
    return st;
}

/* Reads "KEY=VALUE" into attr and the list of its kind. */
static mpl_status take_attr(reader *r)
{
    mpl_status st = MPL_OK;
    attr_item item = {0};
    mpl_attr_kind kind;
    token key = r->next;
    char text[48], word[32] = "";

    if (key.kind == WORD && key.n < sizeof word)
        memcpy(word, key.start, key.n);
    if (!mpl_attr_find(word, &item.key))
        FAIL_AT(r, "%s is no attribute; those there are stand in ir/attrs.def", show(&key, text));
    for (size_t i = 0; i < r->attr.n; i++)
        if (r->attr.item[i].key == item.key)
            FAIL_AT(r, "attribute %s is given twice", show(&key, text));
    kind = mpl_attr_kind_of(item.key);
    MPL_TRY(advance(r));
    MPL_TRY(expect_mark(r, '=', "behind an attribute"));
    if (kind == MPL_ATTR_TEXT) {
        if (r->next.kind != WORD && r->next.kind != STRING)
            FAIL_AT(r, "%s where the attribute should be a word or a string", show(&r->next, text));
        MPL_TRY(keep(r, &r->next, &item.begin, &item.n));
        MPL_TRY(advance(r));
    } else {
        bool whole = kind == MPL_ATTR_INT || kind == MPL_ATTR_INTS;

        item.begin = whole ? r->ints.n : r->floats.n;
        MPL_TRY(kind == MPL_ATTR_INTS || kind == MPL_ATTR_FLOATS ? take_list(r, kind)
                                                                 : take_number(r, kind));
        item.n = (whole ? r->ints.n : r->floats.n) - item.begin;
    }
    APPEND(r, r->attr, item);
out:
    return st;
}

/* ---- why no line above makes a name ---- */

/* Reads the names that this line makes into out, those that it needs into in. */
static mpl_status take_maker(reader *r)
{
    mpl_status st = MPL_OK;
    token op;
    size_t name;

    if (!is_word(r, "input") && !is_word(r, "weight") && !is_word(r, "bound") &&
        !is_word(r, "param"))
        return take_call(r, &op);
    MPL_TRY(advance(r));
    MPL_TRY(take_name(r, "a value", &name));
    APPEND(r, r->out, name);
out:
    return st;
}

/* Reads up to the next line that makes values; false: end of text. Skips unreadable lines. Keeps
 * names in text. */
static mpl_status next_maker(reader *r, bool *more)
{
    mpl_status st;

    do {
        r->out.n = r->in.n = 0;
        st = next_line(r, more);
        if (st == MPL_OK && *more)
            st = take_maker(r);
    } while (st == MPL_EINPUT);
    return st;
}

static bool needs_one_of(const reader *r, const mpl_graph *names)
{
    for (size_t i = 0; i < r->in.n; i++)
        if (r->in.item[i] != LEFT_OUT &&
            mpl_graph_find(names, r->text.item + r->in.item[i]) != MPL_NONE)
            return true;
    return false;
}

static mpl_status add_outputs(const reader *r, mpl_graph *names)
{
    mpl_status st = MPL_OK;
    const mpl_shape scalar = {0};
    mpl_value v;

    for (size_t i = 0; i < r->out.n; i++) {
        const char *name = r->text.item + r->out.item[i];

        if (r->out.item[i] != LEFT_OUT && mpl_graph_find(names, name) == MPL_NONE)
            MPL_TRY(mpl_graph_add_value(r->ctx, names, name, MPL_WEIGHT, MPL_TYPE_u8, &scalar, &v));
    }
out:
    return st;
}

static bool makes(const reader *r, size_t name)
{
    for (size_t i = 0; i < r->out.n; i++)
        if (r->out.item[i] != LEFT_OUT &&
            strcmp(r->text.item + r->out.item[i], r->text.item + name) == 0)
            return true;
    return false;
}

/* Searches from the line just read for the one that makes `name`. *made: that line, 0: none.
 * *cycle: it depends, through the lines between, on an output of the line just read. */
static mpl_status find_below(reader *r, size_t name, uint32_t *made, bool *cycle)
{
    mpl_status st = MPL_OK;
    mpl_graph *needing = NULL; /* a set of names: what depends on the line just read */
    bool more = true, depends = true;

    *made = 0;
    *cycle = false;
    MPL_TRY(mpl_graph_new(r->ctx, "", &needing));
    while (more && !makes(r, name)) {
        if (depends)
            MPL_TRY(add_outputs(r, needing));
        MPL_TRY(next_maker(r, &more));
        depends = needs_one_of(r, needing);
    }
    if (more) {
        *made = r->line;
        *cycle = depends;
    }
out:
    mpl_graph_free(r->ctx, needing);
    return st;
}

/* Reports an input that no line above makes. */
static mpl_status refuse_missing(reader *r, size_t name)
{
    mpl_status st = MPL_OK;
    uint32_t line = r->line, made;
    bool cycle;
    char text[48];

    MPL_TRY(find_below(r, name, &made, &cycle));
    r->line = line;
    show(&(token){WORD, r->text.item + name, strlen(r->text.item + name)}, text);
    if (made == line)
        FAIL_AT(r, "%s needs itself: a cycle", text);
    if (cycle)
        FAIL_AT(r, "%s is made on line %u, which needs what this line makes: a cycle", text, made);
    if (made != 0)
        FAIL_AT(r, "%s is made on line %u; a line may only use what lines above it make", text,
                made);
    FAIL_AT(r, "%s is made by no line", text);
out:
    return st;
}

/* ---- operations ---- */

/* Resolves names to values and pointers, after the arrays stop growing. */
static mpl_status resolve(reader *r)
{
    mpl_status st = MPL_OK;

    for (size_t i = 0; i < r->in.n; i++) {
        mpl_value v = MPL_NONE;

        if (r->in.item[i] != LEFT_OUT &&
            (v = mpl_graph_find(r->g, r->text.item + r->in.item[i])) == MPL_NONE)
            return refuse_missing(r, r->in.item[i]);
        APPEND(r, r->in_value, v);
    }
    for (size_t i = 0; i < r->bodies.n; i++) {
        uint32_t b = mpl_graph_find_block(r->g, r->text.item + r->bodies.item[i]);

        if (b == MPL_NONE)
            FAIL_AT(r, "no block '%.100s' stands above", r->text.item + r->bodies.item[i]);
        APPEND(r, r->body, b);
    }
    for (size_t i = 0; i < r->out.n; i++) {
        APPEND(r, r->out_name, r->out.item[i] == LEFT_OUT ? NULL : r->text.item + r->out.item[i]);
    }
    for (size_t i = 0; i < r->attr.n; i++) {
        const attr_item *item = &r->attr.item[i];
        mpl_attr_kind kind = mpl_attr_kind_of(item->key);
        mpl_attr attr = {.key = item->key, .n = (uint32_t)item->n};

        if (kind == MPL_ATTR_TEXT)
            attr.text = r->text.item + item->begin;
        else if (kind == MPL_ATTR_INT || kind == MPL_ATTR_INTS)
            attr.ints = r->ints.item + item->begin;
        else
            attr.floats = r->floats.item + item->begin;
        APPEND(r, r->attr_value, attr);
    }
    MPL_TRY(mpl_reserve(r->ctx, r->out_value.item, r->out_value.cap, r->out.n));
out:
    return st;
}

/* Reads ": TYPE [D,..], .." into types. */
static mpl_status take_types(reader *r)
{
    mpl_status st = MPL_OK;

    MPL_TRY(expect_mark(r, ':', "before the types"));
    for (;;) {
        type_item item = {.given = !is_word(r, "_")};

        MPL_TRY(item.given ? take_type(r, &item.type, &item.shape) : advance(r));
        APPEND(r, r->types, item);
        if (!is_mark(r, ','))
            break;
        MPL_TRY(advance(r));
    }
out:
    return st;
}

/* Checks the types given in the line against the inferred ones. */
static mpl_status check_types(reader *r)
{
    mpl_status st = MPL_OK;
    char dims[200];

    if (r->types.n > 0 && r->types.n != r->out.n)
        FAIL_AT(r, "%zu types for %zu outputs", r->types.n, r->out.n);
    for (size_t i = 0; i < r->types.n; i++) {
        const type_item *item = &r->types.item[i];
        mpl_value v = r->out_value.item[i];

        if (v == MPL_NONE && item->given)
            FAIL_AT(r, "output %zu is left out and has no type; write _", i);
        if (v == MPL_NONE || !item->given)
            continue;
        if (item->type != r->g->value_type[v] ||
            !mpl_shape_equal(&item->shape, &r->g->value_shape[v]))
            FAIL_AT(r, "the type of '%.60s' is %s %s", r->g->value_name[v],
                    mpl_type_name((mpl_type)r->g->value_type[v]),
                    mpl_shape_text(&r->g->value_shape[v], dims));
    }
out:
    return st;
}

static mpl_status read_yield(reader *r)
{
    mpl_status st = MPL_OK;
    size_t begin;

    MPL_TRY(advance(r));
    while (r->next.kind != END) {
        if (r->in.n > 0)
            MPL_TRY(expect_mark(r, ',', "between results"));
        MPL_TRY(take_operand(r, "a result", &begin));
        APPEND(r, r->in, begin);
    }
    MPL_TRY(resolve(r));
    MPL_TRY(located(r, mpl_graph_close_block(r->ctx, r->g, (uint32_t)r->in.n, r->in_value.item)));
out:
    return st;
}

static mpl_status read_op(reader *r)
{
    mpl_status st = MPL_OK;
    token op;
    mpl_op_kind kind;
    size_t name, length;
    char text[48], word[32] = "";

    MPL_TRY(take_call(r, &op));
    if (op.n < sizeof word)
        memcpy(word, op.start, op.n);
    if (!mpl_op_find(word, &kind))
        FAIL_AT(r, "%s is no operator; those there are stand in ir/ops.def", show(&op, text));
    while (r->next.kind == WORD)
        MPL_TRY(take_attr(r));
    if (is_mark(r, ':'))
        MPL_TRY(take_types(r));
    if (r->out.n > 0)
        name = r->out.item[0];
    else
        MPL_TRY(keep(r, &op, &name, &length));
    if (is_mark(r, '@')) {
        MPL_TRY(advance(r));
        MPL_TRY(take_name(r, "the operation", &name));
    }
    MPL_TRY(expect_end(r));
    MPL_TRY(resolve(r));
    MPL_TRY(
        located(r, mpl_graph_add_control(r->ctx, r->g, kind, r->text.item + name, (uint32_t)r->in.n,
                                         r->in_value.item, (uint32_t)r->attr.n, r->attr_value.item,
                                         (uint32_t)r->body.n, r->body.item, (uint32_t)r->out.n,
                                         r->out_name.item, r->out_value.item)));
    MPL_TRY(check_types(r));
out:
    return st;
}

/* ---- the file ---- */

static mpl_status read_header(reader *r)
{
    mpl_status st = MPL_OK;
    bool more, program;
    size_t name;

    MPL_TRY(advance(r));
    if (r->next.kind == END)
        MPL_TRY(next_line(r, &more));
    program = is_word(r, "program");
    if (!is_word(r, "graph") && !program)
        FAIL_AT(r, "the first line is not 'graph NAME' or 'program NAME'");
    MPL_TRY(advance(r));
    MPL_TRY(take_name(r, "the graph", &name));
    MPL_TRY(expect_end(r));
    MPL_TRY(mpl_graph_new(r->ctx, r->text.item + name, &r->g));
    r->g->program = program;
out:
    return st;
}

static mpl_status read_line(reader *r)
{
    mpl_status st = MPL_OK;
    char text[48];

    r->text.n = 1;
    r->out.n = r->in.n = r->attr.n = r->ints.n = r->floats.n = r->raw.n = r->types.n = 0;
    r->in_value.n = r->out_name.n = r->out_value.n = r->attr_value.n = r->bodies.n = r->body.n = 0;
    if (is_word(r, "input") || is_word(r, "weight") || is_word(r, "bound"))
        return read_declaration(r);
    if (is_word(r, "output"))
        return read_output(r);
    if (is_word(r, "block"))
        return read_block(r);
    if (is_word(r, "param"))
        return read_param(r);
    if (is_word(r, "yield"))
        return read_yield(r);
    if (is_word(r, "graph") || is_word(r, "program"))
        FAIL_AT(r, "a second '%.*s' line; one file holds one graph", (int)r->next.n, r->next.start);
    if (r->next.kind == WORD && mpl_text_reserved(r->next.start, r->next.n) && !is_word(r, "_"))
        FAIL_AT(r, "%s is reserved; a value of that name stands in quotes", show(&r->next, text));
    return read_op(r);
out:
    return st;
}

static void free_lists(reader *r)
{
    void *const lists[] = {
        r->text.item,      r->out.item,        r->in.item,     r->attr.item,     r->ints.item,
        r->floats.item,    r->types.item,      r->raw.item,    r->in_value.item, r->out_name.item,
        r->out_value.item, r->attr_value.item, r->bodies.item, r->body.item};

    MPL_FREE_ALL(r->ctx, lists);
}

mpl_status mpl_text_read_memory(mpl_ctx *ctx, const char *path, const char *data, size_t size,
                                mpl_graph **out)
{
    mpl_status st = MPL_OK;
    reader here = {.ctx = ctx, .path = path, .at = data, .end = data + size, .line = 1}, *r = &here;
    bool more;

    APPEND(r, r->text, '\0');
    MPL_TRY(mpl_reserve(ctx, r->ints.item, r->ints.cap, 1)); /* an address even if empty */
    MPL_TRY(mpl_reserve(ctx, r->floats.item, r->floats.cap, 1));
    MPL_TRY(read_header(r));
    for (;;) {
        MPL_TRY(next_line(r, &more));
        if (!more)
            break;
        MPL_TRY(read_line(r));
    }
    MPL_TRY(located(r, mpl_graph_finish(ctx, r->g)));
    *out = r->g, r->g = NULL;
out:
    if (st == MPL_EINPUT) /* names may hold any bytes, a message is one line */
        for (char *c = ctx->message; *c != '\0'; c++)
            if ((unsigned char)*c < ' ' || *c == 0x7f)
                *c = '?';
    mpl_graph_free(ctx, r->g);
    free_lists(r);
    return st;
}

mpl_status mpl_text_read(mpl_ctx *ctx, const char *path, mpl_graph **out)
{
    mpl_status st = MPL_OK;
    char *text = NULL;
    size_t size;

    MPL_TRY(mpl_file_read(ctx, path, &text, &size));
    MPL_TRY(mpl_text_read_memory(ctx, path, text, size, out));
out:
    mpl_free(ctx, text);
    return st;
}
