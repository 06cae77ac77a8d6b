/* detection.c -- Mask R-CNN: a residual network, a feature pyramid, a network that proposes
 * regions, heads that classify regions and predict boxes and masks.
 *
 * Source   K. He, G. Gkioxari, P. Dollar, R. Girshick, "Mask R-CNN", ICCV 2017; T.-Y. Lin et al.,
 *          "Feature Pyramid Networks for Object Detection", CVPR 2017. Layers, anchors and the
 *          sampling of regions as in the widely used implementation of 2017 on ResNet-101, which
 *          Owl's follows: strides on the first 1x1, a shared head for the proposals of all levels,
 *          one bilinear sample a bin, 7 x 7 bins for classes and boxes, 14 x 14 for masks.
 * Differs  There is no non-maximum suppression, since how many regions it keeps depends on the
 *          data: the `rois` best proposals and the `detections` best regions are kept by score,
 *          even if they overlap. Background and weak detections stay for the same reason. Sampling
 *          is complete: all levels lie in one table, and the row's number is computed, so each
 *          region reads its own level. Boxes grow at most 62.5 times (Detectron's bound), so that
 *          seeded weights give no infinity. Batch is 1.
 * Train    The loss is the paper's, a sum of five: softmax cross-entropy of the proposals' two
 *          classes and of the regions' classes, smooth L1 of the shifts of foreground anchors and
 *          of regions (of their true class; none for background), and sigmoid cross-entropy of
 *          masks (of their true class); each the mean over all rows or elements. Anchors and
 *          regions are not matched to objects here: the inputs anchor_class (0, 1), anchor_shifts,
 *          region_class, region_shifts, mask_class and mask give the matches, in the order of
 *          anchors, proposals and masked regions. As in the paper, no gradient flows through box
 *          positions or the selection of boxes.
 * Owl      form=owl takes layers apart as Owl does (owl_networks.c); `--optimise all` then matches
 *          Owl's optimiser. */
#include "graphs/zoo/net/zoo_priv.h"

#include <math.h>

enum {
    LEVELS = 5,
    SHARED = 4,
    CHANNELS = 256,
    SHAPES = 3
}; /* LEVELS: of the pyramid; SHARED: read by the heads; SHAPES: anchors a position */

/* The sides of boxes: columns of [n,1]. */
typedef struct boxes {
    mpl_value top, left, bottom, right;
} boxes;

typedef struct pyramid {
    mpl_value level[LEVELS];
    mpl_value table;           /* the first SHARED levels, one position a row */
    float side[SHARED];        /* [pixel] */
    int64_t first_row[SHARED]; /* of each level in the table */
} pyramid;

static mpl_value by_name(mpl_net *net, mpl_op_kind kind, const char *prefix, const char *name,
                         mpl_value a, mpl_value b)
{
    return mpl_net_binary(net, kind, mpl_net_text(net, "%s.%s", prefix, name), a, b);
}

static mpl_value reshape(mpl_net *net, const char *name, mpl_value x, uint32_t rank,
                         const int64_t *dim)
{
    return mpl_net_op(net, MPL_OP_reshape, name, 1, &x, 1, &MPL_INTS(shape, rank, dim));
}

static mpl_value transpose(mpl_net *net, const char *name, mpl_value x, const int64_t perm[4])
{
    return mpl_net_op(net, MPL_OP_transpose, name, 1, &x, 1, &MPL_INTS(perm, 4, perm));
}

static mpl_value gather(mpl_net *net, const char *name, mpl_value x, mpl_value index)
{
    return mpl_net_op(net, MPL_OP_gather, name, 2, (mpl_value[]){x, index}, 1, &MPL_INT(axis, 0));
}

static mpl_value cast(mpl_net *net, const char *name, mpl_value x)
{
    return mpl_net_op(net, MPL_OP_cast, name, 1, &x, 1, &MPL_TEXT(to, "i64"));
}

static mpl_value join(mpl_net *net, const char *name, uint32_t n, const mpl_value *in, int64_t axis)
{
    return mpl_net_op(net, MPL_OP_concat, name, n, in, 1, &MPL_INT(axis, axis));
}

/* Column k of [n, columns], as [n,1]. */
static mpl_value column(mpl_net *net, const char *name, mpl_value x, int64_t k)
{
    const int64_t start = k, end = k + 1, axis = 1;
    const mpl_attr attr[] = {MPL_INTS(starts, 1, &start), MPL_INTS(ends, 1, &end),
                             MPL_INTS(axes, 1, &axis)};

    return mpl_net_op(net, MPL_OP_slice, name, 1, &x, 3, attr);
}

static mpl_value clip(mpl_net *net, const char *name, mpl_value x, float least, float most)
{
    return mpl_net_op(net, MPL_OP_clip, name, 3,
                      (mpl_value[]){x,
                                    mpl_net_scalar(net, mpl_net_text(net, "%s.least", name), least),
                                    mpl_net_scalar(net, mpl_net_text(net, "%s.most", name), most)},
                      0, NULL);
}

/* The k largest elements of x [n] in *best, their positions in *where. */
static void best_of(mpl_net *net, const char *name, mpl_value x, int64_t k, mpl_value *best,
                    mpl_value *where)
{
    const char *const out_name[] = {mpl_net_scoped(net, mpl_net_text(net, "%s.best", name)),
                                    mpl_net_scoped(net, mpl_net_text(net, "%s.where", name))};
    mpl_value out[2] = {MPL_NONE, MPL_NONE};

    if (net->st == MPL_OK)
        net->st = mpl_graph_add_op(net->ctx, net->graph, MPL_OP_top_k, mpl_net_scoped(net, name), 1,
                                   &x, 1, &MPL_INT(k, k), 2, out_name, out);
    *best = out[0];
    *where = out[1];
}

static mpl_value softmax(mpl_net *net, const char *name, mpl_value x)
{
    return net->owl ? mpl_net_owl_softmax(net, name, x)
                    : mpl_net_unary(net, MPL_OP_softmax, name, x);
}

/* ---- the pyramid of features ---- */

/* x upsampled to twice its size, added to a level of the backbone. */
static mpl_value add_from_above(mpl_net *net, mpl_value x, mpl_value lateral)
{
    const int64_t sizes[] = {1, CHANNELS, mpl_net_dim(net, lateral, 2),
                             mpl_net_dim(net, lateral, 3)};
    const mpl_attr attr[] = {MPL_TEXT(mode, "nearest"), MPL_TEXT(coordinate_mode, "asymmetric"),
                             MPL_TEXT(nearest_mode, "floor"), MPL_INTS(sizes, 4, sizes)};

    x = mpl_net_op(net, MPL_OP_resize, "up", 1, &x, 4, attr);
    return mpl_net_binary(net, MPL_OP_sum, "sum", x, lateral);
}

/* Joins the positions of the first SHARED levels into one table, a row of channels each. */
static void make_table(mpl_net *net, pyramid *p)
{
    mpl_value rows[SHARED];
    int64_t n = 0;

    for (int i = 0; i < SHARED; i++) {
        int64_t side = mpl_net_dim(net, p->level[i], 2);

        mpl_net_scope(net, "table%d", i + 2);
        p->side[i] = (float)side;
        p->first_row[i] = n;
        rows[i] = transpose(net, "turned", p->level[i], (const int64_t[]){0, 2, 3, 1});
        rows[i] = reshape(net, "rows", rows[i], 2, (const int64_t[]){side * side, CHANNELS});
        n += side * side;
    }
    mpl_net_scope(net, "%s", "");
    p->table = join(net, "table", SHARED, rows, 0);
}

static void make_pyramid(mpl_net *net, pyramid *p)
{
    mpl_value stage[SHARED], x = MPL_NONE;

    mpl_net_resnet101(net, stage);
    for (int i = SHARED - 1; i >= 0; i--) {
        mpl_value lateral;

        mpl_net_scope(net, "fpn%d", i + 2);
        lateral = mpl_net_conv(net, "lateral", stage[i], CHANNELS, MPL_WINDOW(1, 1, 0), 1, true);
        stage[i] = x = i == SHARED - 1 ? lateral : add_from_above(net, x, lateral);
    }
    for (int i = 0; i < SHARED; i++) {
        mpl_net_scope(net, "fpn%d", i + 2);
        p->level[i] = mpl_net_conv(net, "conv", stage[i], CHANNELS, MPL_WINDOW(3, 1, 1), 1, true);
    }
    mpl_net_scope(net, "fpn6");
    p->level[SHARED] =
        mpl_net_pool(net, MPL_OP_max_pool, "pool", p->level[SHARED - 1], MPL_WINDOW(1, 2, 0));
    make_table(net, p);
}

/* ---- proposals ---- */

/* A convolution whose weights all levels share. */
typedef struct shared {
    mpl_value weight, bias;
    int64_t channels, kernel;
} shared;

static shared share(mpl_net *net, const char *name, int64_t in, int64_t out, int64_t kernel)
{
    shared s = {.channels = out, .kernel = kernel};
    const int64_t dim[] = {out, in, kernel, kernel}, bias[] = {1, out, 1, 1};
    const char *text = mpl_net_text(net, "%s.b", name);

    s.weight = mpl_net_weight(net, mpl_net_text(net, "%s.w", name), 4, dim);
    s.bias = net->owl ? mpl_net_weight(net, text, 4, bias) : mpl_net_weight(net, text, 1, &out);
    return s;
}

static mpl_value apply(mpl_net *net, const char *name, mpl_value x, const shared *s)
{
    const int64_t kernel[] = {s->kernel, s->kernel}, pad = s->kernel / 2,
                  pads[] = {pad, pad, pad, pad};
    const mpl_attr attr[] = {MPL_INTS(kernel_shape, 2, kernel), MPL_INTS(pads, 4, pads)};

    x = mpl_net_op(net, MPL_OP_conv, name, net->owl ? 2 : 3, (mpl_value[]){x, s->weight, s->bias},
                   2, attr);
    return net->owl ? by_name(net, MPL_OP_add, name, "add", x, s->bias) : x;
}

/* Reshapes [1, SHAPES * per, h, w] to a row of `per` numbers for each anchor. */
static mpl_value anchor_rows(mpl_net *net, const char *name, mpl_value x, int64_t per)
{
    int64_t n = mpl_net_dim(net, x, 2) * mpl_net_dim(net, x, 3) * SHAPES;

    x = transpose(net, mpl_net_text(net, "%s.turned", name), x, (const int64_t[]){0, 2, 3, 1});
    return reshape(net, mpl_net_text(net, "%s.rows", name), x, 2, (const int64_t[]){n, per});
}

/* Three shapes for each position of a level, from at[4] on; corners in fractions of the image. */
static float *level_anchors(float *at, int level, int64_t side, int64_t image)
{
    static const float ratio[SHAPES] = {0.5f, 1, 2}; /* width / height */
    float stride = (float)(4 << level), size = (float)(32 << level), whole = (float)image;

    for (int64_t y = 0; y < side; y++)
        for (int64_t x = 0; x < side; x++)
            for (int k = 0; k < SHAPES; k++, at += 4) {
                float half_height = size / sqrtf(ratio[k]) / 2,
                      half_width = size * sqrtf(ratio[k]) / 2;

                at[0] = ((float)y * stride - half_height) / whole;
                at[1] = ((float)x * stride - half_width) / whole;
                at[2] = ((float)y * stride + half_height) / whole;
                at[3] = ((float)x * stride + half_width) / whole;
            }
    return at;
}

static mpl_value all_anchors(mpl_net *net, const pyramid *p)
{
    int64_t image = mpl_zoo_arg(net->args, "image"), n = 0;
    float *data = NULL, *at;
    mpl_value v;

    for (int i = 0; i < LEVELS; i++)
        n += mpl_net_dim(net, p->level[i], 2) * mpl_net_dim(net, p->level[i], 3) * SHAPES;
    if (net->st == MPL_OK)
        net->st = mpl_new(net->ctx, data, (size_t)n * 4);
    at = data;
    for (int i = 0; i < LEVELS && net->st == MPL_OK; i++)
        at = level_anchors(at, i, mpl_net_dim(net, p->level[i], 2), image);
    v = mpl_net_data(net, "anchors", MPL_TYPE_f32, 2, (const int64_t[]){n, 4}, data);
    mpl_free(net->ctx, data);
    return v;
}

/* Scores (background, foreground) [n,2] and shifts [n,4] of all anchors, level by level; in
 * training also the logits of the scores. */
static void score_anchors(mpl_net *net, const pyramid *p, mpl_value *scores, mpl_value *shifts,
                          mpl_value *logits)
{
    mpl_value score[LEVELS], shift[LEVELS], logit[LEVELS];
    shared conv, class, box;

    mpl_net_scope(net, "rpn");
    conv = share(net, "conv", CHANNELS, 512, 3);
    class = share(net, "class", 512, 2 * SHAPES, 1);
    box = share(net, "box", 512, 4 * SHAPES, 1);
    for (int i = 0; i < LEVELS; i++) {
        mpl_value x;

        mpl_net_scope(net, "rpn%d", i + 2);
        x = mpl_net_unary(net, MPL_OP_relu, "relu", apply(net, "conv", p->level[i], &conv));
        logit[i] = anchor_rows(net, "class", apply(net, "class", x, &class), 2);
        score[i] = softmax(net, "prob", logit[i]);
        shift[i] = anchor_rows(net, "box", apply(net, "box", x, &box), 4);
    }
    mpl_net_scope(net, "rpn");
    *scores = join(net, "scores", LEVELS, score, 0);
    *shifts = join(net, "shifts", LEVELS, shift, 0);
    *logits = net->args->train ? join(net, "logits", LEVELS, logit, 0) : MPL_NONE;
}

/* Shifts and scales boxes along one axis: *new_least and *new_most, within [0, 1]. */
static void shift_side(mpl_net *net, const char *name, mpl_value least, mpl_value most,
                       mpl_value move, mpl_value stretch, mpl_value *new_least, mpl_value *new_most)
{
    mpl_value half = mpl_net_scalar(net, name, 0.5f), length, middle;

    length = by_name(net, MPL_OP_sub, name, "length", most, least);
    middle = by_name(net, MPL_OP_add, name, "middle", least,
                     by_name(net, MPL_OP_mul, name, "half", length, half));
    middle = by_name(net, MPL_OP_add, name, "moved", middle,
                     by_name(net, MPL_OP_mul, name, "move", move, length));
    stretch = clip(net, mpl_net_text(net, "%s.bounded", name), stretch, -logf(62.5f), logf(62.5f));
    stretch = mpl_net_unary(net, MPL_OP_exp, mpl_net_text(net, "%s.exp", name), stretch);
    length = by_name(net, MPL_OP_mul, name, "stretched", length, stretch);
    length = by_name(net, MPL_OP_mul, name, "half_length", length, half);
    *new_least = clip(net, mpl_net_text(net, "%s.from", name),
                      by_name(net, MPL_OP_sub, name, "least", middle, length), 0, 1);
    *new_most = clip(net, mpl_net_text(net, "%s.to", name),
                     by_name(net, MPL_OP_add, name, "most", middle, length), 0, 1);
}

/* Applies shifts [n,4] to boxes given by corners [n,4]. */
static boxes shift_boxes(mpl_net *net, mpl_value corners, mpl_value shifts)
{
    static const float deviation[] = {0.1f, 0.1f, 0.2f, 0.2f};
    boxes b;

    shifts = mpl_net_binary(
        net, MPL_OP_mul, "scaled", shifts,
        mpl_net_data(net, "deviation", MPL_TYPE_f32, 2, (const int64_t[]){1, 4}, deviation));
    shift_side(net, "y", column(net, "top", corners, 0), column(net, "bottom", corners, 2),
               column(net, "dy", shifts, 0), column(net, "dh", shifts, 2), &b.top, &b.bottom);
    shift_side(net, "x", column(net, "left", corners, 1), column(net, "right", corners, 3),
               column(net, "dx", shifts, 1), column(net, "dw", shifts, 3), &b.left, &b.right);
    return b;
}

static mpl_value corners_of(mpl_net *net, const boxes *b)
{
    return join(net, "corners", 4, (mpl_value[]){b->top, b->left, b->bottom, b->right}, 1);
}

/* Losses to be summed. */
typedef struct losses {
    mpl_value item[5];
    uint32_t n;
} losses;

/* [n,1]: 1 in rows of an object class, 0 in rows of the background. */
static mpl_value foreground(mpl_net *net, mpl_value class)
{
    const int64_t dim[] = {mpl_net_dim(net, class, 0), 1};
    mpl_value some =
        mpl_net_const(net, "background", MPL_TYPE_i64, &(mpl_shape){0, {0}}, &(int64_t){0});

    some = mpl_net_binary(net, MPL_OP_greater, "is_object", class, some);
    some = mpl_net_op(net, MPL_OP_cast, "object", 1, &some, 1, &MPL_TEXT(to, "f32"));
    return reshape(net, "object.dims", some, 2, dim);
}

/* Row i is part class[i] of row i of x [n,classes,..]. */
static mpl_value of_class(mpl_net *net, mpl_value x, mpl_value class)
{
    const int64_t n = mpl_net_dim(net, class, 0), dim[] = {n, 1};
    int64_t *number = NULL;
    mpl_value pair[2];

    if (net->st == MPL_OK)
        net->st = mpl_new(net->ctx, number, (size_t)n);
    for (int64_t i = 0; i < n && net->st == MPL_OK; i++)
        number[i] = i;
    pair[0] = mpl_net_data(net, "rows", MPL_TYPE_i64, 2, dim, number);
    mpl_free(net->ctx, number);
    pair[1] = reshape(net, "class.rows", class, 2, dim);
    return mpl_net_binary(net, MPL_OP_gather_nd, "right", x, join(net, "right.pairs", 2, pair, 1));
}

/* Adds the losses of class logits and of shifts [n,4] or [n,classes,4], against inputs. */
static void add_losses(mpl_net *net, const char *what, mpl_value logits, mpl_value shifts,
                       losses *l)
{
    const int64_t n = mpl_net_dim(net, logits, 0);
    mpl_value class, wanted, some;

    mpl_net_scope(net, "%s", "");
    class = mpl_net_numbers(net, mpl_net_text(net, "%s_class", what), 1, &n);
    wanted = mpl_net_input(net, mpl_net_text(net, "%s_shifts", what), 2, (const int64_t[]){n, 4});
    mpl_net_scope(net, "%s_loss", what);
    l->item[l->n++] = mpl_net_cross_entropy(net, "classes", logits, class);
    some = foreground(net, class);
    if (mpl_net_rank(net, shifts) == 3)
        shifts = of_class(net, shifts, class);
    l->item[l->n++] =
        mpl_net_smooth_l1(net, "shifts", mpl_net_binary(net, MPL_OP_mul, "said", shifts, some),
                          mpl_net_binary(net, MPL_OP_mul, "wanted", wanted, some));
}

static void add_mask_loss(mpl_net *net, mpl_value logits, losses *l)
{
    const int64_t n = mpl_net_dim(net, logits, 0);
    const int64_t dim[] = {n, mpl_net_dim(net, logits, 2), mpl_net_dim(net, logits, 3)};
    mpl_value class, wanted;

    mpl_net_scope(net, "%s", "");
    class = mpl_net_numbers(net, "mask_class", 1, &n);
    wanted = mpl_net_input(net, "mask", 3, dim);
    mpl_net_scope(net, "mask_loss");
    l->item[l->n++] = mpl_net_sigmoid_loss(net, "outlines", of_class(net, logits, class), wanted);
}

/* x; in training no gradient flows through it. */
static mpl_value fixed(mpl_net *net, const char *name, mpl_value x)
{
    return net->args->train ? mpl_net_stop(net, name, x) : x;
}

static boxes propose(mpl_net *net, const pyramid *p, losses *l)
{
    int64_t n;
    mpl_value scores, shifts, logits, best, where, anchors = all_anchors(net, p);

    score_anchors(net, p, &scores, &shifts, &logits);
    if (net->args->train)
        add_losses(net, "anchor", logits, shifts, l);
    n = mpl_net_dim(net, scores, 0);
    mpl_net_scope(net, "proposals");
    scores = fixed(net, "scores", scores);
    shifts = fixed(net, "all_shifts", shifts);
    scores = reshape(net, "foreground.flat", column(net, "foreground", scores, 1), 1, &n);
    best_of(net, "top", scores, mpl_zoo_arg(net->args, "rois"), &best, &where);
    return shift_boxes(net, gather(net, "anchors", anchors, where),
                       gather(net, "shifts", shifts, where));
}

/* ---- regions: bilinear samples of one level ---- */

/* The level that a box reads, from 0: 2 at 224 pixels, one higher for each doubling of its side. */
static mpl_value level_of(mpl_net *net, const boxes *b)
{
    float image = (float)mpl_zoo_arg(net->args, "image");
    mpl_value area, x;

    area = mpl_net_binary(net, MPL_OP_mul, "area",
                          mpl_net_binary(net, MPL_OP_sub, "height", b->bottom, b->top),
                          mpl_net_binary(net, MPL_OP_sub, "width", b->right, b->left));
    x = mpl_net_unary(net, MPL_OP_log, "area.log", clip(net, "area.some", area, 1e-12f, 1));
    x = mpl_net_binary(net, MPL_OP_mul, "doublings", x,
                       mpl_net_scalar(net, "half_log2", 0.5f / logf(2)));
    x = mpl_net_binary(net, MPL_OP_add, "above", x,
                       mpl_net_scalar(net, "third", 2 + log2f(image / 224)));
    return cast(net, "level",
                clip(net, "near", mpl_net_unary(net, MPL_OP_round, "rounded", x), 0, SHARED - 1));
}

/* Samples along one axis of boxes: the positions on either side, and the fraction between. */
typedef struct samples {
    mpl_value first, second; /* i64 */
    mpl_value part;
} samples;

/* `bins` samples from least to most, ends included; dims [n,bins,1] down, [n,1,bins] across. */
static samples sample_side(mpl_net *net, const char *name, mpl_value least, mpl_value most,
                           mpl_value last, int64_t bins, bool down)
{
    int64_t n = mpl_net_dim(net, least, 0), dim[] = {n, down ? bins : 1, down ? 1 : bins};
    float step[32];
    samples s;
    mpl_value at, low;

    for (int64_t i = 0; i < bins; i++)
        step[i] = (float)i / (float)(bins - 1);
    at = mpl_net_data(net, mpl_net_text(net, "%s.steps", name), MPL_TYPE_f32, 2,
                      (const int64_t[]){1, bins}, step);
    at = by_name(net, MPL_OP_mul, name, "spread",
                 by_name(net, MPL_OP_sub, name, "length", most, least), at);
    at = by_name(net, MPL_OP_mul, name, "at", by_name(net, MPL_OP_add, name, "moved", at, least),
                 last);
    low = mpl_net_unary(net, MPL_OP_floor, mpl_net_text(net, "%s.low", name), at);
    s.part = reshape(net, mpl_net_text(net, "%s.part.dims", name),
                     by_name(net, MPL_OP_sub, name, "part", at, low), 3, dim);
    at = by_name(net, MPL_OP_add, name, "next", low,
                 mpl_net_scalar(net, mpl_net_text(net, "%s.one", name), 1));
    s.first = cast(net, mpl_net_text(net, "%s.first", name), low);
    s.second = cast(net, mpl_net_text(net, "%s.second", name),
                    by_name(net, MPL_OP_min, name, "high", at, last));
    s.first = reshape(net, mpl_net_text(net, "%s.first.dims", name), s.first, 3, dim);
    s.second = reshape(net, mpl_net_text(net, "%s.second.dims", name), s.second, 3, dim);
    return s;
}

/* a + (b - a) part */
static mpl_value between(mpl_net *net, const char *name, mpl_value a, mpl_value b, mpl_value part)
{
    return by_name(net, MPL_OP_add, name, "between", a,
                   by_name(net, MPL_OP_mul, name, "scaled",
                           by_name(net, MPL_OP_sub, name, "step", b, a), part));
}

/* Interpolates table rows between two columns on one line of samples. */
static mpl_value read_line(mpl_net *net, const char *name, mpl_value table, mpl_value line,
                           const samples *across)
{
    mpl_value first, second, dims = MPL_NONE;
    const int64_t axis = -1;

    first = by_name(net, MPL_OP_add, name, "first", line, across->first);
    second = by_name(net, MPL_OP_add, name, "second", line, across->second);
    first = gather(net, mpl_net_text(net, "%s.first.rows", name), table, first);
    second = gather(net, mpl_net_text(net, "%s.second.rows", name), table, second);
    dims = mpl_net_op(net, MPL_OP_unsqueeze, mpl_net_text(net, "%s.part", name), 1, &across->part,
                      1, &MPL_INTS(axes, 1, &axis));
    return between(net, name, first, second, dims);
}

/* The features under the boxes [n, CHANNELS, bins, bins]. */
static mpl_value read_regions(mpl_net *net, const pyramid *p, const boxes *b, int64_t bins)
{
    static const int64_t axis = -1;
    const int64_t n_levels = SHARED, cube[] = {mpl_net_dim(net, b->top, 0), 1, 1};
    mpl_value level = level_of(net, b), side, last, first_row, upper, lower, part;
    samples down, across;

    side =
        gather(net, "side", mpl_net_data(net, "sides", MPL_TYPE_f32, 1, &n_levels, p->side), level);
    last = mpl_net_binary(net, MPL_OP_sub, "last", side, mpl_net_scalar(net, "one", 1));
    first_row = gather(net, "base",
                       mpl_net_data(net, "bases", MPL_TYPE_i64, 1, &n_levels, p->first_row), level);
    first_row = reshape(net, "base.dims", first_row, 3, cube);
    down = sample_side(net, "y", b->top, b->bottom, last, bins, true);
    across = sample_side(net, "x", b->left, b->right, last, bins, false);
    side = reshape(net, "side.dims", cast(net, "side.whole", side), 3, cube);
    upper = by_name(net, MPL_OP_add, "upper", "line",
                    by_name(net, MPL_OP_mul, "upper", "y", down.first, side), first_row);
    lower = by_name(net, MPL_OP_add, "lower", "line",
                    by_name(net, MPL_OP_mul, "lower", "y", down.second, side), first_row);
    upper = read_line(net, "upper", p->table, upper, &across);
    lower = read_line(net, "lower", p->table, lower, &across);
    part = mpl_net_op(net, MPL_OP_unsqueeze, "part", 1, &down.part, 1, &MPL_INTS(axes, 1, &axis));
    return transpose(net, "region", between(net, "sample", upper, lower, part),
                     (const int64_t[]){0, 3, 1, 2});
}

/* ---- heads ---- */

static const double epsilon = 1e-3;

static mpl_value conv_relu(mpl_net *net, const char *name, mpl_value x, int64_t channels,
                           mpl_window w)
{
    return mpl_net_conv_relu(net, name, x, channels, w, epsilon);
}

/* Class probabilities [rois, classes], their logits, and shifts [rois, classes, 4]. */
static void classify(mpl_net *net, mpl_value regions, mpl_value *prob, mpl_value *logits,
                     mpl_value *shifts)
{
    int64_t n = mpl_net_dim(net, regions, 0), classes = mpl_zoo_arg(net->args, "classes");
    mpl_value x = conv_relu(net, "whole", regions, 1024, MPL_WINDOW(7, 1, 0));

    x = conv_relu(net, "mixed", x, 1024, MPL_WINDOW(1, 1, 0));
    x = mpl_net_flatten(net, "flat", x);
    *logits = mpl_net_dense(net, "class", x, classes);
    *prob = softmax(net, "prob", *logits);
    *shifts = reshape(net, "shifts", mpl_net_dense(net, "box", x, 4 * classes), 3,
                      (const int64_t[]){n, classes, 4});
}

/* The best regions, shifted as their classes require; *found: rows of corners, score and class. */
static boxes detect(mpl_net *net, const boxes *rois, mpl_value prob, mpl_value shifts,
                    mpl_value *found)
{
    static const int64_t axis = 1;
    const mpl_attr axes[] = {MPL_INT(keepdims, 0), MPL_INTS(axes, 1, &axis)};
    const mpl_attr over[] = {MPL_INT(axis, 1), MPL_INT(keepdims, 0)};
    int64_t n = mpl_zoo_arg(net->args, "detections"), one[] = {n, 1};
    mpl_value best, where, class, pair[2], corners;
    boxes b;

    best_of(net, "top", mpl_net_op(net, MPL_OP_reduce_max, "score", 1, &prob, 2, axes), n, &best,
            &where);
    class =
        gather(net, "class", mpl_net_op(net, MPL_OP_arg_max, "classes", 1, &prob, 2, over), where);
    pair[0] = reshape(net, "where.dims", where, 2, one);
    pair[1] = reshape(net, "class.dims", class, 2, one);
    shifts =
        mpl_net_binary(net, MPL_OP_gather_nd, "shifts", shifts, join(net, "pairs", 2, pair, 1));
    b = shift_boxes(net, gather(net, "rois", corners_of(net, rois), where), shifts);
    corners = join(net, "boxes", 4, (mpl_value[]){b.top, b.left, b.bottom, b.right}, 1);
    class = mpl_net_op(net, MPL_OP_cast, "class.number", 1, &pair[1], 1, &MPL_TEXT(to, "f32"));
    *found = join(net, "found", 3,
                  (mpl_value[]){corners, reshape(net, "best.dims", best, 2, one), class}, 1);
    return b;
}

/* A mask of each region for each class, before the sigmoid. */
static mpl_value outline(mpl_net *net, mpl_value x)
{
    static const int64_t two[] = {2, 2};
    const mpl_attr attr[] = {MPL_INTS(kernel_shape, 2, two), MPL_INTS(strides, 2, two)};
    const int64_t dim[] = {CHANNELS, CHANNELS, 2, 2}, channels = CHANNELS,
                  bias[] = {1, CHANNELS, 1, 1};
    mpl_value in[] = {MPL_NONE, MPL_NONE, MPL_NONE};

    for (int i = 1; i <= 4; i++)
        x = conv_relu(net, mpl_net_text(net, "conv%d", i), x, CHANNELS, MPL_WINDOW(3, 1, 1));
    in[0] = x;
    in[1] = mpl_net_weight(net, "up.w", 4, dim);
    in[2] =
        net->owl ? mpl_net_weight(net, "up.b", 4, bias) : mpl_net_weight(net, "up.b", 1, &channels);
    x = mpl_net_op(net, MPL_OP_conv_transpose, "up", net->owl ? 2 : 3, in, 2, attr);
    if (net->owl)
        x = mpl_net_binary(net, MPL_OP_add, "up.add", x, in[2]);
    x = mpl_net_unary(net, MPL_OP_relu, "up.relu", x);
    return mpl_net_conv(net, "classes", x, mpl_zoo_arg(net->args, "classes"), MPL_WINDOW(1, 1, 0),
                        1, true);
}

static mpl_status build(mpl_ctx *ctx, const mpl_zoo_args *args, mpl_graph **out)
{
    mpl_net net = mpl_net_begin(ctx, args);
    pyramid p;
    boxes rois, best;
    mpl_value regions, prob, logits, shifts, found, masks;
    losses l = {.n = 0};

    net.owl = mpl_zoo_arg(args, "form") == 1;
    make_pyramid(&net, &p);
    rois = propose(&net, &p, &l);
    mpl_net_scope(&net, "rois");
    regions = read_regions(&net, &p, &rois, 7);
    mpl_net_scope(&net, "head");
    classify(&net, regions, &prob, &logits, &shifts);
    if (args->train)
        add_losses(&net, "region", logits, shifts, &l);
    mpl_net_scope(&net, "detections");
    best =
        detect(&net, &rois, fixed(&net, "prob", prob), fixed(&net, "all_shifts", shifts), &found);
    mpl_net_scope(&net, "mask_rois");
    regions = read_regions(&net, &p, &best, 14);
    mpl_net_scope(&net, "mask");
    masks = outline(&net, regions);
    if (args->train) {
        add_mask_loss(&net, masks, &l);
        mpl_net_scope(&net, "%s", "");
        return mpl_net_end(&net, mpl_net_op(&net, MPL_OP_sum, "loss", l.n, l.item, 0, NULL), out);
    }
    masks = mpl_net_unary(&net, MPL_OP_sigmoid, "masks", masks);
    if (net.st == MPL_OK)
        net.st = mpl_graph_add_output(ctx, net.graph, found);
    return mpl_net_end(&net, masks, out);
}

MPL_ZOO(mask_rcnn,
        "Mask R-CNN on ResNet-101 and a feature pyramid (He et al. 2017), without non-maximum "
        "suppression",
        MPL_PARAMS({"batch", 1, 1, 1, "images at once", NULL}, MPL_PARAM_IMAGE(768, 64),
                   MPL_PARAM_CLASSES(81),
                   {"rois", 1000, 1, 100000, "proposals that go on to the heads", NULL},
                   {"detections", 100, 1, 100000,
                    "regions that are outlined; at most as many as rois", NULL},
                   MPL_PARAM_FORM),
        build, .own_loss = true);
