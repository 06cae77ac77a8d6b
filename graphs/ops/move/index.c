/* index.c -- gather, scatter and one_hot: move elements at positions given by data.
 *
 * Each index is checked before use, so data cannot cause out-of-bounds access. */
#include "graphs/ops/ops_priv.h"

/* Index i of `indices` for an axis of `dim` elements; negative ones count from the end. */
static inline mpl_status index_at(mpl_ctx *ctx, const mpl_tensor *indices, int64_t i, int64_t dim,
                                  int64_t *out)
{
    int64_t index = mpl_get_int(indices->type, indices->data, i);

    if (index < -dim || index >= dim)
        return MPL_REFUSE(ctx, "index %" PRId64 " outside [%" PRId64 ",%" PRId64 "]", index, -dim,
                          dim - 1);
    *out = index < 0 ? index + dim : index;
    return MPL_OK;
}

/* ---- gather ---- */

mpl_status mpl_shape_gather(mpl_ctx *ctx, const mpl_shape_call *call)
{
    const mpl_shape *in = call->in_shape[0], *indices = call->in_shape[1];
    mpl_shape *to = &call->out_shape[0];
    uint32_t axis;

    MPL_PASS(mpl_check_type(ctx, call, 1, MPL_SET_INDEX));
    MPL_PASS(mpl_axis_attr(ctx, call, 0, in->rank, &axis));
    if (in->rank - 1 + indices->rank > MPL_MAX_RANK)
        return MPL_REFUSE(ctx, "the output has %u dims; at most %d are supported",
                          in->rank - 1 + indices->rank, MPL_MAX_RANK);
    to->rank = 0;
    for (uint32_t i = 0; i < axis; i++)
        to->dim[to->rank++] = in->dim[i];
    for (uint32_t i = 0; i < indices->rank; i++)
        to->dim[to->rank++] = indices->dim[i];
    for (uint32_t i = axis + 1; i < in->rank; i++)
        to->dim[to->rank++] = in->dim[i];
    call->out_type[0] = call->in_type[0];
    return MPL_OK;
}

mpl_status mpl_eval_gather(mpl_ctx *ctx, const mpl_op_call *call)
{
    const mpl_shape *in = &call->in[0].shape;
    int64_t outer, n = mpl_count(&call->in[1].shape), at = 0;
    size_t row;
    char *to = call->out[0].data;
    uint32_t axis = mpl_axis_of(call, 0, in->rank);

    if (mpl_count(&call->out[0].shape) == 0)
        return MPL_OK;
    outer = mpl_count_dims(in, 0, axis);
    row = (size_t)mpl_count_dims(in, axis + 1, in->rank) * mpl_type_bytes(call->in[0].type);
    for (int64_t i = 0; i < outer; i++)
        for (int64_t j = 0; j < n; j++, to += row) {
            MPL_PASS(index_at(ctx, &call->in[1], j, in->dim[axis], &at));
            memcpy(to, (const char *)call->in[0].data + (size_t)(i * in->dim[axis] + at) * row,
                   row);
        }
    return MPL_OK;
}

/* Checks dims of indices against those of data, except along one axis. */
static mpl_status check_within(mpl_ctx *ctx, const mpl_shape *indices, const mpl_shape *data,
                               uint32_t axis)
{
    char text[2][200];

    if (indices->rank != data->rank)
        return MPL_REFUSE(ctx, "indices have %u dims, the data %u; they must agree", indices->rank,
                          data->rank);
    for (uint32_t i = 0; i < data->rank; i++)
        if (i != axis && indices->dim[i] > data->dim[i])
            return MPL_REFUSE(ctx, "indices of dims %s pass data of dims %s beside axis %u",
                              mpl_shape_text(indices, text[0]), mpl_shape_text(data, text[1]),
                              axis);
    return MPL_OK;
}

mpl_status mpl_shape_gather_elements(mpl_ctx *ctx, const mpl_shape_call *call)
{
    uint32_t axis;

    MPL_PASS(mpl_check_type(ctx, call, 1, MPL_SET_INDEX));
    MPL_PASS(mpl_axis_attr(ctx, call, 0, call->in_shape[0]->rank, &axis));
    MPL_PASS(check_within(ctx, call->in_shape[1], call->in_shape[0], axis));
    call->out_shape[0] = *call->in_shape[1];
    call->out_type[0] = call->in_type[0];
    return MPL_OK;
}

mpl_status mpl_eval_gather_elements(mpl_ctx *ctx, const mpl_op_call *call)
{
    const mpl_shape *in = &call->in[0].shape, *indices = &call->in[1].shape;
    int64_t index[MPL_MAX_RANK] = {0}, stride[1][MPL_MAX_RANK], along, base = 0, i = 0, at = 0;
    uint32_t axis, bytes = mpl_type_bytes(call->in[0].type);

    axis = mpl_axis_of(call, 0, in->rank);
    if (mpl_count(indices) == 0)
        return MPL_OK;
    mpl_strides(in, stride[0]);
    along = stride[0][axis];
    stride[0][axis] = 0; /* the index gives the position along the axis; base steps the others */
    do {
        MPL_PASS(index_at(ctx, &call->in[1], i, in->dim[axis], &at));
        memcpy((char *)call->out[0].data + i * bytes,
               (const char *)call->in[0].data + (base + at * along) * bytes, bytes);
        i++;
    } while (mpl_step(indices->dim, indices->rank, index, 1, (const int64_t(*)[MPL_MAX_RANK])stride,
                      &base));
    return MPL_OK;
}

/* Row of `data` addressed by tuple `row` (n indices, for axes from `first` on), as an offset in the
 * batch. [row] */
static mpl_status tuple_at(mpl_ctx *ctx, const mpl_tensor *indices, int64_t row,
                           const mpl_shape *data, uint32_t first, uint32_t n, int64_t *out)
{
    int64_t at = 0, index = 0;

    for (uint32_t i = 0; i < n; i++) {
        MPL_PASS(index_at(ctx, indices, row * n + i, data->dim[first + i], &index));
        at = at * data->dim[first + i] + index;
    }
    *out = at;
    return MPL_OK;
}

/* Number of data axes, from `first` on, that a tuple addresses. */
static mpl_status tuple_length(mpl_ctx *ctx, const mpl_shape *indices, const mpl_shape *data,
                               uint32_t first, uint32_t *n)
{
    int64_t last = indices->dim[indices->rank - 1];

    if (last < 1 || last > (int64_t)(data->rank - first))
        return MPL_REFUSE(ctx, "indices' last dim is %" PRId64 "; it must be from 1 to %u", last,
                          data->rank - first);
    *n = (uint32_t)last;
    return MPL_OK;
}

mpl_status mpl_shape_gather_nd(mpl_ctx *ctx, const mpl_shape_call *call)
{
    const mpl_shape *in = call->in_shape[0], *indices = call->in_shape[1];
    int64_t batch = mpl_attr_int(call->graph, call->op, MPL_ATTR_batch_dims, 0);
    mpl_shape *to = &call->out_shape[0];
    uint32_t n = 0;

    MPL_PASS(mpl_check_type(ctx, call, 1, MPL_SET_INDEX));
    MPL_PASS(mpl_check_rank(ctx, call, 0, 1, MPL_MAX_RANK));
    MPL_PASS(mpl_check_rank(ctx, call, 1, 1, MPL_MAX_RANK));
    if (batch < 0 || batch >= (int64_t)in->rank || batch >= (int64_t)indices->rank)
        return MPL_REFUSE(ctx, "batch_dims %" PRId64 " is not below the dims of data and indices",
                          batch);
    for (uint32_t i = 0; i < batch; i++)
        if (in->dim[i] != indices->dim[i])
            return MPL_REFUSE(ctx, "batch dim %u is %" PRId64 " in data, %" PRId64 " in indices", i,
                              in->dim[i], indices->dim[i]);
    MPL_PASS(tuple_length(ctx, indices, in, (uint32_t)batch, &n));
    if (indices->rank - 1 + in->rank - (uint32_t)batch - n > MPL_MAX_RANK)
        return MPL_REFUSE(ctx, "the output has more than %d dims", MPL_MAX_RANK);
    to->rank = 0;
    for (uint32_t i = 0; i + 1 < indices->rank; i++)
        to->dim[to->rank++] = indices->dim[i];
    for (uint32_t i = (uint32_t)batch + n; i < in->rank; i++)
        to->dim[to->rank++] = in->dim[i];
    call->out_type[0] = call->in_type[0];
    return MPL_OK;
}

mpl_status mpl_eval_gather_nd(mpl_ctx *ctx, const mpl_op_call *call)
{
    const mpl_shape *in = &call->in[0].shape, *indices = &call->in[1].shape;
    uint32_t batch = (uint32_t)mpl_attr_int(call->graph, call->op, MPL_ATTR_batch_dims, 0), n;
    int64_t tuples, per_batch, rows, at = 0;
    size_t row;

    if (mpl_count(&call->out[0].shape) == 0)
        return MPL_OK;
    n = (uint32_t)indices->dim[indices->rank - 1];
    tuples = mpl_count_dims(indices, 0, indices->rank - 1);
    per_batch = mpl_count_dims(indices, batch, indices->rank - 1);
    rows = mpl_count_dims(in, batch, batch + n);
    row = (size_t)mpl_count_dims(in, batch + n, in->rank) * mpl_type_bytes(call->in[0].type);
    for (int64_t i = 0; i < tuples; i++) {
        MPL_PASS(tuple_at(ctx, &call->in[1], i, in, batch, n, &at));
        memcpy((char *)call->out[0].data + (size_t)i * row,
               (const char *)call->in[0].data + (size_t)(i / per_batch * rows + at) * row, row);
    }
    return MPL_OK;
}

/* ---- scatter ---- */

typedef enum reduction { PUT, ADD, MUL, MAX, MIN, N_REDUCTIONS } reduction;

static reduction reduction_of(const mpl_graph *g, mpl_op op)
{
    static const char *const names[N_REDUCTIONS] = {"none", "add", "mul", "max", "min"};

    return (reduction)mpl_choice_of(g, op, MPL_ATTR_reduction, names, N_REDUCTIONS);
}

static mpl_status check_scatter(mpl_ctx *ctx, const mpl_shape_call *call)
{
    reduction how = reduction_of(call->graph, call->op);

    MPL_PASS(mpl_check_type(ctx, call, 1, MPL_SET_INDEX));
    MPL_PASS(mpl_check_same_type(ctx, call, 2, 0));
    if (how == N_REDUCTIONS)
        return MPL_REFUSE(ctx, "reduction '%.40s' is none of none, add, mul, max, min",
                          mpl_attr_text(call->graph, call->op, MPL_ATTR_reduction, ""));
    if (how != PUT)
        MPL_PASS(mpl_check_type(ctx, call, 0, MPL_SET_NUMBER));
    return mpl_like_input(call, 0, call->in_type[0]);
}

mpl_status mpl_shape_scatter_elements(mpl_ctx *ctx, const mpl_shape_call *call)
{
    uint32_t axis;
    char text[2][200];

    MPL_PASS(check_scatter(ctx, call));
    MPL_PASS(mpl_axis_attr(ctx, call, 0, call->in_shape[0]->rank, &axis));
    MPL_PASS(check_within(ctx, call->in_shape[1], call->in_shape[0], axis));
    if (!mpl_shape_equal(call->in_shape[1], call->in_shape[2]))
        return MPL_REFUSE(ctx, "indices have dims %s, updates %s; they must be the same",
                          mpl_shape_text(call->in_shape[1], text[0]),
                          mpl_shape_text(call->in_shape[2], text[1]));
    return MPL_OK;
}

mpl_status mpl_shape_scatter_nd(mpl_ctx *ctx, const mpl_shape_call *call)
{
    const mpl_shape *in = call->in_shape[0], *indices = call->in_shape[1];
    mpl_shape want = *indices;
    uint32_t n = 0;
    char text[2][200];

    MPL_PASS(check_scatter(ctx, call));
    MPL_PASS(mpl_check_rank(ctx, call, 0, 1, MPL_MAX_RANK));
    MPL_PASS(mpl_check_rank(ctx, call, 1, 1, MPL_MAX_RANK));
    MPL_PASS(tuple_length(ctx, indices, in, 0, &n));
    if (indices->rank - 1 + in->rank - n > MPL_MAX_RANK)
        return MPL_REFUSE(ctx, "updates would have more than %d dims", MPL_MAX_RANK);
    want.rank = indices->rank - 1;
    for (uint32_t i = n; i < in->rank; i++)
        want.dim[want.rank++] = in->dim[i];
    if (!mpl_shape_equal(&want, call->in_shape[2]))
        return MPL_REFUSE(ctx, "updates have dims %s; they must have %s",
                          mpl_shape_text(call->in_shape[2], text[0]),
                          mpl_shape_text(&want, text[1]));
    return MPL_OK;
}

/* Reduces from[j] into to[i]. */
MPL_INLINE void reduce_float(mpl_type type, reduction how, void *to, int64_t i, const void *from,
                             int64_t j)
{
    double a = mpl_get(type, to, i), b = mpl_get(type, from, j);

    mpl_put(type, to, i,
            how == ADD   ? a + b
            : how == MUL ? a * b
            : how == MAX ? (b > a ? b : a)
                         : (b < a ? b : a));
}
MPL_INLINE void reduce_int(mpl_type type, reduction how, void *to, int64_t i, const void *from,
                           int64_t j)
{
    int64_t a = mpl_get_int(type, to, i), b = mpl_get_int(type, from, j);
    bool above = mpl_get_ordered(type, from, j) > mpl_get_ordered(type, to, i);
    uint64_t sum = (uint64_t)a + (uint64_t)b, product = (uint64_t)a * (uint64_t)b;

    mpl_put_int(type, to, i,
                how == ADD              ? (int64_t)sum
                : how == MUL            ? (int64_t)product
                : (how == MAX) == above ? b
                                        : a);
}

/* Reduces elements [j, j + n) of `from` into [i, i + n) of `to`. */
static void scatter_row(mpl_type type, reduction how, void *to, int64_t i, const void *from,
                        int64_t j, int64_t n)
{
    uint32_t bytes = mpl_type_bytes(type);

    if (how == PUT)
        memcpy((char *)to + i * bytes, (const char *)from + j * bytes, (size_t)n * bytes);
    else if (mpl_type_in(type, MPL_SET_FLOAT))
        for (int64_t k = 0; k < n; k++)
            reduce_float(type, how, to, i + k, from, j + k);
    else
        for (int64_t k = 0; k < n; k++)
            reduce_int(type, how, to, i + k, from, j + k);
}

/* A row of scatter_elements: n indices from element i on, by which elements lie `along` apart; the
 * others are `step` apart. */
typedef struct scatter {
    reduction how;
    int64_t dim, along, step;
} scatter;

static mpl_status scatter_indexed(mpl_ctx *ctx, const mpl_op_call *call, const scatter *s,
                                  int64_t base, int64_t i, int64_t n)
{
    bool words = s->how == PUT && mpl_type_bytes(call->out[0].type) == sizeof(uint32_t);
    uint32_t *to = call->out[0].data;
    const uint32_t *from = call->in[2].data;
    int64_t at = 0;

    for (int64_t j = 0; j < n; j++, base += s->step) {
        MPL_PASS(index_at(ctx, &call->in[1], i + j, s->dim, &at));
        if (words)
            to[base + at * s->along] = from[i + j];
        else
            scatter_row(call->out[0].type, s->how, to, base + at * s->along, from, i + j, 1);
    }
    return MPL_OK;
}

mpl_status mpl_eval_scatter_elements(mpl_ctx *ctx, const mpl_op_call *call)
{
    const mpl_shape *to = &call->out[0].shape, *indices = &call->in[1].shape;
    int64_t index[MPL_MAX_RANK] = {0}, stride[1][MPL_MAX_RANK], base = 0, i = 0, row;
    scatter s = {.how = reduction_of(call->graph, call->op)};
    uint32_t axis;

    MPL_PASS(mpl_eval_copy(ctx, call));
    axis = mpl_axis_of(call, 0, to->rank);
    if (mpl_count(indices) == 0)
        return MPL_OK;
    mpl_strides(to, stride[0]);
    s.dim = to->dim[axis], s.along = stride[0][axis];
    stride[0][axis] = 0;
    s.step = stride[0][to->rank - 1];
    row = indices->dim[to->rank - 1];
    do {
        MPL_PASS(scatter_indexed(ctx, call, &s, base, i, row));
        i += row;
    } while (mpl_step(indices->dim, indices->rank - 1, index, 1,
                      (const int64_t(*)[MPL_MAX_RANK])stride, &base));
    return MPL_OK;
}

mpl_status mpl_eval_scatter_nd(mpl_ctx *ctx, const mpl_op_call *call)
{
    const mpl_shape *to = &call->out[0].shape, *indices = &call->in[1].shape;
    uint32_t n = (uint32_t)indices->dim[indices->rank - 1];
    int64_t row, at = 0;
    reduction how = reduction_of(call->graph, call->op);

    MPL_PASS(mpl_eval_copy(ctx, call));
    if (mpl_count(&call->in[2].shape) == 0)
        return MPL_OK;
    row = mpl_count_dims(to, n, to->rank);
    for (int64_t i = 0; i < mpl_count_dims(indices, 0, indices->rank - 1); i++) {
        MPL_PASS(tuple_at(ctx, &call->in[1], i, to, 0, n, &at));
        scatter_row(call->out[0].type, how, call->out[0].data, at * row, call->in[2].data, i * row,
                    row);
    }
    return MPL_OK;
}

/* ---- one_hot ---- */

mpl_status mpl_shape_one_hot(mpl_ctx *ctx, const mpl_shape_call *call)
{
    const mpl_shape *in = call->in_shape[0], *values = call->in_shape[1];
    int64_t depth = mpl_attr_int(call->graph, call->op, MPL_ATTR_depth, 0);
    uint32_t axis;

    MPL_PASS(mpl_check_type(ctx, call, 0, MPL_SET_NUMBER));
    if (values->rank != 1 || values->dim[0] != 2)
        return MPL_REFUSE(ctx, "values must be two: off and on");
    if (depth < 1)
        return MPL_REFUSE(ctx, "depth %" PRId64 " is missing or not positive", depth);
    if (in->rank == MPL_MAX_RANK)
        return MPL_REFUSE(ctx, "the output has more than %d dims", MPL_MAX_RANK);
    MPL_PASS(mpl_axis_attr(ctx, call, -1, in->rank + 1, &axis));
    call->out_shape[0].rank = in->rank + 1;
    for (uint32_t i = 0, from = 0; i <= in->rank; i++)
        call->out_shape[0].dim[i] = i == axis ? depth : in->dim[from++];
    call->out_type[0] = call->in_type[1];
    return MPL_OK;
}

/* Position that element i switches on; -1 if outside [-depth, depth). */
static int64_t hot_at(const mpl_tensor *in, int64_t i, int64_t depth)
{
    int64_t at;

    if (mpl_type_in(in->type, MPL_SET_FLOAT)) {
        double x = mpl_get(in->type, in->data, i);

        if (!(x >= -0x1p62 && x < 0x1p62))
            return -1;
        at = (int64_t)x;
    } else {
        at = mpl_get_int(in->type, in->data, i);
    }
    at += at < 0 ? depth : 0;
    return at >= 0 && at < depth ? at : -1;
}

mpl_status mpl_eval_one_hot(mpl_ctx *ctx, const mpl_op_call *call)
{
    const mpl_shape *in = &call->in[0].shape, *to = &call->out[0].shape;
    uint32_t axis, bytes = mpl_type_bytes(call->out[0].type);
    const char *off = call->in[1].data, *on = off + bytes;
    int64_t depth, inner;

    (void)ctx;
    axis = mpl_axis_of(call, -1, to->rank);
    if (mpl_count(to) == 0)
        return MPL_OK;
    depth = to->dim[axis];
    inner = mpl_count_dims(to, axis + 1, to->rank);
    for (int64_t i = 0; i < mpl_count(to); i++)
        memcpy((char *)call->out[0].data + i * bytes, off, bytes);
    for (int64_t i = 0; i < mpl_count(in); i++) {
        int64_t at = hot_at(&call->in[0], i, depth);

        if (at >= 0)
            memcpy((char *)call->out[0].data +
                       ((i / inner * depth + at) * inner + i % inner) * bytes,
                   on, bytes);
    }
    return MPL_OK;
}
