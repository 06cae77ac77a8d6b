/* job.h -- GRAPH under options: opened, ordered, made a problem, planned, executed, as a row. */
#ifndef MPL_JOB_H
#define MPL_JOB_H

#include "graphs/orders/order.h"
#include "graphs/passes/incremental.h"
#include "graphs/passes/optimise/optimise.h"
#include "graphs/passes/passes.h"
#include "graphs/source.h"
#include "harness/job/asked.h"
#include "harness/rows/record.h"
#include "planners/search/concat.h"
#include "planners/recompute/recompute.h"
#include "planners/search/ways.h"
#include "runtime/backend.h"
#include "runtime/machine.h"

/* --input and --expect: "[NAME|INDEX=]FILE|ramp". */
typedef struct mpl_binding {
    char *name; /* owned; NULL: by index */
    uint32_t index;
    bool ramp;         /* arange(n)/n; no tensor */
    mpl_tensor tensor; /* data owned */
} mpl_binding;

typedef struct mpl_bindings {
    uint32_t n;
    mpl_binding *item;
} mpl_bindings;

/* What an order that searches found, all 0 and NULL where the order does not search (order.h,
 * mpl_order_run). */
typedef struct mpl_order_found {
    uint64_t live_bytes, bound_bytes, ticks;
    const char *method;
    int64_t ns;
} mpl_order_found;

/* One GRAPH under the options of the command line. */
typedef struct mpl_job {
    const char *text; /* GRAPH as it was given */
    mpl_bindings inputs;
    mpl_source source;
    bool is_program; /* it was one: source.graph is what tensor_ssa made of it */
    mpl_ssa_facts ssa;
    uint64_t graph_hash;
    mpl_pass_count passes[MPL_N_PASSES]; /* what --optimise did */
    uint32_t n_ops_before;               /* it; 0: it was not asked for */
    mpl_incremental_facts twice;         /* of --changed; n_ops 0: it was not asked for */
    mpl_recompute_found recomputed;      /* what --recompute did */
    int64_t recompute_ns;                /* it took; 0: it was not asked for */
    mpl_op *order;                       /* [n_ops]; NULL for a list of buffers */
    mpl_order_found order_found;
    struct mpl_job *given; /* beside an order that was searched for, the same in the order given: it
                            * borrows all but what its order makes different; NULL: nothing was
                            * searched for */
    mpl_word safety;       /* --safety; of a list, what it can be */
    mpl_machine machine;
    uint64_t work_limit; /* of one run, and of what mpl_job_check_claims counts; 0: none */

    /* From mpl_job_problem on. */
    const mpl_backend *backend; /* whose workspaces are in the problem; NULL: none */
    uint64_t *workspace_bytes;  /* [n_ops]; NULL without a backend */
    const mpl_problem *problem;
    mpl_problem *own_problem; /* NULL where the problem is the source's */
    mpl_value_map *map;       /* NULL for a list */
    mpl_concat_found concats; /* of --concat=auto */
    uint64_t naive_bytes, bound_bytes;
    uint32_t peak_step;
    const char *bound_kind;
} mpl_job;

/* "proved by cut", "bound by search", ..: what is known of the job's order. */
const char *mpl_order_proof(const mpl_job *job);
/* What that was proved over. Orders are searched for as if concats copied, and nothing is known of
 * plans where they do not. */
const char *mpl_order_scope(const mpl_job *job);

/* Checks what can be checked of options without a graph. MPL_EINPUT, MPL_EUNAVAIL. */
mpl_status mpl_job_check_options(mpl_ctx *ctx, const mpl_options *options);
/* The limit of `work_limit`: --work-limit, or what follows from the bytes of the file. */
uint64_t mpl_job_work_limit(const mpl_options *options, const mpl_source *source);
/* Before contents are made for them: whether the bytes that a file says its inputs and weights
 * have, and does not bring along, keep --work-limit, or MPL_CLAIMED_BYTES by default.
 * MPL_ELIMIT. */
#define MPL_CLAIMED_BYTES (UINT64_C(1) << 30)
mpl_status mpl_job_check_claims(mpl_ctx *ctx, const mpl_options *options, const mpl_job *job);
/* GRAPH read, through its passes, in its order. */
mpl_status mpl_job_open(mpl_ctx *ctx, const mpl_options *options, const char *graph, mpl_job *job);
/* These three, one by one; on failure the job is still to be freed. */
mpl_status mpl_job_read(mpl_ctx *ctx, const mpl_options *options, const char *graph, mpl_job *job);
mpl_status mpl_job_passes(mpl_ctx *ctx, const mpl_options *options, mpl_job *job);
mpl_status mpl_job_order(mpl_ctx *ctx, const mpl_options *options, mpl_job *job);
/* The problem and its bounds. backend (may be NULL): whose alignment and, from
 * workspace_bytes[n_ops] (may be NULL, copied), whose workspaces it has. May be called again. */
mpl_status mpl_job_problem(mpl_ctx *ctx, const mpl_options *options, const mpl_backend *backend,
                           const uint64_t *workspace_bytes, mpl_job *job);
/* The order given takes the place of the one that was searched for, and this that of job->given. */
void mpl_job_take_given(mpl_job *job);
void mpl_job_fini(mpl_ctx *ctx, mpl_job *job);

/* "O:key=value,..". MPL_EINPUT: no such order, a parameter without '='. */
mpl_status mpl_order_spec_parse(mpl_ctx *ctx, const char *text, const mpl_order_kind **kind,
                                mpl_params *params);

/* "M", "M:BYTES", "M:P%" or "none". */
typedef struct mpl_recompute_spec {
    const mpl_recompute_method *method; /* NULL: none */
    uint64_t budget;                    /* [byte] MPL_LEAST_PEAK: none */
    double part;                        /* of the peak without it; 0: budget stands */
    uint32_t without;                   /* rules it does without, as bits */
} mpl_recompute_spec;

/* MPL_EINPUT: no such method, or no such budget. */
mpl_status mpl_recompute_spec_parse(mpl_ctx *ctx, const char *text, mpl_recompute_spec *out);
/* Replaces *g by the graph that the spec makes of it; *ns > 0 is the time of that, 0: none was
 * asked for. */
mpl_status mpl_recompute_graph(mpl_ctx *ctx, const mpl_problem_options *options,
                               const mpl_recompute_spec *spec, mpl_graph **g,
                               mpl_recompute_found *found, int64_t *ns);

/* What --backend names; *out NULL where it is not given. MPL_EINPUT: no such backend; MPL_EUNAVAIL:
 * absent, with the reason. */
mpl_status mpl_backend_by_option(mpl_ctx *ctx, const char *name, const mpl_backend **out);
/* Whether --algorithms is one, and goes with the other options. MPL_EINPUT. */
mpl_status mpl_algorithms_check(mpl_ctx *ctx, const mpl_options *options);
/* way[n_ops]: those of --algorithms for the job's graph in its order. MPL_EINVALID, MPL_ELIMIT: as
 * mpl_ways_choose. */
mpl_status mpl_job_choose_ways(mpl_ctx *ctx, const mpl_options *options, const mpl_backend *backend,
                               const mpl_job *job, const mpl_ways *ways, uint32_t *way);
/* A new array of the workspace bytes of each operation under --algorithms, asked of the backend in
 * this process; NULL for a list, or without a backend. */
mpl_status mpl_job_ask_workspaces(mpl_ctx *ctx, const mpl_options *options,
                                  const mpl_backend *backend, const mpl_job *job,
                                  uint64_t **workspace_bytes);

/* The problem, for --backend and its workspaces; the backend is asked in this process.
 * MPL_EINPUT: no such backend; MPL_EUNAVAIL: absent, with the reason. */
mpl_status mpl_job_problem_here(mpl_ctx *ctx, const mpl_options *options, mpl_job *job);

/* "P:key=value,..", or a planner from outside (harness/foreign/foreign.h). */
typedef struct mpl_planner_spec {
    const mpl_planner *planner;
    struct mpl_foreign *foreign; /* owned, holds the planner; NULL: one of this program's */
    bool peer;                   /* of bench --peer */
    mpl_params params;
} mpl_planner_spec;

/* MPL_EINPUT: no such planner (lists what there is), a parameter without '='. */
mpl_status mpl_planner_spec_parse(mpl_ctx *ctx, const char *text, mpl_planner_spec *out);
/* NAME=PATH|CMD, as bench --peer takes it. MPL_EINPUT. */
mpl_status mpl_planner_spec_peer(mpl_ctx *ctx, const char *text, mpl_planner_spec *out);
/* Cuts "a,b:x=1,y=2,c" into planners: a part with '=' and no ':' belongs to the planner before;
 * exec: takes the rest. */
typedef mpl_status mpl_planner_take(void *arg, const char *text);
mpl_status mpl_planner_list(mpl_ctx *ctx, const char *text, mpl_planner_take *take, void *arg);
void mpl_planner_spec_fini(mpl_ctx *ctx, mpl_planner_spec *spec);

/* A new row with the build, the machine and all that names a run: the job, the planner (may be
 * NULL), the options. */
mpl_status mpl_job_row(mpl_ctx *ctx, const mpl_options *options, const mpl_job *job,
                       const mpl_planner_spec *spec, mpl_record **row);
/* Runs the planner on the job's problem; *plan is verified; the row, which may be replaced, gets
 * what the plan is and what it took. Where an order was searched for, it also runs on the order
 * given, unless a bound says that it cannot be lower, and the lower plan is kept: *kept is the job
 * whose plan it is, job or job->given. MPL_ELIMIT: it does not fit the capacity, and that it cannot
 * is not proved; MPL_EINVALID: it cannot; *plan is then the claim `infeasible` where a planner made
 * it, with its certificate, and places nothing; else a failure leaves NULL. A failure stands in the
 * row, too. */
mpl_status mpl_job_plan(mpl_ctx *ctx, const mpl_options *options, const mpl_job *job,
                        const mpl_planner_spec *spec, mpl_record **row, mpl_plan **plan,
                        const mpl_job **kept);
/* The same; where the order given is kept, it becomes the job's. */
mpl_status mpl_job_plan_best(mpl_ctx *ctx, const mpl_options *options, mpl_job *job,
                             const mpl_planner_spec *spec, mpl_record **row, mpl_plan **plan);
/* The same once more, only for its times: *plan_ns, and what a command says that it took, 0 for
 * nothing. A failure stands in the row. */
mpl_status mpl_job_plan_again(mpl_ctx *ctx, const mpl_options *options, const mpl_job *job,
                              const mpl_planner_spec *spec, mpl_record *row, int64_t *plan_ns,
                              int64_t *self_ns);
/* Verifies a plan from a file. Its claim and bound are kept only where its certificate, or the
 * problem, proves them. */
mpl_status mpl_job_verify_file(mpl_ctx *ctx, const mpl_job *job, mpl_plan *plan);
/* The byte fields of a row from a verified plan. */
mpl_status mpl_job_plan_fields(mpl_ctx *ctx, const mpl_job *job, const mpl_plan *plan,
                               mpl_record *row);
/* "build" and "machine" of a row. */
void mpl_row_build(const mpl_machine *machine, mpl_record *row);
/* Which problem it is, and how the planner (may be NULL) sees it. */
void mpl_row_problem(const mpl_job *job, const mpl_planner_spec *spec, mpl_record *row);
/* Why a claim has no certificate. */
const char *mpl_proof_absence(const mpl_plan *plan);
/* A row's status for a failure of ours. */
const char *mpl_row_status(mpl_status st);
/* A failure as a row: its status and reason; byte and time fields null again. */
void mpl_row_fail(mpl_record *row, const char *status, const char *reason);

/* A plan file, checked against the job's GRAPH: options that the command line does not give are
 * taken over from the file (before the problem is made), and the problem must have the file's
 * hash. */
mpl_status mpl_job_open_plan(mpl_ctx *ctx, mpl_options *options, const char *graph,
                             const char *path, mpl_plan_file *file, mpl_record **row, mpl_job *job);

/* What came of GRAPH. */
typedef struct mpl_made {
    mpl_job job;
    mpl_record *row;
    mpl_plan *plan;                /* verified */
    struct mpl_executed *executed; /* execute.h */
} mpl_made;

typedef enum mpl_stage { MPL_TO_PROBLEM, MPL_TO_PLAN, MPL_TO_RUN } mpl_stage;

/* job.c: everything that memplan does with one GRAPH, up to a stage. The plan comes from --planner
 * or from --plan, whose file may set options that the command line leaves open; these then point
 * into the row. What was made before a failure is there. */
mpl_status mpl_make(mpl_ctx *ctx, mpl_options *options, const char *graph, mpl_stage last,
                    mpl_made *made);
void mpl_made_fini(mpl_ctx *ctx, mpl_made *made);

/* Files named by --input or --expect, read. */
mpl_status mpl_bindings_read(mpl_ctx *ctx, const char *what, const mpl_strings *texts,
                             mpl_bindings *out);
void mpl_bindings_fini(mpl_ctx *ctx, mpl_bindings *bindings);

#endif
