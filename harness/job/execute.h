/* execute.h -- a plan executed in its arena, and its outputs compared. */
#ifndef MPL_EXECUTE_H
#define MPL_EXECUTE_H

#include "harness/job/early.h"
#include "harness/job/measure.h"

/* What an execution left. */
typedef struct mpl_executed {
    uint32_t repeat;
    int64_t *run_ns;   /* [repeat] */
    int64_t *other_ns; /* [repeat] of a device whose runs alternate, the replayed runs; under
                          --compare, the others */
    void *outputs;
    mpl_early early;
    double error;        /* against the run that shares nothing */
    bool expected;       /* --expect is given: */
    double expect_error; /* against that */
    mpl_measured measured;
} mpl_executed;

/* Whether the job can be executed: a graph, and a backend. MPL_EINPUT: it cannot. */
mpl_status mpl_execute_check(mpl_ctx *ctx, const mpl_job *job);
/* Runs the plan in its arena, as often as is asked for, and once with nothing shared; compares the
 * outputs with that run's, and with --expect. out is zero before; to be freed even on failure. */
mpl_status mpl_execute(mpl_ctx *ctx, const mpl_options *options, const mpl_job *job,
                       const mpl_plan *plan, mpl_executed *out);
void mpl_executed_fini(mpl_ctx *ctx, mpl_executed *executed);
/* What a row says of it. */
void mpl_executed_fields(mpl_ctx *ctx, const mpl_executed *executed, mpl_record *row);
/* MPL_EINVALID: outputs differ, or the device took other memory than was asked of it. */
mpl_status mpl_executed_judge(mpl_ctx *ctx, const char *graph, const mpl_executed *executed);

#endif
