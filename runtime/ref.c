/* ref.c -- the reference backend, the oracle of the others. It runs each operation by the plain
 * loops of graphs/ops on one thread and prepares nothing. */
#include "runtime/cpu/host_priv.h"

static mpl_status open_device(mpl_ctx *ctx, const mpl_device_options *options, mpl_device **out)
{
    mpl_device *dev = NULL;

    (void)options;
    MPL_PASS(mpl_new(ctx, dev, 1));
    dev->ctx = ctx;
    dev->n_threads = 1;
    *out = dev;
    return MPL_OK;
}

static void close_device(mpl_device *dev)
{
    if (dev != NULL)
        mpl_free(dev->ctx, dev);
}

static mpl_status prepare(mpl_device *dev, const mpl_graph *g, mpl_op op, mpl_prepared **out,
                          uint64_t *workspace_bytes, const char **how)
{
    (void)dev;
    *out = NULL;
    *workspace_bytes = mpl_eval_workspace(g, op);
    if (how != NULL)
        *how = MPL_HOW_LOOPS;
    return MPL_OK;
}

static void release(mpl_device *dev, mpl_prepared *prepared)
{
    (void)dev, (void)prepared;
}

static mpl_status share(mpl_device *dev, mpl_ctx *ctx, mpl_device **out)
{
    (void)dev;
    return open_device(ctx, NULL, out);
}

static mpl_status run_op(mpl_device *dev, mpl_prepared *prepared, const mpl_op_call *call)
{
    (void)prepared;
    return mpl_eval(dev->ctx, call);
}

const mpl_backend mpl_backend_ref = {
    .name = "ref",
    .about = "plain loops, one thread: the reference",
    .align = 64,
    .strided = true,
    .open = open_device,
    .close = close_device,
    MPL_HOST_MEMORY,
    .prepare = prepare,
    .release = release,
    .run_op = run_op,
    .wait = mpl_host_wait,
    .share = share,
};
