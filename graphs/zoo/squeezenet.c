/* squeezenet.c -- modules that squeeze, then expand by two joined convolutions.
 *
 * Source   F. Iandola et al., "SqueezeNet: AlexNet-level accuracy with 50x fewer parameters and
 *          <0.5MB model size", arXiv 1602.07360: table 1; version=11 is 1.1 of the authors'
 *          repository, with smaller kernels and earlier pools.
 * Differs  Pools round down; the paper's framework rounds up. */
#include "graphs/zoo/net/zoo_priv.h"

/* Channels of the squeeze and of each expansion, and a pool before; versions 1.0 and 1.1. */
static const struct {
    int16_t squeeze, expand;
    bool pool[2];
} fires[8] = {{16, 64, {true, true}},    {16, 64, {false, false}}, {32, 128, {false, true}},
              {32, 128, {true, false}},  {48, 192, {false, true}}, {48, 192, {false, false}},
              {64, 256, {false, false}}, {64, 256, {true, false}}};

static mpl_value conv_relu(mpl_net *net, const char *name, mpl_value x, int64_t channels,
                           mpl_window w)
{
    return mpl_net_relu(net, name, mpl_net_conv(net, name, x, channels, w, 1, true));
}

static mpl_status build_squeezenet(mpl_ctx *ctx, const mpl_zoo_args *args, mpl_graph **out)
{
    mpl_net net = mpl_net_begin(ctx, args);
    mpl_value x, part[2];
    int version = (int)mpl_zoo_arg(args, "version");

    x = conv_relu(&net, "stem", mpl_net_image(&net, 3), version == 0 ? 96 : 64,
                  version == 0 ? MPL_WINDOW(7, 2, 0) : MPL_WINDOW(3, 2, 0));
    for (int i = 0; i < 8; i++) {
        mpl_net_scope(&net, "fire%d", i + 2);
        if (fires[i].pool[version])
            x = mpl_net_pool(&net, MPL_OP_max_pool, "pool", x, MPL_WINDOW(3, 2, 0));
        x = conv_relu(&net, "squeeze", x, fires[i].squeeze, MPL_WINDOW(1, 1, 0));
        part[0] = conv_relu(&net, "expand1", x, fires[i].expand, MPL_WINDOW(1, 1, 0));
        part[1] = conv_relu(&net, "expand3", x, fires[i].expand, MPL_WINDOW(3, 1, 1));
        x = mpl_net_concat(&net, "joined", 2, part);
    }
    mpl_net_scope(&net, "%s", "");
    x = mpl_net_unary(&net, MPL_OP_dropout, "dropout", x);
    x = conv_relu(&net, "classes", x, mpl_zoo_arg(args, "classes"), MPL_WINDOW(1, 1, 0));
    x = mpl_net_unary(&net, MPL_OP_global_avg_pool, "average", x);
    x = mpl_net_flatten(&net, "flat", x);
    return mpl_net_end(&net, mpl_net_unary(&net, MPL_OP_softmax, "prob", x), out);
}

static const char *const versions[] = {"10", "11"};

MPL_ZOO(squeezenet, "SqueezeNet (Iandola 2016), without batch norm",
        MPL_PARAMS(MPL_PARAM_BATCH(1), MPL_PARAM_IMAGE(224, 47), MPL_PARAM_CLASSES(1000),
                   {"version", 0, 0, 1, "1.0 or 1.1", versions}),
        build_squeezenet);
