/* view.c -- same elements with another shape: shape rules, and the copy if a view needs memory. */
#include "graphs/ir/layout.h"
#include "graphs/ops/ops_priv.h"

mpl_status mpl_shape_same(mpl_ctx *ctx, const mpl_shape_call *call)
{
    (void)ctx;
    return mpl_like_input(call, 0, call->in_type[0]);
}

mpl_status mpl_shape_reorder(mpl_ctx *ctx, const mpl_shape_call *call)
{
    const char *mode = mpl_attr_text(call->graph, call->op, MPL_ATTR_mode, "");
    mpl_layout layout = mpl_layout_named(mode);

    MPL_PASS(mpl_check_type(ctx, call, 0, MPL_SET(f32)));
    MPL_PASS(mpl_check_rank(ctx, call, 0, 4, 4));
    if (layout == MPL_N_LAYOUTS)
        return MPL_REFUSE(ctx, "mode is '%.40s'; it must be 'channels_last', 'blocked8' or 'plain'",
                          mode);
    if (!mpl_layout_takes(layout, call->in_shape[0]))
        return MPL_REFUSE(ctx, "%" PRId64 " channels do not fill blocks of %d",
                          call->in_shape[0]->dim[1], MPL_BLOCK);
    return mpl_like_input(call, 0, call->in_type[0]);
}

mpl_status mpl_shape_dropout(mpl_ctx *ctx, const mpl_shape_call *call)
{
    (void)ctx;
    mpl_like_input(call, 0, call->in_type[0]);
    if (call->n_out > 1)
        mpl_like_input(call, 1, MPL_TYPE_bool);
    return MPL_OK;
}

/* The dim that -1 stands for: `count` divided by the `known` ones. */
static mpl_status infer_dim(mpl_ctx *ctx, uint64_t count, uint64_t known, int64_t *dim)
{
    if (known == 0)
        return MPL_REFUSE(ctx, "the dim given as -1 is open: the others hold no element");
    if (count % known != 0)
        return MPL_REFUSE(
            ctx, "%" PRIu64 " elements do not divide by %" PRIu64 " for the dim given as -1", count,
            known);
    *dim = (int64_t)(count / known);
    return MPL_OK;
}

mpl_status mpl_shape_reshape(mpl_ctx *ctx, const mpl_shape_call *call)
{
    const mpl_shape *in = call->in_shape[0];
    mpl_shape *to = &call->out_shape[0], known;
    uint32_t open = MPL_NONE;
    uint64_t count = (uint64_t)mpl_count(in), made;
    mpl_attr shape;
    char text[2][200];

    if (!mpl_attr_get(call->graph, call->op, MPL_ATTR_shape, &shape))
        return MPL_REFUSE(ctx, "attribute 'shape' is missing");
    if (shape.n > MPL_MAX_RANK)
        return MPL_REFUSE(ctx, "shape has %u dims; at most %d are supported", shape.n,
                          MPL_MAX_RANK);
    to->rank = shape.n;
    for (uint32_t i = 0; i < shape.n; i++) {
        int64_t dim = shape.ints[i];

        if (dim < -1 || (dim == 0 && i >= in->rank) || (dim == -1 && open != MPL_NONE))
            return MPL_REFUSE(
                ctx, "shape[%u] = %" PRId64 ": one -1, and 0 for the input's own dim, are allowed",
                i, dim);
        to->dim[i] = dim == 0 ? in->dim[i] : dim;
        open = dim == -1 ? i : open;
    }
    known = *to;
    if (open != MPL_NONE)
        known.dim[open] = 1;
    if (!mpl_shape_count(&known, &made))
        return MPL_REFUSE(ctx, "shape %s has more than 2^63 elements",
                          mpl_shape_text(&known, text[0]));
    if (open != MPL_NONE)
        MPL_PASS(infer_dim(ctx, count, made, &to->dim[open]));
    else if (made != count)
        return MPL_REFUSE(ctx, "%s cannot be reshaped to %s: the numbers of elements differ",
                          mpl_shape_text(in, text[0]), mpl_shape_text(to, text[1]));
    call->out_type[0] = call->in_type[0];
    return MPL_OK;
}

mpl_status mpl_shape_flatten(mpl_ctx *ctx, const mpl_shape_call *call)
{
    const mpl_shape *in = call->in_shape[0];
    int64_t axis = mpl_attr_int(call->graph, call->op, MPL_ATTR_axis, 1);
    mpl_shape half[2] = {{.rank = 0}, {.rank = 0}};
    uint64_t count[2];
    char text[200];

    if (axis < -(int64_t)in->rank || axis > (int64_t)in->rank)
        return MPL_REFUSE(ctx, "axis %" PRId64 " is outside [-%u,%u]", axis, in->rank, in->rank);
    axis += axis < 0 ? in->rank : 0;
    for (uint32_t i = 0; i < in->rank; i++)
        half[i >= axis].dim[half[i >= axis].rank++] = in->dim[i];
    for (int i = 0; i < 2; i++)
        if (!mpl_shape_count(&half[i], &count[i]))
            return MPL_REFUSE(ctx, "%s cannot be flattened: a dim would pass 2^63",
                              mpl_shape_text(in, text));
    call->out_shape[0] = (mpl_shape){2, {(int64_t)count[0], (int64_t)count[1]}};
    call->out_type[0] = call->in_type[0];
    return MPL_OK;
}

mpl_status mpl_shape_squeeze(mpl_ctx *ctx, const mpl_shape_call *call)
{
    const mpl_shape *in = call->in_shape[0];
    mpl_attr attr;
    uint32_t set = 0;

    if (mpl_attr_get(call->graph, call->op, MPL_ATTR_axes, &attr)) {
        MPL_PASS(mpl_axis_set(ctx, attr.ints, attr.n, in->rank, &set));
    } else {
        for (uint32_t i = 0; i < in->rank; i++)
            set |= (uint32_t)(in->dim[i] == 1) << i;
    }
    call->out_shape[0].rank = 0;
    for (uint32_t i = 0; i < in->rank; i++) {
        if ((set >> i & 1) == 0)
            call->out_shape[0].dim[call->out_shape[0].rank++] = in->dim[i];
        else if (in->dim[i] != 1)
            return MPL_REFUSE(ctx,
                              "axis %u has %" PRId64 " elements; only an axis of 1 can be squeezed",
                              i, in->dim[i]);
    }
    call->out_type[0] = call->in_type[0];
    return MPL_OK;
}

mpl_status mpl_shape_unsqueeze(mpl_ctx *ctx, const mpl_shape_call *call)
{
    const mpl_shape *in = call->in_shape[0];
    mpl_shape *to = &call->out_shape[0];
    mpl_attr attr;
    uint32_t set, from = 0;

    if (!mpl_attr_get(call->graph, call->op, MPL_ATTR_axes, &attr))
        return MPL_REFUSE(ctx, "attribute 'axes' is missing");
    if (attr.n > MPL_MAX_RANK - in->rank)
        return MPL_REFUSE(ctx, "%u dims and %u more; at most %d are supported", in->rank, attr.n,
                          MPL_MAX_RANK);
    to->rank = in->rank + attr.n;
    MPL_PASS(mpl_axis_set(ctx, attr.ints, attr.n, to->rank, &set));
    for (uint32_t i = 0; i < to->rank; i++)
        to->dim[i] = (set >> i & 1) != 0 ? 1 : in->dim[from++];
    call->out_type[0] = call->in_type[0];
    return MPL_OK;
}

mpl_status mpl_eval_dropout(mpl_ctx *ctx, const mpl_op_call *call)
{
    if (call->n_out > 1 && call->out[1].data != NULL)
        memset(call->out[1].data, 1, (size_t)mpl_count(&call->out[1].shape));
    return mpl_eval_copy(ctx, call);
}
