/* mobilenet.c -- networks of depthwise and pointwise convolutions.
 *
 * Source   v1: A. Howard et al., "MobileNets: Efficient Convolutional Neural Networks for Mobile
 *          Vision Applications", arXiv 1704.04861: table 1. v2: M. Sandler et al., "MobileNetV2:
 *          Inverted Residuals and Linear Bottlenecks", CVPR 2018: table 2; widths as in its
 * authors' code. mcunet: J. Lin et al., "MCUNet: Tiny Deep Learning on IoT Devices", NeurIPS 2020;
 * the blocks are those of mcunet-5fps_imagenet.json of github.com/mit-han-lab/mcunet (0.64 million
 * parameters, 12.8 million multiply-adds). Forms    form=fused is what TensorFlow Lite plans: batch
 * norm folded into weights and bias, activations fused into convolutions. The activations are
 * omitted here, so only the sizes are the network's. Differs  Table 1 of v1 gives the last
 * depthwise convolution stride 2, but its sizes need 1. */
#include "graphs/zoo/net/zoo_priv.h"

static const double epsilon = 1e-5;

static const char *const forms[] = {"plain", "fused"};

/* A convolution and its batch norm; form=fused reduces the batch norm to a bias. */
static mpl_value conv_norm(mpl_net *net, const char *name, mpl_value x, int64_t channels,
                           mpl_window w, int64_t group)
{
    if (mpl_zoo_arg(net->args, "form") == 1)
        return mpl_net_conv(net, name, x, channels, w, group, true);
    return mpl_net_conv_norm(net, name, x, channels, w, group, epsilon);
}

/* v1: channels and stride of each pair. */
static const int16_t pairs[13][2] = {{64, 1},  {128, 2},  {128, 1}, {256, 2}, {256, 1},
                                     {512, 2}, {512, 1},  {512, 1}, {512, 1}, {512, 1},
                                     {512, 1}, {1024, 2}, {1024, 1}};

static mpl_value conv_relu(mpl_net *net, const char *name, mpl_value x, int64_t channels,
                           mpl_window w, int64_t group)
{
    x = conv_norm(net, name, x, channels, w, group);
    return mpl_zoo_arg(net->args, "form") == 1 ? x : mpl_net_relu(net, name, x);
}

static mpl_status build_v1(mpl_ctx *ctx, const mpl_zoo_args *args, mpl_graph **out)
{
    mpl_net net = mpl_net_begin(ctx, args);
    mpl_value x = conv_relu(&net, "stem", mpl_net_image(&net, 3), 32, MPL_WINDOW(3, 2, 1), 1);

    for (int i = 0; i < 13; i++) {
        mpl_net_scope(&net, "pair%d", i + 1);
        x = conv_relu(&net, "depth", x, mpl_net_dim(&net, x, 1), MPL_WINDOW(3, pairs[i][1], 1),
                      mpl_net_dim(&net, x, 1));
        x = conv_relu(&net, "point", x, pairs[i][0], MPL_WINDOW(1, 1, 0), 1);
    }
    return mpl_net_end(&net, mpl_net_classify(&net, x, false), out);
}

/* v2: expansion, channels, repeats, stride of the first. */
static const int16_t stages[7][4] = {{1, 16, 1, 1}, {6, 24, 2, 2},  {6, 32, 3, 2}, {6, 64, 4, 2},
                                     {6, 96, 3, 1}, {6, 160, 3, 2}, {6, 320, 1, 1}};

/* An inverted residual; inner: channels between its expansion and its projection. */
typedef struct block {
    int64_t kernel, inner, channels, stride;
} block;

/* Bounds of ReLU6, shared by all. */
typedef struct bounds {
    mpl_value zero, six;
} bounds;

static mpl_value conv_clip(mpl_net *net, const bounds *b, const char *name, mpl_value x,
                           int64_t channels, mpl_window w, int64_t group)
{
    x = conv_norm(net, name, x, channels, w, group);
    if (mpl_zoo_arg(net->args, "form") == 1)
        return x;
    return mpl_net_op(net, MPL_OP_clip, mpl_net_text(net, "%s.relu6", name), 3,
                      (mpl_value[]){x, b->zero, b->six}, 0, NULL);
}

/* To `inner` channels, over a window of `kernel` pixels, to `channels`; around it where it may. */
static mpl_value bottleneck(mpl_net *net, const bounds *b, mpl_value x, const block *s)
{
    mpl_value y = x;

    if (s->inner != mpl_net_dim(net, x, 1))
        y = conv_clip(net, b, "expand", y, s->inner, MPL_WINDOW(1, 1, 0), 1);
    y = conv_clip(net, b, "depth", y, s->inner, MPL_WINDOW(s->kernel, s->stride, s->kernel / 2),
                  s->inner);
    y = conv_norm(net, "project", y, s->channels, MPL_WINDOW(1, 1, 0), 1);
    if (s->stride == 1 && mpl_net_dim(net, x, 1) == s->channels &&
        mpl_zoo_arg(net->args, "residuals") == 0)
        y = mpl_net_binary(net, MPL_OP_add, "add", x, y);
    return y;
}

/* channels at the width asked for: to the nearest multiple of 8 that is not below nine tenths, or
 * rounded down. */
static int64_t at_width(const mpl_zoo_args *args, int64_t channels)
{
    int64_t exact = channels * mpl_zoo_arg(args, "width"), eight; /* hundredths */

    if (mpl_zoo_arg(args, "round") == 1)
        return exact < 100 ? 1 : exact / 100;
    eight = (exact + 400) / 800 * 8;
    eight = eight < 8 ? 8 : eight;
    return 1000 * eight < 9 * exact ? eight + 8 : eight;
}

static bounds add_bounds(mpl_net *net)
{
    return (bounds){mpl_net_scalar(net, "zero", 0), mpl_net_scalar(net, "six", 6)};
}

static mpl_status build_v2(mpl_ctx *ctx, const mpl_zoo_args *args, mpl_graph **out)
{
    mpl_net net = mpl_net_begin(ctx, args);
    mpl_value x = mpl_net_image(&net, 3);
    bounds b = add_bounds(&net);

    x = conv_clip(&net, &b, "stem", x, at_width(args, 32), MPL_WINDOW(3, 2, 1), 1);
    for (int stage = 0; stage < 7; stage++)
        for (int i = 0; i < stages[stage][2]; i++) {
            block s = {3, mpl_net_dim(&net, x, 1) * stages[stage][0],
                       at_width(args, stages[stage][1]), i == 0 ? stages[stage][3] : 1};

            mpl_net_scope(&net, "block%d_%d", stage + 1, i);
            x = bottleneck(&net, &b, x, &s);
        }
    mpl_net_scope(&net, "%s", "");
    x = conv_clip(&net, &b, "last", x,
                  mpl_zoo_arg(args, "width") > 100 ? at_width(args, 1280) : 1280,
                  MPL_WINDOW(1, 1, 0), 1);
    return mpl_net_end(&net, mpl_net_classify(&net, x, true), out);
}

/* ---- MCUNet ---- */

/* Blocks of the 5FPS network. */
static const block mcu_blocks[] = {
    {3, 16, 8, 1},   {3, 32, 16, 2},  {3, 48, 16, 1},  {7, 48, 24, 2},  {3, 120, 24, 1},
    {3, 120, 40, 2}, {7, 160, 40, 1}, {5, 160, 48, 1}, {3, 144, 48, 1}, {3, 192, 48, 1},
    {7, 240, 96, 2}, {5, 384, 96, 1}, {5, 384, 96, 1}, {3, 576, 160, 1}};

static mpl_status build_mcunet(mpl_ctx *ctx, const mpl_zoo_args *args, mpl_graph **out)
{
    mpl_net net = mpl_net_begin(ctx, args);
    mpl_value x = mpl_net_image(&net, 3);
    bounds b = add_bounds(&net);

    x = conv_clip(&net, &b, "stem", x, 16, MPL_WINDOW(3, 2, 1), 1);
    for (size_t i = 0; i < sizeof mcu_blocks / sizeof *mcu_blocks; i++) {
        mpl_net_scope(&net, "block%d", (int)i + 1);
        x = bottleneck(&net, &b, x, &mcu_blocks[i]);
    }
    return mpl_net_end(&net, mpl_net_classify(&net, x, false), out);
}

/* clang-format off */
#define PARAM_FORM                                                                                 \
    {"form", 0, 0, 1, "layers apart, or norm and activation inside the convolutions", forms}
#define PARAM_RESIDUALS {"residuals", 0, 0, 1, "ways around blocks", on_off}
/* clang-format on */

static const char *const on_off[] = {"on", "off"}, *const rounds[] = {"8", "floor"};

MPL_ZOO(mobilenet_v1, "depthwise separable convolutions (Howard et al. 2017), width 1",
        MPL_PARAMS(MPL_PARAM_BATCH(1), MPL_PARAM_IMAGE(224, 32), MPL_PARAM_CLASSES(1000),
                   PARAM_FORM),
        build_v1);

MPL_ZOO(mobilenet_v2, "inverted residuals (Sandler et al. 2018)",
        MPL_PARAMS(MPL_PARAM_BATCH(1), MPL_PARAM_IMAGE(224, 32), MPL_PARAM_CLASSES(1000),
                   PARAM_FORM, {"width", 100, 5, 400, "channels, times this", mpl_zoo_hundredths},
                   {"round", 0, 0, 1, "channels: to multiples of 8, or down", rounds},
                   PARAM_RESIDUALS),
        build_v2);

MPL_ZOO(mcunet, "inverted residuals found for microcontrollers (Lin et al. 2020), 5FPS",
        MPL_PARAMS(MPL_PARAM_BATCH(1), MPL_PARAM_IMAGE(96, 32), MPL_PARAM_CLASSES(1000), PARAM_FORM,
                   PARAM_RESIDUALS),
        build_mcunet);
