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

static int64_t tokens_of(const stage *s)
{
    return s->window * s->window;
}

/* Row of the table for each pair of tokens of a window. */
static void add_index(stage *s)
{
    int64_t n = tokens_of(s), w = s->window, *row = NULL;
    mpl_net *net = s->net;

    s->index = MPL_NONE;
    if (net->st == MPL_OK)
        net->st = mpl_new(net->ctx, row, (size_t)(n * n));
    if (net->st != MPL_OK)
        return;
    for (int64_t i = 0; i < n; i++)
        for (int64_t k = 0; k < n; k++)
            row[i * n + k] = (i / w - k / w + w - 1) * (2 * w - 1) + (i % w - k % w + w - 1);
    s->index = mpl_net_data(net, "distance", MPL_TYPE_i64, 1, (int64_t[]){n * n}, row);
    mpl_free(net->ctx, row);
}

/* Which of the three parts between the image's borders a shifted coordinate lies in. */
static int64_t part_of(const stage *s, int64_t at)
{
    return (at >= s->side - s->window) + (at >= s->side - s->shift);
}

/* bool [batch * windows, 1, n, n]: tokens of a shifted window that were neighbours before. */
static void add_allowed(stage *s)
{
    int64_t n = tokens_of(s), w = s->window, across = s->side / w,
            windows = s->batch * across * across;
    uint8_t *allowed = NULL;
    mpl_net *net = s->net;

    s->allowed = MPL_NONE;
    if (net->st == MPL_OK && s->shift > 0)
        net->st = mpl_new(net->ctx, allowed, (size_t)(windows * n * n));
    if (net->st != MPL_OK || s->shift == 0)
        return;
    for (int64_t at = 0; at < windows * n * n; at++) {
        int64_t y = at / (n * n) / across % across * w, x = at / (n * n) % across * w;
        int64_t i = at / n % n, k = at % n;

        allowed[at] = part_of(s, y + i / w) == part_of(s, y + k / w) &&
                      part_of(s, x + i % w) == part_of(s, x + k % w);
    }
    s->allowed =
        mpl_net_data(net, "neighbours", MPL_TYPE_bool, 4, (int64_t[]){windows, 1, n, n}, allowed);
    mpl_free(net->ctx, allowed);
}

/* [batch, side, side, features] moved by `by` rows and columns up and left, around the border. */
static mpl_value rolled(const stage *s, const char *name, mpl_value x, int64_t by)
{
    mpl_net *net = s->net;

    for (int64_t axis = 1; axis <= 2; axis++) {
        const char *what = mpl_net_text(net, "%s.%s", name, axis == 1 ? "rows" : "columns");
        mpl_value head = mpl_net_slice(net, mpl_net_text(net, "%s.head", what), x, axis, 0, by);
        mpl_value tail =
            mpl_net_slice(net, mpl_net_text(net, "%s.tail", what), x, axis, by, s->side);

        x = mpl_net_join(net, what, axis, tail, head);
    }
    return x;
}

/* Rows of the image to rows of its windows, or back. */
static mpl_value regroup(const stage *s, const char *name, mpl_value x, bool to_windows)
{
    int64_t w = s->window, n = s->side / w;
    int64_t dim[] = {s->batch, n, to_windows ? w : n, to_windows ? n : w, w, s->features};

    x = mpl_net_reshape(s->net, mpl_net_text(s->net, "%s.cut", name), x, 6, dim);
    return mpl_net_transpose(s->net, name, x, "013245");
}

static mpl_value as_image(const stage *s, const char *name, mpl_value x)
{
    return mpl_net_reshape(s->net, name, x, 4,
                           (int64_t[]){s->batch, s->side, s->side, s->features});
}

static mpl_value as_rows(const stage *s, const char *name, mpl_value x)
{
    return mpl_net_reshape(s->net, name, x, 2,
                           (int64_t[]){s->batch * s->side * s->side, s->features});
}

/* [heads, n, n], added to the scores. */
static mpl_value position_bias(const stage *s)
{
    int64_t n = tokens_of(s), most = 2 * s->window - 1;
    mpl_value table = mpl_net_weight(s->net, "distance.w", 2, (int64_t[]){most * most, s->heads});
    mpl_value x = mpl_net_gather(s->net, "distance.each", table, s->index);

    x = mpl_net_reshape(s->net, "distance.pairs", x, 3, (int64_t[]){n, n, s->heads});
    return mpl_net_transpose(s->net, "distance.bias", x, "201");
}

static mpl_value attend(const stage *s, mpl_value x, bool shifted)
{
    mpl_net *net = s->net;
    int64_t across = s->side / s->window;
    mpl_heads h = {s->batch * across * across, s->heads, s->features / s->heads};
    mpl_scores scores = {(float)(1 / sqrt((double)h.width)), MPL_NONE,
                         shifted ? s->allowed : MPL_NONE};
    mpl_value part[3];

    if (shifted)
        x = rolled(s, "shifted", as_image(s, "image", x), s->shift);
    x = as_rows(s, "windows.rows", regroup(s, "windows", x, true));
    mpl_net_qkv(net, x, &h, part);
    scores.add = position_bias(s);
    x = mpl_net_attend(net, part[0], mpl_net_transpose(net, "k.turned", part[1], "0132"), part[2],
                       &h, &scores);
    x = regroup(s, "image.back", mpl_net_linear(net, "out", x, s->features, true), false);
    if (shifted)
        x = rolled(s, "unshifted", as_image(s, "shifted.back", x), s->side - s->shift);
    return as_rows(s, "image.rows", x);
}

static mpl_value layer_of(const stage *s, mpl_value x, bool shifted)
{
    mpl_net *net = s->net;
    mpl_value y = attend(s, mpl_net_layer_norm(net, "norm1", x, epsilon), shifted);

    x = mpl_net_binary(net, MPL_OP_add, "add1", x, y);
    y = mpl_net_layer_norm(net, "norm2", x, epsilon);
    return mpl_net_binary(net, MPL_OP_add, "add2", x,
                          mpl_net_feed_forward(net, y, 4 * s->features, MPL_OP_gelu, true));
}

/* Four neighbours become one token of twice the features. */
static mpl_value merge(stage *s, mpl_value x)
{
    int64_t side = s->side / 2, rows = s->batch * side * side;

    x = mpl_net_reshape(s->net, "pairs", x, 6,
                        (int64_t[]){s->batch, side, 2, side, 2, s->features});
    x = mpl_net_transpose(s->net, "four", x, "013425");
    x = mpl_net_reshape(s->net, "four.rows", x, 2, (int64_t[]){rows, 4 * s->features});
    x = mpl_net_layer_norm(s->net, "norm", x, epsilon);
    s->side = side;
    s->features *= 2;
    s->heads *= 2;
    return mpl_net_linear(s->net, "reduced", x, s->features, false);
}

static mpl_value stage_of(stage *s, mpl_value x, int number, int64_t layers)
{
    mpl_net_scope(s->net, "stage%d", number);
    if (number > 1)
        x = merge(s, x);
    for (s->window = mpl_zoo_arg(s->net->args, "window"); s->side % s->window != 0;)
        s->window--;
    s->shift = s->side > s->window ? s->window / 2 : 0;
    add_index(s);
    add_allowed(s);
    for (int64_t i = 0; i < layers; i++) {
        mpl_net_scope(s->net, "stage%d.layer%" PRId64, number, i);
        x = layer_of(s, x, i % 2 == 1 && s->shift > 0);
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
