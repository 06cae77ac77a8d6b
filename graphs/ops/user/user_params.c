/* user_params.c -- attributes of the user's operators, as one text. See user_ops.h. */
#include <errno.h>
#include <stdlib.h>

#include "graphs/ops/user/user_ops.h"

enum { MOST_DIGITS = 63 };

/* The kind that `declared` gives the name; 0: none. */
static char kind_of(const char *declared, const char *name, size_t n)
{
    for (const char *at = declared; at != NULL && *(at += strspn(at, " ")) != '\0';) {
        size_t k = strcspn(at, ":");
        const char *kind = at + k + 1;
        size_t length = strcspn(kind, " ");

        if (k == n && strncmp(at, name, n) == 0)
            return (char)(kind[length - 1] == 's' ? kind[0] - 32 : kind[0]);
        at = kind + length;
    }
    return 0;
}

/* Characters of the value at the start of the text; 0: there is none. */
static size_t value_length(const char *text)
{
    size_t n = 0;

    if (text[0] == '[')
        return text[n = strcspn(text, "]")] == ']' ? n + 1 : 0;
    if (text[0] != '"')
        return strcspn(text, " ");
    for (n = 1; text[n] != '"' && text[n] != '\0'; n++)
        n += text[n] == '\\' && text[n + 1] != '\0';
    return text[n] == '"' ? n + 1 : 0;
}

bool mpl_user_next_param(const memplan_operator *u, const char **at, mpl_user_param *out)
{
    const char *text = *at + strspn(*at, " ");
    size_t n = strcspn(text, "= "), value = text[n] == '=' ? value_length(text + n + 1) : 0;

    *at = text;
    if (n == 0 || value == 0)
        return false;
    *out = (mpl_user_param){text, text + n + 1, n, value, kind_of(u->attributes, text, n)};
    *at = text + n + 1 + value;
    return true;
}

/* Copies the digits of item i; false: there is no such item, or it is too long for a number. */
static bool take_item(const mpl_user_param *param, uint32_t i, char digits[MOST_DIGITS + 1])
{
    const char *at = param->value, *end = at + param->n_value;
    size_t n;

    if (param->kind == 'I' || param->kind == 'R') {
        at++, end--;
        for (; i > 0 && at < end; i--)
            at += strcspn(at, ",]") + 1;
    }
    n = at < end ? strcspn(at, ",]\" ") : 0;
    if (i > 0 || n == 0 || n > MOST_DIGITS || n > (size_t)(end - at))
        return false;
    memcpy(digits, at, n);
    digits[n] = '\0';
    return true;
}

bool mpl_user_param_int(const mpl_user_param *param, uint32_t i, int64_t *out)
{
    char digits[MOST_DIGITS + 1], *end;
    int64_t number;

    if ((param->kind != 'i' && param->kind != 'I') || !take_item(param, i, digits))
        return false;
    errno = 0;
    number = strtoll(digits, &end, 10);
    if (*end != '\0' || end == digits || errno != 0)
        return false;
    *out = number;
    return true;
}

bool mpl_user_param_real(const mpl_user_param *param, uint32_t i, double *out)
{
    char digits[MOST_DIGITS + 1], *end;
    double number;

    if ((param->kind != 'r' && param->kind != 'R') || !take_item(param, i, digits))
        return false;
    number = strtod(digits, &end);
    if (*end != '\0' || end == digits)
        return false;
    *out = number;
    return true;
}

static int hex(char c)
{
    return c >= '0' && c <= '9' ? c - '0' : (c | 32) >= 'a' && (c | 32) <= 'f' ? (c | 32) - 87 : -1;
}

size_t mpl_user_param_text(const mpl_user_param *param, char *to, size_t room)
{
    bool quoted = param->value[0] == '"';
    const char *at = param->value + quoted, *end = param->value + param->n_value - quoted;
    size_t n = 0;

    for (; at < end; n++) {
        char c = *at++;

        if (quoted && c == '\\' && end - at >= 3 && *at == 'x' && hex(at[1]) >= 0 &&
            hex(at[2]) >= 0) {
            c = (char)(hex(at[1]) << 4 | hex(at[2]));
            at += 3;
        } else if (quoted && c == '\\' && at < end) {
            c = *at++;
        }
        if (n + 1 < room)
            to[n] = c;
    }
    if (room > 0)
        to[n < room ? n : room - 1] = '\0';
    return n;
}
