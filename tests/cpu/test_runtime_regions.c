/* test_runtime_regions.c -- means of regions (roi_align) of the backend `cpu` against the plain
 * loops: images and channels of any number, regions that repeat, that lie outside, that are empty
 * or turned over, elements that are infinite or no number.
 *
 * Fault: a region that takes another's means; a channel or a point that is left out; an element
 * outside of the image that counts. */
#include "tests/support/test.h"

#include "graphs/core/rng.h"
#include "runtime/backend.h"

#include <math.h>

static int64_t between(mpl_rng *rng, int64_t low, int64_t high)
{
    return low + (int64_t)mpl_rng_below(rng, (uint64_t)(high - low + 1));
}

static mpl_graph *draw(mpl_ctx *ctx, mpl_rng *rng)
{
    int64_t channels = mpl_rng_below(rng, 4) == 0 ? between(rng, 60, 150) : between(rng, 1, 9);
    int64_t regions = between(rng, 1, 12), n_images = between(rng, 1, 3), rows = between(rng, 1, 9);
    int64_t columns = between(rng, 1, 9), high = between(rng, 1, 8), wide = between(rng, 1, 40);
    int64_t points = between(rng, 0, 3), half = between(rng, 0, 1), word = between(rng, 0, 1);
    char text[500];
    mpl_graph *g = NULL;

    snprintf(text, sizeof text,
             "graph t\ninput x f32 [%" PRId64 ",%" PRId64 ",%" PRId64 ",%" PRId64 "]\n"
             "input r f32 [%" PRId64 ",4]\ninput i %s [%" PRId64 "]\n"
             "y = roi_align(x, r, i) sizes=[%" PRId64 ",%" PRId64 "] scales=[0.5] size=%" PRId64
             " coordinate_mode=%s\noutput y\n",
             n_images, channels, rows, columns, regions, word != 0 ? "i32" : "i64", regions, high,
             wide, points, half != 0 ? "half_pixel" : "output_half_pixel");
    assert_ok(ctx, mpl_text_read_memory(ctx, "test", text, strlen(text), &g));
    return g;
}

static void fill(mpl_rng *rng, const mpl_tensor in[3])
{
    static const float special[] = {INFINITY, -INFINITY, NAN};
    float *x = in[0].data, *r = in[1].data;

    for (int64_t k = 0; k < mpl_count(&in[0].shape); k++)
        x[k] = mpl_rng_below(rng, 400) == 0 ? special[mpl_rng_below(rng, 3)]
                                            : (float)between(rng, -999, 999) / 100;
    for (int64_t k = 0; k < mpl_count(&in[2].shape); k++) {
        int64_t image = between(rng, 0, in[0].shape.dim[0] - 1);

        for (int64_t j = 0; j < 4; j++)
            r[4 * k + j] = k > 0 && mpl_rng_below(rng, 5) > 0
                               ? r[4 * k + j - 4]
                               : (float)between(rng, j < 2 ? -80 : 0, j < 2 ? 120 : 240) / 10;
        if (in[2].type == MPL_TYPE_i32)
            ((int32_t *)in[2].data)[k] = (int32_t)image;
        else
            ((int64_t *)in[2].data)[k] = image;
    }
}

static void check(mpl_ctx *ctx, mpl_rng *rng, mpl_device *dev, const mpl_graph *g)
{
    const mpl_backend *cpu = mpl_backend_find("cpu");
    mpl_value y = mpl_op_output(g, 0, 0);
    mpl_tensor in[3], want = {MPL_TYPE_f32, g->value_shape[y], NULL}, got;
    mpl_prepared *p;
    uint64_t workspace;
    const char *how;
    char *room;

    for (uint32_t i = 0; i < 3; i++) {
        mpl_value v = mpl_op_input(g, 0, i);

        in[i] =
            (mpl_tensor){(mpl_type)g->value_type[v], g->value_shape[v], malloc(g->value_bytes[v])};
    }
    fill(rng, in);
    got = want;
    want.data = malloc(g->value_bytes[y]), got.data = malloc(g->value_bytes[y]);
    assert_ok(ctx, mpl_eval(ctx, &(mpl_op_call){g, 0, 3, 1, in, &want, NULL}));
    assert_ok(ctx, cpu->prepare(dev, g, 0, &p, &workspace, &how));
    assert_string_equal(how, "regions");
    room = malloc(workspace);
    assert_ok(ctx, cpu->run_op(dev, p, &(mpl_op_call){g, 0, 3, 1, in, &got, room}));
    for (int64_t k = 0; k < mpl_count(&want.shape); k++) {
        float a = ((float *)want.data)[k], b = ((float *)got.data)[k];

        if (isfinite(a) ? !(fabsf(a - b) < 1e-4f) : !(a == b || (isnan(a) && isnan(b))))
            fail_msg("element %" PRId64 " is %g, not %g", k, (double)b, (double)a);
    }
    cpu->release(dev, p);
    for (uint32_t i = 0; i < 3; i++)
        free(in[i].data);
    free(want.data), free(got.data), free(room);
}

TEST(regions_are_those_of_plain_loops)
{
    const mpl_backend *cpu = mpl_backend_find("cpu");
    mpl_rng rng = mpl_rng_of(1);
    mpl_device *dev;

    assert_ok(ctx, cpu->open(ctx, &(mpl_device_options){.n_threads = 1}, &dev));
    for (uint64_t seed = 0; seed < draws(400); seed++) {
        owned_graph *g = draw(ctx, &rng);

        check(ctx, &rng, dev, g);
    }
    cpu->close(dev);
}

TESTS(regions_are_those_of_plain_loops)
