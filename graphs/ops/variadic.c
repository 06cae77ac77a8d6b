/* variadic.c -- element-wise operators of any number of operands, fused ones, and where. */
#include "graphs/ops/elementwise_priv.h"

#include <math.h>

/* ---- shape rules ---- */

/* min, max: numbers; sum, mean: floats. */
mpl_status mpl_shape_variadic(mpl_ctx *ctx, const mpl_shape_call *call)
{
    uint16_t kind = call->graph->op_kind[call->op];

    MPL_PASS(mpl_check_type(
        ctx, call, 0, kind == MPL_OP_min || kind == MPL_OP_max ? MPL_SET_NUMBER : MPL_SET_FLOAT));
    mpl_like_input(call, 0, call->in_type[0]);
    for (uint32_t i = 1; i < call->n_in; i++) {
        if (call->in_shape[i] == NULL)
            return MPL_REFUSE(ctx, "input %u is missing", i);
        MPL_PASS(mpl_check_same_type(ctx, call, i, 0));
        MPL_PASS(mpl_broadcast(ctx, &call->out_shape[0], call->in_shape[i], &call->out_shape[0]));
    }
    return MPL_OK;
}

mpl_status mpl_shape_where(mpl_ctx *ctx, const mpl_shape_call *call)
{
    MPL_PASS(mpl_check_type(ctx, call, 0, MPL_SET(bool)));
    MPL_PASS(mpl_check_same_type(ctx, call, 2, 1));
    MPL_PASS(mpl_broadcast(ctx, call->in_shape[0], call->in_shape[1], &call->out_shape[0]));
    MPL_PASS(mpl_broadcast(ctx, &call->out_shape[0], call->in_shape[2], &call->out_shape[0]));
    call->out_type[0] = call->in_type[1];
    return MPL_OK;
}

mpl_status mpl_shape_fma(mpl_ctx *ctx, const mpl_shape_call *call)
{
    MPL_PASS(mpl_check_type(ctx, call, 0, MPL_SET_NUMBER));
    call->out_type[0] = call->in_type[0];
    call->out_shape[0] = *call->in_shape[0];
    for (uint32_t i = 1; i < 3; i++) {
        MPL_PASS(mpl_check_same_type(ctx, call, i, 0));
        MPL_PASS(mpl_broadcast(ctx, &call->out_shape[0], call->in_shape[i], &call->out_shape[0]));
    }
    return MPL_OK;
}

mpl_status mpl_shape_div_sqrt(mpl_ctx *ctx, const mpl_shape_call *call)
{
    return mpl_shape_two(ctx, call, MPL_SET_FLOAT);
}

/* ---- min, max, sum, mean ---- */

/* First dim of the row that all operands have in common; see mpl_row_begin. */
static uint32_t common_row(const mpl_op_call *call, uint32_t n_in)
{
    uint32_t begin = 0;

    for (uint32_t k = 0; k < n_in; k++) {
        uint32_t own = mpl_row_begin(&call->in[k].shape, &call->out[0].shape);

        begin = own > begin ? own : begin;
    }
    return begin;
}

/* Offset of the row `index` in an operand. [element] */
static int64_t row_offset(const mpl_shape *in, const mpl_shape *out, uint32_t n_outer,
                          const int64_t *index)
{
    int64_t stride[MPL_MAX_RANK], offset = 0;

    mpl_broadcast_strides(in, out, stride);
    for (uint32_t i = 0; i < n_outer; i++)
        offset += stride[i] * index[i];
    return offset;
}

/* One piece of a row. Reads all operands before writing the output, which may be one of them. */
static void fold_piece(const mpl_op_call *call, mpl_arith arith, mpl_kernel combine,
                       mpl_kernel last, uint32_t begin, const int64_t *index, int64_t from,
                       int64_t n, int64_t at)
{
    const mpl_tensor *out = &call->out[0];
    mpl_scalars s = {.a = (double)call->n_in};
    mpl_piece sum, buffer;

    for (uint32_t k = 0; k < call->n_in; k++) {
        const mpl_tensor *in = &call->in[k];
        bool repeated = mpl_row_repeated(&in->shape, &out->shape, begin);
        int64_t offset = row_offset(&in->shape, &out->shape, begin, index) + (repeated ? 0 : from);
        const void *x =
            mpl_piece_load(arith, in->type, in->data, offset, repeated, n, k == 0 ? &sum : &buffer);

        if (k > 0)
            combine(&sum, x, &sum, n, NULL);
        else if (x != &sum)
            memcpy(&sum, x, (size_t)n * (arith == MPL_IN_FLOAT ? sizeof(float) : sizeof(double)));
    }
    if (last != NULL)
        last(&sum, NULL, &sum, n, &s);
    mpl_piece_store(arith, out->type, out->data, at, n, &sum);
}

static mpl_status variadic(const mpl_op_call *call, const mpl_kernel combine[MPL_N_ARITH],
                           const mpl_kernel last[MPL_N_ARITH])
{
    const mpl_shape *out = &call->out[0].shape;
    mpl_arith arith = mpl_arith_of(call->out[0].type);
    uint32_t begin = common_row(call, call->n_in);
    int64_t row = mpl_count_dims(out, begin, out->rank), total = mpl_count(out), at = 0;
    int64_t index[MPL_MAX_RANK] = {0};

    while (at < total) {
        for (int64_t from = 0, n; from < row; from += n, at += n) {
            n = row - from < MPL_PIECE ? row - from : MPL_PIECE;
            fold_piece(call, arith, combine[arith], last[arith], begin, index, from, n, at);
        }
        mpl_step(out->dim, begin, index, 0, NULL, NULL);
    }
    return MPL_OK;
}

static const mpl_kernel nothing[MPL_N_ARITH];

#define VARIADIC(name, last, expr, int_expr, uint_expr)                                            \
    MPL_KERNEL_2(name##_float, float, real, expr)                                                  \
    MPL_KERNEL_2(name##_double, double, real, expr)                                                \
    MPL_KERNEL_2(name##_int, int64_t, real, int_expr)                                              \
    MPL_KERNEL_2(name##_uint, uint64_t, real, uint_expr)                                           \
    mpl_status mpl_eval_##name(mpl_ctx *ctx, const mpl_op_call *call)                              \
    {                                                                                              \
        static const mpl_kernel kernel[MPL_N_ARITH] = {name##_float, name##_double, name##_int,    \
                                                       name##_uint};                               \
                                                                                                   \
        (void)ctx;                                                                                 \
        return variadic(call, kernel, last);                                                       \
    }

MPL_KERNEL_1(mean_of_float, float, real, x / (real)s->a)
MPL_KERNEL_1(mean_of_double, double, real, x / s->a)
static const mpl_kernel mean_of[MPL_N_ARITH] = {mean_of_float, mean_of_double, NULL, NULL};

/* NaN on either side gives NaN. */
VARIADIC(min, nothing, x < z || x != x ? x : z, x < z ? x : z, x < z ? x : z)
VARIADIC(max, nothing, x > z || x != x ? x : z, x > z ? x : z, x > z ? x : z)
VARIADIC(sum, nothing, x + z, (uint64_t)x + (uint64_t)z, x + z)
VARIADIC(mean, mean_of, x + z, (uint64_t)x + (uint64_t)z, x + z)

/* ---- fma, div_sqrt ---- */

/* Computes one piece of the output; reads all operands before writing. */
typedef void join(const mpl_op_call *call, mpl_arith arith, const void *const *x, int64_t n,
                  mpl_piece *y);

static mpl_status joined(const mpl_op_call *call, join *piece)
{
    const mpl_shape *out = &call->out[0].shape;
    mpl_arith arith = mpl_arith_of(call->out[0].type);
    uint32_t begin = common_row(call, call->n_in);
    int64_t row = mpl_count_dims(out, begin, out->rank), total = mpl_count(out), at = 0;
    int64_t index[MPL_MAX_RANK] = {0};
    mpl_piece buffer[3], y;

    while (at < total) {
        for (int64_t from = 0, n; from < row; from += n, at += n) {
            const void *x[3] = {NULL};

            n = row - from < MPL_PIECE ? row - from : MPL_PIECE;
            for (uint32_t k = 0; k < call->n_in; k++) {
                const mpl_tensor *in = &call->in[k];
                bool repeated = mpl_row_repeated(&in->shape, out, begin);

                x[k] = mpl_piece_load(arith, in->type, in->data,
                                      row_offset(&in->shape, out, begin, index) +
                                          (repeated ? 0 : from),
                                      repeated, n, &buffer[k]);
            }
            piece(call, arith, x, n, &y);
            mpl_piece_store(arith, call->out[0].type, call->out[0].data, at, n, &y);
        }
        mpl_step(out->dim, begin, index, 0, NULL, NULL);
    }
    return MPL_OK;
}

MPL_KERNEL_2(times_float, float, real, x *z)
MPL_KERNEL_2(times_double, double, real, x *z)
MPL_KERNEL_2(times_int, int64_t, real, (uint64_t)x *(uint64_t)z)
MPL_KERNEL_1(root_float, float, real, sqrtf(x + (real)s->a))
MPL_KERNEL_1(root_double, double, real, sqrt(x + s->a))
MPL_KERNEL_2(over_float, float, real, x / z)
MPL_KERNEL_2(over_double, double, real, x / z)

static void fma_piece(const mpl_op_call *call, mpl_arith arith, const void *const *x, int64_t n,
                      mpl_piece *y)
{
    static const mpl_kernel times[MPL_N_ARITH] = {times_float, times_double, times_int, times_int};
    static const mpl_kernel plus[MPL_N_ARITH] = {sum_float, sum_double, sum_int, sum_uint};

    (void)call;
    times[arith](x[0], x[1], y, n, NULL);
    plus[arith](y, x[2], y, n, NULL);
}

static void div_sqrt_piece(const mpl_op_call *call, mpl_arith arith, const void *const *x,
                           int64_t n, mpl_piece *y)
{
    static const mpl_kernel root[MPL_N_ARITH] = {root_float, root_double, NULL, NULL};
    static const mpl_kernel over[MPL_N_ARITH] = {over_float, over_double, NULL, NULL};
    mpl_scalars s = {.a = mpl_attr_float(call->graph, call->op, MPL_ATTR_epsilon, 0)};

    root[arith](x[1], NULL, y, n, &s);
    over[arith](x[0], y, y, n, NULL);
}

enum { AT_ONCE = 16 }; /* constant count: compilers vectorise */

/* A piece of a row; step 0 repeats an operand. A scale and shift per channel, or per element, the
 * usual cases, have their own loops. */
static void fma_floats(const float *const *self, const int64_t *step, int64_t n, float *restrict y)
{
    const float *a = self[0], *b = self[1], *c = self[2];
    float scale = *b, shift = *c;
    int64_t k = 0;

    if (step[0] == 1 && step[1] == 0 && step[2] == 0)
        for (; k + AT_ONCE <= n; k += AT_ONCE)
            for (int64_t i = 0; i < AT_ONCE; i++)
                y[k + i] = a[k + i] * scale + shift;
    if (step[0] == 1 && step[1] == 1 && step[2] == 1)
        for (; k + AT_ONCE <= n; k += AT_ONCE)
            for (int64_t i = 0; i < AT_ONCE; i++)
                y[k + i] = a[k + i] * b[k + i] + c[k + i];
    for (; k < n; k++)
        y[k] = a[k * step[0]] * b[k * step[1]] + c[k * step[2]];
}

/* Does the same as `joined`, without copying repeated operands: networks spend much time here. */
static void fma_of_floats(const mpl_op_call *call)
{
    const mpl_shape *out = &call->out[0].shape;
    uint32_t begin = common_row(call, 3);
    int64_t row = mpl_count_dims(out, begin, out->rank), total = mpl_count(out),
            index[MPL_MAX_RANK] = {0};
    int64_t step[3];
    float y[MPL_PIECE];

    for (uint32_t k = 0; k < 3; k++)
        step[k] = mpl_row_repeated(&call->in[k].shape, out, begin) ? 0 : 1;
    for (int64_t at = 0; at < total; mpl_step(out->dim, begin, index, 0, NULL, NULL)) {
        const float *x[3];

        for (uint32_t k = 0; k < 3; k++)
            x[k] =
                (const float *)call->in[k].data + row_offset(&call->in[k].shape, out, begin, index);
        for (int64_t from = 0, n; from < row; from += n, at += n) {
            n = row - from < MPL_PIECE ? row - from : MPL_PIECE;
            fma_floats(x, step, n, y);
            memcpy((float *)call->out[0].data + at, y, (size_t)n * sizeof *y);
            for (uint32_t k = 0; k < 3; k++)
                x[k] += step[k] * n;
        }
    }
}

mpl_status mpl_eval_fma(mpl_ctx *ctx, const mpl_op_call *call)
{
    (void)ctx;
    if (call->out[0].type != MPL_TYPE_f32)
        return joined(call, fma_piece);
    fma_of_floats(call);
    return MPL_OK;
}

mpl_status mpl_eval_div_sqrt(mpl_ctx *ctx, const mpl_op_call *call)
{
    (void)ctx;
    return joined(call, div_sqrt_piece);
}

/* ---- where ---- */

#define WHERE_LOOP(ctype)                                                                          \
    for (int64_t k = 0; k < n; k++)                                                                \
        ((ctype *)y)[k] = which[k * step[0]] != 0 ? ((const ctype *)yes)[k * step[1]]              \
                                                  : ((const ctype *)no)[k * step[2]];

static void where_row(uint32_t bytes, const uint8_t *which, const void *yes, const void *no,
                      void *y, const int64_t *step, int64_t n)
{
    switch (bytes) {
    case 1:
        WHERE_LOOP(uint8_t)
        break;
    case 2:
        WHERE_LOOP(uint16_t)
        break;
    case 4:
        WHERE_LOOP(uint32_t)
        break;
    default:
        WHERE_LOOP(uint64_t)
    }
}

mpl_status mpl_eval_where(mpl_ctx *ctx, const mpl_op_call *call)
{
    const mpl_shape *out = &call->out[0].shape;
    uint32_t begin = common_row(call, 3), bytes = mpl_type_bytes(call->out[0].type);
    int64_t row = mpl_count_dims(out, begin, out->rank), total = mpl_count(out);
    int64_t index[MPL_MAX_RANK] = {0}, stride[3][MPL_MAX_RANK], offset[3] = {0}, step[3];

    (void)ctx;
    for (uint32_t k = 0; k < 3; k++) {
        mpl_broadcast_strides(&call->in[k].shape, out, stride[k]);
        step[k] = mpl_row_repeated(&call->in[k].shape, out, begin) ? 0 : 1;
    }
    for (int64_t at = 0; at < total; at += row) {
        where_row(bytes, (const uint8_t *)call->in[0].data + offset[0],
                  (const char *)call->in[1].data + offset[1] * bytes,
                  (const char *)call->in[2].data + offset[2] * bytes,
                  (char *)call->out[0].data + at * bytes, step, row);
        mpl_step(out->dim, begin, index, 3, (const int64_t(*)[MPL_MAX_RANK])stride, offset);
    }
    return MPL_OK;
}
