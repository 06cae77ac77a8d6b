/* resnet.c -- residual networks of 18 to 152 layers, and as deep as you like for small images.
 *
 * Source   K. He, X. Zhang, S. Ren, J. Sun, "Deep Residual Learning for Image Recognition", CVPR
 *          2016: table 1, with projections where the dims change (option B). resnet_cifar: its
 *          section 4.2; blocks=200 is the network of 1,202 layers.
 * Differs  A bottleneck has its stride on the 3x3 convolution, as have the Caffe2 model in the ONNX
 *          zoo, which resnet50 equals operator by operator, and common practice; the paper has it
 *          on the first 1x1. The paper's shortcuts of resnet_cifar pad with zeros (option A).
 * stride=1x1 is the paper's, and that of the training problem recorded from libnnc
 * (results/published.tsv): fewer bytes, as the 3x3 reads less. */
#include "graphs/zoo/net/zoo_priv.h"

typedef struct family {
    const char *name;
    bool bottleneck;
    uint8_t blocks[4];
} family;

static const family families[] = {
    {"resnet18", false, {2, 2, 2, 2}},  {"resnet34", false, {3, 4, 6, 3}},
    {"resnet50", true, {3, 4, 6, 3}},   {"resnet101", true, {3, 4, 23, 3}},
    {"resnet152", true, {3, 8, 36, 3}},
};

static const double epsilon = 1e-5;

static mpl_value conv(mpl_net *net, const char *name, mpl_value x, int64_t channels, int64_t kernel,
                      int64_t stride)
{
    return mpl_net_conv_norm(net, name, x, channels, MPL_WINDOW(kernel, stride, kernel / 2), 1,
                             epsilon);
}

/* `width` channels, 4x at the end of a bottleneck; late: stride on the second convolution. */
static mpl_value block(mpl_net *net, mpl_value x, bool bottleneck, bool late, int64_t width,
                       int64_t stride)
{
    int64_t channels = bottleneck ? 4 * width : width;
    mpl_value y, shortcut = x;

    y = mpl_net_relu(net, "a", conv(net, "a", x, width, bottleneck ? 1 : 3, late ? 1 : stride));
    y = conv(net, "b", y, width, 3, late ? stride : 1);
    if (bottleneck) {
        y = mpl_net_relu(net, "b", y);
        y = conv(net, "c", y, channels, 1, 1);
    }
    if (stride != 1 || mpl_net_dim(net, x, 1) != channels)
        shortcut = conv(net, "shortcut", x, channels, 1, stride);
    y = mpl_net_binary(net, MPL_OP_sum, "sum", y, shortcut);
    return mpl_net_unary(net, MPL_OP_relu, "relu", y);
}

static mpl_value stem(mpl_net *net)
{
    static const int64_t pads[] = {0, 0, 3, 3, 0, 0, 3, 3};
    mpl_value x = mpl_net_image(net, 3);

    if (net->owl)
        x = mpl_net_op(net, MPL_OP_pad, "stem.pad", 1, &x, 1, &MPL_INTS(pads, 8, pads));
    x = mpl_net_conv_relu(net, "stem", x, 64, MPL_WINDOW(7, 2, net->owl ? 0 : 3), epsilon);
    return mpl_net_pool(net, MPL_OP_max_pool, "stem.pool", x, MPL_WINDOW(3, 2, 1));
}

static void stages(mpl_net *net, const family *f, bool late, mpl_value stage[4])
{
    mpl_value x = stem(net);

    for (int i = 0; i < 4; i++) {
        for (int k = 0; k < f->blocks[i]; k++) {
            mpl_net_scope(net, "res%d_%d", i + 2, k);
            x = block(net, x, f->bottleneck, late, 64 << i, i > 0 && k == 0 ? 2 : 1);
        }
        stage[i] = x;
    }
    mpl_net_scope(net, "%s", "");
}

static const family *find_family(const char *name)
{
    const family *f = families;

    while (strcmp(f->name, name) != 0)
        f++;
    return f;
}

void mpl_net_resnet101(mpl_net *net, mpl_value stage[4])
{
    stages(net, find_family("resnet101"), false, stage);
}

static mpl_status build(mpl_ctx *ctx, const mpl_zoo_args *args, mpl_graph **out)
{
    const family *f = find_family(args->entry->name);
    mpl_net net = mpl_net_begin(ctx, args);
    mpl_value stage[4];

    net.owl = mpl_zoo_arg(args, "form") == 1;
    stages(&net, f, !net.owl && f->bottleneck && mpl_zoo_arg(args, "stride") == 0, stage);
    return mpl_net_end(&net, mpl_net_classify(&net, stage[3], false), out);
}

static const mpl_zoo_param params[] = {
    MPL_PARAM_BATCH(1), MPL_PARAM_IMAGE(224, 32), MPL_PARAM_CLASSES(1000), MPL_PARAM_FORM,
    MPL_PARAM_END,
};

static const char *const strides[] = {"3x3", "1x1"};

static const mpl_zoo_param bottleneck_params[] = {
    MPL_PARAM_BATCH(1),
    MPL_PARAM_IMAGE(224, 32),
    MPL_PARAM_CLASSES(1000),
    MPL_PARAM_FORM,
    {"stride", 0, 0, 1, "of a bottleneck: on its 3x3, or its first 1x1", strides},
    MPL_PARAM_END,
};

#define RESNET(layers, list)                                                                       \
    MPL_ZOO(resnet##layers, "residual network of " #layers " layers (He et al. 2016)", list, build)

/* ---- residual networks for small images ---- */

static mpl_status build_cifar(mpl_ctx *ctx, const mpl_zoo_args *args, mpl_graph **out)
{
    mpl_net net = mpl_net_begin(ctx, args);
    mpl_value x =
        mpl_net_conv_relu(&net, "stem", mpl_net_image(&net, 3), 16, MPL_WINDOW(3, 1, 1), epsilon);

    for (int i = 0; i < 3; i++)
        for (int64_t k = 0; k < mpl_zoo_arg(args, "blocks"); k++) {
            mpl_net_scope(&net, "res%d_%" PRId64, i + 1, k);
            x = block(&net, x, false, false, 16 << i, i > 0 && k == 0 ? 2 : 1);
        }
    return mpl_net_end(&net, mpl_net_classify(&net, x, false), out);
}

MPL_ZOO(resnet_cifar, "residual network for small images (He et al. 2016, section 4.2)",
        MPL_PARAMS(MPL_PARAM_BATCH(1), MPL_PARAM_IMAGE(32, 4), MPL_PARAM_CLASSES(10),
                   {"blocks", 3, 1, 10000, "of each of the three stages: 6 * blocks + 2 layers",
                    NULL}),
        build_cifar);

RESNET(18, params);
RESNET(34, params);
RESNET(50, bottleneck_params);
RESNET(101, bottleneck_params);
RESNET(152, bottleneck_params);
