/* planner.h -- the interface of all planners. A new one is a file and a line in planners.def. */
#pragma once

#include "planners/plan/plan.h"

enum {
    MPL_EXACT = 1,          /* may prove optimality by search */
    MPL_RANDOM = 2,         /* depends on the seed */
    MPL_NO_REUSE = 4,       /* shares no memory on purpose */
    MPL_BLOCKS = 8,         /* the total is a sum of blocks: writes block[] */
    MPL_SERIAL_ONLY = 16,   /* needs steps: cannot plan under parallel safety */
    MPL_USES_IN_PLACE = 32, /* uses in-place pairs */
    /* needs the partial order; reads a serial problem as interval precedence */
    MPL_PARALLEL_ONLY = 64,
    /* outside code: checks its own parameters; its claim and bound are not trusted */
    MPL_FOREIGN = 128,
    MPL_ROUNDED = 256, /* proves in floating point: its bounds are of kind ilp */
    MPL_SPREADS = 512, /* spreads pool 0 over the memories in its parameters, which are required */
    MPL_USES_GAPS = 1024, /* plans lifetimes with gaps; other planners see them without gaps */
    /* places families part by part; other planners see each as one buffer */
    MPL_USES_FAMILIES = 2048,
    MPL_UNFIXED_ONLY = 4096, /* cannot keep decided offsets; neither can MPL_BLOCKS */
    MPL_PRODUCTION = 8192, /* of a production system or of an older plan: in a bench only by name */
};

/* Callbacks during a planner's work. */
typedef struct mpl_watch {
    /* A better plan or bound of pool 0 [byte], on the thread that called the planner; or NULL. */
    void (*progress)(void *arg, uint64_t planned, uint64_t bound);
    void *arg;
    /* called on each thread a planner starts (index from 1); or NULL */
    void (*bind)(uint32_t index);
    const _Atomic int *stop; /* nonzero: stop as at a deadline; or NULL */
} mpl_watch;

/* One call of a planner: the caller's request and the work done. */
typedef struct mpl_run {
    mpl_ctx *ctx;
    uint64_t seed;
    uint64_t budget_ticks; /* UINT64_MAX: no limit */
    int64_t deadline_ns;   /* mpl_clock_ns() after which the search stops; INT64_MAX: none */
    uint32_t n_threads;
    const mpl_watch *watch; /* or NULL; long searches heed it */
    /* [n] a valid plan to begin from [byte], or NULL; exact, local_search and hill_climb use it */
    const uint64_t *start_offsets;
    /* stop the search within this many millionths of the bound; 0: only at the bound */
    uint64_t gap_parts;
    uint32_t n_params; /* key=value pairs of the command line */
    const char *const *param_key;
    const char *const *param_value;
    const struct mpl_planner *planner; /* written by mpl_planner_run: the planner called */
    /* time without checks [ns]; written by a foreign planner, else by mpl_planner_run */
    int64_t plan_ns;
    int64_t self_ns; /* time that a foreign planner reports itself [ns]; 0: none */
    /* row status written by a failing foreign planner; NULL: taken from its mpl_status */
    const char *failure;
    uint64_t ticks;        /* written by the planner: work done */
    bool stopped_by_clock; /* written by the planner: the deadline ended it */
    bool solver_gave_up;   /* written by the planner: GLPK failed or ran out of memory */
} mpl_run;

/* Whether the run must end now: the deadline has passed, or the caller asked to stop. */
static inline bool mpl_run_late(const mpl_run *run)
{
    return (run->watch != NULL && run->watch->stop != NULL && *run->watch->stop != 0) ||
           (run->deadline_ns != INT64_MAX && mpl_clock_ns() >= run->deadline_ns);
}

/* The height at which a search may stop, if no plan is below `bound`. */
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

mpl_run mpl_run_default(mpl_ctx *ctx); /* seed 1, no limits, 1 thread, no parameters */
static inline void mpl_run_init(mpl_run *run, mpl_ctx *ctx)
{
    *run = mpl_run_default(ctx);
}

typedef struct mpl_planner {
    const char *name;   /* key in the command line, results and paper */
    const char *about;  /* one line of help */
    const char *source; /* key in results/APPENDIX.md, or "this project" */
    const char *params; /* accepted parameters, "level=0|1,..", for help and checks; NULL: none */
    unsigned traits;
    /* Writes only offset[], block[] and spread where they apply, the claim and bound of `out` (made
     * by mpl_plan_new), and run->ticks. NULL: not in this build. */
    mpl_status (*plan)(mpl_run *run, const mpl_problem *p, mpl_plan *out);
} mpl_planner;

/* NULL-terminated, in the order of planners.def and of every report */
extern const mpl_planner *const mpl_planners[];
const mpl_planner *mpl_planner_find(const char *name); /* or NULL */

/* Value of parameter `key`, or NULL. */
const char *mpl_run_param(const mpl_run *run, const char *key);
/* Integer parameter in [min, max], or `otherwise` where absent. MPL_EINPUT: not such a number. */
mpl_status mpl_run_param_int(const mpl_run *run, const char *key, int64_t min, int64_t max,
                             int64_t otherwise, int64_t *out);
/* The status that ends a complete search: MPL_ELIMIT if the plan's claim is MPL_UNKNOWN. */
mpl_status mpl_run_decided(const mpl_run *run, const mpl_plan *plan);

/* Whether mpl_planner_run hides gaps of lifetimes or parts of families from this planner. */
bool mpl_planner_sees_hull(const mpl_planner *planner, const mpl_problem *p);
/* Runs a planner: checks parameters against planner->params, rejects what the traits exclude
 * (MPL_EUNAVAIL), calls the planner, verifies the plan, and raises the bound to what the problem
 * itself proves (mpl_plan_bound). *out is a verified plan with pool_bytes and peak_bytes, optimal
 * if it meets the bound. MPL_EINVALID: the verifier rejected it.
 * A planner without MPL_USES_GAPS gets lifetimes without gaps; one without MPL_USES_FAMILIES gets
 * each family as one buffer. Its claims and bounds of that harder problem are dropped. In an arena
 * that is no sum of blocks, its buffers then sink, by offset, as far as their parts allow. */
mpl_status mpl_planner_run(const mpl_planner *planner, mpl_run *run, const mpl_problem *p,
                           mpl_plan **out);
