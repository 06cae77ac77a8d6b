/* transformer_priv.h -- layers that the transformers and their kin share, beside zoo_priv.h.
 *
 * Activations are rows: [batch * tokens, features]. Attention works on [batch, heads, tokens,
 * width]. */
#pragma once

#include "graphs/zoo/net/zoo_priv.h"

/* Heads of attention: `width` features each, of `batch` sequences (or windows). */
typedef struct mpl_heads {
    int64_t batch, heads, width;
} mpl_heads;

/* Changes to the scores before their softmax; MPL_NONE, and scale 0: none. */
typedef struct mpl_scores {
    float scale;       /* factor */
    mpl_value add;     /* floats, broadcast */
    mpl_value allowed; /* bool, broadcast: where it is false, the score is -10000 */
} mpl_scores;

#define MPL_PARAM_VOCAB(otherwise)                                                                 \
    {                                                                                              \
        "vocab", otherwise, 2, 10000000, "words", NULL                                             \
    }
#define MPL_PARAM_SEQ(otherwise)                                                                   \
    {                                                                                              \
        "seq", otherwise, 1, 1000000, "tokens of a sequence", NULL                                 \
    }
#define MPL_PARAM_LAYERS(otherwise)                                                                \
    {                                                                                              \
        "layers", otherwise, 1, 100000, "layers on top of each other", NULL                        \
    }
#define MPL_PARAM_HIDDEN(otherwise)                                                                \
    {                                                                                              \
        "hidden", otherwise, 1, 65536, "features of a token", NULL                                 \
    }
#define MPL_PARAM_HEADS(otherwise)                                                                 \
    {                                                                                              \
        "heads", otherwise, 1, 1024, "of each layer; they divide hidden", NULL                     \
    }

/* MPL_EINPUT, one line, unless `part` divides `whole`: two parameters of the network. */
mpl_status mpl_zoo_divides(mpl_ctx *ctx, const mpl_zoo_args *args, const char *part,
                           const char *whole);

mpl_value mpl_net_reshape(mpl_net *net, const char *name, mpl_value x, uint32_t rank,
                          const int64_t *dim);
/* perm: the axes as digits, "0213". */
mpl_value mpl_net_transpose(mpl_net *net, const char *name, mpl_value x, const char *perm);
mpl_value mpl_net_slice(mpl_net *net, const char *name, mpl_value x, int64_t axis, int64_t from,
                        int64_t to);
mpl_value mpl_net_join(mpl_net *net, const char *name, int64_t axis, mpl_value a, mpl_value b);
mpl_value mpl_net_scale(mpl_net *net, const char *name, mpl_value x, float factor);
mpl_value mpl_net_gather(mpl_net *net, const char *name, mpl_value table, mpl_value index);
/* bool [rows, columns], true up to column `first` + row: what a token may look at. */
mpl_value mpl_net_causal(mpl_net *net, const char *name, int64_t rows, int64_t columns,
                         int64_t first);

/* gemm with [units, features] weights */
mpl_value mpl_net_linear(mpl_net *net, const char *name, mpl_value x, int64_t units, bool bias);
/* Over the last axis. */
mpl_value mpl_net_layer_norm(mpl_net *net, const char *name, mpl_value x, double epsilon);
mpl_value mpl_net_rms_norm(mpl_net *net, const char *name, mpl_value x, double epsilon);
/* fc2(activation(fc1(x))) */
mpl_value mpl_net_feed_forward(mpl_net *net, mpl_value x, int64_t inner, mpl_op_kind activation,
                               bool bias);

/* Rows to [batch, heads, tokens, width], or with `turned` to [batch, heads, width, tokens]. */
mpl_value mpl_net_split_heads(mpl_net *net, const char *name, mpl_value x, const mpl_heads *heads,
                              bool turned);
/* One product for queries, keys and values: out[3], each [batch, heads, tokens, width]. */
void mpl_net_qkv(mpl_net *net, mpl_value x, const mpl_heads *heads, mpl_value out[3]);
/* Rows of softmax(q k) v; k is turned. */
mpl_value mpl_net_attend(mpl_net *net, mpl_value q, mpl_value k, mpl_value v,
                         const mpl_heads *heads, const mpl_scores *scores);
