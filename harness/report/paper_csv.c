/* paper_csv.c -- results that other programs wrote, comma-separated, as one tab-separated table.
 * See paper.h.
 *
 * Cells follow RFC 4180: quotes around what holds commas or line ends, doubled where they are
 * meant. */
#include <glob.h>
#include <stdlib.h>

#include "graphs/core/file.h"
#include "harness/report/paper.h"

enum { MAX_COLUMNS = 64, CELL = 500 };

typedef struct csv {
    const char *path;
    uint32_t n_columns; /* of all files */
    char (*column)[CELL];
    uint32_t n_cells; /* of the line that was read last */
    char (*cell)[CELL];
    uint32_t place[MAX_COLUMNS]; /* of this file's cells among all columns */
} csv;

/* The cell at *at, without its quotes; *at then stands behind what ended it, *last: that was no
 * comma. */
static mpl_status next_cell(mpl_ctx *ctx, const csv *c, const char **at, char cell[CELL],
                            bool *last)
{
    mpl_status st = MPL_OK;
    const char *from = *at;
    bool quoted = *from == '"';
    uint32_t n = 0;

    for (from += quoted; *from != '\0' && (quoted || strchr(",\n", *from) == NULL); from++) {
        if (quoted && *from == '"' && *++from != '"') {
            quoted = false, from--;
            continue;
        }
        if (n + 1 >= CELL)
            MPL_FAIL(ctx, MPL_EINPUT, "%s: a cell of %d characters", c->path, CELL);
        cell[n++] = (char)(strchr("\t\n\r", *from) != NULL ? ' ' : *from);
    }
    while (n > 0 && cell[n - 1] == ' ')
        n--;
    cell[n] = '\0';
    *last = *from != ',';
    *at = from + (*from != '\0');
out:
    return st;
}

/* A line into c->cell; blank ones are passed over. n_cells 0: there is none left. */
static mpl_status next_line(mpl_ctx *ctx, csv *c, const char **at)
{
    mpl_status st = MPL_OK;
    bool last = false;

    *at += strspn(*at, "\r\n");
    for (c->n_cells = 0; **at != '\0' && !last; c->n_cells++) {
        if (c->n_cells == MAX_COLUMNS)
            MPL_FAIL(ctx, MPL_EINPUT, "%s: more than %d columns", c->path, MAX_COLUMNS);
        MPL_TRY(next_cell(ctx, c, at, c->cell[c->n_cells], &last));
    }
out:
    return st;
}

static uint32_t column_of(const csv *c, const char *name)
{
    uint32_t k = 0;

    while (k < c->n_columns && strcmp(c->column[k], name) != 0)
        k++;
    return k;
}

/* The file's head: columns that no file before it had are added. */
static mpl_status take_head(mpl_ctx *ctx, csv *c, const char **at)
{
    mpl_status st = MPL_OK;

    MPL_TRY(next_line(ctx, c, at));
    for (uint32_t i = 0; i < c->n_cells; i++) {
        c->place[i] = column_of(c, c->cell[i]);
        if (c->place[i] < c->n_columns)
            continue;
        if (c->n_columns == MAX_COLUMNS)
            MPL_FAIL(ctx, MPL_EINPUT, "%s: more than %d columns in all", c->path, MAX_COLUMNS);
        memcpy(c->column[c->n_columns++], c->cell[i], CELL);
    }
out:
    return st;
}

/* What was to be counted and was not: no count, or a count of nothing, and nothing failed on the
 * way. */
static bool not_run(const csv *c, char *const line[])
{
    uint32_t count = column_of(c, "count"), failures = column_of(c, "failures");

    return count < c->n_columns && failures < c->n_columns &&
           strtoull(line[count], NULL, 10) == 0 && strtoull(line[failures], NULL, 10) == 0;
}

static void put_line(csv *c, FILE *to)
{
    static char none[] = "", never[] = "**not run**";
    char *line[MAX_COLUMNS];

    for (uint32_t k = 0; k < c->n_columns; k++)
        line[k] = none;
    for (uint32_t i = 0; i < c->n_cells; i++)
        line[c->place[i]] = c->cell[i];
    if (not_run(c, line)) {
        line[column_of(c, "count")] = never;
        line[column_of(c, "failures")] = none;
    }
    for (uint32_t k = 0; k < c->n_columns; k++)
        fprintf(to, "%s%s", line[k][0] != '\0' ? line[k] : "-", k + 1 < c->n_columns ? "\t" : "\n");
}

/* Heads of all files (to NULL), then their lines. */
static mpl_status read_file(mpl_ctx *ctx, csv *c, FILE *to)
{
    mpl_status st = MPL_OK;
    char *text = NULL;
    const char *at;
    uint32_t n_head;
    size_t size;

    MPL_TRY(mpl_file_read(ctx, c->path, &text, &size));
    at = text;
    MPL_TRY(take_head(ctx, c, &at));
    n_head = c->n_cells;
    while (to != NULL) {
        MPL_TRY(next_line(ctx, c, &at));
        if (c->n_cells == 0)
            break;
        if (c->n_cells != n_head)
            MPL_FAIL(ctx, MPL_EINPUT,
                     "%s: a line has %" PRIu32 " cells where the head has %" PRIu32, c->path,
                     c->n_cells, n_head);
        put_line(c, to);
    }
out:
    mpl_free(ctx, text);
    return st;
}

mpl_status mpl_paper_csv(mpl_ctx *ctx, const char *pattern, char **tsv)
{
    mpl_status st = MPL_OK;
    csv c = {.path = pattern};
    glob_t files = {0};
    char *buffer = NULL;
    size_t size = 0;
    FILE *f = open_memstream(&buffer, &size);
    int found = glob(pattern, 0, NULL, &files);

    if (f == NULL || found == GLOB_NOSPACE)
        MPL_TRY(MPL_EMEM);
    MPL_TRY(mpl_new(ctx, c.column, MAX_COLUMNS));
    MPL_TRY(mpl_new(ctx, c.cell, MAX_COLUMNS));
    for (size_t i = 0; i < files.gl_pathc; i++) {
        c.path = files.gl_pathv[i];
        MPL_TRY(read_file(ctx, &c, NULL));
    }
    for (uint32_t k = 0; k < c.n_columns; k++)
        fprintf(f, "%s%s", c.column[k], k + 1 < c.n_columns ? "\t" : "\n");
    if (c.n_columns == 0)
        fputc('\n', f);
    for (size_t i = 0; i < files.gl_pathc; i++) {
        c.path = files.gl_pathv[i];
        MPL_TRY(read_file(ctx, &c, f));
    }
    if (fflush(f) != 0 || (*tsv = mpl_strdup(ctx, buffer)) == NULL)
        MPL_TRY(MPL_EMEM);
out:
    if (f != NULL)
        fclose(f);
    free(buffer);
    globfree(&files);
    mpl_free(ctx, c.column);
    mpl_free(ctx, c.cell);
    return st;
}
