/* Averages of windows and sums over dims before the last on the backend `cpu` against the plain
 * loops: random windows in one to three dims with strides, dilations, pads on either side, both
 * ways to count them and to round; and every set of axes. Fault: an element left out, added twice
 * or at another place, and a count of other elements. */
#include "tests/support/test.h"

#include "graphs/core/rng.h"
#include "runtime/cpu/loops/rescale.h"

#include <math.h>

static int64_t between(mpl_rng *rng, int64_t low, int64_t high)
{
    return low + (int64_t)mpl_rng_below(rng, (uint64_t)(high - low + 1));
}

/* y = kind(x); NULL: the attributes do not fit the shape. */
static mpl_graph *graph_of(mpl_ctx *ctx, mpl_op_kind kind, const mpl_shape *shape, uint32_t n_attr,
                           const mpl_attr *attr)
{
    static const char *const name[] = {"y"};
    mpl_graph *g = NULL;
    mpl_value x, y;

    assert_ok(ctx, mpl_graph_new(ctx, "planes", &g));
    assert_ok(ctx, mpl_graph_add_value(ctx, g, "x", MPL_INPUT, MPL_TYPE_f32, shape, &x));
    if (mpl_graph_add_op(ctx, g, kind, "op", 1, &x, n_attr, attr, 1, name, &y) != MPL_OK) {
        mpl_graph_free(ctx, g);
        return NULL;
    }
    assert_ok(ctx, mpl_graph_add_output(ctx, g, y));
    assert_ok(ctx, mpl_graph_finish(ctx, g));
    return g;
}

/* Runs it both ways on a random x, with an infinity at times; false: ours does not take it. */
static bool check(mpl_ctx *ctx, const mpl_graph *g, mpl_rng *rng, uint64_t seed)
{
    mpl_value y = mpl_op_output(g, 0, 0);
    const char *how = NULL;
    mpl_rescale *run = mpl_planes_of(g, 0, &how);
    mpl_tensor x = {.type = MPL_TYPE_f32, .shape = g->value_shape[g->input[0]]}, want, got;
    int64_t n = mpl_count(&g->value_shape[y]);
    float *a, *b;

    if (run == NULL)
        return false;
    want = got = (mpl_tensor){.type = MPL_TYPE_f32, .shape = g->value_shape[y]};
    x.data = calloc((size_t)mpl_count(&x.shape) + 1, sizeof(float));
    want.data = a = calloc((size_t)n + 1, sizeof *a);
    got.data = b = calloc((size_t)n + 1, sizeof *b);
    for (int64_t i = 0; i < mpl_count(&x.shape); i++)
        ((float *)x.data)[i] = (float)between(rng, -1000, 1000) / 1000;
    if (seed % 9 == 0)
        ((float *)x.data)[between(rng, 0, mpl_count(&x.shape) - 1)] = INFINITY;
    for (int64_t i = 0; i < n; i++)
        b[i] = NAN;
    assert_ok(ctx, mpl_eval(ctx, &(mpl_op_call){g, 0, 1, 1, &x, &want, NULL}));
    assert_ok(ctx, run(ctx, &(mpl_op_call){g, 0, 1, 1, &x, &got, NULL}));
    for (int64_t i = 0; i < n; i++)
        if (!(fabsf(a[i] - b[i]) < 1e-5f) && !(isinf(a[i]) && a[i] == b[i]))
            fail_msg("seed %" PRIu64 ": element %" PRId64 " is %g, not %g", seed, i, (double)b[i],
                     (double)a[i]);
    free(x.data);
    free(a);
    free(b);
    return true;
}

TEST(averages_of_windows_are_right)
{
    mpl_rng rng = mpl_rng_of(1);
    uint32_t n = 0;

    for (uint64_t seed = 0; seed < draws(1500); seed++) {
        uint32_t dims = (uint32_t)between(&rng, 1, 3);
        int64_t kernel[3], stride[3], dilation[3], pad[6], counts = between(&rng, 0, 1),
                                                           up = between(&rng, 0, 1);
        mpl_shape shape = {2 + dims, {between(&rng, 1, 2), between(&rng, 1, 3)}};
        mpl_attr attr[] = {MPL_INTS(kernel_shape, dims, kernel),    MPL_INTS(strides, dims, stride),
                           MPL_INTS(dilations, dims, dilation),     MPL_INTS(pads, 2 * dims, pad),
                           MPL_INTS(count_include_pad, 1, &counts), MPL_INTS(ceil_mode, 1, &up)};
        owned_graph *g = NULL;

        for (uint32_t i = 0; i < dims; i++) {
            shape.dim[2 + i] = between(&rng, 1, dims == 3 ? 6 : 14);
            kernel[i] = between(&rng, 1, 4), stride[i] = between(&rng, 1, 3);
            dilation[i] = between(&rng, 1, 2);
            pad[i] = between(&rng, 0, kernel[i]), pad[dims + i] = between(&rng, 0, kernel[i]);
        }
        g = graph_of(ctx, MPL_OP_avg_pool, &shape, 6, attr);
        if (g == NULL)
            continue;
        n++;
        assert_true(check(ctx, g, &rng, seed));
    }
    assert_true(n > draws(1500) / 2);
}

TEST(sums_over_axes_are_right)
{
    mpl_rng rng = mpl_rng_of(2);
    uint32_t n_ours = 0, n_apart = 0;

    for (uint64_t seed = 0; seed < draws(1500); seed++) {
        mpl_shape shape = {.rank = (uint32_t)between(&rng, 1, 5)};
        uint32_t set = (uint32_t)between(&rng, 0, (1 << shape.rank) - 1), n = 0;
        int64_t axes[5], keep = between(&rng, 0, 1);
        mpl_attr attr[] = {MPL_INTS(axes, 0, axes), MPL_INTS(keepdims, 1, &keep)};
        owned_graph *g = NULL;
        bool ours;

        for (uint32_t i = 0; i < shape.rank; i++) {
            shape.dim[i] = between(&rng, 0, 3) == 0 ? 1 : between(&rng, 2, 5);
            if ((set >> i & 1) != 0)
                axes[n++] = between(&rng, 0, 1) == 0 ? i : (int64_t)i - shape.rank;
        }
        if (seed % 20 == 0)
            shape.dim[shape.rank - 1] = between(&rng, 250, 600);
        attr[0].n = n;
        g = graph_of(ctx, seed % 2 == 0 ? MPL_OP_reduce_sum : MPL_OP_reduce_mean, &shape, 2, attr);
        assert_non_null(g);
        ours = check(ctx, g, &rng, seed);
        n_ours += ours, n_apart += !ours;
    }
    assert_true(often(n_ours > 300 && n_apart > 300));
}

TESTS(averages_of_windows_are_right, sums_over_axes_are_right)
