/* text_token.c -- tokens of .graph text, and the names, types and numbers that they spell.
 *
 * A token is a word, a string in quotes, a mark, or the end of its line. Every reader here begins
 * at r->next and leaves the token after what it has read there. text_read.c describes the format.
 */
#include <stdarg.h>

#include "graphs/io/text/text_read_priv.h"

mpl_status mpl_text_refuse(const reader *r, const char *format, ...)
{
    char why[400];
    va_list args;

    va_start(args, format);
    vsnprintf(why, sizeof why, format, args);
    va_end(args);
    return MPL_REFUSE(r->ctx, "%s:%u: %s", r->path, r->line, why);
}

/* ---- tokens ---- */

mpl_status mpl_text_advance(reader *r)
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
            return mpl_text_refuse(r, "a string without its closing quote");
        r->next.n = (size_t)(at++ - r->next.start);
    } else if (mpl_text_word_char(*at)) {
        while (at < r->end && mpl_text_word_char(*at))
            at++;
        r->next = (token){WORD, r->next.start, (size_t)(at - r->next.start)};
    } else if (*at != '\0' && strchr("=()[],:@{}", *at) != NULL) {
        r->next = (token){MARK, at++, 1};
    } else {
        return mpl_text_refuse(r, "character 0x%02x has no place outside of a quoted name",
                               (unsigned char)*at);
    }
    r->at = at;
    return MPL_OK;
}

mpl_status mpl_text_next_line(reader *r, bool *more)
{
    do {
        const char *newline = r->at < r->end ? memchr(r->at, '\n', (size_t)(r->end - r->at)) : NULL;

        if (newline == NULL)
            return *more = false, MPL_OK;
        r->at = newline + 1;
        r->line++;
        MPL_PASS(mpl_text_advance(r));
    } while (r->next.kind == END);
    *more = true;
    return MPL_OK;
}

bool mpl_text_is_mark(const reader *r, char mark)
{
    return r->next.kind == MARK && *r->next.start == mark;
}

bool mpl_text_is_word(const reader *r, const char *word)
{
    return r->next.kind == WORD && r->next.n == strlen(word) &&
           memcmp(r->next.start, word, r->next.n) == 0;
}

const char *mpl_text_show(const token *t, char text[48])
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

mpl_status mpl_text_expect_mark(reader *r, char mark, const char *where)
{
    char text[48];

    if (!mpl_text_is_mark(r, mark))
        return mpl_text_refuse(r, "%s where '%c' should stand %s", mpl_text_show(&r->next, text),
                               mark, where);
    return mpl_text_advance(r);
}

mpl_status mpl_text_expect_end(reader *r)
{
    char text[48];

    if (r->next.kind != END)
        return mpl_text_refuse(r, "%s where the line should end", mpl_text_show(&r->next, text));
    return MPL_OK;
}

mpl_status mpl_text_keep(reader *r, const token *t, size_t *begin, size_t *n)
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
                return mpl_text_refuse(
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

mpl_status mpl_text_take_name(reader *r, const char *what, size_t *begin)
{
    char text[48];
    size_t n;

    if (r->next.kind != WORD && r->next.kind != STRING)
        return mpl_text_refuse(r, "%s where the name of %s should stand",
                               mpl_text_show(&r->next, text), what);
    MPL_PASS(mpl_text_keep(r, &r->next, begin, &n));
    if (strlen(r->text.item + *begin) != n)
        return mpl_text_refuse(r, "the name of %s holds a zero byte", what);
    return mpl_text_advance(r);
}

/* ---- types, dims, numbers ---- */

mpl_status mpl_text_take_int(reader *r, const char *what, int64_t *out)
{
    char text[48];

    if (r->next.kind != WORD || !mpl_text_parse_int(r->next.start, r->next.n, out))
        return mpl_text_refuse(r, "%s where %s should be a whole number of 64 bits",
                               mpl_text_show(&r->next, text), what);
    return mpl_text_advance(r);
}

static mpl_status take_shape(reader *r, mpl_shape *shape)
{
    *shape = (mpl_shape){0};
    MPL_PASS(mpl_text_expect_mark(r, '[', "to open the dims"));
    while (!mpl_text_is_mark(r, ']')) {
        if (shape->rank == MPL_MAX_RANK)
            return mpl_text_refuse(r, "more than %d dims", MPL_MAX_RANK);
        if (shape->rank > 0)
            MPL_PASS(mpl_text_expect_mark(r, ',', "between dims"));
        MPL_PASS(mpl_text_take_int(r, "a dim", &shape->dim[shape->rank]));
        if (shape->dim[shape->rank] < 0)
            return mpl_text_refuse(r, "dim %" PRId64 " is negative", shape->dim[shape->rank]);
        shape->rank++;
    }
    return mpl_text_advance(r);
}

static const char all_types[] =
#define TYPE(name, bits) " " #name
#include "graphs/ir/types.def"
#undef TYPE
    ;

mpl_status mpl_text_take_type(reader *r, mpl_type *type, mpl_shape *shape)
{
    char text[48], word[16] = "";

    if (r->next.kind == WORD && r->next.n < sizeof word)
        memcpy(word, r->next.start, r->next.n);
    if (!mpl_type_find(word, type))
        return mpl_text_refuse(r, "%s is no type; there are%s", mpl_text_show(&r->next, text),
                               all_types);
    MPL_PASS(mpl_text_advance(r));
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
        return mpl_text_refuse(r, "%s where a number that %s can hold should stand",
                               mpl_text_show(&r->next, text), mpl_type_name(type));
    r->raw.n = bytes;
    return mpl_text_advance(r);
}

static mpl_status take_hex(reader *r, uint64_t bytes)
{
    const char *digits = r->next.start;
    char text[48];

    if (r->next.kind != WORD || r->next.n % 2 != 0)
        return mpl_text_refuse(r, "%s where two hexadecimal digits a byte should stand",
                               mpl_text_show(&r->next, text));
    if (r->next.n / 2 != bytes)
        return mpl_text_refuse(r, "%zu bytes where type and dims need %" PRIu64, r->next.n / 2,
                               bytes);
    MPL_PASS(mpl_reserve(r->ctx, r->raw.item, r->raw.cap, r->next.n / 2));
    for (size_t i = 0; i < r->next.n; i += 2) {
        int high = mpl_text_hex(digits[i]), low = mpl_text_hex(digits[i + 1]);

        if (high < 0 || low < 0)
            return mpl_text_refuse(r, "'%.2s' where two hexadecimal digits should stand",
                                   &digits[i]);
        r->raw.item[r->raw.n++] = (unsigned char)(high << 4 | low);
    }
    return mpl_text_advance(r);
}

mpl_status mpl_text_take_constant(reader *r, mpl_type type, const mpl_shape *shape, bool *splat)
{
    uint64_t count, bytes, n = 0;
    char text[48];

    if (!mpl_shape_count(shape, &count) || !mpl_type_size(type, count, &bytes))
        return mpl_text_refuse(r, "dims of more than 2^63 bytes");
    *splat = mpl_text_is_word(r, "splat");
    if (!*splat && !mpl_text_is_word(r, "data") && !mpl_text_is_word(r, "bytes"))
        return mpl_text_refuse(r, "%s where 'splat', 'data' or 'bytes' should stand",
                               mpl_text_show(&r->next, text));
    if (mpl_text_is_word(r, "bytes")) {
        MPL_PASS(mpl_text_advance(r));
        MPL_PASS(take_hex(r, bytes));
        return MPL_OK;
    }
    MPL_PASS(mpl_text_advance(r));
    for (; *splat ? n == 0 : r->next.kind != END; n++)
        MPL_PASS(take_element(r, type, n));
    if (!*splat && n != count)
        return mpl_text_refuse(r, "%" PRIu64 " numbers where the dims need %" PRIu64, n, count);
    return mpl_reserve(r->ctx, r->raw.item, r->raw.cap, 1); /* an address even if empty */
}
