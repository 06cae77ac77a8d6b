/* shufflenet.c -- half of the channels pass a unit, then all are shuffled.
 *
 * Source   N. Ma et al., "ShuffleNet V2: Practical Guidelines for Efficient CNN Architecture
 *          Design", ECCV 2018: figure 3 (c, d), table 5. */
#include "graphs/zoo/net/zoo_priv.h"

static const double epsilon = 1e-5;

/* Channels after each stage and the last convolution, by width: 0.5, 1, 1.5, 2. */
static const int16_t channels[4][4] = {
    {48, 96, 192, 1024}, {116, 232, 464, 1024}, {176, 352, 704, 1024}, {244, 488, 976, 2048}};
static const int8_t repeats[3] = {4, 8, 4};

static mpl_value conv_relu(mpl_net *net, const char *name, mpl_value x, int64_t to, mpl_window w)
{
    return mpl_net_conv_relu(net, name, x, to, w, epsilon);
}

static mpl_value depthwise(mpl_net *net, const char *name, mpl_value x, int64_t stride)
{
    int64_t n = mpl_net_dim(net, x, 1);

    return mpl_net_conv_norm(net, name, x, n, MPL_WINDOW(3, stride, 1), n, epsilon);
}

/* Splits x in halves along channels. */
static void halves(mpl_net *net, mpl_value x, mpl_value part[2])
{
    const int64_t n = mpl_net_dim(net, x, 1) / 2, sizes[] = {n, n};
    const char *name[] = {mpl_net_scoped(net, "keep"), mpl_net_scoped(net, "go")};

    part[0] = part[1] = MPL_NONE;
    if (net->st != MPL_OK)
        return;
    net->st =
        mpl_graph_add_op(net->ctx, net->graph, MPL_OP_split, name[0], 1, &x, 2,
                         (mpl_attr[]){MPL_INT(axis, 1), MPL_INTS(split, 2, sizes)}, 2, name, part);
}

/* Channel 2 k + i was channel k of half i. */
static mpl_value shuffle(mpl_net *net, mpl_value x)
{
    int64_t n = mpl_net_dim(net, x, 1), rows = mpl_net_dim(net, x, 2),
            columns = mpl_net_dim(net, x, 3);
    int64_t batch = mpl_net_dim(net, x, 0);
    const int64_t apart[] = {batch, 2, n / 2, rows, columns}, whole[] = {batch, n, rows, columns},
                  perm[] = {0, 2, 1, 3, 4};

    x = mpl_net_op(net, MPL_OP_reshape, "apart", 1, &x, 1, (mpl_attr[]){MPL_INTS(shape, 5, apart)});
    x = mpl_net_op(net, MPL_OP_transpose, "shuffle", 1, &x, 1,
                   (mpl_attr[]){MPL_INTS(perm, 5, perm)});
    return mpl_net_op(net, MPL_OP_reshape, "whole", 1, &x, 1,
                      (mpl_attr[]){MPL_INTS(shape, 4, whole)});
}

static mpl_value unit(mpl_net *net, mpl_value x, int64_t to, bool down)
{
    mpl_value part[2] = {x, x};

    if (down) {
        part[0] = depthwise(net, "left.depth", x, 2);
        part[0] = conv_relu(net, "left.point", part[0], to / 2, MPL_WINDOW(1, 1, 0));
    } else {
        halves(net, x, part);
    }
    part[1] = conv_relu(net, "point1", part[1], to / 2, MPL_WINDOW(1, 1, 0));
    part[1] = depthwise(net, "depth", part[1], down ? 2 : 1);
    part[1] = conv_relu(net, "point2", part[1], to / 2, MPL_WINDOW(1, 1, 0));
    return shuffle(net, mpl_net_concat(net, "joined", 2, part));
}

static mpl_status build_shufflenet(mpl_ctx *ctx, const mpl_zoo_args *args, mpl_graph **out)
{
    const int16_t *to = channels[mpl_zoo_arg(args, "width")];
    mpl_net net = mpl_net_begin(ctx, args);
    mpl_value x = conv_relu(&net, "stem", mpl_net_image(&net, 3), 24, MPL_WINDOW(3, 2, 1));

    x = mpl_net_pool(&net, MPL_OP_max_pool, "stem.pool", x, MPL_WINDOW(3, 2, 1));
    for (int stage = 0; stage < 3; stage++)
        for (int i = 0; i < repeats[stage]; i++) {
            mpl_net_scope(&net, "stage%d_%d", stage + 2, i + 1);
            x = unit(&net, x, to[stage], i == 0);
        }
    mpl_net_scope(&net, "%s", "");
    x = conv_relu(&net, "last", x, to[3], MPL_WINDOW(1, 1, 0));
    return mpl_net_end(&net, mpl_net_classify(&net, x, false), out);
}

static const char *const widths[] = {"0.5", "1", "1.5", "2"};

MPL_ZOO(shufflenet_v2, "ShuffleNet V2 (Ma 2018)",
        MPL_PARAMS(MPL_PARAM_BATCH(1), MPL_PARAM_IMAGE(224, 32), MPL_PARAM_CLASSES(1000),
                   {"width", 1, 0, 3, "of all layers", widths}),
        build_shufflenet);
