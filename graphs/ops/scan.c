/* scan.c -- searches and scans along one axis: arg_max, arg_min, cumsum, cumprod,
 * top_k. */
#include "graphs/ops/lanes_priv.h"

/* ---- shape rules ---- */

mpl_status mpl_shape_arg_reduce(mpl_ctx *ctx, const mpl_shape_call *call)
{
    const mpl_shape *in = call->in_shape[0];
    mpl_shape *out = &call->out_shape[0];
    bool keep = mpl_attr_int(call->graph, call->op, MPL_ATTR_keepdims, 1) != 0;
    uint32_t axis = 0;

    MPL_PASS(mpl_check_type(ctx, call, 0, MPL_SET_NUMBER));
    MPL_PASS(mpl_axis_attr(ctx, call, 0, in->rank, &axis));
    if (in->dim[axis] == 0)
        return MPL_REFUSE(ctx, "axis %u has no elements to choose from", axis);
    out->rank = 0;
    for (uint32_t i = 0; i < in->rank; i++)
        if (i != axis || keep)
            out->dim[out->rank++] = i == axis ? 1 : in->dim[i];
    call->out_type[0] = MPL_TYPE_i64;
    return MPL_OK;
}

mpl_status mpl_shape_cumsum(mpl_ctx *ctx, const mpl_shape_call *call)
{
    mpl_attr attr;
    uint32_t axis;

    MPL_PASS(
        mpl_check_type(ctx, call, 0, MPL_SET_FLOAT | MPL_SET_INDEX | MPL_SET(u32) | MPL_SET(u64)));
    if (!mpl_attr_get(call->graph, call->op, MPL_ATTR_axis, &attr))
        return MPL_REFUSE(ctx, "attribute 'axis' is missing");
    MPL_PASS(mpl_axis(ctx, attr.ints[0], call->in_shape[0]->rank, &axis));
    return mpl_like_input(call, 0, call->in_type[0]);
}

mpl_status mpl_shape_top_k(mpl_ctx *ctx, const mpl_shape_call *call)
{
    int64_t k = mpl_attr_int(call->graph, call->op, MPL_ATTR_k, -1);
    uint32_t axis = 0;

    MPL_PASS(mpl_check_type(ctx, call, 0, MPL_SET_NUMBER));
    MPL_PASS(mpl_axis_attr(ctx, call, -1, call->in_shape[0]->rank, &axis));
    if (k < 0 || k > call->in_shape[0]->dim[axis])
        return MPL_REFUSE(ctx, "k is %" PRId64 "; axis %u has %" PRId64 " elements", k, axis,
                          call->in_shape[0]->dim[axis]);
    for (uint32_t i = 0; i < call->n_out; i++) {
        mpl_like_input(call, i, i == 0 ? call->in_type[0] : MPL_TYPE_i64);
        call->out_shape[i].dim[axis] = k;
    }
    return MPL_OK;
}

/* ---- arg_max, arg_min ---- */

typedef struct arg_mode {
    bool least, last; /* arg_min; on ties, the last */
} arg_mode;

/* m adjacent lanes, so that memory is read in order. NaN is never better than an earlier
 * element. */
#define ARG_BLOCK(name, number, get)                                                               \
    MPL_INLINE void name(mpl_type type, const void *x, int64_t base, mpl_lanes lanes, int64_t m,   \
                         arg_mode how, int64_t *where)                                             \
    {                                                                                              \
        number best[MPL_BLOCK];                                                                    \
                                                                                                   \
        for (int64_t j = 0; j < m; j++) {                                                          \
            best[j] = get(type, x, base + j);                                                      \
            where[j] = 0;                                                                          \
        }                                                                                          \
        for (int64_t i = 1; i < lanes.n; i++)                                                      \
            for (int64_t j = 0; j < m; j++) {                                                      \
                number v = get(type, x, base + i * lanes.inner + j);                               \
                if ((how.least ? v < best[j] : v > best[j]) || (how.last && v == best[j])) {       \
                    best[j] = v;                                                                   \
                    where[j] = i;                                                                  \
                }                                                                                  \
            }                                                                                      \
    }

ARG_BLOCK(arg_float, double, mpl_get)
ARG_BLOCK(arg_int, int64_t, mpl_get_ordered)

static mpl_status arg(const mpl_op_call *call, bool least)
{
    const mpl_tensor *in = &call->in[0];
    mpl_lanes lanes = mpl_lanes_of(&in->shape, mpl_axis_of(call, 0, in->shape.rank));
    arg_mode how = {least, mpl_attr_int(call->graph, call->op, MPL_ATTR_select_last_index, 0) != 0};
    int64_t *where = call->out[0].data;

    if (mpl_count(&in->shape) == 0)
        return MPL_OK;
    for (int64_t o = 0; o < lanes.outer; o++)
        for (int64_t j = 0, m; j < lanes.inner; j += m, where += m) {
            int64_t base = o * lanes.n * lanes.inner + j;

            m = lanes.inner - j < MPL_BLOCK ? lanes.inner - j : MPL_BLOCK;
            if (mpl_type_in(in->type, MPL_SET_FLOAT)) {
                MPL_FOR_FLOAT(in->type, arg_float, in->data, base, lanes, m, how, where)
            } else {
                MPL_FOR_INT(in->type, arg_int, in->data, base, lanes, m, how, where)
            }
        }
    return MPL_OK;
}

mpl_status mpl_eval_arg_max(mpl_ctx *ctx, const mpl_op_call *call)
{
    (void)ctx;
    return arg(call, false);
}

mpl_status mpl_eval_arg_min(mpl_ctx *ctx, const mpl_op_call *call)
{
    (void)ctx;
    return arg(call, true);
}

/* ---- cumsum, cumprod ---- */

typedef struct cumsum_mode {
    bool exclusive, reverse, product;
} cumsum_mode;

/* Sums and products in double, or in int64 modulo 2^64. */
#define CUMSUM_BLOCK(name, number, get, put, plus, times)                                          \
    MPL_INLINE void name(mpl_type type, const void *x, void *y, int64_t base, mpl_lanes lanes,     \
                         int64_t m, cumsum_mode how)                                               \
    {                                                                                              \
        number sum[MPL_BLOCK];                                                                     \
                                                                                                   \
        for (int64_t j = 0; j < m; j++)                                                            \
            sum[j] = how.product;                                                                  \
        for (int64_t i = 0; i < lanes.n; i++)                                                      \
            for (int64_t j = 0; j < m; j++) {                                                      \
                int64_t at = base + (how.reverse ? lanes.n - 1 - i : i) * lanes.inner + j;         \
                number before = sum[j];                                                            \
                number v = get(type, x, at);                                                       \
                sum[j] = how.product ? times(before, v) : plus(before, v);                         \
                put(type, y, at, how.exclusive ? before : sum[j]);                                 \
            }                                                                                      \
    }
#define PLUS(a, b)      ((a) + (b))
#define TIMES(a, b)     ((a) * (b))
#define INT_PLUS(a, b)  ((int64_t)((uint64_t)(a) + (uint64_t)(b)))
#define INT_TIMES(a, b) ((int64_t)((uint64_t)(a) * (uint64_t)(b)))

CUMSUM_BLOCK(cumsum_float, double, mpl_get, mpl_put, PLUS, TIMES)
CUMSUM_BLOCK(cumsum_int, int64_t, mpl_get_int, mpl_put_int, INT_PLUS, INT_TIMES)

static mpl_status cumulate(const mpl_op_call *call, bool product)
{
    const mpl_tensor *in = &call->in[0];
    mpl_lanes lanes = mpl_lanes_of(&in->shape, mpl_axis_of(call, 0, in->shape.rank));
    cumsum_mode how = {mpl_attr_int(call->graph, call->op, MPL_ATTR_exclusive, 0) != 0,
                       mpl_attr_int(call->graph, call->op, MPL_ATTR_reverse, 0) != 0, product};
    void *y = call->out[0].data;

    if (mpl_count(&in->shape) == 0)
        return MPL_OK;
    for (int64_t o = 0; o < lanes.outer; o++)
        for (int64_t j = 0, m; j < lanes.inner; j += m) {
            int64_t base = o * lanes.n * lanes.inner + j;

            m = lanes.inner - j < MPL_BLOCK ? lanes.inner - j : MPL_BLOCK;
            if (mpl_type_in(in->type, MPL_SET_FLOAT)) {
                MPL_FOR_FLOAT(in->type, cumsum_float, in->data, y, base, lanes, m, how)
            } else {
                MPL_FOR_INT(in->type, cumsum_int, in->data, y, base, lanes, m, how)
            }
        }
    return MPL_OK;
}

mpl_status mpl_eval_cumsum(mpl_ctx *ctx, const mpl_op_call *call)
{
    (void)ctx;
    return cumulate(call, false);
}

mpl_status mpl_eval_cumprod(mpl_ctx *ctx, const mpl_op_call *call)
{
    (void)ctx;
    return cumulate(call, true);
}

/* ---- top_k ---- */

/* One lane. The k best so far form a heap of indices in the output; the worst is at the root. */
typedef struct lane {
    const void *x;
    int64_t *heap;      /* element i at heap[i * step] */
    int64_t base, step; /* of the input's lane; step applies to both */
    bool largest;
} lane;

/* Whether element i precedes j in the result; ties go by index, NaN counts as the largest
 * number. */
MPL_INLINE bool better(mpl_type type, const lane *l, int64_t i, int64_t j)
{
    if (mpl_type_in(type, MPL_SET_FLOAT)) {
        double a = mpl_get(type, l->x, l->base + i * l->step),
               b = mpl_get(type, l->x, l->base + j * l->step);
        bool above = a > b || (a != a && b == b), below = a < b || (b != b && a == a);

        return above || below ? above == l->largest : i < j;
    }
    int64_t a = mpl_get_ordered(type, l->x, l->base + i * l->step),
            b = mpl_get_ordered(type, l->x, l->base + j * l->step);

    return a != b ? (a > b) == l->largest : i < j;
}

/* Sifts the root index down until no child is worse. */
MPL_INLINE void sink(mpl_type type, const lane *l, int64_t root, int64_t n)
{
    int64_t item = l->heap[root * l->step];

    for (int64_t child; (child = 2 * root + 1) < n; root = child) {
        if (child + 1 < n &&
            better(type, l, l->heap[child * l->step], l->heap[(child + 1) * l->step]))
            child++;
        if (better(type, l, l->heap[child * l->step], item))
            break;
        l->heap[root * l->step] = l->heap[child * l->step];
    }
    l->heap[root * l->step] = item;
}

/* O(n log k). */
MPL_INLINE void top_k_lane(mpl_type type, const lane *l, int64_t n, int64_t k, void *values,
                           int64_t at)
{
    for (int64_t i = 0; i < k; i++)
        l->heap[i * l->step] = i;
    for (int64_t root = k / 2; root-- > 0;)
        sink(type, l, root, k);
    for (int64_t i = k; i < n; i++)
        if (better(type, l, i, l->heap[0])) {
            l->heap[0] = i;
            sink(type, l, 0, k);
        }
    for (int64_t left = k - 1; left > 0; left--) { /* move the worst remaining to the end */
        int64_t worst = l->heap[0];

        l->heap[0] = l->heap[left * l->step];
        l->heap[left * l->step] = worst;
        sink(type, l, 0, left);
    }
    for (int64_t i = 0; i < k; i++) {
        int64_t from = l->base + l->heap[i * l->step] * l->step;

        if (mpl_type_in(type, MPL_SET_FLOAT))
            mpl_put(type, values, at + i * l->step, mpl_get(type, l->x, from));
        else
            mpl_put_int(type, values, at + i * l->step, mpl_get_int(type, l->x, from));
    }
}

static void top_k_of(mpl_type type, const lane *l, int64_t n, int64_t k, void *values, int64_t at)
{
    if (mpl_type_in(type, MPL_SET_FLOAT)) {
        MPL_FOR_FLOAT(type, top_k_lane, l, n, k, values, at)
    } else {
        MPL_FOR_INT(type, top_k_lane, l, n, k, values, at)
    }
}

mpl_status mpl_eval_top_k(mpl_ctx *ctx, const mpl_op_call *call)
{
    const mpl_tensor *in = &call->in[0];
    uint32_t axis = mpl_axis_of(call, -1, in->shape.rank);
    mpl_lanes lanes = mpl_lanes_of(&in->shape, axis);
    int64_t k = call->out[0].shape.dim[axis];
    bool largest = mpl_attr_int(call->graph, call->op, MPL_ATTR_largest, 1) != 0;

    (void)ctx;
    if (mpl_count(&call->out[0].shape) == 0)
        return MPL_OK;
    for (int64_t o = 0; o < lanes.outer; o++)
        for (int64_t j = 0; j < lanes.inner; j++) {
            int64_t at = o * k * lanes.inner + j;
            lane l = {in->data, (int64_t *)call->out[1].data + at, o * lanes.n * lanes.inner + j,
                      lanes.inner, largest};

            top_k_of(in->type, &l, lanes.n, k, call->out[0].data, at);
        }
    return MPL_OK;
}
