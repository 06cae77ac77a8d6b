/* Quantised operators: small cases with values that follow from (integer - zero) * scale, and
 * random convolutions and products against sums written down term by term here. Fault: a zero point
 * that a border has not, a weight of another channel's scale, a rounding half up, a lost tail of
 * int4. */
#include "tests/support/interpret.h"
#include "tests/support/op_rows.h"

#include "graphs/core/rng.h"
#include "graphs/passes/optimise/optimise.h"

TEST(rows)
{
    op_each_row(ctx, "tests/data/ops/quant.txt", 56, op_check_row);
    op_each_row(ctx, "tests/data/ops/quant_refused.txt", 29, op_check_refusal);
}

/* ---- random convolutions ---- */

typedef struct conv {
    int64_t batch, group, in, out, size[2], kernel[2], stride[2], dilation[2], before[2], after[2];
    bool last;
} conv;

static int64_t between(mpl_rng *rng, int64_t least, int64_t most)
{
    return least + (int64_t)(mpl_rng_next(rng) % (uint64_t)(most - least + 1));
}

static int64_t outputs_of(const conv *c, int k)
{
    return (c->size[k] + c->before[k] + c->after[k] - c->dilation[k] * (c->kernel[k] - 1) - 1) /
               c->stride[k] +
           1;
}

/* Element (n, c, y, x) of [batch, channels, height, width], or with channels last. */
static int64_t place(bool last, int64_t channels, int64_t height, int64_t width, int64_t n,
                     int64_t c, int64_t y, int64_t x)
{
    return last ? ((n * height + y) * width + x) * channels + c
                : ((n * channels + c) * height + y) * width + x;
}

static double expected(const conv *c, const double *x, const double *w, double x_zero,
                       double w_zero, int64_t n, int64_t oc, int64_t oy, int64_t ox)
{
    int64_t each = c->in / c->group, first = oc / (c->out / c->group) * each;
    double sum = 0;

    for (int64_t i = 0; i < each; i++)
        for (int64_t ky = 0; ky < c->kernel[0]; ky++)
            for (int64_t kx = 0; kx < c->kernel[1]; kx++) {
                int64_t y = oy * c->stride[0] - c->before[0] + ky * c->dilation[0];
                int64_t at = ox * c->stride[1] - c->before[1] + kx * c->dilation[1];

                if (y < 0 || y >= c->size[0] || at < 0 || at >= c->size[1])
                    continue;
                sum +=
                    (x[place(c->last, c->in, c->size[0], c->size[1], n, first + i, y, at)] -
                     x_zero) *
                    (w[place(c->last, each, c->kernel[0], c->kernel[1], oc, i, ky, kx)] - w_zero);
            }
    return sum;
}

static void draw_conv(mpl_rng *rng, conv *c)
{
    c->batch = between(rng, 1, 2);
    c->group = between(rng, 1, 3);
    c->in = c->group * between(rng, 1, 3);
    c->out = c->group * between(rng, 1, 6);
    c->last = between(rng, 0, 1) != 0;
    for (int k = 0; k < 2; k++) {
        c->kernel[k] = between(rng, 1, 3);
        c->stride[k] = between(rng, 1, 3);
        c->dilation[k] = between(rng, 1, 2);
        c->before[k] = between(rng, 0, 2);
        c->after[k] = between(rng, 0, 2);
        c->size[k] = c->dilation[k] * (c->kernel[k] - 1) + between(rng, 1, 6);
    }
}

static mpl_shape dims_of(bool last, int64_t n, int64_t c, int64_t y, int64_t x)
{
    return last ? DIMS(n, y, x, c) : DIMS(n, c, y, x);
}

static void try_conv(mpl_rng *rng)
{
    static double x[2 * 9 * 16 * 16], w[18 * 9 * 9];
    conv c;
    test_op t;
    double x_zero = (double)between(rng, 0, 255), w_zero = (double)between(rng, -3, 3);
    draw_conv(rng, &c);
    const mpl_shape xs = dims_of(c.last, c.batch, c.in, c.size[0], c.size[1]);
    const mpl_shape ws = dims_of(c.last, c.out, c.in / c.group, c.kernel[0], c.kernel[1]);
    const test_tensor in[] = {IN(u8, xs, x),           IN(i8, ws, w),      {.present = false},
                              IN(u8, SCALAR, &x_zero), {.present = false}, IN(i8, SCALAR, &w_zero)};
    const mpl_attr attr[] = {LIST(strides, c.stride[0], c.stride[1]),
                             LIST(dilations, c.dilation[0], c.dilation[1]),
                             LIST(pads, c.before[0], c.before[1], c.after[0], c.after[1]),
                             MPL_INT(group, c.group), MPL_INT(channels_last, c.last)};

    for (int64_t i = 0; i < mpl_count(&xs); i++)
        x[i] = (double)between(rng, 0, 255);
    for (int64_t i = 0; i < mpl_count(&ws); i++)
        w[i] = (double)between(rng, -128, 127);
    assert_ok(&t.ctx, test_op_apply(&t, MPL_OP_qconv, 6, in, 5, attr, 1, -1));
    for (int64_t n = 0; n < c.batch; n++)
        for (int64_t oc = 0; oc < c.out; oc++)
            for (int64_t y = 0; y < outputs_of(&c, 0); y++)
                for (int64_t at = 0; at < outputs_of(&c, 1); at++) {
                    int64_t to =
                        place(c.last, c.out, outputs_of(&c, 0), outputs_of(&c, 1), n, oc, y, at);
                    double want = expected(&c, x, w, x_zero, w_zero, n, oc, y, at);
                    int32_t got = ((const int32_t *)t.out[0].data)[to];

                    if ((double)got != want)
                        fail_msg("output (%d,%d,%d,%d) is %d, not %g", (int)n, (int)oc, (int)y,
                                 (int)at, got, want);
                }
    test_op_free(&t);
}

TEST(random_convolutions)
{
    mpl_rng rng = mpl_rng_of(22);

    for (uint32_t i = 0; i < draws(400); i++)
        try_conv(&rng);
}

/* ---- pass qdq ---- */

static const char head[] =
    "graph g\n"
    "input x f32 [1,2,4,4]\n"
    "input x0 f32 []\n"
    "weight sx f32 [] = splat 0.05\nweight zx u8 [] = splat 120\n"
    "weight sy f32 [] = splat 0.04\nweight zy u8 [] = splat 100\nweight zi i8 [] = splat -5\n"
    "weight zs i8 [] = splat 120\n"
    "weight sw f32 [3] = data 0.01 0.02 0.015\nweight z3 u8 [3] = splat 9\n"
    "weight s8 f32 [8] = splat 0.02\n"
    "weight sk f32 [] = splat 0.01\nweight w i8 [3,2,1,1] = data 100 -50 30 127 -128 5\n"
    "weight b f32 [3] = data 0.5 -1 0.25\nweight bi i32 [3] = data 1000 -2000 300\n"
    "weight sb f32 [3] = data 0.0005 0.001 0.00075\n"
    "weight f0 f32 [] = splat -0.5\nweight f1 f32 [] = splat 1\n"
    "weight t i8 [2,1,1] = data 90 -60\nweight at i64 [2] = data 3 0\n"
    "weight m i8 [8,3] = data 1 2 3 4 5 6 7 8 9 10 11 12 -1 -2 -3 -4 -5 -6 70 80 90 -70 -80 -90\n"
    "weight mt i8 [3,8] = data 1 2 3 4 5 6 7 8 9 10 11 12 -1 -2 -3 -4 -5 -6 70 80 90 -70 -80 -90\n"
    "q = quantize(x, sx, zx)\nd = dequantize(q, sx, zx)\nf = dequantize(w, sw) axis=0\n";

static void check_qdq(const char *line)
{
    char copy[1000], *column[4], text[4000];
    owned_graph *was = NULL, *is = NULL;
    mpl_pass_count count[MPL_N_PASSES];
    mpl_pass_set set;
    mpl_rng rng;

    op_columns(line, copy, sizeof copy, column, 4);
    int n = snprintf(text, sizeof text, "%s%s\noutput z\n", head, column[3]);
    for (int i = 0; i < n; i++)
        text[i] = text[i] == ';' ? '\n' : text[i];
    assert_ok(test_ctx, mpl_text_read_memory(test_ctx, "t", text, (size_t)n, &was));
    assert_ok(test_ctx, mpl_text_read_memory(test_ctx, "t", text, (size_t)n, &is));
    assert_ok(test_ctx, mpl_pass_set_parse(test_ctx, "qdq,dead_code", &set));
    assert_ok(test_ctx, mpl_graph_optimise(test_ctx, &is, &set, NULL, count));
    if (count[MPL_PASS_qdq].places != strtoul(column[1], NULL, 10) ||
        is->n_ops != strtoul(column[2], NULL, 10))
        fail_msg("%s: %u edits, %u operations left", line, count[MPL_PASS_qdq].places, is->n_ops);
    rng = mpl_rng_of(5);
    for (uint32_t round = 0; round < 5; round++) {
        interpreter a = interpret_begin(test_ctx, was), b = interpret_begin(test_ctx, is);
        mpl_value z = mpl_graph_find(was, "z"), y = mpl_graph_find(is, "z");
        mpl_value from = mpl_graph_find(was, "x"), to = mpl_graph_find(is, "x");

        for (int i = 0; i < 32; i++)
            ((float *)a.data[from])[i] = (float)(mpl_rng_float(&rng) * 8 - 4);
        memcpy(b.data[to], a.data[from], 32 * sizeof(float));
        assert_ok(test_ctx, interpret(&a));
        assert_ok(test_ctx, interpret(&b));
        assert_int_equal(was->value_type[z], is->value_type[y]);
        for (int64_t i = 0; i < mpl_count(&was->value_shape[z]); i++) {
            mpl_type type = (mpl_type)was->value_type[z];
            double off = mpl_get(type, a.data[z], i) - mpl_get(type, b.data[y], i);

            if (fabs(off) > 1)
                fail_msg("%s: element %d is off by %g steps", line, (int)i, off);
        }
        interpret_end(&a);
        interpret_end(&b);
    }
}

TEST(integers_between)
{
    op_each_row(ctx, "tests/data/qdq.txt", 36, check_qdq);
}

int main(void)
{
    return RUN_TESTS(NULL, NULL, rows, random_convolutions, integers_between);
}
