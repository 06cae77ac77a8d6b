/* encoders.c -- bert and vit: stacks of layers that look both ways, with a classifier on the first
 * token.
 *
 * Source   bert: J. Devlin et al., "BERT: Pre-training of Deep Bidirectional Transformers for
 *          Language Understanding", NAACL 2019; base: 12 layers, 768 features, 12 heads, 30522
 *          words, 110 million parameters. vit: A. Dosovitskiy et al., "An Image is Worth 16x16
 *          Words", ICLR 2021; B/16, 86 million parameters.
 * Differs  No dropout. bert: the inputs are words, segments, and a row added to the scores (0, or
 *          very low for padding); the head is the pooler and a classifier of `classes`. */
#include "graphs/zoo/transformers/transformer_priv.h"

#include <math.h>

enum { BERT_POSITIONS = 512, BERT_SEGMENTS = 2 };

static const double bert_epsilon = 1e-12, vit_epsilon = 1e-6;

/* Token 0 of each sequence: [batch, features]. */
static mpl_value first_token(mpl_net *net, mpl_value x, int64_t batch)
{
    int64_t features = mpl_net_dim(net, x, 1);

    x = mpl_net_reshape(net, "tokens", x, 3,
                        (int64_t[]){batch, mpl_net_dim(net, x, 0) / batch, features});
    return mpl_net_reshape(net, "first", mpl_net_slice(net, "first.part", x, 1, 0, 1), 2,
                           (int64_t[]){batch, features});
}

static mpl_heads heads_of(const mpl_zoo_args *args)
{
    int64_t heads = mpl_zoo_arg(args, "heads");

    return (mpl_heads){mpl_zoo_arg(args, "batch"), heads, mpl_zoo_arg(args, "hidden") / heads};
}

/* out(attention of x to itself) */
static mpl_value attend(mpl_net *net, mpl_value x, const mpl_heads *heads, const mpl_scores *scores)
{
    int64_t hidden = heads->heads * heads->width;
    mpl_value q, k, v;

    q = mpl_net_split_heads(net, "q", mpl_net_linear(net, "q", x, hidden, true), heads, false);
    k = mpl_net_split_heads(net, "k", mpl_net_linear(net, "k", x, hidden, true), heads, true);
    v = mpl_net_split_heads(net, "v", mpl_net_linear(net, "v", x, hidden, true), heads, false);
    return mpl_net_linear(net, "out", mpl_net_attend(net, q, k, v, heads, scores), hidden, true);
}

/* ---- bert ---- */

/* Words, positions and segments, added and normalised: rows. */
static mpl_value bert_embed(mpl_net *net, int64_t batch, int64_t seq, int64_t hidden)
{
    mpl_value ids = mpl_net_numbers(net, "ids", 2, (int64_t[]){batch, seq}), kinds, x, at;

    kinds = mpl_net_numbers(net, "segments", 2, (int64_t[]){batch, seq});
    mpl_net_scope(net, "embed");
    x = mpl_net_weight(net, "word.w", 2, (int64_t[]){mpl_zoo_arg(net->args, "vocab"), hidden});
    at = mpl_net_weight(net, "position.w", 2, (int64_t[]){BERT_POSITIONS, hidden});
    x = mpl_net_gather(net, "word", x, ids);
    x = mpl_net_binary(
        net, MPL_OP_add, "typed", x,
        mpl_net_gather(net, "segment",
                       mpl_net_weight(net, "segment.w", 2, (int64_t[]){BERT_SEGMENTS, hidden}),
                       kinds));
    x = mpl_net_binary(net, MPL_OP_add, "placed", x, mpl_net_slice(net, "position", at, 0, 0, seq));
    x = mpl_net_reshape(net, "rows", x, 2, (int64_t[]){batch * seq, hidden});
    return mpl_net_layer_norm(net, "norm", x, bert_epsilon);
}

static mpl_value bert_layer(mpl_net *net, mpl_value x, const mpl_heads *heads,
                            const mpl_scores *scores)
{
    mpl_value y = attend(net, x, heads, scores);

    x = mpl_net_layer_norm(net, "norm1", mpl_net_binary(net, MPL_OP_add, "add1", x, y),
                           bert_epsilon);
    y = mpl_net_feed_forward(net, x, 4 * heads->heads * heads->width, MPL_OP_gelu, true);
    return mpl_net_layer_norm(net, "norm2", mpl_net_binary(net, MPL_OP_add, "add2", x, y),
                              bert_epsilon);
}

static mpl_status build_bert(mpl_ctx *ctx, const mpl_zoo_args *args, mpl_graph **out)
{
    mpl_heads h = heads_of(args);
    int64_t seq = mpl_zoo_arg(args, "seq"), hidden = mpl_zoo_arg(args, "hidden");
    mpl_scores scores = {.scale = (float)(1 / sqrt((double)h.width)), .allowed = MPL_NONE};
    mpl_net net;
    mpl_value x;

    MPL_PASS(mpl_zoo_divides(ctx, args, "heads", "hidden"));
    net = mpl_net_begin(ctx, args);
    x = bert_embed(&net, h.batch, seq, hidden);
    mpl_net_scope(&net, "%s", "");
    scores.add = mpl_net_input(&net, "padding", 4, (int64_t[]){h.batch, 1, 1, seq});
    for (int64_t i = 1; i <= mpl_zoo_arg(args, "layers"); i++) {
        mpl_net_scope(&net, "layer%" PRId64, i);
        x = bert_layer(&net, x, &h, &scores);
    }
    mpl_net_scope(&net, "pooler");
    x = mpl_net_linear(&net, "fc", first_token(&net, x, h.batch), hidden, true);
    x = mpl_net_unary(&net, MPL_OP_tanh, "tanh", x);
    mpl_net_scope(&net, "%s", "");
    return mpl_net_end(&net, mpl_net_linear(&net, "logits", x, mpl_zoo_arg(args, "classes"), true),
                       out);
}

MPL_ZOO(bert, "encoder that classifies a text (Devlin et al. 2019), base",
        MPL_PARAMS(MPL_PARAM_BATCH(1),
                   {"seq", 128, 1, BERT_POSITIONS, "tokens of a sequence", NULL},
                   MPL_PARAM_LAYERS(12), MPL_PARAM_HIDDEN(768), MPL_PARAM_HEADS(12),
                   MPL_PARAM_VOCAB(30522), MPL_PARAM_CLASSES(2)),
        build_bert);

/* ---- vit ---- */

/* Patches by one convolution, the class token before them, positions: rows. */
static mpl_value vit_embed(mpl_net *net, int64_t batch, int64_t patch, int64_t hidden)
{
    mpl_value x = mpl_net_image(net, 3), first;
    int64_t side = mpl_net_dim(net, x, 2) / patch, n = side * side;

    mpl_net_scope(net, "embed");
    x = mpl_net_conv(net, "patch", x, hidden, MPL_WINDOW(patch, patch, 0), 1, true);
    x = mpl_net_reshape(net, "patch.flat", x, 3, (int64_t[]){batch, hidden, n});
    x = mpl_net_transpose(net, "patch.tokens", x, "021");
    first = mpl_net_weight(net, "class.w", 3, (int64_t[]){1, 1, hidden});
    first = mpl_net_op(net, MPL_OP_expand, "class", 1, &first, 1,
                       &MPL_INTS(shape, 3, ((const int64_t[]){batch, 1, hidden})));
    x = mpl_net_join(net, "joined", 1, first, x);
    x = mpl_net_binary(net, MPL_OP_add, "placed", x,
                       mpl_net_weight(net, "position.w", 2, (int64_t[]){n + 1, hidden}));
    return mpl_net_reshape(net, "rows", x, 2, (int64_t[]){batch * (n + 1), hidden});
}

static mpl_value vit_layer(mpl_net *net, mpl_value x, const mpl_heads *heads,
                           const mpl_scores *scores)
{
    mpl_value y = attend(net, mpl_net_layer_norm(net, "norm1", x, vit_epsilon), heads, scores);

    x = mpl_net_binary(net, MPL_OP_add, "add1", x, y);
    y = mpl_net_layer_norm(net, "norm2", x, vit_epsilon);
    y = mpl_net_feed_forward(net, y, 4 * heads->heads * heads->width, MPL_OP_gelu, true);
    return mpl_net_binary(net, MPL_OP_add, "add2", x, y);
}

static mpl_status build_vit(mpl_ctx *ctx, const mpl_zoo_args *args, mpl_graph **out)
{
    mpl_heads h = heads_of(args);
    mpl_scores scores = {(float)(1 / sqrt((double)h.width)), MPL_NONE, MPL_NONE};
    mpl_net net;
    mpl_value x;

    MPL_PASS(mpl_zoo_divides(ctx, args, "heads", "hidden"));
    MPL_PASS(mpl_zoo_divides(ctx, args, "patch", "image"));
    net = mpl_net_begin(ctx, args);
    x = vit_embed(&net, h.batch, mpl_zoo_arg(args, "patch"), mpl_zoo_arg(args, "hidden"));
    for (int64_t i = 1; i <= mpl_zoo_arg(args, "layers"); i++) {
        mpl_net_scope(&net, "layer%" PRId64, i);
        x = vit_layer(&net, x, &h, &scores);
    }
    mpl_net_scope(&net, "%s", "");
    x = first_token(&net, mpl_net_layer_norm(&net, "norm", x, vit_epsilon), h.batch);
    return mpl_net_end(&net, mpl_net_linear(&net, "logits", x, mpl_zoo_arg(args, "classes"), true),
                       out);
}

MPL_ZOO(vit, "patches of an image as tokens (Dosovitskiy et al. 2021), B/16",
        MPL_PARAMS(MPL_PARAM_BATCH(1), MPL_PARAM_IMAGE(224, 16),
                   {"patch", 16, 1, 1024, "height and width of a token; it divides image [pixel]",
                    NULL},
                   MPL_PARAM_LAYERS(12), MPL_PARAM_HIDDEN(768), MPL_PARAM_HEADS(12),
                   MPL_PARAM_CLASSES(1000)),
        build_vit);
