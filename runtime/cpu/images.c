/* images.c -- see images.h. */
#include "runtime/cpu/images.h"

#include "graphs/ir/layout.h"
#include "graphs/ops/matrix/conv.h"
#include "runtime/cpu/loops/chain_priv.h"

#include <math.h>

enum { SHARE = 32 * 1024 }; /* multiplications worth a thread of their own */

typedef void worker(const mpl_images *m, const mpl_op_call *call, int64_t from, int64_t to,
                    float *work);
typedef void channel_loop(float *restrict y, const float *restrict x, const float *restrict k,
                          const float *restrict l, int64_t n);

struct mpl_images {
    mpl_image_window w;
    worker *work;               /* pixels [from, to) of the result */
    channel_loop *loop;         /* of pools and batch norm */
    const mpl_image_conv *conv; /* of a convolution; else NULL */
    double epsilon;
    mpl_op_kind kind;
    uint32_t first; /* index of the input x */
    bool has_bias;
    int64_t counted[4]; /* pads that an average counts: before, before, behind, behind */
    float low, high;
    float *filter; /* packed filters of a convolution; factors and terms of a batch norm */
    bool is_packed;
    float *nothing; /* a pixel of zeros, its channels as far apart as those of x */
    mpl_images_limits limits;
};

/* ---- preparing ---- */

/* Elements from pixel to pixel of operand k; 0: their distance is not constant. */
static int64_t pitch_of(const mpl_shape *shape, const int64_t *const *stride, uint32_t k)
{
    const int64_t *by = stride != NULL ? stride[k] : NULL;
    int64_t pitch;

    if (by == NULL)
        return shape->dim[1];
    pitch = shape->dim[3] > 1   ? by[3]
            : shape->dim[2] > 1 ? by[2]
            : shape->dim[0] > 1 ? by[0]
                                : shape->dim[1];
    if ((shape->dim[1] > 1 && by[1] != 1) ||
        (shape->dim[2] > 1 && by[2] != pitch * shape->dim[3]) ||
        (shape->dim[0] > 1 && by[0] != pitch * shape->dim[2] * shape->dim[3]))
        return 0;
    return pitch;
}

static bool is_image(const mpl_graph *g, mpl_value v)
{
    return v != MPL_NONE && g->value_type[v] == MPL_TYPE_f32 && g->value_shape[v].rank == 4 &&
           g->value_bytes[v] > 0;
}

/* Reads x and y. False: no kernel takes them. */
static bool read_images(mpl_images *images, const mpl_graph *g, mpl_op op,
                        const int64_t *const *stride)
{
    uint32_t n_in = g->op_in_begin[op + 1] - g->op_in_begin[op];
    mpl_value x = mpl_op_input(g, op, images->first), y = g->op_out[g->op_out_begin[op]];
    const mpl_shape *xs, *ys;

    if (!is_image(g, x) || !is_image(g, y))
        return false;
    for (uint32_t i = 1; i < g->op_out_begin[op + 1] - g->op_out_begin[op]; i++)
        if (g->op_out[g->op_out_begin[op] + i] != MPL_NONE)
            return false;
    for (uint32_t i = 0; i < n_in; i++)
        if (stride != NULL && stride[i] != NULL && i > images->first)
            return false;
    xs = &g->value_shape[x];
    ys = &g->value_shape[y];
    images->w = (mpl_image_window){
        .n = xs->dim[0],
        .high = xs->dim[2],
        .wide = xs->dim[3],
        .channels = xs->dim[1],
        .out_high = ys->dim[2],
        .out_wide = ys->dim[3],
        .out_channels = ys->dim[1],
        .x_pitch = pitch_of(xs, stride, images->first),
        .y_pitch = pitch_of(ys, stride, n_in),
        .sum_pitch = pitch_of(ys, stride, 0),
    };
    if (mpl_layout_of(g, x) == MPL_BLOCKED) { /* each block is an image of its own */
        images->w.n *= images->w.channels / MPL_BLOCK;
        images->w.channels = images->w.out_channels = images->w.x_pitch = images->w.y_pitch =
            MPL_BLOCK;
    }
    images->w.x_apart = 1;
    images->w.x_image = images->w.high * images->w.wide * images->w.x_pitch;
    if (mpl_turns_layout(g, op)) {
        if (stride != NULL && stride[0] != NULL)
            return false;
        images->w.x_pitch = 1;
        images->w.x_apart = images->w.high * images->w.wide;
    }
    return images->w.x_pitch > 0 && images->w.y_pitch > 0 &&
           (images->first == 0 || images->w.sum_pitch > 0);
}

static void read_pair(const mpl_graph *g, mpl_op op, mpl_attr_key key, int64_t otherwise,
                      int64_t out[2])
{
    uint32_t n;
    const int64_t *ints = mpl_attr_ints(g, op, key, &n);

    for (uint32_t i = 0; i < 2; i++)
        out[i] = n >= 2 ? ints[i] : otherwise;
}

static void read_window(mpl_images *images, const mpl_graph *g, mpl_op op, const int64_t kernel[2])
{
    memcpy(images->w.kernel, kernel, sizeof images->w.kernel);
    read_pair(g, op, MPL_ATTR_strides, 1, images->w.stride);
    read_pair(g, op, MPL_ATTR_pads, 0, images->w.pad);
    read_pair(g, op, MPL_ATTR_dilations, 1, images->w.dilation);
}

static void read_activation(mpl_images *images, mpl_activation a)
{
    images->low = a == MPL_ACT_NONE ? -INFINITY : 0;
    images->high = a == MPL_ACT_RELU6 ? 6 : INFINITY;
}

/* Whether v is a weight that no run changes. */
static bool is_constant(const mpl_graph *g, mpl_value v)
{
    if (v == MPL_NONE || g->value_role[v] != MPL_WEIGHT)
        return false;
    for (uint32_t k = g->value_use_begin[v]; k < g->value_use_begin[v + 1]; k++)
        if (mpl_n_updates((mpl_op_kind)g->op_kind[g->value_use[k]]) > 0)
            return false;
    return true;
}

static void run_conv(const mpl_images *images, const mpl_op_call *call, int64_t from, int64_t to,
                     float *work)
{
    images->conv->run(&(mpl_image_part){
        .window = &images->w,
        .x = call->in[images->first].data,
        .filter = images->filter,
        .bias = images->has_bias ? call->in[images->first + 2].data : NULL,
        .sum = images->first > 0 ? call->in[0].data : NULL,
        .given = call->in[images->first + 1].data,
        .nothing = images->nothing,
        .y = call->out[0].data,
        .work = work,
        .from = from,
        .to = to,
        .low = images->low,
        .high = images->high,
    });
}

/* Floats of a thread's workspace. */
static uint64_t n_work(const mpl_images *images, const mpl_image_conv *conv)
{
    return conv->n_work != NULL ? conv->n_work(&images->w) : 0;
}

static uint64_t workspace_of(const mpl_images *images, const mpl_image_conv *conv)
{
    return images->limits.n_threads * n_work(images, conv) * sizeof(float);
}

/* The first that takes it. */
static const mpl_image_conv *conv_of(const mpl_images *images)
{
    static const mpl_image_conv *const convs[] = {&mpl_image_conv_winograd, &mpl_image_conv_taps,
                                                  &mpl_image_conv_tiles};

    for (size_t i = 0; i < sizeof convs / sizeof *convs; i++)
        if (convs[i]->fits(&images->w) &&
            workspace_of(images, convs[i]) <= images->limits.workspace_bytes)
            return convs[i];
    return NULL;
}

static mpl_status make_conv(mpl_ctx *ctx, const mpl_graph *g, mpl_op op, mpl_images *images,
                            bool *made)
{
    mpl_value filter = mpl_op_input(g, op, images->first + 1),
              bias = mpl_op_input(g, op, images->first + 2);

    if (!is_constant(g, filter) || g->value_type[filter] != MPL_TYPE_f32)
        return MPL_OK;
    images->w.groups = mpl_attr_int(g, op, MPL_ATTR_group, 1);
    read_window(images, g, op, g->value_shape[filter].dim + 2);
    images->conv = conv_of(images);
    if (images->conv == NULL)
        return MPL_OK;
    read_activation(images, mpl_activation_of(g, op));
    images->has_bias = bias != MPL_NONE;
    images->work = run_conv;
    MPL_PASS(mpl_new(ctx, images->nothing, (images->w.channels - 1) * images->w.x_apart + 1));
    MPL_PASS(mpl_new(ctx, images->filter, images->conv->n_packed(&images->w)));
    *made = true;
    return MPL_OK;
}

/* ---- pools, batch norm: loops over a pixel's channels ---- */

/* y[c] = expr of a (the previous y) and b, c and d (elements of x, k and l). Compiled for several
 * vector widths. */
#define BODY(name, expr)                                                                           \
    static inline __attribute__((always_inline)) void name##_body(                                 \
        float *restrict y, const float *restrict x, const float *restrict k,                       \
        const float *restrict l, int64_t n)                                                        \
    {                                                                                              \
        for (int64_t i = 0; i < n; i++) {                                                          \
            float a = y[i], b = x[i], c = k[i], d = l[i];                                          \
                                                                                                   \
            y[i] = expr;                                                                           \
            (void)a, (void)c, (void)d;                                                             \
        }                                                                                          \
    }
#define MADE_FOR(name, width)                                                                      \
    static void name##_##width(float *restrict y, const float *restrict x,                         \
                               const float *restrict k, const float *restrict l, int64_t n)        \
    {                                                                                              \
        name##_body(y, x, k, l, n);                                                                \
    }
#if defined(__x86_64__)
#define LOOP(name, expr)                                                                           \
    BODY(name, expr)                                                                               \
    MADE_FOR(name, plain)                                                                          \
    __attribute__((target("avx2"))) MADE_FOR(name, avx2)                                           \
        __attribute__((target("avx512f,avx512dq,avx512bw,avx512vl"))) MADE_FOR(name, avx512)
#define WIDTHS(name)                                                                               \
    {                                                                                              \
        name##_plain, name##_avx2, name##_avx512                                                   \
    }
#else
#define LOOP(name, expr) BODY(name, expr) MADE_FOR(name, plain)
#define WIDTHS(name)                                                                               \
    {                                                                                              \
        name##_plain, name##_plain, name##_plain                                                   \
    }
#endif

LOOP(greater, b > a || b != b ? b : a)
LOOP(add_up, a + b)
LOOP(scale, b *c + d)
LOOP(scale_cut, b *c + d > 0 || b * c + d != b * c + d ? b * c + d : 0)

static channel_loop *const loops[][MPL_N_CHAIN_WIDTHS] = {WIDTHS(greater), WIDTHS(add_up),
                                                          WIDTHS(scale), WIDTHS(scale_cut)};
enum { GREATER, ADD_UP, SCALE, SCALE_CUT };

static bool in_range(int64_t i, int64_t n, int64_t before, int64_t behind)
{
    return i >= -before && i < n + behind;
}

static void run_pool(const mpl_images *images, const mpl_op_call *call, int64_t from, int64_t to,
                     float *work)
{
    const mpl_image_window *window = &images->w;
    bool average = images->kind == MPL_OP_avg_pool;

    (void)work;
    for (int64_t pixel = from; pixel < to; pixel++) {
        int64_t plane = window->out_high * window->out_wide, at = pixel % plane, n = 0;
        const float *x = (const float *)call->in[0].data +
                         pixel / plane * window->high * window->wide * window->x_pitch;
        float *y = (float *)call->out[0].data + pixel * window->y_pitch;

        for (int64_t c = 0; c < window->channels; c++)
            y[c] = average ? 0 : -INFINITY;
        for (int64_t i = 0; i < window->kernel[0] * window->kernel[1]; i++) {
            int64_t row = at / window->out_wide * window->stride[0] - window->pad[0] +
                          i / window->kernel[1] * window->dilation[0];
            int64_t column = at % window->out_wide * window->stride[1] - window->pad[1] +
                             i % window->kernel[1] * window->dilation[1];
            const float *here = x + (row * window->wide + column) * window->x_pitch;

            n += in_range(row, window->high, images->counted[0], images->counted[2]) &&
                 in_range(column, window->wide, images->counted[1], images->counted[3]);
            if (in_range(row, window->high, 0, 0) && in_range(column, window->wide, 0, 0))
                images->loop(y, here, here, here, window->channels);
        }
        for (int64_t c = 0; c < window->channels && average; c++)
            y[c] = n > 0 ? y[c] / (float)n : 0;
    }
}

static bool make_pool(const mpl_graph *g, mpl_op op, mpl_images *images)
{
    uint32_t n, n_pads;
    const int64_t plane[2] = {images->w.high, images->w.wide}, *kernel, *pads;

    kernel = mpl_attr_ints(g, op, MPL_ATTR_kernel_shape, &n);
    if (images->kind == MPL_OP_global_max_pool)
        kernel = plane, n = 2;
    if (n != 2)
        return false;
    read_window(images, g, op, kernel);
    pads = mpl_attr_ints(g, op, MPL_ATTR_pads, &n_pads);
    if (mpl_attr_int(g, op, MPL_ATTR_count_include_pad, 0) != 0 && n_pads == 4)
        memcpy(images->counted, pads, sizeof images->counted);
    images->loop = loops[images->kind == MPL_OP_avg_pool ? ADD_UP : GREATER][mpl_chain_widest()];
    images->work = run_pool;
    return true;
}

/* ---- batch norm ---- */

static void run_norm(const mpl_images *images, const mpl_op_call *call, int64_t from, int64_t to,
                     float *work)
{
    const mpl_image_window *window = &images->w;

    (void)work;
    for (int64_t pixel = from; pixel < to; pixel++)
        images->loop((float *)call->out[0].data + pixel * window->y_pitch,
                     (const float *)call->in[0].data + pixel * window->x_pitch, images->filter,
                     images->filter + window->channels, window->channels);
}

/* Factor and term of each channel, from scale, bias, mean and variance. */
static void find_factors(mpl_images *images, const mpl_op_call *call)
{
    const float *of[4];

    for (uint32_t i = 0; i < 4; i++)
        of[i] = call->in[1 + i].data;
    for (int64_t c = 0; c < images->w.channels; c++) {
        double factor = (double)of[0][c] / sqrt((double)of[3][c] + images->epsilon);

        images->filter[c] = (float)factor;
        images->filter[images->w.channels + c] =
            (float)((double)of[1][c] - (double)of[2][c] * factor);
    }
}

static mpl_status make_norm(mpl_ctx *ctx, const mpl_graph *g, mpl_op op, mpl_images *images,
                            bool *made)
{
    bool cut = mpl_activation_of(g, op) == MPL_ACT_RELU;

    if (!cut && mpl_activation_of(g, op) != MPL_ACT_NONE)
        return MPL_OK;
    images->epsilon = mpl_attr_float(g, op, MPL_ATTR_epsilon, 1e-5);
    images->loop = loops[cut ? SCALE_CUT : SCALE][mpl_chain_widest()];
    images->work = run_norm;
    MPL_PASS(mpl_new(ctx, images->filter, 2 * (size_t)images->w.channels));
    *made = true;
    return MPL_OK;
}

/* ---- all ---- */

mpl_status mpl_images_new(mpl_ctx *ctx, const mpl_graph *g, mpl_op op, const int64_t *const *stride,
                          const mpl_images_limits *limits, mpl_images **out,
                          uint64_t *workspace_bytes, const char **how)
{
    mpl_status st = MPL_OK;
    mpl_images *images = NULL;
    bool made = false;

    *out = NULL;
    MPL_TRY(mpl_new(ctx, images, 1));
    images->kind = (mpl_op_kind)g->op_kind[op];
    images->first = mpl_fused_first(images->kind);
    images->limits = *limits;
    if (!read_images(images, g, op, stride))
        goto out;
    if (mpl_is_conv(images->kind))
        MPL_TRY(make_conv(ctx, g, op, images, &made));
    else if (images->kind == MPL_OP_max_pool || images->kind == MPL_OP_avg_pool ||
             images->kind == MPL_OP_global_max_pool)
        made = make_pool(g, op, images);
    else if (images->kind == MPL_OP_batch_norm &&
             mpl_layout_of(g, mpl_op_input(g, op, 0)) == MPL_LAST)
        MPL_TRY(make_norm(ctx, g, op, images, &made));
    if (!made)
        goto out;
    *workspace_bytes = images->conv != NULL ? workspace_of(images, images->conv) : 0;
    if (how != NULL)
        *how = images->conv != NULL ? images->conv->how : "images";
    *out = images, images = NULL;
out:
    mpl_images_free(ctx, images);
    return st;
}

uint64_t mpl_images_packed_bytes(const mpl_images *images)
{
    return images->conv != NULL ? images->conv->n_packed(&images->w) * sizeof *images->filter : 0;
}

void mpl_images_free(mpl_ctx *ctx, mpl_images *images)
{
    if (images == NULL)
        return;
    mpl_free_each(ctx, images->filter, images->nothing, images);
}

typedef struct job {
    const mpl_images *images;
    const mpl_op_call *call;
    int64_t n, n_shares; /* units; shares of nearly equal size */
} job;

/* Each share has a workspace of its own. */
static void do_shares(const void *arg, int64_t from, int64_t to)
{
    const job *j = arg;
    uint64_t apart = j->images->conv != NULL ? n_work(j->images, j->images->conv) : 0;

    for (int64_t i = from; i < to; i++)
        j->images->work(j->images, j->call, j->n * i / j->n_shares, j->n * (i + 1) / j->n_shares,
                        apart > 0 ? (float *)j->call->workspace + (uint64_t)i * apart : NULL);
}

void mpl_images_run(mpl_images *images, const mpl_op_call *call)
{
    int64_t n_pixels = images->w.n * images->w.out_high * images->w.out_wide;
    int64_t each =
        images->w.out_channels * (images->conv != NULL ? images->w.channels / images->w.groups : 1);
    job j = {images, call, n_pixels, n_pixels * each / SHARE};

    if (images->kind == MPL_OP_batch_norm)
        find_factors(images, call);
    else if (images->conv != NULL && !images->is_packed)
        images->conv->pack(&images->w, call->in[images->first + 1].data, images->filter),
            images->is_packed = true;
    if (images->conv != NULL && images->conv->n_units != NULL)
        j.n = images->conv->n_units(&images->w);
    j.n_shares = j.n_shares < 1                          ? 1
                 : j.n_shares > images->limits.n_threads ? images->limits.n_threads
                                                         : j.n_shares;
    mpl_deal(j.n_shares, 1, j.n_shares, images->limits.n_threads, do_shares, &j);
}
