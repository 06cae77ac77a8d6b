/* table_overview.c -- a line a planner, over inference and training, serial and parallel, or over
 * families of networks: how many plans nothing can be below, and how far from that the others are.
 * See table.h. */
#include "harness/report/grid.h"
#include "harness/report/table.h"

/* A column's rows: all that are of this safety (NULL: either), that train or not (where that
 * counts), and whose graph's name begins with one of the words (NULL: any). */
typedef struct group {
    const char *name, *safety;
    bool kinds, train;
    const char *begins;
} group;

static const group uses[] = {
    {"inference serial", "serial", true, false, NULL},
    {"inference parallel", "parallel", true, false, NULL},
    {"training serial", "serial", true, true, NULL},
    {"training parallel", "parallel", true, true, NULL},
};
static const group families[] = {
    {"chains", NULL, false, false, "vgg mobilenet mlp mnist"},
    {"residual", NULL, false, false, "resnet"},
    {"dense", NULL, false, false, "densenet"},
    {"inception", NULL, false, false, "inception"},
    {"recurrent", NULL, false, false, "lstm gru"},
};
enum { MOST_GROUPS = 5 };

static bool is_text(const mpl_record *row, mpl_field field, const char *value)
{
    const char *text = mpl_record_get_text(row, field);

    return text != NULL && strcmp(text, value) == 0;
}

static bool begins(const char *graph, const char *words)
{
    for (const char *word = words; *word != '\0'; word += strspn(word, " ")) {
        size_t n = strcspn(word, " ");

        if (strncmp(graph, word, n) == 0)
            return true;
        word += n;
    }
    return false;
}

static bool in_group(const mpl_record *row, const group *g)
{
    const char *graph = mpl_record_get_text(row, MPL_FIELD_graph);

    if (graph == NULL || (g->kinds && (strstr(graph, "mode=train") != NULL) != g->train))
        return false;
    return (g->safety == NULL || is_text(row, MPL_FIELD_safety, g->safety)) &&
           (g->begins == NULL || begins(graph, g->begins));
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
    uint32_t graphs, failed, least; /* planned; tried in vain; as low as any plan can be */
    double sum, most;               /* of planned bytes over the least */
} summary;

static summary summarise(const mpl_rows *rows, const char *planner, const group *g)
{
    summary s = {0};
    char text[120];

    for (uint32_t i = 0; i < rows->n; i++) {
        const mpl_record *row = rows->row[i];
        uint64_t planned, least;

        if (!in_group(row, g) || strcmp(mpl_planner_label(row, text), planner) != 0)
            continue;
        s.failed +=
            !is_text(row, MPL_FIELD_status, "ok") && !is_text(row, MPL_FIELD_status, "unavailable");
        if (!is_text(row, MPL_FIELD_status, "ok") ||
            !mpl_record_get_int(row, MPL_FIELD_planned_bytes, &planned) ||
            (least = least_of(rows, row)) == 0)
            continue;
        s.graphs++;
        s.least += planned == least;
        s.sum += (double)planned / (double)least;
        s.most = s.graphs == 1 || (double)planned / (double)least > s.most
                     ? (double)planned / (double)least
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
    MPL_TRY(s->failed == 0
                ? mpl_grid_cell(ctx, grid, "%" PRIu32 " of %" PRIu32, s->least, s->graphs)
                : mpl_grid_cell(ctx, grid, "%" PRIu32 " of %" PRIu32 " (%" PRIu32 " failed)",
                                s->least, s->graphs + s->failed, s->failed));
    MPL_TRY(mpl_grid_cell(ctx, grid, "%.2f %%", (s->sum / s->graphs - 1) * 100));
    MPL_TRY(mpl_grid_cell(ctx, grid, "%.2f %%", (s->most - 1) * 100));
out:
    return st;
}

static mpl_status print(mpl_ctx *ctx, const mpl_table_kind *kind, const mpl_rows *rows,
                        const group *groups, uint32_t n, FILE *to, bool tsv)
{
    mpl_status st = MPL_OK;
    mpl_grid grid = {.n_cols = 1 + 3 * n};

    MPL_TRY(mpl_grid_cell(ctx, &grid, "planner"));
    for (uint32_t g = 0; g < n; g++) {
        MPL_TRY(mpl_grid_cell(ctx, &grid, "%s: least", groups[g].name));
        MPL_TRY(mpl_grid_cell(ctx, &grid, "%s: mean", groups[g].name));
        MPL_TRY(mpl_grid_cell(ctx, &grid, "%s: most", groups[g].name));
    }
    for (uint32_t i = 0; i < rows->n; i++) {
        char planner[120], other[120];
        summary all[MOST_GROUPS] = {{0}};
        uint32_t k = 0, graphs = 0;

        mpl_planner_label(rows->row[i], planner);
        while (k < i && strcmp(mpl_planner_label(rows->row[k], other), planner) != 0)
            k++;
        for (uint32_t g = 0; k == i && g < n; g++) {
            all[g] = summarise(rows, planner, &groups[g]);
            graphs += all[g].graphs;
        }
        if (graphs == 0)
            continue;
        MPL_TRY(mpl_grid_cell(ctx, &grid, "%s", planner));
        for (uint32_t g = 0; g < n; g++)
            MPL_TRY(group_cells(ctx, &all[g], &grid));
    }
    mpl_grid_print_titled(to, &grid, kind->about, tsv);
out:
    mpl_grid_fini(ctx, &grid);
    return st;
}

mpl_status mpl_table_overview(mpl_ctx *ctx, const mpl_table_kind *kind, const mpl_rows *rows,
                              FILE *to, bool tsv)
{
    return print(ctx, kind, rows, uses, sizeof uses / sizeof *uses, to, tsv);
}

mpl_status mpl_table_families(mpl_ctx *ctx, const mpl_table_kind *kind, const mpl_rows *rows,
                              FILE *to, bool tsv)
{
    return print(ctx, kind, rows, families, sizeof families / sizeof *families, to, tsv);
}
