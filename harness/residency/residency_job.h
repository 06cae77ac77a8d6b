/* residency_job.h -- memplan plan, run and certify of plans of residency in time: what lies in fast
 * memory while which steps run (planners/plan/residency.h). */
#pragma once

#include "harness/job/execute.h"

/* GRAPH under --memories and --residency. */
typedef struct mpl_residency_job {
    mpl_made made;           /* the graph without in-place pairs and shared concats; its row */
    mpl_job_residency found; /* verified */
    mpl_plan *plan;          /* both memories, for the executor */
    uint64_t without_bytes;  /* of GRAPH's plan in one memory [byte] */
    uint64_t furthest_cost, density_cost;
    uint64_t furthest_ns, density_ns; /* their stall, with a bandwidth */
} mpl_residency_job;

/* Whether --residency is asked for, or --plan names such a file. MPL_EINPUT: --memories without. */
mpl_status mpl_residency_asked(mpl_ctx *ctx, const mpl_options *options, bool *asked);
/* Plans GRAPH, or reads the plan of --plan and compares it with GRAPH; verifies; makes the row.
 * MPL_EINPUT: options or graphs that have no such plan. The caller calls fini even after a failure.
 */
mpl_status mpl_residency_job_plan(mpl_ctx *ctx, mpl_options *options, mpl_residency_job *out);
/* Executes it in two memories. MPL_EINVALID: outputs are not the bits of the run that shares
 * nothing, or other bytes moved than planned. */
mpl_status mpl_residency_job_run(mpl_ctx *ctx, mpl_options *options, mpl_residency_job *job);
mpl_status mpl_residency_job_write(mpl_ctx *ctx, const mpl_residency_job *job,
                                   const mpl_record *row, const char *path);
/* By what no plan costs less than its bound: prices, search or program. */
const char *mpl_residency_proof(const mpl_residency_plan *plan);
void mpl_residency_job_print(const mpl_residency_job *job);
void mpl_residency_job_fini(mpl_ctx *ctx, mpl_residency_job *job);

/* The capacity that --memories asks for beside a plan of so many bytes in one memory. MPL_EINPUT:
 * it, or other options, ask for what there is not. */
mpl_status mpl_residency_job_check(mpl_ctx *ctx, const mpl_options *options, uint64_t bytes,
                                   uint64_t *capacity);
/* Plans the graph of an open job, which must outlive *out, in this order; verifies; makes the row.
 * `run` as of mpl_residency_solve. MPL_EINPUT: the graph has no such plan; MPL_ELIMIT: none
 * was found. The caller calls fini even after a failure. */
mpl_status mpl_residency_job_of(mpl_run *run, const mpl_options *options, const mpl_job *from,
                                const mpl_op *order, uint64_t without_bytes,
                                mpl_residency_job *out);

/* memplan certify: verifies a file, and prints a line, or leaves the row in options->result.
 * MPL_EINVALID: it is refused. */
mpl_status mpl_residency_certify(mpl_ctx *ctx, mpl_options *options, const char *path);

/* residency_uses.c: the uses of the job's buffers of pool 0; of_buffer[] as in the executor. Only
 * capacity and prices are left to set. */
mpl_status mpl_residency_uses(mpl_ctx *ctx, const mpl_job *job, mpl_residency_problem **p,
                              uint32_t **of_buffer);
