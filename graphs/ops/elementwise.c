/* elementwise.c -- framework of the element-wise operators. See elementwise_priv.h. */
#include "graphs/ops/elementwise_priv.h"

mpl_arith mpl_arith_of(mpl_type type)
{
    if (type == MPL_TYPE_f64)
        return MPL_IN_DOUBLE;
    if (type == MPL_TYPE_u64)
        return MPL_IN_UINT;
    return mpl_type_in(type, MPL_SET_FLOAT | MPL_SET_SMALL_FLOAT) ? MPL_IN_FLOAT : MPL_IN_INT;
}

static bool stored_so(mpl_arith arith, mpl_type type)
{
    static const mpl_type native[MPL_N_ARITH] = {MPL_TYPE_f32, MPL_TYPE_f64, MPL_TYPE_i64,
                                                 MPL_TYPE_u64};

    return type == native[arith];
}

/* step: 0 if the element is repeated, else 1. */
MPL_INLINE void load(mpl_type type, mpl_arith arith, const void *data, int64_t at, int64_t step,
                     int64_t n, mpl_piece *buffer)
{
    switch (arith) {
    case MPL_IN_FLOAT:
        for (int64_t k = 0; k < n; k++)
            buffer->f[k] = (float)mpl_get(type, data, at + k * step);
        break;
    case MPL_IN_DOUBLE:
        for (int64_t k = 0; k < n; k++)
            buffer->d[k] = mpl_get(type, data, at + k * step);
        break;
    default:
        for (int64_t k = 0; k < n; k++)
            buffer->i[k] = mpl_get_int(type, data, at + k * step);
    }
}

const void *mpl_piece_load(mpl_arith arith, mpl_type type, const void *data, int64_t at,
                           bool repeated, int64_t n, mpl_piece *buffer)
{
    int64_t step = repeated ? 0 : 1;

    if (stored_so(arith, type) && !repeated)
        return (const char *)data + (size_t)at * mpl_type_bytes(type);
    if (mpl_type_in(type, MPL_SET_FLOAT)) {
        MPL_FOR_FLOAT(type, load, arith, data, at, step, n, buffer)
    } else if (mpl_type_in(type, MPL_SET_SMALL)) {
        load(type, arith, data, at, step, n, buffer);
    } else {
        MPL_FOR_INT(type, load, arith, data, at, step, n, buffer)
    }
    return buffer;
}

MPL_INLINE void store(mpl_type type, mpl_arith arith, void *data, int64_t at, int64_t n,
                      const mpl_piece *buffer)
{
    switch (arith) {
    case MPL_IN_FLOAT:
        for (int64_t k = 0; k < n; k++)
            mpl_put(type, data, at + k, (double)buffer->f[k]);
        break;
    case MPL_IN_DOUBLE:
        for (int64_t k = 0; k < n; k++)
            mpl_put(type, data, at + k, buffer->d[k]);
        break;
    default:
        for (int64_t k = 0; k < n; k++)
            mpl_put_int(type, data, at + k, buffer->i[k]);
    }
}

void mpl_piece_store(mpl_arith arith, mpl_type type, void *data, int64_t at, int64_t n,
                     const mpl_piece *buffer)
{
    if (mpl_type_in(type, MPL_SET_FLOAT)) {
        mpl_assert(arith == MPL_IN_FLOAT || arith == MPL_IN_DOUBLE);
        MPL_FOR_FLOAT(type, store, arith, data, at, n, buffer)
    } else if (mpl_type_in(type, MPL_SET_SMALL)) {
        store(type, arith, data, at, n, buffer);
    } else {
        MPL_FOR_INT(type, store, arith, data, at, n, buffer)
    }
}

uint32_t mpl_row_begin(const mpl_shape *in, const mpl_shape *out)
{
    uint32_t lead = out->rank - in->rank, begin = out->rank;
    bool there = true, repeated = true;

    while (begin > 0) {
        uint32_t i = begin - 1;
        bool missing = i < lead || in->dim[i - lead] != out->dim[i];

        if (out->dim[i] != 1)
            missing ? (there = false) : (repeated = false);
        if (!there && !repeated)
            break;
        begin--;
    }
    return begin;
}

bool mpl_row_repeated(const mpl_shape *in, const mpl_shape *out, uint32_t begin)
{
    uint32_t lead = out->rank - in->rank;

    for (uint32_t i = begin; i < out->rank; i++)
        if (out->dim[i] != 1)
            return i < lead || in->dim[i - lead] == 1;
    return false;
}

/* Position in one or two operands. */
typedef struct walk {
    uint32_t rank;    /* outer dims */
    int64_t n;        /* row length */
    bool repeated[2]; /* along the row */
    int64_t index[MPL_MAX_RANK], stride[2][MPL_MAX_RANK], offset[2];
} walk;

static void walk_init(walk *w, const mpl_op_call *call, uint32_t n_in)
{
    const mpl_shape *out = &call->out[0].shape;

    memset(w, 0, sizeof *w);
    for (uint32_t k = 0; k < n_in; k++) {
        uint32_t begin = mpl_row_begin(&call->in[k].shape, out);

        w->rank = begin > w->rank ? begin : w->rank;
        mpl_broadcast_strides(&call->in[k].shape, out, w->stride[k]);
    }
    w->n = mpl_count_dims(out, w->rank, out->rank);
    for (uint32_t k = 0; k < n_in; k++)
        w->repeated[k] = mpl_row_repeated(&call->in[k].shape, out, w->rank);
}

void mpl_elementwise(const mpl_op_call *call, uint32_t n_in, mpl_arith arith,
                     const mpl_kernel kernel[MPL_N_ARITH], bool to_bool, const mpl_scalars *scalars)
{
    const mpl_tensor *in = call->in, *out = &call->out[0];
    mpl_piece buffer[3];
    walk w;
    bool straight = to_bool || stored_so(arith, out->type), whole = straight;
    int64_t at = 0, total = mpl_count(&out->shape);

    walk_init(&w, call, n_in);
    for (uint32_t k = 0; k < n_in; k++)
        whole = whole && stored_so(arith, in[k].type) && !w.repeated[k];
    while (at < total) {
        for (int64_t from = 0, n; from < w.n; from += n, at += n) {
            const void *x[2] = {NULL, NULL};
            void *y = straight ? (char *)out->data + (size_t)at * mpl_type_bytes(out->type)
                               : (void *)&buffer[2];

            n = whole || w.n - from < MPL_PIECE ? w.n - from : MPL_PIECE;
            for (uint32_t k = 0; k < n_in; k++)
                x[k] = mpl_piece_load(arith, in[k].type, in[k].data,
                                      w.offset[k] + (w.repeated[k] ? 0 : from), w.repeated[k], n,
                                      &buffer[k]);
            kernel[arith](x[0], x[1], y, n, scalars);
            if (!straight)
                mpl_piece_store(arith, out->type, out->data, at, n, &buffer[2]);
        }
        mpl_step(out->shape.dim, w.rank, w.index, n_in, w.stride, w.offset);
    }
}
