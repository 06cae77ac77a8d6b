/* recompute.h -- methods that fit training graphs into a budget by running operations again. */
#pragma once

#include "planners/recompute/rerun.h"
#include "planners/recompute/revolve.h"

#define MPL_LEAST_PEAK UINT64_MAX /* a budget: the least peak that can be found */

typedef enum mpl_recompute_claim {
    MPL_RECOMPUTE_FEASIBLE,
    MPL_RECOMPUTE_REGIONS, /* no composition of solved regions does less work */
    MPL_RECOMPUTE_OPTIMAL, /* in the method's own model, no run within the budget does less work */
} mpl_recompute_claim;

typedef struct mpl_recompute_found {
    mpl_rerun_facts facts;
    uint64_t before_bytes; /* peak live bytes before and after [byte] */
    uint64_t peak_bytes;
    bool has_bound; /* bound_work is proved, in doubles, by a program's relaxation or search */
    /* least repeated work within the budget: for method budget, among the runs it chooses from; for
     * round, among all runs */
    uint64_t bound_work;
    mpl_recompute_claim claim;
    uint64_t ticks;              /* states of the game, and pivots of the programs */
    uint32_t n_regions, n_plain; /* composed of; of these, not searched; 0: no regions */
    uint32_t n_groups;           /* groups of operations to choose from; 0: no grouping */
    /* of graphs with loops: loops with a tape, and those whose tape is kept in part */
    uint32_t n_taped, n_loops;
    char why[200];              /* why not of all; "": of all */
    uint64_t forward_rounds;    /* rounds that these run forward, beyond those that are reversed */
    uint64_t tape_before_bytes; /* states that all loops with a tape keep, before and after [byte]
                                 */
    uint64_t tape_bytes;
} mpl_recompute_found;

/* A request, and what a method chose. */
typedef struct mpl_recompute_task {
    mpl_ctx *ctx;
    const mpl_graph *g;
    const mpl_problem_options *options; /* read as serial */
    uint64_t budget;                    /* of peak live bytes, or MPL_LEAST_PEAK */
    uint32_t without;                   /* bits by mpl_recompute_without; 0: use every rule */
    uint32_t slots;                     /* of each loop, for revolve; 0: its own number */
    /* Loops keep their tape by the schedule of this method, whether or not that alone lowers the
     * peak; then the other method chooses. NULL: as they are. */
    const struct mpl_recompute_method *loops;
    uint32_t n;  /* written by the method, like the rest */
    mpl_op *run; /* [n] the operations to run, owned by the caller */
    mpl_recompute_found found;
} mpl_recompute_task;

/* Writes run, and what it proves of found; found.before_bytes is known. MPL_EINVALID: proved that
 * no run is within the budget; MPL_ELIMIT: none was found. */
typedef mpl_status mpl_recompute_choose(mpl_recompute_task *task);

typedef struct mpl_recompute_method {
    const char *name;
    const char *about; /* one line of help */
    bool needs_budget;
    mpl_recompute_choose *choose; /* NULL: not in this build */
    mpl_schedule_make *loops;     /* of graphs with loops; NULL: the method has nothing for these */
} mpl_recompute_method;

extern const mpl_recompute_method mpl_recompute_methods[]; /* ends with name NULL */
const mpl_recompute_method *mpl_recompute_find(const char *name);
/* The rules of "A+B+.." (recompute_rules.def) as bits. MPL_EINPUT: unknown rule. */
mpl_status mpl_recompute_without(mpl_ctx *ctx, const char *text, uint32_t *without);

/* Makes the graph that the method chooses for a training graph within the budget, its operations in
 * their new order. Frees task->run. Of a graph with blocks, methods with a schedule let loops keep
 * their tape by it, where that lowers the peak of all, and nothing outside of loops runs again;
 * the others choose among outermost operations, each with its blocks, and prove nothing.
 * MPL_EINPUT: no
 * training graph, a missing budget, or a method that does not apply to the graph;
 * MPL_EINVALID, MPL_ELIMIT as above; MPL_EUNAVAIL: GLPK is not in this build. */
mpl_status mpl_recompute(const mpl_recompute_method *method, mpl_recompute_task *task,
                         mpl_graph **out);
