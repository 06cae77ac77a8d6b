/* execute.h -- executes a plan in its arena and compares the outputs. */
#pragma once

#include "harness/job/early.h"
#include "harness/job/measure.h"

/* Results of an execution. */
typedef struct mpl_executed {
    uint32_t repeat;
    int64_t *run_ns;   /* [repeat] */
    int64_t *other_ns; /* [repeat] on a device whose runs alternate: the replayed runs; under
                          --compare: the compared ones; with --workers: the time of several
                          operations at once */
    void *outputs;
    mpl_early early;
    double error;  /* against the run without memory sharing */
    bool expected; /* --expect is given */
    /* The figures of the output that comes closest to the limit of --expect, or exceeds it most. */
    double expect_error, expect_allowed; /* relative */
    double expect_share;                 /* of what is allowed; above 1: it differs */
    mpl_measured measured;
} mpl_executed;

/* Checks that the job has a graph and a backend. MPL_EINPUT: it cannot be executed. */
mpl_status mpl_execute_check(mpl_ctx *ctx, const mpl_job *job);
/* Runs the plan in its arena as often as asked for, and once without memory sharing. Compares the
 * outputs with that run and with --expect. out is zero before and must always be freed. */
mpl_status mpl_execute(mpl_ctx *ctx, const mpl_options *options, const mpl_job *job,
                       const mpl_plan *plan, mpl_executed *out);
void mpl_executed_fini(mpl_ctx *ctx, mpl_executed *executed);
/* Writes the results into a row. */
void mpl_executed_fields(mpl_ctx *ctx, const mpl_executed *executed, mpl_record *row);
/* MPL_EINVALID: outputs differ, or the device used other memory than planned. */
mpl_status mpl_executed_judge(mpl_ctx *ctx, const char *graph, const mpl_executed *executed);
