/* table_peers.c -- planners beside peers (bench --peer): medians of times taken in turns, their
 * ratio, its geometric mean.
 *
 * A peer's time is that of its whole process; where it says what it took itself, that stands
 * beside, with a ratio of its own. */
#include <math.h>

#include "harness/report/grid.h"
#include "harness/report/table.h"

/* Geometric means of one planner beside one peer. */
typedef struct mean {
    double log_sum, self_log_sum;
    uint32_t n, n_self, of;
} mean;

static bool is_peer(const mpl_record *row)
{
    return strncmp(mpl_record_text_or(row, MPL_FIELD_planner, ""), "exec:", 5) == 0;
}

static bool same_problem(const mpl_record *a, const mpl_record *b)
{
    static const mpl_field fields[] = {MPL_FIELD_graph, MPL_FIELD_problem_hash, MPL_FIELD_safety,
                                       MPL_FIELD_order, MPL_FIELD_backend};

    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++)
        if (strcmp(mpl_record_text_or(a, fields[i], ""), mpl_record_text_or(b, fields[i], "")) != 0)
            return false;
    return true;
}

static mpl_status ratio_cell(mpl_ctx *ctx, mpl_grid *grid, bool known, double ratio)
{
    return known ? mpl_grid_cell(ctx, grid, "%.*f", ratio < 10 ? 2 : 1, ratio)
                 : mpl_grid_cell(ctx, grid, "-");
}

static mpl_status print_pair(mpl_ctx *ctx, const mpl_record *ours, const mpl_record *peer, mean *m,
                             mpl_grid *grid)
{
    mpl_status st = MPL_OK;
    int64_t a = 0, b = 0, self = 0;
    char planner[120], other[120];
    bool has_a = mpl_record_median(ours, MPL_FIELD_plan_each_ns, &a) && a > 0;
    bool has_b = mpl_record_median(peer, MPL_FIELD_plan_each_ns, &b) && b > 0;
    bool has_self = mpl_record_median(peer, MPL_FIELD_self_ns, &self) && self > 0;

    m->of++;
    if (has_a && has_b)
        m->n++, m->log_sum += log((double)b / (double)a);
    if (has_a && has_self)
        m->n_self++, m->self_log_sum += log((double)self / (double)a);
    MPL_TRY(mpl_grid_cell(ctx, grid, "%s", mpl_record_text_or(ours, MPL_FIELD_graph, "")));
    MPL_TRY(mpl_grid_cell(ctx, grid, "%s", mpl_planner_label(ours, planner)));
    MPL_TRY(has_a ? mpl_grid_ms(ctx, grid, true, a)
                  : mpl_grid_cell(ctx, grid, "%s", mpl_record_text_or(ours, MPL_FIELD_status, "")));
    MPL_TRY(mpl_grid_cell(ctx, grid, "%s", mpl_planner_label(peer, other)));
    MPL_TRY(has_b ? mpl_grid_ms(ctx, grid, true, b)
                  : mpl_grid_cell(ctx, grid, "%s", mpl_record_text_or(peer, MPL_FIELD_status, "")));
    MPL_TRY(ratio_cell(ctx, grid, has_a && has_b, (double)b / (double)(a > 0 ? a : 1)));
    MPL_TRY(mpl_grid_ms(ctx, grid, has_self, self));
    MPL_TRY(ratio_cell(ctx, grid, has_a && has_self, (double)self / (double)(a > 0 ? a : 1)));
out:
    return st;
}

static mpl_status print_mean(mpl_ctx *ctx, const char *planner, const char *peer, const mean *m,
                             mpl_grid *grid)
{
    mpl_status st = MPL_OK;

    MPL_TRY(mpl_grid_cell(ctx, grid, "geometric mean of %u of %u", m->n, m->of));
    MPL_TRY(mpl_grid_cell(ctx, grid, "%s", planner));
    MPL_TRY(mpl_grid_cell(ctx, grid, "-"));
    MPL_TRY(mpl_grid_cell(ctx, grid, "%s", peer));
    MPL_TRY(mpl_grid_cell(ctx, grid, "-"));
    MPL_TRY(ratio_cell(ctx, grid, m->n > 0, exp(m->log_sum / m->n)));
    MPL_TRY(mpl_grid_cell(ctx, grid, "-"));
    MPL_TRY(ratio_cell(ctx, grid, m->n_self > 0, exp(m->self_log_sum / m->n_self)));
out:
    return st;
}

/* All graphs that `planner` and `peer` were both run on, then the mean. */
static mpl_status print_pairs(mpl_ctx *ctx, const mpl_rows *rows, const char *planner,
                              const char *peer, mpl_grid *grid)
{
    mpl_status st = MPL_OK;
    mean m = {0};
    char text[120];

    for (uint32_t i = 0; i < rows->n; i++) {
        if (is_peer(rows->row[i]) || strcmp(mpl_planner_label(rows->row[i], text), planner) != 0)
            continue;
        for (uint32_t k = 0; k < rows->n; k++)
            if (is_peer(rows->row[k]) && strcmp(mpl_planner_label(rows->row[k], text), peer) == 0 &&
                same_problem(rows->row[i], rows->row[k]))
                MPL_TRY(print_pair(ctx, rows->row[i], rows->row[k], &m, grid));
    }
    if (m.of > 0)
        MPL_TRY(print_mean(ctx, planner, peer, &m, grid));
out:
    return st;
}

/* The first row whose planner has row i's label. */
static bool is_first(const mpl_rows *rows, uint32_t i)
{
    char a[120], b[120];

    mpl_planner_label(rows->row[i], a);
    for (uint32_t k = 0; k < i; k++)
        if (strcmp(mpl_planner_label(rows->row[k], b), a) == 0)
            return false;
    return true;
}

mpl_status mpl_table_peers(mpl_ctx *ctx, const mpl_table_kind *kind, const mpl_rows *rows, FILE *to,
                           bool tsv)
{
    static const char *const head[] = {"graph",   "planner", "ms",           "peer",
                                       "peer ms", "ratio",   "peer says ms", "ratio"};
    mpl_status st = MPL_OK;
    mpl_grid grid = {.n_cols = sizeof head / sizeof *head};
    char planner[120], peer[120];

    MPL_TRY(mpl_grid_head(ctx, &grid, head));
    for (uint32_t k = 0; k < rows->n; k++)
        for (uint32_t i = 0; is_peer(rows->row[k]) && is_first(rows, k) && i < rows->n; i++)
            if (!is_peer(rows->row[i]) && is_first(rows, i))
                MPL_TRY(print_pairs(ctx, rows, mpl_planner_label(rows->row[i], planner),
                                    mpl_planner_label(rows->row[k], peer), &grid));
    if (!tsv)
        fprintf(to, "\n%s\n\n", kind->about);
    mpl_grid_print(to, &grid, tsv);
out:
    mpl_grid_fini(ctx, &grid);
    return st;
}
