/* owl_networks.c -- layers taken apart as in the Owl library, for networks with form=owl.
 *
 * Source   P. Vandenhove, "Functional Design of Computation Graph", and Owl's neurons: a
 *          convolution adds its bias in a separate operation; batch norm is (x - mean) / sqrt(var +
 *          1e-8) * gamma + beta, an operation for each sign; softmax is exp(x - max) / sum; the
 *          pool over the whole image is followed by a reshape; ResNet pads its image first and has
 *          its strides on the first 1x1 (Keras' variant).
 * Differs  Owl's images are NHWC, with the same bytes. Owl's optimiser fuses the product and the
 *          sum of each batch norm into one fma, and counts operations after that: 447 for ResNet-50
 *          and 789 for Inception-v3. Here they stay separate, 53 and 94 more. The planned bytes are
 *          the same either way.
 * Result   With the order dfs and the planner owl:rule=code, sums, planned bytes and numbers of
 *          blocks equal those of a simulation of Owl's rule exactly
 *          (tests/planners/test_planners_owl_figures.c). form=plain needs more (ResNet-50 9.63 for
 *          8.03, Inception-v3 12.47 for 10.18, 10^6 bytes): a whole batch norm cannot overwrite its
 *          input, its parts can. */
#include "graphs/zoo/net/zoo_priv.h"

typedef struct part {
    mpl_net *net;
    const char *name; /* of the layer */
} part;

static mpl_value binary(const part *self, mpl_op_kind kind, const char *what, mpl_value a,
                        mpl_value b)
{
    return mpl_net_binary(self->net, kind, mpl_net_text(self->net, "%s.%s", self->name, what), a,
                          b);
}

static mpl_value unary(const part *self, mpl_op_kind kind, const char *what, mpl_value x)
{
    return mpl_net_unary(self->net, kind, mpl_net_text(self->net, "%s.%s", self->name, what), x);
}

/* A weight for every channel of x, with the rank of x. */
static mpl_value per_channel(const part *self, const char *what, mpl_value x)
{
    int64_t dim[4] = {1, mpl_net_dim(self->net, x, 1), 1, 1};

    return mpl_net_weight(self->net, mpl_net_text(self->net, "%s.%s", self->name, what),
                          mpl_net_rank(self->net, x), dim);
}

mpl_value mpl_net_owl_bias(mpl_net *net, const char *name, mpl_value x)
{
    const part p = {net, name};

    return binary(&p, MPL_OP_add, "add", x, per_channel(&p, "b", x));
}

mpl_value mpl_net_owl_norm(mpl_net *net, const char *name, mpl_value x)
{
    const part p = {net, name};
    mpl_value least, deviation;

    least = mpl_net_scalar(net, mpl_net_text(net, "%s.least", name), 1e-8f);
    x = binary(&p, MPL_OP_sub, "sub", x, per_channel(&p, "mean", x));
    deviation = binary(&p, MPL_OP_add, "var_least", per_channel(&p, "var", x), least);
    deviation = unary(&p, MPL_OP_sqrt, "sqrt", deviation);
    x = binary(&p, MPL_OP_div, "div", x, deviation);
    x = binary(&p, MPL_OP_mul, "mul", x, per_channel(&p, "gamma", x));
    return binary(&p, MPL_OP_add, "add", x, per_channel(&p, "beta", x));
}

/* Along the last of two dims. */
mpl_value mpl_net_owl_softmax(mpl_net *net, const char *name, mpl_value x)
{
    const part p = {net, name};
    const mpl_attr axes = MPL_INTS(axes, 1, (const int64_t[]){1});
    mpl_value most, sum;

    most = mpl_net_op(net, MPL_OP_reduce_max, mpl_net_text(net, "%s.max", name), 1, &x, 1, &axes);
    x = unary(&p, MPL_OP_exp, "exp", binary(&p, MPL_OP_sub, "sub", x, most));
    sum = mpl_net_op(net, MPL_OP_reduce_sum, mpl_net_text(net, "%s.sum", name), 1, &x, 1, &axes);
    return binary(&p, MPL_OP_div, "div", x, sum);
}
