/* describe_move.c -- launches of what moves elements, to places that attributes or data name. See
 * describe_priv.h. */
#include "graphs/ops/move/fused.h"
#include "graphs/ops/move/move_strided_priv.h"
#include "runtime/cuda/describe_priv.h"

/* ---- moving elements ---- */

/* Merges dims, and takes several elements at once where all boundaries allow it. */
static void tidy_move(mpl_cuda_part *p)
{
    mpl_cuda_move *v = &p->kernel.as.move;
    int32_t n = 0, last;

    for (int32_t d = 0; d < v->rank; d++) {
        if (v->dim[d] == 1)
            continue;
        if (n > 0 && v->to_stride[n - 1] == v->to_stride[d] * v->dim[d] &&
            v->from_stride[n - 1] == v->from_stride[d] * v->dim[d]) {
            v->dim[n - 1] *= v->dim[d];
        } else {
            v->dim[n++] = v->dim[d];
        }
        v->to_stride[n - 1] = v->to_stride[d];
        v->from_stride[n - 1] = v->from_stride[d];
    }
    v->rank = n;
    last = n - 1;
    while (n > 0 && v->bytes < 16 && v->to_stride[last] == 1 && v->from_stride[last] == 1 &&
           v->dim[last] % 2 == 0 && p->in_byte % (2 * (uint64_t)v->bytes) == 0 &&
           p->out_byte % (2 * (uint64_t)v->bytes) == 0) {
        for (int32_t d = 0; d < last; d++)
            if (v->to_stride[d] % 2 != 0 || v->from_stride[d] % 2 != 0)
                return;
        for (int32_t d = 0; d < last; d++)
            v->to_stride[d] /= 2, v->from_stride[d] /= 2;
        v->dim[last] /= 2;
        v->bytes *= 2;
        p->kernel.n /= 2;
    }
}

/* A box of elements from input `in`, element `from` on, to output `out`, element `to` on. */
static mpl_status add_move(mpl_maker *m, uint32_t in, int64_t from, uint32_t out, int64_t to,
                           uint32_t rank, const int64_t *dim, const int64_t *to_stride,
                           const int64_t *from_stride)
{
    mpl_status st = MPL_OK;
    uint32_t bytes = mpl_type_bytes(type_of(m, in_of(m, in)));
    mpl_cuda_part *p;
    mpl_cuda_move *v;
    uint64_t n = 1;

    for (uint32_t i = 0; i < rank; i++)
        n *= (uint64_t)dim[i];
    MPL_TRY(mpl_maker_add(m, MPL_CUDA_MOVE, (int64_t)n, &p));
    mpl_maker_lone(m, p, in);
    p->out = out;
    p->in_byte = (uint64_t)from * bytes;
    p->out_byte = (uint64_t)to * bytes;
    v = &p->kernel.as.move;
    v->rank = (int32_t)rank;
    v->bytes = (int32_t)bytes;
    memcpy(v->dim, dim, rank * sizeof *dim);
    memcpy(v->to_stride, to_stride, rank * sizeof *dim);
    memcpy(v->from_stride, from_stride, rank * sizeof *dim);
    if (n > 0)
        tidy_move(p);
out:
    return st;
}

mpl_status mpl_maker_copy(mpl_maker *m)
{
    int64_t n = mpl_count(out_shape(m, 0)), one = 1;

    return add_move(m, 0, 0, 0, 0, 1, &n, &one, &one);
}

static mpl_status concat(mpl_maker *m)
{
    mpl_status st = MPL_OK;
    const mpl_shape *to = out_shape(m, 0);
    uint32_t axis = axis_of(attr_int(m, MPL_ATTR_axis, 0), to->rank);
    int64_t at = 0, whole = mpl_count_dims(to, axis, to->rank);

    for (uint32_t i = 0; i < m->n_in; i++) {
        int64_t row = mpl_count_dims(in_shape(m, i), axis, to->rank);

        MPL_TRY(add_move(m, i, 0, 0, at, 2, (const int64_t[]){mpl_count_dims(to, 0, axis), row},
                         (const int64_t[]){whole, 1}, (const int64_t[]){row, 1}));
        at += row;
    }
out:
    return st;
}

static mpl_status split(mpl_maker *m)
{
    mpl_status st = MPL_OK;
    const mpl_shape *in = in_shape(m, 0);
    uint32_t axis = axis_of(attr_int(m, MPL_ATTR_axis, 0), in->rank);
    int64_t at = 0, whole = mpl_count_dims(in, axis, in->rank),
            n_before = mpl_count_dims(in, 0, axis);
    uint32_t n_sizes;
    const int64_t *size = mpl_attr_ints(m->g, m->op, MPL_ATTR_split, &n_sizes);
    int64_t left = in->dim[axis], part = left / m->n_out + (left % m->n_out != 0);

    for (uint32_t i = 0; i < m->n_out; i++) {
        int64_t dim = size != NULL ? size[i] : i + 1 < m->n_out ? part : left;
        int64_t row = dim * mpl_count_dims(in, axis + 1, in->rank);

        if (out_of(m, i) != MPL_NONE)
            MPL_TRY(add_move(m, 0, at, i, 0, 2, (const int64_t[]){n_before, row},
                             (const int64_t[]){row, 1}, (const int64_t[]){whole, 1}));
        at += row;
        left -= dim;
    }
out:
    return st;
}

static mpl_status slice(mpl_maker *m)
{
    const mpl_shape *in = in_shape(m, 0), *to = out_shape(m, 0);
    uint32_t n, n_axes, n_steps;
    const int64_t *starts = mpl_attr_ints(m->g, m->op, MPL_ATTR_starts, &n);
    const int64_t *axes = mpl_attr_ints(m->g, m->op, MPL_ATTR_axes, &n_axes);
    const int64_t *steps = mpl_attr_ints(m->g, m->op, MPL_ATTR_steps, &n_steps);
    int64_t to_stride[MPL_MAX_RANK], from_stride[MPL_MAX_RANK], base = 0;

    strides_of(to, to_stride);
    strides_of(in, from_stride);
    if (mpl_count(to) == 0)
        return mpl_maker_copy(m);
    for (uint32_t i = 0; i < n; i++) {
        uint32_t axis = axes != NULL ? axis_of(axes[i], in->rank) : i;
        int64_t step = steps != NULL ? steps[i] : 1, dim = in->dim[axis];

        base += mpl_clamp_index(starts[i], dim, 0, step > 0 ? dim : dim - 1) * from_stride[axis];
        from_stride[axis] = to->dim[axis] > 1 ? step * from_stride[axis] : 1;
    }
    return add_move(m, 0, base, 0, 0, to->rank, to->dim, to_stride, from_stride);
}

static mpl_status transpose(mpl_maker *m)
{
    const mpl_shape *in = in_shape(m, 0), *to = out_shape(m, 0);
    uint32_t n;
    const int64_t *perm = mpl_attr_ints(m->g, m->op, MPL_ATTR_perm, &n);
    int64_t to_stride[MPL_MAX_RANK], stride[MPL_MAX_RANK], from_stride[MPL_MAX_RANK];

    strides_of(to, to_stride);
    strides_of(in, stride);
    for (uint32_t i = 0; i < in->rank; i++)
        from_stride[i] = stride[perm != NULL ? axis_of(perm[i], in->rank) : in->rank - 1 - i];
    return add_move(m, 0, 0, 0, 0, to->rank, to->dim, to_stride, from_stride);
}

static mpl_status expand(mpl_maker *m)
{
    const mpl_shape *to = out_shape(m, 0);
    int64_t to_stride[MPL_MAX_RANK], from_stride[MPL_MAX_RANK];

    strides_of(to, to_stride);
    broadcast_strides(in_shape(m, 0), to, from_stride);
    return add_move(m, 0, 0, 0, 0, to->rank, to->dim, to_stride, from_stride);
}

/* Dims 2 i and 2 i + 1 of the box repeat and walk axis i. */
static mpl_status tile(mpl_maker *m)
{
    const mpl_shape *in = in_shape(m, 0), *to = out_shape(m, 0);
    int64_t dim[MPL_CUDA_BOX_RANK], to_stride[MPL_CUDA_BOX_RANK], from_stride[MPL_CUDA_BOX_RANK];
    int64_t own[MPL_MAX_RANK], stride[MPL_MAX_RANK];
    uint32_t n = 0;

    if (mpl_count(to) == 0)
        return mpl_maker_copy(m);
    strides_of(to, stride);
    strides_of(in, own);
    for (uint32_t i = 0; i < in->rank; i++) {
        int64_t repeats = to->dim[i] / in->dim[i];

        if (repeats > 1)
            dim[n] = repeats, to_stride[n] = stride[i] * in->dim[i], from_stride[n++] = 0;
        if (in->dim[i] > 1)
            dim[n] = in->dim[i], to_stride[n] = stride[i], from_stride[n++] = own[i];
    }
    return add_move(m, 0, 0, 0, 0, n, dim, to_stride, from_stride);
}

/* Both are one permutation of [batch, row in block, column in block, channel, row, column]. */
static mpl_status depth_space(mpl_maker *m)
{
    bool to_space = m->kind == MPL_OP_depth_to_space;
    const mpl_shape *deep = to_space ? in_shape(m, 0) : out_shape(m, 0);
    int64_t block = attr_int(m, MPL_ATTR_blocksize, 1), rows = deep->dim[2], columns = deep->dim[3];
    int64_t plane = rows * columns, channels = deep->dim[1] / (block * block);
    bool block_last = to_space && attr_is(m, MPL_ATTR_mode, "DCR", "CRD");
    int64_t dim[6] = {deep->dim[0], block, block, channels, rows, columns};
    int64_t depth[6] = {deep->dim[1] * plane,
                        block_last ? block * plane : block * channels * plane,
                        block_last ? plane : channels * plane,
                        block_last ? block * block * plane : plane,
                        columns,
                        1};
    int64_t space[6] = {deep->dim[1] * plane,  columns * block,         1,
                        plane * block * block, columns * block * block, block};

    return add_move(m, 0, 0, 0, 0, 6, dim, to_space ? space : depth, to_space ? depth : space);
}

static mpl_status pad(mpl_maker *m)
{
    static const char *const names[] = {"constant", "edge", "reflect", "wrap"};
    mpl_status st = MPL_OK;
    const mpl_shape *in = in_shape(m, 0), *to = out_shape(m, 0);
    uint32_t n, n_axes;
    const int64_t *pads = mpl_attr_ints(m->g, m->op, MPL_ATTR_pads, &n);
    const int64_t *axes = mpl_attr_ints(m->g, m->op, MPL_ATTR_axes, &n_axes);
    mpl_cuda_part *p;
    mpl_cuda_pad *d;

    MPL_TRY(mpl_maker_add(m, MPL_CUDA_PAD, mpl_count(to), &p));
    d = &p->kernel.as.pad;
    d->rank = (int32_t)to->rank;
    d->bytes = (int32_t)mpl_type_bytes(type_of(m, in_of(m, 0)));
    while (!attr_is(m, MPL_ATTR_mode, "constant", names[d->mode]))
        d->mode++;
    memcpy(d->dim, to->dim, sizeof d->dim);
    memcpy(d->in_dim, in->dim, sizeof d->in_dim);
    for (uint32_t i = 0; i < n / 2; i++)
        d->before[axes != NULL ? axis_of(axes[i], in->rank) : i] = pads[i];
out:
    return st;
}

static mpl_status gather(mpl_maker *m)
{
    mpl_status st = MPL_OK;
    const mpl_shape *in = in_shape(m, 0), *index = in_shape(m, 1);
    uint32_t axis = axis_of(attr_int(m, MPL_ATTR_axis, 0), in->rank);
    mpl_cuda_part *p;
    mpl_cuda_gather *d;

    MPL_TRY(mpl_maker_add(m, MPL_CUDA_GATHER, mpl_count(out_shape(m, 0)), &p));
    p->checks = true;
    d = &p->kernel.as.gather;
    d->bytes = (int32_t)mpl_type_bytes(type_of(m, in_of(m, 0)));
    d->axis_dim = in->dim[axis];
    d->n_index = mpl_count(index);
    d->inner = mpl_count_dims(in, axis + 1, in->rank);
    d->by_element = m->kind == MPL_OP_gather_elements;
    if (d->by_element) {
        d->rank = (int32_t)in->rank;
        memcpy(d->dim, index->dim, sizeof d->dim);
        strides_of(in, d->stride);
        d->along = d->stride[axis];
        d->stride[axis] = 0;
    }
out:
    return st;
}

/* The row-major strides of a tuple's dims are the kernel's; `first`: dims of the data before them,
 * batches. */
static void read_tuples(const mpl_maker *m, mpl_cuda_tuples *t, const mpl_shape *data,
                        uint32_t first)
{
    const mpl_shape *index = in_shape(m, 1);

    t->bytes = (int32_t)mpl_type_bytes(type_of(m, in_of(m, 0)));
    t->length = (int32_t)index->dim[index->rank - 1];
    for (int32_t i = 0; i < t->length; i++)
        t->dim[i] = data->dim[first + (uint32_t)i];
    t->n = mpl_count_dims(index, 0, index->rank - 1);
    t->per_batch = mpl_count_dims(index, first, index->rank - 1);
    t->rows = mpl_count_dims(data, first, first + (uint32_t)t->length);
    t->inner = mpl_count_dims(data, first + (uint32_t)t->length, data->rank);
}

static mpl_status gather_nd(mpl_maker *m)
{
    mpl_status st = MPL_OK;
    mpl_cuda_part *p;

    MPL_TRY(mpl_maker_add(m, MPL_CUDA_GATHER_ND, mpl_count(out_shape(m, 0)), &p));
    p->checks = true;
    read_tuples(m, &p->kernel.as.tuples, in_shape(m, 0),
                (uint32_t)attr_int(m, MPL_ATTR_batch_dims, 0));
out:
    return st;
}

static int32_t scatter_how(const mpl_maker *m)
{
    static const char *const names[] = {"none", "add", "mul", "max", "min"};
    int32_t how = 0;

    while (!attr_is(m, MPL_ATTR_reduction, "none", names[how]))
        how++;
    return how;
}

static mpl_status scatter_elements(mpl_maker *m)
{
    mpl_status st = MPL_OK;
    const mpl_shape *to = out_shape(m, 0), *index = in_shape(m, 1);
    uint32_t axis = axis_of(attr_int(m, MPL_ATTR_axis, 0), to->rank);
    int64_t index_stride[MPL_MAX_RANK], to_stride[MPL_MAX_RANK];
    mpl_cuda_scatter *s;
    mpl_cuda_part *p;

    MPL_TRY(mpl_maker_copy(m));
    MPL_TRY(mpl_maker_add(m, MPL_CUDA_SCATTER, 0, &p));
    p->checks = true;
    s = &p->kernel.as.scatter;
    s->how = scatter_how(m);
    s->bytes = (int32_t)mpl_type_bytes(type_of(m, out_of(m, 0)));
    strides_of(index, index_stride);
    strides_of(to, to_stride);
    for (uint32_t i = 0; i < index->rank; i++)
        if (i != axis) {
            s->dim[s->rank] = index->dim[i];
            s->index_stride[s->rank] = index_stride[i];
            s->to_stride[s->rank++] = to_stride[i];
        }
    s->n = index->dim[axis];
    s->index_along = index_stride[axis];
    s->to_along = to_stride[axis];
    s->axis_dim = to->dim[axis];
    p->kernel.n =
        s->n > 0 ? mpl_count_dims(index, 0, axis) * mpl_count_dims(index, axis + 1, index->rank)
                 : 0;
out:
    return st;
}

/* As many threads as keep a device busy: each of them goes through all indices. */
#define SCATTER_THREADS 4096

static mpl_status scatter_nd(mpl_maker *m)
{
    mpl_status st = MPL_OK;
    mpl_cuda_tuples *t;
    mpl_cuda_part *p;

    MPL_TRY(mpl_maker_copy(m));
    MPL_TRY(mpl_maker_add(m, MPL_CUDA_SCATTER_ND, 0, &p));
    p->checks = true;
    t = &p->kernel.as.tuples;
    t->how = scatter_how(m);
    read_tuples(m, t, in_shape(m, 0), 0);
    t->parts = t->inner > 0 ? SCATTER_THREADS / t->inner : 1;
    t->parts = t->parts < 1 ? 1 : t->parts > t->rows ? t->rows : t->parts;
    p->kernel.n = mpl_count(in_shape(m, 2)) > 0 ? t->parts * t->inner : 0;
out:
    return st;
}

static mpl_status one_hot(mpl_maker *m)
{
    mpl_status st = MPL_OK;
    const mpl_shape *to = out_shape(m, 0);
    uint32_t axis = axis_of(attr_int(m, MPL_ATTR_axis, -1), to->rank);
    mpl_cuda_part *p;

    MPL_TRY(mpl_maker_add(m, MPL_CUDA_ONE_HOT, mpl_count(to), &p));
    p->kernel.as.place =
        (mpl_cuda_place){.rows = to->dim[axis],
                         .inner = mpl_count_dims(to, axis + 1, to->rank),
                         .bytes = (int32_t)mpl_type_bytes(type_of(m, out_of(m, 0)))};
out:
    return st;
}

static mpl_status trilu(mpl_maker *m)
{
    mpl_status st = MPL_OK;
    const mpl_shape *to = out_shape(m, 0);
    int64_t rows = to->dim[to->rank - 2], columns = to->dim[to->rank - 1],
            k = attr_int(m, MPL_ATTR_k, 0);
    mpl_cuda_part *p;

    MPL_TRY(mpl_maker_add(m, MPL_CUDA_TRILU, mpl_count(to), &p));
    p->kernel.as.place =
        (mpl_cuda_place){.rows = rows,
                         .columns = columns,
                         .k = k > columns ? columns
                              : k < -rows ? -rows
                                          : k,
                         .bytes = (int32_t)mpl_type_bytes(type_of(m, out_of(m, 0))),
                         .which = attr_int(m, MPL_ATTR_upper, 1) != 0};
out:
    return st;
}

static mpl_status reverse_sequence(mpl_maker *m)
{
    mpl_status st = MPL_OK;
    const mpl_shape *to = out_shape(m, 0);
    mpl_cuda_part *p;

    MPL_TRY(mpl_maker_add(m, MPL_CUDA_REVERSE, mpl_count(to), &p));
    p->checks = true;
    p->kernel.as.place =
        (mpl_cuda_place){.rows = to->dim[0],
                         .columns = to->dim[1],
                         .inner = mpl_count_dims(to, 2, to->rank),
                         .bytes = (int32_t)mpl_type_bytes(type_of(m, out_of(m, 0))),
                         .which = (int32_t)attr_int(m, MPL_ATTR_batch_axis, 1)};
out:
    return st;
}

/* ---- resize ---- */

/* Which of the names an attribute has; the first where it has none. The shape rule has refused
 * others. */
static int32_t choice_of(const mpl_maker *m, mpl_attr_key key, const char *const *names)
{
    int32_t i = 0;

    while (!attr_is(m, key, names[0], names[i]))
        i++;
    return i;
}

static mpl_status resize(mpl_maker *m)
{
    static const char *const modes[] = {"nearest", "linear", "cubic"};
    static const char *const coordinates[] = {"half_pixel",         "half_pixel_symmetric",
                                              "pytorch_half_pixel", "align_corners",
                                              "asymmetric",         "tf_half_pixel_for_nn"};
    static const char *const roundings[] = {"round_prefer_floor", "round_prefer_ceil", "floor",
                                            "ceil"};
    mpl_status st = MPL_OK;
    const mpl_shape *in = in_shape(m, 0), *to = out_shape(m, 0);
    uint32_t n_axes;
    const int64_t *axes = mpl_attr_ints(m->g, m->op, MPL_ATTR_axes, &n_axes);
    mpl_attr scales = {.n = 0};
    mpl_cuda_resize *r;
    mpl_cuda_part *p;

    MPL_TRY(mpl_maker_add(m, MPL_CUDA_RESIZE, mpl_count(to), &p));
    r = &p->kernel.as.resize;
    r->rank = (int32_t)in->rank;
    r->bytes = (int32_t)mpl_type_bytes(type_of(m, in_of(m, 0)));
    r->mode = choice_of(m, MPL_ATTR_mode, modes);
    r->coordinate = choice_of(m, MPL_ATTR_coordinate_mode, coordinates);
    r->rounding = choice_of(m, MPL_ATTR_nearest_mode, roundings);
    r->cubic_a = attr_float(m, MPL_ATTR_cubic_coeff_a, -0.75);
    r->exclude_outside = attr_int(m, MPL_ATTR_exclude_outside, 0) != 0;
    memcpy(r->in, in->dim, sizeof r->in);
    memcpy(r->out, to->dim, sizeof r->out);
    strides_of(in, r->stride);
    mpl_attr_get(m->g, m->op, MPL_ATTR_scales, &scales);
    for (uint32_t i = 0; i < in->rank; i++)
        r->scale[i] = 1;
    for (uint32_t i = 0; i < (axes != NULL ? n_axes : in->rank); i++) {
        uint32_t axis = axes != NULL ? axis_of(axes[i], in->rank) : i;

        if (in->dim[axis] > 0) /* sizes without scales: as they come out */
            r->scale[axis] =
                scales.n > 0 ? scales.floats[i] : (double)to->dim[axis] / (double)in->dim[axis];
    }
out:
    return st;
}

/* ---- boxes: access, assign, fused ---- */

static mpl_status take_box(mpl_maker *m)
{
    mpl_status st = MPL_OK;
    int64_t to_stride[MPL_MAX_RANK];
    mpl_strided box;

    MPL_TRY(mpl_strided_of(m->ctx, m->g, m->op, in_shape(m, 0), &box));
    strides_of(&box.shape, to_stride);
    MPL_TRY(add_move(m, 0, box.offset, 0, 0, box.shape.rank, box.shape.dim, to_stride, box.stride));
out:
    return st;
}

/* Whatever the box leaves of input 0 is copied first, where it does not lie there already. */
static mpl_status keep_base(mpl_maker *m, const mpl_strided *box)
{
    return mpl_strided_whole(box, (uint64_t)mpl_count(out_shape(m, 0))) ? MPL_OK
                                                                        : mpl_maker_copy(m);
}

static mpl_status assign(mpl_maker *m)
{
    mpl_status st = MPL_OK;
    int64_t from_stride[MPL_MAX_RANK];
    mpl_strided box;

    MPL_TRY(mpl_strided_of(m->ctx, m->g, m->op, in_shape(m, 0), &box));
    MPL_TRY(keep_base(m, &box));
    broadcast_strides(in_shape(m, 1), &box.shape, from_stride);
    MPL_TRY(
        add_move(m, 1, 0, 0, box.offset, box.shape.rank, box.shape.dim, box.stride, from_stride));
out:
    return st;
}

/* As the dims of a chain: those of 1 vanish, and neighbours that all its boxes walk alike become
 * one. */
static void merge_fused(mpl_cuda_fused *f)
{
    int32_t n = 0;

    for (int32_t d = 0; d < f->rank; d++) {
        bool goes_on = n > 0;

        if (f->dim[d] == 1)
            continue;
        goes_on = goes_on && f->to_stride[n - 1] == f->to_stride[d] * f->dim[d];
        for (int32_t k = 0; k < f->n_loads && goes_on; k++)
            goes_on = f->stride[k][n - 1] == f->stride[k][d] * f->dim[d];
        n += !goes_on;
        f->dim[n - 1] = goes_on ? f->dim[n - 1] * f->dim[d] : f->dim[d];
        f->to_stride[n - 1] = f->to_stride[d];
        for (int32_t k = 0; k < f->n_loads; k++)
            f->stride[k][n - 1] = f->stride[k][d];
    }
    f->rank = n;
}

_Static_assert((int)MPL_FUSED_LOADS <= MPL_CUDA_MAX_IN &&
                   (int)MPL_FUSED_STEPS <= MPL_CUDA_MAX_STEPS &&
                   (int)MPL_FUSED_DEPTH <= MPL_CUDA_MAX_STACK,
               "the kernel takes every chain");

static mpl_status fused(mpl_maker *m)
{
    mpl_status st = MPL_OK;
    mpl_cuda_part *p;
    mpl_cuda_fused *d;
    mpl_fused f;

    MPL_TRY(mpl_fused_read(m->ctx, m->g, m->op, &f));
    if (in_of(m, 0) != MPL_NONE)
        MPL_TRY(keep_base(m, &f.to));
    MPL_TRY(mpl_maker_add(m, MPL_CUDA_FUSED, mpl_count(&f.to.shape), &p));
    for (uint32_t i = 0; i < MPL_CUDA_MAX_IN; i++)
        p->in[i] = i < f.n_loads ? f.load[i].input : MPL_NONE;
    d = &p->kernel.as.fused;
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
        d->step[i] =
            (int16_t)(f.step[i].kind == MPL_N_OPS ? -1 - (int)f.step[i].of : (int)f.step[i].kind);
    merge_fused(d);
out:
    return st;
}

/* ---- the table ---- */

static mpl_status dropout(mpl_maker *m)
{
    mpl_status st = MPL_OK;
    mpl_cuda_part *p;

    MPL_TRY(mpl_maker_copy(m));
    if (out_of(m, 1) == MPL_NONE)
        goto out;
    MPL_TRY(mpl_maker_add(m, MPL_CUDA_FILL, mpl_count(out_shape(m, 1)), &p));
    p->out = 1;
    p->kernel.as.byte = 1;
out:
    return st;
}

mpl_describe *mpl_describe_move(mpl_op_kind kind)
{
    static const struct {
        mpl_op_kind kind;
        mpl_describe *describe;
    } known[] = {
        {MPL_OP_reshape, mpl_maker_copy},
        {MPL_OP_flatten, mpl_maker_copy},
        {MPL_OP_squeeze, mpl_maker_copy},
        {MPL_OP_unsqueeze, mpl_maker_copy},
        {MPL_OP_identity, mpl_maker_copy},
        {MPL_OP_reorder, mpl_maker_copy}, /* all layouts are plain here */
        {MPL_OP_dropout, dropout},
        {MPL_OP_concat, concat},
        {MPL_OP_split, split},
        {MPL_OP_slice, slice},
        {MPL_OP_transpose, transpose},
        {MPL_OP_expand, expand},
        {MPL_OP_tile, tile},
        {MPL_OP_pad, pad},
        {MPL_OP_gather, gather},
        {MPL_OP_gather_elements, gather},
        {MPL_OP_gather_nd, gather_nd},
        {MPL_OP_scatter_elements, scatter_elements},
        {MPL_OP_scatter_nd, scatter_nd},
        {MPL_OP_depth_to_space, depth_space},
        {MPL_OP_space_to_depth, depth_space},
        {MPL_OP_one_hot, one_hot},
        {MPL_OP_trilu, trilu},
        {MPL_OP_reverse_sequence, reverse_sequence},
        {MPL_OP_resize, resize},
        {MPL_OP_access, take_box},
        {MPL_OP_assign, assign},
        {MPL_OP_fused, fused},
    };

    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (known[i].kind == kind)
            return known[i].describe;
    return NULL;
}
