/* cmd_plot.c -- memplan plot: draws a plan with time across, address up and one rectangle a buffer.
 * Writes SVG or PNG by gnuplot, or HTML with a script (viewer.c). gnuplot draws the boxes of one
 * data set in order; in the SVG each then gets a <title>, which browsers show on hover. */
#include <math.h>

#include "graphs/core/file.h"
#include "graphs/problem/bounds/bounds.h"
#include "harness/cli/command.h"
#include "harness/view/gnuplot.h"
#include "harness/report/grid.h"
#include "harness/view/tradeoff.h"
#include "harness/view/unroll.h"
#include "harness/view/viewer.h"

enum {
    STAIRS = 240, /* maximum steps of the live-bytes curve */
    MANY = 400,   /* number of boxes from which borders are thin */
    LABELS = 40,  /* maximum number of named rounds */
    WIDE = 76     /* characters of a title that fit one line */
};

/* Unit of addresses and sizes. */
typedef struct scale {
    const char *name;
    double bytes;
} scale;

static scale scale_of(const mpl_job *job, const mpl_plan *plan)
{
    uint64_t top = mpl_max_u64(plan->peak_bytes, job->bound_bytes);

    return top >= 1u << 20   ? (scale){"MiB", 1 << 20}
           : top >= 1u << 10 ? (scale){"KiB", 1 << 10}
                             : (scale){"bytes", 1};
}

static const char *planner_of(const mpl_record *row)
{
    const char *planner = row != NULL ? mpl_record_get_text(row, MPL_FIELD_planner) : NULL;

    return planner != NULL ? planner : "plan";
}

/* "nnc_2019, parallel: 7.66 MiB planned, .."; figures holds 300 bytes. */
static void figures_of(const mpl_job *job, const mpl_record *row, const mpl_plan *plan,
                       char *figures)
{
    scale in = scale_of(job, plan);
    int digits = in.bytes > 1 ? 2 : 0;
    char gap[32];

    snprintf(figures, 300, "%.40s%s: %.*f %s planned, bound %.*f %s, %s", planner_of(row),
             job->problem->before != NULL ? ", parallel" : "", digits,
             (double)plan->peak_bytes / in.bytes, in.name, digits,
             (double)job->bound_bytes / in.bytes, in.name,
             plan->peak_bytes == job->bound_bytes
                 ? "at the bound"
                 : mpl_gap_text(plan->peak_bytes, job->bound_bytes, gap));
}

/* Writes the title above the picture on one line if it fits, else on two; the graph's name is cut
 * if even two are too short. */
static void put_heading(FILE *to, const mpl_job *job, const mpl_record *row, const mpl_plan *plan)
{
    char figures[300], title[500];
    bool one;

    figures_of(job, row, plan, figures);
    one = snprintf(title, sizeof title, "%.150s, %s", job->text, figures) <= WIDE;
    if (!one)
        snprintf(title, sizeof title, "%.*s%s", WIDE - 2, job->text,
                 strlen(job->text) > WIDE - 2 ? ".." : "");
    fprintf(to, "set tmargin %d\nset label 1 ", one ? 4 : 5);
    mpl_put_gnuplot(to, title);
    fprintf(to, " at graph 0, graph %s left\n", one ? "1.1" : "1.16");
    if (!one) {
        fprintf(to, "set label 2 ");
        mpl_put_gnuplot(to, figures);
        fprintf(to, " at graph 0, graph 1.1 left\n");
    }
}

static void put_axes(FILE *to, const mpl_job *job, const mpl_record *row, const mpl_plan *plan,
                     const char *unit, uint32_t n_columns, bool png)
{
    const mpl_problem *p = job->problem;
    const scale in = scale_of(job, plan);
    uint64_t bound = job->bound_bytes, top = mpl_max_u64(mpl_max_u64(plan->peak_bytes, bound), 1);
    uint64_t least = UINT64_MAX, most = 1;
    double lowest;

    for (mpl_buffer b = 0; b < p->n; b++) {
        least = mpl_min_u64(least, p->bytes[b]);
        most = mpl_max_u64(most, p->bytes[b]);
    }
    least = mpl_min_u64(least, most);
    fprintf(
        to, "set terminal %s\n",
        png ? "pngcairo size 1600,1000 fontscale 1.9 linewidth 1.6 noenhanced background '#ffffff'"
            : "svg size 800,500 font 'sans-serif,12' noenhanced background '#ffffff'");
    put_heading(to, job, row, plan);
    lowest = pow(10, floor(log10((double)least / in.bytes) - 0.01));
    if (lowest < 0.00099) /* wide numbers beside the colours */
        fprintf(to, "set rmargin at screen 0.8\n");
    fprintf(
        to,
        "set key at graph 1, graph 1.02 right bottom horizontal samplen 2\n"
        "set xlabel '%s'\nset ylabel 'address [%s]'\nset cblabel 'buffer size [%s]'\n"
        "set xrange [0:%" PRIu32 "]\nset yrange [0:%.17g]\n"
        "set tics out nomirror\nset border 3\nset style fill solid 1.0 border lc rgb '#101820'\n"
        /* brightness falls steadily, for greyscale and colour-blind readers */
        "set palette defined (0 '#fdf0b0', 0.25 '#bcc596', 0.5 '#7f9f98', 0.75 '#4f789c', 1 "
        "'#2c5286')\n"
        "set logscale cb 10\nset cbrange [%.17g:%.17g]\nset format cb '%%g'\n",
        unit, in.name, in.name, n_columns, (double)top / in.bytes * 1.04, lowest,
        pow(10, ceil(log10((double)most / in.bytes))));
}

/* Writes the live bytes as stairs. With many steps it writes the maximum of each group, so that the
 * line hides nothing below it. */
static uint32_t put_live(FILE *to, const scale *in, const uint64_t *live, uint32_t n_steps)
{
    uint32_t few = (n_steps + STAIRS - 1) / STAIRS;

    fprintf(to, "$live << EOD\n");
    for (uint32_t s = 0; s < n_steps; s += few) {
        uint32_t end = n_steps - s < few ? n_steps : s + few;
        uint64_t most = 0;

        for (uint32_t k = s; k < end; k++)
            most = mpl_max_u64(most, live[k]);
        fprintf(to, "%" PRIu32 " %.17g\n%" PRIu32 " %.17g\n", s, (double)most / in->bytes, end,
                (double)most / in->bytes);
    }
    fprintf(to, "EOD\n");
    return few;
}

/* Makes a box of each buffer of pool 0; with control flow, of each value in a round or branch. */
static mpl_status boxes_of(mpl_ctx *ctx, const mpl_job *job, const mpl_plan *plan,
                           mpl_unrolled *out, const char **unit)
{
    mpl_status st = MPL_OK;
    const mpl_problem *p = job->problem;
    mpl_spans_across across = {0};

    if (job->map != NULL && job->map->places != NULL) {
        *unit = "time [step], rounds of loops and branches side by side";
        return mpl_unroll(ctx, job->source.graph, job->order, p, job->map, plan, out);
    }
    MPL_TRY(mpl_across(ctx, p, &across));
    *unit = across.unit;
    MPL_TRY(mpl_reserve(ctx, out->box, out->box_cap, p->n));
    for (mpl_buffer b = 0; b < p->n; b++)
        if (p->pool[b] == 0)
            out->box[out->n_boxes++] =
                (mpl_box){across.from[b], across.to[b], plan->offset[b], p->bytes[b], MPL_NONE, b};
    MPL_TRY(mpl_reserve(ctx, out->step, out->step_cap, across.n_steps));
    for (; out->n_columns < across.n_steps; out->n_columns++)
        out->step[out->n_columns] = out->n_columns;
out:
    mpl_across_fini(ctx, &across);
    return st;
}

/* Marks the starts of rounds and branches. */
static void put_marks(FILE *to, const mpl_graph *g, const mpl_unrolled *unrolled)
{
    for (uint32_t i = 0; i < unrolled->n_marks; i++) {
        const mpl_mark *mark = &unrolled->mark[i];
        bool loop = g->op_kind[g->block_owner[mark->block]] == MPL_OP_while;
        char text[120];

        fprintf(to,
                "set arrow from %" PRIu32 ", graph 0 to %" PRIu32
                ", graph 1 nohead front dt %d lw 0.8 lc rgb '%s'\n",
                mark->column, mark->column, loop ? 3 : 4, loop ? "#404040" : "#009e73");
        if (unrolled->n_marks > LABELS)
            continue;
        snprintf(text, sizeof text, "%.60s %s %" PRIu32, g->block_name[mark->block],
                 loop ? "round" : "branch", mark->number);
        fprintf(to, "set label ");
        mpl_put_gnuplot(to, text);
        fprintf(to, " at %" PRIu32 ", graph 0.99 rotate by 90 right offset 0.6,0 font ',8' front\n",
                mark->column);
    }
}

/* Draws the boxes, the live bytes as a line, and the bound as a dashed line. */
static mpl_status put_script(mpl_ctx *ctx, FILE *to, const mpl_job *job, const mpl_record *row,
                             const mpl_plan *plan, const mpl_unrolled *unrolled, const char *unit,
                             const char *picture, bool png)
{
    mpl_status st = MPL_OK;
    const mpl_problem *p = job->problem;
    uint64_t *live = NULL, *across = NULL, peak;
    const scale in = scale_of(job, plan);
    uint32_t few;
    char what[64];

    MPL_TRY(mpl_new(ctx, live, p->n_steps));
    MPL_TRY(mpl_new(ctx, across, unrolled->n_columns));
    if (p->before == NULL)
        MPL_TRY(mpl_peak_live(ctx, p, 0, &peak, live, NULL));
    for (uint32_t i = 0; i < unrolled->n_columns && p->before == NULL; i++)
        across[i] = live[unrolled->step[i]];
    put_axes(to, job, row, plan, unit, unrolled->n_columns, png);
    put_marks(to, job->source.graph, unrolled);
    fprintf(to, "set output ");
    mpl_put_gnuplot(to, picture);
    fprintf(to, "\n$buffers << EOD\n");
    for (uint32_t i = 0; i < unrolled->n_boxes; i++)
        fprintf(to, "%" PRIu32 " %" PRIu32 " %.17g %.17g %.17g\n", unrolled->box[i].from,
                unrolled->box[i].to, (double)unrolled->box[i].offset / in.bytes,
                (double)(unrolled->box[i].offset + unrolled->box[i].bytes) / in.bytes,
                (double)unrolled->box[i].bytes / in.bytes);
    fprintf(to, "EOD\n");
    few = put_live(to, &in, across, p->before == NULL ? unrolled->n_columns : 0);
    snprintf(what, sizeof what, "live bytes");
    if (few > 1)
        snprintf(what, sizeof what, "live bytes, largest of %" PRIu32 " steps", few);
    fprintf(to,
            "plot $buffers using (($1+$2)/2):(($3+$4)/2):1:2:3:4:5 with boxxyerror lw %s fillcolor "
            "palette "
            "notitle, "
            "%s%s%s%.17g with lines dt 2 lw 1.5 lc rgb '#000000' title 'bound'\n",
            unrolled->n_boxes > MANY ? "0.4" : "1",
            p->before == NULL ? "$live using 1:2 with lines lw 1.2 lc rgb '#d55e00' title '" : "",
            p->before == NULL ? what : "", p->before == NULL ? "', " : "",
            (double)job->bound_bytes / in.bytes);
out:
    mpl_free_each(ctx, live, across);
    return st;
}

static void put_title(FILE *to, const mpl_job *job, const mpl_box *box)
{
    const mpl_problem *p = job->problem;
    char label[24];

    mpl_put_markup(to, box->value != MPL_NONE ? job->source.graph->value_name[box->value]
                                              : mpl_buffer_label(p, box->buffer, label));
    fprintf(to, "\n%" PRIu64 " bytes at %" PRIu64, box->bytes, box->offset);
    if (box->value == MPL_NONE && p->before == NULL)
        fprintf(to, "\nsteps [%" PRIu32 ", %" PRIu32 ")", p->birth[box->buffer],
                p->death[box->buffer]);
}

/* Copies the SVG with a title in each box; *n: number of titles. */
static void put_titles(FILE *to, const char *svg, const mpl_job *job, const mpl_unrolled *unrolled,
                       uint32_t *n)
{
    const char *at = svg, *plot = strstr(svg, "<g id=\"gnuplot_plot_1\""), *polygon = plot, *end;

    for (*n = 0; polygon != NULL && *n < unrolled->n_boxes; ++*n) {
        polygon = strstr(polygon, "<polygon");
        end = polygon != NULL ? strstr(polygon, "/>") : NULL;
        if (end == NULL)
            break;
        fwrite(at, 1, (size_t)(end - at), to);
        fputs("><title>", to);
        put_title(to, job, &unrolled->box[*n]);
        fputs("</title></polygon>", to);
        at = polygon = end + 2;
    }
    fputs(at, to);
}

static mpl_status draw(mpl_ctx *ctx, const mpl_job *job, const mpl_record *row,
                       const mpl_plan *plan, const char *path, bool png)
{
    mpl_status st = MPL_OK;
    mpl_picture picture = {0};
    mpl_new_file out_file = {0};
    char *data = NULL;
    size_t size;
    uint32_t drawn;
    mpl_unrolled u = {0};
    const char *unit = "";

    MPL_TRY(mpl_picture_begin(ctx, &picture));
    /* First, so that an absent folder is reported at once. */
    MPL_TRY(mpl_file_begin(ctx, path, &out_file));
    MPL_TRY(boxes_of(ctx, job, plan, &u, &unit));
    MPL_TRY(put_script(ctx, picture.script, job, row, plan, &u, unit, picture.path, png));
    MPL_TRY(mpl_picture_draw(ctx, &picture, &data, &size));
    if (png) {
        fwrite(data, 1, size, out_file.stream);
    } else {
        put_titles(out_file.stream, data, job, &u, &drawn);
        if (drawn < u.n_boxes)
            MPL_FAIL(ctx, MPL_EUNAVAIL,
                     "gnuplot drew no box %" PRIu32 " of %" PRIu32
                     "; its version is not one that memplan knows",
                     drawn, u.n_boxes);
    }
    MPL_TRY(mpl_file_commit(ctx, &out_file));
out:
    mpl_file_end(ctx, &out_file);
    mpl_unrolled_fini(ctx, &u);
    mpl_free(ctx, data);
    mpl_picture_end(&picture);
    return st;
}

static mpl_status write_page(mpl_ctx *ctx, const mpl_job *job, const mpl_record *row,
                             const mpl_plan *plan, const char *path)
{
    mpl_status st = MPL_OK;
    mpl_new_file file = {0};
    char figures[300], title[500];

    MPL_TRY(mpl_file_begin(ctx, path, &file));
    figures_of(job, row, plan, figures);
    snprintf(title, sizeof title, "%.150s, %s", job->text, figures);
    MPL_TRY(mpl_viewer_write(ctx, file.stream, title, planner_of(row), job, plan, NULL));
    MPL_TRY(mpl_file_commit(ctx, &file));
out:
    mpl_file_end(ctx, &file);
    return st;
}

mpl_status mpl_cmd_plot(mpl_ctx *ctx, mpl_options *options)
{
    mpl_status st = MPL_OK;
    const char *suffix = options->output != NULL ? strrchr(options->output, '.') : NULL;
    bool png = suffix != NULL && strcmp(suffix, ".png") == 0;
    bool page = suffix != NULL && strcmp(suffix, ".html") == 0;
    mpl_made made = {0};

    if (suffix == NULL || (!png && !page && strcmp(suffix, ".svg") != 0))
        MPL_FAIL(ctx, MPL_EINPUT, "plot: -o FILE.svg, FILE.png or FILE.html is needed");
    if (options->rows.n > 0 && !options->tradeoff)
        MPL_FAIL(ctx, MPL_EINPUT, "plot: --rows is for --tradeoff");
    if (options->tradeoff && page)
        MPL_FAIL(ctx, MPL_EINPUT, "plot --tradeoff: -o FILE.svg or FILE.png is needed");
    if (options->tradeoff) {
        MPL_TRY(mpl_tradeoff_draw(ctx, options, options->args.item[0], options->output, png));
        goto out;
    }
    MPL_TRY(mpl_make(ctx, options, options->args.item[0], MPL_TO_PLAN, &made));
    if (page)
        MPL_TRY(write_page(ctx, &made.job, made.row, made.plan, options->output));
    else
        MPL_TRY(draw(ctx, &made.job, made.row, made.plan, options->output, png));
out:
    mpl_made_fini(ctx, &made);
    return st;
}
