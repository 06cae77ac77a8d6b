/* describe_train.c -- launches of gradients, batch norm in training, the loss and updates. See
 * describe_priv.h. */
#include "runtime/cuda/describe_priv.h"

/* ---- pooling, normalisation ---- */

static mpl_status pool_grad(mpl_maker *maker)
{
    return mpl_maker_window(maker, MPL_CUDA_POOL_GRAD, out_shape(maker, 0), in_shape(maker, 0),
                            NULL);
}

static mpl_status plane_grad(mpl_maker *maker)
{
    const mpl_shape *to = out_shape(maker, 0);
    mpl_cuda_part *part;

    MPL_PASS(mpl_maker_add(maker, MPL_CUDA_PLANE_GRAD, mpl_count(to), &part));
    part->kernel.as.lanes.inner = mpl_count_dims(to, 2, to->rank);
    return MPL_OK;
}

static mpl_status batch_norm(mpl_maker *maker)
{
    const mpl_shape *in = in_shape(maker, 0);
    mpl_cuda_part *part;

    MPL_PASS(mpl_maker_add(maker, MPL_CUDA_BATCH, in->dim[1], &part));
    part->all_outputs = true;
    part->kernel.as.batch = (mpl_cuda_batch){.batch = in->dim[0],
                                             .channels = in->dim[1],
                                             .inner = mpl_count_dims(in, 2, in->rank),
                                             .epsilon = attr_float(maker, MPL_ATTR_epsilon, 1e-5),
                                             .momentum = attr_float(maker, MPL_ATTR_momentum, 0.9)};
    return MPL_OK;
}

static mpl_status drop(mpl_maker *maker)
{
    mpl_cuda_part *part;

    MPL_PASS(mpl_maker_add(maker, MPL_CUDA_DROP, mpl_count(in_shape(maker, 0)), &part));
    part->all_outputs = true;
    part->kernel.as.drop = (mpl_cuda_drop){.ratio = attr_float(maker, MPL_ATTR_ratio, 0.5),
                                           .seed = (uint64_t)attr_int(maker, MPL_ATTR_seed, 0)};
    return MPL_OK;
}

/* ---- the loss ---- */

/* The rows' losses lie in the workspace between the two launches. */
static mpl_status loss(mpl_maker *maker)
{
    const mpl_shape *in = in_shape(maker, 0);
    mpl_cuda_lanes rows = {.n = in->dim[1], .inner = in->dim[0]};
    mpl_cuda_part *part;

    MPL_PASS(mpl_maker_add(maker, MPL_CUDA_LOSS, in->dim[0], &part));
    part->all_outputs = part->checks = true;
    part->kernel.as.lanes = rows;
    if (!mpl_mul_bytes((uint64_t)in->dim[0], sizeof(double), &part->workspace_bytes))
        return MPL_ERROR(maker->ctx, MPL_EMEM, "out of memory: the losses of %" PRId64 " rows",
                         in->dim[0]);
    MPL_PASS(mpl_maker_add(maker, MPL_CUDA_LOSS_MEAN, 1, &part));
    part->kernel.as.lanes = rows;
    return MPL_OK;
}

static mpl_status loss_grad(mpl_maker *maker)
{
    const mpl_shape *in = in_shape(maker, 0);
    mpl_cuda_part *part;

    MPL_PASS(mpl_maker_add(maker, MPL_CUDA_LOSS_GRAD, mpl_count(in), &part));
    part->checks = true;
    part->kernel.as.lanes = (mpl_cuda_lanes){.n = in->dim[1], .inner = in->dim[0]};
    return MPL_OK;
}

/* ---- updates, and the table ---- */

static mpl_status update(mpl_maker *maker)
{
    mpl_cuda_part *part;

    MPL_PASS(mpl_maker_add(maker, MPL_CUDA_UPDATE, mpl_count(in_shape(maker, 0)), &part));
    part->all_outputs = true;
    part->checks = maker->kind == MPL_OP_adam_update;
    part->kernel.as.update = (mpl_cuda_update){
        .rate = attr_float(maker, MPL_ATTR_rate, maker->kind == MPL_OP_adam_update ? 0.001 : 0.01),
        .momentum = attr_float(maker, MPL_ATTR_momentum, 0.9),
        .epsilon = attr_float(maker, MPL_ATTR_epsilon, 1e-8),
        .beta1 = attr_float(maker, MPL_ATTR_beta1, 0.9),
        .beta2 = attr_float(maker, MPL_ATTR_beta2, 0.999),
        .decay = attr_float(maker, MPL_ATTR_decay, 0)};
    return MPL_OK;
}

mpl_describe *mpl_describe_train(mpl_op_kind kind)
{
    static mpl_describe *const known[MPL_N_OPS] = {
        [MPL_OP_max_pool_grad] = pool_grad,
        [MPL_OP_avg_pool_grad] = pool_grad,
        [MPL_OP_global_avg_pool_grad] = plane_grad,
        [MPL_OP_batch_norm_train] = batch_norm,
        [MPL_OP_batch_norm_again] = batch_norm,
        [MPL_OP_batch_norm_grad] = batch_norm,
        [MPL_OP_dropout_train] = drop,
        [MPL_OP_dropout_grad] = drop,
        [MPL_OP_softmax_cross_entropy] = loss,
        [MPL_OP_softmax_cross_entropy_grad] = loss_grad,
        [MPL_OP_sgd_update] = update,
        [MPL_OP_momentum_update] = update,
        [MPL_OP_adagrad_update] = update,
        [MPL_OP_adam_update] = update,
        [MPL_OP_step_update] = update,
        [MPL_OP_set_update] = mpl_maker_copy,
    };

    return known[kind];
}
