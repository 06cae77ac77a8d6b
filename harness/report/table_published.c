/* table_published.c -- values of others, or of their methods, beside ours: results/published.tsv
 * against rows. See table.h. */
#include <math.h>
#include <stdlib.h>

#include "harness/cli/carried.h"
#include "harness/report/grid.h"
#include "harness/report/table.h"

#define PUBLISHED "results/published.tsv"

enum { GRAPH, SAFETY, PLANNER, QUANTITY, VALUE, SOURCE, ORIGIN, NOTE, N_COLUMNS };

/* Splits a line at its tabs, in place; false when there are not as many columns as there should
 * be. */
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

/* Whether a row's graph is the one meant: a zoo name as it stands, a file by its name up to the
 * first dot. */
static bool is_graph(const char *graph, const char *meant)
{
    const char *base = strrchr(graph, '/') != NULL ? strrchr(graph, '/') + 1 : graph;
    size_t n = strcspn(base, ".");

    if (strcmp(graph, meant) == 0)
        return true;
    return base[n] == '.' && strlen(meant) == n && memcmp(base, meant, n) == 0;
}

static bool is_meant(const mpl_record *row, char *const column[N_COLUMNS])
{
    const char *graph = mpl_record_get_text(row, MPL_FIELD_graph);
    char planner[120];

    return graph != NULL && is_graph(graph, column[GRAPH]) &&
           mpl_record_is(row, MPL_FIELD_safety, column[SAFETY]) &&
           strcmp(mpl_planner_label(row, planner), column[PLANNER]) == 0;
}

/* Our value of a quantity; false where the row has not got it, or there is no such quantity. */
static bool our_value(const mpl_record *row, const char *quantity, double *value)
{
    static const struct {
        const char *name;
        mpl_field field;
        double unit;
    } quantities[] = {
        {"planned_mib", MPL_FIELD_planned_bytes, 1048576},
        {"bound_mib", MPL_FIELD_bound_bytes, 1048576},
        {"naive_mib", MPL_FIELD_naive_bytes, 1048576},
        {"planned_mb", MPL_FIELD_planned_bytes, 1e6},
        {"naive_mb", MPL_FIELD_naive_bytes, 1e6},
        {"planned_kib", MPL_FIELD_planned_bytes, 1024},
    };
    uint64_t bytes = 0, bound = 0;

    for (size_t i = 0; i < sizeof quantities / sizeof *quantities; i++)
        if (strcmp(quantity, quantities[i].name) == 0) {
            bool known = mpl_record_get_int(row, quantities[i].field, &bytes);

            *value = (double)bytes / quantities[i].unit;
            return known;
        }
    if (strcmp(quantity, "over_bound") != 0 ||
        !mpl_record_get_int(row, MPL_FIELD_planned_bytes, &bytes) ||
        !mpl_record_get_int(row, MPL_FIELD_bound_bytes, &bound) || bound == 0)
        return false;
    *value = (double)bytes / (double)bound;
    return true;
}

static int by_value(const void *a, const void *b)
{
    const double *x = a, *y = b;

    return (*x > *y) - (*x < *y);
}

/* Ours of a line, one for each row that is meant, which differ by their seeds; ascending. */
static mpl_status our_values(mpl_ctx *ctx, const mpl_rows *rows, char *const column[N_COLUMNS],
                             double **value, uint32_t *n)
{
    mpl_status st = MPL_OK;

    MPL_TRY(mpl_new(ctx, *value, rows->n + 1));
    for (uint32_t i = 0; i < rows->n; i++)
        if (is_meant(rows->row[i], column))
            *n += our_value(rows->row[i], column[QUANTITY], &(*value)[*n]);
    qsort(*value, *n, sizeof **value, by_value);
out:
    return st;
}

static mpl_status add_line(mpl_ctx *ctx, const mpl_rows *rows, char *const column[N_COLUMNS],
                           mpl_grid *grid)
{
    mpl_status st = MPL_OK;
    double theirs = strtod(column[VALUE], NULL), percent, *ours = NULL;
    const char *dot = strchr(column[VALUE], '.');
    uint32_t n = 0;
    int digits = dot != NULL ? (int)strspn(dot + 1, "0123456789") : 0; /* as many as theirs has */

    MPL_TRY(our_values(ctx, rows, column, &ours, &n));
    if (n == 0)
        goto out; /* not among the rows given */
    percent = 100 * (ours[0] / theirs - 1);
    for (int i = GRAPH; i <= VALUE; i++)
        MPL_TRY(mpl_grid_cell(ctx, grid, "%s", column[i]));
    MPL_TRY(mpl_grid_cell(ctx, grid, "%.*f", digits, ours[0]));
    MPL_TRY(mpl_grid_cell(ctx, grid, "%.*f", digits, (ours[n / 2] + ours[(n - 1) / 2]) / 2));
    MPL_TRY(fabs(percent) < 0.005 ? mpl_grid_cell(ctx, grid, "0")
                                  : mpl_grid_cell(ctx, grid, "%+.2f %%", percent));
    for (int i = SOURCE; i <= NOTE; i++)
        MPL_TRY(mpl_grid_cell(ctx, grid, "%s", column[i]));
out:
    mpl_free(ctx, ours);
    return st;
}

/* Every line of the file: its columns, in turn. */
typedef mpl_status line_taker(mpl_ctx *ctx, char *const column[N_COLUMNS], void *arg);

static mpl_status read_lines(mpl_ctx *ctx, line_taker *take, void *arg)
{
    mpl_status st = MPL_OK;
    char *text = NULL, *line, *rest;
    size_t size;
    uint32_t number = 0;

    MPL_TRY(mpl_carried_read(ctx, PUBLISHED, &text, &size));
    for (line = text; line != NULL && *line != '\0'; line = rest) {
        char *column[N_COLUMNS];

        number++;
        rest = strchr(line, '\n');
        if (rest != NULL)
            *rest++ = '\0';
        if (*line == '#' || strncmp(line, "graph\t", 6) == 0)
            continue;
        if (!split(line, column))
            MPL_FAIL(ctx, MPL_EINPUT,
                     PUBLISHED ":%" PRIu32 ": %d columns with tabs between are needed", number,
                     N_COLUMNS);
        MPL_TRY(take(ctx, column, arg));
    }
out:
    mpl_free(ctx, text);
    return st;
}

typedef struct beside {
    const mpl_rows *rows;
    mpl_grid *grid;
} beside;

static mpl_status take_published(mpl_ctx *ctx, char *const column[N_COLUMNS], void *arg)
{
    beside *b = arg;

    return add_line(ctx, b->rows, column, b->grid);
}

mpl_status mpl_table_published(mpl_ctx *ctx, const mpl_table_kind *kind, const mpl_rows *rows,
                               FILE *to, bool tsv)
{
    static const char *const head[] = {"graph",  "safety", "planner",    "quantity",
                                       "theirs", "ours",   "our median", "difference",
                                       "source", "origin", "note"};
    mpl_status st = MPL_OK;
    mpl_grid grid = {.n_cols = sizeof head / sizeof *head};
    beside b = {rows, &grid};

    MPL_TRY(mpl_grid_head(ctx, &grid, head));
    MPL_TRY(read_lines(ctx, take_published, &b));
    mpl_grid_print_titled(to, &grid, kind->about, tsv);
out:
    mpl_grid_fini(ctx, &grid);
    return st;
}

/* ---- a line a graph: what each planner needs, and what others say of whole programs ---- */

enum { MOST_PLANNERS = 32, N_THEIRS = 4 };

static const char *const theirs[N_THEIRS] = {"process_mb", "process_planned_mb", "seconds",
                                             "seconds_planned"};

/* What is published of one graph's whole program. */
typedef struct program {
    const char *graph;
    char value[N_THEIRS][32];
} program;

static mpl_status take_program(mpl_ctx *ctx, char *const column[N_COLUMNS], void *arg)
{
    program *p = arg;

    (void)ctx;
    for (int i = 0; i < N_THEIRS; i++)
        if (strcmp(column[PLANNER], "process") == 0 && strcmp(column[QUANTITY], theirs[i]) == 0 &&
            is_graph(p->graph, column[GRAPH]))
            snprintf(p->value[i], sizeof p->value[i], "%s", column[VALUE]);
    return MPL_OK;
}

static const char *graph_of(const mpl_record *row)
{
    const char *graph = mpl_record_get_text(row, MPL_FIELD_graph);

    return graph != NULL ? graph : "-";
}

static mpl_status mega_cell(mpl_ctx *ctx, mpl_grid *grid, const mpl_record *row, mpl_field field)
{
    uint64_t bytes = 0;

    if (row == NULL || !mpl_record_get_int(row, field, &bytes))
        return mpl_grid_cell(ctx, grid, "-");
    return mpl_grid_cell(ctx, grid, "%.2f", (double)bytes / 1e6);
}

/* The graph's row of a planner; NULL: none. */
static const mpl_record *row_of(const mpl_rows *rows, const char *graph, const char *planner)
{
    char label[120];

    for (uint32_t i = 0; i < rows->n; i++)
        if (strcmp(graph_of(rows->row[i]), graph) == 0 &&
            strcmp(mpl_planner_label(rows->row[i], label), planner) == 0)
            return rows->row[i];
    return NULL;
}

/* The labels of all planners but `none`, in the order of the rows. */
static uint32_t list_planners(const mpl_rows *rows, char planner[MOST_PLANNERS][120])
{
    uint32_t n = 0;
    char label[120];

    for (uint32_t i = 0; i < rows->n && n < MOST_PLANNERS; i++) {
        uint32_t k = 0;

        mpl_planner_label(rows->row[i], label);
        while (k < n && strcmp(planner[k], label) != 0)
            k++;
        if (k == n && strcmp(label, "none") != 0)
            memcpy(planner[n++], label, sizeof label);
    }
    return n;
}

static mpl_status ms_cell(mpl_ctx *ctx, mpl_grid *grid, const mpl_record *row)
{
    int64_t ns = 0;
    bool known = row != NULL && mpl_record_median(row, MPL_FIELD_run_ns, &ns);

    return mpl_grid_ms(ctx, grid, known, ns);
}

static mpl_status graph_line(mpl_ctx *ctx, const mpl_rows *rows, const char *graph,
                             uint32_t n_planners, char planner[MOST_PLANNERS][120], mpl_grid *grid)
{
    mpl_status st = MPL_OK;
    const mpl_record *alone = row_of(rows, graph, "none"), *best = NULL;
    program p = {.graph = graph, .value = {"-", "-", "-", "-"}};
    uint64_t least = UINT64_MAX, bytes;

    MPL_TRY(mpl_grid_cell(ctx, grid, "%s", graph));
    MPL_TRY(mega_cell(ctx, grid, alone, MPL_FIELD_naive_bytes));
    for (uint32_t k = 0; k < n_planners; k++) {
        const mpl_record *row = row_of(rows, graph, planner[k]);

        MPL_TRY(mega_cell(ctx, grid, row, MPL_FIELD_planned_bytes));
        if (row != NULL && mpl_record_get_int(row, MPL_FIELD_planned_bytes, &bytes) &&
            bytes < least) {
            least = bytes;
            best = row;
        }
    }
    MPL_TRY(mega_cell(ctx, grid, best, MPL_FIELD_planned_bytes));
    MPL_TRY(mega_cell(ctx, grid, best, MPL_FIELD_bound_bytes));
    MPL_TRY(ms_cell(ctx, grid, alone));
    MPL_TRY(ms_cell(ctx, grid, best));
    MPL_TRY(read_lines(ctx, take_program, &p));
    for (int i = 0; i < N_THEIRS; i++)
        MPL_TRY(mpl_grid_cell(ctx, grid, "%s", p.value[i]));
out:
    return st;
}

mpl_status mpl_table_networks(mpl_ctx *ctx, const mpl_table_kind *kind, const mpl_rows *rows,
                              FILE *to, bool tsv)
{
    static const char *const behind[] = {"best",
                                         "bound",
                                         MPL_TIMED "run ms alone",
                                         MPL_TIMED "run ms planned",
                                         "their process",
                                         "their process planned",
                                         "their s",
                                         "their s planned"};
    mpl_status st = MPL_OK;
    char planner[MOST_PLANNERS][120];
    uint32_t n_planners = list_planners(rows, planner);
    mpl_grid grid = {.n_cols = 2 + n_planners + sizeof behind / sizeof *behind};

    MPL_TRY(mpl_grid_cell(ctx, &grid, "graph"));
    MPL_TRY(mpl_grid_cell(ctx, &grid, "all outputs"));
    for (uint32_t k = 0; k < n_planners; k++)
        MPL_TRY(mpl_grid_cell(ctx, &grid, "%s", planner[k]));
    for (size_t i = 0; i < sizeof behind / sizeof *behind; i++)
        MPL_TRY(mpl_grid_cell(ctx, &grid, "%s", behind[i]));
    for (uint32_t i = 0; i < rows->n; i++) {
        uint32_t k = 0;

        while (strcmp(graph_of(rows->row[k]), graph_of(rows->row[i])) != 0)
            k++;
        if (k == i)
            MPL_TRY(graph_line(ctx, rows, graph_of(rows->row[i]), n_planners, planner, &grid));
    }
    mpl_grid_print_titled(to, &grid, kind->about, tsv);
out:
    mpl_grid_fini(ctx, &grid);
    return st;
}
