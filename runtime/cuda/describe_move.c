/* describe_move.c -- launches that move elements, by attributes or data. See describe_priv.h. */
#include "graphs/ops/move/fused.h"
#include "graphs/ops/move/move_strided_priv.h"
#include "runtime/cuda/describe_priv.h"

/* ---- moving elements ---- */

/* Merges dims, and moves several elements at once if all boundaries allow it. */
static void tidy_move(mpl_cuda_part *part)
{
    mpl_cuda_move *move = &part->kernel.as.move;
    int32_t n = 0, last;

    for (int32_t d = 0; d < move->rank; d++) {
        if (move->dim[d] == 1)
            continue;
        if (n > 0 && move->to_stride[n - 1] == move->to_stride[d] * move->dim[d] &&
            move->from_stride[n - 1] == move->from_stride[d] * move->dim[d]) {
            move->dim[n - 1] *= move->dim[d];
        } else {
            move->dim[n++] = move->dim[d];
        }
        move->to_stride[n - 1] = move->to_stride[d];
        move->from_stride[n - 1] = move->from_stride[d];
    }
    move->rank = n;
    last = n - 1;
    while (n > 0 && move->bytes < 16 && move->to_stride[last] == 1 &&
           move->from_stride[last] == 1 && move->dim[last] % 2 == 0 &&
           part->in_byte % (2 * (uint64_t)move->bytes) == 0 &&
           part->out_byte % (2 * (uint64_t)move->bytes) == 0) {
        for (int32_t d = 0; d < last; d++)
            if (move->to_stride[d] % 2 != 0 || move->from_stride[d] % 2 != 0)
                return;
        for (int32_t d = 0; d < last; d++)
            move->to_stride[d] /= 2, move->from_stride[d] /= 2;
        move->dim[last] /= 2;
        move->bytes *= 2;
        part->kernel.n /= 2;
    }
}

/* Makes input `in` the launch's only operand. */
static void take_one(mpl_maker *maker, mpl_cuda_part *part, uint32_t in)
{
    for (uint32_t i = 0; i < MPL_CUDA_MAX_IN; i++)
        part->in[i] = i == 0 ? in : MPL_NONE;
    part->kernel.n_in = 1;
    part->kernel.type[0] = (int32_t)type_of(maker, in_of(maker, in));
}

/* Moves a box from element `from` of input `in` to element `to` of output `out`. */
static mpl_status add_move(mpl_maker *maker, uint32_t in, int64_t from, uint32_t out, int64_t to,
                           uint32_t rank, const int64_t *dim, const int64_t *to_stride,
                           const int64_t *from_stride)
{
    uint32_t bytes = mpl_type_bytes(type_of(maker, in_of(maker, in)));
    mpl_cuda_part *part;
    mpl_cuda_move *move;
    uint64_t n = 1;

    for (uint32_t i = 0; i < rank; i++)
        n *= (uint64_t)dim[i];
    MPL_PASS(mpl_maker_add(maker, MPL_CUDA_MOVE, (int64_t)n, &part));
    take_one(maker, part, in);
    part->out = out;
    part->in_byte = (uint64_t)from * bytes;
    part->out_byte = (uint64_t)to * bytes;
    move = &part->kernel.as.move;
    move->rank = (int32_t)rank;
    move->bytes = (int32_t)bytes;
    memcpy(move->dim, dim, rank * sizeof *dim);
    memcpy(move->to_stride, to_stride, rank * sizeof *dim);
    memcpy(move->from_stride, from_stride, rank * sizeof *dim);
    if (n > 0)
        tidy_move(part);
    return MPL_OK;
}

mpl_status mpl_maker_copy(mpl_maker *maker)
{
    int64_t n = mpl_count(out_shape(maker, 0)), one = 1;

    return add_move(maker, 0, 0, 0, 0, 1, &n, &one, &one);
}

static mpl_status concat(mpl_maker *maker)
{
    const mpl_shape *to = out_shape(maker, 0);
    uint32_t axis = axis_of(attr_int(maker, MPL_ATTR_axis, 0), to->rank);
    int64_t at = 0, whole = mpl_count_dims(to, axis, to->rank);

    for (uint32_t i = 0; i < maker->n_in; i++) {
        int64_t row = mpl_count_dims(in_shape(maker, i), axis, to->rank);

        MPL_PASS(add_move(maker, i, 0, 0, at, 2,
                          (const int64_t[]){mpl_count_dims(to, 0, axis), row},
                          (const int64_t[]){whole, 1}, (const int64_t[]){row, 1}));
        at += row;
    }
    return MPL_OK;
}

static mpl_status split(mpl_maker *maker)
{
    const mpl_shape *in = in_shape(maker, 0);
    uint32_t axis = axis_of(attr_int(maker, MPL_ATTR_axis, 0), in->rank);
    int64_t at = 0, whole = mpl_count_dims(in, axis, in->rank),
            n_before = mpl_count_dims(in, 0, axis);
    uint32_t n_sizes;
    const int64_t *size = mpl_attr_ints(maker->g, maker->op, MPL_ATTR_split, &n_sizes);
    int64_t left = in->dim[axis], part = left / maker->n_out + (left % maker->n_out != 0);

    for (uint32_t i = 0; i < maker->n_out; i++) {
        int64_t dim = size != NULL ? size[i] : i + 1 < maker->n_out ? part : left;
        int64_t row = dim * mpl_count_dims(in, axis + 1, in->rank);

        if (out_of(maker, i) != MPL_NONE)
            MPL_PASS(add_move(maker, 0, at, i, 0, 2, (const int64_t[]){n_before, row},
                              (const int64_t[]){row, 1}, (const int64_t[]){whole, 1}));
        at += row;
        left -= dim;
    }
    return MPL_OK;
}

static mpl_status slice(mpl_maker *maker)
{
    const mpl_shape *in = in_shape(maker, 0), *to = out_shape(maker, 0);
    uint32_t n, n_axes, n_steps;
    const int64_t *starts = mpl_attr_ints(maker->g, maker->op, MPL_ATTR_starts, &n);
    const int64_t *axes = mpl_attr_ints(maker->g, maker->op, MPL_ATTR_axes, &n_axes);
    const int64_t *steps = mpl_attr_ints(maker->g, maker->op, MPL_ATTR_steps, &n_steps);
    int64_t to_stride[MPL_MAX_RANK], from_stride[MPL_MAX_RANK], base = 0;

    mpl_strides(to, to_stride);
    mpl_strides(in, from_stride);
    if (mpl_count(to) == 0)
        return mpl_maker_copy(maker);
    for (uint32_t i = 0; i < n; i++) {
        uint32_t axis = axes != NULL ? axis_of(axes[i], in->rank) : i;
        int64_t step = steps != NULL ? steps[i] : 1, dim = in->dim[axis];

        base += mpl_clamp_index(starts[i], dim, 0, step > 0 ? dim : dim - 1) * from_stride[axis];
        from_stride[axis] = to->dim[axis] > 1 ? step * from_stride[axis] : 1;
    }
    return add_move(maker, 0, base, 0, 0, to->rank, to->dim, to_stride, from_stride);
}

static mpl_status transpose(mpl_maker *maker)
{
    const mpl_shape *in = in_shape(maker, 0), *to = out_shape(maker, 0);
    uint32_t n;
    const int64_t *perm = mpl_attr_ints(maker->g, maker->op, MPL_ATTR_perm, &n);
    int64_t to_stride[MPL_MAX_RANK], stride[MPL_MAX_RANK], from_stride[MPL_MAX_RANK];

    mpl_strides(to, to_stride);
    mpl_strides(in, stride);
    for (uint32_t i = 0; i < in->rank; i++)
        from_stride[i] = stride[perm != NULL ? axis_of(perm[i], in->rank) : in->rank - 1 - i];
    return add_move(maker, 0, 0, 0, 0, to->rank, to->dim, to_stride, from_stride);
}

static mpl_status expand(mpl_maker *maker)
{
    const mpl_shape *to = out_shape(maker, 0);
    int64_t to_stride[MPL_MAX_RANK], from_stride[MPL_MAX_RANK];

    mpl_strides(to, to_stride);
    mpl_broadcast_strides(in_shape(maker, 0), to, from_stride);
    return add_move(maker, 0, 0, 0, 0, to->rank, to->dim, to_stride, from_stride);
}

/* Dims 2 i and 2 i + 1 of the box repeat and walk axis i. */
static mpl_status tile(mpl_maker *maker)
{
    const mpl_shape *in = in_shape(maker, 0), *to = out_shape(maker, 0);
    int64_t dim[MPL_CUDA_BOX_RANK], to_stride[MPL_CUDA_BOX_RANK], from_stride[MPL_CUDA_BOX_RANK];
    int64_t own[MPL_MAX_RANK], stride[MPL_MAX_RANK];
    uint32_t n = 0;

    if (mpl_count(to) == 0)
        return mpl_maker_copy(maker);
    mpl_strides(to, stride);
    mpl_strides(in, own);
    for (uint32_t i = 0; i < in->rank; i++) {
        int64_t repeats = to->dim[i] / in->dim[i];

        if (repeats > 1)
            dim[n] = repeats, to_stride[n] = stride[i] * in->dim[i], from_stride[n++] = 0;
        if (in->dim[i] > 1)
            dim[n] = in->dim[i], to_stride[n] = stride[i], from_stride[n++] = own[i];
    }
    return add_move(maker, 0, 0, 0, 0, n, dim, to_stride, from_stride);
}

/* Both are one permutation of [batch, row in block, column in block, channel, row, column]. */
static mpl_status depth_space(mpl_maker *maker)
{
    bool to_space = maker->kind == MPL_OP_depth_to_space;
    const mpl_shape *deep = to_space ? in_shape(maker, 0) : out_shape(maker, 0);
    int64_t block = attr_int(maker, MPL_ATTR_blocksize, 1), rows = deep->dim[2],
            columns = deep->dim[3];
    int64_t plane = rows * columns, channels = deep->dim[1] / (block * block);
    bool block_last = to_space && attr_is(maker, MPL_ATTR_mode, "DCR", "CRD");
    int64_t dim[6] = {deep->dim[0], block, block, channels, rows, columns};
    int64_t depth[6] = {deep->dim[1] * plane,
                        block_last ? block * plane : block * channels * plane,
                        block_last ? plane : channels * plane,
                        block_last ? block * block * plane : plane,
                        columns,
                        1};
    int64_t space[6] = {deep->dim[1] * plane,  columns * block,         1,
                        plane * block * block, columns * block * block, block};

    return add_move(maker, 0, 0, 0, 0, 6, dim, to_space ? space : depth, to_space ? depth : space);
}

static mpl_status fill(mpl_maker *maker, uint32_t out, uint8_t byte)
{
    mpl_value v = out_of(maker, out);
    mpl_cuda_part *part;

    MPL_PASS(mpl_maker_add(maker, MPL_CUDA_FILL, (int64_t)maker->g->value_bytes[v], &part));
    part->out = out;
    part->kernel.as.byte = byte;
    return MPL_OK;
}

/* Constant pads: fills in the value, then copies the box of the input that negative pads leave over
 * it. The host computes pads that repeat elements of the input. */
static mpl_status pad(mpl_maker *maker)
{
    const mpl_shape *in = in_shape(maker, 0), *to = out_shape(maker, 0);
    uint32_t n, n_axes;
    const int64_t *pads = mpl_attr_ints(maker->g, maker->op, MPL_ATTR_pads, &n);
    const int64_t *axes = mpl_attr_ints(maker->g, maker->op, MPL_ATTR_axes, &n_axes);
    int64_t dim[MPL_MAX_RANK], to_stride[MPL_MAX_RANK], stride[MPL_MAX_RANK], from = 0, at = 0;
    int64_t nothing[MPL_MAX_RANK] = {0};

    if (!attr_is(maker, MPL_ATTR_mode, "constant", "constant"))
        return mpl_maker_refuse(maker);
    mpl_strides(to, to_stride);
    mpl_strides(in, stride);
    memcpy(dim, in->dim, sizeof dim);
    for (uint32_t i = 0; i < n / 2; i++) {
        uint32_t axis = axes != NULL ? axis_of(axes[i], in->rank) : i;
        int64_t begin = pads[i] < 0 ? -pads[i] : 0, end = in->dim[axis];

        end = pads[i] + end > to->dim[axis] ? to->dim[axis] - pads[i] : end;
        dim[axis] = end > begin ? end - begin : 0;
        from += begin * stride[axis];
        at += (begin + pads[i]) * to_stride[axis];
    }
    if (in_of(maker, 1) != MPL_NONE)
        MPL_PASS(add_move(maker, 1, 0, 0, 0, to->rank, to->dim, to_stride, nothing));
    else
        MPL_PASS(fill(maker, 0, 0));
    return add_move(maker, 0, from, 0, at, in->rank, dim, to_stride, stride);
}

static mpl_status gather(mpl_maker *maker)
{
    const mpl_shape *in = in_shape(maker, 0);
    uint32_t axis = axis_of(attr_int(maker, MPL_ATTR_axis, 0), in->rank);
    mpl_cuda_part *part;

    MPL_PASS(mpl_maker_add(maker, MPL_CUDA_GATHER, mpl_count(out_shape(maker, 0)), &part));
    part->checks = true;
    part->kernel.as.gather =
        (mpl_cuda_gather){.bytes = (int32_t)mpl_type_bytes(type_of(maker, in_of(maker, 0))),
                          .axis_dim = in->dim[axis],
                          .n_index = mpl_count(in_shape(maker, 1)),
                          .inner = mpl_count_dims(in, axis + 1, in->rank)};
    return MPL_OK;
}

/* ---- boxes: access, assign, fused ---- */

static mpl_status take_box(mpl_maker *maker)
{
    int64_t to_stride[MPL_MAX_RANK];
    mpl_strided box;

    MPL_PASS(mpl_strided_of(maker->ctx, maker->g, maker->op, in_shape(maker, 0), &box));
    mpl_strides(&box.shape, to_stride);
    return add_move(maker, 0, box.offset, 0, 0, box.shape.rank, box.shape.dim, to_stride,
                    box.stride);
}

/* Copies input 0 first, unless the box covers all of it or it is in place already. */
static mpl_status keep_base(mpl_maker *maker, const mpl_strided *box)
{
    return mpl_strided_whole(box, (uint64_t)mpl_count(out_shape(maker, 0))) ? MPL_OK
                                                                            : mpl_maker_copy(maker);
}

static mpl_status assign(mpl_maker *maker)
{
    int64_t from_stride[MPL_MAX_RANK];
    mpl_strided box;

    MPL_PASS(mpl_strided_of(maker->ctx, maker->g, maker->op, in_shape(maker, 0), &box));
    MPL_PASS(keep_base(maker, &box));
    mpl_broadcast_strides(in_shape(maker, 1), &box.shape, from_stride);
    return add_move(maker, 1, 0, 0, box.offset, box.shape.rank, box.shape.dim, box.stride,
                    from_stride);
}

/* As the dims of a chain: drops dims of 1 and merges neighbours that all its boxes walk alike. */
static void merge_fused(mpl_cuda_fused *fused)
{
    int32_t n = 0;

    for (int32_t d = 0; d < fused->rank; d++) {
        bool goes_on = n > 0;

        if (fused->dim[d] == 1)
            continue;
        goes_on = goes_on && fused->to_stride[n - 1] == fused->to_stride[d] * fused->dim[d];
        for (int32_t k = 0; k < fused->n_loads && goes_on; k++)
            goes_on = fused->stride[k][n - 1] == fused->stride[k][d] * fused->dim[d];
        n += !goes_on;
        fused->dim[n - 1] = goes_on ? fused->dim[n - 1] * fused->dim[d] : fused->dim[d];
        fused->to_stride[n - 1] = fused->to_stride[d];
        for (int32_t k = 0; k < fused->n_loads; k++)
            fused->stride[k][n - 1] = fused->stride[k][d];
    }
    fused->rank = n;
}

_Static_assert((int)MPL_FUSED_LOADS <= MPL_CUDA_MAX_IN &&
                   (int)MPL_FUSED_STEPS <= MPL_CUDA_MAX_STEPS &&
                   (int)MPL_FUSED_DEPTH <= MPL_CUDA_MAX_STACK,
               "the kernel takes every chain");

static mpl_status fused(mpl_maker *maker)
{
    mpl_cuda_part *part;
    mpl_cuda_fused *d;
    mpl_fused f;

    MPL_PASS(mpl_fused_read(maker->ctx, maker->g, maker->op, &f));
    if (in_of(maker, 0) != MPL_NONE)
        MPL_PASS(keep_base(maker, &f.to));
    MPL_PASS(mpl_maker_add(maker, MPL_CUDA_FUSED, mpl_count(&f.to.shape), &part));
    for (uint32_t i = 0; i < MPL_CUDA_MAX_IN; i++)
        part->in[i] = i < f.n_loads ? f.load[i].input : MPL_NONE;
    d = &part->kernel.as.fused;
    d->rank = (int32_t)f.to.shape.rank;
    d->n_loads = (int32_t)f.n_loads;
    d->n_steps = (int32_t)f.n_steps;
    memcpy(d->dim, f.to.shape.dim, sizeof d->dim);
    memcpy(d->to_stride, f.to.stride, sizeof d->to_stride);
    d->to_offset = f.to.offset;
    for (uint32_t i = 0; i < f.n_loads; i++) {
        memcpy(d->stride[i], f.load[i].from.stride, sizeof d->stride[i]);
        d->offset[i] = f.load[i].from.offset;
    }
    for (uint32_t i = 0; i < f.n_steps; i++)
        d->step[i] = (int16_t)(f.step[i].kind == MPL_STEP_LOAD ? -1 - (int)f.step[i].of
                                                               : (int)f.step[i].kind);
    merge_fused(d);
    return MPL_OK;
}

/* ---- the table ---- */

static mpl_status dropout(mpl_maker *maker)
{
    MPL_PASS(mpl_maker_copy(maker));
    if (out_of(maker, 1) != MPL_NONE)
        MPL_PASS(fill(maker, 1, 1));
    return MPL_OK;
}

mpl_describe *mpl_describe_move(mpl_op_kind kind)
{
    static mpl_describe *const known[MPL_N_OPS] = {
        [MPL_OP_reorder] = mpl_maker_copy, /* all layouts are row-major here */
        [MPL_OP_dropout] = dropout,
        [MPL_OP_concat] = concat,
        [MPL_OP_split] = split,
        [MPL_OP_slice] = slice,
        [MPL_OP_transpose] = transpose,
        [MPL_OP_expand] = expand,
        [MPL_OP_tile] = tile,
        [MPL_OP_pad] = pad,
        [MPL_OP_gather] = gather,
        [MPL_OP_depth_to_space] = depth_space,
        [MPL_OP_space_to_depth] = depth_space,
        [MPL_OP_access] = take_box,
        [MPL_OP_assign] = assign,
        [MPL_OP_fused] = fused,
    };

    return known[kind] == NULL && (mpl_op_table[kind].traits & MPL_VIEW) != 0 ? mpl_maker_copy
                                                                              : known[kind];
}
