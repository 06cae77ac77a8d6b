/* kernels.cu -- our own device kernels. See kernels.h.
 *
 * Written in what C11 and CUDA C++ have in common: nvcc builds it for devices, and
 * tests/device/cuda_fake.c includes it under other meanings of KERNEL, DEVICE, SHARED and LAUNCH,
 * which run every thread of every block in turn on the host. So indices and arithmetic are tested
 * where no device is.
 *
 * Sums are kept in double and combined in a fixed order: outputs repeat bit for bit. Element types
 * are chosen by branches that all threads of a launch take alike. */
#include "runtime/cuda/kernels_priv.h"

/* ---- element-wise ---- */

/* The operators of one and of two operands in floating arithmetic; F names a function of <math.h>
 * of that type. */
#define REAL_OPERATORS(real, F)                                                                    \
    DEVICE real real##_softplus(real x)                                                            \
    {                                                                                              \
        return (x < 0 ? 0 : x) + F(log1p)(F(exp)(-F(fabs)(x)));                                    \
    }                                                                                              \
    DEVICE real real##_gelu(real x, int by_tanh)                                                   \
    {                                                                                              \
        if (by_tanh)                                                                               \
            return (real)0.5 * x *                                                                 \
                   (1 + F(tanh)((real)0.79788456080286535588 * (x + (real)0.044715 * x * x * x))); \
        return (real)0.5 * x * (1 + F(erf)(x * (real)0.70710678118654752440));                     \
    }                                                                                              \
    DEVICE real real##_unary(const mpl_cuda_kernel *k, int kind, real x)                           \
    {                                                                                              \
        const real a = (real)k->as.elementwise.a, b = (real)k->as.elementwise.b;                   \
                                                                                                   \
        switch (kind) {                                                                            \
        case MPL_OP_relu:                                                                          \
            return x < 0 ? 0 : x;                                                                  \
        case MPL_OP_leaky_relu:                                                                    \
            return x < 0 ? a * x : x;                                                              \
        case MPL_OP_thresholded_relu:                                                              \
            return x > a ? x : 0;                                                                  \
        case MPL_OP_elu:                                                                           \
            return x < 0 ? a * F(expm1)(x) : x;                                                    \
        case MPL_OP_selu:                                                                          \
            return x <= 0 ? b * (a * F(expm1)(x)) : b * x;                                         \
        case MPL_OP_celu:                                                                          \
            return x < 0 ? a * F(expm1)(x / a) : x;                                                \
        case MPL_OP_gelu:                                                                          \
            return real##_gelu(x, k->as.elementwise.i != 0);                                       \
        case MPL_OP_sigmoid:                                                                       \
            return 1 / (1 + F(exp)(-x));                                                           \
        case MPL_OP_swish:                                                                         \
            return x / (1 + F(exp)(-a * x));                                                       \
        case MPL_OP_hard_sigmoid:                                                                  \
            return a * x + b < 0 ? 0 : a * x + b > 1 ? 1 : a * x + b;                              \
        case MPL_OP_hard_swish:                                                                    \
            return x * (x < -3 ? 0 : x > 3 ? 1 : x / 6 + (real)0.5);                               \
        case MPL_OP_softplus:                                                                      \
            return real##_softplus(x);                                                             \
        case MPL_OP_mish:                                                                          \
            return x * F(tanh)(real##_softplus(x));                                                \
        case MPL_OP_softsign:                                                                      \
            return x / (1 + F(fabs)(x));                                                           \
        case MPL_OP_shrink:                                                                        \
            return x < -b ? x + a : x > b ? x - a : 0;                                             \
        case MPL_OP_tanh:                                                                          \
            return F(tanh)(x);                                                                     \
        case MPL_OP_exp:                                                                           \
            return F(exp)(x);                                                                      \
        case MPL_OP_log:                                                                           \
            return F(log)(x);                                                                      \
        case MPL_OP_sqrt:                                                                          \
            return F(sqrt)(x);                                                                     \
        case MPL_OP_neg:                                                                           \
            return -x;                                                                             \
        case MPL_OP_abs:                                                                           \
            return F(fabs)(x);                                                                     \
        case MPL_OP_reciprocal:                                                                    \
            return 1 / x;                                                                          \
        case MPL_OP_floor:                                                                         \
            return F(floor)(x);                                                                    \
        case MPL_OP_ceil:                                                                          \
            return F(ceil)(x);                                                                     \
        case MPL_OP_round:                                                                         \
            return F(rint)(x);                                                                     \
        case MPL_OP_sign:                                                                          \
            return x > 0 ? 1 : x < 0 ? -1 : x;                                                     \
        case MPL_OP_erf:                                                                           \
            return F(erf)(x);                                                                      \
        case MPL_OP_sin:                                                                           \
            return F(sin)(x);                                                                      \
        case MPL_OP_cos:                                                                           \
            return F(cos)(x);                                                                      \
        case MPL_OP_tan:                                                                           \
            return F(tan)(x);                                                                      \
        case MPL_OP_asin:                                                                          \
            return F(asin)(x);                                                                     \
        case MPL_OP_acos:                                                                          \
            return F(acos)(x);                                                                     \
        case MPL_OP_atan:                                                                          \
            return F(atan)(x);                                                                     \
        case MPL_OP_sinh:                                                                          \
            return F(sinh)(x);                                                                     \
        case MPL_OP_cosh:                                                                          \
            return F(cosh)(x);                                                                     \
        case MPL_OP_asinh:                                                                         \
            return F(asinh)(x);                                                                    \
        case MPL_OP_acosh:                                                                         \
            return F(acosh)(x);                                                                    \
        case MPL_OP_atanh:                                                                         \
            return F(atanh)(x);                                                                    \
        case MPL_OP_is_nan:                                                                        \
            return x != x;                                                                         \
        case MPL_OP_is_inf:                                                                        \
            return (k->as.elementwise.i != 0 && x == -(real)INFINITY) ||                           \
                   (k->as.elementwise.j != 0 && x == (real)INFINITY);                              \
        default: /* cast */                                                                        \
            return x;                                                                              \
        }                                                                                          \
    }                                                                                              \
    DEVICE real real##_binary(int kind, real x, real z)                                            \
    {                                                                                              \
        switch (kind) {                                                                            \
        case MPL_OP_sub:                                                                           \
            return x - z;                                                                          \
        case MPL_OP_mul:                                                                           \
            return x * z;                                                                          \
        case MPL_OP_div:                                                                           \
            return x / z;                                                                          \
        case MPL_OP_pow:                                                                           \
            return F(pow)(x, z);                                                                   \
        case MPL_OP_mod:                                                                           \
            return F(fmod)(x, z);                                                                  \
        case MPL_OP_prelu:                                                                         \
            return x < 0 ? z * x : x;                                                              \
        case MPL_OP_equal:                                                                         \
            return x == z;                                                                         \
        case MPL_OP_less:                                                                          \
            return x < z;                                                                          \
        case MPL_OP_greater:                                                                       \
            return x > z;                                                                          \
        case MPL_OP_less_equal:                                                                    \
            return x <= z;                                                                         \
        case MPL_OP_greater_equal:                                                                 \
            return x >= z;                                                                         \
        case MPL_OP_min:                                                                           \
            return x < z || x != x ? x : z;                                                        \
        case MPL_OP_max:                                                                           \
            return x > z || x != x ? x : z;                                                        \
        case MPL_OP_relu_grad: /* dy, y */                                                         \
            return z > 0 ? x : 0;                                                                  \
        case MPL_OP_sigmoid_grad:                                                                  \
            return x * z * (1 - z);                                                                \
        case MPL_OP_tanh_grad:                                                                     \
            return x * (1 - z * z);                                                                \
        default: /* add, sum, mean */                                                              \
            return x + z;                                                                          \
        }                                                                                          \
    }                                                                                              \
    DEVICE real real##_joined(const mpl_cuda_kernel *k, real x, real y, real z)                    \
    {                                                                                              \
        return k->kind == MPL_OP_fma ? x * y + z : x / F(sqrt)(y + (real)k->as.elementwise.a);     \
    }

#define IN_FLOAT(function)  function##f
#define IN_DOUBLE(function) function
REAL_OPERATORS(float, IN_FLOAT)
REAL_OPERATORS(double, IN_DOUBLE)

DEVICE int64_t int_unary(const mpl_cuda_kernel *k, int64_t x)
{
    const double a = k->as.elementwise.a, b = k->as.elementwise.b;

    switch (k->kind) {
    case MPL_OP_relu:
        return x < 0 ? 0 : x;
    case MPL_OP_neg:
        return (int64_t)(0 - (uint64_t)x);
    case MPL_OP_abs:
        return x < 0 ? (int64_t)(0 - (uint64_t)x) : x;
    case MPL_OP_sign:
        return (x > 0) - (x < 0);
    case MPL_OP_erf:
        return to_int(erf((double)x));
    case MPL_OP_shrink:
        return (double)x < -b ? to_int((double)x + a) : (double)x > b ? to_int((double)x - a) : 0;
    case MPL_OP_not:
        return x == 0;
    case MPL_OP_bitwise_not:
        return ~x;
    default: /* cast */
        return x;
    }
}

DEVICE int64_t int_pow(int64_t x, int64_t z)
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

/* The remainder with the sign of x, or of z as Python's; 0 where z is. */
DEVICE int64_t int_mod(int64_t x, int64_t z, int like_c)
{
    int64_t rest = z == 0 || z == -1 ? 0 : x % z;

    return !like_c && rest != 0 && (rest < 0) != (z < 0) ? rest + z : rest;
}

DEVICE int64_t int_binary(const mpl_cuda_kernel *k, int64_t x, int64_t z)
{
    switch (k->kind) {
    case MPL_OP_sub:
        return (int64_t)((uint64_t)x - (uint64_t)z);
    case MPL_OP_mul:
        return (int64_t)((uint64_t)x * (uint64_t)z);
    case MPL_OP_div:
        return z == 0 ? 0 : z == -1 ? (int64_t)(0 - (uint64_t)x) : x / z;
    case MPL_OP_pow:
        return int_pow(x, z);
    case MPL_OP_mod:
        return int_mod(x, z, k->as.elementwise.i != 0);
    case MPL_OP_prelu:
        return x < 0 ? (int64_t)((uint64_t)z * (uint64_t)x) : x;
    case MPL_OP_bitwise_and:
    case MPL_OP_and:
        return x & z;
    case MPL_OP_bitwise_or:
    case MPL_OP_or:
        return x | z;
    case MPL_OP_bitwise_xor:
    case MPL_OP_xor:
        return x ^ z;
    case MPL_OP_bit_shift:
        return z >= 8 ? 0 : k->as.elementwise.i != 0 ? x << z : x >> z;
    case MPL_OP_equal:
        return x == z;
    case MPL_OP_less:
        return x < z;
    case MPL_OP_greater:
        return x > z;
    case MPL_OP_less_equal:
        return x <= z;
    case MPL_OP_greater_equal:
        return x >= z;
    case MPL_OP_min:
        return x < z ? x : z;
    case MPL_OP_max:
        return x > z ? x : z;
    default:
        return (int64_t)((uint64_t)x + (uint64_t)z);
    }
}

DEVICE int64_t int64_t_joined(const mpl_cuda_kernel *k, int64_t x, int64_t y, int64_t z)
{
    (void)k; /* fma alone takes whole numbers */
    return (int64_t)((uint64_t)x * (uint64_t)y + (uint64_t)z);
}

/* Where each operand's element for element i of the output lies. */
DEVICE void elementwise_offsets(const mpl_cuda_kernel *k, int64_t i, int64_t *offset)
{
    const mpl_cuda_elementwise *e = &k->as.elementwise;

    for (int n = 0; n < k->n_in; n++)
        offset[n] = 0;
    for (int d = e->rank - 1; d >= 0; d--) {
        int64_t index = d > 0 ? last_index(&i, e->dim[d]) : i;

        for (int n = 0; n < k->n_in; n++)
            offset[n] += index * e->stride[n][d];
    }
}

/* One element: where, clip and its gradient, fma and div_sqrt have operands of their own kind; all
 * others have one, or fold several. */
#define ELEMENTWISE(name, real, get_one, put_one, unary, binary, mean)                             \
    KERNEL name(const mpl_cuda_kernel k)                                                           \
    {                                                                                              \
        FOR_EACH(i, k.n)                                                                           \
        {                                                                                          \
            int64_t at[MPL_CUDA_MAX_IN];                                                           \
            real x, z;                                                                             \
                                                                                                   \
            elementwise_offsets(&k, i, at);                                                        \
            if (k.kind == MPL_OP_where) {                                                          \
                int which = get_int(MPL_TYPE_bool, k.in[0], at[0]) != 0 ? 1 : 2;                   \
                                                                                                   \
                x = get_one(k.type[which], k.in[which], at[which]);                                \
            } else {                                                                               \
                x = get_one(k.type[0], k.in[0], at[0]);                                            \
                if (k.kind == MPL_OP_clip) {                                                       \
                    z = k.in[1] != NULL ? get_one(k.type[1], k.in[1], at[1]) : x;                  \
                    x = x < z ? z : x;                                                             \
                    z = k.in[2] != NULL ? get_one(k.type[2], k.in[2], at[2]) : x;                  \
                    x = x > z ? z : x;                                                             \
                } else if (k.kind == MPL_OP_clip_grad) {                                           \
                    z = get_one(k.type[1], k.in[1], at[1]);                                        \
                    if ((k.in[2] != NULL && !(z > get_one(k.type[2], k.in[2], at[2]))) ||          \
                        (k.in[3] != NULL && !(z < get_one(k.type[3], k.in[3], at[3]))))            \
                        x = 0;                                                                     \
                } else if (k.kind == MPL_OP_fma || k.kind == MPL_OP_div_sqrt) {                    \
                    z = k.kind == MPL_OP_fma ? get_one(k.type[2], k.in[2], at[2]) : 0;             \
                    x = real##_joined(&k, x, get_one(k.type[1], k.in[1], at[1]), z);               \
                } else if (k.n_in == 1) {                                                          \
                    x = unary(x);                                                                  \
                } else {                                                                           \
                    for (int n = 1; n < k.n_in; n++)                                               \
                        x = binary(x, get_one(k.type[n], k.in[n], at[n]));                         \
                }                                                                                  \
                if (k.kind == MPL_OP_mean)                                                         \
                    x = mean(x, k.as.elementwise.i);                                               \
            }                                                                                      \
            put_one(k.out_type, k.out[0], i, x);                                                   \
        }                                                                                          \
    }

#define UNARY_FLOAT(x)      float_unary(&k, k.kind, x)
#define UNARY_DOUBLE(x)     double_unary(&k, k.kind, x)
#define UNARY_INT(x)        int_unary(&k, x)
#define BINARY_FLOAT(x, z)  float_binary(k.kind, x, z)
#define BINARY_DOUBLE(x, z) double_binary(k.kind, x, z)
#define BINARY_INT(x, z)    int_binary(&k, x, z)
#define MEAN_FLOAT(x, n)    ((x) / (float)(n))
#define MEAN_DOUBLE(x, n)   ((x) / (double)(n))
#define MEAN_INT(x, n)      ((x) / (n))
ELEMENTWISE(elementwise_float, float, get_float, put_float, UNARY_FLOAT, BINARY_FLOAT, MEAN_FLOAT)
ELEMENTWISE(elementwise_double, double, get, put, UNARY_DOUBLE, BINARY_DOUBLE, MEAN_DOUBLE)
ELEMENTWISE(elementwise_int, int64_t, get_int, put_int, UNARY_INT, BINARY_INT, MEAN_INT)

/* A chain in one pass over the elements, each step rounded as the operator alone would round it.
 * The box that is written may be one that is read: its elements meet in one thread. */
#define FUSED(name, real, get_one, put_one, round)                                                 \
    KERNEL name(const mpl_cuda_kernel k)                                                           \
    {                                                                                              \
        const mpl_cuda_fused *f = &k.as.fused;                                                     \
                                                                                                   \
        FOR_EACH(i, k.n)                                                                           \
        {                                                                                          \
            real stack[MPL_CUDA_MAX_STACK];                                                        \
            int depth = 0;                                                                         \
                                                                                                   \
            for (int s = 0; s < f->n_steps; s++) {                                                 \
                int step = f->step[s], load = -1 - step;                                           \
                                                                                                   \
                if (step < 0) {                                                                    \
                    stack[depth++] =                                                               \
                        get_one(k.out_type, k.in[load],                                            \
                                f->offset[load] + offset_of(i, f->rank, f->dim, f->stride[load])); \
                } else if (takes_two(step)) {                                                      \
                    depth--;                                                                       \
                    stack[depth - 1] = round(real##_binary(step, stack[depth - 1], stack[depth])); \
                } else {                                                                           \
                    stack[depth - 1] = round(real##_unary(&k, step, stack[depth - 1]));            \
                }                                                                                  \
            }                                                                                      \
            put_one(k.out_type, k.out[0], f->to_offset + offset_of(i, f->rank, f->dim,             \
                f->to_stride),                                                                     \
                    stack[0]);                                                                     \
        }                                                                                          \
    }

/* Of the operators that a chain may have (mpl_fused_arity). */
DEVICE int takes_two(int kind)
{
    switch (kind) {
    case MPL_OP_add:
    case MPL_OP_sub:
    case MPL_OP_mul:
    case MPL_OP_div:
    case MPL_OP_min:
    case MPL_OP_max:
        return 1;
    default:
        return 0;
    }
}

/* Through the type of the elements, where that is narrower than float. */
DEVICE float narrowed(int type, float x)
{
    if (type == MPL_TYPE_f16)
        return (float)from_f16(to_f16((double)x));
    return type == MPL_TYPE_bf16 ? (float)from_bf16(to_bf16((double)x)) : x;
}

#define NARROWED(x) narrowed(k.out_type, x)
#define AS_IT_IS(x) (x)
FUSED(fused_float, float, get_float, put_float, NARROWED)
FUSED(fused_double, double, get, put, AS_IT_IS)

/* Whole numbers to floating ones, each rounded once. */
KERNEL cast_from_int(const mpl_cuda_kernel k)
{
    FOR_EACH(i, k.n)
    {
        int64_t x = get_int(k.type[0], k.in[0], i);

        if (k.out_type == MPL_TYPE_f32)
            ((float *)k.out[0])[i] = (float)x;
        else
            put(k.out_type, k.out[0], i, (double)x);
    }
}

/* x, scale, bias, mean, variance: (x - mean) * scale / sqrt(variance + epsilon) + bias. */
KERNEL batch_norm(const mpl_cuda_kernel k)
{
    FOR_EACH(i, k.n)
    {
        int64_t at[MPL_CUDA_MAX_IN];
        double factor, mean, bias;

        elementwise_offsets(&k, i, at);
        factor = get(k.type[1], k.in[1], at[1]) / sqrt(get(k.type[4], k.in[4],
            at[4]) + k.as.elementwise.a);
        mean = get(k.type[3], k.in[3], at[3]);
        bias = get(k.type[2], k.in[2], at[2]);
        put(k.out_type, k.out[0], i, (get(k.type[0], k.in[0], at[0]) - mean) * factor + bias);
    }
}

/* ---- moving elements ---- */

KERNEL move(const mpl_cuda_kernel k)
{
    const mpl_cuda_move *m = &k.as.move;

    FOR_EACH(i, k.n)
    {
        int64_t rest = i, to = 0, from = 0;

        for (int d = m->rank - 1; d >= 0; d--) {
            int64_t index = d > 0 ? last_index(&rest, m->dim[d]) : rest;

            to += index * m->to_stride[d];
            from += index * m->from_stride[d];
        }
        copy_element(m->bytes, k.out[0], to, k.in[0], from);
    }
}

/* Where in an axis of `dim` elements element i of the padded one comes from; -1: nowhere. */
DEVICE int64_t pad_source(int mode, int64_t i, int64_t dim)
{
    int64_t period;

    if (i >= 0 && i < dim)
        return i;
    switch (mode) {
    case MPL_PAD_EDGE:
        return i < 0 ? 0 : dim - 1;
    case MPL_PAD_REFLECT:
        period = dim > 1 ? 2 * (dim - 1) : 1;
        i = (i % period + period) % period;
        return i < dim ? i : period - i;
    case MPL_PAD_WRAP:
        return (i % dim + dim) % dim;
    default:
        return -1;
    }
}

KERNEL pad(const mpl_cuda_kernel k)
{
    const mpl_cuda_pad *p = &k.as.pad;

    FOR_EACH(i, k.n)
    {
        int64_t rest = i, from = 0, stride = 1;

        for (int d = p->rank - 1; d >= 0 && from >= 0; d--) {
            int64_t index = d > 0 ? last_index(&rest, p->dim[d]) : rest;
            int64_t source = pad_source(p->mode, index - p->before[d], p->in_dim[d]);

            from = source < 0 ? -1 : from + source * stride;
            stride *= p->in_dim[d];
        }
        if (from >= 0)
            copy_element(p->bytes, k.out[0], i, k.in[0], from);
        else if (k.in[1] != NULL)
            copy_element(p->bytes, k.out[0], i, k.in[1], 0);
        else
            for (int b = 0; b < p->bytes; b++)
                ((uint8_t *)k.out[0])[i * p->bytes + b] = 0;
    }
}

/* Every index is checked before it is used; one out of range raises the flag and gives element 0 of
 * the axis. */
KERNEL gather(const mpl_cuda_kernel k)
{
    const mpl_cuda_gather *g = &k.as.gather;

    FOR_EACH(i, k.n)
    {
        int64_t rest = i, inner, j, index;

        if (g->by_element) {
            j = i;
            inner = 0;
        } else {
            inner = last_index(&rest, g->inner);
            j = last_index(&rest, g->n_index);
        }
        index = get_int(k.type[1], k.in[1], j);
        if (index < -g->axis_dim || index >= g->axis_dim) {
            *k.flag = 1; /* whoever writes writes the same */
            index = 0;
        }
        index += index < 0 ? g->axis_dim : 0;
        if (g->by_element)
            copy_element(g->bytes, k.out[0], i, k.in[0],
                         offset_of(i, g->rank, g->dim, g->stride) + index * g->along);
        else
            copy_element(g->bytes, k.out[0], i, k.in[0],
                (rest * g->axis_dim + index) * g->inner + inner);
    }
}

/* ---- reductions: one block for each output ---- */

DEVICE fold fold_of(int kind)
{
    switch (kind) {
    case MPL_OP_reduce_max:
    case MPL_OP_global_max_pool:
        return FOLD_MOST;
    case MPL_OP_reduce_min:
        return FOLD_LEAST;
    case MPL_OP_reduce_prod:
        return FOLD_PRODUCT;
    default:
        return FOLD_SUM;
    }
}

/* What of an element is folded. */
DEVICE double folded_part(const mpl_cuda_kernel *k, double v, double most)
{
    switch (k->kind) {
    case MPL_OP_reduce_l1:
        return fabs(v);
    case MPL_OP_reduce_l2:
    case MPL_OP_reduce_sum_square:
        return v * v;
    case MPL_OP_reduce_log_sum_exp:
        return exp(v - most);
    case MPL_OP_global_lp_pool:
        return pow(fabs(v), k->as.reduce.p);
    default:
        return v;
    }
}

DEVICE double finished(const mpl_cuda_kernel *k, double x, double most)
{
    const double n = (double)k->as.reduce.n, p = k->as.reduce.p;

    switch (k->kind) {
    case MPL_OP_reduce_mean:
        return x / n;
    case MPL_OP_global_avg_pool:
        return n > 0 ? x / n : 0;
    case MPL_OP_reduce_l2:
        return sqrt(x);
    case MPL_OP_reduce_log_sum:
        return log(x);
    case MPL_OP_reduce_log_sum_exp: /* an infinite maximum is the answer itself */
        return isinf(most) ? most : most + log(x);
    case MPL_OP_global_lp_pool:
        return p == 2 ? sqrt(x) : p == 1 ? x : pow(x, 1 / p);
    default:
        return x * k->as.reduce.factor;
    }
}

DEVICE double start_of(fold how)
{
    return how == FOLD_PRODUCT ? 1
           : how == FOLD_MOST  ? -INFINITY
           : how == FOLD_LEAST ? INFINITY
                               : 0;
}

KERNEL reduce(const mpl_cuda_kernel k)
{
    SHARED double room[THREADS];
    const mpl_cuda_reduce *r = &k.as.reduce;
    const fold how = fold_of(k.kind);

    for (int64_t o = blockIdx.x; o < k.n; o += gridDim.x) {
        int64_t base = offset_of(o, r->n_kept, r->kept_dim, r->kept_stride);
        double most = 0, x;

        if (k.kind == MPL_OP_reduce_log_sum_exp) {
            most = -INFINITY;
            for (int64_t j = threadIdx.x; j < r->n; j += blockDim.x)
                most = combine(FOLD_MOST, most,
                               get(k.type[0], k.in[0],
                                   base + offset_of(j, r->n_reduced, r->reduced_dim,
                                       r->reduced_stride)));
            most = block_fold(FOLD_MOST, room, most);
        }
        x = start_of(how);
        for (int64_t j = threadIdx.x; j < r->n; j += blockDim.x)
            x = combine(
                how, x,
                folded_part(&k,
                            get(k.type[0], k.in[0],
                                base + offset_of(j, r->n_reduced, r->reduced_dim,
                                    r->reduced_stride)),
                            most));
        x = block_fold(how, room, x);
        if (threadIdx.x == 0)
            put(k.out_type, k.out[0], o, finished(&k, x, most));
    }
}

DEVICE int64_t int_start_of(fold how, int type)
{
    int64_t highest = type == MPL_TYPE_u8     ? UINT8_MAX
                      : type == MPL_TYPE_bool ? 1
                                              : -1 - lowest(type);

    return how == FOLD_PRODUCT ? 1
           : how == FOLD_MOST  ? lowest(type)
           : how == FOLD_LEAST ? highest
                               : 0;
}

KERNEL reduce_int(const mpl_cuda_kernel k)
{
    SHARED int64_t room[THREADS];
    const mpl_cuda_reduce *r = &k.as.reduce;
    const fold how = fold_of(k.kind);

    for (int64_t o = blockIdx.x; o < k.n; o += gridDim.x) {
        int64_t base = offset_of(o, r->n_kept, r->kept_dim, r->kept_stride);
        int64_t x = int_start_of(how, k.type[0]);

        for (int64_t j = threadIdx.x; j < r->n; j += blockDim.x) {
            int64_t v = get_int(k.type[0], k.in[0],
                                base + offset_of(j, r->n_reduced, r->reduced_dim,
                                    r->reduced_stride));

            if (k.kind == MPL_OP_reduce_l1)
                v = v < 0 ? (int64_t)(0 - (uint64_t)v) : v;
            else if (k.kind == MPL_OP_reduce_sum_square)
                v = (int64_t)((uint64_t)v * (uint64_t)v);
            x = combine_int(how, x, v);
        }
        x = block_fold_int(how, room, x);
        if (k.kind == MPL_OP_reduce_mean)
            x = r->n == 0 ? 0 : x / r->n;
        if (threadIdx.x == 0)
            put_int(k.out_type, k.out[0], o, x);
    }
}

/* ---- lanes ---- */

/* Whether element v is chosen over the best so far; NaN never is. */
#define ARG(name, number, get_one)                                                                 \
    KERNEL name(const mpl_cuda_kernel k)                                                           \
    {                                                                                              \
        FOR_EACH(lane, k.n)                                                                        \
        {                                                                                          \
            int64_t base = lane_base(&k, lane), where = 0;                                         \
            number best = get_one(k.type[0], k.in[0], base);                                       \
                                                                                                   \
            for (int64_t i = 1; i < k.as.lanes.n; i++) {                                           \
                number v = get_one(k.type[0], k.in[0], base + i * k.as.lanes.inner);               \
                                                                                                   \
                if ((k.kind == MPL_OP_arg_min ? v < best : v > best)                               \
                     || (k.as.lanes.last && v == best)) {                                          \
                    best = v;                                                                      \
                    where = i;                                                                     \
                }                                                                                  \
            }                                                                                      \
            ((int64_t *)k.out[0])[lane] = where;                                                   \
        }                                                                                          \
    }
ARG(arg, double, get)
ARG(arg_int, int64_t, get_int)

#define CUMSUM(name, number, get_one, put_one, plus)                                               \
    KERNEL name(const mpl_cuda_kernel k)                                                           \
    {                                                                                              \
        FOR_EACH(lane, k.n)                                                                        \
        {                                                                                          \
            int64_t base = lane_base(&k, lane);                                                    \
            number sum = 0;                                                                        \
                                                                                                   \
            for (int64_t i = 0; i < k.as.lanes.n; i++) {                                           \
                int64_t at = base + (k.as.lanes.reverse ? k.as.lanes.n - 1 - i : i)                \
                                       * k.as.lanes.inner;                                         \
                number before = sum;                                                               \
                                                                                                   \
                sum = plus(sum, get_one(k.type[0], k.in[0], at));                                  \
                put_one(k.out_type, k.out[0], at, k.as.lanes.exclusive ? before : sum);            \
            }                                                                                      \
        }                                                                                          \
    }
#define PLUS(a, b)     ((a) + (b))
#define INT_PLUS(a, b) ((int64_t)((uint64_t)(a) + (uint64_t)(b)))
CUMSUM(cumsum, double, get, put, PLUS)
CUMSUM(cumsum_int, int64_t, get_int, put_int, INT_PLUS)

/* softmax, log_softmax, hardmax: one block for each lane; an element is written by the thread that
 * read it. */
KERNEL softmax(const mpl_cuda_kernel k)
{
    SHARED double room[THREADS];
    const mpl_cuda_lanes *l = &k.as.lanes;

    for (int64_t lane = blockIdx.x; lane < k.n; lane += gridDim.x) {
        int64_t base = lane_base(&k, lane);
        double most = -INFINITY, sum = 0, first = INFINITY;

        for (int64_t i = threadIdx.x; i < l->n; i += blockDim.x)
            most = combine(FOLD_MOST, most, get(k.type[0], k.in[0], base + i * l->inner));
        most = block_fold(FOLD_MOST, room, most);
        for (int64_t i = threadIdx.x; i < l->n; i += blockDim.x) {
            double x = get(k.type[0], k.in[0], base + i * l->inner);

            sum += exp(x - most);
            first = (x == most || x != x) && (double)i < first ? (double)i : first;
        }
        sum = block_fold(FOLD_SUM, room, sum);
        first = block_fold(FOLD_LEAST, room, first);
        for (int64_t i = threadIdx.x; i < l->n; i += blockDim.x) {
            double x = get(k.type[0], k.in[0], base + i * l->inner);

            put(k.out_type, k.out[0], base + i * l->inner,
                k.kind == MPL_OP_softmax       ? exp(x - most) / sum
                : k.kind == MPL_OP_log_softmax ? x - most - log(sum)
                                               : (double)((double)i == first));
        }
    }
}

/* ---- normalisation ---- */

/* layer_norm, rms_norm, instance_norm, group_norm: one block for each row. */
KERNEL norm(const mpl_cuda_kernel k)
{
    SHARED double room[THREADS];
    const mpl_cuda_norm *m = &k.as.norm;

    for (int64_t row = blockIdx.x; row < k.n; row += gridDim.x) {
        int64_t base = row * m->n;
        double mean = 0, squares = 0, inverse;

        for (int64_t i = threadIdx.x; i < m->n && m->about_mean; i += blockDim.x)
            mean += get(k.type[0], k.in[0], base + i);
        if (m->about_mean)
            mean = block_fold(FOLD_SUM, room, mean) / (double)m->n;
        for (int64_t i = threadIdx.x; i < m->n; i += blockDim.x) {
            double distance = get(k.type[0], k.in[0], base + i) - mean;

            squares += distance * distance;
        }
        inverse = 1 / sqrt(block_fold(FOLD_SUM, room, squares) / (double)m->n + m->epsilon);
        for (int64_t i = threadIdx.x; i < m->n; i += blockDim.x) {
            double x = (get(k.type[0], k.in[0], base + i) - mean) * inverse;

            if (k.in[1] != NULL)
                x *= get(k.type[1], k.in[1], offset_of(base + i, m->rank, m->dim, m->stride[0]));
            if (k.in[2] != NULL)
                x += get(k.type[2], k.in[2], offset_of(base + i, m->rank, m->dim, m->stride[1]));
            put(k.out_type, k.out[0], base + i, x);
        }
        if (threadIdx.x == 0 && k.out[1] != NULL)
            put(MPL_TYPE_f32, k.out[1], row, mean);
        if (threadIdx.x == 0 && k.out[2] != NULL)
            put(MPL_TYPE_f32, k.out[2], row, inverse);
    }
}

KERNEL lrn(const mpl_cuda_kernel k)
{
    const mpl_cuda_lrn *l = &k.as.lrn;

    FOR_EACH(i, k.n)
    {
        int64_t rest = i, inner = last_index(&rest, l->inner), c = last_index(&rest, l->channels);
        int64_t base = rest * l->channels * l->inner + inner;
        int64_t first = c > l->below ? c - l->below : 0;
        int64_t end = l->channels - c > l->above ? c + l->above + 1 : l->channels;
        double squares = 0;

        for (int64_t j = first; j < end; j++) {
            double v = get(k.type[0], k.in[0], base + j * l->inner);

            squares += v * v;
        }
        put(k.out_type, k.out[0], i,
            get(k.type[0], k.in[0], i) / pow(l->bias + l->factor * squares, l->beta));
    }
}

/* ---- windows ---- */

/* conv and conv_transpose as their definition has them, one thread for each output: for what cuDNN
 * does not take. */
KERNEL conv(const mpl_cuda_kernel k)
{
    const mpl_cuda_window *w = &k.as.window;
    const int64_t taps = w->kernel[0] * w->kernel[1] * w->kernel[2],
        plane = w->in[0] * w->in[1] * w->in[2];

    FOR_EACH(i, k.n)
    {
        int64_t rest = i, o2 = last_index(&rest, w->out[2]), o1 = last_index(&rest, w->out[1]);
        int64_t o0 = last_index(&rest, w->out[0]), channel = last_index(&rest, w->out_channels);
        int64_t group = rest % w->group; /* rest is item * group + group */
        double sum = k.in[2] != NULL ? get(k.type[2], k.in[2],
            group * w->out_channels + channel) : 0;

        if (k.in[3] != NULL) /* may be the output */
            sum += get(k.type[3], k.in[3], i);
        for (int64_t c = 0; c < w->in_channels; c++) {
            int64_t x = (rest * w->in_channels + c) * plane;
            int64_t weight =
                w->transposed ? (group * w->in_channels + c) * w->out_channels + channel
                              : (group * w->out_channels + channel) * w->in_channels + c;

            for (int64_t t = 0; t < taps; t++) {
                int64_t z = seen_by(w, 0, o0, t / w->kernel[2] / w->kernel[1]);
                int64_t y = seen_by(w, 1, o1, t / w->kernel[2] % w->kernel[1]);
                int64_t at = seen_by(w, 2, o2, t % w->kernel[2]);

                if (z >= 0 && y >= 0 && at >= 0)
                    sum += get(k.type[0], k.in[0], x + (z * w->in[1] + y) * w->in[2] + at) *
                           get(k.type[1], k.in[1], weight * taps + t);
            }
        }
        put(k.out_type, k.out[0], i, sum < w->least ? w->least : sum > w->most ? w->most : sum);
    }
}

/* One thread for each output of max_pool, avg_pool, lp_pool; output 1 takes where in x the largest
 * lies, -1: nowhere. */
KERNEL pool(const mpl_cuda_kernel k)
{
    const mpl_cuda_window *w = &k.as.window;
    const int64_t taps = w->kernel[0] * w->kernel[1] * w->kernel[2],
        plane = w->in[0] * w->in[1] * w->in[2];

    FOR_EACH(i, k.n)
    {
        int64_t rest = i, o2 = last_index(&rest, w->out[2]), o1 = last_index(&rest, w->out[1]);
        int64_t o0 = last_index(&rest, w->out[0]), n = 0, where = -1;
        double value = 0;

        for (int64_t t = 0; t < taps; t++) {
            int64_t z = seen_by(w, 0, o0, t / w->kernel[2] / w->kernel[1]);
            int64_t y = seen_by(w, 1, o1, t / w->kernel[2] % w->kernel[1]);
            int64_t x = seen_by(w, 2, o2, t % w->kernel[2]);
            double v;

            if (z < 0 || y < 0 || x < 0)
                continue;
            v = get(k.type[0], k.in[0], rest * plane + (z * w->in[1] + y) * w->in[2] + x);
            if (k.kind == MPL_OP_max_pool && (n == 0 || v > value || (v != v && value == value))) {
                value = v;
                where = rest * plane + (w->column_major ? (x * w->in[1] + y) * w->in[0] + z
                                                        : (z * w->in[1] + y) * w->in[2] + x);
            }
            if (k.kind != MPL_OP_max_pool)
                value += k.kind == MPL_OP_lp_pool ? pow(fabs(v), w->p) : v;
            n++;
        }
        if (k.kind == MPL_OP_max_pool) {
            value = n > 0 ? value : is_float(k.out_type) ? -INFINITY : (double)lowest(k.out_type);
            if (k.out[1] != NULL)
                ((int64_t *)k.out[1])[i] = where;
        } else if (k.kind == MPL_OP_lp_pool) {
            value = w->p == 2 ? sqrt(value) : w->p == 1 ? value : pow(value, 1 / w->p);
        } else {
            if (w->padded)
                n = padded_count(w, 0, o0) * padded_count(w, 1, o1) * padded_count(w, 2, o2);
            value = n > 0 ? value / (double)n : 0;
        }
        put(k.out_type, k.out[0], i, value);
    }
}

/* ---- products ---- */

/* One thread for each element: for what cuBLAS does not take. */
KERNEL product(const mpl_cuda_kernel k)
{
    const mpl_cuda_product *p = &k.as.product;

    FOR_EACH(at, k.n)
    {
        int64_t rest = at, j = last_index(&rest, p->columns), i = last_index(&rest, p->rows);
        int64_t a = offset_of(rest, p->rank, p->dim, p->a_stack) + i * p->a_row;
        int64_t b = offset_of(rest, p->rank, p->dim, p->b_stack) + j * p->b_column;
        int64_t c = i * p->c_row + j * p->c_column;

        if (is_float(k.out_type)) {
            double sum = 0;

            for (int64_t t = 0; t < p->terms; t++)
                sum += get(k.type[0], k.in[0], a + t * p->a_column) * get(k.type[1], k.in[1],
                    b + t * p->b_row);
            sum *= p->alpha;
            if (k.in[2] != NULL)
                sum += p->beta * get(k.type[2], k.in[2], c);
            if (k.in[3] != NULL) /* its own element of the output, where they lie in one place */
                sum += get(k.type[3], k.in[3], at);
            put(k.out_type, k.out[0], at,
                sum < p->least ? p->least : sum > p->most ? p->most : sum);
        } else {
            uint64_t sum = 0;

            for (int64_t t = 0; t < p->terms; t++)
                sum += (uint64_t)get_int(k.type[0], k.in[0], a + t * p->a_column) *
                       (uint64_t)get_int(k.type[1], k.in[1], b + t * p->b_row);
            sum *= (uint64_t)(int64_t)p->alpha;
            if (k.in[2] != NULL)
                sum += (uint64_t)(int64_t)p->beta * (uint64_t)get_int(k.type[2], k.in[2], c);
            put_int(k.out_type, k.out[0], at, (int64_t)sum);
        }
    }
}

/* ---- launching ---- */

static void launch_elementwise(const mpl_cuda_kernel *k, int64_t blocks, void *stream)
{
    int type = k->kind == MPL_OP_where ? k->type[1] : k->type[0];
    int from_int = type > MPL_TYPE_bf16, to_float = k->out_type <= MPL_TYPE_bf16;

    if (k->kind == MPL_OP_batch_norm)
        LAUNCH(batch_norm, blocks, THREADS, stream, *k);
    else if (k->kind == MPL_OP_cast && from_int && to_float)
        LAUNCH(cast_from_int, blocks, THREADS, stream, *k);
    else if (type == MPL_TYPE_f64 || (k->kind == MPL_OP_cast && !from_int) ||
             (k->kind == MPL_OP_pow && from_int && k->type[1] <= MPL_TYPE_bf16))
        LAUNCH(elementwise_double, blocks, THREADS, stream, *k);
    else if (from_int)
        LAUNCH(elementwise_int, blocks, THREADS, stream, *k);
    else
        LAUNCH(elementwise_float, blocks, THREADS, stream, *k);
}

/* A box onto itself: what assign, scatter and fused keep of input 0, in place. */
static int moves_nothing(const mpl_cuda_kernel *k)
{
    const mpl_cuda_move *m = &k->as.move;

    for (int d = 0; d < m->rank; d++)
        if (m->to_stride[d] != m->from_stride[d])
            return 0;
    return k->in[0] == k->out[0];
}

int mpl_cuda_launch(const mpl_cuda_kernel *k, void *stream)
{
    int64_t blocks = blocks_for(k->n, THREADS), alone = blocks_for(k->n, 1);
    int from_float = k->type[0] <= MPL_TYPE_bf16;

    if (k->n == 0 || (k->id == MPL_CUDA_MOVE && moves_nothing(k)))
        return 0;
    switch (k->id) {
    case MPL_CUDA_ELEMENTWISE:
        launch_elementwise(k, blocks, stream);
        break;
    case MPL_CUDA_MOVE:
        LAUNCH(move, blocks, THREADS, stream, *k);
        break;
    case MPL_CUDA_PAD:
        LAUNCH(pad, blocks, THREADS, stream, *k);
        break;
    case MPL_CUDA_GATHER:
        LAUNCH(gather, blocks, THREADS, stream, *k);
        break;
    case MPL_CUDA_REDUCE:
        if (k->as.reduce.whole)
            LAUNCH(reduce_int, alone, threads_for(k->as.reduce.n), stream, *k);
        else
            LAUNCH(reduce, alone, threads_for(k->as.reduce.n), stream, *k);
        break;
    case MPL_CUDA_ARG:
        if (from_float)
            LAUNCH(arg, blocks, THREADS, stream, *k);
        else
            LAUNCH(arg_int, blocks, THREADS, stream, *k);
        break;
    case MPL_CUDA_CUMSUM:
        if (from_float)
            LAUNCH(cumsum, blocks, THREADS, stream, *k);
        else
            LAUNCH(cumsum_int, blocks, THREADS, stream, *k);
        break;
    case MPL_CUDA_SOFTMAX:
        LAUNCH(softmax, alone, threads_for(k->as.lanes.n), stream, *k);
        break;
    case MPL_CUDA_NORM:
        LAUNCH(norm, alone, threads_for(k->as.norm.n), stream, *k);
        break;
    case MPL_CUDA_LRN:
        LAUNCH(lrn, blocks, THREADS, stream, *k);
        break;
    case MPL_CUDA_CONV:
        LAUNCH(conv, blocks, THREADS, stream, *k);
        break;
    case MPL_CUDA_POOL:
        LAUNCH(pool, blocks, THREADS, stream, *k);
        break;
    case MPL_CUDA_PRODUCT:
        LAUNCH(product, blocks, THREADS, stream, *k);
        break;
    case MPL_CUDA_FUSED:
        if (k->out_type == MPL_TYPE_f64)
            LAUNCH(fused_double, blocks, THREADS, stream, *k);
        else
            LAUNCH(fused_float, blocks, THREADS, stream, *k);
        break;
    default:
        if (k->id < MPL_CUDA_CONV_WEIGHT)
            mpl_cuda_launch_move(k, stream);
        else
            mpl_cuda_launch_train(k, stream);
    }
#ifdef __CUDACC__
    return (int)cudaGetLastError();
#else
    return 0;
#endif
}
