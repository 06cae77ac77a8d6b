/* cpu_grad.c -- gradients, and batch norm in training, as oneDNN describes them. See cpu_priv.h.
 *
 * What oneDNN can do only with a workspace of its forward primitive (max pooling, lrn) is left to
 * the plain loops. */
#include "runtime/cpu/cpu_priv.h"
#include "graphs/ir/counts.h"

typedef mpl_cpu_recipe recipe;

static bool asked(const recipe *self, uint32_t i)
{
    return i < self->n_out && self->out[i] != NULL;
}

/* The forward primitive that belongs to a backward one; NULL: oneDNN has none. */
static dnnl_primitive_desc_t forward_of(recipe *self, const_dnnl_op_desc_t desc)
{
    dnnl_primitive_desc_t pd = NULL;

    return dnnl_primitive_desc_create(&pd, desc, self->attr, self->engine, NULL) == dnnl_success
               ? pd
               : NULL;
}

static void choose_backward(recipe *self, const_dnnl_op_desc_t forward, const_dnnl_op_desc_t desc)
{
    dnnl_primitive_desc_t hint = forward_of(self, forward);

    if (hint == NULL)
        return;
    mpl_cpu_choose(self, desc, hint);
    dnnl_primitive_desc_destroy(hint);
}

/* ---- convolution ---- */

typedef struct conv_mds {
    dnnl_memory_desc_t x, w, b, y;
    mpl_cpu_window window;
    dnnl_convolution_desc_t forward;
} conv_mds;

static bool describe_conv(recipe *self, const mpl_shape *x, const mpl_shape *w, bool biased,
                          conv_mds *mds)
{
    const mpl_shape *y = self->in[0];

    mpl_cpu_read_window(self, w->dim + 2, &mds->window);
    mds->x = mpl_cpu_plain_shape(x);
    mds->w = mpl_cpu_filter(self, w);
    mds->b = mpl_cpu_plain(1, &y->dim[1]);
    mds->y = mpl_cpu_plain_shape(y);
    return dnnl_dilated_convolution_forward_desc_init(
               &mds->forward, dnnl_forward_training, dnnl_convolution_direct, &mds->x, &mds->w,
               biased ? &mds->b : NULL, &mds->y, mds->window.stride, mds->window.dilation,
               mds->window.pad_begin, mds->window.pad_end) == dnnl_success;
}

static void weight_part(recipe *self, const mpl_shape *x, const mpl_shape *w)
{
    dnnl_convolution_desc_t desc;
    bool biased = asked(self, 1);
    conv_mds m;

    if (!describe_conv(self, x, w, biased, &m) ||
        dnnl_dilated_convolution_backward_weights_desc_init(
            &desc, dnnl_convolution_direct, &m.x, &m.w, biased ? &m.b : NULL, &m.y, m.window.stride,
            m.window.dilation, m.window.pad_begin, m.window.pad_end) != dnnl_success)
        return;
    choose_backward(self, &m.forward, &desc);
    mpl_cpu_arg_add(self, DNNL_ARG_DIFF_DST, &m.y, MPL_FROM_IN, 0);
    mpl_cpu_arg_add(self, DNNL_ARG_SRC, &m.x, MPL_FROM_IN, 1);
    mpl_cpu_arg_add(self, DNNL_ARG_DIFF_WEIGHTS, &m.w, MPL_FROM_OUT, 0);
    if (biased)
        mpl_cpu_arg_add(self, DNNL_ARG_DIFF_BIAS, &m.b, MPL_FROM_OUT, 1);
}

static void input_part(recipe *self, const mpl_shape *x, const mpl_shape *w, uint32_t w_in,
                       uint32_t out)
{
    dnnl_convolution_desc_t desc;
    conv_mds m;

    if (!describe_conv(self, x, w, false, &m) ||
        dnnl_dilated_convolution_backward_data_desc_init(
            &desc, dnnl_convolution_direct, &m.x, &m.w, &m.y, m.window.stride, m.window.dilation,
            m.window.pad_begin, m.window.pad_end) != dnnl_success)
        return;
    choose_backward(self, &m.forward, &desc);
    mpl_cpu_arg_add(self, DNNL_ARG_DIFF_DST, &m.y, MPL_FROM_IN, 0);
    mpl_cpu_arg_add(self, DNNL_ARG_WEIGHTS, &m.w, MPL_FROM_IN, w_in);
    mpl_cpu_arg_add(self, DNNL_ARG_DIFF_SRC, &m.x, MPL_FROM_OUT, out);
}

static void conv_grad(recipe *self)
{
    if (self->stage == 0)
        weight_part(self, self->in[1], self->in[2]);
    else
        input_part(self, self->in[1], self->in[2], 2, 2);
    self->more = self->stage == 0 && asked(self, 2);
}

static void conv_grad_weight(recipe *self)
{
    weight_part(self, self->in[1], self->out[0]);
}

static void conv_grad_input(recipe *self)
{
    input_part(self, self->out[0], self->in[1], 1, 0);
}

/* ---- matrix products ---- */

/* Sums over the rows, in double as in the plain loops. */
static void column_sums(const mpl_op_call *call)
{
    const float *dy = call->in[0].data;
    int64_t rows = call->in[0].shape.dim[0], columns = call->in[0].shape.dim[1];
    float *sums = call->out[1].data;

    for (int64_t k = 0; k < columns; k++) {
        double sum = 0;

        for (int64_t i = 0; i < rows; i++)
            sum += dy[i * columns + k];
        sums[k] = (float)sum;
    }
}

/* With y = op(a) op(b): op(b)' = op(a)T dy, op(a)' = dy op(b)T. If b or a is transposed, the
 * product is transposed too: oneDNN is fast only for row-major results. */
static void gemm_grad(recipe *self)
{
    bool trans_a = mpl_attr_int(self->g, self->op, MPL_ATTR_trans_a, 0) != 0;
    bool trans_b = mpl_attr_int(self->g, self->op, MPL_ATTR_trans_b, 0) != 0;
    bool first = self->stage == 0, dy_left = first ? trans_b : !trans_a;
    uint32_t from = first ? 1 : 2, to = first ? 0 : 2;
    dnnl_memory_desc_t dy, other, out;

    if (mpl_attr_float(self->g, self->op, MPL_ATTR_alpha, 1) != 1 ||
        mpl_attr_float(self->g, self->op, MPL_ATTR_beta, 1) != 1)
        return;
    dy = mpl_cpu_matrix(self->in[0], first ? trans_b : trans_a);
    other = mpl_cpu_matrix(self->in[from], trans_a == trans_b);
    out = mpl_cpu_plain_shape(self->out[to]);
    if (dy_left)
        mpl_cpu_product(self, &dy, 0, &other, from, &out, to);
    else
        mpl_cpu_product(self, &other, from, &dy, 0, &out, to);
    if (first && asked(self, 1))
        self->finish = column_sums;
    self->more = first && asked(self, 2);
}

/* ---- pooling, softmax, element-wise ---- */

static void average_with(recipe *self, bool counts_pads, const mpl_cpu_window *window)
{
    dnnl_pooling_v2_desc_t forward, desc;
    dnnl_memory_desc_t x = mpl_cpu_plain_shape(self->out[0]), y = mpl_cpu_plain_shape(self->in[0]);
    dnnl_alg_kind_t how =
        counts_pads ? dnnl_pooling_avg_include_padding : dnnl_pooling_avg_exclude_padding;

    if (dnnl_pooling_v2_forward_desc_init(&forward, dnnl_forward_training, how, &x, &y,
                                          window->stride, window->kernel, window->dilation,
                                          window->pad_begin, window->pad_end) != dnnl_success ||
        dnnl_pooling_v2_backward_desc_init(&desc, how, &x, &y, window->stride, window->kernel,
                                           window->dilation, window->pad_begin,
                                           window->pad_end) != dnnl_success)
        return;
    choose_backward(self, &forward, &desc);
    mpl_cpu_arg_add(self, DNNL_ARG_DIFF_DST, &y, MPL_FROM_IN, 0);
    mpl_cpu_arg_add(self, DNNL_ARG_DIFF_SRC, &x, MPL_FROM_OUT, 0);
}

static void avg_pool_grad(recipe *self)
{
    uint32_t n;
    const int64_t *kernel = mpl_attr_ints(self->g, self->op, MPL_ATTR_kernel_shape, &n);
    mpl_cpu_window w;

    if (n != self->in[0]->rank - 2)
        return;
    mpl_cpu_read_window(self, kernel, &w);
    if (mpl_cpu_fit_pool(self, self->out[0], self->in[0], &w))
        average_with(self, mpl_attr_int(self->g, self->op, MPL_ATTR_count_include_pad, 0) != 0, &w);
}

static void softmax_grad(recipe *self)
{
    dnnl_softmax_v2_desc_t forward, desc;
    const mpl_shape *shape = self->in[1];
    int64_t axis = mpl_attr_int(self->g, self->op, MPL_ATTR_axis, -1);
    dnnl_memory_desc_t md = mpl_cpu_plain_shape(shape);

    axis = axis < 0 ? axis + shape->rank : axis;
    if (dnnl_softmax_v2_forward_desc_init(&forward, dnnl_forward_training, dnnl_softmax_accurate,
                                          &md, &md, (int)axis) != dnnl_success ||
        dnnl_softmax_v2_backward_desc_init(&desc, dnnl_softmax_accurate, &md, &md, &md,
                                           (int)axis) != dnnl_success)
        return;
    choose_backward(self, &forward, &desc);
    mpl_cpu_arg_add(self, DNNL_ARG_DIFF_DST, &md, MPL_FROM_IN, 0);
    mpl_cpu_arg_add(self, DNNL_ARG_DST, &md, MPL_FROM_IN, 1);
    mpl_cpu_arg_add(self, DNNL_ARG_DIFF_SRC, &md, MPL_FROM_OUT, 0);
}

static void from_result(recipe *self)
{
    dnnl_eltwise_desc_t forward, desc;
    int64_t n = mpl_count(self->in[0]);
    dnnl_memory_desc_t md = mpl_cpu_plain(1, &n);
    mpl_op_kind kind = (mpl_op_kind)self->g->op_kind[self->op];
    dnnl_alg_kind_t how = kind == MPL_OP_relu_grad      ? dnnl_eltwise_relu_use_dst_for_bwd
                          : kind == MPL_OP_sigmoid_grad ? dnnl_eltwise_logistic_use_dst_for_bwd
                                                        : dnnl_eltwise_tanh_use_dst_for_bwd;

    if (dnnl_eltwise_forward_desc_init(&forward, dnnl_forward_training, how, &md, 0, 0) !=
            dnnl_success ||
        dnnl_eltwise_backward_desc_init(&desc, how, &md, &md, 0, 0) != dnnl_success)
        return;
    choose_backward(self, &forward, &desc);
    mpl_cpu_arg_add(self, DNNL_ARG_DIFF_DST, &md, MPL_FROM_IN, 0);
    mpl_cpu_arg_add(self, DNNL_ARG_DST, &md, MPL_FROM_IN, 1);
    mpl_cpu_arg_add(self, DNNL_ARG_DIFF_SRC, &md, MPL_FROM_OUT, 0);
}

/* ---- batch norm ---- */

static bool norm_forward(recipe *self, const mpl_shape *shape, dnnl_memory_desc_t *data,
                         dnnl_memory_desc_t *channel, dnnl_batch_normalization_desc_t *desc)
{
    int64_t dim[4] = {shape->dim[0], shape->dim[1], mpl_count_dims(shape, 2, shape->rank), 1};

    *data = mpl_cpu_plain(4, dim);
    *channel = mpl_cpu_plain(1, &dim[1]);
    return dnnl_batch_normalization_forward_desc_init(
               desc, dnnl_forward_training, data,
               (float)mpl_attr_float(self->g, self->op, MPL_ATTR_epsilon, 1e-5),
               dnnl_use_scale | dnnl_use_shift) == dnnl_success;
}

/* Running statistics, from those of the batch. */
static void keep_statistics(const mpl_op_call *call)
{
    float momentum = (float)mpl_attr_float(call->graph, call->op, MPL_ATTR_momentum, 0.9);

    for (uint32_t i = 0; i < 2; i++) {
        const float *batch = call->out[1 + i].data, *old = call->in[3 + i].data;
        float *next = call->out[3 + i].data;

        for (int64_t c = 0; c < call->in[3].shape.dim[0]; c++)
            next[c] = momentum * old[c] + (1 - momentum) * batch[c];
    }
}

/* Outputs 0 to 2, with the batch's moments. */
static void norm_batch(recipe *self)
{
    dnnl_batch_normalization_desc_t desc;
    dnnl_memory_desc_t data, channel;

    if (!norm_forward(self, self->in[0], &data, &channel, &desc))
        return;
    mpl_cpu_choose(self, &desc, NULL);
    mpl_cpu_arg_add(self, DNNL_ARG_SRC, &data, MPL_FROM_IN, 0);
    mpl_cpu_arg_add(self, DNNL_ARG_SCALE, &channel, MPL_FROM_IN, 1);
    mpl_cpu_arg_add(self, DNNL_ARG_SHIFT, &channel, MPL_FROM_IN, 2);
    mpl_cpu_arg_add(self, DNNL_ARG_DST, &data, MPL_FROM_OUT, 0);
    mpl_cpu_arg_add(self, DNNL_ARG_MEAN, &channel, MPL_FROM_OUT, 1);
    mpl_cpu_arg_add(self, DNNL_ARG_VARIANCE, &channel, MPL_FROM_OUT, 2);
}

static void batch_norm_train(recipe *self)
{
    norm_batch(self);
    self->finish = keep_statistics;
}

static void batch_norm_grad(recipe *self)
{
    dnnl_batch_normalization_desc_t forward, desc;
    dnnl_memory_desc_t data, channel;

    if (!norm_forward(self, self->in[1], &data, &channel, &forward) ||
        dnnl_batch_normalization_backward_desc_init(
            &desc, dnnl_backward, &data, &data,
            (float)mpl_attr_float(self->g, self->op, MPL_ATTR_epsilon, 1e-5),
            dnnl_use_scale | dnnl_use_shift) != dnnl_success)
        return;
    choose_backward(self, &forward, &desc);
    mpl_cpu_arg_add(self, DNNL_ARG_DIFF_DST, &data, MPL_FROM_IN, 0);
    mpl_cpu_arg_add(self, DNNL_ARG_SRC, &data, MPL_FROM_IN, 1);
    mpl_cpu_arg_add(self, DNNL_ARG_SCALE, &channel, MPL_FROM_IN, 2);
    /* oneDNN 2 counts it, but does not read it */
    mpl_cpu_arg_add(self, DNNL_ARG_SHIFT, &channel, MPL_FROM_IN, 2);
    mpl_cpu_arg_add(self, DNNL_ARG_MEAN, &channel, MPL_FROM_IN, 3);
    mpl_cpu_arg_add(self, DNNL_ARG_VARIANCE, &channel, MPL_FROM_IN, 4);
    mpl_cpu_arg_add(self, DNNL_ARG_DIFF_SRC, &data, MPL_FROM_OUT, 0);
    mpl_cpu_arg_add(self, DNNL_ARG_DIFF_SCALE, &channel, MPL_FROM_OUT, 1);
    mpl_cpu_arg_add(self, DNNL_ARG_DIFF_SHIFT, &channel, MPL_FROM_OUT, 2);
}

static mpl_cpu_describer *const gradients[MPL_N_OPS] = {
    [MPL_OP_conv_grad] = conv_grad,
    [MPL_OP_conv_grad_weight] = conv_grad_weight,
    [MPL_OP_conv_grad_input] = conv_grad_input,
    [MPL_OP_gemm_grad] = gemm_grad,
    [MPL_OP_avg_pool_grad] = avg_pool_grad,
    [MPL_OP_softmax_grad] = softmax_grad,
    [MPL_OP_relu_grad] = from_result,
    [MPL_OP_sigmoid_grad] = from_result,
    [MPL_OP_tanh_grad] = from_result,
    [MPL_OP_batch_norm_train] = batch_norm_train,
    [MPL_OP_batch_norm_again] = norm_batch,
    [MPL_OP_batch_norm_grad] = batch_norm_grad,
};

mpl_cpu_describer *mpl_cpu_gradient(mpl_op_kind kind)
{
    return gradients[kind];
}
