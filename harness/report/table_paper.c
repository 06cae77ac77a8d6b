/* table_paper.c -- tables over whole suites: planners summed up, the sides of a switch, plans
 * beside what runs took. See table.h. */
#include <stdlib.h>

#include "harness/report/cells.h"
#include "harness/report/table.h"

static bool is_ok(const mpl_record *row)
{
    const char *status = mpl_record_get_text(row, MPL_FIELD_status);

    return status == NULL || strcmp(status, "ok") == 0;
}

static bool same_planner(const mpl_record *a, const mpl_record *b)
{
    char x[120], y[120];

    return strcmp(mpl_planner_label(a, x), mpl_planner_label(b, y)) == 0;
}

static bool same_graph(const mpl_record *a, const mpl_record *b)
{
    char x[200], y[200];

    return strcmp(mpl_graph_label(a, x), mpl_graph_label(b, y)) == 0;
}

/* ---- a line a planner ---- */

typedef struct summary {
    uint32_t rows, graphs, at_bound;
    double sum, most; /* of planned / bound */
    const mpl_record *where;
    uint64_t plan_ns;
} summary;

static void add_row(const mpl_record *row, summary *s)
{
    uint64_t planned = 0, bound = 0, ns = 0;
    double ratio;

    s->rows++;
    if (!is_ok(row) || !mpl_record_get_int(row, MPL_FIELD_planned_bytes, &planned) ||
        !mpl_record_get_int(row, MPL_FIELD_bound_bytes, &bound) || bound == 0)
        return;
    ratio = (double)planned / (double)bound;
    s->graphs++;
    s->at_bound += planned == bound;
    s->sum += ratio;
    if (s->where == NULL || ratio > s->most)
        s->most = ratio, s->where = row;
    if (mpl_record_get_int(row, MPL_FIELD_plan_ns, &ns))
        s->plan_ns += ns;
}

mpl_status mpl_table_summary(mpl_ctx *ctx, const mpl_table_kind *kind, const mpl_rows *rows,
                             FILE *to, bool tsv)
{
    static const char *const head[] = {"planner",          "graphs",           "at the bound",
                                       "mean above bound", "most above bound", "on",
                                       MPL_TIMED "plan ms"};
    mpl_status st = MPL_OK;
    mpl_grid grid = {.n_cols = sizeof head / sizeof *head};

    MPL_TRY(mpl_grid_head(ctx, &grid, head));
    for (uint32_t i = 0; i < rows->n; i++) {
        summary s = {0};
        char text[200];
        bool first = true;

        for (uint32_t k = 0; k < i && first; k++)
            first = !same_planner(rows->row[k], rows->row[i]);
        for (uint32_t k = i; first && k < rows->n; k++)
            if (same_planner(rows->row[k], rows->row[i]))
                add_row(rows->row[k], &s);
        if (!first || s.graphs == 0) /* not for this safety, or not built in */
            continue;
        MPL_TRY(mpl_grid_cell(ctx, &grid, "%s", mpl_planner_label(rows->row[i], text)));
        MPL_TRY(s.graphs == s.rows
                    ? mpl_grid_cell(ctx, &grid, "%" PRIu32, s.graphs)
                    : mpl_grid_cell(ctx, &grid, "%" PRIu32 " of %" PRIu32, s.graphs, s.rows));
        MPL_TRY(mpl_grid_cell(ctx, &grid, "%" PRIu32, s.at_bound));
        MPL_TRY(mpl_grid_cell(ctx, &grid, "%.2f %%", (s.sum / s.graphs - 1) * 100));
        MPL_TRY(mpl_grid_cell(ctx, &grid, "%.2f %%", (s.most - 1) * 100));
        MPL_TRY(mpl_grid_cell(ctx, &grid, "%s",
                              s.at_bound == s.graphs ? "-" : mpl_graph_label(s.where, text)));
        MPL_TRY(mpl_grid_ms(ctx, &grid, true, (int64_t)s.plan_ns));
    }
    mpl_grid_print_titled(to, &grid, kind->about, tsv);
out:
    mpl_grid_fini(ctx, &grid);
    return st;
}

/* ---- a line a graph, the sides of one switch ---- */

/* "serial", "on": the side that a row is on; false for one that has none. */
static bool side_of(const mpl_record *row, mpl_field field, const char **side)
{
    bool on = false;

    if (mpl_field_table[field].kind == MPL_KIND_BOOL) {
        *side = mpl_record_get_bool(row, field, &on) ? (on ? "on" : "off") : NULL;
    } else {
        *side = mpl_record_get_text(row, field);
    }
    return *side != NULL;
}

typedef struct best {
    bool known;
    uint64_t planned, bound; /* the least of any planner; the highest bound */
    const mpl_record *by;
} best;

static best best_of(const mpl_rows *rows, const mpl_record *graph, mpl_field field,
                    const char *side)
{
    best b = {0};

    for (uint32_t i = 0; i < rows->n; i++) {
        const mpl_record *row = rows->row[i];
        const char *its = NULL;
        uint64_t planned = 0, bound = 0;

        if (!is_ok(row) || !same_graph(row, graph) || !side_of(row, field, &its) ||
            strcmp(its, side) != 0 || !mpl_record_get_int(row, MPL_FIELD_planned_bytes, &planned) ||
            !mpl_record_get_int(row, MPL_FIELD_bound_bytes, &bound))
            continue;
        if (!b.known || planned < b.planned)
            b.planned = planned, b.by = row;
        b.bound = mpl_max_u64(b.bound, bound);
        b.known = true;
    }
    return b;
}

/* The two sides, in the order of their first rows. */
static uint32_t sides(const mpl_rows *rows, mpl_field field, const char *side[2])
{
    uint32_t n = 0;
    const char *its = NULL;

    for (uint32_t i = 0; n < 2 && i < rows->n; i++)
        if (side_of(rows->row[i], field, &its) && (n == 0 || strcmp(its, side[0]) != 0))
            side[n++] = its;
    return n;
}

static mpl_status sides_cells(mpl_ctx *ctx, const best *a, const best *b, mpl_grid *grid)
{
    mpl_status st = MPL_OK;
    char label[120];

    for (int k = 0; k < 2; k++) {
        const best *s = k == 0 ? a : b;

        MPL_TRY(mpl_grid_mib(ctx, grid, s->known, s->bound));
        MPL_TRY(mpl_grid_mib(ctx, grid, s->known, s->planned));
        MPL_TRY(mpl_grid_cell(ctx, grid, "%s", s->known ? mpl_planner_label(s->by, label) : "-"));
    }
    MPL_TRY(a->known && b->known && a->planned > 0
                ? mpl_grid_cell(ctx, grid, "%.3f", (double)b->planned / (double)a->planned)
                : mpl_grid_cell(ctx, grid, "-"));
out:
    return st;
}

mpl_status mpl_table_sides(mpl_ctx *ctx, const mpl_table_kind *kind, const mpl_rows *rows, FILE *to,
                           bool tsv)
{
    mpl_status st = MPL_OK;
    mpl_grid grid = {.n_cols = 8};
    const char *side[2] = {NULL, NULL};
    char text[200];

    if (sides(rows, kind->field, side) < 2)
        MPL_FAIL(ctx, MPL_EINPUT, "table %s: the rows have one side of %s only", kind->name,
                 mpl_field_table[kind->field].name);
    MPL_TRY(mpl_grid_cell(ctx, &grid, "graph"));
    for (int k = 0; k < 2; k++) {
        MPL_TRY(mpl_grid_cell(ctx, &grid, "%s bound MiB", side[k]));
        MPL_TRY(mpl_grid_cell(ctx, &grid, "%s best MiB", side[k]));
        MPL_TRY(mpl_grid_cell(ctx, &grid, "%s by", side[k]));
    }
    MPL_TRY(mpl_grid_cell(ctx, &grid, "%s over %s", side[1], side[0]));
    for (uint32_t i = 0; i < rows->n; i++) {
        bool first = true;
        best a, b;

        for (uint32_t k = 0; k < i && first; k++)
            first = !same_graph(rows->row[k], rows->row[i]);
        if (!first)
            continue;
        a = best_of(rows, rows->row[i], kind->field, side[0]);
        b = best_of(rows, rows->row[i], kind->field, side[1]);
        MPL_TRY(mpl_grid_cell(ctx, &grid, "%s", mpl_graph_label(rows->row[i], text)));
        MPL_TRY(sides_cells(ctx, &a, &b, &grid));
    }
    mpl_grid_print_titled(to, &grid, kind->about, tsv);
out:
    mpl_grid_fini(ctx, &grid);
    return st;
}

/* ---- a line a run ---- */

/* The row of the same graph that shares nothing. */
static const mpl_record *unshared(const mpl_rows *rows, const mpl_record *row)
{
    for (uint32_t i = 0; i < rows->n; i++) {
        const char *planner = mpl_record_get_text(rows->row[i], MPL_FIELD_planner);

        if (planner != NULL && strcmp(planner, "none") == 0 && same_graph(rows->row[i], row))
            return rows->row[i];
    }
    return NULL;
}

static mpl_status executed_cells(mpl_ctx *ctx, const mpl_rows *rows, const mpl_record *row,
                                 mpl_grid *grid)
{
    mpl_status st = MPL_OK;
    const mpl_record *none = unshared(rows, row);
    uint64_t planned = 0, measured = 0;
    int64_t ns = 0, none_ns = 0;
    char text[200];
    const char *outputs = mpl_record_get_text(row, MPL_FIELD_outputs);
    bool has_planned = mpl_record_get_int(row, MPL_FIELD_planned_bytes, &planned);
    bool has_measured = mpl_record_get_int(row, MPL_FIELD_measured_bytes, &measured);
    bool has_ns = mpl_record_median(row, MPL_FIELD_run_ns, &ns);
    bool has_none =
        none != NULL && mpl_record_median(none, MPL_FIELD_run_ns, &none_ns) && none_ns > 0;

    MPL_TRY(mpl_grid_cell(ctx, grid, "%s", mpl_graph_label(row, text)));
    MPL_TRY(mpl_grid_cell(ctx, grid, "%s", mpl_planner_label(row, text)));
    MPL_TRY(mpl_grid_mib(ctx, grid, has_planned, planned));
    MPL_TRY(mpl_grid_mib(ctx, grid, has_measured, measured));
    MPL_TRY(mpl_grid_gap(ctx, grid, has_planned && has_measured, measured, planned));
    MPL_TRY(mpl_grid_cell(ctx, grid, "%s", outputs != NULL ? outputs : "-"));
    MPL_TRY(mpl_grid_ms(ctx, grid, has_ns, ns));
    MPL_TRY(has_ns && has_none ? mpl_grid_cell(ctx, grid, "%.2f", (double)ns / (double)none_ns)
                               : mpl_grid_cell(ctx, grid, "-"));
out:
    return st;
}

/* ---- a line a graph, the arena beside each malloc that was there ---- */

/* The rows of graphs that are alike in all but what malloc was. */
static const mpl_field same_run[] = {MPL_FIELD_graph, MPL_FIELD_planner, MPL_FIELD_backend,
                                     MPL_FIELD_threads};

static bool same_malloc(const mpl_record *a, const mpl_record *b)
{
    return mpl_record_equal(a, b, MPL_FIELD_malloc_by);
}

static mpl_status malloc_cells(mpl_ctx *ctx, const mpl_rows *rows, const mpl_record *row,
                               const mpl_record *const *malloc, uint32_t n, mpl_grid *grid)
{
    mpl_status st = MPL_OK;
    int64_t ns = 0, malloc_ns = 0;
    bool has_ns = mpl_record_median(row, MPL_FIELD_run_ns, &ns);
    bool has_malloc = mpl_record_median(row, MPL_FIELD_malloc_ns, &malloc_ns);
    char text[200];

    MPL_TRY(mpl_grid_cell(ctx, grid, "%s", mpl_graph_label(row, text)));
    MPL_TRY(mpl_mib_cell(ctx, grid, row, MPL_FIELD_planned_bytes));
    MPL_TRY(mpl_mib_cell(ctx, grid, row, MPL_FIELD_malloc_bytes));
    MPL_TRY(mpl_grid_ms(ctx, grid, has_ns, ns));
    MPL_TRY(mpl_grid_ms(ctx, grid, has_malloc, malloc_ns));
    for (uint32_t k = 0; k < n; k++) {
        double ratio = 0;
        bool known = false;

        for (uint32_t i = 0; i < rows->n && !known; i++)
            known =
                same_malloc(rows->row[i], malloc[k]) &&
                mpl_rows_alike(rows->row[i], row, sizeof same_run / sizeof *same_run, same_run) &&
                mpl_record_median_ratio(rows->row[i], MPL_FIELD_run_ns, MPL_FIELD_malloc_ns,
                                        &ratio);
        MPL_TRY(known ? mpl_grid_cell(ctx, grid, "%.3f", ratio) : mpl_grid_cell(ctx, grid, "-"));
    }
out:
    return st;
}

static mpl_status malloc_head(mpl_ctx *ctx, const mpl_record *const *malloc, uint32_t n,
                              mpl_grid *grid)
{
    static const char *const head[] = {"graph", "planned MiB", "malloc MiB", MPL_TIMED "arena ms",
                                       MPL_TIMED "malloc ms"};
    mpl_status st = MPL_OK;

    for (size_t i = 0; i < sizeof head / sizeof *head; i++)
        MPL_TRY(mpl_grid_cell(ctx, grid, "%s", head[i]));
    for (uint32_t k = 0; k < n; k++) {
        const char *by = mpl_record_get_text(malloc[k], MPL_FIELD_malloc_by);

        MPL_TRY(mpl_grid_cell(ctx, grid, MPL_TIMED "arena over %s", by != NULL ? by : "malloc"));
    }
out:
    return st;
}

mpl_status mpl_table_malloc(mpl_ctx *ctx, const mpl_table_kind *kind, const mpl_rows *rows,
                            FILE *to, bool tsv)
{
    enum { MOST_MALLOCS = 8 };
    mpl_status st = MPL_OK;
    const mpl_record *malloc[MOST_MALLOCS];
    uint32_t n = 0;
    mpl_grid grid = {0};

    for (uint32_t i = 0; i < rows->n && n < MOST_MALLOCS; i++) {
        uint32_t k = 0;

        while (k < n && !same_malloc(malloc[k], rows->row[i]))
            k++;
        if (k == n)
            malloc[n++] = rows->row[i];
    }
    grid.n_cols = 5 + n;
    MPL_TRY(malloc_head(ctx, malloc, n, &grid));
    for (uint32_t i = 0; i < rows->n; i++)
        if (mpl_rows_first(rows, rows->row[i], sizeof same_run / sizeof *same_run, same_run) ==
            rows->row[i])
            MPL_TRY(malloc_cells(ctx, rows, rows->row[i], malloc, n, &grid));
    mpl_grid_print_titled(to, &grid, kind->about, tsv);
out:
    mpl_grid_fini(ctx, &grid);
    return st;
}

mpl_status mpl_table_executed(mpl_ctx *ctx, const mpl_table_kind *kind, const mpl_rows *rows,
                              FILE *to, bool tsv)
{
    static const char *const head[] = {
        "graph",      "planner", "planned MiB",      "measured MiB",
        "difference", "outputs", MPL_TIMED "run ms", MPL_TIMED "beside none"};

    return mpl_table_lines(ctx, kind, rows, to, tsv, sizeof head / sizeof *head, head,
                           executed_cells);
}
