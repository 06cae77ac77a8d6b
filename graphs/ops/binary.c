/* binary.c -- element-wise operators of two operands, broadcast as NumPy does. */
#include "graphs/ops/elementwise_priv.h"

#include <tgmath.h>

/* ---- shape rules ---- */

mpl_status mpl_shape_two(mpl_ctx *ctx, const mpl_shape_call *call, mpl_types set)
{
    MPL_PASS(mpl_check_type(ctx, call, 0, set));
    MPL_PASS(mpl_check_same_type(ctx, call, 1, 0));
    MPL_PASS(mpl_broadcast(ctx, call->in_shape[0], call->in_shape[1], &call->out_shape[0]));
    call->out_type[0] = call->in_type[0];
    return MPL_OK;
}

/* add, sub, mul, div; pow, whose exponent has its own type; mod; prelu, whose slope broadcasts to
 * the input. */
mpl_status mpl_shape_binary(mpl_ctx *ctx, const mpl_shape_call *call)
{
    mpl_op_kind kind = (mpl_op_kind)call->graph->op_kind[call->op];

    if (kind == MPL_OP_pow) {
        MPL_PASS(mpl_check_type(ctx, call, 0, MPL_SET_FLOAT | MPL_SET_INDEX));
        MPL_PASS(mpl_check_type(ctx, call, 1, MPL_SET_NUMBER));
        MPL_PASS(mpl_broadcast(ctx, call->in_shape[0], call->in_shape[1], &call->out_shape[0]));
        call->out_type[0] = call->in_type[0];
        return MPL_OK;
    }
    MPL_PASS(mpl_shape_two(ctx, call,
                           kind == MPL_OP_prelu
                               ? MPL_SET_FLOAT | MPL_SET_INDEX | MPL_SET(u32) | MPL_SET(u64)
                               : MPL_SET_NUMBER));
    if (kind == MPL_OP_prelu)
        MPL_PASS(mpl_check_broadcast_to(ctx, "the slope", call->in_shape[1], call->in_shape[0]));
    if (kind == MPL_OP_mod && mpl_type_in(call->in_type[0], MPL_SET_FLOAT) &&
        mpl_attr_int(call->graph, call->op, MPL_ATTR_fmod, 0) == 0)
        return MPL_REFUSE(ctx, "type %s needs the attribute fmod = 1",
                          mpl_type_name(call->in_type[0]));
    return MPL_OK;
}

mpl_status mpl_shape_binary_int(mpl_ctx *ctx, const mpl_shape_call *call)
{
    bool is_shift = call->graph->op_kind[call->op] == MPL_OP_bit_shift;
    const char *text = mpl_attr_text(call->graph, call->op, MPL_ATTR_direction, "");

    MPL_PASS(mpl_shape_two(ctx, call, is_shift ? MPL_SET_UNSIGNED : MPL_SET_INT));
    if (is_shift && strcmp(text, "LEFT") != 0 && strcmp(text, "RIGHT") != 0)
        return MPL_REFUSE(ctx, "direction is '%s'; it must be 'LEFT' or 'RIGHT'", text);
    return MPL_OK;
}

mpl_status mpl_shape_binary_bool(mpl_ctx *ctx, const mpl_shape_call *call)
{
    return mpl_shape_two(ctx, call, MPL_SET(bool));
}

mpl_status mpl_shape_compare(mpl_ctx *ctx, const mpl_shape_call *call)
{
    bool is_equal = call->graph->op_kind[call->op] == MPL_OP_equal;

    MPL_PASS(mpl_shape_two(ctx, call, is_equal ? MPL_SET_ANY : MPL_SET_NUMBER));
    call->out_type[0] = MPL_TYPE_bool;
    return MPL_OK;
}

/* ---- loops ---- */

static mpl_status binary(const mpl_op_call *call, const mpl_kernel kernel[MPL_N_ARITH],
                         bool to_bool)
{
    mpl_elementwise(call, 2, mpl_arith_of(call->in[0].type), kernel, to_bool, NULL);
    return MPL_OK;
}

/* Expressions use x and z. Integers are int64, u64 is uint64; they wrap to their own type at the
 * end. */
#define BINARY(name, y_float, y_double, y_int, y_uint, to_bool, expr, int_expr, uint_expr)         \
    MPL_KERNEL_2(name##_float, float, y_float, expr)                                               \
    MPL_KERNEL_2(name##_double, double, y_double, expr)                                            \
    MPL_KERNEL_2(name##_int, int64_t, y_int, int_expr)                                             \
    MPL_KERNEL_2(name##_uint, uint64_t, y_uint, uint_expr)                                         \
    mpl_status mpl_eval_##name(mpl_ctx *ctx, const mpl_op_call *call)                              \
    {                                                                                              \
        static const mpl_kernel kernel[MPL_N_ARITH] = {name##_float, name##_double, name##_int,    \
                                                       name##_uint};                               \
                                                                                                   \
        (void)ctx;                                                                                 \
        return binary(call, kernel, to_bool);                                                      \
    }
#define NUMBERS(name, expr, int_expr, uint_expr)                                                   \
    BINARY(name, float, double, int64_t, uint64_t, false, expr, int_expr, uint_expr)
#define COMPARE(name, expr) BINARY(name, uint8_t, uint8_t, uint8_t, uint8_t, true, expr, expr, expr)
#define INTEGERS(name, int_expr)                                                                   \
    MPL_KERNEL_2(name##_int, int64_t, int64_t, int_expr)                                           \
    mpl_status mpl_eval_##name(mpl_ctx *ctx, const mpl_op_call *call)                              \
    {                                                                                              \
        static const mpl_kernel kernel[MPL_N_ARITH] = {NULL, NULL, name##_int, name##_int};        \
                                                                                                   \
        (void)ctx;                                                                                 \
        return binary(call, kernel, false);                                                        \
    }

/* Truncated quotient. Division by zero gives 0; -1 negates, which wraps where division would
 * trap. */
static int64_t quotient(int64_t x, int64_t z)
{
    if (z == 0)
        return 0;
    return z == -1 ? (int64_t)(0 - (uint64_t)x) : x / z;
}

/* Has the sign of z, like Python's %; 0 if z is 0. */
static int64_t floor_remainder(int64_t x, int64_t z)
{
    int64_t rest = z == 0 || z == -1 ? 0 : x % z;

    return rest != 0 && (rest < 0) != (z < 0) ? rest + z : rest;
}

/* By squaring, modulo 2^64. A negative exponent gives the truncated result; 0^negative is 0. */
static int64_t int_pow(int64_t x, int64_t z)
{
    uint64_t power = 1, base = (uint64_t)x;

    if (z < 0)
        return x == 1 ? 1 : x == -1 ? (z % 2 == 0 ? 1 : -1) : 0;
    for (; z > 0; z >>= 1) {
        if ((z & 1) != 0)
            power *= base;
        base *= base;
    }
    return (int64_t)power;
}

NUMBERS(add, x + z, (uint64_t)x + (uint64_t)z, x + z)
NUMBERS(sub, x - z, (uint64_t)x - (uint64_t)z, x - z)
NUMBERS(mul, x *z, (uint64_t)x *(uint64_t)z, x *z)
NUMBERS(div, x / z, quotient(x, z), z == 0 ? 0 : x / z)
NUMBERS(squared_difference, (x - z) * (x - z),
        ((uint64_t)x - (uint64_t)z) * ((uint64_t)x - (uint64_t)z), (x - z) * (x - z))
NUMBERS(prelu, x < 0 ? z * x : x, x < 0 ? (int64_t)((uint64_t)z * (uint64_t)x) : x, ((void)z, x))
INTEGERS(bitwise_and, x &z)
INTEGERS(bitwise_or, x | z)
INTEGERS(bitwise_xor, x ^ z)
INTEGERS(and, (x & z) != 0)
INTEGERS(or, (x | z) != 0)
INTEGERS(xor, x != z)
COMPARE(equal, x == z)
COMPARE(less, x < z)
COMPARE(greater, x > z)
COMPARE(less_equal, x <= z)
COMPARE(greater_equal, x >= z)

MPL_KERNEL_2(fmod_float, float, real, fmod(x, z))
MPL_KERNEL_2(fmod_double, double, real, fmod(x, z))
MPL_KERNEL_2(fmod_int, int64_t, real, z == 0 || z == -1 ? 0 : x % z)
MPL_KERNEL_2(mod_int, int64_t, real, floor_remainder(x, z))
MPL_KERNEL_2(mod_uint, uint64_t, real, z == 0 ? 0 : x % z)

mpl_status mpl_eval_mod(mpl_ctx *ctx, const mpl_op_call *call)
{
    static const mpl_kernel like_c[MPL_N_ARITH] = {fmod_float, fmod_double, fmod_int, mod_uint};
    static const mpl_kernel like_python[MPL_N_ARITH] = {NULL, NULL, mod_int, mod_uint};

    (void)ctx;
    return binary(call,
                  mpl_attr_int(call->graph, call->op, MPL_ATTR_fmod, 0) != 0 ? like_c : like_python,
                  false);
}

/* Shifts by all bits of the type or more give 0. */
MPL_KERNEL_2(shift_left, uint64_t, real, z >= (uint64_t)s->i ? 0 : x << z)
MPL_KERNEL_2(shift_right, uint64_t, real, z >= (uint64_t)s->i ? 0 : x >> z)

mpl_status mpl_eval_bit_shift(mpl_ctx *ctx, const mpl_op_call *call)
{
    bool left = strcmp(mpl_attr_text(call->graph, call->op, MPL_ATTR_direction, ""), "LEFT") == 0;

    mpl_kernel shift = left ? shift_left : shift_right;
    mpl_type type = call->in[0].type;

    (void)ctx;
    mpl_elementwise(call, 2, mpl_arith_of(type),
                    (const mpl_kernel[MPL_N_ARITH]){NULL, NULL, shift, shift}, false,
                    &(mpl_scalars){.i = mpl_type_bits(type)});
    return MPL_OK;
}

MPL_KERNEL_2(pow_float, float, real, pow(x, z))
MPL_KERNEL_2(pow_double, double, real, pow(x, z))
MPL_KERNEL_2(pow_int, int64_t, real, int_pow(x, z))

/* In the base's arithmetic, but integers with a floating exponent use double. */
mpl_status mpl_eval_pow(mpl_ctx *ctx, const mpl_op_call *call)
{
    static const mpl_kernel kernel[MPL_N_ARITH] = {pow_float, pow_double, pow_int, NULL};
    mpl_arith arith = mpl_arith_of(call->in[0].type);

    (void)ctx;
    if (arith == MPL_IN_INT && mpl_type_in(call->in[1].type, MPL_SET_FLOAT))
        arith = MPL_IN_DOUBLE;
    mpl_elementwise(call, 2, arith, kernel, false, NULL);
    return MPL_OK;
}
