/* Element-wise operators, normalisation, reductions and scans: small cases with values known from
 * mathematics, for every type, into new memory and in place; and what shape rules must refuse. Most
 * are lines of tests/data/ops. */
#include "tests/support/op_rows.h"

TEST(tables)
{
    op_each_row(ctx, "tests/data/ops/elements.txt", 175, op_check_row);
    op_each_row(ctx, "tests/data/ops/moves.txt", 145, op_check_row);
    op_each_row(ctx, "tests/data/ops/refused.txt", 223, op_check_refusal);
    op_each_row(ctx, "tests/data/ops/out_of_range.txt", 12, op_check_refusal);
}

/* Checks a row whose outputs have no short text. */
static void check_formula(const char *row, uint32_t n, const double *want)
{
    char line[1000];
    int size = snprintf(line, sizeof line, "%s", row);

    for (uint32_t i = 0; i < n; i++)
        size += snprintf(line + size, sizeof line - (size_t)size, " %.17g", want[i]);
    op_check_row(line);
}

/* f at three points that every floating type represents. */
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
static double normal_share(double x) /* x times the normal distribution function at x */
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
    static const struct {
        const char *name;
        double x[3];
        double (*f)(double x);
    } table[] = {
        {"sigmoid", {-2, 0, 3}, logistic},
        {"softplus", {-2, 0, 3}, log_of_one_and_exp},
        {"mish", {-2, 0.5, 3}, mish_of},
        {"gelu", {-1, 0.5, 2}, normal_share},
        {"swish", {-2, 0.5, 3}, swish_of},
        {"softsign", {-3, 0.5, 7}, one_sided},
        {"tanh", {-2, 0.25, 1}, tanh},
        {"exp", {-2, 0, 3}, exp},
        {"log", {0.5, 1, 8}, log},
        {"sqrt", {0.25, 2, 9}, sqrt},
        {"reciprocal", {-4, 0.5, 3}, inverse},
        {"erf", {-1, 0.25, 2}, erf},
        {"sin", {-2, 0, 3}, sin},
        {"cos", {-2, 0, 3}, cos},
        {"tan", {-2, 0, 0.5}, tan},
        {"asin", {-1, 0.25, 0.5}, asin},
        {"acos", {-1, 0.25, 0.5}, acos},
        {"atan", {-8, 0.25, 2}, atan},
        {"sinh", {-2, 0.25, 3}, sinh},
        {"cosh", {-2, 0, 3}, cosh},
        {"asinh", {-2, 0.25, 3}, asinh},
        {"acosh", {1, 1.5, 8}, acosh},
        {"atanh", {-0.5, 0.25, 0.75}, atanh},
    };

    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        const double *x = table[i].x;
        char row[200];

        snprintf(row, sizeof row, "%s | floats | %s | [3] %g %g %g | [3]", table[i].name,
                 table[i].name, x[0], x[1], x[2]);
        check_formula(row, 3,
                      (const double[]){table[i].f(x[0]), table[i].f(x[1]), table[i].f(x[2])});
    }
}

TEST(formulas)
{
    const double e1 = exp(1), e2 = exp(2), e3 = exp(3), three = e1 + e2 + e3, third = 1 / 3.0;
    /* a distance divided by the deviation and 1e-9 */
    const double one = 1 / (1 + 1e-9), fifth = 5 / (5 + 1e-9);
    const struct {
        const char *row;
        uint32_t n;
        double want[8];
    } table[] = {
        {"elu | floats | elu alpha=(2) | [3] -1 0 3 | [3]", 3, {2 * (exp(-1) - 1), 0, 3}},
        {"celu | floats | celu alpha=(2) | [3] -1 0 3 | [3]", 3, {2 * (exp(-0.5) - 1), 0, 3}},
        {"selu | floats | selu alpha=(2) gamma=(3) | [3] -1 0 3 | [3]",
         3,
         {3 * (2 * exp(-1) - 2), 0, 9}},
        {"selu's constants, as floats | floats | selu | [2] -1 1 | [2]",
         2,
         {(double)1.0507009873554805f * (double)1.6732632423543772f * (exp(-1) - 1),
          (double)1.0507009873554805f}},
        {"swish, steeper | floats | swish alpha=(2) | [2] -1 1 | [2]",
         2,
         {-1 / (1 + e2), 1 / (1 + exp(-2))}},
        {"gelu by tanh | floats | gelu approximate='tanh' | [2] -1 2 | [2]",
         2,
         {-0.5 * (1 + tanh(-sqrt(2 / M_PI) * 1.044715)),
          1 + tanh(sqrt(2 / M_PI) * (2 + 8 * 0.044715))}},
        {"pow of a fraction | floats | pow | [2] 2 4; [2] 0.5 -0.5 | [2]", 2, {sqrt(2), 0.5}},
        {"softmax | floats | softmax | [2,3] 1 2 3 8 8 8 | [2,3]",
         6,
         {e1 / three, e2 / three, e3 / three, third, third, third}},
        {"softmax down | floats | softmax axis=-2 | [3,2] 1 8 2 8 3 8 | [3,2]",
         6,
         {e1 / three, third, e2 / three, third, e3 / three, third}},
        {"log_softmax | floats | log_softmax | [3] 1 2 3 | [3]",
         3,
         {1 - log(three), 2 - log(three), 3 - log(three)}},
        /* 1 + 8 / 2 * squares of this channel and the next, and its root */
        {"an even lrn looks further up | floats | lrn size=2 alpha=(8) beta=(0.5) | [1,3,1] 1 1 2 "
         "| [1,3,1]",
         3,
         {third, 1 / sqrt(21), 2 / sqrt(17)}},
        {"lrn, three quarters | floats | lrn size=3 alpha=(15) | [1,3,1] 1 1 1 | [1,3,1]",
         3,
         {1 / pow(11, 0.75), 1 / 8.0, 1 / pow(11, 0.75)}},
        {"mean_variance_norm | floats | mean_variance_norm | [2,2,1,2] 1 3 10 20 1 3 10 20 | "
         "[2,2,1,2]",
         8,
         {-one, one, -fifth, fifth, -one, one, -fifth, fifth}},
        {"mean_variance_norm, named axes | floats | mean_variance_norm axes=-1 | [2,2] 1 3 10 20 | "
         "[2,2]",
         4,
         {-one, one, -fifth, fifth}},
        {"rms_norm over two dims | floats | rms_norm epsilon=(0) axis=0 | [2,2] 1 1 1 5; [2,1] 1 2 "
         "| [2,2]",
         4,
         {1 / sqrt(7), 1 / sqrt(7), 2 / sqrt(7), 10 / sqrt(7)}},
        {"log of the sum | floats | reduce_log_sum | [3] 3 4 1 | [1]", 1, {log(8)}},
        {"log of the sum of exponentials | floats | reduce_log_sum_exp axes=1 | [2,2] 0 0 1 2 | "
         "[2,1]",
         2,
         {log(2), log(e1 + e2)}},
    };

    for (size_t i = 0; i < sizeof table / sizeof *table; i++)
        check_formula(table[i].row, table[i].n, table[i].want);
}

TEST(layer_norm_tells_moments)
{
    test_tensor in[] = {{true, MPL_TYPE_f16, DIMS(2, 1, 2), VALUES(1, 3, 10, 30), NULL},
                        {true, MPL_TYPE_f16, DIMS(2), VALUES(1, 1), NULL}};
    mpl_attr epsilon = MPL_FLOAT(epsilon, 3);
    mpl_shape row_shape = DIMS(2, 1, 1);
    const double mean[] = {2, 20}, inverse_deviation[] = {0.5, 1 / sqrt(103)};
    test_op r;

    assert_ok(&r.ctx, test_op_apply(&r, MPL_OP_layer_norm, 2, in, 1, &epsilon, 3, IN_NEW_MEMORY));
    for (uint32_t i = 1; i < 3; i++) {
        assert_int_equal(r.out[i].type, MPL_TYPE_f32);
        assert_true(mpl_shape_equal(&r.out[i].shape, &row_shape));
    }
    op_check_values("mean", MPL_TYPE_f32, r.out[1].data, mean, 2);
    op_check_values("inverse deviation", MPL_TYPE_f32, r.out[2].data, inverse_deviation, 2);
    test_op_free(&r);
}

/* i64 is never computed as double and never traps. */
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
        test_tensor in[] = {{true, MPL_TYPE_i64, DIMS(1), NULL, &table[i].x},
                            {true, MPL_TYPE_i64, DIMS(1), NULL, &table[i].z}};
        test_op r;

        assert_ok(&r.ctx, test_op_apply(&r, table[i].kind, 2, in, 0, NULL, 1, IN_NEW_MEMORY));
        if (*(int64_t *)r.out[0].data != table[i].want)
            fail_msg("%s: %" PRId64, mpl_op_table[table[i].kind].name, *(int64_t *)r.out[0].data);
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
        /* an intermediate rounding to f32 would make it a tie, and give 2048 */
        {MPL_TYPE_f64, MPL_TYPE_f16, 2049.0000000001, 2050},
        {MPL_TYPE_f64, MPL_TYPE_bf16, 257, 256}, {MPL_TYPE_f64, MPL_TYPE_bf16, 257.0000000001, 258},
        {MPL_TYPE_f64, MPL_TYPE_bf16, 1e300, INFINITY},
        {MPL_TYPE_i32, MPL_TYPE_f32, 16777217, 16777216},
        {MPL_TYPE_f32, MPL_TYPE_bf16, -INFINITY, -INFINITY},
        {MPL_TYPE_bf16, MPL_TYPE_f64, 3.140625, 3.140625}, {MPL_TYPE_f16, MPL_TYPE_f32, NAN, NAN});

    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        test_tensor in = {true, table[i].from, DIMS(1), &table[i].x, NULL};
        mpl_attr to = MPL_TEXT(to, mpl_type_name(table[i].to));
        test_op r;
        double got;

        assert_ok(&r.ctx, test_op_apply(&r, MPL_OP_cast, 1, &in, 1, &to, 1, IN_NEW_MEMORY));
        assert_int_equal(r.out[0].type, table[i].to);
        got = mpl_get(r.out[0].type, r.out[0].data, 0);
        if (!op_near(got, table[i].want, 0))
            fail_msg("cast of %.17g from %s to %s: %.17g, not %.17g", table[i].x,
                     mpl_type_name(table[i].from), mpl_type_name(table[i].to), got, table[i].want);
        test_op_free(&r);
    }
}

/* An i64 just above the midpoint of two f32, closer than a double resolves. */
TEST(casts_of_large_integers_round_once)
{
    const int64_t x = (INT64_C(1) << 62) + (INT64_C(1) << 38) + 1;
    test_tensor in = {true, MPL_TYPE_i64, DIMS(1), NULL, &x};
    mpl_attr to = MPL_TEXT(to, "f32");
    test_op r;

    assert_ok(&r.ctx, test_op_apply(&r, MPL_OP_cast, 1, &in, 1, &to, 1, IN_NEW_MEMORY));
    assert_true(*(float *)r.out[0].data == 0x1p62f + 0x1p39f);
    test_op_free(&r);
}

/* Every 16-bit float against its definition, and every midpoint of neighbours, which rounds to
 * even. */
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

TESTS(tables, functions_of_one_operand, formulas, layer_norm_tells_moments, whole_range_of_i64,
      casts, casts_of_large_integers_round_once, sixteen_bits)
