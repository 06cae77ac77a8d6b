/* bench_exact.c -- the exact planner on hard lists: time to a plan within the capacity in the
 * file's name, and to the proven least height, forwards and backwards in time. Lists are read once;
 * only the planner is timed. One TSV line per run.
 *
 *  bench_exact [-f | -m] [-b] [-p PLANNER] [-c BYTES] [-s SEEDS] [-t THREADS] [-k TICKS]
 *              [-l SECONDS] [-r REPEATS] [-o FILE] [LIST ..]
 *
 *  -f   only the capacity           -m   only the least height       -b   only forwards
 *  -p   the planner (exact)         -s   seeds 1 .. SEEDS            -r   repeats; best counts
 *  -l   limit of each run, in seconds of processor time of all threads
 *  -k   budget of each run          -o   also write the lines to FILE
 *
 * gap_1s and gap_10s: gap of the best plan after that much processor time, in percent of the bound
 * at that time; their means over the least-height runs are printed at the end. A LIST is any
 * command-line graph; by default the known ones beside the project. */
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "graphs/source.h"
#include "planners/planner.h"

#define SHARED "build/data"

static const char *const known[] = {
    SHARED "/minimalloc/A.1048576.csv",
    SHARED "/minimalloc/C.1048576.csv",
    SHARED "/minimalloc/D.1048576.csv",
    SHARED "/minimalloc/E.1048576.csv",
    SHARED "/minimalloc/G.1048576.csv",
    SHARED "/minimalloc/I.1048576.csv",
    SHARED "/minimalloc/J.1048576.csv",
    SHARED "/minimalloc/K.1048576.csv",
    SHARED "/planted/N0.672.csv",
    SHARED "/planted/N3.1342.csv",
    SHARED "/planted/T1.921.csv",
    SHARED "/planted/T4.2078.csv",
    SHARED "/planted/Q0.1000.csv",
    SHARED "/planted/Q1.1000.csv",
    SHARED "/planted/Q2.1000.csv",
    SHARED "/planted/Q4.1000.csv",
    SHARED "/planted/Q6.1000.csv",
    "guillotine:n=100",
    "guillotine:n=200,seed=2",
    "guillotine:n=300,seed=3",
    "guillotine:n=500,seed=4",
    "guillotine:n=700,seed=5",
    "guillotine:n=1000,seed=6",
    SHARED "/idealloc/G_1.csv",
    SHARED "/idealloc/somas_resnet50.csv",
};

typedef struct options {
    bool no_fit, no_min, forwards;
    const char *planner;
    uint64_t seeds, capacity; /* 0: the file's */
    uint64_t ticks;           /* 0: no limit */
    uint32_t threads, repeats;
    double seconds; /* 0: no limit */
    FILE *file;     /* NULL: none */
    timer_t timer;
} options;

enum { N_MARKS = 2 };

static const double marks[N_MARKS] = {1, 10}; /* [s] of processor time */

/* Progress of one run. */
typedef struct course {
    double begin_ms;
    double gap[N_MARKS]; /* of the best plan before the mark, or of the first; < 0: none yet
                            [percent] */
} course;

static double mean[N_MARKS];
static uint32_t n_courses;
static _Atomic int stop;

static double cpu_ms(void)
{
    struct rusage use;

    getrusage(RUSAGE_SELF, &use);
    return (double)(use.ru_utime.tv_sec + use.ru_stime.tv_sec) * 1e3 +
           (double)(use.ru_utime.tv_usec + use.ru_stime.tv_usec) / 1e3;
}

/* ---- progress ---- */

static double gap_of(uint64_t height, uint64_t bound)
{
    return bound > 0 ? ((double)height / (double)bound - 1) * 100 : 0;
}

static void on_progress(void *arg, uint64_t height, uint64_t bound)
{
    course *c = arg;
    double now = (cpu_ms() - c->begin_ms) / 1e3;

    for (int k = 0; k < N_MARKS; k++)
        if (c->gap[k] < 0 || (now <= marks[k] && gap_of(height, bound) < c->gap[k]))
            c->gap[k] = gap_of(height, bound);
}

static void on_time(int signal)
{
    (void)signal;
    stop = 1;
}

/* Stops the run after that much processor time; 0: never. */
static void set_timer(timer_t timer, double seconds)
{
    struct itimerspec when = {.it_value.tv_sec = (time_t)seconds};

    when.it_value.tv_nsec = (long)((seconds - (double)(time_t)seconds) * 1e9);
    stop = 0;
    timer_settime(timer, 0, &when, NULL);
}

/* ---- runs ---- */

static void reverse(mpl_problem *p)
{
    for (mpl_buffer b = 0; b < p->n; b++) {
        uint32_t birth = p->birth[b];

        p->birth[b] = p->n_steps - p->death[b];
        p->death[b] = p->n_steps - birth;
    }
}

/* The number between the last two dots of "A.1048576.csv"; 1 MiB for cut lists, else 0. */
static uint64_t capacity_of(const char *list)
{
    const char *end = strrchr(list, '.'), *at = end;

    if (strncmp(list, "guillotine", 10) == 0)
        return 1048576;
    while (at != NULL && at > list && at[-1] >= '0' && at[-1] <= '9')
        at--;
    return at != NULL && at < end && at > list && at[-1] == '.' ? strtoull(at, NULL, 10) : 0;
}

static void line(const options *o, const char *text)
{
    fputs(text, stdout);
    fflush(stdout);
    if (o->file != NULL)
        fputs(text, o->file);
}

/* Results shared by the runs of one line. */
typedef struct result {
    const char *claim;
    double wall_ms, cpu_ms; /* of the fastest */
    uint64_t height, bound, ticks;
    course course;
} result;

static mpl_status measure(mpl_ctx *ctx, const options *o, const mpl_problem *p, uint64_t seed,
                          result *r)
{
    mpl_status st = MPL_OK;
    course c = {.begin_ms = cpu_ms(), .gap = {-1, -1}};
    mpl_watch watch = {.progress = on_progress, .arg = &c, .stop = &stop};
    mpl_plan *plan = NULL;
    mpl_run run = mpl_run_default(ctx);
    double cpu, wall = (double)mpl_clock_ns() / 1e6;

    run.seed = seed;
    run.n_threads = o->threads;
    run.budget_ticks = o->ticks > 0 ? o->ticks : UINT64_C(1) << 62;
    run.watch = &watch;
    set_timer(o->timer, o->seconds);
    st = mpl_planner_run(mpl_planner_find(o->planner), &run, p, &plan);
    set_timer(o->timer, 0);
    cpu = cpu_ms() - c.begin_ms;
    wall = st == MPL_OK ? (double)run.plan_ns / 1e6 : (double)mpl_clock_ns() / 1e6 - wall;
    r->cpu_ms = cpu < r->cpu_ms ? cpu : r->cpu_ms;
    r->wall_ms = wall < r->wall_ms ? wall : r->wall_ms;
    r->ticks = run.ticks;
    if (st == MPL_OK) {
        r->height = plan->peak_bytes;
        r->bound = plan->bound_bytes;
        r->claim = mpl_claim_name(plan->claim);
    }
    for (int k = 0; k < N_MARKS; k++)
        if (st == MPL_OK && (cpu <= marks[k] * 1e3 || c.gap[k] < 0))
            c.gap[k] = gap_of(r->height, r->bound);
    r->course = c;
    mpl_plan_free(ctx, plan);
    return st == MPL_ELIMIT ? MPL_OK : st;
}

static mpl_status one_run(mpl_ctx *ctx, const options *o, const mpl_problem *p, const char *list,
                          const char *task, uint64_t seed)
{
    const char *slash = strrchr(list, '/');
    result r = {.claim = "unknown", .wall_ms = 1e300, .cpu_ms = 1e300};
    char text[300];

    for (uint32_t k = 0; k < o->repeats; k++)
        MPL_PASS(measure(ctx, o, p, seed, &r));
    if (strncmp(task, "min", 3) == 0) {
        n_courses++;
        for (int k = 0; k < N_MARKS; k++)
            mean[k] += r.course.gap[k];
    }
    snprintf(text, sizeof text,
             "%s\t%u\t%s\t%" PRIu64 "\t%u\t%" PRIu64 "\t%" PRIu64 "\t%.4f\t%s\t%.2f\t%.2f\t%" PRIu64
             "\t%.4f\t%.4f\n",
             slash != NULL ? slash + 1 : list, p->n, task, seed, o->threads, r.height, r.bound,
             gap_of(r.height, r.bound), r.claim, r.wall_ms, r.cpu_ms, r.ticks, r.course.gap[0],
             r.course.gap[1]);
    line(o, text);
    return MPL_OK;
}

static mpl_status one_list(mpl_ctx *ctx, const options *o, const char *list)
{
    mpl_status st = MPL_OK;
    mpl_read_options read = {0};
    mpl_source source = {0};
    uint64_t capacity = o->capacity > 0 ? o->capacity : capacity_of(list);

    MPL_TRY(mpl_source_open(ctx, list, &read, &source));
    for (int backwards = 0; backwards < (o->forwards ? 1 : 2) && source.problem != NULL;
         backwards++) {
        if (backwards)
            reverse(source.problem);
        for (uint64_t seed = 1; seed <= o->seeds; seed++) {
            source.problem->pool_capacity[0] = capacity;
            if (!o->no_fit && capacity > 0)
                MPL_TRY(one_run(ctx, o, source.problem, list, backwards ? "fit.reversed" : "fit",
                                seed));
            source.problem->pool_capacity[0] = MPL_NO_CAPACITY;
            if (!o->no_min)
                MPL_TRY(one_run(ctx, o, source.problem, list, backwards ? "min.reversed" : "min",
                                seed));
        }
    }
out:
    mpl_source_fini(ctx, &source);
    return st;
}

static int usage(void)
{
    fputs("bench_exact: [-f | -m] [-b] [-p PLANNER] [-c BYTES] [-s SEEDS] [-t THREADS] [-k TICKS] "
          "[-l SECONDS] [-r REPEATS] [-o FILE] [LIST ..]\n",
          stderr);
    return 2;
}

static bool parse(int argc, char **argv, options *o)
{
    int c;

    while ((c = getopt(argc, argv, "fmbp:c:s:t:k:l:r:o:")) != -1)
        switch (c) {
        case 'f':
            o->no_min = true;
            break;
        case 'm':
            o->no_fit = true;
            break;
        case 'b':
            o->forwards = true;
            break;
        case 'p':
            o->planner = optarg;
            if (mpl_planner_find(optarg) == NULL)
                return false;
            break;
        case 'c':
            o->capacity = strtoull(optarg, NULL, 10);
            break;
        case 's':
            o->seeds = strtoull(optarg, NULL, 10);
            break;
        case 't':
            o->threads = (uint32_t)strtoul(optarg, NULL, 10);
            break;
        case 'k':
            o->ticks = strtoull(optarg, NULL, 10);
            break;
        case 'l':
            o->seconds = strtod(optarg, NULL);
            break;
        case 'r':
            o->repeats = (uint32_t)strtoul(optarg, NULL, 10);
            break;
        case 'o':
            o->file = fopen(optarg, "w");
            if (o->file == NULL)
                return false;
            break;
        default:
            return false;
        }
    return true;
}

int main(int argc, char **argv)
{
    struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGUSR1};
    options o = {.planner = "exact", .seeds = 1, .threads = 1, .repeats = 1, .seconds = 60};
    size_t n_known = sizeof known / sizeof *known;
    mpl_status st = MPL_OK;
    mpl_ctx ctx = mpl_ctx_default();

    if (!parse(argc, argv, &o))
        return usage();
    signal(SIGUSR1, on_time);
    if (timer_create(CLOCK_PROCESS_CPUTIME_ID, &event, &o.timer) != 0)
        return usage();
    line(&o,
         "list\tn\ttask\tseed\tthreads\theight\tbound\tgap_percent\tclaim\twall_ms\tcpu_ms\tticks\t"
         "gap_1s\tgap_10s\n");
    for (int i = optind; i < argc && st == MPL_OK; i++)
        st = one_list(&ctx, &o, argv[i]);
    for (size_t i = 0; optind == argc && i < n_known && st == MPL_OK; i++)
        if (strncmp(known[i], SHARED, strlen(SHARED)) != 0 || access(known[i], R_OK) == 0)
            st = one_list(&ctx, &o, known[i]);
        else
            fprintf(stderr, "skip: %s is not here\n", known[i]);
    if (n_courses > 0)
        fprintf(stderr,
                "bench_exact: mean gap over %u runs: %.4f %% after %g s, %.4f %% after %g s\n",
                n_courses, mean[0] / n_courses, marks[0], mean[1] / n_courses, marks[1]);
    if (st != MPL_OK)
        fprintf(stderr, "bench_exact: %s\n", ctx.message);
    if (o.file != NULL && fclose(o.file) != 0)
        st = MPL_EINPUT;
    return mpl_status_exit(st);
}
