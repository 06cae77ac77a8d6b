/* bench_parallel.c -- safety parallel at scale: time and memory of the relation, the bound, the
 * planners and the verifier on training-shaped problems. One TSV line per step and size.
 *
 *  bench_parallel [N ..]     default 300 1000 3000 10000 50000
 *
 * Each size runs in a child process, whose peak resident memory is the last line. */
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/support/synthetic_training.h"
#include "planners/planner.h"
#include "planners/verify/verify.h"

enum { REPEATS = 3 };

static const char *const names[] = {"greedy_size", "best_fit", "nnc_2018", "nnc_2019", "nnc_arena"};

static double since(int64_t begin)
{
    return (double)(mpl_clock_ns() - begin) / 1e6;
}

/* Plans REPEATS times (once if slow), verifies, and prints the best time and the bytes over the
 * bound. */
static mpl_status one_planner(mpl_ctx *ctx, const mpl_problem *p, const char *name, uint64_t bound)
{
    mpl_status st = MPL_OK;
    const mpl_planner *planner = mpl_planner_find(name);
    mpl_plan *plan = NULL;
    double best = 1e300, verify;
    int64_t begin;

    for (int i = 0; i < REPEATS && (i == 0 || best < 1000); i++) {
        mpl_run run = mpl_run_default(ctx);

        mpl_plan_free(ctx, plan);
        plan = NULL;
        MPL_TRY(mpl_plan_new(ctx, p, &plan));
        begin = mpl_clock_ns();
        MPL_TRY(planner->plan(&run, p, plan));
        best = since(begin) < best ? since(begin) : best;
    }
    begin = mpl_clock_ns();
    MPL_TRY(mpl_verify(ctx, p, plan));
    verify = since(begin);
    printf("%u\t%s\t%.2f\t%.4f\n", p->n, name, best, (double)plan->peak_bytes / (double)bound);
    printf("%u\tverify %s\t%.2f\t\n", p->n, name, verify);
    fflush(stdout);
out:
    mpl_plan_free(ctx, plan);
    return st;
}

static mpl_status one_size(mpl_ctx *ctx, uint32_t n)
{
    mpl_status st = MPL_OK;
    mpl_problem *p = NULL;
    struct rusage usage;
    int64_t begin = mpl_clock_ns();
    uint64_t bound;

    MPL_TRY(synthetic_training(ctx, n, 1, &p));
    printf("%u\tproblem\t%.2f\t\n", p->n, since(begin));
    begin = mpl_clock_ns();
    MPL_TRY(mpl_antichain(ctx, p, 0, &bound, NULL));
    printf("%u\tbound\t%.2f\t1.0000\n", p->n, since(begin));
    fflush(stdout);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        MPL_TRY(one_planner(ctx, p, names[i], bound));
    getrusage(RUSAGE_SELF, &usage);
    printf("%u\tpeak MB\t%.0f\t\n", p->n, (double)usage.ru_maxrss / 1024);
out:
    mpl_problem_free(ctx, p);
    return st;
}

/* Runs in a child process with its own memory; returns its exit status. */
static int in_child(uint32_t n)
{
    int status = 1;
    pid_t pid;

    fflush(stdout);
    pid = fork();
    if (pid == 0) {
        mpl_ctx ctx = mpl_ctx_default();
        mpl_status st = one_size(&ctx, n);

        if (st != MPL_OK)
            fprintf(stderr, "bench_parallel: %s\n", ctx.message);
        fflush(stdout);
        _exit(mpl_status_exit(st));
    }
    return pid < 0 || waitpid(pid, &status, 0) < 0 || !WIFEXITED(status) ? 1 : WEXITSTATUS(status);
}

int main(int argc, char **argv)
{
    static const uint32_t sizes[] = {300, 1000, 3000, 10000, 50000};
    int worst = 0;

    printf("n\tstep\tms\tover_bound\n");
    for (int i = 1; i < argc; i++)
        worst |= in_child((uint32_t)strtoul(argv[i], NULL, 10));
    for (size_t i = 0; argc == 1 && i < sizeof sizes / sizeof *sizes; i++)
        worst |= in_child(sizes[i]);
    return worst;
}
