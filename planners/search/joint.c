/* joint.c -- the order of the least arena. See joint.h and least.c. */
#include "planners/search/joint.h"

#include "planners/search/least.h"

static mpl_status search(mpl_order_run *run, const mpl_graph *g, mpl_op *order)
{
    mpl_status st = MPL_OK;
    mpl_order_run own = *run;
    mpl_problem_options options =
        run->options != NULL ? *run->options : mpl_problem_options_default();
    mpl_least *least = NULL;

    options.parallel = false;
    own.options = &options;
    MPL_TRY(mpl_least_search(&own, g, false, NULL, NULL, &least));
    memcpy(order, least->order, g->n_ops * sizeof *order);
    run->live_bytes = least->plan->peak_bytes;
    run->bound_bytes = least->bound_bytes;
    run->ticks = least->ticks;
    run->stopped_by_clock = least->stopped_by_clock;
    run->method = least->method;
    run->scope = least->scope;
out:
    mpl_least_free(run->ctx, least);
    return st;
}

static mpl_status make(mpl_ctx *ctx, const mpl_graph *g, mpl_op *order)
{
    mpl_order_run run = mpl_order_run_default(ctx);

    return search(&run, g, order);
}

const mpl_order_kind mpl_order_joint = {
    .name = "joint",
    .about = "the least arena, order and placement together: exact for up to 64 operations, in "
             "turns beyond",
    .make = make,
    .params = "ticks=N,rounds=N",
    .search = search,
};

const mpl_order_kind *mpl_any_order_find(const char *name)
{
    return strcmp(name, mpl_order_joint.name) == 0 ? &mpl_order_joint : mpl_order_find(name);
}
