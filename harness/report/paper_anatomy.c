/* paper_anatomy.c -- what planning sees of one small graph, as lines to draw: its operations,
 * lifetimes, conflicts, and two plans with what hands each range of memory to the next. See
 * paper.h.
 *
 * The allocation graph is that of NNC: an edge carries a range of bytes from the last buffer that
 * used it to the next. Here it is read off a plan, so that it shows what every planner decides. */
#include <math.h>

#include "harness/job/job.h"
#include "harness/report/paper.h"
#include "planners/planner.h"

enum { MOST = 24 }; /* operations and buffers that a picture can hold */

typedef struct drawing {
    mpl_ctx *ctx;
    mpl_grid *grid;
} drawing;

static mpl_status put(const drawing *self, const char *panel, const char *shape, const double at[4],
                      const char *text)
{
    MPL_PASS(mpl_grid_cell(self->ctx, self->grid, "%s", panel));
    MPL_PASS(mpl_grid_cell(self->ctx, self->grid, "%s", shape));
    for (int i = 0; i < 4; i++)
        MPL_PASS(mpl_grid_cell(self->ctx, self->grid, "%.6g", at[i]));
    return mpl_grid_cell(self->ctx, self->grid, "%s", text);
}

static double mib(uint64_t bytes)
{
    return (double)bytes / (1 << 20);
}

/* "NAME BYTES" in MiB. */
static const char *label(const mpl_problem *p, mpl_buffer b, char text[80])
{
    char name[24];

    snprintf(text, 80, "%.40s %.3g", mpl_buffer_label(p, b, name), mib(p->bytes[b]));
    return text;
}

/* ---- the graph ---- */

/* Column: the longest path from an input; row: that of the first operand, or the next free one. */
static void lay_out(const mpl_graph *g, double column[MOST], double row[MOST])
{
    for (mpl_op o = 0; o < g->n_ops; o++) {
        column[o] = row[o] = 0;
        for (uint32_t i = g->op_in_begin[o + 1]; i-- > g->op_in_begin[o];) {
            mpl_op from = g->op_in[i] == MPL_NONE ? MPL_NONE : g->value_op[g->op_in[i]];

            if (from == MPL_NONE)
                continue;
            row[o] = row[from];
            column[o] = fmax(column[o], column[from] + 1);
        }
        for (mpl_op other = 0; other < o; other++)
            if (fabs(column[other] - column[o]) < 0.5 && fabs(row[other] - row[o]) < 0.5)
                row[o] += 1, other = MPL_NONE; /* the first again */
    }
}

static mpl_status put_graph(const drawing *self, const mpl_graph *g)
{
    double column[MOST], row[MOST];
    char text[80];

    lay_out(g, column, row);
    for (mpl_op o = 0; o < g->n_ops; o++) {
        snprintf(text, sizeof text, "%.24s: %.40s", g->op_name[o],
                 mpl_op_table[g->op_kind[o]].name);
        MPL_PASS(
            put(self, "graph", "node", (double[]){column[o], row[o], column[o], row[o]}, text));
        for (uint32_t i = g->op_in_begin[o]; i < g->op_in_begin[o + 1]; i++) {
            mpl_op from = g->op_in[i] == MPL_NONE ? MPL_NONE : g->value_op[g->op_in[i]];

            if (from != MPL_NONE)
                MPL_PASS(put(self, "graph", "edge",
                             (double[]){column[from], row[from], column[o], row[o]},
                             g->value_name[g->op_in[i]]));
        }
    }
    return MPL_OK;
}

/* ---- lifetimes and conflicts ---- */

static mpl_status put_lifetimes(const drawing *self, const mpl_problem *p)
{
    char text[80];

    for (mpl_buffer b = 0; b < p->n; b++)
        MPL_PASS(put(self, "lifetimes", "box", (double[]){p->birth[b], b, p->death[b], b + 1.0},
                     label(p, b, text)));
    for (uint32_t i = 0; i < p->n_in_place; i++)
        MPL_PASS(put(self, "lifetimes", "pair",
                     (double[]){p->in_place_step[i] + 0.5, p->in_place_in[i] + 0.5,
                                p->in_place_step[i] + 0.5, p->in_place_out[i] + 0.5},
                     "in place"));
    return MPL_OK;
}

/* Buffers on a circle; edges of the order given, and those that only other executions add. */
static mpl_status put_conflicts(const drawing *self, const mpl_problem *p, const mpl_problem *any)
{
    double turn = 2 * acos(-1.0) / p->n;
    char text[80];

    for (mpl_buffer a = 0; a < p->n; a++) {
        for (mpl_buffer b = a + 1; b < p->n; b++) {
            const char *shape = mpl_conflict(p, a, b) ? "serial" : "parallel";

            if (mpl_conflict(p, a, b) || mpl_conflict(any, a, b))
                MPL_PASS(put(self, "conflicts", shape,
                             (double[]){sin(a * turn), cos(a * turn), sin(b * turn), cos(b * turn)},
                             ""));
        }
        MPL_PASS(put(self, "conflicts", "node",
                     (double[]){sin(a * turn), cos(a * turn), sin(a * turn), cos(a * turn)},
                     label(p, a, text)));
    }
    return MPL_OK;
}

/* ---- plans ---- */

static uint64_t end_of(const mpl_problem *p, const mpl_plan *plan, mpl_buffer b)
{
    return plan->offset[b] + p->bytes[b];
}

/* The last buffer that held the byte at `address` before b; MPL_NONE: none did. */
static mpl_buffer last_holder(const mpl_problem *p, const mpl_plan *plan, mpl_buffer b,
                              uint64_t address)
{
    mpl_buffer last = MPL_NONE;

    for (mpl_buffer a = 0; a < p->n; a++)
        if (p->birth[a] < p->birth[b] && plan->offset[a] <= address &&
            address < end_of(p, plan, a) && (last == MPL_NONE || p->birth[a] > p->birth[last]))
            last = a;
    return last;
}

/* The edge of the allocation graph from a to b, if bytes pass between them. Between ends of buffers
 * nothing changes, so one address stands for all up to the next end. */
static mpl_status put_edge(const drawing *self, const char *panel, const mpl_problem *p,
                           const mpl_plan *plan, mpl_buffer a, mpl_buffer b)
{
    uint64_t bytes = 0, low = UINT64_MAX, high = 0, at, next;
    char text[80];

    for (at = plan->offset[b]; at < end_of(p, plan, b); at = next) {
        next = end_of(p, plan, b);
        for (mpl_buffer c = 0; c < p->n; c++) {
            uint64_t cut[2] = {plan->offset[c], end_of(p, plan, c)};

            for (int i = 0; i < 2; i++)
                if (cut[i] > at && cut[i] < next)
                    next = cut[i];
        }
        if (last_holder(p, plan, b, at) != a)
            continue;
        bytes += next - at;
        low = at < low ? at : low;
        high = next;
    }
    if (bytes == 0 || p->death[a] > p->birth[b])
        return MPL_OK; /* nothing, or in place: they lie over each other */
    snprintf(text, sizeof text, "%.3g", mib(bytes));
    return put(
        self, panel, "edge",
        (double[]){p->death[a] - 0.4, mib(low + high) / 2, p->birth[b] + 0.4, mib(low + high) / 2},
        text);
}

static mpl_status put_plan(const drawing *self, const char *panel, const mpl_planner *planner,
                           const mpl_problem *p)
{
    mpl_ctx *ctx = self->ctx;
    mpl_status st = MPL_OK;
    mpl_run run = mpl_run_default(ctx);
    mpl_plan *plan = NULL;
    char text[80];

    MPL_TRY(mpl_planner_run(planner, &run, p, &plan));
    snprintf(text, sizeof text, "%.40s: %.3g MiB", planner->name, mib(plan->peak_bytes));
    MPL_TRY(put(self, panel, "bound", (double[]){0, mib(plan->bound_bytes), p->n_steps, 0}, text));
    for (mpl_buffer b = 0; b < p->n; b++) {
        MPL_TRY(
            put(self, panel, "box",
                (double[]){p->birth[b], mib(plan->offset[b]), p->death[b], mib(end_of(p, plan, b))},
                label(p, b, text)));
        for (mpl_buffer a = 0; a < p->n; a++)
            MPL_TRY(put_edge(self, panel, p, plan, a, b));
    }
out:
    mpl_plan_free(ctx, plan);
    return st;
}

mpl_status mpl_paper_anatomy(mpl_ctx *ctx, const char *path, mpl_grid *all)
{
    static const char *const head[] = {"panel", "shape", "x", "y", "to x", "to y", "text"};
    static const char *const planners[] = {"greedy_size", "exact"};
    mpl_status st = MPL_OK;
    const drawing d = {ctx, all};
    mpl_options options;
    mpl_job job = {0}, any = {0};

    mpl_options_init(&options);
    all->n_cols = sizeof head / sizeof *head;
    MPL_TRY(mpl_grid_head(ctx, all, head));
    MPL_TRY(mpl_job_open(ctx, &options, path, &job));
    MPL_TRY(mpl_job_problem(ctx, &options, NULL, NULL, &job));
    options.safety = (mpl_safety)MPL_SAFETY(parallel);
    MPL_TRY(mpl_job_open(ctx, &options, path, &any));
    MPL_TRY(mpl_job_problem(ctx, &options, NULL, NULL, &any));
    if (job.source.graph == NULL || job.source.graph->n_ops > MOST || job.problem->n > MOST ||
        any.problem->n != job.problem->n)
        MPL_FAIL(ctx, MPL_EINPUT, "%s: a picture holds a graph of at most %d operations", path,
                 MOST);
    MPL_TRY(put_graph(&d, job.source.graph));
    MPL_TRY(put_lifetimes(&d, job.problem));
    MPL_TRY(put_conflicts(&d, job.problem, any.problem));
    for (size_t i = 0; i < sizeof planners / sizeof *planners; i++)
        MPL_TRY(put_plan(&d, planners[i], mpl_planner_find(planners[i]), job.problem));
out:
    mpl_job_fini(ctx, &job);
    mpl_job_fini(ctx, &any);
    mpl_options_fini(ctx, &options);
    return st;
}
