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

/* ---- bits of one element ---- */

static uint64_t get_bits(mpl_type type, const void *data, int64_t i)
{
    switch (mpl_type_bytes(type)) {
    case 8:
        return ((const uint64_t *)data)[i];
    case 4:
        return ((const uint32_t *)data)[i];
    case 2:
        return ((const uint16_t *)data)[i];
    default:
        return ((const uint8_t *)data)[i];
    }
}

static void put_bits(mpl_type type, void *data, int64_t i, uint64_t bits)
{
    switch (mpl_type_bytes(type)) {
    case 8:
        ((uint64_t *)data)[i] = bits;
        break;
    case 4:
        ((uint32_t *)data)[i] = (uint32_t)bits;
        break;
    case 2:
        ((uint16_t *)data)[i] = (uint16_t)bits;
        break;
    default:
        ((uint8_t *)data)[i] = (uint8_t)bits;
    }
}

/* The NaN that the word "nan" stands for: positive, quiet, no payload. */
static uint64_t usual_nan(mpl_type type)
{
    switch (type) {
    case MPL_TYPE_f64:
        return UINT64_C(0x7ff8000000000000);
    case MPL_TYPE_f32:
        return 0x7fc00000;
    case MPL_TYPE_f16:
        return 0x7e00;
    default:
        return 0x7fc0;
    }
}

/* Whether these bits are a NaN of a floating type: above infinity without the sign bit. */
static bool is_nan_bits(mpl_type type, uint64_t bits)
{
    static const uint64_t quiet[] = {[MPL_TYPE_f64] = UINT64_C(1) << 51,
                                     [MPL_TYPE_f32] = 1 << 22,
                                     [MPL_TYPE_f16] = 1 << 9,
                                     [MPL_TYPE_bf16] = 1 << 6};
    uint64_t sign = UINT64_C(1) << (8 * mpl_type_bytes(type) - 1);

    return (bits & ~sign) > usual_nan(type) - quiet[type];
}

/* ---- writing ---- */

const char *mpl_text_format(mpl_type type, const void *data, int64_t i, char *text)
{
    uint64_t bits = get_bits(type, data, i);
    double x, back;

    if (!mpl_type_in(type, MPL_SET_FLOAT)) {
        int64_t number = type == MPL_TYPE_bool ? (int64_t)bits : mpl_get_int(type, data, i);

        snprintf(text, MPL_TEXT_NUMBER, "%" PRId64, number);
        return text;
    }
    if (is_nan_bits(type, bits)) {
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

bool mpl_text_parse_int(const char *word, size_t n, int64_t *out)
{
    bool minus = n > 0 && word[0] == '-';
    uint64_t number = 0, most = (uint64_t)INT64_MAX + minus;

    if (n == (size_t)minus)
        return false;
    for (size_t i = minus; i < n; i++) {
        uint64_t digit = (uint64_t)(word[i] - '0');

        if (word[i] < '0' || word[i] > '9' || number > (most - digit) / 10)
            return false;
        number = 10 * number + digit;
    }
    *out = minus ? (int64_t)(0 - number) : (int64_t)number;
    return true;
}

static bool parse_integer(mpl_type type, const char *word, size_t n, void *data, int64_t i)
{
    int64_t number, least = 0, most = 255;
    unsigned bits = 8 * mpl_type_bytes(type);

    if (type != MPL_TYPE_u8 && type != MPL_TYPE_bool) {
        most = (int64_t)(UINT64_MAX >> (65 - bits));
        least = -most - 1;
    }
    if (!mpl_text_parse_int(word, n, &number) || number < least || number > most)
        return false;
    put_bits(type, data, i, (uint64_t)number);
    return true;
}

/* Parses "nan", or "nan." and the bits of one. */
static bool parse_nan(mpl_type type, const char *word, size_t n, void *data, int64_t i)
{
    uint64_t bits = 0;

    if (n == 3) {
        put_bits(type, data, i, usual_nan(type));
        return true;
    }
    if (n != 4 + 2 * mpl_type_bytes(type) || word[3] != '.')
        return false;
    for (size_t at = 4; at < n; at++) {
        if (mpl_text_hex(word[at]) < 0)
            return false;
        bits = bits << 4 | (uint64_t)mpl_text_hex(word[at]);
    }
    put_bits(type, data, i, bits);
    return is_nan_bits(type, bits);
}

bool mpl_text_parse(mpl_type type, const char *word, size_t n, void *data, int64_t i)
{
    char text[MPL_TEXT_NUMBER], *end;
    double x;

    if (!mpl_type_in(type, MPL_SET_FLOAT))
        return parse_integer(type, word, n, data, i);
    if (n == 0 || n >= sizeof text)
        return false;
    if (n >= 3 && memcmp(word, "nan", 3) == 0)
        return parse_nan(type, word, n, data, i);
    memcpy(text, word, n);
    text[n] = '\0';
    if (strcmp(text, "inf") == 0 || strcmp(text, "-inf") == 0)
        return mpl_put(type, data, i, text[0] == '-' ? -INFINITY : INFINITY), true;
    if (strpbrk(text, "nN") != NULL) /* other spellings that strtod accepts */
        return false;
    x = type == MPL_TYPE_f32 ? (double)strtof(text, &end) : strtod(text, &end);
    mpl_put(type, data, i, x);
    return *end == '\0' && end > text && isfinite(mpl_get(type, data, i));
}
