/* Products and pooling: every case of padding, stride, dilation and groups against the definitions,
 * computed in the opposite direction (scattered from the input), on small integers, so that sums
 * are exact. */
#include "tests/support/ops.h"

#include <math.h>

typedef struct conv_row {
    mpl_shape x, weight;
    bool bias;
    int64_t group, stride[3], dilation[3], pads[6], extra[3];
} conv_row;

/* Expands to [batch, channels, 3 spatial dims]; and an element's index there. */
static void five(const mpl_shape *shape, int64_t dim[5])
{
    uint32_t n = shape->rank - 2;

    dim[0] = shape->dim[0], dim[1] = shape->dim[1];
    for (uint32_t i = 0; i < 3; i++)
        dim[2 + i] = i < 3 - n ? 1 : shape->dim[2 + i - (3 - n)];
}
static int64_t at5(const int64_t dim[5], int64_t a, int64_t b, int64_t z, int64_t y, int64_t x)
{
    return (((a * dim[1] + b) * dim[2] + z) * dim[3] + y) * dim[4] + x;
}

typedef struct extent {
    int64_t x[5], weight[5], y[5], stride[3], dilation[3], before[3];
} extent;

/* Attributes of the three spatial dims, missing ones neutral, and the output's dims. */
static mpl_shape extent_of(const conv_row *r, bool transposed, extent *e)
{
    uint32_t n = r->x.rank - 2;
    mpl_shape out = {.rank = r->x.rank};

    five(&r->x, e->x);
    five(&r->weight, e->weight);
    out.dim[0] = r->x.dim[0];
    out.dim[1] = transposed ? r->weight.dim[1] * r->group : r->weight.dim[0];
    for (uint32_t i = 0; i < 3; i++) {
        uint32_t from = i - (3 - n);
        bool real = i >= 3 - n;

        e->stride[i] = real && r->stride[from] != 0 ? r->stride[from] : 1;
        e->dilation[i] = real && r->dilation[from] != 0 ? r->dilation[from] : 1;
        e->before[i] = real ? r->pads[from] : 0;
        if (real) {
            int64_t pads = r->pads[from] + r->pads[n + from],
                    span = (e->weight[2 + i] - 1) * e->dilation[i] + 1;

            out.dim[2 + from] =
                transposed ? (e->x[2 + i] - 1) * e->stride[i] + r->extra[from] + span - pads
                           : (e->x[2 + i] + pads - span) / e->stride[i] + 1;
        }
    }
    five(&out, e->y);
    return out;
}

/* Output position along axis a for input position i and kernel element k; -1: none. */
static int64_t meet(const extent *e, bool transposed, int a, int64_t i, int64_t k)
{
    int64_t at = transposed ? i * e->stride[a] + k * e->dilation[a] - e->before[a]
                            : i + e->before[a] - k * e->dilation[a];

    if (!transposed) {
        if (at < 0 || at % e->stride[a] != 0)
            return -1;
        at /= e->stride[a];
    }
    return at >= 0 && at < e->y[2 + a] ? at : -1;
}

/* Accumulates y[n, out channel] += x[n, in channel] * weight for one pair of channels. */
static void scatter_plane(const extent *e, bool transposed, const double *x, const double *weight,
                          double *y, int64_t n, int64_t in, int64_t out, int64_t row,
                          int64_t column)
{
    const int64_t *d = e->x, *k = e->weight;

    for (int64_t i = 0; i < d[2] * d[3] * d[4]; i++)
        for (int64_t t = 0; t < k[2] * k[3] * k[4]; t++) {
            int64_t oz = meet(e, transposed, 0, i / d[4] / d[3], t / k[4] / k[3]);
            int64_t oy = meet(e, transposed, 1, i / d[4] % d[3], t / k[4] % k[3]);
            int64_t ox = meet(e, transposed, 2, i % d[4], t % k[4]);

            if (oz >= 0 && oy >= 0 && ox >= 0)
                y[at5(e->y, n, out, oz, oy, ox)] +=
                    x[at5(d, n, in, 0, 0, 0) + i] * weight[at5(k, row, column, 0, 0, 0) + t];
        }
}

static void convolve(const conv_row *r, const extent *e, bool transposed, const double *x,
                     const double *weight, const double *bias, double *y)
{
    int64_t ins = e->x[1] / r->group, outs = e->y[1] / r->group;

    for (int64_t i = 0; i < e->y[0] * e->y[1] * e->y[2] * e->y[3] * e->y[4]; i++)
        y[i] = r->bias ? bias[i / (e->y[2] * e->y[3] * e->y[4]) % e->y[1]] : 0;
    for (int64_t n = 0; n < e->x[0]; n++)
        for (int64_t g = 0; g < r->group; g++)
            for (int64_t a = 0; a < ins; a++)
                for (int64_t b = 0; b < outs; b++)
                    scatter_plane(e, transposed, x, weight, y, n, g * ins + a, g * outs + b,
                                  transposed ? g * ins + a : g * outs + b, transposed ? b : a);
}

/* n small integers. */
static double *numbers(uint64_t *seed, int64_t n)
{
    double *value = calloc((size_t)n + 1, sizeof *value);

    for (int64_t i = 0; i < n; i++)
        value[i] = (double)test_random(seed, 5) - 2;
    return value;
}

static const mpl_type float_types[] = {MPL_TYPE_f32, MPL_TYPE_f64, MPL_TYPE_f16, MPL_TYPE_bf16};

static void run_conv(const conv_row *r, bool transposed, mpl_type type, const char *name)
{
    uint64_t seed = 7;
    uint32_t n = r->x.rank - 2;
    extent e;
    mpl_shape out = extent_of(r, transposed, &e), bias = {1, {out.dim[1]}};
    double *x = numbers(&seed, mpl_count(&r->x)), *weight = numbers(&seed, mpl_count(&r->weight));
    double *b = numbers(&seed, out.dim[1]), *y = numbers(&seed, mpl_count(&out));
    test_tensor in[3] = {{true, type, r->x, x, NULL},
                         {true, type, r->weight, weight, NULL},
                         {r->bias, type, bias, b, NULL}};
    mpl_attr attr[5] = {MPL_INT(group, r->group), MPL_INTS(pads, 2 * n, r->pads)};
    uint32_t n_attr = 2;
    test_op t;

    if (r->stride[0] != 0)
        attr[n_attr++] = MPL_INTS(strides, n, r->stride);
    if (r->dilation[0] != 0)
        attr[n_attr++] = MPL_INTS(dilations, n, r->dilation);
    if (transposed)
        attr[n_attr++] = MPL_INTS(output_padding, n, r->extra);
    assert_ok(&t.ctx, test_op_make(&t, transposed ? MPL_OP_conv_transpose : MPL_OP_conv, 3, in,
                                   n_attr, attr, 1));
    assert_ok(&t.ctx, test_op_run(&t));
    convolve(r, &e, transposed, x, weight, b, y);
    test_expect(name, &t, 0, &out, y, 0);
    test_op_free(&t);
    free(x), free(weight), free(b), free(y);
}

TEST(test_conv)
{
    /* clang-format off */
    static const conv_row rows[] = {
        {{3, {1, 1, 7}}, {3, {1, 1, 3}}, false, 1, {0}, {0}, {0}, {0}},
        {{3, {2, 3, 9}}, {3, {4, 3, 3}}, true, 1, {2}, {2}, {1, 3}, {0}},
        {{4, {1, 2, 5, 6}}, {4, {3, 2, 3, 3}}, true, 1, {0}, {0}, {1, 1, 1, 1}, {0}},
        {{4, {1, 2, 5, 6}}, {4, {3, 2, 3, 2}}, false, 1, {2, 1}, {1, 2}, {0, 1, 2, 3}, {0}},
        {{4, {2, 4, 5, 5}}, {4, {6, 2, 3, 3}}, true, 2, {2, 2}, {0}, {1, 0, 0, 1}, {0}},
        {{4, {1, 6, 9, 9}}, {4, {6, 1, 3, 3}}, true, 6, {1, 1}, {2, 3}, {2, 3, 2, 3}, {0}},
        {{4, {1, 3, 4, 4}}, {4, {2, 3, 1, 1}}, true, 1, {0}, {0}, {0}, {0}},
        {{4, {1, 1, 2, 2}}, {4, {1, 1, 3, 3}}, true, 1, {3, 3}, {0}, {4, 4, 4, 4}, {0}},
        {{4, {1, 70, 9, 11}}, {4, {9, 70, 1, 2}}, true, 1, {0}, {0}, {0, 1, 0, 0}, {0}},
        {{5, {1, 2, 3, 4, 5}}, {5, {2, 2, 2, 3, 1}}, true, 1, {1, 2, 2}, {2, 1, 1}, {1, 0, 2, 1, 1,
            0},
         {0}},
        {{4, {0, 2, 5, 5}}, {4, {3, 2, 3, 3}}, true, 1, {0}, {0}, {0}, {0}},
        {{4, {1, 0, 5, 5}}, {4, {3, 0, 3, 3}}, true, 1, {0}, {0}, {0}, {0}},
        {{4, {1, 1, 0, 5}}, {4, {3, 1, 1, 1}}, true, 1, {0}, {0}, {0}, {0}},
    };
    /* clang-format on */

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        for (size_t type = 0; type < 4; type++) {
            char name[40];

            sprintf(name, "conv %zu", i);
            run_conv(&rows[i], false, float_types[type], name);
        }
}

TEST(test_conv_transpose)
{
    /* clang-format off */
    static const conv_row rows[] = {
        {{3, {1, 1, 4}}, {3, {1, 1, 3}}, false, 1, {0}, {0}, {0}, {0}},
        {{3, {2, 3, 4}}, {3, {3, 2, 3}}, true, 1, {2}, {2}, {1, 2}, {1}},
        {{4, {1, 2, 3, 4}}, {4, {2, 3, 3, 2}}, true, 1, {3, 2}, {1, 2}, {0, 1, 2, 0}, {1, 0}},
        {{4, {1, 4, 3, 3}}, {4, {4, 3, 2, 2}}, true, 2, {2, 2}, {0}, {0}, {1, 1}},
        {{4, {1, 3, 3, 3}}, {4, {3, 1, 3, 3}}, false, 3, {1, 1}, {2, 2}, {1, 1, 1, 1}, {0}},
        {{5, {1, 2, 2, 3, 2}}, {5, {2, 2, 2, 1, 3}}, true, 1, {2, 1, 2}, {0}, {0, 0, 1, 1, 0, 0},
            {0}},
        {{4, {0, 2, 3, 3}}, {4, {2, 1, 3, 3}}, true, 1, {0}, {0}, {0}, {0}},
    };
    /* clang-format on */

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        for (size_t type = 0; type < 4; type++) {
            char name[40];

            sprintf(name, "conv_transpose %zu", i);
            run_conv(&rows[i], true, float_types[type], name);
        }
}

/* output_shape: 3 -> 4 with stride 2, kernel 2 cuts one of 6 in front (the larger half of two) and
 * one at the end; a larger output_shape grows at the end, where only the bias arrives. */
TEST(test_conv_transpose_output_shape)
{
    /* clang-format off */
    static const struct {
        int64_t want;
        bool pads;
        double value[7];
    } rows[] = {
        {4, false, {1, 2, 2, 3}},
        {5, false, {1, 2, 2, 3, 3}},
        {7, false, {1, 1, 2, 2, 3, 3, 0}},
        {5, true, {1, 1, 2, 2, 3}},
    };
    /* clang-format on */

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const test_tensor in[] = {IN(f32, DIMS(1, 1, 3), VALUES(1, 2, 3)),
                                  IN(f32, DIMS(1, 1, 2), VALUES(1, 1))};
        const mpl_attr attr[] = {LIST(strides, 2), LIST(output_shape, rows[i].want),
                                 LIST(pads, 0, 1)};
        test_op t;

        assert_ok(&t.ctx,
                  test_op_make(&t, MPL_OP_conv_transpose, 2, in, rows[i].pads ? 3 : 2, attr, 1));
        assert_ok(&t.ctx, test_op_run(&t));
        test_expect("output_shape", &t, 0, &DIMS(1, 1, rows[i].want), rows[i].value, 0);
        test_op_free(&t);
    }
}

/* ---- matmul and gemm ---- */

/* Integers in every type with products; sizes on both sides of the tile edges. */
static const mpl_type product_types[] = {MPL_TYPE_f32,  MPL_TYPE_f64, MPL_TYPE_f16,
                                         MPL_TYPE_bf16, MPL_TYPE_i32, MPL_TYPE_i64};
static const struct {
    int64_t rows, terms, columns;
} products[] = {{1, 1, 1},    {4, 3, 8},     {5, 63, 7}, {3, 64, 9}, {2, 65, 64},
                {9, 130, 65}, {1, 200, 130}, {0, 3, 2},  {2, 3, 0},  {2, 0, 3}};

static void run_gemm(mpl_type type, int64_t rows, int64_t terms, int64_t columns, bool trans_a,
                     bool trans_b, int addend)
{
    const mpl_shape a = {2, {trans_a ? terms : rows, trans_a ? rows : terms}};
    const mpl_shape b = {2, {trans_b ? columns : terms, trans_b ? terms : columns}},
                    y = {2, {rows, columns}};
    const mpl_shape added[] = {{2, {rows, columns}}, {1, {columns}}, {2, {rows, 1}}, {0, {0}}};
    const mpl_attr attr[] = {MPL_INT(trans_a, trans_a), MPL_INT(trans_b, trans_b),
                             MPL_FLOAT(alpha, 2), MPL_FLOAT(beta, -3)};
    uint64_t seed = 3;
    double *va = numbers(&seed, rows * terms), *vb = numbers(&seed, terms * columns);
    double *vc = numbers(&seed, rows * columns + 1), *want = numbers(&seed, rows * columns);
    const test_tensor in[] = {{true, type, a, va, NULL},
                              {true, type, b, vb, NULL},
                              {addend < 4, type, added[addend & 3], vc, NULL}};
    test_op t;

    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < columns; j++) {
            double *to = &want[i * columns + j];

            *to = addend > 3    ? 0
                  : addend == 3 ? -3 * vc[0]
                                : -3 * vc[addend == 0   ? i * columns + j
                                          : addend == 1 ? j
                                                        : i];
            for (int64_t k = 0; k < terms; k++)
                *to += 2 * va[trans_a ? k * rows + i : i * terms + k] *
                       vb[trans_b ? j * terms + k : k * columns + j];
        }
    assert_ok(&t.ctx, test_op_make(&t, MPL_OP_gemm, 3, in, 4, attr, 1));
    assert_ok(&t.ctx, test_op_run(&t));
    test_expect("gemm", &t, 0, &y, want, type == MPL_TYPE_bf16 ? 0.02 : 0);
    test_op_free(&t);
    free(va), free(vb), free(vc), free(want);
}

TEST(test_gemm)
{
    for (size_t type = 0; type < sizeof product_types / sizeof *product_types; type++)
        for (size_t i = 0; i < sizeof products / sizeof *products; i++)
            for (int way = 0; way < 4; way++)
                run_gemm(product_types[type], products[i].rows, products[i].terms,
                         products[i].columns, (way & 1) != 0, (way & 2) != 0,
                         (int)((i + (size_t)way) % 5));
}

TEST(test_matmul)
{
    /* clang-format off */
    static const struct {
        mpl_shape a, b, y;
        double value[8];
    } rows[] = {
        {{1, {3}}, {1, {3}}, {0, {0}}, {5}},
        {{1, {2}}, {2, {2, 3}}, {1, {3}}, {3, 4, 5}},
        {{2, {3, 2}}, {1, {2}}, {1, {3}}, {1, 3, 5}},
        {{2, {2, 2}}, {2, {2, 2}}, {2, {2, 2}}, {2, 3, 6, 11}},
        {{3, {2, 1, 2}}, {2, {2, 1}}, {3, {2, 1, 1}}, {1, 3}},
        {{2, {1, 2}}, {3, {2, 2, 1}}, {3, {2, 1, 1}}, {1, 3}},
        {{3, {2, 1, 2}}, {4, {2, 1, 2, 1}}, {4, {2, 2, 1, 1}}, {1, 3, 3, 13}},
        {{3, {0, 1, 2}}, {2, {2, 2}}, {3, {0, 1, 2}}, {0}},
        {{2, {2, 0}}, {2, {0, 2}}, {2, {2, 2}}, {0, 0, 0, 0}},
    };
    /* clang-format on */

    for (size_t type = 0; type < sizeof product_types / sizeof *product_types; type++)
        for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
            const test_tensor in[] = {{true, product_types[type], rows[i].a, NULL, NULL},
                                      {true, product_types[type], rows[i].b, NULL, NULL}};
            char name[40];
            test_op t;

            sprintf(name, "matmul %zu", i);
            assert_ok(&t.ctx, test_op_make(&t, MPL_OP_matmul, 2, in, 0, NULL, 1));
            assert_ok(&t.ctx, test_op_run(&t));
            test_expect(name, &t, 0, &rows[i].y, rows[i].value, 0);
            test_op_free(&t);
        }
}

/* Integer products wrap like unsigned ones. */
TEST(test_matmul_wraps)
{
    const test_tensor in[] = {IN(i32, DIMS(1, 2), VALUES(2147483647, 1)),
                              IN(i32, DIMS(2, 1), VALUES(2, 5))};
    test_op t;

    assert_ok(&t.ctx, test_op_make(&t, MPL_OP_matmul, 2, in, 0, NULL, 1));
    assert_ok(&t.ctx, test_op_run(&t));
    assert_int_equal(*(int32_t *)t.out[0].data, 3);
    test_op_free(&t);
}

/* f32 sums equal, to the last bit, bias + (sum of 64 products) + (sum of the next 64) + .., as
 * documented. */
TEST(test_order_of_accumulation)
{
    enum { TERMS = 300, COLUMNS = 70 };
    uint64_t seed = 11;
    double *x = numbers(&seed, TERMS * COLUMNS), *weight = numbers(&seed, TERMS), bias = 0.7;
    const test_tensor in[] = {IN(f32, DIMS(1, TERMS, COLUMNS), x),
                              IN(f32, DIMS(1, TERMS, 1), weight), IN(f32, DIMS(1), &bias)};
    test_op t;

    for (int i = 0; i < TERMS * COLUMNS; i++)
        x[i] = (x[i] + test_random(&seed, 1000) / 999.0) / 3;
    assert_ok(&t.ctx, test_op_make(&t, MPL_OP_conv, 3, in, 0, NULL, 1));
    assert_ok(&t.ctx, test_op_run(&t));
    for (int j = 0; j < COLUMNS; j++) {
        float y = (float)bias, sum = 0;

        for (int k = 0; k < TERMS; k++) {
            volatile float product = (float)weight[k] * (float)x[k * COLUMNS + j];

            sum = sum + product;
            if (k % 64 == 63 || k == TERMS - 1)
                y = y + sum, sum = 0;
        }
        if (memcmp(&((float *)t.out[0].data)[j], &y, sizeof y) != 0)
            fail_msg("column %d is %.9g, not %.9g", j, (double)((float *)t.out[0].data)[j],
                     (double)y);
    }
    test_op_free(&t);
    free(x), free(weight);
}

/* ---- pooling ---- */

typedef struct pool_row {
    mpl_shape x;
    int64_t kernel[3], stride[3], dilation[3], pads[6];
    bool ceil_mode;
    mpl_shape y;
} pool_row;

/* clang-format off */
static const pool_row pools[] = {
    {{3, {1, 2, 7}}, {3}, {2}, {1}, {0, 0}, false, {3, {1, 2, 3}}},
    {{3, {1, 1, 8}}, {3}, {3}, {1}, {0, 0}, true, {3, {1, 1, 3}}},
    /* Rounded up, the third window would start at 6, past the input and in the padding: dropped. */
    {{3, {1, 1, 6}}, {2}, {3}, {1}, {0, 1}, true, {3, {1, 1, 2}}},
    {{4, {1, 3, 2, 2}}, {3, 3}, {3, 3}, {1, 1}, {1, 1, 1, 1}, true, {4, {1, 3, 1, 1}}},
    {{4, {1, 1, 4, 4}}, {3, 3}, {2, 2}, {1, 1}, {0, 0, 0, 0}, true, {4, {1, 1, 2, 2}}},
    {{4, {2, 2, 5, 6}}, {3, 2}, {1, 2}, {1, 1}, {1, 0, 2, 1}, false, {4, {2, 2, 6, 3}}},
    {{4, {1, 1, 7, 7}}, {2, 3}, {2, 1}, {3, 2}, {1, 2, 0, 1}, false, {4, {1, 1, 3, 6}}},
    {{4, {1, 1, 5, 5}}, {3, 3}, {2, 2}, {1, 1}, {1, 1, 1, 1}, true, {4, {1, 1, 3, 3}}},
    {{5, {1, 2, 3, 4, 5}}, {2, 2, 2}, {1, 2, 3}, {1, 1, 1}, {0, 1, 0, 1, 0, 1}, true, {5, {1, 2, 3,
        3, 2}}},
    {{4, {0, 1, 5, 5}}, {3, 3}, {1, 1}, {1, 1}, {0, 0, 0, 0}, false, {4, {0, 1, 3, 3}}},
};
/* clang-format on */

/* One window by definition: walks the padded line, each element being input, padding or beyond. */
typedef struct window_sum {
    double most, sum, squares;
    int64_t inside, padded, place[3];
} window_sum;

static window_sum look(const pool_row *r, const double *x, const int64_t dim[5], const int64_t o[5])
{
    uint32_t n = r->x.rank - 2;
    window_sum s = {-INFINITY, 0, 0, 0, 0, {0}};
    int64_t kernel[3] = {1, 1, 1}, total, place[3];

    for (uint32_t i = 0; i < n; i++)
        kernel[3 - n + i] = r->kernel[i];
    total = kernel[0] * kernel[1] * kernel[2];
    for (int64_t k = 0; k < total; k++) {
        int64_t tap[3] = {k / kernel[2] / kernel[1], k / kernel[2] % kernel[1], k % kernel[2]};
        bool inside = true, padded = true;
        double v;

        for (uint32_t a = 0; a < 3; a++) {
            bool real = a >= 3 - n;
            uint32_t i = a - (3 - n);

            place[a] = real ? o[2 + a] * r->stride[i] - r->pads[i] + tap[a] * r->dilation[i] : 0;
            inside &= place[a] >= 0 && place[a] < dim[2 + a];
            padded &= !real || place[a] < dim[2 + a] + r->pads[n + i];
        }
        s.padded += padded;
        if (!inside)
            continue;
        v = x[at5(dim, o[0], o[1], place[0], place[1], place[2])];
        if (v > s.most)
            s.most = v, memcpy(s.place, place, sizeof place);
        s.inside++, s.sum += v, s.squares += v * v;
    }
    return s;
}

typedef enum pool_way { MAXIMUM, COLUMN_MAJOR, AVERAGE, AVERAGE_PADDED, EUCLID, N_WAYS } pool_way;

static void run_pool(const pool_row *r, pool_way way, mpl_type type, const char *name)
{
    const mpl_op_kind kind = way <= COLUMN_MAJOR ? MPL_OP_max_pool
                             : way == EUCLID     ? MPL_OP_lp_pool
                                                 : MPL_OP_avg_pool;
    uint32_t n = r->x.rank - 2, n_out = way <= COLUMN_MAJOR ? 2 : 1;
    const mpl_attr attr[] =
        ROW(MPL_INTS(kernel_shape, n, r->kernel), MPL_INTS(strides, n, r->stride),
            MPL_INTS(dilations, n, r->dilation), MPL_INTS(pads, 2 * n, r->pads),
            MPL_INT(ceil_mode, r->ceil_mode), MPL_INT(count_include_pad, way == AVERAGE_PADDED),
            MPL_INT(storage_order, way == COLUMN_MAJOR));
    uint64_t seed = 5;
    int64_t count = mpl_count(&r->y), dim[5], out[5], o[5];
    double *x = numbers(&seed, mpl_count(&r->x)), *want = numbers(&seed, count),
           *place = numbers(&seed, count);
    test_op t;

    five(&r->x, dim), five(&r->y, out);
    for (int64_t i = 0; i < count; i++) {
        int64_t rest = i;
        window_sum s;

        for (int a = 5; a-- > 0; rest /= out[a])
            o[a] = rest % out[a];
        s = look(r, x, dim, o);
        want[i] = way <= COLUMN_MAJOR     ? s.most
                  : way == EUCLID         ? sqrt(s.squares)
                  : way == AVERAGE_PADDED ? s.sum / (double)s.padded
                                          : s.sum / (double)s.inside;
        place[i] = (double)(at5(dim, o[0], o[1], 0, 0, 0) +
                            (way == COLUMN_MAJOR
                                 ? s.place[0] + dim[2] * (s.place[1] + dim[3] * s.place[2])
                                 : s.place[2] + dim[4] * (s.place[1] + dim[3] * s.place[0])));
    }
    assert_ok(&t.ctx,
              test_op_make(&t, kind, 1, &(test_tensor){true, type, r->x, x, NULL}, 7, attr, n_out));
    assert_ok(&t.ctx, test_op_run(&t));
    test_expect(name, &t, 0, &r->y, want, 1e-6);
    if (n_out > 1)
        test_expect(name, &t, 1, &r->y, place, 0);
    test_op_free(&t);
    free(x), free(want), free(place);
}

TEST(test_pools)
{
    static const char *const names[N_WAYS] = {"max_pool", "max_pool, column-major", "avg_pool",
                                              "avg_pool, padding counts", "lp_pool"};

    for (size_t i = 0; i < sizeof pools / sizeof *pools; i++)
        for (int way = 0; way < N_WAYS; way++) {
            char name[60];

            sprintf(name, "%s %zu", names[way], i);
            for (size_t type = 0; type < 4; type++)
                run_pool(&pools[i], (pool_way)way, float_types[type], name);
            if (way <= COLUMN_MAJOR)
                run_pool(&pools[i], (pool_way)way, MPL_TYPE_i8, name);
        }
}

/* Literal cases: a window of padding only, p = 3, global pools, an empty plane. */
TEST(test_pool_corners)
{
    /* clang-format off */
    static const struct {
        mpl_op_kind kind;
        mpl_shape x;
        int64_t pads[2], p;
        mpl_shape y;
        double value[4];
    } rows[] = {
        {MPL_OP_max_pool, {3, {1, 1, 1}}, {1, 1}, 2, {3, {1, 1, 3}}, {-INFINITY, 3, -INFINITY}},
        {MPL_OP_avg_pool, {3, {1, 1, 1}}, {1, 1}, 2, {3, {1, 1, 3}}, {0, 3, 0}},
        {MPL_OP_lp_pool, {3, {1, 1, 2}}, {0, 0}, 1, {3, {1, 1, 2}}, {3, 4}},
        {MPL_OP_global_avg_pool, {4, {1, 2, 1, 2}}, {0, 0}, 2, {4, {1, 2, 1, 1}}, {-0.5, 8}},
        {MPL_OP_global_max_pool, {4, {1, 2, 1, 2}}, {0, 0}, 2, {4, {1, 2, 1, 1}}, {3, 12}},
        {MPL_OP_global_lp_pool, {3, {1, 2, 2}}, {0, 0}, 2, {3, {1, 2, 1}}, {5,
            0 + 12.6491106406735}},
        {MPL_OP_global_lp_pool, {3, {1, 1, 2}}, {0, 0}, 3, {3, {1, 1, 1}}, {4.49794144527541}},
        {MPL_OP_global_max_pool, {3, {1, 1, 0}}, {0, 0}, 2, {3, {1, 1, 1}}, {-INFINITY}},
        {MPL_OP_global_avg_pool, {3, {0, 1, 2}}, {0, 0}, 2, {3, {0, 1, 1}}, {0}},
    };
    /* clang-format on */
    static const double x[] = {3, -4, 4, 12};

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const mpl_attr attr[] = {LIST(kernel_shape, 1), MPL_INTS(pads, 2, rows[i].pads),
                                 MPL_INT(p, rows[i].p)};
        const test_tensor in = {true, MPL_TYPE_f64, rows[i].x, x, NULL};
        test_op t;

        assert_ok(&t.ctx, test_op_make(&t, rows[i].kind, 1, &in, 3, attr, 1));
        assert_ok(&t.ctx, test_op_run(&t));
        test_expect(mpl_op_table[rows[i].kind].name, &t, 0, &rows[i].y, rows[i].value, 1e-12);
        test_op_free(&t);
    }
}

/* ---- refusals ---- */

TESTS(test_conv, test_conv_transpose, test_conv_transpose_output_shape, test_gemm, test_matmul,
      test_matmul_wraps, test_order_of_accumulation, test_pools, test_pool_corners)
