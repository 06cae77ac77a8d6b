/* describe.c -- operations as launches of our own kernels: dims, strides and parameters worked out on the host. See
 * device.h. What is not here has no kernel and is refused by name. */
#include "graphs/ops/conv.h"
#include "runtime/cuda/device.h"

#include <math.h>

typedef struct maker {
    mpl_ctx *ctx;
    const mpl_graph *g;
    mpl_op op;
    mpl_op_kind kind;
    uint32_t n_in, n_out;
    mpl_cuda_part *part;
    size_t room;
    uint32_t n;
    const char *why; /* there is no kernel for it */
} maker;

/* ---- operands ------------------------------------------------------------------------------------------ */

static mpl_value in_of(const maker *m, uint32_t i)
{
    return i < m->n_in ? m->g->op_in[m->g->op_in_begin[m->op] + i] : MPL_NONE;
}

static mpl_value out_of(const maker *m, uint32_t i)
{
    return i < m->n_out ? m->g->op_out[m->g->op_out_begin[m->op] + i] : MPL_NONE;
}

static const mpl_shape *in_shape(const maker *m, uint32_t i)
{
    return &m->g->value_shape[in_of(m, i)];
}

static const mpl_shape *out_shape(const maker *m, uint32_t i)
{
    return &m->g->value_shape[out_of(m, i)];
}

static mpl_type type_of(const maker *m, mpl_value v)
{
    return (mpl_type)m->g->value_type[v];
}

static int64_t count(const mpl_shape *s, uint32_t from, uint32_t to)
{
    uint64_t n = 1; /* unsigned: beside a dim of 0 the others may be as large as they like */

    for (uint32_t i = from; i < to; i++)
        n *= (uint64_t)s->dim[i];
    return (int64_t)n;
}

static int64_t all(const mpl_shape *s)
{
    return count(s, 0, s->rank);
}

static int64_t attr_int(const maker *m, mpl_attr_key key, int64_t otherwise)
{
    return mpl_attr_int(m->g, m->op, key, otherwise);
}

static double attr_float(const maker *m, mpl_attr_key key, double otherwise)
{
    return mpl_attr_float(m->g, m->op, key, otherwise);
}

static bool attr_is(const maker *m, mpl_attr_key key, const char *otherwise, const char *text)
{
    return strcmp(mpl_attr_text(m->g, m->op, key, otherwise), text) == 0;
}

static uint32_t axis_of(int64_t axis, uint32_t rank)
{
    return (uint32_t)(axis < 0 ? axis + rank : axis);
}

static void strides_of(const mpl_shape *s, int64_t *stride)
{
    int64_t n = 1;

    for (uint32_t i = s->rank; i-- > 0;) {
        stride[i] = n;
        n *= s->dim[i];
    }
}

/* Strides of `in` along the dims of `out`, that it broadcasts to: 0 where it is repeated. */
static void broadcast_strides(const mpl_shape *in, const mpl_shape *out, int64_t *stride)
{
    int64_t own[MPL_MAX_RANK];

    strides_of(in, own);
    for (uint32_t i = 0; i < out->rank; i++) {
        uint32_t lead = out->rank - in->rank;

        stride[i] = i < lead || in->dim[i - lead] == 1 ? 0 : own[i - lead];
    }
}

/* A launch over n things that takes all inputs and output 0; the caller fills in the rest. */
static mpl_status add(maker *m, mpl_cuda_kernel_id id, int64_t n, mpl_cuda_part **out)
{
    mpl_status st = MPL_OK;
    mpl_cuda_part *p;

    MPL_TRY(mpl_reserve(m->ctx, m->part, m->room, (size_t)m->n + 1));
    p = &m->part[m->n++];
    *p = (mpl_cuda_part){.kernel = {.id = id, .kind = (int32_t)m->kind, .n = n}};
    p->kernel.n_in = (int32_t)(m->n_in < MPL_CUDA_MAX_IN ? m->n_in : MPL_CUDA_MAX_IN);
    p->kernel.out_type = (int32_t)type_of(m, out_of(m, 0));
    for (uint32_t i = 0; i < MPL_CUDA_MAX_IN; i++) {
        p->in[i] = in_of(m, i) != MPL_NONE ? i : MPL_NONE;
        p->kernel.type[i] = in_of(m, i) != MPL_NONE ? (int32_t)type_of(m, in_of(m, i)) : 0;
    }
    *out = p;
out:
    return st;
}

/* ---- element-wise ---------------------------------------------------------------------------------------- */

/* Neighbouring dims along which every operand goes on as before become one; those of 1 vanish. */
static void merge_dims(mpl_cuda_elementwise *e, int n_in)
{
    int32_t n = 0;

    for (int32_t d = 0; d < e->rank; d++) {
        bool goes_on = n > 0;

        if (e->dim[d] == 1)
            continue;
        for (int k = 0; k < n_in && goes_on; k++)
            goes_on = e->stride[k][n - 1] == e->stride[k][d] * e->dim[d];
        if (!goes_on)
            n++;
        e->dim[n - 1] = goes_on ? e->dim[n - 1] * e->dim[d] : e->dim[d];
        for (int k = 0; k < n_in; k++)
            e->stride[k][n - 1] = e->stride[k][d];
    }
    e->rank = n;
}

static void parameters(const maker *m, mpl_cuda_elementwise *e)
{
    static const struct {
        mpl_op_kind kind;
        mpl_attr_key key_a;
        double a;
        mpl_attr_key key_b;
        double b;
    } known[] = {
        {MPL_OP_leaky_relu, MPL_ATTR_alpha, 0.01, MPL_ATTR_beta, 0},
        {MPL_OP_thresholded_relu, MPL_ATTR_alpha, 1, MPL_ATTR_beta, 0},
        {MPL_OP_elu, MPL_ATTR_alpha, 1, MPL_ATTR_beta, 0},
        {MPL_OP_selu, MPL_ATTR_alpha, 1.67326319217681884765625, MPL_ATTR_gamma, 1.05070102214813232421875},
        {MPL_OP_celu, MPL_ATTR_alpha, 1, MPL_ATTR_beta, 0},
        {MPL_OP_swish, MPL_ATTR_alpha, 1, MPL_ATTR_beta, 0},
        {MPL_OP_hard_sigmoid, MPL_ATTR_alpha, 0.2, MPL_ATTR_beta, 0.5},
        {MPL_OP_shrink, MPL_ATTR_bias, 0, MPL_ATTR_lambd, 0.5},
        {MPL_OP_batch_norm, MPL_ATTR_epsilon, 1e-5, MPL_ATTR_beta, 0},
    };

    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (known[i].kind == m->kind) {
            e->a = attr_float(m, known[i].key_a, known[i].a);
            e->b = attr_float(m, known[i].key_b, known[i].b);
        }
    if (m->kind == MPL_OP_is_inf) {
        e->i = attr_int(m, MPL_ATTR_detect_negative, 1);
        e->j = attr_int(m, MPL_ATTR_detect_positive, 1);
    } else if (m->kind == MPL_OP_mod) {
        e->i = attr_int(m, MPL_ATTR_fmod, 0);
    } else if (m->kind == MPL_OP_gelu) {
        e->i = attr_is(m, MPL_ATTR_approximate, "none", "tanh");
    } else if (m->kind == MPL_OP_bit_shift) {
        e->i = attr_is(m, MPL_ATTR_direction, "", "LEFT");
    }
}

static mpl_status elementwise(maker *m)
{
    mpl_status st = MPL_OK;
    const mpl_shape *to = out_shape(m, 0);
    mpl_cuda_part *p;
    mpl_cuda_elementwise *e;

    if (m->n_in > MPL_CUDA_MAX_IN) {
        m->why = "the kernel takes at most 8 operands";
        return MPL_OK;
    }
    MPL_TRY(add(m, MPL_CUDA_ELEMENTWISE, all(to), &p));
    if (m->kind == MPL_OP_dropout || m->kind == MPL_OP_cast) /* one operand */
        p->kernel.n_in = 1;
    e = &p->kernel.as.elementwise;
    e->rank = (int32_t)to->rank;
    memcpy(e->dim, to->dim, sizeof e->dim);
    for (uint32_t i = 0; i < m->n_in; i++) {
        mpl_shape in;

        if (in_of(m, i) == MPL_NONE)
            continue;
        in = *in_shape(m, i);
        if (m->kind == MPL_OP_clip && i > 0)
            in.rank = 0;                             /* one element, whatever its dims */
        if (m->kind == MPL_OP_batch_norm && i > 0) { /* a vector along dim 1 */
            memset(e->stride[i], 0, sizeof e->stride[i]);
            e->stride[i][to->rank > 1 ? 1 : 0] = to->rank > 1;
        } else
            broadcast_strides(&in, to, e->stride[i]);
    }
    if (m->kind == MPL_OP_clip && m->n_in < 3)
        p->kernel.n_in = 3; /* the missing bounds are NULL */
    merge_dims(e, p->kernel.n_in);
    parameters(m, e);
out:
    return st;
}

/* ---- moving elements --------------------------------------------------------------------------------------- */

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
static mpl_status add_move(maker *m, uint32_t in, int64_t from, uint32_t out, int64_t to, uint32_t rank,
                           const int64_t *dim, const int64_t *to_stride, const int64_t *from_stride)
{
    mpl_status st = MPL_OK;
    uint32_t bytes = mpl_type_bytes(type_of(m, in_of(m, in)));
    mpl_cuda_part *p;
    mpl_cuda_move *v;
    uint64_t n = 1;

    for (uint32_t i = 0; i < rank; i++)
        n *= (uint64_t)dim[i];
    MPL_TRY(add(m, MPL_CUDA_MOVE, (int64_t)n, &p));
    for (uint32_t i = 0; i < MPL_CUDA_MAX_IN; i++)
        p->in[i] = i == 0 ? in : MPL_NONE;
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

static mpl_status copy(maker *m)
{
    int64_t n = all(out_shape(m, 0)), one = 1;

    return add_move(m, 0, 0, 0, 0, 1, &n, &one, &one);
}

static mpl_status concat(maker *m)
{
    mpl_status st = MPL_OK;
    const mpl_shape *to = out_shape(m, 0);
    uint32_t axis = axis_of(attr_int(m, MPL_ATTR_axis, 0), to->rank);
    int64_t at = 0, whole = count(to, axis, to->rank);

    for (uint32_t i = 0; i < m->n_in; i++) {
        int64_t row = count(in_shape(m, i), axis, to->rank);

        MPL_TRY(add_move(m, i, 0, 0, at, 2, (const int64_t[]){count(to, 0, axis), row},
                         (const int64_t[]){whole, 1}, (const int64_t[]){row, 1}));
        at += row;
    }
out:
    return st;
}

static mpl_status split(maker *m)
{
    mpl_status st = MPL_OK;
    const mpl_shape *in = in_shape(m, 0);
    uint32_t axis = axis_of(attr_int(m, MPL_ATTR_axis, 0), in->rank);
    int64_t at = 0, whole = count(in, axis, in->rank), n_before = count(in, 0, axis);
    uint32_t n_sizes;
    const int64_t *size = mpl_attr_ints(m->g, m->op, MPL_ATTR_split, &n_sizes);
    int64_t left = in->dim[axis], part = left / m->n_out + (left % m->n_out != 0);

    for (uint32_t i = 0; i < m->n_out; i++) {
        int64_t dim = size != NULL ? size[i] : i + 1 < m->n_out ? part : left;
        int64_t row = dim * count(in, axis + 1, in->rank);

        if (out_of(m, i) != MPL_NONE)
            MPL_TRY(add_move(m, 0, at, i, 0, 2, (const int64_t[]){n_before, row}, (const int64_t[]){row, 1},
                             (const int64_t[]){whole, 1}));
        at += row;
        left -= dim;
    }
out:
    return st;
}

static int64_t clamp(int64_t i, int64_t dim, int64_t least, int64_t most)
{
    i += i < 0 ? dim : 0;
    return i < least ? least : i > most ? most : i;
}

static mpl_status slice(maker *m)
{
    const mpl_shape *in = in_shape(m, 0), *to = out_shape(m, 0);
    uint32_t n, n_axes, n_steps;
    const int64_t *starts = mpl_attr_ints(m->g, m->op, MPL_ATTR_starts, &n);
    const int64_t *axes = mpl_attr_ints(m->g, m->op, MPL_ATTR_axes, &n_axes);
    const int64_t *steps = mpl_attr_ints(m->g, m->op, MPL_ATTR_steps, &n_steps);
    int64_t to_stride[MPL_MAX_RANK], from_stride[MPL_MAX_RANK], base = 0;

    strides_of(to, to_stride);
    strides_of(in, from_stride);
    if (all(to) == 0)
        return copy(m);
    for (uint32_t i = 0; i < n; i++) {
        uint32_t axis = axes != NULL ? axis_of(axes[i], in->rank) : i;
        int64_t step = steps != NULL ? steps[i] : 1, dim = in->dim[axis];

        base += clamp(starts[i], dim, 0, step > 0 ? dim : dim - 1) * from_stride[axis];
        from_stride[axis] = to->dim[axis] > 1 ? step * from_stride[axis] : 1;
    }
    return add_move(m, 0, base, 0, 0, to->rank, to->dim, to_stride, from_stride);
}

static mpl_status transpose(maker *m)
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

static mpl_status expand(maker *m)
{
    const mpl_shape *to = out_shape(m, 0);
    int64_t to_stride[MPL_MAX_RANK], from_stride[MPL_MAX_RANK];

    strides_of(to, to_stride);
    broadcast_strides(in_shape(m, 0), to, from_stride);
    return add_move(m, 0, 0, 0, 0, to->rank, to->dim, to_stride, from_stride);
}

/* Dims 2 i and 2 i + 1 of the box repeat and walk axis i. */
static mpl_status tile(maker *m)
{
    const mpl_shape *in = in_shape(m, 0), *to = out_shape(m, 0);
    int64_t dim[MPL_MAX_RANK], to_stride[MPL_MAX_RANK], from_stride[MPL_MAX_RANK], own[MPL_MAX_RANK];
    int64_t stride[MPL_MAX_RANK];
    uint32_t n = 0;

    if (all(to) == 0)
        return copy(m);
    strides_of(to, stride);
    strides_of(in, own);
    for (uint32_t i = 0; i < in->rank; i++) {
        int64_t repeats = to->dim[i] / in->dim[i];

        if (n + 2 > MPL_MAX_RANK) {
            m->why = "the kernel repeats at most 4 dims";
            return MPL_OK;
        }
        if (repeats > 1)
            dim[n] = repeats, to_stride[n] = stride[i] * in->dim[i], from_stride[n++] = 0;
        if (in->dim[i] > 1)
            dim[n] = in->dim[i], to_stride[n] = stride[i], from_stride[n++] = own[i];
    }
    return add_move(m, 0, 0, 0, 0, n, dim, to_stride, from_stride);
}

/* Both are one permutation of [batch, row in block, column in block, channel, row, column]. */
static mpl_status depth_space(maker *m)
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

static mpl_status pad(maker *m)
{
    static const char *const names[] = {"constant", "edge", "reflect", "wrap"};
    mpl_status st = MPL_OK;
    const mpl_shape *in = in_shape(m, 0), *to = out_shape(m, 0);
    uint32_t n, n_axes;
    const int64_t *pads = mpl_attr_ints(m->g, m->op, MPL_ATTR_pads, &n);
    const int64_t *axes = mpl_attr_ints(m->g, m->op, MPL_ATTR_axes, &n_axes);
    mpl_cuda_part *p;
    mpl_cuda_pad *d;

    MPL_TRY(add(m, MPL_CUDA_PAD, all(to), &p));
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

static mpl_status gather(maker *m)
{
    mpl_status st = MPL_OK;
    const mpl_shape *in = in_shape(m, 0), *index = in_shape(m, 1);
    uint32_t axis = axis_of(attr_int(m, MPL_ATTR_axis, 0), in->rank);
    mpl_cuda_part *p;
    mpl_cuda_gather *d;

    MPL_TRY(add(m, MPL_CUDA_GATHER, all(out_shape(m, 0)), &p));
    d = &p->kernel.as.gather;
    d->bytes = (int32_t)mpl_type_bytes(type_of(m, in_of(m, 0)));
    d->axis_dim = in->dim[axis];
    d->n_index = all(index);
    d->inner = count(in, axis + 1, in->rank);
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

/* ---- reductions, lanes --------------------------------------------------------------------------------------- */

/* Bit i: axis i is reduced. */
static uint32_t reduced_axes(const maker *m, uint32_t rank)
{
    uint32_t n, set = 0;
    const int64_t *axes = mpl_attr_ints(m->g, m->op, MPL_ATTR_axes, &n);

    if (m->kind == MPL_OP_global_avg_pool || m->kind == MPL_OP_global_max_pool ||
        m->kind == MPL_OP_global_lp_pool)
        return ((1u << rank) - 1) & ~3u;
    if (axes == NULL)
        return (1u << rank) - 1;
    for (uint32_t i = 0; i < n; i++)
        set |= 1u << axis_of(axes[i], rank);
    return set;
}

static void put_dim(int32_t *n, int64_t *dim, int64_t *stride, int64_t size, int64_t step)
{
    if (size == 1)
        return;
    if (*n > 0 && stride[*n - 1] == size * step) {
        dim[*n - 1] *= size;
        stride[*n - 1] = step;
    } else {
        dim[*n] = size;
        stride[(*n)++] = step;
    }
}

static mpl_status reduce(maker *m)
{
    mpl_status st = MPL_OK;
    const mpl_shape *in = in_shape(m, 0);
    uint32_t set = reduced_axes(m, in->rank);
    int64_t stride[MPL_MAX_RANK];
    mpl_cuda_part *p;
    mpl_cuda_reduce *r;

    MPL_TRY(add(m, MPL_CUDA_REDUCE, all(out_shape(m, 0)), &p));
    r = &p->kernel.as.reduce;
    strides_of(in, stride);
    r->n = 1;
    for (uint32_t i = 0; i < in->rank; i++)
        if ((set >> i & 1) != 0) {
            r->n = (int64_t)((uint64_t)r->n * (uint64_t)in->dim[i]);
            put_dim(&r->n_reduced, r->reduced_dim, r->reduced_stride, in->dim[i], stride[i]);
        } else {
            put_dim(&r->n_kept, r->kept_dim, r->kept_stride, in->dim[i], stride[i]);
        }
    r->p = (double)attr_int(m, MPL_ATTR_p, 2);
    r->whole = type_of(m, in_of(m, 0)) > MPL_TYPE_bf16 && m->kind != MPL_OP_reduce_l2 &&
               m->kind != MPL_OP_reduce_log_sum && m->kind != MPL_OP_reduce_log_sum_exp;
out:
    return st;
}

static mpl_status lanes(maker *m, mpl_cuda_kernel_id id, int64_t axis_otherwise)
{
    mpl_status st = MPL_OK;
    const mpl_shape *in = in_shape(m, 0);
    uint32_t axis = axis_of(attr_int(m, MPL_ATTR_axis, axis_otherwise), in->rank);
    mpl_cuda_part *p;
    mpl_cuda_lanes *l;

    MPL_TRY(add(m, id, 0, &p));
    l = &p->kernel.as.lanes;
    l->n = in->dim[axis];
    l->inner = count(in, axis + 1, in->rank);
    l->last = attr_int(m, MPL_ATTR_select_last_index, 0) != 0;
    l->exclusive = attr_int(m, MPL_ATTR_exclusive, 0) != 0;
    l->reverse = attr_int(m, MPL_ATTR_reverse, 0) != 0;
    p->kernel.n = l->n > 0 ? count(in, 0, axis) * l->inner : 0;
out:
    return st;
}

static mpl_status arg(maker *m)
{
    return lanes(m, MPL_CUDA_ARG, 0);
}

static mpl_status cumsum(maker *m)
{
    return lanes(m, MPL_CUDA_CUMSUM, 0);
}

static mpl_status softmax(maker *m)
{
    return lanes(m, MPL_CUDA_SOFTMAX, -1);
}

/* ---- normalisation --------------------------------------------------------------------------------------------- */

static mpl_status norm(maker *m)
{
    mpl_status st = MPL_OK;
    const mpl_shape *in = in_shape(m, 0);
    bool by_row = m->kind == MPL_OP_layer_norm || m->kind == MPL_OP_rms_norm;
    int64_t groups = m->kind == MPL_OP_instance_norm ? in->dim[1] : attr_int(m, MPL_ATTR_num_groups, 1);
    uint32_t axis = by_row ? axis_of(attr_int(m, MPL_ATTR_axis, -1), in->rank) : 0;
    mpl_cuda_part *p;
    mpl_cuda_norm *d;

    MPL_TRY(add(m, MPL_CUDA_NORM, 0, &p));
    d = &p->kernel.as.norm;
    if (by_row)
        d->n = count(in, axis, in->rank);
    else if (all(in) > 0)
        d->n = in->dim[1] / groups * count(in, 2, in->rank);
    p->kernel.n = by_row ? count(in, 0, axis) : d->n > 0 ? in->dim[0] * groups : 0;
    p->all_outputs = true;
    d->about_mean = m->kind != MPL_OP_rms_norm;
    d->rank = (int32_t)in->rank;
    memcpy(d->dim, in->dim, sizeof d->dim);
    d->epsilon = attr_float(m, MPL_ATTR_epsilon, 1e-5);
    for (uint32_t i = 1; i <= 2; i++)
        if (!by_row)
            d->stride[i - 1][1] = 1;
        else if (in_of(m, i) != MPL_NONE)
            broadcast_strides(in_shape(m, i), in, d->stride[i - 1]);
out:
    return st;
}

static mpl_status lrn(maker *m)
{
    mpl_status st = MPL_OK;
    const mpl_shape *in = in_shape(m, 0);
    int64_t size = attr_int(m, MPL_ATTR_size, 1);
    mpl_cuda_part *p;

    MPL_TRY(add(m, MPL_CUDA_LRN, all(in), &p));
    p->kernel.as.lrn = (mpl_cuda_lrn){
        .channels = in->dim[1],
        .inner = count(in, 2, in->rank),
        .below = (size - 1) / 2,
        .above = size / 2,
        .factor = attr_float(m, MPL_ATTR_alpha, 1e-4) / (double)size,
        .beta = attr_float(m, MPL_ATTR_beta, 0.75),
        .bias = attr_float(m, MPL_ATTR_bias, 1),
    };
out:
    return st;
}

/* ---- windows, products --------------------------------------------------------------------------------------------- */

/* The last n of three numbers; as they are where the attribute is missing. */
static void read_last(const maker *m, mpl_attr_key key, uint32_t n, int64_t *to)
{
    uint32_t given;
    const int64_t *ints = mpl_attr_ints(m->g, m->op, key, &given);

    for (uint32_t i = 0; i < n && given == n; i++)
        to[3 - n + i] = ints[i];
}

static mpl_status add_window(maker *m, mpl_cuda_kernel_id id, mpl_cuda_window **out)
{
    mpl_status st = MPL_OK;
    const mpl_shape *in = in_shape(m, mpl_conv_first(m->kind)), *to = out_shape(m, 0);
    uint32_t n = in->rank - 2, n_pads;
    const int64_t *pads = mpl_attr_ints(m->g, m->op, MPL_ATTR_pads, &n_pads);
    mpl_cuda_part *p;
    mpl_cuda_window *w;

    MPL_TRY(add(m, id, all(to), &p));
    w = &p->kernel.as.window;
    *w = (mpl_cuda_window){{1, 1, 1}, {1, 1, 1}, {1, 1, 1}, {1, 1, 1}, {1, 1, 1}, {0},       {0},     0,
                           0,         1,         0,         0,         0,         -INFINITY, INFINITY};
    for (uint32_t i = 0; i < n; i++) {
        w->in[3 - n + i] = in->dim[2 + i];
        w->out[3 - n + i] = to->dim[2 + i];
        if (n_pads == 2 * n) {
            w->before[3 - n + i] = pads[i];
            w->after[3 - n + i] = pads[n + i];
        }
    }
    read_last(m, MPL_ATTR_kernel_shape, n, w->kernel);
    read_last(m, MPL_ATTR_strides, n, w->stride);
    read_last(m, MPL_ATTR_dilations, n, w->dilation);
    *out = w;
out:
    return st;
}

/* What conv_sum adds stands behind x, weight and bias. */
static void sum_last(const maker *m, mpl_cuda_part *p)
{
    for (uint32_t i = 0; i < 4; i++) {
        uint32_t from = (i + 1) % 4;

        p->in[i] = in_of(m, from) != MPL_NONE ? from : MPL_NONE;
        p->kernel.type[i] = in_of(m, from) != MPL_NONE ? (int32_t)type_of(m, in_of(m, from)) : 0;
    }
    p->kernel.n_in = 4;
}

static mpl_status conv(maker *m)
{
    mpl_status st = MPL_OK;
    const uint32_t first = mpl_conv_first(m->kind);
    const mpl_shape *in = in_shape(m, first), *weight = in_shape(m, first + 1), *to = out_shape(m, 0);
    mpl_activation activation = mpl_activation_of(m->g, m->op);
    mpl_attr attr;
    mpl_cuda_window *w;

    if (mpl_attr_get(m->g, m->op, MPL_ATTR_output_shape, &attr)) {
        m->why = "the kernel does not take output_shape";
        return MPL_OK;
    }
    MPL_TRY(add_window(m, MPL_CUDA_CONV, &w));
    for (uint32_t i = 2; i < weight->rank; i++)
        w->kernel[3 - weight->rank + i] = weight->dim[i];
    w->transposed = m->kind == MPL_OP_conv_transpose;
    w->group = attr_int(m, MPL_ATTR_group, 1);
    w->in_channels = in->dim[1] / w->group;
    w->out_channels = to->dim[1] / w->group;
    if (activation != MPL_ACT_NONE)
        w->least = 0;
    if (activation == MPL_ACT_RELU6)
        w->most = 6;
    if (first > 0)
        sum_last(m, &m->part[m->n - 1]);
out:
    return st;
}

static mpl_status pool(maker *m)
{
    mpl_status st = MPL_OK;
    mpl_cuda_window *w;

    if (out_of(m, 1) != MPL_NONE || type_of(m, in_of(m, 0)) > MPL_TYPE_bf16) {
        m->why = "the kernel pools floating types, and gives no indices";
        return MPL_OK;
    }
    MPL_TRY(add_window(m, MPL_CUDA_POOL, &w));
    w->padded = attr_int(m, MPL_ATTR_count_include_pad, 0) != 0;
    w->p = (double)attr_int(m, MPL_ATTR_p, 2);
out:
    return st;
}

static mpl_status gemm(maker *m)
{
    mpl_status st = MPL_OK;
    bool trans_a = attr_int(m, MPL_ATTR_trans_a, 0) != 0, trans_b = attr_int(m, MPL_ATTR_trans_b, 0) != 0;
    const int64_t *a = in_shape(m, 0)->dim, *b = in_shape(m, 1)->dim;
    int64_t stride[MPL_MAX_RANK] = {0};
    mpl_cuda_part *p;
    mpl_cuda_product *d;

    MPL_TRY(add(m, MPL_CUDA_PRODUCT, all(out_shape(m, 0)), &p));
    d = &p->kernel.as.product;
    d->rows = a[trans_a], d->terms = a[!trans_a], d->columns = b[!trans_b];
    d->a_row = trans_a ? 1 : a[1], d->a_column = trans_a ? a[1] : 1;
    d->b_row = trans_b ? 1 : b[1], d->b_column = trans_b ? b[1] : 1;
    d->alpha = attr_float(m, MPL_ATTR_alpha, 1);
    d->beta = attr_float(m, MPL_ATTR_beta, 1);
    if (in_of(m, 2) != MPL_NONE)
        broadcast_strides(in_shape(m, 2), out_shape(m, 0), stride);
    d->c_row = stride[0], d->c_column = stride[1];
out:
    return st;
}

static mpl_status matmul(maker *m)
{
    mpl_status st = MPL_OK;
    mpl_shape a = *in_shape(m, 0), b = *in_shape(m, 1), stack_a, stack_b, stack = *out_shape(m, 0);
    int64_t matrix_a, matrix_b;
    mpl_cuda_part *p;
    mpl_cuda_product *d;

    MPL_TRY(add(m, MPL_CUDA_PRODUCT, all(&stack), &p));
    d = &p->kernel.as.product;
    stack.rank -= (a.rank > 1) + (b.rank > 1);
    if (a.rank == 1)
        a = (mpl_shape){2, {1, a.dim[0]}};
    if (b.rank == 1)
        b = (mpl_shape){2, {b.dim[0], 1}};
    d->rows = a.dim[a.rank - 2];
    d->columns = d->b_row = b.dim[b.rank - 1];
    d->terms = d->a_row = a.dim[a.rank - 1];
    d->a_column = d->b_column = 1;
    d->alpha = 1;
    stack_a = a, stack_a.rank -= 2;
    stack_b = b, stack_b.rank -= 2;
    matrix_a = d->rows * d->terms, matrix_b = d->terms * d->columns;
    d->rank = (int32_t)stack.rank;
    memcpy(d->dim, stack.dim, sizeof d->dim);
    broadcast_strides(&stack_a, &stack, d->a_stack);
    broadcast_strides(&stack_b, &stack, d->b_stack);
    for (uint32_t i = 0; i < stack.rank; i++)
        d->a_stack[i] *= matrix_a, d->b_stack[i] *= matrix_b;
out:
    return st;
}

static mpl_status dropout(maker *m)
{
    if (out_of(m, 1) != MPL_NONE) {
        m->why = "the kernel gives no mask";
        return MPL_OK;
    }
    return copy(m);
}

/* ---- the table ------------------------------------------------------------------------------------------------------ */

typedef mpl_status describe(maker *m);

/* Those that the element-wise kernels have a case for: one that is added to ops.def must not run as another one. */
static bool is_elementwise(mpl_op_kind kind)
{
    static const mpl_op_kind known[] = {
        MPL_OP_relu,    MPL_OP_leaky_relu,  MPL_OP_elu,           MPL_OP_selu,        MPL_OP_celu,
        MPL_OP_gelu,    MPL_OP_sigmoid,     MPL_OP_hard_sigmoid,  MPL_OP_hard_swish,  MPL_OP_swish,
        MPL_OP_mish,    MPL_OP_softplus,    MPL_OP_softsign,      MPL_OP_tanh,        MPL_OP_thresholded_relu,
        MPL_OP_shrink,  MPL_OP_exp,         MPL_OP_log,           MPL_OP_sqrt,        MPL_OP_neg,
        MPL_OP_abs,     MPL_OP_reciprocal,  MPL_OP_floor,         MPL_OP_ceil,        MPL_OP_round,
        MPL_OP_sign,    MPL_OP_erf,         MPL_OP_sin,           MPL_OP_cos,         MPL_OP_tan,
        MPL_OP_asin,    MPL_OP_acos,        MPL_OP_atan,          MPL_OP_sinh,        MPL_OP_cosh,
        MPL_OP_asinh,   MPL_OP_acosh,       MPL_OP_atanh,         MPL_OP_not,         MPL_OP_is_nan,
        MPL_OP_is_inf,  MPL_OP_bitwise_not, MPL_OP_cast,          MPL_OP_clip,        MPL_OP_add,
        MPL_OP_sub,     MPL_OP_mul,         MPL_OP_div,           MPL_OP_pow,         MPL_OP_mod,
        MPL_OP_prelu,   MPL_OP_bitwise_and, MPL_OP_bitwise_or,    MPL_OP_bitwise_xor, MPL_OP_bit_shift,
        MPL_OP_and,     MPL_OP_or,          MPL_OP_xor,           MPL_OP_equal,       MPL_OP_less,
        MPL_OP_greater, MPL_OP_less_equal,  MPL_OP_greater_equal, MPL_OP_min,         MPL_OP_max,
        MPL_OP_sum,     MPL_OP_mean,        MPL_OP_where,
    };

    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (known[i] == kind)
            return true;
    return false;
}

static bool is_reduction(mpl_op_kind kind)
{
    static const mpl_op_kind known[] = {
        MPL_OP_reduce_sum,         MPL_OP_reduce_mean,       MPL_OP_reduce_max,      MPL_OP_reduce_min,
        MPL_OP_reduce_prod,        MPL_OP_reduce_l1,         MPL_OP_reduce_l2,       MPL_OP_reduce_log_sum,
        MPL_OP_reduce_log_sum_exp, MPL_OP_reduce_sum_square, MPL_OP_global_avg_pool, MPL_OP_global_max_pool,
        MPL_OP_global_lp_pool,
    };

    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (known[i] == kind)
            return true;
    return false;
}

static describe *describe_of(mpl_op_kind kind)
{
    if (is_elementwise(kind))
        return elementwise;
    if (is_reduction(kind))
        return reduce;
    switch (kind) {
    case MPL_OP_batch_norm:
        return elementwise;
    case MPL_OP_arg_max:
    case MPL_OP_arg_min:
        return arg;
    case MPL_OP_cumsum:
        return cumsum;
    case MPL_OP_softmax:
    case MPL_OP_log_softmax:
    case MPL_OP_hardmax:
        return softmax;
    case MPL_OP_layer_norm:
    case MPL_OP_rms_norm:
    case MPL_OP_instance_norm:
    case MPL_OP_group_norm:
        return norm;
    case MPL_OP_lrn:
        return lrn;
    case MPL_OP_conv:
    case MPL_OP_conv_act:
    case MPL_OP_conv_sum:
    case MPL_OP_conv_transpose:
        return conv;
    case MPL_OP_max_pool:
    case MPL_OP_avg_pool:
    case MPL_OP_lp_pool:
        return pool;
    case MPL_OP_matmul:
        return matmul;
    case MPL_OP_gemm:
        return gemm;
    case MPL_OP_reshape:
    case MPL_OP_flatten:
    case MPL_OP_squeeze:
    case MPL_OP_unsqueeze:
    case MPL_OP_identity:
    case MPL_OP_reorder: /* all layouts are plain here */
        return copy;
    case MPL_OP_dropout:
        return dropout;
    case MPL_OP_concat:
        return concat;
    case MPL_OP_split:
        return split;
    case MPL_OP_slice:
        return slice;
    case MPL_OP_transpose:
        return transpose;
    case MPL_OP_expand:
        return expand;
    case MPL_OP_tile:
        return tile;
    case MPL_OP_pad:
        return pad;
    case MPL_OP_gather:
    case MPL_OP_gather_elements:
        return gather;
    case MPL_OP_depth_to_space:
    case MPL_OP_space_to_depth:
        return depth_space;
    default:
        return NULL;
    }
}

bool mpl_cuda_has_kernel(mpl_op_kind kind)
{
    return describe_of(kind) != NULL;
}

mpl_status mpl_cuda_describe(mpl_ctx *ctx, const mpl_graph *g, mpl_op op, mpl_cuda_part **part, uint32_t *n,
                             const char **why)
{
    mpl_status st = MPL_OK;
    maker m = {
        .ctx = ctx,
        .g = g,
        .op = op,
        .kind = (mpl_op_kind)g->op_kind[op],
        .n_in = g->op_in_begin[op + 1] - g->op_in_begin[op],
        .n_out = g->op_out_begin[op + 1] - g->op_out_begin[op],
        .why = "there is no kernel for this operator",
    };
    describe *how = describe_of(m.kind);

    *part = NULL, *n = 0;
    if (how != NULL) {
        m.why = NULL;
        MPL_TRY(how(&m));
    }
    if (m.why == NULL) {
        *part = m.part, m.part = NULL;
        *n = m.n;
    }
    *why = m.why;
out:
    mpl_free(ctx, m.part);
    return st;
}
