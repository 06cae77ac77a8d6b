/* mamba.c -- a decoder of text whose layers carry a state instead of attending.
 *
 * Source   A. Gu, T. Dao, "Mamba: Linear-Time Sequence Modeling with Selective State Spaces", 2023,
 *          algorithm 2 and section 3.4; 130m: 24 layers, 768 features, 50280 words, 129 million
 *          parameters.
 * Forms    form=while: each layer's scan is a loop over the tokens that carries its state [batch,
 *          inner, state]. form=unroll: its rounds are written out.
 * Differs  Time is the first axis, as slices of a loop need it: words are [seq, batch]. */
#include "graphs/zoo/transformers/transformer_priv.h"

enum { WHILE, UNROLL, KERNEL = 4, MOST_UNROLLED = 4096 };

static const double epsilon = 1e-5;

/* What a round of the scan takes. */
enum { DELTA, X, B, C, N_SCANNED };

static const char *const scanned[] = {"delta", "x", "b", "c"};

typedef struct layer {
    mpl_net *net;
    int64_t seq, batch, inner, state;
    mpl_value a;               /* [inner, state], negative */
    mpl_value start;           /* [batch, inner, state], zeros */
    mpl_value scan[N_SCANNED]; /* [seq, batch, inner or state] */
} layer;

/* h' = exp(delta a) h + delta x b, y = h' c: of [batch, inner] and [batch, state]. */
static mpl_value round_of(const layer *self, const mpl_value in[N_SCANNED], mpl_value *h)
{
    mpl_net *net = self->net;
    int64_t column[] = {self->batch, self->inner, 1}, row[] = {self->batch, 1, self->state};
    int64_t turned[] = {self->batch, self->state, 1};
    mpl_value delta = mpl_net_reshape(net, "delta.column", in[DELTA], 3, column), keep, x;

    keep = mpl_net_binary(net, MPL_OP_mul, "delta.a", delta, self->a);
    keep =
        mpl_net_binary(net, MPL_OP_mul, "kept", mpl_net_unary(net, MPL_OP_exp, "keep", keep), *h);
    x = mpl_net_binary(net, MPL_OP_mul, "delta.x", in[DELTA], in[X]);
    x = mpl_net_binary(net, MPL_OP_mul, "fresh", mpl_net_reshape(net, "x.column", x, 3, column),
                       mpl_net_reshape(net, "b.row", in[B], 3, row));
    *h = mpl_net_binary(net, MPL_OP_add, "h", keep, x);
    x = mpl_net_binary(net, MPL_OP_matmul, "read", *h,
                       mpl_net_reshape(net, "c.column", in[C], 3, turned));
    return mpl_net_reshape(net, "y", x, 2, column);
}

/* [seq, batch, inner] by a loop. */
static mpl_value loop(layer *self)
{
    mpl_net *net = self->net;
    const char *name[] = {NULL, "scan.y"};
    mpl_net_loop scan = {.trips = -1,
                         .n_carried = 1,
                         .n_scans = N_SCANNED,
                         .n_rows = 1,
                         .init = &self->start,
                         .scan = self->scan,
                         .out_name = name};
    mpl_value in[N_SCANNED], h, y, out[2];
    char outer[64];

    snprintf(outer, sizeof outer, "%s", net->scope);
    scan.body = mpl_net_open(net, "round");
    mpl_net_scope(net, "%.40s.round", outer);
    mpl_net_param(net, "number", MPL_TYPE_i64, &(mpl_shape){.rank = 0});
    h = mpl_net_param_like(net, "h.before", self->start);
    for (int i = 0; i < N_SCANNED; i++)
        in[i] = mpl_net_param_slice(net, scanned[i], self->scan[i]);
    y = round_of(self, in, &h);
    mpl_net_close(net, 3, (mpl_value[]){MPL_NONE, h, y});
    mpl_net_scope(net, "%s", outer);
    mpl_net_while(net, "scan", &scan, out);
    return out[1];
}

/* The same, round by round. */
static mpl_value unroll(layer *self)
{
    mpl_net *net = self->net;
    mpl_value in[N_SCANNED], y[MOST_UNROLLED], h = self->start;
    char outer[64];

    snprintf(outer, sizeof outer, "%s", net->scope);
    for (int64_t t = 0; t < self->seq; t++) {
        mpl_net_scope(net, "%.40s.round%" PRId64, outer, t);
        for (int i = 0; i < N_SCANNED; i++) {
            int64_t dim[] = {1, self->batch, i == DELTA || i == X ? self->inner : self->state};

            in[i] = mpl_net_slice(net, mpl_net_text(net, "%s.part", scanned[i]), self->scan[i], 0,
                                  t, t + 1);
            in[i] = mpl_net_reshape(net, scanned[i], in[i], 2, dim + 1);
        }
        y[t] = mpl_net_reshape(net, "row", round_of(self, in, &h), 3,
                               (int64_t[]){1, self->batch, self->inner});
    }
    mpl_net_scope(net, "%s", outer);
    return mpl_net_op(net, MPL_OP_concat, "scan.y", (uint32_t)self->seq, y, 1, &MPL_INT(axis, 0));
}

/* A convolution over each feature's last tokens, then swish: rows. */
static mpl_value recent(const layer *self, mpl_value x)
{
    mpl_net *net = self->net;
    const mpl_attr attr[] = {MPL_INTS(kernel_shape, 1, ((const int64_t[]){KERNEL})),
                             MPL_INTS(pads, 2, ((const int64_t[]){KERNEL - 1, 0})),
                             MPL_INT(group, self->inner)};
    mpl_value w = mpl_net_weight(net, "conv.w", 3, (int64_t[]){self->inner, 1, KERNEL});
    mpl_value b = mpl_net_weight(net, "conv.b", 1, &self->inner);

    x = mpl_net_reshape(net, "x.tokens", x, 3, (int64_t[]){self->seq, self->batch, self->inner});
    x = mpl_net_transpose(net, "x.time", x, "120");
    x = mpl_net_op(net, MPL_OP_conv, "conv", 3, (mpl_value[]){x, w, b}, 3, attr);
    x = mpl_net_transpose(net, "conv.tokens", mpl_net_unary(net, MPL_OP_swish, "conv.swish", x),
                          "201");
    return mpl_net_reshape(net, "conv.rows", x, 2,
                           (int64_t[]){self->seq * self->batch, self->inner});
}

/* Chooses, from rows x, what each round takes; `rank` numbers make the step sizes. */
static void select_scan(layer *self, mpl_value x, int64_t rank)
{
    mpl_net *net = self->net;
    int64_t from[] = {0, rank, rank + self->state},
            to[] = {rank, rank + self->state, rank + 2 * self->state};
    mpl_value part[3], chosen = mpl_net_linear(net, "select", x, to[2], false);
    static const char *const name[] = {"step", "b.rows", "c.rows"};

    for (int i = 0; i < 3; i++)
        part[i] = mpl_net_slice(net, name[i], chosen, 1, from[i], to[i]);
    part[0] = mpl_net_unary(net, MPL_OP_softplus, "step.size",
                            mpl_net_linear(net, "step.wide", part[0], self->inner, true));
    self->scan[DELTA] = part[0];
    self->scan[X] = x;
    self->scan[B] = part[1];
    self->scan[C] = part[2];
    for (int i = 0; i < N_SCANNED; i++)
        self->scan[i] = mpl_net_reshape(
            net, scanned[i], self->scan[i], 3,
            (int64_t[]){self->seq, self->batch, i == DELTA || i == X ? self->inner : self->state});
}

static mpl_value layer_of(layer *self, mpl_value x)
{
    mpl_net *net = self->net;
    const mpl_zoo_args *args = net->args;
    int64_t hidden = mpl_zoo_arg(args, "hidden"), rows = self->seq * self->batch;
    float zero = 0;
    mpl_value y, z, fresh;

    y = mpl_net_rms_norm(net, "norm", x, epsilon);
    y = mpl_net_linear(net, "in", y, 2 * self->inner, false);
    z = mpl_net_slice(net, "gate", y, 1, self->inner, 2 * self->inner);
    fresh = recent(self, mpl_net_slice(net, "part", y, 1, 0, self->inner));
    select_scan(self, fresh, (hidden + 15) / 16);
    self->a = mpl_net_weight(net, "a.log", 2, (int64_t[]){self->inner, self->state});
    self->a =
        mpl_net_unary(net, MPL_OP_neg, "a", mpl_net_unary(net, MPL_OP_exp, "a.size", self->a));
    self->start = mpl_net_const(net, "start", MPL_TYPE_f32,
                                &(mpl_shape){3, {self->batch, self->inner, self->state}}, &zero);
    y = mpl_zoo_arg(args, "form") == WHILE ? loop(self) : unroll(self);
    y = mpl_net_reshape(net, "scan.rows", y, 2, (int64_t[]){rows, self->inner});
    fresh =
        mpl_net_binary(net, MPL_OP_mul, "passed", fresh, mpl_net_weight(net, "d", 1, &self->inner));
    y = mpl_net_binary(net, MPL_OP_add, "seen", y, fresh);
    y = mpl_net_binary(net, MPL_OP_mul, "gated", y,
                       mpl_net_unary(net, MPL_OP_swish, "gate.swish", z));
    return mpl_net_binary(net, MPL_OP_add, "add", x, mpl_net_linear(net, "out", y, hidden, false));
}

static mpl_status build_mamba(mpl_ctx *ctx, const mpl_zoo_args *args, mpl_graph **out)
{
    int64_t hidden = mpl_zoo_arg(args, "hidden");
    mpl_net net;
    layer l = {.net = &net,
               .seq = mpl_zoo_arg(args, "seq"),
               .batch = mpl_zoo_arg(args, "batch"),
               .inner = 2 * hidden,
               .state = mpl_zoo_arg(args, "state")};
    mpl_value ids, word, x;

    if (mpl_zoo_arg(args, "form") == UNROLL && l.seq > MOST_UNROLLED)
        return MPL_REFUSE(ctx, "mamba: form=unroll takes seq up to %d, not %" PRId64, MOST_UNROLLED,
                          l.seq);
    net = mpl_net_begin(ctx, args);
    ids = mpl_net_numbers(&net, "ids", 2, (int64_t[]){l.seq, l.batch});
    word = mpl_net_weight(&net, "word.w", 2, (int64_t[]){mpl_zoo_arg(args, "vocab"), hidden});
    x = mpl_net_reshape(&net, "rows", mpl_net_gather(&net, "word", word, ids), 2,
                        (int64_t[]){l.seq * l.batch, hidden});
    for (int64_t i = 0; i < mpl_zoo_arg(args, "layers"); i++) {
        mpl_net_scope(&net, "layer%" PRId64, i);
        x = layer_of(&l, x);
    }
    mpl_net_scope(&net, "%s", "");
    x = mpl_net_rms_norm(&net, "norm", x, epsilon);
    x = mpl_net_op(&net, MPL_OP_gemm, "logits", 2, (mpl_value[]){x, word}, 1, &MPL_INT(trans_b, 1));
    return mpl_net_end(&net, x, out);
}

static const char *const forms[] = {"while", "unroll"};

MPL_ZOO(
    mamba, "selective state spaces (Gu, Dao 2023), 130m",
    MPL_PARAMS(MPL_PARAM_BATCH(1), MPL_PARAM_SEQ(128), MPL_PARAM_LAYERS(24), MPL_PARAM_HIDDEN(768),
               {"state", 16, 1, 65536, "numbers that each inner feature carries", NULL},
               MPL_PARAM_VOCAB(50280),
               {"form", WHILE, 0, 1, "each scan a loop over the tokens, or written out", forms}),
    build_mamba);
