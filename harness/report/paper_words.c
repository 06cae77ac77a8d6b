/* paper_words.c -- finds and compares figures of the paper. See paper.h. */
#include <ctype.h>
#include <stdlib.h>

#include "harness/report/paper.h"

/* With blanks around; longer ones first. */
static const char *const operators[] = {" != ", " <= ", " >= ", " = ", " < ", " > "};

/* The last operator in the claim, as an index of operators. Names of columns may contain blanks but
 * no operators. */
static const char *find_operator(const char *claim, size_t *which)
{
    const char *found = NULL;

    for (size_t i = 0; i < sizeof operators / sizeof *operators; i++) {
        const char *at = strstr(claim, operators[i]);

        if (at != NULL && (found == NULL || at > found))
            found = at, *which = i;
    }
    return found;
}

/* The number that a cell begins with: "+3.21 %", "17 of 17". */
static bool number(const char *text, double *value)
{
    char *end;

    *value = strtod(text, &end);
    return end > text;
}

mpl_status mpl_paper_holds(mpl_ctx *ctx, const mpl_paper *paper, const char *claim, bool *holds,
                           char *is)
{
    mpl_status st = MPL_OK;
    char path[400], own[200], *cell = NULL;
    const mpl_paper_item *item;
    const char *value;
    size_t which = 0;
    double a, b;
    bool equal;

    if ((value = find_operator(claim, &which)) == NULL)
        MPL_FAIL(ctx, MPL_EINPUT, "holds:%s has none of = != < <= > >=, with blanks around", claim);
    snprintf(path, sizeof path, "%.*s", (int)(value - claim), claim);
    snprintf(own, sizeof own, "%.*s", (int)strcspn(path, "/"), path);
    value += strlen(operators[which]);
    if ((item = mpl_paper_find(paper, own)) == NULL || path[strlen(own)] != '/')
        MPL_FAIL(ctx, MPL_EINPUT, "holds:%s names no cell: holds:NAME/CELL/../COLUMN is needed",
                 claim);
    MPL_TRY(mpl_paper_value(ctx, item, path + strlen(own) + 1, &cell));
    snprintf(is, 200, "%s", cell);
    equal = strcmp(cell, value) == 0;
    if (operators[which][1] == '=' || operators[which][1] == '!') {
        *holds = equal == (operators[which][1] == '=');
        goto out;
    }
    if (!number(cell, &a) || !number(value, &b))
        MPL_FAIL(ctx, MPL_EINPUT, "holds:%s: '%s' or '%s' is no number", claim, cell, value);
    *holds = operators[which][1] == '<' ? a < b : a > b;
    *holds = *holds || (operators[which][2] == '=' && a <= b && a >= b);
out:
    mpl_free(ctx, cell);
    return st;
}

/* Whether text[at] is running text: no table, heading, block or span of code, or link address. */
static bool runs(const char *text, size_t at)
{
    size_t begin = at, ticks = 0;

    while (begin > 0 && text[begin - 1] != '\n')
        begin--;
    if (strchr("|#!*", text[begin]) != NULL || strncmp(text + begin, "    ", 4) == 0)
        return false;
    for (size_t i = begin; i < at; i++) {
        ticks += text[i] == '`';
        if (strncmp(text + i, "](", 2) == 0 && strcspn(text + i, ")") > at - i)
            return false;
    }
    return ticks % 2 == 0;
}

/* Whether it follows "section" or "sections .. and": a section number is no figure. */
static bool follows_section(const char *text, size_t at)
{
    size_t begin = at > 24 ? at - 24 : 0;

    for (size_t i = begin; i < at; i++) {
        const char *stop = strstr(text + i, ". ");

        if (strncmp(text + i, "ection", 6) == 0 && (stop == NULL || stop >= text + at))
            return true;
    }
    return false;
}

size_t mpl_paper_bare(const char *text, size_t from, size_t to)
{
    for (size_t i = from; i < to; i++) {
        size_t n = strspn(text + i, "0123456789."), digits = strspn(text + i, "0123456789");
        bool decimal, percent;

        if (digits == 0)
            continue;
        while (n > digits && text[i + n - 1] == '.')
            n--; /* the end of a sentence */
        decimal = n > digits + 1;
        percent = strncmp(text + i + n, " %", 2) == 0 || text[i + n] == '%';
        if ((decimal || percent) && (i == 0 || !isalnum((unsigned char)text[i - 1])) &&
            runs(text, i) && !follows_section(text, i))
            return i;
        i += n - 1;
    }
    return to;
}
