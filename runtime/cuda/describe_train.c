/* describe_train.c -- launches of gradients, batch norm in training, the loss and updates. See
 * describe_priv.h. */
#include "runtime/cuda/describe_priv.h"

/* ---- pooling, normalisation ---- */

static mpl_status pool_grad(mpl_maker *m)
{
    return mpl_maker_window(m, MPL_CUDA_POOL_GRAD, out_shape(m, 0), in_shape(m, 0), NULL);
}

static mpl_status plane_grad(mpl_maker *m)
{
    const mpl_shape *to = out_shape(m, 0);
    mpl_cuda_part *p;

    MPL_PASS(mpl_maker_add(m, MPL_CUDA_PLANE_GRAD, mpl_count(to), &p));
    p->kernel.as.lanes.inner = mpl_count_dims(to, 2, to->rank);
    return MPL_OK;
}

static mpl_status batch_norm(mpl_maker *m)
{
    const mpl_shape *in = in_shape(m, 0);
    mpl_cuda_part *p;

    MPL_PASS(mpl_maker_add(m, MPL_CUDA_BATCH, in->dim[1], &p));
    p->all_outputs = true;
    p->kernel.as.batch = (mpl_cuda_batch){.batch = in->dim[0],
                                          .channels = in->dim[1],
                                          .inner = mpl_count_dims(in, 2, in->rank),
                                          .epsilon = attr_float(m, MPL_ATTR_epsilon, 1e-5),
                                          .momentum = attr_float(m, MPL_ATTR_momentum, 0.9)};
    return MPL_OK;
}

static mpl_status drop(mpl_maker *m)
{
    mpl_cuda_part *p;

    MPL_PASS(mpl_maker_add(m, MPL_CUDA_DROP, mpl_count(in_shape(m, 0)), &p));
    p->all_outputs = true;
    p->kernel.as.drop = (mpl_cuda_drop){.ratio = attr_float(m, MPL_ATTR_ratio, 0.5),
                                        .seed = (uint64_t)attr_int(m, MPL_ATTR_seed, 0)};
    return MPL_OK;
}

/* ---- the loss ---- */

/* The rows' losses lie in the workspace between the two launches. */
static mpl_status loss(mpl_maker *m)
{
    const mpl_shape *in = in_shape(m, 0);
    mpl_cuda_lanes rows = {.n = in->dim[1], .inner = in->dim[0]};
    mpl_cuda_part *p;

    MPL_PASS(mpl_maker_add(m, MPL_CUDA_LOSS, in->dim[0], &p));
    p->all_outputs = p->checks = true;
    p->kernel.as.lanes = rows;
    if (!mpl_mul_bytes((uint64_t)in->dim[0], sizeof(double), &p->workspace_bytes))
        return MPL_ERROR(m->ctx, MPL_EMEM, "out of memory: the losses of %" PRId64 " rows",
                         in->dim[0]);
    MPL_PASS(mpl_maker_add(m, MPL_CUDA_LOSS_MEAN, 1, &p));
    p->kernel.as.lanes = rows;
    return MPL_OK;
}

static mpl_status loss_grad(mpl_maker *m)
{
    const mpl_shape *in = in_shape(m, 0);
    mpl_cuda_part *p;

    MPL_PASS(mpl_maker_add(m, MPL_CUDA_LOSS_GRAD, mpl_count(in), &p));
    p->checks = true;
    p->kernel.as.lanes = (mpl_cuda_lanes){.n = in->dim[1], .inner = in->dim[0]};
    return MPL_OK;
}

/* ---- updates, and the table ---- */

static mpl_status update(mpl_maker *m)
{
    mpl_cuda_part *p;

    MPL_PASS(mpl_maker_add(m, MPL_CUDA_UPDATE, mpl_count(in_shape(m, 0)), &p));
    p->all_outputs = true;
    p->checks = m->kind == MPL_OP_adam_update;
    p->kernel.as.update = (mpl_cuda_update){
        .rate = attr_float(m, MPL_ATTR_rate, m->kind == MPL_OP_adam_update ? 0.001 : 0.01),
        .momentum = attr_float(m, MPL_ATTR_momentum, 0.9),
        .epsilon = attr_float(m, MPL_ATTR_epsilon, 1e-8),
        .beta1 = attr_float(m, MPL_ATTR_beta1, 0.9),
        .beta2 = attr_float(m, MPL_ATTR_beta2, 0.999),
        .decay = attr_float(m, MPL_ATTR_decay, 0)};
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
