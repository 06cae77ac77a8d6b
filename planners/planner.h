/* planner.h -- the one interface of all planners. A new planner is one file and one line in
 * planners.def. */
#ifndef MPL_PLANNER_H
#define MPL_PLANNER_H

#include "planners/plan/plan.h"

#include <signal.h>

enum {
    MPL_EXACT = 1,          /* may claim optimal by search */
    MPL_RANDOM = 2,         /* depends on the seed */
    MPL_NO_REUSE = 4,       /* shares nothing on purpose */
    MPL_BLOCKS = 8,         /* total is a sum of blocks: writes block[] */
    MPL_SERIAL_ONLY = 16,   /* needs steps: cannot plan under parallel */
    MPL_USES_IN_PLACE = 32, /* takes in-place pairs up where they are offered */
    MPL_PARALLEL_ONLY = 64, /* needs the partial order; a serial problem is read as interval
                               precedence */
    MPL_FOREIGN = 128,    /* not of this program: checks its own parameters; its claim and bound are
                             not believed */
    MPL_ROUNDED = 256,    /* proves in floating point: its bounds are of kind ilp */
    MPL_SPREADS = 512,    /* spreads pool 0 over memories that its parameters name: never called
                             without them */
    MPL_USES_GAPS = 1024, /* plans lifetimes with gaps; the others are shown each as one piece from
                             birth to death */
    MPL_USES_FAMILIES = 2048, /* places families part by part; the others are shown each as one
                                 buffer */
};

/* Who looks on while a planner works. */
typedef struct mpl_watch {
    /* A better plan or bound of pool 0 [byte]; on the thread that called the planner. NULL: not
     * asked for. */
    void (*progress)(void *arg, uint64_t planned, uint64_t bound);
    void *arg;
    void (*bind)(uint32_t index); /* called on the index-th thread that a planner starts, from 1;
                                     NULL: nobody */
    const volatile sig_atomic_t *stop; /* not 0: to be treated like a deadline that has passed;
                                          NULL: never */
} mpl_watch;

/* One call of a planner: what the caller asks, and the work that was done. */
typedef struct mpl_run {
    mpl_ctx *ctx;
    uint64_t seed;
    uint64_t budget_ticks; /* UINT64_MAX: no limit */
    int64_t deadline_ns;   /* mpl_clock_ns() after which the search stops; INT64_MAX: none */
    uint32_t n_threads;
    const mpl_watch *watch;        /* NULL: nobody; planners that search for long heed it */
    const uint64_t *start_offsets; /* [n] a valid plan to begin from; NULL: none. exact,
                                      local_search and hill_climb heed it [byte] */
    uint64_t gap_parts; /* of a million of the bound: a search is over within so much of it; 0: at
                           the bound alone */
    uint32_t n_params;  /* key=value pairs of the command line */
    const char *const *param_key;
    const char *const *param_value;
    const struct mpl_planner *planner; /* written by mpl_planner_run: the one that is called */
    int64_t plan_ns; /* time of the planner alone, checks apart; a foreign one writes it, else
                        mpl_planner_run [ns] */
    int64_t self_ns; /* written by a foreign planner: what it says that it took; 0: nothing [ns] */
    const char *failure; /* written by a foreign planner that fails: the status of its row; NULL: as
                            its mpl_status says */
    uint64_t ticks;      /* written by the planner: work done */
    bool stopped_by_clock; /* written by the planner: the deadline ended it */
    bool solver_gave_up; /* likewise: GLPK ended in an error of its own, or had not memory enough */
} mpl_run;

/* Whether it has to end now: its time is over, or the caller has had enough. */
static inline bool mpl_run_late(const mpl_run *run)
{
    return (run->watch != NULL && run->watch->stop != NULL && *run->watch->stop != 0) ||
           (run->deadline_ns != INT64_MAX && mpl_clock_ns() >= run->deadline_ns);
}

/* The height at which a search is over where no plan is below `bound`. */
static inline uint64_t mpl_run_enough(const mpl_run *run, uint64_t bound)
{
    uint64_t most = bound;

    if (run->gap_parts > 0 &&
        (!mpl_mul_bytes(bound / 1000000, run->gap_parts, &most) ||
         !mpl_add_bytes(most, bound % 1000000 * run->gap_parts / 1000000, &most) ||
         !mpl_add_bytes(most, bound, &most)))
        most = UINT64_MAX;
    return most;
}

void mpl_run_init(mpl_run *run, mpl_ctx *ctx); /* seed 1, no limits, 1 thread, no parameters */

typedef struct mpl_planner {
    const char *name;   /* key in the command line, results and paper */
    const char *about;  /* one line */
    const char *source; /* key in PAPER.md, or "this project" */
    const char *params; /* "level=0|1,..": what it takes, for help and checks; NULL: nothing */
    unsigned traits;
    /* Writes offset[], where it applies block[] and spread, the claim and the bound of `out` (made
     * by mpl_plan_new), and run->ticks; nothing else. NULL: not in this build. */
    mpl_status (*plan)(mpl_run *run, const mpl_problem *p, mpl_plan *out);
} mpl_planner;

extern const mpl_planner *const mpl_planners[]; /* NULL-terminated; the order of planners.def and of
                                                   every report */
const mpl_planner *mpl_planner_find(const char *name); /* NULL: there is none */

/* Value of parameter `key`, or NULL. */
const char *mpl_run_param(const mpl_run *run, const char *key);
/* Integer parameter in [min, max], or `otherwise` where absent. MPL_EINPUT when it is no such
 * number. */
mpl_status mpl_run_param_int(const mpl_run *run, const char *key, int64_t min, int64_t max,
                             int64_t otherwise, int64_t *out);
/* What a complete search ends with: MPL_ELIMIT where the plan's claim is MPL_UNKNOWN. */
mpl_status mpl_run_decided(const mpl_run *run, const mpl_plan *plan);

/* The door: checks parameters against planner->params, refuses what the traits exclude
 * (MPL_EUNAVAIL), calls the planner, verifies, and raises the bound to what the problem itself
 * proves (mpl_plan_bound): *out is a verified plan, with pool_bytes and peak_bytes, optimal where
 * it meets the bound. MPL_EINVALID: the verifier refused. A planner without MPL_USES_GAPS gets
 * lifetimes without gaps, one without MPL_USES_FAMILIES each family as one buffer; what it then
 * claims or proves of that harder problem is dropped. Where such a planner fills an arena that is
 * no sum of blocks, its buffers then sink, by offset, each as far as its parts let it. */
/* Whether the door shows lifetimes to this planner as they are not: without their gaps, or families
 * as one buffer. */
bool mpl_planner_sees_hull(const mpl_planner *planner, const mpl_problem *p);
mpl_status mpl_planner_run(const mpl_planner *planner, mpl_run *run, const mpl_problem *p,
                           mpl_plan **out);

#endif
