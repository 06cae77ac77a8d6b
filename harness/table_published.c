/* table_published.c -- values of others beside ours: results/published.tsv against rows. See table.h. */
#include <math.h>
#include <stdlib.h>

#include "graphs/base/file.h"
#include "harness/grid.h"
#include "harness/table.h"

#define PUBLISHED "results/published.tsv"

enum { GRAPH, SAFETY, PLANNER, QUANTITY, VALUE, SOURCE, NOTE, N_COLUMNS };

/* Splits a line at its tabs, in place; false when there are not as many columns as there should be. */
static bool split(char *line, char *column[N_COLUMNS])
{
    for (int i = 0; i < N_COLUMNS; i++) {
        column[i] = line;
        line += strcspn(line, "\t");
        if (i + 1 < N_COLUMNS && *line == '\0')
            return false;
        if (*line != '\0')
            *line++ = '\0';
    }
    return *line == '\0';
}

/* Whether a row's graph is the one meant: a zoo name as it stands, a file by its name up to the first dot. */
static bool is_graph(const char *graph, const char *meant)
{
    const char *base = strrchr(graph, '/') != NULL ? strrchr(graph, '/') + 1 : graph;
    size_t n = strcspn(base, ".");

    if (strcmp(graph, meant) == 0)
        return true;
    return base[n] == '.' && strlen(meant) == n && memcmp(base, meant, n) == 0;
}

static const mpl_record *find_row(const mpl_rows *rows, char *const column[N_COLUMNS])
{
    for (uint32_t i = 0; i < rows->n; i++) {
        const char *graph = mpl_record_get_text(rows->row[i], MPL_FIELD_graph);
        const char *safety = mpl_record_get_text(rows->row[i], MPL_FIELD_safety);
        char planner[120];

        if (graph != NULL && is_graph(graph, column[GRAPH]) && safety != NULL &&
            strcmp(safety, column[SAFETY]) == 0 &&
            strcmp(mpl_planner_label(rows->row[i], planner), column[PLANNER]) == 0)
            return rows->row[i];
    }
    return NULL;
}

/* Our value of a quantity; false where the row has not got it, or there is no such quantity. */
static bool our_value(const mpl_record *row, const char *quantity, double *value)
{
    static const struct {
        const char *name;
        mpl_field field;
        double unit;
    } quantities[] = {
        {"planned_mib", MPL_FIELD_planned_bytes, 1048576}, {"bound_mib", MPL_FIELD_bound_bytes, 1048576},
        {"naive_mib", MPL_FIELD_naive_bytes, 1048576},     {"planned_mb", MPL_FIELD_planned_bytes, 1e6},
        {"naive_mb", MPL_FIELD_naive_bytes, 1e6},          {"planned_kib", MPL_FIELD_planned_bytes, 1024},
    };
    uint64_t bytes = 0, bound = 0;

    for (size_t i = 0; i < sizeof quantities / sizeof *quantities; i++)
        if (strcmp(quantity, quantities[i].name) == 0) {
            bool known = mpl_record_get_int(row, quantities[i].field, &bytes);

            *value = (double)bytes / quantities[i].unit;
            return known;
        }
    if (strcmp(quantity, "over_bound") != 0 || !mpl_record_get_int(row, MPL_FIELD_planned_bytes, &bytes) ||
        !mpl_record_get_int(row, MPL_FIELD_bound_bytes, &bound) || bound == 0)
        return false;
    *value = (double)bytes / (double)bound;
    return true;
}

static mpl_status add_line(mpl_ctx *ctx, const mpl_rows *rows, char *const column[N_COLUMNS], mpl_grid *grid)
{
    mpl_status st = MPL_OK;
    const mpl_record *row = find_row(rows, column);
    double theirs = strtod(column[VALUE], NULL), ours = 0;
    const char *dot = strchr(column[VALUE], '.');
    double percent = 0;
    int digits = dot != NULL ? (int)strspn(dot + 1, "0123456789") : 0; /* as many as were published */

    if (row == NULL || !our_value(row, column[QUANTITY], &ours))
        return MPL_OK; /* not among the rows given */
    percent = 100 * (ours / theirs - 1);
    for (int i = GRAPH; i <= VALUE; i++)
        MPL_TRY(mpl_grid_cell(ctx, grid, "%s", column[i]));
    MPL_TRY(mpl_grid_cell(ctx, grid, "%.*f", digits, ours));
    MPL_TRY(fabs(percent) < 0.005 ? mpl_grid_cell(ctx, grid, "0")
                                  : mpl_grid_cell(ctx, grid, "%+.2f %%", percent));
    MPL_TRY(mpl_grid_cell(ctx, grid, "%s", column[SOURCE]));
    MPL_TRY(mpl_grid_cell(ctx, grid, "%s", column[NOTE]));
out:
    return st;
}

mpl_status mpl_table_published(mpl_ctx *ctx, const mpl_table_kind *kind, const mpl_rows *rows, FILE *to,
                               bool tsv)
{
    static const char *const head[] = {"graph", "safety",     "planner", "quantity", "published",
                                       "ours",  "difference", "source",  "note"};
    mpl_status st = MPL_OK;
    mpl_grid grid = {.n_cols = sizeof head / sizeof *head};
    char *text = NULL, *line, *rest;
    size_t size;
    uint32_t number = 0;

    MPL_TRY(mpl_file_read(ctx, PUBLISHED, &text, &size));
    for (size_t i = 0; i < grid.n_cols; i++)
        MPL_TRY(mpl_grid_cell(ctx, &grid, "%s", head[i]));
    for (line = text; line != NULL && *line != '\0'; line = rest) {
        char *column[N_COLUMNS];

        number++;
        rest = strchr(line, '\n');
        if (rest != NULL)
            *rest++ = '\0';
        if (*line == '#' || strncmp(line, "graph\t", 6) == 0)
            continue;
        if (!split(line, column))
            MPL_FAIL(ctx, MPL_EINPUT, PUBLISHED ":%" PRIu32 ": %d columns with tabs between are needed",
                     number, N_COLUMNS);
        MPL_TRY(add_line(ctx, rows, column, &grid));
    }
    if (!tsv)
        fprintf(to, "%s\n\n", kind->about);
    mpl_grid_print(to, &grid, tsv);
out:
    mpl_grid_fini(ctx, &grid);
    mpl_free(ctx, text);
    return st;
}
