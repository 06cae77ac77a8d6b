/* Convolutions of channels-last images by our own kernels of the backend `cpu` against the plain
 * loops: random windows, pads, strides and dilations, groups of every width, channels around whole
 * vectors, panels and slices, pixels that lie apart, sums that the result is written over; each in
 * two runs with other images, by one thread and by two; 3 x 3 with fewer products, and where no
 * workspace is left for that. Fault: a channel, tap or pixel read or written where another is, also
 * between the pixels. */
#include "tests/support/test.h"

#include "graphs/core/rng.h"
#include "runtime/cpu/images.h"

#include <math.h>

enum { OPERANDS = 4, GAP = -77 };

static int64_t between(mpl_rng *rng, int64_t low, int64_t high)
{
    return low + (int64_t)mpl_rng_below(rng, (uint64_t)(high - low + 1));
}

/* A convolution; pitch: from pixel to pixel of operands and result. */
typedef struct drawn {
    mpl_graph *g;
    uint32_t first, n_in;
    int64_t groups, pitch[OPERANDS + 1];
} drawn;

static mpl_value add_value(mpl_ctx *ctx, mpl_graph *g, const char *name, mpl_role role,
                           mpl_shape shape)
{
    mpl_value v;

    assert_ok(ctx, mpl_graph_add_value(ctx, g, name, role, MPL_TYPE_f32, &shape, &v));
    return v;
}

/* Groups, and channels of each group and of its results. */
static void draw_channels(mpl_rng *rng, int64_t *groups, int64_t *in, int64_t *out)
{
    int64_t form = between(rng, 0, 9);

    *groups = 1, *in = between(rng, 1, 40), *out = between(rng, 1, 70);
    if (form == 9) /* depthwise with two results of each channel */
        *in = 1, *out = 2, *groups = 4 * between(rng, 1, 9);
    else if (form < 3) /* as many groups as fill vectors */
        *in = *out = INT64_C(1) << form, *groups = 8 / *in * between(rng, 1, 5);
    else if (form < 5)
        *groups = between(rng, 2, 4), *in = between(rng, 8, 20), *out = between(rng, 1, 36);
    else if (form == 5)
        *in = between(rng, 250, 520), *out = between(rng, 1, 20);
}

typedef struct window {
    int64_t kernel[2], stride[2], dilation[2], pad[4], high, wide, out[2];
} window;

static window draw_window(mpl_rng *rng)
{
    window w;
    int64_t most = mpl_rng_below(rng, 8) == 0 ? 24 : 9;

    w.high = between(rng, 1, most), w.wide = between(rng, 1, most);
    for (int i = 0; i < 2; i++) {
        int64_t size = i == 0 ? w.high : w.wide, reach;

        w.kernel[i] = mpl_rng_below(rng, 3) == 0 ? 1 : between(rng, 1, 5);
        w.stride[i] = between(rng, 1, 3);
        w.dilation[i] = mpl_rng_below(rng, 4) == 0 ? between(rng, 4, 12) : between(rng, 1, 3);
        reach = (w.kernel[i] - 1) * w.dilation[i] + 1;
        w.pad[i] = between(rng, 0, 3), w.pad[2 + i] = between(rng, 0, 3);
        if (size + w.pad[i] + w.pad[2 + i] < reach) {
            w.pad[i] = between(rng, 0, reach - size);
            w.pad[2 + i] = reach - size - w.pad[i] + between(rng, 0, 9);
        }
        w.out[i] = (size + w.pad[i] + w.pad[2 + i] - reach) / w.stride[i] + 1;
    }
    return w;
}

/* 3 x 3 at stride 1 over many pixels and channels: with fewer products. */
static void draw_winograd(mpl_rng *rng, window *w, int64_t *groups, int64_t *in, int64_t *out)
{
    *groups = 1, *in = 8 * between(rng, 3, 6), *out = between(rng, 24, 60);
    w->high = between(rng, 10, 17), w->wide = between(rng, 10, 17);
    for (int i = 0; i < 2; i++) {
        w->kernel[i] = 3, w->stride[i] = w->dilation[i] = 1;
        w->pad[i] = between(rng, 0, 2), w->pad[2 + i] = between(rng, 0, 2);
        w->out[i] = (i == 0 ? w->high : w->wide) + w->pad[i] + w->pad[2 + i] - 2;
    }
}

static drawn draw(mpl_ctx *ctx, mpl_rng *rng)
{
    static const mpl_op_kind kinds[] = {MPL_OP_conv, MPL_OP_conv_act, MPL_OP_conv_sum};
    static const char *const acts[] = {"relu", "relu6", "none"};
    static const char *const out_name[] = {"y"};
    mpl_op_kind kind = kinds[between(rng, 0, 2)];
    int64_t batch = between(rng, 1, 2), in, out;
    window w = draw_window(rng);
    mpl_value v[OPERANDS], y;
    drawn d = {.first = kind == MPL_OP_conv_sum};
    mpl_attr attr[] = {
        MPL_INTS(group, 1, &d.groups), MPL_INTS(strides, 2, w.stride),
        MPL_INTS(dilations, 2, w.dilation), MPL_INTS(pads, 4, w.pad),
        MPL_TEXT(activation, acts[between(rng, 0, kind == MPL_OP_conv_sum ? 2 : 1)])};
    mpl_shape ys;

    draw_channels(rng, &d.groups, &in, &out);
    if (between(rng, 0, 7) == 0)
        draw_winograd(rng, &w, &d.groups, &in, &out);
    ys = (mpl_shape){4, {batch, out * d.groups, w.out[0], w.out[1]}};
    d.n_in = d.first + 2 + (uint32_t)between(rng, 0, 1);
    assert_ok(ctx, mpl_graph_new(ctx, "images", &d.g));
    if (d.first > 0)
        v[0] = add_value(ctx, d.g, "sum", MPL_INPUT, ys);
    v[d.first] =
        add_value(ctx, d.g, "x", MPL_INPUT, (mpl_shape){4, {batch, in * d.groups, w.high, w.wide}});
    v[d.first + 1] = add_value(ctx, d.g, "f", MPL_WEIGHT,
                               (mpl_shape){4, {out * d.groups, in, w.kernel[0], w.kernel[1]}});
    if (d.n_in > d.first + 2)
        v[d.first + 2] = add_value(ctx, d.g, "b", MPL_WEIGHT, (mpl_shape){1, {out * d.groups}});
    for (uint32_t i = 0; i <= OPERANDS; i++)
        d.pitch[i] = mpl_rng_below(rng, 2) == 0 ? 0 : between(rng, 1, 9);
    assert_ok(ctx, mpl_graph_add_op(ctx, d.g, kind, "conv", d.n_in, v, kind == MPL_OP_conv ? 4 : 5,
                                    attr, 1, out_name, &y));
    assert_ok(ctx, mpl_graph_add_output(ctx, d.g, y));
    assert_ok(ctx, mpl_graph_finish(ctx, d.g));
    return d;
}

static mpl_tensor plain(mpl_ctx *ctx, const mpl_graph *g, mpl_value v)
{
    mpl_tensor t = {.type = MPL_TYPE_f32, .shape = g->value_shape[v]};

    t.data = mpl_alloc(ctx, g->value_bytes[v], 1);
    assert_non_null(t.data);
    return t;
}

/* Of channels-last pixels that are `gap` elements further apart than need be. */
static void strides_of(const mpl_shape *s, int64_t gap, int64_t *stride)
{
    int64_t pitch = s->dim[1] + gap;

    stride[0] = s->dim[2] * s->dim[3] * pitch, stride[1] = 1;
    stride[2] = s->dim[3] * pitch, stride[3] = pitch;
}

static int64_t place(const mpl_shape *s, const int64_t *stride, int64_t i)
{
    int64_t at = 0;

    for (uint32_t k = 4; k-- > 0; i /= s->dim[k])
        at += i % s->dim[k] * stride[k];
    return at;
}

/* The same image, channels last, with GAP in the gaps. The caller frees the data. */
static mpl_tensor laid(mpl_ctx *ctx, const mpl_tensor *t, const int64_t *stride)
{
    int64_t n = t->shape.dim[0] * stride[0];
    mpl_tensor to = *t;
    float *data = mpl_alloc(ctx, (uint64_t)n * sizeof(float), 1);

    assert_non_null(data);
    for (int64_t i = 0; i < n; i++)
        data[i] = GAP;
    for (int64_t i = 0; i < mpl_count(&t->shape); i++)
        data[place(&t->shape, stride, i)] = ((float *)t->data)[i];
    to.data = data;
    return to;
}

static void fill(mpl_rng *rng, mpl_tensor *t)
{
    for (int64_t i = 0; i < mpl_count(&t->shape); i++)
        ((float *)t->data)[i] = (float)between(rng, -1000, 1000) / 1000;
}

/* Elements are within rounding of the plain loops', NaNs are NaNs, and gaps are as they were. */
static void compare(const mpl_tensor *got, const int64_t *stride, const mpl_tensor *want,
                    int64_t terms, uint64_t seed)
{
    int64_t n = mpl_count(&want->shape), pitch = stride[3];

    for (int64_t i = 0; i < n; i++) {
        float a = ((float *)got->data)[place(&want->shape, stride, i)];
        float b = ((float *)want->data)[i];

        if (!(fabsf(a - b) < 1e-6f * (float)(terms + 1)) && !(a != a && b != b) && a != b)
            fail_msg("seed %" PRIu64 ": element %" PRId64 " is %g, not %g", seed, i, (double)a,
                     (double)b);
    }
    for (int64_t i = 0; i < want->shape.dim[0] * stride[0]; i++)
        if (i % pitch >= want->shape.dim[1] && ((float *)got->data)[i] != GAP)
            fail_msg("seed %" PRIu64 ": written between pixels", seed);
}

static uint32_t n_second; /* runs in which a second thread used its workspace */

/* One run: the plain loops on plain images, the kernel on channels-last ones. */
static void check_run(mpl_ctx *ctx, mpl_images *m, const drawn *d, mpl_tensor *in, bool over,
                      uint64_t bytes, uint64_t seed)
{
    const mpl_graph *g = d->g;
    mpl_tensor want = plain(ctx, g, mpl_op_output(g, 0, 0)), last[OPERANDS], blank, out;
    int64_t stride[OPERANDS + 1][4];
    void *work;
    const mpl_shape *f = &in[d->first + 1].shape;

    assert_ok(ctx, mpl_eval(ctx, &(mpl_op_call){g, 0, d->n_in, 1, in, &want, NULL}));
    for (uint32_t i = 0; i < d->n_in; i++) {
        last[i] = in[i];
        if (i <= d->first) {
            strides_of(&in[i].shape, d->pitch[i], stride[i]);
            last[i] = laid(ctx, &in[i], stride[i]);
        }
    }
    strides_of(&want.shape, d->pitch[d->n_in], stride[d->n_in]);
    blank = laid(ctx, &want, stride[d->n_in]);
    for (int64_t i = 0; i < mpl_count(&want.shape); i++)
        ((float *)blank.data)[place(&want.shape, stride[d->n_in], i)] = NAN;
    out = over ? last[0] : blank;
    work = mpl_alloc(ctx, bytes, 1);
    memset(work, 0, bytes);
    mpl_images_run(m, &(mpl_op_call){g, 0, d->n_in, 1, last, &out, work});
    if (bytes > 0 && seed % 2 == 1) /* the second thread's */
        n_second += ((float *)work)[bytes / sizeof(float) / 2] != 0;
    mpl_free(ctx, work);
    compare(&out, stride[d->n_in], &want, f->dim[1] * f->dim[2] * f->dim[3], seed);
    for (uint32_t i = 0; i <= d->first; i++)
        mpl_free(ctx, last[i].data);
    mpl_free_each(ctx, blank.data, want.data);
}

static void check(mpl_ctx *ctx, mpl_images *m, const drawn *d, mpl_rng *rng, uint64_t bytes,
                  uint64_t seed)
{
    mpl_tensor in[OPERANDS];

    for (uint32_t i = 0; i < d->n_in; i++) {
        in[i] = plain(ctx, d->g, mpl_op_input(d->g, 0, i));
        fill(rng, &in[i]);
    }
    for (int run = 0; run < 2; run++) {
        for (uint32_t i = 0; i <= d->first; i++)
            fill(rng, &in[i]);
        if (seed % 7 == 0)
            ((float *)in[d->first].data)[between(rng, 0, mpl_count(&in[d->first].shape) - 1)] =
                seed % 2 == 0 ? NAN : INFINITY;
        check_run(ctx, m, d, in, run == 1 && d->first == 1 && d->pitch[0] == d->pitch[d->n_in],
                  bytes, seed);
    }
    for (uint32_t i = 0; i < d->n_in; i++)
        mpl_free(ctx, in[i].data);
}

static void compare_with_plain_loops(mpl_ctx *ctx)
{
    mpl_rng rng = mpl_rng_of(1);
    uint32_t n_grouped = 0, n_working = 0;

    for (uint64_t seed = 0; seed < draws(600); seed++) {
        drawn d = draw(ctx, &rng);
        int64_t all[OPERANDS + 1][MPL_MAX_RANK];
        const int64_t *stride[OPERANDS + 1] = {NULL};
        mpl_images *m = NULL;
        const char *how = NULL;
        uint64_t bytes = 0;
        mpl_images_limits limits = {1 + (uint32_t)seed % 2, seed % 5 == 0 ? 1000 : UINT64_MAX};

        for (uint32_t i = 0; i <= d.n_in; i++)
            if (i <= d.first || i == d.n_in) {
                mpl_value v = i == d.n_in ? mpl_op_output(d.g, 0, 0) : mpl_op_input(d.g, 0, i);

                strides_of(&d.g->value_shape[v], d.pitch[i], all[i]);
                stride[i] = all[i];
            }
        assert_ok(ctx, mpl_images_new(ctx, d.g, 0, stride, &limits, &m, &bytes, &how));
        if (m == NULL && d.groups == 1) {
            mpl_graph_free(ctx, d.g);
            print_message("skip: AVX2 is needed\n");
            skip();
        }
        n_working += bytes > 0;
        assert_true(bytes <= limits.workspace_bytes);
        n_grouped += m != NULL && d.groups > 1;
        if (m != NULL)
            check(ctx, m, &d, &rng, bytes, seed);
        mpl_images_free(ctx, m);
        mpl_graph_free(ctx, d.g);
    }
    assert_true(often(n_grouped > 100 || n_grouped == 0)); /* AVX-512 has no groups */
    assert_true(often(n_second > 10 || n_grouped == 0));
    assert_true(often(n_working > 30 || n_grouped == 0)); /* nor fewer products */
}

TEST(convolutions_of_pixels_apart_are_right)
{
    compare_with_plain_loops(ctx);
}

/* What processors without AVX-512 run, tested on those with it, too. */
TEST(so_are_those_by_avx2)
{
    assert_int_equal(setenv("ONEDNN_MAX_CPU_ISA", "AVX2", 1), 0);
    compare_with_plain_loops(ctx);
    assert_int_equal(unsetenv("ONEDNN_MAX_CPU_ISA"), 0);
}

TESTS(convolutions_of_pixels_apart_are_right, so_are_those_by_avx2)
