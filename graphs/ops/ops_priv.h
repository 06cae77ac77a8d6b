/* ops_priv.h -- shared by the shape rules and reference loops of the operators.
 *
 * A loop for all types is an always-inline function with the type as its first argument; it reads
 * and writes with mpl_get / mpl_put (or their integer twins). MPL_FOR_FLOAT and MPL_FOR_INT call it
 * with a constant type, so that no type is tested inside the loop. */
#pragma once

#include "graphs/graph.h"

#define OP(name, shape, eval)                                                                      \
    mpl_status mpl_shape_##shape(mpl_ctx *ctx, const mpl_shape_call *call);                        \
    mpl_status mpl_eval_##eval(mpl_ctx *ctx, const mpl_op_call *call);
#include "gen/ops_names.def" /* of ir/ops.def */
#undef OP

/* ---- sets of types ---- */

typedef uint64_t mpl_types; /* bit i: the type of id i */
#define MPL_SET(name)    (UINT64_C(1) << MPL_TYPE_##name)
#define MPL_SET_FLOAT    (MPL_SET(f64) | MPL_SET(f32) | MPL_SET(f16) | MPL_SET(bf16))
#define MPL_SET_SIGNED   (MPL_SET(i64) | MPL_SET(i32) | MPL_SET(i16) | MPL_SET(i8))
#define MPL_SET_UNSIGNED (MPL_SET(u64) | MPL_SET(u32) | MPL_SET(u16) | MPL_SET(u8))
#define MPL_SET_INT      (MPL_SET_SIGNED | MPL_SET_UNSIGNED)
#define MPL_SET_NUMBER   (MPL_SET_FLOAT | MPL_SET_INT)
#define MPL_SET_ANY      (MPL_SET_NUMBER | MPL_SET(bool))
#define MPL_SET_INDEX    (MPL_SET(i64) | MPL_SET(i32))
/* Of small_types.c. */
#define MPL_SET_F8_FN       (MPL_SET(f8e4m3fn) | MPL_SET(f8e5m2))
#define MPL_SET_F8          (MPL_SET_F8_FN | MPL_SET(f8e4m3fnuz) | MPL_SET(f8e5m2fnuz))
#define MPL_SET_SMALL_FLOAT (MPL_SET_F8 | MPL_SET(f4e2m1) | MPL_SET(f8e8m0))
#define MPL_SET_SMALL_INT   (MPL_SET(i4) | MPL_SET(u4) | MPL_SET(i2) | MPL_SET(u2))
#define MPL_SET_SMALL       (MPL_SET_SMALL_FLOAT | MPL_SET_SMALL_INT)

static inline bool mpl_type_in(mpl_type type, mpl_types set)
{
    return (set >> type & 1) != 0;
}
static inline bool mpl_is_float(const mpl_graph *g, mpl_value v)
{
    return mpl_type_in((mpl_type)g->value_type[v], MPL_SET_FLOAT);
}

/* MPL_EINPUT unless the type of input i is in the set. */
mpl_status mpl_check_type(mpl_ctx *ctx, const mpl_shape_call *call, uint32_t i, mpl_types set);

/* MPL_EINPUT unless input i has the type of input j. */
mpl_status mpl_check_same_type(mpl_ctx *ctx, const mpl_shape_call *call, uint32_t i, uint32_t j);

/* MPL_EINPUT unless input i has between least and most dims. */
mpl_status mpl_check_rank(mpl_ctx *ctx, const mpl_shape_call *call, uint32_t i, uint32_t least,
                          uint32_t most);

/* MPL_EINPUT unless the present inputs from `first` on have input 0's type and one element: bounds
 * of a clip. */
mpl_status mpl_check_clip_bounds(mpl_ctx *ctx, const mpl_shape_call *call, uint32_t first);

/* MPL_EINPUT unless the inputs from `first` on are float vectors with one element for each channel
 * of input 0. An input 0 of one dim has one channel. */
mpl_status mpl_check_channels(mpl_ctx *ctx, const mpl_shape_call *call, uint32_t first);

/* Inputs 0 and 1 have one type of the set; output 0 has that type and the broadcast dims.
 * MPL_EINPUT. */
mpl_status mpl_shape_two(mpl_ctx *ctx, const mpl_shape_call *call, mpl_types set);

/* Input 0, of input 1's type, is added to the result of operator `rule` on the other inputs.
 * MPL_EINPUT. */
mpl_status mpl_shape_added_to(mpl_ctx *ctx, const mpl_shape_call *call,
                              mpl_status (*rule)(mpl_ctx *ctx, const mpl_shape_call *call));

/* Gives output i the dims of input 0 and the given type. Returns MPL_OK: many a rule ends so. */
mpl_status mpl_like_input(const mpl_shape_call *call, uint32_t i, mpl_type type);

/* First index that a slice takes along each axis of `in`; *steps: some step is not 1. MPL_EINPUT as
 * the shape rule. */
mpl_status mpl_slice_starts(mpl_ctx *ctx, const mpl_graph *g, mpl_op op, const mpl_shape *in,
                            int64_t start[MPL_MAX_RANK], bool *steps);
/* Index of a slice: negative ones count from the end; then clamped to [least, most]. */
static inline int64_t mpl_clamp_index(int64_t i, int64_t dim, int64_t least, int64_t most)
{
    i += i < 0 ? dim : 0;
    return i < least ? least : i > most ? most : i;
}

/* ---- shapes ---- */

/* Axis of a tensor of that rank; negative ones count from the end. MPL_EINPUT outside [-rank,
 * rank). */
mpl_status mpl_axis(mpl_ctx *ctx, int64_t axis, uint32_t rank, uint32_t *out);
/* The same for attribute `axis`, or `otherwise` if absent. */
mpl_status mpl_axis_attr(mpl_ctx *ctx, const mpl_shape_call *call, int64_t otherwise, uint32_t rank,
                         uint32_t *out);
/* The value of attribute `axis`, after the shape rule has checked it. */
uint32_t mpl_axis_of(const mpl_op_call *call, int64_t otherwise, uint32_t rank);
/* Index of a text attribute among n names: 0 if absent, n if unknown. */
int mpl_choice_of(const mpl_graph *g, mpl_op op, mpl_attr_key key, const char *const *names, int n);

/* Bit i of *set means axis i is given. MPL_EINPUT: out of range or given twice. */
mpl_status mpl_axis_set(mpl_ctx *ctx, const int64_t *axes, uint32_t n, uint32_t rank,
                        uint32_t *set);

/* NumPy broadcast of a and b; out may be a or b. MPL_EINPUT if they do not broadcast. */
mpl_status mpl_broadcast(mpl_ctx *ctx, const mpl_shape *a, const mpl_shape *b, mpl_shape *out);

/* MPL_EINPUT unless `in` broadcasts to exactly `out`; `what` is its name in the message. */
mpl_status mpl_check_broadcast_to(mpl_ctx *ctx, const char *what, const mpl_shape *in,
                                  const mpl_shape *out);

/* Row-major strides of a shape. [element] */
void mpl_strides(const mpl_shape *shape, int64_t stride[MPL_MAX_RANK]);

/* Strides of `in` along the dims of `out`, to which it broadcasts; 0 where repeated. [element] */
void mpl_broadcast_strides(const mpl_shape *in, const mpl_shape *out, int64_t stride[MPL_MAX_RANK]);

/* Advances a row-major index over dims [0, rank), and n offsets with it. After the last index:
 * returns false and resets index and offsets to the first. */
static inline bool mpl_step(const int64_t *dim, uint32_t rank, int64_t *index, uint32_t n,
                            const int64_t (*stride)[MPL_MAX_RANK], int64_t *offset)
{
    for (uint32_t i = rank; i-- > 0;) {
        index[i]++;
        for (uint32_t k = 0; k < n; k++)
            offset[k] += stride[k][i];
        if (index[i] < dim[i])
            return true;
        for (uint32_t k = 0; k < n; k++)
            offset[k] -= stride[k][i] * dim[i];
        index[i] = 0;
    }
    return false;
}

/* ---- elements ---- */

/* Rounds x to a 16-bit IEEE-style float with `mantissa` explicit bits and least normal exponent
 * `least`. Ties go to even, overflow to infinity; NaN stays NaN. */
uint16_t mpl_narrow(double x, int mantissa, int least);

static inline uint16_t mpl_to_f16(double x)
{
    return mpl_narrow(x, 10, -14);
}
static inline uint16_t mpl_to_bf16(double x)
{
    return mpl_narrow(x, 7, -126);
}
static inline float mpl_from_bf16(uint16_t half)
{
    uint32_t bits = (uint32_t)half << 16;
    float x;

    memcpy(&x, &bits, sizeof x);
    return x;
}
static inline float mpl_from_f16(uint16_t half)
{
    uint32_t exponent = half >> 10 & 31, mantissa = half & 1023, bits;
    float x;

    if (exponent == 0)
        x = (float)mantissa * 0x1p-24f;
    else {
        bits = (exponent == 31 ? 255 : exponent + 112) << 23 | mantissa << 13;
        memcpy(&x, &bits, sizeof x);
    }
    return (half & 0x8000) != 0 ? -x : x;
}

/* Truncates; NaN becomes 0, values outside i64 saturate. */
static inline int64_t mpl_to_int(double x)
{
    if (x >= 0x1p63)
        return INT64_MAX;
    if (x < -0x1p63)
        return INT64_MIN;
    return x == x ? (int64_t)x : 0;
}

/* Truncates; NaN becomes 0, values outside u64 saturate. */
static inline uint64_t mpl_to_uint(double x)
{
    return x >= 0x1p64 ? UINT64_MAX : x >= 0x1p63 ? (uint64_t)x : (uint64_t)mpl_to_int(x);
}

/* ---- elements of any type, in small_types.c ---- */

uint64_t mpl_get_bits(mpl_type type, const void *data, int64_t i);
/* Leaves the other elements of the byte as they are. */
void mpl_put_bits(mpl_type type, void *data, int64_t i, uint64_t x);
/* Of MPL_SET_SMALL, as mpl_get_int and mpl_get do. */
int64_t mpl_get_small_int(mpl_type type, const void *data, int64_t i);
double mpl_get_small(mpl_type type, const void *data, int64_t i);
/* Stores x as an element of MPL_SET_SMALL: floats round to the nearest, ties to even; saturate: a
 * number beyond the largest becomes it, else infinity or NaN, whichever the type has. mode is for
 * f8e8m0: up, down or nearest. Integers truncate, modulo 2^bits. */
void mpl_put_small(mpl_type type, void *data, int64_t i, double x, bool saturate, const char *mode);

/* Element i as i64; for integer types and bool. u64: modulo 2^64. */
static inline int64_t mpl_get_int(mpl_type type, const void *data, int64_t i)
{
    switch (type) {
    case MPL_TYPE_i64:
        return ((const int64_t *)data)[i];
    case MPL_TYPE_i32:
        return ((const int32_t *)data)[i];
    case MPL_TYPE_i8:
        return ((const int8_t *)data)[i];
    case MPL_TYPE_u8:
        return ((const uint8_t *)data)[i];
    case MPL_TYPE_bool:
        return ((const uint8_t *)data)[i] != 0;
    case MPL_TYPE_i16:
        return ((const int16_t *)data)[i];
    case MPL_TYPE_u16:
        return ((const uint16_t *)data)[i];
    case MPL_TYPE_u32:
        return ((const uint32_t *)data)[i];
    case MPL_TYPE_u64:
        return (int64_t)((const uint64_t *)data)[i];
    default:
        return mpl_get_small_int(type, data, i);
    }
}

/* Stores x modulo 2^bits as element i; bool: x != 0. For integer types and bool. */
static inline void mpl_put_int(mpl_type type, void *data, int64_t i, int64_t x)
{
    switch (type) {
    case MPL_TYPE_i64:
        ((int64_t *)data)[i] = x;
        break;
    case MPL_TYPE_i32:
        ((int32_t *)data)[i] = (int32_t)(uint32_t)x;
        break;
    case MPL_TYPE_i8:
        ((int8_t *)data)[i] = (int8_t)(uint8_t)x;
        break;
    case MPL_TYPE_u8:
        ((uint8_t *)data)[i] = (uint8_t)x;
        break;
    case MPL_TYPE_bool:
        ((uint8_t *)data)[i] = x != 0;
        break;
    default:
        mpl_put_bits(type, data, i, (uint64_t)x);
    }
}

/* An i64 in the order of the elements: that of u64 is not the order of its bits as i64. */
static inline int64_t mpl_get_ordered(mpl_type type, const void *data, int64_t i)
{
    uint64_t x = (uint64_t)mpl_get_int(type, data, i);

    return (int64_t)(type == MPL_TYPE_u64 ? x ^ UINT64_C(1) << 63 : x);
}

/* Element i as double; exact except for i64 and u64 beyond 2^53. */
static inline double mpl_get(mpl_type type, const void *data, int64_t i)
{
    switch (type) {
    case MPL_TYPE_f64:
        return ((const double *)data)[i];
    case MPL_TYPE_f32:
        return (double)((const float *)data)[i];
    case MPL_TYPE_f16:
        return (double)mpl_from_f16(((const uint16_t *)data)[i]);
    case MPL_TYPE_bf16:
        return (double)mpl_from_bf16(((const uint16_t *)data)[i]);
    case MPL_TYPE_u64:
        return (double)((const uint64_t *)data)[i];
    default:
        return mpl_type_in(type, MPL_SET_ANY) ? (double)mpl_get_int(type, data, i)
                                              : mpl_get_small(type, data, i);
    }
}

/* Stores x as element i: floats round to nearest even; small ones saturate; integers truncate,
 * modulo 2^bits; bool: not zero. */
static inline void mpl_put(mpl_type type, void *data, int64_t i, double x)
{
    switch (type) {
    case MPL_TYPE_f64:
        ((double *)data)[i] = x;
        break;
    case MPL_TYPE_f32:
        ((float *)data)[i] = (float)x;
        break;
    case MPL_TYPE_f16:
        ((uint16_t *)data)[i] = mpl_to_f16(x);
        break;
    case MPL_TYPE_bf16:
        ((uint16_t *)data)[i] = mpl_to_bf16(x);
        break;
    case MPL_TYPE_bool:
        ((uint8_t *)data)[i] = x != 0;
        break;
    case MPL_TYPE_u64:
        ((uint64_t *)data)[i] = mpl_to_uint(x);
        break;
    default:
        if (mpl_type_in(type, MPL_SET_INT))
            mpl_put_int(type, data, i, mpl_to_int(x));
        else
            mpl_put_small(type, data, i, x, true, "up");
    }
}

/* Zeroes what pads the last byte of a tensor of packed elements, before they are written. */
static inline void mpl_clear_tail(const mpl_tensor *tensor)
{
    uint64_t bytes = 0;

    mpl_type_size(tensor->type, (uint64_t)mpl_count(&tensor->shape), &bytes);
    if (bytes > 0 && mpl_type_bits(tensor->type) < 8)
        ((uint8_t *)tensor->data)[bytes - 1] = 0;
}

/* What the loop of nms uses of call->workspace: the candidates of one row of scores. [byte] */
uint64_t mpl_nms_workspace(const mpl_graph *g, mpl_op op);

/* ---- type dispatch, outside of loops ---- */

#define MPL_INLINE static inline __attribute__((always_inline))

#define MPL_CASE(name, f, ...)                                                                     \
    case MPL_TYPE_##name:                                                                          \
        f(MPL_TYPE_##name, __VA_ARGS__);                                                           \
        break;

/* f(type, ...) with the type as a constant; for the floating types, and for the others with
 * bool. */
#define MPL_FOR_FLOAT(type, f, ...)                                                                \
    switch (type) {                                                                                \
        MPL_CASE(f64, f, __VA_ARGS__)                                                              \
        MPL_CASE(f32, f, __VA_ARGS__)                                                              \
        MPL_CASE(f16, f, __VA_ARGS__)                                                              \
        MPL_CASE(bf16, f, __VA_ARGS__)                                                             \
    default:                                                                                       \
        mpl_assert(false);                                                                         \
    }
#define MPL_FOR_INT(type, f, ...)                                                                  \
    switch (type) {                                                                                \
        MPL_CASE(i64, f, __VA_ARGS__)                                                              \
        MPL_CASE(i32, f, __VA_ARGS__)                                                              \
        MPL_CASE(i8, f, __VA_ARGS__)                                                               \
        MPL_CASE(u8, f, __VA_ARGS__)                                                               \
        MPL_CASE(bool, f, __VA_ARGS__)                                                             \
        MPL_CASE(i16, f, __VA_ARGS__)                                                              \
        MPL_CASE(u16, f, __VA_ARGS__)                                                              \
        MPL_CASE(u32, f, __VA_ARGS__)                                                              \
        MPL_CASE(u64, f, __VA_ARGS__)                                                              \
    default:                                                                                       \
        mpl_assert(false);                                                                         \
    }
