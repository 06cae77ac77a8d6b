/* move_strided.c -- access and assign (read and write boxes); view and X_into of programs. */
#include "graphs/ops/move/move_strided_priv.h"

bool mpl_has_index(const mpl_graph *g, mpl_op op)
{
    return mpl_attr_text(g, op, MPL_ATTR_index, NULL) != NULL;
}

mpl_status mpl_strided_check(mpl_ctx *ctx, const char *what, const mpl_strided *box,
                             const mpl_shape *in)
{
    uint64_t count;
    int64_t least, most;
    char text[400], dims[200];

    if (!mpl_shape_count(&box->shape, &count))
        return MPL_REFUSE(ctx, "%s has a negative dim, or more than 2^63 elements", what);
    if (count > 0 && (!mpl_strided_bounds(box, &least, &most) || most >= mpl_count(in)))
        return MPL_REFUSE(ctx, "%s %.150s reaches outside of the elements of %s", what,
                          mpl_strided_text(box, text), mpl_shape_text(in, dims));
    return MPL_OK;
}

mpl_status mpl_strided_of(mpl_ctx *ctx, const mpl_graph *g, mpl_op op, const mpl_shape *in,
                          mpl_strided *out)
{
    mpl_strided box = {.offset = mpl_attr_int(g, op, MPL_ATTR_offset, 0)};
    mpl_attr dims, strides;

    if (mpl_has_index(g, op)) {
        *out = mpl_strided_all(in);
        return mpl_strided_index(ctx, out, mpl_attr_text(g, op, MPL_ATTR_index, NULL));
    }
    if (!mpl_attr_get(g, op, MPL_ATTR_dims, &dims) ||
        !mpl_attr_get(g, op, MPL_ATTR_strides, &strides) || dims.n != strides.n ||
        dims.n > MPL_MAX_RANK)
        return MPL_REFUSE(
            ctx, "a box needs dims and strides, as many of each and at most %d, or an index",
            MPL_MAX_RANK);
    box.shape.rank = dims.n;
    for (uint32_t i = 0; i < dims.n; i++) {
        box.shape.dim[i] = dims.ints[i];
        box.stride[i] = strides.ints[i];
    }
    MPL_PASS(mpl_strided_check(ctx, "the box", &box, in));
    *out = box;
    return MPL_OK;
}

mpl_status mpl_shape_access(mpl_ctx *ctx, const mpl_shape_call *call)
{
    mpl_strided box;

    MPL_PASS(mpl_strided_of(ctx, call->graph, call->op, call->in_shape[0], &box));
    call->out_shape[0] = box.shape;
    call->out_type[0] = call->in_type[0];
    return MPL_OK;
}

mpl_status mpl_eval_access(mpl_ctx *ctx, const mpl_op_call *call)
{
    mpl_strided from;
    mpl_box box = {.rank = call->out[0].shape.rank};
    uint32_t bytes = mpl_type_bytes(call->in[0].type);

    MPL_PASS(mpl_strided_of(ctx, call->graph, call->op, &call->in[0].shape, &from));
    if (mpl_count(&from.shape) == 0)
        return MPL_OK;
    memcpy(box.dim, from.shape.dim, sizeof box.dim);
    memcpy(box.from_stride, from.stride, sizeof box.from_stride);
    mpl_strides(&from.shape, box.to_stride);
    mpl_move(&box, bytes, call->out[0].data, (const char *)call->in[0].data + from.offset * bytes);
    return MPL_OK;
}

mpl_status mpl_shape_assign(mpl_ctx *ctx, const mpl_shape_call *call)
{
    mpl_strided box;

    MPL_PASS(mpl_check_same_type(ctx, call, 1, 0));
    MPL_PASS(mpl_strided_of(ctx, call->graph, call->op, call->in_shape[0], &box));
    if (!mpl_strided_distinct(&box))
        return MPL_REFUSE(ctx, "the box has an element twice: which value would it get?");
    MPL_PASS(mpl_check_broadcast_to(ctx, "what is assigned", call->in_shape[1], &box.shape));
    return mpl_like_input(call, 0, call->in_type[0]);
}

mpl_status mpl_eval_assign(mpl_ctx *ctx, const mpl_op_call *call)
{
    mpl_strided to;
    mpl_box box;
    uint32_t bytes = mpl_type_bytes(call->in[0].type);
    size_t all = (size_t)mpl_count(&call->in[0].shape) * bytes;

    MPL_PASS(mpl_strided_of(ctx, call->graph, call->op, &call->in[0].shape, &to));
    if (call->out[0].data != call->in[0].data && all > 0)
        memcpy(call->out[0].data, call->in[0].data, all);
    if (mpl_count(&to.shape) == 0)
        return MPL_OK;
    box.rank = to.shape.rank;
    memcpy(box.dim, to.shape.dim, sizeof box.dim);
    memcpy(box.to_stride, to.stride, sizeof box.to_stride);
    mpl_broadcast_strides(&call->in[1].shape, &to.shape, box.from_stride);
    mpl_move(&box, bytes, (char *)call->out[0].data + to.offset * bytes, call->in[1].data);
    return MPL_OK;
}

uint64_t mpl_box_bytes(const mpl_graph *g, mpl_op op)
{
    mpl_value in = g->op_in[g->op_in_begin[op]], out = g->op_out[g->op_out_begin[op]];
    uint64_t size = mpl_type_bytes((mpl_type)g->value_type[out]);
    mpl_strided box = {.shape = g->value_shape[out]};
    mpl_ctx ctx; /* message unused: the shape rule has checked the box */
    mpl_attr dims;

    ctx = mpl_ctx_default();
    if (mpl_attr_get(g, op, MPL_ATTR_dims, &dims)) {
        box.shape.rank = dims.n;
        memcpy(box.shape.dim, dims.ints, dims.n * sizeof *dims.ints);
    } else if (mpl_strided_of(&ctx, g, op, &g->value_shape[in], &box) != MPL_OK) {
        mpl_assert(false);
    }
    return (uint64_t)mpl_count(&box.shape) * size;
}

/* ---- of programs ---- */

mpl_status mpl_shape_view(mpl_ctx *ctx, const mpl_shape_call *call)
{
    mpl_attr dims;

    if (mpl_has_index(call->graph, call->op))
        return mpl_shape_access(ctx, call);
    /* The box lies in the root, unknown here; build/views.c checks it. */
    if (!mpl_attr_get(call->graph, call->op, MPL_ATTR_dims, &dims) || dims.n > MPL_MAX_RANK)
        return MPL_REFUSE(ctx, "a view needs dims, at most %d, and strides, or an index",
                          MPL_MAX_RANK);
    call->out_shape[0].rank = dims.n;
    memcpy(call->out_shape[0].dim, dims.ints, dims.n * sizeof *dims.ints);
    call->out_type[0] = call->in_type[0];
    return MPL_OK;
}

mpl_status mpl_shape_into(mpl_ctx *ctx, const mpl_shape_call *call)
{
    bool copy = call->graph->op_kind[call->op] == MPL_OP_copy_into;

    if (call->n_in == 1)
        return mpl_check_type(ctx, call, 0, MPL_SET_FLOAT);
    MPL_PASS(mpl_check_type(ctx, call, 0, copy ? MPL_SET_ANY : MPL_SET_NUMBER));
    MPL_PASS(mpl_check_same_type(ctx, call, 1, 0));
    return mpl_check_broadcast_to(ctx, "what is written", call->in_shape[1], call->in_shape[0]);
}

mpl_status mpl_eval_copy_into(mpl_ctx *ctx, const mpl_op_call *call)
{
    const mpl_shape *to = &call->out[0].shape;
    mpl_box box = {.rank = to->rank};

    (void)ctx;
    memcpy(box.dim, to->dim, sizeof box.dim);
    mpl_strides(to, box.to_stride);
    mpl_broadcast_strides(&call->in[1].shape, to, box.from_stride);
    mpl_move(&box, mpl_type_bytes(call->in[0].type), call->out[0].data, call->in[1].data);
    return MPL_OK;
}
