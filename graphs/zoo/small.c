/* small.c -- a perceptron and a small convolutional network, for a first look and for tests.
 *
 * Source   mlp: none. mnist_conv: the MNIST example of Owl ("Functional Design of Computation
 *          Graph"): one 5x5 convolution, one pool, two dense layers; Owl's default padding keeps
 *          sizes. */
#include "graphs/zoo/net/zoo_priv.h"

static mpl_status build_mlp(mpl_ctx *ctx, const mpl_zoo_args *args, mpl_graph **out)
{
    mpl_net net = mpl_net_begin(ctx, args);
    mpl_value x = mpl_net_input(
        &net, "data", 2, (int64_t[]){mpl_zoo_arg(args, "batch"), mpl_zoo_arg(args, "input")});

    for (int64_t i = 1; i <= mpl_zoo_arg(args, "layers"); i++) {
        mpl_net_scope(&net, "hidden%" PRId64, i);
        x = mpl_net_dense(&net, "gemm", x, mpl_zoo_arg(args, "hidden"));
        x = mpl_net_unary(&net, MPL_OP_relu, "relu", x);
    }
    mpl_net_scope(&net, "%s", "");
    x = mpl_net_dense(&net, "fc", x, mpl_zoo_arg(args, "classes"));
    x = mpl_net_unary(&net, MPL_OP_softmax, "prob", x);
    return mpl_net_end(&net, x, out);
}

MPL_ZOO(mlp, "dense layers with relu, then softmax",
        MPL_PARAMS(MPL_PARAM_BATCH(1), {"layers", 2, 1, 10000, "hidden layers", NULL},
                   {"input", 784, 1, 1000000, "features of the input", NULL},
                   {"hidden", 512, 1, 1000000, "units of each hidden layer", NULL},
                   MPL_PARAM_CLASSES(10)),
        build_mlp);

static mpl_status build_mnist_conv(mpl_ctx *ctx, const mpl_zoo_args *args, mpl_graph **out)
{
    mpl_net net = mpl_net_begin(ctx, args);
    mpl_value x =
        mpl_net_conv(&net, "conv", mpl_net_image(&net, 1), 32, MPL_WINDOW(5, 1, 2), 1, true);

    x = mpl_net_unary(&net, MPL_OP_relu, "conv.relu", x);
    x = mpl_net_pool(&net, MPL_OP_max_pool, "pool", x, MPL_WINDOW(2, 2, 0));
    x = mpl_net_unary(&net, MPL_OP_dropout, "dropout", x);
    x = mpl_net_flatten(&net, "flat", x);
    x = mpl_net_dense(&net, "fc1", x, 1024);
    x = mpl_net_unary(&net, MPL_OP_relu, "fc1.relu", x);
    x = mpl_net_dense(&net, "fc2", x, mpl_zoo_arg(args, "classes"));
    x = mpl_net_unary(&net, MPL_OP_softmax, "prob", x);
    return mpl_net_end(&net, x, out);
}

MPL_ZOO(mnist_conv, "one convolution, two dense layers (Owl's MNIST example)",
        MPL_PARAMS(MPL_PARAM_BATCH(100), MPL_PARAM_IMAGE(28, 2), MPL_PARAM_CLASSES(10)),
        build_mnist_conv, .dropout = 0.1, .rate = 0.005);
