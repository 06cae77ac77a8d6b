/* gpt.c -- a decoder of text: a prompt at once, or further tokens beside the keys and values of
 * those before.
 *
 * Source   A. Radford et al., "Language Models are Unsupervised Multitask Learners", 2019 (GPT-2);
 *          small: 12 layers, 768 features, 12 heads, 50257 words, 1024 positions, 124 million
 *          parameters.
 * Forms    `seq` new tokens come after `past` tokens, whose keys and values are inputs. Outputs are
 *          the logits of the new tokens, then per layer the keys and values of all tokens.
 *          cache=concat: past and new ones, joined. cache=in_place: the inputs have room for the
 *          new ones, which are written behind the past; planned (--pin none), inputs and outputs
 *          are the same bytes. cache=none: logits only, as in training.
 * Differs  No dropout. */
#include "graphs/zoo/transformers/transformer_priv.h"

#include <math.h>

enum { CONCAT, IN_PLACE, NO_CACHE };

static const double epsilon = 1e-5;

typedef struct decoder {
    mpl_net net;
    mpl_heads heads;
    mpl_scores scores;
    int64_t seq, past, cache;
    uint32_t n_cached;
    mpl_value *cached; /* keys and values of all tokens, layer by layer */
} decoder;

/* `fresh` written behind the past tokens of `room`. */
static mpl_value write_behind(decoder *self, const char *name, mpl_value room, mpl_value fresh)
{
    const mpl_heads *heads = &self->heads;
    int64_t all = self->past + self->seq,
            dim[] = {heads->batch, heads->heads, self->seq, heads->width};
    int64_t stride[] = {heads->heads * all * heads->width, all * heads->width, heads->width, 1};
    const mpl_attr attr[] = {MPL_INTS(dims, 4, dim), MPL_INTS(strides, 4, stride),
                             MPL_INT(offset, self->past * heads->width)};

    return mpl_net_op(&self->net, MPL_OP_assign, name, 2, (mpl_value[]){room, fresh}, 3, attr);
}

/* Keys or values of the past and the new tokens. */
static mpl_value remember(decoder *self, int64_t layer, const char *what, mpl_value fresh)
{
    const mpl_heads *heads = &self->heads;
    bool in_place = self->cache == IN_PLACE;
    int64_t dim[] = {heads->batch, heads->heads, self->past + (in_place ? self->seq : 0),
                     heads->width};
    mpl_net *net = &self->net;
    mpl_value all = fresh, past;
    const char *name;

    if (self->cache == NO_CACHE)
        return fresh;
    mpl_net_scope(net, "%s", "");
    name = mpl_net_text(net, "present.%" PRId64 ".%s", layer, what);
    if (self->past > 0 || in_place) {
        past = mpl_net_input(net, mpl_net_text(net, "past.%" PRId64 ".%s", layer, what), 4, dim);
        all = in_place ? write_behind(self, name, past, fresh)
                       : mpl_net_join(net, name, 2, past, fresh);
    }
    self->cached[self->n_cached++] = all;
    mpl_net_scope(net, "layer%" PRId64, layer);
    return all;
}

static mpl_value layer_of(decoder *self, int64_t layer, mpl_value x)
{
    mpl_net *net = &self->net;
    int64_t hidden = self->heads.heads * self->heads.width;
    mpl_value part[3], y;

    mpl_net_scope(net, "layer%" PRId64, layer);
    mpl_net_qkv(net, mpl_net_layer_norm(net, "norm1", x, epsilon), &self->heads, part);
    part[1] = remember(self, layer, "key", part[1]);
    part[2] = remember(self, layer, "value", part[2]);
    y = mpl_net_attend(net, part[0], mpl_net_transpose(net, "k.turned", part[1], "0132"), part[2],
                       &self->heads, &self->scores);
    x = mpl_net_binary(net, MPL_OP_add, "add1", x, mpl_net_linear(net, "out", y, hidden, true));
    y = mpl_net_layer_norm(net, "norm2", x, epsilon);
    return mpl_net_binary(net, MPL_OP_add, "add2", x,
                          mpl_net_feed_forward(net, y, 4 * hidden, MPL_OP_gelu, true));
}

/* The words' table also makes the logits. */
static mpl_value decode(decoder *self, int64_t layers)
{
    mpl_net *net = &self->net;
    const mpl_zoo_args *args = net->args;
    int64_t hidden = self->heads.heads * self->heads.width, all = self->past + self->seq;
    mpl_value ids = mpl_net_numbers(net, "ids", 2, (int64_t[]){self->heads.batch, self->seq}), x,
              at, word;

    word = mpl_net_weight(net, "word.w", 2, (int64_t[]){mpl_zoo_arg(args, "vocab"), hidden});
    at = mpl_net_weight(net, "position.w", 2, (int64_t[]){mpl_zoo_arg(args, "context"), hidden});
    x = mpl_net_binary(net, MPL_OP_add, "placed", mpl_net_gather(net, "word", word, ids),
                       mpl_net_slice(net, "position", at, 0, self->past, all));
    x = mpl_net_reshape(net, "rows", x, 2, (int64_t[]){self->heads.batch * self->seq, hidden});
    self->scores.allowed = self->seq > 1 || mpl_zoo_arg(args, "mask") == 1
                               ? mpl_net_causal(net, "causal", self->seq, all, self->past)
                               : MPL_NONE;
    for (int64_t i = 0; i < layers; i++)
        x = layer_of(self, i, x);
    mpl_net_scope(net, "%s", "");
    return mpl_net_op(net, MPL_OP_gemm, "logits", 2,
                      (mpl_value[]){mpl_net_layer_norm(net, "norm", x, epsilon), word}, 1,
                      &MPL_INT(trans_b, 1));
}

static mpl_status check(mpl_ctx *ctx, const mpl_zoo_args *args, const decoder *d)
{
    int64_t context = mpl_zoo_arg(args, "context");

    MPL_PASS(mpl_zoo_divides(ctx, args, "heads", "hidden"));
    if (d->past + d->seq > context)
        return MPL_REFUSE(ctx, "gpt: past and seq are %" PRId64 " tokens; context=%" PRId64,
                          d->past + d->seq, context);
    if (d->past > 0 && args->train)
        return MPL_REFUSE(ctx, "gpt: past=%" PRId64 " is for inference; mode=train needs past=0",
                          d->past);
    if (d->past > 0 && d->cache == NO_CACHE)
        return MPL_REFUSE(ctx, "gpt: past=%" PRId64 " needs cache=concat or cache=in_place",
                          d->past);
    return MPL_OK;
}

static mpl_status build_gpt(mpl_ctx *ctx, const mpl_zoo_args *args, mpl_graph **out)
{
    mpl_status st = MPL_OK;
    int64_t heads = mpl_zoo_arg(args, "heads"), layers = mpl_zoo_arg(args, "layers");
    decoder d = {.heads = {mpl_zoo_arg(args, "batch"), heads, mpl_zoo_arg(args, "hidden") / heads},
                 .seq = mpl_zoo_arg(args, "seq"),
                 .past = mpl_zoo_arg(args, "past"),
                 .cache = args->train ? NO_CACHE : mpl_zoo_arg(args, "cache")};
    mpl_value y;

    MPL_TRY(check(ctx, args, &d));
    MPL_TRY(mpl_new(ctx, d.cached, (size_t)(2 * layers)));
    d.scores = (mpl_scores){(float)(1 / sqrt((double)d.heads.width)), MPL_NONE, MPL_NONE};
    d.net = mpl_net_begin(ctx, args);
    y = decode(&d, layers);
    for (uint32_t i = 0; i < d.n_cached; i++) {
        mpl_net_output(&d.net, y);
        y = d.cached[i];
    }
    st = mpl_net_end(&d.net, y, out);
out:
    mpl_free(ctx, d.cached);
    return st;
}

static const char *const caches[] = {"concat", "in_place", "none"};
static const char *const masks[] = {"several", "always"};

MPL_ZOO(gpt, "decoder, of a prompt or beside a cache (Radford et al. 2019), GPT-2 small",
        MPL_PARAMS(MPL_PARAM_BATCH(1), MPL_PARAM_SEQ(128),
                   {"past", 0, 0, 1000000, "tokens before, of which keys and values are inputs",
                    NULL},
                   {"cache", CONCAT, 0, 2,
                    "keys and values of all tokens as outputs, joined or written in place", caches},
                   {"mask", 0, 0, 1, "of what comes later: for several new tokens, or for one, too",
                    masks},
                   MPL_PARAM_LAYERS(12), MPL_PARAM_HIDDEN(768), MPL_PARAM_HEADS(12),
                   MPL_PARAM_VOCAB(50257),
                   {"context", 1024, 1, 10000000, "positions that it has", NULL}),
        build_gpt);
