/* text_token.c -- tokens of .graph text, and the names, types and numbers that they spell.
 *
 * A token is a word, a string in quotes, a mark, or the end of its line. Every reader here begins
 * at r->next and leaves the token after what it has read there. text_read.c describes the format.
 */
#include <stdarg.h>

#include "graphs/io/text/text_read_priv.h"

mpl_status mpl_text_refuse(const reader *in, const char *format, ...)
{
    char why[400];
    va_list args;

    va_start(args, format);
    vsnprintf(why, sizeof why, format, args);
    va_end(args);
    return MPL_REFUSE(in->ctx, "%s:%u: %s", in->path, in->line, why);
}

/* ---- tokens ---- */

mpl_status mpl_text_advance(reader *in)
{
    const char *at = in->at;

    while (at < in->end && (*at == ' ' || *at == '\t' || *at == '\r'))
        at++;
    in->next = (token){END, at, 0};
    if (at == in->end || *at == '\n' || *at == '#') {
        in->at = at;
        return MPL_OK;
    }
    if (*at == '"') {
        in->next = (token){STRING, ++at, 0};
        while (at < in->end && *at != '"' && *at != '\n')
            at += *at == '\\' && at + 1 < in->end && at[1] != '\n' ? 2 : 1;
        if (at == in->end || *at != '"')
            return mpl_text_refuse(in, "a string without its closing quote");
        in->next.n = (size_t)(at++ - in->next.start);
    } else if (mpl_text_word_char(*at)) {
        while (at < in->end && mpl_text_word_char(*at))
            at++;
        in->next = (token){WORD, in->next.start, (size_t)(at - in->next.start)};
    } else if (*at != '\0' && strchr("=()[],:@{}", *at) != NULL) {
        in->next = (token){MARK, at++, 1};
    } else {
        return mpl_text_refuse(in, "character 0x%02x has no place outside of a quoted name",
                               (unsigned char)*at);
    }
    in->at = at;
    return MPL_OK;
}

mpl_status mpl_text_next_line(reader *in, bool *more)
{
    do {
        const char *newline =
            in->at < in->end ? memchr(in->at, '\n', (size_t)(in->end - in->at)) : NULL;

        if (newline == NULL)
            return *more = false, MPL_OK;
        in->at = newline + 1;
        in->line++;
        MPL_PASS(mpl_text_advance(in));
    } while (in->next.kind == END);
    *more = true;
    return MPL_OK;
}

bool mpl_text_is_mark(const reader *in, char mark)
{
    return in->next.kind == MARK && *in->next.start == mark;
}

bool mpl_text_is_word(const reader *in, const char *word)
{
    return in->next.kind == WORD && in->next.n == strlen(word) &&
           memcmp(in->next.start, word, in->next.n) == 0;
}

const char *mpl_text_show(const token *self, char text[48])
{
    size_t n = self->n < 40 ? self->n : 40;

    if (self->kind == END)
        return "the end of the line";
    text[0] = '\'';
    for (size_t i = 0; i < n; i++)
        text[i + 1] = self->start[i] >= ' ' && self->start[i] < 0x7f ? self->start[i] : '?';
    memcpy(text + n + 1, self->n > n ? "..'" : "'", self->n > n ? 4 : 2);
    return text;
}

mpl_status mpl_text_expect_mark(reader *in, char mark, const char *where)
{
    char text[48];

    if (!mpl_text_is_mark(in, mark))
        return mpl_text_refuse(in, "%s where '%c' should stand %s", mpl_text_show(&in->next, text),
                               mark, where);
    return mpl_text_advance(in);
}

mpl_status mpl_text_expect_end(reader *in)
{
    char text[48];

    if (in->next.kind != END)
        return mpl_text_refuse(in, "%s where the line should end", mpl_text_show(&in->next, text));
    return MPL_OK;
}

mpl_status mpl_text_keep(reader *in, const token *t, size_t *begin, size_t *n)
{
    const char *at = t->start, *end = at + t->n;

    *begin = in->text.n;
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
                return mpl_text_refuse(
                    in, "a backslash in a string is followed by \\, \" or xHH (two hexadecimal "
                        "digits)");
            }
        }
        APPEND(in, in->text, c);
    }
    *n = in->text.n - *begin;
    APPEND(in, in->text, '\0');
    return MPL_OK;
}

mpl_status mpl_text_take_name(reader *in, const char *what, size_t *begin)
{
    char text[48];
    size_t n;

    if (in->next.kind != WORD && in->next.kind != STRING)
        return mpl_text_refuse(in, "%s where the name of %s should stand",
                               mpl_text_show(&in->next, text), what);
    MPL_PASS(mpl_text_keep(in, &in->next, begin, &n));
    if (strlen(in->text.item + *begin) != n)
        return mpl_text_refuse(in, "the name of %s holds a zero byte", what);
    return mpl_text_advance(in);
}

/* ---- types, dims, numbers ---- */

mpl_status mpl_text_take_int(reader *in, const char *what, int64_t *out)
{
    char text[48];

    if (in->next.kind != WORD || !mpl_text_parse_int(in->next.start, in->next.n, out))
        return mpl_text_refuse(in, "%s where %s should be a whole number of 64 bits",
                               mpl_text_show(&in->next, text), what);
    return mpl_text_advance(in);
}

static mpl_status take_shape(reader *in, mpl_shape *shape)
{
    *shape = (mpl_shape){0};
    MPL_PASS(mpl_text_expect_mark(in, '[', "to open the dims"));
    while (!mpl_text_is_mark(in, ']')) {
        if (shape->rank == MPL_MAX_RANK)
            return mpl_text_refuse(in, "more than %d dims", MPL_MAX_RANK);
        if (shape->rank > 0)
            MPL_PASS(mpl_text_expect_mark(in, ',', "between dims"));
        MPL_PASS(mpl_text_take_int(in, "a dim", &shape->dim[shape->rank]));
        if (shape->dim[shape->rank] < 0)
            return mpl_text_refuse(in, "dim %" PRId64 " is negative", shape->dim[shape->rank]);
        shape->rank++;
    }
    return mpl_text_advance(in);
}

static const char all_types[] =
#define TYPE(name, bits) " " #name
#include "graphs/ir/types.def"
#undef TYPE
    ;

mpl_status mpl_text_take_type(reader *in, mpl_type *type, mpl_shape *shape)
{
    char text[48], word[16] = "";

    if (in->next.kind == WORD && in->next.n < sizeof word)
        memcpy(word, in->next.start, in->next.n);
    if (!mpl_type_find(word, type))
        return mpl_text_refuse(in, "%s is no type; there are%s", mpl_text_show(&in->next, text),
                               all_types);
    MPL_PASS(mpl_text_advance(in));
    return take_shape(in, shape);
}

/* Reads the next token, a number, into raw as element i. */
static mpl_status take_element(reader *in, mpl_type type, uint64_t i)
{
    uint64_t bytes = 0;
    char text[48];

    mpl_type_size(type, i + 1, &bytes);
    MPL_PASS(mpl_reserve(in->ctx, in->raw.item, in->raw.cap, bytes));
    if (bytes > in->raw.n)
        memset(in->raw.item + in->raw.n, 0, bytes - in->raw.n);
    if (in->next.kind != WORD || !mpl_text_has_words(type) ||
        !mpl_text_parse(type, in->next.start, in->next.n, in->raw.item, (int64_t)i))
        return mpl_text_refuse(in, "%s where a number that %s can hold should stand",
                               mpl_text_show(&in->next, text), mpl_type_name(type));
    in->raw.n = bytes;
    return mpl_text_advance(in);
}

static mpl_status take_hex(reader *in, uint64_t bytes)
{
    const char *digits = in->next.start;
    char text[48];

    if (in->next.kind != WORD || in->next.n % 2 != 0)
        return mpl_text_refuse(in, "%s where two hexadecimal digits a byte should stand",
                               mpl_text_show(&in->next, text));
    if (in->next.n / 2 != bytes)
        return mpl_text_refuse(in, "%zu bytes where type and dims need %" PRIu64, in->next.n / 2,
                               bytes);
    MPL_PASS(mpl_reserve(in->ctx, in->raw.item, in->raw.cap, in->next.n / 2));
    for (size_t i = 0; i < in->next.n; i += 2) {
        int high = mpl_text_hex(digits[i]), low = mpl_text_hex(digits[i + 1]);

        if (high < 0 || low < 0)
            return mpl_text_refuse(in, "'%.2s' where two hexadecimal digits should stand",
                                   &digits[i]);
        in->raw.item[in->raw.n++] = (unsigned char)(high << 4 | low);
    }
    return mpl_text_advance(in);
}

mpl_status mpl_text_take_constant(reader *in, mpl_type type, const mpl_shape *shape, bool *splat)
{
    uint64_t count, bytes, n = 0;
    char text[48];

    if (!mpl_shape_count(shape, &count) || !mpl_type_size(type, count, &bytes))
        return mpl_text_refuse(in, "dims of more than 2^63 bytes");
    *splat = mpl_text_is_word(in, "splat");
    if (!*splat && !mpl_text_is_word(in, "data") && !mpl_text_is_word(in, "bytes"))
        return mpl_text_refuse(in, "%s where 'splat', 'data' or 'bytes' should stand",
                               mpl_text_show(&in->next, text));
    if (mpl_text_is_word(in, "bytes")) {
        MPL_PASS(mpl_text_advance(in));
        MPL_PASS(take_hex(in, bytes));
        return MPL_OK;
    }
    MPL_PASS(mpl_text_advance(in));
    for (; *splat ? n == 0 : in->next.kind != END; n++)
        MPL_PASS(take_element(in, type, n));
    if (!*splat && n != count)
        return mpl_text_refuse(in, "%" PRIu64 " numbers where the dims need %" PRIu64, n, count);
    return mpl_reserve(in->ctx, in->raw.item, in->raw.cap, 1); /* an address even if empty */
}
