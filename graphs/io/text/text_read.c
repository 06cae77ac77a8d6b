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
 *   exit_unless(C)                               an operation without outputs; `while BODY(..)` too
 *   block NAME                                   opens a block, which ends at its `yield`
 *   param NAME TYPE [D,..]                       a parameter, at the start of its block
 *   yield A, ..                                  closes the block with its results
 *   output NAME                                  any number of them
 *
 * `_` is an omitted optional operand. Types and dims of outputs are inferred, and checked if given.
 * @NAME names the operation; by default it has the name of its first output. Operators are those of
 * ir/ops.def, or of the user's (ops/user). Attributes are those of ir/attrs.def: whole numbers,
 * numbers, words or strings, and
 * lists in brackets. Names are words of letters, digits and _ . / + - or strings in quotes with \\
 * \" \xHH. An operation owns the blocks right above it. Braces are reserved. A whole file costs
 * O(size). For control flow see mpl_graph_add_control. */
#include <stdarg.h>

#include "graphs/core/file.h"
#include "graphs/io/text/text_priv.h"
#include "graphs/ops/user/user_ops.h"
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
    MPL_PASS(mpl_reserve((r)->ctx, (list).item, (list).cap, (list).n + 1));                        \
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
    LIST(char) params;    /* attributes of an operator of the user's, as written */
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

/* Refuses the text, with its path and line. */
static mpl_status __attribute__((format(printf, 2, 3)))
refuse_at(const reader *r, const char *format, ...)
{
    char why[400];
    va_list args;

    va_start(args, format);
    vsnprintf(why, sizeof why, format, args);
    va_end(args);
    return MPL_REFUSE(r->ctx, "%s:%u: %s", r->path, r->line, why);
}

/* ---- tokens ---- */

/* Moves to the next token of this line; stops at END. */
static mpl_status advance(reader *r)
{
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
            return refuse_at(r, "a string without its closing quote");
        r->next.n = (size_t)(at++ - r->next.start);
    } else if (mpl_text_word_char(*at)) {
        while (at < r->end && mpl_text_word_char(*at))
            at++;
        r->next = (token){WORD, r->next.start, (size_t)(at - r->next.start)};
    } else if (*at != '\0' && strchr("=()[],:@{}", *at) != NULL) {
        r->next = (token){MARK, at++, 1};
    } else {
        return refuse_at(r, "character 0x%02x has no place outside of a quoted name",
                         (unsigned char)*at);
    }
    r->at = at;
    return MPL_OK;
}

/* Moves to the first token of the next line that is not empty; false: end of text. */
static mpl_status next_line(reader *r, bool *more)
{
    do {
        const char *newline = r->at < r->end ? memchr(r->at, '\n', (size_t)(r->end - r->at)) : NULL;

        if (newline == NULL)
            return *more = false, MPL_OK;
        r->at = newline + 1;
        r->line++;
        MPL_PASS(advance(r));
    } while (r->next.kind == END);
    *more = true;
    return MPL_OK;
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
    char text[48];

    if (!is_mark(r, mark))
        return refuse_at(r, "%s where '%c' should stand %s", show(&r->next, text), mark, where);
    return advance(r);
}

static mpl_status expect_end(reader *r)
{
    char text[48];

    if (r->next.kind != END)
        return refuse_at(r, "%s where the line should end", show(&r->next, text));
    return MPL_OK;
}

/* Copies a word or string, unescaped, into text with a zero; *begin: its offset, *n: its length. */
static mpl_status keep(reader *r, const token *t, size_t *begin, size_t *n)
{
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
                return refuse_at(
                    r, "a backslash in a string is followed by \\, \" or xHH (two hexadecimal "
                       "digits)");
            }
        }
        APPEND(r, r->text, c);
    }
    *n = r->text.n - *begin;
    APPEND(r, r->text, '\0');
    return MPL_OK;
}

/* Reads a name: a word, or a string without zero bytes. `what`: its kind, for messages. */
static mpl_status take_name(reader *r, const char *what, size_t *begin)
{
    char text[48];
    size_t n;

    if (r->next.kind != WORD && r->next.kind != STRING)
        return refuse_at(r, "%s where the name of %s should stand", show(&r->next, text), what);
    MPL_PASS(keep(r, &r->next, begin, &n));
    if (strlen(r->text.item + *begin) != n)
        return refuse_at(r, "the name of %s holds a zero byte", what);
    return advance(r);
}

/* ---- types, dims, numbers ---- */

static mpl_status take_int(reader *r, const char *what, int64_t *out)
{
    char text[48];

    if (r->next.kind != WORD || !mpl_text_parse_int(r->next.start, r->next.n, out))
        return refuse_at(r, "%s where %s should be a whole number of 64 bits", show(&r->next, text),
                         what);
    return advance(r);
}

static mpl_status take_shape(reader *r, mpl_shape *shape)
{
    *shape = (mpl_shape){0};
    MPL_PASS(expect_mark(r, '[', "to open the dims"));
    while (!is_mark(r, ']')) {
        if (shape->rank == MPL_MAX_RANK)
            return refuse_at(r, "more than %d dims", MPL_MAX_RANK);
        if (shape->rank > 0)
            MPL_PASS(expect_mark(r, ',', "between dims"));
        MPL_PASS(take_int(r, "a dim", &shape->dim[shape->rank]));
        if (shape->dim[shape->rank] < 0)
            return refuse_at(r, "dim %" PRId64 " is negative", shape->dim[shape->rank]);
        shape->rank++;
    }
    return advance(r);
}

static const char all_types[] =
#define TYPE(name, bits) " " #name
#include "graphs/ir/types.def"
#undef TYPE
    ;

static mpl_status take_type(reader *r, mpl_type *type, mpl_shape *shape)
{
    char text[48], word[16] = "";

    if (r->next.kind == WORD && r->next.n < sizeof word)
        memcpy(word, r->next.start, r->next.n);
    if (!mpl_type_find(word, type))
        return refuse_at(r, "%s is no type; there are%s", show(&r->next, text), all_types);
    MPL_PASS(advance(r));
    return take_shape(r, shape);
}

/* Reads the next token, a number, into raw as element i. */
static mpl_status take_element(reader *r, mpl_type type, uint64_t i)
{
    uint64_t bytes = 0;
    char text[48];

    mpl_type_size(type, i + 1, &bytes);
    MPL_PASS(mpl_reserve(r->ctx, r->raw.item, r->raw.cap, bytes));
    if (bytes > r->raw.n)
        memset(r->raw.item + r->raw.n, 0, bytes - r->raw.n);
    if (r->next.kind != WORD || !mpl_text_has_words(type) ||
        !mpl_text_parse(type, r->next.start, r->next.n, r->raw.item, (int64_t)i))
        return refuse_at(r, "%s where a number that %s can hold should stand", show(&r->next, text),
                         mpl_type_name(type));
    r->raw.n = bytes;
    return advance(r);
}

static mpl_status take_hex(reader *r, uint64_t bytes)
{
    const char *digits = r->next.start;
    char text[48];

    if (r->next.kind != WORD || r->next.n % 2 != 0)
        return refuse_at(r, "%s where two hexadecimal digits a byte should stand",
                         show(&r->next, text));
    if (r->next.n / 2 != bytes)
        return refuse_at(r, "%zu bytes where type and dims need %" PRIu64, r->next.n / 2, bytes);
    MPL_PASS(mpl_reserve(r->ctx, r->raw.item, r->raw.cap, r->next.n / 2));
    for (size_t i = 0; i < r->next.n; i += 2) {
        int high = mpl_text_hex(digits[i]), low = mpl_text_hex(digits[i + 1]);

        if (high < 0 || low < 0)
            return refuse_at(r, "'%.2s' where two hexadecimal digits should stand", &digits[i]);
        r->raw.item[r->raw.n++] = (unsigned char)(high << 4 | low);
    }
    return advance(r);
}

/* Reads the constant after '=' into raw. */
static mpl_status take_constant(reader *r, mpl_type type, const mpl_shape *shape, bool *splat)
{
    uint64_t count, bytes, n = 0;
    char text[48];

    if (!mpl_shape_count(shape, &count) || !mpl_type_size(type, count, &bytes))
        return refuse_at(r, "dims of more than 2^63 bytes");
    *splat = is_word(r, "splat");
    if (!*splat && !is_word(r, "data") && !is_word(r, "bytes"))
        return refuse_at(r, "%s where 'splat', 'data' or 'bytes' should stand",
                         show(&r->next, text));
    if (is_word(r, "bytes")) {
        MPL_PASS(advance(r));
        MPL_PASS(take_hex(r, bytes));
        return MPL_OK;
    }
    MPL_PASS(advance(r));
    for (; *splat ? n == 0 : r->next.kind != END; n++)
        MPL_PASS(take_element(r, type, n));
    if (!*splat && n != count)
        return refuse_at(r, "%" PRIu64 " numbers where the dims need %" PRIu64, n, count);
    return mpl_reserve(r->ctx, r->raw.item, r->raw.cap, 1); /* an address even if empty */
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
    bool bound = is_word(r, "bound"), input = is_word(r, "input"), constant, splat = false;
    mpl_type type;
    mpl_shape shape;
    mpl_value v;
    size_t name;

    MPL_PASS(advance(r));
    MPL_PASS(take_name(r, "a value", &name));
    MPL_PASS(take_type(r, &type, &shape));
    constant = is_mark(r, '=');
    if (constant) {
        MPL_PASS(advance(r));
        MPL_PASS(take_constant(r, type, &shape, &splat));
    }
    MPL_PASS(expect_end(r));
    if (input && constant)
        return refuse_at(r, "an input has no data; write 'weight' for a constant");
    if (bound && (!constant || splat))
        return refuse_at(r, "a bound input needs all its elements: '= data ..' or '= bytes ..'");
    if (constant && !bound) {
        MPL_PASS(located(r, mpl_graph_add_const(r->ctx, r->g, r->text.item + name, type, &shape,
                                                r->raw.item, splat, &v)));
        return MPL_OK;
    }
    MPL_PASS(
        located(r, mpl_graph_add_value(r->ctx, r->g, r->text.item + name,
                                       input || bound ? MPL_INPUT : MPL_WEIGHT, type, &shape, &v)));
    if (bound)
        MPL_PASS(mpl_graph_bind_input(r->ctx, r->g, v, r->raw.item));
    return MPL_OK;
}

static mpl_status read_block(reader *r)
{
    size_t name;
    uint32_t block;

    MPL_PASS(advance(r));
    MPL_PASS(take_name(r, "a block", &name));
    MPL_PASS(expect_end(r));
    return located(r, mpl_graph_open_block(r->ctx, r->g, r->text.item + name, &block));
}

static mpl_status read_param(reader *r)
{
    mpl_type type;
    mpl_shape shape;
    mpl_value v;
    size_t name;

    MPL_PASS(advance(r));
    MPL_PASS(take_name(r, "a parameter", &name));
    MPL_PASS(take_type(r, &type, &shape));
    MPL_PASS(expect_end(r));
    return located(r, mpl_graph_add_param(r->ctx, r->g, r->text.item + name, type, &shape, &v));
}

static mpl_status read_output(reader *r)
{
    mpl_value v;
    token name;
    char text[48];
    size_t begin;

    MPL_PASS(advance(r));
    name = r->next;
    MPL_PASS(take_name(r, "an output", &begin));
    MPL_PASS(expect_end(r));
    v = mpl_graph_find(r->g, r->text.item + begin);
    if (v == MPL_NONE)
        return refuse_at(r, "output %s is made by no line above", show(&name, text));
    return located(r, mpl_graph_add_output(r->ctx, r->g, v));
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
    size_t begin;

    for (;;) {
        MPL_PASS(take_name(r, "a block", &begin));
        APPEND(r, r->bodies, begin);
        if (!is_mark(r, ','))
            break;
        MPL_PASS(advance(r));
    }
    return MPL_OK;
}

/* Reads "OUT, .. = ", which may be absent, and the operator, into out and op. */
static mpl_status take_outputs(reader *r, token *op)
{
    char text[48];
    size_t begin;

    for (;;) {
        *op = r->next;
        MPL_PASS(take_operand(r, "a value", &begin));
        if (r->out.n == 0 && op->kind == WORD &&
            (is_mark(r, '(') || r->next.kind == WORD || r->next.kind == STRING))
            return MPL_OK;
        APPEND(r, r->out, begin);
        if (!is_mark(r, ','))
            break;
        MPL_PASS(advance(r));
    }
    MPL_PASS(expect_mark(r, '=', "between the outputs and their operator"));
    *op = r->next;
    if (op->kind != WORD)
        return refuse_at(r, "%s where an operator should stand", show(op, text));
    return advance(r);
}

/* Reads "OUT, .. = OPERATOR BLOCK, .. (IN, ..)" into out, op, bodies and in. */
static mpl_status take_call(reader *r, token *op)
{
    size_t begin;

    MPL_PASS(take_outputs(r, op));
    if (r->next.kind == WORD || r->next.kind == STRING)
        MPL_PASS(take_bodies(r));
    MPL_PASS(expect_mark(r, '(', "to open the inputs"));
    while (!is_mark(r, ')')) {
        if (r->in.n > 0)
            MPL_PASS(expect_mark(r, ',', "between inputs"));
        MPL_PASS(take_operand(r, "an input", &begin));
        APPEND(r, r->in, begin);
    }
    return advance(r);
}

static mpl_status take_number(reader *r, mpl_attr_kind kind)
{
    char text[48];
    int64_t whole;
    double number;

    if (kind == MPL_ATTR_INT || kind == MPL_ATTR_INTS) {
        MPL_PASS(take_int(r, "the attribute", &whole));
        APPEND(r, r->ints, whole);
        return MPL_OK;
    }
    if (r->next.kind != WORD || !mpl_text_parse(MPL_TYPE_f64, r->next.start, r->next.n, &number, 0))
        return refuse_at(r, "%s where the attribute should be a number", show(&r->next, text));
    APPEND(r, r->floats, number);
    return advance(r);
}

/* Reads "[NUMBER, ..]". */
static mpl_status take_list(reader *r, mpl_attr_kind kind)
{
    bool first = true;

    MPL_PASS(expect_mark(r, '[', "to open the list"));
    while (!is_mark(r, ']')) {
        if (!first)
            MPL_PASS(expect_mark(r, ',', "between items of a list"));
        MPL_PASS(take_number(r, kind));
        first = false;
    }
    return advance(r);
}

/* Reads "KEY=VALUE" into attr and the list of its kind. */
static mpl_status take_attr(reader *r)
{
    attr_item item = {0};
    mpl_attr_kind kind;
    token key = r->next;
    char text[48], word[32] = "";

    if (key.kind == WORD && key.n < sizeof word)
        memcpy(word, key.start, key.n);
    if (!mpl_attr_find(word, &item.key))
        return refuse_at(r, "%s is no attribute; those there are stand in ir/attrs.def",
                         show(&key, text));
    for (size_t i = 0; i < r->attr.n; i++)
        if (r->attr.item[i].key == item.key)
            return refuse_at(r, "attribute %s is given twice", show(&key, text));
    kind = mpl_attr_kind_of(item.key);
    MPL_PASS(advance(r));
    MPL_PASS(expect_mark(r, '=', "behind an attribute"));
    if (kind == MPL_ATTR_TEXT) {
        if (r->next.kind != WORD && r->next.kind != STRING)
            return refuse_at(r, "%s where the attribute should be a word or a string",
                             show(&r->next, text));
        MPL_PASS(keep(r, &r->next, &item.begin, &item.n));
        MPL_PASS(advance(r));
    } else {
        bool whole = kind == MPL_ATTR_INT || kind == MPL_ATTR_INTS;

        item.begin = whole ? r->ints.n : r->floats.n;
        MPL_PASS(kind == MPL_ATTR_INTS || kind == MPL_ATTR_FLOATS ? take_list(r, kind)
                                                                  : take_number(r, kind));
        item.n = (whole ? r->ints.n : r->floats.n) - item.begin;
    }
    APPEND(r, r->attr, item);
    return MPL_OK;
}

static mpl_status keep_param(reader *r, const char *text, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        APPEND(r, r->params, text[i]);
    }
    return MPL_OK;
}

/* Reads "KEY=VALUE" of an operator of the user's into params, without blanks. */
static mpl_status take_param(reader *r)
{
    bool list;

    if (r->params.n > 0)
        MPL_PASS(keep_param(r, " ", 1));
    MPL_PASS(keep_param(r, r->next.start, r->next.n));
    MPL_PASS(advance(r));
    MPL_PASS(expect_mark(r, '=', "behind an attribute"));
    MPL_PASS(keep_param(r, "=", 1));
    list = is_mark(r, '[');
    for (;;) {
        bool quoted = r->next.kind == STRING, last = !list || is_mark(r, ']');
        char text[48];

        if (r->next.kind == END || (r->next.kind == MARK && !list))
            return refuse_at(r, "%s where the value of an attribute should stand",
                             show(&r->next, text));
        MPL_PASS(keep_param(r, r->next.start - quoted, r->next.n + 2 * (size_t)quoted));
        MPL_PASS(advance(r));
        if (last)
            return MPL_OK;
    }
}

/* Makes the operator's name and params attributes. */
static mpl_status keep_user(reader *r, const token *op)
{
    attr_item item = {.key = MPL_ATTR_opcode};

    MPL_PASS(keep(r, op, &item.begin, &item.n));
    APPEND(r, r->attr, item);
    if (r->params.n == 0)
        return MPL_OK;
    item.key = MPL_ATTR_params;
    MPL_PASS(keep(r, &(token){WORD, r->params.item, r->params.n}, &item.begin, &item.n));
    APPEND(r, r->attr, item);
    return MPL_OK;
}

/* ---- why no line above makes a name ---- */

/* Reads the names that this line makes into out, those that it needs into in. */
static mpl_status take_maker(reader *r)
{
    token op;
    size_t name;

    if (!is_word(r, "input") && !is_word(r, "weight") && !is_word(r, "bound") &&
        !is_word(r, "param"))
        return take_call(r, &op);
    MPL_PASS(advance(r));
    MPL_PASS(take_name(r, "a value", &name));
    APPEND(r, r->out, name);
    return MPL_OK;
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
    const mpl_shape scalar = {0};
    mpl_value v;

    for (size_t i = 0; i < r->out.n; i++) {
        const char *name = r->text.item + r->out.item[i];

        if (r->out.item[i] != LEFT_OUT && mpl_graph_find(names, name) == MPL_NONE)
            MPL_PASS(
                mpl_graph_add_value(r->ctx, names, name, MPL_WEIGHT, MPL_TYPE_u8, &scalar, &v));
    }
    return MPL_OK;
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
    uint32_t line = r->line, made;
    bool cycle;
    char text[48];

    MPL_PASS(find_below(r, name, &made, &cycle));
    r->line = line;
    show(&(token){WORD, r->text.item + name, strlen(r->text.item + name)}, text);
    if (made == line)
        return refuse_at(r, "%s needs itself: a cycle", text);
    if (cycle)
        return refuse_at(r, "%s is made on line %u, which needs what this line makes: a cycle",
                         text, made);
    if (made != 0)
        return refuse_at(r, "%s is made on line %u; a line may only use what lines above it make",
                         text, made);
    return refuse_at(r, "%s is made by no line", text);
}

/* ---- operations ---- */

/* Resolves names to values and pointers, after the arrays stop growing. */
static mpl_status resolve(reader *r)
{
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
            return refuse_at(r, "no block '%.100s' stands above", r->text.item + r->bodies.item[i]);
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
    return mpl_reserve(r->ctx, r->out_value.item, r->out_value.cap, r->out.n);
}

/* Reads ": TYPE [D,..], .." into types. */
static mpl_status take_types(reader *r)
{
    MPL_PASS(expect_mark(r, ':', "before the types"));
    for (;;) {
        type_item item = {.given = !is_word(r, "_")};

        MPL_PASS(item.given ? take_type(r, &item.type, &item.shape) : advance(r));
        APPEND(r, r->types, item);
        if (!is_mark(r, ','))
            break;
        MPL_PASS(advance(r));
    }
    return MPL_OK;
}

/* Checks the types given in the line against the inferred ones. */
static mpl_status check_types(reader *r)
{
    char dims[200];

    if (r->types.n > 0 && r->types.n != r->out.n)
        return refuse_at(r, "%zu types for %zu outputs", r->types.n, r->out.n);
    for (size_t i = 0; i < r->types.n; i++) {
        const type_item *item = &r->types.item[i];
        mpl_value v = r->out_value.item[i];

        if (v == MPL_NONE && item->given)
            return refuse_at(r, "output %zu is left out and has no type; write _", i);
        if (v == MPL_NONE || !item->given)
            continue;
        if (item->type != r->g->value_type[v] ||
            !mpl_shape_equal(&item->shape, &r->g->value_shape[v]))
            return refuse_at(r, "the type of '%.60s' is %s %s", r->g->value_name[v],
                             mpl_type_name((mpl_type)r->g->value_type[v]),
                             mpl_shape_text(&r->g->value_shape[v], dims));
    }
    return MPL_OK;
}

static mpl_status read_yield(reader *r)
{
    size_t begin;

    MPL_PASS(advance(r));
    while (r->next.kind != END) {
        if (r->in.n > 0)
            MPL_PASS(expect_mark(r, ',', "between results"));
        MPL_PASS(take_operand(r, "a result", &begin));
        APPEND(r, r->in, begin);
    }
    MPL_PASS(resolve(r));
    return located(r, mpl_graph_close_block(r->ctx, r->g, (uint32_t)r->in.n, r->in_value.item));
}

static mpl_status read_op(reader *r)
{
    token op;
    mpl_op_kind kind;
    size_t name, length;
    char text[48], word[MPL_USER_NAME] = "";
    bool user;

    MPL_PASS(take_call(r, &op));
    if (op.n < sizeof word)
        memcpy(word, op.start, op.n);
    user = mpl_user_find(word) != NULL;
    if (!mpl_op_find(word, &kind) && !user)
        return refuse_at(r,
                         "%s is no operator; those there are stand in ir/ops.def, and yours come "
                         "by --operators so:FILE",
                         show(&op, text));
    kind = user ? MPL_OP_user : kind;
    while (r->next.kind == WORD)
        MPL_PASS(user ? take_param(r) : take_attr(r));
    if (user)
        MPL_PASS(keep_user(r, &op));
    if (is_mark(r, ':'))
        MPL_PASS(take_types(r));
    if (r->out.n > 0)
        name = r->out.item[0];
    else
        MPL_PASS(keep(r, &op, &name, &length));
    if (is_mark(r, '@')) {
        MPL_PASS(advance(r));
        MPL_PASS(take_name(r, "the operation", &name));
    }
    MPL_PASS(expect_end(r));
    MPL_PASS(resolve(r));
    MPL_PASS(
        located(r, mpl_graph_add_control(r->ctx, r->g, kind, r->text.item + name, (uint32_t)r->in.n,
                                         r->in_value.item, (uint32_t)r->attr.n, r->attr_value.item,
                                         (uint32_t)r->body.n, r->body.item, (uint32_t)r->out.n,
                                         r->out_name.item, r->out_value.item)));
    return check_types(r);
}

/* ---- the file ---- */

static mpl_status read_header(reader *r)
{
    bool more, program;
    size_t name;

    MPL_PASS(advance(r));
    if (r->next.kind == END)
        MPL_PASS(next_line(r, &more));
    program = is_word(r, "program");
    if (!is_word(r, "graph") && !program)
        return refuse_at(r, "the first line is not 'graph NAME' or 'program NAME'");
    MPL_PASS(advance(r));
    MPL_PASS(take_name(r, "the graph", &name));
    MPL_PASS(expect_end(r));
    MPL_PASS(mpl_graph_new(r->ctx, r->text.item + name, &r->g));
    r->g->program = program;
    return MPL_OK;
}

static mpl_status read_line(reader *r)
{
    char text[48];

    r->text.n = 1;
    r->params.n = 0;
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
        return refuse_at(r, "a second '%.*s' line; one file holds one graph", (int)r->next.n,
                         r->next.start);
    if (r->next.kind == WORD && mpl_text_reserved(r->next.start, r->next.n) && !is_word(r, "_"))
        return refuse_at(r, "%s is reserved; a value of that name stands in quotes",
                         show(&r->next, text));
    return read_op(r);
    return MPL_OK;
}

static void free_lists(reader *r)
{
    void *const lists[] = {
        r->text.item,      r->out.item,        r->in.item,     r->attr.item,     r->ints.item,
        r->floats.item,    r->types.item,      r->raw.item,    r->in_value.item, r->out_name.item,
        r->out_value.item, r->attr_value.item, r->bodies.item, r->body.item,     r->params.item};

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
