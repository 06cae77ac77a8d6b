/* net_layers.c -- layers of networks, whole or taken apart. See zoo_priv.h. */
#include "graphs/zoo/net/zoo_priv.h"

/* A weight of the operation `name`. */
static mpl_value weight_of(mpl_net *net, const char *name, const char *suffix, uint32_t rank,
                           const int64_t *dim)
{
    return mpl_net_add_value(net, mpl_net_scoped(net, mpl_net_text(net, "%s%s", name, suffix)),
                             MPL_WEIGHT, MPL_TYPE_f32, rank, dim);
}

mpl_value mpl_net_conv(mpl_net *net, const char *name, mpl_value x, int64_t channels, mpl_window w,
                       int64_t group, bool bias)
{
    const mpl_attr attr[] = {
        MPL_INTS(kernel_shape, 2, w.kernel),
        MPL_INTS(strides, 2, ((const int64_t[]){w.stride, w.stride})),
        MPL_INTS(pads, 4, ((const int64_t[]){w.pad[0], w.pad[1], w.pad[0], w.pad[1]})),
        MPL_INT(group, group),
    };
    int64_t dim[] = {channels, mpl_net_dim(net, x, 1) / group, w.kernel[0], w.kernel[1]};
    mpl_value in[] = {x, weight_of(net, name, ".w", 4, dim), MPL_NONE};
    bool whole = bias && !net->owl;

    if (whole)
        in[2] = weight_of(net, name, ".b", 1, &channels);
    x = mpl_net_op(net, MPL_OP_conv, name, whole ? 3 : 2, in, group == 1 ? 3 : 4, attr);
    return bias && !whole ? mpl_net_owl_bias(net, name, x) : x;
}

mpl_value mpl_net_norm(mpl_net *net, const char *name, mpl_value x, double epsilon)
{
    static const char *const suffix[] = {".scale", ".bias", ".mean", ".var"};
    int64_t channels = mpl_net_dim(net, x, 1);
    mpl_value in[5] = {x};

    if (net->owl)
        return mpl_net_owl_norm(net, name, x);
    for (int i = 0; i < 4; i++)
        in[i + 1] = weight_of(net, name, suffix[i], 1, &channels);
    return mpl_net_op(net, MPL_OP_batch_norm, name, 5, in, 1, &MPL_FLOAT(epsilon, epsilon));
}

mpl_value mpl_net_conv_norm(mpl_net *net, const char *name, mpl_value x, int64_t channels,
                            mpl_window w, int64_t group, double epsilon)
{
    x = mpl_net_conv(net, mpl_net_text(net, "%s.conv", name), x, channels, w, group,
                     net->owl); /* Owl's has a bias even then */
    return mpl_net_norm(net, mpl_net_text(net, "%s.bn", name), x, epsilon);
}

mpl_value mpl_net_conv_relu(mpl_net *net, const char *name, mpl_value x, int64_t channels,
                            mpl_window w, double epsilon)
{
    return mpl_net_relu(net, name, mpl_net_conv_norm(net, name, x, channels, w, 1, epsilon));
}

mpl_value mpl_net_dense(mpl_net *net, const char *name, mpl_value x, int64_t units)
{
    int64_t dim[] = {units, mpl_net_dim(net, x, 1)};
    mpl_value in[] = {x, weight_of(net, name, ".w", 2, dim), MPL_NONE};

    if (net->owl)
        return mpl_net_owl_bias(net, name,
                                mpl_net_op(net, MPL_OP_gemm, name, 2, in, 1, &MPL_INT(trans_b, 1)));
    in[2] = weight_of(net, name, ".b", 1, &units);
    return mpl_net_op(net, MPL_OP_gemm, name, 3, in, 1, &MPL_INT(trans_b, 1));
}

mpl_value mpl_net_classify(mpl_net *net, mpl_value x, bool dropout)
{
    mpl_window all = {{mpl_net_dim(net, x, 2), mpl_net_dim(net, x, 3)}, 1, {0, 0}};

    mpl_net_scope(net, "%s", "");
    x = mpl_net_pool(net, MPL_OP_avg_pool, "pool", x, all);
    if (dropout && !net->owl)
        x = mpl_net_unary(net, MPL_OP_dropout, "dropout", x);
    x = mpl_net_flatten(net, "flat", x);
    x = mpl_net_dense(net, "fc", x, mpl_zoo_arg(net->args, "classes"));
    if (net->owl)
        return mpl_net_owl_softmax(net, "prob", x);
    return mpl_net_unary(net, MPL_OP_softmax, "prob", x);
}

mpl_value mpl_net_cross_entropy(mpl_net *net, const char *name, mpl_value logits, mpl_value labels)
{
    const char *const out_name[] = {mpl_net_scoped(net, name),
                                    mpl_net_scoped(net, mpl_net_text(net, "%s.prob", name))};
    mpl_value out[2] = {MPL_NONE, MPL_NONE};

    if (net->st == MPL_OK)
        net->st = mpl_graph_add_op(net->ctx, net->graph, MPL_OP_softmax_cross_entropy, out_name[0],
                                   2, (mpl_value[]){logits, labels}, 0, NULL, 2, out_name, out);
    return out[0];
}
