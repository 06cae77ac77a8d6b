/* text_number.c -- words and numbers of the .graph format. See text_priv.h. */
#include "graphs/io/text/text_priv.h"
#include "graphs/ops/ops_priv.h"

#include <math.h>
#include <stdlib.h>

bool mpl_text_word_char(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           (c != '\0' && strchr("_./+-", c) != NULL);
}

bool mpl_text_reserved(const char *word, size_t n)
{
    static const char *const words[] = {"graph", "program", "input", "weight", "bound", "output",
                                        "block", "param",   "yield", "view",   "_"};

    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strlen(words[i]) == n && memcmp(words[i], word, n) == 0)
            return true;
    return false;
}

int mpl_text_hex(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

static bool is_whole(mpl_type type)
{
    return mpl_type_in(type, MPL_SET_INT | MPL_SET(bool) | MPL_SET_SMALL_INT);
}

bool mpl_text_has_words(mpl_type type)
{
    return mpl_type_in(type, MPL_SET_ANY | MPL_SET_SMALL);
}

/* The NaN that the word "nan" stands for: positive, quiet, no payload. */
static uint64_t usual_nan(mpl_type type)
{
    uint64_t data = 0;

    mpl_put(type, &data, 0, (double)NAN);
    return mpl_get_bits(type, &data, 0);
}

/* ---- writing ---- */

const char *mpl_text_format(mpl_type type, const void *data, int64_t i, char *text)
{
    uint64_t bits = mpl_get_bits(type, data, i);
    double x, back;

    if (is_whole(type)) {
        int64_t number = type == MPL_TYPE_bool ? (int64_t)bits : mpl_get_int(type, data, i);

        if (type == MPL_TYPE_u64)
            snprintf(text, MPL_TEXT_NUMBER, "%" PRIu64, bits);
        else
            snprintf(text, MPL_TEXT_NUMBER, "%" PRId64, number);
        return text;
    }
    if (isnan(mpl_get(type, data, i))) {
        if (bits == usual_nan(type))
            snprintf(text, MPL_TEXT_NUMBER, "nan");
        else
            snprintf(text, MPL_TEXT_NUMBER, "nan.%0*" PRIx64, 2 * (int)mpl_type_bytes(type), bits);
        return text;
    }
    x = mpl_get(type, data, i);
    for (int digits = 1; digits <= 17; digits++) {
        snprintf(text, MPL_TEXT_NUMBER, "%.*g", digits, x);
        back = type == MPL_TYPE_f64 ? strtod(text, NULL) : (double)strtof(text, NULL);
        if (memcmp(&back, &x, sizeof x) == 0)
            break;
    }
    return text;
}

/* ---- reading ---- */

/* The digits of a number up to `most`. */
static bool parse_digits(const char *word, size_t n, uint64_t most, uint64_t *out)
{
    uint64_t number = 0;

    if (n == 0)
        return false;
    for (size_t i = 0; i < n; i++) {
        uint64_t digit = (uint64_t)(word[i] - '0');

        if (word[i] < '0' || word[i] > '9' || digit > most || number > (most - digit) / 10)
            return false;
        number = 10 * number + digit;
    }
    *out = number;
    return true;
}

bool mpl_text_parse_int(const char *word, size_t n, int64_t *out)
{
    bool minus = n > 0 && word[0] == '-';
    uint64_t number;

    if (!parse_digits(word + minus, n - minus, (uint64_t)INT64_MAX + minus, &number))
        return false;
    *out = minus ? (int64_t)(0 - number) : (int64_t)number;
    return true;
}

static bool parse_integer(mpl_type type, const char *word, size_t n, void *data, int64_t i)
{
    bool is_signed = mpl_type_in(type, MPL_SET_SIGNED | MPL_SET(i4) | MPL_SET(i2));
    bool minus = is_signed && n > 0 && word[0] == '-';
    uint64_t number, most = UINT64_MAX >> (64 - mpl_type_bits(type) + is_signed);

    if (!parse_digits(word + minus, n - minus, most + minus, &number))
        return false;
    mpl_put_bits(type, data, i, minus ? 0 - number : number);
    return true;
}

/* Parses "nan", or "nan." and the bits of one. */
static bool parse_nan(mpl_type type, const char *word, size_t n, void *data, int64_t i)
{
    uint64_t bits = 0;

    if (n == 3) {
        mpl_put_bits(type, data, i, usual_nan(type));
        return true;
    }
    if (n != 4 + 2 * mpl_type_bytes(type) || word[3] != '.')
        return false;
    for (size_t at = 4; at < n; at++) {
        if (mpl_text_hex(word[at]) < 0)
            return false;
        bits = bits << 4 | (uint64_t)mpl_text_hex(word[at]);
    }
    mpl_put_bits(type, data, i, bits);
    return isnan(mpl_get(type, data, i));
}

static void put_unsaturated(mpl_type type, void *data, int64_t i, double x)
{
    if (mpl_type_in(type, MPL_SET_SMALL))
        mpl_put_small(type, data, i, x, false, "nearest");
    else
        mpl_put(type, data, i, x);
}

bool mpl_text_parse(mpl_type type, const char *word, size_t n, void *data, int64_t i)
{
    char text[MPL_TEXT_NUMBER], *end;
    double x;

    if (is_whole(type))
        return parse_integer(type, word, n, data, i);
    if (n == 0 || n >= sizeof text)
        return false;
    if (n >= 3 && memcmp(word, "nan", 3) == 0)
        return type != MPL_TYPE_f4e2m1 && parse_nan(type, word, n, data, i);
    memcpy(text, word, n);
    text[n] = '\0';
    if (strcmp(text, "inf") == 0 || strcmp(text, "-inf") == 0) {
        put_unsaturated(type, data, i, text[0] == '-' ? (double)-INFINITY : (double)INFINITY);
        return isinf(mpl_get(type, data, i));
    }
    if (strpbrk(text, "nN") != NULL) /* other spellings that strtod accepts */
        return false;
    x = type == MPL_TYPE_f32 ? (double)strtof(text, &end) : strtod(text, &end);
    put_unsaturated(type, data, i, x);
    return *end == '\0' && end > text && isfinite(mpl_get(type, data, i));
}
