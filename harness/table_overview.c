/* table_overview.c -- a line a planner, over inference and training, serial and parallel: how many plans nothing can be below,
 * and how far from that the others are. See table.h. */
#include "harness/grid.h"
#include "harness/table.h"

/* Four groups of rows; a row of none of them (an option of its own) must not be among the rows. */
static const struct {
    const char *name, *safety;
    bool train;
} groups[] = {
    {"inference serial", "serial", false},
    {"inference parallel", "parallel", false},
    {"training serial", "serial", true},
    {"training parallel", "parallel", true},
};
enum { N_GROUPS = sizeof groups / sizeof *groups };

static bool is_text(const mpl_record *row, mpl_field field, const char *value)
{
    const char *text = mpl_record_get_text(row, field);

    return text != NULL && strcmp(text, value) == 0;
}

static bool in_group(const mpl_record *row, int group)
{
    const char *graph = mpl_record_get_text(row, MPL_FIELD_graph);
    bool train = graph != NULL && strstr(graph, "mode=train") != NULL;

    return train == groups[group].train && is_text(row, MPL_FIELD_safety, groups[group].safety);
}

/* No plan of this row's problem is below it: the highest bound that any planner proved. */
static uint64_t least_of(const mpl_rows *rows, const mpl_record *row)
{
    const char *problem = mpl_record_get_text(row, MPL_FIELD_problem_hash);
    uint64_t least = 0, bound;

    for (uint32_t i = 0; problem != NULL && i < rows->n; i++)
        if (is_text(rows->row[i], MPL_FIELD_problem_hash, problem) &&
            mpl_record_get_int(rows->row[i], MPL_FIELD_bound_bytes, &bound))
            least = mpl_max_u64(least, bound);
    return least;
}

typedef struct summary {
    uint32_t graphs, least; /* planned; as low as any plan can be */
    double sum, most;       /* of planned bytes over the least */
} summary;

static summary summarise(const mpl_rows *rows, const char *planner, int group)
{
    summary s = {0};
    char text[120];

    for (uint32_t i = 0; i < rows->n; i++) {
        const mpl_record *row = rows->row[i];
        uint64_t planned, least;

        if (!in_group(row, group) || strcmp(mpl_planner_label(row, text), planner) != 0 ||
            !is_text(row, MPL_FIELD_status, "ok") ||
            !mpl_record_get_int(row, MPL_FIELD_planned_bytes, &planned) || (least = least_of(rows, row)) == 0)
            continue;
        s.graphs++;
        s.least += planned == least;
        s.sum += (double)planned / (double)least;
        s.most = s.graphs == 1 || (double)planned / (double)least > s.most ? (double)planned / (double)least
                                                                           : s.most;
    }
    return s;
}

static mpl_status group_cells(mpl_ctx *ctx, const summary *s, mpl_grid *grid)
{
    mpl_status st = MPL_OK;

    for (int i = 0; s->graphs == 0 && i < 3; i++)
        MPL_TRY(mpl_grid_cell(ctx, grid, "-"));
    if (s->graphs == 0)
        goto out;
    MPL_TRY(mpl_grid_cell(ctx, grid, "%" PRIu32 " of %" PRIu32, s->least, s->graphs));
    MPL_TRY(mpl_grid_cell(ctx, grid, "%.2f %%", (s->sum / s->graphs - 1) * 100));
    MPL_TRY(mpl_grid_cell(ctx, grid, "%.2f %%", (s->most - 1) * 100));
out:
    return st;
}

mpl_status mpl_table_overview(mpl_ctx *ctx, const mpl_table_kind *kind, const mpl_rows *rows, FILE *to,
                              bool tsv)
{
    mpl_status st = MPL_OK;
    mpl_grid grid = {.n_cols = 1 + 3 * N_GROUPS};

    MPL_TRY(mpl_grid_cell(ctx, &grid, "planner"));
    for (int g = 0; g < N_GROUPS; g++) {
        MPL_TRY(mpl_grid_cell(ctx, &grid, "%s: least", groups[g].name));
        MPL_TRY(mpl_grid_cell(ctx, &grid, "%s: mean", groups[g].name));
        MPL_TRY(mpl_grid_cell(ctx, &grid, "%s: most", groups[g].name));
    }
    for (uint32_t i = 0; i < rows->n; i++) {
        char planner[120], other[120];
        summary all[N_GROUPS];
        uint32_t k = 0, graphs = 0;

        mpl_planner_label(rows->row[i], planner);
        while (k < i && strcmp(mpl_planner_label(rows->row[k], other), planner) != 0)
            k++;
        for (int g = 0; k == i && g < N_GROUPS; g++) {
            all[g] = summarise(rows, planner, g);
            graphs += all[g].graphs;
        }
        if (graphs == 0)
            continue;
        MPL_TRY(mpl_grid_cell(ctx, &grid, "%s", planner));
        for (int g = 0; g < N_GROUPS; g++)
            MPL_TRY(group_cells(ctx, &all[g], &grid));
    }
    if (!tsv)
        fprintf(to, "%s\n\n", kind->about);
    mpl_grid_print(to, &grid, tsv);
out:
    mpl_grid_fini(ctx, &grid);
    return st;
}
