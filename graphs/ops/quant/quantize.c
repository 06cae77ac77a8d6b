/* quantize.c -- quantize, dequantize, dynamic_quantize, and what quantised operators share.
 *
 * quantize: y = saturate(round(x / scale) + zero), in f32, ties to even; small floats are rounded
 * by their own rule. dequantize: (x - zero) * scale. scale and zero have one element, one for each
 * index of `axis` (1), or, with block_size, one for each block of so many along the axis.
 *
 * Source  ONNX, docs/Operators.md, QuantizeLinear and DequantizeLinear. */
#include "graphs/ops/lanes_priv.h"
#include "graphs/ops/quant/quant_priv.h"

/* ---- shared ---- */

mpl_requant mpl_requant_of(const mpl_op_call *call)
{
    mpl_type type = call->out[0].type;
    bool is_signed = mpl_type_in(type, MPL_SET_SIGNED | MPL_SET(i4) | MPL_SET(i2));
    bool whole = mpl_type_in(type, MPL_SET_INT | MPL_SET_SMALL_INT);
    double steps = ldexp(1, (int)mpl_type_bits(type)), least = is_signed ? -steps / 2 : 0;
    mpl_requant r = {type, whole, least, least + steps - 1};

    r.low = fmax(r.low, (double)mpl_attr_int(call->graph, call->op, MPL_ATTR_low, INT32_MIN));
    r.high = fmin(r.high, (double)mpl_attr_int(call->graph, call->op, MPL_ATTR_high, INT32_MAX));
    return r;
}

mpl_status mpl_q_check(mpl_ctx *ctx, const mpl_shape_call *call, uint32_t scale, uint32_t zero,
                       uint32_t of, int64_t most)
{
    char text[200];

    for (uint32_t k = 0; k < 2; k++) {
        uint32_t i = k == 0 ? scale : zero;
        int64_t n;

        if (!mpl_q_given(call, i))
            continue;
        MPL_PASS(mpl_check_type(ctx, call, i,
                                k == 0 ? MPL_SET_FLOAT : MPL_SET_QUANTISED | MPL_SET(i32)));
        n = mpl_count(call->in_shape[i]);
        if (n != 1 && n != most)
            return MPL_REFUSE(ctx, "input %u has dims %s; it must have one element%s", i,
                              mpl_shape_text(call->in_shape[i], text),
                              most > 0 ? ", or one a row or channel" : "");
        if (k == 1 && of != MPL_NONE)
            MPL_PASS(mpl_check_same_type(ctx, call, i, of));
    }
    return MPL_OK;
}

/* The type that attribute `to` names; `type` if absent. */
static mpl_status to_type(mpl_ctx *ctx, const mpl_shape_call *call, mpl_types set, mpl_type *type)
{
    const char *to = mpl_attr_text(call->graph, call->op, MPL_ATTR_to, NULL);

    if (to != NULL && (!mpl_type_find(to, type) || !mpl_type_in(*type, set)))
        return MPL_REFUSE(ctx, "attribute 'to' is '%.40s', which it cannot make", to);
    return MPL_OK;
}

mpl_status mpl_q_out_type(mpl_ctx *ctx, const mpl_shape_call *call)
{
    mpl_type *type = &call->out_type[0];
    bool bias = mpl_q_given(call, Q_BIAS);

    *type = MPL_TYPE_i32;
    if (mpl_q_given(call, Q_X_SCALE) != mpl_q_given(call, Q_W_SCALE) ||
        (mpl_q_given(call, Q_Y_SCALE) && !mpl_q_given(call, Q_X_SCALE)))
        return MPL_REFUSE(ctx, "a scale is missing: inputs %d and %d go together, and %d with them",
                          Q_X_SCALE, Q_W_SCALE, Q_Y_SCALE);
    if (mpl_q_given(call, Q_Y_SCALE)) {
        *type = mpl_q_given(call, Q_Y_ZERO) ? call->in_type[Q_Y_ZERO] : call->in_type[Q_X];
        MPL_PASS(to_type(ctx, call, MPL_SET_QUANTISED, type));
    } else if (mpl_q_given(call, Q_X_SCALE))
        *type = call->in_type[Q_X_SCALE];
    if (bias)
        MPL_PASS(mpl_check_type(ctx, call, Q_BIAS,
                                mpl_type_in(*type, MPL_SET_FLOAT) ? MPL_SET_FLOAT : MPL_SET_INDEX));
    return MPL_OK;
}

MPL_INLINE void load_ints(mpl_type type, const void *data, int64_t at, int64_t step, int64_t n,
                          int32_t zero, int32_t *to)
{
    for (int64_t i = 0; i < n; i++)
        to[i] = (int32_t)mpl_get_int(type, data, at + i * step) - zero;
}

void mpl_q_load(const mpl_tensor *tensor, int64_t at, int64_t step, int64_t n, int32_t zero,
                int32_t *to)
{
    if (tensor->type == MPL_TYPE_u8 && step == 1)
        load_ints(MPL_TYPE_u8, tensor->data, at, 1, n, zero, to);
    else if (tensor->type == MPL_TYPE_i8 && step == 1)
        load_ints(MPL_TYPE_i8, tensor->data, at, 1, n, zero, to);
    else if (mpl_type_in(tensor->type, MPL_SET_SMALL_INT))
        load_ints(tensor->type, tensor->data, at, step, n, zero, to);
    else
        MPL_FOR_INT(tensor->type, load_ints, tensor->data, at, step, n, zero, to)
}

/* ---- scales of one tensor ---- */

typedef struct scales {
    mpl_lanes lanes;
    int64_t block, n_blocks; /* 0: none */
    bool single;
} scales;

/* MPL_EINPUT: scale and zero, inputs 1 and 2, do not fit input 0. */
static mpl_status scales_of(mpl_ctx *ctx, const mpl_graph *g, mpl_op op, const mpl_shape *shape,
                            const mpl_shape *scale, scales *s)
{
    int64_t axis = mpl_attr_int(g, op, MPL_ATTR_axis, 1);
    mpl_shape want = *shape;
    uint32_t at = 0;
    char text[2][200];

    *s = (scales){.lanes = {1, mpl_count(shape), 1}};
    s->block = mpl_attr_int(g, op, MPL_ATTR_block_size, 0);
    s->single = s->block == 0 && mpl_count(scale) == 1 && scale->rank <= 1;
    if (s->block < 0)
        return MPL_REFUSE(ctx, "block_size %" PRId64 " is negative", s->block);
    if (s->single)
        return MPL_OK;
    MPL_PASS(mpl_axis(ctx, axis, shape->rank, &at));
    s->lanes = mpl_lanes_of(shape, at);
    if (s->block == 0)
        want = (mpl_shape){1, {shape->dim[at]}};
    else
        want.dim[at] = s->n_blocks = shape->dim[at] / s->block + (shape->dim[at] % s->block != 0);
    if (!mpl_shape_equal(&want, scale))
        return MPL_REFUSE(ctx, "scale has dims %s; it must be one element%s %s",
                          mpl_shape_text(scale, text[0]), s->block == 0 ? ", or" : " a block,",
                          mpl_shape_text(&want, text[1]));
    return MPL_OK;
}

/* Index of the scale of element i of lane (o, j). */
static int64_t scale_at(const scales *self, int64_t o, int64_t i, int64_t j)
{
    return self->single       ? 0
           : self->block == 0 ? i
                              : (o * self->n_blocks + i / self->block) * self->lanes.inner + j;
}

static mpl_status check_scales(mpl_ctx *ctx, const mpl_shape_call *call)
{
    scales s;

    MPL_PASS(mpl_check_type(ctx, call, 1, MPL_SET_SCALE | MPL_SET(i32)));
    MPL_PASS(scales_of(ctx, call->graph, call->op, call->in_shape[0], call->in_shape[1], &s));
    if (mpl_q_given(call, 2) && mpl_count(call->in_shape[2]) != mpl_count(call->in_shape[1]))
        return MPL_REFUSE(
            ctx, "zero has %" PRId64 " elements, and scale %" PRId64 "; they must be as many",
            mpl_count(call->in_shape[2]), mpl_count(call->in_shape[1]));
    return MPL_OK;
}

/* ---- quantize ---- */

mpl_status mpl_shape_quantize(mpl_ctx *ctx, const mpl_shape_call *call)
{
    const mpl_types set = MPL_SET_QUANTISED | MPL_SET_F8 | MPL_SET(f4e2m1);
    mpl_type type = mpl_q_given(call, 2) ? call->in_type[2] : MPL_TYPE_u8;

    MPL_PASS(mpl_check_type(ctx, call, 0, MPL_SET_FLOAT | MPL_SET(i32)));
    if (mpl_q_given(call, 2))
        MPL_PASS(mpl_check_type(ctx, call, 2, set));
    else
        MPL_PASS(to_type(ctx, call, set, &type));
    MPL_PASS(check_scales(ctx, call));
    return mpl_like_input(call, 0, type);
}

mpl_status mpl_eval_quantize(mpl_ctx *ctx, const mpl_op_call *call)
{
    const mpl_tensor *tensor = &call->in[0], *y = &call->out[0];
    bool saturate = mpl_attr_int(call->graph, call->op, MPL_ATTR_saturate, 1) != 0;
    mpl_requant r = mpl_requant_of(call);
    int64_t at = 0;
    scales s;

    MPL_PASS(scales_of(ctx, call->graph, call->op, &tensor->shape, &call->in[1].shape, &s));
    mpl_clear_tail(y);
    for (int64_t o = 0; o < s.lanes.outer; o++)
        for (int64_t i = 0; i < s.lanes.n; i++)
            for (int64_t j = 0; j < s.lanes.inner; j++, at++) {
                int64_t k = scale_at(&s, o, i, j);
                float q =
                    (float)mpl_get(tensor->type, tensor->data, at) / (float)mpl_q_at(call, 1, k, 1);

                if (r.whole)
                    mpl_requant_put(&r, y->data, at, q, mpl_q_at(call, 2, k, 0));
                else
                    mpl_put_small(y->type, y->data, at, (double)q + mpl_q_at(call, 2, k, 0),
                                  saturate, "up");
            }
    return MPL_OK;
}

/* ---- dequantize ---- */

mpl_status mpl_shape_dequantize(mpl_ctx *ctx, const mpl_shape_call *call)
{
    mpl_type type = call->in_type[1] == MPL_TYPE_f8e8m0 ? MPL_TYPE_f32 : call->in_type[1];

    MPL_PASS(mpl_check_type(ctx, call, 0,
                            MPL_SET_QUANTISED | MPL_SET(i32) | MPL_SET_F8 | MPL_SET(f4e2m1)));
    MPL_PASS(mpl_check_type(ctx, call, 1, MPL_SET_SCALE));
    if (mpl_q_given(call, 2))
        MPL_PASS(mpl_check_same_type(ctx, call, 2, 0));
    MPL_PASS(to_type(ctx, call, MPL_SET_FLOAT, &type));
    MPL_PASS(check_scales(ctx, call));
    return mpl_like_input(call, 0, type);
}

mpl_status mpl_eval_dequantize(mpl_ctx *ctx, const mpl_op_call *call)
{
    const mpl_tensor *tensor = &call->in[0], *y = &call->out[0];
    int64_t at = 0;
    scales s;

    MPL_PASS(scales_of(ctx, call->graph, call->op, &tensor->shape, &call->in[1].shape, &s));
    for (int64_t o = 0; o < s.lanes.outer; o++)
        for (int64_t i = 0; i < s.lanes.n; i++)
            for (int64_t j = 0; j < s.lanes.inner; j++, at++) {
                int64_t k = scale_at(&s, o, i, j);
                float steps =
                    (float)(mpl_get(tensor->type, tensor->data, at) - mpl_q_at(call, 2, k, 0));

                mpl_put(y->type, y->data, at, (double)(steps * (float)mpl_q_at(call, 1, k, 1)));
            }
    return MPL_OK;
}

/* ---- dynamic_quantize: y u8, its scale and its zero, which cover 0 and all of x ---- */

mpl_status mpl_shape_dynamic_quantize(mpl_ctx *ctx, const mpl_shape_call *call)
{
    MPL_PASS(mpl_check_type(ctx, call, 0, MPL_SET(f32)));
    for (uint32_t i = 1; i < 3; i++) {
        call->out_shape[i] = (mpl_shape){.rank = 0};
        call->out_type[i] = i == 1 ? MPL_TYPE_f32 : MPL_TYPE_u8;
    }
    return mpl_like_input(call, 0, MPL_TYPE_u8);
}

mpl_status mpl_eval_dynamic_quantize(mpl_ctx *ctx, const mpl_op_call *call)
{
    const float *x = call->in[0].data;
    int64_t n = mpl_count(&call->in[0].shape);
    float least = 0, most = 0, scale, zero;
    mpl_requant r = mpl_requant_of(call);

    (void)ctx;
    for (int64_t i = 0; i < n; i++) {
        least = x[i] < least ? x[i] : least;
        most = x[i] > most ? x[i] : most;
    }
    scale = most == least ? 1 : (most - least) / 255;
    zero = rintf(fminf(fmaxf(-least / scale, 0), 255));
    for (int64_t i = 0; i < n; i++)
        mpl_requant_put(&r, call->out[0].data, i, x[i] / scale, (double)zero);
    *(float *)call->out[1].data = scale;
    *(uint8_t *)call->out[2].data = (uint8_t)zero;
    return MPL_OK;
}
