/* qmatmul.c -- products of matrices of integers; floats times integers by blocks. See README.md. */
#include "graphs/ops/quant/quant_priv.h"

/* ---- qmatmul ---- */

/* The operands as [stack.., rows, terms] and [stack.., terms, columns]; strides of b within. */
typedef struct sides {
    mpl_shape stack, stack_a, stack_b;
    int64_t rows, columns, terms, b_row, b_column;
} sides;

static mpl_status sides_of(mpl_ctx *ctx, const mpl_graph *g, mpl_op op, const mpl_shape *a,
                           const mpl_shape *b, sides *s)
{
    bool trans = mpl_attr_int(g, op, MPL_ATTR_trans_b, 0) != 0;
    char text[2][200];

    s->rows = a->dim[a->rank - 2], s->terms = a->dim[a->rank - 1];
    s->columns = b->dim[b->rank - (trans ? 2 : 1)];
    if (b->dim[b->rank - (trans ? 1 : 2)] != s->terms)
        return MPL_REFUSE(ctx, "the matrices of %s and %s%s cannot be multiplied",
                          mpl_shape_text(a, text[0]), mpl_shape_text(b, text[1]),
                          trans ? ", transposed," : "");
    s->b_row = trans ? 1 : s->columns, s->b_column = trans ? s->terms : 1;
    s->stack_a = *a, s->stack_b = *b;
    s->stack_a.rank -= 2, s->stack_b.rank -= 2;
    return mpl_broadcast(ctx, &s->stack_a, &s->stack_b, &s->stack);
}

mpl_status mpl_shape_qmatmul(mpl_ctx *ctx, const mpl_shape_call *call)
{
    mpl_shape *shape = &call->out_shape[0];
    sides s;

    for (uint32_t i = Q_X; i <= Q_W; i++) {
        MPL_PASS(mpl_check_type(ctx, call, i, MPL_SET_QUANTISED));
        MPL_PASS(mpl_check_rank(ctx, call, i, 2, MPL_MAX_RANK));
    }
    MPL_PASS(sides_of(ctx, call->graph, call->op, call->in_shape[Q_X], call->in_shape[Q_W], &s));
    MPL_PASS(mpl_q_check(ctx, call, Q_X_SCALE, Q_X_ZERO, Q_X, s.rows));
    MPL_PASS(mpl_q_check(ctx, call, Q_W_SCALE, Q_W_ZERO, Q_W, s.columns));
    MPL_PASS(mpl_q_check(ctx, call, Q_Y_SCALE, Q_Y_ZERO, MPL_NONE, s.rows));
    MPL_PASS(mpl_q_out_type(ctx, call));
    if (mpl_q_given(call, Q_BIAS) && mpl_count(call->in_shape[Q_BIAS]) != s.columns &&
        !mpl_q_single(call, Q_BIAS))
        return MPL_REFUSE(ctx, "bias has %" PRId64 " elements for %" PRId64 " columns",
                          mpl_count(call->in_shape[Q_BIAS]), s.columns);
    *shape = s.stack;
    shape->dim[shape->rank++] = s.rows;
    shape->dim[shape->rank++] = s.columns;
    return MPL_OK;
}

enum { COLUMNS = 256 };

/* Row i, columns [j, j + n) of one product, whose operands start at a and b, and its output at y.
 */
static void compute(const mpl_op_call *call, const sides *s, const mpl_requant *how, int64_t a,
                    int64_t b, int64_t y, int64_t i, int64_t j, int64_t n)
{
    int64_t sum[COLUMNS] = {0};
    int32_t row[COLUMNS], x, b_zero = (int32_t)mpl_q_at(call, Q_W_ZERO, 0, 0);
    int32_t a_zero = (int32_t)mpl_q_at(call, Q_X_ZERO, i, 0);
    double zero = mpl_q_at(call, Q_Y_ZERO, i, 0);
    bool many = call->n_in > Q_W_ZERO && call->in[Q_W_ZERO].data != NULL &&
                mpl_count(&call->in[Q_W_ZERO].shape) > 1;

    for (int64_t k = 0; k < s->terms; k++) {
        mpl_q_load(&call->in[Q_X], a + i * s->terms + k, 1, 1, a_zero, &x);
        mpl_q_load(&call->in[Q_W], b + k * s->b_row + j * s->b_column, s->b_column, n,
                   many ? 0 : b_zero, row);
        for (int64_t m = 0; m < n; m++)
            sum[m] += (int64_t)x * row[m];
        for (int64_t m = 0; many && m < n; m++)
            sum[m] -= (int64_t)x * (int64_t)mpl_q_at(call, Q_W_ZERO, j + m, 0);
    }
    for (int64_t m = 0; m < n; m++) {
        float scale = (float)mpl_q_at(call, Q_X_SCALE, i, 1) *
                      (float)mpl_q_at(call, Q_W_SCALE, j + m, 1) /
                      (float)mpl_q_at(call, Q_Y_SCALE, i, 1);
        double bias = mpl_q_at(call, Q_BIAS, j + m, 0);
        int64_t to = y + i * s->columns + j + m;

        if (call->out[0].type == MPL_TYPE_i32)
            mpl_put_int(MPL_TYPE_i32, call->out[0].data, to, sum[m] + (int64_t)bias);
        else if (how->whole)
            mpl_requant_put(how, call->out[0].data, to, (float)((double)sum[m] + bias) * scale,
                            zero);
        else
            mpl_put(how->type, call->out[0].data, to, (double)((float)sum[m] * scale) + bias);
    }
}

mpl_status mpl_eval_qmatmul(mpl_ctx *ctx, const mpl_op_call *call)
{
    int64_t index[MPL_MAX_RANK] = {0}, stride[2][MPL_MAX_RANK], offset[2] = {0}, y = 0;
    mpl_requant how = mpl_requant_of(call);
    sides s;

    MPL_PASS(sides_of(ctx, call->graph, call->op, &call->in[Q_X].shape, &call->in[Q_W].shape, &s));
    if (mpl_count(&call->out[0].shape) == 0)
        return MPL_OK;
    mpl_clear_tail(&call->out[0]);
    mpl_broadcast_strides(&s.stack_a, &s.stack, stride[0]);
    mpl_broadcast_strides(&s.stack_b, &s.stack, stride[1]);
    do {
        for (int64_t i = 0; i < s.rows; i++)
            for (int64_t j = 0; j < s.columns; j += COLUMNS)
                compute(call, &s, &how, offset[0] * s.rows * s.terms,
                        offset[1] * s.terms * s.columns, y, i, j,
                        s.columns - j < COLUMNS ? s.columns - j : COLUMNS);
        y += s.rows * s.columns;
    } while (mpl_step(s.stack.dim, s.stack.rank, index, 2, (const int64_t(*)[MPL_MAX_RANK])stride,
                      offset));
    return MPL_OK;
}

/* ---- matmul_blocked: a [.., K] times b [N, blocks * block_size], transposed, (b - zero) * scale
 * with scale and zero [N, blocks]; zero is of b's type, or a float, or left out: half the range.
 * What b has beyond K is not read. ---- */

mpl_status mpl_shape_matmul_blocked(mpl_ctx *ctx, const mpl_shape_call *call)
{
    const mpl_shape *shape = call->in_shape[0], *b = call->in_shape[1], *scale = call->in_shape[2];
    int64_t block = mpl_attr_int(call->graph, call->op, MPL_ATTR_block_size, 0);
    char text[2][200];

    MPL_PASS(mpl_check_type(ctx, call, 0, MPL_SET_FLOAT));
    MPL_PASS(mpl_check_rank(ctx, call, 0, 1, MPL_MAX_RANK));
    MPL_PASS(mpl_check_type(ctx, call, 1, MPL_SET(u2) | MPL_SET(u4) | MPL_SET(u8)));
    MPL_PASS(mpl_check_rank(ctx, call, 1, 2, 2));
    MPL_PASS(mpl_check_type(ctx, call, 2, MPL_SET_FLOAT));
    if (block < 1 || b->dim[1] % block != 0 || b->dim[1] < shape->dim[shape->rank - 1] ||
        mpl_count(scale) != b->dim[0] * (b->dim[1] / block))
        return MPL_REFUSE(ctx,
                          "b has dims %s and scale %s; with block_size %" PRId64
                          " there is one scale for each row and block",
                          mpl_shape_text(b, text[0]), mpl_shape_text(scale, text[1]), block);
    if (mpl_q_given(call, 3)) {
        MPL_PASS(
            mpl_check_type(ctx, call, 3, MPL_SET_FLOAT | MPL_SET(u2) | MPL_SET(u4) | MPL_SET(u8)));
        if (call->in_shape[3]->rank != 2 || call->in_shape[3]->dim[0] != b->dim[0] ||
            call->in_shape[3]->dim[1] < b->dim[1] / block)
            return MPL_REFUSE(ctx, "zero has dims %s; it must have %" PRId64 " rows of %" PRId64,
                              mpl_shape_text(call->in_shape[3], text[0]), b->dim[0],
                              b->dim[1] / block);
    }
    mpl_like_input(call, 0, call->in_type[0]);
    call->out_shape[0].dim[shape->rank - 1] = b->dim[0];
    return MPL_OK;
}

mpl_status mpl_eval_matmul_blocked(mpl_ctx *ctx, const mpl_op_call *call)
{
    const mpl_tensor *tensor = &call->in[0], *b = &call->in[1], *scale = &call->in[2];
    const mpl_tensor *zero = call->n_in > 3 && call->in[3].data != NULL ? &call->in[3] : NULL;
    int64_t block = mpl_attr_int(call->graph, call->op, MPL_ATTR_block_size, 0);
    int64_t terms = tensor->shape.dim[tensor->shape.rank - 1], columns = b->shape.dim[0];
    int64_t blocks = b->shape.dim[1] / block, row = b->shape.dim[1];
    int64_t rows = mpl_count_dims(&tensor->shape, 0, tensor->shape.rank - 1);
    double middle = ldexp(1, (int)mpl_type_bits(b->type) - 1), w[64];

    (void)ctx;
    for (int64_t j = 0; j < columns; j++)
        for (int64_t k = 0, n; k == 0 || k < terms; k += n) {
            double z = zero == NULL
                           ? middle
                           : mpl_get(zero->type, zero->data, j * zero->shape.dim[1] + k / block);
            double s = mpl_get(scale->type, scale->data, j * blocks + k / block);

            n = block - k % block < 64 ? block - k % block : 64;
            n = terms - k < n ? terms - k : n;
            for (int64_t m = 0; m < n; m++)
                w[m] = (mpl_get(b->type, b->data, j * row + k + m) - z) * s;
            for (int64_t i = 0; i < rows; i++) {
                double sum = k == 0 ? 0 : mpl_get(tensor->type, call->out[0].data, i * columns + j);

                for (int64_t m = 0; m < n; m++)
                    sum += mpl_get(tensor->type, tensor->data, i * terms + k + m) * w[m];
                mpl_put(tensor->type, call->out[0].data, i * columns + j, sum);
            }
        }
    return MPL_OK;
}
