/* tradeoff.c -- work against memory as a curve. See tradeoff.h. */
#include "harness/tradeoff.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "graphs/base/file.h"
#include "harness/gnuplot.h"

enum { BUDGETS = 12 };
static const double MIB = 1048576;

typedef struct curve {
    uint32_t n;
    double mib[BUDGETS + 2], work[BUDGETS + 2]; /* work: beside that of one run */
} curve;

static void add_point(curve *c, const mpl_recompute_found *f, bool quiet)
{
    double all = (double)f->facts.all_work;

    c->mib[c->n] = (double)f->peak_bytes / MIB;
    c->work[c->n] = all > 0 ? (all + (double)f->facts.extra_work) / all : 1;
    if (!quiet)
        printf("peak live %12.3f MiB  work %.3f  %" PRIu32 " operations again, %.3f of a forward part\n",
               c->mib[c->n], c->work[c->n], f->facts.n_again,
               (double)f->facts.extra_work / (double)mpl_max_u64(f->facts.forward_work, 1));
    c->n++;
}

/* One budget; where nothing is found there is no point. */
static mpl_status try_budget(mpl_ctx *ctx, const mpl_graph *g, const mpl_problem_options *po, uint64_t budget,
                             mpl_recompute_found *found, bool *is_there)
{
    mpl_graph *made = NULL;
    mpl_status st = mpl_recompute(ctx, mpl_recompute_find("sqrt"), g, po, budget, &made, found);

    mpl_graph_free(ctx, made);
    *is_there = st == MPL_OK;
    return st == MPL_ELIMIT || st == MPL_EINVALID ? MPL_OK : st;
}

static mpl_status find_points(mpl_ctx *ctx, const mpl_options *options, const mpl_job *job, curve *c)
{
    mpl_status st = MPL_OK;
    mpl_problem_options po;
    mpl_recompute_found least, found;
    const mpl_graph *g = job->source.graph;
    bool is_there;

    if (g == NULL)
        MPL_FAIL(ctx, MPL_EINPUT, "--tradeoff: %s is a list of buffers, no training graph", job->text);
    MPL_TRY(mpl_job_problem_options(ctx, options, &po));
    MPL_TRY(try_budget(ctx, g, &po, MPL_LEAST_PEAK, &least, &is_there));
    for (uint32_t i = 0; i <= BUDGETS && is_there; i++) {
        uint64_t range = least.before_bytes - mpl_min_u64(least.peak_bytes, least.before_bytes);
        uint64_t budget = least.before_bytes - (uint64_t)((double)range * i / BUDGETS);
        bool found_one;

        MPL_TRY(try_budget(ctx, g, &po, budget, &found, &found_one));
        if (found_one)
            add_point(c, &found, options->quiet);
    }
    if (c->n == 0)
        MPL_FAIL(ctx, MPL_ELIMIT, "--tradeoff: nothing was found for %s", job->text);
out:
    return st;
}

static void put_script(FILE *to, const mpl_job *job, const curve *c, const char *picture, bool png)
{
    fprintf(
        to,
        "set terminal %s\nset output '%s'\nset border 3\nset tics out nomirror\nset grid lc rgb '#dddddd'\n"
        "set title \"%.150s\"\nset xlabel 'peak live [MiB]'\nset ylabel 'work beside that of one run'\n"
        "set xrange [0:*]\nset yrange [0.98:*]\nset key off\n$curve << EOD\n",
        png ? "pngcairo size 1600,1000 fontscale 1.9 linewidth 1.6 noenhanced background '#ffffff'"
            : "svg size 800,500 font 'sans-serif,12' noenhanced background '#ffffff'",
        picture, job->text);
    for (uint32_t i = 0; i < c->n; i++)
        fprintf(to, "%.17g %.17g\n", c->mib[i], c->work[i]);
    fprintf(to, "EOD\nplot $curve with linespoints pt 7 ps 0.8 lw 1.5 lc rgb '#0072b2'\n");
}

static mpl_status draw(mpl_ctx *ctx, const mpl_job *job, const curve *c, const char *path, bool png)
{
    mpl_status st = MPL_OK;
    char script[256], picture[sizeof script + 8] = "", *data = NULL;
    mpl_new_file out_file = {0};
    size_t size;
    FILE *f = NULL;
    int fd;

    snprintf(script, sizeof script, "%s/memplan-XXXXXX.gp", mpl_temporary_folder());
    fd = mkstemps(script, 3);
    f = fd >= 0 ? fdopen(fd, "w") : NULL;
    if (f == NULL)
        MPL_FAIL(ctx, MPL_EINPUT, "%s: %s", script, strerror(errno));
    snprintf(picture, sizeof picture, "%s.out", script);
    MPL_TRY(mpl_file_begin(ctx, path, &out_file));
    put_script(f, job, c, picture, png);
    if (fflush(f) != 0 || ferror(f))
        MPL_FAIL(ctx, MPL_EINPUT, "%s: %s", script, strerror(errno));
    MPL_TRY(mpl_gnuplot(ctx, NULL, script));
    MPL_TRY(mpl_file_read(ctx, picture, &data, &size));
    fwrite(data, 1, size, out_file.stream);
    MPL_TRY(mpl_file_commit(ctx, &out_file));
out:
    mpl_file_end(ctx, &out_file);
    mpl_free(ctx, data);
    if (f != NULL)
        fclose(f);
    if (fd >= 0)
        unlink(script);
    if (picture[0] != '\0')
        unlink(picture);
    return st;
}

mpl_status mpl_tradeoff_draw(mpl_ctx *ctx, const mpl_options *options, const char *graph, const char *path,
                             bool png)
{
    mpl_status st = MPL_OK;
    mpl_options plain = *options;
    mpl_job job = {0};
    curve c = {0};

    plain.recompute = "none";
    MPL_TRY(mpl_job_open(ctx, &plain, graph, &job));
    MPL_TRY(find_points(ctx, &plain, &job, &c));
    MPL_TRY(draw(ctx, &job, &c, path, png));
out:
    mpl_job_fini(ctx, &job);
    return st;
}
