/* Operators with loops over chunks, blocks and merged dims: random shapes, some longer than any
 * chunk, against the element-by-element definition with indices by division. */
#include "tests/support/ops.h"
#include "graphs/core/rng.h"

#include <math.h>

enum { N_ROUNDS = 60 };

/* Up to 4 dims; one may be long, some are 1, a few 0. */
static mpl_shape random_shape(mpl_rng *rng)
{
    mpl_shape shape = {.rank = (uint32_t)mpl_rng_below(rng, 5)};
    uint32_t longest = (uint32_t)mpl_rng_below(rng, 5);

    for (uint32_t i = 0; i < shape.rank; i++) {
        uint64_t r = mpl_rng_below(rng, 10);

        shape.dim[i] = i == longest ? 1 + (int64_t)mpl_rng_below(rng, 1300)
                       : r == 0     ? 0
                       : r < 3      ? 1
                                    : (int64_t)r - 1;
    }
    return shape;
}

/* A shape that broadcasts to `to`: some leading dims omitted, some dims 1. */
static mpl_shape random_part(mpl_rng *rng, const mpl_shape *to)
{
    uint32_t lead = mpl_rng_below(rng, 2) == 0 ? 0 : (uint32_t)mpl_rng_below(rng, to->rank + 1);
    mpl_shape shape = {.rank = to->rank - lead};

    for (uint32_t i = 0; i < shape.rank; i++)
        shape.dim[i] = mpl_rng_below(rng, 3) == 0 ? 1 : to->dim[i + lead];
    return shape;
}

static mpl_shape broadcast_shape(const mpl_shape *a, const mpl_shape *b)
{
    mpl_ctx ctx = mpl_ctx_default();
    mpl_shape both;

    assert_ok(&ctx, mpl_broadcast(&ctx, a, b, &both));
    return both;
}

/* Small integers and halves: exact sums in f32. */
static double *random_values(mpl_rng *rng, const mpl_shape *shape)
{
    int64_t n = mpl_count(shape);
    double *x = malloc((size_t)(n > 0 ? n : 1) * sizeof *x);

    assert_non_null(x);
    for (int64_t i = 0; i < n; i++)
        x[i] = (double)mpl_rng_below(rng, 33) / 2 - 8;
    return x;
}

/* Index along `axis` of element i. */
static int64_t index_of(const mpl_shape *shape, uint32_t axis, int64_t i)
{
    return i / mpl_count_dims(shape, axis + 1, shape->rank) % shape->dim[axis];
}

/* The element of `in` broadcast to element i of `out`. */
static int64_t source_of(const mpl_shape *in, const mpl_shape *out, int64_t i)
{
    int64_t at = 0;

    for (uint32_t k = 0; k < in->rank; k++)
        at = at * in->dim[k] + (in->dim[k] == 1 ? 0 : index_of(out, k + out->rank - in->rank, i));
    return at;
}

/* f16 has 11 bits, the last at least 2^-24: values exact in f32 may be rounded once. */
static void check_element(const char *what, const test_op *r, int64_t i, double want)
{
    double got = mpl_get(r->out[0].type, r->out[0].data, i), near = 1e-6 * fabs(want) + 1e-12;

    if (r->out[0].type == MPL_TYPE_f16)
        near = 0x1p-11 * fabs(want) + 0x1p-25;
    if (!(fabs(got - want) <= near))
        fail_msg("%s, %s: element %" PRId64 " is %.9g, not %.9g", what,
                 mpl_type_name(r->out[0].type), i, got, want);
}

static const mpl_type types[] = {MPL_TYPE_f32, MPL_TYPE_f16, MPL_TYPE_f64};

TEST(two_operands_broadcast)
{
    mpl_rng rng = mpl_rng_of(1);

    for (int round = 0; round < N_ROUNDS; round++) {
        mpl_shape whole = random_shape(&rng), a = random_part(&rng, &whole),
                  b = random_part(&rng, &whole);
        mpl_shape out = broadcast_shape(&a, &b);
        double *x = random_values(&rng, &a), *z = random_values(&rng, &b);
        mpl_type type = types[round % 3];
        test_tensor in[] = {{true, type, a, x, NULL}, {true, type, b, z, NULL}};
        test_op r;

        for (int place = IN_NEW_MEMORY; place < 2; place++) {
            if (place >= 0 && !mpl_shape_equal(&in[place].shape, &out))
                continue;
            assert_ok(&r.ctx, test_op_apply(&r, MPL_OP_sub, 2, in, 0, NULL, 1, place));
            assert_true(mpl_shape_equal(&r.out[0].shape, &out));
            for (int64_t i = 0; i < mpl_count(&out); i++)
                check_element("sub", &r, i, x[source_of(&a, &out, i)] - z[source_of(&b, &out, i)]);
            test_op_free(&r);
        }
        free(x), free(z);
    }
}

/* a b + c of operands that are parts of one shape; not for f16, which rounds twice. */
static void check_fma(const test_tensor *in, const mpl_shape *out, int place)
{
    test_op r;

    assert_ok(&r.ctx, test_op_apply(&r, MPL_OP_fma, 3, in, 0, NULL, 1, place));
    for (int64_t i = 0; i < mpl_count(out); i++) {
        double x[3], got = mpl_get(r.out[0].type, r.out[0].data, i);

        for (int k = 0; k < 3; k++)
            x[k] = in[k].value[source_of(&in[k].shape, out, i)];
        if (!(fabs(got - (x[0] * x[1] + x[2])) <= 1e-6 * (fabs(x[0] * x[1]) + fabs(x[2]))))
            fail_msg("fma, %s: element %" PRId64 " is %.9g, not %.9g", mpl_type_name(in[0].type), i,
                     got, x[0] * x[1] + x[2]);
    }
    test_op_free(&r);
}

/* Rows longer than a vector chunk and than a loop chunk; each operand whole, one number per
 * channel, or a scalar. */
TEST(fma_by_channel)
{
    static const mpl_shape out = {4, {2, 3, 37, 15}},
                           part[] = {{4, {2, 3, 37, 15}}, {3, {3, 1, 1}}, {0, {0}}};
    mpl_rng rng = mpl_rng_of(8);

    for (uint32_t code = 0; code < 3 * 3 * 3; code++) {
        uint32_t which[3] = {code % 3, code / 3 % 3, code / 9};
        test_tensor in[3];
        double *x[3];

        if (which[0] > 0 && which[1] > 0 && which[2] > 0)
            continue;
        for (int k = 0; k < 3; k++) {
            x[k] = random_values(&rng, &part[which[k]]);
            in[k] = (test_tensor){true, code % 2 == 0 ? MPL_TYPE_f32 : MPL_TYPE_f64, part[which[k]],
                                  x[k], NULL};
        }
        for (int place = IN_NEW_MEMORY; place < 3; place++)
            if (place < 0 || which[place] == 0)
                check_fma(in, &out, place);
        for (int k = 0; k < 3; k++)
            free(x[k]);
    }
}

TEST(three_operands_broadcast)
{
    mpl_rng rng = mpl_rng_of(2);

    for (int round = 0; round < N_ROUNDS; round++) {
        mpl_shape whole = random_shape(&rng), part[3], out;
        mpl_type type = types[round % 3];
        double *x[3];
        test_tensor in[3], pick[3];
        test_op r;

        for (int k = 0; k < 3; k++) {
            part[k] = k == round % 4 ? whole : random_part(&rng, &whole);
            x[k] = random_values(&rng, &part[k]);
            in[k] = pick[k] = (test_tensor){true, type, part[k], x[k], NULL};
        }
        pick[0].type = MPL_TYPE_bool;
        out = broadcast_shape(&part[0], &part[1]);
        out = broadcast_shape(&out, &part[2]);
        for (int place = IN_NEW_MEMORY; place < 3; place++) {
            if (place >= 0 && !mpl_shape_equal(&part[place], &out))
                continue;
            assert_ok(&r.ctx, test_op_apply(&r, MPL_OP_max, 3, in, 0, NULL, 1, place));
            for (int64_t i = 0; i < mpl_count(&out); i++)
                check_element("max", &r, i,
                              fmax(fmax(x[0][source_of(&part[0], &out, i)],
                                        x[1][source_of(&part[1], &out, i)]),
                                   x[2][source_of(&part[2], &out, i)]));
            test_op_free(&r);
            if (type != MPL_TYPE_f16)
                check_fma(in, &out, place);
            if (place == 0)
                continue;
            assert_ok(&r.ctx, test_op_apply(&r, MPL_OP_where, 3, pick, 0, NULL, 1, place));
            for (int64_t i = 0; i < mpl_count(&out); i++)
                check_element("where", &r, i,
                              x[0][source_of(&part[0], &out, i)] != 0
                                  ? x[1][source_of(&part[1], &out, i)]
                                  : x[2][source_of(&part[2], &out, i)]);
            test_op_free(&r);
        }
        for (int k = 0; k < 3; k++)
            free(x[k]);
    }
}

/* A reduction as a formula over the elements of one output, visited one by one. */
typedef struct tally {
    double n, sum, squares, sizes, exponentials, most, least, product;
} tally;

static double tally_of(mpl_op_kind kind, const tally *t)
{
    switch (kind) {
    case MPL_OP_reduce_sum:
        return t->sum;
    case MPL_OP_reduce_mean:
        return t->sum / t->n;
    case MPL_OP_reduce_l1:
        return t->sizes;
    case MPL_OP_reduce_l2:
        return sqrt(t->squares);
    case MPL_OP_reduce_sum_square:
        return t->squares;
    case MPL_OP_reduce_log_sum_exp:
        return log(t->exponentials);
    case MPL_OP_reduce_max:
        return t->most;
    case MPL_OP_reduce_min:
        return t->least;
    default:
        return t->product;
    }
}

TEST(reductions_of_any_axes)
{
    static const mpl_op_kind kinds[] = {
        MPL_OP_reduce_sum, MPL_OP_reduce_mean,       MPL_OP_reduce_l1,          MPL_OP_reduce_l2,
        MPL_OP_reduce_max, MPL_OP_reduce_sum_square, MPL_OP_reduce_log_sum_exp, MPL_OP_reduce_min};
    mpl_rng rng = mpl_rng_of(3);

    for (int round = 0; round < 4 * N_ROUNDS; round++) {
        mpl_shape shape = random_shape(&rng), kept = shape;
        mpl_op_kind kind = kinds[(size_t)round % (sizeof kinds / sizeof *kinds)];
        double *x = random_values(&rng, &shape);
        int64_t axes[MPL_MAX_RANK], n_out;
        uint32_t n_axes = 0;
        test_tensor in = {true, round % 3 == 0 ? MPL_TYPE_f64 : MPL_TYPE_f32, shape, x, NULL};
        tally *t;
        test_op r;

        for (uint32_t i = 0; i < shape.rank; i++)
            if (mpl_rng_below(&rng, 2) == 0)
                axes[n_axes++] = (int64_t)i - (round % 2 == 0 ? shape.rank : 0), kept.dim[i] = 1;
        assert_ok(&r.ctx, test_op_apply(&r, kind, 1, &in, 1,
                                        (const mpl_attr[]){MPL_INTS(axes, n_axes, axes)}, 1,
                                        IN_NEW_MEMORY));
        assert_true(mpl_shape_equal(&r.out[0].shape, &kept));
        n_out = mpl_count(&kept);
        t = calloc((size_t)n_out + 1, sizeof *t);
        for (int64_t i = 0; i < n_out; i++)
            t[i].most = -INFINITY, t[i].least = INFINITY;
        for (int64_t i = 0; i < mpl_count(&shape); i++) {
            tally *own = &t[source_of(&kept, &shape, i)];

            own->n++;
            own->sum += x[i];
            own->sizes += fabs(x[i]);
            own->squares += x[i] * x[i];
            own->exponentials += exp(x[i]);
            own->most = fmax(own->most, x[i]);
            own->least = fmin(own->least, x[i]);
        }
        for (int64_t i = 0; i < n_out; i++)
            if (t[i].n > 0)
                check_element(mpl_op_table[kind].name, &r, i, tally_of(kind, &t[i]));
        free(t), free(x);
        test_op_free(&r);
    }
}

/* Calls check for each operator along each axis of random shapes; x is the input. */
static void along_axes(uint64_t seed, mpl_op_kind kind, bool in_place, mpl_attr extra,
                       void (*check)(const mpl_shape *shape, uint32_t axis, const double *x,
                                     const test_op *r))
{
    mpl_rng rng = mpl_rng_of(seed);

    for (int round = 0; round < N_ROUNDS; round++) {
        mpl_shape shape = random_shape(&rng);
        double *x = random_values(&rng, &shape);
        test_tensor in = {true, types[round % 3], shape, x, NULL};

        for (uint32_t axis = 0; axis < shape.rank; axis++)
            for (int place = IN_NEW_MEMORY; place < (in_place ? 1 : 0); place++) {
                const mpl_attr attr[] = {MPL_INT(axis, axis), extra};
                test_op r;

                if (kind == MPL_OP_arg_max && shape.dim[axis] == 0)
                    continue;
                assert_ok(&r.ctx, test_op_apply(&r, kind, 1, &in, 2, attr, 1, place));
                check(&shape, axis, x, &r);
                test_op_free(&r);
            }
        free(x);
    }
}

/* Element k of the lane through element i. */
static int64_t in_lane(const mpl_shape *shape, uint32_t axis, int64_t i, int64_t k)
{
    return i + (k - index_of(shape, axis, i)) * mpl_count_dims(shape, axis + 1, shape->rank);
}

/* Stride of the checked elements: all lanes share code, and the definition costs a lane each. */
static int64_t stride_of(const mpl_shape *shape)
{
    return 1 + mpl_count(shape) / 300;
}

static void check_softmax(const mpl_shape *shape, uint32_t axis, const double *x, const test_op *r)
{
    for (int64_t i = 0; i < mpl_count(shape); i += stride_of(shape)) {
        double sum = 0;

        for (int64_t k = 0; k < shape->dim[axis]; k++)
            sum += exp(x[in_lane(shape, axis, i, k)] - x[i]);
        check_element("softmax", r, i, 1 / sum);
    }
}

static void check_log_softmax(const mpl_shape *shape, uint32_t axis, const double *x,
                              const test_op *r)
{
    for (int64_t i = 0; i < mpl_count(shape); i += stride_of(shape)) {
        double sum = 0;

        for (int64_t k = 0; k < shape->dim[axis]; k++)
            sum += exp(x[in_lane(shape, axis, i, k)] - x[i]);
        check_element("log_softmax", r, i, -log(sum));
    }
}

/* Whether element i is the first maximum of its lane. */
static bool is_chosen(const mpl_shape *shape, uint32_t axis, const double *x, int64_t i)
{
    bool chosen = true;

    for (int64_t k = 0; k < shape->dim[axis]; k++) {
        double other = x[in_lane(shape, axis, i, k)];

        chosen = chosen && other <= x[i] && (other < x[i] || k >= index_of(shape, axis, i));
    }
    return chosen;
}

static void check_hardmax(const mpl_shape *shape, uint32_t axis, const double *x, const test_op *r)
{
    for (int64_t i = 0; i < mpl_count(shape); i += stride_of(shape))
        check_element("hardmax", r, i, is_chosen(shape, axis, x, i) ? 1 : 0);
}

static void check_arg_max(const mpl_shape *shape, uint32_t axis, const double *x, const test_op *r)
{
    for (int64_t i = 0; i < mpl_count(shape); i += stride_of(shape)) {
        int64_t lane = source_of(&r->out[0].shape, shape, i);

        assert_int_equal(mpl_get_int(MPL_TYPE_i64, r->out[0].data, lane) ==
                             index_of(shape, axis, i),
                         is_chosen(shape, axis, x, i));
    }
}

static void check_cumsum(const mpl_shape *shape, uint32_t axis, const double *x, const test_op *r)
{
    for (int64_t i = 0; i < mpl_count(shape); i += stride_of(shape)) {
        double sum = 0;

        for (int64_t k = 0; k <= index_of(shape, axis, i); k++)
            sum += x[in_lane(shape, axis, i, k)];
        check_element("cumsum", r, i, sum);
    }
}

static void check_lp_norm(const mpl_shape *shape, uint32_t axis, const double *x, const test_op *r)
{
    for (int64_t i = 0; i < mpl_count(shape); i += stride_of(shape)) {
        double sum = 0;

        for (int64_t k = 0; k < shape->dim[axis]; k++)
            sum += fabs(x[in_lane(shape, axis, i, k)]);
        check_element("lp_norm", r, i, x[i] == 0 ? 0 : x[i] / sum);
    }
}

TEST(along_one_axis)
{
    along_axes(4, MPL_OP_softmax, true, MPL_INT(size, 0), check_softmax);
    along_axes(5, MPL_OP_log_softmax, true, MPL_INT(size, 0), check_log_softmax);
    along_axes(6, MPL_OP_hardmax, true, MPL_INT(size, 0), check_hardmax);
    along_axes(7, MPL_OP_arg_max, false, MPL_INT(size, 0), check_arg_max);
    along_axes(8, MPL_OP_cumsum, false, MPL_INT(size, 0), check_cumsum);
    along_axes(9, MPL_OP_lp_norm, false, MPL_INT(p, 1), check_lp_norm);
}

/* Rank of element i in its lane, largest first. */
static int64_t place_of(const mpl_shape *shape, uint32_t axis, const double *x, int64_t i)
{
    int64_t place = 0;

    for (int64_t k = 0; k < shape->dim[axis]; k++) {
        double other = x[in_lane(shape, axis, i, k)];

        place += other > x[i] || (other == x[i] && k < index_of(shape, axis, i));
    }
    return place;
}

TEST(the_best_of_any_axis)
{
    mpl_rng rng = mpl_rng_of(10);

    for (int round = 0; round < N_ROUNDS; round++) {
        mpl_shape shape = random_shape(&rng);
        uint32_t axis = shape.rank > 0 ? (uint32_t)mpl_rng_below(&rng, shape.rank) : 0;
        double *x = random_values(&rng, &shape);
        test_tensor in = {true, types[round % 3], shape, x, NULL};
        int64_t k =
            shape.rank > 0 ? (int64_t)mpl_rng_below(&rng, (uint64_t)shape.dim[axis] + 1) : 0;
        const mpl_attr attr[] = {MPL_INT(axis, axis), MPL_INT(k, k)};
        test_op r;

        if (shape.rank > 0) {
            assert_ok(&r.ctx, test_op_apply(&r, MPL_OP_top_k, 1, &in, 2, attr, 2, IN_NEW_MEMORY));
            for (int64_t i = 0; i < mpl_count(&shape) && k > 0; i += stride_of(&shape)) {
                int64_t place = place_of(&shape, axis, x, i);
                mpl_shape lanes = shape;
                int64_t inner = mpl_count_dims(&shape, axis + 1, shape.rank);

                lanes.dim[axis] = 1;
                int64_t lane = source_of(&lanes, &shape, i);
                int64_t at = (lane / inner * k + place) * inner + lane % inner;

                if (place >= k)
                    continue;
                assert_int_equal(mpl_get_int(MPL_TYPE_i64, r.out[1].data, at),
                                 index_of(&shape, axis, i));
                check_element("top_k", &r, at, x[i]);
            }
            test_op_free(&r);
        }
        free(x);
    }
}

/* Channels and positions beyond one block, against the formula. */
TEST(lrn_of_any_size)
{
    mpl_rng rng = mpl_rng_of(11);

    for (int round = 0; round < N_ROUNDS; round++) {
        mpl_shape shape = {
            4, {2, 1 + (int64_t)mpl_rng_below(&rng, 9), 1 + (int64_t)mpl_rng_below(&rng, 20), 31}};
        int64_t size = 1 + (int64_t)mpl_rng_below(&rng, 7), low = (size - 1) / 2,
                high = size - 1 - low;
        double *x = random_values(&rng, &shape), beta = round % 2 == 0 ? 0.75 : 0.5;
        const mpl_attr attr[] = {MPL_INT(size, size), MPL_FLOAT(beta, beta), MPL_FLOAT(alpha, 0.5)};
        test_tensor in = {true, types[round % 3], shape, x, NULL};
        test_op r;

        assert_ok(&r.ctx, test_op_apply(&r, MPL_OP_lrn, 1, &in, 3, attr, 1, IN_NEW_MEMORY));
        for (int64_t i = 0; i < mpl_count(&shape); i += stride_of(&shape)) {
            int64_t c = index_of(&shape, 1, i);
            double squares = 0;

            for (int64_t k = 0; k < shape.dim[1]; k++)
                if (k >= c - low && k <= c + high)
                    squares += pow(x[in_lane(&shape, 1, i, k)], 2);
            check_element("lrn", &r, i, x[i] / pow(1 + 0.5 / (double)size * squares, beta));
        }
        free(x);
        test_op_free(&r);
    }
}

/* Scale and bias of any suffix shape of the input. */
TEST(layer_norm_of_any_shape)
{
    mpl_rng rng = mpl_rng_of(12);

    for (int round = 0; round < 2 * N_ROUNDS; round++) {
        mpl_shape shape = random_shape(&rng), a, b;
        uint32_t axis = shape.rank > 0 ? (uint32_t)mpl_rng_below(&rng, shape.rank) : 0;
        mpl_attr where = MPL_INT(axis, axis);
        test_op r;

        if (shape.rank == 0)
            continue;
        a = random_part(&rng, &shape), b = random_part(&rng, &shape);
        double *x = random_values(&rng, &shape), *scale = random_values(&rng, &a),
               *bias = random_values(&rng, &b);
        test_tensor in[] = {{true, MPL_TYPE_f64, shape, x, NULL},
                            {true, MPL_TYPE_f64, a, scale, NULL},
                            {true, MPL_TYPE_f64, b, bias, NULL}};
        int64_t n = mpl_count_dims(&shape, axis, shape.rank);

        assert_ok(&r.ctx, test_op_apply(&r, MPL_OP_layer_norm, 3, in, 1, &where, 1, IN_NEW_MEMORY));
        for (int64_t i = 0; i < mpl_count(&shape); i += stride_of(&shape)) {
            double sum = 0, squares = 0;

            for (int64_t k = i / n * n; k < (i / n + 1) * n; k++)
                sum += x[k], squares += x[k] * x[k];
            sum /= (double)n;
            check_element("layer_norm", &r, i,
                          (x[i] - sum) / sqrt(squares / (double)n - sum * sum + 1e-5) *
                                  scale[source_of(&a, &shape, i)] +
                              bias[source_of(&b, &shape, i)]);
        }
        free(x), free(scale), free(bias);
        test_op_free(&r);
    }
}

TESTS(two_operands_broadcast, three_operands_broadcast, fma_by_channel, reductions_of_any_axes,
      along_one_axis, the_best_of_any_axis, lrn_of_any_size, layer_norm_of_any_shape)
