/* matmul.c -- matmul, gemm, and fused gemm.
 *
 * Accumulation order: products are added in order of k: f32 in tiles (product_priv.h), other floats
 * in double, rounded once; integers wrap. gemm then computes alpha times the sum plus beta times c,
 * in double. gemm_sum starts the sum from its addend; an activation comes last. */
#include "graphs/ops/matrix/conv.h"
#include "graphs/ops/ops_priv.h"
#include "graphs/ops/matrix/product_priv.h"

#define MPL_SET_PRODUCT (MPL_SET_FLOAT | MPL_SET_INDEX | MPL_SET(u32) | MPL_SET(u64))

/* One matrix product. Element (i, k) of the left matrix has index a0 + i * a_row + k * a_column;
 * likewise the right matrix and the addend c (NULL: none). The output is row-major from element
 * y0. */
typedef struct matrices {
    const void *a, *b, *c;
    void *y;
    int64_t rows, columns, terms;
    int64_t a0, a_row, a_column, b0, b_row, b_column, c_row, c_column, y0;
    double alpha, beta;
    const void *sum; /* initial sums, in the output's form, may alias it; NULL: 0 */
    mpl_activation activation;
} matrices;

/* Finishes element (i, j) from its sum of products. */
MPL_INLINE double finish_float(mpl_type type, const matrices *m, int64_t i, int64_t j, double sum)
{
    double add = m->c != NULL ? m->beta * mpl_get(type, m->c, i * m->c_row + j * m->c_column) : 0;

    return mpl_activate(m->activation, m->alpha * sum + add);
}
MPL_INLINE uint64_t finish_int(mpl_type type, const matrices *m, int64_t i, int64_t j, uint64_t sum)
{
    uint64_t c =
        m->c != NULL ? (uint64_t)mpl_get_int(type, m->c, i * m->c_row + j * m->c_column) : 0;

    return (uint64_t)(int64_t)m->alpha * sum + (uint64_t)(int64_t)m->beta * c;
}

static void pack_columns(const matrices *self, int64_t j0, int64_t n, int64_t k0, int64_t n_k,
                         mpl_tile *tile)
{
    const float *b = (const float *)self->b + self->b0 + k0 * self->b_row + j0 * self->b_column;

    for (int64_t j = 0; j < n; j += MPL_TILE_LANES)
        for (int64_t k = 0; k < n_k; k++)
            for (int64_t lane = 0; lane < MPL_TILE_LANES; lane++)
                tile->b[j / MPL_TILE_LANES][k][lane] =
                    j + lane < n ? b[k * self->b_row + (j + lane) * self->b_column] : 0;
}

static void multiply_f32(const matrices *self)
{
    const float *a = (const float *)self->a + self->a0;
    float *y = (float *)self->y + self->y0;
    mpl_tile tile;

    if (self->sum == NULL)
        memset(y, 0, (size_t)self->rows * (size_t)self->columns * sizeof *y);
    else if (self->sum != y)
        memcpy(y, self->sum, (size_t)self->rows * (size_t)self->columns * sizeof *y);
    for (int64_t j = 0; j < self->columns; j += MPL_TILE_N) {
        int64_t n = self->columns - j < MPL_TILE_N ? self->columns - j : MPL_TILE_N;

        for (int64_t k = 0; k < self->terms; k += MPL_TILE_K) {
            int64_t n_k = self->terms - k < MPL_TILE_K ? self->terms - k : MPL_TILE_K;

            pack_columns(self, j, n, k, n_k, &tile);
            mpl_tile_product(a + k * self->a_column, self->a_row, self->a_column, self->rows, n_k,
                             &tile, n, y + j, self->columns);
        }
    }
    for (int64_t i = 0; i < self->rows &&
                        (self->c != NULL || self->alpha != 1 || self->activation != MPL_ACT_NONE);
         i++)
        for (int64_t j = 0; j < self->columns; j++)
            y[i * self->columns + j] =
                (float)finish_float(MPL_TYPE_f32, self, i, j, (double)y[i * self->columns + j]);
}

MPL_INLINE void multiply_float(mpl_type type, const matrices *m)
{
    for (int64_t i = 0; i < m->rows; i++)
        for (int64_t j = 0; j < m->columns; j++) {
            double sum = m->sum != NULL ? mpl_get(type, m->sum, i * m->columns + j) : 0;

            for (int64_t k = 0; k < m->terms; k++)
                sum += mpl_get(type, m->a, m->a0 + i * m->a_row + k * m->a_column) *
                       mpl_get(type, m->b, m->b0 + k * m->b_row + j * m->b_column);
            mpl_put(type, m->y, m->y0 + i * m->columns + j, finish_float(type, m, i, j, sum));
        }
}

MPL_INLINE void multiply_int(mpl_type type, const matrices *m)
{
    for (int64_t i = 0; i < m->rows; i++)
        for (int64_t j = 0; j < m->columns; j++) {
            uint64_t sum = 0;

            for (int64_t k = 0; k < m->terms; k++)
                sum += (uint64_t)mpl_get_int(type, m->a, m->a0 + i * m->a_row + k * m->a_column) *
                       (uint64_t)mpl_get_int(type, m->b, m->b0 + k * m->b_row + j * m->b_column);
            mpl_put_int(type, m->y, m->y0 + i * m->columns + j,
                        (int64_t)finish_int(type, m, i, j, sum));
        }
}

static void multiply(mpl_type type, const matrices *m)
{
    if (type == MPL_TYPE_f32)
        multiply_f32(m);
    else if (mpl_type_in(type, MPL_SET_FLOAT))
        MPL_FOR_FLOAT(type, multiply_float, m)
    else
        MPL_FOR_INT(type, multiply_int, m)
}

/* ---- matmul ---- */

static bool is_turned(const mpl_graph *g, mpl_op op, mpl_attr_key key)
{
    return mpl_attr_int(g, op, key, 0) != 0;
}

static void turn(mpl_shape *shape)
{
    int64_t rows = shape->dim[shape->rank - 2];

    shape->dim[shape->rank - 2] = shape->dim[shape->rank - 1];
    shape->dim[shape->rank - 1] = rows;
}

/* Operands as stacks of matrices that can be multiplied: transposed where an attribute says so; a
 * vector is a row on the left, a column on the right. */
static void as_matrices(const mpl_graph *g, mpl_op op, const mpl_shape *a, const mpl_shape *b,
                        mpl_shape *left, mpl_shape *right)
{
    *left = *a, *right = *b;
    if (a->rank > 1 && is_turned(g, op, MPL_ATTR_trans_a))
        turn(left);
    if (b->rank > 1 && is_turned(g, op, MPL_ATTR_trans_b))
        turn(right);
    if (a->rank == 1)
        *left = (mpl_shape){2, {1, a->dim[0]}};
    if (b->rank == 1)
        *right = (mpl_shape){2, {b->dim[0], 1}};
}

/* Dims of a stack without the matrix dims. */
static mpl_shape stack_of(const mpl_shape *whole)
{
    mpl_shape stack = *whole;

    stack.rank -= 2;
    return stack;
}

mpl_status mpl_shape_matmul(mpl_ctx *ctx, const mpl_shape_call *call)
{
    const mpl_shape *shape = call->in_shape[0], *b = call->in_shape[1];
    mpl_shape left, right, stack, stack_a, stack_b, *to = &call->out_shape[0];
    char text[2][200];

    MPL_PASS(mpl_check_type(ctx, call, 0, MPL_SET_PRODUCT));
    MPL_PASS(mpl_check_same_type(ctx, call, 1, 0));
    MPL_PASS(mpl_check_rank(ctx, call, 0, 1, MPL_MAX_RANK));
    MPL_PASS(mpl_check_rank(ctx, call, 1, 1, MPL_MAX_RANK));
    as_matrices(call->graph, call->op, shape, b, &left, &right);
    if (left.dim[left.rank - 1] != right.dim[right.rank - 2])
        return MPL_REFUSE(ctx, "the matrices of %s and %s cannot be multiplied",
                          mpl_shape_text(shape, text[0]), mpl_shape_text(b, text[1]));
    stack_a = stack_of(&left), stack_b = stack_of(&right);
    MPL_PASS(mpl_broadcast(ctx, &stack_a, &stack_b, &stack));
    *to = stack;
    if (shape->rank > 1)
        to->dim[to->rank++] = left.dim[left.rank - 2];
    if (b->rank > 1)
        to->dim[to->rank++] = right.dim[right.rank - 1];
    call->out_type[0] = call->in_type[0];
    return MPL_OK;
}

mpl_status mpl_eval_matmul(mpl_ctx *ctx, const mpl_op_call *call)
{
    const mpl_graph *g = call->graph;
    bool trans_a = is_turned(g, call->op, MPL_ATTR_trans_a);
    bool trans_b = is_turned(g, call->op, MPL_ATTR_trans_b);
    mpl_shape left, right, stack, stack_a, stack_b;
    int64_t index[MPL_MAX_RANK] = {0}, stride[2][MPL_MAX_RANK], offset[2] = {0, 0};
    matrices m = {.a = call->in[0].data, .b = call->in[1].data, .y = call->out[0].data, .alpha = 1};

    if (mpl_count(&call->out[0].shape) == 0)
        return MPL_OK;
    as_matrices(g, call->op, &call->in[0].shape, &call->in[1].shape, &left, &right);
    m.rows = left.dim[left.rank - 2];
    m.columns = right.dim[right.rank - 1];
    m.terms = left.dim[left.rank - 1];
    m.a_row = trans_a ? 1 : m.terms, m.a_column = trans_a ? m.rows : 1;
    m.b_row = trans_b ? 1 : m.columns, m.b_column = trans_b ? m.terms : 1;
    stack_a = stack_of(&left), stack_b = stack_of(&right);
    MPL_PASS(mpl_broadcast(ctx, &stack_a, &stack_b, &stack));
    mpl_broadcast_strides(&stack_a, &stack, stride[0]); /* in matrices */
    mpl_broadcast_strides(&stack_b, &stack, stride[1]);
    do {
        m.a0 = offset[0] * m.rows * m.terms;
        m.b0 = offset[1] * m.terms * m.columns;
        multiply(call->in[0].type, &m);
        m.y0 += m.rows * m.columns;
    } while (
        mpl_step(stack.dim, stack.rank, index, 2, (const int64_t(*)[MPL_MAX_RANK])stride, offset));
    return MPL_OK;
}

/* ---- gemm ---- */

static bool is_whole(double x)
{
    return x >= -0x1p53 && x <= 0x1p53 && (double)(int64_t)x == x;
}

mpl_status mpl_shape_gemm(mpl_ctx *ctx, const mpl_shape_call *call)
{
    int64_t trans_a = is_turned(call->graph, call->op, MPL_ATTR_trans_a);
    int64_t trans_b = is_turned(call->graph, call->op, MPL_ATTR_trans_b);
    double alpha = mpl_attr_float(call->graph, call->op, MPL_ATTR_alpha, 1);
    double beta = mpl_attr_float(call->graph, call->op, MPL_ATTR_beta, 1);
    const mpl_shape *shape = call->in_shape[0], *b = call->in_shape[1];
    bool stacks = call->graph->op_kind[call->op] != MPL_OP_gemm && trans_a == 0;
    char text[2][200], name[32];

    MPL_PASS(mpl_check_type(ctx, call, 0, MPL_SET_PRODUCT));
    MPL_PASS(mpl_check_same_type(ctx, call, 1, 0));
    MPL_PASS(mpl_check_rank(ctx, call, 0, 2, stacks ? MPL_MAX_RANK : 2));
    MPL_PASS(mpl_check_rank(ctx, call, 1, 2, 2));
    if (shape->dim[trans_a ? 0 : shape->rank - 1] != b->dim[trans_b])
        return MPL_REFUSE(ctx, "%s%s times %s%s: the inner dims differ",
                          mpl_shape_text(shape, text[0]), trans_a ? " transposed" : "",
                          mpl_shape_text(b, text[1]), trans_b ? " transposed" : "");
    if (!mpl_type_in(call->in_type[0], MPL_SET_FLOAT) && !(is_whole(alpha) && is_whole(beta)))
        return MPL_REFUSE(ctx, "alpha %g and beta %g must be whole numbers for integers", alpha,
                          beta);
    call->out_shape[0] = *shape;
    call->out_shape[0].dim[0] = shape->dim[trans_a];
    call->out_shape[0].dim[shape->rank - 1] = b->dim[!trans_b];
    call->out_type[0] = call->in_type[0];
    if (call->n_in > 2 && call->in_shape[2] != NULL) {
        MPL_PASS(mpl_check_same_type(ctx, call, 2, 0));
        snprintf(name, sizeof name, "input %u", call->first_in + 2);
        MPL_PASS(mpl_check_broadcast_to(ctx, name, call->in_shape[2], &call->out_shape[0]));
        if (shape->rank > 2 && mpl_count_dims(call->in_shape[2], 0, call->in_shape[2]->rank) >
                                   call->out_shape[0].dim[shape->rank - 1])
            return MPL_REFUSE(ctx, "%s has dims %s; it must be a row", name,
                              mpl_shape_text(call->in_shape[2], text[0]));
    }
    if (shape->rank > 2 && !(alpha == 1 && beta == 1))
        return MPL_REFUSE(ctx, "alpha %g and beta %g must be 1 where a has more than two dims",
                          alpha, beta);
    return MPL_OK;
}

/* Floats only. Operand a may have more dims than a matrix; c is then a row. */
mpl_status mpl_shape_gemm_act(mpl_ctx *ctx, const mpl_shape_call *call)
{
    MPL_PASS(mpl_check_activation(ctx, call->graph, call->op));
    MPL_PASS(mpl_check_type(ctx, call, 0, MPL_SET_FLOAT));
    return mpl_shape_gemm(ctx, call);
}

mpl_status mpl_shape_gemm_sum(mpl_ctx *ctx, const mpl_shape_call *call)
{
    MPL_PASS(mpl_shape_added_to(ctx, call, mpl_shape_gemm_act));
    if (mpl_attr_float(call->graph, call->op, MPL_ATTR_alpha, 1) != 1)
        return MPL_REFUSE(ctx, "alpha must be 1 where something is added before the product");
    if (!mpl_shape_equal(call->in_shape[0], &call->out_shape[0]))
        return MPL_REFUSE(ctx, "what is added has other dims than the product");
    return MPL_OK;
}

mpl_status mpl_eval_gemm(mpl_ctx *ctx, const mpl_op_call *call)
{
    bool trans_a = is_turned(call->graph, call->op, MPL_ATTR_trans_a);
    bool trans_b = is_turned(call->graph, call->op, MPL_ATTR_trans_b);
    const uint32_t first = mpl_fused_first((mpl_op_kind)call->graph->op_kind[call->op]);
    const mpl_tensor *in = call->in + first;
    const mpl_shape left = mpl_as_matrix(&in[0].shape);
    const int64_t *a = left.dim, *b = in[1].shape.dim;
    int64_t stride[MPL_MAX_RANK] = {0};
    uint32_t rank = call->out[0].shape.rank;
    matrices m = {.a = in[0].data, .b = in[1].data, .y = call->out[0].data};

    (void)ctx;
    if (mpl_count(&call->out[0].shape) == 0)
        return MPL_OK;
    m.rows = a[trans_a], m.terms = a[!trans_a], m.columns = b[!trans_b];
    m.a_row = trans_a ? 1 : a[1], m.a_column = trans_a ? a[1] : 1;
    m.b_row = trans_b ? 1 : b[1], m.b_column = trans_b ? b[1] : 1;
    m.alpha = mpl_attr_float(call->graph, call->op, MPL_ATTR_alpha, 1);
    m.beta = mpl_attr_float(call->graph, call->op, MPL_ATTR_beta, 1);
    m.sum = first > 0 ? call->in[0].data : NULL;
    m.activation = mpl_activation_of(call->graph, call->op);
    m.c = call->n_in > first + 2 ? in[2].data : NULL;
    if (m.c != NULL)
        mpl_broadcast_strides(&in[2].shape, &call->out[0].shape, stride);
    m.c_row = rank == 2 ? stride[0] : 0, m.c_column = stride[rank - 1];
    multiply(in[0].type, &m);
    return MPL_OK;
}
