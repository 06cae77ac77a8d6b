/* recurrent.c -- stacks of LSTM or GRU layers over a sequence, unrolled or as one loop.
 *
 * Source   LSTM: S. Hochreiter, J. Schmidhuber, "Long Short-Term Memory", Neural Computation 9(8),
 *          1997, with the forget gate of F. Gers, J. Schmidhuber, F. Cummins, 2000: i, f, o =
 *          sigmoid(x W + h U + b), g = tanh(x W + h U + b), c' = f c + i g, h' = o tanh(c'). GRU:
 *          K. Cho et al., "Learning Phrase Representations using RNN Encoder-Decoder for
 *          Statistical Machine Translation", 2014, section 2.3: z, r = sigmoid(x W + h U + b), n =
 *          tanh(x W + (r h) U + b), h' = z h + (1 - z) n.
 * Differs  A matrix for each gate and side, none is split: values are [batch, hidden], as in the
 *          NNC allocator's own benchmark. Order: time, then layer. The first h and c are inputs. */
#include "graphs/zoo/net/zoo_priv.h"

enum { MAX_LAYERS = 64, MAX_GATES = 4, MAX_STATES = 2, UNROLL = 0 };

typedef struct layer {
    mpl_value w[MAX_GATES], u[MAX_GATES], b[MAX_GATES]; /* weights */
    mpl_value state[MAX_STATES];                        /* after the last step: h, c */
} layer;

/* What distinguishes the kinds of layers. */
typedef struct kind {
    int n_gates, n_states;
    const char *const *gate; /* a letter each */
    void (*cell)(mpl_net *net, layer *l, mpl_value x);
} kind;

static const char *const state_name[MAX_STATES] = {"h", "c"};

static void add_layer(mpl_net *net, const kind *k, layer *l, int64_t batch, int64_t hidden)
{
    for (int gate = 0; gate < k->n_gates; gate++) {
        l->w[gate] = mpl_net_weight(net, mpl_net_text(net, "w%s", k->gate[gate]), 2,
                                    (int64_t[]){hidden, hidden});
        l->u[gate] = mpl_net_weight(net, mpl_net_text(net, "u%s", k->gate[gate]), 2,
                                    (int64_t[]){hidden, hidden});
        l->b[gate] = mpl_net_weight(net, mpl_net_text(net, "b%s", k->gate[gate]), 1, &hidden);
    }
    for (int i = 0; i < k->n_states; i++)
        l->state[i] = mpl_net_input(net, state_name[i], 2, (int64_t[]){batch, hidden});
}

/* The activated sum of both products of one gate, named by letter `id`. */
static mpl_value gate_of(mpl_net *net, const layer *l, int gate, const char *id,
                         mpl_op_kind activation, mpl_value x, mpl_value h)
{
    mpl_value from_x, from_h, sum;

    from_x = mpl_net_op(net, MPL_OP_gemm, mpl_net_text(net, "x%s", id), 3,
                        (mpl_value[]){x, l->w[gate], l->b[gate]}, 0, NULL);
    from_h = mpl_net_binary(net, MPL_OP_matmul, mpl_net_text(net, "h%s", id), h, l->u[gate]);
    sum = mpl_net_binary(net, MPL_OP_add, mpl_net_text(net, "s%s", id), from_x, from_h);
    return mpl_net_unary(net, activation, id, sum);
}

/* ---- LSTM ---- */

enum { INPUT_GATE, FORGET_GATE, CELL_GATE, OUTPUT_GATE, N_LSTM_GATES };
static const char *const lstm_gates[N_LSTM_GATES] = {"i", "f", "g", "o"};

static void lstm_cell(mpl_net *net, layer *l, mpl_value x)
{
    mpl_value gate[N_LSTM_GATES], kept, fresh, *h = &l->state[0], *c = &l->state[1];

    for (int i = 0; i < N_LSTM_GATES; i++)
        gate[i] =
            gate_of(net, l, i, lstm_gates[i], i == CELL_GATE ? MPL_OP_tanh : MPL_OP_sigmoid, x, *h);
    kept = mpl_net_binary(net, MPL_OP_mul, "fc", gate[FORGET_GATE], *c);
    fresh = mpl_net_binary(net, MPL_OP_mul, "ig", gate[INPUT_GATE], gate[CELL_GATE]);
    *c = mpl_net_binary(net, MPL_OP_add, "c", kept, fresh);
    *h = mpl_net_binary(net, MPL_OP_mul, "h", gate[OUTPUT_GATE],
                        mpl_net_unary(net, MPL_OP_tanh, "tanh", *c));
}

static const kind lstm = {N_LSTM_GATES, 2, lstm_gates, lstm_cell};

/* ---- GRU ---- */

enum { UPDATE_GATE, RESET_GATE, NEW_GATE, N_GRU_GATES };
static const char *const gru_gates[N_GRU_GATES] = {"z", "r", "n"};

/* z h + (1 - z) n is computed as n + z (h - n), which keeps one value less live. */
static void gru_cell(mpl_net *net, layer *l, mpl_value x)
{
    mpl_value *h = &l->state[0], z, r, n, reset, change;

    r = gate_of(net, l, RESET_GATE, gru_gates[RESET_GATE], MPL_OP_sigmoid, x, *h);
    reset = mpl_net_binary(net, MPL_OP_mul, "rh", r, *h);
    n = gate_of(net, l, NEW_GATE, gru_gates[NEW_GATE], MPL_OP_tanh, x, reset);
    z = gate_of(net, l, UPDATE_GATE, gru_gates[UPDATE_GATE], MPL_OP_sigmoid, x, *h);
    change = mpl_net_binary(net, MPL_OP_mul, "zh", z, mpl_net_binary(net, MPL_OP_sub, "d", *h, n));
    *h = mpl_net_binary(net, MPL_OP_add, "h", n, change);
}

static const kind gru = {N_GRU_GATES, 1, gru_gates, gru_cell};

/* ---- both forms ---- */

static mpl_value unroll(mpl_net *net, const kind *k, layer *layers, int64_t n_layers,
                        const int64_t *dim)
{
    mpl_value x = MPL_NONE;

    for (int64_t t = 0; t < dim[0]; t++) {
        mpl_net_scope(net, "step%" PRId64, t);
        x = mpl_net_input(net, "x", 2, dim + 1);
        for (int64_t l = 0; l < n_layers; l++) {
            mpl_net_scope(net, "step%" PRId64 ".layer%" PRId64, t, l);
            k->cell(net, &layers[l], x);
            x = layers[l].state[0];
        }
    }
    return x;
}

/* One loop over the steps, with slices of the input; its body has all layers. */
static mpl_value loop(mpl_net *net, const kind *k, layer *layers, int64_t n_layers,
                      const int64_t *dim)
{
    mpl_value init[MAX_LAYERS * MAX_STATES], result[1 + MAX_LAYERS * MAX_STATES] = {MPL_NONE};
    mpl_value out[MAX_LAYERS * MAX_STATES], x, scan;
    const char *name[MAX_LAYERS * MAX_STATES] = {NULL};
    mpl_net_loop l = {.trips = -1, .n_scans = 1, .init = init, .scan = &scan, .out_name = name};

    mpl_net_scope(net, "%s", "");
    scan = mpl_net_input(net, "x", 3, dim);
    l.body = mpl_net_open(net, "step");
    mpl_net_scope(net, "step");
    mpl_net_param(net, "round", MPL_TYPE_i64, &(mpl_shape){.rank = 0});
    for (int64_t i = 0; i < n_layers; i++) {
        mpl_net_scope(net, "step.layer%" PRId64, i);
        for (int s = 0; s < k->n_states; s++) {
            init[l.n_carried++] = layers[i].state[s];
            layers[i].state[s] =
                mpl_net_param_like(net, s == 0 ? "h.before" : "c.before", layers[i].state[s]);
        }
    }
    mpl_net_scope(net, "step");
    x = mpl_net_param_slice(net, "x", scan);
    for (int64_t i = 0; i < n_layers; i++) {
        mpl_net_scope(net, "step.layer%" PRId64, i);
        k->cell(net, &layers[i], x);
        x = layers[i].state[0];
        for (int s = 0; s < k->n_states; s++)
            result[1 + i * k->n_states + s] = layers[i].state[s];
    }
    mpl_net_close(net, 1 + l.n_carried, result);
    mpl_net_scope(net, "%s", "");
    name[(n_layers - 1) * k->n_states] = "y";
    mpl_net_while(net, "steps", &l, out);
    return out[(n_layers - 1) * k->n_states];
}

static mpl_status build(mpl_ctx *ctx, const mpl_zoo_args *args, const kind *k, mpl_graph **out)
{
    int64_t batch = mpl_zoo_arg(args, "batch"), hidden = mpl_zoo_arg(args, "hidden");
    int64_t n_layers = mpl_zoo_arg(args, "layers"),
            dim[] = {mpl_zoo_arg(args, "steps"), batch, hidden};
    layer layers[MAX_LAYERS];
    mpl_value y;
    mpl_net net = mpl_net_begin(ctx, args);

    for (int64_t l = 0; l < n_layers; l++) {
        mpl_net_scope(&net, "layer%" PRId64, l);
        add_layer(&net, k, &layers[l], batch, hidden);
    }
    if (mpl_zoo_arg(args, "form") == UNROLL)
        y = unroll(&net, k, layers, n_layers, dim);
    else
        y = loop(&net, k, layers, n_layers, dim);
    return mpl_net_end(&net, y, out);
}

static mpl_status build_lstm(mpl_ctx *ctx, const mpl_zoo_args *args, mpl_graph **out)
{
    return build(ctx, args, &lstm, out);
}

static mpl_status build_gru(mpl_ctx *ctx, const mpl_zoo_args *args, mpl_graph **out)
{
    return build(ctx, args, &gru, out);
}

static const char *const forms[] = {"unroll", "while"};

static const mpl_zoo_param params[] = {
    MPL_PARAM_BATCH(32),
    {"layers", 2, 1, MAX_LAYERS, "layers on top of each other", NULL},
    {"steps", 32, 1, 10000, "steps in time", NULL},
    {"hidden", 512, 1, 65536, "units of input, h and c", NULL},
    {"form", UNROLL, 0, 1, "a cell for each step, or a loop over the cell", forms},
    MPL_PARAM_END,
};

MPL_ZOO(lstm, "LSTM layers over a sequence, unrolled or a loop (Hochreiter, Schmidhuber 1997)",
        params, build_lstm);

MPL_ZOO(gru, "GRU layers over a sequence, unrolled or a loop (Cho et al. 2014)", params, build_gru);
