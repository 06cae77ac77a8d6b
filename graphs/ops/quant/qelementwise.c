/* qelementwise.c -- element-wise operators and average pools between integers. See README.md. */
#include "graphs/ops/matrix/window_priv.h"
#include "graphs/ops/quant/quant_priv.h"

enum { X, X_SCALE, Y_SCALE, X_ZERO, Y_ZERO, Z, Z_SCALE, Z_ZERO };

/* ---- qelementwise ---- */

typedef mpl_status loops(mpl_ctx *ctx, const mpl_op_call *call);

static const struct inner {
    const char *name;
    uint32_t n_in;
    loops *eval;
} inners[] = {
#define INNER(name, n) {#name, n, mpl_eval_##name},
    {"identity", 1, mpl_eval_copy},
    INNER(add, 2) INNER(sub, 2) INNER(mul, 2) INNER(div, 2) INNER(min, 2) INNER(max, 2)
        INNER(prelu, 2) INNER(relu, 1) INNER(leaky_relu, 1) INNER(elu, 1) INNER(sigmoid, 1)
            INNER(hard_sigmoid, 1) INNER(hard_swish, 1) INNER(swish, 1) INNER(tanh, 1)
                INNER(gelu, 1) INNER(exp, 1) INNER(log, 1) INNER(sqrt, 1) INNER(neg, 1)
                    INNER(abs, 1)
#undef INNER
};
enum { N_INNERS = sizeof inners / sizeof *inners };

static const struct inner *inner_of(const mpl_graph *g, mpl_op op)
{
    const char *name = mpl_attr_text(g, op, MPL_ATTR_of, "");

    for (int i = 0; i < N_INNERS; i++)
        if (strcmp(inners[i].name, name) == 0)
            return &inners[i];
    return NULL;
}

bool mpl_qelementwise_has(const char *name, uint32_t n_in)
{
    for (int i = 0; i < N_INNERS; i++)
        if (strcmp(inners[i].name, name) == 0)
            return inners[i].n_in == n_in;
    return false;
}

/* The output is y_zero's type, else that of `to`, else x's. */
static mpl_status out_type(mpl_ctx *ctx, const mpl_shape_call *call)
{
    const char *to = mpl_attr_text(call->graph, call->op, MPL_ATTR_to, NULL);
    mpl_type type = call->in_type[X];

    if (mpl_q_given(call, Y_ZERO))
        type = call->in_type[Y_ZERO];
    else if (to != NULL && (!mpl_type_find(to, &type) || !mpl_type_in(type, MPL_SET_QUANTISED)))
        return MPL_REFUSE(ctx, "attribute 'to' is '%.40s'; it must be a small integer", to);
    call->out_type[0] = type;
    return MPL_OK;
}

mpl_status mpl_shape_qelementwise(mpl_ctx *ctx, const mpl_shape_call *call)
{
    const struct inner *f = inner_of(call->graph, call->op);

    if (f == NULL)
        return MPL_REFUSE(ctx, "of='%.40s' is no operator that it has",
                          mpl_attr_text(call->graph, call->op, MPL_ATTR_of, ""));
    if ((f->n_in == 2) != mpl_q_given(call, Z) || (f->n_in == 2) != mpl_q_given(call, Z_SCALE))
        return MPL_REFUSE(ctx, "of='%s' takes %u operands with their scales", f->name, f->n_in);
    MPL_PASS(mpl_check_type(ctx, call, X, MPL_SET_QUANTISED));
    MPL_PASS(mpl_q_check(ctx, call, X_SCALE, X_ZERO, X, 0));
    MPL_PASS(mpl_q_check(ctx, call, Y_SCALE, Y_ZERO, MPL_NONE, 0));
    call->out_shape[0] = *call->in_shape[X];
    if (f->n_in == 2) {
        MPL_PASS(mpl_check_type(ctx, call, Z, MPL_SET_QUANTISED));
        MPL_PASS(mpl_q_check(ctx, call, Z_SCALE, Z_ZERO, Z, 0));
        MPL_PASS(mpl_broadcast(ctx, call->in_shape[X], call->in_shape[Z], &call->out_shape[0]));
    }
    return out_type(ctx, call);
}

/* n elements of an operand from `at` on, as floats. */
static void load(const mpl_op_call *call, uint32_t operand, uint32_t scale, uint32_t zero,
                 int64_t at, bool repeated, int64_t n, float *to)
{
    float by = (float)mpl_q_at(call, scale, 0, 1), less = (float)mpl_q_at(call, zero, 0, 0);
    const mpl_tensor *tensor = &call->in[operand];
    mpl_piece piece;

    mpl_piece_load(MPL_IN_FLOAT, tensor->type, tensor->data, at, repeated, n, &piece);
    for (int64_t i = 0; i < n; i++)
        to[i] = (piece.f[i] - less) * by;
}

mpl_status mpl_eval_qelementwise(mpl_ctx *ctx, const mpl_op_call *call)
{
    static const uint32_t operand[2][3] = {{X, X_SCALE, X_ZERO}, {Z, Z_SCALE, Z_ZERO}};
    const struct inner *f = inner_of(call->graph, call->op);
    const mpl_shape *shape = &call->out[0].shape;
    int64_t index[MPL_MAX_RANK] = {0}, stride[2][MPL_MAX_RANK], offset[2] = {0}, at = 0, row;
    mpl_requant how = mpl_requant_of(call);
    double zero = mpl_q_at(call, Y_ZERO, 0, 0);
    float value[3][MPL_PIECE], scale = (float)mpl_q_at(call, Y_SCALE, 0, 1);
    uint32_t begin = 0;

    for (uint32_t k = 0; k < f->n_in; k++) {
        uint32_t own = mpl_row_begin(&call->in[operand[k][0]].shape, shape);

        begin = own > begin ? own : begin;
        mpl_broadcast_strides(&call->in[operand[k][0]].shape, shape, stride[k]);
    }
    row = mpl_count_dims(shape, begin, shape->rank);
    mpl_clear_tail(&call->out[0]);
    while (at < mpl_count(shape)) {
        for (int64_t from = 0, n; from < row; from += n, at += n) {
            mpl_tensor t[3];

            n = row - from < MPL_PIECE ? row - from : MPL_PIECE;
            for (uint32_t k = 0; k < 3; k++)
                t[k] = (mpl_tensor){MPL_TYPE_f32, {1, {n}}, value[k]};
            for (uint32_t k = 0; k < f->n_in; k++) {
                bool repeated = mpl_row_repeated(&call->in[operand[k][0]].shape, shape, begin);

                load(call, operand[k][0], operand[k][1], operand[k][2],
                     offset[k] + (repeated ? 0 : from), repeated, n, value[k]);
            }
            MPL_PASS(f->eval(ctx, &(mpl_op_call){.graph = call->graph,
                                                 .op = call->op,
                                                 .n_in = f->n_in,
                                                 .n_out = 1,
                                                 .in = t,
                                                 .out = &t[2]}));
            for (int64_t i = 0; i < n; i++)
                mpl_requant_put(&how, call->out[0].data, at + i, value[2][i] / scale, zero);
        }
        mpl_step(shape->dim, begin, index, f->n_in, (const int64_t(*)[MPL_MAX_RANK])stride, offset);
    }
    return MPL_OK;
}

/* ---- qavg_pool ---- */

/* The dims of input 0 with its channels before its spatial dims. */
static mpl_shape plain_of(const mpl_shape *shape, bool last)
{
    mpl_shape plain = *shape;

    for (uint32_t i = 1; last && i < shape->rank; i++)
        plain.dim[i] = shape->dim[i == 1 ? shape->rank - 1 : i - 1];
    return plain;
}

mpl_status mpl_shape_qavg_pool(mpl_ctx *ctx, const mpl_shape_call *call)
{
    bool last = mpl_attr_int(call->graph, call->op, MPL_ATTR_channels_last, 0) != 0;
    mpl_shape x, y;
    mpl_window w;

    MPL_PASS(mpl_check_type(ctx, call, X, MPL_SET_QUANTISED));
    MPL_PASS(mpl_check_rank(ctx, call, X, 3, 5));
    MPL_PASS(mpl_q_check(ctx, call, X_SCALE, X_ZERO, X, 0));
    MPL_PASS(mpl_q_check(ctx, call, Y_SCALE, Y_ZERO, MPL_NONE, 0));
    x = plain_of(call->in_shape[X], last);
    MPL_PASS(mpl_window_pool(ctx, call->graph, call->op, &x, &w));
    mpl_window_shape(&w, x.dim[0], x.dim[1], &y);
    call->out_shape[0] = y;
    for (uint32_t i = 1; last && i < y.rank; i++)
        call->out_shape[0].dim[i] = y.dim[i == y.rank - 1 ? 1 : i + 1];
    return out_type(ctx, call);
}

/* The sum of a window, less the zero of each element; *count: elements inside. */
static int64_t sum_of(const mpl_tensor *tensor, const mpl_window *window, int64_t from,
                      int64_t step, const int64_t o[3], int64_t zero, int64_t *count)
{
    int64_t sum = 0, at[3], i[3];

    *count = 0;
    for (at[0] = 0; at[0] < window->kernel[0]; at[0]++)
        for (at[1] = 0; at[1] < window->kernel[1]; at[1]++)
            for (at[2] = 0; at[2] < window->kernel[2]; at[2]++) {
                bool inside = true;

                for (int k = 0; k < 3; k++) {
                    i[k] =
                        o[k] * window->stride[k] - window->before[k] + at[k] * window->dilation[k];
                    inside = inside && mpl_is_inside(i[k], window->in[k]);
                }
                if (!inside)
                    continue;
                sum += mpl_get_int(tensor->type, tensor->data,
                                   from + ((i[0] * window->in[1] + i[1]) * window->in[2] + i[2]) *
                                              step) -
                       zero;
                ++*count;
            }
    return sum;
}

mpl_status mpl_eval_qavg_pool(mpl_ctx *ctx, const mpl_op_call *call)
{
    bool last = mpl_attr_int(call->graph, call->op, MPL_ATTR_channels_last, 0) != 0;
    bool padded = mpl_attr_int(call->graph, call->op, MPL_ATTR_count_include_pad, 0) != 0;
    mpl_shape x = plain_of(&call->in[X].shape, last);
    float scale = (float)mpl_q_at(call, X_SCALE, 0, 1) / (float)mpl_q_at(call, Y_SCALE, 0, 1);
    int64_t zero = (int64_t)mpl_q_at(call, X_ZERO, 0, 0), plane = 0, channels = x.dim[1],
            o[3] = {0};
    mpl_requant how = mpl_requant_of(call);
    mpl_window w;
    int64_t size, each;

    MPL_PASS(mpl_window_pool(ctx, call->graph, call->op, &x, &w));
    size = w.in[0] * w.in[1] * w.in[2], each = w.out[0] * w.out[1] * w.out[2];
    mpl_clear_tail(&call->out[0]);
    for (int64_t i = 0; i < mpl_count(&call->out[0].shape); i++) {
        int64_t c = plane % channels, image = plane / channels, in_plane = i % each, count;
        int64_t sum = sum_of(&call->in[X], &w, last ? image * size * channels + c : plane * size,
                             last ? channels : 1, o, zero, &count);
        int64_t to = last ? (image * each + in_plane) * channels + c : i;

        count = padded ? mpl_window_padded_count(&w, o) : count;
        mpl_requant_put(&how, call->out[0].data, to,
                        count > 0 ? (float)sum / (float)count * scale : 0,
                        mpl_q_at(call, Y_ZERO, 0, 0));
        plane += mpl_window_next(&w, o);
    }
    return MPL_OK;
}
