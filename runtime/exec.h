/* exec.h -- executes a graph inside a plan's arenas, or with nothing shared, on one backend. */
#pragma once

#include "planners/plan/residency.h"
#include "planners/search/ways.h"
#include "runtime/backend.h"

typedef struct mpl_exec mpl_exec;

/* Workspace bytes of each operation on a device: op_workspace_bytes of mpl_problem_options. */
mpl_status mpl_exec_workspaces(mpl_ctx *ctx, const mpl_backend *backend, mpl_device *dev,
                               const mpl_graph *g, uint64_t *op_workspace_bytes);

/* The ways in which the device can compute each operation, its preferred one first. They are found
 * by lowering the workspace limit below that of the previous way, so workspaces go from large to
 * small. Way i (from 1) costs i times the operation's work: libraries report only an order, no
 * times. The caller frees *out. */
mpl_status mpl_exec_ways(mpl_ctx *ctx, const mpl_backend *backend, mpl_device *dev,
                         const mpl_graph *g, mpl_ways **out);

/* Memory that several executors share, one after the other. */
typedef struct mpl_exec_memory {
    void *arena;             /* of pool 0, from the backend's arena_new; outlives the executors */
    uint64_t bytes;          /* of it */
    const uint64_t *held_at; /* [n_values] offset of a root that lies there from run to run, with
                                what was there before; UINT64_MAX: no such root [byte] */
} mpl_exec_memory;

typedef struct mpl_exec_options {
    bool checked; /* poison dead buffers, guard the arenas' ends, fail on an access outside */
    bool random_weights;                /* use weight_seed even where the file has data */
    uint64_t weight_seed;               /* for weights without data */
    const uint64_t *op_workspace_limit; /* [n_ops] or NULL; only for mpl_exec_new [byte] */
    uint64_t work_limit;                /* limit of one run, in units of mpl_run_work; 0: none */
    bool iterate;       /* runs keep updated weights; false: each starts from the initial ones */
    uint32_t n_workers; /* as mpl_exec_set_workers; 0: 1 */
    const mpl_exec_memory *within; /* of a plan; only for mpl_exec_new, not with checked; NULL: an
                                      arena of its own */
} mpl_exec_options;

/* Binds a graph, an order and a verified plan to a device: allocates arenas and pinned memory,
 * fills weights, prepares operations. p, map and plan are all NULL for a run in which
 * every value has memory of its own. backend, dev and g must outlive the executor; the other
 * arguments need not. MPL_ELIMIT: the work outside loops and branches exceeds options->work_limit;
 * nothing is allocated. MPL_EINPUT: this is not the order that was planned for. MPL_EINVALID: the
 * plan does not fit the graph, or the memory given. */
mpl_status mpl_exec_new(mpl_ctx *ctx, const mpl_backend *backend, mpl_device *dev,
                        const mpl_graph *g, const mpl_op *order, const mpl_problem *p,
                        const mpl_value_map *map, const mpl_plan *plan,
                        const mpl_exec_options *options, mpl_exec **out);
void mpl_exec_free(mpl_ctx *ctx, mpl_exec *exec);
/* Later runs follow a plan of residency in time: `exec` was made of a plan that spreads pool 0 over
 * two memories, fast and slow, as large as this one needs. Pages of slow memory are bound to
 * another NUMA node where there is one. of_buffer[] of the buffers of q, whose map it is: which of
 * p it is, a family as one, or MPL_NONE. MPL_EINVALID: an operand has no use in the plan.
 * MPL_EINPUT: loops, several workers,
 * --checked, a backend that is not of the host. */
mpl_status mpl_exec_reside(mpl_exec *exec, const mpl_problem *q, const mpl_value_map *map,
                           const mpl_residency_problem *p, const mpl_residency_plan *plan,
                           const uint32_t *of_buffer);

/* Contents of graph input i (value_bytes, plain layout), kept for all later runs. */
mpl_status mpl_exec_set_input(mpl_exec *exec, uint32_t i, const void *data);
/* Runs the graph once. *ns (may be NULL): its time, without uploads and checks. MPL_EINVALID:
 * --checked found an access outside; the message names the operation and the buffer. MPL_ELIMIT:
 * rounds and branches exceeded options->work_limit. */
mpl_status mpl_exec_run(mpl_exec *exec, int64_t *ns);
/* Sets another order for later runs. A plan of safety parallel allows any order that keeps the
 * order inside blocks (mpl_order_shuffle). MPL_EINPUT: the plan is serial or has streams, --checked
 * is on, or the order does not respect the graph. */
mpl_status mpl_exec_set_order(mpl_exec *exec, const mpl_op *order);
/* Later runs are made by n workers (1 to 64), threads with a share of the cores each: independent
 * operations run at the same time. Of a plan with streams, worker k runs streams k, k + n, ..; each
 * in the order. 1: the caller's thread, one operation after the other. The device should have been
 * opened with one worker's share of threads, which each worker uses. MPL_EINPUT: the plan is
 * serial. MPL_EUNAVAIL: the backend cannot. MPL_EMEM: no memory or threads. */
#define MPL_MOST_WORKERS 64
mpl_status mpl_exec_set_workers(mpl_exec *exec, uint32_t n);
/* Time of the last run during which two or more operations ran; 0 with one worker. */
int64_t mpl_exec_concurrent_ns(const mpl_exec *exec);
/* Time of each outermost operation with its blocks, one after the other: the least of n runs; 0 of
 * those that run nothing. [ns] MPL_EUNAVAIL: the device runs the graph as a whole. */
mpl_status mpl_exec_op_times(mpl_exec *exec, uint32_t n, uint64_t *ns);
/* Copies graph output i to host memory. */
mpl_status mpl_exec_output(mpl_exec *exec, uint32_t i, void *data);

/* Rounds of loop `op` in the last run; UINT64_MAX if it was not run. For a loop inside a block that
 * ran several times: the fewest. Stacked rows from there on are zero. */
uint64_t mpl_exec_fewest_rounds(const mpl_exec *exec, mpl_op op);

#define MPL_MOST_HOWS 24

typedef struct mpl_how_count {
    char name[40];
    uint32_t n;
} mpl_how_count;

typedef struct mpl_exec_facts {
    uint64_t arena_bytes; /* allocated for pool 0 in all its memories: the planned bytes [byte] */
    uint64_t measured_bytes;  /* resident pages of arena_bytes [byte] */
    uint64_t workspace_bytes; /* arena of the workspace pool [byte] */
    uint64_t weight_bytes;    /* [byte] */
    uint64_t packed_bytes;    /* one-time copies of weights in the library's layouts [byte] */
    uint64_t pinned_bytes;    /* inputs and outputs [byte] */
    uint64_t copied_bytes; /* by concat, split, access, assign, copied views, control flow [byte] */
    uint32_t n_kernels;    /* operations of all blocks, without mere views */
    uint64_t loop_carry_bytes; /* part of copied_bytes: values carried from round to round [byte] */
    uint64_t moved_bytes;      /* between two memories, by a plan of residency [byte] */
    uint64_t reordered_bytes;  /* moved by changes of layout in one run [byte] */
    /* From devices that have mpl_backend.facts; empty and 0 elsewhere. */
    char device[400];                     /* device, driver, libraries, options */
    uint64_t device_allocations;          /* allocations inside runs: must be 0 */
    uint64_t device_before, device_after; /* memory in use around the last run [byte] */
    uint64_t device_asked; /* requested for all memories of this graph, with guards [byte] */
    uint64_t device_taken; /* growth of the device's own count for them [byte] */
    uint64_t device_slack; /* allowed difference: the granularity of each memory [byte] */
    char math[8];          /* type that operands of products are rounded to; empty: not reported */
    double tolerance;      /* of outputs against `ref` */
    bool two_ways;         /* runs alternate: call by call, and replayed as a whole */
    mpl_device_clocks clocks; /* after the last run */
    uint32_t n_hows;          /* implementations and counts in graph order; last: all others */
    mpl_how_count how[MPL_MOST_HOWS];
} mpl_exec_facts;
/* The figures of the last run. measured_bytes is taken in the first run, and 0 before it: --checked
 * itself touches every page. */
mpl_status mpl_exec_facts_get(mpl_exec *exec, mpl_exec_facts *facts);

/* Names what computes an operation: the backend's `how`, or "nothing: a view". Valid until
 * mpl_exec_free. */
const char *mpl_exec_how(const mpl_exec *exec, mpl_op op);

/* Whether the contents of weight v are drawn from the seed instead of the graph. */
bool mpl_exec_is_random(const mpl_graph *g, const mpl_exec_options *options, mpl_value v);
/* Contents of weight v (value_bytes) as mpl_exec_new would fill them in. */
void mpl_exec_make_weight(const mpl_graph *g, const mpl_exec_options *options, mpl_value v,
                          void *data);

/* Default contents of input i. Seed 0: arange(n)/n in its type ("ramp"); otherwise pseudo-random
 * from the seed. */
mpl_status mpl_exec_make_input(mpl_ctx *ctx, const mpl_graph *g, uint32_t i, uint64_t seed,
                               void *data);
