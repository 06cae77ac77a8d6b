/* shape_job.c -- opens GRAPH at a shape. See shape_job.h. */
#include "harness/shapes/shape_job.h"

mpl_status mpl_shape_open(mpl_ctx *ctx, const mpl_options *options, const char *graph,
                          const mpl_exprs *exprs, const int64_t *value, mpl_shape_job *at)
{
    memset(at, 0, sizeof *at);
    MPL_PASS(mpl_ranges_shape(ctx, options, graph, exprs, value, &at->shape));
    MPL_PASS(mpl_job_read(ctx, &at->shape.options, at->shape.graph, &at->job));
    if (at->job.source.graph == NULL)
        return MPL_REFUSE(ctx, "%.200s is a list of buffers: its sizes have no ranges", graph);
    return mpl_job_passes(ctx, &at->shape.options, &at->job);
}

mpl_status mpl_shape_order(mpl_ctx *ctx, mpl_shape_job *at, mpl_problem_options *po)
{
    const mpl_options *options = &at->shape.options;
    const mpl_backend *backend;

    MPL_PASS(mpl_backend_by_option(ctx, options->backend, &backend));
    MPL_PASS(mpl_job_order(ctx, options, &at->job));
    MPL_PASS(mpl_job_streams(ctx, &at->job));
    return mpl_job_problem_options(ctx, options, backend, &at->job, po);
}

mpl_status mpl_shape_decided(mpl_ctx *ctx, mpl_plan_choices *choices, mpl_shape_job *at)
{
    mpl_job_order_chosen(choices, &at->job);
    return mpl_job_problem_here(ctx, &at->shape.options, &at->job);
}

void mpl_shape_job_fini(mpl_ctx *ctx, mpl_shape_job *at)
{
    mpl_job_fini(ctx, &at->job);
    mpl_one_shape_fini(ctx, &at->shape);
}
