/* table_savings.c -- a line a graph, a column a switch: how much less memory the best plan needs
 * with it than without. See table.h. */
#include "harness/report/cells.h"
#include "harness/report/table.h"

/* What a row is asked to show; BASE is a row of no switch, MANY one of several. */
typedef enum turn {
    BASE,
    IN_PLACE,
    VIEWS,
    CONCAT,
    ORDER,
    OPTIMISE,
    RECOMPUTE,
    PARALLEL,
    MANY,
    N_TURNS
} turn;

static bool is_off(const mpl_record *row, mpl_field field)
{
    bool on = true;

    mpl_record_get_bool(row, field, &on);
    return !on;
}

/* Concats are copied where views or orders are switched, too: that alone counts only where nothing
 * else does. */
static turn turn_of(const mpl_record *row)
{
    const bool on[N_TURNS] = {
        [IN_PLACE] = is_off(row, MPL_FIELD_in_place),
        [VIEWS] = is_off(row, MPL_FIELD_views),
        [ORDER] = strcmp(mpl_record_text_or(row, MPL_FIELD_order, "given"), "given") != 0,
        [OPTIMISE] = !mpl_record_is_null(row, MPL_FIELD_optimise),
        [RECOMPUTE] = !mpl_record_is_null(row, MPL_FIELD_recompute),
        [PARALLEL] = strcmp(mpl_record_text_or(row, MPL_FIELD_safety, "serial"), "parallel") == 0,
    };
    turn found = BASE;

    for (turn t = IN_PLACE; t < N_TURNS; t++)
        if (on[t])
            found = found == BASE ? t : MANY;
    return found == BASE && strcmp(mpl_record_text_or(row, MPL_FIELD_concat, "auto"), "copy") == 0
               ? CONCAT
               : found;
}

/* The least of any planner for a graph under each switch; false: not planned so. */
typedef struct line {
    uint64_t naive, planned[N_TURNS];
    uint64_t copied[2]; /* in a run, concats made inside their results, and copied */
    bool ran[2];
    bool known[N_TURNS];
} line;

static line line_of(const mpl_rows *rows, const char *graph)
{
    line l = {0};

    for (uint32_t i = 0; i < rows->n; i++) {
        const mpl_record *row = rows->row[i];
        turn t = turn_of(row);
        uint64_t planned = 0;
        char text[200];

        if (mpl_record_is(row, MPL_FIELD_concat, "share"))
            continue; /* auto's, or worse */
        if (strcmp(mpl_graph_label(row, text), graph) != 0 ||
            !mpl_record_is(row, MPL_FIELD_status, "ok") ||
            !mpl_record_get_int(row, MPL_FIELD_planned_bytes, &planned))
            continue;
        if (!l.known[t] || planned < l.planned[t])
            l.planned[t] = planned;
        l.known[t] = true;
        if (t == BASE)
            mpl_record_get_int(row, MPL_FIELD_naive_bytes, &l.naive);
        if (t == BASE || t == CONCAT)
            l.ran[t == CONCAT] |=
                mpl_record_get_int(row, MPL_FIELD_copied_bytes, &l.copied[t == CONCAT]);
    }
    return l;
}

/* How much less `with` is than `without`, as a part of that. */
static mpl_status less_cell(mpl_ctx *ctx, mpl_grid *grid, bool known, uint64_t without,
                            uint64_t with)
{
    double less = known && without > 0 ? 1 - (double)with / (double)without : 0;

    if (less < 0 && less > -0.0005)
        less = 0; /* not "-0.0" */
    return known ? mpl_grid_cell(ctx, grid, without == with ? "0" : "%.1f %%", less * 100)
                 : mpl_grid_cell(ctx, grid, "-");
}

static mpl_status add_line(mpl_ctx *ctx, mpl_grid *grid, const char *graph, const line *l)
{
    mpl_status st = MPL_OK;
    uint64_t base = l->planned[BASE];

    MPL_TRY(mpl_grid_cell(ctx, grid, "%s", graph));
    MPL_TRY(mpl_grid_cell(ctx, grid, "%s",
                          strstr(graph, "mode=train") != NULL ? "training" : "inference"));
    MPL_TRY(mpl_grid_mib(ctx, grid, true, l->naive));
    MPL_TRY(mpl_grid_mib(ctx, grid, true, base));
    MPL_TRY(less_cell(ctx, grid, true, l->naive, base));
    for (turn t = IN_PLACE; t <= CONCAT; t++) /* on from the outset: their rows are without */
        MPL_TRY(less_cell(ctx, grid, l->known[t], l->planned[t], base));
    MPL_TRY(mpl_grid_mib(ctx, grid, l->ran[0] && l->ran[1] && l->copied[1] >= l->copied[0],
                         l->copied[1] - l->copied[0]));
    for (turn t = ORDER; t <= RECOMPUTE; t++)
        MPL_TRY(less_cell(ctx, grid, l->known[t], base, l->planned[t]));
    MPL_TRY(less_cell(ctx, grid, l->known[MANY], base, l->planned[MANY]));
    MPL_TRY(l->known[PARALLEL] ? mpl_grid_gap(ctx, grid, true, l->planned[PARALLEL], base)
                               : mpl_grid_cell(ctx, grid, "-"));
out:
    return st;
}

/* The line of a graph stands where its first row does. */
static mpl_status first_line(mpl_ctx *ctx, const mpl_rows *rows, const mpl_record *row,
                             mpl_grid *grid)
{
    char graph[200], other[200];
    uint32_t k = 0;
    line l;

    mpl_graph_label(row, graph);
    while (rows->row[k] != row && strcmp(mpl_graph_label(rows->row[k], other), graph) != 0)
        k++;
    if (rows->row[k] != row)
        return MPL_OK;
    l = line_of(rows, graph);
    return l.known[BASE] ? add_line(ctx, grid, graph, &l) : MPL_OK;
}

mpl_status mpl_table_savings(mpl_ctx *ctx, const mpl_table_kind *kind, const mpl_rows *rows,
                             FILE *to, bool tsv)
{
    static const char *const head[] = {
        "graph",   "kind",    "nothing shared MiB", "planned MiB", "sharing", "in place",
        "views",   "concat",  "copies less MiB",    "order",       "fusion",  "again",
        "several", "parallel"};

    return mpl_table_lines(ctx, kind, rows, to, tsv, sizeof head / sizeof *head, head, first_line);
}

/* ---- a line a graph, a column for each choice of passes ---- */

static mpl_status passes_cells(mpl_ctx *ctx, const mpl_rows *rows, const mpl_record *graph,
                               const mpl_record *const *choice, uint32_t n, mpl_grid *grid)
{
    mpl_status st = MPL_OK;
    char text[200], other[200];

    MPL_TRY(mpl_grid_cell(ctx, grid, "%s", mpl_graph_label(graph, text)));
    for (uint32_t k = 0; k < n; k++) {
        uint64_t planned = 0, least = UINT64_MAX;

        for (uint32_t i = 0; i < rows->n; i++)
            if (strcmp(mpl_graph_label(rows->row[i], other), text) == 0 &&
                mpl_record_equal(rows->row[i], choice[k], MPL_FIELD_optimise) &&
                mpl_record_get_int(rows->row[i], MPL_FIELD_planned_bytes, &planned))
                least = mpl_min_u64(least, planned);
        MPL_TRY(mpl_grid_mib(ctx, grid, least < UINT64_MAX, least));
    }
out:
    return st;
}

mpl_status mpl_table_passes(mpl_ctx *ctx, const mpl_table_kind *kind, const mpl_rows *rows,
                            FILE *to, bool tsv)
{
    enum { MOST_CHOICES = 16 };
    static const mpl_field field = MPL_FIELD_optimise, graph = MPL_FIELD_graph;
    mpl_status st = MPL_OK;
    const mpl_record *choice[MOST_CHOICES];
    uint32_t n = 0;
    mpl_grid grid = {0};

    for (uint32_t i = 0; i < rows->n && n < MOST_CHOICES; i++)
        if (mpl_rows_first(rows, rows->row[i], 1, &field) == rows->row[i])
            choice[n++] = rows->row[i];
    grid.n_cols = 1 + n;
    MPL_TRY(mpl_grid_cell(ctx, &grid, "graph"));
    for (uint32_t k = 0; k < n; k++)
        MPL_TRY(
            mpl_grid_cell(ctx, &grid, "%s MiB", mpl_record_text_or(choice[k], field, "as it is")));
    for (uint32_t i = 0; i < rows->n; i++)
        if (mpl_rows_first(rows, rows->row[i], 1, &graph) == rows->row[i])
            MPL_TRY(passes_cells(ctx, rows, rows->row[i], choice, n, &grid));
    mpl_grid_print_titled(to, &grid, kind->about, tsv);
out:
    mpl_grid_fini(ctx, &grid);
    return st;
}
