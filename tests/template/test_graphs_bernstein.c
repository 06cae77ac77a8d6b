/* Control values: what they prove of sums of expressions holds at every point of the box. */
#include "tests/support/test.h"

#include "graphs/core/rng.h"
#include "graphs/symbols/bernstein.h"

enum { EXPRS = 5 };

static const char *const texts[] = {"7 * x + 3",
                                    "x * y + 2",
                                    "x * x - 3 * x + 40",
                                    "x * x * y + y",
                                    "4 * floor((3 * x * y + 3) / 4)",
                                    "y * floor((x + 1) / 2)",
                                    "max(3 * x, 2 * y + 5)",
                                    "max(x, y) * floor(y / 3)",
                                    "100 - x - y",
                                    "x * x * x + floor(floor((x + 7) / 5) * y / 2)",
                                    "min(x, 9) + 12"};

/* Whether sum k[i] * e[i] <= 0 is proved, and the largest sum over control points, scaled. */
static int64_t control_most(const int64_t *k, uint32_t points, const int64_t *low,
                            const int64_t *high)
{
    int64_t most = INT64_MIN;

    for (uint32_t j = 0; j < points; j++) {
        int64_t sum = 0;

        for (uint32_t i = 0; i < EXPRS; i++)
            sum += k[i] * (k[i] > 0 ? high : low)[i * points + j];
        most = sum > most ? sum : most;
    }
    return most;
}

static int64_t true_most(const mpl_exprs *x, const mpl_expr *e, const int64_t *k,
                         const mpl_box *box)
{
    int64_t most = INT64_MIN;

    for (int64_t a = box->low[0]; a <= box->high[0]; a++)
        for (int64_t b = box->low[1]; b <= box->high[1]; b++) {
            int64_t value[2] = {1 + a, 2 + 3 * b}, sum = 0, one;

            for (uint32_t i = 0; i < EXPRS; i++) {
                assert_true(mpl_expr_eval(x, e[i], value, &one));
                sum += k[i] * one;
            }
            most = sum > most ? sum : most;
        }
    return most;
}

TEST(no_point_exceeds_the_control_values)
{
    uint32_t tight = 0, rounds = draws(3000);
    mpl_rng rng;

    mpl_rng_init(&rng, 1);
    for (uint32_t round = 0; round < rounds; round++) {
        mpl_exprs *x = NULL;
        mpl_controls *c = NULL;
        mpl_expr e[EXPRS], unused;
        mpl_box box = {0};
        int64_t k[EXPRS], *low = NULL, *high = NULL, most, proved;
        uint32_t points;

        assert_ok(ctx, mpl_exprs_new(ctx, &x));
        assert_ok(ctx, mpl_expr_symbol(ctx, x, "x", 1, 20, 1, &unused));
        assert_ok(ctx, mpl_expr_symbol(ctx, x, "y", 2, 50, 3, &unused));
        assert_ok(ctx, mpl_box_new(ctx, x, &box));
        for (uint32_t i = 0; i < EXPRS; i++) {
            assert_ok(ctx, mpl_expr_read(ctx, x, texts[mpl_rng_below(&rng, 11)], &e[i]));
            k[i] = (int64_t)mpl_rng_below(&rng, 7) - 3;
        }
        for (uint32_t s = 0; s < 2; s++) {
            box.low[s] += (int64_t)mpl_rng_below(&rng, (uint64_t)box.high[s] + 1);
            box.high[s] =
                box.low[s] + (int64_t)mpl_rng_below(&rng, (uint64_t)(box.high[s] - box.low[s]) + 1);
        }
        assert_ok(ctx, mpl_controls_new(ctx, x, EXPRS, e, &c));
        points = mpl_controls_points(c);
        assert_ok(ctx, mpl_new_each(ctx, (size_t)EXPRS * points, low, high));
        assert_true(mpl_controls_of(c, &box, low, high));
        most = true_most(x, e, k, &box) * mpl_controls_scale(c);
        proved = control_most(k, points, low, high);
        assert_true(most <= proved);
        tight += proved - most <= mpl_controls_scale(c) * 8;
        mpl_free_each(ctx, low, high);
        mpl_controls_free(ctx, c);
        mpl_box_free(ctx, &box);
        mpl_exprs_free(ctx, x);
    }
    assert_true(tight > rounds / 5); /* and not by being far off */
}

TEST(relations_cut_boxes)
{
    mpl_exprs *x = NULL;
    mpl_expr a, b, sum, limit;
    mpl_box box = {0};

    assert_ok(ctx, mpl_exprs_new(ctx, &x));
    assert_ok(ctx, mpl_expr_symbol(ctx, x, "a", 1, 4096, 1, &a));
    assert_ok(ctx, mpl_expr_symbol(ctx, x, "b", 1, 4096, 1, &b));
    assert_ok(ctx, mpl_expr_add(ctx, x, a, b, &sum));
    assert_ok(ctx, mpl_expr_const(ctx, x, 4096, &limit));
    assert_ok(ctx, mpl_expr_sub(ctx, x, sum, limit, &sum));
    assert_ok(ctx, mpl_exprs_relation(ctx, x, sum));
    assert_ok(ctx, mpl_box_new(ctx, x, &box));
    box.low[0] = 1000; /* a >= 1001: b <= 3095 */
    assert_true(mpl_box_narrow(x, &box));
    assert_int_equal(box.high[1], 3094);
    assert_int_equal(box.high[0], 4094);
    box.low[1] = 4000;
    box.high[1] = 4090;
    assert_false(mpl_box_narrow(x, &box));
    assert_int_equal(mpl_expr_divisor(x, 0), 0);
    assert_ok(ctx, mpl_expr_read(ctx, x, "12 * a * b + 18 * a", &sum));
    assert_int_equal(mpl_expr_divisor(x, sum), 6);
    mpl_box_free(ctx, &box);
    mpl_exprs_free(ctx, x);
}

TESTS(no_point_exceeds_the_control_values, relations_cut_boxes)
