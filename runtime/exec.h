/* exec.h -- executes a graph inside a plan's arenas, or with nothing shared, on one backend. */
#ifndef MPL_EXEC_H
#define MPL_EXEC_H

#include "graphs/problem/problem.h"
#include "planners/search/ways.h"
#include "runtime/backend.h"

typedef struct mpl_exec mpl_exec;

/* Workspace bytes of each operation on a device, before planning: op_workspace_bytes of
 * mpl_problem_options. */
mpl_status mpl_exec_workspaces(mpl_ctx *ctx, const mpl_backend *backend, mpl_device *dev,
                               const mpl_graph *g, uint64_t *op_workspace_bytes);

/* The ways in which the device can compute each operation, the one that it would take first:
 * workspaces from large to small, each asked for by a limit below the one before. A way costs the
 * operation's work times its place, from 1: an order is all that libraries tell. *out is the
 * caller's. */
mpl_status mpl_exec_ways(mpl_ctx *ctx, const mpl_backend *backend, mpl_device *dev,
                         const mpl_graph *g, mpl_ways **out);

typedef struct mpl_exec_options {
    bool checked; /* poison buffers at birth and death, guard the arenas' ends, fail on any touch
                     outside */
    bool random_weights;                /* weights from weight_seed even where the file has data */
    uint64_t weight_seed;               /* for weights without data */
    const uint64_t *op_workspace_limit; /* [n_ops] of each operation; NULL: what the device allows.
                                           Read by mpl_exec_new alone [byte] */
    uint64_t work_limit; /* of one run, by mpl_run_work of each operation that it comes to; 0: none
                          */
    bool iterate; /* a run begins with the weights that the run before updated; false: each with the
                     first ones */
} mpl_exec_options;

/* Binds a graph, an order, and a verified plan (problem, map, plan; all three NULL: every value has
 * memory of its own, nothing shared) to a device: arenas and pinned memory allocated, weights
 * filled, operations prepared. Keeps backend, dev and g, which must outlive it; the others are done
 * with. MPL_ELIMIT: outside of loops and branches there is more work than options->work_limit,
 * nothing is allocated; MPL_EINPUT: the order is not the one that was planned for; MPL_EINVALID:
 * the plan does not fit the graph. */
mpl_status mpl_exec_new(mpl_ctx *ctx, const mpl_backend *backend, mpl_device *dev,
                        const mpl_graph *g, const mpl_op *order, const mpl_problem *p,
                        const mpl_value_map *map, const mpl_plan *plan,
                        const mpl_exec_options *options, mpl_exec **out);
void mpl_exec_free(mpl_ctx *ctx, mpl_exec *exec);

/* Contents of graph input i, from host memory in plain layout (value_bytes long). Kept for every
 * later run. */
mpl_status mpl_exec_set_input(mpl_exec *exec, uint32_t i, const void *data);
/* Runs the graph once. *ns (may be NULL): time of it, uploads and checks apart. MPL_EINVALID:
 * --checked found a touch outside, naming the operation and the buffer. MPL_ELIMIT: rounds and
 * branches passed options->work_limit. */
mpl_status mpl_exec_run(mpl_exec *exec, int64_t *ns);
/* Another order for the runs to come: a plan of safety parallel holds in all of them, if what
 * stands in blocks keeps its order (mpl_order_shuffle). MPL_EINPUT for a serial plan, or under
 * --checked, or when the order does not respect the graph. */
mpl_status mpl_exec_set_order(mpl_exec *exec, const mpl_op *order);
/* Runs the graph once with up to n_workers (1 to 64) operations at the same time, whatever the
 * graph's edges allow. For plans of safety parallel only (MPL_EINPUT); --checked is not looked
 * at. */
mpl_status mpl_exec_run_concurrent(mpl_exec *exec, uint32_t n_workers, int64_t *ns);
/* Copies graph output i to host memory. */
mpl_status mpl_exec_output(mpl_exec *exec, uint32_t i, void *data);

/* The rounds of loop `op` in the last run; of a loop in a block, that was run more than once, the
 * fewest; UINT64_MAX if it was not run. The rows that it stacks are zero from there on. */
uint64_t mpl_exec_fewest_rounds(const mpl_exec *exec, mpl_op op);

#define MPL_MOST_HOWS 24

typedef struct mpl_how_count {
    char name[40];
    uint32_t n;
} mpl_how_count;

typedef struct mpl_exec_facts {
    uint64_t arena_bytes;     /* allocated for pool 0, each of its memories: planned bytes [byte] */
    uint64_t measured_bytes;  /* pages of it that became resident [byte] */
    uint64_t workspace_bytes; /* arena of the workspace pool [byte] */
    uint64_t weight_bytes;    /* weights [byte] */
    uint64_t packed_bytes; /* copies of them in the layouts that the backend's library likes, made
                              once [byte] */
    uint64_t pinned_bytes; /* inputs and outputs [byte] */
    uint64_t copied_bytes; /* moved by concat, split, access, assign, copied views, control flow in
                              one run [byte] */
    uint32_t n_kernels;    /* operations that are not mere views, of all blocks */
    uint64_t loop_carry_bytes; /* of it, values carried from one round of a loop to the next [byte]
                                */
    uint64_t reordered_bytes;  /* moved by changes of layout in one run [byte] */
    /* Of a device that tells (mpl_backend.facts); empty and 0 elsewhere. */
    char device[400];                     /* device, driver, libraries, options */
    uint64_t device_allocations;          /* calls for memory inside runs: none may be */
    uint64_t device_before, device_after; /* its memory in use around the last run [byte] */
    uint64_t device_asked; /* of it for all memories of this graph, guards too [byte] */
    uint64_t device_taken; /* by how much its own count grew for them [byte] */
    uint64_t device_slack; /* how far the two may be apart: the device's granularity for each memory
                              [byte] */
    char math[8];          /* what operands of products are rounded to; empty: it does not tell */
    double tolerance;      /* of outputs against `ref` */
    bool two_ways;         /* runs alternate: call by call, and replayed as a whole */
    mpl_device_clocks clocks; /* after the last run */
    uint32_t n_hows; /* what computes how many operations, in the order of the graph; the last: all
                        others */
    mpl_how_count how[MPL_MOST_HOWS];
} mpl_exec_facts;
/* The figures of the last run; measured_bytes is of the first, and 0 before it (--checked touches
 * every page itself). */
mpl_status mpl_exec_facts_get(mpl_exec *exec, mpl_exec_facts *facts);

/* What computes an operation: the backend's `how`, or "nothing: a view". Valid until
 * mpl_exec_free. */
const char *mpl_exec_how(const mpl_exec *exec, mpl_op op);

/* Whether the contents of weight v are drawn from the seed, not what the graph has. */
bool mpl_exec_is_random(const mpl_graph *g, const mpl_exec_options *options, mpl_value v);
/* Contents of weight v, value_bytes of them, as mpl_exec_new would fill it in. */
void mpl_exec_make_weight(const mpl_graph *g, const mpl_exec_options *options, mpl_value v,
                          void *data);

/* Default contents of input i for seed 0: arange(n)/n in its type ("ramp"); otherwise pseudo-random
 * from the seed. */
mpl_status mpl_exec_make_input(mpl_ctx *ctx, const mpl_graph *g, uint32_t i, uint64_t seed,
                               void *data);

#endif
