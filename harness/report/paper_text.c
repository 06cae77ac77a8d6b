/* paper_text.c -- fills the markers of a text. See paper.h. */
#include <stdlib.h>

#include "harness/report/paper.h"

static const char OPEN[] = "<!-- ", CLOSE[] = " -->", END[] = "<!-- end -->";
static const char FOLDER[] = "results/"; /* a text there names pictures without it */

/* Writes the text between a marker and its end. */
static mpl_status put_filling(mpl_ctx *ctx, const mpl_paper *paper, const char *where,
                              const char *kind, const char *name, FILE *to)
{
    mpl_status st = MPL_OK;
    char own[200], *text = NULL;
    const mpl_paper_item *item;

    snprintf(own, sizeof own, "%.*s", (int)strcspn(name, "/"), name);
    if ((item = mpl_paper_find(paper, own)) == NULL)
        MPL_FAIL(ctx, MPL_EINPUT, "no file of results/paper asks for '%s'", own);
    if (strcmp(kind, "value") == 0) {
        if (name[strlen(own)] != '/')
            MPL_FAIL(ctx, MPL_EINPUT, "value:%s names no cell: value:NAME/CELL/../COLUMN is needed",
                     name);
        MPL_TRY(mpl_paper_value(ctx, item, name + strlen(own) + 1, &text));
        fputs(text, to);
    } else if (strcmp(kind, "table") == 0) {
        MPL_TRY(mpl_paper_print(ctx, item, &text));
        fprintf(to, "\n\n%s\n", text);
    } else {
        if (item->script == NULL)
            MPL_FAIL(ctx, MPL_EINPUT, "'%s' is a table, no figure", own);
        fprintf(to, "\n\n![%s](%sfigures/%s.svg)\n\n*%s*\n\n", item->caption,
                strncmp(where, FOLDER, strlen(FOLDER)) == 0 ? "" : FOLDER, own, item->caption);
    }
out:
    mpl_free(ctx, text);
    return st;
}

/* Splits "table:NAME" between `at` and `end`; false: another kind of comment. */
static bool is_marker(const char *at, const char *end, char kind[16], char name[400])
{
    size_t n = strcspn(at, ": "), length = (size_t)(end - at);

    if (n >= length || at[n] != ':' || n >= 16 || length - n - 1 >= 400)
        return false;
    snprintf(kind, 16, "%.*s", (int)n, at);
    snprintf(name, 400, "%.*s", (int)(length - n - 1), at + n + 1);
    return true;
}

typedef struct filling {
    mpl_ctx *ctx;
    const mpl_paper *paper;
    const char *where, *text;
    const char *at; /* current position, for messages */
    FILE *to, *faults;
} filling;

static uint32_t line_of(const filling *self)
{
    uint32_t line = 1;

    for (const char *c = self->text; c < self->at; c++)
        line += *c == '\n';
    return line;
}

/* Copies running text up to `end`. Figures outside markers are faults. */
static void put_text(filling *self, const char *end)
{
    size_t to = (size_t)(end - self->text);
    const char *begin = self->at;

    for (size_t i = (size_t)(begin - self->text); (i = mpl_paper_bare(self->text, i, to)) < to;) {
        self->at = self->text + i;
        fprintf(self->faults, "%s:%" PRIu32 ": '%.*s' is a figure without a marker\n", self->where,
                line_of(self), (int)strspn(self->at, "0123456789.,"), self->at);
        i += strspn(self->at, "0123456789.,");
    }
    fwrite(begin, 1, (size_t)(end - begin), self->to);
    self->at = end;
}

static mpl_status put_claim(filling *self, const char *claim)
{
    char is[200];
    bool holds;

    MPL_PASS(mpl_paper_holds(self->ctx, self->paper, claim, &holds, is));
    if (!holds)
        fprintf(self->faults, "%s:%" PRIu32 ": %s does not hold: it is %s\n", self->where,
                line_of(self), claim, is);
    return MPL_OK;
}

/* Fills the marker at self->at, up to its end; keeps a remark. */
static mpl_status put_marker(filling *self)
{
    static const char *const kinds[] = {"table", "figure", "value", "quoted", "holds"};
    mpl_ctx *ctx = self->ctx;
    const char *inner = self->at + strlen(OPEN), *close = strstr(inner, CLOSE), *end, *next;
    char kind[16], name[400];
    bool marker;
    size_t k = 0;

    if (close == NULL)
        return MPL_REFUSE(ctx, "a comment without its -->");
    if (strncmp(self->at, END, strlen(END)) == 0)
        return MPL_REFUSE(ctx, "an end without a marker before it");
    marker = is_marker(inner, close, kind, name);
    close += strlen(CLOSE);
    while (marker && k < sizeof kinds / sizeof *kinds && strcmp(kind, kinds[k]) != 0)
        k++;
    if (k == sizeof kinds / sizeof *kinds)
        return MPL_REFUSE(ctx, "'%s' is none of table, figure, value, quoted, holds", kind);
    if (marker && strcmp(kind, "holds") == 0)
        MPL_PASS(put_claim(self, name));
    fwrite(self->at, 1, (size_t)(close - self->at), self->to);
    if (!marker || strcmp(kind, "holds") == 0) {
        self->at = close;
        return MPL_OK;
    }
    end = strstr(close, END);
    next = strstr(close, OPEN);
    if (end == NULL || next != end)
        return MPL_REFUSE(ctx, "%s:%s has no <!-- end -->", kind, name);
    if (strcmp(kind, "quoted") == 0)
        fwrite(close, 1, (size_t)(end - close), self->to);
    else
        MPL_PASS(put_filling(ctx, self->paper, self->where, kind, name, self->to));
    fputs(END, self->to);
    self->at = end + strlen(END);
    return MPL_OK;
}

static mpl_status fill(filling *self)
{
    mpl_ctx *ctx = self->ctx;
    mpl_status st = MPL_OK;
    const char *open;

    while ((open = strstr(self->at, OPEN)) != NULL) {
        put_text(self, open);
        if ((st = put_marker(self)) != MPL_OK)
            MPL_FAIL(ctx, st, "%s:%" PRIu32 ": %s", self->where, line_of(self), ctx->message);
    }
    put_text(self, self->at + strlen(self->at));
out:
    return st;
}

/* Takes over the text of a memory stream and closes it; the caller frees it. */
static mpl_status take_stream(mpl_ctx *ctx, FILE *f, char **buffer, char **text)
{
    mpl_status st = MPL_OK;

    if (fclose(f) != 0 || (*text = mpl_strdup(ctx, *buffer)) == NULL)
        st = MPL_EMEM;
    free(*buffer);
    *buffer = NULL;
    return st;
}

mpl_status mpl_paper_fill(mpl_ctx *ctx, const mpl_paper *paper, const char *where, const char *text,
                          char **out, char **faults)
{
    mpl_status st = MPL_OK, st_faults;
    filling f = {.ctx = ctx, .paper = paper, .where = where, .text = text, .at = text};
    char *filled = NULL, *found = NULL, *buffer[2] = {NULL};
    size_t size[2];

    f.to = open_memstream(&buffer[0], &size[0]);
    f.faults = open_memstream(&buffer[1], &size[1]);
    st = f.to != NULL && f.faults != NULL ? fill(&f) : MPL_EMEM;
    st_faults = f.faults != NULL ? take_stream(ctx, f.faults, &buffer[1], &found) : MPL_OK;
    if (f.to != NULL && take_stream(ctx, f.to, &buffer[0], &filled) != MPL_OK)
        st_faults = MPL_EMEM;
    MPL_TRY(st);
    MPL_TRY(st_faults);
    *out = filled, filled = NULL;
    *faults = found, found = NULL;
out:
    mpl_free_each(ctx, filled, found);
    return st;
}
