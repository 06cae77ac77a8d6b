/* loss.c -- softmax cross-entropy over rows of logits, and its gradient. Sums are in double. The
 * loss is the mean over rows of log(sum of exp(logit - largest)) + largest - the label's logit. */
#include "graphs/ops/ops_priv.h"

#include <math.h>

static mpl_status check_rows(mpl_ctx *ctx, const mpl_shape_call *call)
{
    const mpl_shape *rows = call->in_shape[0], *labels = call->in_shape[1];
    char text[200], other[200];

    MPL_PASS(mpl_check_type(ctx, call, 0, MPL_SET_FLOAT));
    MPL_PASS(mpl_check_rank(ctx, call, 0, 2, 2));
    MPL_PASS(mpl_check_type(ctx, call, 1, MPL_SET(i64)));
    if (labels->rank != 1 || labels->dim[0] != rows->dim[0] || mpl_count(rows) == 0)
        return MPL_REFUSE(
            ctx,
            "rows of dims %s, labels of dims %s; there must be one label a row, and some of both",
            mpl_shape_text(rows, text), mpl_shape_text(labels, other));
    return MPL_OK;
}

mpl_status mpl_shape_cross_entropy(mpl_ctx *ctx, const mpl_shape_call *call)
{
    MPL_PASS(check_rows(ctx, call));
    call->out_shape[0] = (mpl_shape){0, {0}};
    call->out_type[0] = call->in_type[0];
    return mpl_like_input(call, 1, call->in_type[0]);
}

mpl_status mpl_shape_cross_entropy_grad(mpl_ctx *ctx, const mpl_shape_call *call)
{
    MPL_PASS(check_rows(ctx, call));
    return mpl_like_input(call, 0, call->in_type[0]);
}

static mpl_status check_labels(mpl_ctx *ctx, const mpl_tensor *labels, int64_t classes)
{
    const int64_t *label = labels->data;

    for (int64_t i = 0; i < labels->shape.dim[0]; i++)
        if (label[i] < 0 || label[i] >= classes)
            return MPL_REFUSE(ctx,
                              "label %" PRId64 " of row %" PRId64 " is none of %" PRId64 " classes",
                              label[i], i, classes);
    return MPL_OK;
}

/* Loss of one row; also writes the row's probabilities. */
MPL_INLINE void row_loss(mpl_type type, const void *x, void *prob, int64_t base, int64_t n,
                         int64_t label, double *loss)
{
    double most = mpl_get(type, x, base), sum = 0;

    for (int64_t i = 1; i < n; i++)
        most = mpl_get(type, x, base + i) > most ? mpl_get(type, x, base + i) : most;
    for (int64_t i = 0; i < n; i++)
        sum += exp(mpl_get(type, x, base + i) - most);
    *loss += log(sum) + most - mpl_get(type, x, base + label);
    for (int64_t i = 0; i < n; i++)
        mpl_put(type, prob, base + i, exp(mpl_get(type, x, base + i) - most) / sum);
}

mpl_status mpl_eval_cross_entropy(mpl_ctx *ctx, const mpl_op_call *call)
{
    const mpl_tensor *tensor = &call->in[0];
    const int64_t *label = call->in[1].data;
    int64_t rows = tensor->shape.dim[0], n = tensor->shape.dim[1];
    double loss = 0;

    MPL_PASS(check_labels(ctx, &call->in[1], n));
    for (int64_t i = 0; i < rows; i++)
        MPL_FOR_FLOAT(tensor->type, row_loss, tensor->data, call->out[1].data, i * n, n, label[i],
                      &loss)
    mpl_put(call->out[0].type, call->out[0].data, 0, loss / (double)rows);
    return MPL_OK;
}

MPL_INLINE void rows_gradient(mpl_type type, const void *prob, const int64_t *label, void *dx,
                              int64_t rows, int64_t n)
{
    for (int64_t i = 0; i < rows * n; i++)
        mpl_put(type, dx, i,
                (mpl_get(type, prob, i) - (label[i / n] == i % n ? 1 : 0)) / (double)rows);
}

mpl_status mpl_eval_cross_entropy_grad(mpl_ctx *ctx, const mpl_op_call *call)
{
    const mpl_tensor *prob = &call->in[0];

    MPL_PASS(check_labels(ctx, &call->in[1], prob->shape.dim[1]));
    MPL_FOR_FLOAT(prob->type, rows_gradient, prob->data, call->in[1].data, call->out[0].data,
                  prob->shape.dim[0], prob->shape.dim[1])
    return MPL_OK;
}
