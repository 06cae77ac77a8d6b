/* bench_search.c -- how far from the bound the searching planners are, after so many ticks and after one second of CPU time.
 *
 *   bench_search [-s SEED] [-p PLANNER,..] [LIST ..]
 *
 * One TSV line a list and planner: gap to the bound in percent after 10^6, 10^7, 10^8 ticks, then after the ticks that take a second
 * of this thread (as measured on the 10^7), and what they took. A LIST is what the command line takes for a graph; without
 * any, those beside the project that are there. */
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "graphs/source.h"
#include "planners/planner.h"

#define SHARED "../shared/data"

static const char *const known[] = {
    SHARED "/minimalloc/A.1048576.csv", SHARED "/minimalloc/C.1048576.csv",
    SHARED "/minimalloc/D.1048576.csv", SHARED "/minimalloc/E.1048576.csv",
    SHARED "/minimalloc/G.1048576.csv", SHARED "/minimalloc/I.1048576.csv",
    SHARED "/minimalloc/J.1048576.csv", SHARED "/minimalloc/K.1048576.csv",
    SHARED "/idealloc/G_1.csv",         SHARED "/idealloc/somas_resnet50.csv",
};

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

static mpl_status measure(mpl_ctx *ctx, const mpl_planner *planner, const mpl_problem *p, uint64_t seed,
                          uint64_t ticks, outcome *o)
{
    mpl_status st = MPL_OK;
    const char *key = "attempts", *value = "2147483647"; /* let the ticks end it */
    mpl_plan *plan = NULL;
    mpl_run run;
    double begin = cpu_s();

    mpl_run_init(&run, ctx);
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

static mpl_status bench(mpl_ctx *ctx, const char *list, const char *planners, uint64_t seed)
{
    static const uint64_t budget[] = {1000000, 10000000, 100000000};
    mpl_status st = MPL_OK;
    mpl_source source = {0};
    char names[200], *rest = names;
    outcome o[4] = {0};

    snprintf(names, sizeof names, "%s", planners);
    MPL_TRY(mpl_source_open(ctx, list, &(mpl_read_options){0}, &source));
    if (source.problem == NULL)
        MPL_FAIL(ctx, MPL_EINPUT, "%s is no list of buffers", list);
    for (char *name; (name = strsep(&rest, ",")) != NULL;) {
        const mpl_planner *planner = mpl_planner_find(name);

        if (planner == NULL)
            MPL_FAIL(ctx, MPL_EINPUT, "no planner '%s'", name);
        for (int i = 0; i < 3; i++)
            MPL_TRY(measure(ctx, planner, source.problem, seed, budget[i], &o[i]));
        MPL_TRY(measure(ctx, planner, source.problem, seed, (uint64_t)((double)o[1].ticks / o[1].seconds),
                        &o[3]));
        printf("%s\t%s\t%.3f\t%.3f\t%.3f\t%.3f\t%.2f\n", source.problem->name, name, o[0].gap_percent,
               o[1].gap_percent, o[2].gap_percent, o[3].gap_percent, o[3].seconds);
        fflush(stdout);
    }
out:
    mpl_source_fini(ctx, &source);
    return st;
}

int main(int argc, char **argv)
{
    const char *planners = "greedy_size,hill_climb,local_search,exact,portfolio";
    uint64_t seed = 1;
    mpl_status st = MPL_OK;
    mpl_ctx ctx;

    for (int c; (c = getopt(argc, argv, "s:p:")) != -1;) {
        if (c == 's')
            seed = strtoull(optarg, NULL, 10);
        else if (c == 'p')
            planners = optarg;
        else
            return 2;
    }
    mpl_ctx_init(&ctx);
    printf("list\tplanner\tgap_1e6\tgap_1e7\tgap_1e8\tgap_1s\tcpu_s\n");
    for (int i = optind; i < argc && st == MPL_OK; i++)
        st = bench(&ctx, argv[i], planners, seed);
    for (size_t i = 0; optind == argc && i < sizeof known / sizeof *known && st == MPL_OK; i++) {
        if (access(known[i], R_OK) == 0)
            st = bench(&ctx, known[i], planners, seed);
        else
            fprintf(stderr, "skip: no %s here\n", known[i]);
    }
    if (st != MPL_OK)
        fprintf(stderr, "bench_search: %s\n", ctx.message);
    return mpl_status_exit(st);
}
