/* relation.c -- queries over rows through SQLite. No other file includes SQLite. See relation.h. */
#include "harness/report/relation.h"

#include "mpl_config.h"

#if MPL_HAVE_SQLITE

#include <math.h>
#include <sqlite3.h>
#include <stdlib.h>

#include "harness/cli/carried.h"

#define PUBLISHED "results/published.tsv"

/* ---- SQL functions: formats, and sums independent of the order of rows ---- */

static bool any_null(int n, sqlite3_value **value)
{
    for (int i = 0; i < n; i++)
        if (sqlite3_value_type(value[i]) == SQLITE_NULL)
            return true;
    return false;
}

static void return_text(sqlite3_context *to, const char *text)
{
    sqlite3_result_text(to, text, -1, SQLITE_TRANSIENT);
}

static void mib(sqlite3_context *to, int n, sqlite3_value **value)
{
    char text[MPL_CELL_TEXT];

    if (!any_null(n, value))
        return_text(to, mpl_mib_text((uint64_t)sqlite3_value_int64(value[0]), text));
}

static void ms(sqlite3_context *to, int n, sqlite3_value **value)
{
    char text[MPL_CELL_TEXT];

    if (!any_null(n, value))
        return_text(to, mpl_fixed_text(sqlite3_value_double(value[0]) / 1e6, 3, text));
}

static void fixed(sqlite3_context *to, int n, sqlite3_value **value)
{
    char text[MPL_CELL_TEXT];

    if (!any_null(n, value))
        return_text(
            to, mpl_fixed_text(sqlite3_value_double(value[0]), sqlite3_value_int(value[1]), text));
}

static void return_percent(sqlite3_context *to, double part, int digits)
{
    char text[MPL_CELL_TEXT];

    mpl_fixed_text(part * 100, digits, text);
    return_text(to, strcat(text, " %"));
}

static void percent(sqlite3_context *to, int n, sqlite3_value **value)
{
    if (!any_null(n, value))
        return_percent(to, sqlite3_value_double(value[0]), sqlite3_value_int(value[1]));
}

static void gap(sqlite3_context *to, int n, sqlite3_value **value)
{
    char text[MPL_CELL_TEXT];

    if (!any_null(n, value))
        return_text(to, mpl_gap_text((uint64_t)sqlite3_value_int64(value[0]),
                                     (uint64_t)sqlite3_value_int64(value[1]), text));
}

static void less(sqlite3_context *to, int n, sqlite3_value **value)
{
    double before, after, part;

    if (any_null(n, value))
        return;
    before = sqlite3_value_double(value[0]);
    after = sqlite3_value_double(value[1]);
    part = before > 0 ? 1 - after / before : 0;
    if (sqlite3_value_int64(value[0]) == sqlite3_value_int64(value[1]))
        return_text(to, "0");
    else
        return_percent(to, part < 0 && part > -0.0005 ? 0 : part, 1); /* not "-0.0" */
}

static void ratio(sqlite3_context *to, int n, sqlite3_value **value)
{
    if (!any_null(n, value) && sqlite3_value_double(value[1]) > 0)
        sqlite3_result_double(to, sqlite3_value_double(value[0]) / sqlite3_value_double(value[1]));
}

static void problem(sqlite3_context *to, int n, sqlite3_value **value)
{
    const mpl_rows *rows = sqlite3_user_data(to);

    (void)n;
    sqlite3_result_int64(to,
                         1 + mpl_rows_problem(rows, (uint32_t)(sqlite3_value_int64(value[0]) - 1)));
}

static void refuse(sqlite3_context *to, int n, sqlite3_value **value)
{
    (void)n;
    sqlite3_result_error(to, (const char *)sqlite3_value_text(value[0]), -1);
}

/* Arguments of an aggregate, sorted before use. */
typedef struct numbers {
    size_t n;
    double *number;
} numbers;

static void collect(sqlite3_context *to, int n, sqlite3_value **value)
{
    numbers *all = sqlite3_aggregate_context(to, sizeof *all);
    double *larger;

    if (all == NULL || any_null(n, value))
        return;
    if ((all->n & (all->n - 1)) == 0) {
        larger = realloc(all->number, (all->n == 0 ? 1 : 2 * all->n) * sizeof *larger);
        if (larger == NULL) {
            sqlite3_result_error_nomem(to);
            return;
        }
        all->number = larger;
    }
    all->number[all->n++] = sqlite3_value_double(value[0]);
}

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

/* user_data: the aggregate's name. */
static void summarise(sqlite3_context *to)
{
    numbers *all = sqlite3_aggregate_context(to, 0);
    const char *name = sqlite3_user_data(to);
    double sum = 0;

    if (all == NULL || all->n == 0)
        return;
    qsort(all->number, all->n, sizeof *all->number, ascending);
    if (strcmp(name, "median") == 0) {
        sqlite3_result_double(to, (all->number[all->n / 2] + all->number[(all->n - 1) / 2]) / 2);
    } else {
        bool logarithms = strcmp(name, "geometric_mean") == 0;

        for (size_t i = 0; i < all->n; i++)
            sum += logarithms ? log(all->number[i]) : all->number[i];
        sum /= (double)all->n;
        sqlite3_result_double(to, logarithms ? exp(sum) : sum);
    }
    free(all->number);
}

static const struct {
    const char *name;
    int n; /* arguments */
    void (*call)(sqlite3_context *, int, sqlite3_value **);
} functions[] = {
    {"mib", 1, mib},         {"ms", 1, ms},           {"fixed", 2, fixed},
    {"percent", 2, percent}, {"gap", 2, gap},         {"less", 2, less},
    {"ratio", 2, ratio},     {"problem", 1, problem}, {"refuse", 1, refuse},
};
static char aggregates[][16] = {"mean", "geometric_mean", "median"};

static int add_functions(sqlite3 *db, const mpl_rows *rows)
{
    enum { FLAGS = SQLITE_UTF8 | SQLITE_DETERMINISTIC };
    int failed = 0;

    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++)
        failed |= sqlite3_create_function(db, functions[i].name, functions[i].n, FLAGS,
                                          (void *)(uintptr_t)rows, functions[i].call, NULL, NULL);
    for (size_t i = 0; i < sizeof aggregates / sizeof *aggregates; i++)
        failed |= sqlite3_create_function(db, aggregates[i], 1, FLAGS, aggregates[i], NULL, collect,
                                          summarise);
    return failed;
}

/* ---- relations ---- */

static mpl_status failed(mpl_ctx *ctx, sqlite3 *db)
{
    if (db == NULL || sqlite3_errcode(db) == SQLITE_NOMEM)
        return MPL_ERROR(ctx, MPL_EMEM, "out of memory: a table of rows");
    return MPL_REFUSE(ctx, "%s", sqlite3_errmsg(db));
}

#define SQL(ctx, db, call) MPL_TRY((call) == SQLITE_OK ? MPL_OK : failed(ctx, db))

/* "CREATE TABLE rows (..); INSERT INTO rows ..", from fields.def. Takes all fields but arrays of
 * times from ?5, the row as JSON. */
static void write_schema(FILE *create, FILE *insert)
{
    static const char *const type[] = {"TEXT", "INTEGER", "INTEGER", "REAL", "INTEGER", "TEXT"};

    fputs("CREATE TABLE rows (id INTEGER PRIMARY KEY, graph_name TEXT, planner_name TEXT, "
          "arena_over_malloc REAL",
          create);
    fputs("INSERT INTO rows VALUES (?1, ?2, ?3, ?4", insert);
    for (int i = 0; i < MPL_N_FIELDS; i++) {
        fprintf(create, ", \"%s\" %s", mpl_field_table[i].name, type[mpl_field_table[i].kind]);
        if (mpl_field_table[i].kind == MPL_KIND_INTS)
            fprintf(insert, ", ?%d", 6 + i);
        else
            fprintf(insert, ", ?5 ->> '%s'", mpl_field_table[i].name);
    }
    fputs(")", create);
    fputs(")", insert);
}

/* Finds the name in a graph ("resnet50", or "A" of ../lists/A.1048576.csv): sets *graph to its
 * start and returns its length. */
static int name_in(const char **graph)
{
    const char *slash = strrchr(*graph, '/'), *dot = strrchr(*graph, '.');
    bool file =
        slash != NULL || (dot != NULL && (strcmp(dot, ".csv") == 0 || strcmp(dot, ".onnx") == 0 ||
                                          strcmp(dot, ".graph") == 0));

    if (slash != NULL)
        *graph = slash + 1;
    return (int)(file ? strcspn(*graph, ".") : strlen(*graph));
}

static mpl_status insert_row(mpl_ctx *ctx, sqlite3 *db, sqlite3_stmt *insert, uint32_t id,
                             const mpl_record *row)
{
    mpl_status st = MPL_OK;
    const char *graph = mpl_record_text_or(row, MPL_FIELD_graph, "-");
    char planner[MPL_PLANNER_LABEL], *json = NULL;
    double arena_over_malloc;
    int64_t median;
    int length = name_in(&graph);

    MPL_TRY(mpl_record_write(ctx, row, &json));
    sqlite3_reset(insert);
    sqlite3_clear_bindings(insert);
    SQL(ctx, db, sqlite3_bind_int64(insert, 1, id));
    SQL(ctx, db, sqlite3_bind_text(insert, 2, graph, length, SQLITE_TRANSIENT));
    SQL(ctx, db,
        sqlite3_bind_text(insert, 3, mpl_planner_label(row, planner), -1, SQLITE_TRANSIENT));
    if (mpl_record_median_ratio(row, MPL_FIELD_run_ns, MPL_FIELD_malloc_ns, &arena_over_malloc))
        SQL(ctx, db, sqlite3_bind_double(insert, 4, arena_over_malloc));
    SQL(ctx, db, sqlite3_bind_text(insert, 5, json, -1, SQLITE_TRANSIENT));
    for (int i = 0; i < MPL_N_FIELDS; i++)
        if (mpl_record_median(row, (mpl_field)i, &median))
            SQL(ctx, db, sqlite3_bind_int64(insert, 6 + i, median));
    SQL(ctx, db, sqlite3_step(insert) == SQLITE_DONE ? SQLITE_OK : SQLITE_ERROR);
out:
    mpl_free(ctx, json);
    return st;
}

static mpl_status insert_rows(mpl_ctx *ctx, sqlite3 *db, const mpl_rows *rows)
{
    mpl_status st = MPL_OK;
    sqlite3_stmt *insert = NULL;
    char *text[2] = {NULL};
    size_t size[2];
    FILE *to[2] = {open_memstream(&text[0], &size[0]), open_memstream(&text[1], &size[1])};

    if (to[0] == NULL || to[1] == NULL)
        MPL_TRY(MPL_EMEM);
    write_schema(to[0], to[1]);
    if (fflush(to[0]) != 0 || fflush(to[1]) != 0)
        MPL_TRY(MPL_EMEM);
    SQL(ctx, db, sqlite3_exec(db, text[0], NULL, NULL, NULL));
    SQL(ctx, db, sqlite3_prepare_v2(db, text[1], -1, &insert, NULL));
    for (uint32_t i = 0; i < rows->n; i++)
        MPL_TRY(insert_row(ctx, db, insert, i + 1, rows->row[i]));
out:
    sqlite3_finalize(insert);
    for (int i = 0; i < 2; i++) {
        if (to[i] != NULL)
            fclose(to[i]);
        free(text[i]);
    }
    return st;
}

/* Inserts published results: one a line, columns separated by tabs. */
static mpl_status insert_published(mpl_ctx *ctx, sqlite3 *db)
{
    enum { N_COLUMNS = 8 };
    mpl_status st = MPL_OK;
    sqlite3_stmt *insert = NULL;
    char *text = NULL, *rest, *line;
    size_t size;

    SQL(ctx, db,
        sqlite3_exec(db,
                     "CREATE TABLE published (id INTEGER PRIMARY KEY, graph TEXT, safety TEXT, "
                     "planner TEXT, quantity TEXT, value TEXT, source TEXT, origin TEXT, "
                     "note TEXT)",
                     NULL, NULL, NULL));
    SQL(ctx, db,
        sqlite3_prepare_v2(db, "INSERT INTO published VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", -1,
                           &insert, NULL));
    MPL_TRY(mpl_carried_read(ctx, PUBLISHED, &text, &size));
    rest = text;
    for (int number = 1; (line = strsep(&rest, "\n")) != NULL; number++) {
        char *cell = NULL;
        int n = 0;

        if (*line == '\0' || *line == '#' || strncmp(line, "graph\t", 6) == 0)
            continue;
        sqlite3_reset(insert);
        SQL(ctx, db, sqlite3_bind_int(insert, 1, number));
        while ((cell = strsep(&line, "\t")) != NULL && n++ < N_COLUMNS)
            SQL(ctx, db, sqlite3_bind_text(insert, 1 + n, cell, -1, SQLITE_TRANSIENT));
        if (cell != NULL || n != N_COLUMNS)
            MPL_FAIL(ctx, MPL_EINPUT, PUBLISHED ":%d: %d columns with tabs between are needed",
                     number, N_COLUMNS);
        SQL(ctx, db, sqlite3_step(insert) == SQLITE_DONE ? SQLITE_OK : SQLITE_ERROR);
    }
out:
    sqlite3_finalize(insert);
    mpl_free(ctx, text);
    return st;
}

/* ---- records as a table ---- */

/* Records of a query: n_cols cells each, NULL for null. */
typedef struct records {
    sqlite3_stmt *query;
    uint32_t n, n_cols;
    uint32_t line, each, section; /* columns that are not printed; n_cols: none */
    size_t cap;
    char **cell;
} records;

static const char *cell_at(const records *self, uint32_t record, uint32_t column)
{
    return column < self->n_cols ? self->cell[(size_t)record * self->n_cols + column] : NULL;
}

/* Index of the first record after `from` with another value in this column; `to`: none. */
static uint32_t end_of(const records *self, uint32_t column, uint32_t from, uint32_t to)
{
    uint32_t end = from + 1;

    while (end < to && strcmp(cell_at(self, from, column), cell_at(self, end, column)) == 0)
        end++;
    return end;
}

static mpl_status fetch(mpl_ctx *ctx, sqlite3 *db, records *r)
{
    int step;

    r->n_cols = (uint32_t)sqlite3_column_count(r->query);
    while ((step = sqlite3_step(r->query)) == SQLITE_ROW) {
        MPL_PASS(mpl_reserve(ctx, r->cell, r->cap, ((size_t)r->n + 1) * r->n_cols));
        memset(r->cell + (size_t)r->n * r->n_cols, 0, r->n_cols * sizeof *r->cell);
        r->n++;
        for (uint32_t c = 0; c < r->n_cols; c++) {
            const char *text = (const char *)sqlite3_column_text(r->query, (int)c);
            char **cell = &r->cell[(size_t)(r->n - 1) * r->n_cols + c];

            if (text != NULL && (*cell = mpl_strdup(ctx, text)) == NULL)
                MPL_PASS(MPL_EMEM);
        }
    }
    if (step != SQLITE_DONE)
        MPL_PASS(failed(ctx, db));
    return MPL_OK;
}

static const char *head_of(const records *self, uint32_t column)
{
    return sqlite3_column_name(self->query, (int)column);
}

static uint32_t column_named(const records *self, const char *name)
{
    uint32_t c = 0;

    while (c < self->n_cols && strcmp(head_of(self, c), name) != 0)
        c++;
    return c;
}

/* Writes a record's cell, or its head: the column's name, with `each` of the record for a %. */
static mpl_status put_cell(mpl_ctx *ctx, const records *r, uint32_t record, uint32_t column,
                           bool head, mpl_grid *grid)
{
    const char *name = head_of(r, column), *mark = strchr(name, '%'), *text;

    if (head && mark != NULL)
        return mpl_grid_cell(ctx, grid, "%.*s%s%s", (int)(mark - name), name,
                             cell_at(r, record, r->each), mark + 1);
    text = head ? name : cell_at(r, record, column);
    return mpl_grid_cell(ctx, grid, "%s", text != NULL ? text : "-");
}

/* Writes one line for records from..to. Adjacent columns with a % in their heads take a cell of
 * each record in turn; other columns take the first record's. */
static mpl_status put_line(mpl_ctx *ctx, const records *r, uint32_t from, uint32_t to, bool head,
                           mpl_grid *grid)
{
    for (uint32_t c = 0, end; c < r->n_cols; c = end) {
        end = c + 1;
        if (c == r->line || c == r->each || c == r->section)
            continue;
        if (strchr(head_of(r, c), '%') == NULL) {
            MPL_PASS(put_cell(ctx, r, from, c, head, grid));
            continue;
        }
        while (end < r->n_cols && strchr(head_of(r, end), '%') != NULL)
            end++;
        for (uint32_t i = from; i < to; i++)
            for (uint32_t k = c; k < end && cell_at(r, i, r->each) != NULL; k++)
                MPL_PASS(put_cell(ctx, r, i, k, head, grid));
    }
    return MPL_OK;
}

/* Writes records from..to of one section as a table with heads. */
static mpl_status put_section(mpl_ctx *ctx, const records *r, uint32_t from, uint32_t to,
                              mpl_grid *grid)
{
    bool heads = strcmp(head_of(r, 0), "heads") == 0;

    for (uint32_t i = from, end; i < to; i = end) {
        end = r->line < r->n_cols ? end_of(r, r->line, i, to) : i + 1;
        if (i == from && !heads)
            MPL_PASS(put_line(ctx, r, i, end, true, grid));
        if (i == from)
            grid->n_cols = grid->n;
        MPL_PASS(put_line(ctx, r, i, end, false, grid));
        if (grid->n_cols == 0)
            grid->n_cols = grid->n;
        mpl_assert(grid->n % grid->n_cols == 0);
    }
    return MPL_OK;
}

static mpl_status put_answers(mpl_ctx *ctx, const records *r, mpl_answer_taker *take, void *arg)
{
    mpl_status st = MPL_OK;
    mpl_answer answer = {.section = MPL_NONE};

    for (uint32_t i = 0, end; i < r->n; i = end) {
        end = r->section < r->n_cols ? end_of(r, r->section, i, r->n) : r->n;
        if (r->section < r->n_cols)
            answer.section = (uint32_t)strtoul(cell_at(r, i, r->section), NULL, 10) - 1;
        MPL_TRY(put_section(ctx, r, i, end, &answer.grid));
        MPL_TRY(take(ctx, &answer, arg));
        mpl_grid_fini(ctx, &answer.grid);
    }
    if (r->n == 0) { /* only heads, without those that have a % */
        MPL_TRY(put_line(ctx, r, 0, 0, true, &answer.grid));
        answer.grid.n_cols = answer.grid.n;
        MPL_TRY(take(ctx, &answer, arg));
    }
out:
    mpl_grid_fini(ctx, &answer.grid);
    return st;
}

mpl_status mpl_relation_ask(mpl_ctx *ctx, const mpl_rows *rows, const char *prelude,
                            const char *query, mpl_answer_taker *take, void *arg)
{
    mpl_status st = MPL_OK;
    sqlite3 *db = NULL;
    records r = {0};

    SQL(ctx, db, sqlite3_open(":memory:", &db));
    SQL(ctx, db, add_functions(db, rows));
    MPL_TRY(insert_rows(ctx, db, rows));
    if (strstr(query, "published") != NULL)
        MPL_TRY(insert_published(ctx, db));
    SQL(ctx, db, sqlite3_exec(db, prelude, NULL, NULL, NULL));
    SQL(ctx, db, sqlite3_prepare_v2(db, query, -1, &r.query, NULL));
    MPL_TRY(fetch(ctx, db, &r));
    r.line = column_named(&r, "line");
    r.each = column_named(&r, "each");
    r.section = column_named(&r, "section");
    MPL_TRY(put_answers(ctx, &r, take, arg));
out:
    for (size_t i = 0; i < (size_t)r.n * r.n_cols; i++)
        mpl_free(ctx, r.cell[i]);
    mpl_free(ctx, r.cell);
    sqlite3_finalize(r.query);
    sqlite3_close(db);
    return st;
}

#else

mpl_status mpl_relation_ask(mpl_ctx *ctx, const mpl_rows *rows, const char *prelude,
                            const char *query, mpl_answer_taker *take, void *arg)
{
    (void)rows, (void)prelude, (void)query, (void)take, (void)arg;
    return MPL_ERROR(ctx, MPL_EUNAVAIL,
                     "tables need SQLite, which this build is without: install "
                     "libsqlite3-dev and build again");
}

#endif
