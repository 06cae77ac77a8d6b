/* worker.h -- an execution in a separate process. A crash or a hang costs one row, and the resident
 * set is measured alone. */
#pragma once

#include "harness/job/measure.h"

typedef struct mpl_worker mpl_worker;

/* Input of a worker, borrowed until the worker is freed. */
typedef struct mpl_worker_task {
    const mpl_job *job;
    const mpl_plan *plan; /* NULL: no memory sharing */
    const mpl_exec_options *options;
    const mpl_options *command; /* options with --compare, beside a plan; NULL: none */
    const mpl_inputs *inputs;
    uint32_t n_threads;
    const char *device; /* parameters of the backend, or NULL */
    int64_t limit_ns;   /* of each step: preparing, one run */
} mpl_worker_task;

/* Starts a process and begins to prepare: device, primitives, weights, one run that is not counted.
 * MPL_EMEM: no process or memory. */
mpl_status mpl_worker_start(mpl_ctx *ctx, const mpl_worker_task *task, mpl_worker **out);
/* Waits until it is prepared. false: it failed. */
bool mpl_worker_wait(mpl_worker *worker);
/* One timed run. *other_ns is the time of a second run, on a device whose runs alternate or under
 * --compare. false: it failed, now or before. */
bool mpl_worker_run(mpl_worker *worker, int64_t *ns, int64_t *other_ns);
/* Ends the process. */
void mpl_worker_free(mpl_ctx *ctx, mpl_worker *worker);

/* Outputs of the first run, as mpl_outputs_get writes them. Call after mpl_worker_wait. */
const void *mpl_worker_outputs(const mpl_worker *worker);
const mpl_measured *mpl_worker_measured(const mpl_worker *worker);
/* Why it failed: status and reason of a row. */
const char *mpl_worker_status(const mpl_worker *worker);
const char *mpl_worker_reason(const mpl_worker *worker);

/* mpl_job_ask_workspaces in a separate process. The backend's library is not loaded into this one,
 * so that workers start without it. */
mpl_status mpl_worker_workspaces(mpl_ctx *ctx, const mpl_options *options,
                                 const mpl_backend *backend, const mpl_job *job,
                                 uint64_t **workspace_bytes);
