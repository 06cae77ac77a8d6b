/* paper.c -- makes the tables and figures that results/paper asks for. See paper.h. */
#include "harness/report/paper.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "graphs/core/file.h"
#include "graphs/core/text.h"
#include "harness/cli/options.h"
#include "harness/report/table.h"

#define ASKED "results/paper"
enum { MAX_WORDS = 32 };

/* ---- output of a table ---- */

mpl_status mpl_paper_print(mpl_ctx *ctx, const mpl_paper_item *item, char **text)
{
    mpl_status st = MPL_OK;
    char *buffer = NULL;
    size_t size = 0;
    FILE *f = open_memstream(&buffer, &size);

    if (f == NULL)
        MPL_TRY(MPL_EMEM);
    if (item->script == NULL)
        fprintf(f, "%s\n\n", item->caption);
    if (item->table.n_cols == 0)
        fputs(item->script == NULL ? "**Not run**: there are no rows yet.\n" : "\n", f);
    else
        mpl_grid_print(f, &item->table, item->script != NULL);
    if (fflush(f) != 0 || (*text = mpl_strdup(ctx, buffer)) == NULL)
        MPL_TRY(MPL_EMEM);
out:
    if (f != NULL)
        fclose(f);
    free(buffer);
    return st;
}

/* Whether the line begins with the cells of "CELL/../COLUMN"; *column then names the column. */
static bool begins_with(const mpl_grid *table, uint32_t line, const char *path, const char **column)
{
    const char *slash;
    uint32_t c = 0;

    for (; (slash = strchr(path, '/')) != NULL; path = slash + 1, c++) {
        const char *cell = c < table->n_cols ? mpl_grid_at(table, line, c) : NULL;
        size_t n = (size_t)(slash - path);

        if (cell == NULL || strlen(cell) != n || memcmp(cell, path, n) != 0)
            return false;
    }
    *column = path;
    return true;
}

const mpl_paper_item *mpl_paper_find(const mpl_paper *paper, const char *name)
{
    for (uint32_t i = 0; i < paper->n; i++)
        if (strcmp(paper->item[i].name, name) == 0)
            return &paper->item[i];
    return NULL;
}

mpl_status mpl_paper_value(mpl_ctx *ctx, const mpl_paper_item *item, const char *path, char **value)
{
    const mpl_grid *table = &item->table;
    const char *column = strrchr(path, '/') != NULL ? strrchr(path, '/') + 1 : path, *found = NULL;

    if (mpl_grid_column(table, column) == table->n_cols)
        return MPL_REFUSE(ctx, "%s has no column '%s'", item->name, column);
    for (uint32_t line = 1; line < mpl_grid_lines(table); line++) {
        if (!begins_with(table, line, path, &column))
            continue;
        if (found != NULL)
            return MPL_REFUSE(ctx, "%s has several lines for '%s'", item->name, path);
        found = mpl_grid_in(table, line, column);
    }
    if (found == NULL)
        return MPL_REFUSE(ctx, "%s has no line for '%s'", item->name, path);
    if ((*value = mpl_strdup(ctx, found)) == NULL)
        MPL_PASS(MPL_EMEM);
    return MPL_OK;
}

/* ---- requests ---- */

typedef struct asked {
    const char *suite, *caption;
    char *word[MAX_WORDS]; /* "table" or "figure", the name, the kind, the rest */
    uint32_t n;
} asked;

/* VALUE of the word "KEY=VALUE", or NULL. */
static const char *setting(const asked *self, const char *key)
{
    size_t n = strlen(key);

    for (uint32_t i = 3; i < self->n; i++)
        if (strncmp(self->word[i], key, n) == 0 && self->word[i][n] == '=')
            return self->word[i] + n + 1;
    return NULL;
}

static void rows_path(const char *suite, char path[300])
{
    snprintf(path, 300, "results/raw/%.200s.jsonl", suite);
}

static bool has_rows(const char *suite)
{
    char path[300];

    rows_path(suite, path);
    return access(path, F_OK) == 0;
}

static mpl_status read_rows(mpl_ctx *ctx, const char *suite, mpl_rows *rows)
{
    char path[300];

    rows_path(suite, path);
    return mpl_rows_read(ctx, path, rows);
}

static mpl_status from_rows(mpl_ctx *ctx, const asked *a, mpl_grid *all)
{
    mpl_status st = MPL_OK;
    const mpl_table_kind *kind = mpl_table_find(a->word[2]);
    mpl_rows rows = {0};
    char mixed[MPL_MIXED_SIZE];

    if (kind == NULL)
        MPL_FAIL(ctx, MPL_EINPUT, "no table '%s'; see memplan list tables", a->word[2]);
    if (setting(a, "rows") != NULL && !has_rows(a->suite))
        goto out;
    if (kind->query != NULL)
        MPL_TRY(read_rows(ctx, a->suite, &rows));
    for (uint32_t i = 3; i < a->n && kind->query != NULL; i++)
        if (strchr(a->word[i], '=') == NULL)
            MPL_TRY(read_rows(ctx, a->word[i], &rows));
    MPL_TRY(mpl_rows_last(ctx, &rows));
    if (mpl_rows_mixed(&rows) < rows.n)
        fprintf(stderr, "memplan: paper: %s mixes %s\n", a->word[1],
                mpl_shown(mpl_rows_mixed_text(&rows, mpl_rows_mixed(&rows), mixed)));
    MPL_TRY(mpl_table_make(ctx, kind, &rows, all));
out:
    mpl_rows_fini(ctx, &rows);
    return st;
}

static bool ends_in(const char *text, const char *end)
{
    size_t n = strlen(text), n_end = strlen(end);

    return n > n_end && strcmp(text + n - n_end, end) == 0;
}

static mpl_status find_table(mpl_ctx *ctx, const asked *a, mpl_grid *all)
{
    bool tsv = ends_in(a->word[2], ".tsv"), graph = ends_in(a->word[2], ".graph");
    char path[300];

    snprintf(path, sizeof path, "results/%s%.200s",
             tsv     ? "tables/"
             : graph ? "paper/"
                     : "",
             a->word[2]);
    if (graph)
        return mpl_paper_anatomy(ctx, path, all);
    if (tsv)
        return mpl_paper_tsv(ctx, path, all);
    if (ends_in(a->word[2], ".csv"))
        return mpl_paper_csv(ctx, path, all);
    return from_rows(ctx, a, all);
}

/* Whether a line matches each COLUMN=VALUE and COLUMN!=VALUE; *lacks: a column not found. */
static bool wanted(const asked *self, const mpl_grid *all, uint32_t line, const char **lacks)
{
    for (uint32_t i = 3; i < self->n; i++) {
        const char *equals = strchr(self->word[i], '='), *cell;
        char name[200];
        bool unlike;

        if (equals == NULL || strncmp(self->word[i], "show=", 5) == 0 ||
            strncmp(self->word[i], "with=", 5) == 0 || strncmp(self->word[i], "rows=", 5) == 0)
            continue;
        unlike = equals > self->word[i] && equals[-1] == '!';
        snprintf(name, sizeof name, "%.*s", (int)(equals - self->word[i]) - unlike, self->word[i]);
        if ((cell = mpl_grid_in(all, line, name)) == NULL)
            *lacks = self->word[i];
        if (cell == NULL || (strcmp(cell, equals + 1) == 0) == unlike)
            return false;
    }
    return true;
}

/* Writes the heads of the columns named by show=, or of all columns. */
static mpl_status choose_columns(mpl_ctx *ctx, const asked *a, const mpl_grid *all,
                                 const mpl_strings *names, uint32_t *chosen, mpl_grid *table)
{
    for (uint32_t i = 0; i < table->n_cols; i++) {
        const char *name = names->n > 0 ? names->item[i] : all->cell[i];
        bool timed = mpl_grid_column(all, name) == all->n_cols && name[0] == MPL_TIMED[0];

        if ((chosen[i] = mpl_grid_column(all, name + timed)) == all->n_cols)
            return MPL_REFUSE(ctx, "%s has no column '%s'", a->word[2], name + timed);
        MPL_PASS(mpl_grid_cell(ctx, table, "%s%s", timed ? MPL_TIMED : "", all->cell[chosen[i]]));
    }
    return MPL_OK;
}

/* Selects the requested lines and columns; none of a table that was not run. */
static mpl_status choose(mpl_ctx *ctx, const asked *a, const mpl_grid *all, mpl_grid *table)
{
    mpl_status st = MPL_OK;
    const char *show = setting(a, "show"), *lacks = NULL;
    mpl_strings names = {0};
    char *store = NULL;
    uint32_t *chosen = NULL;

    if (all->n_cols == 0)
        goto out;
    if (show != NULL)
        MPL_TRY(mpl_strings_split(ctx, show, "show", &store, &names));
    table->n_cols = names.n > 0 ? names.n : all->n_cols;
    MPL_TRY(mpl_new(ctx, chosen, table->n_cols));
    MPL_TRY(choose_columns(ctx, a, all, &names, chosen, table));
    for (uint32_t line = 1; line < mpl_grid_lines(all); line++) {
        bool shown = wanted(a, all, line, &lacks);

        for (uint32_t i = 0; shown && i < table->n_cols; i++)
            MPL_TRY(mpl_grid_cell(ctx, table, "%s", mpl_grid_at(all, line, chosen[i])));
        if (lacks != NULL)
            MPL_FAIL(ctx, MPL_EINPUT, "%s has no column for '%s'", a->word[2], lacks);
    }
out:
    mpl_free_each(ctx, names.item, store, chosen);
    return st;
}

/* ---- the items ---- */

static void item_fini(mpl_ctx *ctx, mpl_paper_item *item)
{
    mpl_free_each(ctx, item->name, item->caption, item->script);
    mpl_grid_fini(ctx, &item->table);
}

static mpl_status take_item(mpl_ctx *ctx, mpl_paper *paper, mpl_paper_item *item)
{
    MPL_PASS(mpl_reserve(ctx, paper->item, paper->cap, (size_t)paper->n + 1));
    paper->item[paper->n++] = *item;
    memset(item, 0, sizeof *item);
    return MPL_OK;
}

/* "with=NAME.gp", else NAME.gp named after the figure. */
static mpl_status script_of(mpl_ctx *ctx, const asked *a, char **script)
{
    const char *with = setting(a, "with");
    char name[300];

    snprintf(name, sizeof name, "%.200s%s", with != NULL ? with : a->word[1],
             with != NULL ? "" : ".gp");
    return (*script = mpl_strdup(ctx, name)) != NULL ? MPL_OK : MPL_EMEM;
}

static mpl_status make_item(mpl_ctx *ctx, const asked *a, mpl_paper *paper)
{
    mpl_status st = MPL_OK;
    mpl_paper_item item = {0};
    mpl_grid all = {0};

    if (mpl_paper_find(paper, a->word[1]) != NULL)
        MPL_FAIL(ctx, MPL_EINPUT, "'%s' is asked for twice", a->word[1]);
    if ((item.name = mpl_strdup(ctx, a->word[1])) == NULL ||
        (item.caption = mpl_strdup(ctx, a->caption)) == NULL)
        MPL_TRY(MPL_EMEM);
    if (strcmp(a->word[0], "figure") == 0)
        MPL_TRY(script_of(ctx, a, &item.script));
    MPL_TRY(find_table(ctx, a, &all));
    MPL_TRY(choose(ctx, a, &all, &item.table));
    MPL_TRY(take_item(ctx, paper, &item));
out:
    mpl_grid_fini(ctx, &all);
    item_fini(ctx, &item);
    return st;
}

/* Reads one line after "#!". */
static mpl_status read_line(mpl_ctx *ctx, const char *suite, char *line, mpl_paper *paper)
{
    char *bar = strchr(line, '|'), *more = NULL;
    asked a = {.suite = suite};

    if (bar == NULL)
        return MPL_REFUSE(ctx, "a caption behind | is needed");
    *bar = '\0';
    a.caption = bar + 1 + strspn(bar + 1, " ");
    for (char *word = strtok_r(line, " \t", &more); word != NULL;
         word = strtok_r(NULL, " \t", &more)) {
        if (a.n == MAX_WORDS)
            return MPL_REFUSE(ctx, "more than %d words", MAX_WORDS);
        a.word[a.n++] = word;
    }
    if (a.n < 3 || (strcmp(a.word[0], "table") != 0 && strcmp(a.word[0], "figure") != 0))
        return MPL_REFUSE(ctx, "'table NAME KIND ..' or 'figure NAME KIND ..' is needed");
    return make_item(ctx, &a, paper);
}

static mpl_status read_asked(mpl_ctx *ctx, const char *file, mpl_paper *paper)
{
    mpl_status st = MPL_OK;
    char path[400], *text = NULL, *suite = mpl_strdup(ctx, file);
    uint32_t number = 0;
    size_t size;

    if (suite == NULL)
        MPL_TRY(MPL_EMEM);
    suite[strlen(suite) - strlen(".suite")] = '\0';
    snprintf(path, sizeof path, ASKED "/%s", file);
    MPL_TRY(mpl_file_read(ctx, path, &text, &size));
    for (char *line = text, *end; line != NULL; line = end) {
        number++;
        if ((end = strchr(line, '\n')) != NULL)
            *end++ = '\0';
        if (strncmp(line, "#!", 2) == 0 && (st = read_line(ctx, suite, line + 2, paper)) != MPL_OK)
            MPL_FAIL(ctx, st, "%s:%" PRIu32 ": %s", path, number, ctx->message);
    }
out:
    mpl_free_each(ctx, text, suite);
    return st;
}

static int is_suite(const struct dirent *entry)
{
    size_t n = strlen(entry->d_name);

    return n > 6 && strcmp(entry->d_name + n - 6, ".suite") == 0;
}

static int by_name(const struct dirent **a, const struct dirent **b)
{
    return strcmp((*a)->d_name, (*b)->d_name);
}

mpl_status mpl_paper_make(mpl_ctx *ctx, mpl_paper *paper)
{
    mpl_status st = MPL_OK;
    struct dirent **file = NULL;
    int n = scandir(ASKED, &file, is_suite, by_name);

    if (n < 0)
        MPL_FAIL(ctx, MPL_EINPUT, ASKED ": %s; paper runs in the project's folder",
                 strerror(errno));
    for (int i = 0; i < n; i++)
        MPL_TRY(read_asked(ctx, file[i]->d_name, paper));
out:
    for (int i = 0; i < n; i++)
        free(file[i]);
    free(file);
    return st;
}

void mpl_paper_fini(mpl_ctx *ctx, mpl_paper *paper)
{
    for (uint32_t i = 0; i < paper->n; i++)
        item_fini(ctx, &paper->item[i]);
    mpl_free(ctx, paper->item);
    memset(paper, 0, sizeof *paper);
}
