/* move.c -- concat, split, slice, transpose, expand, tile, depth_to_space, space_to_depth, trilu
 * and reverse_sequence: move elements of any type by their size. */
#include "graphs/ops/move/move_priv.h"

/* Copies one row of n elements of a box. Strides in elements. */
static void move_row(char *to, int64_t to_stride, const char *from, int64_t from_stride, int64_t n,
                     uint32_t bytes)
{
    if (to_stride == 1 && from_stride == 1) {
        /* They may overlap under a wrong plan, which a checked run must detect. */
        memmove(to, from, (size_t)n * bytes);
        return;
    }
    to_stride *= bytes, from_stride *= bytes;
    switch (bytes) { /* constant sizes: one load and one store for each copy */
    case 8:
        for (int64_t i = 0; i < n; i++)
            memcpy(to + i * to_stride, from + i * from_stride, 8);
        break;
    case 4:
        for (int64_t i = 0; i < n; i++)
            memcpy(to + i * to_stride, from + i * from_stride, 4);
        break;
    case 2:
        for (int64_t i = 0; i < n; i++)
            memcpy(to + i * to_stride, from + i * from_stride, 2);
        break;
    default:
        for (int64_t i = 0; i < n; i++)
            to[i * to_stride] = from[i * from_stride];
    }
}

void mpl_move(const mpl_box *box, uint32_t bytes, void *to, const void *from)
{
    int64_t index[MPL_MAX_RANK] = {0}, offset[2] = {0, 0}, stride[2][MPL_MAX_RANK];
    uint32_t outer = box->rank > 0 ? box->rank - 1 : 0;
    int64_t n = box->rank > 0 ? box->dim[outer] : 1;

    for (uint32_t i = 0; i < box->rank; i++)
        if (box->dim[i] == 0)
            return;
    memcpy(stride[0], box->to_stride, sizeof stride[0]);
    memcpy(stride[1], box->from_stride, sizeof stride[1]);
    do
        move_row((char *)to + offset[0] * bytes, box->rank > 0 ? stride[0][outer] : 1,
                 (const char *)from + offset[1] * bytes, box->rank > 0 ? stride[1][outer] : 1, n,
                 bytes);
    while (mpl_step(box->dim, outer, index, 2, (const int64_t(*)[MPL_MAX_RANK])stride, offset));
}

static bool add_dims(int64_t a, int64_t b, int64_t *sum)
{
    if (b > 0 ? a > INT64_MAX - b : a < INT64_MIN - b)
        return false;
    *sum = a + b;
    return true;
}

/* ---- concat and split ---- */

mpl_status mpl_shape_concat(mpl_ctx *ctx, const mpl_shape_call *call)
{
    mpl_shape *to = &call->out_shape[0], other;
    uint32_t axis;
    mpl_attr attr;
    char text[2][200];

    if (!mpl_attr_get(call->graph, call->op, MPL_ATTR_axis, &attr))
        return MPL_REFUSE(ctx, "attribute 'axis' is missing");
    mpl_like_input(call, 0, call->in_type[0]);
    MPL_PASS(mpl_axis(ctx, attr.ints[0], to->rank, &axis));
    for (uint32_t i = 1; i < call->n_in; i++) {
        if (call->in_shape[i] == NULL)
            return MPL_REFUSE(ctx, "input %u is missing", i);
        MPL_PASS(mpl_check_same_type(ctx, call, i, 0));
        other = *call->in_shape[i];
        if (other.rank == to->rank)
            other.dim[axis] = to->dim[axis];
        if (!mpl_shape_equal(&other, to))
            return MPL_REFUSE(ctx, "inputs of dims %s and %s differ in more than axis %u",
                              mpl_shape_text(call->in_shape[0], text[0]),
                              mpl_shape_text(call->in_shape[i], text[1]), axis);
        if (!add_dims(to->dim[axis], call->in_shape[i]->dim[axis], &to->dim[axis]))
            return MPL_REFUSE(ctx, "axis %u of the output passes 2^63", axis);
    }
    return MPL_OK;
}

mpl_status mpl_eval_concat(mpl_ctx *ctx, const mpl_op_call *call)
{
    const mpl_shape *to = &call->out[0].shape;
    uint32_t axis, bytes = mpl_type_bytes(call->out[0].type);
    char *at = call->out[0].data;

    (void)ctx;
    axis = mpl_axis_of(call, 0, to->rank);
    for (uint32_t i = 0; i < call->n_in; i++) {
        int64_t row = mpl_count_dims(&call->in[i].shape, axis, to->rank);
        mpl_box box = {2,
                       {mpl_count_dims(to, 0, axis), row},
                       {mpl_count_dims(to, axis, to->rank), 1},
                       {row, 1}};

        mpl_move(&box, bytes, at, call->in[i].data);
        at += row * bytes;
    }
    return MPL_OK;
}

mpl_status mpl_shape_split(mpl_ctx *ctx, const mpl_shape_call *call)
{
    const mpl_shape *in = call->in_shape[0];
    uint32_t axis, n;
    const int64_t *size = mpl_attr_ints(call->graph, call->op, MPL_ATTR_split, &n);
    int64_t left, part;

    MPL_PASS(mpl_axis_attr(ctx, call, 0, in->rank, &axis));
    if (size != NULL && n != call->n_out)
        return MPL_REFUSE(ctx, "split has %u sizes for %u outputs", n, call->n_out);
    left = in->dim[axis];
    part = left / call->n_out + (left % call->n_out != 0); /* the last part may be smaller */
    for (uint32_t i = 0; i < call->n_out; i++) {
        int64_t dim = size != NULL ? size[i] : i + 1 < call->n_out ? part : left;

        if (dim < 0 || dim > left)
            return MPL_REFUSE(ctx,
                              "axis %u of %" PRId64
                              " elements cannot be split into %u outputs: no %" PRId64
                              " elements are left for output %u",
                              axis, in->dim[axis], call->n_out, dim, i);
        mpl_like_input(call, i, call->in_type[0]);
        call->out_shape[i].dim[axis] = dim;
        left -= dim;
    }
    if (left != 0)
        return MPL_REFUSE(ctx, "the sizes of split leave %" PRId64 " of %" PRId64 " elements over",
                          left, in->dim[axis]);
    return MPL_OK;
}

mpl_status mpl_eval_split(mpl_ctx *ctx, const mpl_op_call *call)
{
    const mpl_shape *in = &call->in[0].shape;
    uint32_t axis, bytes = mpl_type_bytes(call->in[0].type);
    const char *at = call->in[0].data;

    (void)ctx;
    axis = mpl_axis_of(call, 0, in->rank);
    for (uint32_t i = 0; i < call->n_out; i++) {
        int64_t row = mpl_count_dims(&call->out[i].shape, axis, in->rank);
        mpl_box box = {2,
                       {mpl_count_dims(in, 0, axis), row},
                       {row, 1},
                       {mpl_count_dims(in, axis, in->rank), 1}};

        if (call->out[i].data != NULL)
            mpl_move(&box, bytes, call->out[i].data, at);
        at += row * bytes;
    }
    return MPL_OK;
}

/* ---- slice ---- */

/* Number of indices start, start + step, .. before `end`; clamps *start to the axis. */
static int64_t slice_axis(int64_t dim, int64_t *start, int64_t end, int64_t step)
{
    if (step > 0) {
        *start = mpl_clamp_index(*start, dim, 0, dim);
        end = mpl_clamp_index(end, dim, 0, dim);
        return end > *start ? (end - *start - 1) / step + 1 : 0;
    }
    *start = mpl_clamp_index(*start, dim, 0, dim > 0 ? dim - 1 : 0);
    end = mpl_clamp_index(end, dim, -1, dim - 1);
    return *start > end && dim > 0
               ? (int64_t)((uint64_t)(*start - end - 1) / (0 - (uint64_t)step)) + 1
               : 0;
}

mpl_status mpl_slice_of(mpl_ctx *ctx, const mpl_graph *g, mpl_op op, const mpl_shape *in,
                        mpl_shape *to, int64_t start[MPL_MAX_RANK], int64_t step[MPL_MAX_RANK])
{
    uint32_t n, n_ends, n_axes, n_steps, seen = 0;
    const int64_t *starts = mpl_attr_ints(g, op, MPL_ATTR_starts, &n);
    const int64_t *ends = mpl_attr_ints(g, op, MPL_ATTR_ends, &n_ends);
    const int64_t *axes = mpl_attr_ints(g, op, MPL_ATTR_axes, &n_axes);
    const int64_t *steps = mpl_attr_ints(g, op, MPL_ATTR_steps, &n_steps);

    *to = *in;
    for (uint32_t i = 0; i < in->rank; i++)
        start[i] = 0, step[i] = 1;
    if (starts == NULL || ends == NULL)
        return MPL_REFUSE(ctx, "attributes 'starts' and 'ends' must be there");
    if (n_ends != n || (axes != NULL && n_axes != n) || (steps != NULL && n_steps != n) ||
        n > in->rank)
        return MPL_REFUSE(ctx, "starts, ends, axes and steps must be of one length, at most %u",
                          in->rank);
    for (uint32_t i = 0; i < n; i++) {
        uint32_t axis;

        MPL_PASS(mpl_axis(ctx, axes != NULL ? axes[i] : (int64_t)i, in->rank, &axis));
        if ((seen >> axis & 1) != 0 || (steps != NULL && steps[i] == 0))
            return MPL_REFUSE(ctx, "axis %u is given twice or has step 0", axis);
        seen |= 1u << axis;
        start[axis] = starts[i];
        step[axis] = steps != NULL ? steps[i] : 1;
        to->dim[axis] = slice_axis(in->dim[axis], &start[axis], ends[i], step[axis]);
    }
    return MPL_OK;
}

mpl_status mpl_slice_starts(mpl_ctx *ctx, const mpl_graph *g, mpl_op op, const mpl_shape *in,
                            int64_t start[MPL_MAX_RANK], bool *steps)
{
    int64_t step[MPL_MAX_RANK];
    mpl_shape to;

    MPL_PASS(mpl_slice_of(ctx, g, op, in, &to, start, step));
    *steps = false;
    for (uint32_t i = 0; i < in->rank; i++)
        *steps = *steps || (step[i] != 1 && to.dim[i] > 1);
    return MPL_OK;
}

mpl_status mpl_shape_slice(mpl_ctx *ctx, const mpl_shape_call *call)
{
    int64_t start[MPL_MAX_RANK], step[MPL_MAX_RANK];

    call->out_type[0] = call->in_type[0];
    return mpl_slice_of(ctx, call->graph, call->op, call->in_shape[0], &call->out_shape[0], start,
                        step);
}

mpl_status mpl_eval_slice(mpl_ctx *ctx, const mpl_op_call *call)
{
    mpl_shape to;
    mpl_box box;
    int64_t start[MPL_MAX_RANK], step[MPL_MAX_RANK], stride[MPL_MAX_RANK], base = 0;
    uint32_t bytes = mpl_type_bytes(call->in[0].type);

    MPL_PASS(mpl_slice_of(ctx, call->graph, call->op, &call->in[0].shape, &to, start, step));
    if (mpl_count(&to) == 0)
        return MPL_OK;
    box.rank = to.rank;
    memcpy(box.dim, to.dim, sizeof box.dim);
    mpl_strides(&to, box.to_stride);
    mpl_strides(&call->in[0].shape, stride);
    for (uint32_t i = 0; i < to.rank; i++) {
        base += start[i] * stride[i];
        /* a huge stride, never used, must not overflow */
        box.from_stride[i] = to.dim[i] > 1 ? step[i] * stride[i] : 1;
    }
    mpl_move(&box, bytes, call->out[0].data, (const char *)call->in[0].data + base * bytes);
    return MPL_OK;
}

/* ---- transpose, expand, tile ---- */

uint32_t mpl_axis_from(const mpl_graph *g, mpl_op op, uint32_t rank, uint32_t i)
{
    uint32_t n;
    const int64_t *perm = mpl_attr_ints(g, op, MPL_ATTR_perm, &n);

    return perm != NULL ? (uint32_t)(perm[i] < 0 ? perm[i] + rank : perm[i]) : rank - 1 - i;
}

mpl_status mpl_shape_transpose(mpl_ctx *ctx, const mpl_shape_call *call)
{
    const mpl_shape *in = call->in_shape[0];
    uint32_t n, set;
    const int64_t *perm = mpl_attr_ints(call->graph, call->op, MPL_ATTR_perm, &n);

    if (perm != NULL) {
        if (n != in->rank)
            return MPL_REFUSE(ctx, "perm has %u axes for a tensor of %u dims", n, in->rank);
        MPL_PASS(mpl_axis_set(ctx, perm, n, in->rank, &set));
    }
    call->out_shape[0].rank = in->rank;
    for (uint32_t i = 0; i < in->rank; i++)
        call->out_shape[0].dim[i] = in->dim[mpl_axis_from(call->graph, call->op, in->rank, i)];
    call->out_type[0] = call->in_type[0];
    return MPL_OK;
}

/* A box over all of `to`, with its strides on that side. */
static mpl_box box_of(const mpl_shape *to)
{
    mpl_box box = {.rank = to->rank};

    memcpy(box.dim, to->dim, sizeof box.dim);
    mpl_strides(to, box.to_stride);
    return box;
}

mpl_status mpl_eval_transpose(mpl_ctx *ctx, const mpl_op_call *call)
{
    const mpl_shape *in = &call->in[0].shape;
    mpl_box box = box_of(&call->out[0].shape);
    int64_t stride[MPL_MAX_RANK];

    (void)ctx;
    mpl_strides(in, stride);
    for (uint32_t i = 0; i < in->rank; i++)
        box.from_stride[i] = stride[mpl_axis_from(call->graph, call->op, in->rank, i)];
    mpl_move(&box, mpl_type_bytes(call->in[0].type), call->out[0].data, call->in[0].data);
    return MPL_OK;
}

mpl_status mpl_shape_expand(mpl_ctx *ctx, const mpl_shape_call *call)
{
    mpl_shape want = {.rank = 0};
    mpl_attr shape;

    if (!mpl_attr_get(call->graph, call->op, MPL_ATTR_shape, &shape) || shape.n > MPL_MAX_RANK)
        return MPL_REFUSE(ctx, "attribute 'shape' is missing or has more than %d dims",
                          MPL_MAX_RANK);
    for (; want.rank < shape.n; want.rank++)
        if ((want.dim[want.rank] = shape.ints[want.rank]) < 0)
            return MPL_REFUSE(ctx, "shape[%u] = %" PRId64 " is negative", want.rank,
                              shape.ints[want.rank]);
    MPL_PASS(mpl_broadcast(ctx, call->in_shape[0], &want, &call->out_shape[0]));
    call->out_type[0] = call->in_type[0];
    return MPL_OK;
}

mpl_status mpl_eval_expand(mpl_ctx *ctx, const mpl_op_call *call)
{
    mpl_box box = box_of(&call->out[0].shape);

    (void)ctx;
    mpl_broadcast_strides(&call->in[0].shape, &call->out[0].shape, box.from_stride);
    mpl_move(&box, mpl_type_bytes(call->in[0].type), call->out[0].data, call->in[0].data);
    return MPL_OK;
}

mpl_status mpl_shape_tile(mpl_ctx *ctx, const mpl_shape_call *call)
{
    const mpl_shape *in = call->in_shape[0];
    uint32_t n;
    const int64_t *repeats = mpl_attr_ints(call->graph, call->op, MPL_ATTR_repeats, &n);

    if (n != in->rank)
        return MPL_REFUSE(ctx, "repeats has %u items for a tensor of %u dims", n, in->rank);
    call->out_shape[0].rank = n;
    for (uint32_t i = 0; i < n; i++) {
        uint64_t dim;

        if (repeats[i] < 0 || !mpl_mul_bytes((uint64_t)in->dim[i], (uint64_t)repeats[i], &dim) ||
            dim > INT64_MAX)
            return MPL_REFUSE(ctx, "repeats[%u] = %" PRId64 " is negative or makes more than 2^63",
                              i, repeats[i]);
        call->out_shape[0].dim[i] = (int64_t)dim;
    }
    call->out_type[0] = call->in_type[0];
    return MPL_OK;
}

mpl_status mpl_eval_tile(mpl_ctx *ctx, const mpl_op_call *call)
{
    const mpl_shape *in = &call->in[0].shape, *to = &call->out[0].shape;
    uint32_t bytes = mpl_type_bytes(call->in[0].type);
    int64_t index[MPL_MAX_RANK] = {0}, repeat[MPL_MAX_RANK], stride[1][MPL_MAX_RANK], at = 0;
    mpl_box box = box_of(to);

    (void)ctx;
    if (mpl_count(to) == 0)
        return MPL_OK;
    mpl_strides(in, box.from_stride);
    for (uint32_t i = 0; i < in->rank; i++) {
        box.dim[i] = in->dim[i];
        repeat[i] = to->dim[i] / in->dim[i];
        stride[0][i] = box.to_stride[i] * in->dim[i];
    }
    do
        mpl_move(&box, bytes, (char *)call->out[0].data + at * bytes, call->in[0].data);
    while (mpl_step(repeat, in->rank, index, 1, (const int64_t(*)[MPL_MAX_RANK])stride, &at));
    return MPL_OK;
}

/* ---- depth_to_space, space_to_depth ---- */

static mpl_status block_size(mpl_ctx *ctx, const mpl_shape_call *call, int64_t *block)
{
    MPL_PASS(mpl_check_rank(ctx, call, 0, 4, 4));
    *block = mpl_attr_int(call->graph, call->op, MPL_ATTR_blocksize, 0);
    if (*block < 1 || *block > 1 << 15)
        return MPL_REFUSE(ctx, "blocksize %" PRId64 " is missing or outside [1,2^15]", *block);
    call->out_type[0] = call->in_type[0];
    return MPL_OK;
}

mpl_status mpl_shape_depth_to_space(mpl_ctx *ctx, const mpl_shape_call *call)
{
    const int64_t *in = call->in_shape[0]->dim;
    const char *mode = mpl_attr_text(call->graph, call->op, MPL_ATTR_mode, "DCR");
    int64_t block;

    MPL_PASS(block_size(ctx, call, &block));
    if (strcmp(mode, "DCR") != 0 && strcmp(mode, "CRD") != 0)
        return MPL_REFUSE(ctx, "mode '%.40s' is neither DCR nor CRD", mode);
    if (in[1] % (block * block) != 0)
        return MPL_REFUSE(ctx,
                          "%" PRId64 " channels do not divide by blocksize %" PRId64 " squared",
                          in[1], block);
    if (in[2] > INT64_MAX / block || in[3] > INT64_MAX / block)
        return MPL_REFUSE(ctx, "a dim of the output passes 2^63");
    call->out_shape[0] =
        (mpl_shape){4, {in[0], in[1] / (block * block), in[2] * block, in[3] * block}};
    return MPL_OK;
}

mpl_status mpl_shape_space_to_depth(mpl_ctx *ctx, const mpl_shape_call *call)
{
    const int64_t *in = call->in_shape[0]->dim;
    int64_t block;

    MPL_PASS(block_size(ctx, call, &block));
    if (in[2] % block != 0 || in[3] % block != 0)
        return MPL_REFUSE(ctx,
                          "%" PRId64 " rows of %" PRId64 " do not divide by blocksize %" PRId64,
                          in[2], in[3], block);
    if (in[1] > INT64_MAX / (block * block))
        return MPL_REFUSE(ctx, "a dim of the output passes 2^63");
    call->out_shape[0] =
        (mpl_shape){4, {in[0], in[1] * block * block, in[2] / block, in[3] / block}};
    return MPL_OK;
}

/* Both are a permutation of [batch, row in block, column in block, channel, row, column]: its
 * strides on the depth side (`deep`, where in-block rows and columns are channels) and on the space
 * side. */
static void block_strides(const mpl_shape *deep, int64_t block, bool block_last, int64_t dim[6],
                          int64_t depth[6], int64_t space[6])
{
    int64_t channels = deep->dim[1] / (block * block), rows = deep->dim[2], columns = deep->dim[3];
    int64_t plane = rows * columns, row = columns * block;
    int64_t size[6] = {deep->dim[0], block, block, channels, rows, columns};
    int64_t at_depth[6] = {deep->dim[1] * plane,
                           block_last ? block * plane : block * channels * plane,
                           block_last ? plane : channels * plane,
                           block_last ? block * block * plane : plane,
                           columns,
                           1};
    int64_t at_space[6] = {deep->dim[1] * plane, row, 1, plane * block * block, row * block, block};

    memcpy(dim, size, sizeof size);
    memcpy(depth, at_depth, sizeof at_depth);
    memcpy(space, at_space, sizeof at_space);
}

mpl_status mpl_eval_depth_to_space(mpl_ctx *ctx, const mpl_op_call *call)
{
    mpl_box box = {.rank = 6};
    bool block_last =
        strcmp(mpl_attr_text(call->graph, call->op, MPL_ATTR_mode, "DCR"), "CRD") == 0;

    (void)ctx;
    if (mpl_count(&call->in[0].shape) == 0)
        return MPL_OK;
    block_strides(&call->in[0].shape, mpl_attr_int(call->graph, call->op, MPL_ATTR_blocksize, 1),
                  block_last, box.dim, box.from_stride, box.to_stride);
    mpl_move(&box, mpl_type_bytes(call->in[0].type), call->out[0].data, call->in[0].data);
    return MPL_OK;
}

mpl_status mpl_eval_space_to_depth(mpl_ctx *ctx, const mpl_op_call *call)
{
    mpl_box box = {.rank = 6};

    (void)ctx;
    if (mpl_count(&call->in[0].shape) == 0)
        return MPL_OK;
    block_strides(&call->out[0].shape, mpl_attr_int(call->graph, call->op, MPL_ATTR_blocksize, 1),
                  false, box.dim, box.to_stride, box.from_stride);
    mpl_move(&box, mpl_type_bytes(call->in[0].type), call->out[0].data, call->in[0].data);
    return MPL_OK;
}

/* ---- trilu, reverse_sequence ---- */

mpl_status mpl_shape_trilu(mpl_ctx *ctx, const mpl_shape_call *call)
{
    mpl_like_input(call, 0, call->in_type[0]);
    return mpl_check_rank(ctx, call, 0, 2, MPL_MAX_RANK);
}

mpl_status mpl_eval_trilu(mpl_ctx *ctx, const mpl_op_call *call)
{
    const mpl_shape *shape = &call->in[0].shape;
    int64_t rows = shape->dim[shape->rank - 2], columns = shape->dim[shape->rank - 1];
    int64_t k = mpl_attr_int(call->graph, call->op, MPL_ATTR_k, 0);
    bool upper = mpl_attr_int(call->graph, call->op, MPL_ATTR_upper, 1) != 0, in_place;
    uint32_t bytes = mpl_type_bytes(call->in[0].type);
    size_t row_bytes = (size_t)columns * bytes;

    (void)ctx;
    if (mpl_count(shape) == 0)
        return MPL_OK;
    in_place = call->out[0].data == call->in[0].data;
    k = k > columns ? columns : k < -rows ? -rows : k;
    for (int64_t i = 0; i < mpl_count(shape) / columns; i++) {
        char *to = (char *)call->out[0].data + (size_t)i * row_bytes;
        int64_t cut = i % rows + k + !upper; /* first column kept (upper) or dropped (lower) */
        size_t at = (size_t)(cut < 0 ? 0 : cut > columns ? columns : cut) * bytes;

        if (!in_place)
            memcpy(to, (const char *)call->in[0].data + (size_t)i * row_bytes, row_bytes);
        memset(upper ? to : to + at, 0, upper ? at : row_bytes - at);
    }
    return MPL_OK;
}

mpl_status mpl_shape_reverse_sequence(mpl_ctx *ctx, const mpl_shape_call *call)
{
    int64_t batch = mpl_attr_int(call->graph, call->op, MPL_ATTR_batch_axis, 1);
    int64_t time = mpl_attr_int(call->graph, call->op, MPL_ATTR_time_axis, 0);

    MPL_PASS(mpl_check_rank(ctx, call, 0, 2, MPL_MAX_RANK));
    MPL_PASS(mpl_check_rank(ctx, call, 1, 1, 1));
    MPL_PASS(mpl_check_type(ctx, call, 1, MPL_SET_INDEX));
    if (!((batch == 0 && time == 1) || (batch == 1 && time == 0)))
        return MPL_REFUSE(
            ctx, "batch_axis %" PRId64 " and time_axis %" PRId64 " are not 0 and 1 or 1 and 0",
            batch, time);
    if (call->in_shape[1]->dim[0] != call->in_shape[0]->dim[batch])
        return MPL_REFUSE(ctx, "%" PRId64 " lengths for a batch of %" PRId64,
                          call->in_shape[1]->dim[0], call->in_shape[0]->dim[batch]);
    return mpl_like_input(call, 0, call->in_type[0]);
}

mpl_status mpl_eval_reverse_sequence(mpl_ctx *ctx, const mpl_op_call *call)
{
    const mpl_shape *shape = &call->in[0].shape;
    int64_t batch = mpl_attr_int(call->graph, call->op, MPL_ATTR_batch_axis, 1), time = 1 - batch;
    int64_t stride[2] = {shape->dim[1], 1}; /* [item] */
    size_t bytes = (size_t)mpl_count_dims(shape, 2, shape->rank) *
                   mpl_type_bytes(call->in[0].type); /* of an item */

    if (mpl_count(shape) == 0)
        return MPL_OK;
    for (int64_t b = 0; b < shape->dim[batch]; b++) {
        int64_t n = mpl_get_int(call->in[1].type, call->in[1].data, b);

        if (n < 0 || n > shape->dim[time])
            return MPL_REFUSE(ctx, "sequence length %" PRId64 " outside [0,%" PRId64 "]", n,
                              shape->dim[time]);
        for (int64_t t = 0; t < shape->dim[time]; t++) {
            int64_t to = b * stride[batch] + t * stride[time];
            int64_t from = b * stride[batch] + (t < n ? n - 1 - t : t) * stride[time];

            memcpy((char *)call->out[0].data + (size_t)to * bytes,
                   (const char *)call->in[0].data + (size_t)from * bytes, bytes);
        }
    }
    return MPL_OK;
}
