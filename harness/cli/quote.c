/* quote.c -- quotes text for other languages. See quote.h. */
#include "harness/cli/quote.h"

/* The escape of one character; NULL: written as it is. */
typedef const char *(*escape)(char c);

static void put_escaped(FILE *to, const char *text, escape instead_of)
{
    for (uint32_t n; *text != '\0'; text += n > 0 ? n : 1) {
        const char *instead = instead_of(*text);

        n = mpl_text_seen(text);
        if (n == 0)
            fputc('?', to);
        else if (instead != NULL)
            fputs(instead, to);
        else
            fwrite(text, 1, n, to);
    }
}

static const char *double_single(char c)
{
    return c == '\'' ? "''" : NULL;
}

void mpl_put_gnuplot(FILE *to, const char *text)
{
    fputc('\'', to);
    put_escaped(to, text, double_single);
    fputc('\'', to);
}

static const char *no_quote(char c)
{
    return c == '"' ? "'" : c == '\\' ? "/" : NULL; /* neither can be escaped */
}

void mpl_put_gnuplot_cell(FILE *to, const char *text)
{
    fputc('"', to);
    put_escaped(to, text, no_quote);
    fputc('"', to);
}

static const char *entity(char c)
{
    return c == '&'    ? "&amp;"
           : c == '<'  ? "&lt;"
           : c == '>'  ? "&gt;"
           : c == '"'  ? "&quot;"
           : c == '\'' ? "&#39;"
                       : NULL;
}

void mpl_put_markup(FILE *to, const char *text)
{
    put_escaped(to, text, entity);
}

/* Escapes everything that could end the string or the enclosing element, or begin a comment. */
static const char *script_escape(char c)
{
    return c == '"' ? "\\\"" : c == '\\' ? "\\\\" : c == '<' ? "\\u003c" : NULL;
}

void mpl_put_script(FILE *to, const char *text)
{
    fputc('"', to);
    put_escaped(to, text, script_escape);
    fputc('"', to);
}

static const char *backslash(char c)
{
    return c == '"' ? "\\\"" : c == '\\' ? "\\\\" : NULL;
}

void mpl_put_dot(FILE *to, const char *text)
{
    put_escaped(to, text, backslash);
}

/* Escapes everything that could end a cell, begin an element or a link, or act as an escape. */
static const char *markdown_escape(char c)
{
    return c == '|'    ? "\\|"
           : c == '<'  ? "&lt;"
           : c == '['  ? "\\["
           : c == '`'  ? "\\`"
           : c == '\\' ? "\\\\"
                       : NULL;
}

void mpl_put_markdown(FILE *to, const char *text)
{
    put_escaped(to, text, markdown_escape);
}

uint32_t mpl_markdown_width(const char *text)
{
    uint32_t width = 0;

    for (uint32_t n; *text != '\0'; text += n > 0 ? n : 1) {
        const char *instead = markdown_escape(*text);

        n = mpl_text_seen(text);
        width += n > 0 && instead != NULL ? (uint32_t)strlen(instead) : 1;
    }
    return width;
}

static const char *as_it_is(char c)
{
    (void)c;
    return NULL;
}

bool mpl_is_formula(const char *text)
{
    if (*text == '+' || *text == '-')
        return text[1 + strspn(text + 1, "0123456789.eE+- %")] != '\0';
    return *text == '=' || *text == '@';
}

void mpl_put_tsv(FILE *to, const char *text)
{
    if (mpl_is_formula(text))
        fputc('\'', to);
    put_escaped(to, text, as_it_is);
}

void mpl_put_shell(FILE *to, const char *text)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                                "_-.,:/=+@%";

    if (text[0] != '\0' && text[strspn(text, plain)] == '\0') {
        fputs(text, to);
        return;
    }
    fputc('\'', to);
    for (const char *c = text; *c != '\0'; c++)
        fputs(*c == '\'' ? "'\\''" : (char[]){*c, '\0'}, to);
    fputc('\'', to);
}

const char *mpl_file_name(const char *text, uint32_t id, char name[MPL_FILE_NAME])
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.";
    enum { LONGEST = 200 };
    int n = 0;

    for (const char *c = text; *c != '\0'; c++) {
        bool as_it_is = strchr(plain, *c) != NULL && (n > 0 || *c != '.');
        char one[4];

        snprintf(one, sizeof one, as_it_is ? "%c" : "%%%02X", (unsigned char)*c);
        if (n + (int)strlen(one) > LONGEST) {
            snprintf(name + n, MPL_FILE_NAME - LONGEST, "%%%" PRIu32, id);
            return name;
        }
        n += sprintf(name + n, "%s", one);
    }
    if (n == 0)
        strcpy(name, "%");
    return name;
}
