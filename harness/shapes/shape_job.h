/* shape_job.h -- GRAPH opened at a shape, with what a template holds fixed over all shapes. */
#ifndef MPL_SHAPE_JOB_H
#define MPL_SHAPE_JOB_H

#include "harness/job/job.h"
#include "harness/shapes/ranges.h"

typedef struct mpl_shape_job {
    mpl_one_shape shape;
    mpl_job job; /* borrows from the shape */
} mpl_shape_job;

/* Opens GRAPH at a shape, without its problem. The caller calls mpl_shape_job_fini even after a
 * failure, and for the functions below. */
mpl_status mpl_shape_open(mpl_ctx *ctx, const mpl_options *options, const char *graph,
                          const mpl_exprs *exprs, const int64_t *value, mpl_shape_job *out);
/* Orders it; *po: the options of its problem, without workspaces. */
mpl_status mpl_shape_order(mpl_ctx *ctx, mpl_shape_job *at, mpl_problem_options *po);
/* In place of that: takes what was decided for all shapes, which *choices leaves empty, and makes
 * the problem, with the workspaces of --backend. */
mpl_status mpl_shape_decided(mpl_ctx *ctx, mpl_plan_choices *choices, mpl_shape_job *at);
void mpl_shape_job_fini(mpl_ctx *ctx, mpl_shape_job *at);

#endif
