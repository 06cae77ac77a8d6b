/* unet.c -- the network of a diffusion model: down to small images and up again, with every value
 * on the way down kept for the way up.
 *
 * Source   J. Ho, A. Jain, P. Abbeel, "Denoising Diffusion Probabilistic Models", NeurIPS 2020,
 *          appendix B; for CIFAR-10: 32 x 32, 128 channels, times 1, 2, 2, 2 by level, attention at
 *          16 x 16, 35.7 million parameters. The form is that of O. Ronneberger et al., "U-Net",
 *          MICCAI 2015.
 * Train    own_loss: the mean square of what it says less `noise`, an input.
 * Differs  The sinusoids of the time step are an input. No dropout. Convolutions of stride 2 pad
 * both ends. */
#include "graphs/zoo/net/zoo_priv.h"

#include <math.h>

enum { GROUPS = 32, MOST_LEVELS = 8, MOST_BLOCKS = 16 };

static const double epsilon = 1e-6;

typedef struct unet {
    mpl_net net;
    int64_t batch, channels, blocks;
    mpl_value time; /* [batch, 4 channels], activated */
    uint32_t n_kept;
    mpl_value kept[MOST_LEVELS * (MOST_BLOCKS + 1)];
} unet;

static mpl_value reshape(mpl_net *net, const char *name, mpl_value x, uint32_t rank,
                         const int64_t *dim)
{
    return mpl_net_op(net, MPL_OP_reshape, name, 1, &x, 1, &MPL_INTS(shape, rank, dim));
}

static mpl_value normalised(unet *self, const char *name, mpl_value x)
{
    mpl_net *net = &self->net;
    int64_t channels = mpl_net_dim(net, x, 1),
            groups = self->channels < GROUPS ? self->channels : GROUPS;
    mpl_value in[] = {x, mpl_net_weight(net, mpl_net_text(net, "%s.scale", name), 1, &channels),
                      mpl_net_weight(net, mpl_net_text(net, "%s.b", name), 1, &channels)};

    return mpl_net_op(net, MPL_OP_group_norm, name, 3, in, 2,
                      (const mpl_attr[]){MPL_INT(num_groups, groups), MPL_FLOAT(epsilon, epsilon)});
}

/* swish(group_norm(x)) */
static mpl_value active(unet *self, const char *name, mpl_value x)
{
    return mpl_net_unary(&self->net, MPL_OP_swish, mpl_net_text(&self->net, "%s.swish", name),
                         normalised(self, name, x));
}

static mpl_value conv(unet *self, const char *name, mpl_value x, int64_t channels, int64_t kernel,
                      int64_t stride)
{
    return mpl_net_conv(&self->net, name, x, channels, MPL_WINDOW(kernel, stride, kernel / 2), 1,
                        true);
}

/* Two convolutions with the time step between them, and a way around. */
static mpl_value residual(unet *self, mpl_value x, int64_t channels)
{
    mpl_net *net = &self->net;
    mpl_value y = conv(self, "conv1", active(self, "norm1", x), channels, 3, 1), t;

    t = reshape(net, "time.image", mpl_net_dense(net, "time", self->time, channels), 4,
                (int64_t[]){self->batch, channels, 1, 1});
    y = mpl_net_binary(net, MPL_OP_add, "timed", y, t);
    y = conv(self, "conv2", active(self, "norm2", y), channels, 3, 1);
    if (mpl_net_dim(net, x, 1) != channels)
        x = conv(self, "around", x, channels, 1, 1);
    return mpl_net_binary(net, MPL_OP_add, "add", x, y);
}

/* x plus attention of each pixel to all, with one head. */
static mpl_value attend(unet *self, mpl_value x)
{
    mpl_net *net = &self->net;
    int64_t c = mpl_net_dim(net, x, 1), side = mpl_net_dim(net, x, 2),
            flat[] = {self->batch, c, side * side};
    static const char *const name[] = {"q", "k", "v"};
    const mpl_attr turn = MPL_INTS(perm, 3, ((const int64_t[]){0, 2, 1}));
    mpl_value part[3], y = normalised(self, "attend.norm", x);

    for (int i = 0; i < 3; i++)
        part[i] = reshape(net, mpl_net_text(net, "%s.flat", name[i]),
                          conv(self, name[i], y, c, 1, 1), 3, flat);
    for (int i = 0; i < 3; i += 2)
        part[i] = mpl_net_op(net, MPL_OP_transpose, mpl_net_text(net, "%s.turned", name[i]), 1,
                             &part[i], 1, &turn);
    y = mpl_net_binary(net, MPL_OP_matmul, "scores", part[0], part[1]);
    y = mpl_net_binary(net, MPL_OP_mul, "scaled", y,
                       mpl_net_scalar(net, "scale", (float)(1 / sqrt((double)c))));
    y = mpl_net_unary(net, MPL_OP_softmax, "share", y);
    y = mpl_net_binary(net, MPL_OP_matmul, "mix", y, part[2]);
    y = mpl_net_op(net, MPL_OP_transpose, "mix.turned", 1, &y, 1, &turn);
    y = reshape(net, "mix.image", y, 4, (int64_t[]){self->batch, c, side, side});
    return mpl_net_binary(net, MPL_OP_add, "attended", x, conv(self, "out", y, c, 1, 1));
}

static mpl_value twice_as_large(unet *self, mpl_value x)
{
    const mpl_attr attr[] = {MPL_TEXT(mode, "nearest"), MPL_TEXT(coordinate_mode, "asymmetric"),
                             MPL_TEXT(nearest_mode, "floor"),
                             MPL_FLOATS(scales, 4, ((const double[]){1, 1, 2, 2}))};

    x = mpl_net_op(&self->net, MPL_OP_resize, "larger", 1, &x, 4, attr);
    return conv(self, "larger.conv", x, mpl_net_dim(&self->net, x, 1), 3, 1);
}

/* Attention at half of the image's height. */
static mpl_value block_of(unet *self, mpl_value x, int64_t level)
{
    x = residual(self, x, self->channels * (level == 0 ? 1 : 2));
    return level == 1 ? attend(self, x) : x;
}

static mpl_value keep(unet *self, mpl_value x)
{
    return self->kept[self->n_kept++] = x;
}

static mpl_value down(unet *self, mpl_value x, int64_t levels)
{
    mpl_net *net = &self->net;

    keep(self, x);
    for (int64_t level = 0; level < levels; level++) {
        for (int64_t i = 0; i < self->blocks; i++) {
            mpl_net_scope(net, "down%" PRId64 "_%" PRId64, level, i);
            x = keep(self, block_of(self, x, level));
        }
        mpl_net_scope(net, "down%" PRId64, level);
        if (level + 1 < levels)
            x = keep(self, conv(self, "smaller", x, mpl_net_dim(net, x, 1), 3, 2));
    }
    return x;
}

static mpl_value up(unet *self, mpl_value x, int64_t levels)
{
    mpl_net *net = &self->net;

    for (int64_t level = levels; level-- > 0;) {
        for (int64_t i = 0; i <= self->blocks; i++) {
            mpl_net_scope(net, "up%" PRId64 "_%" PRId64, level, i);
            x = mpl_net_concat(net, "joined", 2, (mpl_value[]){x, self->kept[--self->n_kept]});
            x = block_of(self, x, level);
        }
        mpl_net_scope(net, "up%" PRId64, level);
        if (level > 0)
            x = twice_as_large(self, x);
    }
    return x;
}

/* The mean square of the error. */
static mpl_value loss_of(mpl_net *net, mpl_value x)
{
    int64_t dim[4];

    for (uint32_t i = 0; i < 4; i++)
        dim[i] = mpl_net_dim(net, x, i);
    x = mpl_net_binary(net, MPL_OP_sub, "error", x, mpl_net_input(net, "noise", 4, dim));
    x = mpl_net_binary(net, MPL_OP_mul, "square", x, x);
    return mpl_net_op(net, MPL_OP_reduce_mean, "loss", 1, &x, 1, &MPL_INT(keepdims, 0));
}

static mpl_value denoise(unet *self, int64_t levels)
{
    mpl_net *net = &self->net;
    mpl_value x = mpl_net_image(net, 3);

    self->time = mpl_net_input(net, "time", 2, (int64_t[]){self->batch, self->channels});
    mpl_net_scope(net, "time");
    self->time = mpl_net_dense(net, "fc1", self->time, 4 * self->channels);
    self->time = mpl_net_dense(net, "fc2", mpl_net_unary(net, MPL_OP_swish, "act1", self->time),
                               4 * self->channels);
    self->time = mpl_net_unary(net, MPL_OP_swish, "act2", self->time);
    mpl_net_scope(net, "%s", "");
    x = down(self, conv(self, "first", x, self->channels, 3, 1), levels);
    for (int i = 0; i < 2; i++) {
        mpl_net_scope(net, "middle%d", i);
        x = residual(self, x, mpl_net_dim(net, x, 1));
        if (i == 0)
            x = attend(self, x);
    }
    x = up(self, x, levels);
    mpl_net_scope(net, "%s", "");
    x = conv(self, "last", active(self, "norm", x), 3, 3, 1);
    return net->args->train ? loss_of(net, x) : x;
}

static mpl_status build_unet(mpl_ctx *ctx, const mpl_zoo_args *args, mpl_graph **out)
{
    int64_t levels = mpl_zoo_arg(args, "levels"), image = mpl_zoo_arg(args, "image");
    unet u = {.batch = mpl_zoo_arg(args, "batch"),
              .channels = mpl_zoo_arg(args, "channels"),
              .blocks = mpl_zoo_arg(args, "blocks")};

    if (u.channels > GROUPS && u.channels % GROUPS != 0)
        return MPL_REFUSE(ctx, "unet: channels=%" PRId64 " is no multiple of %d", u.channels,
                          GROUPS);
    if (image % (1 << (levels - 1)) != 0)
        return MPL_REFUSE(ctx, "unet: image=%" PRId64 " is no multiple of %d", image,
                          1 << (levels - 1));
    u.net = mpl_net_begin(ctx, args);
    return mpl_net_end(&u.net, denoise(&u, levels), out);
}

MPL_ZOO(
    unet, "U-Net of a diffusion model (Ho et al. 2020), for CIFAR-10",
    MPL_PARAMS(MPL_PARAM_BATCH(1), MPL_PARAM_IMAGE(32, 8),
               {"channels", 128, 1, 65536, "of the first level; twice as many further down", NULL},
               {"levels", 4, 1, MOST_LEVELS, "sizes of image, each half of the one before", NULL},
               {"blocks", 2, 1, MOST_BLOCKS, "of a level, on the way down; one more on the way up",
                NULL}),
    build_unet, .own_loss = true);
