/* table.c -- tables made from rows. See table.h. */
#include "harness/report/table.h"

#include <stdlib.h>

#include "graphs/core/size.h"
#include "harness/report/cells.h"

/* ---- one table a graph ---- */

/* Whether a field may differ within one table: what the rows of a group have in common is their
 * problem and its bound. */
static bool is_of_planner(mpl_field field)
{
    static const mpl_field fields[] = {MPL_FIELD_planner, MPL_FIELD_params, MPL_FIELD_seed,
                                       MPL_FIELD_budget, MPL_FIELD_threads};

    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++)
        if (fields[i] == field)
            return true;
    return !mpl_field_table[field].key;
}

static bool same_group(const mpl_record *a, const mpl_record *b)
{
    for (int i = 0; i < MPL_N_FIELDS; i++)
        if (!is_of_planner((mpl_field)i) && !mpl_record_equal(a, b, (mpl_field)i))
            return false;
    return true;
}

/* Of the groups of one graph, backend and safety: what this one has and another has not. */
static void print_apart(const mpl_rows *rows, const mpl_record *r, const char *before, FILE *to)
{
    static const mpl_field named[] = {MPL_FIELD_graph, MPL_FIELD_safety, MPL_FIELD_backend};
    enum { N_NAMED = sizeof named / sizeof *named };

    for (int i = 0; i < MPL_N_FIELDS; i++) {
        bool apart = false;
        char text[80];

        for (uint32_t k = 0; k < rows->n && !apart && !is_of_planner((mpl_field)i); k++)
            apart = mpl_rows_alike(r, rows->row[k], N_NAMED, named) &&
                    !mpl_record_equal(r, rows->row[k], (mpl_field)i);
        if (!apart)
            continue;
        mpl_record_show(r, (mpl_field)i, text, sizeof text);
        fprintf(to, "%s%s %s", before, mpl_field_table[i].name, text);
    }
}

static mpl_status run_cells(mpl_ctx *ctx, const mpl_record *row, mpl_grid *grid)
{
    mpl_status st = MPL_OK;
    char label[120];
    uint64_t planned = 0, packed = 0, bound = 0, measured = 0, plan_ns = 0;
    int64_t run_ns = 0;
    bool verified = false, ok = strcmp(mpl_record_text_or(row, MPL_FIELD_status, "ok"), "ok") == 0;
    bool has_planned = mpl_record_get_int(row, MPL_FIELD_planned_bytes, &planned);
    bool has_packed = mpl_record_get_int(row, MPL_FIELD_packed_bytes, &packed);
    bool has_bound = mpl_record_get_int(row, MPL_FIELD_bound_bytes, &bound);
    bool has_plan_ns = mpl_record_get_int(row, MPL_FIELD_plan_ns, &plan_ns);
    bool has_run_ns = mpl_record_median(row, MPL_FIELD_run_ns, &run_ns);
    bool has_measured = mpl_record_get_int(row, MPL_FIELD_measured_bytes, &measured);

    mpl_record_get_bool(row, MPL_FIELD_verified, &verified);
    MPL_TRY(mpl_grid_cell(ctx, grid, "%s", mpl_planner_label(row, label)));
    MPL_TRY(mpl_grid_mib(ctx, grid, has_planned, planned));
    MPL_TRY(mpl_grid_mib(ctx, grid, has_packed, packed));
    MPL_TRY(mpl_grid_gap(ctx, grid, has_planned && has_bound, planned, bound));
    MPL_TRY(mpl_grid_ms(ctx, grid, has_plan_ns, (int64_t)plan_ns));
    MPL_TRY(mpl_grid_ms(ctx, grid, has_run_ns, run_ns));
    MPL_TRY(mpl_grid_mib(ctx, grid, has_measured, measured));
    MPL_TRY(mpl_grid_cell(ctx, grid, "%s",
                          verified ? "yes"
                          : ok     ? "no"
                                   : mpl_record_text_or(row, MPL_FIELD_status, "-")));
    MPL_TRY(mpl_grid_cell(ctx, grid, "%s", mpl_record_text_or(row, MPL_FIELD_outputs, "-")));
out:
    return st;
}

static mpl_status print_group(mpl_ctx *ctx, const mpl_rows *rows, uint32_t first, FILE *to,
                              bool tsv)
{
    static const char *const head[] = {"planner",      "planned MiB", "packed MiB",
                                       "gap to bound", "plan ms",     "run ms",
                                       "measured MiB", "verified",    "outputs"};
    mpl_status st = MPL_OK;
    mpl_grid grid = {.n_cols = sizeof head / sizeof *head};
    const mpl_record *r = rows->row[first];
    uint64_t bound = 0, naive = 0;

    MPL_TRY(mpl_grid_head(ctx, &grid, head));
    for (uint32_t i = first; i < rows->n; i++) {
        if (!same_group(r, rows->row[i]))
            continue;
        MPL_TRY(run_cells(ctx, rows->row[i], &grid));
        mpl_record_get_int(rows->row[i], MPL_FIELD_bound_bytes, &bound);
        mpl_record_get_int(rows->row[i], MPL_FIELD_naive_bytes, &naive);
    }
    fprintf(to, tsv ? "# %s\t%s\t%s" : "\n### %s, %s, %s",
            mpl_record_text_or(r, MPL_FIELD_graph, "-"),
            mpl_record_text_or(r, MPL_FIELD_safety, "-"),
            mpl_record_text_or(r, MPL_FIELD_backend, "planned only"));
    print_apart(rows, r, tsv ? "\t" : ", ", to);
    if (naive > 0 && !tsv)
        fprintf(to, ": bound %s, nothing shared %s", mpl_sized(bound).text, mpl_sized(naive).text);
    fputs(tsv ? "\n" : "\n\n", to);
    mpl_grid_print(to, &grid, tsv);
out:
    mpl_grid_fini(ctx, &grid);
    return st;
}

static mpl_status print_runs(mpl_ctx *ctx, const mpl_table_kind *kind, const mpl_rows *rows,
                             FILE *to, bool tsv)
{
    mpl_status st = MPL_OK;

    (void)kind;
    for (uint32_t i = 0; i < rows->n; i++) {
        bool seen = false;

        for (uint32_t k = 0; k < i && !seen; k++)
            seen = same_group(rows->row[k], rows->row[i]);
        if (!seen)
            MPL_TRY(print_group(ctx, rows, i, to, tsv));
    }
out:
    return st;
}

/* ---- planners x graphs ---- */

/* "resnet50", and what else tells its column apart; text holds 200 bytes. */
static const char *graph_label(const mpl_record *row, char *text)
{
    size_t n = strlen(mpl_graph_label(row, text));
    const char *backend = mpl_record_get_text(row, MPL_FIELD_backend);
    bool serial = strcmp(mpl_record_text_or(row, MPL_FIELD_safety, "serial"), "serial") == 0;

    snprintf(text + n, 200 - n, "%s%s%s", backend != NULL ? " " : "",
             backend != NULL ? backend : "", serial ? "" : " parallel");
    return text;
}

static mpl_status matrix_cell(mpl_ctx *ctx, const mpl_record *row, mpl_field field, mpl_grid *grid)
{
    uint64_t value = 0, planned = 0;
    int64_t median = 0;
    bool known = row != NULL && mpl_record_get_int(row, field, &value), has_median, has_planned;

    if (row == NULL)
        return mpl_grid_cell(ctx, grid, "-");
    has_median = mpl_record_median(row, field, &median);
    has_planned = mpl_record_get_int(row, MPL_FIELD_planned_bytes, &planned);
    if (field == MPL_FIELD_bound_bytes)
        return mpl_grid_gap(ctx, grid, known && has_planned, planned, value);
    if (field == MPL_FIELD_run_ns)
        return mpl_grid_ms(ctx, grid, has_median, median);
    if (field == MPL_FIELD_plan_ns)
        return mpl_grid_ms(ctx, grid, known, (int64_t)value);
    return mpl_grid_mib(ctx, grid, known, value);
}

/* The rows that begin a new label, in order. labels: 200 bytes each. */
static mpl_status distinct(mpl_ctx *ctx, const mpl_rows *rows,
                           const char *(*label)(const mpl_record *, char *), char (**labels)[200],
                           uint32_t *n)
{
    mpl_status st = MPL_OK;
    char text[200];

    *n = 0;
    MPL_TRY(mpl_new(ctx, *labels, rows->n));
    for (uint32_t i = 0; i < rows->n; i++) {
        uint32_t k = 0;

        label(rows->row[i], text);
        while (k < *n && strcmp((*labels)[k], text) != 0)
            k++;
        if (k == *n)
            memcpy((*labels)[(*n)++], text, sizeof text);
    }
out:
    return st;
}

static mpl_status print_matrix(mpl_ctx *ctx, const mpl_table_kind *kind, const mpl_rows *rows,
                               FILE *to, bool tsv)
{
    mpl_status st = MPL_OK;
    char(*planner)[200] = NULL, (*graph)[200] = NULL, text[200];
    uint32_t n_planners, n_graphs;
    bool timed = kind->field == MPL_FIELD_plan_ns || kind->field == MPL_FIELD_run_ns;
    mpl_grid grid = {0};

    MPL_TRY(distinct(ctx, rows, mpl_planner_label, &planner, &n_planners));
    MPL_TRY(distinct(ctx, rows, graph_label, &graph, &n_graphs));
    grid.n_cols = n_graphs + 1;
    MPL_TRY(mpl_grid_cell(ctx, &grid, "planner"));
    for (uint32_t g = 0; g < n_graphs; g++)
        MPL_TRY(mpl_grid_cell(ctx, &grid, "%s%s", timed ? MPL_TIMED : "", graph[g]));
    for (uint32_t p = 0; p < n_planners; p++) {
        MPL_TRY(mpl_grid_cell(ctx, &grid, "%s", planner[p]));
        for (uint32_t g = 0; g < n_graphs; g++) {
            const mpl_record *found = NULL;

            for (uint32_t i = 0; i < rows->n; i++)
                if (strcmp(mpl_planner_label(rows->row[i], text), planner[p]) == 0 &&
                    strcmp(graph_label(rows->row[i], text), graph[g]) == 0)
                    found = rows->row[i];
            MPL_TRY(matrix_cell(ctx, found, kind->field, &grid));
        }
    }
    mpl_grid_print_titled(to, &grid, kind->about, tsv);
out:
    mpl_grid_fini(ctx, &grid);
    mpl_free(ctx, planner);
    mpl_free(ctx, graph);
    return st;
}

const mpl_table_kind mpl_tables[] = {
    {"runs", "one table a graph: every planner's bytes, gap, times and checks", print_runs,
     MPL_FIELD_planner, false},
    {"planned", "planned memory, planners x graphs [MiB]", print_matrix, MPL_FIELD_planned_bytes,
     false},
    {"packed", "planned memory with blocks packed into one arena, planners x graphs [MiB]",
     print_matrix, MPL_FIELD_packed_bytes, false},
    {"gap", "planned memory above the lower bound, planners x graphs", print_matrix,
     MPL_FIELD_bound_bytes, false},
    {"plan_time", "time to plan, planners x graphs [ms]", print_matrix, MPL_FIELD_plan_ns, false},
    {"run_time", "median time of a run, planners x graphs [ms]", print_matrix, MPL_FIELD_run_ns,
     false},
    {"measured", "resident pages of the arena, planners x graphs [MiB]", print_matrix,
     MPL_FIELD_measured_bytes, false},
    {"peers",
     "time to plan beside other solvers, taken in turns; a ratio above 1: the peer takes longer",
     mpl_table_peers, MPL_N_FIELDS, false},
    {"published",
     "values that others published or reported, or that we computed by their methods, each with "
     "its origin, "
     "beside ours: the least, and the median over seeds",
     mpl_table_published, MPL_N_FIELDS, false},
    {"networks",
     "a line a graph: all outputs, every planner's bytes, the best, the bound [10^6 B], runs with "
     "and "
     "without a plan, published processes",
     mpl_table_networks, MPL_FIELD_planned_bytes, false},
    {"summary",
     "a line a planner: how many graphs it plans at their bound, how far above it the others",
     mpl_table_summary, MPL_N_FIELDS, false},
    {"overview",
     "a line a planner: inference and training, serial and parallel: how many graphs it plans at "
     "the least, "
     "how far above the others are",
     mpl_table_overview, MPL_N_FIELDS, false},
    {"families", "the same by family of networks: chains, residual, dense, inception, recurrent",
     mpl_table_families, MPL_N_FIELDS, false},
    {"savings",
     "a line a graph: how much less memory it needs by sharing, in-place pairs, views, concats, "
     "order, "
     "fusion, "
     "recomputation; what parallel safety costs",
     mpl_table_savings, MPL_FIELD_planned_bytes, false},
    {"passes",
     "a line a graph, a column for each --optimise: the least planned memory of any planner [MiB]",
     mpl_table_passes, MPL_FIELD_planned_bytes, false},
    {"safety", "the best plans of any planner, serial and parallel", mpl_table_sides,
     MPL_FIELD_safety, false},
    {"in_place", "the best plans of any planner, in-place pairs offered and not", mpl_table_sides,
     MPL_FIELD_in_place, false},
    {"executed", "a line a run: planned and measured bytes, outputs, time", mpl_table_executed,
     MPL_FIELD_outputs, false},
    {"malloc",
     "a line a graph of bench --compare malloc: the arena beside one malloc a buffer, of each "
     "malloc in the "
     "rows; a ratio is the median over pairs of runs",
     mpl_table_malloc, MPL_FIELD_malloc_ns, false},
    {"switches",
     "a line a run: order, concats, loops, changed inputs, what they cost in memory and copies, "
     "beside the "
     "first run of "
     "the graph",
     mpl_table_switches, MPL_FIELD_planned_bytes, false},
    {"orders",
     "a line a graph: planned memory in the order that it has and in one that was searched for, "
     "the least "
     "over orders with concats copied, what is saved, on average too, with and without the graph "
     "that saves "
     "most, beside OLLA's claim",
     mpl_table_orders, MPL_N_FIELDS, false},
    {"ablation",
     "a line for each engine or rule that a search did without (without=RULE): on how many graphs "
     "that was worse, better, no more proved, took more ticks",
     mpl_table_ablation, MPL_N_FIELDS, false},
    {"recompute", "training graphs with and without operations that run again: memory, work, time",
     mpl_table_recompute, MPL_FIELD_recompute, false},
    {"views",
     "programs of views and writes, a line a way of making SSA of them: copies, kernels, peak, "
     "time",
     mpl_table_views, MPL_N_FIELDS, false},
    {"gpu",
     "a line a run on a GPU: planned memory, what was asked of it and taken, outputs, times both "
     "ways",
     mpl_table_gpu, MPL_FIELD_device_memory, false},
    {"allocators",
     "runs on a GPU beside allocators that take the same requests as they come: the device's own, "
     "and a "
     "model "
     "of PyTorch's caching one",
     mpl_table_allocators, MPL_N_FIELDS, false},
    {"pebble",
     "the pebble game with sliding: least times within each space, all connected graphs of up to 6 "
     "vertices",
     mpl_table_pebble, MPL_N_FIELDS, true},
    {"pebble_still", "the same without sliding: no result lies in place of an operand",
     mpl_table_pebble_still, MPL_N_FIELDS, true},
    {NULL, NULL, NULL, MPL_N_FIELDS, false},
};

const mpl_table_kind *mpl_table_find(const char *name)
{
    for (const mpl_table_kind *t = mpl_tables; t->name != NULL; t++)
        if (strcmp(t->name, name) == 0)
            return t;
    return NULL;
}
