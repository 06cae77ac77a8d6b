/* Element-wise operators, normalisation, reductions and scans: small cases whose values follow from
 * mathematics, for every type, into new memory and in place; and what shape rules must refuse. */
#include "tests/support/ops.h"

#include <math.h>

/* Dims: D(2, 3) is [2,3]; SCALAR has none. Elements: V(..). */
#define D(...)                                                                                     \
    {                                                                                              \
        sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t),                                        \
        {                                                                                          \
            __VA_ARGS__                                                                            \
        }                                                                                          \
    }
#define V(...)    ((const double[]){__VA_ARGS__})
#define NO_VALUES ((const double[]){0})
#define T(...)                                                                                     \
    {                                                                                              \
        __VA_ARGS__                                                                                \
    }

/* The counts and the lists of a row. */
#define NO_ATTRS                                                                                   \
    0,                                                                                             \
    {                                                                                              \
        {                                                                                          \
            0                                                                                      \
        }                                                                                          \
    }
#define ATTRS(...)                                                                                 \
    COUNT_OF(mpl_attr, __VA_ARGS__),                                                               \
    {                                                                                              \
        __VA_ARGS__                                                                                \
    }
#define INPUTS(...)                                                                                \
    COUNT_OF(values, __VA_ARGS__),                                                                 \
    {                                                                                              \
        __VA_ARGS__                                                                                \
    }
#define N_ATTRS 3

typedef struct values {
    mpl_shape shape;
    const double *data;
} values;

/* One output; all inputs have the same type. */
typedef struct row {
    const char *what;
    mpl_op_kind kind;
    unsigned types; /* every one is tried */
    uint32_t n_attr;
    mpl_attr attr[N_ATTRS];
    uint32_t n_in;
    values in[3];
    values out;
} row;

#define FUNCTION_ROW(what, op, ...)                                                                \
    {                                                                                              \
        what, MPL_OP_##op, __VA_ARGS__                                                             \
    }

/* Of values of size about 1, each made by a few roundings of inputs that the type holds exactly. */
static double tolerance(mpl_type type)
{
    switch (type) {
    case MPL_TYPE_f64:
        return 1e-13;
    case MPL_TYPE_f32:
        return 1e-6;
    case MPL_TYPE_f16:
        return 0x1p-11;
    case MPL_TYPE_bf16:
        return 0x1p-8;
    default:
        return 0;
    }
}

static bool near(double got, double want, double relative)
{
    if (isnan(want) || isnan(got))
        return isnan(want) && isnan(got);
    if (isinf(want) || isinf(got))
        return want == got;
    return fabs(got - want) <= relative * fabs(want) + (relative > 0 ? 1e-7 * relative : 0);
}

static void check_values(const char *what, mpl_type type, const void *got, const values *want)
{
    for (int64_t i = 0; i < mpl_count(&want->shape); i++)
        if (!near(mpl_get(type, got, i), want->data[i], tolerance(type)))
            fail_msg("%s, %s: element %" PRId64 " is %.9g, not %.9g", what, mpl_type_name(type), i,
                     mpl_get(type, got, i), want->data[i]);
}

/* Whatever may be overwritten by the operator's traits must give the same bytes when it is. */
static void check_in_place(const row *c, const test_tensor *in, const test_op *apart)
{
    unsigned traits = mpl_op_table[c->kind].traits;

    for (uint32_t k = 0; k < c->n_in; k++) {
        test_op r;

        if ((traits & (MPL_IN_PLACE_0 | MPL_IN_PLACE_ANY)) == 0 ||
            (k > 0 && (traits & MPL_IN_PLACE_ANY) == 0) || in[k].type != apart->out[0].type ||
            !mpl_shape_equal(&in[k].shape, &apart->out[0].shape))
            continue;
        assert_ok(&r.ctx, test_op_apply(&r, c->kind, c->n_in, in, c->n_attr, c->attr, 1, (int)k));
        if (memcmp(r.out[0].data, apart->out[0].data, test_bytes(&r.out[0])) != 0)
            fail_msg("%s, %s: differs when input %u is overwritten", c->what,
                     mpl_type_name(r.out[0].type), k);
        test_op_free(&r);
    }
}

static void check_row(const row *c, mpl_type type)
{
    test_tensor in[3];
    test_op r;
    char text[200], wanted[200];

    for (uint32_t i = 0; i < c->n_in; i++)
        in[i] = (test_tensor){true, type, c->in[i].shape, c->in[i].data, NULL};
    if (test_op_apply(&r, c->kind, c->n_in, in, c->n_attr, c->attr, 1, IN_NEW_MEMORY) != MPL_OK)
        fail_msg("%s, %s: %s", c->what, mpl_type_name(type), r.ctx.message);
    if (!mpl_shape_equal(&r.out[0].shape, &c->out.shape))
        fail_msg("%s: dims %s, not %s", c->what, mpl_shape_text(&r.out[0].shape, text),
                 mpl_shape_text(&c->out.shape, wanted));
    check_values(c->what, r.out[0].type, r.out[0].data, &c->out);
    check_in_place(c, in, &r);
    test_op_free(&r);
}

static void check_rows(const row *table, size_t n)
{
    for (size_t i = 0; i < n; i++)
        for (int type = 0; type < MPL_N_TYPES; type++)
            if (mpl_type_in((mpl_type)type, table[i].types))
                check_row(&table[i], (mpl_type)type);
}
#define CHECK_ROWS(table) check_rows(table, sizeof(table) / sizeof *(table))

#define FLOATS  MPL_SET_FLOAT
#define NUMBERS MPL_SET_NUMBER
#define SIGNED  (MPL_SET_FLOAT | MPL_SET_SIGNED)
#define INTS    MPL_SET_INT
#define BOOL    MPL_SET(bool)

/* f over three places that every floating type holds. */
#define FUNCTION(name, a, b, c, f)                                                                 \
    FUNCTION_ROW(#name, name, FLOATS, NO_ATTRS, INPUTS(T(D(3), V(a, b, c))),                       \
                 T(D(3), V(f(a), f(b), f(c))))

static double logistic(double x)
{
    return 1 / (1 + exp(-x));
}
static double log_of_one_and_exp(double x)
{
    return log(1 + exp(x));
}
static double mish_of(double x)
{
    return x * tanh(log(1 + exp(x)));
}
static double normal_share(double x) /* x times the normal distribution up to x */
{
    return x * erfc(-x / sqrt(2)) / 2;
}
static double inverse(double x)
{
    return 1 / x;
}
static double one_sided(double x)
{
    return x / (1 + fabs(x));
}
static double swish_of(double x)
{
    return x * logistic(x);
}

TEST(functions_of_one_operand)
{
    const row table[] = ROW(
        FUNCTION(sigmoid, -2.0, 0.0, 3.0, logistic),
        FUNCTION(softplus, -2.0, 0.0, 3.0, log_of_one_and_exp),
        FUNCTION(mish, -2.0, 0.5, 3.0, mish_of), FUNCTION(gelu, -1.0, 0.5, 2.0, normal_share),
        FUNCTION(swish, -2.0, 0.5, 3.0, swish_of), FUNCTION(softsign, -3.0, 0.5, 7.0, one_sided),
        FUNCTION(tanh, -2.0, 0.25, 1.0, tanh), FUNCTION(exp, -2.0, 0.0, 3.0, exp),
        FUNCTION(log, 0.5, 1.0, 8.0, log), FUNCTION(sqrt, 0.25, 2.0, 9.0, sqrt),
        FUNCTION(reciprocal, -4.0, 0.5, 3.0, inverse), FUNCTION(erf, -1.0, 0.25, 2.0, erf),
        FUNCTION(sin, -2.0, 0.0, 3.0, sin), FUNCTION(cos, -2.0, 0.0, 3.0, cos),
        FUNCTION(tan, -2.0, 0.0, 0.5, tan), FUNCTION(asin, -1.0, 0.25, 0.5, asin),
        FUNCTION(acos, -1.0, 0.25, 0.5, acos), FUNCTION(atan, -8.0, 0.25, 2.0, atan),
        FUNCTION(sinh, -2.0, 0.25, 3.0, sinh), FUNCTION(cosh, -2.0, 0.0, 3.0, cosh),
        FUNCTION(asinh, -2.0, 0.25, 3.0, asinh), FUNCTION(acosh, 1.0, 1.5, 8.0, acosh),
        FUNCTION(atanh, -0.5, 0.25, 0.75, atanh),
        FUNCTION_ROW("floor", floor, FLOATS, NO_ATTRS, INPUTS(T(D(4), V(-1.5, -1, 0.5, 2.75))),
                     T(D(4), V(-2, -1, 0, 2))),
        FUNCTION_ROW("ceil", ceil, FLOATS, NO_ATTRS, INPUTS(T(D(4), V(-1.5, -1, 0.5, 2.75))),
                     T(D(4), V(-1, -1, 1, 3))),
        FUNCTION_ROW("ties go to the even one", round, FLOATS, NO_ATTRS,
                     INPUTS(T(D(6), V(-2.5, -1.5, 0.5, 1.5, 2.5, 2.75))),
                     T(D(6), V(-2, -2, 0, 2, 2, 3))),
        FUNCTION_ROW("abs", abs, SIGNED, NO_ATTRS, INPUTS(T(D(3), V(-5, 0, 7))),
                     T(D(3), V(5, 0, 7))),
        FUNCTION_ROW("abs of what has no sign", abs, MPL_SET(u8), NO_ATTRS,
                     INPUTS(T(D(2), V(0, 255))), T(D(2), V(0, 255))),
        FUNCTION_ROW("abs of -128", abs, MPL_SET(i8), NO_ATTRS, INPUTS(T(D(1), V(-128))),
                     T(D(1), V(-128))),
        FUNCTION_ROW("neg", neg, SIGNED, NO_ATTRS, INPUTS(T(D(3), V(-5, 0, 7))),
                     T(D(3), V(5, 0, -7))),
        FUNCTION_ROW("sign", sign, SIGNED, NO_ATTRS, INPUTS(T(D(3), V(-5, 0, 7))),
                     T(D(3), V(-1, 0, 1))),
        FUNCTION_ROW("sign of NaN", sign, FLOATS, NO_ATTRS, INPUTS(T(D(1), V(NAN))),
                     T(D(1), V(NAN))),
        FUNCTION_ROW("relu", relu, SIGNED, NO_ATTRS, INPUTS(T(D(3), V(-5, 0, 7))),
                     T(D(3), V(0, 0, 7))),
        FUNCTION_ROW("relu of no number", relu, FLOATS, NO_ATTRS,
                     INPUTS(T(D(3), V(NAN, -INFINITY, INFINITY))), T(D(3), V(NAN, 0, INFINITY))),
        FUNCTION_ROW("a scalar", neg, SIGNED, NO_ATTRS, INPUTS(T(SCALAR, V(3))), T(SCALAR, V(-3))),
        FUNCTION_ROW("no elements", neg, SIGNED, NO_ATTRS, INPUTS(T(D(2, 0, 3), NO_VALUES)),
                     T(D(2, 0, 3), NO_VALUES)),
        FUNCTION_ROW("sigmoid far out", sigmoid, FLOATS, NO_ATTRS, INPUTS(T(D(2), V(-2048, 2048))),
                     T(D(2), V(0, 1))),
        FUNCTION_ROW("softplus far out", softplus, FLOATS, NO_ATTRS,
                     INPUTS(T(D(2), V(-2048, 2048))), T(D(2), V(0, 2048))),
        FUNCTION_ROW("leaky_relu", leaky_relu, FLOATS, ATTRS(MPL_FLOAT(alpha, 0.25)),
                     INPUTS(T(D(3), V(-4, 0, 3))), T(D(3), V(-1, 0, 3))),
        FUNCTION_ROW("leaky_relu, slope by default", leaky_relu, FLOATS, NO_ATTRS,
                     INPUTS(T(D(1), V(-4))), T(D(1), V(-0.04))),
        FUNCTION_ROW("elu", elu, FLOATS, ATTRS(MPL_FLOAT(alpha, 2)), INPUTS(T(D(3), V(-1, 0, 3))),
                     T(D(3), V(2 * (exp(-1) - 1), 0, 3))),
        FUNCTION_ROW("celu", celu, FLOATS, ATTRS(MPL_FLOAT(alpha, 2)), INPUTS(T(D(3), V(-1, 0, 3))),
                     T(D(3), V(2 * (exp(-0.5) - 1), 0, 3))),
        FUNCTION_ROW("selu", selu, FLOATS, ATTRS(MPL_FLOAT(alpha, 2), MPL_FLOAT(gamma, 3)),
                     INPUTS(T(D(3), V(-1, 0, 3))), T(D(3), V(3 * (2 * exp(-1) - 2), 0, 9))),
        FUNCTION_ROW(
            "selu's constants, as floats", selu, FLOATS, NO_ATTRS, INPUTS(T(D(2), V(-1, 1))),
            T(D(2), V((double)1.0507009873554805f * (double)1.6732632423543772f * (exp(-1) - 1),
                      (double)1.0507009873554805f))),
        FUNCTION_ROW("hard_sigmoid", hard_sigmoid, FLOATS,
                     ATTRS(MPL_FLOAT(alpha, 0.25), MPL_FLOAT(beta, 0.5)),
                     INPUTS(T(D(4), V(-3, -1, 1, 3))), T(D(4), V(0, 0.25, 0.75, 1))),
        FUNCTION_ROW("hard_sigmoid by default", hard_sigmoid, FLOATS, NO_ATTRS,
                     INPUTS(T(D(1), V(1))), T(D(1), V(0.7))),
        FUNCTION_ROW("hard_swish", hard_swish, FLOATS, NO_ATTRS,
                     INPUTS(T(D(5), V(-4, -3, -1.5, 1.5, 4))), T(D(5), V(0, 0, -0.375, 1.125, 4))),
        FUNCTION_ROW("swish, steeper", swish, FLOATS, ATTRS(MPL_FLOAT(alpha, 2)),
                     INPUTS(T(D(2), V(-1, 1))), T(D(2), V(-1 / (1 + exp(2)), 1 / (1 + exp(-2))))),
        FUNCTION_ROW("thresholded_relu", thresholded_relu, FLOATS, ATTRS(MPL_FLOAT(alpha, 2)),
                     INPUTS(T(D(3), V(-4, 2, 3))), T(D(3), V(0, 0, 3))),
        FUNCTION_ROW("shrink, hard", shrink, SIGNED, ATTRS(MPL_FLOAT(lambd, 1.5)),
                     INPUTS(T(D(4), V(-2, -1, 1, 2))), T(D(4), V(-2, 0, 0, 2))),
        FUNCTION_ROW("shrink, soft", shrink, SIGNED,
                     ATTRS(MPL_FLOAT(lambd, 1.5), MPL_FLOAT(bias, 1)),
                     INPUTS(T(D(4), V(-3, -1, 1, 4))), T(D(4), V(-2, 0, 0, 3))),
        FUNCTION_ROW("gelu by tanh", gelu, FLOATS, ATTRS(MPL_TEXT(approximate, "tanh")),
                     INPUTS(T(D(2), V(-1, 2))),
                     T(D(2), V(-0.5 * (1 + tanh(-sqrt(2 / M_PI) * 1.044715)),
                               1 + tanh(sqrt(2 / M_PI) * (2 + 8 * 0.044715))))),
        FUNCTION_ROW("erf of integers", erf, MPL_SET_SIGNED, NO_ATTRS,
                     INPUTS(T(D(3), V(-100, 1, 100))), T(D(3), V(-1, 0, 1))),
        FUNCTION_ROW("not", not, BOOL, NO_ATTRS, INPUTS(T(D(2), V(0, 1))), T(D(2), V(1, 0))),
        FUNCTION_ROW("bitwise_not", bitwise_not, MPL_SET_SIGNED, NO_ATTRS, INPUTS(T(D(2), V(0, 5))),
                     T(D(2), V(-1, -6))),
        FUNCTION_ROW("bitwise_not of bytes", bitwise_not, MPL_SET(u8), NO_ATTRS,
                     INPUTS(T(D(2), V(0, 5))), T(D(2), V(255, 250))),
        FUNCTION_ROW("is_nan", is_nan, FLOATS, NO_ATTRS, INPUTS(T(D(3), V(1, NAN, INFINITY))),
                     T(D(3), V(0, 1, 0))),
        FUNCTION_ROW("is_inf", is_inf, FLOATS, NO_ATTRS,
                     INPUTS(T(D(4), V(-INFINITY, NAN, INFINITY, 65504))), T(D(4), V(1, 0, 1, 0))),
        FUNCTION_ROW("is_inf, above alone", is_inf, FLOATS, ATTRS(MPL_INT(detect_negative, 0)),
                     INPUTS(T(D(2), V(-INFINITY, INFINITY))), T(D(2), V(0, 1))),
        FUNCTION_ROW("is_inf, below alone", is_inf, FLOATS, ATTRS(MPL_INT(detect_positive, 0)),
                     INPUTS(T(D(2), V(-INFINITY, INFINITY))), T(D(2), V(1, 0))),
        FUNCTION_ROW("clip", clip, SIGNED, NO_ATTRS,
                     INPUTS(T(D(3), V(-5, 1, 9)), T(SCALAR, V(-2)), T(SCALAR, V(4))),
                     T(D(3), V(-2, 1, 4))),
        FUNCTION_ROW("clip from below", clip, NUMBERS, NO_ATTRS,
                     INPUTS(T(D(2), V(1, 9)), T(SCALAR, V(3))), T(D(2), V(3, 9))),
        FUNCTION_ROW("clip, no bounds", clip, SIGNED, NO_ATTRS, INPUTS(T(D(2), V(-5, 9))),
                     T(D(2), V(-5, 9))),
        FUNCTION_ROW("clip, the upper bound is the lower one", clip, NUMBERS, NO_ATTRS,
                     INPUTS(T(D(3), V(0, 3, 9)), T(SCALAR, V(5)), T(SCALAR, V(2))),
                     T(D(3), V(2, 2, 2))),
        FUNCTION_ROW("clip of NaN", clip, FLOATS, NO_ATTRS,
                     INPUTS(T(D(1), V(NAN)), T(SCALAR, V(-2)), T(SCALAR, V(4))), T(D(1), V(NAN))));

    CHECK_ROWS(table);
}

TEST(operators_of_two_operands)
{
    const row table[] = ROW(
        FUNCTION_ROW("add", add, NUMBERS, NO_ATTRS,
                     INPUTS(T(D(3), V(1, 2, 3)), T(D(3), V(5, 0, 7))), T(D(3), V(6, 2, 10))),
        FUNCTION_ROW("a scalar on the right", sub, NUMBERS, NO_ATTRS,
                     INPUTS(T(D(2, 2), V(5, 6, 7, 8)), T(SCALAR, V(4))), T(D(2, 2), V(1, 2, 3, 4))),
        FUNCTION_ROW("a scalar on the left", sub, NUMBERS, NO_ATTRS,
                     INPUTS(T(SCALAR, V(9)), T(D(2, 2), V(5, 6, 7, 8))), T(D(2, 2), V(4, 3, 2, 1))),
        FUNCTION_ROW("two scalars", mul, NUMBERS, NO_ATTRS,
                     INPUTS(T(SCALAR, V(3)), T(SCALAR, V(4))), T(SCALAR, V(12))),
        FUNCTION_ROW("an element a row", add, NUMBERS, NO_ATTRS,
                     INPUTS(T(D(2, 3), V(1, 2, 3, 4, 5, 6)), T(D(2, 1), V(10, 20))),
                     T(D(2, 3), V(11, 12, 13, 24, 25, 26))),
        FUNCTION_ROW("an element a column", add, NUMBERS, NO_ATTRS,
                     INPUTS(T(D(2, 3), V(1, 2, 3, 4, 5, 6)), T(D(3), V(10, 20, 30))),
                     T(D(2, 3), V(11, 22, 33, 14, 25, 36))),
        FUNCTION_ROW("an element a channel", mul, NUMBERS, NO_ATTRS,
                     INPUTS(T(D(1, 2, 2, 2), V(1, 2, 3, 4, 5, 6, 7, 8)), T(D(2, 1, 1), V(1, 10))),
                     T(D(1, 2, 2, 2), V(1, 2, 3, 4, 50, 60, 70, 80))),
        FUNCTION_ROW("both are repeated", add, NUMBERS, NO_ATTRS,
                     INPUTS(T(D(2, 1), V(10, 20)), T(D(1, 3), V(1, 2, 3))),
                     T(D(2, 3), V(11, 12, 13, 21, 22, 23))),
        FUNCTION_ROW("repeated in the middle", add, NUMBERS, NO_ATTRS,
                     INPUTS(T(D(2, 1, 2), V(10, 20, 30, 40)), T(D(2, 2), V(1, 2, 3, 4))),
                     T(D(2, 2, 2), V(11, 22, 13, 24, 31, 42, 33, 44))),
        FUNCTION_ROW("a dim of 0 wins over 1", add, NUMBERS, NO_ATTRS,
                     INPUTS(T(D(2, 0), NO_VALUES), T(D(2, 1), V(1, 2))), T(D(2, 0), NO_VALUES)),
        FUNCTION_ROW("div", div, NUMBERS, NO_ATTRS, INPUTS(T(D(2), V(12, 8)), T(D(2), V(3, 4))),
                     T(D(2), V(4, 2))),
        FUNCTION_ROW("division goes towards zero", div, MPL_SET_SIGNED, NO_ATTRS,
                     INPUTS(T(D(4), V(7, -7, 7, -7)), T(D(4), V(2, 2, -2, -2))),
                     T(D(4), V(3, -3, -3, 3))),
        FUNCTION_ROW("division by zero", div, INTS, NO_ATTRS,
                     INPUTS(T(D(2), V(7, 0)), T(SCALAR, V(0))), T(D(2), V(0, 0))),
        FUNCTION_ROW("floats divide by zero", div, FLOATS, NO_ATTRS,
                     INPUTS(T(D(3), V(7, 0, -7)), T(SCALAR, V(0))),
                     T(D(3), V(INFINITY, NAN, -INFINITY))),
        FUNCTION_ROW("-128 / -1 wraps", div, MPL_SET(i8), NO_ATTRS,
                     INPUTS(T(D(1), V(-128)), T(D(1), V(-1))), T(D(1), V(-128))),
        FUNCTION_ROW("-2^31 / -1 wraps", div, MPL_SET(i32), NO_ATTRS,
                     INPUTS(T(D(1), V(-0x1p31)), T(D(1), V(-1))), T(D(1), V(-0x1p31))),
        FUNCTION_ROW("bytes wrap up", add, MPL_SET(u8), NO_ATTRS,
                     INPUTS(T(D(1), V(200)), T(D(1), V(100))), T(D(1), V(44))),
        FUNCTION_ROW("bytes wrap down", sub, MPL_SET(u8), NO_ATTRS,
                     INPUTS(T(D(1), V(1)), T(D(1), V(2))), T(D(1), V(255))),
        FUNCTION_ROW("signed bytes wrap", mul, MPL_SET(i8), NO_ATTRS,
                     INPUTS(T(D(1), V(16)), T(D(1), V(8))), T(D(1), V(-128))),
        FUNCTION_ROW("prelu", prelu, FLOATS | MPL_SET_INDEX, NO_ATTRS,
                     INPUTS(T(D(2, 3), V(-1, 2, -3, 4, -5, 6)), T(D(3), V(2, 3, 4))),
                     T(D(2, 3), V(-2, 2, -12, 4, -15, 6))),
        FUNCTION_ROW("mod has the sign of the divisor", mod, MPL_SET_SIGNED, NO_ATTRS,
                     INPUTS(T(D(4), V(-4, 7, 5, -7)), T(D(4), V(2, -3, 8, 3))),
                     T(D(4), V(0, -2, 5, 2))),
        FUNCTION_ROW("fmod has the sign of the dividend", mod, SIGNED, ATTRS(MPL_INT(fmod, 1)),
                     INPUTS(T(D(4), V(-4, 7, 5, -7)), T(D(4), V(2, -3, 8, 3))),
                     T(D(4), V(0, 1, 5, -1))),
        FUNCTION_ROW("fmod of fractions", mod, FLOATS, ATTRS(MPL_INT(fmod, 1)),
                     INPUTS(T(D(2), V(-4.5, 5.75)), T(D(2), V(2, -2.5))), T(D(2), V(-0.5, 0.75))),
        FUNCTION_ROW("mod by zero", mod, INTS, NO_ATTRS, INPUTS(T(D(1), V(7)), T(D(1), V(0))),
                     T(D(1), V(0))),
        FUNCTION_ROW("mod by -1", mod, MPL_SET(i32), NO_ATTRS,
                     INPUTS(T(D(1), V(-0x1p31)), T(D(1), V(-1))), T(D(1), V(0))),
        FUNCTION_ROW("pow", pow, FLOATS | MPL_SET_INDEX, NO_ATTRS,
                     INPUTS(T(D(4), V(2, 3, -2, 5)), T(D(4), V(10, 2, 3, 0))),
                     T(D(4), V(1024, 9, -8, 1))),
        FUNCTION_ROW("pow of a fraction", pow, FLOATS, NO_ATTRS,
                     INPUTS(T(D(2), V(2, 4)), T(D(2), V(0.5, -0.5))), T(D(2), V(sqrt(2), 0.5))),
        FUNCTION_ROW("integers below 1 are 0", pow, MPL_SET_INDEX, NO_ATTRS,
                     INPUTS(T(D(4), V(2, 1, -1, 0)), T(D(4), V(-1, -5, -3, -1))),
                     T(D(4), V(0, 1, -1, 0))),
        FUNCTION_ROW("bitwise_and", bitwise_and, INTS, NO_ATTRS,
                     INPUTS(T(D(1), V(12)), T(D(1), V(10))), T(D(1), V(8))),
        FUNCTION_ROW("bitwise_or", bitwise_or, INTS, NO_ATTRS,
                     INPUTS(T(D(1), V(12)), T(D(1), V(10))), T(D(1), V(14))),
        FUNCTION_ROW("bitwise_xor", bitwise_xor, INTS, NO_ATTRS,
                     INPUTS(T(D(1), V(12)), T(D(1), V(10))), T(D(1), V(6))),
        FUNCTION_ROW("shift left", bit_shift, MPL_SET(u8), ATTRS(MPL_TEXT(direction, "LEFT")),
                     INPUTS(T(D(3), V(3, 129, 1)), T(D(3), V(2, 1, 8))), T(D(3), V(12, 2, 0))),
        FUNCTION_ROW("shift right", bit_shift, MPL_SET(u8), ATTRS(MPL_TEXT(direction, "RIGHT")),
                     INPUTS(T(D(3), V(12, 129, 255)), T(D(3), V(2, 1, 200))), T(D(3), V(3, 64, 0))),
        FUNCTION_ROW("and", and, BOOL, NO_ATTRS,
                     INPUTS(T(D(4), V(0, 0, 1, 1)), T(D(4), V(0, 1, 0, 1))),
                     T(D(4), V(0, 0, 0, 1))),
        FUNCTION_ROW("or", or, BOOL, NO_ATTRS,
                     INPUTS(T(D(4), V(0, 0, 1, 1)), T(D(4), V(0, 1, 0, 1))),
                     T(D(4), V(0, 1, 1, 1))),
        FUNCTION_ROW("xor", xor, BOOL, NO_ATTRS,
                     INPUTS(T(D(4), V(0, 0, 1, 1)), T(D(4), V(0, 1, 0, 1))),
                     T(D(4), V(0, 1, 1, 0))),
        FUNCTION_ROW("equal", equal, NUMBERS, NO_ATTRS,
                     INPUTS(T(D(3), V(1, 2, 3)), T(SCALAR, V(2))), T(D(3), V(0, 1, 0))),
        FUNCTION_ROW("equal of bools", equal, BOOL, NO_ATTRS,
                     INPUTS(T(D(2), V(0, 1)), T(D(2), V(1, 1))), T(D(2), V(0, 1))),
        FUNCTION_ROW("less", less, NUMBERS, NO_ATTRS, INPUTS(T(D(3), V(1, 2, 3)), T(SCALAR, V(2))),
                     T(D(3), V(1, 0, 0))),
        FUNCTION_ROW("greater", greater, NUMBERS, NO_ATTRS,
                     INPUTS(T(D(3), V(1, 2, 3)), T(SCALAR, V(2))), T(D(3), V(0, 0, 1))),
        FUNCTION_ROW("less_equal", less_equal, NUMBERS, NO_ATTRS,
                     INPUTS(T(D(3), V(1, 2, 3)), T(SCALAR, V(2))), T(D(3), V(1, 1, 0))),
        FUNCTION_ROW("greater_equal", greater_equal, NUMBERS, NO_ATTRS,
                     INPUTS(T(D(3), V(1, 2, 3)), T(SCALAR, V(2))), T(D(3), V(0, 1, 1))),
        FUNCTION_ROW("nothing compares with NaN", less_equal, FLOATS, NO_ATTRS,
                     INPUTS(T(D(2), V(NAN, 1)), T(D(2), V(1, NAN))), T(D(2), V(0, 0))));

    CHECK_ROWS(table);
}

TEST(operators_of_many_operands)
{
    const row table[] = ROW(
        FUNCTION_ROW("min", min, NUMBERS, NO_ATTRS,
                     INPUTS(T(D(3), V(3, 2, 9)), T(D(3), V(1, 5, 9)), T(D(3), V(2, 7, 8))),
                     T(D(3), V(1, 2, 8))),
        FUNCTION_ROW("max, repeated", max, NUMBERS, NO_ATTRS,
                     INPUTS(T(D(2, 1), V(3, 6)), T(D(3), V(1, 5, 9)), T(SCALAR, V(4))),
                     T(D(2, 3), V(4, 5, 9, 6, 6, 9))),
        FUNCTION_ROW("the last operand may be overwritten", max, NUMBERS, NO_ATTRS,
                     INPUTS(T(SCALAR, V(4)), T(D(3), V(1, 5, 9)), T(D(2, 3), V(0, 0, 10, 8, 1, 1))),
                     T(D(2, 3), V(4, 5, 10, 8, 5, 9))),
        FUNCTION_ROW("min hands NaN on", min, FLOATS, NO_ATTRS,
                     INPUTS(T(D(2), V(NAN, 1)), T(D(2), V(1, NAN))), T(D(2), V(NAN, NAN))),
        FUNCTION_ROW("max hands NaN on", max, FLOATS, NO_ATTRS,
                     INPUTS(T(D(2), V(NAN, 1)), T(D(2), V(1, NAN))), T(D(2), V(NAN, NAN))),
        FUNCTION_ROW("sum", sum, FLOATS, NO_ATTRS,
                     INPUTS(T(D(2), V(1, 2)), T(D(2), V(3, 4)), T(SCALAR, V(0.5))),
                     T(D(2), V(4.5, 6.5))),
        FUNCTION_ROW("sum of one", sum, FLOATS, NO_ATTRS, INPUTS(T(D(2), V(1, 2))),
                     T(D(2), V(1, 2))),
        FUNCTION_ROW("mean", mean, FLOATS, NO_ATTRS,
                     INPUTS(T(D(2), V(1, 2)), T(D(2), V(3, 4)), T(D(2), V(5, -6))),
                     T(D(2), V(3, 0))),
        FUNCTION_ROW("mean of nothing", mean, FLOATS, NO_ATTRS,
                     INPUTS(T(D(0, 2), NO_VALUES), T(D(2), V(3, 4))), T(D(0, 2), NO_VALUES)),
        FUNCTION_ROW("where of bools", where, BOOL, NO_ATTRS,
                     INPUTS(T(D(2, 2), V(1, 0, 0, 1)), T(D(2), V(1, 0)), T(D(2, 1), V(0, 1))),
                     T(D(2, 2), V(1, 0, 1, 0))));

    CHECK_ROWS(table);
}

/* where's condition is bool whatever the others are. */
TEST(where_picks)
{
    for (int type = 0; type < MPL_N_TYPES; type++)
        for (int place = IN_NEW_MEMORY; place < 3; place++) {
            test_tensor in[] = {
                {true, MPL_TYPE_bool, D(2, 1, 2), V(1, 0, 0, 1), NULL},
                {true, (mpl_type)type, D(2, 2, 2), V(1, 1, 0, 1, 0, 0, 1, 1), NULL},
                {true, (mpl_type)type, D(2, 2, 2), V(0, 0, 1, 0, 1, 0, 0, 0), NULL}};
            values want = {D(2, 2, 2), V(1, 0, 0, 0, 1, 0, 0, 1)};
            test_op r;

            if (place == 0)
                continue; /* the condition has other dims */
            assert_ok(&r.ctx, test_op_apply(&r, MPL_OP_where, 3, in, 0, NULL, 1, place));
            assert_int_equal(r.out[0].type, type);
            check_values("where", r.out[0].type, r.out[0].data, &want);
            test_op_free(&r);
        }
}

TEST(normalisation)
{
    const double e1 = exp(1), e2 = exp(2), e3 = exp(3), three = e1 + e2 + e3;
    const double one = 1 / (1 + 1e-9), fifth = 5 / (5 + 1e-9); /* a distance over the deviation and
                                                                  1e-9 */

    const row table[] = ROW(
        FUNCTION_ROW("softmax", softmax, FLOATS, NO_ATTRS, INPUTS(T(D(2, 3), V(1, 2, 3, 8, 8, 8))),
                     T(D(2, 3), V(e1 / three, e2 / three, e3 / three, 1 / 3.0, 1 / 3.0, 1 / 3.0))),
        FUNCTION_ROW("softmax down", softmax, FLOATS, ATTRS(MPL_INT(axis, -2)),
                     INPUTS(T(D(3, 2), V(1, 8, 2, 8, 3, 8))),
                     T(D(3, 2), V(e1 / three, 1 / 3.0, e2 / three, 1 / 3.0, e3 / three, 1 / 3.0))),
        FUNCTION_ROW("softmax far out", softmax, FLOATS, ATTRS(MPL_INT(axis, 0)),
                     INPUTS(T(D(3), V(-30000, 30000, 30000))), T(D(3), V(0, 0.5, 0.5))),
        FUNCTION_ROW("softmax of nothing", softmax, FLOATS, ATTRS(MPL_INT(axis, 0)),
                     INPUTS(T(D(0, 2), NO_VALUES)), T(D(0, 2), NO_VALUES)),
        FUNCTION_ROW("log_softmax", log_softmax, FLOATS, NO_ATTRS, INPUTS(T(D(3), V(1, 2, 3))),
                     T(D(3), V(1 - log(three), 2 - log(three), 3 - log(three)))),
        FUNCTION_ROW("log_softmax far out", log_softmax, FLOATS, NO_ATTRS,
                     INPUTS(T(D(2), V(-30000, 30000))), T(D(2), V(-60000, 0))),
        FUNCTION_ROW("hardmax takes the first", hardmax, FLOATS, NO_ATTRS,
                     INPUTS(T(D(2, 3), V(1, 3, 3, 5, 2, 1))), T(D(2, 3), V(0, 1, 0, 1, 0, 0))),
        FUNCTION_ROW("hardmax down", hardmax, FLOATS, ATTRS(MPL_INT(axis, 0)),
                     INPUTS(T(D(2, 3), V(1, 3, 3, 5, 2, 3))), T(D(2, 3), V(0, 1, 1, 1, 0, 0))),
        FUNCTION_ROW("lrn of one channel", lrn, FLOATS,
                     ATTRS(MPL_INT(size, 1), MPL_FLOAT(alpha, 3), MPL_FLOAT(beta, 0.5)),
                     INPUTS(T(D(1, 2, 2), V(1, 0, -1, 0))), T(D(1, 2, 2), V(0.5, 0, -0.5, 0))),
        /* 1 + 8 / 2 * squares of this channel and the next one, and the root of it */
        FUNCTION_ROW("an even lrn looks further up", lrn, FLOATS,
                     ATTRS(MPL_INT(size, 2), MPL_FLOAT(alpha, 8), MPL_FLOAT(beta, 0.5)),
                     INPUTS(T(D(1, 3, 1), V(1, 1, 2))),
                     T(D(1, 3, 1), V(1 / 3.0, 1 / sqrt(21), 2 / sqrt(17)))),
        FUNCTION_ROW("lrn, three quarters", lrn, FLOATS,
                     ATTRS(MPL_INT(size, 3), MPL_FLOAT(alpha, 15)),
                     INPUTS(T(D(1, 3, 1), V(1, 1, 1))),
                     T(D(1, 3, 1), V(1 / pow(11, 0.75), 1 / 8.0, 1 / pow(11, 0.75)))),
        FUNCTION_ROW("lp_norm", lp_norm, FLOATS, NO_ATTRS, INPUTS(T(D(2, 2), V(3, 4, 0, 0))),
                     T(D(2, 2), V(0.6, 0.8, 0, 0))),
        FUNCTION_ROW("lp_norm, sums of sizes, down", lp_norm, FLOATS,
                     ATTRS(MPL_INT(p, 1), MPL_INT(axis, 0)), INPUTS(T(D(2, 2), V(3, -2, -1, 6))),
                     T(D(2, 2), V(0.75, -0.25, -0.25, 0.75))),
        FUNCTION_ROW("mean_variance_norm", mean_variance_norm, FLOATS, NO_ATTRS,
                     INPUTS(T(D(2, 2, 1, 2), V(1, 3, 10, 20, 1, 3, 10, 20))),
                     T(D(2, 2, 1, 2), V(-one, one, -fifth, fifth, -one, one, -fifth, fifth))),
        FUNCTION_ROW("mean_variance_norm, named axes", mean_variance_norm, FLOATS,
                     ATTRS(MPL_INTS(axes, 1, (const int64_t[]){-1})),
                     INPUTS(T(D(2, 2), V(1, 3, 10, 20))), T(D(2, 2), V(-one, one, -fifth, fifth))),
        FUNCTION_ROW("rms_norm", rms_norm, FLOATS, ATTRS(MPL_FLOAT(epsilon, 0)),
                     INPUTS(T(D(2, 2), V(1, 7, 2, -2)), T(D(2), V(5, 10))),
                     T(D(2, 2), V(1, 14, 5, -10))),
        FUNCTION_ROW("rms_norm over two dims", rms_norm, FLOATS,
                     ATTRS(MPL_FLOAT(epsilon, 0), MPL_INT(axis, 0)),
                     INPUTS(T(D(2, 2), V(1, 1, 1, 5)), T(D(2, 1), V(1, 2))),
                     T(D(2, 2), V(1 / sqrt(7), 1 / sqrt(7), 2 / sqrt(7), 10 / sqrt(7)))),
        FUNCTION_ROW("layer_norm", layer_norm, FLOATS, ATTRS(MPL_FLOAT(epsilon, 0)),
                     INPUTS(T(D(2, 2), V(1, 3, 20, 10)), T(D(2), V(2, 4)), T(D(2), V(1, 0))),
                     T(D(2, 2), V(-1, 4, 3, -4))),
        FUNCTION_ROW("layer_norm of all, scalars beside it", layer_norm, FLOATS,
                     ATTRS(MPL_FLOAT(epsilon, 0), MPL_INT(axis, -2)),
                     INPUTS(T(D(2, 2), V(1, 3, 3, 1)), T(SCALAR, V(2)), T(SCALAR, V(1))),
                     T(D(2, 2), V(-1, 3, 3, -1))),
        FUNCTION_ROW("layer_norm, a scale a row", layer_norm, FLOATS, ATTRS(MPL_FLOAT(epsilon, 0)),
                     INPUTS(T(D(2, 2), V(1, 3, 20, 10)), T(D(2, 1), V(2, 4))),
                     T(D(2, 2), V(-2, 2, 4, -4))),
        FUNCTION_ROW("layer_norm of a constant", layer_norm, FLOATS, ATTRS(MPL_FLOAT(epsilon, 4)),
                     INPUTS(T(D(1, 2), V(5, 5)), T(D(2), V(2, 4))), T(D(1, 2), V(0, 0))),
        FUNCTION_ROW("epsilon counts", layer_norm, FLOATS, ATTRS(MPL_FLOAT(epsilon, 3)),
                     INPUTS(T(D(1, 2), V(1, 3)), T(D(2), V(2, 4))), T(D(1, 2), V(-1, 2))),
        FUNCTION_ROW(
            "instance_norm", instance_norm, FLOATS, ATTRS(MPL_FLOAT(epsilon, 3)),
            INPUTS(T(D(2, 2, 2), V(1, 3, 20, 22, 5, 7, 8, 6)), T(D(2), V(2, 4)), T(D(2), V(0, 1))),
            T(D(2, 2, 2), V(-1, 1, -1, 3, -1, 1, 3, -1))),
        FUNCTION_ROW(
            "group_norm", group_norm, FLOATS, ATTRS(MPL_FLOAT(epsilon, 3), MPL_INT(num_groups, 2)),
            INPUTS(T(D(1, 4, 1), V(1, 3, 22, 20)), T(D(4), V(2, 4, 6, 8)), T(D(4), V(0, 0, 1, 1))),
            T(D(1, 4, 1), V(-1, 2, 4, -3))));

    CHECK_ROWS(table);
}

TEST(batch_norm_by_channel)
{
    /* (x - mean) * scale / sqrt(variance + 1) + bias, the roots being 2 and 3 */
    mpl_attr epsilon = MPL_FLOAT(epsilon, 1);

    for (int type = 0; type < MPL_N_TYPES; type++) {
        mpl_type t = (mpl_type)type;
        test_tensor in[] = ROW({true, t, D(2, 2, 2), V(1, 2, 3, 4, 5, 6, 7, 8), NULL},
                               {true, t, D(2), V(2, 6), NULL}, {true, t, D(2), V(0, 10), NULL},
                               {true, MPL_TYPE_f64, D(2), V(1, 4), NULL},
                               {true, MPL_TYPE_f32, D(2), V(3, 8), NULL});
        test_tensor flat[] = ROW({true, t, D(3), V(1, 2, 3), NULL}, {true, t, D(1), V(2), NULL},
                                 {true, t, D(1), V(1), NULL}, {true, t, D(1), V(1), NULL},
                                 {true, t, D(1), V(3), NULL});
        values want = {D(2, 2, 2), V(0, 1, 8, 10, 4, 5, 16, 18)}, want_flat = {D(3), V(1, 2, 3)};
        test_op r;

        if (!mpl_type_in(t, FLOATS))
            continue;
        assert_ok(&r.ctx,
                  test_op_apply(&r, MPL_OP_batch_norm, 5, in, 1, &epsilon, 1, IN_NEW_MEMORY));
        check_values("batch_norm", t, r.out[0].data, &want);
        test_op_free(&r);
        assert_ok(&r.ctx,
                  test_op_apply(&r, MPL_OP_batch_norm, 5, flat, 1, &epsilon, 1, IN_NEW_MEMORY));
        check_values("batch_norm of one channel", t, r.out[0].data, &want_flat);
        test_op_free(&r);
    }
}

TEST(layer_norm_tells_moments)
{
    test_tensor in[] = {{true, MPL_TYPE_f16, D(2, 1, 2), V(1, 3, 10, 30), NULL},
                        {true, MPL_TYPE_f16, D(2), V(1, 1), NULL}};
    mpl_attr epsilon = MPL_FLOAT(epsilon, 3);
    mpl_shape row_shape = D(2, 1, 1);
    values mean = {D(2, 1, 1), V(2, 20)}, inverse_deviation = {D(2, 1, 1), V(0.5, 1 / sqrt(103))};
    test_op r;

    assert_ok(&r.ctx, test_op_apply(&r, MPL_OP_layer_norm, 2, in, 1, &epsilon, 3, IN_NEW_MEMORY));
    for (uint32_t i = 1; i < 3; i++) {
        assert_int_equal(r.out[i].type, MPL_TYPE_f32);
        assert_true(mpl_shape_equal(&r.out[i].shape, &row_shape));
    }
    check_values("mean", MPL_TYPE_f32, r.out[1].data, &mean);
    check_values("inverse deviation", MPL_TYPE_f32, r.out[2].data, &inverse_deviation);
    test_op_free(&r);
}

#define AXES(n, ...) MPL_INTS(axes, n, ((const int64_t[]){__VA_ARGS__}))

TEST(reductions)
{
    const double six[] = {1, 2, 3, 4, 5, 6};

    const row table[] = ROW(
        FUNCTION_ROW("sum of all", reduce_sum, NUMBERS, ATTRS(MPL_INT(keepdims, 0)),
                     INPUTS(T(D(2, 3), six)), T(SCALAR, V(21))),
        FUNCTION_ROW("dims are kept", reduce_sum, NUMBERS, NO_ATTRS, INPUTS(T(D(2, 3), six)),
                     T(D(1, 1), V(21))),
        FUNCTION_ROW("of columns", reduce_sum, NUMBERS, ATTRS(AXES(1, 0), MPL_INT(keepdims, 0)),
                     INPUTS(T(D(2, 3), six)), T(D(3), V(5, 7, 9))),
        FUNCTION_ROW("of rows", reduce_sum, NUMBERS, ATTRS(AXES(1, -1)), INPUTS(T(D(2, 3), six)),
                     T(D(2, 1), V(6, 15))),
        FUNCTION_ROW("of the outer two of three", reduce_sum, NUMBERS,
                     ATTRS(AXES(2, 2, 0), MPL_INT(keepdims, 0)),
                     INPUTS(T(D(2, 3, 2), V(1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12))),
                     T(D(3), V(18, 26, 34))),
        FUNCTION_ROW("of the middle one", reduce_sum, NUMBERS,
                     ATTRS(AXES(1, 1), MPL_INT(keepdims, 0)),
                     INPUTS(T(D(2, 3, 2), V(1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12))),
                     T(D(2, 2), V(9, 12, 27, 30))),
        FUNCTION_ROW("of no axes", reduce_sum_square, NUMBERS, ATTRS(MPL_INTS(axes, 0, NULL)),
                     INPUTS(T(D(2), V(2, 3))), T(D(2), V(4, 9))),
        FUNCTION_ROW("of a scalar", reduce_sum, NUMBERS, NO_ATTRS, INPUTS(T(SCALAR, V(7))),
                     T(SCALAR, V(7))),
        FUNCTION_ROW("mean", reduce_mean, NUMBERS, ATTRS(AXES(1, 1)), INPUTS(T(D(2, 3), six)),
                     T(D(2, 1), V(2, 5))),
        FUNCTION_ROW("mean of integers goes towards zero", reduce_mean, MPL_SET_SIGNED, NO_ATTRS,
                     INPUTS(T(D(2), V(-3, 0))), T(D(1), V(-1))),
        FUNCTION_ROW("max", reduce_max, NUMBERS, ATTRS(AXES(1, 0)),
                     INPUTS(T(D(2, 3), V(1, 9, 3, 4, 5, 6))), T(D(1, 3), V(4, 9, 6))),
        FUNCTION_ROW("min", reduce_min, NUMBERS, ATTRS(AXES(1, 1)),
                     INPUTS(T(D(2, 3), V(4, 9, 3, 4, 5, 6))), T(D(2, 1), V(3, 4))),
        FUNCTION_ROW("max of bools", reduce_max, BOOL, ATTRS(AXES(1, 1)),
                     INPUTS(T(D(2, 2), V(0, 0, 0, 1))), T(D(2, 1), V(0, 1))),
        FUNCTION_ROW("min of bools", reduce_min, BOOL, ATTRS(AXES(1, 1)),
                     INPUTS(T(D(2, 2), V(1, 1, 0, 1))), T(D(2, 1), V(1, 0))),
        FUNCTION_ROW("max hands NaN on", reduce_max, FLOATS, NO_ATTRS,
                     INPUTS(T(D(3), V(1, NAN, 3))), T(D(1), V(NAN))),
        FUNCTION_ROW("prod", reduce_prod, NUMBERS, ATTRS(AXES(1, 1)), INPUTS(T(D(2, 3), six)),
                     T(D(2, 1), V(6, 120))),
        FUNCTION_ROW("l1", reduce_l1, SIGNED, NO_ATTRS, INPUTS(T(D(4), V(-1, 2, -3, 4))),
                     T(D(1), V(10))),
        FUNCTION_ROW("l2", reduce_l2, SIGNED, NO_ATTRS, INPUTS(T(D(2), V(-3, 4))), T(D(1), V(5))),
        FUNCTION_ROW("sum of squares", reduce_sum_square, SIGNED, NO_ATTRS,
                     INPUTS(T(D(3), V(-3, 4, 1))), T(D(1), V(26))),
        FUNCTION_ROW("log of the sum", reduce_log_sum, FLOATS, NO_ATTRS,
                     INPUTS(T(D(3), V(3, 4, 1))), T(D(1), V(log(8)))),
        FUNCTION_ROW("log of the sum of exponentials", reduce_log_sum_exp, FLOATS,
                     ATTRS(AXES(1, 1)), INPUTS(T(D(2, 2), V(0, 0, 1, 2))),
                     T(D(2, 1), V(log(2), log(exp(1) + exp(2))))),
        FUNCTION_ROW("which does not overflow", reduce_log_sum_exp, FLOATS, ATTRS(AXES(1, 0)),
                     INPUTS(T(D(2, 2), V(2048, -2048, -2048, -4096))), T(D(1, 2), V(2048, -2048))),
        FUNCTION_ROW("with an infinite one", reduce_log_sum_exp, FLOATS, ATTRS(AXES(1, 1)),
                     INPUTS(T(D(2, 2), V(INFINITY, 0, -INFINITY, -INFINITY))),
                     T(D(2, 1), V(INFINITY, -INFINITY))),
        FUNCTION_ROW("sum of nothing", reduce_sum, NUMBERS, ATTRS(AXES(1, 1)),
                     INPUTS(T(D(2, 0), NO_VALUES)), T(D(2, 1), V(0, 0))),
        FUNCTION_ROW("product of nothing", reduce_prod, NUMBERS, ATTRS(AXES(1, 0)),
                     INPUTS(T(D(0, 2), NO_VALUES)), T(D(1, 2), V(1, 1))),
        FUNCTION_ROW("mean of nothing", reduce_mean, FLOATS, ATTRS(AXES(1, 0)),
                     INPUTS(T(D(0, 2), NO_VALUES)), T(D(1, 2), V(NAN, NAN))),
        FUNCTION_ROW("whole mean of nothing", reduce_mean, INTS, ATTRS(AXES(1, 0)),
                     INPUTS(T(D(0, 2), NO_VALUES)), T(D(1, 2), V(0, 0))),
        FUNCTION_ROW("max of nothing", reduce_max, FLOATS, NO_ATTRS, INPUTS(T(D(0), NO_VALUES)),
                     T(D(1), V(-INFINITY))),
        FUNCTION_ROW("min of nothing", reduce_min, FLOATS, NO_ATTRS, INPUTS(T(D(0), NO_VALUES)),
                     T(D(1), V(INFINITY))),
        FUNCTION_ROW("max of no signed bytes", reduce_max, MPL_SET(i8), NO_ATTRS,
                     INPUTS(T(D(0), NO_VALUES)), T(D(1), V(-128))),
        FUNCTION_ROW("min of no signed bytes", reduce_min, MPL_SET(i8), NO_ATTRS,
                     INPUTS(T(D(0), NO_VALUES)), T(D(1), V(127))),
        FUNCTION_ROW("max of no bytes", reduce_max, MPL_SET(u8) | BOOL, NO_ATTRS,
                     INPUTS(T(D(0), NO_VALUES)), T(D(1), V(0))),
        FUNCTION_ROW("min of no bytes", reduce_min, MPL_SET(u8), NO_ATTRS,
                     INPUTS(T(D(0), NO_VALUES)), T(D(1), V(255))),
        FUNCTION_ROW("min of no bools", reduce_min, BOOL, NO_ATTRS, INPUTS(T(D(0), NO_VALUES)),
                     T(D(1), V(1))),
        FUNCTION_ROW("max of no i32", reduce_max, MPL_SET(i32), NO_ATTRS,
                     INPUTS(T(D(0), NO_VALUES)), T(D(1), V(-0x1p31))),
        FUNCTION_ROW("log of the sum of no exponentials", reduce_log_sum_exp, FLOATS, NO_ATTRS,
                     INPUTS(T(D(0), NO_VALUES)), T(D(1), V(-INFINITY))),
        FUNCTION_ROW("of no rows", reduce_sum, NUMBERS, ATTRS(AXES(1, 1)),
                     INPUTS(T(D(0, 3), NO_VALUES)), T(D(0, 1), NO_VALUES)),
        FUNCTION_ROW("a sum of 16-bit floats is rounded once", reduce_sum,
                     MPL_SET(f16) | MPL_SET(f32), NO_ATTRS,
                     INPUTS(T(D(5), V(2048, 0.5, 0.5, 0.5, 0.5))), T(D(1), V(2050))));

    CHECK_ROWS(table);
}

TEST(places)
{
    const row table[] = ROW(
        FUNCTION_ROW("arg_max", arg_max, NUMBERS, ATTRS(MPL_INT(axis, 1)),
                     INPUTS(T(D(2, 3), V(1, 9, 9, 7, 2, 3))), T(D(2, 1), V(1, 0))),
        FUNCTION_ROW("arg_max down", arg_max, NUMBERS, ATTRS(MPL_INT(keepdims, 0)),
                     INPUTS(T(D(2, 3), V(1, 9, 9, 7, 2, 9))), T(D(3), V(1, 0, 0))),
        FUNCTION_ROW("arg_max, the last one", arg_max, NUMBERS,
                     ATTRS(MPL_INT(axis, -1), MPL_INT(select_last_index, 1)),
                     INPUTS(T(D(2, 3), V(1, 9, 9, 7, 2, 3))), T(D(2, 1), V(2, 0))),
        FUNCTION_ROW("arg_min", arg_min, NUMBERS, ATTRS(MPL_INT(axis, 1)),
                     INPUTS(T(D(2, 3), V(1, 9, 1, 7, 2, 3))), T(D(2, 1), V(0, 1))),
        FUNCTION_ROW("arg_min, the last one", arg_min, NUMBERS,
                     ATTRS(MPL_INT(axis, 1), MPL_INT(select_last_index, 1)),
                     INPUTS(T(D(2, 3), V(1, 9, 1, 7, 2, 3))), T(D(2, 1), V(2, 1))),
        FUNCTION_ROW("arg_max of no rows", arg_max, NUMBERS, ATTRS(MPL_INT(axis, 1)),
                     INPUTS(T(D(0, 3), NO_VALUES)), T(D(0, 1), NO_VALUES)),
        FUNCTION_ROW("cumsum", cumsum, FLOATS | MPL_SET_INDEX, ATTRS(MPL_INT(axis, 0)),
                     INPUTS(T(D(4), V(1, 2, 3, 4))), T(D(4), V(1, 3, 6, 10))),
        FUNCTION_ROW("cumsum of columns", cumsum, FLOATS | MPL_SET_INDEX, ATTRS(MPL_INT(axis, -2)),
                     INPUTS(T(D(2, 2), V(1, 2, 3, 4))), T(D(2, 2), V(1, 2, 4, 6))),
        FUNCTION_ROW("cumsum, exclusive", cumsum, FLOATS | MPL_SET_INDEX,
                     ATTRS(MPL_INT(axis, 0), MPL_INT(exclusive, 1)), INPUTS(T(D(4), V(1, 2, 3, 4))),
                     T(D(4), V(0, 1, 3, 6))),
        FUNCTION_ROW("cumsum, from the end", cumsum, FLOATS | MPL_SET_INDEX,
                     ATTRS(MPL_INT(axis, 0), MPL_INT(reverse, 1)), INPUTS(T(D(4), V(1, 2, 3, 4))),
                     T(D(4), V(10, 9, 7, 4))),
        FUNCTION_ROW("cumsum, both", cumsum, FLOATS | MPL_SET_INDEX,
                     ATTRS(MPL_INT(axis, 0), MPL_INT(reverse, 1), MPL_INT(exclusive, 1)),
                     INPUTS(T(D(4), V(1, 2, 3, 4))), T(D(4), V(9, 7, 4, 0))));

    CHECK_ROWS(table);
}

TEST(the_best_k)
{
    static const struct {
        const char *what;
        int64_t k, axis, largest;
        mpl_shape in;
        double data[6];
        mpl_shape out;
        double best[6], where[6];
    } table[] = ROW(
        {"of each row", 2, -1, 1, D(2, 3), {5, 7, 6, 1, 1, 1}, D(2, 2), {7, 6, 1, 1}, {1, 2, 0, 1}},
        {"the least", 2, 1, 0, D(1, 4), {4, 2, 9, 2}, D(1, 2), {2, 2}, {1, 3}},
        {"of columns", 2, 0, 1, D(3, 2), {5, 7, 6, 1, 1, 8}, D(2, 2), {6, 8, 5, 7}, {1, 2, 0, 0}},
        ROW("all of them", 6, 0, 1, D(6), {3, 1, 4, 1, 5, 9}, D(6), {9, 5, 4, 3, 1, 1},
            {5, 4, 2, 0, 1, 3}),
        {"none of them", 0, 1, 1, D(2, 3), {3, 1, 4, 1, 5, 9}, D(2, 0), {0}, {0}});

    for (size_t i = 0; i < sizeof table / sizeof *table; i++)
        for (int type = 0; type < MPL_N_TYPES; type++) {
            const mpl_attr attr[] = {MPL_INT(k, table[i].k), MPL_INT(axis, table[i].axis),
                                     MPL_INT(largest, table[i].largest)};
            test_tensor in = {true, (mpl_type)type, table[i].in, table[i].data, NULL};
            values best = {table[i].out, table[i].best}, where = {table[i].out, table[i].where};
            test_op r;

            if (type == MPL_TYPE_bool)
                continue;
            assert_ok(&r.ctx, test_op_apply(&r, MPL_OP_top_k, 1, &in, 3, attr, 2, IN_NEW_MEMORY));
            assert_true(mpl_shape_equal(&r.out[0].shape, &table[i].out) &&
                        mpl_shape_equal(&r.out[1].shape, &table[i].out));
            assert_int_equal(r.out[1].type, MPL_TYPE_i64);
            check_values(table[i].what, r.out[0].type, r.out[0].data, &best);
            check_values(table[i].what, MPL_TYPE_i64, r.out[1].data, &where);
            test_op_free(&r);
        }
}

/* i64 is never computed in double, and never traps. */
TEST(whole_range_of_i64)
{
    static const int64_t low = INT64_MIN, high = INT64_MAX;
    static const struct {
        mpl_op_kind kind;
        int64_t x, z, want;
    } table[] = ROW(
        {MPL_OP_add, high, 1, INT64_MIN}, {MPL_OP_sub, low, 1, INT64_MAX},
        {MPL_OP_mul, high, 2, -2}, {MPL_OP_mul, (INT64_C(1) << 53) + 1, 1, (INT64_C(1) << 53) + 1},
        {MPL_OP_div, low, -1, INT64_MIN}, {MPL_OP_mod, low, -1, 0},
        {MPL_OP_div, high, 1, INT64_MAX}, {MPL_OP_max, high, high - 1, INT64_MAX},
        {MPL_OP_min, low, low + 1, INT64_MIN}, {MPL_OP_pow, 3, 39, INT64_C(4052555153018976267)},
        {MPL_OP_bitwise_xor, high, low, -1}, {MPL_OP_prelu, low, -1, INT64_MIN});

    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        test_tensor in[] = {{true, MPL_TYPE_i64, D(1), NULL, &table[i].x},
                            {true, MPL_TYPE_i64, D(1), NULL, &table[i].z}};
        test_op r;

        assert_ok(&r.ctx, test_op_apply(&r, table[i].kind, 2, in, 0, NULL, 1, IN_NEW_MEMORY));
        if (*(int64_t *)r.out[0].data != table[i].want)
            fail_msg("%s: %" PRId64, mpl_op_table[table[i].kind].name, *(int64_t *)r.out[0].data);
        test_op_free(&r);
    }
}

TEST(powers_of_mixed_types)
{
    static const struct {
        mpl_type base, exponent;
        double x, z, want;
    } table[] =
        ROW({MPL_TYPE_f32, MPL_TYPE_i64, 1.5, 2, 2.25}, {MPL_TYPE_f64, MPL_TYPE_i32, 2, -1, 0.5},
            {MPL_TYPE_i32, MPL_TYPE_f32, 9, 0.5, 3}, {MPL_TYPE_i64, MPL_TYPE_f64, 2, 2.5, 5},
            {MPL_TYPE_f16, MPL_TYPE_u8, 2, 3, 8}, {MPL_TYPE_i64, MPL_TYPE_i32, -3, 3, -27},
            {MPL_TYPE_bf16, MPL_TYPE_f64, 4, 1.5, 8});

    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        test_tensor in[] = {{true, table[i].base, D(1), &table[i].x, NULL},
                            {true, table[i].exponent, D(1), &table[i].z, NULL}};
        test_op r;

        assert_ok(&r.ctx, test_op_apply(&r, MPL_OP_pow, 2, in, 0, NULL, 1, IN_NEW_MEMORY));
        assert_int_equal(r.out[0].type, table[i].base);
        assert_true(mpl_get(r.out[0].type, r.out[0].data, 0) == table[i].want);
        test_op_free(&r);
    }
}

TEST(casts)
{
    static const struct {
        mpl_type from, to;
        double x, want;
    } table[] = ROW(
        {MPL_TYPE_f32, MPL_TYPE_i32, -2.75, -2}, {MPL_TYPE_f64, MPL_TYPE_u8, 255.5, 255},
        {MPL_TYPE_f32, MPL_TYPE_u8, 257, 1}, {MPL_TYPE_f32, MPL_TYPE_i8, NAN, 0},
        {MPL_TYPE_i32, MPL_TYPE_i8, 129, -127}, {MPL_TYPE_i8, MPL_TYPE_u8, -1, 255},
        {MPL_TYPE_f32, MPL_TYPE_bool, 0.25, 1}, {MPL_TYPE_f16, MPL_TYPE_bool, NAN, 1},
        {MPL_TYPE_f64, MPL_TYPE_bool, -0.0, 0}, {MPL_TYPE_i32, MPL_TYPE_bool, 256, 1},
        {MPL_TYPE_bool, MPL_TYPE_f16, 1, 1}, {MPL_TYPE_u8, MPL_TYPE_i64, 200, 200},
        {MPL_TYPE_f64, MPL_TYPE_f16, 65519, 65504}, {MPL_TYPE_f64, MPL_TYPE_f16, 65520, INFINITY},
        {MPL_TYPE_f64, MPL_TYPE_f16, 0x1p-24, 0x1p-24}, {MPL_TYPE_f64, MPL_TYPE_f16, 0x1p-25, 0},
        {MPL_TYPE_f64, MPL_TYPE_f16, 0x1.8p-25, 0x1p-24}, {MPL_TYPE_f64, MPL_TYPE_f16, 2049, 2048},
        {MPL_TYPE_f64, MPL_TYPE_f16, 2051, 2052},
        /* one rounding to f32 on the way would make a tie of it, and 2048 */
        {MPL_TYPE_f64, MPL_TYPE_f16, 2049.0000000001, 2050},
        {MPL_TYPE_f64, MPL_TYPE_bf16, 257, 256}, {MPL_TYPE_f64, MPL_TYPE_bf16, 257.0000000001, 258},
        {MPL_TYPE_f64, MPL_TYPE_bf16, 1e300, INFINITY},
        {MPL_TYPE_i32, MPL_TYPE_f32, 16777217, 16777216},
        {MPL_TYPE_f32, MPL_TYPE_bf16, -INFINITY, -INFINITY},
        {MPL_TYPE_bf16, MPL_TYPE_f64, 3.140625, 3.140625}, {MPL_TYPE_f16, MPL_TYPE_f32, NAN, NAN});

    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        test_tensor in = {true, table[i].from, D(1), &table[i].x, NULL};
        mpl_attr to = MPL_TEXT(to, mpl_type_name(table[i].to));
        test_op r;
        double got;

        assert_ok(&r.ctx, test_op_apply(&r, MPL_OP_cast, 1, &in, 1, &to, 1, IN_NEW_MEMORY));
        assert_int_equal(r.out[0].type, table[i].to);
        got = mpl_get(r.out[0].type, r.out[0].data, 0);
        if (!near(got, table[i].want, 0))
            fail_msg("cast of %.17g from %s to %s: %.17g, not %.17g", table[i].x,
                     mpl_type_name(table[i].from), mpl_type_name(table[i].to), got, table[i].want);
        test_op_free(&r);
    }
}

/* i64 just above the middle between two f32, by less than a double can tell. */
TEST(casts_of_large_integers_round_once)
{
    const int64_t x = (INT64_C(1) << 62) + (INT64_C(1) << 38) + 1;
    test_tensor in = {true, MPL_TYPE_i64, D(1), NULL, &x};
    mpl_attr to = MPL_TEXT(to, "f32");
    test_op r;

    assert_ok(&r.ctx, test_op_apply(&r, MPL_OP_cast, 1, &in, 1, &to, 1, IN_NEW_MEMORY));
    assert_true(*(float *)r.out[0].data == 0x1p62f + 0x1p39f);
    test_op_free(&r);
}

/* Every 16-bit float against its definition, and every midpoint between two neighbours, where ties
 * go to the even. */
TEST(sixteen_bits)
{
    static const struct {
        int mantissa, bias;
    } kinds[] = {{10, 15}, {7, 127}};

    for (int kind = 0; kind < 2; kind++)
        for (uint32_t bits = 0; bits < 0x8000; bits++) {
            mpl_type type = kind == 0 ? MPL_TYPE_f16 : MPL_TYPE_bf16;
            int mantissa = kinds[kind].mantissa, exponent = (int)(bits >> mantissa);
            int fraction = (int)(bits & ((1u << mantissa) - 1)), top = (1 << (15 - mantissa)) - 1;
            double x = ldexp(fraction + (exponent > 0 ? 1 << mantissa : 0),
                             (exponent > 0 ? exponent : 1) - kinds[kind].bias - mantissa);
            uint16_t in[2] = {(uint16_t)bits, (uint16_t)(bits | 0x8000)}, out[4];
            double next = ldexp(1, (exponent > 0 ? exponent : 1) - kinds[kind].bias - mantissa);

            if (exponent == top) {
                assert_true(fraction == 0 ? isinf(mpl_get(type, in, 0))
                                          : isnan(mpl_get(type, in, 0)));
                continue;
            }
            assert_true(mpl_get(type, in, 0) == x && mpl_get(type, in, 1) == -x);
            mpl_put(type, out, 0, x);
            mpl_put(type, out, 1, -x);
            mpl_put(type, out, 2, x + next / 2);
            mpl_put(type, out, 3, nextafter(x + next / 2, 0));
            assert_true(out[0] == in[0] && out[1] == in[1] && out[3] == in[0]);
            assert_true(out[2] == bits + (bits & 1));
        }
}

/* ---- refusals ---- */

typedef struct typed {
    mpl_type type;
    mpl_shape shape;
} typed;

typedef struct refusal {
    const char *why; /* stands in the message */
    mpl_op_kind kind;
    uint32_t n_attr;
    mpl_attr attr[N_ATTRS];
    uint32_t n_in;
    typed in[5];
} refusal;

#define OF(type, ...)                                                                              \
    {                                                                                              \
        MPL_TYPE_##type, D(__VA_ARGS__)                                                            \
    }
#define IN_SCALAR(type)                                                                            \
    {                                                                                              \
        MPL_TYPE_##type, SCALAR                                                                    \
    }
#define TYPED(...)                                                                                 \
    COUNT_OF(typed, __VA_ARGS__),                                                                  \
    {                                                                                              \
        __VA_ARGS__                                                                                \
    }
#define REFUSAL(what, op, ...)                                                                     \
    {                                                                                              \
        what, MPL_OP_##op, __VA_ARGS__                                                             \
    }

TEST(refused)
{
    const refusal table[] = ROW(
        REFUSAL("type i64", exp, NO_ATTRS, TYPED(OF(i64, 2))),
        REFUSAL("type u8", relu, NO_ATTRS, TYPED(OF(u8, 2))),
        REFUSAL("type u8", neg, NO_ATTRS, TYPED(OF(u8, 2))),
        REFUSAL("type bool", abs, NO_ATTRS, TYPED(OF(bool, 2))),
        REFUSAL("type f32", not, NO_ATTRS, TYPED(OF(f32, 2))),
        REFUSAL("type f32", bitwise_not, NO_ATTRS, TYPED(OF(f32, 2))),
        REFUSAL("type i32", is_nan, NO_ATTRS, TYPED(OF(i32, 2))),
        REFUSAL("'fast'", gelu, ATTRS(MPL_TEXT(approximate, "fast")), TYPED(OF(f32, 2))),
        REFUSAL("'to' is missing", cast, NO_ATTRS, TYPED(OF(f32, 2))),
        REFUSAL("'f128'", cast, ATTRS(MPL_TEXT(to, "f128")), TYPED(OF(f32, 2))),
        REFUSAL("one element", clip, NO_ATTRS, TYPED(OF(f32, 2), OF(f32, 2))),
        REFUSAL("same", clip, NO_ATTRS, TYPED(OF(f32, 2), OF(f64, 1))),
        REFUSAL("same", add, NO_ATTRS, TYPED(OF(f32, 2), OF(f16, 2))),
        REFUSAL("type bool", add, NO_ATTRS, TYPED(OF(bool, 2), OF(bool, 2))),
        REFUSAL("[2] and [3] do not broadcast", add, NO_ATTRS, TYPED(OF(f32, 2), OF(f32, 3))),
        REFUSAL("do not broadcast", add, NO_ATTRS, TYPED(OF(f32, 0), OF(f32, 3))),
        REFUSAL("do not broadcast", add, NO_ATTRS, TYPED(OF(f32, 2, 3), OF(f32, 2, 1, 2))),
        REFUSAL("the slope", prelu, NO_ATTRS, TYPED(OF(f32, 3), OF(f32, 2, 3))),
        REFUSAL("fmod", mod, NO_ATTRS, TYPED(OF(f32, 3), OF(f32, 3))),
        REFUSAL("direction", bit_shift, NO_ATTRS, TYPED(OF(u8, 3), OF(u8, 3))),
        REFUSAL("type i32", bit_shift, ATTRS(MPL_TEXT(direction, "LEFT")),
                TYPED(OF(i32, 3), OF(i32, 3))),
        REFUSAL("type i8", pow, NO_ATTRS, TYPED(OF(i8, 3), OF(i8, 3))),
        REFUSAL("type f32", and, NO_ATTRS, TYPED(OF(f32, 3), OF(f32, 3))),
        REFUSAL("type f32", bitwise_and, NO_ATTRS, TYPED(OF(f32, 3), OF(f32, 3))),
        REFUSAL("type bool", less, NO_ATTRS, TYPED(OF(bool, 3), OF(bool, 3))),
        REFUSAL("type i32", sum, NO_ATTRS, TYPED(OF(i32, 3), OF(i32, 3))),
        REFUSAL("do not broadcast", max, NO_ATTRS, TYPED(OF(f32, 3), OF(f32, 1), OF(f32, 2))),
        REFUSAL("type f32", where, NO_ATTRS, TYPED(OF(f32, 3), OF(f32, 3), OF(f32, 3))),
        REFUSAL("same", where, NO_ATTRS, TYPED(OF(bool, 3), OF(f32, 3), OF(f64, 3))),
        REFUSAL("axis 2", softmax, ATTRS(MPL_INT(axis, 2)), TYPED(OF(f32, 2, 3))),
        REFUSAL("axis -3", softmax, ATTRS(MPL_INT(axis, -3)), TYPED(OF(f32, 2, 3))),
        REFUSAL("axis -1", softmax, NO_ATTRS, TYPED(IN_SCALAR(f32))),
        REFUSAL("type i32", softmax, NO_ATTRS, TYPED(OF(i32, 3))),
        REFUSAL("'size' is 0", lrn, NO_ATTRS, TYPED(OF(f32, 1, 3, 2, 2))),
        REFUSAL("2 to 8 dims", lrn, ATTRS(MPL_INT(size, 3)), TYPED(OF(f32, 3))),
        REFUSAL("input 3", batch_norm, NO_ATTRS,
                TYPED(OF(f32, 1, 3), OF(f32, 3), OF(f32, 3), OF(f32, 2), OF(f32, 3))),
        REFUSAL("type i32", batch_norm, NO_ATTRS,
                TYPED(OF(f32, 1, 3), OF(f32, 3), OF(f32, 3), OF(i32, 3), OF(f32, 3))),
        REFUSAL("the scale", layer_norm, NO_ATTRS, TYPED(OF(f32, 2, 3), OF(f32, 2))),
        REFUSAL("the bias", layer_norm, NO_ATTRS, TYPED(OF(f32, 2, 3), OF(f32, 3), OF(f32, 2))),
        REFUSAL("axis 5", rms_norm, ATTRS(MPL_INT(axis, 5)), TYPED(OF(f32, 2, 3), OF(f32, 3))),
        REFUSAL("[3]", instance_norm, NO_ATTRS, TYPED(OF(f32, 2, 3, 4), OF(f32, 2), OF(f32, 3))),
        REFUSAL("3 to 8 dims", instance_norm, NO_ATTRS,
                TYPED(OF(f32, 2, 3), OF(f32, 3), OF(f32, 3))),
        REFUSAL("must divide", group_norm, ATTRS(MPL_INT(num_groups, 2)),
                TYPED(OF(f32, 2, 3, 4), OF(f32, 3), OF(f32, 3))),
        REFUSAL("must divide", group_norm, NO_ATTRS,
                TYPED(OF(f32, 2, 3, 4), OF(f32, 3), OF(f32, 3))),
        REFUSAL("'p' is 3", lp_norm, ATTRS(MPL_INT(p, 3)), TYPED(OF(f32, 2, 3))),
        REFUSAL("needs 4 dims", mean_variance_norm, NO_ATTRS, TYPED(OF(f32, 2, 3))),
        REFUSAL("axis 2", reduce_sum, ATTRS(MPL_INTS(axes, 1, ((const int64_t[]){2}))),
                TYPED(OF(f32, 2, 3))),
        REFUSAL("twice", reduce_sum, ATTRS(MPL_INTS(axes, 2, ((const int64_t[]){1, -1}))),
                TYPED(OF(f32, 2, 3))),
        REFUSAL("type bool", reduce_sum, NO_ATTRS, TYPED(OF(bool, 2, 3))),
        REFUSAL("no elements", arg_max, NO_ATTRS, TYPED(OF(f32, 0, 3))),
        REFUSAL("type bool", arg_min, NO_ATTRS, TYPED(OF(bool, 3))),
        REFUSAL("'axis' is missing", cumsum, NO_ATTRS, TYPED(OF(f32, 3))),
        REFUSAL("type u8", cumsum, ATTRS(MPL_INT(axis, 0)), TYPED(OF(u8, 3))),
        REFUSAL("k is 4", top_k, ATTRS(MPL_INT(k, 4)), TYPED(OF(f32, 3))),
        REFUSAL("k is -1", top_k, NO_ATTRS, TYPED(OF(f32, 3))));

    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        const refusal *c = &table[i];
        const char *name = mpl_op_table[c->kind].name;
        test_tensor in[5];
        test_op r;

        for (uint32_t k = 0; k < c->n_in; k++)
            in[k] = (test_tensor){true, c->in[k].type, c->in[k].shape, NULL, NULL};
        if (test_op_make(&r, c->kind, c->n_in, in, c->n_attr, c->attr,
                         c->kind == MPL_OP_top_k ? 2 : 1) != MPL_EINPUT)
            fail_msg("row %zu: %s is not refused for %s", i, name, c->why);
        if (strstr(r.ctx.message, c->why) == NULL || strchr(r.ctx.message, '\n') != NULL)
            fail_msg("row %zu: %s: '%s' does not tell of %s", i, name, r.ctx.message, c->why);
        test_op_free(&r);
    }
}

TESTS(functions_of_one_operand, operators_of_two_operands, operators_of_many_operands, where_picks,
      normalisation, batch_norm_by_channel, layer_norm_tells_moments, reductions, places,
      the_best_k, whole_range_of_i64, powers_of_mixed_types, casts,
      casts_of_large_integers_round_once, sixteen_bits, refused)
