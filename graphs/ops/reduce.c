/* reduce.c -- reductions over any set of axes.
 *
 * Sums are double, in memory order; those of integers are int64, modulo 2^64. If the innermost dim
 * is kept, adjacent outputs are reduced together, so that memory is read in order. */
#include "graphs/ops/elementwise_priv.h"
#include "graphs/ops/lanes_priv.h"

#include <math.h>

mpl_status mpl_shape_reduce(mpl_ctx *ctx, const mpl_shape_call *call)
{
    uint16_t kind = call->graph->op_kind[call->op];
    const mpl_shape *in = call->in_shape[0];
    mpl_shape *out = &call->out_shape[0];
    bool keep = mpl_attr_int(call->graph, call->op, MPL_ATTR_keepdims, 1) != 0;
    bool any = kind == MPL_OP_reduce_max || kind == MPL_OP_reduce_min;
    uint32_t set = 0;

    MPL_PASS(mpl_check_type(ctx, call, 0, any ? MPL_SET_ANY : MPL_SET_NUMBER));
    MPL_PASS(mpl_axes_of(ctx, call->graph, call->op, in->rank, (1u << in->rank) - 1, &set));
    out->rank = 0;
    for (uint32_t i = 0; i < in->rank; i++) {
        bool reduced = (set >> i & 1) != 0;

        if (!reduced || keep)
            out->dim[out->rank++] = reduced ? 1 : in->dim[i];
    }
    call->out_type[0] = call->in_type[0];
    return MPL_OK;
}

/* acc and x are double or int64. A run folds n elements into one; lanes fold n elements into n. */
typedef void (*fold)(void *acc, const void *x, int64_t n);

#define FOLD(name, number, expr)                                                                   \
    static void name##_run(void *acc, const void *x, int64_t n)                                    \
    {                                                                                              \
        number a = *(number *)acc;                                                                 \
                                                                                                   \
        for (int64_t k = 0; k < n; k++) {                                                          \
            number v = ((const number *)x)[k];                                                     \
            a = (number)(expr);                                                                    \
        }                                                                                          \
        *(number *)acc = a;                                                                        \
    }                                                                                              \
    static void name##_lanes(void *acc, const void *x, int64_t n)                                  \
    {                                                                                              \
        for (int64_t k = 0; k < n; k++) {                                                          \
            number a = ((number *)acc)[k], v = ((const number *)x)[k];                             \
            ((number *)acc)[k] = (number)(expr);                                                   \
        }                                                                                          \
    }

FOLD(sum, double, a + v)
FOLD(sum_abs, double, a + fabs(v))
FOLD(sum_square, double, a + v * v)
FOLD(product, double, a *v)
FOLD(largest, double, v > a || v != v ? v : a)
FOLD(least, double, v < a || v != v ? v : a)
FOLD(int_sum, int64_t, (uint64_t)a + (uint64_t)v)
FOLD(int_sum_abs, int64_t, v < 0 ? (uint64_t)a - (uint64_t)v : (uint64_t)a + (uint64_t)v)
FOLD(int_sum_square, int64_t, (uint64_t)a + (uint64_t)v * (uint64_t)v)
FOLD(int_product, int64_t, (uint64_t)a *(uint64_t)v)
FOLD(int_largest, int64_t, v > a ? v : a)
FOLD(int_least, int64_t, v < a ? v : a)
FOLD(uint_largest, uint64_t, v > a ? v : a)
FOLD(uint_least, uint64_t, v < a ? v : a)

typedef enum finish { AS_IS, DIVIDE, ROOT, LOGARITHM, LOG_SUM_EXP } finish;

typedef struct reduction {
    double start;
    int64_t int_start;
    fold run, lanes, int_run, int_lanes; /* int_*: NULL: use double */
    finish finish;
} reduction;

typedef union accumulators {
    double d[MPL_PIECE];
    int64_t i[MPL_PIECE];
} accumulators;

typedef struct plan {
    const mpl_op_call *call;
    const reduction *how;
    mpl_arith arith;
    mpl_dims kept, reduced; /* without the innermost dim (run or lanes) */
    int64_t run, lanes;     /* adjacent elements of one output; adjacent outputs */
    int64_t n_reduced;      /* elements of each output */
} plan;

static void plan_init(plan *self, const mpl_op_call *call, const reduction *how, uint32_t set)
{
    *self = (plan){.call = call, .how = how, .run = 1, .lanes = 1};
    self->arith = mpl_type_in(call->in[0].type, MPL_SET_FLOAT) || how->int_run == NULL
                      ? MPL_IN_DOUBLE
                      : MPL_IN_INT;
    mpl_split_dims(&call->in[0].shape, set, &self->kept, &self->reduced);
    self->n_reduced = mpl_dims_count(&self->reduced);
    if (self->reduced.rank > 0 && self->reduced.stride[self->reduced.rank - 1] == 1)
        self->run = self->reduced.dim[--self->reduced.rank];
    else if (self->kept.rank > 0 && self->kept.stride[self->kept.rank - 1] == 1)
        self->lanes = self->kept.dim[--self->kept.rank];
}

/* y[k] = exp(x[k] - shift), the terms of log_sum_exp. */
static const double *shifted_exp(const double *x, const double *shift, int64_t step, int64_t n,
                                 double *y)
{
    for (int64_t k = 0; k < n; k++)
        y[k] = exp(x[k] - shift[k * step]);
    return y;
}

/* Folds adjacent elements; step: 1 if each has its own output, else 0. */
static void fold_piece(const plan *self, int64_t offset, int64_t n, accumulators *acc, fold how,
                       const double *shift, int64_t step)
{
    const mpl_tensor *in = &self->call->in[0];
    mpl_piece buffer;
    const void *x = mpl_piece_load(self->arith, in->type, in->data, offset, false, n, &buffer);

    how(acc, shift != NULL ? shifted_exp(x, shift, step, n, buffer.d) : x, n);
}

/* Folds into n outputs, whose first elements start at `base`. shift: see shifted_exp. */
static void fold_block(const plan *self, int64_t base, int64_t n, accumulators *acc, fold run,
                       fold lanes, const double *shift)
{
    int64_t index[MPL_MAX_RANK] = {0}, offset = base;

    if (self->n_reduced == 0)
        return;
    do {
        if (self->run == 1)
            fold_piece(self, offset, n, acc, lanes, shift, 1);
        for (int64_t from = 0; self->run > 1 && from < self->run; from += MPL_PIECE)
            fold_piece(self, offset + from,
                       self->run - from < MPL_PIECE ? self->run - from : MPL_PIECE, acc, run, shift,
                       0);
    } while (
        mpl_step(self->reduced.dim, self->reduced.rank, index, 1, &self->reduced.stride, &offset));
}

static double finished(finish how, double x, int64_t n)
{
    switch (how) {
    case DIVIDE:
        return x / (double)n;
    case ROOT:
        return sqrt(x);
    case LOGARITHM:
        return log(x);
    default:
        return x;
    }
}

static int64_t int_mean(mpl_type type, int64_t sum, int64_t n)
{
    if (n == 0)
        return 0;
    return type == MPL_TYPE_u64 ? (int64_t)((uint64_t)sum / (uint64_t)n) : sum / n;
}

/* Computes n outputs from `at` on. */
static void reduce_block(const plan *self, int64_t base, int64_t n, int64_t at)
{
    const mpl_tensor *out = &self->call->out[0];
    const reduction *how = self->how;
    accumulators acc, most;

    if (self->arith == MPL_IN_INT) {
        for (int64_t k = 0; k < n; k++)
            acc.i[k] = how->int_start;
        fold_block(self, base, n, &acc, how->int_run, how->int_lanes, NULL);
        for (int64_t k = 0; k < n; k++) {
            if (how->finish == DIVIDE)
                acc.i[k] = int_mean(out->type, acc.i[k], self->n_reduced);
            mpl_put_int(out->type, out->data, at + k, acc.i[k]);
        }
        return;
    }
    for (int64_t k = 0; k < n; k++)
        acc.d[k] = how->start;
    if (how->finish == LOG_SUM_EXP) {
        for (int64_t k = 0; k < n; k++)
            most.d[k] = -INFINITY;
        fold_block(self, base, n, &most, largest_run, largest_lanes, NULL);
        fold_block(self, base, n, &acc, sum_run, sum_lanes, most.d);
        for (int64_t k = 0; k < n; k++) /* infinite maximum: inf - inf is NaN */
            acc.d[k] = isinf(most.d[k]) ? most.d[k] : most.d[k] + log(acc.d[k]);
    } else
        fold_block(self, base, n, &acc, how->run, how->lanes, NULL);
    for (int64_t k = 0; k < n; k++)
        mpl_put(out->type, out->data, at + k, finished(how->finish, acc.d[k], self->n_reduced));
}

static mpl_status reduce(mpl_ctx *ctx, const mpl_op_call *call, const reduction *how)
{
    const mpl_shape *in = &call->in[0].shape;
    int64_t index[MPL_MAX_RANK] = {0}, base = 0, at = 0, total = mpl_count(&call->out[0].shape);
    uint32_t set = 0;
    plan p;

    MPL_PASS(mpl_axes_of(ctx, call->graph, call->op, in->rank, (1u << in->rank) - 1, &set));
    if (total == 0)
        return MPL_OK;
    plan_init(&p, call, how, set);
    do {
        for (int64_t from = 0, n; from < p.lanes; from += n, at += n) {
            n = p.lanes - from < MPL_PIECE ? p.lanes - from : MPL_PIECE;
            reduce_block(&p, base + from, n, at);
        }
    } while (mpl_step(p.kept.dim, p.kept.rank, index, 1,
                      (const int64_t(*)[MPL_MAX_RANK])p.kept.stride, &base));
    return MPL_OK;
}

#define REDUCE(name, ...)                                                                          \
    mpl_status mpl_eval_##name(mpl_ctx *ctx, const mpl_op_call *call)                              \
    {                                                                                              \
        static const reduction how = {__VA_ARGS__};                                                \
                                                                                                   \
        return reduce(ctx, call, &how);                                                            \
    }

REDUCE(reduce_sum, 0, 0, sum_run, sum_lanes, int_sum_run, int_sum_lanes, AS_IS)
REDUCE(reduce_mean, 0, 0, sum_run, sum_lanes, int_sum_run, int_sum_lanes, DIVIDE)
REDUCE(reduce_l2, 0, 0, sum_square_run, sum_square_lanes, NULL, NULL, ROOT)
REDUCE(reduce_sum_square, 0, 0, sum_square_run, sum_square_lanes, int_sum_square_run,
       int_sum_square_lanes, AS_IS)
REDUCE(reduce_log_sum, 0, 0, sum_run, sum_lanes, NULL, NULL, LOGARITHM)
REDUCE(reduce_log_sum_exp, 0, 0, NULL, NULL, NULL, NULL, LOG_SUM_EXP)
REDUCE(reduce_prod, 1, 1, product_run, product_lanes, int_product_run, int_product_lanes, AS_IS)

mpl_status mpl_eval_reduce_l1(mpl_ctx *ctx, const mpl_op_call *call)
{
    static const reduction how = {
        0, 0, sum_abs_run, sum_abs_lanes, int_sum_abs_run, int_sum_abs_lanes, AS_IS};

    return call->in[0].type == MPL_TYPE_u64 ? mpl_eval_reduce_sum(ctx, call)
                                            : reduce(ctx, call, &how);
}

/* Limits of an integer type: the results of max and min over nothing. */
static int64_t lowest(mpl_type type)
{
    bool is_signed = mpl_type_in(type, MPL_SET_SIGNED);

    return is_signed ? (int64_t)(UINT64_MAX << (mpl_type_bits(type) - 1)) : 0;
}

static int64_t highest(mpl_type type)
{
    bool is_unsigned = mpl_type_in(type, MPL_SET_UNSIGNED);

    return type == MPL_TYPE_bool ? 1
           : is_unsigned         ? (int64_t)(UINT64_MAX >> (64 - mpl_type_bits(type)))
                                 : -1 - lowest(type);
}

mpl_status mpl_eval_reduce_max(mpl_ctx *ctx, const mpl_op_call *call)
{
    bool u64 = call->in[0].type == MPL_TYPE_u64;
    const reduction how = {-INFINITY,
                           lowest(call->in[0].type),
                           largest_run,
                           largest_lanes,
                           u64 ? uint_largest_run : int_largest_run,
                           u64 ? uint_largest_lanes : int_largest_lanes,
                           AS_IS};

    return reduce(ctx, call, &how);
}

mpl_status mpl_eval_reduce_min(mpl_ctx *ctx, const mpl_op_call *call)
{
    bool u64 = call->in[0].type == MPL_TYPE_u64;
    const reduction how = {INFINITY,
                           highest(call->in[0].type),
                           least_run,
                           least_lanes,
                           u64 ? uint_least_run : int_least_run,
                           u64 ? uint_least_lanes : int_least_lanes,
                           AS_IS};

    return reduce(ctx, call, &how);
}
