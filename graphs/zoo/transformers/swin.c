/* swin.c -- attention within windows of an image, shifted in every second layer.
 *
 * Source   Z. Liu et al., "Swin Transformer: Hierarchical Vision Transformer using Shifted
 * Windows", ICCV 2021; T: 96 features, layers 2, 2, 6, 2, heads 3, 6, 12, 24, windows of 7 x 7, 28
 *          million parameters.
 * Differs  No dropout. Where `window` does not divide a stage's height, its windows have the
 * largest size below that does. The four neighbours that a stage merges come by one transposition.
 */
#include "graphs/zoo/transformers/transformer_priv.h"

#include <math.h>

enum { STAGES = 4, PATCH = 4 };

static const double epsilon = 1e-5;

/* One stage: its image of tokens, its windows, and what its layers share. */
typedef struct stage {
    mpl_net *net;
    int64_t batch, side, features, heads;
    int64_t window, shift; /* shift 0: one window is the whole image */
    mpl_value index;       /* i64 [tokens of a window^2]: the row of the table of distances */
    mpl_value allowed;     /* of shifted windows; see add_allowed */
} stage;

static int64_t tokens_of(const stage *self)
{
    return self->window * self->window;
}

/* Row of the table for each pair of tokens of a window. */
static void add_index(stage *self)
{
    int64_t n = tokens_of(self), w = self->window, *row = NULL;
    mpl_net *net = self->net;

    self->index = MPL_NONE;
    if (net->st == MPL_OK)
        net->st = mpl_new(net->ctx, row, (size_t)(n * n));
    if (net->st != MPL_OK)
        return;
    for (int64_t i = 0; i < n; i++)
        for (int64_t k = 0; k < n; k++)
            row[i * n + k] = (i / w - k / w + w - 1) * (2 * w - 1) + (i % w - k % w + w - 1);
    self->index = mpl_net_data(net, "distance", MPL_TYPE_i64, 1, (int64_t[]){n * n}, row);
    mpl_free(net->ctx, row);
}

/* Which of the three parts between the image's borders a shifted coordinate lies in. */
static int64_t part_of(const stage *self, int64_t at)
{
    return (at >= self->side - self->window) + (at >= self->side - self->shift);
}

/* bool [batch * windows, 1, n, n]: tokens of a shifted window that were neighbours before. */
static void add_allowed(stage *self)
{
    int64_t n = tokens_of(self), w = self->window, across = self->side / w,
            windows = self->batch * across * across;
    uint8_t *allowed = NULL;
    mpl_net *net = self->net;

    self->allowed = MPL_NONE;
    if (net->st == MPL_OK && self->shift > 0)
        net->st = mpl_new(net->ctx, allowed, (size_t)(windows * n * n));
    if (net->st != MPL_OK || self->shift == 0)
        return;
    for (int64_t at = 0; at < windows * n * n; at++) {
        int64_t y = at / (n * n) / across % across * w, x = at / (n * n) % across * w;
        int64_t i = at / n % n, k = at % n;

        allowed[at] = part_of(self, y + i / w) == part_of(self, y + k / w) &&
                      part_of(self, x + i % w) == part_of(self, x + k % w);
    }
    self->allowed =
        mpl_net_data(net, "neighbours", MPL_TYPE_bool, 4, (int64_t[]){windows, 1, n, n}, allowed);
    mpl_free(net->ctx, allowed);
}

/* [batch, side, side, features] moved by `by` rows and columns up and left, around the border. */
static mpl_value rolled(const stage *self, const char *name, mpl_value x, int64_t by)
{
    mpl_net *net = self->net;

    for (int64_t axis = 1; axis <= 2; axis++) {
        const char *what = mpl_net_text(net, "%s.%s", name, axis == 1 ? "rows" : "columns");
        mpl_value head = mpl_net_slice(net, mpl_net_text(net, "%s.head", what), x, axis, 0, by);
        mpl_value tail =
            mpl_net_slice(net, mpl_net_text(net, "%s.tail", what), x, axis, by, self->side);

        x = mpl_net_join(net, what, axis, tail, head);
    }
    return x;
}

/* Rows of the image to rows of its windows, or back. */
static mpl_value regroup(const stage *self, const char *name, mpl_value x, bool to_windows)
{
    int64_t w = self->window, n = self->side / w;
    int64_t dim[] = {self->batch, n, to_windows ? w : n, to_windows ? n : w, w, self->features};

    x = mpl_net_reshape(self->net, mpl_net_text(self->net, "%s.cut", name), x, 6, dim);
    return mpl_net_transpose(self->net, name, x, "013245");
}

static mpl_value as_image(const stage *self, const char *name, mpl_value x)
{
    return mpl_net_reshape(self->net, name, x, 4,
                           (int64_t[]){self->batch, self->side, self->side, self->features});
}

static mpl_value as_rows(const stage *self, const char *name, mpl_value x)
{
    return mpl_net_reshape(self->net, name, x, 2,
                           (int64_t[]){self->batch * self->side * self->side, self->features});
}

/* [heads, n, n], added to the scores. */
static mpl_value position_bias(const stage *self)
{
    int64_t n = tokens_of(self), most = 2 * self->window - 1;
    mpl_value table =
        mpl_net_weight(self->net, "distance.w", 2, (int64_t[]){most * most, self->heads});
    mpl_value x = mpl_net_gather(self->net, "distance.each", table, self->index);

    x = mpl_net_reshape(self->net, "distance.pairs", x, 3, (int64_t[]){n, n, self->heads});
    return mpl_net_transpose(self->net, "distance.bias", x, "201");
}

static mpl_value attend(const stage *self, mpl_value x, bool shifted)
{
    mpl_net *net = self->net;
    int64_t across = self->side / self->window;
    mpl_heads h = {self->batch * across * across, self->heads, self->features / self->heads};
    mpl_scores scores = {(float)(1 / sqrt((double)h.width)), MPL_NONE,
                         shifted ? self->allowed : MPL_NONE};
    mpl_value part[3];

    if (shifted)
        x = rolled(self, "shifted", as_image(self, "image", x), self->shift);
    x = as_rows(self, "windows.rows", regroup(self, "windows", x, true));
    mpl_net_qkv(net, x, &h, part);
    scores.add = position_bias(self);
    x = mpl_net_attend(net, part[0], mpl_net_transpose(net, "k.turned", part[1], "0132"), part[2],
                       &h, &scores);
    x = regroup(self, "image.back", mpl_net_linear(net, "out", x, self->features, true), false);
    if (shifted)
        x = rolled(self, "unshifted", as_image(self, "shifted.back", x), self->side - self->shift);
    return as_rows(self, "image.rows", x);
}

static mpl_value layer_of(const stage *self, mpl_value x, bool shifted)
{
    mpl_net *net = self->net;
    mpl_value y = attend(self, mpl_net_layer_norm(net, "norm1", x, epsilon), shifted);

    x = mpl_net_binary(net, MPL_OP_add, "add1", x, y);
    y = mpl_net_layer_norm(net, "norm2", x, epsilon);
    return mpl_net_binary(net, MPL_OP_add, "add2", x,
                          mpl_net_feed_forward(net, y, 4 * self->features, MPL_OP_gelu, true));
}

/* Four neighbours become one token of twice the features. */
static mpl_value merge(stage *self, mpl_value x)
{
    int64_t side = self->side / 2, rows = self->batch * side * side;

    x = mpl_net_reshape(self->net, "pairs", x, 6,
                        (int64_t[]){self->batch, side, 2, side, 2, self->features});
    x = mpl_net_transpose(self->net, "four", x, "013425");
    x = mpl_net_reshape(self->net, "four.rows", x, 2, (int64_t[]){rows, 4 * self->features});
    x = mpl_net_layer_norm(self->net, "norm", x, epsilon);
    self->side = side;
    self->features *= 2;
    self->heads *= 2;
    return mpl_net_linear(self->net, "reduced", x, self->features, false);
}

static mpl_value stage_of(stage *self, mpl_value x, int number, int64_t layers)
{
    mpl_net_scope(self->net, "stage%d", number);
    if (number > 1)
        x = merge(self, x);
    for (self->window = mpl_zoo_arg(self->net->args, "window"); self->side % self->window != 0;)
        self->window--;
    self->shift = self->side > self->window ? self->window / 2 : 0;
    add_index(self);
    add_allowed(self);
    for (int64_t i = 0; i < layers; i++) {
        mpl_net_scope(self->net, "stage%d.layer%" PRId64, number, i);
        x = layer_of(self, x, i % 2 == 1 && self->shift > 0);
    }
    return x;
}

static mpl_status build_swin(mpl_ctx *ctx, const mpl_zoo_args *args, mpl_graph **out)
{
    int64_t image = mpl_zoo_arg(args, "image"), least = PATCH << (STAGES - 1);
    mpl_net net;
    stage s = {.net = &net,
               .batch = mpl_zoo_arg(args, "batch"),
               .side = image / PATCH,
               .features = mpl_zoo_arg(args, "hidden"),
               .heads = mpl_zoo_arg(args, "heads")};
    mpl_value x;

    MPL_PASS(mpl_zoo_divides(ctx, args, "heads", "hidden"));
    if (image % least != 0)
        return MPL_REFUSE(ctx, "swin: image=%" PRId64 " is no multiple of %" PRId64, image, least);
    net = mpl_net_begin(ctx, args);
    x = mpl_net_conv(&net, "patch", mpl_net_image(&net, 3), s.features, MPL_WINDOW(PATCH, PATCH, 0),
                     1, true);
    x = as_rows(&s, "patch.rows", mpl_net_transpose(&net, "patch.tokens", x, "0231"));
    x = mpl_net_layer_norm(&net, "patch.norm", x, epsilon);
    for (int i = 1; i <= STAGES; i++)
        x = stage_of(&s, x, i, i == 3 ? mpl_zoo_arg(args, "layers") : 2);
    mpl_net_scope(&net, "%s", "");
    x = mpl_net_layer_norm(&net, "norm", x, epsilon);
    x = mpl_net_reshape(&net, "tokens", x, 3, (int64_t[]){s.batch, s.side * s.side, s.features});
    x = mpl_net_op(
        &net, MPL_OP_reduce_mean, "mean", 1, &x, 2,
        (const mpl_attr[]){MPL_INTS(axes, 1, ((const int64_t[]){1})), MPL_INT(keepdims, 0)});
    return mpl_net_end(&net, mpl_net_linear(&net, "logits", x, mpl_zoo_arg(args, "classes"), true),
                       out);
}

MPL_ZOO(swin, "attention in shifted windows (Liu et al. 2021), T",
        MPL_PARAMS(MPL_PARAM_BATCH(1), MPL_PARAM_IMAGE(224, 32),
                   {"window", 7, 1, 64, "height and width of a window [token]", NULL},
                   {"layers", 6, 1, 100000, "of the third stage; the others have 2", NULL},
                   {"hidden", 96, 1, 65536, "features of a token of the first stage", NULL},
                   {"heads", 3, 1, 1024, "of the first stage; they divide hidden", NULL},
                   MPL_PARAM_CLASSES(1000)),
        build_swin);
