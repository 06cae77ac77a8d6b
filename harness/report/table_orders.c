/* table_orders.c -- a line a graph: the order that it has, and one that was searched for. See
 * table.h. */
#include "harness/report/cells.h"
#include "harness/report/table.h"

/* What G. Steiner et al., "OLLA: Optimizing the Lifetime and Location of Arrays to Reduce the
 * Memory Usage of Neural Networks", 2022, say of orders and placement together, of other networks
 * than ours: a third less on average. */
static const double OLLA = 1.0 / 3;

static bool is_searched(const mpl_record *row)
{
    const char *order = mpl_record_get_text(row, MPL_FIELD_order);

    return order != NULL && strcmp(order, "given") != 0;
}

/* The row of the same graph in the order that it has, under the same planner and safety; NULL:
 * there is none. */
static const mpl_record *given_of(const mpl_rows *rows, const mpl_record *row)
{
    static const mpl_field same[] = {MPL_FIELD_graph, MPL_FIELD_safety, MPL_FIELD_planner};

    for (uint32_t i = 0; i < rows->n; i++)
        if (mpl_rows_alike(rows->row[i], row, sizeof same / sizeof *same, same) &&
            !is_searched(rows->row[i]))
            return rows->row[i];
    return NULL;
}

/* What is saved of all graphs, and of that which saves most. */
typedef struct savings {
    uint32_t n;
    double sum, most;
    char by[200];
} savings;

/* One graph; its saving is added. */
static mpl_status add_line(mpl_ctx *ctx, mpl_grid *grid, const mpl_record *given,
                           const mpl_record *row, savings *s)
{
    mpl_status st = MPL_OK;
    uint64_t before = 0, after = 0, ns = 0;
    char text[200];
    double less;
    bool has_ns = mpl_record_get_int(row, MPL_FIELD_order_ns, &ns);

    if (!mpl_record_get_int(given, MPL_FIELD_planned_bytes, &before) || before == 0 ||
        !mpl_record_get_int(row, MPL_FIELD_planned_bytes, &after))
        MPL_FAIL(ctx, MPL_EINPUT, "%s was not planned in both orders", mpl_graph_label(row, text));
    MPL_TRY(mpl_grid_cell(ctx, grid, "%s", mpl_graph_label(row, text)));
    MPL_TRY(mpl_mib_cell(ctx, grid, given, MPL_FIELD_planned_bytes));
    MPL_TRY(mpl_mib_cell(ctx, grid, row, MPL_FIELD_planned_bytes));
    MPL_TRY(mpl_mib_cell(ctx, grid, row, MPL_FIELD_order_bound_bytes));
    MPL_TRY(mpl_order_proof_cell(ctx, grid, row));
    MPL_TRY(mpl_grid_cell(ctx, grid, "%.1f %%", 100 * (1 - (double)after / (double)before)));
    MPL_TRY(mpl_grid_ms(ctx, grid, has_ns, (int64_t)ns));
    less = 1 - (double)after / (double)before;
    if (s->n++ == 0 || less > s->most) {
        s->most = less;
        snprintf(s->by, sizeof s->by, "%.*s", (int)strcspn(text, ":"), text);
    }
    s->sum += less;
out:
    return st;
}

/* A line that has a name and a part, no bytes. */
static mpl_status add_part(mpl_ctx *ctx, mpl_grid *grid, const char *name, double part)
{
    mpl_status st = MPL_OK;

    MPL_TRY(mpl_grid_cell(ctx, grid, "%s", name));
    for (int i = 0; i < 4; i++)
        MPL_TRY(mpl_grid_cell(ctx, grid, "-"));
    MPL_TRY(mpl_grid_cell(ctx, grid, "%.1f %%", 100 * part));
    MPL_TRY(mpl_grid_cell(ctx, grid, "-"));
out:
    return st;
}

mpl_status mpl_table_orders(mpl_ctx *ctx, const mpl_table_kind *kind, const mpl_rows *rows,
                            FILE *to, bool tsv)
{
    static const char *const head[] = {
        "graph", "program MiB", "searched MiB",       "least over orders with concats copied MiB",
        "by",    "less",        MPL_TIMED "search ms"};
    mpl_status st = MPL_OK;
    mpl_grid grid = {.n_cols = sizeof head / sizeof *head};
    savings s = {0};
    char without[240];

    MPL_TRY(mpl_grid_head(ctx, &grid, head));
    for (uint32_t i = 0; i < rows->n; i++) {
        const mpl_record *given = is_searched(rows->row[i]) ? given_of(rows, rows->row[i]) : NULL;

        if (given == NULL)
            continue;
        MPL_TRY(add_line(ctx, &grid, given, rows->row[i], &s));
    }
    if (s.n > 1) {
        snprintf(without, sizeof without, "mean without %s", s.by);
        MPL_TRY(add_part(ctx, &grid, "mean", s.sum / s.n));
        MPL_TRY(add_part(ctx, &grid, without, (s.sum - s.most) / (s.n - 1)));
        MPL_TRY(add_part(ctx, &grid, "OLLA, as published", OLLA));
    }
    mpl_grid_print_titled(to, &grid, kind->about, tsv);
out:
    mpl_grid_fini(ctx, &grid);
    return st;
}
