/* describe_train.c -- launches of gradients, batch norm in training, the loss and updates. See
 * describe_priv.h. */
#include "runtime/cuda/describe_priv.h"

#include <math.h>

/* ---- convolution ---- */

static void read_kernel(mpl_cuda_window *w, const mpl_shape *weight)
{
    for (uint32_t i = 2; i < weight->rank; i++)
        w->kernel[3 - weight->rank + i] = weight->dim[i];
}

/* dx is the transposed convolution of dy by the weights, which are input `weight`. */
static mpl_status conv_input(mpl_maker *m, uint32_t weight, uint32_t out)
{
    mpl_status st = MPL_OK;
    const mpl_shape *w = in_shape(m, weight), *x = out_shape(m, out);
    mpl_cuda_window *d;
    mpl_cuda_part *p;

    MPL_TRY(mpl_maker_window(m, MPL_CUDA_CONV, in_shape(m, 0), x, &d));
    read_kernel(d, w);
    d->transposed = 1;
    d->group = attr_int(m, MPL_ATTR_group, 1);
    d->in_channels = w->dim[0] / d->group;
    d->out_channels = w->dim[1];
    p = &m->part[m->n - 1];
    p->kernel.n = mpl_count(x);
    p->out = out;
    p->in[1] = weight;
    for (uint32_t i = 2; i < MPL_CUDA_MAX_IN; i++)
        p->in[i] = MPL_NONE;
out:
    return st;
}

static mpl_status conv_weight(mpl_maker *m)
{
    mpl_status st = MPL_OK;
    const mpl_shape *w = out_shape(m, 0);
    mpl_cuda_window *d;

    MPL_TRY(mpl_maker_window(m, MPL_CUDA_CONV_WEIGHT, in_shape(m, 1), in_shape(m, 0), &d));
    read_kernel(d, w);
    d->group = attr_int(m, MPL_ATTR_group, 1);
    d->in_channels = w->dim[1];
    d->out_channels = w->dim[0] / d->group;
out:
    return st;
}

static mpl_status conv_grad_input(mpl_maker *m)
{
    return conv_input(m, 1, 0);
}

static mpl_status conv_grad(mpl_maker *m)
{
    mpl_status st = MPL_OK;

    MPL_TRY(conv_weight(m));
    if (out_of(m, 1) != MPL_NONE)
        MPL_TRY(mpl_maker_sum(m, 0, 1, 1, 1));
    if (out_of(m, 2) != MPL_NONE)
        MPL_TRY(conv_input(m, 2, 2));
out:
    return st;
}

/* ---- gemm ---- */

/* A matrix in memory, or turned: element (i, k) is i * row + k * column from its begin on. */
typedef struct turned {
    uint32_t in;
    int64_t row, column;
} turned;

static turned turn(turned t)
{
    return (turned){t.in, t.column, t.row};
}

/* Output `out` [rows, columns] becomes alpha a b. */
static mpl_status add_product(mpl_maker *m, turned a, turned b, int64_t terms, uint32_t out)
{
    mpl_status st = MPL_OK;
    const mpl_shape *to = out_shape(m, out);
    mpl_cuda_part *p;

    MPL_TRY(mpl_maker_add(m, MPL_CUDA_PRODUCT, mpl_count(to), &p));
    p->in[0] = a.in;
    p->in[1] = b.in;
    p->in[2] = p->in[3] = MPL_NONE;
    p->out = out;
    p->kernel.as.product = (mpl_cuda_product){.rows = to->dim[0],
                                              .columns = to->dim[1],
                                              .terms = terms,
                                              .a_row = a.row,
                                              .a_column = a.column,
                                              .b_row = b.row,
                                              .b_column = b.column,
                                              .alpha = attr_float(m, MPL_ATTR_alpha, 1),
                                              .least = -INFINITY,
                                              .most = INFINITY};
out:
    return st;
}

/* y = op(a) op(b): op(a)' = dy op(b)T and op(b)' = op(a)T dy; where a or b lies turned, so does the
 * product. */
static mpl_status gemm_grad(mpl_maker *m)
{
    mpl_status st = MPL_OK;
    bool trans_a = attr_int(m, MPL_ATTR_trans_a, 0) != 0,
         trans_b = attr_int(m, MPL_ATTR_trans_b, 0) != 0;
    const int64_t *dy = in_shape(m, 0)->dim, *a = in_shape(m, 1)->dim, *b = in_shape(m, 2)->dim;
    turned of_y = {0, dy[1], 1}, of_a = {1, a[1], 1}, of_b = {2, b[1], 1};

    if (trans_a) /* as op(a), op(b) */
        of_a = turn(of_a);
    if (trans_b)
        of_b = turn(of_b);
    if (trans_b)
        MPL_TRY(add_product(m, turn(of_y), of_a, dy[0], 0));
    else
        MPL_TRY(add_product(m, turn(of_a), of_y, dy[0], 0));
    if (out_of(m, 1) != MPL_NONE)
        MPL_TRY(mpl_maker_sum(m, 0, 1, 1, attr_float(m, MPL_ATTR_beta, 1)));
    if (out_of(m, 2) == MPL_NONE)
        goto out;
    if (trans_a)
        MPL_TRY(add_product(m, of_b, turn(of_y), dy[1], 2));
    else
        MPL_TRY(add_product(m, of_y, turn(of_b), dy[1], 2));
out:
    return st;
}

/* ---- pooling, normalisation ---- */

static mpl_status pool_grad(mpl_maker *m)
{
    mpl_status st = MPL_OK;
    mpl_cuda_window *w;
    uint32_t n;
    const int64_t *kernel = mpl_attr_ints(m->g, m->op, MPL_ATTR_kernel_shape, &n);

    MPL_TRY(mpl_maker_window(m, MPL_CUDA_POOL_GRAD, out_shape(m, 0), in_shape(m, 0), &w));
    for (uint32_t i = 0; i < n; i++)
        w->kernel[3 - n + i] = kernel[i];
    w->padded = attr_int(m, MPL_ATTR_count_include_pad, 0) != 0;
out:
    return st;
}

static mpl_status plane_grad(mpl_maker *m)
{
    mpl_status st = MPL_OK;
    const mpl_shape *to = out_shape(m, 0);
    mpl_cuda_part *p;

    MPL_TRY(mpl_maker_add(m, MPL_CUDA_PLANE_GRAD, mpl_count(to), &p));
    p->kernel.as.lanes.inner = mpl_count_dims(to, 2, to->rank);
out:
    return st;
}

static mpl_status lrn_grad(mpl_maker *m)
{
    return mpl_maker_lrn(m, MPL_CUDA_LRN_GRAD);
}

static mpl_status softmax_grad(mpl_maker *m)
{
    mpl_status st = MPL_OK;
    const mpl_shape *in = in_shape(m, 0);
    uint32_t axis = axis_of(attr_int(m, MPL_ATTR_axis, -1), in->rank);
    mpl_cuda_part *p;

    MPL_TRY(mpl_maker_add(m, MPL_CUDA_SOFTMAX_GRAD, 0, &p));
    p->kernel.as.lanes =
        (mpl_cuda_lanes){.n = in->dim[axis], .inner = mpl_count_dims(in, axis + 1, in->rank)};
    p->kernel.n = mpl_count(in) > 0 ? mpl_count(in) / in->dim[axis] : 0;
out:
    return st;
}

static mpl_status batch_norm(mpl_maker *m)
{
    mpl_status st = MPL_OK;
    const mpl_shape *in = in_shape(m, 0);
    mpl_cuda_part *p;

    MPL_TRY(mpl_maker_add(m, MPL_CUDA_BATCH, in->dim[1], &p));
    p->all_outputs = true;
    p->kernel.as.batch = (mpl_cuda_batch){.batch = in->dim[0],
                                          .channels = in->dim[1],
                                          .inner = mpl_count_dims(in, 2, in->rank),
                                          .epsilon = attr_float(m, MPL_ATTR_epsilon, 1e-5),
                                          .momentum = attr_float(m, MPL_ATTR_momentum, 0.9)};
out:
    return st;
}

static mpl_status drop(mpl_maker *m)
{
    mpl_status st = MPL_OK;
    mpl_cuda_part *p;

    MPL_TRY(mpl_maker_add(m, MPL_CUDA_DROP, mpl_count(in_shape(m, 0)), &p));
    p->all_outputs = true;
    p->kernel.as.drop = (mpl_cuda_drop){.ratio = attr_float(m, MPL_ATTR_ratio, 0.5),
                                        .seed = (uint64_t)attr_int(m, MPL_ATTR_seed, 0)};
out:
    return st;
}

/* ---- the loss ---- */

/* The rows' losses lie in the workspace between the two launches. */
static mpl_status loss(mpl_maker *m)
{
    mpl_status st = MPL_OK;
    const mpl_shape *in = in_shape(m, 0);
    mpl_cuda_lanes rows = {.n = in->dim[1], .inner = in->dim[0]};
    mpl_cuda_part *p;

    MPL_TRY(mpl_maker_add(m, MPL_CUDA_LOSS, in->dim[0], &p));
    p->all_outputs = p->checks = true;
    p->kernel.as.lanes = rows;
    if (!mpl_mul_bytes((uint64_t)in->dim[0], sizeof(double), &p->workspace_bytes))
        MPL_FAIL(m->ctx, MPL_EMEM, "out of memory: the losses of %" PRId64 " rows", in->dim[0]);
    MPL_TRY(mpl_maker_add(m, MPL_CUDA_LOSS_MEAN, 1, &p));
    p->kernel.as.lanes = rows;
out:
    return st;
}

static mpl_status loss_grad(mpl_maker *m)
{
    mpl_status st = MPL_OK;
    const mpl_shape *in = in_shape(m, 0);
    mpl_cuda_part *p;

    MPL_TRY(mpl_maker_add(m, MPL_CUDA_LOSS_GRAD, mpl_count(in), &p));
    p->checks = true;
    p->kernel.as.lanes = (mpl_cuda_lanes){.n = in->dim[1], .inner = in->dim[0]};
out:
    return st;
}

/* ---- updates, and the table ---- */

static mpl_status update(mpl_maker *m)
{
    mpl_status st = MPL_OK;
    mpl_cuda_part *p;

    MPL_TRY(mpl_maker_add(m, MPL_CUDA_UPDATE, mpl_count(in_shape(m, 0)), &p));
    p->all_outputs = true;
    p->checks = m->kind == MPL_OP_adam_update;
    p->kernel.as.update = (mpl_cuda_update){
        .rate = attr_float(m, MPL_ATTR_rate, m->kind == MPL_OP_adam_update ? 0.001 : 0.01),
        .momentum = attr_float(m, MPL_ATTR_momentum, 0.9),
        .epsilon = attr_float(m, MPL_ATTR_epsilon, 1e-8),
        .beta1 = attr_float(m, MPL_ATTR_beta1, 0.9),
        .beta2 = attr_float(m, MPL_ATTR_beta2, 0.999)};
out:
    return st;
}

mpl_describe *mpl_describe_train(mpl_op_kind kind)
{
    static const struct {
        mpl_op_kind kind;
        mpl_describe *describe;
    } known[] = {
        {MPL_OP_conv_grad, conv_grad},
        {MPL_OP_conv_grad_input, conv_grad_input},
        {MPL_OP_conv_grad_weight, conv_weight},
        {MPL_OP_gemm_grad, gemm_grad},
        {MPL_OP_max_pool_grad, pool_grad},
        {MPL_OP_avg_pool_grad, pool_grad},
        {MPL_OP_global_avg_pool_grad, plane_grad},
        {MPL_OP_lrn_grad, lrn_grad},
        {MPL_OP_softmax_grad, softmax_grad},
        {MPL_OP_batch_norm_train, batch_norm},
        {MPL_OP_batch_norm_again, batch_norm},
        {MPL_OP_batch_norm_grad, batch_norm},
        {MPL_OP_dropout_train, drop},
        {MPL_OP_dropout_grad, drop},
        {MPL_OP_softmax_cross_entropy, loss},
        {MPL_OP_softmax_cross_entropy_grad, loss_grad},
        {MPL_OP_sgd_update, update},
        {MPL_OP_momentum_update, update},
        {MPL_OP_adagrad_update, update},
        {MPL_OP_adam_update, update},
        {MPL_OP_step_update, update},
        {MPL_OP_set_update, mpl_maker_copy},
    };

    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (known[i].kind == kind)
            return known[i].describe;
    return NULL;
}
