/* job.h -- one GRAPH under options: opened, ordered, turned into a problem, planned, executed, and
 * written as a row. */
#pragma once

#include "graphs/orders/order.h"
#include "graphs/passes/incremental.h"
#include "graphs/passes/optimise/optimise.h"
#include "graphs/passes/passes.h"
#include "graphs/passes/unroll_loops.h"
#include "harness/job/asked.h"
#include "harness/tile/tile_job.h"
#include "planners/plan/plan_choices.h"
#include "planners/plan/residency.h"
#include "planners/recompute/recompute.h"
#include "planners/search/concat.h"
#include "planners/search/ways.h"
#include "runtime/backend.h"
#include "runtime/machine.h"

/* --input: "[NAME|INDEX=]FILE|ramp"; --expect: "[NAME|INDEX=]FILE[:REL[,ABS]]". */
typedef struct mpl_binding {
    char *name;                /* owned; NULL: by index */
    uint32_t index;            /* if nothing has the name; MPL_NONE: the name is no number */
    double relative, absolute; /* what --expect allows: either */
    bool ramp;                 /* arange(n)/n, without a tensor */
    mpl_tensor tensor;         /* data owned */
} mpl_binding;

typedef struct mpl_bindings {
    uint32_t n;
    mpl_binding *item;
} mpl_bindings;

/* Result of an order that searches; all 0 and NULL for other orders (order.h, mpl_order_run). */
typedef struct mpl_order_found {
    uint64_t live_bytes, bound_bytes, ticks;
    const char *method, *scope;
    int64_t ns;
} mpl_order_found;

/* A command's own way to open GRAPH: as a list of buffers. */
typedef struct mpl_opener {
    mpl_status (*open)(void *arg, mpl_ctx *ctx, const mpl_options *options, mpl_problem **list);
    void *arg;
} mpl_opener;

/* One GRAPH under the options of the command line. */
/* A verified plan of residency in time, for an execution. */
typedef struct mpl_job_residency {
    mpl_residency_problem *p;
    mpl_residency_plan *plan;
    uint32_t *of_buffer; /* [buffers of the problem] buffer of p, or MPL_NONE */
} mpl_job_residency;

typedef struct mpl_job {
    const char *text; /* GRAPH as given */
    mpl_bindings inputs;
    mpl_source source;
    bool is_program; /* source.graph was made by tensor_ssa from a program */
    mpl_ssa_facts ssa;
    uint64_t graph_hash;
    mpl_pass_count passes[MPL_N_PASSES]; /* counts of --optimise */
    uint32_t n_ops_before;               /* before --optimise; 0: not asked for */
    mpl_incremental_facts twice;         /* of --changed; n_ops 0: not asked for */
    mpl_recompute_found recomputed;      /* result of --recompute */
    int64_t recompute_ns;                /* its time; 0: not asked for */
    mpl_unrolled_loops unrolled;         /* result of --unroll */
    mpl_tiled tiled;                     /* result of --tile */
    uint64_t tuned_ns; /* of --layout tuned: the sum of measured times; 0: not asked for */
    mpl_op *order;     /* [n_ops]; NULL for a list of buffers */
    mpl_order_found order_found;
    mpl_plan_choices choices; /* of mpl_job_order_chosen; all NULL: the options decide */
    /* After a search: the same job in the given order. It borrows everything that the order does
     * not change. NULL: no order was searched for. */
    struct mpl_job *given;
    mpl_safety safety;     /* --safety, or what a list allows */
    uint64_t simulated_ns; /* of the streams */
    mpl_streams *streams;  /* of the order, or of a plan file; NULL: not asked for, or not made yet
                            */
    mpl_machine machine;
    const uint8_t *held; /* [n_values] of mpl_problem_options; borrowed; NULL: nothing is */
    uint64_t work_limit; /* of one run, and for mpl_job_check_claims; 0: none */

    /* Valid after mpl_job_problem. */
    const mpl_backend *backend; /* of the workspaces; NULL: none */
    uint64_t *workspace_bytes;  /* [n_ops]; NULL without a backend */
    const mpl_problem *problem;
    mpl_problem *own_problem; /* NULL: the problem belongs to the source */
    mpl_value_map *map;       /* NULL for a list */
    mpl_concat_found concats; /* of --concat=auto */
    uint64_t naive_bytes, bound_bytes;
    uint32_t peak_step;
    const char *bound_kind;
    const mpl_job_residency *residency; /* borrowed; NULL: nothing moves */
    bool borrows; /* of mpl_job_borrow: source, inputs and streams are another job's */
} mpl_job;

/* How the job's order is proved: "proved by cut", "bound by search", .. */
const char *mpl_order_proof(const mpl_job *job);

/* Checks options as far as possible without a graph. MPL_EINPUT, MPL_EUNAVAIL. */
mpl_status mpl_job_check_options(mpl_ctx *ctx, const mpl_options *options);
/* Sets the safety that --workers stands for if --safety is not given. */
mpl_status mpl_job_default_safety(mpl_ctx *ctx, mpl_command_id command, mpl_options *options);
/* Threads of a device under --threads and --workers: of one worker; 0: the backend's choice. */
uint32_t mpl_job_threads(const mpl_options *options, const mpl_machine *machine);
/* The value of `work_limit`: --work-limit, else derived from the file's bytes. */
uint64_t mpl_job_work_limit(const mpl_options *options, const mpl_source *source);
/* Checks the bytes of inputs and weights that a file declares without data, before they are made.
 * MPL_ELIMIT: above --work-limit, by default MPL_CLAIMED_BYTES. */
#define MPL_CLAIMED_BYTES (UINT64_C(1) << 30)
mpl_status mpl_job_check_claims(mpl_ctx *ctx, const mpl_options *options, const mpl_job *job);
/* Reads GRAPH, runs its passes and orders it. */
mpl_status mpl_job_open(mpl_ctx *ctx, const mpl_options *options, const char *graph, mpl_job *job);
/* The same three steps separately. After a failure the caller still frees the job. */
mpl_status mpl_job_read(mpl_ctx *ctx, const mpl_options *options, const char *graph, mpl_job *job);
mpl_status mpl_job_passes(mpl_ctx *ctx, const mpl_options *options, mpl_job *job);
mpl_status mpl_job_order(mpl_ctx *ctx, const mpl_options *options, mpl_job *job);
/* Assigns streams to the order under --safety streams:K, if the job has none yet. */
mpl_status mpl_job_streams(mpl_ctx *ctx, mpl_job *job);
/* In place of mpl_job_order: takes the order from choices of a search, which *taken leaves empty.
 * They also decide what concats and splits share in mpl_job_problem. */
void mpl_job_order_chosen(mpl_plan_choices *taken, mpl_job *job);
/* Makes the problem and its bounds. backend (may be NULL) gives the alignment;
 * workspace_bytes[n_ops] (may be NULL, copied) are its workspaces. May be called again. */
mpl_status mpl_job_problem(mpl_ctx *ctx, const mpl_options *options, const mpl_backend *backend,
                           const uint64_t *workspace_bytes, mpl_job *job);
/* Options of the problem that mpl_job_problem makes, but for workspaces and choices. MPL_EINPUT:
 * planned workspaces without a backend. */
mpl_status mpl_job_problem_options(mpl_ctx *ctx, const mpl_options *options,
                                   const mpl_backend *backend, const mpl_job *job,
                                   mpl_problem_options *out);
/* Swaps the order that was searched for with the given order in job->given. */
void mpl_job_take_given(mpl_job *job);
/* A job of the graph of `from`, which must outlive it, in this order; its problem, in which concats
 * copy, is yet to be made. The caller calls fini even after a failure. */
mpl_status mpl_job_borrow(mpl_ctx *ctx, const mpl_job *from, const mpl_op *order, mpl_job *out);
void mpl_job_fini(mpl_ctx *ctx, mpl_job *job);

/* Parses "O:key=value,..". MPL_EINPUT: no such order, a parameter without '='. */
mpl_status mpl_order_spec_parse(mpl_ctx *ctx, const char *text, const mpl_order_kind **kind,
                                mpl_params *params);

/* The `order` of a row whose plan file holds the order itself. */
#define MPL_ORDER_LEAST "least"

/* "M", "M:BYTES", "M:P%", "revolve:SLOTS" or "none"; without= and loops= follow with commas. */
typedef struct mpl_recompute_spec {
    const mpl_recompute_method *method; /* NULL: none */
    uint64_t budget;                    /* [byte]; MPL_LEAST_PEAK: none */
    double part;                        /* of the peak without recomputation; 0: use budget */
    uint32_t without;                   /* bit set of disabled rules */
    const mpl_recompute_method *loops;  /* of their tapes; NULL: as they are */
    uint32_t slots;                     /* of revolve; 0: its own number */
} mpl_recompute_spec;

/* MPL_EINPUT: no such method, or no such budget. */
mpl_status mpl_recompute_spec_parse(mpl_ctx *ctx, const char *text, mpl_recompute_spec *out);
/* "none": *copies is 1; "auto": 0; "K". MPL_EINPUT. */
mpl_status mpl_unroll_parse(mpl_ctx *ctx, const char *text, uint64_t *copies);
/* Replaces *g by the graph with recomputation. *ns > 0 is the time taken; 0: not asked for. */
mpl_status mpl_recompute_graph(mpl_ctx *ctx, const mpl_problem_options *options,
                               const mpl_recompute_spec *spec, mpl_graph **g,
                               mpl_recompute_found *found, int64_t *ns);

/* The backend of --backend; *out is NULL if the option is not given. MPL_EINPUT: no such backend;
 * MPL_EUNAVAIL: absent, with the reason. */
mpl_status mpl_backend_by_option(mpl_ctx *ctx, const char *name, const mpl_backend **out);
/* Whether --algorithms is valid and fits the other options. MPL_EINPUT. */
mpl_status mpl_algorithms_check(mpl_ctx *ctx, const mpl_options *options);
/* way[n_ops]: choices of --algorithms for the job's graph in its order. MPL_EINVALID, MPL_ELIMIT:
 * as mpl_ways_choose. */
mpl_status mpl_job_choose_ways(mpl_ctx *ctx, const mpl_options *options, const mpl_backend *backend,
                               const mpl_job *job, const mpl_ways *ways, uint32_t *way);
/* A new array of each operation's workspace bytes under --algorithms. Loads the backend into this
 * process. NULL for a list, or without a backend. */
mpl_status mpl_job_ask_workspaces(mpl_ctx *ctx, const mpl_options *options,
                                  const mpl_backend *backend, const mpl_job *job,
                                  uint64_t **workspace_bytes);

/* Makes the problem for --backend with its workspaces. Loads the backend into this process.
 * MPL_EINPUT: no such backend; MPL_EUNAVAIL: absent, with the reason. */
mpl_status mpl_job_problem_here(mpl_ctx *ctx, const mpl_options *options, mpl_job *job);

/* "P:key=value,..", or an external planner (harness/foreign/foreign.h). */
typedef struct mpl_planner_spec {
    const mpl_planner *planner;
    struct mpl_foreign *foreign; /* owned, holds the planner; NULL: a built-in planner */
    bool peer;                   /* of bench --peer */
    mpl_params params;
} mpl_planner_spec;

/* MPL_EINPUT: no such planner (lists the planners), a parameter without '='. */
mpl_status mpl_planner_spec_parse(mpl_ctx *ctx, const char *text, mpl_planner_spec *out);
/* Parses NAME=PATH|CMD of bench --peer. MPL_EINPUT. */
mpl_status mpl_planner_spec_peer(mpl_ctx *ctx, const char *text, mpl_planner_spec *out);
/* Cuts "a,b:x=1,y=2,c" into planners. A part with '=' and no ':' belongs to the planner before it;
 * exec: takes the rest of the text. */
typedef mpl_status mpl_planner_take(void *arg, const char *text);
mpl_status mpl_planner_list(mpl_ctx *ctx, const char *text, mpl_planner_take *take, void *arg);
void mpl_planner_spec_fini(mpl_ctx *ctx, mpl_planner_spec *spec);

/* A new row with the build, the machine and everything that names a run: the job, the planner (may
 * be NULL), the options. */
mpl_status mpl_job_row(mpl_ctx *ctx, const mpl_options *options, const mpl_job *job,
                       const mpl_planner_spec *spec, mpl_record **row);
/* Runs the planner on the job's problem and verifies *plan. The row, which may be replaced, gets
 * the facts and the costs of the plan. After a search for an order it also plans the given order,
 * unless a bound shows that this cannot be better, and keeps the lower plan. *kept is the job of
 * that plan: job or job->given. MPL_ELIMIT: no plan that fits the capacity was found, and it is not
 * proved that none does. MPL_EINVALID: it is proved that none fits; if a planner proved it, *plan
 * has the claim `infeasible`, its certificate and no offsets. Other failures set *plan to NULL. The
 * row records all failures. */
mpl_status mpl_job_plan(mpl_ctx *ctx, const mpl_options *options, const mpl_job *job,
                        const mpl_planner_spec *spec, mpl_record **row, mpl_plan **plan,
                        const mpl_job **kept);
/* The same; if the given order is kept, it becomes the job's. */
mpl_status mpl_job_plan_best(mpl_ctx *ctx, const mpl_options *options, mpl_job *job,
                             const mpl_planner_spec *spec, mpl_record **row, mpl_plan **plan);
/* Plans again, only to measure times: *plan_ns, and a command's own time (0: none). The row records
 * a failure. */
mpl_status mpl_job_plan_again(mpl_ctx *ctx, const mpl_options *options, const mpl_job *job,
                              const mpl_planner_spec *spec, mpl_record *row, int64_t *plan_ns,
                              int64_t *self_ns);
/* Verifies a plan from a file. Its claim and bound are kept only if its certificate or the problem
 * proves them. */
mpl_status mpl_job_verify_file(mpl_ctx *ctx, const mpl_job *job, mpl_plan *plan);
/* Writes the byte fields of a verified plan into a row. */
mpl_status mpl_job_plan_fields(mpl_ctx *ctx, const mpl_job *job, const mpl_plan *plan,
                               mpl_record *row);
/* Writes "build" and "machine" of a row. */
void mpl_row_build(const mpl_machine *machine, mpl_record *row);
/* Removes fields that differ between builds, machines or runs. */
void mpl_row_forget_origin(mpl_record *row);
/* Writes the problem, and the planner's (may be NULL) view of it. */
void mpl_row_problem(const mpl_job *job, const mpl_planner_spec *spec, mpl_record *row);
/* Why a claim has no certificate. */
const char *mpl_proof_absence(const mpl_plan *plan);
/* A row's status for a failure of memplan itself. */
const char *mpl_row_status(mpl_status st);
/* Records a failure in a row: its status and reason. Byte and time fields become null. */
void mpl_row_fail(mpl_record *row, const char *status, const char *reason);

/* Adds to the fields of a plan file what only the job knows: bindings and choices. */
mpl_status mpl_job_add_members(mpl_ctx *ctx, const mpl_job *job, char **fields_json);
/* Whether the file is a plan of this kind: template, residency. */
bool mpl_plan_of_kind(mpl_ctx *ctx, const char *path, const char *kind);
/* Writes a plan file: the problem, the plan, the fields of its row, and the job's members. */
mpl_status mpl_job_write_plan(mpl_ctx *ctx, const mpl_job *job, const mpl_plan *plan,
                              const char *row_json, const char *path);
/* Takes the row's values of options that the command line does not give, and `in_place`, as the
 * file lists the pairs itself; texts then point into the row. */
mpl_status mpl_job_adopt(mpl_ctx *ctx, mpl_options *options, bool in_place, const mpl_record *row);
/* Opens a plan file for the job's GRAPH. Options not given on the command line are taken from the
 * file before the problem is made. The problem's hash must be the file's. */
mpl_status mpl_job_open_plan(mpl_ctx *ctx, mpl_options *options, const char *graph,
                             const char *path, mpl_plan_file *file, mpl_record **row, mpl_job *job);

/* Results for one GRAPH. */
typedef struct mpl_made {
    mpl_job job;
    mpl_record *row;
    mpl_plan *plan;                /* verified */
    struct mpl_executed *executed; /* execute.h */
} mpl_made;

typedef enum mpl_stage { MPL_TO_PROBLEM, MPL_TO_PLAN, MPL_TO_RUN } mpl_stage;

/* job.c: runs all steps for one GRAPH, up to a stage. The plan comes from --planner or --plan. A
 * plan file may set options that the command line does not; these point into the row. After a
 * failure `made` holds the results so far. */
mpl_status mpl_make(mpl_ctx *ctx, mpl_options *options, const char *graph, mpl_stage last,
                    mpl_made *made);
void mpl_made_fini(mpl_ctx *ctx, mpl_made *made);

/* Reads the files named by --input or --expect. */
mpl_status mpl_bindings_read(mpl_ctx *ctx, const char *what, const mpl_strings *texts,
                             mpl_bindings *out);
void mpl_bindings_fini(mpl_ctx *ctx, mpl_bindings *bindings);
