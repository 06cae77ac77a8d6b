/* paper.c -- tables and figures that the files of results/paper ask for. See paper.h. */
#include "harness/report/paper.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "graphs/core/file.h"
#include "graphs/core/text.h"
#include "harness/cli/options.h"
#include "harness/report/grid.h"
#include "harness/report/table.h"

#define ASKED "results/paper"
enum { MAX_WORDS = 32, MAX_COLUMNS = 64 };

/* ---- cells of tab-separated text ---- */

/* Cuts the next line off *rest, and it at its tabs, in place; the number of cells, 0 at the end. */
static uint32_t next_line(char **rest, char *cell[MAX_COLUMNS])
{
    char *line = *rest, *end;
    uint32_t n = 0;

    if (line == NULL || *line == '\0')
        return 0;
    end = line + strcspn(line, "\n");
    *rest = *end == '\n' ? end + 1 : end;
    *end = '\0';
    while (line != NULL && n < MAX_COLUMNS) {
        cell[n++] = line;
        if ((line = strchr(line, '\t')) != NULL)
            *line++ = '\0';
    }
    return n;
}

/* Equal, where an underscore may stand for a blank. */
static bool same_name(const char *head, const char *name)
{
    while (*head != '\0' && (*head == *name || (*head == ' ' && *name == '_')))
        head++, name++;
    return *head == *name;
}

/* Index of the column `name` of a head; n: there is none. */
static uint32_t column_of(char *const head[], uint32_t n, const char *name)
{
    uint32_t c = 0;

    while (c < n && !same_name(head[c], name))
        c++;
    return c;
}

mpl_status mpl_paper_table(mpl_ctx *ctx, const mpl_paper_item *item, char **text)
{
    mpl_status st = MPL_OK;
    mpl_grid grid = {0};
    char *copy = mpl_strdup(ctx, item->tsv), *rest = copy, *cell[MAX_COLUMNS], *buffer = NULL;
    size_t size = 0;
    FILE *f = NULL;
    uint32_t n;

    if (copy == NULL)
        MPL_TRY(MPL_EMEM);
    while ((n = next_line(&rest, cell)) > 0 && item->tsv[0] != '\n') {
        if (grid.n_cols == 0)
            grid.n_cols = n;
        if (n != grid.n_cols)
            MPL_FAIL(ctx, MPL_EINPUT,
                     "table %s: a line has %" PRIu32 " cells where the head has %" PRIu32,
                     item->name, n, grid.n_cols);
        for (uint32_t c = 0; c < n; c++)
            MPL_TRY(mpl_grid_cell(ctx, &grid, "%s", cell[c]));
    }
    if ((f = open_memstream(&buffer, &size)) == NULL)
        MPL_TRY(MPL_EMEM);
    if (item->caption != NULL)
        fprintf(f, "%s\n\n", item->caption);
    if (grid.n_cols == 0)
        fputs("**Not run**: there are no rows yet.\n", f);
    else
        mpl_grid_print(f, &grid, false);
    if (fclose(f) != 0 || (*text = mpl_strdup(ctx, buffer)) == NULL)
        MPL_TRY(MPL_EMEM);
out:
    mpl_grid_fini(ctx, &grid);
    mpl_free(ctx, copy);
    free(buffer);
    return st;
}

mpl_status mpl_paper_value(mpl_ctx *ctx, const mpl_paper_item *item, const char *path, char **value)
{
    mpl_status st = MPL_OK;
    char *copy = mpl_strdup(ctx, item->tsv), *keys = mpl_strdup(ctx, path), *rest = copy;
    char *cell[MAX_COLUMNS], *key[MAX_COLUMNS] = {keys}, *found = NULL;
    uint32_t n, n_keys = 1, column;

    if (copy == NULL || keys == NULL)
        MPL_TRY(MPL_EMEM);
    for (char *slash = strchr(keys, '/'); slash != NULL && n_keys < MAX_COLUMNS;
         slash = strchr(slash, '/')) {
        *slash++ = '\0';
        key[n_keys++] = slash;
    }
    n = next_line(&rest, cell);
    if ((column = column_of(cell, n, key[n_keys - 1])) == n)
        MPL_FAIL(ctx, MPL_EINPUT, "%s has no column '%s'", item->name, key[n_keys - 1]);
    while ((n = next_line(&rest, cell)) > 0) {
        uint32_t k = 0;

        while (k + 1 < n_keys && k < n && strcmp(cell[k], key[k]) == 0)
            k++;
        if (k + 1 < n_keys || column >= n)
            continue;
        if (found != NULL)
            MPL_FAIL(ctx, MPL_EINPUT, "%s has several lines for '%s'", item->name, path);
        found = cell[column];
    }
    if (found == NULL)
        MPL_FAIL(ctx, MPL_EINPUT, "%s has no line for '%s'", item->name, path);
    if ((*value = mpl_strdup(ctx, found)) == NULL)
        MPL_TRY(MPL_EMEM);
out:
    mpl_free(ctx, copy);
    mpl_free(ctx, keys);
    return st;
}

/* ---- lines that ask for something ---- */

typedef struct asked {
    const char *suite, *caption;
    char *word[MAX_WORDS]; /* "table" or "figure", the name, the kind, the rest */
    uint32_t n;
} asked;

/* "KEY=VALUE" among the words: VALUE, or NULL. */
static const char *setting(const asked *a, const char *key)
{
    size_t n = strlen(key);

    for (uint32_t i = 3; i < a->n; i++)
        if (strncmp(a->word[i], key, n) == 0 && a->word[i][n] == '=')
            return a->word[i] + n + 1;
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

/* The whole table, tab-separated. */
static mpl_status from_rows(mpl_ctx *ctx, const asked *a, char **text)
{
    mpl_status st = MPL_OK;
    const mpl_table_kind *kind = mpl_table_find(a->word[2]);
    mpl_rows rows = {0};
    char *buffer = NULL, mixed[MPL_MIXED_SIZE];
    size_t size = 0;
    FILE *f = NULL;
    uint32_t n_lines;

    if (kind == NULL)
        MPL_FAIL(ctx, MPL_EINPUT, "no table '%s'; see memplan list tables", a->word[2]);
    if (setting(a, "rows") != NULL && !has_rows(a->suite)) {
        *text = mpl_strdup(ctx, "\n");
        st = *text != NULL ? MPL_OK : MPL_EMEM;
        goto out;
    }
    if (kind->query != NULL)
        MPL_TRY(read_rows(ctx, a->suite, &rows));
    for (uint32_t i = 3; i < a->n && kind->query != NULL; i++)
        if (strchr(a->word[i], '=') == NULL)
            MPL_TRY(read_rows(ctx, a->word[i], &rows));
    MPL_TRY(mpl_rows_last(ctx, &rows));
    if (mpl_rows_mixed(&rows) < rows.n)
        fprintf(stderr, "memplan: paper: %s mixes %s\n", a->word[1],
                mpl_shown(mpl_rows_mixed_text(&rows, mpl_rows_mixed(&rows), mixed)));
    if ((f = open_memstream(&buffer, &size)) == NULL)
        MPL_TRY(MPL_EMEM);
    MPL_TRY(mpl_table_print(ctx, kind, &rows, f, true, &n_lines));
    if (fflush(f) != 0 || (*text = mpl_strdup(ctx, buffer)) == NULL)
        MPL_TRY(MPL_EMEM);
out:
    if (f != NULL)
        fclose(f);
    free(buffer);
    mpl_rows_fini(ctx, &rows);
    return st;
}

/* Whether a line has what each COLUMN=VALUE and COLUMN!=VALUE asks for; *lacks: a column that there
 * is not. */
static bool wanted(const asked *a, char *const head[], char *const cell[], uint32_t n,
                   const char **lacks)
{
    for (uint32_t i = 3; i < a->n; i++) {
        const char *equals = strchr(a->word[i], '=');
        char name[200];
        bool unlike;
        uint32_t c;

        if (equals == NULL || strncmp(a->word[i], "show=", 5) == 0 ||
            strncmp(a->word[i], "with=", 5) == 0 || strncmp(a->word[i], "rows=", 5) == 0)
            continue;
        unlike = equals > a->word[i] && equals[-1] == '!';
        snprintf(name, sizeof name, "%.*s", (int)(equals - a->word[i]) - unlike, a->word[i]);
        if ((c = column_of(head, n, name)) == n)
            *lacks = a->word[i];
        if (c == n || (strcmp(cell[c], equals + 1) == 0) == unlike)
            return false;
    }
    return true;
}

/* The columns of show=, or all. */
static mpl_status choose_columns(mpl_ctx *ctx, const asked *a, char *const head[], uint32_t n,
                                 uint32_t chosen[MAX_COLUMNS], uint32_t *n_chosen, FILE *to)
{
    mpl_status st = MPL_OK;
    const char *show = setting(a, "show");
    mpl_strings names = {0};
    char *store = NULL;

    if (show != NULL)
        MPL_TRY(mpl_strings_split(ctx, show, "show", &store, &names));
    *n_chosen = show != NULL ? names.n : n;
    if (*n_chosen > MAX_COLUMNS)
        MPL_FAIL(ctx, MPL_EINPUT, "show has more than %d columns", MAX_COLUMNS);
    for (uint32_t i = 0; i < *n_chosen; i++) {
        const char *name = show != NULL ? names.item[i] : head[i];
        bool timed = show != NULL && name[0] == MPL_TIMED[0];

        chosen[i] = show != NULL ? column_of(head, n, name) : i;
        if (chosen[i] < n)
            timed = false; /* the head has its mark already */
        else if ((chosen[i] = column_of(head, n, name + timed)) == n)
            MPL_FAIL(ctx, MPL_EINPUT, "%s has no column '%s'", a->word[2], name + timed);
        fprintf(to, "%s%s%s", i > 0 ? "\t" : "", timed ? MPL_TIMED : "", head[chosen[i]]);
    }
    fputc('\n', to);
out:
    mpl_free(ctx, names.item);
    mpl_free(ctx, store);
    return st;
}

/* Of tab-separated text, the lines and columns that are asked for. */
static mpl_status choose(mpl_ctx *ctx, const asked *a, char *text, FILE *to)
{
    mpl_status st = MPL_OK;
    char *rest = text, *head[MAX_COLUMNS], *cell[MAX_COLUMNS];
    uint32_t n = next_line(&rest, head), n_cells, chosen[MAX_COLUMNS], n_chosen = 0;
    const char *lacks = NULL;

    if (n == 0)
        MPL_FAIL(ctx, MPL_EINPUT, "%s: no head of columns", a->word[2]);
    MPL_TRY(choose_columns(ctx, a, head, n, chosen, &n_chosen, to));
    while ((n_cells = next_line(&rest, cell)) > 0) {
        if (n_cells != n)
            MPL_FAIL(ctx, MPL_EINPUT,
                     "%s: a line has %" PRIu32 " cells where the head has %" PRIu32, a->word[2],
                     n_cells, n);
        if (wanted(a, head, cell, n, &lacks))
            for (uint32_t i = 0; i < n_chosen; i++)
                fprintf(to, "%s%s", cell[chosen[i]], i + 1 < n_chosen ? "\t" : "\n");
        if (lacks != NULL)
            MPL_FAIL(ctx, MPL_EINPUT, "%s has no column for '%s'", a->word[2], lacks);
    }
out:
    return st;
}

/* ---- the items ---- */

static void item_fini(mpl_ctx *ctx, mpl_paper_item *item)
{
    mpl_free(ctx, item->name);
    mpl_free(ctx, item->caption);
    mpl_free(ctx, item->tsv);
    mpl_free(ctx, item->script);
}

static mpl_status take_item(mpl_ctx *ctx, mpl_paper *paper, mpl_paper_item *item)
{
    mpl_status st = MPL_OK;

    MPL_TRY(mpl_reserve(ctx, paper->item, paper->cap, (size_t)paper->n + 1));
    paper->item[paper->n++] = *item;
    memset(item, 0, sizeof *item);
out:
    return st;
}

/* "with=NAME.gp", else NAME.gp after the figure. */
static mpl_status script_of(mpl_ctx *ctx, const asked *a, char **script)
{
    const char *with = setting(a, "with");
    char name[300];

    snprintf(name, sizeof name, "%.200s%s", with != NULL ? with : a->word[1],
             with != NULL ? "" : ".gp");
    return (*script = mpl_strdup(ctx, name)) != NULL ? MPL_OK : MPL_EMEM;
}

static bool ends_in(const char *text, const char *end)
{
    size_t n = strlen(text), n_end = strlen(end);

    return n > n_end && strcmp(text + n - n_end, end) == 0;
}

static mpl_status make_item(mpl_ctx *ctx, const asked *a, mpl_paper *paper)
{
    mpl_status st = MPL_OK;
    mpl_paper_item item = {0};
    char *buffer = NULL, *all = NULL, path[300], csv[300];
    size_t size = 0;
    FILE *f = open_memstream(&buffer, &size);

    if (f == NULL || (item.name = mpl_strdup(ctx, a->word[1])) == NULL ||
        (item.caption = mpl_strdup(ctx, a->caption)) == NULL)
        MPL_TRY(MPL_EMEM);
    for (uint32_t i = 0; i < paper->n; i++)
        if (strcmp(paper->item[i].name, item.name) == 0)
            MPL_FAIL(ctx, MPL_EINPUT, "'%s' is asked for twice", item.name);
    snprintf(path, sizeof path, "results/tables/%.200s", a->word[2]);
    snprintf(csv, sizeof csv, "results/%.200s", a->word[2]);
    if (strcmp(a->word[0], "figure") == 0)
        MPL_TRY(script_of(ctx, a, &item.script));
    if (ends_in(a->word[2], ".tsv"))
        MPL_TRY(mpl_file_read(ctx, path, &all, &size));
    else if (ends_in(a->word[2], ".csv"))
        MPL_TRY(mpl_paper_csv(ctx, csv, &all));
    else
        MPL_TRY(from_rows(ctx, a, &all));
    if (all[0] == '\n')
        fputc('\n', f); /* no file: no columns to choose from */
    else
        MPL_TRY(choose(ctx, a, all, f));
    if (fflush(f) != 0 || (item.tsv = mpl_strdup(ctx, buffer)) == NULL)
        MPL_TRY(MPL_EMEM);
    MPL_TRY(take_item(ctx, paper, &item));
out:
    if (f != NULL)
        fclose(f);
    free(buffer);
    mpl_free(ctx, all);
    item_fini(ctx, &item);
    return st;
}

/* One line behind "#!". */
static mpl_status read_line(mpl_ctx *ctx, const char *suite, char *line, mpl_paper *paper)
{
    mpl_status st = MPL_OK;
    char *bar = strchr(line, '|'), *more = NULL;
    asked a = {.suite = suite};

    if (bar == NULL)
        MPL_FAIL(ctx, MPL_EINPUT, "a caption behind | is needed");
    *bar = '\0';
    a.caption = bar + 1 + strspn(bar + 1, " ");
    for (char *word = strtok_r(line, " \t", &more); word != NULL;
         word = strtok_r(NULL, " \t", &more)) {
        if (a.n == MAX_WORDS)
            MPL_FAIL(ctx, MPL_EINPUT, "more than %d words", MAX_WORDS);
        a.word[a.n++] = word;
    }
    if (a.n < 3 || (strcmp(a.word[0], "table") != 0 && strcmp(a.word[0], "figure") != 0))
        MPL_FAIL(ctx, MPL_EINPUT, "'table NAME KIND ..' or 'figure NAME KIND ..' is needed");
    MPL_TRY(make_item(ctx, &a, paper));
out:
    return st;
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
        if (strncmp(line, "#!", 2) == 0 &&
            (st = read_line(ctx, suite, line + 2, paper)) != MPL_OK) {
            char message[sizeof ctx->message];

            snprintf(message, sizeof message, "%s", ctx->message);
            MPL_FAIL(ctx, st, "%s:%" PRIu32 ": %.400s", path, number, message);
        }
    }
out:
    mpl_free(ctx, text);
    mpl_free(ctx, suite);
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
