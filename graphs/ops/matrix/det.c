/* det.c -- determinants of the matrices in the last two dims, by elimination with row exchanges.
 * Output 1 is the eliminated matrices, in double: what the loops work in. */
#include "graphs/ops/ops_priv.h"

#include <math.h>

mpl_status mpl_shape_det(mpl_ctx *ctx, const mpl_shape_call *call)
{
    const mpl_shape *in = call->in_shape[0];

    MPL_PASS(mpl_check_type(ctx, call, 0, MPL_SET_FLOAT));
    MPL_PASS(mpl_check_rank(ctx, call, 0, 2, MPL_MAX_RANK));
    if (in->dim[in->rank - 1] != in->dim[in->rank - 2])
        return MPL_REFUSE(ctx, "its matrices are %" PRId64 " by %" PRId64 "; a square is needed",
                          in->dim[in->rank - 2], in->dim[in->rank - 1]);
    mpl_like_input(call, 0, call->in_type[0]);
    call->out_shape[0].rank -= 2;
    return mpl_like_input(call, 1, MPL_TYPE_f64);
}

/* Eliminates the n by n matrix a in place. */
static double eliminate(double *a, int64_t n)
{
    double det = 1;

    for (int64_t k = 0; k < n; k++) {
        int64_t pivot = k;

        for (int64_t i = k + 1; i < n; i++)
            if (fabs(a[i * n + k]) > fabs(a[pivot * n + k]))
                pivot = i;
        for (int64_t j = 0; j < n && pivot != k; j++) {
            double t = a[k * n + j];

            a[k * n + j] = a[pivot * n + j];
            a[pivot * n + j] = t;
        }
        det *= pivot != k ? -a[k * n + k] : a[k * n + k];
        for (int64_t i = k + 1; i < n && a[k * n + k] != 0; i++) {
            double factor = a[i * n + k] / a[k * n + k];

            for (int64_t j = k; j < n; j++)
                a[i * n + j] -= factor * a[k * n + j];
        }
    }
    return det;
}

mpl_status mpl_eval_det(mpl_ctx *ctx, const mpl_op_call *call)
{
    const mpl_tensor *in = &call->in[0];
    int64_t n = in->shape.dim[in->shape.rank - 1], count = mpl_count(&call->out[0].shape);
    double *work = call->out[1].data;

    (void)ctx;
    for (int64_t m = 0; m < count; m++, work += n * n) {
        for (int64_t i = 0; i < n * n; i++)
            work[i] = mpl_get(in->type, in->data, m * n * n + i);
        mpl_put(in->type, call->out[0].data, m, eliminate(work, n));
    }
    return MPL_OK;
}
