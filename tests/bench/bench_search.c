/* bench_search.c -- gap to the bound of the search planners after a number of ticks and after one
 * second of CPU time.
 *
 *  bench_search [-s SEED] [-p PLANNER,..] [-o FILE] [LIST ..]
 *
 * One TSV line per list and planner: gap to the bound in percent after 10^6, 10^7, 10^8 ticks, then
 * after the ticks that take one second of this thread (measured on the 10^7), and the time taken.
 * Then a line per planner: the geometric mean of planned bytes over bound, as a gap, and the mean
 * time. A LIST is any command-line graph; by default those present beside the project. */
#include <math.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "graphs/core/file.h"
#include "graphs/source.h"
#include "planners/planner.h"

#define SHARED "build/data"

static const char *const known[] = {
    SHARED "/minimalloc/A.1048576.csv", SHARED "/minimalloc/C.1048576.csv",
    SHARED "/minimalloc/D.1048576.csv", SHARED "/minimalloc/E.1048576.csv",
    SHARED "/minimalloc/G.1048576.csv", SHARED "/minimalloc/I.1048576.csv",
    SHARED "/minimalloc/J.1048576.csv", SHARED "/minimalloc/K.1048576.csv",
    SHARED "/idealloc/G_1.csv",         SHARED "/idealloc/somas_resnet50.csv",
    SHARED "/planted/N3.1342.csv",      SHARED "/planted/Q1.1000.csv",
    SHARED "/planted/Q2.1000.csv",      SHARED "/planted/Q6.1000.csv",
};

enum { N_BUDGETS = 4, MOST_PLANNERS = 16 };

/* Mean over the lists so far, for one planner. */
typedef struct mean {
    double log_ratio[N_BUDGETS], seconds;
    uint32_t n;
} mean;

static double cpu_s(void)
{
    struct timespec now;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

typedef struct outcome {
    double gap_percent, seconds;
    uint64_t ticks;
} outcome;

static mpl_status measure(mpl_ctx *ctx, const mpl_planner *planner, const mpl_problem *p,
                          uint64_t seed, uint64_t ticks, outcome *o)
{
    mpl_status st = MPL_OK;
    const char *key = "attempts", *value = "2147483647"; /* only the ticks end the search */
    mpl_plan *plan = NULL;
    mpl_run run = mpl_run_default(ctx);
    double begin = cpu_s();

    run.seed = seed;
    run.budget_ticks = ticks;
    run.param_key = &key;
    run.param_value = &value;
    run.n_params = planner->params != NULL && strstr(planner->params, key) != NULL;
    MPL_TRY(mpl_planner_run(planner, &run, p, &plan));
    o->seconds = cpu_s() - begin;
    o->ticks = run.ticks;
    o->gap_percent = 100 * ((double)plan->peak_bytes / (double)plan->bound_bytes - 1);
out:
    mpl_plan_free(ctx, plan);
    return st;
}

static void print_row(FILE *to, const char *list, const char *planner, const double gap[N_BUDGETS],
                      double seconds)
{
    fprintf(to, "%s\t%s\t%.3f\t%.3f\t%.3f\t%.3f\t%.2f\n", list, planner, gap[0], gap[1], gap[2],
            gap[3], seconds);
    fflush(to);
}

static void add_to_mean(mean *m, const double gap[N_BUDGETS], double seconds)
{
    for (int i = 0; i < N_BUDGETS; i++)
        m->log_ratio[i] += log1p(gap[i] / 100);
    m->seconds += seconds;
    m->n++;
}

static void print_means(FILE *to, const char *planners, const mean *m)
{
    char names[200], text[60], *rest = names;

    snprintf(names, sizeof names, "%s", planners);
    for (char *name; (name = strsep(&rest, ",")) != NULL && m->n > 0; m++) {
        double gap[N_BUDGETS];

        for (int i = 0; i < N_BUDGETS; i++)
            gap[i] = 100 * expm1(m->log_ratio[i] / m->n);
        snprintf(text, sizeof text, "geometric mean of %" PRIu32, m->n);
        print_row(to, text, name, gap, m->seconds / m->n);
    }
}

static mpl_status bench(mpl_ctx *ctx, const char *list, const char *planners, uint64_t seed,
                        FILE *to, mean *means)
{
    static const uint64_t budget[] = {1000000, 10000000, 100000000};
    mpl_status st = MPL_OK;
    mpl_source source = {0};
    char names[200], *rest = names;
    outcome o[N_BUDGETS] = {0};

    snprintf(names, sizeof names, "%s", planners);
    MPL_TRY(mpl_source_open(ctx, list, &(mpl_read_options){0}, &source));
    if (source.problem == NULL)
        MPL_FAIL(ctx, MPL_EINPUT, "%s is no list of buffers", list);
    for (char *name; (name = strsep(&rest, ",")) != NULL; means++) {
        const mpl_planner *planner = mpl_planner_find(name);
        double gap[N_BUDGETS];

        if (planner == NULL)
            MPL_FAIL(ctx, MPL_EINPUT, "no planner '%s'", name);
        for (int i = 0; i < N_BUDGETS - 1; i++)
            MPL_TRY(measure(ctx, planner, source.problem, seed, budget[i], &o[i]));
        MPL_TRY(measure(ctx, planner, source.problem, seed,
                        (uint64_t)((double)o[1].ticks / o[1].seconds), &o[N_BUDGETS - 1]));
        for (int i = 0; i < N_BUDGETS; i++)
            gap[i] = o[i].gap_percent;
        print_row(to, source.problem->name, name, gap, o[N_BUDGETS - 1].seconds);
        add_to_mean(means, gap, o[N_BUDGETS - 1].seconds);
    }
out:
    mpl_source_fini(ctx, &source);
    return st;
}

static mpl_status bench_all(mpl_ctx *ctx, uint32_t n, char *const *lists, const char *planners,
                            uint64_t seed, FILE *to)
{
    mean means[MOST_PLANNERS] = {0};
    uint32_t n_planners = 1;

    for (const char *c = planners; *c != '\0'; c++)
        n_planners += *c == ',';
    if (n_planners > MOST_PLANNERS)
        return MPL_REFUSE(ctx, "-p: more than %d planners", MOST_PLANNERS);
    fprintf(to, "list\tplanner\tgap_1e6\tgap_1e7\tgap_1e8\tgap_1s\tcpu_s\n");
    for (uint32_t i = 0; i < n; i++)
        MPL_PASS(bench(ctx, lists[i], planners, seed, to, means));
    for (size_t i = 0; n == 0 && i < sizeof known / sizeof *known; i++)
        if (access(known[i], R_OK) == 0)
            MPL_PASS(bench(ctx, known[i], planners, seed, to, means));
        else
            fprintf(stderr, "skip: no %s here\n", known[i]);
    print_means(to, planners, means);
    return MPL_OK;
}

int main(int argc, char **argv)
{
    const char *planners = "greedy_size,hill_climb,local_search,beam,exact,portfolio", *path = NULL;
    uint64_t seed = 1;
    mpl_status st = MPL_OK;
    mpl_new_file file = {0};
    mpl_ctx ctx;

    for (int c; (c = getopt(argc, argv, "s:p:o:")) != -1;) {
        if (c == 's')
            seed = strtoull(optarg, NULL, 10);
        else if (c == 'p')
            planners = optarg;
        else if (c == 'o')
            path = optarg;
        else
            return 2;
    }
    ctx = mpl_ctx_default();
    if (path != NULL)
        MPL_TRY(mpl_file_begin(&ctx, path, &file));
    MPL_TRY(bench_all(&ctx, (uint32_t)(argc - optind), argv + optind, planners, seed,
                      path != NULL ? file.stream : stdout));
    if (path != NULL)
        MPL_TRY(mpl_file_commit(&ctx, &file));
out:
    mpl_file_end(&ctx, &file);
    if (st != MPL_OK)
        fprintf(stderr, "bench_search: %s\n", ctx.message);
    return mpl_status_exit(st);
}
