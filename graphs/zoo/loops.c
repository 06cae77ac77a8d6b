/* loops.c -- small networks of loops and branches, one form of control flow each.
 *
 * Source   pingpong, delay, nested_loop: the loops of L. Liu, "The NNC Tensor Allocation
 *          Algorithm", 2018 (x = conv(x); x[c] = conv(x[c - 4]); loops in loops). piecewise: its
 *          case..of, a piecewise function. seq2seq: I. Sutskever, O. Vinyals, Q. Le, "Sequence to
 *          Sequence Learning with Neural Networks", 2014, with the GRU of Cho et al.
 * Differs  The sizes, the pieces and the bypass are ours; seq2seq has one layer a side, and decodes
 *          greedily.
 * Train    seq2seq: the right answer is an input, and each round reads its previous word instead of
 *          the decoder's (R. Williams, D. Zipser, 1989, teacher forcing), without arg-max. The loss
 *          is the mean softmax cross-entropy over all words, including the 0s after the end. */
#include "graphs/zoo/net/zoo_priv.h"

static mpl_value add_round(mpl_net *net)
{
    return mpl_net_param(net, "round", MPL_TYPE_i64, &(mpl_shape){.rank = 0});
}

/* A convolution that keeps all dims. */
static mpl_value same_conv(mpl_net *net, const char *name, mpl_value x)
{
    return mpl_net_conv(net, name, x, mpl_net_dim(net, x, 1), MPL_WINDOW(3, 1, 1), 1, true);
}

/* A loop that carries only x. */
static mpl_value carry_one(mpl_net *net, const char *name, uint32_t body, int64_t trips,
                           mpl_value x)
{
    mpl_value out;

    mpl_net_while(net, name,
                  &(mpl_net_loop){
                      .body = body, .trips = trips, .n_carried = 1, .init = &x, .out_name = &name},
                  &out);
    return out;
}

/* ---- x = conv(x) ---- */

static mpl_status build_pingpong(mpl_ctx *ctx, const mpl_zoo_args *args, mpl_graph **out)
{
    mpl_net net = mpl_net_begin(ctx, args);
    mpl_value x, y;
    uint32_t body;

    x = mpl_net_image(&net, mpl_zoo_arg(args, "channels"));
    body = mpl_net_open(&net, "body");
    add_round(&net);
    y = same_conv(&net, "conv", mpl_net_param_like(&net, "x", x));
    mpl_net_close(&net, 2, (mpl_value[]){MPL_NONE, y});
    return mpl_net_end(&net, carry_one(&net, "loop", body, mpl_zoo_arg(args, "rounds"), x), out);
}

/* clang-format off */
#define PARAM_CHANNELS {"channels", 16, 1, 65536, "channels of each value", NULL}
#define PARAM_ROUNDS   {"rounds", 8, 1, 1000000, "rounds of the loop", NULL}
/* clang-format on */

MPL_ZOO(pingpong, "x = conv(x) in a loop: two buffers in turns (Liu 2018)",
        MPL_PARAMS(MPL_PARAM_BATCH(1), MPL_PARAM_IMAGE(32, 1), PARAM_CHANNELS, PARAM_ROUNDS),
        build_pingpong);

/* ---- x[c] = conv(x[c - taps]) ---- */

enum { MAX_TAPS = 64 };

/* Each value moves one tap on; the convolution of the last one becomes the first. */
static mpl_status build_delay(mpl_ctx *ctx, const mpl_zoo_args *args, mpl_graph **out)
{
    int64_t taps = mpl_zoo_arg(args, "taps");
    mpl_value init[MAX_TAPS], tap[MAX_TAPS] = {MPL_NONE}, result[1 + MAX_TAPS] = {MPL_NONE},
                              last[MAX_TAPS];
    const char *name[MAX_TAPS] = {"y"};
    mpl_net_loop loop = {.trips = mpl_zoo_arg(args, "rounds"), .init = init, .out_name = name};
    int64_t image = mpl_zoo_arg(args, "image");
    mpl_net net = mpl_net_begin(ctx, args);

    for (int64_t i = 0; i < taps; i++) {
        init[i] = mpl_net_input(
            &net, mpl_net_text(&net, "first%" PRId64, i), 4,
            (int64_t[]){mpl_zoo_arg(args, "batch"), mpl_zoo_arg(args, "channels"), image, image});
    }
    loop.body = mpl_net_open(&net, "body");
    add_round(&net);
    for (int64_t i = 0; i < taps; i++) {
        tap[i] = mpl_net_param_like(&net, mpl_net_text(&net, "x%" PRId64, i), init[i]);
    }
    result[1] = same_conv(&net, "conv", tap[taps - 1]);
    for (int64_t i = 1; i < taps; i++)
        result[1 + i] = tap[i - 1];
    loop.n_carried = (uint32_t)taps;
    mpl_net_close(&net, 1 + loop.n_carried, result);
    mpl_net_while(&net, "loop", &loop, last);
    return mpl_net_end(&net, last[0], out);
}

MPL_ZOO(delay, "x[c] = conv(x[c - taps]) in a loop: a chain of carried values (Liu 2018)",
        MPL_PARAMS(MPL_PARAM_BATCH(1), MPL_PARAM_IMAGE(32, 1), PARAM_CHANNELS, PARAM_ROUNDS,
                   {"taps", 4, 1, MAX_TAPS, "rounds that a value waits", NULL}),
        build_delay);

/* ---- loops in loops ---- */

/* Level `left` of the nest: a convolution, the inner loop, plus the level's input. */
static mpl_value nest(mpl_net *net, int64_t left, mpl_value x)
{
    mpl_value kept, y;
    uint32_t body;

    if (left == 0)
        return x;
    mpl_net_scope(net, "level%" PRId64, left);
    body = mpl_net_open(net, "body");
    add_round(net);
    kept = mpl_net_param_like(net, "x", x);
    y = nest(net, left - 1, same_conv(net, "conv", kept));
    mpl_net_scope(net, "level%" PRId64, left);
    y = mpl_net_unary(net, MPL_OP_tanh, "tanh", mpl_net_binary(net, MPL_OP_add, "sum", y, kept));
    mpl_net_close(net, 2, (mpl_value[]){MPL_NONE, y});
    return carry_one(net, "loop", body, mpl_zoo_arg(net->args, "rounds"), x);
}

static mpl_status build_nested(mpl_ctx *ctx, const mpl_zoo_args *args, mpl_graph **out)
{
    mpl_net net = mpl_net_begin(ctx, args);

    return mpl_net_end(
        &net,
        nest(&net, mpl_zoo_arg(args, "depth"), mpl_net_image(&net, mpl_zoo_arg(args, "channels"))),
        out);
}

MPL_ZOO(nested_loop, "convolutions in loops in loops, with what was before added (Liu 2018)",
        MPL_PARAMS(MPL_PARAM_BATCH(1), MPL_PARAM_IMAGE(32, 1), PARAM_CHANNELS,
                   {"rounds", 3, 1, 1000, "rounds of each loop", NULL},
                   {"depth", 2, 1, 8, "loops in each other", NULL}),
        build_nested);

/* ---- a piecewise function ---- */

enum { MAX_BRANCHES = 16 };

/* Branch k has k + 1 convolutions. The mean of x in [0, 1] selects one; below 0 x bypasses all. */
static mpl_status build_piecewise(mpl_ctx *ctx, const mpl_zoo_args *args, mpl_graph **out)
{
    int64_t n = mpl_zoo_arg(args, "branches"), most = n - 1;
    uint32_t branch[MAX_BRANCHES];
    mpl_value x, y, index;
    mpl_net net = mpl_net_begin(ctx, args);

    x = mpl_net_image(&net, mpl_zoo_arg(args, "channels"));
    index = mpl_net_op(&net, MPL_OP_reduce_mean, "mean", 1, &x, 1, &MPL_INT(keepdims, 0));
    index =
        mpl_net_binary(&net, MPL_OP_mul, "part", index, mpl_net_scalar(&net, "parts", (float)n));
    index = mpl_net_unary(&net, MPL_OP_floor, "floor", index);
    index = mpl_net_op(&net, MPL_OP_cast, "whole", 1, &index, 1, &MPL_TEXT(to, "i64"));
    index =
        mpl_net_binary(&net, MPL_OP_min, "index", index,
                       mpl_net_const(&net, "most", MPL_TYPE_i64, &(mpl_shape){.rank = 0}, &most));
    for (int64_t k = 0; k < n; k++) {
        mpl_net_scope(&net, "piece%" PRId64, k);
        branch[k] = mpl_net_open(&net, "branch");
        y = x;
        for (int64_t i = 0; i <= k; i++) {
            y = same_conv(&net, mpl_net_text(&net, "conv%" PRId64, i), y);
            y = mpl_net_unary(&net, MPL_OP_relu, mpl_net_text(&net, "relu%" PRId64, i), y);
        }
        mpl_net_close(&net, 1, &y);
    }
    mpl_net_scope(&net, "%s", "");
    y = mpl_net_case(&net, "case", index, x, (uint32_t)n, branch);
    return mpl_net_end(&net, mpl_net_unary(&net, MPL_OP_relu, "relu", y), out);
}

MPL_ZOO(piecewise, "branches of convolutions, one or none of which runs (case..of, Liu 2018)",
        MPL_PARAMS(MPL_PARAM_BATCH(1), MPL_PARAM_IMAGE(32, 1), PARAM_CHANNELS,
                   {"branches", 3, 1, MAX_BRANCHES, "pieces of the function", NULL}),
        build_piecewise);

/* ---- sequence to sequence ---- */

enum { Z, R, N, N_GATES };

typedef struct gru {
    mpl_value w[N_GATES], u[N_GATES], b[N_GATES];
} gru;

static gru add_gru(mpl_net *net, int64_t hidden)
{
    static const char *const name[N_GATES][3] = {
        {"wz", "uz", "bz"}, {"wr", "ur", "br"}, {"wn", "un", "bn"}};
    const int64_t dim[] = {hidden, hidden};
    gru g;

    for (int i = 0; i < N_GATES; i++) {
        g.w[i] = mpl_net_weight(net, name[i][0], 2, dim);
        g.u[i] = mpl_net_weight(net, name[i][1], 2, dim);
        g.b[i] = mpl_net_weight(net, name[i][2], 1, dim);
    }
    return g;
}

static mpl_value gate(mpl_net *net, const gru *g, int i, mpl_op_kind activation, mpl_value x,
                      mpl_value h)
{
    static const char *const name[N_GATES][3] = {
        {"xz", "hz", "z"}, {"xr", "hr", "r"}, {"xn", "hn", "n"}};
    mpl_value sum =
        mpl_net_op(net, MPL_OP_gemm, name[i][0], 3, (mpl_value[]){x, g->w[i], g->b[i]}, 0, NULL);

    sum = mpl_net_op(net, MPL_OP_gemm, name[i][1], 3, (mpl_value[]){h, g->u[i], sum}, 0, NULL);
    return mpl_net_unary(net, activation, name[i][2], sum);
}

static mpl_value gru_cell(mpl_net *net, const gru *g, mpl_value x, mpl_value h)
{
    mpl_value r = gate(net, g, R, MPL_OP_sigmoid, x, h);
    mpl_value n = gate(net, g, N, MPL_OP_tanh, x, mpl_net_binary(net, MPL_OP_mul, "rh", r, h));
    mpl_value z = gate(net, g, Z, MPL_OP_sigmoid, x, h),
              d = mpl_net_binary(net, MPL_OP_sub, "d", h, n);

    return mpl_net_binary(net, MPL_OP_add, "h", n, mpl_net_binary(net, MPL_OP_mul, "zh", z, d));
}

static mpl_value encode(mpl_net *net, int64_t steps, int64_t batch, int64_t hidden)
{
    mpl_value x = mpl_net_input(net, "source", 3, (int64_t[]){steps, batch, hidden}), h, zero, last;
    const char *name = "state";
    gru g;
    uint32_t body;

    mpl_net_scope(net, "encoder");
    g = add_gru(net, hidden);
    zero = mpl_net_const(net, "first", MPL_TYPE_f32, &(mpl_shape){2, {batch, hidden}}, &(float){0});
    body = mpl_net_open(net, "step");
    add_round(net);
    h = mpl_net_param_like(net, "before", zero);
    h = gru_cell(net, &g, mpl_net_param_slice(net, "x", x), h);
    mpl_net_close(net, 2, (mpl_value[]){MPL_NONE, h});
    mpl_net_while(net, "steps",
                  &(mpl_net_loop){.body = body,
                                  .trips = -1,
                                  .n_carried = 1,
                                  .n_scans = 1,
                                  .init = &zero,
                                  .scan = &x,
                                  .out_name = &name},
                  &last);
    return last;
}

/* Shared by both forms of the decoder. */
typedef struct decoder {
    gru g;
    mpl_value table, back, begin;
} decoder;

static decoder add_decoder(mpl_net *net, const mpl_shape *begin, int64_t hidden)
{
    int64_t vocab = mpl_zoo_arg(net->args, "vocab");
    decoder d;

    mpl_net_scope(net, "decoder");
    d.g = add_gru(net, hidden);
    d.table = mpl_net_weight(net, "table", 2, (int64_t[]){vocab, hidden});
    d.back = mpl_net_weight(net, "back", 2, (int64_t[]){hidden, vocab});
    d.begin = mpl_net_const(net, "begin", MPL_TYPE_i64, begin, &(int64_t){1});
    return d;
}

/* The loss of the right answer, word by word; round k reads word k - 1. */
static mpl_value teach(mpl_net *net, mpl_value state, int64_t batch, int64_t hidden)
{
    static const int64_t first = 0, axis = 0;
    const int64_t most = mpl_zoo_arg(net->args, "most"), last = most - 1, n = most * batch;
    const mpl_attr all_but_one[] = {MPL_INTS(starts, 1, &first), MPL_INTS(ends, 1, &last),
                                    MPL_INTS(axes, 1, &axis)};
    const char *name[] = {NULL, "states"};
    decoder d = add_decoder(net, &(mpl_shape){2, {1, batch}}, hidden);
    mpl_value answer = mpl_net_numbers(net, "answer", 2, (int64_t[]){most, batch}), read = d.begin,
              x, h, out[2];
    uint32_t body;

    if (most > 1) {
        read = mpl_net_op(net, MPL_OP_slice, "said", 1, &answer, 3, all_but_one);
        read = mpl_net_op(net, MPL_OP_concat, "read", 2, (mpl_value[]){d.begin, read}, 1,
                          &MPL_INT(axis, 0));
    }
    x = mpl_net_op(net, MPL_OP_gather, "words", 2, (mpl_value[]){d.table, read}, 1,
                   &MPL_INT(axis, 0));
    body = mpl_net_open(net, "step");
    add_round(net);
    h = mpl_net_param_like(net, "before", state);
    h = gru_cell(net, &d.g, mpl_net_param_slice(net, "x", x), h);
    mpl_net_close(net, 3, (mpl_value[]){MPL_NONE, h, h});
    mpl_net_while(net, "steps",
                  &(mpl_net_loop){.body = body,
                                  .trips = -1,
                                  .n_carried = 1,
                                  .n_scans = 1,
                                  .n_rows = 1,
                                  .init = &state,
                                  .scan = &x,
                                  .out_name = name},
                  out);
    h = mpl_net_op(net, MPL_OP_reshape, "state", 1, &out[1], 1,
                   &MPL_INTS(shape, 2, ((const int64_t[]){n, hidden})));
    answer = mpl_net_op(net, MPL_OP_reshape, "labels", 1, &answer, 1, &MPL_INTS(shape, 1, &n));
    return mpl_net_cross_entropy(net, "loss",
                                 mpl_net_binary(net, MPL_OP_matmul, "score", h, d.back), answer);
}

/* Word 0 ends a sentence: later words are 0, too. The loop ends once all sentences have ended. */
static mpl_value decode(mpl_net *net, mpl_value state, int64_t batch, int64_t hidden)
{
    decoder d = add_decoder(net, &(mpl_shape){1, {batch}}, hidden);
    const char *name[] = {NULL, NULL, "words"};
    mpl_value word, ends, h, x, score, open, init[2] = {state}, out[3];
    uint32_t body;

    init[1] = d.begin;
    ends = mpl_net_const(net, "end", MPL_TYPE_i64, &(mpl_shape){.rank = 0}, &(int64_t){0});
    body = mpl_net_open(net, "step");
    add_round(net);
    h = mpl_net_param_like(net, "before", state);
    word = mpl_net_param_like(net, "word", init[1]);
    x = mpl_net_op(net, MPL_OP_gather, "x", 2, (mpl_value[]){d.table, word}, 1, &MPL_INT(axis, 0));
    h = gru_cell(net, &d.g, x, h);
    score = mpl_net_binary(net, MPL_OP_matmul, "score", h, d.back);
    open = mpl_net_op(net, MPL_OP_cast, "open", 1,
                      (mpl_value[]){mpl_net_binary(net, MPL_OP_greater, "on", word, ends)}, 1,
                      &MPL_TEXT(to, "i64"));
    word = mpl_net_op(net, MPL_OP_arg_max, "best", 1, &score, 2,
                      (mpl_attr[]){MPL_INT(axis, 1), MPL_INT(keepdims, 0)});
    word = mpl_net_binary(net, MPL_OP_mul, "next", word, open);
    open = mpl_net_op(net, MPL_OP_reduce_max, "most", 1, &word, 1, &MPL_INT(keepdims, 0));
    open = mpl_net_binary(net, MPL_OP_greater, "go", open, ends);
    mpl_net_close(net, 4, (mpl_value[]){open, h, word, word});
    mpl_net_while(net, "steps",
                  &(mpl_net_loop){.body = body,
                                  .trips = mpl_zoo_arg(net->args, "most"),
                                  .n_carried = 2,
                                  .n_rows = 1,
                                  .init = init,
                                  .out_name = name},
                  out);
    return out[2];
}

static mpl_status build_seq2seq(mpl_ctx *ctx, const mpl_zoo_args *args, mpl_graph **out)
{
    int64_t batch = mpl_zoo_arg(args, "batch"), hidden = mpl_zoo_arg(args, "hidden");
    mpl_net net = mpl_net_begin(ctx, args);
    mpl_value state, y;

    state = encode(&net, mpl_zoo_arg(args, "steps"), batch, hidden);
    y = args->train ? teach(&net, state, batch, hidden) : decode(&net, state, batch, hidden);
    return mpl_net_end(&net, y, out);
}

const mpl_zoo_entry mpl_zoo_seq2seq = {
    .name = "seq2seq",
    .about =
        "encoder and decoder as loops; the decoder ends with its sentences (Sutskever et al. 2014)",
    .params = MPL_PARAMS(MPL_PARAM_BATCH(1), {"steps", 16, 1, 10000, "words of the source", NULL},
                         {"most", 32, 1, 10000, "words of the answer, at most", NULL},
                         {"hidden", 256, 1, 65536, "units of a word and of the state", NULL},
                         {"vocab", 1000, 2, 10000000, "words", NULL}),
    .build = build_seq2seq,
    .own_loss = true,
};
