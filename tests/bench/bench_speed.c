/* bench_speed.c -- time and memory of each planner on buffer lists: one TSV line per planner and
 * list.
 *
 *  bench_speed [-r REPEATS] [-p PLANNER,..] [-n LARGEST] [FILE.csv ..]
 *
 * Lists: the files, then synthetic ones of 1000, 3162, 10000, .. up to LARGEST buffers (default
 * 1000000; 0: none), about 100 alive at a time. plan_ms is the planner alone, the best of the
 * repeats; the verifier runs afterwards. peak_mb is the peak resident memory of a child process
 * that only reads and plans, so it includes the problem. */
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "graphs/io/lists/lists.h"
#include "planners/planner.h"
#include "planners/verify/verify.h"

typedef struct result {
    mpl_status st;
    uint32_t n;
    int64_t ns;
    uint64_t peak_bytes;
    char message[512];
} result;

/* A list is a file or, where path is NULL, synthetic. */
static mpl_status load(mpl_ctx *ctx, const char *path, uint32_t n, mpl_problem **p)
{
    if (path != NULL)
        return mpl_csv_read(ctx, path, p, NULL);
    return mpl_problem_synthetic(ctx, n, 100, 1, p);
}

static mpl_status measure(mpl_ctx *ctx, const mpl_planner *planner, const mpl_problem *p,
                          int repeats, bool verify, result *r)
{
    mpl_status st = MPL_OK;
    mpl_plan *plan = NULL;
    mpl_run run;

    r->n = p->n;
    r->ns = INT64_MAX;
    run = mpl_run_default(ctx);
    for (int i = 0; i < repeats; i++) {
        int64_t start, ns;

        mpl_plan_free(ctx, plan);
        plan = NULL;
        MPL_TRY(mpl_plan_new(ctx, p, &plan));
        start = mpl_clock_ns();
        MPL_TRY(planner->plan(&run, p, plan));
        ns = mpl_clock_ns() - start;
        r->ns = ns < r->ns ? ns : r->ns;
    }
    if (verify)
        MPL_TRY(mpl_verify(ctx, p, plan));
    r->peak_bytes = plan->peak_bytes;
out:
    mpl_plan_free(ctx, plan);
    return st;
}

/* Runs one measurement in a child process with its own memory; *rss_kb is its peak. */
static void in_child(const mpl_planner *planner, const char *path, uint32_t n, int repeats,
                     bool verify, result *r, long *rss_kb)
{
    int fd[2], status;
    struct rusage usage = {0};
    pid_t pid;

    memset(r, 0, sizeof *r);
    r->st = MPL_EMEM;
    if (pipe(fd) != 0 || (pid = fork()) < 0)
        return;
    if (pid == 0) {
        mpl_ctx ctx = mpl_ctx_default();
        mpl_problem *p = NULL;

        r->st = load(&ctx, path, n, &p);
        if (r->st == MPL_OK)
            r->st = measure(&ctx, planner, p, repeats, verify, r);
        memcpy(r->message, ctx.message, sizeof r->message);
        _exit(write(fd[1], r, sizeof *r) == (ssize_t)sizeof *r ? 0 : 1);
    }
    close(fd[1]);
    if (read(fd[0], r, sizeof *r) != (ssize_t)sizeof *r)
        r->st = MPL_EMEM;
    close(fd[0]);
    wait4(pid, &status, 0, &usage);
    *rss_kb = usage.ru_maxrss;
}

static int row(const mpl_planner *planner, const char *path, uint32_t n, int repeats)
{
    const char *slash = path != NULL ? strrchr(path, '/') : NULL;
    const char *list = path == NULL ? "synthetic" : slash != NULL ? slash + 1 : path;
    result once, timed;
    long rss_kb = 0, ignored;

    in_child(planner, path, n, 1, false, &once, &rss_kb);
    in_child(planner, path, n, repeats, true, &timed, &ignored);
    if (timed.st != MPL_OK) {
        fprintf(stderr, "bench_speed: %s on %s: %s\n", planner->name, list, timed.message);
        return 1;
    }
    printf("%s\t%s\t%u\t%.3f\t%.1f\t%" PRIu64 "\n", list, planner->name, timed.n,
           (double)timed.ns / 1e6, (double)rss_kb / 1024, timed.peak_bytes);
    fflush(stdout);
    return 0;
}

/* Whether name is in the comma-separated list; NULL: all are. */
static bool wanted(const char *names, const char *name)
{
    size_t length = strlen(name);

    for (const char *at = names; at != NULL;
         at = strchr(at, ',') != NULL ? strchr(at, ',') + 1 : NULL)
        if (strncmp(at, name, length) == 0 && (at[length] == ',' || at[length] == '\0'))
            return true;
    return names == NULL;
}

int main(int argc, char **argv)
{
    static const uint32_t size[] = {1000, 3162, 10000, 31623, 100000, 316228, 1000000};
    const char *names = NULL;
    int option, repeats = 3, failed = 0;
    unsigned long largest = 1000000;

    while ((option = getopt(argc, argv, "r:p:n:")) != -1)
        switch (option) {
        case 'r':
            repeats = atoi(optarg) > 0 ? atoi(optarg) : 1;
            break;
        case 'p':
            names = optarg;
            break;
        case 'n':
            largest = strtoul(optarg, NULL, 10);
            break;
        default:
            fprintf(stderr,
                    "usage: bench_speed [-r REPEATS] [-p PLANNER,..] [-n LARGEST] [FILE.csv ..]\n");
            return 2;
        }
    printf("list\tplanner\tn\tplan_ms\tpeak_mb\tplanned_bytes\n");
    for (const mpl_planner *const *planner = mpl_planners; *planner != NULL; planner++) {
        if (!wanted(names, (*planner)->name) || (*planner)->plan == NULL ||
            ((*planner)->traits & MPL_SPREADS) != 0)
            continue;
        for (int i = optind; i < argc; i++)
            failed |= row(*planner, argv[i], 0, repeats);
        for (size_t i = 0; i < sizeof size / sizeof *size && size[i] <= largest; i++)
            failed |= row(*planner, NULL, size[i], repeats);
    }
    return failed;
}
