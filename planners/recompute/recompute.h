/* recompute.h -- training graphs within a budget of memory, some operations running again: methods
 * by name. */
#ifndef MPL_PLANNERS_RECOMPUTE_H
#define MPL_PLANNERS_RECOMPUTE_H

#include "graphs/passes/recompute/recompute_pass.h"

#define MPL_LEAST_PEAK UINT64_MAX /* a budget: as little as can be found */

typedef enum mpl_recompute_claim {
    MPL_RECOMPUTE_FEASIBLE,
    MPL_RECOMPUTE_OPTIMAL, /* of the method's own model: none does less work within the budget */
} mpl_recompute_claim;

typedef struct mpl_recompute_found {
    mpl_rerun_facts facts;
    uint64_t before_bytes; /* peak live bytes of the graph as it was, in its order, and of the new
                              one [byte] */
    uint64_t peak_bytes;
    bool has_bound; /* bound_work is proved, by a program's relaxation or search (in doubles) */
    uint64_t bound_work; /* nothing within the budget does less again: of budget, of what it chooses
                            from; of round, whatever runs again */
    mpl_recompute_claim claim;
    uint32_t n_groups; /* groups of operations that it chose from; 0: it does not group */
} mpl_recompute_found;

typedef struct mpl_recompute_method {
    const char *name;
    const char *about; /* one line */
    bool needs_budget;
    /* *run (owned by the caller) has *n operations. NULL: not in this build. MPL_EINVALID: proved,
     * no run is within the budget; MPL_ELIMIT: none was found. */
    mpl_status (*choose)(mpl_ctx *ctx, const mpl_graph *g, const mpl_problem_options *options,
                         uint64_t budget, uint32_t *n, mpl_op **run, mpl_recompute_found *found);
} mpl_recompute_method;

extern const mpl_recompute_method mpl_recompute_methods[]; /* ends with name NULL */
const mpl_recompute_method *mpl_recompute_find(const char *name);

/* Peak live bytes of g in its own order, read as serial. [byte] */
mpl_status mpl_recompute_before(mpl_ctx *ctx, const mpl_graph *g,
                                const mpl_problem_options *options, uint64_t *peak);

/* The graph that the method makes of training graph g for a budget of peak live bytes under the
 * options, read as serial, in the order in which operations then stand. MPL_EINPUT: no training
 * graph, or no budget where one is needed; MPL_EINVALID, MPL_ELIMIT as above; MPL_EUNAVAIL: GLPK is
 * not in this build. */
mpl_status mpl_recompute(mpl_ctx *ctx, const mpl_recompute_method *method, const mpl_graph *g,
                         const mpl_problem_options *options, uint64_t budget, mpl_graph **out,
                         mpl_recompute_found *found);

#endif
