/* vgg.c -- the network of 16 layers, configuration D.
 *
 * Source   K. Simonyan, A. Zisserman, "Very Deep Convolutional Networks for Large-Scale Image
 *          Recognition", ICLR 2015: table 1. */
#include "graphs/zoo/net/zoo_priv.h"

enum { POOL = 0 };

/* Channels of each 3x3 convolution, or a pool. */
static const int16_t layers[] = {64,   64,  POOL, 128, 128,  POOL, 256, 256, 256,
                                 POOL, 512, 512,  512, POOL, 512,  512, 512, POOL};

static mpl_status build(mpl_ctx *ctx, const mpl_zoo_args *args, mpl_graph **out)
{
    mpl_net net = mpl_net_begin(ctx, args);
    int group = 1, i = 1;
    mpl_value x = mpl_net_image(&net, 3);

    for (size_t l = 0; l < sizeof layers / sizeof *layers; l++) {
        if (layers[l] == POOL) {
            mpl_net_scope(&net, "conv%d", group++);
            x = mpl_net_pool(&net, MPL_OP_max_pool, "pool", x, MPL_WINDOW(2, 2, 0));
            i = 1;
            continue;
        }
        mpl_net_scope(&net, "conv%d_%d", group, i++);
        x = mpl_net_conv(&net, "conv", x, layers[l], MPL_WINDOW(3, 1, 1), 1, true);
        x = mpl_net_unary(&net, MPL_OP_relu, "relu", x);
    }
    mpl_net_scope(&net, "%s", "");
    x = mpl_net_flatten(&net, "flat", x);
    for (int fc = 6; fc <= 7; fc++) {
        mpl_net_scope(&net, "fc%d", fc);
        x = mpl_net_dense(&net, "gemm", x, 4096);
        x = mpl_net_unary(&net, MPL_OP_relu, "relu", x);
        x = mpl_net_unary(&net, MPL_OP_dropout, "dropout", x);
    }
    mpl_net_scope(&net, "fc8");
    x = mpl_net_dense(&net, "gemm", x, mpl_zoo_arg(args, "classes"));
    x = mpl_net_unary(&net, MPL_OP_softmax, "prob", x);
    return mpl_net_end(&net, x, out);
}

MPL_ZOO(vgg16, "16 layers of 3x3 convolutions (Simonyan, Zisserman 2015), configuration D",
        MPL_PARAMS(MPL_PARAM_BATCH(1), MPL_PARAM_IMAGE(224, 32), MPL_PARAM_CLASSES(1000)), build);
