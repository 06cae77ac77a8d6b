/* Elements of less than 16 bits, against tables of all their codes made here by ONNX's formulas:
 * every f16 and bf16 as each of them, rounded to the nearest of the table; casts of and to packed
 * integers; as text; in constants, folded and not; what operators refuse. Fault: a wrong bias, a
 * tie that goes up, an element in the wrong half of its byte, a tail that is not written. */
#include "tests/support/op_rows.h"

TEST(rows)
{
    op_each_row(ctx, "tests/data/ops/small_types.txt", 37, op_check_row);
    op_each_row(ctx, "tests/data/ops/small_types_refused.txt", 8, op_check_refusal);
}

/* ---- the types' formulas (ONNX, docs/docsgen/source/technical/float8.md and float4.md) ---- */

static const struct {
    mpl_type type;
    int mantissa, bias, codes, infinity, nan; /* codes of infinity and the first NaN; -1: none */
    bool unsigned_zero;                       /* the code of -0 is the only NaN */
    double most, above;                       /* what saturates becomes, and what does not */
} kinds[] = {
    {MPL_TYPE_f8e4m3fn, 3, 7, 256, -1, 0x7f, false, 448, (double)NAN},
    {MPL_TYPE_f8e4m3fnuz, 3, 8, 256, -1, -1, true, 240, (double)NAN},
    {MPL_TYPE_f8e5m2, 2, 15, 256, 0x7c, 0x7d, false, 57344, (double)INFINITY},
    {MPL_TYPE_f8e5m2fnuz, 2, 16, 256, -1, -1, true, 57344, (double)NAN},
    {MPL_TYPE_f4e2m1, 1, 1, 16, -1, -1, false, 6, 6},
};
enum { KINDS = sizeof kinds / sizeof *kinds };

static double value_of(int k, int code)
{
    int size = code & (kinds[k].codes / 2 - 1), m = kinds[k].mantissa;
    int exponent = size >> m, fraction = size % (1 << m);
    double x = exponent == 0 ? pow(2, 1 - kinds[k].bias) * fraction / (1 << m)
                             : pow(2, exponent - kinds[k].bias) * (1 + (double)fraction / (1 << m));

    if ((kinds[k].nan >= 0 && size >= kinds[k].nan) || (kinds[k].unsigned_zero && code == 0x80))
        return (double)NAN;
    if (size == kinds[k].infinity)
        x = (double)INFINITY;
    return code >= kinds[k].codes / 2 ? -x : x;
}

TEST(codes_are_their_formulas)
{
    for (int k = 0; k < KINDS; k++)
        for (int code = 0; code < kinds[k].codes; code++) {
            uint64_t byte = (uint64_t)code; /* a word, which mpl_get may read as any type */
            double want = value_of(k, code), got = mpl_get(kinds[k].type, &byte, 0);

            if (isnan(want) ? !isnan(got) : got != want || signbit(got) != signbit(want))
                fail_msg("%s %02x is %g, not %g", mpl_type_name(kinds[k].type), code, got, want);
        }
}

/* The number whose code is nearest to x; of two, the one of the even code. */
static double nearest(const double *value, int codes, double x)
{
    double best = 0, least = (double)INFINITY;

    for (int code = 0; code < codes; code++) {
        double off = fabs(value[code] - x);

        if (isfinite(value[code]) && (off < least || (off == least && (code & 1) == 0)))
            best = value[code], least = off;
    }
    return best;
}

/* What lies above half a step over the largest number has no code; the half itself, if the largest
 * code is odd. */
static double rounded(int k, const double *value, double x, bool saturate)
{
    double most = kinds[k].most, below = 0, half;
    int most_code = 0;

    if (isnan(x))
        return kinds[k].type == MPL_TYPE_f4e2m1 ? 0 : x;
    for (int code = 0; code < kinds[k].codes / 2; code++) {
        below = value[code] < most && value[code] > below ? value[code] : below;
        most_code = value[code] == most ? code : most_code;
    }
    half = most + (most - below) / 2;
    if (fabs(x) > half || (fabs(x) == half && most_code % 2 != 0))
        return copysign(saturate ? most : kinds[k].above, x);
    return nearest(value, kinds[k].codes, x);
}

TEST(every_half_rounds_to_the_nearest)
{
    static const mpl_type from[] = {MPL_TYPE_f16, MPL_TYPE_bf16};
    double value[256];

    for (int k = 0; k < KINDS; k++) {
        for (int code = 0; code < kinds[k].codes; code++)
            value[code] = value_of(k, code);
        for (int i = 0; i < 4; i++)
            for (int bits = 0; bits < 65536; bits++) {
                uint64_t half = bits;
                double x = mpl_get(from[i / 2], &half, 0), got;
                double want = rounded(k, value, x, i % 2 != 0);
                uint64_t byte = 0;

                mpl_put_small(kinds[k].type, &byte, 0, x, i % 2 != 0, "up");
                got = mpl_get(kinds[k].type, &byte, 0);
                if (isnan(want) ? !isnan(got) : got != want)
                    fail_msg("%g as %s is %g, not %g", x, mpl_type_name(kinds[k].type), got, want);
            }
    }
}

/* Powers of two: the next one up or down, or the nearer one, by walking over all of them. */
TEST(scales_of_blocks)
{
    static const char *const modes[] = {"up", "down", "nearest"};

    for (long bits = 0; bits < 32768; bits++)
        for (int m = 0; m < 3; m++) {
            uint64_t half = bits;
            double x = mpl_get(MPL_TYPE_bf16, &half, 0), got, want = ldexp(1, -127);
            uint64_t byte = 0;

            mpl_put_small(MPL_TYPE_f8e8m0, &byte, 0, x, true, modes[m]);
            got = mpl_get(MPL_TYPE_f8e8m0, &byte, 0);
            for (int e = -127; e <= 127; e++) {
                double low = ldexp(1, e);

                if (m == 1 ? low <= x : m == 0 ? low / 2 < x : low * 0.75 <= x)
                    want = low;
            }
            if (isnan(x) ? !isnan(got) : got != want)
                fail_msg("%g %s is %g, not %g", x, modes[m], got, want);
        }
}

/* ---- text and constants ---- */

#define HEAD "graph g\n"
#define TAIL                                                                                       \
    "x = cast(a) to=f32\n"                                                                         \
    "output x\n"
static const char constants[] = "weight a i4 [5] = data -8 7 0 -1 3\n"
                                "weight b u4 [3] = data 15 0 9\n"
                                "weight c i2 [5] = data -2 1 0 -1 1\n"
                                "weight d u2 [1] = data 3\n"
                                "weight e f8e4m3fn [4] = data nan 448 -0 0.001953125\n"
                                "weight f f8e5m2 [4] = data nan nan.fe inf -57344\n"
                                "weight g f8e4m3fnuz [2] = data nan 2.4e+02\n"
                                "weight h f8e5m2fnuz [2] = data nan -57344\n"
                                "weight i f4e2m1 [3] = data 6 -0.5 1.5\n"
                                "weight j f8e8m0 [2] = data nan 0.25\n"
                                "weight k u64 [2] = data 18446744073709551615 0\n"
                                "weight l i16 [2] = data -32768 32767\n"
                                "weight m u32 [1] = data 4294967295\n"
                                "weight n u16 [1] = data 65535\n"
                                "weight o i4 [7] = splat -3\n";

TEST(text_gives_every_bit_back)
{
    static const struct {
        uint64_t bytes;
        uint8_t first[4];
    } want[] = {{3, {0x78, 0xf0, 0x03}},
                {2, {0x0f, 0x09}},
                {2, {0xc6, 0x01}},
                {1, {0x03}},
                {4, {0x7f, 0x7e, 0x80, 0x01}},
                {4, {0x7e, 0xfe, 0x7c, 0xfb}}};
    owned_graph *g = NULL;
    owned_memory char *text = NULL;
    char whole[2000];
    size_t size;

    snprintf(whole, sizeof whole, HEAD "%s" TAIL, constants);
    assert_ok(ctx, mpl_text_read_memory(ctx, "t", whole, strlen(whole), &g));
    assert_ok(ctx, mpl_text_write_memory(ctx, g, &text, &size));
    if (strstr(text, constants) == NULL)
        fail_msg("%s", text);
    for (mpl_value v = 0; v < sizeof want / sizeof *want; v++) {
        assert_int_equal(g->value_bytes[v], want[v].bytes);
        assert_memory_equal(g->value_data[v], want[v].first, want[v].bytes);
    }
}

TEST(one_element_stands_for_all)
{
    for (int n = 1; n < 9; n++) {
        uint8_t four[4] = {0}, one = 0x0d;
        uint64_t bytes;

        assert_true(mpl_type_size(MPL_TYPE_i4, (uint64_t)n, &bytes));
        assert_int_equal(bytes, (n + 1) / 2);
        mpl_type_repeat(MPL_TYPE_i4, (uint64_t)n, &one, four);
        for (int i = 0; i < n; i++)
            assert_int_equal(mpl_get_int(MPL_TYPE_i4, four, i), -3);
    }
}

TEST(what_is_no_element)
{
    static const char *const rows[] = {
        "i4 [1] = data 8",          "i4 [1] = data -9",
        "u4 [1] = data -1",         "u4 [1] = data 16",
        "u2 [2] = data 3",          "i2 [1] = data 2",
        "f8e4m3fn [1] = data inf",  "f4e2m1 [1] = data nan",
        "f8e4m3fn [1] = data 1000", "u64 [1] = data 18446744073709551616",
        "i4 [3] = bytes 12",        "u16 [1] = data 65536",
    };
    char text[200];
    mpl_graph *g = NULL;

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        int n = snprintf(text, sizeof text, "graph g\nweight a %s\noutput a\n", rows[i]);

        if (mpl_text_read_memory(ctx, "t", text, (size_t)n, &g) != MPL_EINPUT)
            fail_msg("%s is taken", rows[i]);
        assert_null(strchr(ctx->message, '\n'));
    }
}

int main(void)
{
    return RUN_TESTS(NULL, NULL, rows, codes_are_their_formulas, every_half_rounds_to_the_nearest,
                     scales_of_blocks, text_gives_every_bit_back, one_element_stands_for_all,
                     what_is_no_element);
}
