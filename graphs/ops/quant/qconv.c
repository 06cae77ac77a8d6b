/* qconv.c -- convolution of integers. See README.md. */
#include "graphs/ops/matrix/window_priv.h"
#include "graphs/ops/quant/quant_priv.h"

/* An image tensor: strides of its channel and three spatial dims. [element] */
typedef struct layout {
    int64_t batch, channel, space[3];
} layout;

static layout layout_of(const mpl_shape *shape, bool last)
{
    layout l = {0};
    int64_t stride[MPL_MAX_RANK];
    uint32_t n = shape->rank - 2;

    mpl_strides(shape, stride);
    l.batch = stride[0];
    l.channel = stride[last ? shape->rank - 1 : 1];
    for (uint32_t i = 0; i < n; i++)
        l.space[3 - n + i] = stride[(last ? 1 : 2) + i];
    return l;
}

/* The shape with its channels before its spatial dims. */
static mpl_shape first(const mpl_shape *shape, bool last)
{
    mpl_shape plain = *shape;

    for (uint32_t i = 1; last && i < shape->rank; i++)
        plain.dim[i] = shape->dim[i == 1 ? shape->rank - 1 : i - 1];
    return plain;
}

static bool is_last(const mpl_graph *g, mpl_op op)
{
    return mpl_attr_int(g, op, MPL_ATTR_channels_last, 0) != 0;
}

mpl_status mpl_shape_qconv(mpl_ctx *ctx, const mpl_shape_call *call)
{
    bool last = is_last(call->graph, call->op);
    int64_t group = mpl_attr_int(call->graph, call->op, MPL_ATTR_group, 1);
    mpl_shape x, w, *y = &call->out_shape[0], plain;
    mpl_window window;

    for (uint32_t i = Q_X; i <= Q_W; i++) {
        MPL_PASS(mpl_check_type(ctx, call, i, MPL_SET_QUANTISED));
        MPL_PASS(mpl_check_rank(ctx, call, i, 3, 5));
    }
    x = first(call->in_shape[Q_X], last), w = first(call->in_shape[Q_W], last);
    MPL_PASS(mpl_window_read(ctx, call->graph, call->op, &x, &w, &window));
    MPL_PASS(mpl_window_slide(ctx, call->graph, call->op, &window));
    if (group < 1 || w.dim[0] % group != 0 || x.dim[1] % group != 0 || x.dim[1] / group != w.dim[1])
        return MPL_REFUSE(ctx,
                          "%" PRId64 " channels in %" PRId64 " groups for a weight of %" PRId64
                          " by %" PRId64,
                          x.dim[1], group, w.dim[0], w.dim[1]);
    MPL_PASS(mpl_q_check(ctx, call, Q_X_SCALE, Q_X_ZERO, Q_X, 0));
    MPL_PASS(mpl_q_check(ctx, call, Q_W_SCALE, Q_W_ZERO, Q_W, w.dim[0]));
    MPL_PASS(mpl_q_check(ctx, call, Q_Y_SCALE, Q_Y_ZERO, MPL_NONE, 0));
    MPL_PASS(mpl_q_out_type(ctx, call));
    if (mpl_q_given(call, Q_BIAS) && mpl_count(call->in_shape[Q_BIAS]) != w.dim[0])
        return MPL_REFUSE(ctx, "bias has %" PRId64 " elements for %" PRId64 " channels",
                          mpl_count(call->in_shape[Q_BIAS]), w.dim[0]);
    mpl_window_shape(&window, x.dim[0], w.dim[0], &plain);
    *y = plain;
    for (uint32_t i = 1; last && i < y->rank; i++)
        y->dim[i] = plain.dim[i == y->rank - 1 ? 1 : i + 1];
    return MPL_OK;
}

enum { ROW = 256, AT_ONCE = 4 }; /* outputs of a row; channels that share a row of the input */

typedef struct work {
    const mpl_op_call *call;
    mpl_window w;
    layout x, weight, y;
    mpl_requant how;
    int64_t channels; /* of the input in a group */
    int64_t sum[AT_ONCE][ROW];
    int32_t row[ROW];
} work;

/* Adds one tap (input channel c, kernel position k) to the sums of n outputs from o on. */
static void add_tap(work *self, int64_t from, int64_t c, int64_t oc, int64_t n_oc,
                    const int64_t o[3], int64_t n, const int64_t at[3])
{
    const mpl_window *window = &self->w;
    int64_t z = o[0] * window->stride[0] - window->before[0] + at[0] * window->dilation[0];
    int64_t y = o[1] * window->stride[1] - window->before[1] + at[1] * window->dilation[1];
    int64_t x = o[2] * window->stride[2] - window->before[2] + at[2] * window->dilation[2], low = 0,
            high = n;

    if (!mpl_is_inside(z, window->in[0]) || !mpl_is_inside(y, window->in[1]))
        return;
    while (low < high && x + low * window->stride[2] < 0)
        low++;
    while (high > low && x + (high - 1) * window->stride[2] >= window->in[2])
        high--;
    mpl_q_load(&self->call->in[Q_X],
               from + z * self->x.space[0] + y * self->x.space[1] +
                   (x + low * window->stride[2]) * self->x.space[2],
               window->stride[2] * self->x.space[2], high - low,
               (int32_t)mpl_q_at(self->call, Q_X_ZERO, 0, 0), self->row);
    for (int64_t i = 0; i < n_oc; i++) {
        int32_t v;

        mpl_q_load(&self->call->in[Q_W],
                   (oc + i) * self->weight.batch + c * self->weight.channel +
                       at[0] * self->weight.space[0] + at[1] * self->weight.space[1] +
                       at[2] * self->weight.space[2],
                   1, 1, (int32_t)mpl_q_at(self->call, Q_W_ZERO, oc + i, 0), &v);
        for (int64_t j = low; j < high; j++)
            self->sum[i][j] += (int64_t)v * self->row[j - low];
    }
}

/* Outputs [o, o + n) of a row, of n_oc channels from oc on. */
static void compute_row(work *self, int64_t batch, int64_t oc, int64_t n_oc, int64_t first_channel,
                        const int64_t o[3], int64_t n)
{
    const mpl_op_call *call = self->call;
    bool scaled = call->out[0].type != MPL_TYPE_i32;
    int64_t at[3];

    memset(self->sum, 0, sizeof self->sum);
    for (int64_t c = 0; c < self->channels; c++) {
        int64_t from = batch * self->x.batch + (first_channel + c) * self->x.channel;

        for (at[0] = 0; at[0] < self->w.kernel[0]; at[0]++)
            for (at[1] = 0; at[1] < self->w.kernel[1]; at[1]++)
                for (at[2] = 0; at[2] < self->w.kernel[2]; at[2]++)
                    add_tap(self, from, c, oc, n_oc, o, n, at);
    }
    for (int64_t i = 0; i < n_oc; i++) {
        float scale = (float)mpl_q_at(call, Q_X_SCALE, 0, 1) *
                      (float)mpl_q_at(call, Q_W_SCALE, oc + i, 1) /
                      (float)mpl_q_at(call, Q_Y_SCALE, 0, 1);
        double bias = mpl_q_at(call, Q_BIAS, oc + i, 0), zero = mpl_q_at(call, Q_Y_ZERO, 0, 0);
        int64_t to = batch * self->y.batch + (oc + i) * self->y.channel + o[0] * self->y.space[0] +
                     o[1] * self->y.space[1] + o[2] * self->y.space[2];

        for (int64_t j = 0; j < n; j++, to += self->y.space[2])
            if (!scaled)
                mpl_put_int(MPL_TYPE_i32, call->out[0].data, to, self->sum[i][j] + (int64_t)bias);
            else if (self->how.whole)
                mpl_requant_put(&self->how, call->out[0].data, to,
                                (float)((double)self->sum[i][j] + bias) * scale, zero);
            else
                mpl_put(self->how.type, call->out[0].data, to,
                        (double)((float)self->sum[i][j] * scale) + bias);
    }
}

mpl_status mpl_eval_qconv(mpl_ctx *ctx, const mpl_op_call *call)
{
    bool last = is_last(call->graph, call->op);
    int64_t group = mpl_attr_int(call->graph, call->op, MPL_ATTR_group, 1), each;
    mpl_shape x = first(&call->in[Q_X].shape, last), w = first(&call->in[Q_W].shape, last);
    work k = {.call = call, .how = mpl_requant_of(call), .channels = w.dim[1]};

    MPL_PASS(mpl_window_read(ctx, call->graph, call->op, &x, &w, &k.w));
    MPL_PASS(mpl_window_slide(ctx, call->graph, call->op, &k.w));
    if (mpl_count(&call->out[0].shape) == 0)
        return MPL_OK;
    k.x = layout_of(&call->in[Q_X].shape, last);
    k.weight = layout_of(&call->in[Q_W].shape, last);
    k.y = layout_of(&call->out[0].shape, last);
    each = w.dim[0] / group;
    mpl_clear_tail(&call->out[0]);
    for (int64_t b = 0; b < x.dim[0]; b++)
        for (int64_t oc = 0, n_oc; oc < w.dim[0]; oc += n_oc) {
            int64_t left = each - oc % each, o[3];

            n_oc = left < AT_ONCE ? left : AT_ONCE;
            for (o[0] = 0; o[0] < k.w.out[0]; o[0]++)
                for (o[1] = 0; o[1] < k.w.out[1]; o[1]++)
                    for (o[2] = 0; o[2] < k.w.out[2]; o[2] += ROW) {
                        int64_t n = k.w.out[2] - o[2] < ROW ? k.w.out[2] - o[2] : ROW;

                        compute_row(&k, b, oc, n_oc, oc / each * k.channels, o, n);
                    }
        }
    return MPL_OK;
}
