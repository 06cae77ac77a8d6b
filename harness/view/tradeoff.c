/* tradeoff.c -- time, or work, against memory as a curve. See tradeoff.h. */
#include "harness/view/tradeoff.h"

#include <stdlib.h>

#include "graphs/core/file.h"
#include "graphs/core/size.h"
#include "harness/view/gnuplot.h"
#include "harness/cli/quote.h"
#include "harness/rows/rows.h"

enum { BUDGETS = 12 };
static const double MIB = 1048576;

typedef struct point {
    double mib, work, ms; /* work: added to that of one run */
    char how[40];         /* --recompute of its row */
} point;

typedef struct curve {
    uint32_t n;
    size_t cap;
    point *point;
    bool measured; /* ms is set: points are rows of executed plans */
    char source[300];
} curve;

static mpl_status add_point(mpl_ctx *ctx, curve *c, const mpl_recompute_found *found, bool quiet)
{
    double all = (double)found->facts.all_work;
    point p = {.mib = (double)found->peak_bytes / MIB};

    p.work = all > 0 ? (all + (double)found->facts.extra_work) / all : 1;
    if (!quiet)
        printf("peak live %16s  work %.3f  %" PRIu32 " operations again, %.3f of a forward part\n",
               mpl_sized(found->peak_bytes).text, p.work, found->facts.n_again,
               (double)found->facts.extra_work / (double)mpl_max_u64(found->facts.forward_work, 1));
    MPL_PASS(mpl_reserve(ctx, c->point, c->cap, (size_t)c->n + 1));
    c->point[c->n++] = p;
    return MPL_OK;
}

/* Tries one budget; *is_there: a solution was found. */
static mpl_status try_budget(mpl_ctx *ctx, const mpl_graph *g, const mpl_problem_options *po,
                             uint64_t budget, mpl_recompute_found *found, bool *is_there)
{
    mpl_graph *made = NULL;
    mpl_recompute_task task = {.ctx = ctx, .g = g, .options = po, .budget = budget};
    mpl_status st = mpl_recompute(mpl_recompute_find("sqrt"), &task, &made);

    *found = task.found;
    mpl_graph_free(ctx, made);
    *is_there = st == MPL_OK;
    return st == MPL_ELIMIT || st == MPL_EINVALID ? MPL_OK : st;
}

static mpl_status find_points(mpl_ctx *ctx, const mpl_options *options, const mpl_job *job,
                              curve *c)
{
    const mpl_problem_options po = mpl_asked_problem(options);
    mpl_recompute_found least, found;
    const mpl_graph *g = job->source.graph;
    bool is_there;

    if (g == NULL)
        return MPL_REFUSE(ctx, "--tradeoff: %s is a list of buffers, no training graph", job->text);
    MPL_PASS(try_budget(ctx, g, &po, MPL_LEAST_PEAK, &least, &is_there));
    for (uint32_t i = 0; i <= BUDGETS && is_there; i++) {
        uint64_t range = least.before_bytes - mpl_min_u64(least.peak_bytes, least.before_bytes);
        uint64_t budget = least.before_bytes - (uint64_t)((double)range * i / BUDGETS);
        bool found_one;

        MPL_PASS(try_budget(ctx, g, &po, budget, &found, &found_one));
        if (found_one)
            MPL_PASS(add_point(ctx, c, &found, options->quiet));
    }
    if (c->n == 0)
        return MPL_ERROR(ctx, MPL_ELIMIT, "--tradeoff: nothing was found for %s", job->text);
    snprintf(c->source, sizeof c->source, "computed by segments, nothing run");
    return MPL_OK;
}

static mpl_status compute_points(mpl_ctx *ctx, const mpl_options *options, const char *graph,
                                 curve *c)
{
    mpl_status st = MPL_OK;
    mpl_options plain = *options;
    mpl_job job = {0};

    plain.recompute = "none";
    MPL_TRY(mpl_job_open(ctx, &plain, graph, &job));
    MPL_TRY(find_points(ctx, &plain, &job, c));
out:
    mpl_job_fini(ctx, &job);
    return st;
}

/* ---- from rows ---- */

/* Key fields of a run that are equal along the curve. */
static uint32_t same_fields(mpl_field same[MPL_N_FIELDS])
{
    uint32_t n = 0;

    for (mpl_field f = 0; f < MPL_N_FIELDS; f++)
        if (mpl_field_table[f].key && f != MPL_FIELD_recompute && f != MPL_FIELD_graph_hash)
            same[n++] = f;
    return n;
}

static bool is_measured(const mpl_record *row, const char *graph, const char *backend)
{
    const char *its_graph = mpl_record_get_text(row, MPL_FIELD_graph);
    const char *its_backend = mpl_record_get_text(row, MPL_FIELD_backend);
    uint64_t planned;
    int64_t ns;

    return its_graph != NULL && strcmp(its_graph, graph) == 0 && its_backend != NULL &&
           (backend == NULL || strcmp(its_backend, backend) == 0) &&
           mpl_record_get_int(row, MPL_FIELD_planned_bytes, &planned) &&
           mpl_record_median(row, MPL_FIELD_run_ns, &ns);
}

static mpl_status add_row(mpl_ctx *ctx, curve *c, const mpl_record *row)
{
    uint64_t planned = 0, all = 0, extra = 0;
    int64_t ns = 0;
    const char *how = mpl_record_get_text(row, MPL_FIELD_recompute);
    bool told = mpl_record_get_int(row, MPL_FIELD_all_work, &all) && all > 0 &&
                mpl_record_get_int(row, MPL_FIELD_extra_work, &extra);
    point p = {.work = 1};

    if (how != NULL && !told)
        return MPL_REFUSE(ctx, "--tradeoff: a row with --recompute %.40s does not say its work",
                          how);
    mpl_record_get_int(row, MPL_FIELD_planned_bytes, &planned);
    mpl_record_median(row, MPL_FIELD_run_ns, &ns);
    p.mib = (double)planned / MIB;
    p.ms = (double)ns / 1e6;
    p.work = told ? ((double)all + (double)extra) / (double)all : 1;
    snprintf(p.how, sizeof p.how, "%s", how != NULL ? how : "none");
    MPL_PASS(mpl_reserve(ctx, c->point, c->cap, (size_t)c->n + 1));
    c->point[c->n++] = p;
    return MPL_OK;
}

static int by_memory(const void *a, const void *b)
{
    const point *x = a, *y = b;

    if (x->mib != y->mib)
        return x->mib < y->mib ? -1 : 1;
    if (x->ms != y->ms)
        return x->ms < y->ms ? -1 : 1;
    return strcmp(x->how, y->how);
}

/* Reads the executed runs of the graph, equal to the first one in all but recomputation. Times of
 * different builds or machines do not belong on one curve. */
static mpl_status read_points(mpl_ctx *ctx, const mpl_options *options, const char *graph, curve *c)
{
    mpl_status st = MPL_OK;
    mpl_rows rows = {0};
    const mpl_record *first = NULL;
    mpl_field same[MPL_N_FIELDS];
    char origin[MPL_ORIGIN_SIZE], other[MPL_ORIGIN_SIZE], planner[120];
    uint32_t n = same_fields(same);

    for (uint32_t i = 0; i < options->rows.n; i++)
        MPL_TRY(mpl_rows_read(ctx, options->rows.item[i], &rows));
    MPL_TRY(mpl_rows_last(ctx, &rows));
    for (uint32_t i = 0; i < rows.n; i++) {
        if (!is_measured(rows.row[i], graph, options->backend))
            continue;
        first = first != NULL ? first : rows.row[i];
        if (!mpl_rows_alike(first, rows.row[i], n, same))
            continue;
        if (strcmp(mpl_row_origin(first, origin), mpl_row_origin(rows.row[i], other)) != 0)
            MPL_FAIL(ctx, MPL_EINPUT,
                     "--tradeoff: the rows of %s are of different builds or machines", graph);
        MPL_TRY(add_row(ctx, c, rows.row[i]));
    }
    if (first == NULL)
        MPL_FAIL(ctx, MPL_EINPUT, "--tradeoff: no row of an executed %s%s%s", graph,
                 options->backend != NULL ? " on " : "",
                 options->backend != NULL ? options->backend : "");
    c->measured = true;
    qsort(c->point, c->n, sizeof *c->point, by_memory);
    for (const point *p = c->point; p < c->point + c->n && !options->quiet; p++)
        printf("planned %16s  run %10.3f ms  work %.3f  %s\n",
               mpl_sized((uint64_t)(p->mib * MIB + 0.5)).text, p->ms, p->work, mpl_shown(p->how));
    snprintf(c->source, sizeof c->source, "measured on %s, plans of %s",
             mpl_record_get_text(first, MPL_FIELD_backend), mpl_planner_label(first, planner));
out:
    mpl_rows_fini(ctx, &rows);
    return st;
}

/* ---- the picture ---- */

/* Whether another point has no more memory and no more of the line's quantity, and less of one. */
static bool is_beaten(const curve *self, uint32_t i)
{
    const point *p = &self->point[i];
    double cost = self->measured ? p->ms : p->work;

    for (uint32_t k = 0; k < self->n; k++) {
        const point *q = &self->point[k];
        double other = self->measured ? q->ms : q->work;

        if (q->mib <= p->mib && other <= cost && (q->mib < p->mib || other < cost))
            return true;
    }
    return false;
}

static void put_points(FILE *to, const curve *c, const char *name, bool best)
{
    fprintf(to, "%s << EOD\n", name);
    for (uint32_t i = 0; i < c->n; i++)
        if (!best || !is_beaten(c, i)) {
            fprintf(to, "%.17g %.17g %.17g ", c->point[i].mib, c->point[i].work, c->point[i].ms);
            mpl_put_gnuplot_cell(to, c->measured ? c->point[i].how : "-");
            fputc('\n', to);
        }
    fprintf(to, "EOD\n");
}

static void put_script(FILE *to, const char *graph, const curve *c, const char *picture, bool png)
{
    static const char work[] = "work beside that of one run";

    char title[151];

    snprintf(title, sizeof title, "%s", graph);
    fprintf(
        to, "set terminal %s\nset output ",
        png ? "pngcairo size 1600,1000 fontscale 1.9 linewidth 1.6 noenhanced background '#ffffff'"
            : "svg size 800,500 font 'sans-serif,12' noenhanced background '#ffffff'");
    mpl_put_gnuplot(to, picture);
    fprintf(to, "\nset title ");
    mpl_put_gnuplot(to, title);
    fprintf(to, ".\"\\n\".");
    mpl_put_gnuplot(to, c->source);
    fprintf(
        to,
        "\nset border %d\nset tics out nomirror\nset grid lc rgb '#dddddd'\nset xlabel '%s [MiB]'\n"
        "set xrange [0:*]\n",
        c->measured ? 11 : 3, c->measured ? "planned" : "peak live");
    if (c->measured)
        fprintf(to,
                "set ylabel 'run, median [ms]'\nset yrange [0:*]\nset y2label '%s'\nset y2tics\n"
                "set y2range [0:*]\nset key bottom left\n",
                work);
    else
        fprintf(to, "set ylabel '%s'\nset yrange [0.98:*]\nset key off\n", work);
    put_points(to, c, "$all", false);
    put_points(to, c, "$best", true);
    fprintf(to, "plot ");
    if (c->measured)
        fprintf(to, "$best using 1:3 with lines lw 1.5 lc rgb '#0072b2' title 'time, left', "
                    "$all using 1:3 with points pt 7 ps 0.8 lc rgb '#0072b2' notitle, "
                    "$all using 1:3:4 with labels offset 0,0.8 notitle, "
                    "$all using 1:2 axes x1y2 with points pt 4 ps 0.8 lc rgb '#e69f00' title "
                    "'work, right'\n");
    else
        fprintf(to, "$best using 1:2 with linespoints pt 7 ps 0.8 lw 1.5 lc rgb '#0072b2'\n");
}

static mpl_status draw(mpl_ctx *ctx, const char *graph, const curve *c, const char *path, bool png)
{
    mpl_status st = MPL_OK;
    mpl_picture picture = {0};
    mpl_new_file out_file = {0};
    char *data = NULL;
    size_t size;

    MPL_TRY(mpl_picture_begin(ctx, &picture));
    MPL_TRY(mpl_file_begin(ctx, path, &out_file));
    put_script(picture.script, graph, c, picture.path, png);
    MPL_TRY(mpl_picture_draw(ctx, &picture, &data, &size));
    fwrite(data, 1, size, out_file.stream);
    MPL_TRY(mpl_file_commit(ctx, &out_file));
out:
    mpl_file_end(ctx, &out_file);
    mpl_free(ctx, data);
    mpl_picture_end(&picture);
    return st;
}

mpl_status mpl_tradeoff_draw(mpl_ctx *ctx, const mpl_options *options, const char *graph,
                             const char *path, bool png)
{
    mpl_status st = MPL_OK;
    curve c = {0};

    MPL_TRY(options->rows.n > 0 ? read_points(ctx, options, graph, &c)
                                : compute_points(ctx, options, graph, &c));
    MPL_TRY(draw(ctx, graph, &c, path, png));
    if (!options->quiet)
        printf("%s: %s against %s; %s\n", mpl_shown(path), c.measured ? "time, and work" : "work",
               c.measured ? "planned memory" : "peak live bytes", mpl_shown(c.source));
out:
    mpl_free(ctx, c.point);
    return st;
}
