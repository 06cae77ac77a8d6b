/* paper_text.c -- a text whose markers are filled. See paper.h. */
#include <stdlib.h>

#include "harness/paper.h"

static const char OPEN[] = "<!-- ", CLOSE[] = " -->", END[] = "<!-- end -->";

static const mpl_paper_item *find(const mpl_paper *paper, const char *name)
{
    for (uint32_t i = 0; i < paper->n; i++)
        if (strcmp(paper->item[i].name, name) == 0)
            return &paper->item[i];
    return NULL;
}

/* What stands between a marker and its end. */
static mpl_status put_filling(mpl_ctx *ctx, const mpl_paper *paper, const char *kind, const char *name,
                              FILE *to)
{
    mpl_status st = MPL_OK;
    char own[200], *text = NULL;
    const mpl_paper_item *item;

    snprintf(own, sizeof own, "%.*s", (int)strcspn(name, "/"), name);
    if ((item = find(paper, own)) == NULL)
        MPL_FAIL(ctx, MPL_EINPUT, "no file of results/paper asks for '%s'", own);
    if (strcmp(kind, "value") == 0) {
        if (name[strlen(own)] != '/')
            MPL_FAIL(ctx, MPL_EINPUT, "value:%s names no cell: value:NAME/CELL/../COLUMN is needed", name);
        MPL_TRY(mpl_paper_value(ctx, item, name + strlen(own) + 1, &text));
        fputs(text, to);
    } else if (strcmp(kind, "table") == 0) {
        MPL_TRY(mpl_paper_table(ctx, item, &text));
        fprintf(to, "\n\n%s\n", text);
    } else {
        if (item->script == NULL)
            MPL_FAIL(ctx, MPL_EINPUT, "'%s' is a table, no figure", own);
        fprintf(to, "\n\n![%s](results/figures/%s.svg)\n\n*%s*\n\n", item->caption, own, item->caption);
    }
out:
    mpl_free(ctx, text);
    return st;
}

/* "table:NAME" between `at` and `end` taken apart; false: a comment of another kind. */
static bool is_marker(const char *at, const char *end, char kind[16], char name[400])
{
    size_t n = strcspn(at, ": "), length = (size_t)(end - at);

    if (n >= length || at[n] != ':' || n >= 16 || length - n - 1 >= 400)
        return false;
    snprintf(kind, 16, "%.*s", (int)n, at);
    snprintf(name, 400, "%.*s", (int)(length - n - 1), at + n + 1);
    return true;
}

static mpl_status fill(mpl_ctx *ctx, const mpl_paper *paper, const char *text, const char **failed, FILE *to)
{
    mpl_status st = MPL_OK;
    const char *at = text, *open;

    while ((open = strstr(at, OPEN)) != NULL) {
        const char *inner = open + strlen(OPEN), *close = strstr(inner, CLOSE), *end, *next;
        char kind[16], name[400];

        *failed = open;
        if (close == NULL)
            MPL_FAIL(ctx, MPL_EINPUT, "a comment without its -->");
        if (strncmp(open, END, strlen(END)) == 0)
            MPL_FAIL(ctx, MPL_EINPUT, "an end without a marker before it");
        close += strlen(CLOSE);
        fwrite(at, 1, (size_t)(close - at), to);
        at = close;
        if (!is_marker(inner, close - strlen(CLOSE), kind, name))
            continue;
        if (strcmp(kind, "value") != 0 && strcmp(kind, "table") != 0 && strcmp(kind, "figure") != 0)
            MPL_FAIL(ctx, MPL_EINPUT, "'%s' is none of table, figure, value", kind);
        end = strstr(close, END);
        next = strstr(close, OPEN);
        if (end == NULL || next != end)
            MPL_FAIL(ctx, MPL_EINPUT, "%s:%s has no <!-- end -->", kind, name);
        MPL_TRY(put_filling(ctx, paper, kind, name, to));
        fputs(END, to);
        at = end + strlen(END);
    }
    fputs(at, to);
out:
    return st;
}

mpl_status mpl_paper_fill(mpl_ctx *ctx, const mpl_paper *paper, const char *where, const char *text,
                          char **out)
{
    mpl_status st = MPL_OK;
    const char *failed = text;
    char *buffer = NULL;
    size_t size = 0;
    FILE *f = open_memstream(&buffer, &size);

    if (f == NULL)
        MPL_TRY(MPL_EMEM);
    if ((st = fill(ctx, paper, text, &failed, f)) != MPL_OK) {
        char message[sizeof ctx->message];
        uint32_t line = 1;

        for (const char *c = text; c < failed; c++)
            line += *c == '\n';
        snprintf(message, sizeof message, "%s", ctx->message);
        MPL_FAIL(ctx, st, "%s:%" PRIu32 ": %.400s", where, line, message);
    }
    if (fflush(f) != 0 || (*out = mpl_strdup(ctx, buffer)) == NULL)
        MPL_TRY(MPL_EMEM);
out:
    if (f != NULL)
        fclose(f);
    free(buffer);
    return st;
}
