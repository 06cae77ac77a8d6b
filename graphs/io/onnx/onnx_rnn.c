/* onnx_rnn.c -- LSTM, GRU and RNN as loops over their cells.
 *
 * Idea     One `while` for each direction: a step reads a slice of X, and its h is a row of Y. The
 *          reverse direction starts from the last slice. A shorter sequence keeps its state after
 *          its end and has rows of zeros there; in reverse it starts at its own last step. The
 *          product x W is computed in the cell, or, on demand, for all steps before the loop: W is
 *          read once and R stays in the cache, but the products are memory that grows with the
 *          steps. What the cell adds to it accumulates in the second product.
 * Source   ONNX, docs/Operators.md: LSTM, GRU, RNN; gates and functions are named as there. */
#include "graphs/io/onnx/onnx_priv.h"

#include <strings.h>

enum { MAX_FUNCTIONS = 3, MAX_STATES = 2, N_PEEPHOLES = 3 };

typedef struct function {
    const char *name;   /* in ONNX */
    double alpha, beta; /* defaults */
    bool has_alpha, has_beta;
} function;

static const function functions[] = {
    {"Relu", 0, 0, false, false},        {"Tanh", 0, 0, false, false},
    {"Sigmoid", 0, 0, false, false},     {"Affine", 1, 0, true, true},
    {"LeakyRelu", 0.01, 0, true, false}, {"ThresholdedRelu", 1, 0, true, false},
    {"ScaledTanh", 1, 1, true, true},    {"HardSigmoid", 0.2, 0.5, true, true},
    {"Elu", 1, 0, true, false},          {"Softsign", 0, 0, false, false},
    {"Softplus", 0, 0, false, false},
};

/* What distinguishes the three layers. */
typedef struct layer {
    uint32_t n_gates, n_states, n_functions;
    const char *otherwise[MAX_FUNCTIONS];
} layer;

/* A node being read, with a sticky status. */
typedef struct rnn {
    onnx_node *n;
    mpl_status st;
    const layer *layer;
    mpl_value x, mask; /* [steps, batch, input]; bool [steps, batch, 1]: t < length */
    mpl_type type;
    int64_t steps, batch, input, hidden;
    uint32_t n_directions;
    bool batch_first, clips, flag; /* flag: input_forget, linear_before_reset */
    bool ahead;                    /* the loop reads x W + b instead of x */
    double clip;
    function function[2 * MAX_FUNCTIONS];
    /* of the current direction */
    mpl_value w, r, bias, reset_bias, last_r, peephole[N_PEEPHOLES], first[MAX_STATES];
    const function *f;
    const mpl_value *quantised; /* weights as the node has them; NULL: floats */
    mpl_value small[2][3];      /* W and R of the direction, [terms, gates], their scales, zeros */
} rnn;

/* ---- operations ---- */

static mpl_value op(rnn *c, mpl_op_kind kind, const char *name, uint32_t n_in, const mpl_value *in,
                    uint32_t n_attr, const mpl_attr *attr)
{
    mpl_value v = MPL_NONE;

    if (c->st == MPL_OK)
        c->st = onnx_step(c->n, kind, name, n_in, in, n_attr, attr, &v);
    return v;
}

static mpl_value unary(rnn *c, mpl_op_kind kind, const char *name, mpl_value x)
{
    return op(c, kind, name, 1, &x, 0, NULL);
}

static mpl_value binary(rnn *c, mpl_op_kind kind, const char *name, mpl_value a, mpl_value b)
{
    return op(c, kind, name, 2, (mpl_value[]){a, b}, 0, NULL);
}

static mpl_value number(rnn *c, double x)
{
    mpl_value v = MPL_NONE;

    if (c->st == MPL_OK)
        c->st = onnx_scalar(c->n, c->type, x, "number", &v);
    return v;
}

/* Elements [from, to) of an axis. */
static mpl_value range(rnn *c, const char *name, mpl_value x, int64_t axis, int64_t from,
                       int64_t to)
{
    const mpl_attr attr[] = {MPL_INTS(starts, 1, &from), MPL_INTS(ends, 1, &to),
                             MPL_INTS(axes, 1, &axis)};

    return op(c, MPL_OP_slice, name, 1, &x, 3, attr);
}

static mpl_value reshape(rnn *c, const char *name, mpl_value x, uint32_t rank, const int64_t *dim)
{
    return op(c, MPL_OP_reshape, name, 1, &x, 1, &MPL_INTS(shape, rank, dim));
}

/* a, quantised as it comes, times W or R of small integers, plus an addend. */
static mpl_value small_product(rnn *c, const char *name, mpl_value a, const mpl_value b[3],
                               mpl_value sum)
{
    mpl_value x[3] = {MPL_NONE, MPL_NONE, MPL_NONE}, y;

    if (c->st == MPL_OK)
        c->st = onnx_quantize_all(c->n, a, x);
    y = op(c, MPL_OP_qmatmul, name, 6, (mpl_value[]){x[0], b[0], x[1], x[2], b[1], b[2]}, 0, NULL);
    return sum == MPL_NONE ? y : op(c, MPL_OP_add, name, 2, (mpl_value[]){y, sum}, 0, NULL);
}

/* a times the transpose of b, plus an addend (may be MPL_NONE). */
static mpl_value product(rnn *c, const char *name, mpl_value a, mpl_value b, mpl_value sum)
{
    if (c->quantised != NULL)
        return small_product(c, name, a, c->small[b == c->r], sum);
    return op(c, MPL_OP_gemm, name, sum == MPL_NONE ? 2 : 3, (mpl_value[]){a, b, sum}, 1,
              &MPL_INT(trans_b, 1));
}

/* Splits the columns of x into n parts of these widths. */
static void split(rnn *c, mpl_value x, uint32_t n, const int64_t *width, const char *const *name,
                  mpl_value *out)
{
    mpl_status st = c->st;
    const char *fresh[4];
    const mpl_attr attr[] = {MPL_INT(axis, 1), MPL_INTS(split, n, width)};

    MPL_TRY(st);
    for (uint32_t i = 0; i < n; i++)
        MPL_TRY(onnx_fresh_name(c->n->r, c->n->label, name[i], &fresh[i]));
    MPL_TRY(onnx_blame(c->n, mpl_graph_add_folded(c->n->r->ctx, c->n->r->g, MPL_OP_split,
                                                  c->n->label, 1, &x, 2, attr, n, fresh, out)));
out:
    c->st = st;
}

/* Applies a function to x, clipped first if the node asks for it. That includes the function of the
 * cell, as the standard has it: "applied to the input of activations". */
static mpl_value activate(rnn *c, const function *f, const char *name, mpl_value x)
{
    static const struct {
        const char *name;
        mpl_op_kind kind;
    } plain[] = {
        {"Relu", MPL_OP_relu},
        {"Tanh", MPL_OP_tanh},
        {"Sigmoid", MPL_OP_sigmoid},
        {"LeakyRelu", MPL_OP_leaky_relu},
        {"ThresholdedRelu", MPL_OP_thresholded_relu},
        {"HardSigmoid", MPL_OP_hard_sigmoid},
        {"Elu", MPL_OP_elu},
        {"Softsign", MPL_OP_softsign},
        {"Softplus", MPL_OP_softplus},
    };
    const mpl_attr attr[] = {MPL_FLOAT(alpha, f->alpha), MPL_FLOAT(beta, f->beta)};

    if (c->clips)
        x = op(c, MPL_OP_clip, "clipped", 3,
               (mpl_value[]){x, number(c, -c->clip), number(c, c->clip)}, 0, NULL);
    for (size_t i = 0; i < sizeof plain / sizeof *plain; i++)
        if (strcmp(plain[i].name, f->name) == 0)
            return op(c, plain[i].kind, name, 1, &x, (uint32_t)f->has_alpha + f->has_beta, attr);
    if (strcmp(f->name, "Affine") == 0)
        return binary(c, MPL_OP_add, name, binary(c, MPL_OP_mul, name, x, number(c, f->alpha)),
                      number(c, f->beta));
    x = unary(c, MPL_OP_tanh, name, binary(c, MPL_OP_mul, name, x, number(c, f->beta)));
    return binary(c, MPL_OP_mul, name, x, number(c, f->alpha));
}

/* ---- cells ---- */

/* x plus the peephole's weights times the cell. */
static mpl_value peep(rnn *c, mpl_value x, int which, mpl_value cell)
{
    if (c->peephole[0] == MPL_NONE)
        return x;
    return binary(c, MPL_OP_add, "peep", x,
                  binary(c, MPL_OP_mul, "peep", c->peephole[which], cell));
}

/* x W + b of one step. */
static mpl_value of_input(rnn *c, mpl_value x)
{
    return c->ahead ? x : product(c, "x", x, c->w, c->bias);
}

/* x W + b of all steps, [steps, batch, gates * hidden]. */
static mpl_value of_all_inputs(rnn *c)
{
    int64_t rows = c->layer->n_gates * c->hidden;
    mpl_value x = reshape(c, "x", c->x, 2, (int64_t[]){c->steps * c->batch, c->input});

    x = product(c, "x", x, c->w, c->bias);
    return reshape(c, "x", x, 3, (int64_t[]){c->steps, c->batch, rows});
}

/* i, o, f = f(x W + h R + P c + b), g = g(x W + h R + b); c' = f c + i g; h' = o h(c'). */
static void lstm_cell(rnn *c, mpl_value x, const mpl_value *state, mpl_value *next)
{
    enum { I, O, F, G, N };
    static const char *const name[N] = {"i", "o", "f", "g"};
    const int64_t width[N] = {c->hidden, c->hidden, c->hidden, c->hidden};
    mpl_value gate[N] = {MPL_NONE, MPL_NONE, MPL_NONE, MPL_NONE}, kept, fresh;

    split(c, product(c, "gates", state[0], c->r, of_input(c, x)), N, width, name, gate);
    gate[I] = activate(c, &c->f[0], "i", peep(c, gate[I], 0, state[1]));
    gate[G] = activate(c, &c->f[1], "g", gate[G]);
    if (c->flag) /* coupled input and forget gates */
        gate[F] = binary(c, MPL_OP_sub, "f", number(c, 1), gate[I]);
    else
        gate[F] = activate(c, &c->f[0], "f", peep(c, gate[F], 2, state[1]));
    fresh = binary(c, MPL_OP_mul, "ig", gate[I], gate[G]);
    kept = binary(c, MPL_OP_mul, "fc", gate[F], state[1]);
    next[1] = binary(c, MPL_OP_add, "c", kept, fresh);
    gate[O] = activate(c, &c->f[0], "o", peep(c, gate[O], 1, next[1]));
    next[0] = binary(c, MPL_OP_mul, "h", gate[O], activate(c, &c->f[2], "hc", next[1]));
}

/* z, r = f(x W + h R + b); n = g(x W + (r h) R + b), or g(x W + b + r (h R + b)) with
 * linear_before_reset; h' = (1 - z) n + z h, as n + z (h - n): one value less live. */
static void gru_cell(rnn *c, mpl_value x, const mpl_value *state, mpl_value *next)
{
    static const char *const part_name[] = {"xzr", "xn"}, *const gate_name[] = {"z", "r"};
    const int64_t part_width[] = {2 * c->hidden, c->hidden}, gate_width[] = {c->hidden, c->hidden};
    mpl_value part[2] = {MPL_NONE, MPL_NONE}, gate[2] = {MPL_NONE, MPL_NONE}, n;

    split(c, of_input(c, x), 2, part_width, part_name, part);
    split(c, product(c, "zr", state[0], c->r, part[0]), 2, gate_width, gate_name, gate);
    gate[1] = activate(c, &c->f[0], "r", gate[1]);
    if (c->flag)
        n = binary(c, MPL_OP_add, "n", part[1],
                   binary(c, MPL_OP_mul, "rh", gate[1],
                          product(c, "hn", state[0], c->last_r, c->reset_bias)));
    else
        n = product(c, "n", binary(c, MPL_OP_mul, "rh", gate[1], state[0]), c->last_r, part[1]);
    n = activate(c, &c->f[1], "n", n);
    gate[0] = activate(c, &c->f[0], "z", gate[0]);
    next[0] =
        binary(c, MPL_OP_add, "h", n,
               binary(c, MPL_OP_mul, "zh", gate[0], binary(c, MPL_OP_sub, "hn", state[0], n)));
}

/* h' = f(x W + h R + b). */
static void rnn_cell(rnn *c, mpl_value x, const mpl_value *state, mpl_value *next)
{
    next[0] = activate(c, &c->f[0], "h", product(c, "sum", state[0], c->r, of_input(c, x)));
}

/* After the end of a sequence its state stays and its rows are zero. */
static mpl_status make_step(const onnx_loop *l, onnx_round *round)
{
    rnn *c = l->arg;
    mpl_value made = MPL_NONE, mask = c->mask != MPL_NONE ? round->slice[1] : MPL_NONE;

    if (c->layer->n_gates == 4)
        lstm_cell(c, round->slice[0], round->state, round->next);
    else if (c->layer->n_gates == 3)
        gru_cell(c, round->slice[0], round->state, round->next);
    else
        rnn_cell(c, round->slice[0], round->state, round->next);
    made = round->next[0];
    if (mask != MPL_NONE) {
        if (l->n_rows > 0)
            made = op(c, MPL_OP_where, "y", 3, (mpl_value[]){mask, made, number(c, 0)}, 0, NULL);
        for (uint32_t i = 0; i < c->layer->n_states; i++)
            round->next[i] = op(c, MPL_OP_where, i == 0 ? "h" : "c", 3,
                                (mpl_value[]){mask, round->next[i], round->state[i]}, 0, NULL);
    }
    if (l->n_rows > 0)
        round->row[0] =
            op(c, MPL_OP_unsqueeze, "y", 1, &made, 1, &MPL_INTS(axes, 1, (const int64_t[]){0}));
    return c->st;
}

/* ---- attributes ---- */

static const function *find_function(const char *name, size_t n)
{
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++)
        if (strlen(functions[i].name) == n && strncasecmp(functions[i].name, name, n) == 0)
            return &functions[i];
    return NULL;
}

/* Assigns alphas and betas, in order, to the functions that have them. */
static mpl_status take_functions(rnn *c)
{
    onnx_node *n = c->n;
    const Onnx__AttributeProto *names = onnx_attr(n, "activations");
    const Onnx__AttributeProto *alphas = onnx_attr(n, "activation_alpha");
    const Onnx__AttributeProto *betas = onnx_attr(n, "activation_beta");
    uint32_t count = c->layer->n_functions * c->n_directions;
    size_t n_alphas = 0, n_betas = 0;

    if (names != NULL && names->n_strings != count)
        return ONNX_REFUSE(n, "it has %zu activations; %u are needed", names->n_strings, count);
    for (uint32_t i = 0; i < count; i++) {
        const char *name = names != NULL ? (const char *)names->strings[i].data
                                         : c->layer->otherwise[i % c->layer->n_functions];
        size_t length = names != NULL ? names->strings[i].len : strlen(name);
        const function *f = find_function(name, length);

        if (f == NULL)
            return ONNX_REFUSE(n, "activation '%.*s' is none that the standard lists",
                               (int)(length > 40 ? 40 : length), length > 0 ? name : "");
        c->function[i] = *f;
        if (f->has_alpha && alphas != NULL && n_alphas < alphas->n_floats)
            c->function[i].alpha = (double)alphas->floats[n_alphas++];
        if (f->has_beta && betas != NULL && n_betas < betas->n_floats)
            c->function[i].beta = (double)betas->floats[n_betas++];
    }
    return MPL_OK;
}

static mpl_status check_dims(rnn *c, uint32_t input, uint32_t rank, int64_t a, int64_t b,
                             int64_t last)
{
    const mpl_graph *g = c->n->r->g;
    mpl_value v = onnx_in(c->n, input);
    mpl_shape want = {rank, {a, b, last}};
    char is[200], must[200];

    want.dim[2] = rank > 2 ? last : 0;
    if (v != MPL_NONE && (!mpl_shape_equal(&g->value_shape[v], &want) ||
                          (mpl_type)g->value_type[v] != (input == 4 ? MPL_TYPE_i32 : c->type)))
        return ONNX_REFUSE(
            c->n, "input %u is %s %s; it must be %s %s", input,
            mpl_type_name((mpl_type)g->value_type[v]), mpl_shape_text(&g->value_shape[v], is),
            mpl_type_name(input == 4 ? MPL_TYPE_i32 : c->type), mpl_shape_text(&want, must));
    return MPL_OK;
}

static mpl_status check_inputs(rnn *c)
{
    int64_t d = c->n_directions, rows = c->layer->n_gates * c->hidden;
    int64_t a = c->batch_first ? c->batch : d, b = c->batch_first ? d : c->batch;

    MPL_PASS(check_dims(c, 1, 3, d, rows, c->input));
    MPL_PASS(check_dims(c, 2, 3, d, rows, c->hidden));
    MPL_PASS(check_dims(c, 3, 2, d, 2 * rows, 0));
    if (onnx_in(c->n, 4) != MPL_NONE)
        MPL_PASS(check_dims(c, 4, 1, c->batch, 0, 0));
    for (uint32_t i = 0; i < c->layer->n_states; i++)
        MPL_PASS(check_dims(c, 5 + i, 3, a, b, c->hidden));
    if (c->layer->n_states > 1)
        MPL_PASS(check_dims(c, 7, 2, d, N_PEEPHOLES * c->hidden, 0));
    return MPL_OK;
}

/* Reads attributes and sizes. */
static mpl_status take_node(rnn *c)
{
    onnx_node *n = c->n;
    const mpl_graph *g = n->r->g;
    const Onnx__AttributeProto *clip = onnx_attr(n, "clip");
    const mpl_shape *x, *r;
    bool both = onnx_attr_is(n, "direction", "bidirectional");

    for (uint32_t i = 0; i < 3; i++)
        if (onnx_in(n, i) == MPL_NONE || g->value_shape[n->in[i]].rank != 3)
            return ONNX_REFUSE(n, "input %u is missing, or has not 3 dims", i);
    if (onnx_attr(n, "direction") != NULL && !both && !onnx_attr_is(n, "direction", "forward") &&
        !onnx_attr_is(n, "direction", "reverse"))
        return ONNX_REFUSE(n, "direction is none of forward, reverse, bidirectional");
    if (n->n_out > 1 + c->layer->n_states)
        return ONNX_REFUSE(n, "it has %u outputs; at most %u are supported", n->n_out,
                           1 + c->layer->n_states);
    x = &g->value_shape[n->in[0]], r = &g->value_shape[n->in[2]];
    c->type = (mpl_type)g->value_type[n->in[0]];
    c->n_directions = both ? 2 : 1;
    c->batch_first = onnx_attr_int(n, "layout", 0) != 0;
    c->steps = x->dim[c->batch_first], c->batch = x->dim[!c->batch_first];
    c->input = x->dim[2], c->hidden = r->dim[2];
    c->flag =
        onnx_attr_int(n, c->layer->n_gates == 4 ? "input_forget" : "linear_before_reset", 0) != 0;
    c->clips = clip != NULL;
    c->clip = clip != NULL ? (double)clip->f : 0;
    if (onnx_attr_int(n, "hidden_size", c->hidden) != c->hidden || c->hidden > (INT64_C(1) << 40))
        return ONNX_REFUSE(n, "hidden_size is %" PRId64 ", and input 2 has rows of %" PRId64,
                           onnx_attr_int(n, "hidden_size", c->hidden), c->hidden);
    MPL_PASS(check_inputs(c));
    return take_functions(c);
}

/* ---- operands ---- */

/* Part d of an operand with one part for each direction, without that axis. */
static mpl_value of_direction(rnn *c, const char *name, mpl_value v, uint32_t d, uint32_t rank,
                              const int64_t *dim)
{
    if (v == MPL_NONE)
        return MPL_NONE;
    if (c->n_directions > 1)
        v = range(c, name, v, 0, d, d + 1);
    return reshape(c, name, v, rank, dim);
}

/* W or R of direction d as the node has it. */
static void take_small(rnn *c, uint32_t d, uint32_t which)
{
    const mpl_value *from = c->quantised + 3 * which;
    int64_t terms = which == 0 ? c->input : c->hidden;

    c->small[which][0] =
        of_direction(c, "w", from[0], d, 2, (int64_t[]){terms, c->layer->n_gates * c->hidden});
    for (uint32_t i = 1; i < 3; i++) {
        int64_t each = mpl_count(&c->n->r->g->value_shape[from[i]]) / c->n_directions;

        c->small[which][i] = of_direction(c, "scale", from[i], d, 1, &each);
    }
}

/* GRU has two products of h, as the second depends on the first. */
static void take_weights(rnn *c, uint32_t d)
{
    int64_t h = c->hidden, rows = c->layer->n_gates * h, zr = 2 * h;
    mpl_value both = of_direction(c, "b", onnx_in(c->n, 3), d, 1, (int64_t[]){2 * rows}),
              of_h = MPL_NONE;

    c->w = of_direction(c, "w", c->n->in[1], d, 2, (int64_t[]){rows, c->input});
    c->r = of_direction(c, "r", c->n->in[2], d, 2, (int64_t[]){rows, h});
    c->bias = c->reset_bias = c->last_r = MPL_NONE;
    if (both != MPL_NONE) {
        c->bias = range(c, "b", both, 0, 0, rows);
        of_h = range(c, "b", both, 0, rows, 2 * rows);
    }
    if (c->layer->n_gates == 3) {
        c->last_r = range(c, "r", c->r, 0, zr, rows);
        c->r = range(c, "r", c->r, 0, 0, zr);
    }
    /* the last part is reset together with h R */
    if (both != MPL_NONE && c->layer->n_gates == 3 && c->flag) {
        mpl_value part[] = {binary(c, MPL_OP_add, "b", range(c, "b", c->bias, 0, 0, zr),
                                   range(c, "b", of_h, 0, 0, zr)),
                            range(c, "b", c->bias, 0, zr, rows)};

        c->reset_bias = range(c, "b", of_h, 0, zr, rows);
        c->bias = op(c, MPL_OP_concat, "b", 2, part, 1, &MPL_INT(axis, 0));
    } else if (both != MPL_NONE)
        c->bias = binary(c, MPL_OP_add, "b", c->bias, of_h);
}

static mpl_value transpose(rnn *c, const char *name, mpl_value x, int64_t a, int64_t b,
                           int64_t last)
{
    return op(c, MPL_OP_transpose, name, 1, &x, 1, &MPL_INTS(perm, 3, ((int64_t[]){a, b, last})));
}

/* The initial state: zero unless given. */
static void take_state(rnn *c, uint32_t i, uint32_t d)
{
    const int64_t dim[] = {c->batch, c->hidden};
    mpl_value v = onnx_in(c->n, 5 + i);

    if (v != MPL_NONE && c->batch_first)
        v = transpose(c, "first", v, 1, 0, 2);
    if (v != MPL_NONE)
        c->first[i] = of_direction(c, "first", v, d, 2, dim);
    else {
        v = number(c, 0);
        c->first[i] = op(c, MPL_OP_expand, "first", 1, &v, 1, &MPL_INTS(shape, 2, dim));
    }
}

static void take_operands(rnn *c, uint32_t d)
{
    mpl_value p = c->layer->n_states > 1 ? onnx_in(c->n, 7) : MPL_NONE;

    take_weights(c, d);
    for (uint32_t i = 0; c->quantised != NULL && i < 2; i++)
        take_small(c, d, i);
    for (uint32_t i = 0; i < c->layer->n_states; i++)
        take_state(c, i, d);
    p = of_direction(c, "p", p, d, 1, (int64_t[]){N_PEEPHOLES * c->hidden});
    for (uint32_t i = 0; i < N_PEEPHOLES; i++)
        c->peephole[i] =
            p == MPL_NONE ? MPL_NONE : range(c, "p", p, 0, i * c->hidden, (i + 1) * c->hidden);
    c->f = c->function + d * c->layer->n_functions;
}

/* Whether step t is within a sequence: t < length. MPL_NONE if all have full length. */
static mpl_status make_mask(rnn *c)
{
    mpl_value lens = onnx_in(c->n, 4), step;
    uint32_t count;
    int64_t *length, *at, shortest = INT64_MAX;
    const char *name;

    c->mask = MPL_NONE;
    if (lens == MPL_NONE)
        return MPL_OK;
    if (onnx_is_constant(c->n, lens) && c->batch <= UINT16_MAX) {
        MPL_PASS(onnx_ints(c->n, lens, "sequence_lens", &count, &length));
        for (uint32_t i = 0; i < count; i++)
            shortest = length[i] < shortest ? length[i] : shortest;
        if (shortest >= c->steps)
            return MPL_OK;
    }
    MPL_PASS(onnx_new(c->n->r, at, (size_t)c->steps));
    for (int64_t i = 0; i < c->steps; i++)
        at[i] = i;
    MPL_PASS(onnx_fresh_name(c->n->r, c->n->label, "steps", &name));
    MPL_PASS(
        onnx_blame(c->n, mpl_graph_add_const(c->n->r->ctx, c->n->r->g, name, MPL_TYPE_i64,
                                             &(mpl_shape){3, {c->steps, 1, 1}}, at, false, &step)));
    lens = op(c, MPL_OP_cast, "lens", 1, &lens, 1, &MPL_TEXT(to, "i64"));
    lens = reshape(c, "lens", lens, 3, (int64_t[]){1, c->batch, 1});
    c->mask = binary(c, MPL_OP_less, "mask", step, lens);
    return c->st;
}

/* ---- the loop and its results ---- */

static bool is_asked_for(const rnn *c, uint32_t output)
{
    return output < c->n->n_out && c->n->out_name[output] != NULL;
}

/* The loop over the steps of direction d; made[] receives the last states, then the stacked h. */
static mpl_status add_direction(rnn *c, uint32_t d, mpl_value *made)
{
    static const char *const param[] = {"h", "c", "x", "mask"}, *const suffix[] = {"h_n", "c_n",
                                                                                   "rows"};
    bool backward = d == 1 || onnx_attr_is(c->n, "direction", "reverse");
    const bool reverse[] = {backward, backward, backward}; /* x, the mask, the rows */
    uint32_t n = c->layer->n_states;
    mpl_value scan[2] = {c->x, c->mask};
    const char *name[MAX_STATES + 1] = {NULL};
    const char *of_param[MAX_STATES + 2] = {param[0], n > 1 ? param[1] : param[2],
                                            n > 1 ? param[2] : param[3], param[3]};
    onnx_loop l = {.n = c->n, .trips = MPL_NONE, .go = MPL_NONE, .most = c->steps, .n_carried = n};

    take_operands(c, d);
    if (c->ahead)
        scan[0] = of_all_inputs(c);
    MPL_PASS(c->st);
    l.n_scans = c->mask != MPL_NONE ? 2 : 1;
    l.n_rows = is_asked_for(c, 0);
    l.init = c->first;
    l.scan = scan;
    l.param = of_param;
    l.reverse = reverse;
    l.out_name = name;
    l.unroll = c->n->r->options != NULL && c->n->r->options->rnn == MPL_RNN_UNROLL;
    l.body = make_step;
    l.arg = c;
    for (uint32_t i = 0; i < n + l.n_rows; i++)
        if (i == n || is_asked_for(c, 1 + i))
            MPL_PASS(onnx_fresh_name(c->n->r, c->n->label, suffix[i == n ? 2 : i], &name[i]));
    if (l.n_rows > 0 && c->n_directions == 1 && !c->batch_first)
        name[n] = c->n->out_name[0];
    return onnx_add_loop(&l, made);
}

/* An operation that makes an output of the node. */
static mpl_status last_op(rnn *c, mpl_op_kind kind, uint32_t n_in, const mpl_value *in,
                          const mpl_attr *attr, uint32_t output)
{
    onnx_node *n = c->n;

    MPL_PASS(onnx_settle_name(n->r, &n->out_name[output]));
    return onnx_blame(n, mpl_graph_add_folded(n->r->ctx, n->r->g, kind, n->label, n_in, in, 1, attr,
                                              1, &n->out_name[output], &n->out[output]));
}

/* Y: [steps, directions, batch, hidden], or the batch first. */
static mpl_status finish_rows(rnn *c, const mpl_value *part)
{
    mpl_value all = part[0];
    const mpl_attr axis = MPL_INT(axis, 1),
                   perm = MPL_INTS(perm, 4, ((const int64_t[]){2, 0, 1, 3}));

    if (!c->batch_first && c->n_directions == 1)
        c->n->out[0] = all;
    else if (!c->batch_first)
        MPL_PASS(last_op(c, MPL_OP_concat, 2, part, &axis, 0));
    else {
        if (c->n_directions == 2)
            MPL_PASS(onnx_step(c->n, MPL_OP_concat, "rows", 2, part, 1, &axis, &all));
        MPL_PASS(last_op(c, MPL_OP_transpose, 1, &all, &perm, 0));
    }
    return MPL_OK;
}

/* Y_h and Y_c: [directions, batch, hidden], or the batch first. */
static mpl_status finish_state(rnn *c, uint32_t output, mpl_value *part)
{
    int64_t axis = c->batch_first;

    if (c->n_directions == 1)
        return last_op(c, MPL_OP_unsqueeze, 1, part, &MPL_INTS(axes, 1, &axis), output);
    for (uint32_t d = 0; d < 2; d++)
        MPL_PASS(onnx_step(c->n, MPL_OP_unsqueeze, "last", 1, &part[d], 1,
                           &MPL_INTS(axes, 1, &axis), &part[d]));
    return last_op(c, MPL_OP_concat, 2, part, &MPL_INT(axis, axis), output);
}

static mpl_status lower(onnx_node *n, const layer *kind, const mpl_value *quantised)
{
    bool asked = n->r->options != NULL && n->r->options->rnn == MPL_RNN_AHEAD;
    /* all inputs share one scale, so their products come before the loop */
    rnn c = {.n = n, .layer = kind, .ahead = asked || quantised != NULL, .quantised = quantised};
    mpl_value made[2][MAX_STATES + 1] = {{MPL_NONE}}, part[2];

    MPL_PASS(take_node(&c));
    c.x = c.batch_first ? transpose(&c, "x", n->in[0], 1, 0, 2) : n->in[0];
    MPL_PASS(make_mask(&c));
    for (uint32_t d = 0; d < c.n_directions; d++)
        MPL_PASS(add_direction(&c, d, made[d]));
    for (uint32_t i = 0; i < n->n_out; i++) {
        uint32_t at = i == 0 ? kind->n_states : i - 1;

        part[0] = made[0][at], part[1] = made[1][at];
        if (is_asked_for(&c, i))
            MPL_PASS(i == 0 ? finish_rows(&c, part) : finish_state(&c, i, part));
    }
    return MPL_OK;
}

mpl_status onnx_lower_rnn(onnx_node *n)
{
    static const layer rnn_layer = {1, 1, 1, {"Tanh"}};

    return lower(n, &rnn_layer, NULL);
}

mpl_status onnx_lower_gru(onnx_node *n)
{
    static const layer gru_layer = {3, 1, 2, {"Sigmoid", "Tanh"}};

    return lower(n, &gru_layer, NULL);
}

mpl_status onnx_lower_lstm_of(onnx_node *n, const mpl_value quantised[6])
{
    static const layer lstm_layer = {4, 2, 3, {"Sigmoid", "Tanh", "Tanh"}};

    return lower(n, &lstm_layer, quantised);
}

mpl_status onnx_lower_lstm(onnx_node *n)
{
    return onnx_lower_lstm_of(n, NULL);
}
