/* unary.c -- element-wise operators of one operand: functions, predicates, casts, clip. */
#include "graphs/ops/elementwise_priv.h"

#include <float.h>
#include <tgmath.h>

/* ---- shape rules ---- */

static mpl_types unary_types(mpl_op_kind kind)
{
    switch (kind) {
    case MPL_OP_abs:
    case MPL_OP_sign:
    case MPL_OP_shrink:
    case MPL_OP_erf:
        return MPL_SET_NUMBER;
    case MPL_OP_relu:
    case MPL_OP_neg:
        return MPL_SET_FLOAT | MPL_SET_SIGNED;
    default:
        return MPL_SET_FLOAT;
    }
}

mpl_status mpl_shape_unary(mpl_ctx *ctx, const mpl_shape_call *call)
{
    mpl_op_kind kind = (mpl_op_kind)call->graph->op_kind[call->op];
    const char *text = mpl_attr_text(call->graph, call->op, MPL_ATTR_approximate, "none");

    MPL_PASS(mpl_check_type(ctx, call, 0, unary_types(kind)));
    if (kind == MPL_OP_gelu && strcmp(text, "none") != 0 && strcmp(text, "tanh") != 0)
        return MPL_REFUSE(ctx, "approximate is '%s'; it must be 'none' or 'tanh'", text);
    return mpl_like_input(call, 0, call->in_type[0]);
}

static mpl_status same_of(mpl_ctx *ctx, const mpl_shape_call *call, mpl_types set)
{
    MPL_PASS(mpl_check_type(ctx, call, 0, set));
    return mpl_like_input(call, 0, call->in_type[0]);
}

mpl_status mpl_shape_unary_bool(mpl_ctx *ctx, const mpl_shape_call *call)
{
    return same_of(ctx, call, MPL_SET(bool));
}

mpl_status mpl_shape_unary_int(mpl_ctx *ctx, const mpl_shape_call *call)
{
    return same_of(ctx, call, MPL_SET_INT);
}

mpl_status mpl_shape_predicate(mpl_ctx *ctx, const mpl_shape_call *call)
{
    MPL_PASS(mpl_check_type(ctx, call, 0, MPL_SET_FLOAT));
    return mpl_like_input(call, 0, MPL_TYPE_bool);
}

static const char *const round_modes[] = {"up", "down", "nearest"};

mpl_status mpl_shape_cast(mpl_ctx *ctx, const mpl_shape_call *call)
{
    const char *to = mpl_attr_text(call->graph, call->op, MPL_ATTR_to, NULL);
    mpl_type type;

    if (to == NULL)
        return MPL_REFUSE(ctx, "attribute 'to' is missing; it names the type to cast to");
    if (!mpl_type_find(to, &type))
        return MPL_REFUSE(ctx, "attribute 'to' is '%s', which is no type", to);
    MPL_PASS(mpl_check_type(ctx, call, 0, MPL_SET_ANY | MPL_SET_SMALL));
    if (!mpl_type_in(type, MPL_SET_ANY | MPL_SET_SMALL))
        return MPL_REFUSE(ctx, "attribute 'to' is %s, of which memplan knows only the size", to);
    if (mpl_choice_of(call->graph, call->op, MPL_ATTR_round_mode, round_modes, 3) == 3)
        return MPL_REFUSE(ctx, "round_mode '%s' is none of up, down and nearest",
                          mpl_attr_text(call->graph, call->op, MPL_ATTR_round_mode, "up"));
    return mpl_like_input(call, 0, type);
}

mpl_status mpl_shape_bit_cast(mpl_ctx *ctx, const mpl_shape_call *call)
{
    const char *to = mpl_attr_text(call->graph, call->op, MPL_ATTR_to, NULL);
    mpl_type type;

    MPL_PASS(mpl_check_type(ctx, call, 0, MPL_SET_ANY | MPL_SET_SMALL));
    if (to == NULL || !mpl_type_find(to, &type) || !mpl_type_in(type, MPL_SET_ANY | MPL_SET_SMALL))
        return MPL_REFUSE(ctx, "attribute 'to' must name the type that the bits are read as");
    if (mpl_type_bits(type) != mpl_type_bits(call->in_type[0]))
        return MPL_REFUSE(ctx, "input 0 has type %s, of %u bits; those of 'to', %s, are %u",
                          mpl_type_name(call->in_type[0]), mpl_type_bits(call->in_type[0]), to,
                          mpl_type_bits(type));
    return mpl_like_input(call, 0, type);
}

mpl_status mpl_check_clip_bounds(mpl_ctx *ctx, const mpl_shape_call *call, uint32_t first)
{
    char text[200];

    for (uint32_t i = first; i < call->n_in; i++) {
        if (call->in_shape[i] == NULL)
            continue;
        MPL_PASS(mpl_check_same_type(ctx, call, i, 0));
        if (mpl_count(call->in_shape[i]) != 1)
            return MPL_REFUSE(ctx, "input %u has dims %s; a bound of clip is one element", i,
                              mpl_shape_text(call->in_shape[i], text));
    }
    return MPL_OK;
}

mpl_status mpl_shape_clip(mpl_ctx *ctx, const mpl_shape_call *call)
{
    MPL_PASS(mpl_check_type(ctx, call, 0, MPL_SET_NUMBER));
    MPL_PASS(mpl_check_clip_bounds(ctx, call, 1));
    return mpl_like_input(call, 0, call->in_type[0]);
}

/* ---- functions ---- */

/* The first operand's type selects the arithmetic. key_a and key_b are the attributes for
 * s->a and s->b; a and b are their defaults. */
static mpl_status unary(const mpl_op_call *call, const mpl_kernel kernel[MPL_N_ARITH],
                        mpl_attr_key key_a, double a, mpl_attr_key key_b, double b)
{
    mpl_scalars s = {.a = mpl_attr_float(call->graph, call->op, key_a, a),
                     .b = mpl_attr_float(call->graph, call->op, key_b, b)};

    mpl_elementwise(call, 1, mpl_arith_of(call->in[0].type), kernel, false, &s);
    return MPL_OK;
}

/* In an expression A is (real)s->a, B is (real)s->b; functions are those of <tgmath.h>. */
#define A ((real)s->a)
#define B ((real)s->b)

#define KERNELS(name, expr)                                                                        \
    MPL_KERNEL_1(name##_float, float, real, expr)                                                  \
    MPL_KERNEL_1(name##_double, double, real, expr)

#define UNARY_WITH(name, key_a, a, key_b, b, expr)                                                 \
    KERNELS(name, expr)                                                                            \
    mpl_status mpl_eval_##name(mpl_ctx *ctx, const mpl_op_call *call)                              \
    {                                                                                              \
        static const mpl_kernel kernel[MPL_N_ARITH] = {name##_float, name##_double, NULL, NULL};   \
                                                                                                   \
        (void)ctx;                                                                                 \
        return unary(call, kernel, MPL_ATTR_##key_a, a, MPL_ATTR_##key_b, b);                      \
    }
#define UNARY(name, expr) UNARY_WITH(name, alpha, 0, beta, 0, expr)

/* With separate expressions for integers and u64. */
#define UNARY_INT_WITH(name, key_a, a, key_b, b, expr, int_expr, uint_expr)                        \
    KERNELS(name, expr)                                                                            \
    MPL_KERNEL_1(name##_int, int64_t, real, int_expr)                                              \
    MPL_KERNEL_1(name##_uint, uint64_t, real, uint_expr)                                           \
    mpl_status mpl_eval_##name(mpl_ctx *ctx, const mpl_op_call *call)                              \
    {                                                                                              \
        static const mpl_kernel kernel[MPL_N_ARITH] = {name##_float, name##_double, name##_int,    \
                                                       name##_uint};                               \
                                                                                                   \
        (void)ctx;                                                                                 \
        return unary(call, kernel, MPL_ATTR_##key_a, a, MPL_ATTR_##key_b, b);                      \
    }
#define UNARY_INT(name, expr, int_expr, uint_expr)                                                 \
    UNARY_INT_WITH(name, alpha, 0, beta, 0, expr, int_expr, uint_expr)

/* NaN passes: comparisons with it are false, and the other branch keeps x. */
UNARY_INT(relu, x < 0 ? 0 : x, x < 0 ? 0 : x, x)
UNARY_WITH(leaky_relu, alpha, 0.01, beta, 0, x < 0 ? A * x : x)
UNARY_WITH(thresholded_relu, alpha, 1, beta, 0, x > A ? x : 0)
UNARY_WITH(elu, alpha, 1, beta, 0, x < 0 ? A * expm1(x) : x)
UNARY_WITH(selu, alpha, 1.67326319217681884765625, gamma, 1.05070102214813232421875,
           x <= 0 ? B * (A * expm1(x)) : B * x)
UNARY_WITH(celu, alpha, 1, beta, 0, x < 0 ? A * expm1(x / A) : x)
UNARY(sigmoid, 1 / (1 + exp(-x)))
UNARY_WITH(swish, alpha, 1, beta, 0, x / (1 + exp(-A * x)))
UNARY_WITH(hard_sigmoid, alpha, 0.2, beta, 0.5,
           (A * x) + B < 0   ? 0
           : (A * x) + B > 1 ? 1
                             : (A * x) + B)
UNARY(hard_swish, x *(x<-3 ? 0 : x> 3 ? 1 : x / 6 + (real)0.5))
UNARY(softplus, (x < 0 ? 0 : x) + log1p(exp(-fabs(x))))
UNARY(mish, x *tanh((x < 0 ? 0 : x) + log1p(exp(-fabs(x)))))
UNARY(softsign, x / (1 + fabs(x)))
UNARY(tanh, tanh(x))
UNARY_INT_WITH(shrink, bias, 0, lambd, 0.5, x<-B ? x + A : x> B ? x - A : 0,
               (double)x<-s->b ? mpl_to_int((double)x + s->a) : (double)x> s->b
                   ? mpl_to_int((double)x - s->a)
                   : 0,
               (double)x > s->b ? mpl_to_uint((double)x - s->a) : 0)
UNARY(exp, exp(x))
UNARY(log, log(x))
UNARY(sqrt, sqrt(x))
UNARY_INT(neg, -x, 0 - (uint64_t)x, 0 - x)
UNARY_INT(abs, fabs(x), x < 0 ? 0 - (uint64_t)x : (uint64_t)x, x)
UNARY(reciprocal, 1 / x)
UNARY(floor, floor(x))
UNARY(ceil, ceil(x))
UNARY(round, rint(x)) /* ties to even, the default rounding mode */
UNARY_INT(sign, x > 0 ? 1 : x < 0 ? -1 : x, (x > 0) - (x < 0), x > 0)
UNARY_INT(erf, erf(x), mpl_to_int(erf((double)x)), mpl_to_uint(erf((double)x)))
UNARY(sin, sin(x))
UNARY(cos, cos(x))
UNARY(tan, tan(x))
UNARY(asin, asin(x))
UNARY(acos, acos(x))
UNARY(atan, atan(x))
UNARY(sinh, sinh(x))
UNARY(cosh, cosh(x))
UNARY(asinh, asinh(x))
UNARY(acosh, acosh(x))
UNARY(atanh, atanh(x))

#define SQRT_HALF   0.70710678118654752440 /* 1 / sqrt(2) */
#define SQRT_2_D_PI 0.79788456080286535588 /* sqrt(2 / pi) */

KERNELS(gelu, (real)0.5 * x * (1 + erf(x * (real)SQRT_HALF)))
KERNELS(gelu_tanh, (real)0.5 * x * (1 + tanh((real)SQRT_2_D_PI * (x + (real)0.044715 * x * x * x))))

mpl_status mpl_eval_gelu(mpl_ctx *ctx, const mpl_op_call *call)
{
    static const mpl_kernel exact[MPL_N_ARITH] = {gelu_float, gelu_double, NULL, NULL};
    static const mpl_kernel near[MPL_N_ARITH] = {gelu_tanh_float, gelu_tanh_double, NULL, NULL};
    bool by_tanh =
        strcmp(mpl_attr_text(call->graph, call->op, MPL_ATTR_approximate, "none"), "tanh") == 0;

    (void)ctx;
    return unary(call, by_tanh ? near : exact, MPL_ATTR_alpha, 0, MPL_ATTR_beta, 0);
}

/* ---- logic, bits, predicates ---- */

MPL_KERNEL_1(not_int, int64_t, real, x == 0)
MPL_KERNEL_1(bitwise_not_int, int64_t, real, ~x)

mpl_status mpl_eval_not(mpl_ctx *ctx, const mpl_op_call *call)
{
    (void)ctx;
    return unary(call, (const mpl_kernel[MPL_N_ARITH]){NULL, NULL, not_int, NULL}, MPL_ATTR_alpha,
                 0, MPL_ATTR_beta, 0);
}

mpl_status mpl_eval_bitwise_not(mpl_ctx *ctx, const mpl_op_call *call)
{
    (void)ctx;
    return unary(call,
                 (const mpl_kernel[MPL_N_ARITH]){NULL, NULL, bitwise_not_int, bitwise_not_int},
                 MPL_ATTR_alpha, 0, MPL_ATTR_beta, 0);
}

MPL_KERNEL_1(is_nan_float, float, uint8_t, x != x)
MPL_KERNEL_1(is_nan_double, double, uint8_t, x != x)
MPL_KERNEL_1(is_inf_float, float, uint8_t,
             (s->i != 0 && x < -FLT_MAX) || (s->j != 0 && x > FLT_MAX))
MPL_KERNEL_1(is_inf_double, double, uint8_t,
             (s->i != 0 && x < -DBL_MAX) || (s->j != 0 && x > DBL_MAX))

mpl_status mpl_eval_is_nan(mpl_ctx *ctx, const mpl_op_call *call)
{
    static const mpl_kernel kernel[MPL_N_ARITH] = {is_nan_float, is_nan_double, NULL, NULL};

    (void)ctx;
    mpl_elementwise(call, 1, mpl_arith_of(call->in[0].type), kernel, true, NULL);
    return MPL_OK;
}

mpl_status mpl_eval_is_inf(mpl_ctx *ctx, const mpl_op_call *call)
{
    static const mpl_kernel kernel[MPL_N_ARITH] = {is_inf_float, is_inf_double, NULL, NULL};
    mpl_scalars s = {.i = mpl_attr_int(call->graph, call->op, MPL_ATTR_detect_negative, 1),
                     .j = mpl_attr_int(call->graph, call->op, MPL_ATTR_detect_positive, 1)};

    (void)ctx;
    mpl_elementwise(call, 1, mpl_arith_of(call->in[0].type), kernel, true, &s);
    return MPL_OK;
}

/* ---- cast and clip ---- */

/* x as double with at most 53 bits, rounded to odd (the last bit is set if bits were lost).
 * Rounding that to a narrower type equals rounding x directly. */
static double odd_double(uint64_t x)
{
    if (x >> 53 != 0)
        x = (x & ~UINT64_C(0x7ff)) | (uint64_t)((x & 0x7ff) != 0) << 11;
    return (double)x;
}

/* Stores n elements given as double in a small type. */
static void store_small(const mpl_op_call *call, int64_t at, int64_t n, const double *x)
{
    bool saturate = mpl_attr_int(call->graph, call->op, MPL_ATTR_saturate, 1) != 0;
    const char *mode = mpl_attr_text(call->graph, call->op, MPL_ATTR_round_mode, "up");

    for (int64_t k = 0; k < n; k++)
        mpl_put_small(call->out[0].type, call->out[0].data, at + k, x[k], saturate, mode);
}

mpl_status mpl_eval_cast(mpl_ctx *ctx, const mpl_op_call *call)
{
    const mpl_types floats = MPL_SET_FLOAT | MPL_SET_SMALL_FLOAT;
    const mpl_tensor *in = &call->in[0], *out = &call->out[0];
    bool from_float = mpl_type_in(in->type, floats), to_float = mpl_type_in(out->type, floats);
    mpl_arith arith = from_float ? MPL_IN_DOUBLE : mpl_arith_of(in->type);
    int64_t total = mpl_count(&in->shape);
    mpl_piece buffer;

    if (in->type == out->type)
        return mpl_eval_copy(ctx, call);
    mpl_clear_tail(out);
    for (int64_t at = 0, n; at < total; at += n) {
        const mpl_piece *from;

        n = total - at < MPL_PIECE ? total - at : MPL_PIECE;
        from = mpl_piece_load(arith, in->type, in->data, at, false, n, &buffer);
        if (!from_float && to_float) {
            for (int64_t k = 0; k < n; k++) {
                uint64_t x = from->u[k];
                bool minus = arith == MPL_IN_INT && from->i[k] < 0;

                x = minus ? 0 - x : x;
                buffer.d[k] = out->type == MPL_TYPE_f64 ? (double)x : odd_double(x);
                buffer.d[k] = minus ? -buffer.d[k] : buffer.d[k];
            }
            from = &buffer, arith = MPL_IN_DOUBLE;
        }
        if (mpl_type_in(out->type, MPL_SET_SMALL) && arith == MPL_IN_DOUBLE)
            store_small(call, at, n, from->d);
        else
            mpl_piece_store(arith, out->type, out->data, at, n, from);
        arith = from_float ? MPL_IN_DOUBLE : mpl_arith_of(in->type);
    }
    return MPL_OK;
}

mpl_status mpl_eval_bit_cast(mpl_ctx *ctx, const mpl_op_call *call)
{
    uint8_t *y = call->out[0].data;

    MPL_PASS(mpl_eval_copy(ctx, call));
    for (int64_t i = 0; call->out[0].type == MPL_TYPE_bool && i < mpl_count(&call->in[0].shape);
         i++)
        y[i] = y[i] != 0; /* operators rely on 0 and 1 */
    return MPL_OK;
}

/* min(max(x, a), b): b wins if b < a; NaN passes. */
MPL_KERNEL_1(clip_float, float, real, (x < A ? A : x) > B ? B : x < A ? A : x)
MPL_KERNEL_1(clip_double, double, real, (x < A ? A : x) > B ? B : x < A ? A : x)
MPL_KERNEL_1(clip_int, int64_t, real, (x < s->i ? s->i : x) > s->j ? s->j : x < s->i ? s->i : x)
#define LEAST ((uint64_t)s->i)
#define MOST  ((uint64_t)s->j)
MPL_KERNEL_1(clip_uint, uint64_t, real,
             (x < LEAST ? LEAST : x) > MOST ? MOST
             : x < LEAST                    ? LEAST
                                            : x)

mpl_status mpl_eval_clip(mpl_ctx *ctx, const mpl_op_call *call)
{
    static const mpl_kernel kernel[MPL_N_ARITH] = {clip_float, clip_double, clip_int, clip_uint};
    mpl_scalars s = {.a = -INFINITY, .b = INFINITY, .i = INT64_MIN, .j = INT64_MAX};
    mpl_type type = call->in[0].type;
    mpl_arith arith = mpl_arith_of(type);
    const void *low = call->n_in > 1 ? call->in[1].data : NULL,
               *high = call->n_in > 2 ? call->in[2].data : NULL;

    (void)ctx;
    if (arith == MPL_IN_UINT)
        s.i = 0, s.j = -1;
    if (arith == MPL_IN_INT || arith == MPL_IN_UINT) {
        s.i = low != NULL ? mpl_get_int(type, low, 0) : s.i;
        s.j = high != NULL ? mpl_get_int(type, high, 0) : s.j;
    } else {
        s.a = low != NULL ? mpl_get(type, low, 0) : s.a;
        s.b = high != NULL ? mpl_get(type, high, 0) : s.b;
    }
    mpl_elementwise(call, 1, arith, kernel, false, &s);
    return MPL_OK;
}
