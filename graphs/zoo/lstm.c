/* lstm.c -- a stack of LSTM layers, unrolled over time.
 *
 * Source   S. Hochreiter, J. Schmidhuber, "Long Short-Term Memory", Neural Computation 9(8), 1997, with the
 *          forget gate of F. Gers, J. Schmidhuber, F. Cummins, 2000: i, f, o = sigmoid(x W + h U + b), g =
 *          tanh(x W + h U + b), c' = f c + i g, h' = o tanh(c').
 * Differs  Four matrices a side instead of one with a split behind it: every value is [batch, hidden], as in
 *          the NNC allocator's own benchmark. Order: time first, then layer. The first h and c are inputs. */
#include "graphs/zoo/zoo_priv.h"

enum { INPUT_GATE, FORGET_GATE, CELL_GATE, OUTPUT_GATE, N_GATES };

typedef struct layer {
    mpl_value w[N_GATES], u[N_GATES], b[N_GATES]; /* weights */
    mpl_value h, c;                               /* state after the last step */
} layer;

static void add_layer(mpl_net *net, layer *l, int64_t index, int64_t batch, int64_t input, int64_t hidden)
{
    static const char *const names[N_GATES][3] = {
        {"wi", "ui", "bi"}, {"wf", "uf", "bf"}, {"wg", "ug", "bg"}, {"wo", "uo", "bo"}};

    mpl_net_scope(net, "layer%" PRId64, index);
    for (int gate = 0; gate < N_GATES; gate++) {
        l->w[gate] = mpl_net_weight(net, names[gate][0], 2, (int64_t[]){input, hidden});
        l->u[gate] = mpl_net_weight(net, names[gate][1], 2, (int64_t[]){hidden, hidden});
        l->b[gate] = mpl_net_weight(net, names[gate][2], 1, &hidden);
    }
    l->h = mpl_net_input(net, "h", 2, (int64_t[]){batch, hidden});
    l->c = mpl_net_input(net, "c", 2, (int64_t[]){batch, hidden});
}

/* The activated sum of both products of one gate. */
static mpl_value gate_of(mpl_net *net, const layer *l, int gate, mpl_value x)
{
    static const char *const names[N_GATES][4] = {
        {"xi", "hi", "si", "i"}, {"xf", "hf", "sf", "f"}, {"xg", "hg", "sg", "g"}, {"xo", "ho", "so", "o"}};
    mpl_value from_x =
        mpl_net_op(net, MPL_OP_gemm, names[gate][0], 3, (mpl_value[]){x, l->w[gate], l->b[gate]}, 0, NULL);
    mpl_value from_h = mpl_net_binary(net, MPL_OP_matmul, names[gate][1], l->h, l->u[gate]);
    mpl_value sum = mpl_net_binary(net, MPL_OP_add, names[gate][2], from_x, from_h);

    return mpl_net_unary(net, gate == CELL_GATE ? MPL_OP_tanh : MPL_OP_sigmoid, names[gate][3], sum);
}

static mpl_value cell(mpl_net *net, layer *l, mpl_value x)
{
    mpl_value gate[N_GATES], kept, fresh;

    for (int i = 0; i < N_GATES; i++)
        gate[i] = gate_of(net, l, i, x);
    kept = mpl_net_binary(net, MPL_OP_mul, "fc", gate[FORGET_GATE], l->c);
    fresh = mpl_net_binary(net, MPL_OP_mul, "ig", gate[INPUT_GATE], gate[CELL_GATE]);
    l->c = mpl_net_binary(net, MPL_OP_add, "c", kept, fresh);
    l->h = mpl_net_binary(net, MPL_OP_mul, "h", gate[OUTPUT_GATE],
                          mpl_net_unary(net, MPL_OP_tanh, "tanh", l->c));
    return l->h;
}

enum { MAX_LAYERS = 64 };

static mpl_status build(mpl_ctx *ctx, const mpl_zoo_args *args, mpl_graph **out)
{
    int64_t batch = mpl_zoo_arg(args, "batch"), hidden = mpl_zoo_arg(args, "hidden");
    int64_t n_layers = mpl_zoo_arg(args, "layers");
    layer layers[MAX_LAYERS];
    mpl_value x = MPL_NONE;
    mpl_net net;

    mpl_net_begin(&net, ctx, args);
    for (int64_t l = 0; l < n_layers; l++)
        add_layer(&net, &layers[l], l, batch, hidden, hidden);
    for (int64_t t = 0; t < mpl_zoo_arg(args, "steps"); t++) {
        mpl_net_scope(&net, "step%" PRId64, t);
        x = mpl_net_input(&net, "x", 2, (int64_t[]){batch, hidden});
        for (int64_t l = 0; l < n_layers; l++) {
            mpl_net_scope(&net, "step%" PRId64 ".layer%" PRId64, t, l);
            x = cell(&net, &layers[l], x);
        }
    }
    return mpl_net_end(&net, x, out);
}

static const mpl_zoo_param params[] = {
    MPL_PARAM_BATCH(32),
    {"layers", 2, 1, MAX_LAYERS, "layers on top of each other", NULL},
    {"steps", 32, 1, 10000, "steps in time, unrolled", NULL},
    {"hidden", 512, 1, 65536, "units of input, h and c", NULL},
    MPL_PARAM_END,
};

const mpl_zoo_entry mpl_zoo_lstm = {
    .name = "lstm",
    .about = "LSTM layers unrolled over time (Hochreiter, Schmidhuber 1997)",
    .params = params,
    .build = build,
};
