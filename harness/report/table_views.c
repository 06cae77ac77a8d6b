/* table_views.c -- programs: what each way of making SSA of them copies, runs and needs. See
 * table.h. */
#include "graphs/passes/passes.h"
#include "harness/report/grid.h"
#include "harness/report/table.h"

/* The row's program, and how SSA was made of it, both as text; false: it is no program. A network
 * of the zoo says it by its parameter ssa, a file by the option. */
static bool is_program(const mpl_record *row, char program[200], char ssa[16])
{
    const char *graph = mpl_record_get_text(row, MPL_FIELD_graph),
               *option = mpl_record_get_text(row, MPL_FIELD_ssa);
    const char *mark = graph != NULL ? strstr(graph, "ssa=") : NULL;

    if (graph == NULL)
        return false;
    mpl_graph_label(row, program);
    if (option != NULL) {
        snprintf(ssa, 16, "%s", option);
        return true;
    }
    if (mark == NULL || mark == graph)
        return false;
    snprintf(ssa, 16, "%.*s", (int)strcspn(mark + 4, ","), mark + 4);
    /* Without the parameter and the mark before it; what stands behind moves up. */
    snprintf(program, 200, "%.*s%s", (int)(mark - 1 - graph), graph,
             mark + 4 + strcspn(mark + 4, ","));
    return true;
}

/* The median time of the same program on the same backend copied each time. */
static bool eager_ns(const mpl_rows *rows, const mpl_record *row, int64_t *ns)
{
    char program[200], ssa[16], other[200];
    const char *backend = mpl_record_get_text(row, MPL_FIELD_backend), *its;

    is_program(row, program, ssa);
    for (uint32_t i = 0; i < rows->n; i++) {
        its = mpl_record_get_text(rows->row[i], MPL_FIELD_backend);
        if (is_program(rows->row[i], other, ssa) && strcmp(other, program) == 0 &&
            backend != NULL && its != NULL && strcmp(backend, its) == 0 &&
            strcmp(ssa, mpl_ssa_level_name[MPL_SSA_COPY]) == 0)
            return mpl_record_median(rows->row[i], MPL_FIELD_run_ns, ns);
    }
    return false;
}

static mpl_status add_line(mpl_ctx *ctx, const mpl_rows *rows, const mpl_record *row,
                           mpl_grid *grid)
{
    mpl_status st = MPL_OK;
    char program[200], ssa[16], planner[120];
    const char *backend = mpl_record_get_text(row, MPL_FIELD_backend),
               *outputs = mpl_record_get_text(row, MPL_FIELD_outputs);
    uint64_t copied = 0, kernels = 0, planned = 0;
    int64_t ns = 0, eager = 0;
    bool has_copied = mpl_record_get_int(row, MPL_FIELD_copied_bytes, &copied);
    bool has_kernels = mpl_record_get_int(row, MPL_FIELD_kernels, &kernels);
    bool has_planned = mpl_record_get_int(row, MPL_FIELD_planned_bytes, &planned);
    bool has_ns = mpl_record_median(row, MPL_FIELD_run_ns, &ns);

    if (!is_program(row, program, ssa))
        goto out;
    MPL_TRY(mpl_grid_cell(ctx, grid, "%s", program));
    MPL_TRY(mpl_grid_cell(ctx, grid, "%s", ssa));
    MPL_TRY(mpl_grid_cell(ctx, grid, "%s", mpl_planner_label(row, planner)));
    MPL_TRY(mpl_grid_cell(ctx, grid, "%s", backend != NULL ? backend : "-"));
    MPL_TRY(mpl_grid_mib(ctx, grid, has_copied, copied));
    MPL_TRY(has_kernels ? mpl_grid_cell(ctx, grid, "%" PRIu64, kernels)
                        : mpl_grid_cell(ctx, grid, "-"));
    MPL_TRY(mpl_grid_mib(ctx, grid, has_planned, planned));
    MPL_TRY(mpl_grid_cell(ctx, grid, "%s", outputs != NULL ? outputs : "-"));
    MPL_TRY(mpl_grid_ms(ctx, grid, has_ns, ns));
    MPL_TRY(has_ns && ns > 0 && eager_ns(rows, row, &eager)
                ? mpl_grid_cell(ctx, grid, "%.2f", (double)eager / (double)ns)
                : mpl_grid_cell(ctx, grid, "-"));
out:
    return st;
}

mpl_status mpl_table_views(mpl_ctx *ctx, const mpl_table_kind *kind, const mpl_rows *rows, FILE *to,
                           bool tsv)
{
    static const char *const head[] = {
        "program", "SSA",         "planner", "backend",          "copied MiB",
        "kernels", "planned MiB", "outputs", MPL_TIMED "run ms", MPL_TIMED "faster"};

    return mpl_table_lines(ctx, kind, rows, to, tsv, sizeof head / sizeof *head, head, add_line);
}
