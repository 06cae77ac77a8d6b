/* t5.c -- encoder_decoder, and moe: the same with experts in every second layer.
 *
 * Source   encoder_decoder: C. Raffel et al., "Exploring the Limits of Transfer Learning with a
 *          Unified Text-to-Text Transformer", JMLR 21, 2020 (T5 1.0, base: 220 million
 *          parameters). moe: W. Fedus, B. Zoph, N. Shazeer, "Switch Transformers", JMLR 23, 2022
 *          (base with 8 experts: 619 million); topk above 1 and the places in an expert's queue
 *          after D. Lepikhin et al., "GShard", ICLR 2021, section 2.2.
 * Idea     An expert has `capacity` per cent of its even share of places. A token takes the next
 *          place of each of its experts, counted by a running sum; a token without a place passes
 * by. Tokens are scattered to [experts, places, features], one batched product serves all experts,
 *          and each token gathers its results, weighted by the router's probability.
 * Differs  No dropout, no balancing loss, no noise. The reader of the answer sees the right
 * answer's words, as in training; logits are those of all its tokens. */
#include "graphs/zoo/transformers/transformer_priv.h"

#include <math.h>

enum { BUCKETS = 32 };

static const double epsilon = 1e-6;

typedef struct stack {
    mpl_net *net;
    const char *name; /* encoder, decoder */
    mpl_heads heads;
    mpl_scores self, cross;
    mpl_value memory; /* the encoder's rows; MPL_NONE: this is the encoder */
    int64_t inner;
    int64_t experts, topk, capacity; /* experts 0: none */
} stack;

/* ---- relative positions ---- */

/* The bucket of a distance n beyond half of the `most` buckets: half + floor(half log(n / half) /
 * log(128 / half)), at most the last one. */
static int64_t far_bucket(int64_t n, int64_t most)
{
    int64_t half = most / 2, j = 0;

    while (j < half - 1 &&
           (double)n >= (double)half * pow(128.0 / (double)half, (double)(j + 1) / (double)half))
        j++;
    return half + j;
}

static int64_t bucket_of(int64_t ahead, bool both_ways)
{
    int64_t most = both_ways ? BUCKETS / 2 : BUCKETS, first = both_ways && ahead > 0 ? most : 0;
    int64_t n = both_ways ? (ahead < 0 ? -ahead : ahead) : ahead < 0 ? -ahead : 0;

    return first + (n < most / 2 ? n : far_bucket(n, most));
}

/* [heads, n, n]: a number for each distance and head, added to the scores of all layers. */
static mpl_value position_bias(mpl_net *net, const char *name, int64_t heads, int64_t n,
                               bool both_ways)
{
    mpl_value v = MPL_NONE, table;
    int64_t *bucket = NULL;

    mpl_net_scope(net, "%s.positions", name);
    table = mpl_net_weight(net, "w", 2, (int64_t[]){BUCKETS, heads});
    if (net->st == MPL_OK)
        net->st = mpl_new(net->ctx, bucket, (size_t)(n * n));
    for (int64_t i = 0; i < n * n && net->st == MPL_OK; i++)
        bucket[i] = i > n && i % n > 0 ? bucket[i - n - 1] : bucket_of(i % n - i / n, both_ways);
    if (net->st == MPL_OK)
        v = mpl_net_data(net, "bucket", MPL_TYPE_i64, 2, (int64_t[]){n, n}, bucket);
    mpl_free(net->ctx, bucket);
    return mpl_net_transpose(net, "bias", mpl_net_gather(net, "each", table, v), "201");
}

/* ---- experts ---- */

/* The place of each row in the queue of its expert, or the place behind all of them: [rows, 1].
 * chosen: [rows] experts. */
static mpl_value places_of(mpl_net *net, mpl_value chosen, int64_t experts, int64_t places)
{
    static const int64_t off_on[] = {0, 1};
    mpl_shape scalar = {.rank = 0};
    int64_t rows = mpl_net_dim(net, chosen, 0), limit = places, last = experts * places;
    mpl_value hot, turn, many, fits, slot;

    hot = mpl_net_data(net, "off_on", MPL_TYPE_i64, 1, (int64_t[]){2}, off_on);
    hot = mpl_net_op(net, MPL_OP_one_hot, "hot", 2, (mpl_value[]){chosen, hot}, 1,
                     &MPL_INT(depth, experts));
    turn = mpl_net_op(net, MPL_OP_cumsum, "before", 1, &hot, 2,
                      (const mpl_attr[]){MPL_INT(axis, 0), MPL_INT(exclusive, 1)});
    turn = mpl_net_binary(net, MPL_OP_mul, "turns", turn, hot);
    turn = mpl_net_op(
        net, MPL_OP_reduce_sum, "turn", 1, &turn, 2,
        (const mpl_attr[]){MPL_INTS(axes, 1, ((const int64_t[]){1})), MPL_INT(keepdims, 0)});
    many = mpl_net_const(net, "places", MPL_TYPE_i64, &scalar, &limit);
    fits = mpl_net_binary(net, MPL_OP_less, "fits", turn, many);
    slot = mpl_net_binary(net, MPL_OP_mul, "first", chosen, many);
    slot = mpl_net_binary(net, MPL_OP_add, "slot", slot, turn);
    slot = mpl_net_op(
        net, MPL_OP_where, "place", 3,
        (mpl_value[]){fits, slot, mpl_net_const(net, "nowhere", MPL_TYPE_i64, &scalar, &last)}, 0,
        NULL);
    return mpl_net_reshape(net, "place.rows", slot, 2, (int64_t[]){rows, 1});
}

/* Each row `times` times in turn. */
static mpl_value repeated(mpl_net *net, mpl_value x, int64_t times)
{
    int64_t rows = mpl_net_dim(net, x, 0), features = mpl_net_dim(net, x, 1);

    if (times == 1)
        return x;
    x = mpl_net_reshape(net, "row", x, 3, (int64_t[]){rows, 1, features});
    x = mpl_net_op(net, MPL_OP_expand, "row.each", 1, &x, 1,
                   &MPL_INTS(shape, 3, ((const int64_t[]){rows, times, features})));
    return mpl_net_reshape(net, "row.all", x, 2, (int64_t[]){rows * times, features});
}

/* [experts, places, features] through an expert each. */
static mpl_value run_experts(const stack *self, mpl_value x, int64_t features)
{
    mpl_net *net = self->net;
    mpl_value w;

    w = mpl_net_weight(net, "fc1.w", 3, (int64_t[]){self->experts, features, self->inner});
    x = mpl_net_unary(net, MPL_OP_relu, "act", mpl_net_binary(net, MPL_OP_matmul, "fc1", x, w));
    w = mpl_net_weight(net, "fc2.w", 3, (int64_t[]){self->experts, self->inner, features});
    return mpl_net_binary(net, MPL_OP_matmul, "fc2", x, w);
}

/* The router's choice: share of each row and choice [rows * topk, 1], and experts [rows * topk]. */
static void route(const stack *self, mpl_value x, mpl_value *share, mpl_value *chosen)
{
    mpl_net *net = self->net;
    int64_t each = mpl_net_dim(net, x, 0) * self->topk;
    const char *name[] = {mpl_net_scoped(net, "best"), mpl_net_scoped(net, "expert")};
    mpl_value out[2] = {MPL_NONE, MPL_NONE};

    x = mpl_net_unary(net, MPL_OP_softmax, "router.share",
                      mpl_net_linear(net, "router", x, self->experts, false));
    if (net->st == MPL_OK)
        net->st = mpl_graph_add_op(net->ctx, net->graph, MPL_OP_top_k, name[0], 1, &x, 1,
                                   &MPL_INT(k, self->topk), 2, name, out);
    *share = mpl_net_reshape(net, "best.rows", out[0], 2, (int64_t[]){each, 1});
    *chosen = mpl_net_reshape(net, "expert.rows", out[1], 1, &each);
}

static mpl_value mixture(const stack *self, mpl_value x)
{
    mpl_net *net = self->net;
    int64_t rows = mpl_net_dim(net, x, 0), features = mpl_net_dim(net, x, 1);
    int64_t even = rows * self->topk * self->capacity,
            places = (even + 100 * self->experts - 1) / (100 * self->experts);
    int64_t last = self->experts * places, room[] = {last + 1, features};
    mpl_value share, chosen, slot, y, zero = mpl_net_scalar(net, "zero", 0);

    route(self, x, &share, &chosen);
    slot = places_of(net, chosen, self->experts, places);
    y = mpl_net_op(net, MPL_OP_expand, "empty", 1, &zero, 1, &MPL_INTS(shape, 2, room));
    y = mpl_net_op(net, MPL_OP_scatter_nd, "queues", 3,
                   (mpl_value[]){y, slot, repeated(net, x, self->topk)}, 0, NULL);
    y = mpl_net_slice(net, "queues.served", y, 0, 0, last);
    y = run_experts(
        self, mpl_net_reshape(net, "queue", y, 3, (int64_t[]){self->experts, places, features}),
        features);
    y = mpl_net_reshape(net, "served", y, 2, (int64_t[]){last, features});
    y = mpl_net_op(net, MPL_OP_pad, "served.or_not", 1, &y, 1,
                   &MPL_INTS(pads, 4, ((const int64_t[]){0, 0, 1, 0})));
    y = mpl_net_binary(net, MPL_OP_gather_nd, "answer", y, slot);
    y = mpl_net_binary(net, MPL_OP_mul, "weighted", y, share);
    if (self->topk == 1)
        return y;
    y = mpl_net_reshape(net, "choices", y, 3, (int64_t[]){rows, self->topk, features});
    return mpl_net_op(
        net, MPL_OP_reduce_sum, "mixed", 1, &y, 2,
        (const mpl_attr[]){MPL_INTS(axes, 1, ((const int64_t[]){1})), MPL_INT(keepdims, 0)});
}

/* ---- layers ---- */

/* x plus attention of x's rows to those of `to`. */
static mpl_value attend(const stack *self, const char *part, mpl_value x, mpl_value to,
                        const mpl_scores *scores)
{
    mpl_net *net = self->net;
    const mpl_heads *heads = &self->heads;
    int64_t inner = heads->heads * heads->width, features = mpl_net_dim(net, x, 1);
    char outer[64];
    mpl_value y, q, k, v;

    snprintf(outer, sizeof outer, "%s", net->scope);
    mpl_net_scope(net, "%.40s.%s", outer, part);
    y = mpl_net_rms_norm(net, "norm", x, epsilon);
    if (to == MPL_NONE)
        to = y;
    q = mpl_net_split_heads(net, "q", mpl_net_linear(net, "q", y, inner, false), heads, false);
    k = mpl_net_split_heads(net, "k", mpl_net_linear(net, "k", to, inner, false), heads, true);
    v = mpl_net_split_heads(net, "v", mpl_net_linear(net, "v", to, inner, false), heads, false);
    y = mpl_net_linear(net, "out", mpl_net_attend(net, q, k, v, heads, scores), features, false);
    x = mpl_net_binary(net, MPL_OP_add, "add", x, y);
    mpl_net_scope(net, "%s", outer);
    return x;
}

static mpl_value layers_of(const stack *self, mpl_value x, int64_t n)
{
    mpl_net *net = self->net;
    mpl_value y;

    for (int64_t i = 0; i < n; i++) {
        mpl_net_scope(net, "%s%" PRId64, self->name, i);
        x = attend(self, "self", x, MPL_NONE, &self->self);
        if (self->memory != MPL_NONE)
            x = attend(self, "cross", x, self->memory, &self->cross);
        y = mpl_net_rms_norm(net, "norm", x, epsilon);
        y = self->experts > 0 && i % 2 == 1
                ? mixture(self, y)
                : mpl_net_feed_forward(net, y, self->inner, MPL_OP_relu, false);
        x = mpl_net_binary(net, MPL_OP_add, "add", x, y);
    }
    mpl_net_scope(net, "%s", self->name);
    return mpl_net_rms_norm(net, "norm", x, epsilon);
}

/* Rows of the words of input `name`. */
static mpl_value words(mpl_net *net, const char *name, mpl_value table, int64_t batch, int64_t n)
{
    mpl_value ids, x;

    mpl_net_scope(net, "%s", "");
    ids = mpl_net_numbers(net, mpl_net_text(net, "%s.ids", name), 2, (int64_t[]){batch, n});
    x = mpl_net_gather(net, mpl_net_text(net, "%s.word", name), table, ids);
    return mpl_net_reshape(net, mpl_net_text(net, "%s.rows", name), x, 2,
                           (int64_t[]){batch * n, mpl_net_dim(net, table, 1)});
}

static mpl_value both_stacks(mpl_net *net, int64_t experts, int64_t topk, int64_t capacity)
{
    const mpl_zoo_args *args = net->args;
    int64_t batch = mpl_zoo_arg(args, "batch"), hidden = mpl_zoo_arg(args, "hidden");
    int64_t heads = mpl_zoo_arg(args, "heads"), layers = mpl_zoo_arg(args, "layers");
    int64_t seq = mpl_zoo_arg(args, "seq"), answer = mpl_zoo_arg(args, "answer");
    const mpl_scores plain = {0, MPL_NONE, MPL_NONE};
    stack s = {net,        "encoder", {batch, heads, hidden / heads},
               plain,      plain,     MPL_NONE,
               4 * hidden, experts,   topk,
               capacity};
    mpl_value table, x;

    table = mpl_net_weight(net, "word.w", 2, (int64_t[]){mpl_zoo_arg(args, "vocab"), hidden});
    x = words(net, "encoder", table, batch, seq);
    s.self.add = position_bias(net, s.name, heads, seq, true);
    s.memory = layers_of(&s, x, layers);
    s.name = "decoder";
    x = words(net, "decoder", table, batch, answer);
    s.self.add = position_bias(net, s.name, heads, answer, false);
    s.self.allowed = mpl_net_causal(net, "causal", answer, answer, 0);
    x = layers_of(&s, x, layers);
    mpl_net_scope(net, "%s", "");
    x = mpl_net_scale(net, "scaled", x, (float)(1 / sqrt((double)hidden)));
    return mpl_net_op(net, MPL_OP_gemm, "logits", 2, (mpl_value[]){x, table}, 1,
                      &MPL_INT(trans_b, 1));
}

static mpl_status build_encoder_decoder(mpl_ctx *ctx, const mpl_zoo_args *args, mpl_graph **out)
{
    mpl_net net;

    MPL_PASS(mpl_zoo_divides(ctx, args, "heads", "hidden"));
    net = mpl_net_begin(ctx, args);
    return mpl_net_end(&net, both_stacks(&net, 0, 0, 0), out);
}

static mpl_status build_moe(mpl_ctx *ctx, const mpl_zoo_args *args, mpl_graph **out)
{
    int64_t experts = mpl_zoo_arg(args, "experts"), topk = mpl_zoo_arg(args, "topk");
    mpl_net net;

    MPL_PASS(mpl_zoo_divides(ctx, args, "heads", "hidden"));
    if (topk > experts)
        return MPL_REFUSE(ctx, "moe: topk=%" PRId64 " of experts=%" PRId64, topk, experts);
    net = mpl_net_begin(ctx, args);
    return mpl_net_end(&net, both_stacks(&net, experts, topk, mpl_zoo_arg(args, "capacity")), out);
}

/* clang-format off */
#define SIZES                                                                                      \
    MPL_PARAM_BATCH(1),                                                                            \
    MPL_PARAM_SEQ(128),                                                                            \
    {"answer", 128, 1, 1000000, "tokens of the answer", NULL},                                     \
    {"layers", 12, 1, 100000, "of the encoder, and of the decoder", NULL},                         \
    MPL_PARAM_HIDDEN(768),                                                                         \
    MPL_PARAM_HEADS(12),                                                                           \
    MPL_PARAM_VOCAB(32128)
/* clang-format on */

MPL_ZOO(encoder_decoder, "text to text with relative positions (Raffel et al. 2020), T5 base",
        MPL_PARAMS(SIZES), build_encoder_decoder);

MPL_ZOO(moe, "T5 with experts of bounded capacity (Fedus et al. 2022), Switch base 8",
        MPL_PARAMS(SIZES, {"experts", 8, 1, 4096, "of every second layer", NULL},
                   {"topk", 1, 1, 64, "experts that a token asks", NULL},
                   {"capacity", 125, 1, 100000, "places of an expert, per cent of its even share",
                    NULL}),
        build_moe);
