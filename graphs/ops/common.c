/* common.c -- checks and shape arithmetic of several operators. See ops_priv.h. */
#include "graphs/ops/ops_priv.h"

mpl_status mpl_check_type(mpl_ctx *ctx, const mpl_shape_call *call, uint32_t i, mpl_types set)
{
    if (!mpl_type_in(call->in_type[i], set))
        return MPL_REFUSE(ctx, "input %u has type %s, which this operator does not take",
                          call->first_in + i, mpl_type_name(call->in_type[i]));
    return MPL_OK;
}

mpl_status mpl_check_same_type(mpl_ctx *ctx, const mpl_shape_call *call, uint32_t i, uint32_t j)
{
    if (call->in_type[i] != call->in_type[j])
        return MPL_REFUSE(ctx,
                          "input %u has type %s, but input %u has type %s; they must be the same",
                          call->first_in + i, mpl_type_name(call->in_type[i]), call->first_in + j,
                          mpl_type_name(call->in_type[j]));
    return MPL_OK;
}

mpl_status mpl_check_rank(mpl_ctx *ctx, const mpl_shape_call *call, uint32_t i, uint32_t least,
                          uint32_t most)
{
    char text[200];

    if (call->in_shape[i]->rank < least || call->in_shape[i]->rank > most)
        return MPL_REFUSE(ctx, "input %u has dims %s; it must have %u to %u dims",
                          call->first_in + i, mpl_shape_text(call->in_shape[i], text), least, most);
    return MPL_OK;
}

mpl_status mpl_check_channels(mpl_ctx *ctx, const mpl_shape_call *call, uint32_t first)
{
    const mpl_shape *shape = call->in_shape[0];
    int64_t n = shape->rank == 1 ? 1 : shape->dim[1];
    char text[200];

    for (uint32_t i = first; i < call->n_in; i++) {
        MPL_PASS(mpl_check_type(ctx, call, i, MPL_SET_FLOAT));
        if (call->in_shape[i]->rank != 1 || call->in_shape[i]->dim[0] != n)
            return MPL_REFUSE(
                ctx, "input %u has dims %s; it must be [%" PRId64 "], one element a channel", i,
                mpl_shape_text(call->in_shape[i], text), n);
    }
    return MPL_OK;
}

mpl_status mpl_shape_added_to(mpl_ctx *ctx, const mpl_shape_call *call,
                              mpl_status (*rule)(mpl_ctx *ctx, const mpl_shape_call *call))
{
    mpl_shape_call rest = *call;

    rest.n_in--;
    rest.in_shape++;
    rest.in_type++;
    rest.first_in++;
    MPL_PASS(rule(ctx, &rest));
    return mpl_check_same_type(ctx, call, 0, 1);
}

mpl_status mpl_like_input(const mpl_shape_call *call, uint32_t i, mpl_type type)
{
    call->out_shape[i] = *call->in_shape[0];
    call->out_type[i] = type;
    return MPL_OK;
}

mpl_status mpl_axis(mpl_ctx *ctx, int64_t axis, uint32_t rank, uint32_t *out)
{
    if (axis < -(int64_t)rank || axis >= (int64_t)rank)
        return MPL_REFUSE(ctx, "axis %" PRId64 " is outside of a tensor of %u dims", axis, rank);
    *out = (uint32_t)(axis < 0 ? axis + rank : axis);
    return MPL_OK;
}

mpl_status mpl_axis_attr(mpl_ctx *ctx, const mpl_shape_call *call, int64_t otherwise, uint32_t rank,
                         uint32_t *out)
{
    return mpl_axis(ctx, mpl_attr_int(call->graph, call->op, MPL_ATTR_axis, otherwise), rank, out);
}

uint32_t mpl_axis_of(const mpl_op_call *call, int64_t otherwise, uint32_t rank)
{
    int64_t axis = mpl_attr_int(call->graph, call->op, MPL_ATTR_axis, otherwise);

    mpl_assert(axis >= -(int64_t)rank && axis < (int64_t)rank); /* the shape rule has checked it */
    return (uint32_t)(axis < 0 ? axis + rank : axis);
}

int mpl_choice_of(const mpl_graph *g, mpl_op op, mpl_attr_key key, const char *const *names, int n)
{
    const char *text = mpl_attr_text(g, op, key, names[0]);
    int i = 0;

    while (i < n && strcmp(names[i], text) != 0)
        i++;
    return i;
}

mpl_status mpl_axis_set(mpl_ctx *ctx, const int64_t *axes, uint32_t n, uint32_t rank, uint32_t *set)
{
    uint32_t found = 0, axis = 0;

    for (uint32_t i = 0; i < n; i++) {
        MPL_PASS(mpl_axis(ctx, axes[i], rank, &axis));
        if ((found >> axis & 1) != 0)
            return MPL_REFUSE(ctx, "axis %" PRId64 " is given twice", axes[i]);
        found |= 1u << axis;
    }
    *set = found;
    return MPL_OK;
}

mpl_status mpl_broadcast(mpl_ctx *ctx, const mpl_shape *a, const mpl_shape *b, mpl_shape *out)
{
    mpl_shape both = {.rank = a->rank > b->rank ? a->rank : b->rank};
    char text_a[200], text_b[200];

    for (uint32_t i = 1; i <= both.rank; i++) {
        int64_t x = i <= a->rank ? a->dim[a->rank - i] : 1;
        int64_t y = i <= b->rank ? b->dim[b->rank - i] : 1;

        if (x != y && x != 1 && y != 1)
            return MPL_REFUSE(ctx, "dims %s and %s do not broadcast", mpl_shape_text(a, text_a),
                              mpl_shape_text(b, text_b));
        both.dim[both.rank - i] = x == 1 ? y : x;
    }
    *out = both;
    return MPL_OK;
}

mpl_status mpl_check_broadcast_to(mpl_ctx *ctx, const char *what, const mpl_shape *in,
                                  const mpl_shape *out)
{
    char text_in[200], text_out[200];
    bool fits = in->rank <= out->rank;

    for (uint32_t i = 1; i <= in->rank && fits; i++)
        fits = in->dim[in->rank - i] == 1 || in->dim[in->rank - i] == out->dim[out->rank - i];
    if (!fits)
        return MPL_REFUSE(ctx, "%s has dims %s, which do not broadcast to %s", what,
                          mpl_shape_text(in, text_in), mpl_shape_text(out, text_out));
    return MPL_OK;
}

void mpl_strides(const mpl_shape *shape, int64_t stride[MPL_MAX_RANK])
{
    uint64_t step = 1; /* unsigned: beside a dim of 0, others may be arbitrarily large */

    for (uint32_t i = shape->rank; i-- > 0;) {
        stride[i] = (int64_t)step;
        step *= (uint64_t)shape->dim[i];
    }
}

void mpl_broadcast_strides(const mpl_shape *in, const mpl_shape *out, int64_t stride[MPL_MAX_RANK])
{
    uint32_t lead = out->rank - in->rank;
    uint64_t step = 1;

    for (uint32_t i = out->rank; i-- > 0;) {
        bool repeated = i < lead || (in->dim[i - lead] == 1 && out->dim[i] != 1);

        stride[i] = repeated ? 0 : (int64_t)step;
        if (i >= lead)
            step *= (uint64_t)in->dim[i - lead];
    }
}

uint16_t mpl_narrow(double x, int mantissa, int least)
{
    const uint32_t infinity = (uint32_t)(2 - 2 * least + 1) << mantissa;
    uint64_t bits, significand, kept, rest, half;
    uint32_t sign;
    int exponent, shift;

    memcpy(&bits, &x, sizeof bits);
    sign = (uint32_t)(bits >> 63) << 15;
    exponent = (int)(bits >> 52 & 0x7ff) - 1023;
    significand = bits & ((UINT64_C(1) << 52) - 1);
    if (exponent == 1024)
        return (uint16_t)(sign | infinity | (significand != 0 ? 1u << (mantissa - 1) : 0));
    shift = 52 - mantissa + (exponent < least ? least - exponent : 0);
    if (shift > 54 || exponent == -1023)
        return (uint16_t)sign;
    if (exponent > 1 - least)
        return (uint16_t)(sign | infinity);
    significand |= UINT64_C(1) << 52;
    kept = significand >> shift;
    rest = significand & ((UINT64_C(1) << shift) - 1);
    half = UINT64_C(1) << (shift - 1);
    kept += rest > half || (rest == half && (kept & 1) != 0);
    /* The leading bit of a normal number, and a mantissa that rounds up, carry into the
     * exponent. */
    return (uint16_t)(sign | (((exponent < least ? 0 : (uint32_t)(exponent - least)) << mantissa) +
                              (uint32_t)kept));
}

mpl_status mpl_eval_copy(mpl_ctx *ctx, const mpl_op_call *call)
{
    uint64_t bytes = 0;

    (void)ctx;
    mpl_type_size(call->in[0].type, (uint64_t)mpl_count(&call->in[0].shape), &bytes);
    if (bytes > 0 && call->out[0].data != call->in[0].data)
        memcpy(call->out[0].data, call->in[0].data, bytes);
    return MPL_OK;
}
