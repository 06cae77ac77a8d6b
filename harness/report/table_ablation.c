/* table_ablation.c -- a line for each engine or rule that an order, a recomputation or a planner
 * did without (its parameter without=RULE): what that made worse, over all graphs. See table.h. */
#include <math.h>

#include "harness/report/cells.h"
#include "harness/report/table.h"

enum { TEXT = 240 };

/* Which fields tell of what a search found. */
typedef struct subject {
    mpl_field cost;   /* lower is better */
    mpl_field bound;  /* proved where it is as high as the cost */
    mpl_field effort; /* deterministic work of the search */
} subject;

enum { ORDER, RECOMPUTE, PLANNER, N_SUBJECTS };

static const subject subjects[N_SUBJECTS] = {
    [ORDER] = {MPL_FIELD_order_live_bytes, MPL_FIELD_order_bound_bytes, MPL_FIELD_order_ticks},
    [RECOMPUTE] = {MPL_FIELD_extra_work, MPL_FIELD_extra_work_bound, MPL_FIELD_recompute_ticks},
    [PLANNER] = {MPL_FIELD_planned_bytes, MPL_FIELD_bound_bytes, MPL_FIELD_ticks},
};

/* What one row did without. */
typedef struct setting {
    char whole[N_SUBJECTS][TEXT]; /* order, recomputation and planner, without=RULE left out */
    char rule[TEXT];              /* empty: it used everything */
    int subject;                  /* of which the rule is */
} setting;

static setting setting_of(const mpl_record *row)
{
    setting s = {.rule = ""};

    snprintf(s.whole[ORDER], TEXT, "%s", mpl_record_text_or(row, MPL_FIELD_order, ""));
    snprintf(s.whole[RECOMPUTE], TEXT, "%s", mpl_record_text_or(row, MPL_FIELD_recompute, ""));
    mpl_planner_label(row, s.whole[PLANNER]);
    for (int i = 0; i < N_SUBJECTS; i++) {
        char *found = strstr(s.whole[i], "without="), *rest;

        if (found == NULL)
            continue;
        snprintf(s.rule, TEXT, "%.*s", (int)strcspn(found, ",") - 8, found + 8);
        s.subject = i;
        rest = found + strcspn(found, ",");
        if (*rest == ',')
            memmove(found, rest + 1, strlen(rest));
        else
            found[-1] = '\0'; /* the colon or comma before it */
    }
    return s;
}

/* But for the rule. */
static bool same_setting(const setting *a, const setting *b)
{
    bool same = true;

    for (int i = 0; i < N_SUBJECTS; i++)
        same = same && strcmp(a->whole[i], b->whole[i]) == 0;
    return same;
}

/* The row of the same graph with the same setting that used everything; NULL: there is none. */
static const mpl_record *whole_of(const mpl_rows *rows, const mpl_record *row, const setting *s)
{
    static const mpl_field same[] = {MPL_FIELD_graph, MPL_FIELD_safety};

    for (uint32_t i = 0; i < rows->n; i++) {
        setting other;

        if (!mpl_rows_alike(rows->row[i], row, sizeof same / sizeof *same, same))
            continue;
        other = setting_of(rows->row[i]);
        if (other.rule[0] == '\0' && same_setting(&other, s))
            return rows->row[i];
    }
    return NULL;
}

/* One rule of one search, over all graphs. */
typedef struct line {
    char search[TEXT], rule[TEXT];
    uint32_t n, worse, better, unproved, slower;
    uint32_t n_ratios;
    double log_sum; /* of the ratios of effort */
} line;

/* What a search found; cost UINT64_MAX: nothing. */
typedef struct finding {
    uint64_t cost, effort;
    bool proved, has_effort;
} finding;

static finding finding_of(const mpl_record *row, const subject *what)
{
    finding f = {.cost = UINT64_MAX};
    uint64_t bound = 0;

    if (!mpl_record_is(row, MPL_FIELD_status, "ok") ||
        !mpl_record_get_int(row, what->cost, &f.cost))
        return f;
    f.proved = mpl_record_get_int(row, what->bound, &bound) && bound >= f.cost;
    f.has_effort = mpl_record_get_int(row, what->effort, &f.effort);
    return f;
}

static void compare(line *l, finding without, finding with)
{
    l->n++;
    l->worse += without.cost > with.cost;
    l->better += without.cost < with.cost;
    l->unproved += with.proved && !without.proved;
    if (!without.has_effort || !with.has_effort)
        return;
    l->slower += without.effort > with.effort;
    l->n_ratios++;
    l->log_sum += log((double)(without.effort + 1) / (double)(with.effort + 1));
}

static mpl_status line_of(mpl_ctx *ctx, const setting *s, line **lines, uint32_t *n, size_t *cap,
                          line **out)
{
    mpl_status st = MPL_OK;
    line new = {.n = 0};

    snprintf(new.search, TEXT, "%.*s", (int)strcspn(s->whole[s->subject], ":"),
             s->whole[s->subject]);
    snprintf(new.rule, TEXT, "%s", s->rule);
    for (uint32_t i = 0; i < *n; i++)
        if (strcmp((*lines)[i].search, new.search) == 0 &&
            strcmp((*lines)[i].rule, new.rule) == 0) {
            *out = *lines + i;
            return MPL_OK;
        }
    MPL_TRY(mpl_reserve(ctx, *lines, *cap, (size_t)*n + 1));
    (*lines)[*n] = new;
    *out = *lines + (*n)++;
out:
    return st;
}

static mpl_status line_cells(mpl_ctx *ctx, mpl_grid *grid, const line *l)
{
    mpl_status st = MPL_OK;
    const uint32_t counts[] = {l->n, l->worse, l->better, l->unproved};

    MPL_TRY(mpl_grid_cell(ctx, grid, "%s", l->search));
    MPL_TRY(mpl_grid_cell(ctx, grid, "%s", l->rule));
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++)
        MPL_TRY(mpl_grid_cell(ctx, grid, "%" PRIu32, counts[i]));
    MPL_TRY(l->n_ratios > 0 ? mpl_grid_cell(ctx, grid, "%" PRIu32, l->slower)
                            : mpl_grid_cell(ctx, grid, "-"));
    MPL_TRY(mpl_ratio_cell(ctx, grid, l->n_ratios > 0,
                           exp(l->log_sum / (l->n_ratios + (l->n_ratios == 0))), 1));
out:
    return st;
}

mpl_status mpl_table_ablation(mpl_ctx *ctx, const mpl_table_kind *kind, const mpl_rows *rows,
                              FILE *to, bool tsv)
{
    static const char *const head[] = {"search", "without",  "graphs",     "worse",
                                       "better", "unproved", "more ticks", "ticks beside"};
    mpl_status st = MPL_OK;
    mpl_grid grid = {.n_cols = sizeof head / sizeof *head};
    line *lines = NULL, *at;
    uint32_t n = 0;
    size_t cap = 0;

    MPL_TRY(mpl_grid_head(ctx, &grid, head));
    for (uint32_t i = 0; i < rows->n; i++) {
        setting s = setting_of(rows->row[i]);
        const mpl_record *whole = s.rule[0] != '\0' ? whole_of(rows, rows->row[i], &s) : NULL;

        if (whole == NULL)
            continue;
        MPL_TRY(line_of(ctx, &s, &lines, &n, &cap, &at));
        compare(at, finding_of(rows->row[i], &subjects[s.subject]),
                finding_of(whole, &subjects[s.subject]));
    }
    for (uint32_t i = 0; i < n; i++)
        MPL_TRY(line_cells(ctx, &grid, &lines[i]));
    mpl_grid_print_titled(to, &grid, kind->about, tsv);
out:
    mpl_free(ctx, lines);
    mpl_grid_fini(ctx, &grid);
    return st;
}
