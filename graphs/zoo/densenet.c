/* densenet.c -- densely connected networks of 121 to 201 layers.
 *
 * Source   G. Huang, Z. Liu, L. van der Maaten, K. Weinberger, "Densely Connected Convolutional
 *          Networks", CVPR 2017: table 1 (DenseNet-BC, growth 32, compression 1/2).
 * Differs  As the Caffe model in the ONNX zoo: the classifier is a 1x1 convolution, its result
 *          keeps four dims, and there is no softmax. densenet121 equals it operator by operator,
 *          once the model's constant Mul and Add are merged into the batch norm before. */
#include "graphs/zoo/net/zoo_priv.h"

typedef struct family {
    const char *name;
    uint8_t layers[4];
} family;

static const family families[] = {
    {"densenet121", {6, 12, 24, 16}},
    {"densenet169", {6, 12, 32, 32}},
    {"densenet201", {6, 12, 48, 32}},
};

enum { GROWTH = 32, BOTTLENECK = 4 * GROWTH };

static const double epsilon = 1e-5;

/* Batch norm, then relu; names start with `name`. */
static mpl_value norm_relu(mpl_net *net, const char *name, mpl_value x)
{
    return mpl_net_relu(net, name, mpl_net_norm(net, mpl_net_text(net, "%s.bn", name), x, epsilon));
}

/* Batch norm, relu, then a convolution that keeps height and width. */
static mpl_value conv(mpl_net *net, const char *name, mpl_value x, int64_t channels, int64_t kernel)
{
    x = norm_relu(net, name, x);
    return mpl_net_conv(net, mpl_net_text(net, "%s.conv", name), x, channels,
                        MPL_WINDOW(kernel, 1, kernel / 2), 1, false);
}

static mpl_value dense_layer(mpl_net *net, mpl_value x)
{
    mpl_value y = conv(net, "a", x, BOTTLENECK, 1);

    y = conv(net, "b", y, GROWTH, 3);
    return mpl_net_concat(net, "concat", 2, (mpl_value[]){x, y});
}

static mpl_value stem(mpl_net *net)
{
    mpl_value x = mpl_net_image(net, 3);

    mpl_net_scope(net, "stem");
    x = mpl_net_conv(net, "conv", x, 2 * GROWTH, MPL_WINDOW(7, 2, 3), 1, false);
    x = mpl_net_norm(net, "bn", x, epsilon);
    x = mpl_net_unary(net, MPL_OP_relu, "relu", x);
    return mpl_net_pool(net, MPL_OP_max_pool, "pool", x, MPL_WINDOW(3, 2, 1));
}

static mpl_status build(mpl_ctx *ctx, const mpl_zoo_args *args, mpl_graph **out)
{
    const family *f = families;
    mpl_net net;
    mpl_value x;

    while (strcmp(f->name, args->entry->name) != 0)
        f++;
    net = mpl_net_begin(ctx, args);
    x = stem(&net);
    for (int b = 0; b < 4; b++) {
        for (int i = 0; i < f->layers[b]; i++) {
            mpl_net_scope(&net, "dense%d_%d", b + 2, i + 1);
            x = dense_layer(&net, x);
        }
        mpl_net_scope(&net, "transition%d", b + 2);
        if (b < 3) {
            x = conv(&net, "a", x, mpl_net_dim(&net, x, 1) / 2, 1);
            x = mpl_net_pool(&net, MPL_OP_avg_pool, "pool", x, MPL_WINDOW(2, 2, 0));
        }
    }
    mpl_net_scope(&net, "%s", "");
    x = norm_relu(&net, "last", x);
    x = mpl_net_unary(&net, MPL_OP_global_avg_pool, "pool", x);
    x = mpl_net_conv(&net, "fc", x, mpl_zoo_arg(args, "classes"), MPL_WINDOW(1, 1, 0), 1, true);
    return mpl_net_end(&net, x, out);
}

#define DENSENET(layers)                                                                           \
    MPL_ZOO(densenet##layers,                                                                      \
            "densely connected network of " #layers " layers, growth 32 (Huang et al. 2017)",      \
            MPL_PARAMS(MPL_PARAM_BATCH(1), MPL_PARAM_IMAGE(224, 32), MPL_PARAM_CLASSES(1000)),     \
            build)

DENSENET(121);
DENSENET(169);
DENSENET(201);
