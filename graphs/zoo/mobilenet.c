/* mobilenet.c -- networks of depthwise and pointwise convolutions, width 1.
 *
 * Source   v1: A. Howard et al., "MobileNets: Efficient Convolutional Neural Networks for Mobile
 *          Vision Applications", arXiv 1704.04861: table 1. v2: M. Sandler et al., "MobileNetV2:
 *          Inverted Residuals and Linear Bottlenecks", CVPR 2018: table 2.
 * Forms    form=fused is what TensorFlow Lite plans: batch norm folded into weights and bias,
 *          activations fused into convolutions. The activations are omitted here, so only the sizes
 *          are the network's.
 * Differs  Table 1 of v1 gives the last depthwise convolution stride 2, but its sizes need 1. */
#include "graphs/zoo/zoo_priv.h"

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
    mpl_net net;
    mpl_value x;

    mpl_net_begin(&net, ctx, args);
    x = conv_relu(&net, "stem", mpl_net_image(&net, 3), 32, MPL_WINDOW(3, 2, 1), 1);
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

static mpl_value bottleneck(mpl_net *net, const bounds *b, mpl_value x, int64_t expansion,
                            int64_t channels, int64_t stride)
{
    int64_t width = mpl_net_dim(net, x, 1) * expansion;
    mpl_value y = x;

    if (expansion != 1)
        y = conv_clip(net, b, "expand", y, width, MPL_WINDOW(1, 1, 0), 1);
    y = conv_clip(net, b, "depth", y, width, MPL_WINDOW(3, stride, 1), width);
    y = conv_norm(net, "project", y, channels, MPL_WINDOW(1, 1, 0), 1);
    if (stride == 1 && mpl_net_dim(net, x, 1) == channels)
        y = mpl_net_binary(net, MPL_OP_add, "add", x, y);
    return y;
}

static mpl_status build_v2(mpl_ctx *ctx, const mpl_zoo_args *args, mpl_graph **out)
{
    mpl_net net;
    mpl_value x;
    bounds b;

    mpl_net_begin(&net, ctx, args);
    x = mpl_net_image(&net, 3);
    b.zero = mpl_net_scalar(&net, "zero", 0);
    b.six = mpl_net_scalar(&net, "six", 6);
    x = conv_clip(&net, &b, "stem", x, 32, MPL_WINDOW(3, 2, 1), 1);
    for (int stage = 0; stage < 7; stage++)
        for (int i = 0; i < stages[stage][2]; i++) {
            mpl_net_scope(&net, "block%d_%d", stage + 1, i);
            x = bottleneck(&net, &b, x, stages[stage][0], stages[stage][1],
                           i == 0 ? stages[stage][3] : 1);
        }
    mpl_net_scope(&net, "%s", "");
    x = conv_clip(&net, &b, "last", x, 1280, MPL_WINDOW(1, 1, 0), 1);
    return mpl_net_end(&net, mpl_net_classify(&net, x, true), out);
}

static const mpl_zoo_param params[] = {
    MPL_PARAM_BATCH(1),
    MPL_PARAM_IMAGE(224, 32),
    MPL_PARAM_CLASSES(1000),
    {"form", 0, 0, 1, "layers apart, or norm and activation inside the convolutions", forms},
    MPL_PARAM_END,
};

MPL_ZOO(mobilenet_v1, "depthwise separable convolutions (Howard et al. 2017), width 1", params,
        build_v1);

MPL_ZOO(mobilenet_v2, "inverted residuals (Sandler et al. 2018), width 1", params, build_v2);
